"""./cssl bench mail_queue: the mail gateway of deliver: queue, by the measures of the paper whose system it is (a gateway on replicated
queues in memory): the queue alone, the gateway beside Postfix as a relay, its reply time at half load, its recovery and its memory. In
each round all systems work one after the other, in turning order. A run that lost a mail raises an error."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from bench.experiments import machine, mail_room
from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.load import BENCH, LoadError
from bench.experiments.mail_peers import MailPlace, debian_version
from bench.experiments.mail_queue_page import markdown
from bench.experiments.mail_queue_systems import Gateway, Postfix, Queue, driver
from bench.experiments.ports import free_ports
from bench.experiments.report import save, say

SMALL, LARGE = 1024, 10240  # bytes of a body
SMALL_SHARE = 0.7           # of the mails, as in the paper
SESSIONS = 100
RUN_SECONDS = 900


def _sources(system, mails, *options):
    """The results of two sources at the same time, one for each size; mails None: their options limit them."""
    running = []
    for size, share in ((SMALL, SMALL_SHARE), (LARGE, 1 - SMALL_SHARE)):
        count = ["-m", str(round(mails * share))] if mails else []
        chosen = [o(share) if callable(o) else str(o) for o in options]
        command = [str(build_folder() / BENCH), "smtp-source", "--quiet", "--json", "-d", "-s", str(round(SESSIONS * share)), "-l", str(size),
                   *count, *chosen, *system.source_options(), f"127.0.0.1:{system.port}"]
        running.append(subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    results = []
    for process in running:
        output, complaints = process.communicate(timeout=RUN_SECONDS)
        if process.returncode != 0:
            raise LoadError(f"{system.name}: status {process.returncode}: {complaints}{output[:600]}")
        results.append(json.loads(output))
    return results


def measure_rate(system, mails):
    begin = time.monotonic()
    results = _sources(system, mails)
    accepted = time.monotonic() - begin
    system.wait_empty()
    sent = sum(result["counts"]["sent"] for result in results)
    return {"system": system.name, "mails": sent, "accepted_per_s": sent / accepted, "delivered_per_s": sent / (time.monotonic() - begin)}


def measure_reply(system, rate, seconds):
    """Latencies of the reply to the end of the content, in an open loop of that rate."""
    results = _sources(system, None, "--duration", seconds, "--rate", lambda share: f"{rate * share:.1f}", "--connects", 10)
    system.wait_empty()
    sent = sum(result["counts"]["sent"] for result in results)
    mean_us = sum(result["latency"]["end"]["mean_us"] * result["latency"]["end"]["count"] for result in results) / sent
    return {"system": system.name, "rate": rate, "sent": sent, "mean_ms": mean_us / 1000,
            "p99_ms": max(result["latency"]["end"]["p99_us"] for result in results) / 1000}


@contextlib.contextmanager
def systems(folder, memory):
    """The gateway and both kinds of Postfix (where root can make a room); each with a sink of its own."""
    with MailPlace(folder / "sinks") as place, contextlib.ExitStack() as stack:
        found = [Gateway(folder / "gateway", place.sink("sink-gateway")[0])]
        stack.callback(found[0].end)
        if mail_room.obstacle() is None:
            for name, where in (("Postfix on disk", folder), ("Postfix in tmpfs", memory)):
                found.append(Postfix(name, where / "postfix", place.sink(f"sink-{len(found)}")[0]))
                stack.callback(found[-1].end)
        yield found


def measure_beside(folder, memory, options, mails, seconds):
    rates, replies = [], []
    with systems(folder, memory) as found:
        for number in range(options.rounds):
            at = number % len(found)
            for system in found[at:] + found[:at]:
                run = measure_rate(system, mails)
                rates.append({"round": number, **run})
                replies.append({"round": number, **measure_reply(system, run["accepted_per_s"] / 2, seconds)})
            say(f"round {number + 1} of {options.rounds}: gateways")
    return rates, replies


def measure_queue(folder, rounds, count):
    runs = []
    for number in range(rounds):
        for size, window in ((SMALL, 1), (SMALL, 100), (SMALL, 1000), (LARGE, 1000)):
            queue = Queue(folder / f"queue-{number}-{size}-{window}")
            try:
                messages = max(100, count // 10) if window == 1 or size == LARGE else count
                runs.append({"round": number, "bytes": size, "window": window, "per_s": messages / queue.store(messages, size, window)})
            finally:
                queue.end()
        say(f"round {number + 1} of {rounds}: the queue alone")
    return runs


def _fill(gateway, mails):
    gateway.stop_deliveries()
    empty_kb = gateway.resident_kb()
    command = [str(build_folder() / BENCH), "smtp-source", "--quiet", "--json", "-d", "-s", str(SESSIONS), "-m", str(mails), "-l", str(SMALL),
               *gateway.source_options(), f"127.0.0.1:{gateway.port}"]
    done = subprocess.run(command, text=True, check=False, capture_output=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise LoadError(f"filling the queue: status {done.returncode}: {done.stderr}{done.stdout[:600]}")
    return (gateway.resident_kb() - empty_kb) * 1024 / mails


def measure_recovery(folder, rounds, mails):
    """Deliveries are stopped, so that all mails stay. Then the gateway is killed and reads them back."""
    runs = []
    for number in range(rounds):
        gateway = Gateway(folder / f"recovery-{number}", free_ports(1)[0])
        try:
            each = _fill(gateway, mails)
            gateway.kill()
            begin = time.monotonic()
            gateway.start()
            open_s = time.monotonic() - begin
            found = re.findall(r"queue read back .*messages=(\d+) .*\bms=(\d+)", gateway.log())[-1]
            if int(found[0]) != mails:
                raise LoadError(f"{found[0]} of {mails} messages were read back")
            runs.append({"round": number, "mails": mails, "read_s": int(found[1]) / 1000, "open_s": open_s, "bytes_each": each})
        finally:
            gateway.end()
        say(f"round {number + 1} of {rounds}: recovery")
    return runs


def facts(folder, memory):
    found = machine.facts(ROOT)
    del found["haproxy"], found["hitch"]
    redis = subprocess.run(["redis-server", "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout.split()[2]
    kinds = [subprocess.run(["stat", "-f", "-c", "%T", path], text=True, check=True, stdout=subprocess.PIPE).stdout.strip()
             for path in (folder, memory)]
    postfix = {"postfix": debian_version("postfix")} if mail_room.tools() else {}
    return {**found, "redis": redis, **postfix, "file system of \"on disk\"": kinds[0], "file system of \"in tmpfs\"": kinds[1]}


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick."""
    folder = pathlib.Path(options.folder)
    memory = pathlib.Path(tempfile.mkdtemp(prefix="cssl-bench-", dir="/dev/shm"))
    memory.chmod(0o755)
    mails, seconds, stored, kept = (400, 1, 2000, 2000) if options.quick else (30000, 20, 500000, 500000)
    try:
        where = facts(folder, memory)
        alone = measure_queue(folder, options.rounds, stored) if driver() else []
        rates, replies = measure_beside(folder, memory, options, mails, seconds)
        recoveries = measure_recovery(folder, options.rounds, kept)
    finally:
        shutil.rmtree(memory, ignore_errors=True)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "sessions": SESSIONS, "alone": alone, "rates": rates,
              "replies": replies, "recoveries": recoveries}
    save(options, report, markdown(report))
