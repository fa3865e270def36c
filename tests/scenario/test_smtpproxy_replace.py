"""smtpproxy replaced by a new process: no connection is refused, and no session ends before its time."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import threading

import pytest

from tests.lib.build import binary, patience
from tests.lib.mail import Sink, source
from tests.lib.smtp_control import ask
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

BODY = "Subject: x\r\n\r\nx\r\n.\r\n"


@pytest.fixture
def start(open_folder):
    """start(sink, ...): a proxy that can be replaced."""
    return lambda sink, **keys: Proxy(open_folder, next_hop=sink.address, handover=str(open_folder / "handover.sock"), **keys)


def pid(proxy):
    return json.loads(ask(proxy, "/v1/status"))["pid"]


@pytest.mark.limit(180)
def test_replaced_again_and_again_under_load(start):
    """Every mail has a connection of its own, so new connections come all the time."""
    mails, results, olds = 2000, [], []
    with Sink("--delay", "end:0.02") as sink, start(sink) as proxy:
        sender = threading.Thread(target=lambda: results.append(source(proxy.address, "-m", str(mails), "-s", "10", "--proxy", "v2")))
        sender.start()
        for _ in range(3):
            before = len(proxy.events())
            wait_until(lambda before=before: len(proxy.events()) > before + 20 or not sender.is_alive(), patience(30), "mail flows")
            olds.append(proxy.replace())
        sender.join()
        assert [old.wait(patience(20)) for old in olds] == [0, 0, 0]
        assert pid(proxy) == proxy.process.pid
    assert results[0].status == 0 and results[0].counts["sent"] == mails, (results[0].seen(), results[0].errors)
    assert sink.counts["right"] == mails and sink.counts["duplicates"] == 0


def test_a_session_goes_on_in_the_old_process(start):
    with Sink() as sink, start(sink) as proxy, Talk(proxy.address, source="192.0.2.1") as session:
        session.ehlo()
        session.mail()
        old = proxy.replace()
        with Talk(proxy.address, source="192.0.2.2") as new:
            for client in (session, new):
                if client is new:
                    client.ehlo()
                    client.mail()
                client.send(BODY)
                assert client.reply().startswith("250 ")
        session.mail()
        session.send(BODY)
        assert session.reply().startswith("250 ")
        assert old.poll() is None and pid(proxy) == proxy.process.pid != old.pid
        assert session.say("QUIT").startswith("221 ")
        session.close()
        assert old.wait(patience(20)) == 0
    assert sink.counts["mails"] == 3


def test_the_old_process_waits_a_bounded_time(start):
    with Sink() as sink, start(sink, limits={"replaced_timeout": "300ms"}) as proxy, Talk(proxy.address, source="192.0.2.1") as idle:
        idle.ehlo()
        old = proxy.replace()
        assert idle.reply().startswith("421 4.3.2 ")
        idle.close()
        assert old.wait(patience(20)) == 0


@pytest.mark.parametrize("fault", [{"outward": {"ca": "/nowhere.pem"}}, {"listeners": "one more, taken"}, {"handover": "/nowhere/at.all"}],
                         ids=["a file that is not there", "a taken port", "nobody to replace"])
def test_a_new_process_that_cannot_start_replaces_nothing(start, fault):
    with Sink() as sink, start(sink) as proxy, Talk(proxy.address, source="192.0.2.1") as session:
        good = dict(proxy.settings)
        if "listeners" in fault:
            fault = {"listeners": [*good["listeners"], {**good["listeners"][0], "address": text_of(sink.address)}]}
        proxy.settings |= fault
        proxy.write_config()
        said = proxy.fail_to_replace()
        assert "not started" in said or "key 'handover'" in said
        with Talk(proxy.address, source="192.0.2.2") as new:
            for client in (session, new):
                client.ehlo()
                client.mail()
                client.send(BODY)
                assert client.reply().startswith("250 ")
        assert pid(proxy) == proxy.process.pid
        proxy.settings = good
        proxy.write_config()
        new.close()
        session.close()
        assert proxy.replace().wait(patience(20)) == 0


def test_a_service_manager_is_told_of_the_new_main_process(start, open_folder):
    """As ExecReload of the unit does it: the command returns when the new process, a child of nobody here, has taken over."""
    notify = open_folder / "notify"
    with Sink() as sink, start(sink) as proxy, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(notify))
        notify.chmod(0o777)
        manager.settimeout(patience(10))
        done = subprocess.run([binary("smtpproxy/smtpproxy"), "--config", str(proxy.config), "--replace", "--background"], check=False,
                              env=dict(os.environ, NOTIFY_SOCKET=str(notify)), stderr=subprocess.DEVNULL, timeout=patience(20))
        assert done.returncode == 0
        told = dict(line.split("=") for line in manager.recv(4096).decode().split())
        new = int(told["MAINPID"])
        try:
            assert told["READY"] == "1" and pid(proxy) == new != proxy.process.pid
            assert proxy.process.wait(patience(20)) == 0
        finally:
            os.kill(new, signal.SIGTERM)
            wait_until(lambda: not pathlib.Path(f"/proc/{new}").exists(), patience(20), "the new process ended")


def test_a_command_in_the_background_returns_the_failure(start):
    with Sink() as sink, start(sink) as proxy:
        proxy.settings["outward"]["ca"] = "/nowhere.pem"
        proxy.write_config()
        done = subprocess.run([binary("smtpproxy/smtpproxy"), "--config", str(proxy.config), "--replace", "--background"], check=False,
                              stderr=subprocess.PIPE, timeout=patience(20))
        assert done.returncode == 1 and b"outward.ca" in done.stderr
        assert pid(proxy) == proxy.process.pid
