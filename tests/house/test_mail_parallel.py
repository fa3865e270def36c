"""./cssl bench mail parallel, the experiment of PMailServer2's developers: what a run has to have done, and what its page says."""

import pytest

from bench.experiments import load, mail_parallel, mail_parallel_page

SHAPE = mail_parallel.Shape(30, 603, 10000)
GOT = {"most_open": 30, "counts": {"mails": 10000, "right": 10000, "duplicates": 0, "delayed": 10000, "connections": 500}}


@pytest.mark.parametrize("receiver,changed", [
    ("slow", {"mails": 9999}), ("slow", {"right": 9999}), ("slow", {"duplicates": 1}), ("slow", {"delayed": 0}), ("fast", {}),
    ("slow", {"most_open": 61}), ("slow", {"most_open": 29}),
])
def test_a_run_that_did_other_work_than_its_page_says_is_none(receiver, changed):
    mail_parallel.check("smtpproxy", "slow", SHAPE, GOT)
    mail_parallel.check("smtpproxy", "fast", SHAPE, {"most_open": 3, "counts": {**GOT["counts"], "delayed": 0}})
    mail_parallel.check("Postfix in tmpfs", "slow", SHAPE, {**GOT, "most_open": 39})  # it keeps connections behind their deliveries
    got = {"most_open": changed.get("most_open", 30), "counts": {**GOT["counts"], **changed}}
    with pytest.raises(load.LoadError):
        mail_parallel.check("smtpproxy", receiver, SHAPE, got)


@pytest.mark.parametrize("counts", [{"connected": 9999}, {"bytes": 8_500_000}])
def test_the_sender_makes_a_session_for_each_mail_of_that_length(counts):
    right = {"connected": 10000, "bytes": 6_030_000}
    mail_parallel.check_sender(SHAPE, right)
    with pytest.raises(load.LoadError):
        mail_parallel.check_sender(SHAPE, {**right, **counts})


def runs():
    for number, name, receiver, shape in mail_parallel.works(3):
        seconds = shape.mails / (400 if name == "smtpproxy" else 100) * (1 + number / 10)
        yield {"round": number, "system": name, "receiver": receiver, "deliveries": shape.deliveries, "bytes": shape.bytes, "mails": shape.mails,
               "taken_s": seconds - 1, "seconds": seconds, "server_cpu_s": shape.mails * 2e-4, "redis_cpu_s": shape.mails * 1e-4,
               "most_open": shape.deliveries, "connections": 40}


def test_each_line_of_pmailserver2_is_measured_and_its_page_has_the_paper_s_units():
    measured = list(runs())
    for _, deliveries, length, mails, _ in mail_parallel_page.PAPER:
        assert [run for run in measured if (run["deliveries"], run["bytes"], run["mails"]) == (deliveries, length, mails)]
    report = {"machine": {}, "rounds": 3, "quick": False, "wire_mbit": 100, "slow_s": 0.15, "runs": measured}
    text = mail_parallel_page.markdown(report, "mail-parallel")
    # The median of 400/s, 400/1.1 and 400/1.2.
    assert "| fast | 30 | 603 | 10,000 | smtpproxy | 26.5 | 27.5 | **363.6** | 1,309,091 | 31,418,182 | 30 | 200 | 100 |" in text
    assert "| fast | 30 | 603 | 10,000 | Postfix on disk | **0.25** | 0.25-0.25 |" in text
    assert "| 1.81b | 50 | 603 | 10,000 | 621 | 16.1 | 57,971 | 1,391,304 |" in text
    assert (mail_parallel_page.figures(report, "mail-parallel")["mail-parallel.svg"]).startswith("<svg ")
