"""The event log of smtpproxy: one JSON line for each transaction."""

import json
import pathlib
import re
import signal
import socket
import struct
import time

import pytest

from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import counters
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import SIGNATURE, Talk
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

ROOT = pathlib.Path(__file__).parents[2]
BODY = "Subject: x\r\n\r\nx\r\n.\r\n"


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_transaction_has_its_record(tmp_path):
    chain, key = self_signed(tmp_path)
    path = tmp_path / "events.json"
    with Sink("--cert", str(chain), "--key", str(key), "--reply", "rcpt:550 5.1.1 No:50", "--seed", "1") as sink:
        with Proxy(tmp_path, next_hop=sink.address, events=str(path)) as proxy, Talk(proxy.address, unique_id=b"\x0a") as client:
            client.ehlo()
            for number in range(1, 4):
                client.say(f"MAIL FROM:<a@b> XCSSLTX=0a/{number}")
                replies = [client.say(f"RCPT TO:<{number}{i}@d>") for i in range(8)]
                if number == 2:
                    client.say("RSET")
                    continue
                assert client.say("DATA").startswith("354 ")
                client.send(BODY)
                assert client.reply().startswith("250 ")
            wait_until(lambda: len(records(path)) == 3, patience(10), "three records")
    first, second, third = records(path)
    assert [r["outcome"] for r in (first, second, third)] == ["accepted", "aborted", "accepted"]
    assert [r["n"] for r in (first, second, third)] == [1, 2, 3]
    assert (first["client"], first["ehlo"], first["from"]) == ("192.0.2.1:1000", "client.example", "a@b")
    assert first["destination"] == "{}:{}".format(*sink.address) and first["tls"]["version"] == "TLSv1.3"
    assert first["transaction"] == "0a/1" and (first["code"], first["text"]) == (250, "2.0.0 Ok")
    assert [r["to"] for r in third["recipients"]] == [f"3{i}@d" for i in range(8)]
    assert [r["code"] for r in third["recipients"]] == [int(reply[:3]) for reply in replies]
    assert {r.get("enhanced") for r in third["recipients"]} >= {"5.1.1"}


def test_refusals_and_doubts_are_told_apart(tmp_path):
    path = tmp_path / "events.json"

    def one(folder, *rule):
        (tmp_path / folder).mkdir()
        with Sink(*rule) as sink, Proxy(tmp_path / folder, next_hop=sink.address, events=str(path)) as proxy:
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                client.say("MAIL FROM:<>")
                client.say("RCPT TO:<c@d>")
                client.say("DATA")
                client.send(BODY)
                client.reply()
        return records(path)[-1]

    assert one("a", "--reply", "end:550 5.7.1 Spam")["outcome"] == "refused"
    doubt = one("b", "--drop", "end")
    assert doubt["outcome"] == "in doubt" and doubt["from"] == ""
    refused = one("c", "--reply", "mail:553 5.1.8 No such sender")
    assert (refused["outcome"], refused["code"]) == ("refused", 553)


def test_a_moved_event_log_is_opened_again(tmp_path, open_folder):
    path = open_folder / "events.json"
    with Sink() as sink, Proxy(tmp_path, next_hop=sink.address, events=str(path)) as proxy:
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            for expected in ("old", "new"):
                client.mail()
                client.send(BODY)
                client.reply()
                if expected == "old":
                    path.rename(open_folder / "old.json")
                    proxy.process.send_signal(signal.SIGHUP)
                    wait_until(path.exists, patience(10), "the log is open again")
    assert len(records(open_folder / "old.json")) == len(records(path)) == 1


