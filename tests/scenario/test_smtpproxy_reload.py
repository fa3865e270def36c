"""smtpproxy reads its file again at SIGHUP: sessions go on, and what the file says counts from then on."""

import contextlib
import signal

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.mail import Sink
from tests.lib.smtp_control import counters, destination
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

BODY = "Subject: x\r\n\r\nx\r\n.\r\n"


@contextlib.contextmanager
def proxied(folder, *sink_options, **keys):
    with Sink(*sink_options) as sink, Proxy(folder, next_hop=sink.address, **keys) as proxy:
        yield proxy, sink


def test_a_session_goes_on_and_the_next_one_is_of_the_new_file(open_folder):
    with proxied(open_folder) as (proxy, sink), Talk(proxy.address, source="192.0.2.1") as before:
        before.ehlo()
        before.mail()
        proxy.settings |= {"name": "new.example", "limits": {"hops": 2}}
        proxy.write_config()
        proxy.reload()
        before.send(BODY)
        assert before.reply().startswith("250 ")
        with Talk(proxy.address, source="192.0.2.2") as after:
            assert after.banner.startswith("220 new.example ")
            after.ehlo()
            after.mail()
            after.send("Received: 1\r\n" * 3)
            assert after.reply().startswith("554 5.4.6 ")
        before.mail()
        before.send(BODY)
        assert before.reply().startswith("250 ")
        assert counters(proxy)["reloads"] == 1
    assert sink.counts["mails"] == 2


def test_a_log_that_cannot_be_opened_again_is_told_in_the_old_one(open_folder):
    with proxied(open_folder) as (proxy, _):
        log, old = open_folder / "smtpproxy.log", open_folder / "smtpproxy.log.1"
        log.rename(old)
        log.mkdir()
        proxy.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "configuration read again" in old.read_text(), patience(10), "it is reloaded")
        log.rmdir()
        old.rename(log)
        assert f"log not opened again path={log}" in proxy.log()


def test_listeners_come_and_go_and_their_sessions_stay(open_folder):
    with proxied(open_folder) as (proxy, sink), Talk(proxy.address, source="192.0.2.1") as session:
        session.ehlo()
        port, = free_ports(1)
        own, = proxy.settings["listeners"]
        proxy.settings["listeners"] = [own | {"address": f"127.0.0.1:{port}"}]
        proxy.write_config()
        proxy.reload()
        wait_until(lambda: not listens(proxy.address), patience(10), "the old port is closed")
        with Talk(("127.0.0.1", port), source="192.0.2.1") as new:
            for client in (session, new):
                client.ehlo()
                client.mail()
                client.send(BODY)
                assert client.reply().startswith("250 ")
    assert sink.counts["mails"] == 2


def listens(address):
    with contextlib.suppress(ConnectionRefusedError), Talk(address, source="192.0.2.9"):
        return True
    return False


@pytest.mark.parametrize("fault", [{"name": "no name"}, {"listeners": "taken"}, {"outward": {"ca": "/nowhere.pem"}}],
                         ids=["a bad value", "a taken port", "a file that is not there"])
def test_a_file_that_cannot_count_changes_nothing(open_folder, fault):
    with proxied(open_folder) as (proxy, sink), Talk(proxy.address, source="192.0.2.1") as session:
        good = dict(proxy.settings)
        if fault == {"listeners": "taken"}:
            fault = {"listeners": [{**good["listeners"][0], "address": text_of(sink.address)}], "name": "new.example"}
        proxy.settings |= fault
        proxy.write_config()
        proxy.reload("configuration stays as it was")
        with Talk(proxy.address, source="192.0.2.2") as after:
            assert after.banner.startswith("220 proxy.example ")
        session.ehlo()
        session.mail()
        session.send(BODY)
        assert session.reply().startswith("250 ")
        proxy.settings = good
        proxy.write_config()
        proxy.reload()


def test_as_sender_needs_a_capability_that_root_gave_up_at_the_start(open_folder):
    with proxied(open_folder) as (proxy, sink), Talk(proxy.address, source="192.0.2.1") as session:
        proxy.settings["outward"]["as_sender"] = "on"
        proxy.write_config()
        proxy.reload("configuration stays as it was")
        assert "outward.as_sender: this process has no CAP_NET_ADMIN" in proxy.log()
        session.ehlo()
        session.mail()
        session.send(BODY)
        assert session.reply().startswith("250 ")
    assert sink.counts["mails"] == 1


def test_a_connection_of_the_old_policy_carries_no_mail_of_the_new_one(open_folder):
    """It is idle, and in clear. The new file says encrypt, and the receiver offers no TLS."""
    with proxied(open_folder, outward={"keep_idle": "1min"}) as (proxy, sink), Talk(proxy.address, source="192.0.2.1") as session:
        session.ehlo()
        session.mail()
        session.send(BODY)
        assert session.reply().startswith("250 ")
        assert destination(proxy)["idle"] == 1
        proxy.settings["outward"]["tls"] = "encrypt"
        proxy.settings["limits"] = {"connections_per_destination": 3}
        proxy.write_config()
        proxy.reload()
        assert (destination(proxy)["idle"], destination(proxy)["ceiling"]) == (0, 3)
        assert session.say("MAIL FROM:<a@b>").startswith("421 4.7.4 ")
    assert sink.counts["mails"] == 1


def test_a_changed_key_that_takes_effect_only_at_a_start_is_named(open_folder):
    with proxied(open_folder) as (proxy, _):
        proxy.settings["control"] = str(open_folder / "other.sock")
        proxy.write_config()
        proxy.reload()
        assert "changed key takes effect at the next start key=control" in proxy.log()
        assert counters(proxy)["reloads"] == 1
