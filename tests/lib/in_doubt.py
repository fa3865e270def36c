"""Situations in which laws 1 to 7 matter: an owner has sealed records, RAgent has not got them, and somebody else goes on and has
something different to say.

    place = start_place(start_cluster, "memory", backend, others)        a cluster of three agents, two FickleBackends
    SITUATIONS["answer in doubt"](place, "1.3")

Each asserts what becomes of its client, and that something was really in doubt. tests/scenario/test_laws.py runs all of them,
test_mutants.py those that have to fail."""

import contextlib
import threading

from bench.experiments.ports import free_ports
from tests.lib import misled, nonce_audit
from tests.lib.build import patience
from tests.lib.cluster import ControlError
from tests.lib.edits import alpn, at_end, backend, below, edits, nobody_moves, over_tcp
from tests.lib.mover import after, settled
from tests.lib.mutants import MISDIRECTED, UNPROVEN
from tests.lib.probe import Probe
from tests.lib.trouble import wait_consistent
from tests.lib.waiting import NotWithin, wait_until

SUITES = {
    "1.2 AES-GCM": {"version": "1.2", "suite": "ECDHE-ECDSA-AES128-GCM-SHA256"},
    "1.2 ChaCha20": {"version": "1.2", "suite": "ECDHE-ECDSA-CHACHA20-POLY1305"},
    "1.3": {"version": "1.3"},
}
# Options of ./cssl up, and changes of its cluster file.
CARRIERS = {
    "memory": ((), ()),
    "socket": ((), [below(f"a{n}", "link_bytes: socket") for n in (1, 2, 3)]),
    "sealed": (("--link", "sealed"), [over_tcp]),
}
SIZE = 40000  # an owner seals all of it before anybody takes a byte, in several records
DOUBTFUL = 30000  # bytes: enough of it to be in doubt
RECORDS = 2       # at least, of so many bytes
LIMIT_MS = 15000
TEMPTATION_S = 0.5


def _listener_behind_sl(address):
    """Another listener, with a backend of its own."""
    return edits(backend("others", address),
                 at_end("  - name: other", f"    listen: [127.0.0.1:{free_ports(1)[0]}]", "    mode: sl", "    service: http",
                        "    backend: others", "    tls:", "      certificates: [ecdsa]"))


def start_place(start, carrier, main, others, **settings):
    """By start_cluster or start_module_cluster; two backends, of which clients only ask the first."""
    options, changes = CARRIERS[carrier]
    edit = edits(alpn("raw", "tcp", "main"), _listener_behind_sl(others.address), *changes, nobody_moves)
    return Place(start("--agents", "3", "--backend", main.address, *options, takeover=True, edit=edit, **settings), main, others)


class Wronged(AssertionError):
    """A client did not get what it was due."""


class Client(Probe):
    """A client that got the answer to one request. Another request may be open. `to`: the address of another RAgent, which alone knows
    its id and its owner."""

    def __init__(self, place, suite, alpn="http/1.1", listener="sf", to=None):
        super().__init__(to or getattr(place.cluster, listener))
        self.place, self.ends = place, suite == "1.2 ChaCha20"
        assert self("handshake", sni="localhost", alpn=alpn, **SUITES[suite])["done"]
        self.has_answer(self("get", path="/5"), "/5")
        if not to:
            self.id, self.owner = (lambda c: (c["id"], c["owner"]))(settled(place.cluster, self))

    def asks(self, path=f"/{SIZE}"):
        self.start("get", path=path, timeout_ms=patience(LIMIT_MS))

    def has_answer(self, answer, path=f"/{SIZE}"):
        if (answer["outcome"], answer["status"]) != ("complete", 200):
            raise Wronged(f"a client got {answer}")
        if answer["sha256"] not in self.place.backend.said[path]:
            raise Wronged("a client got a mixture of answers")

    def goes_on(self):
        """The client gets its answer completely. With ChaCha20 in TLS 1.2 it gets an alert or a reset instead."""
        answer = self.finish()
        if self.ends:
            self.is_cut(answer)
        else:
            self.has_answer(answer)
            self.has_answer(self("get", path="/5"), "/5")

    def is_cut(self, answer):
        """The client was cut off by an alert or a reset."""
        assert answer["outcome"] == "cut", answer
        assert self("end")["end"] in ("rst", "alert")


