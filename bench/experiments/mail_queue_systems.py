"""The systems of ./cssl bench mail_queue: smtpproxy with a queue and its two Redis servers, Postfix as a relay whose queue is on disk
or in memory, and without SMTP: the queue (cssl-bench queue) and memcached."""

import contextlib
import functools
import http.client
import itertools
import json
import os
import pathlib
import secrets
import socket
import subprocess
import time

from bench.experiments.cluster import build_folder
from bench.experiments.load import BENCH, LoadError, ended, same
from bench.experiments.mail_room import Room
from bench.experiments.ports import free_ports

START_SECONDS = 60
EMPTY_SECONDS = 600
LOOK_S = 0.02
HOSTS = "127.0.0.1", "127.0.0.2"  # of the two paths to a Redis server
MEMCACHED_MB = 1024
MEMCACHED_REQUESTS = 1000  # of one connection at a time; by default 20, so that others have their turn
FIRST_BLOCKS = 5  # of a reading: 1, 8, 64, 512 messages, and the rest

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


def wait_for(condition, seconds, what, process=None, said=None):
    """`process`: of which the condition is, and `said`: a function that gives the text of its output and log."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if process and process.poll() is not None:
            raise ended(what, process.returncode, said())
        if time.monotonic() > end:
            raise LoadError(f"not within {seconds} s: {what}" + (f": {said()[-800:] or 'it said nothing'}" if said else ""))
        time.sleep(LOOK_S)
    return value


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


class _Store:
    """A server that keeps what it gets in memory, and evicts nothing."""

    def __init__(self, folder):
        self.port, = free_ports(1)
        self.paths = [f"{host}:{self.port}" for host in HOSTS]
        command = self._command(folder)
        path = folder / f"{command[0]}-{self.port}.log"
        with path.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(lambda: listens(self.port), START_SECONDS, command[0], self.process, path.read_text)

    def _command(self, folder):
        raise NotImplementedError

    def end(self):
        self.process.kill()
        self.process.wait()


class Redis(_Store):
    def _command(self, folder):
        return ["redis-server", "--bind", *HOSTS, "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", str(folder),
                "--maxmemory-policy", "noeviction"]


class Memcached(_Store):
    def _command(self, folder):
        return ["memcached", "-u", "nobody", "-l", HOSTS[0], "-p", str(self.port), "-m", str(MEMCACHED_MB), "-M", "-R", str(MEMCACHED_REQUESTS)]


class _Control(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("smtpproxy", timeout=60)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Gateway:
    """smtpproxy with deliver: queue, two Redis servers with two paths to each, and `sink` as the next hop. It accepts when this
    returns."""
    name = "CSSL"

    def __init__(self, folder, sink):
        self.sent = 0
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
                  "listeners": [{"address": f"127.0.0.1:{self.port}", "original_destination": "proxy", "trusted": ["127.0.0.0/8"],
                                 "clients": ["0.0.0.0/0", "::/0"]}],
                  "queue": {"keys": str(key), "next_hop": f"127.0.0.1:{self.sink}", "deliveries": 50,
                            "role": "alone", "backups": [{"paths": redis.paths} for redis in self.backups]},
                  "outward": {"ports": [self.sink], "local": ["127.0.0.0/8"], "tls": "none"},
                  "limits": {"connections_per_destination": 50}, "log": {"path": str(self.folder / "log")}}
        if os.geteuid() == 0:
            config["user"] = "nobody"
        (self.folder / "conf.yaml").write_text(json.dumps(config))

    def start(self):
        with (self.folder / "output").open("w") as output:
            self.process = subprocess.Popen([str(build_folder() / "smtpproxy/smtpproxy"), "--config", str(self.folder / "conf.yaml")],
                                            stdout=output, stderr=output)
        wait_for(self._accepts, START_SECONDS, "a gateway that accepts", self.process,
                 lambda: self.log() + (self.folder / "output").read_text())

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

    def changes(self):
        """How many changes the first backup has made."""
        return sum(self.state()["backups"][0][kind] for kind in ("puts", "replaces", "deletes"))

    def copies(self):
        """The paper's table I: a dict for each destination and backup."""
        state = self.state()
        return [{"destination": line["destination"], "backup": number, "paths": [path["state"] for path in backup["paths"]],
                 "in_sync": backup["in_sync"], **line["changes"][number]}
                for line in state["destinations"] for number, backup in enumerate(state["backups"])]

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
        self.name, self.sent = name, 0
        self.port, = free_ports(1)
        self.room = Room(folder)
        self.room.postfix_main(POSTFIX_MAIN.format(sink=sink))
        self.room.etc("postfix/master.cf", POSTFIX_MASTER.format(port=self.port))
        self.room.make("spool/postfix")
        self.room.make("spool/log")
        self.room.make("lib/postfix", "postfix", "postfix")
        with (self.room.folder / "output").open("w") as output:
            self.process = self.room.start("postfix", "start-fg", stdout=output, stderr=output)
        wait_for(lambda: listens(self.port), START_SECONDS, name, self.process, self._said)

    def _said(self):
        files = (*(self.room.spool / "log").iterdir(), self.room.folder / "output")
        return "".join(path.read_text(errors="replace") for path in files) or self.room.reason_of_postfix()

    def source_options(self):
        return []

    def changes(self):
        return 0  # it has no backup

    def is_empty(self):
        queues = [self.room.spool / "postfix" / name for name in ("incoming", "active", "deferred")]
        return not any(path.is_file() for queue in queues for path in queue.rglob("*"))

    def wait_empty(self):
        wait_for(self.is_empty, EMPTY_SECONDS, "an empty queue of Postfix")

    def end(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def one_store(folder, kind):
    """The address of a server of that kind."""
    folder.mkdir()
    store = kind(folder)
    try:
        yield store.paths[0]
    finally:
        store.end()


def bench_load(what, wanted, *words):
    """The result of cssl-bench. LoadError: it is not as wanted."""
    command = [str(build_folder() / BENCH), words[0], "--json", *map(str, words[1:])]
    done = subprocess.run(command, text=True, check=False, capture_output=True, timeout=EMPTY_SECONDS)
    if done.returncode != 0:
        raise ended(what, done.returncode, done.stdout, done.stderr)
    result = json.loads(done.stdout)
    same(what, result, wanted)
    return result


def _load_of_queue(address, mails, size, window):
    return bench_load("store and delete", {"stored": mails, "deleted": mails}, "queue", "--delete", "-m", mails, "-l", size, "-w", window,
                      address)["seconds"]


def load_of_memcached(address, mails, size, window):
    """Each half of a window is deleted when it is stored; its keys are used again then. All requests are made before, so the load costs
    as little as it can."""
    host, port = address.rsplit(":", 1)
    half, body = window // 2, b"x" * size

    def count(number):
        return max(min(half, mails - number * half), 0) if number >= 0 else 0

    @functools.cache
    def requests(which, values):
        keys = range(which * half, which * half + values)
        return (b"".join(b"set k%d 0 0 %d\r\n%b\r\n" % (key, size, body) for key in keys), b"".join(b"delete k%d\r\n" % key for key in keys))

    steps = [(requests(number % 2, count(number))[0], requests(number % 2, count(number - 2))[1]) for number in range(-(-mails // half) + 2)]
    with socket.create_connection((host, int(port)), START_SECONDS) as s, s.makefile("rb") as replies:
        def check(number):
            wanted = [b"DELETED\r\n"] * count(number - 2) + [b"STORED\r\n"] * count(number)
            if (said := list(itertools.islice(replies, len(wanted)))) != wanted:
                raise LoadError(f"memcached: {len(said)} of {len(wanted)} replies, among them {set(said) - set(wanted)}")

        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.monotonic()
        for number, (sets, deletes) in enumerate(steps):
            s.sendall(deletes)
            s.sendall(sets)
            check(number - 1)
        check(number)
        return time.monotonic() - begin


# {name: (kind of server, load of one connection)}. A load tells the seconds in which so many messages were stored and deleted.
STORES_AND_DELETES = {"CSSL": (Redis, _load_of_queue), "memcached": (Memcached, load_of_memcached)}


def store_and_delete(name, folder, mails, size, window):
    kind, load = STORES_AND_DELETES[name]
    with one_store(folder, kind) as address:
        return load(address, mails, size, window)


def store(address, mails, size):
    bench_load("storing the queue", {"stored": mails}, "queue", "-m", mails, "-l", size, address)


def read_back(address, mails, block):
    """The result of a queue that reads so many stored messages back, in blocks of that many."""
    result = bench_load(f"reading blocks of {block}", {"read": mails}, "queue", "--read", "-m", mails, "-b", block, address)
    # A block of a hash has at least as many as asked for, and at most those that share its last bucket more. The first blocks are smaller.
    if not mails / (2 * block + 2) <= result["blocks"] <= mails / block + FIRST_BLOCKS:
        raise LoadError(f"reading blocks of {block}: {mails} messages came in {result['blocks']} blocks")
    return result
