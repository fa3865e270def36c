"""A revoked session resumes nowhere: not by id, not by ticket, not by a child session. All others do."""

import hashlib
import itertools
import signal
import ssl
import time
import urllib.parse

import pytest

from tests.lib.build import patience
from tests.lib.edits import edits, parks_long, tls
from tests.lib.probe import Probe, wait_for_tickets
from tests.lib.trouble import wait_consistent
from tests.lib.waiting import wait_until

KINDS = {
    "1.3": {"version": "1.3"},
    "1.2 id": {"version": "1.2", "tickets": "off"},
    "1.2 ticket": {"version": "1.2"},
}
NUMBERS = itertools.count(10)


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    cluster = start_module_cluster("--agents", "3", "--tls12-tickets",
                                   edit=edits(parks_long, tls("client_ca: ecdsa-ca.pem", "client_certificate: optional")))
    wait_for_tickets(cluster)
    return cluster


class Family:
    """A client with an address and a server name of its own, and its sessions after a full handshake and a resumption. `shows`: the
    options of a handshake with a client certificate."""

    def __init__(self, cluster, folder, kind, **shows):
        self.cluster, self.kind, self._shows = cluster, kind, shows
        number = next(NUMBERS)
        self.source, self.server_name = f"127.0.0.{number}", f"name{number}.cssl.test"
        self.parent, self.child = folder / f"{number}.parent", folder / f"{number}.child"
        assert self.begin()

    def begin(self):
        """A full handshake, and a resumption of it if that succeeds."""
        with Probe(self.cluster.sl, source=self.source) as probe:
            assert not self._handshake(probe)["reused"]
            probe("save_session", file=self.parent)
            self.facts = self._connection()["tls"]
        with Probe(self.cluster.sl, source=self.source) as probe:
            if not self._handshake(probe, session=self.parent)["reused"]:
                return False
            assert self._connection()["tls"]["family_id"] == self.facts["family_id"]
            if self.kind == "1.3":
                probe("save_session", file=self.child)
            else:
                self.child = self.parent  # in TLS 1.2 a resumption makes no new session
        return True

    def _connection(self):
        """RAgent's description of the connection once its handshake is over."""
        return wait_until(lambda: next((c for c in self.cluster.connections(client=self.source) if c["tls"]), None))

    def _handshake(self, probe, **options):
        return probe("handshake", sni=self.server_name, **KINDS[self.kind], **self._shows, **options)

    def resumes(self, *sessions, agents=None):
        """Where, as a list of (session, agent)."""
        found = []
        for session, agent in itertools.product(sessions, agents or self.cluster.agents):
            with Probe(self.cluster.direct[agent], source=self.source) as probe:
                if self._handshake(probe, session=session)["reused"]:
                    found.append((session, agent))
        return found

    def resumes_everywhere(self):
        return len(self.resumes(self.parent, self.child)) == 2 * len(self.cluster.agents)


def revoke(cluster, **what):
    return cluster.control("POST", "/v1/sessions/revoke", what)


def count(cluster, **criteria):
    return cluster.control("GET", "/v1/sessions/count?" + urllib.parse.urlencode(criteria))["sessions"]


REVOCATIONS = {
    "family_id": lambda family: family.facts["family_id"],
    "server_name": lambda family: family.server_name,
    "client_address": lambda family: family.source,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", REVOCATIONS)
def test_a_revoked_family_resumes_nowhere(cluster, tmp_path, kind, by):
    family, other = Family(cluster, tmp_path, kind), Family(cluster, tmp_path, kind)
    assert family.resumes_everywhere()
    answer = revoke(cluster, **{by: REVOCATIONS[by](family)})
    assert (sorted(answer["confirmed"]), answer["unconfirmed"]) == (cluster.agents, [])
    assert family.resumes(family.parent, family.child) == []
    assert other.resumes_everywhere()


def with_certificate(cluster):
    return {"cert": cluster.dir / "client.pem", "key": cluster.dir / "client.key"}


def sha256_of_certificate(cluster):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert((cluster.dir / "client.pem").read_text())).hexdigest()


# Each is met by the family; in place of the last member's value another one is not.
CRITERIA = {
    "version": lambda family: ({"server_name": family.server_name, "version": family.kind[:3]}, "1.2" if family.kind == "1.3" else "1.3"),
    "cipher": lambda family: ({"server_name": family.server_name, "cipher": family.facts["cipher_suite"]},
                              "TLS_CHACHA20_POLY1305_SHA256"),
    "network": lambda family: ({"server_name": family.server_name, "client": "127.0.0.0/24"}, "127.0.1.0/24"),
    "family": lambda family: ({"client": family.source, "family_id": family.facts["family_id"]}, "00" * 16),
    "client certificate": lambda family: ({"client": family.source, "client_certificate": sha256_of_certificate(family.cluster)}, "00" * 32),
    "age": lambda family: ({"client": family.source, "max_age_s": 3600}, 1),
    "old age": lambda family: ({"client": family.source, "max_age_s": 3600, "min_age_s": 1}, 3600),
}


