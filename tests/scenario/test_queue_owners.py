"""Several gateways for one mail queue: one owns it, and a gateway that was replaced changes and delivers nothing more."""

import signal
import time

import pytest

from tests.lib.build import patience
from tests.lib.mail_queue import Path
from tests.lib.processes import stop
from tests.lib.queue_room import burst, started, stored
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


def test_a_standby_takes_over_when_the_owner_is_gone(room):
    a, _, gateway = started(room, role="owner")
    standby = room.gateway(role="standby")
    tokens = stored(gateway, burst(gateway, "m"))
    renewals = int(a.owner("renewals") or 0)  # four a second, so for longer than takeover_ms
    wait_until(lambda: int(a.owner("renewals") or 0) > renewals + 30, patience(30))
    assert standby.stats()["state"] == "watching"
    gateway.kill()
    standby.in_sync(2)
    assert standby.drain() == tokens


@pytest.mark.parametrize("role", ["standby", "owner"])
def test_a_gateway_that_was_paused_itself_leaves_a_living_owner_alone(room, role):
    """What it knows of the owner is as old as the pause, which is longer than takeover_ms."""
    a, _, gateway = started(room, role="owner")
    other = room.gateway(role=role)
    other.until(lambda s: s["state"] == "watching")
    renewals = int(a.owner("renewals") or 0)
    wait_until(lambda: int(a.owner("renewals") or 0) > renewals + 2, patience(10))
    stop(other.process.pid)
    renewals = int(a.owner("renewals"))
    wait_until(lambda: int(a.owner("renewals")) > renewals + 30, patience(40))  # four a second
    other.process.send_signal(signal.SIGCONT)
    wait_until(lambda: int(a.owner("renewals")) > renewals + 40, patience(20))
    assert other.stats()["state"] == "watching" and gateway.stats()["state"] == "active"
    assert a.owner("epoch") == str(gateway.stats()["epoch"]) and not gateway.has("deposed")


def test_a_second_owner_leaves_the_first_one_alone_until_it_is_ordered(room):
    """Else two gateways with the role of owner would replace each other again and again."""
    _, _, first = started(room, role="owner")
    second = room.gateway(role="owner")
    second.until(lambda s: s["state"] == "watching")
    tokens = stored(first, burst(first, "m", 20))
    assert first.stats()["state"] == "active" and len(tokens) == 20 and not first.has("deposed")
    second.ask("takeover")
    second.in_sync(2)
    first.wait("deposed")
    assert second.drain() == tokens


def test_a_second_owner_takes_over_when_the_first_one_is_gone(room):
    _, _, first = started(room, role="owner")
    second = room.gateway(role="owner")
    second.until(lambda s: s["state"] == "watching")
    tokens = stored(first, burst(first, "m", 20))
    first.kill()
    second.in_sync(2)
    assert second.drain() == tokens


def test_a_paused_owner_that_was_replaced_writes_and_delivers_nothing_more(room):
    a, _, old = started(room, role="owner")
    tokens = stored(old, burst(old, "m", 100))
    standby = room.gateway(role="standby")
    wait_until(lambda: old.ask("may")["result"], patience(5))
    stop(old.process.pid)
    standby.in_sync(2)
    assert standby.drain() == tokens
    wait_until(lambda: a.items() == 0, patience(5))
    old.send("add", "late", "a.example", 100)
    old.send("drain", "a.example")
    old.process.send_signal(signal.SIGCONT)
    assert old.answer(patience(10))["drained"] == []
    old.wait("deposed")
    assert not old.has("stored", token="late")
    assert old.ask("may")["result"] == 0
    assert a.items() == 0 and standby.stats()["in_sync"] == 2


def test_a_paused_owner_does_not_claim_servers_that_came_back_empty(room):
    a, b, gateway = started(room, role="owner")
    gateway.stored("one")
    stop(gateway.process.pid)
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
    a, b, gateway = started(room, role="owner")
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


def test_a_gateway_that_is_alone_delivers_from_memory_and_fills_servers_that_came_back_empty(room):
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", 20))
    a.kill()
    b.kill()
    gateway.wait("unready")
    gateway.until(lambda s: s["lease_left_ms"] < 0)
    wait_until(lambda: gateway.ask("may")["result"], patience(5), "deliveries from memory")
    assert gateway.ask("drain", "a.example", 5)["drained"] == tokens[:5]
    a.start()
    b.start()
    gateway.in_sync(2)
    assert a.items() == b.items() == 15
    assert gateway.drain() == tokens[5:]


