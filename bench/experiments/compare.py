"""./cssl bench compare: what a unit of work costs the server side, ours beside others, interleaved.

In each round every work is done by every system that takes part in it, one after the other and in turning order; what is said
of two systems is the median of the ratios of such pairs. One absolute time says nothing on a shared machine.
"""

import contextlib
import dataclasses
import json
import pathlib
import statistics
import sys
import time

from bench.experiments import load, machine
from bench.experiments.cluster import ROOT, Cluster
from bench.experiments.peers import Place
from bench.experiments.processes import cpu_ns, private_bytes

SETTLE_S = 1.0
REST_AFTER_S = 2
ARRIVALS_PER_S = 200  # so few that their handshakes, which need far more memory, hardly overlap


@dataclasses.dataclass
class System:
    """Somewhere to connect to, and the processes that do the work: the tiers, and the backend where it is apart."""
    name: str
    port: int
    tiers: list
    backend: list

    def cpu_ns(self):
        return cpu_ns(self.tiers), cpu_ns(self.backend)


@dataclasses.dataclass
class Work:
    """Something to do, as options of cssl-bench https; the number of its units is the count of that name, or bytes in MiB."""
    name: str
    unit: str
    options: tuple
    systems: tuple
    quick: tuple = ()  # options that come last in a quick run

    def units(self, result):
        return result["counts"]["bytes"] / (1 << 20) if self.unit == "MiB" else result["counts"][self.unit]


@dataclasses.dataclass
class Target:
    work: str
    ours: str
    peer: str
    ratio: float


SECONDS = ("--requests", "0", "--duration", "4")
QUICK = ("--duration", "0.3")

WORKS = [
    Work("full handshake + 5 KiB", "connections", ("--connections", "3000", "--path", "/5k", "--length", "5120"),
         ("CSSL-SF trusted", "CSSL-SF sealed", "haproxy", "haproxy+hitch", "haproxy+nginx"), ("--connections", "60")),
    Work("full handshake + 5 KiB, backend not reused", "connections", ("--connections", "3000", "--path", "/5k", "--length", "5120"),
         ("CSSL-SF fresh", "haproxy fresh"), ("--connections", "60")),
    Work("1,000 full + 2,000 resumed asked, 1 KiB", "connections",
         ("--connections", "3000", "--clients", "10", "--mix", "1:2", "--path", "/1k", "--length", "1024"),
         ("CSSL-SL trusted", "CSSL-SL sealed", "haproxy", "haproxy+nginx", "haproxy+nginx shared"),
         ("--connections", "60")),
    Work("keep-alive request, 1 KiB", "answers", (*SECONDS, "--clients", "64", "--path", "/1k", "--length", "1024"),
         ("CSSL-SF trusted", "CSSL-SF sealed", "haproxy", "haproxy+hitch", "haproxy+nginx"), QUICK),
    Work("keep-alive request, 1 KiB, backend not reused", "answers", (*SECONDS, "--clients", "64", "--path", "/1k", "--length", "1024"),
         ("CSSL-SF fresh", "haproxy fresh"), QUICK),
    Work("bulk", "MiB", (*SECONDS, "--clients", "4", "--path", "/1m", "--length", str(1 << 20)),
         ("CSSL-SF trusted", "CSSL-SF sealed", "haproxy", "haproxy+hitch", "haproxy+nginx"), QUICK),
]

TARGETS = [
    Target(WORKS[0].name, "CSSL-SF trusted", "haproxy", 1.00),
    Target(WORKS[0].name, "CSSL-SF trusted", "haproxy+hitch", 0.75),
    Target(WORKS[2].name, "CSSL-SL trusted", "haproxy+nginx shared", 0.90),
    Target(WORKS[3].name, "CSSL-SF trusted", "haproxy", 0.85),
    Target(WORKS[5].name, "CSSL-SF trusted", "haproxy", 0.85),
    Target(WORKS[4].name, "CSSL-SF fresh", "haproxy fresh", 0.85),
]


# Systems

@contextlib.contextmanager
def systems(folder):
    """{name: System}, and the clusters by their link protection."""
    with Place(folder / "peers") as place, contextlib.ExitStack() as stack:
        backend, backend_pids = place.nginx("backend")
        clusters = {}
        for link in ("trusted", "sealed"):
            clusters[link] = stack.enter_context(Cluster(folder / link, (place.host, backend), link, {
                "fresh": {"backend": "fresh"}, "idle": {"rest_after": "off"}, "resting": {"rest_after": f"{REST_AFTER_S}s"}}))
        yield {s.name: s for s in _systems(place, clusters, backend, backend_pids)}, clusters


