"""Which tests that failed are worth a second look: prints them as pytest or meson wants them named, one a line.

A scenario is real processes on a machine with other work, and may fail by its timing alone; so may a unit that waits for a state,
where the machine stands still for longer than it waits. So those that failed run once more, one after another; who passes then is
named as unsteady behind all results, and is a bug all the same. No second look where much failed, or at what no timing explains: in
a scenario the audit of nonces, a sanitizer and a process that did not end in order, which are errors of a test's end and not failures
of the test; in a unit what a sanitizer said."""

import json
import pathlib
import re
import sys
import xml.etree.ElementTree

MOST = 20
OF_A_SANITIZER = ("Sanitizer", ": runtime error: ")


def test_of(case):
    """Without the group, which pytest-xdist puts behind it. A parameter may have an @, too."""
    return re.sub(r"^([^@[]*(\[.*\])?)@.*$", r"\1", case.get("name"))


def name_of(case):
    return f"{case.get('classname').replace('.', '/')}.py::{test_of(case)}"


def is_of_the_end(error):
    return "on setup" not in (error.get("message") or "")


def failed_units(path):
    """Names of meson's tests that failed or took too long, but for those of which a sanitizer spoke; none if nothing can be read."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        failed = [row for row in rows if row["result"] in ("FAIL", "TIMEOUT")]
    except (OSError, ValueError, KeyError):
        return []
    return [row["name"].rpartition(" / ")[2] for row in failed
            if not any(word in row.get("stdout", "") + row.get("stderr", "") for word in OF_A_SANITIZER)]


def failed_scenarios(path):
    """Names of the tests that failed or could not begin, but for those with an error at their end; none if nothing can be read."""
    try:
        cases = list(xml.etree.ElementTree.parse(path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return []
    failed = [name_of(case) for case in cases if case.find("failure") is not None or case.find("error") is not None]
    unexplained = {name_of(case) for case in cases if any(is_of_the_end(error) for error in case.iter("error"))}
    return [name for name in dict.fromkeys(failed) if name not in unexplained]


if __name__ == "__main__":
    results = pathlib.Path(sys.argv[1])
    found = failed_units(results) if results.suffix == ".json" else failed_scenarios(results)
    print("".join(name + "\n" for name in found) if len(found) <= MOST else "", end="")
