"""./cssl: the commands that people and scripts use first."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from bench.experiments.ports import free_ports
from front.cluster import commands, daemons
from front.cluster.plan import Cluster as FrontCluster
from tests.lib.backend import Backend
from tests.lib.build import BUILD, ROOT, patience
from tests.lib.cluster import CSSL
from tests.lib.pattern import first_difference
from tests.lib.reachable import reachable_copy
from tests.lib.waiting import wait_until

NOBODY = 65534


def cssl(*arguments, **env):
    return subprocess.run([CSSL, *arguments], env={**os.environ, "CSSL_BUILD_DIR": str(BUILD), **env}, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def folder():
    """One that RAgent's own user can reach, unlike pytest's."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="cssl-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_help_names_every_command():
    out = cssl("help").stdout
    for command in ("demo", "test", "up", "down", "agent", "rolling", "build", "help"):
        assert re.search(rf"^  {command} ", out, re.M)


@pytest.mark.parametrize("arguments", [["bogus"], ["up"], ["up", "--dir"], ["up", "--dir", "/tmp/x", "--agents", "0"],
                                       ["up", "--dir", "/tmp/x", "--link", "open"], ["up", "--bogus"], ["down", "--bogus"],
                                       ["agent", "--dir", "/nonexistent", "a1"],
                                       ["rolling"], ["rolling", "--dir", "/nonexistent"], ["rolling", "--bogus"],
                                       ["test", "--bogus"], ["test", "--full", "no_such_file"], ["test", "--distributions", "sarge"]])
def test_wrong_use_is_refused_with_status_2(arguments):
    done = cssl(*arguments)
    assert done.returncode == 2
    assert done.stderr


def test_a_bad_value_is_named_by_line_and_key_and_starts_nothing(folder):
    done = cssl("up", "--dir", str(folder), "--handshake", "by-chance")
    assert done.returncode == 1
    assert re.search(r"cluster\.yaml:\d+: key 'handshake': found 'by-chance', expected", done.stderr), done.stderr
    assert not list(folder.glob("*.pid"))


def test_certificates_are_made_once_and_again_when_their_time_is_over(folder):
    def made():
        assert cssl("up", "--dir", str(folder), "--prepare").returncode == 0
        return (folder / "client.pem").read_bytes()

    first, until = made(), folder / "certificates.until"
    assert made() == first
    assert 300 * 86400 < int(until.read_text()) - time.time() < (397 - 60) * 86400  # so they are good for 60 days more
    until.write_text("1\n")
    assert made() != first


def test_down_without_a_cluster_is_an_error(tmp_path):
    assert cssl("down", "--dir", str(tmp_path)).returncode == 1


def given_ports(folder, count, *user, root=ROOT):
    """Ports of front/cluster/ports.py, whose note is in `folder`."""
    done = subprocess.run([*user, root / "front" / "cluster" / "ports.py", str(count)], env={"TMPDIR": str(folder)}, text=True, check=True,
                          stdout=subprocess.PIPE)
    return [int(port) for port in done.stdout.split()]


@pytest.mark.root
def test_two_users_do_not_get_the_same_port(folder):
    """As long as there are others, whichever user was the first."""
    folder.chmod(0o1777)
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    root = reachable_copy(folder / "clone")
    ports = given_ports(folder, 5000) + given_ports(folder, 5000, *nobody, root=root)
    assert len(set(ports)) == 10000
    (folder / "cssl-ports").unlink()
    ports = given_ports(folder, 5000, *nobody, root=root) + given_ports(folder, 5000)
    assert len(set(ports)) == 10000


def test_a_free_port_is_in_no_table_of_the_kernel(folder):
    """Neither one that is used, be it for UDP on another address, nor one that an outgoing connection may get."""
    first, last = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split())
    one, two, three = free_ports(3)
    (folder / "cssl-ports").write_text(f"{one - 1}\n", encoding="ascii")
    with socket.create_server(("127.0.0.1", one)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.2", two))
        again = given_ports(folder, 10000)
    assert one not in again and two not in again and three in again
    assert not any(first <= port <= last for port in again)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("No space left on device")])
def test_a_start_that_does_not_come_to_its_end_leaves_no_process(monkeypatch, folder, error):
    def fail(_):
        raise error

    said, env = [], {**os.environ, "CSSL_BUILD_DIR": str(BUILD), "CSSL_READY_SECONDS": str(patience(15)), "CSSL_STOP_SECONDS": str(patience(15))}
    monkeypatch.setattr(commands, "write_description", fail)
    assert commands.run("up", ["--dir", str(folder), "--agents", "1"], env, said.append) == 1
    assert said[-1] == "cssl: the cluster did not start\n"
    assert {path.stem for path in folder.glob("*.exit")} == {"r1", "a1", "backend"} and not list(folder.glob("*.pid"))


