"""The page that keeps the last result of each file of scenarios at full length."""

import json
import pathlib
import subprocess

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "lib" / "full_page.py"

CASE = '<testcase classname="tests.scenario.{file}" name="{name}" time="{time}">{inside}</testcase>'


def results(path, *cases):
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return path


def case(file, name, time="30", inside=""):
    return CASE.format(file=file, name=name, time=time, inside=inside)


def keep(folder, *paths):
    done = subprocess.run(["/usr/bin/python3", str(PROGRAM), str(folder), *map(str, paths)], text=True, stdout=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.strip()


def rows(folder):
    return {line.split(" | ")[0].strip("| "): line for line in (folder / "full.md").read_text().splitlines() if line.startswith("| test_")}


def test_each_file_has_its_last_result_with_date_and_commit(tmp_path):
    figure = '<properties><property name="figure" value="20 rounds, 0 lost"/></properties>'
    first = results(tmp_path / "first.xml", case("test_drain", "a@group", inside=figure), case("test_drain", "b"), case("test_rest", "c"))
    assert keep(tmp_path, first) == (0, "3 passed, 0 failed, 0 skipped")
    assert "| 2 | 0 | 0 | 1.0 min |" in rows(tmp_path)["test_drain"]
    assert "| test_drain: a | 20 rounds, 0 lost |" in (tmp_path / "full.md").read_text()
    kept = json.loads((tmp_path / "full.json").read_text())
    assert kept["test_rest"]["date"].count("-") == 2 and len(kept["test_rest"]["commit"].rstrip("*")) == 10


def test_files_that_did_not_run_keep_what_they_had(tmp_path):
    keep(tmp_path, results(tmp_path / "first.xml", case("test_drain", "a"), case("test_rest", "c")))
    before = rows(tmp_path)
    again = results(tmp_path / "again.xml", case("test_drain", "a", inside='<failure message="x"/>'), case("test_drain", "b", inside="<skipped/>"))
    assert keep(tmp_path, again) == (1, "0 passed, 1 failed, 1 skipped")
    after = rows(tmp_path)
    assert after["test_rest"] == before["test_rest"] and "| 0 | 1 | 1 |" in after["test_drain"]


def test_a_run_that_was_cut_off_changes_nothing(tmp_path):
    keep(tmp_path, results(tmp_path / "first.xml", case("test_drain", "a")))
    before = (tmp_path / "full.md").read_text()
    cut = tmp_path / "cut.xml"
    cut.write_text("<testsuites>")
    for path in (cut, tmp_path / "missing.xml"):
        status, said = keep(tmp_path, path)
        assert status == 1 and "nothing is kept" in said
    assert (tmp_path / "full.md").read_text() == before


def test_a_run_without_tests_is_a_failure(tmp_path):
    assert keep(tmp_path, results(tmp_path / "none.xml")) == (1, "0 passed, 0 failed, 0 skipped")
