"""RAgent replaced by a new process under load: nothing is closed, nothing is lost, agents see nothing. And the new process killed
or refused at each step: the old one goes on."""

import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import FULL, TEST_POINTS, binary, patience, sized
from tests.lib.edits import at_end, below, edits, nobody_moves
from tests.lib.processes import has_stopped, stop
from tests.lib.tlsload import check_unharmed, say
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(240)

REPLACEMENTS = 10


class SlowClient:
    """A TLS client that sends its bytes only when the test wants."""

    def __init__(self, cluster, where=None):
        self._sock = socket.create_connection(where or cluster.sf, patience(20))
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = cluster.context().wrap_bio(self._in, self._out, server_hostname="localhost")

    def close(self):
        self._sock.close()

    def _step(self, call, *args):
        """The bytes to send now; and the result of the call, or None when it wants to read."""
        try:
            return self._out.read(), call(*args)
        except ssl.SSLWantReadError:
            return self._out.read(), None

    def _receive(self):
        data = self._sock.recv(65536)
        assert data, "the connection was closed"
        self._in.write(data)

    def send_part_of_hello(self, length):
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self._pending = self._out.read()
        assert length < len(self._pending)
        self._sock.sendall(self._pending[:length])
        self._pending = self._pending[length:]

    def finish_handshake(self):
        self._sock.sendall(self._pending)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._sock.sendall(self._out.read())
                self._receive()
        self._sock.sendall(self._out.read())

    def send_part_of_request(self, length):
        self._tls.write(b"GET /1k HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self._pending = self._out.read()
        self._sock.sendall(self._pending[:length])
        self._pending = self._pending[length:]

    def finish_request(self):
        self._sock.sendall(self._pending)
        answer = b""
        while b"\r\n\r\n" not in answer or len(answer.split(b"\r\n\r\n", 1)[1]) < 1024:
            try:
                answer += self._tls.read(65536)
            except ssl.SSLWantReadError:
                self._receive()
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]


stays = edits(nobody_moves, below("sf", "rest_after: off"))


def links_lost(cluster):
    return cluster.counters()["ragent"]["links_lost"], sum("link lost" in cluster.log(a) for a in cluster.agents)


def owners(cluster):
    """Of the settled connections."""
    return {c["id"]: (c["owner"], c["epoch"]) for c in cluster.connections() if c["state"] == "owned"}


