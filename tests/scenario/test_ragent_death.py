"""RAgent proper dies or hangs: its keeper starts the next one at once, and no client that comes meanwhile is refused."""

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from random import Random

import pytest

from tests.lib import edits
from tests.lib.build import SANITIZED, TEST_POINTS, binary, patience, scaled, sized
from tests.lib.processes import has_stopped, stop
from tests.lib.trouble import stopped
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

DEATHS = sized(10, 20) if not SANITIZED else 4
CRASH = signal.SIGABRT if SANITIZED else signal.SIGSEGV # of which a sanitizer makes a report


def ask(cluster, connection=None, path="/1k"):
    """The body's length of one answer, on a connection of its own unless one is given."""
    web = connection or cluster.http()
    with contextlib.nullcontext(web) if connection else contextlib.closing(web):
        web.request("GET", path)
        return len(web.getresponse().read())


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])
def test_service_is_back_after_each_of_many_deaths(start_cluster, options):
    cluster = start_cluster("--agents", "2", *options, takeover=True)
    keeper, pauses, held = cluster.keeper_pid(), [], []
    for n in range(DEATHS):
        # a life of less than a second may be followed by a pause
        wait_until(lambda: cluster.status()["uptime_s"] >= 2, patience(10), "two seconds of service")
        assert ask(cluster) == 1024
        pid = cluster.pid("r1")
        os.kill(pid, (signal.SIGKILL, CRASH, signal.SIGABRT)[n % 3])
        began = time.monotonic()
        wait_until(lambda pid=pid: cluster.pid("r1") not in (pid, keeper), patience(10), "the next RAgent")
        assert ask(cluster) == 1024
        pauses.append(time.monotonic() - began)
        wait_until(lambda n=n: cluster.log("r1").count("running again") == n + 1, patience(10), "the next life is logged")
        held.append(descriptors(keeper))
    print("pauses in ms:", sorted(round(1000 * p) for p in pauses))
    assert cluster.keeper_pid() == keeper
    # those of the dead ones are closed; a few links and the like may be under way
    assert max(held) <= held[0] + 2 * DEATHS, held


def test_a_client_that_connects_during_the_death_is_served(kept_cluster):
    """A client waits in the accept queue; another was accepted and has sent nothing."""
    cluster = kept_cluster("--agents", "1", takeover=True)
    silent = socket.create_connection(cluster.sf, patience(20))
    wait_until(lambda: cluster.connection_of(silent), patience(10), "accepted")
    stop(cluster.pid("r1"))
    waiting = [socket.create_connection(cluster.sf, patience(20)) for _ in range(10)]
    os.kill(cluster.pid("r1"), signal.SIGKILL)
    for sock in [silent, *waiting]:
        with contextlib.closing(cluster.http(sock=sock)) as web:
            assert ask(cluster, web) == 1024


def test_a_process_that_hangs_is_killed_and_followed(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True, edit=lambda text: text.replace("    workers: 1\n", "    workers: 1\n    hang: 3s\n", 1))
    hung = cluster.pid("r1")
    stop(hung)
    assert ask(cluster) == 1024
    assert cluster.pid("r1") != hung
    assert "ragent hangs" in cluster.log("r1") and "cause=hung" in cluster.log("r1")


@pytest.mark.parametrize("version,ciphers", [("1.3", None), ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")], ids=["1.3", "1.2"])
@pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])
def test_idle_connections_go_on(kept_cluster, options, version, ciphers):
    """Several deaths in a row, on SF and SL, and a request on each connection after each but the first two."""
    cluster = kept_cluster("--agents", "2", *options, takeover=True)
    context = cluster.context(version, ciphers)
    webs = [cluster.http(where, context) for where in (cluster.sf, cluster.sl) for _ in range(20)]
    for web in webs:
        assert ask(cluster, web) == 1024
    wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "all are owned")
    for n in range(5):
        cluster.kill_ragent()
        if n > 1:
            for web in webs:
                assert ask(cluster, web, "/64k") == 65536
        assert len(cluster.connections()) == len(webs)
    for web in webs:
        web.close()


