"""Requests whose end an agent and a backend may see at different places (data/smuggling.json), with backend connections that
serve one client after another (`reuse: on`): however the backend reads them, no other client ever gets an answer that is not
its own."""

import contextlib
import itertools
import json
import pathlib
import re
import socket

import pytest

from bench.experiments.ports import free_ports
from tests.lib.edits import edits, nobody_moves
from tests.lib.haproxy import HttpHaproxy
from tests.lib.lenient_backend import LENIENT, LenientBackend
from tests.lib.nginx import Nginx

CORPUS = json.loads((pathlib.Path(__file__).parent / "data" / "smuggling.json").read_text())["attacks"]
# The next request on the connection becomes a part of them: a header field, and a body.
SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\nX-Ignored: "
SMUGGLED_IN_CHUNK = "POST /smuggled HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n"
HALF = 4
VICTIMS = 2
SILENCE_S = 0.03
BACKENDS = [*LENIENT, "nginx", "haproxy"]
numbers = itertools.count()


def reuses(text):
    return re.sub(r'(\{ name: main, address: "[^"]+")', r"\1, reuse: on", text)


@contextlib.contextmanager
def started(kind, folder):
    """Where it listens, as in a cluster file."""
    if kind in LENIENT:
        with LenientBackend(LENIENT[kind]) as backend:
            yield backend.address
    elif kind == "nginx":
        port = free_ports(1)[0]
        with Nginx(folder, {}, f'server {{ listen 127.0.0.1:{port}; location / {{ return 200 "$request_uri"; }} }}'):
            yield f"127.0.0.1:{port}"
    else:
        with HttpHaproxy(folder) as haproxy:
            yield "%s:%d" % haproxy.address


@pytest.fixture(scope="module", params=BACKENDS)
def cluster(request, start_module_cluster, tmp_path_factory):
    """One agent of one worker, so that all its clients use the same kept connections."""
    with started(request.param, tmp_path_factory.mktemp("backend")) as address:
        yield start_module_cluster("--agents", "1", "--backend", address, edit=edits(nobody_moves, reuses))


def parts_of(attack):
    """Head and body."""
    chunk = f"{len(SMUGGLED_IN_CHUNK):x}\r\n{SMUGGLED_IN_CHUNK}\r\n"
    body = attack["body"].replace("{smuggled}", SMUGGLED).replace("{chunk}", chunk)
    head = attack["head"].replace("{body}", str(len(body))).replace("{half}", str(HALF))
    return head.encode("latin-1"), body.encode("latin-1")


def says_at_once(attacker, attack):
    attacker.sendall(b"".join(parts_of(attack)))


def says_byte_by_byte(attacker, attack):
    """Each in a record of its own."""
    attacker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError):  # it may be cut off in the middle
        for byte in b"".join(parts_of(attack)):
            attacker.sendall(bytes([byte]))


def says_the_body_late(attacker, attack):
    """The answer may come before it."""
    head, body = parts_of(attack)
    attacker.sendall(head)
    hear(attacker)
    with contextlib.suppress(OSError):
        attacker.sendall(body)


def hear(client):
    """Reads an answer or the end of the connection; or nothing for a moment, because some attacks wait for more of their body. What
    the answer is does not matter: with its end the backend connection is free for others."""
    heard = b""
    client.settimeout(SILENCE_S)
    with contextlib.suppress(OSError):
        while not is_whole(heard) and (more := client.recv(65536)):
            heard += more


def is_whole(answer):
    """As far as its lengths say."""
    head, _, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return length and len(body) >= int(length.group(1))


def paths_of_victims():
    return [f"/victim-{next(numbers)}" for _ in range(VICTIMS)]


def victims_ask(cluster, where):
    """Each has its own path back."""
    paths = paths_of_victims()
    with contextlib.closing(cluster.http(where)) as web:
        for path in paths:
            web.request("GET", path)
            assert web.getresponse().read().decode() == path


def a_victim_pipelines(cluster, where):
    paths = paths_of_victims()
    with cluster.connect(where) as client:
        client.sendall(b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode() for path in paths))
        with client.makefile("rb") as answers:
            for path in paths:
                assert body_of(answers).decode() == path


def body_of(answers):
    length = None
    while (line := answers.readline()) != b"\r\n":
        assert line, "the connection ended"
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return answers.read(length)


@pytest.mark.tool("nginx", "haproxy")
@pytest.mark.wide("each attack meets each of seven backends")
@pytest.mark.parametrize("says", [says_at_once, says_byte_by_byte, says_the_body_late], ids=lambda says: says.__name__[5:])
@pytest.mark.parametrize("attack", CORPUS, ids=lambda attack: attack["name"])
def test_nobody_gets_an_answer_that_is_another_clients(cluster, attack, says):
    """While the attacker stays, and when it is gone."""
    where = cluster.sf if next(numbers) % 2 else cluster.direct["a1"]
    with contextlib.closing(cluster.http(where)) as web:
        web.request("GET", "/first")
        assert web.getresponse().read() == b"/first"
    with cluster.connect(where) as attacker:
        says(attacker, attack)
        hear(attacker)
        victims_ask(cluster, where)
    a_victim_pipelines(cluster, where)


def test_backend_connections_are_kept_for_other_clients(cluster):
    """Or all of the above would prove nothing."""
    before = cluster.counter("backend_reused")
    victims_ask(cluster, cluster.sf)
    assert cluster.counter("backend_reused") > before