def _systems(place, clusters, backend, backend_pids):
    tls = clusters["trusted"].tls["ecdsa"]
    for link, c in clusters.items():
        yield System(f"CSSL-SF {link}", c.ports["sf"], c.pids, backend_pids)
        yield System(f"CSSL-SL {link}", c.ports["sl"], c.pids, backend_pids)
    yield System("CSSL-SF fresh", clusters["trusted"].ports["fresh"], clusters["trusted"].pids, backend_pids)
    for name, reuse in (("haproxy", "always"), ("haproxy fresh", "never")):
        port, pids = place.haproxy_tls(name.replace(" ", "-"), tls, [backend], reuse)
        yield System(name, port, pids, backend_pids)
    hitches = place.hitch_pair(tls, backend)
    port, pids = place.haproxy_tcp("before-hitch", [p for p, _ in hitches])
    yield System("haproxy+hitch", port, pids + sum((p for _, p in hitches), []), backend_pids)
    # nginx is tier and backend in one here: it answers by itself.
    for name, sessions in (("haproxy+nginx", ""), ("haproxy+nginx shared", place.ticket_key())):
        nginxes = place.nginx_pair(name.replace(" ", "-"), tls, sessions)
        port, pids = place.haproxy_tcp(f"before-{name.replace(' ', '-')}", [p for p, _ in nginxes])
        yield System(name, port, pids, sum((p for _, p in nginxes), []))


# Costs

def measure(work, system, is_quick):
    """One run: a dict of figures."""
    before = system.cpu_ns()
    result = load.run(system.port, *work.options, *(work.quick if is_quick else ()))
    tiers, backend = (after - b for after, b in zip(system.cpu_ns(), before))
    units = work.units(result)
    full = result["latency"]["full"]
    return {"work": work.name, "system": system.name, "units": units, "tiers_us": tiers / units / 1000,
            "backend_us": backend / units / 1000, "total_us": (tiers + backend) / units / 1000,
            "full": result["counts"]["full"], "resumed": result["counts"]["resumed"],
            "per_s": units / result["seconds"], "p50_us": full["p50_us"], "p99_us": full["p99_us"],
            "generators": result["generators"]}


def measure_rounds(all_systems, rounds, is_quick, say):
    runs = []
    for number in range(rounds):
        for work in WORKS:
            first = number % len(work.systems)
            for name in work.systems[first:] + work.systems[:first]:
                runs.append({"round": number, **measure(work, all_systems[name], is_quick)})
            say(f"round {number + 1} of {rounds}: {work.name}")
    return runs


# Memory

BESIDE = ("sessions", "session_bytes", "live_parts")


def _beside(cluster):
    """What all agents keep of sessions and of each other's connections; it is part of their memory."""
    agents = cluster.control("/v1/counters")["agents"].values() if cluster else []
    return {key: sum(a[key] for a in agents) for key in BESIDE}


def _wait_for_rest(cluster):
    end = time.monotonic() + REST_AFTER_S + 30
    while sum(a["connections"] for a in cluster.control("/v1/status")["agents"]):
        if time.monotonic() > end:
            raise RuntimeError("connections do not come to rest")
        time.sleep(0.2)


def _settled_bytes(system, settle):
    settle()
    time.sleep(SETTLE_S)
    return private_bytes(system.tiers)


