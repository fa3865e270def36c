"""Runs cssl-bench https. A run in which anything went wrong is no measurement and raises."""

import contextlib
import json
import subprocess

from bench.experiments.cluster import build_folder

BENCH = "bench/cssl-bench"


class LoadError(Exception):
    pass


def _command(port, options):
    return [str(build_folder() / BENCH), "https", "--connect", f"127.0.0.1:{port}", "--json", *map(str, options)]


def run(port, *options, may_fail=False):
    """Its result."""
    done = subprocess.run(_command(port, options), text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in ((0, 1) if may_fail else (0,)):
        raise LoadError(f"{' '.join(map(str, options))}: status {done.returncode}: {done.stderr}{done.stdout[:600]}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def held(port, clients, *options):
    """So many connections that have had their answers and are idle."""
    process = subprocess.Popen(_command(port, ("--clients", clients, "--hold", *options)), text=True, stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        if line != f"holding {clients} connections\n":
            raise LoadError(f"{clients} connections were not held: {line}{process.stdout.read()[:600]}")
        yield
    finally:
        process.terminate()
        process.communicate()
