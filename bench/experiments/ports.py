"""Ports on which no process listens."""

import pathlib
import subprocess

FREE_PORTS = pathlib.Path(__file__).resolve().parents[2] / "front" / "free_ports"
AT_ONCE = 8

_given = []  # nobody else gets these, so they can wait for their use


def free_ports(count):
    """The way in which `./cssl up` finds its own."""
    if len(_given) < count:
        done = subprocess.run([FREE_PORTS, str(max(count, AT_ONCE))], text=True, stdout=subprocess.PIPE, check=True)
        _given[:] = map(int, done.stdout.split())
    ports = _given[:count]
    del _given[:count]
    return ports
