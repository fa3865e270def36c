#!/usr/bin/python3 -IS
"""Ports that no process uses for TCP or UDP, on any address of this machine. As a program, with a COUNT: so many, one a line.

Outgoing connections cannot take one before its use, because all are outside the range from which the kernel takes the ports of those.
Other callers, of any user, do not get it either: the ports are given in a circle, so that one is given again only after all the
others. And no port is tried by binding it, because that would keep its owner from listening for a moment."""

import fcntl
import os
import stat
import sys
import time

LOWEST, HIGHEST = 10081, 65535  # browsers refuse 10080
WAITS_S = 60  # the other one needs a few ms, but may wait for a processor


def ports():
    """In the order in which they are given. If the kernel uses all of them for outgoing connections, nothing is left to avoid."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as kernel:
        first, last = map(int, kernel.read().split())
    return [port for port in range(LOWEST, HIGHEST + 1) if not first <= port <= last] or list(range(LOWEST, HIGHEST + 1))


def used():
    """The local ports of all sockets."""
    found = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        try:
            with open(f"/proc/net/{name}", encoding="ascii") as table:
                next(table)
                found.update(int(line.split(None, 2)[1].rpartition(":")[2], 16) for line in table)
        except FileNotFoundError:  # a kernel without IPv6
            pass
    return found


def open_note(path):
    """The note has the port that was given last. It is for all users, and in a folder like /tmp the kernel lets nobody create what
    another user has (fs.protected_regular)."""
    for flags in (0, os.O_CREAT | os.O_EXCL, 0):
        mask = os.umask(0)
        try:
            note = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o666)
            break
        except (FileNotFoundError, FileExistsError):
            pass
        finally:
            os.umask(mask)
    else:
        os.stat(os.path.dirname(path))
        raise OSError(f"{path} comes and goes")
    if not stat.S_ISREG(os.fstat(note).st_mode):
        raise OSError(f"{path} is no file")
    return note


def lock(note, path):
    end = time.monotonic() + WAITS_S
    while True:
        try:
            return fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise OSError(f"{path} is locked by another process")
            time.sleep(0.005)


def free_ports(count):
    """So many, which nobody else gets before all the others."""
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "cssl-ports")
    taken = used()  # before others have to wait
    order = [port for port in ports() if port not in taken]
    if len(order) < count:
        raise OSError("no free ports")
    note = open_note(path)
    try:
        lock(note, path)
        text = os.pread(note, 16, 0).strip()
        last = int(text) if text.isdigit() else 0
        begin = next((i for i, port in enumerate(order) if port > last), 0)  # behind the one that was given last
        chosen = (order[begin:] + order[:begin])[:count]
        os.pwrite(note, b"%-6d\n" % chosen[-1], 0)
        return chosen
    except OSError as e:
        if e.errno:  # a full disk does not tell the file
            e.filename = path
        raise
    finally:
        os.close(note)


if __name__ == "__main__":
    print(*free_ports(int(sys.argv[1])), sep="\n")
