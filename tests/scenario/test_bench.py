"""The load generator: its report is compared with the known behaviour of servers."""

import os
import pty
import select
import subprocess
import threading
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience, scaled
from tests.lib.load import Held, command, load
from tests.lib.mail import merged
from tests.lib.nginx import Nginx
from tests.lib.pattern import pattern
from tests.lib.tls_server import TlsServer, plain_answer
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.sanitized_tools

FAILURES = ("handshake_failed", "other_status", "wrong_length", "wrong_bytes", "malformed", "cut", "unanswered", "timeouts",
            "alerts")


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2")


def assert_faultless(result):
    assert {name: result.counts[name] for name in FAILURES} == dict.fromkeys(FAILURES, 0), result.errors
    assert result.status == 0 and not result.errors


# at a cluster

@pytest.mark.parametrize("listener", ["sf", "sl"])
@pytest.mark.parametrize("tls", [["--version", "1.3"], ["--version", "1.2", "--no-tickets"]], ids=["1.3", "1.2 by id"])
def test_it_counts_the_handshakes_that_the_cluster_made(cluster, listener, tls):
    before = cluster.counter("handshakes_full"), cluster.counter("handshakes_resumed")
    result = load(getattr(cluster, listener), "--connections", "60", "--clients", "5", "--mix", "1:3", "--path", "/1k", "--check",
                  "--ca", cluster.ca, *tls)
    assert_faultless(result)
    made = {"full": result.counts["full"], "resumed": result.counts["resumed"], "offered": result.counts["offered"]}
    assert made == {"full": 15, "resumed": 45, "offered": 45}
    assert cluster.counter("handshakes_full") - before[0] == 15
    assert cluster.counter("handshakes_resumed") - before[1] == 45
    assert result.latency["handshake_full"]["count"] == 15 and result.latency["handshake_resumed"]["count"] == 45


def test_requests_share_connections_and_are_checked_byte_by_byte(cluster):
    result = load(cluster.sf, "--connections", "8", "--clients", "4", "--requests", "25", "--check",
                  "--path", "/5", "--path", "/64k", "--path", "/1m")
    assert_faultless(result)
    assert (result.counts["connections"], result.counts["full"], result.counts["answers"]) == (8, 8, 200)
    # Each client goes through the paths in turn, from one of its own.
    assert result.counts["bytes"] == pytest.approx(200 / 3 * (5 + 65536 + 1048576), rel=0.05)
    assert {name: phase["count"] for name, phase in result.latency.items()} == {
        "connect": 8, "handshake_full": 8, "first_byte": 200, "full": 200}


def test_the_results_of_several_processes_are_one(cluster):
    result = load(cluster.sl, "--processes", "3", "--connections", "100", "--clients", "7", "--path", "/1k", "--check")
    assert_faultless(result)
    assert result.counts["connections"] == result.counts["answers"] == result.latency["full"]["count"] == 100
    assert len(result.generators) == 3 and all(0 < g["cpu"] <= 1.05 for g in result.generators)


def test_the_results_of_several_hosts_are_one(cluster, tmp_path):
    files = tmp_path / "one", tmp_path / "two"
    results = [load(cluster.sl, "--connections", "30", "--clients", "4", "--path", "/1k", "--check", "--save", str(file), *options)
               for file, options in zip(files, ((), ("--processes", "2", "--mix", "1:1")))]
    status, total, _ = merged(*files)
    assert status == 0
    assert total["counts"] == {name: count + results[1].counts[name] for name, count in results[0].counts.items()}
    assert sum(total["agents"].values()) == total["latency"]["full"]["count"] == 60 and len(total["generators"]) == 2
    assert total["latency"]["full"]["max_us"] == max(result.latency["full"]["max_us"] for result in results)


def test_targets_take_turns(cluster):
    result = load(list(cluster.direct.values()), "--connections", "40", "--clients", "1", "--path", "/5")
    assert_faultless(result)
    assert result.agents == {"a1": 20, "a2": 20}


def test_clients_come_from_all_sources_and_hold_their_connections(cluster):
    with Held(cluster.sl, "--clients", "20", "--hold", "--source", "127.0.3.1-127.0.3.10", "--processes", "2") as held:
        assert held.first_line() == "holding 20 connections\n"
        clients = [c["client"].split(":")[0] for c in cluster.connections(client="127.0.3.0/24")]
        assert sorted(clients) == sorted(f"127.0.3.{n}" for n in range(1, 11) for _ in range(2))
        result = held.stop()
    assert_faultless(result)
    assert result.counts["answers"] == 20
    wait_until(lambda: not cluster.connections(client="127.0.3.0/24"), patience(10), "end of the held connections")


