"""Real mail servers and clients, with smtp-source in front and smtp-sink at the end: mail arrives byte for byte, and sessions
resume."""

import json
import smtplib
import ssl
import subprocess

import pytest

from bench.experiments.mail_room import Room, obstacle
from tests.lib.build import binary, patience, scaled
from tests.lib.mail import Sink, source
from tests.lib.mail_servers import SERVERS, Exim, OpenSMTPD, Postfix, wait_for_end
from tests.lib.odd_mail import ODD
from tests.lib.tls_server import self_signed

pytestmark = [pytest.mark.root, pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))]
versions = pytest.mark.parametrize("version", ["1.2", "1.3"])
sanitized_with_one_version = pytest.mark.sanitized_with("test_sl resumes sessions of both versions", version="1.3")

MAILS = 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(name="odd")
def odd_file(tmp_path):
    path = tmp_path / "odd.eml"
    path.write_bytes(ODD)
    return str(path)


def assert_whole(sink, mails):
    assert sink.counts["mails"] == sink.counts["right"] == mails, sink.result.seen()
    assert sink.counts["duplicates"] == sink.counts["bad_commands"] == 0, sink.result.seen()


def tls_options(certificate):
    return "--cert", str(certificate[0]), "--key", str(certificate[1])


# smtp-source, a server, smtp-sink

@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("relay_tls", ["none", "encrypt"])
def test_a_server_passes_mail_on_byte_for_byte(server, relay_tls, certificate, odd, tmp_path):
    ca = certificate[0] if relay_tls == "encrypt" else None
    with Sink(*tls_options(certificate), "--mails", str(MAILS)) as sink, server(tmp_path, sink.address, relay_tls, ca) as peer:
        result = source(peer.address, "-m", str(MAILS), "-s", "4", "-F", odd)
        assert result.counts["sent"] == MAILS, (result.errors, peer.log()[-2000:])
        wait_for_end(sink, peer)
    assert_whole(sink, MAILS)
    assert (sink.counts["full"] > 0) == (relay_tls == "encrypt")


@pytest.mark.parametrize("options", [["-d", "--pipelining"], ["--chunking", "--chunk", "1000"], ["-r", "5", "--pipelining"]], ids=" ".join)
@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_a_server_takes_groups_and_chunks(server, options, odd, tmp_path):
    recipients = 5 if "-r" in options else 1
    with Sink("--mails", str(MAILS)) as sink, server(tmp_path, sink.address) as peer:
        result = source(peer.address, "-m", str(MAILS), "-s", "4", "-F", odd, *options)
        assert result.counts["sent"] == MAILS, (result.errors, peer.log()[-2000:])
        wait_for_end(sink, peer)
    assert_whole(sink, MAILS)
    assert sink.counts["recipients"] == MAILS * recipients


@pytest.mark.limit(240)
@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_a_server_passes_fifty_megabytes_on(server, certificate, tmp_path):
    length = scaled(50_000_000)
    with Sink(*tls_options(certificate), "--mails", "1") as sink, server(tmp_path, sink.address, "encrypt", certificate[0]) as peer:
        result = source(peer.address, "-l", str(length))
        assert result.counts["sent"] == 1, (result.errors, peer.log()[-2000:])
        wait_for_end(sink, peer)
    assert_whole(sink, 1)
    assert sink.counts["bytes"] > length


@sanitized_with_one_version
@versions
@pytest.mark.parametrize("server", [Postfix, Exim], ids=lambda s: s.name)
def test_a_server_resumes_our_sessions(server, version, certificate, tmp_path):
    with Sink("--mails", str(MAILS)) as sink, server(tmp_path, sink.address, certificate=certificate) as peer:
        result = source(peer.address, "-m", str(MAILS), "-s", "2", "--starttls", "--resume", "--ca", str(certificate[0]),
                        "--tls-version", version)
        assert result.counts["sent"] == MAILS, (result.errors, peer.log()[-2000:])
        wait_for_end(sink, peer)
    assert_whole(sink, MAILS)
    assert result.counts["full"] + result.counts["resumed"] == MAILS
    assert result.counts["resumed"] >= MAILS // 4 and all(version in suite for suite in result.suites), result.seen()


# Servers as clients of a front

