"""XCSSLTX (doc/xcssltx.md) as smtpproxy speaks it toward the cluster, in front of a receiver that does not know it."""

import contextlib

import pytest

from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.scripted_receiver import GATE, ScriptedReceiver
from tests.lib.smtp_control import states
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

ID = b"\x0a\x1b"
NAME = "0a1b"
BODY = "Subject: x\r\n\r\nbody\r\n.\r\n"


def named(number, of=NAME):
    return f" XCSSLTX={of}/{number}"


def question(number, key, of=NAME):
    return f"XCSSLTX {of}/{number} {key}"


def opened(proxy, unique_id=ID):
    """(client, key of its entry)."""
    client = Talk(proxy.address, unique_id=unique_id)
    return client, client.ehlo().get("XCSSLTX")


@contextlib.contextmanager
def proxied(tmp_path, *sink_options, **keys):
    with Sink(*sink_options) as sink, Proxy(tmp_path, next_hop=sink.address, **keys) as proxy:
        yield proxy, sink


@pytest.mark.parametrize("reply,mails", [("250 2.0.0 Ok", 1), ("550 5.7.1 No", 0), ("451 4.3.0 Later", 0)])
def test_a_decided_transaction_has_its_reply(tmp_path, reply, mails):
    rule = () if mails else ("--reply", f"end:{reply}")
    with proxied(tmp_path, *rule) as (proxy, sink):
        owner, key = opened(proxy)
        owner.mail(named(1))
        owner.send(BODY)
        assert owner.reply() == reply
        successor, same = opened(proxy)
        assert same == key
        assert successor.say(question(1, key)) == f"250 decided {reply}"
    assert sink.counts["mails"] == mails


@pytest.mark.parametrize("last", ["BDAT 18 LAST", "BDAT 18\r\n{}BDAT 0 LAST"], ids=["one chunk", "an empty last chunk"])
def test_a_message_in_chunks_has_its_reply(tmp_path, last):
    body = "Subject: x\r\n\r\nxx\r\n"
    assert len(body) == 18
    with proxied(tmp_path, "--delay", "decide:0.3") as (proxy, sink):
        owner, key = opened(proxy)
        owner.say(f"MAIL FROM:<a@b>{named(1)}")
        owner.say("RCPT TO:<c@d>")
        owner.send(last.format(body) + "\r\n" + ("" if "{}" in last else body))
        wait_until(lambda: "decides" in states(proxy), patience(10), "all was passed on")
        owner.close()
        successor, _ = opened(proxy)
        assert successor.say(question(1, key)) == "250 decided 250 2.0.0 Ok"
    assert sink.counts["mails"] == 1


@pytest.mark.parametrize("cut", range(5), ids=["before MAIL", "after MAIL", "after RCPT", "in the content", "before the last dot"])
def test_a_question_aborts_what_is_not_complete(tmp_path, cut):
    pieces = [f"MAIL FROM:<a@b>{named(1)}\r\n", "RCPT TO:<c@d>\r\n", "DATA\r\n", "Subject: x\r\n\r\nbody\r\n", ".\r\n"]
    with proxied(tmp_path) as (proxy, sink):
        owner, key = opened(proxy)
        for number, piece in enumerate(pieces[:cut]):
            owner.send(piece)
            if number < 3:
                owner.reply()
        successor, _ = opened(proxy)
        assert successor.say(question(1, key)) == "250 never"
        with contextlib.suppress(OSError):
            owner.send("".join(pieces[cut:]))
        assert owner.is_closed()
        successor.mail(named(2))
        successor.send(BODY)
        assert successor.reply().startswith("250 ")
    assert sink.counts["mails"] == 1


@pytest.mark.parametrize("owner_is_lost", [True, False])
def test_a_question_waits_for_the_decision(tmp_path, owner_is_lost):
    with proxied(tmp_path, "--delay", "decide:0.5") as (proxy, sink):
        owner, key = opened(proxy)
        owner.mail(named(1))
        owner.send(BODY)
        successor, _ = opened(proxy)
        if owner_is_lost:
            owner.close()
        assert successor.say(question(1, key)) == "250 decided 250 2.0.0 Ok"
        if not owner_is_lost:
            assert owner.reply().startswith("250 ")
            assert owner.reply().startswith("421 ")
    assert sink.counts["mails"] == 1


def test_a_message_whose_receiver_was_lost_has_a_temporary_failure(tmp_path):
    with proxied(tmp_path, "--drop", "end") as (proxy, _):
        owner, key = opened(proxy)
        owner.mail(named(1))
        owner.send(BODY)
        owner.close()
        successor, _ = opened(proxy)
        assert successor.say(question(1, key)).startswith("250 decided 421 4.4.2 ")


def test_a_last_chunk_out_of_sequence_decides_nothing(tmp_path):
    """503 leaves the transaction open (RFC 3030 2). The next last chunk decides."""
    script = {"chunk": ("503 5.5.1 not yet", "250 2.0.0 taken")}
    with ScriptedReceiver(script) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy:
        owner, key = opened(proxy)
        owner.say(f"MAIL FROM:<a@b>{named(1)}")
        owner.say("RCPT TO:<c@d>")
        owner.send("BDAT 4 LAST\r\nx: y")
        assert owner.reply().startswith("503 ")
        owner.send("BDAT 4 LAST\r\nx: z")
        assert owner.reply() == "250 2.0.0 taken"
        wait_until(proxy.events, patience(10), "the record")
        assert [record["outcome"] for record in proxy.events()] == ["accepted"]
        successor, _ = opened(proxy)
        assert successor.say(question(1, key)) == "250 decided 250 2.0.0 taken"


