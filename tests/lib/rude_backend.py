"""A backend that does what no good one does: it cuts its answers, or stops reading.

    with RudeBackend({"/cut": cut_by_reset}) as backend:
        cluster = start_cluster("--backend", backend.address)

Each path has a function that is given the connection, a socket, once the head of its request was read; `begun` counts them, by
path. What happens to the connection afterwards is in `ends`, by path: "fin" or "reset", whichever the other side sent.
"""

import contextlib
import socket
import socketserver
import struct
from collections import Counter, defaultdict

from tests.lib.threaded_server import ThreadedServer

HEAD_END = b"\r\n\r\n"


def reset(connection):
    """Ends a connection so that the other side sees a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        head = b""
        while HEAD_END not in head:
            data = self.request.recv(65536)
            if not data:
                return
            head += data
        path = head.split(b" ")[1].decode()
        self.server.begun[path] += 1
        with contextlib.suppress(OSError):
            self.server.answers[path](self.request)
        self.server.ends[path].append(self._end())

    def _end(self):
        try:
            while self.request.recv(65536):
                pass
            return "fin"
        except OSError:
            return "reset"


class RudeBackend(ThreadedServer):
    def __init__(self, answers):
        super().__init__(_Handler)
        self.answers, self.begun, self.ends = answers, Counter(), defaultdict(list)
