"""Ports that nobody listens on."""

import contextlib
import random
import socket


def free_ports(count, host="127.0.0.1"):
    """Below those that the kernel gives to outgoing connections, and those that `./cssl up` takes."""
    found = []
    while len(found) < count:
        port = random.randrange(10000, 15000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind((host, port))
            if port not in found:
                found.append(port)
    return found
