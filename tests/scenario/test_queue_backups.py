"""The mail queue on two Redis servers: what was stored survives either of them and the gateway, and a gateway that was
replaced changes and delivers nothing more."""

import random
import signal
import time

import pytest

from tests.lib.build import patience, scaled
from tests.lib.mail_queue import KEY, OTHER_KEY, Gateway, Path, Redis
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

BURST = scaled(2000, 200)


class Room:
    """Two servers, and the gateways of one test."""

    def __init__(self, folder):
        self.folder = folder
        self.servers, self.gateways, self.paths = [], [], []

    def redis(self, *options):
        for name in "ab":
            self.servers.append(Redis(self.folder, name, *options))
        return self.servers

    def gateway(self, backups=None, **options):
        backups = backups or [[s.socket] for s in self.servers]
        self.gateways.append(Gateway(self.folder, backups, f"gateway{len(self.gateways)}", **options))
        return self.gateways[-1]

    def path(self, server, rate=None):
        self.paths.append(Path(self.folder, f"path{len(self.paths)}", server.socket, rate))
        return self.paths[-1]

    def close(self):
        for gateway in self.gateways:
            if gateway.process.poll() is None:
                gateway.process.send_signal(signal.SIGCONT)
                gateway.stop()
        for server in self.servers:
            server.kill()
        for path in self.paths:
            path.close()


@pytest.fixture(name="room")
def _room(tmp_path):
    room = Room(tmp_path)
    yield room
    room.close()


def _started(room, *options, **more):
    a, b = room.redis(*options)
    gateway = room.gateway(**more)
    gateway.in_sync(2)
    return a, b, gateway


def _burst(gateway, name, count=BURST):
    """Adds so many messages. Returns their tokens."""
    tokens = [f"{name}-{n}" for n in range(count)]
    for token in tokens:
        gateway.add(token)
    return tokens


def _stored(gateway, tokens):
    """Of them, those that were stored, when each has an answer."""
    def answered():
        gateway.has(None)
        outcomes = {e["token"]: e["event"] for e in gateway.events if "token" in e}
        return outcomes if set(tokens) <= outcomes.keys() else None

    outcomes = wait_until(answered, patience(30), f"an answer to all: {gateway.log}")
    return [token for token in tokens if outcomes[token] == "stored"]


def test_a_stored_message_is_in_both_servers_and_leaves_them_after_its_delivery(room):
    a, b, gateway = _started(room)
    gateway.stored("one")
    assert (a.items(), b.items()) == (1, 1)
    assert gateway.drain() == ["one"]
    wait_until(lambda: a.items() == b.items() == 0, patience(5))
    assert gateway.until(lambda s: s["unconfirmed"] == 0)["messages"] == 0
    gateway.stop()


@pytest.mark.parametrize("silence", ["short", "given up"])
def test_an_orderly_stop_waits_until_the_deletes_are_confirmed(room, silence):
    """Or a delivered message would come again, out of the servers."""
    a, b, gateway = _started(room)
    tokens = _stored(gateway, _burst(gateway, "m", 20))
    taken = [gateway.ask("take", "a.example")["id"] for _ in tokens]
    for server in (a, b):
        server.pause()
    if silence == "given up":
        gateway.wait("unready")
    for identity in taken:
        assert gateway.ask("done", identity)["result"] == 0
    assert gateway.stats()["unconfirmed"] == len(taken)
    gateway.send("stop", 60000)
    wait_until(lambda: "is=flushing" in gateway.log.read_text(), patience(10), "an orderly stop")
    for server in (a, b):
        server.go_on()
    assert gateway.process.wait(patience(30)) == 0
    gateway = room.gateway()
    gateway.in_sync(2)
    assert gateway.stats()["recovered"] == 0 and gateway.drain() == []


def test_an_orderly_stop_does_not_wait_for_ever(room):
    a, b, gateway = _started(room)
    gateway.stored("one")
    taken = gateway.ask("take", "a.example")["id"]
    for server in (a, b):
        server.kill()
    gateway.wait("unready")
    gateway.ask("done", taken)
    gateway.send("stop", 1000)
    assert gateway.process.wait(patience(30)) == 0
    assert "deliveries_that_may_be_repeated=1" in gateway.log.read_text()


