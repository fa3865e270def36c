"""doc/promises.md: each row names the test that checks it, and that test exists."""

import re

from test_rules import ROOT

PAGE = (ROOT / "doc/promises.md").read_text()
NO_TEST = 3  # rows; fewer is better


def rows_of(page):
    """The last cell of each row of the tables that have a column "test"."""
    found, tested = [], False
    for line in page.splitlines():
        if not line.startswith("|"):
            tested = False
        elif line.endswith("| test |"):
            tested = True
        elif tested and not line.startswith("| ---"):
            found.append(line.rsplit("|", 2)[1].strip())
    return found


def missing(cells):
    """The tests that cells name and that do not exist. A cell may say "the same" or "none" instead."""
    found = []
    for cell in cells:
        named = re.findall(r"`(\w+): (test_\w+)`", cell)
        if not named and cell not in ("the same", "none"):
            found.append(cell)
        for module, function in named:
            path = ROOT / f"tests/scenario/test_{module}.py"
            if not path.is_file() or f"\ndef {function}(" not in path.read_text():
                found.append(f"{module}: {function}")
    return found


def test_each_row_names_a_test():
    assert missing(rows_of(PAGE)) == []


def test_hardly_any_row_is_without_a_test():
    assert len(rows_of(PAGE)) > 45 and rows_of(PAGE).count("none") <= NO_TEST


def test_a_planted_row_is_found():
    planted = "| a | test |\n| --- | --- |\n| b | `takeover: test_no_such` |\n| c | |\n| d | `nowhere: test_x` |\n"
    assert missing(rows_of(planted)) == ["takeover: test_no_such", "", "nowhere: test_x"]
