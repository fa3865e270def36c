"""HAProxy as a TCP balancer in front of the agents' own TLS listeners."""

import pathlib
import socket
import subprocess

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.waiting import wait_until

CONFIG = """\
global
    maxconn 1000
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen agents
    bind 127.0.0.1:{port}
    balance roundrobin
{servers}
"""


ANSWERS = """\
global
    maxconn 1000
defaults
    mode http
    timeout client 60s
    timeout http-keep-alive 60s
frontend answers
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain lf-string %[path]
"""


class Haproxy:
    """`servers`: {name: (host, port)}; `options`: of each ("send-proxy-v2"). Use as a context; `address` is where it listens."""

    config = CONFIG

    def __init__(self, folder, servers=(), options=""):
        self._config = pathlib.Path(folder) / "haproxy.cfg"
        self._servers = "\n".join(f"    server {name} {host}:{port} {options}" for name, (host, port) in dict(servers).items())

    def __enter__(self):
        self.address = ("127.0.0.1", free_ports(1)[0])
        self._config.write_text(self.config.format(port=self.address[1], servers=self._servers))
        self._process = subprocess.Popen(["haproxy", "-db", "-f", str(self._config)], stderr=subprocess.PIPE)
        wait_until(lambda: not socket.create_connection(self.address).close(), patience(10), "haproxy")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.communicate()


class HttpHaproxy(Haproxy):
    """A HAProxy that answers every request itself, with the path of the request."""

    config = ANSWERS
