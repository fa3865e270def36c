"""A cluster of a test's own, through the front door: up, look at, disturb, stop, judge.

    cluster = start_cluster("--agents", "2")          options of ./cssl up
    cluster.sf, cluster.sl                            (host, port) of the listeners
    cluster.counters()["a1"]["handshakes_full"]       from the control API
    cluster.move(connection_id, "a2")
    cluster.faults("udp.send drop 0.2"); cluster.kill("a1"); cluster.restart("a1")

stop() judges: every process ended in order, no log has a sanitizer report, the nonce audit of all records is clean.
"""

import contextlib
import http.client
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import sys
import tempfile

from bench.experiments.ports import free_ports
from front.cluster import commands, daemons
from front.cluster.plan import Cluster as FrontCluster, read_plan
from front.cluster.supervisor import Supervisor
from tests.lib import nonce_audit
from tests.lib.build import BUILD, ROOT, TEST_POINTS, patience
from tests.lib.processes import stop, wake
from tests.lib.reports import check_log
from tests.lib.waiting import wait_until

CSSL = str(ROOT / "cssl")

_certificates = {}  # {file name: (content, mode)} of the first cluster


def _certificates_of_the_first(folder):
    """For all later ones, where ./cssl up finds them: an RSA key takes longer to make than a daemon to start."""
    for name, (content, mode) in _certificates.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(mode)


def _keep_certificates(folder):
    names = [f"{name}.{kind}" for name in ("ecdsa-ca", "rsa-ca", "ecdsa", "rsa", "client") for kind in ("key", "pem")]
    for path in (folder / name for name in ["ca.pem", "certificates.until", *names]):
        _certificates.setdefault(path.name, (path.read_bytes(), path.stat().st_mode & 0o777))


