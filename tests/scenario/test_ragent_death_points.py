"""RAgent proper dies or hangs at a named point of its work. Killed, it loses nothing. After a crash or a hang each of its workers may
lose the one connection that it was changing, which may be what it crashed of; all others go on, whatever they do. At which of the times
that it comes there is chance, which CSSL_SEED repeats."""

import os
import signal

import pytest

from tests.lib import edits
from tests.lib.build import FULL, SANITIZED, patience, scaled, sized
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


LINKS = {"memory": ((), lambda text: text), "sealed TCP": (("--link", "sealed"), edits.over_tcp)}
RARE = ("ssl_id.written", "epoch.raise", "note.set")


def passes(dice, point):
    """So many connections come by before the one that is harmed. With few, the next processes would die there, too, before they have
    restored all: then one of them restores nothing."""
    return dice.randint(*((5, 20) if point in RARE else (150, 450)))


def serves(cluster):
    """The last process that began has restored all connections."""
    log = cluster.log("r1")
    return log.rfind("running again") > log.rfind("ragent died")


@pytest.mark.parametrize("signum", sorted({signal.SIGSTOP, signal.SIGABRT, CRASH}), ids=lambda s: s.name)
@pytest.mark.parametrize("point", ["records.came", "records.committed", "slot.saving"])
@pytest.mark.parametrize("link", LINKS if FULL else ["memory"])
def test_a_hang_or_crash_in_the_middle_of_an_event(start_cluster, dice, point, link, signum):
    """All threads stop while one is at the named point. Then the keeper finds that nothing moves, or a signal comes."""
    options, edit = LINKS[link]
    cluster = start_cluster("--agents", "2", "--workers", "2", *options, takeover=True,
                            edit=lambda text: edit(edits.below("r1", "hang: 3s")(text)))
    with Load(cluster) as load:
        clients, pid = Clients(load), cluster.pid("r1")
        cluster.faults(f"{point} stop on r1 after {passes(dice, point)} times 1")
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


POINTS = ("records.read", "records.came", "records.received", "records.committed", "slot.saving", "slot.saved", "slot.kept", "slot.telling",
          "client.write", "link.write", "ssl_id.written", "client.accepted", "epoch.raise", "note.set")


def kill_at(cluster, point, passed):
    deaths = cluster.log("r1").count("ragent died") # the process after a death may come to that point, too
    cluster.faults(f"{point} kill on r1 after {passed} times 1")
    wait_until(lambda: cluster.log("r1").count("ragent died") > deaths, patience(20), "a death")
    cluster.clear_faults()
    cluster.settle_faults()
    wait_until(lambda: serves(cluster), patience(20), "the next RAgent")


@pytest.mark.parametrize("point,link", [(point, link) for n, point in enumerate(POINTS) for link in (LINKS if FULL else [list(LINKS)[n % 2]])])
def test_a_death_at_a_named_point(kept_cluster, dice, point, link):
    options, edit = LINKS[link]
    cluster = kept_cluster("--agents", "2", *options, takeover=True, edit=edit)
    with Load(cluster) as load:
        clients = Clients(load)
        for _ in range(scaled(2)):
            kill_at(cluster, point, passes(dice, point))
        harmed = clients.harmed()
    assert not harmed


@pytest.mark.parametrize("point,link", [(point, list(LINKS)[n % 2]) for n, point in enumerate(
    ("client.accepted", "records.came", "records.received", "slot.saving", "slot.saved", "slot.telling", "link.write", "ssl_id.written"))])
def test_a_death_amid_a_handshake(kept_cluster, dice, point, link):
    """Nearly every event is a step of a handshake, or of the way to the agent of the client's address."""
    options, edit = LINKS[link]
    cluster = kept_cluster("--agents", "3", *options, takeover=True, edit=edit)
    with Load(cluster) as load:
        load.add("new", count=8, again="always", every_ms=1, times=1)
        for _ in range(sized(8, 40)):
            kill_at(cluster, point, dice.randint(*((5, 20) if point in RARE else (40, 120))))
        harmed = lost(check_honest(load.stop("new")))
    assert not harmed


@pytest.mark.parametrize("link", LINKS)
def test_an_adoption_that_its_agent_did_not_hear_of_is_asked_for_again(start_cluster, dice, link):
    """Where the loss of an owner costs the connection: with service tcp. RAgent has saved the next ownership, and SSL_ID has not left."""
    options, edit = LINKS[link]
    cluster, repeated = start_cluster("--agents", "3", *options, takeover=True, edit=lambda text: edit(text).replace("service: http", "service: tcp")), 0
    with Load(cluster) as load:
        load.add("new", count=8, again="always", every_ms=1, times=1)
        for _ in range(sized(4, 20)):
            kill_at(cluster, "ssl_id.written", dice.randint(5, 20))
            wait_until(lambda: "reattaching" not in {c["state"] for c in cluster.connections()}, patience(20), "all owners have answered")
            repeated += cluster.counters()["ragent"]["adopts_repeated"]
        harmed = lost(check_honest(load.stop("new")))
    assert not harmed and repeated


@pytest.mark.parametrize("point,link", [("slot.restoring", "memory"), ("slot.next", "memory"), ("slot.restoring", "sealed TCP"),
                                       *([("slot.next", "sealed TCP")] if FULL else [])])
def test_a_death_while_it_restores(start_cluster, dice, point, link):
    """It stands still with some connections restored, and is killed there."""
    options, edit = LINKS[link]
    cluster = start_cluster("--agents", "2", *options, takeover=True, edit=edit)
    with Load(cluster) as load:
        clients, keeper, first = Clients(load), cluster.keeper_pid(), cluster.pid("r1")
        cluster.faults(f"{point} stop on r1 after {dice.randint(1, 40)}")
        cluster.settle_faults()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: cluster.pid("r1") not in (keeper, first) and has_stopped(cluster.pid("r1")), patience(20), "it restores")
        cluster.clear_faults() # the next process reads no rule
        os.kill(cluster.pid("r1"), signal.SIGKILL)
        wait_until(lambda: "running again" in cluster.log("r1"), patience(20), "the next RAgent")
        harmed = clients.harmed()
    assert count(harmed) <= 2, harmed
    assert cluster.status()["at_deaths"]["given_up"] == 0
