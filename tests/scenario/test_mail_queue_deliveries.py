"""smtpproxy with deliver: queue: when deliveries begin, when they are tried again, and what the servers see of them."""

import json
import re
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.csslctl import DONE, csslctl
from tests.lib.mail import Sink, source
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.smtp_control import ask
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


def _order(proxy, *words):
    done = csslctl("mail", "queue", *words, "--socket", str(proxy.control))
    assert done.code == DONE, done
    return done


def _copies(proxy, name):
    """For each server: its number, the states of both paths, in sync or not, the changes of that destination, and the unanswered ones."""
    return re.findall(rf"^{name} +(\d) +(\w+) +(\w+|-) +(yes|no) +(\d+) +(\d+)$", _order(proxy).out, re.M)


def _in_sync(proxy):
    """Of each server, by the metrics."""
    return re.findall(r'^smtpproxy_queue_backup_in_sync{backup="[01]"} ([01])$', ask(proxy, "/metrics").decode(), re.M)


@pytest.mark.parametrize("end", ["answers", "is lost"])
def test_mail_that_a_hanging_server_held_back_is_delivered_in_the_end(tmp_path, stores, end):
    """At 1,000 deletes that it has not confirmed no further delivery begins; those under way, 20, end."""
    mails, bound, under_way = 1500, 1000, 20
    seen = [0]

    def unconfirmed():
        seen.append(json.loads(ask(proxy, "/v1/queue"))["deletes_unconfirmed"])
        return seen[-1]

    backups = [{"paths": [f"127.0.0.1:{port}", f"127.0.0.2:{port}"]} for port in stores.ports]  # nobody listens at the second one
    with Sink() as sink:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"backups": backups}) as proxy:
            proxy.wait_open()
            name = "{}:{}".format(*sink.address)
            _order(proxy, "stop", name)
            assert source(proxy.address, "-m", str(mails), "-s", "10", "-d", "--proxy", "v2").counts["sent"] == mails
            assert _in_sync(proxy) == ["1", "1"]
            copies = _copies(proxy, name)
            assert [(n, one, *rest) for n, one, _, *rest in copies] == [(n, "active", "yes", f"{mails + 1}", "0") for n in "01"]
            assert {two for _, _, two, *_ in copies} <= {"down", "connecting"}
            stores.servers[1].pause()
            _order(proxy, "start", name)
            wait_until(lambda: unconfirmed() >= bound or seen[-1] < max(seen), patience(20), "deliveries stop, or the server is given up")
            if end == "answers":
                stores.servers[1].go_on()
            else:
                stores.servers[1].kill()
            wait_until(lambda: unconfirmed() == 0 and stores.servers[0].call("HLEN", "cssl:{mail}:items") == "0", patience(30), "an empty queue")
            wait_until(lambda: _in_sync(proxy) == ["1", "1" if end == "answers" else "0"], patience(20), "the metrics say so")
    assert max(seen) <= bound + under_way
    assert sink.counts["mails"] == mails and sink.counts["duplicates"] == 0


def test_a_message_that_is_put_off_waits_twice_as_long_each_time_up_to_the_last_wait(tmp_path, stores):
    came = []

    def put_off(line):
        if not line.startswith("RCPT"):
            return None
        came.append(time.monotonic())
        return "450 4.2.1 Later"

    with PickyReceiver(put_off) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"retry_first": "200ms", "retry_last": "800ms"}) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                client.mail()
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            wait_until(lambda: len(came) > 5, patience(20), "six attempts")
    gaps = [after - before for before, after in zip(came, came[1:])]
    for gap, least in zip(gaps, (0.2, 0.4, 0.8, 0.8, 0.8)):
        assert least - 0.01 <= gap < least + patience(0.35), gaps # seen when RCPT comes; the queue looks each 100 ms


def test_the_servers_see_nothing_of_a_mail_that_waits(tmp_path, stores):
    """Neither of the message nor of its state, from the sender's 250 to the delivery."""
    words = ("subjectword", "contentword", "senderword", "recipientword", "receiverdomain")
    port = free_ports(1)[0]
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", port)) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            assert client.say("MAIL FROM:<senderword@b.example>").startswith("250 ")
            assert client.say("RCPT TO:<recipientword@receiverdomain.example>").startswith("250 ")
            assert client.say("DATA").startswith("354 ")
            assert client.say("Subject: subjectword\r\n\r\ncontentword\r\n.").startswith("250 ")
        wait_until(lambda: stores.items() == [2, 2], patience(20), "the message and its state in both servers")
        for server in stores.servers:
            assert server.memory_has("cssl:{mail}:items")
            assert not [word for word in words if server.memory_has(word)]
        with Sink(listen=f"127.0.0.1:{port}") as sink:
            stores.wait_empty()
        for server in stores.servers:
            assert not [word for word in words if server.memory_has(word)]
            server.call("SET", "control", "subjectword")
            assert server.memory_has("subjectword")
    assert sink.counts["mails"] == 1
