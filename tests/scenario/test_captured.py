"""Listeners of RAgent to which the kernel leads connections for other hosts (`original_destination`), by the nftables rules of
conf/mail-outbound.yaml, in network namespaces of the test's own: senders, a router with the cluster and smtpproxy, receivers."""

import concurrent.futures
import contextlib
import socket
import subprocess

import pytest

from bench.experiments.network_space import GATEWAY, run
from tests.lib.build import ROOT, binary, patience
from tests.lib.csslctl import csslctl
from tests.lib.mail import source
from tests.lib.mail_cluster import HOST, mail_listener
from tests.lib.mail_servers import Postfix
from tests.lib.network_space import RECEIVERS, SENDERS, example_rules, routed
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until
from tests.scenario.test_mail_gateways_file import check, make_folder, with_folders_of
from tests.scenario.test_smtpproxy_captured import sink_in

__all__ = ["make_folder"]  # the fixture `folder`
pytestmark = [pytest.mark.root, pytest.mark.tool("ip"), pytest.mark.tool("nft")]

EXAMPLE = "mail-outbound.yaml"
WAYS = {"redirect": ("nat", 2525), "tproxy": ("filter", 2526)}


@contextlib.contextmanager
def captured(start_cluster, how, policy="offer"):
    """(cluster, senders, receivers); this thread is in the router."""
    hook, port = WAYS[how]
    keys = f"listen: [0.0.0.0:{port}, '[::]:{port}']", f"original_destination: {how}"
    with routed() as (senders, router, receivers):
        run(*router.within, "nft", "delete", "table", "inet", "cssl")
        router.rules(example_rules(hook, EXAMPLE))
        with router.entered():
            yield start_cluster("--agents", "2", "--mail", edit=mail_listener("captured", None, policy=policy, above=keys)), senders, receivers


def receivers_of(space):
    """(host, the address as programs have it) of two in each family."""
    hosts = [network.format(host) for network in RECEIVERS for host in (25, 26)]
    for host in hosts:
        if host.endswith("26"):
            space.address(f"{host}/{64 if ':' in host else 24}", "out")
    return [(host, f"[{host}]:25" if ":" in host else f"{host}:25") for host in hosts]


def turned_away(cluster):
    return cluster.counters()["ragent"]["ended_not_captured"]


def assert_turned_away(address):
    with socket.create_connection(address, patience(20)) as direct, direct.makefile() as said:
        assert said.read() == "421 4.3.5 This address is not set up for mail\n"


def send(space, address, count, *options):
    run(*space.within, binary("bench/cssl-bench"), "smtp-source", "--quiet", "-m", str(count), "-s", "2", *options, address)


@pytest.mark.limit(240)
@pytest.mark.parametrize("how", WAYS)
def test_mail_goes_where_its_sender_wanted(start_cluster, how):
    """In clear and behind STARTTLS; also when RAgent was replaced, and when it has died. Who connects to RAgent itself gets 421."""
    port = WAYS[how][1]
    with captured(start_cluster, how) as (cluster, senders, receivers), contextlib.ExitStack() as stack:
        modes = {row["LISTENER"]: row["CAPTURE"] for row in csslctl("--dir", cluster.dir, "listeners").table("LISTENER")}
        assert modes["captured"] == how and modes["sf"] == "none"
        addresses = receivers_of(receivers)
        counts = [stack.enter_context(sink_in(receivers, address)) for _, address in addresses]
        for again in (None, cluster.replace, cluster.kill_ragent):
            if again:
                again()
            for n, (_, address) in enumerate(addresses):
                send(senders, address, 3 + n, "--starttls", "--ca", cluster.ca)
                send(senders, address, 1)
            before = turned_away(cluster)
            for address in ("127.0.0.1", port), ("::1", port):
                assert_turned_away(address)
            with senders.entered():
                for network in SENDERS:
                    assert_turned_away((network.format(GATEWAY), port))
            assert turned_away(cluster) - before == 4
        assert 'connection refused listener=captured reason="no original destination"' in cluster.log("r1")
        stack.close()
        assert [count["right"] for count in counts] == [3 * (4 + n) for n in range(len(addresses))]
        cluster.stop()


