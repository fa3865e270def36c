"""Many strangers at a time that try to use everything up: half-open handshakes, silence before STARTTLS, requests byte by byte, KeyUpdates
without end, silent connections to the sockets of RAgent and agents. Other clients are served as usual, no process takes more memory than --check
says, operators get answers, and RAgent links to an agent that comes back. A tenth of the strangers in normal runs, all of them with
./cssl test --full."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import FULL, SANITIZED, SLOWER, binary, patience, sized
from tests.lib.half_open import HalfOpen, client_hello
from tests.lib.mail_cluster import mail_backend, mail_listener
from tests.lib.silence import Silence, tcp, unix
from tests.lib.smtp_client import Client
from tests.lib.tlsload import Load, check_unharmed, lost, refused
from tests.lib.waiting import wait_until
from tests.scenario.test_silence import comes_back, control_address, links_up, operators_get_through, soon, took

pytestmark = [pytest.mark.alone, pytest.mark.quiet]

STRANGERS = sized(2000, 20000)
UPDATING = 1000 if FULL else 100
HANDSHAKES = 1024  # under way on RAgent's worker and on each agent's
PREAMBLES = 1024  # on RAgent's worker
PER_S = 500
SILENT = 64
AT_ONCE = 32  # handshakes of a source
LONG_ID = "x" * 31  # a head that takes longer than it may
CAME_AND_WENT = sized(3000, 10000)  # sessions of the clients that are served
SERVED_S = sized(2, 8)
HEAD_EVERY_MS = 1600 if FULL else 1000  # the shortest head has 80 bytes, and takes longer than it may
# Other work of this machine shows up to here. A new connection waits for it several times: its handshake, its hand-off, its answer.
FLOOR_US = {"answers": 1000, "new connections": 1000} if FULL else {"answers": 25000, "new connections": 60000}
SLACK = 4 << 20  # memory that does not follow the number of strangers
SESSION = 1500  # bytes of a session and of a live part, on each agent
WAITING = (8 << 10) * 8 // 7  # bytes that RAgent keeps of a client (until an answer begins): a block, seven of which fill a slab of eight
SOURCES = [f"127.0.{net}.{host}" for net in (3, 4) for host in range(1, 201)]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def start(start_cluster, *listeners):
    """Agent a3 is down: it comes back in the middle of each flood. A head has more time where other work delays the strangers."""
    head_s = 120 if FULL else min(60, patience(8) // SLOWER)
    made = start_cluster("--agents", "3", edit=edits.edits(
        *listeners,
        edits.at_end(f"limits: {{ connections: {STRANGERS + 2000}, kept: 64MiB, request_head_timeout: {head_s}s, idle_timeout: 2min, "
                     f"preambles: {PREAMBLES} }}", "store: { size: 32MiB }"), edits.nobody_moves))
    made.send_signal("a3", signal.SIGTERM)
    made.wait_gone("a3")
    return made


@pytest.fixture
def cluster(start_cluster):
    return start(start_cluster)


@contextlib.contextmanager
def elsewhere():
    """This thread, and processes that it starts, use only processor time that no other process wants, as if the strangers had machines
    of their own. Beside other tests (sanitized), which want all of it, they have their share like everybody."""
    before = os.sched_getscheduler(0)
    if not SANITIZED:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))


# Clients that are served


class Served:
    """Clients that ask all the while, over connections that stay and over new ones."""

    def __init__(self, load, name):
        self._load, self._names = load, [f"{name} stays", f"{name} new"]
        load.add(self._names[0], count=20, path="/1k", every_ms=20, timeout_ms=patience(20) * 1000)
        load.add(self._names[1], count=10, path="/1k", every_ms=100, times=1, again="always", timeout_ms=patience(20) * 1000)

    def end(self):
        """The 99th percentiles in us, when all was well: of an answer's time, and of a handshake with its first answer."""
        stays, new = (check_unharmed(self._load.stop(name)) for name in self._names)
        assert new["first_us"]["count"] == new["answers"] and new["first_us"]["p50"] > new["latency_us"]["p50"], new
        return {"answers": stays["latency_us"]["p99"], "new connections": new["first_us"]["p99"]}


def quiet(load, name):
    served = Served(load, name)
    time.sleep(SERVED_S)
    return served.end()


# argv: a certificate and its key. Prints its port. It makes handshakes, and then reads nothing.
DEAF = """
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:])
listening, held = socket.create_server(("127.0.0.1", 0), backlog=128), []
print(listening.getsockname()[1], flush=True)
while True:
    held.append(context.wrap_socket(listening.accept()[0], server_side=True))
"""