def test_the_servers_see_no_plaintext(room):
    a, _, gateway = _started(room)
    gateway.stored("SECRETWORD", "destination.example")
    dump = a.call("--no-raw", "HGETALL", "cssl:{test}:items") + a.call("--no-raw", "HGETALL", "cssl:{test}:owner")
    assert "SECRETWORD" not in dump and "destination" not in dump and "cssl" not in dump


def test_a_message_comes_in_the_order_of_its_destination_and_waits_for_its_time(room):
    _, _, gateway = _started(room)
    for token in ("first", "second", "third"):
        gateway.stored(token)
    gateway.stored("other", "b.example")
    taken = gateway.ask("take", "a.example")
    assert (taken["token"], taken["attempts"], taken["whole"]) == ("first", 0, True)
    assert gateway.ask("retry", taken["id"], 300, "4.2.2")["result"] == 0
    assert gateway.drain() == ["second", "third"]
    gateway.forget_events()
    gateway.wait("due", destination="a.example")
    again = gateway.ask("take", "a.example")
    assert (again["token"], again["attempts"], again["note"]) == ("first", 1, "4.2.2")


def test_a_restart_reads_back_messages_states_and_decided_transactions(room):
    _, _, gateway = _started(room)
    for token in ("retried", "held", "fresh"):
        gateway.stored(token)
    gateway.stored("named", "a.example", 10, "0a1b/7", "250-ok")
    first, second = gateway.ask("take", "a.example"), gateway.ask("take", "a.example")
    gateway.ask("retry", first["id"], 3600000, "later")
    gateway.ask("back", second["id"])
    assert gateway.ask("hold", second["id"])["result"] == 0
    gateway.until(lambda s: all(b["unanswered"] == 0 for b in s["backups"]))
    gateway.kill()

    gateway = room.gateway()
    gateway.in_sync(2)
    assert gateway.stats()["recovered"] == 4
    assert gateway.ask("decided", "0a1b/7") == {"result": 0, "reply": "250-ok"}
    assert sorted(gateway.drain()) == ["fresh", "named"]
    assert gateway.ask("release", second["id"])["result"] == 0
    assert gateway.drain() == ["held"]
    assert gateway.stats()["messages"] == 1


def test_an_owner_that_delivers_as_soon_as_it_is_told_gets_all_that_was_read_back(room):
    _, _, gateway = _started(room)
    tokens = [f"m{n}" for n in range(60)]
    for n, token in enumerate(tokens):
        gateway.add(token, f"{n % 7}.example")
    _stored(gateway, tokens)
    gateway.kill()
    gateway = room.gateway(deliver="at_once")
    gateway.until(lambda s: s["delivered"] == len(tokens))
    assert sorted(e["token"] for e in gateway.events if e["event"] == "delivered") == sorted(tokens)


def test_messages_whose_key_is_missing_are_kept_until_it_is_there(room):
    a, b, gateway = _started(room)
    for token in ("retried", "fresh"):
        gateway.stored(token)
    gateway.ask("retry", gateway.ask("take", "a.example")["id"], 0, "later")
    gateway.until(lambda s: all(b["unanswered"] == 0 for b in s["backups"]))
    gateway.kill()

    gateway = room.gateway(key=OTHER_KEY)
    stats = gateway.until(lambda s: s["in_sync"] == 2)
    assert (stats["unreadable"], stats["opaque"], stats["messages"]) == (2, 2, 0)
    gateway.stored("new")
    for server in (a, b):  # each is filled anew by this gateway
        server.kill()
        gateway.in_sync(1)
        server.start()
        gateway.in_sync(2)
    gateway.kill()

    gateway = room.gateway(key=f"{KEY}\n{OTHER_KEY}")
    gateway.in_sync(2)
    assert sorted(gateway.drain()) == ["fresh", "new", "retried"]
    wait_until(lambda: a.items() == b.items() == 0, patience(5))


def test_a_message_whose_state_cannot_be_read_is_held_and_the_others_go_on(room):
    """Without its state nobody knows which recipients have it."""
    a, b, gateway = _started(room)
    damaged = gateway.stored("damaged")
    gateway.stored("second")
    gateway.ask("retry", gateway.ask("take", "a.example")["id"], 0, "one of two is done")
    gateway.until(lambda s: all(b["unanswered"] == 0 for b in s["backups"]))
    gateway.kill()
    for server in (a, b):
        server.call("HSET", "cssl:{test}:items", f"s{damaged:016x}", "damaged")

    gateway = room.gateway()
    gateway.in_sync(2)
    assert gateway.drain() == ["second"]
    assert "a message is held" in gateway.log.read_text()
    assert gateway.ask("release", damaged)["result"] != 0
    assert gateway.stats()["messages"] == 1
    assert gateway.ask("delete", damaged)["result"] == 0


