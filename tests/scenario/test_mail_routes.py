"""deliver: queue without a next hop: the DNS says where mail goes (RFC 5321 5.1), and what TLS there has to be (RFC 7672)."""

import contextlib
import email
import re

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.name_server import NameServer, SilentNameServer, Zone, tlsa
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.queued_proxy import QueuedProxy, Stores
from tests.lib.smtp_proxy import Control
from tests.lib.smtp_talk import Talk
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli", "unbound", "ldns-signzone")


class Gateway(QueuedProxy):
    """Asks the test's name server; its receivers listen on one port of several loopback addresses."""

    def __init__(self, folder, stores, server, port, anchor=None, queue=None, timeout="3s", **keys):
        dns = {"servers": [server.address], "timeout": timeout, **({"trust_anchor": anchor} if anchor else {})}
        super().__init__(folder, stores, next_hop=None, queue={"port": port, **(queue or {})}, ports=(port,), dns=dns, **keys)

    def send(self, *recipients, sender="sender@a.example"):
        with Talk(self.address, source="192.0.2.1") as client:
            client.ehlo()
            assert client.say(f"MAIL FROM:<{sender}>").startswith("250 ")
            for recipient in recipients:
                assert client.say(f"RCPT TO:<{recipient}>").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            return client.say("Subject: x\r\n\r\nx\r\n.")

    def metric(self, name):
        text = Control(self.control).ask("/metrics")[1]
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"smtpproxy_{name}_total "))


@contextlib.contextmanager
def gateway(folder, port, *zones, **keys):
    with Stores(folder) as stores, NameServer(folder, *zones) as server:
        with Gateway(folder, stores, server, port, **keys) as proxy:
            proxy.wait_open()
            yield proxy, stores


def receivers(port, *hosts, replies=lambda line: None):
    """One for each of the addresses 127.0.0.N."""
    stack = contextlib.ExitStack()
    return stack, [stack.enter_context(PickyReceiver(replies, port=port, host=f"127.0.0.{n}")) for n in hosts]


def is_empty(stores):
    wait_until(lambda: stores.items() == [0, 0], patience(30), "an empty queue")


def got(receiver):
    return [(sender, recipients) for sender, recipients, _ in receiver.mails]


def test_mail_goes_to_the_best_server_of_each_domain(tmp_path):
    """One message for three domains: with MX records, without, and with an address in place of a domain."""
    port = free_ports(1)[0]
    b = Zone(tmp_path, "b.example", ["@ MX 20 second", "@ MX 10 first", "first A 127.0.0.2", "second A 127.0.0.3"], signed=False)
    c = Zone(tmp_path, "c.example", ["@ A 127.0.0.4"], signed=False)
    stack, (first, second, own, literal) = receivers(port, 2, 3, 4, 5)
    with stack, gateway(tmp_path, port, b, c) as (proxy, stores):
        assert proxy.send("x@B.example", "y@b.example", "z@c.example", "l@[127.0.0.5]").startswith("250 ")
        is_empty(stores)
        assert proxy.metric("delivered") == 3
        asked = re.findall(r'receiver="(.*)",code="354"} (\d+)', Control(proxy.control).ask("/metrics")[1])
    assert sorted(asked) == [(f"127.0.0.5:{port}", "1"), ("c.example", "1"), ("first.b.example", "1")]
    assert got(first) == [("sender@a.example", ["x@B.example", "y@b.example"])]
    assert got(own) == [("sender@a.example", ["z@c.example"])] and got(literal) == [("sender@a.example", ["l@[127.0.0.5]"])]
    assert not second.mails


def test_servers_of_one_preference_share_the_mail(tmp_path):
    port = free_ports(1)[0]
    zone = Zone(tmp_path, "b.example", ["@ MX 10 one", "@ MX 10 two", "one A 127.0.0.2", "two A 127.0.0.3"], signed=False)
    stack, (one, two) = receivers(port, 2, 3)
    with stack, gateway(tmp_path, port, zone) as (proxy, stores):
        for _ in range(24):
            proxy.send("x@b.example")
        is_empty(stores)
    assert len(one.mails) + len(two.mails) == 24
    assert one.mails and two.mails  # by chance, one of them alone: 1 in 8 million


