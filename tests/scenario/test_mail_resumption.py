"""Mail servers as clients of a cluster: they resume on agents that have made no full handshake, as their logs and our counters
show."""

import pytest

from bench.experiments.mail_room import obstacle
from tests.lib.mail import source
from tests.lib.mail_fronts import summed
from tests.lib.mail_servers import Exim, Postfix, wait_for_end

pytestmark = [pytest.mark.root, pytest.mark.skipif(obstacle() is not None, reason=str(obstacle())),
              pytest.mark.sanitized_with("test_sl resumes sessions of both versions", version="1.3")]

MAILS = 9
# One delivery at a time, so that only the first one has no session; and lines about sessions.
ONE_BY_ONE = {Postfix: "default_destination_concurrency_limit = 1\nsmtp_tls_loglevel = 2", Exim: "queue_only\nqueue_run_max = 1"}
# Exim marks a resumption by a star behind the bits of the cipher.
RESUMED = {Postfix: r"Reusing old session$", Exim: r" X=TLS\S+:\d+\* "}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("server", [Postfix, Exim], ids=lambda s: s.name)
def test_a_mail_server_resumes_at_other_agents(server, version, cluster_fronts, tmp_path):
    before = cluster_fronts.counts()
    with cluster_fronts.start("--mails", str(MAILS)) as front:
        with server(tmp_path, front.address, "encrypt", front.ca, version=version, options=ONE_BY_ONE[server]) as peer:
            assert source(peer.address, "-m", str(MAILS)).counts["sent"] == MAILS
            wait_for_end(front.sink, peer)
            peer.wait_for_lines(RESUMED[server], MAILS - 1)
    assert front.sink.counts["right"] == MAILS
    counts = cluster_fronts.since(before)
    assert summed(counts) == (1, MAILS - 1), counts
    assert all(resumed for full, resumed in counts.values() if full == 0), counts
