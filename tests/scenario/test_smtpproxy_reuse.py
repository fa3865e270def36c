"""A connection to a receiver goes from sender to sender. No sender may suffer from what another one did with it."""

import signal

import pytest

from tests.lib.build import patience
from tests.lib.mail import source
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import counters, states
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

BODY = "Subject: x\r\n\r\nx\r\n.\r\n"


class TiredReceiver(ScriptedReceiver):
    """Takes `most` mails over each connection. To a further MAIL it says 421, or nothing, and ends."""

    def __init__(self, most, last_words=b"421 4.7.0 Enough mail over this connection\r\n", script=None):
        super().__init__(script)
        self._most, self._last_words = most, last_words
        self._mails = {}

    def _say(self, connection, number, what):
        if what.startswith("MAIL"):
            self._mails[number] = self._mails.get(number, 0) + 1
            if self._mails[number] > self._most:
                self._tire()
                connection.sendall(self._last_words)
                raise ConnectionError("enough")
        return super()._say(connection, number, what)

    def _tire(self):
        pass

    def _serve(self, connection, number):
        super()._serve(connection, number)
        connection.close()


class SlowlyTiredReceiver(TiredReceiver):
    """Says so when the gate is open."""

    def _tire(self):
        assert self._gate.wait(patience(20))


@pytest.mark.parametrize("last_words", [b"421 4.7.0 Enough mail over this connection\r\n", b""], ids=["421", "no word"])
@pytest.mark.parametrize("most", [1, 3])
def test_a_used_connection_that_takes_no_more_mail_is_not_the_senders_fault(tmp_path, most, last_words):
    with TiredReceiver(most, last_words) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy:
        result = source(proxy.address, "-m", "40", "-s", "2", "-d", "--proxy", "v2")
        assert result.status == 0 and result.counts["sent"] == 40, (result.seen(), result.errors)
        assert counters(proxy)["turns_repeated"] > 0
    assert len(receiver.contents) == 40


def test_a_group_of_commands_keeps_its_order_over_a_connection_that_takes_no_more(tmp_path):
    with TiredReceiver(1) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy, Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        for _ in range(3):
            client.send("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRCPT TO:<e@f>\r\nDATA\r\n")
            assert [client.reply()[:3] for _ in range(4)] == ["250", "250", "250", "354"]
            client.send(BODY)
            assert client.reply() == "250 2.0.0 taken"
        assert counters(proxy)["turns_repeated"] == 2
    assert len(receiver.contents) == 3


def test_the_first_mail_over_a_connection_gets_the_receivers_421(tmp_path):
    with TiredReceiver(0) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy, Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        assert client.say("MAIL FROM:<a@b>") == "421 4.7.0 Enough mail over this connection"
        assert client.is_closed() and counters(proxy)["turns_repeated"] == 0


def test_a_mail_that_waits_twice_waits_for_one_turn_timeout(tmp_path):
    """The receiver takes one connection, and one mail over it; then none."""
    script = {"banner": ["220 scripted", "421 4.7.0 no"]}
    with TiredReceiver(1, script=script) as receiver, Proxy(tmp_path, next_hop=receiver.address, limits={"turn_timeout": "1s"}) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        client.mail()
        client.send(BODY)
        assert client.reply().startswith("250 ")
        assert client.say("MAIL FROM:<a@b>").startswith("451 4.4.5 ")
        assert client.say("NOOP").startswith("250 ")


@pytest.mark.parametrize("last_words", [b"421 4.7.0 Enough mail over this connection\r\n", b""], ids=["421", "no word"])
def test_at_a_stop_a_mail_that_a_used_connection_does_not_take_waits_for_no_other_one(tmp_path, last_words):
    with SlowlyTiredReceiver(1, last_words) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        client.mail()
        client.send(BODY)
        assert client.reply().startswith("250 ")
        client.send("MAIL FROM:<a@b>\r\n")
        wait_until(lambda: states(proxy) == ["tries"], patience(10), "MAIL is tried")
        proxy.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in proxy.log(), patience(10), "the stop has begun")
        receiver.open_gate()
        assert client.reply().startswith("421 4.3.2 ") and client.is_closed()
        client.close()
        assert proxy.process.wait(patience(10)) == 0
    assert receiver.connections == 1


def refused(client, times):
    for _ in range(times):
        assert client.say("RCPT TO:<nobody@d>").startswith("550 ")


def test_the_refusals_of_one_sender_do_not_count_for_the_next(tmp_path):
    """Postfix ends a connection after 20 refusals without a message, whoever caused them."""
    with ScriptedReceiver({"RCPT TO:<nobody": "550 5.1.1 no"}) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as one, Talk(proxy.address, source="192.0.2.2") as other:
        for client in (one, other):
            client.ehlo()
        assert one.say("MAIL FROM:<a@b>").startswith("250 ")
        refused(one, 19)
        assert one.say("RSET").startswith("250 ")
        assert other.say("MAIL FROM:<a@b>").startswith("250 ")
        assert receiver.connections == 2


def test_a_message_settles_the_refusals_before_it(tmp_path):
    with ScriptedReceiver({"RCPT TO:<nobody": "550 5.1.1 no"}) as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy, \
            Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        for _ in range(4):
            assert client.say("MAIL FROM:<a@b>").startswith("250 ")
            refused(client, 19)
            assert client.say("RCPT TO:<c@d>").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            client.send(BODY)
            assert client.reply().startswith("250 ")
        assert receiver.connections == 1
