"""./cssl bench mail_queue: the mail gateway of deliver: queue, by the figures of the paper whose system it is (a gateway on replicated
queues in memory): the queue alone beside memcached (Fig. 4), the gateway beside Postfix as a relay (Fig. 5), its recovery by the size of
blocks (Fig. 6) and as a whole, and its table of copies (Table I). In each round all systems work one after the other, in turning order. A
run that lost a mail, or had another load than it should, raises an error."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from bench.experiments import machine, mail_room
from bench.experiments.cluster import ROOT, build_folder
from bench.experiments.load import BENCH, RATE_LEAST, LoadError, same
from bench.experiments.mail_peers import MailPlace, debian_version, result_of
from bench.experiments.mail_queue_page import figures, markdown
from bench.experiments.mail_queue_systems import (START_SECONDS, STORES_AND_DELETES, Gateway, Postfix, Redis, one_store, read_back,
                                                  store, store_and_delete, wait_for)
from bench.experiments.ports import free_ports
from bench.experiments.report import save

SMALL, LARGE = 1024, 10240  # bytes of a body
SMALL_SHARE = 0.7           # of the mails, as in the paper
SESSIONS = 100
RUN_SECONDS = 900
PAPER_PER_S = 3600          # of the paper's gateway in Fig. 5
SIZES = 410, 1024, 2048, 4096, 10240, 20480  # of Fig. 4
WINDOW = 1000
BLOCKS = 1, 10, 100, 1000   # of Fig. 6
# On 2 cores, with these counts: of a size and system of Fig. 4, a system of Fig. 5, a size of Fig. 6, and the recovery of a gateway.
STEP_S = {"store and delete": 4, "gateways": 45, "blocks": 15, "recovery": 50}


class Counts:
    """How much is done. `stored`: bytes in all of a run of Fig. 4, with at most as many messages as `stored_most`."""

    def __init__(self, is_quick):
        self.stored, self.stored_most = (1 << 20, 1000) if is_quick else (400 << 20, 200000)
        self.mails, self.seconds, self.kept = (400, 1, 2000) if is_quick else (30000, 10, 500000)

    def of_size(self, size):
        return min(self.stored_most, self.stored // size)


def _turned(things, number):
    """In turning order."""
    at = number % len(things)
    return [*things[at:], *things[:at]]


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
    changes, begin = system.changes(), time.monotonic()
    results = _sources(system, mails)
    accepted = time.monotonic() - begin
    system.wait_empty()
    delivered = time.monotonic() - begin
    sent = sum(result["counts"]["sent"] for result in results)
    return ({"system": system.name, "mails": sent, "accepted_per_s": sent / accepted, "delivered_per_s": sent / delivered,
             "changes_per_s": (system.changes() - changes) / delivered},
            {"system": system.name, "load": "full", "asked_per_s": None, "per_s": sent / accepted, "is_reached": True, "sent": sent,
             **reply(results)})


def measure_reply(system, load, rate, seconds):
    """The replies in an open loop of that rate, if it was reached."""
    results = _sources(system, rate * seconds, "--rate", lambda share: f"{rate * share:.1f}", "--connects", 10)
    system.wait_empty()
    sent = sum(result["counts"]["sent"] for result in results)
    per_s = sent / max(result["seconds"] for result in results)
    return {"system": system.name, "load": load, "asked_per_s": rate, "per_s": per_s, "is_reached": per_s >= RATE_LEAST * rate, "sent": sent,
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


def measure_beside(folder, memory, counts, course, rounds):
    """Fig. 5: how many mails, and how soon the replies come, as fast as it goes, at half of that rate, and at that of the paper."""
    rates, replies = [], []
    with systems(folder, memory) as found:
        for number in range(rounds):
            for system in _turned(found, number):
                rate, full = measure_rate(system, counts.mails)
                loads = {"half": rate["accepted_per_s"] / 2}
                if rate["accepted_per_s"] > PAPER_PER_S:
                    loads["the paper's"] = PAPER_PER_S
                rates.append({"round": number, **rate})
                replies += [{"round": number, **run} for run in
                            (full, *(measure_reply(system, load, per_s, counts.seconds) for load, per_s in loads.items()))]
                course.done(f"Fig. 5, {system.name}", rates=rates, replies=replies)
    return rates, replies


def measure_stores(folder, counts, course, rounds):
    """Fig. 4: each message is stored and deleted, without SMTP."""
    runs = []
    for number in range(rounds):
        for size in SIZES:
            for name in _turned(list(STORES_AND_DELETES), number):
                mails = counts.of_size(size)
                seconds = store_and_delete(name, folder / f"store-{number}-{size}-{name}", mails, size, WINDOW)
                runs.append({"round": number, "system": name, "bytes": size, "mails": mails, "seconds": seconds, "per_s": mails / seconds})
                course.done(f"Fig. 4, {name}, {size} bytes", stores=runs)
    return runs


def measure_blocks(folder, counts, course, rounds):
    """Fig. 6: a new process reads the same messages back again and again, in blocks of several sizes, from one server."""
    runs = []
    with one_store(folder / "blocks", Redis) as address:
        store(address, counts.kept, SMALL)
        for number in range(rounds):
            for block in _turned(BLOCKS, number):
                result = read_back(address, counts.kept, block)
                runs.append({"round": number, "block": block, "mails": result["read"], "blocks": result["blocks"],
                             "seconds": result["seconds"]})
                course.done(f"Fig. 6, blocks of {block}", blocks=runs)
    return runs


def _fill(gateway, mails):
    gateway.stop_deliveries()
    empty_kb = gateway.resident_kb()
    command = [str(build_folder() / BENCH), "smtp-source", "--quiet", "--json", "-d", "-s", str(SESSIONS), "-m", str(mails), "-l", str(SMALL),
               *gateway.source_options(), f"127.0.0.1:{gateway.port}"]
    done = subprocess.run(command, text=True, check=False, capture_output=True, timeout=RUN_SECONDS)
    result_of("filling the queue", mails, done.returncode, done.stdout, done.stderr)
    return (gateway.resident_kb() - empty_kb) * 1024 / mails


def _copies(gateway, mails):
    """The paper's table I of a full queue: in each backup are all mails, and the order that stops them."""
    wait_for(lambda: all(sorted(row["paths"]) == ["active", "standby"] for row in gateway.copies()), START_SECONDS, "two paths to each backup")
    copies = gateway.copies()
    for row in copies:
        same("a copy of the queue", row, {"in_sync": True, "answered": mails + 1, "unanswered": 0})
    same("the copies of the queue", {"count": len(copies)}, {"count": 2})
    return copies


