"""smtpproxy with deliver: queue: a message gets its 250 when it is stored, and is delivered behind that."""

import contextlib
import email
import json
import os
import pathlib
import re
import signal
import socket
import threading
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience, scaled
from tests.lib.csslctl import DONE, REFUSED, USAGE, csslctl
from tests.lib.mail import Sink, source
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.queued_proxy import QueuedProxy
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_proxy import Control
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


def _said(client, body="Subject: x\r\n\r\nx\r\n"):
    client.ehlo()
    client.mail()
    return client.say(body + ".")


@pytest.mark.parametrize("options", [
    ["-s", "1"], ["-s", "20", "-d"], ["-s", "5", "-d", "--pipelining"], ["-s", "5", "--chunking", "--chunk", "100", "-d"], ["--helo"],
    ["-r", "5", "--pipelining", "-N"], ["-l", "300000", "-s", "3"]], ids=" ".join)
def test_every_mail_is_stored_and_arrives_once(tmp_path, stores, options):
    mails = scaled(200, 20)
    with Sink() as sink:
        with QueuedProxy(tmp_path, stores, sink.address) as proxy:
            proxy.wait_open()
            result = source(proxy.address, "-m", str(mails), "--proxy", "v2", *options)
            stores.wait_empty()
    assert result.status == 0, (result.seen(), result.errors)
    assert sink.counts["mails"] == mails and sink.counts["duplicates"] == 0
    assert sink.counts["connections"] <= max(20, mails / 4), sink.result.seen()  # up to 20 at a time, and they are used again


def test_mail_waits_in_the_servers_while_the_receiver_is_away(tmp_path, stores):
    port = free_ports(1)[0]
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", port)) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            assert _said(client).startswith("250 2.0.0 Ok: queued as ")
        assert stores.items() == [1, 1] or stores.items() == [2, 2]  # the message, and perhaps its state
        with Sink(listen=f"127.0.0.1:{port}") as sink:
            stores.wait_empty()
    assert sink.counts["mails"] == 1


def test_a_killed_gateway_delivers_after_its_restart_what_got_250(tmp_path, stores):
    port = free_ports(1)[0]
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", port)) as proxy:
        proxy.wait_open()
        result = source(proxy.address, "-m", "50", "-s", "5", "--proxy", "v2")
        assert result.counts["sent"] == 50
        proxy.kill()
    with Sink(listen=f"127.0.0.1:{port}") as sink:
        with QueuedProxy(tmp_path, stores, ("127.0.0.1", port)):
            stores.wait_empty()
    assert sink.counts["mails"] == 50 and sink.counts["duplicates"] == 0


def test_an_orderly_stop_repeats_no_delivery(tmp_path, stores):
    """The Redis servers delete the delivered message late, and the gateway waits for that."""
    taken = threading.Event()
    with PickyReceiver(lambda line: taken.wait(patience(30)) and None if line == "." else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _sent(proxy, "<c@b.example>")
            wait_until(lambda: json.loads(Control(proxy.control).ask("/v1/destinations")[1])["destinations"][0]["sending"], patience(20))
            for server in stores.servers:
                server.pause()
            taken.set()
            wait_until(lambda: "delivered_total 1" in _metrics(proxy), patience(20))
            proxy.process.send_signal(signal.SIGTERM)
            wait_until(lambda: "is=flushing" in proxy.log(), patience(10), "an orderly stop")
            for server in stores.servers:
                server.go_on()
            assert proxy.process.wait(patience(20)) == 0
    assert stores.items() == [0, 0] and len(receiver.mails) == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604])
def test_a_password_file_that_others_can_read_is_refused(tmp_path, stores, mode):
    password = tmp_path / "password"
    password.write_text("word\n")
    password.chmod(mode)
    for server in stores.servers:
        server.call("ACL", "SETUSER", "gateway", "on", ">word", "~cssl:*", "+@all")
    backups = [{"paths": [f"127.0.0.1:{port}"], "user": "gateway", "password_file": str(password)} for port in stores.ports]
    if mode == 0o600:
        with QueuedProxy(tmp_path, stores, ("127.0.0.1", 25), queue={"backups": backups}) as proxy:
            proxy.wait_open()
        return
    with pytest.raises(AssertionError, match=f"with mode 0{mode:o}, expected mode 0600"):
        proxy = QueuedProxy(tmp_path, stores, ("127.0.0.1", 25), queue={"backups": backups})
        assert proxy.process.wait(patience(20)) == 0, proxy.complaints()


