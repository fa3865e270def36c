"""SMTP smuggling (CVE-2023-51764 and similar ones): a client ends the content of a mail by bytes that only some servers take for
the end, and hides a second mail after them. A cluster in front of Postfix, Exim and OpenSMTPD lets no such mail pass, at whatever
place segments and records are divided."""

import contextlib
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
SEALING = 24  # bytes: nonce and tag of TLS 1.2; TLS 1.3 adds fewer


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


def in_clear(behind, end, at, version):
    """Sends two segments. Returns the answer."""
    with Client(behind.door("smtp")) as client:
        client.greet()
        begin(client)
        send_in_two(client.sock, content(end), at)
        return client.ends()[1]


def shake_hands(behind, client, door, version):
    """The client's TLS, behind the banner."""
    if door != "smtps":
        client.greet()
        assert client.ask("STARTTLS")[0].startswith("220 ")
    tls = CutRecords(client.sock, behind.cluster.context(version, alpn=()), "localhost")
    if door == "smtps":
        assert tls.read().startswith(b"220 ")
    return tls


@contextlib.contextmanager
def secured(behind, version, door="submission"):
    """A client in DATA, and its TLS."""
    with Client(behind.door(door)) as client:
        tls = shake_hands(behind, client, door, version)

        def say(command):
            client.sock.sendall(tls.sealed(command.encode() + b"\r\n"))
            return tls.read().decode().splitlines()

        say("EHLO client.example")
        begin(client, say)
        yield client, tls


def in_two_records(behind, end, at, version, door="submission"):
    with secured(behind, version, door) as (client, tls):
        first = tls.sealed(content(end)[:at])
        send_in_two(client.sock, first + tls.sealed(content(end)[at:]), len(first))
        return tls.rest()


def in_two_records_of_smtps(behind, end, at, version):
    return in_two_records(behind, end, at, version, "smtps")


def in_cut_records(behind, end, at, version):
    """One record that begins with the end, in two segments."""
    with secured(behind, version) as (client, tls):
        send_in_two(client.sock, tls.sealed(content(end)), at)
        return tls.rest()


def in_byte_records(behind, end, at, version):
    """Each byte is a record, and the segments end where the kernel likes."""
    with secured(behind, version) as (client, tls):
        with contextlib.suppress(ConnectionError):
            client.sock.sendall(b"".join(tls.sealed(bytes([byte])) for byte in content(end)))
        return tls.rest()


def beginning_of_record(end):
    """In a TLS record the header can be divided, too, and later places divide the ciphertext."""
    return range(1, RECORD_HEAD + 1 + len(end) + 2)


def whole_record(end):
    return range(1, RECORD_HEAD + len(content(end)) + SEALING)


WAYS = {  # what a client does, its version of TLS, and the places
    "in clear": (in_clear, None, cuts),
    "in two records": (in_two_records, "1.3", cuts),
    "in cut records": (in_cut_records, "1.3", beginning_of_record),
    "in cut records of TLS 1.2": (in_cut_records, "1.2", beginning_of_record),
    "in records of a byte": (in_byte_records, "1.3", lambda end: [0]),
    "in records of TLS 1.2 of a byte": (in_byte_records, "1.2", lambda end: [0]),
}
# What the cluster does to records of TLS 1.2 does not depend on the server.
CASES = [(server, way) for server in SERVERS for way in WAYS if server == Postfix.name or "1.2" not in way]


def refuses(behind, say, version, tries):
    """Each try, an end and a place, gets one reply, and it is 550."""
    for end, at in tries:
        said = say(behind, end, at, version)
        assert said.startswith(b"550 ") and said.count(b"\r\n") == 1, (end, at, said)


@pytest.mark.parametrize("server,way", CASES, ids=lambda value: value)
def test_nothing_is_smuggled_through_a_cluster(before, server, way, tmp_path):
    say, version, places = WAYS[way]
    with Sink("--mails", "1") as sink, before.server(SERVERS[server], tmp_path, sink) as behind:
        refuses(behind, say, version, [(end, at) for end in ENDS for at in places(end)])
        # one that is in order comes behind them all
        assert source(behind.door("submission"), "--starttls", "--ca", behind.cluster.ca).counts["sent"] == 1
        wait_for_end(sink, behind.peer)
        log = behind.peer.log()
    assert sink.counts["right"] == 1
    assert SMUGGLED not in log


def test_nothing_is_smuggled_wherever_a_record_is_divided(before, tmp_path):
    end = "\r\n.\n"
    with Sink() as sink, before.server(Postfix, tmp_path, sink) as behind:
        for version in "1.2", "1.3":
            refuses(behind, in_cut_records, version, [(end, at) for at in whole_record(end)])
        # what the cluster does to records depends neither on the server nor, behind the handshake, on the listener
        refuses(behind, in_two_records, "1.2", [(end, at) for end in ENDS for at in cuts(end)])
        for version in "1.2", "1.3":
            refuses(behind, in_two_records_of_smtps, version, [(end, at) for end in ENDS for at in cuts(end, 0)])
        assert SMUGGLED not in behind.peer.log()


def test_without_a_cluster_something_is_smuggled(tmp_path):
    """Postfix, as it is configured here: the same words as in the test above have an effect there."""
    with Sink() as sink, Postfix(tmp_path, sink.address) as peer:
        with Client(peer.address) as client:
            client.greet()
            begin(client)
            client.send(content("\n.\r\n"))
            client.ends()
        peer.wait_for_log(f"from=<{SMUGGLED}>")
