"""Handshakes that come to nothing are counted by the reason."""

import socket
import ssl

import pytest

from tests.lib.build import patience
from tests.lib.waiting import wait_until

TIMEOUT = "3s"  # more than a handshake takes on a busy machine


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=lambda text: f"limits: {{ handshake_timeout: {TIMEOUT} }}\n" + text)


def hello(cluster):
    """The first record of a client that would be served."""
    output = ssl.MemoryBIO()
    client = cluster.context().wrap_bio(ssl.MemoryBIO(), output, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return output.read()


def raw(cluster, data):
    client = socket.create_connection(cluster.sf, patience(20))
    client.sendall(data)
    return client


def to_the_end(client):
    """Until the cluster has closed it."""
    with client:
        try:
            while client.recv(4096):
                pass
        except ConnectionResetError:
            pass


def handshake_fails(cluster, context):
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        with cluster.connect(cluster.sf, context) as client:
            client.recv(1)  # a client of TLS 1.3 may be through before it is refused


def old_version(cluster):
    context = cluster.context(ciphers="ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    handshake_fails(cluster, context)


def no_aead(cluster):
    handshake_fails(cluster, cluster.context("1.2", ciphers="AES128-SHA"))


def other_protocol(cluster):
    handshake_fails(cluster, cluster.context(alpn=("gopher",)))


def unbelieving(cluster):
    handshake_fails(cluster, ssl.create_default_context())


def malformed(cluster):
    to_the_end(raw(cluster, bytes.fromhex("16030100050100000100")))


def silent(cluster):
    to_the_end(raw(cluster, hello(cluster)))


def gone(cluster):
    with raw(cluster, hello(cluster)) as client:
        assert client.recv(1)  # the handshake is under way


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize("reason, client", [
    ("version", old_version), ("cipher", no_aead), ("alpn", other_protocol), ("alert", unbelieving), ("message", malformed),
    ("timeout", silent), ("client_gone", gone)])
def test_a_refused_handshake_is_counted_by_its_reason(cluster, reason, client):
    before = refusals(cluster)
    client(cluster)
    wait_until(lambda: refusals(cluster) != before, patience(10))
    assert refusals(cluster) == {**before, reason: before[reason] + 1}


def refusals(cluster):
    prefix, sums = "handshakes_refused_", {}
    for node, counters in cluster.counters().items():
        for name, value in counters.items():
            if node != "ragent" and name.startswith(prefix):
                sums[name.removeprefix(prefix)] = sums.get(name.removeprefix(prefix), 0) + value
    return sums
