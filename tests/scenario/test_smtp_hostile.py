"""Service smtp between clients and servers that break the protocol, behind STARTTLS. One cluster serves them all."""

import concurrent.futures
import contextlib
import re
import select
import socket
import ssl
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import patience
from tests.lib.cut_records import CutRecords
from tests.lib.mail import Sink
from tests.lib.mail_cluster import HOST, direct_listener, left, mail_backend, mail_listener
from tests.lib.mover import settled
from tests.lib.odd_replies import COUNT, odd_receiver, subjects
from tests.lib.probe import Probe
from tests.lib.proxy_facts import AUTHORITY, CLIENT_CERT_CONN, CLIENT_CERT_SESS, CLIENT_SSL, SSL_CIPHER, SSL_CN, SSL_VERSION, UNIQUE_ID
from tests.lib.scripted_receiver import GATE, USUAL, ScriptedReceiver
from tests.lib.smtp_client import Client
from tests.lib.smtp_talk import SIGNATURE, proxy_v2
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

BROKEN = "421 4.5.0 The mail server behind broke the protocol, try again later"
TIMED_OUT = "421 4.4.2 Timed out"
ENVELOPE = "MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\n"
CONTENT = "Subject: x\r\n\r\n..x\r\n.\r\n"
VERSIONS = pytest.mark.parametrize("version", ["1.2", "1.3"])


class Mail:
    """Listeners `mail`, `offer` (also in clear), `implicit`, `optional` and `required` (client certificates) and `balanced` (PROXY
    headers). Each test brings its own mail server, at `backend`."""

    def __init__(self, start_cluster):
        backend, *ports = free_ports(10)
        self.backend = "127.0.0.1", backend
        (self.mail, self.direct, self.optional, self.required, self.balanced, self.balanced_direct, self.offer,
         self.offer_direct, self.implicit) = (("127.0.0.1", p) for p in ports)
        trusts = ("proxy_protocol: on", 'trusted: ["127.0.0.1/32"]')
        self.silence_s = patience(2)
        limit = f"end_timeout: {4 * self.silence_s}s"
        self.cluster = start_cluster("--agents", "2", edit=edits.edits(
            mail_backend(self.backend, "proxy_v2: on"),
            mail_listener("mail", ports[0], limit),
            mail_listener("offer", ports[6], limit, policy="offer"),
            mail_listener("implicit", ports[8], policy="implicit"),
            mail_listener("optional", ports[2], protocol=("client_ca: ecdsa-ca.pem", "client_certificate: optional")),
            mail_listener("required", ports[3], protocol=("client_ca: ecdsa-ca.pem", "client_certificate: required")),
            mail_listener("balanced", ports[4], above=trusts),
            direct_listener("a1", "mail", ports[1]),
            direct_listener("a1", "balanced", ports[5], *trusts),
            direct_listener("a1", "offer", ports[7]),
            edits.at_end(f"limits: {{ idle_timeout: {self.silence_s}s, handshake_timeout: {self.silence_s}s }}")))

    def context(self, version=None):
        return self.cluster.context(version, alpn=())

    def receiver(self, script=None):
        return ScriptedReceiver(script, listen=self.backend, proxied=True)

    def sink(self, *options):
        return Sink("--proxy", *options, listen="{}:{}".format(*self.backend))

    @contextlib.contextmanager
    def secured(self, door=None, version=None, greets=True, context=None):
        """A client behind TLS, and behind EHLO."""
        with Client(door or self.mail) as client:
            client.greet()
            client.starttls(context or self.context(version))
            if greets:
                assert client.ask("EHLO client.example")[0] == f"250-{HOST}"
            yield client

    def processes(self):
        return [self.cluster.pid(name) for name in ("r1", *self.cluster.agents)]

    def count(self, name):
        """Of both agents."""
        return sum(counts.get(name, 0) for node, counts in self.cluster.counters().items() if node in self.cluster.agents)

    def ended(self, reason):
        return self.cluster.counters()["ragent"][f"ended_{reason}"]

    def timed_out(self):
        return [self.ended(reason) for reason in ("idle_timeout", "backend_timeout")]

    def is_timed_out(self, client, what, awaits_verdict):
        """It gets 421 and an end in order, after idle_timeout; if it awaits the reply to the end of its mail, after end_timeout."""
        assert client.reply() == [TIMED_OUT], what
        took_s, longer_s = time.monotonic() - client.began_s, 4 * self.silence_s
        assert took_s > longer_s - 0.1 if awaits_verdict else self.silence_s - 0.1 < took_s < longer_s, (what, took_s)
        assert client.ends() == ("fin", b""), what


