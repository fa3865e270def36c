"""The mail queue with spare Redis servers: one takes the place of a lost backup, and the queue is found wherever it is."""

import itertools
import json
import random
import re
import signal

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.csslctl import csslctl
from tests.lib.mail import Sink, source
from tests.lib.mail_queue import Redis
from tests.lib.processes import stop
from tests.lib.queue_room import burst, stored
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.smtp_proxy import Control
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

REPLACE_MS = 2000


class Spares:
    """Two backups and some spares, and the gateways of one test, which all have the same lists."""

    def __init__(self, room, spares=1):
        self.room = room
        self.a, self.b = room.redis()
        self.spares = [Redis(room.folder, name) for name in "wxyz"[:spares]]
        room.servers += self.spares

    def gateway(self, **options):
        lists = {f"spare{n}": f"unix:{s.socket}" for n, s in enumerate(self.spares)}
        return self.room.gateway([[self.a.socket], [self.b.socket]], **{"replace_ms": REPLACE_MS, **lists, **options})

    def started(self, **options):
        gateway = self.gateway(**options)
        gateway.in_sync(2)
        return gateway

    def at(self, server):
        return f"unix:{server.socket}"


def servers_of(gateway):
    return [b["address"] for b in gateway.stats()["backups"]]


def replaced(gateway, count=1):
    gateway.until(lambda s: s["backups_replaced"] == count and s["in_sync"] == 2, 30)


def passes(server, renewals=20):
    """Time in which the gateway does what it does: it renews its lease four times a second, so 20 renewals take twice REPLACE_MS."""
    before = int(server.owner("renewals") or 0)
    wait_until(lambda: int(server.owner("renewals") or 0) > before + renewals, patience(40))


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("role", ["alone", "owner"])
def test_a_lost_backup_is_replaced_while_mail_comes_and_then_the_other_one_is_lost(room, lost, role):
    spares = Spares(room, 2)
    gateway = spares.started(role=role)
    pair = [spares.a, spares.b]
    tokens = stored(gateway, burst(gateway, "before"))
    pair[lost].kill()
    later = burst(gateway, "without")
    assert stored(gateway, later) == later
    replaced(gateway)
    first, second = spares.spares
    assert servers_of(gateway)[lost] == spares.at(first) and servers_of(gateway)[1 - lost] == spares.at(pair[1 - lost])
    assert first.items() == pair[1 - lost].items() == len(tokens + later)
    tokens += later + stored(gateway, burst(gateway, "both"))
    pair[1 - lost].kill()
    tokens += stored(gateway, burst(gateway, "alone"))
    replaced(gateway, 2)
    assert set(servers_of(gateway)) == {spares.at(first), spares.at(second)}
    assert first.items() == second.items() == len(tokens)
    gateway.kill()
    gateway = spares.gateway()
    gateway.in_sync(2)
    assert sorted(gateway.drain()) == sorted(tokens)


@pytest.mark.parametrize("role", ["alone", "owner"])
def test_a_gateway_that_starts_finds_the_queue_on_the_spare(room, role):
    spares = Spares(room)
    gateway = spares.started(role=role)
    tokens = stored(gateway, burst(gateway, "m", 100))
    spares.a.kill()
    replaced(gateway)
    assert gateway.ask("drain", "a.example", 30)["drained"] == tokens[:30]
    tokens += stored(gateway, burst(gateway, "more", 100))
    gateway.until(lambda s: s["unconfirmed"] == 0)
    for _ in range(2):
        gateway.kill()
        gateway = spares.gateway(role=role)
        gateway.in_sync(2)
        assert servers_of(gateway) == [spares.at(spares.spares[0]), spares.at(spares.b)]
        assert gateway.stats()["backups_replaced"] == 0
    assert gateway.drain() == tokens[30:]


