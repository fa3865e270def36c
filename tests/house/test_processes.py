"""tests/lib/processes.py wakes what stands, and sends nothing to what runs."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from test_rules import ROOT

sys.path.insert(0, str(ROOT))

from tests.lib.processes import has_stopped, wake  # noqa: E402


@pytest.fixture
def process():
    """Its SIGCONT stays pending, where the kernel shows it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
    with subprocess.Popen(["sleep", "1000"]) as started:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield started
        started.kill()


def got_sigcont(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"ShdPnd:\s*(\w+)", status)[1], 16) >> (signal.SIGCONT - 1) & 1


def test_a_process_that_runs_gets_no_sigcont(process):
    wake(process.pid)
    assert not got_sigcont(process)


def test_a_process_that_stands_goes_on(process):
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    assert has_stopped(process.pid)
    wake(process.pid)
    assert got_sigcont(process) and not has_stopped(process.pid)