@pytest.fixture(scope="module", name="mail")
def _mail(start_module_cluster):
    return Mail(start_module_cluster)


@pytest.fixture(autouse=True)
def _nothing_stays(mail):
    """When a test is over, every connection has ended, and the agents are the processes that they were."""
    mail.pids = mail.processes()
    yield
    wait_until(lambda: not left(mail), patience(10), "the ends of all connections")
    assert mail.processes() == mail.pids


def send_mail(client):
    client.send(ENVELOPE + "DATA\r\n")
    assert [client.code() for _ in range(3)] == [250, 250, 354]
    client.send(CONTENT)
    assert client.code() == 250


def codes(client, count):
    return [client.code() for _ in range(count)]


# --- servers ---

def only_at(place, number, reply):
    """A script: this reply at the connection of that number, and the usual one at all others."""
    return {place: [USUAL.get(place, USUAL[""])] * number + [reply, USUAL.get(place, USUAL[""])]}


PLACES = ["banner", "EHLO", "MAIL", "RCPT", "DATA", "content"]


def test_a_server_that_falls_silent_has_a_time_limit(mail):
    """At any place. idle_timeout is the limit; RFC 5321 4.5.3.2 has five minutes for a first reply, and so has its default. For the reply to
    the end of a mail it has ten minutes, and so has end_timeout."""
    script, before = {}, mail.timed_out()
    for number, place in enumerate(PLACES):
        script.update(only_at(place, number, GATE + "250 late"))
    with mail.receiver(script) as receiver, contextlib.ExitStack() as clients:
        waiting = []
        for number, place in enumerate(PLACES):
            waiting.append(clients.enter_context(mail.secured(greets=False)))
            waiting[-1].began_s = time.monotonic()
            waiting[-1].send("EHLO client.example\r\n" + ENVELOPE + "DATA\r\n" + (CONTENT if place == "content" else ""))
            wait_until(lambda n=number: receiver.connections == n + 1, patience(10), f"connection {number}")
        for number, (client, place) in enumerate(zip(waiting, PLACES)):
            assert codes(client, max(0, number - 1)) == [250, 250, 250, 354][:max(0, number - 1)], place
            mail.is_timed_out(client, place, place == "content")
    assert mail.timed_out() == [before[0] + len(PLACES) - 1, before[1] + 1]


def test_mail_in_clear_that_falls_silent_gets_421(mail):
    """As behind TLS: in a transaction, in content, and behind the end of a mail. Only there is the server the silent one."""
    before = mail.timed_out()
    places = {"MAIL": "MAIL FROM:<a@x.example>\r\n", "DATA": ENVELOPE + "DATA\r\n", "content": ENVELOPE + "DATA\r\nhalf",
              "chunk": ENVELOPE + "BDAT 1000 LAST\r\nhalf",
              "end": ENVELOPE + "DATA\r\n" + CONTENT}
    with mail.receiver({"content": GATE + "250 late"}) as receiver, contextlib.ExitStack() as clients:
        begun = []
        for words in places.values():
            for door in (mail.offer, mail.offer_direct):
                begun.append((words, clients.enter_context(Client(door))))
                begun[-1][1].greet()
                begun[-1][1].began_s = time.monotonic()
                begun[-1][1].send(words)
        for words, client in begun:
            expected = [250, 250, 354][:2 if "BDAT" in words else words.count("\r\n")]
            assert codes(client, len(expected)) == expected, words
            mail.is_timed_out(client, words, words == places["end"])
        assert receiver.connections == len(begun)
    assert mail.timed_out() == [before[0] + len(places) - 1, before[1] + 1]


def reads_nothing(client):
    """It says commands until nobody takes more."""
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sock.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while True:
            client.send("NOOP\r\n" * 1000)


def test_a_client_that_takes_no_reply_is_ended(mail):
    """Its 421 may have to wait behind the replies."""
    before = mail.timed_out()
    with mail.receiver(), mail.secured(mail.mail) as client:
        reads_nothing(client)
        wait_until(lambda: mail.ended("idle_timeout") > before[0], patience(30), "its end")
    assert mail.timed_out() == [before[0] + 1, before[1]]


