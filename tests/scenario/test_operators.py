"""What operators see and steer: which agents are ready, which backends answer, who is ended and kept out."""

import contextlib
import os
import re
import socket
import ssl
import subprocess

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.cluster import ControlError
from tests.lib.csslctl import DONE, REFUSED, UNREACHABLE, USAGE, csslctl, csslctl_json
from tests.lib.edits import alpn, backend, edits, nobody_moves
from tests.lib.h2_client import END_STREAM, GOAWAY, HEADERS, PREFACE, SETTINGS, H2Client, frame, goaway_of
from tests.lib.trouble import backend_address, start_backend
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(120)

NOWHERE = free_ports(1)[0]


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    """No backend answers clients of h2."""
    return start_module_cluster("--agents", "2", takeover=True,
                                edit=edits(alpn("h2", "h2", "h2"), backend("h2", f"127.0.0.1:{NOWHERE}"), nobody_moves))


@pytest.fixture
def tool(cluster):
    return lambda *arguments: csslctl("--dir", cluster.dir, *arguments)


def gets(cluster, where=None):
    """The status of an answer."""
    with contextlib.closing(cluster.http(where)) as web:
        web.request("GET", "/5")
        return web.getresponse().status


def is_reset(connection):
    """By TCP: neither a goodbye nor a FIN."""
    with socket.socket(fileno=os.dup(connection.fileno())) as tcp:
        tcp.settimeout(patience(10))
        try:
            while tcp.recv(4096):
                pass  # tickets that the client has not read
        except ConnectionResetError:
            return True
    return False


def is_kept_out(cluster, where):
    """It gets no handshake."""
    try:
        cluster.connect(where).close()
    except (ConnectionError, ssl.SSLError):
        return True
    return False


def logs(cluster):
    return "".join(cluster.log(name) for name in cluster.agents)


# --- backends ---


