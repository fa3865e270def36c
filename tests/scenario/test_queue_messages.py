"""The mail queue on two Redis servers: messages, their states and their order, in memory and after a restart."""

import pytest

from tests.lib.build import FULL, patience
from tests.lib.mail_queue import KEY, OTHER_KEY
from tests.lib.queue_room import burst, started, stored
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


def test_a_stored_message_is_in_both_servers_and_leaves_them_after_its_delivery(room):
    a, b, gateway = started(room)
    gateway.stored("one")
    assert (a.items(), b.items()) == (1, 1)
    assert gateway.drain() == ["one"]
    wait_until(lambda: a.items() == b.items() == 0, patience(5))
    assert gateway.until(lambda s: s["unconfirmed"] == 0)["messages"] == 0
    gateway.stop()


@pytest.mark.parametrize("silence", ["short", "given up"])
def test_an_orderly_stop_waits_until_the_deletes_are_confirmed(room, silence):
    """Or a delivered message would come again, out of the servers."""
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", 20))
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
    a, b, gateway = started(room)
    gateway.stored("one")
    taken = gateway.ask("take", "a.example")["id"]
    for server in (a, b):
        server.kill()
    gateway.wait("unready")
    gateway.ask("done", taken)
    gateway.send("stop", 1000)
    assert gateway.process.wait(patience(30)) == 0
    assert "deliveries_that_may_be_repeated=1" in gateway.log.read_text()


UNCONFIRMED_MAX = 1000  # QUEUE_UNCONFIRMED_MAX
PATIENT = {"path_timeout_ms": 3000, "give_up_ms": 5000, "lease_ms": 9000, "takeover_ms": 20000}  # no server is given up at once


@pytest.mark.parametrize("end", ["it answers", "it is lost"])
def test_no_more_than_a_thousand_deletes_wait_for_a_server_that_hangs(room, end):
    """All of them would be delivered again if the gateway died."""
    _, b, gateway = started(room, **PATIENT)
    tokens = stored(gateway, burst(gateway, "m", UNCONFIRMED_MAX + 200))
    gateway.until(lambda s: all(backup["unanswered"] == 0 for backup in s["backups"]))
    gateway.forget_events()
    b.pause()
    first, may_take = gateway.drain_at_once()
    assert len(first) == gateway.stats()["unconfirmed"] == UNCONFIRMED_MAX and not may_take
    assert gateway.drain_at_once() == ([], False) and gateway.stats()["messages"] == 200 and not gateway.has("may take")
    if end == "it answers":
        b.go_on()
    else:
        b.kill()
    gateway.wait("may take")
    assert sorted(first + gateway.drain()) == sorted(tokens)
    gateway.until(lambda s: s["unconfirmed"] == 0 and s["messages"] == 0)


def test_while_no_server_is_there_deliveries_go_on_without_a_bound(room):
    """Of a gateway that is alone: nobody could confirm them, and the mail would wait for nothing."""
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", UNCONFIRMED_MAX + 200))
    for server in (a, b):
        server.kill()
    gateway.until(lambda s: all(backup["state"] == "away" for backup in s["backups"]))
    assert sorted(gateway.drain()) == sorted(tokens)
    assert gateway.stats()["unconfirmed"] == len(tokens)


def test_the_servers_see_no_plaintext(room):
    a, _, gateway = started(room)
    gateway.stored("SECRETWORD", "destination.example")
    gateway.ask("retry", gateway.ask("take", "destination.example")["id"], 3600000, "SECRETNOTE")
    gateway.until(lambda s: all(b["unanswered"] == 0 for b in s["backups"]))
    assert a.memory_has("cssl:{test}:items")
    assert not [word for word in ("SECRETWORD", "SECRETNOTE", "destination.example") if a.memory_has(word)]
    dump = a.call("--no-raw", "HGETALL", "cssl:{test}:items") + a.call("--no-raw", "HGETALL", "cssl:{test}:owner")
    assert "SECRETWORD" not in dump and "destination" not in dump and "cssl" not in dump


