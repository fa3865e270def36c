"""The cost of processes, from /proc: CPU time in nanoseconds and private memory in bytes, summed over process trees."""

import contextlib
import os


def _read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def tree(pid):
    """A process and all its descendants."""
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in _read(f"/proc/{pid}/task/{task}/children").split():
            found += tree(int(child))
    return found


def living(pid):
    """The same. Some may end while this looks."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in _read(f"/proc/{pid}/task/{task}/children").split():
                found += living(int(child))
    return found


def cpu_ns(pids):
    """CPU time of all their threads. The first number of schedstat counts nanoseconds; utime counts ticks."""
    return sum(int(_read(f"/proc/{pid}/task/{task}/schedstat").split()[0])
               for pid in pids for task in os.listdir(f"/proc/{pid}/task"))


def private_bytes(pids):
    """Memory that would become free without these processes; memory that they share with each other or with files does not
    count. Only root may read it for RAgent and agents."""
    kilobytes = 0
    for pid in pids:
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                kilobytes += int(line.split()[1])
    return kilobytes * 1024
