"""Words are few: the glossary has a bounded number of rows with one sense each, README says what CSSL is within two screens, and all
documents together grow no longer. A page of results is written by its experiment, so it does not count."""

import math
import re
import subprocess

import pytest

from test_rules import ROOT, _files

ROWS_MAX = 70
SCREENS_LINES = 100  # two screens
SCREEN_COLUMNS = 120
PROMISES = range(5, 9)

# Words of all documents outside bench/results. Who shortens one lowers it; who has to say more shortens another one.
WORDS_MAX = 40_850

ROW = re.compile(r"^\| (.+?) \| (.*) \|$", re.MULTILINE)


# --- the glossary ---

def rows_of(page):
    """[(word, meaning), ...] of its tables."""
    return [row for row in ROW.findall(page) if row[0] not in ("word", "---")]


def faults_of(page):
    """What a glossary must not have."""
    rows, found, known = rows_of(page), [], set()
    if len(rows) > ROWS_MAX:
        found.append(f"{len(rows)} rows: at most {ROWS_MAX}, so another one goes, or plain words take its place")
    for word, meaning in rows:
        if word.lower() in known:
            found.append(f"{word}: two rows")
        known.add(word.lower())
        if "," in word:
            found.append(f"{word}: more than one word in a row")
        if re.search(r"\belsewhere\b", meaning, re.IGNORECASE):
            found.append(f"{word}: two senses")
    return found


def unused(page, texts):
    """Words of the glossary that nobody says. In its own folder the queue leaves out `queue`."""
    said = "\n".join(texts).lower()
    return [word for word, _ in rows_of(page) if not re.search(rf"\b{re.escape(word.lower().removeprefix('queue '))}", said)]


def glossary():
    return (ROOT / "doc/words.md").read_text()


def test_the_glossary_is_short_and_each_word_has_one_sense():
    assert len(rows_of(glossary())) > 40
    assert not faults_of(glossary())


def test_each_word_is_said_somewhere():
    others = [path for path in _files(".c", ".h", ".proto", ".md") if path != ROOT / "doc/words.md"]
    assert not unused(glossary(), [path.read_text() for path in others])


@pytest.mark.parametrize("planted, fault", [
    ("| owner | a second meaning |", "owner: two rows"),
    ("| Owner | a second meaning |", "Owner: two rows"),
    ("| gate | a door (elsewhere: a bound) |", "gate: two senses"),
    ("| gate, door | the way in |", "gate, door: more than one word in a row"),
])
def test_a_planted_row_is_found(planted, fault):
    assert faults_of(f"{glossary()}{planted}\n") == [fault]


def test_one_row_too_many_is_found():
    more = "".join(f"| word{number} | a meaning |\n" for number in range(ROWS_MAX + 1 - len(rows_of(glossary()))))
    assert len(faults_of(glossary() + more)) == 1


def test_a_planted_word_that_nobody_says_is_found():
    assert unused("| owner | a |\n| queue token | b |\n| grave pit | c |\n", ["the owners", "a token"]) == ["grave pit"]


# --- README's two screens ---

def screen_lines(text):
    """How many lines it has on a screen, which breaks long ones."""
    return sum(max(1, math.ceil(len(line) / SCREEN_COLUMNS)) for line in text.splitlines())


def beginning_of(readme):
    """README up to its commands and its table of promises, whichever ends last; and the rows of that table."""
    commands = re.search(r"^```\n\./cssl demo\b.*\n\./cssl test\b.*\n```$", readme, re.MULTILINE)
    table = re.search(r"^\| what happens \| .+ \| elsewhere .*\|\n\|(?: --- \|)+\n((?:\|.*\|\n)+)", readme, re.MULTILINE)
    assert commands and table
    return readme[:max(commands.end(), table.end())], table[1].splitlines()


def test_readme_says_in_two_screens_what_it_is():
    beginning, promises = beginning_of((ROOT / "README.md").read_text())
    assert screen_lines(beginning) <= SCREENS_LINES
    assert len(promises) in PROMISES
    assert all(row.count(" | ") == 2 for row in promises)


def test_a_planted_long_beginning_is_seen():
    readme = (ROOT / "README.md").read_text()
    assert screen_lines(beginning_of(readme.replace("\n\n", "\n\n" + "one more line\n" * 10))[0]) > SCREENS_LINES
    assert screen_lines("a" * (2 * SCREEN_COLUMNS + 1) + "\n\nb") == 5


# --- all documents ---

def words_of(texts):
    return sum(len(text.split()) for text in texts)


def test_the_documents_have_no_more_words_than_their_bound():
    names = subprocess.run(["git", "ls-files", "*.md", ":!bench/results"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert {"README.md", "doc/words.md"} <= set(names) and not [name for name in names if name.startswith("bench/results/")]
    words = words_of((ROOT / name).read_text() for name in names if (ROOT / name).exists())
    assert words <= WORDS_MAX, f"{words} words"


def test_words_are_counted():
    assert words_of(["# One head\n\ntwo `three`", "| four |\n"]) == 8