def test_a_message_comes_in_the_order_of_its_destination_and_waits_for_its_time(room):
    _, _, gateway = started(room)
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
    _, _, gateway = started(room)
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
    _, _, gateway = started(room)
    tokens = [f"m{n}" for n in range(60)]
    for n, token in enumerate(tokens):
        gateway.add(token, f"{n % 7}.example")
    stored(gateway, tokens)
    gateway.kill()
    gateway = room.gateway(deliver="at_once")
    gateway.until(lambda s: s["delivered"] == len(tokens))
    assert sorted(e["token"] for e in gateway.events if e["event"] == "delivered") == sorted(tokens)


def test_messages_whose_key_is_missing_are_kept_until_it_is_there(room):
    a, b, gateway = started(room)
    for token in ("retried", "fresh"):
        gateway.stored(token)
    gateway.ask("retry", gateway.ask("take", "a.example")["id"], 0, "later")
    gateway.until(lambda s: all(b["unanswered"] == 0 for b in s["backups"]))
    gateway.kill()

    gateway = room.gateway(key=f"{OTHER_KEY}\n{KEY}")  # the servers are marked by the first key
    gateway.in_sync(2)
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
    a, b, gateway = started(room)
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


DAMAGE = """local whole = redis.call('HGET', KEYS[1], ARGV[1])
return redis.call('HSET', KEYS[1], ARGV[1], whole:sub(1, -2) .. string.char((whole:byte(-1) + 1) % 256))"""
DIGEST = "return redis.sha1hex(redis.call('HGET', KEYS[1], ARGV[1]) or '')"


@pytest.mark.parametrize("at", (0, 1))
def test_a_message_of_which_one_server_has_a_damaged_copy_is_delivered(room, at):
    *servers, gateway = started(room)
    where = 1, "cssl:{test}:items", f"m{gateway.stored('whole'):016x}"
    gateway.kill()
    whole = servers[at].call("EVAL", DIGEST, *where)
    servers[at].call("EVAL", DAMAGE, *where)

    gateway = room.gateway()
    gateway.in_sync(2)
    if at == 0:  # it shows its messages, and the other one only names them
        wait_until(lambda: servers[at].call("EVAL", DIGEST, *where) == whole, patience(5))
        assert "a damaged copy of an item is replaced" in gateway.log.read_text()
    assert gateway.drain() == ["whole"]
    wait_until(lambda: servers[0].items() == servers[1].items() == 0, patience(5))


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
    a, b, gateway = started(room, decided_s=1)
    assert gateway.ask("decide", "0a1b/1", "550")["result"] == 0
    wait_until(lambda: gateway.ask("decided", "0a1b/1") == {"result": 0, "reply": "550"}, patience(5))
    wait_until(lambda: gateway.ask("decided", "0a1b/1")["result"] != 0, patience(10))
    wait_until(lambda: a.items() == b.items() == 0, patience(5))


DAY_S = 86400


@pytest.fixture(name="set_clock")
def _set_clock(tmp_path, monkeypatch, test_points):
    """set_clock(seconds): the wall clock of gateways that start from now on, and of those that run since, is so far off."""
    rules = tmp_path / "faults"

    def to(seconds):
        fresh = rules.with_suffix(".new")
        fresh.write_text(f"clock offset {seconds}\n")
        fresh.replace(rules)

    to(0)
    monkeypatch.setenv("CSSL_FAULTS", str(rules))
    return to


@pytest.mark.parametrize("by", [DAY_S, -DAY_S])
def test_a_clock_that_is_set_changes_no_wait_and_no_age(room, set_clock, by):
    _, _, gateway = started(room, decided_s=3600)
    assert gateway.ask("decide", "0a1b/1", "550")["result"] == 0
    soon, late = gateway.stored("soon"), gateway.stored("late")
    for identity, wait_ms in ((soon, 4000), (late, 3600 * 1000)):
        gateway.ask("take", "a.example")
        assert gateway.ask("retry", identity, wait_ms, "note")["result"] == 0
    set_clock(by)
    assert wait_until(lambda: gateway.ask("take", "a.example").get("token"), patience(15), "the first message") == "soon"
    assert gateway.ask("take", "a.example").get("token") is None
    assert gateway.ask("decided", "0a1b/1") == {"result": 0, "reply": "550"}
    gateway.kill()


