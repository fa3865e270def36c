"""The limits of RAgent and of an agent's own listener: the number of connections, their times, and the first bytes. Connections
that move have the same limits."""

import contextlib
import itertools
import re
import socket
import ssl
import time

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.mover import Restless
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until


def limits(**values):
    return edits.edits(edits.at_end("limits: {" + ", ".join(f" {k}: {v}" for k, v in values.items()) + " }"))


def ended(cluster, reason):
    return cluster.counters()["ragent"][f"ended_{reason}"]


def connect(where, source="127.0.0.1"):
    return socket.create_connection(where, patience(10), (source, 0))


def end_of(sock):
    """How the other side ends it: "FIN" or "RST"; the bytes before do not matter."""
    try:
        while sock.recv(65536):
            pass
        return "FIN"
    except ConnectionResetError:
        return "RST"


def is_refused(where, source="127.0.0.1"):
    """Reset at once, be it while connecting."""
    try:
        with connect(where, source) as sock:
            return end_of(sock) == "RST"
    except ConnectionResetError:
        return True


def get(web):
    web.request("GET", "/5")
    assert len(web.getresponse().read()) == 5


# How many

def test_connections_above_the_limit_are_refused_until_one_ends(start_cluster):
    cluster = start_cluster("--agents", "1", "--workers", "2", edit=edits.edits(edits.below("r1", "limits: { connections: 4 }")))
    context = cluster.context()
    with contextlib.ExitStack() as stack:
        webs = [stack.enter_context(contextlib.closing(cluster.http(context=context))) for _ in range(4)]
        for _ in range(3):
            assert is_refused(cluster.sl)
        assert ended(cluster, "limit_total") == 3
        wait_until(lambda: cluster.log("r1").count('connection refused listener=sl reason="connection limit"') == 3)
        for web in webs:
            get(web)
        webs[0].close()
        wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 3)
        with contextlib.closing(cluster.http(context=context)) as web:
            get(web)
    assert ended(cluster, "limit_total") == 3


def test_who_wants_no_lines_of_ended_connections_sees_refusals_all_the_same(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(
        edits.at_end("limits: { connections_per_source: 1 }"), edits.at_end("log: { connections: off }")))
    with contextlib.closing(cluster.http()) as web:
        get(web)
        assert is_refused(cluster.sf)
        wait_until(lambda: 'ended reason="connection limit of source"' in cluster.log("r1") + cluster.log("access"))
    wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 0)
    assert (cluster.log("r1") + cluster.log("access")).count(": ended reason=") == 1


def test_connections_of_one_source_are_limited_and_others_are_not(start_cluster):
    cluster = start_cluster("--agents", "1", edit=limits(connections_per_source=2))
    context = cluster.context()
    with contextlib.ExitStack() as stack:
        for source in ("127.0.0.5", "127.0.0.6"):
            webs = [stack.enter_context(contextlib.closing(cluster.http(context=context, source=source))) for _ in range(2)]
            assert is_refused(cluster.sf, source)
            for web in webs:
                get(web)
    assert ended(cluster, "limit_source") == 2


@pytest.mark.parametrize("limit,sources", [("connections", ["127.0.0.5"]), ("connections_per_source", ["127.0.0.5", "127.0.0.6"])])
def test_a_direct_listener_has_the_same_limits(start_cluster, limit, sources):
    cluster = start_cluster("--agents", "1", "--workers", "2", edit=limits(**{limit: 3}))
    context, where = cluster.context(), cluster.direct["a1"]
    with contextlib.ExitStack() as stack:
        for source in sources:
            # One of them says nothing, and counts all the same.
            stack.enter_context(connect(where, source))
            webs = [stack.enter_context(contextlib.closing(cluster.http(where, context, source=source))) for _ in range(2)]
            refused = cluster.counter("direct_refused")
            assert is_refused(where, source)
            assert cluster.counter("direct_refused") == refused + 1
            for web in webs:
                get(web)
            webs[0].close()
            webs[0] = wait_until(lambda: cluster.http(where, context, source=source))
            get(webs[0])
            stack.callback(webs[0].close)


