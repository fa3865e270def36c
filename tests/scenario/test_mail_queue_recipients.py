"""What becomes of the recipients of a message with deliver: queue, one by one, and what its sender is told of them."""

import email

import pytest

from bench.experiments.ports import free_ports
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.smtp_proxy import Control
from tests.lib.smtp_talk import Talk

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


def _metrics(proxy):
    return Control(proxy.control).ask("/metrics")[1]


def _sent(proxy, *recipients, sender="<sender@a.example>", body="Subject: the first\r\n\r\nx\r\n"):
    proxy.wait_open()
    with Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        assert client.say(f"MAIL FROM:{sender}").startswith("250 ")
        for recipient in recipients:
            assert client.say(f"RCPT TO:{recipient}").startswith("250 ")
        assert client.say("DATA").startswith("354 ")
        assert client.say(f"{body}.").startswith("250 ")


@pytest.mark.parametrize("reply", ["452 4.5.3 Too many recipients", "452 Too many recipients", "552 Too many recipients", "552 5.5.3 Too many"])
def test_a_receiver_of_few_recipients_at_a_time_gets_the_others_at_once(tmp_path, stores, reply):
    """RFC 5321 4.5.3.1.10. Each transaction delivers to some, so no attempt has failed and nobody has to wait."""
    taken = []

    def replies(line):
        if line.startswith("MAIL"):
            taken.clear()
        if not line.startswith("RCPT"):
            return None
        if len(taken) < 2:
            taken.append(line)
            return None
        return reply

    names = [f"c{n}@b.example" for n in range(7)]
    with PickyReceiver(replies) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"retry_first": "30min", "retry_last": "30min"}) as proxy:
            _sent(proxy, *(f"<{name}>" for name in names))
            stores.wait_empty()
            assert "deliveries_split_total 3" in _metrics(proxy) and "delivery_retries_total 0" in _metrics(proxy)
    assert [mail[1] for mail in receiver.mails] == [names[0:2], names[2:4], names[4:6], names[6:]]


def test_too_many_recipients_is_no_failure_if_the_connection_ends_with_it(tmp_path, stores):
    """Both replies come in one segment. The next connection takes all."""
    crowded = ["552 Too many recipients\r\n421 4.7.0 Too many errors"]
    with PickyReceiver(lambda line: crowded.pop() if crowded and line.startswith("RCPT TO:<d@") else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"retry_first": "1s", "retry_last": "1s"}) as proxy:
            _sent(proxy, "<c@b.example>", "<d@b.example>")
            stores.wait_empty()
    assert [mail[:2] for mail in receiver.mails] == [("sender@a.example", ["c@b.example", "d@b.example"])]


def test_what_is_not_offered_is_refused(tmp_path, stores):
    """RFC 5321 4.1.1.11, RFC 6531 3.1. A notice of failure, days later, would be no answer."""
    with PickyReceiver() as receiver, QueuedProxy(tmp_path, stores, receiver.address) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            for parameter in ("BODY=BINARYMIME", "BODY=FOO", "FOO=bar", "RET=FOO", "SMTPUTF8", "AUTH=<>", "MT-PRIORITY=3", "NOTIFY=NEVER"):
                assert client.say(f"MAIL FROM:<a@b.example> {parameter}").startswith("555 5.5.4 "), parameter
            assert client.say("MAIL FROM:<a@b.example> SIZE=x").startswith("501 5.5.4 ")
            assert client.say("MAIL FROM:<a@m\u00fcnchen.example>").startswith("553 5.6.7 ")
            assert client.say("MAIL FROM:<a@b.example> RET=HDRS BODY=8BITMIME ENVID=1").startswith("250 ")
            assert client.say("RCPT TO:<u@m\u00fcnchen.example>").startswith("553 5.6.7 ")
            assert client.say("RCPT TO:<c@b.example> RRVS=2014-04-03T23:01:00Z").startswith("555 5.5.4 ")
            assert client.say("RCPT TO:<postmaster> NOTIFY=NEVER").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            assert client.say("x: y\r\n.").startswith("250 ")
        stores.wait_empty()
    assert [mail[:2] for mail in receiver.mails] == [("a@b.example", ["postmaster"])]