def test_many_workers_of_few_connections_have_room_for_all(start_cluster):
    """Each worker begins slabs of its own, for each length of a name or of a sealed copy."""
    def many_workers_few_connections(text):
        return text.replace("    workers: 1\n", "    workers: 8\n", 1) + "limits: { connections: 300 }\n"
    cluster = start_cluster("--agents", "2", takeover=True, edit=many_workers_few_connections)
    webs = [cluster.http(where, cluster.context(version)) for version in ("1.2", "1.3") for where in (cluster.sf, cluster.sl) for _ in range(25)]
    for web in webs:
        assert ask(cluster, web) == 1024
    wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "all are owned")
    for _ in range(2):
        cluster.kill_ragent()
        for web in webs:
            assert ask(cluster, web) == 1024
        wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "all are owned")
        assert cluster.counters()["ragent"]["table_full"] == 0
    for web in webs:
        web.close()


@contextlib.contextmanager
def soft_limit_of_descriptors(most):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_more_descriptors_than_the_soft_limit_are_no_hindrance(start_cluster):
    with soft_limit_of_descriptors(64):
        cluster = start_cluster("--agents", "2", takeover=True)
    webs = [cluster.http() for _ in range(100)]
    for web in webs:
        assert ask(cluster, web) == 1024
    wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "all are owned")
    cluster.kill_ragent()
    for web in webs:
        assert ask(cluster, web) == 1024
        web.close()


@pytest.mark.parametrize("seconds", [5, 9])
def test_a_hang_with_tcp_links_harms_nobody(start_cluster, seconds):
    """RAgent reads nothing of its links for longer than agents believe in such a link. Downloads fill them."""
    from tests.lib.tlsload import Load, check_honest, check_unharmed, lost, say
    edit = edits.edits(edits.nobody_moves, edits.over_tcp, edits.below("r1", f"hang: {seconds}s"), edits.at_end("limits: { window: 1MiB }"))
    cluster = start_cluster("--agents", "2", takeover=True, edit=edit)
    with Load(cluster) as load:
        load.add("idle", count=20, run="waits")
        load.ask("idle")
        load.add("down", count=64, path="/4m", timeout_ms=patience(60) * 1000)
        load.wait_for_first_answers()
        stop(cluster.pid("r1"))
        wait_until(lambda: "running again" in cluster.log("r1"), patience(30), "the next RAgent")
        # the kernel looks when it probes, 3 s or 6 s after the first unread byte
        assert seconds == 5 or "connection timed out" in cluster.log("a1") + cluster.log("a2")
        check_unharmed(load.ask("idle"))
        report = check_honest(load.stop("down"))
        assert sum(lost(report).values()) <= 1, say(report)  # that which its worker was changing
    assert cluster.status()["deaths"] == {"killed": 0, "crashed": 0, "hung": 1}


@pytest.mark.plain  # many connections, and nothing else that a sanitizer would not see in the tests above
def test_the_owner_of_very_many_connections_is_asked_for_all(start_cluster):
    """The questions take more than the output of a link holds at once."""
    from tests.lib.tlsload import Load, check_unharmed
    cluster = start_cluster("--agents", "1", takeover=True)
    with Load(cluster) as load:
        load.add("idle", count=2500, run="waits", timeout_ms=patience(60) * 1000)
        load.ask("idle")
        cluster.kill_ragent()
        check_unharmed(load.ask("idle"))
    assert cluster.counters()["ragent"]["reattached"] >= 2500
    assert cluster.log("r1").count("link up") == 2


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("point", ["epoch.raise", "ssl_id.written"])
def test_a_death_amid_adoptions_lets_no_epoch_be_granted_twice(start_cluster, point):
    """Connections whose adoption was under way may end; the others go on, and the nonce audit sees all of them."""
    cluster = start_cluster("--agents", "2", takeover=True, edit=lambda text: text.replace("    backend: main\n", "    backend: main\n    rest_after: 100ms\n"))
    webs = [cluster.http(context=cluster.context(version)) for version in ("1.2", "1.3") for _ in range(15)]
    for web in webs:
        assert ask(cluster, web) == 1024
    wait_until(lambda: all(c["state"] == "resting" for c in cluster.connections()), patience(10), "nobody owns them")
    cluster.faults(f"{point} kill on r1 after 10 times 1")
    cluster.settle_faults()
    gone_on = 0
    for web in webs:
        with contextlib.suppress(OSError, http.client.HTTPException):
            gone_on += ask(cluster, web) == 1024
        web.close()
    assert cluster.log("r1").count("ragent died") >= 1
    assert gone_on >= 24


