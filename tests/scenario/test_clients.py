"""Real clients: each TLS version, AEAD suite and kind of certificate, through both modes, over HTTP/1.1 and HTTP/2."""

import base64
import contextlib
import hashlib
import itertools
import json
import re
import shutil
import socket
import ssl
import struct
import subprocess

import pytest

from bench.experiments.ports import free_ports
from tests.lib import edits
from tests.lib.build import binary, patience
from tests.lib.mover import Restless, until_moved
from tests.lib.pattern import pattern
from tests.lib.waiting import wait_until

# The suite of TLS 1.3, the end of OpenSSL's name of that of TLS 1.2, GnuTLS's name of the cipher.
SUITES = {
    "aes128": ("TLS_AES_128_GCM_SHA256", "AES128-GCM-SHA256", "AES-128-GCM"),
    "aes256": ("TLS_AES_256_GCM_SHA384", "AES256-GCM-SHA384", "AES-256-GCM"),
    "chacha": ("TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", "CHACHA20-POLY1305"),
}
PARTS = list(itertools.product(("sf", "sl"), ("1.2", "1.3"), SUITES, ("ecdsa", "rsa")))
LISTENERS = ["-".join(parts) for parts in PARTS]
MODES_AND_VERSIONS = ["-".join(parts) for parts in itertools.product(("sf", "sl"), ("1.2", "1.3"), ("aes128",), ("ecdsa",))]


def suite_names(listener):
    """The names of the only suite of that listener: in OpenSSL, in the RFCs and Go, in GnuTLS."""
    _, version, suite, certificate = listener.split("-")
    suite13, end12, cipher = SUITES[suite]
    if version == "1.3":
        return suite13, suite13, cipher
    kind = certificate.upper()
    return f"ECDHE-{kind}-{end12}", f"TLS_ECDHE_{kind}_WITH_{suite13.removeprefix('TLS_')}", cipher


def listener_yaml(name):
    mode, version, _, certificate = name.split("-")
    suites = "cipher_suites" if version == "1.3" else "ciphers"
    return f"""\
  - name: {name}
    listen: ["127.0.0.1:0"]
    mode: {mode}
    affinity_bound: off
    backend: main
    alpn:
      - {{ protocol: h2, service: tcp, backend: h2 }}
      - {{ protocol: http/1.1, service: http, backend: main }}
    tls:
      version_min: {version}
      version_max: {version}
      {suites}: {suite_names(name)[0]}
      certificates: [{certificate}]"""


