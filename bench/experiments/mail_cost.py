"""The cost of an aggregator of mail, from /proc: of a process and its descendants. Those that have ended are counted at their parent."""

import contextlib
import os

from bench.experiments.mail_peers import TICK_NS
from bench.experiments.processes import cpu_ns, living

SECTOR = 512  # bytes, whatever the disk has


def _cpu_ns(pid):
    """Its own time, which the kernel tells exactly, and that of children it waited for, in ticks."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return cpu_ns([pid]) + (int(fields[13]) + int(fields[14])) * TICK_NS


def _io(pid, key):
    with open(f"/proc/{pid}/io", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key))


def _memory(pid):
    """Pages that processes share count in parts."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:")) * 1024


def _sum(read, pid):
    total = 0
    for one in living(pid):
        with contextlib.suppress(OSError):
            total += read(one)
    return total


def cpu_s(pid):
    return _sum(_cpu_ns, pid) / 1e9


def written_bytes(pid):
    """Bytes that it made the kernel write to a disk; those to a file system in memory are not counted."""
    return _sum(lambda one: _io(one, "write_bytes"), pid)


def read_bytes(pid):
    """Bytes that it made the kernel read from a disk; what was in memory still is not counted."""
    return _sum(lambda one: _io(one, "read_bytes"), pid)


def memory_bytes(pid):
    return _sum(_memory, pid)


def disk_bytes(folder):
    """(bytes read, bytes written) of the disk of this folder, by whomever, the journal of its file system included. None: this machine
    does not say."""
    device = os.stat(folder).st_dev
    try:
        with open(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat", encoding="ascii") as f:
            fields = f.read().split()
            return int(fields[2]) * SECTOR, int(fields[6]) * SECTOR
    except OSError:
        return None
