"""Requests through a whole cluster: every byte arrives, through the agent that the listener's mode chooses; with and without a
move in the middle of uploads and downloads."""

import hashlib
import json
import random
from collections import Counter

import pytest

from tests.lib.build import scaled
from tests.lib.edits import nobody_moves
from tests.lib.mover import Mover
from tests.lib.pattern import first_difference
from tests.lib.waiting import wait_until

SUITES_13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
SUITES_12 = [f"ECDHE-{certificate}-{cipher}" for certificate in ("ECDSA", "RSA")
             for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")]


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", edit=nobody_moves)


def get(web, path, amid=lambda: None):
    """The answer and its body, in the middle of which something may be done."""
    web.request("GET", path)
    response = web.getresponse()
    first = response.read(response.length // 2)
    amid()
    return response, first + response.read()


@pytest.mark.parametrize("listener", ["sf", "sl"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("size", [0, 5, 1024, 65536, 1 << 20, 20 << 20])
def test_an_answer_arrives_whole(cluster, listener, version, size, mover):
    size = size if size < 65537 else scaled(size)
    web = cluster.http(getattr(cluster, listener), cluster.context(version))
    for _ in range(2):
        response, body = get(web, f"/{size}", amid=lambda: mover(cluster, web.sock))
        assert response.status == 200
        assert len(body) == size and first_difference(body, size) is None
    web.close()


@pytest.mark.parametrize("listener", ["sf", "sl"])
@pytest.mark.parametrize("suite", SUITES_12)
def test_each_suite_of_tls_1_2_carries_data(cluster, listener, suite, mover):
    web = cluster.http(getattr(cluster, listener), cluster.context("1.2", suite))
    assert web.sock.cipher()[0] == suite
    body = get(web, "/100000", amid=lambda: mover(cluster, web.sock))[1]
    assert len(body) == 100000 and first_difference(body, 100000) is None
    web.close()


def upload(web, data, amid):
    web.putrequest("POST", "/sha256")
    web.putheader("Content-Length", str(len(data)))
    web.endheaders(data[:len(data) // 2])
    amid()
    web.send(data[len(data) // 2:])
    return json.loads(web.getresponse().read())


@pytest.mark.parametrize("listener", ["sf", "sl"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_an_upload_arrives_whole(cluster, listener, version, mover):
    data = random.Random(3).randbytes(scaled(20 << 20))
    web = cluster.http(getattr(cluster, listener), cluster.context(version))
    result = upload(web, data, amid=lambda: mover(cluster, web.sock))
    assert result == {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}
    web.close()


def test_requests_are_executed_once(cluster, mover):
    web = cluster.http()
    for i in range(scaled(100)):
        web.request("POST", "/count", b"", {"X-Id": f"once-{i}-{mover.times}"})
        mover(cluster, web.sock)
        assert json.loads(web.getresponse().read())["executions"] == 1
    web.close()


def handshakes(cluster):
    return {name: c["handshakes_full"] for name, c in cluster.counters().items() if name != "ragent"}


def test_sf_spreads_handshakes_and_keeps_bulk_together(cluster):
    count = scaled(300, 30)
    before = handshakes(cluster)
    served = Counter()
    for _ in range(count):
        web = cluster.http(cluster.sf)
        served[get(web, "/5")[0].headers["X-CSSL-Agent"]] += 1
        web.close()
    after = handshakes(cluster)
    made = [after[name] - before[name] for name in cluster.agents]
    assert sum(made) == count
    assert all(abs(n - count / 3) <= 1 for n in made), made
    assert len(served) == 1, served


def test_sl_keeps_bulk_where_the_handshake_was(cluster):
    count = scaled(90, 9)
    served = Counter()
    for _ in range(count):
        web = cluster.http(cluster.sl)
        agent = get(web, "/5")[0].headers["X-CSSL-Agent"]
        connection = wait_until(lambda: cluster.connection_of(web.sock))
        assert connection["owner"] == connection["handshake_agent"] == agent
        served[agent] += 1
        web.close()
    assert all(abs(n - count / 3) <= 1 for n in served.values()) and len(served) == 3, served


def test_a_direct_listener_of_an_agent_needs_no_ragent(cluster):
    for name, where in cluster.direct.items():
        web = cluster.http(where)
        response, body = get(web, "/64k")
        assert response.headers["X-CSSL-Agent"] == name
        assert first_difference(body, 65536) is None
        web.close()


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_connection_moves_between_requests(cluster, version):
    web = cluster.http(cluster.sf, cluster.context(version))
    owner = get(web, "/5")[0].headers["X-CSSL-Agent"]
    connection = wait_until(lambda: cluster.connection_of(web.sock))
    for target in [name for name in cluster.agents if name != owner] + [owner]:
        cluster.move(connection["id"], target)
        response, body = get(web, "/100000")
        assert response.headers["X-CSSL-Agent"] == target
        assert first_difference(body, 100000) is None
    web.close()


def test_without_migration_bulk_stays_at_the_handshake_agent(start_cluster):
    cluster = start_cluster("--agents", "2", "--no-migration")
    served = Counter()
    for _ in range(10):
        web = cluster.http(cluster.sf)
        served[get(web, "/5")[0].headers["X-CSSL-Agent"]] += 1
        web.close()
    assert served == {"a1": 5, "a2": 5}


def test_sealed_links_carry_the_same(start_cluster):
    cluster = start_cluster("--agents", "2", "--link", "sealed", edit=nobody_moves)
    web = cluster.http(cluster.sf)
    size = scaled(5 << 20)
    for times in (0, 2):
        body = get(web, f"/{size}", amid=lambda moves=Mover(times): moves(cluster, web.sock))[1]
        assert len(body) == size and first_difference(body, size) is None
    web.close()
