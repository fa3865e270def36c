"""The house rules that a program can check, over every file that git knows."""

import collections
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.lib.pinned import pinned_program  # noqa: E402

# Which folders a folder may include from, beside itself.
MAY_INCLUDE = {
    "proto": set(),
    "smtp": {"proto"},
    "net": {"proto", "smtp"},
    "conf": {"proto", "smtp", "net"},
    "sslagent": {"proto", "smtp", "net", "conf"},
    "ragent": {"proto", "smtp", "net", "conf"},
    "smtpproxy": {"proto", "smtp", "net", "conf"},
    "csslctl": {"proto", "smtp", "net", "conf"},
    "bench": {"proto", "smtp", "net", "conf", "sslagent", "smtpproxy"},  # it measures the agents' own code
}

# Folders that keep to the one dialect. sizeof has brackets for a type only, which the compiler demands.
ONE_DIALECT = ("proto", "smtp", "net", "conf", "bench", "ragent", "sslagent", "smtpproxy", "csslctl")
NOT_OUR_DIALECT = {
    "a hand-written container_of (net/memory/container_of.h)": r"\(char \*\)\s*\w+ - offsetof\(",
    "sizeof(variable)": r"\bsizeof\((?!(struct|union|enum|char|int|unsigned|counter|\w+_t|atomic_\w+)\b)\*?[a-z]",
}

LINES_MAX = 600
LINES_MAX_OF_SCENARIOS = 800
FUNCTION_LINES_MAX = 40


def _files(*suffixes):
    known = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True, check=True,
                           stdout=subprocess.PIPE).stdout.split("\n")
    return [ROOT / name for name in known if name.endswith(suffixes) and (ROOT / name).is_file()]


def _matches(pattern, files):
    return [f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for path in files for number, line in enumerate(path.read_text().splitlines(), 1) if re.search(pattern, line)]


def _none(found):
    assert not found, "\n" + "\n".join(found)


def test_only_net_closes_handles():
    _none(_matches(r"\buv_close\s*\(", [f for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] != "net"]))


# A worker counts the handles on its loop, and lends the buffer that its objects read into.
OF_HANDLES = r"\bworker_(hold|release|read_buffer)\s*\("


def test_only_net_makes_handles():
    _none(_matches(OF_HANDLES, [f for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] not in ("net", "tests")]))


@pytest.mark.parametrize("folder", ["proto", "smtp"])
def test_bytes_and_states_have_no_sockets_no_loop_no_log_no_clock(folder):
    _none(_matches(r'#include\s*(<uv\.h>|<sys/socket\.h>|"net/)|\b(clock_gettime|time|gettimeofday)\(',
                   [f for f in _files(".c", ".h") if f.parent == ROOT / folder]))


# Who looks at record headers in the agent: the carriers, at the client's; the handshake, at those that OpenSSL wrote; a stream whose link
# is lost, at those that it holds.
LOOK_AT_HEADERS = {"sslagent/carrier/link.c", "sslagent/carrier/direct.c", "sslagent/carrier/link_stream.c", "sslagent/tls/handshake.c",
                   "sslagent/tls/export.c"}
LOOKS_AT_HEADER = r"\btls_record_(scan|scan_run|take)\s*\(|\brecord->bytes\[|\bwire_load_u16\(\s*record\b"


def test_the_agent_parses_each_record_header_once():
    """The carrier hands a struct tls_record on; nobody behind it looks at the header's bytes again."""
    files = [f for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] == "sslagent"]
    _none(_matches(LOOKS_AT_HEADER, [f for f in files if str(f.relative_to(ROOT)) not in LOOK_AT_HEADERS]))


@pytest.mark.parametrize("planted", ["if (tls_record_scan(data, len, &h) != 0)", "x = record->bytes[0];", "wire_load_u16(record + 3)"])
def test_a_second_parse_would_be_seen(planted):
    assert re.search(LOOKS_AT_HEADER, planted)


BY_PATH = r"\b(chmod|l?chown|fchmodat)\s*\(|\bfchownat\s*\((?!.*\bAT_EMPTY_PATH\b)"
# Files are made by log_open_file(), which root may call for a folder of another user, and by the audit of test builds.
MAKES_FILES = r"\bO_CREAT\b|\bfopen\s*\([^)]*\"[aw]|\bcreat\s*\("
MAKERS_OF_FILES = {"net/report/log_file.c", "net/points/audit.c"}


