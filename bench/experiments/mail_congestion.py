"""./cssl bench mail congestion: does a receiver that hardly takes mail delay the mail for others? The paper on Warp asks it, too:
three senders give mail to an aggregator, each for a receiver of its own, in waves; the third receiver is a tarpit. The long runs are
those of the paper. A short one before each long one of smtpproxy, in which the third receiver is healthy, tells what the tarpit costs
from its first moment on."""

import dataclasses
import itertools
import pathlib
import re
import time

from bench.experiments.load import LoadError, same
from bench.experiments.mail_bed import NUMBERS, RECEIVERS, SENDERS, Bed
from bench.experiments.mail_congestion_page import figures, markdown
from bench.experiments.mail_hosts import STAGES, Exim, Proxy, Sink, facts, msa, mx, relay, running, send, sent, stop_all, to_mx
from bench.experiments.mail_latency import latencies
from bench.experiments.mail_logs import LogReader, made_at, mails_in_exim, mails_in_postfix
from bench.experiments.report import save
from bench.experiments.waiting import wait_for

SYSTEMS = ("smtpproxy", "Postfix relay")
BACKOFF_S = 660  # Postfix may look 300 s later at a mail that is due 300 s after it was deferred
MANY_AT_ONCE = 20
PUT_OFF = "450 4.2.0 Try again later"  # the tarpit, at the end of each mail
# Of mails that were deferred: their ids, and whom they are for.
DEFERRED = re.compile(rb": (\w{11,}): to=<[^>]*@(mx\d)\.example>.* status=deferred ", re.A)


@dataclasses.dataclass(frozen=True)
class Plan:
    """`mails`: for each of the three receivers in each wave; `active`: messages that the relay's scheduler looks at; `tarpit_s`: between
    two bytes of a reply of the tarpit."""
    waves: int
    gap_s: float
    mails: tuple
    active: int
    tarpit_s: float
    rest_s: float  # at most, after the waves, for what is still on its way
    stuck_s: float  # the same for the relay beside a tarpit, where it never ends


# for a long run, for a short one
FULL = Plan(60, 10, (10, 1000, 10), 200, 0.3, 10, 10), Plan(6, 10, (10, 1000, 10), 200, 0.3, 60, 60)
QUICK = Plan(3, 0.5, (2, 20, 20), 15, 0.001, 60, 5), Plan(3, 0.5, (2, 20, 20), 15, 0.001, 60, 60)
START_S = 20  # for the servers of a run, and for their end


def aggregator(bed, name, plan):
    if name == "smtpproxy":
        return Proxy(bed, stop_timeout="1s")
    return relay(bed, f"qmgr_message_active_limit = {plan.active}\n")


class Watch:
    """How long the queues are, second by second, and in the end what was sent, received and deferred."""

    def __init__(self, name, through, senders, receivers):
        self._name, self._through = name, through
        self._stores = [*senders, through] if name == "Postfix relay" else senders
        self._sent = [LogReader(sender, mails_in_postfix) for sender in senders[:2]]
        self._received = [LogReader(host, read) for host, read in zip(receivers, (mails_in_exim, mails_in_postfix))]
        self.queues = []

    def look(self, begin):
        row = {"s": round(time.time() - begin, 2), **{host.name: [host.queue(name) for name in STAGES] for host in self._stores}}
        if self._name == "smtpproxy":
            row["waiting"] = sum(d["waiting"] for d in self._through.ask("/v1/destinations")["destinations"])
        self.queues.append(row)

    def received(self):
        return [log.look() for log in self._received]

    def sent(self):
        return [log.look() for log in self._sent]

    def has_deferred(self):
        return any(row[host.name][STAGES.index("deferred")] > 0 for row in self.queues for host in self._stores)

    def left(self):
        """Mails that are in a queue now."""
        return sum(host.queue(*STAGES) for host in self._stores)

    def deferred(self):
        """{receiver: mails that a sender, or the relay, could not deliver at once}"""
        mails = {(host.name, *found) for host in self._stores for found in DEFERRED.findall(host.log())}
        return {f"mx{n}": sum(receiver == b"mx%d" % n for _, _, receiver in mails) for n in NUMBERS}


def send_waves(bed, plan, watch, begin):
    """Looks once a second, or once a wave if that is shorter."""
    sources, step = [], min(1, plan.gap_s)
    try:
        for tick in itertools.count():
            due = begin + tick * step
            time.sleep(max(0, due - time.time()))
            wave, part = divmod(tick * step, plan.gap_s)
            if wave == plan.waves:
                break
            if part == 0:
                sources += [send(bed, SENDERS.format(n), count, "-s", min(count, MANY_AT_ONCE), "-d", "-f", f"from@msa{n}.example",
                                 "-t", f"to@mx{n}.example") for n, count in enumerate(plan.mails, 1)]
            watch.look(begin)
        for source in sources:
            sent(source)
    finally:
        stop_all(sources)


