"""RAgent proper dies again and again while clients of all kinds are at work."""

import signal
from random import Random

import pytest

from tests.lib.build import FULL, SANITIZED, TEST_POINTS, patience, sized
from tests.lib.waiting import wait_until

CRASH = signal.SIGABRT if SANITIZED else signal.SIGSEGV # of which a sanitizer makes a report
AS_MEASURED = pytest.mark.alone if FULL else lambda test: test
LINKS = pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def wait_for_answers(load, more):
    answers = load.report()["keep"]["answers"]
    wait_until(lambda: load.report()["keep"]["answers"] > answers + more, patience(20), "load goes on")


@pytest.mark.limit(400)
@LINKS
def test_deaths_at_random_moments_under_load(start_cluster, request, options):
    """A life may be short. Every idle connection goes on. Some of the others are reset, but none gets a wrong byte or a forged end."""
    request.getfixturevalue("test_points") if not TEST_POINTS else None
    from tests.lib.tlsload import Load, check_honest, check_unharmed
    cluster, random = start_cluster("--agents", "3", *options, takeover=True), Random(15)
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
            cluster.kill_ragent((signal.SIGKILL, CRASH)[n % 2])
        ends = {name: check_honest(load.stop(name))["ends"] for name in busy}
        check_unharmed(load.ask("idle"))
        print(ends)
    assert sum(cluster.status()["deaths"].values()) == deaths


@AS_MEASURED
@pytest.mark.limit(1200)
@LINKS
def test_no_client_notices_many_deaths(start_cluster, request, record_property, options):
    """Idle connections, requests without pause, downloads, uploads and 20 handshakes a second: each connection goes on and each byte
    is right. A life serves for two seconds at least, so that the keeper follows it without a pause. Idle connections ask now
    and then, so that none meets its idle time-out."""
    request.getfixturevalue("test_points") if not TEST_POINTS else None
    from tests.lib.tlsload import Load, check_unharmed
    cluster, random, deaths, pauses = start_cluster("--agents", "3", *options, takeover=True), Random(15), sized(6, 100), []
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
            pauses.append(cluster.status()["at_deaths"]["last_pause_us"] / 1000)
            if n % 5 == 4:
                check_unharmed(load.ask("idle"))
        reports = {name: check_unharmed(load.stop(name)) for name in busy}
        check_unharmed(load.ask("idle"))
    clients_ms = {share: reports["keep"]["pause_us"][share] / 1000 for share in ("p50", "p99")}
    answers = ", ".join(f"{report['answers']} of {name}" for name, report in reports.items())
    figure = (f"{deaths} deaths; RAgent away for {percentile(pauses, 0.5):.0f} ms, p99 {percentile(pauses, 0.99):.0f}, at most "
              f"{max(pauses):.0f}; clients waited {clients_ms['p50']:.0f} ms, p99 {clients_ms['p99']:.0f}; answers: {answers}")
    print(figure)
    record_property("figure", figure)
    assert cluster.status()["deaths"] == {"killed": deaths, "crashed": 0, "hung": 0}
    assert cluster.status()["at_deaths"]["went_on"] >= deaths * sized(200, 2000)
    assert percentile(pauses, 0.99) <= patience(300)
    assert clients_ms["p99"] <= patience(300)
