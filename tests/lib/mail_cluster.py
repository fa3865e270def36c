"""Listeners of service smtp in a cluster of a test: edits of its cluster.yaml (tests/lib/edits.py), and a cluster with all kinds of
them.

    ports = free_ports(1)
    start_cluster(edit=edits.edits(mail_backend(sink.address), mail_listener("mail", ports[0])))
"""

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.waiting import wait_until

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


def left(mail):
    """What clients have left behind: connections, handshakes, preambles and kept bytes."""
    counters = mail.cluster.counters()
    gauges = [(node, name, counts.get(name, 0)) for node, counts in counters.items()
              for name in ("handshakes_under_way", "preambles_under_way", "kept_bytes")]
    return [*mail.cluster.connections(), *filter(lambda gauge: gauge[2], gauges)]


class SharedMail(Mail):
    """The same for the tests of a module that leave the cluster as it was. Each begins with again()."""

    def again(self, *sink):
        """Another sink, and counters and logs that begin now: when nothing of the test before is left."""
        self.end()
        wait_until(lambda: not left(self), patience(10), "the ends of all connections of the test before")
        self.sink = Sink("--proxy", *sink, listen="{}:{}".format(*self.sink.address))
        self._ragent, self._counted, self._fates = self.cluster.pid("r1"), self.cluster.counters(), self.cluster.status()["at_deaths"]
        self._logged = {name: len(self.cluster.log(name)) for name in ("r1", *self.cluster.agents)}
        return self

    def count(self, name):
        """A RAgent that follows another one begins at 0."""
        return super().count(name) - (self._counted["ragent"][name] if self.cluster.pid("r1") == self._ragent else 0)

    def fates(self):
        """What became of connections at the deaths of RAgent."""
        return {name: number - self._fates[name] for name, number in self.cluster.status()["at_deaths"].items()}

    def agent_count(self, name):
        return super().agent_count(name) - sum(self._counted[agent][name] for agent in self.cluster.agents)

    def log(self, name):
        return self.cluster.log(name)[self._logged[name]:]


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
