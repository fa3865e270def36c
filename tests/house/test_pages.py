"""What the pages of ./cssl bench say of figures that are none, of pairs, and of quick runs."""

import json
import sys
import types

import pytest

from bench.experiments import __main__ as command
from bench.experiments import (load, mail_congestion_page, mail_fairness, mail_fairness_page, mail_queue_page, mail_resources_page, mail_sources_page,
                               pages, paper_page, report)
from test_rules import ROOT


# the experiments of the paper on Warp

ITS = "Postfix relay"


def fairness(name, seen_s, number=0, **more):
    """A run in which each sender had as many mails as moments."""
    seen = {(n, i): (f"from@msa{n}.example", 100 + s + n / 10) for n in (1, 2, 3) for i, s in enumerate(seen_s)}
    return {"round": number, "system": name, "refused": 0, "deferred": 7, "too_many": 3, "connections": {"203.0.113.254": 20}, **more,
            **mail_fairness.result(seen, 100, len(seen_s))}


def test_a_mail_that_came_twice_in_place_of_another_is_an_error():
    came, messages = {"A": ("from@msa1.example", 1), "B": ("from@msa1.example", 2)}, {"A": ("1@x", 1), "B": ("2@x", 2), "cut off": ("1@x", 0)}
    mail_fairness.check_each(came, messages, 2)
    for wrong in ({**messages, "B": ("1@x", 2)}, {"A": ("1@x", 1)}):
        with pytest.raises(load.LoadError, match="the receiver"):
            mail_fairness.check_each(came, wrong, 2)


def test_the_page_on_fairness_compares_runs_of_the_same_round():
    runs = [fairness("smtpproxy", (1, 2)), fairness("smtpproxy", (1, 4), 1), fairness("fairness off", (1, 4)), fairness("fairness off", (1, 8), 1),
            fairness("smtpproxy, 6 addresses", (1, 1.5), connections={"203.0.113.101": 2, "203.0.113.102": 5}), fairness(ITS, (1, 22.7))]
    table, targets = ("\n".join(rows(runs)) for rows in (mail_fairness_page.result_table, mail_fairness_page.target_table))
    assert "| smtpproxy | 2 | 3.1 | **3.3** | 1.07 | 0 | 7 | 3 | 20 to 20 |" in table
    assert "| smtpproxy, 6 addresses | 1 | 1.6 | **1.8** | 1.13 | 0 | 7 | 3 | 2 to 5 |" in table
    assert f"| time of smtpproxy, to that of {ITS} | **0.10** | one run | |  |" in targets
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
    assert row == f"| {ITS} | mx1 | 6 s/7 s | 6 s/6 s | > 1.00 s | 30 / 30 / 0 |"
    assert list(mail_congestion_page.course_table(CONGESTION, 1))[4].startswith("| smtpproxy | mx1 | never | never | 5.00 s |")
    # A relay that stands passes no mail in most waves: those do not end the row.
    standing = {"waves": 10, "course": [[second, 1, 50.0, 40.0] for second in (1, 5, 9)]}
    assert mail_congestion_page.slow_from(standing, 1) == 1


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
    unknown = [{**run, "disk_written": None, "disk_read": None} for run in runs]
    assert list(mail_resources_page.use_table(unknown, [100, 10]))[4].endswith("| 1.0 | 1.0 | unknown | unknown | 1.0 | 1.0 |")
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


def test_a_load_that_some_rounds_did_not_reach_says_so():
    """It was asked in three of four rounds, and reached in two."""
    runs = [{"round": number, "system": "CSSL", "load": load, "asked_per_s": 3600, "per_s": per_s, "is_reached": per_s > 3500, "mean_ms": ms,
             "p99_ms": 9} for load, rows in (("half", [(3600, 1)] * 4), ("the paper's", [(3600, 3), (3600, 4), (3000, 20)]))
            for number, (per_s, ms) in enumerate(rows)]
    rows = list(mail_queue_page.reply_table(runs))
    assert rows[2:] == ["| CSSL | half | 3,600 | 3,600 | **1.00** | 1.00-1.00 | 9.00 | < 14 | met |",
                        "| CSSL | the paper's | 3,600 | 3,600 | **3.50** | 3.00-4.00 | 9.00 | < 14 | reached in 2 of 4 rounds |"]


def test_the_page_of_the_mail_queue_shows_all_of_its_pictures():
    report = of_queue()
    text, pictures = mail_queue_page.markdown(report), mail_queue_page.figures(report, "mail_queue")
    assert len(pictures) == 4 and all(f"]({name})" in text for name in pictures)
    assert all(picture.startswith("<svg") for picture in pictures.values())


def test_a_target_beside_postfix_is_of_pairs_with_an_interval():
    runs = [{"round": number, "system": system, "accepted_per_s": rate, "delivered_per_s": rate, "load": "full", "mean_ms": 1}
            for system, rates in (("CSSL", (9, 9, 9)), ("Postfix on disk", (2, 3, 4))) for number, rate in enumerate(rates)]
    assert "| Postfix on disk | **3.00** | 2.25-4.50 | >= 3 | undecided |" in list(mail_queue_page.beside_table(runs, runs))[2]


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
    assert "| 1 | no | 1.00 | 1.00 | 3.00 | 6.00 | **0.50** | 0.25-1.00 | **0.33** | 0.17-0.50 |" in list(mail_sources_page.time_table(runs))


# pages and their files

EXPERIMENTS = [path.stem for path in (ROOT / "bench/results").glob("*.json") if path.stem in command.SIZES]


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "change"])  # that of change also has its options
def test_a_page_and_its_pictures_are_those_of_its_file(name):
    """python3 -m bench.experiments.pages NAME writes them anew."""
    page, pictures = pages.made_of(name)
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
    report.save(options, {"quick": quick, "rounds": 1}, lambda found: "# A title\n\nText.\n")
    first, second = (tmp_path / "x.md").read_text().split("\n\n")[:2]
    assert first == "# A title" and ("quick run of 1 round" in second) == quick


def test_what_was_measured_outlives_a_page_that_fails(tmp_path):
    options = types.SimpleNamespace(out=tmp_path / "out", name="x")
    report.keep(options, {"runs": [{"round": 0}]})
    assert json.loads((tmp_path / "out/x.part.json").read_text()) == {"runs": [{"round": 0}]}
    with pytest.raises(ZeroDivisionError):
        report.save(options, {"quick": False, "rounds": 1, "runs": [(0, 1)]}, lambda found: f"# A title\n\n{1 / found['runs'][0][0]}\n")
    assert json.loads((tmp_path / "out/x.json").read_text())["runs"] == [[0, 1]] and not (tmp_path / "out/x.part.json").exists()


def test_each_picture_is_on_a_page():
    """What an earlier form of an experiment drew goes with it."""
    pages = "".join(page.read_text() for page in (ROOT / "bench/results").glob("*.md"))
    assert [picture.name for picture in sorted((ROOT / "bench/results").glob("*.svg")) if f"({picture.name})" not in pages] == []
