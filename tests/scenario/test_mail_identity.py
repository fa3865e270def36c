"""Who the client is, behind a cluster: XCLIENT for Postfix, which is told again after a loss; and AUTH, which passes to Exim but cannot go
on at another agent."""

import re
import smtplib

import pytest

from bench.experiments.mail_room import Room, obstacle
from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import patience
from tests.lib.mail import Sink, source
from tests.lib.mail_cluster import HOST, mail_backend, mail_listener
from tests.lib.mail_servers import Exim, Postfix
from tests.lib.mover import settled
from tests.lib.smtp_client import Client

pytestmark = [pytest.mark.root, pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))]

CLIENT = "127.0.0.77"
LOST = "421 4.3.2 This server was lost and another took over, try again"
XCLIENT_HOSTS = "smtpd_authorized_xclient_hosts = 127.0.0.0/8\n"
AGENT = "agent.example"
LOGINS = """\
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = "${if and {{eq{$auth2}{user}}{eq{$auth3}{secret}}}}"
  server_set_id = $auth2
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = "Username:: : Password::"
  server_condition = "${if and {{eq{$auth1}{user}}{eq{$auth2}{secret}}}}"
  server_set_id = $auth1
cram:
  driver = cram_md5
  public_name = CRAM-MD5
  server_secret = "${if eq{$auth1}{user}{secret}fail}"
  server_set_id = $auth1
"""


@pytest.fixture
def start_before(start_cluster):
    """A cluster of three agents in front of a server; its door with STARTTLS."""
    def start(server, *keys):
        port, = free_ports(1)
        listener = mail_listener("mail", port, *(keys or ("client_address: hidden",)))
        return start_cluster("--agents", "3", edit=edits.edits(mail_backend(server.address), listener)), ("127.0.0.1", port)
    return start


def granting_postfix(folder, sink):
    """A Postfix that grants XCLIENT to the agents, and knows a host name for their addresses."""
    server = Postfix(folder, sink.address, options=XCLIENT_HOSTS)
    server.room.etc("hosts", "127.0.0.1 localhost\n" + "".join(f"127.0.1.{number} {AGENT}\n" for number in range(1, 4)))
    return server


def in_tls(cluster, door, source_address=None):
    client = Client(door, source_address)
    client.greet()
    client.starttls(cluster.context(alpn=()))
    return client


def secured(cluster, door, source_address=None):
    client = in_tls(cluster, door, source_address)
    assert client.ask("EHLO client.example")[0] == f"250-{HOST}"
    return client


def send_mail(client):
    for command, code in (("MAIL FROM:<a@x.example>", "250"), ("RCPT TO:<b@x.example>", "250"), ("DATA", "354"), ("x\r\n.", "250")):
        reply = client.ask(command)
        assert reply[0].startswith(code), (command, reply)


def test_postfix_learns_the_client_by_xclient(start_before, tmp_path):
    with Sink() as sink, granting_postfix(tmp_path, sink) as server:
        cluster, door = start_before(server, "xclient: on")
        result = source(door, "--starttls", "--ca", cluster.ca, "--source", CLIENT, "-m", "3")
        assert result.counts["sent"] == 3, result.complaints
        server.wait_for_lines(rf": client=unknown\[{CLIENT}\]", 3)
        assert not re.search(r": client=\S*\[127\.0\.(0\.1|1\.)", server.log())


def test_postfix_learns_it_again_after_a_loss(start_before, tmp_path):
    with Sink() as sink, granting_postfix(tmp_path, sink) as server:
        cluster, door = start_before(server, "xclient: on")
        with secured(cluster, door, CLIENT) as client:
            send_mail(client)
            cluster.kill(settled(cluster, client.sock)["owner"])
            send_mail(client)
            assert client.ask("QUIT")[0].startswith("221")
        server.wait_for_lines(rf": client=unknown\[{CLIENT}\]", 2)


