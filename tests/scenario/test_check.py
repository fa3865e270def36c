"""What --check calls good starts: for each kind of broken file it says the same as the start does. Both are run as an ordinary user, who
cannot read what belongs to another one."""

import json
import os
import pathlib
import pwd
import re
import select
import shutil
import subprocess
import tempfile

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import BUILD, binary, patience
from tests.lib.cluster import CSSL
from tests.lib.waiting import wait_until

# Each makes a file of one kind.


def missing(path):
    path.unlink()


def empty(path):
    path.write_text("")


def of_another(path):
    """Nobody else can read it; without root, neither can its owner."""
    path.chmod(0o600 if os.geteuid() == 0 else 0)
    if os.geteuid() == 0:
        os.chown(path, 0, 0)


def nonsense(path):
    path.write_text("nonsense\n")


def cut_off(path):
    path.write_text("".join(path.read_text().splitlines(True)[:2]))


def too_open(path):
    path.chmod(0o666)


def a_folder(path):
    path.unlink(missing_ok=True)
    path.mkdir()


def link_of_another(path):
    """To a file that nobody else can write."""
    path.unlink()
    path.symlink_to(path.with_name("of_another"))
    path.with_name("of_another").touch()
    of_another(path.with_name("of_another"))


def of_another_pair(path):
    shutil.copyfile(path.with_name("rsa.key"), path)


def encrypted(path):
    path.write_bytes(subprocess.run(["openssl", "pkey", "-in", path, "-aes256", "-passout", "pass:word"], check=True,
                                    stdout=subprocess.PIPE).stdout)


# What is told of the PEM files of any daemon.
CAUSES = {missing: "No such file", empty: "which is empty", of_another: "Permission denied", nonsense: "without one", cut_off: "cut off",
          too_open: "with mode 0666", encrypted: "which is encrypted", of_another_pair: "certificate"}
PEM = {"ca.pem", "redis-ca.pem", "ecdsa.pem", "ecdsa.key", "clients.pem", "clients.crl"}

SECRETS = (missing, empty, of_another, nonsense, too_open)
LOGS = (of_another, a_folder, link_of_another)
BROKEN = {
    "ragent": {"link.key": SECRETS, "control.tokens": (missing, of_another, nonsense, too_open), "access.log": LOGS, "daemon.log": LOGS},
    "sslagent": {"agents.key": SECRETS, "link.key": (missing,), "ecdsa.pem": (missing, empty, of_another, nonsense, cut_off),
                 "ecdsa.key": (*SECRETS, encrypted, of_another_pair), "clients.pem": (missing, empty, of_another, nonsense),
                 "clients.crl": (missing, empty, of_another, nonsense), "daemon.log": LOGS},
    "smtpproxy": {"queue.key": SECRETS, "redis.password": (missing, empty, of_another, too_open),
                  "ca.pem": (missing, empty, of_another, nonsense), "redis-ca.pem": (missing, nonsense), "ecdsa.pem": (missing, empty, cut_off),
                  "ecdsa.key": (*SECRETS, encrypted, of_another_pair),
                  "root.key": (missing, nonsense, of_another), "events.json": LOGS, "own.log": LOGS},
}


def smtpproxy_file(folder):
    tls = {key: str(folder / name) for key, name in (("ca", "redis-ca.pem"), ("certificate", "ecdsa.pem"), ("key", "ecdsa.key"))}
    backups = [{"paths": ["127.0.0.1:1"], "password_file": str(folder / "redis.password")}, {"paths": ["127.0.0.2:1"], **tls}]
    return json.dumps({
        "name": "proxy.example", "deliver": "queue", "events": str(folder / "events.json"), "log": {"path": str(folder / "own.log")},
        "listeners": [{"address": f"127.0.0.1:{free_ports(1)[0]}", "original_destination": "proxy", "trusted": ["127.0.0.0/8"],
                       "clients": ["127.0.0.0/8"]}],
        "queue": {"role": "alone", "keys": str(folder / "queue.key"), "backups": backups, "next_hop": "127.0.0.1:25"},
        "outward": {"ca": str(folder / "ca.pem")}, "dns": {"trust_anchor": str(folder / "root.key"), "servers": ["127.0.0.1:53"]}})


def cluster_file(text):
    """It has a log, and asks for client certificates."""
    asks = "      client_ca: clients.pem\n      client_crl: clients.crl\n      client_certificate: optional\n"
    return text.replace("    tls:\n", "    tls:\n" + asks, 1) + "log: { path: daemon.log }\n"


