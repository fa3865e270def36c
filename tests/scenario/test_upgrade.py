"""Agents of two releases in one cluster: one writes the next format of a session, which the others read; it comes, and goes again."""

import pytest

from tests.lib import trouble
from tests.lib.build import patience, sized
from tests.lib.mover import settled
from tests.lib.probe import Probe
from tests.lib.tlsload import check_unharmed
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("test_points"), pytest.mark.limit(90)]


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3")


def check_new(cluster, name):
    assert "writes the next format" in cluster.log(name)


def test_nothing_is_lost_on_the_way_up_and_down(cluster, load):
    load.add("idle", count=sized(200, 1000), run="waits")
    load.ask("idle")
    load.add("get", count=8, path="/64k", every_ms=20)
    load.add("resuming", count=8, every_ms=20, times=1, again="always", resume=1)
    for name in cluster.agents:
        trouble.upgrade(cluster, name)
        check_new(cluster, name)
        check_unharmed(load.ask("idle"))
    for name in cluster.agents:
        trouble.restart_in_order(cluster, name)
        check_unharmed(load.ask("idle"))
    for name in ("get", "resuming"):
        check_unharmed(load.stop(name))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_connection_goes_from_an_old_agent_to_a_new_one_and_back(cluster, version):
    trouble.upgrade(cluster, "a1")
    check_new(cluster, "a1")
    with Probe(cluster.sl) as probe:
        assert probe("handshake", sni="localhost", version=version, alpn="http/1.1")["done"]
        for target in ("a2", "a1", "a3", "a1", "a2"):
            if settled(cluster, probe)["owner"] != target:
                cluster.move(cluster.connection_of(probe)["id"], target)
            answer = probe("get", path="/64k")
            assert (answer["outcome"], answer["headers"]["x-cssl-agent"]) == ("complete", target)
    assert all(cluster.counters()[name]["adopts_refused"] == 0 for name in cluster.agents)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_session_of_a_new_agent_is_resumed_by_an_old_one(cluster, version):
    trouble.upgrade(cluster, "a1")
    trouble.wait_consistent(cluster)
    context = cluster.context(version)
    with cluster.connect(cluster.direct["a1"], context=context) as first:
        first.sendall(b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.recv(4096)
        session = first.session

    def resumed():
        with cluster.connect(cluster.direct["a2"], context=context, session=session) as second:
            return second.session_reused
    wait_until(resumed, patience(5), "a resumption at the old agent")