def waits_for_a_verdict(client):
    """At most SIZE bytes before the end of the mail; its reply is due."""
    client.send(ENVELOPE + "DATA\r\n")
    assert codes(client, 3) == [250, 250, 354]
    client.send(CONTENT)
    return client


def falls_silent(client):
    client.send(ENVELOPE)
    assert codes(client, 2) == [250, 250]
    return client


@pytest.mark.parametrize("tls", ["behind TLS", "in clear"])
def test_the_reply_to_the_end_of_a_mail_may_take_longer_than_idle_timeout(mail, tls):
    """421 would cost a second copy: the server takes the mail. A session that falls silent after it shows that the time-out is over."""
    def begun(door):
        client = clients.enter_context(mail.secured(door) if tls == "behind TLS" else Client(door))
        if tls == "in clear":
            client.greet()
        return client
    doors_ = (mail.mail, mail.direct) if tls == "behind TLS" else (mail.offer, mail.offer_direct)
    with mail.receiver({"content": GATE + "250 2.0.0 late"}) as receiver, contextlib.ExitStack() as clients:
        waiting = [waits_for_a_verdict(begun(door)) for door in doors_]
        wait_until(lambda: len(receiver.contents) == 2, patience(10), "both mails at the server")
        silent = falls_silent(clients.enter_context(mail.secured()))
        assert silent.reply() == [TIMED_OUT]
        receiver.open_gate()
        for client in waiting:
            assert client.reply() == ["250 2.0.0 late"]
            assert client.ask("QUIT") == ["221 bye"]


@pytest.mark.parametrize("banner", ["554 5.7.1 blocked", "220-teaser\r\n554 5.7.1 blocked"], ids=["at once", "behind a teaser"])
def test_a_server_that_refuses_the_client_is_quoted(mail, banner):
    """It knows the client by the PROXY header. Behind 421 the sender would try for days, and its user would never hear why."""
    blocked = ["554 5.7.1 blocked"]
    before = mail.count("mail_clients_refused")
    with mail.receiver({"banner": banner}):
        for door in doors(mail):
            with mail.secured(door, greets=False) as client:
                assert client.ask("EHLO client.example") == blocked
                assert client.ends() == ("fin", b"")
        for door in (mail.offer, mail.offer_direct):
            with Client(door) as client:
                client.greet()
                assert client.ask("MAIL FROM:<a@x.example>") == blocked
                assert client.ends() == ("fin", b"")
        with Client(mail.implicit) as client:
            client.handshake(mail.context())
            assert client.reply() == blocked
            assert client.ends() == ("fin", b"")
    assert mail.count("mail_clients_refused") - before == 5


def test_content_that_smuggles_is_told_to_the_operator(mail):
    """To the client it is a refusal, as of any mail."""
    with mail.sink() as sink, mail.secured() as client:
        broken = mail.count("tracks_lost"), mail.ended("track_lost")
        assert client.ask("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA")[0].startswith("250")
        assert client.reply()[0].startswith("250") and client.reply()[0].startswith("354")
        assert client.ask("x\n.\nMAIL FROM:<c@x.example>\r\n.")[0].startswith("550 5.6.0")
        assert client.ends()[0] == "fin"
        wait_until(lambda: (mail.count("tracks_lost"), mail.ended("track_lost")) == (broken[0] + 1, broken[1] + 1), patience(5), "both counters")
    assert sink.counts["mails"] == 0
    assert any("protocol broken service=smtp" in mail.cluster.log(name) for name in mail.cluster.agents)


LONG = {"a long line": "250 " + "x" * 100_000, "many lines": "250-x\r\n" * 10_000 + "250 x", "no code": "hello",
        "no code behind a good line": "250-a\r\nhello", "a short code": "25 x", "a long code": "2500 x", "a code of no class": "999 x", "HTTP": "HTTP/1.1 400 Bad Request", "two replies": "250 a\r\n250 b"}


def check_broken(client, greeting, what, told="421"):
    """`told`: 421, or reset, which comes where the client has a part of the reply already."""
    client.send(greeting + ENVELOPE + "DATA\r\n" + CONTENT)
    how, said = client.ends()
    said = said.decode()
    assert (BROKEN in said) == (told == "421") and told in (how, "421"), (what, how, said)
    assert not re.search("xxx|hello|HTTP|\0|550|250 x" + ("|250-x" if told == "421" else ""), said), (what, said)