def test_a_gateway_that_is_alone_goes_on_with_a_server_that_came_back_empty_without_the_one_that_was_complete_last(room):
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "m", 20))
    a.kill()
    gateway.in_sync(1)
    b.kill()
    gateway.wait("unready")
    a.start()
    gateway.in_sync(1)
    gateway.stored("later")
    gateway.kill()
    gateway = room.gateway()
    gateway.in_sync(1)
    b.start()
    gateway.in_sync(2)
    assert gateway.drain() == [*tokens, "later"]


def test_a_gateway_that_is_alone_waits_at_its_start_for_the_server_that_it_went_on_with(room):
    """The other one, which was complete before, does not know of it, and has messages that were delivered since."""
    a, b, gateway = started(room)
    a.pause()
    gateway.until(lambda s: s["in_sync"] == 1 and s["backups"][0]["state"] == "away")
    tokens = stored(gateway, burst(gateway, "m", 20))
    b.pause()
    gateway.wait("unready")
    a.go_on()
    gateway.in_sync(1)
    gateway.stored("later")
    wait_until(lambda: gateway.ask("may")["result"], patience(10), "lease")
    assert gateway.ask("drain", "a.example", 10)["drained"] == tokens[:10]
    gateway.until(lambda s: s["unconfirmed"] == 0)
    gateway.kill()
    a.pause()
    b.go_on()
    gateway = room.gateway(absent_ms=60000)
    gateway.until(lambda s: s["backups"][0]["paths"][0]["timeouts"] >= 3)  # longer than an owner waits
    assert gateway.stats()["state"] == "looking"
    a.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == [*tokens[10:], "later"]


def test_a_gateway_that_is_alone_and_was_paused_delivers_nothing_after_its_successor(room):
    a, b, old = started(room)
    tokens = stored(old, burst(old, "m", 20))
    a.pause()
    b.pause()
    old.until(lambda s: [b["state"] for b in s["backups"]] == ["away", "away"] and s["lease_left_ms"] < 0)
    assert old.ask("may")["result"] == 1
    stop(old.process.pid)
    a.go_on()
    b.go_on()
    new = room.gateway()
    new.in_sync(2)
    assert new.drain() == tokens
    old.send("drain", "a.example")
    old.process.send_signal(signal.SIGCONT)
    assert old.answer(patience(10))["drained"] == []
    old.wait("deposed")


def test_an_owner_that_sees_one_server_only_leaves_the_queue_to_a_gateway_that_it_does_not_see(room):
    a, b = room.redis()
    ours, theirs = [room.path(s) for s in (a, b)], [room.path(s) for s in (a, b)]
    first = room.gateway([[p.address] for p in ours], role="owner")
    first.in_sync(2)
    standby = room.gateway([[p.address] for p in theirs], role="standby")
    standby.until(lambda s: s["state"] == "watching")
    tokens = stored(first, burst(first, "m", 20))
    first.kill()
    standby.in_sync(2)
    theirs[0].hush()
    standby.in_sync(1)
    ours[1].hush()
    first = room.gateway([[p.address] for p in ours], role="owner")
    wait_until(lambda: "queue waits for a backup" in first.log.read_text(), patience(20), "its complaint")
    first.until(lambda s: s["backups"][1]["paths"][0]["timeouts"] >= 5)  # longer than absent_ms
    assert first.stats()["state"] == "looking" and not first.has("ready")
    assert standby.drain() == tokens
    ours[1].open()
    first.until(lambda s: s["state"] == "watching")
    theirs[0].open()
    standby.in_sync(2)


def test_servers_that_were_only_silent_are_resumed_after_the_lease(room):
    a, b, gateway = started(room, role="owner")
    gateway.stored("one")
    a.pause()
    b.pause()
    gateway.until(lambda s: s["lease_left_ms"] < 0)
    a.go_on()
    b.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == ["one"]


