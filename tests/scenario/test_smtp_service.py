"""Service smtp with TLS: its sessions outlive their owner and move between mails; a session that cannot go on gets 421."""

import concurrent.futures
import contextlib
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import FULL, SANITIZED, TEST_POINTS, patience, sized
from tests.lib.mail import Result, Sink, source, source_command
from tests.lib.mail_cluster import HOST, CountsOfAllLives, mail_backend, mail_listener
from tests.lib.mover import after, settled
from tests.lib.processes import has_stopped
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_client import Client
from tests.lib.waiting import wait_until

LOST = "421 4.3.2 This server was lost and another took over, try again"
LEAVING = "421 4.3.2 Service is shutting down, try again"
pytestmark = pytest.mark.sanitized_with("a mail service sees no TLS; test_takeover and test_laws run both versions", version="1.3")
VERSIONS = pytest.mark.parametrize("version", ["1.2", "1.3"])


class Mail:
    """Agents with listeners `mail` (STARTTLS) and `implicit`, and a sink that remembers transactions."""

    def __init__(self, cluster, sink, ports):
        self.cluster, self.sink = cluster, sink
        self.mail, self.implicit = (("127.0.0.1", port) for port in ports)

    def client(self, version="1.3", name="client.example"):
        """After STARTTLS and EHLO."""
        client = Client(self.mail)
        client.greet()
        client.starttls(self.cluster.context(version=version, alpn=()))
        assert client.ask(f"EHLO {name}")[0] == f"250-{HOST}"
        return client

    def connection(self, client):
        return settled(self.cluster, client.sock)

    def owner(self, client):
        return self.connection(client)["owner"]

    def count(self, name):
        """By the agents that are there."""
        return sum(counts.get(name, 0) for node, counts in self.cluster.counters().items() if node != "ragent")

    def logged(self, connection, event):
        """The fields of the agents' lines about this connection."""
        line = re.compile(rf"connection {connection}: {event}\b ?(.*)")
        return [fields for name in self.cluster.agents for fields in line.findall(self.cluster.log(name))]

    def end(self):
        """The counts of the sink."""
        with self.sink:
            pass
        return self.sink.counts


@pytest.fixture
def start_mail(start_cluster):
    with contextlib.ExitStack() as sinks:
        def start(*options, keys=(), policy="require", sink=("--xcssltx", "127.0.0.0/8"), proxied=True, edit=(), **more):
            behind = sinks.enter_context(Sink(*(("--proxy",) if proxied else ()), *sink))
            ports = free_ports(2)
            cluster = start_cluster(*(options or ("--agents", "3")), edit=edits.edits(
                mail_backend(behind.address, *(("proxy_v2: on",) if proxied else ())),
                mail_listener("mail", ports[0], *keys, policy=policy),
                mail_listener("implicit", ports[1], *keys, policy="implicit"), *edit), **more)
            return Mail(cluster, behind, ports)
        yield start


CONTENT = "From: a@x.example\r\nSubject: {}\r\n\r\n..dot\r\n" + "x" * 70 + "\r\n"


def envelope(client):
    assert client.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
    assert client.ask("RCPT TO:<b@x.example>")[0].startswith("250")