@pytest.mark.parametrize("place", PLACES)
def test_a_reply_that_breaks_the_protocol_gets_421(mail, place):
    """The client gets none of its bad lines."""
    whats = [what for what in LONG if (place, what) != ("banner", "two replies")]
    with mail.receiver({place: [LONG[what] for what in whats]}):
        for what in whats:
            with mail.secured(greets=False) as client:
                check_broken(client, "EHLO client.example\r\n", what)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("door", ["offer", "offer_direct"])
def test_a_reply_that_breaks_the_protocol_gets_421_in_clear(mail, door, place):
    """There the server hears of the client at its first MAIL."""
    whats = [what for what in LONG if (place, what) != ("banner", "two replies")]
    with mail.receiver({place: [LONG[what] for what in whats]}):
        for what in whats:
            with Client(getattr(mail, door)) as client:
                client.greet()
                # the agent passes lines on as they come, so the client has the good ones before
                cut = what in ("many lines", "no code behind a good line") and place in ("MAIL", "RCPT", "DATA", "content")
                check_broken(client, "", what, "reset" if cut else "421")


@pytest.mark.parametrize("which", range(COUNT))
def test_an_odd_server_gets_each_mail_once(mail, which):
    """Behind TLS and in clear the client gets one clean reply for each command."""
    mails, odd = odd_receiver(which, listen=mail.backend, proxied=True)
    with odd as receiver, mail.secured() as secured, Client(mail.offer) as in_clear:
        in_clear.greet()
        for number in range(2 * mails):
            client = in_clear if number % 2 else secured
            assert client.ask("MAIL FROM:<a@x.example>")[-1].startswith("2")
            assert re.fullmatch("550 5.7.1 x{1012}", *client.ask("RCPT TO:<refused@x.example>"))
            assert client.ask("RCPT TO:<b@x.example>")[-1].startswith("2")
            assert client.ask("DATA")[-1].startswith("3")
            assert client.ask(f"Subject: {number}\r\n\r\nx\r\n.")[-1].startswith("2")
        for client in (secured, in_clear):
            assert client.ask("QUIT") == ["221 bye"] and client.ends() == ("fin", b"")
    assert subjects(receiver) == list(range(2 * mails))


@pytest.mark.plain
@pytest.mark.parametrize("place", ["EHLO", "content"])
def test_a_reply_of_a_million_lines_takes_no_memory(mail, place):
    """It has 7 MB."""
    with mail.receiver({place: "250-x\r\n" * 1_000_000 + "250 x"}):
        before = rss(mail.cluster)
        forget_peak(mail.cluster)
        for door in doors(mail):
            with mail.secured(door, greets=False) as client:
                check_broken(client, "EHLO client.example\r\n", door)
        for door in (mail.offer, mail.offer_direct):
            with Client(door) as client:
                client.greet()
                check_broken(client, "", door, "reset" if place == "content" else "421")
        assert rss(mail.cluster, "VmHWM") - before < 4 << 20


# --- replies and chunks stay in step ---

