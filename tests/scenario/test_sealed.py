"""The bytes on the wire between hosts: a capture of sealed links and of the broadcast shows no secret and none of the bytes of
clients and backends; and a process that is not an agent of the cluster changes nothing."""

import contextlib
import hashlib
import hmac
import os
import random
import re
import socket
import struct
import subprocess
from unittest.mock import ANY

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import binary, patience, scaled
from tests.lib.capture import Capture
from tests.lib.edits import edits, instead, nobody_moves, over_tcp, parks_long
from tests.lib.probe import Probe
from tests.lib.storm import Storm
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.tool("tcpdump")]

BODY = 65536
REQUESTED = b"X-Note: a thing that only the backend may read"


def ports_of(cluster, key):
    """Those that the cluster file has for this key."""
    return [int(port) for port in re.findall(rf"\b{key}: \"?127\.0\.0\.1:(\d+)", (cluster.dir / "cluster.yaml").read_text())]


def hkdf_expand_label(secret, label, length):
    """RFC 8446 section 7.1; one block is enough for keys."""
    label = b"tls13 " + label
    info = struct.pack("!HB", length, len(label)) + label + b"\0"
    return hmac.new(secret, info + b"\1", {32: hashlib.sha256, 48: hashlib.sha384}[len(secret)]).digest()[:length]


def keys_of(secret):
    """The record keys that follow from a secret of TLS 1.3."""
    return [hkdf_expand_label(secret, label, length) for label, length in ((b"key", 16), (b"key", 32), (b"iv", 12))]


def fetch(cluster, version, folder):
    """A request by openssl s_client: its answer, and all secrets that this client has of the connection."""
    keylog, session = folder / f"keylog-{version}", folder / f"session-{version}"
    host, port = cluster.sf
    request = b"GET /%d HTTP/1.1\r\nHost: localhost\r\n%s\r\nConnection: close\r\n\r\n" % (BODY, REQUESTED)
    answer = subprocess.run(
        ["openssl", "s_client", "-connect", f"{host}:{port}", "-servername", "localhost", "-CAfile", cluster.ca, "-quiet",
         "-verify_quiet", "-tls" + version.replace(".", "_"), "-keylogfile", keylog, "-sess_out", session],
        input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=patience(20), check=True).stdout
    secrets = [bytes.fromhex(line.split()[2]) for line in keylog.read_text().splitlines() if not line.startswith("#")]
    if version == "1.3":
        secrets += [key for secret in list(secrets) for key in keys_of(secret)]
    shown = subprocess.run(["openssl", "sess_id", "-in", session, "-noout", "-text"], text=True, stdout=subprocess.PIPE,
                           check=True).stdout
    secrets.append(bytes.fromhex(re.search(r"(?:Master-Key|Resumption PSK): (\w+)", shown).group(1)))
    return answer, secrets


def seen_in(flows, wanted):
    """Which of these bytes, or their hexadecimal digits, are in any of these flows."""
    return [w for w in wanted if any(form in flow for form in (w, w.hex().encode(), w.hex().upper().encode()) for flow in flows)]


@pytest.mark.parametrize("protection", ["sealed", "trusted"])
def test_a_capture_shows_nothing_of_what_clients_say_and_no_secret(start_cluster, tmp_path, protection):
    """A trusted link hides the same, because clients' records are sealed and live keys travel as sealed copies. All other bytes
    on it can be read. So a capture of it shows that this test would find them."""
    cluster = start_cluster("--agents", "3", "--link", protection, edit=over_tcp)
    links, peers, backend = ports_of(cluster, "link"), ports_of(cluster, "peer"), ports_of(cluster, "main, address")
    assert len(links) == len(peers) == 3
    secrets, answers = [], []
    with Capture(tmp_path / "wire", links + peers + backend) as wire:
        for version in ("1.2", "1.3") * 3:
            answer, more = fetch(cluster, version, tmp_path)
            answers.append(answer)
            secrets += more
        wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 0)
        wait_until(lambda: cluster.counter("live_dropped") == cluster.counter("live_stored") > 0)
    assert cluster.counter("handed_off") > 0 and len(secrets) > 20
    said = [REQUESTED, b"X-CSSL-Agent: ", answers[0][-BODY:][1000:1064]]
    connections = [bytes.fromhex(found) for found in re.findall(r"connection (\w{32}): ended", cluster.log("access"))]
    assert len(connections) == len(answers)

    def flows(ports, protocol):
        return [data for (source, to, of), data in wire.flows.items() if of == protocol and {source, to} & set(ports)]

    on_links, broadcast = flows(links, "tcp"), flows(peers, "udp")
    assert sum(map(len, on_links)) > len(answers) * BODY and sum(map(len, broadcast)) > len(answers) * 100
    assert seen_in(flows(backend, "tcp"), said) == said
    everything = on_links + broadcast + flows(peers, "tcp")
    assert seen_in(everything, said + secrets) == []
    known = [b"localhost", *connections]  # of hellos, and of OPEN
    assert seen_in(on_links, known) == (known if protection == "trusted" else [])
    assert seen_in(broadcast + flows(peers, "tcp"), known) == []