def measure_recovery(folder, counts, course, rounds):
    """Deliveries are stopped, so that all mails stay. Then the gateway is killed and reads them back. With the copies of the last round."""
    runs, copies, mails = [], [], counts.kept
    for number in range(rounds):
        gateway = Gateway(folder / f"recovery-{number}", free_ports(1)[0])
        try:
            each = _fill(gateway, mails)
            copies = _copies(gateway, mails)
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
        course.done("recovery of a gateway", recoveries=runs)
    return runs, copies


def facts(folder, memory):
    found = machine.facts(ROOT)
    del found["haproxy"], found["hitch"]
    versions = {name: subprocess.run([name, "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout.split()[at]
                for name, at in (("redis-server", 2), ("memcached", 1))}
    kinds = [subprocess.run(["stat", "-f", "-c", "%T", path], text=True, check=True, stdout=subprocess.PIPE).stdout.strip()
             for path in (folder, memory)]
    postfix = {"postfix": debian_version("postfix")} if mail_room.tools() else {}
    return {**found, **versions, **postfix, "file system of \"on disk\"": kinds[0], "file system of \"in tmpfs\"": kinds[1]}


def _plan(rounds):
    """The steps of all rounds, and the seconds of each."""
    count = {"store and delete": len(SIZES) * len(STORES_AND_DELETES), "gateways": 3 if mail_room.obstacle() is None else 1, "blocks": len(BLOCKS),
             "recovery": 1}
    return [(rounds * n, STEP_S[what]) for what, n in count.items()]


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    folder = pathlib.Path(options.folder)
    memory = pathlib.Path(tempfile.mkdtemp(prefix="cssl-bench-", dir="/dev/shm"))
    memory.chmod(0o755)
    counts, rounds, course = Counts(options.quick), options.rounds, options.course
    options.course.plan(*_plan(rounds))
    try:
        where = facts(folder, memory)
        stored = measure_stores(folder, counts, course, rounds)
        rates, replies = measure_beside(folder, memory, counts, course, rounds)
        blocks = measure_blocks(folder, counts, course, rounds)
        recoveries, copies = measure_recovery(folder, counts, course, rounds)
    finally:
        shutil.rmtree(memory, ignore_errors=True)
    report = {"machine": where, "rounds": rounds, "quick": options.quick, "sessions": SESSIONS, "window": WINDOW, "stores": stored,
              "rates": rates, "replies": replies, "blocks": blocks, "recoveries": recoveries, "copies": copies}
    save(options, report, markdown, lambda found: figures(found, options.name))
