"""Which scenarios that failed are worth a second look: prints them as pytest wants them named, one a line.

A scenario is real processes on a machine with other work, and may fail by its timing alone. So those that failed run once more, one
after another; who passes then is named as unsteady behind all results, and is a bug all the same. No second look where much failed,
or at a test after whose end something was found that no timing explains: the audit of nonces, a sanitizer and a process that did
not end in order are errors of a test's end, not failures of the test."""

import pathlib
import sys
import xml.etree.ElementTree

MOST = 20


def name_of(case):
    test = case.get("name").rpartition("@")[0] or case.get("name")  # pytest-xdist puts the group behind it
    return f"{case.get('classname').replace('.', '/')}.py::{test}"


def is_of_the_end(error):
    return "on setup" not in (error.get("message") or "")


def failures(path):
    """Names of the tests that failed or could not begin, but for those with an error at their end; none if nothing can be read."""
    try:
        cases = list(xml.etree.ElementTree.parse(path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return []
    failed = [name_of(case) for case in cases if case.find("failure") is not None or case.find("error") is not None]
    unexplained = {name_of(case) for case in cases if any(is_of_the_end(error) for error in case.iter("error"))}
    return [name for name in dict.fromkeys(failed) if name not in unexplained]


if __name__ == "__main__":
    found = failures(pathlib.Path(sys.argv[1]))
    print("".join(name + "\n" for name in found) if len(found) <= MOST else "", end="")
