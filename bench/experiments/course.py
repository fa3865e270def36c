"""The course of an experiment, for whoever waits for it: which step of how many is done, and the time that is left."""

import time

from bench.experiments.report import say


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Course:
    """plan() as soon as the steps are known, done() after each."""

    def __init__(self, keep=lambda measured: None, now=time.monotonic):
        """`keep`: f({name: rows}) of all that is measured so far (report.keep)."""
        self._now, self._begin, self._weights, self._done, self._keep, self._measured = now, now(), [], 0, keep, {}

    def plan(self, *steps):
        """A step's weight is its part of the time: 1, or (count, weight) for so many steps of that weight."""
        for step in steps:
            count, weight = step if isinstance(step, tuple) else (step, 1)
            self._weights += [weight] * count

    def done(self, text, **measured):
        """`measured`: all rows of a name so far."""
        self._done += 1
        self._measured |= measured
        self._keep(self._measured)
        before, after = sum(self._weights[:self._done]), sum(self._weights[self._done:])
        left = (self._now() - self._begin) * after / before
        say(f"step {self._done} of {len(self._weights)}, {duration(left)} left: {text}")

    def check_end(self):
        """An experiment that planned other steps than it made told a wrong time."""
        if self._done != len(self._weights):
            raise AssertionError(f"{self._done} steps were made of {len(self._weights)} that were planned")
