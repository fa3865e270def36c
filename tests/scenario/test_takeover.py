"""An agent is lost, by kill -9, by its link, by silence. Each rule for its connections is a test: an answered one rests; an open
request is asked again where that is harmless; in all other cases the client gets a 502 or a fatal alert, never close_notify;
and no POST is done twice."""

import contextlib
import os
import re
import signal
import time

import pytest

from tests.lib import edits
from tests.lib.build import patience, scaled
from tests.lib.held_backend import HALF, HeldBackend
from tests.lib.held_thread import HeldThread
from tests.lib.mover import settled
from tests.lib.probe import Probe
from tests.lib.waiting import wait_until

versions = pytest.mark.parametrize("version", ["1.2", "1.3"])
LOST_S = 3  # health.lost of the example and of ./cssl up


@pytest.fixture(scope="module")
def backend():
    with HeldBackend() as held:
        yield held


TCP_EDITS = edits.edits(edits.alpn("x-close", "tcp", "main"), edits.below("sl", "on_agent_loss: reconnect"), edits.nobody_moves)


@pytest.fixture(scope="module")
def cluster(start_module_cluster, backend):
    """Agents that a test killed are started again by it."""
    return start_module_cluster("--agents", "3", "--backend", backend.address, takeover=True, edit=TCP_EDITS)


class Client(Probe):
    """Its handshake is done and its first request answered: it is at a checkpoint, and its owner known."""

    def __init__(self, cluster, version=None, where=None, **how):
        super().__init__(where or cluster.sf)
        self.cluster = cluster
        assert self("handshake", sni="localhost", alpn="http/1.1", **({"version": version} if version else {}), **how)["done"]
        self.ask("GET", "/first")
        self.heard("GET", "/first")
        self.id, self.owner = (lambda c: (c["id"], c["owner"]))(settled(cluster, self))

    def ask(self, method, path, body=None):
        length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
        self("send", text=f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n{body or ''}")

    def heard(self, method, path):
        """The whole answer to that request, and no other bytes."""
        wanted = f"{method} {path}"
        text = self("read", until="\r\n\r\n" + wanted, timeout_ms=patience(15) * 1000)["text"]
        assert text == f"HTTP/1.1 200 OK\r\nContent-Length: {len(wanted)}\r\n\r\n{wanted}"

    def still_works(self):
        self.ask("GET", "/still")
        self.heard("GET", "/still")

    def records(self):
        return self.cluster.connection(self.id)["client_records"]

    def owner_now(self):
        return settled(self.cluster, self)["owner"]


@contextlib.contextmanager
def lost(cluster, *names):
    """These agents are killed; at the end they run again."""
    for name in names:
        cluster.send_signal(name, signal.SIGKILL)
    try:
        for name in names:
            cluster.wait_gone(name)
        yield
    finally:
        for name in names:
            cluster.restart(name)


def ragent(cluster, name):
    return cluster.counters()["ragent"][name]


def assert_told_of_a_cut(client):
    """A fatal alert, and nothing before it."""
    end = client("end", timeout_ms=patience(15) * 1000)
    assert (end["end"], end["alert_name"], end["bytes"]) == ("alert", "internal error", 0), end


def assert_bad_gateway(client):
    """A 502 that says that it is the last answer, and a complete end."""
    text = client("read", until="\r\n\r\n", timeout_ms=patience(15) * 1000)["text"]
    assert text.startswith("HTTP/1.1 502 ") and "Connection: close" in text
    end = client("end")
    assert (end["tls"], end["tcp"]) == ("close_notify", "fin")


# At the checkpoint


@versions
def test_idle_connections_answer_their_next_request(cluster, version):
    rested = ragent(cluster, "takeovers_rested")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(cluster, version, where=(cluster.sf, cluster.sl)[n % 2])) for n in range(scaled(30))]
        wait_until(lambda: len({client.owner_now() for client in clients[::2]}) == 1)  # sf's go to the agent of their address
        victim = clients[0].owner_now()
        hit = [client for client in clients if client.owner_now() == victim]
        with lost(cluster, victim):
            wait_until(lambda: ragent(cluster, "takeovers_rested") - rested == len(hit))
            assert ragent(cluster, "connections_resting") == len(hit)
            for client in clients:
                client.still_works()
            assert all(client.owner_now() != victim for client in hit)
        for client in clients:
            client.still_works()


