"""The page of ./cssl bench mail parallel."""

import statistics

from bench.experiments import plot
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS, ITS = "smtpproxy", ("Postfix on disk", "Postfix in tmpfs")
HOUR, DAY = 3600, 86400

# Of the paper: version, deliveries at a time, bytes of a mail, mails, seconds.
PAPER = (("1.81 Pro", 30, 21377, 50000, 7816), ("1.81b", 30, 21377, 10000, 999), ("1.81b", 30, 603, 10000, 957), ("1.81b", 50, 603, 10000, 621))

INTRODUCTION = """\
How many mails a second does a mail server deliver, 30 or 50 at a time? The experiment is that of the developers of PMailServer2 (their
blog, 19 December 2009). A sender on MTA1 makes one session after another: each connects, sends one mail of 21,377 or 603 bytes (here to
2 %) to one recipient, and quits. The mail server of MTA1 puts the mails in a queue and delivers them to MTA2 over 100BASE. Here it is

- **smtpproxy** with `deliver: queue`, whose queue is in two Redis servers; the deliveries are `queue.deliveries` and
  `limits.connections_per_destination`. The sender begins each session with a PROXY header, by which smtpproxy takes its mail;
- **Postfix on disk**, **Postfix in tmpfs**: with its queue there; the deliveries are `default_destination_concurrency_limit`, and
  `in_flow_delay` is 0, so that it does not slow the sender down.

MTA1 (sender, server, Redis) and MTA2 (cssl-bench smtp-sink) are network namespaces of one machine and share its cores. The cable between
them is as slow as 100BASE, {wire_mbit} Mbit/s in each direction, by the kernel's token bucket.

The paper has one receiver, PMailServer2 on another machine; how long that took for a mail it does not say. If all deliveries of 1.81b
were always under way, each took some 3 s (30 at a time, 10.4/s; 50, 16.1/s). With so slow a receiver their number is what counts, with a
fast one it is not, so there are two receivers here, in our own terms:

- **fast**: MTA2 replies at once;
- **slow**: MTA2 replies to the end of each mail after {slow_s} s, so that at most the number of deliveries / {slow_s} s can pass.

*taken*: until the sender has its last reply. *done*: until the last mail is delivered, each once and byte for byte, and gone from the queue;
the rates are of that. *at a time*: the most connections that MTA2 had open at once (Postfix keeps some behind their deliveries). What
limits smtpproxy: with the slow receiver the number of deliveries; with the fast one and mails of 603 bytes the serial sender, as *done*
is hardly after *taken*; with the fast one and 21,377 bytes the cable, on which the mails alone, without what SMTP and TCP add, take
{wire_used} of its {wire_mbit} Mbit/s. *CPU*: of MTA1's server for each mail, and of both Redis servers, without sender and MTA2.
Each cell is the median of the rounds; the slow receiver and the 50,000 mails have one.
"""

TERMS = """\
What differs from the paper: two machines of 2009 (Core 2 Quad Q8400 with Windows XP, Core 2 Duo E7300) are two cores of one here; MTA2 was
PMailServer2 as well; its queue was on disk, as we take it, ours is in two memories and Postfix's is on disk or in tmpfs. The paper has CPU
in words only: the second version used less.
"""


def _of(runs, *row):
    """`row`: system, receiver, deliveries, bytes, mails."""
    keys = ("system", "receiver", "deliveries", "bytes", "mails")
    return sorted((run for run in runs if tuple(run[key] for key in keys) == row), key=lambda run: run["round"])


def shapes(runs):
    return list(dict.fromkeys((run["receiver"], run["deliveries"], run["bytes"], run["mails"]) for run in runs))


def rate(runs):
    """Mails a second: the median of the rounds."""
    return statistics.median(run["mails"] / run["seconds"] for run in runs)


def _per(each_s, seconds):
    return f"{each_s * seconds:,.0f}"


