"""Keep-alive load judged by programs that are not ours: wrk at the SF listener, h2load at the SL listener, GETs of 1 KiB as fast as
they are answered.

    with ForeignLoad(cluster) as load:
        load.wait_connected()
        while load.runs(): cluster.rolling()
        print(load.check())
"""

import re
import subprocess

from tests.lib.build import FULL, patience
from tests.lib.waiting import wait_until

TOOLS = ("wrk", "h2load")
CONNECTIONS = 24  # of each
PATH = "/1k"
SECONDS = 60 if FULL else 6


class ForeignLoad:
    def __init__(self, cluster):
        self._cluster = cluster
        wrk = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "10s", f"https://localhost:{cluster.sf[1]}{PATH}"]
        h2load = ["h2load", "--h1", f"-c{CONNECTIONS}", f"-D{SECONDS}", f"https://localhost:{cluster.sl[1]}{PATH}"]
        self._processes = [subprocess.Popen(command, text=True, stdout=subprocess.PIPE) for command in (wrk, h2load)]

    def _accepted(self):
        return self._cluster.counters()["ragent"]["connections_accepted"]

    def wait_connected(self):
        """Waits until each connection belongs to an agent. No connection is made after that."""
        def connected():
            assert self.runs(), "the load is over before it was connected"
            return sum(c["owner"] is not None for c in self._cluster.connections()) >= len(TOOLS) * CONNECTIONS
        wait_until(connected, patience(10), "every connection of the load")
        self._before = self._accepted()

    def runs(self):
        return all(process.poll() is None for process in self._processes)

    def check(self):
        """Waits for its end, and checks that no request and no connection failed: none was made again. Returns the counts."""
        wrk, h2load = (process.communicate()[0] for process in self._processes)
        assert "Socket errors" not in wrk and "Non-2xx" not in wrk, wrk
        # what is under way when the time is over counts neither way
        assert re.search(r"requests: .* 0 failed, 0 errored, 0 timeout", h2load) and " 0 3xx, 0 4xx, 0 5xx" in h2load, h2load
        assert self._accepted() == self._before
        answers = re.search("[0-9]+ requests in .*", wrk).group(0), re.search("requests: .*", h2load).group(0)
        return "wrk: %s; h2load: %s" % answers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            with process:
                process.kill()