@versions
def test_a_connection_outlives_one_agent_after_another(cluster, version):
    with Client(cluster, version) as client:
        for _ in range(3):
            with lost(cluster, client.owner_now()):
                client.still_works()


@versions
def test_connections_outlive_all_agents_at_once(cluster, version):
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(cluster, version)) for _ in range(10)]
        with lost(cluster, *cluster.agents):
            pass
        for client in clients:
            client.still_works()


@versions
def test_a_request_waits_for_an_agent_to_come_up(cluster, version):
    with Client(cluster, version) as client:
        with lost(cluster, *cluster.agents):
            client.ask("GET", "/waits")
        client.heard("GET", "/waits")


@versions
def test_connections_outlive_two_agents_at_once(cluster, version):
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(cluster, version, where=cluster.sl)) for _ in range(9)]
        with lost(cluster, *cluster.agents[:2]):
            for client in clients:
                client.still_works()


@versions
def test_open_requests_end_soon_or_are_answered_when_all_agents_die(cluster, backend, version):
    backend.hold()
    with contextlib.ExitStack() as stack:
        unanswered, half = ([stack.enter_context(Client(cluster, version)) for _ in range(6)] for _ in range(2))
        for n, client in enumerate(unanswered):
            client.ask("GET", f"/held/all/{version}/{n}")
            backend.wait_for(f"/held/all/{version}/{n}")
        for client in half:
            client.ask("GET", "/half")
            client("read", until=HALF.decode())
        with lost(cluster, *cluster.agents):
            died = time.monotonic()
        backend.release()
        for client in half:
            assert client("end")["end"] in ("alert", "rst")
        for n, client in enumerate(unanswered):
            text = client("read", until=f"GET /held/all/{version}/{n}", timeout_ms=patience(6) * 1000)["text"]
            if text:
                assert text.startswith("HTTP/1.1 200 OK")
                client.still_works()
            else:
                assert client("end")["end"] in ("alert", "rst")
        assert time.monotonic() - died < patience(8)


def test_a_client_that_leaves_while_nobody_owns_it_is_let_go(cluster):
    with Client(cluster) as client, lost(cluster, client.owner):
        client("fin")
        assert client("end")["tcp"] == "fin"


# A request without an answer


@versions
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_a_safe_request_is_asked_again(cluster, backend, version, method):
    path = f"/held/{method}/{version}"
    backend.hold()
    with Client(cluster, version) as client:
        client.ask(method, path)
        backend.wait_for(path)
        with lost(cluster, client.owner):
            backend.wait_for(path, 2)
            backend.release()
            client.heard(method, path)
            client.still_works()


@versions
def test_a_post_is_done_at_most_once(cluster, backend, version):
    path = f"/held/post/{version}"
    backend.hold()
    with Client(cluster, version) as client:
        client.ask("POST", path, "order 1")
        backend.wait_for(path)
        with lost(cluster, client.owner):
            assert_bad_gateway(client)
    backend.release()
    assert backend.count(path) == 1


@versions
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_repeatable_request_is_asked_again_when_its_process_is_dead(cluster, backend, version, method):
    path = f"/held/{method}/{version}"
    backend.hold()
    with Client(cluster, version) as client:
        client.ask(method, path, "same again")
        backend.wait_for(path)
        with lost(cluster, client.owner):
            backend.wait_for(path, 2)
            backend.release()
            client.heard(method, path)


def test_only_safe_requests_are_asked_again_where_the_listener_says_so(start_cluster, backend):
    cluster = start_cluster("--agents", "3", "--backend", backend.address, takeover=True,
                            edit=edits.edits(edits.below("sf", "repeat_requests: safe"), edits.nobody_moves))
    for method, times in ("GET", 2), ("PUT", 1), ("DELETE", 1):
        path = f"/held/safe/{method}"
        backend.hold()
        with Client(cluster, "1.3") as client:
            client.ask(method, path)
            backend.wait_for(path)
            with lost(cluster, client.owner):
                if times == 1:
                    assert_bad_gateway(client)
                backend.wait_for(path, times)
                backend.release()
                if times == 2:
                    client.heard(method, path)
        assert backend.count(path) == times


