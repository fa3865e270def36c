"""Network namespaces, and cables between them.

    with Space() as router, Space() as hosts:
        cable(router, "inside", hosts, ["192.0.2.{}"], [7])
        run(*hosts.within, "ping", ...)
        with hosts.entered(): ...   # this thread, and all that it starts
"""

import contextlib
import ctypes
import os
import secrets
import subprocess

CLONE_NEWNET = 0x40000000
GATEWAY = 254  # the router's address in each network


def run(*command, **settings):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **settings).stdout


def _enter(path):
    with open(path, "rb") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))


class Space:
    """A network namespace with loopback."""

    def __init__(self):
        self.name = f"cssl-{secrets.token_hex(3)}"

    def __enter__(self):
        run("ip", "netns", "add", self.name)
        self.ip("link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        run("ip", "netns", "del", self.name)

    @property
    def within(self):
        return "ip", "netns", "exec", self.name

    @contextlib.contextmanager
    def entered(self):
        """This thread, and the processes that it starts."""
        own = f"/proc/{os.getpid()}/task/{ctypes.CDLL(None).gettid()}/ns/net"
        with open(own, "rb") as before:
            _enter(f"/run/netns/{self.name}")
            try:
                yield
            finally:
                _enter(f"/proc/self/fd/{before.fileno()}")

    def ip(self, *arguments):
        run("ip", "-n", self.name, *arguments)

    def address(self, address, device):
        self.ip("address", "add", address, "dev", device, *(["nodad"] if ":" in address else []))

    def pace(self, device, rate):
        """What the device sends goes at this rate, as on a slower cable."""
        run(*self.within, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "128kb", "latency", "50ms")

    def rules(self, text):
        run(*self.within, "nft", "-f", "-", input=text)


def cable(router, device, space, networks, hosts):
    """A cable from @device of the router to `out` of @space, which has the addresses @hosts in each of @networks ("192.0.2.{}")."""
    router.ip("link", "add", device, "type", "veth", "peer", "name", "out", "netns", space.name)
    for network in networks:
        bits = 64 if ":" in network else 24
        router.address(f"{network.format(GATEWAY)}/{bits}", device)
        for host in hosts:
            space.address(f"{network.format(host)}/{bits}", "out")
    router.ip("link", "set", device, "up")
    space.ip("link", "set", "out", "up")
    for network in networks:
        space.ip("-6" if ":" in network else "-4", "route", "add", "default", "via", network.format(GATEWAY))
