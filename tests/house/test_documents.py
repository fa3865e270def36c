"""The documents agree with the code: laws that comments cite exist, functions are in the files that a document names, links lead to
files, and the journeys of doc/architecture.md are complete."""

import functools
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

CITED_LAWS = re.compile(r"\blaw\s(\d+)|\blaws\s((?:\d+(?:,\s|\sand\s|\sto\s)?)+)", re.IGNORECASE)
CITED_DESIGN = re.compile(r"\(design\b:? ?\d*|\bdesign: |\bof the design\b", re.IGNORECASE)
LINE_END = re.compile(r"\s*\n[\s*/#]*")  # of a comment, with the beginning of its next line
NAMED_FUNCTION = re.compile(r"`([a-z0-9_/]+\.[ch]):\s+(\w+)`|`([a-z0-9_/]+\.[ch])`\s+\(`(\w+)`")
NAMED_FILE = re.compile(r"`((?:[A-Za-z0-9_.-]+/)+[A-Za-z0-9_.-]+\.(?:c|h|py|sh|proto|yaml|lua))\b")
FILE_OF_FOLDER = re.compile(r"`((?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_-]+\.(?:c|h|lua))\b")
CALL_OF_FOLDER = re.compile(r"`(\w+)\(\)`")
FOLDER_OF_FOLDER = re.compile(r"`((?:[a-z0-9_]+/)+)`")
JOURNEY = re.compile(r"^## Journey (\d+): .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
JOURNEY_HEAD, JOURNEYS, ROWS_LEAST, ROWS_MOST = ["what happens", "file: function"], 6, 8, 14
ANY_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)]*)?\)")


def _sources(endings=(".c", ".h", ".proto", ".py", ".sh", ".md")):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True, check=True,
                           stdout=subprocess.PIPE).stdout.split("\n")
    return [ROOT / name for name in sorted(names) if name.endswith(endings) and (ROOT / name).is_file()]


DOCUMENTS = [path for path in _sources(".md") if not path.is_relative_to(ROOT / "bench/results")]
OF_FOLDERS = [path for path in DOCUMENTS if list(path.parent.glob("*.c"))]


def _name(path):
    return path.relative_to(ROOT).as_posix()


def laws_of(text):
    return {int(number) for number in re.findall(r"^## Law (\d+):", text, re.MULTILINE)}


def cited_in(text):
    """The numbers of "laws 2, 3, 5 and 9", and both ends of "laws 1 to 7", also across the end of a comment's line."""
    one_line = re.sub(LINE_END, " ", text)
    return {int(number) for match in CITED_LAWS.finditer(one_line) for number in re.findall(r"\d+", match[0])}


def unresolved(text, laws):
    """Numbers of laws that a text cites and that do not exist, and citations of anything outside the repository."""
    return sorted(f"law {n}" for n in cited_in(text) - laws) + CITED_DESIGN.findall(re.sub(LINE_END, " ", text))


@functools.cache
def _text(path):
    return path.read_text() if path.is_file() else ""


def has_function(path, function):
    return f"{function}(" in _text(path) and re.search(rf"^[a-z].*\b{function}\(", _text(path), re.MULTILINE) is not None


def missing_functions(text, folder=ROOT):
    """Functions that a document names in a file where they are neither defined nor declared. The document of a folder may name files as
    this folder does."""
    found = []
    for match in NAMED_FUNCTION.finditer(text):
        name, function = match[1] or match[3], match[2] or match[4]
        if not any(has_function(place / name, function) for place in (ROOT, folder)):
            found.append(f"{name}: {function}")
    return found


def missing_in_folder(text, folder):
    """What the document of a folder names, and neither this folder nor the repository has: files, folders; and functions `f()`, which
    any file of the program may have."""
    sources = sorted((ROOT / folder.relative_to(ROOT).parts[0]).rglob("*.[ch]"))
    names = FILE_OF_FOLDER.findall(text) + FOLDER_OF_FOLDER.findall(text)
    calls = [call for call in CALL_OF_FOLDER.findall(text) if not any(has_function(path, call) for path in sources)]
    return [name for name in names if not any((place / name).exists() for place in (ROOT, folder))] + calls


def missing_files(text, folder=ROOT):
    """Files that a document names in its running text, and that neither the repository nor the document's folder has."""
    return sorted({name for name in NAMED_FILE.findall(text) if not any((place / name).is_file() for place in (ROOT, folder))})


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


