"""In which order several processes take the tests (pytest-xdist, one unit of work after another)."""

import collections


def longest_first(items, group_of, limit_of):
    """Tests that share a cluster are one unit of work: one process runs all of them, one after another. Such a unit that begins last
    leaves the other processes without work. So units go by what they may take at most: by the limit of their longest test, and by
    their number of tests. Within a unit the order stays."""
    sizes = collections.Counter(group_of(item) for item in items)
    limits = {}
    for item in items:
        limits[group_of(item)] = max(limits.get(group_of(item), 0), limit_of(item))
    return sorted(items, key=lambda item: limits[group_of(item)] + sizes[group_of(item)], reverse=True)
