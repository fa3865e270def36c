"""Pictures of results: nothing of the legend is outside."""

import re

import pytest

from bench.experiments import plot

LONG = "CSSL-SF repeating"  # needs some 105 of the width


def legend_at(svg):
    """Where each name of the legend begins."""
    return [float(x) for x in re.findall(r'<text x="([\d.]+)" y="42">', svg)]


@pytest.mark.parametrize("count", range(1, len(plot.COLOURS) + 1))
def test_a_legend_is_inside_the_picture(count):
    names = [f"{LONG} {i}" for i in range(count)]
    for svg in (plot.bars("title", "x", {"row": {name: 1 for name in names}}),
                plot.lines("title", "x", "y", {name: [(0, 0), (1, 1)] for name in names})):
        at = legend_at(svg)
        assert len(at) == count
        assert at[0] >= 26 and at[-1] + 110 <= plot.WIDTH
        assert all(b - a == plot.ENTRY for a, b in zip(at, at[1:]))
