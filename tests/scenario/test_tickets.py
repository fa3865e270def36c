"""TLS 1.2 tickets, for clients that cannot resume otherwise, and the rotation of all keys that agents share."""

import json
import subprocess

import pytest

from tests.lib.build import binary, patience, scaled
from tests.lib.edits import edits, parks_long, tls
from tests.lib.probe import Probe
from tests.lib.storm import Storm
from tests.lib.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    cluster = start_module_cluster("--agents", "3", "--tls12-tickets", edit=edits(parks_long, tls("extended_master_secret: optional")))
    for where in cluster.direct.values():  # an agent that has just started has no key for tickets yet
        wait_until(lambda where=where: go(cluster, where, rounds=2)[1]["resumed"])
    return cluster


def go(cluster, *where, version="1.2", rounds=1):
    """The results of Go's client, connection by connection."""
    urls = [f"https://{host}:{port}/1k" for host, port in where]
    out = subprocess.run([binary("tests/lib/getter"), "-ca", cluster.ca, "-max", version, "-round", str(rounds), *urls],
                         stdout=subprocess.PIPE, timeout=patience(30), check=True).stdout
    results = [json.loads(line) for line in out.splitlines()]
    assert all(r["status"] == 200 and r["bytes"] == 1024 and r["version"] == version for r in results)
    return results


def rotate(cluster):
    """Until every agent seals under a new key: that is when its peers have it."""
    rolled = cluster.counter("sending_keys_rolled")
    answer = cluster.control("POST", "/v1/keys/rotate", {})
    assert set(answer["done"]) >= set(cluster.agents) and answer["failed"] == {}
    wait_until(lambda: cluster.counter("sending_keys_rolled") == rolled + len(cluster.agents))


def test_go_resumes_by_ticket_on_other_agents(cluster):
    before = cluster.counter("resumed_by_ticket"), cluster.counter("sessions_stored")
    seen = go(cluster, *cluster.direct.values(), rounds=2)
    assert [r["agent"] for r in seen] == cluster.agents * 2
    assert [r["resumed"] for r in seen] == [False] + [True] * 5
    assert cluster.counter("resumed_by_ticket") == before[0] + 5
    assert cluster.counter("sessions_stored") == before[1]  # a ticket is in no store


@pytest.mark.parametrize("mode", ["sf", "sl"])
def test_go_resumes_by_ticket_behind_ragent(cluster, mode):
    hellos = cluster.counters()["ragent"]["hellos_resuming"]
    seen = go(cluster, getattr(cluster, mode), rounds=6)
    assert [r["resumed"] for r in seen] == [False] + [True] * 5
    assert cluster.counters()["ragent"]["hellos_resuming"] == hellos + 5


def test_a_client_without_tickets_resumes_by_session_id_beside_it(cluster, tmp_path):
    where, before = list(cluster.direct.values()), cluster.counter("resumed_by_id")
    options = {"version": "1.2", "tickets": "off", "sni": "localhost"}
    with Probe(where[0]) as probe:
        assert not probe("handshake", **options)["reused"]
        probe("save_session", file=tmp_path / "session")
    for agent in where:
        with Probe(agent) as probe:
            assert probe("handshake", session=tmp_path / "session", **options)["reused"]
    assert cluster.counter("resumed_by_id") == before + len(where)


def test_where_tickets_are_off_go_makes_full_handshakes(start_cluster):
    cluster = start_cluster("--agents", "2")
    seen = go(cluster, *cluster.direct.values(), rounds=2)
    assert [r["resumed"] for r in seen] == [False] * 4
    assert cluster.counter("resumed_by_ticket") == 0
    # In TLS 1.3 it needs none: its tickets are names of sessions in the store.
    seen = go(cluster, *cluster.direct.values(), version="1.3", rounds=2)
    assert [r["resumed"] for r in seen] == [False] + [True] * 3


def test_tickets_survive_the_rotation_of_their_keys(cluster):
    count = scaled(100, 20)
    with Storm(*cluster.direct.values(), clients=count, version="1.2", ca=cluster.ca) as clients:
        assert clients("full") == {"full": count, "resumed": 0, "failed": 0}
        for _ in range(2):
            made = cluster.counter("ticket_keys_made")
            rotate(cluster)
            assert cluster.counter("ticket_keys_made") > made
            assert clients("resume") == {"full": 0, "resumed": count, "failed": 0}
    assert cluster.counter("resumed_by_ticket") >= 2 * count


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_rotation_under_load_loses_nothing(cluster, version):
    count = scaled(600, 60)
    with Storm(cluster.sl, clients=count, version=version, ca=cluster.ca) as clients:
        clients.start("storm 2")
        for _ in range(4):
            rotate(cluster)
        assert clients.finish() == {"full": count, "resumed": 2 * count, "failed": 0}
        assert clients("resume") == {"full": 0, "resumed": count, "failed": 0}
    assert cluster.counter("datagrams_forged") == 0
