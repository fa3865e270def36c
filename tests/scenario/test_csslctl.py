"""The operator's tool on a cluster: every command for people and as JSON, refusals, exit codes, completion."""

import calendar
import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
import time

import pytest

from tests.lib import edits
from tests.lib.build import ROOT, binary, patience
from tests.lib.csslctl import DONE, REFUSED, UNREACHABLE, USAGE, csslctl, csslctl_json, environment
from tests.lib.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    # agents that have just come up would take their share, and with it what was moved by hand
    stays = edits.instead("ragents:\n", "moves: { rebalances_per_second: off }\nragents:\n")
    return start_module_cluster("--agents", "2", "--workers", "2", edit=stays)


@pytest.fixture(scope="module")
def tool(cluster):
    def run(*arguments):
        return csslctl("--dir", cluster.dir, *arguments)
    return run


@pytest.fixture(scope="module")
def tool_json(cluster):
    def run(*arguments):
        return csslctl_json("--dir", cluster.dir, *arguments)
    return run


@pytest.fixture
def connection(cluster):
    """One that has made its handshake, as RAgent describes it."""
    with cluster.connect() as sock:
        yield wait_until(lambda: (c := cluster.connection_of(sock)) and c["tls"] and c["owner"] and c, patience(5))


# where the cluster is

def test_the_cluster_is_found_by_folder_environment_and_socket(cluster):
    socket = cluster.description()["control"]["socket"]
    assert csslctl("--dir", cluster.dir, "status").code == DONE
    assert csslctl("status", env={"CSSL_DIR": str(cluster.dir)}).code == DONE
    assert csslctl("status", "--socket", socket).code == DONE
    assert csslctl("status", "--socket", socket, env={"CSSL_DIR": "/nowhere"}).code == DONE


def test_the_cluster_is_found_by_its_url_with_a_token(cluster, tmp_path):
    control = cluster.description()["control"]
    place = ["--api", control["url"], "--cacert", cluster.ca]
    assert csslctl_json(*place, "--token-file", control["token_file"], "status")["name"] == "r1"
    unknown = csslctl(*place, "status")
    assert unknown.code == REFUSED and "401" in unknown.err and "--token-file" in unknown.err
    made = csslctl("token", "make", "reader", tmp_path / "reader.token")
    with open(cluster.dir / "control.tokens", "a") as tokens:
        tokens.write(made.out)
    assert csslctl(*place, "--token-file", control["token_file"], "reload").code == DONE
    reader = [*place, "--token-file", tmp_path / "reader.token"]
    assert csslctl(*reader, "agents").code == DONE
    forbidden = csslctl(*reader, "keys", "rotate")
    assert forbidden.code == REFUSED and "403" in forbidden.err and "operate" in forbidden.err


def test_without_a_cluster_the_remedy_is_named(tmp_path):
    nowhere = csslctl("status")
    assert nowhere.code == USAGE and "--dir" in nowhere.err and "CSSL_DIR" in nowhere.err
    empty = csslctl("--dir", tmp_path, "status")
    assert empty.code == UNREACHABLE and "./cssl up --dir starts one" in empty.err
    gone = csslctl("--socket", tmp_path / "none.sock", "status")
    assert gone.code == UNREACHABLE and gone.err.startswith("csslctl status: ") and "RAgent" in gone.err
    assert csslctl("--socket", "s", "--dir", "d", "status").code == USAGE


def test_a_token_is_not_read_by_others_nor_sent_in_clear(tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o644)
    shared = csslctl("--api", "https://127.0.0.1:1", "--token-file", token, "status")
    assert shared.code == USAGE and "chmod 600" in shared.err
    token.chmod(0o600)
    clear = csslctl("--api", "http://192.0.2.1", "--token-file", token, "status")
    assert clear.code == USAGE and "https" in clear.err
    closed = csslctl("--api", "https://127.0.0.1:1", "--token-file", token, "status")
    assert closed.code == UNREACHABLE and "secret" not in closed.err
    assert csslctl("--api", "ftp://127.0.0.1", "status").code == USAGE


def test_a_certificate_that_is_not_believed_leads_to_cacert(cluster):
    """The SF listener takes the place of the API's own: it has a certificate, but there is no RAgent behind it."""
    url = f"https://localhost:{cluster.sf[1]}"
    doubted = csslctl("--api", url, "status")
    assert doubted.code == UNREACHABLE and "--cacert" in doubted.err
    believed = csslctl("--api", url, "--cacert", cluster.ca, "status")
    assert "--cacert" not in believed.err and "no RAgent" in believed.err