@pytest.mark.parametrize("first", ["From ", ">From "])
def test_an_mbox_line_and_an_odd_name_break_no_header(tmp_path, stores, first):
    """Postfix makes a field of the line, and puts question marks into the name."""
    line = f"{first}cron@a.example Mon Jan  1 00:00:00 2024"
    with PickyReceiver() as receiver, QueuedProxy(tmp_path, stores, receiver.address) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            assert client.say("EHLO my pc (m\u00fc").startswith("250-")
            assert client.say("MAIL FROM:<a@b.example>").startswith("250 ")
            assert client.say("RCPT TO:< c@b.example. >").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            assert client.say(f"{line}\r\nSubject: report\r\n\r\nbody\r\n.").startswith("250 ")
        stores.wait_empty()
    assert receiver.mails[0][1] == ["c@b.example"]
    report = email.message_from_string(receiver.mails[0][2])
    assert report["X-Mailbox-Line"] == line and report["Subject"] == "report" and report.get_payload() == "body\r\n"
    assert report["Received"].startswith("from [192.0.2.1] ([192.0.2.1]) (EHLO my?pc??m??)")


@pytest.mark.parametrize("reply", ["552 5.2.2 Mailbox is full", "552 Mailbox is full", "552 5.5.3 Too many"])
def test_a_recipient_that_is_refused_alone_fails_whatever_the_words(tmp_path, stores, reply):
    """552 means too many recipients only behind one that was accepted."""
    with PickyReceiver(lambda line: reply if "full" in line else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"retry_first": "30min", "retry_last": "30min"}) as proxy:
            _sent(proxy, "<c@b.example>", "<full@b.example>")
            stores.wait_empty()
    assert [mail[1] for mail in receiver.mails] == [["c@b.example"], ["sender@a.example"]]


def _report(notice):
    """Of a notice as a receiver got it: the fields of the message, those of its recipients, and the part with what is returned."""
    report = email.message_from_string(notice[2])
    assert report.get_content_type() == "multipart/report" and notice[:2] == ("", ["sender@a.example"])
    assert max(map(len, notice[2].splitlines())) < 999
    _, status, returned = report.get_payload()
    message, *recipients = status.get_payload()
    return message, recipients, returned


def test_a_notice_has_what_the_sender_named_and_no_byte_that_is_not_ascii(tmp_path, stores):
    """RFC 3461 6.3, RFC 3464 2: ENVID and ORCPT are decoded, a text of ours has no type smtp, a number that is no enhanced code is none."""
    replies = {"first": "550 1.2.3.4 is listed \u00e9\t", "second": "550 5.7.1 No", "third": "550 5.1.1 No"}
    with PickyReceiver(lambda line: next((reply for name, reply in replies.items() if name in line), None)) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            _sent(proxy, "<first@b.example> ORCPT=rfc822;F+2Bx@c.example", "<second@b.example> ORCPT=rfc822;x+0D+0AAction:+20none",
                  "<third@b.example>", sender="<sender@a.example> ENVID=a+2Bb+20c",
                  body="Subject: caf\u00e9 = " + "x" * 100 + " \r\nX-Second: y\r\n\r\nbody\r\n")
            stores.wait_empty()
    notice, = receiver.mails
    assert notice[2].isascii() and not set(notice[2]) & set("\t\v\x1f")
    message, recipients, returned = _report(notice)
    assert message["Original-Envelope-Id"] == "a+b c"
    first, second, third = recipients
    assert first["Original-Recipient"] == "rfc822;F+x@c.example" and first["Status"] == "5.0.0"
    assert first["Diagnostic-Code"].startswith("smtp; 550 1.2.3.4 is listed ??") and first["Remote-MTA"] == "dns; [127.0.0.1]"
    assert second["Original-Recipient"] == "rfc822;x+0D+0AAction:+20none" and second.get_all("Action") == ["failed"]
    assert third["Original-Recipient"] is None and third["Status"] == "5.1.1"
    assert returned.get_content_type() == "text/rfc822-headers"
    header = returned.get_payload(decode=True).decode()
    assert header.startswith("Received: from ") and header.endswith(f"\nSubject: caf\u00e9 = {'x' * 100} \r\nX-Second: y\r\n")


