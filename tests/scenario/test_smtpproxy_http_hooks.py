"""HTTP hooks of smtpproxy: they get the envelope as JSON when DATA comes, and their answer decides."""

import json

import pytest

from tests.lib.http_judge import Judge
from tests.lib.mail import Sink, source
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import ask, counters
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk


@pytest.fixture
def start(open_folder):
    """start(receiver, judge, ...): the keys are of the hook."""
    def begin(receiver, judge, **keys):
        hook = {"name": "limits", "type": "http", "address": text_of(judge.address), "path": "/judge", "timeout": "10s", **keys}
        return Proxy(open_folder, next_hop=receiver.address, hooks=[hook], listener={"hooks": ["limits"]})

    return begin


def say_all(client, recipients=("c@d",)):
    """The reply to DATA."""
    client.ehlo()
    client.say("MAIL FROM:<a@b> BODY=8BITMIME")
    for recipient in recipients:
        client.say(f"RCPT TO:<{recipient}>")
    return client.say("DATA")


def test_the_hook_gets_the_envelope_and_the_message_passes(start):
    with ScriptedReceiver({"RCPT TO:<no@d>": "550 no"}) as receiver, Judge({"action": "accept"}) as judge, \
            start(receiver, judge) as proxy, Talk(proxy.address, source="192.0.2.1") as client:
        assert say_all(client, ("c@d", "no@d", "e@f")).startswith("354 ")
        client.send("a: b\r\n\r\nx\r\n.\r\n")
        assert client.reply() == "250 2.0.0 taken"
        (path, envelope), = judge.asked
        assert path == "/judge" and envelope.pop("id")
        assert envelope == {"client": "192.0.2.1:1000", "ehlo": "client.example", "destination": text_of(receiver.address), "from": "a@b",
                            "recipients": ["c@d", "e@f"]}
        assert receiver.contents == [b"a: b\r\n\r\nx\r\n"]


@pytest.mark.parametrize("answer,reply", [
    ({"action": "reject"}, "550 5.7.1 Rejected"), ({"action": "tempfail"}, "451 4.7.1 "),
    ({"action": "reject", "reply": "554 5.7.1 over quota"}, "554 5.7.1 over quota"),
    ({"action": "tempfail", "reply": "450 4.2.1 slowly"}, "450 4.2.1 slowly"),
])
def test_its_answer_is_the_reply_to_data(start, answer, reply):
    with ScriptedReceiver() as receiver, Judge(answer) as judge, start(receiver, judge) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        assert say_all(client).startswith(reply)
        assert client.say("DATA").startswith("503 ")  # it has been judged
        assert client.say("RSET").startswith("250 ")
        judge.answer = {"action": "accept"}
        assert say_all(client).startswith("354 ")
        assert "DATA" in [said for _, said in receiver.heard]
        assert len(judge.asked) == 2


@pytest.mark.parametrize("policy,reply", [("tempfail", "451 4.3.0 "), ("reject", "554 5.3.0 "), ("accept", "354 ")])
@pytest.mark.parametrize("answer,status", [(None, 200), (b"no JSON", 200), ({"action": "shrug"}, 200), ([], 200), ({"action": "accept"}, 500),
                                           ({"action": "reject", "reply": "250 no"}, 200), ({"action": "tempfail", "reply": "550 no"}, 200),
                                           (b"x" * 9000, 200)])
def test_another_answer_is_a_failure(start, answer, status, policy, reply):
    with ScriptedReceiver() as receiver, Judge(answer, status) as judge, start(receiver, judge, timeout="300ms", on_failure=policy) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        assert say_all(client).startswith(reply)
        assert counters(proxy)["hooks_failed"] == 1 and "hook failed hook=limits" in proxy.log()


def test_many_mails_at_once(start):
    with Sink() as sink, Judge({"action": "accept"}) as judge, start(sink, judge) as proxy:
        result = source(proxy.address, "--proxy", "v2", "-m", "100", "-s", "10")
        assert result.counts["sent"] == 100, result.errors
        hook, = json.loads(ask(proxy, "/v1/hooks"))["hooks"]
        assert (hook["asked"], hook["failed"]) == (100, 0)
    assert sink.counts["right"] == 100


def test_an_answer_may_end_with_its_connection(start):
    """Without a length, as of a server of HTTP/1.0."""
    with ScriptedReceiver() as receiver, Judge({"action": "accept"}, has_length=False) as judge, start(receiver, judge) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        assert say_all(client).startswith("354 ")
        assert counters(proxy)["hooks_failed"] == 0
