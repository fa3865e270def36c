"""What --check calls good starts: for each kind of broken file it says the same as the start does. Both are run as an ordinary user, who
cannot read what belongs to another one."""

import json
import os
import pathlib
import pwd
import re
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


def of_another_pair(path):
    shutil.copyfile(path.with_name("rsa.key"), path)


SECRETS = (missing, empty, of_another, nonsense, too_open)
BROKEN = {
    "ragent": {"link.key": SECRETS, "control.tokens": (missing, of_another, nonsense, too_open), "access.log": (of_another, a_folder)},
    "sslagent": {"agents.key": SECRETS, "link.key": (missing,), "ecdsa.pem": (missing, empty, of_another, nonsense, cut_off),
                 "ecdsa.key": (*SECRETS, of_another_pair)},
    "smtpproxy": {"queue.key": SECRETS, "redis.password": (missing, empty, of_another, too_open), "ca.pem": (missing, empty, of_another),
                  "root.key": (missing, nonsense, of_another), "events.json": (of_another, a_folder), "own.log": (of_another, a_folder)},
}


def smtpproxy_file(folder):
    backups = [{"paths": ["127.0.0.1:1"], "password_file": str(folder / "redis.password")}, {"paths": ["127.0.0.2:1"]}]
    return json.dumps({
        "name": "proxy.example", "deliver": "queue", "events": str(folder / "events.json"), "log": {"path": str(folder / "own.log")},
        "listeners": [{"address": f"127.0.0.1:{free_ports(1)[0]}", "original_destination": "proxy", "trusted": ["127.0.0.0/8"]}],
        "queue": {"role": "alone", "keys": str(folder / "queue.key"), "backups": backups, "next_hop": "127.0.0.1:25"},
        "outward": {"ca": str(folder / "ca.pem")}, "dns": {"trust_anchor": str(folder / "root.key"), "servers": ["127.0.0.1:53"]}})


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
        for name in ("access.log", "events.json", "own.log"):
            (folder / name).touch()
        for name in ("queue.key", "redis.password"):
            (folder / name).chmod(0o600)
        self._within = self._as_nobody() if os.geteuid() == 0 else []

    def _as_nobody(self):
        user = pwd.getpwnam("nobody")
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    def command(self, program, *options):
        """The program is where every user reaches it."""
        own = self.folder / f"{program}-program"
        if not own.exists():
            shutil.copy(binary(f"{program}/{program}"), own)
        config = self.folder / ("smtpproxy.yaml" if program == "smtpproxy" else "cluster.yaml")
        name = {"ragent": ["--name", "r1"], "sslagent": ["--name", "a1"], "smtpproxy": []}[program]
        return [*self._within, own, "--config", config, *name, *options]

    def run(self, program, *options):
        """(exit status, what it said)"""
        done = subprocess.run(self.command(program, *options), text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=patience(20))
        return done.returncode, done.stderr


@pytest.fixture(scope="module", name="prepared")
def make_prepared():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cssl-", dir="/tmp"))
    yield Prepared(folder)
    shutil.rmtree(folder)


def put_back(path, content, status):
    if path.is_dir():
        path.rmdir()
    path.write_bytes(content)
    path.chmod(status.st_mode & 0o7777)
    if os.geteuid() == 0:
        os.chown(path, status.st_uid, status.st_gid)


def sentences(said):
    """Its lines, those of the log without time and program."""
    return [line.split(": ", 1)[1] if re.match(r"\d{4}-\d\d-\d\dT", line) else line for line in said.splitlines() if line]


def must_say_the_same(prepared, program, what):
    status, checked = prepared.run(program, "--check")
    assert status != 0 and checked, f"{what}: --check calls it good"
    status, started = prepared.run(program)
    assert status != 0, f"{what}: it starts"
    for sentence in sentences(checked):
        assert sentence in started, f"{what}: --check says\n{checked}\nand the start\n{started}"


@pytest.mark.parametrize("program", BROKEN)
def test_of_a_broken_file_both_say_the_same(prepared, program):
    assert prepared.run(program, "--check")[0] == 0
    for name, kinds in BROKEN[program].items():
        path = prepared.folder / name
        content, status = path.read_bytes(), path.stat()
        for kind in kinds:
            kind(path)
            try:
                must_say_the_same(prepared, program, f"{name}, {kind.__name__}")
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
    out = prepared.folder / "a1.out"
    try:
        code, checked = prepared.run("sslagent", "--check")
        assert code == 0 and "certificate has expired" in checked
        with open(out, "w", encoding="utf-8") as file, subprocess.Popen(prepared.command("sslagent"), stderr=file) as agent:
            wait_until(lambda: ": serving" in out.read_text() or agent.poll() is not None, patience(10), "the agent serves")
            agent.terminate()
        assert all(sentence in out.read_text() for sentence in sentences(checked))
    finally:
        put_back(chain, content, status)
