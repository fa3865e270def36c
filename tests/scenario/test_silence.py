"""Strangers connect, send nothing, and connect again as often as they are closed. RAgent and the agents find each other all the
same."""

import contextlib
import pwd
import re
import stat
import subprocess
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import FULL, patience
from tests.lib.csslctl import DONE, csslctl
from tests.lib.silence import Silence, tcp, unix
from tests.lib.waiting import wait_until


def soon():
    """Seconds for whoever may come in. In a full run, beside which the machine has nothing else to do, it is what operators get."""
    return 1 if FULL else patience(1)


def took(condition):
    """Seconds until then."""
    began = time.monotonic()
    wait_until(condition, patience(20))
    return time.monotonic() - began


def starts(cluster, name):
    """Kills that agent and starts it again."""
    cluster.kill(name)
    comes_back(cluster, name)


def comes_back(cluster, name):
    """Starts an agent that has ended. Its log shows when it listens."""
    before = cluster.log(name).count("serving")
    cluster.start_again(name, [cluster.env["CSSL_BUILD_DIR"] + "/sslagent/sslagent", "--config", str(cluster.dir / "cluster.yaml"),
                               "--name", name])
    wait_until(lambda: cluster.log(name).count("serving") > before, patience(10))


def links_up(cluster):
    return cluster.counters()["ragent"]["links_up"]


def turned_away(cluster):
    agent = cluster.counters()["a1"]
    return agent["links_refused"] + agent["link_openings_displaced"]


def over_tcp(port):
    return edits.edits(lambda text: text.replace(text.partition("link: ")[2].partition("\n")[0], f"127.0.0.1:{port}", 1),
                       edits.instead("link_protection: trusted", "link_protection: sealed"))


@pytest.mark.parametrize("count", [64, 500])
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_ragent_gets_a_link_though_others_hold_openings(start_cluster, kind, count):
    port, = free_ports(1)
    cluster = start_cluster("--agents", "2", edit=over_tcp(port) if kind == "tcp" else None)
    where = tcp("127.0.0.1", port) if kind == "tcp" else unix(cluster.dir / "links" / "a1.sock")
    with Silence(where, count) as strangers:
        for _ in range(3):
            starts(cluster, "a1")
            assert took(lambda: links_up(cluster) == 2) < soon()
            wait_until(lambda: strangers.held >= 64)
        wait_until(lambda: turned_away(cluster) >= count)
    if count > 256:  # there are places for so many
        wait_until(lambda: re.search("no room for an opening of a link .*remedy=.*link_group", cluster.log("a1")))
    assert cluster.log("a1").count("link refused") < 200


def test_agents_find_each_other_though_others_hold_openings(start_cluster):
    cluster = start_cluster("--agents", "2")
    peers = [line.partition("peer: ")[2].rpartition(":")[2] for line in (cluster.dir / "cluster.yaml").read_text().splitlines()
             if "peer: " in line]
    with Silence(tcp("127.0.0.1", int(peers[0])), 500), Silence(tcp("127.0.0.1", int(peers[1])), 500):
        for name in ("a1", "a2"):
            starts(cluster, name)
            assert took(lambda: all(cluster.counters()[agent].get("peers_up") == 1 for agent in ("a1", "a2"))) < soon()
        wait_until(lambda: any(re.search("no room for an opening of a peer .*remedy=.*peer", cluster.log(agent)) for agent in ("a1", "a2")))


def test_a_new_ragent_takes_over_though_others_hold_its_socket(start_cluster):
    cluster = start_cluster("--agents", "1")
    (path,) = [path for path in (cluster.dir / "ragent").iterdir() if path.name != "control.sock" and path.is_socket()]
    with Silence(unix(path), 64, again=False) as strangers:
        before = cluster.pid("r1")
        cluster.replace()
        assert cluster.pid("r1") != before
        assert strangers.closed > 0


# The control API


def tls_silence(cluster, say):
    """Strangers to the listener `control`, with the handshake done; they send the beginning of a request, or nothing."""
    context, where = cluster.context(), control_of(cluster)

    def connect():
        sock = cluster.connect(where, context)
        sock.sendall(say)
        return sock
    return connect


