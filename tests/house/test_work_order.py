"""Large units of work begin first, so that no process is left alone with one at the end."""

from tests.lib.work_order import longest_first

# name, group, limit in seconds
ITEMS = [("a", "alone", 120), ("long", "long", 600), ("g1", "module", 120), ("g2", "module", 120), ("g3", "module", 120), ("b", "also alone", 120)]


def _order(items):
    return [name for name, _, _ in longest_first(items, lambda item: item[1], lambda item: item[2])]


def test_the_longest_limit_begins():
    assert _order(ITEMS)[0] == "long"


def test_a_group_goes_before_single_tests_of_the_same_limit_and_stays_together():
    assert _order(ITEMS) == ["long", "g1", "g2", "g3", "a", "b"]


def test_a_group_goes_by_the_longest_of_its_tests():
    assert _order([("a", "alone", 300), ("g1", "module", 120), ("g2", "module", 400)]) == ["g1", "g2", "a"]


def test_no_test_is_lost():
    assert sorted(_order(ITEMS)) == sorted(name for name, _, _ in ITEMS)
