"""The output of an experiment: a page, its figures, and every run as JSON."""

import json
import pathlib
import sys


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def machine_lines(facts, *without):
    """Lines of a page: the machine and the programs."""
    return [f"- {key}: {value}" for key, value in facts.items() if key not in without]


# A line of a page on which no RAgent and no agents run.
TERMS_OF_GATEWAYS = "- scheduling: the kernel's default, for all processes; no RAgent and no agents, so no links"


def terms_line(links):
    """A line of a page: the terms of a cluster with these links and the default scheduling policy of its processes, beside others that
    have the kernel's."""
    return (f"- links between RAgent and agents: {links}; RAgent and agents ask for SCHED_BATCH, the others have the default "
            "scheduling")


def marked(report, page):
    """The page; behind its title it says what a quick run is."""
    if not report["quick"]:
        return page
    title, rest = page.split("\n", 1)
    rounds = f"{report['rounds']} round{'s' * (report['rounds'] > 1)}"
    return f"{title}\n\n**A quick run of {rounds} with tiny counts: the figures mean nothing.**\n{rest}"


def _json(report):
    """One line for each row of a list, because results are kept with the sources and compared as differences."""
    def value(x):
        return "[\n" + ",\n".join(json.dumps(row) for row in x) + "\n]" if isinstance(x, list) else json.dumps(x)
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {value(x)}" for key, x in report.items()) + "\n}\n"


def _part(options):
    return pathlib.Path(options.out) / f"{options.name}.part.json"


def keep(options, measured):
    """What is measured so far lies beside the page until that is written: a run that dies leaves it. `measured`: {name: rows}."""
    _part(options).parent.mkdir(parents=True, exist_ok=True)
    _part(options).write_text(_json(measured))


def save(options, report, page, figures=lambda report: {}):
    """`page`: f(report) of its Markdown; `figures`: f(report) of {file name: SVG text}, which the page shows. Both are made from what the
    file has, when it is there: they need no second run. This also prints the page."""
    out, text = pathlib.Path(options.out), _json(report)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{options.name}.json").write_text(text)
    _part(options).unlink(missing_ok=True)
    report = json.loads(text)
    page, pictures = marked(report, page(report)), figures(report)
    for name, svg in pictures.items():
        (out / name).write_text(svg)
    (out / f"{options.name}.md").write_text(page)
    print(page)
    say(f"written: {out / options.name}.md, {options.name}.json" + "".join(f", {name}" for name in pictures))