HEADER = struct.Struct("!BBHQQQ")  # proto/datagram.h
FRESH = 1 << 30                    # added to a counter: never seen before
TAG = 16
LONGEST = HEADER.size + 1344 + TAG

STATE = ("sessions", "session_bytes", "live_parts", "tombstones", "sessions_stored", "sessions_known", "sessions_evicted",
         "sessions_revoked", "sessions_refused", "live_stored", "live_refused", "live_dropped", "epochs_refused",
         "objects_received", "objects_duplicate", "objects_missed", "objects_forgotten", "messages_bad", "messages_stale",
         "messages_unproven", "peers_up", "peer_links_opened", "peer_links_lost", "snapshots_taken", "pulls_answered")
DROPPED = ("datagrams_malformed", "datagrams_key_unknown", "datagrams_old_boot", "datagrams_forged", "datagrams_replayed")


def rewrite(datagram, **fields):
    """With other header fields: worker, key, boot, counter, version, zero."""
    names = ("version", "zero", "worker", "key", "boot", "counter")
    header = dict(zip(names, HEADER.unpack_from(datagram)))
    return HEADER.pack(*{**header, **{name: change(header[name]) for name, change in fields.items()}}.values()) + \
        datagram[HEADER.size:]


def fresh(datagram):
    return rewrite(datagram, counter=lambda counter: counter + FRESH)


def flip(datagram, place):
    """One bit of the byte at this place."""
    return datagram[:place] + bytes([datagram[place] ^ 1 << place % 8]) + datagram[place + 1:]


def anywhere(datagram, dice):
    return dice.randrange(HEADER.size, len(datagram))


# What is done to a datagram that was heard, and what it counts as.
ATTACKS = [
    ("replayed", lambda d, dice: d, "datagrams_replayed"),
    ("flipped bit, replayed", lambda d, dice: flip(d, anywhere(d, dice)), "datagrams_replayed"),
    ("flipped bit", lambda d, dice: flip(fresh(d), anywhere(d, dice)), "datagrams_forged"),
    ("flipped bit of the tag", lambda d, dice: flip(fresh(d), len(d) - dice.randint(1, TAG)), "datagrams_forged"),
    ("another counter", lambda d, dice: fresh(d), "datagrams_forged"),
    ("truncated", lambda d, dice: fresh(d)[:dice.randrange(HEADER.size + TAG, len(d))], "datagrams_forged"),
    ("made longer", lambda d, dice: fresh(d)[:LONGEST - 50] + dice.randbytes(50), "datagrams_forged"),
    ("invented", lambda d, dice: fresh(d)[:HEADER.size] + dice.randbytes(100), "datagrams_forged"),
    ("truncated below the tag", lambda d, dice: d[:dice.randrange(1, HEADER.size + TAG)], "datagrams_malformed"),
    ("too long", lambda d, dice: fresh(d) + bytes(LONGEST), "datagrams_malformed"),
    ("another version", lambda d, dice: rewrite(d, version=lambda v: v + 1), "datagrams_malformed"),
    ("reserved byte", lambda d, dice: rewrite(d, zero=lambda z: 1), "datagrams_malformed"),
    ("no such worker", lambda d, dice: rewrite(d, worker=lambda w: w + 100), "datagrams_malformed"),
    ("counter out of range", lambda d, dice: rewrite(d, counter=lambda c: 1 << 62), "datagrams_malformed"),
    ("another boot", lambda d, dice: rewrite(d, boot=lambda b: b ^ 1), "datagrams_old_boot"),
    ("another key", lambda d, dice: rewrite(d, key=lambda k: k ^ 1), "datagrams_key_unknown"),
    ("noise", lambda d, dice: b"\1\0" + dice.randbytes(200), None),
]
AT_ONCE = 20  # fits a socket's buffer


def state(cluster):
    counters = cluster.counters()
    return {agent: {name: counters[agent][name] for name in STATE} for agent in cluster.agents}


def dropped(cluster, agent):
    counters = cluster.counters()[agent]
    return {name: counters[name] for name in DROPPED}


def send_all(to, datagrams):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for datagram in datagrams:
            stranger.sendto(datagram, ("127.0.0.1", to))


