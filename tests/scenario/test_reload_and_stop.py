"""SIGHUP brings new certificates and log files, SIGTERM an end in order; clients lose nothing by either."""

import contextlib
import json
import pathlib
import re
import signal
import socket
import ssl
import subprocess

import pytest

from tests.lib import edits
from tests.lib.build import binary, patience, scaled
from tests.lib.csslctl import DONE, REFUSED, csslctl
from tests.lib.pattern import first_difference
from tests.lib.storm import Storm
from tests.lib.trouble import renew_certificate
from tests.lib.waiting import wait_until


def reload(cluster, by):
    if by == "API":
        assert set(cluster.control("POST", "/v1/reload", {})["done"]) >= set(cluster.agents)
        return
    for name in (*cluster.agents, "r1"):
        cluster.send_signal(name, signal.SIGHUP)


def shown(cluster, agent):
    """The certificate that this agent shows, as its file has it."""
    with contextlib.closing(cluster.connect(cluster.direct[agent])) as sock:
        return ssl.DER_cert_to_PEM_cert(sock.getpeercert(binary_form=True))


def on_disk(cluster, name="ecdsa"):
    return (cluster.dir / f"{name}.pem").read_text()


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", "--workers", "2", edit=edits.parks_long)


@pytest.mark.parametrize("by,mover", [("signal", 0), ("API", 0), ("API", 1)], indirect=["mover"])
def test_a_new_certificate_is_shown_and_nobody_notices(cluster, by, mover):
    """Nor does a connection that was made with the old one and goes to agents that show the new."""
    count = scaled(800)
    with contextlib.closing(cluster.http()) as slow, \
            Storm(cluster.sl, *cluster.direct.values(), clients=count, get="/1k", ca=cluster.ca) as clients:
        slow.request("GET", "/slow?bytes=200000&ms=700")
        clients.start("full")
        for _ in range(3):
            renew_certificate(cluster)
            reload(cluster, by)
            wait_until(lambda: {shown(cluster, name) for name in cluster.agents} == {on_disk(cluster)})
            mover(cluster, slow.sock)
        assert clients.finish() == {"full": count, "resumed": 0, "failed": 0}
        assert first_difference(slow.getresponse().read(), 200000) is None
        # A session is bound to the certificate it began with: it begins anew, and nothing fails.
        assert clients("resume")["failed"] == 0
        assert clients("resume") == {"full": 0, "resumed": count, "failed": 0}


def test_a_certificate_that_cannot_be_read_changes_nothing(cluster):
    """And --check says of it what the log says."""
    good, reloads = on_disk(cluster), cluster.log("a1").count("certificates not reloaded")
    (cluster.dir / "ecdsa.pem").write_text("-----BEGIN CERTIFICATE-----\nnonsense\n")
    try:
        cluster.send_signal("a1", signal.SIGHUP)
        wait_until(lambda: cluster.log("a1").count("certificates not reloaded") == reloads + 1)
        assert shown(cluster, "a1") == good
        check = subprocess.run([binary("sslagent/sslagent"), "--config", cluster.dir / "cluster.yaml", "--check"], text=True, check=False,
                               stderr=subprocess.PIPE)
        assert check.returncode == 1
        assert "ecdsa.pem', which is cut off, expected a PEM certificate" in check.stderr
        assert check.stderr.strip() in cluster.log("a1").replace('\\"', '"')
    finally:
        (cluster.dir / "ecdsa.pem").write_text(good)


def log_to_a_file(text):
    """All daemons to one, which RAgent's user, too, may write."""
    log = pathlib.Path(re.search(r"unix:(.*)/links/", text).group(1)) / "all.log"
    log.touch()
    log.chmod(0o666)
    return text + f"log: {{ path: {log}, format: json }}\n"


def test_logs_go_on_in_a_new_file(start_cluster):
    cluster = start_cluster("--agents", "1", edit=log_to_a_file)
    log, old = cluster.dir / "all.log", cluster.dir / "all.log.1"
    log.rename(old)
    cluster.send_signal("a1", signal.SIGHUP)
    wait_until(log.exists)
    lines = len(old.read_text().splitlines())
    cluster.control("PUT", "/v1/log-level", {"level": "configured"})  # RAgent logs who changes something
    wait_until(lambda: len(old.read_text().splitlines()) > lines)  # RAgent was not told
    assert all(json.loads(line) for line in log.read_text().splitlines())


