"""Service h2: clients of HTTP/2 in front of backends that speak it without TLS; moves, drains and losses between frames."""

import pytest

from tests.lib.build import patience
from tests.lib.edits import alpn, backend, below, edits, nobody_moves
from tests.lib.h2_backend import fill, nghttpd
from tests.lib.h2_client import ACK, GOAWAY, PING, H2Client, frame, goaway_of
from tests.lib.pattern import pattern
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.tool("nghttpd", "nginx"), pytest.mark.limit(120)]

NO_ERROR = 0
REST = below("sf", "rest_after: 300ms")


def h2_of(served, *keys):
    return edits(alpn("h2", "h2", "h2"), backend("h2", served.address, *keys), nobody_moves)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def served(folder):
    with nghttpd(folder) as backend_:
        yield backend_


@pytest.fixture(scope="module")
def cluster(start_module_cluster, served):
    return start_module_cluster("--agents", "2", edit=h2_of(served))


@pytest.fixture(scope="module")
def restful(start_module_cluster, served):
    return start_module_cluster("--agents", "2", edit=edits(h2_of(served), REST))


def resting(cluster, client):
    def rests():
        connection = cluster.connection_of(client)
        return connection if connection["state"] == "resting" else None
    return wait_until(rests, patience(10), "a connection at rest")


# Frames pass


def test_answers_come_whole(cluster):
    with H2Client(cluster) as client:
        assert client.get(1, "/1k") == pattern(1024)
        for stream in (3, 5, 7):
            client.request(stream, "/1m")
        for stream in (7, 5, 3):
            assert client.body(stream) == pattern(1 << 20)


def test_a_ping_is_the_backends_to_answer(cluster):
    with H2Client(cluster) as client:
        client.say(frame(PING, 0, 0, b"12345678"))
        assert client.wait(PING, ACK).payload == b"12345678"


# At rest


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_resting_connection_is_ended_by_goaway_that_spares_the_new_request(restful, version):
    with H2Client(restful, version=version) as client:
        assert client.get(1, "/1k") == pattern(1024)
        assert client.get(5, "/1k") == pattern(1024)
        resting(restful, client)
        client.request(9, "/1k")
        assert goaway_of(client.wait(GOAWAY)) == (7, NO_ERROR)
        assert client.end() == "close_notify"
        assert client.so_far(9) == b""