def write_authority(folder):
    """clients.pem and clients.crl, redis-ca.pem"""
    for name in ("clients.pem", "redis-ca.pem"):
        shutil.copyfile(folder / "ecdsa-ca.pem", folder / name)
    (folder / "ca.index").touch()
    (folder / "ca.cnf").write_text(f"[ca]\ndefault_ca = x\n[x]\ndatabase = {folder}/ca.index\ndefault_md = sha256\ndefault_crl_days = 2\n")
    subprocess.run(["openssl", "ca", "-gencrl", "-config", folder / "ca.cnf", "-keyfile", folder / "ecdsa-ca.key", "-cert",
                    folder / "ecdsa-ca.pem", "-out", folder / "clients.crl"], check=True, stderr=subprocess.DEVNULL)


class Prepared:
    """The files of a cluster and of a smtpproxy that do not run, in a folder of an ordinary user."""

    def __init__(self, folder):
        self.folder = folder
        folder.chmod(0o755)
        subprocess.run([CSSL, "up", "--dir", str(folder), "--agents", "1", "--prepare"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, CSSL_BUILD_DIR=str(BUILD)))
        (folder / "smtpproxy.yaml").write_text(smtpproxy_file(folder))
        (folder / "queue.key").write_text(f"k1 {os.urandom(32).hex()}\n")
        (folder / "redis.password").write_text("secret\n")
        (folder / "root.key").write_text(". 3600 IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n")
        (folder / "cluster.yaml").write_text(cluster_file((folder / "cluster.yaml").read_text()))
        write_authority(folder)
        for name in ("access.log", "daemon.log", "events.json", "own.log"):
            (folder / name).touch()
        for name in ("queue.key", "redis.password"):
            (folder / name).chmod(0o600)
        self._within = self._as_nobody() if os.geteuid() == 0 else []

    def _as_nobody(self):
        user = pwd.getpwnam("nobody")
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    def command(self, program, *options, within=None):
        """The program is where every user reaches it. `within`: a command that runs it; by default, as an ordinary user."""
        own = self.folder / f"{program}-program"
        if not own.exists():
            shutil.copy(binary(f"{program}/{program}"), own)
        config = self.folder / ("smtpproxy.yaml" if program == "smtpproxy" else "cluster.yaml")
        name = {"ragent": ["--name", "r1"], "sslagent": ["--name", "a1"], "smtpproxy": []}[program]
        return [*(self._within if within is None else within), own, "--config", config, *name, *options]

    def run(self, program, *options, within=None):
        """(exit status, what it said)"""
        done = subprocess.run(self.command(program, *options, within=within), text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=patience(20))
        return done.returncode, done.stderr

    def serve(self, program, serves, within=None):
        """Starts it, and stops it when its log has that line. Returns what it said."""
        log, out = self.folder / ("own.log" if program == "smtpproxy" else "daemon.log"), self.folder / "out"
        known = log.stat().st_size if log.is_file() else 0
        with open(out, "w", encoding="utf-8") as file, subprocess.Popen(self.command(program, within=within), stderr=file) as daemon:
            wait_until(lambda: (log.is_file() and serves in log.read_text()[known:]) or daemon.poll() is not None, patience(10), serves)
            daemon.terminate()
        return log.read_text()[known:] + out.read_text()


@pytest.fixture(scope="module", name="prepared")
def make_prepared():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cssl-", dir="/tmp"))
    yield Prepared(folder)
    shutil.rmtree(folder)


def put_back(path, content, status):
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(content)
    path.chmod(status.st_mode & 0o7777)
    if os.geteuid() == 0:
        os.chown(path, status.st_uid, status.st_gid)


def sentences(said):
    """Its lines, those of the log without time and program; without the end of a start, which does not free what it has."""
    assert "ERROR: AddressSanitizer" not in said
    said = re.sub(r"=+\n==\d+==ERROR: LeakSanitizer.*", "", said, flags=re.S)
    lines = [line.split(": ", 1)[1] if re.match(r"\d{4}-\d\d-\d\dT", line) else line for line in said.splitlines() if line]
    return [re.sub(r"^(ragent|sslagent|smtpproxy): (not started: )?", "", line) for line in lines if not line.startswith("not started")]


def must_say_the_same(prepared, program, what):
    """Both ways."""
    status, checked = prepared.run(program, "--check")
    assert status != 0 and checked, f"{what}: --check calls it good"
    status, started = prepared.run(program)
    assert status != 0, f"{what}: it starts"
    for said, by_other in ((checked, started), (started, checked)):
        for sentence in sentences(said):
            assert sentence in by_other, f"{what}: --check says\n{checked}\nand the start\n{started}"
    return checked


