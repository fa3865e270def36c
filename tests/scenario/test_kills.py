"""Agents are killed with -9 under load, one after another or all at once. Idle connections notice nothing. A request that may
have been executed ends in an honest error and is not executed again. New connections succeed. Short in normal runs, and long
enough for a proof with ./cssl test --full.

Short in every run, as long as it takes to believe it with ./cssl test --full."""

import pytest

from tests.lib.build import FULL, patience, sized
from tests.lib.tlsload import check_honest, check_unharmed, lost, refused, say
from tests.lib.trouble import Executions, kill_and_return, kill_in_turns, wait_consistent
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(240 if FULL else 120)

SECONDS = 60 if FULL else 9
EVERY_S = 3
RESTING_ANSWER_MAX_US = 1_000_000


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3")


@pytest.mark.alone
@pytest.mark.quiet
def test_idle_connections_answer_after_their_agent_was_killed(cluster, load):
    load.add("idle", count=sized(400, 2000), run="waits")
    load.ask("idle")
    for agent in cluster.agents:
        cluster.kill(agent)
        report = check_unharmed(load.ask("idle"))
        cluster.restart(agent)
    assert report["latency_us"]["max"] <= patience(RESTING_ANSWER_MAX_US), say(report)
    print(f"idle: {report['ready']} of {report['clients']}, longest answer {report['latency_us']['max'] / 1000} ms")


def test_a_post_is_executed_once_or_not_at_all(cluster, load, dice, tmp_path):
    """Open requests end in a 502 or an alert. Every request that was reported as done was done."""
    ids = tmp_path / "ids"
    load.add("post", count=16, method="POST", path="/count", id="post", ids=ids, body=3000, every_ms=5, again="lost")
    kill_in_turns(cluster, load, SECONDS, EVERY_S, dice)
    report = check_honest(load.stop("post"))
    assert set(refused(report)) <= {"502"}, say(report)
    assert set(lost(report)) <= {"refused idle", "alert unanswered", "alert midway", "reset unanswered"}, say(report)
    executions = Executions(cluster, ids).check()
    print(f"{len(executions.became)} posts, {refused(report)} refused, {lost(report)} lost")


def test_uploads_are_whole_or_end_in_an_error(cluster, load, tmp_path):
    size, ids = sized(2 << 20, 20 << 20), tmp_path / "ids"
    load.add("up", count=12, method="POST", path="/sha256", id="up", ids=ids, body=size, rate=size // 4, again="lost")
    for agent in cluster.agents:
        sent = load.report()["up"]["bytes_out"]
        wait_until(lambda before=sent: load.report()["up"]["bytes_out"] > before + 4 * size, patience(30))
        kill_and_return(cluster, agent, load)
    report = check_honest(load.stop("up"))
    assert set(refused(report)) <= {"502"}, say(report)
    Executions(cluster, ids).check()


@pytest.mark.alone
@pytest.mark.quiet
def test_new_connections_come_through(cluster, load, dice):
    """A hello without an answer goes to another agent. Other clients get their end soon, and connect again."""
    load.add("new", count=16, every_ms=20, times=1, again="always")
    load.add("resuming", count=16, every_ms=20, times=1, again="always", resume=1)
    kill_in_turns(cluster, load, SECONDS, EVERY_S, dice)
    for name in ("new", "resuming"):
        report = check_honest(load.stop(name))
        assert report["apart_us"]["max"] <= patience(2_000_000), say(report)
        assert report["latency_us"]["max"] <= patience(3_000_000), say(report)


def test_all_agents_at_once_and_resting_connections_go_on(cluster, load):
    load.add("idle", count=sized(400, 2000), run="waits")
    load.ask("idle")
    cluster.kill(*cluster.agents)
    for agent in cluster.agents:
        cluster.restart(agent)
    check_unharmed(load.ask("idle"))
    wait_consistent(cluster)


def test_new_clients_wait_for_agents_that_start_again(cluster, load):
    """Their hellos are held, and answered by the first agent that is there; none is reset."""
    held = cluster.counters()["ragent"]["hellos_held"]
    cluster.kill(*cluster.agents)
    arriving = load.start_add("new", count=sized(100, 500), run="waits")
    wait_until(lambda: cluster.counters()["ragent"]["hellos_held"] > held, patience(5), "hellos that are held")
    for agent in cluster.agents:
        cluster.restart(agent)
    report = check_unharmed(load.finish(arriving))
    assert report["ready"] == report["clients"], say(report)
    check_unharmed(load.ask("new"))
    assert cluster.counters()["ragent"]["ended_no_agent"] == 0
