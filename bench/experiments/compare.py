"""./cssl bench compare: the cost of a unit of work on the server side, for CSSL and other servers. In each round every system
does its works one after the other, in turning order. The result for two systems is the median of the ratios of such pairs,
because an absolute time means nothing on a shared machine. All use the same version, suite and group. A run with other
values, or without the resumptions that it should have, raises an error."""

import contextlib
import dataclasses
import pathlib
import time

from bench.experiments import load, machine
from bench.experiments.cluster import ROOT, Cluster
from bench.experiments.compare_page import markdown
from bench.experiments.compare_works import WORKS
from bench.experiments.peers import Place
from bench.experiments.processes import cpu_ns, private_bytes
from bench.experiments.report import save, say

REST_AFTER_S = 2
WARM_UP, WARM_CLIENTS = 3, 64
ARRIVALS_PER_S = 200  # so few that their handshakes, which need far more memory, hardly overlap


@dataclasses.dataclass
class System:
    """An address to connect to, and the processes that do the work: the tiers, and the backend if it is a process of its own."""
    name: str
    port: int
    tiers: list
    backend: list

    def cpu_ns(self):
        return cpu_ns(self.tiers), cpu_ns(self.backend)


# Systems

@contextlib.contextmanager
def systems(folder):
    """{name: System}."""
    with Place(folder / "peers") as place, contextlib.ExitStack() as stack:
        backend, backend_pids = place.nginx("backend")

        def cluster(link, listeners=None, workers=1):
            return stack.enter_context(Cluster(folder / f"{link}{workers}", (place.host, backend), link, listeners, workers=workers))

        trusted = cluster("trusted", {"fresh": {"backend": "fresh"}})
        ours = {"trusted": trusted, "sealed": cluster("sealed"), "2 workers": cluster("trusted", workers=2)}
        all_systems = [*_ours(ours, backend_pids), *_theirs(place, trusted.tls["ecdsa"], backend, backend_pids),
                       *_theirs_in_turns(place, trusted.tls["ecdsa"], backend, backend_pids)]
        yield {s.name: s for s in all_systems}


def _ours(clusters, backend_pids):
    for name, c in clusters.items():
        yield System(f"CSSL-SF {name}", c.ports["sf"], c.pids, backend_pids)
        yield System(f"CSSL-SL {name}", c.ports["sl"], c.pids, backend_pids)
    trusted = clusters["trusted"]
    yield System("CSSL-SF fresh", trusted.ports["fresh"], trusted.pids, backend_pids)


def _file_name(system):
    return system.replace(" ", "-")


def _haproxy(place, name, tls, backend, backend_pids, reuse="always"):
    port, pids = place.haproxy_tls(_file_name(name), tls, [backend], reuse)
    return System(name, port, pids, backend_pids)


def _before_hitches(place, name, hitches, backend_pids, balance="roundrobin"):
    port, pids = place.haproxy_tcp(_file_name(name), [p for p, _ in hitches], balance)
    return System(name, port, pids + sum((p for _, p in hitches), []), backend_pids)


def _before_nginxes(place, name, tls, sessions=""):
    """Here one nginx is tier and backend: it answers by itself."""
    nginxes = place.nginx_pair(_file_name(name), tls, sessions)
    port, pids = place.haproxy_tcp(f"before-{_file_name(name)}", [p for p, _ in nginxes])
    return System(name, port, pids, sum((p for _, p in nginxes), []))


def _theirs(place, tls, backend, backend_pids):
    yield _haproxy(place, "haproxy", tls, backend, backend_pids)
    yield _haproxy(place, "haproxy fresh", tls, backend, backend_pids, "never")
    hitches = place.hitch_pair(tls, backend)
    yield _before_hitches(place, "haproxy+hitch", hitches, backend_pids)
    # Two hitches share no sessions, so a client has to come back to the same one to resume.
    yield _before_hitches(place, "haproxy by address+hitch", hitches, backend_pids, "source")
    yield _before_nginxes(place, "haproxy+nginx", tls)
    yield _before_nginxes(place, "haproxy+nginx shared", tls, place.ticket_key())


def _theirs_in_turns(place, tls, backend, backend_pids):
    with place.in_turns():
        yield _haproxy(place, "haproxy in turns", tls, backend, backend_pids)
        yield _before_hitches(place, "haproxy+hitch in turns", place.hitch_pair(tls, backend), backend_pids)
        yield _before_nginxes(place, "haproxy+nginx shared in turns", tls, place.ticket_key())


# Costs

def _check(work, system, result):
    """Check that the run was the one that should be measured."""
    full, resumed = result["counts"]["full"], result["counts"]["resumed"]
    if list(result["suites"]) != [work.tls.text()]:
        raise load.LoadError(f"{work.name}, {system.name}: {result['suites']} instead of {work.tls.text()}")
    if resumed < work.resumed * (full + resumed):
        raise load.LoadError(f"{work.name}, {system.name}: only {resumed} of {full + resumed} handshakes were resumptions")


