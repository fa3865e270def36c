"""STARTTLS in the cluster: the dialogue before TLS, refusals, injections, agents that are lost or leave, another RAgent,
listeners of the agents' own."""

import contextlib
import re
import select
import smtplib
import socket
import ssl
import subprocess
import time

import pytest

from tests.lib import edits
from tests.lib.build import TEST_POINTS, patience
from tests.lib.mail import source
from tests.lib.mail_cluster import HOST, SharedMail
from tests.lib.probe import Probe
from tests.lib.scripted_receiver import GATE, ScriptedReceiver
from tests.lib.smtp_client import Client
from tests.lib.stepwise_tls import StepwiseTls
from tests.lib.waiting import wait_until

FULL = "421 4.7.0 Too many connections"
LEAVING = "421 4.3.2 Service is shutting down, try again"


@pytest.fixture(scope="module")
def shared(start_module_cluster):
    made = SharedMail(start_module_cluster)
    yield made
    made.end()


@pytest.fixture
def mail(shared):
    """For tests that leave agents, RAgent and their configuration alone."""
    return shared.again()


def doors(mail):
    """The same listener behind RAgent and on an agent."""
    return mail.mail, mail.direct


def test_the_dialogue_before_starttls(start_mail):
    mail = start_mail(keys=("banner: ESMTP at your service", "capabilities: [PIPELINING, SIZE 1000]"))
    for door in doors(mail):
        with Client(door) as client:
            assert client.reply() == [f"220 {HOST} ESMTP at your service"]
            assert client.ask("NOOP") == ["250 2.0.0 Ok"]
            assert client.ask("STARTTLS")[0].startswith("503 5.5.1")
            assert client.ask("EHLO client.example") == [f"250-{HOST}", "250-PIPELINING", "250-SIZE 1000", "250 STARTTLS"]
            for command in "MAIL FROM:<a@x.example>", "AUTH PLAIN", "VRFY a", "XCLIENT NAME=x", "DATA":
                assert client.ask(command)[0].startswith("530 5.7.0"), command
            assert client.ask("STARTTLS now")[0].startswith("501 5.5.4")
            assert client.ask("HELP")[0].startswith("214")
            assert client.ask("starttls ")[0].startswith("220 2.0.0")
            with client.handshake(mail.context) as tls:
                assert tls.version() == "TLSv1.3"
        with Client(door) as client:
            client.greet()
            assert client.ask("QUIT")[0].startswith("221")
            assert client.ends() == ("fin", b"")
    assert mail.count("starttls_done") == 1
    assert mail.count("preambles") == 2
    assert mail.agent_count("starttls_answered") == 2


def test_pipelined_up_to_starttls(mail):
    for door in doors(mail):
        with Client(door) as client:
            client.send("EHLO client.example\r\nNOOP\r\nSTARTTLS\r\n")
            assert [client.code() for _ in range(4)] == [220, 250, 250, 220]
            client.handshake(mail.context).close()


def test_byte_by_byte(mail):
    for door in doors(mail):
        with Client(door) as client:
            for byte in b"EHLO client.example\r\nSTARTTLS\r\n":
                client.send(bytes([byte]))
            assert [client.code() for _ in range(3)] == [220, 250, 220]
            client.handshake(mail.context).close()


INJECTED = "EHLO inj\r\nMAIL FROM:<evil@x.example>\r\nRCPT TO:<you@x.example>\r\nDATA\r\n"
TOGETHER = "STARTTLS\r\n" + INJECTED


STARTTLS_LEN = len("STARTTLS\r\n")
READY = b"220 2.0.0 Ready to start TLS\r\n"


def say_rest(client, rest):
    """How it ended, and the replies meanwhile."""
    try:
        client.send(rest)
    except (ConnectionResetError, BrokenPipeError):
        return "reset", b""
    return client.ends()