class ControlError(Exception):
    """An answer of the control API that is not 200."""

    def __init__(self, status, answer):
        super().__init__(f"{status}: {answer}")
        self.status, self.answer = status, answer


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("ragent", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Cluster:
    def __init__(self, *options, edit=None, env=None, clean_exit=True, takeover=False, faults=(), reuse_planted=False):
        """`options` of ./cssl up. `edit`: called with the text of cluster.yaml before anything starts, returns the text to use.
        `env`: for all daemons. `clean_exit` False: processes may end badly, the test says how itself. `takeover`: an agent may
        be lost, and the nonce audit allows what a takeover may cost; killing one says so by itself. `faults`: rules that every
        process has from its start. `reuse_planted`: a nonce is used again on purpose, and the audit must say so."""
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cssl-", dir="/tmp"))
        # If root starts it, RAgent runs under a user of its own. This user has to reach the folder and write its audit there.
        self.dir.chmod(0o755)
        self.audit = self.dir / "audit"
        self.audit.mkdir()
        self.audit.chmod(0o777)
        self._faults = self.dir / "faults"
        self.faults(*faults)
        self._options, self._edit, self._clean_exit = options, edit, clean_exit
        self._takeover, self._reuse_planted = takeover, reuse_planted
        self._state = "new"
        self.env = {**os.environ, "CSSL_BUILD_DIR": str(BUILD), "CSSL_FAULTS": str(self._faults), "CSSL_AUDIT_DIR": str(self.audit),
                    "CSSL_READY_SECONDS": str(patience(15)), "CSSL_STOP_SECONDS": str(patience(15)), **(env or {})}

    # up and down

    def _run(self, command, *arguments):
        """What ./cssl does, without its start."""
        said = []
        status = commands.run(command, ["--dir", str(self.dir), *arguments], self.env, said.append, free_ports)
        return status, "".join(said)

    def _must(self, command, *arguments):
        status, output = self._run(command, *arguments)
        assert status == 0, f"./cssl {command} failed with {status}:\n{output}"

    def start(self):
        _certificates_of_the_first(self.dir)
        if self._edit:
            self._must("up", "--prepare", *self._options)
            _keep_certificates(self.dir)
            config = self.dir / "cluster.yaml"
            config.write_text(self._edit(config.read_text()))
            self._must("up", "--prepared", *self._options)
        else:
            self._must("up", *self._options)
            _keep_certificates(self.dir)
        self._state = "up"
        description = self.description()
        self.sf = (description["listeners"]["sf"]["host"], description["listeners"]["sf"]["port"])
        self.sl = (description["listeners"]["sl"]["host"], description["listeners"]["sl"]["port"])
        self.ca = description["ca"]
        self.agents = [a["name"] for a in description["agents"]]
        self.direct = {a["name"]: (a["tls"]["host"], a["tls"]["port"]) for a in description["agents"]}

    def description(self):
        """cluster.json as it is now."""
        return json.loads((self.dir / "cluster.json").read_text())

    def stop(self):
        """Stops and judges, once."""
        if self._state != "up":
            return
        self._state = "stopped"
        self.clear_faults()
        for name in self._daemons():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                wake(self.pid(name))
        status, output = self._run("down")
        assert status == 0 or not self._clean_exit, f"./cssl down failed with {status}:\n{output}"
        for path in self.dir.glob("*.log"):
            check_log(path.name, path.read_text(errors="replace"))
        if TEST_POINTS:
            self.check_nonces()

    def remove(self):
        shutil.rmtree(self.dir)

    def check_nonces(self, min_accepted=0):
        """Runs the nonce audit on all records sealed and accepted so far, and returns its result."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = nonce_audit.main([str(self.audit), "--min-accepted", str(min_accepted)] + ["--allow-takeover"] * self._takeover)
        assert status == self._reuse_planted, f"nonce audit:\n{said.getvalue()}"
        return said.getvalue()

    def log(self, name):
        return (self.dir / f"{name}.log").read_text(errors="replace")

    def peer_ways(self, name):
        """By what that agent reached each other agent last: "unix", "tcp". One that starts may be reached by TCP for a moment."""
        return dict(re.findall(r": peer up peer=(\S+) by=(\w+)", self.log(name)))

    def log_sections(self, lines=40):
        """For reports: the last lines of every log."""
        return [(f"{path.name} of {self.dir}", "".join(path.read_text(errors="replace").splitlines(True)[-lines:]))
                for path in sorted(self.dir.glob("*.log"))]

    # processes

    def _daemons(self):
        return [path.stem for path in self.dir.glob("*.pid")]

    def pid(self, name):
        """The process id of "r1", "a1" or "backend". "r1" is RAgent proper, the child of its keeper."""
        return self._child_of(self.keeper_pid()) if name == "r1" else self._noted_pid(name)

    def _noted_pid(self, name):
        return int((self.dir / f"{name}.pid").read_text())

    def keeper_pid(self):
        return self._noted_pid("r1")

    @staticmethod
    def _child_of(keeper):
        """The keeper itself if it has no child."""
        children = pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        return int(children[0]) if children else keeper

    def kill_ragent(self, number=signal.SIGKILL):
        """Ends RAgent proper; returns its process id when the next one serves."""
        pid, again = self.pid("r1"), self.log("r1").count("running again")
        os.kill(pid, number)
        wait_until(lambda: self.log("r1").count("running again") > again, patience(20), "the next RAgent")
        return pid

    def send_signal(self, name, number):
        if number == signal.SIGSTOP:
            stop(self.pid(name))
        else:
            os.kill(self.pid(name), number)

    def allow_takeover(self):
        """From now on agents may be lost."""
        self._takeover = True

    def kill(self, *names, number=signal.SIGKILL):
        """Ends daemons, all at once, and returns when they are gone."""
        self.allow_takeover()
        for name in names:
            self.send_signal(name, number)
        for name in names:
            self.wait_gone(name)

    def wait_gone(self, name, timeout=10):
        """Waits until it has ended by itself or by a signal. Returns its exit status as a shell shows it."""
        end = self.dir / f"{name}.exit"
        wait_until(end.exists, patience(timeout), f"end of {name}")
        return int(end.read_text())

    def restart(self, name):
        """Starts an agent that was killed; returns when it is up again."""
        self._must("agent", name)

    def restart_mail(self):
        """The same for smtpproxy."""
        self._must("mail")

    def start_again(self, name, command):
        """Starts an ended daemon again, by its command line. For daemons that ./cssl agent does not start."""
        front = FrontCluster(str(self.dir), self.env, sys.stderr.write)
        read_plan(front)
        with Supervisor(front) as supervisor:
            daemons.start(front, supervisor, name, [str(word) for word in command])

    def replace(self):
        """A new ragent takes over from the running one."""
        self._must("reload")

    def faults(self, *rules):
        """These rules (net/points/fault.h) from now on, in place of earlier ones."""
        assert TEST_POINTS or not rules, "this build has no fault points"
        fresh = self._faults.with_suffix(".new")
        fresh.write_text("".join(rule + "\n" for rule in rules))
        fresh.replace(self._faults)

    def settle_faults(self):
        """Waits until every running daemon uses the rules as they are now; daemons read them every 20 ms."""
        seconds, ns = divmod(self._faults.stat().st_mtime_ns, 10**9)
        line = f"fault rules of {seconds}.{ns:09}: "
        for name in ["r1"] + self.agents:
            if not (self.dir / f"{name}.exit").exists():
                wait_until(lambda name=name: line in self.log(name), patience(10), f"fault rules at {name}")

    def clear_faults(self):
        self.faults()

    # control API

    def control(self, method, path, body=None):
        """The JSON answer; ControlError for any status but 200 and 202."""
        connection = _UnixConnection(str(self.dir / "ragent" / "control.sock"), patience(20))
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            answer = json.loads(response.read() or b"null")
        finally:
            connection.close()
        if response.status not in (200, 202):
            raise ControlError(response.status, answer)
        return answer

    def status(self):
        return self.control("GET", "/v1/status")

    def counters(self):
        """{"ragent": {...}, "a1": {...}, ...}: the counters of each process since its start."""
        answer = self.control("GET", "/v1/counters")
        return {"ragent": answer["ragent"], **answer["agents"]}

    def counter(self, name):
        """The sum of a counter over all agents."""
        return sum(c[name] for node, c in self.counters().items() if node != "ragent")

    def connections(self, **filters):
        """All connections, of every page; filters: agent, listener, client (an address or network)."""
        found, after = [], {}
        while True:
            query = "&".join(f"{k}={v}" for k, v in {"limit": 1000, **filters, **after}.items())
            answer = self.control("GET", f"/v1/connections?{query}")
            found += answer["connections"]
            if not answer["next"]:
                return found
            after = {"after": answer["next"]}

    def connection(self, identity):
        return self.control("GET", f"/v1/connections/{identity}")

    def connection_of(self, sock):
        """The connection of the socket of a client."""
        host, port = sock.getsockname()[:2]
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return next((c for c in self.connections(client=host) if c["client"] == name), None)

    def move(self, identity, agent):
        return self.control("POST", f"/v1/connections/{identity}/move", {"agent": agent})

    def agent(self, name):
        return self.control("GET", f"/v1/agents/{name}")

    def drain(self, name, timeout_ms=None):
        """Begins a drain."""
        return self.control("POST", f"/v1/agents/{name}/drain", {"timeout_ms": timeout_ms} if timeout_ms else {})

    def wait_drained(self, name, timeout=30):
        """Waits until the drain is over. Returns its report."""
        wait_until(lambda: self.agent(name)["drain"]["state"] != "draining", patience(timeout), f"end of the drain of {name}")
        return self.agent(name)["drain"]

    def undrain(self, name):
        return self.control("POST", f"/v1/agents/{name}/undrain", {})

    def weigh(self, name, weight):
        return self.control("POST", f"/v1/agents/{name}/weight", {"weight": weight})

    def rest(self, identity):
        return self.control("POST", f"/v1/connections/{identity}/rest", {})

    def rolling(self, *names):
        """Restarts agents one after another. Returns the output."""
        status, output = self._run("rolling", *names)
        assert status == 0, f"./cssl rolling failed with {status}:\n{output}"
        return output

    # clients

    def context(self, version=None, ciphers=None, alpn=("http/1.1",)):
        """A client's ssl.SSLContext that trusts the cluster's CA; `version`: "1.2" or "1.3" and no other."""
        context = ssl.create_default_context(cafile=self.ca)
        if version:
            context.minimum_version = context.maximum_version = {
                "1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
        if ciphers:
            context.set_ciphers(ciphers)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def connect(self, where=None, context=None, session=None, server_name="localhost", source=None, sock=None):
        """A TLS connection to (host, port), by default the SF listener, from any address or `source`; or over `sock`, which is
        connected; handshake done."""
        sock = sock or socket.create_connection(where or self.sf, patience(20), (source, 0) if source else None)
        try:
            return (context or self.context()).wrap_socket(sock, server_hostname=server_name, session=session)
        except BaseException:
            sock.close()
            raise

    def http(self, where=None, context=None, **connect):
        """An http.client connection over TLS."""
        # An HTTPSConnection would make a context of its own, with every CA of the system.
        connection = http.client.HTTPConnection("localhost", timeout=patience(20))
        connection.sock = self.connect(where, context, **connect)
        return connection
