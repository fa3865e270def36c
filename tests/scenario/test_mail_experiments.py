"""The parts of ./cssl bench mail in which smtpproxy stands beside Postfix as a relay, in their quick form."""

import json
import os
import re
import subprocess

import pytest

from bench.experiments import mail_room
from bench.experiments.load import LoadError
from bench.experiments.mail_bed import Bed
from bench.experiments.mail_hosts import mx, running
from bench.experiments.mail_logs import queue_id_time
from tests.lib.build import BUILD, ROOT, patience

pytestmark = [pytest.mark.root, pytest.mark.tool("ip", "nft"), pytest.mark.limit(240), pytest.mark.plain,
              pytest.mark.skipif(mail_room.obstacle() is not None, reason=str(mail_room.obstacle()))]


def part(name, out):
    """Its report. Its page shows each of its pictures."""
    done = subprocess.run([str(ROOT / "cssl"), "bench", "mail", name, "--quick", "--rounds", "1", "--out", str(out)], text=True,
                          env=dict(os.environ, CSSL_BUILD_DIR=str(BUILD)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=patience(220))
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"bench mail {name} --quick takes about" in done.stdout and re.search(r"step (\d+) of \1, 0 s left", done.stdout), done.stdout[-3000:]
    page, pictures = (out / f"mail-{name}.md").read_text(), list(out.glob("*.svg"))
    assert pictures and all(f"({picture.name})" in page and picture.read_text().startswith("<svg ") for picture in pictures)
    return json.loads((out / f"mail-{name}.json").read_text())


def test_a_tarpit_holds_up_the_relay_and_not_the_proxy(tmp_path):
    report = part("congestion", tmp_path)
    runs = {(run["aggregator"], run["third"], run["mx"]): run for run in report["runs"]}
    assert len(runs) == len(report["runs"]) == 3 * 2
    assert all(run["missing"] == 0 and 0 < run["relay_mean_s"] < run["mean_s"] for (name, *_), run in runs.items() if name == "smtpproxy"), runs
    # The relay's scheduler looks at 15 messages; soon all of them are for the tarpit, which puts them off one after the other.
    relay = runs["Postfix relay", "tarpit", 2]
    assert relay["deferred"]["mx3"] > 0 == relay["deferred"]["mx2"]
    queues = {name: [row for row in report["queues"] if row["aggregator"] == name] for name in ("smtpproxy", "Postfix relay")}
    incoming, active, deferred = (max(row["relay"][place] for row in queues["Postfix relay"]) for place in range(3))
    assert incoming > 0 and active == 15 and deferred > 0
    assert sum(queues["smtpproxy"][-1]["msa3"]) > 0 and "relay" not in queues["smtpproxy"][0]


def test_senders_get_equal_shares_of_a_receiver(tmp_path):
    runs = {run["system"]: run for run in part("fairness", tmp_path)["runs"]}
    assert len(runs) == 6 and all(run["refused"] == 0 and len(run["last_s"]) == 3 for run in runs.values())
    # The receiver refuses the relay's 11th connection, and the proxy passes no refusal on.
    assert runs["Postfix relay"]["deferred"] > 0 == runs["smtpproxy"]["deferred"]
    assert runs["smtpproxy"]["too_many"] > 0 == runs["smtpproxy, 6 addresses"]["too_many"]
    assert len(runs["fairness off, 6 addresses"]["connections"]) == 6 == 6 * len(runs["fairness off"]["connections"])


def test_the_use_of_an_aggregator_is_measured(tmp_path):
    runs = {(run["system"], run["factor"]): run for run in part("resources", tmp_path)["runs"]}
    for (_, factor), run in runs.items():
        assert run["mails"] == {50000: 3 * 24, 20000: 3 * 57}[factor] and run["cpu_us"] > 0 and run["memory"] > 1 << 20
    for factor in (50000, 20000):
        ours, its = (runs[system, factor] for system in ("smtpproxy", "Postfix relay"))
        assert ours["cpu_us"] <= its["cpu_us"] and 0 < ours["logs"] and ours["written"] <= its["written"]


@pytest.mark.tool("redis-server", "tc")
def test_the_mails_of_a_serial_sender_pass_each_queue(tmp_path):
    runs = part("parallel", tmp_path)["runs"]
    assert {(run["system"], run["receiver"], run["deliveries"], run["bytes"]) for run in runs} == {
        (system, receiver, *shape) for system in ("smtpproxy", "Postfix on disk", "Postfix in tmpfs") for receiver in ("fast", "slow")
        for shape in ((30, 21377), (30, 603), (50, 603))}
    assert all(run["server_cpu_s"] > 0 and (run["redis_cpu_s"] > 0) == (run["system"] == "smtpproxy") for run in runs)
    assert [run["mails"] for run in runs] == 18 * [50] + [250]
    # A late reply of the receiver makes more deliveries at a time.
    most = {run["receiver"]: run["most_open"] for run in runs if run["system"] == "smtpproxy" and (run["deliveries"], run["bytes"]) == (50, 603)}
    assert most["slow"] > most["fast"]


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