@pytest.mark.parametrize("better", ["away", "closed for now", "closed", "without an address"])
def test_the_next_server_gets_the_mail_if_a_better_one_takes_no_connection(tmp_path, better):
    port = free_ports(1)[0]
    address = [] if better == "without an address" else ["first A 127.0.0.2"]
    zone = Zone(tmp_path, "b.example", ["@ MX 10 first", "@ MX 20 second", "second A 127.0.0.3", *address], signed=False)
    stack, (second,) = receivers(port, 3)
    banner = {"closed for now": "421 4.3.2 later", "closed": "554 5.3.2 never"}.get(better)
    with stack, gateway(tmp_path, port, zone) as (proxy, stores):
        if banner:
            stack.enter_context(PickyReceiver(port=port, host="127.0.0.2", banner=banner))
        assert proxy.send("x@b.example").startswith("250 ")
        is_empty(stores)
        assert proxy.metric("delivery_retries") == 0
    assert got(second) == [("sender@a.example", ["x@b.example"])]


def test_a_strangers_recipient_is_asked_for_at_the_servers_of_its_domain(tmp_path):
    """The best one is away. A domain that does not exist needs no question."""
    port = free_ports(1)[0]
    zone = Zone(tmp_path, "b.example", ["@ MX 10 first", "@ MX 20 second", "first A 127.0.0.2", "second A 127.0.0.3"], signed=False)
    stack, (second,) = receivers(port, 3, replies=lambda line: "550 5.1.1 Nobody" if "unknown@" in line else None)
    with stack, gateway(tmp_path, port, zone, listener={"accept": ["b.example", "*.b.example"], "clients": []}) as (proxy, stores):
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            assert client.say("MAIL FROM:<sender@a.example>").startswith("250 ")
            assert client.say("RCPT TO:<unknown@b.example>") == "550 5.1.1 Nobody"
            assert client.say("RCPT TO:<x@nobody.b.example>") == "550 5.1.2 The recipient's domain does not exist"
            assert client.say("RCPT TO:<x@b.example>").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
        is_empty(stores)
    assert got(second) == [("sender@a.example", ["x@b.example"])]


FAILS = {
    "a null MX": (["@ MX 0 ."], "556 5.1.10 The recipient's domain takes no mail"),
    "no such domain": (None, "550 5.1.2 The recipient's domain does not exist"),
    "no address": (["@ TXT x"], "550 5.4.4 The recipient's domain has no mail server"),
    "servers without addresses": (["@ MX 10 mx", "mx TXT x"], "550 5.4.4 The recipient's domain has no mail server"),
    "our own name is the best": (["@ MX 10 proxy.example.", "@ MX 20 mx", "mx A 127.0.0.2"], "554 5.4.6 Mail loops"),
    "our own address": (["@ MX 10 mx", "mx A 127.0.0.9"], "554 5.4.6 Mail loops"),
    "an address of this host": (["@ MX 10 mx", "mx A 0.0.0.0"], "550 5.4.4 The recipient's domain has no mail server"),
}


@pytest.mark.parametrize("case", FAILS)
def test_mail_that_has_no_way_comes_back_at_once(tmp_path, case):
    records, reply = FAILS[case]
    port = free_ports(1)[0]
    sender = Zone(tmp_path, "a.example", ["@ MX 10 mx", "mx A 127.0.0.8"], signed=False)
    zone = Zone(tmp_path, "b.example", records or [], signed=False)
    domain = "x@nobody.b.example" if records is None else "x@b.example"
    stack, (best, back) = receivers(port, 2, 8)
    with stack, gateway(tmp_path, port, sender, zone, outward={"never": [f"127.0.0.9:{port}"]}) as (proxy, stores):
        proxy.send(domain)
        is_empty(stores)
    assert got(back) == [("", ["sender@a.example"])] and not best.mails
    status = email.message_from_string(back.mails[0][2]).get_payload()[1].get_payload()[1]
    assert status["Diagnostic-Code"].startswith(f"X-CSSL; {reply}") and status["Status"] == reply.split()[1]


