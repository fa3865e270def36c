"""Clients with another server's ticket for early data, as after a change from that server to this cluster: agents skip the early
data, never use it, and the handshake goes on."""

import contextlib
import re
import subprocess

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.edits import edits, nobody_moves, tls
from tests.lib.mail import Sink
from tests.lib.mail_cluster import direct_listener, mail_backend, mail_listener
from tests.lib.nginx import Nginx
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("nginx")

NGINX_ALLOWS = 16384  # bytes of early data, by each ticket
MORE_THAN_SKIPPED = 40000
CLIENT = ["openssl", "s_client", "-tls1_3", "-servername", "localhost"]
ASKED = b"GET /5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ACCEPTED = "Early data was accepted"
REJECTED = "Early data was rejected"


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=nobody_moves)


def s_client(to, *options, say=ASKED):
    """Its output about the connection and the answer."""
    host, port = to
    done = subprocess.run([*CLIENT, "-connect", f"{host}:{port}", "-ign_eof", *map(str, options)], input=say,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience(20), check=False)
    return done.stdout.decode(errors="replace")


@pytest.fixture
def nginx_ticket(tmp_path):
    """A session that nginx gave, and that nginx would take early data with."""
    session, hello = tmp_path / "session", tmp_path / "early"
    hello.write_bytes(ASKED)
    with Nginx(tmp_path, {"5": b"12345"}, "ssl_early_data on;") as nginx:
        s_client(nginx.address, "-sess_out", session)
        assert ACCEPTED in s_client(nginx.address, "-sess_in", session, "-early_data", hello, say=b"")
    return session


@contextlib.contextmanager
def running(command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture
def generous_ticket(tmp_path):
    """One that allows more than is ever skipped."""
    session, port = tmp_path / "session", free_ports(1)[0]
    certificate, key = self_signed(tmp_path)

    def connect():
        with running([*CLIENT, "-connect", f"127.0.0.1:{port}", "-sess_out", session]):
            wait_until(lambda: session.read_text().endswith("-----END SSL SESSION PARAMETERS-----\n"), 0.5)  # whole
        return True

    with running(["openssl", "s_server", "-accept", str(port), "-cert", certificate, "-key", key, "-early_data",
                  "-max_early_data", "1000000"]):
        wait_until(connect, patience(10), "a session of s_server")
    return session


WHERE = {"sf": lambda cluster: cluster.sf, "sl": lambda cluster: cluster.sl, "direct": lambda cluster: cluster.direct["a1"]}
in_all_places = pytest.mark.parametrize("where", WHERE)


def early(tmp_path, length, mark):
    """A file of early data: a request that must not be done, and the begin of its body."""
    path = tmp_path / "early"
    head = b"POST /count HTTP/1.1\r\nHost: localhost\r\nX-Id: %s\r\nContent-Length: 0\r\n\r\n" % mark.encode()
    path.write_bytes((head + b"x" * length)[:length])
    return path


def asked_early(cluster, mark):
    """How often the backend did a request."""
    with contextlib.closing(cluster.http()) as web:
        web.request("GET", f"/count/{mark}")
        return int(re.search(rb"\d+", web.getresponse().read()).group())


@in_all_places
@pytest.mark.parametrize("length", [1, 500, NGINX_ALLOWS])
def test_early_data_is_skipped_and_the_handshake_goes_on(cluster, nginx_ticket, tmp_path, where, length):
    """Several times, so that in mode SF some connections are handed to another agent right after the handshake."""
    skipped = cluster.counter("early_data_skipped")
    for _ in range(4):
        answer = s_client(WHERE[where](cluster), "-sess_in", nginx_ticket, "-early_data", early(tmp_path, length, "skipped"))
        assert REJECTED in answer and "New, TLSv1.3" in answer
        assert "HTTP/1.1 200 OK" in answer and answer.count("X-CSSL-Agent") == 1
    assert asked_early(cluster, "skipped") == 0
    wait_until(lambda: cluster.counter("early_data_skipped") == skipped + 4, patience(5), "four more that were skipped")


@in_all_places
def test_more_early_data_than_is_skipped_ends_the_handshake(cluster, generous_ticket, tmp_path, where):
    refused = cluster.counter("handshakes_refused_message")
    file = early(tmp_path, MORE_THAN_SKIPPED, "too-much")
    answer = s_client(WHERE[where](cluster), "-sess_in", generous_ticket, "-early_data", file)
    assert "SSL alert number 10" in answer and "HTTP/1.1" not in answer
    wait_until(lambda: cluster.counter("handshakes_refused_message") == refused + 1, patience(5), "one more that was refused")


@in_all_places
def test_early_data_before_a_second_hello_is_skipped(start_cluster, nginx_ticket, tmp_path, where):
    """The first hello has no key share for the group that the agents want."""
    cluster = start_cluster("--agents", "2", edit=tls("groups: P-384"))
    answer = s_client(WHERE[where](cluster), "-sess_in", nginx_ticket, "-groups", "X25519:P-384",
                      "-early_data", early(tmp_path, NGINX_ALLOWS, "retried"))
    assert "HTTP/1.1 200 OK" in answer and answer.count("X-CSSL-Agent") == 1
    assert asked_early(cluster, "retried") == 0


EARLY_MAIL = b"EHLO early.example\r\nMAIL FROM:<early@x.example>\r\nRCPT TO:<b@x.example>\r\nBDAT 4 LAST\r\nab\r\nQUIT\r\n"
MAIL = b"EHLO client.example\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\nSubject: x\r\n\r\nx\r\n.\r\nQUIT\r\n"


def test_early_data_behind_starttls_is_no_mail(start_cluster, nginx_ticket, tmp_path):
    """Of a sender that was at another server before."""
    early_mail, dump = tmp_path / "early", tmp_path / "mails"
    early_mail.write_bytes(EARLY_MAIL)
    with Sink("--proxy", "--dump", str(dump)) as sink:
        behind_ragent, direct = ports = free_ports(2)
        cluster = start_cluster("--agents", "2", edit=edits(
            mail_backend(sink.address, "proxy_v2: on"), mail_listener("mail", behind_ragent), direct_listener("a1", "mail", direct)))
        for port in ports:
            answer = s_client(("127.0.0.1", port), "-starttls", "smtp", "-sess_in", nginx_ticket, "-early_data", early_mail, say=MAIL)
            assert REJECTED in answer and "New, TLSv1.3" in answer, answer
            assert re.findall(r"^(\d{3}) ", answer, re.M)[-5:] == ["250", "250", "354", "250", "221"], answer
        wait_until(lambda: cluster.counter("early_data_skipped") == 2, patience(5), "two that were skipped")
    assert sink.counts["mails"] == 2 and b"early" not in dump.read_bytes(), sink.result.seen()