class Place:
    def __init__(self, cluster, main, others):
        self.cluster, self.backend, self.others = cluster, main, others
        self._killed, self._drained = set(), set()
        self.breaches = []  # what a situation saw that no agent may do

    def rows_of(self, identity, *kinds):
        return [row for rows in nonce_audit.load(self.cluster.audit) for row in rows if row[4].hex() == identity and row[0] in kinds]

    def rows(self, client, *kinds):
        return self.rows_of(client.id, *kinds)

    def sealed(self, client):
        """Bytes of all sealed records."""
        return sum(row[7] for row in self.rows(client, nonce_audit.SEALED))

    def undelivered(self, client):
        """Records that were sealed, and not accepted under that epoch."""
        accepted = {(row[3], row[8]) for row in self.rows(client, nonce_audit.ACCEPTED)}
        return sum((row[3], row[8]) not in accepted for row in self.rows(client, nonce_audit.SEALED))

    def other_than(self, *names):
        return next(name for name in self.cluster.agents if name not in names)

    def broken(self):
        """What went wrong and is not in the nonce audit: a line for each."""
        return [f"{path}: {MISDIRECTED}" for path in self.others.said] + self.breaches

    def faults(self, *rules):
        self.cluster.faults(*rules)
        self.cluster.settle_faults()

    def kill(self, name):
        self._killed.add(name)
        self.cluster.kill(name)

    def revive(self, name):
        self._killed.discard(name)
        self.cluster.restart(name)

    def drain(self, name):
        self._drained.add(name)
        self.cluster.drain(name)

    def undrain(self, name):
        self._drained.discard(name)
        self.cluster.undrain(name)

    def sealed_more(self, client, before, size=DOUBTFUL):
        wait_until(lambda: self.sealed(client) >= before + size, patience(10), f"{size} more bytes sealed")

    def tempted(self, client, before):
        """If the owner does not wait for the commit of its KeyUpdate, it has the time to seal the backend's bytes."""
        self.sealed_more(client, before, 1)
        with contextlib.suppress(NotWithin):
            wait_until(lambda: self.sealed(client) >= before + DOUBTFUL, TEMPTATION_S)

    def repair(self):
        """Restores the first state."""
        self.cluster.clear_faults()
        for name in set(self._killed):
            self.revive(name)
        for name in set(self._drained):
            self.undrain(name)
        self.cluster.settle_faults()
        wait_consistent(self.cluster)


# Records that an owner sealed, and that its link never brought to RAgent


def _answer_in_doubt(hold):
    def situation(place, suite):
        with Client(place, suite) as client:
            client.has_answer(client("get", path="/20000"), "/20000")
            before, said = place.sealed(client), place.backend.said[f"/{SIZE}"]
            others = len(said)
            place.faults(f"{hold} drop on {client.owner}")
            client.asks()
            place.sealed_more(client, before)
            place.kill(client.owner)
            client.goes_on()
            assert place.undelivered(client) >= RECORDS
            assert len(set(said)) == len(said) >= others + (1 if client.ends else 2)
    return situation


def answer_in_doubt_behind_a_new_ragent(place, suite):
    """The counts of RAgent go on in the RAgent that replaces it."""
    with Client(place, suite) as client:
        client.has_answer(client("get", path="/20000"), "/20000")
        place.cluster.replace()
        before = place.sealed(client)
        place.faults(f"link.write drop on {client.owner}")
        client.asks()
        place.sealed_more(client, before)
        place.kill(client.owner)
        client.goes_on()
        assert place.undelivered(client) >= RECORDS


