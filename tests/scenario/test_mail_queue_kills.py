"""A mail gateway behind a cluster (`./cssl up --mail-queue`) while agents, the gateway and its Redis servers are killed."""

import collections
import os
import random
import re
import signal
import smtplib
import ssl
import threading

import pytest

from tests.lib.build import patience, sized
from tests.lib.csslctl import csslctl, csslctl_json
from tests.lib.mail import Sink
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

TRIES = 50


class Senders:
    """Threads that send mails, each with a subject of its own, until each has its 250. A mail that got another reply, or none,
    is sent again under another subject: only `sent` was accepted, and `tried` has everything."""

    def __init__(self, address, ca, count, threads):
        self.address, self.ca = address, ca
        self.sent, self.tried, self.failures = set(), set(), []
        self.share = count // threads
        self.threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def _connect(self):
        client = smtplib.SMTP(*self.address, local_hostname="sender.example", timeout=patience(30))
        client.starttls(context=ssl.create_default_context(cafile=self.ca))
        return client

    def _run(self, number):
        client = None
        for mail in range(self.share):
            for attempt in range(TRIES):
                token = f"t{number}-{mail}-{attempt}"
                try:
                    client = client or self._connect()
                    self.tried.add(token)
                    client.sendmail("a@sender.example", ["b@receiver.example"], f"Subject: {token}\r\n\r\n{token * 20}\r\n")
                    self.sent.add(token)
                    break
                except (OSError, smtplib.SMTPException):
                    client = None
            else:
                self.failures.append(token)

    def are_sending(self):
        return any(thread.is_alive() for thread in self.threads)

    def join(self):
        for thread in self.threads:
            thread.join()


def _queue(cluster):
    return csslctl_json("mail", "queue", "--dir", cluster.dir)


def _kill(cluster, what, chance):
    mail = cluster.description()["mail"]
    if what == "agent":
        name = chance.choice(cluster.agents)
        cluster.kill(name)
        cluster.restart(name)
        return
    os.kill(mail["pid"] if what == "gateway" else chance.choice(mail["queue"]["backups"])["pid"], signal.SIGKILL)
    wait_until(lambda: list(cluster.dir.glob("mail.exit")) + list(cluster.dir.glob("redis?.exit")), patience(10), "its end")
    cluster.restart_mail()


@pytest.mark.limit(540)
@pytest.mark.parametrize("seed", [1])
def test_every_mail_with_250_arrives(start_cluster, tmp_path, seed):
    """Copies beyond one come only from deliveries that were under way when the gateway died (RFC 1047)."""
    chance, kills = random.Random(seed), collections.Counter()
    dump = tmp_path / "dump"
    with Sink("--dump", str(dump)) as sink:
        cluster = start_cluster("--agents", "3", "--mail-queue", "--mail-to", "{}:{}".format(*sink.address))
        at = cluster.description()["listeners"]["smtp"]
        senders = Senders(("localhost", at["port"]), cluster.ca, sized(10000, 100000), 8)
        while senders.are_sending() and sum(kills.values()) < sized(12, 200):
            before = len(senders.sent)
            wait_until(lambda before=before: len(senders.sent) > before + 200 or not senders.are_sending(), patience(60), "mail flows")
            what = chance.choice(("agent", "gateway", "redis"))
            kills[what] += 1
            _kill(cluster, what, chance)
            wait_until(lambda: _queue(cluster)["in_sync"] == 2, patience(30), "both servers in sync")
        senders.join()
        assert not senders.failures
        wait_until(lambda: _queue(cluster)["messages"] == 0, patience(120), "an empty queue")
        facts = csslctl("mail", "status", "--dir", cluster.dir).facts
        cluster.stop()
    came = collections.Counter(re.findall(r"^Subject: (t[0-9-]+)\r?$", dump.read_text(errors="replace"), re.M))
    lost = senders.sent - came.keys()
    twice = [token for token, count in came.items() if count > 1]
    print(f"{len(senders.sent)} accepted, {len(came)} came, {len(twice)} twice, kills {dict(kills)}, {facts}")
    assert not lost
    assert came.keys() <= senders.tried
    assert len(twice) <= 20 * kills["gateway"]
