"""smtpproxy as the kernel brings it connections: nftables `redirect` and `tproxy`, in network namespaces of the test's own."""

import contextlib
import json
import signal
import subprocess

import pytest

from bench.experiments.network_space import GATEWAY, Space, run
from tests.lib.build import binary, patience
from tests.lib.mail import Result
from tests.lib.network_space import RECEIVERS, SENDERS, elements, routed, use_example
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_proxy import Proxy
from tests.lib.smtp_talk import Talk
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.tool("ip"), pytest.mark.tool("nft")]

RECEIVER, RECEIVER6 = "192.0.2.25", "2001:db8::25"

# As conf/smtpproxy.yaml shows them, but for what is local here.
REDIRECT = """
table inet cssl {
    chain output {
        type nat hook output priority -100;
        meta skuid != nobody tcp dport 25 redirect to :2525
    }
}
"""


@contextlib.contextmanager
def sink_in(space, address):
    command = [*space.within, binary("bench/cssl-bench"), "smtp-sink", "--json", address]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith("listening on ")
        counts = {}
        try:
            yield counts
        finally:
            process.send_signal(signal.SIGTERM)
            output, complaints = process.communicate(timeout=patience(20))
            counts.update(Result(process.returncode, output, complaints).counts)


def send_in(space, address, *options):
    return run(*space.within, binary("bench/cssl-bench"), "smtp-source", "--quiet", "--json", "-m", "20", "-s", "4", *options, address)


def listening(address, how):
    return {"listeners": [{"address": address, "original_destination": how}],
            "outward": {"local": ["192.0.2.0/24", "2001:db8::/32"]}}


def assert_a_direct_connect_is_refused(space, port):
    """A direct connect to the port of the proxy itself."""
    said = run(*space.within, "python3", "-c", "import socket; print(socket.create_connection((%r, %d)).makefile().read())" % port)
    assert said.startswith("421 4.3.5 ")


@pytest.mark.parametrize("receiver,listener,direct", [
    (f"{RECEIVER}:25", "0.0.0.0:2525", ("127.0.0.1", 2525)), (f"[{RECEIVER6}]:25", "[::]:2525", ("::1", 2525))], ids=["v4", "v6"])
def test_a_redirected_connection_goes_where_it_wanted(tmp_path, receiver, listener, direct):
    with Space() as space:
        for address in (RECEIVER, RECEIVER6, "192.0.2.7"):
            space.address(address, "lo")
        space.rules(REDIRECT)
        with sink_in(space, receiver) as counts:
            with Proxy(tmp_path, within=space.within, **listening(listener, "redirect")) as proxy:
                send_in(space, receiver, *(["--source", "192.0.2.7"] if receiver.startswith("192") else []))
                assert_a_direct_connect_is_refused(space, direct)
                events = tmp_path.joinpath("smtpproxy.log").read_text()
                assert "the sender connected to smtpproxy itself" in events
                assert proxy.process.poll() is None
    assert counts["right"] == 20


@pytest.mark.parametrize("receiver,listener,direct", [
    (f"{RECEIVER}:25", "0.0.0.0:2525", ("127.0.0.1", SENDERS[0].format(GATEWAY))), (f"[{RECEIVER6}]:25", "[::]:2525", ("::1", SENDERS[1].format(GATEWAY)))],
    ids=["v4", "v6"])
def test_a_connection_delivered_by_tproxy_goes_where_it_wanted(tmp_path, receiver, listener, direct):
    with routed() as (senders, router, _):
        for address in (RECEIVER, RECEIVER6):
            router.address(address, "lo")
        with sink_in(router, receiver) as counts:
            with Proxy(tmp_path, within=router.within, events=str(tmp_path / "events"), **listening(listener, "tproxy")) as proxy:
                send_in(senders, receiver)
                assert_a_direct_connect_is_refused(router, (direct[0], 2525))
                assert_a_direct_connect_is_refused(senders, (direct[1], 2525))
                assert proxy.log().count("the sender connected to smtpproxy itself") == 2
                wait_until(lambda: len((tmp_path / "events").read_text().splitlines()) == 20, patience(10), "20 records")
    records = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    sender = "198.51.100.7:" if receiver.startswith("192") else "[2001:db8:1::7]:"
    assert {r["destination"] for r in records} == {receiver} and all(r["client"].startswith(sender) for r in records)
    assert counts["right"] == 20


# --- past the proxy ---

@pytest.mark.parametrize("how,hook,port", [("redirect", "nat", 2525), ("tproxy", "filter", 2526)])
@pytest.mark.parametrize("family", [0, 1], ids=["v4", "v6"])
def test_who_is_in_the_sets_of_the_example_passes_untouched(tmp_path, how, hook, port, family):
    """Senders or receivers, with the rules as conf/smtpproxy.yaml has them."""
    sender, receiver = SENDERS[family].format(7), RECEIVERS[family].format(25)
    name = ("untouched4", "untouched6")[family]
    with routed() as (senders, router, receivers), contextlib.ExitStack() as stack:
        use_example(router, hook)
        with receivers.entered():
            stack.enter_context(ScriptedReceiver(listen=(receiver, 25)))
        listener = {"address": f"[::]:{port}" if family else f"0.0.0.0:{port}", "original_destination": how}
        stack.enter_context(Proxy(tmp_path, within=router.within, listeners=[listener], outward={"ports": [25]}))

        def banner():
            with senders.entered(), Talk((receiver, 25)) as talk:
                return talk.banner.split()[1]

        assert banner() == "proxy.example"
        for address in (sender, receiver):
            elements(router, "add", name, address)
            assert banner() == "scripted"
            elements(router, "delete", name, address)
            assert banner() == "proxy.example"
