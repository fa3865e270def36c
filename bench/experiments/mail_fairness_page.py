"""The page of ./cssl bench mail fairness."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

SPREAD, TIME = 1.10, 1.00
OURS, UNFAIR, ITS = "smtpproxy", "fairness off", "Postfix relay"
SYSTEMS = (OURS, UNFAIR, "smtpproxy, 6 addresses", "fairness off, 6 addresses", ITS, "Postfix relay that knows the limit")

INTRODUCTION = """\
Do senders to one receiver get equal shares of it? This is the experiment on fairness of T. Oda et al., "Quantitative Evaluation of
Transparent SMTP Proxy in Email Sending Server Aggregation" (IOTS 2024), whose proxy is Warp.

Three senders (Postfix) have {mails:,} mails each for mx1 (Postfix), which takes {limit} connections at a time from one address
(`smtpd_client_connection_count_limit`). Senders begin with 5 connections and make at most {sessions} each. They keep their mails until all are
there, and are then released together. Between them and mx1 is one aggregator:

- **smtpproxy**: senders take turns, transaction by transaction;
- **fairness off**: the same program with `fairness: off`. A session keeps its connection to the receiver until it ends, as in Warp;
- both with **{addresses} addresses** (`outward.sources`, and `connections_per_destination` to match), the remedy that the paper proposes
  for Warp: the receiver takes {limit} connections from each, so there can be one for each session of the senders;
- **Postfix relay**: it stores each mail and then delivers it, with up to 20 connections. Where the receiver refuses one, it tries that
  mail again after {soon_s} s. (By default the tries are 300, 600, 1,200, 2,400 s and more after the first, and some mails meet the limit
  in each: on 26 November 2026, 1,667 of 30,000 were missing after 600 s.) It runs once;
- **Postfix relay that knows the limit**: the same, with at most {limit} connections (`default_destination_concurrency_limit`).

Sender, aggregator and receiver have a network namespace each, and share the cores of this machine. Times count from the release to the
last mail at mx1; all mails came, each once. *spread*: the time of the slowest sender, to that of the fastest one. *refused*: mails that a
sender got back for good. *deferred*: deliveries that a sender, or the relay, had to try again. *connections of each address*: that mx1 had
from it in a run, the least and the most; *too many*: of these, how many it refused for its limit.
""" + ratios.NOTE + "\n"

PAPER = """\
Figures of the paper, from machines of its own, {mails:,} mails of each sender:

| aggregator | fastest sender s | slowest s | spread | all done s |
| --- | --- | --- | --- | --- |
| Warp | 39 | 64 | 1.6 | 64 |
| Postfix relay | | | equal rates | 299 |

Warp is not packaged, so it did not run here."""


def _of(runs, system):
    return sorted((run for run in runs if run["system"] == system), key=lambda run: run["round"])


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def _systems(runs):
    return [name for name in SYSTEMS if _of(runs, name)]


def result_table(runs):
    yield "| aggregator | runs | fastest sender s | slowest s | spread | refused | deferred | too many | connections of each address |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for system in _systems(runs):
        rows = _of(runs, system)
        fastest = statistics.median(min(row["last_s"].values()) for row in rows)
        counts = [count for row in rows for count in row["connections"].values()]
        yield (f"| {system} | {len(rows)} | {fastest:.1f} | **{_median(rows, 'all_s'):.1f}** | {_median(rows, 'spread'):.2f} | "
               f"{_median(rows, 'refused'):.0f} | {_median(rows, 'deferred'):.0f} | {_median(rows, 'too_many'):.0f} | "
               f"{min(counts)} to {max(counts)} |")


def _times(runs, system, other):
    return [a["all_s"] / b["all_s"] for a, b in zip(_of(runs, system), _of(runs, other))]


def target_table(runs):
    yield "| what | median | interval | target | |"
    yield "| --- | --- | --- | --- | --- |"
    for system in _systems(runs):
        target = SPREAD if system.startswith(OURS) else None
        yield f"| spread, {system} | {ratios.columns([row['spread'] for row in _of(runs, system)], target)} |"
    for system in _systems(runs)[1:]:
        yield f"| time of smtpproxy, to that of {system} | {ratios.columns(_times(runs, OURS, system), TIME if system == UNFAIR else None)} |"
    ours = _of(runs, OURS)
    least, most = (of(row["refused"] for row in ours) for of in (min, max))
    yield f"| mails refused for good, smtpproxy | **{_median(ours, 'refused'):.0f}** | {least}-{most} | 0 | {'missed' if most else 'met'} |"


def _file(name, system):
    return f"{name}-{system.lower().replace(',', '').replace(' ', '-')}.svg"


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
