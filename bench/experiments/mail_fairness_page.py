"""The page of ./cssl bench mail fairness."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

SPREAD, TIME = 1.10, 1.00
OURS, UNFAIR = "smtpproxy", "fairness off"

INTRODUCTION = """\
Do senders to one receiver get equal shares of it? This is the experiment on fairness of T. Oda et al., "Quantitative Evaluation of
Transparent SMTP Proxy in Email Sending Server Aggregation" (IOTS 2024), whose proxy is Warp.

Three senders (Postfix) have {mails:,} mails each for mx1 (Postfix), which takes {connections} connections at a time from one address
(`smtpd_client_connection_count_limit`). Senders begin with 5 connections and make at most 20 each. They keep their mails until all are
there, and are then released together. Between them and mx1 is one aggregator:

- **smtpproxy**: senders take turns, transaction by transaction;
- **fairness off**: the same program with `fairness: off`. A session keeps its connection to the receiver until it ends;
- **Postfix relay**: it stores each mail and then delivers it, with its default limits. It runs in the first round only, because it
  tries again after minutes where the receiver refuses a connection.

Sender, aggregator and receiver have a network namespace each, and share the cores of this machine. Times count from the release to the
last mail at mx1. *spread*: the time of the slowest sender, to that of the fastest one. *refused*: mails that a sender got back for good.
*deferred*: deliveries that a sender, or the relay, had to try again. *missing*: mails that were not at mx1 when the run was ended; such a
run has no times, and the table says after how long it was ended. (The page of 26 November 2026 had 600.1 s and a spread of 1.00 for the
relay, and 0.04 for the time of smtpproxy to its time: that was the limit of its run, at which 1,667 mails were missing.)
""" + ratios.NOTE + "\n"

PAPER = """\
Figures of the paper, from machines of its own, {mails:,} mails of each sender:

| aggregator | fastest sender s | slowest s | spread | all done s |
| --- | --- | --- | --- | --- |
| Warp | 39 | 64 | 1.6 | 64 |
| Postfix relay | 299 | 299 | 1.0 | 299 |

Warp is not packaged, so it did not run here."""


def _of(runs, system):
    return sorted((run for run in runs if run["system"] == system), key=lambda run: run["round"])


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def _systems(runs):
    return sorted({run["system"] for run in runs}, key=lambda name: (name != OURS, name != UNFAIR, name))


def _is_done(rows):
    return not any(row["missing"] for row in rows)


def result_table(runs):
    yield "| aggregator | fastest sender s | slowest s | all done s | refused | deferred | missing |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for system in _systems(runs):
        rows = _of(runs, system)
        if not _is_done(rows):
            times = f"| | not done after {_median(rows, 'ended_s'):.0f} s"
        else:
            fastest = statistics.median(min(row["last_s"].values()) for row in rows)
            times = f"{fastest:.1f} | {_median(rows, 'all_s'):.1f} | **{_median(rows, 'all_s'):.1f}**"
        yield (f"| {system} | {times} | {_median(rows, 'refused'):.0f} | {_median(rows, 'deferred'):.0f} | {_median(rows, 'missing'):.0f} |")


def target_table(runs):
    yield "| what | median | interval | target | |"
    yield "| --- | --- | --- | --- | --- |"
    ours = _of(runs, OURS)
    for system in filter(lambda name: _is_done(_of(runs, name)), _systems(runs)):
        yield f"| spread, {system} | {ratios.columns([row['spread'] for row in _of(runs, system)], SPREAD if system == OURS else None)} |"
    for system in filter(lambda name: _is_done(_of(runs, name)), _systems(runs)[1:]):
        quotients = [a["all_s"] / b["all_s"] for a, b in zip(ours, _of(runs, system))]
        yield f"| time of smtpproxy, to that of {system} | {ratios.columns(quotients, TIME if system == UNFAIR else None)} |"
    most = max(row["refused"] for row in ours)
    yield f"| mails refused for good, smtpproxy | **{_median(ours, 'refused'):.0f}** | 0-{most} | 0 | {'missed' if most else 'met'} |"


def _file(name, system):
    return f"{name}-{system.lower().replace(' ', '-')}.svg"


def figures(report, name):
    """Of the first round."""
    return {_file(name, row["system"]): plot.lines(f"Received of each sender, {row['system']}", "seconds", "mails", row["received"])
            for row in report["runs"] if row["round"] == 0}


def markdown(report, name):
    runs = report["runs"]
    lines = ["# Fairness: senders that share a receiver", "", INTRODUCTION.format(**report), *machine_lines(report["machine"]),
             TERMS_OF_GATEWAYS, f"- rounds: {report['rounds']}", "", *target_table(runs), "", *result_table(runs), "",
             PAPER.format(mails=10000), "",
             "## Pictures", ""]
    return "\n".join(lines + [f"![received of each sender, {system}]({_file(name, system)})\n" for system in _systems(runs)])
