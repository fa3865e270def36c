"""Agents are killed with -9 while they answer, and every answer comes, whole: of short requests at any load, of downloads for
which the backend has ETags and ranges, its own or nginx's.

Short in every run, as long as it takes to believe it with ./cssl test --full."""

import shutil
import subprocess

import pytest

from tests.lib import foreign_load
from tests.lib.build import FULL, patience, sized
from tests.lib.foreign_load import ForeignLoad
from tests.lib.pattern import pattern
from tests.lib.tlsload import Load, check_unharmed, refused, say
from tests.lib.trouble import kill_and_return, kill_in_turns, kill_while
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(240 if FULL else 120)

SECONDS, EVERY_S = (60, 3) if FULL else (6, 2)  # each of three agents is killed once
DOWNLOAD_MS = 36000 if FULL else 5400  # longer than three agents need to come back
PAUSE_MAX_US = 100_000


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3")


def pauses(report):
    return report["pause_hit_us"]


def kill_amid_answers(cluster, load, dice):
    load.wait_for_first_answers()
    kill_in_turns(cluster, load, SECONDS, EVERY_S, dice)


@pytest.mark.alone
@pytest.mark.quiet
@pytest.mark.parametrize("path", ["/1k", "/64k", "/1m"])
def test_requests_go_on_while_agents_are_killed(cluster, load, dice, path):
    """At half load, so that the test measures the pause and not a queue."""
    load.add("get", count=24, path=path, every_ms={"/1k": 10, "/64k": 20, "/1m": 200}[path])
    kill_amid_answers(cluster, load, dice)
    report = check_unharmed(load.stop("get"))
    print(f"{path}: {report['answers']} answers, pauses {pauses(report)}")
    assert pauses(report)["count"] > 0
    assert pauses(report)["p99"] <= patience(PAUSE_MAX_US), say(report)


@pytest.mark.parametrize("path", ["/1k", "/64k"])
def test_nothing_is_lost_at_full_load(cluster, load, dice, path):
    load.add("get", count=64, path=path)
    kill_amid_answers(cluster, load, dice)
    check_unharmed(load.stop("get"))


@pytest.mark.tool(*foreign_load.TOOLS)
def test_load_generators_see_nothing_of_the_kills(cluster, dice):
    with ForeignLoad(cluster) as load:
        load.wait_connected()
        victims = kill_while(load.runs, cluster, EVERY_S, dice)
        said = load.check()
    counters = cluster.counters()["ragent"]
    busy, idle = counters["takeovers_adopted"], counters["takeovers_rested"]  # where the load is slow, few are waiting for an answer
    assert busy + idle >= len(victims)
    print(f"{len(victims)} kills, {busy} busy and {idle} idle connections taken over; {said}")


def test_downloads_go_on(cluster, load):
    size, count = sized(4 << 20, 20 << 20), sized(15, 50)
    load.add("down", count=count, path=f"/slow?bytes={size}&ms={DOWNLOAD_MS}", size=size, times=1)

    def comes(to):
        """So many bytes of all downloads, or their end: on a slow machine an agent takes long to come back."""
        down = load.report()["down"]
        return down["bytes_in"] >= to or down["answers"] == count

    for tenths, agent in zip((1, 2, 3), cluster.agents):
        wait_until(lambda to=count * size * tenths // 10: comes(to), patience(30), f"{tenths} tenths of the bytes")
        kill_and_return(cluster, agent, load)
    wait_until(lambda: load.report()["down"]["under_way"] == 0, patience(60), "the ends of the downloads")
    report = load.report()["down"]
    assert cluster.counters()["ragent"]["takeovers_adopted"] > 0
    assert report["answers"] == count and not refused(report) and set(report["ends"]) == {"ours"}, say(report)
    print(f"downloads: {count} of {count} of {size} bytes, pauses {report['pause_us']}")


@pytest.mark.tool("nginx")
def test_bodies_of_nginx_are_whole(start_cluster, tmp_path, dice):
    with nginx(tmp_path, {"64k": 64 << 10, "1m": 1 << 20}) as address:
        cluster = start_cluster("--agents", "3", "--backend", address)
        with Load(cluster) as load:
            load.add("64k", count=16, path="/64k", every_ms=20)
            load.add("1m", count=8, path="/1m", every_ms=200)
            kill_amid_answers(cluster, load, dice)
            for name in ("64k", "1m"):
                print(name, check_unharmed(load.stop(name))["pause_us"])


class nginx:
    """Serves files of the pattern from a folder."""

    def __init__(self, folder, files):
        self._folder = folder
        for name, size in files.items():
            (folder / name).write_bytes(pattern(size))

    def __enter__(self):
        self._config().write_text(f"""
            daemon off; master_process off; pid {self._folder}/nginx.pid; error_log {self._folder}/error.log;
            events {{ worker_connections 1024; }}
            http {{ access_log off; sendfile on; keepalive_requests 1000000;
                client_body_temp_path {self._folder}/t1; proxy_temp_path {self._folder}/t2; fastcgi_temp_path {self._folder}/t3;
                uwsgi_temp_path {self._folder}/t4; scgi_temp_path {self._folder}/t5;
                server {{ listen unix:{self._folder}/nginx.sock; root {self._folder}; }} }}""")
        self._process = subprocess.Popen([shutil.which("nginx"), "-c", str(self._config())])
        wait_until((self._folder / "nginx.sock").exists, patience(10), "nginx")
        return f"unix:{self._folder}/nginx.sock"

    def _config(self):
        return self._folder / "nginx.conf"

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
