"""Every mistake that the code can make on purpose is in the table, and every mistake of the table is in the code."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.lib.mutants import MUTANTS  # noqa: E402


def planted():
    return {name for folder in ("proto", "net", "ragent", "sslagent") for path in (ROOT / folder).rglob("*.c")
            for name in re.findall(r'\bmutant\("([^"]*)"\)', path.read_text())}


def test_mutants_of_the_code_are_those_of_the_table():
    assert planted() == {mutant.name for mutant in MUTANTS}


def test_mutants_break_laws_that_exist():
    laws = set(re.findall(r"^## Law (\d+)", (ROOT / "doc/laws.md").read_text(), re.MULTILINE))
    assert {number for mutant in MUTANTS for number in re.findall(r"\d+", mutant.laws)} <= laws
