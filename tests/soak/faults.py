"""The faults of a soak: each takes the soak (tests/soak/soak.py), does its harm to the cluster for a while, and leaves it as it was.

`costs` says what clients may notice of it, by group of the standing load; what is not named may lose nothing."""

import os
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from tests.lib import trouble
from tests.lib.build import SANITIZED, patience
from tests.lib.capture import Capture
from tests.lib.mover import Restless
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until

# What a client may see of an agent's sudden end where its request may have been executed: the honest kinds.
UNSURE = {"refused idle", "alert unanswered", "alert midway", "reset unanswered", "reset midway", "fin idle"}
# A handshake whose agent is lost after it had answered; the client may take it for complete already.
IN_HANDSHAKE = {"reset shaking", "alert shaking", "reset idle", "reset unanswered"}
AN_AGENT_LOST = {"post": UNSURE, "up": UNSURE, "new": IN_HANDSHAKE, "resuming": IN_HANDSHAKE}
# Where no agent is up, or no backend, those who ask are told so.
NOBODY_THERE = UNSURE | IN_HANDSHAKE | {"no_connect shaking", "fin shaking"}
EVERYBODY_ASKING = {name: NOBODY_THERE for name in ("get", "big", "down", "post", "up", "new", "resuming")}
# Nobody is refused, and each worker may have been changing one connection.
RAGENT_DIES = {name: UNSURE | IN_HANDSHAKE for name in EVERYBODY_ASKING}


@dataclass
class Fault:
    number: int  # in the list of faults
    name: str
    run: Callable
    costs: dict = field(default_factory=dict)
    needs: str = ""
    ragents: int = 0  # so many die, and each of their workers may lose one connection, of whatever group,
    unbounded: tuple = ()  # but for these groups, which may lose more


def kill_one_after_another(soak):
    trouble.kill_in_turns(soak.cluster, soak.load, soak.seconds, every=3, dice=soak.dice)


def kill_in_a_handshake(soak):
    victim = soak.victim()
    soak.cluster.allow_takeover()
    soak.cluster.faults(f"handshake.before_finished kill on {victim} times 1")
    soak.cluster.wait_gone(victim, soak.seconds)
    soak.cluster.clear_faults()
    soak.cluster.restart(victim)


def stop_and_continue(soak):
    with trouble.stopped(soak.cluster, soak.victim()):
        time.sleep(soak.seconds)


def drain_by_signal(soak):
    trouble.restart_in_order(soak.cluster, soak.victim())


def drain_by_operator(soak):
    name = soak.victim()
    soak.cluster.drain(name)
    went = soak.cluster.wait_drained(name)
    assert went["state"] == "drained" and went["ended"] == 0, went
    soak.cluster.undrain(name)


def rolling_restart(soak):
    for name in soak.cluster.agents:
        trouble.restart_in_order(soak.cluster, name)
        trouble.wait_consistent(soak.cluster)


def kill_two(soak):
    names = soak.dice.sample(soak.cluster.agents, 2)
    soak.load.mark()
    soak.cluster.kill(*names)
    for name in names:
        soak.cluster.restart(name)


def kill_all(soak):
    soak.load.mark()
    trouble.kill_all_and_return(soak.cluster)


def peers_deaf(soak):
    with trouble.rules(soak.cluster, "udp.send drop"):
        time.sleep(soak.seconds)


def peer_cut_off(soak):
    ways = soak.dice.choice([("read",), ("write",), ("read", "write")])
    with trouble.rules(soak.cluster, *trouble.cut_off_from_peers(soak.victim(), ways)):
        time.sleep(soak.seconds)


def ragent_cut_off(soak):
    ways = soak.dice.choice([("read",), ("write",), ("read", "write")])
    with trouble.rules(soak.cluster, *trouble.cut_off_from_ragent(soak.victim(), ways)):
        time.sleep(soak.seconds)


