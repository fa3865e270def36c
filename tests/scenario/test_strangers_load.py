"""Many strangers at a time that try to use everything up: half-open handshakes, requests byte by byte, KeyUpdates without end.
Other clients are served as usual, and no process takes more memory than --check says. A tenth of them in normal runs, all of
them with ./cssl test --full."""

import contextlib
import os
import re
import resource
import subprocess
import time

import pytest

from tests.lib import edits
from tests.lib.build import FULL, SANITIZED, binary, patience, scaled, sized
from tests.lib.half_open import HalfOpen
from tests.lib.tlsload import Load, check_unharmed, lost, refused
from tests.lib.waiting import wait_until
from tests.scenario.test_strangers import resident

# Each takes a descriptor of RAgent, of the backend and of the client's side.
STRANGERS = min(sized(2000, 20000), resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 2000)
UPDATING = sized(100, 1000)
PER_S = 500
FLOOR_US = 4000 if FULL else 25000  # other work of this machine shows up to here
SOURCES = [f"127.0.{net}.{host}" for net in (3, 4) for host in range(1, 201)]
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=edits.edits(
        edits.at_end(f"limits: {{ connections: {STRANGERS + 2000}, kept: 64MiB, request_head_timeout: 15s, idle_timeout: 2min }}",
                     "store: { size: 32MiB }"), edits.nobody_moves))


@pytest.fixture(scope="module")
def bounds(cluster):
    """{"r1": bytes, "a1": bytes, ...}: the most memory of each process according to --check."""
    said = subprocess.run([binary("sslagent/sslagent"), "--config", cluster.dir / "cluster.yaml", "--check"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    found = {name: int(number) * UNITS[unit] for name, number, unit in
             re.findall(r"memory of (?:each )?(ragent r1|agent from a1 to a2): at most (\d+)(\w+)", said)}
    return {"r1": found["ragent r1"], "a1": found["agent from a1 to a2"], "a2": found["agent from a1 to a2"]}


@contextlib.contextmanager
def elsewhere():
    """Processes within use only processor time that no other process wants, as if the strangers had machines of their own."""
    before = os.sched_getscheduler(0)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))


class Served:
    """Clients that ask all the while, over connections that stay and over new ones."""

    def __init__(self, load, name):
        self._load, self._names = load, [f"{name} stays", f"{name} new"]
        load.add(self._names[0], count=20, path="/1k", every_ms=20, timeout_ms=patience(20) * 1000)
        load.add(self._names[1], count=5, path="/1k", every_ms=100, times=1, again="always", timeout_ms=patience(20) * 1000)

    def end(self):
        """The 99th percentile of the answers' times in us, when all was well."""
        reports = [self._load.stop(name) for name in self._names]
        for report in reports:
            check_unharmed(report)
        return reports[0]["latency_us"]["p99"]


def quiet(load):
    served = Served(load, "quiet")
    time.sleep(scaled(4))
    return served.end()


def watch(cluster, bounds, seconds):
    """How much each process had at most during that time; never more than its bound."""
    most, end = {name: 0 for name in bounds}, time.monotonic() + seconds
    while time.monotonic() < end:
        for name in bounds:
            most[name] = max(most[name], resident(cluster, name))
        time.sleep(0.1)
    if not SANITIZED:
        assert all(most[name] < bounds[name] for name in bounds), (most, bounds)
    return {name: f"{most[name] >> 20} of {bounds[name] >> 20} MiB" for name in bounds}


def judge(record_property, what, before_us, during_us, most):
    memory = ", ".join(f"{name} {text}" for name, text in most.items())
    record_property("figure", f"{what}: p99 {during_us} us, quiet {before_us} us; memory {memory}")
    assert during_us < 2 * max(before_us, patience(FLOOR_US)), (before_us, during_us)


def test_half_open_handshakes(cluster, bounds, record_property):
    with Load(cluster) as load:
        before = quiet(load)
        served = Served(load, "amid")
        with elsewhere(), HalfOpen(cluster.sf, STRANGERS, SOURCES, at_once=50, per_s=PER_S) as flood:
            most = watch(cluster, bounds, scaled(3))
            during = served.end()
            ended, under_way = flood.refused(), cluster.counters()["ragent"]["handshakes_under_way"]
    if not SANITIZED:
        assert ended + under_way >= STRANGERS - 5 and under_way <= 1024, (ended, under_way)
    judge(record_property, f"{STRANGERS} half-open handshakes, {ended} refused", before, during, most)


def test_requests_that_come_byte_by_byte(cluster, bounds, record_property):
    late = cluster.counter("request_heads_late")
    with elsewhere():
        strangers = Load(cluster)
    with Load(cluster) as load, strangers:
        before = quiet(load)
        slow = strangers.start_add("slow", count=STRANGERS, path="/1k", head_every_ms=1000, timeout_ms=patience(120) * 1000, sources=250)
        strangers.finish(slow)
        served = Served(load, "amid")
        most = watch(cluster, bounds, scaled(5))
        during = served.end()
        wait_until(lambda: cluster.counter("request_heads_late") - late == STRANGERS, patience(60))
        report = strangers.stop("slow")
    assert not lost(report) or set(lost(report)) <= {"refused idle", "close_notify idle"}, report
    assert set(refused(report)) == {"408"}, report
    judge(record_property, f"{STRANGERS} requests byte by byte", before, during, most)


def test_key_updates_without_end(cluster, bounds, record_property):
    """A connection that makes more than it may ends; and none of the KeyUpdates is broadcast."""
    def sent():
        return {name: cluster.counters()[name]["datagrams_sent"] for name in cluster.agents}
    with Load(cluster) as load, Load(cluster) as strangers:
        before = quiet(load)
        strangers.add("updating", count=UPDATING, version="1.3", run="waits", keys_every_ms=32, at_once=UPDATING)
        begun, datagrams, received = time.monotonic(), sent(), cluster.counter("key_updates_received")
        served = Served(load, "amid")
        most = watch(cluster, bounds, scaled(3))
        during = served.end()
        new_connections, after = load.report()["amid new"]["connected"], sent()
        seconds = time.monotonic() - begun
        # On a busy machine the last of them come to their limit after the others' answers.
        wait_until(lambda: sum(lost(strangers.report()["updating"]).values()) >= UPDATING, patience(60))
        report, all_seconds = strangers.report()["updating"], time.monotonic() - begun
    assert lost(report) == {"alert idle": UPDATING}, report
    assert cluster.counter("key_updates_received") - received <= (10 + all_seconds) * UPDATING
    for name, count in after.items():
        per_s = (count - datagrams[name]) / seconds
        # the heartbeats, and a few for each connection that came and went
        assert per_s < 40 + 8 * new_connections / seconds, (name, per_s, new_connections)
    judge(record_property, f"{UPDATING} connections at 31 KeyUpdates a second", before, during, most)


def test_key_updates_at_the_rate_that_is_allowed_reach_no_peer(cluster):
    """However long they go on."""
    with Load(cluster) as load:
        load.add("updating", count=UPDATING, version="1.3", run="waits", keys_every_ms=1050)
        time.sleep(1)  # what the handshakes had to tell
        before, received = {n: cluster.counters()[n]["objects_sent"] for n in cluster.agents}, cluster.counter("key_updates_received")
        wait_until(lambda: cluster.counter("key_updates_received") - received >= 4 * UPDATING, patience(20))
        after = {n: cluster.counters()[n]["objects_sent"] for n in cluster.agents}
        report = load.report()["updating"]
    assert not lost(report), report
    assert sum(after.values()) - sum(before.values()) < UPDATING / 10, (before, after)
