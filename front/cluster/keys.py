"""What a cluster's folder has once: its keys (link.key for the links; agents.key, which only agents may read; mail.key, which seals the
mails in the Redis servers of --mail-queue), a token for the control API, and throw-away certificates. As root, ragent runs under a
user of its own that cannot read agents.key; that user must be able to reach the folder."""

import base64
import hashlib
import os
import pwd
import time

from .plan import Failure, output_of, read_lines, read_word, remove, replace_file, wait_for, write_file

RAGENT_USER = "cssl-ragent"
CERTIFICATE_DAYS, CERTIFICATE_DAYS_LEFT = 397, 61  # the most that browsers take; with fewer days left, scanners warn
SERVER_NAMES = "DNS:localhost,DNS:cssl.test,DNS:*.cssl.test,IP:127.0.0.1,IP:::1"
KINDS = {"ecdsa": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
         "rsa": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")}


def _make_key(path):
    if not os.path.isfile(path):
        replace_file(path, f"{time.strftime('%Y%m%d')} {os.urandom(32).hex()}\n", 0o600)


def _make_token(cluster):
    """control.token is the operator's; control.tokens, with its hash only, is what RAgent reads."""
    if os.path.isfile(cluster.path("control.token")):
        return
    token = "cssl_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    digest = hashlib.blake2b(token.encode(), digest_size=32).hexdigest()
    write_file(cluster.path("control.tokens"), f"operator operate {digest}\n")
    os.chmod(cluster.path("control.tokens"), 0o644)
    replace_file(cluster.path("control.token"), token + "\n", 0o600)  # last: with it, both are there


def make_keys(cluster, settings):
    """Makes those that are not there."""
    for name in ("link.key", "agents.key", *(["mail.key"] if settings["mail_queue"] else [])):
        _make_key(cluster.path(name))
    _make_token(cluster)


def _make_private_key(cluster, name, kind):
    write_file(cluster.path(f"{name}.key"), output_of(cluster, "openssl", "genpkey", "-quiet", *KINDS[kind]).decode(), 0o600)


def _make_ca(cluster, kind):
    name = f"{kind}-ca"
    _make_private_key(cluster, name, kind)
    output_of(cluster, "openssl", "req", "-x509", "-new", "-key", f"{name}.key", "-sha256", "-days", str(CERTIFICATE_DAYS), "-subj",
              f"/CN=CSSL throw-away {kind.upper()} CA", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", f"{name}.pem")
    write_file(cluster.path("revoked"), "")
    write_file(cluster.path("crl.conf"), "[ca]\ndefault_ca = this\n[this]\ndatabase = revoked\n")
    output_of(cluster, "openssl", "ca", "-gencrl", "-config", "crl.conf", "-cert", f"{name}.pem", "-keyfile", f"{name}.key", "-md", "sha256",
              "-crldays", str(CERTIFICATE_DAYS), "-out", f"{name}.crl")
    remove(cluster.path("crl.conf"), cluster.path("revoked"))


def _make_certificate(cluster, name, kind, subject, extensions):
    _make_private_key(cluster, name, kind)
    request = output_of(cluster, "openssl", "req", "-new", "-key", f"{name}.key", "-subj", subject)
    write_file(cluster.path("extensions"), extensions + "\n")
    output_of(cluster, "openssl", "x509", "-req", "-CA", f"{kind}-ca.pem", "-CAkey", f"{kind}-ca.key", "-set_serial",
              "0x" + os.urandom(16).hex(), "-sha256", "-days", str(CERTIFICATE_DAYS), "-extfile", "extensions", "-out", f"{name}.pem",
              said=request)
    os.unlink(cluster.path("extensions"))


def make_certificates(cluster):
    """Each kind has a CA of its own, so that a client that knows only RSA, or only ECDSA, can verify every signature of its chain.
    ca.pem has both CAs. And a certificate of a client. The lists of revoked certificates are empty; scanners want to see where they are."""
    until = cluster.path("certificates.until")
    if time.time() < int(read_word(until) or 0) and os.path.isfile(cluster.path("client.pem")):
        return
    from urllib.parse import quote  # pylint: disable=import-outside-toplevel  # slow to import
    for kind in KINDS:
        _make_ca(cluster, kind)
    write_file(cluster.path("ca.pem"), "".join(line for kind in KINDS for line in read_lines(cluster.path(f"{kind}-ca.pem"))))
    for kind in KINDS:
        revoked = "file://" + quote(cluster.path(f"{kind}-ca.crl"))
        _make_certificate(cluster, kind, kind, "/CN=localhost", f"subjectAltName={SERVER_NAMES}\ncrlDistributionPoints=URI:{revoked}")
    _make_certificate(cluster, "client", "ecdsa", "/CN=client", "extendedKeyUsage=clientAuth")
    write_file(until, f"{int(time.time()) + (CERTIFICATE_DAYS - CERTIFICATE_DAYS_LEFT) * 86400}\n")  # last: with it, all are there


def ragent_user():
    """Its entry in the list of users, or None."""
    try:
        return pwd.getpwnam(RAGENT_USER)
    except KeyError:
        return None


def make_ragent_user(cluster):
    """Makes it if root has not yet."""
    if os.geteuid() != 0 or ragent_user():
        return
    try:
        output_of(cluster, "useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", RAGENT_USER)
    except Failure:
        if not wait_for(5, ragent_user):  # another command makes it at this moment
            raise


def ragent_user_reaches(cluster):
    """Whether ragent can enter the folder."""
    command = ["setpriv", f"--reuid={RAGENT_USER}", "--clear-groups", "test", "-x", cluster.dir]
    return os.geteuid() != 0 or os.waitpid(os.posix_spawnp(command[0], command, cluster.env), 0)[1] == 0


def make_ragent_folder(cluster):
    """Where ragent makes its control socket."""
    os.makedirs(cluster.path("ragent"), exist_ok=True)
    if os.geteuid() == 0:
        os.chown(cluster.path("ragent"), ragent_user().pw_uid, -1)
