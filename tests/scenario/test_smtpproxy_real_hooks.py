"""Real milters, of Debian: opendkim and rspamd. Each accepts a mail, refuses one and adds a field, and no body is altered."""

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

BODY = "Text\r\n..dots\r\n\r\n"
KEY_FILE, KEYS = "/etc/mail/key", "/etc/mail/keys"
OPENDKIM = """\
Socket inet:{port}@127.0.0.1
Mode {mode}
InternalHosts /etc/mail/internal
Domain example.org
Selector test
On-BadSignature reject
{options}
"""

# It needs no other program, no DNS and no rules: its verdict is that of the patterns for tests, which are in each mail that it judges.
RSPAMD = """\
options {{
    filters = "";
    enable_test_patterns = true;
    gtube_patterns = "all";
    url_tld = "/etc/mail/domains";
    disable_hyperscan = true;
    tempdir = hs_cache_dir = "/run";
    cache_file = "/run/symbols";
    history_file = "/run/history";
    dynamic_conf = "/run/dynamic";
    control_socket = "/run/control";
    dns {{ nameserver = ["127.0.0.1:9"]; timeout = 0.1s; retransmits = 1; }}
}}
logging {{ type = "console"; level = "info"; }}
lang_detection {{ languages = "/nonexistent"; }}
worker "rspamd_proxy" {{
    bind_socket = "127.0.0.1:{port}";
    milter = yes;
    count = 1;
    upstream "local" {{ default = yes; self_scan = yes; }}
}}
actions {{ reject = 15; add_header = 6; }}
"""
PATTERN = "JS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X"


def listens(address):
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(address, 1):
        return True
    return False


@contextlib.contextmanager
def runs(folder, command, files):
    """The program in a room, with these files in /etc/mail, when it listens. `{port}` in a text becomes its port. Its address."""
    room, port = Room(folder), free_ports(1)[0]
    for name, text in files.items():
        room.etc(f"mail/{name}", text.replace("{port}", str(port)), 0o600 if name == "key" else 0o644)
    process = room.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: listens(("127.0.0.1", port)) or process.poll() is not None, patience(20), f"{command[0]} listens")
        assert process.poll() is None, process.stdout.read()
        yield "127.0.0.1", port
    finally:
        process.kill()
        process.wait()


def opendkim(folder, mode, internal, options, **files):
    config = OPENDKIM.format(port="{port}", mode=mode, options=options)
    return runs(folder, ("opendkim", "-f", "-x", "/etc/mail/opendkim.conf"), {"internal": internal, "opendkim.conf": config, **files})


def rspamd(folder):
    config = RSPAMD.format(port="{port}")
    return runs(folder, ("rspamd", "-f", "-i", "-c", "/etc/mail/rspamd.conf"), {"rspamd.conf": config, "domains": "org\n"})


@pytest.fixture(name="milters", scope="module")
def _milters(tmp_path_factory):
    """Of opendkim one that signs and one that verifies, and rspamd: addresses by name."""
    for name in "sbin/opendkim", "bin/rspamd":
        assert (tools() / "usr" / name).exists(), "front/packages.sh: mail_get"
    folder = tmp_path_factory.mktemp("milters")
    key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, check=True, text=True).stdout
    public = subprocess.run(["openssl", "rsa", "-pubout"], input=key, capture_output=True, check=True, text=True).stdout
    record = "v=DKIM1; k=rsa; p=" + "".join(public.splitlines()[1:-1])
    with opendkim(folder / "signs", "s", "0.0.0.0/0\n", f"KeyFile {KEY_FILE}", key=key) as signs, \
            opendkim(folder / "verifies", "v", "127.0.0.2\n", f"TestPublicKeys {KEYS}",
                     keys=f"test._domainkey.example.org {record}\n") as verifies, \
            rspamd(folder / "rspamd") as judges:
        yield {"signs": signs, "verifies": verifies, "rspamd": judges}


@contextlib.contextmanager
def room(folder, milters, *names):
    """(the receiver, smtpproxy, its client)"""
    folder = folder / "-".join(names)
    folder.mkdir()
    folder.chmod(0o777)
    hooks = [{"name": name, "address": text_of(milters[name])} for name in names]
    with ScriptedReceiver() as receiver, \
            Proxy(folder, next_hop=receiver.address, hooks=hooks, listener={"hooks": list(names)}) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        yield receiver, proxy, client


def send(client, head="", body=BODY):
    """The reply to the message."""
    assert client.say("MAIL FROM:<a@example.org>").startswith("250 ")
    assert client.say("RCPT TO:<c@d.example>").startswith("250 ")
    assert client.say("DATA").startswith("354 ")
    client.send(f"{head}From: a@example.org\r\nTo: c@d.example\r\nSubject: one\r\n\tmore\r\nMessage-ID: <1@example.org>\r\n\r\n{body}.\r\n")
    return client.reply()


def parts(content):
    """(the header on one line for each field, the body)"""
    head, _, body = content.partition(b"\r\n\r\n")
    return re.sub(r"\r\n[ \t]+", " ", head.decode()), body.decode()


def test_opendkim_signs_and_opendkim_verifies(milters, open_folder):
    with room(open_folder, milters, "signs", "verifies") as (receiver, proxy, client):
        for _ in range(3):
            assert send(client) == "250 2.0.0 taken"
        assert len(receiver.contents) == 3
        for head, body in map(parts, receiver.contents):
            assert re.search(r"^DKIM-Signature: v=1; a=rsa-sha256;", head, re.M), head
            assert re.search(r"^Authentication-Results: .*\bdkim=pass\b", head, re.M), head
            assert body == BODY
        counted = counters(proxy)
        assert (counted["hooks_changed"], counted["hooks_failed"]) == (6, 0)


def test_opendkim_accepts_an_unsigned_mail_and_refuses_a_signature_that_does_not_fit(milters, open_folder):
    with room(open_folder, milters, "signs") as (receiver, _, client):
        assert send(client) == "250 2.0.0 taken"
        signed = receiver.contents[0].decode()
    signature = signed[:re.search(r"^From:", signed, re.M).start()]
    with room(open_folder, milters, "verifies") as (receiver, proxy, client):
        assert send(client, signature) == "250 2.0.0 taken"
        assert send(client) == "250 2.0.0 taken"
        assert send(client, signature, "Other text\r\n").startswith("550 5.7.0 ")
        heads, bodies = zip(*map(parts, receiver.contents))
        assert "dkim=pass" in heads[0] and "dkim=" not in heads[1] and bodies == (BODY, BODY)
        counted = counters(proxy)
        assert (counted["hooks_refused"], counted["hooks_failed"]) == (1, 0)


def test_rspamd_accepts_refuses_and_adds_a_field(milters, open_folder):
    with room(open_folder, milters, "rspamd") as (receiver, proxy, client):
        assert send(client) == "250 2.0.0 taken"
        assert send(client, body=f"Y{PATTERN}\r\n..dots\r\n") == "250 2.0.0 taken"
        assert send(client, body=f"X{PATTERN}\r\n").startswith("554 5.7.1 ")
        heads, bodies = zip(*map(parts, receiver.contents))
        assert bodies == (BODY, f"Y{PATTERN}\r\n..dots\r\n")
        assert "X-Spam" not in heads[0] and "X-Spam: Yes" in heads[1].splitlines()
        counted = counters(proxy)
        assert (counted["hooks_changed"], counted["hooks_refused"], counted["hooks_failed"]) == (1, 1, 0)
