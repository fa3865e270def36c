"""A member that a struct gets has to go on in another process, too: each is in the table that says how, or named beside it."""

import pathlib
import re

import pytest

RAGENT = pathlib.Path(__file__).resolve().parents[2] / "ragent"

# The struct, where it is, where its members are said to go (with what in front), and which are made anew.
STRUCTS = [
    ("connection", "connection_internal.h", ["connection_fields.c", "connection_fields.h"], "", set()),
    ("agreed", "connection_internal.h", ["connection_fields.c", "connection_fields.h"], "", {"names"}),
    ("stream_account", "connection_internal.h", ["connection_fields.c"], "account.", set()),
    ("position", "position.h", ["connection_fields.c"], "position.", set()),
    ("position_mark", "position.h", ["connection_fields.c"], "position.checkpoint.", set()),
    ("agent_word", "agents.h", ["handover_worker.c"], "", set()),
    ("drain_word", "drain.h", ["handover_worker.c"], "drain.", set()),
    ("kept", "kept.h", ["connection_fields.c", "connection_fields.h"], "kept.", {"data", "cap", "start", "consumed", "sent", "end"}),
    ("copies", "copies.h", ["connection_fields.h"], "", set()),
    ("endpoints", "endpoints.h", ["connection_fields.c", "connection_fields.h"], "", set()),
    ("exposure", "exposure.h", ["connection_fields.c"], "exposure.", set()),
    ("ragent_worker", "ragent_worker.h", ["handover_worker.c"], "", {"listening_count"}),
    ("link", "link_internal.h", ["link_handover.c"], "", set()),
]


def _members(name, text):
    body = re.search(rf"^struct {name} \{{\n(.*?)^\}};", text, re.S | re.M).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    found = []
    for declaration in body.split(";"):
        declaration = re.sub(r"\[[^]]*\]", "", declaration).strip()
        if not declaration:
            continue
        if function := re.search(r"\(\*(\w+)\)", declaration):
            found.append(function.group(1))
            continue
        first, *others = declaration.split(",")
        found += [re.search(r"(\w+)\s*$", part).group(1) for part in (first, *others)]
    return found


@pytest.mark.parametrize("name,header,tables,prefix,anew", STRUCTS, ids=[row[0] for row in STRUCTS])
def test_every_member_goes_on_or_is_said_to_be_made_anew(name, header, tables, prefix, anew):
    text = "".join((RAGENT / table).read_text() for table in tables)
    members = _members(name, (RAGENT / header).read_text())
    assert members
    forgotten = [m for m in members if m not in anew and not re.search(rf"\b{re.escape(prefix + m)}\b", text)]
    assert not forgotten, (f"struct {name}: {', '.join(forgotten)}: give each a row (or a tag) in ragent/{tables[0]}, or say there "
                           "why it is made anew; a RAgent that is replaced loses it otherwise")
