"""CSSL-SF: handshakes go round, application data follows the client's address."""

import contextlib
import math
from collections import Counter

import pytest

from tests.lib import edits
from tests.lib.build import scaled
from tests.lib.storm import Storm
from tests.lib.waiting import wait_until

CONNECTIONS = scaled(300, 30)


def get(web, path="/5"):
    web.request("GET", path)
    response = web.getresponse()
    response.read()
    return response.headers["X-CSSL-Agent"]


def of_agents(cluster, name):
    counters = cluster.counters()
    return {agent: counters[agent][name] for agent in cluster.agents}


def storm(cluster, version, **options):
    with Storm(cluster.sf, clients=CONNECTIONS, version=version, get="/1k", ca=cluster.ca, **options) as clients:
        assert clients("full") == {"full": CONNECTIONS, "resumed": 0, "failed": 0}
    wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 0)


def assert_even(counts, workers):
    assert sum(counts.values()) == CONNECTIONS
    assert all(abs(n - CONNECTIONS / len(counts)) <= workers for n in counts.values()), counts


def made_by_storm(cluster, version):
    """The counts of each agent meanwhile, by counter and agent."""
    names = ("handshakes_full", "bytes_to_client", "handed_off", "adopted")
    before = {name: of_agents(cluster, name) for name in names}
    storm(cluster, version)
    return {name: {agent: n - before[name][agent] for agent, n in of_agents(cluster, name).items()} for name in names}


@pytest.fixture(scope="module", params=[1, 2], ids=["1 worker", "2 workers"])
def spread(request, start_module_cluster):
    """A cluster with so many workers in each daemon, and the agent of the clients' address."""
    cluster = start_module_cluster("--agents", "3", "--workers", str(request.param))
    with contextlib.closing(cluster.http()) as web:
        affinity = get(web)
        assert cluster.connection_of(web.sock)["affinity_agent"] == affinity
    wait_until(lambda: cluster.counters()["ragent"]["connections_open"] == 0)
    return cluster, affinity, request.param


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_handshakes_are_even_and_all_bulk_is_on_the_affinity_agent(spread, version):
    cluster, affinity, workers = spread
    before = cluster.counters()["ragent"]
    made = made_by_storm(cluster, version)
    assert_even(made["handshakes_full"], workers)
    others = [name for name in cluster.agents if name != affinity]
    assert all(made["bytes_to_client"][name] == 0 for name in others), made
    assert made["bytes_to_client"][affinity] >= CONNECTIONS * 1024
    assert all(made["handed_off"][name] == made["handshakes_full"][name] for name in others), made
    assert made["adopted"] == {**dict.fromkeys(others, 0), affinity: sum(made["handed_off"].values())}
    after = cluster.counters()["ragent"]
    assert after["handshakes_kept"] + after["handed_off"] - before["handshakes_kept"] - before["handed_off"] == CONNECTIONS
    assert after["ended_done"] - before["ended_done"] == CONNECTIONS
    # What was broadcast of these connections is forgotten with them.
    wait_until(lambda: not any(of_agents(cluster, "live_parts").values()))


def test_without_migration_bulk_stays_where_the_handshake_was(start_cluster):
    cluster = start_cluster("--agents", "3", "--no-migration")
    for version in ("1.2", "1.3"):
        made = made_by_storm(cluster, version)
        assert_even(made["handshakes_full"], workers=1)
        each = {n / made["handshakes_full"][agent] for agent, n in made["bytes_to_client"].items()}
        assert len(each) == 1 and each.pop() > 1024
    assert cluster.counter("handed_off") == cluster.counter("adopted") == cluster.counter("live_stored") == 0


def owners(cluster, sources):
    """Which agent serves each source address; asked twice, as it must stay."""
    found, context = {}, cluster.context()
    for _ in range(2):
        for source in sources:
            with contextlib.closing(cluster.http(context=context, source=source)) as web:
                agent = get(web)
                connection = wait_until(lambda: cluster.connection_of(web.sock))
                assert connection["owner"] == connection["affinity_agent"] == agent
                assert found.setdefault(source, agent) == agent
    return found


def test_client_addresses_are_spread_over_the_agents_and_stay_there(start_cluster):
    sources = [f"127.0.0.{n}" for n in range(1, 31)]
    cluster = start_cluster("--agents", "3")
    before = owners(cluster, sources)
    assert set(before.values()) == set(cluster.agents)
    assert max(Counter(before.values()).values()) < 25
    # Only the clients of an agent that is lost go to others.
    cluster.kill("a2")
    wait_until(lambda: {a["name"]: a["state"] for a in cluster.status()["agents"]}["a2"] != "ready")
    after = owners(cluster, sources)
    assert all(after[s] == before[s] for s in sources if before[s] != "a2")
    assert {after[s] for s in sources} == {"a1", "a3"}
    cluster.restart("a2")
    assert owners(cluster, sources) == before


def test_ipv6_clients_are_served_alike(start_cluster):
    cluster = start_cluster("--agents", "3", edit=edits.also_listen("sf", "[::1]:0"))
    addresses = next(one["addresses"] for one in cluster.status()["listeners"] if one["name"] == "sf")
    port = next(int(a.removeprefix("[::1]:")) for a in addresses if a.startswith("[::1]:"))
    served = Counter()
    for _ in range(12):
        with contextlib.closing(cluster.http(("::1", port))) as web:
            served[get(web)] += 1
            connection = wait_until(lambda: cluster.connection_of(web.sock))
            assert connection["server"] == f"[::1]:{port}" and connection["owner"] == connection["affinity_agent"]
    assert list(served.values()) == [12]
    assert set(of_agents(cluster, "handshakes_full").values()) == {4}


def held(cluster, count):
    """How many of so many connections of one address each agent owns."""
    context = cluster.context()
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            get(stack.enter_context(contextlib.closing(cluster.http(context=context))))
        return Counter(c["owner"] for c in cluster.connections(listener="sf"))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bound_keeps_one_address_from_sinking_one_agent(start_cluster, workers):
    count = scaled(60, 12)
    cluster = start_cluster("--agents", "3", "--affinity-bound", "1.25", "--workers", str(workers), edit=edits.nobody_moves)
    owned = held(cluster, count)
    assert sum(owned.values()) == count and len(owned) == 3
    assert max(owned.values()) <= math.ceil(1.25 * count / 3), owned


def test_without_a_bound_one_address_is_all_on_one_agent(start_cluster):
    cluster = start_cluster("--agents", "3", edit=edits.nobody_moves)
    assert list(held(cluster, 12).values()) == [12]
