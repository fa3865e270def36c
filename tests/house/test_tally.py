"""The last line of ./cssl test, on which CI decides."""

import json
import pathlib
import subprocess

TALLY = pathlib.Path(__file__).resolve().parents[1] / "lib" / "tally.py"


def tally(*arguments):
    done = subprocess.run(["/usr/bin/python3", str(TALLY), *map(str, arguments)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


def meson_log(folder, **results):
    path = folder / "build" / "meson-logs" / "testlog.json"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({"name": name, "result": result}) + "\n" for name, result in results.items()))
    return path


def junit(folder, *cases):
    path = folder / "results.xml"
    path.write_text("<testsuites><testsuite>" + "".join(
        f'<testcase classname="c" name="t{i}">{case}</testcase>' for i, case in enumerate(cases)) + "</testsuite></testsuites>")
    return path


def test_all_parts_are_summed(tmp_path):
    status, lines = tally("--meson", meson_log(tmp_path, a="OK", b="OK"), "--junit", junit(tmp_path, "", "", ""))
    assert (status, lines) == (0, ["5 passed, 0 failed, 0 skipped"])


def test_a_failure_is_named_and_fails(tmp_path):
    status, lines = tally("--meson", meson_log(tmp_path, a="OK", b="FAIL", c="TIMEOUT"),
                          "--junit", junit(tmp_path, "", '<failure message="no"/>', '<error message="oh"/>'))
    assert status == 1
    assert lines[-1] == "2 passed, 4 failed, 0 skipped"
    assert "failed: build: b" in lines and any(line.endswith("c::t1: no") for line in lines)


def test_a_skip_is_named_with_its_reason_and_does_not_fail(tmp_path):
    status, lines = tally("--junit", junit(tmp_path, "", '<skipped message="needs root"/>'))
    assert status == 0
    assert lines[-1] == "1 passed, 0 failed, 1 skipped"
    assert lines[0].startswith("skipped: ") and lines[0].endswith("c::t1: needs root")


def test_a_part_without_results_is_a_failure(tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text("")
    cut = tmp_path / "cut.xml"
    cut.write_text("<testsuites><testsuite>")
    assert tally("--meson", empty)[0] == 1
    assert tally("--junit", cut)[0] == 1
    assert tally("--junit", tmp_path / "absent.xml", "--junit", junit(tmp_path, ""))[1][-1] == "1 passed, 1 failed, 0 skipped"


def test_a_broken_part_is_a_failure(tmp_path):
    status, lines = tally("--junit", junit(tmp_path, ""), "--broken=build of build-asan")
    assert (status, lines[-1]) == (1, "1 passed, 1 failed, 0 skipped")


def test_nothing_at_all_is_a_failure():
    assert tally() == (1, ["0 passed, 0 failed, 0 skipped"])
