"""csslctl against answers that no cluster gives on demand: refusals, drains at every stage, strange bytes."""

import json
import os
import pty
import signal
import subprocess

import pytest

from tests.lib.build import binary, patience
from tests.lib.csslctl import DONE, REFUSED, UNREACHABLE, USAGE, csslctl, csslctl_json, environment
from tests.lib.fake_control import FakeControl
from tests.lib.waiting import wait_until

ID = "4f2a" + "0" * 28


def agent(name="a1", state="ready", drain="none", **figures):
    return {"name": name, "state": state, "weight": 1.0, "links": {"up": 2, "suspect": 0, "total": 2}, "connections": 5,
            "handshakes": 1, "sessions": 70, "busy_permille": 123,
            "drain": {"state": drain, "reason": "operator", "elapsed_ms": 1500, "total": 5, "left": 0, "moved": 0, "rested": 0,
                      "ended": 0, "longest_pause_us": 2500, **figures}}


DRAINING = [agent(drain="draining", left=5), agent(drain="draining", left=3, moved=2),
            agent(drain="drained", left=0, moved=2, rested=3)]


def draining(folder, *then):
    return FakeControl(folder, {("POST", "/v1/agents/a1/drain"): (202, DRAINING[0]), ("GET", "/v1/agents/a1"): list(then)})


# agents

def test_agents_are_a_table(tmp_path):
    with FakeControl(tmp_path, {("GET", "/v1/agents"): {"agents": [agent(), agent("a2", "lost", "draining", left=2)]}}) as fake:
        run = csslctl("--socket", fake.socket, "agents")
        assert run.code == DONE
        first, second = run.table("AGENT")
        assert (first["AGENT"], first["STATE"], first["WEIGHT"], first["BUSY"], first["DRAIN"]) == ("a1", "ready", "1", "12.3%", "-")
        assert (second["STATE"], second["DRAIN"]) == ("lost", "draining, 2 of 5 left")
        assert len(csslctl_json("--socket", fake.socket, "agents")["agents"]) == 2


def test_one_agent_is_told_with_its_drain(tmp_path):
    with FakeControl(tmp_path, {("GET", "/v1/agents/a1"): agent(drain="drained", moved=5)}) as fake:
        run = csslctl("--socket", fake.socket, "agent", "a1")
        assert run.code == DONE
        assert run.facts["drain"] == "drained" and run.facts["moved"] == "5" and run.facts["longest pause"] == "2.5 ms"


def test_certificates_are_told_though_an_agent_is_silent(tmp_path):
    web = {"agent": "a1", "name": "web", "hosts": ["www.example.org", "example.org"], "file": "/tls/web.pem", "issuer": "CN=A CA",
           "not_after": "2026-01-02T03:04:05Z", "days_left": -3}
    answer = {"certificates": [web, dict(web, hosts=[], days_left=9)], "failed": {"a2": "not up"}}
    with FakeControl(tmp_path, {("GET", "/v1/certificates"): answer}) as fake:
        run = csslctl("--socket", fake.socket, "certificates")
        assert run.code == REFUSED and "a2: not up" in run.err
        first, second = run.table("DAYS")
        assert (first["DAYS"], first["NAMES"], first["ENDS"], first["ISSUER"]) == ("-3", "www.example.org,...", web["not_after"], "CN=A CA")
        assert (second["DAYS"], second["NAMES"]) == ("9", "-")


def test_weight_and_undrain_are_said(tmp_path):
    with FakeControl(tmp_path, {("POST", "/v1/agents/a1/weight"): dict(agent(), weight=2.5),
                                ("POST", "/v1/agents/a1/undrain"): agent()}) as fake:
        assert csslctl("--socket", fake.socket, "weight", "a1", "2.5").out == "a1 has the weight 2.5\n"
        assert csslctl("--socket", fake.socket, "undrain", "a1").out == "a1 takes connections again\n"
        assert fake.asked == [("POST", "/v1/agents/a1/weight", {"weight": 2.5}), ("POST", "/v1/agents/a1/undrain", {})]
        assert csslctl("--socket", fake.socket, "weight", "a1", "heavy").code == USAGE


def test_names_are_encoded(tmp_path):
    with FakeControl(tmp_path, {}) as fake:
        csslctl("--socket", fake.socket, "connections", "--agent", "../status?x&y")
        assert fake.asked[0][1] == "/v1/connections?limit=100&agent=..%2Fstatus%3Fx%26y"


