"""Milters of smtpproxy: they see each transaction, refuse, put off, discard and change mail; one that fails is bounded."""

import contextlib
import json
import signal
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib import scripted_milter as sm
from tests.lib.build import patience
from tests.lib.mail import Sink, source
from tests.lib.scripted_milter import ScriptedMilter, add, change, insert
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import ask, counters, states
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

MAIL = "Subject: one\r\nX-Spam: a\r\nX-Spam: b\r\n\r\nline\r\n..dot\r\n.\r\n"
WIRE = b"Subject: one\r\nX-Spam: a\r\nX-Spam: b\r\n\r\nline\r\n..dot\r\n"


@pytest.fixture
def start(open_folder):
    """start(receiver, milter, ...): a proxy whose listener has these milters; the keys are of each hook."""
    def begin(receiver, *milters, keys=None, limits=None, **root):
        hooks = [{"name": f"m{number}", "address": text_of(m if isinstance(m, tuple) else m.address), "timeout": "10s", **(keys or {})}
                 for number, m in enumerate(milters)]
        return Proxy(open_folder, next_hop=receiver.address, hooks=hooks, listener={"hooks": [hook["name"] for hook in hooks]},
                     limits=limits or {}, **root)

    return begin


def send(proxy, text=MAIL):
    """One mail; the reply to its end."""
    with Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        client.mail()
        client.send(text)
        return client.reply()


def test_a_milter_sees_all_of_a_transaction(start):
    with ScriptedReceiver() as receiver, ScriptedMilter(flags=sm.LEADING_SPACE) as milter, start(receiver, milter) as proxy:
        assert send(proxy) == "250 2.0.0 taken"
        assert receiver.contents == [WIRE]
        wait_until(lambda: milter.letters().endswith("Q"), patience(5), "the end of the conversation")
        assert milter.letters() == "OCHMRTLLLNBEQ"
        assert milter.contents("C") == [b"[192.0.2.1]\x004\x03\xe8192.0.2.1\0"]
        assert (milter.contents("H"), milter.contents("M"), milter.contents("R")) == ([b"client.example\0"], [b"<a@b>\0"], [b"<c@d>\0"])
        assert milter.contents("L") == [b"Subject\0 one\0", b"X-Spam\0 a\0", b"X-Spam\0 b\0"]
        assert milter.contents("B") == [b"line\r\n.dot\r\n"]


def test_a_body_comes_in_chunks_and_a_milter_may_skip_the_rest(start):
    body = b"x" * 998 + b"\r\n"
    with Sink() as sink, ScriptedMilter({"B": b"s"}, flags=sm.SKIPS) as milter, start(sink, milter) as proxy:
        assert send(proxy, b"\r\n" + body * 300 + b".\r\n").startswith("250 ")
        assert [len(content) for content in milter.contents("B")] == [65535]
        milter.script = {}
        assert send(proxy, b"\r\n" + body * 300 + b".\r\n").startswith("250 ")
        assert b"".join(milter.contents("B")[1:]) == body * 300
    assert sink.counts["mails"] == 2


def test_fields_are_added_changed_and_deleted(start):
    changes = [insert(0, b"DKIM-Signature", b" v=1;\n\tb=x"), change(2, b"x-spam", b" c"), change(1, b"Subject", b""),
               change(1, b"X-New", b" n"), add(b"X-Last", b" z"), sm.CONTINUE]
    with ScriptedReceiver() as receiver, ScriptedMilter({"E": changes}, flags=sm.LEADING_SPACE) as milter, \
            start(receiver, milter) as proxy:
        assert send(proxy).startswith("250 ")
        assert receiver.contents == [b"DKIM-Signature: v=1;\r\n\tb=x\r\nX-Spam: a\r\nX-Spam: c\r\nX-New: n\r\nX-Last: z\r\n\r\n"
                                     b"line\r\n..dot\r\n"]
        assert counters(proxy)["hooks_changed"] == 1


