"""doc/ agrees with the code: laws that comments cite exist, functions are in the files that the documents name, links lead to
files."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted((ROOT / "doc").glob("*.md")) + [ROOT / "README.md", ROOT / "NEWS.md"]

CITED_LAWS = re.compile(r"\blaw\s(\d+)|\blaws\s((?:\d+(?:,\s|\sand\s|\sto\s)?)+)", re.IGNORECASE)
CITED_DESIGN = re.compile(r"\(design\b:? ?\d*|\bdesign: |\bof the design\b", re.IGNORECASE)
LINE_END = re.compile(r"\s*\n[\s*/#]*")  # of a comment, with the beginning of its next line
NAMED_FUNCTION = re.compile(r"`([a-z0-9_/]+\.[ch]):\s+(\w+)`|`([a-z0-9_/]+\.[ch])`\s+\(`(\w+)`")
NAMED_FILE = re.compile(r"`((?:[A-Za-z0-9_.-]+/)+[A-Za-z0-9_.-]+\.(?:c|h|py|sh|proto|yaml|lua))\b")
ANY_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)]*)?\)")


def _sources():
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True, check=True,
                           stdout=subprocess.PIPE).stdout.split("\n")
    return [ROOT / name for name in names if name.endswith((".c", ".h", ".proto", ".py", ".sh", ".md")) and (ROOT / name).is_file()]


def laws_of(text):
    return {int(number) for number in re.findall(r"^## Law (\d+):", text, re.MULTILINE)}


def cited_in(text):
    """The numbers of "laws 2, 3, 5 and 9", and both ends of "laws 1 to 7", also across the end of a comment's line."""
    one_line = re.sub(LINE_END, " ", text)
    return {int(number) for match in CITED_LAWS.finditer(one_line) for number in re.findall(r"\d+", match[0])}


def unresolved(text, laws):
    """Numbers of laws that a text cites and that do not exist, and citations of anything outside the repository."""
    return sorted(f"law {n}" for n in cited_in(text) - laws) + CITED_DESIGN.findall(re.sub(LINE_END, " ", text))


def missing_functions(text, root=ROOT):
    """Functions that a document names in a file where they are neither defined nor declared."""
    found = []
    for match in NAMED_FUNCTION.finditer(text):
        name, function = match[1] or match[3], match[2] or match[4]
        path = root / name
        if not path.is_file() or not re.search(rf"^[a-z].*\b{function}\(", path.read_text(), re.MULTILINE):
            found.append(f"{name}: {function}")
    return found


def missing_files(text, root=ROOT):
    """Files of the repository that a document names in its running text and that do not exist."""
    return sorted({name for name in NAMED_FILE.findall(text) if not (root / name).is_file()})


def test_laws_are_numbered_in_order():
    laws = sorted(laws_of((ROOT / "doc/laws.md").read_text()))
    assert laws == list(range(1, len(laws) + 1))


def test_every_cited_law_exists():
    laws = laws_of((ROOT / "doc/laws.md").read_text())
    found = [f"{path.relative_to(ROOT)}: {what}" for path in _sources() if path != pathlib.Path(__file__)
             for what in unresolved(path.read_text(), laws)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("planted", ["/* law 99 */", "as laws 1 and 77 say", "laws 2, 77, 3 and 5", "laws 1 to 99",
                                     " * (laws 2,\n * 99 and 5)", "(design 8)", "(design: never two)",
                                     "of an owner? Design: never two ciphertexts", "keeps the main law of the design:",
                                     "the main law of the\n * design:"])
def test_a_planted_citation_is_found(planted):
    assert unresolved(planted, laws_of((ROOT / "doc/laws.md").read_text()))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_functions_are_where_it_says(document):
    assert missing_functions(document.read_text()) == []


def test_the_journeys_name_functions():
    assert len(NAMED_FUNCTION.findall((ROOT / "doc/architecture.md").read_text())) > 25


@pytest.mark.parametrize("planted", ["`ragent/process/main.c: no_such_function`", "`ragent/no_such_file.c: main`",
                                     "`ragent/process/main.c` (`no_such_function`)", "`ragent/process/main.c`\n(`no_such_function`)"])
def test_a_planted_function_is_missed(planted):
    assert missing_functions(planted)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_files_exist(document):
    assert missing_files(document.read_text()) == []


@pytest.mark.parametrize("planted", ["`net/no_such_file.c`", "`ragnet/process/main.c`", "`conf/mail-gatewayz.yaml`", "`doc/No_such.sh`", "`conf/no_such.yaml`", "`tests/lib/no_such.py`", "`net/no_such.h: f`"])
def test_a_planted_file_is_missed(planted):
    assert missing_files(planted)


def anchors_of(text):
    """What #... of a link may be: the headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document, text):
    """Links to files that do not exist, or to headings that they do not have."""
    found = []
    for target, anchor in ANY_LINK.findall(text):
        path = document.parent / target if target else document
        if not path.exists() or (anchor and path.suffix == ".md" and anchor[1:] not in anchors_of(text if path == document else path.read_text())):
            found.append(target + anchor)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    assert broken_links(document, document.read_text()) == []


@pytest.mark.parametrize("planted", ["[no](no_such.md)", "[no](laws.md#law-99)", "[no](#no-such-heading)", "[no](../README.md#no-such)"])
def test_a_planted_link_is_found(planted):
    assert broken_links(ROOT / "doc/trust.md", (ROOT / "doc/trust.md").read_text() + planted)