def test_a_member_that_was_away_at_the_start_is_united_when_it_comes_back(room):
    a, b, gateway = started(room)
    both = stored(gateway, burst(gateway, "both", 50))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    alone = stored(gateway, burst(gateway, "alone", 50))
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
    a, b, gateway = started(room)
    both = stored(gateway, burst(gateway, "both", 50))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    alone = stored(gateway, burst(gateway, "alone", 50))
    gateway.kill()
    a.pause()
    b.go_on()
    more = []
    for turn in range(3):
        gateway = room.gateway()
        gateway.in_sync(1)
        more += stored(gateway, burst(gateway, f"more{turn}", 10))
        gateway.kill()
    a.go_on()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert sorted(gateway.drain()) == sorted(both + alone + more)


def test_messages_that_were_delivered_without_an_absent_member_do_not_come_back_at_a_later_start(room):
    """The backups remember them: the memory of the gateway that delivered them is gone."""
    a, b, gateway = started(room)
    both = stored(gateway, burst(gateway, "both", 50))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    alone = stored(gateway, burst(gateway, "alone", 50))
    gateway.kill()
    a.pause()
    b.go_on()
    delivered = []
    for count in (20, 10):
        gateway = room.gateway()
        gateway.in_sync(1)
        wait_until(lambda g=gateway: g.ask("may")["result"], patience(10), "lease")
        delivered += gateway.ask("drain", "a.example", count)["drained"]
        gateway.until(lambda s: s["unconfirmed"] == 0)
        gateway.kill()
    a.go_on()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert sorted(delivered + gateway.drain()) == sorted(both + alone)
    wait_until(lambda: a.items() == b.items() == 0, patience(10), "no message and no grave")


@pytest.mark.parametrize("full", ["one", "both"])
def test_messages_that_come_back_to_a_full_server_are_delivered(room, full):
    """If both are full, none can be completed. But both are ours, so mail leaves, and makes room."""
    a, b, gateway = started(room, role="owner")
    tokens = stored(gateway, burst(gateway, "both", 20))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    tokens += stored(gateway, burst(gateway, "a", 20))
    gateway.kill()
    a.pause()
    b.go_on()
    slow = room.path(a, 50 << 10)  # so the other one refuses its messages before it is filled
    gateway = room.gateway([[slow.address], [b.socket]], role="owner", path_timeout_ms=1000)
    gateway.until(lambda s: s["backups"][1]["state"] == "seen")
    gateway.ask("takeover")
    gateway.in_sync(1)
    tokens += stored(gateway, burst(gateway, "b", 20))
    b.call("CONFIG", "SET", "maxmemory", "1")
    a.go_on()
    if full == "both":
        a.call("CONFIG", "SET", "maxmemory", "1")
    gateway.until(lambda s: s["messages"] == len(tokens))
    gateway.until(lambda s: s["backups"][1]["given_up"])
    gateway.in_sync(full == "one")
    renewals = int(a.owner("renewals") or 0)
    wait_until(lambda: int(a.owner("renewals") or 0) > renewals + 20, patience(40))  # four a second: longer than the lease
    assert gateway.stats()["in_sync"] == (full == "one")
    assert sorted(gateway.drain()) == sorted(tokens)
    gateway.in_sync(2)
    wait_until(lambda: a.items() == b.items() == 0, patience(10), "no message")


def _left_behind(room):
    """A gateway whose server a was left behind, and then lost server b, which alone was complete. What both have, and what b has."""
    a, b, gateway = started(room, role="owner")
    both = stored(gateway, burst(gateway, "both", 20))
    a.pause()
    gateway.until(lambda s: s["in_sync"] == 1 and s["backups"][0]["state"] == "away")
    later = stored(gateway, burst(gateway, "later", 20))
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


def test_messages_that_a_server_left_behind_took_alone_are_united_later(room):
    """The gateway that starts without it cannot know that it went on: only its own marker says so."""
    a, b, gateway, tokens = _left_behind(room)
    gateway.ask("takeover")
    gateway.in_sync(1)
    alone = stored(gateway, burst(gateway, "alone", 20))
    gateway.kill()
    a.pause()
    b.go_on()
    gateway = room.gateway()
    gateway.in_sync(1)
    assert gateway.drain() == tokens
    a.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == alone  # and none of those that were delivered meanwhile


