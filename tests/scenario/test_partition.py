"""Agents that live and cannot be reached: by RAgent, by each other, in one direction, for a while. Clients are served, no connection
has two owners (the nonce audit of every scenario judges that), and a healed cluster needs no restart."""

import contextlib
import threading
import time

import pytest

from tests.lib.build import FULL, patience, sized
from tests.lib.cluster import ControlError
from tests.lib.edits import nobody_moves
from tests.lib.mover import after
from tests.lib.tlsload import Load, check_honest, check_unharmed, say
from tests.lib.trouble import bad_network, cut_off_from_peers, cut_off_from_ragent, rules, stopped, wait_consistent
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.limit(240 if FULL else 120), pytest.mark.usefixtures("test_points")]

LOST_S = 3                # health.lost of the cluster file
SECONDS = 30 if FULL else LOST_S + 2
STOPPED_S = 15 if FULL else LOST_S + 2
ANSWER_MAX_US = (LOST_S + 2) * 1_000_000
ONE_WAY = {"it hears nothing": ("read",), "it is not heard": ("write",), "neither": ("read", "write")}


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3")


@pytest.fixture
def moves(cluster):
    """How often each connection there changed its agent since the test began."""
    before = {}

    def since():
        return {c["id"]: c["moves"] - before.get(c["id"], 0) for c in cluster.connections()}
    before.update({c["id"]: c["moves"] for c in cluster.connections()})
    return since


@contextlib.contextmanager
def serving(cluster, load):
    """Idle clients, and clients that send one request after another. Afterwards none has lost anything, and the cluster is
    complete."""
    load.add("idle", count=sized(150, 500), run="waits")
    load.ask("idle")
    load.add("get", count=24, every_ms=40)
    load.wait_for_first_answers()
    yield
    report = check_unharmed(load.stop("get"))
    print(f"{report['answers']} answers, the latest after {report['latency_us']['max'] / 1000} ms")
    assert report["latency_us"]["max"] <= patience(ANSWER_MAX_US), say(report)
    check_unharmed(load.ask("idle"))
    wait_consistent(cluster)
    check_unharmed(load.ask("idle"))


@pytest.mark.parametrize("ways", ONE_WAY.values(), ids=ONE_WAY)
def test_an_agent_cut_off_from_ragent(cluster, load, ways):
    with serving(cluster, load), rules(cluster, *cut_off_from_ragent("a1", ways)):
        time.sleep(SECONDS)
        check_unharmed(load.ask("idle"))
        assert "a1" not in {c["owner"] for c in cluster.connections()}


@pytest.mark.parametrize("ways", ONE_WAY.values(), ids=ONE_WAY)
def test_an_agent_cut_off_from_its_peers(cluster, load, ways, moves):
    with serving(cluster, load):
        with rules(cluster, *cut_off_from_peers("a1", ways)):
            load.add("new", count=8, every_ms=20, times=1, again="always")
            load.add("resuming", count=8, every_ms=20, times=1, again="always", resume=1)
            time.sleep(SECONDS)
            for name in ("new", "resuming"):
                check_unharmed(load.stop(name))
            check_unharmed(load.ask("idle"))
        wait_consistent(cluster)
        most = max(moves().values())
        assert most <= 2, f"a connection moved {most} times"


def test_an_agent_that_was_stopped_comes_back_and_says_nothing(cluster, load):
    with serving(cluster, load):
        with stopped(cluster, "a1"):
            time.sleep(STOPPED_S)
            check_unharmed(load.ask("idle"))
            assert "a1" not in {c["owner"] for c in cluster.connections()}
        wait_consistent(cluster)
        # By TCP no open backend conversation could go along with a connection.
        wait_until(lambda: all(set(cluster.peer_ways(name).values()) == {"unix"} for name in cluster.agents), patience(10),
                   "links by UNIX sockets")


@pytest.mark.parametrize("loss", [0.1, 0.3])
def test_a_bad_network_between_agents(cluster, load, loss):
    with serving(cluster, load), rules(cluster, *bad_network(loss)):
        load.add("new", count=8, every_ms=20, times=1, again="always")
        load.add("resuming", count=8, every_ms=20, times=1, again="always", resume=1)
        time.sleep(SECONDS)
        for name in ("new", "resuming"):
            check_honest(check_unharmed(load.stop(name)))


MOVES = sized(200, 4000)
MOVED_SHARE = 0.999
PAUSE_P99_US = 1_000_000


class Mover(threading.Thread):
    """Moves its connections in turn, each to the agent after its owner. Has the result of every move."""

    def __init__(self, cluster, identities, moves):
        super().__init__(daemon=True)
        self.pauses_us, self.failures = [], []
        self._cluster, self._identities, self._left = cluster, identities, moves

    def run(self):
        for number in range(self._left):
            identity = self._identities[number % len(self._identities)]
            owner = wait_until(lambda: self._cluster.connection(identity)["owner"], patience(10), "an owner")
            try:
                self.pauses_us.append(self._cluster.move(identity, after(self._cluster, owner))["pause_us"])
            except ControlError as e:
                self.failures.append(str(e))


@pytest.mark.limit(600 if FULL else 120)
@pytest.mark.parametrize("loss", [0.1, 0.3])
def test_moves_succeed_on_a_bad_network_between_agents(start_cluster, loss, record_property):
    """Messages between agents about a move are lost, doubled, out of order, and 200 ms late."""
    cluster = start_cluster("--agents", "3", edit=nobody_moves)
    with Load(cluster) as load, rules(cluster, *bad_network(loss, late_ms=200)):
        load.add("get", count=24, every_ms=40)
        identities = [c["id"] for c in cluster.connections(listener="sf")]
        assert len(identities) == 24
        movers = [Mover(cluster, identities[n::4], MOVES // 4) for n in range(4)]
        for mover in movers:
            mover.start()
        for mover in movers:
            mover.join()
        check_unharmed(load.stop("get"))
    pauses = sorted(us for mover in movers for us in mover.pauses_us)
    failures = [f for mover in movers for f in mover.failures]
    p99_us = pauses[len(pauses) * 99 // 100]
    figure = f"{len(pauses)} of {MOVES} moves done at {loss:.0%} loss, pause p99 {p99_us / 1000:.1f} ms, longest {pauses[-1] / 1000:.1f} ms"
    print(figure)
    record_property("figure", figure)
    assert len(pauses) >= MOVED_SHARE * MOVES, failures[:5]
    assert loss > 0.1 or p99_us <= (PAUSE_P99_US if FULL else patience(PAUSE_P99_US)), figure
