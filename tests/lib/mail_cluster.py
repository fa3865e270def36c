"""Listeners of service smtp in a cluster of a test: edits of its cluster.yaml (tests/lib/edits.py), and a cluster with all kinds of
them.

    ports = free_ports(1)
    start_cluster(edit=edits.edits(mail_backend(sink.address), mail_listener("mail", ports[0])))
"""

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.mail import Sink

HOST = "mx.cluster.example"


def mail_backend(address, *keys):
    return edits.backend("mail", "{}:{}".format(*address), *keys)


def mail_listener(name, port, *keys, policy="require", mode="sf", above=(), protocol=()):
    """`keys` under `smtp`; `above`: keys of the listener; port None: for agents' own listeners only."""
    lines = [f"  - name: {name}", f"    mode: {mode}", "    handshake: round-robin", "    affinity_bound: off", "    service: smtp",
             "    backend: mail", *(f"    {line}" for line in above),
             "    smtp:", f"      starttls: {policy}", f"      hostname: {HOST}", *(f"      {key}" for key in keys),
             "    tls:", "      certificates: [ecdsa, rsa]", *(f"      {key}" for key in protocol)]
    if port:
        lines.insert(1, f"    listen: [127.0.0.1:{port}]")
    return edits.at_end(*lines)


def direct_listener(agent, listener, port, *keys):
    """Adds a direct listener to an agent."""
    def apply(text):
        head, name, rest = text.partition(f"  - name: {agent}\n")
        lines = [f"      - address: 127.0.0.1:{port}", f"        listener: {listener}", *(f"        {key}" for key in keys)]
        return head + name + rest.replace("    direct:\n", "    direct:\n" + "".join(line + "\n" for line in lines), 1)
    return apply


class Mail:
    """A cluster with listeners `mail` (STARTTLS required), `offer` and `implicit`, and a sink as mail server."""

    def __init__(self, start_cluster, *options, keys=(), sink=(), edit=(), proxied=True):
        self.sink = Sink(*(("--proxy",) if proxied else ()), *sink)
        ports = free_ports(5)
        self.mail, self.offer, self.implicit, self.direct, self.open = (("127.0.0.1", port) for port in ports)
        self.cluster = start_cluster(*(options or ("--agents", "2")), edit=edits.edits(
            mail_backend(self.sink.address, *(("proxy_v2: on",) if proxied else ())),
            mail_listener("mail", ports[0], *keys),
            mail_listener("offer", ports[1], *keys, policy="offer"),
            mail_listener("implicit", ports[2], *keys, policy="implicit"),
            direct_listener("a1", "mail", ports[3]),
            direct_listener("a1", "offer", ports[4]), *edit))
        self.context = self.cluster.context(alpn=())

    def count(self, name):
        return self.cluster.counters()["ragent"][name]

    def agent_count(self, name):
        return self.cluster.counter(name)

    def preambles(self):
        return self.count("preambles_under_way")

    def end(self):
        """The counts of the sink."""
        with self.sink:
            pass
        return self.sink.counts


class CountsOfAllLives:
    """Adds up what agents count, also those that are killed: their counters are read before. What they count in between is missing, so a sum
    is never too large."""

    NAMES = "repeated", "asked", "decided", "never", "421_agent_lost"

    def __init__(self, cluster):
        self._cluster, self.sums = cluster, dict.fromkeys(self.NAMES, 0)

    def add(self, agent):
        counters = self._cluster.counters()[agent]
        for name in self.NAMES:
            self.sums[name] += counters[f"mail_{name}"]