def measure(work, system, is_quick):
    """One run: a dict of figures."""
    before = system.cpu_ns()
    result = load.run(system.port, *work.options, *work.tls.options(), *(work.quick if is_quick else ()))
    tiers, backend = (after - b for after, b in zip(system.cpu_ns(), before))
    _check(work, system, result)
    units = work.units(result)
    full = result["latency"]["full"]
    generators_s = sum(g["cpu"] for g in result["generators"]) * result["seconds"]
    return {"work": work.name, "system": system.name, "units": units, "tiers_us": tiers / units / 1000,
            "backend_us": backend / units / 1000, "total_us": (tiers + backend) / units / 1000,
            "full": result["counts"]["full"], "resumed": result["counts"]["resumed"],
            "per_s": units / result["seconds"], "p50_us": full["p50_us"], "p99_us": full["p99_us"],
            "generator_us": generators_s * 1e6 / units, "generators": result["generators"]}


def measure_rounds(all_systems, rounds, is_quick):
    runs = []
    for number in range(rounds):
        for work in WORKS.values():
            first = number % len(work.systems)
            for name in work.systems[first:] + work.systems[:first]:
                runs.append({"round": number, **measure(work, all_systems[name], is_quick)})
            say(f"round {number + 1} of {rounds}: {work.name}")
    return runs


# Memory

MEASURED_IDLE = ("haproxy", "haproxy+hitch", "haproxy+nginx")
BESIDE = ("sessions", "session_bytes", "live_parts", "live_bytes")


def _beside(cluster):
    """The memory of an agent for sessions and for the memory of other agents' connections. It is a part of its private memory."""
    agents = cluster.control("/v1/counters")["agents"].values() if cluster else []
    return {key: sum(a[key] for a in agents) for key in BESIDE}


def _wait_for_rest(cluster):
    end = time.monotonic() + REST_AFTER_S + 30
    while sum(a["connections"] for a in cluster.control("/v1/status")["agents"]):
        if time.monotonic() > end:
            raise RuntimeError("connections do not come to rest")
        time.sleep(0.2)


@dataclasses.dataclass
class Crowd:
    """Connections that come and stay. There have to be many, because agents take pages for sessions by the megabyte."""
    clients: int
    silent_s: float  # wait so long before measuring memory: RAgent gives most of it back only then (`doze_after`)


def _settled_bytes(system, crowd, settle):
    settle()
    time.sleep(crowd.silent_s)
    return private_bytes(system.tiers)


def measure_memory(system, crowd, cluster=None, settle=lambda: None):
    """The tiers' memory for each of so many further connections, after as many first ones. Memory that the first connections
    needed, or overlapping handshakes, is taken before and does not count; neither do the rings of agents for their last
    messages."""
    def arriving():
        return load.held(system.port, crowd.clients, "--path", "/5", "--ramp", crowd.clients / ARRIVALS_PER_S)

    load.run(system.port, "--connections", WARM_UP * crowd.clients, "--clients", WARM_CLIENTS, "--path", "/5")
    with arriving():
        before, beside = _settled_bytes(system, crowd, settle), _beside(cluster)
        with arriving():
            after = _settled_bytes(system, crowd, settle)
            clients = crowd.clients
            return {"system": system.name, "connections": clients, "silent_s": crowd.silent_s,
                    "bytes": (after - before) / clients,
                    "beside": {key: (value - beside[key]) / clients for key, value in _beside(cluster).items()}}


def measure_ours(folder, backend, name, rest_after, crowd):
    """Uses a cluster without earlier connections: it would reuse their memory."""
    with Cluster(folder / name, backend, listeners={"one": {"rest_after": rest_after}}) as cluster:
        system = System(f"CSSL-SF {name}", cluster.ports["one"], cluster.pids, [])
        return measure_memory(system, crowd, cluster, lambda: rest_after != "off" and _wait_for_rest(cluster))


def measure_memories(folder, crowd):
    with Place(folder / "memory") as place:
        port, pids = place.nginx("backend")
        backend = place.host, port
        yield measure_ours(folder, backend, "idle", "off", crowd)
        yield measure_ours(folder, backend, "resting", f"{REST_AFTER_S}s", crowd)
        for system in _theirs(place, place.certificate(), port, pids):
            if system.name in MEASURED_IDLE:
                # Where nginx answers by itself there is no backend.
                tiers = system.tiers + (system.backend if system.backend is not pids else [])
                yield measure_memory(dataclasses.replace(system, tiers=tiers), crowd)


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick."""
    facts = machine.facts(ROOT)
    folder = pathlib.Path(options.folder)
    with systems(folder) as all_systems:
        runs = measure_rounds(all_systems, options.rounds, options.quick)
    say("memory")
    memory = list(measure_memories(folder, Crowd(60, 1) if options.quick else Crowd(4000, 7)))
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "runs": runs, "memory": memory}
    save(options, report, markdown(report))
