"""Which tests find the faults that drawn_faults.py planted in a tree (./cssl test --faults):

    found_by.py TREE SEED COUNT PROFILES RESULTS [N...]      these faults, or all; adds to RESULTS (JSON) after each

First the units run, until some fail; then the scenarios of those files whose profiles (of ./cssl test --coverage) say that they run the
line, the seldom run first. What fails has to fail once more, alone, and to pass without the fault."""

import json
import os
import pathlib
import re
import subprocess
import sys

from coverage_page import PROGRAMS
from drawn_faults import drawn

FEW = 12
WITHOUT = 0  # the number of no fault


class Tree:
    def __init__(self, folder, profiles):
        self.folder, self.build, self.profiles = folder, folder / "build-asan", profiles

    def environment(self, number, **more):
        return dict(os.environ, CSSL_DRAWN=str(number), CSSL_BUILD_DIR=str(self.build), CK_TIMEOUT_MULTIPLIER="4", UBSAN_OPTIONS="halt_on_error=1",
                    **more)

    def units_that_fail(self, number, *which, maxfail=3):
        """The names of the first that fail of these suites or units."""
        log = self.build / "meson-logs" / "faults.json"
        log.unlink(missing_ok=True)
        subprocess.run(["meson", "test", "-C", self.build, "--no-rebuild", "--logbase", "faults", "--maxfail", str(maxfail), "--num-processes", "8",
                        "--timeout-multiplier", "2", *which], env=self.environment(number), check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [row["name"] for row in rows if row["result"] in ("FAIL", "TIMEOUT", "ERROR")]

    def scenarios_that_fail(self, number, which, *tests, maxfail=3):
        done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", f"--maxfail={maxfail}", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-n", "8",
                               "--dist", "loadgroup", *map(str, tests)], cwd=self.folder, env=self.environment(number, CSSL_TESTS=which), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return re.findall(r"^(?:FAILED|ERROR) ([\w/.]+::\w+(?:\[[^]]*\])?)", done.stdout, re.M)

    def unit_that_finds(self, number, folder):
        """Those of the fault's top folder begin. What other work made fail passes here, alone."""
        for suites in (["--suite", folder], ["--suite", "unit", "--suite", "fuzz"]):
            for name in self.units_that_fail(number, *suites):
                unit = name.split(" / ")[-1]
                if self.units_that_fail(number, unit) and not self.units_that_fail(WITHOUT, unit):
                    return name
        return None

    def scenario_that_finds(self, number, modules, which):
        """A line that most files run is seen by each, so a few of them begin."""
        paths = [path for module in modules if (path := self.folder / "tests/scenario" / f"{module}.py").exists()]
        for some in (paths[:FEW], paths[FEW:]):
            for test in self.scenarios_that_fail(number, which, *some) if some else ():
                if self.scenarios_that_fail(number, "all", test) and not self.scenarios_that_fail(WITHOUT, "all", test):
                    return test
        return None


def lines_run(build, profdata, names):
    """{(file, line)} of these files that a profile says were run."""
    first, *others = [build / program for program in PROGRAMS]
    command = ["llvm-cov", "export", "-format=lcov", first, *[word for path in others for word in ("-object", path)], f"-instr-profile={profdata}"]
    found, path = set(), ""
    for line in subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines():
        if line.startswith("SF:"):
            path = os.path.normpath(line[3:])
        elif path in names and line.startswith("DA:") and not line.endswith(",0"):
            found.add((path, int(line[3:].split(",")[0])))
    return found


def modules_by_fault(profiles, faults):
    """{fault: the files of scenarios that run its line, the seldom run first}"""
    root = profiles.parent.parent
    names = {str(root / fault.path) for fault in faults}
    found = {fault: [] for fault in faults}
    for folder in sorted(path for path in profiles.iterdir() if path.is_dir()):
        profdata = folder.with_suffix(".profdata")
        files = [path for path in folder.glob("*.profraw") if path.stat().st_size]
        if files and subprocess.run(["llvm-profdata", "merge", "-sparse", "-failure-mode=all", *files, "-o", profdata], check=False,
                                    stderr=subprocess.DEVNULL).returncode == 0:
            run = lines_run(profiles.parent, profdata, names)
            for fault in faults:
                if (str(root / fault.path), fault.line) in run:
                    found[fault].append(folder.name)
    return found


def main(folder, seed, count, profiles, results, *numbers):
    tree, results, faults = Tree(pathlib.Path(folder), pathlib.Path(profiles)), pathlib.Path(results), drawn(int(seed), int(count))
    kept = json.loads(results.read_text()) if results.exists() else {}
    modules = modules_by_fault(pathlib.Path(profiles), faults)
    for number in map(int, numbers) if numbers else range(1, len(faults) + 1):
        fault = faults[number - 1]
        by = tree.unit_that_finds(number, fault.path.split("/")[0]) or \
            tree.scenario_that_finds(number, [name for name in modules[fault] if name != "units"], "sanitized")
        kept[str(number)] = {"where": f"{fault.path}:{fault.line}", "kind": fault.kind, "text": fault.text, "run by": modules[fault], "found by": by}
        results.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"{number} {fault.path}:{fault.line} {fault.kind}: {by or 'found by none'}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