def test_gateways_that_begin_apart_give_different_ids(room):
    """Their epoch is the same, and their messages may be united later."""
    room.redis()
    identities = set()
    for server in room.servers:
        for other in room.servers:
            other.call("FLUSHALL")
        gateway = room.gateway()
        gateway.in_sync(2)
        identities.add(gateway.stored("one"))
        gateway.kill()
    assert len(identities) == 2 and len({identity >> 40 for identity in identities}) == 1


def test_a_decided_transaction_is_forgotten_after_its_time(room):
    a, b, gateway = _started(room, decided_s=1)
    assert gateway.ask("decide", "0a1b/1", "550")["result"] == 0
    wait_until(lambda: gateway.ask("decided", "0a1b/1") == {"result": 0, "reply": "550"}, patience(5))
    wait_until(lambda: gateway.ask("decided", "0a1b/1")["result"] != 0, patience(10))
    wait_until(lambda: a.items() == b.items() == 0, patience(5))


def test_decided_transactions_are_bounded(room):
    _, _, gateway = _started(room, decided_max=2)
    assert [gateway.ask("decide", f"0a1b/{n}", "550")["result"] for n in range(3)] == [0, 0, 3]
    gateway.add("named", "a.example", 10, "0a1b/7", "250-ok")
    assert gateway.wait("not added", token="named")["error"] == 3


def test_a_bounce_stores_its_notice_before_the_message_goes(room):
    a, _, gateway = _started(room)
    identity = gateway.stored("failed")
    gateway.ask("take", "a.example")
    assert gateway.ask("bounce", identity, "notice", "sender.example", 500)["result"] == 0
    assert gateway.until(lambda s: s["messages"] == 1)
    assert gateway.drain("sender.example") == ["notice"]
    wait_until(lambda: a.items() == 0, patience(5))


def test_a_message_whose_notice_is_refused_keeps_what_became_of_its_recipients(room):
    a, _, gateway = _started(room)
    identity = gateway.stored("failed")
    gateway.ask("take", "a.example")
    a.call("CONFIG", "SET", "maxmemory", "1")
    assert gateway.ask("bounce", identity, "notice", "sender.example", 500, "delivered-failed")["result"] == 0
    wait_until(lambda: gateway.ask("try", identity)["result"] == 0, patience(10), "the message is back")
    again = gateway.ask("take", "a.example")
    assert (again["token"], again["note"], again["attempts"]) == ("failed", "delivered-failed", 1)
    assert gateway.stats()["messages"] == 1


@pytest.mark.parametrize("lost", [0, 1])
def test_one_server_is_killed_while_messages_come(room, lost):
    servers = room.redis()
    gateway = room.gateway()
    gateway.in_sync(2)
    tokens = _burst(gateway, "before")
    servers[lost].kill()
    tokens += _burst(gateway, "after")
    assert _stored(gateway, tokens) == tokens
    assert gateway.stats()["in_sync"] == 1
    gateway.kill()

    gateway = room.gateway()
    gateway.in_sync(1)
    assert sorted(gateway.drain()) == sorted(tokens)


def test_gateway_and_one_server_die_together(room):
    a, _, gateway = _started(room)
    tokens = _stored(gateway, _burst(gateway, "m"))
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
    tokens = _stored(gateway, _burst(gateway, "m"))
    for server in (servers[first], servers[1 - first]):
        server.kill()
        gateway.in_sync(1)
        tokens += _stored(gateway, _burst(gateway, f"without-{server.socket[-3]}", 100))
        server.start()
        gateway.in_sync(2)
    assert [s.items() for s in servers] == [len(tokens)] * 2
    gateway.kill()
    gateway = room.gateway()
    gateway.in_sync(2)
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
    a, b, gateway = _started(room)
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
    a, b, gateway = _started(room)
    gateway.stored("before")
    a.pause()
    tokens = ["before"] + _stored(gateway, _burst(gateway, "m", 100))
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
    tokens = _stored(gateway, _burst(gateway, "m", 200))
    before = [server.emptied() for server in servers]
    processes = [gateway.process] if stalled == "gateway" else [server.process for server in servers]
    for process in processes:
        process.send_signal(signal.SIGSTOP)
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