@pytest.mark.parametrize("other,runs", [("", True), ("2", False)])
def test_a_process_of_another_cluster_that_has_the_number_is_no_daemon_of_this_one(folder, other, runs):
    with subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], "CSSL_CLUSTER": f"{folder}{other}"}) as process:
        (folder / "a1.pid").write_text(f"{process.pid}\n")
        assert daemons.running(FrontCluster(str(folder), {}, None), "a1") == process.pid * runs
        process.kill()


def test_up_describes_the_cluster(start_cluster):
    cluster = start_cluster("--agents", "2")
    description = cluster.description()
    assert set(description) == {"listeners", "control", "ragent", "agents", "ca"}
    assert set(description["listeners"]) == {"sf", "sl"}
    for listener in description["listeners"].values():
        socket.create_connection((listener["host"], listener["port"]), patience(5)).close()
    assert [a["name"] for a in description["agents"]] == ["a1", "a2"]
    for agent in description["agents"]:
        assert set(agent) == {"name", "pid", "tls"}
        os.kill(agent["pid"], 0)
        socket.create_connection((agent["tls"]["host"], agent["tls"]["port"]), patience(5)).close()
    os.kill(description["ragent"]["pid"], 0)
    assert open(description["ca"], encoding="ascii").read().startswith("-----BEGIN CERTIFICATE-----")


def test_the_description_follows_ragent(start_cluster):
    """Its keeper starts the next one, and nobody runs a command of the front. A disk that was full is no reason to give up."""
    cluster = start_cluster("--agents", "1")
    full = cluster.dir / "cluster.json.new"
    for turn in range(3):
        before = cluster.description()
        if turn == 2:
            full.mkdir()  # in place of the file
            cluster.kill_ragent()
            full.rmdir()
        else:
            os.kill(before["ragent"]["pid"], signal.SIGKILL)
        wait_until(lambda: cluster.description()["ragent"]["pid"] not in before["ragent"].values(), patience(10), "the next one")
        os.kill(cluster.description()["ragent"]["pid"], 0)
        assert cluster.description() == {**before, "ragent": {"pid": cluster.pid("r1"), "keeper": cluster.keeper_pid()}}
    cluster.replace()
    os.kill(cluster.description()["ragent"]["pid"], signal.SIGKILL)
    wait_until(lambda: cluster.description()["ragent"] == {"pid": cluster.pid("r1"), "keeper": cluster.keeper_pid()}, patience(10), "the next one")


def test_keys_are_for_their_owner_only(start_cluster):
    cluster = start_cluster("--agents", "1")
    for name in ("link.key", "agents.key", "ecdsa.key", "rsa.key", "ecdsa-ca.key", "rsa-ca.key"):
        assert (cluster.dir / name).stat().st_mode & 0o077 == 0, name
    assert (cluster.dir / "ragent" / "control.sock").stat().st_mode & 0o077 == 0


def test_a_second_up_in_the_same_folder_is_refused(start_cluster):
    cluster = start_cluster("--agents", "1")
    done = cssl("up", "--dir", str(cluster.dir))
    assert done.returncode == 1 and re.search(rf"a cluster runs in {cluster.dir} \(\S*/cssl down --dir {cluster.dir}\)", done.stderr), done.stderr
    assert cluster.status()


def test_what_an_up_that_was_killed_has_started_is_not_started_again(folder):
    """RAgent comes last."""
    (folder / "a1.pid").write_text("1\n")
    said = []
    assert commands.run("up", ["--dir", str(folder)], {**os.environ, "CSSL_BUILD_DIR": str(BUILD)}, said.append) == 1
    assert "a cluster runs in" in said[0] and not (folder / "plan").exists()


def test_a_killed_agent_comes_back_with_a_new_pid(start_cluster):
    cluster = start_cluster("--agents", "2")
    before = cluster.description()
    cluster.kill("a1")
    done = cssl("agent", "--dir", str(cluster.dir), "a1")
    after = cluster.description()
    assert done.returncode == 0 and done.stderr == f"cssl: a1 is up again, process {cluster.pid('a1')}\n"
    assert after["agents"][0]["pid"] != before["agents"][0]["pid"]
    assert after["agents"][0]["pid"] == cluster.pid("a1")
    assert after["agents"][1] == before["agents"][1]
    assert {a["name"]: a["state"] for a in cluster.status()["agents"]} == {"a1": "ready", "a2": "ready"}


