"""The help text of a counter: the API, /metrics and csslctl show one row by itself, so a text cannot refer to the row above it."""

import re

import pytest

from test_rules import ROOT

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
