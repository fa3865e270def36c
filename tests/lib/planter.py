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
    """The agent `name` is killed; from its stead come `count` sessions, and stay there until the end of this."""
    cluster.kill(name)
    with _planter(cluster, name, count) as planter:
        assert planter.stdout.readline() == f"planted {count}\n"
        yield
        planter.stdin.close()
        assert planter.wait(patience(10)) == 0


def all_have(cluster, count):
    """Until every agent that runs has so many sessions, and what came last is there."""
    def held():
        agents = cluster.control("GET", "/v1/sessions/count")["agents"]
        return agents and set(agents.values()) == {count}

    wait_until(held, patience(30), f"{count} sessions at every agent")
