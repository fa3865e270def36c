"""A mail gateway behind a cluster (`./cssl up --mail-queue`) while agents, the gateway and its Redis servers are killed, stopped, full and
cut off, two of them at a time."""

import collections
import itertools
import os
import random
import re
import signal
import smtplib
import ssl
import subprocess
import threading
import time

import pytest

from tests.lib.build import FULL, patience, sized
from tests.lib.csslctl import csslctl, csslctl_json
from tests.lib.mail import Sink
from tests.lib.mail_queue import PathOfPorts
from tests.lib.processes import stop
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")

PATIENCE = 120  # seconds that a sender tries for one mail


class Senders:
    """Threads that send mails, each with a subject of its own, until each has its 250: `count` of them, and more until `enough` is set. A
    mail that got another reply, or none, is sent again under another subject: only `sent` was accepted, `refused` were refused before their
    content, `later` got a 4xx behind it, `never` a 5xx, `lost` lost their connection without any reply, and `tried` has everything."""

    def __init__(self, address, ca, count, threads):
        self.address, self.ca = address, ca
        self.sent, self.refused, self.later, self.never, self.lost, self.tried = (set() for _ in range(6))
        self.failures = []
        self.share = count // threads
        self.stopped, self.enough = threading.Event(), threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def _connect(self):
        client = smtplib.SMTP(*self.address, local_hostname="sender.example", timeout=patience(30))
        client.starttls(context=ssl.create_default_context(cafile=self.ca))
        return client

    def _try(self, client, token):
        """The connection when the mail has its 250; None: it has not."""
        try:
            client = client or self._connect()
        except (OSError, smtplib.SMTPException):
            return None
        self.tried.add(token)
        try:
            client.sendmail("a@sender.example", ["b@receiver.example"], f"Subject: {token}\r\n\r\n{token * 20}\r\n")
        except (smtplib.SMTPSenderRefused, smtplib.SMTPRecipientsRefused):
            self.refused.add(token)
            return None
        except smtplib.SMTPDataError as error:
            (self.never if error.smtp_code >= 500 else self.later).add(token)
            return None
        except (OSError, smtplib.SMTPException):
            self.lost.add(token)
            return None
        self.sent.add(token)
        return client

    def _run(self, number):
        client = None
        for mail in itertools.count():
            if mail >= self.share and self.enough.is_set():
                break
            end = time.monotonic() + patience(PATIENCE)
            for attempt in itertools.count():
                token = f"t{number}-{mail}-{attempt}"
                client = self._try(client, token)
                if client:
                    break
                if time.monotonic() > end:
                    self.failures.append(token)
                    break
                self.stopped.wait(min(0.02 * attempt, 0.5))

    def join(self):
        for thread in self.threads:
            thread.join()


def _queue(cluster):
    return csslctl_json("mail", "queue", "--dir", cluster.dir)


def _kill_agent(cluster, chance):
    name = chance.choice(cluster.agents)
    cluster.kill(name)
    cluster.restart(name)


def _restart_mail(cluster, ended):
    wait_until(lambda: len([*cluster.dir.glob("mail.exit"), *cluster.dir.glob("redis?.exit")]) >= ended, patience(10), "their ends")
    cluster.restart_mail()


def _kill_gateway_and(cluster, *others):
    """What comes twice then is among what was under way, and what not every server has confirmed: added to cluster.may_repeat. The sink
    stands still meanwhile, so that none is added behind the reading: it gives no content its 354."""
    stop(cluster.sink.pid)
    try:
        queue = _queue(cluster)
        gateway = cluster.description()["mail"]["pid"]
        for pid in (gateway, *others):
            os.kill(pid, signal.SIGKILL)
    finally:
        os.kill(cluster.sink.pid, signal.SIGCONT)
    cluster.may_repeat += queue["deletes_unconfirmed"] + sum(line["taken"] for line in queue["destinations"])
    _restart_mail(cluster, 1 + len(others))


def _kill_gateway(cluster, chance):
    _kill_gateway_and(cluster)


def _kill_redis(cluster, chance):
    os.kill(_backup(cluster, chance)["pid"], signal.SIGKILL)
    _restart_mail(cluster, 1)


