"""A client that changes its keys too often has to wait: its agent opens no record of it, and RAgent reads none. Whatever becomes of the
agent and of RAgent meanwhile, the client's next request is answered."""

import pytest

from tests.lib.edits import nobody_moves
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until

HANDSHAKE, KEY_UPDATE = 22, bytes.fromhex("1800000100")
TOO_MANY = 12  # four of them make it wait for a second each


def test_half_a_key_update_goes_on_at_each_owner_and_behind_ragents_death(start_cluster):
    """Each owner opens it again: before its end has come, only the owner has what it said."""
    cluster = start_cluster("--agents", "3", edit=nobody_moves, takeover=True)
    with Probe(cluster.sf) as probe:
        assert probe("handshake", version="1.3", sni="localhost", alpn="http/1.1")["done"]
        first = probe("get", path="/5")["headers"]["x-cssl-agent"]
        records = cluster.connection_of(probe)["client_records"]
        for half in (KEY_UPDATE[:1], KEY_UPDATE[1:3]):
            probe("forge", type=HANDSHAKE, text=half)
        wait_until(lambda: cluster.connection_of(probe)["client_records"] == records + 2)
        second, third = (name for name in cluster.agents if name != first)
        cluster.move(cluster.connection_of(probe)["id"], second)
        cluster.kill(second)
        wait_until(lambda: cluster.connection_of(probe)["owner"] in (first, third))
        cluster.kill_ragent()
        probe("forge", type=HANDSHAKE, text=KEY_UPDATE[3:], step=1)
        assert probe("get", path="/1k")["outcome"] == "complete"


class Waiting:
    """A client that has to wait, and a request of it."""

    def __init__(self, cluster, probe):
        self.cluster, self._probe = cluster, probe
        assert probe("handshake", version="1.3", sni="localhost", alpn="http/1.1")["done"]
        self.agent = probe("get", path="/5")["headers"]["x-cssl-agent"]
        paced = self._paced()
        probe("forge", type=HANDSHAKE, text=KEY_UPDATE, step=1, count=TOO_MANY)
        wait_until(lambda: self._paced() > paced, what="the client has to wait")
        self._records = self._read()
        probe.start("get", path="/1k")

    def _paced(self):
        return self.cluster.counters()[self.agent]["key_updates_paced"]

    def _read(self):
        return self.cluster.connection_of(self._probe)["client_records"]

    def nothing_is_read(self):
        return self._read() == self._records

    def is_answered(self):
        return self._probe.finish()["outcome"] == "complete"


@pytest.fixture
def waiting(start_cluster):
    cluster = start_cluster("--agents", "2", edit=nobody_moves, takeover=True)
    with Probe(cluster.sf) as probe:
        yield Waiting(cluster, probe)


def test_nothing_is_read_of_a_client_that_has_to_wait(waiting):
    for _ in range(5):
        assert waiting.nothing_is_read()
    assert waiting.is_answered()
    assert not waiting.nothing_is_read()


def test_it_goes_on_when_its_agent_is_killed(waiting):
    waiting.cluster.kill(waiting.agent)
    assert waiting.is_answered()


def test_it_goes_on_when_ragent_is_killed(waiting):
    waiting.cluster.kill_ragent()
    assert waiting.is_answered()


def test_it_goes_on_when_ragent_is_replaced(waiting):
    waiting.cluster.replace()
    assert waiting.is_answered()


def test_it_goes_on_when_it_is_moved(waiting):
    other = next(name for name in waiting.cluster.agents if name != waiting.agent)
    waiting.cluster.move(waiting.cluster.connections()[0]["id"], other)
    assert waiting.is_answered()