@pytest.mark.parametrize("name", ["..", "a1/drain", "../status?x", "-", "x" * 64])
def test_an_impossible_agent_s_name_is_not_asked_for(tmp_path, name):
    with FakeControl(tmp_path, {}) as fake:
        for command in ("agent", "drain", "undrain"):
            run = csslctl("--socket", fake.socket, command, name)
            assert run.code == USAGE and f"'{name}' is no name of an agent" in run.err and fake.asked == []


def test_a_mistake_that_ragent_finds_is_a_wrong_command_line(tmp_path):
    with FakeControl(tmp_path, {("GET", "/v1/agents/a1"): (400, {"error": "x: found 'y', expected z"})}) as fake:
        run = csslctl("--socket", fake.socket, "agent", "a1")
        assert run.code == USAGE
        assert run.err == "csslctl agent a1: x: found 'y', expected z (400)\n  see `csslctl help agent`\n"


# drain

def test_a_drain_begins_and_is_not_awaited(tmp_path):
    with draining(tmp_path) as fake:
        run = csslctl("--socket", fake.socket, "drain", "a1", "--timeout", "45s")
        assert (run.code, run.out.split(";")[0]) == (DONE, "a1 drains, 5 connections to go")
        assert fake.asked == [("POST", "/v1/agents/a1/drain", {"timeout_ms": 45000})]


def test_a_drain_is_awaited_and_reported(tmp_path):
    with draining(tmp_path, *DRAINING) as fake:
        run = csslctl("--socket", fake.socket, "drain", "a1", "--wait")
        assert run.code == DONE, run
        assert run.lines[0] == "0 of 5, 5 left, 0 moved, 0 rested, 0 ended, 1.5 s"
        assert "a1 is empty after 1.5 s" in run.lines
        assert {k: run.facts[k] for k in ("connections", "moved", "rested", "ended", "longest pause")} == {
            "connections": "5", "moved": "2", "rested": "3", "ended": "0", "longest pause": "2.5 ms"}
        assert fake.asked[0] == ("POST", "/v1/agents/a1/drain", {})


def test_a_drain_in_json_is_the_last_answer_alone(tmp_path):
    with draining(tmp_path, *DRAINING) as fake:
        assert csslctl_json("--socket", fake.socket, "drain", "a1", "--wait") == DRAINING[-1]


def test_a_drain_that_ended_connections_is_no_success(tmp_path):
    with draining(tmp_path, agent(drain="timed out", moved=4, ended=1)) as fake:
        run = csslctl("--socket", fake.socket, "drain", "a1", "--wait")
        assert run.code == REFUSED
        assert "1 connection could not leave in time and had to be ended" in run.err and "--timeout" in run.err


def test_a_drain_that_was_called_off_is_no_success(tmp_path):
    with draining(tmp_path, DRAINING[0], agent()) as fake:
        run = csslctl("--socket", fake.socket, "drain", "a1", "--wait")
        assert run.code == REFUSED and "called off" in run.err


def test_an_interrupted_wait_says_that_the_drain_goes_on(tmp_path):
    with draining(tmp_path, DRAINING[0]) as fake:
        tool = subprocess.Popen([binary("csslctl/csslctl"), "--socket", fake.socket, "drain", "a1", "--wait"],
                                env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(fake.asked) > 2, patience(10))
        tool.send_signal(signal.SIGINT)
        _, err = tool.communicate(timeout=patience(10))
        assert tool.returncode == REFUSED
        assert "the drain goes on" in err and "undrain" in err


def test_on_a_terminal_a_bar_is_drawn(tmp_path):
    with draining(tmp_path, *DRAINING) as fake:
        output = on_terminal("--socket", fake.socket, "drain", "a1", "--wait")
        assert "[............" in output and "]  40%" in output
        assert "a1 is empty after" in output


@pytest.mark.parametrize("timeout", ["30", "soon", "0s", "2d"])
def test_a_wrong_timeout_is_refused_before_anything_is_asked(tmp_path, timeout):
    with draining(tmp_path) as fake:
        run = csslctl("--socket", fake.socket, "drain", "a1", "--timeout", timeout)
        assert run.code == USAGE and timeout in run.err and fake.asked == []


# what terminals see

