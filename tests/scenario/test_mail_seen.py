"""What operators see of mail: connections, counters and listeners, by csslctl and the API."""

import pytest

from tests.lib.csslctl import csslctl
from tests.lib.mail import Sink
from tests.lib.mail_front_door import mail_door, mail_options
from tests.lib.smtp_client import Client


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    with Sink() as sink:
        yield start_module_cluster("--agents", "2", *mail_options(sink))


def test_a_client_in_clear_is_shown_with_the_agent_that_speaks(cluster):
    with Client(mail_door(cluster, "smtp")) as client:
        client.greet()
        seen = cluster.connection_of(client.sock)
        assert seen["state"] == "preamble" and seen["owner"] is None and seen["preamble_agent"] in cluster.agents
        facts = csslctl("--dir", cluster.dir, "connections", "show", seen["id"]).facts
        assert facts["in clear with"] == seen["preamble_agent"] and facts["TLS"] == "the handshake has not ended"
        client.starttls(cluster.context(alpn=()))
        client.ask("EHLO client.example")
        seen = cluster.connection_of(client.sock)
        assert seen["preamble_agent"] is None and seen["owner"] in cluster.agents
        assert "in clear with" not in csslctl("--dir", cluster.dir, "connections", "show", seen["id"]).facts
