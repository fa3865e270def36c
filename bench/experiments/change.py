"""./cssl bench change: the cost of a change: compares this checkout with another one of this project, or with itself without a
keeper of RAgent, which has the price of outliving RAgent's death. In each round both do every work, in turning order, each with its own
front door, programs and nginx as backend. Where a process has its memory decides a per cent, too: so all programs are started anew after
a few rounds. The result is the median of the ratios of such pairs. If the ratios of one row lie on both sides of the limit, the row is
undecided and needs more rounds."""

import contextlib
import dataclasses
import pathlib
import statistics

from bench.experiments import machine
from bench.experiments.cluster import ROOT, Cluster
from bench.experiments.compare import measure
from bench.experiments.compare_memory import Crowd, measure_memory
from bench.experiments.compare_systems import of_cluster
from bench.experiments.compare_works import WORKS
from bench.experiments.peers import Place
from bench.experiments.report import machine_lines, save, terms_line

LIMIT = 1.02
ANEW = 3  # the programs serve so many rounds
HERE, BEFORE = "here", "before"


class ChangeError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Side:
    root: pathlib.Path  # the checkout
    options: tuple = ()  # of ./cssl up, more than the other side has


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Of this checkout, and what it is held against."""
    before: Side
    title: str
    word: str  # for that side, on the page

    def sides(self):
        return {HERE: Side(ROOT), BEFORE: self.before}


def _comparison(options):
    if options.no_keeper:
        return Comparison(Side(ROOT, ("--no-keeper",)), "What it costs that connections outlive RAgent's death", "without a keeper")
    root = pathlib.Path(options.before).resolve()
    if not (root / "build" / "ragent" / "ragent").exists():
        raise ChangeError(f"{root} is not a checkout that was built: run ./cssl build in it")
    return Comparison(Side(root), "What the change costs", "before")


def _of_one(side, folder, place, backend, backend_pids, stack):
    """{row: System}, with the programs of a checkout. The links are the front door's, as each checkout has them."""
    clusters = {link: stack.enter_context(Cluster(folder / link, (place.host, backend), link, root=side.root, options=side.options))
                for link in ("trusted", "sealed")}
    return {f"CSSL-{mode} {link}": of_cluster(f"CSSL-{mode} {link}", c, c.ports[mode.lower()], backend_pids)
            for mode in ("SF", "SL") for link, c in clusters.items()}


@contextlib.contextmanager
def both(folder, sides):
    """{HERE or BEFORE: {row: System}}."""
    with Place(folder / "peers") as place, contextlib.ExitStack() as stack:
        backend, backend_pids = place.nginx("backend")
        yield {name: _of_one(side, folder / name, place, backend, backend_pids, stack) for name, side in sides.items()}


def _works():
    for work in WORKS.values():
        for row in work.change:
            yield work, row


def _round(systems, number, is_quick):
    for work, row in _works():
        for side in ((HERE, BEFORE), (BEFORE, HERE))[number % 2]:
            yield {"round": number, "side": side, **measure(work, systems[side][row], is_quick)}


def measure_rounds(folder, sides, rounds, is_quick, course):
    runs = []
    for first in range(0, rounds, ANEW):
        sides = dict(reversed(sides.items()))  # neither side is always the one that starts first
        with both(folder / str(first), sides) as systems:
            for number in range(first, min(first + ANEW, rounds)):
                runs += _round(systems, number, is_quick)
                course.done("both sides", runs=runs)
    return runs


def _memory(folder, sides, crowd):
    """Private bytes of both tiers for each idle connection."""
    with Place(folder / "memory") as place:
        backend = place.host, place.nginx("backend")[0]
        for name, side in sides.items():
            with Cluster(folder / f"idle-{name}", backend, listeners={"one": {"rest_after": "off"}}, root=side.root,
                         options=side.options) as cluster:
                system = of_cluster("CSSL-SF idle", cluster, cluster.ports["one"], [])
                yield {"side": name, **measure_memory(system, crowd, cluster)}


def ratios(runs, work, row):
    """The ratio of each round's pair."""
    us = {side: [r["total_us"] for r in sorted(runs, key=lambda r: r["round"]) if (r["work"], r["system"], r["side"]) == (work, row, side)]
          for side in (HERE, BEFORE)}
    return us, [a / b for a, b in zip(us[HERE], us[BEFORE])]


def verdict(pairs, limit=LIMIT):
    if statistics.median(pairs) <= limit:
        return "within" if max(pairs) <= limit else "within, not every pair"
    return "above" if min(pairs) > limit else "undecided"


def memory_lines(rows, word):
    here, before = rows[HERE], rows[BEFORE]
    yield (f"Private memory of both tiers with {2 * here['connections']:,} idle connections, after the same handshakes, sessions included: "
           f"{here['all_bytes'] / 1e6:.1f} MB here, {before['all_bytes'] / 1e6:.1f} MB {word} "
           f"({here['all_bytes'] / before['all_bytes']:.3f}).")
    yield (f"The last {here['connections']:,} of them took {here['bytes']:.0f} bytes each here, {before['bytes']:.0f} {word} "
           f"({here['bytes'] / before['bytes']:.3f}). Memory that earlier handshakes had left counts as free there.")


def page(report, comparison):
    word = comparison.word
    lines = [f"# {comparison.title}", "", *machine_lines(report["machine"]), f"- {word}: {report['before']}",
             terms_line("shared memory, as each row says trusted or sealed"),
             f"- rounds: {report['rounds']}; all programs are started anew after {ANEW}", "",
             f"CPU of both tiers and the backend for a unit of work; the limit is {LIMIT:.2f}.", "",
             f"| work | system | here us | {word} us | ratio, median | least-most | |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for work, row in _works():
        us, pairs = ratios(report["runs"], work.name, row)
        lines.append(f"| {work.name} | {row} | {statistics.median(us[HERE]):.1f} | {statistics.median(us[BEFORE]):.1f} | "
                     f"**{statistics.median(pairs):.3f}** | {min(pairs):.3f}-{max(pairs):.3f} | {verdict(pairs)} |")
    lines += ["", *memory_lines({row["side"]: row for row in report["memory"]}, word), ""]
    return "\n".join(lines)


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course; before (a checkout that is built), or no_keeper."""
    comparison, folder = _comparison(options), pathlib.Path(options.folder)
    facts, commit = machine.facts(ROOT), machine.facts(comparison.before.root)["cssl"]
    options.course.plan(options.rounds, len(comparison.sides()))
    runs = measure_rounds(folder, comparison.sides(), options.rounds, options.quick, options.course)
    memory = []
    for row in _memory(folder, comparison.sides(), Crowd(60, 1) if options.quick else Crowd(4000, 7)):
        memory.append(row)
        options.course.done(f"memory, {row['side']}", memory=memory)
    report = {"machine": facts, "before": commit, "rounds": options.rounds, "quick": options.quick, "runs": runs, "memory": memory}
    save(options, report, lambda found: page(found, comparison))
