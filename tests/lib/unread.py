"""Clients that do not read."""

import socket

from tests.lib.build import patience


def unread(where):
    """A socket that takes as few bytes as possible while it is not read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(patience(20))
    sock.connect(where)
    return sock
