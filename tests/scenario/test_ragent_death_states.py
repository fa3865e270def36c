"""RAgent proper dies while connections are in states other than owned or resting: they go on."""

import concurrent.futures
import contextlib
import os
import signal
import socket
import ssl
from random import Random

import pytest

from tests.lib import edits
from tests.lib.build import patience, sized
from tests.lib.tlsload import Load, check_honest, lost
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

LINKS = {"memory": (), "sealed, 2 workers": ("--workers", "2", "--link", "sealed")}


class Client:
    """A TLS client whose bytes leave when the test wants."""

    def __init__(self, cluster, where, version=None):
        self.sock = socket.create_connection(where, patience(20))
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = cluster.context(version).wrap_bio(self._came, self._goes, server_hostname="localhost")
        self._rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def _try(self, call, *args):
        """The result, or None when it wants more bytes. What it says then waits in self._rest."""
        try:
            return call(*args)
        except ssl.SSLWantReadError:
            return None
        finally:
            self._rest += self._goes.read()

    def _read(self):
        data = self.sock.recv(65536)
        assert data, "the connection was closed"
        self._came.write(data)

    def begin(self):
        """Its hello is ready to leave."""
        self._try(self._tls.do_handshake)

    def say(self, share=1.0):
        """This share of what is ready leaves."""
        length = int(share * len(self._rest))
        self.sock.sendall(self._rest[:length])
        self._rest = self._rest[length:]

    def hear_flight(self):
        """Its answer to the server's flight is ready to leave."""
        while not self._rest:
            self._read()
            self._try(self._tls.do_handshake)

    def shake_hands(self):
        self.say()
        while self._try(self._tls.do_handshake) is None and not self._tls.version():
            self.say()
            self._read()
        while not self._done():
            self.say()
            self._read()
        self.say()

    def _done(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
            self._rest += self._goes.read()
            return True
        self._rest += self._goes.read()
        return False

    def ask(self, length=65536):
        """Whether an answer of so many bytes comes."""
        self._try(self._tls.write, b"GET /64k HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.say()
        got = b""
        while len(got.partition(b"\r\n\r\n")[2]) < length:
            part = self._try(self._tls.read, 1 << 16)
            self.say()
            if part is None:
                self._read()
            else:
                got += part
        return got.startswith(b"HTTP/1.1 200") and len(got.partition(b"\r\n\r\n")[2]) == length


STAGES = ("half a hello", "the server's flight", "half an answer to the flight")


def shake_hands_up_to(client, stage):
    client.begin()
    client.say(0.5 if stage == STAGES[0] else 1)
    if stage == STAGES[2]:
        client.hear_flight()
        client.say(0.5)


def states(cluster):
    return sorted(c["state"] for c in cluster.connections())


@pytest.mark.parametrize("options", LINKS.values(), ids=LINKS.keys())
def test_handshakes_under_way_go_on(start_cluster, options):
    """On SF and SL, of both versions; two deaths, the second right after the first."""
    cluster = start_cluster("--agents", "2", *options)
    with contextlib.ExitStack() as stack:
        clients = []
        for stage in STAGES:
            for where in (cluster.sf, cluster.sl):
                for version in ("1.2", "1.3"):
                    clients.append(stack.enter_context(Client(cluster, where, version)))
                    shake_hands_up_to(clients[-1], stage)
        wait_until(lambda: states(cluster) == ["handshaking"] * 8 + ["hello"] * 4, patience(10), "all are under way")
        cluster.kill_ragent()
        cluster.kill_ragent()
        for client in clients:
            client.shake_hands()
            assert client.ask()
    fates = cluster.status()["at_deaths"]
    assert (fates["reset"], fates["went_on"]) == (0, 2 * len(STAGES) * 4)


def test_hellos_that_wait_for_an_agent_go_on(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True, edit=edits.at_end(f"limits: {{ agent_wait: {patience(20):.0f}s, handshake_timeout: {patience(30):.0f}s }}"))
    cluster.kill("a1")
    with Client(cluster, cluster.sf) as client:
        client.begin()
        client.say()
        wait_until(lambda: states(cluster) == ["waiting"], patience(10), "it waits")
        cluster.kill_ragent()
        cluster.restart("a1")
        client.shake_hands()
        assert client.ask()


def test_half_a_header_of_a_balancer_goes_on(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.below("sl", 'proxy_protocol: on', 'trusted: ["127.0.0.1/32"]')))
    header = b"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443\r\n"
    with Client(cluster, cluster.sl) as half, Client(cluster, cluster.sl) as whole:
        half.sock.sendall(header[:20])
        whole.sock.sendall(header)
        wait_until(lambda: states(cluster) == ["hello", "proxy"], patience(10), "the headers came")
        wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 2, patience(10))
        cluster.kill_ragent()
        half.sock.sendall(header[20:])
        for client in (half, whole):
            client.begin()
            client.shake_hands()
            assert client.ask()
        assert {c["client"].rpartition(":")[0] for c in cluster.connections()} == {"192.0.2.7"}


