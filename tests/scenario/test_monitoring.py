"""The examples for Prometheus and Grafana in conf/ ask for metrics that there are."""

import json
import re
import subprocess

import pytest

from tests.lib.build import ROOT

RULES = ROOT / "conf/prometheus/rules.yaml"
DASHBOARD = ROOT / "conf/grafana/cssl.json"
NAMES = re.compile(r"\bcssl_[a-z0-9_]+")


@pytest.fixture(scope="module")
def samples(start_module_cluster):
    """The name of every sample of a running cluster."""
    cluster = start_module_cluster("--agents", "1")
    text = subprocess.run(["curl", "-sS", "--fail", "--unix-socket", str(cluster.dir / "ragent/control.sock"),
                           "http://ragent/metrics"], text=True, stdout=subprocess.PIPE, check=True).stdout
    return {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}


def _queries():
    return [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]


def test_every_query_of_the_dashboard_names_metrics_that_there_are(samples):
    assert len(_queries()) > 20
    for query in _queries():
        assert NAMES.findall(query) and set(NAMES.findall(query)) <= samples, query


def test_every_rule_names_metrics_that_there_are(samples):
    queries = re.findall(r"^ +expr: (.*)$", RULES.read_text(), re.M)
    assert queries
    for query in queries:
        names = [first + end for begins, end in re.findall(r'__name__=~"\((.*?)\)(\w+)"', query) for first in begins.split("|")]
        names += NAMES.findall(re.sub(r"\{__name__.*?\}", "", query))
        assert {name for name in names if name.startswith("cssl_")} <= samples, query


@pytest.mark.tool("promtool")
@pytest.mark.parametrize("command", [["check", "rules", "rules.yaml"], ["test", "rules", "rules_test.yaml"]])
def test_the_rules_are_valid_and_fire_when_they_should(command):
    done = subprocess.run(["promtool", *command], cwd=RULES.parent, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


@pytest.mark.tool("promtool")
def test_promtool_understands_every_query_of_the_dashboard(tmp_path):
    rules = {"groups": [{"name": "dashboard", "rules": [{"record": f"q:{i}", "expr": query}
                                                        for i, query in enumerate(_queries())]}]}
    (tmp_path / "queries.yaml").write_text(json.dumps(rules))
    done = subprocess.run(["promtool", "check", "rules", "queries.yaml"], cwd=tmp_path, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_every_alert_is_tested():
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    assert alerts == set(re.findall(r"alertname: (\w+)", (RULES.parent / "rules_test.yaml").read_text()))