def _of_daemons():
    return [f for f in _files(".c") if f.relative_to(ROOT).parts[0] in ("net", "conf", "ragent", "sslagent", "smtpproxy")]


def test_no_daemon_changes_owner_or_mode_by_path():
    """Another user may own the folder and put a link in its place: umask(2) before, or an open descriptor of a file that was looked at."""
    _none(_matches(BY_PATH, _of_daemons()))


def test_daemons_make_files_in_one_place_only():
    _none(_matches(MAKES_FILES, [f for f in _of_daemons() if str(f.relative_to(ROOT)) not in MAKERS_OF_FILES]))


@pytest.mark.parametrize("planted,seen", [("if (chmod(path, mode) < 0)", True), ("chown(path, user, group);", True),
                                          ('fchownat(fd, "", user, group, AT_EMPTY_PATH)', False), ("fchown(fd, user, group)", False),
                                          ("fchownat(AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW)", True)])
def test_a_planted_change_by_path_is_seen(planted, seen):
    assert bool(re.search(BY_PATH, planted)) == seen


@pytest.mark.parametrize("planted,seen", [("open(path, O_WRONLY | O_CREAT, 0600)", True), ('fopen(path, "we")', True),
                                          ('fopen(path, "re")', False)])
def test_a_planted_maker_of_files_is_seen(planted, seen):
    assert bool(re.search(MAKES_FILES, planted)) == seen


def test_smtp_allocates_nothing():
    _none(_matches(r"\b(malloc|calloc|realloc|strdup|asprintf)\s*\(", [f for f in _files(".c") if f.parent == ROOT / "smtp"]))


def test_dependencies_go_one_way():
    found = []
    for path in _files(".c", ".h"):
        folder = path.relative_to(ROOT).parts[0]
        if folder not in MAY_INCLUDE:
            continue
        for other in MAY_INCLUDE.keys() - MAY_INCLUDE[folder] - {folder}:
            found += _matches(rf'#include\s*"{other}/', [path])
    _none(found)


@pytest.mark.parametrize("what", NOT_OUR_DIALECT)
def test_folders_of_one_dialect_have_no_other(what):
    files = [f for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] in ONE_DIALECT and f != ROOT / "net/memory/container_of.h"]
    _none(_matches(NOT_OUR_DIALECT[what], files))


def test_the_result_of_a_call_is_r():
    """`error` is a name for members and parameters that hold an error."""
    files = [f for f in _files(".c") if f.relative_to(ROOT).parts[0] in ONE_DIALECT]
    _none(_matches(r"^\t+(const )?int (\w+, )*error\b\s*=|^\t+error = \w+\(", files))


def test_files_are_of_readable_length():
    found = []
    for path in _files(".c", ".h", ".py", ".sh"):
        lines = len(path.read_text().splitlines())
        name = path.relative_to(ROOT)
        if lines > (LINES_MAX_OF_SCENARIOS if name.parts[:2] == ("tests", "scenario") else LINES_MAX):
            found.append(f"{name}: {lines} lines")
    _none(found)


def long_functions(text):
    """Functions with more lines between their braces than a reader keeps in mind."""
    bodies = re.findall(r"^([^\n]*)\n\{\n(.*?)^\}", text, re.S | re.M)
    return [f"{head}: {body.count(chr(10))} lines" for head, body in bodies if body.count("\n") > FUNCTION_LINES_MAX]


def test_functions_are_of_readable_length():
    files = [f for f in _files(".c") if f.relative_to(ROOT).parts[0] != "tests"]
    _none([f"{f.relative_to(ROOT)}: {found}" for f in files for found in long_functions(f.read_text())])


def test_a_planted_long_function_is_seen():
    assert long_functions("static int f(void)\n{\n" + "\tg();\n" * 41 + "}\n") == ["static int f(void): 41 lines"]
    assert not long_functions("static int f(void)\n{\n" + "\tg();\n" * 40 + "}\n")


def test_nothing_is_left_to_do():
    marks = "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3))
    _none(_matches(rf"\b({marks})\b", _files(".c", ".h", ".py", ".sh", ".proto", ".md", "meson.build")))


FUNCTION_BODY = re.compile(r"^\{\n(.*?)^\}", re.S | re.M)
BARE_ERROR = re.compile(r"^\t+int (?:\w+(?: = [^,;(]*)?, )*error(?:, \w+)*;", re.M)


