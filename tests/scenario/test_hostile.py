"""A RAgent that has the key and misuses it, next to an honest one with the same agents. Agents refuse and count each forbidden
attempt, no backend gets bytes for another one, no nonce is used for two ciphertexts, and the clients of the honest RAgent
notice nothing."""

import collections
import contextlib
import secrets
import threading

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.hostile import CAUSES, FRAMES, Canary, Hostile, confirm
from tests.lib.in_doubt import CARRIERS
from tests.lib.tlsload import check_unharmed
from tests.lib.waiting import NotWithin, wait_until

pytestmark = [pytest.mark.usefixtures("test_points"), pytest.mark.cluster_of("carrier"), pytest.mark.every_combination("each carrier has refusals of its own")]

versions = pytest.mark.parametrize("version", ["1.2", "1.3"])
carriers = pytest.mark.parametrize("carrier", sorted(CARRIERS))
places = pytest.mark.parametrize("place", ["frozen", "broadcast", "copy"])
REQUEST = b"GET /1024 HTTP/1.1\r\nHost: localhost\r\nX-Secret: %s\r\n\r\n"
PAYLOADS = {"ACCEPTED": bytes(20), "CONSUMED": bytes(24), "CLOSE": b"\0", "FINISH": b"\0", "END": b"\0", "VIOLATION": bytes(5),
            "DATA": b"\x17\x03\x03\0\x10" + bytes(16), "PROOF": bytes(32), "REATTACH": bytes(24), "TAKEN": bytes(8),
            "REATTACHED": bytes(24)}
# An empty REQUEST asks for nothing, and is answered. A link may show a proof at any time.
ALLOWED = {("REQUEST", 0, b""), ("PROOF", 0, bytes(32))}


@pytest.fixture(scope="module")
def canary():
    made = Canary()
    yield made
    made.close()


@pytest.fixture(scope="module")
def clusters(start_module_cluster, canary):
    """One for each carrier, started when it is needed, with a listener `vault`, whose backend belongs to an attacker who wants the
    plaintext of other listeners."""
    vault = ["  - name: vault", "    listen: [127.0.0.1:0]", "    mode: sf", "    service: http", "    backend: vault", "    tls:",
             "      certificates: [ecdsa]"]
    started = {}

    def cluster(carrier):
        if carrier not in started:
            options, changes = CARRIERS[carrier]
            edit = edits.edits(edits.backend("vault", canary.address), edits.at_end(*vault), *changes, edits.nobody_moves)
            started[carrier] = start_module_cluster("--agents", "3", *options, takeover=True, edit=edit)
        return started[carrier]

    return cluster


@pytest.fixture
def carrier():
    return "memory"


@pytest.fixture
def cluster(clusters, carrier):
    return clusters(carrier)


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


def takes_answer(sock):
    answer = b""
    while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < 1024:
        got = sock.recv(65536)
        if not got:
            raise ConnectionError("an answer was cut")
        answer += got
    return answer.startswith(b"HTTP/1.1 200 ")


class Held:
    """A client of the hostile RAgent that has sent a request. Its records wait there, and its agent has frozen it."""

    def __init__(self, cluster, hostile, version, state="frozen"):
        self.cluster, self.hostile, self.heard_before = cluster, hostile, self.heard(cluster)
        self.sock = cluster.connect(("127.0.0.1", hostile.port), cluster.context(version))
        held = hostile.newest(state)
        self.client, self.id, self.agent = held["client"], held["id"], held["agent"]
        self.others = [name for name in cluster.agents if name != self.agent]
        self.ask()

    @staticmethod
    def heard(cluster):
        return {name: count["live_stored"] for name, count in cluster.counters().items() if name != "ragent"}

    def ask(self):
        said = self.hostile.held(self.client)["said"]
        self.sock.sendall(REQUEST % secrets.token_hex(8).encode())
        wait_until(lambda: self.hostile.held(self.client)["said"] > said)

    def answered(self):
        return takes_answer(self.sock)

    def adopt(self, agent, **lies):
        return self.hostile("adopt", agent=agent, client=self.client, **lies)

    def go_on(self, agent, **lies):
        """Honestly, or nearly so."""
        assert self.adopt(agent, take=True, **lies)["answer"] == "adopted"
        if not lies:
            assert self.answered()
        self.agent = agent
        self.others = [name for name in self.cluster.agents if name != agent]

    def unless_owner(self, agent):
        """Why the owner refuses it; else the reason of all others."""
        return "adopts_owned_here" if agent == self.agent else None

    def adopter(self, place):
        """The agent that would take the live part from there."""
        if place == "copy":
            self.cluster.faults(f"live.find fail on {self.others[0]}")
            self.cluster.settle_faults()
        if place == "broadcast":
            name = self.others[0]
            wait_until(lambda: self.heard(self.cluster)[name] > self.heard_before[name], patience(10), "the live part at another agent")
        return self.agent if place == "frozen" else self.others[0]

    def truth(self):
        return self.hostile.held(self.client)


