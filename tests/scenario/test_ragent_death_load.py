"""RAgent proper dies again and again while clients of all kinds are at work."""

import math
import re
import signal
from random import Random

import pytest

from tests.lib import edits
from tests.lib.build import FULL, SANITIZED, TEST_POINTS, patience, sized
from tests.lib.waiting import wait_until

CRASH = signal.SIGABRT if SANITIZED else signal.SIGSEGV # of which a sanitizer makes a report
DEATHS = (signal.SIGKILL, CRASH, signal.SIGABRT, *([signal.SIGSTOP] if FULL else [])) # stopped, it hangs: its keeper kills it
AS_MEASURED = pytest.mark.alone if FULL else lambda test: test
LINKS = pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])


PAUSE_MS = 300 # at most, for 99 of 100 clients. --full demands it, on a machine that does nothing else


def percentile(values, share):
    """The nearest rank: of 100 values, p99 is the last but one."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


PARTS = ("after", "begin", "sort", "restore")


def parts_of_deaths(cluster):
    """{part: [ms, one for each death]}, as RAgent logs them: how long it was away, and what took how much of that."""
    lines = re.findall("running again.*", cluster.log("r1"))
    return {part: [int(re.search(rf"\b{part}_us=(\d+)", line)[1]) / 1000 for line in lines] for part in PARTS}


def wait_for_answers(load, more):
    answers = load.report()["keep"]["answers"]
    wait_until(lambda: load.report()["keep"]["answers"] > answers + more, patience(20), "load goes on")


@pytest.mark.limit(400)
@LINKS
def test_deaths_at_random_moments_under_load(start_cluster, request, options):
    """A life may be short. Every idle connection goes on. Of the others, each death costs at most the one that each worker was changing.
    None gets a wrong byte or a forged end."""
    request.getfixturevalue("test_points") if not TEST_POINTS else None
    from tests.lib.tlsload import Load, check_honest, check_unharmed, lost
    hangs_soon = edits.below("r1", "hang: 1s") if FULL else None
    cluster, random = start_cluster("--agents", "3", *options, takeover=True, edit=hangs_soon), Random(15)
    deaths = sized(8, 30) # --full: the keeper pauses 5 s between lives that are as short
    with Load(cluster) as load:
        load.add("idle", count=sized(100, 2000), run="waits")
        load.ask("idle")
        busy = {"keep": {"count": 16}, "slow": {"count": 16, "every_ms": 10, "path": "/64k"}, "new": {"count": 8, "every_ms": 20, "times": 1},
                "down": {"count": 4, "path": "/20m", "rate": 4 << 20}, "up": {"count": 4, "method": "POST", "path": "/sha256", "body": 4 << 20}}
        for name, settings in busy.items():
            load.add(name, again="always", **settings)
        for n in range(deaths):
            wait_for_answers(load, random.randrange(100, 400))
            cluster.kill_ragent(DEATHS[n % len(DEATHS)])
        harmed = {name: lost(check_honest(load.stop(name))) for name in busy}
        check_unharmed(load.ask("idle"))
        print("lost:", harmed)
    status = cluster.status()
    assert sum(status["deaths"].values()) == deaths
    assert sum(sum(of_group.values()) for of_group in harmed.values()) <= deaths * status["workers"], harmed


@AS_MEASURED
@pytest.mark.limit(1200)
@LINKS
def test_no_client_notices_many_deaths(start_cluster, request, record_property, options):
    """Idle connections, requests without pause, downloads, uploads and 20 handshakes a second: each connection goes on and each byte
    is right. A life serves for two seconds at least, so that the keeper follows it without a pause. Idle connections ask now
    and then, so that none meets its idle time-out.

    The pause is what clients notice: from the death to the next byte of an answer that they wait for. RAgent is away for longer, until
    its last connection is restored. Meanwhile it serves those that are restored already, so most clients go on before."""
    request.getfixturevalue("test_points") if not TEST_POINTS else None
    from tests.lib.tlsload import Load, check_unharmed
    cluster, random, deaths = start_cluster("--agents", "3", *options, takeover=True), Random(15), sized(6, 100)
    busy = {"keep": {"count": sized(20, 200)}, "new": {"count": 4, "every_ms": 200, "times": 1},
            "down": {"count": sized(5, 50), "path": "/8m", "rate": 1 << 20, "timeout_ms": patience(60) * 1000},
            "up": {"count": sized(5, 50), "method": "POST", "path": "/sha256", "body": 8 << 20, "rate": 1 << 20,
                   "timeout_ms": patience(60) * 1000}}
    with Load(cluster) as load:
        load.add("idle", count=sized(200, 2000), run="waits")
        load.ask("idle")
        for name, settings in busy.items():
            load.add(name, again="always", **settings)
        for n in range(deaths):
            wait_until(lambda: cluster.status()["uptime_s"] >= 2, patience(20), "two seconds of service")
            wait_for_answers(load, random.randrange(100, 1000))
            load.mark()
            cluster.kill_ragent()
            if n % 5 == 4:
                check_unharmed(load.ask("idle"))
        reports = {name: check_unharmed(load.stop(name)) for name in busy}
        check_unharmed(load.ask("idle"))
    pause_ms = {share: reports["keep"]["pause_us"][share] / 1000 for share in ("p50", "p99", "max")}
    parts = parts_of_deaths(cluster)
    away = parts["after"]
    answers = ", ".join(f"{report['answers']} of {name}" for name, report in reports.items())
    of_these = ", ".join(f"{part} {percentile(parts[part], 0.5):.0f}, p99 {percentile(parts[part], 0.99):.0f}" for part in PARTS[1:])
    figure = (f"{deaths} deaths; clients waited {pause_ms['p50']:.0f} ms, p99 {pause_ms['p99']:.0f}, at most {pause_ms['max']:.0f}; RAgent away for "
              f"{percentile(away, 0.5):.0f} ms, p99 {percentile(away, 0.99):.0f}, at most {max(away):.0f} ({of_these}); answers: {answers}")
    print(figure)
    record_property("figure", figure)
    assert cluster.status()["deaths"] == {"killed": deaths, "crashed": 0, "hung": 0} and len(away) == deaths
    assert cluster.status()["at_deaths"]["went_on"] >= deaths * sized(200, 2000)
    assert percentile(away, 0.99) <= patience(PAUSE_MS)
    assert pause_ms["p99"] <= (PAUSE_MS if FULL and not SANITIZED else patience(PAUSE_MS))
