"""RAgent's control API, for the scripts of ./cssl."""

import json
import socket


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
