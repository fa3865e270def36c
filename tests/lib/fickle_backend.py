"""A backend that never says the same thing twice, so that a request that is asked again makes another plaintext.

    with FickleBackend() as backend:
        cluster = start_cluster("--backend", backend.address)
        ...
        assert answer["sha256"] in backend.said["/40000"]

A request for /N is answered with N random bytes; `said` lists the SHA-256 of each answer, by path. What it says has no ETag, so
nobody can go on in the middle of it. hang_up() closes every connection that there is, silent() makes it wait.
"""

import contextlib
import hashlib
import os
import socket
import socketserver
import threading
from collections import defaultdict

from tests.lib.threaded_server import ThreadedServer


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.server.sockets.add(self.request)
        with contextlib.suppress(OSError):
            reader = self.request.makefile("rb")
            while line := reader.readline():
                path = line.decode().split(" ")[1]
                while reader.readline() not in (b"\r\n", b""):
                    pass
                self._answer(path)
        self.server.sockets.discard(self.request)

    def _answer(self, path):
        body = os.urandom(int(path[1:]))
        self.server.said[path].append(hashlib.sha256(body).hexdigest())
        self.server.may_speak.wait()
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class FickleBackend(ThreadedServer):
    request_queue_size = 100

    def __init__(self):
        super().__init__(_Handler)
        self.said, self.sockets = defaultdict(list), set()
        self.may_speak = threading.Event()
        self.may_speak.set()

    @contextlib.contextmanager
    def silent(self):
        """It answers nothing until the end, or until what this yields is called."""
        self.may_speak.clear()
        try:
            yield self.may_speak.set
        finally:
            self.may_speak.set()

    def hang_up(self):
        for one in list(self.sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_WR)
