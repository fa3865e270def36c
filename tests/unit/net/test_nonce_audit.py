"""Facts of the nonce audit's judge: it is green on a clean run and red on every planted fault."""

import hashlib
import pathlib
import struct
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "lib" / "nonce_audit.py"
SEALED, ACCEPTED, OPENSSL = 1, 2, 3


def digest(data):
    return hashlib.blake2b(data, digest_size=16).digest()


class Run:
    """An audit directory in the making."""

    def __init__(self, directory):
        self.directory = directory
        self.files = {}

    def row(self, name, kind, record, *, connection=b"c", epoch=1, key=b"", nonce=0):
        key_id = digest(key) if key else bytes(16)
        nonce = nonce.to_bytes(12, "big") if key else bytes(12)
        packed = struct.pack("<B3xI16s16s12sI16s8x", kind, epoch, connection.ljust(16, b"\0"), key_id, nonce, len(record),
                             digest(record))
        assert len(packed) == 80
        self.files.setdefault(name, []).append(packed)

    def seal(self, record, agent="a1-10-11.0", **facts):
        facts.setdefault("key", b"k")
        self.row(agent, SEALED, record, **facts)

    def openssl(self, record, agent="a1-10-11.0", **facts):
        self.row(agent, OPENSSL, record, **facts)

    def accept(self, record, **facts):
        self.row("r1-20-21.0", ACCEPTED, record, **facts)

    def pass_through(self, record, **facts):
        self.seal(record, **facts)
        self.accept(record, **{name: value for name, value in facts.items() if name in ("connection", "epoch")})

    def judge(self, *options):
        for name, rows in self.files.items():
            (self.directory / name).write_bytes(b"".join(rows) + bytes(8000))
        done = subprocess.run([sys.executable, str(SCRIPT), str(self.directory), *options], capture_output=True, text=True,
                              check=False)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout


@pytest.fixture(name="run")
def _run(tmp_path):
    run = Run(tmp_path)
    run.openssl(b"finished")
    run.accept(b"finished")
    for number in range(100):
        run.pass_through(b"record %d" % number, nonce=number)
    return run


def test_a_clean_run_is_green(run):
    status, report = run.judge("--min-accepted", "101")
    assert status == 0
    assert "100 sealed, 101 accepted, 1 sealed by OpenSSL" in report
    assert "errors: 0" in report


def test_an_empty_run_is_green_unless_records_were_expected(tmp_path):
    (tmp_path / "a1-1-1.0").write_bytes(bytes(80 * 5))
    assert Run(tmp_path).judge()[0] == 0
    assert Run(tmp_path).judge("--min-accepted", "1")[0] == 1


def test_a_move_to_the_next_epoch_is_green(run):
    run.pass_through(b"after the move", nonce=100, epoch=2, agent="a2-30-31.0")
    assert run.judge()[0] == 0


def test_the_same_nonce_under_another_key_is_green(run):
    run.pass_through(b"other", nonce=5, key=b"other", connection=b"d")
    assert run.judge()[0] == 0


def test_the_same_record_recorded_twice_is_green(run):
    run.seal(b"record 7", nonce=7)
    assert run.judge()[0] == 0


def test_records_that_were_sealed_and_lost_are_green(run):
    run.seal(b"never arrived", nonce=100)
    assert run.judge()[0] == 0


def test_a_repeat_within_an_epoch_is_red_even_for_a_takeover(run):
    run.seal(b"planted", nonce=7)
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "2 ciphertexts in epoch 1" in report


def test_a_repeat_within_an_epoch_by_another_file_is_red(run):
    run.seal(b"planted", nonce=7, agent="a1-10-12.0")
    assert run.judge()[0] == 1


def test_a_repeat_of_one_key_by_two_connections_is_red(run):
    run.pass_through(b"planted", nonce=7, connection=b"other")
    assert run.judge()[0] == 1


def test_a_repeat_of_what_openssl_sealed_is_red(run):
    run.openssl(b"ticket", key=b"k", nonce=1000)
    run.accept(b"ticket")
    assert run.judge()[0] == 0
    run.seal(b"planted", nonce=1000)
    assert run.judge()[0] == 1


def test_a_repeat_across_epochs_is_red_unless_a_takeover_was_tested(run):
    run.seal(b"lost with its owner", nonce=100)
    run.pass_through(b"key update", nonce=100, epoch=2, agent="a2-30-31.0")
    status, report = run.judge()
    assert status == 1
    assert "different ciphertexts in epochs [1, 2]" in report
    status, report = run.judge("--allow-takeover")
    assert status == 0
    assert "nonces repeated across epochs: 1" in report


def test_each_takeover_may_repeat_one_nonce(run):
    run.seal(b"lost with its owner", nonce=100)
    run.seal(b"lost with the second", nonce=100, epoch=2, agent="a2-30-31.0")
    run.pass_through(b"key update", nonce=100, epoch=3, agent="a3-40-41.0")
    assert run.judge("--allow-takeover")[0] == 0


def test_a_takeover_that_repeats_two_nonces_is_red(run):
    for number in (100, 101):
        run.seal(b"lost %d" % number, nonce=number)
        run.seal(b"successor %d" % number, nonce=number, epoch=2, agent="a2-30-31.0")
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "a takeover may repeat one" in report


def test_two_accepted_ciphertexts_of_one_nonce_are_red_even_for_a_takeover(run):
    run.pass_through(b"one", nonce=100)
    run.pass_through(b"two", nonce=100, epoch=2, agent="a2-30-31.0")
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "2 different ciphertexts were accepted" in report


def test_a_third_ciphertext_that_is_accepted_is_not_overlooked(run):
    for epoch, record in enumerate((b"first", b"second", b"third"), 1):
        run.seal(record, nonce=100, epoch=epoch, agent=f"a{epoch}-1-1.0")
    run.accept(b"second", epoch=2)
    run.accept(b"third", epoch=3)
    assert run.judge("--allow-takeover")[0] == 1


def test_an_accepted_record_that_nobody_sealed_is_red(run):
    run.accept(b"forged")
    status, report = run.judge()
    assert status == 1
    assert "nobody sealed" in report


def test_a_record_accepted_on_another_connection_is_red(run):
    run.accept(b"record 7", connection=b"other")
    assert run.judge()[0] == 1


def test_two_owners_in_one_epoch_are_red(run):
    run.seal(b"twin", nonce=100, agent="a2-30-31.0")
    status, report = run.judge()
    assert status == 1
    assert "sealed by a1-10 and by a2-30" in report


def test_an_unknown_kind_is_red(run):
    run.row("a1-10-11.0", 9, b"?")
    assert run.judge()[0] == 1


def test_large_runs_are_judged_in_parts_with_the_same_result(run, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import nonce_audit
    monkeypatch.setattr(nonce_audit, "ROWS_AT_ONCE", 50)
    for number in range(200):
        run.pass_through(b"record %d" % number, nonce=number, connection=bytes([number]), key=bytes([number]) * 32)
    run.judge()
    clean = nonce_audit.Audit(nonce_audit.load(run.directory))
    assert clean.parts > 5
    assert clean.judge(False), clean.errors
    run.pass_through(b"planted", nonce=77, connection=bytes([77]), key=bytes([77]) * 32)
    run.accept(b"forged", connection=b"\xff")
    run.judge()
    red = nonce_audit.Audit(nonce_audit.load(run.directory))
    assert not red.judge(False)
    assert len(red.errors) == 3
