"""./cssl bench mail resources: CPU, disk and memory of an aggregator. As in the paper on Warp, smaller by a factor: three
senders send bursts that grow tenfold, each to a receiver of its own. Several times with a hundredth of the paper's mails, so that ratios
have an interval, and once with a tenth."""

import pathlib
import time

from bench.experiments import mail_cost
from bench.experiments.load import same
from bench.experiments.mail_bed import NUMBERS, RECEIVERS, SENDERS, Bed
from bench.experiments.mail_hosts import Proxy, Sink, facts, msa, relay, running, send, sent, stop_all, to_mx
from bench.experiments.mail_resources_page import figures, markdown
from bench.experiments.report import save
from bench.experiments.waiting import wait_for

PAPER_BURSTS = (1000, 10000, 100000, 1000000)  # of each sender, 10 s between
FACTOR, LARGE_FACTOR = 100, 10
QUICK_FACTOR, QUICK_LARGE_FACTOR = 50000, 20000
GAP_S, QUICK_GAP_S = 10, 0.5
LONGEST_S = 1800
ABOUT = {"smtpproxy": 1300, "Postfix relay": 420}  # mails a second, on two cores
SYSTEMS = {"smtpproxy": lambda bed: Proxy(bed, stop_timeout="1s"), "Postfix relay": relay}


class Use:
    """The use of an aggregator since a moment, with a row for each look."""

    def __init__(self, host, folder):
        self._pid, self._folder = host.process.pid, folder
        self._begin, self._before = time.time(), self._now()
        self.rows = []

    def _now(self):
        """Of a disk that this machine tells nothing about there is nothing."""
        disk = mail_cost.disk_bytes(self._folder)
        return {"cpu_s": mail_cost.cpu_s(self._pid), "written": mail_cost.written_bytes(self._pid),
                "read": mail_cost.read_bytes(self._pid), **(dict(zip(("disk_read", "disk_written"), disk)) if disk else {})}

    def look(self):
        used = {key: value - self._before[key] for key, value in self._now().items()}
        self.rows.append({"s": round(time.time() - self._begin, 2), **used, "memory": mail_cost.memory_bytes(self._pid)})
        return self.rows[-1]

    def idle_since(self, cpu_s):
        """Did the aggregator do nothing since it had used so much?"""
        return self.look()["cpu_s"] - cpu_s < 0.005


def bursts(factor):
    return [max(1, count // factor) for count in PAPER_BURSTS]


def work(bed, use, counts, gap_s):
    """All bursts, each sent while the mails before may still be on their way."""
    sources = []
    try:
        for count in counts:
            begin = time.time()
            sources += [send(bed, SENDERS.format(n), count, "-s", min(count, 20), "-d", "-f", f"from@msa{n}.example", "-t",
                             f"to@mx{n}.example") for n in NUMBERS]
            while time.time() < begin + gap_s:
                time.sleep(min(1, gap_s))
                use.look()
        wait_for(lambda: use.look() and all(source.poll() is not None for source in sources), LONGEST_S, "all mails are sent", 1)
        for source in sources:
            sent(source)
    finally:
        stop_all(sources)


def measure(bed, name, factor, gap_s):
    counts = bursts(factor)
    sinks = [Sink(bed, RECEIVERS.format(n), "--mails", sum(counts)) for n in NUMBERS]
    through = SYSTEMS[name](bed)
    with running(*sinks, through, *(msa(bed, n, to_mx(n)) for n in NUMBERS)):
        use, begin = Use(through, bed.folder), time.time()
        work(bed, use, counts, gap_s)
        wait_for(lambda: use.look() and all(sink.process.poll() is not None for sink in sinks), LONGEST_S, "all mails are there", 0.5)
        seconds = time.time() - begin
        results = [sink.result(1) for sink in sinks]
        wait_for(lambda: use.idle_since(use.rows[-1]["cpu_s"]), 60, f"{name} is idle", 1)
        logs = through.log_bytes()
    for result in results:
        same(name, result["counts"], {"mails": sum(counts), "right": sum(counts), "duplicates": 0})
    mails = len(results) * sum(counts)
    last = use.rows[-1]
    return {"system": name, "factor": factor, "mails": mails, "seconds": seconds, "cpu_us": last["cpu_s"] / mails * 1e6, **{
        key: last.get(key) for key in ("written", "read", "disk_written", "disk_read")}, "logs": logs,
        "memory": max(row["memory"] for row in use.rows)}, use.rows


def works(factors, rounds):
    """For each run: its round, the system, the factor. The large size comes last, once."""
    small, large = factors
    for number in range(rounds):
        for name in SYSTEMS if number % 2 == 0 else reversed(SYSTEMS):
            yield number, name, small
    for name in SYSTEMS:
        yield 0, name, large


def about_seconds(name, factor, gap_s):
    return 20 + gap_s * 3 + 3 * bursts(factor)[-1] / ABOUT[name]


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    factors = (QUICK_FACTOR, QUICK_LARGE_FACTOR) if options.quick else (FACTOR, LARGE_FACTOR)
    gap_s = QUICK_GAP_S if options.quick else GAP_S
    where, runs, courses = facts("postfix"), [], []
    options.course.plan(*((1, about_seconds(name, factor, gap_s)) for _, name, factor in works(factors, options.rounds)))
    with Bed(pathlib.Path(options.folder)) as bed:
        bed.capture()
        for number, name, factor in works(factors, options.rounds):
            run, rows = measure(bed, name, factor, gap_s)
            runs.append({"round": number, **run})
            courses += [{"round": number, "system": name, "factor": factor, **row} for row in rows]
            options.course.done(f"1/{factor} of the paper's mails: {name}: {run['seconds']:.0f} s, {run['cpu_us']:.0f} us for a mail",
                                runs=runs, courses=courses)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "factors": list(factors), "gap_s": gap_s,
              "bursts": {str(factor): bursts(factor) for factor in factors}, "runs": runs, "courses": courses}
    save(options, report, lambda found: markdown(found, options.name), lambda found: figures(found, options.name))
