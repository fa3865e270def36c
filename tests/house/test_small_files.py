"""A small file is worth its place only if it has a test of its own or several users: else it belongs into the file that uses it."""

import re

import pytest

from test_rules import MAY_INCLUDE, ROOT, _files

SMALL = 60       # lines
FULL = 400       # lines: a file grows no further by a small one
# One command or one service is one file: only a table names it.
TABLES = ("csslctl/commands.c", "bench/main.c", "sslagent/service/service.c")

DEFINED = re.compile(r"^(?!static\b|typedef\b|return\b|else\b)[A-Za-z_][\w \*]*?\b(\w+)(?:\(|(?:\[[^]]*\])* = )", re.MULTILINE)


def _without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def _needless(sources, tests):
    """"path: user" for each small source that only one other source of its folder uses, and no test. @sources and @tests: path -> text."""
    words = {path: set(re.findall(r"\w+", _without_comments(text))) for path, text in {**sources, **tests}.items()}
    found = []
    for path, text in sources.items():
        lines, names = text.count("\n"), set(DEFINED.findall(_without_comments(text)))
        users = [other for other in sources if other != path and words[other] & names]
        if lines >= SMALL or len(users) != 1 or users[0] in TABLES or any(words[test] & names for test in tests):
            continue
        if users[0].rpartition("/")[0] == path.rpartition("/")[0] and lines + sources[users[0]].count("\n") <= FULL:
            found.append(f"{path}: {users[0]}")
    return found


def _texts(*tops):
    return {str(f.relative_to(ROOT)): f.read_text() for f in _files(".c") if f.relative_to(ROOT).parts[0] in tops}


def test_a_small_file_has_several_users_or_a_test():
    sources, tests = _texts(*MAY_INCLUDE), _texts("tests")
    assert len(sources) > 400
    found = _needless(sources, tests)
    assert not found, "\n" + "\n".join(found)


LEAF = "int leaf_size(const struct tree *t)\n{\n\treturn 1;\n}\n"
USER = "int tree_size(const struct tree *t)\n{\n\treturn leaf_size(t);\n}\n"


def test_a_planted_small_file_is_found():
    assert _needless({"net/leaf.c": LEAF, "net/tree.c": USER, "net/forest.c": "/* leaf_size() */\n"}, {}) == ["net/leaf.c: net/tree.c"]


@pytest.mark.parametrize("sources, tests", [
    ({"net/leaf.c": LEAF, "net/tree.c": USER, "net/forest.c": USER.replace("tree", "forest")}, {}),
    ({"net/leaf.c": LEAF, "net/tree.c": USER}, {"tests/unit/net/test_tree.c": "leaf_size(t)"}),
    ({"net/leaf.c": LEAF, "ragent/link/tree.c": USER}, {}),
    ({"net/leaf.c": LEAF, "net/tree.c": USER + "\n" * FULL}, {}),
    ({"net/leaf.c": LEAF + "\n" * SMALL, "net/tree.c": USER}, {}),
    ({"csslctl/leaf.c": LEAF, "csslctl/commands.c": USER}, {}),
], ids=["two users", "a test", "another folder", "a full file", "not small", "a row of a table"])
def test_a_small_file_that_may_stay(sources, tests):
    assert not _needless(sources, tests)
