"""Real mail servers behind a cluster, with smtp-source in front and smtp-sink at the end: mail arrives byte for byte, through
each listener, and the servers know the client's address."""

import re

import pytest

from bench.experiments.mail_room import obstacle
from tests.lib.build import patience, scaled
from tests.lib.mail import Sink, source
from tests.lib.mail_behind import ClustersBefore
from tests.lib.mail_front_door import greet_at
from tests.lib.mail_servers import SERVERS, EximHeavy, OpenSMTPD, Postfix, wait_for_end
from tests.lib.odd_mail import BARE, ODD
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_client import Client
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))]

MAILS = 20
WAYS = {"in clear": ("smtp", []), "STARTTLS": ("submission", ["--starttls"]), "TLS": ("smtps", ["--tls"])}


@pytest.fixture(scope="module")
def before(start_module_cluster):
    return ClustersBefore(start_module_cluster)


def send(behind, way, *options):
    name, tls = WAYS[way]
    result = source(behind.door(name), *tls, *(["--ca", behind.cluster.ca] if tls else []), *options)
    assert result.status == 0, (way, result.errors, behind.peer.log()[-2000:])
    return result.counts["sent"]


@pytest.mark.parametrize("options", [["-d", "--pipelining"], ["--chunking", "--chunk", "1000"], ["-r", "5", "--pipelining"]], ids=" ".join)
@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_mail_arrives_byte_for_byte(before, server, options, tmp_path):
    """OpenSMTPD has no PIPELINING. The listener lists it before TLS, so that a client in clear uses it with every server."""
    odd = tmp_path / "odd.eml"
    odd.write_bytes(ODD)
    recipients = 5 if "-r" in options else 1
    with Sink("--mails", str(3 * MAILS)) as sink, before.server(server, tmp_path, sink) as behind:
        sent = sum(send(behind, way, "-m", str(MAILS), "-s", "4", "-F", str(odd), *options) for way in WAYS)
        assert sent == 3 * MAILS
        wait_for_end(sink, behind.peer)
    assert sink.counts["mails"] == sink.counts["right"] == 3 * MAILS and sink.counts["recipients"] == 3 * MAILS * recipients
    assert sink.counts["duplicates"] == sink.counts["bad_commands"] == 0


def send_by_hand(client, content):
    """The code of the reply to a mail with this content."""
    client.mail()
    client.send(content + b".\r\n")
    return client.reply()[:3]


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_bare_line_ends_become_what_the_server_makes_of_them(before, server, tmp_path):
    """Servers keep them, end lines at them, or refuse them. Through the cluster each does what it does without it, and never makes two
    mails of one."""
    with ScriptedReceiver({"EHLO": "250-scripted\r\n250 8BITMIME"}) as receiver, before.server(server, tmp_path, receiver) as behind:
        with Talk(behind.peer.address, **({"source": "127.0.0.77"} if server.knows_proxy else {})) as client:
            client.ehlo()
            codes = [send_by_hand(client, BARE)]
        for name, _ in WAYS.values():
            with Talk(behind.door(name), has_banner=name != "smtps") as client:
                greet_at(client, behind.cluster.ca, name)
                codes.append(send_by_hand(client, BARE))
                assert send_by_hand(client, b"Subject: last\r\n\r\nlast\r\n") == "250"
        assert len(set(codes)) == 1 and codes[0][0] in "25", codes
        taken = codes.count("250")
        wait_until(lambda: len(receiver.contents) >= taken + 3, patience(30), "all mails")
        bodies = [content.replace(b"\r\n", b"\n").partition(b"\n\n")[2] for content in receiver.contents]
        assert bodies.count(b"last\n") == 3 and len(bodies) == taken + 3, bodies
        assert len(set(bodies)) == (2 if taken else 1), bodies


@pytest.mark.limit(240)
@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_fifty_megabytes_arrive(before, server, tmp_path):
    length = scaled(50_000_000)
    with Sink("--mails", "1") as sink, before.server(server, tmp_path, sink) as behind:
        assert send(behind, "STARTTLS", "-l", str(length)) == 1
        wait_for_end(sink, behind.peer)
    assert sink.counts["right"] == 1 and sink.counts["bytes"] > length


CLIENT = {  # in the server's log
    Postfix: r"client=\S*\[(\S+)\]", EximHeavy: r"<= .* H=\S* \[(\S+)\] P=", OpenSMTPD: r"smtp connected address=(\S+)"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("server", CLIENT, ids=lambda server: server.name)
def test_a_server_knows_the_client_s_address(before, server, way, tmp_path):
    """From the PROXY header: a client of another loopback address than the agents'."""
    with Sink() as sink, before.server(server, tmp_path, sink) as behind:
        send(behind, way, "--source", "127.0.0.77")
        wait_until(lambda: "127.0.0.77" in re.findall(CLIENT[server], behind.peer.log()), patience(30), "the client in its log")
        assert not any(seen.startswith("127.0.1.") for seen in re.findall(CLIENT[server], behind.peer.log())), behind.peer.log()


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_nothing_that_is_not_for_clients_is_offered(before, server, tmp_path):
    with Sink() as sink, before.server(server, tmp_path, sink) as behind, Client(behind.door("submission")) as client:
        client.greet()
        client.starttls(behind.cluster.context(alpn=()))
        lines = client.ask("EHLO client.example")
        assert lines[0] == "250-mx.cssl.test"
        assert not {"STARTTLS", "XCLIENT", "XFORWARD", "XCSSLTX"} & {line[4:].split()[0].upper() for line in lines[1:]}, lines
