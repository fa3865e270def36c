"""./cssl bench mail congestion: does a receiver that hardly takes mail delay the mail for others? The paper on Warp asks it, too:
three senders give mail to an aggregator, each for a receiver of its own, in waves; the third receiver is a tarpit. What that costs is
the latency in a short run, to that in another one just before or after it, in which the third receiver is healthy. The course of it is
seen in long runs."""

import dataclasses
import itertools
import pathlib
import statistics
import time

from bench.experiments.load import LoadError
from bench.experiments.mail_bed import NUMBERS, RECEIVERS, SENDERS, Bed
from bench.experiments.mail_congestion_page import figures, markdown
from bench.experiments.mail_hosts import Exim, LogReader, Proxy, Sink, facts, msa, mx, relay, running, send, sent, stop_all, to_mx
from bench.experiments.report import save
from bench.experiments.waiting import wait_for

TARPIT_S = 1  # between two bytes of a reply
BACKOFF_S = 660  # Postfix may look 300 s later at a mail that is due 300 s after it was deferred
HEALTH = ("healthy", "tarpit")
MANY_AT_ONCE = 20


@dataclasses.dataclass(frozen=True)
class Plan:
    """`mails`: for each of the three receivers in each wave; `active`: messages that the relay's scheduler looks at."""
    waves: int
    gap_s: float
    mails: tuple
    active: int
    rest_s: float  # after the last wave, for what is still on its way
    stuck_s: float  # the same for the relay beside a tarpit, where it never ends


# for a long run, for a short one
FULL = Plan(60, 10, (10, 1000, 10), 200, 60, 60), Plan(6, 10, (10, 1000, 10), 200, 60, 60)
QUICK = Plan(3, 0.5, (2, 20, 20), 15, 60, 3), Plan(3, 0.5, (2, 20, 20), 15, 60, 3)


def aggregator(bed, name, plan):
    if name == "smtpproxy":
        return Proxy(bed, stop_timeout="1s")
    return relay(bed, f"qmgr_message_active_limit = {plan.active}\nqmgr_message_recipient_limit = {plan.active}\n")


class Watch:
    """What has been received, and how long the queues are, second by second."""

    def __init__(self, name, through, senders, receivers):
        self._name, self._through, self._senders = name, through, senders
        self.logs = [LogReader(receiver) for receiver in receivers]
        self.queues = []

    def look(self, begin):
        row = {"s": round(time.time() - begin, 2), **{s.name: s.queue("incoming", "active", "deferred") for s in self._senders}}
        if self._name == "smtpproxy":
            row["waiting"] = sum(d["waiting"] for d in self._through.ask("/v1/destinations")["destinations"])
        else:
            row.update({name: self._through.queue(name) for name in ("incoming", "active", "deferred")})
        self.queues.append(row)

    def received(self):
        return [log.look() for log in self.logs]

    def left(self):
        """Mails that are in a queue now."""
        hosts = [*self._senders, self._through] if self._name != "smtpproxy" else self._senders
        return sum(host.queue("incoming", "active", "deferred") for host in hosts)


def send_waves(bed, plan, watch, begin):
    """When each wave began: seconds since 1970. Looks once a second, or once a wave if that is shorter."""
    sources, begun, step = [], [], min(1, plan.gap_s)
    try:
        for tick in itertools.count():
            due = begin + tick * step
            time.sleep(max(0, due - time.time()))
            wave, part = divmod(tick * step, plan.gap_s)
            if wave == plan.waves:
                break
            if part == 0:
                begun.append(time.time())
                sources += [send(bed, SENDERS.format(n), count, "-s", min(count, MANY_AT_ONCE), "-d", "-f",
                                 f"w{int(wave)}@msa{n}.example", "-t", f"to@mx{n}.example") for n, count in enumerate(plan.mails, 1)]
            watch.look(begin)
        for source in sources:
            sent(source)
    finally:
        stop_all(sources)
    return begun


def rest(plan, watch, begin, rest_s):
    """Waits for the mail of the first two receivers."""
    end = time.time() + rest_s
    wanted = [plan.waves * count for count in plan.mails[:2]]
    while [len(seen) for seen in watch.received()] != wanted and time.time() < end:
        time.sleep(min(1, plan.gap_s))
        watch.look(begin)