def bad_network_in_moves(soak):
    with trouble.rules(soak.cluster, *trouble.bad_network(soak.dice.choice([0.1, 0.3]))), Restless(soak.cluster):
        time.sleep(soak.seconds)


def datagrams_again(soak):
    """Also datagrams of earlier faults: an old state image must change nothing."""
    ports = list(trouble.peer_ports(soak.cluster).values())
    with tempfile.TemporaryDirectory() as folder:
        with Capture(Path(folder) / "wire", ports) as wire:
            time.sleep(1)
        soak.heard += soak.dice.sample(fresh := [d for port in ports for _, d in wire.datagrams(port)], min(len(fresh), 500))
    with Restless(soak.cluster):
        end = time.monotonic() + soak.seconds
        while time.monotonic() < end:
            trouble.spray(soak.heard, ports, soak.dice, 200)
            time.sleep(0.05)


def forged_records(soak):
    end = time.monotonic() + soak.seconds
    with Restless(soak.cluster):
        while time.monotonic() < end:
            with Probe(soak.cluster.sf) as probe:
                probe("handshake", sni="localhost", version=soak.dice.choice(["1.2", "1.3"]))
                probe("raw", text=bytes([soak.dice.choice([0, 19, 24, 99, 255])]) + b"\3\3\0\x20" + soak.dice.randbytes(32))
                ended = probe("end")
                assert ended["tcp"] in ("fin", "rst"), ended


def rotate_keys(soak):
    with Restless(soak.cluster):
        for _ in range(5):
            trouble.rotate_keys(soak.cluster)
            time.sleep(soak.seconds / 10)


def old_and_new_formats(soak):
    """One agent of the next release, then the earlier one again."""
    name = soak.victim()
    trouble.upgrade(soak.cluster, name)
    with Restless(soak.cluster):
        time.sleep(soak.seconds / 2)
    trouble.restart_in_order(soak.cluster, name)


def backend_killed(soak):
    with soak.backend_away(signal.SIGKILL):
        time.sleep(2)


def backend_silent(soak):
    with soak.backend_away(signal.SIGSTOP):
        time.sleep(5)


def client_stops_reading(soak):
    name = f"stalled-{soak.count}"
    before = soak.memory()
    soak.load.add(name, count=5, path="/20m", times=1, run="waits", stall_at=100000, stall_ms=soak.seconds * 1000)
    number = soak.load.start("ask", name=name)
    time.sleep(soak.seconds / 3)
    for agent, size in soak.memory().items() if not SANITIZED else ():  # which keep what was freed
        assert size - before.get(agent, size) < 5 * (2 << 20) + (8 << 20), f"{agent} grew by {size - before[agent]} bytes"
    with Restless(soak.cluster):
        time.sleep(1)
    report = soak.load.finish(number)
    assert report["answers"] == 5, report
    soak.load.close(name)


def ragent_replaced(soak):
    for _ in range(3):
        soak.cluster.replace()
        time.sleep(soak.seconds / 6)


RAGENTS_KILLED = 3
DEATHS = [signal.SIGKILL, signal.SIGABRT, *([] if SANITIZED else [signal.SIGSEGV])]  # of which a sanitizer makes a report


def ragent_killed(soak):
    """Each death may cost the one connection that a worker was changing, whatever it did."""
    for _ in range(RAGENTS_KILLED):
        soak.cluster.allow_takeover()
        soak.load.mark()
        soak.cluster.kill_ragent(soak.dice.choice(DEATHS))
        time.sleep(soak.seconds / 6)


def ragent_hangs(soak):
    """Its keeper kills it then, and that is one more death."""
    soak.cluster.allow_takeover()
    soak.load.mark()
    soak.cluster.kill_ragent(signal.SIGSTOP)


