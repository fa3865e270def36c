"""smtpproxy against senders and receivers that break the protocol, or try to deceive it. One proxy serves them all."""

import contextlib
import socket
import struct
import time

import pytest

from tests.lib.build import patience
from tests.lib.mail import Sink, source
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import counters, states
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import SIGNATURE, UNIQUE_ID, Talk, proxy_v2
from tests.lib.waiting import wait_until

HELLO = "250-scripted\r\n250-STARTTLS\r\n250 8BITMIME"
MAIL = "Subject: x\r\n\r\nx\r\n.\r\n"


def header_to(address, *tlvs):
    body = socket.inet_aton("192.0.2.1") + socket.inet_aton(address[0]) + struct.pack("!HH", 1000, address[1]) + b"".join(tlvs)
    return SIGNATURE + b"\x21\x11" + struct.pack("!H", len(body)) + body


@pytest.fixture(scope="module", name="proxy")
def _proxy(tmp_path_factory):
    """Mail goes where the header says. 127.0.0.1 may have TLS, 127.0.0.2 must have it."""
    must = {"network": "127.0.0.2/32", "tls": "encrypt"}
    times = {"command_timeout": "1s", "banner_timeout": "1s", "data_timeout": "1s"}
    with Proxy(tmp_path_factory.mktemp("hostile"), outward={"any_port": "on", "receivers": [must], **times},
               limits={"sender_timeout": "20s", "turn_timeout": "2s", "errors": 5}) as proxy:
        yield proxy


@pytest.fixture(name="sink")
def _sink():
    with Sink() as sink:
        yield sink


def talk(proxy, address):
    return Talk(proxy.address, header=header_to(address))


def last_words(client, *pieces):
    """Sends the pieces and FIN, unless the proxy has ended the connection; returns all that the proxy says."""
    with contextlib.suppress(OSError):
        for piece in pieces:
            client.send(piece)
        client.says_no_more()
    return client.rest()


def still_serves(proxy, sink):
    with talk(proxy, sink.address) as client:
        client.ehlo()
        client.mail()
        client.send(MAIL)
        assert client.reply().startswith("250 ")


# --- receivers ---

REFUSALS = ["454 4.7.0 no", "502 5.5.1 no", "500 no", "550 no"]
STARTTLS_REPLIES = [*REFUSALS, "421 4.3.2 no", "354 go on", "220 Ready\r\n250-AUTH LOGIN\r\n250 X", "garbage", "220-a\r\n250 b"]


@pytest.mark.parametrize("reply", STARTTLS_REPLIES, ids=lambda text: text[:12])
def test_a_strange_reply_to_starttls_gets_a_temporary_failure_and_nothing_in_clear(proxy, sink, reply):
    """Nothing that was said in clear is read as the reply to EHLO behind the handshake."""
    with ScriptedReceiver({"EHLO": HELLO, "STARTTLS": reply}, listen=("127.0.0.2", 0)) as receiver, talk(proxy, receiver.address) as client:
        assert client.say("EHLO client.example").startswith("4")
        assert not any(said.startswith(("MAIL", "DATA")) for _, said in receiver.heard)
    still_serves(proxy, sink)


@pytest.mark.parametrize("reply", ["354 go on", "250 ok", "garbage", "220-a\r\n250 b"], ids=lambda text: text[:12])
def test_what_is_no_answer_to_starttls_leads_nowhere(proxy, sink, reply):
    """Also where mail in clear is allowed: the receiver may take what follows for something else."""
    with ScriptedReceiver({"EHLO": HELLO, "STARTTLS": reply}) as receiver, talk(proxy, receiver.address) as client:
        assert client.say("EHLO client.example").startswith("4")
        assert not any(said.startswith(("MAIL", "DATA")) for _, said in receiver.heard)
    still_serves(proxy, sink)


@pytest.mark.parametrize("reply", REFUSALS, ids=lambda text: text[:12])
def test_a_refused_starttls_leads_into_the_clear_where_that_is_allowed(proxy, reply):
    with ScriptedReceiver({"EHLO": HELLO, "STARTTLS": reply}) as receiver, talk(proxy, receiver.address) as client:
        assert "8BITMIME" in client.ehlo()
        client.mail()
        client.send(MAIL)
        assert client.reply().startswith("250 ")


