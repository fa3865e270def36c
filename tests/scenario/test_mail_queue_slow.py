"""smtpproxy with deliver: queue: senders that are slow while more than half of queue.memory is used."""

import contextlib
import re
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.smtp_control import ask, counters
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


def _trickle(client):
    """A few bytes a second. The server may have ended the connection."""
    with contextlib.suppress(OSError):
        client.send("y")


def test_half_messages_that_trickle_give_their_room_back_while_it_is_short(tmp_path, stores):
    """The whole room would come in within ten minutes at the least rate: a message of 257 KiB has to bring 438 bytes a second, and these
    senders bring fewer than 100."""
    half = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 250
    with Sink() as sink, contextlib.ExitStack() as open_ones:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"memory": "1MiB", "message_size": "256KiB"},
                         limits={"lease_timeout": "500ms", "least_rate": 1}) as proxy:
            proxy.wait_open()
            clients = [open_ones.enter_context(Talk(proxy.address, source=f"192.0.2.{n}")) for n in (1, 2, 3)]
            for client in clients:
                client.ehlo()
                client.mail()
                client.send(half)

            def two_have_ended():
                for client in clients:
                    _trickle(client)
                return counters(proxy)["too_slow"] == 2

            wait_until(two_have_ended, patience(10), "two senders to be ended")
            said = [client.say("\r\n.")[:4] for client in clients]
            assert sorted(said) == ["250 ", "421 ", "421 "]
            wait_until(lambda: stores.items() == [0, 0], patience(30), "an empty queue")
    assert sink.counts["mails"] == 1


def _incoming(proxy):
    return int(re.search(rb"^smtpproxy_queue_incoming_bytes (\d+)", ask(proxy, "/metrics"), re.MULTILINE)[1])


def test_commands_of_a_sender_give_it_time_while_the_room_is_short(tmp_path, stores):
    """As they do with deliver: relay. The other sender, whose message has more than half of the room, is fast enough."""
    large = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 600
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", free_ports(1)[0]), queue={"memory": "1MiB", "message_size": "600KiB"},
                     limits={"lease_timeout": "1s", "least_rate": 1}) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as other, Talk(proxy.address, source="192.0.2.2") as client:
            other.ehlo()
            other.mail()
            other.send(large)
            wait_until(lambda: _incoming(proxy) > 1 << 19, patience(10), "the room to be short")
            client.ehlo()
            assert client.say("MAIL FROM:<a@b.example>").startswith("250 ")
            begin = time.monotonic()

            def two_seconds_are_over():
                other.send("y" * 798 + "\r\n")
                assert client.say("RCPT TO:<c@d>").startswith("250 ")
                return time.monotonic() - begin > 2

            wait_until(two_seconds_are_over, patience(10), "two seconds of commands")
            assert counters(proxy)["too_slow"] == 0
