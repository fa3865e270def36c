"""doc/operating.md, "When a client complains": an operator finds each field and each reason of the line on an ended connection there.
README's sample of a log line is one that a source writes."""

import re

import pytest

from test_rules import ROOT

PAGE = (ROOT / "doc/operating.md").read_text().split("## When a client complains")[1].split("\n## ")[0]
LOG_CALL = re.compile(r'\blog_(?:event|paced|event_paced)\(([^";]*)"([^"]+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')


def first_cells(page):
    """What stands in `code` in the first cell of each row of its tables."""
    return {word for cell in re.findall(r"^\| ([^|]*) \|", page, re.MULTILINE) for word in re.findall(r"`([^`]+)`", cell)}


def reasons_of(header):
    """Its rows: name -> text."""
    return dict(re.findall(r'\bX\((\w+), "([^"]+)"\)', header))


def lines_of(source):
    """The lines that a source logs: (event, level or none, keys)."""
    return [(event, " ".join(re.findall(r"\bLOG_\w+", before)), re.findall(r"(\w+)=", fields)) for before, event, fields in LOG_CALL.findall(source)]


def all_lines():
    return [line for top in ("ragent", "sslagent") for path in sorted((ROOT / top).rglob("*.c")) for line in lines_of(path.read_text())]


def test_each_field_of_an_ended_connection_is_explained():
    keys = [keys for event, level, keys in lines_of((ROOT / "ragent/connection/connection_end.c").read_text()) if event == "ended"]
    assert len(keys) == 1 and "reason" in keys[0] and len(keys[0]) > 15
    assert set(keys[0]) <= first_cells(PAGE)


def test_each_reason_is_explained():
    reasons = reasons_of((ROOT / "proto/end_reason.h").read_text())
    assert len(reasons) > 35
    assert set(reasons.values()) <= first_cells(PAGE)


def test_reasons_that_nobody_gives_are_called_so():
    sources = "".join(path.read_text() for top in ("proto", "ragent", "sslagent") for path in sorted((ROOT / top).rglob("*.c")))
    unused = {text for name, text in reasons_of((ROOT / "proto/end_reason.h").read_text()).items() if not re.search(rf"\bEND_{name}\b", sources)}
    rows = re.findall(r"^\| (.*) \| not in use:", PAGE, re.MULTILINE)
    assert unused == set(re.findall(r"`([^`]+)`", " ".join(rows)))


def test_the_lines_that_it_names_are_logged():
    events = {event for event, level, keys in all_lines()} | {"ragent hangs", "ragent died", "running again"}
    for event in ("client told", "takes over", "replay read", "owner lost", "adopt refused", "request head late", "link lost", "agent leaving"):
        assert event in PAGE and event in events, event


def sample_of(readme):
    """Its event and keys."""
    line = re.search(r"^\S+Z (\w+) \w+/\w+ connection \S+: ([a-z ]+?) (\w+=.*)$", readme, re.MULTILINE)
    return line.group(2), line.group(1), re.findall(r"(\w+)=", line.group(3))


def test_readmes_sample_is_a_line_of_a_source():
    event, level, keys = sample_of((ROOT / "README.md").read_text())
    assert (event, f"LOG_{level.upper()}", keys) in all_lines()


@pytest.mark.parametrize("planted", ["info ragent/r1 connection 4f2a91...: handed off from=a1 to=a2 epoch=2",
                                     "info ragent/r1 connection 4f2a91...: adopted from=a1 to=a2 epoch=3 cause=drain"])
def test_a_planted_sample_that_nobody_writes_is_seen(planted):
    event, level, keys = sample_of(f"2026-01-02T03:04:05.678Z {planted}\n")
    assert (event, f"LOG_{level.upper()}", keys) not in all_lines()


def test_a_planted_reason_is_seen():
    assert not set(reasons_of('	X(EATEN, "eaten by a grue") /* in the dark */ \\\n').values()) <= first_cells(PAGE)