def test_idle_connections_outlive_ragent_and_one_of_three_agents(start_cluster):
    cluster = start_cluster("--agents", "3", takeover=True)
    webs = [cluster.http(context=cluster.context(version)) for version in ("1.2", "1.3") for _ in range(15)]
    for web in webs:
        assert ask(cluster, web) == 1024
    victims = [cluster.pid("r1"), cluster.pid("a2")]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    for web in webs:
        assert ask(cluster, web) == 1024
        web.close()
    cluster.wait_gone("a2")


@pytest.mark.usefixtures("test_points")
def test_a_source_that_crashes_ragent_twice_is_refused(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True)
    good = cluster.http()
    assert ask(cluster, good) == 1024
    cluster.faults("records.came fail peer 127.0.0.2:0")
    cluster.settle_faults()
    for crashes in (1, 2):
        with pytest.raises(OSError):
            cluster.connect(source="127.0.0.2")
        wait_until(lambda crashes=crashes: cluster.log("r1").count("running again") == crashes, patience(10), "the next RAgent")
        assert ask(cluster, good) == 1024
    for _ in range(5):
        with pytest.raises(OSError):
            cluster.connect(source="127.0.0.2")
    counters = cluster.counters()["ragent"]
    assert counters["suspects_refused"] == counters["ended_suspected"] == 5
    assert counters["ended_limit_source"] == 0
    assert cluster.status()["deaths"] == {"killed": 0, "crashed": 2, "hung": 0}
    assert ask(cluster, good) == ask(cluster) == 1024
    good.close()


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("at", ["amid its hello", "in a request"])
def test_a_connection_that_crashed_ragent_is_not_restored(start_cluster, at):
    """Its bytes are in the memory that outlives RAgent. Given to the next process, they would end that, too."""
    cluster = start_cluster("--agents", "1", takeover=True)
    good = cluster.http()
    assert ask(cluster, good) == 1024
    bad = socket.create_connection(cluster.sf, patience(20), source_address=("127.0.0.2", 0))
    if at == "amid its hello":
        bad.sendall(b"\x16\x03\x01\x02\x00\x01")
    else:
        bad = cluster.connect(sock=bad)
    wait_until(lambda: len(cluster.connections()) == 2)
    cluster.faults("records.came fail peer 127.0.0.2:0")
    cluster.settle_faults()
    bad.sendall(b"\x00" * 511)
    wait_until(lambda: cluster.log("r1").count("running again") == 1, patience(10), "the next RAgent")
    assert ask(cluster, good) == ask(cluster) == 1024
    with contextlib.suppress(OSError):
        assert bad.recv(1) == b""
    assert cluster.status()["deaths"] == {"killed": 0, "crashed": 1, "hung": 0}
    good.close()
    bad.close()


def behind_balancer(cluster, client):
    """A TLS connection of a client of which a balancer at 127.0.0.1 tells."""
    sock = socket.create_connection(cluster.sl, patience(20))
    sock.sendall(f"PROXY TCP4 {client} 198.51.100.1 4000 443\r\n".encode())
    return cluster.connect(sock=sock)


@pytest.mark.usefixtures("test_points")
def test_a_client_behind_a_balancer_is_refused_and_the_balancer_is_not(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True, edit=edits.edits(edits.below("sl", 'proxy_protocol: on', 'trusted: ["127.0.0.1/32"]')))
    cluster.faults("records.came fail peer 192.0.2.7:0")
    cluster.settle_faults()
    for crashes in (1, 2):
        with pytest.raises(OSError):
            behind_balancer(cluster, "192.0.2.7")
        wait_until(lambda crashes=crashes: cluster.log("r1").count("running again") == crashes, patience(10), "the next RAgent")
    cluster.clear_faults()
    cluster.settle_faults()
    with pytest.raises(OSError):
        behind_balancer(cluster, "192.0.2.7")
    assert cluster.counters()["ragent"]["suspects_refused"] == 1
    behind_balancer(cluster, "192.0.2.8").close()
    assert ask(cluster) == 1024


