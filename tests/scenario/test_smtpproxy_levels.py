"""Postfix as a sender at each level of TLS, to a cluster with smtpproxy behind it: what is delivered, and what its sender keeps.
doc/mail.md says so: the certificate is the cluster's, and senders that demand the receiver's own are to be left out of the rules."""

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


@pytest.mark.tool("unbound", "ldns-signzone")
@pytest.mark.parametrize("level,whose", RECORDS)
def test_a_sender_that_asks_for_tlsa_records_believes_them(cluster, tmp_path, level, whose):
    """The certificate that it meets is the cluster's. Mail for a receiver with records of its own stays with the sender, so its
    connections are to pass untouched; records of the cluster's certificate are for those who publish the cluster as their server."""
    door = mail_door(cluster, "smtp")
    certificates = {"cluster": sorted(pathlib.Path(cluster.dir).glob("*sa.pem")), "receiver": [self_signed(tmp_path)[0]], "nobody": []}
    zone = Zone(tmp_path, "b.example", ["mx A 127.0.0.1", *(tlsa(door[1], certificate) for certificate in certificates[whose])])
    name_server = f"127.{secrets.randbelow(200) + 1}.{secrets.randbelow(250)}.53"
    options = "disable_dns_lookups = no\nsmtp_host_lookup = dns\nsmtp_dns_support_level = dnssec\n"
    with NameServer(tmp_path, zone, listen=(name_server, 53), validates=True):
        msa = Postfix(tmp_path, ("mx.b.example", door[1]), relay_tls=level, options=options)
        msa.room.etc("resolv.conf", f"nameserver {name_server}\n")
        with msa:
            assert source(msa.address, "-m", "1").counts["sent"] == 1
            wait_until(lambda: "status=" in msa.log(), patience(30), "Postfix has tried")
            assert RECORDS[level, whose] in msa.log()
            assert f"status={'deferred' if whose == 'receiver' else 'sent'}" in msa.log()
