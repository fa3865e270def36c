"""XCSSLTX (doc/xcssltx.md) in smtp-sink: named transactions, and the answers to questions about them."""

import re

import pytest

from tests.lib.mail import Sink
from tests.lib.smtp_talk import Talk

ID = b"\x0a\x1b"
NAME = "0a1b"
BODY = "Subject: x\r\n\r\nbody\r\n.\r\n"
TRUSTS = "--proxy", "--xcssltx", "127.0.0.0/8"


def named(number, of=NAME):
    return f" XCSSLTX={of}/{number}"


def opened(sink, unique_id=ID):
    """(client, key of its entry)."""
    client = Talk(sink.address, unique_id=unique_id)
    return client, client.ehlo().get("XCSSLTX")


def question(number, key, of=NAME):
    return f"XCSSLTX {of}/{number} {key}"


def test_a_decided_transaction_has_its_reply():
    with Sink(*TRUSTS) as sink:
        owner, key = opened(sink)
        owner.mail(named(1))
        owner.send(BODY)
        assert owner.reply() == "250 2.0.0 Ok"
        successor, same = opened(sink)
        assert same == key
        assert successor.say(question(1, key)) == "250 decided 250 2.0.0 Ok"
    assert (sink.counts["mails"], sink.counts["tx_named"], sink.counts["tx_decided"]) == (1, 1, 1)


def test_a_refusal_is_a_decision():
    with Sink(*TRUSTS, "--reply", "end:550 5.7.1 No") as sink:
        owner, key = opened(sink)
        owner.mail(named(1))
        owner.send(BODY)
        assert owner.reply() == "550 5.7.1 No"
        successor, _ = opened(sink)
        assert successor.say(question(1, key)) == "250 decided 550 5.7.1 No"
    assert sink.counts["mails"] == 0


@pytest.mark.parametrize("cut", range(5), ids=["before MAIL", "after MAIL", "after RCPT", "in the content", "before the last dot"])
def test_a_question_aborts_what_is_not_complete(cut):
    """The rest of the transaction comes after the answer, as from a socket that was not read yet."""
    pieces = [f"MAIL FROM:<a@b>{named(1)}\r\n", "RCPT TO:<c@d>\r\n", "DATA\r\n", "Subject: x\r\n\r\nbody\r\n", ".\r\n"]
    with Sink(*TRUSTS) as sink:
        owner, key = opened(sink)
        for number, piece in enumerate(pieces[:cut]):
            owner.send(piece)
            assert number == 3 or owner.reply()
        successor, _ = opened(sink)
        assert successor.say(question(1, key)) == "250 never"
        assert owner.is_closed()
        successor.mail(named(2))
        successor.send(BODY)
        assert successor.reply() == "250 2.0.0 Ok"
    assert sink.counts["mails"] == 1 and sink.counts["tx_never"] == 1


def test_an_unread_transaction_in_the_old_socket_comes_to_nothing():
    """A whole transaction lies unread in the old connection, which was held back, when the question is answered."""
    with Sink(*TRUSTS, "--delay", "noop:0.3") as sink:
        owner, key = opened(sink)
        owner.send("NOOP\r\n" + f"MAIL FROM:<a@b>{named(1)}\r\nRCPT TO:<c@d>\r\nBDAT 4 LAST\r\nab\r\n")
        successor, _ = opened(sink)
        assert successor.say(question(1, key)) == "250 never"
        assert owner.is_closed()
    assert sink.counts["mails"] == 0


def test_a_number_is_used_once():
    with Sink(*TRUSTS) as sink:
        client, key = opened(sink)
        assert client.say(f"MAIL FROM:<a@b>{named(5)}")[:3] == "250"
        assert client.say("RSET")[:3] == "250"
        assert client.say(question(5, key)) == "250 never"
        assert client.say(question(9, key)) == "250 never"
        for number in (5, 4, 9):
            assert client.say(f"MAIL FROM:<a@b>{named(number)}") == "503 5.5.1 Bad sequence of commands"
        assert client.say(f"MAIL FROM:<a@b>{named(10)}")[:3] == "250"


@pytest.mark.parametrize("leaves", [False, True], ids=["the owner stays", "the owner is lost"])
def test_an_undecided_transaction_is_waited_for(leaves):
    with Sink(*TRUSTS, "--delay", "decide:0.5") as sink:
        owner, key = opened(sink)
        owner.mail(named(1))
        owner.send(BODY)
        if leaves:
            owner.close()
        successor, _ = opened(sink)
        assert successor.say(question(1, key)) == "250 decided 250 2.0.0 Ok"
        assert successor.say("NOOP")[:3] == "250"
    assert (sink.counts["mails"], sink.counts["tx_waited"], sink.counts["cut"]) == (1, 1, 0)


