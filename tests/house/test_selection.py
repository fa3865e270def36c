"""tests/lib/selection.py thins products of parameters to pairs, and leaves out no test altogether."""

import collections
import itertools
import sys

import pytest

from test_rules import ROOT

sys.path.insert(0, str(ROOT))

from tests.lib.selection import selected  # noqa: E402

Mark = collections.namedtuple("Mark", "name kwargs", defaults=[{}])


class Item:
    def __init__(self, function, params, marks=()):
        self.nodeid = f"{function}[{'-'.join(map(str, params.values()))}]"
        self.callspec, self._marks = type("Callspec", (), {"params": params}), marks

    def iter_markers(self, name):
        return [mark for mark in self._marks if mark.name == name]

    def get_closest_marker(self, name):
        return next(iter(self.iter_markers(name)), None)


def product(function, *marks, **values):
    return [Item(function, dict(zip(values, chosen)), marks) for chosen in itertools.product(*values.values())]


def names(items, which):
    return [item.nodeid for item in selected(items, which)]


def pairs_of(items):
    return {pair for item in items for pair in itertools.combinations(sorted(item.callspec.params.items()), 2)}


THREE = {"where": ["a", "b", "c"], "version": ["1.2", "1.3"], "size": [1, 2, 3, 4]}


def test_every_pair_of_values_is_left():
    items = product("test_a", **THREE)
    left = selected(items, "once")
    assert pairs_of(left) == pairs_of(items)
    assert len(left) == 12, "as many as the two longest parameters have pairs"


def test_a_tuple_is_several_parameters():
    items = [Item("test_a", {"scene": (where, version), "size": size}) for where in "abc" for version in ("1.2", "1.3") for size in range(4)]
    assert len(selected(items, "once")) == 12


def test_tuples_of_other_lengths_are_values():
    items = [Item("test_a", {"ways": ways}) for ways in [(), ("in",), ("in", "out")]]
    assert len(selected(items, "once")) == 3


@pytest.mark.parametrize("values", [{"version": ["1.2", "1.3"]}, {"version": ["1.2", "1.3"], "size": [1, 2]}, {}])
def test_less_than_three_parameters_are_left_alone(values):
    items = product("test_a", **values)
    assert selected(items, "once") == items


def test_a_mark_keeps_every_combination():
    items = product("test_a", Mark("every_combination"), **THREE)
    assert selected(items, "once") == items


def test_at_full_length_and_by_name_all_run():
    items = product("test_a", **THREE)
    assert selected(items, "all") == items
    assert selected(items, "sanitized", full=True) == items


def test_only_the_named_value_runs_sanitized_and_the_others_run_plain():
    items = product("test_a", Mark("sanitized_with", {"version": "1.3"}), version=["1.2", "1.3"], size=[1, 2])
    assert names(items, "sanitized") == ["test_a[1.3-1]", "test_a[1.3-2]"]
    assert names(items, "plain") == ["test_a[1.2-1]", "test_a[1.2-2]"]


def test_plain_runs_one_of_each_and_what_does_not_run_sanitized():
    items = [*product("test_a", size=[1, 2]), *product("test_b", Mark("plain"), size=[1, 2]), *product("test_c", Mark("alone"), size=[1, 2])]
    assert names(items, "sanitized") == ["test_a[1]", "test_a[2]", "test_c[1]", "test_c[2]"]
    assert names(items, "plain") == ["test_a[1]", "test_b[1]", "test_b[2]"]
    assert names(items, "alone") == ["test_c[1]"]


def test_of_what_measures_the_quiet_ones_are_a_part():
    items = [*product("test_a", Mark("alone"), size=[1, 2]), *product("test_b", Mark("alone"), Mark("quiet"), size=[1, 2])]
    assert names(items, "alone") == ["test_a[1]", "test_b[1]"] and names(items, "quiet") == ["test_b[1]"]


def test_a_wide_product_needs_a_reason():
    values = {"a": range(9), "b": range(9)}
    with pytest.raises(ValueError, match="test_a runs in 81 variants"):
        selected(product("test_a", **values), "sanitized")
    assert len(selected(product("test_a", Mark("wide"), **values), "sanitized")) == 81


def test_each_runs_somewhere():
    items = [*product("test_a", **THREE), *product("test_b", Mark("plain"), size=[1, 2]),
             *product("test_c", Mark("sanitized_with", {"size": 1}), size=[1, 2]), *product("test_d", Mark("alone"), Mark("plain"), size=[1, 2])]
    assert {name for which in ("sanitized", "plain", "alone") for name in names(items, which)} == set(names(items, "once"))
