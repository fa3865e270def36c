"""Facts of the nonce audit's judge: it is green on a clean run and red on every planted fault."""

import hashlib
import pathlib
import struct
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "lib" / "nonce_audit.py"
SEALED, ACCEPTED, OPENSSL, FROZEN, LOST, COPIED, IN_RING = 1, 2, 3, 4, 5, 6, 7
ALERT, KEY_UPDATE, DATA = 21, 22, 23
TLS13, GCM_TLS12, CHACHA20_TLS12 = 0x1301, 0xc02b, 0xcca9


def digest(data):
    return hashlib.blake2b(data, digest_size=16).digest()


class Run:
    """An audit directory in the making."""

    def __init__(self, directory):
        self.directory = directory
        self.files = {}
        self.now = 0

    def row(self, name, kind, record, *, connection=b"c", epoch=1, key=b"", nonce=0, content=0, suite=0):
        self.now += 1
        key_id = digest(key) if key else bytes(16)
        nonce = nonce.to_bytes(12, "big") if key else bytes(12)
        packed = struct.pack("<BBHI16s16s12sI16sQ", kind, content, suite, epoch, connection.ljust(16, b"\0"), key_id, nonce,
                             len(record), digest(record), self.now)
        assert len(packed) == 80
        self.files.setdefault(name, []).append(packed)

    def seal(self, record, agent="a1-10-11.0", **facts):
        self.row(agent, SEALED, record, **{"key": b"k", "content": DATA, "suite": TLS13, **facts})

    def copy(self, agent="a1-10-11.0", **facts):
        self.row(agent, COPIED, b"", **facts)

    def key_update(self, nonce, **facts):
        self.copy(**{name: value for name, value in facts.items() if name in ("agent", "connection", "epoch")})
        self.seal(b"key update", nonce=nonce, content=KEY_UPDATE, **facts)

    def freeze(self, agent="a1-10-11.0", **facts):
        self.row(agent, FROZEN, b"", **facts)

    def lose(self, agent="a1-10-11.0", **facts):
        self.row(agent, LOST, b"", **facts)

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
    run.freeze()
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
    status, report = run.judge("--min-undelivered", "1")
    assert status == 0
    assert "sealed and never accepted: 1" in report


def test_a_run_in_which_nothing_was_in_doubt_is_red_where_that_was_expected(run):
    status, report = run.judge("--min-undelivered", "1")
    assert status == 1
    assert "0 records sealed and never accepted, at least 1 expected" in report


def test_records_of_connections_that_ragent_does_not_have_are_not_awaited(run):
    run.seal(b"to the client itself", connection=b"direct", key=b"d")
    assert "sealed and never accepted: 0" in run.judge()[1]


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
    run.key_update(1000, epoch=2, agent="a2-30-31.0")
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "used by OpenSSL, and in epochs [1, 2]" in report


def test_a_repeat_across_epochs_is_red_unless_a_takeover_was_tested(run):
    run.seal(b"lost with its owner", nonce=100)
    run.key_update(100, epoch=2, agent="a2-30-31.0")
    status, report = run.judge()
    assert status == 1
    assert "different ciphertexts in epochs [1, 2]" in report
    status, report = run.judge("--allow-takeover")
    assert status == 0
    assert "nonces repeated across epochs: 1" in report


def test_each_takeover_may_repeat_one_nonce(run):
    run.seal(b"lost with its owner", nonce=100)
    run.key_update(100, epoch=2, agent="a2-30-31.0")
    run.seal(b"alert", nonce=100, epoch=3, agent="a3-40-41.0", content=ALERT)
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
    run.pass_through(b"two", nonce=100, epoch=2, agent="a2-30-31.0", content=ALERT)
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


def test_a_record_that_is_accepted_in_another_epoch_is_red(run):
    run.seal(b"late", nonce=100)
    run.accept(b"late", epoch=2)
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "was accepted that was sealed in epochs [1]" in report


# law 5


def test_a_takeover_that_repeats_a_nonce_with_data_is_red(run):
    run.seal(b"lost with its owner", nonce=100)
    run.seal(b"its successor's", nonce=100, epoch=2, agent="a2-30-31.0")
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "repeated in epoch 2 by application data of suite 1301" in report


def test_a_takeover_of_tls12_that_repeats_a_nonce_is_red_whatever_it_says(run):
    run.seal(b"lost with its owner", nonce=100, suite=GCM_TLS12)
    run.seal(b"alert", nonce=100, epoch=2, agent="a2-30-31.0", content=ALERT, suite=GCM_TLS12)
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "repeated in epoch 2 by an alert of suite c02b" in report


def test_a_takeover_that_says_data_under_the_same_keys_is_red_before_a_nonce_repeats(run):
    run.seal(b"its successor's", nonce=100, epoch=2, agent="a2-30-31.0")
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "epoch 2: 1 records in doubt under one key, the first of them application data" in report


