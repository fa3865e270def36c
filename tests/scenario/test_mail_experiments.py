"""The parts of ./cssl bench mail in which smtpproxy stands beside Postfix as a relay, in their quick form."""

import json
import os
import subprocess

import pytest

from bench.experiments import mail_room
from bench.experiments.load import LoadError
from bench.experiments.mail_bed import Bed
from bench.experiments.mail_hosts import mx, queue_id_time, running
from tests.lib.build import BUILD, ROOT, patience

pytestmark = [pytest.mark.root, pytest.mark.tool("ip", "nft"), pytest.mark.limit(120), pytest.mark.plain,
              pytest.mark.skipif(mail_room.obstacle() is not None, reason=str(mail_room.obstacle()))]


def part(name, out):
    """Its report. Its page shows each of its pictures."""
    done = subprocess.run([str(ROOT / "cssl"), "bench", "mail", name, "--quick", "--rounds", "1", "--out", str(out)], text=True,
                          env=dict(os.environ, CSSL_BUILD_DIR=str(BUILD)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=patience(100))
    assert done.returncode == 0, done.stdout[-3000:]
    page, pictures = (out / f"mail-{name}.md").read_text(), list(out.glob("*.svg"))
    assert pictures and all(f"({picture.name})" in page and picture.read_text().startswith("<svg ") for picture in pictures)
    return json.loads((out / f"mail-{name}.json").read_text())


def test_a_tarpit_holds_up_the_relay_and_not_the_proxy(tmp_path):
    report = part("congestion", tmp_path)
    runs = {(run["kind"], run["aggregator"], run["third"], run["mx"]): run for run in report["runs"]}
    assert len(runs) == len(report["runs"]) == (2 + 1 + 2) * 2
    assert all(run["missing"] == 0 for (_, name, third, _), run in runs.items() if name == "smtpproxy" or third == "healthy"), runs
    # The relay's scheduler looks at 15 messages; after the first wave all of them are for the tarpit.
    assert runs["course", "Postfix relay", "tarpit", 2]["missing"] > 0
    queues = [row for row in report["queues"] if row["third"] == "tarpit"]
    assert max(row["incoming"] for row in queues if row["aggregator"] == "Postfix relay") > 0
    assert [row for row in queues if row["aggregator"] == "smtpproxy"][-1]["msa3"] > 0


def test_senders_get_equal_shares_of_a_receiver(tmp_path):
    runs = {run["system"]: run for run in part("fairness", tmp_path)["runs"]}
    assert set(runs) == {"smtpproxy", "fairness off", "Postfix relay"}
    assert all(run["refused"] == run["missing"] == 0 and len(run["last_s"]) == 3 for run in runs.values())
    # The receiver refuses the relay's 11th connection, and the proxy passes no refusal on.
    assert runs["Postfix relay"]["deferred"] > 0 == runs["smtpproxy"]["deferred"]


def test_the_use_of_an_aggregator_is_measured(tmp_path):
    runs = {run["system"]: run for run in part("resources", tmp_path)["runs"]}
    for run in runs.values():
        assert run["mails"] == 3 * 24 and run["duplicates"] == 0 and run["cpu_us"] > 0 and run["memory"] > 1 << 20
    assert runs["smtpproxy"]["cpu_us"] <= runs["Postfix relay"]["cpu_us"]
    assert runs["smtpproxy"]["logs"] > 0 and runs["smtpproxy"]["written"] <= runs["Postfix relay"]["written"]


def test_parallel_sessions_pass_the_aggregator(tmp_path):
    runs = part("parallel", tmp_path)["runs"]
    assert {(run["system"], run["sessions"], run["bytes"]) for run in runs} == {
        (system, *shape) for system in ("direct", "smtpproxy", "Postfix relay") for shape in ((30, 21377), (30, 603), (50, 603))}
    assert all(run["mails"] == 50 and run["seconds"] >= run["taken_s"] > 0 for run in runs)


@pytest.mark.tool("smtp-source", "smtp-sink")
def test_sources_of_mail_stand_beside_each_other(tmp_path):
    runs = part("sources", tmp_path)["runs"]
    seen = {(run["source"], run["sink"], run["sessions"], run["keep"]) for run in runs}
    assert len(seen) == len(runs)
    assert seen >= {(source, sink, 1000, False) for source in ("cssl-bench", "cssl-bench --processes 2", "Postfix") for sink in ("cssl-bench", "Postfix")}
    assert all(run["mails"] == 100 and run["user_s"] + run["system_s"] > 0 and run["peak_kb"] > 0 for run in runs)


def test_a_mail_server_that_does_not_start_tells_why(tmp_path):
    """Postfix says it to syslog, which is not there."""
    tmp_path.chmod(0o755)
    with Bed(tmp_path) as bed, pytest.raises(LoadError, match="Postfix of 203.0.113.1 port 25: status 1: .*unknown user name value: nosuch"):
        with running(mx(bed, 1, "mail_owner = nosuch\n")):
            pass


def test_the_time_in_a_queue_id_of_postfix():
    seconds, microseconds = 1_000_000_000, 123_456
    digits = "0123456789BCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz"  # Postfix's, in their order

    def number(value, places):
        return "".join(digits[value // 52**i % 52] for i in reversed(range(places)))
    assert queue_id_time(f"{number(seconds, 6)}{number(microseconds, 4)}z1b2") == pytest.approx(seconds + microseconds / 1e6, abs=1e-6)