# what it shows

def test_status_has_agents_and_listeners(tool, tool_json, cluster):
    run = tool("status")
    assert run.code == DONE and run.facts["agents ready"] == "2 of 2"
    assert [row["AGENT"] for row in run.table("AGENT")] == cluster.agents
    assert {"sf", "sl"} <= {row["LISTENER"] for row in run.table("LISTENER")}
    assert tool_json("status")["name"] == "r1"


def test_agents_and_one_of_them(tool, tool_json, cluster):
    assert [row["AGENT"] for row in tool("agents").table("AGENT")] == cluster.agents
    assert [a["name"] for a in tool_json("agents")["agents"]] == cluster.agents
    assert tool("agent", "a1").facts["agent"] == "a1"
    assert tool_json("agent", "a1")["name"] == "a1"
    unknown = tool("agent", "a9")
    assert unknown.code == REFUSED and "`csslctl agents`" in unknown.err


def test_a_connection_is_listed_filtered_and_told(tool, tool_json, cluster, connection):
    rows = tool("connections").table("CONNECTION")
    assert connection["id"][:12] in [row["CONNECTION"] for row in rows]
    for filters in (["--agent", connection["owner"]], ["--listener", "sf"], ["--client", "127.0.0.0/8"], ["--limit", "1000"]):
        assert connection["id"] in [c["id"] for c in tool_json("connections", *filters)["connections"]]
    assert tool_json("connections", "--listener", "sl")["connections"] == []
    facts = tool("connection", connection["id"][:8]).facts
    assert facts["connection"] == connection["id"] and facts["session"] == connection["tls"]["session_id"]
    assert tool_json("connection", connection["id"])["id"] == connection["id"]


@pytest.mark.parametrize("arguments", [["--limit", "0"], ["--limit", "many"], ["--limit", "-1"]])
def test_a_wrong_limit_is_a_wrong_command_line(tool, arguments):
    assert tool("connections", *arguments).code == USAGE


def test_a_refusal_of_the_cluster_is_told_in_its_words(tool):
    unknown = tool("connections", "--agent", "a9")
    assert unknown.code == REFUSED and "no agent of that name" in unknown.err
    wrong = tool("connections", "--client", "nobody")
    assert wrong.code == USAGE and "is no address or network" in wrong.err


def test_a_connection_is_moved_to_and_fro(tool, tool_json, cluster, connection):
    other = next(name for name in cluster.agents if name != connection["owner"])
    run = tool("move", connection["id"], other)
    assert run.code == DONE and run.out.startswith(f"moved from {connection['owner']} to {other}, epoch ")
    assert tool_json("move", connection["id"][:10], connection["owner"])["to"] == connection["owner"]
    again = tool("move", connection["id"], connection["owner"])
    assert again.code == REFUSED and "409" in again.err
    assert tool("move", connection["id"], "a9").code == REFUSED
    assert tool("move", "0" * 32, other).code == REFUSED
    assert tool("move", "xyz", other).code == USAGE


def test_sessions_are_counted_and_revoked(tool, tool_json, cluster):
    cluster.connect(server_name="counted.test", context=lenient(cluster)).close()
    mine = ["--server-name", "counted.test"]
    wait_until(lambda: set(tool_json("sessions", "count", *mine)["agents"].values()) == {1}, patience(5), "its session on all agents")
    assert set(tool_json("sessions", "count", *mine)["agents"]) == set(cluster.agents)
    assert tool("sessions", "count", *mine).lines[0] == "1 session"
    revoked = tool_json("sessions", "revoke", *mine)
    assert revoked["sessions"] == 1 and sorted(revoked["confirmed"]) == cluster.agents
    assert tool("sessions", "revoke", *mine).lines[0] == "0 sessions revoked"
    assert tool("sessions", "revoke").code == USAGE
    for unlike in (("--tls", "1.2", "--client", "198.51.100.0/24"), ("--family", "0" * 32, "--tls", "1.3"),
                   ("--older-than", "1d", "--younger-than", "1d"), ("--client-certificate", "0" * 64)):
        assert tool_json("sessions", "count", *unlike)["sessions"] == tool_json("sessions", "revoke", *unlike)["sessions"] == 0
    assert tool("sessions", "revoke", "--all", "--client", "127.0.0.1").code == USAGE
    wrong = tool("sessions", "revoke", "--family", "zz")
    assert wrong.code == USAGE and "--family: 'zz' is no family id: 32 hexadecimal digits" in wrong.err


