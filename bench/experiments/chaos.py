"""./cssl bench chaos: what clients notice when one of two servers is killed, or is to be stopped in order.

Each client keeps its connection for as long as it lasts. So every connection begun beyond the number of clients is one that was
lost; what its client was waiting for then is an answer cut, or a request without an answer.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import sys
import time

from bench.experiments import load, machine
from bench.experiments.cluster import ROOT, Cluster
from bench.experiments.peers import Place

RAMP_S = 0.5
BEFORE_S = 2
AFTER_S = 6
DOWNLOAD = 1 << 20
SOURCES = "127.0.8.1-127.0.8.40"  # so that by affinity both agents have clients
CHECKED = "check inter 100ms fall 1 rise 1"


@dataclasses.dataclass
class Load:
    name: str
    clients: int
    options: tuple


LOADS = [
    Load("idle connections, a request each second", 200, ("--path", "/1k", "--length", 1024, "--think-ms", 1000)),
    Load("requests without pause", 64, ("--path", "/1k", "--length", 1024)),
    Load("downloads of 2 s", 48, ("--path", f"/slow?bytes={DOWNLOAD}&ms=2000", "--length", DOWNLOAD)),
]


class Ours:
    """CSSL-SF: kill an agent, or drain it."""
    name = "CSSL-SF"

    def __init__(self, folder, stack):
        self._place = stack.enter_context(Place(folder / "peers"))
        backend, _ = self._place.serve()
        self._cluster = stack.enter_context(Cluster(folder / "c", (self._place.host, backend)))
        self.port = self._cluster.ports["sf"]

    def kill(self):
        kill(self._cluster.agents["a1"])

    def stop_in_order(self):
        self._cluster.control("/v1/agents/a1/drain", {"timeout_ms": AFTER_S * 1000})


class _Behind:
    """HAProxy in front of two that end TLS, with a health check; they go on to the same kind of backend."""

    def __init__(self, folder, stack):
        self._place = stack.enter_context(Place(folder / "peers"))
        backend, _ = self._place.serve()
        tls = self._place.certificate()
        self._pair = self._make(tls, backend)
        self.port, _ = self._place.haproxy_tcp("front", [port for port, _ in self._pair], options=CHECKED)

    def kill(self):
        kill(self._pair[0][1])

    def stop_in_order(self):
        os.kill(self._pair[0][1][0], self.stop_signal)


class Nginx(_Behind):
    name = "haproxy+nginx"
    stop_signal = signal.SIGQUIT  # its graceful shutdown

    def _make(self, tls, backend):
        return self._place.nginx_pair("web", tls, proxied=backend)


class Hitch(_Behind):
    name = "haproxy+hitch"
    stop_signal = signal.SIGTERM  # it knows no other

    def _make(self, tls, backend):
        return self._place.hitch_pair(tls, backend)


EVENTS = {"kill -9": "kill", "orderly stop": "stop_in_order"}


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
    before, after = (0.3, 3) if is_quick else (BEFORE_S, AFTER_S)
    with contextlib.ExitStack() as stack:
        system = kind(folder, stack)
        running = load.Running(system.port, "--clients", clients, "--requests", 0, "--duration", RAMP_S + before + after,
                               "--ramp", RAMP_S, "--source", SOURCES, *work.options)
        stack.callback(running.end)
        _wait_for_clients(system.port, clients)
        time.sleep(before)
        getattr(system, EVENTS[event])()
        result = running.result()
    counts = result["counts"]
    return {"system": kind.name, "event": event, "load": work.name, "clients": clients, "counts": counts,
            "errors": result["errors"], "lost": counts["connections"] - clients, "latency": result["latency"],
            "failed": counts["cut"] + counts["unanswered"] + counts["timeouts"] + counts["other_status"],
            "wrong": counts["wrong_length"] + counts["wrong_bytes"] + counts["malformed"]}


def _row(rows):
    def median(value):
        return statistics.median(value(r) for r in rows)
    clients = rows[0]["clients"]
    survived = median(lambda r: max(0, clients - r["lost"]))
    return (f"| {rows[0]['system']} | {clients} | **{100 * survived / clients:.0f} %** | {median(lambda r: r['failed']):.0f} | "
            f"{median(lambda r: r['wrong']):.0f} | {median(lambda r: r['counts']['answers']):.0f} | "
            f"{median(lambda r: r['latency']['full']['p50_us']) / 1000:.1f} | "
            f"{median(lambda r: r['latency']['full']['max_us']) / 1000:.0f} |")


def markdown(report):
    lines = ["# What clients notice", "", __doc__.split("\n\n", 1)[1].strip(), ""]
    lines += [f"- {key}: {value}" for key, value in report["machine"].items()]
    for event in EVENTS:
        lines += ["", f"## {event} of one of two"]
        for work in LOADS:
            lines += ["", f"### {work.name}", "",
                      "| system | connections | survived | answers that failed | wrong | answers | p50 ms | longest ms |",
                      "| --- | --- | --- | --- | --- | --- | --- | --- |"]
            for kind in KINDS:
                lines.append(_row([r for r in report["runs"]
                                   if (r["system"], r["event"], r["load"]) == (kind.name, event, work.name)]))
    return "\n".join(lines) + "\n"


KINDS = (Ours, Nginx, Hitch)


def main(options):
    """`options`: folder (for what runs), out, rounds, quick."""
    facts, runs = machine.facts(ROOT), []
    for number in range(options.rounds):
        for event in EVENTS:
            for work in LOADS:
                for kind in KINDS:
                    folder = pathlib.Path(options.folder) / str(len(runs))
                    runs.append({"round": number, **measure(kind, event, work, folder, options.quick)})
                    print(f"bench: round {number + 1} of {options.rounds}: {event}, {work.name}, {kind.name}: "
                          f"{runs[-1]['lost']} lost", file=sys.stderr, flush=True)
    report = {"machine": facts, "rounds": options.rounds, "quick": options.quick, "runs": runs}
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "chaos.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "chaos.md").write_text(markdown(report))
    print(markdown(report))
