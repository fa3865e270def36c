"""Runs cssl-bench https. If anything went wrong in a run, or it did other work than its options ask for, it is not a measurement, and
this raises."""

import contextlib
import json
import signal
import subprocess
import tempfile

from bench.experiments.cluster import build_folder

BENCH = "bench/cssl-bench"
SHORT_S = 2          # a run of less time shows only that everything runs: it may end before all of its clients are there
RATE_LEAST = 0.9     # of an open loop: else it was another load
OFFERED_LATE = 0.05  # of the sessions


class LoadError(Exception):
    pass


def ended(what, status, *said):
    """A LoadError: what ended, how, and what it said last. A process gives its reasons only once."""
    how = f"ended by {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    words = "".join(text.decode(errors="replace") if isinstance(text, bytes) else text for text in said).strip()
    return LoadError(f"{what}: {how}: {words[-2000:] or 'it said nothing'}")


def same(what, done, wanted):
    """LoadError if one of the figures in `done` is not the wanted one. Both are dicts."""
    wrong = {key: done[key] for key in wanted if done[key] != wanted[key]}
    if wrong:
        raise LoadError(f"{what}: other work than asked for: {wrong} instead of {({key: wanted[key] for key in wrong})}")


def _value(options, name):
    """Of an option; the last one counts. None: it is not there."""
    words = list(map(str, options))
    return next((words[i + 1] for i in reversed(range(len(words) - 1)) if words[i] == name), None)


def _wanted(options, counts):
    """What the counts of a load have to be, as far as its options say it exactly."""
    connections, requests = _value(options, "--connections"), int(_value(options, "--requests") or 1)
    wanted = {}
    if connections:
        wanted |= {"connected": int(connections), "handshakes": int(connections)}
    elif requests == 0 and float(_value(options, "--duration")) >= SHORT_S:
        wanted["connected"] = int(_value(options, "--clients"))  # each keeps its connection
    if connections and requests and "--handshake-only" not in options:
        wanted["answers"] = int(connections) * requests
    if _value(options, "--length"):
        wanted["bytes"] = counts["answers"] * int(_value(options, "--length"))
    if not _value(options, "--mix"):
        wanted["resumed"] = 0
    return wanted


def check(options, result):
    """LoadError: the run did not do what its options ask for."""
    what, counts = " ".join(map(str, options)), result["counts"]
    done = {**counts, "handshakes": counts["full"] + counts["resumed"]}
    same(what, done, _wanted(options, counts))
    connections, mix, rate, seconds = (_value(options, name) for name in ("--connections", "--mix", "--rate", "--duration"))
    if mix and connections:
        full, resumed = map(int, mix.split(":"))
        due = int(connections) * resumed / (full + resumed)
        # A client's first connection has no session to offer, and a ticket may come too late.
        if abs(counts["offered"] - due) > int(_value(options, "--clients") or 16) + OFFERED_LATE * due:
            raise LoadError(f"{what}: {counts['offered']} sessions were offered instead of {due:.0f}")
    due = float(rate) * float(seconds) if rate and float(seconds) >= SHORT_S else 0
    if "--handshake-only" not in options and counts["answers"] < max(1, RATE_LEAST * due):
        raise LoadError(f"{what}: {counts['answers']} answers instead of {due:.0f}")


def _command(port, options, host="127.0.0.1", prefix=()):
    return [*prefix, str(build_folder() / BENCH), "https", "--connect", f"{host}:{port}", "--json", *map(str, options)]


def run(port, *options, **where):
    """Its result. `where`: host, and the prefix of a command that runs in the clients' network namespace."""
    done = subprocess.run(_command(port, options, **where), text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise ended(" ".join(map(str, options)), done.returncode, done.stdout[:600], done.stderr)
    result = json.loads(done.stdout)
    check(options, result)
    return result


def connections_at(port):
    """How many connections are open at a local port, as the kernel counts them."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = (line.split() for line in list(f)[1:])
    return sum(row[3] == "01" and int(row[1].split(":")[1], 16) == port for row in rows)


def read(file):
    """All of it."""
    file.seek(0)
    return file.read()


class Running:
    """A load in the background. Errors in it do not raise; they are a part of its result."""

    def __init__(self, port, *options, **where):
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(_command(port, options, **where), text=True, stdout=subprocess.PIPE, stderr=self._said)

    def result(self):
        """Ends it, and returns its result so far."""
        self._process.terminate()
        output = self._process.communicate()[0]
        if self._process.returncode not in (0, 1):
            raise ended("a load in the background", self._process.returncode, read(self._said))
        return json.loads(output)

    def end(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.communicate()


@contextlib.contextmanager
def held(port, clients, *options, **where):
    """So many connections that have got their answers and are idle."""
    said = tempfile.TemporaryFile()
    process = subprocess.Popen(_command(port, ("--clients", clients, "--hold", *options), **where), text=True,
                               stdout=subprocess.PIPE, stderr=said)
    try:
        line = process.stdout.readline()
        if line != f"holding {clients} connections\n":
            process.terminate()
            rest = process.communicate()[0][:600]
            raise ended(f"{clients} connections were not held", process.returncode, line, rest, read(said))
        yield
    finally:
        process.terminate()
        process.communicate()
