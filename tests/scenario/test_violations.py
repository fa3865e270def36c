"""Clients that break the record layer: each breach gets the alert that RFC 8446 or RFC 5246 prescribes, ends its own connection
and no other, and is counted; before and after the connection has moved."""

import contextlib
import time
from dataclasses import dataclass

import pytest

from tests.lib.build import patience
from tests.lib.edits import nobody_moves
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.sanitized_tools

ALERT, HANDSHAKE, DATA, HEARTBEAT, UNKNOWN = 21, 22, 23, 24, 99

UNEXPECTED, BAD_MAC, OVERFLOW = "unexpected message", "bad record mac", "record overflow"
ILLEGAL, DECODE, VERSION = "illegal parameter", "decode error", "protocol version"

KEY_UPDATE, KEY_UPDATE_REQUESTED = bytes.fromhex("1800000100"), bytes.fromhex("1800000101")
CLIENT_HELLO = bytes.fromhex("01000004") + bytes(4)
HELLO_REQUEST = bytes.fromhex("00000000")


@dataclass
class Breach:
    name: str
    alert: str
    verb: str
    args: dict
    versions: tuple = ("1.2", "1.3")
    reason: str = "record_violation"

    def __call__(self, probe):
        probe(self.verb, **self.args)


def forged(name, alert, *versions, reason="record_violation", **args):
    return Breach(name, alert, "forge", args, versions or ("1.2", "1.3"), reason)


def raw(name, alert, text, *versions):
    return Breach(name, alert, "raw", {"hex": text}, versions or ("1.2", "1.3"))


BREACHES = [
    forged("one byte too much", OVERFLOW, zeros=16385),
    forged("too much padding", OVERFLOW, "1.3", zeros=16384, padding=240),
    raw("a header that says too much", OVERFLOW, "1703034801"),
    forged("a wrong tag", BAD_MAC, text=b"x", tag="wrong"),
    raw("shorter than a tag", BAD_MAC, "1703030005" + "00" * 5),
    forged("an inner type nobody knows", UNEXPECTED, "1.3", type=UNKNOWN, text=b"x"),
    forged("a change_cipher_spec inside", UNEXPECTED, "1.3", type=20, text=b"\1"),
    forged("no inner type", UNEXPECTED, "1.3", type=0, padding=20),
    forged("an outer type that does not fit", UNEXPECTED, "1.3", outer=HANDSHAKE, text=b"x"),
    forged("an old version in the header", VERSION, "1.2", version=0x0302, text=b"x"),
    forged("an empty handshake record", UNEXPECTED, type=HANDSHAKE),
    forged("an empty alert", UNEXPECTED, type=ALERT),
    forged("half an alert", DECODE, type=ALERT, text=b"\1"),
    forged("two alerts in one record", DECODE, type=ALERT, text=b"\1\x5a\1\x5a"),
    forged("an alert of no level", ILLEGAL, "1.2", type=ALERT, text=b"\3\x5a"),
    raw("a plaintext alert", UNEXPECTED, "15030300020228", "1.3"),
    raw("plaintext handshake", UNEXPECTED, "160303000401000000", "1.3"),
    raw("plaintext data", BAD_MAC, "1703030020" + "61" * 32),
    raw("change_cipher_spec", UNEXPECTED, "140303000101"),
    raw("heartbeat, a record type outside the table", UNEXPECTED, "1803030003010203"),
    raw("bytes that are no record", UNEXPECTED, "474554202f20485454502f312e310d0a0d0a"),
    forged("a KeyUpdate of a wrong value", ILLEGAL, "1.3", type=HANDSHAKE, text=bytes.fromhex("1800000102")),
    forged("a KeyUpdate of a wrong length", DECODE, "1.3", type=HANDSHAKE, text=bytes.fromhex("180000020000")),
    forged("two KeyUpdates in one record", UNEXPECTED, "1.3", type=HANDSHAKE, text=2 * KEY_UPDATE),
    forged("a KeyUpdate with more behind it", UNEXPECTED, "1.3", type=HANDSHAKE, text=KEY_UPDATE + b"x"),
    forged("a KeyUpdate in TLS 1.2", UNEXPECTED, "1.2", type=HANDSHAKE, text=KEY_UPDATE),
    forged("a hello in TLS 1.3", UNEXPECTED, "1.3", type=HANDSHAKE, text=CLIENT_HELLO),
    forged("a server's message", UNEXPECTED, "1.2", type=HANDSHAKE, text=HELLO_REQUEST),
    forged("data amid a hello", UNEXPECTED, "1.2", type=HANDSHAKE, text=CLIENT_HELLO + b"x"),
    forged("two hellos to renegotiate", UNEXPECTED, "1.2", reason="renegotiation", type=HANDSHAKE, text=CLIENT_HELLO, count=2),
    forged("a flood of empty records", UNEXPECTED, count=400),
    forged("a flood of padding", UNEXPECTED, "1.3", count=400, padding=100),
    forged("a flood of warnings", UNEXPECTED, "1.2", type=ALERT, text=b"\1\x5a", count=400),
    forged("a flood of KeyUpdates", UNEXPECTED, "1.3", reason="key_update_flood", type=HANDSHAKE, text=KEY_UPDATE, count=100,
           step=1),
]

CASES = [(breach, version) for breach in BREACHES for version in breach.versions]
WHERE = ["sf", "sf, moved", "sl", "direct"]


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=nobody_moves)


def get(web):
    """The agent that answered."""
    web.request("GET", "/5")
    answer = web.getresponse()
    assert len(answer.read()) == 5
    return answer.headers["X-CSSL-Agent"]


