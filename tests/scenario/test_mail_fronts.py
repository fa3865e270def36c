"""Attacks that a STARTTLS server has to withstand (RFC 3207, CVE-2011-0411), at each front of tests/lib/mail_fronts.py."""

import contextlib
import ssl
import statistics
import time

import pytest

from tests.lib.build import SANITIZED, patience
from tests.lib.mail_front_door import greet_at, mail_door
from tests.lib.odd_mail import BARE
from tests.lib.smtp_client import Client
from tests.lib.smtp_talk import Talk

INJECTED = "MAIL FROM:<injected@a>\r\nRCPT TO:<b@c>\r\nBDAT 4 LAST\r\nab\r\n"
FIRST_REPLY_S, FIRST_REPLY_SANITIZED_S = 0.005, 0.03
BODY = "Subject: x\r\n\r\nbody\r\n.\r\n"


def secured(front, greeting="EHLO client.example"):
    client = Talk(front.address)
    client.say(greeting)
    assert client.say("STARTTLS")[:3] == "220"
    client.start_tls(front.ca)
    return client


def assert_works(front, client):
    """One reply to each command, and one mail."""
    assert client.say("NOOP")[:3] == "250"
    client.ehlo()
    client.mail()
    client.send(BODY)
    assert client.reply()[:3] == "250"
    assert client.say("QUIT")[:3] == "221"


@pytest.mark.parametrize("pause", [0, 0.001, 0.01, 0.1], ids=lambda s: f"{s * 1000:g} ms")
@pytest.mark.parametrize("cut", range(0, 24, 3))
def test_bytes_behind_starttls_are_never_commands(start_front, cut, pause):
    """STARTTLS, followed by commands in clear, in two segments that are divided at any place."""
    said = "STARTTLS\r\n" + INJECTED
    with start_front() as front:
        with Talk(front.address) as client:
            client.ehlo()
            for piece in filter(None, (said[:cut], said[cut:])):
                with contextlib.suppress(ConnectionError):  # it may be closed for the first one
                    client.send(piece)
                time.sleep(pause)  # between two segments: nobody waits for it
            with contextlib.suppress(ConnectionError):
                client.send(b"\r\n" * 3)
            replies = client.rest()
        assert b"250 " not in replies and replies.count(b"220 ") <= 1, replies
    assert front.sink.counts["mails"] == 0


def test_bytes_in_clear_behind_the_reply_are_never_commands(start_front):
    with start_front() as front:
        with Talk(front.address) as client:
            client.ehlo()
            assert client.say("STARTTLS")[:3] == "220"
            client.send(INJECTED)
            assert b"250" not in client.rest()
    assert front.sink.counts["mails"] == 0


def test_an_injection_before_a_handshake_has_no_effect(start_front):
    """The client goes on with TLS, as if an attacker had added to its plaintext: it gets nothing, or replies to its own
    commands."""
    with start_front() as front:
        with Talk(front.address) as client:
            client.ehlo()
            client.send("STARTTLS\r\n" + INJECTED)
            with contextlib.suppress(OSError):
                assert client.reply()[:3] in ("220", "")
                client.start_tls(front.ca)
                assert client.say("NOOP") in ("", "250 2.0.0 Ok")
    assert front.sink.counts["mails"] == 0


@pytest.mark.parametrize("line", ["starttls", "StartTLS", "STARTTLS ", "STARTTLS\t"])
def test_starttls_has_many_spellings(start_front, line):
    with start_front() as front:
        with Talk(front.address) as client:
            client.ehlo()
            assert client.say(line)[:3] == "220"
            client.start_tls(front.ca)
            assert_works(front, client)
    assert front.sink.counts["mails"] == 1


def test_starttls_takes_no_argument(start_front):
    with start_front() as front:
        with Talk(front.address) as client:
            client.ehlo()
            assert client.say("STARTTLS foo")[:9] == "501 5.5.4"
            assert client.say("NOOP")[:3] == "250"
            assert client.say("STARTTLS")[:3] == "220"
            client.start_tls(front.ca)
            assert_works(front, client)


def test_starttls_may_be_the_last_of_a_group(start_front):
    with start_front() as front:
        with Talk(front.address) as client:
            client.send("EHLO client.example\r\nSTARTTLS\r\n")
            assert client.reply()[:3] == "250" and client.reply()[:3] == "220"
            client.start_tls(front.ca)
            assert_works(front, client)


