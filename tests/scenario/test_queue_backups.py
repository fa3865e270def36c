"""The mail queue on two Redis servers: what was stored survives either of them and the gateway."""

import itertools
import random
import re
import signal
import subprocess
import time

import pytest

from tests.lib.build import patience, tool
from tests.lib.processes import stop
from tests.lib.queue_room import burst, started, stored
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


@pytest.mark.parametrize("lost", [0, 1])
def test_one_server_is_killed_while_messages_come(room, lost):
    servers = room.redis()
    gateway = room.gateway()
    gateway.in_sync(2)
    tokens = burst(gateway, "before")
    servers[lost].kill()
    tokens += burst(gateway, "after")
    assert stored(gateway, tokens) == tokens
    assert gateway.stats()["in_sync"] == 1
    gateway.kill()

    gateway = room.gateway()
    gateway.in_sync(1)
    assert sorted(gateway.drain()) == sorted(tokens)


def test_gateway_and_one_server_die_together(room):
    a, _, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m"))
    gateway.kill()
    a.kill()
    gateway = room.gateway()
    gateway.in_sync(1)
    assert gateway.drain() == tokens


@pytest.mark.parametrize("first", [0, 1])
def test_a_server_that_restarts_empty_is_filled_again_and_then_carries_all(room, first):
    servers = room.redis()
    gateway = room.gateway()
    gateway.in_sync(2)
    tokens = stored(gateway, burst(gateway, "m"))
    for server in (servers[first], servers[1 - first]):
        server.kill()
        gateway.in_sync(1)
        tokens += stored(gateway, burst(gateway, f"without-{server.socket[-3]}", 100))
        server.start()
        gateway.in_sync(2)
    assert [s.items() for s in servers] == [len(tokens)] * 2
    gateway.kill()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert sorted(gateway.drain()) == sorted(tokens)


def test_a_server_that_restarted_does_not_count_before_it_is_filled(room):
    """Who restarts one after the other waits for this number only."""
    servers = room.redis()
    gateway = room.gateway()
    gateway.in_sync(2)
    tokens = stored(gateway, burst(gateway, "m"))
    for server in servers * 3:
        server.kill()
        server.start()
        gateway.in_sync(2)
        assert server.items() == len(tokens)


def _back_again(room, gateway, who):
    """A server restarts empty, or the gateway (None) reads its queue back."""
    if who is None:
        gateway.kill()
        gateway = room.gateway()
    else:
        who.kill()
        gateway.in_sync(1)
        who.start()
    gateway.in_sync(2)
    return gateway


@pytest.mark.limit(240)
def test_restarts_in_every_order_lose_nothing(room):
    a, b, gateway = started(room)
    tokens = []
    for n, order in enumerate(itertools.permutations((a, b, None))):
        for who in order:
            tokens += stored(gateway, burst(gateway, f"{n}-{order.index(who)}", 10))
            gateway = _back_again(room, gateway, who)
    assert a.items() == b.items() == len(tokens)
    assert sorted(gateway.drain()) == sorted(tokens)


@pytest.mark.parametrize("lacks", [0, 1])
def test_messages_that_only_one_server_has_are_read_of_it(room, lacks):
    """The gateway dies while the other one has not got them. They are more than a block has."""
    servers = room.redis()
    paths = [room.path(server) for server in servers]
    gateway = room.gateway([[path.address] for path in paths])
    gateway.in_sync(2)
    both = stored(gateway, burst(gateway, "both", 50))
    paths[lacks].hush()
    for n in range(60):
        gateway.add(f"one-{n}", "a.example", 200000)
    wait_until(lambda: servers[1 - lacks].items() == 110, patience(10))
    gateway.kill()
    assert servers[lacks].items() == 50
    gateway = room.gateway()
    gateway.in_sync(2)
    assert servers[0].items() == servers[1].items() == 110
    assert gateway.drain() == both + [f"one-{n}" for n in range(60)]