def test_a_move_between_answers_is_counted(cluster):
    with Held(cluster.sl, "--clients", "1", "--requests", "0", "--duration", "30", "--think-ms", "20", "--path", "/5",
              "--source", "127.0.4.1") as held:
        connection = wait_until(lambda: next((c for c in cluster.connections(client="127.0.4.1") if c["owner"]), None),
                                patience(10), "connection")
        other = {"a1": "a2", "a2": "a1"}[connection["owner"]]
        before = cluster.counters()[other]["records_sealed"]
        cluster.move(connection["id"], other)
        wait_until(lambda: cluster.counters()[other]["records_sealed"] >= before + 3, patience(10), "answers by the other agent")
        result = held.stop()
    assert_faultless(result)
    assert result.counts["moved"] == 1 and len(result.agents) == 2


# at servers of other kinds

@pytest.mark.tool("nginx")
def test_connections_that_nginx_ends_are_followed_by_others(tmp_path):
    with Nginx(tmp_path, {"file": b"x" * 3000}, "keepalive_requests 5;") as nginx:
        result = load(nginx.address, "--requests", "7", "--connections", "20", "--path", "/file", "--length", "3000")
    assert_faultless(result)
    assert (result.counts["connections"], result.counts["answers"]) == (20, 100)


@pytest.mark.tool("nginx")
def test_nginx_resumes_by_ticket_and_refuses_without_a_cache(tmp_path):
    with Nginx(tmp_path, {"file": b"x"}, "ssl_session_cache off;") as nginx:
        by_ticket = load(nginx.address, "--connections", "30", "--mix", "1:2", "--version", "1.2", "--path", "/file")
        by_id = load(nginx.address, "--connections", "30", "--mix", "1:2", "--version", "1.2", "--path", "/file", "--no-tickets")
    assert (by_ticket.counts["full"], by_ticket.counts["resumed"]) == (10, 20)
    assert (by_id.counts["full"], by_id.counts["resumed"]) == (30, 0)


def test_handshakes_without_requests_wait_for_their_ticket(cluster):
    result = load(cluster.sl, "--handshake-only", "--connections", "30", "--mix", "1:2", "--version", "1.3")
    assert_faultless(result)
    assert (result.counts["full"], result.counts["resumed"], result.counts["requests"]) == (10, 20, 0)
    assert result.latency["full"]["count"] == 30


