"""Other servers, with the configuration used here: the backend of all systems, and the servers that a CSSL cluster is compared
with. Each has one worker thread or process. A Place is a folder with running servers; they end with the Place."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

from bench.experiments.load import BENCH, build_folder, ended
from bench.experiments.ports import free_ports
from bench.experiments.processes import tree

FILES = {"5": 5, "1k": 1 << 10, "5k": 5 << 10, "1m": 1 << 20}
PROCESSES = {"nginx": 2, "hitch": 2}  # with one worker; of others one
START_SECONDS = 10
STOP_SECONDS = 10

NGINX = """\
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 9000; }}
http {{
    access_log off; sendfile on; tcp_nopush on; open_file_cache max=100;
    keepalive_requests 1000000000; keepalive_timeout 3600s;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    {tls}
    add_header X-CSSL-Agent {name};
    server {{ listen {host}:{port} {listen} backlog=4096; root {www}; {proxy} }}
}}
"""

NGINX_TLS = """\
ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20; ssl_session_timeout 1h; {sessions}
"""

NGINX_PROXY = """location / {{
        proxy_pass http://{host}:{port}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}"""

HAPROXY = """\
global
    nbthread 1
    maxconn 9000
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode {mode}
    timeout connect 5s
    timeout client 3600s
    timeout server 3600s
    timeout http-keep-alive 3600s
    timeout http-request 30s
    option redispatch 1
{frontends}
"""

HITCH = """\
frontend = {{ host="{host}" port="{port}" }}
backend = "[{host}]:{backend}"
pem-file = "{pem}"
workers = 1
user = "nobody"
backlog = 4096
tls-protos = TLSv1.2 TLSv1.3
ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"
ocsp-dir = "{pem}.ocsp"
log-level = 0
"""  # there is no such folder, so no third process looks after it, whatever hosts have in /var/lib/hitch


def _answers(host, port):
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
        return True
    return False


class Place:
    """A folder with servers that listen on an address of this host. Use as a context."""

    def __init__(self, folder, host="127.0.0.1"):
        self.folder, self.host = pathlib.Path(folder), host
        self._processes, self._started, self._prefix = [], {}, ()

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.www = self.folder / "www"
        self.www.mkdir(exist_ok=True)
        for name, size in FILES.items():
            (self.www / name).write_bytes(os.urandom(size))
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name, port, *command):
        """Returns the process ids of all processes of the command. The workers start after the socket listens."""
        self._started[name] = port, command
        wanted = PROCESSES.get(command[0], 1)
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen([*self._prefix, *command], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._processes.append(process)
        end = time.monotonic() + START_SECONDS
        while not _answers(self.host, port) or len(tree(process.pid)) < wanted:
            if process.poll() is not None:
                raise ended(f"{name} does not listen", process.returncode, (self.folder / f"{name}.log").read_bytes())
            if time.monotonic() > end:
                raise RuntimeError(f"{name} does not listen within {START_SECONDS} s: {(self.folder / f'{name}.log').read_text()[-500:]}")
            time.sleep(0.05)
        return tree(process.pid)

    def start_again(self, name):
        """Process ids of a command that has ended, as _start() gave them."""
        port, command = self._started[name]
        return self._start(name, port, *command)

    @contextlib.contextmanager
    def in_turns(self):
        """Processes started within do not interrupt a process that has a CPU (SCHED_BATCH), like RAgents and agents."""
        self._prefix = ("chrt", "--batch", "0")
        yield
        self._prefix = ()

    def _file(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def nginx(self, name, tls=None, sessions="", proxied=None):
        """(port, pids). `tls`: (certificate, key). `proxied`: a port that gets the requests; otherwise nginx serves files."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        port, = free_ports(1)
        lines = NGINX_TLS.format(certificate=tls[0], key=tls[1], sessions=sessions) if tls else ""
        proxy = NGINX_PROXY.format(host=self.host, port=proxied) if proxied else ""
        config = self._file(f"{name}.conf", NGINX.format(folder=folder, name=name, host=self.host, port=port, www=self.www,
                                                         tls=lines, listen="ssl" if tls else "", proxy=proxy))
        return port, self._start(name, port, "nginx", "-c", config)

    def nginx_pair(self, name, tls, sessions="", proxied=None):
        """Two nginxes: [(port, pids), (port, pids)]."""
        return [self.nginx(f"{name}{i}", tls, sessions, proxied) for i in (1, 2)]

    def serve(self):
        """(port, pids) of the embedded backend."""
        port, = free_ports(1)
        return port, self._start("serve", port, str(build_folder() / BENCH), "serve", "--listen", f"{self.host}:{port}")

    def certificate(self):
        """(certificate, key), ECDSA, signed by itself."""
        pair = str(self.folder / "server.pem"), str(self.folder / "server.key")
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                               "-subj", "/CN=localhost", "-keyout", pair[1], "-out", pair[0]], check=False, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise ended("openssl req", done.returncode, done.stderr)
        return pair

    def ticket_key(self):
        """The configuration line with which nginxes resume each other's sessions."""
        path = self.folder / "ticket.key"
        path.write_bytes(os.urandom(80))
        path.chmod(0o600)
        return f"ssl_session_ticket_key {path};"

    def hitch_pair(self, tls, backend):
        pem = self._file("hitch.pem", pathlib.Path(tls[1]).read_text() + pathlib.Path(tls[0]).read_text(), 0o600)
        pairs = []
        for i, port in enumerate(free_ports(2), 1):
            config = self._file(f"hitch{i}.conf", HITCH.format(host=self.host, port=port, backend=backend, pem=pem))
            pairs.append((port, self._start(f"hitch{i}", port, "hitch", "--config", config)))
        return pairs

    def _hosts(self, ports):
        """A number alone is a port of this place."""
        return [p if isinstance(p, tuple) else (self.host, p) for p in ports]

    def haproxy_tcp(self, name, ports, balance="roundrobin", options=""):
        """(port, pids) of a balancer in front of these ports, or (host, port)s. `options`: those of each server."""
        port, = free_ports(1)
        servers = "".join(f"    server s{p} {h}:{p} {options}\n" for h, p in self._hosts(ports))
        frontends = f"listen f\n    bind {self.host}:{port} backlog 4096\n    balance {balance}\n{servers}"
        config = self._file(f"{name}.cfg", HAPROXY.format(mode="tcp", frontends=frontends))
        return port, self._start(name, port, "haproxy", "-db", "-f", config)

    def haproxy_tls(self, name, tls, backends, reuse="always"):
        """(port, pids) of a HAProxy that ends TLS in front of these ports. `reuse` of backend connections: "always" or "never"."""
        pem = self._file(f"{name}.pem", pathlib.Path(tls[1]).read_text() + pathlib.Path(tls[0]).read_text(), 0o600)
        port, = free_ports(1)
        servers = "".join(f"    server s{p} {self.host}:{p}\n" for p in backends)
        frontends = f"listen f\n    bind {self.host}:{port} backlog 4096 ssl crt {pem}\n    http-reuse {reuse}\n{servers}"
        config = self._file(f"{name}.cfg", HAPROXY.format(mode="http", frontends=frontends))
        return port, self._start(name, port, "haproxy", "-db", "-f", config)
