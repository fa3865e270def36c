"""Services are values: code outside a service's rows and folder never asks which service a connection has."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

ROWS = ["conf/service_traits.h", "conf/service_traits.c", "sslagent/service/service.c", "sslagent/service/service.h"]


def _names():
    return re.findall(r"^\s*X\((\w+), \"", (ROOT / "conf/service_traits.h").read_text(), re.MULTILINE)


def _named_in(text, name):
    """Lines of a source that use the name of a service as a value."""
    return [line.strip() for line in text.splitlines() if re.search(rf"\bCONF_{name}\b", line)]


def _compared_in(script, name):
    """Lines of a script that compare something with the name of a service."""
    quoted = rf"[\"'`]{name.lower()}[\"'`]"
    return [line.strip() for line in script.splitlines() if re.search(rf"[!=]==?\s*{quoted}|{quoted}\s*[!=]==?|\bcase {quoted}", line)]


def test_there_are_services():
    assert {"TCP", "HTTP"} <= set(_names())


@pytest.mark.parametrize("name", _names())
def test_a_services_name_is_said_in_its_own_place_only(name):
    own = f"sslagent/service/{name.lower()}"
    found = []
    for path in sorted(path for top in ("conf", "ragent", "sslagent") for path in ROOT.glob(f"{top}/**/*.[ch]")):
        where = str(path.relative_to(ROOT))
        if where not in ROWS and not where.startswith((f"{own}/", f"{own}.c")):
            found += [f"{where}: {line}" for line in _named_in(path.read_text(), name)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("name", _names())
def test_the_dashboard_asks_for_no_service_by_its_name(name):
    found = [f"{path.name}: {line}" for path in ROOT.glob("ragent/dashboard/*.js") for line in _compared_in(path.read_text(), name)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("planted", ['(l) => l.service === "smtp"', "if ('smtp' == l.service)", 'case "smtp":'])
def test_a_planted_comparison_in_the_dashboard_is_seen(planted):
    assert _compared_in(planted, "SMTP")


def test_a_comparison_would_be_seen():
    assert _named_in("	if (c->service.kind != CONF_TCP)\n", "TCP") == ["if (c->service.kind != CONF_TCP)"]
    assert not _named_in("	if (c->service.kind != CONF_TCP6)\n", "TCP")
