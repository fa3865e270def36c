"""doc/trust.md says what RAgent knows and may order. A new field of a message that RAgent reads needs a row of that table here, so that
nobody adds one without a look at the table. A new order needs a row of the table of orders."""

import re

from test_rules import ROOT

TABLE = (ROOT / "doc/trust.md").read_text().split("## A curious RAgent")[1].split("\n## ")[0]
ROWS = set(re.findall(r"^\| (of [^|]+) \|", TABLE, re.MULTILINE))

CONNECTION, HANDSHAKE, ANSWERS, AGENTS, SESSIONS = (
    "of a connection", "of a handshake", "of requests and answers", "of agents", "of sessions, if an operator lists them")

# Position, Handshake and Session are parts of the others.
FIELDS = {
    "Position": {CONNECTION: "client_records offset read_generation read_sequence server_records write_generation write_sequence"},
    "Handshake": {HANDSHAKE: "protocol_version cipher_suite resumed server_name alpn session_id family_id ja4"},
    "LinkLive": {CONNECTION: "sealed_copy position backend read_closed write_closed", HANDSHAKE: "handshake", ANSWERS: "at_checkpoint"},
    "LinkAdopted": {CONNECTION: "epoch source"},
    "LinkRefused": {CONNECTION: "reason detail order"},
    "LinkCopy": {CONNECTION: "read_generation write_generation sealed_copy"},
    "LinkDownload": {CONNECTION: "sealed"},
    "LinkResponse": {AGENTS: "token error counters level configured counter name value help gauge confirmed unconfirmed bytes log_level "
                             "certificate file host issuer not_after_s",
                     HANDSHAKE: "cause stream text",
                     SESSIONS: "revoked session_count sessions counted session next"},
    "Session": {SESSIONS: "session_id family_id server_name alpn client_address listener origin protocol_version cipher_suite age_s "
                          "family_age_s expires_s hits client_certificate"},
    "LinkLoad": {AGENTS: "connections handshakes busy_permille handshake_us sessions ready version wall_ms "
                         "cut_off failing_backends"},
}


def messages_of(proto):
    """The names of the fields of each message, those of messages inside it included."""
    return {name: set(re.findall(r"^\s+(?:repeated )?[\w.]+ (\w+) = \d+;", body, re.MULTILINE))
            for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", proto, re.MULTILINE | re.DOTALL)}


def read_by_ragent():
    """The messages that RAgent's sources unpack, those of its table of frames included."""
    text = "".join(path.read_text() for path in sorted((ROOT / "ragent").rglob("*.c")))
    read = re.findall(r"\bcssl__(link_\w+)__unpack\(NULL, f->|&cssl__(link_\w+)__descriptor \}", text)
    return {(called or in_table).title().replace("_", "") for called, in_table in read}


def test_each_field_that_agents_tell_has_a_row_in_the_table():
    messages = messages_of((ROOT / "proto/link.proto").read_text())
    assert read_by_ragent() | {"Position", "Handshake", "Session"} == set(FIELDS)
    for message, rows in FIELDS.items():
        assert set(rows) <= ROWS
        assert messages[message] == set(" ".join(rows.values()).split()), message


def test_a_new_field_is_noticed():
    planted = "message LinkLoad {\n  uint64 connections = 1;\n  string path_of_the_last_request = 9;\n}\n"
    assert messages_of(planted) == {"LinkLoad": {"connections", "path_of_the_last_request"}}


def orders_of(proto):
    """What a LinkRequest may be."""
    message = proto.split("message LinkRequest {")[1].split("oneof what {")[1].split("}")[0]
    return set(re.findall(r"^\s+\w+ (\w+) = \d+;", message, re.MULTILINE))


def rows_of_orders(document):
    section = document.split("### What RAgent may order")[1].split("\n### ")[0]
    first_cells = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", " ".join(first_cells)))


def test_each_order_of_ragent_has_a_row():
    assert rows_of_orders((ROOT / "doc/trust.md").read_text()) == orders_of((ROOT / "proto/link.proto").read_text())


def test_a_new_order_is_noticed():
    planted = "message LinkRequest {\n  uint64 token = 1;\n  oneof what {\n    Reload reload = 5;\n    Stop stop = 9;\n  }\n}\n"
    assert orders_of(planted) == {"reload", "stop"}
