"""Situations of laws 2, 3, 5 and 7 that a hostile RAgent makes (tests/lib/hostile.py): what agents told each other, and what they
remember, has to be enough to refuse. tests/lib/in_doubt.py has the others, and the table of all."""

import contextlib
import secrets

from tests.lib import nonce_audit
from tests.lib.build import patience
from tests.lib.hostile import CAUSES, FRAMES, Hostile, confirm
from tests.lib.mutants import FOREIGN, OF_ANOTHER_EPOCH, SEALED_MEANWHILE
from tests.lib.waiting import NotWithin, wait_until

TEMPTATION_S = 0.5


class Prey:
    """A client of a hostile RAgent, with some answers behind it. `held` is what RAgent had of it then, and the lies are about that: its
    owner has sealed each record before `held["write_sequence"]`. `begin` makes another client."""

    def __init__(self, place, hostile, client, begin):
        self.place, self.hostile, self.client, self.begin = place, hostile, client, begin
        for _ in range(4):
            client.has_answer(client("get", path="/5"), "/5")
        self.held = hostile.newest("owned")
        self.owner = self.held["agent"]
        self.others = [name for name in place.cluster.agents if name != self.owner]

    def adopted(self, agent, epoch, less, cause="takeover"):
        """Does `agent` take the connection over, behind all but the last `less` records?"""
        lie = {name: self.held[name] for name in ("client", "copy", "client_records", "read_generation", "read_sequence",
                                                   "write_generation")}
        lie.update(agent=agent, epoch=epoch, write_sequence=self.held["write_sequence"] - less, cause=CAUSES[cause], replay=True)
        return self.hostile("adopt", **lie)["answer"] == "adopted"

    def end(self):
        self.hostile("frame", agent=self.owner, stream=self.held["stream"], type=FRAMES["CLOSE"], hex="00")
        self.time_to_hear()

    def time_to_hear(self):
        """Agents tell each other within a millisecond; an honest client's handshake takes many."""
        with self.begin():
            pass

    def comes_back(self, *names):
        for name in names:
            self.place.kill(name)
            self.place.revive(name)
        self.hostile.wait_links()


@contextlib.contextmanager
def prey(place, begin):
    with Hostile(place.cluster, "sf", keep=True) as hostile:
        with begin(("127.0.0.1", hostile.port)) as client:
            yield Prey(place, hostile, client, begin)


def position_before_a_key_update(place, begin):
    """The lie is about the keys before the owner's KeyUpdate, which RAgent has committed."""
    with prey(place, begin) as one:
        one.client("key_update", request=1)
        one.client.has_answer(one.client("get", path="/5"), "/5")
        assert one.hostile.held(one.held["client"])["write_generation"] == 1
        one.time_to_hear()
        assert not one.adopted(one.others[0], 2, less=1)


def position_of_an_ended_connection(place, begin):
    with prey(place, begin) as one:
        one.end()
        assert not one.adopted(one.others[0], 2, less=1)


def position_of_an_ended_connection_called_a_rest(place, begin):
    """What RAgent names as the cause proves nothing."""
    with prey(place, begin) as one:
        one.end()
        assert not one.adopted(one.others[0], 2, less=1, cause="wake")


def position_of_an_ended_connection_at_an_agent_that_came_back(place, begin):
    """It knows from a snapshot how far the owner had sealed."""
    with prey(place, begin) as one:
        one.end()
        one.comes_back(one.others[0])
        assert not one.adopted(one.others[0], 2, less=1)


@contextlib.contextmanager
def taken_over_in_doubt(place, begin):
    """By the first of the others, which says no KeyUpdate yet: so nothing is sealed twice if this is the only one."""
    with prey(place, begin) as one:
        place.faults(f"keyupdate.due fail on {one.others[0]}")
        assert one.adopted(one.others[0], 2, less=3)
        one.time_to_hear()
        yield one
        place.faults()


def in_doubt_at_a_second_position(place, begin):
    with taken_over_in_doubt(place, begin) as one:
        times = one.hostile("links")["times"][one.others[0]]
        one.hostile("drop", agent=one.others[0])
        wait_until(lambda: one.hostile("links")["times"][one.others[0]] > times, patience(10), "the next link")
        place.faults()
        assert not one.adopted(one.others[0], 3, less=2)


def in_doubt_at_a_second_agent(place, begin):
    """At another position than the first one."""
    with taken_over_in_doubt(place, begin) as one:
        assert not one.adopted(one.others[1], 3, less=2)


def in_doubt_at_an_agent_that_came_back(place, begin):
    """The agent that was in doubt, and the one that knew how far it had sealed, know only what the third tells them."""
    with taken_over_in_doubt(place, begin) as one:
        one.comes_back(one.owner, one.others[0])
        place.faults()
        assert not one.adopted(one.others[0], 3, less=2)


