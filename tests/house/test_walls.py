"""The folders inside a top-level folder have an order, too: each includes only from the folders in its row."""

import pathlib
import re

import pytest

from test_rules import ROOT, _files

# For each top-level folder: which of its folders each of them may include from, beside itself. "" is the top-level folder itself.
WALLS = {
    "net": {
        "report": set(),
        "points": set(),
        "memory": {"report"},
        "socket": set(),
        "process": {"report"},
        "loop": {"report", "points", "memory", "socket"},
        "stream": {"points", "memory", "socket", "loop"},
        "limits": {"memory", "socket"},
    },
    "ragent": {
        "": set(),  # counters.h: what all of them count
        "link": {""},
        "dispatch": {"", "link"},
        "keeper": set(),
        "connection/bytes": {"keeper"},
        "connection/limits": set(),  # pure
        "connection/ownership": {"link", "dispatch", "connection/bytes"},
        "connection": {"", "link", "dispatch", "keeper", "connection/bytes", "connection/limits", "connection/ownership"},
        # no part of a connection calls it; it may call any of them, but the limits of many clients together
        "connection/revival": {"", "link", "dispatch", "keeper", "connection", "connection/bytes", "connection/ownership"},
        "worker": {"", "link", "dispatch", "connection", "connection/revival", "keeper"},
        "handover": {"", "link", "dispatch", "keeper", "connection", "connection/revival", "worker"},
        "dashboard": set(),
        "control/access": set(),  # judges claims: no RAgent, no socket
        "control/http": {"", "control/access"},  # whatever is asked
        "control/operations": {"", "link", "dispatch", "connection", "keeper", "worker", "control/http"},
        "control/routes": {"dashboard", "control/access", "control/http", "control/operations"},
        "control": {"control/access", "control/http", "control/operations", "control/routes"},
        "process": {"", "link", "dispatch", "connection", "connection/revival", "keeper", "worker", "handover", "control", "control/access", "control/operations"},
    },
    "sslagent": {
        "": set(),  # counters.h
        "tls": {""},
        "sessions": {"", "tls"},
        "cluster": {"", "tls", "sessions", "cluster/broadcast", "cluster/peers", "cluster/joining"},
        "cluster/broadcast": {"", "sessions"},  # no links, no sockets
        "cluster/peers": {"", "sessions", "cluster/broadcast"},
        "cluster/joining": {"", "sessions", "cluster/broadcast", "cluster/peers"},
        "service": {""},
        "service/h2": {"", "service"},
        "service/http": {"", "service"},
        "service/smtp": {"", "service"},
        "backend": {""},
        "connection": {"", "tls", "cluster", "service", "backend"},  # the struct, its states and end, and the parts that it embeds
        "connection/flow": {"", "service", "connection"},  # an owner at work
        "connection/leaving": {"", "cluster", "connection", "connection/flow"},  # how it stops to be one
        "connection/beginning": {"", "tls", "cluster", "service", "connection", "connection/flow"},  # how an agent becomes one
        "connection/events": {"", "tls", "backend", "connection", "connection/flow", "connection/leaving", "connection/beginning"},
        "preamble": {"", "backend"},
        "carrier": {"", "tls", "connection", "preamble"},
        "process": {"", "tls", "sessions", "cluster", "connection", "carrier"},
    },
    "smtpproxy": {
        "": set(),  # counters.h
        "dns": set(),  # no SMTP
        "tls": {"dns"},
        "queue/items": set(),
        "queue/markers": {"queue/items"},
        "queue/backup": {"tls", "queue/items", "queue/markers"},
        "queue": {"tls", "queue/items", "queue/markers", "queue/backup"},  # no sockets of SMTP
        "events": {""},
        "ledger": {""},
        "policy": {""},
        "outward": {"", "dns", "tls", "policy"},
        "hooks": {""},
        "envelope": {""},
        "delivery": {"", "dns", "policy", "outward", "envelope", "queue"},
        "sender": {"", "dns", "events", "ledger", "policy", "outward", "hooks", "envelope", "queue", "delivery"},
        "control": {"", "dns", "events", "ledger", "policy", "outward", "hooks", "delivery", "envelope", "queue", "sender"},
        "process": {"", "dns", "tls", "events", "ledger", "policy", "outward", "hooks", "delivery", "queue", "sender", "control"},
    },
    "bench": {
        "": {"command"},  # main.c
        "command": set(),
        "measure": set(),
        "server": {"command", "measure"},
        "load": {"command", "measure", "server"},
        "mail": {"command", "measure", "load"},
        "merge": {"command", "measure", "load", "mail"},
        "broadcast": {"command"},
    },
}