@contextlib.contextmanager
def flood_of_another(cluster, strangers, **clients):
    """The same strangers do the same to a server that is not of the cluster, and that costs no more than they do: on their own machines
    they would take nothing of the processors, the scheduler and the loopback device of the clients that are served."""
    with elsewhere():
        deaf = subprocess.Popen(["/usr/bin/python3", "-c", DEAF, cluster.dir / "ecdsa.pem", cluster.dir / "ecdsa.key"],
                                stdout=subprocess.PIPE, text=True)
    try:
        strangers.add("elsewhere", to=("127.0.0.1", int(deaf.stdout.readline())), **clients)
        yield
        strangers.stop("elsewhere")
    finally:
        deaf.kill()
        deaf.communicate()


@contextlib.contextmanager
def quiet_around(load):
    """The figures of a quiet run before, and with --full also of one behind: other work of the machine comes and goes."""
    found = [quiet(load, "before")]
    yield found
    if FULL:
        found.append(quiet(load, "behind"))


def judge(record_property, what, quiets, during, memory):
    figures = "; ".join(f"p99 of {kind} {during[kind]} us, quiet {' and '.join(str(q[kind]) for q in quiets)} us" for kind in during)
    record_property("figure", f"{what}: {figures}; {memory}")
    floor = {kind: us if FULL else patience(us) for kind, us in FLOOR_US.items()}
    assert all(during[kind] < 2 * max(floor[kind], *(q[kind] for q in quiets)) for kind in floor), (what, quiets, during)


# Memory


