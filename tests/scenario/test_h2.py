"""Service h2: clients of HTTP/2 in front of backends that speak it without TLS; moves, drains and losses between frames."""

import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.cluster import ControlError
from tests.lib.edits import alpn, at_end, backend, below, edits, nobody_moves, over_tcp
from tests.lib.h2_backend import Saying, fill, nghttpd, nginx_h2c
from tests.lib.h2_client import (ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, STREAM_MAX,
                                 WINDOW_UPDATE, H2Client, frame, goaway_of)
from tests.lib.mover import Mover, Restless, after, push, settled, until_moved
from tests.lib.pattern import pattern
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.tool("nghttpd", "nginx"), pytest.mark.limit(120)]

NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM = 0, 1, b"\0\0\0\7"
REST = below("sf", "rest_after: 300ms")


def h2_of(served, *keys):
    return edits(alpn("h2", "h2", "h2"), backend("h2", served.address, *keys), nobody_moves)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def served(folder):
    with nghttpd(folder) as backend_:
        yield backend_


@pytest.fixture(scope="module")
def cluster(start_module_cluster, served):
    return start_module_cluster("--agents", "2", edit=h2_of(served))


@pytest.fixture(scope="module")
def by_nginx(folder, start_module_cluster):
    with nginx_h2c(folder) as served_:
        yield start_module_cluster("--agents", "2", edit=h2_of(served_))


@pytest.fixture(scope="module")
def apart(start_module_cluster, served):
    """As on several hosts: backend connections cannot be passed."""
    return start_module_cluster("--agents", "2", edit=edits(h2_of(served), over_tcp))


@pytest.fixture(scope="module")
def restful(start_module_cluster, served):
    return start_module_cluster("--agents", "2", edit=edits(h2_of(served), REST))


def says_goodbye(client, last):
    """Both GOAWAYs to a client that answers PINGs, and the end in order."""
    assert goaway_of(client.wait(GOAWAY)) == (STREAM_MAX, NO_ERROR)
    assert goaway_of(client.wait(GOAWAY)) == (last, NO_ERROR)
    assert client.end() == "close_notify"
    assert not [got for got in client.frames if got.type == RST_STREAM]


def refused(client):
    got = client.wait(RST_STREAM)
    assert got.payload == REFUSED_STREAM
    return got.stream


def told_of_streams(client):
    """What the last SETTINGS_MAX_CONCURRENT_STREAMS of the server's first frame says."""
    first = client.frames[0]
    assert (first.type, first.flags) == (SETTINGS, 0)
    return [value for name, value in struct.iter_unpack(">HI", first.payload) if name == 3][-1]


# Frames pass


def test_answers_come_whole(cluster):
    with H2Client(cluster) as client:
        assert client.get(1, "/1k") == pattern(1024)
        for stream in (3, 5, 7):
            client.request(stream, "/1m")
        for stream in (7, 5, 3):
            assert client.body(stream) == pattern(1 << 20)


def test_a_ping_is_the_backends_to_answer(cluster):
    with H2Client(cluster) as client:
        client.say(frame(PING, 0, 0, b"12345678"))
        assert client.wait(PING, ACK).payload == b"12345678"


# Idle for long


def test_an_idle_connection_goes_on_where_others_rest(restful):
    with H2Client(restful) as client, H2Client(restful, greet=False) as silent:
        assert client.get(1, "/1k") == pattern(1024)
        http1 = restful.http()  # another service, later
        http1.request("GET", "/5")
        assert http1.getresponse().read() == pattern(5)
        wait_until(lambda: restful.connection_of(http1.sock)["state"] == "resting", patience(10))
        http1.close()
        assert client.get(3, "/1k") == pattern(1024)
        silent.greet()
        assert silent.get(1, "/1k") == pattern(1024)
        assert not [got for got in client.frames if got.type == GOAWAY]


@pytest.fixture(scope="module")
def brief(start_module_cluster, served):
    return start_module_cluster("--agents", "1", edit=edits(h2_of(served), lambda text: text + "limits: { idle_timeout: 1s }\n"))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_one_that_is_idle_too_long_is_asked_to_leave_and_ends(brief, version):
    with H2Client(brief, version=version) as client:
        assert client.get(1, "/1k") == pattern(1024)
        says_goodbye(client, 1)


