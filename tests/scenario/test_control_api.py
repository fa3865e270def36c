"""The control API as one of the cluster's own customers: over TLS, for holders of a token; its metrics; its dashboard."""

import contextlib
import json
import pathlib
import re
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from tests.lib.build import patience
from tests.lib.dashboard import Dashboard
from tests.lib.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2")


@pytest.fixture
def ask(cluster):
    """ask(path, token="operator", **json): (status, answer) over TLS"""
    control = cluster.description()["control"]
    tokens = {"operator": pathlib.Path(control["token_file"]).read_text().strip(), None: None}

    def ask(path, token="operator", method="GET", **body):
        request = urllib.request.Request(control["url"].rstrip("/") + path, method=method)
        if token:
            request.add_header("Authorization", f"Bearer {tokens.get(token, token)}")
        request.data = json.dumps(body).encode() if method != "GET" else None
        context = ssl.create_default_context(cafile=cluster.ca)
        try:
            with urllib.request.urlopen(request, context=context, timeout=patience(10)) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    return ask


def test_the_api_is_behind_tls_and_a_token(ask):
    assert ask("/v1/status", token=None)[0] == 401
    assert ask("/v1/status", token="cssl_guess")[0] == 401
    status, answer = ask("/v1/status")
    assert status == 200 and json.loads(answer)["name"] == "r1"
    assert ask("/v1/keys/rotate", method="POST")[0] == 200


def test_a_connection_of_the_api_is_one_like_any_other(ask):
    listed = json.loads(ask("/v1/connections?listener=control")[1])["connections"]
    assert listed and all(one["owner"] or one["state"] != "owned" for one in listed)


def test_a_token_is_in_no_log(cluster, ask):
    token = pathlib.Path(cluster.description()["control"]["token_file"]).read_text().strip()
    ask("/v1/keys/rotate", method="POST")
    wait_until(lambda: "who=operator" in cluster.log("r1"), patience(5), "the operation in the log")
    for name in ("r1", "a1", "a2"):
        assert token not in cluster.log(name)


def test_tokens_are_read_again_at_a_reload(cluster, ask):
    path = cluster.dir / "control.tokens"
    before = path.read_text()
    digest = subprocess.run(["b2sum", "-l", "256"], input=b"cssl_second", stdout=subprocess.PIPE, check=True).stdout.split()[0]
    path.write_text(before + f"second read {digest.decode()}\n")
    assert ask("/v1/reload", method="POST")[0] == 200
    assert ask("/v1/status", token="cssl_second")[0] == 200
    assert ask("/v1/reload", token="cssl_second", method="POST")[0] == 403
    path.write_text("nonsense\n")
    status, answer = ask("/v1/reload", method="POST")
    assert status == 503 and "control.tokens:1" in answer
    assert ask("/v1/status")[0] == 200
    path.write_text(before)
    assert ask("/v1/reload", method="POST")[0] == 200


def test_a_log_level_changes_at_run_time_and_is_the_configured_one_after_a_restart(cluster, ask):
    def levels():
        return {node: row["level"] for node, row in json.loads(ask("/v1/log-level")[1])["levels"].items()}

    assert levels() == {"r1": "info", "a1": "info", "a2": "info"}
    assert ask("/v1/log-level", method="PUT", level="debug", node="a2")[0] == 200
    assert levels() == {"r1": "info", "a1": "info", "a2": "debug"}
    assert ask("/v1/log-level", method="PUT", level="warning")[0] == 200
    quiet = cluster.log("r1")
    with cluster.connect():
        assert levels() == {"r1": "warning", "a1": "warning", "a2": "warning"}
    assert cluster.log("r1") == quiet
    cluster.kill("a2")
    cluster.restart("a2")
    assert levels() == {"r1": "warning", "a1": "warning", "a2": "info"}
    assert ask("/v1/log-level", method="PUT", level="configured")[0] == 200
    assert set(levels().values()) == {"info"}
    status, answer = ask("/v1/log-level", method="PUT", level="debug", node="a9")
    assert status == 404 and "no process of that name" in answer


@pytest.mark.tool("promtool")
def test_metrics_are_as_prometheus_wants_them(ask):
    status, text = ask("/metrics")
    assert status == 200
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, check=False)
    assert checked.returncode == 0, checked.stdout
    assert 'cssl_agent_certificate_not_after_seconds{agent="a1",certificate="rsa"} ' in text
    assert 'cssl_agent_up{agent="a1"} 1' in text
    assert 'cssl_agent_handshakes_full_total{agent="a2"}' in text


