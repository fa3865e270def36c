"""A cluster with smtpproxy behind its listeners for mail (`./cssl up --mail`)."""

import os
import signal
import socket
import struct

from tests.lib.csslctl import csslctl
from tests.lib.mail import Sink, source
from tests.lib.smtp_talk import SIGNATURE, Talk


def listener(cluster, name):
    at = cluster.description()["listeners"][name]
    return at["host"], at["port"]


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
