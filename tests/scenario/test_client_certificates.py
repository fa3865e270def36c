"""A session ends with the client certificate that it rests on: by its date, and by a CRL; through RAgent, directly, and at an agent
that heard of it in a snapshot."""

import contextlib
import datetime
import pathlib
import re
import ssl
import subprocess
import time

import pytest

from tests.lib.build import patience
from tests.lib.edits import tls
from tests.lib.waiting import wait_until

VERSIONS = ["1.2", "1.3"]
LIVES_S = (6, 12, 24, 48, 96)  # of a certificate: a slow machine needs a longer one

CA_CONFIG = """\
[ca]
default_ca = this
[this]
database = {dir}/ca.index
serial = {dir}/ca.serial
new_certs_dir = {dir}
default_md = sha256
default_crl_days = 2
policy = any
[any]
commonName = supplied
"""


class Authority:
    """`openssl ca` as the CA that signs clients."""

    def __init__(self, folder):
        self.dir = folder
        (folder / "ca.index").touch()
        (folder / "ca.serial").write_text("5e55\n")
        (folder / "ca.conf").write_text(CA_CONFIG.format(dir=folder))

    def _ca(self, *arguments):
        subprocess.run(["openssl", "ca", "-config", self.dir / "ca.conf", "-cert", self.dir / "ecdsa-ca.pem",
                        "-keyfile", self.dir / "ecdsa-ca.key", "-batch", "-notext", *arguments],
                       check=True, stderr=subprocess.DEVNULL)

    def issue(self, name, life_s):
        """NAME.pem and NAME.key, valid for so long. When it ends."""
        end = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(seconds=life_s)
        path = self.dir / name
        subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                        f"{path}.key", "-subj", f"/CN={name}", "-out", f"{path}.csr"], check=True, stderr=subprocess.DEVNULL)
        self._ca("-in", f"{path}.csr", "-out", f"{path}.pem", "-startdate", "20200101000000Z", "-enddate", f"{end:%Y%m%d%H%M%SZ}")
        return end.timestamp()

    def revoke(self, name):
        self._ca("-revoke", self.dir / f"{name}.pem")

    def write_crl(self):
        """Of both CAs in client_ca only this one has any clients."""
        fresh = self.dir / "clients.crl.new"
        self._ca("-gencrl", "-out", fresh)
        fresh.rename(self.dir / "clients.crl")


class Client:
    """With that certificate, and after begin() with a session."""

    def __init__(self, cluster, name, version):
        self.cluster = cluster
        self.context = cluster.context(version)
        self.context.load_cert_chain(cluster.dir / f"{name}.pem", cluster.dir / f"{name}.key")
        self.session = None

    def ask(self, where):
        """Whether its session was resumed. ssl.SSLError where it is refused, in TLS 1.3 only with the answer."""
        with contextlib.closing(self.cluster.http(where, self.context, session=self.session)) as web:
            web.request("GET", "/5")
            assert web.getresponse().read()
            resumed = web.sock.session_reused
            self.session = self.session or web.sock.session
        return resumed

    def is_refused(self, where, alert):
        with pytest.raises((ssl.SSLError, ConnectionError)) as refused:
            self.ask(where)
        assert alert in str(refused.value) or isinstance(refused.value, ConnectionError), refused.value


def everywhere(cluster):
    """Of one listener, as sessions are bound to theirs: whichever agent RAgent chooses, and each of them directly."""
    return [cluster.sl, *cluster.direct.values()]


def takes_clients(*lines):
    return tls("client_ca: ecdsa-ca.pem", "client_certificate: optional", *lines)


def refused_resumptions(cluster):
    return cluster.counter("resumptions_refused_certificate")


def sessions_until(cluster, authority, name, life_s):
    """Clients with a certificate of that life, whose sessions every agent resumes, one of them from a snapshot; and the certificate's
    end. None: the machine was too slow for so short a life."""
    refused, over = refused_resumptions(cluster), authority.issue(name, life_s)
    try:
        clients = [Client(cluster, name, version) for version in VERSIONS]
        for client in clients:
            assert not client.ask(cluster.direct["a1"])
            assert all(client.ask(where) for where in everywhere(cluster))
        cluster.kill("a2")
        cluster.restart("a2")  # and takes a snapshot
        assert all(client.ask(cluster.direct["a2"]) for client in clients)
        assert refused_resumptions(cluster) == refused
    except (AssertionError, ssl.SSLError, ConnectionError):
        if time.time() < over:
            raise
    return (clients, over) if time.time() < over else None


def test_no_agent_resumes_a_session_whose_client_certificate_is_over(start_cluster):
    cluster = start_cluster("--agents", "2", edit=takes_clients())
    authority = Authority(cluster.dir)
    lives = (f"alice{life_s}" for life_s in LIVES_S)
    clients, over = next(found for name, life_s in zip(lives, LIVES_S) if (found := sessions_until(cluster, authority, name, life_s)))
    refused_before = refused_resumptions(cluster)

    wait_until(lambda: time.time() > over + 1, max(LIVES_S) + 5, "the certificate's end")
    for client in clients:
        for where in everywhere(cluster):
            client.is_refused(where, "certificate expired")
    assert refused_resumptions(cluster) - refused_before == len(clients) * len(everywhere(cluster))


def test_a_crl_that_is_reloaded_ends_sessions_and_full_handshakes(start_cluster):
    authorities = []

    def with_crl(text):
        authorities.append(Authority(pathlib.Path(re.search("link: unix:(.*)/links/", text).group(1))))
        authorities[0].write_crl()
        return takes_clients("client_crl: clients.crl")(text)

    cluster = start_cluster("--agents", "2", edit=with_crl)
    authority, = authorities
    for name in ("alice", "bob"):
        authority.issue(name, 86400)
    clients = {(name, version): Client(cluster, name, version) for name in ("alice", "bob") for version in VERSIONS}
    for client in clients.values():
        assert not client.ask(cluster.sl)
        assert all(client.ask(where) for where in everywhere(cluster))

    authority.revoke("alice")
    authority.write_crl()
    cluster.control("POST", "/v1/reload", {})
    wait_until(lambda: all("certificates reloaded" in cluster.log(name) for name in cluster.agents), patience(10), "a reload")
    for (name, _), client in clients.items():
        for where in everywhere(cluster):
            if name == "bob":
                assert client.ask(where)
            else:
                client.is_refused(where, "certificate revoked")
    assert refused_resumptions(cluster) == len(VERSIONS) * len(everywhere(cluster))
