"""The table of the papers in bench/results/README.md: nobody's figure is in it but that of the files, and no figure of a paper is missing."""

import dataclasses
import json
import re

from bench.experiments import papers, papers_table
from test_mail_parallel import runs
from test_rules import ROOT

README = ROOT / "bench/results/README.md"


def test_the_table_is_that_of_the_files():
    """python3 -m bench.experiments.papers writes it anew."""
    text = README.read_text()
    assert papers_table.with_table(text, papers.ROWS) == text


def test_each_row_has_five_cells_and_each_paper_its_rows():
    rows = [line for line in papers_table.table(papers.ROWS).splitlines() if line.startswith("| ")]
    assert all(len(re.split(r"(?<!\\)\|", line)) == 7 for line in rows)
    text = "\n".join(rows)
    # Values of the papers that have to be there.
    for value in ("179.5/s", "108.2/s", "184.7/s", "223.4/s", "100.5/s", "441.2/s", "142.3/s", "389.6/s", "638.3/s", "319.1/s", "1,893 full",
                  "2,883 full", "1,124 full", "Figure 4", "Figure 5", "Figure 6", "Figure 11", "Figure 12", "Figure 13", "Figure 14", "158 min", "187 min", "64 s", "299 s",
                  "7,816 s", "999 s", "957 s", "621 s", "1,391,304 a day", "200,000/s", "100,000/s", "11,000 transactions", "3,600 mails/s",
                  "14 ms", "818 mails/s", "80 mails/s", "20 mails/s", "5.9 s", "14 times as long", "Table I", "2.93 s, 3,028 KB", "4.45 s, 31,828 KB", "2.44 s, 2,872 KB", "3.91 s, 12,244 KB"):
        assert value in text, value


def test_a_row_takes_its_value_from_the_file_and_says_where_there_is_none(tmp_path):
    row = papers_table.Row("Paper", "Table 1", "5/s", "mail-x", lambda report: f"{report['per_s']}/s", "none")
    missing = "| not measured yet on these terms: `./cssl bench mail x` |"
    assert missing in papers_table.table([row], tmp_path)
    (tmp_path / "mail-x.json").write_text(json.dumps({"per_s": 7}))
    assert "| Paper | Table 1 | 5/s | 7/s ([page](mail-x.md)) | none |" in papers_table.table([row], tmp_path)
    assert missing in papers_table.table([dataclasses.replace(row, ours=lambda report: report.get("stores", []))], tmp_path)
    (tmp_path / "mail-x.json").write_text(json.dumps({"per_s": 7, "quick": True}))
    assert missing in papers_table.table([row], tmp_path)
    text = f"Before\n\n{papers_table.BEGIN}\nold\n\n## Next\n"
    new = papers_table.with_table(text, [row], tmp_path)
    assert new.startswith("Before\n") and new.endswith("\n\n## Next\n") and "old" not in new
    assert papers_table.with_table(new, [row], tmp_path) == new


def complete():
    """{experiment: a report with all that rows take from it}."""
    course = {"round": 0, "third": "tarpit", "waves": 3, "missing": 1, "sent": 31, "mean_s": 1.5, "relay_mean_s": 1.25, "received": [0, 10, 20, 30],
              "course": [[second, 10, 12, 1] for second in range(3)]}
    used = {"round": 0, "factor": 10, "mails": 1000, "seconds": 10, "cpu_us": 100, "memory": 1, "written": 2e6, "read": 1e6, "logs": 2e6}
    shares = {"round": 0, "last_s": {"msa1": 30, "msa2": 40}, "all_s": 40, "spread": 4 / 3}
    aggregators = "smtpproxy", "Postfix relay"
    systems = "CSSL", "Postfix on disk", "Postfix in tmpfs"
    return {
        "mail-congestion": {"plan": {"gap_s": 1}, "queues": [{"aggregator": name, "round": 0, "msa3": [1, 2, 3], "relay": [4, 5, 6]} for name in aggregators],
                            "runs": [{**course, "aggregator": name, "mx": mx} for name in aggregators for mx in (1, 2)]},
        "mail-resources": {"runs": [{**used, "system": name} for name in aggregators]},
        "mail-fairness": {"limit": 10, "runs": [{**shares, "system": name} for name in (
            *aggregators, "fairness off", "smtpproxy, 6 addresses", "fairness off, 6 addresses", "Postfix relay that knows the limit")]},
        "mail-parallel": {"runs": list(runs())},
        "mail_queue": {
            "stores": [{"round": 0, "system": name, "bytes": size, "per_s": 3e5} for name in ("CSSL", "memcached") for size in (
                410, 1024, 2048, 4096, 10240, 20480)],
            "rates": [{"round": 0, "system": name, "accepted_per_s": 5000, "delivered_per_s": 4000, "changes_per_s": 12000} for name in systems],
            "replies": [{"round": 0, "system": name, "load": load, "mean_ms": 2, "per_s": 3600, "is_reached": True} for name in systems for load in ("full", "the paper's")],
            "blocks": [{"round": 0, "block": block, "seconds": 3, "mails": 3, "blocks": 2} for block in (1, 10, 100, 1000)],
            "copies": [{"answered": 500001}] * 2},
        "mail-sources": {"runs": [{"round": 0, "source": name, "sink": "Postfix", "sessions": sessions, "keep": keep, "user_s": 1, "system_s": 2,
                                   "seconds": 3, "peak_kb": 4000} for name in ("Postfix", "go-smtp-source", "go-smtp-source-2015", "cssl-bench",
                                                                               "go-smtp-source-2015-pool")
                                  for sessions in (1, 100, 1000) for keep in (False, True)]},
    }


def test_each_row_finds_its_figures_in_a_complete_file(tmp_path):
    reports = complete()
    for name, report in reports.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(report))
    rows = [row for row in papers.ROWS if row.experiment in reports]
    assert {row.experiment for row in papers.ROWS} - set(reports) == {"", "paper"}
    text = papers_table.table(rows, tmp_path)
    assert "not measured yet" not in text and "was not there" not in text
    for ours in ("mx1 10 / 10 / 10, below 90 % from: never; mx2 10 / 10 / 10", "mx1 mean > 1.50 s, above 10 s from: 0 s; mx2", "mx1 > 1.25 s; mx2 > 1.25 s", "at most 4 incoming, 5 active, 6 deferred", "1.00 times its logs",
                 "fastest sender 30 s, all 40 s, spread 1.33", "300,000/s, 1.00 times memcached", "2.00 ms at 3,600/s, which was reached in 1 of 1 rounds", "12,000/s at 4,000 mails/s: 3.0 for each mail",
                 "3.00 s, 1.00 times that of 1,000; mean in a block 1.5", "1.00 times its mails in 1.00 times its time",
                 "1.00 s user, 2.00 s system, 3.00 s, 4,000 KB", "363.6/s, 1,309,091 an hour, 31,418,182 a day"):
        assert ours in text, ours