INCLUDE = re.compile(r'^\s*#include\s*"([^"]+)"', re.M)


def room_of(path):
    """Top-level folder and folder inside it, of a path as #include has it."""
    parts = pathlib.PurePosixPath(path).parts
    return parts[0], "/".join(parts[1:-1])


def upward(walls, sources):
    """The includes that the walls forbid. @sources are pairs of path and text."""
    found = []
    for path, text in sources:
        top, room = room_of(path)
        if top not in walls:
            continue
        for included in INCLUDE.findall(text):
            other_top, other = room_of(included)
            if other_top == top and other != room and other not in walls[top].get(room, set()):
                found.append(f"{path}: {included}")
    return found


def _sources():
    return [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in _files(".c", ".h")]


def test_no_folder_includes_upward():
    found = upward(WALLS, _sources())
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("path,included", [
    ("net/memory/slabs.c", "net/loop/worker.h"),
    ("ragent/link/link.c", "ragent/connection/connection.h"),
    ("ragent/counters.h", "ragent/link/link.h"),
    ("ragent/connection/connection.c", "ragent/control/control.h"),
    ("ragent/control/http/control_exchange.c", "ragent/control/routes/control_routes.h"),
    ("ragent/a_new_folder/file.c", "ragent/link/link.h"),
    ("sslagent/sessions/store.c", "sslagent/cluster/cluster.h"),
    ("sslagent/cluster/broadcast/broadcast_receiver.c", "sslagent/cluster/peers/peers.h"),
    ("sslagent/cluster/joining/joining.h", "sslagent/cluster/cluster.h"),
    ("sslagent/connection/connection.h", "sslagent/process/agent_internal.h"),
    ("sslagent/connection/flow/flow.c", "sslagent/service/http/http_follower.h"),
    ("sslagent/connection/connection.c", "sslagent/connection/flow/words.h"),
    ("sslagent/connection/flow/flow.c", "sslagent/connection/leaving/settle.h"),
    ("sslagent/service/service.c", "sslagent/service/http/http_follower.h"),
    ("smtpproxy/outward/onward.h", "smtpproxy/sender/session.h"),
    ("smtpproxy/queue/queue.c", "smtpproxy/sender/session.h"),
    ("smtpproxy/queue/queue.c", "smtpproxy/outward/outward.h"),
    ("smtpproxy/queue/backup/backup.c", "smtpproxy/queue/queue.h"),
    ("smtpproxy/queue/items/item.c", "smtpproxy/queue/markers/marker.h"),
    ("bench/measure/report.h", "bench/load/load_result.h"),
    ("bench/server/serve.c", "bench/mail/mail_mark.h"),
])
def test_a_planted_upward_include_is_found(path, included):
    assert upward(WALLS, [(path, f'#include "{included}"\n')]) == [f"{path}: {included}"]


@pytest.mark.parametrize("top", WALLS)
def test_the_walls_themselves_form_no_circle(top):
    left = dict(WALLS[top])
    while left:
        free = [room for room, below in left.items() if not below & left.keys()]
        assert free, f"{top}: a circle among {', '.join(left)}"
        for room in free:
            del left[room]


@pytest.mark.parametrize("top", WALLS)
def test_every_folder_has_a_row_and_a_meson_build(top):
    rooms = {room_of(path)[1] for path, _ in _sources() if room_of(path)[0] == top}
    assert rooms == WALLS[top].keys()
    assert not [room for room in WALLS[top] if not (ROOT / top / room / "meson.build").is_file()]


