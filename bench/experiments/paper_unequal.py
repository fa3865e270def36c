"""The third part of ./cssl bench paper: two servers of unequal power, and which of them gets a handshake. The paper names unequal
servers as the reason for other policies than round robin, and has no figures of them."""

import contextlib
import statistics

from bench.experiments import load, ratios
from bench.experiments.cluster import Cluster
from bench.experiments.paper_systems import System
from bench.experiments.peers import Place
from bench.experiments.wire import Wire

POLICIES = ("round-robin", "weighted", "least-connections", "shortest-response", "local")
STRONG, WEAK = "strong", "weak"
TIMES = 3  # the strong server has so many times the power of the weak one
COUNT, CLIENTS, QUICK_COUNT, QUICK_CLIENTS = 1050, 99, 60, 12
ADDRESSES = 30
SYSTEMS = 2 + len(POLICIES)


def made_by_webs(result):
    """{server: full handshakes}: a web server answers on the connection of its handshake."""
    return {STRONG: result["agents"].get("web1", 0), WEAK: result["agents"].get("web2", 0)}


class MadeByAgents:
    """The same of agents by their own counters, because the agent that answers need not be that of the handshake."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._before = self._counts()

    def _counts(self):
        nodes = self._cluster.control("/v1/counters")["agents"]
        return {STRONG: nodes["a1"]["handshakes_full"], WEAK: nodes["a2"]["handshakes_full"]}

    def __call__(self, _):
        before, self._before = self._before, self._counts()
        return {name: count - before[name] for name, count in self._before.items()}


@contextlib.contextmanager
def systems(folder, key, power, quotas):
    """[(System, f(result) -> {server: full handshakes})]; `power`: the share of a core of the strong server."""
    with Place(folder / "peers") as place, contextlib.ExitStack() as stack:
        files, file_pids = place.nginx("files")
        listeners = {policy: {"handshake": policy} for policy in POLICIES}
        cluster = stack.enter_context(Cluster(folder / "c", (place.host, files), listeners=listeners))
        for agent, weight in (("a1", TIMES), ("a2", 1)):
            cluster.control(f"/v1/agents/{agent}/weight", {"weight": weight})

        def limited(strong, weak):
            quotas.limit(strong, power)
            quotas.limit(weak, power / TIMES)
            return {STRONG: strong, WEAK: weak}

        pair = place.nginx_pair("web", cluster.tls[key])
        servers = limited(*(pids for _, pids in pair))
        found = []
        for name, balance in (("LB, round robin", "roundrobin"), ("LB, least connections", "leastconn")):
            port, pids = place.haproxy_tcp(balance, [port for port, _ in pair], balance)
            found.append((System(name, port, servers, pids), made_by_webs))
        agents = limited(cluster.agents["a1"], cluster.agents["a2"])
        made = MadeByAgents(cluster)
        found += [(System(f"CSSL-SF, {policy}", cluster.ports[policy], agents, cluster.ragent + file_pids), made)
                  for policy in POLICIES]
        yield found


def measure(system, made, tls, power, is_quick):
    """One run: a dict of figures."""
    before = system.cpu_ns_of_servers()
    sources = [word for source in Wire().sources[:ADDRESSES] for word in ("--source", source)]
    result = load.run(system.port, "--connections", QUICK_COUNT if is_quick else COUNT, "--clients", QUICK_CLIENTS if is_quick else CLIENTS,
                      "--timeout-ms", 60000, "--path", "/5k", "--length", 5120, *tls.options, *sources)
    used = {name: ns - before[name] for name, ns in system.cpu_ns_of_servers().items()}
    powers = {STRONG: power, WEAK: power / TIMES}
    return {"system": system.name, "per_s": result["answers_per_s"], "full": result["counts"]["full"], "made": made(result),
            "p50_us": result["latency"]["full"]["p50_us"], "p99_us": result["latency"]["full"]["p99_us"],
            "used": {name: ns / 1e9 / result["seconds"] / powers[name] for name, ns in used.items()}}


def measure_all(folder, quotas, tls, options):
    with systems(folder, tls.key, options.machine, quotas) as found:
        for number in range(options.rounds):
            for at in range(len(found)):
                run = measure(*found[(at + number) % len(found)], tls, options.machine, options.quick)
                options.course.done(f"unequal servers, {run['system']}: {run['per_s']:.0f}/s")
                yield {"round": number, **run}


TITLE = "Servers of unequal power (the paper's reason for other policies)"

TEXT = f"""\
Two servers; one has {TIMES} times the power of the other. {{count}} full handshakes, 5,120 bytes on each connection, from {ADDRESSES}
addresses over loopback. The agents' weights are {TIMES} and 1. They decide which agent an address belongs to, and with *weighted* also
which agent gets a handshake. The other policies look at something else: *least-connections* at connections and handshakes under way,
*shortest-response* at how long handshakes took, *local* at the address. In turn (*round-robin*), the weak server gets half of the
handshakes, and the strong one waits for it. *handshakes*: of the strong server and of the weak one, in %. *strong busy*, *weak busy*:
how much of its power each server used. *x in turn*: how many times the requests of the same system in turn, the median of the ratios of
the rounds, and its *interval*. A server gets its share in each 10 ms; if that would be less than 1 ms, in a longer period. So the weak one
also waits longer at a time."""


def _of(runs, name):
    return [run for run in runs if run["system"] == name]


def _median(rows, value):
    return statistics.median(value(run) for run in rows)


def in_turn(runs, name):
    """How many times the requests of the same system in turn, in each round."""
    rates = {system: {run["round"]: run["per_s"] for run in _of(runs, system)}
             for system in (name, "LB, round robin" if name.startswith("LB") else "CSSL-SF, round-robin")}
    ours, its = rates[name], list(rates.values())[-1]
    return [ours[number] / its[number] for number in sorted(ours)]


def times_in_turn(runs, name):
    return statistics.median(in_turn(runs, name))


def table(runs):
    yield "| system | requests/s | mean | least-most | x in turn | interval | handshakes | strong busy | weak busy | p50 ms | p99 ms |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in dict.fromkeys(run["system"] for run in runs):
        rows = _of(runs, name)
        rates = [run["per_s"] for run in rows]
        part = 100 * _median(rows, lambda run: run["made"][STRONG] / run["full"])
        busy = [f"{100 * _median(rows, lambda run, s=server: run['used'][s]):.0f} %" for server in (STRONG, WEAK)]
        waits = [f"{_median(rows, lambda run, k=key: run[k]) / 1000:.0f}" for key in ("p50_us", "p99_us")]
        low, high = ratios.interval(in_turn(runs, name))
        yield (f"| {name} | {statistics.median(rates):.0f} | {statistics.mean(rates):.0f} | {min(rates):.0f}-{max(rates):.0f} | "
               f"**{times_in_turn(runs, name):.2f}** | {low:.2f}-{high:.2f} | {part:.0f} : {100 - part:.0f} | {' | '.join(busy + waits)} |")


def finding(runs):
    others = {policy: times_in_turn(runs, f"CSSL-SF, {policy}") for policy in POLICIES[1:]}
    told = ", ".join(f"{policy} **{times:.2f}**" for policy, times in others.items())
    return (f"- Servers of unequal power, {TIMES} to 1: beside round-robin, the other handshake policies of CSSL-SF make so many times the "
            f"requests: {told}; least connections of a balancer {times_in_turn(runs, 'LB, least connections'):.2f}.")