@sanitized_with_one_version
@versions
@pytest.mark.parametrize("server", [Postfix, Exim], ids=lambda s: s.name)
def test_servers_resume_at_a_front(server, version, start_front, odd, tmp_path):
    with start_front("--mails", str(MAILS)) as front:
        with server(tmp_path, front.address, "encrypt", front.ca, version=version) as peer:
            assert source(peer.address, "-m", str(MAILS), "-F", odd).counts["sent"] == MAILS
            wait_for_end(front.sink, peer)
            log = peer.log()
    assert_whole(front.sink, MAILS)
    full, resumed = front.handshakes()
    assert full + resumed == MAILS and resumed >= MAILS // 2, (full, resumed)
    assert f"TLS{'v' if server is Postfix else ''}{version}" in log


def test_opensmtpd_delivers_at_a_front(start_front, odd, tmp_path):
    """It verifies the name, and sends several mails on a connection."""
    with start_front("--mails", str(MAILS)) as front, OpenSMTPD(tmp_path, front.address, "encrypt", front.ca) as peer:
        assert source(peer.address, "-m", str(MAILS), "-F", odd).counts["sent"] == MAILS
        wait_for_end(front.sink, peer)
    assert_whole(front.sink, MAILS)
    assert sum(front.handshakes()) == front.sink.counts["connections"]


@pytest.mark.parametrize("server", [Postfix, Exim, OpenSMTPD], ids=lambda s: s.name)
def test_servers_that_verify_another_name_send_nothing(server, start_front, certificate, tmp_path):
    with start_front() as front, server(tmp_path, front.address, "encrypt", certificate[0]) as peer:
        assert source(peer.address).counts["sent"] == 1
        peer.wait_for_lines(peer.not_verified, 1)
    assert front.sink.counts["mails"] == 0


# Other clients of a front

def test_swaks_is_served(start_front, tmp_path):
    with start_front() as front:
        status, output = Room(tmp_path / "room").run(
            "swaks", "--server", "{}:{}".format(*front.address), "--tls", "--tls-ca-path", front.ca, "--from", "a@b.example",
            "--to", "c@d.example,e@f.example", "--body", ".\n..\nx", timeout=patience(60))
        assert status == 0, output
    assert front.sink.counts["recipients"] == 2 and front.handshakes() == (1, 0)


@sanitized_with_one_version
@versions
def test_go_is_served_and_resumes(start_front, version):
    with start_front() as front:
        done = subprocess.run([binary("tests/lib/mailer"), "-ca", front.ca, "-max", version, "-count", "5", "{}:{}".format(*front.address)],
                              input=ODD, stdout=subprocess.PIPE, check=True, timeout=patience(60))
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["resumed"] for r in seen] == [False] + 4 * [True] and {r["version"] for r in seen} == {version}
    assert front.handshakes() == (1, 4)


def test_python_is_served(start_front, tmp_path):
    dump = tmp_path / "dump"
    with start_front("--dump", str(dump)) as front:
        context = ssl.create_default_context(cafile=front.ca)
        with smtplib.SMTP(*front.address, timeout=patience(30)) as client:
            client._host = "localhost"  # pylint: disable=protected-access  # the name that is verified
            client.starttls(context=context)
            assert client.sendmail("a@b.example", ["c@d.example"], ODD, mail_options=["BODY=8BITMIME"]) == {}
    assert ODD in dump.read_bytes()


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_resumes(start_front, version, tmp_path):
    session = str(tmp_path / "session")
    with start_front() as front:
        for number, more in enumerate((["-sess_out", session], ["-sess_in", session])):
            done = subprocess.run(["openssl", "s_client", "-starttls", "smtp", version, "-CAfile", front.ca, "-verify_return_error",
                                   "-servername", "localhost", "-crlf", "-ign_eof", "-connect", "{}:{}".format(*front.address), *more],
                                  input=b"EHLO x\nNOOP\nQUIT\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                                  timeout=patience(30))
            assert (b"\nReused, " in done.stdout) == (number == 1) and b"221 2.0.0" in done.stdout
    assert front.handshakes() == (1, 1)


@pytest.mark.limit(240)
def test_fifty_megabytes_go_through_a_front(start_front):
    with start_front("--mails", "1") as front:
        result = source(front.address, "-l", str(scaled(50_000_000)), "--starttls", "--ca", front.ca)
    assert result.status == 0 and front.sink.counts["right"] == 1
