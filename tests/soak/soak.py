#!/usr/bin/python3
"""./cssl soak; its --help says what it does."""

import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.lib import trouble  # noqa: E402
from tests.lib.build import SANITIZED  # noqa: E402
from tests.lib.cluster import Cluster  # noqa: E402
from tests.lib.edits import at_end  # noqa: E402
from tests.lib.tlsload import Load, check_honest, lost, refused  # noqa: E402
from tests.lib.waiting import wait_until  # noqa: E402
from tests.soak.faults import FAULTS  # noqa: E402
from tests.soak.options import parse  # noqa: E402

MEGABYTE = 1 << 20
HEALS_WITHIN_S = 20
GROWTH_MAX = 0.15          # of memory over the second half of a run
GROWTH_FREE = 8 * MEGABYTE


def start_load(load):
    """Half of each kind by TLS 1.2, half by 1.3."""
    load.add("idle", count=300, run="waits")
    load.ask("idle")
    load.add("get", count=8, every_ms=20, again="lost")
    load.add("big", count=4, path="/64k", every_ms=50, again="lost", key_update_every=100)
    load.add("down", count=10, path=f"/slow?bytes={4 * MEGABYTE}&ms=8000", size=4 * MEGABYTE, again="lost", every_ms=9000)
    load.add("up", count=4, method="POST", path="/sha256", body=2 * MEGABYTE, rate=400000, again="lost")
    load.add("new", count=5, every_ms=200, times=1, again="always")
    load.add("resuming", count=5, every_ms=200, times=1, again="always", resume=1)


def is_possible(fault):
    """What needs a tool needs root, too: it is on the network."""
    return not fault.needs or (os.geteuid() == 0 and shutil.which(fault.needs))


def since(before, now):
    """The losses of a group between two reports."""
    return {what: count - before.get(what, 0) for what, count in now.items() if count > before.get(what, 0)}


