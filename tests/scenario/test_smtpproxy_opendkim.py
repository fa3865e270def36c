"""A real milter: one opendkim signs the mail that smtpproxy relays, and a second one verifies what the first one did."""

import contextlib
import re
import socket
import subprocess

import pytest

from bench.experiments.mail_room import Room, obstacle, tools
from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import counters
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))]

CONFIG = """\
Socket inet:{port}@127.0.0.1
Mode {mode}
InternalHosts /etc/mail/internal
Domain example.org
Selector test
{options}
"""


def listens(address):
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(address, 1):
        return True
    return False


@contextlib.contextmanager
def opendkim(folder, mode, internal, options, **files):
    """Its address."""
    room, port = Room(folder), free_ports(1)[0]
    room.etc("mail/internal", internal)
    for name, text in files.items():
        room.etc(f"mail/{name}", text, 0o600)
    room.etc("mail/opendkim.conf", CONFIG.format(port=port, mode=mode, options=options))
    process = room.start("opendkim", "-f", "-x", "/etc/mail/opendkim.conf", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: listens(("127.0.0.1", port)) or process.poll() is not None, patience(20), "opendkim listens")
        assert process.poll() is None, process.stdout.read()
        yield "127.0.0.1", port
    finally:
        process.kill()
        process.wait()


@pytest.fixture(name="milters")
def _milters(tmp_path):
    """(signs, verifies)"""
    assert (tools() / "usr/sbin/opendkim").exists(), "front/packages.sh: mail_get"
    key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, check=True, text=True).stdout
    public = subprocess.run(["openssl", "rsa", "-pubout"], input=key, capture_output=True, check=True, text=True).stdout
    record = "v=DKIM1; k=rsa; p=" + "".join(public.splitlines()[1:-1])
    with opendkim(tmp_path / "signs", "s", "0.0.0.0/0\n", "KeyFile /etc/mail/key", key=key) as signs, \
            opendkim(tmp_path / "verifies", "v", "127.0.0.2\n", "TestPublicKeys /etc/mail/keys",
                     keys=f"test._domainkey.example.org {record}\n") as verifies:
        yield signs, verifies


def test_opendkim_signs_and_opendkim_verifies(milters, open_folder):
    hooks = [{"name": f"m{i}", "address": text_of(address)} for i, address in enumerate(milters)]
    with ScriptedReceiver() as receiver, \
            Proxy(open_folder, next_hop=receiver.address, hooks=hooks, listener={"hooks": ["m0", "m1"]}) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        for number in range(3):
            assert client.say("MAIL FROM:<a@example.org>").startswith("250 ")
            assert client.say("RCPT TO:<c@d.example>").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            client.send(f"From: a@example.org\r\nTo: c@d.example\r\nSubject: number\r\n\t{number}\r\n\r\nText\r\n..dots\r\n\r\n.\r\n")
            assert client.reply() == "250 2.0.0 taken"
        assert len(receiver.contents) == 3
        for content in receiver.contents:
            head, _, body = content.partition(b"\r\n\r\n")
            assert re.search(rb"^DKIM-Signature: v=1; a=rsa-sha256;", head, re.M), head
            assert re.search(rb"^Authentication-Results: .*\bdkim=pass\b", head.replace(b"\r\n\t", b" "), re.M), head
            assert body == b"Text\r\n..dots\r\n\r\n"
        counted = counters(proxy)
        assert (counted["hooks_changed"], counted["hooks_failed"]) == (6, 0)