def test_an_agent_that_runs_is_not_started_twice(start_cluster):
    cluster = start_cluster("--agents", "1")
    done = cssl("agent", "--dir", str(cluster.dir), "a1")
    assert done.returncode == 1 and "is running" in done.stderr


def test_down_reports_what_crashed(start_cluster):
    cluster = start_cluster("--agents", "2", clean_exit=False)
    cluster.kill("a2", number=signal.SIGABRT)
    done = cssl("down", "--dir", str(cluster.dir))
    assert done.returncode == 1
    assert re.search(r"a2 ended with exit status 134", done.stderr), done.stderr


def test_down_reports_what_crashed_before_a_restart(start_cluster):
    cluster = start_cluster("--agents", "2", clean_exit=False)
    cluster.kill("a2", number=signal.SIGABRT)
    cluster.restart("a2")
    done = cssl("down", "--dir", str(cluster.dir))
    assert done.returncode == 1
    assert re.search(r"a2 ended with exit status 134", done.stderr), done.stderr


def test_a_kill_by_hand_is_no_fault(start_cluster):
    cluster = start_cluster("--agents", "2")
    cluster.kill("a2")
    done = cssl("down", "--dir", str(cluster.dir))
    assert done.returncode == 0, done.stderr
    assert "a2 was killed (SIGKILL) before" in done.stderr
    assert done.stderr.endswith(f"cssl: the cluster in {cluster.dir} is down\n")


def test_ragent_that_has_lost_its_keeper_is_found(start_cluster):
    """By `reload`, which gives it a keeper again, and by `down`. Only the keeper's process id is in a file."""
    cluster = start_cluster("--agents", "1")

    def kill_keeper():
        proper = cluster.pid("r1")
        os.kill(cluster.keeper_pid(), signal.SIGKILL)
        cluster.wait_gone("r1")
        os.kill(proper, 0)
        return proper

    kill_keeper()
    plan = (cluster.dir / "plan").read_text()
    (cluster.dir / "plan").write_text(re.sub("^build .*", "build /nonexistent", plan))
    done = cssl("reload", "--dir", str(cluster.dir))
    assert done.returncode == 1 and "the old process goes on serving" in done.stderr, done.stderr
    assert (cluster.dir / "r1.exit").read_text() == "137\n"
    (cluster.dir / "plan").write_text(plan)
    cluster.replace()
    proper = kill_keeper()
    done = cssl("down", "--dir", str(cluster.dir))
    assert done.returncode == 0 and done.stderr.count("r1 was killed (SIGKILL) before") == 1, done.stderr
    assert not daemons.process_runs(proper)


def test_a_process_that_does_not_stop_is_killed_and_told(start_cluster):
    cluster = start_cluster("--agents", "2", clean_exit=False)
    cluster.send_signal("a1", signal.SIGSTOP)
    done = cssl("down", "--dir", str(cluster.dir), CSSL_STOP_SECONDS="1")
    assert done.returncode == 1
    assert "a1 did not stop within 1 s" in done.stderr


def test_down_does_not_wait_for_a_supervisor_that_was_killed(start_cluster):
    """`ps` tells which one it is."""
    cluster = start_cluster("--agents", "1", clean_exit=False)
    supervisor = subprocess.run(["ps", "-o", "ppid=", str(cluster.pid("a1"))], text=True, check=True, stdout=subprocess.PIPE).stdout.strip()
    told = subprocess.run(["ps", "-ww", "-o", "args=", supervisor], text=True, check=True, stdout=subprocess.PIPE).stdout
    assert told.endswith(f"supervise {cluster.dir}\n")
    os.kill(int(supervisor), signal.SIGKILL)
    done = cssl("down", "--dir", str(cluster.dir))
    assert done.returncode == 1
    assert "a1 ended without an exit status" in done.stderr and "did not stop" not in done.stderr, done.stderr


def test_down_leaves_no_process(start_cluster):
    cluster = start_cluster("--agents", "2")
    pids = [cluster.pid(name) for name in ("r1", "a1", "a2", "backend")]
    cluster.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_cluster_can_be_started_again_in_its_folder(start_cluster):
    cluster = start_cluster("--agents", "1")
    ca = open(cluster.ca, encoding="ascii").read()
    cluster.stop()
    assert cssl("up", "--dir", str(cluster.dir), "--agents", "1").returncode == 0
    assert open(cluster.ca, encoding="ascii").read() == ca
    assert cssl("down", "--dir", str(cluster.dir)).returncode == 0


