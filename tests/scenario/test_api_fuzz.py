"""The control API compared with its OpenAPI document: all answers are as described, whatever the request, and none is a 5xx."""

import contextlib
import pathlib
import re
import subprocess

import pytest

from tests.lib.build import binary, patience
from tests.lib.edits import edits
from tests.lib.fuzzed_api import fuzz_api
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(400)


def _plain_control(config):
    """The control address without PROXY headers, for clients of its own, because a client that drains all agents loses the
    listener."""
    return (config.replace("control_proxy_protocol: on", "control_proxy_protocol: off")
            .replace('", proxy_v2: on', '", proxy_v2: off'))


def _nobody_rests(config):
    """Connections rest only on command: on a slow machine the requests take longer than connections would wait."""
    return config.replace("mode:", "rest_after: off\n    mode:")


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", edit=edits(_plain_control, _nobody_rests))


@pytest.fixture
def known(cluster):
    """Connections and sessions that stay while they are asked about, unless they are asked to go."""
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            sock = stack.enter_context(cluster.connect())
            sock.sendall(b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            sock.recv(4096)
        wait_until(lambda: cluster.control("GET", "/v1/sessions")["sessions"], patience(10), "a session")
        ids = [c["id"] for c in cluster.connections(listener="sf")]
        yield {"connection": ids[1:], "to end": ids[:1],
               "session": [s["id"] for s in cluster.control("GET", "/v1/sessions")["sessions"]], "agent": cluster.agents}


def _token(cluster, role):
    path = cluster.dir / f"{role}.token"
    line = subprocess.run([binary("csslctl/csslctl"), "token", "make", f"fuzz-{role}", str(path), "--role", role], text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    with (cluster.dir / "control.tokens").open("a") as tokens:
        tokens.write(line)
    cluster.control("POST", "/v1/reload", {})
    return path.read_text().strip()


def test_a_reader_finds_no_fault_through_the_clusters_own_tls(cluster, known, tmp_path):
    statuses = fuzz_api(cluster.description()["control"]["url"], _token(cluster, "read"), tmp_path, known, ca=cluster.ca)
    for operation, seen in statuses.items():
        assert 200 in seen if operation.startswith("GET") else seen <= {401, 403, 405}, operation


def test_an_operator_finds_no_fault_whatever_is_done_to_the_cluster(cluster, known, tmp_path):
    port = re.search(r"control_address: 127.0.0.1:(\d+)", (cluster.dir / "cluster.yaml").read_text())[1]
    statuses = fuzz_api(f"http://127.0.0.1:{port}", _token(cluster, "operate"), tmp_path, known)
    assert not {operation: seen for operation, seen in statuses.items() if not seen & {200, 202}}
    wait_until(lambda: all(a["drain"]["state"] != "draining" for a in cluster.control("GET", "/v1/agents")["agents"]),
               patience(20), "the end of all drains")
    for name in cluster.agents:
        if cluster.agent(name)["drain"]["state"] != "none":
            cluster.undrain(name)
    with cluster.connect() as sock:
        sock.sendall(b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")


def test_the_document_is_served_as_it_stands_in_the_repository(cluster):
    described = pathlib.Path(__file__).resolve().parents[2] / "ragent/control/openapi.yaml"
    served = subprocess.run(["curl", "-sS", "--fail", "--unix-socket", str(cluster.dir / "ragent/control.sock"),
                             "http://ragent/v1/openapi.yaml"], stdout=subprocess.PIPE, check=True).stdout
    assert served == described.read_bytes()
