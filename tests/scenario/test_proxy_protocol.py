"""The PROXY protocol: RAgent and agents accept it from trusted balancers only. Agents send it to backends with the facts of TLS,
also agents to which a connection has moved."""

import contextlib
import hashlib
import re
import socket
import ssl
import struct
import subprocess

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.haproxy import Haproxy
from tests.lib.mover import push
from tests.lib.proxy_facts import ALPN, FINGERPRINT, ISSUER, JA4, SERIAL, SSL_CLIENT_CERT, SSL_CN, SUBJECT, ToldBackend
from tests.lib.waiting import wait_until

TRUSTED = ('proxy_protocol: on', 'trusted: ["127.0.0.1/32", "::1/128"]')
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v2(command=1, family=0x11, addresses=b"", tlvs=b"", version=2):
    return SIGNATURE + struct.pack(">BBH", version << 4 | command, family, len(addresses) + len(tlvs)) + addresses + tlvs


def tlv(kind, value):
    return struct.pack(">BH", kind, len(value)) + value


def packed(family, source, destination, source_port=4000, destination_port=443):
    return socket.inet_pton(family, source) + socket.inet_pton(family, destination) + \
        struct.pack(">HH", source_port, destination_port)


ADDRESSES4 = packed(socket.AF_INET, "192.0.2.7", "198.51.100.1")
ADDRESSES6 = packed(socket.AF_INET6, "2001:db8::7", "2001:db8::1")

# What stands before the hello, and which client that makes; None: the balancer itself.
HEADERS = {
    "v1 TCP4": (b"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443\r\n", "192.0.2.7:4000"),
    "v1 TCP6": (b"PROXY TCP6 2001:db8::7 2001:db8::1 4000 443\r\n", "[2001:db8::7]:4000"),
    "v1 UNKNOWN": (b"PROXY UNKNOWN\r\n", None),
    "v2 TCP4": (v2(addresses=ADDRESSES4), "192.0.2.7:4000"),
    "v2 TCP6": (v2(family=0x21, addresses=ADDRESSES6), "[2001:db8::7]:4000"),
    "v2 with TLVs": (v2(addresses=ADDRESSES4, tlvs=tlv(1, b"h2") + tlv(2, b"x.example") + tlv(5, b"\1" * 16)), "192.0.2.7:4000"),
    "v2 LOCAL": (v2(command=0, family=0), None),
}

FORGED = {
    "no header": b"\x16\x03\x01\x02\x00" + bytes(100),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "v1 without an end": b"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443" + b" " * 100,
    "v1 with a bad address": b"PROXY TCP4 192.0.2.700 198.51.100.1 4000 443\r\n",
    "v1 with a bad port": b"PROXY TCP4 192.0.2.7 198.51.100.1 70000 443\r\n",
    "v1 of a mixed family": b"PROXY TCP4 2001:db8::7 198.51.100.1 4000 443\r\n",
    "v1 without CR": b"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443\n" + b" " * 100,
    "v2 of version 3": v2(version=3, addresses=ADDRESSES4),
    "v2 of an unknown command": v2(command=2, addresses=ADDRESSES4),
    "v2 of an unknown family": v2(family=0x51, addresses=ADDRESSES4),
    "v2 too short for its addresses": v2(addresses=ADDRESSES4[:8]),
    "v2 with a TLV that overruns": v2(addresses=ADDRESSES4, tlvs=b"\2\xff\xffx"),
    "v2 with a wrong checksum": v2(addresses=ADDRESSES4, tlvs=tlv(3, b"\1\2\3\4")),
    "v2 with a wrong signature": SIGNATURE[:-1] + b"\r" + v2(addresses=ADDRESSES4)[12:],
    "two headers": 2 * b"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443\r\n",
}


@pytest.fixture(scope="module")
def told_backend():
    with ToldBackend() as backend:
        yield backend