REFUSALS = {  # the script, the client's words, the codes of the replies
    "the mail at its end": ({"content": ("552 5.3.4 too big", "250 2.0.0 taken")},
                            ENVELOPE + "DATA\r\n" + CONTENT + ENVELOPE + "DATA\r\n" + CONTENT, "250 250 354 552 250 250 354 250"),
    "DATA": ({"DATA": ("451 4.3.0 no", "354 go on")}, ENVELOPE + "DATA\r\nRSET\r\n" + ENVELOPE + "DATA\r\n" + CONTENT,
             "250 250 451 250 250 250 354 250"),
    "a size": ({"MAIL FROM:<big@x.example>": "552 5.3.4 too big"}, "MAIL FROM:<big@x.example> SIZE=99999\r\n" + ENVELOPE + "DATA\r\n" + CONTENT,
               "552 250 250 354 250"),
    "a recipient": ({"RCPT": ("550 5.1.1 no", "250 2.1.5 ok")}, ENVELOPE + "RCPT TO:<c@x.example>\r\nDATA\r\n" + CONTENT, "250 550 250 354 250"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_behind_a_refusal_replies_stay_in_step(mail, what):
    script, words, expected = REFUSALS[what]
    with mail.receiver(script) as receiver, mail.secured() as client:
        client.send(words + "NOOP\r\n")
        assert codes(client, len(expected.split()) + 1) == [int(code) for code in expected.split()] + [250]
        assert receiver.contents[-1] == CONTENT.encode()[:-3]


CHUNK = b"MAIL FROM:<evil@x.example>\r\n"


def test_the_bytes_of_a_refused_chunk_are_no_commands(mail):
    with mail.receiver({"RCPT": "550 no", "chunk": "503 no"}) as receiver, mail.secured() as client:
        client.send(ENVELOPE.encode() + b"BDAT %d\r\n" % len(CHUNK) + CHUNK + b"BDAT %d LAST\r\n" % len(CHUNK) + CHUNK + b"NOOP\r\n")
        assert codes(client, 5) == [250, 550, 503, 503, 250]
        assert not any("evil" in said for _, said in receiver.heard)


@pytest.mark.parametrize("size", ["-1", "99999999999999999999", "18446744073709551616", "x LAST", "5 FIRST", "", "0x5", "5 LAST now"])
def test_a_chunk_of_no_size_is_refused_and_not_passed_on(mail, size):
    with mail.receiver() as receiver, mail.secured() as client:
        client.send(f"{ENVELOPE}BDAT {size}\r\nNOOP\r\n")
        assert codes(client, 4) == [250, 250, 501, 250]
        assert not any(said.startswith("BDAT") for _, said in receiver.heard)


def test_an_empty_last_chunk_ends_a_mail(mail):
    with mail.receiver() as receiver, mail.secured() as client:
        client.send(ENVELOPE + "BDAT 4\r\na\r\n.BDAT 0 LAST\r\nNOOP\r\n")
        assert codes(client, 5) == [250] * 5
        assert receiver.contents == [b"a\r\n.", b""]


def test_chunks_and_data_of_one_mail_stay_in_step(mail):
    """RFC 3030 2: DATA behind BDAT gets 503, and the transaction is only good for RSET. The judge is the server."""
    with mail.sink() as sink, mail.secured() as client:
        client.send(ENVELOPE + "BDAT 4\r\na\r\nbDATA\r\nRSET\r\n")
        assert codes(client, 5) == [250, 250, 250, 503, 250]
        send_mail(client)
    assert sink.counts["mails"] == 1


def test_a_mail_above_the_servers_size_gets_552(mail):
    """Where its size is declared, and where it is not."""
    with mail.sink("--size", "1000") as sink, mail.secured() as client:
        assert client.ask("MAIL FROM:<a@x.example> SIZE=2000")[0].startswith("552 ")
        send_mail(client)
        client.send(ENVELOPE + "DATA\r\n" + ("x" * 70 + "\r\n") * 100 + ".\r\n")
        assert codes(client, 4) == [250, 250, 354, 552]
        send_mail(client)
    assert sink.counts["mails"] == 2 and sink.counts["too_big"] == 1


# --- clients: what they send ---

def doors(mail):
    """The same listener behind RAgent and on an agent."""
    return mail.mail, mail.direct


@VERSIONS
@pytest.mark.parametrize("how", ["FIN", "close_notify", "reset"])
def test_a_mail_without_its_end_is_not_delivered(mail, how, version):
    with mail.sink() as sink:
        for door in doors(mail):
            with mail.secured(door, version) as client:
                client.send(ENVELOPE + "DATA\r\n")
                assert codes(client, 3) == [250, 250, 354]
                client.send("Subject: x\r\n\r\nhalf\r\n")
                if how == "FIN":
                    client.sock.shutdown(socket.SHUT_WR)  # ssl.SSLSocket: without close_notify
                elif how == "close_notify":
                    with contextlib.suppress(OSError):
                        client.sock.unwrap()
                else:
                    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        wait_until(lambda: not mail.cluster.connections(), patience(10), "their ends")
    assert sink.counts["mails"] == 0 and sink.counts["cut"] == 2, sink.result.seen()


@VERSIONS
def test_a_session_of_one_byte_a_record(mail, version):
    with mail.sink() as sink:
        for door in doors(mail):
            with Client(door) as client:
                client.greet()
                assert client.ask("STARTTLS")[0].startswith("220 ")
                tls = CutRecords(client.sock, mail.context(version), "localhost")
                words = f"EHLO client.example\r\n{ENVELOPE}DATA\r\n{CONTENT}QUIT\r\n".encode()
                client.sock.sendall(b"".join(tls.sealed(bytes([byte])) for byte in words))
                said = tls.rest().decode()
                assert re.findall(r"^(\d{3}) ", said, re.M) == ["250", "250", "250", "354", "250", "221"], said
    assert sink.counts["mails"] == 2 and sink.counts["bad_commands"] == 0


@pytest.mark.parametrize("line,code", [(b"x" * 500, 500), (b"NOOP \0", 500), (b"NOOP \x1b[2J", 500), ("MÄIL FROM:<a@b>".encode(), 500), (b"\0", 500),
                                       (b"MAIL FROM:<a@b", 501), (b"MAIL FROM:<\xe4@x.example>", 501), (b"STARTTLS", 554), (b"XCLIENT ADDR=192.0.2.1", 550),
                                       (b"NO\rOP", 500)],
                         ids=["500 bytes", "NUL", "ESC", "8-bit", "only NUL", "half a path", "no UTF-8", "STARTTLS", "XCLIENT", "bare CR"])
def test_a_bad_command_has_one_reply_and_does_not_reach_the_server(mail, line, code):
    with mail.receiver() as receiver, mail.secured() as client:
        client.send(line + b"\r\nNOOP\r\n")
        assert codes(client, 2) == [code, 250]
        assert [said for _, said in receiver.heard] == ["EHLO client.example", "NOOP"]
    assert not any("\x1b" in mail.cluster.log(name) for name in ("r1", "a1", "a2"))


def test_behind_a_bare_line_feed_is_another_command(mail):
    """The one before it is refused. Each has one reply, and the server hears none with a bare line feed in it."""
    with mail.receiver() as receiver, mail.secured() as client:
        client.send("NOOP one\nMAIL FROM:<a@x.example>\r\nNOOP two\r\n")
        assert codes(client, 3) == [500, 250, 250]
        assert [said for _, said in receiver.heard] == ["EHLO client.example", "MAIL FROM:<a@x.example>", "NOOP two"]


def rss(cluster, what="VmRSS"):
    """Of both agents, in bytes. VmHWM: the peak since forget_peak()."""
    texts = [open(f"/proc/{cluster.pid(name)}/status", encoding="ascii").read() for name in cluster.agents]
    return sum(int(re.search(rf"{what}:\s+(\d+) kB", text).group(1)) * 1024 for text in texts)


def forget_peak(cluster):
    for name in cluster.agents:
        with open(f"/proc/{cluster.pid(name)}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # proc(5)


TOO_LONG = b"500 5.5.2 Line is too long\r\n"


def test_a_line_without_end_ends_the_session(mail):
    """Behind the replies to the commands before it. The server gets nothing of it."""
    with mail.receiver() as receiver:
        for door in doors(mail):
            with mail.secured(door) as client:
                client.send(b"NOOP\r\n" + b"x" * 100_000)
                assert client.ends() == ("fin", b"250 2.0.0 ok\r\n" + TOO_LONG)
        assert [said for _, said in receiver.heard] == ["EHLO client.example", "NOOP"] * 2


@pytest.mark.plain
def test_a_line_of_ten_megabytes_takes_no_memory(mail):
    with mail.receiver() as receiver, mail.secured() as client:
        before = rss(mail.cluster)
        with contextlib.suppress(OSError):
            for _ in range(100):
                client.send(b"x" * 100_000)
        assert rss(mail.cluster) - before < 1 << 20
        assert [said for _, said in receiver.heard] == ["EHLO client.example"]


def test_a_client_whose_commands_the_agent_refuses_has_a_limit(mail):
    """The server does not see them, so its own limit does not count them. Between two commands the session may be at rest."""
    with mail.receiver() as receiver:
        for door in doors(mail):
            with mail.secured(door) as client:
                for _ in range(19):
                    assert client.ask("STARTTLS")[0].startswith("554 ")
                assert client.ask("NOOP")[0].startswith("250 ")
                assert client.ask("STARTTLS") == ["421 4.7.0 Too many errors"]
                assert client.ends() == ("fin", b"")
        assert [said for _, said in receiver.heard] == ["EHLO client.example", "NOOP"] * 2


# --- clients: TLS ---

@VERSIONS
@pytest.mark.parametrize("name", ["stranger.example", "127.0.0.1", "192.0.2.77", None], ids=str)
def test_a_strange_server_name_gets_the_first_certificate(mail, name, version):
    """RFC 6066 3 lets a server go on. Mail servers often send the name of their MX record, or none."""
    context = mail.context(version)
    context.check_hostname = False
    with mail.receiver():
        for door in doors(mail):
            with Client(door) as client:
                client.greet()
                tls = client.starttls(context, server_name=name)
                assert ("DNS", "localhost") in tls.getpeercert()["subjectAltName"]
                send_mail_after_greeting(client)


def send_mail_after_greeting(client):
    assert client.ask("EHLO client.example")[0] == f"250-{HOST}"
    send_mail(client)


def test_a_client_that_ends_behind_the_220_leaves_nothing(mail):
    for door in doors(mail):
        for how in (b"", b"\1\0\0\0\0\0\0\0"):
            with Client(door) as client:
                client.greet()
                assert client.ask("STARTTLS")[0].startswith("220 ")
                if how:
                    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, how)


def test_clients_that_fall_silent_before_tls_have_a_time_limit(mail):
    """Behind the 220, in the middle of a hello, or where a PROXY header is due."""
    with contextlib.ExitStack() as stack:
        clients = []
        for door in doors(mail):
            for share in (0, 0.5):
                clients.append(stack.enter_context(Client(door)))
                clients[-1].greet()
                assert clients[-1].ask("STARTTLS")[0].startswith("220 ")
                clients[-1].send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" if share else b"")
        for door in (mail.balanced, mail.balanced_direct):
            clients.append(stack.enter_context(Client(door)))
        with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
            ends = list(pool.map(Client.ends, clients))
    assert all(b"220" not in data and b"421" not in data for _, data in ends), ends


CERTIFICATE_REQUIRED, UNKNOWN_CA = "certificate required", "unknown ca"


def certified(mail, folder, which):
    context = mail.context()
    if which == "good":
        context.load_cert_chain(mail.cluster.dir / "client.pem", mail.cluster.dir / "client.key")
    elif which == "of a stranger":
        context.load_cert_chain(*self_signed(folder))
    return context


@pytest.mark.parametrize("which,welcome", [("good", ("optional", "required")), ("none", ("optional",)), ("of a stranger", ())])
def test_a_client_certificate_is_judged_by_the_listener(mail, which, welcome, tmp_path):
    context = certified(mail, tmp_path, which)
    with mail.receiver() as receiver:
        for listener in "optional", "required":
            if listener in welcome:
                with mail.secured(getattr(mail, listener), context=context) as client:
                    send_mail(client)
                facts = receiver.facts[-1]
                assert bool(facts.client & CLIENT_CERT_CONN) == (which == "good") and facts.ssl.get(SSL_CN) == (b"client" if which == "good" else None)
            else:  # in TLS 1.3 a client has finished its handshake before the server judges it
                with pytest.raises((ssl.SSLError, ConnectionError, EOFError)), mail.secured(getattr(mail, listener), context=context):
                    pass
        assert receiver.connections == len(welcome)


def ends_unread(client):
    """Waits for the server's FIN, and leaves what stands before it in the socket."""
    poll = select.poll()
    poll.register(client.sock, select.POLLRDHUP)
    return poll.poll(patience(10) * 1000)


def test_a_client_that_never_reads_is_served(mail):
    """It takes no ticket and no reply."""
    with mail.sink() as sink:
        for door in doors(mail):
            with mail.secured(door, "1.3", greets=False) as client:
                client.send("EHLO client.example\r\n" + (ENVELOPE + "DATA\r\n" + CONTENT) * 20 + "QUIT\r\n")
                assert ends_unread(client)
    assert sink.counts["mails"] == 40 and sink.counts["cut"] == 0, sink.result.seen()


@contextlib.contextmanager
def probing(mail, door, version):
    """A probe behind STARTTLS and EHLO."""
    with Probe(door) as probe:
        probe("read", until=b"220 " + HOST.encode() + b" ESMTP\r\n")
        probe("raw", text="EHLO client.example\r\nSTARTTLS\r\n")
        probe("read", until="Ready to start TLS\r\n")
        assert probe("handshake", version=version, sni="localhost")["done"]
        probe("send", text="EHLO client.example\r\n")
        assert probe("read", until="250 8BITMIME\r\n")["text"].startswith(f"250-{HOST}\r\n")
        yield probe


def test_a_client_that_renegotiates_is_told_no(mail):
    """In TLS 1.2. It may go on with its mail."""
    with mail.receiver():
        for door in doors(mail):
            with probing(mail, door, "1.2") as probe:
                probe("renegotiate")
                end = probe("end", until="tls")
                assert (end["end"], end["alert_name"]) == ("alert", "no renegotiation"), end


def test_key_updates_are_followed(mail):
    with mail.receiver() as receiver:
        for door in doors(mail):
            with probing(mail, door, "1.3") as probe:
                for words in ENVELOPE + "DATA", CONTENT + "QUIT":
                    probe("key_update", request=1)
                    probe("send", text=words + "\r\n", key_update="both")
                assert probe("read", until="221 bye\r\n")["text"].endswith("250 2.0.0 taken\r\n221 bye\r\n")
        assert receiver.contents == [CONTENT.encode()[:-3]] * 2


# --- PROXY headers ---

def balanced(mail):
    return mail.balanced, mail.balanced_direct


def test_what_is_injected_behind_a_header_is_never_read(mail):
    """The header, STARTTLS and the bytes after it come in two segments, cut at every place."""
    words = proxy_v2() + b"EHLO client.example\r\nSTARTTLS\r\nMAIL FROM:<evil@x.example>\r\n"

    def counts():
        return [mail.cluster.counters()["ragent"]["starttls_injections"], *map(mail.cluster.counter, ("starttls_injections", "backend_connects"))]

    relayed, direct, connects = counts()
    for door in balanced(mail):
        for at in range(1, len(words)):
            with Client(door) as client:
                client.send(words[:at])
                reset = False
                try:
                    client.send(words[at:])
                except ConnectionError:
                    reset = True  # the kernel tells it once
                how, data = client.ends()
                assert (reset or how == "reset") and b"530" not in data, (door, at, data)
    assert counts() == [relayed + len(words) - 1, direct + len(words) - 1, connects]


LOCAL = SIGNATURE + b"\x20\0\0\0"


def test_a_header_of_a_stranger_is_not_read(mail):
    """Neither as a header nor as commands."""
    def begun():
        counters = mail.cluster.counters()
        return [counts[name] for counts in counters.values() for name in ("preambles", "backend_connects") if name in counts]

    before = begun()
    for door in balanced(mail):
        for said in proxy_v2(), b"PROXY TCP4 192.0.2.1 192.0.2.2 1 25\r\n", LOCAL, b"EHLO x\r\n":
            with contextlib.suppress(ConnectionError), Client(door, source="127.0.0.2") as client:
                client.send(said)
                assert b"220" not in client.ends()[1]
    assert begun() == before


def test_a_check_of_a_balancer_is_no_mail(mail):
    """LOCAL, or a header, and an end behind the banner."""
    before = mail.cluster.counter("backend_connects")
    for door in balanced(mail):
        for header in LOCAL, proxy_v2():
            with Client(door) as client:
                client.send(header)
                client.greet()
                assert client.ask("QUIT")[0].startswith("221 ")
            with Client(door) as client:
                client.send(header)
                assert client.code() == 220
    assert mail.cluster.counter("backend_connects") == before


@pytest.mark.parametrize("door", ["balanced", "balanced_direct"])
def test_behind_a_balancer_the_server_learns_the_client(mail, door):
    with mail.receiver() as receiver, Client(getattr(mail, door)) as client:
        for byte in proxy_v2(source="192.0.2.33"):
            client.send(bytes([byte]))
        client.greet()
        client.starttls(mail.context())
        send_mail_after_greeting(client)
        assert receiver.facts[0].source == ("192.0.2.33", 1000)


TLS12_SUITES = {"ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}


@VERSIONS
def test_the_server_learns_the_facts_of_tls(mail, version):
    """Also from the agent that takes over when the owner is lost."""
    context = certified(mail, None, "good")
    context.minimum_version = context.maximum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
    with mail.receiver() as receiver, mail.secured(mail.optional, context=context) as client:
        send_mail(client)
        owner = settled(mail.cluster, client.sock)["owner"]
        mail.cluster.kill(owner)
        send_mail(client)
        mail.cluster.restart(owner)
        mail.pids = mail.processes()
        first, second = receiver.facts
        suite = client.sock.cipher()[0]
        assert first.source == client.sock.getsockname()
    assert first.client == CLIENT_SSL | CLIENT_CERT_CONN | CLIENT_CERT_SESS and first.verify == 0
    assert first.ssl == {SSL_VERSION: f"TLSv{version}".encode(), SSL_CN: b"client", SSL_CIPHER: TLS12_SUITES.get(suite, suite).encode()}
    assert first.tlvs[AUTHORITY] == b"localhost" and len(first.tlvs[UNIQUE_ID]) == 16
    assert first == second
