"""The systems of the paper, made of today's programs: for each its entry, and the two servers whose work is compared. A `server
machine` of the paper is a process with a fixed share of a core (quota.py). The programs in front (a TCP balancer, RAgent) and
behind (the file server) have no limit, because they had machines of their own or cost little."""

import contextlib
import dataclasses

from bench.experiments import load
from bench.experiments.cluster import Cluster
from bench.experiments.peers import Place
from bench.experiments.processes import cpu_ns


@dataclasses.dataclass
class System:
    name: str
    port: int
    servers: dict  # {name: pids}: one or two
    others: list   # pids of the other processes that do the work
    find: object = None   # f(system, sources) -> {source: server name}
    doors: tuple = ()     # without a balancer: the ports of the servers, among which a name leads the addresses of clients in turn

    def pids(self):
        return sum(self.servers.values(), []) + self.others

    def cpu_ns_of_servers(self):
        return {name: cpu_ns(pids) for name, pids in self.servers.items()}


SF_OFF = {"migration": "off", "handshake": "local", "resumption": "local"}


@contextlib.contextmanager
def systems(folder, wire, key, machine, quotas):
    """({name: System} of scenario A, the same for B). `key`: ecdsa or rsa; `machine`: the share of a core of each server."""
    with Place(folder / "peers", wire.server) as place, contextlib.ExitStack() as stack:
        files, file_pids = place.nginx("files")
        cluster = stack.enter_context(Cluster(folder / "c", (wire.server, files), host=wire.server,
                                              listeners={"on": {}, "off": SF_OFF}))
        lonely = [stack.enter_context(Cluster(folder / name, (wire.server, files), agents=1)) for name in ("l1", "l2")]
        tls = cluster.tls[key]
        a, b = {}, {}

        def limited(servers):
            for pids in servers.values():
                quotas.limit(pids, machine)
            return servers

        def add(scenario, name, port, servers, others, find=None, doors=()):
            scenario[name] = System(name, port, servers, others, find, doors)

        port, pids = place.nginx("one", tls)
        for scenario in (a, b):
            add(scenario, "one server", port, limited({"server": pids}) if scenario is a else {"server": pids}, [])

        pair = place.nginx_pair("web", tls)
        servers = limited({"web1": pair[0][1], "web2": pair[1][1]})
        for scenario, name, balance, find in ((a, "LB-IP", "source", find_by_answer), (b, "LB-RR", "roundrobin", None)):
            port, pids = place.haproxy_tcp(name, [p for p, _ in pair], balance)
            add(scenario, name, port, servers, pids, find)
        for scenario in (a, b):
            add(scenario, "DNS round robin", None, servers, [], doors=tuple(p for p, _ in pair))
        shared = place.nginx_pair("sharing", tls, place.ticket_key())
        port, pids = place.haproxy_tcp("LB-RR-shared", [p for p, _ in shared])
        add(b, "LB-RR, one ticket key", port, limited({"web1": shared[0][1], "web2": shared[1][1]}), pids)

        port, pids = place.haproxy_tls("proxy", tls, [files])
        servers = limited({"proxy": pids})
        for scenario in (a, b):
            add(scenario, "one reverse proxy", port, servers, file_pids)
        proxies = [place.haproxy_tls(f"proxy{i}", tls, [files]) for i in (1, 2)]
        servers = limited({"proxy1": proxies[0][1], "proxy2": proxies[1][1]})
        port, pids = place.haproxy_tcp("proxies", [p for p, _ in proxies])
        add(b, "reverse proxies, RR", port, servers, pids + file_pids)

        hitches = place.hitch_pair(tls, files)
        servers = limited({"hitch1": hitches[0][1], "hitch2": hitches[1][1]})
        port, pids = place.haproxy_tcp("hitches", [p for p, _ in hitches])
        add(b, "hitches, RR", port, servers, pids + file_pids)

        agents = limited(cluster.agents)
        for switch in ("off", "on"):
            add(a, f"CSSL-SF, migration {switch}", cluster.ports[switch], agents, cluster.ragent + file_pids,
                lambda system, wire: find_by_owner(cluster, system, wire))
        # The paper has a commercial balancer in place of RAgent here. Agents of two clusters do not know each other.
        alone = limited({"a1": lonely[0].agents["a1"], "a2": lonely[1].agents["a1"]})
        port, pids = place.haproxy_tcp("sl-off", [("127.0.0.1", c.direct[0]) for c in lonely])
        add(b, "CSSL-SL, migration off", port, alone, pids + file_pids)
        port, pids = place.haproxy_tcp("sl-on", [("127.0.0.1", p) for p in cluster.direct])
        add(b, "CSSL-SL, migration on", port, agents, pids + file_pids)
        yield a, b


# The server that a client's address leads to

PROBED = 12


def find_by_answer(system, wire):
    found = {}
    for source in wire.sources[:PROBED]:
        result = load.run(system.port, "--connections", 1, "--path", "/5", "--source", source, host=wire.server,
                          prefix=wire.prefix)
        found[source] = next(iter(result["agents"]))
    return found


def find_by_owner(cluster, system, wire):
    sources = [word for source in wire.sources[:PROBED] for word in ("--source", source)]
    with load.held(system.port, PROBED, "--path", "/5", *sources, host=wire.server, prefix=wire.prefix):
        connections = cluster.control("/v1/connections?limit=1000")["connections"]
    return {c["client"].rsplit(":", 1)[0]: c["owner"] for c in connections if c["owner"]}


def colliding(found):
    """Three sources: two lead to one server, one to the other."""
    by_server = {}
    for source, server in sorted(found.items()):
        by_server.setdefault(server, []).append(source)
    pairs = [sources for sources in by_server.values() if len(sources) >= 2]
    if len(by_server) < 2 or not pairs:
        raise RuntimeError(f"no two of {len(found)} addresses collide and a third does not: {by_server}")
    two = pairs[0]
    one = next(sources for sources in by_server.values() if sources is not two)
    return [*two[:2], one[0]]
