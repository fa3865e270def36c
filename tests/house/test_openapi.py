"""The OpenAPI document and the table of routes describe the same API."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUTES = ROOT / "ragent/control/routes"
PLACEHOLDERS = {"{connection}": "ID", "{session}": "ID", "{agent}": "NAME"}


def _routes():
    """{"GET /v1/connections": {"limit", ...}, ...} of the C tables."""
    defined = dict(re.findall(r'#define (ROUTE_ID|ROUTE_NAME)\s+"(\w+)"', (ROUTES / "control_route.h").read_text()))
    tables = "".join(path.read_text() for path in sorted(ROUTES.glob("*.c")))
    found = {}
    for method, pattern, query in re.findall(r'\{ "([A-Z]+)", ((?:"[^"]*"|ROUTE_ID|ROUTE_NAME|\s)+), \w+,\s*(\{[^}]*\})?', tables):
        path = "".join(defined.get(piece, piece.strip('"')) for piece in re.findall(r'"[^"]*"|ROUTE_ID|ROUTE_NAME', pattern))
        found[f"{method} {path}"] = set(re.findall(r'"(\w+)"', query))
    return found


def _described():
    """The same from the document, whose layout is regular enough to be read line by line."""
    text = (ROOT / "ragent/control/openapi.yaml").read_text()
    names = {key: name for key, name in re.findall(r"^    (\w+):\s+(?:\{ )?name: (\w+)(?:\n     |,) in: query", text, re.M)}
    found, path, operation = {}, None, None
    for line in text[text.index("\npaths:"):text.index("\ncomponents:")].splitlines():
        if match := re.match(r"  (/.*):$", line):
            path = re.sub(r"\{\w+\}", lambda m: PLACEHOLDERS[m[0]], match[1])
        elif match := re.match(r"    (get|post|put):$", line):
            operation = found.setdefault(f"{match[1].upper()} {path}", set())
        elif (match := re.search(r"components/parameters/(\w+)", line)) and match[1] in names:
            operation.add(names[match[1]])
    return found


def test_every_route_is_described_and_the_other_way_round():
    routes, described = _routes(), _described()
    assert len(routes) > 20
    assert routes == described


def test_some_route_takes_parameters():
    assert "server_name" in _routes()["GET /v1/sessions"] and "server_name" in _described()["GET /v1/sessions"]


def test_revoke_takes_the_criteria_that_sessions_are_listed_by():
    """Else people would revoke others than they have listed."""
    routes = (ROUTES / "routes_sessions.c").read_text()
    criteria = set(re.findall(r'^\t\{ "(\w+)", criterion_\w+, FOUND_', routes, re.M))
    assert len(criteria) >= 9
    for path, beside in (("/v1/sessions", {"limit", "after"}), ("/v1/sessions/count", set())):
        row = re.search(r'\{ "GET", "%s", \w+,\s*\{([^}]*)\}' % re.escape(path), routes).group(1)
        assert set(re.findall(r'"(\w+)"', row)) == criteria - {"client_address"} | beside  # its older name: `client` takes networks, too
    body = re.search(r'"POST", "/v1/sessions/revoke".*?\.help', routes, re.S).group(0)
    assert set(re.findall(r'\\"(\w+)\\": ', body)) == criteria - {"client_address"} | {"session_id", "all"}
