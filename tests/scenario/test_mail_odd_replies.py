"""smtpproxy, with a queue and without one, in front of receivers whose replies RFC 5321 does not have: they get each mail exactly once."""

import pytest

from tests.lib.build import patience
from tests.lib.odd_replies import COUNT, odd_receiver, subjects
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.smtp_control import counters
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until


def _send(client, number):
    assert client.say("MAIL FROM:<a@b.example>").startswith("2")
    refused = client.say("RCPT TO:<refused@d.example>")
    assert client.say("RCPT TO:<c@d.example>").startswith("2")
    assert client.say("DATA").startswith("3")
    assert client.say(f"Subject: {number}\r\n\r\nx\r\n.").startswith("2")
    return refused


@pytest.mark.parametrize("which", range(COUNT))
def test_a_relay_gives_an_odd_receiver_each_mail_once(tmp_path, which):
    mails, odd = odd_receiver(which)
    with odd as receiver, Proxy(tmp_path, next_hop=receiver.address) as proxy, Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        for number in range(mails):
            refused = _send(client, number)
            assert refused.startswith("550 5.7.1 xxx") and len(refused) <= 1024
        assert client.say("QUIT").startswith("221 ")
        assert counters(proxy)["accepted"] == mails and not counters(proxy)["in_doubt"]
    assert subjects(receiver) == list(range(mails))


@pytest.mark.tool("redis-server", "redis-cli")
@pytest.mark.parametrize("which", range(COUNT))
def test_a_queue_gives_an_odd_receiver_each_mail_once(tmp_path, stores, which):
    """The refused recipient has its notice: one more mail for each."""
    mails, odd = odd_receiver(which)
    with odd as receiver, QueuedProxy(tmp_path, stores, receiver.address, queue={"retry_first": "100ms"}) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            for number in range(mails):
                _send(client, number)
        stores.wait_empty()
        wait_until(lambda: len(receiver.contents) >= 2 * mails, patience(10), "the mails and their notices")
        assert not counters(proxy)["in_doubt"] and not counters(proxy)["delivery_retries"]
    notices = [content for content in receiver.contents if b"multipart/report" in content]
    receiver.contents = [content for content in receiver.contents if content not in notices]
    assert subjects(receiver) == list(range(mails)) and len(notices) == mails