def test_a_gateway_whose_clock_is_behind_puts_no_message_off_for_longer(room, set_clock):
    set_clock(DAY_S)
    _, _, gateway = started(room)
    identity = gateway.stored("one")
    gateway.ask("take", "a.example")
    assert gateway.ask("retry", identity, 1000, "note")["result"] == 0
    gateway.until(lambda s: all(b["unanswered"] == 0 for b in s["backups"]))
    gateway.kill()
    set_clock(0)
    gateway = room.gateway(defer_most_ms=2000)
    gateway.in_sync(2)
    wait_until(lambda: gateway.ask("take", "a.example").get("token") == "one", patience(15), "the message is due")


NONE, UNDECIDED, FORGOTTEN, FORGOTTEN_HERE = 4, 6, 7, 8  # enum queue_answer


def _decided(gateway, name):
    return wait_until(lambda: (answer := gateway.ask("decided", name))["result"] != UNDECIDED and answer, patience(5), "a decision")


def test_of_too_many_decided_transactions_the_oldest_are_forgotten(room):
    """And nobody is told any more that one which is not known never was, until those would have been forgotten anyway."""
    a, _, gateway = started(room, decided_max=2, decided_s=6)
    for n in range(2):
        assert gateway.ask("decide", f"0a1b/{n}", "550")["result"] == 0
        assert _decided(gateway, f"0a1b/{n}")["reply"] == "550"
    assert _decided(gateway, "0a1b/9")["result"] == NONE
    gateway.stored("named", "a.example", 10, "0a1b/7", "250-ok")
    assert _decided(gateway, "0a1b/0")["result"] == FORGOTTEN_HERE
    assert _decided(gateway, "0a1b/1")["reply"] == "550" and _decided(gateway, "0a1b/7")["reply"] == "250-ok"
    assert gateway.stats()["decided_forgotten"] == 1 and gateway.stats()["decided"] == 2
    wait_until(lambda: a.items() == 3, patience(5), "two decisions and a message")
    wait_until(lambda: gateway.ask("decided", "0a1b/0")["result"] == NONE, patience(20), "their time is over")


def test_what_a_gateway_before_decided_is_unknown_when_it_was_forgotten(room):
    _, _, gateway = started(room, decided_max=2)
    gateway.ask("decide", "0a1b/1", "550")
    _decided(gateway, "0a1b/1")
    gateway.kill()
    gateway = room.gateway(decided_max=2)
    gateway.in_sync(2)
    assert _decided(gateway, "0a1b/1")["reply"] == "550" and _decided(gateway, "0a1b/2")["result"] == NONE
    for n in range(2):
        assert gateway.ask("decide", f"0c1d/{n}", "550")["result"] == 0
        _decided(gateway, f"0c1d/{n}")
    assert _decided(gateway, "0a1b/1")["result"] == FORGOTTEN


def test_a_transaction_is_unknown_while_the_server_that_may_have_it_is_apart(room):
    """A question about it would be answered with "never", and its sender would send it again."""
    a, b, gateway = started(room)
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    gateway.stored("one", "a.example", 10, "0a1b/7", "250-ok")
    gateway.kill()
    a.pause()
    b.go_on()
    gateway = room.gateway()
    gateway.in_sync(1)
    assert _decided(gateway, "0a1b/7")["result"] == FORGOTTEN
    a.go_on()
    gateway.in_sync(2)
    assert _decided(gateway, "0a1b/7")["reply"] == "250-ok" and _decided(gateway, "0a1b/8")["result"] == NONE


def test_a_bounce_stores_its_notice_before_the_message_goes(room):
    a, _, gateway = started(room)
    identity = gateway.stored("failed")
    gateway.ask("take", "a.example")
    assert gateway.ask("bounce", identity, "notice", "sender.example", 500)["result"] == 0
    assert gateway.until(lambda s: s["messages"] == 1)
    assert gateway.drain("sender.example") == ["notice"]
    wait_until(lambda: a.items() == 0, patience(5))


