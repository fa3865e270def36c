"""How connections end: half-closed on either side, cut, or complete; with and without a move in the middle. An agent sends
close_notify only where nothing was cut."""

import contextlib
import re
import socket
import threading

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.mover import Mover
from tests.lib.probe import Probe
from tests.lib.rude_backend import RudeBackend, reset
from tests.lib.waiting import wait_until

ALERT = 21
CLOSE_NOTIFY = b"\1\0"
BEGINNING = "text/plain\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: " + BEGINNING.encode()
LONG = 200_000
UPLOAD = 16 << 20
GREETING = b"hello\n"


def fin(connection):
    connection.shutdown(socket.SHUT_WR)


may_end = threading.Event()


def answer(text, end):
    """Says this, and ends once it may."""
    def run(connection):
        connection.sendall(text)
        may_end.wait(patience(10))
        end(connection)
    return run


LAST = HEAD + b"Connection: close\r\nContent-Length: 4\r\n\r\nlast"


def talk_on(connection):
    """Says that this answer is the last one, and answers the next request all the same."""
    connection.sendall(LAST)
    may_end.wait(patience(10))
    connection.sendall(HEAD + b"Content-Length: 4\r\n\r\nmore")
    fin(connection)


def swallow(_):
    """Reads on and sends nothing."""


CUT = {
    "/cut-in-the-head": answer(HEAD, fin),
    "/cut-by-fin": answer(HEAD + b"Content-Length: 1000\r\n\r\n" + bytes(500), fin),
    "/cut-by-reset": answer(HEAD + b"Content-Length: 1000\r\n\r\n" + bytes(500), reset),
    "/chunks-cut": answer(HEAD + b"Transfer-Encoding: chunked\r\n\r\n100\r\n" + bytes(256) + b"\r\n", fin),
    "/chunk-cut": answer(HEAD + b"Transfer-Encoding: chunked\r\n\r\n100\r\n" + bytes(17), fin),
    "/to-the-end-cut": answer(HEAD + b"\r\n" + bytes(500), reset),
    "/cut-behind-continue": answer(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD, reset),
}
TOO_LARGE = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def refuse(connection):
    """An upload, before it is there, and reads on."""
    connection.sendall(TOO_LARGE)
    fin(connection)


WHOLE = {"/to-the-end": answer(HEAD + b"\r\n" + bytes(LONG), fin), "/swallow": swallow, "/refuse": refuse, "/last": talk_on}


class Greeter:
    """The other way round: the backend speaks first and ends its side, and reads on."""

    def __init__(self):
        self.heard, self.socket = b"", socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(patience(10))
        self.address = "%s:%d" % self.socket.getsockname()

    def serve_one(self):
        connection, _ = self.socket.accept()
        with connection:
            connection.settimeout(patience(10))
            connection.sendall(GREETING)
            fin(connection)
            yield
            while data := connection.recv(65536):
                self.heard += data
        yield


@pytest.fixture(scope="module")
def rude():
    with RudeBackend({**CUT, **WHOLE}) as backend:
        yield backend


@pytest.fixture(scope="module")
def greeter():
    made = Greeter()
    with contextlib.closing(made.socket):
        yield made


@pytest.fixture(scope="module")
def rude_cluster(start_module_cluster, rude, greeter):
    tcp = """\
  - name: tcp
    listen: ["127.0.0.1:0"]
    service: tcp
    backend: greeter
    tls: { certificates: [ecdsa] }"""
    return start_module_cluster("--agents", "2", "--backend", rude.address, edit=edits.edits(
        edits.backend("greeter", greeter.address), edits.at_end(tcp), edits.nobody_moves))


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=edits.nobody_moves)


# How often the client's connection moves.
MOVES = {"sf": 0, "sf, moved": 1, "sl": 0, "sl, moved twice": 2, "direct": 0}


def of(cluster, where):
    return {"sf": cluster.sf, "sl": cluster.sl, "direct": cluster.direct["a1"]}[where.split(",")[0]]


def in_the_middle(cluster, probe, where):
    """In the middle of any work of a test with its connection, which moves there as often as `where` says."""
    if MOVES[where]:
        Mover(MOVES[where])(cluster, probe)


each_way = pytest.mark.parametrize("where,version", [(where, version) for where in MOVES for version in ("1.2", "1.3")])


@contextlib.contextmanager
def client(address, version):
    with Probe(address) as probe:
        assert probe("handshake", version=version, sni="localhost")["done"]
        yield probe


def request(path, method="GET", fields=""):
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"


def read_into_the_answer(cluster, probe, path, where):
    """Asks, and has the backend end its answer no sooner than the connection has moved in the midst of it."""
    may_end.clear()
    probe("send", text=request(path))
    probe("read", until=BEGINNING)
    in_the_middle(cluster, probe, where)
    may_end.set()


@each_way
@pytest.mark.parametrize("path", CUT)
def test_a_truncated_answer_ends_in_an_alert_never_in_close_notify(rude_cluster, path, where, version):
    with client(of(rude_cluster, where), version) as probe:
        read_into_the_answer(rude_cluster, probe, path, where)
        end = probe("end")
        assert (end["end"], end["alert_name"], end["tcp"]) == ("alert", "internal error", "fin")