def answer_in_the_ring(place, suite):
    """The answer is published in the ring, but RAgent is not told. It reads the ring when it next has work with that link."""
    with Client(place, suite) as client:
        place.faults(f"link.bell drop on {client.owner}")
        client.has_answer(client("get", path=f"/{SIZE}"))
        place.kill(client.owner)
        client.asks()
        if not client.ends:
            client.goes_on()
        else:
            client.is_cut(client.finish())


def answer_received_and_not_committed(place, suite):
    """The link is lost while RAgent reads the answer. The owner lives."""
    with Client(place, suite) as client:
        place.cluster.allow_takeover()
        place.faults("records.received fail on r1 times 1")
        client.asks()
        client.goes_on()
        assert place.undelivered(client) >= RECORDS


def owner_alive_and_lost(place, suite):
    """RAgent hears nothing more of the owner and gives the connection to another agent. The owner does not know that it lost it, until
    it hears again."""
    with Client(place, suite) as client:
        place.cluster.allow_takeover()
        before = place.sealed(client)
        place.faults(f"link.write drop on {client.owner}")
        client.asks()
        place.sealed_more(client, before)
        place.faults(f"link.write drop on {client.owner}", f"link.read drop on {client.owner}")
        client.goes_on()
        assert place.undelivered(client) >= RECORDS
        place.faults()
        wait_until(lambda: place.rows(client, nonce_audit.LOST), patience(10), "an owner that lets go")


def two_losses(place, suite, *rules):
    """The successor is killed, too, with another answer sealed. `rules`: further fault rules."""
    client = Client(place, suite)
    second = place.other_than(client.owner)
    third = place.other_than(client.owner, second)
    place.drain(third)
    place.cluster.wait_drained(third)
    before = place.sealed(client)
    place.faults(*rules, f"link.write drop on {client.owner}", f"link.write drop on {second}")
    client.asks()
    place.sealed_more(client, before)
    before = place.sealed(client)
    place.kill(client.owner)
    # TLS 1.3 says its KeyUpdate, and waits
    place.sealed_more(client, before, 1 if suite == "1.3" else DOUBTFUL)
    place.undrain(third)
    place.kill(second)
    return client


def answer_in_doubt_twice(place, suite):
    with two_losses(place, suite) as client:
        client.goes_on()
        assert place.undelivered(client) >= RECORDS + 1


# KeyUpdates


def key_update_in_doubt(place, suite):
    with Client(place, suite) as client:
        before = place.sealed(client)
        place.faults(f"link.write drop on {client.owner}")
        client("key_update", request=1)
        client.asks()
        place.tempted(client, before)
        place.kill(client.owner)
        client.goes_on()
        assert place.undelivered(client) >= 1


