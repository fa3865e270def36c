"""The page of ./cssl bench mail."""

import statistics

from bench.experiments import ratios
from bench.experiments.report import machine_lines

TARGET = 0.9     # of nginx mail's CPU for a session with STARTTLS, the mail server's included
LATENCY_MS = 1.0  # that one session may take longer than without a tier
MEMORY_KB = 3    # of each session of the pairs at 1,000
OURS = "CSSL"
OURS_ROUND_ROBIN = "CSSL round-robin"
DIRECT = "direct"
STARTTLS = "STARTTLS"  # how the works with a target begin

INTRODUCTION = """\
Two questions. How fast are `cssl-bench smtp-source` and `smtp-sink` beside Postfix's tools of the same names? And what does it cost to
terminate TLS for SMTP, in CPU of all server processes?

- **CSSL**: RAgent and two SSLAgents with one worker each, in front of smtp-sink: the listeners smtp and smtps of `./cssl up`.
  Links between RAgent and agents go through shared memory, trusted; all processes have SCHED_BATCH, which they ask for by themselves.
  An agent makes the handshakes of its own clients (`handshake: local`), as the files for mail in conf/ have it: it has the client's
  connection to the mail server already. All clients here have one address, so one agent has them all.
- **CSSL round-robin**: agents take turns at handshakes, which is the default. Half of the connections then change their agent behind it.
- **nginx mail**: one worker; the same nginx answers its `auth_http`, which it needs. **stunnel**: `protocol = smtp`.
- **in turns**: the same under SCHED_BATCH (`chrt --batch 0`). Without it they have the kernel's default scheduling.
- **direct**: smtp-sink terminates by itself, without a tier.

All use the same certificate (ECDSA P-256), suite and group (X25519), and the same smtp-sink as mail server. *interval* holds the
true median of the ratios with a certainty of 95 % (of fewer than six pairs it is from the least to the most, which is less certain). A
target is *met* or *missed* if the whole interval is on one side of it, otherwise *undecided*.
"""

PAIR_NOTE = """\
{mails:,} mails, elapsed time of the source from its start to its end, median of {count} runs each, in turns. *KB*: the greatest resident
memory, medians. *KB a session*: what that at 1,000 sessions is above that at one in the same round, for each session more. *keep*: one
connection for all mails of a session (`-d`)."""

WORK_NOTE = """\
One connection, one handshake and one mail of {mail_bytes:,} bytes for each session, {at_once} at once, {mails:,} in a run. *front* is the
CPU of all server processes between the client and the mail server: the keeper, RAgent proper and both agents; nginx with its `auth_http`;
stunnel. *mail server* is smtp-sink behind it: the same program for all, but a front may cause more or less work in it. *sum* is of both;
all are medians in microseconds a session. The ratio is that of the sums. The target is for STARTTLS beside nginx mail; there each round has
{turns} pairs, elsewhere one. *least-most* is of the ratios of all pairs. *full / resumed* counts the handshakes as they really were; a row
without resumptions where they were asked for says so. Rates are of a closed loop in which all share the cores of this host."""

LATENCY_NOTE = """\
One session at a time: from its connect to the reply to its mail. Each turn has {mails} sessions, and the median of their times; *p50* is the
median of those medians, and *added* that of what they are above *direct* in the same turn. CSSL and *direct* have {turns} turns in each
round, the others one."""

def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def _when(run):
    return run["round"], run.get("turn", 0)


def _of(runs, **wanted):
    return sorted((r for r in runs if all(r[key] == value for key, value in wanted.items())), key=_when)


def _pairs(ours, its):
    """Of the same round and turn."""
    then = {_when(run): run for run in its}
    return [(run, then[_when(run)]) for run in ours if _when(run) in then]


def _sum(run):
    return run["front_us"] + run["mail_server_us"]


def is_judged(work, system):
    """Is the CPU of this work of this system part of a target?"""
    return work.startswith(STARTTLS) and (system == OURS or system.startswith("nginx"))


def is_timed(system):
    """Is the time of one session through this system part of a target?"""
    return system in (OURS, DIRECT)


def pair_table(pairs):
    yield "| sessions | keep | cssl-bench s | Postfix s | ratio, median | interval | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for keep in (False, True):
        for sessions in sorted({run["sessions"] for run in pairs}):
            ours, its = (_of(pairs, pair=name, sessions=sessions, keep=keep) for name in ("cssl-bench", "Postfix"))
            quotients = [a["seconds"] / b["seconds"] for a, b in _pairs(ours, its)]
            yield (f"| {sessions:,} | {'yes' if keep else 'no'} | {_median(ours, 'seconds'):.2f} | {_median(its, 'seconds'):.2f} | "
                   f"{ratios.columns(quotients, 1)} |")


