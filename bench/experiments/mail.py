"""./cssl bench mail: the cost of sending mail: our two tools compared with Postfix's, and our TLS termination with nginx and
stunnel. In each round every system does its works shortly one after the other, in turning order. The result for two systems
is the median of the ratios of such pairs. What has a target is measured several times in each round, so that the interval of that
median is narrow. A run that lost a mail, or made other handshakes than it should, raises an error."""

import contextlib
import dataclasses
import pathlib

from bench.experiments import machine
from bench.experiments.cluster import ROOT
from bench.experiments.compare_works import TLS12, TLS13
from bench.experiments.load import LoadError, same
from bench.experiments.mail_page import DIRECT, OURS, OURS_ROUND_ROBIN, STARTTLS, is_judged, is_timed, markdown
from bench.experiments.mail_peers import (MailCluster, MailPlace, debian_version, own_source, peak_kb, unpacked, source, timed,
                                          used_ns)
from bench.experiments.report import save

AT_ONCE = 200
MAILS = 1000     # of a run; many short runs give a narrower interval than a few long ones
MAILS_ALONE = 20  # of a run with one session at a time
PAIR_TURNS = 3   # in each round, of the pairs of tools
TURNS = 9        # in each round, of works with a target
TURNS_QUICK = 3
MAIL_BYTES = 1024
RESUMED_LEAST = 0.9  # of the handshakes after the first one of a session
SESSIONS = (1, 100, 1000)
PAIRS = ["cssl-bench", "Postfix"]


@dataclasses.dataclass
class System:
    """A server of TLS, with a port for each kind: {"starttls" or "implicit": port}; the processes of the front, which is between the
    client and the mail server, and those of the mail server."""
    name: str
    ports: dict
    front: list
    mail_server: list


# The pairs

def pair_options(sessions, keep, mails):
    return ["-s", sessions, "-m", mails, "-f", "from@example.com", "-t", "to@example.com", *(["-d"] if keep else [])]


def check_connections(counts, sessions, keep, mails):
    """LoadError: there were other connections than this kind of a run has. Sessions that find no mail left make none."""
    most, made = sessions if keep else mails, counts["connections"] - 1  # without ours, which asked whether the sink listens
    same(f"{sessions} sessions", {"connections": made}, {"connections": min(made, most) if keep else most})


def check_source_of_postfix(place, sessions, keep, mails):
    """Postfix's sink tells no counts, so before it is timed its source shows to our sink that it does what ours does."""
    port, pids = place.sink("sink-of-pair")
    timed(unpacked("smtp-source"), *pair_options(sessions, keep, mails), f"{place.host}:{port}")
    place.end(pids)
    counts = place.counts("sink-of-pair")
    same("Postfix's smtp-source", counts, {"mails": mails})
    check_connections(counts, sessions, keep, mails)


def measure_pair(place, name, sessions, keep, mails):
    port, pids = place.sink("sink-of-pair") if name == "cssl-bench" else place.postfix_sink()
    command = own_source() if name == "cssl-bench" else [unpacked("smtp-source")]
    cost = timed(*command, *pair_options(sessions, keep, mails), f"{place.host}:{port}")
    sink_kb = peak_kb(pids[0])
    if name == "cssl-bench":
        check_connections(place.end_sink("sink-of-pair", pids, mails), sessions, keep, mails)
    else:
        place.end(pids)
    return {"pair": name, "sessions": sessions, "keep": keep, "mails": mails, "seconds": cost["seconds"],
            "source_kb": cost["peak_kb"], "sink_kb": sink_kb}


def measure_pairs(place, rounds, mails, course):
    runs = []
    for keep in (False, True):
        for sessions in SESSIONS:
            check_source_of_postfix(place, sessions, keep, mails)
    for number in range(rounds * PAIR_TURNS):
        for keep in (False, True):
            for sessions in SESSIONS:
                names = PAIRS[number % 2:] + PAIRS[:number % 2]
                runs += [{"round": number, **measure_pair(place, name, sessions, keep, mails)} for name in names]
        course.done("pairs of tools", pairs=runs)
    return runs


# Termination

@contextlib.contextmanager
def systems(folder):
    with MailPlace(folder / "peers") as place, contextlib.ExitStack() as stack:
        sink, sink_pids = place.sink("sink")
        cluster = stack.enter_context(MailCluster(folder / "cluster", (place.host, sink), "local"))
        other = stack.enter_context(MailCluster(folder / "round-robin", (place.host, sink)))
        tls = cluster.tls["ecdsa"]
        found = [System(OURS, cluster.mail, cluster.pids, sink_pids),
                 System(OURS_ROUND_ROBIN, other.mail, other.pids, sink_pids),
                 System("nginx mail", *place.nginx_mail("nginx", tls, sink), sink_pids),
                 System("stunnel", *place.stunnel("stunnel", tls, sink), sink_pids)]
        with place.in_turns():
            found += [System("nginx mail in turns", *place.nginx_mail("nginx-in-turns", tls, sink), sink_pids),
                      System("stunnel in turns", *place.stunnel("stunnel-in-turns", tls, sink), sink_pids)]
        yield [*found, direct(place, tls)]


