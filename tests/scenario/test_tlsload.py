"""Other scenarios trust this load. Here it has to notice servers that lie, cut, stall and garble, one kind each, and report
them."""

import pathlib
import socket
import socketserver
import ssl
import struct
import threading
import time
import types

import pytest

from tests.lib.build import patience
from tests.lib.pattern import pattern
from tests.lib.tlsload import Load, check_honest, check_unharmed, lost, refused

pytestmark = pytest.mark.sanitized_tools

SIZE = 100000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE
BODY = pattern(SIZE)
WRONG = BODY[:70000] + bytes([BODY[70000] ^ 1]) + BODY[70001:]
REFUSAL = b"HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbad\n"


def reset(tls):
    tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket(fileno=tls.detach()).close()


def fin(tls):
    raw = socket.socket(fileno=tls.detach())
    raw.shutdown(socket.SHUT_WR)
    raw.recv(65536)
    raw.close()


def close_notify(tls):
    tls.unwrap().close()


def garbage(tls):
    raw = socket.socket(fileno=tls.detach())
    raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
    raw.recv(65536)
    raw.close()


def stay_silent(tls):
    tls.recv(65536)


def go_on(_):
    """Waits for the next request."""


# What is said to each request, what follows, and how that is called.
SERVERS = {
    "good": (HEAD + BODY, go_on, {}),
    "wrong byte": (HEAD + WRONG, go_on, {"wrong midway": 1}),
    "too much": (HEAD + BODY + b"x", go_on, {"wrong midway": 1}),
    "another length": (HEAD.replace(b"%d" % SIZE, b"5") + b"12345", go_on, {"wrong midway": 1}),
    "close in the body": (HEAD + BODY[:50000], close_notify, {"close_notify midway": 1}),
    "close for an answer": (b"", close_notify, {"close_notify unanswered": 1}),
    "close behind the answer": (HEAD + BODY, close_notify, {"close_notify idle": 1}),
    "fin in the body": (HEAD + BODY[:50000], fin, {"fin midway": 1}),
    "reset in the body": (HEAD + BODY[:50000], reset, {"reset midway": 1}),
    "garbage": (HEAD + BODY[:50000], garbage, {"garbled midway": 1}),
    "silence": (HEAD + BODY[:50000], stay_silent, {"timeout midway": 1}),
    "refusal": (REFUSAL, close_notify, {"refused idle": 1}),
}


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        said, then, _ = SERVERS[self.server.kind]
        tls = self.server.context.wrap_socket(self.request, server_side=True)
        while tls.recv(65536):
            if said:
                tls.sendall(said)
            if then is not go_on:
                then(tls)
                return

    def finish(self):
        self.request.close()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close = True, False

    def handle_error(self, *_):
        """A client that leaves in the middle is what this test wants."""


@pytest.fixture(scope="module")
def files(start_module_cluster):
    return pathlib.Path(start_module_cluster("--agents", "1").dir)


@pytest.fixture
def server(request, files):
    with Server(("127.0.0.1", 0), Handler) as made:
        made.kind = request.param
        made.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.context.load_cert_chain(files / "ecdsa.pem", files / "ecdsa.key")
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def load(files):
    with Load(types.SimpleNamespace(ca=str(files / "ca.pem"))) as made:
        yield made


@pytest.mark.parametrize("server", SERVERS, indirect=True)
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_the_load_names_what_a_server_does(server, load, version):
    load.add("one", server.server_address, version=version, run="waits", path=f"/{SIZE}", timeout_ms=1000)
    expected = SERVERS[server.kind][2]
    end = time.monotonic() + patience(10)
    load.ask("one")
    while lost(load.report()["one"]) != expected:
        assert time.monotonic() < end, load.report()
    report = load.report()["one"]
    assert report["requests"] == 1 and report["ready"] == (not expected)
    assert report["answers"] == (server.kind in ("good", "close behind the answer"))
    assert refused(report) == ({"502": 1} if server.kind == "refusal" else {})
    if server.kind == "good":
        check_unharmed(report)
        return
    with pytest.raises(AssertionError):
        check_unharmed(report)
    if {"wrong midway", "garbled midway", "timeout midway", "close_notify midway"} & expected.keys():
        with pytest.raises(AssertionError):
            check_honest(report)


@pytest.mark.parametrize("server", ["reset in the body"], indirect=True)
def test_a_lost_client_comes_again_only_where_it_may_and_is_counted(server, load):
    load.add("again", server.server_address, again="lost", path=f"/{SIZE}")
    load.add("never", server.server_address, path=f"/{SIZE}")
    end = time.monotonic() + patience(10)
    while load.report()["again"]["connected"] < 4:
        assert time.monotonic() < end, load.report()
    report = load.report()
    assert report["never"]["connected"] == 1 and lost(report["never"]) == {"reset midway": 1}
    assert lost(report["again"])["reset midway"] >= 3 and report["again"]["apart_us"]["count"] >= 3