@pytest.fixture(scope="module")
def cluster(start_module_cluster, told_backend):
    """Every listener wants a header from 127.0.0.1, every agent tells the backend; client certificates are welcome. By ALPN, there
    is a backend that takes long headers, and one that takes those of most."""
    return start_module_cluster("--agents", "2", edit=edits.edits(
        edits.below("sf", *TRUSTED), edits.below("sl", *TRUSTED),
        edits.instead("        listener: sl\n", "        listener: sl\n        " + "\n        ".join(TRUSTED) + "\n"),
        edits.instead("- { name: main,", "- { proxy_v2: on, name: main,"),
        edits.tls("client_ca: ca.pem", "client_certificate: optional"), edits.nobody_moves,
        edits.alpn("long", "http", "long"), edits.backend("long", told_backend.address, "proxy_v2: on", "proxy_v2_max: 4KiB"),
        edits.alpn("short", "http", "short"), edits.backend("short", told_backend.address, "proxy_v2: on")))


def connect(cluster, where, header, context=None, session=None):
    """An http.client connection that begins with that header."""
    sock = socket.create_connection(where, patience(20), ("127.0.0.1", 0))
    sock.sendall(header)
    return cluster.http(context=context, sock=sock, session=session)


def headers_of(web, path="/5"):
    web.request("GET", path)
    response = web.getresponse()
    response.read()
    return response.headers


WHERE = ["sf", "sl", "direct"]
AND_MOVED = WHERE + ["sf, moved", "sl, moved"]


def listener(where):
    return where.removesuffix(", moved")


def address(cluster, where):
    return cluster.direct["a1"] if where == "direct" else getattr(cluster, listener(where))


def only_connection(cluster, where):
    """Of its listener, once those from before are gone."""
    def alone():
        found = cluster.connections(listener=listener(where))
        return len(found) == 1 and found[0]
    return wait_until(alone, patience(10))


def move(cluster, where):
    """Its client, if that is one that moves. A balancer's client cannot be found by its socket."""
    if where.endswith(", moved"):
        push(cluster, only_connection(cluster, where)["id"])


def own_name(web):
    return "%s:%d" % web.sock.getsockname()[:2]


@pytest.mark.parametrize("where", AND_MOVED)
@pytest.mark.parametrize("name", HEADERS)
def test_a_trusted_balancer_says_who_the_client_is(cluster, where, name):
    header, client = HEADERS[name]
    with contextlib.closing(connect(cluster, address(cluster, where), header)) as web:
        move(cluster, where)
        assert headers_of(web)["X-CSSL-Client"] == (client or own_name(web))
        if where != "direct":
            assert only_connection(cluster, where)["client"] == (client or own_name(web))


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", ["v1 TCP6", "v2 TCP4"])
def test_a_header_may_come_byte_by_byte(cluster, where, name):
    header, client = HEADERS[name]
    sock = socket.create_connection(address(cluster, where), patience(20))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in header:
        sock.send(bytes([byte]))
    with contextlib.closing(cluster.http(sock=sock)) as web:
        assert headers_of(web)["X-CSSL-Client"] == client


UNEXPECTED_MESSAGE = b"\x15\x03\x03\x00\x02\x02\x0a"  # the alert for a header in the place of a hello


def is_closed(where, said, source):
    """At once, or with an alert."""
    try:
        with socket.create_connection(where, patience(10), (source, 0)) as sock:
            sock.sendall(said)
            return sock.recv(100) in (b"", UNEXPECTED_MESSAGE)
    except ConnectionError:
        return True


