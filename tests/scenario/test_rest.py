"""Idle connections rest: no agent has them, and the next record wakes them on any; they outlive every agent.

Short in every run, as long as it takes to believe it with ./cssl test --full."""

import re
import subprocess

import pytest

from tests.lib.build import FULL, SANITIZED, patience, scaled, sized
from tests.lib.cluster import ControlError
from tests.lib.edits import below, edits, instead, nobody_moves
from tests.lib.mover import settled
from tests.lib.probe import Probe
from tests.lib.tlsload import Load, check_unharmed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(400 if FULL else 200)

REST_MS = 400
SOON = f"rest_after: {REST_MS}ms"


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", edit=edits(below("sf", SOON), below("sl", SOON)))


@pytest.fixture(scope="module")
def wakeful(start_module_cluster):
    """Here nothing rests by itself."""
    return start_module_cluster("--agents", "2", edit=edits(instead("mode:", "rest_after: off\n    mode:"), nobody_moves))


def shake_hands(probe, **how):
    assert probe("handshake", sni="localhost", alpn="http/1.1", **how)["done"]


def get(probe, path="/64k"):
    answer = probe("get", path=path)
    assert (answer["outcome"], answer["wrong_at"]) == ("complete", None)
    return answer["headers"]["x-cssl-agent"]


def resting(cluster, client):
    """The connection, once it rests."""
    def rests():
        connection = cluster.connection_of(client)
        return connection if connection["state"] == "resting" else None
    connection = wait_until(rests, patience(10), "a connection at rest")
    assert connection["owner"] is None and connection["affinity_agent"] is None
    return connection


def outwait(cluster):
    """Waits until every other silent connection rests: until another connection did so, twice."""
    with Probe(cluster.sf) as clock:
        shake_hands(clock)
        for _ in range(2):
            get(clock, "/5")
            resting(cluster, clock)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("listener", ["sf", "sl"])
def test_a_silent_connection_rests_and_answers_its_next_request(cluster, listener, version):
    with Probe(getattr(cluster, listener)) as probe:
        shake_hands(probe, version=version)
        owner, epoch = get(probe), settled(cluster, probe)["epoch"]
        for number in range(1, 4):
            assert resting(cluster, probe)["epoch"] == epoch
            assert get(probe) == owner  # the address, or the last owner, is the same
            epoch += 1
            assert settled(cluster, probe)["epoch"] == epoch
            if version == "1.3":
                probe("key_update", request=1)
                get(probe)
                assert settled(cluster, probe)["write_generation"] == number


def test_a_connection_that_never_asked_rests_too(cluster):
    with Probe(cluster.sf) as probe:
        shake_hands(probe)
        resting(cluster, probe)
        get(probe)


def test_a_request_that_comes_in_pieces_wakes_it_once_its_first_record_is_whole(cluster):
    with Probe(cluster.sf) as probe:
        shake_hands(probe)
        woken = resting(cluster, probe)["epoch"]
        probe("pace", bytes=8, every_ms=20)
        probe.start("get", path="/5")
        assert cluster.connection_of(probe)["epoch"] == woken
        assert probe.finish()["outcome"] == "complete"
        assert settled(cluster, probe)["epoch"] == woken + 1


def test_key_updates_wake_it_and_are_answered(cluster):
    with Probe(cluster.sf) as probe:
        shake_hands(probe, version="1.3")
        for number in range(1, 4):
            resting(cluster, probe)
            probe("key_update", request=1)
            wait_until(lambda n=number: cluster.connection_of(probe)["write_generation"] == n, patience(5))
        get(probe)


