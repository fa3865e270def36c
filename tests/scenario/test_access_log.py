"""The lines of ended connections have a file of their own, apart from the events."""

import os
import re
import shlex
import signal
import ssl
import subprocess

import pytest

from tests.lib.build import binary, patience
from tests.lib.csslctl import csslctl
from tests.lib.edits import at_end, below, edits, instead, tls
from tests.lib.waiting import wait_until


def one_connection(cluster):
    """Its id, as soon as it has ended."""
    with cluster.connect() as sock:
        identity = wait_until(lambda: cluster.connection_of(sock), patience(10))["id"]
    wait_until(lambda: not cluster.connections(listener="sf"), patience(10), "its end")
    return identity


def test_lines_of_ended_connections_are_apart_from_events(start_cluster):
    cluster = start_cluster("--agents", "1")
    identity = one_connection(cluster)
    wait_until(lambda: f"connection {identity}: ended reason=" in cluster.log("access"), patience(5))
    assert ": ended " not in cluster.log("r1") and "link up" in cluster.log("r1")
    assert "link up" not in cluster.log("access")


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    """RAgent and the agent's own listener have an access log, and ask for client certificates."""
    cluster = start_module_cluster("--agents", "1", edit=edits(
        below("a1", "access_log: direct.log"), tls("client_ca: ecdsa-ca.pem", "client_certificate: optional")))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/O=x y/CN=mallory", "-keyout", cluster.dir / "mallory.key", "-out", cluster.dir / "mallory.pem"],
                   check=True, stderr=subprocess.DEVNULL)
    return cluster


def places(cluster):
    """Where clients connect, and the log of each."""
    return [(cluster.sl, "access"), (cluster.direct["a1"], "direct")]


def ended(cluster, log):
    """The fields of all lines, in their order."""
    return [dict(field.split("=", 1) for field in shlex.split(line.partition(": ended ")[2]))
            for line in cluster.log(log).splitlines() if ": ended " in line]


def next_line(cluster, log, begin):
    """The fields of the first line behind those that there were."""
    return wait_until(lambda: (lines := ended(cluster, log)[begin:]) and lines[0], patience(10), "a line in the access log")


def test_a_line_tells_name_protocol_and_fingerprint_of_its_client(cluster):
    seen = []
    for where, log in places(cluster):
        begin = len(ended(cluster, log))
        with cluster.connect(where) as sock:
            client = "{}:{}".format(*sock.getsockname())
        fields = next_line(cluster, log, begin)
        assert fields["client"] == client and fields["listener"] == "sl" and fields["cause"] == ""
        assert fields["server_name"] == "localhost" and fields["alpn"] == "http/1.1" and fields["version"] == "0304"
        assert re.fullmatch("t13d[0-9]{4}h1_[0-9a-f]{12}_[0-9a-f]{12}", fields["ja4"])
        seen.append(fields["ja4"])
    assert len(set(seen)) == 1


@pytest.mark.parametrize("what,cause", [
    ("protocol", "no application protocol"),
    ("certificate", "client certificate refused: self.signed certificate"),
])
def test_a_line_tells_why_a_handshake_failed(cluster, what, cause):
    """The fingerprint is of the same kind, whether the agent made it or RAgent."""
    for where, log in places(cluster):
        begin = len(ended(cluster, log))
        context = cluster.context("1.3", alpn=("gopher",) if what == "protocol" else ("http/1.1",))
        if what == "certificate":
            context.load_cert_chain(cluster.dir / "mallory.pem", cluster.dir / "mallory.key")
        with pytest.raises((ssl.SSLError, ConnectionError)), cluster.connect(where, context) as sock:
            assert sock.recv(1)
        fields = next_line(cluster, log, begin)
        assert fields["reason"] == "handshake failed" and re.fullmatch(cause, fields["cause"])
        assert fields["server_name"] == "localhost" and fields["alpn"] == ""
        assert "mallory" not in cluster.log(log)  # RAgent does not learn it in TLS 1.3
        assert re.fullmatch(f"t13d[0-9]{{4}}{'gr' if what == 'protocol' else 'h1'}_[0-9a-f]{{12}}_[0-9a-f]{{12}}", fields["ja4"])


def test_an_agent_tells_whose_certificate_is_refused(cluster):
    context = cluster.context()
    context.load_cert_chain(cluster.dir / "mallory.pem", cluster.dir / "mallory.key")
    with pytest.raises((ssl.SSLError, ConnectionError)), cluster.connect(cluster.sl, context) as sock:
        assert sock.recv(1)
    pattern = r'client certificate refused cause="self.signed certificate" subject="CN=mallory,O=x y"'
    wait_until(lambda: re.search(pattern, cluster.log("a1")), patience(5))


def test_no_line_is_left_out(cluster):
    for where, log in places(cluster):
        begin = len(ended(cluster, log))
        for _ in range(30):
            cluster.connect(where).close()
        wait_until(lambda: len(ended(cluster, log)) == begin + 30, patience(10), "all lines")  # noqa: B023
        assert "left_out" not in cluster.log(log)


def test_they_are_written_whatever_the_level_of_events(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits(at_end("log: { level: error }")))
    identity = one_connection(cluster)
    wait_until(lambda: identity in cluster.log("access"), patience(5))


def test_without_a_file_they_are_among_the_events(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits(instead("    access_log: access.log\n", "")))
    identity = one_connection(cluster)
    wait_until(lambda: f"connection {identity}: ended reason=" in cluster.log("r1"), patience(5))


def test_the_file_is_rotated_by_opening_it_again(start_cluster):
    """RAgent's user, who is not root, opens its file again, and makes a new one where permissions allow that."""
    cluster = start_cluster("--agents", "1", edit=edits(instead("access_log: access.log", "access_log: ragent/access.log")))
    log = cluster.dir / "ragent" / "access.log"
    cluster.send_signal("r1", signal.SIGHUP)
    wait_until(lambda: "r1: reloaded" in cluster.log("r1"), patience(5))
    first = one_connection(cluster)
    wait_until(lambda: first in log.read_text(), patience(5))
    log.rename(log.with_suffix(".1"))
    cluster.send_signal("r1", signal.SIGHUP)
    wait_until(log.exists, patience(5))
    second = one_connection(cluster)
    wait_until(lambda: second in log.read_text(), patience(5))
    assert second not in log.with_suffix(".1").read_text()
    assert log.stat().st_uid == (cluster.dir / "ragent").stat().st_uid
    cluster.replace()
    third = one_connection(cluster)
    wait_until(lambda: third in log.read_text(), patience(5))
    assert log.stat().st_uid == os.stat(log.with_suffix(".1")).st_uid


def test_a_folder_that_is_not_there_is_told_by_key(start_cluster):
    cluster = start_cluster("--agents", "1")
    config = cluster.dir / "wrong.yaml"
    config.write_text((cluster.dir / "cluster.yaml").read_text().replace("access_log: access.log", "access_log: nowhere/access.log"))
    run = subprocess.run([binary("ragent/ragent"), "--config", config, "--check"], text=True, check=False, stderr=subprocess.PIPE)
    assert run.returncode != 0 and "access_log" in run.stderr
