"""A TLS client that a scenario steers step by step (tests/lib/tlsprobe.c has the commands).

    with Probe(cluster.sf) as probe:
        probe("handshake", version="1.3", sni="www.example.org")
        probe("forge", type=23, text=b"x", tag="wrong")
        assert probe("end")["alert_name"] == "bad record mac"

Each call waits for the command's end and returns its answer, a dict; ProbeError when the command itself could not be done.
"""

import json
import subprocess

from tests.lib.build import patience, tool
from tests.lib.waiting import wait_until


class ProbeError(Exception):
    pass


def _value(value):
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    data = value if isinstance(value, bytes) else str(value).encode()
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in data) + '"'


class Probe:
    def __init__(self, to=None, **connect):
        """Connected to `to`, a (host, port), unless it is None."""
        self._process = subprocess.Popen([tool("tests/lib/tlsprobe")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if to:
            host, port = to
            self._local = self("connect", to=f"[{host}]:{port}" if ":" in host else f"{host}:{port}", **connect)["local"]

    def getsockname(self):
        """Its own (host, port), as socket.getsockname() tells."""
        host, port = self._local.rsplit(":", 1)
        return host.strip("[]"), int(port)

    def start(self, verb, **args):
        """Begin a command without waiting for its end. finish() returns its answer."""
        args.setdefault("timeout_ms", patience(10) * 1000)
        line = " ".join([verb] + [f"{key}={_value(value)}" for key, value in args.items()])
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def finish(self):
        line = self._process.stdout.readline()
        if not line:
            raise ProbeError(f"tlsprobe ended with {self._process.wait()}")
        answer = json.loads(line)
        if not answer["ok"]:
            raise ProbeError(answer["error"])
        return answer

    def __call__(self, verb, **args):
        self.start(verb, **args)
        return self.finish()

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def wait_for_tickets(cluster):
    """An agent that has just started has no key for tickets of TLS 1.2 yet."""
    def makes_one(where):
        with Probe(where) as probe:
            probe("handshake", version="1.2", sni="localhost")
            try:
                return probe("save_session", file="/dev/null", timeout_ms=100)
            except ProbeError:
                return None
    for where in cluster.direct.values():
        wait_until(lambda where=where: makes_one(where), patience(10), "a ticket")
