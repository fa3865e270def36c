"""The page of ./cssl bench compare, and its figures."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.compare_works import (ALONE, BULK, BUSY, DEFAULT_SCHEDULING, FULL, KEPT, SAME_TIERS, SECOND_WORKER, SHARED_KEY,
                                             SPREADING, TARGETS, TLS13, WORKS)
from bench.experiments.report import machine_lines

FIGURES = ("total_us", "tiers_us", "backend_us", "full", "resumed", "per_s", "p50_us", "p99_us", "generator_us")


def _values(runs, work, system, key):
    return [r[key] for r in sorted(runs, key=lambda r: r["round"]) if (r["work"], r["system"]) == (work, system)]


def _median(runs, work, system, key="total_us"):
    return statistics.median(_values(runs, work, system, key))


def pair_ratios(runs, pair):
    return [a / b for a, b in zip(_values(runs, pair.work, pair.ours, "total_us"), _values(runs, pair.work, pair.peer, "total_us"))]


def pair_table(runs, pairs):
    yield "| work | ours | beside | ours us | its us | ratio, median | interval | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for pair in pairs:
        ours, its = (_median(runs, pair.work, name) for name in (pair.ours, pair.peer))
        yield (f"| {pair.work} | {pair.ours} | {pair.peer} | {ours:.1f} | {its:.1f} | "
               f"{ratios.columns(pair_ratios(runs, pair), pair.most)} |")


def system_table(systems):
    yield "| system | tiers | between the tiers | scheduling |"
    yield "| --- | --- | --- | --- |"
    for row in systems:
        yield f"| {row['system']} | {', '.join(row['tiers'])} | {row['links']} | {row['scheduling']} |"


def _effort(runs, work, system):
    efforts = {g["effort"] for r in runs if (r["work"], r["system"]) == (work, system) for g in r["generators"]}
    return "saturated" if "saturated" in efforts else "starved" if "starved" in efforts else ""


def _by_tier(runs, work, system):
    """{tier: median us}."""
    rows = _values(runs, work, system, "tiers")
    return {tier: statistics.median(row[tier] for row in rows) for tier in rows[0]}


def cost_table(runs, work):
    yield f"\n### {work.name}\n"
    yield f"us of CPU per {'MiB' if work.unit == 'MiB' else work.unit.rstrip('s')}; {work.tls.text()}; median of " \
          f"{len(_values(runs, work.name, work.systems[0], 'units'))} rounds.\n"
    yield "| system | total | interval | by tier | backend | full / resumed | per s | p50 us | p99 us | generator us | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in work.systems:
        median = {key: _median(runs, work.name, name, key) for key in FIGURES}
        low, high = ratios.interval(_values(runs, work.name, name, "total_us"))
        tiers = ", ".join(f"{tier} {us:.1f}" for tier, us in _by_tier(runs, work.name, name).items())
        yield (f"| {name} | **{median['total_us']:.1f}** | {low:.1f}-{high:.1f} | {tiers} | {median['backend_us']:.1f} | "
               f"{median['full']:.0f} / {median['resumed']:.0f} | {median['per_s']:.0f} | {median['p50_us']:.0f} | "
               f"{median['p99_us']:.0f} | {median['generator_us']:.1f} | {_effort(runs, work.name, name)} |")


BUSY_SYSTEMS = ("CSSL-SF", "CSSL-SF TCP", "CSSL-SF TCP sealed", "haproxy", "haproxy+hitch", "haproxy+nginx")


def busy_table(runs, work):
    """`work`: the name with a place for the number."""
    yield "| system | " + " | ".join(f"{n} busy" for n in BUSY) + " |"
    yield "| --- |" + " --- |" * len(BUSY)
    for system in BUSY_SYSTEMS:
        yield f"| {system} | " + " | ".join(f"{_median(runs, work.format(n), system):.1f}" for n in BUSY) + " |"


IDLE_MOST = {"CSSL-SF idle": 3000}  # bytes, sessions and live parts included


def memory_table(rows):
    yield "| system | bytes | sessions | their bytes | live parts | their bytes | the rest | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        beside, most = row["beside"], IDLE_MOST.get(row["system"])
        rest = row["bytes"] - beside["session_bytes"] - beside["live_bytes"]
        kept = f"{beside['sessions']:.1f} | {beside['session_bytes']:.0f} | {beside['live_parts']:.1f} | {beside['live_bytes']:.0f}"
        ours = row["system"].startswith("CSSL")
        target = f"<= {most} | {'met' if row['bytes'] <= most else 'missed'}" if most else "| "
        yield f"| {row['system']} | **{row['bytes']:.0f}** | {f'{kept} | {rest:.0f}' if ours else '| | | | '} | {target} |"


INTRODUCTION = f"""\
The CPU that the servers use for one handshake, one request, one MiB. All processes between the client and the file count: the
tiers and the backend behind them. All systems serve the same files with the same certificate (ECDSA P-256) and the same
{TLS13.text()}, with X25519, except where a table names others.

- **CSSL-SF**: RAgent, two SSLAgents, nginx behind; full handshakes go to agents in turn, then each connection goes to the agent of
  the client's address. Resumptions go to that agent at once, as is the default; *any agent*: in turn, too. Clients have one address,
  except those that come back, which have 20: so one agent has most connections. *spread*: that agent takes at most 1.25 times the
  mean (`affinity_bound`, the default), so both agents have connections, and each process does less when it wakes up.
  **CSSL-SL**: all go in turn, and a connection stays at the agent of its handshake. Links between RAgent and agents go through shared
  memory on one host; *TCP*, *TCP sealed*: as between two hosts. *fresh*: backend connections are not reused. One worker each, except
  *2 workers*.