def _lost_server_comes_back(room, restarts):
    """Server a hangs with 60 messages, and is replaced. Then 30 of them are delivered, and 10 come. @restarts: then b restarts, too, so
    that no server is the process any more that the marker of a names. The messages that are left."""
    spares = Spares(room)
    gateway = spares.started(role="owner")
    tokens = stored(gateway, burst(gateway, "m", 60))
    spares.a.pause()
    replaced(gateway)
    assert gateway.ask("drain", "a.example", 30)["drained"] == tokens[:30]
    tokens = tokens[30:] + stored(gateway, burst(gateway, "more", 10))
    if restarts:
        spares.b.kill()
        gateway.in_sync(1)
        spares.b.start()
    gateway.in_sync(2)
    gateway.until(lambda s: s["unconfirmed"] == 0)
    return spares, gateway, tokens


@pytest.mark.parametrize("restarts", [False, True])
def test_a_lost_server_that_comes_back_as_it_was_is_left_alone(room, restarts):
    spares, gateway, tokens = _lost_server_comes_back(room, restarts)
    spares.a.go_on()
    gateway.until(lambda s: [x["state"] for x in s["spares"]] == ["seen"])
    passes(spares.b, 10)
    assert spares.a.items() == 60 and servers_of(gateway)[0] == spares.at(spares.spares[0])
    assert gateway.stats()["backups_replaced"] == 1
    assert gateway.drain() == tokens


@pytest.mark.parametrize("restarts", [False, True])
def test_a_lost_server_that_comes_back_at_a_start_is_not_believed(room, restarts):
    spares, gateway, tokens = _lost_server_comes_back(room, restarts)
    for _ in range(2):
        gateway.kill()
        spares.a.go_on()
        gateway = spares.started(role="owner")
        assert servers_of(gateway) == [spares.at(spares.spares[0]), spares.at(spares.b)]
    gateway.until(lambda s: [x["state"] for x in s["spares"]] == ["seen"])
    passes(spares.b, 10)
    assert gateway.stats()["messages"] == 40 and gateway.stats()["backups_replaced"] == 0
    assert gateway.drain() == tokens


def test_an_old_server_alone_is_not_believed_while_others_do_not_answer(room):
    """Server b lost what it had, so only the spare knows that the queue went on."""
    spares, gateway, tokens = _lost_server_comes_back(room, True)
    gateway.kill()
    spares.a.go_on()
    spares.b.kill()
    spares.b.start()
    spares.spares[0].pause()
    gateway = spares.gateway(role="owner")
    wait_until(lambda: "queue waits for a server" in gateway.log.read_text(), patience(20), "its complaint")
    assert gateway.stats()["state"] == "looking" and not gateway.has("ready")
    spares.spares[0].go_on()
    gateway.in_sync(2)
    assert gateway.drain() == tokens


def test_a_lost_server_is_used_again_when_the_spare_is_lost(room):
    spares, gateway, tokens = _lost_server_comes_back(room, False)
    spares.a.go_on()
    spares.spares[0].kill()
    replaced(gateway, 2)
    assert servers_of(gateway) == [spares.at(spares.a), spares.at(spares.b)]
    assert spares.a.items() == spares.b.items() == len(tokens)
    gateway.kill()
    spares.b.kill()
    gateway = spares.gateway()
    gateway.in_sync(1)
    assert gateway.drain() == tokens


def test_nothing_is_replaced_when_both_backups_are_lost(room):
    spares = Spares(room)
    gateway = spares.started()
    tokens = stored(gateway, burst(gateway, "m", 20))
    spares.a.pause()
    spares.b.pause()
    gateway.wait("unready")
    gateway.until(lambda s: all(b["paths"][0]["timeouts"] >= 6 for b in s["backups"]), 30)  # more than REPLACE_MS
    stats = gateway.stats()
    assert (stats["backups_replaced"], stats["in_sync"]) == (0, 0)
    gateway.add("refused")
    assert gateway.wait("not added", token="refused")["error"] == 1
    spares.b.go_on()
    gateway.in_sync(2)  # the spare, in the place of a
    spares.a.go_on()
    assert gateway.drain() == tokens