def test_a_reload_tells_which_keys_of_the_queue_need_a_restart(open_folder, stores):
    with QueuedProxy(open_folder, stores, ("127.0.0.1", 25)) as proxy:
        proxy.wait_open()
        proxy.reload()
        assert "changed key takes effect at the next start" not in proxy.log()
        first, second = proxy.settings["queue"]["backups"]
        tls = {"ca": "/ca", "name": "redis.example", "certificate": "/certificate", "key": "/key"}
        for times, changed in enumerate((None, *tls), 1):
            tls |= {changed: "/other"} if changed else {}
            proxy.settings["queue"] = {**proxy.settings["queue"], "backups": [first, {**second, **tls}]}
            proxy.settings["dns"] = {"servers": [f"127.0.0.1:{times}"], "timeout": f"{times}s"}
            proxy.write_config()
            proxy.reload()
            for key in ("queue.backups", "dns.servers", "dns.timeout"):
                assert proxy.log().count(f"changed key takes effect at the next start key={key}") == times, (key, changed)
        proxy.settings["queue"] = {**proxy.settings["queue"], "role": "standby", "destinations": 5, "decided": 5000, "total": "1GiB", "backups": proxy.settings["queue"]["backups"][::-1],
                                   "spares": [{"paths": ["127.0.0.1:1"]}], "replace_after": "10s"}
        proxy.write_config()
        proxy.reload()
        for key in ("queue.role", "queue.destinations", "queue.decided", "queue.total", "queue.backups", "queue.spares",
                    "queue.replace_after"):
            assert f"changed key takes effect at the next start key={key}" in proxy.log()


@pytest.mark.limit(180)
def test_no_message_comes_twice_when_the_next_hop_speaks_xcssltx(tmp_path, stores):
    """The receiver holds its decisions back, so that each kill meets deliveries whose end is decided and not known here."""
    mails, kills = 600, 3
    with Sink("--proxy", "--xcssltx", "127.0.0.0/8", "--delay", "decide:0.2") as sink:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"xcssltx": "on"}) as proxy:
            proxy.wait_open()
            _order(proxy, "stop", "{}:{}".format(*sink.address))
            result = source(proxy.address, "-m", str(mails), "-s", "10", "-d", "--proxy", "v2")
            _order(proxy, "start", "{}:{}".format(*sink.address))
            for kill in range(1, kills + 1):
                wait_until(lambda kill=kill: stores.items()[0] < mails - 30 * kill, patience(20), "deliveries")
                proxy.kill()
                proxy.start_again()
                proxy.wait_open()
            stores.wait_empty()
            text = _metrics(proxy)
    assert result.counts["sent"] == sink.counts["mails"] == mails
    assert sink.counts["duplicates"] == 0 and sink.counts["tx_decided"] > 0, sink.result.seen()
    assert "deliveries_asked_total 0" not in text


@pytest.mark.parametrize("limit", ["in the file", "of the receiver"])
def test_deliveries_with_names_share_the_limit_of_their_receiver(tmp_path, stores, limit):
    """Each has a connection of its own, and all count together."""
    mails = 200
    most = {"in the file": (["--max-connections", "1000"], {"connections_per_destination": 3}),
            "of the receiver": (["--max-connections", "3"], {})}
    options, limits = most[limit]
    with Sink("--proxy", "--xcssltx", "127.0.0.0/8", *options) as sink:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"xcssltx": "on"}, limits=limits) as proxy:
            proxy.wait_open()
            assert source(proxy.address, "-m", str(mails), "-s", "10", "-d", "--proxy", "v2").counts["sent"] == mails
            stores.wait_empty()
    assert sink.counts["mails"] == mails and sink.counts["duplicates"] == 0
    if limit == "in the file":
        assert sink.result.most_open < 10  # the receiver may see a new connection before the end of an old one
    else:
        assert sink.counts["over"] < 25, sink.result.seen()  # most of them at first, when 20 deliveries begin at once


def test_names_go_with_recipients_that_are_put_off_and_connections_that_are_lost(tmp_path, stores):
    """A transaction without some of its recipients has no name. One that was cut before its end is asked for and repeated."""
    mails = 60
    with Sink("--proxy", "--xcssltx", "127.0.0.0/8", "--reply", "rcpt:450 4.2.1 Later:20", "--drop", "end:20") as sink:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"xcssltx": "on"}) as proxy:
            proxy.wait_open()
            assert source(proxy.address, "-m", str(mails), "-r", "3", "-s", "5", "--proxy", "v2").counts["sent"] == mails
            stores.wait_empty()
            text = _metrics(proxy)
    assert sink.counts["tx_named"] > 0 and sink.counts["tx_never"] > 0, sink.result.seen()
    assert sink.counts["mails"] >= mails and sink.counts["recipients"] >= 3 * mails, sink.result.seen()
    assert "deliveries_asked_total 0" not in text and "notices_total 0" in text


