"""The scenarios of test_laws.py can fail: with a planted mistake (net/points/mutant.h) that breaks a law, the nonce audit fails and
names the law. A mutant that the audit does not notice is a failure. CSSL_MUTANTS=all (`./cssl test --mutants`) runs all
mutants; without it only the quickest run."""

import contextlib
import os
import re

import pytest

from tests.lib.cluster import ControlError
from tests.lib.fickle_backend import FickleBackend
from tests.lib.in_doubt import SITUATIONS, Wronged, start_place
from tests.lib.mutants import BESIDE_THE_AUDIT, MUTANTS
from tests.lib.probe import ProbeError
from tests.lib.waiting import NotWithin

pytestmark = pytest.mark.usefixtures("test_points")

ALL = os.environ.get("CSSL_MUTANTS") == "all"


def seen_in(report, words):
    return next((line.strip() for line in report.splitlines() if re.search(words, line)), None)


@pytest.mark.parametrize("mutant", [pytest.param(m, id=m.name) for m in MUTANTS if m.ci or ALL])
def test_the_audit_sees(start_cluster, record_property, mutant):
    situation, suites, carriers = SITUATIONS[mutant.situation]
    assert mutant.suite in suites and (carriers is None or mutant.carrier in carriers), "test_laws.py has to pass it without a mistake"
    for name in ("mutant", "laws", "situation"):
        record_property(name, mutant.name if name == "mutant" else getattr(mutant, name))
    with FickleBackend() as main, FickleBackend() as others:
        place = start_place(start_cluster, mutant.carrier, main, others, env={"CSSL_MUTANT": mutant.name},
                            reuse_planted=mutant.sees not in BESIDE_THE_AUDIT)
        wrong = []
        # otherwise it is of no interest what becomes of the client
        with contextlib.suppress(AssertionError, NotWithin, ProbeError, ControlError):
            try:
                situation(place, mutant.suite)
            except Wronged as e:
                wrong.append(str(e))
        place.repair()
        seen = seen_in("\n".join([place.cluster.check_nonces(), *place.broken(), *wrong]), mutant.sees)
    assert seen
    record_property("seen", seen)
