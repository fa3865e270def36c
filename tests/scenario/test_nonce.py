"""Never two ciphertexts for one key and nonce: the audit that judges every scenario sees a reuse, and nothing is sealed under an
agent's own new keys before RAgent has the KeyUpdate."""

import contextlib
import signal
import time
from collections import namedtuple

import pytest

from tests.lib import nonce_audit
from tests.lib.build import patience
from tests.lib.pattern import first_difference
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.usefixtures("test_points")

COMMIT_DELAY_MS = 500
KEY_UPDATE_RECORD_LEN = 5 + 5 + 1 + 16  # header, message, inner type, tag

Sealed = namedtuple("Sealed", "key length")


def get(web, path):
    web.request("GET", path)
    return web.getresponse().read()


def test_the_audit_sees_every_record_of_a_clean_cluster(start_cluster):
    cluster = start_cluster("--agents", "2")
    for version in ("1.2", "1.3"):
        with contextlib.closing(cluster.http(context=cluster.context(version))) as web:
            assert first_difference(get(web, "/1m"), 1 << 20) is None
    wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 0)
    records = cluster.counter("records_sealed")
    assert records >= 2 * 64
    report = cluster.check_nonces(min_accepted=records)
    assert f"records: {records} sealed, {records} accepted" in report
    with pytest.raises(AssertionError, match=f"at least {records + 1} expected"):
        cluster.check_nonces(min_accepted=records + 1)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_planted_reuse_turns_the_audit_red_and_the_client_away(start_cluster, version):
    cluster = start_cluster("--agents", "2", faults=["live.reuse fail after 2 times 1"], reuse_planted=True)
    with Probe(cluster.sl) as probe:
        assert probe("handshake", version=version, sni="localhost")["done"]
        answer = probe("get", path="/1m")
        assert answer["outcome"] != "complete" and answer["length"] < 1 << 20
        assert probe("end", until="tls")["tls"] == "failed"
    wait_until(lambda: not cluster.connections(), patience(10), "the row of the last record, which RAgent writes when the client has it")
    report = cluster.check_nonces()
    assert "2 ciphertexts in epoch 1" in report and "2 different ciphertexts were accepted" in report
    assert "errors: 2\n" in report


def rows(cluster, process, kind):
    """The rows that a process wrote so far, in order; there is one worker, so one file."""
    path = next(iter(cluster.audit.glob(f"{process}-*")), None)
    return [row for row in nonce_audit.Rows(path) if row[0] == kind] if path else []


def sealed_by(cluster, agent, connection):
    return [Sealed(row[5], row[7]) for row in rows(cluster, agent, nonce_audit.SEALED) if row[4].hex() == connection]


def place_of_key_update(sealed):
    """How many records came first; None before there is one."""
    lengths = [record.length for record in sealed]
    return lengths.index(KEY_UPDATE_RECORD_LEN) if KEY_UPDATE_RECORD_LEN in lengths else None


def assert_nothing_under_new_keys(sealed):
    """The KeyUpdate is the last that was sealed, under the keys from before."""
    assert place_of_key_update(sealed) == len(sealed) - 1
    assert len({record.key for record in sealed}) == 1


def open_connection(cluster, probe):
    """Its id and owner, after the handshake and a first answer."""
    assert probe("handshake", version="1.3", sni="localhost")["done"]
    assert probe("get", path="/5")["outcome"] == "complete"
    (connection,) = cluster.connections(listener="sl")
    return connection["id"], connection["owner"]


def assert_allowed_end(answer):
    """A cut that the client can tell from an end: never close_notify, and no FIN without it."""
    assert answer["tls"] != "close_notify"
    assert answer["end"] in ("rst", "alert"), answer


def test_an_agent_killed_at_its_key_update_sealed_nothing_behind_it(start_cluster):
    cluster = start_cluster("--agents", "2", faults=["keyupdate.sealed kill"], takeover=True)
    with Probe(cluster.sl) as probe:
        connection, owner = open_connection(cluster, probe)
        probe("send", text="GET /20m HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert probe("read", bytes=100000)["bytes"] == 100000  # and no more: the rest waits for the client
        probe("key_update", request=1)
        assert cluster.wait_gone(owner) == 128 + signal.SIGKILL
        sealed = sealed_by(cluster, owner, connection)
        assert_nothing_under_new_keys(sealed)
        assert_allowed_end(probe("end"))
    accepted = [row for row in rows(cluster, "r1", nonce_audit.ACCEPTED) if row[4].hex() == connection]
    assert KEY_UPDATE_RECORD_LEN not in {row[7] for row in accepted}  # it died before it could say it
    wait_until(lambda: not cluster.connections())
    cluster.restart(owner)


@pytest.fixture
def slow_commits(start_cluster):
    """A cluster whose agents hear of each commit late. Its links are up before: agents do not wait so long for an opening."""
    cluster = start_cluster("--agents", "2", takeover=True)
    cluster.faults(f"link.write delay {COMMIT_DELAY_MS} on r1")
    cluster.settle_faults()
    return cluster


def test_nothing_is_sealed_behind_a_key_update_before_its_commit(slow_commits):
    size = 300000
    with Probe(slow_commits.sl) as probe:
        connection, owner = open_connection(slow_commits, probe)
        probe("key_update", request=1)
        probe.start("get", path=f"/{size}")

        def sealed():
            return sealed_by(slow_commits, owner, connection)

        wait_until(lambda: place_of_key_update(sealed()) is not None)
        seen = time.monotonic()
        assert_nothing_under_new_keys(sealed())
        wait_until(lambda: len(sealed()) > place_of_key_update(sealed()) + 1)
        assert time.monotonic() - seen >= 0.6 * COMMIT_DELAY_MS / 1000  # the answer was there long before
        answer = probe.finish()
        assert (answer["outcome"], answer["length"], answer["wrong_at"]) == ("complete", size, None)
        place, all_sealed = place_of_key_update(sealed()), sealed()
    old, new = all_sealed[:place + 1], all_sealed[place + 1:]
    assert len(new) >= size // 16384
    assert len({record.key for record in old}) == len({record.key for record in new}) == 1
    assert old[0].key != new[0].key


def test_an_agent_killed_while_it_waits_for_the_commit_sealed_nothing_more(slow_commits):
    with Probe(slow_commits.sl) as probe:
        connection, owner = open_connection(slow_commits, probe)
        probe("key_update", request=1)
        probe.start("get", path="/300000")
        wait_until(lambda: place_of_key_update(sealed_by(slow_commits, owner, connection)) is not None)
        slow_commits.kill(owner)
        assert_nothing_under_new_keys(sealed_by(slow_commits, owner, connection))
        answer = probe.finish()  # of it the client had got nothing yet: another agent asks again
        assert (answer["outcome"], answer["wrong_at"]) == ("complete", None)
    slow_commits.clear_faults()
    slow_commits.restart(owner)
