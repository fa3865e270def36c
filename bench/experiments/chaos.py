"""./cssl bench chaos: the effect on clients when one of two servers is killed, or stopped in order, or when the process in front
of both is killed. Each client keeps its connection as long as it lasts. So every connection beyond the number of clients replaces a lost one. If its client was
waiting for an answer, the answer was cut, or the request got none."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import statistics
import time

from bench.experiments import load, machine, plot
from bench.experiments.cluster import ROOT, Cluster
from bench.experiments.compare_systems import LINKS, MEMORY
from bench.experiments.peers import Place
from bench.experiments.report import machine_lines, save, terms_line

RAMP_S = 0.5
BEFORE_S = 0.5
AFTER_S = 3.5
LIMIT_S = 60  # of a load without an end of its own
DRAIN_MS = 3000  # longer than any answer takes
DOWNLOAD = 1 << 20
REPEATED = "16MiB"  # of an answer, at most
SOURCES = "127.0.8.1-127.0.8.40"  # so many that by affinity both agents have clients
CHECKED = "check inter 100ms fall 1 rise 1"


@dataclasses.dataclass
class Load:
    name: str
    short: str
    clients: int
    options: tuple
    backend: str = "ranges"  # or "plain": its answers have no ETag and no ranges


LOADS = [
    Load("idle connections, a request each second", "idle connections", 200, ("--path", "/1k", "--length", 1024, "--think-ms", 1000)),
    Load("requests without pause", "requests without pause", 64, ("--path", "/1k", "--length", 1024)),
    Load("downloads of 2 s", "downloads", 48, ("--path", f"/slow?bytes={DOWNLOAD}&ms=2000", "--length", DOWNLOAD)),
    Load("downloads of 2 s from a backend without ranges and ETag", "downloads without ranges", 48,
         ("--path", f"/slow?bytes={DOWNLOAD}&ms=2000&plain=1", "--length", DOWNLOAD), "plain"),
]


class Ours:
    """CSSL-SF: kill an agent, or drain it, or kill RAgent proper, which its keeper starts again."""
    name = "CSSL-SF"
    keys = {}  # of its listener

    def __init__(self, folder, stack):
        self._place = stack.enter_context(Place(folder / "peers"))
        backend, _ = self._place.serve()
        self._cluster = stack.enter_context(Cluster(folder / "c", (self._place.host, backend),
                                                    listeners={"measured": self.keys} if self.keys else None))
        self.port = self._cluster.ports["measured" if self.keys else "sf"]

    def kill(self):
        kill(self._cluster.agents["a1"])

    def stop_in_order(self):
        self._cluster.control("/v1/agents/a1/drain", {"timeout_ms": DRAIN_MS})

    def kill_dispatcher(self):
        kill(self._cluster.ragent)


class Repeating(Ours):
    """The next agent asks for all of an answer again, and compares it with the delivered part."""
    name = "CSSL-SF repeating"
    keys = {"repeat_downloads": REPEATED}


class _Behind:
    """HAProxy in front of two servers that end TLS, with a health check. Both use the same kind of backend."""

    def __init__(self, folder, stack):
        self._place = stack.enter_context(Place(folder / "peers"))
        backend, _ = self._place.serve()
        tls = self._place.certificate()
        self._pair = self._make(tls, backend)
        self.port, self._front = self._place.haproxy_tcp("front", [port for port, _ in self._pair], options=CHECKED)

    def kill(self):
        kill(self._pair[0][1])

    def stop_in_order(self):
        os.kill(self._pair[0][1][0], self.stop_signal)

    def kill_dispatcher(self):
        kill(self._front)
        self._place.start_again("front")


class Nginx(_Behind):
    name = "haproxy+nginx"
    stop_signal = signal.SIGQUIT  # its graceful shutdown

    def _make(self, tls, backend):
        return self._place.nginx_pair("web", tls, proxied=backend)


class Hitch(_Behind):
    name = "haproxy+hitch"
    stop_signal = signal.SIGTERM  # it has no other way

    def _make(self, tls, backend):
        return self._place.hitch_pair(tls, backend)


class NginxAlone:
    """One nginx that ends TLS and forwards requests. Its worker is killed; its master starts the next one."""
    name = "nginx"

    def __init__(self, folder, stack):
        place = stack.enter_context(Place(folder / "peers"))
        backend, _ = place.serve()
        self.port, self._pids = place.nginx("front", place.certificate(), proxied=backend)

    def kill_dispatcher(self):
        kill(self._pids[1:])


@dataclasses.dataclass
class Event:
    file: str  # its name in file names
    method: str  # of a system
    kinds: tuple

    def kinds_of(self, work):
        """The systems for a load: none if the event does not depend on its backend."""
        if work.backend == "ranges":
            return self.kinds
        return (Ours, Repeating, *self.kinds[1:]) if self.method != "kill_dispatcher" else ()

    def loads(self):
        return [work for work in LOADS if self.kinds_of(work)]


EVENTS = {"kill -9 of one of two": Event("kill", "kill", (Ours, Nginx, Hitch)),
          "orderly stop of one of two": Event("stop", "stop_in_order", (Ours, Nginx, Hitch)),
          "kill -9 of the dispatcher": Event("dispatcher", "kill_dispatcher", (Ours, Nginx, Hitch, NginxAlone))}


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _wait_for_clients(port, clients):
    end = time.monotonic() + 30
    while load.connections_at(port) < clients:
        if time.monotonic() > end:
            raise RuntimeError(f"{clients} clients do not connect")
        time.sleep(0.02)


def measure(kind, event, work, folder, is_quick):
    """One run: a dict of figures."""
    clients = work.clients // 8 if is_quick else work.clients
    before, after = (0.3, 2.5) if is_quick else (BEFORE_S, AFTER_S)
    with contextlib.ExitStack() as stack:
        system = kind(folder, stack)
        running = load.Running(system.port, "--clients", clients, "--requests", 0, "--duration", LIMIT_S,
                               "--ramp", RAMP_S, "--source", SOURCES, *work.options)
        stack.callback(running.end)
        _wait_for_clients(system.port, clients)
        time.sleep(before)
        getattr(system, EVENTS[event].method)()
        time.sleep(after)
        result = running.result()
    counts = result["counts"]
    if counts["connected"] < clients or counts["answers"] == 0:
        raise load.LoadError(f"{kind.name}, {work.name}: {counts['connected']} connections and {counts['answers']} answers of {clients} clients")
    refused = counts["handshake_failed"] + counts["connections"] - counts["connected"]  # attempts, and not in use yet
    return {"system": kind.name, "event": event, "load": work.name, "clients": clients, "counts": counts,
            "errors": result["errors"], "lost": counts["connections"] - refused - clients, "refused": refused, "latency": result["latency"],
            "failed": counts["cut"] + counts["unanswered"] + counts["timeouts"] + counts["other_status"],
            "wrong": counts["wrong_length"] + counts["wrong_bytes"] + counts["malformed"]}


def _row(rows):
    def median(value):
        return statistics.median(value(r) for r in rows)
    clients = rows[0]["clients"]
    return (f"| {rows[0]['system']} | {clients} | **{100 * survived(rows):.0f} %** | {median(lambda r: r['counts']['cut']):.0f} | "
            f"{median(lambda r: r['failed'] - r['counts']['cut']):.0f} | {median(lambda r: r['refused']):.0f} | {median(lambda r: r['wrong']):.0f} | "
            f"{median(lambda r: r['counts']['answers']):.0f} | {median(lambda r: r['latency']['full']['p50_us']) / 1000:.1f} | "
            f"{median(lambda r: r['latency']['full']['max_us']) / 1000:.0f} |")


def survived(rows):
    """The share of connections that survived; the median of the rounds."""
    return statistics.median(max(0, r["clients"] - r["lost"]) / r["clients"] for r in rows)


def _of(runs, system, event, work):
    return [r for r in runs if (r["system"], r["event"], r["load"]) == (system, event, work)]


INTRODUCTION = """\
Two servers end TLS, and both have clients. Then one of the two is killed, or stopped as its operator would stop it, or the process
in front of both is killed. Each client keeps its connection as long as it lasts, and makes another one when it is lost.

