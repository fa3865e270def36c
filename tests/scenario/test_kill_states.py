"""An agent is killed or stopped, or loses its link to RAgent, at each state of handshake, hand-off, adoption, move, rest, drain and KeyUpdate. A
handshake of which the client has seen nothing begins again elsewhere; later it works, or ends in an alert, a 502 or a reset, as the
state allows; nothing hangs, nothing is left behind.

A row is a named fault point (net/points/fault.c), the clients that reach it, and what may become of the client whose agent is hit there.
Short runs take TLS 1.3 where the version makes no difference in kind; ./cssl test --full takes all."""

import contextlib
import itertools
import os
import pathlib
import signal

import pytest

from tests.lib.build import FULL, patience
from tests.lib.cluster import ControlError
from tests.lib.edits import edits, nobody_moves
from tests.lib.held_backend import HeldBackend
from tests.lib.mover import settled
from tests.lib.probe import Probe
from tests.lib.trouble import wait_consistent
from tests.lib.waiting import wait_until

VICTIM, OTHER = "a1", "a2"
LIMIT_S = 8           # for whatever becomes of a client: the loss shows as EOF, and a time-out would take far longer
ATTEMPTS_MAX = 60     # until a client meets the victim
UNCLAIMED_S = 15      # a passed backend that nobody claims is closed by then
DRAIN_MS = 60000
FELL_S = 2            # until a blow shows whose effect shows already
EXITING = 0x4         # PF_EXITING of the flags in /proc/PID/stat

pytestmark = [pytest.mark.usefixtures("test_points"), pytest.mark.every_combination("each is a named point at which an agent dies")]


ONE_HOST = nobody_moves
# No backend can be passed.
BETWEEN_HOSTS = edits(ONE_HOST, lambda text: "".join(line for line in text.splitlines(True) if "peer_socket:" not in line))


@pytest.fixture(scope="module")
def backend():
    with HeldBackend() as held:
        yield held


@pytest.fixture(scope="module")
def one_host(start_module_cluster, backend):
    place = Place(start_module_cluster("--agents", "3", "--backend", backend.address, takeover=True, edit=ONE_HOST), backend)
    yield place
    place.check_descriptors()


@pytest.fixture(scope="module")
def two_hosts(start_module_cluster, backend):
    place = Place(start_module_cluster("--agents", "3", "--backend", backend.address, takeover=True, edit=BETWEEN_HOSTS), backend)
    yield place
    place.check_descriptors()


class Place:
    """A cluster, and how many descriptors its processes have without clients."""

    def __init__(self, cluster, backend):
        self.cluster, self.backend = cluster, backend
        self.sources = itertools.cycle(f"127.0.0.{n}" for n in range(2, 250))
        for _ in range(6):
            assert attempt(self, "1.3") == "works"
        self.at_rest = wait_until(self.descriptors_if_quiet)

    def descriptors(self):
        return {name: len(os.listdir(f"/proc/{self.cluster.pid(name)}/fd")) for name in ["r1", *self.cluster.agents]}

    def descriptors_if_quiet(self):
        """Twice the same, and no connection."""
        before = self.descriptors()
        return before if not self.cluster.connections() and self.descriptors() == before else None

    def check_quiet(self):
        wait_consistent(self.cluster)
        wait_until(lambda: not self.cluster.connections(), patience(LIMIT_S), "the end of all connections")

    def check_descriptors(self):
        wait_until(lambda: all(n <= self.at_rest[name] for name, n in self.descriptors().items()), patience(UNCLAIMED_S),
                   f"as many descriptors as {self.at_rest}")


# What hits the victim