def _left_behind_by_a_server_that_restarted(room):
    """Server b holds 50 messages, and is left behind. Then 30 of them are delivered, and server a restarts and is filled. The messages
    that are left."""
    a, b, gateway = started(room)
    tokens = stored(gateway, burst(gateway, "both", 50))
    b.pause()
    gateway.until(lambda s: s["in_sync"] == 1 and s["backups"][1]["state"] == "away")
    assert gateway.ask("drain", "a.example", 30)["drained"] == tokens[:30]
    gateway.until(lambda s: s["unconfirmed"] == 0)
    a.kill()
    gateway.wait("unready")
    a.start()
    gateway.in_sync(1)
    gateway.kill()
    return a, b, tokens[30:]


def test_a_server_that_one_left_behind_that_restarted_brings_nothing_back_at_the_start(room):
    a, b, tokens = _left_behind_by_a_server_that_restarted(room)
    b.go_on()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert a.items() == b.items() == len(tokens)
    assert gateway.drain() == tokens


@pytest.mark.parametrize("gateways", [1, 2])
def test_a_server_that_one_left_behind_that_restarted_brings_nothing_back_late(room, gateways):
    a, b, tokens = _left_behind_by_a_server_that_restarted(room)
    gateway = room.gateway()
    gateway.in_sync(1)
    if gateways == 2:
        gateway.kill()
        gateway = room.gateway()
        gateway.in_sync(1)
    b.go_on()
    gateway.in_sync(2)
    assert a.items() == b.items() == len(tokens)
    assert gateway.drain() == tokens


def _marked_without_an_answer(room, silence):
    """Server a restarts while b is silent: a marker is sent to b. It restarts once more before 30 of 50 messages go. The messages, and
    the version that b had before."""
    a, b = room.redis()
    path = room.path(b)
    gateway = room.gateway([[a.socket], [path.address]], path_timeout_ms=4000, give_up_ms=5000, lease_ms=6000, takeover_ms=15000)
    gateway.in_sync(2)
    tokens = stored(gateway, burst(gateway, "m", 50))
    version = int(b.owner("version"))
    silence(path)
    a.kill()
    a.start()
    gateway.until(lambda s: s["in_sync"] == 1 and s["backups"][1]["state"] == "away")
    gateway.forget_events()
    a.kill()
    gateway.wait("unready")
    a.start()
    gateway.in_sync(1)
    wait_until(lambda: gateway.ask("may")["result"], patience(10), "lease")
    assert gateway.ask("drain", "a.example", 30)["drained"] == tokens[:30]
    gateway.until(lambda s: s["unconfirmed"] == 0)
    gateway.kill()
    return a, b, tokens, version


@pytest.mark.parametrize("comes", ["at_the_start", "late"])
def test_a_server_that_executed_a_marker_whose_answer_was_lost_brings_nothing_back(room, comes):
    a, b, tokens, version = _marked_without_an_answer(room, Path.hush_answers)
    assert int(b.owner("version")) > version
    if comes == "late":
        b.pause()
    gateway = room.gateway()
    gateway.in_sync(1 if comes == "late" else 2)
    b.go_on()
    gateway.in_sync(2)
    assert a.items() == b.items() == 20
    assert gateway.drain() == tokens[30:]


@pytest.mark.parametrize("silence", [Path.hush, Path.hush_answers])
def test_a_server_that_went_on_behind_a_marker_whose_answer_was_lost_is_united(room, silence):
    """A server that never got the marker has one of the same version from the gateway that goes on with it."""
    a, b, tokens, version = _marked_without_an_answer(room, silence)
    assert (int(b.owner("version")) > version) == (silence is Path.hush_answers)
    a.pause()
    gateway = room.gateway()
    gateway.in_sync(1)
    more = stored(gateway, burst(gateway, "more", 10))
    gateway.kill()
    a.go_on()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert set(gateway.drain()) >= {*tokens[30:], *more}


def _two_branches(room):
    """Server a went on alone, then b without it; neither knows of the other's messages. Their gateways are gone, a runs and b does
    not answer. The messages of each."""
    a, b, gateway = started(room)
    first = stored(gateway, burst(gateway, "both", 20))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    first += stored(gateway, burst(gateway, "a", 20))
    gateway.kill()
    a.pause()
    b.go_on()
    gateway = room.gateway()
    gateway.in_sync(1)
    second = stored(gateway, burst(gateway, "b", 20))
    gateway.kill()
    b.pause()
    a.go_on()
    return a, b, first, second