def test_a_request_that_crosses_the_goaway_is_answered(brief):
    with H2Client(brief, pongs=False) as client:
        assert client.get(1, "/1k") == pattern(1024)
        client.say(frame(PING, ACK, 0, client.wait(PING).payload))
        ping = client.wait(PING)
        assert goaway_of(client.wait(GOAWAY)) == (STREAM_MAX, NO_ERROR)
        assert client.get(3, "/64k") == pattern(1 << 16)
        client.say(frame(PING, ACK, 0, ping.payload))
        assert goaway_of(client.wait(GOAWAY)) == (3, NO_ERROR)
        assert client.end() == "close_notify"


def test_a_request_that_crosses_the_goodbye_of_a_drain_has_its_time(start_cluster, served):
    """Longer than the 2 * lost that RAgent gives an owner for a goodbye without such a request."""
    lost_s = 1
    cluster = start_cluster("--agents", "1", edit=edits(
        h2_of(served), at_end(f"health: {{ ping: 50ms, suspect: {lost_s * 500}ms, lost: {lost_s}s }}")))
    with H2Client(cluster, pongs=False) as client:
        assert client.get(1, "/1k") == pattern(1024)
        cluster.send_signal("r1", signal.SIGTERM)
        client.say(frame(PING, ACK, 0, client.wait(PING).payload))
        ping = client.wait(PING)
        client.request(3, "/1k", "POST", flags=END_HEADERS)
        time.sleep(2.5 * lost_s)  # so slow is the request
        client.say(frame(DATA, END_STREAM, 3), frame(PING, ACK, 0, ping.payload))
        client.ended(3)
        assert goaway_of(client.wait(GOAWAY)) == (STREAM_MAX, NO_ERROR)
        assert goaway_of(client.wait(GOAWAY)) == (3, NO_ERROR)
        assert client.end() == "close_notify"


def test_a_client_that_answers_no_ping_is_told_only_the_end(brief):
    """It may not read before its next request; httpx is one, and repeats that if it is behind the last stream."""
    with H2Client(brief, pongs=False) as client:
        assert client.get(1, "/1k") == pattern(1024)
        assert goaway_of(client.wait(GOAWAY)) == (1, NO_ERROR)
        assert client.end() == "close_notify"


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_the_next_owner_of_an_idle_connection_ends_it_before_a_request_can_be_lost(start_cluster, served, version):
    cluster = start_cluster("--agents", "2", edit=h2_of(served))
    with H2Client(cluster, version=version) as client, H2Client(cluster, version=version, greet=False) as silent:
        assert client.get(1, "/64k") == pattern(1 << 16)
        settled(cluster, silent)
        cluster.kill(settled(cluster, client)["owner"])
        assert goaway_of(client.wait(GOAWAY)) == (1, NO_ERROR)
        client.request(3, "/1k")  # some clients look at it only then
        assert refused(client) == 3
        assert client.end() == "close_notify"
        assert len([got for got in client.frames if got.type == GOAWAY]) == 1
        silent.greet()  # it had said nothing, so another backend connection is as good
        assert silent.get(1, "/1k") == pattern(1024)


def test_a_request_without_an_agent_is_refused_and_may_be_repeated(start_cluster, served):
    """It came before the next owner could say anything. No backend has seen it."""
    cluster = start_cluster("--agents", "1", edit=h2_of(served))
    with H2Client(cluster) as client:
        assert client.get(1, "/1k") == pattern(1024)
        settled(cluster, client)
        cluster.kill("a1")
        wait_until(lambda: cluster.connection_of(client)["state"] == "resting", patience(10))
        client.request(3, "/1k")
        client.request(5, "/1k")
        cluster.restart("a1")
        assert refused(client) == 3
        assert client.end() == "close_notify"
        assert goaway_of([got for got in client.frames if got.type == GOAWAY][-1]) == (1, NO_ERROR)


def test_one_goes_on_when_ragent_dies(start_cluster, served):
    cluster = start_cluster("--agents", "2", edit=h2_of(served))
    with H2Client(cluster) as client:
        assert client.get(1, "/64k") == pattern(1 << 16)
        settled(cluster, client)
        cluster.kill_ragent()
        assert client.get(3, "/64k") == pattern(1 << 16)


