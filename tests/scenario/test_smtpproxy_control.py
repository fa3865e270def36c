"""The control API of smtpproxy, /metrics, and `csslctl mail`."""

import json
import re
import signal
import subprocess

import pytest

from tests.lib.build import binary, patience
from tests.lib.csslctl import DONE, UNREACHABLE, csslctl, csslctl_json, environment
from tests.lib.mail import Sink, source
from tests.lib.smtp_proxy import Control, Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until


@pytest.fixture
def busy(tmp_path):
    """(proxy, sink): one session sends, another waits for its turn, and five mails went through before."""
    with Sink() as sink, Proxy(tmp_path, next_hop=sink.address, limits={"connections_per_destination": 1},
                               outward={"sources": [{"address": "127.0.0.9", "weight": 3}]}) as proxy:
        source(proxy.address, "-m", "5", "-d", "--proxy", "v2", "--proxy-source", "192.0.2.9")
        with Talk(proxy.address, source="192.0.2.1") as first, Talk(proxy.address, source="192.0.2.2") as second:
            first.ehlo()
            first.mail()
            second.ehlo()
            second.send("MAIL FROM:<a@b>\r\n")
            yield proxy, sink


def test_the_api_tells_who_sends_and_who_waits(busy):
    proxy, sink = busy
    control = Control(proxy.control)
    answers = {path: json.loads(control.ask(path)[1]) for path in json.loads(control.ask("/v1")[1]) if path.startswith("/v1/")}
    status = answers["/v1/status"]
    assert (status["sessions"], status["destinations"], status["pid"]) == (2, 1, proxy.process.pid)
    assert status["counters"]["accepted"] == status["counters"]["transactions"] == 5
    destination, = answers["/v1/destinations"]["destinations"]
    assert destination["address"] == "{}:{}".format(*sink.address)
    assert (destination["limit"], destination["sending"], destination["sessions"]) == (1, 1, 2)
    assert {s["client"]: s["state"] for s in answers["/v1/sessions"]["sessions"]}["192.0.2.1"] == "sends"
    assert {s["client"] for s in answers["/v1/senders"]["senders"]} == {"192.0.2.1", "192.0.2.2"}
    assert answers["/v1/pools"]["sources"] == [{"address": "127.0.0.9:0", "weight": 3}]
    assert [e["n"] for e in answers["/v1/events"]["events"]] == [1, 2, 3, 4, 5]
    assert len(json.loads(control.ask("/v1/events?after=3")[1])["events"]) == 2


def test_unknown_routes_and_methods_are_refused(busy):
    proxy, _ = busy
    control = Control(proxy.control)
    assert control.ask("/v1/nothing")[0] == 404
    assert control.ask("/v1/status", "POST")[0] == 405
    assert proxy.control.stat().st_mode & 0o777 == 0o600


def test_the_metrics_are_well_formed(busy):
    proxy, _ = busy
    status, text = Control(proxy.control).ask("/metrics")
    assert status == 200
    values = dict(re.findall(r"^(smtpproxy_\w+) (\d+)$", text, re.M))
    assert values["smtpproxy_accepted_total"] == "5" and values["smtpproxy_sessions_now"] == "2"
    assert all(f"# TYPE {name} " in text and f"# HELP {name} " in text for name in values)


@pytest.mark.tool("promtool")
def test_replies_of_receivers_are_counted_by_receiver_and_code(tmp_path):
    """Each reply, whoever it was for: to the greeting, to commands, to messages, and a 421 that the sender does not get."""
    rules = "--reply", "rcpt:450 4.7.1 Later:20", "--reply", "end:599 Never:20", "--reply", "mail:421 4.3.2 Bye:10", "--seed", "5"
    with Sink(*rules) as sink, Proxy(tmp_path, next_hop=sink.address) as proxy:
        source(proxy.address, "-s", "5", "-m", "100", "--keep-going", "--proxy", "v2", "--proxy-source", "192.0.2.1-192.0.2.5")
        control = Control(proxy.control)
        wait_until(lambda: '"connecting": 0,' in control.ask("/v1/destinations")[1], patience(10), "no connection is being opened")
        text = control.ask("/metrics")[1]
    counts = {code: int(n) for receiver, code, n in re.findall(r'^smtpproxy_replies_total\{receiver="(.*)",code="(.*)"\} (\d+)$', text, re.M)
              if receiver == "{}:{}".format(*sink.address)}
    given = sink.result.replies
    given["221"] = counts.get("221", 0)  # of those that end now, the metrics do not know
    assert {"220", "250", "354", "421", "450", "599"} <= given.keys()
    assert counts == {"5xx" if code == "599" else code: n for code, n in given.items() if n}
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             check=False)
    assert checked.returncode == 0, checked.stdout


