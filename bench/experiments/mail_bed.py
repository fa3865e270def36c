"""The machines of the mail experiments: three senders, three receivers, and an aggregator between them which gets all connections
to port 25, as in the paper on Warp (IOTS 2024). They are network namespaces of this machine, so that all share its cores.

The queues of senders and receivers lie in memory. So the aggregator is the only one that may write to a disk.
"""

import contextlib
import pathlib
import subprocess

from bench.experiments.load import LoadError
from bench.experiments.mail_room import obstacle
from bench.experiments.network_space import Space, cable

SENDERS, RECEIVERS = "198.51.100.{}", "203.0.113.{}"
NUMBERS = (1, 2, 3)
CAPTURED = 2525  # the port of the aggregator
SOURCES = tuple(RECEIVERS.format(n) for n in range(101, 107))  # further addresses of the aggregator's machine

# The same rule for every aggregator. smtpproxy asks the kernel where a connection wanted to go.
RULES = """
table inet cssl {
    chain prerouting {
        type nat hook prerouting priority dstnat;
        iifname "inside" tcp dport 25 redirect to :%d
    }
}
""" % CAPTURED


class Bed:
    """Use as a context. Needs root."""

    def __init__(self, folder):
        self.folder, self.memory = pathlib.Path(folder) / "disk", pathlib.Path(folder) / "memory"
        self._stack, self._made = contextlib.ExitStack(), 0

    def __enter__(self):
        if obstacle():
            raise LoadError(obstacle())
        with self._stack:
            self.senders, self.router, self.receivers = (self._stack.enter_context(Space()) for _ in range(3))
            cable(self.router, "inside", self.senders, [SENDERS], NUMBERS)
            cable(self.router, "outside", self.receivers, [RECEIVERS], NUMBERS)
            for address in SOURCES:
                self.router.address(f"{address}/24", "outside")
            with self.router.entered():
                pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            for folder in (self.folder, self.memory):
                folder.mkdir()
                folder.chmod(0o755)
            subprocess.run(["mount", "-t", "tmpfs", "mail", str(self.memory)], check=True)
            self._stack.callback(subprocess.run, ["umount", "--lazy", str(self.memory)], check=True)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def new_folder(self, name, where):
        """Where: `folder`, which is on this machine's disk, or `memory`."""
        self._made += 1
        path = where / f"{name}-{self._made}"
        path.mkdir()
        path.chmod(0o755)
        return path

    def capture(self):
        """From now on, connections of senders to port 25 go to the aggregator."""
        self.router.rules(RULES)

    def let_pass(self):
        """From now on they go to the receivers."""
        self.router.rules("flush ruleset")
