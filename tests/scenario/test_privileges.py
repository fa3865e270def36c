"""RAgent must not be able to read agents.key: as root it gives that right up; as an ordinary user it logs that it could read it."""

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import stat
import subprocess
import tempfile

import pytest

from tests.lib.build import BUILD, binary, patience
from tests.lib.cluster import CSSL
from tests.lib.edits import edits
from tests.lib.smtp_proxy import Proxy
from tests.lib.waiting import wait_until

RAGENT_USER = "cssl-ragent"


@pytest.fixture
def prepared():
    """The files of a cluster that does not run, and a ragent that every user can get at."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cssl-", dir="/tmp"))
    folder.chmod(0o755)
    subprocess.run([CSSL, "up", "--dir", str(folder), "--agents", "1", "--prepare"], check=True,
                   env=dict(os.environ, CSSL_BUILD_DIR=str(BUILD)))
    shutil.copy(binary("ragent/ragent"), folder / "ragent-program")
    yield folder
    shutil.rmtree(folder)


def start(folder, *as_user, program=None, name="r1", options=()):
    """Starts ragent of that cluster, or that program; its output is in the file ragent.out."""
    with open(folder / "ragent.out", "w", encoding="utf-8") as out:
        return subprocess.Popen([*as_user, program or folder / "ragent-program", "--config", folder / "cluster.yaml", "--name", name,
                                 *options], stdout=out, stderr=out)


def said(folder):
    return (folder / "ragent.out").read_text()


def as_somebody(folder, name):
    """A prefix to run programs as that user, who owns the folder from now on."""
    user = pwd.getpwnam(name)
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@pytest.mark.root
def test_as_root_ragent_does_not_start_when_its_user_could_read_the_key(prepared):
    user = pwd.getpwnam(RAGENT_USER)
    os.chown(prepared / "agents.key", user.pw_uid, user.pw_gid)
    ragent = start(prepared)
    assert ragent.wait(patience(10)) == 1
    assert f"{prepared}/agents.key" in said(prepared) and "must not" in said(prepared)
    assert start(prepared, options=["--check"]).wait(patience(10)) == 1
    assert said(prepared).strip() and said(prepared).strip().startswith(f"{prepared}/agents.key") and "must not" in said(prepared)


@pytest.mark.root
def test_as_root_ragent_does_not_start_when_its_user_could_read_a_private_key(prepared):
    (prepared / "rsa.key").chmod(0o640)
    os.chown(prepared / "rsa.key", 0, pwd.getpwnam(RAGENT_USER).pw_gid)
    for options in ([], ["--check"]):
        assert start(prepared, options=options).wait(patience(10)) == 1
        assert f"{prepared}/rsa.key: this process can read it" in said(prepared)


@pytest.mark.root
def test_tokens_that_ragents_user_cannot_read_again_are_told(prepared):
    (prepared / "control.tokens").chmod(0o600)
    assert start(prepared, options=["--check"]).wait(patience(10)) == 0
    assert f"file cannot be opened again path={prepared}/control.tokens" in said(prepared) and "chmod 644" in said(prepared)


@pytest.mark.root
def test_as_root_ragent_does_not_start_for_a_user_who_is_root(prepared):
    config = (prepared / "cluster.yaml").read_text()
    (prepared / "cluster.yaml").write_text(config.replace(f"user: {RAGENT_USER}", "user: root"))
    assert start(prepared).wait(patience(10)) == 1
    assert "is root" in said(prepared)


def test_an_ordinary_users_ragent_warns_that_it_could_read_the_key(prepared):
    ragent = start(prepared, *(as_somebody(prepared, "nobody") if os.geteuid() == 0 else []))
    try:
        wait_until(lambda: "agents key readable" in said(prepared), patience(10))
        assert "warning" in said(prepared)
    finally:
        ragent.terminate()
    assert ragent.wait(patience(10)) == 0


def users_of(pid):
    """Of all its threads."""
    status = [path.read_text() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return {line for text in status for line in text.splitlines() if line.startswith(("Uid:", "Groups:"))}


@pytest.mark.root
def test_an_agent_that_root_starts_becomes_its_user(prepared):
    """Who then cannot read what a reload reads is a fault. The link socket is for no stranger, although RAgent's group is unknown."""
    nobody, agent = pwd.getpwnam("nobody"), {"program": binary("sslagent/sslagent"), "name": "a1"}
    config = prepared / "cluster.yaml"
    config.write_text(config.read_text().replace(f"user: {RAGENT_USER}", "user: no-such-user").replace(
        "    peer_socket:", "    user: nobody\n    peer_socket:"))
    for options in ([], ["--check"]):
        assert start(prepared, **agent, options=options).wait(patience(10)) == 1
        assert "ecdsa.key" in said(prepared) and "Permission denied" in said(prepared)
    for path in prepared.glob("*.key"):
        if path.name not in ("link.key", "agents.key"):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    serving = start(prepared, **agent)
    try:
        wait_until(lambda: ": serving" in said(prepared), patience(10))
        groups = "".join(f"{group} " for group in sorted(os.getgrouplist("nobody", nobody.pw_gid)))
        assert users_of(serving.pid) == {"Uid:" + 4 * f"\t{nobody.pw_uid}", f"Groups:\t{groups}"}
        assert stat.S_IMODE((prepared / "links" / "a1.sock").stat().st_mode) == 0o660
        assert "link socket only for" in said(prepared)
    finally:
        serving.terminate()
    assert serving.wait(patience(10)) == 0


