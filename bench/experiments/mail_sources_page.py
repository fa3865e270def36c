"""The page of ./cssl bench mail sources."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

OURS, OURS_TWICE, POSTFIX, GO = "cssl-bench", "cssl-bench --processes 2", "Postfix", "go-smtp-source"
GOS = GO, f"{GO}-2015", f"{GO}-2015-pool"  # of today, and before and behind the change that the article measures
SINKS = ("Postfix", "cssl-bench")  # whose smtp-sink
OF_ARTICLE = 1000, False  # sessions, keep

INTRODUCTION = """\
What does it cost to send mails? The runs are those of the article on go-smtp-source (HDE, 2015): {mails:,} mails of a few lines, 1,000
sessions at a time, one mail on each connection, without TLS, to smtp-sink on the same machine.

- **cssl-bench**: `cssl-bench smtp-source`, one process; **--processes 2**: two processes, whose results are added up.
- **Postfix**: `smtp-source` of the Debian package.
- **go-smtp-source**: the program of today, with `-resolve-once`; **-2015** and **-2015-pool**: before and behind the change that the article
  measures (commits b052ac1 and 3c082f0 of February 2015), built by the Go of today. Their versions are below, or that they are not there;
  `(devel)` is a build of a folder, which does not know its version.

All have the same options (`-s`, `-m`, `-f`, `-t`, and `-d` where connections are kept) and, if nothing else is said, the same smtp-sink,
that of Postfix, which takes 2,000 connections at a time. Before they are timed, each shows to `cssl-bench smtp-sink` that it makes as many
connections and sends as many mails as the others. *user* and *system* are CPU of the source, of all its processes; *resident* is the
greatest memory, read 50 times a second; of several processes it is their sum, so memory that they share counts more than once. All are
medians of {rounds} rounds, in which the programs take turns.
""" + ratios.NOTE + "\n"

ARTICLE = """\
The article's figures, with Postfix 3.0 on a machine of 2015 (`time`); after the first two rows it began to keep its buffers (sync.Pool):

| source | user s | system s | elapsed s | resident KB | elapsed, to Postfix's | resident, to Postfix's |
| --- | --- | --- | --- | --- | --- | --- |
| Postfix, first run | 0.60 | 2.31 | 2.93 | 3,028 | | |
| go-smtp-source, without a pool | 0.58 | 4.30 | 4.45 | 31,828 | 1.52 | 10.5 |
| Postfix, second run | 0.50 | 1.93 | 2.44 | 2,872 | | |
| go-smtp-source, with a pool | 0.37 | 4.01 | 3.91 | 12,244 | **1.60** | 4.3 |

Its sink took 100 connections at a time (`-m 100`), ours takes 2,000. That may be why Postfix's source has so much more memory here. It
varies, too: {least_kb:,} to {most_kb:,} KB in the runs to Postfix's smtp-sink. So memory can be compared within one table only.

It has no latencies and no way to join several generators, which it names as its future work. `cssl-bench smtp-source` has both:
percentiles of each phase, `--processes`, and `cssl-bench merge` for the results of several hosts."""

OTHERS = """\
*keep*: one connection for all mails of a session (`-d`). Times are medians. Ratios are medians of those of the same rounds, so they need not
be the ratios of these times."""

README = """\
Figures of the README of go-smtp-source (commit 650d2342 of 2026), source and sink in containers of a machine that it does not name:

