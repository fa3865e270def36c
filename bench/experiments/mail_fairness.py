"""./cssl bench mail fairness: do senders to one receiver get equal shares of it? As in the paper on Warp, three senders
have as many mails each for a receiver that takes few connections at a time."""

import contextlib
import pathlib
import time

from bench.experiments.load import LoadError
from bench.experiments.mail_bed import NUMBERS, SENDERS, Bed
from bench.experiments.mail_fairness_page import figures, markdown
from bench.experiments.mail_hosts import LogReader, Proxy, facts, msa, mx, relay, running, send, sent, stop_all, to_mx
from bench.experiments.report import save
from bench.experiments.waiting import wait_for

CONNECTIONS = 10  # that the receiver takes from one address
MAILS, QUICK_MAILS = 10000, 100  # of each sender
LONGEST_S = 1800  # of a run. The relay tries again what was refused after 5 minutes, then after longer and longer times.

# Of the senders, as in the paper. Mail is kept until all of it is there.
SENDER = ("initial_destination_concurrency = 5\ndefault_destination_concurrency_limit = 20\n"
          "smtpd_data_restrictions = check_client_access static:HOLD\n")
QUICK_SENDER = SENDER.replace("20", "8") + "smtp_connection_cache_time_limit = 1s\n"
# Of the relay in a quick run: it tries again after seconds, not minutes.
SOON = "queue_run_delay = 1s\nminimal_backoff_time = 1s\nmaximal_backoff_time = 1s\n"
SYSTEMS = ("smtpproxy", "fairness off", "Postfix relay")


def aggregator(bed, name, quick):
    if name == "Postfix relay":
        return relay(bed, SOON if quick else "")
    return Proxy(bed, "on" if name == "smtpproxy" else "off", stop_timeout="1s")


def fill(bed, senders, mails):
    sources = [send(bed, SENDERS.format(n), mails, "-s", 20, "-d", "-f", f"from@msa{n}.example", "-t", "to@mx1.example")
               for n in NUMBERS]
    try:
        for source in sources:
            sent(source)
    finally:
        stop_all(sources)
    kept = [sender.queue("hold") for sender in senders]
    if kept != [mails] * len(senders):
        raise LoadError(f"the senders have {kept} mails")


def result(seen, begin, mails, end_s):
    """Mails that were not there in the end are missing; then their sender has no time, and neither has the run."""
    times = {f"msa{n}": sorted(when - begin for sender, when in seen.values() if sender == f"from@msa{n}.example") for n in NUMBERS}
    if any(len(ts) > mails for ts in times.values()):
        raise LoadError(f"the receiver got {({name: len(ts) for name, ts in times.items()})} mails")
    last = {name: ts[-1] if len(ts) == mails else None for name, ts in times.items()}
    is_done = None not in last.values()
    step = (max(last.values()) if is_done else end_s) / 60
    return {"last_s": last, "all_s": max(last.values()) if is_done else None,
            "spread": max(last.values()) / min(last.values()) if is_done else None, "ended_s": end_s,
            "missing": sum(mails - len(ts) for ts in times.values()),
            "received": {name: [(round(i * step, 2), sum(t <= i * step for t in ts)) for i in range(62)] for name, ts in times.items()}}


def measure(bed, name, quick):
    mails = QUICK_MAILS if quick else MAILS
    receiver = mx(bed, 1, f"smtpd_client_connection_count_limit = {CONNECTIONS}\n")
    through = aggregator(bed, name, quick)
    senders = [msa(bed, n, to_mx(1) + (QUICK_SENDER if quick else SENDER)) for n in NUMBERS]
    with running(receiver, through, *senders):
        fill(bed, senders, mails)
        for sender in senders:
            sender.prepare_release()
        log, begin = LogReader(receiver), time.time()
        for sender in senders:
            sender.release()
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: len(log.look()) >= len(senders) * mails, LONGEST_S, f"all mails through {name}", 0.5)
        end_s = time.time() - begin
        queues = [*senders, through] if name == "Postfix relay" else senders
        said = b"".join(host.log() for host in queues)
        run = {"system": name, "mails": mails, **result(log.look(), begin, mails, end_s), "refused": said.count(b"status=bounced"),
               "deferred": said.count(b"status=deferred")}
    if run["missing"] > 0 and name != "Postfix relay":
        raise LoadError(f"{name}: {run['missing']} mails were not there after {end_s:.0f} s")
    return run


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick."""
    where, runs = facts("postfix"), []
    with Bed(pathlib.Path(options.folder)) as bed:
        bed.capture()
        options.course.plan(len(SYSTEMS) + (options.rounds - 1) * len(SYSTEMS[:2]))
        for number in range(options.rounds):
            names = SYSTEMS if number == 0 else SYSTEMS[:2]
            for name in names if number % 2 == 0 else reversed(names):
                runs.append({"round": number, **measure(bed, name, options.quick)})
                options.course.done(f"{name}: {runs[-1]['missing']} mails missing after "
                    f"{runs[-1]['ended_s']:.1f} s")
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "mails": runs[0]["mails"], "connections": CONNECTIONS,
              "runs": runs}
    save(options, report, markdown(report, options.name), figures(report, options.name))
