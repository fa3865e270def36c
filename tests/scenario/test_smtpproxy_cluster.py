"""A cluster with smtpproxy behind its listeners for mail (`./cssl up --mail`)."""

import os
import re
import signal
import socket
import struct
import threading

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import FULL, patience, sized
from tests.lib.csslctl import csslctl
from tests.lib.mail import Sink, source
from tests.lib.mail_cluster import CountsOfAllLives, mail_listener
from tests.lib.smtp_talk import SIGNATURE, Talk
from tests.lib.trouble import cut_off_from_ragent, kill_and_return, rules
from tests.lib.waiting import wait_until


def listener(cluster, name):
    at = cluster.description()["listeners"][name]
    return at["host"], at["port"]


def accepted(cluster):
    return int(csslctl("mail", "status", "--dir", cluster.dir).facts["accepted"])


def header_to(address):
    body = socket.inet_aton("192.0.2.1") + socket.inet_aton(address[0]) + struct.pack("!HH", 1000, address[1])
    return SIGNATURE + b"\x21\x11" + struct.pack("!H", len(body)) + body


def test_mail_goes_through_cluster_and_proxy_to_the_next_hop(start_cluster):
    with Sink() as sink:
        cluster = start_cluster("--agents", "2", "--mail", "--mail-to", "{}:{}".format(*sink.address))
        result = source(listener(cluster, "smtp"), "-m", "50", "-s", "5", "--starttls", "--resume")
        assert result.status == 0, (result.seen(), result.errors)
        assert csslctl("mail", "status", "--dir", cluster.dir).facts["accepted"] == "50"
        cluster.stop()
    assert sink.counts["right"] == 50 and sink.counts["duplicates"] == 0


def test_the_relay_goes_where_the_header_says_and_starts_again(start_cluster):
    with Sink() as sink:
        cluster = start_cluster("--agents", "1", "--mail")
        mail = cluster.description()["mail"]
        for killed in (False, True):
            if killed:
                os.kill(mail["pid"], signal.SIGKILL)
                wait_until((cluster.dir / "mail.exit").exists)  # its sockets are closed
                cluster.restart_mail()
                assert cluster.description()["mail"]["pid"] != mail["pid"]
            with Talk((mail["relay"]["host"], mail["relay"]["port"]), header=header_to(sink.address)) as client:
                client.ehlo()
                client.mail()
                client.send("Subject: x\r\n\r\nx\r\n.\r\n")
                assert client.reply().startswith("250 ")
        with Talk(listener(cluster, "smtp")) as direct:
            direct.ehlo()
            assert direct.say("MAIL FROM:<a@b>").startswith("421 ")
        cluster.stop()
    assert sink.counts["mails"] == 2


def header_of(family, address):
    """From a balancer in front of RAgent that knows where its client wanted to go."""
    kind, client = (b"\x11", "192.0.2.1") if family == socket.AF_INET else (b"\x21", "2001:db8::1")
    body = socket.inet_pton(family, client) + socket.inet_pton(family, address[0]) + struct.pack("!HH", 1000, address[1])
    return SIGNATURE + b"\x21" + kind + struct.pack("!H", len(body)) + body


def test_agents_tell_the_relay_where_the_client_wanted_to_go(start_cluster):
    """In clear and behind STARTTLS, IPv4 and IPv6."""
    port, = free_ports(1)
    captured = mail_listener("captured", port, policy="offer", above=("proxy_protocol: on", "trusted: [127.0.0.0/8]"))
    with Sink() as sink, Sink(listen="[::1]:0") as sink6:
        cluster = start_cluster("--agents", "2", "--mail", edit=captured)
        for family, to in (socket.AF_INET, sink.address), (socket.AF_INET6, sink6.address):
            for sealed in False, True:
                with Talk(("127.0.0.1", port), header=header_of(family, to)) as client:
                    client.ehlo()
                    if sealed:
                        assert client.say("STARTTLS").startswith("220 ")
                        client.start_tls(cluster.ca)
                        client.ehlo()
                    client.mail()
                    client.send("Subject: x\r\n\r\nx\r\n.\r\n")
                    assert client.reply().startswith("250 ")
        cluster.stop()
    assert (sink.counts["mails"], sink6.counts["mails"]) == (2, 2)


def cut_off(cluster, name):
    """All links of RAgent to it, until it is lost."""
    with rules(cluster, *cut_off_from_ragent(name)):
        wait_until(lambda: cluster.agent(name)["state"] == "lost", patience(20), "it is lost to RAgent")
    wait_until(lambda: cluster.agent(name)["state"] == "ready", patience(20), "it is back")


