"""Which scenarios a step of `./cssl test` runs ($CSSL_TESTS). Without a word all run: a person asks for what he names.

    sanitized   all but those marked `plain`, and of parameters with `sanitized_with` only the named value
    plain       what does not run sanitized, and one variant of each function
    once        all of these, each once
    alone       the same of what measures: those marked `alone`, which run sanitized beside all others
    quiet       of these only those marked `quiet`, too, of which two may run beside each other

A function with several parameters runs for each pair of their values (pairwise), and for each combination only with the mark
`every_combination` or at full length: most faults need one value, or two together."""

import collections
import itertools
import os

from tests.lib.work_order import function_of

VARIANTS_MAX = 60
WHICH = os.environ.get("CSSL_TESTS", "all")


def _parameters(item):
    return getattr(getattr(item, "callspec", None), "params", {})


def _known(value):
    return value if isinstance(value, (str, bytes, int, float, tuple)) else id(value)


def _pairs(items):
    """{item: pairs of its parameters' values}. Where a parameter is a tuple, of one length for all, it is several parameters in one."""
    lengths = collections.defaultdict(set)
    for item in items:
        for name, value in _parameters(item).items():
            lengths[name].add(len(value) if isinstance(value, tuple) else None)
    found = {}
    for item in items:
        values = [((name, number), _known(part)) for name, value in sorted(_parameters(item).items())
                  for number, part in enumerate(value if len(lengths[name]) == 1 and value and isinstance(value, tuple) else (value,))]
        found[item] = set(itertools.combinations(values, 2))
    return found


def pairwise(items):
    """Some of these variants of one function, in their order: every pair of two values that occurs in them occurs in one that is left."""
    pairs = _pairs(items)
    missing, chosen = set().union(*pairs.values()), set()
    left = list(items)
    while missing:
        best = max(left, key=lambda item: len(pairs[item] & missing))  # of equals the first
        chosen.add(best)
        left.remove(best)
        missing -= pairs[best]
    return [item for item in items if item in chosen] or items


def _thinned(items):
    functions = collections.defaultdict(list)
    for item in items:
        functions[function_of(item.nodeid)].append(item)
    kept = set()
    for variants in functions.values():
        kept.update(variants if variants[0].get_closest_marker("every_combination") else pairwise(variants))
    return [item for item in items if item in kept]


def check_width(items):
    """A product of parameters grows without being seen; so one that is wide has its reason beside it."""
    counts = collections.Counter(function_of(item.nodeid) for item in items)
    reasons = {function_of(item.nodeid) for item in items if item.get_closest_marker("wide") or item.get_closest_marker("every_combination")}
    for name, count in counts.items():
        if count > VARIANTS_MAX and name not in reasons:
            raise ValueError(f"{name} runs in {count} variants: more than {VARIANTS_MAX} need the mark `wide` with the reason")


def _runs_sanitized(item):
    given = _parameters(item)
    return not item.get_closest_marker("plain") and all(
        given.get(name, value) == value for mark in item.iter_markers("sanitized_with") for name, value in mark.kwargs.items())


def _one_of_each(items):
    return {function_of(item.nodeid): item for item in reversed(items)}.values()


def selected(items, which=WHICH, full=False):
    if which == "all" or full:
        return items
    items = _thinned(items)
    check_width(items)
    if which == "once":
        return items
    if which == "sanitized":
        return [item for item in items if _runs_sanitized(item)]
    wanted = {*_one_of_each(items), *(item for item in items if not _runs_sanitized(item))}
    items = [item for item in items if item in wanted and bool(item.get_closest_marker("alone")) == (which != "plain")]
    return [item for item in items if item.get_closest_marker("quiet")] if which == "quiet" else items