@pytest.fixture(scope="module")
def h2_backend(tmp_path_factory):
    """nghttpd with the files that `cssl-bench serve` would answer with; its port."""
    folder = tmp_path_factory.mktemp("h2")
    for name, size in (("1k", 1024), ("64k", 65536), ("1m", 1 << 20)):
        (folder / name).write_bytes(pattern(size))
    port, = free_ports(1)
    process = subprocess.Popen(["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", str(folder), str(port)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: not socket.create_connection(("127.0.0.1", port)).close(), patience(10), "nghttpd")
    yield port
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def cluster(start_module_cluster, h2_backend):
    cluster = start_module_cluster("--agents", "2", edit=edits.edits(
        edits.backend("h2", f"127.0.0.1:{h2_backend}"), edits.at_end(*map(listener_yaml, LISTENERS))))
    cluster.ports = {one["name"]: int(one["addresses"][0].rsplit(":", 1)[1]) for one in cluster.status()["listeners"]}
    return cluster


@pytest.fixture(params=["stays", "moves"])
def moving(request, cluster):
    """Each client once left alone, and once with its connections moved to and fro all the while: by whom. A test that takes this
    shows that something was moved. Those that only look at handshakes do not take it: nothing can be moved before the end of one."""
    if request.param == "stays":
        yield None
        return
    with Restless(cluster) as restless:
        yield restless


def run(*command, said=None):
    """Returns its standard error, followed by its standard output."""
    done = subprocess.run(command, input=said, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(30), check=False)
    out = done.stderr + done.stdout
    assert done.returncode == 0, f"{command}:\n{out.decode(errors='replace')}"
    return out


REQUEST = b"GET /64k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def assert_whole(output, size=65536):
    assert pattern(size) in output, output[:2000]


# Each client: gets an answer, checks it as far as the client lets us, returns what it said of the suite and how many
# connections it made.

def s_client(cluster, port):
    out = run("openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "localhost", "-CAfile", cluster.ca,
              "-verify_return_error", "-verify_hostname", "localhost", "-ign_eof", said=REQUEST)
    assert_whole(out)
    return re.search(rb"Cipher is (\S+)", out).group(1), 1


def curl(cluster, port, *options, version=b"1.1"):
    out = run("curl", "-sv", "--cacert", cluster.ca, "--resolve", f"localhost:{port}:127.0.0.1", *options,
              f"https://localhost:{port}/64k")
    assert_whole(out)
    assert b"HTTP/" + version + b" 200" in out or b"HTTP/" + version + b" 200 OK" in out
    return re.search(rb"SSL connection using \S+ / (\S+)", out).group(1), 1


def curl_http1(cluster, port):
    return curl(cluster, port, "--http1.1")


def curl_h2(cluster, port):
    return curl(cluster, port, "--http2", version=b"2")


def h2load(cluster, port, *options, protocol):
    out = run("h2load", *options, "-n20", "-c2", "-m1", f"https://127.0.0.1:{port}/1k")
    assert b"20 succeeded, 0 failed, 0 errored" in out and b"20 2xx" in out, out
    assert b"Application protocol: " + protocol in out
    assert re.search(rb"\((\d+)\) data", out).group(1) == b"20480", out
    return re.search(rb"Cipher: (\S+)", out).group(1), 2


def h2load_http1(cluster, port):
    return h2load(cluster, port, "--h1", protocol=b"http/1.1")


def h2load_h2(cluster, port):
    return h2load(cluster, port, protocol=b"h2")


def ab(cluster, port):
    out = run("ab", "-q", "-n6", "-c1", f"https://127.0.0.1:{port}/1k")
    assert re.search(rb"Complete requests: +6\n", out) and re.search(rb"Failed requests: +0\n", out), out
    assert re.search(rb"HTML transferred: +6144 bytes", out) and b"Non-2xx" not in out, out
    return re.search(rb"SSL/TLS Protocol: +\S+?,([^,]+),", out).group(1), 6


def gnutls_cli(cluster, port):
    out = run("gnutls-cli", "--x509cafile", cluster.ca, "--sni-hostname", "localhost", "--verify-hostname", "localhost",
              "--port", str(port), "127.0.0.1", said=REQUEST)
    assert_whole(out)
    return re.search(rb"Description: \S+-\(([^)]+)\)\n", out).group(1), 1


def python(cluster, port):
    web = cluster.http(("127.0.0.1", port))
    web.request("GET", "/64k")
    assert_whole(web.getresponse().read())
    name = web.sock.cipher()[0]
    web.close()
    return name.encode(), 1


def go(cluster, port, *options, protocol="HTTP/1.1"):
    out = json.loads(run(binary("tests/lib/getter"), "-ca", cluster.ca, *options, f"https://127.0.0.1:{port}/64k"))
    assert (out["status"], out["proto"], out["bytes"]) == (200, protocol, 65536)
    assert out["sha256"] == hashlib.sha256(pattern(65536)).hexdigest()
    return out["suite"].encode(), 1


def go_http1(cluster, port):
    return go(cluster, port)


def go_h2(cluster, port):
    return go(cluster, port, "-h2", protocol="HTTP/2.0")


def handshakes(cluster, listener):
    """Made in the listener's TLS version, and failed."""
    version = listener.split("-")[1].replace(".", "")
    return cluster.counter(f"handshakes_tls{version}"), cluster.counter("handshakes_failed")


@pytest.mark.tool("openssl", "curl", "h2load", "ab", "gnutls-cli", "nghttpd")
@pytest.mark.parametrize("client", [s_client, curl_http1, curl_h2, h2load_http1, h2load_h2, ab, gnutls_cli, python,
                                    go_http1, go_h2], ids=lambda c: c.__name__)
@pytest.mark.parametrize("parts", PARTS, ids="-".join)
def test_a_client_gets_its_answer(cluster, client, parts, moving):
    listener = "-".join(parts)
    for _ in until_moved(moving):
        made, failed = handshakes(cluster, listener)
        suite, connections = client(cluster, cluster.ports[listener])
        assert suite.decode() in suite_names(listener)
        assert handshakes(cluster, listener) == (made + connections, failed)


@pytest.mark.tool("openssl")
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("algorithms,certificate", [("ECDSA+SHA256", "ecdsa"), ("RSA-PSS+SHA256:RSA+SHA256", "rsa")])
def test_a_listener_with_both_certificates_shows_the_one_a_client_can_verify(cluster, version, algorithms, certificate):
    out = run("openssl", "s_client", "-connect", "%s:%d" % cluster.sf, f"-tls{version.replace('.', '_')}", "-sigalgs", algorithms)
    shown = out[out.index(b"-----BEGIN CERTIFICATE"):out.index(b"-----END CERTIFICATE")]
    assert shown in (cluster.dir / f"{certificate}.pem").read_bytes()


@pytest.mark.tool("openssl")
def test_the_hybrid_group_comes_first_where_openssl_has_it(cluster):
    """Although the client prefers X25519, and sends a key share (`*`) of both. And is no hindrance where it does not."""
    hybrid = b"X25519MLKEM768" in run("openssl", "list", "-kem-algorithms")
    groups = "*X25519:*X25519MLKEM768" if hybrid else "X25519:P-384"
    out = run("openssl", "s_client", "-connect", "%s:%d" % cluster.sf, "-tls1_3", "-groups", groups)
    assert re.search(b"Negotiated TLS1.3 group: X25519MLKEM768" if hybrid else b"Server Temp Key: X25519", out)


def hello_that_verifies_only(version, kind, schemes):
    """A ClientHello with the extension signature_algorithms_cert (RFC 8446 4.2.3): the algorithms for certificates of the chain.
    OpenSSL does not use it when it chooses a suite of TLS 1.2, so only suites of that kind are offered."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2 if version == "1.2" else ssl.TLSVersion.TLSv1_3
    context.set_ciphers(f"ECDHE+a{kind}")
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    hello = bytearray(out.read())
    listed = b"".join(scheme.to_bytes(2, "big") for scheme in schemes)
    added = struct.pack(">HHH", 50, len(listed) + 2, len(listed)) + listed
    at = 5 + 4 + 2 + 32              # behind record and handshake header, version and random
    at += 1 + hello[at]              # session id
    at += 2 + int.from_bytes(hello[at:at + 2], "big")  # suites
    at += 1 + hello[at]              # compression
    for start, width in ((at, 2), (6, 3), (3, 2)):     # lengths of the extensions, of the message, of the record
        length = int.from_bytes(hello[start:start + width], "big") + len(added)
        hello[start:start + width] = length.to_bytes(width, "big")
    return bytes(hello) + added


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("kind,schemes", [("RSA", (0x0804, 0x0401)), ("ECDSA", (0x0403,))])
def test_a_client_that_knows_one_kind_of_signature_is_not_refused(cluster, version, kind, schemes):
    """Not even one that cannot verify certificates which the other kind of CA signed."""
    with socket.create_connection(cluster.sf, patience(10)) as client:
        client.sendall(hello_that_verifies_only(version, kind, schemes))
        assert client.recv(1) == b"\x16", "an alert in the place of a ServerHello"


@pytest.mark.tool("openssl")
@pytest.mark.parametrize("kind,options", [("rsa", ("-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256")),
                                          ("rsa", ("-tls1_3", "-sigalgs", "RSA-PSS+SHA256:RSA+SHA256")),
                                          ("ecdsa", ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256")),
                                          ("ecdsa", ("-tls1_3", "-sigalgs", "ECDSA+SHA256"))])
def test_the_chain_of_each_kind_needs_only_the_ca_of_that_kind(cluster, kind, options):
    for ca in (f"{kind}-ca.pem", "ca.pem"):
        out = run("openssl", "s_client", "-connect", "%s:%d" % cluster.sf, "-CAfile", str(cluster.dir / ca), "-verify_return_error",
                  *options)
        assert b"Verify return code: 0 (ok)" in out


@pytest.mark.tool("wrk")
@pytest.mark.parametrize("listener", MODES_AND_VERSIONS)
def test_wrk_has_no_errors(cluster, listener, moving):
    out = run("wrk", "-t1", "-c8", "-d1s", f"https://127.0.0.1:{cluster.ports[listener]}/1k")
    assert b"Non-2xx" not in out and b"Socket errors" not in out, out
    assert int(re.search(rb"(\d+) requests in", out).group(1)) >= 8  # one for each connection at least, though the machine is busy
    assert not moving or moving.moves > 0


def key_hash(cluster, certificate):
    """The value for --ignore-certificate-errors-spki-list: base64 of the SHA-256 of the public key."""
    pem = run("openssl", "x509", "-in", str(cluster.dir / f"{certificate}.pem"), "-noout", "-pubkey")
    return base64.b64encode(hashlib.sha256(run("openssl", "pkey", "-pubin", "-outform", "der", said=pem)).digest()).decode()


@pytest.mark.tool("chromium")
@pytest.mark.plain  # nothing that the clients above do not do
@pytest.mark.usefixtures("host_network")
@pytest.mark.parametrize("listener", MODES_AND_VERSIONS)
def test_chromium_shows_a_page_with_50_parts(cluster, tmp_path, listener, moving):
    """The listener `sf` or `sl` of `up`, which offers no h2: the page is on the HTTP/1.1 backend."""
    mode, version = listener.split("-")[:2]
    host, port = getattr(cluster, mode)
    for _ in until_moved(moving):
        made, failed = handshakes(cluster, listener)
        out = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={tmp_path}", f"--ssl-version-max=tls{version}",
             f"--ignore-certificate-errors-spki-list={key_hash(cluster, 'ecdsa')}", "--dump-dom", f"https://{host}:{port}/page"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(60), check=False).stdout.decode()
        shutil.rmtree(tmp_path, ignore_errors=True)
        assert "<title>50 of 50 loaded</title>" in out, out[:500]
        after = handshakes(cluster, listener)
        assert after[0] > made and after[1] == failed