def test_messages_of_a_branch_that_no_marker_names_are_united_late(room):
    _, b, first, second = _two_branches(room)
    for turn in range(2):  # the second one has a higher epoch than b
        gateway = room.gateway()
        gateway.in_sync(1)
        first += stored(gateway, burst(gateway, f"turn{turn}", 10))
        if turn == 0:
            gateway.kill()
    b.go_on()
    gateway.in_sync(2)
    assert sorted(gateway.drain()) == sorted(first + second)


def test_messages_of_a_branch_that_no_marker_names_are_united_at_the_start(room):
    _, b, first, second = _two_branches(room)
    gateway = room.gateway()
    gateway.in_sync(1)
    first += stored(gateway, burst(gateway, "more", 10))
    gateway.kill()
    b.go_on()
    gateway = room.gateway()
    gateway.in_sync(2)
    assert sorted(gateway.drain()) == sorted(first + second)


def test_servers_that_another_gateway_began_anew_are_united_when_an_operator_orders_it(room):
    """Both servers came back empty, and each gateway acknowledged messages that the other one does not know."""
    a, b, old = started(room, role="owner")
    kept = stored(old, burst(old, "old", 20))
    a.kill()
    b.kill()
    old.until(lambda s: s["lease_left_ms"] < 0)
    stop(old.process.pid)
    a.start()
    b.start()
    new = room.gateway()
    new.in_sync(2)
    kept += stored(new, burst(new, "new", 20))
    new.kill()
    old.process.send_signal(signal.SIGCONT)
    old.until(lambda s: [b["state"] for b in s["backups"]] == ["seen", "seen"])
    old.ask("takeover")
    old.in_sync(2)
    assert a.items() == b.items() == len(kept)
    assert sorted(old.drain()) == sorted(kept)


def _lost_while_it_is_united(room):
    """Server a alone has some messages; it is killed while a gateway reads them that went on with b. How many the gateway knows."""
    a, b, gateway = started(room)
    stored(gateway, burst(gateway, "both", 20))
    b.pause()
    gateway.until(lambda s: s["backups"][1]["state"] == "away")
    stored(gateway, burst(gateway, "alone", 400))
    gateway.kill()
    a.pause()
    b.go_on()
    slow = room.path(a, 100 << 10)
    gateway = room.gateway([[slow.address], [b.socket]], path_timeout_ms=1000)
    gateway.in_sync(1)
    a.go_on()
    gateway.until(lambda s: s["messages"] > 20)
    a.kill()
    known = gateway.until(lambda s: s["backups"][0]["state"] == "away")["messages"]
    assert known < 420
    return a, b, gateway, known


def test_what_was_read_of_a_server_that_restarts_empty_is_delivered(room):
    a, b, gateway, known = _lost_while_it_is_united(room)
    a.start()
    gateway.in_sync(2)
    assert a.items() == b.items() == known
    assert len(gateway.drain()) == known


def test_what_was_read_of_a_server_that_is_gone_survives_the_gateway(room):
    _, b, gateway, known = _lost_while_it_is_united(room)
    wait_until(lambda: b.items() == known, patience(10))
    gateway.kill()
    gateway = room.gateway()
    gateway.in_sync(1)
    assert len(gateway.drain()) == known


@pytest.mark.parametrize("starts", [(1, 1), (2, 1), (1, 3)])
def test_an_order_does_not_delete_what_another_gateway_took_meanwhile(room, starts):
    """Both servers came back empty, and another gateway began anew, while the first one, whose messages are in its memory only, waited
    for an order. @starts: how often each was started, so one has the higher epoch or none has."""
    a, b = room.redis()
    for turn in range(starts[0]):
        if turn:
            old.kill()
        old = room.gateway(role="owner")
        old.in_sync(2)
    kept = stored(old, burst(old, "old", 20))
    a.kill()
    b.kill()
    old.until(lambda s: s["lease_left_ms"] < 0)
    a.start()
    b.start()
    old.until(lambda s: [b["state"] for b in s["backups"]] == ["seen", "seen"])
    for turn in range(starts[1]):
        new = room.gateway(role="owner")
        new.in_sync(2)
        kept += stored(new, burst(new, f"new{turn}", 20))
        new.kill()
    old.ask("takeover")
    old.in_sync(2)
    assert a.items() == b.items() == len(kept)
    assert sorted(old.drain()) == sorted(kept)