def stated(cluster):
    """{"r1": {"sum": bytes, "connections": bytes of one, "half-open handshakes": bytes of one, ...}, "a1": ..., "a2": ...}: the memory of
    each process according to --check."""
    said = subprocess.run([binary("sslagent/sslagent"), "--config", cluster.dir / "cluster.yaml", "--check"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    found, nodes = {}, ()
    for line in said.splitlines():
        head = re.match(r"memory of (each agent|ragent) .*: at most (\d+)(\w+)", line)
        part = re.match(r"  (\S.*\S) +\d+\w+   \d+ of (\d+)(\w+)$", line)
        if head:
            nodes = {"each agent": ["a1", "a2"], "ragent": ["r1"]}[head[1]]
            found.update({name: {"sum": int(head[2]) * UNITS[head[3]]} for name in nodes})
        elif part:
            for name in nodes:
                found[name][part[1]] = int(part[2]) * UNITS[part[3]]
    return found


def memory_of(cluster, name, what):
    """VmRSS: the bytes in RAM now. VmHWM: the most that there were."""
    status = pathlib.Path(f"/proc/{cluster.pid(name)}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status).group(1)) * 1024


class Memory:
    """What each process takes from now on, at its peak."""

    def __init__(self, cluster):
        self._cluster, self._stated = cluster, stated(cluster)
        self._before = {name: memory_of(cluster, name, "VmRSS") for name in self._stated}

    def judge(self, **parts):
        """The peak is below the sum of --check. The growth is below the memory of those of its parts that grow: `connections` and
        `handshakes` of RAgent and of each agent, `sessions`, `preambles` of each agent, and requests `waiting` in RAgent. Returns a text."""
        peaks = {name: memory_of(self._cluster, name, "VmHWM") for name in self._stated}
        grown = {name: peaks[name] - self._before[name] for name in peaks}
        allowed = {name: self._allowed(name, **parts) for name in peaks}
        if not SANITIZED:  # a sanitizer keeps what was freed
            assert all(peaks[name] < self._stated[name]["sum"] for name in peaks), (peaks, self._stated)
            assert all(grown[name] < allowed[name] for name in peaks), (grown, allowed)
        return "memory at its peak " + ", ".join(
            f"{name} {peaks[name] >> 20} of {self._stated[name]['sum'] >> 20} MiB (grown by {grown[name] >> 20} of {allowed[name] >> 20} MiB)"
            for name in peaks)

    def _allowed(self, name, handshakes, connections, sessions, waiting=0, preambles=0):
        each = self._stated[name]
        if name == "r1":
            return SLACK + connections[0] * each["connections"] + waiting * WAITING
        return (SLACK + handshakes * each["half-open handshakes"] + connections[1] * each["connections"] + sessions * SESSION +
                preambles * each.get("preambles", 0))


# Strangers


def check_reachable(cluster):
    """Operators get an answer, and RAgent links to an agent that comes back, soon."""
    operators_get_through(cluster)
    links = links_up(cluster)
    comes_back(cluster, "a3")
    assert took(lambda: links_up(cluster) > links) < soon()


def test_half_open_handshakes(cluster, record_property):
    def flood():
        with elsewhere():
            return HalfOpen(cluster.sf, STRANGERS, SOURCES, at_once=10, per_s=PER_S)

    with Load(cluster) as load, concurrent.futures.ThreadPoolExecutor(1) as thread:
        with quiet_around(load) as quiets:
            memory, served, flooding = Memory(cluster), Served(load, "amid"), thread.submit(flood)
            time.sleep(0.7 * STRANGERS / PER_S)
            during = served.end()
            check_reachable(cluster)
            with flooding.result() as half_open:
                ended, under_way = half_open.refused(), cluster.counters()["ragent"]["handshakes_under_way"]
    if not SANITIZED:
        assert ended + under_way >= STRANGERS - 5 and under_way <= HANDSHAKES, (ended, under_way)
    # RAgent keeps the hello: one with a key share of ML-KEM, as OpenSSL 3.5 says it, takes as much as a record that waits
    used = memory.judge(handshakes=HANDSHAKES // 2 + 100, connections=(HANDSHAKES + 100, 100), sessions=CAME_AND_WENT,
                        waiting=HANDSHAKES if len(client_hello()) > 1024 else 0)
    judge(record_property, f"{STRANGERS} half-open handshakes, {ended} refused", quiets, during, used)


def test_silence_before_starttls(start_cluster, record_property):
    """Behind EHLO at a listener for mail. Above `preambles` the oldest ones give their places to others, who get through to TLS."""
    port, behind = free_ports(2)
    door = "127.0.0.1", port
    cluster = start(start_cluster, mail_backend(("127.0.0.1", behind), "proxy_v2: on"), mail_listener("mail", port))

    def flood():
        with elsewhere():
            return HalfOpen(door, STRANGERS, SOURCES, at_once=10, per_s=PER_S, hello=b"EHLO stranger.example\r\n")

    def gets_through():
        with Client(door) as client:
            client.greet()
            client.starttls(cluster.context(alpn=()))

    with Load(cluster) as load, concurrent.futures.ThreadPoolExecutor(1) as thread:
        with quiet_around(load) as quiets:
            memory, served, flooding = Memory(cluster), Served(load, "amid"), thread.submit(flood)
            time.sleep(0.7 * STRANGERS / PER_S)
            during = served.end()
            check_reachable(cluster)
            with flooding.result() as silent:
                for _ in range(10):
                    gets_through()
                ended = max(0, STRANGERS + 1 - PREAMBLES)  # the ten come one after another into the same place
                wait_until(lambda: silent.refused() == ended, patience(10), f"{ended} that are displaced")
                counters = cluster.counters()["ragent"]
    assert counters["preambles_displaced"] == ended and counters["preambles_refused"] == 0, counters
    assert counters["preambles_under_way"] == STRANGERS - ended and counters["starttls_done"] == 10, counters
    used = memory.judge(handshakes=100, preambles=PREAMBLES // 2 + 100, connections=(PREAMBLES + 100, 100), sessions=CAME_AND_WENT)
    judge(record_property, f"{STRANGERS} that are silent behind EHLO, {ended} displaced", quiets, during, used)


@pytest.mark.limit(400 if FULL else 120)
def test_requests_that_come_byte_by_byte(cluster, record_property):
    """Half of them come through RAgent, half to the agents' own listeners: no process holds more descriptors than the kernel lets it."""
    ways = {"sf": (cluster.sf, STRANGERS // 2), "a1": (cluster.direct["a1"], STRANGERS // 4), "a2": (cluster.direct["a2"], STRANGERS // 4)}
    with contextlib.ExitStack() as stack:
        load = stack.enter_context(Load(cluster))
        with elsewhere():
            sources = {name: stack.enter_context(Load(cluster)) for name in ways}
        quiets, memory = stack.enter_context(quiet_around(load)), Memory(cluster)
        begun = {name: sources[name].start_add("slow", to=where, count=count, path="/1k", id=LONG_ID, head_every_ms=HEAD_EVERY_MS,
                                               timeout_ms=patience(300) * 1000, at_once=AT_ONCE) for name, (where, count) in ways.items()}
        for name, number in begun.items():
            sources[name].finish(number)
        served = Served(load, "amid")
        time.sleep(SERVED_S)
        during = served.end()
        check_reachable(cluster)
        amid = [source.report()["slow"] for source in sources.values()]
        reports = [source.stop("slow") for source in sources.values()]
    for report in amid:
        assert report["under_way"] == report["clients"] and not report["statuses"], report
    for report in reports:
        assert not lost(report) or set(lost(report)) <= {"refused idle", "close_notify idle"}, report
        assert refused(report) == {"408": report["clients"]}, report
    used = memory.judge(handshakes=3 * AT_ONCE, connections=(STRANGERS // 2 + 100, STRANGERS // 2 + 100), sessions=STRANGERS + CAME_AND_WENT,
                        waiting=STRANGERS // 2)
    judge(record_property, f"{STRANGERS} requests byte by byte", quiets, during, used)


def counts(cluster, *names):
    """The sum of each of these counters over the agents that are up all the while."""
    counters = cluster.counters()
    return [sum(counters[agent][name] for agent in ("a1", "a2")) for name in names]


def test_key_updates_without_end(cluster, record_property):
    """A connection that makes more than it may is read no faster than that for some seconds: then it ends, and the next one takes its
    place. No KeyUpdate is broadcast."""
    names = "key_updates_received", "objects_sent", "handshakes_full", "record_violations"
    with contextlib.ExitStack() as stack:
        load = stack.enter_context(Load(cluster))
        with elsewhere():
            strangers = stack.enter_context(Load(cluster))
        # 31 a second of each, four in a segment: the work of sending them is that of other machines, and done on this one.
        flood = {"count": UPDATING, "version": "1.3", "run": "waits", "keys_every_ms": 129, "keys_at_once": 4, "at_once": AT_ONCE}
        quiets = stack.enter_context(quiet_around(load))
        memory, since, begun = Memory(cluster), counts(cluster, *names), time.monotonic()
        strangers.add("updating", again="lost", **flood)
        offered, served, measured = strangers.report()["updating"]["key_updates"], Served(load, "amid"), time.monotonic()
        wait_until(lambda: counts(cluster, *names)[3] - since[3] >= UPDATING // 2 and time.monotonic() - measured > SERVED_S, patience(60))
        during = served.end()
        offered_per_s = (strangers.report()["updating"]["key_updates"] - offered) / (time.monotonic() - measured)
        updates, objects, handshakes, _ = (now - then for now, then in zip(counts(cluster, *names), since))
        took_s = time.monotonic() - begun
        check_reachable(cluster)
        report = strangers.stop("updating")
        if FULL:  # how much of it is this machine's: for the record, not for the bound
            with flood_of_another(cluster, strangers, **flood):
                elsewhere_us = quiet(load, "elsewhere")["answers"]
    # Under sanitizers other tests run beside this one: what a client sent before it could read its alert may then be answered by a reset.
    assert set(lost(report)) <= ({"alert idle", "reset idle"} if SANITIZED else {"alert idle"}), report
    assert lost(report)["alert idle"] >= UPDATING / 2, report
    assert offered_per_s > UPDATING * (25 if FULL else 2), offered_per_s
    # A burst of 8, and one for each second that has begun.
    assert updates <= 8 * handshakes + UPDATING * took_s, (updates, handshakes, took_s)
    # A handshake and the end of its connection are 3.1 to 3.5 objects. Each KeyUpdate would be one more.
    assert objects <= 3.7 * handshakes + updates / 4, (objects, updates, handshakes)
    used = memory.judge(handshakes=UPDATING, connections=(UPDATING + 100, UPDATING + 100), sessions=report["connected"] + CAME_AND_WENT,
                        waiting=UPDATING)
    what = f"{offered_per_s:.0f} KeyUpdates a second of {UPDATING} clients, {updates} opened"
    if FULL:
        what += f"; p99 of answers beside the same flood of another server {elsewhere_us} us"
    judge(record_property, what, quiets, during, used)


def test_silent_connections(cluster, record_property):
    """To the socket of the control API and to an agent's socket for links, at the same time."""
    with Load(cluster) as load, quiet_around(load) as quiets:
        memory = Memory(cluster)
        with Silence(tcp(*control_address(cluster)), SILENT) as operators, Silence(unix(cluster.dir / "links" / "a1.sock"), SILENT) as openings:
            served = Served(load, "amid")
            time.sleep(SERVED_S)
            during = served.end()
            check_reachable(cluster)
            wait_until(lambda: min(operators.held + operators.closed, openings.held + openings.closed) >= SILENT)
    used = memory.judge(handshakes=10, connections=(SILENT, SILENT), sessions=CAME_AND_WENT)
    judge(record_property, f"{SILENT} silent control connections and {SILENT} silent openings of links", quiets, during, used)


def test_key_updates_at_the_rate_that_is_allowed_reach_no_peer(cluster):
    """However long they go on."""
    with Load(cluster) as load:
        load.add("updating", count=UPDATING, version="1.3", run="waits", keys_every_ms=1050)
        time.sleep(1)  # what the handshakes had to tell
        received, before = counts(cluster, "key_updates_received", "objects_sent")
        wait_until(lambda: counts(cluster, "key_updates_received")[0] - received >= 4 * UPDATING, patience(20))
        _, after = counts(cluster, "key_updates_received", "objects_sent")
        report = load.report()["updating"]
    assert not lost(report), report
    assert after - before < UPDATING / 10, (before, after)
