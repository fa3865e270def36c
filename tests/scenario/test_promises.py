"""doc/promises.md, row by row: what each kind of operation sees when agents are killed with -9, one each three seconds, under a load of
every kind at once. What may be lost, is lost in the way that is promised; everything else goes on.

Short in every run, as long as it takes to believe it with ./cssl test --full."""

import itertools
import re
import signal
import time

import pytest

from tests.lib import edits
from tests.lib.build import FULL, patience, scaled
from tests.lib.mover import settled
from tests.lib.pattern import pattern
from tests.lib.static_files import StaticFiles
from tests.lib.tlsload import Load, check_honest, check_unharmed, lost, refused, say
from tests.lib.trouble import Executions, kill_and_return, restart_in_order

pytestmark = [pytest.mark.limit(300 if FULL else 120),
              pytest.mark.sanitized_with("test_takeover and test_laws run both versions", version="1.3")]

SECONDS, EVERY_S = (180, 3) if FULL else (6, 2)  # short: each agent is killed once
LATE_MS = 40
PAUSE_MAX_US = 250_000
VERSIONS = ("1.2", "1.3")
FILE = 4 << 20
versions = pytest.mark.parametrize("version", VERSIONS)

# What a client may see, beside nothing at all.
NOTHING = set()
TOLD_BY_502 = {"refused idle"}                                      # the answer, close_notify, FIN
TOLD_BY_ALERT = {"alert idle", "alert unanswered", "alert midway"}  # internal_error
IN_HANDSHAKE = {"reset shaking", "reset idle", "reset unanswered"}  # its client may take it for complete already

PROMISES = {
    "full": (IN_HANDSHAKE, {"every_ms": 30, "times": 1, "again": "always"}),
    "resumed": (IN_HANDSHAKE, {"every_ms": 30, "times": 1, "again": "always", "resume": 1}),
    "get": (NOTHING, {"every_ms": 10}),
    "put": (NOTHING, {"every_ms": 20, "method": "PUT", "path": "/sha256", "body": 3000}),
    "post": (TOLD_BY_502, {"every_ms": 20, "method": "POST", "path": "/count", "body": 3000}),
    "echo": (TOLD_BY_502, {"every_ms": 20, "method": "POST", "path": "/sha256", "body": 3000}),
    "upload": (TOLD_BY_502, {"method": "POST", "path": "/sha256", "body": 2 << 20, "rate": 1 << 19}),
    "download": (NOTHING, {"every_ms": 100, "path": f"/slow?bytes={FILE}&ms=2000", "size": FILE}),
    "rangeless": (TOLD_BY_ALERT, {"every_ms": 100, "path": f"/rangeless/4m?rate={FILE // 2}", "size": FILE}),
    "tcp": (TOLD_BY_ALERT, {"every_ms": 20}),
}
CAN_END = ("upload", "rangeless", "tcp")  # while something is under way, which is most of the time


def listener(name, service, backend):
    """A listener of its own: the TLS clients here offer http/1.1 and nothing else."""
    return f"""\
  - name: {name}
    listen: ["127.0.0.1:0"]
    affinity_bound: off
    backend: {backend}
    alpn: [{{ protocol: http/1.1, service: {service}, backend: {backend} }}]
    tls: {{ certificates: [ecdsa, rsa] }}"""


def ports_of(cluster):
    return {one["name"]: ("127.0.0.1", int(one["addresses"][0].rsplit(":", 1)[1])) for one in cluster.status()["listeners"]}


@pytest.fixture(scope="module")
def files():
    with StaticFiles() as server:
        server.put("4m", pattern(FILE))
        yield server


@pytest.fixture
def cluster(start_cluster, files):
    cluster = start_cluster("--agents", "3", takeover=True, edit=edits.edits(
        edits.backend("files", files.address),
        edits.at_end(listener("rangeless", "http", "files"), listener("tcp", "tcp", "main"))))
    cluster.ports = ports_of(cluster)
    return cluster


def unanswered_and_lost(cluster):
    """Handshakes that ended with their agent though their client had not got one record of a server."""
    return re.findall(r'^.*ended reason="agent lost".* server_records=0/0/0/0 .*$', cluster.log("access"), re.MULTILINE)


def each_in_turn(cluster, kill):
    end, agents = time.monotonic() + SECONDS, itertools.cycle(cluster.agents)
    while (begin := time.monotonic()) < end:
        kill(next(agents))
        time.sleep(max(0.0, begin + EVERY_S - time.monotonic()))


def may_be_lost(report, allowed):
    """Whoever lost a connection makes another one, and that may be in its handshake at the next kill: no answer came over it yet."""
    in_handshake = sum(count for kind, count in lost(report).items() if kind in IN_HANDSHAKE)
    unanswered = sum("last answered by ''" in note for note in report["notes"])
    is_another = allowed is not NOTHING and report["connected"] > report["clients"] and in_handshake <= unanswered
    return allowed | IN_HANDSHAKE if is_another else allowed


