"""./cssl bench paper: the experiments of Hatsugai and Saito, "Load-balancing SSL Cluster by Using Session Migration" (2007), with
today's servers beside ours.

Scenario A: three clients make full handshakes only; two of their addresses are led to the same server by a balancer that keeps
clients at their server. Scenario B: clients that come back; a balancer without memory sends them to any server.
"""

import contextlib
import json
import pathlib
import statistics
import sys
import threading
import time

from bench.experiments import load, machine, plot
from bench.experiments.cluster import ROOT
from bench.experiments.paper_systems import colliding, systems
from bench.experiments.processes import cpu_ns
from bench.experiments.quota import Quotas
from bench.experiments.wire import Wire, delayed

ROUND_TRIP_MS = 30
SAMPLE_S = 0.1

# name: (its name in the paper, requests/s, full handshakes really made); None: the paper has no such row
PAPER = {
    "A": {
        "LB-IP": ("LB-IP (TMX3000, Apache/mod_ssl)", 179.5, 2100),
        "one reverse proxy": ("Pound-IP", 108.2, 2100),
        "CSSL-SF, migration off": ("CSSL-SF, migration off", 184.7, 2100),
        "CSSL-SF, migration on": ("CSSL-SF, migration on", 223.4, 2100),
        "one server": ("one Apache/mod_ssl", 100.5, 2100),
    },
    "B": {
        "LB-RR": ("LB-RR (TMX3000, Apache/mod_ssl)", 441.2, 1893),
        "LB-RR, one ticket key": None,
        "one reverse proxy": ("Pound-RR", 142.3, 1000),
        "reverse proxies, RR": None,
        "CSSL-SL, migration off": ("CSSL-SL, migration off", 389.6, 2883),
        "CSSL-SL, migration on": ("CSSL-SL, migration on", 638.3, 1124),
        "one server": ("one Apache/mod_ssl", 319.1, None),
    },
}

# The paper's figures 11 to 14
FIGURES = [("A", "LB-IP", "11"), ("A", "CSSL-SF, migration on", "12"), ("B", "LB-RR", "13"), ("B", "CSSL-SL, migration on", "14")]

TLS = {"1.2": ("rsa", ("--version", "1.2", "--suite", "ECDHE-RSA-AES128-GCM-SHA256")), "1.3": ("ecdsa", ("--version", "1.3"))}


class Sampler:
    """How much of its machine each server uses, as time goes by."""

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
                self.series[name].append((round(now - begin, 3), (ns - last[name]) / 1e7 / (now - before) / self._part))
                last[name] = ns
            before = now

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def _options(scenario, sources, tls, is_quick):
    if scenario == "A":
        # Each client address has a third of the work, however fast its server is.
        count, options = (60 if is_quick else 2100), ("--path", "/5k", "--length", 5120, "--equal")
    else:
        count, options = (60 if is_quick else 3000), ("--path", "/1k", "--length", 1024, "--mix", "1:2")
    clients = 12 if is_quick else 99
    return ("--connections", count, "--clients", clients, "--timeout-ms", 60000, *options, *tls,
            *(word for s in sources for word in ("--source", s)))


def measure(scenario, system, wire, sources, options):
    """One run: a dict of figures."""
    before = {name: cpu_ns(pids) for name, pids in system.servers.items()}
    all_before = cpu_ns(system.pids())
    with Sampler(system.servers, options.machine) as sampler:
        result = load.run(system.port, *_options(scenario, sources, TLS[options.tls][1], options.quick), host=wire.server,
                          prefix=wire.prefix)
    used = {name: cpu_ns(pids) - before[name] for name, pids in system.servers.items()}
    counts = result["counts"]
    return {"scenario": scenario, "system": system.name, "wire": wire.text, "per_s": result["answers_per_s"],
            "full": counts["full"], "resumed": counts["resumed"], "cpu_us": (cpu_ns(system.pids()) - all_before) / 1e3
            / counts["answers"], "shares": {name: ns / sum(used.values()) for name, ns in used.items()},
            "latency": result["latency"], "generators": result["generators"], "samples": sampler.series}


def _sources(scenario, all_systems, wire):
    """Of scenario A, for each system three of which two collide; of B two, as in the paper."""
    if scenario == "B":
        return {name: wire.sources[:2] for name in all_systems}
    return {name: colliding(s.find(s, wire)) if s.find else wire.sources[:3] for name, s in all_systems.items()}


def run_all(folder, wire, quotas, options, say):
    runs = []
    with systems(folder, wire, TLS[options.tls][0], options.machine, quotas) as scenarios:
        named = dict(zip("AB", scenarios))
        sources = {name: _sources(name, s, wire) for name, s in named.items()}
        for number in range(options.rounds):
            for scenario, all_systems in named.items():
                for name, system in all_systems.items():
                    run = measure(scenario, system, wire, sources[scenario][name], options)
                    runs.append({"round": number, **run})
                    say(f"{wire.text}, round {number + 1} of {options.rounds}, {scenario}, {name}: {run['per_s']:.0f}/s")
    return runs


