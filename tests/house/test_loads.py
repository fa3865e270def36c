"""The loads of ./cssl bench: a run that did other work than its page names is no measurement, and an error has its reason in it."""

import contextlib
import json
import pathlib
import re
import socket
import threading
import types

import pytest

from bench.experiments import (load, mail_congestion, mail_fairness, mail_hosts, mail_latency, mail_logs, mail_peers, mail_queue,
                               mail_queue_page, mail_queue_systems, mail_resources, mail_room, paper)
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


@pytest.mark.parametrize("last,is_right", [("DELETED", True), ("NOT_FOUND", False)])
def test_each_value_in_memcached_is_stored_and_deleted_again(last, is_right):
    received = []

    def serve():
        with server.accept()[0] as s:
            s.sendall(f"STORED STORED DELETED STORED DELETED {last} ".replace(" ", "\r\n").encode())
            received.append(s.makefile("rb").read())
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        with is_error(not is_right):
            mail_queue_systems.load_of_memcached("{}:{}".format(*server.getsockname()), 3, 2, 2)
        thread.join()
    assert received == [b"set k0 0 0 2\r\nxx\r\nset k1 0 0 2\r\nxx\r\ndelete k0\r\nset k0 0 0 2\r\nxx\r\ndelete k1\r\ndelete k0\r\n"]


@pytest.mark.parametrize("block,read,blocks,is_right", [
    (1, 5000, 3700, True), (1, 5000, 500, False), (10, 5000, 480, True), (10, 5000, 5000, False), (10, 5000, 5, False),
    (1000, 5000, 9, True), (1000, 5000, 50, False), (10, 4999, 480, False)])
def test_blocks_of_a_reading_have_the_size_that_the_page_names(fake_bench, block, read, blocks, is_right):
    fake_bench({"read": read, "blocks": blocks, "seconds": 1.0})
    with contextlib.nullcontext() if is_right else pytest.raises(load.LoadError):
        mail_queue_systems.read_back("127.0.0.1:1", 5000, block)


def test_copies_of_a_queue_are_complete(monkeypatch):
    row = {"destination": "x", "backup": 0, "paths": ["standby", "active"], "in_sync": True, "answered": 11, "unanswered": 0}

    def copies(*rows):
        return mail_queue._copies(types.SimpleNamespace(copies=lambda: list(rows)), 10)
    assert copies(row, {**row, "backup": 1})[1]["backup"] == 1
    for wrong in ([row], [row, {**row, "answered": 10}], [row, {**row, "in_sync": False}], [row, {**row, "unanswered": 1}]):
        with pytest.raises(load.LoadError):
            copies(*wrong)


def is_error(it):
    return pytest.raises(load.LoadError) if it else contextlib.nullcontext()


@pytest.mark.parametrize("left", [0, 1])
def test_a_healthy_receiver_leaves_no_mail_behind(monkeypatch, left):
    """A mail that one sender has deferred is tried again after twice 300 s at the latest."""
    assert mail_congestion.BACKOFF_S > 600
    monkeypatch.setattr(mail_congestion, "BACKOFF_S", 0)
    with is_error(left):
        mail_congestion.wait_for_health(types.SimpleNamespace(left=lambda: left))


@pytest.mark.parametrize("health,counts,deferred,is_right", [
    ("healthy", {"mails": 9, "right": 9, "duplicates": 0}, 0, True), ("healthy", {"mails": 8, "right": 8, "duplicates": 0}, 0, False),
    ("healthy", {"mails": 9, "right": 8, "duplicates": 0}, 0, False), ("tarpit", {"mails": 0, "refused": 3}, 2, True),
    ("tarpit", {"mails": 1, "refused": 3}, 2, False), ("tarpit", {"mails": 0, "refused": 0}, 0, False),
    ("tarpit", {"mails": 0, "refused": 3}, 0, False),
])
def test_the_third_receiver_is_what_its_name_says(health, counts, deferred, is_right):
    """The relay that deferred nothing in 600 s stood beside another tarpit than that of the paper."""
    with is_error(not is_right):
        mail_congestion.check_third(health, counts, deferred, 9)


# times of mails

def message(number, made_s):
    return f"0123456789abcdef-{number}.{int(made_s * 1e6)}@smtp-source"