@pytest.mark.parametrize("options", [("--link", "trusted"), ("--link", "sealed", "--workers", "2")], ids=["trusted", "sealed, 2 workers"])
def test_ten_times_in_a_row_under_load(start_cluster, request, options):
    # one hello is on its way for as long as half of all this takes, and idle connections keep their owners
    cluster = start_cluster("--agents", "2", *options, edit=edits(at_end("limits: { handshake_timeout: 5min }"), stays))
    request.getfixturevalue("test_points") if not TEST_POINTS else None
    from tests.lib.tlsload import Load
    bulk = sized(20 << 20, 100 << 20)
    with Load(cluster) as load:
        load.add("idle", count=sized(100, 1000), run="waits")
        load.ask("idle")
        load.add("keep", count=16)
        load.add("slow", count=16, every_ms=10, path="/64k")
        load.add("new", count=8, every_ms=20, times=1, again="always")
        load.add("resuming", count=8, every_ms=20, times=1, again="always", resume=1)
        load.add("down", path=f"/{bulk >> 20}m", rate=bulk // 10)
        load.add("up", method="POST", path="/sha256", body=bulk, rate=bulk // 10)
        hello, record = SlowClient(cluster), SlowClient(cluster)
        record.send_part_of_hello(1)
        record.finish_handshake()
        hello.send_part_of_hello(40)
        before, pids = owners(cluster), {cluster.pid("r1")}
        for n in range(REPLACEMENTS):
            asked = load.report()["keep"]["answers"]
            if n == REPLACEMENTS // 2:
                hello.finish_handshake()
                record.send_part_of_request(11)
            cluster.replace()
            pids.add(cluster.pid("r1"))
            wait_until(lambda: load.report()["keep"]["answers"] > asked + 100, patience(20), "load goes on")
        assert len(pids) == REPLACEMENTS + 1
        record.finish_request()
        hello.send_part_of_request(1)
        hello.finish_request()
        for name in ("keep", "slow", "new", "resuming", "down", "up"):
            report = check_unharmed(load.stop(name))
            print(f"{name}: {report['answers']} answers, longest {report['latency_us']['max'] / 1000} ms")
        check_unharmed(load.ask("idle"))
        after = owners(cluster)
        assert not {i: (before[i], after[i]) for i in before.keys() & after.keys() if before[i] != after[i]}
        assert links_lost(cluster) == (0, 0)
        assert "broke" not in cluster.log("r1")
    hello.close()
    record.close()


def test_the_accept_queue_waits(start_cluster):
    """Clients that the old process had not accepted yet are accepted by the new one."""
    cluster = start_cluster("--agents", "1")
    old = cluster.pid("r1")
    stop(old)
    clients = [SlowClient(cluster) for _ in range(20)]
    for client in clients:
        client.send_part_of_hello(100)
    os.kill(old, signal.SIGCONT)
    cluster.replace()
    for client in clients:
        client.finish_handshake()
        client.send_part_of_request(5)
        client.finish_request()
        client.close()


def new_process(cluster, *options, config=None):
    """A ragent that should replace the running one; waits for its end. Returns its output and its status."""
    done = subprocess.run([binary("ragent/ragent"), "--config", config or str(cluster.dir / "cluster.yaml"), "--name", "r1", "--replace",
                           *options], env=cluster.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=patience(30))
    return done.returncode, done.stdout


@pytest.fixture
def under_load(start_cluster):
    """A cluster with load. Afterwards no client was harmed and the first process still runs."""
    from tests.lib.tlsload import Load
    cluster = start_cluster("--agents", "2", "--link", "sealed")
    pid = cluster.pid("r1")
    with Load(cluster) as load:
        load.add("idle", count=50, run="waits")
        load.add("keep", count=8)
        load.add("new", count=4, every_ms=20, times=1, again="always")
        yield cluster
        asked = load.report()["keep"]["answers"]
        wait_until(lambda: load.report()["keep"]["answers"] > asked + 50, patience(20), "load goes on")
        for name in ("keep", "new"):
            check_unharmed(load.stop(name))
        check_unharmed(load.ask("idle"))
        assert cluster.pid("r1") == pid and cluster.status()["state"] == "running"
        assert links_lost(cluster) == (0, 0)


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("rule", ["handover.offered kill", "handover.take kill", "handover.take kill after 1", "handover.take kill after 2",
                                  "handover.take kill after 3", "handover.take fail after 1", "handover.take stop after 3",
                                  "handover.give fail after 2", "handover.commit fail"])
def test_the_old_process_goes_on_wherever_the_new_one_ends(under_load, rule):
    cluster = under_load
    cluster.faults(rule)
    cluster.settle_faults()
    if " stop " in rule: # it is stopped: the old one goes on without it, and it drops what it has when it comes back
        held = subprocess.Popen([binary("ragent/ragent"), "--config", cluster.dir / "cluster.yaml", "--name", "r1", "--replace"],
                                env=cluster.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: "worker not given" in cluster.log("r1"), patience(20), "the old process gave up waiting")
        held.send_signal(signal.SIGCONT)
        assert held.wait(patience(20)) == 1
        return
    status, said = new_process(cluster)
    assert status == (-signal.SIGKILL if "kill" in rule else 1), said
    cluster.clear_faults()
    cluster.settle_faults()
    status, said = new_process(cluster, config="/nonexistent")
    assert status != 0


@pytest.mark.parametrize("change,reason", [
    (lambda text: text.replace("workers: 1\n    control", "workers: 2\n    control"), "must be as many"),
    (lambda text: text.replace("- name: sl\n", "- name: other\n").replace("listener: sl", "listener: other"), "no listener sl"),
    (lambda text: text + "limits:\n  window: 256KiB\n", "window"),
    (lambda text: text + "nonsense: 1\n", "nonsense"),
], ids=["workers", "listener", "window", "malformed"])
def test_a_file_that_cannot_go_on_is_refused(under_load, change, reason):
    cluster = under_load
    original = (cluster.dir / "cluster.yaml").read_text()
    changed = change(original)
    assert changed != original
    other = pathlib.Path(cluster.dir / "changed.yaml")
    other.write_text(changed)
    status, said = new_process(cluster, config=str(other))
    assert status == 1 and reason in said


def connections_that_reset_at_close(pid):
    """How many TCP connections of the process have SO_LINGER, and how many there are."""
    process, found = os.pidfd_open(pid), []
    for name in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
            fd = ctypes.CDLL(None, use_errno=True).syscall(438, process, int(name), 0) # pidfd_getfd(2)
            assert fd >= 0, os.strerror(ctypes.get_errno())
            with socket.socket(fileno=fd) as sock:
                if sock.family == socket.AF_INET and not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    found.append(sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)[0])
    os.close(process)
    return sum(found), len(found)


@pytest.mark.usefixtures("test_points")
def test_a_stop_of_the_new_process_harms_no_connection_of_the_old_one(start_cluster):
    """It has all connections of a worker and must not touch them, is told to stop, and is killed then."""
    cluster = start_cluster("--agents", "1", "--link", "trusted")
    webs, old = [cluster.http() for _ in range(5)], cluster.pid("r1")
    for web in webs:
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024
    cluster.faults("handover.commit stop on r1")
    cluster.settle_faults()
    output = cluster.dir / "new.txt"
    with output.open("w") as to:
        new = subprocess.Popen([binary("ragent/ragent"), "--config", cluster.dir / "cluster.yaml", "--name", "r1", "--replace"],
                               env=cluster.env, stdout=to, stderr=to)
    wait_until(lambda: has_stopped(old), patience(20), "the old process stands before it gives the worker")
    children = pathlib.Path(f"/proc/{new.pid}/task/{new.pid}/children")
    child = int(wait_until(lambda: children.read_text().split(), patience(10), "the new process")[0])
    new.send_signal(signal.SIGTERM)
    wait_until(lambda: "stopping" in output.read_text() + cluster.log("r1"), patience(20), "the new process stops")
    os.kill(child, signal.SIGKILL)
    new.wait(patience(20))
    cluster.clear_faults()
    os.kill(old, signal.SIGCONT)
    wait_until(lambda: "worker not given" in cluster.log("r1"), patience(20), "the old process goes on")
    assert connections_that_reset_at_close(old) == (0, len(webs))
    for web in webs:
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024
        web.close()


def end_of(web, length):
    """Of an answer of so many bytes, seen below TLS."""
    web.sock.settimeout(None)
    while length > 0:
        try:
            got = len(os.read(web.sock.fileno(), 65536))
        except ConnectionResetError:
            return "reset"
        if got == 0:
            return "fin"
        length -= got
    return "complete"


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("point", ["committed kill after 1", "take kill after 7"], ids=["second worker taken", "while it takes the second"])
def test_a_new_process_that_dies_with_some_workers_leaves_a_service(start_cluster, point):
    """Its connections are gone with it, by a reset; the old process serves with all workers again."""
    cluster = start_cluster("--agents", "2", "--workers", "2")
    webs = [cluster.http() for _ in range(12)]
    for web in webs:
        web.request("GET", "/20m")
    cluster.faults(f"handover.{point}")
    cluster.settle_faults()
    status, _ = new_process(cluster)
    assert status == -signal.SIGKILL
    ends = [end_of(web, 20 << 20) for web in webs]
    assert set(ends) == ({"reset"} if "committed" in point else {"reset", "complete"}), ends
    cluster.clear_faults()
    wait_until(lambda: all(a["links_up"] == a["links"] for a in cluster.status()["agents"]), patience(10), "all links")
    for _ in range(20):
        with contextlib.closing(cluster.http()) as web:
            web.request("GET", "/1k")
            assert len(web.getresponse().read()) == 1024
    assert cluster.status()["state"] == "running"
    cluster.replace()


@pytest.mark.usefixtures("test_points")
def test_a_new_process_that_dies_as_the_old_one_ends_has_a_next_life(start_cluster):
    """The old one has read that it may end, and nobody else has the connections."""
    cluster = start_cluster("--agents", "1")
    webs = [cluster.http() for _ in range(6)]
    for web in webs:
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024
    cluster.faults("handover.done kill")
    cluster.settle_faults()
    cluster.replace()
    wait_until(lambda: "running again" in cluster.log("r1"), patience(20), "the next life")
    for web in webs:
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024
        web.close()
    assert cluster.status()["at_deaths"]["reset"] == 0


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("point", ["waits", "came"], ids=["not seen", "seen"])
def test_a_new_process_that_dies_before_it_reads_commit_forges_no_end(start_cluster, point):
    """The old process lets go of the clients as soon as it has sent COMMIT, so they are reset."""
    cluster = start_cluster("--agents", "1")
    webs = [cluster.http() for _ in range(6)]
    for web in webs:
        web.request("GET", "/20m")
    messages = 0
    while "workers_lost=1" not in cluster.log("r1"):
        assert messages < 20, "no process died at COMMIT"
        cluster.faults(f"handover.{point} kill after {messages}")
        cluster.settle_faults()
        status, _ = new_process(cluster)
        assert status == -signal.SIGKILL
        cluster.clear_faults()
        cluster.settle_faults()
        wait_until(lambda n=messages: cluster.log("r1").count("not replaced") > n, patience(10), "the old process goes on")
        messages += 1
    assert messages > 1
    assert {end_of(web, 20 << 20) for web in webs} == {"reset"}
    wait_until(lambda: all(a["links_up"] == a["links"] for a in cluster.status()["agents"]), patience(10), "all links")
    cluster.replace()


def test_a_release_can_add_an_agent_and_a_listener(start_cluster):
    """The listeners and agents that a changed file adds are there after the replacement."""
    cluster = start_cluster("--agents", "2")
    with contextlib.closing(cluster.http()) as web:
        web.request("GET", "/1k")
        web.getresponse().read()
        port, = free_ports(1)
        path = cluster.dir / "cluster.yaml"
        text = path.read_text()
        begin = text.index("  - name: sl\n", text.index("listeners:"))
        more = text[begin:].replace("name: sl", "name: more").replace(f"127.0.0.1:{cluster.sl[1]}", f"127.0.0.1:{port}")
        path.write_text(text.rstrip("\n") + "\n" + more)
        cluster.replace()
        assert "more" in {listener["name"] for listener in cluster.status()["listeners"]}
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024


@contextlib.contextmanager
def release_of_format(cluster, number):
    """RAgents started from now on read and write formats of the handed-over data up to this one."""
    cluster.env["CSSL_HANDOVER_FORMAT"] = str(number)
    try:
        yield
    finally:
        del cluster.env["CSSL_HANDOVER_FORMAT"]


def ask_of(web):
    web.request("GET", "/1k")
    assert len(web.getresponse().read()) == 1024


def history(cluster, web):
    """Who owned its connection, why, in which epoch, and how long it had no owner before."""
    return [(o["agent"], o["cause"], o["epoch"], o["pause_us"]) for o in cluster.connection(cluster.connection_of(web.sock)["id"])["history"]]


def move_on(cluster, web):
    """Its connection goes to the other agent."""
    c = cluster.connection_of(web.sock)
    other, = {"a1", "a2"} - {c["owner"]}
    cluster.move(c["id"], other)
    ask_of(web)
    return other


@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["a worker", "2 workers"])
def test_the_new_process_knows_the_owners_of_a_connection(start_cluster, options):
    cluster = start_cluster("--agents", "2", *options, edit=stays)
    with contextlib.closing(cluster.http()) as web:
        ask_of(web)
        move_on(cluster, web)
        cluster.rest(cluster.connection_of(web.sock)["id"])
        ask_of(web)
        before = history(cluster, web)
        assert [cause for _, cause, *_ in before][-3:] == ["move", "rest", "wake"]
        for _ in range(2):
            cluster.replace()
            assert history(cluster, web) == before
        ago = [o["ago_ms"] for o in cluster.connection(cluster.connection_of(web.sock)["id"])["history"]]
        assert ago == sorted(ago, reverse=True) and ago[0] < patience(120_000)
        agent = move_on(cluster, web)
        assert history(cluster, web)[:-1] == before and history(cluster, web)[-1][:2] == (agent, "move")