def ragent_and_an_agent_killed(soak):
    """Both within 10 ms: connections of the other agents lose what they lose when RAgent dies alone."""
    soak.cluster.allow_takeover()
    soak.load.mark()
    name, again = soak.victim(), soak.cluster.log("r1").count("running again")
    pids = [soak.cluster.pid("r1"), soak.cluster.pid(name)]
    soak.dice.shuffle(pids)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        time.sleep(soak.dice.random() * 0.01)
    wait_until(lambda: soak.cluster.log("r1").count("running again") > again, patience(20), "the next RAgent")
    soak.cluster.wait_gone(name)
    soak.cluster.restart(name)


def descriptors_run_out(soak):
    who = soak.dice.choice([*soak.cluster.agents, "r1"])
    with trouble.descriptors_limited(soak.cluster, who, 3):
        time.sleep(soak.seconds / 3)


def memory_runs_out(soak):
    who = soak.dice.choice([*soak.cluster.agents, "r1"])
    pid = soak.cluster.pid(who)
    with trouble.memory_limited(soak.cluster, who, 1 << 20):
        time.sleep(soak.seconds / 3)
    assert soak.cluster.pid(who) == pid, f"{who} is another process now"


def clock_wrong(soak):
    with trouble.rules(soak.cluster, f"clock offset {soak.dice.choice([3600, -3600])} on {soak.victim()}"):
        time.sleep(soak.seconds)


def certificates_reloaded(soak):
    with Restless(soak.cluster):
        for _ in range(3):
            trouble.reload_certificates(soak.cluster)
            trouble.rotate_keys(soak.cluster)
            time.sleep(soak.seconds / 6)


FAULTS = [
    Fault(1, "one agent after another killed", kill_one_after_another, AN_AGENT_LOST),
    Fault(4, "killed in a handshake", kill_in_a_handshake, AN_AGENT_LOST),
    Fault(5, "an agent stopped, then continued", stop_and_continue, AN_AGENT_LOST),
    Fault(6, "an agent ended by SIGTERM", drain_by_signal),
    Fault(6, "an agent drained by its operator", drain_by_operator),
    Fault(7, "all agents restarted in turn", rolling_restart),
    Fault(8, "two of three agents killed at once", kill_two, AN_AGENT_LOST),
    Fault(9, "all agents killed at once", kill_all, EVERYBODY_ASKING),
    Fault(10, "no datagram arrives", peers_deaf),
    Fault(11, "an agent cut off from its peers", peer_cut_off),
    Fault(11, "an agent cut off from RAgent", ragent_cut_off, AN_AGENT_LOST),
    Fault(12, "bad network while connections move", bad_network_in_moves),
    Fault(13, "old, changed and cut datagrams again", datagrams_again, needs="tcpdump"),
    Fault(15, "records of no type while connections move", forged_records),
    Fault(16, "keys rotated", rotate_keys),
    Fault(17, "one agent writes the next format", old_and_new_formats),
    Fault(18, "the backend killed", backend_killed, EVERYBODY_ASKING),
    Fault(18, "the backend silent", backend_silent),
    Fault(19, "clients stop reading", client_stops_reading),
    Fault(20, "RAgent replaced by a new process", ragent_replaced),
    Fault(20, "RAgent killed", ragent_killed, RAGENT_DIES, ragents=RAGENTS_KILLED),
    Fault(20, "RAgent hangs", ragent_hangs, RAGENT_DIES, ragents=1),
    Fault(20, "RAgent and an agent killed at once", ragent_and_an_agent_killed, RAGENT_DIES, ragents=1,
          unbounded=(*AN_AGENT_LOST, "down")),  # of a download of that agent, RAgent may have had bytes that nobody else has
    Fault(21, "descriptors run out", descriptors_run_out, {"new": NOBODY_THERE, "resuming": NOBODY_THERE, "post": UNSURE,
                                                          "up": UNSURE, "down": UNSURE, "get": UNSURE, "big": UNSURE}),
    Fault(21, "memory runs out", memory_runs_out, EVERYBODY_ASKING),
    Fault(23, "an hour wrong", clock_wrong),
    Fault(24, "certificates and keys renewed while connections move", certificates_reloaded),
]
