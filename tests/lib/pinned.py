"""The Python packages of tests/requirements.txt, in the venv that `./cssl test` makes."""

import site

import pytest

from tests.lib.build import ROOT

VENV = ROOT / "build-tools/python"


def pinned_program(name):
    """The first words of a command with one of their programs, or a skip with the remedy. Its first line cannot name every path."""
    path = VENV / "bin" / name
    if not path.exists():
        pytest.skip(f"needs {name} of tests/requirements.txt: `./cssl test` gets it")
    return [str(VENV / "bin/python3"), str(path)]


def pinned_import():
    """Lets the test import them; packages of the system come first."""
    pinned_program("pip")
    for folder in VENV.glob("lib/python3*/site-packages"):
        site.addsitedir(str(folder))
