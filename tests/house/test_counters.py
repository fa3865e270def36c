"""The help text of a counter: the API, /metrics and csslctl show one row by itself, so a text cannot refer to the row above it. So do
`csslctl help`, and an editor that shows one key of a file, with the help texts of commands, options and keys."""

import re

import pytest

from test_rules import ROOT, _files

TABLES = ("ragent/counters.h", "sslagent/counters.h", "smtpproxy/counters.h")
REFERS_BACK = re.compile(r'(?i)"(?:of )?(?:them|these|those)\b[^"]*"')


@pytest.mark.parametrize("table", TABLES)
def test_no_help_text_refers_to_another_row(table):
    text = (ROOT / table).read_text()
    assert len(re.findall(r"^\t[XB]\(\w+, ", text, re.MULTILINE)) > 30
    assert not REFERS_BACK.findall(text)


@pytest.mark.parametrize("planted", ['X(adopted_late, MONOTONIC, "of them, late")', 'X(a, "Of these, refused")', 'X(A, "a", GAUGE, "those that wait")', 'X(a, "Those that wait")',
                                     'X(a, "These wait")'])
def test_a_planted_text_that_refers_back_is_found(planted):
    assert REFERS_BACK.search(planted)


STRING = r'"(?:[^"\\]|\\.)*"'
HELP = re.compile(rf'(?:\.help = |\bCOUNT\({STRING}, \w+, \w+, \w*(?:{STRING})?,)\s*((?:{STRING}\s*)+)')
HELP_REFERS_BACK = re.compile(r"(?i)^(?:of )?(?:them|these|those)\b|\bthe same(?: (?:for|by|of|as|in)\b|[;,.:]|$)|\bfor that(?:[;,.:]|$)")


def helps_of(text):
    """The help texts of a source's rows, each in one piece."""
    return ["".join(piece[1:-1] for piece in re.findall(STRING, pieces)) for pieces in HELP.findall(text)]


def test_no_help_text_of_a_key_or_a_command_refers_to_another_row():
    helps = [(path, text) for path in _files(".c") if path.relative_to(ROOT).parts[0] != "tests" for text in helps_of(path.read_text())]
    assert len(helps) > 250
    found = [f"{path.relative_to(ROOT)}: {text}" for path, text in helps if HELP_REFERS_BACK.search(text)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("planted", ['.help = "the same for one client address; an IPv6 /48 may have more" },', '.help = "for TLS 1.2: the same; only AEAD" },',
                                     'COUNT("sessions_per_source", sessions_per_source, 1, "2000",\n\t"the same for one sender"),',
                                     '.help = "how many of a worker may wait for that; each takes 76 KB" },', '.help = "the "\n\t"same by the address" }'])
def test_a_planted_help_text_that_refers_back_is_found(planted):
    assert [bool(HELP_REFERS_BACK.search(text)) for text in helps_of(planted)] == [True]
