"""A name that both daemons have means the same in both: whoever reads one of them knows the other."""

import re

from test_rules import ROOT, _files

# Functions that RAgent and the agents have each one of, and what both of them do.
MEAN_THE_SAME = {
    "connection_create": "makes the object of one client's connection",
    "connection_end": "ends it for a reason, and tells the other tier",
    "connection_state_name": "a state's word for logs and the API",
    "connection_to": "changes the state",
    "main": "the program",
}

DEFINED = re.compile(r"^(?!static\b|typedef\b)[a-z][\w \*]*?\b(\w+)\([^;{}]*\)\n\{", re.M)


def shared(one, other):
    """Functions with external linkage that both sets of texts define."""
    return {name for text in one for name in DEFINED.findall(text)} & {name for text in other for name in DEFINED.findall(text)}


def _texts(folder):
    return [path.read_text() for path in _files(".c") if path.relative_to(ROOT).parts[0] == folder]


def test_both_daemons_share_only_names_that_mean_the_same():
    assert shared(_texts("ragent"), _texts("sslagent")) == MEAN_THE_SAME.keys()


def test_a_planted_name_in_both_is_found():
    ragent = "static int only_here(void)\n{\n}\n\nuint32_t link_stream_begin(struct link *l, void *holder)\n{\n}\n"
    agent = "static int only_here(void)\n{\n}\n\nstruct link_stream *link_stream_begin(struct link *l,\n\tuint32_t id)\n{\n}\n"
    assert shared([ragent], [agent]) == {"link_stream_begin"}
