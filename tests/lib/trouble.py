"""Faults that can happen to a running cluster. Each is a function or a context. tests/scenario uses them one by one, ./cssl soak at random.

    kill_in_turns(cluster, load, seconds=15, every=3, dice=random.Random(1))
    with stopped(cluster, "a1"): ...
    with rules(cluster, *cut_off_from_ragent("a1")): ...
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

from tests.lib.build import patience
from tests.lib.waiting import wait_until

# Processes


def kill_and_return(cluster, name, load=None):
    """kill -9, and start again."""
    if load:
        load.mark(name)
    cluster.kill(name)
    cluster.restart(name)


def kill_while(goes_on, cluster, every, dice, load=None):
    """Kills agents at random, one after another, and starts each again, while goes_on() is true. Returns their names in order."""
    victims, begin = [], time.monotonic()
    while goes_on():
        victims.append(dice.choice(cluster.agents))
        kill_and_return(cluster, victims[-1], load)
        pause = begin + every * len(victims) - time.monotonic()
        time.sleep(max(0.0, pause))
    return victims


def kill_in_turns(cluster, load, seconds, every, dice):
    """The same for a number of seconds."""
    end = time.monotonic() + seconds
    return kill_while(lambda: time.monotonic() < end, cluster, every, dice, load)


def kill_all_and_return(cluster):
    cluster.kill(*cluster.agents)
    for name in cluster.agents:
        cluster.restart(name)


@contextlib.contextmanager
def stopped(cluster, name):
    """SIGSTOP, and afterwards SIGCONT: the process comes back and knows of nothing."""
    cluster.allow_takeover()
    cluster.send_signal(name, signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.send_signal(name, signal.SIGCONT)


def restart_in_order(cluster, name, timeout=60):
    """SIGTERM, wait for its end, and start again."""
    cluster.send_signal(name, signal.SIGTERM)
    status = cluster.wait_gone(name, timeout)
    assert status == 0, f"{name} ended with {status}"
    cluster.restart(name)


def upgrade(cluster, name):
    """Restarts it in order as an agent of the next release, which writes a format that this release can only read."""
    cluster.env["CSSL_NEXT_FORMAT"] = "1"
    try:
        restart_in_order(cluster, name)
    finally:
        del cluster.env["CSSL_NEXT_FORMAT"]


# The network, by fault points


@contextlib.contextmanager
def rules(cluster, *lines):
    """Gives these fault rules (net/points/fault.h) to every daemon, for a while."""
    cluster.allow_takeover()
    cluster.faults(*lines)
    cluster.settle_faults()
    try:
        yield
    finally:
        cluster.clear_faults()
        cluster.settle_faults()


def cut_off_from_ragent(name, ways=("read", "write")):
    return [f"link.{way} drop on {name}" for way in ways]


def cut_off_from_peers(name, ways=("read", "write")):
    """Drops datagrams and links; in one direction only if `ways` is one."""
    datagrams = {"read": "udp.receive", "write": "udp.send"}
    return [line for way in ways for line in (f"peer.{way} drop on {name}", f"{datagrams[way]} drop on {name}")]


def bad_network(loss, late_ms=20):
    """Loses, doubles, reorders and delays packets, all at once."""
    return [f"udp.send drop {loss}", "udp.send duplicate 0.05", "udp.send reorder 0.05", f"udp.receive delay {late_ms}"]


# What others send


def peer_ports(cluster):
    return {name: int(port) for name, port in
            re.findall(r"^(a\d+)\.peer (\d+)$", (cluster.dir / "plan").read_text(), re.MULTILINE)}


def spray(datagrams, ports, dice, count):
    """Sends captured datagrams again: unchanged, with a bit flipped, cut short; and noise. Each goes to any agent."""
    kinds = (lambda d: d,
             lambda d: d[:(at := dice.randrange(len(d)))] + bytes([d[at] ^ 1 << dice.randrange(8)]) + d[at + 1:],
             lambda d: d[:dice.randrange(len(d))],
             lambda d: dice.randbytes(len(d)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _ in range(count):
            with contextlib.suppress(OSError):  # a port may be nobody's while its agent is away
                s.sendto(dice.choice(kinds)(dice.choice(datagrams)), ("127.0.0.1", dice.choice(ports)))


# Operators


def rotate_keys(cluster):
    return cluster.control("POST", "/v1/keys/rotate", {})


def renew_certificate(cluster, name="ecdsa"):
    """Replaces the certificate by a new key and a certificate of the same CA; by rename, as a tool would."""
    new, ca = cluster.dir / "new", cluster.dir / f"{name}-ca"
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", f"{new}.key", "-subj", "/CN=localhost", "-out", f"{new}.csr"], check=True, stderr=subprocess.DEVNULL)
    (cluster.dir / "new.ext").write_text("subjectAltName=DNS:localhost,DNS:*.cssl.test")
    subprocess.run(["openssl", "x509", "-req", "-in", f"{new}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key",
                    "-days", "2", "-extfile", f"{new}.ext", "-out", f"{new}.pem"], check=True, stderr=subprocess.DEVNULL)
    for kind in ("key", "pem"):
        (cluster.dir / f"new.{kind}").rename(cluster.dir / f"{name}.{kind}")


def reload_certificates(cluster):
    renew_certificate(cluster)
    return cluster.control("POST", "/v1/reload", {})


# Resources


def descriptors(pid):
    """How many descriptors are open, without the files of the nonce audit, which come with a thread's first record."""
    count = 0
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += "/audit/" not in os.readlink(entry)
    return count