def _functions(server):
    """The text of the functions that a gateway has loaded."""
    return server.call("FUNCTION", "LIST", "LIBRARYNAME", "cssl_queue1", "WITHCODE").split("library_code\n", 1)[1]


@pytest.mark.parametrize("refuses", ["functions", "messages"])
def test_spares_that_do_not_answer_or_are_full_are_passed_over(room, refuses):
    spares = Spares(room, 3)
    dead, full, good = spares.spares
    gateway = spares.started()
    dead.kill()
    gateway.until(lambda s: [x["state"] for x in s["spares"]] == ["away", "seen", "seen"])
    if refuses == "messages":
        full.call("FUNCTION", "LOAD", _functions(spares.a))
    full.call("CONFIG", "SET", "maxmemory", "1")
    tokens = stored(gateway, burst(gateway, "m", 20))
    spares.a.kill()
    gateway.until(lambda s: s["backups"][0]["address"] == spares.at(full), 30)
    replaced(gateway, 2)
    assert (refuses == "messages") == (gateway.stats()["backups"][0]["refused"] > 0)
    assert servers_of(gateway)[0] == spares.at(good) and good.items() == 20
    assert gateway.drain() == tokens


@pytest.mark.parametrize("comes", ["before the owner falls", "behind it"])
def test_a_standby_takes_over_what_the_spare_has(room, comes):
    spares = Spares(room)
    owner = spares.started(role="owner")
    if comes.startswith("before"):
        standby = spares.gateway(role="standby")
        standby.until(lambda s: s["state"] == "watching")
    tokens = stored(owner, burst(owner, "m", 100))
    spares.a.kill()
    replaced(owner)
    tokens += stored(owner, burst(owner, "more", 100))
    owner.kill()
    if not comes.startswith("before"):
        standby = spares.gateway(role="standby")
    standby.in_sync(2, 40)
    assert servers_of(standby)[0] == spares.at(spares.spares[0])
    assert standby.drain() == tokens


def test_a_standby_leaves_an_owner_alone_whose_backups_were_both_replaced(room):
    """It sees the spares only: the servers that it began with are gone."""
    spares = Spares(room, 2)
    owner = spares.started(role="owner")
    standby = spares.gateway(role="standby")
    standby.until(lambda s: s["state"] == "watching")
    for count, server in enumerate((spares.a, spares.b), 1):
        server.kill()
        replaced(owner, count)
    tokens = stored(owner, burst(owner, "m", 20))
    passes(spares.spares[0], 40)  # longer than takeover_ms
    assert standby.stats()["state"] == "watching" and owner.stats()["state"] == "active"
    assert owner.drain() == tokens


def test_an_owner_that_was_cut_off_ends_although_its_successor_replaced_both_servers(room):
    """No server that it used is left to tell it."""
    spares = Spares(room, 2)
    old = spares.started(role="owner")
    new = spares.gateway(role="standby")
    new.until(lambda s: s["state"] == "watching")
    tokens = stored(old, burst(old, "m", 20))
    for server in (spares.a, spares.b):
        server.pause()
    old.until(lambda s: [b["state"] for b in s["backups"]] == ["away", "away"])
    stop(old.process.pid)
    for server in (spares.a, spares.b):
        server.go_on()
    new.in_sync(2, 40)
    for count, server in enumerate((spares.a, spares.b), 1):
        server.kill()
        replaced(new, count)
    old.process.send_signal(signal.SIGCONT)
    old.wait("deposed")
    assert new.stats()["state"] == "active" and new.drain() == tokens