@pytest.mark.usefixtures("test_points")
def test_the_release_after_this_one_takes_over_and_is_taken_over(start_cluster):
    """Up, to another process of that release, and down again."""
    cluster = start_cluster("--agents", "2", edit=stays)
    with contextlib.closing(cluster.http()) as web:
        ask_of(web)
        before = history(cluster, web)
        with release_of_format(cluster, 2):
            cluster.replace()
            assert history(cluster, web) == before
            agent = move_on(cluster, web)
            cluster.replace()
        cluster.replace()
        assert history(cluster, web)[:-1] == before and history(cluster, web)[-1][:2] == (agent, "move")
        ask_of(web)
    assert links_lost(cluster) == (0, 0) and "not replaced" not in cluster.log("r1")


@pytest.mark.tool("wrk")
def test_wrk_sees_no_error(start_cluster):
    cluster = start_cluster("--agents", "2")
    wrk = subprocess.Popen(["wrk", "-t1", "-c32", f"-d{20 if FULL else 8}s", f"https://localhost:{cluster.sf[1]}/1k"], stdout=subprocess.PIPE, text=True)
    replaced = 0
    while wrk.poll() is None:
        cluster.replace()
        replaced += 1
    report = wrk.stdout.read()
    print(replaced, report)
    assert "Socket errors" not in report and "Non-2xx" not in report, report
    assert replaced >= 3