def test_what_was_deleted_while_a_server_was_away_leaves_it_when_it_comes_back(room):
    a, b, gateway = _started(room)
    tokens = _stored(gateway, _burst(gateway, "m", 100))
    a.pause()
    gateway.until(lambda s: s["backups"][0]["state"] == "away")
    assert len(gateway.ask("drain", "a.example", 40)["drained"]) == 40
    a.go_on()
    gateway.in_sync(2)
    assert a.items() == b.items() == 60
    assert gateway.drain() == tokens[40:]


def test_an_emptied_server_is_filled_again(room):
    a, b, gateway = _started(room)
    tokens = _stored(gateway, _burst(gateway, "m", 100))
    a.call("FLUSHALL")
    gateway.until(lambda s: s["backups"][0]["fills"] == 2 and s["in_sync"] == 2)
    assert a.items() == b.items() == len(tokens)


def test_a_full_server_refuses_and_keeps_what_it_has(room):
    a, b, gateway = _started(room)
    tokens = _stored(gateway, _burst(gateway, "m", 100))
    a.call("CONFIG", "SET", "maxmemory", "1")
    refused = _burst(gateway, "refused", 50)
    assert not _stored(gateway, refused)
    assert gateway.stats()["in_sync"] == 2 and gateway.stats()["backups"][0]["refused"] == 50
    wait_until(lambda: a.items() == b.items() == 100, patience(5))
    assert gateway.drain() == tokens
    wait_until(lambda: a.items() == b.items() == 0, patience(5))
    a.call("CONFIG", "SET", "maxmemory", "0")
    gateway.stored("again")


def test_a_gateway_starts_although_the_servers_are_full(room):
    a, b, gateway = _started(room)
    tokens = _stored(gateway, _burst(gateway, "m", 20))
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
    tokens = _burst(gateway, "before", 100)
    (first, second)[active].hush()
    tokens += _burst(gateway, "after", 100)
    assert _stored(gateway, tokens) == tokens
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
    a, _, _ = _started(room)

    def function(name, *arguments):
        return a.call("FCALL", f"cssl_queue2_{name}", 2, "cssl:{test}:owner", "cssl:{test}:items", *arguments)

    token, nonce = a.owner("token"), a.owner("nonce")
    epoch, generation = map(int, token.split("."))
    one, two = "m" + "0" * 16, "m" + "1" * 16
    assert function("put", token, one, "x") == "1"
    assert function("put", token, one, "y") == "0"
    assert function("claim", epoch, generation + 1, nonce) == "1"
    assert "STALE" in function("put", token, two, "x") and a.items() == 1
    assert "STALE" in function("claim", epoch, generation + 2, "another")
    assert "STALE" in function("claim", epoch - 1, generation + 2, nonce)


def test_a_standby_takes_over_when_the_owner_is_gone(room):
    a, _, gateway = _started(room)
    standby = room.gateway(role="standby")
    tokens = _stored(gateway, _burst(gateway, "m"))
    renewals = int(a.owner("renewals") or 0)  # four a second, so for longer than takeover_ms
    wait_until(lambda: int(a.owner("renewals") or 0) > renewals + 30, patience(30))
    assert standby.stats()["state"] == "watching"
    gateway.kill()
    standby.in_sync(2)
    assert standby.drain() == tokens


def test_a_second_owner_leaves_the_first_one_alone_until_it_is_ordered(room):
    """Else two gateways with the role of owner would replace each other again and again."""
    _, _, first = _started(room)
    second = room.gateway()
    second.until(lambda s: s["state"] == "watching")
    tokens = _stored(first, _burst(first, "m", 20))
    assert first.stats()["state"] == "active" and len(tokens) == 20 and not first.has("deposed")
    second.ask("takeover")
    second.in_sync(2)
    first.wait("deposed")
    assert second.drain() == tokens


def test_a_second_owner_takes_over_when_the_first_one_is_gone(room):
    _, _, first = _started(room)
    second = room.gateway()
    second.until(lambda s: s["state"] == "watching")
    tokens = _stored(first, _burst(first, "m", 20))
    first.kill()
    second.in_sync(2)
    assert second.drain() == tokens


