"""The loads of ./cssl bench: a run that did other work than its page names is no measurement, and an error has its reason in it."""

import contextlib
import json
import pathlib
import re
import types

import pytest

from bench.experiments import load, mail_congestion, mail_hosts, mail_peers, mail_queue, mail_queue_page, mail_queue_systems, mail_room, paper
from test_rules import ROOT

FAKE = """\
#!/bin/sh
echo "$@" >>{folder}/arguments
cat {folder}/complaint >&2
cat {folder}/result
exit {status}
"""


@pytest.fixture
def fake_bench(tmp_path, monkeypatch):
    """f(result, status=0, complaint=""): from now on cssl-bench prints this; f.arguments(): of all its calls."""
    program = tmp_path / "bench" / "cssl-bench"
    program.parent.mkdir()
    monkeypatch.setenv("CSSL_BUILD_DIR", str(tmp_path))

    def prints(result, status=0, complaint=""):
        (tmp_path / "result").write_text(json.dumps(result) if result else "")
        (tmp_path / "complaint").write_text(complaint)
        program.write_text(FAKE.format(folder=tmp_path, status=status))
        program.chmod(0o755)
    prints.arguments = lambda: (tmp_path / "arguments").read_text().splitlines()
    return prints


# TLS clients

NEW = ("--connections", 60, "--clients", 12, "--length", 100)
RIGHT = {"connected": 60, "full": 60, "resumed": 0, "offered": 0, "answers": 60, "bytes": 6000}
MIXED = ("--connections", 60, "--clients", 10, "--mix", "1:2")
KEPT = ("--requests", 0, "--clients", 8, "--duration", 4)
OPEN = (*KEPT, "--rate", 100)


@pytest.mark.parametrize("options,counts", [
    (NEW, {}), ((*NEW, "--connections", 30), {"connected": 30, "full": 30, "answers": 30, "bytes": 3000}),
    (MIXED, {"full": 20, "resumed": 40, "offered": 40}), (MIXED, {"full": 60, "offered": 40}),
    (KEPT, {"connected": 8, "full": 8, "answers": 5000}), (OPEN, {"connected": 8, "full": 8, "answers": 391}),
])
def test_a_run_that_did_its_work_is_a_measurement(fake_bench, options, counts):
    fake_bench({"counts": {**RIGHT, **counts}})
    assert load.run(1, *options)["counts"]["connected"] == counts.get("connected", 60)


@pytest.mark.parametrize("options,counts", [
    (NEW, {"connected": 59}), (NEW, {"full": 59}), (NEW, {"answers": 59, "bytes": 5900}), (NEW, {"bytes": 5999}),
    (NEW, {"full": 20, "resumed": 40}), (MIXED, {"full": 60, "offered": 2}), (KEPT, {"connected": 9, "full": 9}),
    (KEPT, {"connected": 8, "full": 8, "answers": 0}), (OPEN, {"connected": 8, "full": 8, "answers": 2}),
])
def test_a_run_that_did_other_work_is_none(fake_bench, options, counts):
    fake_bench({"counts": {**RIGHT, **counts}})
    with pytest.raises(load.LoadError):
        load.run(1, *options)


def test_a_wire_is_as_long_as_its_name_says():
    long, short = ({"connect": {"p50_us": us}} for us in (29900, 60))
    paper.check_wire("one server", types.SimpleNamespace(round_trip_ms=30), [long, long])
    with pytest.raises(load.LoadError):
        paper.check_wire("one server", types.SimpleNamespace(round_trip_ms=30), [long, short])


# mails

def sent(count, seconds=1.0, **counts):
    end = {"mean_us": 2000, "p99_us": 9000, "count": count}
    return {"counts": {"sent": count, "failed": 0, "undecided": 0, **counts}, "latency": {"end": end}, "seconds": seconds}


def test_a_source_that_sent_other_mails_is_an_error(fake_bench):
    fake_bench(sent(100))
    assert mail_peers.source(1, 100, "-s", 2)["counts"]["sent"] == 100
    for wrong in (sent(2), sent(100, failed=1), sent(100, undecided=1)):
        fake_bench(wrong)
        with pytest.raises(load.LoadError):
            mail_peers.source(1, 100, "-s", 2)


def gateway():
    return types.SimpleNamespace(name="gateway", port=1, sent=0, source_options=lambda: [], wait_empty=lambda: None, changes=lambda: 0)


def test_a_reply_time_is_of_a_whole_load(fake_bench, monkeypatch):
    monkeypatch.setattr(mail_queue, "SMALL_SHARE", 0.5)  # so that both sources have as many
    fake_bench(sent(5000, 10.0))
    row = mail_queue.measure_reply(gateway(), "half", 1000, 10)
    assert (row["sent"], row["per_s"], row["mean_ms"]) == (10000, 1000, 2)
    assert all("-m 5000 " in words and "--rate 500.0 " in words for words in fake_bench.arguments())


def test_a_reply_time_of_two_mails_is_none(fake_bench):
    fake_bench(sent(1))
    with pytest.raises(load.LoadError):
        mail_queue.measure_reply(gateway(), "half", 1000, 10)


def test_a_rate_that_was_not_reached_has_no_reply_time(fake_bench, monkeypatch):
    monkeypatch.setattr(mail_queue, "SMALL_SHARE", 0.5)
    fake_bench(sent(5000, 12.0))
    slow = mail_queue.measure_reply(gateway(), "half", 1000, 10)
    fake_bench(sent(5000, 10.0))
    table = list(mail_queue_page.reply_table([slow, mail_queue.measure_reply(gateway(), "the paper's", 1000, 10)]))
    assert "| gateway | half | 1,000 | 833 | not reached | |" in table[2] and "| **2.00** | 2.00-2.00 | 9.00 |" in table[3]