def test_a_message_whose_notice_is_refused_keeps_what_became_of_its_recipients(room):
    a, _, gateway = started(room)
    identity = gateway.stored("failed")
    gateway.ask("take", "a.example")
    a.call("CONFIG", "SET", "maxmemory", "1")
    assert gateway.ask("bounce", identity, "notice", "sender.example", 500, "delivered-failed")["result"] == 0
    wait_until(lambda: gateway.ask("try", identity)["result"] == 0, patience(10), "the message is back")
    again = gateway.ask("take", "a.example")
    assert (again["token"], again["note"], again["attempts"]) == ("failed", "delivered-failed", 1)
    assert gateway.stats()["messages"] == 1


def test_stored_mail_has_a_bound_in_memory(room):
    """Above it mail is refused and the port closed, until a tenth is free; decisions yield, notices and what is read back do not."""
    _, _, gateway = started(room, memory_max=90_000)
    for n in range(50):
        gateway.ask("decide", f"0a1b/{n}", "550")
    gateway.until(lambda s: s["decided"] == 50)
    for n in range(8):
        gateway.stored(f"m{n}", "a.example", 10_000)
    assert 0 < gateway.stats()["decided"] < 50
    gateway.forget_events()
    gateway.add("more", "a.example", 20_000)
    assert gateway.wait("not added", token="more")["error"] == 3
    gateway.wait("unready")
    assert gateway.stats()["decided_forgotten"] < 50  # all of them would not be enough
    taken = gateway.ask("take", "a.example")["id"]
    assert gateway.ask("bounce", taken, "notice", "sender.example", 12_000)["result"] == 0
    gateway.until(lambda s: all(b["unanswered"] == 0 for b in s["backups"]))
    gateway.kill()
    gateway = room.gateway(memory_max=50_000)
    gateway.in_sync(2)
    gateway.wait("unready")
    assert gateway.stats()["memory"] > 50_000
    assert gateway.drain("sender.example") == ["notice"] and len(gateway.drain()) == 7
    gateway.wait("ready")
    wait_until(lambda: "has memory for mail again" in gateway.log.read_text(), patience(5))
    gateway.stored("again", "a.example", 10_000)


def test_states_that_a_crash_would_forget_are_counted(room):
    """Recipients that have the message would get it again."""
    a, _, gateway = started(room)
    identities = [gateway.stored(f"m{n}") for n in range(3)]
    for _ in identities:
        gateway.ask("take", "a.example")
    a.pause()
    for identity in identities:
        assert gateway.ask("retry", identity, 60_000, "delivered-open")["result"] == 0
    assert gateway.stats()["states_unconfirmed"] == 3
    a.go_on()
    gateway.until(lambda s: s["states_unconfirmed"] == 0)


def test_a_line_that_is_full_refuses(room):
    _, _, gateway = started(room, messages_max=2, destinations_max=1)
    gateway.stored("one")
    gateway.stored("two")
    gateway.add("three")
    assert gateway.wait("not added", token="three")["error"] == 3
    gateway.add("four", "b.example")
    assert gateway.wait("not added", token="four")["error"] == 3


def test_a_destination_without_messages_makes_room_for_another(room):
    _, _, gateway = started(room, destinations_max=2)
    for n in range(10):
        gateway.stored(f"m{n}", f"{n}.example")
        assert gateway.drain(f"{n}.example") == [f"m{n}"]


@pytest.mark.alone
@pytest.mark.plain
def test_half_a_million_messages_are_read_back_sooner_than_stored_and_within_their_memory(room):
    _, _, gateway = started(room, **PATIENT)
    empty_kb = gateway.stats()["rss_kb"]
    gateway.send("load", 500000, 1024, "a.example", 4000)
    loaded = gateway.wait("loaded", 120)
    per_message = (gateway.stats()["rss_kb"] - empty_kb) * 1024 / 500000
    gateway.kill()
    gateway = room.gateway(**PATIENT)
    gateway.in_sync(2, 60)
    stats = gateway.stats()
    print(f"stored in {loaded['ms']} ms, read back in {stats['recovery_ms']} ms, {per_message:.0f} bytes a message")
    assert stats["recovered"] == 500000
    assert stats["recovery_ms"] <= loaded["ms"], "slower than it was to store them"  # on this machine, whatever else it does
    assert not FULL or stats["recovery_ms"] <= 5900  # absolute: of a run whose machine does nothing else
    assert per_message <= 2048
