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
    """A work, as options of cssl-bench https. The number of its units is the count of that name, or bytes in MiB. `change`: the
    clusters that ./cssl bench change measures."""
    name: str
    unit: str
    options: tuple
    systems: tuple
    quick: tuple = ()  # options that come last in a quick run
    tls: Tls = TLS13
    resumed: float = 0  # at least this share of the handshakes has to be resumptions
    change: tuple = ()

    def units(self, result):
        return result["counts"]["bytes"] / (1 << 20) if self.unit == "MiB" else result["counts"][self.unit]


@dataclasses.dataclass
class Pair:
    """Two systems that are compared. `most`: the wanted ratio, or None."""
    work: str
    ours: str
    peer: str
    most: float = None


FULL, FULL12 = "full handshake + 5 KiB, TLS 1.3", "full handshake + 5 KiB, TLS 1.2"
RESUMED, RESUMED12 = "resumption + 1 KiB, TLS 1.3", "resumption + 1 KiB, TLS 1.2"
MIXED = "1,000 full + 2,000 resumed asked, 1 KiB"
KEPT, BULK = "keep-alive request, 1 KiB, {} busy", "bulk, {} busy"
FRESH = ", backend not reused"
BUSY = (1, 4, 16, 64, 256)  # connections with a request under way, always

QUICK, FEW = ("--duration", "0.1"), ("--connections", "60")
SMALL = ("--path", "/1k", "--length", "1024")
NEW = ("--connections", "3000", "--path", "/5k", "--length", "5120")
# So many addresses that a balancer by address uses both of its servers. The first connection of each client is full.
COMING_BACK = ("--connections", "3000", "--clients", "20", "--mix", "0:1", "--source", "127.0.9.2-127.0.9.21", *SMALL)
COMING_MIXED = ("--connections", "3000", "--clients", "10", "--mix", "1:2", *SMALL)

LINKS = ("CSSL-SF", "CSSL-SF TCP", "CSSL-SF TCP sealed")
USUAL = (*LINKS, "haproxy", "haproxy+hitch", "haproxy+nginx")
SPREAD = "CSSL-SF spread"
UNEQUAL = ("CSSL-SF default", "haproxy default", "haproxy+hitch default")
RESUMING = (*LINKS, "CSSL-SF any agent", "CSSL-SL", "haproxy", "haproxy by address+hitch", "haproxy+nginx shared")
SF_CHANGE, ALL_CHANGE = ("CSSL-SF trusted", "CSSL-SF sealed"), ("CSSL-SF trusted", "CSSL-SF sealed", "CSSL-SL trusted")


def _kept(busy):
    """The usual load is that of 64 busy connections: it has all systems."""
    options = ("--requests", "0", "--duration", "2", "--clients", str(busy), *SMALL)
    more = (*UNEQUAL, SPREAD, "CSSL-SF 2 workers") if busy == 64 else (*UNEQUAL[:2], SPREAD) if busy == 16 else ()
    return Work(KEPT.format(busy), "answers", options, (*USUAL, *more), QUICK, change=SF_CHANGE if busy == 64 else ())


def _bulk(busy):
    options = ("--requests", "0", "--duration", "2", "--clients", str(busy), "--path", "/1m", "--length", str(1 << 20))
    more = (*UNEQUAL, SPREAD, "CSSL-SF 2 workers") if busy == 4 else ()
    return Work(BULK.format(busy), "MiB", options, (*USUAL, *more), QUICK, change=SF_CHANGE if busy == 4 else ())


WORKS = {work.name: work for work in (
    Work(FULL, "connections", NEW, (*USUAL, *UNEQUAL, SPREAD, "CSSL-SF 2 workers"), FEW, change=SF_CHANGE),
    Work(FULL12, "connections", NEW, (*LINKS, "haproxy", "haproxy+hitch"), FEW, TLS12),
    Work(FULL + FRESH, "connections", NEW, ("CSSL-SF fresh", "haproxy fresh"), FEW),
    Work(RESUMED, "connections", COMING_BACK, RESUMING, ("--connections", "200"), resumed=0.85, change=ALL_CHANGE),
    Work(RESUMED12, "connections", COMING_BACK, RESUMING, ("--connections", "200"), TLS12, 0.85, ALL_CHANGE),
    Work(MIXED, "connections", COMING_MIXED,
         ("CSSL-SL", "CSSL-SL TCP sealed", "CSSL-SL default", "haproxy", "haproxy+nginx", "haproxy+nginx shared",
          "haproxy+nginx shared default"), FEW, change=("CSSL-SL trusted",)),
    *map(_kept, BUSY),
    Work(KEPT.format(64) + FRESH, "answers", ("--requests", "0", "--duration", "2", "--clients", "64", *SMALL),
         ("CSSL-SF fresh", "haproxy fresh"), QUICK),
    *map(_bulk, BUSY),
)}

TARGETS = [
    Pair(FULL, "CSSL-SF", "haproxy", 1.10), Pair(FULL12, "CSSL-SF", "haproxy", 1.30),
    Pair(RESUMED, "CSSL-SF", "haproxy", 1.00), Pair(RESUMED12, "CSSL-SF", "haproxy", 1.20),
    Pair(MIXED, "CSSL-SL", "haproxy+nginx shared", 0.95),
    Pair(KEPT.format(64), "CSSL-SF", "haproxy", 0.80), Pair(KEPT.format(16), "CSSL-SF", "haproxy", 0.95),
    Pair(BULK.format(4), "CSSL-SF", "haproxy", 0.95), Pair(BULK.format(4), "CSSL-SF TCP sealed", "haproxy+hitch", 0.95),
    Pair(FULL, "CSSL-SF 2 workers", "CSSL-SF", 1.05),
]

# Every work beside HAProxy alone, whoever costs less.
ALONE = [Pair(work.name, work.systems[0], next(name for name in work.systems if name in ("haproxy", "haproxy fresh")))
         for work in WORKS.values()]

DEFAULT_SCHEDULING = [Pair(MIXED, "CSSL-SL default", "haproxy+nginx shared default"), Pair(KEPT.format(16), "CSSL-SF default", "haproxy default"),
                      *(Pair(work, "CSSL-SF default", peer)
                        for work in (FULL, KEPT.format(64), BULK.format(4)) for peer in UNEQUAL[1:])]

# The cost of the same tiers: RAgent, two agents, nginx; and HAProxy (tcp), two hitches, nginx.
SAME_TIERS = [Pair(work, ours, peer)
              for work, peer in ((FULL, "haproxy+hitch"), (FULL12, "haproxy+hitch"), (RESUMED, "haproxy by address+hitch"),
                                 (RESUMED12, "haproxy by address+hitch"), (KEPT.format(64), "haproxy+hitch"),
                                 (BULK.format(4), "haproxy+hitch"))
              for ours in LINKS]

SHARED_KEY = [Pair(work, ours, "haproxy+nginx shared") for work in (RESUMED, RESUMED12) for ours in ("CSSL-SF", "CSSL-SL")]

SPREADING = [Pair(work, SPREAD, "haproxy") for work in (FULL, KEPT.format(64), KEPT.format(16), BULK.format(4))]

SECOND_WORKER = [Pair(work, "CSSL-SF 2 workers", "CSSL-SF") for work in (FULL, KEPT.format(64), BULK.format(4))]
