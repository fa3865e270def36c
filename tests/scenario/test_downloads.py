"""Answers that go on: the agent that gives one is killed with -9 in its middle, again and again, and the client notices nothing but
a pause; where the backend does not give the same any more it gets a fatal alert, never close_notify and never a wrong byte."""

import os
import ssl

import pytest

from tests.lib.build import scaled
from tests.lib.edits import below, edits, nobody_moves
from tests.lib.mover import Mover, settled
from tests.lib.pattern import first_difference
from tests.lib.rangeless_backend import RangelessBackend
from tests.lib.static_files import StaticFiles
from tests.lib.waiting import NotWithin

pytestmark = pytest.mark.sanitized_with("what goes on is above TLS; test_takeover and test_laws run both versions", version="1.3")
versions = pytest.mark.parametrize("version", ["1.2", "1.3"])
sizes = pytest.mark.parametrize("size", [64 << 10, 1 << 20, 20 << 20])
SECONDS = 4  # a whole answer takes so long
ATTEMPTS = 3


@pytest.fixture(scope="module")
def nginx():
    with StaticFiles() as server:
        yield server


@pytest.fixture(scope="module")
def nginx_cluster(start_module_cluster, nginx):
    return start_module_cluster("--agents", "4", "--backend", nginx.address, takeover=True, edit=nobody_moves)


@pytest.fixture(scope="module")
def rangeless():
    with RangelessBackend() as server:
        yield server


@pytest.fixture(scope="module")
def repeating_cluster(start_module_cluster, rangeless):
    return start_module_cluster("--agents", "4", "--backend", rangeless.address, takeover=True,
                                edit=edits(nobody_moves, below("sf", "repeat_downloads: 64MiB")))


@pytest.fixture(scope="module")
def repeating_nginx_cluster(start_module_cluster, nginx):
    return start_module_cluster("--agents", "4", "--backend", nginx.address, takeover=True,
                                edit=edits(nobody_moves, below("sf", "repeat_downloads: 64MiB")))


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "4", takeover=True, edit=nobody_moves)


