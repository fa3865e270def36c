"""A backend whose kept connections end, or go on to speak, when the next request comes.

    with FadingBackend() as backend:
        cluster = start_cluster("--backend", backend.address)

The first request on a connection decides: /fin and /reset are answered, and the next request ends the connection without an answer.
/304, /204 and a HEAD of any path have an answer without a body, and before the answer to the next request comes the body, which is a
whole answer in itself ("poison"). `asked` has all methods and paths in their order.
"""

import socket
import socketserver
import struct

from tests.lib.threaded_server import ThreadedServer

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
POISON = ANSWER % (6, b"poison")
BODYLESS = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n"


class _Handler(socketserver.StreamRequestHandler):
    def head(self):
        """(method, path) of the next request; None: there is none. A body is read, too."""
        line = self.rfile.readline().split()
        length = 0
        while line and (field := self.rfile.readline().strip()):
            if field.lower().startswith(b"content-length:"):
                length = int(field.split(b":")[1])
        self.rfile.read(length)
        return line and (line[0].decode(), line[1].decode())

    def handle(self):
        first = None
        while request := self.head():
            self.server.asked.append(request)
            method, path = request
            if first in ("/fin", "/reset"):
                if first == "/reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if first in ("/304", "/204", "HEAD"):
                self.wfile.write(POISON)
            first = first or ("HEAD" if method == "HEAD" else path)
            if method == "HEAD" or path in ("/304", "/204"):
                self.wfile.write(BODYLESS % (path[1:].encode() if path in ("/304", "/204") else b"200", len(POISON)))
            else:
                self.wfile.write(ANSWER % (len(path), path.encode()))


class FadingBackend(ThreadedServer):
    def __init__(self):
        super().__init__(_Handler)
        self.asked = []