def test_sessions_are_listed_filtered_and_shown(tool, tool_json, cluster):
    name, client = "listed.test", "127.0.0.77"
    for _ in range(3):
        cluster.connect(server_name=name, context=lenient(cluster), source=client).close()
    cluster.connect(server_name="other.test", context=lenient(cluster)).close()
    mine = ["--server-name", name, "--client", client, "--younger-than", "1h"]
    wait_until(lambda: all(n >= 3 for n in tool_json("sessions", "count", *mine)["agents"].values()), patience(5))
    listed = tool_json("sessions", "list", *mine, "--tls", "1.3")["sessions"]
    assert len(listed) == tool_json("sessions", "count", *mine)["sessions"]
    assert {(s["server_name"], s["client"], s["version"]) for s in listed} == {(name, client, "1.3")}
    assert tool_json("sessions", "list", *mine, "--tls", "1.2") == {"sessions": [], "next": None}
    assert tool_json("sessions", "count", *mine, "--older-than", "1h")["sessions"] == 0
    assert tool_json("sessions", "count", "--cipher", listed[0]["cipher_suite"])["sessions"] >= len(listed)
    rows = tool("sessions", "list", *mine).lines
    assert rows[0].split()[-1] == "SESSION" and {row.split()[-1] for row in rows[1:]} == {s["id"] for s in listed}
    assert len(tool_json("sessions", "list", "--limit", "1")["sessions"]) == 1
    assert "and more" in tool("sessions", "list", "--limit", "1").lines[-1]


def test_one_session_says_who_holds_it_and_how_often_it_was_resumed(tool, tool_json, cluster):
    context = cluster.context(version="1.2")
    first = cluster.connect(context=context, where=cluster.sl)
    session = first.session
    first.close()
    identity = session.id.hex()
    wait_until(lambda: len(holders(tool, tool_json, identity)) == len(cluster.agents), patience(5))
    again = cluster.connect(context=context, where=cluster.sl, session=session)
    assert again.session_reused
    again.close()
    shown = tool_json("sessions", "show", identity)
    assert shown["hits"] == 1 and shown["missing"] == [] and shown["silent"] == {} and shown["version"] == "1.2"
    run = tool("sessions", "show", identity)
    assert run.facts["session"] == identity and run.facts["hits"] == "1"
    assert [row["AGENT"] for row in run.table("AGENT")] == cluster.agents
    tool_json("sessions", "revoke", "--id", identity)
    gone = tool("sessions", "show", identity)
    assert gone.code == REFUSED and "no agent that answered holds such a session" in gone.err


def holders(tool, tool_json, identity):
    """Names; none before any agent has it."""
    return tool_json("sessions", "show", identity)["holders"] if tool("sessions", "show", identity).code == DONE else []


@pytest.mark.parametrize("arguments,code,says", [
    (["list", "--tls", "1.1"], USAGE, "--tls: '1.1' is no version of TLS here: 1.2 or 1.3"),
    (["list", "--cipher", "RC4"], USAGE, "--cipher: 'RC4' is no cipher suite"),
    (["list", "--client", "me"], USAGE, "--client: 'me' is no address or network: such as"),
    (["count", "--older-than", "soon"], USAGE, "--older-than"),
    (["show", "xyz"], USAGE, "'xyz' is no session id: 64 hexadecimal digits"),
    (["show", "count"], USAGE, "'count' is no session id"),
    (["show", "0" * 64], REFUSED, "`csslctl sessions list`"),
    (["show"], USAGE, "SESSION is missing"),
    (["revoke", "--client", "10.0.0.0/8", "--all"], USAGE, "--id or --all alone"),
    (["revoke", "--client-certificate", "abc"], USAGE, "'abc' is no SHA-256 of a certificate: 64 hexadecimal digits"),
    (["revoke", "--older-than", "soon"], USAGE, "--older-than"),
])
def test_wrong_questions_about_sessions_are_refused(tool, arguments, code, says):
    run = tool("sessions", *arguments)
    assert run.code == code and says in run.err


def lenient(cluster):
    context = cluster.context()
    context.check_hostname = False
    return context