def test_what_is_in_the_queue_is_decided_for_a_sender_that_knows_only_the_new_key(tmp_path, stores):
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", free_ports(1)[0])) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, unique_id=b"\x0a\x1b") as client:
            client.ehlo()
            client.mail(" XCSSLTX=0a1b/1")
            stored = client.say("Subject: x\r\n\r\nx\r\n.")
        assert stored.startswith("250 ")
        proxy.kill()
        proxy.start_again()
        proxy.wait_open()
        with Talk(proxy.address, unique_id=b"\x0a\x1b") as client:
            key = client.ehlo()["XCSSLTX"]
            assert client.say(f"XCSSLTX 0a1b/1 {key}") == f"250 decided {stored}"
            assert client.say(f"XCSSLTX 0a1b/2 {key}") == "250 never"


def test_the_name_of_a_refused_mail_is_not_that_of_the_next_one(tmp_path, stores):
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", free_ports(1)[0]), queue={"message_size": "64KiB"}) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, unique_id=b"\x0a\x1b") as client:
            key = client.ehlo()["XCSSLTX"]
            assert client.say("MAIL FROM:<a@b.example> SIZE=70000 XCSSLTX=0a1b/1").startswith("552 ")
            client.mail()
            assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            assert client.say(f"XCSSLTX 0a1b/1 {key}") == "250 never"


def test_the_port_is_closed_while_no_copy_can_be_stored(tmp_path, stores):
    with Sink() as sink:
        with QueuedProxy(tmp_path, stores, sink.address) as proxy:
            proxy.wait_open()
            stores.servers[0].pause()
            stores.servers[1].pause()
            paused = time.monotonic()
            proxy.wait_closed()
            assert time.monotonic() - paused < patience(2)
            for server in stores.servers:
                server.go_on()
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                assert _said(client).startswith("250 ")
            stores.wait_empty()
    assert sink.counts["mails"] == 1


def _lease_left(proxy):
    return json.loads(Control(proxy.control).ask("/v1/queue")[1])["lease_left_ms"]


def test_without_both_servers_the_port_closes_within_two_seconds_and_accepted_mail_is_delivered(tmp_path, stores):
    begun, goes_on = threading.Event(), threading.Event()

    def reply(line):
        if line == "DATA":
            begun.set()
            goes_on.wait(patience(20))

    with PickyReceiver(reply) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"store_timeout": "3s"}) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.2") as waits:
                waits.ehlo()
                waits.mail()
                _sent(proxy, "<c@b.example>")
                assert begun.wait(patience(20))
                for server in stores.servers:
                    server.kill()
                killed = time.monotonic()
                waits.send("Subject: x\r\n\r\nx\r\n.\r\n")
                proxy.wait_closed()
                assert time.monotonic() - killed < patience(2)
                wait_until(lambda: _lease_left(proxy) <= 0, patience(20), "the end of the lease")
                goes_on.set()
                wait_until(lambda: len(receiver.mails) == 1, patience(10), "the accepted mail")
                assert not waits.reply().startswith("250")
            for server in stores.servers:
                server.start()
            proxy.wait_open()
            stores.wait_empty()


def test_a_message_that_is_too_big_gets_552_and_the_next_one_250(tmp_path, stores):
    with Sink() as sink:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"message_size": "64KiB"}) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                assert client.ehlo()["SIZE"] == "65536"
                assert client.say("MAIL FROM:<a@b.example> SIZE=70000").startswith("552 ")
                client.mail()
                assert client.say("x" * 900 + "\r\n" + ("y" * 900 + "\r\n") * 80 + ".").startswith("552 ")
                client.mail()
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            stores.wait_empty()
    assert sink.counts["mails"] == 1


def test_messages_that_come_in_have_a_limit_in_sum(tmp_path, stores):
    """Above it senders get 452 and the port is closed, until half of the room is free again."""
    content = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 250
    with Sink() as sink, contextlib.ExitStack() as open_ones:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"memory": "1MiB", "message_size": "256KiB"}) as proxy:
            proxy.wait_open()
            clients = [open_ones.enter_context(Talk(proxy.address, source=f"192.0.2.{n}")) for n in range(1, 7)]
            for client in clients[:5]:
                client.ehlo()
                client.mail()
            for client in clients[:5]:
                client.send(content)
            wait_until(lambda: "no_room_total 0" not in _metrics(proxy), patience(20), "a message that does not fit")
            proxy.wait_closed()
            clients[5].ehlo()
            assert clients[5].say("MAIL FROM:<a@b.example>").startswith("452 4.3.1 ")
            codes = [client.say(".")[:3] for client in clients[:5]]
            assert codes.count("250") == 3 and codes.count("452") == 2  # each takes 257 KiB
            proxy.wait_open()
            clients[5].mail()
            assert clients[5].say(content + ".").startswith("250 ")
            stores.wait_empty()
    assert sink.counts["mails"] == 4