def test_csslctl_reload_opens_the_logs_of_all_again(start_cluster):
    """And says who could not."""
    cluster = start_cluster("--agents", "1", edit=log_to_a_file)
    log, old, last = (cluster.dir / f"all.log{end}" for end in ("", ".1", ".2"))
    log.rename(old)
    log.touch()
    log.chmod(0o666)
    assert csslctl("--dir", cluster.dir, "reload").code == DONE
    wait_until(lambda: '"node":"a1","event":"certificates reloaded"' in log.read_text(), patience(10), "a1 writes into the new file")
    log.rename(last)
    log.mkdir()
    reload = csslctl("--dir", cluster.dir, "reload")
    assert reload.code == REFUSED and "a1" in reload.out and "directory" in reload.out
    log.rmdir()
    assert last.read_text().count('"event":"log not opened again"') == 2


# SIGTERM

def test_ragent_ends_in_order_and_what_is_under_way_is_answered(start_cluster):
    cluster = start_cluster("--agents", "2")
    with contextlib.closing(cluster.http()) as slow, contextlib.closing(cluster.http()) as idle:
        slow.request("GET", "/slow?bytes=100000&ms=800")
        answer = slow.getresponse()  # its head: it is under way
        wait_until(lambda: len(cluster.connections(listener="sf")) == 2)
        cluster.send_signal("r1", signal.SIGTERM)
        wait_until(lambda: refuses(cluster.sf))
        assert first_difference(answer.read(), 100000) is None
        idle.sock.settimeout(patience(10))
        idle.sock.suppress_ragged_eofs = False  # an end without close_notify is an error
        assert idle.sock.recv(1) == b""
    assert cluster.wait_gone("r1") == 0
    # Agents serve on, by themselves.
    for where in cluster.direct.values():
        with contextlib.closing(cluster.http(where)) as web:
            web.request("GET", "/5")
            assert web.getresponse().status == 200


def refuses(where):
    try:
        socket.create_connection(where, patience(5)).close()
        return False
    except ConnectionRefusedError:
        return True


@pytest.mark.parametrize("mode", ["sf", "sl"])
def test_an_agent_that_leaves_gets_nothing_new_and_finishes_what_it_has(start_cluster, mode):
    cluster = start_cluster("--agents", "2")
    where = getattr(cluster, mode)
    with contextlib.closing(cluster.http(where)) as slow:
        slow.request("GET", "/slow?bytes=100000&ms=800")
        connection = wait_until(lambda: cluster.connection_of(slow.sock))
        owner = wait_until(lambda: cluster.connection(connection["id"])["owner"])
        cluster.send_signal(owner, signal.SIGTERM)
        wait_until(lambda: next(a for a in cluster.status()["agents"] if a["name"] == owner)["state"] != "ready")
        for _ in range(10):
            with contextlib.closing(cluster.http(where)) as web:
                web.request("GET", "/5")
                answer = web.getresponse()
                assert len(answer.read()) == 5 and answer.headers["X-CSSL-Agent"] != owner
        assert first_difference(slow.getresponse().read(), 100000) is None
    assert cluster.wait_gone(owner) == 0


def test_direct_clients_of_an_agent_that_leaves_get_their_answers_and_a_goodbye(start_cluster):
    cluster = start_cluster("--agents", "2")
    where = cluster.direct["a1"]
    with contextlib.closing(cluster.http(where)) as slow, contextlib.closing(cluster.http(where)) as idle:
        slow.request("GET", "/slow?bytes=100000&ms=800")
        idle.request("GET", "/5")
        assert len(idle.getresponse().read()) == 5
        cluster.send_signal("a1", signal.SIGTERM)
        idle.sock.settimeout(patience(5))
        idle.sock.suppress_ragged_eofs = False  # an end without close_notify is an error
        assert idle.sock.recv(1) == b""
        wait_until(lambda: refuses(where))
        assert first_difference(slow.getresponse().read(), 100000) is None
    assert cluster.wait_gone("a1") == 0
