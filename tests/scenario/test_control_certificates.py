"""Client certificates at the control API, in the place of tokens: the listener in front verifies them, and RAgent goes by their name."""

import json
import subprocess

import pytest

from tests.lib.build import binary, patience
from tests.lib.csslctl import REFUSED, USAGE, csslctl
from tests.lib.edits import edits
from tests.lib.waiting import wait_until

OPENSSL = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]


def over_a_path(text):
    """The control API behind a UNIX socket; its listener, which stands first, asks for certificates."""
    plain = next(line.split()[-1] for line in text.splitlines() if "control_address:" in line)
    text = text.replace(f"control_address: {plain}", "control_address: unix:ragent/front.sock")
    text = text.replace(f'address: "{plain}"', "address: unix:ragent/front.sock")
    return text.replace("      certificates: [ecdsa, rsa]\n", "      certificates: [ecdsa, rsa]\n      client_ca: ecdsa-ca.pem\n"
                        "      client_certificate: optional\n", 1)


@pytest.fixture(scope="module")
def cluster(start_module_cluster):
    cluster = start_module_cluster("--agents", "2", edit=edits(over_a_path))
    subprocess.run([*OPENSSL, "-subj", "/CN=client", "-keyout", cluster.dir / "forged.key", "-out", cluster.dir / "forged.pem"],
                   check=True, stderr=subprocess.DEVNULL)
    return cluster


def ask(cluster, path, *options, certificate=None):
    """By curl: (status, answer)."""
    identity = ["--cert", cluster.dir / f"{certificate}.pem", "--key", cluster.dir / f"{certificate}.key"] if certificate else []
    url = cluster.description()["control"]["url"].rstrip("/") + path
    done = subprocess.run(["curl", "-sS", "--cacert", cluster.ca, *identity, *options, "-w", "\n%{http_code}", url], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=patience(30))
    answer, _, status = done.stdout.rpartition("\n")
    return int(status or 0), answer


def allow(cluster, *lines):
    """These holders of certificates, beside the operator's token."""
    path = cluster.dir / "control.tokens"
    tokens = [line for line in path.read_text().splitlines() if "cn=" not in line]
    path.write_text("".join(line + "\n" for line in [*tokens, *lines]))
    cluster.control("POST", "/v1/reload", {})


def rotate(cluster, certificate, *options):
    return ask(cluster, "/v1/keys/rotate", "-X", "POST", "-H", "Content-Type: application/json", *options, certificate=certificate)


def test_a_certificate_has_the_role_of_its_name(cluster):
    allow(cluster)
    assert ask(cluster, "/v1/status", certificate="client")[0] == 401
    allow(cluster, "watcher read cn=client")
    status, answer = ask(cluster, "/v1/status", certificate="client")
    assert status == 200 and json.loads(answer)["name"] == "r1"
    status, answer = rotate(cluster, "client")
    assert status == 403 and "watcher" in answer and "operate" in answer
    allow(cluster, "night-shift operate cn=client")
    assert rotate(cluster, "client")[0] == 200
    wait_until(lambda: "who=night-shift method=POST path=/v1/keys/rotate" in cluster.log("r1"), patience(5))


def test_the_tool_shows_a_certificate(cluster):
    allow(cluster, "watcher read cn=client")
    place = ["--api", cluster.description()["control"]["url"], "--cacert", cluster.ca]
    shown = ["--cert", cluster.dir / "client.pem", "--key", cluster.dir / "client.key"]
    assert csslctl(*place, *shown, "status").facts["ragent"] == "r1"
    refused = csslctl(*place, *shown, "keys", "rotate")
    assert refused.code == REFUSED and "watcher" in refused.err
    assert csslctl(*place, "status").code == REFUSED
    assert csslctl("--dir", cluster.dir, *shown, "status").code == USAGE
    assert csslctl(*place, *shown[2:], "status").code == USAGE


def test_a_client_without_a_certificate_needs_a_token(cluster):
    allow(cluster, "night-shift operate cn=client")
    status, answer = ask(cluster, "/v1/status")
    assert status == 401 and "client certificate" in answer
    token = (cluster.dir / "control.token").read_text().strip()
    assert ask(cluster, "/v1/status", "-H", f"Authorization: Bearer {token}")[0] == 200


def test_a_token_beside_a_certificate_may_do_more(cluster):
    allow(cluster, "watcher read cn=client")
    token = (cluster.dir / "control.token").read_text().strip()
    assert rotate(cluster, "client")[0] == 403
    assert rotate(cluster, "client", "-H", f"Authorization: Bearer {token}")[0] == 200


def test_a_certificate_of_another_authority_gets_nowhere(cluster):
    allow(cluster, "night-shift operate cn=client")
    assert ask(cluster, "/v1/status", certificate="forged")[0] == 0
    wait_until(lambda: any("handshake failed" in cluster.log(name) for name in cluster.agents), patience(5))


def test_a_new_ragent_serves_them_too(cluster):
    allow(cluster, "night-shift operate cn=client")
    cluster.replace()
    assert rotate(cluster, "client")[0] == 200
    assert csslctl("--dir", cluster.dir, "status").code == 0


def test_a_page_of_another_site_changes_nothing(cluster):
    """The browser of an operator shows the certificate for it."""
    allow(cluster, "night-shift operate cn=client")
    for foreign in (["-H", "Content-Type: text/plain"], ["-H", "Content-Type: application/json", "-H", "Origin: https://evil.example"]):
        status, answer = ask(cluster, "/v1/keys/rotate", "-X", "POST", *foreign, certificate="client")
        assert status == 403 and ("Content-Type" in answer or "another site" in answer)


def test_a_replacement_that_fails_leaves_everything_as_it_was(cluster):
    """The control socket of the running process, too."""
    allow(cluster, "night-shift operate cn=client")
    tokens, pid = cluster.dir / "control.tokens", cluster.pid("r1")
    good = tokens.read_text()
    tokens.write_text("nonsense\n")
    try:
        done = subprocess.run([binary("ragent/ragent"), "--config", cluster.dir / "cluster.yaml", "--name", "r1", "--replace"], text=True,
                              stderr=subprocess.PIPE, check=False, timeout=patience(20), env=cluster.env)
        assert done.returncode == 1 and f"{tokens}:1" in done.stderr
        reload = csslctl("--dir", cluster.dir, "reload")
        assert reload.code == REFUSED and "control.tokens:1" in reload.out + reload.err and "a1" in reload.out
    finally:
        tokens.write_text(good)
    assert cluster.pid("r1") == pid
    assert csslctl("--dir", cluster.dir, "status").code == 0
    assert rotate(cluster, "client")[0] == 200


def test_names_of_certificates_are_refused_where_everybody_could_claim_one(start_cluster):
    """The control address of ./cssl up is a TCP port of this host."""
    cluster = start_cluster("--agents", "1")
    path = cluster.dir / "control.tokens"
    path.write_text(path.read_text() + "night-shift operate cn=client\n")
    reload = csslctl("--dir", cluster.dir, "reload")
    assert reload.code != 0 and "r1" in reload.err and "control.tokens:2" in reload.out and "unix:PATH" in reload.out
    assert ask(cluster, "/v1/status", certificate="client")[0] == 401
