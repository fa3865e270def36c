"""Other programs for mail, with the configuration used here: nginx's mail proxy, stunnel, Postfix's two tools, and our own sink.
nginx's mail module and stunnel are unpacked, not installed (front/packages.sh: mail_get)."""

import contextlib
import gzip
import json
import os
import resource
import select
import subprocess
import tempfile
import time

from bench.experiments.cluster import Cluster, build_folder
from bench.experiments.load import BENCH, ended, read, same
from bench.experiments.mail_room import tools
from bench.experiments.peers import Place
from bench.experiments.ports import free_ports
from bench.experiments.processes import cpu_ns, living

RUN_SECONDS = 300
LOOK_MS = 20
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")

NGINX = """\
load_module {modules}/ngx_mail_module.so;
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 9000; }}
mail {{
    server_name mx.example; auth_http 127.0.0.1:{auth}/; smtp_auth none; proxy_pass_error_message on; xclient off;
    smtp_capabilities PIPELINING 8BITMIME "SIZE 0";
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20; ssl_session_cache shared:mail:20m; ssl_session_timeout 1h;
    server {{ listen {host}:{starttls} backlog=4096; protocol smtp; starttls on; }}
    server {{ listen {host}:{implicit} ssl backlog=4096; protocol smtp; }}
}}
http {{
    access_log off; keepalive_requests 1000000000;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    server {{
        listen 127.0.0.1:{auth} backlog=4096;
        location / {{
            add_header Auth-Status OK; add_header Auth-Server {host}; add_header Auth-Port {sink}; return 200 "";
        }}
    }}
}}
"""

STUNNEL = """\
foreground = yes
pid =
debug = 3
setuid = nobody
cert = {certificate}
key = {key}
sslVersionMin = TLSv1.2
socket = l:TCP_NODELAY=1
socket = r:TCP_NODELAY=1
sessionCacheSize = 20000
sessionCacheTimeout = 3600
[starttls]
accept = {host}:{starttls}
connect = {host}:{sink}
protocol = smtp
[implicit]
accept = {host}:{implicit}
connect = {host}:{sink}
"""

def used_ns(pids):
    """CPU time of processes. Exact, but with threads that have ended (stunnel has one for each connection) only as exact as the
    kernel's tick."""
    return sum(max(_living_ns(pid), _ticks_ns(pid)) for pid in pids)


def _living_ns(pid):
    """Of the threads that live. One of them may end while this looks."""
    try:
        return cpu_ns([pid])
    except OSError:
        return 0


def _ticks_ns(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_NS


class MailPlace(Place):
    """A folder with mail servers in it. Each server of TLS has a port with STARTTLS and one with TLS from the first byte."""

    def _config(self, name, text, **more):
        starttls, implicit, auth = free_ports(3)
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        ports = {"starttls": starttls, "implicit": implicit}
        return ports, self._file(f"{name}.conf", text.format(folder=folder, host=self.host, auth=auth, **ports, **more))

    def nginx_mail(self, name, tls, sink):
        """({kind: port}, pids)."""
        ports, config = self._config(name, NGINX, modules=tools() / "usr/lib/nginx/modules", certificate=tls[0], key=tls[1], sink=sink)
        return ports, self._start(name, ports["starttls"], "nginx", "-c", config)

    def stunnel(self, name, tls, sink):
        ports, config = self._config(name, STUNNEL, certificate=tls[0], key=tls[1], sink=sink)
        return ports, self._start(name, ports["starttls"], unpacked("stunnel4"), config)

    def sink(self, name, *options):
        """(port, pids) of smtp-sink."""
        port, = free_ports(1)
        return port, self._start(name, port, str(build_folder() / BENCH), "smtp-sink", "--json", *options, f"{self.host}:{port}")

    def end_sink(self, name, pids, mails):
        """The counts of smtp-sink, which ends. LoadError: it did not get so many mails, each once and whole."""
        self.end(pids)
        counts = self.counts(name)
        same(name, counts, {"mails": mails, "right": mails, "duplicates": 0})
        return counts

    def counts(self, name):
        """Of an smtp-sink that has ended."""
        return json.loads((self.folder / f"{name}.log").read_text().splitlines()[-1])["counts"]

    def postfix_sink(self):
        port, = free_ports(1)
        return port, self._start("postfix-sink", port, unpacked("smtp-sink"), "-u", "nobody", "-m", "2000", f"{self.host}:{port}", "1100")

    def end(self, pids):
        """Ends one of its servers now."""
        process = next(p for p in self._processes if p.pid == pids[0])
        self._processes.remove(process)
        process.terminate()
        process.wait()


class MailCluster(Cluster):
    """Two agents behind one RAgent, in front of a mail server. `mail` has the ports by kind, like MailPlace's servers."""

    def __init__(self, folder, backend, handshake="round-robin"):
        super().__init__(folder, backend)
        self._options += ["--smtp-backend", "%s:%d" % backend, "--handshake", handshake, "--resumption", handshake]

    @property
    def mail(self):
        return {"starttls": self.ports["smtp"], "implicit": self.ports["smtps"]}


def own_source():
    return [str(build_folder() / BENCH), "smtp-source", "--quiet"]


def unpacked(name):
    """A program of a package that is not installed (programs_mail in front/packages.sh)."""
    return str(tools().parent / name)


def result_of(what, mails, status, output, complaints):
    """The result of smtp-source with --json. LoadError: it did not send so many mails, so it is not a measurement."""
    if status != 0:
        raise ended(what, status, output[:600], complaints)
    result = json.loads(output)
    same(what, result["counts"], {"sent": mails, "failed": 0, "undecided": 0})
    return result


def source(port, mails, *options, host="127.0.0.1", seconds=RUN_SECONDS):
    """The result of smtp-source, which sends so many mails."""
    command = [*own_source(), "--json", "-m", str(mails), *map(str, options), f"{host}:{port}"]
    done = subprocess.run(command, text=True, check=False, capture_output=True, timeout=seconds)
    return result_of(" ".join(map(str, options)), mails, done.returncode, done.stdout, done.stderr)


def peak_kb(pid):
    """The greatest resident memory of the program that this process runs now; 0 when it has ended. The value of wait4() would
    include the memory of Python, as which the process began."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), 0)
    return 0


def timed(*command):
    """The cost of a command until its end, with the processes that it begins. Their memory is read from time to time, and added up."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as said, subprocess.Popen(list(map(str, command)), stdout=said, stderr=said) as process:
        peak, end = peak_kb(process.pid), select.poll()
        with open(os.pidfd_open(process.pid), "rb", buffering=0) as alive:
            end.register(alive, select.POLLIN)
            while not end.poll(LOOK_MS):
                peak = max(peak, sum(map(peak_kb, living(process.pid))))
        seconds = time.monotonic() - begin
        process.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode != 0:
            raise ended(" ".join(map(str, command)), process.returncode, read(said))
    return {"seconds": seconds, "user_s": after.ru_utime - before.ru_utime, "system_s": after.ru_stime - before.ru_stime, "peak_kb": peak}


def debian_version(package):
    """Of one that is unpacked."""
    with gzip.open(tools() / "usr/share/doc" / package / "changelog.Debian.gz", "rt", encoding="utf-8") as log:
        return log.readline().split("(")[1].split(")")[0]