@each_way
def test_an_answer_delimited_by_the_end_is_whole_and_closed_by_close_notify(rude_cluster, where, version):
    with client(of(rude_cluster, where), version) as probe:
        read_into_the_answer(rude_cluster, probe, "/to-the-end", where)
        end = probe("end")
        assert (end["end"], end["tcp"], end["bytes"]) == ("close_notify", "fin", 2 + LONG)


@each_way
@pytest.mark.parametrize("upload", ["half a head", "half a body", "half a chunk"])
def test_half_a_request_resets_the_backend(rude_cluster, rude, where, version, upload):
    said = {"half a head": request("/swallow") + "GET /next HTT",
            "half a body": request("/swallow", "POST", "Content-Length: 1000\r\n") + "x" * 500,
            "half a chunk": request("/swallow", "POST", "Transfer-Encoding: chunked\r\n") + "100\r\nx"}[upload]
    begun, ended = rude.begun["/swallow"], len(rude.ends["/swallow"])
    with client(of(rude_cluster, where), version) as probe:
        probe("send", text=said)
        wait_until(lambda: rude.begun["/swallow"] > begun)
        in_the_middle(rude_cluster, probe, where)
        probe("fin")
        end = probe("end")
        assert (end["end"], end["alert_name"]) == ("alert", "internal error")
        wait_until(lambda: len(rude.ends["/swallow"]) > ended)
    assert rude.ends["/swallow"][ended:] == ["reset"]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("where", ["sf", "sl", "direct"])
def test_an_answer_before_the_end_of_its_request_reaches_a_client_that_reads_late(rude_cluster, where, version):
    """The client sends all of its upload first, most of which is dropped."""
    with rude_cluster.connect(of(rude_cluster, where), rude_cluster.context(version)) as sock:
        sock.sendall(request("/refuse", "POST", f"Content-Length: {UPLOAD}\r\n").encode())
        sock.sendall(bytes(UPLOAD))
        assert b"".join(iter(lambda: sock.recv(1000), b"")) == TOO_LARGE


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("where", ["sf", "sl", "direct"])
def test_behind_the_last_answer_a_pipelined_request_gets_none(rude_cluster, rude, where, version):
    begun = rude.begun["/to-the-end"]
    may_end.clear()
    with rude_cluster.connect(of(rude_cluster, where), rude_cluster.context(version)) as sock:
        sock.sendall((request("/last") + request("/to-the-end")).encode())
        got = b""
        while len(got) < len(LAST):
            got += sock.recv(1000)
        may_end.set()
        assert got + b"".join(iter(lambda: sock.recv(1000), b"")) == LAST
    assert rude.begun["/to-the-end"] == begun


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_backend_may_end_its_half_first(rude_cluster, greeter, version, mover):
    tcp = next(one for one in rude_cluster.status()["listeners"] if one["name"] == "tcp")
    port = int(tcp["addresses"][0].rsplit(":", 1)[1])
    greeter.heard = b""
    with rude_cluster.connect(("127.0.0.1", port), rude_cluster.context(version)) as sock:
        serving = greeter.serve_one()
        next(serving)
        # At an end without close_notify Python's ssl raises.
        assert b"".join(iter(lambda: sock.recv(100), b"")) == GREETING
        mover(rude_cluster, sock)
        sock.sendall(bytes(LONG))
        sock.unwrap().close()
        next(serving)
    assert greeter.heard == bytes(LONG)


@each_way
def test_a_client_that_said_close_notify_still_reads_the_rest(cluster, where, version):
    with client(of(cluster, where), version) as probe:
        probe("send", text=request("/1m"))
        in_the_middle(cluster, probe, where)
        probe("close_notify")
        end = probe("end")
        assert (end["end"], end["tcp"]) == ("close_notify", "fin")
        assert (1 << 20) < end["bytes"] < (1 << 20) + 1000


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_half_closed_connection_can_move(cluster, version):
    earlier = {c["id"] for c in cluster.connections()}
    with client(cluster.sf, version) as probe:
        probe("send", text=request("/slow?bytes=300000&ms=1000"))
        probe("read", until="\r\n\r\n")
        probe("close_notify")
        moving = next(c for c in cluster.connections() if c["id"] not in earlier)
        other = next(name for name in cluster.agents if name != moving["owner"])
        cluster.move(moving["id"], other)
        assert cluster.connection(moving["id"])["owner"] == other
        end = probe("end")
        assert (end["end"], end["tcp"], end["bytes"]) == ("close_notify", "fin", 300000)


@each_way
def test_data_behind_close_notify_is_ignored(cluster, where, version):
    identity = re.sub("[ ,]+", "-", f"{where}-{version}")
    with client(of(cluster, where), version) as probe:
        probe("send", text=request("/slow?bytes=3000&ms=100"))
        in_the_middle(cluster, probe, where)
        probe("forge", type=ALERT, text=CLOSE_NOTIFY)
        probe("forge", text=request("/count", "POST", f"X-Id: {identity}\r\nContent-Length: 0\r\n"))
        probe("forge", text=b"x", tag="wrong")
        end = probe("end")
        assert (end["end"], end["tcp"]) == ("close_notify", "fin")
        assert 3000 < end["bytes"] < 4000
    with contextlib.closing(cluster.http()) as web:
        web.request("GET", f"/count/{identity}")
        assert b'"executions":0' in web.getresponse().read()
