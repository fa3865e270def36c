"""./cssl bench scaling: how large a cluster can be with a full broadcast of sessions, and from which size `replicas` is better.
The cost of a session on its way to another agent is measured here, on the agents' own code (cssl-bench broadcast). Clusters
of up to 1,000 agents are simulated in virtual time with that cost (cssl-bench simulate). No process in the simulation is
faster than on this machine, so the results hold for machines like this one."""

import json
import statistics
import subprocess

from bench.experiments import machine, plot
from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.report import machine_lines, save, say

REPLICAS = ("all", "1", "2", "3")
AGENTS = (3, 10, 30, 100, 300, 1000)
RATES = (1_000, 10_000, 100_000, 1_000_000)
PER_AGENT_MAX = 10_000  # handshakes a second: no machine makes more
LOSSES = (0, 1, 5, 10, 20)
CHURNS = (0, 6, 60)
RULE_CORE = 0.10  # of a core: more would be a concern
COST_PARTS = ("object_ns", "datagram_ns", "datagram_peer_ns", "received_datagram_ns", "received_object_ns")


def bench(*arguments):
    done = subprocess.run([build_folder() / "bench" / "cssl-bench", *map(str, arguments), "--json"], text=True, check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measure_cost(rounds, quick):
    """The median of each part over the rounds, and all runs."""
    measured = [bench("broadcast", "--objects", 2000 if quick else 50000) for _ in range(rounds)]
    cost = {part: statistics.median(m["cost"][part] for m in measured) for part in COST_PARTS}
    return cost, measured


def simulate(cost, **options):
    arguments = [x for name, value in options.items() for x in (f"--{name}", value)]
    return bench("simulate", "--cost", ",".join(f"{cost[part]:.0f}" for part in COST_PARTS), *arguments)


def sizes(cost, quick):
    """Every size of a cluster, at every rate that so many agents can make, with all replicas."""
    rows = []
    for agents in AGENTS[:2] if quick else AGENTS:
        for rate in RATES[:1] if quick else RATES:
            if rate / agents > PER_AGENT_MAX:
                continue
            say(f"{agents} agents, {rate} handshakes/s")
            replicas = [r for r in REPLICAS if r == "all" or int(r) < agents]
            rows += simulate(cost, agents=agents, rate=rate, replicas=",".join(replicas), loss=0.1)
    return rows


def losses(cost, quick):
    return simulate(cost, agents=10, rate=200 if quick else 10000, replicas="all,2", loss=",".join(map(str, LOSSES)))


def churns(cost, quick):
    rows = []
    for churn in CHURNS:
        rows += simulate(cost, agents=30, rate=100 if quick else 5000, replicas="all,1,2", churn=churn, seconds=5 if quick else 30,
                         left=3000, away=5000)
    return rows


def name_of(replicas):
    return f"replicas: {replicas}" if replicas else "all"


def cpu_plot(rows):
    series = {f"{rate:,}/s": [(r["agents"], 100 * r["cpu"]) for r in rows if r["replicas"] == 0 and r["handshakes_per_s"] == rate]
              for rate in RATES}
    return plot.lines("CPU of full broadcast on each agent", "agents", "% of a core", {k: s for k, s in series.items() if s}, 100)


def replicas_plot(rows, rate):
    series = {name_of(n): [(r["agents"], 100 * r["cpu_with_pulls"]) for r in rows
                           if r["replicas"] == n and r["handshakes_per_s"] == rate] for n in (0, 1, 2, 3)}
    return plot.lines(f"CPU on each agent at {rate:,} handshakes/s", "agents", "% of a core",
                      {k: s for k, s in series.items() if s}, 100)


def rule(rows):
    """The CPU of full broadcast grows with the handshakes of the whole cluster. Returns the most that one handshake costs, where
    heartbeats do not matter."""
    per_handshake = max(r["cpu"] / r["handshakes_per_s"] for r in rows if r["replicas"] == 0 and r["agents"] <= 100
                        and r["handshakes_per_s"] >= 10_000) if any(r["handshakes_per_s"] >= 10_000 for r in rows) else \
        max(r["cpu"] / r["handshakes_per_s"] for r in rows if r["replicas"] == 0)
    return per_handshake * 1e6, RULE_CORE / per_handshake


def row_text(r):
    after = r["returns"][-1]
    soon = r["returns"][0]
    returned = max(after["returned"], 1)
    good = 100 * (soon["at_once"] + soon["pulled"]) / max(soon["returned"], 1)
    return (f"{name_of(r['replicas'])} | {100 * after['at_once'] / returned:.1f} | {100 * after['pulled'] / returned:.1f} | "
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
    yield "| peers | sessions a turn | sessions in a datagram | bytes a session and peer | sender us | receiver us |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for i, run in enumerate(report["measured"][0]["runs"]):
        same = [m["runs"][i] for m in report["measured"]]

        def median(key, of=same):
            return statistics.median(r[key] for r in of)
        yield (f"| {run['peers']} | {run['sessions_per_turn']} | {median('sessions') / median('datagrams'):.1f} | "
               f"{median('bytes_per_session_and_peer'):.0f} | {median('sender_us'):.2f} | {median('receiver_us'):.2f} |")


def batched(report):
    """us for each peer at the sender and us at a receiver, for sessions in full datagrams."""
    runs = {}
    for m in report["measured"]:
        for r in m["runs"]:
            runs.setdefault((r["peers"], r["sessions_per_turn"]), []).append(r)
    turn = max(t for _, t in runs)
    few, many = min(p for p, _ in runs), max(p for p, _ in runs)
    sender = {p: statistics.median(r["sender_us"] for r in runs[p, turn]) for p in (few, many)}
    return (sender[many] - sender[few]) / (many - few), statistics.median(r["receiver_us"] for r in runs[many, turn])


def markdown(report):
    us, rate = rule(report["sizes"])
    sender, receiver = batched(report)
    c = report["cost"]
    lines = ["# How far the broadcast of sessions carries", ""]
    lines += machine_lines(report["machine"], "haproxy", "nginx", "hitch")
    lines += ["", "**Rule of thumb.** With full broadcast (`replicas: all`) each agent pays at most "
              f"{us:.0f} us of CPU for each handshake of the whole cluster, however many agents there are: 10 % of a core at "
              f"{rate:,.0f} handshakes/s. Up to there keep it: every resumption finds its session where it arrives. Above, or when the "
              "store cannot hold what its lifetime asks for on every agent, take `replicas: 2`: CPU, bandwidth and memory of an "
              "agent then fall with the number of agents, and most resumptions ask another agent once, which costs a round trip "
              "between agents. `replicas: 1` saves little more and leaves one copy when an agent dies. From some hundred agents on "
              "heartbeats cost more than sessions: raise `heartbeat`.", "",
              "![CPU of full broadcast](scaling-full.svg)", "", "![CPU by replicas](scaling-replicas.svg)", "",
              "## What a session costs", "",
              f"An encoded session has {report['measured'][0]['session_bytes']} bytes. In full datagrams: **{sender:.2f} us for each "
              f"peer at the sender** (target 1.5), **{receiver:.2f} us at a receiver** (target 3). Medians of "
              f"{len(report['measured'])} rounds on loopback, idle costs taken off; bytes with UDP and IP headers.", ""]
    lines += cost_table(report)
    lines += ["", f"In parts: {c['object_ns']:.0f} ns to encode, store and number a session, {c['datagram_ns']:.0f} ns to seal and "
              f"flush a datagram, {c['datagram_peer_ns']:.0f} ns to send it to a peer; {c['received_datagram_ns']:.0f} ns to receive "
              f"and open one, {c['received_object_ns']:.0f} ns to take a session in.", "",
              "## Sizes", "",
              "The network loses 0.1 %, and takes 1-2 ms one way. A loop turn takes 1 ms, and sessions live 2 h. All figures are of one "
              "agent. Mbit/s: what an agent sends; it receives as much. Clients come back to any agent, after 1 ms in the column that "
              "says so, else after a second. If that agent does not have the session, it asks another agent for it. p50 and p99: how "
              "old a session is when it arrives. Store: the memory for sessions that an agent would need to keep all of them.", ""]
    lines += table("agents, handshakes/s", report["sizes"], lambda r: f"{r['agents']}, {r['handshakes_per_s']:,.0f}")
    lines += ["", "## Loss", "", "10 agents.", ""]
    lines += table("loss %", report["losses"], lambda r: f"{100 * r['loss']:.0f}")
    lines += ["", "## Churn", "", "30 agents; one that dies is back after 5 s with nothing, and counts as gone after 3 s.", ""]
    lines += table("deaths a minute", report["churns"], lambda r: f"{r['leaves_per_min']:.0f}")
    lines += ["", "## What is simulated, and what is not", "",
              "Numbering, rings, datagrams, gaps, questions, repeats and placement are the agents' own code in virtual time; a test holds "
              "the simulation against three real agents with 10 % loss. All agents send, eight receive: agents are alike. Sealing "
              "and sockets are the cost above. Not in it: handshakes themselves, pings between agents (each pair five times a second, over "
              "their links), live parts (`live: carried`), and the bytes of snapshots. An agent that is not watched has a session it "
              "holds after as long a time as watched ones needed.", ""]
    return "\n".join(lines)


def main(options):
    """`options`: name, out, rounds, quick."""
    facts = machine.facts(ROOT)
    say("cost of a session")
    cost, measured = measure_cost(options.rounds, options.quick)
    report = {"machine": facts, "quick": options.quick, "cost": cost, "measured": measured,
              "sizes": sizes(cost, options.quick), "losses": losses(cost, options.quick)}
    say("churn")
    report["churns"] = churns(cost, options.quick)
    save(options, report, markdown(report), {
        "scaling-full.svg": cpu_plot(report["sizes"]),
        "scaling-replicas.svg": replicas_plot(report["sizes"], RATES[0] if options.quick else 100_000)})
