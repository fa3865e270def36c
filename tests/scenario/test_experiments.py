"""The experiments of ./cssl bench in their quick form: everything runs, with real servers, and the results are complete."""

import itertools
import json
import os
import re
import subprocess

import pytest

from bench.experiments import change, mail_room, paper_unequal, scaling, storm
from bench.experiments.compare_works import WORKS
from bench.experiments.quota import Quotas
from tests.lib.build import BUILD, ROOT, patience


def experiment(name, out, rounds, *options):
    done = subprocess.run([str(ROOT / "cssl"), "bench", name, "--quick", "--rounds", str(rounds), "--out", str(out), *options], text=True,
                          env=dict(os.environ, CSSL_BUILD_DIR=str(BUILD)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=patience(300))
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"bench {name} --quick takes about" in done.stdout and re.search(r"step (\d+) of \1, 0 s left", done.stdout), done.stdout[-3000:]
    return json.loads((out / f"{name}.json").read_text()), (out / f"{name}.md").read_text()


@pytest.mark.limit(300)
@pytest.mark.tool("haproxy", "nginx", "hitch")
@pytest.mark.root  # hitch and nginx change to users of their own
def test_every_system_does_every_work(tmp_path):
    report, text = experiment("compare", tmp_path, 1)
    runs = {(run["round"], run["work"], run["system"]): run for run in report["runs"]}
    assert len(runs) == len(report["runs"]) == sum(len(work.systems) for work in WORKS.values())
    assert all(run["total_us"] > 0 and run["units"] > 0 for run in runs.values())
    mixed = {system: (run["full"], run["resumed"]) for (_, work, system), run in runs.items() if "resumed asked" in work}
    # Agents resume each other's sessions, exactly; nginxes do with a shared key and half of the time by chance without one.
    assert mixed["CSSL-SL"] == mixed["CSSL-SL TCP sealed"] == mixed["haproxy+nginx shared"] == (20, 40)
    assert mixed["haproxy+nginx"][0] > 20
    # Where resumptions are measured, hardly more than the first connection of each of 20 clients is full.
    coming_back = [run for (_, work, _), run in runs.items() if work.startswith("resumption")]
    assert {run["system"] for run in coming_back} > {"CSSL-SF", "haproxy by address+hitch", "haproxy+nginx shared"}
    assert all(run["full"] + run["resumed"] == 200 and 20 <= run["full"] <= 30 for run in coming_back)
    assert {row["system"] for row in report["memory"]} == {
        "CSSL-SF idle", "CSSL-SF resting", "haproxy", "haproxy+hitch", "haproxy+nginx"}
    assert "| full handshake + 5 KiB, TLS 1.3 | CSSL-SF | haproxy |" in text


@pytest.mark.limit(300)
@pytest.mark.tool("nginx", "smtp-source", "smtp-sink")
@pytest.mark.skipif(mail_room.obstacle() is not None, reason=str(mail_room.obstacle()))
@pytest.mark.root  # servers change to users of their own
def test_mail_is_sent_through_every_tier(tmp_path):
    report, text = experiment("mail", tmp_path, 1)
    assert {(run["pair"], run["sessions"], run["keep"]) for run in report["pairs"]} == {
        (pair, sessions, keep) for pair in ("cssl-bench", "Postfix") for sessions in (1, 100, 1000) for keep in (False, True)}
    # Of the program alone: with Python, as which it begins, it would be more.
    assert all(run["source_kb"] < 12000 for run in report["pairs"] if run["pair"] == "cssl-bench")
    seen = {(run["work"].split(",")[0], run["system"]) for run in report["runs"]}
    peers = {"nginx mail", "nginx mail in turns", "stunnel", "stunnel in turns", "direct"}
    assert seen >= {(kind, peer) for kind in ("STARTTLS", "implicit TLS") for peer in peers} | {("implicit TLS", "CSSL")}
    for run in report["runs"]:
        resumable = run["mails"] - run["sessions"] if run["work"].endswith("resumed") else 0
        assert (run["full"], run["resumed"]) == (run["mails"] - resumable, resumable), run
        assert run["mail_server_us"] > 0 and (run["front_us"] == 0) == (run["system"] == "direct") or "stunnel" in run["system"], run
    # What has a target has more pairs than there are rounds.
    turns = {(run["work"], run["system"], run["turn"]) for run in report["runs"] if run["sessions"] > 1}
    alone = {(run["work"], run["system"], run["turn"]) for run in report["runs"] if run["sessions"] == 1}
    for name in ("STARTTLS, TLS 1.3, full", "STARTTLS, TLS 1.2, resumed"):
        assert {turn for work, system, turn in turns if (work, system) == (name, "nginx mail in turns")} == {0, 1, 2}
    assert {turn for work, system, turn in turns if work.startswith("implicit") or system == "stunnel"} == {0}
    for system in ("CSSL", "direct"):
        assert {turn for work, of, turn in alone if (work, of) == ("STARTTLS, TLS 1.2, full", system)} == {0, 1, 2}
    # Neighbours would share what disturbs the host, and count as independent all the same.
    order = [work for (work, *_), _ in itertools.groupby((run["work"], run["turn"], run["round"]) for run in report["runs"])]
    assert all(work != after for work, after in itertools.pairwise(order))
    assert len({run["round"] for run in report["pairs"]}) == 3
    assert "| implicit TLS, TLS 1.3, full | nginx mail |" in text


@pytest.mark.limit(300)
@pytest.mark.tool("redis-server", "memcached")
@pytest.mark.skipif(mail_room.obstacle() is not None, reason=str(mail_room.obstacle()))
@pytest.mark.root  # Postfix changes to users of its own
def test_the_mail_gateway_is_measured_beside_postfix(tmp_path):
    report, text = experiment("mail_queue", tmp_path, 1)
    systems = {"CSSL", "Postfix on disk", "Postfix in tmpfs"}
    assert {run["system"] for run in report["rates"]} == {run["system"] for run in report["replies"]} == systems
    assert all(run["mails"] == 400 for run in report["rates"])
    loads = {(run["system"], run["load"]): run for run in report["replies"]}
    assert set(loads) == {(run["system"], load) for run in report["rates"]
                          for load in ("half", "full", *(["the paper's"] if run["accepted_per_s"] > 3600 else []))}
    for (_, load), run in loads.items():
        wanted = 400 if load == "full" else run["asked_per_s"] * 1
        assert abs(run["sent"] - wanted) <= 1 and run["replies"] == run["sent"] and run["mean_ms"] > 0, run
    assert {(run["system"], run["bytes"]) for run in report["stores"]} == {
        (system, size) for system in ("CSSL", "memcached") for size in (410, 1024, 2048, 4096, 10240, 20480)}
    # Of 1 in a block there are fewer than messages, because some share a bucket of the server's.
    assert all(run["mails"] == 2000 for run in report["blocks"])
    made = {run["block"]: 2000 / run["blocks"] for run in report["blocks"]}
    assert list(made) == [1, 10, 100, 1000] and 1 <= made[1] < made[10] < made[100] < made[1000], made
    assert [run["mails"] for run in report["recoveries"]] == [2000]
    assert [(row["backup"], row["in_sync"], row["answered"]) for row in report["copies"]] == [(0, True, 2001), (1, True, 2001)]
    assert {run["system"] for run in report["rates"] if run["changes_per_s"] > 0} == {"CSSL"}
    assert "| Postfix in tmpfs |" in text and "resident bytes of the gateway for each" in text
    assert len(list(tmp_path.glob("mail_queue-figure-*.svg"))) == 4


@pytest.mark.limit(300)
@pytest.mark.tool("haproxy", "nginx", "hitch", "ip")
@pytest.mark.usefixtures("host_network")
@pytest.mark.root  # namespaces and quotas
def test_the_paper_s_scenarios_show_what_they_are_about(tmp_path):
    with Quotas() as quotas:
        if not quotas.is_allowed():
            pytest.skip("this host lets nobody make a cgroup")
    report, text = experiment("paper", tmp_path, 1)
    assert len({run["wire"] for run in report["runs"]}) == 2
    full = {}
    for run in report["runs"]:
        full.setdefault((run["scenario"], run["system"]), set()).add(run["full"])
    # Without a common memory resumptions are refused; with one, and with one server, they are exactly those asked for.
    for system in ("CSSL-SL, migration on", "LB-RR, one ticket key", "one reverse proxy", "one server", "DNS round robin"):
        assert full["B", system] == {20}, system
    for system in ("CSSL-SL, migration off", "LB-RR", "reverse proxies, RR", "hitches, RR"):
        assert min(full["B", system]) > 20, system
    # Two of three addresses collide: their server has two thirds of the work, unless handshakes go round. The CPU of 60 handshakes
    # holds whatever else a server did meanwhile, so of the runs on the two wires one may be uneven by that.
    shares = {}
    for run in report["runs"]:
        shares.setdefault(run["system"], []).append(max(run["shares"].values()))
    assert max(shares["LB-IP"]) > 0.55 and max(shares["CSSL-SF, migration off"]) > 0.55, shares
    assert min(shares["CSSL-SF, migration on"]) < 0.55, shares
    # In turn, the weak one of two unequal servers has the most work for its power.
    used = {run["system"]: run["used"] for run in report["unequal"]}
    assert set(used) == {f"CSSL-SF, {policy}" for policy in paper_unequal.POLICIES} | {"LB, round robin", "LB, least connections"}
    for system in ("CSSL-SF, round-robin", "LB, round robin"):
        assert used[system]["weak"] > used[system]["strong"], used
    made = {run["system"]: run["made"] for run in report["unequal"]}
    assert all(sum(made[run["system"]].values()) == run["full"] == 60 for run in report["unequal"]), made
    assert made["CSSL-SF, round-robin"] == made["LB, round robin"] == {"strong": 30, "weak": 30}, made
    assert made["CSSL-SF, weighted"] == {"strong": 45, "weak": 15}, made
    assert "| DNS round robin |" in text and "| CSSL-SF, shortest-response |" in text
    for name in ("a", "b", "figure-11", "figure-12", "figure-13", "figure-14"):
        assert (tmp_path / f"paper-{name}.svg").read_text().startswith("<svg ")
        assert f"(paper-{name}.svg)" in text


@pytest.mark.limit(500)
@pytest.mark.tool("haproxy", "nginx", "hitch")
@pytest.mark.root  # hitch and nginx change to users of their own
def test_clients_notice_the_end_of_other_servers_and_not_of_agents(tmp_path):
    report, text = experiment("chaos", tmp_path, 1)
    runs = {}
    for run in report["runs"]:
        runs.setdefault((run["system"], run["event"], run["load"]), []).append(run)
    assert len(runs) == 3 * (3 + 3 + 4) + 2 * 4
    for (system, event, load), rows in runs.items():
        what = load.split()[0]
        lost = [run["lost"] for run in rows]
        # A killed agent's downloads go on by ranges and strong ETags, or because the listener repeats them.
        if (system, event) == ("CSSL-SF", "kill -9 of one of two") and "without ranges" in load:
            assert min(lost) > 0 and all(run["counts"]["cut"] > 0 for run in rows), rows
        elif system.startswith("CSSL-SF"):
            assert lost == [0] and all(run["failed"] == 0 for run in rows), (event, load, rows)
        # A server that stops in order may let downloads end.
        if not system.startswith("CSSL-SF") and (event, what) != ("orderly stop of one of two", "downloads"):
            assert min(lost) > 0, (system, event, what, rows)
        assert sum(run["wrong"] for run in rows) == 0
    for event in ("kill -9 of one of two", "orderly stop of one of two"):
        table = text.split(f"### {event}: downloads of 2 s from a backend without ranges and ETag\n", 1)[1].split("\n#", 1)[0]
        assert [line.split(" | ")[0] for line in table.splitlines()[3:] if line] == [
            "| CSSL-SF", "| CSSL-SF repeating", "| haproxy+nginx", "| haproxy+hitch"]
    for need in ("Accept-Ranges: bytes", "strong ETag", "repeat_downloads: SIZE"):
        assert need in text.split("\n## ", 1)[0]
    for name in ("kill", "stop", "dispatcher"):
        assert (tmp_path / f"chaos-{name}.svg").read_text().startswith("<svg ")
        assert f"(chaos-{name}.svg)" in text


@pytest.mark.alone  # beside others, its load has not begun when its time is over
@pytest.mark.limit(300)
@pytest.mark.tool("haproxy", "nginx", "chrt")
@pytest.mark.root  # nginx changes to a user of its own
def test_established_clients_keep_their_connections_in_a_storm(tmp_path):
    report, text = experiment("storm", tmp_path, 1)
    runs = {(run["round"], run["system"]): run for run in report["runs"]}
    assert len(runs) == len(report["runs"]) == 4
    for (_, system), run in runs.items():
        for kind in ("quiet", "storm"):
            assert run[kind]["connections"] == storm.CLIENTS, (system, kind, run)
            assert run[kind]["answers"] > 0 and run[kind]["p50_us"] <= run[kind]["p99_us"]
        assert sum(run["storm"]["cores"].values()) > 0
        assert f"| {system} | {run['scheduling']} |" in text
    # The strangers get only idle time, which another test may want; in four runs they get some.
    assert sum(run["storm"]["handshakes"] for run in runs.values()) > 0


def broadcast_is_complete(report):
    measured = report["measured"][0]
    assert {run["what"] for run in measured["runs"]} == {"session", "live part", "word"}
    for run in measured["runs"]:
        assert run["sender_us"] > 0 and run["receiver_us"] > 0
        least = {"session": measured["session_bytes"], "live part": measured["live_bytes"], "word": 0}[run["what"]]
        assert run["bytes_per_object_and_peer"] > least
    # The page is of the default: live parts go to all agents.
    assert {row["live"] for row in report["sizes"]} == {"broadcast"}
    # Nobody asks where all have everything; with replicas most do, and more is sent where more is held.
    by = {(row["live"], row["agents"], row["replicas"]): row for row in report["carried"]}
    assert by["carried", 10, 1]["at_once"] < 0.5 < by["broadcast", 10, 0]["at_once"] == 1
    sent = [by[key]["megabits_per_s"] for key in (("carried", 10, 1), ("carried", 10, 2), ("carried", 10, 0), ("broadcast", 10, 0))]
    assert sent == sorted(sent) and len(set(sent)) == 4


def rule_holds(report, text):
    """The printed rule, for every row of the table of full broadcast as it is printed."""
    rule = re.search(r"at most ([\d.]+) us of CPU\nfor each handshake of the whole cluster, "
                     r"plus ([\d.e-]+) % of a core for each peer", text)
    us, percent = map(float, rule.groups())
    table = text.split("\n## Sizes, computed\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+), ([\d,]+) \| live: broadcast \|(.*)\|$", table, re.M)
    assert len(rows) == len(report["sizes"]) > 0
    for (agents, rate, rest), row in zip(rows, report["sizes"]):
        most = us * 1e-6 * int(rate.replace(",", "")) * 100 + percent * (int(agents) - 1)
        assert 100 * row["cpu"] <= most * (1 + 1e-9), (row, rule[0])
        assert float(rest.split("|")[3]) <= most + 0.05, (rest, rule[0])


@pytest.mark.limit(300)
def test_broadcast_is_measured_and_large_clusters_are_computed(tmp_path):
    report, text = experiment("scaling", tmp_path, 1)
    broadcast_is_complete(report)
    rule_holds(report, text)
    for heading in ("Sizes", "Beside `live: carried`"):
        assert f"\n## {heading}, computed\n" in text
    for name in ("full", "replicas"):
        picture = (tmp_path / f"scaling-{name}.svg").read_text()
        assert picture.startswith("<svg ") and ">Computed: " in picture
        assert f"![Computed: CPU {'of full broadcast' if name == 'full' else 'by replicas'}](scaling-{name}.svg)" in text


@pytest.mark.parametrize("cpu", [0.02, 0.3, 1.7])
def test_the_rule_of_scaling_holds_for_each_row(cpu):
    silent = [{"agents": n, "cpu": 0.00005 * (n - 1)} for n in (3, 1000)]
    rows = [{"agents": n, "handshakes_per_s": rate, "cpu": cpu * (1 + n / 1000)} for n in (3, 100, 1000) for rate in (1000, 1000000)]
    rule = scaling.rule(rows, silent)
    slack = [scaling.cpu_by_rule(rule, row["agents"], row["handshakes_per_s"]) / row["cpu"] for row in rows]
    assert 1 - 1e-9 <= min(slack) < 1.15
    assert scaling.rate_by_rule(rule, 10000) == 0 < scaling.rate_by_rule(rule, 3)


@pytest.mark.limit(300)
@pytest.mark.tool("nginx")
@pytest.mark.root  # nginx changes to a user of its own
def test_a_change_is_held_against_the_checkout_before_it(tmp_path):
    before = tmp_path / "before"  # the same sources and programs, as another checkout
    before.mkdir()
    for name in ("cssl", "front"):
        (before / name).symlink_to(ROOT / name)
    (before / "build").symlink_to(BUILD)
    report, text = experiment("change", tmp_path, 2, "--before", str(before))
    assert {(run["side"], run["round"]) for run in report["runs"]} == {(side, n) for side in ("here", "before") for n in (0, 1)}
    assert all(run["total_us"] > 0 and run["units"] > 0 for run in report["runs"])
    assert "| keep-alive request, 1 KiB, 64 busy | CSSL-SF trusted |" in text


@pytest.mark.limit(300)
@pytest.mark.tool("nginx")
@pytest.mark.root  # nginx changes to a user of its own
def test_the_price_of_the_keeper_is_measured_against_this_checkout(tmp_path):
    report, text = experiment("change", tmp_path, 1, "--no-keeper")
    assert {run["side"] for run in report["runs"]} == {row["side"] for row in report["memory"]} == {"here", "before"}
    assert all(run["total_us"] > 0 and run["units"] > 0 for run in report["runs"])
    assert "outlive RAgent's death" in text and "| here us | without a keeper us |" in text


@pytest.mark.parametrize("pairs,verdict", [
    ((0.99, 1.00, 1.01), "within"), ((0.98, 1.00, 1.06), "within, not every pair"),
    ((1.01, 1.03, 1.05), "undecided"), ((1.03, 1.04, 1.05), "above"),
])
def test_the_verdict_on_a_change(pairs, verdict):
    assert change.verdict(pairs) == verdict
