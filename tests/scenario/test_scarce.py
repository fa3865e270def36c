"""A process that gets no more descriptors or memory ends no existing connection for that, does not crash, and takes new clients
soon after it gets more again."""

import contextlib

import pytest

from tests.lib import trouble
from tests.lib.build import SLOWER, patience, scaled
from tests.lib.tlsload import check_unharmed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(90)

RECOVERS_WITHIN_S = 5
# Of one of the crowd. Those that are not taken all wait it out, 32 at a time, and none has to come through: no patience here.
CROWD_GIVES_UP_MS = 1000 * SLOWER


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3")


def arrives(cluster):
    """A new client shakes hands and is answered."""
    with contextlib.suppress(OSError), contextlib.closing(cluster.http()) as web:
        web.request("GET", "/5")
        return web.getresponse().status == 200
    return False


def outlive(cluster, load, who, limited):
    pid = cluster.pid(who)
    load.add("idle", count=scaled(200), run="waits")
    load.ask("idle")
    with limited:
        load.add("crowd", count=scaled(400), run="waits", timeout_ms=CROWD_GIVES_UP_MS)
    wait_until(lambda: arrives(cluster), patience(RECOVERS_WITHIN_S), "a new client that is answered")
    check_unharmed(load.ask("idle"))
    assert cluster.pid(who) == pid and not (cluster.dir / f"{who}.exit").exists()
    trouble.wait_consistent(cluster)


@pytest.mark.parametrize("who", ["a1", "r1"])
def test_without_descriptors(cluster, load, who):
    outlive(cluster, load, who, trouble.descriptors_limited(cluster, who, 5))


@pytest.mark.plain  # sanitizers end a process that gets no memory
@pytest.mark.parametrize("who", ["a1", "r1"])
def test_without_memory(cluster, load, who):
    outlive(cluster, load, who, trouble.memory_limited(cluster, who, 256 << 10))