def test_csslctl_shows_the_same(busy):
    proxy, sink = busy
    at = "--socket", proxy.control
    assert csslctl("mail", "status", *at).facts["accepted"] == "5"
    row, = csslctl("mail", "destinations", *at).table("DESTINATION")
    assert row["DESTINATION"] == "{}:{}".format(*sink.address) and row["LIMIT"] == "1"
    assert len(csslctl("mail", "sessions", *at).table("SESSION")) == 2
    assert {row["CLIENT"] for row in csslctl("mail", "senders", *at).table("CLIENT")} == {"192.0.2.1", "192.0.2.2"}
    assert csslctl("mail", "pools", *at).table("SOURCE") == [{"SOURCE": "127.0.0.9:0", "WEIGHT": "3"}]
    events = csslctl("mail", "events", *at)
    assert events.code == DONE and len(events.lines) == 5 and " accepted 192.0.2.9:" in events.lines[0]
    assert csslctl_json("mail", "destinations", *at)["total"] == 1


def test_csslctl_follows_events(busy):
    proxy, _ = busy
    command = [binary("csslctl/csslctl"), "mail", "events", "--follow", "--json", "--socket", str(proxy.control)]
    with subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE) as follower:
        assert [json.loads(follower.stdout.readline())["n"] for _ in range(5)] == [1, 2, 3, 4, 5]
        with Talk(proxy.address, source="192.0.2.3") as client:
            client.ehlo()
            client.send("MAIL FROM:<gone@b>\r\n")
        assert json.loads(follower.stdout.readline())["from"] == "gone@b"
        follower.terminate()
        assert follower.wait(patience(10)) == DONE


def test_csslctl_follows_events_into_the_process_that_takes_over(open_folder):
    """Its numbers begin at 1 again, and both are below the number of the last record that was shown."""
    with Sink() as sink, Proxy(open_folder, next_hop=sink.address, handover=str(open_folder / "handover.sock")) as proxy:
        source(proxy.address, "-m", "5", "--proxy", "v2")
        command = [binary("csslctl/csslctl"), "mail", "events", "--follow", "--json", "--socket", str(proxy.control)]
        with subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE) as follower:
            before = [json.loads(follower.stdout.readline()) for _ in range(5)]
            old = proxy.replace()
            old.wait(patience(10))
            source(proxy.address, "-m", "2", "--proxy", "v2")
            after = [json.loads(follower.stdout.readline()) for _ in range(2)]
            follower.terminate()
            assert follower.wait(patience(10)) == DONE
    assert [e["n"] for e in before] == [1, 2, 3, 4, 5] and [e["n"] for e in after] == [1, 2]
    assert len({e["instance"] for e in before}) == len({e["instance"] for e in after}) == 1
    assert before[0]["instance"] != after[0]["instance"]


def test_csslctl_tells_how_many_events_it_could_not_show(open_folder):
    """It asks every half second; meanwhile more come than smtpproxy keeps."""
    with Sink() as sink, Proxy(open_folder, next_hop=sink.address) as proxy:
        source(proxy.address, "-m", "1", "--proxy", "v2")
        command = [binary("csslctl/csslctl"), "mail", "events", "--follow", "--json", "--socket", str(proxy.control)]
        with subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
            assert json.loads(follower.stdout.readline())["n"] == 1
            follower.send_signal(signal.SIGSTOP)
            source(proxy.address, "-m", "600", "-s", "10", "-d", "--proxy", "v2")
            follower.send_signal(signal.SIGCONT)
            assert [json.loads(follower.stdout.readline())["n"] for _ in range(512)] == list(range(90, 602))
            assert follower.stderr.readline() == "csslctl mail events: 88 records came too fast to be shown\n"
            follower.terminate()
            assert follower.wait(patience(10)) == DONE


def test_without_a_smtpproxy_csslctl_says_so(tmp_path):
    (tmp_path / "cluster.json").write_text(json.dumps({"control": {"socket": "/x"}}))
    run = csslctl("mail", "status", "--dir", tmp_path)
    assert run.code == UNREACHABLE and "./cssl up --mail" in run.err