@pytest.mark.parametrize("first", ["gateway", "server"])
def test_gateway_and_one_server_die_together_and_come_back_in_any_order(room, first):
    a, b, gateway = started(room)
    tokens = []
    for n, server in enumerate((a, b)):
        tokens += stored(gateway, burst(gateway, f"m{n}", 100))
        gateway.kill()
        server.kill()
        if first == "server":
            server.start()
        gateway = room.gateway()
        if first == "gateway":
            gateway.in_sync(1)
            server.start()
        gateway.in_sync(2)
    assert a.items() == b.items() == len(tokens)
    assert sorted(gateway.drain()) == sorted(tokens)


@pytest.mark.parametrize("empty", [0, 1])
def test_an_empty_server_is_not_believed_beside_one_that_is_away(room, empty):
    servers = room.redis()
    gateway = room.gateway()
    gateway.in_sync(2)
    gateway.stored("kept")
    gateway.kill()
    servers[empty].kill()
    servers[empty].start()
    servers[1 - empty].pause()
    gateway = room.gateway()
    gateway.until(lambda s: s["backups"][empty]["state"] == "seen")
    # Each time-out takes 600 ms: more than absent_ms has passed, and it waits still.
    gateway.until(lambda s: s["backups"][1 - empty]["paths"][0]["timeouts"] >= 5)
    assert gateway.stats()["state"] == "looking" and not gateway.has("ready")
    servers[1 - empty].go_on()
    gateway.in_sync(2)
    assert gateway.drain() == ["kept"]


def test_no_server_is_left_and_nothing_is_acknowledged_until_one_is_back(room):
    a, b, gateway = started(room)
    gateway.stored("before")
    a.kill()
    gateway.in_sync(1)
    b.kill()
    began = time.monotonic()
    gateway.add("between")
    gateway.wait("unready")
    assert time.monotonic() - began < patience(2)
    gateway.add("refused")
    assert gateway.wait("not added", token="refused")["error"] == 1
    assert not gateway.has("stored", token="between")
    b.start()
    gateway.wait("stored", token="between")
    gateway.in_sync(1)
    a.start()
    gateway.in_sync(2)
    assert a.items() == b.items() == 2
    assert gateway.drain() == ["before", "between"]


def test_a_server_that_hangs_is_left_out_and_filled_again(room):
    a, b, gateway = started(room)
    gateway.stored("before")
    a.pause()
    tokens = ["before"] + stored(gateway, burst(gateway, "m", 100))
    assert gateway.stats()["backups"][0]["state"] == "away"
    a.go_on()
    gateway.in_sync(2)
    assert a.items() == b.items() == len(tokens)
    assert gateway.drain() == tokens


@pytest.mark.parametrize("stalled", ["gateway", "servers"])
def test_no_copy_is_dropped_after_a_stall_of_everything(room, stalled):
    """Silence of both servers at once says nothing about what they hold: to empty them would leave the memory of the gateway as the
    only copy."""
    servers = room.redis()
    gateway = room.gateway()
    gateway.in_sync(2)
    tokens = stored(gateway, burst(gateway, "m", 200))
    before = [server.emptied() for server in servers]
    processes = [gateway.process] if stalled == "gateway" else [server.process for server in servers]
    for process in processes:
        stop(process.pid)
    if stalled == "gateway":
        renewals = servers[0].owner("renewals")
        time.sleep(2.2)  # the fault itself: longer than give_up_ms, shorter than the lease
        assert servers[0].owner("renewals") == renewals
    else:
        gateway.wait("unready")
    for process in processes:
        process.send_signal(signal.SIGCONT)
    gateway.in_sync(2)
    assert [server.emptied() for server in servers] == before
    assert [server.items() for server in servers] == [len(tokens)] * 2
    if stalled == "gateway":
        assert [b["given_up"] for b in gateway.stats()["backups"]] == [0, 0]
    assert gateway.drain() == tokens


def test_messages_deleted_while_a_server_was_away_leave_it_when_it_comes_back(room):
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", 100))
    a.pause()
    gateway.until(lambda s: s["backups"][0]["state"] == "away")
    assert len(gateway.ask("drain", "a.example", 40)["drained"]) == 40
    a.go_on()
    gateway.in_sync(2)
    assert a.items() == b.items() == 60
    assert gateway.drain() == tokens[40:]


def test_an_emptied_server_is_filled_again(room):
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", 100))
    a.call("FLUSHALL")
    gateway.until(lambda s: s["backups"][0]["fills"] == 2 and s["in_sync"] == 2)
    assert a.items() == b.items() == len(tokens)