def test_all_documents_are_looked_at():
    assert {"README.md", "NEWS.md", "doc/architecture.md", "ragent/connection/README.md"} <= set(map(_name, DOCUMENTS))
    assert "ragent/connection/README.md" in map(_name, OF_FOLDERS) and "doc/laws.md" not in map(_name, OF_FOLDERS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_named_functions_are_where_it_says(document):
    assert missing_functions(document.read_text(), document.parent) == []


@pytest.mark.parametrize("document", OF_FOLDERS, ids=_name)
def test_a_folder_has_what_its_document_names(document):
    assert document.read_text().startswith("# ")
    assert missing_in_folder(document.read_text(), document.parent) == []


@pytest.mark.parametrize("planted", ["`no_such.h`", "`bytes/no_such.c`", "`../keeper/no_such.c`", "`no_such/`", "`no_such_function()`",
                                     "`ragent/keeper/no_such.c`"])
def test_a_planted_name_of_a_folder_is_missed(planted):
    text = "`connection.h`, `bytes/kept.c`, `../keeper/notes.h`, `bytes/`, `act_on_deadline()`, `keeper_run()`, `doc/`"
    assert missing_in_folder(text, ROOT / "ragent/connection") == []
    assert missing_in_folder(text + planted, ROOT / "ragent/connection") == [planted.strip("`()")]


def test_a_planted_function_of_a_folder_is_missed():
    assert missing_functions("`bytes/kept.c: kept_append`", ROOT / "ragent/connection") == []
    assert missing_functions("`bytes/kept.c: no_such_function`", ROOT / "ragent/connection")
    assert missing_functions("`bytes/kept.c: kept_append`", ROOT / "ragent/keeper")


def rows_of(journey):
    """The cells of each row of its tables, the heads included and the lines below them not."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", journey, re.MULTILINE)]
    return [row for row in rows if set("".join(row)) != {"-"}]


def flaws_of_journey(journey):
    rows = rows_of(journey)
    if rows.count(JOURNEY_HEAD) != 1 or rows[0] != JOURNEY_HEAD:
        return ["not one table of what happens"]
    flaws = [f"row {row}" for row in rows[1:] if len(row) != 2 or not NAMED_FUNCTION.fullmatch(row[1]) or missing_functions(row[1])]
    if not ROWS_LEAST <= len(rows) - 1 <= ROWS_MOST:
        flaws.append(f"{len(rows) - 1} rows")
    return flaws


def flaws_of_journeys(text):
    """What is wrong with the journeys through the code. Each has one table, and each of its rows a function that does what happens."""
    journeys = list(JOURNEY.finditer(text))
    flaws = [f"journey {journey[1]}: {flaw}" for journey in journeys for flaw in flaws_of_journey(journey[0])]
    if [int(journey[1]) for journey in journeys] != list(range(1, JOURNEYS + 1)):
        flaws.append(f"not the journeys 1 to {JOURNEYS}")
    return flaws


def test_each_journey_has_its_functions():
    assert flaws_of_journeys((ROOT / "doc/architecture.md").read_text()) == []


def _journeys(**of_the_last):
    """A text with whole journeys; the last one has another head, row or number of rows."""
    def journey(number, head="| what happens | file: function |", row="| it begins | `ragent/process/main.c: main` |", rows=ROWS_LEAST):
        return "\n".join([f"## Journey {number}: a way", "", "It goes on.", "", head, "| --- | --- |"] + [row] * rows) + "\n\n"
    return "".join(journey(n) for n in range(1, JOURNEYS)) + journey(JOURNEYS, **of_the_last)


@pytest.mark.parametrize("planted", [
    {"rows": ROWS_LEAST - 1}, {"rows": ROWS_MOST + 1}, {"rows": 0}, {"head": "| what happens | function |"},
    {"row": "| it begins | `ragent/process/main.c: no_such_function` |"}, {"row": "| it begins | `ragent/no_such_file.c: main` |"},
    {"row": "| it begins | main |"}, {"row": "| it begins |"}, {"row": "| it begins | `ragent/process/main.c: main` | twice |"}], ids=str)
def test_a_planted_flaw_of_a_journey_is_found(planted):
    assert flaws_of_journeys(_journeys()) == []
    assert flaws_of_journeys(_journeys(**planted))


@pytest.mark.parametrize("change", [lambda text: text.replace("## Journey 3:", "## Way 3:"), lambda text: text + "## Journey 7: on\n",
                                    lambda text: text.replace("## Journey 4:", "## Journey 5:")])
def test_a_journey_too_few_or_too_many_is_found(change):
    assert f"not the journeys 1 to {JOURNEYS}" in flaws_of_journeys(change(_journeys()))


def unnamed_folders(text, folders):
    """Folders with C sources that the table of parts neither names nor has a folder above."""
    named = [name for name in FOLDER_OF_FOLDER.findall(text.split("\n## Parts\n")[1].split("\n## ")[0])]
    return [folder for folder in folders if not any(f"{folder}/".startswith(name) for name in named)]


def _folders():
    within = ("proto", "smtp", "net", "conf", "ragent", "sslagent", "smtpproxy", "csslctl", "bench", "front")
    folders = {_name(path.parent) for path in _sources((".c", ".h")) if _name(path).split("/")[0] in within}
    return sorted(folders - {"ragent", "sslagent", "smtpproxy"})  # these have only counters.h


def test_each_folder_is_a_part():
    assert unnamed_folders((ROOT / "doc/architecture.md").read_text(), _folders()) == []


def test_a_planted_folder_is_no_part():
    text = (ROOT / "doc/architecture.md").read_text()
    assert unnamed_folders(text, ["ragent/no_such", "ragent/link"]) == ["ragent/no_such"]
    assert unnamed_folders(text.replace("`smtpproxy/queue/`", ""), _folders())


@pytest.mark.parametrize("planted", ["`ragent/process/main.c: no_such_function`", "`ragent/no_such_file.c: main`",
                                     "`ragent/process/main.c` (`no_such_function`)", "`ragent/process/main.c`\n(`no_such_function`)"])
def test_a_planted_function_is_missed(planted):
    assert missing_functions(planted)


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_named_files_exist(document):
    assert missing_files(document.read_text(), document.parent) == []


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


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links_lead_somewhere(document):
    assert broken_links(document, document.read_text()) == []


@pytest.mark.parametrize("planted", ["[no](no_such.md)", "[no](laws.md#law-99)", "[no](#no-such-heading)", "[no](../README.md#no-such)"])
def test_a_planted_link_is_found(planted):
    assert broken_links(ROOT / "doc/trust.md", (ROOT / "doc/trust.md").read_text() + planted)
