"""Postfix as a sender at each level of TLS, to a cluster with smtpproxy behind it: what is delivered, and what its sender keeps. README
says so: the certificate is the cluster's, and senders that demand the receiver's own are to be left out of the rules."""

import pytest

from bench.experiments.mail_room import obstacle
from tests.lib.build import patience
from tests.lib.csslctl import csslctl
from tests.lib.mail import Sink, source
from tests.lib.mail_front_door import mail_door
from tests.lib.mail_servers import Postfix
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
