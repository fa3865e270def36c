"""./cssl bench paper: the experiments of Hatsugai and Saito, "Load-balancing SSL Cluster by Using Session Migration" (2007),
with today's servers and CSSL. Scenario A: three clients make full handshakes only; a balancer that keeps clients at their
server sends two of the three addresses to the same server. Scenario B: clients come back; a balancer without memory sends
them to any server."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import pathlib
import threading
import time

from bench.experiments import load, machine, paper_unequal
from bench.experiments.cluster import ROOT
from bench.experiments.paper_page import figures, markdown
from bench.experiments.paper_systems import colliding, systems
from bench.experiments.processes import cpu_ns
from bench.experiments.quota import Quotas
from bench.experiments.report import save
from bench.experiments.wire import Wire, delayed

ROUND_TRIP_MS = 30
WIRE_LEAST = 0.9  # of the round trip; a histogram is not exact
SAMPLE_S = 0.25
SYSTEMS = 6 + 9  # of scenario A and of B


@dataclasses.dataclass(frozen=True)
class Tls:
    key: str
    options: tuple
    text: str


TLS = {
    "1.2": Tls("rsa", ("--version", "1.2", "--suite", "ECDHE-RSA-AES128-GCM-SHA256"), "TLS 1.2, RSA 2048, ECDHE, AES-128-GCM"),
    "1.3": Tls("ecdsa", ("--version", "1.3", "--suite", "TLS_AES_128_GCM_SHA256"), "TLS 1.3, ECDSA P-256, AES-128-GCM"),
}


class Sampler:
    """The share of its machine that each server uses, over time."""

    def __init__(self, servers, part):
        self._servers, self._part, self._end = servers, part, threading.Event()
        self.series = {name: [] for name in servers}
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        begin = before = time.monotonic()
        last = {name: cpu_ns(pids) for name, pids in self._servers.items()}
        while not self._end.wait(SAMPLE_S):
            now = time.monotonic()
            for name, pids in self._servers.items():
                ns = cpu_ns(pids)
                part = (ns - last[name]) / 1e7 / (now - before) / self._part
                self.series[name].append((round(now - begin, 2), round(part, 1)))
                last[name] = ns
            before = now

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def _options(scenario, sources, tls, part, is_quick):
    """Of a generator with this part of the whole work."""
    if scenario == "A":
        # Each client address has a third of the work, however fast its server is.
        count, options = (60 if is_quick else 2100), ("--path", "/5k", "--length", 5120, "--equal")
    else:
        count, options = (60 if is_quick else 3000), ("--path", "/1k", "--length", 1024, "--mix", "1:2")
    clients = 12 if is_quick else 99
    return ("--connections", round(count * part), "--clients", round(clients * part), "--timeout-ms", 60000, *options, *tls,
            *(word for s in sources for word in ("--source", s)))


def together(results):
    """The results of generators that ran at the same time, as one."""
    counts = sum((collections.Counter(r["counts"]) for r in results), collections.Counter())
    return {"answers_per_s": counts["answers"] / max(r["seconds"] for r in results), "counts": counts,
            "latency": [r["latency"] for r in results], "generators": sum((r["generators"] for r in results), [])}


def _load(scenario, system, wire, sources, options):
    """The clients of a name that has several addresses keep the one that their resolver gave them first."""
    doors = system.doors or (system.port,)

    def at(number):
        own = sources[number::len(doors)]
        return load.run(doors[number], *_options(scenario, own, TLS[options.tls].options, len(own) / len(sources), options.quick),
                        host=wire.server, prefix=wire.prefix)
    with concurrent.futures.ThreadPoolExecutor(len(doors)) as pool:
        results = list(pool.map(at, range(len(doors))))
    return results[0] if len(results) == 1 else together(results)


def check_wire(name, wire, latency):
    """LoadError: connects took less time than the wire has. `latency`: of a generator, or a list of several."""
    for one in latency if isinstance(latency, list) else [latency]:
        if one["connect"]["p50_us"] < WIRE_LEAST * wire.round_trip_ms * 1000:
            raise load.LoadError(f"{name}: a connect takes {one['connect']['p50_us']} us on a wire of {wire.round_trip_ms} ms")


def measure(scenario, system, wire, sources, options):
    """One run: a dict of figures."""
    before = system.cpu_ns_of_servers()
    all_before = cpu_ns(system.pids())
    with Sampler(system.servers, options.machine) as sampler:
        result = _load(scenario, system, wire, sources, options)
    used = {name: ns - before[name] for name, ns in system.cpu_ns_of_servers().items()}
    counts = result["counts"]
    check_wire(system.name, wire, result["latency"])
    return {"scenario": scenario, "system": system.name, "wire": wire.text, "per_s": result["answers_per_s"],
            "full": counts["full"], "resumed": counts["resumed"], "cpu_us": (cpu_ns(system.pids()) - all_before) / 1e3
            / counts["answers"], "shares": {name: ns / sum(used.values()) for name, ns in used.items()},
            "latency": result["latency"], "generators": result["generators"], "samples": sampler.series}


def _sources(scenario, all_systems, wire):
    """The client addresses: for scenario A, three for each system, two of which collide; for B two, as in the paper."""
    if scenario == "B":
        return {name: wire.sources[:2] for name in all_systems}
    return {name: colliding(s.find(s, wire)) if s.find else wire.sources[:3] for name, s in all_systems.items()}


def run_all(folder, wire, quotas, options):
    runs = []
    with systems(folder, wire, TLS[options.tls].key, options.machine, quotas) as scenarios:
        named = dict(zip("AB", scenarios))
        sources = {name: _sources(name, s, wire) for name, s in named.items()}
        for number in range(options.rounds):
            for scenario, all_systems in named.items():
                names = list(all_systems)
                first = number % len(names)
                for name in names[first:] + names[:first]:
                    run = measure(scenario, all_systems[name], wire, sources[scenario][name], options)
                    runs.append({"round": number, **run})
                    options.course.done(f"{wire.text}, scenario {scenario}, {name}: {run['per_s']:.0f}/s", **{wire.text: runs})
    return runs


def main(options):
    """`options`: name, folder (for what runs), out, rounds, quick, course, tls, machine (1: no quota), wires."""
    facts, runs = machine.facts(ROOT), []
    options.course.plan(len(options.wires) * options.rounds * SYSTEMS, options.rounds * paper_unequal.SYSTEMS)
    with Quotas() as quotas:
        if options.machine < 1 and not quotas.is_allowed():
            raise SystemExit("bench: this host lets nobody make a cgroup, by which each server gets a part of a core; without: --machine 1")
        for number, kind in enumerate(options.wires):
            with contextlib.nullcontext(Wire()) if kind == "none" else delayed(ROUND_TRIP_MS) as wire:
                runs += run_all(pathlib.Path(options.folder) / str(number), wire, quotas, options)
        unequal = list(paper_unequal.measure_all(pathlib.Path(options.folder) / "unequal", quotas, TLS[options.tls], options))
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "part": options.machine,
              "tls": TLS[options.tls].text, "runs": runs, "unequal": unequal}
    save(options, report, markdown, figures)