@pytest.fixture
def replace_in_background(request):
    """Like a service manager does it; `then` is called as soon as the command returns. Returns the output of the command, and
    the result of `then`. The last process stops in the end."""
    pids = []

    def replace(cluster, then=lambda: None):
        notify = cluster.dir / "notify"
        notify.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(notify))
            notify.chmod(0o777)
            manager.settimeout(patience(10))
            done = subprocess.run([binary("ragent/ragent"), "--config", cluster.dir / "cluster.yaml", "--name", "r1", "--replace", "--background"],
                                  env=dict(cluster.env, NOTIFY_SOCKET=str(notify)), check=False, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
            result = then()
            assert done.returncode == 0
            told = dict(line.split("=") for line in manager.recv(4096).decode().split())
            told |= dict(line.split("=") for line in manager.recv(4096).decode().split())
        pids.append(int(told["MAINPID"]))
        return told, result

    yield replace
    for pid in pids[-1:]:
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not pathlib.Path(f"/proc/{pids[-1]}").exists(), patience(20))


def test_a_service_manager_is_told_of_the_new_main_process(start_cluster, replace_in_background):
    cluster = start_cluster("--agents", "1")
    told, _ = replace_in_background(cluster)
    assert told["WATCHDOG"] == "1" # although a manager tells its limit only to the first process
    assert told["READY"] == "1" and int(told["MAINPID"]) != cluster.keeper_pid()
    wait_until((cluster.dir / "r1.exit").exists, patience(10), "the old process ended")
    assert cluster.status()["state"] == "running"


def test_when_the_command_returns_the_new_process_answers(start_cluster, replace_in_background):
    """Not the one before, which has no connection any more."""
    cluster = start_cluster("--agents", "1")
    with contextlib.closing(cluster.http()) as web:
        ask_of(web)
        for _ in range(30):
            _, connection = replace_in_background(cluster, then=lambda: cluster.connection_of(web.sock))
            assert connection
        ask_of(web)