def test_mail_waits_while_no_name_server_answers(tmp_path):
    port = free_ports(1)[0]
    zone = Zone(tmp_path, "b.example", ["@ A 127.0.0.2"], signed=False)
    stack, (receiver,) = receivers(port, 2)
    with stack, Stores(tmp_path) as stores:
        server = NameServer(tmp_path, zone)
        with Gateway(tmp_path, stores, server, port) as proxy:
            proxy.wait_open()
            proxy.send("x@b.example")
            wait_until(lambda: proxy.metric("delivery_retries") > 0, patience(30), "a second attempt")
            assert 'reply="The DNS does not answer' in proxy.log() and not receiver.mails
            with server:
                is_empty(stores)
    assert got(receiver) == [("sender@a.example", ["x@b.example"])]


@pytest.mark.parametrize("what", ["stop", "time-out"])
def test_a_name_server_that_never_answers_holds_up_nothing(tmp_path, what):
    port = free_ports(1)[0]
    with Stores(tmp_path) as stores, SilentNameServer() as server:
        with Gateway(tmp_path, stores, server, port, timeout="5min" if what == "stop" else "300ms") as proxy:
            proxy.wait_open()
            proxy.send("x@b.example")
            server.wait_asked()
            if what == "time-out":
                wait_until(lambda: proxy.metric("delivery_retries") > 1, patience(30), "a second attempt")
                assert 'cause="it took too long"' in proxy.log()
            assert proxy.stop() == 0
        assert stores.items() != [0, 0]


def test_forged_answers_keep_the_mail_in_the_queue(tmp_path):
    port = free_ports(1)[0]
    zone = Zone(tmp_path, "b.example", ["@ MX 10 mx", "mx A 127.0.0.2"], forged=[("MX\t10 mx.", "MX\t10 my.")])
    with gateway(tmp_path, port, zone, anchor=zone.anchor) as (proxy, stores):
        proxy.send("x@b.example")
        wait_until(lambda: proxy.metric("delivery_retries") > 1, patience(30), "a second attempt")
        assert 'reply="DNSSEC does not confirm' in proxy.log()
        assert stores.items() != [0, 0]


# The level, whether the zone is signed, whose certificate the TLSA record has (None: no record), and whether the mail arrives.
LEVELS = [("dane", True, "right", "sealed"), ("dane", True, "wrong", None), ("dane", True, None, "sealed"),
          ("dane", False, "wrong", "sealed"), ("dane-only", True, "right", "sealed"), ("dane-only", True, None, None),
          ("dane-only", False, "right", None),
          ("encrypt", False, None, "sealed"), ("verify", False, None, "sealed"), ("verify wrong.example", False, None, None),
          ("none", False, None, "in clear")]


@pytest.mark.parametrize("tls,signed,record,arrives", LEVELS)
def test_each_domain_has_its_level_of_tls(tmp_path, tls, signed, record, arrives):
    port = free_ports(1)[0]
    (tmp_path / "other").mkdir()
    certificates = {"right": self_signed(tmp_path), "wrong": self_signed(tmp_path / "other")}
    chain, key = certificates["right"]
    host = "localhost" if "verify" in tls else "mx"
    records = [f"@ MX 10 {host}{'.' if host == 'localhost' else ''}", "mx A 127.0.0.2"]
    zone = Zone(tmp_path, "b.example", records + ([tlsa(port, certificates[record][0])] if record else []), signed=signed)
    anchored = Zone(tmp_path, "s.example", [])
    level, _, name = tls.partition(" ")
    known = {"domain": "b.example", "tls": level, **({"name": name} if name else {})}
    listen = "127.0.0.1" if host == "localhost" else "127.0.0.2"
    with Sink("--cert", str(chain), "--key", str(key), listen=f"{listen}:{port}") as sink:
        with gateway(tmp_path, port, zone, anchored, anchor=zone.anchor or anchored.anchor, queue={"domains": [known]},
                     outward={"ca": str(chain)}) as (proxy, stores):
            proxy.send("x@b.example")
            if arrives:
                is_empty(stores)
            else:
                wait_until(lambda: proxy.metric("delivery_retries") > 1, patience(30), "a second attempt")
    assert sink.counts["mails"] == bool(arrives) and sink.counts["full"] == (arrives == "sealed")


