"""The page of ./cssl bench mail_queue."""

import statistics

from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS = "CSSL"
DISK_TIMES, MEMORY_TIMES = 3, 1  # the gateway's rate beside Postfix's, at least
REPLY_MS = 14                    # mean, at half load, less
RECOVERY_S, BYTES_EACH = 5.9, 2048

INTRODUCTION = """\
A mail gateway that gives 250 when two Redis servers hold a sealed copy of a message, and delivers behind that (`smtpproxy` with
`deliver: queue`; one thread). The paper whose system it is measured 3,600 messages/s at a mean reply time of 14 ms, 80 messages/s of
Postfix on the same disks, and 500,000 messages read back in 5.9 s, on its machines of 2014.

All processes share this host: sources, gateway, Redis servers, Postfix and sinks. The mails are 70 % of 1 KB and 30 % of 10 KB, of {sessions}
sessions that stay connected.
"""


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


def rate_table(runs):
    yield "| system | accepted per s, median | least-most | accepted and delivered per s | ours beside it | target | |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for name in _names(runs):
        rows = _of(runs, system=name)
        rates = [run["accepted_per_s"] for run in rows]
        times = statistics.median(a["accepted_per_s"] / b["accepted_per_s"] for a, b in zip(_of(runs, system=OURS), rows))
        least = {"Postfix on disk": DISK_TIMES, "Postfix in tmpfs": MEMORY_TIMES}.get(name)
        target = f"{times:.2f} times | >= {least} | {_verdict(times >= least)}" if least else "| | "
        yield (f"| {name} | **{statistics.median(rates):,.0f}** | {min(rates):,.0f}-{max(rates):,.0f} | {_median(rows, 'delivered_per_s'):,.0f} | "
               f"{target} |")


def reply_table(runs):
    yield "| system | load per s | mean ms | p99 ms | target | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for name in _names(runs):
        rows = _of(runs, system=name)
        mean = _median(rows, "mean_ms")
        target = f"< {REPLY_MS} | {_verdict(mean < REPLY_MS)}" if name == OURS else "| "
        yield f"| {name} | {_median(rows, 'rate'):,.0f} | **{mean:.2f}** | {_median(rows, 'p99_ms'):.2f} | {target} |"


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
    if report["quick"]:
        lines += ["**A quick run: the figures mean nothing.**", ""]
    lines += ["## D1: the queue alone", "", "Messages stored in both Redis servers, so many at a time without an answer (*window*).", "",
              *(alone_table(report["alone"]) if report["alone"] else ["Not measured: no build here has queue_driver."]), "",
              "## D2 and D3: the gateway beside Postfix as a relay", "",
              f"Closed loop. *Ours beside it* is the median of the ratios of {report['rounds']} rounds.", "", *rate_table(report["rates"]), "",
              "### Reply time at half load", "",
              "Open loop at half of the rate above: from the end of the content to its reply.", "", *reply_table(report["replies"]), "",
              "## D4: recovery and memory", "", "The gateway is killed with all mails in its queue, and started again.", "",
              *recovery_table(report["recoveries"]), "", "## Machine", "", *machine_lines(report["machine"]), TERMS_OF_GATEWAYS, ""]
    return "\n".join(lines)
