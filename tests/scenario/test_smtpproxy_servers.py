"""Real mail servers on both sides of smtpproxy: smtp-source, a sender, smtpproxy, a receiver with STARTTLS, smtp-sink."""

import contextlib

import pytest

from bench.experiments.mail_room import obstacle
from bench.experiments.network_space import Space
from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.mail import Sink, source
from tests.lib.mail_servers import SERVERS, Exim, Postfix
from tests.lib.odd_mail import ODD
from tests.lib.smtp_proxy import Proxy
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.tool("ip", "nft"), pytest.mark.limit(120),
              pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))]

MAILS = 20
PAIRS = [*((sender, Postfix) for sender in SERVERS.values()), (Postfix, Exim)]


@contextlib.contextmanager
def captured():
    """This thread is in a network of its own. It gives the address at which the senders of a proxy are redirected to it."""
    def lead_to(proxy):
        port, = free_ports(1)
        rule = f"tcp dport {port} redirect to :{proxy.address[1]}"
        space.rules(f"table inet cssl {{ chain output {{ type nat hook output priority -100; {rule}; }}; }}")
        return "127.0.0.1", port

    with Space() as space, space.entered():
        yield lead_to


@pytest.mark.parametrize("sender,receiver", PAIRS, ids=[f"{s.name}-to-{r.name}" for s, r in PAIRS])
def test_a_server_sends_through_the_proxy_to_another(tmp_path, sender, receiver):
    certificate = self_signed(tmp_path)
    odd = tmp_path / "odd.eml"
    odd.write_bytes(ODD)
    known = {"network": "127.0.0.0/8", "tls": "verify", "name": "localhost"}
    with captured() as senders_want, Sink("--mails", str(MAILS)) as sink, receiver(tmp_path / "receiver", sink.address,
                                                                                   certificate=certificate) as mx:
        with Proxy(tmp_path, next_hop=mx.address, listener={"original_destination": "redirect"},
                   outward={"receivers": [known], "ca": str(certificate[0])}) as proxy:
            with sender(tmp_path / "sender", senders_want(proxy)) as msa:
                result = source(msa.address, "-m", str(MAILS), "-s", "4", "-F", str(odd))
                assert result.counts["sent"] == MAILS, (result.errors, msa.log()[-2000:])
                sink.wait()
                wait_until(lambda: len(proxy.events()) >= MAILS, patience(10), "a record of each")
                records = proxy.events()
    assert sink.counts["mails"] == sink.counts["right"] == MAILS and sink.counts["duplicates"] == 0, (
        sink.result.seen(), [(r["outcome"], r["client"], r["size"], r["ms"], r["recipients"]) for r in records], msa.log()[-3000:])
    assert [record["outcome"] for record in records] == ["accepted"] * MAILS
    assert {record["tls"]["version"] for record in records} == {"TLSv1.3"}
