"""Every mistake that the code can make on purpose is in the table, and every mistake of the table is in the code."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.lib.mutants import BESIDE_THE_AUDIT, MUTANTS  # noqa: E402


def planted():
    return {name for folder in ("proto", "net", "ragent", "sslagent") for path in (ROOT / folder).rglob("*.c")
            for name in re.findall(r'\bmutant\("([^"]*)"\)', path.read_text())}


def test_mutants_of_the_code_are_those_of_the_table():
    assert planted() == {mutant.name for mutant in MUTANTS}


def test_mutants_break_laws_that_exist():
    laws = set(re.findall(r"^## Law (\d+)", (ROOT / "doc/laws.md").read_text(), re.MULTILINE))
    assert {number for mutant in MUTANTS for number in re.findall(r"\d+", mutant.laws)} <= laws


# Mutants of laws 1 to 7 that are no error of the nonce audit. Where nothing is sealed twice, it can see none: the test sees what the
# mistake does to clients, or that something was agreed to that had to be refused. Whoever adds one here says why.
NO_ERROR_OF_THE_AUDIT = {
    "sequence-unchecked": "the one record that repeats a nonce is a KeyUpdate, which law 5 allows at one position",
    "freeze-untold": "likewise",
    "epoch-claimed-first": "the epoch is lost, and nothing is sealed under it",
    "parked-owner-seals": "RAgent takes none of the records",
    "token-unchecked": "an adoption without proof, that has the right position",
    "proof-unchecked": "the stream goes on under its own epoch",
    "frame-taken-twice": "the client gets a sealed record twice; no other one is sealed",
}


def test_the_audit_itself_sees_the_mutants_of_laws_1_to_7():
    of_the_audit = {mutant.name for mutant in MUTANTS if {int(number) for number in re.findall(r"\d+", mutant.laws)} & set(range(1, 8))}
    beside = {mutant.name for mutant in MUTANTS if mutant.sees in BESIDE_THE_AUDIT}
    assert of_the_audit & beside == set(NO_ERROR_OF_THE_AUDIT)
    assert len(of_the_audit - beside) >= 28
