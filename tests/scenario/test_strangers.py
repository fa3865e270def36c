"""The resources that strangers can make the cluster use: lines of its logs, memory, handshakes, backend connections. Each has a
bound, and other clients notice nothing."""

import contextlib
import pathlib
import re
import socket
import time

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.half_open import HalfOpen
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until


def connect(where, source="127.0.0.1"):
    return socket.create_connection(where, patience(10), (source, 0))


# Lines of logs

STRANGERS = 200


def come_and_go(cluster):
    """Strangers whose first byte is no TLS."""
    for _ in range(STRANGERS):
        with connect(cluster.sf) as sock:
            sock.sendall(b"x" * 64)
    wait_until(lambda: cluster.counters()["ragent"]["ended_not_tls"] == STRANGERS)


def ended_lines(cluster, log="access"):
    return [line for line in cluster.log(log).splitlines() if ": ended " in line]


def test_lines_of_ended_connections_among_events_are_a_sample_and_the_rest_is_counted(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.instead("    access_log: access.log\n", "")))
    come_and_go(cluster)

    def told():
        lines = ended_lines(cluster, "r1")
        written = sum("reason=" in line for line in lines)
        left_out = sum(int(line.partition("left_out=")[2]) for line in lines if "left_out=" in line)
        return written if written + left_out == STRANGERS else None
    assert wait_until(told, patience(5)) < STRANGERS / 2


def test_each_line_of_ended_connections_is_there_for_who_wants_it(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.at_end("log: { connections: all }")))
    come_and_go(cluster)
    wait_until(lambda: sum("reason=" in line for line in ended_lines(cluster)) == STRANGERS)


def test_no_line_of_ended_connections_is_there_for_who_does_not_want_it(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.at_end("log: { connections: off }")))
    come_and_go(cluster)
    assert not ended_lines(cluster)


# Half-open handshakes

PLACES, SHARE = 40, 30


@pytest.fixture
def narrow(start_cluster):
    """A cluster with few places for handshakes, which are held for long."""
    return start_cluster("--agents", "1", edit=edits.edits(
        edits.at_end(f"limits: {{ handshakes: {PLACES}, handshakes_per_source: {SHARE}, handshake_timeout: 2min }}")))


def get(web):
    web.request("GET", "/5")
    assert len(web.getresponse().read()) == 5


def check_served(cluster, count, where=None, source="127.0.0.9"):
    """So many clients, one after the other, are served as if nothing was."""
    context = cluster.context()
    for _ in range(count):
        with contextlib.closing(cluster.http(where, context, source=source)) as web:
            get(web)


def under_way(cluster, node="ragent"):
    return cluster.counters()[node]["handshakes_under_way"]


def test_a_source_that_leaves_handshakes_half_open_has_its_share_and_others_theirs(narrow):
    with contextlib.closing(narrow.http()) as before, HalfOpen(narrow.sf, 60, ["127.0.0.5"]) as flood:
        wait_until(lambda: flood.refused() == 60 - SHARE)
        assert narrow.counters()["ragent"]["handshakes_refused"] == narrow.counters()["ragent"]["ended_limit_handshakes"] == 60 - SHARE
        wait_until(lambda: under_way(narrow) == SHARE)
        check_served(narrow, 30)
        get(before)
        assert flood.refused() == 60 - SHARE  # there was room beside them
    wait_until(lambda: under_way(narrow) == under_way(narrow, "a1") == 0)


def test_half_open_handshakes_of_many_sources_give_way_to_newcomers(narrow):
    sources = [f"127.0.3.{n}" for n in range(1, 11)]
    with contextlib.closing(narrow.http()) as before, HalfOpen(narrow.sf, 3 * PLACES, sources) as flood:
        wait_until(lambda: flood.refused() == 2 * PLACES)
        check_served(narrow, 30)
        get(before)
        assert narrow.counters()["ragent"]["handshakes_displaced"] > 0
        assert under_way(narrow) <= PLACES
        assert narrow.counters()["a1"]["handshakes_under_way"] <= PLACES


