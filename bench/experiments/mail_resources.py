"""./cssl bench mail resources: CPU, disk and memory of an aggregator. As in the paper on Warp, smaller by a factor: three
senders send bursts that grow tenfold, each to a receiver of its own."""

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
FACTOR, QUICK_FACTOR = 100, 50000
LONGEST_S = 1800
SYSTEMS = {"smtpproxy": lambda bed: Proxy(bed, stop_timeout="1s"), "Postfix relay": relay}


class Use:
    """The use of an aggregator since a moment, with a row for each look."""

    def __init__(self, host, folder):
        self._pid, self._folder = host.process.pid, folder
        self._begin, self._before = time.time(), self._now()
        self.rows = []

    def _now(self):
        return {"cpu_s": mail_cost.cpu_s(self._pid), "written": mail_cost.written_bytes(self._pid),
                "disk": mail_cost.disk_bytes(self._folder) or 0}

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


def measure(bed, name, factor):
    counts = bursts(factor)
    sinks = [Sink(bed, RECEIVERS.format(n), "--mails", sum(counts)) for n in NUMBERS]
    through = SYSTEMS[name](bed)
    with running(*sinks, through, *(msa(bed, n, to_mx(n)) for n in NUMBERS)):
        use, begin = Use(through, bed.folder), time.time()
        work(bed, use, counts, 0.5 if factor == QUICK_FACTOR else 10)
        wait_for(lambda: use.look() and all(sink.process.poll() is not None for sink in sinks), LONGEST_S, "all mails are there", 0.5)
        seconds = time.time() - begin
        results = [sink.result(1) for sink in sinks]
        wait_for(lambda: use.idle_since(use.rows[-1]["cpu_s"]), 60, f"{name} is idle", 1)
        logs = through.log_bytes()
    for result in results:
        same(name, result["counts"], {"mails": sum(counts), "right": sum(counts)})
    mails = len(results) * sum(counts)
    last = use.rows[-1]
    return {"system": name, "mails": mails, "seconds": seconds, "cpu_us": last["cpu_s"] / mails * 1e6, "written": last["written"],
            "disk": last["disk"], "logs": logs, "memory": max(row["memory"] for row in use.rows),
            "duplicates": sum(result["counts"]["duplicates"] for result in results)}, use.rows


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick."""
    factor = QUICK_FACTOR if options.quick else FACTOR
    where, runs, courses, names = facts("postfix"), [], [], list(SYSTEMS)
    with Bed(pathlib.Path(options.folder)) as bed:
        bed.capture()
        options.course.plan(options.rounds * len(names))
        for number in range(options.rounds):
            for name in names if number % 2 == 0 else reversed(names):
                run, rows = measure(bed, name, factor)
                runs.append({"round": number, **run})
                courses += [{"round": number, "system": name, **row} for row in rows]
                options.course.done(f"{name}: {run['cpu_us']:.0f} us for a mail")
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "factor": factor, "bursts": bursts(factor),
              "runs": runs, "courses": courses}
    save(options, report, markdown(report, options.name), figures(report, options.name))
