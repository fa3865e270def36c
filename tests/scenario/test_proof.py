"""Agents do not trust RAgent: what it has to show to have a connection adopted, and what no agent does for it. Fault points make
one SSL_ID a lie. Every refusal is counted. If the next SSL_ID is honest, the client notices nothing."""

import contextlib

import pytest

from tests.lib.build import patience
from tests.lib.cluster import ControlError
from tests.lib.edits import nobody_moves
from tests.lib.mover import after, settled
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until

REFUSALS = ("adopts_refused", "adopts_unproven", "adopts_other_listener", "adopts_stale", "sequences_refused")


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "3", edit=nobody_moves)


@pytest.fixture(params=["1.2", "1.3"])
def kept(cluster, request, test_points):
    with Probe(cluster.sl) as probe:
        assert probe("handshake", sni="localhost", alpn="http/1.1", version=request.param)["done"]
        yield probe, keeps_working(probe)
    cluster.clear_faults()


def keeps_working(probe):
    answer = probe("get", path="/100000")
    assert (answer["outcome"], answer["wrong_at"]) == ("complete", None)
    return answer["headers"]["x-cssl-agent"]


def counters(cluster, names=REFUSALS):
    return {name: cluster.counter(name) for name in names}


def risen(cluster, before):
    return {name: count - before[name] for name, count in counters(cluster, before).items() if count != before[name]}


def lie(cluster, *rules):
    cluster.faults(*rules)
    cluster.settle_faults()


def refused_move(cluster, probe, target):
    with pytest.raises(ControlError, match="409"):
        cluster.move(settled(cluster, probe)["id"], target)


def test_another_listener_is_refused(cluster, kept):
    probe, owner = kept
    before, connects = counters(cluster), cluster.counter("backend_connects")
    lie(cluster, "ssl_id.listener fail on r1 times 1")
    refused_move(cluster, probe, after(cluster, owner))
    assert risen(cluster, before) in ({"adopts_refused": 1, "adopts_other_listener": 1},  # it had the live part
                                      {"adopts_refused": 1, "adopts_unproven": 1})  # or tried to open the copy
    assert cluster.counter("backend_connects") == connects  # no byte went anywhere
    assert keeps_working(probe) == owner


def test_without_the_copy_nothing_is_adopted(cluster, kept):
    probe, owner = kept
    before = counters(cluster)
    lie(cluster, "ssl_id.copy fail on r1 times 1")
    refused_move(cluster, probe, after(cluster, owner))
    assert risen(cluster, before) == {"adopts_refused": 1, "adopts_unproven": 1}
    assert keeps_working(probe) == owner


def test_neither_does_the_owner_that_froze_it_take_it_back(cluster, kept):
    probe, owner = kept
    before = counters(cluster)
    lie(cluster, "ssl_id.copy fail on r1 times 2")
    with contextlib.suppress(ControlError):  # the third to be asked got the copy; it may be the target
        cluster.move(settled(cluster, probe)["id"], after(cluster, owner))
    assert keeps_working(probe) != owner
    assert risen(cluster, before) == {"adopts_refused": 2, "adopts_unproven": 2}


@pytest.mark.parametrize("while_", ["at rest", "owned"])
def test_a_record_that_was_sealed_is_not_sealed_again(cluster, kept, while_):
    probe, owner = kept
    connection = settled(cluster, probe)["id"]
    before = counters(cluster)
    lie(cluster, "ssl_id.sequence fail on r1")
    if while_ == "at rest":
        cluster.rest(connection)
        probe("send", text="GET /5 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    else:
        refused_move(cluster, probe, after(cluster, owner))
    wait_until(lambda: risen(cluster, before).get("adopts_refused"), patience(10))
    assert probe("end")["tcp"] == "rst"
    assert risen(cluster, before)["adopts_refused"] == 1


def test_a_loss_that_is_called_a_rest_is_still_in_doubt(start_cluster, test_points):
    """The owner was killed and never froze. RAgent may or may not have got the records that it sealed last."""
    cluster = start_cluster("--agents", "2", edit=nobody_moves, takeover=True)
    with Probe(cluster.sl) as probe:
        assert probe("handshake", sni="localhost", alpn="http/1.1", version="1.3")["done"]
        owner = keeps_working(probe)
        lie(cluster, "ssl_id.cause fail on r1")
        cluster.kill(owner)
        assert keeps_working(probe) != owner
        other = cluster.counters()[next(name for name in cluster.agents if name != owner)]
        assert (other["adopted_in_doubt"], other["key_updates_sent"]) == (1, 1)
