"""Receivers that offer TLS and fail it, where `tls: may` does not demand it: when mail goes in clear, and when it does not any more."""

import contextlib
import itertools
import socket
import ssl
import struct
import threading

import pytest

from tests.lib.build import patience
from tests.lib.proxy_facts import read_proxy_facts
from tests.lib.queued_proxy import QueuedProxy, Stores
from tests.lib.smtp_control import counters
from tests.lib.smtp_proxy import Control, Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

BODY = "Subject: x\r\n\r\nx\r\n.\r\n"
DEMAND = "530 5.7.0 Must issue a STARTTLS command first"
# How a handshake can end: by TLS itself, or by something else.
ALERT, CLOSE_NOTIFY = b"\x15\x03\x03\x00\x02\x02\x28", b"\x15\x03\x03\x00\x02\x01\x00"
LAST_WORDS = {"alert": ALERT, "no TLS": b"250 what\r\n", "close_notify": CLOSE_NOTIFY, "end": b""}


class StrictReceiver:
    """`ends`: of the replies to STARTTLS or the handshakes behind them, in order; then all handshakes work. `demand`: its reply to mail
    in clear; None: it takes that. `proxied`: each connection begins with a PROXY v2 header."""

    def __init__(self, folder, *ends, demand=DEMAND, proxied=False):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*self_signed(folder))
        self._ends = itertools.chain(ends, itertools.repeat("works"))
        self._demand, self._proxied = demand, proxied
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = self._server.getsockname()
        self._sealed = []
        self.mails, self.in_clear = [], []  # senders of mail that was taken; MAIL that came in clear

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def end_all(self):
        """The connections with TLS."""
        for sealed in self._sealed:
            with contextlib.suppress(OSError):
                sealed.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._server.accept()[0],), daemon=True).start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError):
            if self._proxied:
                read_proxy_facts(client.makefile("rb"))
            client.sendall(b"220 strict ESMTP\r\n")
            self._in_clear(client)

    def _in_clear(self, client):
        lines = client.makefile("rb")
        for line in lines:
            command = line.decode().strip()
            if command == "STARTTLS":
                end = next(self._ends)
                client.sendall(f"{end if end[:1] == '4' else '220 go'}\r\n".encode())
                if end[:1] != "4":
                    self._shake(client, end)
                    return
            elif command.startswith("EHLO "):
                client.sendall(b"250-strict\r\n250-PIPELINING\r\n250 STARTTLS\r\n")
            else:
                self.in_clear += [command] if command.startswith("MAIL") else []
                if not self._demand:
                    self._take_mail(client, itertools.chain([line], lines))
                    return
                client.sendall(f"{self._demand}\r\n".encode())

    def _shake(self, client, end):
        if end == "works":
            with self._context.wrap_socket(client, server_side=True) as sealed:
                self._sealed.append(sealed)
                self._take_mail(sealed, sealed.makefile("rb"))
            return
        client.recv(65536)
        if end == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if end in LAST_WORDS:
            client.sendall(LAST_WORDS[end])
            client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass

    def _take_mail(self, client, lines):
        for line in lines:
            command = line.decode().strip()
            if command == "QUIT":
                return
            if command.startswith("MAIL"):
                sender = command[10:].partition(" ")[0]
            client.sendall(b"354 go on\r\n" if command == "DATA" else b"250 2.0.0 ok\r\n")
            if command != "DATA":
                continue
            for content in lines:
                if content == b".\r\n":
                    break
            self.mails.append(sender)
            client.sendall(b"250 2.0.0 taken\r\n")


@contextlib.contextmanager
def proxied(tmp_path, *ends, **keys):
    with StrictReceiver(tmp_path, *ends, **keys) as receiver, \
            Proxy(tmp_path, next_hop=receiver.address, outward={"tls": "may", "command_timeout": "1s"}) as proxy:
        yield proxy, receiver


