"""The page and the pictures of ./cssl bench mail_queue."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.load import RATE_LEAST
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS, MEMCACHED = "CSSL", "memcached"
LEAST_TIMES = {"Postfix on disk": 3, "Postfix in tmpfs": 1}  # the gateway's rate beside theirs
REPLY_MS = 14  # mean, less
RECOVERY_S, BYTES_EACH = 5.9, 2048

# Of the paper. Fig. 4: {bytes: (transactions/s, times those of memcached)}, None: the figure has it, and the text does not.
LINE = "bound by 1 Gbps", "the same"
PAPER_STORES = {410: ("200,000", "2"), 1024: ("100,000", "1.4"), 2048: (None, None), 4096: LINE, 10240: LINE, 20480: LINE}
# Fig. 5: (system, messages/s, mean ms of a reply). The last two are of an earlier experiment (2009).
PAPER_TIMES = 4.4
PAPER_GATEWAYS = [("the paper's gateway", "3,600", f"{REPLY_MS}"),
                  (f"the paper's conventional gateway (its disks are a RAID): {PAPER_TIMES} times fewer", "some 818", "some 70"),
                  ("Postfix, as the paper names it (2009)", "80", ""), ("sendmail, as the paper names it (2009)", "< 20", "")]
PAPER_PER_S, PAPER_CHANGES_PER_S = 3600, 11000  # messages, and transactions that its module makes at that rate
# Fig. 6: {block: (seconds, times those of 1,000 in a block)}.
PAPER_BLOCKS = {1: ("14 x 5.9", "14"), 1000: (f"{RECOVERY_S}", "1")}

INTRODUCTION = """\
A mail gateway that gives 250 when two Redis servers hold a sealed copy of a message, and delivers behind that (`smtpproxy` with
`deliver: queue`; one thread). Its system is that of Hitachi's paper of 2012 on a mail gateway for mobile operators, which keeps mails in a
replicated key-value store in memory; it was to take 1,000 messages/s, to reply within 100 ms, and to be back within seconds. Each section
has a figure of that paper, with the paper's values beside ours.

What differs in all of them: the paper's machines are two nodes with two 1 Gbps networks between them. Here all processes share this host:
loads, gateway, Redis servers, memcached, Postfix and sinks, over loopback. Our messages are sealed before they leave the gateway; the
paper's are not.

