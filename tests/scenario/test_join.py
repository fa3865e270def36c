"""An agent that comes back after a kill knows every session made before, while it was away and while it came back."""

import pytest

from tests.lib.build import patience, scaled
from tests.lib.edits import parks_long
from tests.lib.storm import Storm
from tests.lib.waiting import wait_until

CLIENTS = scaled(300)


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", edit=parks_long)


def storm(cluster, version, *to):
    return Storm(*to, clients=CLIENTS, version=version, ca=cluster.ca)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("killed", ["a1", "a3"])
def test_a_restarted_agent_resumes_every_session(cluster, killed, version):
    others = [cluster.direct[name] for name in cluster.agents if name != killed]
    with storm(cluster, version, cluster.sl) as before, storm(cluster, version, *others) as away, \
            storm(cluster, version, *others) as meanwhile, storm(cluster, version, cluster.direct[killed]) as own:
        assert before("full")["full"] == own("full")["full"] == CLIENTS
        wait_until(lambda: len({cluster.counters()[name]["sessions"] for name in cluster.agents}) == 1)
        cluster.kill(killed)
        assert away("full")["full"] == CLIENTS
        meanwhile.start("full")
        cluster.restart(killed)
        assert meanwhile.finish()["full"] == CLIENTS
        wait_until(lambda: all(cluster.counters()[name]["peers_up"] == 2 for name in cluster.agents), patience(10), "all peers")
        assert cluster.counters()[killed]["snapshots_taken"] >= 1
        # All of them there, also those that it had made itself.
        for clients in (before, away, meanwhile, own):
            clients.to(cluster.direct[killed])
            assert clients("resume") == {"full": 0, "resumed": CLIENTS, "failed": 0}
        # a client of TLS 1.2 is done before the agent has its Finished
        wait_until(lambda: cluster.counters()[killed]["handshakes_resumed"] == 4 * CLIENTS, what="all are counted")
        assert cluster.counters()[killed]["handshakes_full"] == 0


def test_a_session_revoked_while_an_agent_was_away_does_not_come_back_with_it(cluster):
    count = scaled(50)
    with Storm(cluster.sl, clients=count, ca=cluster.ca, server_name="gone.cssl.test") as gone, \
            Storm(cluster.sl, clients=count, ca=cluster.ca, server_name="there.cssl.test") as there:
        assert gone("full")["full"] == there("full")["full"] == count
        cluster.kill("a2")
        answer = cluster.control("POST", "/v1/sessions/revoke", {"server_name": "gone.cssl.test"})
        assert set(answer["confirmed"]) == {"a1", "a3"} and answer["sessions"] == count
        cluster.restart("a2")
        for clients in (gone, there):
            clients.to(cluster.direct["a2"])
        assert gone("resume") == {"full": count, "resumed": 0, "failed": 0}
        assert there("resume") == {"full": 0, "resumed": count, "failed": 0}
