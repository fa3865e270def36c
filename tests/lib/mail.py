"""`cssl-bench smtp-source` and `smtp-sink` as a test runs them.

    with Sink("--size", "1000") as sink:
        result = source(sink.address, "-s", "5", "-m", "100")
    result.counts["sent"], sink.counts["right"]
"""

import json
import signal
import subprocess

from tests.lib.build import patience, tool

CLEAN = ("Sanitizer", "runtime error")


class Result:
    def __init__(self, status, output, complaints):
        assert status in (0, 1), f"it ended with {status}:\n{complaints}"
        assert not any(word in complaints for word in CLEAN), complaints
        self.status, self.complaints = status, complaints
        for key, value in json.loads(output.splitlines()[-1]).items():
            setattr(self, key, value)

    def seen(self):
        """The counts that are not 0."""
        return {name: count for name, count in self.counts.items() if count}


def source_command(address, *options):
    return [tool("bench/cssl-bench"), "smtp-source", "--json", "--quiet", "--timeout", str(patience(20)), *options,
            "{}:{}".format(*address)]


def source(address, *options, seconds=60):
    """Runs it to its end, which has to come within so many seconds."""
    done = subprocess.run(source_command(address, *options), text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=patience(seconds))
    return Result(done.returncode, done.stdout, done.stderr)


def merged(*files):
    """`cssl-bench merge --json`: (status, the sum or None, what it complained of)."""
    done = subprocess.run([tool("bench/cssl-bench"), "merge", "--json", *map(str, files)], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=patience(60))
    assert not any(word in done.stderr for word in CLEAN), done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


class Sink:
    """Listens inside `with`; after that, `result` and `counts` have its report."""

    def __init__(self, *options, listen="127.0.0.1:0"):
        self._process = subprocess.Popen([tool("bench/cssl-bench"), "smtp-sink", "--json", *options, listen], text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self._process.stdout.readline()
        assert line.startswith("listening on "), line + self._process.stderr.read()
        host, port = line.split()[-1].rsplit(":", 1)
        self.address = host.strip("[]"), int(port)
        self.pid = self._process.pid
        self.result = None

    @property
    def counts(self):
        return self.result.counts

    def wait(self):
        """Waits for its end by itself (--mails)."""
        output, complaints = self._process.communicate(timeout=patience(30))
        self.result = Result(self._process.returncode, output, complaints)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        if self.result is None:
            try:
                self.wait()
            except Exception:
                self._process.kill()
                if kind is None:
                    raise
