"""`as_sender`: receivers see the address of the sender, not that of smtpproxy between the two (TPROXY on both sides)."""

import contextlib
import pathlib
import subprocess

import pytest

from bench.experiments.mail_room import Room, obstacle
from bench.experiments.network_space import GATEWAY
from tests.lib.build import binary, patience
from tests.lib.mail import source
from tests.lib.mail_servers import Exim, Postfix
from tests.lib.network_space import RECEIVERS, SENDERS, routed
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_proxy import Proxy
from tests.lib.waiting import wait_until

pytestmark = [pytest.mark.root, pytest.mark.tool("ip"), pytest.mark.tool("nft"), pytest.mark.limit(120)]

MAILS = 5
NET_ADMIN = 1 << 12


@contextlib.contextmanager
def smtp_source(_, receiver):
    result = source((f"[{receiver}]" if ":" in receiver else receiver, 25), "-m", str(MAILS), "-s", "2")
    assert result.counts["sent"] == MAILS, result.errors
    yield


@contextlib.contextmanager
def swaks(folder, receiver):
    for number in range(MAILS):
        status, output = Room(folder / str(number)).run("swaks", "--server", receiver, "--from", "a@b.example", "--to", "c@d.example",
                                                        timeout=patience(60))
        assert status == 0, output
    yield


@contextlib.contextmanager
def server(kind, folder, receiver):
    with kind(folder, (receiver, 25)) as msa:
        assert source(msa.address, "-m", str(MAILS)).counts["sent"] == MAILS
        yield


def postfix(folder, receiver):
    return server(Postfix, folder, receiver)


def exim(folder, receiver):
    return server(Exim, folder, receiver)


def capabilities(proxy):
    """Those that it may ever use."""
    lines = pathlib.Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("CapPrm:")), 16)


def assert_the_receiver_sees(tmp_path, send, family, expected, **outward):
    receiver = RECEIVERS[family].format(25)
    listener = {"address": "[::]:2525" if family else "0.0.0.0:2525", "original_destination": "tproxy"}
    with routed() as (senders, router, receivers), contextlib.ExitStack() as stack:
        with receivers.entered():
            seen = stack.enter_context(ScriptedReceiver(listen=(receiver, 25)))
        proxy = stack.enter_context(Proxy(tmp_path, within=router.within, listeners=[listener], outward={"ports": [25], **outward}))
        assert capabilities(proxy) == (NET_ADMIN if outward else 0)
        with senders.entered(), send(tmp_path / "sender", receiver):
            wait_until(lambda: len(seen.contents) == MAILS, patience(30), "all mails are there")
        wait_until(lambda: len(proxy.events()) == MAILS, patience(10), "a record of each")
        assert {record["outcome"] for record in proxy.events()} == {"accepted"}
    assert set(seen.peers) == {expected}


@pytest.mark.parametrize("family", [0, 1], ids=["v4", "v6"])
def test_the_receiver_sees_the_sender(tmp_path, family):
    assert_the_receiver_sees(tmp_path, smtp_source, family, SENDERS[family].format(7), as_sender="on")


@pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))
@pytest.mark.parametrize("send", [swaks, postfix, exim])
def test_the_receiver_sees_a_real_sender(tmp_path, send):
    assert_the_receiver_sees(tmp_path, send, 0, SENDERS[0].format(7), as_sender="on")


def test_without_it_the_receiver_sees_the_proxy(tmp_path):
    assert_the_receiver_sees(tmp_path, smtp_source, 0, RECEIVERS[0].format(GATEWAY))


def test_senders_share_what_a_receiver_takes(tmp_path):
    """Each has connections of its own, for its address. The file's number holds for all together, and each has its turn."""
    receiver, addresses = RECEIVERS[0].format(25), [SENDERS[0].format(host) for host in (7, 8)]
    listener = {"address": "0.0.0.0:2525", "original_destination": "tproxy"}
    outward = {"ports": [25], "as_sender": "on", "receivers": [{"network": f"{receiver}/32", "connections": 1}]}
    with routed() as (senders, router, receivers), contextlib.ExitStack() as stack:
        senders.address(f"{addresses[1]}/24", "out")
        with receivers.entered():
            seen = stack.enter_context(ScriptedReceiver(listen=(receiver, 25), reply_s=0.005))  # all are ready again when a turn ends
        stack.enter_context(Proxy(tmp_path, within=router.within, listeners=[listener], outward=outward))
        loads = [subprocess.Popen([*senders.within, binary("bench/cssl-bench"), "smtp-source", "--quiet", "-m", "20", "-s", "4",
                                   "--source", address, f"{receiver}:25"]) for address in addresses]
        assert [load.wait(patience(60)) for load in loads] == [0, 0]
    numbers = [number for number, _ in seen.heard]
    assert numbers == sorted(numbers), "two connections at once"
    mails = [seen.peers[number] for number, command in seen.heard if command.startswith("MAIL")]
    assert sorted(mails) == sorted(addresses * 20)
    begin = max(mails.index(address) for address in addresses)
    end = min(len(mails) - mails[::-1].index(address) for address in addresses)
    one, other = (mails[begin:end].count(address) for address in addresses)  # while both are there
    assert one + other >= 10 and abs(one - other) <= 2, mails