- **CSSL-SF**: RAgent and two SSLAgents. An orderly stop is a drain: its connections move to the other agent.
- **haproxy+nginx**: HAProxy hands TCP to two nginxes, which forward requests to the backend. An orderly stop is nginx's graceful shutdown: answers
  that are under way end, then connections are closed.
- **haproxy+hitch**: the same with two hitches. They have no orderly stop except SIGTERM.

The process in front is RAgent, whose keeper starts it again, or HAProxy, which is started again at once. **nginx** is one nginx without
a balancer: its worker is killed, and its master starts the next one.

HAProxy notices by a check every 100 ms that a server is gone. All use the same backend, which goes on running.

When an agent is killed, another agent goes on with a download only if the backend lets it. One of two things is needed:

- The backend gives the rest of an answer: byte ranges (`Accept-Ranges: bytes`), a length and a strong ETag. The next agent asks for the
  rest, and takes it only if the ETag is the same.
- The listener has `repeat_downloads: SIZE`. The next agent asks for the whole answer again, and compares it with the bytes that the client
  has. This costs 0.6 ms of CPU time for each MiB, and the client waits until the backend has sent the delivered part again.

Without both, a download that is under way ends with an alert, never with a wrong byte. An orderly stop and the death of RAgent need neither.
[promises.md](../../doc/promises.md) has the details. "downloads of 2 s" are from a backend with ranges and strong ETags. The other
downloads are from a backend without both; there **CSSL-SF** has no `repeat_downloads`, and **CSSL-SF repeating** has
`repeat_downloads: %s`.""" % REPEATED

COLUMNS = """\
*survived*: connections that were still the same ones at the end. *cut*: answers that ended in the middle. *unanswered*: requests
that got no byte of an answer, or the status of a failure; a client has to repeat them, where that is allowed. *refused*: attempts
at another connection that failed. *wrong*: answers of another length than asked for, or no HTTP. *longest*: from a request to the end of its answer, of those that got one."""


def markdown(report):
    lines = ["# What clients notice", "", INTRODUCTION, "", *machine_lines(report["machine"]), terms_line(LINKS[MEMORY]),
             f"- rounds: {report['rounds']}, medians"]
    lines += ["", COLUMNS]
    for event, what in EVENTS.items():
        lines += ["", f"## {event}", "", f"![Connections that survived]({_figure_name(what.file)})"]
        for work in what.loads():
            lines += ["", f"### {event}: {work.name}", "",
                      "| system | connections | survived | cut | unanswered | refused | wrong | answers | p50 ms | longest ms |",
                      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
            lines += [_row(_of(report["runs"], kind.name, event, work.name)) for kind in what.kinds_of(work)]
    return "\n".join(lines) + "\n"


def _figure_name(name):
    return f"chaos-{name}.svg"


def _survived_by_load(report, event, what):
    """{load: {system: %, or None where it is not measured}}, with the same systems for each load."""
    kinds = dict.fromkeys(kind for work in what.loads() for kind in what.kinds_of(work))
    return {work.short: {kind.name: 100 * survived(_of(report["runs"], kind.name, event, work.name))
                         if kind in what.kinds_of(work) else None for kind in kinds} for work in what.loads()}


def figures(report):
    """{file name: SVG}"""
    return {_figure_name(what.file): plot.bars(event, "% of the connections survived", _survived_by_load(report, event, what),
                                               "{:.0f} %".format, 100) for event, what in EVENTS.items()}


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    facts, runs = machine.facts(ROOT), []
    works = [(event, work, kind) for event, what in EVENTS.items() for work in what.loads() for kind in what.kinds_of(work)]
    options.course.plan(options.rounds * len(works))
    for number in range(options.rounds):
        for event, work, kind in works:
            folder = pathlib.Path(options.folder) / str(len(runs))
            runs.append({"round": number, **measure(kind, event, work, folder, options.quick)})
            options.course.done(f"{event}, {work.name}, {kind.name}: {runs[-1]['lost']} lost", runs=runs)
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "runs": runs}
    save(options, report, markdown, figures)
