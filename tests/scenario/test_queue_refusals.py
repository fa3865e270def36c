"""Redis servers that answer and that a queue cannot use, as they are: what is told, and that the queue goes on when they are mended."""

import pathlib
import re

import pytest

from tests.lib.build import SLOWER, patience
from tests.lib.mail import Sink, source
from tests.lib.mail_queue import KEY, OTHER_KEY
from tests.lib.queue_room import burst, started, stored
from tests.lib.queued_proxy import QueuedProxy, Stores
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

EXAMPLE = (pathlib.Path(__file__).parents[2] / "conf/mail-gateway-queue.yaml").read_text(encoding="utf-8")
# Of the user in the example: "~cssl:* -@all +ping ...".
RIGHTS = re.search(r"^#\s+user gateway on >PASSWORD (.*)$", EXAMPLE, re.M).group(1).split()


def complaints(gateway):
    """What an operator gets."""
    return re.findall(r"^.*?(?:warning|error) queue: (.*)$", gateway.log.read_text(), re.M)


def test_a_server_that_refuses_is_told_once_and_goes_on_when_it_is_mended(room):
    """With its answer, and never as one that is lost: another gateway may own the queue there."""
    a, b = room.redis()
    root = ("--user", "root", "--pass", "word")
    for server in (a, b):
        server.call("ACL", "SETUSER", "root", "on", ">word", "~*", "+@all")
    b.call("ACL", "SETUSER", "gateway", "on", ">word", *(r for r in RIGHTS if r != "+fcall"))
    for server in (a, b):
        server.call("CONFIG", "SET", "requirepass", "word")
    patient = {"role": "owner", "absent_ms": 1500 * SLOWER}
    stranger = room.gateway(**patient)
    gateway = room.gateway(user="gateway", password="word", **patient)

    def refused(who, backup):
        """How often."""
        return len(re.findall(rf"backup refuses backup={backup} ", who.log.read_text()))

    # Behind `absent_ms`, a gateway that waits for a lost server says so.
    wait_until(lambda: all(refused(who, n) >= 2 for who, n in ((stranger, 0), (stranger, 1), (gateway, 0))), patience(30), "many refusals")
    wait_until(lambda: "queue waits for a server that refuses" in stranger.log.read_text(), patience(30), "the end of absent_ms")
    assert sorted(re.sub(" cause=.*", "", line) for line in complaints(stranger) if "queue waits" not in line) == [
        f'backup refuses backup={n} answer="NOAUTH Authentication required."' for n in (0, 1)]
    assert len([line for line in complaints(stranger) if "queue waits for a server that refuses" in line]) <= 2
    assert [line for line in complaints(gateway) if "backup=0" in line] == [
        'backup refuses backup=0 answer="WRONGPASS invalid username-password pair or user is disabled." '
        'cause="it knows no such user, or another password" remedy="compare user and password_file with its ACL LIST; restart if they change"']

    a.call(*root, "ACL", "SETUSER", "gateway", "on", ">word", *RIGHTS)
    wait_until(lambda: refused(gateway, 1) >= 2, patience(30), "refusals by b")
    told = [line for line in complaints(gateway) if "backup refuses backup=1" in line]
    assert len(told) == 1 and "NOPERM" in told[0] and "remedy=\"give its user the rights" in told[0]
    for who in (stranger, gateway):
        assert "takeover" not in who.log.read_text()

    b.call(*root, "ACL", "SETUSER", "gateway", "+fcall")
    gateway.in_sync(2)
    gateway.stored("one")


def test_the_rights_of_the_example_are_enough(room):
    servers = room.redis()
    for server in servers:
        server.call("ACL", "SETUSER", "gateway", "on", ">word", *RIGHTS)
    login = {"user": "gateway", "password": "word"}
    gateway = room.gateway(**login)
    gateway.in_sync(2)
    tokens = stored(gateway, burst(gateway, "m", 50))
    gateway.kill()
    gateway = room.gateway(**login)
    gateway.in_sync(2)
    servers[0].kill()
    servers[0].start("--user", "gateway", "on", ">word", *RIGHTS)
    gateway.in_sync(2)
    assert gateway.drain() == tokens
    assert [server.call("ACL", "LOG") for server in servers] == ["", ""]


def test_a_server_that_may_lose_messages_is_refused_until_it_is_mended(room):
    a, b = room.redis("--maxmemory-policy", "allkeys-lru", "--save", "3600 1")
    b.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    b.call("REPLICAOF", "127.0.0.1", "1")
    gateway = room.gateway(role="owner")
    wait_until(lambda: len(complaints(gateway)) >= 2, patience(10), "two refusals")
    assert sorted(re.sub(" remedy=.*", "", line) for line in complaints(gateway) if "refuses backup" in line) == [
        'backup refuses backup=0 answer=maxmemory_policy:allkeys-lru cause="it may evict messages"',
        'backup refuses backup=1 answer=role:slave cause="it is a replica"']
    a.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    b.call("REPLICAOF", "NO", "ONE")
    gateway.in_sync(2)
    gateway.stored("one")
    assert sum("backup saves snapshots backup=0" in line for line in complaints(gateway)) == 1
    b.call("REPLICAOF", "127.0.0.1", "1")
    gateway.in_sync(1)
    gateway.stored("two")
    b.call("REPLICAOF", "NO", "ONE")
    gateway.in_sync(2)
    assert gateway.drain() == ["one", "two"]


