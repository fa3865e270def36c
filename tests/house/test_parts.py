"""A room consists of parts, and each of them has a header that is all that others may use. What shows it in figures: how many functions of
a room others can call, how much one header offers, and to how many. The bounds only ever fall."""

import collections
import re

import pytest

from test_names import MEAN_THE_SAME
from test_rules import COMMENT, ROOT, _files

# External functions of a room, its sub-folders included, at most; a room that falls further below than SLACK lowers its bound.
EXTERNAL_MAX = {
    "ragent/connection": 184,
    "ragent/control": 90,
    "sslagent/connection": 118,
    "sslagent/cluster": 130,
    "smtpproxy/queue": 152,
    "net": 337,
}
SLACK = 5

# In these rooms a header has at most so many prototypes, and so many files of the product include it.
PROTOTYPES_MAX = 40
INCLUDERS_MAX = 12
# Every room stands on these rooms, so their headers may have more users.
FOR_EVERYBODY = {"net"}
# Headers for the inside of a whole room: there are none.
WHOLE_ROOM = re.compile(r"_(internal|inside)\.h$")

# Files that call each other in a circle, over the product, by the first of them: how many at most, and why they are one thing in several
# files. Calls through a table of functions do not count: they are how a part calls back.
CIRCLES = {
    "bench/mail/sink_commands.c": (3, "commands and named transactions move the session that reads them"),
    "bench/mail/source_session.c": (2, "a session makes transactions, and each ends a step of its session"),
    "conf/conf.c": (2, "limits are a part of the file, and their defaults are derived from the whole file"),
    "ragent/connection/connection.c": (16, "one state machine: the file of a state moves the connection to states of the others"),
    "ragent/link/link.c": (3, "a link opens itself again, and what fails in its opening or its frames ends it"),
    "ragent/process/ragent.c": (2, "a process gives itself to the next, and serves on if that fails"),
    "smtpproxy/sender/session.c": (11, "one state machine, as that of a connection"),
    "sslagent/carrier/carrier_home.c": (7, "a home knows its links and clients, and ends with the last of them"),
    "sslagent/preamble/preamble.c": (2, "mail in clear is a state of the preamble"),
    "sslagent/service/smtp/smtp_opening.c": (4, "its opening and its resumption are states of a session"),
    "sslagent/tls/export.c": (5, "OpenSSL calls back into the handshake that called it"),
    "sslagent/tls/own_hmac.c": (2, "the provider lists the algorithm, which asks for the provider's library"),
}

# Static functions named by one bare verb, over the product: grep, a backtrace and a profile show the name without its file.
BARE_VERBS = frozenset("""add append ask begin check clear close create destroy done drop end enter fail fill find finish forget free get give
go_on grow handle init judge keep leave look make make_room move next open parse place prepare put read refuse remove report reset restore run
save say send serve set settle share start step stop take tell wait watch write""".split())

