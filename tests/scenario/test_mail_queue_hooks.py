"""Hooks with deliver: queue: they judge a message before it is stored, and the queue stores and delivers what they made of it."""

import contextlib
import json
import signal

import pytest

from bench.experiments.ports import free_ports
from tests.lib import scripted_milter as sm
from tests.lib.build import patience
from tests.lib.http_judge import Judge
from tests.lib.mail import Sink, source
from tests.lib.queued_proxy import QueuedProxy, Stores
from tests.lib.scripted_milter import ScriptedMilter, add, change, insert
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import ask, counters, states
from tests.lib.smtp_proxy import text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

MAIL = "Subject: one\r\nX-Spam: a\r\n\r\nline\r\n..dot\r\n.\r\n"
WIRE = b"Subject: one\r\nX-Spam: a\r\n\r\nline\r\n..dot\r\n"
CHANGES = [insert(0, b"DKIM-Signature", b"v=1;\n\tb=x"), change(1, b"X-Spam", b""), add(b"X-Last", b"z"), sm.CONTINUE]
CHANGED = b"DKIM-Signature: v=1;\r\n\tb=x\r\nSubject: one\r\nX-Last: z\r\n\r\nline\r\n..dot\r\n"


class Gateway:
    """A gateway with one hook, its Redis servers and its receiver. Each test gives the milter its script."""

    def __init__(self, folder, hook, receiver, **keys):
        self.stack = contextlib.ExitStack()
        self.hook, self.receiver = self.stack.enter_context(hook), receiver
        self.stores = self.stack.enter_context(Stores(folder))
        one = {"name": "h", "type": "http" if isinstance(hook, Judge) else "milter", "address": text_of(hook.address), "timeout": "20s",
               **keys.pop("hook_keys", {})}
        self.proxy = self.stack.enter_context(
            QueuedProxy(folder, self.stores, receiver.address, hooks=[one], listener={"hooks": ["h"]}, **keys)).wait_open()

    def talk(self, **how):
        return Talk(self.proxy.address, **{"source": "192.0.2.1", **how})

    def send(self, text=MAIL):
        """The reply to the end of one mail."""
        with self.talk() as client:
            client.ehlo()
            client.mail()
            client.send(text)
            return client.reply()

    def queue(self):
        return json.loads(ask(self.proxy, "/v1/queue"))

    def stored(self):
        return self.queue()["stored"]

    def wait_contents(self, *expected):
        """The receiver has these mails since the last call. Each begins with our Received field, of three lines."""
        wait_until(lambda: len(self.receiver.contents) >= len(expected), patience(20), "deliveries")
        wait_until(lambda: self.queue()["messages"] == 0, patience(20), "an empty queue")
        assert all(content.startswith(b"Received: from client.example ([192.0.2.1") for content in self.receiver.contents)
        assert [content.split(b"\r\n", 3)[3] for content in self.receiver.contents] == list(expected)
        self.receiver.contents.clear()


@contextlib.contextmanager
def running(gateway):
    with gateway.stack:
        yield gateway


@pytest.fixture(scope="module", name="gateway")
def _gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hooks")
    with ScriptedReceiver() as receiver, running(Gateway(folder, ScriptedMilter(), receiver, queue={"message_size": "64KiB"},
                                                         limits={"held_message": "100KiB"})) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def _own_script(request):
    yield
    if "gateway" in request.fixturenames:
        request.getfixturevalue("gateway").hook.script = {}


def test_the_changed_message_is_delivered(gateway):
    gateway.hook.script = {"E": CHANGES}
    assert gateway.send().startswith("250 2.0.0 Ok: queued as ")
    gateway.wait_contents(CHANGED)
    gateway.hook.script = {}
    assert gateway.send().startswith("250 ")
    gateway.wait_contents(WIRE)
    assert b"Received" not in b"".join(gateway.hook.contents("L"))  # it judges the sender's mail, not our field


@pytest.mark.parametrize("verdict,reply", [(sm.REJECT, "550 5.7.1 "), (sm.TEMPFAIL, "451 4.7.1 "), (b"y552 5.7.9 never\0", "552 5.7.9 never")])
@pytest.mark.parametrize("letter", "CMRTLE")
def test_a_refused_message_is_not_stored(gateway, letter, verdict, reply):
    """And the next transaction of the same session is as new."""
    before = gateway.stored()
    gateway.hook.script = {letter: verdict}
    with gateway.talk() as client:
        client.ehlo()
        said = [client.say(line) for line in ("MAIL FROM:<a@b>", "RCPT TO:<c@d>", "DATA")]
        if said[2].startswith("354"):
            client.send(MAIL)
            said.append(client.reply())
        assert next(line for line in said if line[0] in "45").startswith(reply), said
        assert client.say("RSET").startswith("250 ")
        gateway.hook.script = {}
        client.mail()
        client.send(MAIL)
        assert client.reply().startswith("250 ")
    gateway.wait_contents(WIRE)
    assert gateway.stored() == before + 1