def test_an_absent_server_that_may_hold_messages_is_waited_for(room):
    """The gateway and server a died together: nobody knows whether a went on under another gateway."""
    spares = Spares(room)
    gateway = spares.started()
    tokens = stored(gateway, burst(gateway, "m", 50))
    gateway.kill()
    spares.a.pause()
    gateway = spares.gateway()
    gateway.in_sync(1)
    passes(spares.b)
    assert gateway.stats()["backups_replaced"] == 0
    spares.a.go_on()
    gateway.in_sync(2)
    assert servers_of(gateway)[0] == spares.at(spares.a)
    assert gateway.drain() == tokens


def test_an_absent_server_that_comes_back_empty_is_filled_when_every_server_answers(room):
    """The spare that does not answer may be the one that is waited for."""
    spares = Spares(room)
    gateway = spares.started()
    tokens = stored(gateway, burst(gateway, "m", 50))
    gateway.kill()
    spares.a.kill()
    spares.spares[0].kill()
    gateway = spares.gateway()
    gateway.in_sync(1)
    spares.a.start()
    wait_until(lambda: "backup not claimed backup=0" in gateway.log.read_text(), patience(20), "its complaint")
    assert gateway.stats()["in_sync"] == 1 and spares.a.items() == 0
    spares.spares[0].start()
    gateway.in_sync(2)
    assert spares.a.items() == 50
    assert gateway.drain() == tokens


def test_an_empty_queue_does_not_begin_while_a_spare_does_not_answer(room):
    """It may have the only copy."""
    spares = Spares(room)
    gateway = spares.started(role="owner")
    spares.a.kill()
    replaced(gateway)
    tokens = stored(gateway, burst(gateway, "m", 20))
    gateway.kill()
    spares.a.start()
    spares.b.kill()
    spares.b.start()
    spares.spares[0].pause()
    gateway = spares.gateway(role="owner")
    gateway.until(lambda s: [b["state"] for b in s["backups"]] == ["seen", "seen"])
    wait_until(lambda: "queue waits for a server" in gateway.log.read_text(), patience(20), "its complaint")
    assert gateway.stats()["state"] == "looking"
    spares.spares[0].go_on()
    gateway.in_sync(2, 40)
    assert gateway.drain() == tokens


@pytest.mark.parametrize("comes", ["at the start", "late"])
def test_messages_that_a_replaced_server_took_alone_are_united(room, comes):
    """A gateway that is alone went on with it while the others were away: only its own marker says so."""
    spares = Spares(room)
    gateway = spares.started()
    tokens = stored(gateway, burst(gateway, "both", 20))
    spares.a.pause()
    replaced(gateway)
    tokens += stored(gateway, burst(gateway, "spare", 20))
    gateway.kill()
    spares.b.pause()
    spares.spares[0].pause()
    spares.a.go_on()
    gateway = spares.gateway()
    gateway.in_sync(1)
    tokens += stored(gateway, burst(gateway, "alone", 20))
    epoch_of_a = gateway.stats()["epoch"]
    gateway.kill()
    spares.b.go_on()
    spares.spares[0].go_on()
    if comes == "late":
        spares.a.pause()
        gateway = spares.gateway()
        gateway.in_sync(2)
        while gateway.stats()["epoch"] <= epoch_of_a:  # with no higher one it would end when it sees a
            gateway.kill()
            gateway = spares.gateway()
            gateway.in_sync(2)
        assert gateway.stats()["messages"] == 40
        spares.a.go_on()
    else:
        gateway = spares.gateway()
    gateway.until(lambda s: s["messages"] == 60 and s["in_sync"] == 2 and s["backups"][0]["address"] == spares.at(spares.a), 30)
    assert spares.a.items() == spares.b.items() == 60
    assert sorted(gateway.drain()) == sorted(tokens)


def test_a_gateway_of_the_same_queue_without_spares_is_not_misled(room):
    """As one of an earlier release: the servers of its file are those of the queue after the replacement."""
    spares = Spares(room)
    gateway = spares.started()
    tokens = stored(gateway, burst(gateway, "m", 20))
    spares.a.pause()
    replaced(gateway)
    gateway.kill()
    gateway = room.gateway([[spares.spares[0].socket], [spares.b.socket]])
    gateway.in_sync(2)
    assert gateway.drain() == tokens
    spares.a.go_on()