def rest(plan, watch, health, begin, rest_s):
    """Waits for the mail of the first two receivers, and until the tarpit has put off a mail."""
    end = time.time() + rest_s
    wanted = [plan.waves * count for count in plan.mails[:2]]

    def is_over():
        return [len(seen) for seen in watch.received()] == wanted and (health == "healthy" or watch.has_deferred())
    while not is_over() and time.time() < end:
        time.sleep(min(1, plan.gap_s))
        watch.look(begin)


def wait_for_health(watch):
    try:
        wait_for(lambda: watch.left() == 0, BACKOFF_S, "the healthy receiver takes all mails", 0.1)
    except TimeoutError as late:
        raise LoadError(str(late)) from late


def check_third(health, counts, deferred, mails):
    """LoadError: the third receiver was not what its name says. `counts`: its own; `deferred`: mails for it that were put off. A tarpit
    takes no mail, and who sends to it has to defer; a healthy one takes all."""
    if health == "healthy":
        same("the healthy receiver", counts, {"mails": mails, "right": mails, "duplicates": 0})
        return
    same("the tarpit", counts, {"mails": 0})
    if counts["refused"] == 0 or deferred == 0:
        raise LoadError(f"the tarpit put off {counts['refused']} mails, of which {deferred} were deferred")


def mails_of(plan, number, sent_by, received):
    """[(made, taken by the sender, taken by the receiver or None)]: the mails of one sender, in seconds since 1970. Each was sent once,
    and was received once or not at all."""
    came = {message: when for message, when in received.values()}
    mails = [(made_at(message), when, came.get(message)) for message, when in sent_by.values()]
    if len(mails) != plan.waves * plan.mails[number - 1]:
        raise LoadError(f"msa{number} got {len(mails)} mails")
    if len(came) != len(received) or len(came) != sum(taken is not None for *_, taken in mails):
        raise LoadError(f"mx{number} got mails of others, or one twice: {len(received)} receptions of {len(came)} mails")
    return mails


def measure(bed, name, health, plan):
    tarpit = ("--tarpit", f"all:{plan.tarpit_s}", "--reply", f"end:{PUT_OFF}") if health == "tarpit" else ()
    receivers = Exim(bed, bed.receivers, "mx1", RECEIVERS.format(1)), mx(bed, 2), Sink(bed, RECEIVERS.format(3), *tarpit)
    senders = [msa(bed, n, to_mx(n)) for n in NUMBERS]
    through = aggregator(bed, name, plan)
    with running(*receivers, *senders, through):
        watch = Watch(name, through, senders, receivers[:2])
        begin = time.time()
        send_waves(bed, plan, watch, begin)
        rest(plan, watch, health, begin, plan.stuck_s if (name, health) == ("Postfix relay", "tarpit") else plan.rest_s)
        end = time.time()
        if health == "healthy":
            wait_for_health(watch)
        mails = [mails_of(plan, number, *logs) for number, logs in enumerate(zip(watch.sent(), watch.received()), 1)]
        deferred = watch.deferred()
    check_third(health, receivers[2].counts(), deferred["mx3"], plan.waves * plan.mails[2])
    which = {"aggregator": name, "third": health}
    rows = [{**which, "mx": number, "waves": plan.waves, "deferred": deferred, **latencies(sent_to, begin, end)}
            for number, sent_to in enumerate(mails, 1)]
    return rows, [{**which, **row} for row in watch.queues]


def works(plans, rounds):
    """For each run: its round, and the arguments of measure()."""
    course, pair = plans
    for number in range(rounds):
        for name in SYSTEMS if number % 2 == 0 else reversed(SYSTEMS):
            if name == "smtpproxy":
                yield number, name, "healthy", pair
            yield number, name, "tarpit", course


def run_seconds(plan):
    return START_S + plan.waves * plan.gap_s


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    plans = QUICK if options.quick else FULL
    where = facts("postfix", "exim4-daemon-light")
    runs, queues = [], []
    options.course.plan(*((1, run_seconds(plan)) for *_, plan in works(plans, options.rounds)))
    with Bed(pathlib.Path(options.folder)) as bed:
        bed.capture()
        for number, name, health, plan in works(plans, options.rounds):
            rows, lengths = measure(bed, name, health, plan)
            runs += [{"round": number, **row} for row in rows]
            queues += [{"round": number, **row} for row in lengths if health == "tarpit"]
            options.course.done(f"{name}, third receiver: {health}: {rows[1]['mean_s']:.2f} s to mx2", runs=runs, queues=queues)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "plan": dataclasses.asdict(plans[0]),
              "pair_waves": plans[1].waves, "put_off": PUT_OFF, "runs": runs, "queues": queues}
    save(options, report, lambda found: markdown(found, options.name), lambda found: figures(found, options.name))