@pytest.mark.usefixtures("test_points")
def test_a_connection_that_crashes_the_next_ragent_is_given_up(start_cluster):
    """It crashes one life. The one after that ends this connection, and all others go on."""
    cluster = start_cluster("--agents", "2", takeover=True)
    webs = [cluster.http() for _ in range(20)]
    poison = cluster.http(source="127.0.0.2")
    for web in [*webs, poison]:
        assert ask(cluster, web) == 1024
    cluster.faults("slot.restoring fail peer 127.0.0.2:0")
    cluster.settle_faults()
    cluster.kill_ragent()
    for web in webs:
        assert ask(cluster, web) == 1024
        web.close()
    with pytest.raises(ConnectionResetError):
        os.read(poison.sock.fileno(), 1)
    assert cluster.status()["deaths"] == {"killed": 1, "crashed": 1, "hung": 0}
    fates = cluster.status()["at_deaths"]
    assert (fates["went_on"], fates["reset"], fates["given_up"]) == (20, 1, 1)
    assert 0 < fates["last_pause_us"] <= fates["pause_us"]


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])
def test_after_two_deaths_by_restoring_the_next_process_restores_nothing(start_cluster, options):
    """Each connection crashes the process that restores it. The third process resets all of them and serves new clients."""
    cluster = start_cluster("--agents", "2", *options, takeover=True)
    webs = [cluster.http() for _ in range(20)]
    for web in webs:
        assert ask(cluster, web) == 1024
    wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "all are owned")
    cluster.faults("slot.restoring fail on r1")
    cluster.settle_faults()
    cluster.kill_ragent()
    for web in webs:
        web.sock.settimeout(None)
        with pytest.raises(ConnectionResetError):
            os.read(web.sock.fileno(), 1)
    assert cluster.status()["deaths"] == {"killed": 1, "crashed": 2, "hung": 0}
    fates = cluster.status()["at_deaths"]
    assert (fates["went_on"], fates["starts_without_restore"]) == (0, 1) and fates["reset"] == len(webs)
    lines = [line for line in cluster.log("r1").splitlines() if "nothing is restored" in line]
    assert len(lines) == 1 and "remedy=" in lines[0]
    with contextlib.closing(cluster.http()) as web:
        assert ask(cluster, web) == 1024
        cluster.clear_faults()
        cluster.settle_faults()
        wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "it is owned")
        cluster.kill_ragent() # the count of deaths has begun anew
        assert ask(cluster, web) == 1024


@pytest.mark.usefixtures("test_points")
def test_two_kills_in_a_row_while_it_restores_cost_nobody_anything(start_cluster):
    """Each falls into the restoring of a connection, with some that are restored and some that are not."""
    cluster = start_cluster("--agents", "2", takeover=True)
    webs = [cluster.http() for _ in range(20)]
    for web in webs:
        assert ask(cluster, web) == 1024
    wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "all are owned")
    cluster.faults("slot.restoring stop on r1 after 5")
    cluster.settle_faults()
    keeper, dead = cluster.keeper_pid(), [cluster.pid("r1")]
    os.kill(dead[0], signal.SIGKILL)
    for n in range(2):
        wait_until(lambda: cluster.pid("r1") not in (keeper, *dead) and has_stopped(cluster.pid("r1")), patience(10), "it restores")
        dead.append(cluster.pid("r1"))
        if n == 1:
            cluster.clear_faults() # the next process reads no rule
        os.kill(dead[-1], signal.SIGKILL)
    for web in webs:
        assert ask(cluster, web) == 1024
        web.close()
    assert cluster.status()["deaths"] == {"killed": 3, "crashed": 0, "hung": 0}
    fates = cluster.status()["at_deaths"]
    assert (fates["went_on"], fates["reset"], fates["given_up"], fates["starts_without_restore"]) == (20, 0, 0, 0)


