"""Laws 1 to 7, where they matter: an owner is lost with records that it sealed and that RAgent never got, and another owner has
different bytes to send. On every kind of link, with each kind of nonces. The audit judges each cluster at its end.
test_mutants.py shows that these scenarios can fail."""

import pytest

from tests.lib.fickle_backend import FickleBackend
from tests.lib.in_doubt import CARRIERS, SITUATIONS, start_place

pytestmark = [pytest.mark.usefixtures("test_points"), pytest.mark.cluster_of("carrier"),
              pytest.mark.every_combination("the laws that all else stands on")]


@pytest.fixture(scope="module")
def places(start_module_cluster):
    """One for each carrier, started when it is needed."""
    started = {}
    with FickleBackend() as main, FickleBackend() as others:
        def place(carrier):
            if carrier not in started:
                started[carrier] = start_place(start_module_cluster, carrier, main, others)
            return started[carrier]
        yield place


@pytest.fixture
def place(places, carrier):
    found = places(carrier)
    yield found
    found.repair()


def rows():
    for carrier in CARRIERS:
        for name, (situation, suites, carriers) in SITUATIONS.items():
            for suite in suites if carriers is None or carrier in carriers else ():
                yield pytest.param(carrier, situation, suite, id=f"{name}, {suite}, {carrier}")


@pytest.mark.parametrize("carrier, situation, suite", list(rows()))
def test_the_laws_hold(place, situation, suite):
    situation(place, suite)
    place.cluster.check_nonces()
    assert not place.broken()
