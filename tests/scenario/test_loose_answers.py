"""Answers of old servers and devices, which a strict parser does not understand, and whose end is the end of their connection."""

import socket
import socketserver
import ssl
import struct

import pytest

from tests.lib.build import patience
from tests.lib.edits import nobody_moves
from tests.lib.threaded_server import ThreadedServer

BARE_LF = b"HTTP/1.1 200 OK\nServer: old\n\nhello\n"
WITH_LENGTH = b"HTTP/1.1 200 OK\nContent-Length: 6\n\n"
WHOLE = {
    "bare LF": BARE_LF,
    "control character": b"HTTP/1.1 200 OK\r\nX: a\x01b\r\n\r\nhello\n",
    "identity": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 6\r\n\r\nhello\n",
    "ICY": b"ICY 200 OK\r\nicy-name: x\r\n\r\nhello\n",
    "bare LF with a length": WITH_LENGTH + b"hello\n",
}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            pass
        self.wfile.write(self.server.answer)
        if self.server.resets:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


@pytest.fixture(scope="module")
def backend():
    with ThreadedServer(Handler) as server:
        yield server


@pytest.fixture(scope="module")
def cluster(start_module_cluster, backend):
    return start_module_cluster("--agents", "1", "--backend", backend.address, edit=nobody_moves)


def ask(cluster, backend, answer, resets=False):
    """What the client got; and its end: in order, or not."""
    backend.answer, backend.resets, got = answer, resets, b""
    with cluster.connect() as sock:
        sock.suppress_ragged_eofs = False
        sock.settimeout(patience(20))
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            while more := sock.recv(4096):
                got += more
        except (ssl.SSLError, ConnectionResetError):
            return got, "cut"
    return got, "in order"


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
def test_an_answer_until_the_end_of_its_connection_ends_in_order(cluster, backend, answer):
    assert ask(cluster, backend, answer) == (answer, "in order")


def test_one_that_is_short_of_its_length_is_cut(cluster, backend):
    assert ask(cluster, backend, WITH_LENGTH + b"hel") == (WITH_LENGTH + b"hel", "cut")


def test_one_that_ends_by_a_reset_is_cut(cluster, backend):
    assert ask(cluster, backend, BARE_LF, resets=True)[1] == "cut"
