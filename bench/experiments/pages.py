"""Writes pages of bench/results and their pictures anew from the files of their runs: python3 -m bench.experiments.pages NAME..."""

import importlib
import inspect
import json
import sys

from bench.experiments.papers_table import RESULTS
from bench.experiments.report import marked


def made_of(name):
    """(page, {name of a picture: its text}), of the file of an experiment. The page of change needs its options, too."""
    module = importlib.import_module(f"bench.experiments.{name.replace('-', '_')}")
    report = json.loads((RESULTS / f"{name}.json").read_text())

    def call(function):
        return function(*(report, name)[:len(inspect.signature(function).parameters)])
    return marked(report, call(module.markdown)), call(module.figures) if hasattr(module, "figures") else {}


def main(names):
    for name in names:
        page, pictures = made_of(name)
        for file, text in {f"{name}.md": page, **pictures}.items():
            (RESULTS / file).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