@pytest.mark.parametrize("command", [["keys", "rotate"], ["reload"]])
def test_every_node_says_that_it_did(tool, tool_json, cluster, command):
    run = tool(*command)
    assert run.code == DONE and [row["NODE"] for row in run.table("NODE")] == cluster.agents
    assert sorted(tool_json(*command)["done"]) == cluster.agents


def test_the_log_level_is_changed_of_one_process_or_all(tool, tool_json, cluster):
    run = tool("log-level", "debug", "--node", "a1")
    assert run.code == DONE and run.table("NODE") == [{"NODE": "a1", "LEVEL": "debug", "CONFIGURED": "info"}]
    assert tool("log-level", "configured").code == DONE
    assert {row["level"] for row in tool_json("log-level")["levels"].values()} == {"info"}
    assert tool_json("log-level")["levels"].keys() == {"r1", *cluster.agents}
    assert tool("log-level", "loud").code == USAGE
    assert tool("log-level", "--node", "a1").code == USAGE


def test_certificates_of_every_agent_are_listed_with_their_ends(tool, tool_json, cluster):
    rows = tool("certificates").table("DAYS")
    assert {(row["AGENT"], row["CERTIFICATE"]) for row in rows} == {(a, c) for a in ("a1", "a2") for c in ("ecdsa", "rsa")}
    row = next(row for row in rows if row["CERTIFICATE"] == "rsa")
    assert row["FILE"] == str(cluster.dir / "rsa.pem") and row["NAMES"].startswith("localhost") and row["ISSUER"].startswith("CN=")
    end = time.strptime(row["ENDS"], "%Y-%m-%dT%H:%M:%SZ")
    assert int(row["DAYS"]) == (calendar.timegm(end) - time.time()) // 86400 > 0
    answer = tool_json("certificates")
    assert len(answer["certificates"]) == 4 and answer["failed"] == {} and "localhost" in answer["certificates"][0]["hosts"]


def test_counters_are_side_by_side_and_chosen_by_pattern(tool, tool_json, cluster):
    cluster.connect().close()
    rows = {row["COUNTER"]: row for row in tool("counters").table("COUNTER")}
    assert int(rows["connections_accepted"]["ragent"]) > 0 and rows["connections_accepted"]["a1"] == "-"
    assert all(re.fullmatch("handshakes_.*", row["COUNTER"]) for row in tool("counters", "handshakes_*").table("COUNTER"))
    only = tool_json("counters", "sessions", "--agent", "a1")
    assert list(only) == ["a1"] and "sessions_stored" in only["a1"]
    assert tool("counters", "--agent", "a9").code == REFUSED
    none = tool("counters", "frobs")
    assert none.code == REFUSED and "no counter's name fits frobs" in none.err


