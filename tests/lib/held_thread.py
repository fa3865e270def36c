"""A thread that dies slowly: a tracer holds it where the kernel ends it, as a write that takes long would. Its process was killed, its
first thread has ended, and still its descriptors are open.

    with HeldThread(pid):
        os.kill(pid, signal.SIGKILL)
        ...                                  the process is not dead yet
"""

import ctypes
import os

import pytest

PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
PTRACE_O_TRACEEXIT = 0x40
WALL = 0x40000000  # __WALL: also a thread

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long] * 4
_libc.ptrace.restype = ctypes.c_long


class HeldThread:
    """The last thread of a process that has several. Skips its test where tracing is forbidden."""

    def __init__(self, pid):
        self.thread = max(int(thread) for thread in os.listdir(f"/proc/{pid}/task"))
        assert self.thread != pid, "it has one thread only"

    def __enter__(self):
        if _libc.ptrace(PTRACE_SEIZE, self.thread, 0, PTRACE_O_TRACEEXIT) < 0:
            pytest.skip(f"needs to trace a process: {os.strerror(ctypes.get_errno())}")
        return self

    def wait_held(self):
        """Waits until the process was killed and the thread is held."""
        os.waitpid(self.thread, WALL)

    def __exit__(self, *_):
        _libc.ptrace(PTRACE_DETACH, self.thread, 0, 0)
