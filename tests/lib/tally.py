"""Sums up the results of meson's tests and of pytest: names what failed, was skipped, or passed only at a second look
(second_look.py), with the traces of both, then one line `N passed, N failed, N skipped`. A result file that is missing, empty or unreadable is a failure."""

import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree

from second_look import test_of

PASSED, FAILED, SKIPPED, UNSTEADY = "passed", "failed", "skipped", "unsteady"
TRACES = 5  # of so many failures are shown,
TRACE_LINES = 30  # and so much of each: its end


def meson_results(path):
    outcomes = {"OK": PASSED, "EXPECTEDFAIL": PASSED, "SKIP": SKIPPED}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        outcome = outcomes.get(row["result"], FAILED)
        trace = row.get("stdout", "") + row.get("stderr", "")
        yield row["name"], outcome, "took too long" if row["result"] == "TIMEOUT" else "", trace if outcome == FAILED else ""


def junit_results(path):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{test_of(case)}"
        bad = [child for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if bad:
            yield name, FAILED, (bad[0].get("message") or "").split("\n")[0], bad[0].text or ""
        elif skipped is not None:
            yield name, SKIPPED, skipped.get("message") or "", ""
        else:
            yield name, PASSED, "", ""


def read(path, reader):
    """The results in a file, and one failure in place of a file that holds none."""
    try:
        results = list(reader(path))
    except (OSError, ValueError, KeyError, xml.etree.ElementTree.ParseError) as e:
        return [(str(path), FAILED, f"no results: {e}", "")]
    return results or [(str(path), FAILED, "no results", "")]


def after_second_look(results, again):
    """A test that failed and then passed when it ran once more is unsteady."""
    passed = {name for name, outcome, _, _ in again if outcome == PASSED}
    return [(name, UNSTEADY if outcome == FAILED and name in passed else outcome, why, trace) for name, outcome, why, trace in results]


def of_builds(paths, reader, build_of):
    return [(f"{build_of(path).name}: {name}", *result) for path in paths for name, *result in read(path, reader)]


def show_traces(results):
    shown = [(name, trace) for wanted in (FAILED, UNSTEADY) for name, outcome, _, trace in results if outcome == wanted and trace]
    for name, trace in shown[:TRACES]:
        print(f"--- {name}", *trace.splitlines()[-TRACE_LINES:], sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--meson", type=pathlib.Path, action="append", default=[], help="a testlog.json")
    parser.add_argument("--junit", type=pathlib.Path, action="append", default=[], help="a JUnit XML file")
    parser.add_argument("--again", type=pathlib.Path, action="append", default=[], help="of a second look (JUnit), beside the first")
    parser.add_argument("--meson-again", type=pathlib.Path, action="append", default=[], help="of a second look, beside the first")
    parser.add_argument("--broken", action="append", default=[], help="a part that gave no result")
    options = parser.parse_args()

    results = [(name, FAILED, "", "") for name in options.broken]
    results += of_builds(options.meson, meson_results, lambda path: path.parent.parent)
    results += of_builds(options.junit, junit_results, lambda path: path.parent)
    again = of_builds(options.meson_again, meson_results, lambda path: path.parent.parent)
    again += of_builds(options.again, junit_results, lambda path: path.parent)
    results = after_second_look(results, again)

    show_traces(results)
    for outcome in (SKIPPED, UNSTEADY, FAILED):
        for name, result, why, _ in results:
            if result == outcome:
                print(f"{outcome}: {name}{': ' + why if why else ''}")
    count = {outcome: sum(1 for r in results if r[1] == outcome) for outcome in (PASSED, UNSTEADY, FAILED, SKIPPED)}
    print(f"{count[PASSED] + count[UNSTEADY]} passed, {count[FAILED]} failed, {count[SKIPPED]} skipped")
    sys.exit(1 if count[FAILED] or not results else 0)


if __name__ == "__main__":
    main()