# What is said

def _of(runs, wire, scenario, system):
    return [r for r in runs if (r["wire"], r["scenario"], r["system"]) == (wire, scenario, system)]


def _percent(shares):
    return " : ".join(f"{100 * share:.0f} %" for share in shares)


def _mean_shares(rows):
    names = rows[0]["shares"]
    return [statistics.mean(r["shares"][name] for r in rows) for name in names]


def _table(runs, wire, scenario):
    reference = statistics.median(r["per_s"] for r in _of(runs, wire, scenario, "one server"))
    paper_reference = PAPER[scenario]["one server"][1]
    yield "| system | requests/s | least-most | of one server | full made | CPU of the servers | CPU us each | paper: | requests/s " \
          "| of one server | full made |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, paper in PAPER[scenario].items():
        rows = _of(runs, wire, scenario, name)
        rate = [r["per_s"] for r in rows]
        median = statistics.median(rate)
        said = "- | - | - | -"
        if paper:
            said = f"{paper[0]} | {paper[1]} | {paper[1] / paper_reference:.2f} x | {paper[2] or '-'}"
        yield (f"| {name} | **{median:.1f}** | {min(rate):.1f}-{max(rate):.1f} | {median / reference:.2f} x | "
               f"{statistics.median(r['full'] for r in rows):.0f} | {_percent(_mean_shares(rows))} | "
               f"{statistics.median(r['cpu_us'] for r in rows):.0f} | {said} |")


TEXT = {
    "A": ("Scenario A: clients behind few addresses (the paper's Table 2)",
          "{count} full handshakes, a file of 5,120 bytes on each connection, from three addresses. A balancer that keeps clients at\n"
          "their server (LB-IP), and agents without migration, have two of the three at one server and one at the other. With\n"
          "migration on the handshakes go round, and only what follows goes by address."),
    "B": ("Scenario B: clients that come back (the paper's Table 3)",
          "{count} connections, a file of 1,024 bytes on each; a third are full handshakes, the others offer the session of the one\n"
          "before. A balancer without memory sends them to either server, and `full made` is how many were full in the end."),
}


def markdown(report):
    lines = ["# The experiments of the paper", "", __doc__.split("\n\n", 1)[1].strip(), ""]
    lines += [f"- {key}: {value}" for key, value in report["machine"].items()]
    lines += [f"- each server (web server, reverse proxy or agent) has {100 * report['part']:.0f} % of a core" if report["part"] < 1
              else "- servers share the cores of this host: no quota, so that an uneven split costs little", f"- {report['tls']}", ""]
    wires = list(dict.fromkeys(r["wire"] for r in report["runs"]))
    count = {s: _of(report["runs"], wires[0], s, "one server")[0] for s in "AB"}
    for scenario, (title, text) in TEXT.items():
        total = count[scenario]["full"] + count[scenario]["resumed"]
        lines += [f"## {title}", "", text.format(count=f"{total:,}"), ""]
        for wire in wires:
            lines += [f"### {wire}", "", *_table(report["runs"], wire, scenario), ""]
    lines += ["## CPU of both servers over time", ""]
    lines += [f"![{title}]({name})\n" for name, title, _ in figures(report)]
    return "\n".join(lines) + "\n"


def figures(report):
    """(file name, title, run) of each, of the last round over the longest wire."""
    wire = report["runs"][-1]["wire"]
    for scenario, system, number in FIGURES:
        run = _of(report["runs"], wire, scenario, system)[-1]
        yield (f"figure-{number}.svg", f"Scenario {scenario}, {system} (the paper's figure {number})", run)


def _write(report, out):
    out.mkdir(parents=True, exist_ok=True)
    for name, title, run in figures(report):
        y_title = "% of a server's part" if report["part"] < 1 else "% of a core"
        (out / name).write_text(plot.lines(title, "seconds", y_title, run["samples"], 110))
    (out / "paper.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "paper.md").write_text(markdown(report))


def main(options):
    """`options`: folder (for what runs), out, rounds, quick, tls, machine (0: no quota), wires."""
    def say(text):
        print(f"bench: {text}", file=sys.stderr, flush=True)

    facts, runs = machine.facts(ROOT), []
    with Quotas() as quotas:
        for number, kind in enumerate(options.wires):
            with contextlib.nullcontext(Wire()) if kind == "none" else delayed(ROUND_TRIP_MS) as wire:
                runs += run_all(pathlib.Path(options.folder) / str(number), wire, quotas, options, say)
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "part": options.machine,
              "tls": f"TLS {options.tls}, {TLS[options.tls][0].upper()} certificate", "runs": runs}
    _write(report, pathlib.Path(options.out))
    print(markdown(report))
    say(f"written: {options.out}")
