"""A RAgent that holds the key and misuses it (tests/lib/hostile/main.c has the commands), and what it tries to get at.

    with Hostile(cluster, "sf") as hostile:
        client = cluster.connect(("127.0.0.1", hostile.port))
        held = hostile.frozen()                                what agents gave it of that client
        hostile("adopt", agent="a2", client=held["client"], listener="vault", replay=True)["answer"]
"""

import contextlib
import json
import socketserver
import subprocess
import threading

from tests.lib.build import binary, patience
from tests.lib.waiting import wait_until

# Type of each frame, as in proto/frame.h.
FRAMES = {"DATA": 0x01, "FIN": 0x02, "OPEN": 0x10, "SSL_ID": 0x11, "ACCEPTED": 0x12, "CLOSE": 0x13, "DETACH": 0x14, "VIOLATION": 0x15,
          "MOVE": 0x16, "REQUEST": 0x17, "FINISH": 0x18, "PREAMBLE": 0x19, "PROOF": 0x1a, "REATTACH": 0x1b, "KEPT": 0x20,
          "HANDED_OFF": 0x21, "ADOPTED": 0x22, "REFUSED": 0x23, "CONSUMED": 0x24, "COPY": 0x25, "END": 0x26, "RESPONSE": 0x27,
          "LOAD": 0x28, "LEAVING": 0x29, "DOWNLOAD": 0x2a, "TAKEN": 0x2b, "RELAYED": 0x2c, "REATTACHED": 0x2d}
LINK_BEATS = {"PING", "PONG"}  # the hostile RAgent's links need them to stay up

CAUSES = {"hand-off": 0, "move": 1, "drain": 2, "wake": 3, "takeover": 4}


class Hostile:
    def __init__(self, cluster, listener, name="r1", keep=False):
        """`name`: its own name for itself; `keep`: agents own a client from its handshake on; otherwise they freeze it."""
        command = [binary("tests/lib/hostile_ragent"), "--config", cluster.dir / "cluster.yaml", "--name", name,
                   "--listener", listener] + ["--keep"] * keep
        self._process = subprocess.Popen(command, env=cluster.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._process.stdout.readline().split()[1])
        self._agents = cluster.agents
        self.wait_links()

    def __call__(self, what, **arguments):
        self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def wait_links(self):
        wait_until(lambda: sorted(self("links")["up"]) == sorted(self._agents), patience(10), "links of the hostile RAgent")

    def held(self, number):
        return next(client for client in self("clients") if client["client"] == number)

    def newest(self, state):
        """The newest client, once it is in that state."""
        def found():
            clients = self("clients")
            return clients and clients[0]["state"] == state and clients[0]
        return wait_until(found, patience(10), f"a client that is {state}")

    def frozen(self):
        return self.newest("frozen")

    def wait_said(self, client, records):
        """Waits until it has so many records of that client."""
        wait_until(lambda: self.held(client["client"])["said"] >= records, patience(10), f"{records} records of a client")

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(patience(10))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.close()
        assert kind or status == 0, f"the hostile RAgent ended with {status}"


def confirm(hostile, held):
    """Tells the owner that RAgent has all its frames, as far as `held` (`Hostile.held`) goes."""
    counts = ("server_records", 8), ("drained", 8), ("write_generation", 4)
    said = b"".join(held[name].to_bytes(size, "big") for name, size in counts) + (1 << 32).to_bytes(8, "big")
    hostile("frame", agent=held["agent"], stream=held["stream"], type=FRAMES["ACCEPTED"], hex=said.hex())


class Canary:
    """A backend that never answers, and keeps every byte that it gets."""

    def __init__(self):
        self.heard = bytearray()
        canary = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):
                    while data := self.request.recv(65536):
                        canary.heard += data

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
