"""How long the steps and the tests of a run took: prints each step and the ten slowest tests, and keeps all of it in FOLDER, a file
for each run. FOLDER/seconds.json has the last times of each function that takes long, for the order of the next run (work_order.py). A
copy of it is in tests/scenario/data, for the first run of a clone.

    times.py FOLDER --step NAME=SECONDS... --junit FILE... --meson FILE...
"""

import argparse
import collections
import datetime
import json
import pathlib
import subprocess
import xml.etree.ElementTree

from second_look import name_of

SLOWEST = 10
RUNS = 20  # so many are kept
LONG_S = 3


def of_scenarios(path):
    """{test: seconds}, with the names that pytest takes."""
    found = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        found[name_of(case)] = float(case.get("time") or 0)
    return found


def of_units(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["name"].rpartition(" / ")[2]: row["duration"] for row in rows}


def of_build(paths, reader, folder_of):
    """{build: {test: seconds}}; a file that cannot be read has none: tally.py tells."""
    found = collections.defaultdict(dict)
    for path in paths:
        try:
            found[folder_of(path).name].update(reader(path))
        except (OSError, ValueError, KeyError, xml.etree.ElementTree.ParseError):
            pass
    return found


def by_function(tests):
    """{build: {function: seconds of one of its tests}}"""
    found = {}
    for build, seconds in tests.items():
        functions = collections.defaultdict(list)
        for name, value in seconds.items():
            functions[name.split("[")[0]].append(value)
        found[build] = {name: round(sum(values) / len(values)) for name, values in sorted(functions.items())}
    return found


def keep(folder, run):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{run['date'].replace(':', '')}.json").write_text(json.dumps(run, indent=1) + "\n")
    for old in sorted(folder.glob("2*.json"))[:-RUNS]:
        old.unlink()
    last = folder / "seconds.json"
    known = json.loads(last.read_text()) if last.exists() else {}
    for build, functions in by_function(run["tests"]).items():
        known.setdefault(build, {}).update(functions)
    last.write_text(json.dumps({build: {name: seconds for name, seconds in functions.items() if seconds >= LONG_S}
                                for build, functions in known.items()}, indent=1) + "\n")


def show(run):
    for name, seconds in run["steps"].items():
        print(f"{seconds // 60:3d} min {seconds % 60:2d} s  {name}")
    tests = [(seconds, f"{build}: {name}") for build, each in run["tests"].items() for name, seconds in each.items()]
    for seconds, name in sorted(tests, reverse=True)[:SLOWEST]:
        print(f"slow: {seconds:.0f} s  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--step", action="append", default=[], metavar="NAME=SECONDS")
    parser.add_argument("--junit", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--meson", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--again", "--meson-again", action="append", help="results of a second look, whose times do not count")
    options = parser.parse_args()
    tests = of_build(options.meson, of_units, lambda path: path.parent.parent)
    for build, each in of_build(options.junit, of_scenarios, lambda path: path.parent).items():
        tests[build].update(each)
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    run = {"date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}", "commit": commit.stdout.strip(),
           "steps": {name: int(seconds) for name, _, seconds in (step.rpartition("=") for step in options.step)}, "tests": tests}
    keep(options.folder, run)
    show(run)


if __name__ == "__main__":
    main()
