"""CSSL clusters for measurements: the front door's, with listeners added to its cluster file."""

import json
import os
import pathlib
import re
import subprocess

from bench.experiments.ports import free_ports
from bench.experiments.processes import tree

ROOT = pathlib.Path(__file__).resolve().parents[2]

LISTENER = """\
  - name: {name}
    listen: ["{host}:{port}"]
    mode: sf
{keys}
    service: http
    tls:
      certificates: [ecdsa, rsa]
"""


# The same values as the front door's, so that the agents get equal shares.
KEYS = {"handshake": "round-robin", "resumption": "round-robin", "affinity_bound": "off", "backend": "main"}


# What each kind of link is called by the front door, and whether it goes over TCP in place of a UNIX socket and shared memory.
LINKS = {"memory": ("trusted", False), "tcp": ("trusted", True), "tcp-sealed": ("sealed", True),
         "trusted": ("trusted", False), "sealed": ("sealed", False)}


class Cluster:
    """Agents behind one RAgent, each process with so many workers. Use as a context. `listeners`: {name: {key: value}}: further
    listeners beside sf and sl, like the front door's sf with keys of their own. There are two backends, which are the same
    server: connections to `main` are reused, those to `fresh` are not. Like all other systems that are measured, it writes no
    log line for each connection."""

    def __init__(self, folder, backend, link="memory", listeners=None, agents=2, workers=1, host="127.0.0.1",
                 root=ROOT, options=()):
        """`backend`: (host, port); `host`: where the added listeners listen; `root`: the checkout whose programs run; `options`: further
        ones of ./cssl up."""
        self.folder, self._host = pathlib.Path(folder), host
        protection, self._over_tcp = LINKS[link]
        self._options = ["--agents", str(agents), "--workers", str(workers), "--backend", "%s:%d" % backend, "--link", protection, *options]
        self._backend = "%s:%d" % backend
        self._root, self._listeners = root, listeners or {}
        self._added = dict(zip(self._listeners, free_ports(len(self._listeners))))

    def _cssl(self, command, *arguments):
        programs = build_folder() if self._root == ROOT else self._root / "build"
        subprocess.run([str(self._root / "cssl"), command, "--dir", str(self.folder), *arguments], check=True,
                       env=dict(os.environ, CSSL_BUILD_DIR=str(programs)))

    def _edit(self):
        config = self.folder / "cluster.yaml"
        text = config.read_text()
        text = text.replace(f'address: "{self._backend}" }}', f'address: "{self._backend}", reuse: on }}', 1)
        text = text.replace("\nlisteners:\n", f'\n  - {{ name: fresh, address: "{self._backend}" }}\nlisteners:\n', 1)
        for name, keys in self._listeners.items():
            lines = "\n".join(f"    {key}: {value}" for key, value in {**KEYS, **keys}.items())
            text += LISTENER.format(name=name, host=self._host, port=self._added[name], keys=lines)
        if self._over_tcp:
            text = re.sub(r"link: unix:\S+", lambda _: f"link: {self._host}:{free_ports(1)[0]}", text)
        config.write_text(text + "log: { level: warning }\n")

    def __enter__(self):
        self._cssl("up", "--prepare", *self._options)
        self._edit()
        self._cssl("up", "--prepared", *self._options)
        description = json.loads((self.folder / "cluster.json").read_text())
        self.ca = description["ca"]
        self.tls = {kind: (str(self.folder / f"{kind}.pem"), str(self.folder / f"{kind}.key")) for kind in ("ecdsa", "rsa")}
        self.ports = {**{name: row["port"] for name, row in description["listeners"].items()}, **self._added}
        self.ragent = tree(description["ragent"]["pid"])
        self.agents = {a["name"]: tree(a["pid"]) for a in description["agents"]}
        self.direct = [a["tls"]["port"] for a in description["agents"]]
        self.pids = self.ragent + sum(self.agents.values(), [])
        return self

    def __exit__(self, *_):
        self._cssl("down")

    def schedule_by_default(self):
        """From now on without the scheduling (SCHED_BATCH) that RAgent and agents set for themselves."""
        for pid in self.pids:
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))

    def control(self, path, body=None):
        """The JSON answer of the control API; with a body it is a POST."""
        post = ["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body is not None else []
        done = subprocess.run(["curl", "-sf", "--unix-socket", str(self.folder / "ragent" / "control.sock"), *post,
                               f"http://ragent{path}"], check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)


def build_folder():
    return pathlib.Path(os.environ.get("CSSL_BUILD_DIR", ROOT / "build"))
