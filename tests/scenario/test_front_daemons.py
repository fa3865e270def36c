"""Which processes the front door takes for a cluster's daemons, and ends: no words of a command line prove that."""

import contextlib
import fcntl
import os
import signal
import subprocess

import pytest

from front.cluster import commands, daemons, ports
from front.cluster.plan import Cluster as FrontCluster
from tests.lib.build import patience
from tests.lib.waiting import wait_until
from tests.scenario.test_front_door import NOBODY, folder

__all__ = ["folder"]  # pytest finds this fixture by its name
pytestmark = pytest.mark.plain  # a sanitizer changes nothing here


@contextlib.contextmanager
def decoy(place, name, does="pass", **more):
    """A process with the command line of an agent, which has done that."""
    words = ["/x/sslagent", "-ISc", f"import os, sys; {does}; print(flush=True); sys.stdin.read()", "--config", f"{place}/cluster.yaml",
             "--name", name]
    with subprocess.Popen(words, executable="/usr/bin/python3", cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more) as process:
        assert process.stdout.readline() == b"\n"
        yield process
        process.kill()


@pytest.mark.root
@pytest.mark.parametrize("does,more,owner,is_ours", [("pass", {}, 0, True), ("pass", {"user": NOBODY}, 0, False), ("pass", {"user": NOBODY}, NOBODY, True),
                                                     ("os.setresuid(0, 0, 65533)", {}, 0, False), ("os.chroot('/tmp')", {}, 0, False)])
def test_a_process_of_another_user_or_root_directory_is_no_daemon_of_this_cluster(folder, does, more, owner, is_ours):
    os.chown(folder, owner, -1)
    with decoy(folder, "a1", does, **more) as process:
        assert daemons.running(FrontCluster(str(folder), {}, None), "a1") == process.pid * is_ours


def test_all_processes_of_all_daemons_stop_whatever_keeps_one_from_it(folder, monkeypatch):
    said, kill = [], os.kill
    cluster = FrontCluster(str(folder), {}, said.append)
    cluster.plan = {"agents": ["a1", "a2", "a3"]}
    (folder / "a2.pid").write_text("what a full disk left\n")
    with contextlib.ExitStack() as stack:
        first, *others = [stack.enter_context(decoy(folder, name)) for name in ("a1", "a3", "a3")]

        def refuse_first(pid, number):
            if (pid, number) == (first.pid, signal.SIGTERM):
                raise PermissionError(1, "Operation not permitted")
            kill(pid, number)
        monkeypatch.setattr(os, "kill", refuse_first)
        (folder / "a3.exit").write_text("0\n")
        assert not daemons.stop_all(cluster)
        assert first.poll() is None and [other.wait(patience(5)) for other in others] == [-15, -15]
    assert said[0] == "cssl: a1: [Errno 1] Operation not permitted\n" and said[1].startswith("cssl: a2: ") and not any(said[2:]), said


def test_a_turn_of_another_user_is_waited_for(folder, monkeypatch):
    """Who may not write there learns from the command what it may not do. A full disk may have kept the other one's name."""
    said, opens = [], os.open

    def open_to_read(path, flags, *mode):
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied", path)
        return opens(path, flags, *mode)
    cluster = FrontCluster(str(folder), {}, said.append)
    with commands._turn(cluster, ["first"]):  # pylint: disable=protected-access
        (folder / "turn").write_text("")
        monkeypatch.setattr(os, "open", open_to_read)
        monkeypatch.setattr(fcntl, "flock", lambda lock, how, real=fcntl.flock: how & fcntl.LOCK_NB and real(lock, how))  # does not wait
        with commands._turn(cluster, ["second"]):  # pylint: disable=protected-access
            pass
    assert said == [f"cssl: waiting for another command, which uses {folder}\n"]
    (folder / "turn").unlink()
    with pytest.raises(PermissionError, match="Permission denied"), commands._turn(cluster, ["third"]):  # pylint: disable=protected-access
        pass


def test_what_is_wrong_with_the_note_of_the_ports_is_told(folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(ports, "WAITS_S", 0)
    note = folder / "cssl-ports"
    with subprocess.Popen(["flock", note, "cat"], stdin=subprocess.PIPE) as other:
        wait_until(lambda: note.exists() and subprocess.run(["flock", "--nonblock", note, "true"], check=False).returncode, patience(5), "the lock")
        with pytest.raises(OSError, match=f"^{note} is locked by another process$"):
            ports.free_ports(1)
        other.stdin.close()
    monkeypatch.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=f"No space left on device: '{note}'"):
        ports.free_ports(1)