def key_update_in_doubt_amid_acknowledgements(place, suite):
    """The client takes an earlier answer meanwhile, so the owner learns how far it is."""
    with Client(place, suite) as client:
        place.faults("client.write drop on r1")
        client("send", text=f"GET /{SIZE} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: place.cluster.connection(client.id)["server_bytes"] > SIZE, patience(10), "the first answer at RAgent")
        before = place.sealed(client)
        place.faults("client.write drop on r1", f"link.write drop on {client.owner}")
        client("key_update", request=1)
        client("send", text=f"GET /{SIZE} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        place.sealed_more(client, before, 1)
        place.faults(f"link.write drop on {client.owner}")
        assert client("read", bytes=SIZE)["bytes"] == SIZE
        place.tempted(client, before)
        place.kill(client.owner)
        assert client("read", bytes=SIZE, timeout_ms=patience(LIMIT_MS))["bytes"] == SIZE
        assert place.undelivered(client) >= 1


def key_update_owed_at_a_move(place, suite, *rules):
    """The successor of a lost owner owes a KeyUpdate. Before it can send it, it is asked to give the connection up. `rules`: further
    fault rules; {} is the one that gets it."""
    with Client(place, suite) as client:
        before = place.sealed(client)
        second = place.other_than(client.owner)
        third = place.other_than(client.owner, second)
        place.drain(third)
        place.cluster.wait_drained(third)
        place.faults(f"link.write drop on {client.owner}", f"keyupdate.due fail on {second}", *(rule.format(third) for rule in rules))
        client.asks()
        place.sealed_more(client, before)
        place.kill(client.owner)
        wait_until(lambda: settled(place.cluster, client)["owner"] == second, patience(10), "a successor")
        place.undrain(third)
        wait_until(lambda: _moved(place, client, third), patience(10), "a move")
        client.goes_on()
        assert place.undelivered(client) >= RECORDS


def key_update_owed_at_a_move_the_copy_lost(place, suite):
    """And the next owner has only what the first one broadcast, which owes none."""
    key_update_owed_at_a_move(place, suite, "copy.open fail on {}")


def _moved(place, client, target):
    """A connection does not move while it is being recovered."""
    with contextlib.suppress(ControlError):
        return place.cluster.move(client.id, target)
    return None


def copy_of_an_older_generation(place, suite):
    """RAgent has no fresh copy of changed keys, and no agent got them by broadcast."""
    with Client(place, suite) as client:
        client.has_answer(client("get", path=f"/{SIZE}"))
        place.faults("copy.received fail on r1", "live.find fail")
        client("key_update", request=1)
        client.has_answer(client("get", path="/5"), "/5")
        before = place.sealed(client)
        place.faults("live.find fail", f"link.write drop on {client.owner}")
        client.asks()
        place.sealed_more(client, before)
        place.kill(client.owner)
        client.goes_on()
        assert place.undelivered(client) >= RECORDS


# Moves


def drain_right_after(place, suite):
    with Client(place, suite) as client:
        before = place.sealed(client)
        place.faults(f"link.write drop on {client.owner}")
        client.asks()
        place.sealed_more(client, before)
        place.kill(client.owner)
        if not client.ends:
            place.drain(settled(place.cluster, client)["owner"])
        client.goes_on()
        assert place.undelivered(client) >= RECORDS


def frozen_and_not_heard(place, suite, *rules):
    """The owner froze for a move, and was lost before RAgent learned of that, or of its last answer. In suites without the epoch
    in the nonces, the connection cannot go on below the number at which its owner stopped, as the others know. `rules`: further fault
    rules."""
    with Client(place, suite) as client:
        client.ends = suite != "1.2 AES-GCM"
        before = place.sealed(client)
        place.faults(f"link.write drop on {client.owner}")
        client.asks()
        place.sealed_more(client, before, SIZE)
        order = threading.Thread(target=_moved, args=(place, client, after(place.cluster, client.owner)))
        order.start()
        wait_until(lambda: place.rows(client, nonce_audit.FROZEN), patience(10), "a frozen owner")
        if rules:
            place.faults(f"link.write drop on {client.owner}", *rules)
        place.kill(client.owner)
        client.goes_on()
        order.join()
        assert place.undelivered(client) >= RECORDS


def frozen_and_not_heard_the_live_part_lost(place, suite):
    """The next owner has the copy only, which is older. It knows where the last one stopped all the same."""
    frozen_and_not_heard(place, suite, "live.find fail")


def moved(place, suite):
    """Nothing is in doubt: the next owner begins behind the last record of the frozen one, with other bytes."""
    with Client(place, suite) as client:
        place.cluster.move(client.id, after(place.cluster, client.owner))
        client.has_answer(client("get", path=f"/{SIZE}"))
        # RAgent writes its row behind the client's bytes
        wait_until(lambda: place.undelivered(client) == 0, patience(10), "rows of all records")


# Idle connections


def backend_closed_an_idle_connection(place, suite):
    """The owner sealed close_notify, and was lost with it. The client gets an alert, because no agent knows the meaning of the
    end."""
    with Client(place, suite, alpn="raw") as client:
        before = place.sealed(client)
        place.faults(f"link.write drop on {client.owner}")
        place.backend.hang_up()
        place.sealed_more(client, before, 1)
        place.kill(client.owner)
        assert client("end")["end"] == ("rst" if client.ends else "alert")
        assert place.undelivered(client) >= 1


# Others that break the rules: the cluster refuses, and the client is cut


def epoch_not_raised(place, suite):
    """RAgent gives the epoch of a lost owner to another one."""
    with two_losses(place, suite, "epoch.raise fail on r1 after 1") as client:
        client.is_cut(client.finish())
        assert place.undelivered(client) >= RECORDS


def position_too_early(place, suite):
    """RAgent claims that the next owner begins with a record that the last one has sealed."""
    with Client(place, suite) as client:
        client.has_answer(client("get", path=f"/{SIZE}"))
        place.faults("ssl_id.sequence fail on r1")
        with contextlib.suppress(ControlError):
            place.cluster.move(client.id, after(place.cluster, client.owner))
        client.asks()
        client.is_cut(client.finish())


def position_before_that_of_a_copy(place, suite):
    """The same. The position that it claims is above all that the others were told, but below that of its copy, which it got with the
    client's KeyUpdate."""
    with Client(place, suite) as client:
        client.has_answer(client("get", path=f"/{SIZE}"))
        before, sealed = place.cluster.counters()["ragent"]["copies_current"], place.sealed(client)
        client("key_update", request=0)
        wait_until(lambda: place.cluster.counters()["ragent"]["copies_current"] > before, patience(10), "the copy")
        place.faults("ssl_id.sequence fail on r1", "live.find fail", f"link.write drop on {client.owner}")
        client.asks()
        place.sealed_more(client, sealed)
        place.kill(client.owner)
        client.is_cut(client.finish())


def loss_called_a_rest(place, suite):
    """RAgent claims that the lost owner gave the connection up."""
    with Client(place, suite, listener="sl") as client:
        before = place.sealed(client)
        place.faults("ssl_id.cause fail on r1", f"link.write drop on {client.owner}")
        client.asks()
        place.sealed_more(client, before)
        place.kill(client.owner)
        client.goes_on()
        assert place.undelivered(client) >= RECORDS


def another_listener(place, suite):
    """RAgent claims that the connection came to another listener, which has another backend."""
    with Client(place, suite, listener="sl") as client:
        place.faults("ssl_id.listener fail on r1 times 1")
        with contextlib.suppress(ControlError):
            place.cluster.move(client.id, after(place.cluster, client.owner))
        client.has_answer(client("get", path=f"/{SIZE}"))


def copy_that_had_a_later_owner(place, suite, *rules):
    """RAgent claims that the lost owner gave the connection up, and shows the copy of the owner before. This one froze exactly where
    the lost one began, so its copy looks as if nothing were in doubt. `rules`: further fault rules."""
    with Client(place, suite) as client:
        place.cluster.move(client.id, after(place.cluster, client.owner))
        owner, before = settled(place.cluster, client)["owner"], place.sealed(client)
        place.faults("ssl_id.cause fail on r1", f"link.write drop on {owner}", *rules)
        client.asks()
        place.sealed_more(client, before)
        place.kill(owner)
        client.is_cut(client.finish())
        assert place.undelivered(client) >= RECORDS


def forgotten_copy(place, suite):
    """The same, and the agents have forgotten that there was a later owner."""
    copy_that_had_a_later_owner(place, suite, "connection.remembered fail")


def no_copy_shown(place, suite):
    """RAgent asks agents to adopt, and does not prove that the connection is its own."""
    with Client(place, suite) as client:
        adopted = place.cluster.counter("adopted")
        place.faults("ssl_id.copy fail on r1")
        with contextlib.suppress(ControlError):
            place.cluster.move(client.id, after(place.cluster, client.owner))
        if place.cluster.counter("adopted") > adopted:
            place.breaches.append(UNPROVEN)
        client.asks()
        client.is_cut(client.finish())


# Deaths of RAgent


def answer_held_when_ragent_dies(place, suite):
    """The process that dies has the answer, and the client has nothing of it. The agent sends it to the next process, too."""
    with Client(place, suite) as client:
        before = place.cluster.connection(client.id)["server_bytes"]
        place.faults("client.write drop on r1")
        client.asks()
        wait_until(lambda: place.cluster.connection(client.id)["server_bytes"] > before + SIZE, patience(10), "the answer at RAgent")
        place.cluster.kill_ragent()
        place.faults()
        client.has_answer(client.finish())
        client.has_answer(client("get", path="/5"), "/5")


def answer_in_doubt_behind_a_ragent_that_died(place, suite):
    """The counts of RAgent go on in its next process."""
    with Client(place, suite) as client:
        client.has_answer(client("get", path="/20000"), "/20000")
        place.cluster.kill_ragent()
        before = place.sealed(client)
        place.faults(f"link.write drop on {settled(place.cluster, client)['owner']}")
        client.asks()
        place.sealed_more(client, before)
        place.kill(client.owner)
        client.goes_on()
        assert place.undelivered(client) >= RECORDS


def frozen_owner_talks(place, suite):
    """A record that no agent sealed comes on the stream of a frozen owner."""
    with Client(place, suite) as client:
        place.faults(f"move.said fail on {client.owner}")
        place.cluster.move(client.id, after(place.cluster, client.owner))
        client.has_answer(client("get", path=f"/{SIZE}"))


def _misled(situation):
    return lambda place, suite: situation(place, lambda to=None: Client(place, suite, to=to))


ALL, TLS13 = tuple(SUITES), ("1.3",)
THOSE_THAT_GO_ON = ("1.2 AES-GCM", "1.3")

# name: what happens, suites, carriers (None: all)
SITUATIONS = {
    "answer in doubt": (_answer_in_doubt("link.write"), ALL, None),
    "part of an answer in doubt": (_answer_in_doubt("link.part"), ALL, None),
    "answer in doubt behind a new RAgent": (answer_in_doubt_behind_a_new_ragent, ALL, ("memory", "sealed")),
    "answer in the ring": (answer_in_the_ring, ALL, ("memory",)),
    "answer received and not committed": (answer_received_and_not_committed, ALL, None),
    "owner alive and lost": (owner_alive_and_lost, ALL, ("socket",)),
    "answer in doubt twice": (answer_in_doubt_twice, THOSE_THAT_GO_ON, None),
    "KeyUpdate in doubt": (key_update_in_doubt, TLS13, None),
    "KeyUpdate in doubt amid acknowledgements": (key_update_in_doubt_amid_acknowledgements, TLS13, None),
    "KeyUpdate owed at a move": (key_update_owed_at_a_move, TLS13, ("memory", "socket")),
    "KeyUpdate owed at a move, the copy lost": (key_update_owed_at_a_move_the_copy_lost, TLS13, ("memory", "socket")),
    "copy of an older generation": (copy_of_an_older_generation, TLS13, None),
    "drain right after": (drain_right_after, ALL, None),
    "frozen and not heard": (frozen_and_not_heard, ALL, None),
    "frozen and not heard, the live part lost": (frozen_and_not_heard_the_live_part_lost, TLS13, ("memory",)),
    "moved": (moved, ALL, None),
    "backend closed an idle connection": (backend_closed_an_idle_connection, ALL, None),
    "epoch not raised": (epoch_not_raised, THOSE_THAT_GO_ON, None),
    "position too early": (position_too_early, TLS13, None),
    "position before that of a copy nobody was told of": (position_before_that_of_a_copy, TLS13, ("memory",)),
    "loss called a rest": (loss_called_a_rest, ALL, None),
    "another listener": (another_listener, ALL, None),
    "copy that had a later owner": (copy_that_had_a_later_owner, ALL, ("memory",)),
    "forgotten copy": (forgotten_copy, ALL, ("memory",)),
    "no copy shown": (no_copy_shown, ALL, ("memory",)),
    "answer held when RAgent dies": (answer_held_when_ragent_dies, TLS13, ("memory", "sealed")),
    "answer in doubt behind a RAgent that died": (answer_in_doubt_behind_a_ragent_that_died, TLS13, ("memory",)),
    "frozen owner talks": (frozen_owner_talks, ALL, None),
    **{name: (_misled(situation), *where) for name, (situation, *where) in misled.SITUATIONS.items()},
}
