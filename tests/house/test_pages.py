"""What the pages of ./cssl bench say of figures that are none, of pairs, and of quick runs."""

import json
import sys
import types

import pytest

from bench.experiments import mail_congestion_page, mail_fairness, mail_fairness_page, mail_queue_page, mail_sources_page, paper_page, report
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


# go-smtp-source

def sending(name, seconds, cpu_s, peak_kb):
    """Runs of all kinds of a source, in as many rounds as there are seconds."""
    return [{"round": number, "source": name, "sink": sink, "sessions": sessions, "keep": keep, "mails": 10, "seconds": s, "user_s": cpu_s / 4,
             "system_s": cpu_s * 3 / 4, "peak_kb": peak_kb}
            for number, s in enumerate(seconds) for sink in mail_sources_page.SINKS for sessions in (1, 1000) for keep in (False, True)]


def test_the_page_of_the_article_has_pairs_and_says_who_is_not_there():
    runs = [*sending("cssl-bench", (1, 3, 1), 0.5, 6000), *sending("cssl-bench --processes 2", (1, 1, 1), 0.5, 9000),
            *sending("Postfix", (2, 3, 4), 2, 3000)]
    table = list(mail_sources_page.ratio_table(runs))
    assert "| Postfix | cssl-bench | Postfix | **0.50** | 0.25-1.00 | <= 1.00 | met | **0.25** | 0.25-0.25 | **2.00** | 2.00-2.00 |" in table
    assert "| cssl-bench | cssl-bench --processes 2 | cssl-bench | **1.00** | 0.33-1.00 | |  | **1.00** | 1.00-1.00 | **1.50** | 1.50-1.50 |" in table
    assert not any("go-smtp-source" in row for row in table)
    report = {"machine": {"go-smtp-source": "not there"}, "rounds": 3, "quick": False, "mails": 10, "runs": runs}
    assert "- go-smtp-source: not there\n" in mail_sources_page.markdown(report, "mail-sources")
    runs += sending("go-smtp-source", (3, 6, 6), 4, 12000)
    assert any(row.startswith("| Postfix | go-smtp-source | Postfix | **1.50** | 1.50-2.00 | |  |") for row in mail_sources_page.ratio_table(runs))
    assert "| Postfix | go-smtp-source | 1.00 | 3.00 | **6.00** | 12,000 |" in list(mail_sources_page.cost_table(runs))


# quick runs

def parsed(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    from bench.experiments import __main__ as command
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