@pytest.mark.parametrize("letter", "MRTE")
def test_a_discarded_message_gets_a_250_and_is_not_stored(gateway, letter):
    before = gateway.stored()
    gateway.hook.script = {letter: sm.DISCARD}
    assert gateway.send().startswith("250 ")
    assert (gateway.stored(), gateway.queue()["messages"]) == (before, 0)
    gateway.hook.script = {}
    assert gateway.send().startswith("250 ")
    gateway.wait_contents(WIRE)


def test_a_refused_recipient_is_not_stored(gateway):
    gateway.hook.script = {"R": lambda content: sm.REJECT if b"bad" in content else sm.CONTINUE}
    heard = len(gateway.receiver.heard)
    with gateway.talk() as client:
        client.ehlo()
        client.send("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRCPT TO:<bad@d>\r\nRCPT TO:<e@d>\r\nDATA\r\n")
        assert [client.reply()[:3] for _ in range(5)] == ["250", "250", "550", "250", "354"]
        client.send(MAIL)
        assert client.reply().startswith("250 ")
    gateway.wait_contents(WIRE)
    assert [said for _, said in gateway.receiver.heard[heard:] if said.startswith("RCPT")] == ["RCPT TO:<c@d>", "RCPT TO:<e@d>"]


def lost_while_judged(gateway, parameters="", **proxied):
    gateway.hook.script = {"E": sm.HANG}
    before = len(gateway.hook.contents("E"))
    with gateway.talk(**proxied) as client:
        client.ehlo()
        client.mail(parameters)
        client.send(MAIL)
        wait_until(lambda: len(gateway.hook.contents("E")) > before, patience(10), "it is judged")
        client.reset()


def test_a_named_message_of_a_lost_sender_is_judged_and_stored(gateway):
    for number, (verdict, mails) in enumerate(((CHANGES, [CHANGED]), ([sm.REJECT], [])), 1):
        lost_while_judged(gateway, f" XCSSLTX={b'owner'.hex()}/{number}", unique_id=b"owner")
        wait_until(lambda: states(gateway.proxy) == ["alone"], patience(10), "the sender is gone")
        for one in verdict:
            gateway.hook.tell(one)
        wait_until(lambda: states(gateway.proxy) == [], patience(10), "it is decided")
        gateway.wait_contents(*mails)


def test_a_message_without_a_name_is_dropped_with_its_sender(gateway):
    before = gateway.stored()
    lost_while_judged(gateway)
    for one in CHANGES:
        with contextlib.suppress(OSError):
            gateway.hook.tell(one)
    wait_until(lambda: states(gateway.proxy) == [], patience(10), "the end of the session")
    assert (json.loads(ask(gateway.proxy, "/v1/hooks"))["held"], gateway.stored()) == (0, before)


def test_a_sender_that_goes_away_before_the_end_leaves_nothing(gateway):
    before = gateway.stored()
    with gateway.talk() as client:
        client.ehlo()
        client.mail()
        client.send(MAIL[:-3])
        wait_until(lambda: json.loads(ask(gateway.proxy, "/v1/hooks"))["held"] > 0, patience(10), "it is kept")
        client.reset()
    wait_until(lambda: states(gateway.proxy) == [], patience(10), "the end of the session")
    assert (json.loads(ask(gateway.proxy, "/v1/hooks"))["held"], gateway.stored()) == (0, before)


@pytest.mark.parametrize("lines", [80, 120], ids=["the queue's bound", "the hooks' bound"])
def test_a_message_above_a_bound_is_refused_and_takes_no_memory(gateway, lines):
    before = gateway.stored()
    assert gateway.send("\r\n" + ("x" * 998 + "\r\n") * lines + ".\r\n").startswith("552 5.3.4 ")
    assert (json.loads(ask(gateway.proxy, "/v1/hooks"))["held"], gateway.stored()) == (0, before)
    assert b"smtpproxy_queue_incoming_bytes 0\n" in ask(gateway.proxy, "/metrics")


def test_chunks_are_not_offered_and_refused(gateway):
    with gateway.talk() as client:
        offers = client.ehlo()
        assert "CHUNKING" not in offers and offers["SIZE"] == "65536"
        client.say("MAIL FROM:<a@b>")
        client.say("RCPT TO:<c@d>")
        assert client.say("BDAT 3 LAST\r\nabc").startswith("502 ")


