"""Handshake policies other than round-robin, with real handshakes: which agent gets how many. (test_sf.py has round-robin and
local.)"""

import contextlib
import os
import signal
import threading

import pytest

from tests.lib.build import scaled
from tests.lib.edits import below, edits
from tests.lib.processes import stop
from tests.lib.storm import Storm
from tests.lib.waiting import wait_until

CONNECTIONS = scaled(600, 240)  # so many that other work of the machine does not slow the same agent all the while


def made(cluster):
    """Full handshakes of each agent, when nothing is under way. Connections stay where theirs was, and count there."""
    with Storm(cluster.sl, clients=CONNECTIONS, version="1.3", get="/5", ca=cluster.ca) as clients:
        assert clients("full") == {"full": CONNECTIONS, "resumed": 0, "failed": 0}
    wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 0)
    counters = cluster.counters()
    counts = {name: counters[name]["handshakes_full"] for name in cluster.agents}
    assert sum(counts.values()) == CONNECTIONS
    return counts


def test_weighted_gives_each_agent_its_weight(start_cluster):
    cluster = start_cluster("--agents", "3", "--handshake", "weighted", edit=edits(below("a2", "weight: 2"), below("a3", "weight: 3")))
    counts = made(cluster)
    assert all(abs(counts[f"a{weight}"] - CONNECTIONS * weight / 6) <= 1 for weight in (1, 2, 3)), counts


@contextlib.contextmanager
def mostly_stopped(pid):
    """It runs for a fifth of the time, as on a machine of a fifth of the power; far from being taken for lost."""
    over = threading.Event()

    def work():
        while not over.is_set():
            stop(pid)
            over.wait(0.04)
            os.kill(pid, signal.SIGCONT)
            over.wait(0.01)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("policy", ["shortest-response", "least-connections"])
def test_a_slow_agent_gets_fewer(start_cluster, policy):
    cluster = start_cluster("--agents", "3", "--handshake", policy)
    with mostly_stopped(cluster.pid("a1")):
        counts = made(cluster)
    assert counts["a1"] < CONNECTIONS / 4 < min(counts["a2"], counts["a3"]), counts


def test_round_robin_does_not_care_how_slow_an_agent_is(start_cluster):
    cluster = start_cluster("--agents", "3")
    with mostly_stopped(cluster.pid("a1")):
        counts = made(cluster)
    assert all(abs(n - CONNECTIONS / 3) <= 1 for n in counts.values()), counts
