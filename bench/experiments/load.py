"""Runs cssl-bench https. If anything went wrong in a run, it is not a measurement, and this raises."""

import contextlib
import json
import subprocess

from bench.experiments.cluster import build_folder

BENCH = "bench/cssl-bench"


class LoadError(Exception):
    pass


def _command(port, options, host="127.0.0.1", prefix=()):
    return [*prefix, str(build_folder() / BENCH), "https", "--connect", f"{host}:{port}", "--json", *map(str, options)]


def run(port, *options, **where):
    """Its result. `where`: host, and the prefix of a command that runs in the clients' network namespace."""
    done = subprocess.run(_command(port, options, **where), text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise LoadError(f"{' '.join(map(str, options))}: status {done.returncode}: {done.stderr}{done.stdout[:600]}")
    return json.loads(done.stdout)


def connections_at(port):
    """How many connections are open at a local port, as the kernel counts them."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = (line.split() for line in list(f)[1:])
    return sum(row[3] == "01" and int(row[1].split(":")[1], 16) == port for row in rows)


class Running:
    """A load in the background. Errors in it do not raise; they are a part of its result."""

    def __init__(self, port, *options, **where):
        self._process = subprocess.Popen(_command(port, options, **where), text=True, stdout=subprocess.PIPE)

    def result(self):
        """Ends it, and returns its result so far."""
        self._process.terminate()
        output = self._process.communicate()[0]
        if self._process.returncode not in (0, 1):
            raise LoadError(f"status {self._process.returncode}")
        return json.loads(output)

    def end(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.communicate()


@contextlib.contextmanager
def held(port, clients, *options, **where):
    """So many connections that have got their answers and are idle."""
    process = subprocess.Popen(_command(port, ("--clients", clients, "--hold", *options), **where), text=True,
                               stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        if line != f"holding {clients} connections\n":
            raise LoadError(f"{clients} connections were not held: {line}{process.stdout.read()[:600]}")
        yield
    finally:
        process.terminate()
        process.communicate()
