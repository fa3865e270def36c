"""A `cssl-bench serve` of a test's own."""

import re
import signal
import subprocess
import threading

from tests.lib.build import patience, tool
from tests.lib.reports import check_log


class Backend:
    """Starts when constructed, on a free loopback port unless told otherwise; use as a context."""

    def __init__(self, *options, listen=("127.0.0.1:0",)):
        command = [tool("bench/cssl-bench"), "serve"]
        for address in listen:
            command += ["--listen", address]
        self.process = subprocess.Popen(command + list(options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addresses = []
        for _ in listen:
            line = self.process.stdout.readline()
            match = re.match(r"listening on (\S+)$", line)
            if not match:
                self.process.kill()
                raise RuntimeError(f"serve said {line!r}: {self.process.stderr.read()}")
            self.addresses.append(match.group(1))
        self._log = []
        self._reader = threading.Thread(target=lambda: self._log.extend(self.process.stderr), daemon=True)
        self._reader.start()

    @property
    def port(self):
        return int(self.addresses[0].rsplit(":", 1)[1])

    def rss(self):
        """Resident memory in bytes."""
        status = open(f"/proc/{self.process.pid}/status", encoding="ascii").read()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout=10):
        """Returns the exit status, and checks its log for sanitizer reports."""
        status = self.process.wait(patience(timeout))
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        check_log("backend", "".join(self._log))
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.terminate()
        try:
            status = self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        if kind is None:
            assert status == 0, f"the backend ended with {status}"