def test_kills_at_any_moment_of_a_restore_cost_nobody_anything(start_cluster):
    """Two more kills right behind the first one."""
    from tests.lib.tlsload import Load, check_honest, lost
    cluster, random, rounds = start_cluster("--agents", "2", takeover=True), Random(15), sized(3, 20)
    with Load(cluster) as load:
        load.add("idle", count=200, run="waits")
        load.ask("idle")
        for n in range(rounds):
            wait_until(lambda: cluster.status()["uptime_s"] >= 2, patience(10), "two seconds of service")
            keeper, dead = cluster.keeper_pid(), []
            for _ in range(3):
                while cluster.pid("r1") in (keeper, *dead): # it restores in a few milliseconds
                    pass
                time.sleep(random.uniform(0, 0.03) if dead else 0)
                dead.append(cluster.pid("r1"))
                os.kill(dead[-1], signal.SIGKILL)
            wait_until(lambda dead=dead, keeper=keeper: cluster.pid("r1") not in (keeper, *dead), patience(10), "the next RAgent")
            wait_until(lambda: cluster.status()["state"] == "running", patience(20), "it serves")
            print("lost until round", n, ":", lost(check_honest(load.ask("idle"))))
        assert not lost(load.report()["idle"])
    assert cluster.status()["at_deaths"]["starts_without_restore"] == 0


@pytest.mark.usefixtures("test_points")
def test_a_connection_whose_answer_crashes_ragent_is_not_restored(start_cluster):
    """Its agent would send the same frame to the next process, too. That is no fault of the client, whose source is served on."""
    cluster = start_cluster("--agents", "1", takeover=True)
    good = cluster.http()
    assert ask(cluster, good) == 1024
    for deaths in (1, 2):
        bad = cluster.http(source="127.0.0.2")
        assert ask(cluster, bad) == 1024
        cluster.faults("records.committed fail peer 127.0.0.2:0")
        cluster.settle_faults()
        bad.request("GET", "/1k")
        bad.sock.settimeout(None)
        with pytest.raises(ConnectionResetError):
            os.read(bad.sock.fileno(), 1)
        cluster.clear_faults()
        cluster.settle_faults()
        wait_until(lambda deaths=deaths: cluster.log("r1").count("running again") == deaths, patience(20), "the next RAgent")
        assert ask(cluster, good) == 1024
        assert cluster.status()["deaths"] == {"killed": 0, "crashed": deaths, "hung": 0}
    with contextlib.closing(cluster.http(source="127.0.0.2")) as web:
        assert ask(cluster, web) == 1024
    assert cluster.counters()["ragent"]["suspects_refused"] == 0
    good.close()


def test_a_stop_between_two_lives_is_an_orderly_one(start_cluster):
    """The keeper pauses after short lives. Nobody goes on with the clients that the last one left, so they get a reset."""
    cluster = start_cluster("--agents", "1", takeover=True)
    web, keeper = cluster.http(), cluster.keeper_pid()
    assert ask(cluster, web) == 1024
    while "next_in_ms=5000" not in cluster.log("r1"):
        deaths = cluster.log("r1").count("ragent died")
        wait_until(lambda: cluster.pid("r1") not in (None, keeper), patience(20), "a life")
        with contextlib.suppress(ProcessLookupError):
            os.kill(cluster.pid("r1"), signal.SIGKILL)
        wait_until(lambda deaths=deaths: cluster.log("r1").count("ragent died") > deaths, patience(20), "its death")
    os.kill(keeper, signal.SIGTERM)
    web.sock.settimeout(None)
    with pytest.raises(ConnectionResetError):
        os.read(web.sock.fileno(), 1)
    assert cluster.wait_gone("r1") == 0


