"""Requests whose heads come slowly: no backend connection is begun for them before they are whole, whoever owns the client's
connection then, and each request reaches the backend once."""

import contextlib

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.held_backend import HeldBackend
from tests.lib.pattern import pattern
from tests.lib.waiting import wait_until

CLIENTS = 200
HEAD_S = patience(1.5)


class Accepting(HeldBackend):
    """Counts its connections, too."""

    accepted = 0

    def process_request(self, request, client_address):
        self.accepted += 1
        super().process_request(request, client_address)


@pytest.fixture
def backend():
    with Accepting() as accepting:
        yield accepting


def head_of(number):
    return f"GET /{number} HTTP/1.1\r\nHost: localhost\r\nX-Number: {number}\r\n\r\n".encode()


def spread(cluster, count):
    """Ways to the agents: RAgent's listener and the agents' own."""
    ways = [cluster.sf, cluster.sl] + list(cluster.direct.values())
    return [ways[number % len(ways)] for number in range(count)]


@contextlib.contextmanager
def half_said(cluster, ways, byte_by_byte=False):
    """Clients that have said half a head, which their agents have opened."""
    context, before = cluster.context(), cluster.counter("records_opened")
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(cluster.connect(where, context)) for where in ways]
        for number, sock in enumerate(socks):
            half = head_of(number)[:30]
            for at in range(len(half)) if byte_by_byte else [0]:
                sock.sendall(half[at:at + 1] if byte_by_byte else half)
        records = len(socks) * (30 if byte_by_byte else 1)
        wait_until(lambda: cluster.counter("records_opened") - before >= records, patience(20))
        yield socks


def finish(socks):
    for number, sock in enumerate(socks):
        sock.sendall(head_of(number)[30:])
    for number, sock in enumerate(socks):
        answer = b""
        while not answer.endswith(b"GET /%d" % number):
            came = sock.recv(4096)
            assert came, (number, answer)
            answer += came
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer


def asked_once(backend, count):
    assert sorted(request.path for request in backend.seen) == sorted(f"/{number}" for number in range(count))


@pytest.mark.parametrize("reuse", ["off", "on"])
def test_a_backend_is_connected_when_the_heads_are_whole(start_cluster, backend, reuse):
    cluster = start_cluster("--agents", "2", "--backend", backend.address, edit=edits.edits(
        edits.nobody_moves, edits.instead("- { name: main,", f"- {{ reuse: {reuse}, name: main,")))
    before = backend.accepted
    with half_said(cluster, spread(cluster, CLIENTS)) as socks:
        assert backend.accepted == before and cluster.counter("backend_connects") == 0
        finish(socks)
        asked_once(backend, CLIENTS)
        assert backend.accepted - before == cluster.counter("backend_connects")
        # A head that comes in pieces keeps its connection for its client (doc/services.md).
        assert cluster.counter("backend_connects") + cluster.counter("backend_reused") == CLIENTS


def test_a_backend_that_is_told_of_its_clients_is_connected_likewise(start_cluster):
    cluster = start_cluster("--agents", "2", edit=edits.edits(
        edits.nobody_moves, edits.instead("- { name: main,", "- { proxy_v2: on, name: main,")))
    ways = spread(cluster, 12)
    with contextlib.ExitStack() as stack:
        before = cluster.counter("backend_connects")
        webs = [stack.enter_context(contextlib.closing(cluster.http(where))) for where in ways]
        for web in webs:
            web.sock.sendall(b"GET /5 HT")
        wait_until(lambda: cluster.counter("records_opened") >= len(ways))
        assert cluster.counter("backend_connects") == before
        for web in webs:
            web.sock.sendall(b"TP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"".join(iter(lambda sock=web.sock: sock.recv(4096), b"")).endswith(pattern(5))
        assert cluster.counter("backend_connects") - before == len(ways)


def test_slow_heads_outlive_their_owner(start_cluster, backend):
    """Their backend is connected by the owner that gets the rest."""
    cluster = start_cluster("--agents", "2", "--backend", backend.address, edit=edits.nobody_moves)
    with half_said(cluster, [cluster.sf] * 20 + [cluster.sl] * 20, byte_by_byte=True) as socks:
        cluster.kill("a1")
        wait_until(lambda: all(c["owner"] == "a2" for c in cluster.connections()), patience(20))
        wait_until(lambda: cluster.counters()["a2"]["recovered_replayed"], patience(20))
        assert backend.accepted == 0 and cluster.counters()["a2"]["backend_connects"] == 0
        finish(socks)
        asked_once(backend, len(socks))
        assert backend.accepted == len(socks)


def test_slow_heads_move_amid_a_drain(start_cluster, backend):
    """Each owner's backend connection goes along. Nobody waits for the end of a head."""
    cluster = start_cluster("--agents", "2", "--backend", backend.address, edit=edits.nobody_moves)
    with half_said(cluster, [cluster.sf] * 20 + [cluster.sl] * 20) as socks:
        cluster.drain("a1", patience(20) * 1000)
        report = cluster.wait_drained("a1")
        assert report["state"] == "drained", report
        finish(socks)
        asked_once(backend, len(socks))
        assert backend.accepted == len(socks)


def test_late_heads_reach_no_backend(start_cluster, backend):
    cluster = start_cluster("--agents", "2", "--backend", backend.address, edit=edits.edits(
        edits.at_end(f"limits: {{ request_head_timeout: {HEAD_S * 1000:.0f}ms }}"), edits.nobody_moves))
    with half_said(cluster, spread(cluster, 20)) as socks:
        for sock in socks:
            assert b"".join(iter(lambda s=sock: s.recv(4096), b"")).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert cluster.counter("request_heads_late") == len(socks)
    assert backend.accepted == 0 and backend.seen == []
