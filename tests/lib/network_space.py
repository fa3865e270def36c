"""Senders, a router and receivers of a test's own, each in a network namespace (bench/experiments/network_space.py).

    with routed() as (senders, router, receivers):
        run(*senders.within, "ping", ...)
        with receivers.entered(): ...   # this thread, and all that it starts
"""

import contextlib
import pathlib
import re

from bench.experiments.network_space import Space, cable, run

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


@contextlib.contextmanager
def routed():
    """Senders (.7) and receivers (.25), and a router between them that delivers what goes to port 25 to its own port 2525."""
    with Space() as senders, Space() as router, Space() as receivers:
        cable(router, "inside", senders, SENDERS, [7])
        cable(router, "outside", receivers, RECEIVERS, [25])
        for family in ("-4", "-6"):
            router.ip(family, "rule", "add", "fwmark", "1", "lookup", "100")
            router.ip(family, "route", "add", "local", "default", "dev", "lo", "table", "100")
        router.rules(TPROXY)
        yield senders, router, receivers


CONF = pathlib.Path(__file__).parents[2] / "conf"


def example_rules(hook, example="smtpproxy.yaml"):
    """The nftables table of that file in conf/ whose chain is of that type."""
    lines = [line[6:] for line in (CONF / example).read_text(encoding="utf-8").splitlines() if line.startswith("#     ")]
    tables = re.findall(r"^table inet \w+ \{\n.*?^\}\n", "\n".join(lines) + "\n", re.M | re.S)
    found, = [table for table in tables if f"type {hook} hook prerouting" in table]
    return found


def use_example(router, hook, example="smtpproxy.yaml"):
    """These rules instead of TPROXY, and the router forwards."""
    run(*router.within, "nft", "delete", "table", "inet", "cssl")
    router.rules(example_rules(hook, example))
    run(*router.within, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")


def elements(space, verb, name, address):
    """Adds an address to a set of the example's, or deletes it."""
    run(*space.within, "nft", verb, "element", "inet", "smtpproxy", name, "{", address, "}")
