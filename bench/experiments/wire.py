"""The wire between clients and servers: none, or one with a delay. Clients are in a network namespace of their own, and reach
the servers' address through a pair of devices that hold every packet for half a round trip: by netem if the kernel has it,
else by `cssl-bench delay` between two TUN devices."""

import contextlib
import os
import subprocess

from bench.experiments.cluster import build_folder
from bench.experiments.load import BENCH

# Each process has a network of its own, so that several can run at the same time.
NETWORK = f"10.213.{os.getpid() % 256}"
SERVER = f"{NETWORK}.1"
CLIENTS = 60  # addresses


class Wire:
    """No wire: loopback."""

    def __init__(self):
        self.server = "127.0.0.1"
        self.prefix = []  # prefix of a command that runs in the clients' namespace
        self.sources = [f"127.0.9.{n}" for n in range(2, 2 + CLIENTS)]
        self.round_trip_ms = 0
        self.text = "loopback, no delay"


def _ip(*arguments, netns=None):
    """What is wrong, ip says on standard error."""
    subprocess.run(["ip", *(["-n", netns] if netns else []), *arguments], check=True, stdout=subprocess.DEVNULL)


def _address(device, addresses, netns=None):
    for address in addresses:
        _ip("address", "add", f"{address}/24", "dev", device, netns=netns)
    _ip("link", "set", device, "up", netns=netns)


def _try_netem(device, ms, netns=None):
    command = ["tc", *(["-n", netns] if netns else []), "qdisc", "add", "dev", device, "root", "netem", "delay", f"{ms}ms",
               "limit", "100000"]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def _devices(kind, here, there, netns):
    """Two devices, the second in the namespace. Packets in the kernel are lost with the namespace."""
    if kind == "veth":
        _ip("link", "add", here, "type", "veth", "peer", "name", there)
        _ip("link", "set", there, "netns", netns)
    else:
        _ip("tuntap", "add", "dev", here, "mode", "tun")
        _ip("tuntap", "add", "dev", there, "mode", "tun", netns=netns)
    try:
        yield
    finally:
        _ip("link", "delete", here)


@contextlib.contextmanager
def _relay(here, there, netns, ms):
    process = subprocess.Popen([str(build_folder() / BENCH), "delay", "--here", here, "--there", there, "--netns", netns,
                                "--ms", str(ms)], stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "relaying\n":
            raise RuntimeError(f"the relay did not start, status {process.wait()}: its reason is above")
        yield
    finally:
        process.terminate()
        said = process.communicate()[0].strip()
        if said != "dropped 0":
            raise RuntimeError(f"the relay {said} packets")


@contextlib.contextmanager
def delayed(round_trip_ms):
    """A Wire with that delay. Needs root."""
    netns = f"cssl-bench-{os.getpid()}"
    here, there = f"csslh{os.getpid() % 100000}", f"csslt{os.getpid() % 100000}"
    wire = Wire()
    wire.round_trip_ms = round_trip_ms
    wire.server, wire.prefix = SERVER, ["ip", "netns", "exec", netns]
    wire.sources = [f"{NETWORK}.{n}" for n in range(2, 2 + CLIENTS)]
    with contextlib.ExitStack() as stack:
        _ip("netns", "add", netns)
        stack.callback(_ip, "netns", "delete", netns)
        has_netem = _netem_works(netns)
        stack.enter_context(_devices("veth" if has_netem else "tun", here, there, netns))
        if has_netem:
            _try_netem(here, round_trip_ms / 2)
            _try_netem(there, round_trip_ms / 2, netns)
            wire.text = f"{round_trip_ms} ms round trip by netem"
        else:
            stack.enter_context(_relay(here, there, netns, round_trip_ms / 2))
            wire.text = f"{round_trip_ms} ms round trip by a TUN relay (this kernel has no netem)"
        _address(here, [SERVER])
        _address(there, wire.sources, netns)
        yield wire


def _netem_works(netns):
    _ip("link", "set", "lo", "up", netns=netns)
    works = _try_netem("lo", 1, netns)
    if works:
        subprocess.run(["tc", "-n", netns, "qdisc", "delete", "dev", "lo", "root"], check=True)
    return works
