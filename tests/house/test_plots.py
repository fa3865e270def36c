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


def test_a_logarithmic_axis_has_powers_of_ten():
    svg = plot.lines("title", "x", "y", {"a": [(0, 0.05), (1, 0), (2, 50), (3, 100)]}, y_log=True)
    ticks = [float(tick) for tick in re.findall(r'text-anchor="end">([^<]+)<', svg)]
    assert ticks == [0.01, 0.1, 1, 10, 100]
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", re.search(r'd="(M[^"]+)" fill="none"', svg)[1])]
    foot, top = plot.HEIGHT - plot.BOTTOM, plot.TOP
    assert heights[1] == foot and heights[3] == top  # 0 is at the foot
    assert heights[0] == pytest.approx(foot - (foot - top) * 0.699 / 4, abs=0.1)
    assert len(set(re.findall(r'text-anchor="end">([^<]+)<', plot.lines("title", "x", "y", {"a": [(0, 1)]}, y_log=True)))) == 2