def test_a_mail_gateway_shows_its_spares_and_keeps_the_one_that_it_uses_at_a_reload(open_folder, stores):
    spare, port = None, free_ports(1)[0]
    server = f"127.0.0.1:{port}"
    try:
        spare = Redis(open_folder, "spare", "--port", str(port), "--bind", "127.0.0.1")
        with Sink() as sink, QueuedProxy(open_folder, stores, sink.address,
                                         queue={"spares": [{"paths": [server]}], "replace_after": "5s"}) as proxy:
            def state():
                return json.loads(Control(proxy.control).ask("/v1/queue")[1])

            proxy.wait_open()
            wait_until(lambda: state()["spares"] == [{"address": server, "state": "seen"}], patience(10))
            stores.servers[0].kill()
            wait_until(lambda: state()["in_sync"] == 2 and state()["backups"][0]["address"] == server, patience(30))
            proxy.reload()
            assert source(proxy.address, "-m", "20", "--proxy", "v2").status == 0
            assert state()["backups"][0]["address"] == server and state()["in_sync"] == 2
            assert f"backup replaced backup=0 from=127.0.0.1:{stores.ports[0]} to={server}" in proxy.log()
            shown = csslctl("mail", "queue", "--socket", str(proxy.control)).out
            assert re.search(rf"^ *0 +{server} +in sync", shown, re.M) and re.search(r"backups_replaced +1$", shown, re.M), shown
            assert re.search(rf"^127.0.0.1:{stores.ports[0]} +away", shown, re.M), shown
            metrics = Control(proxy.control).ask("/metrics")[1]
            assert "smtpproxy_queue_backups_replaced 1\n" in metrics and "smtpproxy_queue_spares 0\n" in metrics
            wait_until(lambda: state()["messages"] == 0, patience(30))
        assert sink.counts["mails"] == 20 and sink.counts["duplicates"] == 0
    finally:
        if spare:
            spare.kill()


@pytest.mark.limit(300)
@pytest.mark.parametrize("seed", range(2))
def test_random_losses_with_spares_lose_nothing_and_repeat_nothing_that_was_confirmed(room, seed):
    """One server is lost at a time, for good or for some time, sometimes with a restart of the gateway when the spare has taken its
    place. Those that come back have what they had."""
    chance = random.Random(seed)
    spares = Spares(room, 2)
    everyone = [spares.a, spares.b, *spares.spares]
    gateway = spares.started(role="owner")
    kept, delivered, lost = set(), [], []
    for turn in itertools.count():
        gateway.in_sync(2, 30)
        kept |= set(stored(gateway, burst(gateway, f"turn{turn}", 50)))
        delivered += gateway.ask("drain", "a.example", 30)["drained"]
        gateway.until(lambda s: s["unconfirmed"] == 0)
        if turn == 6:
            break
        used = [s for s in everyone if spares.at(s) in servers_of(gateway)]
        server = chance.choice(used)
        fault = chance.choice(("pause", "restart empty"))
        if fault == "pause":
            server.pause()
            lost.append(server)
            before = gateway.stats()["backups_replaced"]
            gateway.until(lambda s, n=before: s["backups_replaced"] > n and s["in_sync"] == 2, 30)
        else:
            server.kill()
            gateway.in_sync(1)
            server.start()
            gateway.in_sync(2)
        while lost and (len(lost) == 2 or chance.random() < 0.5):
            lost.pop().go_on()
        if chance.random() < 0.5:
            for server in lost:
                server.go_on()
            lost.clear()
            gateway.kill()
            gateway = spares.gateway(role="owner")
    delivered += gateway.drain()
    for server in lost:
        server.go_on()
    assert len(delivered) == len(set(delivered)) and set(delivered) == kept
