"""An agent dies at every named point of a connection's life: in the handshake, at a hand-off, while it adopts, after its own
KeyUpdate, during a drain. The client goes on, or learns at once that it cannot. No client hangs, and nothing is left over."""

import time

import pytest

from tests.lib.build import patience
from tests.lib.cluster import ControlError
from tests.lib.edits import nobody_moves
from tests.lib.mover import after, settled
from tests.lib.probe import Probe
from tests.lib.trouble import descriptors, wait_consistent
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.usefixtures("test_points")

TOLD_WITHIN_S = 5
versions = pytest.mark.parametrize("version", ["1.2", "1.3"])


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", takeover=True, edit=nobody_moves)


@pytest.fixture
def dies(cluster):
    """dies(point, agent): the agent will die at that point. Afterwards all are up again and nothing is left over."""
    open_before = {name: descriptors(cluster.pid(name)) for name in (*cluster.agents, "r1")}
    victims = []

    def at(point, agent, *rules):
        victims.append(agent)
        cluster.faults(f"{point} kill on {agent}", *rules)
        cluster.settle_faults()
    yield at
    for name in victims:
        cluster.wait_gone(name)
    cluster.clear_faults()
    for name in victims:
        cluster.restart(name)
    wait_consistent(cluster)
    wait_until(lambda: not cluster.connections(), patience(10), "no connection left")
    for name, count in open_before.items():
        wait_until(lambda n=name, c=count: descriptors(cluster.pid(n)) <= c, patience(10), f"descriptors of {name} as before")


def client(cluster, version):
    """Its handshake is done, and a request answered."""
    probe = Probe(cluster.sf)
    assert probe("handshake", version=version, sni="localhost", alpn="http/1.1")["done"]
    assert probe("get", path="/5")["outcome"] == "complete"
    connection = settled(cluster, probe)
    return probe, connection["id"], connection["owner"]


def goes_on(probe):
    answer = probe("get", path="/100000")
    assert (answer["outcome"], answer["status"], answer["wrong_at"]) == ("complete", 200, None)


def goes_on_or_is_told(probe, began):
    """By an alert or a reset, and soon; never by close_notify."""
    answer = probe("get", path="/100000")
    if answer["outcome"] == "complete":
        assert (answer["status"], answer["wrong_at"]) == (200, None)
        return True
    end = probe("end")
    assert time.monotonic() - began < patience(TOLD_WITHIN_S)
    assert end["tls"] == "alert" or end["tcp"] == "rst", end
    return False


@versions
@pytest.mark.parametrize("point", ["handshake.before_finished", "handshake.before_export"])
def test_in_the_handshake(cluster, dies, point, version):
    """The client at the lost agent is cut; a hello without an answer went to another agent; another attempt succeeds."""
    dies(point, "a1")
    ends = []
    while not (cluster.dir / "a1.exit").exists():
        with Probe(cluster.sf) as probe:
            began = time.monotonic()
            shaken = probe("handshake", version=version, sni="localhost")
            ends.append(shaken["done"] and goes_on_or_is_told(probe, began))
            assert time.monotonic() - began < patience(TOLD_WITHIN_S)
        assert len(ends) <= 2 * len(cluster.agents), "the victim gets no handshakes"
    assert ends.count(False) <= 1
    with Probe(cluster.sf) as probe:
        assert probe("handshake", version=version, sni="localhost")["done"]
        goes_on(probe)


@versions
def test_frozen_for_a_move(cluster, dies, version):
    probe, identity, owner = client(cluster, version)
    with probe:
        dies("move.frozen", owner)
        with pytest.raises(ControlError):
            cluster.move(identity, after(cluster, owner))
        goes_on(probe)


@versions
@pytest.mark.parametrize("point", ["adopt.before", "live.find", "copy.open", "adopt.after"])
def test_as_the_one_that_adopts(cluster, dies, point, version):
    probe, identity, owner = client(cluster, version)
    with probe:
        # The copy is opened where the broadcast had brought nothing.
        dies(point, after(cluster, owner), *["live.find fail"] * (point == "copy.open"))
        with pytest.raises(ControlError):
            cluster.move(identity, after(cluster, owner))
        goes_on(probe)


@versions
def test_amid_a_move_with_the_backend_conversation(cluster, dies, version):
    """A download is running. Its backend socket was passed, or it is at the agent that died. The download is complete, or the
    client learns that it was cut."""
    probe, identity, owner = client(cluster, version)
    with probe:
        probe.start("get", path="/slow?bytes=400000&ms=1500")
        wait_until(lambda: cluster.connection(identity)["server_bytes"] > 50000, patience(10))
        dies("move.passed", owner)
        with pytest.raises(ControlError):
            cluster.move(identity, after(cluster, owner))
        answer = probe.finish()
        assert answer["wrong_at"] is None
        if answer["outcome"] != "complete":
            end = probe("end")
            assert end["tls"] == "alert" or end["tcp"] == "rst", end


def test_behind_its_own_key_update(cluster, dies):
    probe, _, owner = client(cluster, "1.3")
    with probe:
        dies("keyupdate.sealed", owner)
        began = time.monotonic()
        probe("key_update", request=1)
        goes_on_or_is_told(probe, began)


@versions
def test_amid_its_drain(cluster, dies, version):
    probe, _, owner = client(cluster, version)
    with probe:
        dies("move.frozen", owner)
        cluster.drain(owner)
        cluster.wait_gone(owner)
        goes_on(probe)
    cluster.undrain(owner)


@versions
def test_as_the_one_that_takes_over(cluster, dies, version):
    """The owner is killed, and then the successor while it adopts: the third goes on."""
    probe, identity, owner = client(cluster, version)
    with probe:
        cluster.kill(owner)
        others = [name for name in cluster.agents if name != owner]
        first = others[0]
        dies("adopt.before", first)
        goes_on(probe)
        cluster.restart(owner)
        if not (cluster.dir / f"{first}.exit").exists():
            cluster.kill(first)  # the other one had been asked
