"""The page of ./cssl bench compare."""

import statistics

from bench.experiments.compare_works import SAME_SCHEDULING, SAME_TIERS, SECOND_WORKER, SHARED_KEY, TARGETS, TLS13, WORKS
from bench.experiments.report import machine_lines

FIGURES = ("total_us", "tiers_us", "backend_us", "full", "resumed", "per_s", "p50_us", "p99_us", "generator_us")


def _values(runs, work, system, key):
    return [r[key] for r in sorted(runs, key=lambda r: r["round"]) if (r["work"], r["system"]) == (work, system)]


def ratios(runs, pair):
    return [a / b for a, b in zip(_values(runs, pair.work, pair.ours, "total_us"), _values(runs, pair.work, pair.peer, "total_us"))]


def _effort(runs, work, system):
    efforts = {g["effort"] for r in runs if (r["work"], r["system"]) == (work, system) for g in r["generators"]}
    return "saturated" if "saturated" in efforts else "starved" if "starved" in efforts else ""


def _target(pair, ratio):
    return f"<= {pair.most:.2f} | {'met' if ratio <= pair.most else 'missed'} |" if pair.most else "| |"


def pair_table(runs, pairs):
    yield "| work | ours | beside | ours us | its us | ratio, median | least-most | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for pair in pairs:
        r = ratios(runs, pair)
        ours, its = (statistics.median(_values(runs, pair.work, name, "total_us")) for name in (pair.ours, pair.peer))
        yield (f"| {pair.work} | {pair.ours} | {pair.peer} | {ours:.1f} | {its:.1f} | **{statistics.median(r):.2f}** | "
               f"{min(r):.2f}-{max(r):.2f} | {_target(pair, statistics.median(r))}")


def cost_table(runs, work):
    yield f"\n### {work.name}\n"
    yield f"us of CPU per {'MiB' if work.unit == 'MiB' else work.unit.rstrip('s')}; {work.tls.text()}; median of " \
          f"{len(_values(runs, work.name, work.systems[0], 'units'))} rounds.\n"
    yield "| system | total | least-most | tiers | backend | full / resumed | per s | p50 us | p99 us | generator us | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in work.systems:
        median = {key: statistics.median(_values(runs, work.name, name, key)) for key in FIGURES}
        total = _values(runs, work.name, name, "total_us")
        yield (f"| {name} | **{median['total_us']:.1f}** | {min(total):.1f}-{max(total):.1f} | {median['tiers_us']:.1f} | "
               f"{median['backend_us']:.1f} | {median['full']:.0f} / {median['resumed']:.0f} | {median['per_s']:.0f} | "
               f"{median['p50_us']:.0f} | {median['p99_us']:.0f} | {median['generator_us']:.1f} | {_effort(runs, work.name, name)} |")


IDLE_MOST = {"CSSL-SF idle": 2048, "CSSL-SF resting": 1024}  # bytes, of what is not beside


def memory_table(rows):
    yield "| system | bytes | sessions | their bytes | live parts | their bytes | the rest | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        beside = row["beside"]
        rest = row["bytes"] - beside["session_bytes"] - beside["live_bytes"]
        most = IDLE_MOST.get(row["system"])
        kept = f"{beside['sessions']:.1f} | {beside['session_bytes']:.0f} | {beside['live_parts']:.1f} | {beside['live_bytes']:.0f}"
        yield (f"| {row['system']} | **{row['bytes']:.0f}** | " +
               (f"{kept} | **{rest:.0f}** | <= {most} | {'met' if rest <= most else 'missed'} |" if most else "| | | | | | |"))


INTRODUCTION = f"""\
The CPU that the servers use for one handshake, one request, one MiB. All processes between the client and the file count: the
tiers and the backend behind them. All systems serve the same files with the same certificate (ECDSA P-256) and the same
{TLS13.text()}, with X25519, except where a table names others.

- **CSSL-SF**: RAgent, two SSLAgents, nginx behind; handshakes go to agents in turn, then each connection goes to the agent of
  the client's address. **CSSL-SL**: the same, but a connection stays at the agent of its handshake. *trusted* and *sealed* are
  the links between RAgent and agents. *fresh*: backend connections are not reused. One worker each, except *2 workers*.
- **haproxy**: HAProxy ends TLS by itself, one tier, nginx behind. **haproxy+hitch**: HAProxy hands TCP to two hitches, nginx
  behind. **haproxy+nginx**: HAProxy hands TCP to two nginxes, which answer from their files; *shared*: with one ticket key.

Two systems are compared by the ratio of their results in the same round, one shortly after the other. The tables have the median
of the rounds.
"""

COST_NOTE = """\
*total* is the sum of *tiers* and *backend*. *full / resumed* is what the handshakes really were. Rates and latencies are of a
closed loop in which the servers and the load generator share the cores of this host. *generator us* is the generator's own CPU
for the same unit, which is in no other column; *starved*: it had to wait for a CPU that the servers had, so that rates and latencies
are those of a full machine; *saturated*: it had no rest, and rates are its own limit. CPU per unit holds in each case."""

RESUMPTION_NOTE = """\
Each connection of a client, except the first, offers the session of the one before, and all of these were resumed. Agents resume
sessions of any agent. Hitches share nothing between processes, so HAProxy sends a client to the same one by its address (*by address*);
two nginxes resume each other's sessions by a common ticket key."""

SCHEDULING_NOTE = """\
RAgent and agents ask the kernel to let the running process go on when input for them arrives (SCHED_BATCH). This saves switches
where tiers share CPUs. The other servers do not ask for it, but an operator can set it for them, too (`chrt --batch 0`): *in
turns*."""

WORKER_NOTE = """\
On this host a second worker has no core of its own, because the load generator uses one. So the table compares the cost of a unit
of work: with two workers in each process it should be no more than with one."""

MEMORY_NOTE = """\
Private memory of the tiers for each further idle connection that had one answer and was silent for {silent_s:.0f} s, both agents and
RAgent together; {clients:,} in addition to as many others. The row of nginx includes HAProxy in front. Some of the agents' memory
is not for the connection itself: sessions, which both agents keep for resumptions, and live parts, which the other agent keeps in
case the owner dies. *resting*: after `rest_after` a connection has no agent, and only RAgent keeps it."""


def markdown(report):
    runs = report["runs"]
    lines = ["# What a unit of work costs", "", INTRODUCTION, *machine_lines(report["machine"]), f"- rounds: {report['rounds']}"]
    lines += ["", "## Targets", "", *pair_table(runs, TARGETS)]
    lines += ["", "## The same tiers: HAProxy (tcp), two hitches, nginx", "", *pair_table(runs, SAME_TIERS)]
    lines += ["", "## Resumptions: HAProxy (tcp), two nginxes with one ticket key", "", RESUMPTION_NOTE, "",
              *pair_table(runs, SHARED_KEY)]
    lines += ["", "## Others under the same scheduling", "", SCHEDULING_NOTE, "", *pair_table(runs, SAME_SCHEDULING)]
    lines += ["", "## A second worker", "", WORKER_NOTE, "", *pair_table(runs, SECOND_WORKER)]
    first = report["memory"][0]
    facts = {"clients": first["connections"], "silent_s": first.get("silent_s", 1)}
    lines += ["", "## Memory", "", MEMORY_NOTE.format(**facts), "", *memory_table(report["memory"])]
    lines += ["", "## Costs", "", COST_NOTE]
    for work in WORKS.values():
        lines += cost_table(runs, work)
    return "\n".join(lines) + "\n"
