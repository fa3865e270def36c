"""A live connection moves between agents at any record boundary, and no byte is lost, doubled or changed: streams up and down for
every suite, amid requests, with KeyUpdates of the client, from whichever source the adopting agent has the keys.

Two suites stream at length in every run, all of them with ./cssl test --full."""

import hashlib
import json
import statistics

import pytest

from tests.lib.build import FULL, patience, scaled
from tests.lib.cluster import ControlError
from tests.lib.edits import edits, instead, nobody_moves
from tests.lib.mover import Mover, after, settled
from tests.lib.pattern import first_difference, pattern
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until

SUITES_13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
SUITES_12 = [f"ECDHE-{certificate}-{cipher}" for certificate in ("ECDSA", "RSA")
             for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")]
AT_LENGTH = SUITES_13 + SUITES_12 if FULL else ["TLS_AES_128_GCM_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"]
MOVES = 50
STREAM_MS = scaled(6000, 800)  # long enough for so many, on a busy machine too
KEY_UPDATES = 8 + STREAM_MS // 1500  # in it; a client may make eight at once and one a second


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", edit=nobody_moves)


def shake_hands(probe, **how):
    answer = probe("handshake", sni="localhost", alpn="http/1.1", **how)
    assert answer["done"]
    return answer


def stream(probe, direction, size, **how):
    """Begins it. As fast as it goes would be over before it has moved."""
    how["timeout_ms"] = patience(60) * 1000
    if direction == "down":
        probe.start("get", path=f"/slow?bytes={size}&ms={STREAM_MS}", **how)
    else:
        probe.start("post", path="/sha256", bytes=size, rate=size * 1000 // STREAM_MS, **how)


def check_stream(probe, direction, size):
    answer = probe.finish()
    assert (answer["outcome"], answer["status"]) == ("complete", 200)
    expected = hashlib.sha256(pattern(size)).hexdigest()
    if direction == "down":
        assert (answer["length"], answer["wrong_at"], answer["sha256"]) == (size, None, expected)
    else:
        wanted = json.dumps({"sha256": expected, "length": size}, separators=(",", ":")) + "\n"
        assert answer["sent"] == size and answer["sha256"] == hashlib.sha256(wanted.encode()).hexdigest()
    return answer


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("suite", SUITES_13 + SUITES_12)
def test_a_stream_goes_on_over_fifty_moves(cluster, suite, direction):
    size, moves = scaled((100 if suite in AT_LENGTH else 10) << 20), scaled(MOVES)
    updates = {"key_update_every": size // KEY_UPDATES} if suite in SUITES_13 else {}
    adopted = cluster.counter("adopted")
    with Probe(cluster.sf) as probe:
        assert shake_hands(probe, suite=suite)["version"] == ("TLSv1.3" if suite in SUITES_13 else "TLSv1.2")
        settled(cluster, probe)
        stream(probe, direction, size, **updates)
        passed, pauses = Mover.amid(cluster, probe, size, moves)
        assert passed < size
        answer = check_stream(probe, direction, size)
        assert answer["key_updates"] >= KEY_UPDATES * (suite in SUITES_13)
        assert probe("get", path="/1k")["wrong_at"] is None
    assert cluster.counter("adopted") - adopted >= moves
    print(f"{suite} {direction}: {size} bytes, {len(pauses)} moves, {answer['key_updates']} KeyUpdates of the client,"
          f" pause {statistics.median(pauses) / 1000:.2f} ms, at most {max(pauses) / 1000:.2f}")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("listener", ["sf", "sl"])
def test_a_request_moves_after_each_of_its_records(cluster, version, listener):
    """Its answer moves, too, because it also comes in pieces."""
    pieces = [f"piece {n}," for n in range(20)]
    body = "".join(pieces).encode()
    with Probe(getattr(cluster, listener)) as probe:
        shake_hands(probe, version=version)
        move = Mover(1)
        probe("send", text=f"POST /sha256 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n")
        for n, piece in enumerate(pieces):
            move(cluster, probe)
            probe("send", text=piece, **({"key_update": ("before", "after", "both")[n % 3]} if version == "1.3" else {}))
        answer = probe("read", until="}\n")["text"]
        assert hashlib.sha256(body).hexdigest() in answer and "200 OK" in answer
        probe.start("get", path="/slow?bytes=2000&ms=1")
        for _ in range(5):
            move(cluster, probe)
        assert probe.finish()["outcome"] == "complete"


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_half_a_record_waits_while_its_connection_moves(cluster, version):
    with Probe(cluster.sf) as probe:
        shake_hands(probe, version=version)
        owner = Mover(0)(cluster, probe)
        records = settled(cluster, probe)["client_records"]
        probe("pace", bytes=8, every_ms=20)
        probe.start("get", path="/5")
        owner = Mover(2)(cluster, probe)
        assert settled(cluster, probe)["client_records"] == records  # it is not whole yet
        answer = probe.finish()
        assert answer["outcome"] == "complete" and answer["headers"]["x-cssl-agent"] == owner


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_an_idle_connection_moves_as_often_as_one_likes(cluster, version):
    with Probe(cluster.sf) as probe:
        shake_hands(probe, version=version)
        for _ in range(3):
            owner = Mover(scaled(MOVES))(cluster, probe)
            answer = probe("get", path="/64k")
            assert (answer["wrong_at"], answer["headers"]["x-cssl-agent"]) == (None, owner)
            if version == "1.3":
                probe("key_update", request=1)


def test_a_requested_key_update_is_answered_whoever_owns_the_connection(cluster):
    with Probe(cluster.sf) as probe:
        shake_hands(probe, version="1.3")
        for n in range(1, 10):
            probe("key_update", request=1)
            Mover(1)(cluster, probe)
            assert probe("get", path="/100000")["wrong_at"] is None
            generations = {g: settled(cluster, probe)[g] for g in ("read_generation", "write_generation")}
            assert generations == {"read_generation": n, "write_generation": n}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_half_closed_connection_moves_with_the_answer_it_waits_for(cluster, version):
    with Probe(cluster.sf) as probe:
        shake_hands(probe, version=version)
        probe("send", text="GET /slow?bytes=3000&ms=500 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        probe("read", until="\r\n\r\n")
        probe("close_notify")
        probe("fin")
        Mover(2)(cluster, probe)
        end = probe("end")
        assert (end["tls"], end["tcp"], end["bytes"]) == ("close_notify", "fin", 3000)


# Where the keys come from


def sources(cluster):
    return {name: cluster.counter(f"adopted_from_{name}") for name in ("broadcast", "copy", "frozen")}


def adopted_since(cluster, before):
    return {name: count - before[name] for name, count in sources(cluster).items() if count != before[name]}


def keeps_working(probe):
    answer = probe("get", path="/100000")
    assert (answer["outcome"], answer["wrong_at"]) == ("complete", None)
    return answer["headers"]["x-cssl-agent"]


@pytest.fixture
def kept(cluster, request, test_points):
    """A client of an agent that others have heard the live part of. Fault rules end with the test."""
    with Probe(cluster.sl) as probe:
        heard = {name: c["live_stored"] for name, c in cluster.counters().items() if name != "ragent"}
        shake_hands(probe, version=request.param)
        owner = keeps_working(probe)
        wait_until(lambda: all(cluster.counters()[name]["live_stored"] > heard[name] for name in heard if name != owner))
        yield probe, owner
    cluster.clear_faults()


versions = pytest.mark.parametrize("kept", ["1.2", "1.3"], indirect=True)


def set_faults(cluster, *rules):
    """Until every process goes by them: they look every 20 ms."""
    cluster.faults(*rules)
    cluster.settle_faults()


@versions
def test_the_broadcast_alone_is_enough(cluster, kept):
    probe, owner = kept
    # SSL_ID comes later than the datagram, which else is mostly overtaken
    set_faults(cluster, "copy.open fail", "link.write delay 50 on r1")
    before, target = sources(cluster), after(cluster, owner)
    cluster.move(settled(cluster, probe)["id"], target)
    assert keeps_working(probe) == target
    assert adopted_since(cluster, before) == {"broadcast": 1}


@versions
def test_the_sealed_copy_alone_is_enough(cluster, kept):
    probe, owner = kept
    set_faults(cluster, "live.find fail")
    before = sources(cluster)
    for _ in range(3):
        owner = after(cluster, owner)
        cluster.move(settled(cluster, probe)["id"], owner)
        assert keeps_working(probe) == owner
    assert adopted_since(cluster, before) == {"copy": 3}


@versions
def test_an_agent_that_finds_neither_refuses_and_the_owner_goes_on(cluster, kept):
    probe, owner = kept
    set_faults(cluster, f"copy.open fail on {after(cluster, owner)}", f"live.find fail on {after(cluster, owner)}")
    before, refused = sources(cluster), cluster.counter("adopts_refused")
    with pytest.raises(ControlError, match="409"):
        cluster.move(settled(cluster, probe)["id"], after(cluster, owner))
    assert keeps_working(probe) == owner
    assert adopted_since(cluster, before) == {"frozen": 1} and cluster.counter("adopts_refused") == refused + 1


def test_live_parts_that_are_only_carried_are_not_broadcast(start_cluster):
    cluster = start_cluster("--agents", "2", edit=edits(instead("broadcast:", "broadcast:\n  live: carried"), nobody_moves))
    for version in ("1.2", "1.3"):
        with Probe(cluster.sf) as probe:
            shake_hands(probe, version=version)
            owner = keeps_working(probe)
            if version == "1.3":
                probe("key_update", request=1)
            assert Mover(3)(cluster, probe) == keeps_working(probe) != owner
    assert sources(cluster)["broadcast"] == 0 and sources(cluster)["copy"] >= 6
    assert cluster.counter("live_stored") == 0


# What cannot move


def test_a_move_that_makes_no_sense_is_refused_and_changes_nothing(cluster):
    web = cluster.http()
    identity, owner = (lambda c: (c["id"], c["owner"]))(settled(cluster, web.sock))
    for target, status in ((owner, "409"), ("nobody", "404")):
        with pytest.raises(ControlError, match=status):
            cluster.move(identity, target)
    with pytest.raises(ControlError, match="404"):
        cluster.move("0" * 32, owner)
    web.request("GET", "/1000")
    assert first_difference(web.getresponse().read(), 1000) is None
    web.close()


def test_without_migration_no_connection_moves(start_cluster):
    cluster = start_cluster("--agents", "2", "--no-migration")
    web = cluster.http()
    connection = settled(cluster, web.sock)
    with pytest.raises(ControlError, match="409"):
        cluster.move(connection["id"], after(cluster, connection["owner"]))
    web.request("GET", "/1000")
    assert first_difference(web.getresponse().read(), 1000) is None
    web.close()
