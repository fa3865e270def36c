"""Writes the table of the papers in bench/results/README.md anew: python3 -m bench.experiments.papers. Each experiment whose results go
there does so, too."""

import pathlib

from bench.experiments import papers_mail, papers_tls
from bench.experiments.papers_table import RESULTS, with_table

ROWS = [*papers_tls.ROWS, *papers_mail.ROWS]


def write(folder=RESULTS):
    page = pathlib.Path(folder) / "README.md"
    page.write_text(with_table(page.read_text(), ROWS, pathlib.Path(folder)))


if __name__ == "__main__":
    write()