def test_the_next_milter_sees_the_changes_of_the_one_before(start):
    with ScriptedReceiver() as receiver, ScriptedMilter({"E": [add(b"X-A", b"1"), sm.ACCEPT]}) as one, ScriptedMilter() as two, \
            start(receiver, one, two) as proxy:
        assert send(proxy, "S: x\r\n\r\n.\r\n").startswith("250 ")
        assert two.contents("L") == [b"S\0x\0", b"X-A\x001\0"]
        assert receiver.contents == [b"S: x\r\nX-A: 1\r\n\r\n"]


def test_a_body_without_a_header_stays_a_body(start):
    with ScriptedReceiver() as receiver, ScriptedMilter({"E": [add(b"X-A", b"1"), sm.CONTINUE]}) as milter, start(receiver, milter) as proxy:
        assert send(proxy, "no field\r\n.\r\n").startswith("250 ")
        assert receiver.contents == [b"X-A: 1\r\n\r\nno field\r\n"]


VERDICTS = [(sm.REJECT, "550 5.7.1 "), (sm.TEMPFAIL, "451 4.7.1 "), (b"y552 5.7.9 never\0", "552 5.7.9 never"),
            (b"y421 4.7.0 gone\0", "451 4.7.0 gone")]


@pytest.mark.parametrize("letter,verdict,reply", [(letter, *verdict) for letter in "CHMRTLNBE" for verdict in VERDICTS]
                         + [("E", b"q\0", "451 4.7.1 ")])
def test_a_verdict_at_each_step_is_the_senders_reply(start, letter, verdict, reply):
    """And the next transaction of the same session and receiver's connection is as new."""
    with ScriptedReceiver() as receiver, ScriptedMilter({letter: verdict}) as milter, start(receiver, milter) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        said = [client.say(line) for line in ("MAIL FROM:<a@b>", "RCPT TO:<c@d>", "DATA")]
        if said[2].startswith("354"):
            client.send(MAIL)
            said.append(client.reply())
        assert next(line for line in said if line[0] in "45").startswith(reply), said
        assert receiver.contents == []
        assert client.say("RSET").startswith("250 ")
        milter.script = {}
        client.mail()
        client.send(MAIL)
        assert client.reply() == "250 2.0.0 taken"
        assert receiver.contents == [WIRE]
        counted = counters(proxy)
        assert (counted["hooks_refused"], counted["hooks_deferred"]) == ((1, 0) if reply[0] == "5" else (0, 1))


def test_one_recipient_is_refused_and_the_others_get_the_mail(start):
    refuse_one = {"R": lambda content: sm.REJECT if b"bad" in content else sm.CONTINUE}
    with ScriptedReceiver() as receiver, ScriptedMilter(refuse_one) as milter, start(receiver, milter) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        client.send("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRCPT TO:<bad@d>\r\nRCPT TO:<e@f>\r\nDATA\r\n")
        assert [client.reply()[:3] for _ in range(5)] == ["250", "250", "550", "250", "354"]
        client.send(MAIL)
        assert client.reply().startswith("250 ")
        assert [said for _, said in receiver.heard if said.startswith("RCPT")] == ["RCPT TO:<c@d>", "RCPT TO:<e@f>"]


@pytest.mark.parametrize("letter", ["M", "R", "T", "E"])
def test_a_discarded_message_gets_a_250_and_goes_nowhere(start, letter):
    with ScriptedReceiver() as receiver, ScriptedMilter({letter: sm.DISCARD}) as milter, start(receiver, milter) as proxy:
        assert send(proxy).startswith("250 ")
        milter.script = {}
        assert send(proxy).startswith("250 ")
        assert receiver.contents == [WIRE] and counters(proxy)["hooks_discarded"] == 1