def attack(cluster, agent, port, datagrams, counted_as):
    """Each is dropped, and counted as this or, if None, as anything."""
    before = dropped(cluster, agent)
    send_all(port, datagrams)

    def counted():
        return {name: n - before[name] for name, n in dropped(cluster, agent).items() if n != before[name]}

    wait_until(lambda: sum(counted().values()) >= len(datagrams), what=f"{len(datagrams)} counted as {counted_as}")
    assert counted_as is None or counted() == {counted_as: len(datagrams)}


def shake_hands(clients, count):
    assert clients("full") == {"full": count, "resumed": 0, "failed": 0}


def resume(clients, count):
    assert clients("resume") == {"full": 0, "resumed": count, "failed": 0}


def settled(cluster, sessions, live_parts=0):
    """Waits until all messages have arrived and are shown: every agent has so many sessions; all together have so many live
    parts."""
    def heard():
        agents = [counted for name, counted in cluster.counters().items() if name != "ragent"]
        return all(c["sessions"] == sessions for c in agents) and sum(c["live_parts"] for c in agents) == live_parts and \
            sum(c["objects_sent"] for c in agents) * (len(agents) - 1) == sum(c["objects_received"] for c in agents)
    wait_until(heard)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_forged_and_replayed_datagrams_change_nothing_and_are_counted(start_cluster, tmp_path, version):
    cluster = start_cluster("--agents", "3", edit=nobody_moves)
    peers, count, dice = dict(zip(cluster.agents, ports_of(cluster, "peer"))), scaled(60, 12), random.Random(8)
    with Storm(cluster.sf, clients=count, version=version, ca=cluster.ca) as clients:
        with Capture(tmp_path / "wire", peers.values()) as wire:
            shake_hands(clients, count)
            settled(cluster, count)
        web = cluster.http(context=cluster.context(version))
        owner = wait_until(lambda: cluster.connection_of(web.sock))
        settled(cluster, count + 1, live_parts=2)
        before = state(cluster)
        for agent, port in peers.items():
            heard = [payload for _, payload in wire.datagrams(port)]
            assert len(heard) >= 3
            for name, change, counted_as in ATTACKS:
                attack(cluster, agent, port, [change(dice.choice(heard), dice) for _ in range(AT_ONCE)], counted_as)
                assert state(cluster) == before, name
        resume(clients, count)
    # A connection that was open meanwhile still moves.
    target = next(name for name in cluster.agents if name != owner["owner"])
    cluster.move(owner["id"], target)
    web.request("GET", "/5")
    assert web.getresponse().headers["X-CSSL-Agent"] == target
    web.close()


def test_an_agent_that_has_just_restarted_takes_nothing_old_for_new(start_cluster, tmp_path, test_points):
    """It accepts none of the messages that it got before, neither at first, while its peers have proven nothing yet, nor later.
    Its peers accept none of its earlier messages."""
    cluster = start_cluster("--agents", "3")
    peers, count = dict(zip(cluster.agents, ports_of(cluster, "peer"))), scaled(60, 12)
    with Storm(cluster.sf, clients=count, version="1.3", ca=cluster.ca) as clients:
        with Capture(tmp_path / "wire", peers.values()) as wire:
            shake_hands(clients, count)
            settled(cluster, count)
        heard = {agent: [payload for _, payload in wire.datagrams(port)] for agent, port in peers.items()}
        boots = [HEADER.unpack_from(payload)[4] for payload in heard["a1"]]
        said_by_a2 = [d for d in heard["a1"] if HEADER.unpack_from(d)[4] not in
                      {HEADER.unpack_from(e)[4] for e in heard["a2"]}]
        assert len(set(boots)) == 2 and len(said_by_a2) >= 3
        cluster.kill("a2")
        cluster.faults("udp.send drop peer a2")  # no proof comes through
        cluster.restart("a2")
        wait_until(lambda: cluster.counters()["a2"]["sessions"] == count)
        before, old = state(cluster), heard["a2"][-AT_ONCE:]
        send_all(peers["a2"], old)
        wait_until(lambda: cluster.counters()["a2"]["messages_unproven"] >= len(old))
        after = state(cluster)
        # the others hear what a2 asks for, and have no proof of it either
        unproven = {agent: after[agent].pop("messages_unproven") - before[agent].pop("messages_unproven") for agent in after}
        assert unproven["a2"] > 0 and after == before
        assert after["a2"]["objects_received"] == 0
        cluster.clear_faults()
        wait_until(lambda: cluster.counters()["a2"]["proofs_taken"] >= 2)
        attack(cluster, "a2", peers["a2"], old, "datagrams_replayed")
        for agent in ("a1", "a3"):
            before = state(cluster)[agent]
            attack(cluster, agent, peers[agent], said_by_a2[-AT_ONCE:], "datagrams_old_boot")
            before["messages_unproven"] = ANY  # a2's own last ones without a proof may be late
            assert state(cluster)[agent] == before
        resume(clients, count)