- **haproxy**: HAProxy ends TLS by itself, one tier, nginx behind. **haproxy+hitch**: HAProxy hands TCP to two hitches, nginx
  behind. **haproxy+nginx**: HAProxy hands TCP to two nginxes, which answer from their files; *shared*: with one ticket key.
- RAgent and agents ask the kernel to let the running process go on when input for them arrives (SCHED_BATCH), which saves switches
  where tiers share CPUs. The other servers do not ask for it, but an operator can set it for them, too (`chrt --batch 0`). Here all
  have it, except those with *default* in their name, which have the kernel's default scheduling.

Two systems are compared by the ratio of their results in the same round, one shortly after the other. *interval* holds the true
median with a certainty of 95 % (of fewer than six rounds it is from the least to the most); a target within it is *undecided*.
"""

BUSY_NOTE = """\
A busy connection has one request under way at any time. If there are many, a process does work for several of them each time that it wakes
up. If there are few, it wakes up for each of them, and that is most of the cost. us of CPU for each {unit}."""

COST_NOTE = """\
*total* is the sum of the tiers and the backend. *full / resumed*: how many handshakes were full, and how many were resumptions. Each client
of the load generator sends a request when it has the answer to the one before, and the generator shares the cores of this host with the
servers; rates and latencies are measured so. *generator us* is the CPU time of the generator for the same unit; no other column contains
it. *starved*: the generator had to wait for a CPU that the servers used, so rates and latencies are those of a full machine. *saturated*:
the generator was never idle, so the rates are its limit, and not that of the servers. CPU time per unit is right in each case."""

RESUMPTION_NOTE = """\
Each connection of a client, except the first, offers the session of the one before, and all of these were resumed. Agents resume
sessions of any agent. Hitches share nothing between processes, so HAProxy sends a client to the same one by its address (*by address*);
two nginxes resume each other's sessions by a common ticket key."""

SPREAD_NOTE = """\
*spread*: both agents have connections of the one address that the clients have."""

WORKER_NOTE = """\
On this host a second worker has no core of its own, because the load generator uses one. So the table compares the cost of a unit
of work: with two workers in each process it should be no more than with one."""

MEMORY_NOTE = """\
Private memory of the tiers for each further idle connection that had one answer and was silent for {silent_s:.0f} s, both agents and
RAgent together; {clients:,} in addition to as many others. The row of nginx includes HAProxy in front. Some of the agents' memory
is not for the connection itself: sessions, which both agents keep for resumptions, and live parts, which the other agent keeps in
case the owner dies. *resting*: after `rest_after` a connection has no agent, and only RAgent keeps it."""


def _section(title, *parts):
    return ["", f"## {title}", *(line for part in parts for line in ("", *([part] if isinstance(part, str) else part)))]


def markdown(report):
    runs, first = report["runs"], report["memory"][0]
    lines = ["# What a unit of work costs", "", INTRODUCTION, *machine_lines(report["machine"]), f"- rounds: {report['rounds']}"]
    lines += _section("Systems", system_table(report["systems"]))
    lines += _section("Targets", pair_table(runs, TARGETS))
    lines += _section("Beside HAProxy alone", "Every work, also those in which HAProxy costs less.", pair_table(runs, ALONE))
    lines += _section("The same tiers: HAProxy (tcp), two hitches, nginx", pair_table(runs, SAME_TIERS))
    lines += _section("Resumptions: HAProxy (tcp), two nginxes with one ticket key", RESUMPTION_NOTE, pair_table(runs, SHARED_KEY))
    lines += _section("All under the default scheduling", pair_table(runs, DEFAULT_SCHEDULING))
    lines += _section("Busy connections", BUSY_NOTE.format(unit="answer of 1 KiB"), busy_table(runs, KEPT), "![](compare-kept.svg)",
                      BUSY_NOTE.splitlines()[-1].rsplit(". ", maxsplit=1)[-1].format(unit="MiB"), busy_table(runs, BULK),
                      "![](compare-bulk.svg)")
    lines += _section("Connections at both agents", SPREAD_NOTE, pair_table(runs, SPREADING))
    lines += _section("A second worker", WORKER_NOTE, pair_table(runs, SECOND_WORKER))
    lines += _section("Memory", MEMORY_NOTE.format(clients=first["connections"], silent_s=first["silent_s"]), memory_table(report["memory"]))
    lines += _section("Costs", COST_NOTE, "![](compare-tiers.svg)")
    for work in WORKS.values():
        lines += cost_table(runs, work)
    return "\n".join(lines) + "\n"


PLOTTED = ("CSSL-SF", "CSSL-SF TCP sealed", "haproxy", "haproxy+hitch")


def _busy_figure(runs, title, work, unit):
    series = {system: [(i, _median(runs, work.format(n), system)) for i, n in enumerate(BUSY)] for system in PLOTTED}
    return plot.lines(title, "busy connections", f"us of CPU per {unit}", series, x_names=BUSY)


def _tier_figure(runs):
    rows = {}
    for system in PLOTTED:
        front, *behind = _by_tier(runs, FULL, system).values()
        rows[system] = {"in front": front, "TLS, if apart": behind[0] if behind else None,
                        "backend": _median(runs, FULL, system, "backend_us")}
    return plot.bars(FULL, "us of CPU per connection", rows, "{:.0f}".format)


def figures(report):
    runs = report["runs"]
    return {"compare-kept.svg": _busy_figure(runs, "Keep-alive requests, 1 KiB", KEPT, "answer"),
            "compare-bulk.svg": _busy_figure(runs, "Bulk", BULK, "MiB"), "compare-tiers.svg": _tier_figure(runs)}
