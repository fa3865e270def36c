"""Processes that stand, and how they go on."""

import os
import pathlib
import signal


def has_stopped(pid):
    """All its threads stand: by SIGSTOP, or at a fault point."""
    return all(" T " in stat.read_text() for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"))


def wake(pid):
    """SIGCONT if it stands, and only then. At the end of a sanitized process, LeakSanitizer attaches to its threads (ptrace(2)), which stops
    them by SIGSTOP. A SIGCONT at that moment takes the SIGSTOP away, and the process waits for it without end."""
    if " T " in pathlib.Path(f"/proc/{pid}/stat").read_text():
        os.kill(pid, signal.SIGCONT)
