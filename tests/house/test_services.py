"""Services are values: code outside a service's rows and folder never asks which service a connection has."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TOPS = ("proto", "smtp", "net", "conf", "ragent", "sslagent", "smtpproxy", "csslctl", "bench")

# Lines that may name a service outside its folder.
ALLOWED = {
    "sslagent/service/service.c": [r"\[CONF_(\w+)\] = &service_(?i:\1),",  # the table
                                   r"\*from = \(struct service\)\{ \.kind = CONF_TCP \};"],  # a conversation that was taken away is none
    "sslagent/service/service.h": [r"return &service_traits\[s->following == SERVICE_FOLLOWED \? s->kind : CONF_TCP\];"],
    "csslctl/api.c": [r".*\bstrcmp\(scheme, \"http\"\).*"],  # of a URL
}


def _names():
    return re.findall(r"^\s*X\((\w+), \"", (ROOT / "conf/service_traits.h").read_text(), re.MULTILINE)


def _named_in(text, name):
    """Lines of a source that use the name of a service as a value, or compare a text with it."""
    asks = re.compile(rf"\bCONF_{name}\b|\bstr(?:n|case|ncase)?cmp\([^;]*\"{name.lower()}\"")
    return [line.strip() for line in text.splitlines() if asks.search(line)]


def _said_elsewhere(sources, name):
    """"path: line" for each line of @sources (path -> text) that says the service's name and is neither in its folder nor allowed."""
    own = f"sslagent/service/{name.lower()}"
    return [f"{where}: {line}" for where, text in sources.items() if not where.startswith((f"{own}/", f"{own}.c"))
            for line in _named_in(text, name) if not any(re.fullmatch(form, line) for form in ALLOWED.get(where, []))]


def _compared_in(script, name):
    """Lines of a script that compare something with the name of a service."""
    quoted = rf"[\"'`]{name.lower()}[\"'`]"
    return [line.strip() for line in script.splitlines() if re.search(rf"[!=]==?\s*{quoted}|{quoted}\s*[!=]==?|\bcase {quoted}", line)]


def test_there_are_services():
    assert {"TCP", "HTTP"} <= set(_names())


@pytest.mark.parametrize("name", _names())
def test_a_services_name_is_said_in_its_own_place_only(name):
    sources = {str(path.relative_to(ROOT)): path.read_text() for top in TOPS for path in sorted(ROOT.glob(f"{top}/**/*.[ch]"))}
    found = _said_elsewhere(sources, name)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("name", _names())
def test_the_dashboard_asks_for_no_service_by_its_name(name):
    found = [f"{path.name}: {line}" for path in ROOT.glob("ragent/dashboard/*.js") for line in _compared_in(path.read_text(), name)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("planted", ['(l) => l.service === "smtp"', "if ('smtp' == l.service)", 'case "smtp":'])
def test_a_planted_comparison_in_the_dashboard_is_seen(planted):
    assert _compared_in(planted, "SMTP")


@pytest.mark.parametrize("where, line", [
    ("sslagent/connection/flow/flow.c", "	if (c->service.kind != CONF_HTTP)"),
    ("sslagent/service/service.c", "	if (s->kind == CONF_HTTP)"),
    ("sslagent/service/service.c", "	[CONF_HTTP] = &service_tcp,"),
    ("sslagent/service/service.h", "	return s->kind == CONF_HTTP;"),
    ("sslagent/service/h2/h2.c", "	if (kind == CONF_HTTP)"),
    ("conf/service_traits.c", "	case CONF_HTTP:"),
    ("ragent/connection/takeover.c", '	if (strcmp(f->service->name, "http") == 0)'),
    ("csslctl/command_status.c", '	return strcasecmp(listener->service, "http") == 0;'),
])
def test_a_planted_name_outside_its_place_is_found(where, line):
    assert _said_elsewhere({where: f"{line}\n"}, "HTTP") == [f"{where}: {line.strip()}"]


@pytest.mark.parametrize("where, line", [
    ("sslagent/service/http/http.c", "	if (s->kind == CONF_HTTP)"),
    ("sslagent/service/service.c", "	[CONF_HTTP] = &service_http,"),
    ("csslctl/api.c", '	if (strcmp(scheme, "http") != 0)'),
])
def test_a_name_in_its_own_place_is_taken(where, line):
    assert not _said_elsewhere({where: f"{line}\n"}, "HTTP")


def test_a_comparison_would_be_seen():
    assert _named_in("	if (c->service.kind != CONF_TCP)\n", "TCP") == ["if (c->service.kind != CONF_TCP)"]
    assert not _named_in("	if (c->service.kind != CONF_TCP6)\n", "TCP")


# --- SMTP is the only dialogue in clear ---

# RAgent's and conf's files that say its words or know its trait. A second protocol needs a table of them (doc/hacking.md).
SMTP_OUTSIDE = {"ragent/connection/connection_arrival.c", "ragent/connection/connection_preamble.c",
                "ragent/connection/connection_stream.c", "ragent/control/operations/operations.c"}


def _begin_as_smtp(rows):
    """The services of CONF_SERVICES whose clients get the banner of SMTP."""
    return [name for name, traits in re.findall(r"\bX\((\w+), (\"[^)]*)\)", rows) if "SERVICE_MAY_START_AS_SMTP" in traits]


def _says_smtp(source):
    return re.search(r"\bsmtp_\w+|\bSMTP_\w+|_AS_SMTP\b", source) is not None


def _rows():
    return re.search(r"^#define CONF_SERVICES\(X\)(.*?)\n\n", (ROOT / "conf/service_traits.h").read_text(), re.MULTILINE | re.DOTALL).group(1)


def test_smtp_is_the_only_service_with_a_dialogue_in_clear():
    assert _begin_as_smtp(_rows()) == ["SMTP"], "its clients would be greeted in SMTP: doc/hacking.md, 'begin in clear'"


def test_a_planted_second_service_that_would_greet_in_smtp_is_found():
    planted = ('\\\n\tX(IMAP, "imap", SERVICE_NEVER_RESTS, SERVICE_CUT_BY_LOSS, SERVICE_BACKEND_FIRST, SERVICE_HALVES_END, \\\n'
               '\t\tSERVICE_NOT_FOLLOWED, SERVICE_MAY_START_AS_SMTP, SERVICE_OWN_BACKENDS, "mail boxes behind STARTTLS")')
    assert _begin_as_smtp(_rows() + planted) == ["SMTP", "IMAP"]


def test_ragent_says_words_of_smtp_in_the_listed_files_only():
    assert {str(path.relative_to(ROOT)) for path in ROOT.glob("ragent/**/*.[ch]") if _says_smtp(path.read_text())} == SMTP_OUTSIDE


def test_a_planted_word_of_smtp_is_seen():
    assert _says_smtp("	smtp_own_write(&w, SMTP_OWN_BYE);") and _says_smtp("	return start == SERVICE_MAY_START_AS_SMTP;")
    assert not _says_smtp("	preamble_end(c, words);")
