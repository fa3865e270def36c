"""The daemons' memory holds keys: no other process of their user may read it, and no core file may hold it."""

import functools
import operator
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest

from tests.lib.build import patience
from tests.lib.reachable import reachable_copy
from tests.lib.waiting import wait_until

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
PTRACE_SEIZE = 0x4206

# What a thief of the same user would try: the exit status has a bit for each way that works.
THIEF = f"""
import ctypes, sys
pid, found = int(sys.argv[1]), 0
for bit, name in enumerate(("environ", "maps", "mem")):
    try:
        open(f"/proc/{{pid}}/{{name}}", "rb").close()
        found |= 1 << bit
    except PermissionError:
        pass
if ctypes.CDLL(None).ptrace({PTRACE_SEIZE}, pid, None, None) == 0:
    found |= 8
sys.exit(found)
"""


class OrdinaryCluster:
    """A cluster of an ordinary user, by ./cssl."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cssl-", dir="/tmp"))
        os.chown(self.dir, NOBODY, NOBODY)
        self._clone = reachable_copy(self.dir / "clone")

    def run(self, command, *arguments):
        env = {"PATH": os.environ["PATH"], "CSSL_BUILD_DIR": str(self._clone / "build"), "HOME": "/nonexistent"}
        return subprocess.run([*AS_NOBODY, self._clone / "cssl", command, "--dir", str(self.dir), *arguments], env=env, cwd="/", text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def pid(self, name):
        return int((self.dir / f"{name}.pid").read_text())

    def pids(self, name):
        """Of that daemon. Of RAgent: of its keeper, and of RAgent proper."""
        keeper = self.pid(name)
        return [keeper, *map(int, pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split())]

    def log(self, name):
        return (self.dir / f"{name}.log").read_text()

    def stolen(self, name):
        """The ways in which a process of the same user gets into a process of that daemon, as THIEF tells them; 0: none."""
        found = [subprocess.run([*AS_NOBODY, sys.executable, "-c", THIEF, str(pid)], check=False).returncode for pid in self.pids(name)]
        return functools.reduce(operator.or_, found)


@pytest.fixture
def ordinary():
    cluster = OrdinaryCluster()
    done = cluster.run("up", "--agents", "2")
    assert done.returncode == 0, done.stdout
    yield cluster
    done = cluster.run("down")
    assert done.returncode == 0, done.stdout
    subprocess.run(["rm", "-r", str(cluster.dir)], check=True)


@pytest.mark.root
def test_no_process_of_the_same_user_reads_a_daemons_memory(ordinary):
    assert ordinary.stolen("backend") & 7 == 7, "the thief cannot even read the backend, which hides nothing"
    assert {name: len(ordinary.pids(name)) for name in ("r1", "a1", "a2")} == {"r1": 2, "a1": 1, "a2": 1}
    for name in ("r1", "a1", "a2"):
        check_closed(ordinary, name)


def check_closed(ordinary, name):
    assert ordinary.stolen(name) == 0, name
    for pid in ordinary.pids(name):
        assert os.stat(f"/proc/{pid}/environ").st_uid == 0
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        assert limits.split("Max core file size")[1].split()[:2] == ["0", "0"]


@pytest.mark.root
def test_no_process_of_the_same_user_reads_the_memory_of_the_next_ragent(ordinary):
    keeper, proper = ordinary.pids("r1")
    os.kill(proper, signal.SIGKILL)
    wait_until(lambda: "running again" in ordinary.log("r1"), patience(10), "the next RAgent")
    assert ordinary.pids("r1")[0] == keeper and ordinary.pids("r1")[1:] not in ([], [proper])
    check_closed(ordinary, "r1")


@pytest.mark.root
def test_a_ragent_that_gave_up_root_is_not_readable_for_the_user_that_it_became(start_cluster):
    cluster = start_cluster("--agents", "1")
    status = pathlib.Path(f"/proc/{cluster.pid('r1')}/status").read_text()
    assert status.split("Uid:")[1].split()[0] != "0"
    assert os.stat(f"/proc/{cluster.pid('r1')}/environ").st_uid == 0


@pytest.mark.root
def test_an_ordinary_user_kills_restarts_and_replaces_daemons_that_he_cannot_read(ordinary):
    os.kill(ordinary.pid("a1"), signal.SIGKILL)
    wait_until((ordinary.dir / "a1.exit").exists, 10, "end of a1")
    for command, arguments in (("agent", ["a1"]), ("reload", [])):
        done = ordinary.run(command, *arguments)
        assert done.returncode == 0, done.stdout
    assert ordinary.stolen("a1") == ordinary.stolen("r1") == 0