def epoch_burnt(place, begin):
    """RAgent asks for a connection of another one, under a high epoch, without its copy. The true one goes on."""
    with begin() as client, Hostile(place.cluster, "sf") as hostile:
        for agent in place.cluster.agents:
            if agent != client.owner:
                assert hostile("adopt", agent=agent, id=client.id, epoch=60000, copy="none", write_sequence=5)["answer"] == "refused"
        place.kill(client.owner)
        client.asks()
        client.goes_on()


# Streams that outlive their link


def stream_of_another_ragent(place, begin):
    with begin() as client, Hostile(place.cluster, "sf") as hostile:
        hostile("prove", agent=client.owner, hex=secrets.token_hex(32))
        epoch = place.cluster.connection(client.id)["epoch"]
        if hostile("reattach", agent=client.owner, id=client.id, epoch=epoch)["answer"] != "refused":
            place.breaches.append(FOREIGN)
        client.has_answer(client("get", path="/40000"))


@contextlib.contextmanager
def link_cut(place, first=lambda hostile, held: None):
    """A hostile RAgent that has shown a proof to the owner of its client, has done `first`, and has cut the link. It is up again."""
    with Hostile(place.cluster, "sf", keep=True) as hostile:
        for agent in place.cluster.agents:
            hostile("prove", agent=agent, hex="a5" * 32)
        with place.cluster.connect(("127.0.0.1", hostile.port), place.cluster.context("1.3")) as sock:
            sock.sendall(b"GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert sock.recv(65536)
            held = hostile.newest("owned")
            times = hostile("links")["times"][held["agent"]]
            first(hostile, held)
            hostile("drop", agent=held["agent"])
            wait_until(lambda: hostile("links")["times"][held["agent"]] > times, patience(10), "the next link")
            yield hostile, held


def stream_of_another_epoch(place, begin):
    """RAgent names an epoch that its stream never had."""
    with link_cut(place) as (hostile, held):
        answer = hostile("reattach", agent=held["agent"], client=held["client"], epoch=held["epoch"] + 1)
        if answer["answer"] != "refused":
            place.breaches.append(OF_ANOTHER_EPOCH)


def position_before_what_was_confirmed(place, begin):
    """RAgent claims that the owner begins anew with a record that RAgent has confirmed."""
    with link_cut(place, confirm) as (hostile, held):
        hostile("adopt", agent=held["agent"], client=held["client"], write_sequence=held["write_sequence"] - 1, replay=True)


def answer_while_parked(place, begin):
    """The backend answers while the stream of its request waits for the next link."""
    with Hostile(place.cluster, "sf", keep=True) as hostile:
        for agent in place.cluster.agents:
            hostile("prove", agent=agent, hex="a5" * 32)
        with begin(("127.0.0.1", hostile.port)) as client, place.backend.silent() as speak:
            said = len(place.backend.said["/40000"])
            client.asks("/40000")
            wait_until(lambda: len(place.backend.said["/40000"]) > said, patience(10), "the request at the backend")
            held = hostile.newest("owned")
            times = hostile("links")["times"][held["agent"]]
            hostile("drop", agent=held["agent"])
            wait_until(lambda: hostile("links")["times"][held["agent"]] > times, patience(10), "the next link")
            before = len(place.rows_of(held["id"], nonce_audit.SEALED))
            speak()
            with contextlib.suppress(NotWithin):
                wait_until(lambda: len(place.rows_of(held["id"], nonce_audit.SEALED)) > before, TEMPTATION_S)
                place.breaches.append(SEALED_MEANWHILE)


BOTH, TLS13 = ("1.2 AES-GCM", "1.3"), ("1.3",)

# name: what happens, with a function that begins a client, to another RAgent if it gets its address; suites, carriers (None: all)
SITUATIONS = {
    "position before a KeyUpdate": (position_before_a_key_update, TLS13, ("memory",)),
    "position of an ended connection": (position_of_an_ended_connection, TLS13, ("memory",)),
    "position of an ended connection, called a rest": (position_of_an_ended_connection_called_a_rest, TLS13, ("memory",)),
    "position of an ended connection at an agent that came back": (position_of_an_ended_connection_at_an_agent_that_came_back, TLS13, ("memory",)),
    "in doubt at a second position": (in_doubt_at_a_second_position, TLS13, ("memory",)),
    "in doubt at a second agent": (in_doubt_at_a_second_agent, TLS13, ("memory",)),
    "in doubt at an agent that came back": (in_doubt_at_an_agent_that_came_back, TLS13, ("memory",)),
    "epoch burnt": (epoch_burnt, BOTH, ("memory",)),
    "position before what was confirmed": (position_before_what_was_confirmed, TLS13, None),
    "stream of another RAgent": (stream_of_another_ragent, TLS13, None),
    "stream of another epoch": (stream_of_another_epoch, TLS13, None),
    "answer while parked": (answer_while_parked, BOTH, ("memory",)),
}
