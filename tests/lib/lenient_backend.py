"""A backend that takes what no parser should, each in its own way, and answers every request it believes to see with that
request's path:

    with LenientBackend(LENIENT["chunked"]) as backend:
        cluster = start_cluster("--backend", backend.address)

`seen` has the paths of all requests, in the order of their ends.
"""

import contextlib
import re
import socketserver

from tests.lib.threaded_server import ThreadedServer


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.kept = b""
        with contextlib.suppress(OSError, EOFError):
            while True:
                path = self._request()
                self.server.seen.append(path)
                body = path.encode()
                self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def _more(self):
        data = self.request.recv(65536)
        if not data:
            raise EOFError
        self.kept += data

    def _until(self, pattern):
        """Returns the bytes in front of it, and removes both."""
        while not (found := re.search(pattern, self.kept)):
            self._more()
        front, self.kept = self.kept[:found.start()], self.kept[found.end():]
        return front

    def _take(self, count):
        while len(self.kept) < count:
            self._more()
        self.kept = self.kept[count:]

    def _request(self):
        self._until(rb"\A([^ \r\n]*[\r\n]+)*(?=[^ \r\n]+ )")  # lines that are no request
        lines = re.split(rb"\r\n|\n|\r", self._until(rb"\r\n\r\n|\n\n|\n\r\n|\r\r"))
        fields = []
        for line in lines[1:]:
            if line[:1] in (b" ", b"\t") and fields:
                fields[-1][1] += line
            else:
                name, _, value = line.partition(b":")
                fields.append([name.strip().lower().replace(b"_", b"-"), value])
        self._skip_body(fields)
        return lines[0].split()[1].decode("latin-1")

    def _skip_body(self, fields):
        lengths = [int(digits) for name, value in fields if name == b"content-length" for digits in re.findall(rb"\d+", value)]
        chunked = any(name == b"transfer-encoding" and b"chunked" in value.lower() for name, value in fields)
        kind = self.server.kind(lengths, chunked)
        if kind == "chunked":
            while size := int(re.match(rb"[0-9a-fA-F]*", self._until(rb"\r\n|\n").strip()).group() or b"0", 16):
                self._take(size)
                self._until(rb"\A(\r\n|\n)")
            while self._until(rb"\r\n|\n"):
                pass  # trailers
        else:
            self._take(kind)


# For each kind of backend: which lengths in a head it believes, and whether it believes the chunked coding.
LENIENT = {
    "chunked": lambda lengths, chunked: "chunked" if chunked else (lengths or [0])[0],
    "first length": lambda lengths, chunked: lengths[0] if lengths else "chunked" if chunked else 0,
    "last length": lambda lengths, chunked: lengths[-1] if lengths else 0,
    "no chunks": lambda lengths, chunked: (lengths or [0])[0],
    "no bodies": lambda lengths, chunked: 0,
}


class LenientBackend(ThreadedServer):
    def __init__(self, kind):
        super().__init__(_Handler)
        self.kind, self.seen = kind, []