def say_in_two(door, words, places, pause_ms):
    """Clients that say these words in two segments, one client for each place. Gives (place, how it ended, the replies meanwhile). So many
    wait side by side that each place costs one millisecond."""
    at_once = max(1, pause_ms)
    for begin in range(0, len(places), at_once):
        with contextlib.ExitStack() as stack:
            clients = [(at, stack.enter_context(Client(door))) for at in places[begin:begin + at_once]]
            for at, client in clients:
                client.greet()
                client.send(words[:at])
            time.sleep(pause_ms / 1000)  # what is tried is this time, whatever happens in it
            for at, client in clients:
                yield at, *say_rest(client, words[at:])


@pytest.mark.limit(300)
@pytest.mark.parametrize("pause_ms", [0, 1, 10, 100])
def test_what_is_injected_at_starttls_is_never_read(mail, pause_ms):
    """STARTTLS and the bytes after it are divided at every possible place, with less time between the parts than the answer
    takes, and with more."""
    places = range(1, len(TOGETHER))
    for door in doors(mail):
        for at, how, data in say_in_two(door, TOGETHER, places, pause_ms):
            assert how == "reset", (at, data)
            # where the answer went before the rest came, nothing more was said in clear
            assert data in (b"", READY), (at, data)
    assert mail.count("starttls_injections") == len(places)
    assert mail.agent_count("backend_connects") == 0


def test_what_is_injected_is_logged(start_mail):
    """In a cluster of its own: of many such lines in one second, some are left out."""
    mail = start_mail()
    for door in doors(mail):
        for pause_ms in 0, 1, 10, 100:
            assert [how for _, how, _ in say_in_two(door, TOGETHER, [STARTTLS_LEN], pause_ms)] == ["reset"]
    assert len(re.findall(r"connection \w+: bytes injected listener=mail client=127.0.0.1:\d+$", mail.cluster.log("r1"), re.M)) == 4
    assert mail.cluster.log("a1").count('ended reason="bytes injected before TLS"') == 4


def test_an_end_that_comes_with_starttls_injects_nothing(mail):
    """A client that only asks whether STARTTLS is there, as `nc -N` does from a file."""
    for door in doors(mail):
        for _ in range(20):
            with Client(door) as client:
                assert client.code() == 220
                client.send("EHLO client.example\r\nSTARTTLS\r\n")
                client.sock.shutdown(socket.SHUT_WR)
                end, said = client.ends()
                assert end == "fin" and said.startswith(b"250-"), (end, said)
    assert mail.agent_count("preambles") == 40
    assert mail.count("starttls_injections") == mail.agent_count("starttls_injections") == 0


def test_what_is_injected_is_never_read_where_starttls_is_offered(mail):
    """There the same words would begin mail in clear."""
    places = range(1, len(TOGETHER))
    for door in open_doors(mail):
        for at, how, data in say_in_two(door, TOGETHER, places, 1):
            assert how == "reset" and data in (b"", READY), (at, data)
    assert mail.count("starttls_injections") == len(places)
    assert mail.agent_count("backend_connects") == mail.agent_count("mail_in_clear") == 0


