"""Mail through two hops that both speak the PROXY protocol: each names its transactions by ids of its own (doc/xcssltx.md)."""

import pytest

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.mail import Sink
from tests.lib.mail_cluster import mail_backend, mail_listener
from tests.lib.smtp_talk import Talk

pytestmark = pytest.mark.sanitized_tools


def test_connections_that_share_an_outer_id_share_no_names(start_cluster):
    """As the hop in front opens them when it goes on with a client's session. """
    port, = free_ports(1)
    with Sink("--proxy", "--xcssltx", "127.0.0.0/8") as sink:
        cluster = start_cluster("--agents", "1", edit=edits.edits(
            mail_backend(sink.address, "proxy_v2: on"),
            mail_listener("mail", port, above=("proxy_protocol: on", 'trusted: ["127.0.0.1/32"]'))))
        for number in range(2):
            with Talk(("127.0.0.1", port), unique_id=b"one id") as client:
                client.ehlo()
                assert client.say("STARTTLS").startswith("220 ")
                client.start_tls(str(cluster.dir / "ca.pem"))
                client.ehlo()
                for _ in range(2 - number):  # the second one's name has the lower number
                    client.say("NOOP")
                client.mail()
                client.send(f"Subject: {number}\r\n\r\nx\r\n.\r\n")
                assert client.reply().startswith("250 ")
        cluster.stop()
    assert sink.counts["mails"] == sink.counts["tx_named"] == 2, sink.result.seen()