def test_a_connection_shows_every_owner_it_had(tool, tool_json, cluster):
    with cluster.connect(where=cluster.sl) as sock:
        first = wait_until(lambda: (c := cluster.connection_of(sock)) and c["owner"] and c, patience(5))
        other = next(name for name in cluster.agents if name != first["owner"])
        cluster.move(first["id"], other)
        cluster.rest(first["id"])
        sock.sendall(b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sock.recv(4096)
        history = tool_json("connections", "show", first["id"])["history"]
        assert [row["cause"] for row in history] == ["handshake", "move", "rest", "wake"]
        assert [row["agent"] for row in history][:3] == [first["owner"], other, None]
        assert [row["epoch"] for row in history] == [1, 2, 2, 3]
        assert 0 < history[1]["pause_us"] < patience(1) * 1e6
        assert [row["CAUSE"] for row in tool("connections", "show", first["id"][:8]).table("AGENT")] == [
            "handshake", "move", "rest", "wake"]


# what it does to agents

def test_an_agent_is_drained_and_comes_back(tool, tool_json, cluster):
    wait_until(lambda: not cluster.connections(), patience(10))  # of the tests before
    with cluster.connect(where=cluster.sl) as sock:
        owner = wait_until(lambda: (c := cluster.connection_of(sock)) and c["owner"], patience(5))
        run = tool("drain", owner, "--wait")
        assert run.code == DONE, run
        assert f"{owner} is empty after" in run.out and run.facts["ended"] == "0"
        assert int(run.facts["moved"]) + int(run.facts["rested"]) == int(run.facts["connections"]) == 1
        assert tool_json("agent", owner)["drain"]["state"] == "drained"
        assert cluster.connection_of(sock)["owner"] != owner
    assert tool("undrain", owner).code == DONE
    assert tool_json("agent", owner)["drain"]["state"] == "none"
    assert tool("drain", "a9").code == REFUSED


def test_a_weight_is_changed(tool, tool_json):
    assert tool("weight", "a1", "3").out == "a1 has the weight 3\n"
    assert tool_json("agent", "a1")["weight"] == 3
    for wrong in ("0", "-1", "nan", "heavy"):
        refused = tool("weight", "a1", wrong)
        assert refused.code == USAGE and f"'{wrong}' is no weight: a number from 0.01 to 1000" in refused.err
    assert tool_json("weight", "a1", "1")["weight"] == 1


# top

def test_top_shows_rates_until_q(cluster):
    child, terminal = pty.fork()
    if child == 0:
        os.execve(binary("csslctl/csslctl"), ["csslctl", "--dir", str(cluster.dir), "top"], environment(TERM="xterm"))
    page = b""

    def shown(what):
        nonlocal page
        page += os.read(terminal, 65536)
        return what in page

    wait_until(lambda: shown(b"AGENT"), patience(10))
    first = page.count(b"AGENT")
    wait_until(lambda: shown(b"AGENT") and page.count(b"AGENT") > first, patience(10))
    os.write(terminal, b"q")
    with pytest.raises(OSError):
        while page := page + os.read(terminal, 65536):
            pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == DONE
    assert b"a1" in page and b"a2" in page and b"RESUMED/s" in page
    assert page.index(b"\033[?1049h") < page.index(b"\033[?1049l")
    shown = re.sub(r"\033\[[?0-9;]*[A-Za-z]", "", page.decode())
    assert max(map(len, shown.splitlines())) <= 80, "a terminal without a size has 80 columns"


def test_top_needs_a_terminal(tool):
    run = tool("top")
    assert run.code == USAGE and "csslctl counters" in run.err


# without a cluster

def test_a_cluster_file_is_checked(cluster, tmp_path):
    good = csslctl("config", "check", cluster.dir / "cluster.yaml")
    assert good.code == DONE and "agents 2" in good.out
    assert csslctl_json("config", "check", cluster.dir / "cluster.yaml") == {"good": True, "faults": [], "unread": []}
    bad = tmp_path / "bad.yaml"
    bad.write_text((cluster.dir / "cluster.yaml").read_text().replace("mode: sf", "mode: fs") + "frob: 1\n")
    run = csslctl("config", "check", bad)
    assert run.code == REFUSED and f"{bad}:" in run.err and "'frob'" in run.err and run.out == ""
    faults = csslctl("--json", "config", "check", bad)
    assert faults.code == REFUSED and len(json.loads(faults.out)["faults"]) >= 2


def test_a_cluster_file_is_checked_where_nothing_of_it_is(cluster, tmp_path):
    """As on RAgent's host, where there are no certificates and no keys of agents."""
    alone = tmp_path / "cluster.yaml"
    alone.write_text((cluster.dir / "cluster.yaml").read_text())
    run = csslctl("config", "check", alone)
    assert run.code == DONE and "not judged" in run.out and "agents.key" in run.out and "No such file" in run.out
    answer = csslctl_json("config", "check", alone)
    assert answer["good"] and not answer["faults"] and len(answer["unread"]) > 5
    alone.with_name("link.key").write_text("k1 nonsense\n")
    run = csslctl("config", "check", alone)
    assert run.code == REFUSED and "link.key" in run.err


def test_stored_objects_are_described_without_their_keys():
    run = csslctl("inspect", ROOT / "tests/fuzz/seeds/sess_obj/1301_parts1")  # a live part
    assert run.code == DONE, run
    assert run.facts["importable"] == "yes" and run.facts["cipher suite"] == "TLS_AES_128_GCM_SHA256"
    assert run.facts["secret"].endswith("bytes, not shown")
    garbage = csslctl("inspect", ROOT / "README.md")
    assert garbage.code == REFUSED and "neither a SESS_OBJ nor a sealed copy" in garbage.out
    assert csslctl("inspect", ROOT / "nothing").code == REFUSED


def test_a_sealed_copy_says_which_key_it_needs(cluster, tmp_path):
    sealed = tmp_path / "sealed"
    sealed.write_bytes(b"\x01" + b"\x00\x03" + b"\x05other" + bytes(24 + 200 + 16))
    run = csslctl("--json", "inspect", sealed)
    assert run.code == REFUSED
    found = json.loads(run.out)
    assert found["kind"] == "sealed copy" and found["importable"] is None and "--agents-key" in found["reason"]
    assert found["seal"]["epoch"] == 3 and found["seal"]["key_id"] == "other"
    other = json.loads(csslctl("--json", "inspect", sealed, "--config", cluster.dir / "cluster.yaml").out)
    assert other["importable"] is False and "no key of that id" in other["reason"]
    assert csslctl("inspect", sealed, "--connection", "xyz").code == USAGE


def test_a_token_is_made_once_and_only_its_hash_is_told(tmp_path):
    secret = tmp_path / "alice.token"
    made = csslctl("token", "make", "alice", secret, "--role", "operate")
    assert made.code == DONE and re.fullmatch(r"alice operate [0-9a-f]{64}\n", made.out)
    token = secret.read_text().strip()
    assert re.fullmatch(r"cssl_[A-Za-z0-9_-]{43}", token) and secret.stat().st_mode & 0o777 == 0o600
    assert made.out.split()[2] == hashlib.blake2b(token.encode(), digest_size=32).hexdigest()
    again = csslctl("token", "make", "alice", secret)
    assert again.code == REFUSED and "never overwritten" in again.err and secret.read_text().strip() == token
    assert csslctl_json("token", "make", "bob", tmp_path / "bob.token")["role"] == "read"
    assert csslctl("token", "make", "bob", tmp_path / "x", "--role", "root").code == USAGE
    assert csslctl("token", "make", "two words", tmp_path / "x").code == USAGE


# help, manual, completion

def test_help_is_printed_where_it_belongs():
    asked, unasked = csslctl("--help"), csslctl()
    assert asked.code == DONE and asked.err == "" and asked.out == csslctl("help").out
    assert unasked.code == USAGE and unasked.out == "" and unasked.err == asked.out
    assert csslctl("help", "sessions", "revoke").out.startswith("usage: csslctl sessions revoke ")
    assert csslctl("drain", "--help").out == csslctl("help", "drain").out
    assert csslctl("help", "frob").code == USAGE
    assert re.fullmatch(r"csslctl \d+\.\d+\.\d+\n", csslctl("--version").out)


def test_the_manual_is_what_man_can_read():
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    page = subprocess.run(["groff", "-ww", "-man", "-Tascii", "-P-cbou"], input=csslctl("help", "--man").out, text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert page.stderr == ""
    assert "EXIT STATUS" in page.stdout and "sessions revoke" in page.stdout


def complete(line, folder):
    """The words that bash offers at the end of the line."""
    script = f"""
        PATH={os.path.dirname(binary("csslctl/csslctl"))}:$PATH
        source <(csslctl completion bash)
        COMP_LINE={json.dumps(line)}; read -ra COMP_WORDS <<<"$COMP_LINE"
        [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _csslctl
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], env=environment(CSSL_DIR=str(folder)), text=True, check=True,
                          stdout=subprocess.PIPE)
    return done.stdout.split()


@pytest.mark.parametrize("line,offers", [
    ("csslctl sta", ["status", "starttls"]),
    ("csslctl stat", ["status"]),
    ("csslctl sessions ", ["list", "show", "count", "revoke"]),
    ("csslctl --json config ", ["check"]),
    ("csslctl drain ", ["a1", "a2"]),
    ("csslctl move 4f2a a", ["a1", "a2"]),
    ("csslctl drain a1 --t", ["--token-file", "--timeout"]),
    ("csslctl connections --agent ", ["a1", "a2"]),
    ("csslctl status ", []),
    ("csslctl help wei", ["weight"]),
    ("csslctl frob ", []),
])
def test_bash_completes(cluster, line, offers):
    offered = complete(line, cluster.dir)
    assert offered == offers


def test_the_completion_is_a_clean_script(tmp_path):
    if not shutil.which("shellcheck"):
        pytest.skip("needs shellcheck")
    script = tmp_path / "csslctl.bash"
    script.write_text(csslctl("completion", "bash").out)
    subprocess.run(["shellcheck", "-s", "bash", script], check=True)


def test_an_answer_comes_at_once(tool):
    begun = time.monotonic()
    assert tool("status").code == DONE
    assert time.monotonic() - begun < patience(1)