@pytest.mark.parametrize("top", WALLS)
def test_unit_tests_mirror_the_folders(top):
    rooms = WALLS[top].keys() - {""}
    strays = [path for path, _ in _sources() if re.match(rf"tests/unit/{top}/(.*/)?test_\w+\.c$", path)
              and "/".join(pathlib.PurePosixPath(path).parts[3:-1]) not in rooms]
    assert not strays, "\n" + "\n".join(strays)


def misplaced(paths):
    """Tests test_X.c whose folder has no X.c, although other folders of the same program have one."""
    homes = {}
    for path in map(pathlib.PurePosixPath, paths):
        if path.parts[0] != "tests" and path.suffix == ".c":
            homes.setdefault((path.parts[0], path.stem), set()).add(path.parent)
    tests = [path for path in map(pathlib.PurePosixPath, paths) if re.match(r"tests/unit/.*/test_\w+\.c$", str(path))]
    return [str(test) for test in tests
            if test.relative_to("tests/unit").parent not in homes.get((test.parts[2], test.stem.removeprefix("test_")),
                                                                      {test.relative_to("tests/unit").parent})]


# Rooms without a unit test, and why. Scenarios test them.
WITHOUT_UNIT_TESTS = {
    "ragent/dashboard": "a page and its script, no C (test_monitoring.py)",
    "sslagent/process": "starts, reloads and stops threads of a whole process (test_reload_and_stop.py, test_join.py)",
    "smtpproxy/process": "starts, reloads, replaces and stops a whole process (test_smtpproxy_reload.py, test_smtpproxy_replace.py)",
    "bench/merge": "one command; the folders of the results read and add them, with units (test_mail_tools.py, test_bench.py)",
    "smtpproxy/control": "answers about a whole process, by HTTP (test_smtpproxy_control.py, test_csslctl_answers.py)",
}


def untested(walls, paths):
    """The rooms for which there is no unit test."""
    tested = {"/".join(pathlib.PurePosixPath(path).parts[2:-1]) for path in paths if re.match(r"tests/unit/.*/test_\w+\.c$", path)}
    return {f"{top}/{room}" for top, rooms in walls.items() for room in rooms if room} - tested


def test_each_room_has_a_unit_test_or_a_reason():
    assert untested(WALLS, [path for path, _ in _sources()]) == WITHOUT_UNIT_TESTS.keys()


def test_a_planted_room_without_a_unit_test_is_found():
    walls = {"ragent": {"": set(), "link": set(), "dispatch": set()}}
    assert untested(walls, ["ragent/link/link.c", "tests/unit/ragent/dispatch/test_hello.c", "tests/unit/ragent/link/talk.c"]) == {"ragent/link"}


def test_each_unit_test_stands_where_its_source_does():
    found = misplaced([path for path, _ in _sources()])
    assert not found, "\n" + "\n".join(found)


def test_a_planted_misplaced_test_is_found():
    source, stray = "sslagent/service/http/download.c", "tests/unit/sslagent/service/test_download.c"
    assert misplaced([source, stray]) == [stray]
    assert misplaced([source, "tests/unit/sslagent/service/http/test_download.c", "tests/unit/sslagent/service/test_facts.c"]) == []


def _circle(graph):
    """A circle in the graph, as a list of its nodes; []: there is none."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return [*path[path.index(node):], node]
        if node in done:
            return []
        path.append(node)
        for other in graph.get(node, []):
            if found := visit(other):
                return found
        path.pop()
        done.add(node)
        return []

    return next((found for node in graph if (found := visit(node))), [])


def test_no_header_includes_itself_by_a_detour():
    headers = {path: INCLUDE.findall(text) for path, text in _sources() if path.endswith(".h")}
    assert _circle(headers) == []


def test_a_planted_circle_is_found():
    assert _circle({"a.h": ["b.h"], "b.h": ["c.h"], "c.h": ["b.h"]}) == ["b.h", "c.h", "b.h"]
