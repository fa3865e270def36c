"""smtpproxy between receivers that do not treat all senders or connections in the same way, and senders that share their connections."""

import contextlib
import itertools
import re
import socket
import threading
import time

import pytest

from tests.lib.build import patience
from tests.lib.scripted_receiver import GATE, ScriptedReceiver
from tests.lib.smtp_control import counters, destination, states
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

BODY = "Subject: x\r\n\r\nx\r\n.\r\n"


@contextlib.contextmanager
def proxied(tmp_path, script, **keys):
    with ScriptedReceiver(script) as receiver, Proxy(tmp_path, next_hop=receiver.address, **keys) as proxy:
        yield proxy, receiver


def waiting(proxy, count):
    wait_until(lambda: states(proxy).count("waits") == count, patience(10), f"{count} sessions wait")


def test_a_refused_name_is_no_refusal_of_the_senders_beside_it(tmp_path):
    """Both wait for what the receiver offers, when it refuses the name of the first."""
    with proxied(tmp_path, {"banner": GATE + "220 gate", "EHLO bad": "550 5.7.1 no", "HELO bad": "550 5.7.1 no"}) as (proxy, receiver):
        with Talk(proxy.address, source="192.0.2.1") as bad, Talk(proxy.address, source="192.0.2.2") as good:
            bad.send("EHLO bad.example\r\n")
            waiting(proxy, 1)
            good.send("EHLO good.example\r\n")
            waiting(proxy, 2)
            receiver.open_gate()
            assert bad.reply().startswith("550 5.7.1 ")
            assert good.reply().startswith("250-")
            good.mail()
            good.send(BODY)
            assert good.reply().startswith("250 ")
        assert counters(proxy)["names_refused"] == 1


@pytest.mark.parametrize("command", ["EHLO client.example", "MAIL FROM:<a@b>"])
def test_a_receiver_that_is_closed_does_not_end_the_mail(tmp_path, command):
    """Its banner is 5xx, from the first connection on or later. The domain may have another server. Sender, event and log have its words."""
    banners = [] if command.startswith("EHLO") else ["220 open"]
    blocked = "554 5.7.1 Your IP is blocked"
    with proxied(tmp_path, {"banner": [*banners, blocked]}, outward={"keep_idle": "100ms"}) as (proxy, _):
        with Talk(proxy.address, source="192.0.2.1") as client:
            if banners:
                client.ehlo()
                wait_until(lambda: destination(proxy)["idle"] == 0, patience(10), "the connection is gone")
            reply = f"421 4.3.2 The receiver takes no mail now, try again later; it said: {blocked}"
            assert client.say(command) == reply
            assert client.is_closed()
        event, = proxy.events()
        assert (event["outcome"], event["code"], event["enhanced"]) == ("not served", 421, "4.3.2") and reply.endswith(event["text"])
        assert (event["ehlo"], event.get("from")) == ("client.example", "a@b" if banners else None)
        assert f'cause="The receiver takes no mail" said="{blocked}"' in proxy.log()
        assert re.search(f'mail not accepted client=192.0.2.1:1000 from=(""|a@b) recipients=0 .*it said: {blocked}"', proxy.log())


def test_a_receiver_that_puts_connections_off_is_quoted_when_the_time_is_over(tmp_path):
    with proxied(tmp_path, {"banner": ["220 open", "421 4.7.0 Too many from you"]}, outward={"keep_idle": "100ms"},
                 limits={"turn_timeout": "300ms"}) as (proxy, _):
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            wait_until(lambda: destination(proxy)["idle"] == 0, patience(10), "the connection is gone")
            assert client.say("MAIL FROM:<a@b>") == \
                "451 4.4.5 The destination is busy, try again later; it said: 421 4.7.0 Too many from you"


RICH = "250-rich\r\n250-PIPELINING\r\n250-CHUNKING\r\n250-SMTPUTF8\r\n250 SIZE 1000"
POOR = "250-poor\r\n250-PIPELINING\r\n250 SIZE 500"


@pytest.mark.parametrize("command", ["MAIL FROM:<a@b> SMTPUTF8", "BDAT 4 LAST"])
def test_a_connection_that_cannot_do_what_the_sender_was_told_gives_421(tmp_path, command):
    """Behind the address of the receiver are two servers. The first one's offers are told, the second one gets the mail."""
    with proxied(tmp_path, {"EHLO": [RICH, POOR]}) as (proxy, receiver):
        with Talk(proxy.address, source="192.0.2.1") as first, Talk(proxy.address, source="192.0.2.2") as second:
            assert {"CHUNKING", "SMTPUTF8"} <= first.ehlo().keys()
            first.mail()
            assert {"CHUNKING", "SMTPUTF8"} <= second.ehlo().keys()
            if command.startswith("BDAT"):
                assert second.say("MAIL FROM:<a@b>").startswith("250 ")
                assert second.say("RCPT TO:<c@d>").startswith("250 ")
                second.send(command + "\r\nx: y")
                assert second.reply().startswith("421 4.3.2 ")
            else:
                assert second.say(command).startswith("421 4.3.2 ")
            assert second.is_closed()
            with Talk(proxy.address, source="192.0.2.2") as again:
                offers = again.ehlo()
                assert offers["SIZE"] == "500" and not {"CHUNKING", "SMTPUTF8"} & offers.keys()
            first.send(BODY)
            assert first.reply().startswith("250 ")
    assert not any(heard == (1, command) for heard in receiver.heard)