def client_hello(context):
    """The first record of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


@pytest.mark.limit(300)
@pytest.mark.parametrize("pause_ms", [0, 10, 100])
def test_a_hello_that_comes_with_starttls_is_no_hello(mail, pause_ms):
    """Wherever the two are cut. Only a hello that comes behind the answer is one."""
    together = b"STARTTLS\r\n" + client_hello(mail.context)
    assert len(together) > 200 and together[STARTTLS_LEN] == 0x16
    places = [at for at in range(1, len(together) + 1) if at != STARTTLS_LEN]
    for door in doors(mail):
        for at, how, data in say_in_two(door, together, places, pause_ms):
            assert how == "reset" and data in (b"", READY), (at, data)
    assert mail.agent_count("backend_connects") == mail.count("handshakes_under_way") == 0


def test_text_in_the_place_of_the_handshake(mail):
    for door in doors(mail):
        for text in "EHLO inj\r\n", "GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n":
            with Client(door) as client:
                client.greet()
                assert client.ask("STARTTLS")[0].startswith("220")
                client.send(text)
                assert client.ends() == ("reset", b""), (door, text)
    assert mail.count("starttls_injections") == mail.agent_count("starttls_injections") == 3


def test_a_client_of_another_protocol_is_refused_in_the_handshake(mail):
    """By ALPN (RFC 7301 3.2). A client that names no protocol is served."""

    def shake_hands(door, *alpn):
        with Client(door) as client:
            if door != mail.implicit:
                client.greet()
                assert client.ask("STARTTLS")[0].startswith("220")
            return client.handshake(mail.cluster.context(alpn=alpn)).selected_alpn_protocol()

    for door in (*doors(mail), mail.implicit):
        assert shake_hands(door) is None
        assert shake_hands(door, "smtp") == "smtp"
        assert shake_hands(door, "h2", "esmtp") == "esmtp"
        for wrong in ("http/1.1",), ("h2", "http/1.1"), ("imap",):
            with pytest.raises(ssl.SSLError, match="no application protocol"):
                shake_hands(door, *wrong)


def test_a_handshake_goes_on_when_ragent_dies(start_mail):
    """Half a hello came, or the server's flight waits for its answer."""
    mail = start_mail()
    with Client(mail.mail) as half, Client(mail.mail) as whole:
        shaking = []
        for client, share in ((half, 0.5), (whole, 1)):
            client.greet()
            assert client.ask("STARTTLS")[0].startswith("220")
            shaking.append(StepwiseTls(mail.context, client.sock))
            shaking[-1].begin()
            shaking[-1].say(share)
        wait_until(lambda: sorted(c["state"] for c in mail.cluster.connections()) == ["handshaking", "hello"], patience(10), "both are under way")
        mail.cluster.kill_ragent()
        for tls in shaking:
            tls.shake_hands()
            assert tls.talk(b"EHLO client.example\r\n").startswith(b"250-")
    assert mail.cluster.status()["at_deaths"]["reset"] == 0


