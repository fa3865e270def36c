"""RAgent proper dies or hangs at a named point of its work. Each of its workers may lose the one connection that it was changing; all
others go on, whatever they do."""

import os
import signal

import pytest

from tests.lib import edits
from tests.lib.build import SANITIZED, patience
from tests.lib.processes import has_stopped
from tests.lib.tlsload import Load, check_honest, lost
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.limit(180), pytest.mark.usefixtures("test_points")]

CRASH = signal.SIGABRT if SANITIZED else signal.SIGSEGV # of which a sanitizer makes a report
BUSY = {"keep": {"count": 8}, "slow": {"count": 8, "every_ms": 10, "path": "/64k"}, "new": {"count": 4, "every_ms": 20, "times": 1},
        "down": {"count": 4, "path": "/4m", "rate": 4 << 20}, "up": {"count": 4, "method": "POST", "path": "/sha256", "body": 1 << 20}}


class Clients:
    """Of all kinds."""

    def __init__(self, load):
        self._load = load
        load.add("idle", count=40, run="waits")
        load.ask("idle")
        for name, settings in BUSY.items():
            load.add(name, again="always", **settings)

    def harmed(self):
        """What they lost until now, and what they do ends."""
        reports = {name: check_honest(self._load.stop(name)) for name in BUSY}
        reports["idle"] = check_honest(self._load.ask("idle"))
        return {name: lost(report) for name, report in reports.items() if lost(report)}


def count(harmed):
    return sum(sum(of_group.values()) for of_group in harmed.values())


@pytest.mark.parametrize("signum", sorted({signal.SIGSTOP, signal.SIGABRT, CRASH}), ids=lambda s: s.name)
@pytest.mark.parametrize("point", ["records.came", "records.committed", "slot.saving"])
def test_a_hang_or_crash_in_the_middle_of_an_event(start_cluster, point, signum):
    """All threads stop while one is at the named point. Then the keeper finds that nothing moves, or a signal comes."""
    cluster = start_cluster("--agents", "2", "--workers", "2", takeover=True,
                            edit=lambda text: text.replace("    workers: 2\n", "    workers: 2\n    hang: 3s\n", 1))
    with Load(cluster) as load:
        clients, pid = Clients(load), cluster.pid("r1")
        cluster.faults(f"{point} stop on r1 after 200 times 1")
        wait_until(lambda: has_stopped(pid), patience(20), "all threads stand")
        cluster.clear_faults() # the next process reads no rule
        if signum != signal.SIGSTOP:
            os.kill(pid, signum)
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: "running again" in cluster.log("r1"), patience(20), "the next RAgent")
        harmed = clients.harmed()
    assert count(harmed) <= 2, harmed
    cause = "hung" if signum == signal.SIGSTOP else "crashed"
    assert cluster.status()["deaths"] == {"killed": 0, "crashed": 0, "hung": 0, cause: 1}


POINTS = ("records.read", "records.came", "records.received", "records.committed", "slot.saving", "slot.saved", "slot.kept", "client.write",
          "link.write", "ssl_id.written", "client.accepted", "epoch.raise", "note.set")
RARE = ("ssl_id.written", "epoch.raise", "note.set")
LINKS = {"memory": ((), lambda text: text), "sealed TCP": (("--link", "sealed"), edits.over_tcp)}


@pytest.mark.parametrize("point,link", [(point, list(LINKS)[n % 2]) for n, point in enumerate(POINTS)])
def test_a_death_at_a_named_point(start_cluster, point, link):
    options, edit = LINKS[link]
    cluster, deaths = start_cluster("--agents", "2", *options, takeover=True, edit=edit), 2
    with Load(cluster) as load:
        clients = Clients(load)
        for n in range(deaths):
            cluster.faults(f"{point} kill on r1 after {20 if point in RARE else 200} times 1")
            wait_until(lambda n=n: cluster.log("r1").count("ragent died") > n, patience(20), "a death")
            cluster.clear_faults()
            cluster.settle_faults()
            wait_until(lambda n=n: cluster.log("r1").count("running again") > n, patience(20), "the next RAgent")
        harmed = clients.harmed()
    assert count(harmed) <= deaths, harmed


@pytest.mark.parametrize("point,link", [("slot.restoring", "memory"), ("slot.next", "memory"), ("slot.restoring", "sealed TCP")])
def test_a_death_while_it_restores(start_cluster, point, link):
    """It stands still with some connections restored, and is killed there."""
    options, edit = LINKS[link]
    cluster = start_cluster("--agents", "2", *options, takeover=True, edit=edit)
    with Load(cluster) as load:
        clients, keeper, first = Clients(load), cluster.keeper_pid(), cluster.pid("r1")
        cluster.faults(f"{point} stop on r1 after 20")
        cluster.settle_faults()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: cluster.pid("r1") not in (keeper, first) and has_stopped(cluster.pid("r1")), patience(20), "it restores")
        cluster.clear_faults() # the next process reads no rule
        os.kill(cluster.pid("r1"), signal.SIGKILL)
        wait_until(lambda: "running again" in cluster.log("r1"), patience(20), "the next RAgent")
        harmed = clients.harmed()
    assert count(harmed) <= 2, harmed
    assert cluster.status()["at_deaths"]["given_up"] == 0
