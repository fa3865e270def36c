"""A mail queue under test (queue_driver), the two Redis servers behind it, and paths between them that can be cut."""

import json
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from tests.lib.build import BUILD, patience
from tests.lib.processes import stop
from tests.lib.waiting import wait_until

KEY = "k1 " + "5a" * 32
OTHER_KEY = "k2 " + "a5" * 32


class Redis:
    """A redis-server on a UNIX socket in a folder of its own, which keeps nothing on disk."""

    def __init__(self, folder, name, *options):
        if not shutil.which("redis-server"):
            pytest.skip("needs redis-server")
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir()
        self.socket = str(self.folder / "s")
        self.options = options
        self.process = None
        self.start()

    def start(self, *options):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
             "--dir", str(self.folder), "--maxmemory-policy", "noeviction", *self.options, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, patience(10), "redis-server")

    def _answers(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(1)
            s.connect(self.socket)
            s.sendall(b"PING\r\n")
            return b"LOADING" not in s.recv(100)

    def call(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.socket, *map(str, words)], text=True, check=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.strip()

    def memory_has(self, word):
        """Whether the word stands anywhere in the memory that the server can write."""
        proc = pathlib.Path(f"/proc/{self.process.pid}")
        with (proc / "mem").open("rb", buffering=0) as memory:
            for line in (proc / "maps").read_text().splitlines():
                area, rights = line.split()[:2]
                begin, end = (int(n, 16) for n in area.split("-"))
                if not rights.startswith("rw"):
                    continue
                memory.seek(begin)
                if word.encode() in memory.read(end - begin):
                    return True
        return False

    def items(self):
        return int(self.call("HLEN", "cssl:{test}:items") or 0)

    def emptied(self):
        """How often all items were deleted at once."""
        line = next((w for w in self.call("INFO", "commandstats").split() if w.startswith("cmdstat_unlink:")), "")
        return int(line.partition("calls=")[2].partition(",")[0] or 0)

    def owner(self, field):
        return self.call("HGET", "cssl:{test}:owner", field)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def pause(self):
        stop(self.process.pid)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)


class Path:
    """A path to a server: a UNIX socket in front of its own, as slow as @rate bytes a second (None: not slow). hush() swallows all
    bytes of the present connections and of new ones, and hush_answers() those that come from the server; open() serves new connections
    again."""

    def __init__(self, folder, name, target, rate=None):
        self.address = str(pathlib.Path(folder) / name)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.address)
        listener.listen()
        self._begin(listener, target, rate)

    def _begin(self, listener, target, rate):
        self.listener, self.target, self.rate = listener, target, rate
        self.hushed, self.answers_hushed = threading.Event(), threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def hush(self):
        self.hushed.set()

    def hush_answers(self):
        self.answers_hushed.set()

    def open(self):
        self.hushed.clear()
        self.answers_hushed.clear()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.socket(client.family)
        lost = set()  # a connection without some of its bytes carries no others
        try:
            server.connect(self.target)
            while True:
                readable, _, _ = select.select([client, server], [], [])
                for source in readable:
                    data = source.recv(65536 if not self.rate else 16384)
                    if not data:
                        return
                    if self.rate:
                        time.sleep(len(data) / self.rate)
                    lost |= {client, server} if self.hushed.is_set() else {server} if self.answers_hushed.is_set() else set()
                    if source not in lost:
                        (server if source is client else client).sendall(data)
        except OSError:
            pass
        finally:
            client.close()
            server.close()


class PathOfPorts(Path):
    """The same in front of a port of loopback."""

    def __init__(self, port, rate=None):  # pylint: disable=super-init-not-called
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._begin(listener, ("127.0.0.1", port), rate)


class Gateway:
    """queue_driver: one gateway's queue."""

    def __init__(self, folder, backups, name="gateway", **options):
        """@backups: for each, one or two UNIX socket paths. Without a role it is alone."""
        options = {"key": KEY, "role": "alone", "lease_ms": 3000, "absent_ms": 1500, "takeover_ms": 6500, **options}
        words = [f"backup{n}=" + ",".join(f"unix:{path}" for path in paths) for n, paths in enumerate(backups)]
        words += [f"{key}={value}" for key, value in options.items()]
        ours, theirs = socket.socketpair()
        self.log = pathlib.Path(folder) / f"{name}-{time.monotonic_ns()}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([f"{BUILD}/tests/lib/queue_driver", *words], stdin=theirs, stdout=log, stderr=log)
        theirs.close()
        self.socket = ours
        self.buffer = b""
        self.events = []

    def answer(self, timeout):
        """The next answer that is no event; events before it are kept. None: the time is over."""
        end = time.monotonic() + timeout
        while True:
            line, found, rest = self.buffer.partition(b"\n")
            if found:
                self.buffer = rest
                answer = json.loads(line)
                if "event" not in answer:
                    return answer
                self.events.append(answer)
                continue
            if not select.select([self.socket], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError(f"the gateway ended: {self.log.read_text()[-3000:]}")
            self.buffer += data

    def send(self, *words):
        self.socket.sendall((" ".join(map(str, words)) + "\n").encode())

    def ask(self, *words, timeout=60):
        self.send(*words)
        answer = self.answer(timeout)
        assert answer is not None, f"no answer to {words}: {self.log.read_text()[-3000:]}"
        return answer

    def stats(self):
        return self.ask("stats")

    def has(self, event, **members):
        self.answer(0)
        return next((e for e in self.events if e["event"] == event and all(e.get(k) == v for k, v in members.items())), None)

    def wait(self, event, timeout=20.0, **members):
        return wait_until(lambda: self.has(event, **members), patience(timeout), f"{event} {members} of {self.log}")

    def forget_events(self):
        self.answer(0)
        self.events.clear()

    def until(self, condition, timeout=20.0):
        """The first figures for which condition(figures) is true."""
        def met():
            stats = self.stats()
            return stats if condition(stats) else None
        return wait_until(met, patience(timeout), f"state of {self.log}")

    def in_sync(self, count, timeout=20.0):
        """So many servers have all, and the others were given up."""
        def is_so(stats):
            return stats["in_sync"] == count == sum(backup["state"] == "in sync" for backup in stats["backups"])
        return wait_until(lambda: is_so(self.stats()), patience(timeout), f"{count} in sync: {self.log}")

    def add(self, token, destination="a.example", size=1000, *more):
        self.send("add", token, destination, size, *more)

    def stored(self, token, destination="a.example", size=1000, *more):
        self.add(token, destination, size, *more)
        return self.wait("stored", token=token)["id"]

    def drain(self, destination="a.example"):
        """The tokens of all messages whose turn it is; each is deleted, and none waits when this returns."""
        tokens = []

        def takes_all():
            drained, may_take = self.drain_at_once(destination)
            tokens.extend(drained)
            return may_take

        wait_until(takes_all, patience(30), "confirmed deletes")
        return tokens

    def drain_at_once(self, destination="a.example"):
        """Those of them that may be taken before any delete is confirmed, and if one more might be taken."""
        wait_until(lambda: self.ask("may")["result"], what="lease")
        answer = self.ask("drain", destination)
        assert answer["bad"] == 0
        return answer["drained"], answer["may_take"]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.socket.close()

    def stop(self):
        self.send("stop")
        assert self.process.wait(patience(30)) == 0, self.log.read_text()[-3000:]
        self.socket.close()
        assert "runtime error" not in self.log.read_text()