def test_a_replaced_ragent_captures_as_its_file_says(start_cluster):
    """Its sockets come from a process whose file said otherwise."""
    with captured(start_cluster, "tproxy") as (cluster, senders, receivers), sink_in(receivers, "203.0.113.25:25") as counts:
        config = cluster.dir / "cluster.yaml"
        for before, after, is_captured in ("tproxy", "none", False), ("none", "tproxy", True):
            config.write_text(config.read_text().replace(f"original_destination: {before}", f"original_destination: {after}"))
            cluster.replace()
            with senders.entered():
                if is_captured:
                    assert source(("203.0.113.25", 25), "-m", "2").counts["sent"] == 2
                else:
                    with pytest.raises(OSError):
                        socket.create_connection(("203.0.113.25", 25), patience(1))
        cluster.stop()
    assert counts["right"] == 2


@pytest.mark.parametrize("how", WAYS)
def test_an_msa_that_verifies_the_certificate_is_captured(start_cluster, tmp_path, how):
    with captured(start_cluster, how) as (cluster, senders, receivers):
        with sink_in(receivers, "203.0.113.25:25") as counts, senders.entered():
            with Postfix(tmp_path, ("203.0.113.25", 25), relay_tls="encrypt", ca=cluster.ca) as msa:
                assert source(msa.address, "-m", "5").counts["sent"] == 5
                msa.wait_for_lines("status=sent", 5)
                assert "Verified TLS connection established to 203.0.113.25" in msa.log()
        assert counts["right"] == 5
        cluster.stop()


@pytest.mark.parametrize("how", WAYS)
def test_who_comes_directly_is_reset_where_no_421_can_be_said(start_cluster, how):
    with captured(start_cluster, how, policy="implicit") as (cluster, _, _):
        with pytest.raises(ConnectionResetError), socket.create_connection(("127.0.0.1", WAYS[how][1]), patience(20)) as direct:
            direct.recv(1)
        assert turned_away(cluster) == 1
        cluster.stop()


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("how", WAYS)
def test_a_client_that_was_just_accepted_outlives_ragent(start_cluster, how):
    """Its socket alone tells the next process to which listener it came, and where it wanted to go."""
    with captured(start_cluster, how) as (cluster, senders, receivers), sink_in(receivers, "203.0.113.25:25") as counts:
        cluster.faults("client.accepted kill on r1")
        cluster.settle_faults()
        with senders.entered(), concurrent.futures.ThreadPoolExecutor(1) as pool:
            opening = pool.submit(Talk, ("203.0.113.25", 25))
            wait_until(lambda: "ragent died" in cluster.log("r1"), patience(20), "a death")
            cluster.clear_faults()
            with opening.result() as client:
                assert client.banner.startswith(f"220 {HOST} ")
                client.ehlo()
                assert client.say("STARTTLS").startswith("220 ")
                client.start_tls(cluster.ca)
                client.ehlo()
                client.mail()
                client.send("Subject: x\r\n\r\nx\r\n.\r\n")
                assert client.reply().startswith("250 ")
        cluster.stop()
    assert counts["mails"] == 1


def test_without_the_capability_tproxy_is_refused_with_a_remedy(start_cluster):
    with captured(start_cluster, "tproxy") as (cluster, _, _):
        cluster.stop()
        done = subprocess.run(["setpriv", "--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw", binary("ragent/ragent"), "--config",
                               cluster.dir / "cluster.yaml", "--name", "r1"], text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=patience(20))
        assert done.returncode and "listener captured: original_destination: tproxy needs CAP_NET_ADMIN" in done.stdout, done.stdout


def test_every_program_takes_the_example(folder):
    config = folder / "cluster.yaml"
    config.write_text(with_folders_of((ROOT / "conf" / EXAMPLE).read_text()).replace("tls/outbound.", "tls/mail-ecdsa."))
    for program, names in ("ragent/ragent", ["r1"]), ("sslagent/sslagent", ["a1", "a2"]):
        for name in names:
            done = check(program, name, config)
            assert done.returncode == 0, done.stdout