def _kill_gateway_and_redis(cluster, chance):
    _kill_gateway_and(cluster, _backup(cluster, chance)["pid"])


def _backup(cluster, chance):
    """The server that is out of order: all faults that overlap have the same one, or nobody would have the mail."""
    return cluster.description()["mail"]["queue"]["backups"][cluster.out_of_order]


def _stop(pid, seconds):
    stop(pid)
    time.sleep(seconds)  # the fault itself
    os.kill(pid, signal.SIGCONT)


def _stop_agent(cluster, chance):
    cluster.allow_takeover()
    _stop(cluster.pid(chance.choice(cluster.agents)), chance.uniform(0.1, 3))


def _stop_gateway(cluster, chance):
    _stop(cluster.description()["mail"]["pid"], chance.uniform(0.1, 8))  # its lease is 5 s


def _stop_redis(cluster, chance):
    _stop(_backup(cluster, chance)["pid"], chance.uniform(0.1, 4))  # it is given up after 1.5 s


def _fill_redis(cluster, chance):
    """Its memory is full, and later it is not."""
    port = _backup(cluster, chance)["port"]
    for limit in ("1", "0"):
        subprocess.run(["redis-cli", "-p", str(port), "CONFIG", "SET", "maxmemory", limit], check=True, timeout=patience(10),
                       stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 3) if limit == "1" else 0)  # the fault itself


def _cut(cluster, chance, paths):
    for path in paths:
        path.hush()
    time.sleep(chance.uniform(1, 4))  # the fault itself; a path is bad after 0.6 s, a server given up after 1.5 s
    for path in paths:
        path.open()


def _cut_path(cluster, chance):
    _cut(cluster, chance, [chance.choice(cluster.paths[cluster.out_of_order])])


def _cut_redis(cluster, chance):
    _cut(cluster, chance, cluster.paths[cluster.out_of_order])


FAULTS = {
    "agent killed": _kill_agent,
    "gateway killed": _kill_gateway,
    "redis killed": _kill_redis,
    "gateway and redis killed": _kill_gateway_and_redis,
    "agent stopped": _stop_agent,
    "gateway stopped": _stop_gateway,
    "redis stopped": _stop_redis,
    "redis full": _fill_redis,
    "path cut": _cut_path,
    "redis cut off": _cut_redis,
}


def _lead_over_paths(cluster, knows_names):
    """From its next start on, the gateway reaches each Redis server by two paths that can be cut, and names its deliveries to the
    next hop (XCSSLTX) if that knows names."""
    path = cluster.dir / "smtpproxy.yaml"
    text = path.read_text()
    ports = [backup["port"] for backup in cluster.description()["mail"]["queue"]["backups"]]
    cluster.paths = [[PathOfPorts(port) for _ in range(2)] for port in ports]
    for port, paths in zip(ports, cluster.paths):
        before, text = text, text.replace(f'paths: ["127.0.0.1:{port}"]', "paths: [" + ", ".join(f'"127.0.0.1:{p.port}"' for p in paths) + "]")
        assert text != before
    path.write_text(text.replace("\n  next_hop:", "\n  xcssltx: on\n  next_hop:") if knows_names else text)
    _kill_gateway(cluster, None)


def _both_store(cluster, senders):
    """Mail flows, and both servers have all of it. That a server was lost is known to the gateway only when it misses an answer, so the
    number of those in sync may be that of before the fault. But each 250 needs the answers of all that are in sync."""
    def state():
        queue = _queue(cluster)
        return queue["in_sync"], queue["epoch"], [backup["given_up"] for backup in queue["backups"]]

    def is_so():
        wait_until(lambda: _queue(cluster)["in_sync"] == 2, patience(30), "both servers in sync")
        before, sent = state(), len(senders.sent)
        wait_until(lambda: len(senders.sent) > sent + 200, patience(60), "mail flows")
        return before[0] == 2 and state() == before

    wait_until(is_so, patience(120), "mail that both servers have")


