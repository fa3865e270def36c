"""Processes that stand, and how they go on."""

import os
import pathlib
import signal

from tests.lib.build import patience
from tests.lib.waiting import wait_until


def has_stopped(pid):
    """All its threads stand: by SIGSTOP, or at a fault point."""
    return all(" T " in stat.read_text() for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"))


def wake(pid):
    """SIGCONT if it stands, and only then. At the end of a sanitized process, LeakSanitizer attaches to its threads (ptrace(2)), which stops
    them by SIGSTOP. A SIGCONT at that moment takes the SIGSTOP away, and the process waits for it without end."""
    if " T " in pathlib.Path(f"/proc/{pid}/stat").read_text():
        os.kill(pid, signal.SIGCONT)


def stop(pid):
    """Returns when it stands: a thread that runs goes on for a while after kill() has returned."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: has_stopped(pid), patience(10), "all threads stand")
