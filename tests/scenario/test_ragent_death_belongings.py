"""RAgent proper dies: the sealed copies and notes that agents left with it go on with their connections, also if the owner dies with it,
or later."""

import contextlib
import http.server
import os
import re
import signal
import ssl
import subprocess
import threading
from random import Random

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.mover import settled
from tests.lib.rangeless_backend import RangelessBackend
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

VERSIONS = pytest.mark.parametrize("version", ["1.2", "1.3"])
LINKS = pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])


# --- copies with the certificates of clients ---

NAMES = {"ordinary": 1, "long": 96}  # of a client in its certificate
IN_COPIES_MAX = 7300  # bytes: sealed copies have no longer certificate


@pytest.fixture(scope="module")
def rsa_key(tmp_path_factory):
    path = tmp_path_factory.mktemp("client") / "rsa4096.key"
    subprocess.run(["openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096", "-out", path], check=True)
    return path


def certificate(cluster, rsa_key, kind):
    """NAME.pem of a client whose CA has an RSA key as well."""
    path = cluster.dir / f"{kind}.pem"
    extensions = cluster.dir / f"{kind}.extensions"
    extensions.write_text("subjectAltName=" + ",".join(f"DNS:{n}.{'very-' * 8}long-name.example" for n in range(NAMES[kind])))
    request = subprocess.run(["openssl", "req", "-new", "-key", rsa_key, "-subj", f"/CN={kind}"], check=True, capture_output=True).stdout
    subprocess.run(["openssl", "x509", "-req", "-CA", cluster.dir / "rsa-ca.pem", "-CAkey", cluster.dir / "rsa-ca.key", "-set_serial", "0x5e55",
                    "-sha256", "-days", "2", "-extfile", extensions, "-out", path], input=request, check=True, stderr=subprocess.DEVNULL)
    assert 1024 < len(ssl.PEM_cert_to_DER_cert(path.read_text())) <= IN_COPIES_MAX
    return path


def clients_with_certificates(cluster, rsa_key, version, each):
    """So many on each listener with each certificate."""
    webs = []
    for kind in NAMES:
        context = cluster.context(version)
        context.load_cert_chain(certificate(cluster, rsa_key, kind), rsa_key)
        webs += [cluster.http(where, context) for where in (cluster.sf, cluster.sl) for _ in range(each)]
    all_ask(webs)
    return webs


def all_ask(webs):
    for web in webs:
        web.request("GET", "/1k")
        assert len(web.getresponse().read()) == 1024


def all_are(cluster, state):
    wait_until(lambda: all(c["state"] == state for c in cluster.connections()), patience(10), f"all are {state}")


CERTIFICATES = edits.tls("client_ca: rsa-ca.pem", "client_certificate: required")
SILENT = {"idle": ("owned", CERTIFICATES), "resting": ("resting", edits.edits(CERTIFICATES, edits.below("sf", "rest_after: 100ms"),
                                                                              edits.below("sl", "rest_after: 100ms")))}


@VERSIONS
@LINKS
@pytest.mark.parametrize("state,edit", SILENT.values(), ids=SILENT.keys())
def test_clients_with_certificates_go_on(start_cluster, rsa_key, version, options, state, edit):
    """Two deaths in a row; after the second one the copies are good for another agent, too."""
    cluster = start_cluster("--agents", "2", *options, takeover=True, edit=edits.edits(edit, edits.nobody_moves))
    webs = clients_with_certificates(cluster, rsa_key, version, 5)
    all_are(cluster, state)
    for _ in range(2):
        cluster.kill_ragent()
        all_ask(webs)
        all_are(cluster, state)
    cluster.kill("a1")
    all_ask(webs)
    fates = cluster.status()["at_deaths"]
    assert (fates["went_on"], fates["reset"]) == (2 * len(webs), 0)
    assert cluster.counters()["ragent"]["table_full"] == 0
    for web in webs:
        web.close()


@VERSIONS
def test_they_go_on_behind_a_replacement(start_cluster, rsa_key, version):
    cluster = start_cluster("--agents", "2", takeover=True, edit=edits.edits(CERTIFICATES, edits.nobody_moves))
    webs = clients_with_certificates(cluster, rsa_key, version, 5)
    for _ in range(2):
        cluster.replace()
        cluster.kill_ragent()
        all_ask(webs)
    assert cluster.status()["at_deaths"]["reset"] == 0
    for web in webs:
        web.close()


# --- notes of answers under way ---

