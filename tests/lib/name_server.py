"""A name server that answers recursively for zones of a test's own, signed or not.

    zone = Zone(folder, "b.example", ["mx A 127.0.0.1", tlsa(port, chain)])
    with NameServer(folder, zone, Zone(folder, "c.example", [...], signed=False)) as server:
        dns = {"servers": [server.address], "trust_anchor": zone.anchor}

Only the test's zones have a trust anchor: all others are insecure.
"""

import hashlib
import pathlib
import socket
import struct
import subprocess

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.waiting import wait_until

HEAD = ["@ SOA ns hostmaster 1 3600 600 86400 1", "@ NS ns", "ns A 127.0.0.1"]
CONFIG = """
server:
    interface: {host}@{port}
    port: {port}
    do-daemonize: no
    username: ""
    chroot: ""
    pidfile: ""
    directory: "{folder}"
    use-syslog: no
    logfile: "{folder}/unbound.log"
    access-control: 127.0.0.0/8 allow
    module-config: "{modules}"
    num-threads: 1
    local-zone: "test." nodefault
    local-zone: "home.arpa." nodefault
{anchors}
remote-control:
    control-enable: no
"""
ZONE = """
auth-zone:
    name: "{name}."
    zonefile: "{path}"
    for-downstream: no
    for-upstream: yes
    fallback-enabled: no
"""


def _openssl(*arguments, given=None):
    return subprocess.run(["openssl", *arguments], check=True, input=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def digest_of_key(certificate):
    """SHA-256 of the public key of a certificate's file: selector 1, matching type 1."""
    key = _openssl("x509", "-in", str(certificate), "-noout", "-pubkey")
    return hashlib.sha256(_openssl("pkey", "-pubin", "-outform", "DER", given=key)).hexdigest()


def tlsa(port, certificate, usage=3, host="mx"):
    return f"_{port}._tcp.{host} TLSA {usage} 1 1 {digest_of_key(certificate)}"


class Zone:
    def __init__(self, folder, name, records, signed=True, forged=(), ttl=60):
        """`records`: lines of a zone file, relative to the zone's name. `forged`: pairs of texts; in the signed zone, the second stands
        in place of the first."""
        self._folder = pathlib.Path(folder) / f"zone-{name}"
        self._folder.mkdir(exist_ok=True)
        self.name, self._ttl, self._key, self.anchor = name, ttl, None, None
        if signed:
            self._key = self._run("ldns-keygen", "-a", "ECDSAP256SHA256", "-k", name)
            self.anchor = str(self._folder / f"{self._key}.ds")
        self.path = self._folder / ("signed" if signed else "zone")
        self.change(records, forged)

    def change(self, records, forged=()):
        """Other records, signed with the same key. A server reads them when it starts."""
        lines = [f"$ORIGIN {self.name}.", f"$TTL {self._ttl}", *HEAD, *records]
        (self._folder / "zone").write_text("\n".join(lines) + "\n")
        if self._key:
            self._run("ldns-signzone", "-o", self.name, "-f", "signed", "zone", self._key)
        text = self.path.read_text()
        for before, after in forged:
            assert before in text, text
            text = text.replace(before, after)
        self.path.write_text(text)

    def _run(self, *command):
        return subprocess.run(command, cwd=self._folder, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def _question(name):
    """For the SOA record of that name (RFC 1035 4.1); recursion is wanted."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, 6, 1)


class NameServer:
    def __init__(self, folder, *zones, listen=None, validates=False):
        """`listen`: (host, port). `validates`: it validates with the trust anchors of the zones itself, and says so by AD."""
        self.folder = pathlib.Path(folder)
        self.host, self.port = listen or ("127.0.0.1", free_ports(1)[0])
        self.address = f"{self.host}:{self.port}"
        anchors = [f'    trust-anchor-file: "{zone.anchor}"' for zone in zones if zone.anchor and validates]
        self._config = self.folder / "unbound.conf"
        self._config.write_text(CONFIG.format(host=self.host, port=self.port, folder=self.folder, anchors="\n".join(anchors),
                                              modules="validator iterator" if validates else "iterator") +
                                "".join(ZONE.format(name=zone.name, path=zone.path) for zone in zones))
        self._name = zones[0].name
        self._process = None

    def _answers(self):
        """Asks by itself, because a resolver asks a second time only after seconds. OSError: it does not listen yet."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(1)
            asking.connect((self.host, self.port))
            asking.send(_question(self._name))
            return asking.recv(512)[3] & 0x0f == 0  # RCODE 0: no error

    def __enter__(self):
        self._process = subprocess.Popen(["unbound", "-c", str(self._config), "-d", "-p"])
        try:
            wait_until(self._answers, patience(10), "unbound")
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        self._process.kill()
        self._process.wait()

    def __exit__(self, *_):
        self.stop()

    def restart(self):
        """It reads its zones again, and has an empty cache."""
        self.stop()
        self.__enter__()


class SilentNameServer:
    """Takes questions, and never answers."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(patience(20))
        self.address = "127.0.0.1:{}".format(self._socket.getsockname()[1])

    def wait_asked(self):
        assert self._socket.recv(4096)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
