"""XCSSLTX across `smtpproxy --replace`: the new process answers questions about transactions that were named in the old one."""

import contextlib
import json
import signal

import pytest

from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.smtp_control import ask, states
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

ID, OTHER = b"\x0a\x1b", b"\x0c\x2d"
NAME = "0a1b"
BODY = "Subject: x\r\n\r\nbody\r\n.\r\n"


def opened(proxy, unique_id=ID):
    """(client, key of its entry)."""
    client = Talk(proxy.address, unique_id=unique_id)
    return client, client.ehlo().get("XCSSLTX")


def asked(proxy, number, key, name=NAME):
    """(client, the answer to its question)."""
    client, own = opened(proxy)
    assert own != key
    return client, client.say(f"XCSSLTX {name}/{number} {key}")


@contextlib.contextmanager
def proxied(folder, *sink_options, **keys):
    with Sink(*sink_options) as sink, Proxy(folder, next_hop=sink.address, handover=str(folder / "handover.sock"), **keys) as proxy:
        yield proxy, sink


def deliver(client, number):
    client.mail(f" XCSSLTX={NAME}/{number}")
    client.send(BODY)
    return client.reply()


@pytest.mark.parametrize("ends", [False, True], ids=["the old one still has a session", "the old one has ended"])
def test_a_decision_of_the_old_process_is_known(open_folder, ends):
    with proxied(open_folder) as (proxy, sink):
        owner, key = opened(proxy)
        assert deliver(owner, 1).startswith("250 ")
        stays, _ = opened(proxy, OTHER)
        owner.close()
        wait_until(lambda: json.loads(ask(proxy, "/v1/status"))["sessions"] == 1, patience(10), "the owner is gone")
        old = proxy.replace()
        if ends:
            stays.close()
            assert old.wait(patience(20)) == 0
        client, answer = asked(proxy, 1, key)
        assert answer == "250 decided 250 2.0.0 Ok"
        own = client.ehlo()["XCSSLTX"]
        assert client.say(f"XCSSLTX {NAME}/1 {own}") == answer, "its sender knows only the new key"
        for known in (key, own):
            assert client.say(f"XCSSLTX {NAME}/2 {known}") == "250 never"
        assert deliver(client, 3).startswith("250 ")
        client.close()
        stays.close()
        assert old.wait(patience(20)) == 0
    assert sink.counts["mails"] == 2


def test_a_question_waits_for_a_decision_in_the_old_process(open_folder):
    with proxied(open_folder, "--delay", "decide:5") as (proxy, sink):
        owner, key = opened(proxy)
        owner.mail(f" XCSSLTX={NAME}/1")
        owner.send(BODY)
        wait_until(lambda: "decides" in states(proxy), patience(10), "all was passed on")
        old = proxy.replace()
        client, answer = asked(proxy, 1, key)
        assert answer == "250 decided 250 2.0.0 Ok"
        assert owner.reply().startswith("250 ")
        assert owner.reply().startswith("421 ")  # the question was a fence
        owner.close()
        client.close()
        assert old.wait(patience(20)) == 0
    assert sink.counts["mails"] == 1


def test_a_question_aborts_what_is_not_complete_in_the_old_process(open_folder):
    with proxied(open_folder) as (proxy, sink):
        owner, key = opened(proxy)
        owner.mail(f" XCSSLTX={NAME}/1")
        owner.send("Subject: x\r\n\r\nbody\r\n")
        old = proxy.replace()
        client, answer = asked(proxy, 1, key)
        assert answer == "250 never"
        with contextlib.suppress(OSError):
            owner.send(".\r\n")
        assert owner.is_closed()
        assert deliver(client, 2).startswith("250 ")
        assert old.wait(patience(20)) == 0
        client.close()
    assert sink.counts["mails"] == 1


def test_the_ledger_goes_on_to_a_third_process(open_folder):
    with proxied(open_folder) as (proxy, _):
        owner, key = opened(proxy)
        assert deliver(owner, 1).startswith("250 ")
        first = proxy.replace()
        owner.close()
        assert first.wait(patience(20)) == 0
        second = proxy.replace()
        assert second.wait(patience(20)) == 0
        assert asked(proxy, 1, key)[1] == "250 decided 250 2.0.0 Ok"


def test_an_old_process_that_still_has_the_session_is_asked_by_a_third_one(open_folder):
    with proxied(open_folder) as (proxy, sink):
        owner, key = opened(proxy)
        owner.mail(f" XCSSLTX={NAME}/1")
        first = proxy.replace()
        between, _ = opened(proxy, OTHER)
        second = proxy.replace()
        assert asked(proxy, 1, key)[1] == "250 never"
        assert owner.is_closed()
        between.close()
        assert first.wait(patience(20)) == 0 and second.wait(patience(20)) == 0
    assert sink.counts["mails"] == 0


def test_transactions_that_a_killed_process_knew_are_unknown(open_folder):
    with proxied(open_folder) as (proxy, _):
        owner, key = opened(proxy)
        assert deliver(owner, 1).startswith("250 ")
        old = proxy.replace()
        old.send_signal(signal.SIGKILL)
        old.wait(patience(20))
        assert asked(proxy, 1, key)[1] == "250 unknown"
        assert owner.is_closed()


def test_a_key_that_no_process_gave_is_unknown(open_folder):
    with proxied(open_folder) as (proxy, _):
        owner, _ = opened(proxy)
        old = proxy.replace()
        assert asked(proxy, 1, "0123456789abcdef")[1] == "250 unknown"
        owner.close()
        assert old.wait(patience(20)) == 0