class _HalfAnswers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body, part = self.server.body, self.headers["Range"]
        first = int(re.fullmatch(r"bytes=(\d+)-\d*", part).group(1)) if part else 0
        self.send_response(206 if part else 200)
        for name, value in {"ETag": '"this"', "Accept-Ranges": "bytes", "Content-Length": len(body) - first}.items():
            self.send_header(name, value)
        if part:
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        with contextlib.suppress(OSError):
            if not part:
                self.wfile.write(body[:len(body) // 2])
                self.server.over.wait()
                return
            self.wfile.write(body[first:])

    def log_message(self, *_):
        pass


class HalfAnswers(http.server.ThreadingHTTPServer):
    """Gives the first half of a whole answer, and no more of it. Asked for the rest, it gives the rest."""

    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _HalfAnswers)
        self.address = "%s:%d" % self.server_address
        self.body, self.over = os.urandom(200_000), threading.Event()

    def handle_error(self, *_):
        """Agents that are killed."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()


class HalfDownload:
    """A client that has the first half of its answer, which is all that was sent."""

    def __init__(self, cluster, backend, version):
        self.web = cluster.http(context=cluster.context(version))
        self.web.request("GET", "/")
        self.answer = self.web.getresponse()
        self.half = self.answer.read(len(backend.body) // 2)
        self.owner = settled(cluster, self.web.sock)["owner"]

    def check_rest(self, backend):
        assert self.half + self.answer.read() == backend.body
        self.web.close()


def count(cluster, name):
    """By the agents that are there."""
    return sum(counts.get(name, 0) for counts in cluster.counters().values())


def kill_ragent_first(cluster, owner):
    cluster.kill_ragent()
    cluster.kill(owner)


def kill_ragent_twice(cluster, owner):
    cluster.kill_ragent()
    kill_ragent_first(cluster, owner)


def kill_ragent_behind_a_replacement(cluster, owner):
    cluster.replace()
    kill_ragent_first(cluster, owner)


def kill_ragent_before_a_replacement(cluster, owner):
    cluster.kill_ragent()
    cluster.replace()
    cluster.kill(owner)


def kill_both(cluster, owner):
    """Within 10 ms."""
    again, pids = cluster.log("r1").count("running again"), [cluster.pid("r1"), cluster.pid(owner)]
    cluster.allow_takeover()
    Random(owner).shuffle(pids)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    cluster.wait_gone(owner)
    wait_until(lambda: cluster.log("r1").count("running again") > again, patience(20), "the next RAgent")


DEATHS = pytest.mark.parametrize("deaths", [kill_ragent_first, kill_ragent_twice, kill_ragent_behind_a_replacement,
                                            kill_ragent_before_a_replacement, kill_both], ids=lambda f: f.__name__)


@VERSIONS
@LINKS
@DEATHS
def test_a_download_outlives_ragent_and_its_owner(start_cluster, version, options, deaths):
    with HalfAnswers() as backend:
        cluster = start_cluster("--agents", "3", *options, "--backend", backend.address, edit=edits.nobody_moves)
        downloads = [HalfDownload(cluster, backend, version) for _ in range(6)]
        owner = downloads[0].owner
        deaths(cluster, owner)
        own = [download for download in downloads if download.owner == owner]
        for download in own:
            download.check_rest(backend)
        assert count(cluster, "downloads_resumed") == len(own)
        assert cluster.status()["at_deaths"]["reset"] == 0
        for download in downloads:
            download.web.close()


@VERSIONS
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_answer_that_may_be_repeated_outlives_ragent_and_its_owner(start_cluster, version, framing):
    """It has another note before each of its frames. RAgent dies in the middle, and the owner a little later."""
    with RangelessBackend() as backend:
        backend.body = os.urandom(1 << 20)
        cluster = start_cluster("--agents", "3", "--backend", backend.address, takeover=True,
                                edit=edits.edits(edits.nobody_moves, edits.below("sf", "repeat_downloads: 64MiB")))
        with contextlib.closing(cluster.http(context=cluster.context(version))) as web:
            web.request("GET", f"/{framing}?ms={1000 * patience(4):.0f}")
            answer = web.getresponse()
            body = answer.read(100_000)
            for _ in range(2):
                cluster.kill_ragent()
                body += answer.read(200_000)
            cluster.kill_ragent()
            cluster.kill(settled(cluster, web.sock)["owner"])
            assert body + answer.read() == backend.body
        assert count(cluster, "downloads_repeated") == 1
        assert cluster.status()["at_deaths"]["reset"] == 0