@pytest.mark.parametrize("link", [(), (over_tcp,)], ids=["memory", "TCP"])
def test_open_streams_go_on_when_ragent_dies(start_cluster, folder, link):
    """A download whose window is full, and half an upload, which the backend sends back. Both are complete, byte for byte."""
    upload = pattern(48 << 10)
    pieces = [frame(DATA, 0, 3, upload[at:at + (8 << 10)]) for at in range(0, len(upload), 8 << 10)]
    with nghttpd(folder, "--echo-upload") as echoing:
        cluster = start_cluster("--agents", "2", edit=edits(h2_of(echoing), *link))
        with H2Client(cluster, window=1 << 16) as client:
            client.request(1, "/1m")
            first = client.wait(DATA)
            given = cluster.counter("bytes_to_backend")
            client.request(3, "/1k", "POST", flags=END_HEADERS)
            client.say(*pieces[:3])
            wait_until(lambda: cluster.counter("bytes_to_backend") > given + len(upload) // 2, patience(10), "half an upload is at the backend")
            cluster.kill_ragent()
            client.say(*pieces[3:], frame(DATA, END_STREAM, 3))
            read_as_windows_allow(client, first, {1, 3})
            assert (client.body(1), client.body(3)) == (pattern(1 << 20), upload)
            assert client.get(5, "/1k") == pattern(1024)
    assert cluster.status()["at_deaths"]["reset"] == 0


def read_as_windows_allow(client, got, streams):
    """From this frame of data on to the ends of these streams: what was read may be sent again."""
    while streams := streams - ({got.stream} if got.flags & END_STREAM else set()):
        if got.payload:
            more = struct.pack(">I", len(got.payload))
            client.say(frame(WINDOW_UPDATE, 0, 0, more), frame(WINDOW_UPDATE, 0, got.stream, more))
        got = client.wait(DATA)


@pytest.mark.tool("curl")
def test_curl_keeps_its_connection_where_others_rest(restful):
    """It asks once a second."""
    host, port = restful.sf
    out = subprocess.run(
        ["curl", "-sS", "--http2", "--rate", "60/m", "--cacert", restful.ca, "--resolve", f"localhost:{port}:{host}", "--fail-early",
         "-o", "/dev/null", "-w", "%{http_code} %{http_version} %{num_connects}\\n"]
        + [word for _ in range(3) for word in ("-o", "/dev/null", f"https://localhost:{port}/5")][2:],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience(60), check=False).stdout
    assert out.splitlines() == ["200 2 1", "200 2 0", "200 2 0"], out


# Lost


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("some", ["of the answer", "nothing"])
def test_an_owner_killed_with_an_open_stream_ends_in_an_alert(start_cluster, served, version, some):
    """Whether something of the answer came or not: a request of HTTP/2 is never asked again."""
    cluster = start_cluster("--agents", "2", edit=h2_of(served))
    with H2Client(cluster, version=version, window=1 << 16) as client:
        assert client.get(1, "/1k") == pattern(1024)
        given = cluster.counter("bytes_to_backend")
        if some == "nothing":
            client.request(3, "/1k", "POST", flags=END_HEADERS)
            wait_until(lambda: cluster.counter("bytes_to_backend") > given, patience(10))
        else:
            client.request(3, "/20m")
            client.wait(DATA)
        cluster.kill(settled(cluster, client)["owner"])
        assert "INTERNAL_ERROR" in client.end().upper()


# Moves


def test_a_move_within_a_host_passes_the_backends_connection(cluster):
    """Even in the midst of frames: streams go on, and new ones begin at the new owner."""
    before = cluster.counter("backend_connects")
    with H2Client(cluster, window=1 << 16) as client:
        assert client.get(1, "/1k") == pattern(1024)
        client.request(3, "/1m")
        client.wait(DATA)
        Mover(2)(cluster, client)
        read = len(client.so_far(3))
        while read < 1 << 20:
            client.say(frame(WINDOW_UPDATE, 0, 0, b"\0\1\0\0"), frame(WINDOW_UPDATE, 0, 3, b"\0\1\0\0"))
            client.wait(DATA)
            read = len(client.so_far(3))
        assert client.body(3) == pattern(1 << 20)
        Mover(1)(cluster, client)  # idle
        client.say(frame(WINDOW_UPDATE, 0, 0, b"\0\1\0\0"))
        assert client.get(5, "/1k") == pattern(1024)
        assert not [got for got in client.frames if got.type == GOAWAY]
    assert cluster.counter("backend_connects") == before + 1


def test_between_hosts_an_idle_connection_stays_and_a_drain_ends_it(apart):
    with H2Client(apart) as client:
        assert client.get(1, "/1k") == pattern(1024)
        connection = settled(apart, client)
        with pytest.raises(ControlError, match="another host"):
            apart.move(connection["id"], after(apart, connection["owner"]))
        assert client.get(3, "/1k") == pattern(1024)
        try:
            apart.drain(connection["owner"])
            says_goodbye(client, 3)
            assert apart.wait_drained(connection["owner"])["ended"] == 0
        finally:
            apart.undrain(connection["owner"])


def test_a_client_that_does_not_read_while_it_is_idle_outlives_a_drain_between_hosts(apart):
    """It would not see the end before it sends, and not repeat what it could not send; what is refused, it repeats."""
    with H2Client(apart, pongs=False) as client:
        assert client.get(1, "/1k") == pattern(1024)
        owner = settled(apart, client)["owner"]
        try:
            apart.drain(owner)
            assert apart.wait_drained(owner)["ended"] == 0
            assert goaway_of(client.wait(GOAWAY)) == (1, NO_ERROR)
            client.request(3, "/1k")
            assert refused(client) == 3
            assert client.end() == "close_notify"
        finally:
            apart.undrain(owner)


def test_between_hosts_a_drain_says_goaway_and_waits_for_the_open_streams(apart):
    with H2Client(apart, window=1 << 16) as client:
        client.request(1, "/1m")
        client.wait(DATA)
        owner = settled(apart, client)["owner"]
        try:
            apart.drain(owner)
            # the answer waits for its window, and the GOAWAY does not wait for the answer
            assert goaway_of(client.wait(GOAWAY)) == (STREAM_MAX, NO_ERROR)
            client.request(3, "/5")  # the GOAWAY may have crossed it
            while len(client.so_far(1)) < 1 << 20:
                client.say(frame(WINDOW_UPDATE, 0, 0, b"\0\1\0\0"), frame(WINDOW_UPDATE, 0, 1, b"\0\1\0\0"))
                client.wait(DATA)
            assert (client.body(1), client.body(3)) == (pattern(1 << 20), pattern(5))
            assert goaway_of(client.wait(GOAWAY)) == (3, NO_ERROR)
            assert client.end() == "close_notify"
            drain = apart.wait_drained(owner)
            assert (drain["state"], drain["left"], drain["ended"]) == ("drained", 0, 0), drain
        finally:
            apart.undrain(owner)


def test_streams_open_at_the_deadline_of_a_drain_end_in_an_alert(apart):
    with H2Client(apart, window=1 << 16) as client:
        client.request(1, "/1m")
        client.wait(DATA)
        owner = settled(apart, client)["owner"]
        try:
            apart.drain(owner, timeout_ms=500)
            assert goaway_of(client.wait(GOAWAY)) == (STREAM_MAX, NO_ERROR)
            assert "INTERNAL_ERROR" in client.end().upper()
            assert apart.wait_drained(owner)["ended"] == 1
        finally:
            apart.undrain(owner)


# Backends


def test_a_backend_that_ends_between_streams_ends_the_connection_in_order(start_cluster, folder):
    port = free_ports(1)[0]
    with nghttpd(folder, port=port) as served_:
        cluster = start_cluster("--agents", "1", edit=h2_of(served_))
        client = H2Client(cluster)
        assert client.get(1, "/1k") == pattern(1024)
        served_.process.kill()
        assert goaway_of(client.wait(GOAWAY)) == (1, NO_ERROR)
        assert client.end() == "close_notify"
    with nghttpd(folder, port=port), H2Client(cluster) as client:
        assert client.get(1, "/1k") == pattern(1024)


def test_a_backend_that_ends_with_an_open_stream_is_an_alert(start_cluster, folder):
    with nghttpd(folder) as served_:
        cluster = start_cluster("--agents", "1", edit=h2_of(served_))
        with H2Client(cluster, window=1 << 16) as client:
            client.request(1, "/20m")
            client.wait(DATA)
            served_.process.kill()
            assert "INTERNAL_ERROR" in client.end().upper()


def test_the_goaway_of_a_backend_is_the_only_one(start_cluster, folder):
    with nginx_h2c(folder, settings="keepalive_requests 3;") as served_:
        cluster = start_cluster("--agents", "1", edit=h2_of(served_))
        with H2Client(cluster) as client:
            for stream in (1, 3, 5):
                assert client.get(stream, "/1k") == pattern(1024)
            assert client.end() == "close_notify"
            assert [goaway_of(got) for got in client.frames if got.type == GOAWAY] == [(5, NO_ERROR)]


def test_a_backend_learns_who_the_client_is(start_cluster, folder):
    with nginx_h2c(folder, "proxy_protocol") as served_:
        cluster = start_cluster("--agents", "2", edit=h2_of(served_, "proxy_v2: on"))
        with H2Client(cluster, source="127.0.0.9") as client:
            assert client.get(1, "/1k") == pattern(1024)
            name = "%s %d" % client.getsockname()
            wait_until(lambda: served_.access_log.read_text().startswith(f"{name} HTTP/2.0 /1k 200"), patience(5))


# What clients should not say


def lost(cluster):
    return cluster.counter("tracks_lost")


def test_a_client_of_http1_is_told_that_this_is_http2(cluster):
    before = lost(cluster)
    with H2Client(cluster, greet=False) as client:
        client.tls.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert goaway_of(client.wait(GOAWAY)) == (0, PROTOCOL_ERROR)
        assert client.end() == "close_notify"
    assert lost(cluster) == before + 1
    assert any("protocol broken" in cluster.log(name) for name in cluster.agents)


def test_a_stream_above_the_backends_limit_is_the_backends_to_refuse(start_cluster, folder):
    with nginx_h2c(folder, settings="http2_max_concurrent_streams 10;") as served_:
        cluster = start_cluster("--agents", "1", edit=h2_of(served_))
        with H2Client(cluster, window=1 << 16) as client:
            assert told_of_streams(client) == 10
            for stream in range(1, 23, 2):
                client.request(stream, "/20m")
            assert refused(client) == 21
            for stream in range(1, 21, 2):
                client.say(frame(RST_STREAM, 0, stream, b"\0\0\0\x08"))
            client.say(frame(WINDOW_UPDATE, 0, 0, b"\0\1\0\0"))
            assert client.get(23, "/1k") == pattern(1024)
        assert lost(cluster) == 0


@pytest.mark.parametrize("backend_of", ["nghttpd", "nginx"])
def test_a_stream_above_the_agents_limit_alone_is_refused(start_cluster, folder, backend_of):
    """257 requests wait for the rest of their bodies. The backend reads the block of the last one, whose fields later ones refer to,
    and does not handle it."""
    many = nghttpd(folder, "-m", "1000") if backend_of == "nghttpd" else nginx_h2c(folder, settings="http2_max_concurrent_streams 1000;")
    with many as served_:
        cluster = start_cluster("--agents", "1", edit=h2_of(served_))
        with H2Client(cluster) as client:
            assert told_of_streams(client) == 256
            # In one record, because nginx does not wait for the bodies.
            client.say(*(client.head(stream, "/1k", "POST", END_HEADERS) for stream in range(1, 513, 2)),
                       client.head(513, "/1k", more=b"\x40\1a\1b"))
            assert refused(client) == 513
            for stream in range(1, 513, 2):
                client.say(frame(DATA, END_STREAM, stream))
            for stream in range(1, 513, 2):
                client.ended(stream)
            client.request(515, "/1k", more=b"\xbe")  # the field of the refused block
            assert client.body(515) == pattern(1024)
        assert lost(cluster) == 0
        if backend_of == "nginx":
            wait_until(lambda: " /1k 200 " in served_.access_log.read_text(), patience(5))
            assert served_.access_log.read_text().count(" /1k 200 ") == 1


def test_an_error_of_the_backend_ends_all_streams_in_order(by_nginx):
    """nginx tells the error by GOAWAY and closes, and so does the cluster."""
    with H2Client(by_nginx) as client:
        client.request(1, "/1k", "POST", flags=END_HEADERS)
        client.say(frame(HEADERS, END_HEADERS | END_STREAM, 2, b"\x82"))  # the stream of a server
        assert goaway_of(client.wait(GOAWAY))[1] != NO_ERROR
        assert client.end() == "close_notify"
        assert len([got for got in client.frames if got.type == GOAWAY]) == 1


def test_bad_frames_are_the_backends_business(cluster):
    before = lost(cluster)
    with H2Client(cluster) as client:
        client.say(frame(HEADERS, END_HEADERS | END_STREAM, 2, b"\x82"))  # the stream of a server
        last, error = goaway_of(client.wait(GOAWAY))
        assert (last, error) == (0, PROTOCOL_ERROR)  # said by nghttpd
        assert client.end() in ("close_notify", "cut") or "ALERT" in client.end().upper()
    assert lost(cluster) == before


@pytest.mark.parametrize("begin,rest", [
    pytest.param(frame(SETTINGS) + frame(SETTINGS), b"", id="two"),
    pytest.param(frame(SETTINGS) + frame(SETTINGS)[:4], frame(SETTINGS)[4:], id="one and a piece"),
])
def test_settings_that_come_at_once_hold_up_nothing(start_cluster, begin, rest):
    with Saying(begin, rest) as slow:
        cluster = start_cluster("--agents", "1", edit=h2_of(slow))
        with H2Client(cluster) as client:
            client.request(1, "/x")
            assert client.wait(HEADERS).stream == 1


def test_a_head_that_does_not_come_to_its_end_ends_the_connection(start_cluster, served):
    cluster = start_cluster("--agents", "1", edit=edits(h2_of(served), lambda text: text + "limits: { request_head_timeout: 1s }\n"))
    with H2Client(cluster) as client, H2Client(cluster, greet=False) as silent:
        assert client.get(1, "/5") == pattern(5)
        silent.tls.sendall(b"PRI * HTTP")
        client.request(3, "/5", flags=END_STREAM)  # CONTINUATION never comes
        assert goaway_of(client.wait(GOAWAY)) == (1, NO_ERROR)
        assert client.end() == "close_notify"
        assert goaway_of(silent.wait(GOAWAY)) == (0, NO_ERROR)
        assert silent.end() == "close_notify"
    assert cluster.counter("request_heads_late") == 2


# Real clients, left alone and moved all the while


@pytest.fixture(params=["cluster", "by_nginx"])
def each(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["stays", "moves"])
def moving(request, each):
    """Each client once left alone, and once with its connections moved to and fro all the while: by whom."""
    if request.param == "stays":
        yield None
        return
    with Restless(each) as restless:
        yield restless


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience(60), check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-2000:].decode(errors='replace')}"
    return done.stdout


