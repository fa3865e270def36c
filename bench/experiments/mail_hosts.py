"""The programs on the machines of a Bed (mail_bed.py): senders, aggregators, receivers. running() runs them.

Postfix and Exim run in rooms (mail_room.py). They have their default limits, unless an experiment gives others.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess

from bench.experiments import machine
from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.load import BENCH, LoadError, ended
from bench.experiments.mail_bed import CAPTURED, RECEIVERS, SENDERS
from bench.experiments.mail_peers import debian_version, result_of
from bench.experiments.mail_room import Room
from bench.experiments.waiting import wait_for

START_S, STOP_S = 60, 60

POSTFIX_MAIN = """\
compatibility_level = 3.6
myhostname = {name}.example
mydestination =
inet_protocols = ipv4
maillog_file = /var/spool/log/mainlog
enable_long_queue_ids = yes
disable_dns_lookups = yes
smtp_host_lookup = native
smtpd_peername_lookup = no
{options}
"""

POSTFIX_MASTER = """\
{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""

ONE_ADDRESS = "inet_interfaces = %s\n"  # also that of its connections to others
FROM_SENDERS = f"mynetworks = {SENDERS.format(0)}/24\nsmtpd_relay_restrictions = permit_mynetworks, reject\n"
TO_ITSELF = ("relay_domains = mx1.example mx2.example mx3.example\nrelay_transport = discard:\nmynetworks = 127.0.0.0/8\n"
             "smtpd_relay_restrictions = reject_unauth_destination\n")
BY_DOMAIN = "transport_maps = inline:{ %s }\n" % ", ".join(f"mx{n}.example=smtp:[{RECEIVERS.format(n)}]:25" for n in (1, 2, 3))

EXIM = """\
primary_hostname = {name}.example
local_interfaces = {address}
daemon_smtp_ports = {port}
spool_directory = /var/spool/exim4
log_file_path = /var/spool/log/%slog
log_selector = +millisec
smtp_accept_max = 300
smtp_accept_queue_per_connection = 0
host_lookup =
rfc1413_query_timeout = 0s
tls_advertise_hosts =
notifier_socket =
acl_smtp_rcpt = all
begin acl
all:
  accept
begin routers
nowhere:
  driver = redirect
  data = :blackhole:
"""

STAGES = "incoming", "active", "deferred"  # in which Postfix has a message that is not on hold


class Host:
    """A program in one of the namespaces of the bed; `process` is the root of its processes. What it says on its standard output and
    error is in the file `output`."""

    def __init__(self, space, address, port, output):
        self.space, self.address, self.port, self.output, self.process = space, address, port, output, None

    def _start(self, output):
        raise NotImplementedError

    def log(self):
        """Bytes of its log: why it ended, perhaps."""
        return b""

    def reason(self):
        """Why it ended without a word."""
        return b""

    def _connects(self):
        with self.space.entered(), socket.socket() as s:
            s.settimeout(1)
            return s.connect_ex((self.address, self.port)) == 0

    def begin(self):
        with open(self.output, "wb") as output:
            self.process = self._start(output)

    def wait_for_begin(self):
        wait_for(lambda: self._connects() or self.process.poll() is not None, START_S, f"{self.address} port {self.port}")
        if self.process.poll() is not None:
            raise ended(f"{type(self).__name__} of {self.address} port {self.port}", self.process.returncode,
                        self.log() + self.output.read_bytes() or self.reason())

    def end(self):
        self.process.terminate()

    def wait_for_end(self):
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        wait_for(lambda: not self._connects(), STOP_S, f"the end of {self.address} port {self.port}")


@contextlib.contextmanager
def running(*hosts):
    """All of them, until the end of the context."""
    begun = []
    try:
        for host in hosts:
            host.begin()
            begun.append(host)
        for host in hosts:
            host.wait_for_begin()
        yield hosts
    finally:
        for host in begun:
            host.end()
        for host in begun:
            host.wait_for_end()


class RoomHost(Host):
    """A mail server in a room. Its mail is forgotten when it ends."""

    command = ()

    def __init__(self, bed, space, name, address, port=25, on_disk=False):
        self.folder = bed.new_folder(name, bed.folder if on_disk else bed.memory)
        super().__init__(space, address, port, self.folder / "output")
        self.name, self.room = name, Room(self.folder / "room")
        self.log_file = self.room.spool / "log" / "mainlog"
        self.room.make("spool/log", mode=0o777)
        self.room.etc("resolv.conf", "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
        self.room.etc("hosts", "127.0.0.1 localhost\n")
        self.room.etc("mailname", f"{name}.example\n")

    def _start(self, output):
        with self.space.entered():
            return self.room.start(*self.command, stdout=output, stderr=output)

    def log(self):
        return b"".join(path.read_bytes() for path in (self.room.spool / "log").iterdir())

    def log_bytes(self):
        return len(self.log())

    def end(self):
        self.process.kill()  # the end of the room is the end of all in it

    def wait_for_end(self):
        super().wait_for_end()
        shutil.rmtree(self.folder)


# Of /var/spool/postfix, with group and mode. `postfix start` would make them, but its checks take seconds on a busy machine.
QUEUES = {name: ("postfix", 0o700) for name in ("active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming",
                                                "private", "saved", "trace")}
QUEUES.update(maildrop=("postdrop", 0o730), public=("postdrop", 0o710))


class Postfix(RoomHost):
    command = "/usr/lib/postfix/sbin/master", "-s"

    def __init__(self, bed, space, name, address, options, port=25, on_disk=False):
        super().__init__(bed, space, name, address, port, on_disk)
        self.room.postfix_main(POSTFIX_MAIN.format(name=name, address=address, options=options))
        self.room.etc("postfix/master.cf", POSTFIX_MASTER.format(port=port))
        self.room.make("spool/postfix/pid")
        for queue, (group, mode) in QUEUES.items():
            self.room.make(f"spool/postfix/{queue}", "postfix", group, mode)
        self.room.make("lib/postfix", "postfix", "postfix")
        self._release = None

    def reason(self):
        with self.space.entered():
            return self.room.reason_of_postfix().encode()

    def queue(self, *names):
        """How many messages are in these of its queues."""
        return sum(_files(self.room.spool / "postfix" / name) for name in names)

    def prepare_release(self):
        """Messages on hold will be due at release()."""
        with self.space.entered():
            waits = "postsuper -H ALL; until [ -e /var/spool/release ]; do sleep 0.01; done; postqueue -f"
            self._release = self.room.start("sh", "-c", waits, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: self.queue("hold") == 0, START_S, f"{self.name} has nothing on hold")

    def release(self):
        (self.room.spool / "release").touch()

    def end(self):
        super().end()
        if self._release:
            self._release.kill()
            self._release.wait()


def _files(folder):
    """In a folder and its folders, which have names of one digit."""
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    return sum(_files(folder / name) if len(name) == 1 else 1 for name in names)


class Exim(RoomHost):
    command = "exim4", "-bdf", "-q1m"

    def __init__(self, bed, space, name, address):
        super().__init__(bed, space, name, address)
        self.room.etc("exim4/exim4.conf", EXIM.format(name=name, address=address, port=25))
        for folder in ("", "/db", "/input", "/msglog"):
            self.room.make(f"spool/exim4{folder}", "Debian-exim")


class Sink(Host):
    """cssl-bench smtp-sink. With --mails it ends by itself, and result() waits for that; else it has counts() when it has ended."""

    def __init__(self, bed, address, *options):
        super().__init__(bed.receivers, address, 25, bed.new_folder("sink", bed.memory) / "output")
        self._options = options

    def _start(self, output):
        command = [*self.space.within, str(build_folder() / BENCH), "smtp-sink", "--json", *map(str, self._options), f"{self.address}:25"]
        return subprocess.Popen(command, stdout=output, stderr=output)

    def _connects(self):
        return self.process.poll() is None and super()._connects()

    def result(self, seconds):
        """LoadError: its mails were not there in time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired as late:
            raise LoadError(f"{self.address} did not get its mails within {seconds} s") from late
        if self.process.returncode != 0:
            raise ended(f"smtp-sink of {self.address}", self.process.returncode, self.output.read_bytes())
        return self._told()

    def _told(self):
        return json.loads(self.output.read_text().splitlines()[-1])

    def counts(self):
        return self._told()["counts"]


class Proxy(Host):
    """smtpproxy as the aggregator. `sources`: addresses of its host from which it connects in turn."""

    def __init__(self, bed, fairness="on", sources=(), **limits):
        self.folder = bed.new_folder("smtpproxy", bed.folder)
        super().__init__(bed.router, RECEIVERS.format(254), CAPTURED, self.folder / "output")
        self.control = self.folder / "control"
        self._config = {"name": "aggregator.example", "user": "nobody", "control": str(self.control),
                        "events": str(self.folder / "events"), "log": {"level": "info", "path": str(self.folder / "log")},
                        "listeners": [{"address": f"0.0.0.0:{CAPTURED}", "original_destination": "redirect"}],
                        "limits": limits, "fairness": fairness}
        if sources:
            self._config["outward"] = {"sources": [{"address": address} for address in sources]}

    def _start(self, output):
        config = self.folder / "smtpproxy.yaml"
        config.write_text(json.dumps(self._config))  # YAML has all of JSON
        return subprocess.Popen([*self.space.within, str(build_folder() / "smtpproxy" / "smtpproxy"), "--config", str(config)],
                                stdout=output, stderr=output)

    def log(self):
        path = self.folder / "log"
        return path.read_bytes() if path.exists() else b""

    def log_bytes(self):
        """The size of all that it logs."""
        return sum((self.folder / name).stat().st_size for name in ("log", "events"))

    def ask(self, path):
        """JSON of its control API."""
        done = subprocess.run(["curl", "-sf", "--unix-socket", str(self.control), f"http://smtpproxy{path}"], check=True,
                              stdout=subprocess.PIPE)
        return json.loads(done.stdout)


def msa(bed, number, options=""):
    """A sender. All its mail is for the receiver of its number."""
    address = SENDERS.format(number)
    return Postfix(bed, bed.senders, f"msa{number}", address, ONE_ADDRESS % address + FROM_SENDERS + options)


def mx(bed, number, options=""):
    """A receiver that drops all mail."""
    address = RECEIVERS.format(number)
    return Postfix(bed, bed.receivers, f"mx{number}", address, ONE_ADDRESS % address + TO_ITSELF + options)


def relay(bed, options=""):
    """Postfix as the aggregator: a relay with a queue."""
    return Postfix(bed, bed.router, "relay", RECEIVERS.format(254), FROM_SENDERS + BY_DOMAIN + options, port=CAPTURED, on_disk=True)


def to_mx(number):
    """A sender's option: all mail goes to this receiver."""
    return f"relayhost = [{RECEIVERS.format(number)}]:25\n"


def send(bed, to, mails, *options):
    """Starts smtp-source on the senders' machine."""
    command = [*bed.senders.within, str(build_folder() / BENCH), "smtp-source", "--quiet", "--json", "-m", str(mails), *map(str, options),
               f"{to}:25"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.mails = mails
    return process


def sent(process, seconds=900):
    """The result of send(). LoadError: a mail failed, or other mails were sent, so it is not a measurement."""
    try:
        output, complaints = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.communicate()
        raise LoadError(f"{process.mails} mails were not sent within {seconds} s") from late
    return result_of("smtp-source", process.mails, process.returncode, output, complaints)


def facts(*packages):
    """Of this machine, and of Debian's packages that are unpacked for a run."""
    found = machine.facts(ROOT)
    return {**{key: value for key, value in found.items() if key not in ("haproxy", "nginx", "hitch")},
            **{name: debian_version(name) for name in packages}}


def stop_all(processes):
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()
