"""What the pages of results say of a target (bench/experiments/ratios.py, mail_page.py)."""

import pytest

from bench.experiments import mail_page, ratios


def test_of_nine_rounds_the_interval_leaves_out_one_on_each_side():
    assert ratios.interval([0.9, 5.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 0.1]) == (0.9, 1.5)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_of_few_rounds_it_is_from_the_least_to_the_most(count):
    assert ratios.interval(list(range(count))) == (0, count - 1)


@pytest.mark.parametrize("count,said", [(1, " Of 1 round the certainty is 0 %."), (2, " Of 2 rounds the certainty is 50 %."),
                                        (5, " Of 5 rounds the certainty is 94 %."), (6, "")])
def test_an_interval_of_few_rounds_says_how_certain_it_is(count, said):
    assert ratios.of_few(count) == said


@pytest.mark.parametrize("most,said", [(1.5, "met"), (1.3, "met"), (1.2, "undecided"), (1.0, "undecided"), (0.9, "missed")])
def test_a_target_within_the_interval_is_undecided(most, said):
    assert ratios.verdict([1.0, 1.1, 1.2, 1.3], most) == said


def test_the_cells_of_a_row():
    assert ratios.columns([1.0, 1.1, 1.3], 1.05) == "**1.10** | 1.00-1.30 | <= 1.05 | undecided"
    assert ratios.columns([1.0, 1.1, 1.3]) == "**1.10** | 1.00-1.30 | | "
    assert ratios.columns([1.1]) == "**1.10** | one run | | "


def of_mail(work, costs):
    """The rows of the table that compares systems. `costs`: {system: [(front, mail server) in us, one for each turn]}."""
    runs = [{"round": turn // 3, "turn": turn % 3, "work": work, "system": system, "sessions": 200, "front_us": front,
             "mail_server_us": mail_server}
            for system, turns in costs.items() for turn, (front, mail_server) in enumerate(turns)]
    return [row.split(" | ") for row in list(mail_page.ratio_table(runs, 200))[2:]]


@pytest.mark.parametrize("mail_server,last,said", [(300, 300, "met"), (120, 200, "undecided"), (80, 80, "missed")])
def test_the_mail_server_behind_counts_in_a_session_of_mail(mail_server, last, said):
    """The front alone has 0.96 of nginx's CPU. The work that it makes for the mail server decides."""
    ours, its = [(480, 100)] * 6, [(500, mail_server)] * 5 + [(500, last)]
    row, = of_mail("STARTTLS, TLS 1.2, full", {"CSSL": ours, "nginx mail in turns": its})
    assert row[2:8] == ["480", "100", "580", "500", str(mail_server), str(500 + mail_server)]
    assert said in row[-1]


def test_turns_that_one_system_did_not_take_are_no_pairs():
    row, = of_mail("STARTTLS, TLS 1.3, full", {"CSSL": [(100, 0), (500, 0), (100, 0)], "stunnel": [(200, 0)]})
    assert row[2] == "100" and row[8:10] == ["0.50-0.50", "**0.50**"]


def test_the_memory_of_a_session_is_of_pairs_and_has_an_interval():
    """In the first round both runs have more memory, so the medians of all runs would say less than any round does."""
    runs = [{"round": number, "pair": pair, "sessions": sessions, "keep": keep, "source_kb": kb, "sink_kb": kb}
            for number, kbs in enumerate(((9000, 10998), (1000, 2998), (1000, 4996))) for sessions, kb in zip((1, 1000), kbs)
            for pair in ("cssl-bench", "Postfix") for keep in (False, True)]
    rows = list(mail_page.memory_table(runs))
    assert "| cssl-bench smtp-source | no | 1,000 | 4,996 | **2.0** | 2.0-4.0 | <= 3 | undecided |" in rows
    assert "| Postfix smtp-sink | yes | 1,000 | 4,996 | **2.0** | 2.0-4.0 | |  |" in rows


def test_implicit_tls_has_no_target():
    row, = of_mail("implicit TLS, TLS 1.2, full", {"CSSL": [(900, 0)], "nginx mail": [(100, 0)]})
    assert "missed" not in row[-1]