class HalfReceiver:
    """Says 220 to STARTTLS, and then what a test wants instead of a handshake; None: nothing."""

    def __init__(self, then):
        self._server, self.address, self._then, self._peer = None, None, then, None

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.2", 0))
        self._server.settimeout(patience(20))
        self.address = self._server.getsockname()
        return self

    def serve(self):
        self._peer, _ = self._server.accept()
        self._peer.settimeout(patience(20))
        self._peer.sendall(b"220 half\r\n")
        lines = self._peer.makefile("rb")
        lines.readline()
        self._peer.sendall(HELLO.encode() + b"\r\n")
        lines.readline()
        self._peer.sendall(b"220 go\r\n")
        assert self._peer.recv(5)[:2] == b"\x16\x03"  # the ClientHello has come
        if self._then:
            self._peer.sendall(self._then)
        elif self._then == b"":
            self._peer.close()

    def __exit__(self, *_):
        self._server.close()
        if self._peer:
            self._peer.close()


ALERT, PLAIN = b"\x15\x03\x03\x00\x02\x02\x28", b"250 half, in clear\r\n250 more\r\n"


@pytest.mark.parametrize("then", [None, b"", ALERT, PLAIN, b"\0" * 5000], ids=["stalls", "closes", "alert", "in clear", "zeros"])
def test_a_handshake_that_fails_gets_a_temporary_failure_in_time(proxy, then):
    with HalfReceiver(then) as receiver, talk(proxy, receiver.address) as client:
        client.send("EHLO client.example\r\n")
        receiver.serve()
        assert client.reply().startswith("421 4.7.4 ")
        assert client.is_closed()


LONG = {"a long line": "250 " + "x" * 100000, "many lines": "250-x\r\n" * 10000 + "250 x", "no code": "hello",
        "no code behind a good line": "250-a\r\nhello", "a short code": "25 x", "HTTP": "HTTP/1.1 400 Bad Request"}


@pytest.mark.parametrize("what", LONG)
@pytest.mark.parametrize("where", ["banner", "EHLO", "MAIL", "RCPT", "content"])
def test_a_reply_that_is_none_has_bounds(proxy, where, what):
    """A sender gets 421, or a reset in the middle of a reply; of a reply that is long a part may pass."""
    with ScriptedReceiver({where: LONG[what]}) as receiver, talk(proxy, receiver.address) as client:
        said = last_words(client, "EHLO client.example\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n" + MAIL)
        lines = said.split(b"\r\n")
    assert all(len(line) <= 1024 for line in lines)
    assert all(line[3:4] in (b" ", b"-", b"") and (line[:3].isdigit() or not line) for line in lines), lines[:20]
    if what not in ("many lines", "no code behind a good line"):
        assert not any(line.startswith(b"250") for line in lines[-2:]), lines


@pytest.mark.plain
def test_a_reply_of_very_many_lines_takes_no_memory(proxy, sink):
    with ScriptedReceiver({"MAIL": "250-x\r\n" * 500_000 + "250 x"}) as receiver, talk(proxy, receiver.address) as client:
        client.ehlo()
        before = proxy.rss()
        client.send("MAIL FROM:<a@b>\r\n")
        client.rest()  # a part, and the reset
        assert proxy.rss() - before < 1 << 20
    still_serves(proxy, sink)


@pytest.mark.parametrize("where", ["banner", "EHLO", "MAIL", "DATA"])
def test_a_receiver_that_says_nothing_has_time_limits(proxy, where):
    began = time.monotonic()
    with ScriptedReceiver({where: "{gate}220 late"}) as receiver, talk(proxy, receiver.address) as client:
        client.send("EHLO client.example\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n")
        replies = client.rest().splitlines()
        assert replies[-1].startswith((b"421 ", b"451 ")), replies
    assert time.monotonic() - began < patience(15)


# Shorter than its fellows, so that none of these can be in its place.
SHORT = {"end_timeout": "700ms", "block_timeout": "700ms", "sender_timeout": "700ms"}


