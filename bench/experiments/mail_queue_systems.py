"""The systems of ./cssl bench mail_queue: smtpproxy with a queue and its two Redis servers, Postfix as a relay whose queue is on disk
or in memory, and the queue without SMTP (queue_driver, of a build with tests)."""

import contextlib
import http.client
import json
import os
import pathlib
import secrets
import socket
import subprocess
import time

from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.load import LoadError
from bench.experiments.mail_peers import peak_kb
from bench.experiments.mail_room import Room
from bench.experiments.ports import free_ports

START_SECONDS = 60
EMPTY_SECONDS = 600
LOOK_S = 0.02

POSTFIX_MAIN = """\
compatibility_level = 3.6
myhostname = relay.example
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_relay_restrictions = permit_mynetworks, reject
relayhost = [127.0.0.1]:{sink}
disable_dns_lookups = yes
queue_minfree = 0
in_flow_delay = 0
default_process_limit = 200
default_destination_concurrency_limit = 50
initial_destination_concurrency = 50
smtpd_client_connection_count_limit = 0
maillog_file = /var/spool/log/postfix.log
"""

# What a relay needs; each line: service, type, private, unprivileged, chroot, wakeup, maxproc, command.
POSTFIX_MASTER = """\
127.0.0.1:{port} inet n - n - 300 smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
"""


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise LoadError(f"not within {seconds} s: {what}")
        time.sleep(LOOK_S)
    return value


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


class Redis:
    """A server without a disk, which evicts nothing."""

    def __init__(self, folder):
        self.port, = free_ports(1)
        with (folder / f"redis-{self.port}.log").open("w") as log:
            self.process = subprocess.Popen(
                ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", str(folder),
                 "--maxmemory-policy", "noeviction"], stdout=log, stderr=log)
        wait_for(lambda: listens(self.port), START_SECONDS, "redis-server")

    def end(self):
        self.process.kill()
        self.process.wait()


class _Control(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("smtpproxy", timeout=60)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Gateway:
    """smtpproxy with deliver: queue, two Redis servers, and `sink` as the next hop. It accepts when this returns."""
    name = "CSSL"

    def __init__(self, folder, sink):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.port, = free_ports(1)
        self.backups = [Redis(self.folder) for _ in range(2)]
        self.sink = sink
        self._write_config()
        self.start()

    def _write_config(self):
        key = self.folder / "queue.key"
        key.touch(0o600)
        key.write_text(f"k1 {secrets.token_hex(32)}\n")
        config = {"name": "gateway.example", "control": str(self.folder / "control"), "deliver": "queue",
                  "listeners": [{"address": f"127.0.0.1:{self.port}", "original_destination": "proxy", "trusted": ["127.0.0.0/8"]}],
                  "queue": {"keys": str(key), "next_hop": f"127.0.0.1:{self.sink}", "deliveries": 50,
                            "role": "alone", "backups": [{"paths": [f"127.0.0.1:{redis.port}"]} for redis in self.backups]},
                  "outward": {"ports": [self.sink], "local": ["127.0.0.0/8"], "tls": "none"},
                  "limits": {"connections_per_destination": 50}, "log": {"path": str(self.folder / "log")}}
        if os.geteuid() == 0:
            config["user"] = "nobody"
        (self.folder / "conf.yaml").write_text(json.dumps(config))

    def start(self):
        self.process = subprocess.Popen([str(build_folder() / "smtpproxy/smtpproxy"), "--config", str(self.folder / "conf.yaml")],
                                        stderr=subprocess.DEVNULL)
        wait_for(self._accepts, START_SECONDS, "a gateway that accepts")

    def _accepts(self):
        with contextlib.suppress(OSError):
            return self.state()["in_sync"] > 0
        return False

    def log(self):
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def state(self):
        control = _Control(str(self.folder / "control"))
        control.request("GET", "/v1/queue")
        return json.loads(control.getresponse().read())

    def stop_deliveries(self):
        control = _Control(str(self.folder / "control"))
        control.request("POST", f"/v1/queue/destinations/127.0.0.1:{self.sink}/stop")
        if control.getresponse().status != 200:
            raise LoadError("the gateway does not stop its deliveries")

    def source_options(self):
        return ["--proxy", "v2"]

    def is_empty(self):
        state = self.state()
        return state["messages"] == 0 and state["deletes_unconfirmed"] == 0

    def wait_empty(self):
        wait_for(self.is_empty, EMPTY_SECONDS, "an empty queue")

    def resident_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def peak_kb(self):
        return peak_kb(self.process.pid)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.kill()
        for redis in self.backups:
            redis.end()


class Postfix:
    """A relay that stores and forwards all mail to `sink`; its queue is in `folder`."""

    def __init__(self, name, folder, sink):
        self.name = name
        self.port, = free_ports(1)
        self.room = Room(folder)
        self.room.etc("postfix/main.cf", POSTFIX_MAIN.format(sink=sink))
        self.room.etc("postfix/master.cf", POSTFIX_MASTER.format(port=self.port))
        self.room.make("spool/postfix")
        self.room.make("spool/log")
        self.room.make("lib/postfix", "postfix", "postfix")
        with (self.room.folder / "output").open("w") as output:
            self.process = self.room.start("postfix", "start-fg", stdout=output, stderr=output)
        wait_for(lambda: listens(self.port), START_SECONDS, f"Postfix: {(self.room.folder / 'output').read_text()[-800:]}")

    def source_options(self):
        return []

    def is_empty(self):
        queues = [self.room.spool / "postfix" / name for name in ("incoming", "active", "deferred")]
        return not any(path.is_file() for queue in queues for path in queue.rglob("*"))

    def wait_empty(self):
        wait_for(self.is_empty, EMPTY_SECONDS, "an empty queue of Postfix")

    def end(self):
        self.process.kill()
        self.process.wait()


class Queue:
    """The queue without SMTP, by queue_driver: two Redis servers on loopback ports."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir()
        self.backups = [Redis(folder) for _ in range(2)]
        words = [f"backup{n}=127.0.0.1:{redis.port}" for n, redis in enumerate(self.backups)]
        self.socket, theirs = socket.socketpair()
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen([driver(), f"key=k1 {secrets.token_hex(32)}", *words], stdin=theirs, stdout=log, stderr=log)
        theirs.close()
        self.lines = self.socket.makefile("rw")
        self.wait("ready")

    def wait(self, event):
        """The next event of that name."""
        for line in self.lines:
            answer = json.loads(line)
            if answer.get("event") == event:
                return answer
        raise LoadError(f"queue_driver ended before {event}")

    def store(self, count, size, window):
        """Seconds until all are stored."""
        self.lines.write(f"load {count} {size} a.example {window}\n")
        self.lines.flush()
        answer = self.wait("loaded")
        if answer["count"] != count:
            raise LoadError(f"{answer['count']} of {count} messages were stored")
        return answer["ms"] / 1000

    def end(self):
        self.process.kill()
        self.process.wait()
        self.socket.close()
        for redis in self.backups:
            redis.end()


def driver():
    """queue_driver, or None where no build has it."""
    builds = build_folder(), ROOT / "build-test"
    return next((str(path) for path in (pathlib.Path(build) / "tests/lib/queue_driver" for build in builds) if path.exists()), None)