class Blow:
    """The victim is killed or stopped, or its link cut, when it reaches that point for the first time."""

    def __init__(self, cluster, point, action):
        self.cluster, self.rule, self.action = cluster, f"{point} {action} on {VICTIM} times 1", action
        self.pid, self.links_lost = cluster.pid(VICTIM), self._links_lost()

    def _links_lost(self):
        return self.cluster.log(VICTIM).count("link lost")

    def arm(self):
        self.cluster.faults(self.rule)
        self.cluster.settle_faults()

    def fell(self):
        if self.action == "cut":
            return self._links_lost() > self.links_lost
        try:
            fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if self.action == "stop":
            return fields[0] == "T"
        return fields[0] in "ZX" or bool(int(fields[6]) & EXITING)  # its descriptors go before it does

    def undo(self):
        self.cluster.clear_faults()
        if self.action == "stop":
            self.cluster.send_signal(VICTIM, signal.SIGCONT)
        if self.action == "kill" and self.fell():
            self.cluster.wait_gone(VICTIM)
            self.cluster.restart(VICTIM)
        else:
            self.cluster.settle_faults()
        if self.cluster.agent(VICTIM)["drain"]["state"] != "none":
            self.cluster.undrain(VICTIM)


# Clients: each returns what became of it


def outcome_of(probe, answer=None):
    """works; 502; alert; reset; any other outcome as text."""
    if answer and answer["outcome"] == "complete":
        end = {200: "works", 502: "502"}.get(answer["status"], f"status {answer['status']}")
        return end if end != "502" or ended(probe) == "close_notify" else "502 and no end"
    return ended(probe)


def ended(probe):
    end = probe("end", timeout_ms=patience(LIMIT_S) * 1000)
    return {"rst": "reset", "open": "hang"}.get(end["end"], end["end"])


def request(probe, method="get", path="/now", **how):
    return outcome_of(probe, probe(method, path=path, timeout_ms=patience(LIMIT_S) * 1000, **how))


def attempt(place, version, **hello):
    """A client from an address of its own: handshake and one request."""
    with Probe(place.cluster.sf, source=next(place.sources)) as probe:
        if not probe("handshake", version=version, sni="localhost", alpn="http/1.1",
                     timeout_ms=patience(LIMIT_S) * 1000, **hello)["done"]:
            return ended(probe)
        return request(probe)


def newcomers(place, blow, version, **hello):
    """Clients come until one of them meets the victim; the others notice nothing."""
    blow.arm()
    for _ in range(ATTEMPTS_MAX):
        outcome = attempt(place, version, **hello)
        if outcome != "works" or blow.fell():
            return outcome
    return "nobody met the victim"


def retried(place, blow, version):
    """Their first hellos have key shares of a group that no agent takes: each gets a HelloRetryRequest."""
    return newcomers(place, blow, version, groups="P-521:P-256")


def resuming(place, blow, version):
    file = str(place.cluster.dir / f"session-{version}")
    with Probe(place.cluster.sf) as probe:
        assert probe("handshake", version=version, sni="localhost", alpn="http/1.1")["done"]
        assert request(probe) == "works"
        probe("save_session", file=file)
    return newcomers(place, blow, version, session=file)


@contextlib.contextmanager
def owned_by(place, name, version):
    """A client that was answered once, and whose connection that agent owns."""
    with Probe(place.cluster.sf, source=next(place.sources)) as probe:
        assert probe("handshake", version=version, sni="localhost", alpn="http/1.1")["done"]
        assert request(probe) == "works"
        connection = settled(place.cluster, probe)
        if connection["owner"] != name:
            place.cluster.move(connection["id"], name)
        yield probe, connection["id"]


def commanded(call, *arguments):
    with contextlib.suppress(ControlError):  # it may say that the agent was lost meanwhile
        call(*arguments)


def moved_away(place, blow, version):
    with owned_by(place, VICTIM, version) as (probe, identity):
        blow.arm()
        commanded(place.cluster.move, identity, OTHER)
        return request(probe)


def moved_here(place, blow, version):
    with owned_by(place, OTHER, version) as (probe, identity):
        blow.arm()
        commanded(place.cluster.move, identity, VICTIM)
        return request(probe)


def amid_a_request(place, version, blow, command, method="get", **how):
    path = f"/held/{next(numbers)}"
    place.backend.hold()
    try:
        with owned_by(place, VICTIM, version) as (probe, identity):
            blow.arm()
            probe.start(method, path=path, timeout_ms=patience(LIMIT_S) * 1000, **how)
            place.backend.wait_for(path)
            commanded(command, identity)
            wait_until(blow.fell, patience(LIMIT_S), "the blow")
            place.backend.release()
            outcome = outcome_of(probe, probe.finish())
            assert method == "get" or place.backend.count(path) == 1
            return outcome
    finally:
        place.backend.release()


