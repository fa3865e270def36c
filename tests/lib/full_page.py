"""Keeps the last result of each file of scenarios at full length (./cssl test --full), with date and commit:

    full_page.py FOLDER RESULTS.xml...       updates FOLDER/full.json, and writes FOLDER/full.md from it

The last line on standard output sums up this run; the exit code is 1 where something failed or nothing ran."""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import xml.etree.ElementTree

from second_look import test_of

ROOT = pathlib.Path(__file__).resolve().parents[2]

HEAD = """\
# Scenarios at full length

The tests of `tests/scenario` take seconds in every run. `./cssl test --full` gives them the length and the limits that a proof
needs; `./cssl test --full FILE...` does so for some files. This page has the last result of each file, with its commit. `*` after
a commit: there were changed files that the commit does not have.

| file | date | commit | passed | failed | skipped | time | machine |
| --- | --- | --- | ---: | ---: | ---: | ---: | --- |
"""


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip()


def commit():
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!bench/results")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + ("*" if changed else "")


def machine():
    return f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}"


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def read(paths):
    """{file: {passed, failed, skipped, seconds, figures}} of JUnit files. A file that is missing or cut off counts for nothing,
    because not all of its tests ran."""
    rows = {}
    for path in paths:
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            row = rows.setdefault(case.get("classname").split(".")[-1], {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0,
                                                                         "figures": {}})
            row[outcome(case)] += 1
            row["seconds"] += float(case.get("time") or 0)
            figures = [p.get("value") for p in case.iter("property") if p.get("name") == "figure"]
            if figures:
                row["figures"][test_of(case)] = "; ".join(figures)
    return rows


def page(kept):
    lines, figures = [], []
    for name, row in sorted(kept.items()):
        lines.append(f"| {name} | {row['date']} | {row['commit']} | {row['passed']} | {row['failed']} | {row['skipped']} | "
                     f"{row['seconds'] / 60:.1f} min | {row['machine']} |\n")
        figures += [f"| {name}: {test} | {text} |\n" for test, text in sorted(row["figures"].items())]
    if figures:
        figures = ["\n## Figures\n\n| test | what it measured |\n| --- | --- |\n", *figures]
    return HEAD + "".join(lines) + "".join(figures)


def main(folder, *results):
    folder = pathlib.Path(folder)
    data = folder / "full.json"
    kept = json.loads(data.read_text()) if data.exists() else {}
    try:
        fresh = read(results)
    except (OSError, xml.etree.ElementTree.ParseError) as e:
        print(f"not all of it ran, so nothing is kept: {e}")
        return 1
    about = {"date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", "commit": commit(), "machine": machine()}
    for name, row in fresh.items():
        kept[name] = {**about, **row}
    data.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    (folder / "full.md").write_text(page(kept))
    sums = {kind: sum(row[kind] for row in fresh.values()) for kind in ("passed", "failed", "skipped")}
    print(", ".join(f"{count} {kind}" for kind, count in sums.items()))
    return 1 if sums["failed"] or not sums["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