def test_changes_of_owner_are_counted_of_the_agent_that_took_the_connection(cluster, ask):
    def counters():
        return json.loads(ask("/v1/counters")[1])

    def taken(agent):
        row = re.compile(rf'cssl_ragent_ownership_change_seconds_count{{agent="{agent}",cause="move"}} (\d+)')
        return int(row.search(ask("/metrics")[1]).group(1))

    def of_all_is_the_sum():
        now = counters()
        rows = now["of_agents"]["a1"].keys()
        return rows and all(now["ragent"][row] == sum(of[row] for of in now["of_agents"].values()) for row in rows)

    with contextlib.closing(cluster.http()) as web:
        web.request("GET", "/5")
        web.getresponse().read()
        connection = cluster.connection_of(web.sock)
        other, = set(cluster.agents) - {connection["owner"]}
        before = taken(other)
        assert cluster.move(connection["id"], other)["to"] == other
        assert taken(other) > before
    assert counters()["of_agents"].keys() == set(cluster.agents)
    wait_until(of_all_is_the_sum, patience(10), "nothing is counted between two rows")


@pytest.fixture
def dashboard(cluster):
    token = pathlib.Path(cluster.description()["control"]["token_file"]).read_text().strip()
    with contextlib.ExitStack() as stack:

        def open_page(keyboard=False, **how):
            stack.close()  # one at a time
            page = stack.enter_context(Dashboard(cluster.description()["control"]["url"], **how))
            (page.sign_in_by_keyboard if keyboard else page.sign_in)(token)
            return page

        yield open_page


def _held(page):
    """The number of RAgent's connections in the picture."""
    return int(re.search(r"holds (\d+)", page.find("#tiers-text").text_content())[1])


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_shows_figures_that_live(cluster, dashboard):
    page = dashboard()
    before = _held(page)
    with contextlib.ExitStack() as clients:
        for _ in range(20):
            clients.enter_context(cluster.connect())
        wait_until(lambda: _held(page) >= before + 15, patience(10), "20 connections more in the picture")
        assert "Connections" in page.text("tiles") and "a2" in page.text("agents")
        assert len(cluster.connections(listener="control")) <= 2  # the page's, and perhaps one that the browser keeps in reserve
    wait_until(lambda: _held(page) < before + 15, patience(10), "their end in the picture")
    assert not page.errors()


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_drains_an_agent(cluster, dashboard):
    page = dashboard()
    page.find("[aria-label='Drain a2']").click()
    page.find("#drain-dialog button.strong").click()
    page.wait_text("agents", "drained")
    assert cluster.agent("a2")["drain"]["state"] == "drained"
    page.wait_text("events", "a2 is drained")
    page.find("[aria-label='Undrain a2']").click()
    wait_until(lambda: cluster.agent("a2")["drain"]["state"] == "none", patience(10), "a2 back at work")
    assert not page.errors()


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_needs_no_mouse(cluster, dashboard):
    page = dashboard(keyboard=True)
    page.tab_to("Drain a1")
    assert page.focus_is_visible()
    page.press("Enter")
    page.find("#drain-dialog[open]").wait_for()
    page.press("Enter")
    page.wait_text("events", "a1 is drained")
    page.wait_text("agents", "Undrain")
    page.press("Enter")
    wait_until(lambda: cluster.agent("a1")["drain"]["state"] == "none", patience(10), "a1 back at work")
    assert not page.errors()


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_sees_an_agent_die(cluster, dashboard):
    page = dashboard()
    with contextlib.closing(cluster.http()) as web:
        web.request("GET", "/5")
        web.getresponse().read()
        owner = cluster.connection_of(web.sock)["owner"]
        cluster.kill(owner)
        page.wait_text("events", f"{owner}: ready →")
        page.wait_text("events", "of a lost agent:")
        web.request("GET", "/5")
        assert web.getresponse().read()
        page.wait_text("events", "took over")
        assert not page.find(f"[aria-label='Drain {owner}']").is_visible()
        assert re.fullmatch(r"\d\d:\d\d:\d\dZ", page.find("#events time").first.text_content())  # as in the logs
    cluster.restart(owner)
    page.wait_text("events", "→ ready")
    assert not page.errors()


@pytest.mark.tool("chromium")
@pytest.mark.usefixtures("host_network")
def test_the_dashboard_fits_a_phone_and_the_time_of_day(dashboard):
    grounds = set()
    for scheme in ("light", "dark"):
        page = dashboard(scheme=scheme, width=390, height=844)
        grounds.add(page.background())
        assert not page.overflows()
        name = page.find("#tiers text").first
        box = wait_until(name.bounding_box, patience(5), "a picture that stays")  # it is drawn anew with each answer
        assert box["height"] >= 11  # pixels: it can be read
        drain = page.find("[aria-label='Drain a1']").bounding_box()
        assert drain["x"] + drain["width"] <= 390 and "Resumed/s" in page.find("#agents td").nth(3).get_attribute("data-title")
        assert not page.errors()
    assert len(grounds) == 2