def test_openssl_and_curl_say_starttls(mail):
    for door in doors(mail):
        said = subprocess.run(["openssl", "s_client", "-starttls", "smtp", "-CAfile", mail.cluster.ca, "-verify_return_error",
                               "-servername", "localhost", "-connect", "{}:{}".format(*door)], input="", text=True, check=False,
                              timeout=patience(20), stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        assert "Verify return code: 0 (ok)" in said, said
    assert mail.count("starttls_done") == 1


def test_strangers_are_told_what_this_is(start_mail):
    mail = start_mail(keys=("refusals: 3",))
    for door in doors(mail):
        with Client(door) as client:
            assert client.code() == 220
            client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.code() == 421
            assert client.ends()[0] == "fin"
        with Client(door) as client:
            client.greet()
            assert [client.ask("MAIL FROM:<>")[0][:3] for _ in range(3)] == ["530", "530", "421"]
            assert client.ends() == ("fin", b"")
    assert mail.count("ended_preamble_refused") == 2


def test_who_says_nothing_is_told_so_in_the_end(start_mail):
    mail = start_mail(keys=("preamble_timeout: 300ms",))
    for door in doors(mail):
        with Client(door) as client:
            client.greet()
            assert client.reply() == ["421 4.4.2 Timed out"]
            assert client.ends() == ("fin", b"")


@pytest.mark.parametrize("words", [b"x" * 1000, b"NOOP\r\n" * 1000], ids=["a line without end", "commands"])
def test_who_says_a_byte_at_a_time_has_no_more_time(start_mail, words):
    mail = start_mail(keys=("preamble_timeout: 1s",))
    for door in doors(mail):
        with Client(door) as client:
            client.greet()
            began, replies = time.monotonic(), []
            for at in range(len(words)):
                with contextlib.suppress(ConnectionError):  # the server may have ended just now
                    client.send(words[at:at + 1])
                if client.rest or select.select([client.sock], [], [], 0.05)[0]:
                    replies.append(client.reply())
                    if replies[-1] != ["250 2.0.0 Ok"]:
                        break
            assert replies[-1] == ["421 4.4.2 Timed out"] and time.monotonic() - began < patience(5)
            assert len(replies) == 1 or words.startswith(b"NOOP")


def test_lines_without_end_have_an_end(mail):
    for door in doors(mail):
        with Client(door) as client:
            assert client.code() == 220
            client.send(b"x" * 3000)
            assert client.code() == 500
            assert client.ends()[0] == "fin"


def test_a_client_that_reads_nothing_costs_a_window(mail):
    """It asks for help for ever and takes no answer."""
    for door in doors(mail):
        with Client(door) as client:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sock.settimeout(0.5)
            with pytest.raises((socket.timeout, ConnectionResetError, BrokenPipeError)):
                while True:
                    client.send(b"HELP\r\n" * 10000)
    wait_until(lambda: mail.preambles() == 0, patience(10), "their ends")


# --- agents that are lost or leave ---

def owner(mail, client):
    """Whose preamble it is; the agent counts it, too."""
    name = mail.cluster.connection_of(client.sock)["preamble_agent"]
    assert mail.cluster.counters()[name]["preambles"]
    return name


def test_an_agent_killed_between_two_replies(start_mail):
    mail = start_mail()
    with Client(mail.mail) as client:
        client.greet()
        mail.cluster.kill(owner(mail, client))
        assert client.reply() == [LEAVING]
        assert client.ends() == ("fin", b"")
    assert mail.count("preambles_lost") == 1


@pytest.mark.skipif(not TEST_POINTS, reason="needs fault points")
def test_an_agent_stopped_before_the_banner(start_mail):
    mail = start_mail()
    mail.cluster.allow_takeover()
    mail.cluster.faults("link.write drop on a1")
    mail.cluster.settle_faults()
    with Client(mail.mail) as first, Client(mail.mail) as second:
        wait_until(lambda: mail.preambles() == 2, patience(5), "two preambles")
        mail.cluster.kill("a1")
        for client in first, second:
            client.greet()
    mail.cluster.clear_faults()
    assert mail.count("preambles_lost") == 0


def test_an_agent_killed_behind_starttls_costs_nothing(start_mail):
    """Another agent may make the handshake."""
    mail = start_mail()
    with Client(mail.mail) as client:
        client.greet()
        gone = owner(mail, client)
        assert client.ask("STARTTLS")[0].startswith("220")
        mail.cluster.kill(gone)
        assert client.handshake(mail.context).version() == "TLSv1.3"


def test_a_drained_agent_says_421(start_mail):
    mail = start_mail()
    with Client(mail.mail) as client:
        client.greet()
        name = owner(mail, client)
        mail.cluster.drain(name)
        assert client.reply() == [LEAVING]
        assert client.ends() == ("fin", b"")
        report = mail.cluster.wait_drained(name)
        assert report["state"] == "drained" and report["ended"] == 1
    with Client(mail.mail) as client: # the other takes it
        client.greet()
        client.starttls(mail.context)


def test_agents_that_stop_say_421_themselves(start_mail):
    mail = start_mail("--agents", "1")
    with Client(mail.mail) as behind, Client(mail.direct) as direct:
        behind.greet()
        direct.greet()
        mail.cluster.send_signal("a1", 15)
        for client in behind, direct:
            assert client.reply() == [LEAVING]
            assert client.ends() == ("fin", b"")
        assert mail.cluster.wait_gone("a1") == 0


def test_another_ragent_goes_on_with_them(start_mail):
    mail = start_mail()
    with Client(mail.mail) as half, Client(mail.mail) as injector, Client(mail.mail) as answered:
        for client in half, injector, answered:
            client.greet()
        half.send("NO")
        assert answered.ask("STARTTLS")[0].startswith("220")
        mail.cluster.replace()
        half.send("OP\r\n")
        assert half.reply() == ["250 2.0.0 Ok"]
        half.starttls(mail.context)
        injector.send(TOGETHER)
        assert injector.ends() == ("reset", b"")
        answered.handshake(mail.context)
        assert mail.preambles() == 0
        assert mail.count("starttls_done") == 2


def test_a_ragent_that_stops_says_421(start_mail):
    mail = start_mail()
    with Client(mail.mail) as client:
        client.greet()
        mail.cluster.send_signal("r1", 15)
        assert client.reply() == [LEAVING]
        assert client.ends() == ("fin", b"")
        assert mail.cluster.wait_gone("r1") == 0


def test_a_source_has_its_share(start_mail):
    mail = start_mail(edit=[edits.at_end("limits: { preambles_per_source: 2 }")])
    for door in doors(mail):
        with Client(door) as first, Client(door) as second:
            first.greet()
            second.greet()
            with Client(door) as third:
                assert third.reply() == [FULL]
                assert third.ends() == ("fin", b"")
            with Client(door, source="127.0.0.9") as other:
                other.greet()
            first.starttls(mail.context)
            with Client(door) as third:
                third.greet()
    assert mail.count("preambles_refused") == mail.agent_count("preambles_refused") == 1


@pytest.mark.parametrize("limit", ["connections", "connections_per_source"])
def test_a_connection_too_many_is_told_421(start_mail, limit):
    mail = start_mail(edit=[edits.at_end(f"limits: {{ {limit}: 2 }}")])
    for door in doors(mail):
        with Client(door) as first, Client(door) as second:
            first.greet()
            second.greet()
            with Client(door) as third:
                assert third.reply() == [FULL]
                assert third.ends() == ("fin", b"")


def test_a_client_above_its_sources_limit_takes_no_place_from_others(start_mail):
    """It goes on sending, and does not close."""
    mail = start_mail("--agents", "1", edit=[edits.at_end("limits: { connections: 3, connections_per_source: 2 }")])
    for door in doors(mail):
        with Client(door) as first, Client(door) as second, Client(door) as third:
            for client in first, second:
                client.greet()
            assert third.reply() == [FULL]

            def other_is_served():
                with contextlib.suppress(OSError):
                    third.send("NOOP\r\n")
                with Client(door, source="127.0.0.9") as other:
                    return other.code() == 220

            wait_until(other_is_served, patience(5))


def test_the_source_with_most_makes_room(start_mail):
    mail = start_mail("--agents", "1", edit=[edits.at_end("limits: { preambles: 3, preambles_per_source: 3 }")])
    for door in reversed(doors(mail)):  # RAgent would wait for an agent that still counts a client that has gone
        with contextlib.ExitStack() as clients:
            first, second, third = (clients.enter_context(Client(door)) for _ in range(3))
            for one in first, second, third:
                one.greet()
            with Client(door, source="127.0.0.9") as other:
                other.greet()
                assert first.reply() == [FULL]
                assert first.ends() == ("fin", b"")
                other.starttls(mail.context)
            second.starttls(mail.context)
    assert mail.count("preambles_displaced") == mail.agent_count("preambles_refused") == 1


# --- mail in clear, by the listener's leave ---

MAIL = ("From: a@x.example", "Subject: in clear", "", ".dot", "..two", "end")


def open_doors(mail):
    return mail.offer, mail.open


def send_mail(client, count=1):
    for _ in range(count):
        assert client.ask("MAIL FROM:<a@x.example> SIZE=100")[0].startswith("250")
        assert client.ask("RCPT TO:<b@x.example>")[0].startswith("250")
        assert client.ask("DATA")[0].startswith("354")
        client.send("".join(("." if line.startswith(".") else "") + line + "\r\n" for line in MAIL) + ".\r\n")
        assert client.reply()[0].startswith("250")


def test_mail_in_clear_where_starttls_is_only_offered(shared, tmp_path):
    mail = shared.again("--dump", str(tmp_path / "mails"))
    for door in open_doors(mail):
        with Client(door) as client:
            assert "250 STARTTLS" in client.greet()
            assert client.ask("AUTH PLAIN AGEAYg==")[0].startswith("538 5.7.11")
            send_mail(client, 2)
            assert client.ask("STARTTLS")[0].startswith("503")
            assert client.ask("AUTH PLAIN AGEAYg==")[0].startswith("538")
            assert client.ask("XCLIENT NAME=evil")[0].startswith("550")
            lines = client.ask("EHLO again.example")
            assert lines[0] == f"250-{HOST}" and not any("STARTTLS" in line or "AUTH" in line for line in lines)
            send_mail(client)
            assert client.ask("QUIT")[0].startswith("221")
            assert client.ends() == ("fin", b"")
    wait_until(lambda: mail.count("connections_open") == 0, patience(5), "their ends")
    counts = mail.end()
    assert counts["mails"] == 6
    text = (tmp_path / "mails").read_text()
    assert text.count("\n.dot\n..two\nend\n") == 6 or text.count("\r\n.dot\r\n..two\r\nend\r\n") == 6


def test_auth_is_hidden_from_clients_in_clear(mail):
    """The server offers it to the agent. A password in clear is for everybody on the way."""
    mail.end()
    offers = {"EHLO": "250-scripted\r\n250-AUTH PLAIN LOGIN\r\n250-AUTH=PLAIN LOGIN\r\n250-PIPELINING\r\n250 8BITMIME"}
    with ScriptedReceiver(offers, listen=mail.sink.address, proxied=True) as receiver:
        for door in open_doors(mail):
            with Client(door) as client:
                greeted = client.greet()
                send_mail(client)
                again = client.ask("EHLO again.example")
                assert "250 8BITMIME" in again
                assert not any("AUTH" in line or "PLAIN" in line for line in greeted + again), (greeted, again)
                assert client.ask("AUTH PLAIN AGEAYg==")[0].startswith("538")
                send_mail(client)
        assert not any(said.startswith("AUTH") for _, said in receiver.heard) and len(receiver.contents) == 4


def test_smtp_source_through_a_listener_that_offers(mail):
    for door in open_doors(mail):
        result = source(door, "-s", "20", "-m", "200", "-l", "5000")
        assert result.counts["sent"] == 200, result.complaints
        result = source(door, "-s", "3", "-m", "6", "-l", "3000000")
        assert result.counts["sent"] == 6, result.complaints
    counts = mail.end()
    assert counts["right"] == 412 and counts["wrong"] == 0


def test_a_mail_server_that_is_down(mail):
    mail.end()
    for door in open_doors(mail):
        with Client(door) as client:
            client.greet()
            assert client.ask("MAIL FROM:<a@x.example>")[0].startswith("421 4.4.1")
            assert client.ends() == ("fin", b"")


def test_a_mail_server_that_refuses_the_greeting_gives_the_reason(mail):
    """The agent has answered the greeting itself, so the reason comes with the reply to MAIL. The client may greet in another way."""
    mail.end()
    refused = "550 5.7.1 no such name"
    with ScriptedReceiver({"EHLO my_pc": refused, "HELO my_pc": refused}, listen=mail.sink.address, proxied=True) as receiver:
        for door in open_doors(mail):
            with Client(door) as client:
                client.greet("my_pc")
                client.send("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nRSET\r\n")
                assert client.reply() == [refused]
                assert [client.code() for _ in range(2)] == [250, 250]
                assert client.ask("EHLO client.example")[0].startswith("250")
                send_mail(client)
                assert client.ask("QUIT")[0].startswith("221")
        assert len(receiver.contents) == 2
    assert mail.agent_count("mail_greetings_refused") == 2


def stay_in_mail(*clients, seconds=0.5):
    """An agent with nothing left stops after 100 ms; this lasts longer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for client in clients:
            assert client.ask("NOOP")[0].startswith("250")


def test_a_drain_waits_for_the_end_of_the_mail(start_mail):
    mail = start_mail("--agents", "1")
    with Client(mail.offer) as client, Client(mail.open) as direct:
        for one in client, direct:
            one.greet()
            assert one.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
            assert one.ask("RCPT TO:<b@x.example>")[0].startswith("250")
        mail.cluster.send_signal("a1", 15)
        wait_until(lambda: "leaving" in mail.cluster.log("a1"), patience(5), "a1 leaving")
        stay_in_mail(client, direct)
        for one in client, direct:
            assert one.ask("DATA")[0].startswith("354")
            one.send("x\r\n.\r\n")
            assert one.reply()[0].startswith("250")
            assert one.reply() == [LEAVING]
            assert one.ends() == ("fin", b"")
        assert mail.cluster.wait_gone("a1") == 0
    assert mail.end()["mails"] == 2


@pytest.mark.parametrize("words,replies", [("MAIL FROM:<a@x.example>\r\n", [250]),
                                           ("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\nhalf\r\n", [250, 250, 354])],
                         ids=["behind MAIL", "in content"])
def test_mail_in_clear_whose_agent_is_killed(start_mail, words, replies):
    mail = start_mail("--agents", "1")
    with Client(mail.offer) as client:
        client.greet()
        client.send(words)
        assert [client.code() for _ in replies] == replies
        mail.cluster.kill("a1")
        assert client.reply() == [LEAVING]
        assert client.ends() == ("fin", b"")
    counts = mail.end()
    assert (counts["mails"], counts["cut"]) == (0, len(replies) // 3), mail.sink.result.seen()


def test_mail_in_clear_whose_agent_is_killed_behind_the_dot_comes_twice(start_mail):
    """The server takes it, and nobody can tell the client (RFC 1047)."""
    mail = start_mail("--agents", "1")
    mail.end()
    with ScriptedReceiver({"content": [GATE + "250 2.0.0 taken", "250 2.0.0 taken"]}, listen=mail.sink.address, proxied=True) as receiver:
        with Client(mail.offer) as client:
            client.greet()
            client.send("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\nwhole\r\n.\r\n")
            assert [client.code() for _ in range(3)] == [250, 250, 354]
            wait_until(lambda: len(receiver.contents) == 1, patience(10), "the mail at the server")
            mail.cluster.kill("a1")
            assert client.reply() == [LEAVING]
            assert client.ends() == ("fin", b"")
        receiver.open_gate()
        mail.cluster.restart("a1")
        with Client(mail.offer) as client:
            client.greet()
            assert client.ask("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA")[0].startswith("250")
            assert [client.code() for _ in range(2)] == [250, 354]
            assert client.ask("whole\r\n.") == ["250 2.0.0 taken"]
        assert receiver.contents == [b"whole\r\n"] * 2


def test_mail_in_clear_goes_on_in_another_ragent(start_mail):
    mail = start_mail()
    with Client(mail.offer) as client:
        client.greet()
        send_mail(client)
        assert client.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
        mail.cluster.replace()
        assert client.ask("RCPT TO:<b@x.example>")[0].startswith("250")
        assert client.ask("RSET")[0].startswith("250")
        send_mail(client)
        assert mail.count("connections_relayed") == 1


# --- mail behind TLS ---

@pytest.mark.parametrize("tickets", [0, 1, 4])
def test_a_session_gets_as_many_tickets_as_the_listener_says(start_mail, tickets):
    """Of TLS 1.3 (RFC 8446 4.6.1). Without a ticket a client makes a full handshake again."""
    mail = start_mail(edit=[edits.tls(f"tickets: {tickets}")])
    heard = []
    mail.context._msg_callback = lambda _, direction, version, kind, message, data: direction == "read" and heard.append(message.name)
    for door in (*doors(mail), mail.implicit):
        heard.clear()
        with Client(door) as client:
            if door == mail.implicit:
                client.handshake(mail.context)
                assert client.code() == 220
            else:
                client.greet()
                client.starttls(mail.context)
            assert client.ask("EHLO client.example")[0].startswith("250")
            assert heard.count("FINISHED") == 1 and heard.count("NEWSESSION_TICKET") == tickets, (door, heard)


def test_tickets_come_behind_the_client_s_finished_and_wait_for_nothing_else(start_mail):
    """RFC 8446 4.6.1. Before that the client is not known to hold the keys; and a client may wait for them with its first command."""
    mail = start_mail(edit=[edits.tls("tickets: 2")])
    heard = []
    mail.context._msg_callback = lambda _, direction, version, kind, message, data: direction == "read" and heard.append(message.name)
    for door in (*doors(mail), mail.implicit):
        heard.clear()
        with Client(door) as client:
            if door != mail.implicit:
                client.greet()
                assert client.ask("STARTTLS")[0].startswith("220")
            tls = StepwiseTls(mail.context, client.sock)
            tls.begin()
            tls.say()
            tls.hear_flight()
            assert heard.count("FINISHED") == 1, heard
            assert tls.unread() == 0 and not select.select([client.sock], [], [], 0.3)[0], door
            tls.say()
            wait_until(lambda: tls.hear() or heard.count("NEWSESSION_TICKET") == 2, patience(10), f"tickets at {door}: {heard}")
            assert heard.count("NEWSESSION_TICKET") == 2, (door, heard)


def test_smtplib_sends_mail_behind_starttls_and_over_implicit_tls(shared, tmp_path):
    mail = shared.again("--dump", str(tmp_path / "mails"))
    for door in doors(mail):
        with smtplib.SMTP(*door, timeout=patience(20)) as client:
            client.starttls(context=mail.context)
            client.ehlo()
            assert client.ehlo_resp.decode().splitlines()[0] == HOST
            assert not client.has_extn("starttls") and client.has_extn("pipelining")
            client.sendmail("a@x.example", ["b@x.example"], "\r\n".join(MAIL))
    with smtplib.SMTP_SSL(*mail.implicit, context=mail.context, timeout=patience(20)) as client:
        assert client.ehlo()[0] == 250
        client.sendmail("a@x.example", ["b@x.example"], "\r\n".join(MAIL))
    with Client(mail.implicit) as client:
        client.handshake(mail.context)
        assert client.reply()[0].startswith(f"220 {HOST} ")
    counts = mail.end()
    assert counts["mails"] == 3


def test_what_a_client_may_not_say_behind_tls(mail):
    with Client(mail.mail) as client:
        client.greet()
        client.starttls(mail.context)
        assert client.ask("EHLO client.example")[0] == f"250-{HOST}"
        assert client.ask("STARTTLS")[0].startswith("554 5.5.1")
        assert client.ask("XCLIENT NAME=evil")[0].startswith("550 5.7.0")
        assert client.ask("QUIT")[0].startswith("221")
        assert client.ends() == ("fin", b"")


@pytest.mark.tool("curl")
def test_curl_sends_mail(mail, tmp_path):
    text = tmp_path / "mail"
    text.write_text("\r\n".join(MAIL) + "\r\n")
    for url in ("smtp://localhost:{}".format(mail.mail[1]), "smtp://localhost:{}".format(mail.direct[1]),
                "smtps://localhost:{}".format(mail.implicit[1])):
        done = subprocess.run(["curl", "--silent", "--show-error", "--ssl-reqd", "--cacert", mail.cluster.ca, "--mail-from",
                               "a@x.example", "--mail-rcpt", "b@x.example", "--upload-file", str(text), url], text=True, check=False,
                              timeout=patience(30), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
    assert mail.end()["mails"] == 3


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_smtp_source_behind_starttls(mail, version):
    for door in doors(mail):
        result = source(door, "--starttls", "--tls-version", version, "-s", "20", "-m", "200", "-l", "5000")
        assert result.counts["sent"] == 200, result.complaints
        result = source(door, "--starttls", "--tls-version", version, "-s", "2", "-m", "4", "-l", "3000000")
        assert result.counts["sent"] == 4, result.complaints
    counts = mail.end()
    assert counts["right"] == 408 and counts["wrong"] == 0


def test_a_mail_server_that_is_down_behind_tls(mail):
    mail.end()
    with Client(mail.mail) as client:
        client.greet()
        client.starttls(mail.context)
        assert client.ask("EHLO client.example") == ["421 4.4.1 The mail server behind does not answer, try again later"]
        assert client.ends() == ("fin", b"")
    wait_until(lambda: mail.count("ended_backend_unreachable") == 1, patience(5), "the reason at RAgent")
    assert any('client told reason="backend unreachable" told=answer' in mail.log(name) for name in mail.cluster.agents)


def test_a_flood_of_key_updates_ends_a_session(mail):
    """Its agent opens one a second, and RAgent reads nothing meanwhile: idle_timeout must be longer than that goes on."""
    with Probe(mail.mail) as probe:
        probe("read", until=b"220 " + HOST.encode() + b" ESMTP\r\n")
        probe("raw", text="EHLO client.example\r\nSTARTTLS\r\n")
        probe("read", until="Ready to start TLS\r\n")
        assert probe("handshake", version="1.3", sni="localhost")["done"]
        probe("forge", type=22, text=b"\x18\0\0\1\0", count=100, step=1)
        assert probe("end", until="tls", timeout_ms=patience(20) * 1000)["alert_name"] == "unexpected message"
    assert mail.count("ended_key_update_flood") == 1