numbers = itertools.count()


def moved_amid_a_request(place, blow, version):
    return amid_a_request(place, version, blow, lambda identity: place.cluster.move(identity, OTHER))


def moved_amid_a_post(place, blow, version):
    return amid_a_request(place, version, blow, lambda identity: place.cluster.move(identity, OTHER), "post", bytes=3000)


def drained_amid_a_request(place, blow, version):
    return amid_a_request(place, version, blow, lambda _: place.cluster.drain(VICTIM, timeout_ms=DRAIN_MS))


def drained_while_idle(place, blow, version):
    with owned_by(place, VICTIM, version) as (probe, _):
        blow.arm()
        commanded(lambda: place.cluster.drain(VICTIM, timeout_ms=DRAIN_MS))
        wait_until(blow.fell, patience(LIMIT_S), "the blow")
        return request(probe)


def put_to_rest(place, blow, version):
    with owned_by(place, VICTIM, version) as (probe, identity):
        blow.arm()
        commanded(place.cluster.rest, identity)
        return request(probe)


def woken(place, blow, version):
    """By its next record, on whichever agent its address maps to."""
    blow.arm()
    for _ in range(ATTEMPTS_MAX):
        with owned_by(place, OTHER, version) as (probe, identity):
            if blow.fell():  # it met the victim on its way to rest
                return request(probe)
            place.cluster.rest(identity)
            outcome = request(probe)
        if outcome != "works" or blow.fell():
            return outcome
    return "nobody met the victim"


def asks(place, blow, version):
    with owned_by(place, VICTIM, version) as (probe, _):
        blow.arm()
        return request(probe)


def posts(place, blow, version):
    path = f"/post/{next(numbers)}"
    with owned_by(place, VICTIM, version) as (probe, _):
        blow.arm()
        outcome = request(probe, "post", path, bytes=3000)
    assert place.backend.count(path) <= 1
    return outcome


def updates_keys(place, blow, version):
    with owned_by(place, VICTIM, version) as (probe, _):
        blow.arm()
        probe("key_update", request=1)
        wait_until(blow.fell, patience(LIMIT_S), "the blow")
        return request(probe)


# The table

WORKS, ANSWERED = {"works"}, {"502"}
# When only the link was cut, it works: the agent goes on with its client on the next link.
IF_ALIVE = {"kill": ANSWERED, "cut": WORKS}
IF_ALIVE_ELSE_RESET = {"kill": {"reset"}, "stop": {"reset"}, "cut": WORKS}
STOPPED_AT = ("handshake.hello", "handshake.before_finished")  # there the client waits until the silent agent counts as lost
BOTH, ONLY_13 = ("1.2", "1.3"), ("1.3",)