def check_promise(name, report, allowed):
    check_honest(report)
    assert set(lost(report)) <= may_be_lost(report, allowed), f"{name}: {say(report)}"
    assert set(refused(report)) <= ({"502"} if allowed is TOLD_BY_502 else set()), f"{name}: {say(report)}"
    assert set(report["alerts"]) <= {"internal error"}, f"{name}: {say(report)}"
    if allowed is NOTHING:
        check_unharmed(report)


@pytest.mark.alone
@pytest.mark.quiet
@pytest.mark.tool("nginx")
def test_each_operation_sees_what_is_promised(cluster, load, tmp_path):
    groups = [(f"{name}{version}", version, *promise) for name, promise in PROMISES.items() for version in VERSIONS]
    for group, version, _, settings in groups:
        ids = {"id": group.replace(".", ""), "ids": tmp_path / group} if group.startswith("post") else {}
        name = group[:-len(version)]
        count = 6 if name in CAN_END else scaled(6, 2)
        load.add(group, count=count, version=version, to=cluster.ports.get(name), **{"again": "lost", **ids, **settings})
    each_in_turn(cluster, lambda agent: kill_and_return(cluster, agent, load))
    stopping = {group: load.start("stop", name=group) for group, *_ in groups}
    reports = {group: load.finish(number) for group, number in stopping.items()}
    for group, _, allowed, _ in groups:
        check_promise(group, reports[group], allowed)
        print(f"{group}: {reports[group]['requests']} requests, lost {lost(reports[group])} {refused(reports[group])},"
              f" pauses {reports[group]['pause_hit_us']}")
    for version in VERSIONS:
        Executions(cluster, tmp_path / f"post{version}").check()
        # Each agent was killed, and each of these groups had connections enough that some were there.
        assert all(lost(reports[name + version]) for name in CAN_END), [say(reports[name + version]) for name in CAN_END]
        assert reports["get" + version]["pause_hit_us"]["p99"] <= patience(PAUSE_MAX_US), say(reports["get" + version])
    assert not unanswered_and_lost(cluster)


# Handshakes


def kill_two(cluster, first):
    """The second gets the hellos of the first, and is killed before it answers them."""
    pair = [first, cluster.agents[cluster.agents.index(first) - 1]]
    for name in pair:
        cluster.send_signal(name, signal.SIGKILL)
        time.sleep(LATE_MS / 2000)
    for name in pair:
        cluster.wait_gone(name)
        cluster.restart(name)


@pytest.fixture
def late_cluster(start_cluster, test_points):
    """Messages of its agents are late, so that many hellos are at an agent that has not answered them yet."""
    late = [f"link.write delay {LATE_MS} on a{number}" for number in (1, 2, 3)]
    return start_cluster("--agents", "3", "--workers", "2", takeover=True, faults=late)


def handshakes_meanwhile(cluster, disturb):
    """Their results: [(group, report)]."""
    with Load(cluster) as load:
        for version in VERSIONS:
            load.add(f"full{version}", count=scaled(24, 4), version=version, times=1, again="always")
            load.add(f"resumed{version}", count=scaled(24, 4), version=version, times=1, again="always", resume=1)
        each_in_turn(cluster, disturb)
        return [(name, load.stop(name)) for name in load.report()]


def test_handshakes_that_nobody_answered_begin_again(late_cluster):
    for name, report in handshakes_meanwhile(late_cluster, lambda agent: kill_two(late_cluster, agent)):
        check_promise(name, report, IN_HANDSHAKE | {"alert unanswered"})  # of a GET that both had
    assert late_cluster.counters()["ragent"]["takeovers_restarted"] > 0
    assert not unanswered_and_lost(late_cluster)


def test_handshakes_outlive_the_planned_end_of_their_agents(late_cluster):
    for _, report in handshakes_meanwhile(late_cluster, lambda agent: restart_in_order(late_cluster, agent)):
        check_unharmed(report)


# Uploads


def upload(cluster, where, version, size, kill):
    """A client sends everything before it reads. Returns what it reads then: the first line, or the alert."""
    with cluster.connect(where, cluster.context(version)) as tls:
        tls.sendall(f"POST /sha256 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode())
        tls.sendall(bytes(size // 2))
        victim = settled(cluster, tls)["owner"]
        kill(victim)
        tls.sendall(bytes(size - size // 2))
        return tls.recv(1 << 16).split(b"\r\n")[0].decode()


@versions
@pytest.mark.parametrize("service", ["http", "tcp"])
@pytest.mark.tool("nginx")
def test_an_upload_that_was_cut_says_so_to_a_client_that_reads_late(cluster, version, service):
    where = cluster.sf if service == "http" else cluster.ports["tcp"]
    killed = []

    def kill(name):
        cluster.kill(name)
        killed.append(name)
    try:
        answer = upload(cluster, where, version, 32 << 20, kill)
    except OSError as e:
        answer = str(e)
    assert answer == "HTTP/1.1 502 Bad Gateway" if service == "http" else "ALERT_INTERNAL_ERROR" in answer, answer
    for name in killed:
        cluster.restart(name)