@pytest.mark.root
@pytest.mark.parametrize("as_sender", ["off", "on"])
def test_smtpproxy_keeps_the_groups_of_its_user(tmp_path, as_sender):
    """One of them may be that of a milter's socket."""
    nobody = pwd.getpwnam("nobody")
    with Proxy(tmp_path, next_hop=("127.0.0.1", 25), outward={"as_sender": as_sender}) as proxy:
        groups = "".join(f"{group} " for group in sorted(os.getgrouplist("nobody", nobody.pw_gid)))
        assert users_of(proxy.process.pid) == {"Uid:" + 4 * f"\t{nobody.pw_uid}", f"Groups:\t{groups}"}


def agents_of_nobody(text):
    """Who can read the private keys, which are already there."""
    folder = pathlib.Path(re.search(r"unix:(.*)/links/", text).group(1))
    for name in ("ecdsa.key", "rsa.key"):
        shutil.chown(folder / name, "nobody")
    return text.replace("    peer_socket:", "    user: nobody\n    peer_socket:")


@pytest.mark.root
def test_agents_that_became_their_user_reach_each_other_by_their_sockets(start_cluster):
    """So backend connections can move between them. Those of direct listeners are accepted as that user, too."""
    cluster = start_cluster("--agents", "2", edit=edits(agents_of_nobody))
    wait_until(lambda: (cluster.peer_ways("a1"), cluster.peer_ways("a2")) == ({"a2": "unix"}, {"a1": "unix"}), patience(10),
               "a link by UNIX socket")
    for address in cluster.direct.values():
        with contextlib.closing(cluster.http(address)) as client:
            client.request("GET", "/1k")
            assert client.getresponse().status == 200


def test_no_agent_starts_without_the_key(prepared):
    (prepared / "agents.key").unlink()
    done = subprocess.run([binary("sslagent/sslagent"), "--config", prepared / "cluster.yaml", "--name", "a1"],
                          stderr=subprocess.PIPE, text=True, check=False, timeout=patience(10))
    assert done.returncode == 1
    assert "agents.key" in done.stderr


def test_no_agent_starts_with_a_key_that_others_can_read(prepared):
    (prepared / "agents.key").chmod(0o644)
    done = subprocess.run([binary("sslagent/sslagent"), "--config", prepared / "cluster.yaml", "--name", "a1"],
                          stderr=subprocess.PIPE, text=True, check=False, timeout=patience(10))
    assert done.returncode == 1
    assert "agents.key" in done.stderr and "0644" in done.stderr
