"""SMTP smuggling (CVE-2023-51764 and similar ones): a client ends the content of a mail by bytes that only some servers take for
the end, and hides a second mail after them. A cluster in front of Postfix, Exim and OpenSMTPD lets no such mail pass, at whatever
place segments and records are divided."""

import time

import pytest

from bench.experiments.mail_room import obstacle
from tests.lib.cut_records import CutRecords
from tests.lib.mail import Sink, source
from tests.lib.mail_behind import ClustersBefore
from tests.lib.mail_servers import SERVERS, Postfix, wait_for_end
from tests.lib.smtp_client import Client

pytestmark = [pytest.mark.root, pytest.mark.skipif(obstacle() is not None, reason=str(obstacle())), pytest.mark.limit(400)]

ENDS = ["\n.\n", "\n.\r", "\r.\n", "\r.\r", "\n.\r\n", "\r.\r\n", "\r\n\0.\r\n", "\r\n.\n", "\r\n.\r", "\r\n.\0\r\n", "\r\n.\r\r\n",
        "\r\r\n.\r\r\n"]
SMUGGLED = "smuggled@x.example"
HIDDEN = f"MAIL FROM:<{SMUGGLED}>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n\r\nb\r\n.\r\nQUIT\r\n"
PAUSE_S = 0.0005  # between two segments, so that they are two
RECORD_HEAD = 5


@pytest.fixture(scope="module")
def before(start_module_cluster):
    return ClustersBefore(start_module_cluster)


def cuts(end, beyond=2):
    """Every place in and around an end that begins after the letter a."""
    return range(1, 1 + len(end) + beyond)


def begin(client, say=None):
    for command in "MAIL FROM:<outer@x.example>", "RCPT TO:<a@x.example>", "DATA":
        assert (say or client.ask)(command)[0][0] in "23", command


def content(end):
    return f"a{end}{HIDDEN}".encode()


def send_in_two(sock, data, at):
    try:
        sock.sendall(data[:at])
        time.sleep(PAUSE_S)
        sock.sendall(data[at:])
    except ConnectionError:  # the server has ended it already
        pass


def in_clear(behind, end, at):
    """Sends two segments. Returns the answer."""
    with Client(behind.door("smtp")) as client:
        client.greet()
        begin(client)
        send_in_two(client.sock, content(end), at)
        return client.ends()[1]


def secured(behind, client):
    client.greet()
    assert client.ask("STARTTLS")[0].startswith("220 ")
    tls = CutRecords(client.sock, behind.cluster.context(alpn=()), "localhost")

    def say(command):
        client.sock.sendall(tls.sealed(command.encode() + b"\r\n"))
        return tls.read().decode().splitlines()

    say("EHLO client.example")
    begin(client, say)
    return tls


def in_two_records(behind, end, at):
    with Client(behind.door("submission")) as client:
        tls = secured(behind, client)
        first = tls.sealed(content(end)[:at])
        send_in_two(client.sock, first + tls.sealed(content(end)[at:]), len(first))
        return tls.rest()


def in_cut_records(behind, end, at):
    """One record that begins with the end, in two segments."""
    with Client(behind.door("submission")) as client:
        tls = secured(behind, client)
        send_in_two(client.sock, tls.sealed(content(end)), at)
        return tls.rest()


def tries_of(way, end):
    """In a TLS record the header can be divided, too, and later places divide the ciphertext."""
    return range(1, RECORD_HEAD + 1 + len(end) + 2) if way is in_cut_records else cuts(end)


@pytest.mark.parametrize("way", [in_clear, in_two_records, in_cut_records], ids=lambda way: way.__name__)
@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_nothing_is_smuggled_through_a_cluster(before, server, way, tmp_path):
    with Sink("--mails", "1") as sink, before.server(server, tmp_path, sink) as behind:
        for end in ENDS:
            for at in tries_of(way, end):
                said = way(behind, end, at)
                assert said.startswith(b"550 ") and said.count(b"\r\n") == 1, (end, at, said)
        # one that is in order comes behind them all
        assert source(behind.door("submission"), "--starttls", "--ca", behind.cluster.ca).counts["sent"] == 1
        wait_for_end(sink, behind.peer)
        log = behind.peer.log()
    assert sink.counts["right"] == 1
    assert SMUGGLED not in log


def test_without_a_cluster_something_is_smuggled(tmp_path):
    """Debian 12's Postfix, as it is configured here: the same words as in the test above have an effect there."""
    with Sink() as sink, Postfix(tmp_path, sink.address) as peer:
        with Client(peer.address) as client:
            client.greet()
            begin(client)
            client.send(content("\n.\r\n"))
            client.ends()
        peer.wait_for_log(f"from=<{SMUGGLED}>")
