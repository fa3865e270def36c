"""RAgent proper dies: what service managers and operators see of it, and that it is the same in a container."""

import contextlib
import os
import pathlib
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess

import pytest

from tests.lib.build import binary, patience
from tests.lib.csslctl import csslctl
from tests.lib.dashboard import Dashboard
from tests.lib.processes import stop
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

LIMIT_US = 300_000  # of the watchdog: a sign of life is due after a third of it


def ask(web):
    web.request("GET", "/64k")
    return len(web.getresponse().read()) == 65536


class Manager:
    """A service manager: what RAgent told it."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._name = f"cssl-{secrets.token_hex(8)}"
        self._socket.bind(f"\0{self._name}")
        self._socket.setblocking(False)
        self.heard = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    @property
    def env(self):
        return {"NOTIFY_SOCKET": f"@{self._name}", "WATCHDOG_USEC": str(LIMIT_US)}

    def hear(self):
        """All that came since the last time."""
        fresh = []
        with contextlib.suppress(BlockingIOError):
            while True:
                fresh += self._socket.recv(4096).decode().split()
        self.heard += fresh
        return fresh


def test_a_service_manager_has_the_keeper_as_main_process(start_cluster):
    """The keeper gives signs of life, also while RAgent proper hangs or is not there. No next process is announced as main."""
    with Manager() as manager:
        cluster = start_cluster("--agents", "1", takeover=True, env=manager.env)
        keeper = cluster.keeper_pid()
        wait_until(lambda: {"READY=1", "WATCHDOG=1"} <= {*manager.hear(), *manager.heard}, patience(10), "it is ready, and lives")
        for number in (signal.SIGKILL, signal.SIGABRT):
            cluster.kill_ragent(number)
            manager.hear()
            wait_until(lambda: "WATCHDOG=1" in manager.hear(), patience(10), "a sign of life after the death")
        stop(cluster.pid("r1"))
        manager.hear()
        wait_until(lambda: "WATCHDOG=1" in manager.hear(), patience(10), "a sign of life while it hangs")
        os.kill(cluster.pid("r1"), signal.SIGCONT)
        manager.hear()
        # the agent says for itself that it is ready
        assert {line for line in manager.heard if line.startswith("MAINPID=")} == {f"MAINPID={keeper}", f"MAINPID={cluster.pid('a1')}"}
        assert "STOPPING=1" not in manager.heard and cluster.keeper_pid() == keeper


@contextlib.contextmanager
def after_two_deaths(start_cluster):
    """A cluster with five clients that outlived both, and still get answers at the end."""
    cluster = start_cluster("--agents", "2", takeover=True)
    with contextlib.ExitStack() as stack:
        webs = [stack.enter_context(contextlib.closing(cluster.http())) for _ in range(5)]
        assert all(ask(web) for web in webs)
        wait_until(lambda: [c["state"] for c in cluster.connections()] == ["owned"] * 5, patience(10), "all are owned")
        before = csslctl("--dir", cluster.dir, "status").facts
        assert "deaths" not in before and "at deaths" not in before
        cluster.kill_ragent()
        cluster.kill_ragent(signal.SIGABRT)
        yield cluster
        assert all(ask(web) for web in webs)


def test_csslctl_tells_what_became_of_connections(start_cluster):
    with after_two_deaths(start_cluster) as cluster:
        facts = csslctl("--dir", cluster.dir, "status").facts
        assert facts["deaths"] == "1 killed, 1 crashed, 0 hung"
        assert re.fullmatch(r"10 connections went on, 0 reset; last pause \S+ [mu]?s", facts["at deaths"]), facts
        assert "reset because" not in facts and "not restored" not in facts


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_tells_what_became_of_connections(start_cluster):
    with after_two_deaths(start_cluster) as cluster:
        control = cluster.description()["control"]
        with Dashboard(control["url"]) as page:
            page.sign_in(pathlib.Path(control["token_file"]).read_text().strip())
            page.wait_text("facts", "died 2 times (10 connections went on, 0 reset, last pause ")
            assert not page.errors()


# As in a container: a process id namespace whose first process is the keeper, run by an ordinary user without any capability.
CONTAINED = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
UNPRIVILEGED = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")


@contextlib.contextmanager
def ragent_in_a_container(cluster):
    """In place of the cluster's RAgent. Gives the process id of its keeper, as it is outside."""
    user = pwd.getpwnam("cssl-ragent")
    os.kill(cluster.keeper_pid(), signal.SIGTERM)
    assert cluster.wait_gone("r1") == 0
    for name in ("cluster.yaml", "link.key"):  # an ordinary user reads them itself
        shutil.chown(cluster.dir / name, user.pw_uid, user.pw_gid)
    command = [*CONTAINED, "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", *UNPRIVILEGED, binary("ragent/ragent"),
               "--config", cluster.dir / "cluster.yaml", "--name", "r1"]
    with (cluster.dir / "r1.log").open("a") as log, subprocess.Popen(command, env=cluster.env, stdout=log, stderr=log) as outside:
        try:
            wait_until(lambda: children(outside.pid), patience(10), "the first process of the container")
            keeper, = children(outside.pid)
            yield keeper
            os.kill(keeper, signal.SIGTERM)
            assert outside.wait(patience(20)) == 0
        finally:
            outside.kill()  # and with it all in the container, if it has not ended


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def facts_of(pid):
    """{name: value} of /proc/PID/status."""
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


@pytest.mark.root
@pytest.mark.tool("unshare", "setpriv")
def test_in_a_container_an_idle_client_outlives_it(start_cluster):
    """The keeper is process 1 there. It has no capability, and could not regain one."""
    cluster = start_cluster("--agents", "2", takeover=True)
    with ragent_in_a_container(cluster) as keeper:
        wait_until(lambda: served(cluster), patience(20), "both agents in the container's RAgent")
        facts = facts_of(keeper)
        assert facts["NSpid"].split()[-1] == "1" and facts["Uid"].split()[0] != "0"
        assert {int(facts[which], 16) for which in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        with contextlib.closing(cluster.http()) as web:
            assert ask(web)
            for deaths in (1, 2):
                child, = children(keeper)
                os.kill(child, signal.SIGKILL)
                wait_until(lambda deaths=deaths: cluster.log("r1").count("running again") == deaths, patience(20), "the next RAgent")
                assert ask(web) and facts_of(keeper)["NSpid"].split()[-1] == "1"
        assert cluster.status()["deaths"] == {"killed": 2, "crashed": 0, "hung": 0}
        assert cluster.status()["at_deaths"]["reset"] == 0


def served(cluster):
    with contextlib.suppress(OSError):
        return all(agent["state"] == "ready" for agent in cluster.status()["agents"])
    return False
