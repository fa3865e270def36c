"""What ./cssl test keeps of the times of its steps and tests (tests/lib/times.py)."""

import json
import subprocess

from test_rules import ROOT

CASES = '<testsuites><testsuite>%s</testsuite></testsuites>'
CASE = '<testcase classname="tests.scenario.test_a" name="%s" time="%s"></testcase>'


def run(folder, *options):
    return subprocess.run(["/usr/bin/python3", ROOT / "tests/lib/times.py", folder / "times", *map(str, options)], cwd=ROOT, text=True, check=True,
                          stdout=subprocess.PIPE).stdout.splitlines()


def results(folder, *cases):
    path = folder / "build-asan" / "scenario.xml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(CASES % "".join(CASE % case for case in cases))
    return path


def units(folder, **seconds):
    path = folder / "build-asan" / "meson-logs" / "unit.json"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({"name": f"cssl:unit+net / {name}", "duration": value}) + "\n" for name, value in seconds.items()))
    return path


def test_steps_and_the_slowest_are_told(tmp_path):
    junit = results(tmp_path, *((f"b[{n}]", n) for n in range(30)))
    lines = run(tmp_path, "--step", "a build=125", "--junit", junit, "--meson", units(tmp_path, wheel=99.0))
    assert lines[0] == "  2 min  5 s  a build"
    assert lines[1] == "slow: 99 s  build-asan: wheel" and lines[2] == "slow: 29 s  build-asan: tests/scenario/test_a.py::b[29]"
    assert len(lines) == 11


def test_each_test_is_kept_by_run(tmp_path):
    run(tmp_path, "--junit", results(tmp_path, ("b[1]@group", 4), ("b[2]", 6)))
    kept, = (tmp_path / "times").glob("2*.json")
    assert json.loads(kept.read_text())["tests"] == {"build-asan": {"tests/scenario/test_a.py::b[1]": 4.0, "tests/scenario/test_a.py::b[2]": 6.0}}


def test_functions_that_take_long_are_known_to_the_next_run(tmp_path):
    run(tmp_path, "--junit", results(tmp_path, ("b[1]", 4), ("b[2]", 6), ("c", 1)))
    run(tmp_path, "--junit", results(tmp_path, ("d", 60)))
    known = json.loads((tmp_path / "times" / "seconds.json").read_text())
    assert known == {"build-asan": {"tests/scenario/test_a.py::b": 5, "tests/scenario/test_a.py::d": 60}}


def test_a_part_without_results_is_no_time(tmp_path):
    assert run(tmp_path, "--junit", tmp_path / "none.xml", "--again", tmp_path / "none.xml") == []
