"""HMAC and the key schedule of TLS 1.3 within the agents: switched off, or found wrong at start, OpenSSL's own take their place."""

import pytest

from tests.lib.build import TEST_POINTS, patience
from tests.lib.edits import at_end
from tests.lib.load import load
from tests.lib.waiting import wait_until


def uses_own(cluster):
    """{"a1": 1, ...}, once every agent has reported it for the first time."""
    def told():
        counters = cluster.counters()
        return all(counters[name]["resident_bytes"] for name in cluster.agents) and counters

    counters = wait_until(told, patience(10), "gauges of the agents")
    return {name: counters[name]["own_provider"] for name in cluster.agents}


def serves(cluster):
    """Full handshakes and resumptions of both versions whose connections are handed off, each answered over several records."""
    for version in ("1.2", "1.3"):
        result = load(cluster.sf, "--connections", "60", "--mix", "1:1", "--clients", "5", "--equal", "--version", version, "--no-tickets",
                      "--requests", "3", "--path", "/64k", "--check")
        assert result.status == 0, result.complaints
        assert result.counts["full"] == result.counts["resumed"] == 30


def test_agents_use_their_own_where_nothing_else_is_said(start_cluster):
    cluster = start_cluster("--agents", "2")
    assert uses_own(cluster) == {"a1": 1, "a2": 1}
    serves(cluster)


def test_the_cluster_file_switches_it_off(start_cluster):
    cluster = start_cluster("--agents", "2", edit=at_end("own_provider: off"))
    assert uses_own(cluster) == {"a1": 0, "a2": 0}
    serves(cluster)


@pytest.mark.skipif(not TEST_POINTS, reason="needs fault points")
def test_an_agent_whose_own_gives_other_results_than_openssl_says_so_and_does_not_use_it(start_cluster):
    cluster = start_cluster("--agents", "2", faults=["own_provider.check fail on a1"])
    assert uses_own(cluster) == {"a1": 0, "a2": 1}
    assert "error" in next(line for line in cluster.log("a1").splitlines() if "own HMAC, key schedules and X25519 are not used" in line)
    assert "are not used" not in cluster.log("a2")
    serves(cluster)
