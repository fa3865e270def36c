"""How several processes share the tests (pytest-xdist, one unit of work after another), and what they begin with."""

import collections
import json

from tests.lib.build import BUILD, ROOT

# Seconds that a test of each function takes, as `times.py` keeps them: of the last run in this clone, or else those that git knows.
SECONDS = (ROOT / "build-test/times/seconds.json", ROOT / "tests/scenario/data/seconds.json")
UNKNOWN_S = 1


def function_of(name):
    return name.split("[")[0]


def _clusters_of_the_module(item):
    """Names of its fixtures that start one."""
    definitions = item._fixtureinfo.name2fixturedefs  # pylint: disable=protected-access
    return {name for name, each in definitions.items() if each[-1].scope == "module" and "start_module_cluster" in each[-1].argnames}


def group_of(item):
    """Tests that share a cluster stay together: of a module those with the same fixtures of clusters and the same parameters of these,
    and of the parameters that the mark `cluster_of` names. And so do those that take turns with the host's network, or several
    processes would wait for their turn."""
    if "start_module_cluster" not in item.fixturenames:
        return "host_network" if "host_network" in item.fixturenames else item.nodeid
    fixtures = _clusters_of_the_module(item)
    names = fixtures.union(*(mark.args for mark in item.iter_markers("cluster_of")))
    chosen = getattr(getattr(item, "callspec", None), "params", {})
    return " ".join([item.module.__name__, *sorted(fixtures),
                     *(f"{name}={value}" for name, value in sorted(chosen.items()) if name in names)])


def known_seconds():
    """{function: seconds of one of its tests} in this build."""
    known = {}
    for path in reversed(SECONDS):
        if path.exists():
            known.update(json.loads(path.read_text()).get(BUILD.name, {}))
    return known


def longest_first(items, group, seconds):
    """A unit of work that begins last leaves the other processes without work. Within a unit the order stays."""
    sums = collections.Counter()
    for item in items:
        sums[group(item)] += seconds(item)
    return sorted(items, key=lambda item: sums[group(item)], reverse=True)
