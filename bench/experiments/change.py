"""./cssl bench change: the cost of a change: compares this checkout with another one of this project. In each round both do
every work, in turning order, each with its own front door, programs and nginx as backend. The result is the median of the
ratios of such pairs. If the ratios of one row lie on both sides of the limit, the row is undecided and needs more rounds."""

import contextlib
import pathlib
import statistics

from bench.experiments import machine
from bench.experiments.cluster import ROOT, Cluster
from bench.experiments.compare import measure
from bench.experiments.compare_memory import Crowd, measure_memory
from bench.experiments.compare_systems import of_cluster
from bench.experiments.compare_works import WORKS
from bench.experiments.peers import Place
from bench.experiments.report import machine_lines, save, say

LIMIT = 1.02
HERE, BEFORE = "here", "before"


class ChangeError(Exception):
    pass


def _of_one(root, folder, place, backend, backend_pids, stack):
    """{row: System}, with the programs of a checkout. The links are the front door's, as each checkout has them."""
    clusters = {link: stack.enter_context(Cluster(folder / link, (place.host, backend), link, root=root)) for link in ("trusted", "sealed")}
    return {f"CSSL-{mode} {link}": of_cluster(f"CSSL-{mode} {link}", c, c.ports[mode.lower()], backend_pids)
            for mode in ("SF", "SL") for link, c in clusters.items()}


@contextlib.contextmanager
def both(folder, before):
    """{HERE or BEFORE: {row: System}}."""
    with Place(folder / "peers") as place, contextlib.ExitStack() as stack:
        backend, backend_pids = place.nginx("backend")
        yield {side: _of_one(root, folder / side, place, backend, backend_pids, stack)
               for side, root in ((HERE, ROOT), (BEFORE, before))}


def _works():
    for work in WORKS.values():
        for row in work.change:
            yield work, row


def measure_rounds(systems, rounds, is_quick):
    runs = []
    for number in range(rounds):
        for work, row in _works():
            for side in ((HERE, BEFORE), (BEFORE, HERE))[number % 2]:
                runs.append({"round": number, "side": side, **measure(work, systems[side][row], is_quick)})
        say(f"round {number + 1} of {rounds}")
    return runs


def _memory(folder, before, crowd):
    """Private bytes of both tiers for each idle connection."""
    with Place(folder / "memory") as place:
        backend = place.host, place.nginx("backend")[0]
        for side, root in ((HERE, ROOT), (BEFORE, before)):
            with Cluster(folder / f"idle-{side}", backend, listeners={"one": {"rest_after": "off"}}, root=root) as cluster:
                system = of_cluster("CSSL-SF idle", cluster, cluster.ports["one"], [])
                yield {"side": side, **measure_memory(system, crowd, cluster)}


def ratios(runs, work, row):
    """The ratio of each round's pair."""
    us = {side: [r["total_us"] for r in sorted(runs, key=lambda r: r["round"]) if (r["work"], r["system"], r["side"]) == (work, row, side)]
          for side in (HERE, BEFORE)}
    return us, [a / b for a, b in zip(us[HERE], us[BEFORE])]


def verdict(pairs, limit=LIMIT):
    if statistics.median(pairs) <= limit:
        return "within" if max(pairs) <= limit else "within, not every pair"
    return "above" if min(pairs) > limit else "undecided"


def memory_lines(rows):
    here, before = rows[HERE], rows[BEFORE]
    yield (f"Private memory of both tiers with {2 * here['connections']:,} idle connections, after the same handshakes, sessions included: "
           f"{here['all_bytes'] / 1e6:.1f} MB here, {before['all_bytes'] / 1e6:.1f} MB before "
           f"({here['all_bytes'] / before['all_bytes']:.3f}).")
    yield (f"The last {here['connections']:,} of them took {here['bytes']:.0f} bytes each here, {before['bytes']:.0f} before "
           f"({here['bytes'] / before['bytes']:.3f}). Memory that earlier handshakes had left counts as free there.")


def page(report):
    lines = ["# What the change costs", "", *machine_lines(report["machine"]), f"- before: {report['before']}",
             f"- rounds: {report['rounds']}", "", f"CPU of both tiers and the backend for a unit of work; the limit is {LIMIT:.2f}.", "",
             "| work | system | here us | before us | ratio, median | least-most | |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for work, row in _works():
        us, pairs = ratios(report["runs"], work.name, row)
        lines.append(f"| {work.name} | {row} | {statistics.median(us[HERE]):.1f} | {statistics.median(us[BEFORE]):.1f} | "
                     f"**{statistics.median(pairs):.3f}** | {min(pairs):.3f}-{max(pairs):.3f} | {verdict(pairs)} |")
    lines += ["", *memory_lines({row["side"]: row for row in report["memory"]}), ""]
    return "\n".join(lines)


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, before (a checkout that is built)."""
    before, folder = pathlib.Path(options.before).resolve(), pathlib.Path(options.folder)
    if not (before / "build" / "ragent" / "ragent").exists():
        raise ChangeError(f"{before} is not a checkout that was built: run ./cssl build in it")
    facts, commit = machine.facts(ROOT), machine.facts(before)["cssl"]
    with both(folder, before) as systems:
        runs = measure_rounds(systems, options.rounds, options.quick)
    say("memory")
    memory = list(_memory(folder, before, Crowd(60, 1) if options.quick else Crowd(4000, 7)))
    report = {"machine": facts, "before": commit, "rounds": options.rounds, "quick": options.quick, "runs": runs, "memory": memory}
    save(options, report, page(report))
