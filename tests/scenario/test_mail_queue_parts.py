"""smtpproxy with deliver: queue: a message for several domains is stored in parts, and delivered when all of them are."""

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.mail_queue import PathOfPorts
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.smtp_proxy import Control
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

CONTENT = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 250  # more than a fifth of the room, so that parts wait for each other
ROOM = {"memory": "1MiB", "message_size": "256KiB"}


def _domains(count):
    return [f"{n}.example" for n in range(count)]


def _sent(proxy, domains):
    """The reply to the end of a message for one recipient in each of the domains."""
    with Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        client.mail(recipients=[f"c@{domain}" for domain in domains])
        return client.say(CONTENT + ".")


def test_no_part_is_delivered_of_a_message_that_is_refused_in_the_end(tmp_path, stores):
    """The last part finds no place in the table of destinations, when the others are stored."""
    with PickyReceiver() as receiver:
        domains = _domains(6)
        to_it = [{"domain": domain, "next_hop": "{}:{}".format(*receiver.address)} for domain in domains]
        queue = {**ROOM, "destinations": len(domains) - 1, "domains": to_it, "port": 2525}
        with QueuedProxy(tmp_path, stores, None, queue=queue, ports=(2525, receiver.address[1])) as proxy:
            proxy.wait_open()
            assert _sent(proxy, domains).startswith("452 4.3.1 ")
            stores.wait_empty()
            assert not receiver.mails
            assert _sent(proxy, domains[1:]).startswith("250 ")
            stores.wait_empty()
    assert sorted(mail[1] for mail in receiver.mails) == sorted([f"c@{domain}"] for domain in domains[1:])


def test_each_stored_part_gives_the_others_time(tmp_path, stores):
    """All parts together take twice as long as store_timeout, because the way to the servers is slow."""
    paths = [PathOfPorts(port, rate=1_500_000) for port in stores.ports]
    queue = {**ROOM, "store_timeout": "2s", "backups": [{"paths": [f"127.0.0.1:{path.port}"]} for path in paths], "port": 2525}
    dns = {"servers": [f"127.0.0.1:{free_ports(1)[0]}"]}
    try:
        with QueuedProxy(tmp_path, stores, None, queue=queue, ports=(2525,), dns=dns) as proxy:
            proxy.wait_open()
            assert _sent(proxy, _domains(26)).startswith("250 ")
            wait_until(lambda: min(stores.items()) >= 26, patience(10), "all parts in both servers")
    finally:
        for path in paths:
            path.close()


def test_stored_mail_has_a_bound_in_memory(tmp_path, stores):
    """queue.total. Above it senders get 452, in a session that is open too, and nobody can connect until a tenth is free."""
    content = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 1000
    busy = ["yes"]
    with PickyReceiver(lambda line: "450 4.2.1 Later" if busy and line.startswith("MAIL") else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"total": "16MiB"}) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                for _ in range(18):
                    client.mail()
                    assert client.say(content + ".").startswith("250 ")
                client.mail()
                assert client.say(content + ".").startswith("452 4.3.1 ")
                proxy.wait_closed()
                assert client.say("MAIL FROM:<a@b.example>").startswith("452 4.3.1 ")
                assert "queue_full_total 2" in Control(proxy.control).ask("/metrics")[1]
                busy.clear()
                proxy.wait_open()
                client.mail()
                assert client.say(content + ".").startswith("250 ")
            stores.wait_empty()
    assert len(receiver.mails) == 19