def measure_memory(system, clients, cluster=None, settle=lambda: None):
    """Of the tiers, for each of so many further connections behind half as many first ones: what a first connection brings
    about once is not in it."""
    def arriving(count):
        return load.held(system.port, count, "--path", "/5", "--ramp", count / ARRIVALS_PER_S)

    with arriving(clients // 2):
        before, beside = _settled_bytes(system, settle), _beside(cluster)
        with arriving(clients):
            after = _settled_bytes(system, settle)
            return {"system": system.name, "connections": clients, "bytes": (after - before) / clients,
                    "beside": {key: (value - beside[key]) / clients for key, value in _beside(cluster).items()}}


def measure_memories(all_systems, clusters, clients):
    trusted = clusters["trusted"]
    # nginx is tier and backend in one.
    nginx = all_systems["haproxy+nginx"]
    nginx = dataclasses.replace(nginx, tiers=nginx.tiers + nginx.backend)
    idle, resting = (System(f"CSSL-SF {name}", trusted.ports[name], trusted.pids, []) for name in ("idle", "resting"))
    return [measure_memory(idle, clients, trusted),
            measure_memory(resting, clients, trusted, lambda: _wait_for_rest(trusted)),
            *(measure_memory(s, clients) for s in (all_systems["haproxy"], all_systems["haproxy+hitch"], nginx))]


# What is said

def _values(runs, work, system, key):
    return [r[key] for r in sorted(runs, key=lambda r: r["round"]) if (r["work"], r["system"]) == (work, system)]


def ratios(runs, work, ours, peer):
    return [a / b for a, b in zip(_values(runs, work, ours, "total_us"), _values(runs, work, peer, "total_us"))]


def _effort(runs, work, system):
    efforts = {g["effort"] for r in runs if (r["work"], r["system"]) == (work, system) for g in r["generators"]}
    return "saturated" if "saturated" in efforts else "starved" if "starved" in efforts else ""


def _cost_table(runs, work):
    yield f"\n### {work.name}\n"
    yield f"CPU of the server side, us per {'MiB' if work.unit == 'MiB' else work.unit.rstrip('s')}; " \
          f"median of {len(_values(runs, work.name, work.systems[0], 'units'))} rounds.\n"
    yield "| system | total | least-most | tiers | backend | full / resumed | per s | p50 us | p99 us | generator |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in work.systems:
        median = {key: statistics.median(_values(runs, work.name, name, key))
                  for key in ("total_us", "tiers_us", "backend_us", "full", "resumed", "per_s", "p50_us", "p99_us")}
        total = _values(runs, work.name, name, "total_us")
        yield (f"| {name} | **{median['total_us']:.1f}** | {min(total):.1f}-{max(total):.1f} | {median['tiers_us']:.1f} | "
               f"{median['backend_us']:.1f} | {median['full']:.0f} / {median['resumed']:.0f} | {median['per_s']:.0f} | "
               f"{median['p50_us']:.0f} | {median['p99_us']:.0f} | {_effort(runs, work.name, name)} |")


def _target_table(runs):
    yield "\n## Ratios of pairs\n"
    yield "| work | ours | peer | ratio, median | least-most | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for t in TARGETS:
        r = ratios(runs, t.work, t.ours, t.peer)
        median = statistics.median(r)
        yield (f"| {t.work} | {t.ours} | {t.peer} | **{median:.2f}** | {min(r):.2f}-{max(r):.2f} | <= {t.ratio:.2f} | "
               f"{'met' if median <= t.ratio else 'missed'} |")


def _memory_table(rows):
    yield "\n## Memory\n"
    yield f"Private memory of the tiers for each further idle connection that had one answer; {ARRIVALS_PER_S} arrive a second. The\n" \
          "nginxes' is with that of HAProxy in front. Of the agents' some is kept for resumptions and for each other: sessions, their\n" \
          "bytes, and live parts, on all agents together.\n"
    yield "| system | bytes | connections | sessions | their bytes | live parts |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        beside = " | ".join(f"{row['beside'][key]:.{0 if key == 'session_bytes' else 1}f}" for key in BESIDE) \
            if any(row["beside"].values()) else " | | "
        yield f"| {row['system']} | **{row['bytes']:.0f}** | {row['connections']} | {beside} |"


def markdown(report):
    lines = ["# What a unit of work costs", ""]
    lines += [f"- {key}: {value}" for key, value in report["machine"].items()]
    lines += _target_table(report["runs"])
    lines += ["", "## Costs"]
    for work in WORKS:
        lines += _cost_table(report["runs"], work)
    lines += _memory_table(report["memory"])
    return "\n".join(lines) + "\n"


def main(options):
    """`options`: folder (for what runs), out, rounds, quick."""
    def say(text):
        print(f"bench: {text}", file=sys.stderr, flush=True)

    facts = machine.facts(ROOT)
    with systems(pathlib.Path(options.folder)) as (all_systems, clusters):
        runs = measure_rounds(all_systems, options.rounds, options.quick, say)
        say("memory")
        memory = measure_memories(all_systems, clusters, 60 if options.quick else 2000)
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "runs": runs, "memory": memory}
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "compare.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "compare.md").write_text(markdown(report))
    print(markdown(report))
    say(f"written: {out / 'compare.md'}, {out / 'compare.json'}")
