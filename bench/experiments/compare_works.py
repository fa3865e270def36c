"""The works of ./cssl bench compare, the systems that do each work, and the pairs that are compared."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Tls:
    """The TLS parameters that every server is offered, and the generator's report of each handshake."""
    version: str
    suite: str

    def options(self):
        # In TLS 1.2 the groups have to include that of the certificate, too (RFC 8422 5.1).
        return "--version", self.version, "--suite", self.suite, "--group", "X25519:P-256"

    def text(self):
        return f"TLSv{self.version} {self.suite}"


TLS12, TLS13 = Tls("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"), Tls("1.3", "TLS_AES_128_GCM_SHA256")


@dataclasses.dataclass
class Work:
    """A work, as options of cssl-bench https. The number of its units is the count of that name, or bytes in MiB."""
    name: str
    unit: str
    options: tuple
    systems: tuple
    quick: tuple = ()  # options that come last in a quick run
    tls: Tls = TLS13
    resumed: float = 0  # at least this share of the handshakes has to be resumptions

    def units(self, result):
        return result["counts"]["bytes"] / (1 << 20) if self.unit == "MiB" else result["counts"][self.unit]


@dataclasses.dataclass
class Pair:
    """Two systems that are compared. `most`: the wanted ratio, or None."""
    work: str
    ours: str
    peer: str
    most: float = None


SECONDS = ("--requests", "0", "--duration", "4")
QUICK = ("--duration", "0.3")
FEW = ("--connections", "60")
FULL = ("--connections", "3000", "--path", "/5k", "--length", "5120")
SMALL = ("--path", "/1k", "--length", "1024")
# So many addresses that a balancer by address uses both of its servers. The first connection of each client is full.
COMING_BACK = ("--connections", "3000", "--clients", "20", "--mix", "0:1", "--source", "127.0.9.2-127.0.9.21", *SMALL)
KEPT = (*SECONDS, "--clients", "64", *SMALL)
USUAL = ("CSSL-SF trusted", "CSSL-SF sealed", "haproxy", "haproxy+hitch", "haproxy+nginx")
IN_TURNS = ("haproxy in turns", "haproxy+hitch in turns")
RESUMING = ("CSSL-SF trusted", "CSSL-SF sealed", "CSSL-SL trusted", "haproxy", "haproxy by address+hitch", "haproxy+nginx shared")

WORKS = {work.name: work for work in (
    Work("full handshake + 5 KiB", "connections", FULL, (*USUAL, *IN_TURNS, "CSSL-SF 2 workers"), FEW),
    Work("full handshake + 5 KiB, backend not reused", "connections", FULL, ("CSSL-SF fresh", "haproxy fresh"), FEW),
    Work("resumption + 1 KiB, TLS 1.3", "connections", COMING_BACK, RESUMING, ("--connections", "200"), resumed=0.85),
    Work("resumption + 1 KiB, TLS 1.2", "connections", COMING_BACK, RESUMING, ("--connections", "200"), TLS12, 0.85),
    Work("1,000 full + 2,000 resumed asked, 1 KiB", "connections",
         ("--connections", "3000", "--clients", "10", "--mix", "1:2", *SMALL),
         ("CSSL-SL trusted", "CSSL-SL sealed", "haproxy", "haproxy+nginx", "haproxy+nginx shared", "haproxy+nginx shared in turns"), FEW),
    Work("keep-alive request, 1 KiB", "answers", KEPT, (*USUAL, *IN_TURNS, "CSSL-SF 2 workers"), QUICK),
    Work("keep-alive request, 1 KiB, backend not reused", "answers", KEPT, ("CSSL-SF fresh", "haproxy fresh"), QUICK),
    Work("bulk", "MiB", (*SECONDS, "--clients", "4", "--path", "/1m", "--length", str(1 << 20)),
         (*USUAL, *IN_TURNS, "CSSL-SF 2 workers"), QUICK),
)}

TARGETS = [
    Pair("full handshake + 5 KiB", "CSSL-SF trusted", "haproxy", 1.00),
    Pair("full handshake + 5 KiB", "CSSL-SF trusted", "haproxy+hitch", 0.75),
    Pair("1,000 full + 2,000 resumed asked, 1 KiB", "CSSL-SL trusted", "haproxy+nginx shared", 0.90),
    Pair("keep-alive request, 1 KiB", "CSSL-SF trusted", "haproxy", 0.85),
    Pair("keep-alive request, 1 KiB, backend not reused", "CSSL-SF fresh", "haproxy fresh", 0.85),
    Pair("bulk", "CSSL-SF trusted", "haproxy", 0.85),
]

SECOND_WORKER = [Pair(work, "CSSL-SF 2 workers", "CSSL-SF trusted", 1.10)
                 for work in ("full handshake + 5 KiB", "keep-alive request, 1 KiB", "bulk")]

# The other systems under the scheduling policy that RAgent and agents set for themselves.
SAME_SCHEDULING = [Pair("1,000 full + 2,000 resumed asked, 1 KiB", "CSSL-SL trusted", "haproxy+nginx shared in turns"),
                   *(Pair(work, "CSSL-SF trusted", peer)
                     for work in ("full handshake + 5 KiB", "keep-alive request, 1 KiB", "bulk") for peer in IN_TURNS)]

# The cost of the same tiers: RAgent, two agents, nginx; and HAProxy (tcp), two hitches, nginx.
SAME_TIERS = [Pair(work, f"CSSL-SF {link}", peer)
              for work, peer in (("full handshake + 5 KiB", "haproxy+hitch"),
                                 ("resumption + 1 KiB, TLS 1.3", "haproxy by address+hitch"),
                                 ("resumption + 1 KiB, TLS 1.2", "haproxy by address+hitch"),
                                 ("keep-alive request, 1 KiB", "haproxy+hitch"), ("bulk", "haproxy+hitch"))
              for link in ("trusted", "sealed")]

SHARED_KEY = [Pair(f"resumption + 1 KiB, TLS {version}", f"CSSL-{mode} trusted", "haproxy+nginx shared")
              for version in ("1.3", "1.2") for mode in ("SF", "SL")]
