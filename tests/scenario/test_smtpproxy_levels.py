"""Postfix as a sender at each level of TLS, to a cluster with smtpproxy behind it: what is delivered, and what its sender keeps.
doc/mail.md says so: the certificate is the cluster's, and senders that demand the receiver's own are to be left out of the rules."""

import contextlib
import pathlib
import secrets

import pytest

from bench.experiments.mail_room import obstacle
from tests.lib.build import patience
from tests.lib.csslctl import csslctl
from tests.lib.mail import Sink, source
from tests.lib.mail_front_door import mail_door
from tests.lib.mail_servers import Postfix
from tests.lib.name_server import NameServer, Zone, tlsa
from tests.lib.network_space import RECEIVERS, SENDERS, elements, routed, use_example
from tests.lib.smtp_control import counters
from tests.lib.smtp_proxy import Proxy
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.skipif(obstacle() is not None, reason=str(obstacle())), pytest.mark.limit(120)]

KNOWN = "with the cluster's authority"
# What Postfix's log says of it. At `dane` it finds no TLSA records for an address, and falls back to `may`.
DELIVERED = {("may", ""): "Untrusted TLS", ("encrypt", ""): "Untrusted TLS", ("verify", KNOWN): "Verified TLS",
             ("secure", KNOWN): "Verified TLS", ("dane", ""): "Untrusted TLS"}
KEPT = {("verify", ""): Postfix.not_verified, ("secure", ""): Postfix.not_verified,
        ("dane-only", ""): "status=deferred"}


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    with Sink() as sink:
        yield start_module_cluster("--agents", "2", "--mail", "--mail-to", "{}:{}".format(*sink.address))


def accepted(cluster):
    return int(csslctl("mail", "status", "--dir", cluster.dir).facts["accepted"])


def postfix(folder, cluster, level, authority):
    return Postfix(folder, mail_door(cluster, "smtp"), relay_tls=level, ca=cluster.ca if authority else None,
                   options="smtp_tls_secure_cert_match = localhost")


@pytest.mark.parametrize("level,authority", DELIVERED)
def test_mail_is_delivered(cluster, tmp_path, level, authority):
    before = accepted(cluster)
    with postfix(tmp_path, cluster, level, authority) as msa:
        assert source(msa.address, "-m", "3").counts["sent"] == 3
        wait_until(lambda: msa.log().count("status=sent") == 3, patience(30), "three are sent")
        assert DELIVERED[level, authority] + " connection established" in msa.log()
    assert accepted(cluster) == before + 3


@pytest.mark.parametrize("level,authority", KEPT)
def test_mail_stays_with_its_sender(cluster, tmp_path, level, authority):
    before = accepted(cluster)
    with postfix(tmp_path, cluster, level, authority) as msa:
        assert source(msa.address, "-m", "3").counts["sent"] == 3
        wait_until(lambda: msa.log().count("status=deferred") >= 3, patience(30), "three are deferred")
        assert KEPT[level, authority] in msa.log()
    assert accepted(cluster) == before


# Whose certificate the TLSA record has, and what Postfix's log says of the mail.
RECORDS = {("dane", "receiver"): Postfix.not_verified, ("dane-only", "receiver"): Postfix.not_verified,
           ("dane", "cluster"): "Verified TLS connection", ("dane-only", "cluster"): "Verified TLS connection",
           ("dane", "nobody"): "Untrusted TLS connection"}
ASKS_FOR_TLSA = "disable_dns_lookups = no\nsmtp_host_lookup = dns\nsmtp_dns_support_level = dnssec\n"