def _cpu_us(runs, kind):
    return statistics.median(run[f"{kind}_cpu_s"] / run["mails"] * 1e6 for run in runs)


def _row(system, shape, rows):
    receiver, deliveries, length, mails = shape
    each_s = rate(rows)
    middle = {key: statistics.median(row[key] for row in rows) for key in ("taken_s", "seconds", "most_open")}
    redis = f"{_cpu_us(rows, 'redis'):.0f}" if system == OURS else ""
    return (f"| {receiver} | {deliveries} | {length:,} | {mails:,} | {system} | {middle['taken_s']:.1f} | {middle['seconds']:.1f} | "
            f"**{each_s:,.1f}** | {_per(each_s, HOUR)} | {_per(each_s, DAY)} | {middle['most_open']:.0f} | {_cpu_us(rows, 'server'):.0f} | {redis} |")


def rate_table(runs):
    yield ("| receiver | deliveries | bytes | mails | system | taken s | done s | per second | per hour | per day | at a time | CPU us | "
           "of Redis us |")
    yield "| --- |" + " ---: |" * 3 + " --- |" + " ---: |" * 8
    for shape in shapes(runs):
        for system in (OURS, *ITS):
            if rows := _of(runs, system, *shape):
                yield _row(system, shape, rows)


def paper_table():
    yield "| version | deliveries | bytes | mails | done s | per second | per hour | per day |"
    yield "| --- |" + " ---: |" * 7
    for version, deliveries, length, mails, seconds in PAPER:
        each_s = mails / seconds
        yield (f"| {version} | {deliveries} | {length:,} | {mails:,} | {seconds:,} | {each_s:.1f} | {int(each_s * HOUR):,} | "
               f"{int(each_s * DAY):,} |")


def ratio_table(runs):
    yield "| receiver | deliveries | bytes | mails | beside | time of smtpproxy, to its | least-most |"
    yield "| --- |" + " ---: |" * 3 + " --- | ---: | --- |"
    for shape in shapes(runs):
        for system in ITS:
            pairs = [a["seconds"] / b["seconds"] for a, b in zip(_of(runs, OURS, *shape), _of(runs, system, *shape))]
            if pairs:
                receiver, deliveries, length, mails = shape
                spread = f"{min(pairs):.2f}-{max(pairs):.2f}" if len(pairs) > 1 else "one round"
                yield f"| {receiver} | {deliveries} | {length:,} | {mails:,} | {system} | **{statistics.median(pairs):.2f}** | {spread} |"


def figures(report, name):
    runs = report["runs"]
    rows = {f"{receiver}: {deliveries} x {length:,} B, {mails:,}":
            {system: rate(rows) if (rows := _of(runs, system, receiver, deliveries, length, mails)) else None for system in (OURS, *ITS)}
            for receiver, deliveries, length, mails in shapes(runs)}
    return {f"{name}.svg": plot.bars("Mails a second through the queue of MTA1", "mails a second", rows, lambda each_s: f"{each_s:,.0f}")}


def _wire_used(runs):
    """Mbit/s of the longest mails of smtpproxy to the fast receiver, of each number of them."""
    longest = max(run["bytes"] for run in runs)
    found = [_of(runs, OURS, *shape) for shape in shapes(runs) if (shape[0], shape[2]) == ("fast", longest)]
    return " and ".join(f"{rate(rows) * longest * 8 / 1e6:.1f}" for rows in found if rows)


def markdown(report, name):
    runs = report["runs"]
    lines = ["# Mails a second through a queue", "", INTRODUCTION.format(**report, wire_used=_wire_used(runs)), *machine_lines(report["machine"]),
             TERMS_OF_GATEWAYS, f"- rounds: {report['rounds']}", "", f"![mails a second]({name}.svg)", "", *rate_table(runs), "",
             "## Beside Postfix", "", "Medians of the ratios of the same rounds.", "", *ratio_table(runs), "",
             "## The paper", "", *paper_table(), "", TERMS]
    return "\n".join(lines)
