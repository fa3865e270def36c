"""A queue asks the mail server of a stranger's recipient before it takes the recipient (doc/mail.md): what counts as an answer, whatever
became of the connection, and how many questions there are."""

import contextlib
import json

import pytest

from bench.experiments.mail_room import obstacle
from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.mail_servers import Postfix
from tests.lib.queued_proxy import QueuedProxy, Stores
from tests.lib.scripted_milter import ScriptedMilter
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import ask, counters
from tests.lib.smtp_proxy import text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

STRANGER, CLIENT = "203.0.113.9", "198.51.100.9"
DOOR = {"accept": ["ours.example"], "clients": ["198.51.100.0/24"]}
UNKNOWN = "unknown@ours.example"
ENOUGH = "421 4.7.0 Too many errors"
KEPT = {"keep_idle": "1min"}


@pytest.fixture(scope="module", name="stores")
def _stores(tmp_path_factory):
    with Stores(tmp_path_factory.mktemp("stores")) as stores:
        yield stores


@contextlib.contextmanager
def gateway(folder, stores, next_hop, listener=None, **keys):
    """Each with a queue of its own."""
    with QueuedProxy(folder, stores, next_hop, queue={"name": folder.name}, listener={**DOOR, **(listener or {})}, **keys) as proxy:
        yield proxy.wait_open()


def comes(proxy, source=STRANGER, sender="a@sender.example"):
    client = Talk(proxy.address, source=source)
    client.ehlo()
    assert client.say(f"MAIL FROM:<{sender}>").startswith("250 ")
    return client


def said(proxy, *recipients, **who):
    """The replies to these recipients, of one session."""
    with comes(proxy, **who) as client:
        return [client.say(f"RCPT TO:<{to}>") for to in recipients]


def asked(hop, of=""):
    return [line for _, line in hop.heard if line.startswith(f"RCPT TO:<{of}")]


# What the receiver says, and what a stranger hears for these recipients.
ANSWERS = {
    "the last refusal of a connection": ({"RCPT TO:<unknown": f"550 5.1.1 Nobody\r\n{ENOUGH}\r\n"}, {UNKNOWN: "550 5.1.1 Nobody"}, {}),
    "a used connection that has enough": ({"MAIL": ("250 ok", ENOUGH, "250 ok"), "RCPT TO:<unknown": "550 5.1.1 Nobody"},
                                          {"k@ours.example": "250 ", UNKNOWN: "550 5.1.1 Nobody"}, KEPT),
    "a used connection that has enough at RCPT": ({"RCPT TO:<unknown": (ENOUGH, "550 5.1.1 Nobody")},
                                                  {"k@ours.example": "250 ", UNKNOWN: "550 5.1.1 Nobody"}, KEPT),
    "no mail without a sender": ({"MAIL FROM:<>": "550 5.7.1 No notices", "RCPT TO:<unknown": "550 5.1.1 Nobody"},
                                 {UNKNOWN: "550 5.1.1 Nobody"}, {}),
    "no mail from our sender": ({"RCPT": "550 5.1.8 <double-bounce@proxy.example>: no such sender"}, {"k@ours.example": "250 "}, {}),
    "not from our host": ({"RCPT": "550 5.7.1 Access denied"}, {"k@ours.example": "250 "}, {}),
    "no postmaster": ({"RCPT TO:<postmaster": "550 5.1.1 Nobody"}, {"postmaster": "550 5.1.1 Nobody"}, {}),
    "in clear for mail with TLS": ({"RCPT TO:<unknown": "550 5.1.1 Nobody"}, {UNKNOWN: "550 5.1.1 Nobody"}, {"keep_tls": "on"}),
}


@pytest.mark.parametrize("script,recipients,outward", ANSWERS.values(), ids=ANSWERS)
def test_the_receivers_answer_is_what_a_stranger_hears(tmp_path, stores, script, recipients, outward):
    with ScriptedReceiver(script) as hop, gateway(tmp_path, stores, hop.address, outward=outward) as proxy:
        replies = said(proxy, *recipients)
        assert all(reply.startswith(words) for reply, words in zip(replies, recipients.values())), replies
        assert {line for _, line in hop.heard if line.startswith("MAIL")} == {"MAIL FROM:<double-bounce@proxy.example>"}


def test_a_connection_with_many_refusals_is_used_no_more(tmp_path, stores):
    with ScriptedReceiver({"RCPT": "550 5.1.1 Nobody"}) as hop, gateway(tmp_path, stores, hop.address, outward=KEPT) as proxy:
        assert set(said(proxy, *(f"{n}@ours.example" for n in range(11)))) == {"550 5.1.1 Nobody"}
        assert [number for number, line in hop.heard if line.startswith("RCPT")] == [0] * 5 + [1] * 5 + [2]


