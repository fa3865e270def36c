"""The page of ./cssl bench mail resources."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS, ITS = "smtpproxy", "Postfix relay"
CPU, DISK = 1.00, 1.05  # to the relay's CPU; bytes on a disk, to those of the logs

INTRODUCTION = """\
What does an aggregator of mail use? This is the experiment on resources of T. Oda et al., "Quantitative Evaluation of Transparent
SMTP Proxy in Email Sending Server Aggregation" (IOTS 2024), whose proxy is Warp, smaller by a factor of {factor:,}.

Three senders (Postfix) each send {bursts} mails through one aggregator, each to a receiver of its own (cssl-bench smtp-sink). A burst
begins 10 s after the one before. The aggregator is **smtpproxy**, or **Postfix relay**, which stores each mail and
then delivers it; both have their default limits. Sender, aggregator and receiver have a network namespace each, and share the cores of
this machine. Queues of senders are in memory; the aggregator's files are on a disk.

*CPU* is of all processes of the aggregator, for each mail. *written*: bytes that they made the kernel write to the disk. *disk*: bytes
that the disk got meanwhile from this whole machine, the journal of its file system included. *logs*: bytes of the aggregator's logs;
that of smtpproxy includes its events, a line of JSON for each mail. *memory*: the most at a time; pages that processes share count once.
""" + ratios.NOTE + "\n"

PAPER = """\
Figures of the paper, from machines of its own, 3,333,000 mails: Warp was done in 158 minutes, Postfix as relay in 187. Warp used slightly
less CPU and as much memory, and wrote only its log to the disk; Postfix wrote its queue. Warp is not packaged, so it did not run here."""


def _of(runs, system):
    return sorted((run for run in runs if run["system"] == system), key=lambda run: run["round"])


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def _mib(rows, key):
    return f"{_median(rows, key) / (1 << 20):.1f}"


def use_table(runs):
    yield "| aggregator | mails | time s | CPU us | written MiB | disk MiB | logs MiB | memory MiB | duplicates |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for system in (OURS, ITS):
        rows = _of(runs, system)
        yield (f"| {system} | {_median(rows, 'mails'):,.0f} | {_median(rows, 'seconds'):.1f} | **{_median(rows, 'cpu_us'):.0f}** | "
               f"{_mib(rows, 'written')} | {_mib(rows, 'disk')} | {_mib(rows, 'logs')} | {_mib(rows, 'memory')} | "
               f"{_median(rows, 'duplicates'):.0f} |")


def target_table(runs):
    ours, its = _of(runs, OURS), _of(runs, ITS)
    yield "| smtpproxy | median | interval | target | |"
    yield "| --- | --- | --- | --- | --- |"
    yield f"| CPU, to that of the relay | {ratios.columns([a['cpu_us'] / b['cpu_us'] for a, b in zip(ours, its)], CPU)} |"
    yield f"| time, to that of the relay | {ratios.columns([a['seconds'] / b['seconds'] for a, b in zip(ours, its)])} |"
    yield f"| memory, to that of the relay | {ratios.columns([a['memory'] / b['memory'] for a, b in zip(ours, its)])} |"
    yield f"| written, to the size of its logs | {ratios.columns([a['written'] / a['logs'] for a in ours], DISK)} |"


PICTURES = {"cpu": ("CPU time", "seconds", "cpu_s", 1), "disk": ("written to the disk", "MiB", "written", 1 << 20),
            "memory": ("memory", "MiB", "memory", 1 << 20)}


def figures(report, name):
    """Of the first round."""
    found = {}
    for file, (title, unit, key, part) in PICTURES.items():
        series = {system: [(row["s"], row[key] / part) for row in report["courses"] if (row["system"], row["round"]) == (system, 0)]
                  for system in (OURS, ITS)}
        found[f"{name}-{file}.svg"] = plot.lines(f"Aggregator: {title}", "seconds", unit, series)
    return found


def markdown(report, name):
    counts = ", ".join(f"{count:,}" for count in report["bursts"])
    lines = ["# What an aggregator of mail uses", "", INTRODUCTION.format(factor=report["factor"], bursts=counts),
             *machine_lines(report["machine"]), TERMS_OF_GATEWAYS, f"- rounds: {report['rounds']}", "", *target_table(report["runs"]), "",
             *use_table(report["runs"]), "", PAPER, "", "## Pictures", ""]
    return "\n".join(lines + [f"![{title}]({name}-{file}.svg)\n" for file, (title, *_) in PICTURES.items()])