def test_a_transaction_behind_the_one_asked_about_is_aborted():
    with Sink(*TRUSTS, "--delay", "decide:0.3") as sink:
        owner, key = opened(sink)
        owner.send(f"MAIL FROM:<a@b>{named(1)}\r\nRCPT TO:<c@d>\r\nBDAT 4 LAST\r\nab\r\n"
                   f"MAIL FROM:<a@b>{named(2)}\r\nRCPT TO:<c@d>\r\nBDAT 4 LAST\r\nab\r\n")
        assert [owner.reply()[:3], owner.reply()[:3]] == ["250", "250"]
        successor, _ = opened(sink)
        assert successor.say(question(1, key)) == "250 decided 250 2.0.0 Ok"
        assert successor.say(question(2, key)) == "250 never"
    assert sink.counts["mails"] == 1


def test_a_connection_that_is_dropped_at_the_end_decides_nothing():
    with Sink(*TRUSTS, "--drop", "end") as sink:
        owner, key = opened(sink)
        owner.mail(named(1))
        owner.send(BODY)
        assert owner.is_closed()
        successor, _ = opened(sink)
        assert successor.say(question(1, key)) == "250 never"
    assert sink.counts["mails"] == 0


def test_a_server_that_started_anew_does_not_know():
    with Sink(*TRUSTS) as before:
        _, old_key = opened(before)
    with Sink(*TRUSTS) as sink:
        successor, key = opened(sink)
        assert key != old_key
        assert successor.say(question(1, old_key)) == "250 unknown"
    assert sink.counts["tx_unknown"] == 1


def test_an_id_that_was_evicted_is_unknown():
    with Sink(*TRUSTS, "--xcssltx-ids", "1") as sink:
        owner, key = opened(sink)
        owner.mail(named(1))
        owner.send(BODY)
        assert owner.reply()[:3] == "250"
        full, nothing = opened(sink, b"x")
        assert nothing is None
        full.close()
        assert owner.say("QUIT")[:3] == "221" and owner.is_closed()
        opened(sink, b"x")[0].say("QUIT")
        successor, new_key = opened(sink)
        assert new_key not in (None, key)
        assert successor.say(question(1, key)) == "250 unknown"
    assert sink.counts["tx_evicted"] == 2


def test_only_the_newest_decisions_are_kept():
    with Sink(*TRUSTS) as sink:
        client, key = opened(sink)
        for number in range(1, 7):
            client.mail(named(number))
            client.send(BODY)
            assert client.reply()[:3] == "250"
        assert [client.say(question(n, key)).split()[1] for n in (1, 2, 3, 6)] == ["unknown", "unknown", "decided", "decided"]


@pytest.mark.parametrize("options, proxied", [
    (["--proxy"], {"unique_id": ID}), (["--proxy", "--xcssltx", "10.0.0.0/8"], {"unique_id": ID}),
    ([*TRUSTS], {"source": "192.0.2.9"}), ([*TRUSTS], {"unique_id": b"a" * 33}), ([], {})],
    ids=["nobody is trusted", "others are trusted", "no id", "a long id", "no PROXY header"])
def test_others_are_told_of_nothing(options, proxied):
    with Sink(*options) as sink, Talk(sink.address, **proxied) as client:
        assert "XCSSLTX" not in client.ehlo()
        assert client.say(f"MAIL FROM:<a@b>{named(1)}") == "555 5.5.4 Parameter is not known"
        assert client.say(question(1, "aa")) == "550 5.7.0 Not authorized"


def test_an_asker_asks_about_its_own_id_only():
    with Sink(*TRUSTS) as sink:
        owner, key = opened(sink, b"other")
        owner.mail(named(1, b"other".hex()))
        asker, own = opened(sink)
        for line in (question(1, key, b"other".hex()), question(1, own, b"other".hex()), f"MAIL FROM:<a@b>{named(1, 'ff')}"):
            assert asker.say(line) == "550 5.7.0 Not authorized"
        owner.send(BODY)
        assert owner.reply()[:3] == "250"


@pytest.mark.parametrize("argument", ["", "0a1b/1", "0a1b/0 aa", "0a1b/1 a-a", "0a1b aa", "0a1b/1 aa bb"])
def test_bad_questions_are_refused(argument):
    with Sink(*TRUSTS) as sink:
        client, _ = opened(sink)
        assert re.match("501 5.5.4", client.say(f"XCSSLTX {argument}"))


def test_a_question_has_its_place():
    with Sink(*TRUSTS) as sink:
        with Talk(sink.address, unique_id=ID) as early:
            assert early.say(question(1, "aa"))[:3] == "503"
        client, key = opened(sink)
        assert client.say(f"MAIL FROM:<a@b>{named(1)}")[:3] == "250"
        assert client.say(question(1, key))[:3] == "503"