def test_a_sender_of_many_half_messages_leaves_room_for_the_others(tmp_path, stores):
    half = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 250
    with Sink() as sink, contextlib.ExitStack() as open_ones:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"memory": "1MiB", "message_size": "256KiB"}) as proxy:
            proxy.wait_open()
            for _ in range(8):
                client = open_ones.enter_context(Talk(proxy.address, source="192.0.2.1"))
                client.ehlo()
                client.mail()
                client.send(half)
            wait_until(lambda: "no_room_total 0" not in _metrics(proxy), patience(20), "a message that does not fit")
            assert proxy.is_open()
            with Talk(proxy.address, source="192.0.2.2") as client:
                assert _said(client, half).startswith("250 ")
            stores.wait_empty()
    assert sink.counts["mails"] == 1


def test_half_messages_that_stop_give_their_room_back_while_it_is_short(tmp_path, stores):
    """Each sender's only message may take all room that is free. Those that stop for longer than lease_timeout end, until half of the
    room is free again; a fast beginning does not help."""
    half = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 250
    with Sink() as sink, contextlib.ExitStack() as open_ones:
        with QueuedProxy(tmp_path, stores, sink.address, queue={"memory": "1MiB", "message_size": "256KiB"},
                         limits={"lease_timeout": "500ms", "least_rate": 1}) as proxy:
            proxy.wait_open()
            first = open_ones.enter_context(Talk(proxy.address, source="192.0.2.1"))
            others = [open_ones.enter_context(Talk(proxy.address, source=f"192.0.2.{n}")) for n in (2, 3)]
            for client in (first, *others):
                client.ehlo()
                client.mail()
                client.send(half)
            wait_until(lambda: "too_slow_total 2" in _metrics(proxy), patience(10), "two senders to be ended")
            said = [client.say(".")[:4] for client in (first, *others)]
            assert sorted(said) == ["250 ", "421 ", "421 "]
            stores.wait_empty()
    assert sink.counts["mails"] == 1


def test_recipients_of_many_domains_count_in_the_memory(tmp_path, stores):
    """Each domain has a copy of the envelope's beginning."""
    queue = {"memory": "1MiB", "message_size": "256KiB", "recipients": 10000, "port": 2525}
    with QueuedProxy(tmp_path, stores, None, queue=queue, ports=(2525,)) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            assert client.say("MAIL FROM:<a@b.example>").startswith("250 ")
            replies = (client.say(f"RCPT TO:<c@{n}.example>") for n in range(10000))
            taken, reply = next((n, reply) for n, reply in enumerate(replies) if not reply.startswith("250 "))
    assert 500 < taken < 3000 and reply.startswith("452 4.3.1 ")


