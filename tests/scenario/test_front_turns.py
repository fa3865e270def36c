"""Two commands of the front door at once: none builds over the other, and a user that both make is made once."""

import fcntl
import os
import shlex
import subprocess
import threading

import pytest

from front.cluster import commands, keys
from front.cluster.plan import Failure
from tests.lib.build import ROOT, patience
from tests.lib.waiting import wait_until

PARTS = "root={root}; command_line={name}; for part in say build; do . \"$root/front/$part.sh\"; done; "


def script(name, text, **more):
    return subprocess.Popen(["bash", "-euo", "pipefail", "-c", PARTS.format(root=shlex.quote(str(ROOT)), name=name) + text], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def end(process, said=""):
    out, errors = process.communicate(said, timeout=patience(20))
    return process.returncode, out, errors


def test_the_second_waits_for_the_end_of_the_first_and_says_for_what(tmp_path):
    with script("first", f"build_turn {tmp_path}/b; echo has; read -r; echo done >>{tmp_path}/order") as first:
        assert first.stdout.readline() == "has\n"
        with script("second", f"build_turn {tmp_path}/b; echo done too >>{tmp_path}/order") as second:
            assert "waiting for `first` (process " in second.stderr.readline()
            assert end(first, "\n")[0] == 0 and end(second)[0] == 0
    assert (tmp_path / "order").read_text() == "done\ndone too\n"


def test_other_folders_do_not_wait(tmp_path):
    with script("first", f"build_turn {tmp_path}/b; echo has; read -r") as first:
        assert first.stdout.readline() == "has\n"
        assert end(script("second", f"build_turn {tmp_path}/c")) == (0, "", "")
        end(first, "\n")


def test_what_a_command_leaves_running_holds_no_turn(tmp_path):
    with script("first", f"build_turn {tmp_path}/b; without_turns bash -c 'sleep 600 <&- >&- 2>&- & echo $!'") as first:
        left = int(end(first)[1])
    try:
        assert end(script("second", f"build_turn {tmp_path}/b")) == (0, "", "")
    finally:
        os.kill(left, 9)


def test_a_build_that_fails_is_a_failure_and_its_turn_is_over(tmp_path):
    failing = f"root={tmp_path}; packages_need() {{ :; }}; build_configure() {{ :; }}; build_run() {{ return 7; }}; status=0; "
    text = failing + "build_release || status=$?; echo $status ${#build_turns[@]}"
    assert end(script("build", text))[:2] == (0, "7 0\n")


def test_a_turn_ends_before_its_command(tmp_path):
    with script("first", f"build_turn {tmp_path}/b; build_turn_over {tmp_path}/b; echo had; read -r") as first:
        assert first.stdout.readline() == "had\n"
        assert end(script("second", f"build_turn {tmp_path}/b")) == (0, "", "")
        end(first, "\n")


@pytest.mark.parametrize("command,words,named", [("agent", ["a1"], "a1"), ("mail", [], "smtpproxy")])
def test_of_two_commands_in_one_cluster_the_second_waits_and_then_looks(tmp_path, command, words, named):
    """Else both would find that a daemon does not run, and start it."""
    said, name = [], words[0] if words else "mail"
    (tmp_path / "plan").write_text("build /nonexistent\nagent a1\nmail_relay 1\n")
    with open(tmp_path / "turn", "w", encoding="utf-8") as turn, subprocess.Popen(["sleep", "600"], env={"CSSL_CLUSTER": str(tmp_path)}) as daemon:
        turn.write("`first` (process 1)\n")
        turn.flush()
        fcntl.flock(turn, fcntl.LOCK_EX)
        second = threading.Thread(target=commands.run, args=(command, ["--dir", str(tmp_path), *words], dict(os.environ), said.append), daemon=True)
        second.start()
        wait_until(lambda: said, patience(10), "the second says that it waits")
        (tmp_path / f"{name}.pid").write_text(f"{daemon.pid}\n")  # the first has started it
        turn.close()
        second.join(patience(10))
        daemon.kill()
    assert said == [f"cssl: waiting for `first` (process 1), which uses {tmp_path}\n", f"cssl: {named} is running\n"]


def fail_to_add(monkeypatch, *made):
    """In place of `useradd`. `made`: users that another command makes meanwhile."""
    users = []

    def useradd(*_):
        users.extend(made)
        raise Failure("useradd: cannot open /etc/passwd")

    monkeypatch.setattr(keys, "ragent_user", lambda: users)
    monkeypatch.setattr(keys, "output_of", useradd)
    monkeypatch.setattr(keys, "wait_for", lambda _, condition: condition())


@pytest.mark.root
def test_a_user_that_another_command_makes_at_this_moment_is_no_failure(monkeypatch):
    fail_to_add(monkeypatch, "ragent")
    keys.make_ragent_user(None)


@pytest.mark.root
def test_a_user_that_cannot_be_made_is_a_failure_with_its_reason(monkeypatch):
    fail_to_add(monkeypatch)
    with pytest.raises(Failure, match="cannot open /etc/passwd"):
        keys.make_ragent_user(None)
