"""Network namespaces of a test's own.

    with routed() as (senders, router, receivers):
        run(*senders.within, "ping", ...)
        with receivers.entered(): ...   # this thread, and all that it starts
"""

import contextlib
import ctypes
import os
import secrets
import subprocess

CLONE_NEWNET = 0x40000000

# These rules are those of conf/smtpproxy.yaml, except for the local addresses.
TPROXY = """
table inet cssl {
    chain prerouting {
        type filter hook prerouting priority mangle;
        meta l4proto tcp socket transparent 1 meta mark set 1 accept
        meta nfproto ipv4 iifname "inside" tcp dport 25 tproxy ip to :2525 meta mark set 1 accept
        meta nfproto ipv6 iifname "inside" tcp dport 25 tproxy ip6 to :2525 meta mark set 1 accept
    }
}
"""

SENDERS, RECEIVERS = ("198.51.100.{}", "2001:db8:1::{}"), ("203.0.113.{}", "2001:db8:2::{}")


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

    def rules(self, text):
        run(*self.within, "nft", "-f", "-", input=text)


def _cable(router, device, space, networks, host):
    router.ip("link", "add", device, "type", "veth", "peer", "name", "out", "netns", space.name)
    for network in networks:
        router.address(f"{network.format(1)}/{64 if ':' in network else 24}", device)
        space.address(f"{network.format(host)}/{64 if ':' in network else 24}", "out")
    router.ip("link", "set", device, "up")
    space.ip("link", "set", "out", "up")
    for network in networks:
        space.ip("-6" if ":" in network else "-4", "route", "add", "default", "via", network.format(1))


@contextlib.contextmanager
def routed():
    """Senders (.7) and receivers (.25), and a router between them that delivers what goes to port 25 to its own port 2525."""
    with Space() as senders, Space() as router, Space() as receivers:
        _cable(router, "inside", senders, SENDERS, 7)
        _cable(router, "outside", receivers, RECEIVERS, 25)
        for family in ("-4", "-6"):
            router.ip(family, "rule", "add", "fwmark", "1", "lookup", "100")
            router.ip(family, "route", "add", "local", "default", "dev", "lo", "table", "100")
        router.rules(TPROXY)
        yield senders, router, receivers