@pytest.mark.tool("curl")
def test_curl_gets_502_by_h2_where_no_backend_answers(cluster):
    host, port = cluster.sf
    done = subprocess.run(["curl", "-sS", "--http2", "--cacert", cluster.ca, "--resolve", f"localhost:{port}:{host}", "-o", "/dev/null",
                           "-w", "%{http_version} %{http_code}", f"https://localhost:{port}/5"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(20))
    assert done.stdout == "2 502", done.stderr


def test_a_request_behind_the_preface_gets_502_too(cluster):
    """In a record of its own, as browsers send it: the agent has tried to connect by then."""
    with H2Client(cluster, greet=False) as client:
        client.say(PREFACE, frame(SETTINGS))
        client.request(1, "/5")
        answer = client.wait(HEADERS)
        assert (answer.stream, answer.flags & END_STREAM, answer.payload) == (1, END_STREAM, b"\x08\x03502")
        assert goaway_of(client.wait(GOAWAY)) == (1, 0)
        assert client.end() == "close_notify"


def test_a_backend_that_does_not_answer_has_name_address_and_error(cluster, tool):
    assert re.search(rf'backend unreachable backend=h2 address=127\.0\.0\.1:{NOWHERE} error="connection refused"', logs(cluster))
    failing = f"h2 at 127.0.0.1:{NOWHERE}: connection refused"
    wait_until(lambda: any(cluster.agent(name)["failing_backends"] == failing for name in cluster.agents), patience(10), "its name")
    metrics = subprocess.run(["curl", "-sS", "--unix-socket", str(cluster.dir / "ragent/control.sock"), "http://r/metrics"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    assert re.search(r'^cssl_agent_backends_failing\{agent="a."\} 1$', metrics, re.M)
    name = next(name for name in cluster.agents if cluster.agent(name)["failing_backends"])
    assert tool("agent", name).facts["cannot reach"] == failing
    assert next(row for row in tool("agents").table("AGENT") if row["AGENT"] == name)["STATE"] == "ready!"
    assert cluster.control("GET", "/readyz") == {"ready": 2}  # other backends answer
    assert tool("health").code == DONE


def test_who_has_no_backend_is_not_ready(cluster, tool):
    command = open(f"/proc/{cluster.pid('backend')}/cmdline", "rb").read().decode().split("\0")[:-1]
    lines = logs(cluster).count("backend unreachable backend=")
    cluster.kill("backend")
    for name in cluster.agents:  # so no agent has a backend that it has not tried
        with H2Client(cluster, cluster.direct[name], greet=False) as client:
            client.say(PREFACE, frame(SETTINGS))
            client.wait(GOAWAY)

    def nobody_is_ready():
        assert all(gets(cluster, where) == 502 for where in cluster.direct.values())
        return all(a["state"] == "no backend" for a in cluster.status()["agents"])
    wait_until(nobody_is_ready, patience(30), "agents that have noticed")
    with pytest.raises(ControlError) as refused:
        cluster.control("GET", "/readyz")
    assert refused.value.status == 503
    assert cluster.control("GET", "/healthz") == {"lives": True}
    run = tool("health")
    assert run.code == REFUSED and "csslctl health: no agent is ready" in run.err
    run = tool("agents", "--wait", "--timeout", "300ms")
    assert run.code == REFUSED and {row["AGENT"] for row in run.table("AGENT")} == {"a1", "a2"}
    assert logs(cluster).count("backend unreachable backend=") - lines <= 4  # one for each change, not for each client
    start_backend(cluster, command)

    def somebody_is_ready():
        return all(gets(cluster, where) == 200 for where in cluster.direct.values()) and tool("agents", "--wait", "--timeout", "1s").code == DONE
    wait_until(somebody_is_ready, patience(30), "a backend that is noticed")
    assert tool("health").code == DONE and "backend answers again" in logs(cluster)


# --- who may not be there ---


def test_connections_are_ended_by_id_or_by_what_they_have_in_common(cluster, tool):
    with contextlib.ExitStack() as stack:
        one, two, three = (stack.enter_context(cluster.connect()) for _ in range(3))
        identity = cluster.connection_of(one)["id"]
        assert tool("connections", "end", identity[:12]).out == "1 connections end\n"
        assert one.recv(1) == b""  # close_notify: nothing was under way
        wait_until(lambda: cluster.connection_of(one) is None, patience(10), "its end")
        assert tool("connections", "end", identity).code == REFUSED
        assert tool("connections", "end", "--listener", "nobody").code == REFUSED
        assert tool("connections", "end").code == tool("connections", "end", identity, "--agent", "a1").code == USAGE
        assert csslctl_json("--dir", cluster.dir, "connections", "end", "--client", "127.0.0.0/8", "--listener", "sf")["ended"] == 2
        assert two.recv(1) == three.recv(1) == b""
    assert cluster.counters()["ragent"]["ended_operator"] >= 3


def test_who_is_blocked_is_reset_and_kept_out_until_the_end(cluster, tool):
    direct = cluster.direct["a1"]
    with contextlib.ExitStack() as stack:
        through, beside = stack.enter_context(cluster.connect()), stack.enter_context(cluster.connect(direct))
        other = stack.enter_context(cluster.connect(source="127.0.0.9"))
        assert tool("block", "127.0.0.1", "--for", "1h").out == "done; 1 connections ended\n"
        assert is_reset(through) and is_reset(beside)
        assert is_kept_out(cluster, cluster.sf) and is_kept_out(cluster, direct)
        other.sendall(b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.recv(1) == b"H"
        _, row = tool("blocks").lines
        assert re.fullmatch(r"127\.0\.0\.1/32 +(1h|59min)\S* +20\S+Z", row.strip())
        cluster.kill_ragent()
        assert is_kept_out(cluster, cluster.sf) and is_kept_out(cluster, direct)
        cluster.replace()
        assert is_kept_out(cluster, cluster.sf) and is_kept_out(cluster, direct)
        assert [b["network"] for b in cluster.control("GET", "/v1/blocks")["blocks"]] == ["127.0.0.1/32"]
        assert tool("unblock", "127.0.0.1").code == DONE
    wait_until(lambda: gets(cluster) == gets(cluster, direct) == 200, patience(10), "the end of the block")
    assert tool("unblock", "127.0.0.1").code == REFUSED and tool("blocks").lines[1:] == []
    assert tool("block", "127.0.0.1", "--for", "31d").code == tool("block", "nobody").code == USAGE
    assert tool("agents", "--timeout", "1s").code == USAGE


def test_an_agent_that_comes_later_knows_who_is_blocked(cluster, tool):
    cluster.kill("a1")
    run = tool("block", "127.0.0.0/8")
    try:
        assert run.code == REFUSED and "not confirmed by a1" in run.err
        cluster.restart("a1")
        wait_until(lambda: is_kept_out(cluster, cluster.direct["a1"]), patience(10), "the agent's own listener")
        assert tool("block", "127.0.0.0/8", "--for", "30d").code == DONE
    finally:
        tool("unblock", "127.0.0.0/8")


def test_nobody_answers_for_a_ragent_that_is_gone(tmp_path):
    assert csslctl("--socket", tmp_path / "control.sock", "health").code == UNREACHABLE


# --- what does not fit ---


def test_a_listener_that_agents_do_not_know_is_named(cluster):
    port, path = free_ports(1)[0], cluster.dir / "cluster.yaml"
    before = path.read_text()
    listener = re.search(r"^  - name: sf\n.*?(?=^  - name: )", before, re.S | re.M)[0]
    fresh = re.sub(r"listen: \[.*?\]", f'listen: [ "127.0.0.1:{port}" ]', listener.replace("name: sf", "name: fresh"))
    path.write_text(before.replace(listener, fresh + listener))
    cluster.replace()
    with pytest.raises(ssl.SSLError):
        cluster.connect(("127.0.0.1", port))
    assert "unknown listener listener=fresh ragent=r1" in logs(cluster)
    access = (cluster.dir / "access.log").read_text()
    assert re.search(r'ended reason="no agent" .*listener=fresh', access)
    path.write_text(before)


def agent_again(cluster, name, *prefix):
    cluster.start_again(name, [*prefix, cluster.env["CSSL_BUILD_DIR"] + "/sslagent/sslagent", "--config", str(cluster.dir / "cluster.yaml"),
                               "--name", name])


def test_an_agent_says_why_it_is_alone_and_that_it_lacks_descriptors(cluster):
    key = cluster.dir / "agents.key"
    before = key.read_text()
    cluster.kill("a2")
    key.write_text("k1 " + "7" * 64 + "\n")
    agent_again(cluster, "a2", "prlimit", "--nofile=200:200")
    wait_until(lambda: "alone among others" in cluster.log("a2"), patience(20), "why it is alone")
    assert re.search(r"too few descriptors allowed=200 needed=\d+", cluster.log("a2"))
    cluster.kill("a2")
    key.write_text(before)
    cluster.restart("a2")


def test_an_agent_tells_the_service_manager_when_it_is_ready(cluster):
    """`systemctl start` of a unit with Type=notify returns then."""
    cluster.kill("a2")
    before = cluster.log("a2").count("ready how=")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(cluster.dir / "notify"))
        manager.settimeout(patience(20))
        agent_again(cluster, "a2", "env", f"NOTIFY_SOCKET={cluster.dir}/notify")
        assert "READY=1" in manager.recv(4096).decode().split()
    assert cluster.log("a2").count("ready how=") == before + 1


def test_an_agent_that_hears_no_datagrams_says_so(cluster):
    """TCP comes through."""
    before = cluster.log("a1").count("no datagrams of a peer peer=a2")
    cluster.faults("udp.send drop on a2")
    cluster.settle_faults()
    wait_until(lambda: cluster.log("a1").count("no datagrams of a peer peer=a2") > before, patience(30), "a warning")
    assert cluster.counters()["a1"]["peers_unheard"] == 1
    cluster.clear_faults()
    cluster.settle_faults()
    wait_until(lambda: cluster.counters()["a1"]["peers_unheard"] == 0, patience(10), "its datagrams")
    assert "datagrams of a peer again peer=a2" in cluster.log("a1")
