"""RAgent's facts about its listeners: the API, the tool and the metrics agree, and a new RAgent goes on counting."""

import socket
import urllib.request

import pytest

from tests.lib.build import patience
from tests.lib.csslctl import csslctl
from tests.lib.waiting import wait_until

COUNTERS = ("accepted", "refused", "handshakes_full", "handshakes_resumed", "handshakes_failed", "client_bytes", "server_bytes")


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", "--workers", "2")


def listener(cluster, name):
    listeners = cluster.control("GET", "/v1/listeners")["listeners"]
    return next(row for row in listeners if row["name"] == name)


def resume(cluster, where):
    """A full handshake and a resumption at `where`, each with a request."""
    context = cluster.context("1.2")
    with cluster.connect(where, context) as first:
        session = first.session
    with cluster.connect(where, context, session=session) as second:
        assert second.session_reused


def not_tls(where):
    with socket.create_connection(where, patience(10)) as sock:
        sock.sendall(b"HELO example.com\r\n")
        assert sock.recv(100) == b""


def test_a_listener_is_told_with_its_settings(cluster):
    sf, sl = listener(cluster, "sf"), listener(cluster, "sl")
    assert (sf["mode"], sl["mode"]) == ("sf", "sl")
    assert sf["service"] == "http" and sf["state"] == "open"
    assert sf["addresses"] == ["{}:{}".format(*cluster.sf)]
    assert sf["backend"] in [line.split()[-1] for line in (cluster.dir / "cluster.yaml").read_text().splitlines() if "backend:" in line]


def test_each_listener_counts_its_own(cluster):
    before, other = listener(cluster, "sl"), listener(cluster, "sf")
    resume(cluster, cluster.sl)
    wait_until(lambda: listener(cluster, "sl")["connections"] == before["connections"], patience(10), "the ends of both")
    after = listener(cluster, "sl")
    grown = {name: after[name] - before[name] for name in COUNTERS}
    assert grown["accepted"] == 2 and grown["handshakes_full"] == 1 and grown["handshakes_resumed"] == 1, grown
    assert grown["refused"] == grown["handshakes_failed"] == 0, grown
    assert grown["client_bytes"] > 200 and grown["server_bytes"] > 500, grown
    assert listener(cluster, "sf") == other


def test_refusals_and_failed_handshakes_are_told_apart(cluster):
    before = listener(cluster, "sf")
    with pytest.raises(ConnectionResetError):
        not_tls(cluster.sf)
    with pytest.raises(OSError), cluster.connect(context=cluster.context("1.2", ciphers="AES128-SHA")):
        pass
    wait_until(lambda: listener(cluster, "sf")["handshakes_failed"] == before["handshakes_failed"] + 1, patience(10))
    after = listener(cluster, "sf")
    assert after["refused"] == before["refused"] + 1
    assert after["handshakes_full"] == before["handshakes_full"]


def test_the_tool_shows_the_same(cluster):
    rows = {row["LISTENER"]: row for row in csslctl("--dir", cluster.dir, "listeners").table("LISTENER")}
    sl = listener(cluster, "sl")
    assert rows["sl"]["MODE"] == "sl" and rows["sl"]["SERVICE"] == sl["service"]
    assert int(rows["sl"]["FULL"]) == sl["handshakes_full"] and int(rows["sl"]["RESUMED"]) == sl["handshakes_resumed"]


def test_the_metrics_have_the_same(cluster):
    control = cluster.description()["control"]
    request = urllib.request.Request(control["url"].rstrip("/") + "/metrics")
    with open(control["token_file"], encoding="ascii") as token:
        request.add_header("Authorization", "Bearer " + token.read().strip())
    with urllib.request.urlopen(request, context=cluster.context(), timeout=patience(20)) as answer:
        text = answer.read().decode()
    sl = listener(cluster, "sl")
    for name in COUNTERS:
        assert f'cssl_listener_{name}_total{{listener="sl"}} {sl[name]}\n' in text, name


def test_a_new_ragent_goes_on_counting(start_cluster):
    cluster = start_cluster("--agents", "1")
    resume(cluster, cluster.sl)
    wait_until(lambda: listener(cluster, "sl")["connections"] == 0, patience(10), "the ends of both")
    before = listener(cluster, "sl")
    assert before["handshakes_full"] == 1
    cluster.replace()
    assert listener(cluster, "sl") == before
