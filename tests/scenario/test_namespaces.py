"""A partition without fault points: an agent in a network namespace of its own, behind a cable that loses chosen frames."""

import contextlib
import re
import secrets
import subprocess
import time

import pytest

from tests.lib.backend import Backend
from tests.lib.build import BUILD, FULL, patience, sized
from tests.lib.edits import nobody_moves
from tests.lib.tlsload import check_honest, check_unharmed, refused
from tests.lib.trouble import Executions, wait_consistent
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.tool("ip"), pytest.mark.limit(240 if FULL else 120)]

SECONDS = 30 if FULL else 8
SHORT_CUT = 2  # of the 3 seconds after which an agent counts as lost
ALL_WAYS = {"it hears nothing": ("out",), "it is not heard": ("in",), "neither": ("out", "in")}
NOBODY = "02:00:00:00:00:99"
FAR = "a3"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Cable:
    """A veth pair into a namespace: `near` is this host's address, `far` the namespace's."""

    def __init__(self):
        mark = secrets.token_hex(3)
        self.name, self._near_end, self._far_end = f"cssl-{mark}", f"n{mark}", f"f{mark}"
        net = f"10.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}"
        self.near, self.far = f"{net}.1", f"{net}.2"

    def __enter__(self):
        ip("netns", "add", self.name)
        ip("link", "add", self._near_end, "type", "veth", "peer", "name", self._far_end)
        ip("link", "set", self._far_end, "netns", self.name)
        for where, end, address in ((), self._near_end, self.near), (("-n", self.name), self._far_end, self.far):
            ip(*where, "addr", "add", f"{address}/24", "dev", end)
            ip(*where, "link", "set", end, "up")
        ip("-n", self.name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        ip("netns", "del", self.name)  # and the pair with it

    @contextlib.contextmanager
    def lossy(self, ways):
        """Frames for an address that no host has are lost silently: "out" into the namespace, "in" from it."""
        ends = {"out": ((), self._near_end, self.far), "in": (("-n", self.name), self._far_end, self.near)}
        for way in ways:
            where, end, address = ends[way]
            ip(*where, "neigh", "replace", address, "lladdr", NOBODY, "nud", "permanent", "dev", end)
        yield
        for way in ways:
            where, end, address = ends[way]
            ip(*where, "neigh", "del", address, "dev", end)


def build_with_a_far_agent(folder, cable):
    """The programs of this build, but that agent starts in the namespace."""
    (folder / "sslagent").mkdir(parents=True)
    for name in ("ragent", "bench", "meson-info"):
        (folder / name).symlink_to(BUILD / name)
    agent = folder / "sslagent" / "sslagent"
    agent.write_text(f"""#!/bin/bash
case " $* " in *" --name {FAR} "*) exec ip netns exec {cable.name} {BUILD}/sslagent/sslagent "$@" ;; esac
exec {BUILD}/sslagent/sslagent "$@"
""")
    agent.chmod(0o755)
    return folder


PROTECTIONS = {"sealed": "sealed", "trusted": 'trusted\n    trusted_because: "this cable is on one host"'}


def over_the_cable(cable, protection):
    """No connection moves for balance. Links of that agent over TCP, and agents reach each other by the cable's addresses."""
    def edit(text):
        text = re.sub(r"    peer: 127\.0\.0\.1:", f"    peer: {cable.near}:", text)
        before, agent = re.split(rf"(?=  - name: {FAR}\n)", text, maxsplit=1)
        agent = agent.replace(f"peer: {cable.near}:", f"peer: {cable.far}:", 1)
        agent = re.sub(r"    peer_socket: .*\n", "", agent, count=1)
        agent = re.sub(r"    link: .*\n    link_protection: .*\n", f"    link: {cable.far}:7300\n    link_protection: {PROTECTIONS[protection]}\n", agent, count=1)
        return nobody_moves(before + agent)
    return edit


@pytest.fixture
def cable(host_network):  # pylint: disable=unused-argument
    with Cable() as made:
        yield made


@pytest.fixture
def protection():
    """Of the link through the cable, where a test does not name another."""
    return "sealed"


@pytest.fixture
def cluster(start_cluster, cable, protection, tmp_path):
    with Backend(listen=[f"{cable.near}:0"]) as backend:
        folder = build_with_a_far_agent(tmp_path / "build", cable)
        cluster = start_cluster("--agents", "3", "--backend", backend.addresses[0], edit=over_the_cable(cable, protection), takeover=True,
                                env={"CSSL_BUILD_DIR": str(folder)})
        host, port = backend.addresses[0].rsplit(":", 1)
        cluster.counting = host, int(port)
        yield cluster


@pytest.mark.parametrize("ways", ALL_WAYS.values(), ids=ALL_WAYS.keys())
def test_an_agent_behind_a_cut_cable(cluster, load, cable, ways, tmp_path):
    """No backend hears two owners: no request of a client is executed twice, nor is an upload, which is under way in any moment."""
    ids, up_ids = tmp_path / "ids", tmp_path / "up-ids"
    load.add("idle", count=sized(150, 500), run="waits")
    check_unharmed(load.ask("idle"))
    assert FAR in {c["owner"] for c in cluster.connections()}
    load.add("get", count=24, every_ms=40)
    load.add("post", count=24, method="POST", path="/count", id="post", ids=ids, body=3000, every_ms=10, again="lost")
    load.add("up", count=12, method="POST", path="/sha256", id="up", ids=up_ids, body=1 << 20, rate=1 << 20, again="lost")
    with cable.lossy(ways):
        load.mark(FAR)
        time.sleep(SECONDS)
        check_unharmed(load.ask("idle"))
        assert FAR not in {c["owner"] for c in cluster.connections()}
        assert next(a for a in cluster.status()["agents"] if a["name"] == FAR)["state"] != "ready"
    wait_consistent(cluster, 30)
    for name, path in ("post", ids), ("up", up_ids):
        report = check_honest(load.stop(name))
        assert set(refused(report)) <= {"502"}, report
        Executions(cluster, path, cluster.counting).check()
    report = check_unharmed(load.stop("get"))
    print(f"{report['answers']} answers, the latest after {report['latency_us']['max'] / 1000} ms")
    check_unharmed(load.ask("idle"))


def counters(cluster, *names):
    everything = cluster.counters()["ragent"]
    return {name: everything[name] for name in names}


@pytest.mark.parametrize("ways,protection", [
    pytest.param(ways, protection, id=f"{name}, {protection}") for protection in PROTECTIONS for name, ways in ALL_WAYS.items()
    if FULL or protection == "sealed" or name == "neither"])
def test_a_cut_that_is_shorter_than_lost_costs_nobody_anything(cluster, load, cable, ways, tmp_path):
    """No connection changes its owner, every byte is right both ways, and no backend gets an upload twice."""
    load.add("idle", count=60, run="waits")
    load.add("down", count=8, path="/20m", rate=sized(1 << 20, 4 << 20))
    load.add("up", count=8, method="POST", path="/sha256", id="up", ids=tmp_path / "ids", body=4 << 20, rate=sized(20 << 20, 64 << 20))
    load.add("get", count=24, every_ms=40)
    wait_consistent(cluster, 30)
    # each has its connection to the backend, which is behind the same cable
    wait_until(lambda: load.report()["get"]["answers"] > 20 * 24, patience(20), "all are served")
    assert FAR in {c["owner"] for c in cluster.connections()}
    epochs = {c["id"]: c["epoch"] for c in cluster.connections()}
    taken_over = "takeovers_adopted", "takeovers_rested", "takeovers_restarted", "takeovers_ended", "records_replayed"
    before = counters(cluster, *taken_over)
    for _ in range(sized(2, 10)):
        with cable.lossy(ways):
            time.sleep(SHORT_CUT)
        wait_consistent(cluster, 30)
        check_unharmed(load.ask("idle"))
    assert counters(cluster, *taken_over) == before
    assert {c["id"]: c["epoch"] for c in cluster.connections()} == epochs
    assert counters(cluster, "reattached")["reattached"] > 0
    for name in ("down", "up", "get"):
        check_unharmed(load.stop(name))
    executed = Executions(cluster, tmp_path / "ids", cluster.counting).check().executed
    assert executed and set(executed.values()) == {1}, executed