def test_a_paused_owner_that_was_replaced_writes_and_delivers_nothing_more(room):
    a, _, old = _started(room)
    tokens = _stored(old, _burst(old, "m", 100))
    standby = room.gateway(role="standby")
    wait_until(lambda: old.ask("may")["result"], patience(5))
    old.process.send_signal(signal.SIGSTOP)
    standby.in_sync(2)
    assert standby.drain() == tokens
    wait_until(lambda: a.items() == 0, patience(5))
    old.send("add", "late", "a.example", 100)
    old.send("drain", "a.example")
    old.process.send_signal(signal.SIGCONT)
    assert old.answer(patience(10)) == {"drained": [], "bad": 0}
    old.wait("deposed")
    assert not old.has("stored", token="late")
    assert old.ask("may")["result"] == 0
    assert a.items() == 0 and standby.stats()["in_sync"] == 2


def test_a_paused_owner_does_not_claim_servers_that_came_back_empty(room):
    a, b, gateway = _started(room)
    gateway.stored("one")
    gateway.process.send_signal(signal.SIGSTOP)
    for server in (a, b):
        server.kill()
        server.start()
    wait_until(lambda: int(a.call("INFO", "server").partition("uptime_in_seconds:")[2].split()[0]) > 4, patience(20))
    gateway.process.send_signal(signal.SIGCONT)
    gateway.wait("unready")
    gateway.until(lambda s: [b["state"] for b in s["backups"]] == ["seen", "seen"])
    assert gateway.stats()["in_sync"] == 0 and a.items() == b.items() == 0
    gateway.ask("takeover")  # an operator knows better
    gateway.in_sync(2)
    assert gateway.drain() == ["one"]


def test_servers_that_come_back_empty_after_the_lease_are_not_claimed(room):
    """Another gateway may have claimed them meanwhile, and an empty server does not know."""
    a, b, gateway = _started(room)
    gateway.stored("one")
    a.kill()
    b.kill()
    gateway.wait("unready")
    gateway.until(lambda s: s["lease_left_ms"] < 0)
    a.start()
    b.start()
    gateway.until(lambda s: [b["state"] for b in s["backups"]] == ["seen", "seen"])
    assert a.owner("epoch") == b.owner("epoch") == ""
    gateway.ask("takeover")
    gateway.in_sync(2)
    assert gateway.drain() == ["one"]


def test_servers_that_were_only_silent_are_resumed_after_the_lease(room):
    a, b, gateway = _started(room)
    gateway.stored("one")
    a.pause()
    b.pause()
    gateway.until(lambda s: s["lease_left_ms"] < 0)
    a.go_on()
    b.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == ["one"]


def test_a_member_that_was_away_at_the_start_is_united_when_it_comes_back(room):
    a, b, gateway = _started(room)
    both = _stored(gateway, _burst(gateway, "both", 50))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    alone = _stored(gateway, _burst(gateway, "alone", 50))
    gateway.kill()
    a.pause()
    b.go_on()
    gateway = room.gateway()
    gateway.in_sync(1)
    assert gateway.drain() == both
    a.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == alone  # and none of those that were delivered meanwhile


def test_a_member_that_was_away_at_two_starts_is_united_when_it_comes_back(room):
    """The markers say that it is apart: the memory of the gateway that knew it is gone."""
    a, b, gateway = _started(room)
    both = _stored(gateway, _burst(gateway, "both", 50))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    alone = _stored(gateway, _burst(gateway, "alone", 50))
    gateway.kill()
    a.pause()
    b.go_on()
    more = []
    for turn in range(3):
        gateway = room.gateway()
        gateway.in_sync(1)
        more += _stored(gateway, _burst(gateway, f"more{turn}", 10))
        gateway.kill()
    a.go_on()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert sorted(gateway.drain()) == sorted(both + alone + more)


def _left_behind(room):
    """A gateway whose server a was left behind, and then lost server b, which alone was complete. What both have, and what b has."""
    a, b, gateway = _started(room)
    both = _stored(gateway, _burst(gateway, "both", 20))
    a.pause()
    gateway.until(lambda s: s["in_sync"] == 1 and s["backups"][0]["state"] == "away")
    later = _stored(gateway, _burst(gateway, "later", 20))
    b.pause()
    gateway.wait("unready")
    gateway.forget_events()
    a.go_on()
    gateway.until(lambda s: s["backups"][0]["state"] == "filling")
    return a, b, gateway, both + later