def control_of(cluster):
    host, _, port = cluster.description()["control"]["url"].rpartition("//")[2].rstrip("/").rpartition(":")
    return host.replace("localhost", "127.0.0.1"), int(port)


def control_address(cluster):
    (line,) = [line for line in (cluster.dir / "cluster.yaml").read_text().splitlines() if "control_address:" in line]
    return "127.0.0.1", int(line.rpartition(":")[2])


def operators_get_through(cluster, api_tries=1):
    """Each at his first try, or, by the published listener, at one of so many."""
    control = cluster.description()["control"]
    api = ["--api", control["url"], "--cacert", cluster.ca, "--token-file", control["token_file"]]
    for way, tries in (["--socket", control["socket"]], 1), (api, api_tries):
        began = time.monotonic()
        runs = [csslctl(*way, "status")]
        while runs[-1].code != DONE and len(runs) < tries:
            runs.append(csslctl(*way, "status"))
        assert runs[-1].code == DONE, runs
        assert time.monotonic() - began < soon()


HALF_A_HEAD = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n"
HALF_A_BODY = b"POST /v1/revocations HTTP/1.1\r\nHost: x\r\nContent-Length: 64\r\n\r\n{"


@pytest.mark.parametrize("count", [64, 500])
@pytest.mark.parametrize("say", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["silent", "half a head", "half a body"])
def test_operators_get_through_though_strangers_hold_the_published_listener(start_cluster, say, count):
    cluster = start_cluster("--agents", "2")
    with Silence(tls_silence(cluster, say), count) as strangers:
        for _ in range(3):
            operators_get_through(cluster)
            wait_until(lambda: strangers.held > 8)
        # an agent goes to the control socket with whole heads only, and a head without a token is answered before its body
        assert cluster.counters()["ragent"]["control_no_room"] == 0


def test_operators_get_through_though_strangers_take_every_connection_there_may_be(start_cluster):
    cluster = start_cluster("--agents", "1", edit=edits.edits(edits.below("r1", "limits: { connections: 40 }")))
    with contextlib.ExitStack() as stack:
        context = cluster.context()
        for _ in range(40):
            stack.enter_context(cluster.connect(context=context))
        with pytest.raises(OSError), cluster.connect(context=context):
            pass
        assert cluster.counters()["ragent"]["ended_limit_total"] > 0
        operators_get_through(cluster)


def test_an_operator_gets_through_though_somebody_guesses_behind_the_same_address(start_cluster):
    cluster = start_cluster("--agents", "1")
    control = cluster.description()["control"]
    wrong = cluster.dir / "wrong.token"
    wrong.write_text("cssl_guess\n")
    wrong.chmod(0o600)
    for _ in range(12):
        run = csslctl("--api", control["url"], "--cacert", cluster.ca, "--token-file", wrong, "status")
        assert run.code != DONE
    operators_get_through(cluster)


@pytest.mark.parametrize("count", [64, 500])
def test_operators_get_through_though_others_hold_the_control_address(start_cluster, count):
    cluster = start_cluster("--agents", "2")
    with Silence(tcp(*control_address(cluster)), count):
        for _ in range(3): # where strangers are as near as the agent, its connection may be the oldest before it could say who it is
            operators_get_through(cluster, api_tries=3)
        wait_until(lambda: sum(cluster.counters()["ragent"][f"control_no_{what}"] for what in ("header", "room")) >= 64)
        if count > 64:  # there are places for so many
            wait_until(lambda: re.search("no room for a control connection .*remedy=.*control_address", cluster.log("r1")))
            assert cluster.counters()["ragent"]["control_no_room"] > 0


@pytest.mark.root
def test_only_ragents_group_may_connect_to_an_agents_link_socket(start_cluster):
    cluster = start_cluster("--agents", "1")
    path = cluster.dir / "links" / "a1.sock"
    found = path.stat()
    assert stat.S_IMODE(found.st_mode) == 0o660
    assert found.st_gid == pwd.getpwnam("cssl-ragent").pw_gid
    stranger = pwd.getpwnam("nobody")
    tried = subprocess.run(["setpriv", f"--reuid={stranger.pw_uid}", f"--regid={stranger.pw_gid}", "--clear-groups", "/usr/bin/python3",
                            "-c", f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"], check=False, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert "PermissionError" in tried.stdout
