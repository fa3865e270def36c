"""Asks a running smtpproxy through its control API."""

import json
import socket

from tests.lib.build import patience


def ask(proxy, path):
    """The answer as it came, without its head."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(patience(10))
        client.connect(str(proxy.control))
        client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        return client.makefile("rb").read().partition(b"\r\n\r\n")[2]


def counters(proxy):
    return json.loads(ask(proxy, "/v1/status"))["counters"]


def states(proxy):
    """The states of all sessions."""
    return [session["state"] for session in json.loads(ask(proxy, "/v1/sessions"))["sessions"]]


def destination(proxy):
    """The description of the only destination."""
    one, = json.loads(ask(proxy, "/v1/destinations"))["destinations"]
    return one
