"""Two commands of the front door at once: none builds over the other, and a user that both make is made once."""

import os
import pathlib
import subprocess

import pytest

from tests.lib.build import ROOT, patience

PARTS = "root={root}; command_line={name}; for part in say build daemons ragent_user; do . \"$root/front/$part.sh\"; done; "


def script(name, text, **more):
    return subprocess.Popen(["bash", "-euo", "pipefail", "-c", PARTS.format(root=ROOT, name=name) + text], text=True,
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


MADE_BY_ANOTHER = "id() { [[ -e made ]]; }; useradd() { touch made; echo \"useradd: user already exists\" >&2; return 9; }; "
REFUSED = "id() { return 1; }; useradd() { echo \"useradd: cannot open /etc/passwd\" >&2; return 1; }; wait_for() { return 1; }; "


@pytest.mark.root
def test_a_user_that_another_command_makes_at_this_moment_is_no_failure(tmp_path):
    assert end(script("up", MADE_BY_ANOTHER + "ragent_user_make", cwd=tmp_path)) == (0, "", "")
    assert (pathlib.Path(tmp_path) / "made").exists()


@pytest.mark.root
def test_a_user_that_cannot_be_made_is_a_failure_with_its_reason(tmp_path):
    assert end(script("up", REFUSED + "ragent_user_make", cwd=tmp_path)) == (1, "", "cssl: useradd: cannot open /etc/passwd\n")
