"""The page of ./cssl bench mail parallel."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS, ITS = "smtpproxy", "Postfix relay"

INTRODUCTION = """\
How many mails a second pass an aggregator, with 30 or 50 sessions at a time? The runs are those of the developers of PMailServer2
(their blog, 19 December 2009): each session connects, sends one mail of 21,377 or 603 bytes to one recipient, and quits.

cssl-bench smtp-source sends {mails:,} mails to cssl-bench smtp-sink. Between them is

- **direct**: nothing;
- **smtpproxy**: its limit of connections to a receiver is the number of sessions;
- **Postfix relay**: it stores each mail and then delivers it; its concurrency is the number of sessions.

Sender, aggregator and receiver have a network namespace each, and share the cores of this machine. The queue of the relay is on a disk.
*taken*: until the source has its last reply. *done*: until the last mail is at the receiver, each once and byte for byte.
""" + ratios.NOTE + "\n"

PAPER = """\
Figures of PMailServer2 as a sender's mail server, between two machines of its time with 100 Mbit/s:

| version | sessions | bytes | mails | s | mails a second |
| --- | --- | --- | --- | --- | --- |
| 1.81 Pro | 30 | 21,377 | 50,000 | 7,816 | 6.4 |
| 1.81b | 30 | 21,377 | 10,000 | 999 | 10.0 |
| 1.81b | 30 | 603 | 10,000 | 957 | 10.4 |
| 1.81b | 50 | 603 | 10,000 | 621 | 16.1 |
"""


def _of(runs, system, shape):
    return sorted((run for run in runs if (run["system"], run["sessions"], run["bytes"]) == (system, *shape)), key=lambda r: r["round"])


def _shapes(runs):
    return list(dict.fromkeys((run["sessions"], run["bytes"]) for run in runs))


def _rate(run):
    return run["mails"] / run["seconds"]


def rate_table(runs):
    yield "| sessions | bytes | system | taken s | done s | mails a second |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for shape in _shapes(runs):
        for system in ("direct", OURS, ITS):
            rows = _of(runs, system, shape)
            taken, done = (statistics.median(row[key] for row in rows) for key in ("taken_s", "seconds"))
            yield (f"| {shape[0]} | {shape[1]:,} | {system} | {taken:.2f} | {done:.2f} | "
                   f"**{statistics.median(map(_rate, rows)):,.0f}** |")


def ratio_table(runs):
    yield "| sessions | bytes | time of smtpproxy, to that of the relay | interval | target | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for shape in _shapes(runs):
        quotients = [a["seconds"] / b["seconds"] for a, b in zip(_of(runs, OURS, shape), _of(runs, ITS, shape))]
        yield f"| {shape[0]} | {shape[1]:,} | {ratios.columns(quotients)} |"


def figures(report, name):
    runs = report["runs"]
    rows = {f"{shape[0]} sessions, {shape[1]:,} bytes": {system: statistics.median(map(_rate, _of(runs, system, shape)))
                                                          for system in ("direct", OURS, ITS)} for shape in _shapes(runs)}
    return {f"{name}.svg": plot.bars("Mails a second", "mails a second", rows, lambda rate: f"{rate:,.0f}")}


def markdown(report, name):
    lines = ["# Mails a second through an aggregator", "", INTRODUCTION.format(**report), *machine_lines(report["machine"]),
             TERMS_OF_GATEWAYS, f"- rounds: {report['rounds']}", "", f"![mails a second]({name}.svg)", "", *rate_table(report["runs"]), "",
             *ratio_table(report["runs"]), "", PAPER]
    return "\n".join(lines)