@pytest.mark.parametrize("reply,seen", [("554 5.5.1 no", "554 5.5.1 no"), ("451 4.0.0 later", "451 4.0.0 later"), ("250 odd", "421 4.5.0 ")])
def test_what_the_receiver_says_to_data_is_the_reply_to_the_message(start, reply, seen):
    with ScriptedReceiver({"DATA": (reply, "354 go on")}) as receiver, ScriptedMilter() as milter, start(receiver, milter) as proxy:
        assert send(proxy).startswith(seen)
        assert receiver.contents == []
        assert send(proxy) == "250 2.0.0 taken"
        assert counters(proxy)["in_doubt"] == 0


FAILURES = {"tempfail": "451 4.3.0 ", "reject": "554 5.3.0 ", "accept": "250 "}


@pytest.mark.parametrize("policy", FAILURES)
@pytest.mark.parametrize("letter", ["O", "M", "R", "T", "B", "E"])
def test_a_milter_that_hangs_is_bounded_by_its_policy(start, letter, policy):
    with ScriptedReceiver() as receiver, ScriptedMilter({letter: sm.HANG}) as milter, \
            start(receiver, milter, keys={"timeout": "300ms", "on_failure": policy}) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        said = [client.say(line) for line in ("MAIL FROM:<a@b>", "RCPT TO:<c@d>", "DATA")]
        if said[2].startswith("354"):
            client.send(MAIL)
            said.append(client.reply())
        if policy == "accept":
            assert said[-1] == "250 2.0.0 taken" and receiver.contents == [WIRE]
        else:
            assert next(line for line in said if line[0] in "45").startswith(FAILURES[policy]), said
            assert receiver.contents == []
        assert counters(proxy)["hooks_failed"] == 1


@pytest.mark.parametrize("fault", [b"", b"?", b"O\0\0", b"O" + bytes(12), b"a"])
def test_a_milter_that_breaks_its_protocol_has_failed(start, fault):
    with ScriptedReceiver() as receiver, ScriptedMilter({"O": fault}) as milter, start(receiver, milter) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        assert client.say("MAIL FROM:<a@b>").startswith("451 4.3.0 ")
        assert "hook failed hook=m0" in proxy.log()


@pytest.mark.parametrize("bad", [add(b"X A", b"1"), add(b"", b"1"), add(b"X", b"1\nEvil: 2"), add(b"X", b"1\n\n"), add(b"X", b"1\n \n x"),
                                 change(1, b"X:", b"1"), b"hX", b"i\0"])
@pytest.mark.parametrize("policy", ["tempfail", "accept"])
def test_a_change_that_would_break_the_header_is_not_made(start, bad, policy):
    with ScriptedReceiver() as receiver, ScriptedMilter({"E": [bad, sm.CONTINUE]}) as milter, \
            start(receiver, milter, keys={"on_failure": policy}) as proxy:
        assert send(proxy).startswith(FAILURES[policy])
        assert receiver.contents == ([WIRE] if policy == "accept" else [])


def test_a_milter_that_is_not_there_is_left_alone_after_the_first_failure(start):
    nobody = "127.0.0.1", free_ports(1)[0]
    with Sink() as sink, start(sink, nobody, keys={"on_failure": "accept"}) as proxy:
        assert source(proxy.address, "--proxy", "v2", "-m", "30", "-s", "1").counts["sent"] == 30
        assert 1 <= counters(proxy)["hooks_failed"] < 30
    assert sink.counts["right"] == 30


def test_a_hung_milter_holds_up_no_other_listener_and_only_the_first_mails(start):
    """The milter hangs while a transaction has one of the two connections to the receiver."""
    other = free_ports(1)[0]
    with Sink() as sink, ScriptedMilter({"E": sm.HANG}) as milter:
        proxy = start(sink, milter, keys={"timeout": "1s"}, limits={"connections_per_destination": 2})
        with proxy:
            own, = proxy.settings["listeners"]
            proxy.settings["listeners"].append({key: value for key, value in own.items() if key != "hooks"} | {"address": f"127.0.0.1:{other}"})
            proxy.write_config()
            proxy.reload()
            with Talk(proxy.address, source="192.0.2.1") as hung:
                hung.ehlo()
                hung.mail()
                hung.send(MAIL)
                wait_until(lambda: "E" in milter.letters(), patience(5), "it hangs")
                began = time.monotonic()
                assert source(("127.0.0.1", other), "--proxy", "v2", "-m", "20").counts["sent"] == 20
                assert hung.reply().startswith("451 4.3.0 ")
                print(f"{time.monotonic() - began:.1f} s")
            assert send_mail_from(proxy).startswith("451 4.3.0 ")  # at once, at MAIL
            assert counters(proxy)["hooks_failed"] == 1
    assert sink.counts["mails"] == 20