@pytest.mark.parametrize("answer,count", [
    (lambda c, _: c.sendall(plain_answer(pattern(1024)[:-1])), "wrong_length"),
    (lambda c, _: c.sendall(plain_answer(pattern(1024)[:-1] + b"?")), "wrong_bytes"),
    (lambda c, _: c.sendall(plain_answer(b"", "503 No")), "other_status"),
    (lambda c, _: c.sendall(b"no HTTP at all\r\n"), "malformed"),
    (lambda c, _: c.sendall(plain_answer(pattern(1024))[:-1]), "cut"),
    (lambda c, _: None, "unanswered"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_answer_is_counted_as_what_it_is(answer, count):
    with TlsServer(answer) as server:
        result = load(server.address, "--connections", "5", "--path", "/1k", "--check")
    assert {name: result.counts[name] for name in FAILURES if result.counts[name]} == {count: 5}
    assert result.status == 1


def test_an_alert_is_counted_by_its_number():
    with TlsServer(lambda c, _: None, minimum_version=0x0304) as server:
        result = load(server.address, "--connections", "3", "--version", "1.2")
    assert result.counts["handshake_failed"] == result.counts["alerts"] == 3
    assert result.alerts == {"70": 3}  # protocol_version
    assert result.status == 1


def test_a_server_that_says_nothing_is_given_up():
    with TlsServer(lambda c, _: time.sleep(30)) as server:
        result = load(server.address, "--connections", "4", "--timeout-ms", "300")
    assert (result.counts["timeouts"], result.counts["answers"]) == (4, 0)


@pytest.mark.parametrize("equal", [[], ["--equal"]], ids=["taken", "equal"])
def test_a_client_that_is_served_slowly_makes_less_unless_parts_are_equal(equal):
    def answer(connection, _):
        if connection.getpeername()[0] == "127.0.6.2":
            time.sleep(0.05)
        connection.sendall(plain_answer(b"x"))

    with TlsServer(answer) as server:
        assert_faultless(load(server.address, "--connections", "30", "--clients", "2", "--source", "127.0.6.1-127.0.6.2", *equal))
    of_the_slow = sum(h["source"] == "127.0.6.2" for h in server.handshakes)
    assert len(server.handshakes) == 30
    assert of_the_slow == 15 if equal else of_the_slow < 15


def test_nobody_there_is_said_so():
    result = load(("127.0.0.1", free_ports(1)[0]), "--connections", "5")
    assert (result.counts["connections"], result.counts["connected"], result.status) == (5, 0, 1)
    assert result.errors == {"connect: connection refused": 5}


def test_the_server_sees_the_tls_that_was_asked_for():
    with TlsServer(lambda c, _: c.sendall(plain_answer(b"x")) or True) as server:
        server.context.set_alpn_protocols(["http/1.1"])
        first = load(server.address, "--connections", "1", "--suite", "TLS_CHACHA20_POLY1305_SHA256",
                     "--sni", "www.cssl.test", "--alpn", "http/1.1", "--source", "127.0.0.77")
        second = load(server.address, "--connections", "1", "--version", "1.2", "--suite", "ECDHE-ECDSA-AES256-GCM-SHA384")
    assert_faultless(first)
    assert_faultless(second)
    assert first.suites == {"TLSv1.3 TLS_CHACHA20_POLY1305_SHA256": 1}
    assert second.suites == {"TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384": 1}
    assert server.handshakes == [
        {"cipher": "TLS_CHACHA20_POLY1305_SHA256", "version": "TLSv1.3", "resumed": False, "source": "127.0.0.77",
         "alpn": "http/1.1"},
        {"cipher": "ECDHE-ECDSA-AES256-GCM-SHA384", "version": "TLSv1.2", "resumed": False, "source": "127.0.0.1", "alpn": None}]
    assert server.names == ["www.cssl.test", "localhost"]


# rates

class Staller:
    """Answers at once, except for one time of silence in the middle."""

    def __init__(self, at_s, for_s):
        self._at, self._for, self._begin, self._lock = at_s, for_s, None, threading.Lock()

    def __call__(self, connection, _):
        with self._lock:
            now = time.monotonic()
            self._begin = self._begin or now
            end = self._begin + self._at + self._for
        if self._begin + self._at <= now < end:
            time.sleep(end - now)
        connection.sendall(plain_answer(b"x"))
        return True


@pytest.mark.alone
@pytest.mark.quiet
def test_an_open_loop_keeps_its_rate():
    with TlsServer(lambda c, _: c.sendall(plain_answer(b"x")) or True) as server:
        result = load(server.address, "--rate", "200", "--duration", "2", "--ramp", "1", "--requests", "0", "--clients", "10",
                      "--processes", "2")
    assert_faultless(result)
    assert result.counts["answers"] == pytest.approx(300, abs=10)  # half the rate in the ramp, the rate after it


@pytest.mark.alone
@pytest.mark.quiet
def test_every_request_that_was_due_in_a_stall_has_waited_for_its_end():
    """100 requests a second, 0.5 s of silence: an open loop knows of 50 that had to wait, half of them for 250 ms and more. A
    closed loop of 4 clients sees 4."""
    options = ["--duration", "2", "--requests", "0", "--clients", "4"]
    with TlsServer(Staller(0.5, 0.5)) as server:
        opened = load(server.address, "--rate", "100", *options)
    with TlsServer(Staller(0.5, 0.5)) as server:
        closed = load(server.address, "--think-ms", "1", *options)
    assert opened.counts["answers"] == pytest.approx(200, abs=4)
    assert opened.latency["full"]["p90_us"] > 200000
    assert opened.latency["full"]["max_us"] == pytest.approx(500000, rel=0.2)
    assert closed.latency["full"]["p90_us"] < 100000


# for people

def test_text_has_the_counts_and_a_terminal_sees_progress(cluster):
    ours, terminal = pty.openpty()
    with subprocess.Popen(command(cluster.sl, "--duration", "2.5", "--path", "/1k"), stdout=subprocess.PIPE, stderr=terminal,
                          text=True) as process:
        os.close(terminal)
        assert select.select([ours], [], [], patience(20))[0], "no progress"
        assert "handshakes/s" in os.read(ours, 4096).decode()
        output = process.communicate(timeout=patience(20))[0]
        os.close(ours)
    assert process.returncode == 0
    assert "full handshakes" in output and "p99" in output and "% CPU" in output


def test_bad_options_are_explained():
    done = subprocess.run(command(("127.0.0.1", 1), "--clients", "none"), text=True, check=False, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "https: --clients: bad value 'none'\n")


def test_a_load_of_many_short_connections_leaks_nothing(cluster):
    count = scaled(2000, 200)
    result = load(cluster.sl, "--connections", str(count), "--clients", "32", "--mix", "1:2", "--path", "/1k",
                  "--source", "127.0.5.1-127.0.5.20")
    assert_faultless(result)
    assert result.counts["answers"] == count
