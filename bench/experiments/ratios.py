"""Ratios of two systems in the same rounds: their median, an interval for it, and what that says of a target."""

import math
import statistics

SURE = 0.95

NOTE = """\
*interval* holds the true median with a certainty of 95 % (of fewer than six rounds it is from the least to the most); a target within it
is *undecided*."""


def of_few(rounds):
    """What to say behind NOTE of an interval from the least to the most of so few rounds; "": they are enough."""
    return "" if rounds >= 6 else f" Of {rounds} round{'s' * (rounds > 1)} the certainty is {100 * (1 - 2.0**(1 - rounds)):.0f} %."


def interval(values):
    """The narrowest interval of two of the values, counted from both ends, that holds the true median with a certainty of 95 %,
    whatever the distribution is. With fewer than six values no interval does: then this is from the least to the most."""
    ordered = sorted(values)
    n, below, best = len(ordered), 0.0, 0
    for k in range(n // 2):
        below += math.comb(n, k) / 2**n  # at most k values on one side of the median
        if 1 - 2 * below >= SURE:
            best = k
    return ordered[best], ordered[n - 1 - best]


def verdict(values, most):
    """"met" or "missed" where the whole interval is on one side of the target, otherwise "undecided"."""
    low, high = interval(values)
    return "met" if high <= most else "missed" if low > most else "undecided"


def columns(values, most=None):
    """Four cells of a table: median, interval, target, verdict."""
    low, high = interval(values)
    target = f"<= {most:.2f} | {verdict(values, most)}" if most else "| "
    return f"**{statistics.median(values):.2f}** | {f'{low:.2f}-{high:.2f}' if len(values) > 1 else 'one run'} | {target}"