@contextlib.contextmanager
def timed_out(folder, key, receiver):
    """A session that the short time of that key has to end with 421: neither sooner nor by another key."""
    where = "limits" if key == "sender_timeout" else "outward"
    with Proxy(folder, next_hop=receiver.address, **{where: {key: SHORT[key]}}) as proxy, Talk(proxy.address, header=proxy_v2()) as client:
        began = time.monotonic()
        yield client
        assert client.reply().startswith("421 4.4.2 ")
        assert client.is_closed()
        assert 0.5 < time.monotonic() - began < patience(5)


def test_a_receiver_that_does_not_decide_has_a_time_limit(open_folder):
    """The sender has 421 and sends the message again: that the receiver may have two of it is told in RFC 1047."""
    with ScriptedReceiver({"content": "{gate}250 late"}) as receiver, timed_out(open_folder, "end_timeout", receiver) as client:
        client.ehlo()
        client.mail()
        client.send(MAIL)


def test_a_receiver_that_does_not_read_has_a_time_limit(open_folder):
    """The limit begins when nothing more goes out to it; the sender is stopped by then."""
    with ScriptedReceiver(deaf=True) as receiver, timed_out(open_folder, "block_timeout", receiver) as client:
        client.ehlo()
        client.mail()
        with contextlib.suppress(BlockingIOError):
            while True:
                client.try_to_send(b"x" * 998 + b"\r\n")


STEPS = {"the banner": [], "EHLO": ["EHLO client.example"], "MAIL": ["EHLO client.example", "MAIL FROM:<a@b>"],
         "content": ["EHLO client.example", "MAIL FROM:<a@b>", "RCPT TO:<c@d>", "DATA", "Subject: x"], "half a line": ["EHLO client.example", b"MAIL"]}


@pytest.mark.parametrize("step", STEPS)
def test_a_silent_sender_has_a_time_limit(open_folder, step):
    with Sink() as sink, timed_out(open_folder, "sender_timeout", sink) as client:
        for line in STEPS[step]:
            if line in (b"MAIL", "Subject: x"):
                client.send(line)
            else:
                assert client.say(line)[:1] in "23"
    assert sink.counts["mails"] == 0


# --- senders ---

def test_a_sender_may_talk_before_the_banner(proxy, sink):
    with socket.create_connection(proxy.address, timeout=patience(20)) as client:
        client.sendall(header_to(sink.address) + b"EHLO client.example\r\nNOOP\r\nQUIT\r\n")
        codes = [line[:4] for line in client.makefile("rb").read().splitlines()]
    assert codes[0] == b"220 " and codes[-2:] == [b"250 ", b"221 "]


@pytest.mark.parametrize("step", ["byte", "CR and LF apart"])
def test_a_session_may_come_in_pieces(proxy, sink, step):
    said = "EHLO c.example\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: x\r\n\r\n..x\r\n.\r\nQUIT\r\n"
    pieces = list(said) if step == "byte" else said.replace("\r\n", "\r|\n|").split("|")
    with talk(proxy, sink.address) as client:
        for piece in pieces:
            client.send(piece)
        assert client.rest().splitlines()[-1].startswith(b"221 ")
    wait_until(lambda: counters(proxy)["accepted"] > 0, patience(10), "the mail")


@pytest.mark.parametrize("line,code", [("x" * 600, "500"), ("x" * 1200, "500"), ("x" * 65536, "500"), ("NOOP \0", "50"), ("NOOP \x1b", "50"), ("M\xc3\xa4IL", "50"),
                                       ("STARTTLS", "502"), ("starttls ", "502"), ("XCLIENT ADDR=192.0.2.1", "5"), ("XFORWARD NAME=x", "5"), ("AUTH PLAIN", "5"),
                                       ("RCPT TO:<c@d>", "503"), ("DATA", "503"), ("BDAT -1", "501"), ("BDAT 99999999999999999999", "501"), ("BDAT x LAST", "501"),
                                       ("MAIL FROM:<a@b", "501"), ("EHLO a b\tc", "501")], ids=lambda text: text[:20].strip())
