"""What the pages of ./cssl bench say of figures that are none, of pairs, and of quick runs."""

import json
import sys
import types

import pytest

from bench.experiments import (mail_congestion_page, mail_fairness, mail_fairness_page, mail_queue_page, mail_resources_page, paper_page,
                               report)
from test_rules import ROOT


# the experiments of the paper on Warp

ITS = "Postfix relay"


def fairness(name, seen_s, number=0, **more):
    """A run in which each sender had as many mails as moments."""
    seen = {(n, i): (f"from@msa{n}.example", 100 + s + n / 10) for n in (1, 2, 3) for i, s in enumerate(seen_s)}
    return {"round": number, "system": name, "refused": 0, "deferred": 7, "too_many": 3, "connections": {"203.0.113.254": 20}, **more,
            **mail_fairness.result(seen, 100, len(seen_s))}


def test_the_page_on_fairness_compares_runs_of_the_same_round():
    runs = [fairness("smtpproxy", (1, 2)), fairness("smtpproxy", (1, 4), 1), fairness("fairness off", (1, 4)), fairness("fairness off", (1, 8), 1),
            fairness("smtpproxy, 6 addresses", (1, 1.5), connections={"203.0.113.101": 2, "203.0.113.102": 5}), fairness(ITS, (1, 22.7))]
    table, targets = ("\n".join(rows(runs)) for rows in (mail_fairness_page.result_table, mail_fairness_page.target_table))
    assert "| smtpproxy | 2 | 3.1 | **3.3** | 1.07 | 0 | 7 | 3 | 20 to 20 |" in table
    assert "| smtpproxy, 6 addresses | 1 | 1.6 | **1.8** | 1.13 | 0 | 7 | 3 | 2 to 5 |" in table
    assert f"| time of smtpproxy, to that of {ITS} | **0.10** | 0.10-0.10 | |  |" in targets
    assert "| time of smtpproxy, to that of fairness off | **0.53** | 0.52-0.53 | <= 1.00 | met |" in targets


def congestion(name, third, means, number=0, missing=0):
    """Two receivers with ten waves of ten mails, one each second, of which the last do not come."""
    came = [min(10 * second, 100 - missing) for second in range(12)]
    times = {f"{prefix}{key}": means[0] for prefix in ("", "relay_") for key in ("mean_s", "p50_s", "p99_s")}
    return [{"aggregator": name, "third": third, "mx": mx, "waves": 10, "round": number, "sent": 100, "missing": missing, **times,
             "course": [[second, 10, mean, mean / 2] for second, mean in enumerate(means)], "received": came,
             "deferred": {"mx1": 0, "mx2": 0, "mx3": 5},
             "histograms": {"end_to_end": [[-1, 60], [2, 40 - missing]], "relay": [[-2, 100 - missing]]}} for mx in (1, 2)]


CONGESTION = [*congestion("smtpproxy", "healthy", [9] + [1] * 9), *congestion("smtpproxy", "tarpit", [9] + [1.05] * 9),
              *congestion("smtpproxy", "healthy", [9] + [1] * 9, 1), *congestion("smtpproxy", "tarpit", [1] * 7 + [1.2] * 3, 1),
              *congestion(ITS, "tarpit", [1] * 4 + [20, 2] + [20] * 4, missing=40), *congestion(ITS, "tarpit", [1] * 7 + [20] * 3, 1, 40)]


def test_the_latency_of_mails_that_never_came_is_a_least_one():
    rows = list(mail_congestion_page.latency_table(CONGESTION))
    late = [row for row in rows if ">" in row]
    assert len(late) == 4 and all(f"| {ITS} |" in row and "| > 1.00 (1.00-1.00) | > 1.00 (1.00-1.00) |" in row for row in late)


def test_growth_is_of_the_last_third_to_the_first():
    told = list(mail_congestion_page.ratio_table(CONGESTION, 1))[2:]
    assert told[0] == "| growth | smtpproxy | mx1 | **1.10** | 1.00-1.20 | <= 1.10 | undecided |"
    assert told[2] == f"| growth | {ITS} | mx1 | **20.00** | 20.00-20.00 | |  |"
    assert told[4] == "| beside a healthy one | smtpproxy | mx1 | **1.06** | 1.05-1.07 | <= 1.10 | met |"
    assert list(mail_congestion_page.ratio_table(congestion("smtpproxy", "tarpit", [1]), 1))[2] == "| growth | smtpproxy | mx1 | | | |  |"


def test_grown_latency_and_fewer_receptions_are_those_of_some_waves_in_a_row():
    row = next(row for row in mail_congestion_page.course_table(CONGESTION, 1) if row.startswith(f"| {ITS} | mx1"))
    assert row == f"| {ITS} | mx1 | 6 s/7 s | 6 s/6 s | > 1.00 s | 30, 30, 0 |"
    assert list(mail_congestion_page.course_table(CONGESTION, 1))[4].startswith("| smtpproxy | mx1 | never | never | 5.00 s |")


def test_the_histogram_has_all_mails():
    for rows in (mail_congestion_page._bars_of(CONGESTION, kind) for kind in mail_congestion_page.KINDS):
        assert [sum(row[name] for row in rows.values()) for name in ("smtpproxy", ITS)] == [100, 100]
    assert rows == {"250 ms to 500 ms": {"smtpproxy": 100, ITS: 60}, "missing": {"smtpproxy": 0, ITS: 40}}


def test_the_page_on_resources_has_both_sizes():
    runs = [{"round": number, "system": system, "factor": factor, "mails": 3000, "seconds": seconds, "cpu_us": seconds, "memory": 1 << 20,
             **dict.fromkeys(("written", "read", "disk_written", "disk_read", "logs"), 1 << 20)}
            for factor, numbers in ((100, (0, 1)), (10, (0,))) for number in numbers for system, seconds in (("smtpproxy", 50), (ITS, 100))]
    table, targets = (list(rows(runs, [100, 10])) for rows in (mail_resources_page.use_table, mail_resources_page.target_table))
    assert table[4] == "| smtpproxy | 1/10 | 1 | 3,000 | 50.0 | 60 | **50** | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 |"
    assert targets[2] == "| CPU, to that of the relay | 1/100 | **0.50** | 0.50-0.50 | <= 1.00 | met |" and len(targets) == 2 + 2 * 4


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
