"""Counts the lines and branches that no test runs (./cssl test --coverage):

    coverage_page.py BUILD PAGES       reads BUILD/profiles, updates PAGES/coverage.json, and writes PAGES/coverage.md from it
"""

import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys

from full_page import ROOT, commit, machine

PROGRAMS = ("ragent/ragent", "sslagent/sslagent", "smtpproxy/smtpproxy", "csslctl/csslctl", "bench/cssl-bench")

HEAD = """\
# What no test runs

Lines and branches of the product's C that neither a unit, nor the seeds of a fuzzer, nor a scenario runs, by folder. A branch is one
way of a condition. What clang's counters say, also those of killed processes. Made by `./cssl test --coverage`, which runs all tests
once on a build that counts, and keeps the first result and the last. `*` after a commit: there were changed files that the commit does
not have.

"""


def merged(build):
    """One profile of all. Llvm-profdata reads the list of files from another file: there are thousands."""
    files = sorted(path for path in (build / "profiles").rglob("*.profraw") if path.stat().st_size)
    names, whole = build / "profiles.txt", build / "whole.profdata"
    names.write_text("".join(f"{path}\n" for path in files))
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-failure-mode=all", f"-input-files={names}", "-o", whole], check=True)
    return whole


def exported(build, profile, *options):
    """llvm-cov's answer for all programs together."""
    first, *others = [build / program for program in PROGRAMS]
    command = ["llvm-cov", "export", first, *[word for path in others for word in ("-object", path)], f"-instr-profile={profile}"]
    return subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def folder_of(name):
    """Of a source file of the product, or None: generated code is no source of ours."""
    path = pathlib.Path(os.path.normpath(name))
    if not path.is_relative_to(ROOT) or str(path.relative_to(ROOT)).startswith("build"):
        return None
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[:2]) if parts[0] != "tests" else None


def counted(files):
    """{folder: {lines, lines_missed, branches, branches_missed}}"""
    found = collections.defaultdict(collections.Counter)
    for file in files:
        folder = folder_of(file["filename"])
        for kind in ("lines", "branches") if folder else ():
            summary = file["summary"][kind]
            found[folder][kind] += summary["count"]
            found[folder][f"{kind}_missed"] += summary["count"] - summary["covered"]
    return {folder: dict(counts) for folder, counts in sorted(found.items())}


def total(folders):
    return dict(sum((collections.Counter(counts) for counts in folders.values()), collections.Counter()))


def page(kept):
    first, last = kept["first"], kept["last"]
    lines = [HEAD, "| | date | commit | machine |\n| --- | --- | --- | --- |\n"]
    lines += [f"| {name} | {run['date']} | {run['commit']} | {run['machine']} |\n" for name, run in kept.items()]
    lines += ["\n| folder | lines | not run, first | last | branches | not run, first | last |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"]
    rows = {**last["folders"], "all": total(last["folders"])}
    before = {**first["folders"], "all": total(first["folders"])}
    for folder, now in rows.items():
        then = before.get(folder, {})
        lines.append(f"| {folder} | {now['lines']} | {then.get('lines_missed', '-')} | {now.get('lines_missed', 0)} | {now.get('branches', 0)} | "
                     f"{then.get('branches_missed', '-')} | {now.get('branches_missed', 0)} |\n")
    return "".join(lines)


def main(build, pages):
    build, pages = pathlib.Path(build), pathlib.Path(pages)
    files = json.loads(exported(build, merged(build), "-summary-only"))["data"][0]["files"]
    run = {"date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", "commit": commit(), "machine": machine(), "folders": counted(files)}
    data = pages / "coverage.json"
    kept = {"first": json.loads(data.read_text())["first"] if data.exists() else run, "last": run}
    data.write_text(json.dumps(kept, indent=1) + "\n")
    (pages / "coverage.md").write_text(page(kept))
    whole = total(run["folders"])
    print(f"lines: {whole['lines_missed']} of {whole['lines']} not run; branches: {whole['branches_missed']} of {whole['branches']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
