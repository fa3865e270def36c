"""./cssl bench scaling: how large a cluster can be with a full broadcast of sessions and live parts, which is the default, beside
`live: carried` and `replicas`. The cost of an object on its way to another agent is measured here, on the agents' own code
(cssl-bench broadcast). The load of an agent in clusters of up to 1,000 is computed from that cost."""

import json
import math
import statistics
import subprocess

from bench.experiments import machine, plot
from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.report import machine_lines, save

CARRIED_REPLICAS = (0, 1, 2, 3)  # 0: all
AGENTS = (3, 10, 30, 100, 300, 1000)
RATES = (1_000, 10_000, 100_000, 1_000_000)
PER_AGENT_MAX = 10_000  # handshakes a second: no machine makes more
CARRIED_RATE = 100_000  # of the comparison; a smaller cluster makes as much as it can
RULE_CORE = 0.10  # of a core: more would be a concern
RULE_AGENTS = (3, 10, 100)  # for which the page says where that is
TERMS = "- scheduling: the kernel's default, where CPU is measured; no links of RAgent: the broadcast is UDP, sealed"
TURNS = 1_000  # of a loop, a second
HEARTBEATS = 10  # a second
LATER_WORDS = 2  # for each handshake: an agent has adopted its connection; it has ended
LIFETIME_S = 7_200  # of a session
STORED_MORE = 200  # bytes of a stored session beside its encoded form
ROOM, AROUND = 1_344, 72  # bytes of a datagram: for messages; of its headers and tag, with UDP and IP
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


def sizes_of(measured):
    """Bytes of a session, a live part and a word as messages in a datagram."""
    alone = {run["what"]: run["bytes_per_object_and_peer"] for run in measured["runs"] if run["objects_per_turn"] == 1}
    return {what: bytes_each - AROUND for what, bytes_each in alone.items()}


def poisson(mean):
    """The chance of 0, 1, 2 ... where `mean` is the average, as far as it matters."""
    chances, chance = [], math.exp(-mean)
    while len(chances) <= mean or chance > 1e-9:
        chances.append(chance)
        chance *= mean / len(chances)
    return chances


def datagrams_of_a_turn(first, second):
    """The mean number; each is (mean number of messages, bytes of one)."""
    return sum(p * q * math.ceil((i * first[1] + j * second[1]) / ROOM)
               for i, p in enumerate(poisson(first[0])) for j, q in enumerate(poisson(second[0])))


def load(cost, measured, agents, rate, live="broadcast", replicas=0):
    """A row: an agent of a cluster in which clients make `rate` handshakes a second. With replicas each peer has a stream of its own,
    in which each word is numbered."""
    size, own, peers = sizes_of(measured), rate / agents, agents - 1
    other = "live part" if live == "broadcast" else "word"  # sent beside the session
    told = replicas / agents if replicas else 1  # of the sessions, to one peer
    session = (told * own / TURNS, size["session"] + (0 if replicas else size[other]))
    words = ((LATER_WORDS + bool(replicas)) * own / TURNS, size["word"])
    each = TURNS * datagrams_of_a_turn(session, words) + HEARTBEATS * math.exp(-session[0] - words[0])  # datagrams to a peer
    part = {"live part": "live", "word": "word"}[other]
    sender = (cost["session_ns"] + (cost[f"{part}_ns"] + LATER_WORDS * cost["word_ns"]) * (peers if replicas else 1)) * own
    sender += each * (peers * (cost["datagram_ns"] + cost["datagram_peer_ns"]) if replicas else
                      cost["datagram_ns"] + peers * cost["datagram_peer_ns"])
    receiver = peers * (own * (told * cost["received_session_ns"] + cost[f"received_{part}_ns"] + LATER_WORDS * cost["received_word_ns"])
                        + each * cost["received_datagram_ns"])
    at_once = 1 / agents + (1 - 1 / agents) * told
    pull = 2 * (cost["datagram_ns"] + cost["datagram_peer_ns"] + cost["received_datagram_ns"]) + cost["received_session_ns"]
    cpu = (sender + receiver) / 1e9
    return {"live": live, "agents": agents, "handshakes_per_s": rate, "replicas": replicas, "at_once": at_once,
            "datagrams_per_s": peers * each,
            "megabits_per_s": peers * (each * AROUND + TURNS * (session[0] * session[1] + words[0] * words[1])) * 8 / 1e6,
            "cpu": cpu, "cpu_with_pulls": cpu + own * (1 - at_once) * pull / 1e9,
            "standing_mb": at_once * rate * LIFETIME_S * (measured["session_bytes"] + STORED_MORE) / 1e6}


def sizes(cost, measured):
    """The default, at every size of a cluster and every rate that so many agents can make."""
    return [load(cost, measured, agents, rate) for agents in AGENTS for rate in RATES if rate / agents <= PER_AGENT_MAX]


