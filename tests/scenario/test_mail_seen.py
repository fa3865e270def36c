"""The facts about mail that operators get: connections, counters and listeners, by csslctl and the API."""

import contextlib
import pathlib

import pytest

from tests.lib.build import patience
from tests.lib.csslctl import DONE, csslctl
from tests.lib.dashboard import Dashboard
from tests.lib.fake_control import FakeControl
from tests.lib.mail import Sink, source
from tests.lib.mail_front_door import MAIL_LISTENERS, mail_door, mail_options
from tests.lib.smtp_client import Client
from tests.lib.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    with Sink() as sink:
        yield start_module_cluster("--agents", "2", *mail_options(sink))


def test_a_client_in_clear_is_shown_with_the_agent_that_speaks(cluster):
    with Client(mail_door(cluster, "smtp")) as client:
        client.greet()
        seen = cluster.connection_of(client.sock)
        assert seen["state"] == "preamble" and seen["owner"] is None and seen["preamble_agent"] in cluster.agents
        facts = csslctl("--dir", cluster.dir, "connections", "show", seen["id"]).facts
        assert seen["client_bytes"] > 0 and seen["client_records"] == 0
        assert facts["in clear with"] == seen["preamble_agent"] and facts["TLS"] == "the handshake has not ended"
        client.starttls(cluster.context(alpn=()))
        client.ask("EHLO client.example")
        seen = cluster.connection_of(client.sock)
        assert seen["preamble_agent"] is None and seen["owner"] in cluster.agents
        assert "in clear with" not in csslctl("--dir", cluster.dir, "connections", "show", seen["id"]).facts


def mail_facts(*place):
    """{name: number} of `csslctl starttls`."""
    run = csslctl(*place, "starttls")
    assert run.code == DONE, run.err
    words = (line.split("  ") for line in run.out.splitlines())
    return {line[0]: int(next(part for part in line[1:] if part.strip()).split()[0]) for line in words}


def inject(cluster):
    with Client(mail_door(cluster, "smtp")) as client:
        client.greet()
        client.send("STARTTLS\r\nEHLO injected\r\n")
        assert client.ends()[0] == "reset"


def test_csslctl_counts_what_happens_before_tls(cluster):
    before = mail_facts("--dir", cluster.dir)
    with Client(mail_door(cluster, "smtp")) as waits, Client(mail_door(cluster, "smtp")) as in_clear:
        waits.greet()
        in_clear.greet()
        assert in_clear.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
        now = mail_facts("--dir", cluster.dir)
        assert (now["before STARTTLS"], now["now in clear"]) == (1, 1)
    inject(cluster)
    assert source(mail_door(cluster, "submission"), "--starttls", "--ca", cluster.ca, "-m", "3").counts["sent"] == 3
    now = mail_facts("--dir", cluster.dir)
    assert {name: now[name] - before[name] for name in ("began in clear", "STARTTLS done", "injections", "refused")} == {
        "began in clear": 6, "STARTTLS done": 3, "injections": 1, "refused": 0}
    wait_until(lambda: mail_facts("--dir", cluster.dir)["before STARTTLS"] == 0, patience(5), "the ends of all preambles")


def test_csslctl_adds_the_agents_up(tmp_path):
    counters = {"ragent": {"preambles_under_way": 7}, "of_agents": {}, "agents": {
        "a1": {"mail_repeated": 2, "mail_421_leaving": 1, "mail_421_other": 4, "mail_421_backend_lost": 6}, "a2": {"mail_repeated": 3, "mail_asked": 5},
        "a3": {"error": "no answer"}}}
    with FakeControl(tmp_path, {("GET", "/v1/counters"): counters}) as fake:
        facts = mail_facts("--socket", fake.socket)
    assert {name: number for name, number in facts.items() if number} == {
        "before STARTTLS": 7, "repeated": 5, "asked about": 5, "server failed": 6, "given up": 5}


def test_the_access_log_tells_how_a_connection_began(cluster):
    cluster.http().close()
    with Client(mail_door(cluster, "smtp")) as client:
        client.greet()
        assert client.ask("QUIT")[0].startswith("221")
    for name, *how in ("smtp",), ("submission", "--starttls"), ("smtps", "--tls"):
        assert source(mail_door(cluster, name), *how, *(["--ca", cluster.ca] if how else [])).counts["sent"] == 1

    def told():
        lines = (dict(part.split("=", 1) for part in line.split() if "=" in part) for line in cluster.log("access").splitlines())
        return {(line["listener"], line["began"], line["version"]) for line in lines}

    wanted = {("smtp", "clear", "0000"), ("submission", "starttls", "0304"), ("smtps", "tls", "0304"), ("sf", "tls", "0304")}
    wait_until(lambda: wanted <= told(), patience(5), f"{wanted} in the access log")


def test_csslctl_shows_the_service_of_each_listener(cluster):
    rows = {row["LISTENER"]: row for row in csslctl("--dir", cluster.dir, "listeners").table("LISTENER")}
    assert {name: rows[name]["SERVICE"] for name in MAIL_LISTENERS} == dict.fromkeys(MAIL_LISTENERS, "smtp")
    assert rows["sf"]["SERVICE"] == "http"


@contextlib.contextmanager
def dashboard(cluster, **how):
    control = cluster.description()["control"]
    with Dashboard(control["url"], **how) as page:
        page.sign_in(pathlib.Path(control["token_file"]).read_text().strip())
        yield page
        assert not page.errors()


def tile(page, name):
    """The text of the tile of that name."""
    return page.find(f"#mail-tiles > div:has(dt:text-is('{name}')) dd").inner_text()


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_shows_mail(cluster):
    with dashboard(cluster) as page:
        page.wait_text("listeners", "submission")
        with Client(mail_door(cluster, "smtp")) as client:
            client.greet()
            wait_until(lambda: tile(page, "Before STARTTLS") == "1 now", patience(10), "a client in clear in its tile")
        wait_until(lambda: tile(page, "Before STARTTLS") == "0 now", patience(10), "its end")
        done = cluster.counters()["ragent"]["starttls_done"]
        assert source(mail_door(cluster, "submission"), "--starttls", "--ca", cluster.ca, "-m", "3").counts["sent"] == 3
        wait_until(lambda: f"{done + 3} in all" in tile(page, "STARTTLS done"), patience(10), "3 handshakes in their tile")
        inject(cluster)
        page.wait_text("events", "1 client of mail: reset")
        assert tile(page, "Injections").endswith(" in all")


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_fits_a_phone_with_mail(cluster):
    with dashboard(cluster, width=390, height=844) as page:
        page.wait_text("listeners", "smtps")
        assert not page.overflows()


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_is_silent_about_mail_where_there_is_none(start_cluster):
    with dashboard(start_cluster("--agents", "1")) as page:
        page.wait_text("listeners", "http")
        assert page.find("#mail").is_hidden()