def test_a_bad_command_has_one_reply_and_the_session_stays_in_step(proxy, sink, line, code):
    with talk(proxy, sink.address) as client:
        assert "STARTTLS" not in client.ehlo()
        client.send(line.encode("latin-1") + b"\r\nNOOP\r\n")
        assert client.reply().startswith(code)
        assert client.reply().startswith("250 ")


@pytest.mark.plain
def test_a_line_without_an_end_takes_no_memory(proxy, sink):
    before = proxy.rss()
    with talk(proxy, sink.address) as client:
        client.ehlo()
        for _ in range(100):
            client.send(b"x" * 100000)
        client.send("\r\nNOOP\r\n")
        assert (client.reply()[:3], client.reply()[:3]) == ("500", "250")
        assert proxy.rss() - before < 1 << 20


def test_too_many_errors_end_a_session(proxy, sink):
    with talk(proxy, sink.address) as client:
        client.ehlo()
        client.send("X\r\n" * 10)
        said = client.rest().splitlines()
        assert [line[:3] for line in said] == [b"500"] * (len(said) - 1) + [b"421"] and len(said) <= 6


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 30\r\n\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n",
                                   b"CONNECT x:25 HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n"], ids=["GET", "POST", "CONNECT", "TLS"])
def test_another_protocol_gets_no_mail_through(proxy, sink, first):
    with talk(proxy, sink.address) as client:
        said = last_words(client, first)
        assert b"250" not in said and not any(word in said for word in (b"HTTP", b"Host", b"\x16"))


def test_a_name_cannot_make_a_line_of_the_logs(proxy):
    """A receiver's reply with an escape, and a sender's name with quotes: each record stays one line of good JSON."""
    lines = len(proxy.events())
    with ScriptedReceiver({"RCPT": "550 5.1.1 \x1b[2J\"\\ no"}) as receiver, talk(proxy, receiver.address) as client:
        client.say("EHLO [a\"b]")
        client.say("EHLO client.example")
        assert client.say('MAIL FROM:<"a\\"b c"@d>').startswith("250 ")
        assert client.say("RCPT TO:<c@d>").startswith("550 5.1.1 ")
        assert client.say("RSET").startswith("250 ")
    wait_until(lambda: len(proxy.events()) == lines + 1, patience(10), "its record")  # json.loads() of each line
    assert "\x1b" not in proxy.log()


BAD_DATA = ["\n.\n", "\n.\r", "\r.\n", "\r.\r", "\n.\r\n", "\r.\r\n", "\r\n.\n", "\r\n.\r", "\r\n.\r\r\n", "\r\r\n.\r\r\n"]


@pytest.mark.parametrize("end", [*BAD_DATA, "\r\n\0.\r\n", "\r\n.\0\r\n"], ids=repr)
def test_a_second_mail_is_not_smuggled(proxy, end):
    """Cut at every byte of the sequence: the receiver has one mail, or none."""
    mail = f"Subject: x\r\n\r\nfirst{end}MAIL FROM:<evil@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: y\r\n\r\nsecond\r\n.\r\n"
    at = mail.index("first") + 5
    with ScriptedReceiver() as receiver:
        for cut in range(at, at + len(end) + 1):
            with talk(proxy, receiver.address) as client:
                client.ehlo()
                client.mail()
                last_words(client, mail[:cut], mail[cut:])
        assert not any("evil" in said for _, said in receiver.heard)


@pytest.mark.parametrize("cut", range(7))
def test_bytes_behind_the_dot_are_the_next_commands(proxy, cut):
    mail = "Subject: x\r\n\r\n..\r\n..x\r\nx\r\n.\r\n"
    at = len(mail) - 5 + cut
    text = mail + "MAIL FROM:<e@f>\r\nRCPT TO:<g@h>\r\nDATA\r\n"
    with ScriptedReceiver() as receiver, talk(proxy, receiver.address) as client:
        client.ehlo()
        client.mail()
        client.send(text[:at])
        client.send(text[at:])
        assert [client.reply()[:3] for _ in range(4)] == ["250", "250", "250", "354"]
        client.send("second\r\n.\r\n")
        assert client.reply().startswith("250 ")
        assert receiver.contents == [b"Subject: x\r\n\r\n..\r\n..x\r\nx\r\n", b"second\r\n"]