def carried(cost, measured):
    """`live: carried`, with all numbers of replicas."""
    rows = []
    for agents in AGENTS:
        rate = min(CARRIED_RATE, agents * PER_AGENT_MAX // 3)
        rows.append(load(cost, measured, agents, rate))
        rows += [load(cost, measured, agents, rate, "carried", replicas) for replicas in CARRIED_REPLICAS if replicas < agents]
    return rows


def computed(cost, measured):
    report = {"sizes": sizes(cost, measured), "carried": carried(cost, measured)}
    report["rule"] = rule(report["sizes"], [load(cost, measured, agents, 1) for agents in AGENTS])
    return report


def name_of(row):
    if row["live"] == "broadcast":
        return "live: broadcast"
    return f"carried, replicas: {row['replicas'] or 'all'}"


def cpu_plot(rows):
    series = {f"{rate:,}/s": [(r["agents"], 100 * r["cpu"]) for r in rows if r["handshakes_per_s"] == rate] for rate in RATES}
    return plot.lines("Computed: CPU of full broadcast on each agent", "agents", "% of a core",
                      {k: s for k, s in series.items() if s}, 100)


def replicas_plot(rows):
    """Of the sizes with one rate."""
    rate = max(r["handshakes_per_s"] for r in rows)
    series = {}
    for r in rows:
        if r["handshakes_per_s"] == rate and r["replicas"] != 1:
            series.setdefault(name_of(r), []).append((r["agents"], 100 * r["cpu_with_pulls"]))
    return plot.lines(f"Computed: CPU on each agent at {rate:,.0f} handshakes/s", "agents", "% of a core", series, 100)


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
    return (f"{r['agents']}, {r['handshakes_per_s']:,.0f} | {name_of(r)} | {100 * r['at_once']:.1f} | {100 * (1 - r['at_once']):.1f} | "
            f"{r['megabits_per_s']:.1f} | {100 * r['cpu']:.1f} | {100 * r['cpu_with_pulls']:.1f} | {r['standing_mb'] / 1000:.1f}")


HEAD = "agents, handshakes/s | held by | at once % | pulled % | Mbit/s | CPU % | CPU with pulls % | store GB"


def table(rows):
    yield f"| {HEAD} |"
    yield "| --- " * (HEAD.count("|") + 1) + "|"
    for r in rows:
        yield f"| {row_text(r)} |"


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
        "**Rule of thumb (computed).** By default all sessions and all live parts go to all agents. Then each agent pays at most "
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
A loop turn takes 1 ms, and sessions live 2 h. All figures are of one agent. Mbit/s: what an agent sends; it receives as much. Clients
come back to any agent; pulled: that agent does not have the session, and asks another agent for it. Store: the memory for sessions that
an agent would need to keep all of them; live parts have a quarter of the store's size on top."""

LIMITS = """\
Agents are alike. Each makes its part of the handshakes and of the words, at any time, and tells its peers at the end of each turn: a
session and what belongs to it together. The number of datagrams follows from the bytes, and everything has the measured cost. With
replicas an agent numbers each word for each peer; that is counted as if it were another word.
Not in it: handshakes themselves, pings between agents (each pair five times a second, over their links), live parts of later moves,
snapshots, and what is repeated because a datagram was lost. Agents that lose 10 % of their datagrams still share all sessions and live
parts (the unit test_agents_here.c)."""


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


def computed_tables(report):
    yield from ("## Sizes, computed", "", COLUMNS, "")
    yield from table(report["sizes"])
    yield from ("", "## Beside `live: carried`, computed", "", "`replicas` is possible with `live: carried` only.", "")
    yield from table(report["carried"])


def markdown(report):
    lines = ["# How far the broadcast of sessions and live parts carries", ""]
    lines += [*machine_lines(report["machine"], "haproxy", "nginx", "hitch"), TERMS]
    lines += ["", rule_text(report), "",
              "![Computed: CPU of full broadcast](scaling-full.svg)", "", "![Computed: CPU by replicas](scaling-replicas.svg)", "",
              "## What is sent", "", WHAT_IS_SENT, "", "## What it costs, measured", ""]
    lines += [*cost_text(report), "", *computed_tables(report), "", "## What is computed, and what is not", "", LIMITS, ""]
    return "\n".join(lines)


def figures(report):
    return {"scaling-full.svg": cpu_plot(report["sizes"]), "scaling-replicas.svg": replicas_plot(report["carried"])}


def main(options):
    """`options`: name, out, rounds, quick, course."""
    facts = machine.facts(ROOT)
    options.course.plan((1, options.rounds))
    cost, measured = measure_cost(options.rounds, options.quick)
    options.course.done("cost of sessions and live parts, measured")
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "cost": cost, "measured": measured}
    save(options, {**report, **computed(cost, measured[0])}, markdown, figures)