def test_a_name_that_is_refused_on_a_used_connection_ends_one_mail(tmp_path):
    """The connection is the first sender's. The second one's name is said on it later, and refused for now."""
    with proxied(tmp_path, {"EHLO bad": "450 4.7.1 unknown"}, limits={"connections_per_destination": 1}) as (proxy, receiver):
        with Talk(proxy.address, source="192.0.2.1") as good, Talk(proxy.address, source="192.0.2.2") as bad:
            good.ehlo()
            assert bad.say("EHLO bad.example").startswith("250-")
            assert bad.say("MAIL FROM:<a@b>").startswith("450 4.7.1 ")
            good.mail()
            good.send(BODY)
            assert good.reply().startswith("250 ")
        assert [command for _, command in receiver.heard].count("EHLO bad.example") == 1


def drip(client, gap, count=None):
    """A byte after the other, until `count` are sent or the server hears no more."""
    with contextlib.suppress(OSError):
        for _ in itertools.count() if count is None else range(count):
            client.send(b"x")
            threading.Event().wait(gap)


def test_a_slow_sender_keeps_no_connection_for_which_others_wait(tmp_path):
    limits = {"connections_per_destination": 1, "lease_timeout": "500ms", "least_rate": 1000}
    with proxied(tmp_path, {}, limits=limits) as (proxy, receiver):
        with Talk(proxy.address, source="192.0.2.1") as slow, Talk(proxy.address, source="192.0.2.2") as other:
            slow.ehlo()
            slow.mail()
            other.ehlo()
            dripping = threading.Thread(target=drip, args=(slow, 0.1), daemon=True)
            dripping.start()
            other.mail()
            other.send(BODY)
            assert other.reply().startswith("250 ")
            assert slow.reply().startswith("421 4.4.2 Too slow")
            assert counters(proxy)["too_slow"] == 1
        dripping.join(patience(10))
    assert receiver.contents == [BODY.removesuffix(".\r\n").encode()]


def test_a_slow_sender_that_is_in_nobodys_way_is_served(tmp_path):
    """It takes several times as long as others would let it."""
    with proxied(tmp_path, {}, limits={"lease_timeout": "200ms", "least_rate": 1000}) as (proxy, receiver):
        with Talk(proxy.address, source="192.0.2.1") as slow:
            slow.ehlo()
            slow.mail()
            drip(slow, 0.1, 20)
            slow.send("\r\n.\r\n")
            assert slow.reply().startswith("250 ")
    assert receiver.contents == [b"x" * 20 + b"\r\n"]


def test_a_receiver_to_which_no_connection_can_begin_rests_as_one_that_refuses(tmp_path):
    """Nothing goes out from an address of the loopback, so each attempt fails at once. The next sender waits for the next attempt."""
    with Proxy(tmp_path, next_hop=("192.0.2.1", 25), outward={"sources": [{"address": "127.0.0.2"}]}) as proxy:
        with Talk(proxy.address, source="192.0.2.1") as first, Talk(proxy.address, source="192.0.2.1") as second:
            assert first.say("EHLO client.example").startswith("421 4.4.1 ")
            rests = time.monotonic()
            assert second.say("EHLO client.example").startswith("421 4.4.1 ")
            assert time.monotonic() - rests > 0.4  # half a second at first
        assert counters(proxy)["connections_failed"] == 2


def spoils_tls(lines, client):
    """Up to the handshake, which fails. Or the command behind EHLO, if that is no STARTTLS."""
    client.sendall(b"220 old ESMTP\r\n")
    lines.readline()
    client.sendall(b"250-old\r\n250 STARTTLS\r\n")
    command = lines.readline()
    if command == b"STARTTLS\r\n":
        client.sendall(b"220 go\r\n")
        client.recv(65536)
        client.sendall(b"\x15\x03\x03\x00\x02\x02\x28")  # alert: handshake_failure
    return command


@pytest.mark.parametrize("policy,next_command", [("may", b"MAIL FROM:<a@b>\r\n"), ("encrypt", b"STARTTLS\r\n")])
def test_a_handshake_that_fails_costs_tls_only_where_it_is_not_demanded(tmp_path, policy, next_command):
    heard = []

    def serve(server):
        for _ in range(2):
            client, _ = server.accept()
            with client, client.makefile("rb") as lines, contextlib.suppress(ConnectionError):
                heard.append(spoils_tls(lines, client))
                if heard[-1].startswith(b"MAIL"):
                    client.sendall(b"250 ok\r\n")
                    lines.readline()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        with Proxy(tmp_path, next_hop=server.getsockname(), outward={"tls": policy}) as proxy:
            with Talk(proxy.address, source="192.0.2.1") as client:
                assert client.say("EHLO client.example").startswith("421 4.7.4 ")
            with Talk(proxy.address, source="192.0.2.1") as client:
                assert client.say("EHLO client.example").startswith("250 " if policy == "may" else "421 4.7.4 ")
                if policy == "may":
                    assert client.say("MAIL FROM:<a@b>").startswith("250 ")
            assert counters(proxy)["tls_given_up"] == (policy == "may")
        thread.join(patience(10))
    assert heard == [b"STARTTLS\r\n", next_command]


def test_a_receiver_that_does_not_answer_at_all_is_given_up(tmp_path):
    """Its queue of new connections is full, so the kernel drops what asks for another one."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        with Proxy(tmp_path, next_hop=server.getsockname(), outward={"connect_timeout": "500ms"}) as proxy, \
                Talk(proxy.address, source="192.0.2.1") as client:
            began = time.monotonic()
            assert client.say("EHLO client.example").startswith("421 4.4.1 ")
            assert 0.4 < time.monotonic() - began < patience(5)
