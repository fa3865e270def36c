"""The page of ./cssl bench mail_queue."""

import statistics

from bench.experiments import ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS = "CSSL"
LEAST_TIMES = {"Postfix on disk": 3, "Postfix in tmpfs": 1}  # the gateway's rate beside theirs
REPLY_MS = 14  # mean, less
RECOVERY_S, BYTES_EACH = 5.9, 2048

INTRODUCTION = """\
A mail gateway that gives 250 when two Redis servers hold a sealed copy of a message, and delivers behind that (`smtpproxy` with
`deliver: queue`; one thread). Its system is that of Hitachi's paper of 2012 on a mail gateway for mobile operators, which keeps mails in a
replicated key-value store in memory. That gateway took 3,600 messages/s at a mean reply time of 14 ms, and read 500,000 messages of 1 KB
back in 5.9 s; one that writes to disks took 4.4 times fewer messages. The paper also names an earlier experiment (2009), in which Postfix
took 80 messages/s.

All processes share this host: sources, gateway, Redis servers, Postfix and sinks. The mails are 70 % of 1 KB and 30 % of 10 KB, as in the
paper, of {sessions} sessions that stay connected.

""" + ratios.NOTE + "\n"

REPLY_NOTE = """\
From the end of the content to its reply. *full*: the closed loop above, as fast as it goes. *half*: an open loop at half of that rate.

The page of 26 November 2026 had other figures under "reply time at half load": 0.30 ms for CSSL, 1.90 ms for Postfix on disk and 0.32 ms for
Postfix in tmpfs. They were wrong: each of those runs sent two mails, and no load."""

# Of that page, whose file has no replies any more:
REPLIES_GONE = "Not measured again since. They were taken out of `mail_queue.json`, too."
ALONE_NOTE = "These runs are of `queue_driver`, a program of builds with tests, in whose place `cssl-bench queue` is now."

PAPER_REPLY = "| the gateway of the paper | full | | 3,600 | **14** | | | | |"


def _of(runs, **wanted):
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def _median(runs, key):
    return statistics.median(run[key] for run in runs)


def _names(runs):
    return list(dict.fromkeys(run["system"] for run in runs))


def _verdict(is_met):
    return "met" if is_met else "missed"


def alone_table(runs):
    yield "| bytes | window | stored per s, median | least-most |"
    yield "| ---: | ---: | ---: | ---: |"
    for size, window in dict.fromkeys((run["bytes"], run["window"]) for run in runs):
        rows = _of(runs, bytes=size, window=window)
        rates = [run["per_s"] for run in rows]
        yield f"| {size:,} | {window:,} | **{statistics.median(rates):,.0f}** | {min(rates):,.0f}-{max(rates):,.0f} |"


def _at_least(values, least):
    """Four cells: median of ratios, interval, target, verdict."""
    low, high = ratios.interval(values)
    said = ratios.verdict([1 / value for value in values], 1 / least)
    return f"**{statistics.median(values):.2f}** times | {low:.2f}-{high:.2f} | >= {least} | {said}"


def rate_table(runs):
    yield "| system | accepted per s, median | least-most | accepted and delivered per s | ours beside it | interval | target | |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for name in _names(runs):
        rows = _of(runs, system=name)
        rates = [run["accepted_per_s"] for run in rows]
        times = [a["accepted_per_s"] / b["accepted_per_s"] for a, b in zip(_of(runs, system=OURS), rows)]
        target = _at_least(times, LEAST_TIMES[name]) if name in LEAST_TIMES else "| | | "
        yield (f"| {name} | **{statistics.median(rates):,.0f}** | {min(rates):,.0f}-{max(rates):,.0f} | {_median(rows, 'delivered_per_s'):,.0f} | "
               f"{target} |")


def _reply_cells(name, rows):
    """Five cells. A reply time at a load that was not there is none."""
    if not all(run["is_reached"] for run in rows):
        return "not reached | | | | "
    means = [run["mean_ms"] for run in rows]
    target = f"< {REPLY_MS} | {ratios.verdict(means, REPLY_MS)}" if name == OURS else "| "
    return f"**{statistics.median(means):.2f}** | {min(means):.2f}-{max(means):.2f} | {_median(rows, 'p99_ms'):.2f} | {target}"


def reply_table(runs):
    yield "| system | load | asked per s | made per s | mean ms | least-most | p99 ms | target | |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for name in _names(runs):
        for load in ("half", "full"):
            rows = _of(runs, system=name, load=load)
            asked = f"{_median(rows, 'asked_per_s'):,.0f}" if load == "half" else ""
            yield f"| {name} | {load} | {asked} | {_median(rows, 'per_s'):,.0f} | {_reply_cells(name, rows)} |"
    yield PAPER_REPLY


def recovery_table(runs):
    yield "| mails of 1 KB | | median | least-most | target | |"
    yield "| ---: | --- | ---: | ---: | ---: | --- |"
    for key, what, most, form in (("read_s", "read back, s", RECOVERY_S, "{:.2f}"),
                                  ("open_s", "from the start of the process to an open port, s", None, "{:.2f}"),
                                  ("bytes_each", "resident bytes of the gateway for each", BYTES_EACH, "{:,.0f}")):
        values = [run[key] for run in runs]
        middle = statistics.median(values)
        target = f"<= {most:,} | {_verdict(middle <= most)}" if most else "| "
        yield (f"| {runs[0]['mails']:,} | {what} | **{form.format(middle)}** | {form.format(min(values))}-{form.format(max(values))} | "
               f"{target} |")


def markdown(report):
    lines = ["# A mail gateway with a queue", "", INTRODUCTION.format(sessions=report["sessions"])]
    lines += ["## The queue alone", "", "Messages stored in both Redis servers, so many at a time without an answer (*window*).", "",
              *alone_table(report["alone"]), "", *([] if report["replies"] else [ALONE_NOTE, ""]),
              "## The gateway beside Postfix as a relay", "",
              "Closed loop. *Ours beside it*: the median of the ratios of pairs in the same round.", "", *rate_table(report["rates"]), "",
              "### Reply time at half and at full rate", "", REPLY_NOTE, "",
              *(reply_table(report["replies"]) if report["replies"] else [REPLIES_GONE]), "",
              "## Recovery and memory", "", "The gateway is killed with all mails in its queue, and started again.", "",
              *recovery_table(report["recoveries"]), "", "## Machine", "", *machine_lines(report["machine"]), TERMS_OF_GATEWAYS, ""]
    return "\n".join(lines)
