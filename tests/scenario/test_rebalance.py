"""Agents join, come back or get another weight: connections follow their client's address, at checkpoints, at a bounded rate,
and no client notices."""

import time

import pytest

from tests.lib.build import patience, scaled
from tests.lib.edits import at_end
from tests.lib.tlsload import Load, check_unharmed
from tests.lib.trouble import kill_and_return
from tests.lib.waiting import wait_until

ADDRESSES = 200  # less than tlsload has: each client has one of its own


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3")


@pytest.fixture
def crowd(cluster, load):
    """Clients of many addresses, half of them busy; by name of the group."""
    load.add("idle", count=scaled(ADDRESSES), run="waits")
    load.ask("idle")
    load.add("busy", count=scaled(48), path="/1k", every_ms=10)
    wait_until(lambda: len(homes(cluster)) == scaled(ADDRESSES) + scaled(48), patience(20), "everybody has an owner")
    return load


def homes(cluster):
    """{client: agent}, settled ones only."""
    return {c["client"]: c["owner"] for c in cluster.connections() if c["owner"]}


def check_crowd(crowd):
    check_unharmed(crowd.ask("idle"))
    check_unharmed(crowd.stop("busy"))


def back_where_they_were(cluster, load, before):
    """Resting connections show their agent only when they wake."""
    def back():
        load.ask("idle")
        now = homes(cluster)
        return len(now) >= scaled(ADDRESSES) and all(before[client] == owner for client, owner in now.items())
    wait_until(back, patience(20), "everybody where it was")


@pytest.mark.parametrize("how", ["drained", "killed"])
def test_an_agent_that_comes_back_gets_its_clients_back(cluster, crowd, how):
    before = homes(cluster)
    assert set(before.values()) == set(cluster.agents)
    if how == "drained":
        cluster.drain("a1")
        assert cluster.wait_drained("a1")["state"] == "drained"
        crowd.ask("idle")
        assert "a1" not in homes(cluster).values()
        cluster.undrain("a1")
        back_where_they_were(cluster, crowd, before)
        check_crowd(crowd)
        return
    crowd.stop("busy")  # a kill may cost one an answer, which is another scenario's matter
    kill_and_return(cluster, "a1")
    back_where_they_were(cluster, crowd, before)
    check_unharmed(crowd.ask("idle"))


def test_clients_follow_a_weight(cluster, crowd):
    before = homes(cluster)

    def share():
        crowd.ask("idle")
        owners = list(homes(cluster).values())
        return owners.count("a1") / len(owners)
    assert 0.2 < share() < 0.5
    assert cluster.weigh("a1", 4)["weight"] == 4
    wait_until(lambda: 0.5 < share() < 0.85, patience(20), "two thirds at a1")  # 4 of 6
    moved = [client for client, owner in homes(cluster).items() if owner != before[client]]
    assert all(homes(cluster)[client] == "a1" for client in moved)  # nobody else had a reason to
    cluster.weigh("a1", 1)
    back_where_they_were(cluster, crowd, before)
    check_crowd(crowd)


def test_rebalancing_goes_slowly(start_cluster):
    rate = 40
    cluster = start_cluster("--agents", "3", edit=at_end("moves:", f"  rebalances_per_second: {rate}"))
    with Load(cluster) as load:
        load.add("busy", count=scaled(ADDRESSES), path="/1k", every_ms=100)
        done = lambda: cluster.counters()["ragent"]["rebalanced"]  # noqa: E731
        assert done() == 0
        cluster.weigh("a1", 100)
        wait_until(lambda: done() > 0, patience(10))
        first, began = done(), time.monotonic()
        wait_until(lambda: done() >= scaled(90), patience(30), "most of them moved")
        assert done() - first <= rate * (time.monotonic() - began) + rate / 10
        check_unharmed(load.stop("busy"))
