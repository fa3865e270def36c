"""RAgent shows of each agent, besides its load, the release it runs and how far its clock is from RAgent's."""

import re

import pytest

from tests.lib.build import ROOT, patience
from tests.lib.csslctl import csslctl
from tests.lib.waiting import wait_until

HOUR_MS = 3600 * 1000


@pytest.fixture
def cluster(start_cluster, test_points):
    return start_cluster("--agents", "3", faults=["clock offset 3600 on a2", "clock offset -3600 on a3"])


def told(cluster):
    agents = {a["name"]: a for a in cluster.control("GET", "/v1/agents")["agents"]}
    return agents if all(a["clock_offset_ms"] is not None for a in agents.values()) else None


def test_the_release_of_each_agent_is_told(cluster):
    release = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
    agents = wait_until(lambda: told(cluster), patience(10), "the words of all agents")
    assert {a["version"] for a in agents.values()} == {release}
    assert {row["VERSION"] for row in csslctl("--dir", cluster.dir, "agents").table("AGENT")} == {release}
    assert csslctl("--dir", cluster.dir, "agent", "a1").facts["version"] == release


def test_the_offset_of_each_clock_is_told_while_its_agent_is_there(cluster):
    agents = wait_until(lambda: told(cluster), patience(10), "the words of all agents")
    late = patience(2) * 1000  # the way of a word, on a machine with much other work
    for name, offset in (("a1", 0), ("a2", HOUR_MS), ("a3", -HOUR_MS)):
        assert offset - late <= agents[name]["clock_offset_ms"] <= offset + 1, agents[name]
    assert csslctl("--dir", cluster.dir, "agent", "a3").facts["clock"] == "-1h"
    cluster.kill("a3")
    wait_until(lambda: cluster.agent("a3")["state"] == "lost", patience(10))
    assert cluster.agent("a3")["clock_offset_ms"] is None
    assert csslctl("--dir", cluster.dir, "agent", "a3").facts["clock"] == "-"
    cluster.restart("a3")
    wait_until(lambda: (cluster.agent("a3")["clock_offset_ms"] or 0) < -HOUR_MS // 2, patience(10), "the clock of a3")