def test_mail_without_content_fills_no_log_and_ends_the_session(tmp_path):
    """MAIL and RSET, again and again. Mail with content has its records meanwhile, and begins the count anew."""
    with ScriptedReceiver({"RCPT TO:<no@d>": "550 5.1.1 No"}) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        for number in range(100):
            assert client.say(f"MAIL FROM:<{number}@b>").startswith("250 ")
            if number == 0:
                client.say("RCPT TO:<no@d>")
            client.say("RSET")
        assert client.say("MAIL FROM:<a@b>") == "421 4.7.0 Too many commands without mail" and client.is_closed()
        assert [event["from"] for event in proxy.events()] == [f"{number}@b" for number in range(20)]
        assert counters(proxy)["events_left_out"] == 80
        assert "from=0@b recipients=1 to={}:{} outcome=aborted code=550 text=\"5.1.1 No\"".format(*receiver.address) in proxy.log()
        with Talk(proxy.address, source="192.0.2.1") as other:
            other.ehlo()
            for content in [BODY], [BODY], ["BDAT 3\r\nx\r\n", "BDAT 0 LAST\r\n"], ["BDAT 3\r\nx\r\n", "RSET\r\n"], [BODY]:
                for _ in range(40):
                    other.say("MAIL FROM:<a@b>")
                    other.say("RSET")
                if content[0] == BODY:
                    other.mail()
                else:
                    other.say("MAIL FROM:<a@b>")
                    other.say("RCPT TO:<c@d>")
                for part in content:
                    other.send(part)
                    assert other.reply().startswith("250 ")
            assert other.say("NOOP").startswith("250 ")


@pytest.fixture
def slow_disk(request, open_folder, monkeypatch):
    """Each record takes so many milliseconds to write."""
    (open_folder / "faults").write_text(f"events.write delay {request.param}\n")
    monkeypatch.setenv("CSSL_FAULTS", str(open_folder / "faults"))


@pytest.mark.usefixtures("test_points", "slow_disk")
@pytest.mark.parametrize("slow_disk", [60000], indirect=True)
def test_a_stop_does_not_wait_for_a_disk_that_stalls(tmp_path):
    with Sink() as sink, Proxy(tmp_path, next_hop=sink.address) as proxy:
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            client.mail()
            client.send(BODY)
            assert client.reply().startswith("250 ")
        assert proxy.stop() == 0
        assert "event log not written in time records=1" in proxy.log()


@pytest.mark.usefixtures("test_points", "slow_disk")
@pytest.mark.parametrize("slow_disk", [200], indirect=True)
def test_a_slow_disk_holds_up_no_mail_and_a_stop_waits_for_it(tmp_path):
    with Sink() as sink, Proxy(tmp_path, next_hop=sink.address) as proxy:
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            began = time.monotonic()
            for _ in range(15):
                client.mail()
                client.send(BODY)
                assert client.reply().startswith("250 ")
            assert time.monotonic() - began < 2, "mail waits for the event log"
        assert proxy.stop() == 0
        assert [record["n"] for record in proxy.events()] == list(range(1, 16))


def tlv(number, value):
    return struct.pack("!BH", number, len(value)) + value


def header_with_tls():
    """As an agent of the cluster sends it, with the client's unique id."""
    facts = b"\1" + bytes(4) + tlv(0x21, b"TLSv1.3") + tlv(0x23, b"TLS_AES_128_GCM_SHA256")
    body = socket.inet_aton("192.0.2.1") + socket.inet_aton("192.0.2.2") + struct.pack("!HH", 1000, 25) + tlv(0x05, b"\x0a") + tlv(0x20, facts)
    return SIGNATURE + b"\x21\x11" + struct.pack("!H", len(body)) + body


def documented():
    """The members in the table of the document."""
    text = (ROOT / "doc" / "mail.md").read_text(encoding="utf-8").partition("## The event log")[2].partition("\n## ")[0]
    return {word for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for word in re.findall("`([a-z_]+)`", row)}


def test_a_full_record_has_all_members_that_the_document_describes(tmp_path):
    chain, key = self_signed(tmp_path)
    with Sink("--cert", str(chain), "--key", str(key)) as sink, Proxy(tmp_path, next_hop=sink.address) as proxy:
        with Talk(proxy.address, header=header_with_tls()) as client:
            client.ehlo()
            client.mail(" XCSSLTX=0a/1", [f"c{number}@d" for number in range(101)])
            client.send(BODY)
            assert client.reply().startswith("250 ")
        record, = proxy.events()
    assert record.keys() == documented()
    assert record["sender_tls"] == {"version": "TLSv1.3", "cipher": "TLS_AES_128_GCM_SHA256"}
    assert (len(record["recipients"]), record["more"]) == (100, 1)
    assert record["recipients"][0].keys() == {"to", "code", "enhanced", "text"}
