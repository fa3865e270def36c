"""Drains and their withdrawals one upon the other, at random, while clients of every kind work; and uploads amid SIGTERMs."""

import pytest

from tests.lib.build import FULL, patience, sized
from tests.lib.tlsload import check_unharmed, say
from tests.lib.trouble import Executions, restart_in_order
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.limit(400 if FULL else 60)]


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3")


@pytest.fixture
def busy(load):
    """Clients of every kind. Calling it checks that they lost nothing."""
    load.add("idle", count=sized(500, 5000), run="waits")
    load.ask("idle")
    load.add("get", count=16, every_ms=10)
    load.add("big", count=4, path="/1m", every_ms=100)
    load.add("slow", count=8, path="/slow?bytes=60000&ms=300", size=60000)
    load.add("new", count=8, every_ms=30, times=1, again="always")
    load.add("resuming", count=8, every_ms=30, times=1, again="always", resume=1)

    def check():
        for name in ("get", "big", "slow", "new", "resuming"):
            report = check_unharmed(load.stop(name))
            print(f"{name}: {report['answers']} answers, the latest after {report['latency_us']['max'] / 1000} ms")
        check_unharmed(load.ask("idle"))
    return check


def test_uploads_go_through_agents_that_end(cluster, load, tmp_path):
    size, count, ids = sized(2 << 20, 20 << 20), sized(10, 20), tmp_path / "ids"
    load.add("up", count=count, method="POST", path="/sha256", id="up", ids=ids, body=size, rate=size // (10 if FULL else 4), times=1)
    for restarted, name in enumerate(cluster.agents):
        wait_until(lambda tenths=restarted + 1: load.report()["up"]["bytes_out"] > tenths * count * size // 10, patience(30))
        restart_in_order(cluster, name)  # on a busy machine that may take longer than the uploads
    report = load.stop("up")
    assert report["answers"] == count and set(report["ends"]) == {"ours"}, say(report)
    executions = Executions(cluster, ids).check()
    assert sorted(executions.executed.values()) == [1] * count


def test_drains_one_upon_the_other_at_random(cluster, load, busy, dice):
    """Also while the one before is still under way; one agent stays."""
    leaving = set()
    for _ in range(40 if FULL else 16):
        name = dice.choice(cluster.agents)
        if name in leaving:
            cluster.undrain(name)
            leaving.remove(name)
        elif len(leaving) < 2:
            cluster.drain(name)
            leaving.add(name)
        check_unharmed(load.ask("idle"))
    for name in leaving:
        cluster.undrain(name)
    busy()
