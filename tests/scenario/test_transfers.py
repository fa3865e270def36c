"""Uploads and downloads at full speed, byte by byte the same, over everything that carries a client's records to an agent: links
through shared memory, on sockets, over TCP, sealed or not, and the agents' own TLS listeners."""

import contextlib
import hashlib
import json
import random
import signal
import socket
import ssl

import pytest

from tests.lib.build import patience, sized
from tests.lib.edits import alpn, at_end, below, edits, nobody_moves, over_tcp, parks_long
from tests.lib.pattern import pattern
from tests.lib.waiting import wait_until

FULL_RECORD = 16384
SIZES = [0, 1, FULL_RECORD - 1, FULL_RECORD, FULL_RECORD + 1, 65536, sized(10**7, 10**8)]
SERVICES = {"http": "http/1.1", "tcp": "bytes"}
PROTOCOLS = [(version, service) for version in ("1.2", "1.3") for service in SERVICES]

both_services = alpn("bytes", "tcp", "main")
on_sockets = edits(below("a1", "link_bytes: socket"), below("a2", "link_bytes: socket"))

# The options of ./cssl up, and what changes in its file.
LINKS = {
    "memory": ([], edits(nobody_moves, both_services)),
    "memory, sealed": (["--link", "sealed"], edits(nobody_moves, both_services)),
    "socket": ([], edits(nobody_moves, both_services, on_sockets)),
    "socket, sealed": (["--link", "sealed"], edits(nobody_moves, both_services, on_sockets)),
    "tcp": ([], edits(nobody_moves, both_services, over_tcp)),
    "tcp, sealed": (["--link", "sealed"], edits(nobody_moves, both_services, over_tcp)),
}
CARRIERS = [*LINKS, "direct"]


@pytest.fixture(scope="module")
def clusters(start_module_cluster):
    """The cluster of a carrier, and where its clients connect."""
    started = {}

    def of(carrier):
        links = "memory" if carrier == "direct" else carrier
        if links not in started:
            options, edit = LINKS[links]
            started[links] = start_module_cluster("--agents", "2", *options, edit=edit)
        cluster = started[links]
        return cluster, cluster.direct["a1"] if carrier == "direct" else cluster.sf

    return of


@pytest.fixture(params=[(carrier, *protocol) for carrier in CARRIERS for protocol in PROTOCOLS], ids=", ".join)
def web(clusters, request):
    carrier, version, service = request.param
    cluster, where = clusters(carrier)
    with contextlib.closing(cluster.http(where, cluster.context(version, alpn=[SERVICES[service]]))) as connection:
        assert connection.sock.selected_alpn_protocol() == SERVICES[service]
        yield connection


def upload(web, pieces):
    """In one request; each piece is given to TLS at once, so that one of up to 16384 bytes is one record."""
    length, digest = sum(map(len, pieces)), hashlib.sha256()
    web.putrequest("POST", "/sha256")
    web.putheader("Content-Length", str(length))
    web.endheaders()
    for piece in pieces:
        digest.update(piece)
        web.sock.sendall(piece)
    answer = json.loads(web.getresponse().read())
    assert answer == {"sha256": digest.hexdigest(), "length": length}


def download(web, size):
    web.request("GET", f"/{size}")
    body = web.getresponse().read()
    assert hashlib.sha256(body).digest() == hashlib.sha256(pattern(size)).digest()


@pytest.mark.limit(240)
def test_uploads_and_downloads_of_every_size_are_whole(web):
    """One after the other on one connection."""
    data = random.Random(1).randbytes(SIZES[-1])
    for size in SIZES:
        upload(web, [data[:size]])
        download(web, size)


def test_an_upload_in_records_of_every_length_is_whole(web):
    """Records do not end where an agent's buffers do."""
    lengths = random.Random(2).choices([1, 100, 5000, FULL_RECORD - 1, FULL_RECORD], k=300)
    data = random.Random(3).randbytes(FULL_RECORD)
    upload(web, [data[:length] for length in lengths])


REQUEST = b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHANGE_CIPHER_SPEC = bytes.fromhex("140303000101")


def until_done(step, tcp, came, goes):
    """Does a step of a TLS client over a socket. Returns its result."""
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            result = step()
            tcp.sendall(goes.read())
            return result
        tcp.sendall(goes.read())
        came.write(tcp.recv(65536))


def test_bytes_of_a_client_whose_handshake_waits_are_taken_afterwards(start_cluster, test_points):
    """An agent asks another one for the session that the client offers, and waits for the answer; the client goes on meanwhile, as
    those do that send early data."""
    cluster = start_cluster("--agents", "2", edit=edits(parks_long, at_end("log: { level: debug }")))
    context = cluster.context("1.3")
    cluster.faults("udp.send drop on a1")
    cluster.settle_faults()
    with cluster.connect(cluster.direct["a1"], context) as first:
        first.sendall(REQUEST)
        assert b"200 OK" in first.recv(1000)
        session = first.session
    cluster.send_signal("a1", signal.SIGSTOP)
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(came, goes, server_hostname="localhost", session=session)
    with socket.create_connection(cluster.direct["a2"], patience(20)) as tcp:
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        tcp.sendall(goes.read())
        wait_until(lambda: "to=parked" in cluster.log("a2"), patience(10), "a handshake that waits")
        tcp.sendall(CHANGE_CIPHER_SPEC)
        cluster.send_signal("a1", signal.SIGCONT)
        until_done(client.do_handshake, tcp, came, goes)
        client.write(REQUEST)
        assert b"200 OK" in until_done(lambda: client.read(1000), tcp, came, goes)
