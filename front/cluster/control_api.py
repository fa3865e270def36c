"""RAgent's control API, for the commands of ./cssl."""

import json
import socket

READY = ("ready", "no backend", "draining", "drained")  # with all its links


def ask(path, what):
    """The JSON answer to a GET of `what` at the control socket `path`. OSError, ValueError: there is none."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(path)
        s.sendall(f"GET {what} HTTP/1.1\r\nHost: ragent\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: s.recv(65536), b""))
    head, body = answer.split(b"\r\n\r\n", 1)
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ValueError(head)
    return json.loads(body)


def agents_are_ready(path, names):
    """Whether RAgent says that these agents are ready with all their links, and each of them that it has met every other such one."""
    try:
        agents = ask(path, "/v1/status")["agents"]
        up = {a["name"] for a in agents if a["state"] in READY and a["links_up"] == a["links"]}
        if not set(names) <= up:
            return False
        counters = ask(path, "/v1/counters")["agents"]
        return all(counters[name]["peers_up"] >= len(up) - 1 for name in names)
    except (OSError, ValueError, LookupError, TypeError):
        return False  # RAgent does not answer yet