def talk(proxy):
    return Talk(proxy.address, source="192.0.2.1")


def is_turned_away(proxy):
    """At EHLO, or at MAIL where the receiver's offers are known."""
    with talk(proxy) as client:
        reply = client.say("EHLO client.example")
        if reply.startswith("250"):
            reply = client.say("MAIL FROM:<a@b>")
        assert reply.startswith("421 4.7.4 ")


def delivers(proxy, receiver):
    with talk(proxy) as client:
        client.ehlo()
        client.mail()
        client.send(BODY)
        assert client.reply() == "250 2.0.0 taken"
    assert receiver.mails[-1:] == ["<a@b>"]


@pytest.mark.parametrize("end", ["reset", "end", "close_notify", "silence"])
def test_a_handshake_that_is_lost_says_nothing_about_the_receivers_tls(tmp_path, end):
    """Its system restarts, or a packet filter drops the flow. The next sender is served with TLS."""
    with proxied(tmp_path, end) as (proxy, receiver):
        is_turned_away(proxy)
        delivers(proxy, receiver)
        assert receiver.in_clear == [] and counters(proxy)["tls_given_up"] == 0


@pytest.fixture
def minutes(open_folder, monkeypatch):
    """Minutes lie between the handshakes that are lost."""
    (open_folder / "faults").write_text("fallback.minutes fail\n")
    monkeypatch.setenv("CSSL_FAULTS", str(open_folder / "faults"))


@pytest.mark.usefixtures("test_points", "minutes")
@pytest.mark.parametrize("end", ["reset", "end", "close_notify", "silence"])
def test_a_receiver_whose_handshakes_are_always_lost_gets_its_mail_in_clear(tmp_path, end):
    with proxied(tmp_path, *[end] * 9, demand=None) as (proxy, receiver):
        for _ in range(3):
            is_turned_away(proxy)
        delivers(proxy, receiver)
        assert len(receiver.in_clear) == 1 and counters(proxy)["tls_given_up"] == 1
        assert 'in clear to a receiver host=- cause="handshakes are lost for minutes, and tls is may"' in proxy.log()


@pytest.mark.usefixtures("test_points", "minutes")
def test_a_receiver_whose_handshakes_work_now_and_then_gets_no_mail_in_clear(tmp_path):
    with proxied(tmp_path, *["end", "end", "works"] * 2, demand=None) as (proxy, receiver):
        for _ in range(2):
            is_turned_away(proxy)
            is_turned_away(proxy)
            delivers(proxy, receiver)
            receiver.end_all()
        assert receiver.in_clear == [] and counters(proxy)["tls_given_up"] == 0


def test_handshakes_that_are_lost_one_behind_the_other_begin_no_mail_in_clear(tmp_path):
    with proxied(tmp_path, *["reset"] * 4, demand=None) as (proxy, receiver):
        for _ in range(4):
            is_turned_away(proxy)
        delivers(proxy, receiver)
        assert receiver.in_clear == [] and counters(proxy)["tls_given_up"] == 0


FIRST_LINE = "550-5.7.1 STARTTLS is required here\r\n550 5.7.1 See https://mail.example/help"
DEMANDS = [DEMAND, "530-5.7.0 Must issue\r\n530 5.7.0 a STARTTLS command", "550 5.7.10 Encryption needed", "554 5.7.1 TLS is required", FIRST_LINE]
LATER_LINES = ["550-5.7.1 Refused\r\n550 5.7.1 Use TLS", "550-5.7.1 Refused\r\n550-5.7.1 Use TLS\r\n550 5.7.1 Bye"]