def send_mail_from(proxy):
    with Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        return client.say("MAIL FROM:<a@b>")


def test_progress_gives_a_milter_more_time(start):
    with ScriptedReceiver() as receiver, ScriptedMilter({"T": sm.HANG}) as milter, start(receiver, milter) as proxy, Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        client.send("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n")
        wait_until(lambda: "T" in milter.letters(), patience(5), "DATA is judged")
        milter.tell(b"p")
        milter.tell(b"c")
        assert [client.reply()[:3] for _ in range(3)] == ["250", "250", "354"]
        client.send(MAIL)
        assert client.reply().startswith("250 ")


def lost_while_judged(proxy, milter, parameters="", **proxied):
    """The sender resets its connection when the milter has the whole message, and gives no verdict."""
    before = len(milter.contents("E"))
    with Talk(proxy.address, source="192.0.2.1", **proxied) as client:
        client.ehlo()
        client.mail(parameters)
        client.send(MAIL)
        wait_until(lambda: len(milter.contents("E")) > before, patience(5), "it is judged")
        client.reset()


def test_a_sender_that_is_lost_while_hooks_judge_its_message_has_sent_none(start):
    """It has no reply, and the receiver has no message: it will come again, and there shall be one copy (RFC 5321 4.1.1.10)."""
    with ScriptedReceiver() as receiver, ScriptedMilter({"E": sm.HANG}) as milter, start(receiver, milter) as proxy:
        lost_while_judged(proxy, milter)
        wait_until(lambda: states(proxy) == [], patience(5), "the end of the session")
        milter.script = {}
        assert send(proxy).startswith("250 ")
        assert receiver.contents == [WIRE]
        counted = counters(proxy)
        assert (counted["decided_alone"], counted["in_doubt"], counted["aborted"], counted["hooks_failed"]) == (0, 0, 1, 0)


def test_a_named_message_of_a_lost_sender_is_judged_and_served_all_the_same(start):
    """Behind the cluster, the sender may still be there: the next agent asks what became of the message."""
    with ScriptedReceiver() as receiver, ScriptedMilter({"E": sm.HANG}) as milter, start(receiver, milter) as proxy:
        for number, (verdict, mails) in enumerate(((sm.CONTINUE, 1), (sm.REJECT, 1)), 1):
            lost_while_judged(proxy, milter, f" XCSSLTX={b'owner'.hex()}/{number}", unique_id=b"owner")
            wait_until(lambda: states(proxy) == ["alone"], patience(5), "the sender is gone")
            milter.tell(verdict)
            wait_until(lambda: states(proxy) == [], patience(5), "it is decided")
            assert len(receiver.contents) == mails
        assert counters(proxy)["decided_alone"] == 2


def slowly(_):
    time.sleep(0.5)
    return sm.CONTINUE


def test_the_timeout_of_a_milter_is_for_each_of_its_answers(start):
    """Five pieces of a body, half a second each."""
    with Sink() as sink, ScriptedMilter({"B": slowly}) as milter, start(sink, milter, keys={"timeout": "2s"}) as proxy:
        assert send(proxy, "\r\n" + ("x" * 998 + "\r\n") * 300 + ".\r\n").startswith("250 ")
        assert len(milter.contents("B")) == 5
    assert sink.counts["mails"] == 1