def _fault_after_fault(cluster, senders, kinds, faults, chance):
    """At least so many faults while mail is sent, and each of the kinds before one comes again. Two of three come when the queue has
    recovered from the one before, the third while it has not. How often each came."""
    came, left = collections.Counter(), []
    while sum(came.values()) < faults or came.keys() != set(kinds):
        _both_store(cluster, senders)
        cluster.out_of_order = chance.randrange(2)
        for _ in range(2 if chance.random() < 1 / 3 else 1):
            left = left or chance.sample(sorted(kinds), len(kinds))
            fault = left.pop()
            came[fault] += 1
            FAULTS[fault](cluster, chance)
    senders.enough.set()
    return came


def _note(record_property, senders, came, more):
    figure = (f"{len(senders.sent)} accepted, {len(senders.sent - came.keys())} lost, {more}, {len(senders.later)} told to come later behind "
              f"their content, {len(senders.lost)} without reply")
    print(figure)
    record_property("figure", figure)


def _arrived(dump):
    return collections.Counter(re.findall(r"^Subject: (t[0-9-]+)\r?$", dump.read_text(errors="replace"), re.M))


@pytest.mark.limit(300)
def test_the_end_of_an_agent_costs_no_mail_and_no_copy(start_cluster, tmp_path, record_property):
    """The gateway remembers the names of transactions, so what has no 250 does not come."""
    dump = tmp_path / "dump"
    with Sink("--dump", str(dump)) as sink:
        cluster = start_cluster("--agents", "3", "--mail-queue", "--mail-to", "{}:{}".format(*sink.address))
        at = cluster.description()["listeners"]["smtp"]
        senders = Senders(("localhost", at["port"]), cluster.ca, sized(1000, 20000), 8)
        kills = _fault_after_fault(cluster, senders, ["agent killed", "agent stopped"], sized(4, 40), random.Random(1))
        senders.join()
        assert not senders.failures
        wait_until(lambda: _queue(cluster)["messages"] == 0, patience(120), "an empty queue")
        cluster.stop()
    came = _arrived(dump)
    _note(record_property, senders, came, f"{sum(kills.values())} faults")
    assert came.keys() == senders.sent and set(came.values()) == {1}


@pytest.mark.limit(7200 if FULL else 540)
@pytest.mark.parametrize("seed", [1, 2, 3] if FULL else [1])
@pytest.mark.parametrize("names", ["unnamed", "named"])
def test_every_mail_with_250_arrives(start_cluster, tmp_path, record_property, names, seed):
    """Copies beyond one come only from deliveries that were under way when the gateway died (RFC 1047). With a next hop that knows
    their names (XCSSLTX) there are none. A mail without 250 comes only if its sender was told to try again behind its content."""
    dump = tmp_path / "dump"
    knows = ["--proxy", "--xcssltx", "127.0.0.0/8"] if names == "named" else []
    with Sink("--dump", str(dump), *knows) as sink:
        cluster = start_cluster("--agents", "3", "--mail-queue", "--mail-to", "{}:{}".format(*sink.address))
        cluster.sink, cluster.may_repeat = sink, 0
        _lead_over_paths(cluster, bool(knows))
        at = cluster.description()["listeners"]["smtp"]
        mails, faults = (sized(4000, 20000), sized(12, 40)) if knows else (sized(4000, 100000), sized(12, 100))
        senders = Senders(("localhost", at["port"]), cluster.ca, mails, 8)
        kills = _fault_after_fault(cluster, senders, FAULTS, faults, random.Random(seed))
        senders.join()
        assert not senders.failures
        wait_until(lambda: _queue(cluster)["messages"] == 0, patience(120), "an empty queue")
        facts = csslctl("mail", "status", "--dir", cluster.dir).facts
        cluster.stop()
    came = _arrived(dump)
    lost = senders.sent - came.keys()
    copies = sum(count - 1 for count in came.values())
    print(dict(kills), facts)
    _note(record_property, senders, came, f"{sum(kills.values())} faults, {copies} copies of at most {cluster.may_repeat} that may be")
    assert not lost
    assert not senders.never and not came.keys() & senders.refused
    assert came.keys() <= senders.sent | senders.later
    assert copies <= (0 if knows else cluster.may_repeat)