@pytest.mark.parametrize("demand", DEMANDS, ids=["530", "two lines", "5.7.10", "words", "words first"])
@pytest.mark.parametrize("end", ["alert", "no TLS"])
def test_a_receiver_that_demands_tls_ends_the_fallback_and_refuses_no_mail(tmp_path, end, demand):
    with proxied(tmp_path, end, demand=demand) as (proxy, receiver):
        is_turned_away(proxy)
        with talk(proxy) as idle, talk(proxy) as client:
            for one in (idle, client):
                assert one.say("EHLO client.example").startswith("250")
            client.send("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n")
            assert client.reply().startswith("421 4.7.4 ") and client.is_closed()
        delivers(proxy, receiver)
        assert len(receiver.in_clear) == 1 and counters(proxy)["tls_given_up"] == 1
        assert "no more in clear to a receiver" in proxy.log()


@pytest.mark.parametrize("demand", LATER_LINES, ids=["last line", "middle line"])
@pytest.mark.parametrize("commands", ["MAIL FROM:<a@b>\r\n", "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"], ids=["one", "group"])
def test_a_sender_that_has_a_line_of_the_reply_before_the_demand_gets_no_whole_reply(tmp_path, commands, demand):
    """The first line refuses the mail for good. It ends by a reset, so the sender comes again."""
    with proxied(tmp_path, "alert", demand=demand) as (proxy, receiver):
        is_turned_away(proxy)
        with talk(proxy) as client:
            client.ehlo()
            client.send(commands)
            with pytest.raises(ConnectionResetError):
                client.reply()
        delivers(proxy, receiver)
        assert len(receiver.in_clear) == 1


def test_a_receiver_that_refuses_starttls_and_then_demands_it_refuses_no_mail(tmp_path):
    """Postfix without its certificate says 454."""
    with proxied(tmp_path, "454 4.7.0 TLS not available due to local problem") as (proxy, receiver):
        with talk(proxy) as client:
            client.ehlo()
            assert client.say("MAIL FROM:<a@b>").startswith("421 4.7.4 ")
        delivers(proxy, receiver)
        assert len(receiver.in_clear) == 1


REFUSAL = "454 4.7.0 TLS not available"


def test_a_receiver_that_always_refuses_starttls_and_demands_it_ends_no_fallback(tmp_path):
    with proxied(tmp_path, *[REFUSAL] * 3) as (proxy, receiver):
        for _ in range(3):
            with talk(proxy) as client:
                client.ehlo()
                assert client.say("MAIL FROM:<a@b>").startswith("421 4.7.4 ")
        assert len(receiver.in_clear) == 3
        assert "no more in clear" not in proxy.log() and "a receiver demands TLS and refuses STARTTLS host=-" in proxy.log()


def test_a_receiver_that_refuses_starttls_now_and_then_keeps_its_connections_with_tls(tmp_path):
    with proxied(tmp_path, "works", *[REFUSAL] * 9) as (proxy, receiver):
        with talk(proxy) as first, talk(proxy) as second:
            for client in (first, second):
                client.ehlo()
            first.mail()
            assert second.say("MAIL FROM:<a@b>").startswith("421 4.7.4 ")
            first.send(BODY)
            assert first.reply() == "250 2.0.0 taken"
        delivers(proxy, receiver)
        assert len(receiver.in_clear) == 1


def test_other_refusals_in_clear_are_the_receivers_word(tmp_path):
    with proxied(tmp_path, "alert", demand="550 5.7.1 Not from you") as (proxy, receiver):
        is_turned_away(proxy)
        for _ in range(2):
            with talk(proxy) as client:
                client.ehlo()
                assert client.say("MAIL FROM:<a@b>") == "550 5.7.1 Not from you"
        assert len(receiver.in_clear) == 2


def hand_in_a_mail(proxy):
    with talk(proxy) as client:
        client.ehlo()
        client.mail()
        client.send(BODY)
        assert client.reply().startswith("250 ")