@pytest.mark.parametrize("role", ["standby", "owner"])
def test_an_owner_that_was_cut_off_has_time_to_fill_a_server_that_came_back_empty(room, role):
    """The owner and server a do not see b, and the other gateway sees b only. Then a restarts, and the cut ends: what the owner took
    meanwhile is in its memory only."""
    a, b = room.redis()
    ours, theirs = room.path(b), room.path(a)
    gateway = room.gateway([[a.socket], [ours.address]], role="owner")
    gateway.in_sync(2)
    theirs.hush()
    if role == "standby":
        other = room.gateway([[theirs.address], [b.socket]], role=role)
        other.until(lambda s: [b["state"] for b in s["backups"]] == ["away", "seen"])
    ours.hush()
    gateway.in_sync(1)
    tokens = stored(gateway, burst(gateway, "cut", 20))
    renewals = int(a.owner("renewals") or 0)
    wait_until(lambda: int(a.owner("renewals") or 0) > renewals + 30, patience(30))  # four a second, so for longer than takeover_ms
    a.kill()
    gateway.until(lambda s: s["lease_left_ms"] < 0)
    a.start()
    theirs.open()
    if role == "owner":
        other = room.gateway([[theirs.address], [b.socket]], role=role)
    other.until(lambda s: s["backups"][0]["state"] != "away" and s["backups"][1]["state"] != "away")
    begin = time.monotonic()
    wait_until(lambda: time.monotonic() > begin + 2)
    ours.open()
    gateway.in_sync(2)
    assert not gateway.has("deposed") and other.stats()["state"] == "watching"
    assert a.items() == b.items() == 20 and gateway.drain() == tokens


def test_an_order_goes_on_with_a_server_that_came_back_empty_while_the_other_one_is_absent(room):
    a, b, gateway = started(room, role="owner")
    kept = stored(gateway, burst(gateway, "old", 20))
    gateway.kill()
    b.pause()
    a.kill()
    a.start()
    gateway = room.gateway(role="owner")
    wait_until(lambda: "queue waits for a backup" in gateway.log.read_text(), patience(20), "its complaint")
    assert gateway.stats()["state"] == "looking"
    gateway.ask("takeover")
    gateway.in_sync(1)
    kept += stored(gateway, burst(gateway, "new", 20))
    b.go_on()
    gateway.in_sync(2)
    assert a.items() == b.items() == 40
    assert sorted(gateway.drain()) == sorted(kept)


def test_an_order_at_a_standby_begins_an_empty_queue(room):
    room.redis()
    standby = room.gateway(role="standby")
    wait_until(lambda: "queue waits for its owner" in standby.log.read_text(), patience(20), "its complaint")
    standby.ask("takeover")
    standby.in_sync(2)
    standby.stored("one")
    assert standby.drain() == ["one"]


def test_an_order_keeps_what_a_server_holds_that_was_not_marked(room):
    """It was filled, and the gateway died before it marked it."""
    a, b, gateway = started(room, role="owner")
    kept = stored(gateway, burst(gateway, "m", 20))
    gateway.kill()
    a.call("HDEL", "cssl:{test}:owner", "version", "run_id", "member0", "member1")
    b.kill()
    gateway = room.gateway(role="owner")
    gateway.until(lambda s: s["backups"][0]["state"] == "seen")
    gateway.ask("takeover")
    gateway.in_sync(1)
    assert gateway.drain() == kept


def _began_anew_beside_the_owner(room):
    """The owner's 20 messages were on server b alone, which restarts, and another gateway begins anew there. Server a was left behind, and
    each gateway has a path to it, which is cut."""
    a, b = room.redis()
    ours, theirs = room.path(a), room.path(a)
    owner = room.gateway([[ours.address], [b.socket]], role="owner")
    owner.in_sync(2)
    ours.hush()
    theirs.hush()
    owner.in_sync(1)
    tokens = stored(owner, burst(owner, "m", 20))
    b.kill()
    owner.until(lambda s: s["lease_left_ms"] < 0)
    b.start()
    other = room.gateway([[theirs.address], [b.socket]], role="owner")
    other.until(lambda s: s["backups"][1]["state"] == "seen")
    other.ask("takeover")
    other.in_sync(1)
    wait_until(lambda: "began the queue anew" in owner.log.read_text(), patience(20), "its complaint")
    return owner, ours, other, theirs, tokens


