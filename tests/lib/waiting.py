"""Waiting for a state. No test sleeps and hopes that the time is enough."""

import time

from tests.lib.build import patience

WAIT_S = 10
POLL_S = 0.01
POLL_MAX_S = 0.05


class NotWithin(TimeoutError):
    """The time of wait_until() is over; not that of a whole test."""


def wait_until(condition, timeout=None, what=None):
    """Calls condition() until it returns something true, and returns that. OSError counts as "not yet". It calls less often after a
    while, because many conditions ask a whole cluster, and other tests need the processors. @timeout None: WAIT_S, with patience."""
    timeout = patience(WAIT_S) if timeout is None else timeout
    begin = time.monotonic()
    end = begin + timeout
    error = None
    while True:
        try:
            error = None
            value = condition()
            if value:
                return value
        except OSError as e:
            error = e
        now = time.monotonic()
        if now > end:
            name = what or getattr(condition, "__name__", "condition")
            raise NotWithin(f"not within {timeout} s: {name}" + (f" ({error})" if error else ""))
        time.sleep(min(POLL_MAX_S, max(POLL_S, (now - begin) / 20)))