def test_all_milters_together_have_the_time_that_the_sender_waits(start):
    """A turn may take as long as senders wait for the reply to MAIL, so the hooks have ten seconds."""
    with ScriptedReceiver() as receiver, ScriptedMilter({"M": sm.HANG}) as one, ScriptedMilter({"M": sm.HANG}) as two, \
            start(receiver, one, two, keys={"timeout": "9s", "on_failure": "accept"}, limits={"turn_timeout": "5min"}) as proxy:
        began = time.monotonic()
        assert send_mail_from(proxy).startswith("250 ")
        assert 9 < time.monotonic() - began < 16


def test_messages_above_the_bounds_are_refused_and_take_no_memory(start):
    with Sink() as sink, ScriptedMilter() as milter, start(sink, milter, limits={"held_message": "100KiB", "held_total": "150KiB"}) as proxy:
        assert send(proxy, "\r\n" + ("x" * 998 + "\r\n") * 110 + ".\r\n").startswith("552 5.3.4 ")
        with Talk(proxy.address, source="192.0.2.1") as one:
            one.ehlo()
            one.mail()
            one.send("\r\n" + ("x" * 998 + "\r\n") * 90)
            wait_until(lambda: json.loads(ask(proxy, "/v1/hooks"))["held"] > 80000, patience(5), "it is kept")
            assert send(proxy, "\r\n" + ("x" * 998 + "\r\n") * 90 + ".\r\n").startswith("452 4.3.1 ")
            one.send(".\r\n")
            assert one.reply().startswith("250 ")
        assert json.loads(ask(proxy, "/v1/hooks"))["held"] == 0
    assert sink.counts["mails"] == 1


@pytest.mark.parametrize("size,offered", [("", "102400"), (" 0", "102400"), (" 1000000", "102400"), (" 5000", "5000")])
def test_no_larger_size_is_offered_than_is_kept_for_a_milter(start, size, offered):
    """The receiver alone would take more."""
    with ScriptedReceiver({"EHLO": f"250-scripted\r\n250 SIZE{size}"}) as receiver, ScriptedMilter() as milter, \
            start(receiver, milter, limits={"held_message": "100KiB"}) as proxy, Talk(proxy.address, source="192.0.2.1") as client:
        assert client.ehlo()["SIZE"] == offered
        assert client.say("MAIL FROM:<a@b> SIZE=102401").startswith("552 5.3.4 ")
        assert not milter.contents("M") and client.say("MAIL FROM:<a@b> SIZE=102400").startswith("250 ")


def test_a_message_of_the_offered_size_is_taken(start):
    """SIZE counts neither the final dot nor the dots that DATA adds (RFC 1870 3)."""
    with Sink() as sink, ScriptedMilter() as milter, start(sink, milter, limits={"held_message": "100KiB"}) as proxy:
        text = "\r\n" + ("x" * 998 + "\r\n") * 102 + "." * 396 + "\r\n"
        assert len(text) == 102400
        assert send(proxy, text.replace("\r\n.", "\r\n..") + ".\r\n").startswith("250 ")
    assert sink.counts["mails"] == 1


def test_one_sender_of_many_half_messages_leaves_room_for_the_others(start):
    """Of 512 KiB, its messages of 64 KiB have half; a further one gets 452."""
    half = "\r\n" + ("x" * 998 + "\r\n") * 60
    with Sink() as sink, ScriptedMilter() as milter, contextlib.ExitStack() as open_ones, \
            start(sink, milter, limits={"held_message": "128KiB", "held_total": "512KiB"}) as proxy:
        for number in range(1, 10):
            one = open_ones.enter_context(Talk(proxy.address, source="192.0.2.1"))
            one.ehlo()
            one.mail()
            one.send(half)
            wait_until(lambda number=number: counters(proxy)["bytes"] >= number * len(half), patience(5), "it came")
        assert json.loads(ask(proxy, "/v1/hooks"))["held"] == 262144
        with Talk(proxy.address, source="192.0.2.2") as other:
            other.ehlo()
            other.mail()
            assert other.say(half + ".").startswith("250 ")
        assert one.say(".").startswith("452 4.3.1 ")
    assert sink.counts["mails"] == 1