def test_a_death_in_the_middle_of_a_stop_forges_no_end(start_cluster):
    """RAgent waits for an answer that is under way. A FIN of the kernel could pass for its end."""
    cluster = start_cluster("--agents", "1", takeover=True)
    with contextlib.closing(cluster.connect()) as sock:
        sock.sendall(b"GET /20m HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sock.recv(1024)
        os.kill(cluster.keeper_pid(), signal.SIGTERM)
        wait_until(lambda: "stopping" in cluster.log("r1"), patience(10), "it stops")
        raw = socket.socket(fileno=os.dup(sock.fileno()))
        raw.settimeout(patience(20))
        os.kill(cluster.pid("r1"), signal.SIGKILL)
        with contextlib.closing(raw), pytest.raises(ConnectionResetError):
            while raw.recv(1 << 20):
                pass
    cluster.wait_gone("r1")


@pytest.mark.usefixtures("test_points")
def test_a_connection_that_cannot_be_restored_ends_by_a_reset(start_cluster):
    """A FIN could pass for the end of an answer."""
    cluster = start_cluster("--agents", "1", takeover=True)
    good, bad = cluster.http(), cluster.http(source="127.0.0.2")
    for web in (good, bad):
        assert ask(cluster, web) == 1024
    cluster.faults("slot.restoring drop peer 127.0.0.2:0")
    cluster.settle_faults()
    cluster.kill_ragent()
    with pytest.raises(ConnectionResetError):
        os.read(bad.sock.fileno(), 1)
    assert ask(cluster, good) == 1024
    good.close()


@pytest.mark.usefixtures("test_points")
def test_a_slow_restore_loses_no_owner_and_delays_no_new_client(start_cluster):
    """Half of the connections wait to be restored for twice as long as agents wait for a dead RAgent."""
    lost_s, count = patience(1), 20
    cluster = start_cluster("--agents", "2", takeover=True, edit=edits.edits(
        edits.at_end(f"health: {{ ping: 50ms, suspect: {lost_s * 500:.0f}ms, lost: {lost_s * 1000:.0f}ms }}"), edits.nobody_moves))
    webs = [cluster.http(context=cluster.context(version)) for version in ("1.2", "1.3") for _ in range(count // 2)]
    for web in webs:
        assert ask(cluster, web) == 1024
    wait_until(lambda: all(c["state"] == "owned" for c in cluster.connections()), patience(10), "all are owned")
    before = {c["id"]: (c["owner"], c["epoch"]) for c in cluster.connections()}
    cluster.faults(f"slot.next drop on r1 after {count // 2}")
    cluster.settle_faults()
    os.kill(cluster.pid("r1"), signal.SIGKILL)
    late = time.monotonic() + 2 * lost_s
    wait_until(lambda: ask(cluster) == 1024 and time.monotonic() > late, patience(10), "new clients are served for long enough")
    assert "running again" not in cluster.log("r1")
    cluster.clear_faults()
    for web in webs:
        assert ask(cluster, web) == 1024
    assert {c["id"]: (c["owner"], c["epoch"]) for c in cluster.connections() if c["id"] in before} == before
    assert cluster.counters()["ragent"]["reattached"] == count
    assert cluster.status()["at_deaths"]["last_pause_us"] > 1.5e6 * lost_s
    for web in webs:
        web.close()


@pytest.mark.usefixtures("test_points")
def test_bytes_that_were_read_last_outlive_two_processes(start_cluster):
    """They are only in the worker's read buffer. The next process reads into that, too, before it has restored all."""
    cluster = start_cluster("--agents", "1", takeover=True)
    others, last = [cluster.http() for _ in range(5)], cluster.http(source="127.0.0.2")
    for web in [*others, last]:
        assert ask(cluster, web) == 1024
    dead = cluster.pid("r1")
    cluster.faults("records.read stop on r1 peer 127.0.0.2:0 times 1")
    cluster.settle_faults()
    last.request("GET", "/64k")
    wait_until(lambda: has_stopped(dead), patience(20), "it has read the request")
    cluster.faults("slot.next drop on r1")
    os.kill(dead, signal.SIGKILL)
    wait_until(lambda: ask(cluster) == 1024, patience(20), "the next process has read other bytes")
    os.kill(cluster.pid("r1"), signal.SIGKILL)
    wait_until(lambda: cluster.log("r1").count("ragent died") == 2 and ask(cluster) == 1024, patience(20), "another process has read others")
    cluster.clear_faults()
    assert len(last.getresponse().read()) == 65536
    for web in [*others, last]:
        assert ask(cluster, web) == 1024
        web.close()
    assert cluster.status()["at_deaths"]["reset"] == 0


@pytest.mark.usefixtures("test_points")
def test_a_stop_amid_a_slow_restore_ends_in_order(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True)
    webs = [cluster.http() for _ in range(10)]
    for web in webs:
        assert ask(cluster, web) == 1024
    cluster.faults("slot.next drop on r1 after 5")
    cluster.settle_faults()
    os.kill(cluster.pid("r1"), signal.SIGKILL)
    assert ask(cluster) == 1024
    os.kill(cluster.keeper_pid(), signal.SIGTERM)
    assert cluster.wait_gone("r1", patience(20)) == 0
    assert "running again" not in cluster.log("r1") and "stopped" in cluster.log("r1")
    for web in webs:
        web.sock.suppress_ragged_eofs = False
        assert web.sock.recv(1) == b""  # close_notify
        web.close()


@pytest.mark.usefixtures("test_points")
def test_a_death_before_anything_was_given_is_followed(start_cluster):
    """The old process dies while --replace asks it for its first worker: the new process ends, and the keeper of the old one goes on."""
    cluster = start_cluster("--agents", "1", takeover=True)
    keeper, web = cluster.keeper_pid(), cluster.http()
    assert ask(cluster, web) == 1024
    cluster.faults("handover.give kill on r1 after 1 times 1")
    cluster.settle_faults()
    new = subprocess.run([binary("ragent/ragent"), "--config", cluster.dir / "cluster.yaml", "--name", "r1", "--replace"],
                         env=cluster.env, capture_output=True, text=True, timeout=patience(60), check=False)
    assert new.returncode != 0
    wait_until(lambda: "running again" in cluster.log("r1"), patience(20), "the next RAgent")
    assert ask(cluster, web) == ask(cluster) == 1024
    assert cluster.keeper_pid() == keeper
    web.close()


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])
def test_a_request_without_an_answer_is_asked_again(kept_cluster, options, version):
    cluster = kept_cluster("--agents", "2", *options, takeover=True)
    webs = [cluster.http(context=cluster.context(version)) for _ in range(10)]
    for web in webs:
        assert ask(cluster, web) == 1024
    before = {c["id"]: c["client_records"] for c in cluster.connections()}
    for web in webs:
        web.request("GET", "/hold?ms=1500")
    wait_until(lambda: all(c["client_records"] > before[c["id"]] for c in cluster.connections()), patience(10), "all requests came")
    cluster.kill_ragent()
    for web in webs:
        assert web.getresponse().status == 200
        web.close()


def test_half_a_post_goes_on(start_cluster):
    """Its owner and its backend wait for the other half; the backend gets it once."""
    cluster = start_cluster("--agents", "2")
    web = cluster.http()
    assert ask(cluster, web) == 1024
    before = cluster.connections()[0]["client_records"]
    web.sock.sendall(b"POST /count HTTP/1.1\r\nHost: localhost\r\nX-Id: half\r\nContent-Length: 10\r\n\r\n12345")
    wait_until(lambda: cluster.connections()[0]["client_records"] > before, patience(10), "the head came")
    cluster.kill_ragent()
    web.sock.sendall(b"67890")
    assert web.sock.recv(1000).startswith(b"HTTP/1.1 200")
    web.close()
    with contextlib.closing(cluster.http()) as other:
        other.request("GET", "/count/half")
        assert json.loads(other.getresponse().read()) == {"executions": 1}


def test_a_client_that_ended_right_before_the_death_keeps_no_place(kept_cluster):
    """RAgent had read its end, and the owner had not answered it."""
    cluster = kept_cluster("--agents", "1", takeover=True)
    with contextlib.closing(cluster.http()) as web, contextlib.ExitStack() as later:
        assert ask(cluster, web) == 1024
        owner = cluster.pid("a1")
        stop(owner)
        later.callback(os.kill, owner, signal.SIGCONT)
        web.sock.shutdown(socket.SHUT_WR)  # without a close_notify
        with socket.create_connection(cluster.sf, patience(20)) as other:  # its worker has turned since
            wait_until(lambda: cluster.connection_of(other), patience(10), "accepted")
        dead = cluster.pid("r1")
        os.kill(dead, signal.SIGKILL)
        wait_until(lambda: cluster.pid("r1") not in (dead, cluster.keeper_pid()), patience(10), "the next RAgent")
        later.close()
        web.sock.settimeout(patience(20))
        with contextlib.suppress(ConnectionResetError):
            while web.sock.recv(1 << 16):
                pass


def test_resting_connections_go_on(start_cluster):
    cluster = start_cluster("--agents", "2", takeover=True, edit=lambda text: text.replace("    backend: main\n", "    backend: main\n    rest_after: 100ms\n"))
    webs = [cluster.http() for _ in range(20)]
    for web in webs:
        assert ask(cluster, web) == 1024
    for _ in range(3):
        wait_until(lambda: all(c["state"] == "resting" for c in cluster.connections()), patience(10), "all rest")
        cluster.kill_ragent()
        for web in webs:
            assert ask(cluster, web) == 1024
    for web in webs:
        web.close()


LINKS = {"memory": (), "sealed, 2 workers": ("--workers", "2", "--link", "sealed")}


@pytest.mark.parametrize("options", LINKS.values(), ids=LINKS.keys())
def test_downloads_and_uploads_under_way_go_on(start_cluster, request, options):
    """Every byte right both ways, no owner changes, and nothing is sealed twice (the nonce audit)."""
    request.getfixturevalue("test_points") if not TEST_POINTS else None
    from tests.lib.tlsload import Load, check_unharmed
    cluster, random, deaths = start_cluster("--agents", "3", *options), Random(16), sized(6, 30)
    count = scaled(10, 3)
    busy = {"down": {"count": count, "path": "/20m", "rate": 4 << 20}, "up": {"count": count, "method": "POST", "path": "/sha256", "body": 4 << 20},
            "idle": {"count": 20, "every_ms": 500}}
    with Load(cluster) as load:
        for name, settings in busy.items():
            load.add(name, again="always", **settings)
        wait_until(lambda: load.report()["up"]["answers"] > 10, patience(30), "load goes on")
        epochs = {c["id"]: c["epoch"] for c in cluster.connections()}
        for _ in range(deaths):
            answers = load.report()["idle"]["answers"]
            wait_until(lambda answers=answers: load.report()["idle"]["answers"] > answers + random.randrange(20, 60), patience(20), "load goes on")
            cluster.kill_ragent()
        assert {c["id"]: c["epoch"] for c in cluster.connections()} == epochs
        for name in busy:
            check_unharmed(load.stop(name))


def test_signals_go_through_the_keeper(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True)
    os.kill(cluster.keeper_pid(), signal.SIGHUP)
    wait_until(lambda: "r1: reloaded" in cluster.log("r1"), patience(10))
    cluster.kill_ragent()
    os.kill(cluster.keeper_pid(), signal.SIGTERM)
    assert cluster.wait_gone("r1") == 0
    assert "stopped" in cluster.log("r1")


def test_a_process_can_be_replaced_after_a_death(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True)
    cluster.kill_ragent()
    keeper = cluster.keeper_pid()
    with contextlib.closing(cluster.http()) as web:
        assert ask(cluster, web) == 1024
        cluster.replace()
        assert cluster.keeper_pid() != keeper
        assert ask(cluster, web) == 1024
    cluster.kill_ragent()
    assert ask(cluster) == 1024


def test_a_replacement_waits_for_owners_that_live(start_cluster):
    """An agent stands still behind a death. It comes back before it is lost, and goes on in the new process."""
    cluster = start_cluster("--agents", "1", takeover=True)
    with contextlib.closing(cluster.http()) as web:
        assert ask(cluster, web) == 1024
        with stopped(cluster, "a1"):
            cluster.kill_ragent()
            back = threading.Timer(1, cluster.send_signal, ("a1", signal.SIGCONT))
            back.start()
            cluster.replace()
            back.join()
        assert ask(cluster, web) == 1024
    counters = cluster.counters()["ragent"]
    assert counters["reattach_failed"] == 0
    assert counters["takeovers_rested"] + counters["takeovers_adopted"] == 0


def test_without_its_keeper_it_serves_on(start_cluster):
    cluster = start_cluster("--agents", "1", takeover=True, clean_exit=False)
    child = cluster.pid("r1")
    with contextlib.closing(cluster.http()) as web:
        assert ask(cluster, web) == 1024
        os.kill(cluster.keeper_pid(), signal.SIGKILL)
        wait_until(lambda: "keeper died" in cluster.log("r1"), patience(10))
        assert ask(cluster, web) == 1024
    os.kill(child, signal.SIGTERM)
    wait_until(lambda: not os.path.exists(f"/proc/{child}"), patience(20), "the end of the orphan")
