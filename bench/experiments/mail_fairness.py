"""./cssl bench mail fairness: do senders to one receiver get equal shares of it? As in the paper on Warp, three senders
have as many mails each for a receiver that takes few connections at a time from one address; and then, as the paper proposes, the
aggregator has several addresses."""

import collections
import pathlib
import re
import time

from bench.experiments.load import LoadError, same
from bench.experiments.mail_bed import NUMBERS, RECEIVERS, SENDERS, SOURCES, Bed
from bench.experiments.mail_fairness_page import SYSTEMS, figures, markdown
from bench.experiments.mail_hosts import Proxy, facts, msa, mx, relay, running, send, sent, stop_all, to_mx
from bench.experiments.mail_logs import LogReader, mails_in_postfix, senders_in_postfix
from bench.experiments.report import save
from bench.experiments.waiting import wait_for

CONNECTIONS = 10  # that the receiver takes from one address
SESSIONS, QUICK_SESSIONS = 20, 8  # that a sender makes at most
MAILS, QUICK_MAILS = 10000, 100  # of each sender
LONGEST_S = 900  # of a run: a longer one is an error
ABOUT_S = {"smtpproxy": 75, "fairness off": 80, "Postfix relay": 150}  # with the filling before, on two cores

# Of the senders, as in the paper. Mail is kept until all of it is there.
SENDER = ("initial_destination_concurrency = 5\ndefault_destination_concurrency_limit = {}\n"
          "smtpd_data_restrictions = check_client_access static:HOLD\n")
QUICK_SENDER = "smtp_connection_cache_time_limit = 1s\n"
# Of the relay: what the receiver refused is tried again after seconds, not minutes.
SOON = "queue_run_delay = {0}s\nminimal_backoff_time = {0}s\nmaximal_backoff_time = {0}s\n"
SOON_S, QUICK_SOON_S = 10, 1

CONNECTED = re.compile(rb"postfix/smtpd\[\d+\]: connect from [^\[]*\[([^\]]+)\]")
TOO_MANY = b"oncurrency limit exceeded"


def sources(name):
    """The addresses from which a system connects to the receiver."""
    return SOURCES if "addresses" in name else (RECEIVERS.format(254),)


def aggregator(bed, name, quick):
    if name.startswith("Postfix relay"):
        knows = f"default_destination_concurrency_limit = {CONNECTIONS}\n" if "knows" in name else ""
        return relay(bed, SOON.format(QUICK_SOON_S if quick else SOON_S) + knows)
    fairness = "off" if name.startswith("fairness off") else "on"
    if len(sources(name)) == 1:
        return Proxy(bed, fairness, stop_timeout="1s")
    return Proxy(bed, fairness, sources(name), stop_timeout="1s", connections_per_destination=CONNECTIONS * len(SOURCES))


def fill(bed, senders, mails):
    loads = [send(bed, SENDERS.format(n), mails, "-s", 20, "-d", "-f", f"from@msa{n}.example", "-t", "to@mx1.example")
             for n in NUMBERS]
    try:
        for load in loads:
            sent(load)
    finally:
        stop_all(loads)
    kept = [sender.queue("hold") for sender in senders]
    if kept != [mails] * len(senders):
        raise LoadError(f"the senders have {kept} mails")


def check_each(came, messages, mails):
    """LoadError: not so many different mails came, each once. `came`: the ids of the receiver; `messages`: {its id: (Message-Id, when)}."""
    different = {messages[key][0] for key in came if key in messages}
    same("the receiver", {"receptions": len(came), "mails": len(different)}, {"receptions": mails, "mails": mails})


def result(seen, begin, mails):
    """Of a run in which so many mails of each sender came."""
    times = {f"msa{n}": sorted(when - begin for sender, when in seen.values() if sender == f"from@msa{n}.example") for n in NUMBERS}
    same("the receiver", {name: len(ts) for name, ts in times.items()}, dict.fromkeys(times, mails))
    last = {name: ts[-1] for name, ts in times.items()}
    step = max(last.values()) / 60
    return {"last_s": last, "all_s": max(last.values()), "spread": max(last.values()) / min(last.values()),
            "received": {name: [(round(i * step, 2), sum(t <= i * step for t in ts)) for i in range(62)] for name, ts in times.items()}}


def connections(said, addresses):
    """{address: connections that the receiver had from it}, of its log. LoadError: other addresses than those of the system."""
    found = collections.Counter(address.decode() for address in CONNECTED.findall(said))
    if set(found) != set(addresses):
        raise LoadError(f"the receiver was connected to from {sorted(found)} instead of {sorted(addresses)}")
    return dict(sorted(found.items()))


def measure(bed, name, quick):
    mails = QUICK_MAILS if quick else MAILS
    receiver = mx(bed, 1, f"smtpd_client_connection_count_limit = {CONNECTIONS}\n")
    through = aggregator(bed, name, quick)
    options = SENDER.format(QUICK_SESSIONS) + QUICK_SENDER if quick else SENDER.format(SESSIONS)
    senders = [msa(bed, n, to_mx(1) + options) for n in NUMBERS]
    with running(receiver, through, *senders):
        fill(bed, senders, mails)
        for sender in senders:
            sender.prepare_release()
        begin_of_log = len(receiver.log())
        log, begin = LogReader(receiver, senders_in_postfix), time.time()
        for sender in senders:
            sender.release()
        try:
            wait_for(lambda: len(log.look()) >= len(senders) * mails, LONGEST_S, f"all mails through {name}", 0.5)
        except TimeoutError as late:
            raise LoadError(f"{late}: {len(log.look())} of {len(senders) * mails} came") from late
        check_each(log.look(), LogReader(receiver, mails_in_postfix).look(), len(senders) * mails)
        queues = [*senders, through] if name.startswith("Postfix relay") else senders
        said, heard = b"".join(host.log() for host in queues), receiver.log()[begin_of_log:]
        return {"system": name, "mails": mails, **result(log.look(), begin, mails), "refused": said.count(b"status=bounced"),
                "deferred": said.count(b"status=deferred"), "too_many": heard.count(TOO_MANY),
                "connections": connections(heard, sources(name))}


def systems(number):
    """In this round. The relay runs once."""
    names = [name for name in SYSTEMS if number == 0 or not name.startswith("Postfix relay")]
    return names if number % 2 == 0 else names[::-1]


def run_seconds(system):
    return next(seconds for name, seconds in ABOUT_S.items() if system.startswith(name))


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    where, runs = facts("postfix"), []
    options.course.plan(*((1, run_seconds(name)) for number in range(options.rounds) for name in systems(number)))
    with Bed(pathlib.Path(options.folder)) as bed:
        bed.capture()
        for number in range(options.rounds):
            for name in systems(number):
                runs.append({"round": number, **measure(bed, name, options.quick)})
                options.course.done(f"{name}: all there after {runs[-1]['all_s']:.1f} s", runs=runs)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "mails": runs[0]["mails"], "limit": CONNECTIONS,
              "sessions": QUICK_SESSIONS if options.quick else SESSIONS, "addresses": len(SOURCES),
              "soon_s": QUICK_SOON_S if options.quick else SOON_S, "runs": runs}
    save(options, report, lambda found: markdown(found, options.name), lambda found: figures(found, options.name))