@pytest.fixture
def no_faults(cluster):
    yield
    cluster.clear_faults()
    cluster.settle_faults()


REASONS = ("adopts_unproven", "adopts_other_listener", "adopts_stale", "adopts_forgotten", "adopts_owned_here", "epochs_refused",
           "sequences_refused")


def counted(cluster, *names):
    return sum(cluster.counter(name) for name in names)


class Refusals:
    """Each attempt within is refused, and counted under its reason and under no other."""

    def __init__(self, cluster, reason):
        """`reason`: of the attempts that name no other."""
        self.cluster, self.reason, self.expected = cluster, reason, collections.Counter()
        self.before = self.counted()

    def counted(self):
        return collections.Counter({name: counted(self.cluster, name) for name in (*REASONS, "adopts_refused")})

    def __call__(self, answer, reason=None):
        assert answer["answer"] == "refused", answer
        self.expected.update((reason or self.reason, "adopts_refused"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        assert kind or (self.expected and self.counted() - self.before == self.expected)


def test_the_canary_hears_what_comes_to_its_own_listener(cluster, canary):
    """Else its silence would prove nothing."""
    listeners = cluster.control("GET", "/v1/listeners")["listeners"]
    host, port = next(listener["addresses"][0] for listener in listeners if listener["name"] == "vault").rsplit(":", 1)
    secret = secrets.token_hex(8).encode()
    with cluster.connect((host, int(port))) as sock:
        sock.sendall(REQUEST % secret)
        wait_until(lambda: secret in canary.heard, patience(10), "the request at the canary")
    canary.heard.clear()


@carriers
@versions
def test_it_can_serve_clients_as_any_ragent_does(cluster, hostile, version):
    held = Held(cluster, hostile, version)
    held.go_on(held.others[0])
    held.ask()
    assert held.answered()


@versions
@places
def test_a_client_of_one_listener_is_not_given_to_another(cluster, hostile, no_faults, version, place):
    with Refusals(cluster, "adopts_unproven") as refused:
        for copy in ("own", "none"):
            held = Held(cluster, hostile, version)
            # a copy does not open for another listener
            refused(held.adopt(held.adopter(place), listener="vault", replay=True, copy=copy),
                    "adopts_other_listener" if copy == "own" and place != "copy" else None)


@versions
@places
def test_a_connection_is_adopted_by_proof_only(cluster, hostile, no_faults, version, place):
    stranger = Held(cluster, hostile, version)
    with Refusals(cluster, "adopts_unproven") as refused:
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
        with Refusals(cluster, "adopts_unproven") as refused:
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
def test_no_agent_continues_what_another_one_continued(cluster, hostile, version, cause):
    held = Held(cluster, hostile, version)
    first = held.truth()
    held.go_on(held.others[0])
    for _ in range(3):
        held.ask()
        assert held.answered()
    with Refusals(cluster, "adopts_stale") as refused:
        for number, agent in enumerate(cluster.agents):
            refused(held.adopt(agent, cause=CAUSES[cause], epoch=20 + number, copy=first["copy"],
                               write_sequence=first["write_sequence"]), held.unless_owner(agent))


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_no_agent_begins_below_what_was_sealed(cluster, hostile, cause):
    """In TLS 1.2 with AES-GCM an agent may, because the epoch is a part of its nonces."""
    held = Held(cluster, hostile, "1.3")
    held.go_on(held.others[0])
    truth = held.truth()
    held.go_on(held.others[0], cause=CAUSES["takeover"])
    held.ask()
    assert held.answered()
    assert held.truth()["write_generation"] == truth["write_generation"] + 1
    with Refusals(cluster, "sequences_refused") as refused:
        for number, agent in enumerate(cluster.agents):
            refused(held.adopt(agent, cause=CAUSES[cause], epoch=20 + number, copy=truth["copy"],
                               write_generation=truth["write_generation"], write_sequence=truth["write_sequence"]),
                    held.unless_owner(agent))


@versions
def test_an_epoch_counts_once(cluster, hostile, version):
    """With the true copy, at the true position."""
    held = Held(cluster, hostile, version)
    held.go_on(held.others[0])
    with Refusals(cluster, "epochs_refused") as refused:
        for agent in cluster.agents:
            for cause in CAUSES.values():
                refused(held.adopt(agent, cause=cause, epoch=held.truth()["epoch"]))


@carriers
@versions
def test_an_ssl_id_counts_once(cluster, hostile, version):
    held = Held(cluster, hostile, version)
    held.go_on(held.others[0])
    with Refusals(cluster, "epochs_refused") as refused:
        for agent in cluster.agents:
            refused(hostile("replay", agent=agent))


@versions
@pytest.mark.parametrize("keep", [False, True], ids=["handed off", "kept"])
def test_no_handshake_begins_under_a_known_id(cluster, version, keep):
    with Hostile(cluster, "sf", keep=keep) as hostile, cluster.connect(context=cluster.context(version)) as sock:
        sock.sendall(REQUEST % b"")
        assert sock.recv(65536)
        its, before = cluster.connection_of(sock), counted(cluster, "epochs_refused")
        for number, _ in enumerate(cluster.agents, 1):
            hostile("open", id=its["id"])
            with pytest.raises(OSError), cluster.connect(("127.0.0.1", hostile.port), cluster.context(version)) as mine:
                mine.sendall(REQUEST % b"")
                assert not mine.recv(65536)
                raise ConnectionError("closed in order")
            wait_until(lambda number=number: counted(cluster, "epochs_refused") == before + number, patience(10), "a refusal")
        sock.sendall(REQUEST % b"")
        assert sock.recv(65536)
        now = cluster.connection_of(sock)
        assert (now["owner"], now["epoch"]) == (its["owner"], its["epoch"])


# Streams that outlive their link (proto/frame.h: REATTACH)


@carriers
@versions
def test_a_stream_of_another_ragent_does_not_go_on(cluster, hostile, version):
    with cluster.connect(context=cluster.context(version)) as sock:
        sock.sendall(REQUEST % b"")
        assert sock.recv(65536)
        its, before = cluster.connection_of(sock), counted(cluster, "reattaches_refused")
        hostile("prove", agent=its["owner"], hex=secrets.token_hex(32))
        for tried, epoch in enumerate(range(1, its["epoch"] + 2), 1):
            answer = hostile("reattach", agent=its["owner"], id=its["id"], epoch=epoch)
            assert (answer["answer"], answer["detail"]) == ("refused", "no such stream")
            assert counted(cluster, "reattaches_refused") == before + tried
        sock.sendall(REQUEST % b"")
        assert sock.recv(65536)
        now = cluster.connection_of(sock)
        assert (now["owner"], now["epoch"]) == (its["owner"], its["epoch"])


@carriers
@versions
def test_a_stream_goes_on_for_its_own_proof_and_epoch_only(cluster, version):
    with Hostile(cluster, "sf", keep=True) as hostile:
        proof = secrets.token_hex(32)
        for agent in cluster.agents:
            hostile("prove", agent=agent, hex=proof)
        held = Held(cluster, hostile, version, state="owned")
        assert held.answered()
        parked, refused = counted(cluster, "streams_parked"), counted(cluster, "reattaches_refused")
        link = {"agent": held.agent, "client": held.client}
        times = hostile("links")["times"][held.agent]
        hostile("drop", agent=held.agent)
        wait_until(lambda: counted(cluster, "streams_parked") == parked + 1, patience(10), "a stream that waits")
        wait_until(lambda: hostile("links")["times"][held.agent] > times, patience(10), "the next link")
        hostile("prove", agent=held.agent, hex=secrets.token_hex(32))
        assert hostile("reattach", **link)["answer"] == "refused"
        hostile("prove", agent=held.agent, hex=proof)
        for epoch in (0, held.truth()["epoch"] + 1, 65535):
            assert hostile("reattach", **link, epoch=epoch)["answer"] == "refused"
        assert counted(cluster, "reattaches_refused") == refused + 4
        assert hostile("reattach", **link)["answer"] == "reattached"


@carriers
@versions
def test_an_owner_whose_link_is_lost_gives_way_above_what_was_confirmed(cluster, version):
    """RAgent confirms all that it got, cuts its own link and asks the owner to begin with the last record that it had. In TLS 1.2 with
    AES-GCM it may."""
    with Hostile(cluster, "sf", keep=True) as hostile:
        for agent in cluster.agents:
            hostile("prove", agent=agent, hex="a5" * 32)
        held = Held(cluster, hostile, version, state="owned")
        assert held.answered()
        truth, parked, anew = held.truth(), counted(cluster, "streams_parked"), counted(cluster, "streams_adopted_anew")
        times = hostile("links")["times"][held.agent]
        confirm(hostile, truth)
        hostile("drop", agent=held.agent)
        wait_until(lambda: counted(cluster, "streams_parked") == parked + 1, patience(10), "a stream that waits")
        wait_until(lambda: hostile("links")["times"][held.agent] > times, patience(10), "the next link")
        how = {"cause": CAUSES["takeover"], "replay": True}
        if version == "1.3":
            with Refusals(cluster, "sequences_refused") as refused:
                refused(held.adopt(held.agent, **how, write_sequence=truth["write_sequence"] - 1))
        assert held.adopt(held.agent, **how)["answer"] == "adopted"
        assert counted(cluster, "streams_adopted_anew") == anew + 1


@versions
@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_an_owner_takes_its_connection_from_nobody(cluster, version, cause):
    """Neither at its position nor at an earlier one."""
    with Hostile(cluster, "sf", keep=True) as hostile:
        held = Held(cluster, hostile, version, state="owned")
        assert held.answered()
        with Refusals(cluster, "adopts_owned_here") as refused:
            for more in (1, 2, 60000):
                refused(held.adopt(held.agent, cause=CAUSES[cause], epoch=held.truth()["epoch"] + more, replay=True))
        held.ask()
        assert held.answered()


@contextlib.contextmanager
def deaf(cluster):
    """No agent hears of another."""
    cluster.faults(*(f"udp.send drop on {name}" for name in cluster.agents))
    cluster.settle_faults()
    yield
    cluster.clear_faults()
    cluster.settle_faults()


@versions
def test_of_two_agents_that_own_one_connection_none_goes_on(cluster, hostile, version, no_faults):
    """Both continue from where it froze, under the same epoch, before they can hear of each other."""
    held, superseded = Held(cluster, hostile, version), counted(cluster, "owners_superseded")
    with deaf(cluster):
        for agent in held.others:
            assert held.adopt(agent, epoch=held.truth()["epoch"] + 1)["answer"] == "adopted"
        assert counted(cluster, "owners_superseded") == superseded
    wait_until(lambda: counted(cluster, "owners_superseded") == superseded + 2, patience(20), "both give it up")
    with Refusals(cluster, "epochs_refused") as refused:
        for agent in cluster.agents:
            refused(held.adopt(agent, epoch=held.truth()["epoch"] + 1))


def adopt_beside_the_owner(cluster, hostile, version, cause):
    """Each other agent is asked to adopt from an owner that goes on, behind all but the last record that it has sealed, then each again,
    then the first owner. Whoever was the owner stops. Returns how often one adopted."""
    held = Held(cluster, hostile, version, state="owned")
    assert held.answered()
    truth, adopted = held.truth(), 0
    for agent in [*held.others, *held.others, held.agent]:
        superseded = counted(cluster, "owners_superseded")
        answer = held.adopt(agent, cause=CAUSES[cause], epoch=truth["epoch"] + 1 + adopted, replay=True,
                            write_sequence=truth["write_sequence"] - 1)
        if answer["answer"] == "adopted":
            adopted += 1
            wait_until(lambda superseded=superseded: counted(cluster, "owners_superseded") == superseded + 1, patience(20), "the owner stops")
    with contextlib.suppress(OSError):
        assert not held.sock.recv(1)
    return adopted


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_who_lies_of_a_freeze_gets_no_nonce_twice(cluster, cause):
    """TLS 1.2 with AES-GCM, whose nonces have the epoch in them. The audit tells."""
    with Hostile(cluster, "sf", keep=True) as hostile:
        assert adopt_beside_the_owner(cluster, hostile, "1.2", cause) == 5


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_who_lies_of_a_freeze_gets_one_key_update_in_tls_1_3(start_cluster, cause):
    """A hostile RAgent can still do this (doc/trust.md): the adopter's KeyUpdate, one record of known content, may have the
    nonce of a record that the living owner seals. The next adopter can only say the same KeyUpdate again, whatever cause RAgent names."""
    cluster = start_cluster("--agents", "3", takeover=True, reuse_planted=True, edit=edits.nobody_moves)
    with Hostile(cluster, "sf", keep=True) as hostile:
        adopted = adopt_beside_the_owner(cluster, hostile, "1.3", cause)
        assert (adopted, counted(cluster, "adopts_owned_here"), counted(cluster, "sequences_refused")) == (2, 1, 2)
    errors = int(cluster.check_nonces().rpartition("errors: ")[2].split()[0])
    assert 1 <= errors <= adopted


@pytest.mark.parametrize("stream", [0, 4242])
def test_forged_frames_hurt_nobody(cluster, hostile, stream):
    """Each breaks the link or counts as stale."""
    for name, kind in FRAMES.items():
        for payload in (PAYLOADS.get(name, b""), b"\xff" * 40):
            before, opened = counted(cluster, "link_violations", "frames_stale"), hostile("links")["times"]["a1"]
            broken = counted(cluster, "link_violations")
            hostile("frame", agent="a1", stream=stream, type=kind, hex=payload.hex())
            if (name, stream, payload) in ALLOWED:
                continue
            wait_until(lambda before=before: counted(cluster, "link_violations", "frames_stale") > before, patience(10),
                       f"a count for {name} {payload}")
            if counted(cluster, "link_violations") > broken:
                wait_until(lambda opened=opened: hostile("links")["times"]["a1"] > opened, patience(10), "the link again")


# ACCEPTED: records, drained bytes, generation
TAKEN = {
    "more than was sent": lambda sent: bytes(8) + (sent + 1).to_bytes(8, "big") + bytes(4),
    "all there is": lambda sent: b"\xff" * 16 + bytes(4),
    "less than before": lambda sent: bytes(20),
}


@versions
@pytest.mark.parametrize("says", TAKEN)
def test_a_client_cannot_have_taken_what_was_not_sent(cluster, version, says):
    with Hostile(cluster, "sf", keep=True) as hostile:
        held = Held(cluster, hostile, version, state="owned")
        assert held.answered()
        broken, truth = counted(cluster, "link_violations"), held.truth()
        hostile("frame", agent=held.agent, stream=truth["stream"], type=FRAMES["ACCEPTED"], hex=TAKEN[says](truth["drained"]).hex())
        wait_until(lambda: counted(cluster, "link_violations") == broken + 1, patience(10), "a breach")
        hostile.wait_links()
        Held(cluster, hostile, version, state="owned").answered()


# MOVE to rest, to another agent, to nobody, and into the past
MOVES = [b"\x18\x05", b"\x0a\x02a2\x10\x02", b"\x0a\x07nowhere\x10\x09", b"\x0a\x02a2\x10\x01"]


@pytest.mark.parametrize("state", ["owned", "frozen"])
def test_forged_frames_on_its_own_live_streams_hurt_nobody_else(cluster, state):
    """A client of the hostile RAgent for each. The frame breaks the link, ends the client, freezes it, or changes nothing."""
    with Hostile(cluster, "sf", keep=state == "owned") as hostile:
        for name, kind in FRAMES.items():
            for payload in (PAYLOADS.get(name, b""), b"\xff" * 40, *(MOVES if name == "MOVE" else ())):
                hostile.wait_links()
                held = Held(cluster, hostile, "1.3", state=state)
                with held.sock as sock:
                    if state == "owned":
                        assert held.answered()
                    broken, truth, ended = counted(cluster, "link_violations"), held.truth(), counted(cluster, "connections_ended")
                    hostile("frame", agent=held.agent, stream=truth["stream"], type=kind, hex=payload.hex())
                    if state == "owned":
                        with contextlib.suppress(OSError):  # in particular, an end
                            sock.sendall(REQUEST % b"")
                    wait_until(lambda: (counted(cluster, "link_violations") > broken or held.truth()["state"] != state or
                                        held.truth()["server_records"] > truth["server_records"] or state == "frozen" or
                                        counted(cluster, "connections_ended") > ended),
                               patience(10), f"what became of {name} {payload}")


def test_openings_that_stop_half_way_keep_nobody_out(cluster, hostile):
    before = counted(cluster, "links_refused", "link_openings_displaced")
    assert hostile("flood", agent="a2", count=400)["open"] >= 256  # as many as there is room for; some gave way before they could say a word
    with Hostile(cluster, "sf", name="r8"):
        pass
    wait_until(lambda: counted(cluster, "links_refused", "link_openings_displaced") - before > 100, patience(10))


ANSWER_S = 0.3
TEMPTATION_S = 0.2


class Talker:
    """A client of the hostile RAgent that asks all the while. When its link ends, it does, too; then it connects again."""

    def __init__(self, cluster, hostile):
        self._connect = lambda: cluster.connect(("127.0.0.1", hostile.port))
        self._over, self.answers = threading.Event(), 0
        self._thread = threading.Thread(target=self._talk)

    def _talk(self):
        while not self._over.is_set():
            with contextlib.suppress(OSError), self._connect() as sock:
                sock.settimeout(ANSWER_S)
                while not self._over.is_set():
                    sock.sendall(REQUEST % b"")
                    self.answers += takes_answer(sock)

    def wait_answers(self, count):
        before = self.answers
        wait_until(lambda: self.answers >= before + count, patience(20), f"{count} more answers")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def test_a_ragent_that_scribbles_into_shared_memory_hurts_nobody_else(cluster, dice):
    """Its own clients are served meanwhile, until their link ends, and frames flow both ways: stale ones, and requests that are
    answered. This lasts until agents have noticed three times what it does."""
    before = counted(cluster, "link_violations")
    with Hostile(cluster, "sf", keep=True) as hostile, Talker(cluster, hostile) as talker:
        for _ in range(100):
            hostile.wait_links()
            talker.wait_answers(3)
            violations = counted(cluster, "link_violations")
            for agent in cluster.agents:
                for _ in range(dice.randrange(1, 8)):
                    hostile("frame", agent=agent, stream=0, type=FRAMES["REQUEST"])
                    hostile("frame", agent=agent, stream=7, type=FRAMES["DATA"], hex=PAYLOADS["DATA"].hex() * dice.randrange(1, 200))
                    hostile("scribble", agent=agent, count=dice.choice([1, 10, 1000]))
            with contextlib.suppress(NotWithin):  # some bytes matter to nobody
                wait_until(lambda: counted(cluster, "link_violations") > violations, TEMPTATION_S)
            for agent in cluster.agents:  # this side may hear nothing any more, as its positions are in that memory
                hostile("drop", agent=agent)
            if counted(cluster, "link_violations") >= before + 3:
                break
        else:
            pytest.fail("agents notice nothing")
        hostile.wait_links()
        talker.wait_answers(3)
