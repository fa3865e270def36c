"""./cssl bench storm: how long established clients wait for an answer while more full handshakes come than the servers can make. In
each round every system serves the same requests twice, without a storm and with one."""

import contextlib
import os
import pathlib
import statistics
import time

from bench.experiments import compare_systems, load, machine
from bench.experiments.cluster import ROOT, Cluster
from bench.experiments.peers import Place
from bench.experiments.ratios import columns
from bench.experiments.report import machine_lines, save

TARGET = 1.5  # p99 with a storm / p99 without
SECONDS, QUICK_SECONDS = 6, 1.5
BEFORE_S = 0.3  # the established clients have connected then
CLIENTS, PER_S = 8, 800
STORM = ("--handshake-only", "--version", "1.3", "--clients", 256, "--rate", 20000, "--source", "127.0.9.1-127.0.9.64")
# They get only processor time that the established clients and the backend do not want.
STRANGERS = ("chrt", "--idle", "0")
OURS = ("CSSL-SF", "CSSL-SL", "CSSL-SF default")


@contextlib.contextmanager
def systems(folder):
    """The systems that are measured, in a list."""
    with Place(folder / "peers") as place, contextlib.ExitStack() as stack:
        with place.in_turns():
            backend, pids = place.nginx("backend")
        first, default = (stack.enter_context(Cluster(folder / name, (place.host, backend))) for name in ("c", "d"))
        default.schedule_by_default()
        with place.in_turns():
            port, haproxy = place.haproxy_tls("haproxy", first.tls["ecdsa"], [backend])
        yield [compare_systems.of_cluster("CSSL-SF", first, first.ports["sf"], pids),
               compare_systems.of_cluster("CSSL-SL", first, first.ports["sl"], pids),
               compare_systems.of_cluster("CSSL-SF default", default, default.ports["sf"], pids, scheduling=compare_systems.DEFAULT),
               compare_systems.System("haproxy", port, {"HAProxy": haproxy}, pids)]


@contextlib.contextmanager
def apart(found):
    """The servers have the first CPU; the backend, and what this process starts, the others."""
    cpus = os.sched_getaffinity(0)
    first = {min(cpus)}
    others = cpus - first or first
    for system in found:
        _bind(system.pids, first)
        _bind(system.backend, others)
    os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def _bind(pids, cpus):
    for pid in pids:
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cpus)


def served(system, seconds):
    """The latencies of the established clients, counted from the moment at which a request was due."""
    result = load.run(system.port, "--clients", CLIENTS, "--requests", 0, "--rate", PER_S, "--duration", seconds,
                      "--path", "/1k", "--length", 1024, "--version", "1.3")
    latency = result["latency"]
    return {"answers": result["counts"]["answers"], "connections": result["counts"]["connected"],
            "p50_us": latency["full"]["p50_us"], "p99_us": latency["full"]["p99_us"], "late_p99_us": latency["late_start"]["p99_us"]}


def amid(system, seconds):
    """The same in a storm, which begins behind their handshakes; and what the storm was."""
    with contextlib.ExitStack() as stack:
        storm = stack.enter_context(_later(system))
        before, begun = system.cpu_ns()[0], time.monotonic()
        result = served(system, seconds)
        took, after = time.monotonic() - begun, system.cpu_ns()[0]
        counts = storm()
    if seconds >= load.SHORT_S and counts["full"] == 0:
        raise load.LoadError(f"{system.name}: the storm made no handshake")
    return {**result, "handshakes": counts["full"], "handshakes_per_s": counts["full"] / (seconds - BEFORE_S),
            "cores": {tier: (after[tier] - before[tier]) / 1e9 / took for tier in after}}


@contextlib.contextmanager
def _later(system):
    """Yields a function that ends the storm and returns its counts."""
    delayed = ("sh", "-c", f'sleep {BEFORE_S}; exec "$@"', "sh", *STRANGERS)
    running = load.Running(system.port, *STORM, "--duration", 600, prefix=delayed)
    try:
        yield lambda: running.result()["counts"]
    finally:
        running.end()


def measure(system, seconds):
    """One pair of runs: a dict of figures."""
    return {"system": system.name, "scheduling": system.scheduling, "links": system.links, "quiet": served(system, seconds),
            "storm": amid(system, seconds)}


INTRODUCTION = f"""\
{CLIENTS} established clients ask {PER_S} times a second for 1 KiB, whatever the servers do (open loop). A latency counts from the moment at
which its request was due. In the storm, other clients begin full handshakes at a rate that no system here can make (TLS 1.3, ECDSA
P-256, open loop, at most 256 under way). RAgent and agents together, or HAProxy, have one CPU of this machine; clients and backend have the
others. There the strangers run under SCHED_IDLE, and so hardly delay the established clients and the backend; but what these leave can be
the limit of the storm.

*cores* is the CPU time of RAgent and agents (or HAProxy) in the storm per second. The target is for the p99 in the storm, divided by
the p99 of the same round without one."""


def _rows(runs, system):
    return [run for run in runs if run["system"] == system]


def _row(rows):
    def median(value):
        return statistics.median(value(run) for run in rows)
    ratios = [run["storm"]["p99_us"] / run["quiet"]["p99_us"] for run in rows]
    times = [f"{median(lambda run, k=kind, q=name: run[k][q]):.0f}" for kind in ("quiet", "storm") for name in ("p50_us", "p99_us")]
    name = rows[0]["system"]
    return (f"| {name} | {rows[0]['scheduling']} | {rows[0]['links']} | {median(lambda r: r['storm']['handshakes_per_s']):.0f} | "
            f"{median(lambda r: sum(r['storm']['cores'].values())):.2f} | {' | '.join(times)} | "
            f"{columns(ratios, TARGET if name in OURS else None)} |")


def markdown(report):
    names = list(dict.fromkeys(run["system"] for run in report["runs"]))
    lines = ["# Established clients in a storm of handshakes", "", INTRODUCTION, "", *machine_lines(report["machine"], "hitch"),
             f"- rounds: {report['rounds']}, in turns; medians, and for the ratio an interval for it (95 %)",
             "- agents: 2, with one worker each; RAgent: one worker; backend: nginx", ""]
    lines += ["| system | scheduling | links | handshakes/s | cores | quiet p50 us | p99 us | storm p50 us | p99 us | "
              "storm / quiet p99 | interval | target | |",
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_row(_rows(report["runs"], name)) for name in names)]) + "\n"


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    facts, runs = machine.facts(ROOT), []
    seconds = QUICK_SECONDS if options.quick else SECONDS
    with systems(pathlib.Path(options.folder)) as found, apart(found):
        options.course.plan(options.rounds * len(found))
        for number in range(options.rounds):
            for at in range(len(found)):
                system = found[(at + number) % len(found)]
                runs.append({"round": number, **measure(system, seconds)})
                quiet, storm = (runs[-1][kind]["p99_us"] for kind in ("quiet", "storm"))
                options.course.done(f"{system.name}: p99 {quiet:.0f} us, in the storm {storm:.0f} us", runs=runs)
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "runs": runs}
    save(options, report, markdown)
