"""Service smtp behind TLS: its sessions outlive their owner, move between mails, and what cannot go on is told by a 421."""

import contextlib

import pytest

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import TEST_POINTS, patience
from tests.lib.mail import Sink
from tests.lib.mail_cluster import HOST, mail_backend, mail_listener
from tests.lib.mover import after, settled
from tests.lib.smtp_client import Client
from tests.lib.waiting import wait_until

LOST = "421 4.3.2 This server was lost and another took over, try again"
LEAVING = "421 4.3.2 Service is shutting down, try again"
VERSIONS = pytest.mark.parametrize("version", ["1.2", "1.3"])


class Mail:
    """Agents with listeners `mail` (STARTTLS) and `implicit`, and a sink that remembers transactions."""

    def __init__(self, cluster, sink, ports):
        self.cluster, self.sink = cluster, sink
        self.mail, self.implicit = (("127.0.0.1", port) for port in ports)

    def client(self, version="1.3", name="client.example"):
        """Behind STARTTLS and EHLO."""
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
        return self.cluster.counter(name)

    def end(self):
        """What the sink counted."""
        with self.sink:
            pass
        return self.sink.counts


@pytest.fixture
def start_mail(start_cluster):
    with contextlib.ExitStack() as sinks:
        def start(*options, keys=(), sink=("--xcssltx", "127.0.0.0/8"), proxied=True, **more):
            behind = sinks.enter_context(Sink(*(("--proxy",) if proxied else ()), *sink))
            ports = free_ports(2)
            cluster = start_cluster(*(options or ("--agents", "3")), edit=edits.edits(
                mail_backend(behind.address, *(("proxy_v2: on",) if proxied else ())),
                mail_listener("mail", ports[0], *keys),
                mail_listener("implicit", ports[1], *keys, policy="implicit")), **more)
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
