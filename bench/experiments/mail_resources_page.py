"""The page of ./cssl bench mail resources."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS, ITS = "smtpproxy", "Postfix relay"
CPU, DISK = 1.00, 1.05  # to the relay's CPU; bytes on a disk, to those of the logs
PAPER_MAILS = 3333000
PAPER_MINUTES = {"Warp": 158, ITS: 187}

INTRODUCTION = """\
What does an aggregator of mail use? This is the experiment on resources of T. Oda et al., "Quantitative Evaluation of Transparent
SMTP Proxy in Email Sending Server Aggregation" (IOTS 2024), whose proxy is Warp.

Three senders (Postfix) each send bursts of mails through one aggregator, each to a receiver of its own (cssl-bench smtp-sink): {small}
mails, which is a {small_factor}th of the paper's, {rounds} times; and once {large}, a {large_factor}th of the paper's. A burst begins {gap_s:g} s after the
one before. The aggregator is **smtpproxy**, or **Postfix relay**, which stores each mail and then delivers it; both have their default
limits, as in the paper. Sender, aggregator and receiver have a network namespace each, and share the cores of this machine. Queues of
senders are in memory; the aggregator's files are on a disk. Each mail came, once and byte for byte.

*CPU* is of all processes of the aggregator, for each mail. *written*, *read*: bytes that they made the kernel write to the disk, and read
from it: what was still in memory was not read. *disk*: the same of the disk, of this whole machine, the journal of its file system
included. *logs*: bytes of the aggregator's logs; that of smtpproxy includes its events, a line of JSON for each mail. *memory*: the most
at a time; pages that processes share count once. *time*: from the first burst to the last mail at its receiver, looked at twice a second;
the last burst begins {last_s:g} s after the first, with any aggregator.
""" + ratios.NOTE + "{few}\n"

PAPER = """\
Figures of the paper, from machines of its own, {mails:,} mails: Warp was done in {Warp} minutes ({warp_rate:.0f} mails a second), Postfix
as relay in {relay} ({relay_rate:.0f} a second), so Warp took {ratio:.2f} times its time. Warp used slightly less CPU and about as much memory,
and wrote only its log to the disk; Postfix wrote and read its queue heavily. Warp is not packaged, so it did not run here."""


def _of(runs, system, factor):
    return sorted((run for run in runs if (run["system"], run["factor"]) == (system, factor)), key=lambda run: run["round"])


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def _mib(rows, key):
    return "unknown" if rows[0][key] is None else f"{_median(rows, key) / (1 << 20):.1f}"


def use_table(runs, factors):
    yield ("| aggregator | size | runs | mails | time s | mails/s | CPU us | written MiB | read MiB | disk written MiB | disk read MiB | "
           "logs MiB | memory MiB |")
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for factor in factors:
        for system in (OURS, ITS):
            rows = _of(runs, system, factor)
            sizes = " | ".join(_mib(rows, key) for key in ("written", "read", "disk_written", "disk_read", "logs", "memory"))
            rate = statistics.median(row["mails"] / row["seconds"] for row in rows)
            yield (f"| {system} | 1/{factor:,} | {len(rows)} | {_median(rows, 'mails'):,.0f} | {_median(rows, 'seconds'):.1f} | {rate:,.0f} | "
                   f"**{_median(rows, 'cpu_us'):.0f}** | {sizes} |")


def target_table(runs, factors):
    yield "| smtpproxy | size | median | interval | target | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for factor in factors:
        ours, its = _of(runs, OURS, factor), _of(runs, ITS, factor)
        for what, key, target in (("CPU", "cpu_us", CPU), ("time", "seconds", None), ("memory", "memory", None)):
            yield f"| {what}, to that of the relay | 1/{factor:,} | {ratios.columns([a[key] / b[key] for a, b in zip(ours, its)], target)} |"
        yield f"| written, to the size of its logs | 1/{factor:,} | {ratios.columns([a['written'] / a['logs'] for a in ours], DISK)} |"


PICTURES = {"cpu": ("CPU time", "seconds", {"": "cpu_s"}, 1), "memory": ("memory", "MiB", {"": "memory"}, 1 << 20),
            "disk": ("reads and writes", "MiB", {" written": "written", " read": "read"}, 1 << 20)}


def figures(report, name):
    """Of the largest size."""
    found, large = {}, report["factors"][-1]
    for file, (title, unit, keys, part) in PICTURES.items():
        series = {system.replace("Postfix ", "") + end: [(row["s"], row[key] / part) for row in report["courses"]
                                                         if (row["system"], row["factor"]) == (system, large)]
                  for system in (OURS, ITS) for end, key in keys.items()}
        found[f"{name}-{file}.svg"] = plot.lines(f"Aggregator: {title}, 1/{large:,} of the paper's mails", "seconds", unit, series)
    return found


def _counts(report, factor):
    return ", ".join(f"{count:,}" for count in report["bursts"][str(factor)])


def markdown(report, name):
    small, large = report["factors"]
    text = INTRODUCTION.format(small=_counts(report, small), small_factor=f"{small:,}", rounds=report["rounds"], gap_s=report["gap_s"],
                               large=_counts(report, large), large_factor=f"{large:,}", few=ratios.of_few(report["rounds"]),
                               last_s=report["gap_s"] * (len(report["bursts"][str(large)]) - 1))
    warp, relay = PAPER_MINUTES["Warp"], PAPER_MINUTES[ITS]
    paper = PAPER.format(mails=PAPER_MAILS, Warp=warp, relay=relay, warp_rate=PAPER_MAILS / warp / 60,
                         relay_rate=PAPER_MAILS / relay / 60, ratio=warp / relay)
    lines = ["# What an aggregator of mail uses", "", text, *machine_lines(report["machine"]), TERMS_OF_GATEWAYS,
             f"- rounds: {report['rounds']}", "", *target_table(report["runs"], report["factors"]), "",
             *use_table(report["runs"], report["factors"]), "", paper, "", "## Pictures", ""]
    return "\n".join(lines + [f"![{title}]({name}-{file}.svg)\n" for file, (title, *_) in PICTURES.items()])
