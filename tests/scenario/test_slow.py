"""Clients and backends that are slow, or stop: they cost bounded memory, nobody else notices, and everything is given back."""

import contextlib
import os
import pathlib
import re
import selectors
import socket
import ssl
import statistics
import threading
import time

import pytest

from tests.lib import edits
from tests.lib.build import SANITIZED, patience, scaled
from tests.lib.pattern import pattern
from tests.lib.rude_backend import RudeBackend
from tests.lib.waiting import wait_until

WINDOW = 128 * 1024  # limits.window, by default
# What an allocator keeps of what was freed; AddressSanitizer holds freed memory back for long.
SLACK = (256 if SANITIZED else 8) << 20
STOPPED, TRICKLING, HANDSHAKE_S = scaled(50, 5), scaled(100, 10), patience(2)

GET = "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n"


def rss(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def daemons(cluster):
    return ["r1", *cluster.agents]


def held(cluster):
    """What connections cost that must be given back."""
    counters = cluster.counters()
    open_at = {name: counters[name]["connections_opened"] - counters[name]["connections_ended"] for name in cluster.agents}
    return counters["ragent"]["connections_open"], open_at, {name: descriptors(cluster.pid(name)) for name in daemons(cluster)}


@contextlib.contextmanager
def given_back(cluster):
    """Descriptors and connections stand in the end where they stood before."""
    fetch_time(cluster)  # what is made once, at the first connection, is made
    wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 0)
    before = held(cluster)
    yield
    wait_until(lambda: held(cluster) == before, patience(15), f"back to {before}")


@contextlib.contextmanager
def bounded(cluster, connections):
    """No process grows by more than three windows a connection: client to backend, backend to client, and what moves."""
    before = {name: rss(cluster.pid(name)) for name in daemons(cluster)}
    yield
    grown = {name: rss(cluster.pid(name)) - before[name] for name in before}
    assert max(grown.values()) < 3 * connections * WINDOW + SLACK, grown


def fetch_time(cluster):
    """Seconds for a handshake and an answer, whole."""
    begun = time.monotonic()
    with contextlib.closing(cluster.http()) as web:
        web.request("GET", "/64k")
        assert web.getresponse().read() == pattern(65536)
    return time.monotonic() - begun


def wait_steady(read):
    """Until it stands still for a while; the value."""
    last, since = read(), time.monotonic()

    def stands():
        nonlocal last, since
        now = read()
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > 0.3

    wait_until(stands, patience(20), "standing still")
    return last


def stubborn(cluster, stack, context):
    """A TLS connection that has room for little."""
    sock = socket.socket()
    stack.callback(sock.close)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(patience(20))
    sock.connect(cluster.sf)
    return stack.enter_context(context.wrap_socket(sock, server_hostname="localhost"))


def send_until_stuck(sock):
    """As much as goes; how much went."""
    sent, piece = 0, bytes(65536)
    sock.settimeout(patience(0.1))
    with contextlib.suppress(TimeoutError):
        while True:
            sent += sock.send(piece)
    return sent


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=edits.at_end(f"limits: {{ handshake_timeout: {HANDSHAKE_S}s }}"))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_clients_that_never_read_cost_bounded_memory_and_nobody_else(cluster, version):
    context = cluster.context(version)
    with given_back(cluster), contextlib.ExitStack() as stack, bounded(cluster, STOPPED):
        for _ in range(STOPPED):
            stubborn(cluster, stack, context).sendall(GET.format("/100m").encode())
        wait_steady(lambda: cluster.counters()["ragent"]["server_bytes"])
        assert cluster.counters()["ragent"]["connections_open"] == STOPPED
        assert fetch_time(cluster) < patience(1)