@pytest.mark.parametrize("owner_is_lost", [True, False])
def test_a_question_about_a_last_chunk_that_comes_out_of_sequence_ends_the_mail(tmp_path, owner_is_lost):
    with ScriptedReceiver({"chunk": GATE + "503 5.5.1 not yet"}) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy:
        owner, key = opened(proxy)
        owner.say(f"MAIL FROM:<a@b>{named(1)}")
        owner.say("RCPT TO:<c@d>")
        owner.send("BDAT 4 LAST\r\nx: y")
        wait_until(lambda: "decides" in states(proxy), patience(10), "all was passed on")
        if owner_is_lost:
            owner.reset()
            wait_until(lambda: "alone" in states(proxy), patience(10), "the owner is lost")
        successor, _ = opened(proxy)
        successor.send(question(1, key) + "\r\n")
        wait_until(lambda: "asks" in states(proxy), patience(10), "the question waits")
        receiver.open_gate()
        assert successor.reply() == "250 never"
        assert owner_is_lost or owner.reply().startswith("503 ")
        assert owner_is_lost or owner.reply().startswith("421 ")


@pytest.mark.parametrize("beside", ["FUTURE=1{}", "{} FUTURE", "X==y{}"], ids=["in front", "behind", "malformed"])
def test_a_name_is_read_beside_parameters_that_are_not_known(tmp_path, beside):
    with ScriptedReceiver() as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy:
        owner, key = opened(proxy)
        owner.mail(" " + beside.format(named(1)))
        owner.send(BODY)
        assert owner.reply().startswith("250 ")
        successor, _ = opened(proxy)
        assert successor.say(question(1, key)).startswith("250 decided 250 ")
        stranger = Talk(proxy.address, source="192.0.2.1")
        stranger.ehlo()
        assert stranger.say(f"MAIL FROM:<a@b> {beside.format(named(1))}").startswith("555 ")
        assert stranger.say("MAIL FROM:<a@b> FUTURE=1 REQUIRETLS").startswith("530 ")
    mail, = (command for _, command in receiver.heard if command.startswith("MAIL "))
    assert "XCSSLTX" not in mail and mail.split()[2] in ("FUTURE=1", "FUTURE", "X==y")


def test_a_mail_that_waits_for_its_turn_can_be_fenced(tmp_path):
    with proxied(tmp_path, limits={"connections_per_destination": 1}) as (proxy, sink):
        busy = Talk(proxy.address, unique_id=b"\x01")
        busy.ehlo()
        busy.mail()
        owner, key = opened(proxy)
        owner.send(f"MAIL FROM:<a@b>{named(1)}\r\n")
        successor, _ = opened(proxy)
        # the question overtakes the MAIL if that was not read yet: then it is refused afterwards, which is as good
        assert successor.say(question(1, key)) == "250 never"
        assert owner.rest() == b"" or owner.is_closed()
        busy.send(BODY)
        assert busy.reply().startswith("250 ")
    assert sink.counts["mails"] == 1


def test_decisions_are_forgotten_with_their_entry_and_with_the_process(tmp_path):
    with proxied(tmp_path, limits={"transactions": 1}) as (proxy, _):
        owner, key = opened(proxy)
        owner.mail(named(1))
        owner.send(BODY)
        owner.reply()
        owner.say("QUIT")
        owner.close()
        wait_until(lambda: opened(proxy, b"\x77")[1], patience(10), "there is room for another id")
    again = tmp_path / "again"
    again.mkdir()
    with proxied(again) as (proxy, _):
        successor, other = opened(proxy)
        assert other != key
        assert successor.say(question(1, key)) == "250 unknown"


@pytest.mark.parametrize("unique_id", [None, b"", b"x" * 33], ids=["none", "empty", "too long"])
def test_without_an_id_the_extension_does_not_exist(tmp_path, unique_id):
    with proxied(tmp_path) as (proxy, _):
        client = Talk(proxy.address, unique_id=unique_id)
        assert "XCSSLTX" not in client.ehlo()
        assert client.say(f"MAIL FROM:<a@b>{named(1)}").startswith("555 ")
        assert client.say(question(1, "k")).startswith("550 5.7.0 ")


def test_questions_out_of_place_are_refused(tmp_path):
    with proxied(tmp_path) as (proxy, _):
        client, key = opened(proxy)
        assert client.say("XCSSLTX x").startswith("501 ")
        assert client.say(question(1, key, of="ffff")).startswith("550 5.7.0 ")
        assert client.say(f"MAIL FROM:<a@b>{named(1, of='ffff')}").startswith("550 5.7.0 ")
        assert client.say(f"MAIL FROM:<a@b>{named(5)}").startswith("250 ")
        assert client.say(question(1, key)).startswith("503 ")
        assert client.say("RSET").startswith("250 ")
        assert client.say(question(5, key)) == "250 never"
        assert client.say(f"MAIL FROM:<a@b>{named(5)}").startswith("503 ")
        assert client.say(f"MAIL FROM:<a@b>{named(6)}").startswith("250 ")
        client.close()