OF_ITS_FOLDER = re.compile(r"\bFor the files of [\w ]+ only\b")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)\s*")
DEFINED = re.compile(r"^(?!static\b|typedef\b)[a-z_][\w \*]*?\b(\w+)\((?:[^;{}])*?\)\n\{", re.M)
STATIC = re.compile(r"^static [\w \*]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
CALL = re.compile(r"(?<![\w.>])([a-z_]\w+)(?=\()")
PROTOTYPE = re.compile(r"^(?!static\b|typedef\b)[a-z_][\w \*]*?\b\w+\((?:[^;{}])*?\)\s*;", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def plain(text):
    """Without comments, attributes and what the preprocessor reads."""
    return ATTRIBUTE.sub("", re.sub(r"^#(?:[^\n\\]|\\\n|\\.)*$", "", COMMENT.sub("", text), flags=re.M))


def externals(text):
    """The functions with external linkage that a source defines. Two of one name under #if are one."""
    return set(DEFINED.findall(plain(text)))


def prototypes(text):
    return len(PROTOTYPE.findall(plain(text)))


def room_of(path, rooms):
    return next((room for room in rooms if path.startswith(room + "/")), None)


def counted(sources, rooms):
    """External functions by room. @sources: path -> text."""
    found = collections.Counter({room: 0 for room in rooms})
    for path, text in sources.items():
        if room_of(path, rooms) and path.endswith(".c"):
            found[room_of(path, rooms)] += len(externals(text))
    return found


def too_wide(sources, rooms):
    """path -> (prototypes, includers) of the headers of these rooms that are above a bound."""
    users = collections.Counter(header for path, text in sources.items() for header in set(INCLUDE.findall(text)))
    found = {}
    for path, text in sources.items():
        room = room_of(path, rooms)
        if room and path.endswith(".h"):
            has = (prototypes(text), users[path])
            if has[0] > PROTOTYPES_MAX or (has[1] > INCLUDERS_MAX and room not in FOR_EVERYBODY):
                found[path] = has
    return found


def for_whole_rooms(paths, rooms):
    return {path for path in paths if room_of(path, rooms) and WHOLE_ROOM.search(path)}


def taken_from_outside(sources):
    """Includes, from other folders, of headers that say in their first comment that they are for the files of one thing only."""
    own = {path for path, text in sources.items() if path.endswith(".h") and OF_ITS_FOLDER.search(" ".join(text.partition("*/")[0].replace("*", " ").split()))}
    return [f"{path}: {header}" for path, text in sources.items() for header in INCLUDE.findall(text)
            if header in own and header.rpartition("/")[0] != path.rpartition("/")[0]]


def bare(sources):
    """path:name of each static function whose name says only what it does, not to what."""
    return [f"{path}: {name}" for path, text in sources.items() for name in sorted(set(STATIC.findall(plain(text)))) if name in BARE_VERBS]


def defined_twice(sources):
    homes = collections.defaultdict(set)
    for path, text in sources.items():
        for name in externals(text):
            homes[name].add(path)
    return {name for name, paths in homes.items() if len(paths) > 1}


def calls(sources):
    """path -> the sources whose external functions it calls by name."""
    homes, found = collections.defaultdict(set), {}
    for path, text in sources.items():
        for name in externals(text):
            homes[name].add(path)
    for path, text in sources.items():
        called = [homes[name] for name in set(CALL.findall(plain(text))) if len(homes.get(name, ())) == 1]
        found[path] = set().union(*called) - {path}
    return found


def reached(calls_of, path):
    found, left = set(), [path]
    while left:
        for other in calls_of.get(left.pop(), ()):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def circles(sources):
    """The first of each circle of files -> how many these are."""
    arrows = calls(sources)
    reaches = {path: reached(arrows, path) for path in arrows}
    found = {}
    for path in sorted(path for path in reaches if path in reaches[path]):
        found.setdefault(min(other for other in reaches[path] if path in reaches[other]), set()).add(path)
    return {first: len(files) for first, files in found.items()}


def product():
    return {str(f.relative_to(ROOT)): f.read_text() for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] != "tests"}


@pytest.fixture(scope="module", name="sources")
def _sources():
    found = product()
    assert len(found) > 500
    return found


def test_rooms_have_no_more_external_functions_than_their_bound(sources):
    found = counted(sources, EXTERNAL_MAX)
    above = {room: count for room, count in found.items() if count > EXTERNAL_MAX[room]}
    below = {room: count for room, count in found.items() if count < EXTERNAL_MAX[room] - SLACK}
    assert not above, f"more than the bound: {above}"
    assert not below, f"a bound far above is none, lower it: {below}"


def test_headers_are_narrow(sources):
    assert not too_wide(sources, EXTERNAL_MAX)


def test_files_call_in_no_circle_but_those_with_a_reason(sources):
    found = circles({path: text for path, text in sources.items() if path.endswith(".c")})
    assert found == {first: most for first, (most, _) in CIRCLES.items()}


def test_a_planted_circle_of_files_is_found():
    planted = {"a.c": "void a_one(void)\n{\n\tb_one();\n}\n", "b.c": "int b_one(void)\n{\n\tc_one();\n}\n",
               "c.c": "int c_one(void)\n{\n\ta_one();\n}\n", "d.c": "int d_one(void)\n{\n\ta_one();\n\tx.b_one();\n}\n"}
    assert circles(planted) == {"a.c": 3}
    assert circles({**planted, "c.c": "int c_one(void)\n{\n\tx->a_one();\n}\n"}) == {}


def test_no_header_is_for_the_inside_of_a_whole_room(sources):
    assert not for_whole_rooms(sources, EXTERNAL_MAX)


def test_what_is_for_the_files_of_one_thing_stays_there(sources):
    assert not taken_from_outside(sources)


def test_static_names_say_whose_they_are(sources):
    assert not bare(sources)


def test_no_external_name_means_two_things(sources):
    assert defined_twice({path: text for path, text in sources.items() if path.endswith(".c")}) == MEAN_THE_SAME.keys()


# The rules can fail: a made room.

HEADER = """/* pond.h: fish. int no_function(void); */
#define POND(X) \\
	X(carp);
struct pond {
	int (*on_fish)(struct pond *p);
};
int pond_open(struct pond *p,
	int depth);
void pond_close(struct pond *p) __attribute__((nonnull(1)));
static inline int pond_depth(struct pond *p)
{
	return 1;
}
"""
SOURCE = """#include "net/pond/pond.h"
static void take(struct pond *p)
{
}

__attribute__((format(printf, 1, 2))) static void pond_say(const char *format, ...)
{
}

int pond_open(struct pond *p,
	int depth)
{
	take(p);
}

#ifdef DEEP
void pond_close(struct pond *p)
{
}
#else
void pond_close(struct pond *p)
{
}
#endif
"""


def test_functions_prototypes_and_bare_names_are_counted():
    assert externals(SOURCE) == {"pond_open", "pond_close"}
    assert prototypes(HEADER) == 2
    made = {"net/pond/pond.c": SOURCE, "net/pond/pond.h": HEADER}
    assert counted(made, ["net", "ragent/control"]) == {"net": 2, "ragent/control": 0}
    assert bare(made) == ["net/pond/pond.c: take"]


def test_a_planted_wide_header_is_found():
    users = {f"ragent/control/user_{n}.c": '#include "ragent/control/pond.h"\n' for n in range(INCLUDERS_MAX + 1)}
    assert too_wide({**users, "ragent/control/pond.h": HEADER}, ["ragent/control"]) == {"ragent/control/pond.h": (2, INCLUDERS_MAX + 1)}
    many = "".join(f"int pond_{n}(void);\n" for n in range(PROTOTYPES_MAX + 1))
    assert too_wide({"net/pond/pond.h": many}, ["net"]) == {"net/pond/pond.h": (PROTOTYPES_MAX + 1, 0)}
    assert not too_wide({"net/pond/pond.h": HEADER, **{path: '#include "net/pond/pond.h"\n' for path in users}}, ["net"])


def test_a_planted_header_of_a_whole_room_is_found():
    assert for_whole_rooms({"net/pond/pond_inside.h", "net/pond/pond.h", "csslctl/pond_internal.h"}, ["net"]) == {"net/pond/pond_inside.h"}


def test_a_planted_taker_from_outside_is_found():
    made = {"net/pond/frogs.h": "/* frogs.h: frogs. For the files of a\n * pond only. */\n", "net/pond/pond.c": '#include "net/pond/frogs.h"\n',
            "net/lake/lake.c": '#include "net/pond/frogs.h"\n'}
    assert taken_from_outside(made) == ["net/lake/lake.c: net/pond/frogs.h"]


def test_a_planted_second_meaning_is_found():
    assert defined_twice({"net/pond/pond.c": SOURCE, "net/lake/lake.c": SOURCE.replace("pond_open", "lake_open")}) == {"pond_close"}