def content(client, size=1000, subject="s"):
    assert client.ask("DATA")[0].startswith("354")
    client.send(CONTENT.format(subject))
    for _ in range(size // 1000):
        client.send(("y" * 98 + "\r\n") * 10)


def send_mail(client, size=1000):
    envelope(client)
    content(client, size)
    client.send(".\r\n")
    reply = client.reply()
    assert reply[0].startswith("250"), reply


def quit_well(client):
    assert client.ask("QUIT")[0].startswith("221")
    assert client.ends() == ("fin", b"")


# --- the owner is lost ---

@VERSIONS
def test_between_two_mails_nobody_notices(start_mail, version):
    mail = start_mail()
    with mail.client(version) as client:
        send_mail(client)
        for _ in range(2):
            mail.cluster.kill(mail.owner(client))
            send_mail(client)
        quit_well(client)
    assert mail.end()["mails"] == 3
    assert mail.sink.counts["duplicates"] == 0


def test_an_idle_session_behind_implicit_tls(start_mail):
    """Its owner is lost before the client has sent anything, and another one later."""
    mail = start_mail()
    with Client(mail.implicit) as client:
        client.handshake(mail.cluster.context(alpn=()))
        assert client.reply()[0].startswith(f"220 {HOST} ")
        mail.cluster.kill(mail.owner(client))
        assert client.ask("EHLO client.example")[0] == f"250-{HOST}"
        mail.cluster.kill(mail.owner(client))
        send_mail(client)
        quit_well(client)
    assert mail.end()["mails"] == 1


def said_before(client):
    """What a client sends of a mail, step by step, and the rest of it."""
    return [
        lambda: client.ask("MAIL FROM:<a@x.example> SIZE=1000"),
        lambda: client.ask("RCPT TO:<b@x.example>"),
        lambda: client.ask("RCPT TO:<c@x.example>"),
        lambda: client.ask("DATA"),
        lambda: client.send(CONTENT.format("a half")),
        lambda: client.send("the other half\r\n" * 500),
        lambda: (client.send(".\r\n"), client.reply()),
    ]


@VERSIONS
def test_before_the_final_dot_the_mail_is_said_again(start_mail, version):
    """The owner is lost after each step of a mail; the client notices nothing."""
    mail = start_mail()
    steps = len(said_before(None)) - 1
    for at in range(steps):
        with mail.client(version) as client:
            for number, step in enumerate(said_before(client)):
                answer = step()
                assert not isinstance(answer, list) or answer[0][:3] in ("250", "354"), answer
                if number == at:
                    lost = mail.connection(client)
                    mail.cluster.kill(lost["owner"])
            assert answer[1][0].startswith("250"), answer
            assert mail.logged(lost["id"], "mail repeated") == [f"listener=mail epoch={lost['epoch'] + 1}"]
            assert not mail.logged(lost["id"], "mail asked about")
            send_mail(client)
            quit_well(client)
        mail.cluster.restart(lost["owner"])
    assert mail.count("mail_asked") == 0
    counts = mail.end()
    assert counts["mails"] == 2 * steps and counts["duplicates"] == 0 and counts["recipients"] == 3 * steps


def test_replies_of_another_kind_end_it(start_mail):
    """The second server does not take the recipient that the first one took."""
    mail = start_mail(sink=("--reply", "rcpt:450 4.7.1 Later:50", "--seed", "7"))
    ends = set()
    for _ in range(40):  # a quarter of them meets a server that has changed its mind
        if {end[1] for end in ends} == {"250", "421"}:
            break
        with mail.client() as client:
            assert client.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
            first = client.ask("RCPT TO:<b@x.example>")[0][:3]
            gone = mail.owner(client)
            mail.cluster.kill(gone)
            reply = client.ask("NOOP")
            assert reply[0][:3] in ("250", "421"), reply
            if reply[0].startswith("421"):
                assert reply == ["421 4.3.2 The mail server behind has changed, try again"]
                assert client.ends() == ("fin", b"")
            ends.add((first, reply[0][:3]))
        mail.cluster.restart(gone)
    assert {end[1] for end in ends} == {"250", "421"}, ends


def test_a_mail_beyond_replay_gets_421(start_mail):
    mail = start_mail()
    with mail.client() as client:
        envelope(client)
        content(client, 3_000_000)
        wait_until(lambda: mail.count("bytes_to_backend") > 2_500_000, patience(20), "the mail at the server")
        mail.cluster.kill(mail.owner(client))
        assert client.reply() == [LOST]
        assert client.ends() == ("fin", b"")
    assert mail.count("mail_421_agent_lost") == mail.cluster.counters()["ragent"]["ended_agent_lost"] == 1
    assert mail.end()["mails"] == 0


# --- behind the final dot ---

HELD = ("--xcssltx", "127.0.0.0/8", "--delay", "decide:2")


@VERSIONS
@pytest.mark.parametrize("size", [1000, 3_000_000])
def test_behind_the_final_dot_the_server_is_asked(start_mail, version, size):
    """It has the whole mail and decides while the owner is lost."""
    mail = start_mail(sink=HELD)
    with mail.client(version) as client:
        send_mail(client)
        envelope(client)
        content(client, size)
        client.send(".\r\n")
        wait_until(lambda: mail.count("bytes_to_backend") > size, patience(20), "the mail at the server")
        given = mail.connection(client)
        mail.cluster.kill(given["owner"])
        assert client.reply()[0].startswith("250 2.0.0 Ok")
        if size == 1000:
            send_mail(client)
            quit_well(client)
        else:  # its bytes are not there any more
            assert client.reply() == [LOST]
            assert client.ends() == ("fin", b"")
    assert mail.count("mail_asked") == mail.count("mail_decided") == 1
    assert mail.logged(given["id"], "mail asked about") == [f"listener=mail epoch={given['epoch']} fate=decided"]
    assert not mail.logged(given["id"], "mail repeated")
    counts = mail.end()
    assert counts["mails"] == (3 if size == 1000 else 2)
    assert counts["duplicates"] == 0 and counts["tx_waited"] == 1


@pytest.mark.skipif(not TEST_POINTS, reason="needs fault points")
def test_a_dot_that_the_server_never_got_is_said_again(start_mail):
    """The owner is lost when it has got the end of the mail: the server answers never, and gets the mail again."""
    mail = start_mail()
    with mail.client() as client:
        envelope(client)
        content(client)
        owner = mail.owner(client)
        mail.cluster.allow_takeover()
        mail.cluster.faults(f"request.given kill on {owner}")
        mail.cluster.settle_faults()
        client.send(".\r\n")
        assert client.reply()[0].startswith("250")
        quit_well(client)
    assert (mail.count("mail_asked"), mail.count("mail_never"), mail.count("mail_repeated")) == (1, 1, 1)
    counts = mail.end()
    assert counts["mails"] == 1 and counts["tx_never"] == 1


def test_a_server_that_does_not_remember_is_not_asked(start_mail):
    mail = start_mail(sink=("--delay", "decide:2"))
    with mail.client() as client:
        envelope(client)
        content(client)
        client.send(".\r\n")
        wait_until(lambda: mail.count("bytes_to_backend") > 1000, patience(20))
        mail.cluster.kill(mail.owner(client))
        assert client.reply() == [LOST]
        assert client.ends() == ("fin", b"")
    assert mail.count("mail_asked") == 0 and mail.end()["duplicates"] == 0


def test_an_owner_lost_while_it_asks(start_mail):
    """Its successor asks about both names."""
    mail = start_mail(sink=("--xcssltx", "127.0.0.0/8", "--delay", "decide:4"))
    with mail.client() as client:
        mail.owner(client)
        envelope(client)
        content(client)
        client.send(".\r\n")
        wait_until(lambda: mail.count("bytes_to_backend") > 1000, patience(20))
        mail.cluster.kill(mail.owner(client))
        wait_until(lambda: mail.count("mail_asked") == 1, patience(10), "the question")
        mail.cluster.kill(mail.owner(client))
        assert client.reply()[0].startswith("250")
        quit_well(client)
    counts = mail.end()
    assert counts["mails"] == 1 and counts["duplicates"] == 0


# --- moves, drains, restarts ---

@VERSIONS
def test_a_planned_move_takes_the_servers_connection_along(start_mail, version):
    mail = start_mail(edit=[edits.nobody_moves])
    with mail.client(version) as client:
        connects = mail.count("backend_connects")
        for _ in range(3):
            where = mail.connection(client)
            mail.cluster.move(where["id"], after(mail.cluster, where["owner"]))
            wait_until(lambda: mail.owner(client) not in (None, where["owner"]), patience(10), "the move")
            send_mail(client)
        assert mail.count("backend_connects") == connects
        quit_well(client)
    assert mail.end()["mails"] == 3


@VERSIONS
def test_a_session_that_has_moved_resumes(start_mail, version):
    """Its ticket, or its id, is good for other connections, which move as well."""
    mail = start_mail(edit=[edits.nobody_moves])
    context, first = mail.cluster.context(version=version, alpn=()), None
    for _ in range(3):
        with Client(mail.mail) as client:
            client.greet()
            client.starttls(context, session=first)
            assert client.sock.session_reused == bool(first)
            assert client.ask("EHLO client.example")[0].startswith("250")
            where = mail.connection(client)
            mail.cluster.move(where["id"], after(mail.cluster, where["owner"]))
            wait_until(lambda: mail.owner(client) not in (None, where["owner"]), patience(10), "the move")
            send_mail(client)
            first = first or client.sock.session
    assert mail.end()["mails"] == 3


def between_hosts(text):
    """Agents cannot pass sockets to each other."""
    return "".join(line for line in text.splitlines(True) if "peer_socket:" not in line)


def test_between_hosts_a_new_connection_repeats_the_greeting(start_mail):
    mail = start_mail(edit=[between_hosts])
    with mail.client() as client:
        send_mail(client)
        envelope(client)
        where = mail.connection(client)
        mail.cluster.drain(where["owner"])
        content(client)
        client.send(".\r\n")
        assert client.reply()[0].startswith("250")
        wait_until(lambda: mail.owner(client) != where["owner"], patience(10), "the move")
        mail.cluster.wait_drained(where["owner"])
        send_mail(client)
        quit_well(client)
    assert mail.end()["mails"] == 3


def test_between_hosts_a_session_after_auth_is_told_to_come_again(start_cluster):
    """No other agent knows the password. Within a host the session moves with its connection to the server."""
    port, = free_ports(1)
    offers = {"EHLO": "250-scripted\r\n250-PIPELINING\r\n250 AUTH PLAIN", "AUTH": "235 2.7.0 ok"}
    with ScriptedReceiver(offers) as receiver:
        cluster = start_cluster("--agents", "2", edit=edits.edits(
            between_hosts, mail_backend(receiver.address), mail_listener("mail", port, "client_address: hidden")))
        mail = Mail(cluster, None, [port, port])
        with mail.client() as client:
            assert client.ask("AUTH PLAIN AHVzZXIAc2VjcmV0")[0].startswith("235")
            envelope(client)
            owner = mail.owner(client)
            cluster.drain(owner)
            content(client)
            client.send(".\r\n")
            assert client.reply()[0].startswith("250")
            assert client.reply() == [LEAVING]
            assert client.ends() == ("fin", b"")
            assert cluster.wait_drained(owner)["state"] == "drained"
        assert receiver.connections == 1 and len(receiver.contents) == 1


def test_xclient_tells_an_ipv6_address_in_its_own_form(start_cluster):
    """IPV6: in front of it (Postfix XCLIENT_README)."""
    port, = free_ports(1)
    offers = {"EHLO": "250-scripted\r\n250 XCLIENT ADDR PORT", "XCLIENT": "220 again"}
    with ScriptedReceiver(offers) as receiver:
        cluster = start_cluster("--agents", "1", edit=edits.edits(
            mail_backend(receiver.address), mail_listener("mail", port, "xclient: on"), edits.also_listen("mail", f"[::1]:{port}")))
        with Client(("::1", port)) as client:
            client.greet()
            client.starttls(cluster.context(alpn=()))
            assert client.ask("EHLO client.example") == [f"250 {HOST}"]
            own_port = client.sock.getsockname()[1]
            assert [said for _, said in receiver.heard if said.startswith("XCLIENT")] == [f"XCLIENT ADDR=IPV6:::1 PORT={own_port}"]
            send_mail(client)


def test_a_ragent_that_stops_waits_for_the_end_of_the_mail(start_mail):
    mail = start_mail()
    with mail.client() as client, mail.client() as idle:
        envelope(client)
        content(client, 20_000)
        os.kill(mail.cluster.keeper_pid(), signal.SIGTERM)
        assert idle.reply() == [LEAVING]
        client.send(".\r\n")
        assert client.reply()[0].startswith("250")
        assert client.reply() == [LEAVING]
        assert client.ends() == ("fin", b"")
    assert mail.cluster.wait_gone("r1") == 0
    assert mail.end()["mails"] == 1


def test_a_drain_waits_for_the_end_of_the_mail(start_mail):
    mail = start_mail()
    with mail.client() as client:
        envelope(client)
        owner = mail.owner(client)
        mail.cluster.drain(owner)
        content(client, 20_000)
        client.send(".\r\n")
        assert client.reply()[0].startswith("250")
        assert mail.cluster.wait_drained(owner)["state"] == "drained"
        assert mail.owner(client) != owner
        send_mail(client)
        quit_well(client)
    assert mail.end()["mails"] == 2


def test_at_the_deadline_of_a_drain_it_says_421(start_mail):
    mail = start_mail()
    with mail.client() as client:
        envelope(client)
        owner = mail.owner(client)
        mail.cluster.drain(owner, timeout_ms=1000)
        assert client.reply() == [LEAVING]
        assert client.ends() == ("fin", b"")
        assert mail.cluster.wait_drained(owner)["ended"] == 1
    assert mail.count("mail_421_leaving") == mail.cluster.counters()["ragent"]["ended_drain_timeout"] == 1


def test_rolling_restarts_lose_no_mail(start_mail):
    mail = start_mail()
    with mail.client() as idle, mail.client() as busy:
        send_mail(busy)
        mail.cluster.rolling()
        for client in idle, busy:
            send_mail(client)
            quit_well(client)
    assert mail.end()["mails"] == 3


def slow_clients(mail, context, over):
    """Mails of one client after the other, each with a round trip of 200 ms before STARTTLS. Returns their number."""
    count = 0
    while not over.is_set():
        with Client(mail.mail) as client:
            client.greet()
            over.wait(0.2)
            client.starttls(context)
            assert client.ask("EHLO slow.example")[0].startswith("250")
            send_mail(client)
            quit_well(client)
        count += 1
    return count


@contextlib.contextmanager
def sources_run(mail, *kinds):
    """Sources until the end of `with`; then the list has their results."""
    results = []
    running = [subprocess.Popen(source_command(mail.mail, *kind), text=True, stdout=subprocess.PIPE) for kind in kinds]
    yield results
    for one in running:
        one.send_signal(signal.SIGINT)
    for one in running:
        output = one.communicate(timeout=patience(20))[0]
        results.append(Result(one.returncode, output, ""))


def test_rolling_restarts_refuse_nobody(start_mail):
    """At every moment clients are between the banner and STARTTLS, in a handshake, in a mail, and between two mails."""
    mail = start_mail()
    how = ("--starttls", "-A", "-s", "5", "-m", "1000000", "--rate", str(sized(30, 200)))
    over, context = threading.Event(), mail.cluster.context(alpn=())
    with concurrent.futures.ThreadPoolExecutor() as pool, sources_run(mail, how, (*how, "--stay")) as results:
        slow = [pool.submit(slow_clients, mail, context, over) for _ in range(6)]
        mail.cluster.rolling()
        over.set()
    counts, sent = mail.end(), [result.counts["sent"] for result in results]
    assert not any(result.counts["failed"] for result in results), [result.errors for result in results]
    assert all(sent) and counts["mails"] == sum(sent) + sum(one.result() for one in slow)
    assert counts["right"] == sum(sent) and not counts["duplicates"]


def test_another_ragent_knows_of_it(start_mail):
    """The note goes along: the owner is lost after RAgent was replaced."""
    mail = start_mail()
    with mail.client() as client:
        envelope(client)
        mail.cluster.replace()
        mail.cluster.kill(mail.owner(client))
        content(client)
        client.send(".\r\n")
        assert client.reply()[0].startswith("250")
        quit_well(client)
    assert mail.end()["mails"] == 1


def test_the_next_ragent_knows_of_it(start_mail):
    """The note outlives RAgent: the owner is lost after that, or right with it."""
    mail = start_mail()
    with mail.client() as client:
        envelope(client)
        mail.cluster.kill_ragent()
        mail.cluster.kill(mail.owner(client))
        content(client)
        client.send(".\r\n")
        assert client.reply()[0].startswith("250")
        envelope(client)
        ragent_and_owner_die(mail, mail.owner(client))
        content(client)
        client.send(".\r\n")
        assert client.reply()[0].startswith("250")
        quit_well(client)
    counts = mail.end()
    assert counts["mails"] == 2 and counts["duplicates"] == 0


def ragent_and_owner_die(mail, owner):
    """In this order, within 10 ms."""
    cluster, again = mail.cluster, mail.cluster.log("r1").count("running again")
    cluster.allow_takeover()
    for pid in cluster.pid("r1"), cluster.pid(owner):
        os.kill(pid, signal.SIGKILL)
    cluster.wait_gone(owner)
    wait_until(lambda: cluster.log("r1").count("running again") > again, patience(20), "the next RAgent")


@pytest.mark.skipif(not TEST_POINTS, reason="needs fault points")
def test_a_note_that_no_slot_names_is_none(start_mail):
    """RAgent has replaced the note of an owner when both die. The next RAgent has the one before, with which the mail goes on."""
    mail = start_mail()
    steps = (1, 2, 3)  # before RCPT and DATA, of which the owner leaves notes
    for at in steps:
        with mail.client() as client:
            said = said_before(client)
            for step in said[:at]:
                step()
            owner, dies = mail.owner(client), mail.cluster.pid("r1")
            mail.cluster.faults("note.set stop on r1 times 1")
            mail.cluster.settle_faults()
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                rest = pool.submit(lambda: [step() for step in said[at:]])
                wait_until(lambda: has_stopped(dies), patience(20), "RAgent stands")
                mail.cluster.clear_faults()
                ragent_and_owner_die(mail, owner)
                assert rest.result()[-1][1][0].startswith("250")
            quit_well(client)
        mail.cluster.restart(owner)
    counts = mail.end()
    assert counts["mails"] == len(steps) and counts["duplicates"] == 0


def test_sessions_go_on_when_ragent_dies(start_mail):
    """Between two mails, and in the middle of one; each mail is delivered once."""
    mail = start_mail()
    with mail.client() as between, mail.client() as amid:
        send_mail(between)
        envelope(amid)
        content(amid)
        mail.cluster.kill_ragent()
        amid.send(".\r\n")
        assert amid.reply()[0].startswith("250")
        for client in between, amid:
            send_mail(client)
            quit_well(client)
    assert mail.end()["mails"] == 4


# --- what passes ---

def test_what_clients_do_not_see_and_may_not_say(start_mail):
    mail = start_mail(keys=("hide: [CHUNKING, 8BITMIME]",))
    with mail.client() as client:
        lines = client.ask("EHLO client.example")
        words = {line[4:].split()[0] for line in lines[1:]}
        assert "PIPELINING" in words and not words & {"CHUNKING", "8BITMIME", "STARTTLS", "XCSSLTX", "XCLIENT"}
        for command in "XCLIENT NAME=x", "XFORWARD NAME=x", "XCSSLTX 0a/1 5f":
            assert client.ask(command)[0].startswith("550 5.7.0"), command
        assert client.ask("STARTTLS")[0].startswith("554")
        for parameter in "XCSSLTX=0a/1", "PRDR", "BODY=8BITMIME":
            assert client.ask(f"MAIL FROM:<a@x.example> {parameter}")[0].startswith("555"), parameter
        client.send("BDAT 2 LAST\r\nhi")
        assert client.reply()[0].startswith("502")
        send_mail(client)
        quit_well(client)
    counts = mail.end()
    assert counts["mails"] == counts["tx_named"] == 1


def international_mail(client, at_content=lambda: None):
    """RFC 6531: the sink takes such an address only in a mail with SMTPUTF8."""
    assert client.ask("MAIL FROM:<jürgen@x.example> SMTPUTF8")[0].startswith("250")
    assert client.ask("RCPT TO:<josé@пример.example>")[0].startswith("250")
    at_content()
    content(client)
    client.send(".\r\n")
    assert client.reply()[0].startswith("250")


@VERSIONS
def test_addresses_beyond_ascii_pass(start_mail, version):
    """Also when the owner is lost in the middle of the mail, and the next one says its commands again."""
    mail = start_mail()
    with mail.client(version) as client:
        assert any(line[4:] == "SMTPUTF8" for line in client.ask("EHLO client.example"))
        international_mail(client)
        international_mail(client, lambda: mail.cluster.kill(mail.owner(client)))
        quit_well(client)
    counts = mail.end()
    assert counts["mails"] == 2 and counts["tx_named"] == 3 and counts["duplicates"] == 0


def test_addresses_beyond_ascii_pass_in_clear(start_mail):
    mail = start_mail(policy="offer", keys=("capabilities: [PIPELINING, SMTPUTF8]",))
    with Client(mail.mail) as client:
        assert "250-SMTPUTF8" in client.greet()
        international_mail(client)
        international_mail(client)
        quit_well(client)
    assert mail.end()["mails"] == 2


def test_a_server_without_proxy_headers_gets_no_names(start_mail):
    mail = start_mail(keys=("client_address: hidden",), proxied=False, sink=())
    with mail.client() as client:
        send_mail(client)
        mail.cluster.kill(mail.owner(client))
        send_mail(client)
        quit_well(client)
    assert mail.end()["mails"] == 2


@pytest.mark.parametrize("how", [("--pipelining",), ("--pipelining", "--chunking"), ("--chunking", "--chunk", "1000")])
def test_groups_and_chunks_pass(start_mail, how):
    mail = start_mail()
    result = source(mail.mail, "--starttls", "-s", "10", "-m", "200", "--stay", "-l", "20000", *how)
    assert result.counts["sent"] == 200, result.complaints
    counts = mail.end()
    assert counts["right"] == 200 and counts["duplicates"] == counts["wrong"] == 0
    assert counts["tx_named"] == 200


KEPT_MAX = 1 << 20  # bytes: some windows


@VERSIONS
def test_a_client_that_reads_no_reply_is_not_heard_any_more(start_mail, version):
    """It sends commands that the agent itself refuses, again and again. Then it reads all replies, and goes on."""
    mail = start_mail(keys=("refusals: off",), edit=[edits.at_end("limits: { kept: 8MiB }")])
    with mail.client(version) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        client.sock.settimeout(1)
        said = 0
        with pytest.raises(TimeoutError):
            while True:
                said += client.sock.send(b"STARTTLS\r\n" * 1000)
        assert mail.count("kept_bytes") < KEPT_MAX
        client.sock.settimeout(patience(20))
        for _ in range(said // 10):
            assert client.reply()[0].startswith("554 5.5.1")
        assert mail.count("kept_ended") == 0
    mail.end()


# --- all at once ---

# Sessions and mails of each kind; sizes in bytes. Those that wait are between two mails most of the time.
LARGE, LARGE_LEN = sized(10, 50), 5000000
KINDS = {
    "idle": ("-s", str(sized(60, 200)), "-m", str(sized(240, 1600)), "-l", "1000", "-R", "4"),
    "small": ("-s", str(sized(80, 250)), "-m", str(sized(2000, 20000)), "-l", "10000"),
    "large": ("-s", str(LARGE), "-m", str(sized(60, 500)), "-l", str(LARGE_LEN)),
}


def all_went_on(mail, opened):
    """Every connection that had an owner before has one again, and they said about a mail each since `opened` records: a mail that meets
    two losses gets a 421, and on a slow machine that would be many."""
    connections = mail.cluster.connections()
    owned = all(connection["owner"] for connection in connections if connection["epoch"] > 1)
    return owned and mail.count("records_opened") >= opened + 4 * len(connections)


# What a client may see: 421; an alert, where no 421 can be said any more; or, if its agent is lost in the handshake, the end of that. A client
# of TLS 1.3 says EHLO while the agent has not read the end of its handshake yet.
FAILURES = re.compile(r"[A-Za-z ]+: 421 4\.|[A-Za-z ]+: .*\balert\b|handshake: |EHLO: connection reset by peer")
RESET = re.compile("[A-Za-z ]+: connection reset by peer")
BEFORE_MAILS = re.compile("(banner|STARTTLS|handshake|EHLO): ")


def losses_in_handshakes(mail):
    """(those, all) of the connections that the access log has as lost with their agent. Such a line has no version before the end of the
    handshake. Later it says last-record: 421."""
    lines = [line for line in mail.cluster.log("access").splitlines() if 'reason="agent lost"' in line]
    early = [line for line in lines if "version=0000" in line]
    return early, early + [line for line in lines if "version=0000" not in line and "end=last-record" not in line]


def large_went_through(mail, given):
    """Of the large mails some did, since `given` bytes: more was sent than all sessions together can have amid their mails. A large mail is
    longer than `replay`, so each that is amid its content gets a 421 at a kill, and on a slow machine that would be all."""
    return mail.count("bytes_to_backend") >= given + LARGE * LARGE_LEN


def kill_and_restart(mail, name, lives):
    """An agent; RAgent is started by its keeper. Returns how many records were opened before the restart."""
    if name == "r1":
        mail.cluster.kill_ragent()
        return mail.count("records_opened")
    lives.add(name)
    mail.cluster.kill(name)
    opened = mail.count("records_opened")
    mail.cluster.restart(name)
    return opened


def others(errors, *expected):
    """How many errors are of no expected kind. Each of them has to be a reset."""
    left = {error: count for error, count in errors.items() if not any(kind.match(error) for kind in expected)}
    assert all(RESET.match(error) for error in left), left
    return sum(left.values())


AGENTS = ("a1", "a2", "a3")


@(pytest.mark.alone if FULL else lambda test: test)  # beside others, each kill would meet the mails of the one before
@pytest.mark.limit(900 if FULL else 300)
@VERSIONS
@pytest.mark.parametrize("victims", [AGENTS, ("a1", "r1", "a2", "a3")], ids=["agents", "agents and RAgent"])
def test_each_250_is_one_mail_whatever_is_killed(start_mail, version, victims):
    """Owners are killed again and again, at any state of their sessions: idle, in MAIL and RCPT, in content, after the final
    dot. A death of RAgent may reset the one connection that its worker was changing, and the server may take the mail of that one."""
    mail = start_mail(sink=("--xcssltx", "127.0.0.0/8", "--delay", "decide:0.05", "--delay", "rcpt:0.02:30"))
    mail.cluster.allow_takeover()
    lives = CountsOfAllLives(mail.cluster)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = {kind: pool.submit(source, mail.mail, "--starttls", "--tls-version", version, "--stay", "-A", "--connects", "20", *how)
                for kind, how in KINDS.items()}
        killed = 0
        while not all(run.done() for run in runs.values()):
            opened = kill_and_restart(mail, victims[killed % len(victims)], lives)
            killed += 1
            given = mail.count("bytes_to_backend")
            wait_until(lambda: all(run.done() for run in runs.values()) or all_went_on(mail, opened), patience(20), "owners for all, and mails")
            if killed == 3:  # once: kills that are too rare meet nobody amid a mail
                wait_until(lambda: runs["large"].done() or large_went_through(mail, given), patience(20), "large mails")
        results = {kind: run.result() for kind, run in runs.items()}
    for name in mail.cluster.agents:
        lives.add(name)
    counts = mail.end()
    print(f"{killed} kills; {({kind: result.seen() for kind, result in results.items()})}; {lives.sums}; sink {mail.sink.result.seen()}")
    print({kind: result.errors for kind, result in results.items()})
    sent = sum(result.counts["sent"] for result in results.values())
    assert all(result.counts["sent"] for result in results.values())
    assert killed >= 3 and counts["duplicates"] == counts["wrong"] == 0
    deaths = mail.cluster.status()["deaths"]["killed"]  # of RAgent
    assert (deaths > 0) == (victims != AGENTS)
    assert sent <= counts["mails"] == counts["right"] <= sent + deaths
    if not SANITIZED:  # a tenth of the sessions may miss one of these moments
        assert lives.sums["repeated"] > 0 and lives.sums["asked"] > 0 and lives.sums["decided"] > 0, lives.sums
    assert sum(others(result.errors, FAILURES) for result in results.values()) <= deaths
    early, resets = losses_in_handshakes(mail)
    assert early == resets
    # between two mails nobody loses anything, but for the one that RAgent was changing
    assert others(results["idle"].errors, BEFORE_MAILS) <= deaths
    # but for mails that met two losses
    assert results["small"].counts["failed"] <= results["small"].counts["sent"] // 20, results["small"].complaints
