"""An agent's stead taken by one that only has sessions (tests/lib/session_planter.c), which the others then hold too.

    with planted(cluster, "a3", 100000): ...

Every hundredth session is for rare.example, the others are for www.example; every second is of TLS 1.3."""

import contextlib
import subprocess

from tests.lib.build import binary, patience
from tests.lib.waiting import wait_until

RARE_EVERY = 100


def _planter(cluster, name, count):
    command = [binary("tests/lib/session_planter"), "--config", cluster.dir / "cluster.yaml", "--name", name, "--sessions", str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def planted(cluster, name, count):
    """Kills the agent `name`, and starts a process in its place that shares `count` sessions and stays until the end of this
    context."""
    cluster.kill(name)
    with _planter(cluster, name, count) as planter:
        assert planter.stdout.readline() == f"planted {count}\n"
        yield
        planter.stdin.close()
        assert planter.wait(patience(10)) == 0


def all_have(cluster, count):
    """Waits until every running agent has so many sessions, and has got the last message."""
    def held():
        agents = cluster.control("GET", "/v1/sessions/count")["agents"]
        return agents and set(agents.values()) == {count}

    wait_until(held, patience(30), f"{count} sessions at every agent")