@pytest.mark.sanitized_with("test_a_revoked_family_resumes_nowhere runs every kind", kind="1.3")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", CRITERIA)
def test_what_meets_every_criterion_resumes_nowhere(cluster, tmp_path, kind, by):
    shows = with_certificate(cluster) if by == "client certificate" else {}
    family, other = Family(cluster, tmp_path, kind, **shows), Family(cluster, tmp_path, kind, **shows)
    time.sleep({"age": 3, "old age": 2}.get(by, 0))
    criteria, unlike = CRITERIA[by](family)
    answer = revoke(cluster, **{**criteria, list(criteria)[-1]: unlike})
    assert answer["sessions"] == 0 and family.resumes_everywhere()
    listed = count(cluster, **{next(iter(criteria)): criteria[next(iter(criteria))]})
    wait_until(lambda: count(cluster, **criteria) == listed, patience(5), "all are old enough")
    answer = revoke(cluster, **criteria)
    assert (sorted(answer["confirmed"]), answer["unconfirmed"]) == (cluster.agents, [])
    assert answer["sessions"] == listed
    assert family.resumes(family.parent, family.child) == []
    assert other.resumes_everywhere()


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_that_joins_later_knows_what_criteria_revoked(start_cluster, tmp_path, kind):
    cluster = start_cluster("--agents", "2", "--tls12-tickets", edit=parks_long)
    wait_for_tickets(cluster)
    family, other = Family(cluster, tmp_path, kind), Family(cluster, tmp_path, kind)
    cluster.kill("a2")
    answer = revoke(cluster, server_name=family.server_name, version=kind[:3])
    assert answer["confirmed"] == ["a1"]
    cluster.restart("a2")
    assert family.resumes(family.parent, family.child) == []
    assert other.resumes(other.parent, agents=["a2"])


def test_everything_can_be_revoked_and_everybody_may_begin_anew(cluster, tmp_path):
    families = [Family(cluster, tmp_path, kind) for kind in KINDS]
    revoke(cluster, server_name=families[0].server_name)
    revoke(cluster, client_address=families[1].source)
    revoked, answer = time.monotonic(), revoke(cluster, all=True)
    assert (sorted(answer["confirmed"]), answer["unconfirmed"]) == (cluster.agents, [])
    assert not any(family.resumes(family.parent, family.child) for family in families)
    # Ages travel in whole seconds: so long a new family may still count as one from before.
    wait_until(lambda: time.monotonic() > revoked + 2)
    assert all(family.begin() and family.resumes_everywhere() for family in families)


@pytest.mark.parametrize("kind", ["1.3", "1.2 id"])
def test_a_session_revoked_by_its_id_resumes_nowhere(cluster, tmp_path, kind):
    family, other = Family(cluster, tmp_path, kind), Family(cluster, tmp_path, kind)
    answer = revoke(cluster, session_id=family.facts["session_id"])
    assert sorted(answer["confirmed"]) == cluster.agents and answer["sessions"] == (2 if kind == "1.3" else 1)
    assert family.resumes(family.parent, family.child) == []
    assert other.resumes_everywhere()


def test_the_answer_counts_the_sessions(cluster, tmp_path):
    family = Family(cluster, tmp_path, "1.3")
    assert revoke(cluster, server_name=family.server_name)["sessions"] == 2  # the parent and the child
    assert revoke(cluster, server_name=family.server_name)["sessions"] == 0


@pytest.mark.parametrize("stopped", ["a1", "a2", "a3"])
def test_an_agent_that_does_not_answer_is_named_and_learns_of_it_later(cluster, tmp_path, stopped):
    family = Family(cluster, tmp_path, "1.3")
    others = [name for name in cluster.agents if name != stopped]
    cluster.send_signal(stopped, signal.SIGSTOP)
    try:
        answer = revoke(cluster, family_id=family.facts["family_id"])
        assert (sorted(answer["confirmed"]), answer["unconfirmed"]) == (others, [stopped])
        assert family.resumes(family.parent, family.child, agents=others) == []
    finally:
        cluster.send_signal(stopped, signal.SIGCONT)
    wait_until(lambda: family.resumes(family.parent, family.child, agents=[stopped]) == [], patience(20))
    wait_consistent(cluster)  # the others may have given it up