@pytest.mark.parametrize("wanted, body", [("FULL", "plain"), ("FULL", "caf\u00e9"), ("HDRS", "plain")])
def test_a_notice_returns_as_much_as_the_sender_wants(tmp_path, stores, wanted, body):
    params = []

    def replies(line):
        if line.startswith("MAIL"):
            params.append(line)
        return "250-picky.example\r\n250 8BITMIME" if line.startswith("EHLO") else "550 5.1.1 No" if "nobody" in line else None

    with PickyReceiver(replies) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            _sent(proxy, "<nobody@b.example>", sender=f"<sender@a.example> RET={wanted}", body=f"Subject: x\r\n\r\n{body}\r\n")
            stores.wait_empty()
    notice, = receiver.mails
    _, _, returned = _report(notice)
    assert returned.get_content_type() == ("message/rfc822" if wanted == "FULL" else "text/rfc822-headers")
    assert (f"\r\n\r\n{body}\r\n" in notice[2]) == (wanted == "FULL")
    assert ("BODY=8BITMIME" in params[-1]) == (not notice[2].isascii()) == (body != "plain")


def test_a_sender_that_wants_to_hear_of_success_is_told_when_the_next_hop_sends_no_reports(tmp_path, stores):
    """RFC 3461 5.2.2."""
    with PickyReceiver() as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            _sent(proxy, "<c@b.example> NOTIFY=SUCCESS,FAILURE", "<d@b.example>", "<e@b.example> NOTIFY=NEVER",
                  sender="<sender@a.example> RET=FULL")
            stores.wait_empty()
            assert "delivered_total 2" in _metrics(proxy) and "failed_total 0" in _metrics(proxy)
    mail, notice = receiver.mails
    assert mail[1] == ["c@b.example", "d@b.example", "e@b.example"]
    _, (recipient,), returned = _report(notice)
    assert recipient["Final-Recipient"] == "rfc822; c@b.example" and recipient["Action"] == "relayed" and recipient["Status"] == "2.0.0"
    assert returned.get_content_type() == "text/rfc822-headers"  # RET counts for failures only


def test_a_next_hop_that_knows_reports_sends_them_itself(tmp_path, stores):
    commands = []

    def replies(line):
        commands.append(line)
        return "250-picky.example\r\n250 DSN" if line.startswith("EHLO") else None

    with PickyReceiver(replies) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            _sent(proxy, "<c@b.example> NOTIFY=SUCCESS", sender="<sender@a.example> ENVID=one")
            stores.wait_empty()
    assert len(receiver.mails) == 1
    assert "RCPT TO:<c@b.example> NOTIFY=SUCCESS" in commands and "MAIL FROM:<sender@a.example> ENVID=one" in commands


def test_a_notice_of_a_text_of_ours_names_no_server(tmp_path, stores):
    with PickyReceiver() as receiver:
        ports = [receiver.address[1], free_ports(1)[0]]
        domains = [{"domain": domain, "next_hop": f"127.0.0.1:{port}"} for domain, port in zip(("a.example", "b.example"), ports)]
        with QueuedProxy(tmp_path, stores, None, queue={"port": ports[0], "expire": "1s", "domains": domains}, ports=ports) as proxy:
            _sent(proxy, "<c@b.example>")
            stores.wait_empty()
    _, (recipient,), _ = _report(receiver.mails[0])
    assert recipient["Remote-MTA"] is None and recipient["Diagnostic-Code"].startswith("X-CSSL; 4")