# For how long

HANDSHAKE_S, IDLE_S = patience(0.5), patience(1)


@pytest.fixture(scope="module")
def hasty(start_module_cluster):
    """A cluster with short time-outs. A resting connection gets no close_notify, so here connections do not rest to change their
    agent."""
    return start_module_cluster("--agents", "2", edit=edits.edits(
        limits(handshake_timeout=f"{HANDSHAKE_S * 1000:.0f}ms", idle_timeout=f"{IDLE_S}s"), edits.nobody_moves))


HELLO_BEGINNING = bytes.fromhex("1603010200010001fc0303")


def direct_lines(cluster):
    return len(re.findall(r'ended reason="handshake timed out" end=\w+ listener=sl client=', cluster.log("a1")))


@pytest.mark.parametrize("said", [b"", HELLO_BEGINNING], ids=["nothing", "half a hello"])
@pytest.mark.parametrize("listener", ["sf", "direct"])
def test_a_handshake_that_does_not_end_is_ended(hasty, listener, said):
    where = hasty.sf if listener == "sf" else hasty.direct["a1"]
    before, begun, lines = ended(hasty, "handshake_timeout"), time.monotonic(), direct_lines(hasty)
    with connect(where) as sock:
        sock.sendall(said)
        end_of(sock)
    assert 0.9 * HANDSHAKE_S < time.monotonic() - begun < HANDSHAKE_S + patience(2)
    assert ended(hasty, "handshake_timeout") == before + (listener == "sf")
    wait_until(lambda: direct_lines(hasty) == lines + (listener == "direct"))


def test_a_byte_now_and_then_does_not_prolong_a_handshake(hasty):
    before, begun = ended(hasty, "handshake_timeout"), time.monotonic()
    said = itertools.chain([b"\x16"], itertools.repeat(b"\x03"))
    with connect(hasty.sf) as sock, pytest.raises(ConnectionError):
        sock.settimeout(0.05)
        while time.monotonic() - begun < patience(5):
            sock.sendall(next(said))
            with contextlib.suppress(TimeoutError):
                if sock.recv(1) == b"":
                    raise ConnectionError
    assert ended(hasty, "handshake_timeout") == before + 1


@pytest.fixture(params=["stay", "move all the while"])
def restless(request, hasty):
    with Restless(hasty) if request.param != "stay" else contextlib.nullcontext():
        yield