def test_logs_tell_which_mail_came_when():
    digits = mail_logs.DIGITS
    names = {value: digit for digit, value in digits.items()}
    queue_id = "".join(names[1_000_000_000 // 52**i % 52] for i in reversed(range(6))) + "0BCDz1b2"
    fraction = sum(digits[c] * 52**i for i, c in enumerate("DCB0")) / 1e6
    line = f"Nov 30 01:43:20 mx2 postfix/cleanup[77]: {queue_id}: message-id=<{message(7, 5.25)}>\n".encode()
    assert mail_logs.mails_in_postfix(line + b"another\n") == [(queue_id, message(7, 5.25), pytest.approx(1_000_000_000 + fraction))]
    assert mail_logs.made_at(message(7, 5.25)) == 5.25
    one, two = (f"2026-11-30 01:43:2{i}.250 1ab-{i} <= from@msa1.example H=(x) [198.51.100.1] P=esmtp S=9 id={message(i, 5)}\n".encode()
                for i in (0, 1))
    first, second = mail_logs.mails_in_exim(one + b"2026-11-30 01:43:20.300 1ab-0 Completed\n" + two)
    assert (first[:2], second[2] - first[2]) == (("1ab-0", message(0, 5)), 1)


PLAN = types.SimpleNamespace(waves=2, mails=(2, 2, 2))
SENT = {f"q{i}": (message(i, 100 + 10 * (i // 2) + i), 100.5 + 10 * (i // 2) + i) for i in range(4)}


def test_each_mail_was_sent_once_and_received_once_or_not_at_all():
    def received(*numbers):
        return {f"r{place}": (message(i, 100 + 10 * (i // 2) + i), 120 + i) for place, i in enumerate(numbers)}
    mails = mail_congestion.mails_of(PLAN, 1, SENT, received(0, 1, 3))
    assert mails == [(100, 100.5, 120), (101, 101.5, 121), (112, 112.5, None), (113, 113.5, 123)]
    strange = {"r9": (message(9, 100), 120)}
    for sent_by, came in ((SENT, received(0, 0)), (SENT, received(0) | strange), (SENT | {"q9": strange["r9"]}, received(0))):
        with pytest.raises(load.LoadError):
            mail_congestion.mails_of(PLAN, 1, sent_by, came)


def test_latencies_are_of_all_mails_that_were_sent():
    found = mail_latency.latencies([(100, 100.5, 101), (100, 101, 104), (110, 110.5, 111), (110.5, 112, None)], 100, 118.5)
    assert (found["sent"], found["missing"], found["mean_s"], found["relay_mean_s"]) == (4, 1, (1 + 4 + 1 + 8) / 4, (0.5 + 3 + 0.5 + 6.5) / 4)
    assert (found["p50_s"], found["p99_s"]) == (4, 8)
    assert found["course"] == [(1, 1, 1, 0.5), (4, 1, 4, 3), (11, 1, 1, 0.5)]
    assert [mail_latency.mean_between(found["course"], "relay", *span) for span in ((0, 5), (4, 12), (5, 11))] == [1.75, 1.75, None]
    assert found["histograms"] == {"end_to_end": [(0, 2), (2, 1)], "relay": [(-1, 2), (1, 1)]}
    assert found["received"] == [0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3]
    assert [mail_latency.bin_of(s) for s in (-1, 0, 0.75, 1, 1.9, 2, 1e9)] == [-10, -10, -1, 0, 0, 1, 10]
    assert (mail_latency.bin_name(-2), mail_latency.bin_name(-1), mail_latency.bin_name(3)) == ("250 ms to 500 ms", "500 ms to 1 s", "8 s to 16 s")


def test_a_run_on_fairness_has_times_only_if_all_mails_came():
    seen = {(n, i): (f"from@msa{n}.example", 100 + i + n) for n in (1, 2, 3) for i in range(4)}
    run = mail_fairness.result(seen, 100, 4)
    assert (run["last_s"], run["all_s"], run["spread"]) == ({"msa1": 4, "msa2": 5, "msa3": 6}, 6, 1.5)
    for mails in (3, 5):
        with pytest.raises(load.LoadError):
            mail_fairness.result(seen, 100, mails)


def test_the_receiver_meets_the_addresses_that_the_page_names():
    assert len(mail_fairness.sources("smtpproxy, 6 addresses")) == 6 and len(mail_fairness.sources("Postfix relay that knows the limit")) == 1
    line = b"Nov 30 01:00:00 mx1 postfix/smtpd[7]: connect from unknown[%s]\n"
    one, two = mail_fairness.SOURCES[:2]
    said = line % one.encode() + b"Nov 30 01:00:00 mx1 postfix/smtpd[7]: disconnect from unknown[192.0.2.9]\n" + 2 * (line % two.encode())
    assert mail_fairness.connections(said, (two, one)) == {one: 1, two: 2}
    for addresses in ((one,), mail_fairness.SOURCES):
        with pytest.raises(load.LoadError):
            mail_fairness.connections(said, addresses)


def test_the_large_size_of_resources_is_a_tenth_of_the_paper_s():
    assert mail_resources.bursts(mail_resources.LARGE_FACTOR) == [100, 1000, 10000, 100000]
    works = list(mail_resources.works((mail_resources.FACTOR, mail_resources.LARGE_FACTOR), 2))
    assert works[-2:] == [(0, "smtpproxy", 10), (0, "Postfix relay", 10)] and len(works) == 2 * 2 + 2


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


def test_postfix_has_one_row_of_each_name(tmp_path):
    """Of two it warns, and the warning of its postlogd can stop it for ever."""
    room = mail_room.Room(tmp_path / "room")
    room.postfix_main("name = a\nother = b\n\nname =c = d")
    assert [row for row in (room.folder / "etc/postfix/main.cf").read_text().split("\n") if row] == ["name =c = d", "other = b"]


def test_experiments_need_no_build_with_tests():
    """A clean clone has the programs of ./cssl build only."""
    texts = {path.name: path.read_text() for path in (ROOT / "bench" / "experiments").glob("*.py")}
    assert len(texts) > 30
    assert not [name for name, text in texts.items() if re.search(r"tests/|build-test", text)]
