"""./cssl bench mail_queue: the mail gateway of deliver: queue, by the measures of the paper whose system it is (a gateway on replicated
queues in memory): the queue alone, the gateway beside Postfix as a relay, its reply time at half and at full rate, its recovery and its
memory. In each round all systems work one after the other, in turning order. A run that lost a mail, or had another load than it should,
raises an error."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from bench.experiments import machine, mail_room
from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.load import BENCH, RATE_LEAST, LoadError
from bench.experiments.mail_peers import MailPlace, debian_version, result_of
from bench.experiments.mail_queue_page import markdown
from bench.experiments.mail_queue_systems import Gateway, Postfix, store
from bench.experiments.ports import free_ports
from bench.experiments.report import save

SMALL, LARGE = 1024, 10240  # bytes of a body
SMALL_SHARE = 0.7           # of the mails, as in the paper
SESSIONS = 100
RUN_SECONDS = 900


def _sources(system, mails, *options):
    """The results of two sources at the same time, one for each size, that send so many mails together. An option may be a function of
    the source's share."""
    running = []
    for size, share in ((SMALL, SMALL_SHARE), (LARGE, 1 - SMALL_SHARE)):
        chosen = [o(share) if callable(o) else str(o) for o in options]
        count = round(mails * share)
        command = [str(build_folder() / BENCH), "smtp-source", "--quiet", "--json", "-d", "-s", str(round(SESSIONS * share)), "-l", str(size),
                   "-m", str(count), *chosen, *system.source_options(), f"127.0.0.1:{system.port}"]
        running.append((count, subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)))
    results = []
    for count, process in running:
        output, complaints = process.communicate(timeout=RUN_SECONDS)
        results.append(result_of(system.name, count, process.returncode, output, complaints))
    system.sent += sum(result["counts"]["sent"] for result in results)
    return results


def reply(results):
    """Latencies of the reply to the end of the content."""
    ends = [result["latency"]["end"] for result in results]
    count = sum(end["count"] for end in ends)
    return {"replies": count, "mean_ms": sum(end["mean_us"] * end["count"] for end in ends) / count / 1000,
            "p99_ms": max(end["p99_us"] for end in ends) / 1000}


def measure_rate(system, mails):
    """As fast as it goes: the rate, and the replies at that rate."""
    begin = time.monotonic()
    results = _sources(system, mails)
    accepted = time.monotonic() - begin
    system.wait_empty()
    sent = sum(result["counts"]["sent"] for result in results)
    return ({"system": system.name, "mails": sent, "accepted_per_s": sent / accepted, "delivered_per_s": sent / (time.monotonic() - begin)},
            {"system": system.name, "load": "full", "asked_per_s": None, "per_s": sent / accepted, "is_reached": True, "sent": sent,
             **reply(results)})


def measure_reply(system, rate, seconds):
    """The replies in an open loop of that rate, if it was reached."""
    results = _sources(system, rate * seconds, "--rate", lambda share: f"{rate * share:.1f}", "--connects", 10)
    system.wait_empty()
    sent = sum(result["counts"]["sent"] for result in results)
    per_s = sent / max(result["seconds"] for result in results)
    return {"system": system.name, "load": "half", "asked_per_s": rate, "per_s": per_s, "is_reached": per_s >= RATE_LEAST * rate, "sent": sent,
            **reply(results)}


@contextlib.contextmanager
def systems(folder, memory):
    """The gateway and both kinds of Postfix (where root can make a room); each with a sink of its own, which in the end must have got
    all mails, each once."""
    kinds = {"CSSL": lambda sink: Gateway(folder / "gateway", sink)}
    if mail_room.obstacle() is None:
        kinds |= {name: lambda sink, name=name, where=where: Postfix(name, where / "postfix", sink)
                  for name, where in (("Postfix on disk", folder), ("Postfix in tmpfs", memory))}
    with MailPlace(folder / "sinks") as place, contextlib.ExitStack() as stack:
        found, sinks = [], []
        for name, start in kinds.items():
            port, pids = place.sink(name)
            found.append(start(port))
            sinks.append(pids)
            stack.callback(found[-1].end)
        yield found
        for system, pids in zip(found, sinks):
            place.end_sink(system.name, pids, system.sent)


def measure_beside(folder, memory, options, mails, seconds):
    rates, replies = [], []
    with systems(folder, memory) as found:
        for number in range(options.rounds):
            at = number % len(found)
            for system in found[at:] + found[:at]:
                rate, full = measure_rate(system, mails)
                half = measure_reply(system, rate["accepted_per_s"] / 2, seconds)
                rates.append({"round": number, **rate})
                replies += [{"round": number, **half}, {"round": number, **full}]
            options.course.done("gateways")
    return rates, replies


def measure_queue(folder, rounds, count, course):
    runs = []
    for number in range(rounds):
        for size, window in ((SMALL, 1), (SMALL, 100), (SMALL, 1000), (LARGE, 1000)):
            messages = max(100, count // 10) if window == 1 or size == LARGE else count
            seconds = store(folder / f"queue-{number}-{size}-{window}", messages, size, window)
            runs.append({"round": number, "bytes": size, "window": window, "per_s": messages / seconds})
        course.done("the queue alone")
    return runs


def _fill(gateway, mails):
    gateway.stop_deliveries()
    empty_kb = gateway.resident_kb()
    command = [str(build_folder() / BENCH), "smtp-source", "--quiet", "--json", "-d", "-s", str(SESSIONS), "-m", str(mails), "-l", str(SMALL),
               *gateway.source_options(), f"127.0.0.1:{gateway.port}"]
    done = subprocess.run(command, text=True, check=False, capture_output=True, timeout=RUN_SECONDS)
    result_of("filling the queue", mails, done.returncode, done.stdout, done.stderr)
    return (gateway.resident_kb() - empty_kb) * 1024 / mails


def measure_recovery(folder, rounds, mails, course):
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
        course.done("recovery")
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
    mails, seconds, stored, kept = (400, 1, 2000, 2000) if options.quick else (30000, 10, 500000, 500000)
    options.course.plan(options.rounds, (options.rounds, 8), (options.rounds, 4))
    try:
        where = facts(folder, memory)
        alone = measure_queue(folder, options.rounds, stored, options.course)
        rates, replies = measure_beside(folder, memory, options, mails, seconds)
        recoveries = measure_recovery(folder, options.rounds, kept, options.course)
    finally:
        shutil.rmtree(memory, ignore_errors=True)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "sessions": SESSIONS, "alone": alone, "rates": rates,
              "replies": replies, "recoveries": recoveries}
    save(options, report, markdown(report))
