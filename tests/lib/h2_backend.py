"""Backends that speak HTTP/2 without TLS, from the first byte (h2c, prior knowledge). Each serves the files of a folder:

    with nghttpd(folder) as backend: ...             backend.address, backend.port
    with nginx_h2c(folder, "proxy_protocol") as backend: ...
"""

import contextlib
import pathlib
import socket
import socketserver
import subprocess
import types

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.h2_client import ACK, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame
from tests.lib.pattern import pattern
from tests.lib.threaded_server import ThreadedServer
from tests.lib.waiting import wait_until

# Debian 12 has nginx 1.22, where http2 is a word of `listen`; later ones understand it still, and warn.
NGINX = """\
daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/error.log;
events {{ worker_connections 1024; }}
http {{
    log_format facts '$proxy_protocol_addr $proxy_protocol_port $server_protocol $uri $status $connection';
    access_log {work}/access.log facts;
    client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3;
    uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
    types {{ text/html html; image/svg+xml svg; }}
    server {{ listen 127.0.0.1:{port} http2 {words}; root {folder}; {settings} }}
}}
"""


def fill(folder):
    """Files of a known pattern, and a page with 50 parts that says when it has them all."""
    folder = pathlib.Path(folder)
    for name, size in (("5", 5), ("1k", 1024), ("64k", 1 << 16), ("1m", 1 << 20), ("20m", 20 << 20)):
        (folder / name).write_bytes(pattern(size))
    parts = "".join(f'<img src="/part{i}.svg" onload="done()">' for i in range(50))
    script = "var n = 0; function done() { n++; document.title = n + ' of 50 loaded'; }"
    (folder / "page.html").write_text(f"<html><head><title>none</title><script>{script}</script></head><body>{parts}</body></html>")
    for i in range(50):
        (folder / f"part{i}.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"></svg>')
    return folder


@contextlib.contextmanager
def _running(command, port, **facts):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: not socket.create_connection(("127.0.0.1", port)).close(), patience(10), command[0])
        yield types.SimpleNamespace(port=port, address=f"127.0.0.1:{port}", process=process, **facts)
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def nghttpd(folder, *options, port=None):
    port = port or free_ports(1)[0]
    with _running(["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", str(folder), *options, str(port)], port) as backend:
        yield backend


@contextlib.contextmanager
def nginx_h2c(folder, words="", settings="", port=None):
    """Lines of `access_log` have the client's address and port from the PROXY header, protocol, path, status and connection."""
    port = port or free_ports(1)[0]
    work = pathlib.Path(folder).parent / f"nginx-{port}"
    work.mkdir()
    (work / "nginx.conf").write_text(NGINX.format(work=work, port=port, words=words, folder=folder, settings=settings))
    with _running(["nginx", "-c", str(work / "nginx.conf")], port, access_log=work / "access.log") as backend:
        yield backend


class _Answering(socketserver.StreamRequestHandler):
    def handle(self):
        assert self.rfile.read(len(PREFACE)) == PREFACE
        self.request.sendall(self.server.begin)
        rest, owed = self.server.rest, b""
        while len(head := self.rfile.read(9)) == 9:
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            self.rfile.read(int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                owed += frame(SETTINGS, ACK)
            elif kind == SETTINGS:
                rest, owed = b"", rest + owed
            elif kind == HEADERS:
                owed += frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x88")  # 200
            if not rest:
                self.request.sendall(owed)
                owed = b""


class Saying(ThreadedServer):
    """Begins with these bytes, and says the rest of them when the client acknowledges its SETTINGS. Answers each request."""

    def __init__(self, begin, rest):
        super().__init__(_Answering)
        self.begin, self.rest = begin, rest
