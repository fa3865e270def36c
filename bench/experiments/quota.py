"""Servers with a fixed share of a core each, as if each were a machine of its own: by cgroups, version 1 or 2. Without that, two
servers on one host share its cores, and a server with too much work takes the other's time. Then the total would not show how
evenly a balancer spreads the work."""

import contextlib
import math
import os
import pathlib

PERIOD_US = 10000
LEAST_QUOTA_US = 1000  # the kernel refuses less; a smaller share has a longer period
ROOT_V1 = pathlib.Path("/sys/fs/cgroup/cpu")
ROOT_V2 = pathlib.Path("/sys/fs/cgroup")


def _times(share):
    """(quota, period) of this share, in microseconds."""
    period = max(PERIOD_US, math.ceil(LEAST_QUOTA_US / share))
    return max(LEAST_QUOTA_US, int(period * share)), period


def _limit_v1(folder, share):
    quota, period = _times(share)
    (folder / "cpu.cfs_period_us").write_text(str(period))
    (folder / "cpu.cfs_quota_us").write_text(str(quota))


def _limit_v2(folder, share):
    quota, period = _times(share)
    (folder / "cpu.max").write_text(f"{quota} {period}")


class Quotas:
    """Gives processes a share of a core. Use as a context; at its end they run without a limit again."""

    def __init__(self):
        self._folders = []
        self._root, self._limit = (ROOT_V1, _limit_v1) if (ROOT_V1 / "cgroup.procs").exists() else (ROOT_V2, _limit_v2)

    def __enter__(self):
        if self._root == ROOT_V2:
            with contextlib.suppress(OSError):
                (ROOT_V2 / "cgroup.subtree_control").write_text("+cpu")
        return self

    def is_allowed(self):
        """Containers may show the hierarchy but forbid changes."""
        return os.access(self._root, os.W_OK) and (self._root / "cgroup.procs").exists()

    def limit(self, pids, share):
        """All these processes together; from 1 on there is no limit. OSError if this host forbids it."""
        if share >= 1:
            return
        folder = self._root / f"cssl-bench-{os.getpid()}-{len(self._folders)}"
        folder.mkdir()
        self._folders.append(folder)
        self._limit(folder, share)
        for pid in pids:
            (folder / "cgroup.procs").write_text(str(pid))

    def __exit__(self, *_):
        for folder in self._folders:
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (self._root / "cgroup.procs").write_text(pid)
            folder.rmdir()