def test_a_client_that_stopped_reading_gets_everything_when_it_goes_on(cluster):
    size = scaled(20, 2) << 20
    with given_back(cluster), contextlib.ExitStack() as stack:
        sock = stubborn(cluster, stack, cluster.context())
        sock.sendall(f"GET /{size} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        wait_steady(lambda: cluster.counters()["ragent"]["server_bytes"])
        answer = b"".join(iter(lambda: sock.recv(1 << 20), b""))
        assert answer.partition(b"\r\n\r\n")[2] == pattern(size)


class Trickle:
    """Sends each socket its bytes, one a second."""

    def __init__(self, texts):
        self.sent, self._texts, self._ended = 0, texts, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._ended.is_set():
            for sock, text in self._texts.items():
                with contextlib.suppress(OSError):
                    sock.send(text[self.sent:self.sent + 1])
            self.sent += 1
            self._ended.wait(1)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()


def wait_all_ended(socks):
    """Until the other side has ended each."""
    with selectors.DefaultSelector() as selector:
        for sock in socks:
            selector.register(sock, selectors.EVENT_READ)
        until = time.monotonic() + HANDSHAKE_S + patience(5)
        while selector.get_map():
            assert time.monotonic() < until, f"{len(selector.get_map())} were not ended"
            for key, _ in selector.select(0.2):
                with contextlib.suppress(ConnectionResetError):
                    assert key.fileobj.recv(1) == b""
                selector.unregister(key.fileobj)


def median_time(cluster):
    return statistics.median(fetch_time(cluster) for _ in range(20))


def median_time_beside(cluster, trickle, each):
    """While every client sends so many bytes."""
    wait_until(lambda: trickle.sent > 0)
    times = []
    while trickle.sent < each or len(times) < 20:
        times.append(fetch_time(cluster))
    return statistics.median(times)


def client_hello(cluster):
    """The first bytes of a handshake."""
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        cluster.context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    return out.read()


def test_hellos_of_one_byte_a_second_cost_nobody_anything_and_time_out(cluster):
    hello = client_hello(cluster)
    with given_back(cluster), contextlib.ExitStack() as stack:
        alone = median_time(cluster)
        timed_out = cluster.counters()["ragent"]["ended_handshake_timeout"]
        texts = {stack.enter_context(socket.create_connection(cluster.sf)): hello for _ in range(TRICKLING)}
        with Trickle(texts) as trickle:
            assert median_time_beside(cluster, trickle, 2) < 3 * alone + 0.02
            wait_all_ended(texts)
        assert cluster.counters()["ragent"]["ended_handshake_timeout"] == timed_out + TRICKLING


def test_records_of_one_byte_a_second_cost_nobody_anything(cluster):
    context = cluster.context()
    with given_back(cluster), contextlib.ExitStack() as stack, bounded(cluster, TRICKLING):
        alone = median_time(cluster)
        tls = [stack.enter_context(cluster.connect(context=context)) for _ in range(TRICKLING)]
        # Below TLS: the head of a record of 256 bytes, which never becomes whole.
        texts = {stack.enter_context(socket.socket(fileno=os.dup(sock.fileno()))): bytes.fromhex("1703030100") for sock in tls}
        with Trickle(texts) as trickle:
            assert median_time_beside(cluster, trickle, 4) < 3 * alone + 0.02
            assert cluster.counters()["ragent"]["connections_open"] == TRICKLING


def test_a_slow_backend_is_waited_for_and_left_when_the_client_goes(cluster):
    context, backend = cluster.context(), cluster.pid("backend")
    with given_back(cluster):
        before = descriptors(backend)
        with contextlib.ExitStack() as stack, bounded(cluster, STOPPED):
            for _ in range(STOPPED):
                sock = stack.enter_context(cluster.connect(context=context))
                sock.sendall(GET.format("/slow?bytes=600000&ms=600000").encode())
                assert sock.recv(15) == b"HTTP/1.1 200 OK"
            assert descriptors(backend) >= before + STOPPED
            assert fetch_time(cluster) < patience(1)
        wait_until(lambda: descriptors(backend) <= before, what="the backend is left")


def test_uploads_to_a_backend_that_stops_reading_are_bounded_and_end(start_cluster):
    stop, count = threading.Event(), scaled(20, 4)
    answers = {"/stop": lambda _: stop.wait(), "/64k": lambda c: c.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + pattern(65536))}
    with RudeBackend(answers) as backend:
        cluster = start_cluster("--agents", "2", "--backend", backend.address)
        head = "POST /stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
        context = cluster.context()
        with given_back(cluster):
            with contextlib.ExitStack() as stack, bounded(cluster, count):
                for _ in range(count):
                    sock = stack.enter_context(cluster.connect(context=context))
                    sock.sendall(head.encode())
                    assert send_until_stuck(sock) > WINDOW
                assert fetch_time(cluster) < patience(1)
            stop.set()
            wait_until(lambda: len(backend.ends["/stop"]) == count)
        assert set(backend.ends["/stop"]) == {"reset"}
