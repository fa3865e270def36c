"""The rows of Hatsugai and Saito, "Load-balancing SSL Cluster by Using Session Migration" (2007), in the table of the papers."""

import statistics

from bench.experiments import paper_page
from bench.experiments.papers_table import Row

CSSL = "CSSL (2007)"
TABLES = {"A": "Table 2", "B": "Table 3"}
WEB = "HAProxy and nginx for TMX3000 and Apache 2.0.54, which cannot be had"
SF = "RAgent and SSLAgents of this project for the authors', and a file server of nginx behind them"
TERMS = {
    "LB-IP": WEB,
    "LB-RR": WEB,
    "CSSL-SF, migration off": SF,
    "CSSL-SF, migration on": SF,
    "CSSL-SL, migration on": "HAProxy, in turn, for TMX3000 or RAgent; SSLAgents of this project for the authors'",
    "one reverse proxy": "HAProxy that ends TLS for Pound, so that both are of today",
    "one server": "nginx for Apache with mod_ssl",
    "CSSL-SL, migration off": "two clusters that do not know each other; who gets a connection is drawn, not in turns (paper.md, Migration off)",
}


def _far(report):
    """The wire with the delay, as in the paper."""
    return list(dict.fromkeys(run["wire"] for run in report["runs"]))[-1]


def _rows(report, scenario, name):
    wire = _far(report)
    return [run for run in report["runs"] if (run["wire"], run["scenario"], run["system"]) == (wire, scenario, name)]


def _rate(report, scenario, name):
    return paper_page.mean(report["runs"], _far(report), scenario, name)


def _measured(scenario, name):
    def ours(report):
        each_s, full = _rate(report, scenario, name), statistics.median(run["full"] for run in _rows(report, scenario, name))
        times = each_s / _rate(report, scenario, "one server")
        return f"{each_s:.1f}/s, {times:.2f} times one server; {full:,.0f} full handshakes"
    return ours


def _value(scenario, name):
    _, each_s, full = paper_page.PAPER[scenario][name]
    times = each_s / paper_page.PAPER[scenario]["one server"][1]
    return f"{each_s}/s, {times:.2f} times one server" + (f"; {full:,} full handshakes" if full else "")


def _times(scenario, name, reference):
    return lambda report: f"{_rate(report, scenario, name) / _rate(report, scenario, reference):.2f} times"


def _paper_times(scenario, name, reference):
    rows = paper_page.PAPER[scenario]
    return f"{rows[name][1] / rows[reference][1]:.2f} times"


def _cpu(scenario, name, number):
    def ours(report):
        samples = _rows(report, scenario, name)[-1]["samples"]
        busy = " and ".join(f"{statistics.mean(percent for _, percent in row):.0f} %" for row in samples.values())
        seconds = max(second for row in samples.values() for second, _ in row)
        return f"{busy} of its part each, for {seconds:.0f} s ([picture](paper-figure-{number}.svg))"
    return ours


FIGURES = {"11": "the servers far apart", "12": "the servers together", "13": "both servers busy all along", "14": "less, and for a shorter time"}

ROWS = [
    Row(CSSL, "all", "clients Pentium 4, servers Xeon 3.2 GHz, means of 5 runs", "paper",
        lambda report: f"servers have {100 * report['part']:.0f} % of a core each, by a quota; means of "
                       f"{min(paper_page.OF_THE_PAPER, report['rounds'])} rounds; {_far(report)}",
        "one host for clients, servers, balancer and router; a TUN relay where the kernel has no netem, for NIST Net; RSA 2048 and AES-128-GCM "
        "for RSA 1024 and RC4, which clients of today refuse; a static file for PHP; so only proportions can be compared"),
    *(Row(CSSL, f"{TABLES[scenario]}, {said[0]}", _value(scenario, name), "paper", _measured(scenario, name), TERMS[name])
      for scenario, systems in paper_page.PAPER.items() for name, said in systems.items() if said),
    *(Row(CSSL, f"{TABLES[scenario]}: {name}, to {reference}", _paper_times(scenario, name, reference), "paper",
          _times(scenario, name, reference), "of the means above; medians of pairs and their intervals are on the page")
      for scenario, name, reference in paper_page.BESIDE),
    *(Row(CSSL, f"Figure {number}, CPU over time, {name}", FIGURES[number], "paper", _cpu(scenario, name, number), "of the last round")
      for scenario, name, number in paper_page.FIGURES),
]
