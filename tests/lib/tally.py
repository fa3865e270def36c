"""Sums up the results of meson's tests and of pytest: names what failed or was skipped, then one line
`N passed, N failed, N skipped`. A result file that is missing, empty or unreadable is a failure."""

import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def meson_results(path):
    outcomes = {"OK": PASSED, "EXPECTEDFAIL": PASSED, "SKIP": SKIPPED}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        yield row["name"], outcomes.get(row["result"], FAILED), ""


def junit_results(path):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = [child for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if bad:
            yield name, FAILED, (bad[0].get("message") or "").split("\n")[0]
        elif skipped is not None:
            yield name, SKIPPED, skipped.get("message") or ""
        else:
            yield name, PASSED, ""


def read(path, reader):
    """The results in a file, and one failure in place of a file that holds none."""
    try:
        results = list(reader(path))
    except (OSError, ValueError, KeyError, xml.etree.ElementTree.ParseError) as e:
        return [(str(path), FAILED, f"no results: {e}")]
    return results or [(str(path), FAILED, "no results")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--meson", type=pathlib.Path, action="append", default=[], help="a testlog.json")
    parser.add_argument("--junit", type=pathlib.Path, action="append", default=[], help="a JUnit XML file")
    parser.add_argument("--broken", action="append", default=[], help="a part that gave no result")
    options = parser.parse_args()

    results = [(name, FAILED, "") for name in options.broken]
    for path in options.meson:
        results += [(f"{path.parent.parent.name}: {name}", outcome, why)
                    for name, outcome, why in read(path, meson_results)]
    for path in options.junit:
        results += [(f"{path.parent.name}: {name}", outcome, why) for name, outcome, why in read(path, junit_results)]

    for outcome in (SKIPPED, FAILED):
        for name, result, why in results:
            if result == outcome:
                print(f"{outcome}: {name}{': ' + why if why else ''}")
    count = {outcome: sum(1 for r in results if r[1] == outcome) for outcome in (PASSED, FAILED, SKIPPED)}
    print(f"{count[PASSED]} passed, {count[FAILED]} failed, {count[SKIPPED]} skipped")
    sys.exit(1 if count[FAILED] or not results else 0)


if __name__ == "__main__":
    main()