@pytest.mark.tool("redis-server", "redis-cli")
@pytest.mark.parametrize("end,demand,in_clear", [
    ("reset", DEMAND, 0), ("alert", DEMAND, 1), ("454 4.7.0 TLS not available", DEMAND, 1), ("alert", FIRST_LINE, 1), ("alert", LATER_LINES[1], 1),
], ids=["reset", "alert", "454", "words first", "words later"])
def test_the_queue_tries_again_with_tls_and_sends_no_notice(tmp_path, end, demand, in_clear):
    with Stores(tmp_path) as stores, StrictReceiver(tmp_path, end, demand=demand) as receiver, \
            QueuedProxy(tmp_path, stores, receiver.address) as proxy:
        proxy.wait_open()
        hand_in_a_mail(proxy)
        wait_until(lambda: stores.items() == [0, 0], patience(30), "an empty queue")
        metrics = Control(proxy.control).ask("/metrics")[1]
        assert "notices_total 0" in metrics and "failed_total 0" in metrics
    assert (receiver.mails, len(receiver.in_clear)) == (["<a@b>"], in_clear)


@pytest.mark.tool("redis-server", "redis-cli")
@pytest.mark.parametrize("demand,in_clear", [(None, 2), (DEMAND, 1)])
def test_the_queue_remembers_failed_tls_also_if_each_message_has_connections_of_its_own(tmp_path, demand, in_clear):
    """With `xcssltx` they begin with the name of the message."""
    ends = ["alert"] * (99 if demand is None else 1)
    with Stores(tmp_path) as stores, StrictReceiver(tmp_path, *ends, demand=demand, proxied=True) as receiver, \
            QueuedProxy(tmp_path, stores, receiver.address, queue={"xcssltx": "on"}) as proxy:
        proxy.wait_open()
        for number in range(2):
            hand_in_a_mail(proxy)
            wait_until(lambda: len(receiver.mails) == number + 1, patience(30), "the mail is there")
        stores.wait_empty()
        assert "tls_given_up_total 1\n" in Control(proxy.control).ask("/metrics")[1]
    assert len(receiver.in_clear) == in_clear


@pytest.mark.tool("redis-server", "redis-cli")
def test_a_file_read_again_ends_the_fallback_also_of_messages_with_connections_of_their_own(open_folder):
    """No message is under way then, so there is no connection and nothing else of the receiver but what is remembered of it."""
    with Stores(open_folder) as stores, StrictReceiver(open_folder, "alert", demand=None, proxied=True) as receiver, \
            QueuedProxy(open_folder, stores, receiver.address, queue={"xcssltx": "on"}) as proxy:
        proxy.wait_open()
        for number in range(2):
            hand_in_a_mail(proxy)
            wait_until(lambda: len(receiver.mails) == number + 1, patience(30), "the mail is there")
            stores.wait_empty()
            wait_until(lambda: "destinations_now 0\n" in Control(proxy.control).ask("/metrics")[1], patience(10), "its connection is gone")
            if number == 0:
                proxy.reload()
    assert len(receiver.in_clear) == 1


@pytest.mark.root
def test_the_end_of_the_fallback_counts_for_all_senders(tmp_path):
    """With `as_sender` each has connections of its own, here in clear. The first one learns that the receiver demands TLS by now."""
    with StrictReceiver(tmp_path, "alert") as receiver, \
            Proxy(tmp_path, next_hop=receiver.address, outward={"tls": "may", "as_sender": "on", "keep_idle": "1min"}) as proxy:
        with Talk(proxy.address, source="127.0.0.2") as client:
            assert client.say("EHLO client.example").startswith("421 4.7.4 ")
        with Talk(proxy.address, source="127.0.0.2") as one, Talk(proxy.address, source="127.0.0.3") as other:
            for client in (one, other):
                client.ehlo()
            assert one.say("MAIL FROM:<a@b>").startswith("421 4.7.4 ")
            other.mail()
            other.send(BODY)
            assert other.reply() == "250 2.0.0 taken"
        assert len(receiver.in_clear) == 1
        assert "no more in clear to a receiver" in proxy.log() and "refuses STARTTLS" not in proxy.log()