def refusals(cluster, where):
    ragent = cluster.counters()["ragent"]
    if where == "direct":
        return cluster.counter("direct_refused"), ragent["ended_proxy_header_bad"]
    return ragent["proxy_malformed"], ragent["proxy_untrusted"], ragent["ended_proxy_header_bad"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_header_ends_the_connection_and_is_counted(cluster, where, name):
    before = refusals(cluster, where), cluster.counters()["ragent"]["ended_proxy_header_unexpected"]
    assert is_closed(address(cluster, where), FORGED[name], "127.0.0.1")
    if name == "two headers" and where != "direct":
        wait_until(lambda: cluster.counters()["ragent"]["ended_proxy_header_unexpected"] == before[1] + 1)
    else:
        expected = (1, 0) if where == "direct" else (1, 0, 1)
        wait_until(lambda: refusals(cluster, where) == tuple(a + b for a, b in zip(before[0], expected)))


@pytest.mark.parametrize("where", WHERE)
def test_nobody_else_is_believed(cluster, where):
    before = refusals(cluster, where)
    for header, _ in HEADERS.values():
        assert is_closed(address(cluster, where), header, "127.0.0.2")
    count = len(HEADERS)
    expected = (count, 0) if where == "direct" else (0, count, count)
    assert refusals(cluster, where) == tuple(a + b for a, b in zip(before, expected))


@pytest.mark.tool("haproxy")
@pytest.mark.parametrize("option", ["send-proxy", "send-proxy-v2"])
@pytest.mark.parametrize("where", ["sf", "direct"])
def test_haproxy_in_front_tells_the_client(cluster, tmp_path, where, option):
    servers = cluster.direct if where == "direct" else {"ragent": cluster.sf}
    with Haproxy(tmp_path, servers, option) as haproxy:
        for _ in range(4):
            with contextlib.closing(cluster.http(haproxy.address, source="127.0.0.9")) as web:
                assert headers_of(web)["X-CSSL-Client"] == own_name(web)


def test_ipv6_clients_behind_a_balancer_are_spread_by_affinity(cluster):
    owners = {}
    for _ in range(2):
        for n in range(16):
            header = b"PROXY TCP6 2001:db8::%x ::1 4000 443\r\n" % n
            with contextlib.closing(connect(cluster, cluster.sf, header)) as web:
                owner = headers_of(web)["X-CSSL-Agent"]
                assert owners.setdefault(n, owner) == owner
    assert set(owners.values()) == set(cluster.agents)


# Towards the backend

PLAIN = HEADERS["v1 TCP4"][0]


@pytest.mark.parametrize("where", AND_MOVED)
@pytest.mark.parametrize("version,suite", [("1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"), ("1.3", "TLS_AES_128_GCM_SHA256")])
def test_the_backend_learns_the_facts_of_tls(cluster, where, version, suite):
    ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384" if version == "1.2" else None
    with contextlib.closing(connect(cluster, address(cluster, where), PLAIN, cluster.context(version, ciphers))) as web:
        move(cluster, where)
        told = headers_of(web)
        assert told["X-CSSL-TLS"] == f"TLSv{version} {suite}"
        assert (told["X-CSSL-SNI"], told["X-CSSL-ALPN"]) == ("localhost", "http/1.1")
        if where != "direct":
            assert only_connection(cluster, where)["id"] == told["X-CSSL-Connection"]


@pytest.mark.parametrize("where", ["sf", "sf, moved"])
def test_the_id_that_a_balancer_gave_goes_on_to_the_backend(cluster, where):
    header = v2(addresses=ADDRESSES4, tlvs=tlv(5, b"given"))
    with contextlib.closing(connect(cluster, address(cluster, where), header)) as web:
        move(cluster, where)
        assert bytes.fromhex(headers_of(web)["X-CSSL-Connection"]) == b"given"


@pytest.mark.parametrize("where", AND_MOVED)
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_certificate_of_this_connection_is_told_from_one_of_the_session(cluster, where, version):
    context = cluster.context(version)
    context.load_cert_chain(cluster.dir / "client.pem", cluster.dir / "client.key")
    session = None
    # Round robin: each step is on another agent; with SF all are then carried by one of them.
    for how in ("connection", "session", "session"):
        with contextlib.closing(connect(cluster, address(cluster, where), PLAIN, context, session)) as web:
            move(cluster, where)
            told = headers_of(web)["X-CSSL-TLS"]
            assert told.endswith(f" certificate={how} cn=client"), told
            session = web.sock.session
    with contextlib.closing(connect(cluster, address(cluster, where), PLAIN, cluster.context(version))) as web:
        move(cluster, where)
        assert "certificate" not in headers_of(web)["X-CSSL-TLS"]


def issued(cluster, what):
    """Of the client's certificate, as `openssl x509` prints it."""
    run = subprocess.run(["openssl", "x509", "-noout", f"-{what}", "-nameopt", "RFC2253", "-in", cluster.dir / "client.pem"],
                         check=True, text=True, stdout=subprocess.PIPE)
    return run.stdout.strip().split("=", 1)[1].encode()


@pytest.mark.parametrize("where", AND_MOVED)
def test_the_backend_learns_who_the_client_is(cluster, told_backend, where):
    """From the agent of the handshake, and from one to which the connection moved."""
    context = cluster.context(alpn=("long",))
    context.load_cert_chain(cluster.dir / "client.pem", cluster.dir / "client.key")
    with contextlib.closing(connect(cluster, address(cluster, where), PLAIN, context)) as web:
        move(cluster, where)
        headers_of(web)
    facts, der = told_backend.told.pop(), ssl.PEM_cert_to_DER_cert((cluster.dir / "client.pem").read_text())
    assert facts.ssl[SSL_CLIENT_CERT] == der and facts.ssl[SSL_CN] == b"client" and facts.tlvs[ALPN] == b"long"
    assert facts.tlvs[FINGERPRINT] == hashlib.sha256(der).hexdigest().encode()
    assert facts.tlvs[SUBJECT] == issued(cluster, "subject") == b"CN=client" and facts.tlvs[ISSUER] == issued(cluster, "issuer")
    assert facts.tlvs[SERIAL] == issued(cluster, "serial")
    assert re.fullmatch(rb"t13d[0-9]{4}lg_[0-9a-f]{12}_[0-9a-f]{12}", facts.tlvs[JA4])


def test_what_a_backend_does_not_take_is_left_out(cluster, told_backend):
    context, before = cluster.context(alpn=("short",)), cluster.counter("proxy_values_left_out")
    context.load_cert_chain(cluster.dir / "client.pem", cluster.dir / "client.key")
    with contextlib.closing(connect(cluster, cluster.sl, PLAIN, context)) as web:
        headers_of(web)
    facts = told_backend.told.pop()
    assert SSL_CLIENT_CERT not in facts.ssl and facts.ssl[SSL_CN] == b"client" and facts.tlvs[SUBJECT] == b"CN=client"
    assert cluster.counter("proxy_values_left_out") == before + 1


@pytest.fixture(scope="module")
def long_certificate(cluster):
    """Longer than what moves with a connection may be, and shorter than the 8 KiB of it. Its SubjectAltName has many names."""
    key, path, names = cluster.dir / "long.key", cluster.dir / "long.pem", cluster.dir / "long.names"
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=long",
                    "-keyout", key, "-out", cluster.dir / "long.csr"], check=True, stderr=subprocess.DEVNULL)
    names.write_text("subjectAltName=" + ",".join(f"DNS:{n:03d}.{'very-' * 8}long-name.example" for n in range(117)))
    subprocess.run(["openssl", "x509", "-req", "-CA", cluster.dir / "rsa-ca.pem", "-CAkey", cluster.dir / "rsa-ca.key", "-set_serial", "1",
                    "-sha256", "-days", "2", "-extfile", names, "-in", cluster.dir / "long.csr", "-out", path],
                   check=True, stderr=subprocess.DEVNULL)
    assert 7700 < len(ssl.PEM_cert_to_DER_cert(path.read_text())) < 8192
    return path, key


@pytest.mark.parametrize("where", ["sl", "sl, moved"])
def test_a_certificate_that_is_too_long_to_move_is_not_told(cluster, told_backend, long_certificate, where):
    context = cluster.context(alpn=("long",))
    context.load_cert_chain(*long_certificate)
    with contextlib.closing(connect(cluster, address(cluster, where), PLAIN, context)) as web:
        move(cluster, where)
        headers_of(web)
    facts = told_backend.told.pop()
    assert facts.tlvs[ALPN] == b"long" and JA4 in facts.tlvs and FINGERPRINT not in facts.tlvs and SSL_CN not in facts.ssl
    assert cluster.counters()["ragent"]["link_violations"] == 0