def direct(place, tls):
    """Mail servers that terminate TLS by themselves."""
    ports, pids = {}, []
    for kind, options in (("starttls", ()), ("implicit", ("--tls",))):
        ports[kind], started = place.sink(f"direct-{kind}", "--cert", tls[0], "--key", tls[1], *options)
        pids += started
    return System(DIRECT, ports, [], pids)


@dataclasses.dataclass(frozen=True)
class Work:
    kind: str  # "starttls" or "implicit"
    tls: object
    resumed: bool

    @property
    def name(self):
        how = STARTTLS if self.kind == "starttls" else "implicit TLS"
        return f"{how}, TLS {self.tls.version}, {'resumed' if self.resumed else 'full'}"

    def options(self):
        # In TLS 1.2 the groups have to include that of the certificate, too (RFC 8422 5.1).
        return ("--starttls" if self.kind == "starttls" else "--tls", "--tls-version", self.tls.version, "--suite", self.tls.suite,
                "--group", "X25519:P-256", *(["--resume"] if self.resumed else []))


WORKS = [Work(kind, tls, resumed) for kind in ("starttls", "implicit") for tls in (TLS13, TLS12) for resumed in (False, True)]


def _check(work, system, result, sessions, mails):
    full, resumed = result["counts"]["full"], result["counts"]["resumed"]
    same(f"{work.name}, {system.name}", {"handshakes": full + resumed}, {"handshakes": mails})
    if list(result["suites"]) != [work.tls.text()]:
        raise LoadError(f"{work.name}, {system.name}: {result['suites']} instead of {work.tls.text()}")
    if not work.resumed and resumed:
        raise LoadError(f"{work.name}, {system.name}: {resumed} resumptions that nobody asked for")
    return full - sessions <= (1 - RESUMED_LEAST) * (full + resumed - sessions)


def measure(work, system, sessions, mails):
    before = [used_ns(pids) for pids in (system.front, system.mail_server)]
    result = source(system.ports[work.kind], mails, "-s", sessions, "-l", MAIL_BYTES, *work.options())
    after = [used_ns(pids) for pids in (system.front, system.mail_server)]
    front_us, mail_server_us = ((b - a) / mails / 1000 for a, b in zip(before, after))
    resumes = _check(work, system, result, sessions, mails)
    message = result["latency"]["message"]
    return {"work": work.name, "system": system.name, "sessions": sessions, "mails": mails, "front_us": front_us,
            "mail_server_us": mail_server_us, "full": result["counts"]["full"], "resumed": result["counts"]["resumed"],
            "resumes": not work.resumed or resumes, "per_s": mails / result["seconds"], "p50_us": message["p50_us"],
            "p99_us": message["p99_us"]}


def measure_work(work, found, number, turn, sessions, mails):
    """Many sessions at once, and then one session at a time, to see how much a tier adds to its time: not while it still has to clear
    up after the many. In the first turn of a round all systems take part, in the others only those that a target is about."""
    where = {"round": number, "turn": turn}
    taking_part = [s for s in found if work.kind in s.ports]
    first = (number + turn) % len(taking_part)
    taking_part = taking_part[first:] + taking_part[:first]
    for system in taking_part:
        if turn == 0 or is_judged(work.name, system.name):
            yield {**where, **measure(work, system, sessions, mails)}
    for system in taking_part:
        if turn == 0 or is_timed(system.name):
            yield {**where, **measure(work, system, 1, min(mails, MAILS_ALONE))}


def measure_termination(found, rounds, turns, sessions, mails, course):
    """Between two turns of a work are all other works: else their ratios would share what disturbs the host for a minute."""
    runs = []
    for number in range(rounds):
        for turn in range(turns):
            for work in WORKS:
                runs += measure_work(work, found, number, turn, sessions, mails)
            course.done("TLS", runs=runs)
    return runs


def facts():
    found = machine.facts(ROOT)
    del found["haproxy"], found["hitch"]
    return {**found, **{name: debian_version(name) for name in ("libnginx-mod-mail", "stunnel4", "postfix")}}


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick."""
    where = facts()
    folder = pathlib.Path(options.folder)
    turns, sessions, mails = (TURNS_QUICK, 10, 40) if options.quick else (TURNS, AT_ONCE, MAILS)
    options.course.plan(options.rounds * PAIR_TURNS, options.rounds * turns)
    with MailPlace(folder / "pairs") as place:
        pairs = measure_pairs(place, options.rounds, 100 if options.quick else 10000, options.course)
    with systems(folder) as found:
        runs = measure_termination(found, options.rounds, turns, sessions, mails, options.course)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "at_once": sessions, "mail_bytes": MAIL_BYTES,
              "pairs": pairs, "runs": runs}
    save(options, report, markdown)
