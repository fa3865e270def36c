"""A RAgent that has the key and misuses it, next to an honest one with the same agents. Agents refuse and count each forbidden
attempt, no backend gets bytes for another one, no nonce is used for two ciphertexts, and the clients of the honest RAgent
notice nothing."""

import secrets

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.hostile import CAUSES, Canary, Hostile
from tests.lib.tlsload import check_unharmed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.usefixtures("test_points")

versions = pytest.mark.parametrize("version", ["1.2", "1.3"])
places = pytest.mark.parametrize("place", ["frozen", "broadcast", "copy"])
REQUEST = b"GET /1024 HTTP/1.1\r\nHost: localhost\r\nX-Secret: %s\r\n\r\n"
FRAMES = {"DATA": 0x01, "FIN": 0x02, "OPEN": 0x10, "SSL_ID": 0x11, "ACCEPTED": 0x12, "CLOSE": 0x13, "DETACH": 0x14, "VIOLATION": 0x15,
          "MOVE": 0x16, "REQUEST": 0x17, "FINISH": 0x18, "KEPT": 0x20, "HANDED_OFF": 0x21, "ADOPTED": 0x22, "REFUSED": 0x23,
          "CONSUMED": 0x24, "COPY": 0x25, "END": 0x26, "RESPONSE": 0x27, "LOAD": 0x28, "LEAVING": 0x29, "DOWNLOAD": 0x2a}
PAYLOADS = {"ACCEPTED": bytes(20), "CONSUMED": bytes(24), "CLOSE": b"\0", "FINISH": b"\0", "END": b"\0", "VIOLATION": bytes(5),
            "DATA": b"\x17\x03\x03\0\x10" + bytes(16)}


@pytest.fixture(scope="module")
def canary():
    made = Canary()
    yield made
    made.close()


@pytest.fixture(scope="module")
def cluster(start_module_cluster, canary):
    """With a listener `vault`, whose backend belongs to an attacker who wants the plaintext of other listeners."""
    vault = ["  - name: vault", "    listen: [127.0.0.1:0]", "    mode: sf", "    service: http", "    backend: vault", "    tls:",
             "      certificates: [ecdsa]"]
    return start_module_cluster("--agents", "3", takeover=True,
                                edit=edits.edits(edits.backend("vault", canary.address), edits.at_end(*vault), edits.nobody_moves))


@pytest.fixture(autouse=True)
def honest(cluster, canary, load):
    """Clients of the honest RAgent, all the while; they lose nothing, and their agents live on."""
    pids = {name: cluster.pid(name) for name in cluster.agents}
    load.add("honest", count=12, every_ms=20)
    yield
    load.stop("honest")
    check_unharmed(load.report()["honest"])
    assert {name: cluster.pid(name) for name in cluster.agents} == pids
    for name in cluster.agents:
        assert not (cluster.dir / f"{name}.exit").exists()
    assert not canary.heard


@pytest.fixture(params=["r1", "r9"], ids=["same name", "another name"])
def hostile(request, cluster):
    with Hostile(cluster, "sf", name=request.param) as made:
        yield made


class Held:
    """A client of the hostile RAgent that has sent a request. Its records wait there, and its agent has frozen it."""

    def __init__(self, cluster, hostile, version, state="frozen"):
        self.cluster, self.hostile = cluster, hostile
        self.sock = cluster.connect(("127.0.0.1", hostile.port), cluster.context(version))
        held = hostile.newest(state)
        self.client, self.id, self.agent = held["client"], held["id"], held["agent"]
        self.others = [name for name in cluster.agents if name != self.agent]
        self.ask()

    def ask(self):
        said = self.hostile.held(self.client)["said"]
        self.sock.sendall(REQUEST % secrets.token_hex(8).encode())
        wait_until(lambda: self.hostile.held(self.client)["said"] > said)

    def answered(self):
        answer = b""
        while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < 1024:
            answer += self.sock.recv(65536)
        return answer.startswith(b"HTTP/1.1 200 ")

    def adopt(self, agent, **lies):
        return self.hostile("adopt", agent=agent, client=self.client, **lies)

    def go_on(self, agent):
        """Honestly."""
        assert self.adopt(agent, take=True)["answer"] == "adopted"
        assert self.answered()
        self.agent = agent
        self.others = [name for name in self.cluster.agents if name != agent]

    def adopter(self, place):
        """The agent that would take the live part from there."""
        if place == "copy":
            self.cluster.faults(f"live.find fail on {self.others[0]}")
            self.cluster.settle_faults()
        return self.agent if place == "frozen" else self.others[0]

    def truth(self):
        return self.hostile.held(self.client)


