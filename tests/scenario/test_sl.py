"""CSSL-SL: a connection stays where its handshake was, and its session resumes on whichever agent comes next."""

import pytest

from tests.lib.build import scaled
from tests.lib.edits import parks_long
from tests.lib.haproxy import Haproxy
from tests.lib.storm import Storm
from tests.lib.waiting import wait_until

CLIENTS = scaled(1000)
COUNTED = ("handshakes_full", "handshakes_resumed", "handshakes_failed", "pulls_missed", "parks_refused", "objects_missed",
           "resumed_by_id", "resumed_by_psk", "handed_off")


@pytest.fixture(scope="module", params=[2, 3], ids=["2 agents", "3 agents"])
def cluster(request, start_module_cluster):
    return start_module_cluster("--agents", str(request.param), edit=parks_long)


@pytest.fixture(params=["ragent", pytest.param("haproxy", marks=pytest.mark.tool("haproxy"))])
def balancer(request, cluster, tmp_path):
    """Where clients connect to reach the agents in turn."""
    if request.param == "ragent":
        yield cluster.sl
        return
    with Haproxy(tmp_path, cluster.direct) as haproxy:
        yield haproxy.address


def totals(cluster):
    return {name: cluster.counter(name) for name in COUNTED}


def storm(cluster, version, *to):
    """The clients' results, and the counts of the agents meanwhile."""
    before = totals(cluster)
    with Storm(*to, clients=CLIENTS, version=version, ca=cluster.ca) as clients:
        seen = clients("storm 2")
    made = "handshakes_full", "handshakes_resumed"
    # a client of TLS 1.2 is done before the agent has its Finished
    wait_until(lambda: sum(cluster.counter(name) - before[name] for name in made) >= seen["full"] + seen["resumed"], what="all are counted")
    return seen, {name: n - before[name] for name, n in totals(cluster).items()}


def assert_none_missed(seen, counted, version):
    assert seen == {"full": CLIENTS, "resumed": 2 * CLIENTS, "failed": 0}
    assert counted["handshakes_full"] == CLIENTS
    assert counted["handshakes_resumed"] == 2 * CLIENTS
    assert counted["resumed_by_psk" if version == "1.3" else "resumed_by_id"] == 2 * CLIENTS
    assert counted["pulls_missed"] == counted["parks_refused"] == counted["handshakes_failed"] == 0


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_every_session_resumes_behind_a_balancer(cluster, balancer, version):
    seen, counted = storm(cluster, version, balancer)
    assert_none_missed(seen, counted, version)
    assert counted["handed_off"] == 0


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_every_session_resumes_on_the_next_agent_at_once(cluster, version):
    """No connection of a client goes to the agent of the one before."""
    seen, counted = storm(cluster, version, *cluster.direct.values())
    assert_none_missed(seen, counted, version)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_fifth_of_the_datagrams_lost_costs_a_thousandth_of_the_resumptions_at_most(cluster, test_points, version):
    cluster.faults("udp.send drop 0.2")
    try:
        seen, counted = storm(cluster, version, cluster.sl)
    finally:
        cluster.clear_faults()
    assert seen["failed"] == 0
    assert seen["resumed"] >= 0.999 * 2 * CLIENTS, counted
    assert counted["objects_missed"] > CLIENTS / 10  # they really were dropped