def test_who_asks_about_the_same_recipient_shares_one_question_and_there_are_no_more_than_sessions(tmp_path, stores):
    with ScriptedReceiver({"RCPT": "{gate}550 5.1.1 Nobody"}) as hop, contextlib.ExitStack() as stack:
        proxy = stack.enter_context(gateway(tmp_path, stores, hop.address, limits={"sessions": 3}))

        def waits(number):
            wait_until(lambda: f"smtpproxy_sessions_now {number}\n" in ask(proxy, "/metrics").decode(), patience(10), f"{number} sessions")

        waits(0)
        clients = [stack.enter_context(comes(proxy)) for _ in range(3)]
        for client, name in zip(clients, ("one", "two", "three")):  # each waits for 10 s at most
            client.send(f"RCPT TO:<{name}@ours.example>\r\n")
        wait_until(lambda: len(asked(hop)) == 3, patience(10), "three questions")
        for client in clients[:2]:
            client.reset()
        waits(1)
        late = stack.enter_context(comes(proxy))
        late.send("RCPT TO:<Two@ours.example>\r\n")
        with comes(proxy) as other:
            assert other.say("RCPT TO:<four@ours.example>").startswith("451 4.4.5 ")
            hop.open_gate()
            assert [client.reply() for client in (clients[2], late)] == ["550 5.1.1 Nobody"] * 2
        assert len(asked(hop)) == 3


def test_strangers_are_put_off_while_mail_has_all_connections(tmp_path, stores):
    """And nothing is remembered of a mail server that was not asked."""
    with ScriptedReceiver({"content": "{gate}250 taken", "RCPT TO:<unknown": "550 5.1.1 Nobody"}) as hop, \
            gateway(tmp_path, stores, hop.address, limits={"connections_per_destination": 1}) as proxy:
        with comes(proxy, source=CLIENT) as client:
            assert client.say("RCPT TO:<k@ours.example>").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
        wait_until(lambda: hop.contents, patience(10), "mail under way")
        with comes(proxy) as stranger:
            assert stranger.say(f"RCPT TO:<{UNKNOWN}>").startswith("451 4.4.5 ")
            hop.open_gate()
            assert stranger.say(f"RCPT TO:<{UNKNOWN}>") == "550 5.1.1 Nobody"
        assert "recipients not verified" not in proxy.log()


def test_nobody_is_asked_about_a_recipient_between_chunks(tmp_path, stores):
    with ScriptedReceiver({"RCPT TO:<unknown": "550 5.1.1 Nobody"}) as hop, gateway(tmp_path, stores, hop.address) as proxy:
        with comes(proxy) as client:
            assert client.say("RCPT TO:<k@ours.example>").startswith("250 ")
            assert client.say("BDAT 3\r\nx").startswith("250 ")
            assert client.say(f"RCPT TO:<{UNKNOWN}>").startswith("503 ")
        assert not asked(hop, "unknown")


def test_hooks_hear_nothing_of_an_unknown_recipient(tmp_path, stores):
    with ScriptedReceiver({"RCPT TO:<unknown": "550 5.1.1 Nobody"}) as hop, ScriptedMilter() as milter:
        hook = {"name": "h", "type": "milter", "address": text_of(milter.address), "timeout": "20s"}
        with gateway(tmp_path, stores, hop.address, hooks=[hook], listener={"hooks": ["h"]}) as proxy:
            with comes(proxy) as client:
                assert client.say(f"RCPT TO:<{UNKNOWN}>") == "550 5.1.1 Nobody"
                assert client.say("RCPT TO:<k@ours.example>").startswith("250 ")
                assert client.say("DATA").startswith("354 ")
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
        assert [content.partition(b"\0")[0] for content in milter.contents("R")] == [b"<k@ours.example>"]


@pytest.mark.root
@pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))
def test_postfix_behind_refuses_all_unknown_names_of_a_session(tmp_path, stores):
    """It ends a connection after 20 of them (smtpd_hard_error_limit), whether they came with mail or with questions."""
    known = "relay_domains = ours.example\nrelay_recipient_maps = inline:{ k@ours.example=k }\nsmtpd_error_sleep_time = 0\n"
    with Sink() as sink, Postfix(tmp_path / "postfix", sink.address, options=known) as postfix, \
            gateway(tmp_path, stores, postfix.address, limits={"errors": 100, "connections_per_destination": 1}) as proxy:
        with comes(proxy, source=CLIENT, sender="") as client:  # nobody gets a notice
            assert {client.say(f"RCPT TO:<m{n}@ours.example>") for n in range(19)} == {"250 2.1.5 Ok"}
            assert client.say("DATA").startswith("354 ")
            assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
        wait_until(lambda: json.loads(ask(proxy, "/v1/queue"))["messages"] == 0, patience(20), "an empty queue")
        replies = said(proxy, *(f"u{n}@ours.example" for n in range(25)), "k@ours.example")
        assert [reply[:9] for reply in replies] == ["550 5.1.1"] * 25 + ["250 2.1.5"], replies
        assert counters(proxy)["recipients_unknown"] == 25