@pytest.fixture
def no_faults(cluster):
    yield
    cluster.clear_faults()
    cluster.settle_faults()


def counted(cluster, *names):
    return sum(cluster.counter(name) for name in names)


class Refusals:
    """Each attempt within is refused and counted."""

    def __init__(self, cluster):
        self.cluster, self.tried = cluster, 0
        self.before = counted(cluster, "adopts_refused")

    def __call__(self, answer):
        assert answer["answer"] == "refused", answer
        self.tried += 1

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        assert kind or counted(self.cluster, "adopts_refused") - self.before >= self.tried > 0


@versions
def test_it_can_serve_clients_as_any_ragent_does(cluster, hostile, version):
    held = Held(cluster, hostile, version)
    held.go_on(held.others[0])
    held.ask()
    assert held.answered()


@versions
@places
def test_a_client_of_one_listener_is_not_given_to_another(cluster, hostile, no_faults, version, place):
    with Refusals(cluster) as refused:
        for copy in ("own", "none"):
            held = Held(cluster, hostile, version)
            refused(held.adopt(held.adopter(place), listener="vault", replay=True, copy=copy))


@versions
@places
def test_a_connection_is_adopted_by_proof_only(cluster, hostile, no_faults, version, place):
    stranger = Held(cluster, hostile, version)
    with Refusals(cluster) as refused:
        for copy in ("none", "garbled", stranger.truth()["copy"]):
            held = Held(cluster, hostile, version)
            refused(held.adopt(held.adopter(place), copy=copy, replay=True))


@versions
def test_a_connection_of_another_ragent_is_not_adopted(cluster, hostile, version):
    mine = Held(cluster, hostile, version)
    with cluster.connect(context=cluster.context(version)) as sock:
        sock.sendall(REQUEST % b"")
        assert sock.recv(65536)
        its = cluster.connection_of(sock)
        with Refusals(cluster) as refused:
            for agent in cluster.agents:
                for copy in ("none", mine.truth()["copy"]):
                    for cause in ("wake", "takeover"):
                        refused(hostile("adopt", agent=agent, id=its["id"], epoch=9, copy=copy, cause=CAUSES[cause],
                                        write_sequence=1, client_records=3))
        sock.sendall(REQUEST % b"")
        assert sock.recv(65536)
        assert cluster.connection_of(sock)["owner"] == its["owner"]


@versions
@pytest.mark.parametrize("cause", sorted(CAUSES.keys() - {"takeover"}))
def test_no_agent_begins_below_what_was_sealed(cluster, hostile, version, cause):
    held = Held(cluster, hostile, version)
    first = held.truth()
    held.go_on(held.others[0])
    for _ in range(3):
        held.ask()
        assert held.answered()
    with Refusals(cluster) as refused:
        for number, agent in enumerate(cluster.agents):
            refused(held.adopt(agent, cause=CAUSES[cause], epoch=20 + number, copy=first["copy"],
                               write_sequence=first["write_sequence"]))


@versions
def test_an_ssl_id_counts_once(cluster, hostile, version):
    held = Held(cluster, hostile, version)
    held.go_on(held.others[0])
    with Refusals(cluster) as refused:
        for agent in cluster.agents:
            refused(hostile("replay", agent=agent))