| sessions | keep | Postfix s | go-smtp-source s |
| --- | --- | --- | --- |
| 1 | no | 14.88 | 3.31 |
| 100 | no | 2.16 | 3.35 |
| 1,000 | no | 44.61 | 3.35 |
| 1 | yes | 7.96 | 8.46 |
| 100 | yes | 1.07 | 0.91 |
| 1,000 | yes | 4.36 | 0.89 |"""


def _of(runs, source, sink=SINKS[0], shape=OF_ARTICLE):
    rows = (run for run in runs if (run["source"], run["sink"], run["sessions"], run["keep"]) == (source, sink, *shape))
    return sorted(({**run, "cpu_s": run["user_s"] + run["system_s"]} for run in rows), key=lambda run: run["round"])


def _sources(runs):
    return [name for name in (OURS, OURS_TWICE, POSTFIX, *GOS) if _of(runs, name)]


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def cost_table(runs):
    yield "| smtp-sink | source | user s | system s | elapsed s | resident KB |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for sink in SINKS:
        for source in _sources(runs):
            rows = _of(runs, source, sink)
            yield (f"| {sink} | {source} | {_median(rows, 'user_s'):.2f} | {_median(rows, 'system_s'):.2f} | "
                   f"**{_median(rows, 'seconds'):.2f}** | {_median(rows, 'peak_kb'):,.0f} |")


def ratio_table(runs):
    """Of each program to Postfix's, and of ours to the others. The target is that ours takes no more time than Postfix's."""
    yield "| smtp-sink | of | to that of | elapsed | interval | target | | CPU | interval | resident | interval |"
    yield "| --- " * 11 + "|"
    names = _sources(runs)
    pairs = [(name, POSTFIX) for name in names if name != POSTFIX] + [(OURS, name) for name in names if name in GOS] + [(OURS_TWICE, OURS)]
    for sink in SINKS:
        for one, other in pairs:
            rows = list(zip(_of(runs, one, sink), _of(runs, other, sink)))
            elapsed, cpu, resident = ([a[key] / max(b[key], 0.001) for a, b in rows] for key in ("seconds", "cpu_s", "peak_kb"))
            yield (f"| {sink} | {one} | {other} | {ratios.columns(elapsed, 1 if (one, other) == (OURS, POSTFIX) else None)} | {_ratio(cpu)} | "
                   f"{_ratio(resident)} |")


def _ratio(quotients):
    """Median and interval."""
    low, high = ratios.interval(quotients)
    return f"**{statistics.median(quotients):.2f}** | {low:.2f}-{high:.2f}"


def _beside(runs, shape, other):
    """Two cells: our elapsed time to that of another one."""
    rows = list(zip(_of(runs, OURS, shape=shape), _of(runs, other, shape=shape)))
    return _ratio([a["seconds"] / b["seconds"] for a, b in rows]) if rows else " | "


def time_table(runs):
    names = [name for name in _sources(runs) if name not in GOS[1:]]
    yield "| sessions | keep | " + " | ".join(f"{name} s" for name in names) + f" | {OURS}, to {POSTFIX} | interval | to {GO} | interval |"
    yield "| --- " * (6 + len(names)) + "|"
    for shape in sorted({(run["sessions"], run["keep"]) for run in runs}, key=lambda shape: shape[::-1]):
        cells = (_of(runs, name, shape=shape) for name in names)
        yield (f"| {shape[0]:,} | {'yes' if shape[1] else 'no'} | "
               + " | ".join([*(f"{_median(rows, 'seconds'):.2f}" if rows else "" for rows in cells), _beside(runs, shape, POSTFIX),
                             _beside(runs, shape, GO)]) + " |")


def figures(report, name):
    runs = report["runs"]
    rows = {f"{source}": {"user": _median(_of(runs, source), "user_s"), "system": _median(_of(runs, source), "system_s"),
                          "elapsed": _median(_of(runs, source), "seconds")} for source in _sources(runs)}
    return {f"{name}.svg": plot.bars("1,000 sessions at a time, to Postfix's smtp-sink", "seconds", rows, lambda s: f"{s:.2f}")}


def markdown(report, name):
    runs = report["runs"]
    memory = [run["peak_kb"] for run in _of(runs, POSTFIX)]
    lines = ["# Programs that send mails", "", INTRODUCTION.format(**report), *machine_lines(report["machine"]),
             TERMS_OF_GATEWAYS, f"- rounds: {report['rounds']}", "", f"![CPU and elapsed time]({name}.svg)", "",
             "## 1,000 sessions, a connection for each mail", "", *cost_table(runs), "", *ratio_table(runs), "",
             ARTICLE.format(least_kb=min(memory), most_kb=max(memory)), "",
             "## Elapsed time with other numbers of sessions", "", OTHERS, "",
             *time_table(runs), "", README]
    return "\n".join(lines) + "\n"
