"""RAgent proper dies while it has bytes that no agent holds any more: its next process gives them to the client."""

import concurrent.futures
import contextlib
import os
import socket
import ssl

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.processes import stop
from tests.lib.stepwise_tls import StepwiseTls
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.limit(180), pytest.mark.usefixtures("test_points")]

LINKS = {"memory": ((), None), "sealed TCP": (("--link", "sealed"), edits.over_tcp)}
VERSIONS = pytest.mark.parametrize("version", ["1.2", "1.3"])


@contextlib.contextmanager
def held(cluster, rule):
    """Until its end, bytes wait in RAgent; and after it, because the process that has them died."""
    cluster.faults(rule)
    cluster.settle_faults()
    yield
    stop(cluster.pid("r1")) # or it would write them before it dies
    cluster.clear_faults() # the next process reads no rule
    cluster.kill_ragent()


def request(path, then="close"):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {then}\r\n\r\n".encode()


def body(answer):
    return len(answer.partition(b"\r\n\r\n")[2])


def read_to_the_end(sock):
    sock.suppress_ragged_eofs = False # so that an end without close_notify is an error
    return b"".join(iter(lambda: sock.recv(65536), b""))


@VERSIONS
def test_the_end_of_a_handshake_that_another_agent_goes_on_with(kept_cluster, version):
    """The client has not got the last records of the agent that made the handshake."""
    cluster = kept_cluster("--agents", "2")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(StepwiseTls(cluster.context(version), socket.create_connection(cluster.sf, patience(20)))) for _ in range(4)]
        for client in clients:
            client.begin()
            client.say()
            client.hear_flight()
        with held(cluster, "client.write drop on r1"):
            for client in clients:
                client.say()
            wait_until(lambda: {c["state"] for c in cluster.connections()} == {"owned"}, patience(10), "all have owners")
        handed_off = [c for c in cluster.connections() if c["moves"]]
        for client in clients:
            client.shake_hands()
            assert client.ask()
        assert handed_off and cluster.status()["at_deaths"]["reset"] == 0


@VERSIONS
def test_an_answer_of_the_owner_before(kept_cluster, version):
    cluster = kept_cluster("--agents", "2", edit=edits.nobody_moves)
    with contextlib.closing(cluster.http(context=cluster.context(version))) as web:
        web.request("GET", "/1k")
        web.getresponse().read()
        before, = cluster.connections()
        with held(cluster, "client.write drop on r1"):
            web.request("GET", "/32k")
            wait_until(lambda: cluster.connections()[0]["server_bytes"] > before["server_bytes"] + 32768, patience(10), "the answer is in RAgent")
            cluster.move(before["id"], "a2" if before["owner"] == "a1" else "a1")
        assert len(web.getresponse().read()) == 32768
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024


@VERSIONS
def test_answers_of_two_owners_before(kept_cluster, version):
    """To the bytes of the first owner those of the second are added."""
    cluster = kept_cluster("--agents", "2", edit=edits.nobody_moves)
    with contextlib.closing(cluster.connect(context=cluster.context(version))) as sock:
        with held(cluster, "client.write drop on r1"):
            for answers in (1, 2):
                sock.sendall(request("/16k", "keep-alive"))
                wait_until(lambda: [c["server_bytes"] > answers * 16384 for c in cluster.connections()] == [True], patience(10), "the answer is in RAgent")
                connection, = cluster.connections()
                cluster.move(connection["id"], "a2" if connection["owner"] == "a1" else "a1")
        sock.sendall(request("/1k"))
        assert len(read_to_the_end(sock)) > 2 * 16384 + 1024
    assert cluster.status()["at_deaths"]["reset"] == 0


@VERSIONS
@pytest.mark.parametrize("deaths", [1, 3])
def test_the_last_answer_of_a_connection_that_its_server_ends(kept_cluster, version, deaths):
    cluster = kept_cluster("--agents", "1")
    with contextlib.closing(cluster.connect(context=cluster.context(version))) as sock:
        with held(cluster, "client.write drop on r1"):
            sock.sendall(request("/32k"))
            wait_until(lambda: [c["state"] for c in cluster.connections()] == ["lingering"], patience(10), "RAgent knows of the end")
            for _ in range(deaths - 1):
                cluster.kill_ragent()
        assert body(read_to_the_end(sock)) == 32768
    assert cluster.status()["at_deaths"]["reset"] == 0


@VERSIONS
def test_the_last_answer_of_a_client_that_breaks_the_record_layer(kept_cluster, version):
    cluster = kept_cluster("--agents", "1")
    with contextlib.closing(cluster.connect(context=cluster.context(version))) as sock:
        with held(cluster, "client.write drop on r1"):
            sock.sendall(request("/32k", "keep-alive"))
            wait_until(lambda: [c["server_bytes"] > 32768 for c in cluster.connections()] == [True], patience(10), "the answer is in RAgent")
            os.write(sock.fileno(), bytes([99, 3, 3, 0, 40]) + bytes(40)) # no such type
            wait_until(lambda: [c["state"] for c in cluster.connections()] == ["lingering"], patience(10), "RAgent knows of the end")
        got = b""
        with pytest.raises(ssl.SSLError, match="UNEXPECTED_MESSAGE"):
            while True:
                got += sock.recv(65536)
        assert body(got) == 32768
    assert cluster.status()["at_deaths"]["reset"] == 0


@VERSIONS
def test_an_answer_in_the_middle_of_an_upload(start_cluster, version):
    """The client goes on sending, and reads the answer behind that. A closed socket would reset it."""
    length, piece = 4 << 20, 64 << 10
    answer = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

    def refuse(listening):
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(patience(20))
            connection.recv(65536)
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError): # the agent ends it
                while connection.recv(65536):
                    pass

    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.settimeout(patience(20))
        cluster = start_cluster("--agents", "1", "--backend", "%s:%d" % listening.getsockname())
        stack.enter_context(concurrent.futures.ThreadPoolExecutor(1)).submit(refuse, listening)
        sock = stack.enter_context(contextlib.closing(cluster.connect(context=cluster.context(version))))
        sock.sendall(f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
        wait_until(lambda: [c["state"] for c in cluster.connections()] == ["lingering"], patience(10), "RAgent knows of the end")
        for sent in range(0, length, piece):
            sock.sendall(bytes(piece))
            if sent == length // 2:
                wait_until(lambda: cluster.connections()[0]["idle_ms"] >= 50, patience(10), "RAgent has dropped all that came")
                cluster.kill_ragent()
        assert read_to_the_end(sock) == answer
    assert cluster.status()["at_deaths"]["reset"] == 0


@VERSIONS
@pytest.mark.parametrize("link", LINKS)
def test_an_end_that_did_not_leave_the_link(start_cluster, version, link):
    """The agent has forgotten the connection, and holds its last frames."""
    def answer(listening):
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(patience(20))
            for length, then in ((1, b"keep-alive"), (32768, b"close")):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n" % (length, then) + bytes(length))
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1) # nothing: the agent has ended it

    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.settimeout(patience(20))
        options, edit = LINKS[link]
        cluster = start_cluster("--agents", "1", "--backend", "%s:%d" % listening.getsockname(), *options, edit=edit)
        server = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1)).submit(answer, listening)
        sock = stack.enter_context(contextlib.closing(cluster.connect(context=cluster.context(version))))
        sock.sendall(request("/", "keep-alive"))
        assert sock.recv(65536)
        with held(cluster, "link.read drop on r1"):
            sock.sendall(request("/"))
            assert server.result() == b""
        assert body(read_to_the_end(sock)) == 32768
        assert cluster.status()["at_deaths"]["reset"] == 0