def strangers_file(cluster, name):
    """The cluster as an agent of that name sees it that has an agents.key of its own and a link where RAgent does not look."""
    key, config = cluster.dir / "stranger.key", cluster.dir / "stranger.yaml"
    key.touch(0o600)
    key.write_text("k1 " + "17" * 32 + "\n")
    config.write_text(edits(instead("agents_key: agents.key", f"agents_key: {key}"),
                            instead(f"link: unix:/nonexistent/{name}", f"link: unix:{cluster.dir}/links/{name}"))(
                                (cluster.dir / "cluster.yaml").read_text()))
    return config


@contextlib.contextmanager
def running(cluster, config, name, log):
    """A process of its own, ended by SIGTERM, in order."""
    with log.open("w") as out:
        process = subprocess.Popen([binary("sslagent/sslagent"), "--config", str(config), "--name", name], stdout=out,
                                   stderr=out, env=dict(os.environ, CSSL_AUDIT_DIR=str(cluster.audit)))
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait(patience(20)) == 0


def with_further_agent(name, *ports):
    """The others expect the further agent, but it is not started."""
    lines = (f"  - name: {name}", f"    link: unix:/nonexistent/{name}", "    link_protection: trusted",
             f"    peer: 127.0.0.1:{ports[0]}", "    direct:", f"      - address: 127.0.0.1:{ports[1]}", "        listener: sl")
    return lambda text: text.replace("certificates:\n", "".join(line + "\n" for line in lines) + "certificates:\n", 1)


def comes_back(to, save=None, **session):
    """Was it resumed?"""
    with Probe(to) as probe:
        reused = probe("handshake", version="1.3", sni="localhost", **session)["reused"]
        if save:
            probe("save_session", file=save)
        return reused


@pytest.mark.parametrize("name", ["a0", "a9"])  # the one connects to the others, to the other they connect
def test_a_peer_with_another_key_gets_nothing_and_is_named(start_cluster, tmp_path, name):
    peer, direct = free_ports(2)
    cluster = start_cluster("--agents", "3", edit=edits(over_tcp, parks_long, with_further_agent(name, peer, direct)))
    count, to_stranger = scaled(20, 4), ("127.0.0.1", direct)
    with Capture(tmp_path / "wire", [peer]) as wire, \
            running(cluster, strangers_file(cluster, name), name, tmp_path / "log"), \
            Storm(*cluster.direct.values(), clients=count, version="1.3", ca=cluster.ca) as clients:
        wait_until(lambda: all(f"peer refused peer={name}" in cluster.log(agent) for agent in cluster.agents))
        wait_until(lambda: "ready" in (tmp_path / "log").read_text())
        shake_hands(clients, count)
        resume(clients, count)
        theirs, ours = tmp_path / "theirs", tmp_path / "ours"
        assert not comes_back(to_stranger, save=theirs) and comes_back(to_stranger, session=theirs)
        assert not comes_back(cluster.direct["a1"], save=ours) and comes_back(cluster.direct["a2"], session=ours)
        assert not comes_back(cluster.direct["a1"], session=theirs) and not comes_back(to_stranger, session=ours)
    counters = cluster.counters()
    assert all(counters[agent]["peers_up"] == 2 and counters[agent]["peer_links_refused"] > 0 for agent in cluster.agents)
    assert wire.datagrams(peer) == [] and "peer up" not in (tmp_path / "log").read_text()
    assert all(f"peer up peer={name}" not in cluster.log(agent) for agent in cluster.agents)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_clocks_hours_apart_change_nothing(start_cluster, version, test_points):
    cluster = start_cluster("--agents", "3", faults=["clock offset 3600 on a2", "clock offset -3600 on a3"], edit=parks_long)
    count = scaled(90, 12)
    with Storm(*cluster.direct.values(), clients=count, version=version, ca=cluster.ca) as clients, \
            Storm(cluster.sf, clients=count, version=version, get="/1k", ca=cluster.ca) as moving:
        assert clients("storm 5") == {"full": count, "resumed": 5 * count, "failed": 0}
        assert moving("storm 2") == {"full": count, "resumed": 2 * count, "failed": 0}
        assert cluster.counter("handed_off") == cluster.counter("adopted") == 2 * count
        # An agent that joins them by its own clock, too.
        cluster.kill("a2")
        cluster.restart("a2")
        resume(clients, count)
    wait_until(lambda: len({c["sessions"] for name, c in cluster.counters().items() if name != "ragent"}) == 1)
    for agent, counted in cluster.counters().items():
        if agent != "ragent":
            assert counted["peers_up"] == 2 and counted["sessions"] >= 2 * count
            assert counted["peer_links_lost"] == (0 if agent == "a2" else 1)
            assert counted["sessions_expired"] == counted["messages_stale"] == counted["pulls_missed"] == 0