def test_a_killed_process_with_a_thread_in_the_kernel_is_not_known_dead(cluster, backend):
    path = "/held/lives-on"
    backend.hold()
    with Client(cluster, "1.3") as client:
        client.ask("PUT", path, "first")
        backend.wait_for(path)
        with HeldThread(cluster.pid(client.owner)) as thread:
            cluster.send_signal(client.owner, signal.SIGKILL)
            thread.wait_held()
            assert_bad_gateway(client)
            assert backend.count(path) == 1
        backend.release()
        cluster.wait_gone(client.owner)
        cluster.restart(client.owner)


@versions
def test_half_a_head_is_completed_elsewhere(cluster, backend, version):
    path = f"/split-head/{version}"
    with Client(cluster, version) as client:
        before = client.records()
        client("send", text=f"POST {path} HTTP/1.1\r\nHost: loc")
        wait_until(lambda: client.records() > before)
        with lost(cluster, client.owner):
            client("send", text="alhost\r\nContent-Length: 2\r\n\r\nok")
            client.heard("POST", path)
    assert backend.count(path) == 1


@versions
def test_half_a_put_is_completed_elsewhere(cluster, backend, version):
    path = f"/split-body/{version}"
    with Client(cluster, version) as client:
        client("send", text=f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nhalf")
        wait_until(lambda: backend.begun[path] == 1)
        with lost(cluster, client.owner):
            client("send", text="half")
            client.heard("PUT", path)
    assert [r.body for r in backend.seen if r.path == path] == [b"halfhalf"]


@versions
def test_half_a_post_gets_an_error(cluster, backend, version):
    path = f"/split-post/{version}"
    with Client(cluster, version) as client:
        client("send", text=f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nhalf")
        wait_until(lambda: backend.begun[path] == 1)
        with lost(cluster, client.owner):
            assert_bad_gateway(client)
    assert backend.count(path) == 0


@versions
def test_pipelined_requests_are_answered_in_their_order(cluster, backend, version):
    paths = [f"/held/pipe/{version}/{n}" for n in range(3)]
    backend.hold()
    with Client(cluster, version) as client:
        for path in paths:
            client.ask("GET", path)
        backend.wait_for(paths[0])
        with lost(cluster, client.owner):
            backend.wait_for(paths[0], 2)
            backend.release()
            for path in paths:
                client.heard("GET", path)


@versions
def test_a_pipeline_with_a_post_in_it_is_cut(cluster, backend, version):
    path = f"/held/pipe-post/{version}"
    backend.hold()
    with Client(cluster, version) as client:
        client.ask("GET", path)
        client.ask("POST", path, "order 2")
        backend.wait_for(path)
        with lost(cluster, client.owner):
            assert_told_of_a_cut(client)
    backend.release()
    assert sum(r.method == "POST" and r.path == path for r in backend.seen) <= 1


@versions
def test_more_than_is_kept_is_not_asked_again(cluster, backend, version):
    path, body = f"/held/long/{version}", "x" * 100_000
    backend.hold()
    with Client(cluster, version) as client:
        client.ask("PUT", path, body)
        backend.wait_for(path)
        with lost(cluster, client.owner):
            assert_bad_gateway(client)
    backend.release()
    assert backend.count(path) == 1


def test_a_request_with_a_key_update_in_it_is_not_asked_again(cluster, backend):
    backend.hold()
    with Client(cluster, "1.3") as client:
        client("send", text="GET /held/update HTTP/1.1\r\n")
        client("send", text="Host: localhost\r\n\r\n", key_update="before")
        backend.wait_for("/held/update")
        wait_until(lambda: cluster.connection(client.id)["read_generation"] == 1)
        with lost(cluster, client.owner):
            assert_bad_gateway(client)
    backend.release()


# An answer that began


@versions
def test_half_an_answer_ends_with_an_alert(cluster, version):
    with Client(cluster, version) as client:
        client.ask("GET", f"/half/{version}")
        client("read", until=HALF.decode())
        with lost(cluster, client.owner):
            assert_told_of_a_cut(client)


# tcp


@versions
@pytest.mark.parametrize("listener", ["sf", "sl"])
def test_an_untouched_tcp_conversation(cluster, version, listener):
    """sl begins it again, sf tells the client that it is over."""
    with Probe(getattr(cluster, listener)) as probe:
        assert probe("handshake", version=version, sni="localhost", alpn="x-close")["done"]
        owner = settled(cluster, probe)["owner"]
        with lost(cluster, owner):
            if listener == "sf":
                assert_told_of_a_cut(probe)
                return
            assert wait_until(lambda: settled(cluster, probe)["owner"] != owner)
            probe("send", text="GET /tcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
            probe("read", until="GET /tcp")


@versions
@pytest.mark.parametrize("listener", ["sf", "sl"])
def test_a_tcp_conversation_that_began_is_cut(cluster, version, listener):
    with Probe(getattr(cluster, listener)) as probe:
        assert probe("handshake", version=version, sni="localhost", alpn="x-close")["done"]
        probe("send", text="GET /tcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        probe("read", until="GET /tcp")
        with lost(cluster, settled(cluster, probe)["owner"]):
            assert_told_of_a_cut(probe)


# What cannot be taken over


def test_keys_that_could_use_a_nonce_twice_are_given_up(cluster):
    with Client(cluster, "1.2", suite="ECDHE-ECDSA-CHACHA20-POLY1305") as client, lost(cluster, client.owner):
        client.ask("GET", "/never")
        assert client("end")["tcp"] == "rst"


# What an operator finds in the logs


def ended_line(cluster, identity):
    """RAgent's line on the end of this connection."""
    lines = wait_until(lambda: re.findall(rf"^.*{identity}: ended .*$", cluster.log("access"), re.MULTILINE), patience(5))
    assert len(lines) == 1
    return lines[0]


def told(cluster, identity):
    """What agents logged that they told the client."""
    return [found for name in cluster.agents for found in re.findall(rf"{identity}: client told (.*)$", cluster.log(name), re.MULTILINE)]


def decided(cluster, identity):
    """What the agent that took it over logged about its decision."""
    return [found for name in cluster.agents
            for found in re.findall(rf"info sslagent/{name} connection {identity}: (?:replay read|takes over) .*(?:then|first)=(.*)$",
                                    cluster.log(name), re.MULTILINE)]


def test_a_502_an_alert_and_a_reset_are_told_apart_in_the_logs(cluster):
    with Client(cluster, "1.3") as client:
        client("send", text="POST /cut HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nhalf")
        settled(cluster, client)
        with lost(cluster, client.owner):
            assert_bad_gateway(client)
    assert 'reason="agent lost" end=last-record ' in ended_line(cluster, client.id)
    assert told(cluster, client.id) == ['reason="agent lost" told=answer']
    assert decided(cluster, client.id) == ['"backend lost"']

    with Client(cluster, "1.3") as client:
        client.ask("GET", "/half/told")
        client("read", until=HALF.decode())
        with lost(cluster, client.owner):
            assert_told_of_a_cut(client)
    assert 'reason="agent lost" end=last-record ' in ended_line(cluster, client.id)
    assert told(cluster, client.id) == ['reason="agent lost" told=alert']
    assert decided(cluster, client.id) == ["alert"]

    with Client(cluster, "1.2", suite="ECDHE-ECDSA-CHACHA20-POLY1305") as client, lost(cluster, client.owner):
        client.ask("GET", "/never")
        assert client("end")["tcp"] == "rst"
        assert " end=reset " in ended_line(cluster, client.id)
    assert told(cluster, client.id) == decided(cluster, client.id) == []


# In the handshake


def test_a_hello_that_nobody_answered_goes_to_another_agent(cluster):
    """Three clients, one for each agent in turn; one of them meets an agent that is stopped, and then killed."""
    victim = cluster.agents[0]
    restarted = ragent(cluster, "takeovers_restarted")
    with contextlib.ExitStack() as stack:
        cluster.send_signal(victim, signal.SIGSTOP)
        probes = [stack.enter_context(Probe(cluster.sl)) for _ in range(3)]
        for probe in probes:
            probe.start("handshake", sni="localhost", timeout_ms=patience(20) * 1000)
        wait_until(lambda: any(c["handshake_agent"] == victim and c["client_records"] for c in cluster.connections(listener="sl")))
        with lost(cluster, victim):
            assert all(probe.finish()["done"] for probe in probes)
            assert ragent(cluster, "takeovers_restarted") > restarted


# A link that is lost, an agent that lives


@pytest.fixture
def cut_link(cluster, test_points):
    """Says cut_link(agent): its link ends, its process goes on."""
    def cut(agent):
        links = ragent(cluster, "links_lost")
        cluster.faults(f"link.read cut on {agent} times 1")
        wait_until(lambda: ragent(cluster, "links_lost") > links, patience(10))
        cluster.clear_faults()
        wait_until(lambda: ragent(cluster, "links_up") == len(cluster.agents), patience(10))

    yield cut
    cluster.clear_faults()


@versions
def test_a_lost_link_costs_its_connections_nothing(cluster, backend, cut_link, version):
    path = f"/held/link/{version}"
    backend.hold()
    with Client(cluster, version) as idle, Client(cluster, version) as client:
        client.ask("GET", path)
        backend.wait_for(path)
        pid = cluster.pid(client.owner)
        adopted = ragent(cluster, "takeovers_adopted")
        cut_link(client.owner)
        backend.release()
        client.heard("GET", path)
        idle.still_works()
        os.kill(pid, 0)
        assert backend.count(path) == 1
        assert ragent(cluster, "takeovers_adopted") == adopted


@versions
def test_a_request_that_may_overtake_itself_is_not_asked_again_while_its_process_lives(cluster, backend, cut_link, version):
    path = f"/held/overtakes/{version}"
    backend.hold()
    with Client(cluster, version) as client:
        client.ask("PUT", path, "first")
        backend.wait_for(path)
        owner = client.owner
        cluster.send_signal(owner, signal.SIGSTOP)
        assert_bad_gateway(client)
        cluster.send_signal(owner, signal.SIGCONT)
    backend.release()
    assert backend.count(path) == 1


@versions
def test_an_agent_that_stalls_is_replaced_and_says_nothing_when_it_comes_back(cluster, backend, version):
    path = f"/held/stalled/{version}"
    backend.hold()
    with Client(cluster, version) as idle, Client(cluster, version) as client:
        client.ask("GET", path)
        backend.wait_for(path)
        cluster.send_signal(client.owner, signal.SIGSTOP)
        began = time.monotonic()
        backend.wait_for(path, 2)
        assert time.monotonic() - began < patience(LOST_S + 1)
        backend.release()
        client.heard("GET", path)
        stale = ragent(cluster, "frames_stale")
        cluster.send_signal(client.owner, signal.SIGCONT)
        wait_until(lambda: ragent(cluster, "links_up") == len(cluster.agents), patience(15))
        client.still_works()
        idle.still_works()
        assert ragent(cluster, "frames_stale") == stale  # the link was closed: nothing arrived


@versions
def test_the_only_agent_takes_back_what_it_had_when_it_stalled(start_cluster, version):
    """RAgent has counted it as lost. Its streams wait for a link, and RAgent asks it to adopt what it still owns."""
    with HeldBackend() as backend:
        cluster = start_cluster("--agents", "1", "--backend", backend.address, takeover=True, edit=edits.nobody_moves)
        with Client(cluster, version) as idle, Client(cluster, version) as client:
            backend.hold()
            client.ask("GET", "/held")
            backend.wait_for("/held")
            cluster.send_signal("a1", signal.SIGSTOP)
            wait_until(lambda: ragent(cluster, "links_up") == 0, patience(LOST_S + 2), "RAgent counts it as lost")
            cluster.send_signal("a1", signal.SIGCONT)
            backend.wait_for("/held", 2)
            backend.release()
            client.heard("GET", "/held")
            client.still_works()
            idle.still_works()


# Poison and pace


def gone(cluster):
    return [name for name in cluster.agents if (cluster.dir / f"{name}.exit").exists()]


@versions
def test_a_request_that_kills_its_agents_is_asked_again_once(start_cluster, test_points, version):
    with HeldBackend() as backend:
        cluster = start_cluster("--agents", "3", "--backend", backend.address, takeover=True, clean_exit=False,
                                edit=edits.nobody_moves)
        with Probe(cluster.sf) as probe, Client(cluster, version) as other:
            assert probe("handshake", sni="localhost", version=version, alpn="http/1.1")["done"]
            settled(cluster, probe)
            cluster.faults("backend.connect kill")
            cluster.settle_faults()
            probe("send", text="GET /poison HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert_told_of_a_cut(probe)
            assert ragent(cluster, "takeovers_poisoned") == ragent(cluster, "ended_poison") == 1
            (line,) = [line for line in cluster.log("r1").splitlines() if "request met two losses" in line]
            assert " warning " in line and f"client={probe.getsockname()[0]}:{probe.getsockname()[1]} " in line
            dead = wait_until(lambda: (names := gone(cluster))[1:] and names)
            cluster.clear_faults()
            for name in dead:
                cluster.restart(name)
            cluster.settle_faults()
            other.still_works()
            assert len(dead) == 2


@versions
def test_agents_that_die_before_they_have_a_request_make_it_no_poison(start_cluster, test_points, version):
    with HeldBackend() as backend, contextlib.ExitStack() as stack:
        cluster = start_cluster("--agents", "3", "--backend", backend.address, takeover=True, clean_exit=False)
        clients = [stack.enter_context(Client(cluster, version, where=cluster.sl)) for _ in range(6)]
        for n, client in enumerate(clients):
            client.ask("GET", f"/held/{n}")
            backend.wait_for(f"/held/{n}")
        victim = clients[0].owner
        cluster.faults(*[f"adopt.before kill on {name} times 1" for name in cluster.agents if name != victim])
        cluster.settle_faults()
        cluster.kill(victim)
        wait_until(lambda: len(gone(cluster)) > 1, patience(10), "an adopter that dies")
        cluster.clear_faults()
        for name in gone(cluster):
            cluster.restart(name)
        backend.release()
        for n, client in enumerate(clients):
            client.heard("GET", f"/held/{n}")
        assert ragent(cluster, "takeovers_poisoned") == 0


def test_takeovers_go_out_at_a_bounded_rate(start_cluster):
    count, rate = 60, 50
    edit = edits.at_end(f"moves: {{ takeovers_per_second: {rate}, rebalances_per_second: off }}")
    with HeldBackend() as backend, contextlib.ExitStack() as stack:
        cluster = start_cluster("--agents", "2", "--backend", backend.address, takeover=True, edit=edit)
        clients = [stack.enter_context(Client(cluster)) for _ in range(count)]
        for n, client in enumerate(clients):
            client.ask("GET", f"/held/{n}")
        wait_until(lambda: len(backend.seen) == 2 * count)
        victim = clients[0].owner
        hit = sum(client.owner == victim for client in clients)
        with lost(cluster, victim):
            began = time.monotonic()
            backend.release()
            for n, client in enumerate(clients):
                client.heard("GET", f"/held/{n}")
            assert time.monotonic() - began >= 0.8 * (hit / rate - 1 / 20)
        assert ragent(cluster, "takeovers_adopted") == hit
        assert ragent(cluster, "takeovers_delayed") >= hit * 0.8


def test_both_links_of_an_agent_are_lost_with_it(start_cluster):
    with HeldBackend() as backend, contextlib.ExitStack() as stack:
        cluster = start_cluster("--agents", "2", "--workers", "2", "--backend", backend.address, takeover=True,
                                edit=edits.nobody_moves)
        clients = [stack.enter_context(Client(cluster)) for _ in range(24)]
        for n, client in enumerate(clients):
            if n % 2:
                client.ask("DELETE", f"/held/{n}")
                backend.wait_for(f"/held/{n}")
        with lost(cluster, clients[0].owner):
            backend.release()
            for n, client in enumerate(clients):
                if n % 2:
                    client.heard("DELETE", f"/held/{n}")
                client.still_works()
        assert ragent(cluster, "takeovers_poisoned") == 0
