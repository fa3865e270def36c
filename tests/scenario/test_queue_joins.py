"""The network of a mail queue parts while a server comes to count: one gateway owns the queue, or none."""

import pytest

from tests.lib.build import patience
from tests.lib.mail_queue import Path
from tests.lib.queue_room import burst, stored
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

SLOW = {"give_up_ms": 4000, "lease_ms": 6000, "takeover_ms": 13000}  # a server can start and be filled before another one is given up


def _parted_while_a_server_joins(room, silence):
    """The owner does not reach server a any more when b, which came back empty, is filled. The standby reaches a only."""
    a, b = room.redis()
    ours, theirs = room.path(a), room.path(b)
    owner = room.gateway([[ours.address], [b.socket]], role="owner", **SLOW)
    owner.in_sync(2)
    tokens = stored(owner, burst(owner, "m", 20))
    standby = room.gateway([[a.socket], [theirs.address]], role="standby", **SLOW)
    standby.until(lambda s: s["state"] == "watching")
    b.kill()
    owner.in_sync(1)
    tokens += stored(owner, burst(owner, "without", 1))  # a has the marker that counts b no more, which came before it
    theirs.hush()
    silence(ours)
    b.start()
    wait_until(lambda: "lost before it knew of this one" in owner.log.read_text(), patience(20), "b to be filled, and a to be given up")
    return ours, theirs, owner, standby, tokens


def test_a_server_does_not_count_before_the_other_one_knows_it(room):
    ours, theirs, owner, standby, tokens = _parted_while_a_server_joins(room, Path.hush)
    standby.in_sync(1, 40)
    assert owner.stats()["in_sync"] == 0 and owner.ask("may")["result"] == 0
    ours.open()
    theirs.open()
    owner.wait("deposed")
    standby.in_sync(2)
    assert standby.drain() == tokens


def test_a_server_that_knows_of_one_that_did_not_come_to_count_does_not_go_on_alone(room):
    ours, theirs, owner, standby, tokens = _parted_while_a_server_joins(room, Path.hush_answers)
    wait_until(lambda: "queue waits for a backup" in standby.log.read_text(), patience(30), "the standby to wait for b")
    assert owner.stats()["in_sync"] == 0 and standby.stats()["in_sync"] == 0
    ours.open()
    theirs.open()
    wait_until(lambda: 2 in (owner.stats()["in_sync"], standby.stats()["in_sync"]), patience(30), "one of them to own both")
    last = owner if owner.stats()["in_sync"] == 2 else standby
    assert last.drain() == tokens
