"""The memory of an idle connection, for ./cssl bench compare and ./cssl bench change: private memory of the tiers."""

import dataclasses
import time

from bench.experiments import load
from bench.experiments.cluster import Cluster
from bench.experiments.compare_systems import of_cluster, others_for_memory
from bench.experiments.peers import Place
from bench.experiments.processes import private_bytes

REST_AFTER_S = 2
WARM_UP, WARM_CLIENTS = 3, 64
ARRIVALS_PER_S = 200  # so few that their handshakes, which need far more memory, hardly overlap

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
    return private_bytes(system.pids)


def measure_memory(system, crowd, cluster=None, settle=lambda: None):
    """The tiers' memory for each of so many further connections, after as many first ones. Memory that the first connections
    needed, or overlapping handshakes, is taken before and does not count; neither do the rings of agents for their last
    messages. A tier that gives such memory back has to take it again, and one that keeps it uses its holes: so `all_bytes`
    has the private memory of the tiers at the end, with both crowds."""
    def arriving():
        return load.held(system.port, crowd.clients, "--path", "/5", "--ramp", crowd.clients / ARRIVALS_PER_S)

    load.run(system.port, "--connections", WARM_UP * crowd.clients, "--clients", WARM_CLIENTS, "--path", "/5")
    with arriving():
        before, beside = _settled_bytes(system, crowd, settle), _beside(cluster)
        with arriving():
            after = _settled_bytes(system, crowd, settle)
            clients = crowd.clients
            return {"system": system.name, "connections": clients, "silent_s": crowd.silent_s,
                    "bytes": (after - before) / clients, "all_bytes": after,
                    "beside": {key: (value - beside[key]) / clients for key, value in _beside(cluster).items()}}


def measure_ours(folder, backend, name, rest_after, crowd):
    """Uses a cluster without earlier connections: it would reuse their memory."""
    with Cluster(folder / name, backend, listeners={"one": {"rest_after": rest_after}}) as cluster:
        system = of_cluster(f"CSSL-SF {name}", cluster, cluster.ports["one"], [])
        return measure_memory(system, crowd, cluster, lambda: rest_after != "off" and _wait_for_rest(cluster))


def measure_memories(folder, crowd):
    with Place(folder / "memory") as place:
        port, pids = place.nginx("backend")
        backend = place.host, port
        yield measure_ours(folder, backend, "idle", "off", crowd)
        yield measure_ours(folder, backend, "resting", f"{REST_AFTER_S}s", crowd)
        for system in others_for_memory(place, place.certificate(), port, pids):
            yield measure_memory(system, crowd)