@pytest.mark.tool("curl")
def test_curl(each, moving, tmp_path):
    host, port = each.sf
    for _ in until_moved(moving):
        run("curl", "-s", "--http2", "--parallel", "--fail", "--cacert", each.ca, "--resolve", f"localhost:{port}:{host}",
            *[word for i in range(8) for word in ("-o", str(tmp_path / str(i)), f"https://localhost:{port}/1m")])
        assert all((tmp_path / str(i)).read_bytes() == pattern(1 << 20) for i in range(8))


@pytest.mark.tool("nghttp")
def test_nghttp(each, moving):
    host, port = each.sf
    for _ in until_moved(moving):
        out = run("nghttp", "-nsv", "-m", "20", f"https://{host}:{port}/64k")
        assert len(re.findall(rb":status: 200", out)) == 20, out[-2000:]


@pytest.mark.tool("h2load")
def test_h2load(each, moving):
    host, port = each.sf
    for _ in until_moved(moving):
        out = run("h2load", "-n", "2000", "-c", "8", "-m", "10", f"https://{host}:{port}/1k")
        assert b"2000 succeeded, 0 failed, 0 errored" in out and b"2000 2xx" in out, out
        assert b"Application protocol: h2" in out


@pytest.mark.tool("chromium")
@pytest.mark.plain  # nothing that h2load and curl do not do
@pytest.mark.usefixtures("host_network")
def test_chromium(each, moving, tmp_path):
    host, port = each.sf
    for _ in until_moved(moving):
        before = each.counter("handshakes_full")
        out = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={tmp_path}", "--ignore-certificate-errors", "--virtual-time-budget=10000", "--dump-dom",
             f"https://{host}:{port}/page.html"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(60), check=False).stdout.decode()
        shutil.rmtree(tmp_path, ignore_errors=True)
        assert "<title>50 of 50 loaded</title>" in out, out[:500]
        assert each.counter("handshakes_full") > before
