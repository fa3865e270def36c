"""Each refusal is counted and, at a bounded rate, logged (doc/operating.md): for each counter of refusals, the line that goes with it."""

import re

import pytest

from test_rules import ROOT

NAMES = re.compile(r"refused|displaced|given_up|kept_ended")
ROW = re.compile(r"\bX\(\w*?,?\s*\"?(\w+)\"?,\s*MONOTONIC", re.S)

# The file that counts it, and in there: the event of a line, or the reason of a connection that ends, which is in its line.
LOGGED = {
    "sslagent": {
        "handshakes_refused_": ("connection/beginning/handshaking.c", '"handshake failed"'),  # each cause
        "handshakes_refused_limit": ("connection/beginning/handshaking.c", '"handshake refused"'),
        "handshakes_displaced": ("connection/beginning/handshaking.c", '"handshake gave way"'),
        "parks_refused": ("connection/beginning/handshaking.c", '"session not asked for"'),
        "resumptions_refused_certificate": ("connection/beginning/handshaking.c", '"session not resumed"'),
        "adopts_refused": ("connection/beginning/adopt.c", '"adopt refused"'),
        "downloads_refused": ("connection/beginning/recover.c", '"download ended"'),
        "kept_ended": ("connection/events/connection_events.c", '"connection ended to free memory"'),
        "direct_refused": ("carrier/direct_listen.c", '"direct connection refused"'),
        "preambles_refused": ("carrier/direct_preamble.c", '"preamble refused"'),
        "reattaches_refused": ("carrier/link_parked.c", '"stream does not go on"'),
        "held_given_up": ("carrier/link_stream.c", '"cannot outlive its link"'),
        "links_refused": ("carrier/link_acceptor.c", '"link refused"'),
        "link_openings_displaced": ("carrier/link_acceptor.c", '"no room for an opening of a link"'),
        "peer_links_refused": ("cluster/peers/peer.c", '"peer refused"'),
        "peer_openings_displaced": ("cluster/peers/peers.c", '"no room for an opening of a peer"'),
    },
    "ragent": {
        "kept_given_up": ("connection/connection.c", '"replay given up"'),
        "logs_given_up": ("connection/connection.c", '"cannot outlive a death"'),
        "kept_ended": ("connection/connection.c", '"connection ended to free memory"'),
        "suspects_refused": ("connection/connection_arrival.c", "END_SUSPECTED"),
        "handshakes_refused": ("connection/connection_arrival.c", "END_LIMIT_HANDSHAKES"),
        "handshakes_displaced": ("connection/connection_arrival.c", "END_LIMIT_HANDSHAKES"),
        "preambles_refused": ("connection/connection_preamble.c", "END_LIMIT_PREAMBLES"),
        "preambles_displaced": ("connection/connection_preamble.c", "END_LIMIT_PREAMBLES"),
    },
}

NO_LINE = {
    "sslagent": {
        "moves_refused": "the answer to who ordered the move has the reason",
        "mail_greetings_refused": "a receiver's refusal, in its own log",
        "mail_clients_refused": "a receiver's refusal, in its own log",
        "sessions_displaced": "other agents have these sessions now",
        "sessions_refused": "the client makes a full handshake the next time",
        "sessions_refused_revoked": "the revocation has its line",
        "live_refused": "a copy of another agent's connection; the connection goes on",
        "epochs_refused": "the line is that of the adoption: adopts_refused",
        "sequences_refused": "the line is that of the adoption: adopts_refused",
    },
    "ragent": {
        "opens_refused": "another agent is asked; the one that refused has the line",
        "adopts_refused": "the agent that refused has the line",
        "moves_refused": "the answer to who ordered the move has the reason",
    },
}

# Ends of clients at a limit: also in the log where `log: { connections: off }`.
LIMITS = ("END_LIMIT_TOTAL", "END_LIMIT_SOURCE", "END_LIMIT_HANDSHAKES", "END_LIMIT_PREAMBLES", "END_SUSPECTED")


def refusals(daemon):
    return {name for name in ROW.findall((ROOT / daemon / "counters.h").read_text()) if NAMES.search(name)}


def row_of(daemon, counter):
    """Its row of LOGGED; that of a group, which ends with "_", if it has none of its own."""
    rows = LOGGED[daemon]
    group = [name for name in rows if name.endswith("_") and counter.startswith(name)]
    return rows.get(counter) or (rows[group[0]] if group else None)


@pytest.mark.parametrize("daemon", LOGGED)
def test_each_counter_of_refusals_has_a_line_or_a_reason(daemon):
    found = refusals(daemon)
    assert len(found) >= 10
    assert [name for name in sorted(found) if not row_of(daemon, name) and name not in NO_LINE[daemon]] == []
    assert [name for name in [*LOGGED[daemon], *NO_LINE[daemon]] if not name.endswith("_") and name not in found] == []


@pytest.mark.parametrize("daemon,counter", [(daemon, counter) for daemon in LOGGED for counter in LOGGED[daemon]])
def test_the_line_is_where_the_refusal_is_counted(daemon, counter):
    place, line = LOGGED[daemon][counter]
    text = (ROOT / daemon / place).read_text()
    assert (f"COUNT_{counter.upper()}" if daemon == "sslagent" else f"counters.{counter}") in text
    assert line in text


@pytest.mark.parametrize("daemon,place,event", [(daemon, *row) for daemon in LOGGED for row in LOGGED[daemon].values() if row[1][0] == '"'])
def test_the_lines_that_clients_can_cause_are_paced(daemon, place, event):
    paced_otherwise = ('"adopt refused"', '"peer refused"')  # one in some seconds
    call = re.search(r"\b(log_\w+)\([^;]{0,60}?" + re.escape(event), (ROOT / daemon / place).read_text())
    assert call and (call.group(1) in ("log_paced", "log_event_paced") or event in paced_otherwise), call


def test_ends_at_a_limit_are_logged_where_other_ends_are_not():
    said = re.search(r"bool end_reason_is_refusal\(.*?\n}", (ROOT / "proto/end_reason.c").read_text(), re.S).group(0)
    assert [name for name in LIMITS if f"reason == {name}" not in said] == []
    for place in ("ragent/connection/connection_end.c", "sslagent/carrier/direct_listen.c"):
        assert "end_reason_is_refusal(" in (ROOT / place).read_text()