class Download:
    """One request on a connection of its own; its agents are killed meanwhile."""

    def __init__(self, cluster, version, path, **fields):
        self.cluster, self.killed, self.before = cluster, [], cluster.counters()
        self.web = cluster.http(cluster.sf, cluster.context(version))
        self.web.request("GET", path, headers=fields)
        self.answer = self.web.getresponse()
        self.body, self.went_on = b"", False

    def read_to(self, offset):
        while len(self.body) < offset:
            data = self.answer.read(offset - len(self.body))
            assert data, f"the answer ends after {len(self.body)} bytes"
            self.body += data

    def kill_owner(self):
        """Kills the owner, if there is one: a download that is over has none, because its connection rests."""
        try:
            owner = settled(self.cluster, self.web.sock)["owner"]
        except NotWithin:
            return
        self.killed.append(owner)
        self.cluster.kill(owner)

    def kill_in_the_middle(self, size, times):
        """One owner after another."""
        for number in range(1, times + 1):
            self.read_to(size * number // (times + 1))
            self.kill_owner()

    def rest(self):
        """The whole body. Killed agents are started again."""
        self.body += self.answer.read()
        last = self.cluster.connection_of(self.web.sock)["owner"]
        resumed = self.cluster.counters().get(last, {}).get("downloads_resumed", 0)
        self.went_on = bool(last) and resumed > self.before[last]["downloads_resumed"]
        self.restart()
        return self.body

    def restart(self):
        for name in self.killed:
            self.cluster.restart(name)

    def expect_alert(self):
        """Returns the bytes before the alert."""
        with pytest.raises(ssl.SSLError, match="TLSV1_ALERT_INTERNAL_ERROR"):
            while data := self.answer.read1(1 << 16):
                self.body += data
        self.restart()
        return self.body

    def next_request(self, path="/5"):
        """On the same connection."""
        sock = self.web.sock
        self.web.request("GET", path)
        answer = self.web.getresponse()
        answer.read()
        assert answer.status == 200 and self.web.sock is sock
        self.web.close()


def in_time(attempt):
    """The download that attempt() returns. nginx sends the bytes of one second at once, and on a busy machine a kill may come
    late. A download that ended before the kill is complete, but proves nothing, so it is repeated."""
    for _ in range(ATTEMPTS):
        download = attempt()
        if download.went_on:
            return download
        download.web.close()
    raise AssertionError(f"{ATTEMPTS} times it was over before its owner was killed")


def differed(download):
    """How many repeated answers were others since the download began. Its killed agents have compared none."""
    now = download.cluster.counters()
    return sum(now[name]["downloads_differed"] - download.before[name]["downloads_differed"]
               for name in download.cluster.agents if name not in download.killed)


def count_refusals(cluster):
    """By their words, which outlive an agent."""
    return sum(cluster.log(name).count("download ended") for name in cluster.agents)


# From the embedded backend


@versions
@sizes
def test_a_download_outlives_its_agents(cluster, version, size):
    size = size if size <= 64 << 10 else scaled(size)

    def attempt():
        download = Download(cluster, version, f"/slow?bytes={size}&ms={SECONDS * 1000}")
        download.kill_in_the_middle(size, times=3)
        assert len(download.rest()) == size and first_difference(download.body, size) is None
        return download

    in_time(attempt).next_request()


@versions
def test_a_range_outlives_its_agent(cluster, version):
    size = 1 << 20

    def attempt():
        download = Download(cluster, version, f"/slow?bytes={size}&ms={SECONDS * 1000}", Range="bytes=100000-899999")
        assert download.answer.status == 206
        download.kill_in_the_middle(800000, times=2)
        assert len(download.rest()) == 800000 and first_difference(download.body, size, 100000) is None
        return download

    in_time(attempt).next_request()


@versions
def test_a_download_that_moved_outlives_its_agent(cluster, version):
    size = 1 << 20

    def attempt():
        download = Download(cluster, version, f"/slow?bytes={size}&ms={SECONDS * 1000}")
        download.read_to(size // 4)
        Mover(1)(cluster, download.web.sock)
        download.read_to(size // 2)
        download.kill_owner()
        assert len(download.rest()) == size and first_difference(download.body, size) is None
        return download

    in_time(attempt).next_request()


# From nginx


@pytest.mark.tool("nginx")
@versions
@sizes
def test_a_static_file_outlives_its_agents(nginx_cluster, nginx, version, size):
    size = size if size <= 64 << 10 else scaled(size)
    data = os.urandom(size)
    nginx.put("file", data)
    nginx.put("5", b"fives")

    def attempt():
        download = Download(nginx_cluster, version, f"/file?rate={size // SECONDS}")
        download.kill_in_the_middle(size, times=3)
        assert download.rest() == data
        return download

    in_time(attempt).next_request()


@pytest.mark.tool("nginx")
@versions
def test_a_range_of_a_static_file_outlives_its_agent(nginx_cluster, nginx, version):
    data = os.urandom(1 << 20)
    nginx.put("file", data)
    nginx.put("5", b"fives")

    def attempt():
        download = Download(nginx_cluster, version, f"/file?rate={len(data) // SECONDS}", Range="bytes=100000-899999")
        assert download.answer.status == 206
        download.kill_in_the_middle(800000, times=2)
        assert download.rest() == data[100000:900000]
        return download

    in_time(attempt).next_request()


@pytest.mark.tool("nginx")
@versions
def test_a_file_that_changed_ends_with_the_alert(nginx_cluster, nginx, version):
    old, new = os.urandom(1 << 20), os.urandom(1 << 20)
    nginx.put("file", old)
    download = Download(nginx_cluster, version, f"/file?rate={len(old) // SECONDS}")
    download.read_to(300000)
    nginx.put("file", new)
    refusals = count_refusals(nginx_cluster)
    download.kill_owner()
    body = download.expect_alert()
    assert len(body) < len(old) and old.startswith(body)
    assert count_refusals(nginx_cluster) == refusals + 1


@pytest.mark.tool("nginx")
@versions
def test_a_backend_without_ranges_ends_with_the_alert(nginx_cluster, nginx, version):
    data = os.urandom(1 << 20)
    nginx.put("file", data)
    download = Download(nginx_cluster, version, f"/rangeless/file?rate={len(data) // SECONDS}")
    assert "Accept-Ranges" not in download.answer.headers
    download.read_to(300000)
    download.kill_owner()
    body = download.expect_alert()
    assert len(body) < len(data) and data.startswith(body)


# From a backend that has no ranges, asked for the whole answer again


@versions
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("size", [64 << 10, 4 << 20])
def test_a_repeated_answer_goes_on(repeating_cluster, rangeless, version, framing, size):
    size = size if size <= 64 << 10 else scaled(size)
    data = os.urandom(size)

    def attempt():
        rangeless.reset(data)
        download = Download(repeating_cluster, version, f"/{framing}?ms={SECONDS * 1000}")
        download.kill_in_the_middle(size, times=3)
        assert download.rest() == data
        return download

    download = in_time(attempt)
    assert rangeless.answers == 1 + len(download.killed)
    download.next_request()


@versions
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_repeated_answer_that_moved_goes_on(repeating_cluster, rangeless, version, framing):
    data = os.urandom(1 << 20)

    def attempt():
        rangeless.reset(data)
        download = Download(repeating_cluster, version, f"/{framing}?ms={SECONDS * 1000}")
        download.read_to(len(data) // 4)
        Mover(1)(repeating_cluster, download.web.sock)
        download.read_to(len(data) // 2)
        download.kill_owner()
        assert download.rest() == data
        return download

    in_time(attempt).next_request()


def changed_byte(backend):
    backend.body = backend.body[:150000] + bytes([backend.body[150000] ^ 1]) + backend.body[150001:]


def changed_length(backend):
    backend.body += b"more"


def changed_status(backend):
    backend.status = 203


def changed_type(backend):
    backend.fields = {"Content-Type": "text/other"}


# Chunks do not tell their sum before, so a longer answer in chunks is no other one.
CHANGES = [(change, framing) for change in (changed_byte, changed_length, changed_status, changed_type)
           for framing in ("length", "chunked") if (change, framing) != (changed_length, "chunked")]


@versions
@pytest.mark.parametrize("change, framing", CHANGES)
def test_an_answer_that_changed_ends_with_the_alert(repeating_cluster, rangeless, version, framing, change):
    data = os.urandom(1 << 20)
    rangeless.reset(data)
    download = Download(repeating_cluster, version, f"/{framing}?ms={SECONDS * 1000}")
    download.read_to(300000)
    change(rangeless)
    refusals = count_refusals(repeating_cluster)
    download.kill_owner()
    body = download.expect_alert()
    assert len(body) < len(data) and data.startswith(body)
    assert count_refusals(repeating_cluster) == refusals + 1
    assert differed(download) == 1


@pytest.mark.tool("nginx")
@versions
def test_a_static_file_without_ranges_goes_on_where_it_may_be_repeated(repeating_nginx_cluster, nginx, version):
    data = os.urandom(1 << 20)
    nginx.put("file", data)
    nginx.put("5", b"fives")

    def attempt():
        download = Download(repeating_nginx_cluster, version, f"/rangeless/file?rate={len(data) // 2}")
        assert "Accept-Ranges" not in download.answer.headers
        download.kill_in_the_middle(len(data), times=1)
        assert download.rest() == data
        return download

    in_time(attempt).next_request()
