"""Moves connections between agents: once, twice, or all the while something streams over them.

    mover = Mover(2)
    mover(cluster, web.sock)                     to the next agent, and to the one after it
    mover.amid(cluster, probe, size, moves=50)   spread over a stream of that size, either way
    with Restless(cluster) as restless: ...      whatever there is, all the while
    for _ in until_moved(restless): ...          again and again until something of it was moved
"""

import contextlib
import threading

from tests.lib.build import patience
from tests.lib.cluster import ControlError
from tests.lib.waiting import wait_until


def settled(cluster, client):
    """The connection of this socket or Probe, once an agent owns it."""
    def owned():
        connection = cluster.connection_of(client)
        return connection if connection and connection["owner"] else None
    return wait_until(owned, patience(10), "an owner of the connection")


def after(cluster, name):
    """The next agent."""
    return cluster.agents[(cluster.agents.index(name) + 1) % len(cluster.agents)]


def push(cluster, identity):
    """Moves a connection to the agent after its owner. Returns the answer of the control API. Agents that have just come up may
    take the connection at the same moment."""
    refusals = []

    def moved():
        owner = cluster.connection(identity)["owner"]
        try:
            return owner and cluster.move(identity, after(cluster, owner))
        except ControlError as e:
            refusals.append(str(e))
            if e.status != 409:
                raise
            return None

    try:
        return wait_until(moved, patience(5))
    except TimeoutError:
        raise AssertionError(f"it does not move: {refusals[-1:]}") from None


class Mover:
    def __init__(self, times):
        self.times = times

    def __call__(self, cluster, client):
        """Returns the name of the agent that owns it then."""
        connection = settled(cluster, client)
        owner = connection["owner"]
        for _ in range(self.times):
            owner = push(cluster, connection["id"])["to"]
        return owner

    @staticmethod
    def amid(cluster, client, size, moves):
        """Returns the number of bytes that had passed at the last move (fewer than `size`, or the move came too late), and for
        each move how long no agent owned the connection, in µs."""
        connection = settled(cluster, client)
        identity = connection["id"]

        def passed():
            now = cluster.connection(identity)
            return now["client_bytes"] + now["server_bytes"] - before

        before = connection["client_bytes"] + connection["server_bytes"]
        pauses = []
        for number in range(moves):
            wait_until(lambda part=number * size // (moves + 12): passed() >= part, patience(30), "progress of the stream")
            pauses.append(push(cluster, identity)["pause_us"])
        return passed(), pauses


class Restless(threading.Thread):
    """Moves every connection to the next agent, again and again, as long as the context lasts; `moves` counts."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.moves, self._cluster, self._over = 0, cluster, threading.Event()

    def run(self):
        while not self._over.is_set():
            for connection in self._cluster.connections():
                self._move(connection)

    def _move(self, connection):
        if not connection["owner"]:
            return
        with contextlib.suppress(ControlError):  # it ended meanwhile, or is on its way already
            self._cluster.move(connection["id"], after(self._cluster, connection["owner"]))
            self.moves += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()


TRIES = 150  # a client may be faster than a move


def until_moved(restless):
    """Once without @restless; else again and again until a connection of this test was moved at least once, which a test has to show."""
    for _ in range(TRIES):
        yield
        if not restless or restless.moves:
            return
    raise AssertionError(f"in {TRIES} runs of this client no connection was moved")
