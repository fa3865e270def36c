"""A backend that remembers every request and holds its answers back until it is told to give them.

    with HeldBackend() as backend:
        cluster = start_cluster("--backend", backend.address)
        ...
        backend.wait_for("/held/7")          until such a request came, whole
        backend.release()

A path below /held waits for release(); one below /half gives the first half of its answer, and the rest never; others are
answered at once. The answer names its request: "GET /held/7". `seen` is the list of all requests, (method, path, body), in the
order in which their bodies were whole; `begun` counts heads, by path.
"""

import contextlib
import socketserver
import threading
from collections import Counter, namedtuple

from tests.lib.build import patience
from tests.lib.waiting import wait_until

Request = namedtuple("Request", "method path body")
HALF = b"one half, "


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with contextlib.suppress(OSError):
            reader = self.request.makefile("rb")
            while line := reader.readline():
                self._one(reader, line)

    def _one(self, reader, line):
        method, path, _ = line.decode().split(" ")
        length = 0
        while (header := reader.readline().decode()) not in ("\r\n", ""):
            name, _, value = header.partition(":")
            length = int(value) if name.lower() == "content-length" else length
        server = self.server
        server.begun[path] += 1
        body = reader.read(length)
        if len(body) < length:
            return
        server.seen.append(Request(method, path, body))
        if path.startswith("/half"):
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + HALF)
            server.never.wait()
        if path.startswith("/held"):
            server.released.wait()
        answer = f"{method} {path}".encode()
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))


class HeldBackend(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1000

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = "%s:%d" % self.server_address
        self.seen, self.begun = [], Counter()
        self.released, self.never = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    def hold(self):
        """From now on, again."""
        self.released.clear()

    def release(self):
        self.released.set()

    def count(self, path):
        """How many whole requests of that path came."""
        return sum(request.path == path for request in self.seen)

    def wait_for(self, path, times=1):
        wait_until(lambda: self.count(path) >= times, patience(15), f"{times} of {path} at the backend")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.release()
        self.never.set()
        self.shutdown()
        self._thread.join()
        self.server_close()
