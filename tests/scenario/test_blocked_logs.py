"""Nobody reads the log any more, or the disk is full: lines are lost, and no client waits for that."""

import fcntl
import os
import pathlib
import re
import time

import pytest

from tests.lib.build import FULL, patience
from tests.lib.edits import at_end
from tests.lib.tlsload import Load, check_unharmed, say

pytestmark = [pytest.mark.alone, pytest.mark.quiet]

PIPE_LEN = 4096           # the least there is: it is full at once
F_SETPIPE_SZ = 1031
WAIT_MAX_US = 100_000


class Silent:
    """A FIFO whose reader is there and never reads."""

    def __init__(self):
        self.reader, self.path = None, None

    def __call__(self, text):
        self.path = pathlib.Path(re.search(r"unix:(.*)/links/", text).group(1)) / "all.log.fifo"
        os.mkfifo(self.path)
        self.path.chmod(0o666)
        self.reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(self.reader, F_SETPIPE_SZ, PIPE_LEN)
        return at_end(f"log: {{ path: {self.path}, level: debug }}")(text)


def full_disk(text):
    return at_end("log: { path: /dev/full, level: debug }")(text)


@pytest.mark.parametrize("log", [Silent(), full_disk], ids=["nobody reads it", "the disk is full"])
def test_clients_do_not_wait_for_the_log(start_cluster, log):
    cluster = start_cluster("--agents", "2", edit=log)
    with Load(cluster) as load:
        load.add("get", count=16, every_ms=10)
        load.add("new", count=4, every_ms=20, times=1, again="always")
        time.sleep(30 if FULL else 3)
        for name in ("get", "new"):
            report = check_unharmed(load.stop(name))
            assert report["latency_us"]["p99"] <= patience(WAIT_MAX_US), say(report)
    if isinstance(log, Silent):
        os.close(log.reader)
