"""smtpproxy and receivers that do not treat all senders, or all connections, in the same way."""

import contextlib

from tests.lib.build import patience
from tests.lib.scripted_receiver import GATE, ScriptedReceiver
from tests.lib.smtp_control import counters, states
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

BODY = "Subject: x\r\n\r\nx\r\n.\r\n"


@contextlib.contextmanager
def proxied(tmp_path, script, **keys):
    with ScriptedReceiver(script) as receiver, Proxy(tmp_path, next_hop=receiver.address, **keys) as proxy:
        yield proxy, receiver


def waiting(proxy, count):
    wait_until(lambda: states(proxy).count("waits") == count, patience(10), f"{count} sessions wait")


def test_a_refused_name_is_no_refusal_of_the_senders_beside_it(tmp_path):
    """Both wait for what the receiver offers, when it refuses the name of the first."""
    with proxied(tmp_path, {"banner": GATE + "220 gate", "EHLO bad": "550 5.7.1 no", "HELO bad": "550 5.7.1 no"}) as (proxy, receiver):
        with Talk(proxy.address, source="192.0.2.1") as bad, Talk(proxy.address, source="192.0.2.2") as good:
            bad.send("EHLO bad.example\r\n")
            waiting(proxy, 1)
            good.send("EHLO good.example\r\n")
            waiting(proxy, 2)
            receiver.open_gate()
            assert bad.reply().startswith("550 5.7.1 ")
            assert good.reply().startswith("250-")
            good.mail()
            good.send(BODY)
            assert good.reply().startswith("250 ")
        assert counters(proxy)["names_refused"] == 1


def test_a_name_that_is_refused_on_a_used_connection_ends_one_mail(tmp_path):
    """The connection is the first sender's. The second one's name is said on it later, and refused for now."""
    with proxied(tmp_path, {"EHLO bad": "450 4.7.1 unknown"}, limits={"connections_per_destination": 1}) as (proxy, receiver):
        with Talk(proxy.address, source="192.0.2.1") as good, Talk(proxy.address, source="192.0.2.2") as bad:
            good.ehlo()
            assert bad.say("EHLO bad.example").startswith("250-")
            assert bad.say("MAIL FROM:<a@b>").startswith("450 4.7.1 ")
            good.mail()
            good.send(BODY)
            assert good.reply().startswith("250 ")
        assert [command for _, command in receiver.heard].count("EHLO bad.example") == 1