@contextlib.contextmanager
def stopped(cluster, name):
    pid = cluster.pid(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def established(cluster, count):
    clients = [Client(cluster, cluster.sf, version) for version in ("1.2", "1.3") for _ in range(count)]
    for client in clients:
        client.begin()
        client.shake_hands()
        assert client.ask()
    return clients


def test_adoptions_under_way_go_on(start_cluster):
    """The adopter has not answered SSL_ID yet. No epoch is granted twice, and the same agent adopts."""
    cluster = start_cluster("--agents", "1", edit=lambda text: text.replace("    backend: main\n", "    backend: main\n    rest_after: 100ms\n"))
    clients = established(cluster, 5)
    wait_until(lambda: states(cluster) == ["resting"] * 10, patience(10), "nobody owns them")
    epochs = {c["id"]: c["epoch"] for c in cluster.connections()}
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        with stopped(cluster, "a1"):
            answers = [pool.submit(client.ask) for client in clients]
            wait_until(lambda: states(cluster) == ["adopting"] * 10, patience(10), "all are being adopted")
            cluster.kill_ragent()
        assert all(answer.result() for answer in answers)
    assert all(c["epoch"] == epochs[c["id"]] + 1 for c in cluster.connections() if c["state"] == "owned")
    assert cluster.status()["at_deaths"]["reset"] == 0


def test_moves_under_way_go_on(start_cluster):
    """The owner has not answered MOVE yet. After the death it does, and the connection can move again."""
    cluster = start_cluster("--agents", "2", edit=edits.nobody_moves)
    clients = established(cluster, 2)
    owner = {c["id"]: c["owner"] for c in cluster.connections()}
    mine = [identity for identity, name in owner.items() if name == "a1"]
    assert mine or len(set(owner.values())) == 1
    at = "a1" if mine else "a2"
    other = "a2" if mine else "a1"
    moved = [identity for identity, name in owner.items() if name == at]
    with concurrent.futures.ThreadPoolExecutor(len(moved)) as pool:
        with stopped(cluster, at):
            orders = [pool.submit(cluster.move, identity, other) for identity in moved]
            wait_until(lambda: states(cluster).count("moving") == len(moved), patience(10), "the owner is asked")
            cluster.kill_ragent()
        for order in orders:
            assert order.exception()
    for client in clients:
        assert client.ask()
    wait_until(lambda: states(cluster) == ["owned"] * 4, patience(10), "all are owned")
    for identity in moved:
        back = next(name for name in ("a1", "a2") if name != cluster.connection(identity)["owner"])
        assert cluster.move(identity, back)["to"] == back
    for client in clients:
        assert client.ask()
    assert cluster.status()["at_deaths"]["reset"] == 0


def test_a_goodbye_under_way_is_said(start_cluster):
    """The owner has not yet sent close_notify to an idle client."""
    idle_s = patience(1)
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.at_end(f"limits: {{ idle_timeout: {idle_s}s }}"), edits.nobody_moves))
    web = cluster.http()
    web.request("GET", "/1k")
    web.getresponse().read()
    wait_until(lambda: cluster.connections()[0]["idle_ms"] > 1000 * idle_s - 700, patience(10), "its time is nearly over")
    with stopped(cluster, "a1"):
        wait_until(lambda: states(cluster) == ["finishing"], patience(10), "the owner is told")
        cluster.kill_ragent()
    web.sock.suppress_ragged_eofs = False
    assert web.sock.recv(1) == b""  # close_notify
    web.close()


DEATHS = sized(4, 30)
WAYS = {"trusted TCP, http": ("trusted", "http"), "sealed TCP, tcp": ("sealed", "tcp")}


@pytest.mark.parametrize("link,service", WAYS.values(), ids=WAYS.keys())
def test_deaths_over_tcp_links_harm_nobody(start_cluster, link, service):
    """But at most one connection at each death: the one that RAgent was changing. Every byte is right both ways."""
    cluster = start_cluster("--agents", "3", "--link", link, edit=lambda text: edits.over_tcp(edits.nobody_moves(text)).replace("service: http", f"service: {service}"))
    random, busy = Random(18), {"idle": {"count": 20, "every_ms": 500}, "new": {"count": 4, "every_ms": 20, "times": 1},
                                "down": {"count": 6, "path": "/20m", "rate": 4 << 20}, "up": {"count": 6, "method": "POST", "path": "/sha256", "body": 4 << 20}}
    with Load(cluster) as load:
        for name, settings in busy.items():
            load.add(name, again="always", **settings)
        wait_until(lambda: load.report()["up"]["answers"] > 6, patience(30), "load goes on")
        for _ in range(DEATHS):
            answers = load.report()["new"]["answers"]
            wait_until(lambda answers=answers: load.report()["new"]["answers"] > answers + random.randrange(20, 60), patience(20), "load goes on")
            cluster.kill_ragent()
        harmed = [lost(check_honest(load.stop(name))) for name in busy]
    print("harmed:", harmed)
    assert sum(sum(each.values()) for each in harmed) <= DEATHS