def on_terminal(*arguments, **env):
    """The output on a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(binary("csslctl/csslctl"), ["csslctl", *arguments], environment(TERM="xterm", **env))
    output = b""
    try:
        while piece := os.read(terminal, 65536):
            output += piece
    except OSError:
        pass  # Linux says EIO when the other side is closed
    os.close(terminal)
    os.waitpid(child, 0)
    return output.decode()


def test_colour_is_for_terminals_that_want_it(tmp_path):
    with FakeControl(tmp_path, {("GET", "/v1/agents"): {"agents": [agent()]}}) as fake:
        assert "\033[32mready" in on_terminal("--socket", fake.socket, "agents")
        assert "\033[" not in on_terminal("--socket", fake.socket, "agents", NO_COLOR="1")
        assert "\033[" not in csslctl("--socket", fake.socket, "agents").out


def test_control_characters_of_a_client_do_not_reach_the_terminal(tmp_path):
    evil = "x\033]0;owned\007\nEVIL"
    page = {"connections": [{"id": ID, "client": "10.0.0.1:5", "state": "owned", "owner": "a1", "listener": "sf",
                             "tls": {"version": "1.3", "server_name": evil}}], "next": None}
    with FakeControl(tmp_path, {("GET", "/v1/connections?limit=100"): page}) as fake:
        run = csslctl("--socket", fake.socket, "connections")
        assert run.code == DONE and run.lines[1].endswith("x?]0;owned??EVIL") and len(run.lines) == 2
        assert csslctl_json("--socket", fake.socket, "connections") == page


# connections

def test_a_unique_beginning_names_a_connection(tmp_path):
    other = "4f2b" + "0" * 28
    asked = f"/v1/connections?limit=2&after=4f29{'f' * 28}"
    with FakeControl(tmp_path, {("GET", asked): {"connections": [{"id": ID}, {"id": other}]},
                                ("GET", f"/v1/connections/{ID}"): {"id": ID}}) as fake:
        assert csslctl_json("--socket", fake.socket, "connection", "4f2a") == {"id": ID}


@pytest.mark.parametrize("ids,says", [([ID, "4f2a" + "1" * 28], "several"), ([], "no connection"), (["5" * 32], "no connection")])
def test_a_beginning_that_names_none_or_several_is_refused(tmp_path, ids, says):
    page = {"connections": [{"id": i} for i in ids]}
    with FakeControl(tmp_path, {("GET", f"/v1/connections?limit=2&after=4f29{'f' * 28}"): page}) as fake:
        run = csslctl("--socket", fake.socket, "rest", "4f2a")
        assert run.code == REFUSED and says in run.err and len(fake.asked) == 1


def test_more_connections_than_a_page_are_asked_page_by_page(tmp_path):
    ids = [f"{n:032x}" for n in range(1001)]
    pages = {("GET", "/v1/connections?limit=1000&listener=sf"):
             {"connections": [{"id": i} for i in ids[:1000]], "next": ids[999]},
             ("GET", f"/v1/connections?limit=1&after={ids[999]}&listener=sf"):
             {"connections": [{"id": ids[1000]}], "next": ids[1000]}}
    with FakeControl(tmp_path, pages) as fake:
        all_of_them = csslctl_json("--socket", fake.socket, "connections", "--limit", "1001", "--listener", "sf")
        assert [c["id"] for c in all_of_them["connections"]] == ids


# errors

@pytest.mark.parametrize("status,remedy", [(401, "--token-file"), (403, "operate"), (503, "csslctl agents"), (409, "")])
def test_a_refusal_names_what_was_asked_the_reason_and_the_remedy(tmp_path, status, remedy):
    with FakeControl(tmp_path, {("POST", "/v1/agents/a1/undrain"): (status, {"error": "not now"})}) as fake:
        run = csslctl("--socket", fake.socket, "undrain", "a1")
        assert run.code == REFUSED
        assert run.err.startswith(f"csslctl undrain a1: not now ({status})\n") and remedy in run.err
        assert run.out == ""
        with_json = csslctl("--json", "--socket", fake.socket, "undrain", "a1")
        assert with_json.code == REFUSED and json.loads(with_json.out) == {"error": "not now"}


def test_an_unknown_agent_leads_to_the_list(tmp_path):
    with FakeControl(tmp_path, {("GET", "/v1/agents/a9"): (404, {"error": "no agent of that name"})}) as fake:
        run = csslctl("--socket", fake.socket, "agent", "a9")
        assert run.code == REFUSED
        assert run.err == "csslctl agent a9: no agent of that name (404)\n  `csslctl agents` lists the agents\n"


def test_agents_that_failed_are_named_beside_those_that_did_not(tmp_path):
    answer = {"error": "not done by a2", "done": ["a1"], "failed": {"a2": "no answer"}}
    with FakeControl(tmp_path, {("POST", "/v1/reload"): (503, answer)}) as fake:
        run = csslctl("--socket", fake.socket, "reload")
        assert run.code == REFUSED and "not done by a2" in run.err
        assert run.table("NODE") == [{"NODE": "a1", "RESULT": "done"}, {"NODE": "a2", "RESULT": "no answer"}]


def test_an_unconfirmed_revocation_is_no_success(tmp_path):
    answer = {"sessions": 7, "confirmed": ["a1"], "unconfirmed": ["a2", "a3"]}
    with FakeControl(tmp_path, {("POST", "/v1/sessions/revoke"): answer}) as fake:
        run = csslctl("--socket", fake.socket, "sessions", "revoke", "--server-name", "x.test")
        assert run.code == REFUSED
        assert run.lines == ["7 sessions revoked", "confirmed by a1"] and "a2, a3" in run.err
        assert fake.asked == [("POST", "/v1/sessions/revoke", {"server_name": "x.test"})]


def test_silent_agents_are_named_beside_the_counters(tmp_path):
    answer = {"ragent": {"x": 1}, "agents": {"a1": {"y": 2}, "a2": {"error": "not up"}}}
    with FakeControl(tmp_path, {("GET", "/v1/counters"): answer}) as fake:
        run = csslctl("--socket", fake.socket, "counters")
        assert run.code == REFUSED and "a2: not up" in run.err
        assert run.table("COUNTER")[1] == {"COUNTER": "y", "ragent": "-", "a1": "2", "a2": "-"}


def test_ragents_counts_of_an_agent_stand_in_the_agents_column(tmp_path):
    answer = {"ragent": {"latency_move_1ms": 3}, "agents": {"a1": {"y": 2}, "a2": {"error": "not up"}},
              "of_agents": {"a1": {"latency_move_1ms": 1}, "a2": {"latency_move_1ms": 2}}}
    with FakeControl(tmp_path, {("GET", "/v1/counters"): answer}) as fake:
        run = csslctl("--socket", fake.socket, "counters", "latency")
        assert run.table("COUNTER") == [{"COUNTER": "latency_move_1ms", "ragent": "3", "a1": "1", "a2": "2"}]
        only = csslctl("--socket", fake.socket, "--json", "counters", "--agent", "a1")
        assert json.loads(only.out) == {"a1": {"y": 2, "latency_move_1ms": 1}}


@pytest.mark.parametrize("status", [200, 404, 502])
def test_an_answer_of_another_program_is_not_believed(tmp_path, status):
    with FakeControl(tmp_path, {("GET", "/v1/status"): (status, b"<html>")}) as fake:
        for form in ([], ["--json"]):
            run = csslctl("--socket", fake.socket, "status", *form)
            assert run.code == UNREACHABLE and "no RAgent" in run.err and run.out == ""


@pytest.mark.parametrize("page", [{}, {"connections": [], "next": ID}, {"connections": None, "next": 7}])
def test_a_listing_ends_whatever_the_page_is(tmp_path, page):
    first = {"connections": [{"id": ID}], "next": ID}
    with FakeControl(tmp_path, {("GET", "/v1/connections?limit=100"): first,
                                ("GET", f"/v1/connections?limit=99&after={ID}"): page}) as fake:
        assert csslctl_json("--socket", fake.socket, "connections") == {"connections": [{"id": ID}], "next": None}


# mail

def test_the_record_of_mail_that_had_no_reply_shows_no_code(tmp_path):
    event = {"n": 1, "time": "now", "outcome": "aborted", "client": "192.0.2.1:5", "destination": "192.0.2.2:25",
             "from": "a@b.example", "recipients": [], "size": 0, "wait_ms": 3, "text": "the sender left"}
    with FakeControl(tmp_path, {("GET", "/v1/events?after=0"): {
            "instance": "i", "oldest": 1, "newest": 2, "events": [event, dict(event, n=2, code=451, text="4.3.0 Later")]}}) as fake:
        run = csslctl("mail", "events", "--socket", fake.socket)
        assert run.code == DONE
        assert [line.split(" waited ")[1] for line in run.lines] == ["3 ms: the sender left", "3 ms: 451 4.3.0 Later"]
