"""One receiver, and senders that would take all its connections: smtpproxy gives each of them a share, and wastes no work on it."""

import contextlib
import socket
import time

import pytest

from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import counters, states
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

BODY = "Subject: x\r\n\r\nx\r\n.\r\n"
LINE = b"x" * 998 + b"\r\n"


@contextlib.contextmanager
def proxied(tmp_path, receiver=None, **keys):
    with receiver or ScriptedReceiver() as receiver, Proxy(tmp_path, next_hop=receiver.address, **keys) as proxy:
        yield proxy, receiver


def two_half_mails(proxy, stack):
    """One address has both connections of the receiver, each with a message under way."""
    talks = [stack.enter_context(Talk(proxy.address, source="192.0.2.1")) for _ in range(2)]
    for talk in talks:
        talk.ehlo()
        talk.mail()
    return talks


def send(proxy, address, **proxied_to):
    """One mail from that address. The seconds that its MAIL waited."""
    with Talk(proxy.address, source=address, **proxied_to) as client:
        client.ehlo()
        began = time.monotonic()
        assert client.say("MAIL FROM:<a@b>").startswith("250 ")
        waited = time.monotonic() - began
        assert client.say("RCPT TO:<c@d>").startswith("250 ")
        assert client.say("DATA").startswith("354 ")
        client.send(BODY)
        assert client.reply().startswith("250 ")
    return waited


def test_content_that_came_fast_gives_no_time_for_a_later_pause(tmp_path):
    """A megabyte at `least_rate` would be 35 minutes."""
    limits = {"connections_per_destination": 2, "lease_timeout": "1s", "turn_timeout": "20s"}
    with proxied(tmp_path, Sink(), limits=limits) as (proxy, _), contextlib.ExitStack() as stack:
        for talk in two_half_mails(proxy, stack):
            talk.send("Subject: x\r\n\r\n")
            talk.send(LINE * 1000)
        wait_until(lambda: counters(proxy)["bytes"] > 2_000_000, patience(10), "the content came")
        assert send(proxy, "192.0.2.2") < patience(4)
        assert counters(proxy)["too_slow"] >= 1


def test_a_sender_with_all_connections_gives_one_back_though_it_goes_on_sending(tmp_path):
    """Both of its messages come faster than `least_rate`, and neither ends."""
    limits = {"connections_per_destination": 2, "lease_timeout": "500ms", "turn_timeout": "20s"}
    with proxied(tmp_path, Sink(), limits=limits) as (proxy, sink), contextlib.ExitStack() as stack:
        talks = two_half_mails(proxy, stack)
        other = stack.enter_context(Talk(proxy.address, source="192.0.2.2"))
        other.ehlo()
        other.send("MAIL FROM:<a@b>\r\n")

        def one_has_ended():
            for talk in talks:
                with contextlib.suppress(OSError):
                    talk.send(LINE)
            return counters(proxy)["too_slow"] == 1

        wait_until(one_has_ended, patience(10), "a message of the first sender to be ended")
        assert other.reply().startswith("250 ")
        assert states(proxy).count("sends") == 2
        assert other.say("RCPT TO:<c@d>").startswith("250 ")
        assert other.say("DATA").startswith("354 ")
        other.send(BODY)
        assert other.reply().startswith("250 ")
        ends = []
        for talk in talks:
            with contextlib.suppress(OSError):
                ends.append(talk.say("\r\n.")[:4])
        assert "250 " in ends, ends
        assert counters(proxy)["too_slow"] == 1
    assert sink.counts["mails"] == 2


def test_a_sender_within_its_share_may_take_its_time(tmp_path):
    """Its message lasts longer than any sender may keep more than its share, and the other sender waits all that time."""
    lease_s = patience(0.3)
    limits = {"connections_per_destination": 2, "lease_timeout": f"{1000 * lease_s:.0f}ms", "turn_timeout": f"{patience(20)}s"}
    with proxied(tmp_path, Sink(), limits=limits) as (proxy, _), contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(Talk(proxy.address, source=f"192.0.2.{n}")) for n in (1, 2))
        third = stack.enter_context(Talk(proxy.address, source="192.0.2.2"))
        for talk in (one, other):
            talk.ehlo()
            talk.mail()
        third.ehlo()
        third.send("MAIL FROM:<a@b>\r\n")
        wait_until(lambda: "waits" in states(proxy), patience(5), "a session waits")
        until = time.monotonic() + 3 * lease_s
        while time.monotonic() < until:
            one.send(LINE)
            other.send(LINE)
            time.sleep(0.05)
        assert counters(proxy)["too_slow"] == 0
        assert one.say("\r\n.").startswith("250 ")
        assert third.reply().startswith("250 ")
        assert other.say("\r\n.").startswith("250 ")