def test_a_full_server_refuses_and_keeps_what_it_has(room):
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", 100))
    a.call("CONFIG", "SET", "maxmemory", "1")
    refused = burst(gateway, "refused", 50)
    assert not stored(gateway, refused)
    assert gateway.stats()["in_sync"] == 2 and gateway.stats()["backups"][0]["refused"] == 50
    assert "backup is full backup=0 changes=" in gateway.log.read_text()
    wait_until(lambda: a.items() == b.items() == 100, patience(5))
    assert gateway.drain() == tokens
    wait_until(lambda: a.items() == b.items() == 0, patience(5))
    a.call("CONFIG", "SET", "maxmemory", "0")
    gateway.stored("again")


def _memory(servers, limit):
    for server in servers:
        server.call("CONFIG", "SET", "maxmemory", limit)


def _restarted(room, gateway):
    gateway.kill()
    gateway = room.gateway()
    gateway.in_sync(2)
    return gateway


def test_an_order_that_full_servers_refuse_counts_and_does_not_drop_the_one_before(room):
    a, b, gateway = started(room)
    for token in ("one", "two"):
        gateway.stored(token)
    gateway.ask("order", "a.example", "stop")
    gateway.until(lambda s: s["orders_unstored"] == 0 and s["orders"] == 1)
    _memory((a, b), "1")
    for rate in range(1, 6):
        assert gateway.ask("order", "a.example", "start", rate)["result"] == 0
    gateway.until(lambda s: s["orders_refused"] >= 2)
    stats = gateway.stats()
    assert (stats["orders"], stats["orders_unstored"]) == (2, 1)  # the stored one, and the newest
    assert gateway.drain() == ["one"]  # five a minute
    gateway.until(lambda s: s["unconfirmed"] == 0)
    gateway = _restarted(room, gateway)
    assert gateway.stats()["orders"] == 1 and gateway.drain() == []  # it is stopped still


def test_an_order_that_full_servers_refused_is_put_again(room):
    a, b, gateway = started(room)
    _memory((a, b), "1")
    gateway.ask("order", "a.example", "stop")
    gateway.until(lambda s: s["orders_refused"] >= 2 and s["orders_unstored"] == 1)
    _memory((a, b), "0")
    gateway.until(lambda s: s["orders_unstored"] == 0)
    gateway.stored("one")
    gateway = _restarted(room, gateway)
    assert gateway.stats()["orders"] == 1 and gateway.drain() == []


def test_a_gateway_starts_although_the_servers_are_full(room):
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", 20))
    for server in (a, b):
        server.call("CONFIG", "SET", "maxmemory", "1")
    gateway.kill()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert gateway.drain() == tokens


def test_a_silent_path_is_replaced_by_the_other_one(room):
    a, b = room.redis()
    first, second = room.path(a), room.path(a)
    gateway = room.gateway([[first.address, second.address], [b.socket]], give_up_ms=6000, lease_ms=8000,
                           takeover_ms=20000)
    gateway.in_sync(2)
    gateway.until(lambda s: sorted(p["state"] for p in s["backups"][0]["paths"]) == [2, 3])
    active = [p["state"] for p in gateway.stats()["backups"][0]["paths"]].index(3)
    tokens = burst(gateway, "before", 100)
    (first, second)[active].hush()
    tokens += burst(gateway, "after", 100)
    assert stored(gateway, tokens) == tokens
    stats = gateway.stats()
    assert stats["in_sync"] == 2 and stats["backups"][0]["given_up"] == 0 and stats["backups"][0]["fills"] == 1
    assert stats["backups"][0]["paths"][1 - active]["switches"] == 1
    assert a.items() == b.items() == len(tokens)
    (first, second)[active].open()
    gateway.until(lambda s: s["backups"][0]["paths"][active]["state"] == 2)


