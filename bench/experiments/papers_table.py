"""The table of what the papers measured, and what we did, out of the files of our own runs."""

import dataclasses
import json
import typing

from bench.experiments.cluster import ROOT

RESULTS = ROOT / "bench" / "results"
BEGIN, END = "## What the papers measured\n", "\n## "

TEXT = """\
One row for each figure, table and value of the papers whose experiments are repeated here. *Ours* is taken from the JSON of the page by
`bench/experiments/papers.py`; medians of the rounds, where nothing else is said. *Terms*: what is not as in the paper, and why.

| paper | figure or table | the paper's value | ours | terms that differ, and why |
| --- | --- | --- | --- | --- |
"""


@dataclasses.dataclass(frozen=True)
class Row:
    paper: str
    place: str
    value: str
    experiment: str  # whose file has ours; "": there is none
    ours: typing.Callable | str  # f(that file's content); it returns nothing where the file has no such runs
    terms: str


def command(experiment):
    return "./cssl bench " + experiment.replace("-", " ")


def _ours(row, reports, folder):
    if not row.experiment:
        return row.ours
    path = folder / f"{row.experiment}.json"
    if path not in reports:
        reports[path] = json.loads(path.read_text()) if path.exists() else None
    ours = reports[path] and not reports[path].get("quick") and row.ours(reports[path])
    return f"{ours} ([page]({row.experiment}.md))" if ours else f"not measured yet on these terms: `{command(row.experiment)}`"


def table(rows, folder=RESULTS):
    reports = {}
    return TEXT + "".join(f"| {row.paper} | {row.place} | {row.value} | {_ours(row, reports, folder)} | {row.terms} |\n" for row in rows)


def with_table(text, rows, folder=RESULTS):
    """The text of README.md with this table in it."""
    before, after = text.split(BEGIN, 1)
    rest = after.find(END)
    return before + BEGIN + "\n" + table(rows, folder) + (after[rest:] if rest >= 0 else "")
