"""./cssl bench scaling: how large a cluster can be with a full broadcast of sessions and live parts, which is the default, beside
`live: carried` and `replicas`. The cost of an object on its way to another agent is measured here, on the agents' own code
(cssl-bench broadcast). Clusters of up to 1,000 agents are simulated in virtual time with that cost (cssl-bench simulate). No process
in the simulation is faster than on this machine, so the results hold for machines like this one."""

import json
import math
import statistics
import subprocess

from bench.experiments import machine, plot
from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.report import machine_lines, save

CARRIED_REPLICAS = ("all", "1", "2", "3")
AGENTS = (3, 10, 30, 100, 300, 1000)
RATES = (1_000, 10_000, 100_000, 1_000_000)
PER_AGENT_MAX = 10_000  # handshakes a second: no machine makes more
LOSSES = (0, 1, 5, 10, 20)
CHURNS = (0, 6, 60)
CARRIED_RATE = 100_000  # of the comparison; a smaller cluster makes as much as it can
RULE_CORE = 0.10  # of a core: more would be a concern
RULE_AGENTS = (3, 10, 100)  # for which the page says where that is
TERMS = "- scheduling: the kernel's default, where CPU is measured; no links of RAgent: the broadcast is UDP, sealed"
COST_PARTS = ("session_ns", "live_ns", "word_ns", "datagram_ns", "datagram_peer_ns", "received_datagram_ns", "received_session_ns",
              "received_live_ns", "received_word_ns")


def bench(*arguments):
    done = subprocess.run([build_folder() / "bench" / "cssl-bench", *map(str, arguments), "--json"], text=True, check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measure_cost(rounds, quick):
    """The median of each part over the rounds, and all runs."""
    measured = [bench("broadcast", "--objects", 2000 if quick else 50000) for _ in range(rounds)]
    cost = {part: statistics.median(m["cost"][part] for m in measured) for part in COST_PARTS}
    return cost, measured


class Simulator:
    """Simulates with the measured cost and the measured length of objects."""

    def __init__(self, cost, live_bytes, course):
        self._course = course
        self._fixed = ("--cost", ",".join(f"{cost[part]:.0f}" for part in COST_PARTS), "--live-bytes", live_bytes)

    def __call__(self, live="broadcast", **options):
        arguments = [x for name, value in options.items() for x in (f"--{name}", value)]
        rows = bench("simulate", *self._fixed, "--live", live, *arguments)
        self._course.done(f"simulated: live: {live}, {options['agents']} agents, {options['rate']:,} handshakes/s")
        return rows


def sizes(simulate, quick):
    """The default, at every size of a cluster and every rate that so many agents can make."""
    rows = []
    for agents in AGENTS[:2] if quick else AGENTS:
        for rate in RATES[:1] if quick else RATES:
            if rate / agents > PER_AGENT_MAX:
                continue
            rows += simulate(agents=agents, rate=rate, loss=0.1)
    return rows


def carried(simulate, quick):
    """`live: carried`, with all numbers of replicas."""
    rows = []
    for agents in AGENTS[:2] if quick else AGENTS:
        rate = RATES[0] if quick else min(CARRIED_RATE, agents * PER_AGENT_MAX // 3)
        replicas = [r for r in CARRIED_REPLICAS if r == "all" or int(r) < agents]
        rows += simulate("broadcast", agents=agents, rate=rate, loss=0.1)
        rows += simulate("carried", agents=agents, rate=rate, replicas=",".join(replicas), loss=0.1)
    return rows


def silence(simulate, quick):
    """Nearly only heartbeats, at every size."""
    return [row for agents in (AGENTS[:2] if quick else AGENTS) for row in simulate(agents=agents, rate=1, seconds=5)]


def losses(simulate, quick):
    return simulate(agents=10, rate=200 if quick else 10000, loss=",".join(map(str, LOSSES)))


def churns(simulate, quick):
    rows = []
    for churn in CHURNS:
        same = {"agents": 30, "rate": 100 if quick else 5000, "churn": churn, "seconds": 5 if quick else 30, "left": 3000, "away": 5000}
        rows += simulate(**same) + simulate("carried", replicas="1,2", **same)
    return rows


SIMULATED = {"silence": silence, "sizes": sizes, "carried": carried, "losses": losses, "churns": churns}


def simulations(quick):
    """A step for each simulation. Its weight is, roughly, the seconds that it takes."""
    steps = []

    def note(live="broadcast", **simulated):
        runs = max(len(str(simulated.get(name, "")).split(",")) for name in ("replicas", "loss"))
        steps.append((1, runs * (0.1 + simulated["rate"] / 1e5 * (0.8 + simulated["agents"] / 400))))
        return []
    for part in SIMULATED.values():
        part(note, quick)
    return steps


def name_of(row):
    if row["live"] == "broadcast":
        return "live: broadcast"
    return f"carried, replicas: {row['replicas'] or 'all'}"


def cpu_plot(rows):
    series = {f"{rate:,}/s": [(r["agents"], 100 * r["cpu"]) for r in rows if r["handshakes_per_s"] == rate] for rate in RATES}
    return plot.lines("Simulated: CPU of full broadcast on each agent", "agents", "% of a core",
                      {k: s for k, s in series.items() if s}, 100)


def replicas_plot(rows):
    """Of the sizes that were simulated at one rate."""
    rate = max(r["handshakes_per_s"] for r in rows)
    series = {}
    for r in rows:
        if r["handshakes_per_s"] == rate and r["replicas"] != 1:
            series.setdefault(name_of(r), []).append((r["agents"], 100 * r["cpu_with_pulls"]))
    return plot.lines(f"Simulated: CPU on each agent at {rate:,.0f} handshakes/s", "agents", "% of a core", series, 100)


def _up(x, digits=2):
    """`x`, with so many digits, and not less."""
    if x <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(x)) + 1 - digits)
    return round(math.ceil(x / step - 1e-9) * step, 12)


