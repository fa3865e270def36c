"""RAgent proper dies while connections are in states other than owned or resting: they go on."""

import concurrent.futures
import contextlib
import os
import re
import signal
import socket
from random import Random

import pytest

from tests.lib import edits
from tests.lib.build import patience, scaled, sized
from tests.lib.pattern import first_difference, pattern
from tests.lib.processes import has_stopped, stop
from tests.lib.stepwise_tls import StepwiseTls
from tests.lib.tlsload import Load, check_honest, check_unharmed, lost
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

LINKS = {"memory": (), "sealed, 2 workers": ("--workers", "2", "--link", "sealed")}
# A handshake is under way through all that happens, on a busy machine, too.
handshakes_have_time = edits.at_end("limits: { handshake_timeout: 5min }")


def client_of(cluster, where, version=None):
    return StepwiseTls(cluster.context(version), socket.create_connection(where, patience(20)))


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
    cluster = start_cluster("--agents", "2", *options, edit=handshakes_have_time)
    with contextlib.ExitStack() as stack:
        clients = []
        for stage in STAGES:
            for where in (cluster.sf, cluster.sl):
                for version in ("1.2", "1.3"):
                    clients.append(stack.enter_context(client_of(cluster, where, version)))
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
    with client_of(cluster, cluster.sf) as client:
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
    with client_of(cluster, cluster.sl) as half, client_of(cluster, cluster.sl) as whole:
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


def window_fills(cluster):
    """Waits until the only connection gets no byte of its owner any more."""
    sent = [0, -1]
    wait_until(lambda: sent.append(cluster.connections()[0]["server_bytes"]) or sent[-1] == sent[-2], patience(20), "its window is full")


@contextlib.contextmanager
def stopped(cluster, name):
    pid = cluster.pid(name)
    stop(pid)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


# The agent that a test stops, though a busy machine needs longer to see what it wants to see.
is_not_given_up = edits.at_end("health: { lost: 30s }")


def established(cluster, count):
    clients = [client_of(cluster, cluster.sf, version) for version in ("1.2", "1.3") for _ in range(count)]
    for client in clients:
        client.begin()
        client.shake_hands()
        assert client.ask()
    return clients


def test_adoptions_under_way_go_on(start_cluster):
    """The adopter has not answered SSL_ID yet. No epoch is granted twice, and the same agent adopts."""
    cluster = start_cluster("--agents", "1", edit=edits.edits(
        edits.instead("    backend: main\n", "    backend: main\n    rest_after: 100ms\n"), is_not_given_up))
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
    """The owner has not answered MOVE yet, and is not given up. After the death it answers, and the connection can move again."""
    cluster = start_cluster("--agents", "2", edit=edits.edits(edits.nobody_moves, is_not_given_up))
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
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.at_end(f"limits: {{ idle_timeout: {idle_s}s }}"),
                                                              edits.nobody_moves, is_not_given_up))
    web = cluster.http()
    web.request("GET", "/1k")
    web.getresponse().read()
    wait_until(lambda: cluster.connections()[0]["idle_ms"] > 300 * idle_s, patience(10), "its time goes")
    with stopped(cluster, "a1"):
        wait_until(lambda: states(cluster) == ["finishing"], patience(10), "the owner is told")
        cluster.kill_ragent()
    web.sock.suppress_ragged_eofs = False
    assert web.sock.recv(1) == b""  # close_notify
    web.close()


@pytest.mark.parametrize("options", LINKS.values(), ids=LINKS.keys())
def test_what_was_taken_over_goes_on_after_a_death(start_cluster, options):
    """The new process of --replace dies: all goes on at its owners, in its epochs, over links that the old process opened. Then
    the next one is replaced, and its successor dies."""
    cluster = start_cluster("--agents", "2", *options, edit=edits.edits(edits.nobody_moves, handshakes_have_time))
    busy = {"down": {"count": scaled(8, 2), "path": "/20m", "rate": 4 << 20},
            "up": {"count": scaled(8, 2), "method": "POST", "path": "/sha256", "body": 4 << 20}}
    with contextlib.ExitStack() as stack, Load(cluster) as load:
        client = stack.enter_context(client_of(cluster, cluster.sf, "1.3"))
        shake_hands_up_to(client, STAGES[1])
        load.add("idle", count=20, run="waits")
        load.ask("idle")
        for name, settings in busy.items():
            load.add(name, again="always", **settings)
        for _ in range(2):
            answers = load.report()["up"]["answers"]
            wait_until(lambda answers=answers: load.report()["up"]["answers"] > answers + 4, patience(30), "load goes on")
            epochs = {c["id"]: c["epoch"] for c in cluster.connections()}
            cluster.replace()
            cluster.kill_ragent()
            assert {c["id"]: c["epoch"] for c in cluster.connections()} == epochs
        check_unharmed(load.ask("idle"))
        client.shake_hands()
        assert client.ask()
        for name in busy:
            check_unharmed(load.stop(name))
    assert cluster.status()["at_deaths"]["reset"] == 0


