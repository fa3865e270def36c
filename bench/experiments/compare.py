"""./cssl bench compare: the cost of a unit of work on the server side, for CSSL and other servers. In each round every system
does its works one after the other, in turning order. The result for two systems is the median of the ratios of such pairs,
because an absolute time means nothing on a shared machine. All use the same version, suite and group. A run with other
values, or without the resumptions that it should have, raises an error."""

import pathlib

from bench.experiments import load, machine
from bench.experiments.cluster import ROOT
from bench.experiments.compare_memory import Crowd, measure_memories
from bench.experiments.compare_page import figures, markdown
from bench.experiments.compare_systems import systems
from bench.experiments.compare_works import WORKS
from bench.experiments.report import save


MEMORY_STEPS = 5, 5  # so many, each as long as so many of the others


def _check(work, system, result):
    """Check that the run was the one that should be measured."""
    full, resumed = result["counts"]["full"], result["counts"]["resumed"]
    if list(result["suites"]) != [work.tls.text()]:
        raise load.LoadError(f"{work.name}, {system.name}: {result['suites']} instead of {work.tls.text()}")
    if resumed < work.resumed * (full + resumed):
        raise load.LoadError(f"{work.name}, {system.name}: only {resumed} of {full + resumed} handshakes were resumptions")


def measure(work, system, is_quick):
    """One run: a dict of figures."""
    before = system.cpu_ns()
    result = load.run(system.port, *work.options, *work.tls.options(), *(work.quick if is_quick else ()))
    after = system.cpu_ns()
    _check(work, system, result)
    units = work.units(result)
    tiers = {name: (ns - before[0][name]) / units / 1000 for name, ns in after[0].items()}
    tiers_us, backend_us = sum(tiers.values()), (after[1] - before[1]) / units / 1000
    full = result["latency"]["full"]
    generators_s = sum(g["cpu"] for g in result["generators"]) * result["seconds"]
    return {"work": work.name, "system": system.name, "units": units, "tiers": tiers, "tiers_us": tiers_us,
            "backend_us": backend_us, "total_us": tiers_us + backend_us,
            "full": result["counts"]["full"], "resumed": result["counts"]["resumed"],
            "per_s": units / result["seconds"], "p50_us": full["p50_us"], "p99_us": full["p99_us"],
            "generator_us": generators_s * 1e6 / units, "generators": result["generators"]}


def measure_rounds(all_systems, rounds, is_quick, course):
    runs = []
    for number in range(rounds):
        for work in WORKS.values():
            first = number % len(work.systems)
            for name in work.systems[first:] + work.systems[:first]:
                runs.append({"round": number, **measure(work, all_systems[name], is_quick)})
            course.done(work.name, runs=runs)
    return runs


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    facts = machine.facts(ROOT)
    options.course.plan(options.rounds * len(WORKS), MEMORY_STEPS)
    folder = pathlib.Path(options.folder)
    with systems(folder) as all_systems:
        shown = [{"system": s.name, "tiers": list(s.tiers), "links": s.links, "scheduling": s.scheduling} for s in all_systems.values()]
        runs = measure_rounds(all_systems, options.rounds, options.quick, options.course)
    memory = []
    for row in measure_memories(folder, Crowd(60, 1) if options.quick else Crowd(4000, 7)):
        memory.append(row)
        options.course.done(f"memory of {row['system']}", memory=memory)
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "systems": shown, "runs": runs, "memory": memory}
    save(options, report, markdown, figures)
