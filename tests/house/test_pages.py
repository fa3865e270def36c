"""What the pages of ./cssl bench say of figures that are none, of pairs, and of quick runs."""

import importlib
import inspect
import json
import sys
import types

import pytest

from bench.experiments import __main__ as command
from bench.experiments import mail_congestion_page, mail_fairness, mail_fairness_page, mail_queue_page, paper_page, report
from test_rules import ROOT


# a limit is no result

def fairness(name, seen_s, end_s):
    """A run in which each sender had as many mails as moments, some of which did not come."""
    seen = {(n, i): (f"from@msa{n}.example", 100 + s) for n in (1, 2, 3) for i, s in enumerate(seen_s)}
    return {"round": 0, "system": name, "refused": 0, "deferred": 7, **mail_fairness.result(seen, 100, 3, end_s)}


RUNS = [fairness("smtpproxy", (1, 2, 4), 4.2), fairness("fairness off", (1, 2, 5), 5.2), fairness("Postfix relay", (1, 2), 600.1)]


def test_a_run_that_was_ended_has_no_time():
    row = RUNS[-1]
    assert (row["all_s"], row["spread"], row["missing"]) == (None, None, 3)
    table = "\n".join(mail_fairness_page.result_table(RUNS))
    assert "| Postfix relay | | | not done after 600 s | 0 | 7 | 3 |" in table and "600.1" not in table
    assert "| smtpproxy | 4.0 | 4.0 | **4.0** |" in table
    targets = "\n".join(mail_fairness_page.target_table(RUNS))
    assert "Postfix relay" not in targets and "| time of smtpproxy, to that of fairness off | **0.80** |" in targets


def congestion(name, kind, third, mean, missing=0):
    return [{"kind": kind, "aggregator": name, "third": third, "mx": mx, "waves": 6, "round": 0, "missing": missing, "wait_ms": 1,
             **dict.fromkeys(("mean_s", "p50_s", "p99_s"), mean)} for mx in (1, 2)]


def test_the_latency_of_mails_that_never_came_is_a_least_one():
    ours, its = "smtpproxy", "Postfix relay"
    runs = [*congestion(ours, "pair", "healthy", 1.0), *congestion(ours, "pair", "tarpit", 1.05), *congestion(its, "pair", "healthy", 0.5),
            *congestion(its, "course", "tarpit", 180, missing=378)]
    rows = list(mail_congestion_page.latency_table(runs))
    late = [row for row in rows if ">" in row]
    assert len(late) == 2 and all("| Postfix relay |" in row and "| > 180.00 | > 180.00 | > 180.00 | 378 |" in row for row in late)
    told = list(mail_congestion_page.ratio_table(runs))[2:]
    assert "| **> 360.00** | |" in told[2] and "| **1.05** | 1.05-1.05 | <= 1.10 | met |" in told[0]


@pytest.fixture(scope="module")
def paper():
    return json.loads((ROOT / "bench/results/paper.json").read_text())


# pairs

def of_paper(rates):
    """Runs of scenario A: {system: requests/s in each round}."""
    return [{"round": number, "wire": "w", "scenario": "A", "system": system, "per_s": rate}
            for system, all_rates in rates.items() for number, rate in enumerate(all_rates)]


def test_the_headline_of_the_paper_is_of_pairs(monkeypatch):
    """The machine is half as fast in every second round. Medians of rounds that are no pairs would say 2.0."""
    on, off = "CSSL-SF, migration on", "CSSL-SF, migration off"
    runs = of_paper({on: (400, 200, 400, 200, 400, 200), off: (200, 100, 200, 100, 200, 170)})
    monkeypatch.setattr(paper_page, "BESIDE", [("A", on, off)])
    row = list(paper_page.beside_table(runs, "w"))[2]
    # By means of the first five rounds, as the paper has them: 320 / 160.
    assert row == f"| A: {on} | {off} | **2.00** | 1.18-2.00 | 2.00 | 1.21 |"


def test_the_page_of_the_paper_has_intervals_and_names_its_file(paper):
    text = paper_page.markdown(paper)
    came_out = text.split("## What came out", 1)[1].split("\n## ", 1)[0]
    assert "| times its requests, median | interval |" in came_out and came_out.count("| CSSL-S") + came_out.count(": CSSL-S") >= 4
    assert "PHP" in text.split("\n## ", 1)[0]


def test_the_page_of_the_paper_tells_the_order_of_the_runs(paper):
    assert "always in the same order" in paper_page.markdown(paper) == (ROOT / "bench/results/paper.md").read_text()
    turned = [run for run in paper["runs"] if run["round"] != 1] + [run for run in reversed(paper["runs"]) if run["round"] == 1]
    assert "beginning with another one each time" in paper_page.markdown({**paper, "runs": turned})


def test_a_target_beside_postfix_is_of_pairs_with_an_interval():
    runs = [{"round": number, "system": system, "accepted_per_s": rate, "delivered_per_s": rate}
            for system, rates in (("CSSL", (9, 9, 9)), ("Postfix on disk", (2, 3, 4))) for number, rate in enumerate(rates)]
    assert list(mail_queue_page.rate_table(runs))[3].endswith("| **3.00** times | 2.25-4.50 | >= 3 | undecided |")


# pages and their files

WAITING = ()  # pages that an earlier form of their experiment wrote
EXPERIMENTS = [path.stem for path in (ROOT / "bench/results").glob("*.json") if path.stem in command.SIZES]


def made_of(name):
    """(page, {name of a picture: its text}), of the file of an experiment."""
    module = importlib.import_module(f"bench.experiments.{name.replace('-', '_')}")
    measured = json.loads((ROOT / f"bench/results/{name}.json").read_text())

    def call(function):
        return function(*(measured, name)[:len(inspect.signature(function).parameters)])
    return report.marked(measured, call(module.markdown)), call(module.figures) if hasattr(module, "figures") else {}


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "change" and name not in WAITING])  # that of change also has its options
def test_a_page_and_its_pictures_are_those_of_its_file(name):
    page, pictures = made_of(name)
    assert (ROOT / f"bench/results/{name}.md").read_text() == page
    for file, picture in pictures.items():
        assert (ROOT / "bench/results" / file).read_text() == picture, file


# quick runs

def parsed(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    return command.parse()


@pytest.mark.parametrize("words", [("mail",), ("mail", "fairness"), ("storm",), ("compare",)])
def test_a_quick_run_makes_one_round(monkeypatch, words):
    assert parsed(monkeypatch, *words, "--quick").rounds == 1 < parsed(monkeypatch, *words).rounds
    assert parsed(monkeypatch, *words, "--quick", "--rounds", "3").rounds == 3


@pytest.mark.parametrize("quick", [True, False])
def test_the_page_of_a_quick_run_says_so(tmp_path, quick):
    options = types.SimpleNamespace(out=tmp_path, name="x")
    report.save(options, {"quick": quick, "rounds": 1}, "# A title\n\nText.\n")
    first, second = (tmp_path / "x.md").read_text().split("\n\n")[:2]
    assert first == "# A title" and ("quick run of 1 round" in second) == quick
