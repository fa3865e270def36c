"""Every new member of a struct has to go to another process, too: it is in the table that writes it, or in a list of exceptions."""

import pathlib
import re

import pytest

RAGENT = pathlib.Path(__file__).resolve().parents[2] / "ragent"

CONNECTION = ["connection/revival/connection_fields.c", "connection/revival/connection_fields.h"]

# The struct, where it is, where its members are said to go (with what in front), and which are made anew.
STRUCTS = [
    ("connection", "connection/connection_body.h", CONNECTION, "", set()),
    ("connection_now", "connection/connection_body.h", CONNECTION, "", set()),
    ("busy_part", "connection/connection_body.h", CONNECTION, "", set()),
    ("agreed", "connection/ownership/agreed.h", CONNECTION, "", {"names"}),
    ("preamble", "connection/connection_preamble.h", CONNECTION[:1], "", set()),
    ("preamble_now", "connection/connection_preamble.h", CONNECTION[:1], "", set()),
    ("stream_account", "connection/connection_body.h", CONNECTION[:1], "account.", set()),
    ("position", "connection/ownership/position.h", CONNECTION[:1], "position.", set()),
    ("position_mark", "connection/ownership/position.h", CONNECTION[:1], "position.checkpoint.", set()),
    ("agent_word", "dispatch/agents.h", ["handover/handover_worker.c"], "", set()),
    ("drain_word", "dispatch/drain.h", ["handover/handover_worker.c"], "drain.", set()),
    ("kept", "connection/bytes/kept.h", CONNECTION, "kept.", {"data", "cap", "start", "consumed", "sent", "end"}),
    ("copies", "connection/ownership/copies.h", CONNECTION[1:], "", set()),
    ("endpoints", "../net/socket/endpoints.h", CONNECTION, "", set()),
    ("exposure", "connection/ownership/exposure.h", CONNECTION[:1], "exposure.", set()),
    ("ragent_worker", "worker/ragent_worker.h", ["handover/handover_worker.c"], "", {"home", "listening_count"}),
    ("connection_home", "connection/connection_home.h", ["handover/handover_worker.c"], "", set()),
    ("link", "link/link_internal.h", ["link/link_handover.c"], "", set()),
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
