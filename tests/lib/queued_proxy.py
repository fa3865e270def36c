"""smtpproxy with deliver: queue, and its two Redis servers.

    with Stores(tmp_path) as stores, QueuedProxy(tmp_path, stores, next_hop=sink.address) as proxy:
        source(proxy.address, "--proxy", "v2", ...)
"""

import contextlib
import os
import signal

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.mail_queue import KEY, Redis
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.waiting import wait_until


class Stores:
    """Two Redis servers on loopback ports, which the user of smtpproxy can reach. `port`: the option for it."""

    def __init__(self, folder, *options, port="--port"):
        self.ports = free_ports(2)
        self.servers = [Redis(folder, name, port, str(number), "--bind", "127.0.0.1", *options)
                        for name, number in zip("ab", self.ports)]

    def items(self):
        return [int(server.call("HLEN", "cssl:{mail}:items") or 0) for server in self.servers]

    def wait_empty(self):
        wait_until(lambda: self.items() == [0, 0], patience(30), "an empty queue")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.go_on()
            server.kill()


class QueuedProxy(Proxy):
    def __init__(self, folder, stores, next_hop, queue=None, ports=(), **keys):
        """`next_hop` None: as the DNS says; then `ports` are those of receivers. Everybody may send to anybody, unless `listener` says
        otherwise."""
        key = folder / "queue.key"
        if not key.exists():
            key.write_text(KEY + "\n")
            key.chmod(0o600)
        queue = {"role": "alone", "keys": str(key), "backups": [{"paths": [f"127.0.0.1:{port}"]} for port in stores.ports],
                 "retry_first": "200ms", "retry_last": "1s", **(queue or {})}
        if next_hop:
            queue["next_hop"], ports = text_of(next_hop), (next_hop[1],)
        listener = {"clients": ["0.0.0.0/0", "::/0"], **keys.pop("listener", {})}
        super().__init__(folder, ports=ports, deliver="queue", queue=queue, listener=listener, **keys)

    def is_open(self):
        with contextlib.suppress(OSError):
            self.connect().close()
            return True
        return False

    def wait_open(self):
        wait_until(self.is_open, patience(20), f"an open port: {self.log()[-2000:]}")
        return self

    def wait_closed(self):
        wait_until(lambda: not self.is_open(), patience(20), f"a closed port: {self.log()[-2000:]}")

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