def wakings(proxy):
    """How often the process has waited for something so far."""
    with open(f"/proc/{proxy.process.pid}/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


@pytest.mark.plain
def test_waiting_for_a_receiver_that_is_full_wakes_nobody(tmp_path):
    """Ten seconds after its start, a limit that was never lowered cannot rise any more. The process slept for one millisecond then."""
    limits = {"connections_per_destination": 1, "lease_timeout": "10min"}
    with proxied(tmp_path, limits=limits) as (proxy, _), Talk(proxy.address, source="192.0.2.1") as one, \
            Talk(proxy.address, source="192.0.2.2") as other:
        one.ehlo()
        one.mail()
        other.ehlo()
        other.send("MAIL FROM:<a@b>\r\n")
        time.sleep(10.5)
        before = wakings(proxy)
        time.sleep(3)
        assert wakings(proxy) - before < 100
        one.send(BODY)
        assert one.reply().startswith("250 ")
        assert other.reply().startswith("250 ")


BANNERS = ["220 scripted ESMTP", "554 5.7.0 Too many connections"]


def test_a_receiver_that_refuses_further_connections_for_good_is_not_asked_again_and_again(tmp_path):
    """A message is under way on its only connection, and another one waits: each end of a connection led to a new one."""
    with proxied(tmp_path, ScriptedReceiver({"banner": BANNERS})) as (proxy, receiver), Talk(proxy.address, source="192.0.2.1") as one, \
            Talk(proxy.address, source="192.0.2.2") as other:
        one.ehlo()
        one.mail()
        other.ehlo()
        other.send("MAIL FROM:<a@b>\r\n")
        time.sleep(2)
        assert receiver.connections <= 3
        one.send(BODY)
        assert one.reply().startswith("250 ")
        assert other.reply().startswith("250 ")
        assert receiver.connections <= 3


# --- places for sessions ---

def served(proxy, **proxied_from):
    """A connection that was greeted, or None."""
    talk = Talk(proxy.address, **proxied_from)
    if talk.banner.startswith("220 "):
        return talk
    assert talk.banner.startswith("421 4.") and talk.rest() == b"", talk.banner
    talk.close()
    return None


def test_senders_to_one_receiver_cannot_have_all_places(tmp_path):
    """It takes connections and says nothing, as a tarpit."""
    with Sink() as sink, socket.create_server(("127.0.0.1", 0)) as tarpit, contextlib.ExitStack() as stack:
        ports = [tarpit.getsockname()[1], sink.address[1]]
        proxy = stack.enter_context(Proxy(tmp_path, ports=ports, limits={"sessions": 10}))
        to_tarpit = [served(proxy, source=f"192.0.2.{n}", destination=tarpit.getsockname()) for n in range(1, 11)]
        assert len([talk for talk in to_tarpit if talk]) == 5
        assert send(proxy, "192.0.2.11", destination=sink.address) < patience(5)
        to_tarpit[0].close()
        wait_until(lambda: served(proxy, source="192.0.2.12", destination=tarpit.getsockname()), patience(10), "its place is free again")


def test_a_next_hop_of_the_file_may_have_all_places(tmp_path):
    with proxied(tmp_path, Sink(), limits={"sessions": 4}) as (proxy, _):
        assert all([served(proxy, source="192.0.2.1") for _ in range(4)])


def test_the_senders_that_proxy_headers_name_are_limited_each(tmp_path):
    with proxied(tmp_path, Sink(), limits={"sessions_per_source": 2}) as (proxy, _):
        first, second, third = [served(proxy, source="192.0.2.1") for _ in range(3)]
        assert first and second and not third
        assert counters(proxy)["sessions_refused"] == 1
        assert served(proxy, source="192.0.2.2")
        first.close()
        wait_until(lambda: served(proxy, source="192.0.2.1"), patience(10), "its place is free again")


def test_senders_that_were_refused_and_do_not_close_have_no_place(tmp_path):
    """They had one for five seconds each: then there were none for mail to other receivers."""
    with Sink() as sink, socket.create_server(("127.0.0.1", 0)) as tarpit, contextlib.ExitStack() as stack:
        ports = [tarpit.getsockname()[1], sink.address[1]]
        proxy = stack.enter_context(Proxy(tmp_path, ports=ports, limits={"sessions": 10}))
        talks = [stack.enter_context(Talk(proxy.address, source="192.0.2.1", destination=tarpit.getsockname())) for _ in range(20)]
        assert [talk.banner[:9] for talk in talks] == ["220 proxy"] * 5 + ["421 4.4.5"] * 15
        assert all(talk.rest() == b"" for talk in talks[5:])
        assert send(proxy, "192.0.2.2", destination=sink.address) < patience(5)


# --- connections of each sender ---

@pytest.mark.root
def test_an_idle_connection_of_one_sender_leaves_when_another_one_waits(tmp_path):
    """The receiver takes one connection. The first sender's is for its EHLO, and still opens when the other one begins to wait."""
    keys = {"limits": {"connections_per_destination": 1}, "outward": {"as_sender": "on", "keep_idle": "5min"}}
    with proxied(tmp_path, ScriptedReceiver({"banner": ["{gate}220 scripted ESMTP", "220 scripted ESMTP"]}), **keys) as (proxy, receiver), \
            Talk(proxy.address, source="127.0.0.2") as one, Talk(proxy.address, source="127.0.0.3") as other:
        for waiting, client in enumerate((one, other), 1):
            client.send("EHLO client.example\r\n")
            wait_until(lambda n=waiting: len(receiver.peers) == 1 and states(proxy).count("waits") == n, patience(5), "it waits for extensions")
        receiver.open_gate()
        assert one.reply().startswith("250")
        assert other.reply().startswith("250")
        assert receiver.peers == ["127.0.0.2", "127.0.0.3"]