def test_a_connection_with_something_open_does_not_rest(cluster):
    with Probe(cluster.sf) as asked, Probe(cluster.sf) as asking, Probe(cluster.sf) as half_closed:
        for probe in (asked, asking, half_closed):
            shake_hands(probe)
        asked.start("get", path=f"/slow?bytes=4&ms={patience(REST_MS * 8)}", timeout_ms=patience(30) * 1000)
        asking("send", text="GET /5 HTTP/1.1\r\nHost: local")
        half_closed("send", text=f"GET /slow?bytes=4&ms={patience(REST_MS * 8)} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        half_closed("close_notify")
        before = {probe: settled(cluster, probe)["epoch"] for probe in (asked, asking, half_closed)}
        outwait(cluster)
        for probe, epoch in before.items():
            connection = cluster.connection_of(probe)
            assert (connection["state"], connection["epoch"]) == ("owned", epoch)
        assert asked.finish()["outcome"] == "complete"
        asking("send", text="host\r\n\r\n")
        assert "200 OK" in asking("read", until="\r\n\r\n")["text"]
        assert half_closed("end")["tls"] == "close_notify"


def test_a_client_that_leaves_while_it_rests_is_gone(cluster):
    with Probe(cluster.sf) as probe:
        shake_hands(probe)
        identity = resting(cluster, probe)["id"]
        probe("fin")
        assert probe("end")["tcp"] == "fin"

    def gone():
        try:
            return cluster.connection(identity) is None
        except ControlError as e:
            return e.status == 404
    wait_until(gone, patience(5), "the end of the connection")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_goodbye_wakes_it(cluster, version):
    with Probe(cluster.sf) as probe:
        shake_hands(probe, version=version)
        resting(cluster, probe)
        probe("close_notify")
        assert probe("end")["tls"] == "close_notify"


def test_connections_of_tcp_do_not_rest(start_cluster):
    cluster = start_cluster("--agents", "2", edit=edits(
        lambda text: text.replace("service: http", "service: tcp", 2), below("sf", SOON), below("sl", SOON)))
    with Probe(cluster.sf) as untouched, Probe(cluster.sf) as used:
        shake_hands(untouched)
        shake_hands(used)
        get(used)
        before = {probe: settled(cluster, probe)["epoch"] for probe in (untouched, used)}
        with Probe(cluster.sl) as clock:
            shake_hands(clock)
            resting(cluster, clock)
        for probe, epoch in before.items():
            assert (settled(cluster, probe)["epoch"], cluster.connection_of(probe)["state"]) == (epoch, "owned")
            get(probe)


# By hand


def test_an_operator_can_send_one_to_rest(wakeful):
    with Probe(wakeful.sf) as probe:
        shake_hands(probe)
        get(probe)
        connection = settled(wakeful, probe)
        answer = wakeful.rest(connection["id"])
        assert answer == {"from": connection["owner"], "epoch": connection["epoch"]}
        resting(wakeful, probe)
        with pytest.raises(ControlError, match="409"):
            wakeful.rest(connection["id"])
        get(probe)


def test_a_connection_that_cannot_rest_refuses_the_order_and_goes_on(wakeful):
    with Probe(wakeful.sf) as probe:
        shake_hands(probe)
        probe.start("get", path="/slow?bytes=20000&ms=700")
        identity = settled(wakeful, probe)["id"]
        wait_until(lambda: wakeful.connection(identity)["server_bytes"] > 5000, patience(5))
        with pytest.raises(ControlError, match="409"):
            wakeful.rest(identity)
        assert probe.finish()["outcome"] == "complete"
    with pytest.raises(ControlError, match="404"):
        wakeful.rest("0" * 32)


# Many


def anonymous_memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read()).group(1)) * 1024


def hold_at_rest(cluster, load, name, count):
    """So many more clients, each answered once, until all connections of the cluster rest."""
    before = cluster.counters()["ragent"]["connections_resting"]
    load.add(name, count=count, run="waits")
    load.ask(name)
    wait_until(lambda: cluster.counters()["ragent"]["connections_resting"] == before + count, patience(60), "all at rest")


# Bytes for each connection at rest: of RAgent's own memory; of an agent's, above what it has when they are closed.
HELD_BY_RAGENT_MAX = 1024
HELD_BY_AGENT_MAX = 64


def allocated_memory(cluster, name):
    """The memory that the process has from malloc, by its own count."""
    said = cluster.log(name).count("max mmap bytes")
    subprocess.run(["gdb", "-p", str(cluster.pid(name)), "-batch", "-ex", "call (void)malloc_stats()"], check=False,
                   timeout=patience(60), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: cluster.log(name).count("max mmap bytes") > said, patience(5), f"figures of {name}")
    return int(re.findall(r"in use bytes +=\s+(\d+)", cluster.log(name))[-1])  # the last one is the total


@pytest.mark.alone
@pytest.mark.quiet
def test_resting_connections_outlive_all_agents(start_cluster):
    count = sized(3000, 8000)
    cluster = start_cluster("--agents", "3", edit=edits(below("sf", SOON)))
    with Load(cluster) as load:
        hold_at_rest(cluster, load, "as many", count)  # what all of them need at a time, and not each, is there after these
        before = anonymous_memory(cluster.pid("r1"))
        hold_at_rest(cluster, load, "idle", count)
        each = (anonymous_memory(cluster.pid("r1")) - before) / count
        assert sum(len(cluster.connections(agent=name)) for name in cluster.agents) == 0
        cluster.kill(*cluster.agents)
        for name in cluster.agents:
            cluster.restart(name)
        report = check_unharmed(load.ask("idle"))
        assert report["ready"] == count
        assert cluster.counters()["ragent"]["takeovers_adopted"] == 0
        print(f"{count} of {count} answered; RAgent held {each:.0f} B of each at rest;"
              f" longest answer {report['latency_us']['max'] / 1000} ms")
        assert SANITIZED or each <= HELD_BY_RAGENT_MAX


@pytest.mark.alone
@pytest.mark.quiet
@pytest.mark.plain  # sanitizers have an allocator of their own
@pytest.mark.tool("gdb")
def test_resting_connections_cost_the_agents_no_more_than_closed_ones(start_cluster):
    count = sized(3000, 8000)
    cluster = start_cluster("--agents", "3", edit=edits(below("sf", SOON)), env={"CSSL_TRACEABLE": "1"})
    with Load(cluster) as load:
        hold_at_rest(cluster, load, "idle", count)
        resting = {name: allocated_memory(cluster, name) for name in cluster.agents}
        load.close("idle")
        wait_until(lambda: cluster.status()["connections"] == 0, patience(30), "the end of all")
        closed = {name: allocated_memory(cluster, name) for name in cluster.agents}
    more = [(resting[name] - closed[name]) / count for name in cluster.agents]
    print(f"the agents held {', '.join(f'{each:.1f}' for each in more)} B more of each of {count} connections at rest than of closed ones")
    assert max(more) <= HELD_BY_AGENT_MAX
