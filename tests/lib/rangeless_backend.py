"""A backend without ranges and ETags, which gives its answer slowly.

    with RangelessBackend() as backend:
        cluster = start_cluster("--backend", backend.address)
        backend.body = bytes of the answer to GET /length?ms=4000 and GET /chunked?ms=4000
        backend.status, backend.fields = 200, {}
        backend.answers                          requests so far

An answer takes so many milliseconds, but bytes that an earlier answer to the same target had come to are sent at once. Other
targets get five bytes. Both framings send the same pieces each time.
"""

import contextlib
import http.server
import time
import urllib.parse

from tests.lib.threaded_server import ThreadedServer

PIECES = 64


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        target = urllib.parse.urlsplit(self.path)
        backend, query = self.server, dict(urllib.parse.parse_qsl(target.query))
        if target.path not in ("/length", "/chunked"):
            self._head(200, {"Content-Length": 5})
            self.wfile.write(b"fives")
            return
        backend.answers += 1
        chunked = target.path == "/chunked"
        framing = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": len(backend.body)}
        self._head(backend.status, {**framing, **backend.fields})
        with contextlib.suppress(OSError):
            self._body(backend.body, chunked, int(query["ms"]) / 1000 / PIECES)

    def _head(self, status, fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()

    def _body(self, body, chunked, every_s):
        size = max(1, len(body) // PIECES)
        for at in range(0, len(body), size):
            piece = body[at:at + size]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if at >= self.server.sent.get(self.path, 0):
                self.server.sent[self.path] = at
                time.sleep(every_s)  # this is how slow the backend is
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


class RangelessBackend(ThreadedServer):
    def __init__(self):
        super().__init__(_Handler)
        self.reset(b"")

    def reset(self, body):
        self.body, self.status, self.fields, self.answers, self.sent = body, 200, {}, 0, {}