def memory_table(pairs):
    yield "| program | keep | KB at 1 session | KB at 1,000 | KB a session, median | interval | target | |"
    yield "| --- " * 8 + "|"
    for pair in ("cssl-bench", "Postfix"):
        for keep in (False, True):
            for program in ("source", "sink"):
                key, both = f"{program}_kb", [_of(pairs, pair=pair, sessions=s, keep=keep) for s in (1, 1000)]
                each = [(all_[key] - one[key]) / 999 for one, all_ in _pairs(*both)]
                low, high = ratios.interval(each)
                target = f"<= {MEMORY_KB} | {ratios.verdict(each, MEMORY_KB)}" if pair == "cssl-bench" else "| "
                yield (f"| {pair} smtp-{program} | {'yes' if keep else 'no'} | {_median(both[0], key):,.0f} | {_median(both[1], key):,.0f} | "
                       f"**{statistics.median(each):.1f}** | {low:.1f}-{high:.1f} | {target} |")


def _works(runs):
    return list(dict.fromkeys(run["work"] for run in runs))


def _systems(runs, work):
    names = dict.fromkeys(run["system"] for run in runs if run["work"] == work)
    return sorted(names, key=lambda name: (name != OURS, name == DIRECT, name))


def _parts(rows):
    """Three cells of a table: front, mail server and their sum, medians."""
    return f"{_median(rows, 'front_us'):.0f} | {_median(rows, 'mail_server_us'):.0f} | {statistics.median(map(_sum, rows)):.0f}"


def ratio_table(runs, at_once):
    yield ("| work | beside | our front | our mail server | our sum | its front | its mail server | its sum | least-most | ratio, median | "
           "interval | target | |")
    yield "| --- " * 13 + "|"
    for work in _works(runs):
        ours = _of(runs, work=work, system=OURS, sessions=at_once)
        for peer in _systems(runs, work) if ours else []:
            pairs = _pairs(ours, _of(runs, work=work, system=peer, sessions=at_once))
            if peer in (OURS, DIRECT):
                continue
            quotients = [_sum(a) / max(_sum(b), 1) for a, b in pairs]
            yield (f"| {work} | {peer} | {_parts([a for a, _ in pairs])} | {_parts([b for _, b in pairs])} | "
                   f"{min(quotients):.2f}-{max(quotients):.2f} | "
                   f"{ratios.columns(quotients, TARGET if is_judged(work, peer) else None)} |")


def cost_table(runs, work, at_once):
    yield f"\n### {work}\n"
    yield "| system | front us | mail server us | sum us | least-most | full / resumed | per s | p50 us | p99 us | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for system in _systems(runs, work):
        rows = _of(runs, work=work, system=system, sessions=at_once)
        used = [_sum(row) for row in rows]
        note = "" if all(row["resumes"] for row in rows) else "does not resume"
        yield (f"| {system} | {_parts(rows)} | {min(used):.0f}-{max(used):.0f} | "
               f"{_median(rows, 'full'):.0f} / {_median(rows, 'resumed'):.0f} | {_median(rows, 'per_s'):.0f} | "
               f"{_median(rows, 'p50_us'):.0f} | {_median(rows, 'p99_us'):.0f} | {note} |")


def latency_table(runs):
    yield "| work | system | p50 ms | added ms | interval | target | |"
    yield "| --- " * 7 + "|"
    for work in _works(runs):
        direct = _of(runs, work=work, system=DIRECT, sessions=1)
        for system in _systems(runs, work):
            rows = _of(runs, work=work, system=system, sessions=1)
            added = [(row["p50_us"] - alone["p50_us"]) / 1000 for row, alone in _pairs(rows, direct)]
            low, high = ratios.interval(added)
            target = f"< {LATENCY_MS:.0f} | {ratios.verdict(added, LATENCY_MS)}" if system == OURS else "| "
            yield (f"| {work} | {system} | {_median(rows, 'p50_us') / 1000:.2f} | **{statistics.median(added):.2f}** | "
                   f"{low:.2f}-{high:.2f} | {target} |")


def markdown(report):
    pairs, runs, at_once = report["pairs"], report["runs"], report["at_once"]
    lines = ["# What sending mail costs", "", INTRODUCTION, *machine_lines(report["machine"]), f"- rounds: {report['rounds']}"]
    in_turns = 1 + max(run["round"] for run in pairs)
    lines += ["", "## Our tools beside Postfix's", "", PAIR_NOTE.format(mails=pairs[0]["mails"], count=in_turns), "",
              *pair_table(pairs), "", *memory_table(pairs)]
    turns = 1 + max(run["turn"] for run in runs)
    lines += ["", "## Termination of TLS", "", WORK_NOTE.format(turns=turns, mails=max(run["mails"] for run in runs), **report), ""]
    lines += [*ratio_table(runs, at_once), "", "## Time of one session", "", 
              LATENCY_NOTE.format(turns=turns, mails=min(run["mails"] for run in runs)), ""]
    lines += [*latency_table(runs), "", "## Costs"]
    for work in _works(runs):
        lines += cost_table(runs, work, at_once)
    return "\n".join(lines) + "\n"