def test_a_goodbye_under_way_is_said_behind_a_replacement(start_cluster):
    """The owner has not yet sent close_notify to an idle client when a new process takes over."""
    idle_s = patience(1)
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.at_end(f"limits: {{ idle_timeout: {idle_s}s }}"),
                                                              edits.nobody_moves, is_not_given_up))
    with contextlib.closing(cluster.http()) as web:
        web.request("GET", "/1k")
        web.getresponse().read()
        wait_until(lambda: cluster.connections()[0]["idle_ms"] > 300 * idle_s, patience(10), "its time goes")
        with stopped(cluster, "a1"):
            wait_until(lambda: states(cluster) == ["finishing"], patience(10), "the owner is told")
            cluster.replace()
        web.sock.suppress_ragged_eofs = False
        assert web.sock.recv(1) == b""  # close_notify


@pytest.mark.usefixtures("test_points")
def test_the_one_that_was_active_lately_is_restored_first(start_cluster):
    """It is the newest. The next process restores one connection only."""
    cluster = start_cluster("--agents", "2", takeover=True, edit=edits.nobody_moves)
    with contextlib.ExitStack() as stack:
        *others, active = [stack.enter_context(client) for client in established(cluster, 6)]
        wait_until(lambda: all(c["idle_ms"] > 2000 for c in cluster.connections()), patience(20), "all are idle")
        cluster.faults("slot.restoring drop on r1 after 1")
        cluster.settle_faults()
        assert active.ask()
        cluster.kill_ragent()
        assert active.ask()
        assert cluster.status()["at_deaths"]["reset"] == len(others)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("link", ["memory", "TCP"])
def test_a_slow_reader_with_a_full_window_gets_every_byte(start_cluster, link, version):
    """Bytes wait in the client's kernel, in RAgent and at the owner. Three deaths: all wait, and while the client reads on."""
    on_link = {"memory": edits.nobody_moves, "TCP": edits.edits(edits.over_tcp, edits.nobody_moves)}[link]
    length = 20 << 20
    cluster = start_cluster("--agents", "2", edit=on_link)
    with contextlib.closing(cluster.http(context=cluster.context(version))) as web:
        web.request("GET", "/20m")
        answer = web.getresponse()
        body = answer.read(100_000)
        window_fills(cluster)
        for part in (0, 1 << 20, 8 << 20):
            body += answer.read(part)
            cluster.kill_ragent()
        body += answer.read()
        assert len(body) == length and first_difference(body, length) is None
        web.request("GET", "/64k")
        assert web.getresponse().read() == pattern(65536)
    assert cluster.status()["at_deaths"]["reset"] == 0


@pytest.mark.usefixtures("test_points")
def test_an_owner_that_dies_amid_its_held_frames_leaves_no_gap(start_cluster):
    """RAgent dies while a slow client reads, and the owner while it sends the held frames again. What is lacking nobody has."""
    on_sockets = [edits.below(name, "link_bytes: socket") for name in ("a1", "a2")]
    cluster = start_cluster("--agents", "2", takeover=True, edit=edits.edits(*on_sockets, edits.nobody_moves))
    with contextlib.closing(cluster.http()) as web:
        web.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        web.request("GET", "/20m")
        answer = web.getresponse()
        assert len(answer.read(100_000)) == 100_000
        owner = cluster.connections()[0]["owner"]
        window_fills(cluster)
        cluster.faults(f"link.part drop on {owner}")
        cluster.settle_faults()
        cluster.kill_ragent()
        wait_until(lambda: cluster.counters()["ragent"]["reattached"] == 1, patience(20), "half of the frames came")
        cluster.kill(owner)
        with socket.socket(fileno=os.dup(web.sock.fileno())) as raw, pytest.raises(ConnectionResetError):
            raw.settimeout(patience(20))
            while raw.recv(100_000):
                pass
    assert cluster.counters()["ragent"]["takeovers_ended"] == 1


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_what_a_client_sends_behind_the_end_of_its_server_arrives(start_cluster, version):
    """The server has said all and FIN, and reads on."""
    heard = []

    def end_first(listening):
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(patience(20))
            connection.sendall(b"hello\n")
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                heard.append(data)

    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.settimeout(patience(20))
        cluster = start_cluster("--agents", "1", "--backend", "%s:%d" % listening.getsockname(), edit=lambda text: text.replace("service: http", "service: tcp"))
        server = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1)).submit(end_first, listening)
        sock = stack.enter_context(cluster.connect(context=cluster.context(version)))
        assert b"".join(iter(lambda: sock.recv(100), b"")) == b"hello\n"
        for _ in range(2):
            cluster.kill_ragent()
            sock.sendall(bytes(100_000))
        sock.unwrap().close()
        server.result()
        assert b"".join(heard) == bytes(200_000)
        assert cluster.status()["at_deaths"]["reset"] == 0


