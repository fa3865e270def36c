"""Waiting for a state of another process."""

import time

LOOK_S = 0.02


def wait_for(condition, seconds, what, look_s=LOOK_S):
    """Calls condition() until it returns something true, and returns that."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(look_s)
    return value