def rule(rows, silent):
    """No row takes more CPU than the sum of both parts: us for each handshake of the cluster, and % of a core for each peer. Both are
    rounded up, the second after the first, so the printed rule holds for each row."""
    peer = _up(max(100 * r["cpu"] / (r["agents"] - 1) for r in silent))
    left = max((r["cpu"] - peer / 100 * (r["agents"] - 1)) / r["handshakes_per_s"] for r in rows)
    return {"us_per_handshake": _up(left * 1e6), "percent_per_peer": peer}


def cpu_by_rule(rule_of, agents, rate):
    """Of a core."""
    return rule_of["us_per_handshake"] * 1e-6 * rate + rule_of["percent_per_peer"] / 100 * (agents - 1)


def rate_by_rule(rule_of, agents):
    """At which RULE_CORE is reached; 0: heartbeats alone take more."""
    return max(0, RULE_CORE - cpu_by_rule(rule_of, agents, 0)) / (rule_of["us_per_handshake"] * 1e-6)


def row_text(r):
    after = r["returns"][-1]
    soon = r["returns"][0]
    returned = max(after["returned"], 1)
    good = 100 * (soon["at_once"] + soon["pulled"]) / max(soon["returned"], 1)
    return (f"{name_of(r)} | {100 * after['at_once'] / returned:.1f} | {100 * after['pulled'] / returned:.1f} | "
            f"{100 * after['missed'] / returned:.3f} | {good:.2f} | {r['megabits_per_s']:.1f} | {100 * r['cpu']:.1f} | "
            f"{100 * r['cpu_with_pulls']:.1f} | {r['staleness_p50_ms']:.0f} | {r['staleness_p99_ms']:.0f} | "
            f"{r['standing_mb'] / 1000:.1f}")


HEAD = ("held by | at once % | pulled % | missed % | resumed after 1 ms % | Mbit/s | CPU % | CPU with pulls % | p50 ms | p99 ms | "
        "store GB")


def table(first_title, rows, first):
    yield f"| {first_title} | {HEAD} |"
    yield "| --- " * (HEAD.count("|") + 2) + "|"
    for r in rows:
        yield f"| {first(r)} | {row_text(r)} |"


def cost_table(report):
    yield "| what | peers | in a turn | in a datagram | bytes each and peer | sender us | receiver us |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for i, run in enumerate(report["measured"][0]["runs"]):
        same = [m["runs"][i] for m in report["measured"]]

        def median(key, of=same):
            return statistics.median(r[key] for r in of)
        yield (f"| {run['what']} | {run['peers']} | {run['objects_per_turn']} | {median('objects') / median('datagrams'):.1f} | "
               f"{median('bytes_per_object_and_peer'):.0f} | {median('sender_us'):.2f} | {median('receiver_us'):.2f} |")


def batched(report, what):
    """us for each peer at the sender and us at a receiver, for objects in full datagrams."""
    runs = {}
    for m in report["measured"]:
        for r in m["runs"]:
            if r["what"] == what:
                runs.setdefault((r["peers"], r["objects_per_turn"]), []).append(r)
    turn = max(t for _, t in runs)
    few, many = min(p for p, _ in runs), max(p for p, _ in runs)
    sender = {p: statistics.median(r["sender_us"] for r in runs[p, turn]) for p in (few, many)}
    return (sender[many] - sender[few]) / (many - few), statistics.median(r["receiver_us"] for r in runs[many, turn])


def rule_text(report):
    r = report["rule"]
    rates = ", ".join(f"{rate_by_rule(r, agents):,.0f} with {agents} agents" for agents in RULE_AGENTS)
    return (
        "**Rule of thumb (simulated).** By default all sessions and all live parts go to all agents. Then each agent pays at most "
        f"{r['us_per_handshake']:g} us of CPU\nfor each handshake of the whole cluster, plus {r['percent_per_peer']:g} % of a core "
        "for each peer, because of heartbeats. This holds for each row of\nthe first table below. 10 % of a core are reached at so many "
        f"handshakes/s: {rates}.\nAbove, look whether `live: carried` with `replicas` is enough less: the second table has "
        "both. Then most resumptions ask another agent once.\n`replicas: 1` leaves one copy when an agent dies. "
        "If heartbeats cost more than handshakes, raise `heartbeat`.")


