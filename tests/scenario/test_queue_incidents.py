"""A mail queue in rare incidents: servers that fall again and again, orders without a complete server, gateways that were replaced."""

import time

import pytest

from tests.lib.build import patience
from tests.lib.mail_queue import Redis
from tests.lib.queue_room import burst, started, stored
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


@pytest.mark.parametrize("role", ["standby", "owner"])
def test_a_server_that_restarts_every_few_seconds_does_not_keep_another_gateway_from_taking_over(room, role):
    """It is up for two seconds of three, and takeover_ms is 6.5 s."""
    _, b, gateway = started(room, role="owner")
    tokens = stored(gateway, burst(gateway, "m", 20))
    if role == "standby":
        other = room.gateway(role=role)
        other.until(lambda s: s["state"] == "watching")
    gateway.kill()
    b.kill()
    if role == "owner":
        other = room.gateway(role=role)
    end = time.monotonic() + patience(30)
    while other.stats()["state"] != "active" and time.monotonic() < end:
        b.start()
        time.sleep(2)
        b.kill()
        time.sleep(1)
    assert other.stats()["state"] == "active", other.log.read_text()[-3000:]
    other.in_sync(1)
    assert "queue waits for its former owner" in other.log.read_text()
    assert other.drain() == tokens


def _ordered(room):
    """A gateway that begins by order with the one server that answers."""
    gateway = room.gateway(role="owner")
    gateway.until(lambda s: "seen" in {b["state"] for b in s["backups"]})
    gateway.ask("takeover")
    gateway.in_sync(1)
    return gateway


def _deliver(gateway, count):
    wait_until(lambda: gateway.ask("may")["result"], patience(10), "lease")
    tokens = gateway.ask("drain", "a.example", count)["drained"]
    gateway.until(lambda s: s["unconfirmed"] == 0)
    return tokens


def test_what_was_delivered_behind_an_order_does_not_come_back_with_a_server_that_was_not_read(room):
    """Server a came back empty and was filled, and the gateway died before it marked it; server b, which was complete, is absent."""
    a, b, gateway = started(room, role="owner")
    kept = stored(gateway, burst(gateway, "m", 20))
    gateway.kill()
    a.call("HDEL", "cssl:{test}:owner", "version", "run_id", "member0", "member1")
    b.call("HSET", "cssl:{test}:owner", "member0", "")
    b.pause()
    gateway = _ordered(room)
    assert _deliver(gateway, 10) == kept[:10]
    gateway.kill()
    gateway = room.gateway(role="owner")
    gateway.in_sync(1)
    assert _deliver(gateway, 5) == kept[10:15]
    gateway.kill()
    gateway = room.gateway(role="owner")
    gateway.in_sync(1)
    b.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == kept[15:]
    wait_until(lambda: a.items() == b.items() == 0, patience(10), "no message and no grave")


def _cut_off(room):
    """An owner with 20 messages on both servers, and its paths to them."""
    a, b = room.redis()
    ours = [room.path(a), room.path(b)]
    owner = room.gateway([[p.address] for p in ours], role="owner")
    owner.in_sync(2)
    return a, b, ours, owner


def _restart_one_by_one(servers, gateway):
    for server in servers:
        server.kill()
        gateway.in_sync(1)
        server.start()
        gateway.in_sync(2)


@pytest.mark.parametrize("owners", [1, 2])
def test_a_gateway_that_was_replaced_ends_also_if_both_servers_restarted_since(room, owners):
    """Its mail was delivered. If it took the other one for a gateway that began anew, an order would deliver all of it again."""
    a, b, ours, owner = _cut_off(room)
    tokens = stored(owner, burst(owner, "m", 20))
    for path in ours:
        path.hush()
    standby = room.gateway(role="standby")
    standby.in_sync(2)
    assert standby.drain() == tokens
    _restart_one_by_one((a, b), standby)
    if owners == 2:
        standby.kill()
        standby = room.gateway(role="owner")
        standby.in_sync(2)
        _restart_one_by_one((a, b), standby)
    for path in ours:
        path.open()
    owner.wait("deposed")
    assert "began the queue anew" not in owner.log.read_text()
    assert standby.stats()["in_sync"] == 2


@pytest.mark.parametrize("release", ["this", "before"])
def test_a_gateway_whose_server_was_left_behind_keeps_what_only_the_other_one_had(room, release):
    """The other gateway reads the marker of this one, but not its last. One of the release before does not tell what it read."""
    a, b, ours, owner = _cut_off(room)
    first = stored(owner, burst(owner, "first", 5))
    ours[0].hush()
    owner.in_sync(1)
    tokens = stored(owner, burst(owner, "later", 20))
    ours[1].hush()
    b.kill()
    b.start()
    other = room.gateway(role="owner")
    other.in_sync(2)
    assert other.drain() == first
    _restart_one_by_one((a, b), other)
    for server in (a, b) if release == "before" else ():
        server.call("HDEL", "cssl:{test}:owner", "owners", "by", "by_version")
    for path in ours:
        path.open()
    wait_until(lambda: "began the queue anew" in owner.log.read_text(), patience(20), "its complaint")
    assert not owner.has("deposed")
    other.kill()
    owner.ask("takeover")
    owner.in_sync(2)
    assert set(owner.drain()) >= set(tokens)


def test_a_new_server_takes_the_place_of_one_that_is_lost(room):
    """Its address is changed in the file, and the gateway is started again. Nobody waits for the lost one."""
    a, b, gateway = started(room, role="owner")
    tokens = stored(gateway, burst(gateway, "m", 20))
    b.kill()
    gateway.in_sync(1)
    gateway.stop()
    new = Redis(room.folder, "c")
    room.servers.append(new)
    gateway = room.gateway([[a.socket], [new.socket]], role="owner")
    gateway.in_sync(2)
    assert new.items() == len(tokens)
    assert gateway.drain() == tokens