@pytest.mark.tool("unbound", "ldns-signzone")
@pytest.mark.parametrize("level,whose", RECORDS)
def test_a_sender_that_asks_for_tlsa_records_believes_them(cluster, tmp_path, level, whose):
    """The certificate that it meets is the cluster's. Mail for a receiver with records of its own stays with the sender, so its
    connections are to pass untouched; records of the cluster's certificate are for those who publish the cluster as their server."""
    door = mail_door(cluster, "smtp")
    certificates = {"cluster": sorted(pathlib.Path(cluster.dir).glob("*sa.pem")), "receiver": [self_signed(tmp_path)[0]], "nobody": []}
    zone = Zone(tmp_path, "b.example", ["mx A 127.0.0.1", *(tlsa(door[1], certificate) for certificate in certificates[whose])])
    name_server = f"127.{secrets.randbelow(200) + 1}.{secrets.randbelow(250)}.53"
    with NameServer(tmp_path, zone, listen=(name_server, 53), validates=True):
        msa = Postfix(tmp_path, ("mx.b.example", door[1]), relay_tls=level, options=ASKS_FOR_TLSA)
        msa.room.etc("resolv.conf", f"nameserver {name_server}\n")
        with msa:
            assert source(msa.address, "-m", "1").counts["sent"] == 1
            wait_until(lambda: "status=" in msa.log(), patience(30), "Postfix has tried")
            assert RECORDS[level, whose] in msa.log()
            assert f"status={'deferred' if whose == 'receiver' else 'sent'}" in msa.log()


# --- past the proxy ---

RECEIVER = RECEIVERS[0].format(25)


@contextlib.contextmanager
def behind_a_router(folder):
    """What goes to port 25 is led to smtpproxy by the rules of conf/smtpproxy.yaml. The receiver offers STARTTLS."""
    chain, key = self_signed(folder)
    with routed() as (senders, router, receivers), contextlib.ExitStack() as stack:
        use_example(router, "nat")
        with receivers.entered():
            sink = stack.enter_context(Sink("--cert", str(chain), "--key", str(key), listen=f"{RECEIVER}:25"))
        listener = {"address": "0.0.0.0:2525", "original_destination": "redirect"}
        proxy = stack.enter_context(Proxy(folder, within=router.within, listeners=[listener], outward={"ports": [25]}))
        with senders.entered():
            yield router, proxy, sink, chain


def deliver_one(msa, end):
    with msa:
        assert source(msa.address, "-m", "1").counts["sent"] == 1
        wait_until(lambda: "status=" in msa.log(), patience(30), "Postfix has tried")
        assert f"status={end}" in msa.log(), msa.log()
        return msa.log()


@pytest.mark.tool("ip", "nft")
@pytest.mark.parametrize("level,seen", [("encrypt", "Untrusted"), ("verify", "Verified"), ("secure", "Verified")])
def test_who_passes_untouched_meets_the_receivers_own_certificate(tmp_path, level, seen):
    with behind_a_router(tmp_path) as (router, proxy, sink, chain):
        elements(router, "add", "untouched4", SENDERS[0].format(7))
        msa = Postfix(tmp_path, (RECEIVER, 25), relay_tls=level, ca=chain if seen == "Verified" else None,
                      options="smtp_tls_secure_cert_match = localhost")
        assert f"{seen} TLS connection established to {RECEIVER}" in deliver_one(msa, "sent")
        assert (counters(proxy)["sessions"], counters(proxy)["transactions"]) == (0, 0)
    assert sink.counts["right"] == sink.counts["full"] == 1


@pytest.mark.tool("ip", "nft", "unbound", "ldns-signzone")
def test_who_passes_untouched_finds_the_receivers_tlsa_records_good(tmp_path):
    with behind_a_router(tmp_path) as (router, proxy, sink, chain):
        elements(router, "add", "untouched4", SENDERS[0].format(7))
        zone = Zone(tmp_path, "b.example", [f"mx A {RECEIVER}", tlsa(25, chain)])
        with NameServer(tmp_path, zone, listen=("127.0.0.53", 53), validates=True):
            msa = Postfix(tmp_path, ("mx.b.example", 25), relay_tls="dane", options=ASKS_FOR_TLSA)
            msa.room.etc("resolv.conf", "nameserver 127.0.0.53\n")
            assert "Verified TLS connection established to mx.b.example" in deliver_one(msa, "sent")
        assert (counters(proxy)["sessions"], counters(proxy)["transactions"]) == (0, 0)
    assert sink.counts["right"] == sink.counts["full"] == 1


@pytest.mark.tool("ip", "nft")
def test_who_demands_tls_and_is_not_left_out_keeps_its_mail(tmp_path):
    with behind_a_router(tmp_path) as (_, proxy, sink, _):
        assert "TLS is required, but was not offered" in deliver_one(Postfix(tmp_path, (RECEIVER, 25), relay_tls="encrypt"), "deferred")
        assert (counters(proxy)["sessions"], counters(proxy)["transactions"]) == (1, 0)
    assert sink.counts["mails"] == 0
