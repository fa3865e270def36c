"""The lines of ended connections have a file of their own, apart from the events."""

import os
import signal
import subprocess

from tests.lib.build import binary, patience
from tests.lib.edits import at_end, edits, instead
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