def test_a_takeover_that_goes_on_under_the_same_keys_behind_its_key_update_is_red(run):
    run.key_update(100, epoch=2, agent="a2-30-31.0")
    assert run.judge("--allow-takeover")[0] == 0
    run.seal(b"more", nonce=101, epoch=2, agent="a2-30-31.0")
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "epoch 2: 2 records in doubt under one key" in report


def test_a_takeover_of_tls12_goes_on_with_aes_gcm_and_not_with_chacha20(run):
    run.seal(b"mine", nonce=1, suite=GCM_TLS12, key=b"gcm")
    run.seal(b"its successor's", nonce=2, suite=GCM_TLS12, key=b"gcm", epoch=2, agent="a2-30-31.0")
    assert run.judge("--allow-takeover")[0] == 0
    run.seal(b"mine", nonce=1, suite=CHACHA20_TLS12, key=b"chacha", connection=b"d")
    run.seal(b"its successor's", nonce=2, suite=CHACHA20_TLS12, key=b"chacha", connection=b"d", epoch=2, agent="a2-30-31.0")
    status, report = run.judge("--allow-takeover")
    assert status == 1
    assert "epoch 2: 1 records in doubt under keys of TLS 1.2 with ChaCha20" in report


def test_an_owner_that_only_lost_its_link_leaves_doubt(run):
    run.lose()
    run.seal(b"its successor's", nonce=100, epoch=2, agent="a2-30-31.0")
    assert run.judge("--allow-takeover")[0] == 1


# law 6


def test_a_record_behind_a_key_update_that_is_not_committed_is_red(run):
    run.key_update(100)
    run.accept(b"key update")
    run.seal(b"behind it", nonce=0, key=b"k2")
    assert run.judge()[0] == 0
    run.seal(b"key update 2", nonce=1, key=b"k2", content=KEY_UPDATE)
    run.seal(b"too early", nonce=0, key=b"k3")
    status, report = run.judge()
    assert status == 1
    assert "a record was sealed behind a KeyUpdate that was not committed" in report
    run.accept(b"key update 2")
    assert run.judge()[0] == 1


def test_a_key_update_without_a_copy_of_the_next_keys_is_red(run):
    run.key_update(nonce=0)
    run.accept(b"key update")
    run.seal(b"key update 2", key=b"k2", nonce=0, content=KEY_UPDATE)
    run.accept(b"key update 2")
    status, report = run.judge()
    assert status == 1
    assert "1 KeyUpdates were sealed before a copy of the keys behind them" in report


def test_without_ragent_nobody_commits(run):
    run.copy(connection=b"direct")
    run.seal(b"key update", key=b"d", content=KEY_UPDATE, connection=b"direct")
    run.seal(b"behind it", key=b"d2", connection=b"direct")
    assert run.judge()[0] == 0


# law 7


@pytest.mark.parametrize("leave", ["freeze", "lose"])
def test_a_record_sealed_by_an_agent_that_has_left_is_red(run, leave):
    getattr(run, leave)()
    run.seal(b"too late", nonce=100)
    status, report = run.judge()
    assert status == 1
    assert "epoch 1: 1 records were sealed after the agent had left it" in report


def test_a_record_sealed_in_shared_memory_is_red(run):
    run.row("a1-10-11.0", IN_RING, b"")
    status, report = run.judge()
    assert status == 1 and "1 records were sealed in memory that another process can write" in report


def test_an_unknown_kind_is_red(run):
    run.row("a1-10-11.0", 9, b"?")
    assert run.judge()[0] == 1


def test_large_runs_are_judged_in_parts_with_the_same_result(run, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import nonce_audit
    monkeypatch.setattr(nonce_audit, "ROWS_AT_ONCE", 50)
    for number in range(200):
        run.pass_through(b"record %d" % number, nonce=number, connection=bytes([number]), key=bytes([number]) * 32)
    run.seal(b"lost with its owner", nonce=78, connection=bytes([77]), key=bytes([77]) * 32)
    run.judge()
    clean = nonce_audit.Audit(nonce_audit.load(run.directory))
    assert clean.parts > 5
    assert clean.judge(False), clean.errors
    assert clean.undelivered == 1
    run.pass_through(b"planted", nonce=77, connection=bytes([77]), key=bytes([77]) * 32)
    run.accept(b"forged", connection=b"\xff")
    run.seal(b"data of its successor", nonce=79, connection=bytes([77]), key=bytes([77]) * 32, epoch=2, agent="a2-30-31.0")
    run.judge()
    red = nonce_audit.Audit(nonce_audit.load(run.directory))
    assert not red.judge(False)
    assert len(red.errors) == 4