def test_the_same_holds_where_clients_come_without_ragent(narrow):
    where = narrow.direct["a1"]
    with HalfOpen(where, 60, ["127.0.0.5"]) as flood:
        wait_until(lambda: flood.refused() == 60 - SHARE)
        assert narrow.counter("handshakes_refused_limit") == 60 - SHARE
        check_served(narrow, 10, where)
        with HalfOpen(where, 3 * PLACES, [f"127.0.3.{n}" for n in range(1, 11)]):
            check_served(narrow, 10, where)
        assert narrow.counter("handshakes_displaced") > 0
        wait_until(lambda: re.search("handshake gave way .*remedy=limits.handshakes", narrow.log("a1")))
        assert 'ended reason="handshake limit"' in narrow.log("a1")
        assert "internal error" not in narrow.log("a1")


def all_answered(cluster, count, node="a1"):
    """So many handshakes are under way, and each has its answer. One that waits for its turn counts as under way, and takes little."""
    answers = cluster.counters()["ragent"]["server_change_cipher_spec"] + count
    return lambda: under_way(cluster, node) == count and cluster.counters()["ragent"]["server_change_cipher_spec"] == answers


def resident(cluster, name):
    """Bytes of it that are in RAM."""
    status = pathlib.Path(f"/proc/{cluster.pid(name)}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


@pytest.mark.plain  # a sanitizer keeps what was freed
def test_what_half_open_handshakes_took_goes_back(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(
        edits.at_end("limits: { handshakes: 1024, handshakes_per_source: off, handshake_timeout: 2min }")))
    check_served(cluster, 20)
    before, answered = resident(cluster, "a1"), all_answered(cluster, 1000)
    with HalfOpen(cluster.sf, 1000):
        wait_until(answered, patience(20))
        held = resident(cluster, "a1") - before
        assert 20e6 < held < 1000 * 96 * 1024  # what --check says of one
    wait_until(lambda: resident(cluster, "a1") < before + 1000 * 8 * 1024, patience(15))
    wait_until(lambda: "memory given back" in cluster.log("a1"), patience(5))


@pytest.mark.plain
def test_hellos_that_claim_what_they_never_say_take_no_more(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(
        edits.at_end("limits: { handshakes: 1024, handshakes_per_source: off, handshake_timeout: 2min }")))
    check_served(cluster, 20)
    before = resident(cluster, "a1")
    with HalfOpen(cluster.direct["a1"], 500, hello=bytes.fromhex("1603010004" "01007ffc")), \
            HalfOpen(cluster.direct["a1"], 500, hello=bytes.fromhex("1603010004" "01020144")) as refused:
        wait_until(lambda: refused.refused() == 500 and under_way(cluster, "a1") == 500)
        assert resident(cluster, "a1") - before < 500 * 96 * 1024


# Heads of requests

HEAD_S = patience(0.6)


@pytest.fixture(scope="module")
def hasty(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=edits.edits(
        edits.at_end(f"limits: {{ request_head_timeout: {HEAD_S * 1000:.0f}ms }}"), edits.nobody_moves))


def late(cluster):
    return cluster.counter("request_heads_late")


def where_of(cluster, listener):
    return cluster.direct["a1"] if listener == "direct" else getattr(cluster, listener)


@pytest.mark.parametrize("said", ["G", "GET /5 HTTP/1.1\r\nHost: localh"], ids=["one byte", "half a head"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("listener", ["sf", "sl", "direct"])
def test_a_request_whose_head_does_not_end_is_answered_with_408(hasty, listener, version, said):
    before = late(hasty)
    with Probe(where_of(hasty, listener)) as probe:
        assert probe("handshake", version=version)["done"]
        begun = time.monotonic()
        probe("send", text=said)
        assert "HTTP/1.1 408 Request Timeout" in probe("read", until="Timeout\n")["text"]
        end = probe("end")
        assert (end["end"], end["tcp"]) == ("close_notify", "fin")
        assert 0.9 * HEAD_S < time.monotonic() - begun < HEAD_S + patience(2)
    assert late(hasty) == before + 1


@pytest.mark.parametrize("text", ["GET /5 HTTP/1.1\r\nHost: localhost\r\nX-Long: " + "x" * 1000, "\r\n" * 500], ids=["a head", "empty lines"])
def test_a_byte_now_and_then_does_not_prolong_a_head(hasty, text):
    before, begun = late(hasty), time.monotonic()
    with Probe(hasty.sf) as probe:
        assert probe("handshake")["done"]
        with contextlib.suppress(Exception):
            for byte in text:
                probe("send", text=byte)
                time.sleep(0.05)
                if late(hasty) > before:
                    break
        wait_until(lambda: late(hasty) == before + 1, patience(5))
        assert time.monotonic() - begun < HEAD_S + patience(3)


def test_what_is_whole_in_time_has_all_the_time_it_wants(hasty):
    """A body, an answer, a pause between two requests, a pipelined head while an answer is running."""
    before = late(hasty)
    with Probe(hasty.sf) as probe:
        assert probe("handshake")["done"]
        probe("send", text="POST /sha256 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
        time.sleep(1.5 * HEAD_S)
        probe("send", text="b")
        assert "200 OK" in probe("read", until="}\n")["text"]
        time.sleep(1.5 * HEAD_S)
        assert probe("get", path=f"/slow?bytes=300&ms={1500 * HEAD_S:.0f}")["outcome"] == "complete"
        probe("send", text=f"GET /slow?bytes=3000&ms={1500 * HEAD_S:.0f} HTTP/1.1\r\nHost: localhost\r\n\r\nGET /5 HT")
        time.sleep(1.2 * HEAD_S)
        probe("send", text="TP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(2):
            assert "200 OK" in probe("read", until="200 OK")["text"]
    assert late(hasty) == before


# Bytes that are kept

KEPT = 3 << 20


@pytest.fixture
def frugal(start_cluster):
    return start_cluster("--agents", "1", edit=edits.edits(edits.at_end("limits: { kept: 3MiB }"), edits.nobody_moves))


def kept(cluster, node="ragent"):
    return cluster.counters()[node]["kept_bytes"]


def begin(web, request, body=b""):
    web.sock.sendall(request.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def test_requests_that_are_kept_to_be_asked_again_have_a_budget(start_cluster):
    """The connection that keeps most can no longer ask again, and goes on."""
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.below("r1", "limits: { kept: 1MiB }"), edits.nobody_moves))
    context, count, size = cluster.context(), 40, 50000
    with contextlib.ExitStack() as stack:
        idle = stack.enter_context(contextlib.closing(cluster.http(context=context)))
        get(idle)
        webs = [stack.enter_context(contextlib.closing(cluster.http(context=context))) for _ in range(count)]
        for number, web in enumerate(webs, 1):
            begin(web, f"GET /slow?bytes=3&ms={patience(4000)}", bytes(size))
            wait_until(lambda n=number: cluster.counter("bytes_to_backend") >= n * size)
        wait_until(lambda: cluster.counters()["ragent"]["kept_given_up"] > 0)
        wait_until(lambda: re.search("replay given up .*remedy=limits.kept", cluster.log("r1")))
        assert kept(cluster) <= 1 << 20
        get(idle)
        for web in webs:
            assert b"200 OK" in web.sock.recv(1000)
    assert cluster.counters()["ragent"]["kept_ended"] == 0
    wait_until(lambda: kept(cluster) == kept(cluster, "a1") == 0)


@pytest.mark.parametrize("listener", ["sf", "direct"])
def test_answers_that_clients_do_not_read_have_a_budget(frugal, listener):
    """The connection that keeps most ends; idle clients, and clients that read, notice nothing."""
    context, where = frugal.context(), where_of(frugal, listener)
    node = "a1" if listener == "direct" else "ragent"
    with contextlib.ExitStack() as stack:
        idle = stack.enter_context(contextlib.closing(frugal.http(where, context)))
        get(idle)
        for _ in range(100):
            web = stack.enter_context(contextlib.closing(frugal.http(where, context)))
            web.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            begin(web, "GET /20m")
        wait_until(lambda: frugal.counters()[node]["kept_ended"] > 0, patience(20))
        assert kept(frugal, node) <= KEPT
        get(idle)
        check_served(frugal, 5, where)
    wait_until(lambda: kept(frugal, node) == 0, patience(20))
