"""What RAgent and an agent's own listener allow: how many connections, for how long, and which first bytes; to those that move no
more and no less."""

import contextlib
import itertools
import socket
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
    """How the other side ends it: "FIN" or "RST"; what it says before does not matter."""
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
        for web in webs:
            get(web)
        webs[0].close()
        wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 3)
        with contextlib.closing(cluster.http(context=context)) as web:
            get(web)
    assert ended(cluster, "limit_total") == 3


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
    """A cluster with short time-outs. Who rests gets no close_notify: there connections do not rest to go where they belong."""
    return start_module_cluster("--agents", "2", edit=edits.edits(
        limits(handshake_timeout=f"{HANDSHAKE_S * 1000:.0f}ms", idle_timeout=f"{IDLE_S}s"), edits.nobody_moves))


HELLO_BEGINNING = bytes.fromhex("1603010200010001fc0303")


@pytest.mark.parametrize("said", [b"", HELLO_BEGINNING], ids=["nothing", "half a hello"])
@pytest.mark.parametrize("listener", ["sf", "direct"])
def test_a_handshake_that_does_not_end_is_ended(hasty, listener, said):
    where = hasty.sf if listener == "sf" else hasty.direct["a1"]
    before, begun = ended(hasty, "handshake_timeout"), time.monotonic()
    with connect(where) as sock:
        sock.sendall(said)
        end_of(sock)
    assert 0.9 * HANDSHAKE_S < time.monotonic() - begun < HANDSHAKE_S + patience(2)
    assert ended(hasty, "handshake_timeout") == before + (listener == "sf")


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
    """How each of six connections ends that asked this and then said nothing, and after how long."""
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

NOT_TLS = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "SSLv2": bytes.fromhex("802e0100020015000000100100800300800700c0"),
    "alert first": bytes.fromhex("15030100020100"),
    "data first": bytes.fromhex("1703030001") + b"x",
    "change_cipher_spec first": bytes.fromhex("140303000101"),
    "heartbeat first": bytes.fromhex("1803030003010000"),
    "zeros": bytes(64),
    "0xff": b"\xff" * 64,
    "a handshake record of another version": bytes.fromhex("160700000401000000"),
    "a record longer than there may be": bytes.fromhex("1603017000"),
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
}


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=edits.nobody_moves)


@pytest.mark.parametrize("name", NOT_TLS)
def test_what_is_not_tls_is_closed_and_counted(cluster, name):
    before = ended(cluster, "not_tls"), cluster.counter("connections_opened")
    with connect(cluster.sf) as sock:
        sock.sendall(NOT_TLS[name])
        assert end_of(sock) == "RST"
    assert ended(cluster, "not_tls") == before[0] + 1
    assert cluster.counter("connections_opened") == before[1]  # no agent saw it


@pytest.mark.parametrize("name", NOT_TLS)
def test_what_is_not_tls_is_closed_and_counted_by_a_direct_listener(cluster, name):
    def refused():
        return sum(cluster.counter(name) for name in ("direct_refused", "handshakes_failed", "record_violations"))
    before = refused()
    with connect(cluster.direct["a1"]) as sock:
        sock.sendall(NOT_TLS[name])
        end_of(sock)
    wait_until(lambda: refused() == before + 1)


@pytest.mark.parametrize("said", ["160301000401000000", "160301000402000000"], ids=["an empty hello", "a server's hello"])
@pytest.mark.parametrize("listener", ["sf", "direct"])
def test_a_handshake_that_cannot_be_gets_an_alert(cluster, listener, said):
    before = cluster.counter("handshakes_failed")
    with connect(cluster.sf if listener == "sf" else cluster.direct["a1"]) as sock:
        sock.sendall(bytes.fromhex(said))
        assert sock.recv(7, socket.MSG_WAITALL)[:6] == bytes.fromhex("150303000202")
        end_of(sock)
    assert cluster.counter("handshakes_failed") == before + 1


@pytest.mark.parametrize("mover", [0, 1], indirect=True)
@pytest.mark.parametrize("kind", [0x00, 0x13, 0x18, 0x19, 0x80, 0xff])
def test_record_types_outside_the_table_end_a_connection_and_are_counted(cluster, kind, mover):
    before = cluster.counters()["ragent"]
    with Probe(cluster.sf) as probe:
        probe("handshake")
        assert probe("get", path="/5")["status"] == 200
        mover(cluster, probe)
        probe("raw", hex=f"{kind:02x}0303000101")
        assert probe("end")["alert_name"] == "unexpected_message"
    after = cluster.counters()["ragent"]
    for name in ("client_violations", "ended_record_violation"):
        assert after[name] == before[name] + 1
    for name in ("client_change_cipher_spec", "client_alert", "client_handshake", "client_application_data"):
        assert after[name] - before[name] <= 2  # the four types, and this is none of them