def ends(hasty, path):
    """How each of six connections ends that sent this request and then nothing more, and after how long."""
    with contextlib.ExitStack() as stack:
        probes = {}
        for name, where in (("sf", hasty.sf), ("sl", hasty.sl), ("direct", hasty.direct["a1"])):
            for version in ("1.2", "1.3"):
                probe = probes[f"{name} {version}"] = stack.enter_context(Probe(where))
                assert probe("handshake", version=version)["done"]
                probe("send", text=f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        begun = time.monotonic()
        for probe in probes.values():
            probe.start("end")
        return {name: probe.finish() for name, probe in probes.items()}, time.monotonic() - begun


@pytest.mark.usefixtures("restless")
def test_idle_connections_are_closed_in_order(hasty):
    before = ended(hasty, "idle_timeout")
    answers, seconds = ends(hasty, "/5")
    assert all((a["end"], a["tcp"]) == ("close_notify", "fin") for a in answers.values()), answers
    assert 0.9 * IDLE_S < seconds < IDLE_S + patience(2)
    assert ended(hasty, "idle_timeout") == before + 4


@pytest.mark.usefixtures("restless")
def test_connections_that_wait_for_an_answer_are_not_closed_as_if_it_had_come(hasty):
    answers, _ = ends(hasty, "/hold")
    assert all(a["end"] in ("alert", "rst") for a in answers.values()), answers


@pytest.mark.usefixtures("restless")
def test_a_busy_connection_outlives_the_idle_time_out(hasty):
    with contextlib.closing(hasty.http()) as web:
        web.request("GET", f"/slow?bytes=3000&ms={1500 * IDLE_S:.0f}")
        assert len(web.getresponse().read()) == 3000


# First bytes

UNEXPECTED_MESSAGE, RECORD_OVERFLOW, ILLEGAL_PARAMETER, PROTOCOL_VERSION = 10, 22, 47, 70
SENTENCE = b"This port takes TLS only"

# What is said, and what is heard: an alert in the clear, a sentence, or a reset.
NOT_TLS = {
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", SENTENCE),
    "an upload by HTTP": (b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + bytes(50000), SENTENCE),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SENTENCE),
    "PROXY v1": (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n", UNEXPECTED_MESSAGE),
    "PROXY v2": (b"\r\n\r\n\0\r\nQUIT\n" + bytes.fromhex("21110000"), UNEXPECTED_MESSAGE),
    "SSLv2": (bytes.fromhex("802e0100020015000000100100800300800700c0"), PROTOCOL_VERSION),
    "SSLv2 format for TLS": (bytes.fromhex("802e0103030015000000100100800300800700c0"), PROTOCOL_VERSION),
    "data first": (bytes.fromhex("1703030001") + b"x", UNEXPECTED_MESSAGE),
    "change_cipher_spec first": (bytes.fromhex("140303000101"), UNEXPECTED_MESSAGE),
    "heartbeat first": (bytes.fromhex("1803030003010000"), UNEXPECTED_MESSAGE),
    "a handshake record of another version": (bytes.fromhex("160700000401000000"), PROTOCOL_VERSION),
    "a record longer than there may be": (bytes.fromhex("1603017000"), RECORD_OVERFLOW),
    "alert first": (bytes.fromhex("15030100020100"), None),
    "zeros": (bytes(64), None),
    "0xff": (b"\xff" * 64, None),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", None),
}
REASONS = {"HTTP": "plain_http", "an upload by HTTP": "plain_http", "HTTP/2": "plain_http",
           "PROXY v1": "proxy_header_unexpected", "PROXY v2": "proxy_header_unexpected"}


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=edits.nobody_moves)


def heard(sock):
    """All that the other side sends, and how it ends."""
    said = b""
    try:
        while data := sock.recv(65536):
            said += data
        return said, "FIN"
    except ConnectionResetError:
        return said, "RST"


def assert_told(name, where):
    said, told = NOT_TLS[name]
    with connect(where) as sock:
        sock.sendall(said)
        answer, end = heard(sock)
    if told is None:
        assert (answer, end) == (b"", "RST")
    elif told == SENTENCE:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ") and b"Connection: close" in head and body.startswith(SENTENCE)
        assert b"Content-Length: %d\r\n" % len(body) in head and end == "FIN"
    else:
        assert (answer, end) == (bytes([21, 3, 3, 0, 2, 2, told]), "FIN")


@pytest.mark.parametrize("name", NOT_TLS)
def test_a_client_that_speaks_no_tls_is_told_closed_and_counted(cluster, name):
    reason = REASONS.get(name, "not_tls")
    before = ended(cluster, reason), cluster.counter("connections_opened")
    assert_told(name, cluster.sf)
    assert ended(cluster, reason) == before[0] + 1
    assert cluster.counter("connections_opened") == before[1]  # no agent saw it


@pytest.mark.parametrize("name", NOT_TLS)
def test_a_direct_listener_tells_closes_and_counts_a_client_that_speaks_no_tls(cluster, name):
    special = "direct_plain_http" if REASONS.get(name) == "plain_http" else "direct_not_tls"

    def counted():
        return [cluster.counter(name) for name in ("direct_refused", special)]
    before = counted()
    assert_told(name, cluster.direct["a1"])
    wait_until(lambda: counted() == [n + 1 for n in before])


@pytest.mark.parametrize("said", NOT_TLS)
def test_first_bytes_that_come_one_by_one_are_told_the_same(cluster, said):
    for where in (cluster.sf, cluster.direct["a1"]):
        with connect(where) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for byte in NOT_TLS[said][0][:16]:
                    sock.send(bytes([byte]))
            answer, _ = heard(sock)
        assert bool(answer) == (NOT_TLS[said][1] is not None)


# What is no record, behind a hello

