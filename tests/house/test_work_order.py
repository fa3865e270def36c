"""Tests that share a cluster are one unit of work, and the longest units begin, so that no process is left alone with one at the end."""

import collections
import sys
import types

from test_rules import ROOT

sys.path.insert(0, str(ROOT))

from tests.lib.work_order import group_of, longest_first  # noqa: E402

# name, group, seconds
ITEMS = [("a", "alone", 3), ("long", "long", 60), ("g1", "module", 20), ("g2", "module", 20), ("g3", "module", 30), ("b", "also alone", 3)]

Fixture = collections.namedtuple("Fixture", "scope argnames")
FIXTURES = {
    "start_module_cluster": Fixture("module", ["request"]), "cluster": Fixture("module", ["start_module_cluster", "backend"]),
    "backend": Fixture("module", []), "other": Fixture("module", ["start_module_cluster"]), "probe": Fixture("module", ["cluster"]),
}


def item(*fixtures, marks=(), **params):
    names = {"start_module_cluster", *fixtures} if {"cluster", "other"} & set(fixtures) else set(fixtures)
    return types.SimpleNamespace(
        nodeid="test_a.py::test_b", fixturenames=names, module=types.SimpleNamespace(__name__="test_a"),
        callspec=types.SimpleNamespace(params=params),
        _fixtureinfo=types.SimpleNamespace(name2fixturedefs={name: [FIXTURES[name]] for name in names if name in FIXTURES}),
        iter_markers=lambda name: [types.SimpleNamespace(args=marks)] if marks and name == "cluster_of" else [])


def _order(items):
    return [name for name, _, _ in longest_first(items, lambda item: item[1], lambda item: item[2])]


def test_the_longest_unit_begins_and_stays_together():
    assert _order(ITEMS) == ["g1", "g2", "g3", "long", "a", "b"]


def test_no_test_is_lost():
    assert sorted(_order(ITEMS)) == sorted(name for name, _, _ in ITEMS)


def test_a_test_with_a_cluster_of_its_own_goes_alone():
    assert group_of(item("start_cluster")) == "test_a.py::test_b"


def test_the_host_s_network_is_one_turn():
    assert group_of(item("host_network")) == "host_network"


def test_the_cluster_of_a_module_is_one_group():
    assert group_of(item("cluster", "probe", version=1)) == group_of(item("cluster", version=0)) != group_of(item("other"))


def test_each_parameter_of_a_cluster_is_a_group():
    assert group_of(item("cluster", cluster=0)) != group_of(item("cluster", cluster=1))


def test_a_parameter_that_chooses_the_cluster_is_named_by_a_mark():
    assert group_of(item("cluster", marks=("carrier",), carrier=0)) != group_of(item("cluster", marks=("carrier",), carrier=1))