def _limit(pid, what, soft):
    """Runs as the user of the process, because changing others' limits needs a capability that root in a container may not have."""
    if os.geteuid() != 0:
        subprocess.run(["prlimit", "--pid", str(pid), f"--{what}={soft}:"], check=True)
        return
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    user, group = (re.search(rf"^{what}:\t(\d+)", status, re.MULTILINE).group(1) for what in ("Uid", "Gid"))
    subprocess.run(["setpriv", "--reuid", user, "--regid", group, "--clear-groups",
                    "prlimit", "--pid", str(pid), f"--{what}={soft}:"], check=True)


@contextlib.contextmanager
def descriptors_limited(cluster, name, spare):
    """The process may open so many more descriptors, and no more."""
    pid = cluster.pid(name)
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    before = re.search(r"^Max open files\s+(\d+)", limits, re.MULTILINE).group(1)
    _limit(pid, "nofile", len(os.listdir(f"/proc/{pid}/fd")) + spare)
    try:
        yield
    finally:
        _limit(pid, "nofile", before)


@contextlib.contextmanager
def memory_limited(cluster, name, spare):
    """The process may get so many bytes more, and no more (RLIMIT_DATA)."""
    pid = cluster.pid(name)
    used = 1024 * int(re.search(r"VmData:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))
    _limit(pid, "data", used + spare)
    try:
        yield
    finally:
        _limit(pid, "data", "unlimited")


def resident(pid):
    """The memory that a process itself has, in bytes: without the files of the nonce audit, which it maps."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", text).group(1)) * 1024


# The backend


def backend_address(cluster):
    """The address of the embedded backend."""
    plan = (cluster.dir / "plan").read_text()
    return "127.0.0.1", int(re.search(r"^backend 127\.0\.0\.1:(\d+)$", plan, re.MULTILINE).group(1))


def start_backend(cluster, command):
    """Starts it again by its command line. It listens when this returns."""
    def listens():
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(backend_address(cluster)):
            return True
    cluster.start_again("backend", command)
    wait_until(listens, patience(5), "a backend that listens")


class Executions:
    """The requests with ids that the backend executed, and their results at the clients (tlsload's `ids`)."""

    def __init__(self, cluster, path, address=None):
        """`address`: of a backend that is not the embedded one."""
        self.became = dict(line.split(" ", 1) for line in path.read_text().splitlines())
        self.executed = self._ask(address or backend_address(cluster))

    def _ask(self, address):
        executed = {}
        with socket.create_connection(address) as s, s.makefile("rb") as lines:
            for identity in self.became:
                s.sendall(f"GET /count/{identity} HTTP/1.1\r\nHost: backend\r\n\r\n".encode())
                length = 0
                while (line := lines.readline().strip()):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                executed[identity] = json.loads(lines.read(length))["executions"]
        return executed

    def check(self):
        """Checks that no request was executed twice, and that every successful one was executed."""
        twice = {i: n for i, n in self.executed.items() if n > 1}
        assert not twice, f"executed more than once: {twice}"
        forged = [i for i, what in self.became.items() if what == "status 200" and self.executed[i] != 1]
        assert not forged, f"reported successful and never executed: {forged}"
        return self


# When it is over


def wait_consistent(cluster, timeout=15):
    """Waits until every agent is up with all its links and has met every other, and each connection has at most one owner."""
    def consistent():
        agents = cluster.status()["agents"]
        if any(a["state"] != "ready" or a["links_up"] != a["links"] for a in agents):
            return False
        counters = cluster.counters()
        return all(counters[name].get("peers_up") == len(agents) - 1 for name in cluster.agents)
    wait_until(consistent, patience(timeout), "a whole cluster")
