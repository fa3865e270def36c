"""STARTTLS servers that real clients are put in front of: each is an address, and a smtp-sink that gets the mail in the end.

A scenario that takes `start_front` (tests/scenario/conftest.py) runs against each of FRONTS.
"""

import contextlib
import dataclasses
import typing

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.mail import Sink
from tests.lib.mail_front_door import mail_door
from tests.lib.tls_server import self_signed

FRONTS = ("sink", "cluster")


@dataclasses.dataclass
class Front:
    address: tuple  # (host, port): SMTP with STARTTLS
    ca: str         # PEM that verifies it, as localhost
    sink: Sink      # its counts are there once the sink ended
    handshakes: typing.Callable  # () -> (full, resumed), after the end


@contextlib.contextmanager
def sink_front(folder, *options):
    """smtp-sink terminates TLS itself. `options`: of the sink."""
    certificate, key = self_signed(folder)
    with Sink("--cert", str(certificate), "--key", str(key), *options) as sink:
        yield Front(sink.address, str(certificate), sink, lambda: (sink.counts["full"], sink.counts["resumed"]))


class ClusterFronts:
    """The listener smtp of a cluster of three agents, which many tests use one after another: each test has a sink of its own as
    backend."""

    def __init__(self, start_cluster):
        self._port, = free_ports(1)
        # In TLS 1.2 Exim and Go resume by tickets only, and Debian 12's Go knows no extended master secret.
        self.cluster = start_cluster("--agents", "3", "--smtp-backend", f"127.0.0.1:{self._port}", "--smtp-proxy-v2",
                                     "--tls12-tickets", edit=edits.tls("extended_master_secret: optional"))

    def counts(self):
        """{agent: (full handshakes, resumptions)}"""
        return {name: (c["handshakes_full"], c["handshakes_resumed"]) for name, c in self.cluster.counters().items() if name != "ragent"}

    @contextlib.contextmanager
    def start(self, *options):
        """A Front. `options`: of the sink."""
        before = self.counts()
        with Sink("--proxy", *options, listen=f"127.0.0.1:{self._port}") as sink:
            yield Front(mail_door(self.cluster, "smtp"), self.cluster.ca, sink, lambda: summed(self.since(before)))

    def since(self, before):
        """The difference to earlier counts()."""
        return {name: tuple(now - then for now, then in zip(counts, before[name])) for name, counts in self.counts().items()}


def summed(counts):
    return tuple(map(sum, zip(*counts.values())))
