"""RAgent proper dies: the sealed copies that agents left with it go on with their connections, whatever their length."""

import ssl
import subprocess

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

VERSIONS = pytest.mark.parametrize("version", ["1.2", "1.3"])
LINKS = pytest.mark.parametrize("options", [(), ("--workers", "2", "--link", "sealed")], ids=["trusted", "sealed, 2 workers"])

NAMES = {"ordinary": 1, "long": 48}  # of a client in its certificate
IN_COPIES_MAX = 4096  # bytes: sealed copies have no longer certificate


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
