"""smtpproxy as a test runs it.

    with Proxy(tmp_path, next_hop=sink.address) as proxy:
        source(proxy.address, "--proxy", "v2", ...)

Its listener takes PROXY headers; `next_hop` is where all mail goes, or None for the destination that the header names.
"""

import http.client
import json
import os
import signal
import socket
import subprocess

from bench.experiments.ports import free_ports
from tests.lib.build import binary, patience
from tests.lib.mail import CLEAN
from tests.lib.smtp_talk import close_all
from tests.lib.waiting import wait_until


def text_of(address):
    return "{}:{}".format(*address)


class Control(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("smtpproxy", timeout=patience(10))
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

    def ask(self, path, method="GET"):
        """(status, text)"""
        self.request(method, path)
        answer = self.getresponse()
        return answer.status, answer.read().decode()


class Proxy:
    def __init__(self, folder, next_hop=None, ports=(), listener=None, within=(), **keys):
        """`listener` adds to the listener's keys, `keys` to those of the root; limits and outward are dictionaries. `within`: a
        command that runs it."""
        self.address = "127.0.0.1", free_ports(1)[0]
        self.folder = folder
        self._log = folder / "smtpproxy.log"
        self.control, self._events = folder / "smtpproxy.sock", folder / "events.json"
        own = {"address": text_of(self.address), "original_destination": "proxy", "trusted": ["127.0.0.0/8"], **(listener or {})}
        if next_hop:
            own["next_hop"] = text_of(next_hop)
            ports = (*ports, next_hop[1])
        config = {"name": "proxy.example", "listeners": [own], "log": {"level": "debug", "path": str(self._log)},
                  "control": str(self.control), "events": str(self._events), **keys}
        if os.geteuid() == 0:
            config["user"] = "nobody"
        config["outward"] = {"ports": list(ports), "local": ["127.0.0.0/8", "::1/128"], **keys.get("outward", {})}
        self.config = folder / "smtpproxy.yaml"
        self.settings = config
        self.write_config()
        self._within = within
        self._complaints = (folder / "smtpproxy.err").open("w+")
        self.process = subprocess.Popen([*within, binary("smtpproxy/smtpproxy"), "--config", str(self.config)], stderr=self._complaints)
        wait_until(lambda: ": started" in self.log() or self.process.poll() is not None, patience(10), "smtpproxy is there")
        assert self.process.poll() is None, self.complaints()

    def write_config(self):
        self.config.write_text(json.dumps(self.settings))  # YAML has all of JSON

    def reload(self, outcome="configuration read again"):
        """Reads its file again, which must be where its user can read it."""
        before = self.log().count(outcome)
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.log().count(outcome) > before, patience(10), outcome)

    def replace(self):
        """A new process takes over; returns the old one, which ends with its last session."""
        old, before = self.process, self.log().count(": started")
        self.process = subprocess.Popen([*self._within, binary("smtpproxy/smtpproxy"), "--config", str(self.config), "--replace"],
                                        stderr=self._complaints)
        wait_until(lambda: self.log().count(": started") > before or self.process.poll() is not None, patience(10), "the new one is there")
        assert self.process.poll() is None, self.complaints()
        return old

    def start_again(self):
        """It has ended: a new process goes on with its file."""
        before = self.log().count(" started")
        self.process = subprocess.Popen([*self._within, binary("smtpproxy/smtpproxy"), "--config", str(self.config)],
                                        stderr=self._complaints)
        wait_until(lambda: self.log().count(" started") > before or self.process.poll() is not None, patience(10), "the new one is there")
        assert self.process.poll() is None, self.complaints()

    def fail_to_replace(self):
        """The file has a fault: what the new process says about it. The old one goes on."""
        done = subprocess.run([*self._within, binary("smtpproxy/smtpproxy"), "--config", str(self.config), "--replace"], text=True,
                              check=False, stderr=subprocess.PIPE, timeout=patience(20))
        assert done.returncode == 1, done
        return done.stderr

    def log(self):
        return self._log.read_text() if self._log.exists() else ""

    def complaints(self):
        self._complaints.seek(0)
        return self._complaints.read()

    def events(self):
        """The records of transactions, from its event log, which another thread of it writes."""
        if self.process.poll() is None:
            known = json.loads(Control(self.control).ask("/v1/events?after=0")[1])
            newest = json.dumps({"n": known["newest"], "instance": known["instance"]}, separators=(",", ":"))[1:]
            wait_until(lambda: not known["newest"] or newest in self._events.read_text(), patience(10), "the records are in the file")
        return [json.loads(line) for line in self._events.read_text().splitlines()]

    def rss(self):
        """The resident memory of the process, in bytes."""
        status = (f"/proc/{self.process.pid}/status")
        with open(status, encoding="utf-8") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

    def stop(self):
        """Stops it in order. Returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience(20))

    def connect(self):
        return socket.create_connection(self.address, timeout=patience(20))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            status = self.process.poll()
            if status is None:
                close_all(self.address)
                status = self.stop()
            if kind is None:
                complaints = self.complaints()
                assert status in (0, -signal.SIGKILL), (status, complaints, self.log()[-2000:])
                assert not any(word in complaints for word in CLEAN), complaints
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self._complaints.close()
