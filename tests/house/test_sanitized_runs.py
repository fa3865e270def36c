"""tests/lib/sanitized_runs.py leaves out the variants that marks name, and never a whole test."""

import collections
import sys

import pytest

from test_rules import ROOT

sys.path.insert(0, str(ROOT))

from tests.lib.sanitized_runs import run_sanitized  # noqa: E402


Mark = collections.namedtuple("Mark", "name kwargs", defaults=[{}])


class Item:
    def __init__(self, nodeid, params, marks):
        self.nodeid, self.callspec, self._marks = nodeid, type("Callspec", (), {"params": params}), marks

    def iter_markers(self, name):
        return [mark for mark in self._marks if mark.name == name]

    def get_closest_marker(self, name):
        return next(iter(self.iter_markers(name)), None)


def _items(*marks):
    return [Item(f"test_a[{version}-{size}]", {"version": version, "size": size}, marks)
            for version in ("1.2", "1.3") for size in (1, 2)]


def _names(items):
    return [item.nodeid for item in items]


def test_only_the_named_value_runs():
    assert _names(run_sanitized(_items(Mark("sanitized_with", {"version": "1.3"})))) == ["test_a[1.3-1]", "test_a[1.3-2]"]


def test_a_mark_for_a_parameter_that_a_test_has_not_changes_nothing():
    assert len(run_sanitized(_items(Mark("sanitized_with", {"kind": "any"})))) == 4


def test_plain_tests_do_not_run():
    assert run_sanitized(_items(Mark("plain"))) == []


def test_a_mark_that_leaves_nothing_is_an_error():
    with pytest.raises(ValueError, match="leaves nothing of test_a"):
        run_sanitized(_items(Mark("sanitized_with", {"version": "1.4"})))