def bare_errors(text):
    """Locals `int error;`, which a function fills with the result of a call. Members of structs may have that name."""
    return [found.strip() for body in FUNCTION_BODY.findall(text) for found in BARE_ERROR.findall(body)]


def test_no_local_for_a_result_is_named_error():
    files = [f for f in _files(".c") if f.relative_to(ROOT).parts[0] in ONE_DIALECT]
    _none([f"{path.relative_to(ROOT)}: {found}" for path in files for found in bare_errors(path.read_text())])


@pytest.mark.parametrize("planted", ["int error;", "int n, error;", "int n = 1, error;", "int error, n;"])
def test_a_planted_local_named_error_is_found(planted):
    assert bare_errors(f"static int g(void)\n{{\n\tint r;\n\t{planted}\n}}\n") == [planted]


def test_a_member_and_a_parameter_named_error_are_none():
    assert not bare_errors("struct asked {\n\tint error;\n};\n\nint f(int error)\n{\n\tint r = g(error);\n}\n")


def test_no_cast_by_hand_takes_the_place_of_container_of():
    """container_of compares the types; a cast by hand does not."""
    _none(_matches(r"-\s*offsetof\(", [f for f in _files(".c", ".h") if f.name != "container_of.h"]))


def test_secrets_are_not_compared_with_memcmp():
    _none(_matches(r"\bmemcmp\s*\([^;]*\b(mac|tag|secret|psk|proof)\b",
                   [f for f in _files(".c") if f.relative_to(ROOT).parts[0] != "tests"]))


# Memory of OpenSSL is for keys and secrets, which OPENSSL_clear_free wipes, and for what passes to or from OpenSSL: in sslagent/tls.
MEMORY_OF_OPENSSL = r"\bOPENSSL_(free|strdup|strndup|memdup|realloc)\("


def test_memory_without_secrets_is_not_from_openssl():
    _none(_matches(MEMORY_OF_OPENSSL, [f for f in _files(".c", ".h") if f.relative_to(ROOT).parts[0] != "tests"
                                       and f.parent != ROOT / "sslagent/tls"]))


@pytest.mark.parametrize("planted", ["\tOPENSSL_free(table->buckets);", "name = OPENSSL_strdup(text);"])
def test_planted_memory_of_openssl_would_be_seen(planted):
    assert re.search(MEMORY_OF_OPENSSL, planted)


COMMENT = re.compile(r"/\*.*?\*/", re.S)
DECLARED = re.compile(r"^[a-z][\w \*]*?\b(\w+)\([^;{]*\)(?: __attribute__[^;]*)?;", re.M)


def without_caller(headers, sources):
    """Functions that a header declares, and that nobody names beside their declaration and their definition."""
    said = collections.Counter(word for text in [*headers, *sources] for word in re.findall(r"\b[a-z]\w+\b", COMMENT.sub("", text)))
    return sorted({name for text in headers for name in DECLARED.findall(text) if said[name] <= 2})


def test_declared_functions_have_a_caller():
    headers, sources = _files(".h"), _files(".c")
    ours = [f.read_text() for f in headers if f.relative_to(ROOT).parts[0] != "tests"]
    tests = [f.read_text() for f in headers if f.relative_to(ROOT).parts[0] == "tests"]
    _none(without_caller(ours, [f.read_text() for f in sources] + tests))


def test_a_planted_function_without_a_caller_is_found():
    assert without_caller(["int used(void);\nint dead(int x);\n"], ["int used(void)\n{}\nint dead(int x)\n{ return used(); } /* dead */"]) == ["dead"]


def test_every_source_says_first_what_it_is():
    _none([str(path.relative_to(ROOT)) for path in _files(".c", ".h") if not path.read_text().startswith("/* ")])


def has_no_wish(*command):
    done = subprocess.run(command, cwd=ROOT, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_formatter_has_no_wish():
    """Of one version, because others break lines elsewhere."""
    has_no_wish(*pinned_program("clang-format"), "--dry-run", "--Werror", *map(str, _files(".c", ".h")))


def test_the_linter_of_shell_has_no_wish():
    if not shutil.which("shellcheck"):
        pytest.skip("needs shellcheck")
    has_no_wish("shellcheck", *map(str, _files(".sh", "/cssl", ".ci/run")), str(ROOT / "cssl"))