@pytest.mark.root
def test_ragent_runs_under_a_user_that_cannot_read_the_agents_key(start_cluster):
    cluster = start_cluster("--agents", "1")
    status = open(f"/proc/{cluster.pid('r1')}/status", encoding="ascii").read()
    uids = set(re.search(r"^Uid:\s+(.*)$", status, re.M).group(1).split())
    gids = set(re.search(r"^Gid:\s+(.*)$", status, re.M).group(1).split())
    groups = set(re.search(r"^Groups:(.*)$", status, re.M).group(1).split())
    assert len(uids) == 1 and "0" not in uids | gids | groups
    assert re.search(r"^CapEff:\s+0+$", status, re.M) and re.search(r"^CapPrm:\s+0+$", status, re.M)
    key = str(cluster.dir / "agents.key")
    as_ragent = ["setpriv", f"--reuid={uids.pop()}", f"--regid={gids.pop()}", "--clear-groups"]
    assert subprocess.run([*as_ragent, "test", "-r", str(cluster.dir / "ca.pem")], check=False).returncode == 0
    assert subprocess.run([*as_ragent, "test", "-r", key], check=False).returncode == 1
    assert not [fd for fd in os.listdir(f"/proc/{cluster.pid('r1')}/fd")
                if os.readlink(f"/proc/{cluster.pid('r1')}/fd/{fd}") == key]


def test_every_program_is_built_before_a_cluster_starts():
    """Not only those that the cluster runs: csslctl, too, as README.md goes on with that."""
    built = re.search(r"^programs=\((.*)\)$", (ROOT / "front/build.sh").read_text(), re.M).group(1).split()
    targets = json.loads((BUILD / "meson-info/intro-targets.json").read_text())
    programs = {os.path.relpath(target["filename"][0], BUILD) for target in targets if target["type"] == "executable"}
    assert set(built) == {program for program in programs if not program.startswith("tests/")}


def assert_mail_is_shown(output):
    assert re.search(r"the mail server said +250 2\.0\.0 Ok$", output, re.M), output
    assert re.search(r"in clear, before STARTTLS +a[123]$", output, re.M), output
    assert re.search(r"the mail carried by +a[123]$", output, re.M), output
    first = re.search(r"TLS 1\.3, handshake by +(a[123])$", output, re.M)[1]
    assert re.search(r"its session resumed by +(a[123]), for the second mail$", output, re.M)[1] != first
    killed, successor = re.search(r"(a[123]) killed, succeeded by +(a[123]), which takes the third mail", output, re.M).groups()
    assert killed != successor


# A command that shows how far it is, and ends when the test has seen that.
SLOW_COMMAND = """
. front/say.sh
progress_s=1
slow() {
	echo noise
	echo "$1" >&9
	until [[ -e $2 ]]; do sleep 0.05; done
	return 3
}
with_progress "packages" "$@"
"""


@pytest.mark.parametrize("line,said", [("3 of 9", "3 of 9"), ("dlstatus:4:12.3000:Retrieving file 4 of 90", "12 %, Retrieving file 4 of 90"),
                                       ("pmstatus:libc6:amd64:40.0000:Unpacking libc6", "40 %, Unpacking libc6")])
