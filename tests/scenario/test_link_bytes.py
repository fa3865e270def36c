"""A link's bytes go through memory that RAgent and agent share, or on the link's socket (`link_bytes`): everything is the same."""

import contextlib
import hashlib

import pytest

from tests.lib.edits import below, edits, nobody_moves

MANY = 8 << 20


def on_sockets(*agents):
    return edits(nobody_moves, *(below(agent, "link_bytes: socket") for agent in agents))


WAYS = {"memory": nobody_moves, "socket": on_sockets("a1", "a2"), "each": on_sockets("a2")}


def ways_of_links(cluster):
    return {name: line.rpartition("bytes=")[2] for line in cluster.log("r1").splitlines() if "link up" in line
            for name in ("a1", "a2") if f"agent={name}" in line}


def owner_of(cluster, web):
    return cluster.connection_of(web.sock)["owner"]


def download(web, in_its_midst):
    """The bytes of /8m, and the way in which they came."""
    digest = hashlib.sha256()
    web.request("GET", "/8m")
    answer = web.getresponse()
    digest.update(answer.read(MANY // 4))
    in_its_midst()
    rest = answer.read()
    assert len(rest) == MANY - MANY // 4
    digest.update(rest)
    return digest.hexdigest()


@pytest.mark.parametrize("link", ["trusted", "sealed"])
@pytest.mark.parametrize("way", WAYS)
def test_a_connection_goes_through_all_of_it(start_cluster, way, link):
    cluster = start_cluster("--agents", "2", "--link", link, edit=WAYS[way])
    assert ways_of_links(cluster) == {"memory": {"a1": "memory", "a2": "memory"}, "socket": {"a1": "socket", "a2": "socket"},
                                      "each": {"a1": "memory", "a2": "socket"}}[way]
    with contextlib.closing(cluster.http()) as web:
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024

        def move():
            other, = {"a1", "a2"} - {owner_of(cluster, web)}
            cluster.move(cluster.connection_of(web.sock)["id"], other)

        assert download(web, move) == download(web, lambda: None)
        cluster.replace()
        assert download(web, move) == download(web, move)
        cluster.kill(owner_of(cluster, web))
        web.request("GET", "/64k")
        assert len(web.getresponse().read()) == 65536
