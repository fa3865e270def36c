"""Handshake messages in records of any length: a message over many records, several messages in one (RFC 8446 5.1, RFC 5246
6.2.1). The next owner of the connection knows how many records there were."""

import pytest

from tests.lib.edits import nobody_moves
from tests.lib.probe import Probe

WHERE = {"sf": lambda cluster: cluster.sf, "sl": lambda cluster: cluster.sl, "direct": lambda cluster: cluster.direct["a1"]}
RECORD_LENGTHS = [1, 7, 15, 16384]  # a hello has some 500 bytes, Finished 16 in TLS 1.2 and 36 or 52 in TLS 1.3


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    return start_module_cluster("--agents", "2", edit=nobody_moves)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("length", RECORD_LENGTHS)
@pytest.mark.parametrize("where", WHERE)
def test_a_handshake_in_records_of_any_length_is_made_and_goes_on(cluster, where, length, version, mover):
    with Probe(WHERE[where](cluster)) as probe:
        assert probe("handshake", version=version, sni="localhost", alpn="http/1.1", ca=cluster.ca, record_len=length)["done"]
        assert probe("get", path="/5")["outcome"] == "complete"
        if where != "direct":
            mover(cluster, probe)
        assert probe("put", path="/sha256", bytes=2000)["outcome"] == "complete"
        assert probe("get", path="/64k")["outcome"] == "complete"


@pytest.mark.parametrize("length", RECORD_LENGTHS)
@pytest.mark.parametrize("where", WHERE)
def test_a_session_is_resumed_by_a_hello_in_records_of_any_length(cluster, where, length, tmp_path):
    session = tmp_path / "session"
    handshake = {"version": "1.2", "sni": "localhost", "record_len": length}
    with Probe(WHERE[where](cluster)) as probe:
        probe("handshake", **handshake)
        probe("save_session", file=session)
    with Probe(WHERE[where](cluster)) as probe:
        assert probe("handshake", session=session, **handshake)["reused"]
        assert probe("get", path="/5")["outcome"] == "complete"