@pytest.mark.parametrize("program", BROKEN)
def test_of_a_broken_file_both_say_the_same(prepared, program):
    assert prepared.run(program, "--check")[0] == 0
    for name, kinds in BROKEN[program].items():
        path = prepared.folder / name
        content, status = path.read_bytes(), path.stat()
        for kind in kinds:
            kind(path)
            try:
                checked = must_say_the_same(prepared, program, f"{name}, {kind.__name__}")
                assert name not in PEM or CAUSES[kind] in checked, checked
            finally:
                put_back(path, content, status)


def test_of_an_expired_certificate_both_say_the_same(prepared):
    """It is no fault: the agent serves, as nginx and HAProxy do."""
    chain, key = prepared.folder / "ecdsa.pem", prepared.folder / "ecdsa.key"
    content, status = chain.read_bytes(), chain.stat()
    request = subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=localhost"], check=True, stdout=subprocess.PIPE).stdout
    old = subprocess.run(["openssl", "x509", "-req", "-signkey", key, "-days", "-1"], input=request, check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
    put_back(chain, old, status)
    try:
        code, checked = prepared.run("sslagent", "--check")
        assert code == 0 and "certificate has expired" in checked
        said = prepared.serve("sslagent", ": serving")
        assert all(sentence in said for sentence in sentences(checked))
    finally:
        put_back(chain, content, status)


def test_a_link_to_nothing_is_a_good_log(prepared):
    """Of an ordinary user: a rotation leaves one."""
    log = prepared.folder / "daemon.log"
    content, status = log.read_bytes(), log.stat()
    log.unlink()
    log.symlink_to("daemon.log.1")
    try:
        assert prepared.run("sslagent", "--check")[0] == 0
        assert ": serving" in prepared.serve("sslagent", ": serving")
    finally:
        (prepared.folder / "daemon.log.1").unlink(missing_ok=True)
        put_back(log, content, status)


def test_a_reader_of_a_log_sees_no_end_before_its_first_line(prepared):
    log = prepared.folder / "daemon.log"
    content, status = log.read_bytes(), log.stat()
    log.unlink()
    os.mkfifo(log)
    os.chown(log, status.st_uid, status.st_gid)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert prepared.run("sslagent", "--check")[0] == 0
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        assert not poll.poll(0), "somebody has opened and closed it"
    finally:
        os.close(reader)
        put_back(log, content, status)


def test_one_of_several_must_be_named(prepared):
    config = prepared.folder / "several.yaml"
    config.write_text((prepared.folder / "cluster.yaml").read_text().replace("ragents:\n", "ragents:\n  - name: r2\n", 1))
    ragent = subprocess.run([*prepared.command("ragent")[:-4], "--config", config, "--check"], text=True, check=False, stderr=subprocess.PIPE)
    assert ragent.returncode != 0 and "choose one by --name" in ragent.stderr
    agent = subprocess.run([*prepared.command("sslagent")[:-2], "--check"], text=True, check=True, stdout=subprocess.PIPE)
    assert "not looked at, without --name" in agent.stdout


@pytest.mark.root
def test_a_link_socket_that_ragent_cannot_reach_is_told(prepared):
    """The agent is not in the group of RAgent's user."""
    code, checked = prepared.run("sslagent", "--check")
    assert code == 0 and "link socket only for this process's user and group" in checked


@pytest.mark.root
def test_root_without_a_user_to_become_is_told(prepared):
    """At --check that is no fault, as a unit may have User=."""
    for name in ("queue.key", "redis.password"):
        os.chown(prepared.folder / name, 0, 0)
    code, checked = prepared.run("smtpproxy", "--check", within=[])
    assert code == 0 and "no user to become" in checked
    code, started = prepared.run("smtpproxy", within=[])
    assert code == 1 and "key 'user' is needed" in started
    code, checked = prepared.run("sslagent", "--check", within=[])
    assert code == 0 and "runs as root" not in checked


@pytest.mark.root
def test_what_the_user_cannot_open_again_is_told_by_both(prepared):
    config = prepared.folder / "smtpproxy.yaml"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"user": "nobody"}))
    config.chmod(0o600)
    for name in ("smtpproxy.yaml", "own.log", "ca.pem"):
        of_another(prepared.folder / name)
    code, checked = prepared.run("smtpproxy", "--check", within=[])
    said = prepared.serve("smtpproxy", " started", within=[])
    for name in ("smtpproxy.yaml", "own.log", "ca.pem"):
        line = f"file cannot be opened again path={prepared.folder / name}"
        assert code == 0 and checked.count(line) == 1 and said.count(line) == 1, (checked, said)