def test_a_large_message_on_a_slow_path_is_no_silence(room):
    """It takes some four seconds each way; the path's time-out is 600 ms, and 1.5 s without an answer give a server up."""
    a, b = room.redis()
    backups = [[room.path(a, 1 << 20).address], [b.socket]]
    gateway = room.gateway(backups)
    gateway.in_sync(2)
    gateway.stored("large", "a.example", 4 << 20)
    gateway.stored("small")
    stats = gateway.stats()["backups"][0]
    assert (stats["paths"][0]["timeouts"], stats["given_up"], stats["repeated"]) == (0, 0, 0)
    gateway.kill()
    b.kill()
    gateway = room.gateway(backups)
    gateway.in_sync(1)
    assert gateway.stats()["backups"][0]["paths"][0]["timeouts"] == 0
    assert gateway.drain() == ["large", "small"]


def test_requests_of_an_abandoned_path_change_nothing(room):
    """A put that a dead path delivers late must not bring a deleted message back."""
    a, _, _ = started(room)

    def function(name, *arguments):
        return a.call("FCALL", f"cssl_queue1_{name}", 2, "cssl:{test}:owner", "cssl:{test}:items", *arguments)

    token, nonce = a.owner("token"), a.owner("nonce")
    epoch, generation = map(int, token.split("."))
    one, two = "m" + "0" * 16, "m" + "1" * 16
    assert function("put", token, one, "x") == "1"
    assert function("put", token, one, "y") == "0"
    assert function("claim", epoch, generation + 1, nonce).split()[:2] == ["epoch", str(epoch)]
    assert "STALE" in function("put", token, two, "x") and a.items() == 1
    assert "STALE" in function("claim", epoch, generation + 2, "another")
    assert "STALE" in function("claim", epoch - 1, generation + 2, nonce)


def test_a_server_with_passwords_is_used_by_its_user(room):
    a, b = room.redis()
    for server in (a, b):
        server.call("ACL", "SETUSER", "gateway", "on", ">word", "~cssl:*", "+@all")
        server.call("ACL", "SETUSER", "default", "nopass", "-@all", "+ping", "+auth")
    stranger = room.gateway()
    gateway = room.gateway(user="gateway", password="word")
    gateway.in_sync(2)
    gateway.stored("one")
    assert stranger.stats()["in_sync"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_random_faults_lose_nothing_and_repeat_nothing_that_was_confirmed(room, seed):
    """One fault at a time, each while messages come and go; the next one comes when both servers are in sync again."""
    chance = random.Random(seed)
    servers = room.redis()
    gateway = room.gateway()
    kept, delivered, given = set(), [], set()

    def deliver():
        delivered.extend(gateway.ask("drain", "a.example", 150)["drained"])

    for turn in range(12):
        gateway.in_sync(2)
        tokens = burst(gateway, f"turn{turn}", 300)
        given |= set(tokens)
        server = chance.choice(servers)
        fault = chance.choice(("kill server", "pause server", "kill gateway", "kill both"))
        if fault == "kill gateway" or fault == "kill both":
            kept |= set(stored(gateway, tokens))
            deliver()
            gateway.until(lambda s: s["unconfirmed"] == 0)
            gateway.kill()
        if fault in ("kill server", "kill both"):
            server.kill()
        if fault == "pause server":
            server.pause()
        if gateway.process.returncode is not None:
            gateway = room.gateway()
        kept |= set(stored(gateway, tokens)) if fault in ("kill server", "pause server") else set()
        gateway.in_sync(1 if fault != "kill gateway" else 2)
        deliver()
        if fault == "pause server":
            server.go_on()
        elif fault != "kill gateway":
            server.start()
    gateway.in_sync(2)
    delivered += gateway.drain()
    assert kept <= set(delivered) <= given
    assert len(delivered) == len(set(delivered))
    assert gateway.stats()["messages"] == 0


@pytest.mark.parametrize("options", [(), ("--delete",)])
def test_a_load_without_smtp_ends_with_its_server(room, options):
    """And says that it did not do its work."""
    server = room.redis()[0]
    with subprocess.Popen([tool("bench/cssl-bench"), "queue", *options, "-m", "1000000000", "-l", "1", "-w", "1", f"unix:{server.socket}"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as load:
        wait_until(lambda: re.search(r"cmdstat_fcall:calls=\d{3}", server.call("INFO", "commandstats")), patience(10), "messages are stored")
        server.kill()
        _, said = load.communicate(timeout=patience(30))
    assert (load.returncode, "not all messages were stored" in said) == (1, True), said
