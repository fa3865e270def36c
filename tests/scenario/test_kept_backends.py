"""Kept connections to a backend: one that ends as the next request comes costs no idempotent request, and bytes that come behind an
answer reach no other client."""

import contextlib

import pytest

from tests.lib.edits import edits, nobody_moves
from tests.lib.fading_backend import FadingBackend
from tests.scenario.test_smuggling import reuses

pytestmark = pytest.mark.limit(60)


@pytest.fixture(scope="module")
def backend():
    with FadingBackend() as backend_:
        yield backend_


@pytest.fixture(scope="module")
def shares(start_module_cluster, backend):
    return start_module_cluster("--agents", "1", "--backend", backend.address, edit=edits(nobody_moves, reuses))


@pytest.fixture(scope="module")
def owns(start_module_cluster, backend):
    """`reuse: off`: each client has a backend connection of its own."""
    return start_module_cluster("--agents", "1", "--backend", backend.address, edit=nobody_moves)


def ask(web, method, path):
    web.request(method, path)
    answer = web.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize("end", ["/fin", "/reset"])
@pytest.mark.parametrize("method, again", [("GET", True), ("DELETE", True), ("POST", False)])
def test_a_request_that_a_kept_connection_did_not_answer_is_asked_once_more(owns, backend, end, method, again):
    before = owns.counter("backend_asked_again")
    with contextlib.closing(owns.http()) as web:
        assert ask(web, "GET", end) == (200, end)
        del backend.asked[:]
        assert ask(web, method, "/next") == ((200, "/next") if again else (502, "Bad Gateway\n"))
        assert backend.asked == [(method, "/next")] * (2 if again else 1)
    assert owns.counter("backend_asked_again") == before + again


def test_another_client_gets_its_answer_from_a_new_connection(shares, backend):
    with contextlib.closing(shares.http()) as one, contextlib.closing(shares.http()) as other:
        assert ask(one, "GET", "/fin") == (200, "/fin")
        del backend.asked[:]
        assert ask(other, "GET", "/next") == (200, "/next")
        assert backend.asked == [("GET", "/next")] * 2


def test_a_new_connection_that_ends_without_an_answer_is_not_followed_by_another(owns, backend):
    """The request is asked twice, and no third time."""
    with contextlib.closing(owns.http()) as web:
        assert ask(web, "GET", "/fin") == (200, "/fin")
        del backend.asked[:]
        assert ask(web, "GET", "/fin") == (200, "/fin")
        assert ask(web, "GET", "/fin") == (200, "/fin")
        assert backend.asked == [("GET", "/fin")] * 4


@pytest.mark.parametrize("method, path", [("GET", "/304"), ("GET", "/204"), ("HEAD", "/")])
def test_a_body_behind_an_answer_that_has_none_reaches_no_other_client(shares, method, path):
    with contextlib.closing(shares.http()) as one, contextlib.closing(shares.http()) as other:
        assert ask(one, method, path)[1] == ""
        assert ask(other, "GET", "/mine") == (200, "/mine")
