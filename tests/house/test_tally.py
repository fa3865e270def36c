"""The last line of ./cssl test, on which CI decides."""

import json
import pathlib
import subprocess

import pytest

TALLY = pathlib.Path(__file__).resolve().parents[1] / "lib" / "tally.py"


def tally(*arguments):
    done = subprocess.run(["/usr/bin/python3", str(TALLY), *map(str, arguments)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


def looked_at(results):
    """The failed tests that run once more."""
    script = TALLY.with_name("second_look.py")
    return subprocess.run(["/usr/bin/python3", str(script), str(results)], text=True, stdout=subprocess.PIPE, check=True).stdout.split()


def meson_log(folder, name="testlog.json", **results):
    path = folder / "build" / "meson-logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"name": name, "result": result}) + "\n" for name, result in results.items()))
    return path


def junit(folder, *cases, name="results.xml"):
    path = folder / name
    path.write_text("<testsuites><testsuite>" + "".join(
        f'<testcase classname="c" name="t{i}">{case}</testcase>' for i, case in enumerate(cases) if case is not None)
        + "</testsuite></testsuites>")
    return path


@pytest.mark.parametrize("name,in_a_run", [("b[1]", "b[1]@test_a"), ("b", "b@test_a"), ("b[c@d/e]", "b[c@d/e]"), ("b[c@d/e]", "b[c@d/e]@test_a")])
def test_a_test_of_a_group_is_looked_at_by_its_own_name(tmp_path, name, in_a_run):
    def results(file, name, case):
        path = tmp_path / file
        path.write_text(f'<testsuites><testsuite><testcase classname="tests.scenario.test_a" name="{name}">{case}</testcase></testsuite></testsuites>')
        return path
    first = results("first.xml", in_a_run, "<failure message='m'/>")
    assert looked_at(first) == [f"tests/scenario/test_a.py::{name}"]
    again = results("first-again.xml", name, "")
    status, lines = tally("--junit", first, "--again", again)
    assert status == 0 and lines[-1] == "1 passed, 0 failed, 0 skipped", lines


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


FAILURE = '<failure message="late"/>'


def test_a_test_that_passes_at_a_second_look_is_named_as_unsteady(tmp_path):
    first, again = junit(tmp_path, "", FAILURE), junit(tmp_path, None, "", name="again.xml")
    status, lines = tally("--junit", first, "--again", again)
    assert (status, lines[-1]) == (0, "2 passed, 0 failed, 0 skipped")
    assert lines[0].startswith("unsteady: ") and lines[0].endswith("c::t1: late")


def test_the_trace_of_an_unsteady_test_is_shown_behind_those_of_failures(tmp_path):
    bad = '<failure message="no">trace of {}</failure>'
    first = junit(tmp_path, bad.format("unsteady"), bad.format("failed"))
    _, lines = tally("--junit", first, "--again", junit(tmp_path, "", bad.format("failed"), name="again.xml"))
    assert [line for line in lines if line.startswith("trace")] == ["trace of failed", "trace of unsteady"]


def test_a_test_that_fails_twice_has_failed(tmp_path):
    status, lines = tally("--junit", junit(tmp_path, "", FAILURE), "--again", junit(tmp_path, None, FAILURE, name="again.xml"))
    assert (status, lines[-1]) == (1, "1 passed, 1 failed, 0 skipped")


def test_a_second_look_without_results_helps_nobody(tmp_path):
    status, lines = tally("--junit", junit(tmp_path, FAILURE), "--again", tmp_path / "absent.xml")
    assert (status, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")


def test_a_few_failures_get_a_second_look(tmp_path):
    assert looked_at(junit(tmp_path, "", FAILURE, FAILURE)) == ["c.py::t1", "c.py::t2"]


def test_many_failures_get_none(tmp_path):
    assert looked_at(junit(tmp_path, *[FAILURE] * 20)) != []
    assert looked_at(junit(tmp_path, *[FAILURE] * 21)) == []
    assert looked_at(tmp_path / "absent.xml") == []


def test_a_failure_that_no_timing_explains_gets_no_second_look(tmp_path):
    found = '<error message="failed on teardown with: a nonce was used again"/>'
    assert looked_at(junit(tmp_path, FAILURE, found, FAILURE + found)) == ["c.py::t0"]
    assert looked_at(junit(tmp_path, '<error message="failed on setup with: address in use"/>')) == ["c.py::t0"]


def test_a_unit_that_passes_at_a_second_look_is_named_as_unsteady(tmp_path):
    first = meson_log(tmp_path, a="OK", b="TIMEOUT", c="FAIL")
    assert looked_at(first) == ["b", "c"]
    status, lines = tally("--meson", first, "--meson-again", meson_log(tmp_path, name="again.json", b="OK", c="FAIL"))
    assert (status, lines) == (1, ["unsteady: build: b: took too long", "failed: build: c", "2 passed, 1 failed, 0 skipped"])


def test_a_unit_is_looked_at_by_the_name_that_meson_selects_by(tmp_path):
    assert looked_at(meson_log(tmp_path, **{"cssl:unit+net / stream": "FAIL"})) == ["stream"]


@pytest.mark.parametrize("said", ["ERROR: AddressSanitizer: heap-use-after-free", "a.c:3:2: runtime error: shift", "LeakSanitizer: ..."])
def test_a_unit_of_which_a_sanitizer_spoke_gets_no_second_look(tmp_path, said):
    path = meson_log(tmp_path, a="FAIL")
    path.write_text(path.read_text() + json.dumps({"name": "b", "result": "FAIL", "stderr": said}) + "\n")
    assert looked_at(path) == ["a"]


def test_many_failed_units_get_no_second_look(tmp_path):
    assert looked_at(meson_log(tmp_path, **{f"u{i}": "FAIL" for i in range(21)})) == []
    assert looked_at(tmp_path / "absent.json") == []


def test_the_end_of_a_failures_trace_stands_before_the_names(tmp_path):
    trace = "".join(f"line {i}\n" for i in range(100))
    _, lines = tally("--junit", junit(tmp_path, f'<failure message="no">{trace}</failure>'))
    assert lines[0].startswith("--- ") and lines[1:31] == [f"line {i}" for i in range(70, 100)], lines
    assert lines[31].startswith("failed: ") and len(lines) == 33


def test_nothing_at_all_is_a_failure():
    assert tally() == (1, ["0 passed, 0 failed, 0 skipped"])