DEATHS = sized(4, 30)
WAYS = {"trusted TCP, http": ("trusted", "http"), "sealed TCP, tcp": ("sealed", "tcp")}


@pytest.mark.parametrize("link,service", WAYS.values(), ids=WAYS.keys())
def test_deaths_over_tcp_links_harm_nobody(start_cluster, link, service):
    """Every byte is right both ways. At full length the keeper pauses up to 5 s between short lives."""
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
    assert not any(harmed), harmed


def test_ragent_and_one_of_three_agents_die_together_under_load(start_cluster):
    """Within 10 ms. What the living agents own goes on. Another agent asks the requests of the dead one again, and for the rest of its
    downloads. It cannot where bytes are lost that RAgent had for the client: such a connection is reset, and RAgent counts it."""
    cluster, random = start_cluster("--agents", "3", takeover=True, edit=edits.nobody_moves), Random(19)
    with Load(cluster) as load:
        load.add("idle", count=60, run="waits")
        load.ask("idle")
        load.add("keep", count=12, again="always")
        load.add("down", count=9, path="/20m", rate=4 << 20, again="always")
        wait_until(lambda: load.report()["keep"]["answers"] > 100 and all(c["owner"] for c in cluster.connections()), patience(20), "load goes on")
        owners = {c["id"]: c["owner"] for c in cluster.connections()}
        again, pids = cluster.log("r1").count("running again"), [cluster.pid("r1"), cluster.pid("a2")]
        random.shuffle(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: cluster.log("r1").count("running again") > again, patience(20), "the next RAgent")
        cluster.wait_gone("a2")
        wait_until(lambda: all(c["owner"] in ("a1", "a3", None) and c["state"] != "reattaching" for c in cluster.connections()), patience(20),
                   "owners that live")
        left = {c["id"]: c["owner"] for c in cluster.connections()}
        harmed = [lost(check_honest(load.stop(name))) for name in ("keep", "down")]
        idle = lost(load.ask("idle"))
    gone = [owner for identity, owner in owners.items() if identity not in left]
    lacked, reset = cluster.counters()["ragent"]["takeovers_ended"], cluster.status()["at_deaths"]["reset"]
    print("harmed:", harmed, idle, "gone:", gone, "lacked bytes:", lacked, "reset at the death:", reset)
    assert not re.findall("takeover=(?:alert|end|refuse)", cluster.log("r1")) # all that lack nothing go on
    assert all(kind.startswith("reset ") for group in harmed for kind in group)
    assert sum(sum(group.values()) for group in harmed) <= lacked and reset == 0
    assert not idle and not [owner for owner in gone if owner != "a2"]
    elsewhere = {identity: (owner, left[identity]) for identity, owner in owners.items()
                 if owner != "a2" and left.get(identity, owner) != owner}
    assert not elsewhere


@pytest.mark.usefixtures("test_points")
def test_a_record_that_only_the_dead_ones_had_is_none(start_cluster):
    """RAgent and the owner die while RAgent takes the answer. The next owner asks again, and may use the nonce of that record once."""
    cluster = start_cluster("--agents", "2", takeover=True)
    with client_of(cluster, cluster.sf, "1.3") as client:
        client.begin()
        client.shake_hands()
        assert client.ask()
        wait_until(lambda: states(cluster) == ["owned"], patience(10), "it has an owner")
        victims = [cluster.pid("r1"), cluster.pid(cluster.connections()[0]["owner"])]
        cluster.faults("records.committed stop on r1 times 1")
        cluster.settle_faults()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.ask)
            wait_until(lambda: has_stopped(victims[0]), patience(20), "RAgent stands")
            cluster.clear_faults()
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            assert answer.result()
