"""smtpproxy's status socket: counts for programs that may see no mail, as the dashboard, which shows them."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import threading

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.dashboard import Dashboard
from tests.lib.mail import Sink, source
from tests.lib.smtp_control import ask
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

READERS_MAX = 16


class Look:
    """A program that has connected, and may have said something."""

    def __init__(self, path, says=b""):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience(10))
        self.socket.connect(str(path))
        if says:
            self.socket.sendall(says)

    def text(self):
        with contextlib.suppress(ConnectionResetError):
            return self.socket.makefile("rb").read()
        return b""

    def close(self):
        self.socket.close()


def look(path, says=b""):
    one = Look(path, says)
    try:
        return json.loads(one.text())
    finally:
        one.close()


@pytest.fixture(name="status")
def _status(open_folder):
    return open_folder / "status.sock"


@pytest.fixture(name="start")
def _start(open_folder, status):
    return lambda sink, **keys: Proxy(open_folder, next_hop=sink.address, status=str(status), handover=str(open_folder / "handover.sock"), **keys)


def test_it_tells_counts_and_nothing_of_mail(start, status):
    with Sink() as sink, start(sink, limits={"connections_per_destination": 1}, outward={"sources": [{"address": "127.0.0.9"}]}) as proxy:
        assert source(proxy.address, "-m", "5", "-d", "--proxy", "v2", "--proxy-source", "192.0.2.9").counts["sent"] == 5
        with Talk(proxy.address, source="192.0.2.1") as first, Talk(proxy.address, source="192.0.2.2") as second:
            for client in first, second:
                client.ehlo()
            first.mail()
            second.send("MAIL FROM:<a@b>\r\n")
            wait_until(lambda: look(status)["sessions"]["waiting"] == 1, patience(10), "a sender that waits")
            told = look(status)
    assert told["sessions"] == {"now": 2, "waiting": 1, "sending": 1}
    assert (told["name"], told["deliver"], told["queue"], told["hooks"]) == ("proxy.example", "relay", None, [])
    assert told["counters"]["accepted"] == told["counters"]["transactions"] == 5
    receiver, = told["destinations"]["rows"]
    assert (receiver["address"], receiver["limit"], receiver["waiting"], receiver["accepted"]) == (text_of(sink.address), 1, 1, 5)
    assert (told["destinations"]["total"], told["sources"]) == (1, [{"address": "127.0.0.9:0", "weight": 1}])
    assert not any(word in json.dumps(told) for word in ("@", "192.0.2.", "client.example"))


def test_it_changes_nothing_and_anybody_who_gets_there_may_look(start, status):
    with Sink() as sink, start(sink) as proxy:
        before = json.loads(ask(proxy, "/v1/status"))["counters"]
        assert look(status, says=b"POST /v1/queue/takeover HTTP/1.1\r\n\r\n" * 100)["sessions"]["now"] == 0
        assert json.loads(ask(proxy, "/v1/status"))["counters"] == before
        assert (status.stat().st_mode & 0o777, proxy.control.stat().st_mode & 0o777) == (0o666, 0o600)


def test_programs_that_stay_are_few(start, status):
    with Sink() as sink, start(sink):
        stay = [Look(status) for _ in range(READERS_MAX)]
        assert all(json.loads(one.text()) for one in stay)
        refused = Look(status)
        assert refused.text() == b""
        for one in (*stay, refused):
            one.close()

        def answers():
            one = Look(status)
            with contextlib.closing(one):
                return one.text().startswith(b"{")

        wait_until(answers, patience(10), "an answer once they are gone")


def test_a_new_process_takes_it_over(start, status):
    with Sink() as sink, start(sink) as proxy:
        inode = status.stat().st_ino
        old = proxy.replace()
        assert old.wait(patience(20)) == 0
        assert look(status)["counters"]["sessions"] == 0 and status.stat().st_ino == inode


@contextlib.contextmanager
def told(path, text):
    """Another program tells this to whoever connects."""
    path.unlink()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    path.chmod(0o666)
    server.listen()

    def tell():
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as reader:
                    reader.sendall(text)

    threading.Thread(target=tell, daemon=True).start()
    yield
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    path.unlink()


@contextlib.contextmanager
def dashboard(cluster):
    control = cluster.description()["control"]
    with Dashboard(control["url"]) as page:
        page.sign_in(pathlib.Path(control["token_file"]).read_text().strip())
        yield page
        assert not page.errors()


def tile(page, name):
    """The text of the tile of that name."""
    return page.find(f"#smtpproxy-tiles > div:has(dt:text-is('{name}')) dd").inner_text()


def rows(page, table):
    return [row.split("\t") for row in page.find(f"#{table} tbody tr").all_inner_texts()]


def send(cluster, mails):
    at = cluster.description()["listeners"]["smtp"]
    assert source((at["host"], at["port"]), "--starttls", "--ca", cluster.ca, "-m", str(mails)).counts["sent"] == mails


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_shows_receivers_and_the_end_of_the_proxy(start_cluster):
    with Sink() as sink:
        cluster = start_cluster("--agents", "1", "--mail", "--mail-to", text_of(sink.address))
        with dashboard(cluster) as page:
            page.wait_text("smtpproxy-state", "relays")
            assert page.find("#receivers-part").is_hidden() and page.find("#lines-part").is_hidden()
            send(cluster, 3)
            wait_until(lambda: tile(page, "Accepted").endswith("3 in all"), patience(15), "3 mails in their tile")
            (address, limit, *_, done, of_all), = rows(page, "receivers")
            assert (address, limit, done, of_all) == (text_of(sink.address), "20", "3", "3")
            os.kill(cluster.description()["mail"]["pid"], signal.SIGKILL)
            page.wait_text("smtpproxy-state", "connection refused")
            assert not page.find("#receivers-part").is_visible() and not page.find("#smtpproxy-tiles").is_visible()
            with told(cluster.dir / "mail-status.sock", b'{"sessions": {"now": 1}, "counters": {}, "queue": {}}'):
                page.wait_text("smtpproxy-state", "tells nothing")
                page.wait_text("link", "live")
            cluster.restart_mail()
            page.wait_text("smtpproxy-state", "relays")
            page.wait_text("link", "live")
            assert not page.overflows()


@pytest.mark.tool("chromium", "redis-server", "redis-cli")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_shows_the_queue(start_cluster):
    port = free_ports(1)[0]
    cluster = start_cluster("--agents", "1", "--mail-queue", "--mail-to", f"127.0.0.1:{port}")
    with dashboard(cluster) as page:
        page.wait_text("smtpproxy-state", "active")
        send(cluster, 3)
        wait_until(lambda: tile(page, "In the queue").startswith("3,") and tile(page, "Deferred") == "3 now", patience(15), "3 mails that wait")
        wait_until(lambda: [row[1:] for row in rows(page, "lines")] == [["flows", "3", "3", "0"]], patience(15), "their line")
        assert tile(page, "Redis in sync") == "2 of 2"
        with Sink(listen=f"127.0.0.1:{port}") as sink:
            wait_until(lambda: tile(page, "Delivered").endswith("3 in all"), patience(30), "3 deliveries")
            wait_until(lambda: tile(page, "In the queue").startswith("0,"), patience(15), "an empty queue")
    assert sink.counts["mails"] == 3


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_is_silent_about_smtpproxy_where_there_is_none(start_cluster):
    with dashboard(start_cluster("--agents", "1")) as page:
        page.wait_text("listeners", "http")
        assert page.find("#smtpproxy").is_hidden() and page.find("#receivers-part").is_hidden()
