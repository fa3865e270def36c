"""What the pages of results say of a target (bench/experiments/ratios.py)."""

import pytest

from bench.experiments import ratios


def test_of_nine_rounds_the_interval_leaves_out_one_on_each_side():
    assert ratios.interval([0.9, 5.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 0.1]) == (0.9, 1.5)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_of_few_rounds_it_is_from_the_least_to_the_most(count):
    assert ratios.interval(list(range(count))) == (0, count - 1)


@pytest.mark.parametrize("most,said", [(1.5, "met"), (1.3, "met"), (1.2, "undecided"), (1.0, "undecided"), (0.9, "missed")])
def test_a_target_within_the_interval_is_undecided(most, said):
    assert ratios.verdict([1.0, 1.1, 1.2, 1.3], most) == said


def test_the_cells_of_a_row():
    assert ratios.columns([1.0, 1.1, 1.3], 1.05) == "**1.10** | 1.00-1.30 | <= 1.05 | undecided"
    assert ratios.columns([1.0, 1.1, 1.3]) == "**1.10** | 1.00-1.30 | | "