def test_a_queue_that_stored_and_did_not_delete_is_no_transaction(fake_bench):
    done = {"stored": 50, "deleted": 50, "seconds": 2.0}
    fake_bench(done)
    assert mail_queue_systems.bench_load("it", {"stored": 50, "deleted": 50}, "queue", "--delete")["seconds"] == 2.0
    assert fake_bench.arguments() == ["queue --json --delete"]
    fake_bench({**done, "deleted": 49})
    with pytest.raises(load.LoadError, match="'deleted': 49"):
        mail_queue_systems.bench_load("it", {"stored": 50, "deleted": 50}, "queue", "--delete")


@pytest.mark.parametrize("block,read,blocks,is_right", [
    (1, 5000, 3700, True), (1, 5000, 500, False), (10, 5000, 480, True), (10, 5000, 5000, False), (10, 5000, 5, False),
    (1000, 5000, 9, True), (1000, 5000, 50, False), (10, 4999, 480, False)])
def test_blocks_of_a_reading_have_the_size_that_the_page_names(fake_bench, block, read, blocks, is_right):
    fake_bench({"read": read, "blocks": blocks, "in_sync": 1, "seconds": 1.0})
    with contextlib.nullcontext() if is_right else pytest.raises(load.LoadError):
        mail_queue_systems.read_back(["127.0.0.1:1"], 5000, block)


def test_copies_of_a_queue_are_complete(monkeypatch):
    row = {"destination": "x", "backup": 0, "paths": ["active", "standby"], "in_sync": True, "answered": 11, "unanswered": 0}

    def copies(*rows):
        return mail_queue._copies(types.SimpleNamespace(copies=lambda: list(rows)), 10)
    assert copies(row, {**row, "backup": 1})[1]["backup"] == 1
    for wrong in ([row], [row, {**row, "answered": 10}], [row, {**row, "in_sync": False}], [row, {**row, "unanswered": 1}]):
        with pytest.raises(load.LoadError):
            copies(*wrong)


@pytest.mark.parametrize("health,left,is_right", [("healthy", 0, True), ("healthy", 1, False), ("tarpit", 1, True), ("tarpit", 0, False)])
def test_the_third_receiver_is_what_its_name_says(monkeypatch, health, left, is_right):
    """A mail that one sender has deferred is tried again after twice 300 s at the latest."""
    assert mail_congestion.BACKOFF_S > 600
    monkeypatch.setattr(mail_congestion, "BACKOFF_S", 0)
    with contextlib.nullcontext() if is_right else pytest.raises(load.LoadError):
        mail_congestion.check_health(types.SimpleNamespace(left=lambda: left), health)


# reasons

def test_an_error_of_a_load_has_its_reason(fake_bench):
    fake_bench(None, 1, "connect: no route to host")
    for run in (lambda: load.run(1, *NEW), lambda: mail_peers.source(1, 3), lambda: mail_queue.measure_rate(gateway(), 10)):
        with pytest.raises(load.LoadError, match="(?s)status 1: .*no route to host"):
            run()


@pytest.mark.parametrize("complaint,said", [("bind: address already in use", "address already in use"), ("", "said nothing")])
def test_a_server_that_ends_tells_why(fake_bench, tmp_path, complaint, said):
    def new_folder(name, where):
        (where / name).mkdir()
        return where / name
    bed = types.SimpleNamespace(receivers=types.SimpleNamespace(within=(), entered=contextlib.nullcontext), memory=tmp_path,
                                new_folder=new_folder)
    fake_bench(None, 3, complaint)
    sink = mail_hosts.Sink(bed, "127.0.0.1")
    sink.begin()
    with pytest.raises(load.LoadError, match=f"(?s)Sink of 127.0.0.1 port 25: status 3: .*{said}"):
        sink.wait_for_begin()


# where they run

def test_a_room_has_its_own_mail_users_where_debian_s_are_installed(tmp_path, monkeypatch):
    read = pathlib.Path.read_text

    def with_postfix(path, *arguments, **settings):
        installed = {"/etc/passwd": "postfix:x:110:118::/var/spool/postfix:/usr/sbin/nologin\nother:x:64981:100::/:/bin/sh\n",
                     "/etc/group": "postfix:x:118:\npostdrop:x:119:\n"}
        return read(path, *arguments, **settings) + installed.get(str(path), "")
    monkeypatch.setattr(pathlib.Path, "read_text", with_postfix)
    mail_room.Room(tmp_path / "room")
    for kind in ("passwd", "group"):
        rows = [line.split(":") for line in read(tmp_path / "room" / "etc" / kind).splitlines()]
        for place in (0, 2):
            assert len({row[place] for row in rows}) == len(rows), rows
        assert [row[2] for row in rows if row[0] == "postfix"] == ["64981"]
        assert "root" in {row[0] for row in rows}


def test_experiments_need_no_build_with_tests():
    """A clean clone has the programs of ./cssl build only."""
    texts = {path.name: path.read_text() for path in (ROOT / "bench" / "experiments").glob("*.py")}
    assert len(texts) > 30
    assert not [name for name, text in texts.items() if re.search(r"tests/|build-test", text)]
