"""The build that the scenarios run, and how much smaller they are under sanitizers."""

import json
import math
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CSSL_BUILD_DIR", ROOT / "build-test")).resolve()


def _option(name):
    options = json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text())
    return next(o["value"] for o in options if o["name"] == name)


SANITIZED = _option("b_sanitize") != "none"
TEST_POINTS = _option("test_points")
FULL = os.environ.get("CSSL_FULL") == "1"
SHRINK = 10 if SANITIZED else 1
SLOWER = 4 if SANITIZED else 1


def scaled(count, least=1):
    """A size or number of repetitions; under sanitizers a tenth of it."""
    return max(least, count // SHRINK)


def sized(ci, full):
    """A size or number of repetitions: the first in normal runs, the second with ./cssl test --full."""
    return full if FULL else scaled(ci)


def _crowd():
    """How many times more processes wanted to run in the last minute than this machine can run in time."""
    return min(4, max(1, math.ceil(os.getloadavg()[0] / (2 * os.cpu_count()))))


PATIENCE_MAX = 8  # times as long as on a machine at rest
patience_used = 1  # the most since the test began


def patience(seconds):
    """A time limit that is longer under sanitizers and on a machine with much other work, but always bounded. The report of a
    test tells when other work made it longer (tests/scenario/conftest.py)."""
    global patience_used  # pylint: disable=global-statement
    factor = min(PATIENCE_MAX, SLOWER * _crowd())
    patience_used = max(patience_used, factor)
    return seconds * factor


def binary(path):
    """A program of the build: "sslagent/sslagent"."""
    return str(BUILD / path)


# Where a whole run has clients and backends without sanitizers for scenarios that are sanitized
PLAIN_TOOLS = pathlib.Path(os.environ.get("CSSL_PLAIN_TOOLS") or BUILD).resolve()
plain_tools = True  # not in the scenarios marked `sanitized_tools` (tests/scenario/conftest.py)


def tool(path):
    """A program that only speaks to the product: "bench/cssl-bench"."""
    plain = PLAIN_TOOLS / path
    return str(plain if plain_tools and plain.exists() else BUILD / path)