def check_health(watch, health):
    """LoadError: the third receiver was not what its name says. A tarpit leaves mails behind, a healthy one takes all."""
    if health == "tarpit" and watch.left() == 0:
        raise LoadError("the tarpit took all mails")
    if health == "healthy":
        try:
            wait_for(lambda: watch.left() == 0, BACKOFF_S, "the healthy receiver takes all mails", 0.1)
        except TimeoutError as late:
            raise LoadError(str(late)) from late


def results(plan, seen, begun, number, end):
    """A mail that was not there in the end has the least latency that it can have. `begun` and `end`: seconds since 1970."""
    waves, times = [[] for _ in begun], []
    for sender, when in seen.values():
        if not sender.endswith(f"@msa{number}.example"):
            raise LoadError(f"mx{number} got a mail of {sender}")
        wave = int(sender[1:sender.index("@")])
        waves[wave].append(when - begun[wave])
        times.append(when - begun[0])
    missing = [plan.mails[number - 1] - len(wave) for wave in waves]
    if min(missing) < 0:
        raise LoadError(f"mx{number} got more mails than were sent")
    late = [wave + [end - began] * lost for wave, began, lost in zip(waves, begun, missing)]
    everything = sorted(itertools.chain(*late))
    return {"mx": number, "missing": sum(missing), "mean_s": statistics.mean(everything), "p50_s": everything[len(everything) // 2],
            "p99_s": everything[len(everything) * 99 // 100], "wave_means_s": [round(statistics.mean(wave), 3) for wave in late],
            "received": [sum(t <= s for t in times) for s in range(int(end - begun[0]) + 1)]}


def turn_waits(name, through):
    """{receiver: milliseconds for which a transaction waited in smtpproxy for its turn, on average}"""
    if name != "smtpproxy":
        return {}
    rows = through.ask("/v1/destinations")["destinations"]
    return {n: row["mean_wait_ms"] for row in rows for n in NUMBERS if row["address"] == f"{RECEIVERS.format(n)}:25"}


def measure(bed, kind, name, health, plan):
    """`kind`: "course" or "pair"."""
    tarpit = ("--tarpit", f"all:{TARPIT_S}") if health == "tarpit" else ()
    receivers = Exim(bed, bed.receivers, "mx1", RECEIVERS.format(1)), mx(bed, 2), Sink(bed, RECEIVERS.format(3), *tarpit)
    senders = [msa(bed, n, to_mx(n)) for n in NUMBERS]
    which = {"kind": kind, "waves": plan.waves, "aggregator": name, "third": health}
    through = aggregator(bed, name, plan)
    with running(*receivers, *senders, through):
        watch = Watch(name, through, senders, receivers[:2])
        begin = time.time()
        begun = send_waves(bed, plan, watch, begin)
        rest(plan, watch, begin, plan.stuck_s if (name, health) == ("Postfix relay", "tarpit") else plan.rest_s)
        end, waits = time.time(), turn_waits(name, through)
        rows = [{**which, "wait_ms": waits.get(number), **results(plan, seen, begun, number, end)}
                for number, seen in enumerate(watch.received(), 1)]
        check_health(watch, health)
    return rows, [{**which, **row} for row in watch.queues]


def works(plans, rounds):
    """For each run: its round, and the arguments of measure(). The relay has one short run with a healthy receiver: what a tarpit does
    to it needs no interval."""
    course, pair = plans
    yield 0, "course", "smtpproxy", "tarpit", course
    yield 0, "course", "Postfix relay", "tarpit", course
    yield 0, "pair", "Postfix relay", "healthy", pair
    for number in range(rounds):
        for health in HEALTH if number % 2 == 0 else reversed(HEALTH):
            yield number, "pair", "smtpproxy", health, pair


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick."""
    plans = QUICK if options.quick else FULL
    where = facts("postfix", "exim4-daemon-light")
    runs, queues = [], []
    with Bed(pathlib.Path(options.folder)) as bed:
        bed.capture()
        options.course.plan(*((1, work[-1].waves) for work in works(plans, options.rounds)))
        for number, kind, name, health, plan in works(plans, options.rounds):
            rows, lengths = measure(bed, kind, name, health, plan)
            runs += [{"round": number, **row} for row in rows]
            queues += [{"round": number, **row} for row in lengths if kind == "course"]
            options.course.done(f"{kind}: {name}, third receiver: {health}")
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "plan": dataclasses.asdict(plans[0]),
              "pair_waves": plans[1].waves, "tarpit_s": TARPIT_S, "runs": runs, "queues": queues}
    save(options, report, markdown(report, options.name), figures(report, options.name))