def test_postfix_learns_it_after_a_loss_from_a_client_with_helo(start_before, tmp_path):
    with Sink() as sink, granting_postfix(tmp_path, sink) as server:
        cluster, door = start_before(server, "xclient: on")
        with in_tls(cluster, door, CLIENT) as client:
            assert client.ask("HELO client.example")[0].startswith("250 ")
            cluster.kill(settled(cluster, client.sock)["owner"])
            send_mail(client)
        server.wait_for_lines(rf": client=unknown\[{CLIENT}\]", 1)


def test_without_a_grant_of_xclient_a_postfix_that_must_know_its_clients_gets_no_mail(start_before, tmp_path):
    with Sink() as sink, Postfix(tmp_path, sink.address) as server:
        cluster, door = start_before(server, "xclient: on")
        with in_tls(cluster, door, CLIENT) as client:
            assert client.ask("EHLO client.example") == ["421 4.3.5 This address is not set up for mail"]
            assert client.ends() == ("fin", b"")
        lines = "".join(cluster.log(f"a{number}") for number in (1, 2, 3))
        assert re.search(r"error .*mail refused.*listener=mail backend=mail .*remedy=", lines)


def test_a_postfix_that_grants_no_xclient_gets_none_if_clients_may_be_hidden(start_before, tmp_path):
    with Sink() as sink, Postfix(tmp_path, sink.address) as server:
        cluster, door = start_before(server, "xclient: on", "client_address: hidden")
        assert source(door, "--starttls", "--ca", cluster.ca, "--source", CLIENT).counts["sent"] == 1
        server.wait_for_log(": client=")
        assert CLIENT not in server.log()


@pytest.mark.parametrize("how", ["plain", "login", "cram_md5"])
def test_auth_passes(how, start_before, tmp_path):
    with Sink() as sink, Exim(tmp_path, sink.address, options=LOGINS) as server:
        cluster, door = start_before(server)
        with smtplib.SMTP(*door, timeout=patience(30)) as client:
            client._host = "localhost"  # pylint: disable=protected-access  # the name that is verified
            client.starttls(context=cluster.context(alpn=()))
            client.ehlo()
            assert set(client.esmtp_features["auth"].split()) == {"PLAIN", "LOGIN", "CRAM-MD5"}
            client.user, client.password = "user", "wrong"
            with pytest.raises(smtplib.SMTPAuthenticationError):
                client.auth(how.upper().replace("_", "-"), getattr(client, f"auth_{how}"))
            client.password = "secret"
            assert client.auth(how.upper().replace("_", "-"), getattr(client, f"auth_{how}"))[0] == 235
            assert client.sendmail("a@b.example", ["c@d.example"], "x\r\n") == {}
        server.wait_for_log({"cram_md5": " A=cram:user "}.get(how, f" A={how}:user "))


def test_swaks_says_auth(start_before, tmp_path):
    with Sink() as sink, Exim(tmp_path, sink.address, options=LOGINS) as server:
        cluster, door = start_before(server)
        status, output = Room(tmp_path / "room").run(
            "swaks", "--server", "{}:{}".format(*door), "--tls", "--tls-ca-path", cluster.ca, "--from", "a@b.example", "--to",
            "c@d.example", "--auth", "PLAIN", "--auth-user", "user", "--auth-password", "secret", timeout=patience(60))
        assert status == 0, output
        server.wait_for_log(" A=plain:user ")


def test_behind_auth_a_loss_is_told(start_before, tmp_path):
    with Sink() as sink, Exim(tmp_path, sink.address, options=LOGINS) as server:
        cluster, door = start_before(server)
        with secured(cluster, door) as client:
            assert client.ask("AUTH PLAIN AHVzZXIAc2VjcmV0")[0].startswith("235")
            send_mail(client)
            cluster.kill(settled(cluster, client.sock)["owner"])
            client.send("NOOP\r\n")
            assert client.reply() == [LOST]
            assert client.ends() == ("fin", b"")