class Scene:
    """A client about to misbehave, and a good one on the same agent."""

    def __init__(self, cluster, where, version, stack):
        listener, *moved = where.split(", ")
        self.cluster, self.listener, self.version = cluster, listener, version
        self.address = {"sf": cluster.sf, "sl": cluster.sl, "direct": cluster.direct["a1"]}[listener]
        earlier = {c["id"] for c in cluster.connections()}
        self.probe = stack.enter_context(Probe(self.address))
        assert self.probe("handshake", version=version, sni="localhost", alpn="http/1.1")["done"]
        self.agent = self._asked()
        self.good = stack.enter_context(contextlib.closing(self._on_the_same_agent()))
        if moved:
            self._move(c for c in cluster.connections(agent=self.agent) if c["id"] not in earlier)

    def _asked(self):
        return self.probe("get", path="/5")["headers"]["x-cssl-agent"]

    def _on_the_same_agent(self):
        for _ in range(4):
            web = self.cluster.http(self.address)
            if get(web) == self.agent:
                return web
            web.close()
        raise AssertionError(f"no connection comes to {self.agent}")

    def _move(self, connections):
        other = next(name for name in self.cluster.agents if name != self.agent)
        for connection in connections:
            self.cluster.move(connection["id"], other)
        assert self._asked() == get(self.good) == other
        self.agent = other

    def counters(self, reason):
        counters = self.cluster.counters()
        seen_by_ragent = counters["ragent"][f"ended_{reason}"] if self.listener != "direct" else None
        return counters[self.agent]["record_violations"], seen_by_ragent

    def check_the_good_one(self):
        assert get(self.good) == self.agent


@pytest.fixture
def scene(cluster, request):
    with contextlib.ExitStack() as stack:
        where, version = request.param
        yield Scene(cluster, where, version, stack)


def in_scenes(*versions):
    return pytest.mark.parametrize("scene", [(where, version) for where in WHERE for version in versions], indirect=True,
                                   ids=lambda p: " ".join(p))


@pytest.mark.wide("each breach, at each place where it may be noticed")
@pytest.mark.parametrize("breach,scene", [(breach, (where, version)) for breach, version in CASES for where in WHERE],
                         indirect=["scene"], ids=lambda p: p.name if isinstance(p, Breach) else " ".join(p))
def test_a_breach_gets_its_alert_and_ends_its_connection_only(breach, scene):
    violations, ended = scene.counters(breach.reason)
    breach(scene.probe)
    end = scene.probe("end", timeout_ms=patience(20) * 1000)  # a flood of KeyUpdates ends after up to eleven seconds
    assert (end["end"], end["alert_name"], end["tcp"]) == ("alert", breach.alert, "fin")
    scene.check_the_good_one()
    expected = violations + 1, ended if ended is None else ended + 1
    wait_until(lambda: scene.counters(breach.reason) == expected, what=f"{expected} of {breach.reason}")


@in_scenes("1.2", "1.3")
def test_odd_but_legal_records_are_taken(scene):
    scene.probe("forge", count=20)
    if scene.version == "1.3":
        scene.probe("forge", version=0x0301)
        scene.probe("forge", type=HANDSHAKE, text=KEY_UPDATE_REQUESTED, step=1, count=3)
        scene.probe("forge", type=HANDSHAKE, text=KEY_UPDATE[:2])
        scene.probe("forge", type=HANDSHAKE, text=KEY_UPDATE[2:], step=1)
    assert scene.probe("get", path="/1k")["outcome"] == "complete"
    scene.check_the_good_one()


@in_scenes("1.3")
def test_key_updates_are_followed_only_as_fast_as_they_may_come(scene):
    def counted():
        counters = scene.cluster.counters()[scene.agent]
        return counters["key_updates_received"], counters["key_updates_paced"]

    (received, paced), began = counted(), time.monotonic()
    scene.probe("forge", type=HANDSHAKE, text=KEY_UPDATE, step=1, count=10)
    wait_until(lambda: counted() == (received + 10, paced + 2), what="ten KeyUpdates")
    assert time.monotonic() - began > 0.9
    assert scene.probe("get", path="/1k")["outcome"] == "complete"
    scene.check_the_good_one()


@in_scenes("1.2", "1.3")
def test_a_fatal_alert_of_the_client_is_not_answered(scene):
    before = scene.probe("state")["wire_in"]
    scene.probe("forge", type=ALERT, text=b"\2\x28")
    end = scene.probe("end")
    assert (end["end"], end["wire_in"]) == ("fin", before)
    scene.check_the_good_one()


def said_in_the_end(probe, before):
    """The bytes on the wire since then; OpenSSL's view of them does not matter any more."""
    return probe("end")["wire_in"] - before


@in_scenes("1.2")
def test_renegotiation_is_refused_by_a_warning_and_the_connection_goes_on(scene):
    scene.probe("forge", type=HANDSHAKE, text=CLIENT_HELLO)
    wait_until(lambda: scene.probe("read", timeout_ms=50)["alert_name"] == "no renegotiation")
    state = scene.probe("state")
    assert state["tcp"] == "open"
    # OpenSSL reads nothing more behind this warning, but the bytes of an answer are there, and then the end.
    scene.probe("forge", text=b"GET /64k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert 65536 < said_in_the_end(scene.probe, state["wire_in"]) < 68000
    scene.check_the_good_one()


@in_scenes("1.2")
def test_a_real_client_that_wants_to_renegotiate_is_told(scene):
    scene.probe("renegotiate")
    end = scene.probe("end", until="tls")
    assert (end["end"], end["alert_name"], end["tcp"]) == ("alert", "no renegotiation", "open")
    scene.check_the_good_one()
