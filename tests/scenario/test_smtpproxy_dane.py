"""DANE toward receivers (RFC 7672): smtpproxy asks a name server with signed zones, and real TLS follows."""

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.name_server import NameServer, SilentNameServer, Zone, tlsa
from tests.lib.smtp_control import counters
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("unbound", "ldns-signzone")

HOST = "mx A 127.0.0.1"


class Receiver:
    """A sink with STARTTLS, and what its zone says."""

    def __init__(self, folder, offers=True):
        self.port = free_ports(1)[0]
        self.chain, self.key = self_signed(folder)
        other = folder / "other"
        other.mkdir()
        self.other, _ = self_signed(other)
        options = ("--cert", str(self.chain), "--key", str(self.key)) if offers else ()
        self.sink = Sink(*options, listen=f"127.0.0.1:{self.port}")

    def tlsa(self, certificate=None, **how):
        return tlsa(self.port, certificate or self.chain, **how)


def deliver(folder, receiver, server, anchor, tls, name="mx.b.example", mails=1):
    """The replies to EHLO and to the end of each mail; the proxy's counters."""
    known = {"network": "127.0.0.0/8", "tls": tls, "name": name}
    dns = {"servers": [server.address], "trust_anchor": anchor, "timeout": "3s"}
    replies = []
    with receiver.sink as sink, Proxy(folder, next_hop=("127.0.0.1", receiver.port), outward={"receivers": [known]}, dns=dns) as proxy:
        for _ in range(mails):
            with Talk(proxy.address, source="192.0.2.1") as client:
                replies.append(client.say("EHLO client.example"))
                if replies[-1].startswith("250"):
                    client.mail()
                    replies.append(client.say("Subject: x\r\n\r\nx\r\n."))
        return replies, counters(proxy), sink, proxy.log()


SEALED, CLEAR = "sealed", "in clear"
# What the zone has, the policy, and how the mail arrives, or the reply that keeps it with its sender.
CASES = {
    "the certificate matches": (lambda r: [r.tlsa()], "dane", SEALED),
    "the certificate matches, only": (lambda r: [r.tlsa()], "dane-only", SEALED),
    "one of two matches": (lambda r: [r.tlsa(r.other), r.tlsa()], "dane", SEALED),
    "another certificate": (lambda r: [r.tlsa(r.other)], "dane", "421 4.7.5 The receiver's certificate does not match"),
    "no records": (lambda r: [], "dane", SEALED),
    "no records, only": (lambda r: [], "dane-only", "451 4.7.5 The receiver has no usable TLSA records"),
    "records of another use": (lambda r: [r.tlsa(r.other, usage=1)], "dane", SEALED),
    "records of another use, only": (lambda r: [r.tlsa(r.other, usage=1)], "dane-only", "451 4.7.5 The receiver has no usable"),
    "records at an alias": (lambda r: ["mx CNAME real", "real A 127.0.0.1", r.tlsa(host="real")], "dane-only", SEALED),
    "records at a name that is an alias": (lambda r: ["mx CNAME real", "real A 127.0.0.1", r.tlsa()], "dane-only", SEALED),
}


@pytest.mark.parametrize("case", CASES)
def test_the_records_of_a_signed_zone_count(tmp_path, case):
    records, tls, outcome = CASES[case]
    receiver = Receiver(tmp_path)
    lines = records(receiver)
    zone = Zone(tmp_path, "b.example", lines if any("CNAME" in line for line in lines) else [HOST, *lines])
    with NameServer(tmp_path, zone) as server:
        replies, counts, sink, _ = deliver(tmp_path, receiver, server, zone.anchor, tls)
    if outcome is SEALED:
        assert replies[-1].startswith("250 ") and sink.counts["full"] == 1
    else:
        assert replies[-1].startswith(outcome) and sink.counts["mails"] == 0
    assert counts["tlsa_failed"] == 0


def test_a_receiver_with_records_that_offers_no_tls_gets_no_mail(tmp_path):
    """Somebody on the way may have taken STARTTLS out of its reply."""
    receiver = Receiver(tmp_path, offers=False)
    zone = Zone(tmp_path, "b.example", [HOST, receiver.tlsa()])
    with NameServer(tmp_path, zone) as server:
        replies, _, sink, _ = deliver(tmp_path, receiver, server, zone.anchor, "dane")
    assert replies == [replies[0]] and replies[0].startswith("421 4.7.4 ")
    assert sink.counts["mails"] == 0


def test_without_records_and_without_tls_mail_goes_in_clear(tmp_path):
    receiver = Receiver(tmp_path, offers=False)
    zone = Zone(tmp_path, "b.example", [HOST])
    with NameServer(tmp_path, zone) as server:
        replies, _, sink, _ = deliver(tmp_path, receiver, server, zone.anchor, "dane")
    assert replies[-1].startswith("250 ") and sink.counts["mails"] == 1 and sink.counts["full"] == 0


