"""Agents are drained, undrained and restarted in order while their clients are in the middle of everything: no connection is
closed and no request fails. A connection that cannot leave in time gets an alert. Short in normal runs, and long enough for a
proof with ./cssl test --full.

Short in every run, as long as it takes to believe it with ./cssl test --full."""

import contextlib

import pytest

from tests.lib import foreign_load
from tests.lib.build import FULL, patience, sized
from tests.lib.cluster import ControlError
from tests.lib.edits import edits, instead, nobody_moves
from tests.lib.foreign_load import ForeignLoad
from tests.lib.mover import Mover, settled
from tests.lib.probe import Probe
from tests.lib.tlsload import Load, check_honest, check_unharmed, say
from tests.lib.trouble import restart_in_order, wait_consistent
from tests.lib.upgrade_backend import ASK, UpgradeBackend
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(900 if FULL else 120)

UPLOADS, UPLOAD_LEN = 20, sized(4 << 20, 20 << 20)
ROUNDS = sized(3, 20)  # of restarts of all agents


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", edit=nobody_moves)


@pytest.fixture
def undrained(cluster):
    """The cluster, and afterwards every agent as before."""
    yield cluster
    for name in cluster.agents:
        if cluster.agent(name)["drain"]["state"] != "none":
            cluster.undrain(name)
    wait_consistent(cluster)


@pytest.fixture
def start_load():
    with contextlib.ExitStack() as loads:
        yield lambda cluster: loads.enter_context(Load(cluster))


def owned_by(cluster, name):
    return [c for c in cluster.connections(agent=name) if c["owner"] == name]


def busiest(cluster):
    return max(cluster.agents, key=lambda name: len(owned_by(cluster, name)))


def empty(cluster, name, **how):
    """Drains it and returns how that went; nothing of it is left."""
    began = cluster.drain(name, **how)
    assert began["drain"]["state"] in ("draining", "drained") and began["drain"]["reason"] == "operator"
    drain = cluster.wait_drained(name)
    assert drain["state"] == "drained" and drain["left"] == 0 and drain["ended"] == 0, drain
    assert owned_by(cluster, name) == []
    return drain


# Under load


def test_a_drain_under_load_closes_nothing(undrained, load):
    cluster = undrained
    load.add("idle", count=sized(900, 4900), run="waits")
    load.ask("idle")
    for name, path in (("small", "/1k"), ("large", "/1m"), ("slow", "/slow?bytes=20000&ms=400")):
        load.add(name, count=32, path=path, every_ms=20, **({"size": 20000} if name == "slow" else {}))
    load.add("new", count=4, every_ms=20, times=1, again="always")
    wait_until(lambda: load.report()["small"]["answers"] > 300 and load.report()["slow"]["answers"] > 64, patience(20))
    load.mark()
    victim = busiest(cluster)  # the four client addresses may all belong to one agent
    drain = empty(cluster, victim)
    assert drain["rested"] >= sized(900, 4900) // 6 and drain["moved"] > 0, drain
    wait_until(lambda: load.report()["small"]["answers"] > 600, patience(20))
    assert owned_by(cluster, victim) == []
    for name in ("small", "large", "slow", "new"):
        report = check_unharmed(load.stop(name))
        print(f"{name}: {report['answers']} answers, pause {report['pause_us']}")
    check_unharmed(load.ask("idle"))
    print(f"drained {drain['total']} connections in {drain['elapsed_ms']} ms: {drain['rested']} rested, {drain['moved']} moved,"
          f" longest pause {drain['longest_pause_us'] / 1000} ms,"
          f" mean {drain['summed_pause_us'] / max(1, drain['moved']) / 1000:.2f} ms")