NO_RECORDS = {
    "heartbeat": (bytes.fromhex("1803030003010000"), ("unexpected_message",)),
    "another version": (bytes.fromhex("1604000001") + b"x", ("unexpected_message", "protocol_version")),
    "too long": (bytes.fromhex("170303ffff"), ("record_overflow",)),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", ("unexpected_message", "protocol_version")),
}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("name", NO_RECORDS)
@pytest.mark.parametrize("where", ["sf", "sl", "direct"])
def test_bytes_that_are_no_record_amid_a_handshake_get_an_alert(cluster, where, name, version):
    address = {"sf": cluster.sf, "sl": cluster.sl, "direct": cluster.direct["a1"]}[where]
    said, alerts = NO_RECORDS[name]
    before = cluster.counter("record_violations")
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = cluster.context(version).wrap_bio(came, goes, server_hostname="localhost")
    with connect(address) as sock:
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        sock.sendall(goes.read() + said)
        answer, end = heard(sock)
    came.write(answer)
    with pytest.raises(ssl.SSLError) as error:
        client.do_handshake()
        client.read()
    assert end == "FIN" and error.value.reason.lower().endswith(alerts)
    assert cluster.counter("record_violations") == before + 1


@pytest.mark.parametrize("said", ["160301000401000000", "160301000402000000"], ids=["an empty hello", "a server's hello"])
@pytest.mark.parametrize("listener", ["sf", "direct"])
def test_a_handshake_that_cannot_be_gets_an_alert(cluster, listener, said):
    before = cluster.counter("handshakes_failed")
    with connect(cluster.sf if listener == "sf" else cluster.direct["a1"]) as sock:
        sock.sendall(bytes.fromhex(said))
        assert sock.recv(7, socket.MSG_WAITALL)[:6] == bytes.fromhex("150303000202")
        end_of(sock)
    assert cluster.counter("handshakes_failed") == before + 1


@pytest.mark.parametrize("cut", [0, 1, 3], ids=["at once", "a byte first", "three bytes first"])
@pytest.mark.parametrize("claims", [0x7ffd, 0x020144, 0xffffff])
@pytest.mark.parametrize("listener", ["sf", "direct"])
def test_a_hello_that_claims_too_much_is_refused_and_counted(cluster, listener, claims, cut):
    names = [("ragent", "hellos_too_long"), ("ragent", "ended_handshake_failed"), ("a1", "handshakes_refused_hello"),
             ("a1", "connections_opened")]

    def counted():
        counters = cluster.counters()
        return [counters[node][name] for node, name in names]
    before, head = counted(), b"\x01" + claims.to_bytes(3, "big")
    with connect(cluster.sf if listener == "sf" else cluster.direct["a1"]) as sock:
        for part in (head[:cut], head[cut:]):
            sock.sendall(b"\x16\x03\x01\x00" + bytes([len(part)]) + part if part else b"")
        assert sock.recv(7, socket.MSG_WAITALL) == bytes([21, 3, 3, 0, 2, 2, ILLEGAL_PARAMETER])
        end_of(sock)
    wait_until(lambda: counted() == [n + more for n, more in zip(before, [1, 1, 0, 0] if listener == "sf" else [0, 0, 1, 1])])


@pytest.mark.parametrize("mover", [0, 1], indirect=True)
@pytest.mark.parametrize("kind", [0x00, 0x13, 0x18, 0x19, 0x80, 0xff])
def test_record_types_outside_the_table_end_a_connection_and_are_counted(cluster, kind, mover):
    before = cluster.counters()["ragent"]
    with Probe(cluster.sf) as probe:
        probe("handshake")
        assert probe("get", path="/5")["status"] == 200
        mover(cluster, probe)
        probe("raw", hex=f"{kind:02x}0303000101")
        assert probe("end")["alert_name"] == "unexpected message"
    after = cluster.counters()["ragent"]
    for name in ("client_violations", "ended_record_violation"):
        assert after[name] == before[name] + 1
    for name in ("client_change_cipher_spec", "client_alert", "client_handshake", "client_application_data"):
        assert after[name] - before[name] <= 2  # the four types, and this is none of them