class Soak:
    def __init__(self, options):
        self.dice, self.seconds, self.count = random.Random(options.seed), options.fault_seconds, 0
        # The store is full soon, so that memory that grows on is memory lost.
        self.workers = options.workers
        self.cluster = Cluster("--agents", str(options.agents), "--workers", str(options.workers), takeover=True,
                               edit=at_end("store: { size: 2MiB }"),
                               env={"CSSL_TRACEABLE": "1"} if os.geteuid() else {})  # only root may look at the descriptors of others
        self.heard = []          # datagrams of earlier
        self.posts = 0           # groups of clients that post, one for each life of the backend
        self.failures = []
        self.lost = collections.Counter()
        self.samples = collections.defaultdict(list)  # (pid, name): [(seconds, bytes)]
        self.longest_pause_us = 0
        self.deaths = {}         # of RAgent, and what became of connections: counts of the keeper that is there
        self.deaths_before = collections.Counter()  # of the keepers before

    # what faults use

    def victim(self):
        name = self.dice.choice(self.cluster.agents)
        self.load.mark(name)
        return name

    def memory(self):
        return {name: trouble.resident(self.cluster.pid(name)) for name in [*self.cluster.agents, "r1"]}

    @contextlib.contextmanager
    def backend_away(self, number):
        """Kills the backend and starts it again, or stops it and lets it continue. It counts ids in memory, so the posting
        clients are checked before."""
        pid = self.cluster.pid("backend")
        if number == signal.SIGKILL:
            self.end_posts()
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        self.cluster.send_signal("backend", number)
        try:
            yield
        finally:
            if number == signal.SIGSTOP:
                self.cluster.send_signal("backend", signal.SIGCONT)
            else:
                self.cluster.wait_gone("backend")
                trouble.start_backend(self.cluster, command)
                self.begin_posts()

    # clients that post

    def begin_posts(self):
        self.posts += 1
        self.ids = self.folder / f"ids-{self.posts}"
        self.load.add(f"post-{self.posts}", count=4, method="POST", path="/count", id=f"post-{self.posts}", ids=self.ids, body=3000,
                      every_ms=50, again="lost")

    def end_posts(self):
        self.load.stop(f"post-{self.posts}")
        trouble.Executions(self.cluster, self.ids).check()
        self.load.close(f"post-{self.posts}")

    # one fault

    def one(self, fault):
        self.count += 1
        begin, before = time.monotonic(), self.load.report()
        try:
            fault.run(self)
            trouble.wait_consistent(self.cluster, HEALS_WITHIN_S)
            self.load.ask("idle")
            self.wait_served()
            self.note_deaths()
        except (AssertionError, TimeoutError, OSError) as e:
            self.fail(fault, "".join(traceback.format_exception_only(type(e), e)).strip()[:2000])
        self.judge(fault, before, self.load.report())
        self.sample()
        print(f"{begin - self.begin:7.1f} s  {fault.number:2} {fault.name}: {time.monotonic() - begin:.1f} s, {self.cost}", flush=True)

    def note_deaths(self):
        """Another keeper counts anew."""
        status = self.cluster.status()
        now = {**status["deaths"], **status["at_deaths"]}
        if any(now[name] < self.deaths.get(name, 0) for name in ("killed", "crashed", "hung", "went_on")):
            self.deaths_before.update(self.deaths)
        self.deaths = now

    def wait_served(self):
        """Waits until all clients get answers again."""
        before = self.load.report()
        asking = ["get", "big", "new", "resuming", f"post-{self.posts}"]

        def answered():
            now = self.load.report()
            return all(now[name]["answers"] > before[name]["answers"] for name in asking)
        wait_until(answered, HEALS_WITHIN_S, "answers for every group")

    def judge(self, fault, before, now):
        costs, at_deaths = [], 0
        for name in before.keys() & now.keys():
            group = name.split("-")[0]
            allowed = fault.costs.get(group, ())
            try:
                check_honest(now[name])
            except AssertionError:
                if self.honest_before(before[name]):
                    self.fail(fault, f"{name}: a client was lied to or hangs: {now[name]['ends']}{self.notes(before, now, name)}")
            gone = since(lost(before[name]), lost(now[name]))
            told = since(refused(before[name]), refused(now[name]))
            self.lost.update({group: sum(gone.values())})
            at_deaths += sum(gone.values()) if group not in fault.unbounded else 0
            wrong = {what: n for what, n in gone.items() if what not in allowed}
            if wrong:
                self.fail(fault, f"{name}: lost {wrong}{self.notes(before, now, name)}")
            if told and not allowed:
                self.fail(fault, f"{name}: refused {told}")
            if gone or told:
                costs.append(f"{name} {gone} {told or ''}".strip())
            if name in ("get", "big"):  # others wait for what is slow by itself
                self.longest_pause_us = max(self.longest_pause_us, now[name]["pause_us"]["max"])
        self.cost = "; ".join(costs) or "nothing lost"
        if fault.ragents and at_deaths > fault.ragents * self.workers:
            self.fail(fault, f"lost {at_deaths} connections by {fault.ragents} deaths of {self.workers} workers")

    @staticmethod
    def notes(before, now, name):
        """The newest ends of connections, for reports."""
        fresh = now[name]["noted"] - before[name]["noted"]
        return "".join(f"\n    {note}" for note in now[name]["notes"][-min(fresh, 5):])

    @staticmethod
    def honest_before(report):
        try:
            check_honest(report)
            return True
        except AssertionError:
            return False

    def fail(self, fault, why):
        self.failures.append((fault.name, why))
        print(f"FAILED in '{fault.name}': {why}", flush=True)

    # memory and descriptors

    def sample(self):
        for name, size in self.memory().items():
            self.samples[self.cluster.pid(name), name].append((time.monotonic(), size))

    def growths(self):
        """Bytes a minute for each process that lived through half of the run or more, and whether that is too much."""
        for (_, name), points in self.samples.items():
            late = points[len(points) // 2:]
            if len(late) < 6 or late[-1][0] - self.begin < (time.monotonic() - self.begin) / 2:
                continue
            mean_t, mean_m = (sum(p[i] for p in late) / len(late) for i in (0, 1))
            slope = (sum((t - mean_t) * (m - mean_m) for t, m in late) /
                     (sum((t - mean_t) ** 2 for t, _ in late) or 1))
            grown = slope * (late[-1][0] - late[0][0])
            yield name, slope * 60, grown > GROWTH_MAX * mean_m + GROWTH_FREE and not SANITIZED

    def descriptors(self):
        return {name: trouble.descriptors(self.cluster.pid(name)) for name in [*self.cluster.agents, "r1"]}

    # the whole

    def run(self, minutes, only):
        faults = [f for f in FAULTS if (not only or f.number in only) and is_possible(f)]
        deck = []
        self.cluster.start()
        self.begin = time.monotonic()
        try:
            self.at_rest = self.descriptors()
            with tempfile.TemporaryDirectory() as folder, Load(self.cluster) as self.load:
                self.folder = pathlib.Path(folder)
                start_load(self.load)
                self.begin_posts()
                while time.monotonic() < self.begin + minutes * 60 and not self.is_hopeless():
                    deck = deck or self.dice.sample(faults, len(faults))
                    self.one(deck.pop())
                self.end_load()
        finally:
            self.stop()

    def is_hopeless(self):
        return len(self.failures) > 20

    def end_load(self):
        try:
            self.end_posts()
        except AssertionError as e:
            self.failures.append(("executions", str(e)[:1000]))
        for name in self.load.report():
            self.load.stop(name)
        self.totals = self.load.report()
        for name in self.totals:
            self.load.close(name)
        try:
            wait_until(lambda: not self.cluster.connections(), HEALS_WITHIN_S, "no connection left")
            wait_until(lambda: all(n <= self.at_rest[name] + 2 for name, n in self.descriptors().items()), HEALS_WITHIN_S, "descriptors")
        except TimeoutError as e:
            self.failures.append(("end", f"{e}: {self.descriptors()} after {self.at_rest}"))

    def stop(self):
        self.audit = ""
        try:
            self.audit = self.cluster.check_nonces().splitlines()[0]
        except AssertionError as e:
            self.failures.append(("audit", str(e)[:2000]))
        try:
            self.cluster.stop()
        except AssertionError as e:
            self.failures.append(("stop", str(e)[:2000]))

    def sum_up(self):
        print()
        for name, report in self.totals.items():
            clients = report["connected"]
            print(f"{name:9} {report['answers']:8} answers of {report['requests']:8} requests on {clients} connections; "
                  f"lost {sum(lost(report).values())}: {lost(report) or ''} {refused(report) or ''}")
        for name, slope, too_much in self.growths():
            print(f"{name:9} memory {slope / 1024:+.1f} KiB/min")
            if too_much:
                self.failures.append(("memory", f"{name} grows by {slope / 1024:.0f} KiB/min"))
        cores = [str(p) for p in self.cluster.dir.glob("core*")]
        if cores:
            self.failures.append(("core dumps", " ".join(cores)))
        deaths = self.deaths_before + collections.Counter(self.deaths)
        print(f"r1        died: {', '.join(f'{cause} {deaths[cause]} times' for cause in ('killed', 'crashed', 'hung'))}; {deaths['went_on']} "
              f"connections went on, {deaths['began_anew']} began anew, {deaths['reset']} reset; pauses {deaths['pause_us'] / 1000:.0f} ms in all")
        print(f"audit: {self.audit}")
        for where, why in self.failures:
            print(f"FAILED {where}: {why}")
        requests = sum(r["requests"] for r in self.totals.values())
        print(f"soak: {'failed' if self.failures else 'passed'}: {self.count} faults, {requests} requests, lost {dict(self.lost)}, "
              f"longest pause {self.longest_pause_us / 1000:.0f} ms, {len(cores)} core dumps, {len(self.failures)} failures")


def main():
    options = parse()
    print(f"seed {options.seed}", flush=True)
    soak = Soak(options)
    soak.run(options.minutes, options.only)
    soak.sum_up()
    if not soak.failures:
        soak.cluster.remove()
    else:
        print(f"logs and audit are in {soak.cluster.dir}")
    sys.exit(1 if soak.failures else 0)


if __name__ == "__main__":
    main()
