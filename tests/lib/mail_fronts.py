"""STARTTLS servers that real clients are put in front of: each is an address, and a smtp-sink that gets the mail in the end.

A scenario that takes a front runs against each of FRONTS.
"""

import contextlib
import dataclasses

from tests.lib.mail import Sink
from tests.lib.tls_server import self_signed


@dataclasses.dataclass
class Front:
    address: tuple  # (host, port): SMTP with STARTTLS
    ca: str         # PEM that verifies it, as localhost
    sink: Sink      # its counts are there once the sink ended

    def handshakes(self):
        """(full, resumed), after the end."""
        return self.sink.counts["full"], self.sink.counts["resumed"]


@contextlib.contextmanager
def sink_front(folder, *options):
    """smtp-sink terminates by itself. `options`: of the sink."""
    certificate, key = self_signed(folder)
    with Sink("--cert", str(certificate), "--key", str(key), *options) as sink:
        yield Front(sink.address, str(certificate), sink)


FRONTS = {"sink": sink_front}