def test_a_server_that_was_left_behind_is_filled_before_its_owner_gives_up(room):
    owner, ours, other, theirs, tokens = _began_anew_beside_the_owner(room)
    ours.open()
    owner.wait("deposed")
    owner.kill()
    theirs.open()
    other.in_sync(2)
    assert other.drain() == tokens


def test_an_owner_keeps_what_a_server_that_was_left_behind_lacks(room):
    """Also if the other gateway claims it first."""
    owner, ours, other, theirs, tokens = _began_anew_beside_the_owner(room)
    theirs.open()
    other.in_sync(2)
    ours.open()
    owner.until(lambda s: [b["state"] for b in s["backups"]] == ["seen", "seen"])
    assert not owner.has("deposed")
    other.kill()
    owner.ask("takeover")
    owner.in_sync(2)
    assert owner.drain() == tokens


def test_an_order_brings_nothing_back_from_an_own_server_that_was_left_behind(room):
    """The order raises the epoch, and that server was claimed before it."""
    a, b = room.redis()
    path = room.path(a)
    owner = room.gateway([[path.address], [b.socket]], role="owner")
    owner.in_sync(2)
    tokens = stored(owner, burst(owner, "m", 20))
    path.hush()
    owner.in_sync(1)
    wait_until(lambda: owner.ask("may")["result"], patience(10), "lease")
    assert owner.ask("drain", "a.example", 10)["drained"] == tokens[:10]
    owner.until(lambda s: s["unconfirmed"] == 0)
    b.kill()
    owner.until(lambda s: s["lease_left_ms"] < 0)
    b.start()
    a.pause()
    other = room.gateway(role="owner")
    other.until(lambda s: s["backups"][1]["state"] == "seen")
    other.ask("takeover")
    other.in_sync(1)
    new = stored(other, burst(other, "new", 5))
    other.kill()
    owner.ask("takeover")
    owner.in_sync(1)
    a.go_on()
    path.open()
    owner.in_sync(2)
    assert a.items() == b.items() == 15
    assert sorted(owner.drain()) == sorted(tokens[10:] + new)


def with_mail_in_memory_only(room):
    """Twenty messages with a 250, whose servers are gone."""
    a, b, gateway = started(room)
    stored(gateway, burst(gateway, "m", 20))
    a.kill()
    b.kill()
    gateway.wait("unready")
    return a, b, gateway


def test_an_orderly_stop_waits_until_a_server_that_came_back_empty_is_filled(room):
    a, b, gateway = with_mail_in_memory_only(room)
    gateway.send("stop", 30000)
    wait_until(lambda: "is=flushing" in gateway.log.read_text(), patience(10))
    a.start()
    b.start()
    assert gateway.process.wait(patience(40)) == 0
    assert max(a.items(), b.items()) == 20
    assert "while no backup is complete" not in gateway.log.read_text()


def test_a_stop_tells_how_many_messages_no_server_may_hold(room):
    *_, gateway = with_mail_in_memory_only(room)
    gateway.send("stop", 300)
    assert gateway.process.wait(patience(20)) == 0
    log = gateway.log.read_text()
    assert "queue stops while no backup is complete" in log and "messages=20" in log


def test_a_transaction_from_before_an_order_without_a_complete_server_is_not_denied(room):
    """The absent server may know it."""
    a, b, gateway = started(room, role="owner")
    assert gateway.ask("decide", "name", "250")["result"] == 0
    gateway.until(lambda s: a.items() == b.items() == 1)
    gateway.kill()
    b.pause()
    a.kill()
    a.start()
    gateway = room.gateway(role="owner")
    gateway.until(lambda s: s["backups"][0]["state"] == "seen")
    gateway.ask("takeover")
    gateway.in_sync(1)
    assert gateway.ask("decided", "name")["result"] == 7  # QUEUE_FORGOTTEN