def adopt_beside_the_owner(held, cause):
    """Each other agent adopts while the owner goes on: all of them seal, and all of that reaches the hostile RAgent."""
    adopted = 0
    for agent in held.others:
        answer = held.adopt(agent, cause=CAUSES[cause], epoch=held.truth()["epoch"] + 1 + adopted, replay=True)
        adopted += answer["answer"] == "adopted"
        held.ask()
        assert held.answered()
    return adopted


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_who_lies_of_a_freeze_gets_no_nonce_twice(cluster, cause):
    """TLS 1.2 with AES-GCM, whose nonces have the epoch in them. The audit tells."""
    with Hostile(cluster, "sf", keep=True) as hostile:
        held = Held(cluster, hostile, "1.2", state="owned")
        assert held.answered()
        adopt_beside_the_owner(held, cause)


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_who_lies_of_a_freeze_gets_one_key_update_in_tls_1_3(start_cluster, cause):
    """A hostile RAgent can still do this (doc/trust.md): the adopter's KeyUpdate, one record of known content, may have the
    nonce of a record that the living owner seals. This happens at most once for each adoption, whatever cause RAgent names."""
    cluster = start_cluster("--agents", "3", takeover=True, reuse_planted=True, edit=edits.nobody_moves)
    with Hostile(cluster, "sf", keep=True) as hostile:
        held = Held(cluster, hostile, "1.3", state="owned")
        assert held.answered()
        adopted = adopt_beside_the_owner(held, cause)
        held.sock.close()
    errors = int(cluster.check_nonces().rpartition("errors: ")[2].split()[0])
    assert 1 <= errors <= adopted


@pytest.mark.parametrize("stream", [0, 4242])
def test_forged_frames_hurt_nobody(cluster, hostile, stream):
    """Each breaks the link or counts as stale. An empty REQUEST is one that asks for nothing, and is answered."""
    for name, kind in FRAMES.items():
        for payload in (PAYLOADS.get(name, b""), b"\xff" * 40):
            before, opened = counted(cluster, "link_violations", "frames_stale"), hostile("links")["times"]["a1"]
            broken = counted(cluster, "link_violations")
            hostile("frame", agent="a1", stream=stream, type=kind, hex=payload.hex())
            if (name, stream, payload) == ("REQUEST", 0, b""):
                continue
            wait_until(lambda before=before: counted(cluster, "link_violations", "frames_stale") > before, patience(10),
                       f"a count for {name} {payload}")
            if counted(cluster, "link_violations") > broken:
                wait_until(lambda opened=opened: hostile("links")["times"]["a1"] > opened, patience(10), "the link again")


def test_openings_that_stop_half_way_keep_nobody_out(cluster, hostile):
    before = counted(cluster, "links_refused", "link_openings_displaced")
    assert hostile("flood", agent="a2", count=400)["open"] >= 256  # as many as there is room for; some gave way before they could say a word
    with Hostile(cluster, "sf", name="r8"):
        pass
    wait_until(lambda: counted(cluster, "links_refused", "link_openings_displaced") - before > 100, patience(10))


def test_a_ragent_that_scribbles_into_shared_memory_hurts_nobody_else(cluster, hostile, dice):
    """Frames flow both ways meanwhile: stale ones, and requests that are answered."""
    before = counted(cluster, "links_lost")
    for _ in range(20):
        hostile.wait_links()
        for agent in cluster.agents:
            for _ in range(dice.randrange(1, 8)):
                hostile("frame", agent=agent, stream=0, type=FRAMES["REQUEST"])
                hostile("frame", agent=agent, stream=7, type=FRAMES["DATA"], hex=PAYLOADS["DATA"].hex() * dice.randrange(1, 200))
                hostile("scribble", agent=agent, count=dice.choice([1, 10, 1000]))
    wait_until(lambda: counted(cluster, "links_lost") - before >= 3, patience(15))