def test_long_work_says_now_and_then_how_far_it_is(tmp_path, line, said):
    """And keeps the output of the command for the case that it fails; its status is passed on."""
    with subprocess.Popen(["bash", "-c", SLOW_COMMAND, "bash", "slow", line, str(tmp_path / "seen")], cwd=ROOT, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as done:
        assert re.fullmatch(rf"cssl: packages: {re.escape(said)}, \d+ s\n", done.stdout.readline())
        (tmp_path / "seen").touch()
        rest = done.stdout.read()
    assert done.returncode == 3
    assert rest.endswith("noise\n")


def test_quick_work_says_nothing():
    done = subprocess.run(["bash", "-c", ". front/say.sh\nwith_progress packages echo noise"], cwd=ROOT, text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout == done.stderr == ""


def last_line(output, name):
    """The command of one of the demo's last lines, as a user copies it."""
    return re.search(rf"^ +{name} +(\S.*?)(?: +\(README\.md has a tour\))?$", output, re.M)[1]


def run_as_printed(command):
    """In another terminal."""
    env = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    return subprocess.run(["bash", "-c", command], cwd="/", env=env, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.limit(300)
def test_the_demo_works_and_works_again(folder):
    """Then its last lines, word for word: a request, a look, and the end. In a folder whose name a shell has to be told with care."""
    place = folder / "it's [odd]"
    place.mkdir()
    stop = shlex.join([CSSL, "down", "--dir", f"{place}/cssl-demo-{os.geteuid()}"])
    try:
        for _ in range(2):
            done = cssl("demo", TMPDIR=str(place))
            assert done.returncode == 0, done.stderr
            assert re.search(r"HTTP/1\.1 200 OK, 100000 bytes", done.stdout)
            assert re.search(r"handshake made by +a[123]$", done.stdout, re.M)
            carrier = re.search(r"bulk carried by +(a[123])$", done.stdout, re.M).group(1)
            assert re.search(rf"backend was asked by +{carrier}$", done.stdout, re.M)
            assert_mail_is_shown(done.stdout)
        tried = run_as_printed(last_line(done.stdout, "try"))
        assert tried.returncode == 0 and tried.stdout.startswith("HTTP/1.1 200 OK"), (tried.stdout, tried.stderr)
        seen = run_as_printed(last_line(done.stdout, "see"))
        assert seen.returncode == 0 and {"a1", "a2", "a3"} <= set(seen.stdout.split()), (seen.stdout, seen.stderr)
        stop = last_line(done.stdout, "stop")
    finally:
        down = run_as_printed(stop)
    assert down.returncode == 0, down.stderr
    assert not list(place.glob("cssl-demo-*/*.pid"))


def test_options_reach_the_daemons(start_cluster):
    cluster = start_cluster("--agents", "2", "--workers", "2", "--handshake", "least-connections", "--resumption", "local",
                            "--affinity-bound", "1.5", "--link", "sealed", "--tls12-tickets", "--no-migration")
    status = cluster.status()
    assert status["workers"] == 2
    assert [a["links"] for a in status["agents"]] == [4, 4]
    for listener in (one for one in status["listeners"] if one["name"] != "control"):
        assert (listener["handshake"], listener["resumption"]) == ("least-connections", "local")
        assert listener["migration"] == "off"
    config = (cluster.dir / "cluster.yaml").read_text()
    assert config.count("affinity_bound: 1.5") == config.count("tls12_tickets: on") == 2
    assert config.count("link_protection: sealed") == 2


def test_ragent_without_a_keeper_is_one_process(start_cluster):
    """So is the one that takes over from it."""
    cluster = start_cluster("--agents", "1", "--no-keeper")
    first = cluster.pid("r1")
    for replace in (lambda: None, cluster.replace):
        replace()
        assert cluster.pid("r1") == cluster.keeper_pid() == cluster.description()["ragent"]["pid"] == cluster.description()["ragent"]["keeper"]
        with contextlib.closing(cluster.http()) as web:
            web.request("GET", "/1k")
            assert len(web.getresponse().read()) == 1024
    assert cluster.pid("r1") != first


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "unix:backend.sock"])
def test_a_backend_of_your_own_takes_the_place_of_the_embedded_one(start_cluster, folder, listen):
    listen = listen.replace("unix:", f"unix:{folder}/")
    with Backend("--agent", "me=127.0.0.1", listen=(listen,)) as backend:
        cluster = start_cluster("--agents", "1", "--backend", backend.addresses[0])
        assert not (cluster.dir / "backend.pid").exists()
        web = cluster.http()
        web.request("GET", "/5k")
        assert first_difference(web.getresponse().read(), 5120) is None
        web.close()


@pytest.mark.root
def test_an_ordinary_user_gets_a_cluster_and_a_warning(folder):
    """There RAgent cannot be kept from agents.key, and it logs that."""
    clone = reachable_copy(folder / "clone")
    os.chown(folder, NOBODY, NOBODY)
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    env = {"PATH": os.environ["PATH"], "CSSL_BUILD_DIR": str(clone / "build"), "HOME": "/nonexistent"}

    def run(*arguments):
        return subprocess.run([*as_nobody, str(clone / "cssl"), *arguments, "--dir", str(folder)], env=env, cwd="/", text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    up = run("up", "--agents", "1")
    try:
        assert up.returncode == 0, up.stdout
        assert "agents key readable" in (folder / "r1.log").read_text()
    finally:
        down = run("down")
    assert down.returncode == 0, down.stdout
