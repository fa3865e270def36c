"""What the pages of ./cssl bench say of figures that are none, of pairs, and of quick runs."""

import json
import sys
import types

import pytest

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


# the mail queue beside its paper

def of_queue():
    """A report of two rounds with figures that are easy to see."""
    both = [(0, 2), (1, 4)]
    stores = [{"round": n, "system": system, "bytes": size, "mails": 100, "seconds": 1, "per_s": rate * times}
              for n, rate in both for size in (410, 4096) for system, times in (("CSSL", 1000), ("memcached", 2000))]
    rates = [{"round": n, "system": system, "mails": 10, "accepted_per_s": rate * times, "delivered_per_s": rate,
              "changes_per_s": 100 * rate}
             for n, rate in both for system, times in (("CSSL", 4000), ("Postfix on disk", 1000))]
    replies = [{"round": n, "system": system, "load": load, "asked_per_s": per_s, "per_s": per_s, "is_reached": True, "sent": 9, "replies": 9,
                "mean_ms": ms * times, "p99_ms": 9}
               for n, ms in both for system, times in (("CSSL", 1), ("Postfix on disk", 8))
               for load, per_s in (("full", None), ("half", 500), ("the paper's", 3600)) if (system, load) != ("Postfix on disk", "the paper's")]
    blocks = [{"round": n, "block": block, "mails": 5000, "blocks": 5000 / block, "seconds": rate * times}
              for n, rate in both for block, times in ((1, 20), (10, 3), (1000, 1))]
    recoveries = [{"round": n, "mails": 5000, "read_s": rate, "open_s": rate, "bytes_each": 1800} for n, rate in both]
    copies = [{"destination": "127.0.0.1:9", "backup": n, "paths": ["active", "standby"], "in_sync": True, "answered": 5001, "unanswered": 0}
              for n in (0, 1)]
    return {"machine": {}, "rounds": 2, "quick": False, "sessions": 100, "window": 1000, "stores": stores, "rates": rates, "replies": replies,
            "blocks": blocks, "recoveries": recoveries, "copies": copies}


def test_the_page_of_the_mail_queue_has_each_figure_of_its_paper_with_the_paper_s_values():
    text = mail_queue_page.markdown(of_queue())
    for row in ("| 0.4 | **3,000** | 2,000-4,000 | **6,000** | 4,000-8,000 | **0.50** | 0.50-0.50 | 200,000 | 2 |",
                "| 4 | **3,000** | 2,000-4,000 | **6,000** | 4,000-8,000 | **0.50** | 0.50-0.50 | bound by 1 Gbps | the same |",
                "| CSSL | **12,000** | 8,000-16,000 | **3.00** | 2.00-4.00 | 9.00 | 3 |", "| the paper's gateway | 3,600 | | 14 | | | |",
                "| CSSL | the paper's | 3,600 | 3,600 | **3.00** | 2.00-4.00 | 9.00 | < 14 | met |",
                "| 1 | 1.0 | **60.00** | 40.00-80.00 | **20.00** | 20.00-20.00 | 14 x 5.9 | 14 |",
                "| 10 | 10.0 | **9.00** | 6.00-12.00 | **3.00** | 3.00-3.00 | only in the figure | only in the figure |",
                "| 1,000 | 1,000.0 | **3.00** | 2.00-4.00 | **1.00** | 1.00-1.00 | 5.9 | 1 |",
                "| 127.0.0.1:9 | 1 | active | standby | yes | 5,001 | 0 |"):
        assert row in text, (row, text)
    assert "4.4 times" in text and "makes **300** changes/s" in text and "11,000 transactions/s" in text and "| Postfix on disk | the paper's |" not in text


def test_the_page_of_the_mail_queue_shows_all_of_its_pictures():
    report = of_queue()
    text, pictures = mail_queue_page.markdown(report), mail_queue_page.figures(report, "mail_queue")
    assert len(pictures) == 4 and all(f"]({name})" in text for name in pictures)
    assert all(picture.startswith("<svg") for picture in pictures.values())


def test_a_target_beside_postfix_is_of_pairs_with_an_interval():
    runs = [{"round": number, "system": system, "accepted_per_s": rate, "delivered_per_s": rate, "load": "full", "mean_ms": 1}
            for system, rates in (("CSSL", (9, 9, 9)), ("Postfix on disk", (2, 3, 4))) for number, rate in enumerate(rates)]
    assert "| Postfix on disk | **3.00** | 2.25-4.50 | >= 3 | undecided |" in list(mail_queue_page.beside_table(runs, runs))[2]


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