""" + ratios.NOTE + "\n"

FIGURE_4 = """\
One backup, and one connection to it. A transaction stores a message and deletes it again; at most {window:,} messages are not stored yet.
Ours is `cssl-bench queue --delete`: the queue itself, which also keeps and seals all messages, into one Redis server that executes a
function for each call. memcached gets as many values at a time, half of them in each write, from a load that made its requests before:
values are neither kept nor sealed, and keys are used again. memcached may work on 1,000 requests of its one connection at a time (`-R`; by
default 20, so that others have their turn)."""

FIGURE_5 = """\
Two backups, and two paths to each. The mails are 70 % of 1 KB and 30 % of 10 KB, of {sessions} sessions that stay connected; a closed loop.
A reply time is from the end of the content to its reply; *p99*: of that size whose replies come later. *messages/s* is of the time until
the last mail is accepted, *accepted and delivered* of that until the last one has left. Beside the gateway is Postfix as a relay, which is
not the paper's conventional gateway: that one is a program of its authors, too, and writes to a RAID. As the gateway, Postfix delivers 50
mails at a time; it may have 200 processes of a kind, and `in_flow_delay` is 0, so that it does not slow the load down. All else has its
defaults."""

BESIDE = """\
*Times*: the median of the ratios of pairs in the same round. The paper's gateway takes {times} times the messages of its conventional one, in
a fifth of the time. The targets here are our own."""

CHANGES = """\
Until these mails are accepted and delivered, a backup makes **{per_s:,.0f}** changes/s: stores, new states, and deletions; {each:.1f} for each mail.
(The paper's modules: {paper:,} transactions/s at 3,600 messages/s, which is {paper_each:.1f} for each.) Each transaction of Fig. 4 is two changes."""

OTHER_LOADS = """\
Reply times in open loops: at half of the rate above, and at that of the paper's gateway, in rounds in which the system took more than that.
A load of which less than {least:.0f} % was made is not reached. Figures are of the rounds in which it was; a round in which it was not asked
counts as one in which it was not reached. The target is the paper's mean reply time."""

FIGURE_6 = """\
A new process (`cssl-bench queue --read`) claims one Redis server with {mails:,} messages of 1 KB, reads them and sorts them into lines. The
time is from the claim until the queue accepts messages. A block is an answer to HSCAN with COUNT; Redis gives a few more than that. A
reading begins with smaller blocks (1, 8, 64 and 512 messages), so the mean can be below what was asked. The gateway reads blocks of 1,000;
no key of its file changes that."""

RECOVERY = """\
The gateway is killed with all mails in its queue, and started again. It has two backups: it reads the messages from one of them, and from
the other one their names. The target for reading is the paper's time of Fig. 6; that for memory is our own."""

TABLE_I = """\
What the paper's gateway shows in its table I, of the gateway above before it was killed. `csslctl mail queue` shows the same. A path is a
connection; which one is active is not fixed. Our backups hold all destinations, so paths and *in sync* are of the backup. *Changes*
are the paper's transactions: what the backup has stored, replaced or deleted for that destination. Here these are all mails, and the order
that stops their delivery."""


def _of(runs, **wanted):
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def _median(runs, key):
    return statistics.median(run[key] for run in runs)


def _names(runs):
    return list(dict.fromkeys(run["system"] for run in runs))


def _spread(values, form):
    """Two cells: median, and from the least to the most."""
    return f"**{form.format(statistics.median(values))}** | {form.format(min(values))}-{form.format(max(values))}"


def _times(ours, theirs, key):
    return [a[key] / b[key] for a, b in zip(ours, theirs)]


def _times_cells(values):
    """Two cells: median of ratios, interval."""
    low, high = ratios.interval(values)
    return f"**{statistics.median(values):.2f}** | {low:.2f}-{high:.2f}"


def _kilobytes(size):
    return f"{size / 1024:.2g}"


def store_table(runs):
    yield ("| KB | transactions/s, median | least-most | memcached, median | least-most | times memcached's | interval | the paper's | times "
           "memcached's there |")
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for size in dict.fromkeys(run["bytes"] for run in runs):
        ours, theirs = (_of(runs, bytes=size, system=name) for name in (OURS, MEMCACHED))
        cells = " | ".join(_spread([run["per_s"] for run in rows], "{:,.0f}") for rows in (ours, theirs))
        paper = " | ".join(text or "only in the figure" for text in PAPER_STORES[size])
        yield f"| {_kilobytes(size)} | {cells} | {_times_cells(_times(ours, theirs, 'per_s'))} | {paper} |"


def gateway_table(rates, replies):
    yield "| system | messages/s, median | least-most | mean reply time ms | least-most | p99 ms | accepted and delivered per s |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name in _names(rates):
        rows, full = _of(rates, system=name), _of(replies, system=name, load="full")
        yield (f"| {name} | {_spread([run['accepted_per_s'] for run in rows], '{:,.0f}')} | {_spread([run['mean_ms'] for run in full], '{:.2f}')} | "
               f"{_median(full, 'p99_ms'):.2f} | {_median(rows, 'delivered_per_s'):,.0f} |")
    for name, per_s, mean_ms in PAPER_GATEWAYS:
        yield f"| {name} | {per_s} | | {mean_ms} | | | |"


def _changes_each(rates):
    return statistics.median(run["changes_per_s"] / run["delivered_per_s"] for run in _of(rates, system=OURS))


def _at_least(values, least):
    """Two cells: target, verdict."""
    return f">= {least} | {ratios.verdict([1 / value for value in values], 1 / least)}"


def beside_table(rates, replies):
    yield "| beside | times its messages/s | interval | target | | times its mean reply time | interval |"
    yield "| --- | ---: | ---: | ---: | --- | ---: | ---: |"
    for name in _names(rates):
        if name == OURS:
            continue
        rate = _times(_of(rates, system=OURS), _of(rates, system=name), "accepted_per_s")
        reply = _times(_of(replies, system=OURS, load="full"), _of(replies, system=name, load="full"), "mean_ms")
        yield f"| {name} | {_times_cells(rate)} | {_at_least(rate, LEAST_TIMES[name])} | {_times_cells(reply)} |"


def _reply_cells(name, rows, rounds):
    """Six cells. A reply time at a load that was not there is none."""
    reached = [run for run in rows if run["is_reached"]]
    if not reached:
        return f"{_median(rows, 'per_s'):,.0f} | not reached | | | | "
    means = [run["mean_ms"] for run in reached]
    is_always = len(reached) == rounds
    said = ratios.verdict(means, REPLY_MS) if is_always else f"reached in {len(reached)} of {rounds} rounds"
    target = f"< {REPLY_MS} | {said}" if name == OURS else f"| {'' if is_always else said}"
    return f"{_median(reached, 'per_s'):,.0f} | {_spread(means, '{:.2f}')} | {_median(reached, 'p99_ms'):.2f} | {target}"


def reply_table(runs):
    yield "| system | load | asked per s | made per s | mean ms | least-most | p99 ms | target | |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for name in _names(runs):
        loads = {load: _of(runs, system=name, load=load) for load in ("half", "the paper's")}
        rounds = max(map(len, loads.values()))  # half is asked in each
        for load, rows in loads.items():
            if rows:
                yield f"| {name} | {load} | {_median(rows, 'asked_per_s'):,.0f} | {_reply_cells(name, rows, rounds)} |"


def block_table(runs):
    yield ("| messages in a block, asked | in a block, mean | read back in s, median | least-most | times the time of 1,000 | interval | the "
           "paper's s | times there |")
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for block in sorted({run["block"] for run in runs}):
        rows, largest = (sorted(_of(runs, block=n), key=lambda run: run["round"]) for n in (block, 1000))
        mean = statistics.median(run["mails"] / run["blocks"] for run in rows)
        paper = " | ".join(PAPER_BLOCKS.get(block, ("only in the figure",) * 2))
        yield (f"| {block:,} | {mean:,.1f} | {_spread([run['seconds'] for run in rows], '{:.2f}')} | "
               f"{_times_cells(_times(rows, largest, 'seconds'))} | {paper} |")


def recovery_table(runs):
    yield "| mails of 1 KB | | median | least-most | target | |"
    yield "| ---: | --- | ---: | ---: | ---: | --- |"
    for key, what, most, form in (("read_s", "read back, s", RECOVERY_S, "{:.2f}"),
                                  ("open_s", "from the start of the process to an open port, s", None, "{:.2f}"),
                                  ("bytes_each", "resident bytes of the gateway for each", BYTES_EACH, "{:,.0f}")):
        values = [run[key] for run in runs]
        target = f"<= {most:,} | {ratios.verdict(values, most)}" if most else "| "
        yield f"| {runs[0]['mails']:,} | {what} | {_spread(values, form)} | {target} |"


def copies_table(rows):
    yield "| destination | backup | path 1 | path 2 | in sync | changes | unanswered |"
    yield "| --- | ---: | --- | --- | --- | ---: | ---: |"
    for row in rows:
        yield (f"| {row['destination']} | {row['backup']} | {row['paths'][0]} | {row['paths'][1]} | {'yes' if row['in_sync'] else 'no'} | "
               f"{row['answered']:,} | {row['unanswered']:,} |")


def _picture(name, number, what):
    return f"![{what}]({_file(name, number)})"


def _file(name, number):
    return f"{name}-figure-{number}.svg"


def figures(report, name):
    """{file name: SVG text}."""
    stored = report["stores"]
    sizes = list(dict.fromkeys(run["bytes"] for run in stored))
    lines = {system: [(at, _median(_of(stored, system=system, bytes=size), "per_s")) for at, size in enumerate(sizes)]
             for system in (OURS, MEMCACHED)}
    found = {_file(name, "4"): plot.lines("Store and delete (the paper's figure 4)", "KB", "transactions/s", lines,
                                          x_names=[_kilobytes(size) for size in sizes])}
    systems = _names(report["rates"])
    rate = {system: {"messages/s": _median(_of(report["rates"], system=system), "accepted_per_s")} for system in systems}
    reply = {system: {"mean reply time": _median(_of(report["replies"], system=system, load="full"), "mean_ms")} for system in systems}
    found[_file(name, "5-rate")] = plot.bars("Throughput (the paper's figure 5)", "messages/s", rate, "{:,.0f}".format)
    found[_file(name, "5-reply")] = plot.bars("Mean reply time at that rate (the paper's figure 5)", "ms", reply, "{:.2f}".format)
    blocks = {f"{block:,} in a block": {"read back": _median(_of(report["blocks"], block=block), "seconds")}
              for block in sorted({run["block"] for run in report["blocks"]})}
    return found | {_file(name, "6"): plot.bars("Recovery (the paper's figure 6)", "seconds", blocks, "{:.2f}".format)}


def markdown(report, name="mail_queue"):
    rates, replies = report["rates"], report["replies"]
    lines = ["# A mail gateway with a queue", "", INTRODUCTION,
             "## Fig. 4: the queue beside memcached", "", FIGURE_4.format(window=report["window"]), "", *store_table(report["stores"]), "",
             _picture(name, "4", "transactions/s by size"), "",
             "## Fig. 5: the gateway beside Postfix as a relay", "", FIGURE_5.format(sessions=report["sessions"]), "",
             *gateway_table(rates, replies), "", _picture(name, "5-rate", "messages/s"), "", _picture(name, "5-reply", "mean reply times"), "",
             BESIDE.format(times=PAPER_TIMES), "", *beside_table(rates, replies), "",
             CHANGES.format(per_s=_median(_of(rates, system=OURS), "changes_per_s"), each=_changes_each(rates), paper=PAPER_CHANGES_PER_S,
                            paper_each=PAPER_CHANGES_PER_S / PAPER_PER_S), "",
             OTHER_LOADS.format(least=100 * RATE_LEAST), "", *reply_table(replies), "",
             "## Fig. 6: recovery by the size of blocks", "", FIGURE_6.format(mails=report["blocks"][0]["mails"]), "",
             *block_table(report["blocks"]), "", _picture(name, "6", "seconds by messages in a block"), "",
             "### The gateway as a whole, and its memory", "", RECOVERY, "", *recovery_table(report["recoveries"]), "",
             "## Table I: the copies", "", TABLE_I, "", *copies_table(report["copies"]), "",
             "## Machine", "", *machine_lines(report["machine"], "nginx"), TERMS_OF_GATEWAYS, ""]
    return "\n".join(lines)