def owners(cluster):
    """The agents that have senders. Trouble at the others would be none."""
    return sorted({connection["owner"] for connection in cluster.connections(listener="smtp") if connection["owner"]})


def trouble_while(goes_on, cluster, dice, lives):
    """Agents are killed and cut off at random, each kind once in two. Returns what happened."""
    happened, kinds = [], []
    while goes_on():
        kinds = kinds or dice.sample([cut_off, kill_and_return], 2)
        enough = accepted(cluster) + dice.randrange(1, 100)
        wait_until(lambda enough=enough: accepted(cluster) >= enough or not goes_on(), patience(20), "mail flows")
        at = wait_until(lambda: owners(cluster) or not goes_on(), patience(20), "senders have agents")
        if goes_on():
            kind, name = kinds.pop(), dice.choice(at)
            if kind == kill_and_return:
                lives.add(name)
            kind(cluster, name)
            happened.append(f"{kind.__name__} {name} of {at}")
    return happened


@pytest.mark.limit(300 if FULL else 240)
def test_no_mail_is_lost_or_sent_twice_while_agents_are_killed_and_cut_off(start_cluster, dice):
    """Any that has senders, at any time. Each message has a 250 and one copy at the receiver, or no 250 and none; the receiver knows
    nothing of names. Senders have addresses of their own: clients of one address all belong to one agent."""
    mails, result = sized(4000, 10000), []
    with Sink("--delay", "end:0.1") as sink:
        cluster = start_cluster("--agents", "3", "--mail", "--mail-to", "{}:{}".format(*sink.address))
        lives = CountsOfAllLives(cluster)
        sender = threading.Thread(target=lambda: result.append(source(
            listener(cluster, "smtp"), "-m", str(mails), "-s", "20", "-d", "-A", "--starttls", "-l", "2000",
            "--source", "127.0.1.1-127.0.1.20", seconds=120)))
        sender.start()
        wait_until(lambda: accepted(cluster) > 50, patience(20), "mail flows")
        troubles = trouble_while(sender.is_alive, cluster, dice, lives)
        sender.join()
        for name in cluster.agents:
            lives.add(name)
        seen = csslctl("mail", "status", "--dir", cluster.dir).facts
        cluster.stop()
    counts = result[0].counts
    print(f"{troubles} {lives.sums} {result[0].seen()} {result[0].errors}")
    assert counts["sent"] + counts["failed"] >= mails and counts["sent"] > mails // 2, (counts, result[0].errors)
    assert sink.counts["duplicates"] == 0 and sink.counts["right"] == counts["sent"], (sink.result.seen(), result[0].seen(), seen)
    assert len(troubles) >= sized(6, 16), troubles
    assert lives.sums["asked"] + lives.sums["repeated"] >= len(troubles), lives.sums


# What a client may see of it: a 421, an alert where none can be said any more, or the end of the connection.
LOST = re.compile(r"[A-Za-z ]+: (421 4\..*|.*\balert\b.*|end)")


@pytest.mark.limit(240)
def test_each_250_is_a_mail_whatever_kills_smtpproxy(start_cluster):
    """Behind STARTTLS and the agents, under load. A mail of which nobody has the reply may be at the receiver: one for each session and
    death."""
    sessions, kills, result = 20, sized(4, 15), []
    mails = 750 * kills
    with Sink("--delay", "end:0.05") as sink:
        cluster = start_cluster("--agents", "2", "--mail", "--mail-to", "{}:{}".format(*sink.address))
        sender = threading.Thread(target=lambda: result.append(source(
            listener(cluster, "smtp"), "-m", str(mails), "-s", str(sessions), "-d", "-A", "--starttls", "-l", "2000")))
        sender.start()
        for _ in range(kills):
            wait_until(lambda: accepted(cluster) > 50, patience(20), "mail flows")
            assert sender.is_alive()
            cluster.kill("mail")
            cluster.restart_mail()
        wait_until(lambda: accepted(cluster) > 50, patience(20), "mail flows again")
        sender.join()
        cluster.stop()
    counts = result[0].counts
    print(result[0].seen(), result[0].errors, sink.result.seen())
    assert counts["undecided"] <= sessions * kills
    assert counts["sent"] <= sink.counts["right"] <= counts["sent"] + counts["undecided"], (counts, sink.result.seen())
    assert sink.counts["duplicates"] == 0 and sink.counts["mails"] == sink.counts["right"], sink.result.seen()
    assert counts["sent"] > mails // 2 and all(LOST.fullmatch(error) for error in result[0].errors), result[0].errors
