"""Two gateways with one queue: the standby goes on when the owner is gone, and an owner that was only paused does nothing more."""

import json
import signal
import socket
import subprocess
import threading
import time

import pytest

from tests.lib.build import patience, scaled, sized
from tests.lib.mail import CLEAN, Result, Sink, source_command
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.processes import stop
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.smtp_proxy import Control
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

TAKEN_OVER = 40  # seconds: 15 of silence, the claim and the reading, and the lease of the first one


class Pair:
    """The owner and its standby. The owner's end is the test's affair."""

    def __init__(self, folder, stores, next_hop):
        self.stores = stores
        folders = [folder / name for name in ("owner", "standby")]
        for each in folders:
            each.mkdir()
        self.owner = QueuedProxy(folders[0], stores, next_hop, queue={"role": "owner"}, name="owner.example").wait_open()
        self.standby = QueuedProxy(folders[1], stores, next_hop, queue={"role": "standby"}, name="standby.example")
        wait_until(lambda: json.loads(Control(self.standby.control).ask("/v1/queue")[1])["state"] == "watching", patience(10))

    def wait_taken_over(self):
        wait_until(self.standby.is_open, patience(TAKEN_OVER), f"the standby: {self.standby.log()[-2000:]}")

    def wait_empty(self):
        wait_until(lambda: self.stores.items() == [0, 0], patience(TAKEN_OVER), "an empty queue")

    def close(self):
        if self.owner.process.poll() is None:
            self.owner.kill()
        complaints = self.owner.complaints()
        assert not any(word in complaints for word in CLEAN), complaints
        with self.standby:
            pass


def _delivered(proxy):
    text = Control(proxy.control).ask("/metrics")[1]
    return int(text.partition("\nsmtpproxy_delivered_total ")[2].split(maxsplit=1)[0])


@pytest.mark.limit(180)
def test_the_standby_delivers_all_that_the_killed_owner_accepted(tmp_path, stores):
    with Sink() as sink:
        pair = Pair(tmp_path, stores, sink.address)
        try:
            command = source_command(pair.owner.address, "-m", str(scaled(20000, 2000)), "-s", "5", "--proxy", "v2")
            with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as sender:
                wait_until(lambda: _delivered(pair.owner) > 200, patience(20), "mail flows")
                pair.owner.kill()
                killed = time.monotonic()
                sent = Result(1, *sender.communicate(timeout=patience(30))).counts["sent"]
            pair.wait_taken_over()
            print(f"the standby was open {time.monotonic() - killed:.1f} s after the kill, {sent} mails had their 250")
            with Talk(pair.standby.address, source="192.0.2.1") as client:
                client.ehlo()
                client.mail()
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            pair.wait_empty()
        finally:
            pair.close()
    assert sink.counts["mails"] - sink.counts["duplicates"] >= sent + 1
    assert sink.counts["duplicates"] <= 20  # deliveries that were under way


class LateReader(PickyReceiver):
    """Reads nothing of the first content before `reads` is set, and has little room for it."""

    def __init__(self):
        self.reads, self.begun = threading.Event(), threading.Event()
        super().__init__()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def _content(self, lines):  # pylint: disable=arguments-differ
        if not self.begun.is_set():
            self.begun.set()
            self.reads.wait(patience(3 * TAKEN_OVER))
        return PickyReceiver._content(lines)


@pytest.mark.limit(240)
@pytest.mark.parametrize("size", [50000, 150000])
def test_a_final_dot_that_waits_for_its_receiver_does_not_outlive_the_lease(tmp_path, stores, size):
    """The owner said the dot while it had the lease. When it is replaced, the dot waits still: in the kernel, or in the owner."""
    with LateReader() as receiver:
        pair = Pair(tmp_path, stores, receiver.address)
        try:
            with Talk(pair.owner.address, source="192.0.2.1") as client:
                client.ehlo()
                client.mail()
                assert client.say("Subject: x\r\n\r\n" + ("y" * 98 + "\r\n") * (size // 100) + ".").startswith("250 ")
            assert receiver.begun.wait(patience(20))
            time.sleep(0.5)  # what goes into the kernel has gone
            stop(pair.owner.process.pid)
            pair.wait_taken_over()
            pair.wait_empty()
            assert len(receiver.mails) == 1
            pair.owner.process.send_signal(signal.SIGCONT)
            wait_until(lambda: "another gateway owns the queue" in pair.owner.log(), patience(20), "the end of the owner")
            receiver.reads.set()
            assert pair.owner.process.wait(patience(30)) == 1
            assert len(receiver.mails) == 1
        finally:
            receiver.reads.set()
            pair.close()


@pytest.mark.limit(240)
def test_a_paused_owner_delivers_and_accepts_nothing_more(tmp_path, stores):
    """It is paused while its deliveries wait for the reply to DATA, and while a sender of it has sent the end of a message."""
    held, begun = threading.Event(), []

    def reply(line):
        if line == "DATA" and not held.is_set():
            begun.append(line)
            held.wait(patience(2 * TAKEN_OVER))

    mails = 5
    with PickyReceiver(reply) as receiver:
        pair = Pair(tmp_path, stores, receiver.address)
        try:
            with Talk(pair.owner.address, source="192.0.2.1") as client:
                client.ehlo()
                for n in range(mails):
                    client.mail()
                    assert client.say(f"Subject: m{n}\r\n\r\nx\r\n.").startswith("250 ")
                wait_until(lambda: len(begun) == mails, patience(20), "deliveries before their content")
                client.mail()
                stop(pair.owner.process.pid)
                client.send("Subject: late\r\n\r\nx\r\n.\r\n")
                held.set()
                pair.wait_taken_over()
                pair.wait_empty()
                time.sleep(sized(0, 30))  # the fault itself: a longer pause
                pair.owner.process.send_signal(signal.SIGCONT)
                assert not client.reply().startswith("250")
            assert pair.owner.process.wait(patience(30)) == 1
            assert "another gateway owns the queue" in pair.owner.log()
            assert stores.items() == [0, 0]
            assert sorted(mail[2].partition("Subject: ")[2][:2] for mail in receiver.mails) == [f"m{n}" for n in range(mails)]
        finally:
            pair.close()
