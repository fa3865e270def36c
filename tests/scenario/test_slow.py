"""Clients and backends that are slow or stop altogether: their cost is bounded, and other clients are not slower, even while
connections move."""

import contextlib
import re
import select
import socket
import ssl
import statistics
import threading
import time

import pytest

from tests.lib.build import SANITIZED, patience, scaled
from tests.lib.cluster import ControlError
from tests.lib.edits import nobody_moves
from tests.lib.mover import Mover, after, settled
from tests.lib.pattern import first_difference
from tests.lib.unread import unread
from tests.lib.waiting import wait_until

# What a connection may cost in one process: a window of 64 KiB where it waits, in a buffer of twice that length; in RAgent the same
# bytes once more for the next process, and a part of a record. AddressSanitizer keeps freed memory for a while, and pads.
PER_CONNECTION = 256 << 10
MARGIN = (96 if SANITIZED else 8) << 20
ASKED = b"GET /100m HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=nobody_moves)


def rss(cluster):
    """Resident memory of each daemon, in bytes."""
    def of(name):
        with open(f"/proc/{cluster.pid(name)}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024
    return {name: of(name) for name in ["r1"] + cluster.agents}


def assert_grew_little(cluster, before, connections):
    now = rss(cluster)
    allowed = connections * PER_CONNECTION + MARGIN
    assert all(now[name] - before[name] < allowed for name in now), (before, now)


MOVED = "client_bytes", "server_bytes", "bytes_to_backend", "bytes_to_client"


def at_rest(cluster, times=10, push=lambda: 0):
    """Until no byte has moved in any process for a while of looking, and nothing could be pushed meanwhile. Each look is answered by
    each process."""
    seen = []

    def still():
        seen.append((push(), [c.get(name) for c in cluster.counters().values() for name in MOVED]))
        return len(seen) > times and seen[-times:] == [(0, seen[-1][1])] * times
    wait_until(still, patience(30), "at rest")


class Good:
    """A client like any other: how long its requests take."""

    def __init__(self, cluster, where, **connect):
        self.web = cluster.http(where, **connect)

    def ask(self):
        began = time.monotonic()
        self.web.request("GET", "/1k")
        assert first_difference(self.web.getresponse().read(), 1024) is None
        return time.monotonic() - began

    def latencies(self, count):
        return sorted(self.ask() for _ in range(count))


def assert_not_slower(beside, alone):
    """If a client waited for a slow one, it would take seconds; the rest is noise of the machine, on which other tests run."""
    assert statistics.median(beside) < 4 * statistics.median(alone) + patience(0.05)
    assert beside[-1] < patience(2), beside[-10:]


@pytest.mark.parametrize("where", ["sf", "direct"])
def test_clients_that_never_read_cost_a_window_each(cluster, where):
    address, count = cluster.direct["a1"] if where == "direct" else cluster.sf, scaled(50)
    with contextlib.ExitStack() as stack:
        good = Good(cluster, address)
        stack.enter_context(contextlib.closing(good.web))
        alone, before = good.latencies(50), rss(cluster)
        clients = [stack.enter_context(cluster.connect(sock=unread(address))) for _ in range(count)]
        for client in clients:
            client.sendall(ASKED)
        at_rest(cluster)
        assert_grew_little(cluster, before, count)
        assert_not_slower(good.latencies(50), alone)
        at_rest(cluster)
        assert_grew_little(cluster, before, count)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_client_that_does_not_read_moves_in_bounded_memory_and_its_answer_is_whole(cluster, version):
    size = scaled(20 << 20)
    with cluster.connect(context=cluster.context(version), sock=unread(cluster.sf)) as client:
        before = rss(cluster)
        client.sendall(ASKED.replace(b"100m", b"%d" % size))
        at_rest(cluster, times=5)
        for _ in range(scaled(10)):
            Mover(2)(cluster, client)
        assert_grew_little(cluster, before, 1)
        with client.makefile("rb") as answer:
            while answer.readline() != b"\r\n":
                pass
            body = answer.read(size)
        assert len(body) == size and first_difference(body, size) is None


class Dribbler:
    """A TLS client that sends in small pieces: a hello, a request in one record, or each byte of it in a record of its own."""

    def __init__(self, cluster, where, words):
        self._raw = socket.create_connection(where, patience(20))
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = cluster.context().wrap_bio(self._in, self._out, server_hostname="localhost")
        {"a hello": self._begin, "a record": self._ask, "bytes in records of their own": self._ask_byte_by_byte}[words]()

    def _begin(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self._pieces = [bytes([byte]) for byte in self._out.read()]

    def _shake_hands(self):
        while True:
            try:
                self._tls.do_handshake()
                self._raw.sendall(self._out.read())
                return
            except ssl.SSLWantReadError:
                self._raw.sendall(self._out.read())
                self._in.write(self._raw.recv(65536))

    def _seal(self, plain):
        self._tls.write(plain)
        return self._out.read()

    def _ask(self):
        self._shake_hands()
        self._pieces = [bytes([byte]) for byte in self._seal(ASKED)]

    def _ask_byte_by_byte(self):
        self._shake_hands()
        self._pieces = [self._seal(bytes([byte])) for byte in ASKED]

    def say_one(self):
        self._raw.send(self._pieces.pop(0))

    def lives(self):
        return not (select.select([self._raw], [], [], 0)[0] and self._raw.recv(1, socket.MSG_PEEK) == b"")

    def close(self):
        self._raw.close()


class OneByteASecond(threading.Thread):
    """Many of them, in turn, until closed."""

    def __init__(self, dribblers):
        super().__init__(daemon=True)
        self._dribblers, self._over, self.rounds = dribblers, threading.Event(), 0

    def run(self):
        while not self._over.wait(1):
            for dribbler in self._dribblers:
                dribbler.say_one()
            self.rounds += 1

    def close(self):
        self._over.set()
        self.join()


@pytest.mark.parametrize("words", ["a hello", "a record", "bytes in records of their own"])
@pytest.mark.parametrize("where", ["sf", "direct"])
def test_clients_that_say_a_byte_a_second_cost_others_nothing(cluster, where, words):
    address, count = cluster.direct["a1"] if where == "direct" else cluster.sf, scaled(100)
    with contextlib.ExitStack() as stack:
        good = Good(cluster, address)
        stack.enter_context(contextlib.closing(good.web))
        alone = good.latencies(100)
        slow = [stack.enter_context(contextlib.closing(Dribbler(cluster, address, words))) for _ in range(count)]
        before = rss(cluster)
        talking = OneByteASecond(slow)
        talking.start()
        stack.enter_context(contextlib.closing(talking))
        beside = []
        while talking.rounds < 2:
            beside.append(good.ask())
        assert_not_slower(sorted(beside), alone)
        assert all(dribbler.lives() for dribbler in slow)
        assert_grew_little(cluster, before, count)


@pytest.mark.parametrize("mover", [0, 1], indirect=True)
def test_a_slow_backend_costs_its_own_clients_only(cluster, mover):
    with contextlib.ExitStack() as stack:
        good = Good(cluster, cluster.sf)
        stack.enter_context(contextlib.closing(good.web))
        alone, before = good.latencies(100), rss(cluster)
        waiting = [stack.enter_context(cluster.connect()) for _ in range(scaled(50))]
        for number, client in enumerate(waiting):
            path = b"/hold?ms=60000" if number % 2 else b"/slow?bytes=1000000&ms=60000"
            client.sendall(ASKED.replace(b"/100m", path))
        for client in waiting[::5]:
            mover(cluster, client)
        assert_not_slower(good.latencies(100), alone)
        assert_grew_little(cluster, before, len(waiting))


class Stalled:
    """A backend that accepts and never reads."""

    def __init__(self):
        self._server = socket.socket()
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._server.bind(("127.0.0.1", 0))
        self._server.listen(100)
        self.address = "%s:%d" % self._server.getsockname()
        self._accepted = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                self._accepted.append(self._server.accept()[0])

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._accepted:
            connection.close()


def push(client, piece):
    """Say as much as goes without waiting; bytes."""
    said = 0
    client.setblocking(False)
    with contextlib.suppress(ssl.SSLWantWriteError, BlockingIOError):
        while said < 100 << 20:
            said += client.send(piece)
    return said


@pytest.mark.parametrize("where", ["sf", "sf, to be moved", "direct"])
def test_uploads_to_a_backend_that_does_not_read_are_bounded(start_cluster, where):
    """A connection that should move stays, because the bytes that its agent holds cannot move with it."""
    with contextlib.closing(Stalled()) as backend, contextlib.ExitStack() as stack:
        cluster = start_cluster("--agents", "2", "--backend", backend.address, edit=nobody_moves)
        address, count = cluster.direct["a1"] if where == "direct" else cluster.sf, scaled(30)
        before = rss(cluster)
        clients = [stack.enter_context(cluster.connect(address)) for _ in range(count)]
        for client in clients:
            client.sendall(b"POST /sha256 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (100 << 20))
        if where != "direct":
            first = settled(cluster, clients[0])
        piece, said = bytes(16384), [0] * count

        def more():
            pushed = [push(client, piece) for client in clients]
            for number, n in enumerate(pushed):
                said[number] += n
            return sum(pushed)

        at_rest(cluster, push=more)
        if where == "sf, to be moved":
            with pytest.raises(ControlError, match="does not take what was sent"):
                cluster.move(first["id"], after(cluster, first["owner"]))
            at_rest(cluster, push=more)
        assert max(said) < 50 << 20  # not all of it is in the kernel's buffers
        assert cluster.counters()["ragent"]["kept_bytes"] < count * PER_CONNECTION
        assert_grew_little(cluster, before, count)