def test_a_gateway_with_another_key_leaves_alone_what_it_cannot_read(room):
    a, _, owner = started(room, role="owner")
    tokens = stored(owner, burst(owner, "m", 20))
    epoch = a.owner("epoch")
    stranger = room.gateway(role="standby", key=OTHER_KEY)

    def refuses(gateway, times=1):
        told = gateway.log.read_text()
        return all(told.count(f'backup refuses backup={n} answer="another key"') >= times for n in (0, 1))

    wait_until(lambda: refuses(stranger), patience(10), "two refusals")
    stranger.ask("takeover")
    owner.kill()
    wait_until(lambda: refuses(stranger, 3), patience(20), "refusals behind the order")
    assert a.owner("epoch") == epoch and a.items() == 20
    stranger.kill()  # its key seals from now on, and it has its order
    standby = room.gateway(role="standby", key=f"{OTHER_KEY}\n{KEY}")
    standby.ask("takeover")
    standby.in_sync(2)
    assert standby.drain() == tokens
    late = room.gateway(role="owner")  # its key seals nothing any more
    wait_until(lambda: refuses(late), patience(10), "two refusals")


def test_an_order_claims_no_server_whose_mail_cannot_be_read(room):
    """The other one came back empty, and gets an epoch above it."""
    a, b, owner = started(room, role="owner")
    tokens = stored(owner, burst(owner, "m", 20))
    owner.kill()
    b.kill()
    b.start()
    epoch = a.owner("epoch")
    stranger = room.gateway(key=OTHER_KEY, role="owner", absent_ms=1500 * SLOWER)

    def refused():
        return stranger.log.read_text().count('backup refuses backup=0 answer="another key"')

    wait_until(refused, patience(10), "a refusal")
    stranger.ask("takeover")
    stranger.in_sync(1)
    before = refused()
    wait_until(lambda: refused() >= before + 2, patience(20), "refusals behind the order")
    assert a.owner("epoch") == epoch and a.items() == len(tokens)


def test_a_server_that_was_away_while_the_keys_changed_is_used_again(room):
    """Its marker has the fingerprint of a key that no gateway has any more."""
    alone = {"role": "alone", "absent_ms": 1500 * SLOWER}
    _, b, gateway = started(room, **alone)
    b.pause()
    gateway.in_sync(1)
    gateway.kill()
    gateway = room.gateway(key=f"{OTHER_KEY}\n{KEY}", **alone)
    gateway.in_sync(1)
    gateway.kill()
    gateway = room.gateway(key=OTHER_KEY, **alone)
    gateway.in_sync(1)
    gateway.stored("one")
    b.go_on()
    gateway.in_sync(2)
    assert gateway.drain() == ["one"]


@pytest.fixture(name="secured")
def _secured(tmp_path):
    """Two servers with TLS that demand a certificate, and the keys of a backup for them."""
    certificate, key = map(str, self_signed(tmp_path))
    with Stores(tmp_path, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate, port="--tls-port") as stores:
        yield stores, {"ca": certificate, "name": "localhost", "certificate": certificate, "key": key}


def backups(stores, keys):
    return [{"paths": [f"127.0.0.1:{port}"], **keys} for port in stores.ports]


def test_the_queue_goes_over_tls(tmp_path, secured):
    stores, keys = secured
    with Sink() as sink, QueuedProxy(tmp_path, stores, sink.address, queue={"backups": backups(stores, keys)}).wait_open() as proxy:
        source(proxy.address, "--proxy", "v2", "-s", "5", "-m", "20", "-l", "100000")
        stores.wait_empty()
    assert sink.counts["mails"] == 20


@pytest.mark.parametrize("fault,cause", [({"ca": None}, "self-signed|signature"), ({"name": "other.example"}, "mismatch"),
                                         ({"certificate": None, "key": None}, "certificate required")])
def test_a_server_whose_tls_is_not_right_is_refused(tmp_path, secured, fault, cause):
    stores, keys = secured
    (tmp_path / "other").mkdir()
    fault = {name: value or (str(self_signed(tmp_path / "other")[0]) if name == "ca" else None) for name, value in fault.items()}
    keys = {name: value for name, value in {**keys, **fault}.items() if value}
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", 25), queue={"backups": backups(stores, keys)}) as proxy:
        wait_until(lambda: proxy.log().count("backup refuses") >= 2, patience(10), "two refusals")
        assert re.search(f'backup refuses backup=0 answer="TLS .*({cause})', proxy.log()), proxy.log()
        assert stores.items() == [0, 0] and not proxy.is_open()