@pytest.mark.parametrize("tls,reply", [("dane", "250 "), ("dane-only", "451 4.7.5 ")])
def test_records_of_a_zone_that_is_not_signed_do_not_count(tmp_path, tls, reply):
    receiver = Receiver(tmp_path)
    anchored = Zone(tmp_path, "b.example", [HOST])
    plain = Zone(tmp_path, "c.example", [HOST, receiver.tlsa(receiver.other)], signed=False)
    with NameServer(tmp_path, anchored, plain) as server:
        replies, _, sink, _ = deliver(tmp_path, receiver, server, anchored.anchor, tls, name="mx.c.example")
    assert replies[-1].startswith(reply) and sink.counts["mails"] == (reply == "250 ")


@pytest.mark.parametrize("forged", ["records", "address", "none"])
def test_forged_answers_keep_the_mail_with_its_sender(tmp_path, forged):
    """Whoever forges them could also show a certificate of his own."""
    receiver = Receiver(tmp_path)
    right, wrong = (line.rpartition(" ")[2] for line in (receiver.tlsa(), receiver.tlsa(receiver.other)))
    owner = f"_{receiver.port}._tcp.mx.b.example."
    change = {"records": (wrong, right), "address": ("mx.b.example.\t60\tIN\tA\t127.0.0.1", "mx.b.example.\t60\tIN\tA\t127.0.0.2"),
              "none": (owner, "_1._tcp.mx.b.example.")}[forged]
    zone = Zone(tmp_path, "b.example", [HOST, receiver.tlsa(receiver.other)], forged=[change])
    with NameServer(tmp_path, zone) as server:
        replies, counts, sink, log = deliver(tmp_path, receiver, server, zone.anchor, "dane", mails=2)
    assert len(replies) == 2 and all(reply.startswith("451 4.7.5 The receiver's TLSA records cannot be found out") for reply in replies)
    assert counts["tlsa_failed"] == 2 and sink.counts["mails"] == 0
    assert 'result="not known"' in log


def test_records_are_asked_for_again_when_they_are_old(tmp_path):
    """The receiver's administrator replaces a record by one of another certificate. Both live for a second."""
    receiver = Receiver(tmp_path)
    zone = Zone(tmp_path, "b.example", [HOST, receiver.tlsa()], ttl=1)
    known = {"network": "127.0.0.0/8", "tls": "dane", "name": "mx.b.example"}
    with receiver.sink, NameServer(tmp_path, zone) as server:
        dns = {"servers": [server.address], "trust_anchor": zone.anchor}
        outward = {"receivers": [known], "keep_idle": "1ms"}
        with Proxy(tmp_path, next_hop=("127.0.0.1", receiver.port), outward=outward, dns=dns) as proxy:
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                client.mail()
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            zone.change([HOST, receiver.tlsa(receiver.other)])
            server.restart()
            wait_until(lambda: _refused(proxy, "421 4.7.5 "), patience(20), "a refusal by the new record")


def _refused(proxy, reply):
    """A sender that greets again, or says MAIL, gets a connection that is opened now."""
    with Talk(proxy.address, source="192.0.2.1") as client:
        client.say("EHLO client.example")
        return client.say("MAIL FROM:<a@b.example>").startswith(reply)


def test_a_name_server_that_is_silent_keeps_the_mail_with_its_sender(tmp_path):
    receiver = Receiver(tmp_path)
    zone = Zone(tmp_path, "b.example", [HOST])
    with NameServer(tmp_path, zone) as server:
        server.stop()
        replies, counts, sink, _ = deliver(tmp_path, receiver, server, zone.anchor, "dane")
    assert replies[0].startswith("451 4.7.5 ") and counts["tlsa_failed"] == 1 and sink.counts["mails"] == 0


@pytest.mark.parametrize("what", ["stop", "reload", "the sender leaves"])
def test_an_open_question_holds_up_nothing(open_folder, what):
    zone = Zone(open_folder, "b.example", [HOST])
    known = {"network": "127.0.0.0/8", "tls": "dane", "name": "mx.b.example"}
    with SilentNameServer() as server, Sink() as sink:
        dns = {"servers": [server.address], "trust_anchor": zone.anchor, "timeout": "5min"}
        with Proxy(open_folder, next_hop=sink.address, outward={"receivers": [known]}, dns=dns) as proxy:
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.send("EHLO client.example\r\n")
                server.wait_asked()
                if what == "reload":  # the new file wants no records: the session is served
                    known["tls"] = "may"
                    proxy.write_config()
                    proxy.reload()
                    assert client.reply().startswith("250-")
                elif what == "stop":
                    assert proxy.stop() == 0
            wait_until(lambda: what == "stop" or counters(proxy)["sessions"] == 1, patience(10))


def test_a_trust_anchor_that_cannot_be_read_is_a_fault_at_the_start(tmp_path):
    with pytest.raises(AssertionError, match="dns: .*trust_anchor /nowhere"):
        with Proxy(tmp_path, next_hop=("127.0.0.1", 1), dns={"trust_anchor": "/nowhere"}):
            pass