STATES = [
    # point                      how it is reached      versions  what may become of the client
    ("handshake.hello",          newcomers,             BOTH,     WORKS),     # it has seen nothing: elsewhere
    ("handshake.before_finished", newcomers,            BOTH,     IF_ALIVE_ELSE_RESET),     # it has seen a server that is gone
    ("handshake.before_export",  newcomers,             BOTH,     IF_ALIVE_ELSE_RESET),
    ("handshake.exported",       newcomers,             BOTH,     IF_ALIVE_ELSE_RESET),     # RAgent has no sealed copy yet
    ("handshake.hello",          retried,               ONLY_13,  WORKS),
    ("handshake.before_finished", retried,              ONLY_13,  IF_ALIVE_ELSE_RESET),     # the retry was asked for by a server that is gone
    ("handshake.before_export",  retried,               ONLY_13,  IF_ALIVE_ELSE_RESET),
    ("handshake.hello",          resuming,              BOTH,     WORKS),
    ("handshake.before_finished", resuming,             BOTH,     IF_ALIVE_ELSE_RESET),
    ("handshake.before_export",  resuming,              BOTH,     IF_ALIVE_ELSE_RESET),
    ("handshake.exported",       resuming,              BOTH,     IF_ALIVE_ELSE_RESET),
    ("adopt.before",             newcomers,             BOTH,     WORKS),     # hand-off; the frozen owner takes it back
    ("adopt.after",              newcomers,             BOTH,     WORKS),
    ("adopt.before",             moved_here,            BOTH,     WORKS),
    ("adopt.after",              moved_here,            BOTH,     WORKS),
    ("adopt.before",             woken,                 BOTH,     WORKS),
    ("adopt.after",              woken,                 BOTH,     WORKS),
    ("move.asked",               moved_away,            BOTH,     WORKS),
    ("move.frozen",              moved_away,            BOTH,     WORKS),
    ("move.said",                moved_away,            BOTH,     WORKS),
    ("rest.asked",               put_to_rest,           BOTH,     WORKS),
    ("move.frozen",              put_to_rest,           BOTH,     WORKS),
    ("move.said",                put_to_rest,           BOTH,     WORKS),
    ("rest.asked",               drained_while_idle,    BOTH,     WORKS),
    ("request.given",            asks,                  BOTH,     WORKS),
    ("answer.sealed",            asks,                  BOTH,     WORKS),     # not a byte of it has left
    ("request.given",            posts,                 BOTH,     IF_ALIVE),
    ("answer.sealed",            posts,                 BOTH,     IF_ALIVE),
    ("keyupdate.received",       updates_keys,          ONLY_13,  WORKS),
    ("keyupdate.sealed",         updates_keys,          ONLY_13,  WORKS),     # nobody has seen it
]

# Last: the backend that was passed waits a while for its connection, and all those that wait are looked at together in the end.
STATES_THAT_PASS = [
    ("move.asked",               moved_amid_a_request,  BOTH,     WORKS),     # GET is asked again
    ("move.passed",              moved_amid_a_request,  BOTH,     WORKS),
    ("move.said",                moved_amid_a_request,  BOTH,     WORKS),
    ("move.passed",              moved_amid_a_post,     BOTH,     IF_ALIVE),  # POST is not
    ("move.asked",               drained_amid_a_request, BOTH,    WORKS),
    ("move.passed",              drained_amid_a_request, BOTH,    WORKS),
]

STATES_BETWEEN_HOSTS = [
    ("move.asked",               drained_amid_a_request, BOTH,    WORKS),
    ("move.settling",            drained_amid_a_request, BOTH,    WORKS),
]


def rows(table):
    for point, reach, versions, allowed in table:
        handshake = reach in (newcomers, retried, resuming)
        for version in versions if FULL or handshake else ONLY_13:
            for action in ("kill", "cut", "stop") if handshake and point in STOPPED_AT else ("kill", "cut"):
                outcomes = allowed if isinstance(allowed, set) else allowed[action]
                yield pytest.param(point, reach, version, action, outcomes, id=f"{point}-{reach.__name__}-{version}-{action}")


def check(place, point, reach, version, action, allowed):
    blow = Blow(place.cluster, point, action)
    try:
        outcome = reach(place, blow, version)
        wait_until(blow.fell, patience(FELL_S), f"the victim at {point}; its client: {outcome}")
    finally:
        blow.undo()
    assert outcome in allowed
    place.check_quiet()
    assert attempt(place, version) == "works"


@pytest.mark.parametrize("point, reach, version, action, allowed", list(rows(STATES)))
def test_an_agent_is_lost_at(one_host, point, reach, version, action, allowed):
    check(one_host, point, reach, version, action, allowed)
    one_host.check_descriptors()


@pytest.mark.parametrize("point, reach, version, action, allowed", list(rows(STATES_THAT_PASS)))
def test_an_agent_is_lost_with_a_backend_passed_at(one_host, point, reach, version, action, allowed):
    check(one_host, point, reach, version, action, allowed)


@pytest.mark.parametrize("point, reach, version, action, allowed", list(rows(STATES_BETWEEN_HOSTS)))
def test_an_agent_is_lost_between_hosts_at(two_hosts, point, reach, version, action, allowed):
    check(two_hosts, point, reach, version, action, allowed)
    two_hosts.check_descriptors()