def test_a_question_about_a_message_that_is_judged_waits_for_the_decision(gateway):
    """XCSSLTX: the answer is the reply that the first sender gets, too."""
    gateway.hook.script = {"E": sm.HANG}
    before = len(gateway.hook.contents("E"))
    with gateway.talk(unique_id=b"\x0a\x1b") as client:
        client.ehlo()
        client.mail(" XCSSLTX=0a1b/1")
        client.send(MAIL)
        wait_until(lambda: len(gateway.hook.contents("E")) > before, patience(10), "it is judged")
        with gateway.talk(unique_id=b"\x0a\x1b") as asker:
            key = asker.ehlo()["XCSSLTX"]
            asker.send(f"XCSSLTX 0a1b/1 {key}\r\n")
            wait_until(lambda: "asks" in states(gateway.proxy), patience(10), "the question")
            for one in CHANGES:
                gateway.hook.tell(one)
            stored = client.reply()
            assert stored.startswith("250 2.0.0 Ok: queued as ")
            assert asker.reply() == f"250 decided {stored}"
    gateway.wait_contents(CHANGED)


def test_a_killed_gateway_delivers_what_the_milter_made_of_it(tmp_path):
    port = free_ports(1)[0]
    away = type("Away", (), {"address": ("127.0.0.1", port)})
    with running(Gateway(tmp_path, ScriptedMilter({"E": CHANGES}), away)) as gateway:
        assert gateway.send().startswith("250 ")
        gateway.proxy.kill()
        with ScriptedReceiver(listen=("127.0.0.1", port)) as gateway.receiver:
            with QueuedProxy(tmp_path, gateway.stores, ("127.0.0.1", port)) as gateway.proxy:
                gateway.proxy.wait_open()
                gateway.wait_contents(CHANGED)


@pytest.mark.parametrize("policy,reply", [("tempfail", "451 4.3.0 "), ("accept", "250 2.0.0 ")])
def test_a_milter_that_hangs_is_bounded_by_its_policy(tmp_path, policy, reply):
    with ScriptedReceiver() as receiver, \
            running(Gateway(tmp_path, ScriptedMilter({"E": sm.HANG}), receiver, queue={"store_timeout": "1s"},
                            hook_keys={"timeout": "1500ms", "on_failure": policy})) as gateway:
        assert gateway.send().startswith(reply)  # the limit for the Redis servers begins behind the verdict
        gateway.wait_contents(*([WIRE] if policy == "accept" else []))
        assert counters(gateway.proxy)["hooks_failed"] == 1


def test_a_mail_that_is_judged_at_a_stop_begins_no_message(tmp_path):
    with ScriptedReceiver() as receiver, running(Gateway(tmp_path, ScriptedMilter({"M": sm.HANG}), receiver)) as gateway, \
            gateway.talk() as client:
        client.ehlo()
        client.send("MAIL FROM:<a@b>\r\n")
        wait_until(lambda: gateway.hook.contents("M"), patience(10), "it is judged")
        gateway.proxy.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in gateway.proxy.log(), patience(10), "the stop has begun")
        gateway.hook.tell(sm.CONTINUE)
        assert client.reply().startswith("421 4.3.2 ") and client.is_closed()


def test_an_http_hook_judges_the_envelope(tmp_path):
    with ScriptedReceiver() as receiver, running(Gateway(tmp_path, Judge({"action": "accept"}), receiver)) as gateway:
        assert gateway.send().startswith("250 ")
        gateway.wait_contents(WIRE)
        (path, envelope), = gateway.hook.asked
        assert path == "/" and envelope.pop("id")
        assert envelope == {"client": "192.0.2.1:1000", "ehlo": "client.example", "destination": "queue", "from": "a@b", "recipients": ["c@d"]}
        gateway.hook.answer = {"action": "reject", "reply": "554 5.7.1 over quota"}
        with gateway.talk() as client:
            client.ehlo()
            client.say("MAIL FROM:<a@b>")
            client.say("RCPT TO:<c@d>")
            assert client.say("DATA").startswith("554 5.7.1 over quota")
        assert gateway.stored() == 1


def test_many_mails_at_once(tmp_path):
    with Sink() as sink:
        with running(Gateway(tmp_path, ScriptedMilter({"E": [add(b"X-Seen", b"yes"), sm.ACCEPT]}, flags=sm.SILENT_FIELDS), sink)) as gateway:
            result = source(gateway.proxy.address, "--proxy", "v2", "-m", "200", "-s", "10", "-d", "--pipelining")
            assert result.counts["sent"] == 200, result.errors
            wait_until(lambda: gateway.stores.items() == [0, 0], patience(30), "an empty queue")
    assert sink.counts["mails"] == 200 and sink.counts["duplicates"] == 0
