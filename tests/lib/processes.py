"""What the kernel says of processes."""

import pathlib


def has_stopped(pid):
    """All its threads stand: by SIGSTOP, or at a fault point."""
    return all(" T " in stat.read_text() for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"))