def test_mail_for_several_domains_survives_the_death_of_the_gateway(tmp_path):
    """It has one 250, and is stored as one message for each domain."""
    port = free_ports(1)[0]
    names = ["b.example", "c.example", "d.example"]
    zones = [Zone(tmp_path, name, [f"@ A 127.0.0.{n}"], signed=False) for n, name in enumerate(names, 2)]
    with Stores(tmp_path) as stores, NameServer(tmp_path, *zones) as server:
        with Gateway(tmp_path, stores, server, port) as proxy:
            proxy.wait_open()
            for number in range(10):
                assert proxy.send(*(f"{number}@{name}" for name in names)).startswith("250 ")
            proxy.kill()
        stack, hosts = receivers(port, 2, 3, 4)
        with stack, Gateway(tmp_path, stores, server, port) as proxy:
            is_empty(stores)
    for name, host in zip(names, hosts):
        assert sorted(got(host)) == [("sender@a.example", [f"{number}@{name}"]) for number in range(10)]


def test_a_domain_may_have_a_next_hop_of_its_own(tmp_path):
    port = free_ports(1)[0]
    zone = Zone(tmp_path, "b.example", ["@ MX 10 mx", "mx A 127.0.0.2"], signed=False)
    stack, (mx, hop) = receivers(port, 2, 3)
    known = {"domain": "b.example", "next_hop": f"127.0.0.3:{port}"}
    with stack, gateway(tmp_path, port, zone, queue={"domains": [known]}) as (proxy, stores):
        proxy.send("x@b.example")
        is_empty(stores)
    assert got(hop) == [("sender@a.example", ["x@b.example"])] and not mx.mails


def test_of_recipients_without_a_domain_postmaster_is_taken(tmp_path):
    """RFC 5321 4.5.1. The mail goes where the file says that mail for the gateway's own name goes."""
    port = free_ports(1)[0]
    stack, (hop,) = receivers(port, 3)
    known = {"domain": "gateway.example", "next_hop": f"127.0.0.3:{port}"}
    with stack, gateway(tmp_path, port, Zone(tmp_path, "b.example", [], signed=False), name="gateway.example", queue={"domains": [known]}) as (proxy, stores):
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            assert client.say("MAIL FROM:<a@b.example>").startswith("250 ")
            assert client.say("RCPT TO:<root>").startswith("501 5.1.3 ")
        proxy.send("Postmaster")
        is_empty(stores)
    assert got(hop) == [("sender@a.example", ["Postmaster@gateway.example"])]


def test_names_for_tests_and_homes_are_those_of_the_resolver(tmp_path):
    """libunbound has an answer of its own for them, and a trust anchor of the root says that there is no such name."""
    port = free_ports(1)[0]
    zones = [Zone(tmp_path, "b.test", ["@ MX 10 mx", "mx A 127.0.0.2"], signed=False),
             Zone(tmp_path, "c.home.arpa", ["@ A 127.0.0.3"], signed=False)]
    stack, (test, home) = receivers(port, 2, 3)
    with stack, gateway(tmp_path, port, *zones) as (proxy, stores):
        proxy.send("x@b.test", "y@c.home.arpa.")
        is_empty(stores)
    assert got(test) == [("sender@a.example", ["x@b.test"])] and got(home) == [("sender@a.example", ["y@c.home.arpa"])]