def test_starttls_comes_byte_by_byte(start_front):
    with start_front() as front:
        with Talk(front.address) as client:
            for byte in "EHLO client.example\r\n":
                client.send(byte)
            assert client.reply()[:3] == "250"
            for byte in "STARTTLS\r\n":
                client.send(byte)
            assert client.reply()[:3] == "220"
            client.start_tls(front.ca)
            assert_works(front, client)


def test_nothing_said_in_clear_is_known_behind_the_handshake(start_front):
    with start_front() as front:
        with secured(front) as client:
            assert client.say("DATA")[:3] == "503"
            capabilities = client.ehlo()
            assert "STARTTLS" not in capabilities and not {"XCLIENT", "XFORWARD", "XCSSLTX"} & set(capabilities)
            assert client.say("STARTTLS")[:3] in ("554", "503", "502")
            assert_works(front, client)
    assert front.sink.counts["mails"] == 1


def test_the_first_reply_behind_a_handshake_comes_at_once(start_front):
    """A client that leaves Nagle's algorithm on waits for what acknowledges its Finished, and without TCP_NODELAY of the server this
    takes 40 ms. A busy machine may be late at times, but not mostly."""
    with start_front() as front:
        took = []
        for _ in range(15):
            with secured(front) as client:
                begin = time.monotonic()
                client.say("EHLO client.example")
                took.append(time.monotonic() - begin)
                client.say("QUIT")
    assert statistics.median(took) < patience(FIRST_REPLY_SANITIZED_S if SANITIZED else FIRST_REPLY_S), took


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
                                   b"\0" * 100, b"\r\n" * 10], ids=["HTTP", "TLS", "zeros", "empty lines"])
def test_other_protocols_reach_no_mail(start_front, first):
    with start_front() as front:
        with Talk(front.address, header=first) as client:
            client.says_no_more()
            said = client.rest()
        assert b"250" not in said and first not in said
        with secured(front) as client:
            assert_works(front, client)
    assert front.sink.counts["mails"] == 1


@pytest.mark.parametrize("way", ["smtp", "submission", "smtps"])
def test_bare_carriage_returns_and_line_feeds_pass_unchanged(cluster_fronts, way, tmp_path):
    dump = tmp_path / "dump"
    with cluster_fronts.start("--dump", str(dump)) as front:
        with Talk(mail_door(cluster_fronts.cluster, way), has_banner=way != "smtps") as client:
            greet_at(client, front.ca, way)
            client.mail()
            client.send(BARE + b".\r\n")
            assert client.reply()[:3] == "250"
            client.mail()
            client.send(BARE + b"\n.\r\n")
            assert client.reply()[:9] == "550 5.6.0"
    assert front.sink.counts["mails"] == 1 and BARE in dump.read_bytes()


WEB, MAIL = ("sf", "sl"), ("smtp", "submission", "smtps")


def visit_web(cluster, name, context, session):
    with contextlib.closing(cluster.http(getattr(cluster, name), context, session=session)) as web:
        web.request("GET", "/5")
        assert web.getresponse().read()
        return web.sock.session_reused, web.sock.session


def visit(cluster, name, context, session=None):
    """Whether that session was resumed there, and the session that the client has then."""
    if name in WEB:
        return visit_web(cluster, name, context, session)
    with Client(mail_door(cluster, name)) as client:
        if name == "smtps":
            client.handshake(context, session=session)
            assert client.code() == 220
        else:
            client.greet()
            client.starttls(context, session=session)
        assert client.ask("EHLO client.example")[0].startswith("250-")
        return client.sock.session_reused, client.sock.session


@pytest.mark.parametrize("how", ["1.3", "1.2", "1.2 by id"])
def test_a_session_is_resumed_only_at_its_listener(cluster_fronts, how):
    """Whether it is of mail or of the web. Elsewhere the client makes a full handshake, and no error comes."""
    cluster, context = cluster_fronts.cluster, cluster_fronts.cluster.context(how[:3], alpn=())
    context.options |= ssl.OP_NO_TICKET if how == "1.2 by id" else 0
    with cluster_fronts.start():
        for name in WEB + MAIL:
            _, session = visit(cluster, name, context)
            for other in WEB + MAIL:
                reused, _ = visit(cluster, other, context, session)
                assert reused == (other == name), (name, other)