def test_a_refused_chunk_is_not_run(proxy):
    chunk = b"MAIL FROM:<evil@b>\r\n"
    with ScriptedReceiver({"RCPT": "550 no", "chunk": "503 no"}) as receiver, talk(proxy, receiver.address) as client:
        client.ehlo()
        client.say("MAIL FROM:<a@b>")
        client.say("RCPT TO:<c@d>")
        client.send(b"BDAT %d\r\n" % len(chunk) + chunk + b"BDAT %d LAST\r\n" % len(chunk) + chunk + b"NOOP\r\n")
        replies = [client.reply()[:1] for _ in range(3)]
        assert replies == ["5", "5", "2"]
        assert not any(said.startswith("MAIL FROM:<evil") for _, said in receiver.heard)


@pytest.mark.parametrize("refusal,codes", [("mail:552 5.3.4 no:100", "552 503 503 250 552"), ("rcpt:550 5.1.1 no:100", "250 550 554 250 250"),
                                          ("data:451 4.3.0 no:100", "250 250 451 250 250")])
def test_behind_a_refusal_the_group_stays_in_step(proxy, refusal, codes):
    """A mail that is refused, and the next one of the same group of commands: each reply belongs to its command."""
    with Sink("--reply", refusal) as receiver, talk(proxy, receiver.address) as client:
        client.ehlo()
        client.send("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nRSET\r\nMAIL FROM:<e@f>\r\n")
        assert [client.reply()[:3] for _ in range(5)] == codes.split()


def test_a_message_that_the_receiver_refuses_at_its_end_leaves_the_session_in_step(proxy):
    with ScriptedReceiver({"content": ("552 5.3.4 too big", "250 2.0.0 taken")}) as receiver, talk(proxy, receiver.address) as client:
        client.ehlo()
        client.mail()
        client.send(MAIL + "MAIL FROM:<e@f>\r\nRCPT TO:<g@h>\r\nDATA\r\n")
        assert [client.reply()[:3] for _ in range(4)] == ["552", "250", "250", "354"]
        client.send(MAIL)
        assert client.reply() == "250 2.0.0 taken"


def test_no_promise_of_tls_is_made_for_others(proxy):
    """RFC 8689: a receiver offers REQUIRETLS and AUTH, and the proxy offers neither to its sender."""
    with ScriptedReceiver({"EHLO": "250-scripted\r\n250-REQUIRETLS\r\n250-AUTH PLAIN\r\n250-XCLIENT NAME\r\n250 SIZE 9"}) as receiver, \
            talk(proxy, receiver.address) as client:
        assert client.ehlo() == {"SIZE": "9"}
        assert client.say("MAIL FROM:<a@b> REQUIRETLS").startswith("530 ")
        assert client.say("MAIL FROM:<a@b> SIZE=1 PRDR").startswith("555 ")


# --- PROXY headers ---

def tlv(kind, value, length=None):
    return struct.pack("!BH", kind, len(value) if length is None else length) + value


def bad_headers(address):
    good = header_to(address)
    return {"a length that lies": good[:14] + struct.pack("!H", 4) + good[16:], "a TLV that is too long": header_to(address, tlv(UNIQUE_ID, b"ab", 200)),
            "a UNIX address": SIGNATURE + b"\x21\x31" + struct.pack("!H", 216) + bytes(216), "a version of its own": SIGNATURE + b"\x31\x11" + good[14:],
            "a wrong checksum": header_to(address, tlv(0x03, b"\0\0\0\0")), "v1 without an end": b"PROXY TCP4 " + b"1" * 200,
            "v1 with a bad port": b"PROXY TCP4 192.0.2.1 192.0.2.2 70000 25\r\n", "UNKNOWN": b"PROXY UNKNOWN\r\n", "LOCAL": SIGNATURE + b"\x20\x00\0\0"}


