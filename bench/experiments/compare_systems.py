"""The systems of ./cssl bench compare: CSSL clusters and other servers, with the tiers of each, its links and its scheduling."""

import contextlib
import dataclasses

from bench.experiments.cluster import Cluster
from bench.experiments.peers import Place
from bench.experiments.processes import cpu_ns

IN_TURNS, DEFAULT = "SCHED_BATCH", "default"
MEMORY, TCP, TCP_SEALED = "memory", "tcp", "tcp-sealed"
LINKS = {MEMORY: "shared memory, trusted", TCP: "TCP, trusted", TCP_SEALED: "TCP, sealed"}
USUAL = {"resumption": "local"}  # the front door has round-robin, too
SPREAD = {**USUAL, "affinity_bound": 1.25}
CLEAR, NONE = "TCP, in the clear", "none"


@dataclasses.dataclass
class System:
    """An address to connect to, and the processes that do the work: {tier: pids}, and the backend if it is a process of its own."""
    name: str
    port: int
    tiers: dict
    backend: list
    links: str = NONE  # between the tiers
    scheduling: str = IN_TURNS

    @property
    def pids(self):
        return sum(self.tiers.values(), [])

    def cpu_ns(self):
        """{tier: ns}, and the backend's ns."""
        return {name: cpu_ns(pids) for name, pids in self.tiers.items()}, cpu_ns(self.backend)


def of_cluster(name, cluster, port, backend_pids, link=MEMORY, scheduling=IN_TURNS):
    tiers = {"RAgent": cluster.ragent, "agents": sum(cluster.agents.values(), [])}
    return System(name, port, tiers, backend_pids, LINKS[link], scheduling)


@contextlib.contextmanager
def systems(folder):
    """{name: System}."""
    with Place(folder / "peers") as place, contextlib.ExitStack() as stack:
        with place.in_turns():
            backend, backend_pids = place.nginx("backend")

        def cluster(name, link=MEMORY, **more):
            listeners = {"usual": USUAL, "spread": SPREAD, "fresh": {**USUAL, "backend": "fresh"}}
            return stack.enter_context(Cluster(folder / name, (place.host, backend), link, listeners, **more))

        first = cluster("memory")
        found = [*_ours(cluster, first, backend_pids), *_theirs(place, first.tls["ecdsa"], backend, backend_pids)]
        yield {s.name: s for s in found}


def _ours(cluster, first, backend_pids):
    yield of_cluster("CSSL-SF", first, first.ports["usual"], backend_pids)
    yield of_cluster("CSSL-SF spread", first, first.ports["spread"], backend_pids)
    yield of_cluster("CSSL-SF any agent", first, first.ports["sf"], backend_pids)
    yield of_cluster("CSSL-SL", first, first.ports["sl"], backend_pids)
    yield of_cluster("CSSL-SF fresh", first, first.ports["fresh"], backend_pids)
    for link, name in ((TCP, "TCP"), (TCP_SEALED, "TCP sealed")):
        c = cluster(link, link)
        yield of_cluster(f"CSSL-SF {name}", c, c.ports["usual"], backend_pids, link)
        yield of_cluster(f"CSSL-SL {name}", c, c.ports["sl"], backend_pids, link)
    c = cluster("workers", workers=2)
    yield of_cluster("CSSL-SF 2 workers", c, c.ports["usual"], backend_pids)
    c = cluster("default")
    c.schedule_by_default()
    for mode, listener in (("SF", "usual"), ("SL", "sl")):
        yield of_cluster(f"CSSL-{mode} default", c, c.ports[listener], backend_pids, scheduling=DEFAULT)


def _haproxy(place, name, tls, backend, backend_pids, reuse="always"):
    port, pids = place.haproxy_tls(name.replace(" ", "-"), tls, [backend], reuse)
    return System(name, port, {"HAProxy": pids}, backend_pids)


def _before_hitches(place, name, hitches, backend_pids, balance="roundrobin"):
    port, pids = place.haproxy_tcp(name.replace(" ", "-"), [p for p, _ in hitches], balance)
    return System(name, port, {"HAProxy": pids, "hitches": sum((p for _, p in hitches), [])}, backend_pids, CLEAR)


def _before_nginxes(place, name, tls, sessions=""):
    """Here one nginx is tier and backend: it answers by itself."""
    nginxes = place.nginx_pair(name.replace(" ", "-"), tls, sessions)
    port, pids = place.haproxy_tcp(f"before-{name.replace(' ', '-')}", [p for p, _ in nginxes])
    return System(name, port, {"HAProxy": pids}, sum((p for _, p in nginxes), []), "TCP, TLS of the client")


def _theirs(place, tls, backend, backend_pids):
    with place.in_turns():
        yield _haproxy(place, "haproxy", tls, backend, backend_pids)
        yield _haproxy(place, "haproxy fresh", tls, backend, backend_pids, "never")
        hitches = place.hitch_pair(tls, backend)
        yield _before_hitches(place, "haproxy+hitch", hitches, backend_pids)
        # Two hitches share no sessions, so a client has to come back to the same one to resume.
        yield _before_hitches(place, "haproxy by address+hitch", hitches, backend_pids, "source")
        yield _before_nginxes(place, "haproxy+nginx", tls)
        yield _before_nginxes(place, "haproxy+nginx shared", tls, place.ticket_key())
    by_default = [_haproxy(place, "haproxy default", tls, backend, backend_pids),
                  _before_hitches(place, "haproxy+hitch default", place.hitch_pair(tls, backend), backend_pids),
                  _before_nginxes(place, "haproxy+nginx shared default", tls, place.ticket_key())]
    yield from (dataclasses.replace(system, scheduling=DEFAULT) for system in by_default)


def others_for_memory(place, tls, backend, backend_pids):
    yield _haproxy(place, "haproxy", tls, backend, backend_pids)
    yield _before_hitches(place, "haproxy+hitch", place.hitch_pair(tls, backend), backend_pids)
    answering = _before_nginxes(place, "haproxy+nginx", tls)
    yield dataclasses.replace(answering, tiers={**answering.tiers, "nginxes": answering.backend}, backend=[])
