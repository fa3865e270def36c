"""The house does not grow by itself: lines of C outside tests/, without blanks and comments. Who adds a feature raises the bound by what it
needs, and says so in the commit."""

import re
import subprocess

from test_rules import ROOT

LINES_MAX = 97_700

# A comment, or a text in which marks of comments mean nothing.
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def lines_of_code(text):
    bare = COMMENT.sub(lambda m: m[0] if m[0][0] in "\"'" else "\n" * m[0].count("\n"), text)
    return sum(1 for line in bare.split("\n") if line.strip())


def test_the_house_is_no_larger_than_its_bound():
    names = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    product = [name for name in names if not name.startswith("tests/") and (ROOT / name).exists()]
    assert len(product) > 500
    lines = sum(lines_of_code((ROOT / name).read_text()) for name in product)
    assert LINES_MAX - 1_000 < lines <= LINES_MAX, f"{lines} lines: a bound far above is none"


def test_blanks_and_comments_do_not_count():
    text = '/* a\n * b */\nint a; /* c */ int b;\n\n// d\nconst char *s = "/* no comment";\nint c; /* e\n*/\n'
    assert lines_of_code(text) == 3
