"""The fields of a log line are `key=value` pairs: a word without a key would be lost, and with it the rest of a text."""

import re

import pytest

from test_rules import ROOT, _files

CALL = re.compile(r"\b(log_event|log_paced|log_event_paced|log_write)\(")
FORMAT_AT = {"log_event": 3, "log_paced": 3, "log_event_paced": 4, "log_write": 3}
LITERALS = re.compile(r'(?:\s*(?:"(?:[^"\\]|\\.)*"|PRI\w+))+\s*')
NUMBER_FOR_A_WORD = re.compile(r"\b(cause|reason|state|response)=%(?![-0-9.*]*s)")
PAIR = re.compile(r'\w+=(?:"[^"]*"|[^ "]+)( +|$)')


def _arguments(text, at):
    """The arguments of the call whose bracket is in front of @at, as texts."""
    found, depth, begin = [], 1, at
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[(){},]', text[at:]):
        mark, place = token.group(0), at + token.start()
        depth += (mark in "({") - (mark in ")}")
        if (mark == "," and depth == 1) or depth == 0:
            found.append(text[begin:place])
            begin = place + 1
        if depth == 0:
            return found
    return found


def fields_of(text):
    """The format of the fields of each line that a source logs, where it is written in the call."""
    for call in CALL.finditer(text):
        arguments, at = _arguments(text, call.end()), FORMAT_AT[call.group(1)]
        if len(arguments) > at and LITERALS.fullmatch(arguments[at]):
            pieces = re.findall(r'"((?:[^"\\]|\\.)*)"|PRI\w+', arguments[at])
            yield "".join(pieces).replace('\\"', '"')


def is_lost_in(fields):
    """Does a word of these fields have no key?"""
    return PAIR.sub("", fields) != ""


def test_each_word_of_a_log_line_has_a_key():
    files = [f for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] != "tests"]
    checked = [(f, fields) for f in files for fields in fields_of(f.read_text())]
    assert len(checked) > 150
    lost = [f"{f.relative_to(ROOT)}: {fields}" for f, fields in checked if is_lost_in(fields)]
    assert not lost, "\n" + "\n".join(lost)


def test_no_log_line_has_a_number_where_a_word_is_known():
    files = [f for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] != "tests"]
    found = [f"{f.relative_to(ROOT)}: {fields}" for f in files for fields in fields_of(f.read_text()) if NUMBER_FOR_A_WORD.search(fields)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("planted", ["a=%s cause=%d", "reason=%u", "response=%i b=%s", "state=%02x", "reason=%hhu", "cause=%zu", "state=%"])
def test_a_planted_number_for_a_word_is_found(planted):
    assert NUMBER_FOR_A_WORD.search(planted)


@pytest.mark.parametrize("planted", ['"cause=no memory for %u", n', '"a=%s b", a', '"cause=\\"no memory", NULL', '"cause=\\"two\\" \\"words\\""'])
def test_a_planted_word_without_a_key_is_found(planted):
    assert any(is_lost_in(fields) for fields in fields_of(f'log_event(LOG_INFO, id(a, "b"), "x", {planted});'))


def test_a_planted_word_in_a_paced_line_is_found():
    line = 'log_event_paced(all ? &a : b, level, &c->id, "ended", "reason=%s and" " more", reason);'
    assert [is_lost_in(fields) for fields in fields_of(line)] == [True]


@pytest.mark.parametrize("good", ['"a=%s b=%" PRIu64 " c=%d", a', '"cause=\\"no memory for %u\\" a=%s:%u"'])
def test_pairs_are_taken(good):
    assert [is_lost_in(fields) for fields in fields_of(f"log_event(LOG_INFO, NULL, \"x\", {good});")] == [False]
