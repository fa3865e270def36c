"""`cssl-bench https` as a test runs it.

    result = load(cluster.sf, "--connections", "90", "--mix", "1:2")
    result.counts["full"], result.latency["connect"]["p50_us"], result.status
"""

import json
import signal
import subprocess

from tests.lib.build import patience, tool


def command(to, *options):
    """`to`: a (host, port) or a list of them."""
    targets = [to] if isinstance(to, tuple) else to
    return [tool("bench/cssl-bench"), "https", *(word for host, port in targets for word in ("--connect", f"{host}:{port}")),
            "--timeout-ms", str(patience(20) * 1000), *options]


class Result:
    def __init__(self, status, output, complaints):
        assert status in (0, 1), f"cssl-bench https ended with {status}:\n{complaints}"
        assert "Sanitizer" not in complaints and "runtime error" not in complaints, complaints
        self.status, self.complaints = status, complaints
        for key, value in json.loads(output.splitlines()[-1]).items():
            setattr(self, key, value)


def load(to, *options):
    """Runs it to its end."""
    done = subprocess.run(command(to, *options, "--json"), text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=patience(60))
    return Result(done.returncode, done.stdout, done.stderr)


class Held:
    """A load in the background: `first_line()` waits for its first line, `stop()` ends it and returns its result."""

    def __init__(self, to, *options):
        self._process = subprocess.Popen(command(to, *options, "--json"), text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)

    def first_line(self):
        return self._process.stdout.readline()

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        return self.finish()

    def finish(self):
        output, complaints = self._process.communicate(timeout=patience(60))
        return Result(self._process.returncode, output, complaints)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