def test_a_message_for_many_domains_may_be_larger_in_sum_than_the_memory(tmp_path, stores):
    """Twenty domains with 225 KB each, and room for 1 MiB: the parts are stored one after another."""
    dns = {"servers": [f"127.0.0.1:{free_ports(1)[0]}"]}
    queue = {"memory": "1MiB", "message_size": "256KiB", "port": 2525}
    with QueuedProxy(tmp_path, stores, None, queue=queue, ports=(2525,), dns=dns) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            client.mail(recipients=[f"c@{n}.example" for n in range(20)])
            assert client.say("Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 250 + ".").startswith("250 ")
        wait_until(lambda: min(stores.items()) >= 20, patience(10), "all parts in both servers")


def _unstored(proxy):
    return int(re.search(r"^smtpproxy_queue_unstored (\d+)", _metrics(proxy), re.MULTILINE)[1])


@contextlib.contextmanager
def _paused(stores):
    for server in stores.servers:
        server.pause()
    try:
        yield
    finally:
        for server in stores.servers:
            server.go_on()


def test_a_message_for_many_domains_leaves_room_for_others(tmp_path, stores):
    """While its parts wait for the servers, they take a quarter of the room and one part more."""
    content = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 250
    dns = {"servers": [f"127.0.0.1:{free_ports(1)[0]}"]}
    queue = {"memory": "1MiB", "message_size": "256KiB", "port": 2525}
    with QueuedProxy(tmp_path, stores, None, queue=queue, ports=(2525,), dns=dns) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as many, Talk(proxy.address, source="192.0.2.2") as other:
            for client, count in (many, 20), (other, 1):
                client.ehlo()
                client.mail(recipients=[f"c@{n}.example" for n in range(count)])
                client.send(content)
            with _paused(stores):
                many.send(".\r\n")
                wait_until(lambda: _unstored(proxy) == 2, patience(5), "two parts")
                other.send(".\r\n")
                wait_until(lambda: _unstored(proxy) == 3, patience(5), "the other message")
            assert [many.reply()[:3], other.reply()[:3]] == ["250", "250"]


@pytest.mark.plain
def test_messages_stay_sealed_until_a_receiver_takes_them(tmp_path, stores):
    """The DNS does not answer: no delivery needs the plain bytes of its message, as many again as the queue has."""
    def memory():
        return int(pathlib.Path(f"/proc/{proxy.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    body, domains = "Subject: x\r\n\r\n" + ("y" * 900 + "\r\n") * 1150, 48
    silent = socket.socket(type=socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    dns = {"servers": ["{}:{}".format(*silent.getsockname())]}
    with silent, QueuedProxy(tmp_path, stores, None, queue={"port": 2525}, ports=(2525,), dns=dns) as proxy:
        proxy.wait_open()
        before = memory()
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            for n in range(domains):
                client.mail(recipients=(f"c@{n}.example",))
                assert client.say(body + ".").startswith("250 ")
        wait_until(lambda: sum(line["taken"] for line in json.loads(_order(proxy, "--json").out)["destinations"]) == domains,
                   patience(20), "all deliveries to begin")
        print(f"{memory() - before} bytes of memory for messages of {domains * len(body)}")
        assert memory() - before < 1.6 * domains * len(body)


def test_a_message_for_more_destinations_than_there_may_be_is_not_kept(tmp_path, stores):
    """Its second domain is stored, and deleted when there is no room for the first."""
    dns = {"servers": [f"127.0.0.1:{free_ports(1)[0]}"]}
    with QueuedProxy(tmp_path, stores, None, queue={"destinations": 1, "port": 2525}, ports=(2525,), dns=dns) as proxy:
        proxy.wait_open()
        with Talk(proxy.address, source="192.0.2.1") as client:
            client.ehlo()
            client.mail(recipients=("c@b.example", "c@d.example"))
            assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("452 4.3.1 ")
            stores.wait_empty()
            client.mail(recipients=("c@b.example",))
            assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")


@pytest.mark.parametrize("reply,mails,in_doubt", [("250 2.0.0 Ok\r\n250 2.0.0 And more", 1, 0), ("2x0 What", 2, 1)])
def test_a_strange_reply_to_the_end_of_a_mail(tmp_path, stores, reply, mails, in_doubt):
    """A whole reply decides the mail, whatever comes behind it. One that cannot be read leaves it in doubt."""
    said = [reply]
    with PickyReceiver(lambda line: said.pop() if line == "." and said else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _sent(proxy, "<c@b.example>")
            stores.wait_empty()
            wait_until(lambda: "delivered_total 1" in _metrics(proxy), patience(20))
            assert f"in_doubt_total {in_doubt}" in _metrics(proxy)
    assert not said and len(receiver.mails) == mails


@pytest.mark.parametrize("sender", ["waits", "is lost"])
def test_a_message_that_no_server_confirms_is_refused_and_deleted(tmp_path, stores, sender):
    with PickyReceiver() as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"store_timeout": "1s"}) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                client.mail()
                for server in stores.servers:
                    server.pause()
                client.send("Subject: first\r\n\r\nx\r\n.\r\n")
                if sender == "waits":
                    assert client.reply().startswith("451 4.3.0 ")
                else:
                    client.reset()
                wait_until(lambda: "stores_expired_total 1" in _metrics(proxy), patience(20))
            for server in stores.servers:
                server.go_on()
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                assert _said(client, "Subject: second\r\n\r\nx\r\n").startswith("250 ")
            stores.wait_empty()
    assert [mail[2].partition("Subject: ")[2][:6] for mail in receiver.mails] == ["second"]


def test_a_message_of_chunks_takes_no_data_and_no_recipient(tmp_path, stores):
    with Sink() as sink:
        with QueuedProxy(tmp_path, stores, sink.address) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                assert client.say("MAIL FROM:<a@b.example>").startswith("250 ")
                client.send("BDAT 3\r\nx\r\n")
                assert client.reply().startswith("554 ")
                assert client.say("RCPT TO:<c@d.example>").startswith("250 ")
                client.send("BDAT 5\r\nA: x\n")
                assert client.reply().startswith("250 ")
                assert client.say("DATA").startswith("503 ")
                assert client.say("RCPT TO:<e@d.example>").startswith("503 ")
                assert client.say("RSET").startswith("250 ")
                client.mail()
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            stores.wait_empty()
    assert sink.counts["mails"] == 1


@pytest.mark.parametrize("content, code", [
    ("x\r\n.\r\ny\r\n", "250 "), ("..\r\n.x\r\n", "250 "), ("x\n.\r\nMAIL FROM:<e@b.example>\r\n", "550 "), ("x\n.\ny\r\n", "550 "),
    ("x\r.\ry\r\n", "550 "), ("x\n.", "550 ")], ids=repr)
def test_no_chunk_can_look_like_the_end_of_a_message(tmp_path, stores, content, code):
    """The receiver gets chunks by DATA. A less careful one ends a message at a dot alone between bare line ends."""
    message = "Subject: x\r\n\r\n" + content
    half = len(message) - 3  # in two pieces, between which such an end may lie
    with PickyReceiver() as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                assert client.say("MAIL FROM:<a@b.example>").startswith("250 ")
                assert client.say("RCPT TO:<c@d.example>").startswith("250 ")
                client.send(f"BDAT {half}\r\n{message[:half]}")
                assert client.reply().startswith("250 ")
                client.send(f"BDAT {len(message) - half} LAST\r\n{message[half:]}")
                assert client.reply().startswith(code)
                assert client.say("NOOP").startswith("250 ")
            stores.wait_empty()
    assert [mail[2].endswith(content) for mail in receiver.mails] == ([True] if code == "250 " else [])


@pytest.mark.parametrize("greeting", ["EHLO again.example", "HELO again.example"])
def test_a_greeting_ends_an_open_transaction(tmp_path, stores, greeting):
    with PickyReceiver() as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            with Talk(proxy.address, source="192.0.2.1") as client:
                client.ehlo()
                assert client.say("MAIL FROM:<first@b.example>").startswith("250 ")
                assert client.say("RCPT TO:<first@d.example>").startswith("250 ")
                assert client.say(greeting).startswith("250")
                assert client.say("RCPT TO:<c@d.example>").startswith("503 ")
                assert client.say("MAIL FROM:<second@b.example>").startswith("250 ")
                assert client.say("RCPT TO:<second@d.example>").startswith("250 ")
                assert client.say("DATA").startswith("354 ")
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            stores.wait_empty()
    assert [mail[:2] for mail in receiver.mails] == [("second@b.example", ["second@d.example"])]


def test_a_receiver_that_refuses_every_connection_gets_the_mail_later(tmp_path, stores):
    """Its administrator may have made a mistake, and no sender is to be told that the mail failed."""
    with PickyReceiver(lambda line: "554 5.3.2 Closed" if closed and line[1:4] in ("HLO", "ELO") else None) as receiver:
        closed = ["yes"]
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _sent(proxy, "<c@b.example>")
            wait_until(lambda: "delivery_retries_total 2" in _metrics(proxy), patience(20))
            closed.clear()
            stores.wait_empty()
    assert [mail[:2] for mail in receiver.mails] == [("sender@a.example", ["c@b.example"])]


def test_a_gateway_that_was_replaced_ends_with_a_failure(tmp_path, stores):
    """So that it is started again. It would be of no use without the queue."""
    folders = [tmp_path / name for name in ("old", "new")]
    for folder in folders:
        folder.mkdir()
    with PickyReceiver() as receiver:
        old = QueuedProxy(folders[0], stores, receiver.address)
        try:
            old.wait_open()
            with QueuedProxy(folders[1], stores, receiver.address) as new:
                assert csslctl("mail", "queue", "takeover", "--socket", str(new.control)).code == DONE
                assert old.process.wait(patience(30)) == 1
                assert 'process ends cause="another gateway owns the queue"' in old.log()
                new.wait_open()
                _sent(new, "<c@b.example>")
                stores.wait_empty()
        finally:
            old.process.kill()
    assert len(receiver.mails) == 1


def _metrics(proxy):
    return Control(proxy.control).ask("/metrics")[1]


def _sent(proxy, *recipients, sender="sender@a.example"):
    with Talk(proxy.address, source="192.0.2.1") as client:
        client.ehlo()
        assert client.say(f"MAIL FROM:<{sender}> ENVID=one").startswith("250 ")
        for recipient in recipients:
            assert client.say(f"RCPT TO:{recipient}").startswith("250 ")
        assert client.say("DATA").startswith("354 ")
        assert client.say("Subject: the first\r\n\r\n..dots\r\n.").startswith("250 ")


def test_a_refused_recipient_is_told_to_the_sender_and_the_others_get_the_mail(tmp_path, stores):
    """The notice (RFC 3464) is a mail of its own, without a sender."""
    with PickyReceiver(lambda line: "550 5.1.1 Nobody here" if "nobody" in line else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _sent(proxy, "<nobody@b.example>", "<c@b.example>", "<quiet.nobody@b.example> NOTIFY=NEVER")
            stores.wait_empty()
    first, notice = receiver.mails
    assert first[:2] == ("sender@a.example", ["c@b.example"])
    assert first[2].startswith("Received: from ") and first[2].endswith("Subject: the first\r\n\r\n.dots\r\n")
    assert notice[:2] == ("", ["sender@a.example"])
    report = email.message_from_string(notice[2])
    assert report.get_content_type() == "multipart/report" and report["Auto-Submitted"] == "auto-replied"
    text, status, header = report.get_payload()
    assert "nobody@b.example" in text.get_payload() and "quiet" not in notice[2]
    message, recipient = status.get_payload()
    assert message["Original-Envelope-Id"] == "one" and message["Reporting-MTA"] == "dns; proxy.example"
    assert recipient["Final-Recipient"] == "rfc822; nobody@b.example" and recipient["Action"] == "failed"
    assert recipient["Status"] == "5.1.1" and recipient["Diagnostic-Code"] == "smtp; 550 5.1.1 Nobody here"
    assert "Subject: the first" in header.get_payload()


def test_a_notice_that_fails_is_dropped(tmp_path, stores):
    with PickyReceiver(lambda line: "550 5.1.1 No" if line.startswith("RCPT") else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _sent(proxy, "<c@b.example>")
            stores.wait_empty()
    assert not receiver.mails


def test_a_notice_that_is_refused_repeats_no_delivery(tmp_path, stores):
    def queue(*words):
        return csslctl("mail", "queue", *words, "--socket", str(proxy.control))

    def deferred():
        return [m["id"] for m in json.loads(queue("list", "--json").out)["messages"] if m["state"] == "deferred"]

    def limit(memory):
        for server in stores.servers:
            server.call("CONFIG", "SET", "maxmemory", memory)

    def reply(line):
        return "450 4.2.1 Later" if later and line.startswith("MAIL") else "550 5.1.1 Nobody" if "nobody" in line else None

    later = ["yes"]
    with PickyReceiver(reply) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _sent(proxy, "<nobody@b.example>", "<c@b.example>")
            limit("1")
            later.clear()
            wait_until(lambda: receiver.mails and deferred(), patience(20), "a notice that is refused")
            limit("0")
            assert queue("retry", *deferred()).code == DONE
            stores.wait_empty()
    assert [mail[1] for mail in receiver.mails] == [["c@b.example"], ["sender@a.example"]]


def test_a_recipient_that_is_put_off_is_tried_again_alone(tmp_path, stores):
    busy = ["later", "later"]
    with PickyReceiver(lambda line: busy and "busy" in line and f"450 4.2.1 {busy.pop()}" or None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _sent(proxy, "<busy@b.example>", "<c@b.example>")
            stores.wait_empty()
    assert [mail[1] for mail in receiver.mails] == [["c@b.example"], ["busy@b.example"]]


@pytest.mark.parametrize("at", ["MAIL", "RCPT", "DATA", "."])
def test_a_message_that_is_always_put_off_expires_and_its_sender_is_told(tmp_path, stores, at):
    with PickyReceiver(lambda line: "451 4.7.1 Later" if line.startswith(at) and told else None) as receiver:
        told = ["not yet"]
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"expire": "2s"}) as proxy:
            proxy.wait_open()
            _sent(proxy, "<c@b.example>")
            wait_until(lambda: "notices_total 1" in _metrics(proxy), patience(20))
            told.clear()
            stores.wait_empty()
    (sender, recipients, body), = receiver.mails
    assert (sender, recipients) == ("", ["sender@a.example"]) and "Status: 4.7.1" in body


def test_the_words_of_a_receiver_that_takes_no_connection_are_in_the_notice(tmp_path, stores):
    """It refuses the first two; at the second one the message has expired."""
    blocked = "554 5.7.1 Your IP is blocked"
    with ScriptedReceiver({"banner": [blocked, blocked, "220 welcome"]}) as receiver, \
            QueuedProxy(tmp_path, stores, receiver.address, queue={"expire": "1s", "retry_first": "1100ms", "retry_last": "1100ms"}).wait_open() as proxy:
        _sent(proxy, "<c@b.example>")
        wait_until(lambda: "notices_total 1" in _metrics(proxy), patience(20))
        stores.wait_empty()
    notice, = receiver.contents
    assert f"it said: {blocked}".encode() in notice.replace(b"\r\n ", b" ")


def _order(proxy, *words):
    done = csslctl("mail", "queue", *words, "--socket", str(proxy.control))
    assert done.code == DONE, done
    return done


def _line(proxy):
    line, = json.loads(_order(proxy, "--json").out)["destinations"]
    return line


def test_a_destination_is_stopped_and_started_over_a_restart(tmp_path, stores):
    with PickyReceiver() as receiver:
        name = "{}:{}".format(*receiver.address)
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _order(proxy, "rate", name, "6000")
            _order(proxy, "stop", name)
            _sent(proxy, "<c@b.example>")
            wait_until(lambda: stores.items() == [2, 2], patience(10), "a message and an order in both servers")
            proxy.kill()
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            wait_until(lambda: "lease_left_ms 0" not in _metrics(proxy), patience(20), "deliveries are allowed")
            _sent(proxy, "<c@b.example>")
            line = _line(proxy)
            assert (line["flow"], line["rate_per_minute"], line["ready"], len(receiver.mails)) == ("stopped", 6000, 2, 0)
            assert "stopped" in _order(proxy).out
            _order(proxy, "start", name)
            wait_until(lambda: len(receiver.mails) == 2, patience(20), "both messages")
            _order(proxy, "rate", name, "0")
            stores.wait_empty()  # an order that orders nothing is not kept
            assert csslctl("mail", "queue", "rate", name, "x", "--socket", str(proxy.control)).code == REFUSED
            assert csslctl("mail", "queue", "stop", "--socket", str(proxy.control)).code == USAGE


@pytest.mark.parametrize("start", ["the same", "a new"])
def test_a_sender_of_few_mails_does_not_stand_behind_all_of_another_one(tmp_path, stores, start):
    """The addresses of senders take turns in each line, also in one that was read back."""
    with PickyReceiver() as receiver:
        name = "{}:{}".format(*receiver.address)
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"deliveries": 1}) as proxy:
            proxy.wait_open()
            _order(proxy, "stop", name)
            for sender, count in (("many", 40), ("few", 3)):
                with Talk(proxy.address, source={"many": "192.0.2.1", "few": "192.0.2.2"}[sender]) as client:
                    client.ehlo()
                    for _ in range(count):
                        assert client.say(f"MAIL FROM:<{sender}@b.example>").startswith("250 ")
                        assert client.say("RCPT TO:<c@d.example>").startswith("250 ")
                        assert client.say("DATA").startswith("354 ")
                        assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
            if start == "a new":
                proxy.kill()
                proxy.start_again()
                proxy.wait_open()
            _order(proxy, "start", name)
            wait_until(lambda: len(receiver.mails) == 43, patience(20), "all messages")
    assert [mail[0] for mail in receiver.mails[:6]].count("few@b.example") == 3


def test_a_rate_slows_the_deliveries_of_a_destination(tmp_path, stores):
    came = []
    with PickyReceiver(lambda line: came.append(time.monotonic()) if line == "DATA" else None) as receiver:
        with QueuedProxy(tmp_path, stores, receiver.address) as proxy:
            proxy.wait_open()
            _order(proxy, "rate", "{}:{}".format(*receiver.address), "60")
            for _ in range(4):
                _sent(proxy, "<c@b.example>")
            wait_until(lambda: len(receiver.mails) == 4, patience(20), "all messages")
    assert came[-1] - came[0] > 2.5  # three times a second


def test_an_operator_sees_holds_and_deletes_messages(tmp_path, stores):
    def queue(*words):
        return csslctl("mail", "queue", *words, "--socket", str(proxy.control))

    def messages():
        return json.loads(queue("list", "--json").out)["messages"]

    with PickyReceiver(lambda line: "450 4.2.1 Full" if "busy" in line and busy else None) as receiver:
        busy = ["yes"]
        with QueuedProxy(tmp_path, stores, receiver.address, queue={"retry_first": "10min", "retry_last": "10min"}) as proxy:
            proxy.wait_open()
            for name in ("first", "second"):
                _sent(proxy, f"<busy.{name}@b.example>", "<c@b.example>")
            wait_until(lambda: [m["state"] for m in messages()] == ["deferred"] * 2, patience(20))
            first, second = (m["id"] for m in messages())
            shown = queue("show", first)
            assert shown.code == DONE and "sender@a.example" in shown.out and "450 4.2.1 Full" in shown.out
            assert "c@b.example: delivered" in shown.out
            assert queue("hold", first).code == DONE and messages()[0]["state"] == "held"
            assert queue("retry", first).code == REFUSED
            assert queue("delete", second).code == DONE and [m["id"] for m in messages()] == [first]
            assert queue("show", second).code == REFUSED and queue("hold", "none").code == REFUSED
            state = queue()
            assert state.code == DONE and "in sync" in state.out and "mail, active" in state.out
            busy.clear()
            assert queue("release", first).code == DONE
            stores.wait_empty()
            assert queue("what").code == USAGE and queue("hold").code == USAGE
    assert [mail[1] for mail in receiver.mails] == [["c@b.example"], ["c@b.example"], ["busy.first@b.example"]]