def test_half_messages_give_the_room_for_hooks_back_while_it_is_short(start):
    """The whole of it would come in within ten minutes at the least rate. These two bring fewer bytes, and have more than half of it."""
    half = "\r\n" + ("x" * 998 + "\r\n") * 200
    limits = {"held_message": "256KiB", "held_total": "768KiB", "lease_timeout": "500ms", "least_rate": 1}
    with Sink() as sink, ScriptedMilter() as milter, start(sink, milter, limits=limits) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as one, Talk(proxy.address, source="192.0.2.2") as other:
        for client in (one, other):
            client.ehlo()
            client.mail()
            client.send(half)

        def one_has_ended():
            for client in (one, other):
                with contextlib.suppress(OSError):
                    client.send("x")
            return counters(proxy)["too_slow"] == 1

        wait_until(one_has_ended, patience(10), "a sender to be ended")
        assert sorted(client.say("\r\n.")[:4] for client in (one, other)) == ["250 ", "421 "]
    assert sink.counts["mails"] == 1


def test_chunks_are_not_offered_and_refused(start):
    with ScriptedReceiver() as receiver, ScriptedMilter() as milter, start(receiver, milter) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        assert "CHUNKING" not in client.ehlo()
        client.say("MAIL FROM:<a@b>")
        client.say("RCPT TO:<c@d>")
        assert client.say("BDAT 3 LAST\r\nabc").startswith("502 ")


def test_many_mails_at_once_and_what_the_hook_did(start):
    with Sink() as sink, ScriptedMilter({"E": [add(b"X-Seen", b"yes"), sm.ACCEPT]}, flags=sm.SILENT_FIELDS) as milter, \
            start(sink, milter) as proxy:
        result = source(proxy.address, "--proxy", "v2", "-m", "200", "-s", "10")
        assert result.counts["sent"] == 200, result.errors
        hook, = json.loads(ask(proxy, "/v1/hooks"))["hooks"]
        assert (hook["name"], hook["type"], hook["state"], hook["asked"], hook["changed"]) == ("m0", "milter", "good", 200, 200)
    assert sink.counts["mails"] == 200 and sink.counts["duplicates"] == 0


STOPPING = "421 4.3.2 "


@pytest.mark.parametrize("verdict,second_banner,replies", [
    (sm.CONTINUE, "421 4.7.0 no", [STOPPING]),
    (sm.CONTINUE, "220 scripted", [STOPPING]),
    (b"y550 5.7.1 no\0", "220 scripted", ["550 5.7.1 no", STOPPING]),
], ids=["no turn", "room", "refused"])
def test_a_mail_that_is_judged_at_a_stop_begins_nothing_and_its_sender_ends_at_once(start, verdict, second_banner, replies):
    """Another sender has the first connection to the receiver."""
    with ScriptedReceiver({"banner": ["220 scripted", second_banner]}) as receiver, \
            ScriptedMilter({"M": lambda content: sm.HANG if b"slow" in content else sm.CONTINUE}) as milter, \
            start(receiver, milter, limits={"stop_timeout": "5min"}) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as one, Talk(proxy.address, source="192.0.2.2") as other:
        one.ehlo()
        assert one.say("MAIL FROM:<a@b>").startswith("250 ")
        other.ehlo()
        other.send("MAIL FROM:<slow@b>\r\n")
        wait_until(lambda: milter.contents("M")[-1].startswith(b"<slow@b>"), patience(10), "it is judged")
        proxy.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in proxy.log(), patience(10), "the stop has begun")
        milter.tell(verdict)
        for reply in replies:
            assert other.reply().startswith(reply)
        assert other.is_closed()
        assert [command for _, command in receiver.heard if "slow" in command] == []
