"""smtpproxy knows at most limits.destinations receivers: another one waits for a place, or takes that of one without use."""

import threading

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.queued_proxy import QueuedProxy, Stores
from tests.lib.smtp_control import counters
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until


def _said(client, domain="b.example"):
    client.ehlo()
    client.mail(recipients=[f"c@{domain}"])
    return client.say("Subject: x\r\n\r\nx\r\n.")


def _banner(proxy, receiver):
    with Talk(proxy.address, destination=receiver.address) as client:
        return client.banner


@pytest.mark.tool("redis-server", "redis-cli")
def test_a_line_without_a_place_goes_on_when_one_is_free(tmp_path):
    """Without the minute of a failure."""
    begun, goes_on = threading.Event(), threading.Event()

    def hold(line):
        if line == ".":
            begun.set()
            goes_on.wait(patience(20))

    with Stores(tmp_path) as stores, PickyReceiver(hold) as slow, PickyReceiver() as other:
        to = [{"domain": f"{name}.example", "next_hop": text_of(receiver.address)} for name, receiver in (("slow", slow), ("b", other))]
        with QueuedProxy(tmp_path, stores, None, queue={"domains": to, "port": 2525}, ports=(2525, slow.address[1], other.address[1]),
                         limits={"destinations": 1}, outward={"keep_idle": "100ms"}) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                assert _said(client, "slow.example").startswith("250 ")
                assert begun.wait(patience(20))
                assert _said(client).startswith("250 ")
            goes_on.set()
            wait_until(lambda: len(other.mails) == 1, patience(10), "the other mail")
    assert len(slow.mails) == 1


class HeldReceiver(PickyReceiver):
    """It holds the reply to the end of its first mail until `goes_on` is set."""

    def __init__(self):
        self.begun, self.goes_on = threading.Event(), threading.Event()
        super().__init__(self._hold)

    def _hold(self, line):
        if line == "." and not self.begun.is_set():
            self.begun.set()
            self.goes_on.wait(patience(30))

    def __exit__(self, *_):
        self.goes_on.set()
        super().__exit__()


def _to(**receivers):
    return [{"domain": f"{name}.example", "next_hop": text_of(receiver.address)} for name, receiver in receivers.items()]


def _fills_the_places(proxy, receiver):
    with Talk(proxy.wait_open().address, source="192.0.2.1") as client:
        assert _said(client, "slow.example").startswith("250 ")
    assert receiver.begun.wait(patience(20))


@pytest.mark.tool("redis-server", "redis-cli")
def test_a_line_whose_receiver_has_a_place_goes_on_while_none_is_free(tmp_path):
    """Its receiver has the only place, because of the mail of another line."""
    with Stores(tmp_path) as stores, HeldReceiver() as slow, \
            QueuedProxy(tmp_path, stores, None, queue={"domains": _to(slow=slow, b=slow), "port": 2525}, ports=(2525, slow.address[1]),
                        limits={"destinations": 1, "stop_timeout": "1s"}) as proxy:
        _fills_the_places(proxy, slow)
        with Talk(proxy.address, source="192.0.2.1") as client:
            assert _said(client).startswith("250 ")
        wait_until(lambda: [mail[1] for mail in slow.mails] == [["c@b.example"]], patience(10), "the mail of the other line")


@pytest.mark.tool("redis-server", "redis-cli")
def test_mail_without_a_place_expires_and_the_operator_is_told(tmp_path):
    dns = {"servers": [f"127.0.0.1:{free_ports(1)[0]}"]}
    with Stores(tmp_path) as stores, HeldReceiver() as slow, PickyReceiver() as other, \
            QueuedProxy(tmp_path, stores, None, queue={"domains": _to(slow=slow, b=other), "port": 2525, "expire": "1s"}, dns=dns,
                        ports=(2525, slow.address[1], other.address[1]), limits={"destinations": 1, "stop_timeout": "1s"}) as proxy:
        _fills_the_places(proxy, slow)
        with Talk(proxy.address, source="192.0.2.1") as client:
            assert _said(client).startswith("250 ")
        wait_until(lambda: counters(proxy)["no_place"] > 0, patience(10), "an attempt without a place")
        line, = [line for line in proxy.log().splitlines() if "a line waits for a place of its receiver" in line]
        assert "line=b.example" in line and 'remedy="raise limits.destinations"' in line
        wait_until(lambda: counters(proxy)["notices"] == 1, patience(20), "a notice to the sender")
        assert not other.mails


def test_a_receiver_without_use_gives_its_place_to_another(tmp_path):
    """Else it would have it for five minutes, and senders to others would get 421."""
    with PickyReceiver() as first, PickyReceiver() as second, \
            Proxy(tmp_path, ports=(first.address[1], second.address[1]), limits={"destinations": 1}, outward={"keep_idle": "100ms"}) as proxy:
        with Talk(proxy.address, destination=first.address) as client:
            assert _said(client).startswith("250 ")
            with Talk(proxy.address, destination=second.address) as refused:
                assert refused.banner.startswith("421 4.3.2 ")
        wait_until(lambda: _banner(proxy, second).startswith("220 "), patience(10), "a place")
        with Talk(proxy.address, destination=second.address) as client:
            assert _said(client).startswith("250 ")
    assert len(first.mails) == len(second.mails) == 1