def test_a_server_that_was_left_behind_does_not_go_on_alone(room):
    a, b, gateway, tokens = _left_behind(room)
    wait_until(lambda: a.items() == len(tokens), patience(10))
    renewals = int(a.owner("renewals") or 0)
    wait_until(lambda: int(a.owner("renewals") or 0) > renewals + 8, patience(20))  # two seconds of heartbeats
    assert gateway.stats()["in_sync"] == 0 and not gateway.has("ready")
    b.go_on()
    gateway.in_sync(2)
    assert a.items() == b.items() == len(tokens)
    assert gateway.drain() == tokens


def test_what_a_server_that_was_left_behind_took_alone_is_united_later(room):
    """The gateway that starts without it cannot know that it went on: only its own marker says so."""
    a, b, gateway, tokens = _left_behind(room)
    gateway.ask("takeover")
    gateway.in_sync(1)
    alone = _stored(gateway, _burst(gateway, "alone", 20))
    gateway.kill()
    a.pause()
    b.go_on()
    gateway = room.gateway()
    gateway.in_sync(1)
    assert gateway.drain() == tokens
    a.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == alone  # and none of those that were delivered meanwhile


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


def test_a_line_that_is_full_refuses(room):
    _, _, gateway = _started(room, messages_max=2, destinations_max=1)
    gateway.stored("one")
    gateway.stored("two")
    gateway.add("three")
    assert gateway.wait("not added", token="three")["error"] == 3
    gateway.add("four", "b.example")
    assert gateway.wait("not added", token="four")["error"] == 3


def test_a_destination_without_messages_makes_room_for_another(room):
    _, _, gateway = _started(room, destinations_max=2)
    for n in range(10):
        gateway.stored(f"m{n}", f"{n}.example")
        assert gateway.drain(f"{n}.example") == [f"m{n}"]


@pytest.mark.parametrize("seed", range(2))
def test_random_faults_lose_nothing_and_repeat_nothing_that_was_confirmed(room, seed):
    """One fault at a time, each while messages come and go; the next one comes when both servers are in sync again."""
    chance = random.Random(seed)
    servers = room.redis()
    gateway = room.gateway()
    stored, delivered, given = set(), [], set()

    def deliver():
        delivered.extend(gateway.ask("drain", "a.example", 150)["drained"])

    for turn in range(12):
        gateway.in_sync(2)
        tokens = _burst(gateway, f"turn{turn}", 300)
        given |= set(tokens)
        server = chance.choice(servers)
        fault = chance.choice(("kill server", "pause server", "kill gateway", "kill both"))
        if fault == "kill gateway" or fault == "kill both":
            stored |= set(_stored(gateway, tokens))
            deliver()
            gateway.until(lambda s: s["unconfirmed"] == 0)
            gateway.kill()
        if fault in ("kill server", "kill both"):
            server.kill()
        if fault == "pause server":
            server.pause()
        if gateway.process.returncode is not None:
            gateway = room.gateway()
        stored |= set(_stored(gateway, tokens)) if fault in ("kill server", "pause server") else set()
        gateway.in_sync(1 if fault != "kill gateway" else 2)
        deliver()
        if fault == "pause server":
            server.go_on()
        elif fault != "kill gateway":
            server.start()
    gateway.in_sync(2)
    delivered += gateway.drain()
    assert stored <= set(delivered) <= given
    assert len(delivered) == len(set(delivered))
    assert gateway.stats()["messages"] == 0


@pytest.mark.alone
@pytest.mark.plain
def test_half_a_million_messages_are_read_back_in_time_and_within_their_memory(room):
    patient = {"path_timeout_ms": 3000, "give_up_ms": 5000, "lease_ms": 9000, "takeover_ms": 20000}
    _, _, gateway = _started(room, **patient)
    empty_kb = gateway.stats()["rss_kb"]
    gateway.send("load", 500000, 1024, "a.example", 4000)
    loaded = gateway.wait("loaded", 120)
    per_message = (gateway.stats()["rss_kb"] - empty_kb) * 1024 / 500000
    gateway.kill()
    gateway = room.gateway(**patient)
    gateway.in_sync(2, 60)
    stats = gateway.stats()
    print(f"stored in {loaded['ms']} ms, read back in {stats['recovery_ms']} ms, {per_message:.0f} bytes a message")
    assert stats["recovered"] == 500000
    assert stats["recovery_ms"] <= patience(5900)
    assert per_message <= 2048
