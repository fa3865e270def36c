"""README's tour of five minutes, with the commands that are printed there: each does what README promises."""

import os
import pty
import re
import select
import signal
import subprocess
import threading

import pytest

from tests.lib.build import BUILD, ROOT, patience
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

README = (ROOT / "README.md").read_text()
TOUR = re.search(r"^### A tour of five minutes\n(.*?)(?=^#)", README, re.S | re.M)[1]
BLOCKS = re.findall(r"^```\n(.*?)^```\n", TOUR, re.S | re.M)


def commands(block):
    r"""Each command of a block. A line that ends with | or \ goes on, and the text after # is for people."""
    found, open_line = [], ""
    for line in block.splitlines():
        open_line += re.sub(r"\s+# .*$", "", line) + "\n"
        if not re.search(r"[|\\]\n$", open_line):
            found.append(open_line.strip())
            open_line = ""
    assert not open_line
    return found


def quoted(beginning):
    """The command in the running text that begins so."""
    (command,) = set(re.findall(rf"`({re.escape(beginning)}[^`]*)`", TOUR))
    return command


class Terminal:
    """The reader's terminal: bash with the first line of the tour, adjusted to a cluster that is no demo."""

    def __init__(self, cluster, session):
        first = commands(BLOCKS[0])[0]
        assert first.startswith("export CSSL_DIR=/tmp/cssl-demo-$UID PATH=$PWD/build/csslctl:$PATH PORT=...")
        self._first = first.replace("/tmp/cssl-demo-$UID", str(cluster.dir)).replace("$PWD/build/csslctl", str(BUILD / "csslctl")).replace(
            "PORT=...", f"PORT={cluster.sf[1]}")
        self._session, self._env = session, cluster.env
        self.names = {}  # in the README's place: those of this cluster

    def script(self, command):
        for written, real in {"/tmp/session": str(self._session), **self.names}.items():
            command = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", real, command)
        return f"{self._first}\n{command}\n"

    def run(self, command):
        done = subprocess.run(["bash", "-c", self.script(command)], cwd=ROOT, env=self._env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=patience(60), check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def start(self, command):
        return Client(self.script(command), self._env)


class Client(threading.Thread):
    """A command that goes on in a terminal; `lines` it has written."""

    def __init__(self, script, env):
        super().__init__(daemon=True)
        self._end, terminal = pty.openpty()
        self.lines, self._text, self._over = [], "", threading.Event()
        self._process = subprocess.Popen(["bash", "-c", script], cwd=ROOT, env=env, stdout=terminal, stderr=terminal,
                                         stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(terminal)
        self.start()

    def run(self):
        while not self._over.is_set():
            if not select.select([self._end], [], [], 0.1)[0]:
                continue
            try:
                self._text += os.read(self._end, 4096).decode(errors="replace")
            except OSError:  # the last process has gone
                return
            self.lines = self._text.replace("\r", "").splitlines()

    def answers(self):
        """Which agent asked the backend, of each answer."""
        return [line.split()[-1] for line in self.lines if line.startswith("X-CSSL-Agent:")]

    def end(self):
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()
        self._over.set()
        self.join()
        os.close(self._end)


@pytest.fixture
def cluster(start_cluster):
    return start_cluster("--agents", "3", takeover=True)


@pytest.fixture
def terminal(cluster, tmp_path):
    return Terminal(cluster, tmp_path / "session")


@pytest.fixture
def client(terminal):
    client = terminal.start(commands(BLOCKS[0])[1])
    try:
        wait_until(client.answers, patience(20), f"an answer in the first terminal: {client.lines}")
        yield client
    finally:
        client.end()


def answered_by(client, agent, other=False):
    """Waits for an answer of this agent; with `other`, of another one."""
    seen = len(client.answers())
    wait_until(lambda: any((a != agent) == other for a in client.answers()[seen:]), patience(20), f"an answer: {client.lines[-3:]}")


def test_the_tour_is_as_the_readme_says(cluster, terminal, client):
    sessions, connections, drain, show, undrain, resume, revoke = commands(BLOCKS[1])
    assert "localhost" in terminal.run(sessions)
    (identity,) = [c["id"] for c in cluster.connections(listener="sf")]
    assert identity[:8] in terminal.run(connections)
    owner = client.answers()[-1]
    terminal.names = {"4f2a": identity[:12], "a2": owner}
    assert "is empty after" in terminal.run(drain)
    answered_by(client, owner, other=True)
    assert owner in terminal.run(show)
    terminal.run(undrain)
    assert terminal.run(resume).startswith("Reused")
    terminal.run(revoke)
    assert terminal.run(resume).startswith("New")


def test_the_agent_that_is_killed_comes_back_as_the_readme_says(cluster, terminal, client):
    owner = client.answers()[-1]
    terminal.names = {"a2": owner}
    terminal.run(quoted("kill -9 $(cat"))
    wait_until(lambda: cluster.agent(owner)["state"] == "lost", patience(5), "the agent is shown as lost")
    answered_by(client, owner, other=True)
    terminal.run(quoted("./cssl agent --dir $CSSL_DIR"))
    assert cluster.agent(owner)["state"] == "ready"