@pytest.mark.parametrize("service", ["http", "tcp"])
def test_uploads_go_on_through_a_drain(start_cluster, start_load, service):
    cluster = start_cluster("--agents", "3", edit=instead("service: http", f"service: {service}"))
    load = start_load(cluster)
    load.add("up", count=UPLOADS, method="POST", path="/sha256", body=UPLOAD_LEN, rate=UPLOAD_LEN // 3, times=1)
    wait_until(lambda: load.report()["up"]["bytes_out"] > UPLOADS * UPLOAD_LEN // 8, patience(30))
    victim = busiest(cluster)
    before = len(owned_by(cluster, victim))
    drain = empty(cluster, victim)
    assert drain["moved"] >= before > 0, drain
    report = check_unharmed(load.stop("up"))
    assert report["answers"] >= UPLOADS, say(report)


# Conversations that nobody understands


@pytest.fixture(scope="module")
def upgrade_backend():
    with UpgradeBackend() as backend:
        yield backend


def converse(probe, text):
    probe("send", text=text)
    assert probe("read", bytes=len(text))["text"] == text


@pytest.fixture
def upgraded(request, start_cluster, upgrade_backend):
    """A connection that was HTTP and now uses another protocol."""
    how = {"edit": edits(lambda text: "".join(line for line in text.splitlines(True) if "peer_socket:" not in line))
           } if request.param == "between hosts" else {}
    cluster = start_cluster("--agents", "3", "--backend", upgrade_backend.address, **how)
    with Probe(cluster.sf) as probe:
        assert probe("handshake", sni="localhost", alpn="http/1.1")["done"]
        probe("send", text=ASK)
        assert "101 Switching" in probe("read", until="\r\n\r\n")["text"]
        converse(probe, "hello")
        yield cluster, probe


@pytest.mark.parametrize("upgraded", ["on one host"], indirect=True)
def test_an_upgraded_connection_goes_along_on_one_host(upgraded):
    cluster, probe = upgraded
    for _ in cluster.agents:
        victim = settled(cluster, probe)["owner"]
        drain = empty(cluster, victim)
        assert (drain["moved"], drain["rested"]) == (1, 0)
        converse(probe, f"after {victim} was drained")
        assert settled(cluster, probe)["owner"] != victim
        cluster.undrain(victim)


@pytest.mark.parametrize("upgraded", ["between hosts"], indirect=True)
def test_an_upgraded_connection_ends_with_an_alert_at_the_deadline_between_hosts(upgraded):
    cluster, probe = upgraded
    victim = settled(cluster, probe)["owner"]
    cluster.drain(victim, timeout_ms=2000)
    converse(probe, "while it is being drained")
    end = probe("end")
    assert (end["tls"], end["alert_name"]) == ("alert", "internal error"), end
    drain = cluster.wait_drained(victim)
    assert drain["state"] == "timed out" and drain["ended"] == 1 and drain["elapsed_ms"] >= 2000, drain
    assert cluster.counters()["ragent"]["ended_drain_timeout"] == 1


@pytest.mark.parametrize("upgraded", ["between hosts"], indirect=True)
def test_between_hosts_an_undrain_in_time_leaves_the_conversation(upgraded):
    cluster, probe = upgraded
    victim = settled(cluster, probe)["owner"]
    assert cluster.drain(victim, timeout_ms=patience(20) * 1000)["drain"]["total"] == 1
    converse(probe, "still here")
    assert cluster.undrain(victim)["drain"]["state"] == "none"
    converse(probe, "and here")
    assert settled(cluster, probe)["owner"] == victim


def test_between_hosts_requests_leave_at_their_checkpoint(start_cluster, start_load):
    cluster = start_cluster("--agents", "3", edit=lambda text: "".join(
        line for line in text.splitlines(True) if "peer_socket:" not in line))
    load = start_load(cluster)
    load.add("small", count=16, path="/1k", every_ms=5)
    load.add("slow", count=8, path="/slow?bytes=30000&ms=1500", size=30000)
    load.add("up", count=8, method="POST", path="/sha256", body=1 << 20, rate=1 << 20)
    wait_until(lambda: load.report()["small"]["answers"] > 200 and load.report()["up"]["bytes_out"] > 1 << 20, patience(20))
    for victim in cluster.agents:
        empty(cluster, victim)
        cluster.undrain(victim)
    for name in ("small", "slow", "up"):
        check_unharmed(load.stop(name))


# Losses amid a drain


@pytest.mark.parametrize("victim", ["a1", "a2"], ids=["the draining agent", "one that takes over"])
def test_an_agent_that_is_killed_amid_a_drain_costs_idle_connections_nothing(start_cluster, start_load, victim):
    cluster = start_cluster("--agents", "3")
    load = start_load(cluster)
    load.add("idle", count=sized(300, 2000), run="waits")
    load.ask("idle")
    load.add("busy", count=24, path="/64k", every_ms=5, again="lost")
    load.add("up", count=8, method="POST", path="/sha256", body=1 << 20, rate=1 << 20, again="lost")
    wait_until(lambda: load.report()["busy"]["answers"] > 200, patience(20))
    cluster.drain("a1")
    cluster.kill(victim)
    assert cluster.wait_drained("a1")["left"] == 0
    assert owned_by(cluster, "a1") == []
    cluster.restart(victim)
    check_unharmed(load.ask("idle"))
    for name in ("busy", "up"):
        check_honest(load.stop(name))
    cluster.undrain("a1")
    wait_consistent(cluster)
    check_unharmed(load.ask("idle"))


# What an operator sees


def test_a_drained_agent_gets_nothing_until_undrain(undrained):
    cluster = undrained
    empty(cluster, "a2")
    assert cluster.agent("a2")["state"] == "drained"
    made = cluster.counters()["a2"]["handshakes_full"]
    for _ in range(6):
        with Probe(cluster.sl) as probe:
            assert probe("handshake", sni="localhost", alpn="http/1.1")["done"]
            assert settled(cluster, probe)["owner"] != "a2"
    assert cluster.counters()["a2"]["handshakes_full"] == made
    cluster.undrain("a2")
    assert cluster.agent("a2")["state"] == "ready"

    def comes():
        with Probe(cluster.sl) as probe:
            probe("handshake", sni="localhost", alpn="http/1.1")
        return cluster.counters()["a2"]["handshakes_full"] > made
    wait_until(comes, patience(10), "a handshake at a2")


def test_a_drain_by_an_operator_outlasts_a_restart(undrained):
    cluster = undrained
    empty(cluster, "a3")
    restart_in_order(cluster, "a3")
    assert cluster.agent("a3")["drain"]["state"] == "drained"
    with Probe(cluster.sl) as probe:
        assert probe("handshake", sni="localhost", alpn="http/1.1")["done"]
        assert settled(cluster, probe)["owner"] != "a3"


def test_nobody_can_be_moved_to_a_draining_agent(undrained):
    cluster = undrained
    with Probe(cluster.sf) as probe:
        assert probe("handshake", sni="localhost", alpn="http/1.1")["done"]
        connection = settled(cluster, probe)
        target = next(name for name in cluster.agents if name != connection["owner"])
        empty(cluster, target)
        with pytest.raises(ControlError, match="503"):
            cluster.move(connection["id"], target)
        cluster.undrain(target)
        wait_until(lambda: cluster.agent(target)["state"] == "ready", patience(5))
        cluster.move(connection["id"], target)


def test_drains_of_unknown_or_idle_agents_are_refused(cluster):
    for call in (lambda: cluster.drain("nobody"), lambda: cluster.undrain("nobody"), lambda: cluster.agent("nobody"),
                 lambda: cluster.weigh("nobody", 2)):
        with pytest.raises(ControlError, match="404"):
            call()
    with pytest.raises(ControlError, match="409"):
        cluster.undrain("a1")


# SIGTERM


def test_an_agent_that_is_told_to_end_gives_all_away_first(start_cluster, start_load):
    cluster = start_cluster("--agents", "3")
    load = start_load(cluster)
    load.add("idle", count=60, run="waits")
    load.ask("idle")
    load.add("slow", count=24, path="/slow?bytes=20000&ms=700", size=20000)
    load.add("up", count=12, method="POST", path="/sha256", body=2 << 20, rate=2 << 20)
    wait_until(lambda: load.report()["up"]["bytes_out"] > 4 << 20, patience(20))
    for name in cluster.agents:
        restart_in_order(cluster, name)
        assert cluster.agent(name)["drain"]["state"] == "none"
    for name in ("slow", "up"):
        check_unharmed(load.stop(name))
    check_unharmed(load.ask("idle"))
    assert cluster.counters()["ragent"]["takeovers_adopted"] == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_rolling_restarts_under_load_fail_nothing(start_cluster, start_load, workers, record_property):
    cluster = start_cluster("--agents", "3", "--workers", workers)
    load = start_load(cluster)
    load.add("idle", count=sized(100, 1000), run="waits")
    load.ask("idle")
    load.add("small", count=24, path="/1k", every_ms=5)
    load.add("sl", count=8, path="/64k", every_ms=20, to=cluster.sl)
    load.add("post", count=8, method="POST", path="/sha256", body=200000, every_ms=20)
    load.add("new", count=4, every_ms=20, times=1, again="always", resume=1)
    for _ in range(ROUNDS):
        print(cluster.rolling())
        check_unharmed(load.ask("idle"))
    for name in ("small", "sl", "post", "new"):
        report = check_unharmed(load.stop(name))
        figure = f"{ROUNDS} rounds, {name}: {report['answers']} answers, 0 lost, the longest took {report['latency_us']['max'] / 1000:.0f} ms"
        print(figure)
        record_property("figure", figure)


@pytest.mark.tool(*foreign_load.TOOLS)
def test_load_generators_see_nothing_of_a_rolling_restart(start_cluster):
    cluster = start_cluster("--agents", "3")
    with ForeignLoad(cluster) as load:
        load.wait_connected()
        rounds = 0
        while load.runs():
            cluster.rolling()
            rounds += 1
        print(f"{rounds} rolling restarts; {load.check()}")


def test_downloads_move_back_and_forth_between_drains(undrained):
    """One long answer, and the agents drained in turns below it."""
    cluster = undrained
    size = sized(2 << 20, 8 << 20)
    with Probe(cluster.sf) as probe:
        assert probe("handshake", sni="localhost", alpn="http/1.1")["done"]
        probe.start("get", path=f"/slow?bytes={size}&ms=12000", timeout_ms=patience(60) * 1000)
        for _ in range(4):
            victim = Mover(0)(cluster, probe)
            empty(cluster, victim)
            assert Mover(0)(cluster, probe) != victim
            cluster.undrain(victim)
        answer = probe.finish()
        assert (answer["outcome"], answer["length"], answer["wrong_at"]) == ("complete", size, None)