@pytest.mark.parametrize("what", bad_headers(("127.0.0.1", 1)))
def test_a_bad_header_leads_nowhere(proxy, sink, what):
    before = counters(proxy)["transactions"]
    with socket.create_connection(proxy.address, timeout=patience(20)) as client:
        client.sendall(bad_headers(sink.address)[what])
        with contextlib.suppress(OSError):
            client.sendall(b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n" + MAIL.encode())
            client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert client.makefile("rb").read()[:4] in (b"", b"421 ")
    assert counters(proxy)["transactions"] == before


def test_a_header_may_come_byte_by_byte(proxy, sink):
    with socket.create_connection(proxy.address, timeout=patience(20)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in header_to(sink.address):
            client.sendall(bytes([byte]))
        assert client.makefile("rb").readline().startswith(b"220 ")


def test_a_connection_without_a_header_has_five_seconds(proxy):
    began = time.monotonic()
    with socket.create_connection(proxy.address, timeout=patience(20)) as client:
        assert client.recv(1) == b""
    assert 4 < time.monotonic() - began < patience(10)


@pytest.mark.parametrize("says", ["a header", "a command", "nothing"])
def test_a_peer_that_is_not_trusted_is_not_heard(open_folder, says):
    """Its header could name any client and any destination."""
    with Sink() as sink, Proxy(open_folder, next_hop=sink.address, listener={"trusted": ["192.0.2.0/24"]}) as proxy:
        with socket.create_connection(proxy.address, timeout=patience(20)) as client, contextlib.suppress(ConnectionResetError):
            client.sendall({"a header": header_to(sink.address), "a command": b"EHLO x\r\n", "nothing": b""}[says])
            assert client.recv(1) == b""
        assert (counters(proxy)["not_captured"], counters(proxy)["transactions"]) == (1, 0)
    assert sink.counts["connections"] == 0


def test_a_health_check_is_greeted_and_is_no_mail(open_folder):
    """LOCAL says that the peer speaks for itself. The next hop is not troubled, and no event is logged."""
    with Sink() as sink, Proxy(open_folder, next_hop=sink.address) as proxy:
        for header in (SIGNATURE + b"\x20\x00\0\0", b"PROXY UNKNOWN\r\n"):
            with Talk(proxy.address, header=header) as client:
                assert client.banner.startswith("220 ")
                assert client.say("NOOP").startswith("250 ") and client.say("QUIT").startswith("221 ")
        assert (counters(proxy)["not_captured"], proxy.events()) == (0, [])
    assert sink.counts["connections"] == 0


# --- resources ---

def test_a_sender_that_goes_away_leaves_its_place_at_once(open_folder):
    """Without QUIT. Five of them, one after the other, in less time than one may take for its last words."""
    began = time.monotonic()
    with Sink() as sink, Proxy(open_folder, next_hop=sink.address, limits={"sessions": 1}) as proxy:
        for _ in range(5):
            with Talk(proxy.address, header=proxy_v2()) as client:
                client.ehlo()
            wait_until(lambda: states(proxy) == [], patience(10), "its end")
    assert time.monotonic() - began < patience(5)


def test_connections_above_the_limits_get_421(open_folder):
    with Sink() as sink, Proxy(open_folder, next_hop=sink.address, limits={"sessions": 3}) as proxy:
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(Talk(proxy.address, header=proxy_v2()))
            with socket.create_connection(proxy.address, timeout=patience(20)) as client:
                assert client.makefile("rb").read().startswith(b"421 4.7.0 ")
        wait_until(lambda: states(proxy) == [], patience(10), "free places")
        assert source(proxy.address, "-m", "1", "--proxy", "v2").counts["sent"] == 1


def test_without_descriptors_it_waits_and_serves_again(open_folder):
    """A process at its limit of descriptors takes connections again when some are free."""
    within = ("prlimit", "--nofile=40:40")
    with Sink() as sink, Proxy(open_folder, next_hop=sink.address, within=within) as proxy:
        clients = [socket.create_connection(proxy.address, timeout=patience(20)) for _ in range(60)]
        for client in clients:
            client.sendall(proxy_v2())
        wait_until(lambda: any_answers(clients), patience(10), "a banner")
        assert proxy.process.poll() is None
        for client in clients:
            client.close()
        result = source(proxy.address, "-m", "5", "--proxy", "v2")
        assert result.counts["sent"] == 5, result.errors


def any_answers(clients):
    for client in clients:
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            if client.recv(4) == b"220 ":
                return True
    return False
