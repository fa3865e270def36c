"""No answer, metric or log shows a key to an operator: not those of the files, of live connections, or of the sessions in the
store; and no token."""

import base64
import pathlib
import re
import ssl
import subprocess

import pytest

from tests.lib.build import patience
from tests.lib.csslctl import csslctl
from tests.lib.edits import nobody_moves
from tests.lib.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=nobody_moves)


@pytest.fixture(scope="module")
def secrets(cluster, tmp_path_factory):
    """{name of the secret: bytes}. The connections and sessions are made for this test, and their clients know the secrets."""
    keylog = tmp_path_factory.mktemp("keys") / "keylog"
    sockets = []
    for version in ("1.2", "1.3", "1.2", "1.3"):
        context = cluster.context(version)
        context.keylog_filename = str(keylog)
        sockets.append(cluster.connect(context=context))
        sockets[-1].sendall(b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sockets[-1].recv(4096)
    found = {}
    for number, (label, secret) in enumerate(re.findall(r"^(\w+) [0-9a-f]+ ([0-9a-f]+)$", keylog.read_text(), re.M)):
        found[f"{label} {number}"] = bytes.fromhex(secret)
    for name in ("link.key", "agents.key"):
        for number, text in enumerate(re.findall(r"\b[0-9a-f]{64}\b", (cluster.dir / name).read_text())):
            found[f"{name} {number}"] = bytes.fromhex(text)
    for name in ("ecdsa.key", "rsa.key"):
        der = ssl.PEM_cert_to_DER_cert((cluster.dir / name).read_text().replace("PRIVATE KEY", "CERTIFICATE"))
        found[name] = der[-48:]
    found["token"] = pathlib.Path(cluster.description()["control"]["token_file"]).read_text().strip().encode()
    yield found
    for sock in sockets:
        sock.close()


def _assert_none_in(secrets, where, data):
    text = data.lower()
    for name, secret in secrets.items():
        for form in (secret, secret.hex().encode(), base64.b64encode(secret).rstrip(b"="),
                     base64.urlsafe_b64encode(secret).rstrip(b"=")):
            assert form.lower() not in text, f"{name} in {where}"


def _get(cluster, path):
    return subprocess.run(["curl", "-sS", "--unix-socket", str(cluster.dir / "ragent/control.sock"), f"http://ragent{path}"],
                          stdout=subprocess.PIPE, check=True).stdout


def _paths(cluster):
    """Every path that GET takes, with things that there are."""
    connections, sessions = cluster.connections(), cluster.control("GET", "/v1/sessions")["sessions"]
    assert connections and sessions
    for route in cluster.control("GET", "/v1")["routes"]:
        if route["method"] != "GET":
            continue
        known = connections if "connections" in route["path"] else sessions
        identities = [one["id"] for one in known] if "/ID" in route["path"] else [""]
        for identity in identities:
            yield route["path"].replace("ID", identity).replace("NAME", "a1")


def test_the_secrets_are_those_that_live(secrets):
    labels = {name.split()[0] for name in secrets}
    assert {"CLIENT_RANDOM", "SERVER_TRAFFIC_SECRET_0", "link.key", "agents.key", "rsa.key", "token"} <= labels
    with pytest.raises(AssertionError, match="in here"):
        _assert_none_in(secrets, "here", b"x" + secrets["agents.key 0"].hex().upper().encode())


def test_no_answer_has_a_key(cluster, secrets):
    wait_until(lambda: cluster.control("GET", "/v1/sessions/count")["sessions"] >= 2, patience(5), "the sessions")
    paths = list(_paths(cluster))
    assert len(paths) > 15
    for path in paths:
        _assert_none_in(secrets, path, _get(cluster, path))


def test_no_command_shows_a_key(cluster, secrets):
    for command in (["status"], ["agents"], ["connections"], ["sessions", "list"], ["counters"], ["log-level"]):
        run = csslctl("--dir", cluster.dir, *command)
        _assert_none_in(secrets, command, (run.out + run.err).encode())


def test_no_log_has_a_key_whatever_is_done_at_whichever_level(cluster, secrets):
    cluster.control("PUT", "/v1/log-level", {"level": "debug"})
    for connection in cluster.connections(listener="sf"):
        cluster.move(connection["id"], next(name for name in cluster.agents if name != connection["owner"]))
    cluster.control("POST", "/v1/keys/rotate", {})
    cluster.control("POST", "/v1/sessions/revoke", {"all": True})
    cluster.control("PUT", "/v1/log-level", {"level": "configured"})
    for name in ["r1"] + cluster.agents:
        _assert_none_in(secrets, f"the log of {name}", cluster.log(name).encode())


def _memory(pid):
    """(mapping, bytes) of what the process writes."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(address, 16) for address in line.split()[0].split("-"))
            if " rw" not in line:
                continue
            memory.seek(begin)
            try:
                yield line, memory.read(end - begin)
            except OSError:  # it has gone meanwhile
                pass


@pytest.mark.root
@pytest.mark.plain  # a sanitizer keeps what was freed, and has a heap of its own
def test_agents_forget_the_secrets_of_handshakes(cluster, secrets):
    """Those of the live connections are derived from others than these."""
    over = {name: secret for name, secret in secrets.items() if name.split("_SECRET")[0].endswith(("HANDSHAKE_TRAFFIC", "EXPORTER"))}
    assert len(over) >= 6
    for agent in cluster.agents:
        for where, data in _memory(cluster.pid(agent)):
            for name, secret in over.items():
                assert secret not in data, f"{name} in {agent}: {where}"
