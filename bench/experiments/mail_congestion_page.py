"""The page of ./cssl bench mail congestion."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

TARGET = 1.10  # the mean latency with a tarpit beside, to that without
OURS, ITS = "smtpproxy", "Postfix relay"

INTRODUCTION = """\
Does a receiver that hardly takes mail delay the mail for other receivers? This is the experiment on congestion of T. Oda et al.,
"Quantitative Evaluation of Transparent SMTP Proxy in Email Sending Server Aggregation" (IOTS 2024), whose proxy is Warp.

Three senders (Postfix) send through one aggregator: msa1 to mx1 (Exim), msa2 to mx2 (Postfix), msa3 to mx3. Every {gap_s:g} s
they get {mails} mails at once, in long runs {waves} times, in short ones {pair_waves} times. mx3 is either healthy, or a **tarpit**: cssl-bench smtp-sink,
which sends a byte of each reply every {tarpit_s} s. The aggregator is one of:

- **smtpproxy**: without a queue, with its default limits;
- **Postfix relay**: it stores each mail and then delivers it. As in the paper, its scheduler looks at {active} messages at a time
  (`qmgr_message_active_limit`).

Sender, aggregator and receiver have a network namespace each. The kernel redirects connections to port 25 to the aggregator. All share
the cores of this machine. Queues of senders and receivers are in memory; that of the relay is on a disk.

*Latency* is the time from the begin of a mail's wave to the time at which the receiver took it: of Exim from its log, of Postfix from its
queue id. A mail that was not there {rest_s:g} s after the end of the last wave counts with the time until then, and as *missing*: then
means and percentiles are the least that they can be, and have a ">".
*wait*: for how long a transaction waited in smtpproxy for its turn at the receiver, on average.
"""

PAPER = """\
Figures of the paper, from machines of its own (60 waves, 600 s): with Warp the mean latency stayed near 1 s all the time, and the
receptions grew evenly. With Postfix as relay the mean latency grew from about 200 s on, and the receptions grew more slowly from about
400 s on. Warp is not packaged, so it did not run here."""

TARGET_NOTE = """\
*ratio*: the mean latency with a tarpit as third receiver, to that with a healthy one. Of smtpproxy, which has a target, in two short runs
one after the other, in turns; of the relay, in a long run with a tarpit and a short one without.
""" + ratios.NOTE


def _of(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def at_least(rows):
    """What stands before figures in which a mail that never came has the least time that it can have."""
    return "> " if any(row["missing"] for row in rows) else ""


def latency_table(runs):
    yield "| aggregator | receiver | third receiver | waves | runs | mean s | p50 s | p99 s | missing | wait ms |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in (OURS, ITS):
        for mx in (1, 2):
            for third, kind in (("healthy", "pair"), ("tarpit", "pair"), ("tarpit", "course")):
                rows = _of(runs, aggregator=name, mx=mx, third=third, kind=kind)
                if not rows:
                    continue
                least = at_least(rows)
                times = " | ".join(f"{least}{_median(rows, key):.2f}" for key in ("mean_s", "p50_s", "p99_s"))
                wait = f"{_median(rows, 'wait_ms'):.0f}" if name == OURS else ""
                yield f"| {name} | mx{mx} | {third} | {rows[0]['waves']} | {len(rows)} | {times} | {_median(rows, 'missing'):.0f} | {wait} |"


def quotients(runs, name, mx):
    """Of the relay one, of smtpproxy one for each pair."""
    kinds = {"healthy": "pair", "tarpit": "pair" if name == OURS else "course"}
    means = {third: [row["mean_s"] for row in sorted(_of(runs, aggregator=name, mx=mx, third=third, kind=kind), key=lambda r: r["round"])]
             for third, kind in kinds.items()}
    return [tarpit / healthy for healthy, tarpit in zip(means["healthy"], means["tarpit"])]


def ratio_table(runs):
    yield "| aggregator | receiver | ratio, median | interval | target | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in (OURS, ITS):
        for mx in (1, 2):
            found, least = quotients(runs, name, mx), at_least(_of(runs, aggregator=name, mx=mx, third="tarpit"))
            cells = f"**{least}{statistics.median(found):.2f}** | | | " if least else ratios.columns(found, TARGET if name == OURS else None)
            yield f"| {name} | mx{mx} | {cells} |"


def figures(report, name):
    """Of the long runs."""
    runs, queues = (_of(report[key], kind="course") for key in ("runs", "queues"))
    found, gap = {}, report["plan"]["gap_s"]
    for mx in (1, 2):
        rows = {system: _of(runs, aggregator=system, mx=mx)[0] for system in (OURS, ITS)}
        found[f"{name}-received-mx{mx}.svg"] = plot.lines(
            f"Received by mx{mx} beside a tarpit", "seconds", "mails", {s: list(enumerate(row["received"])) for s, row in rows.items()})
        found[f"{name}-latency-mx{mx}.svg"] = plot.lines(
            f"Mean latency of mails to mx{mx} beside a tarpit, by wave", "seconds", "seconds",
            {s: [(i * gap, mean) for i, mean in enumerate(row["wave_means_s"])] for s, row in rows.items()})
    for system, kinds in ((OURS, ("msa1", "msa2", "msa3", "waiting")), (ITS, ("incoming", "active", "deferred", "msa3"))):
        rows = _of(queues, aggregator=system)
        found[f"{name}-queues-{'proxy' if system == OURS else 'relay'}.svg"] = plot.lines(
            f"Queues beside a tarpit, {system}", "seconds", "mails", {kind: [(row["s"], row[kind]) for row in rows] for kind in kinds})
    return found


CAPTIONS = (
    ("received-mx1", "received by mx1"), ("received-mx2", "received by mx2"), ("latency-mx1", "latency of mails to mx1"),
    ("latency-mx2", "latency of mails to mx2"), ("queues-proxy", "queues of the senders, and transactions that wait in smtpproxy"),
    ("queues-relay", "queues of the relay, and of msa3"),
)


def markdown(report, name):
    runs, plan = report["runs"], report["plan"]
    mails = ", ".join(f"{count:,}" for count in plan["mails"])
    text = INTRODUCTION.format(**{**plan, "mails": mails}, tarpit_s=report["tarpit_s"], pair_waves=report["pair_waves"])
    lines = ["# Congestion: mail beside a tarpit", "", text, *machine_lines(report["machine"]), TERMS_OF_GATEWAYS,
             f"- rounds: {report['rounds']}", "", TARGET_NOTE, "", *ratio_table(runs), "", PAPER, "", "## Latencies", "",
             *latency_table(runs), "", "## Pictures", ""]
    lines += [f"![{caption}]({name}-{file}.svg)\n" for file, caption in CAPTIONS]
    return "\n".join(lines)
