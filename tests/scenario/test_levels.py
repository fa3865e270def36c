"""The gauges of waiting work, and of the time of drains, follow the events."""

import socket

import pytest

from tests.lib.build import patience
from tests.lib.unread import unread
from tests.lib.waiting import wait_until

ASKED = b"GET /20m HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "2")


def level(cluster, name):
    return cluster.counters()["ragent"][name]


def becomes(cluster, name, expected):
    wait_until(lambda: expected(level(cluster, name)), patience(10), name)


def test_bytes_that_a_client_does_not_read_count_until_it_is_gone(cluster):
    assert level(cluster, "client_queued_bytes") == 0
    with cluster.connect(sock=unread(cluster.sl)) as client:
        client.sendall(ASKED)
        becomes(cluster, "client_queued_bytes", lambda n: n > 0)
        cluster.replace()
        becomes(cluster, "client_queued_bytes", lambda n: n > 0)
    becomes(cluster, "client_queued_bytes", lambda n: n == 0)


def test_clients_that_wait_for_an_agent_are_counted(cluster):
    cluster.kill(*cluster.agents)
    client = socket.create_connection(cluster.sl, patience(20))
    with client:
        client.sendall(bytes.fromhex("1603010005010000010000"))  # it is no agent's yet, so that nobody has looked at it
        becomes(cluster, "connections_waiting", lambda n: n == 1)
    becomes(cluster, "connections_waiting", lambda n: n == 0)


def test_a_drain_is_counted_with_its_time(cluster):
    cluster.drain("a1")
    assert cluster.wait_drained("a1")["state"] == "drained"
    counters = cluster.counters()["ragent"]
    assert counters["drains_done"] == 1 and counters["drains_timed_out"] == 0
    times = {name: n for name, n in counters.items() if name.startswith("drain_time_") and not name.endswith("sum_ms")}
    assert len(times) == 7 and sum(times.values()) == 1