WHAT_IS_SENT = """\
After each handshake its agent tells all agents the new session and, with `live: broadcast`, the live part of the connection, in the same
turn. With `live: carried` RAgent has the only copy of the live part; agents hear a *word* in its place: the connection exists. That word
goes to all agents, also with `replicas`. On a CSSL-SF listener the agent of the client's data then says the word that it has adopted
the connection, and later that it has ended. So in both modes each handshake makes two more words."""

COLUMNS = """\
The network loses 0.1 %, and takes 1-2 ms one way. A loop turn takes 1 ms, and sessions live 2 h. All figures are of one agent. Mbit/s:
what an agent sends; it receives as much. Clients come back to any agent, after 1 ms in the column that says so, else after a second. If
that agent does not have the session, it asks another agent for it. p50 and p99: how old a session is when it arrives. Store: the memory
for sessions that an agent would need to keep all of them; live parts have a quarter of the store's size on top."""

LIMITS = """\
Numbering, rings, datagrams, gaps, questions, repeats and placement are the agents' own code in virtual time; a test holds the simulation
against three real agents with 10 % loss, which share sessions and live parts. All agents send, eight receive: agents are alike. Sealing
and sockets are the cost above. With replicas an agent numbers each word for each peer; that is counted as if it were another word.
Not in it: handshakes themselves, pings between agents (each pair five times a second, over their links), live parts of later moves, and
the bytes of snapshots. An agent that is not watched has a session it holds after as long a time as watched ones needed."""


def cost_text(report):
    c, first = report["cost"], report["measured"][0]
    yield (f"An encoded session has {first['session_bytes']} bytes, a live part {first['live_bytes']}. Medians of "
           f"{len(report['measured'])} rounds on loopback, idle costs taken off;\nbytes with UDP and IP headers. In full datagrams:")
    yield ""
    for what in ("session", "live part", "word"):
        sender, receiver = batched(report, what)
        target = " (targets 1.5 and 3)" if what == "session" else ""
        yield f"- a {what}: **{sender:.2f} us for each peer at the sender, {receiver:.2f} us at a receiver**{target}"
    yield ""
    yield from cost_table(report)
    yield ""
    yield "| ns | session | live part | word | a datagram | a datagram to a peer |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield ("| to encode, store and number; to seal; to send | " +
           " | ".join(f"{c[part]:.0f}" for part in ("session_ns", "live_ns", "word_ns", "datagram_ns", "datagram_peer_ns")) + " |")
    yield ("| to take in; to receive and open | " + " | ".join(
        f"{c[part]:.0f}" for part in ("received_session_ns", "received_live_ns", "received_word_ns", "received_datagram_ns")) + " | |")


def simulated_tables(report):
    by_size = {"first_title": "agents, handshakes/s", "first": lambda r: f"{r['agents']}, {r['handshakes_per_s']:,.0f}"}
    yield from ("## Sizes, simulated", "", COLUMNS, "")
    yield from table(rows=report["sizes"], **by_size)
    yield from ("", "## Beside `live: carried`, simulated", "", "`replicas` is possible with `live: carried` only.", "")
    yield from table(rows=report["carried"], **by_size)
    yield from ("", "## Loss, simulated", "", "10 agents.", "")
    yield from table("loss %", report["losses"], lambda r: f"{100 * r['loss']:.0f}")
    yield from ("", "## Churn, simulated", "", "30 agents; one that dies is back after 5 s with nothing, and counts as gone after 3 s.", "")
    yield from table("deaths a minute", report["churns"], lambda r: f"{r['leaves_per_min']:.0f}")


def markdown(report):
    lines = ["# How far the broadcast of sessions and live parts carries", ""]
    lines += [*machine_lines(report["machine"], "haproxy", "nginx", "hitch"), TERMS]
    lines += ["", rule_text(report), "",
              "![Simulated: CPU of full broadcast](scaling-full.svg)", "", "![Simulated: CPU by replicas](scaling-replicas.svg)", "",
              "## What is sent", "", WHAT_IS_SENT, "", "## What it costs, measured", ""]
    lines += [*cost_text(report), "", *simulated_tables(report), "", "## What is simulated, and what is not", "", LIMITS, ""]
    return "\n".join(lines)


def figures(report):
    return {"scaling-full.svg": cpu_plot(report["sizes"]), "scaling-replicas.svg": replicas_plot(report["carried"])}


def main(options):
    """`options`: name, out, rounds, quick, course."""
    facts = machine.facts(ROOT)
    options.course.plan((1, 2 * options.rounds), *simulations(options.quick))
    cost, measured = measure_cost(options.rounds, options.quick)
    options.course.done("cost of sessions and live parts, measured")
    simulate = Simulator(cost, measured[0]["live_bytes"], options.course)
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "cost": cost, "measured": measured}
    for name, part in SIMULATED.items():
        report[name] = part(simulate, options.quick)
    report["rule"] = rule(report["sizes"], report["silence"])
    save(options, report, markdown, figures)
