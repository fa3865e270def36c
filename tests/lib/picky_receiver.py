"""A mail server whose replies a test decides: `replies` maps a command line to a reply (None: 250), and `mails` has what came."""

import contextlib
import socket
import threading


class PickyReceiver:
    def __init__(self, replies=lambda line: None, port=0, host="127.0.0.1", banner="220 picky.example ESMTP"):
        self.replies, self.banner = replies, banner
        self.mails = []  # (sender, recipients, body)
        self.listener = socket.create_server((host, port))
        self.address = self.listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("rb") as lines, contextlib.suppress(OSError):
            client.sendall(self.banner.encode() + b"\r\n")
            sender, recipients = "", []
            for raw in iter(lines.readline, b""):
                line = raw.decode().rstrip("\r\n")
                verb = line[:4].upper()
                reply = self.replies(line) or "250 2.0.0 Ok"
                if verb == "MAIL" and reply[0] == "2":
                    sender, recipients = line[11:].partition(">")[0], []
                elif verb == "RCPT" and reply[0] == "2":
                    recipients.append(line[9:].partition(">")[0])
                elif verb == "DATA" and reply[0] == "2":
                    client.sendall(b"354 go ahead\r\n")
                    body = self._content(lines)
                    reply = self.replies(".") or "250 2.0.0 Ok"
                    if reply[0] == "2":
                        self.mails.append((sender, recipients, body))
                client.sendall(reply.encode() + b"\r\n")
                if verb == "QUIT":
                    return

    @staticmethod
    def _content(lines):
        body = b""
        for raw in iter(lines.readline, b""):
            if raw == b".\r\n":
                return body.decode()
            body += raw[1:] if raw.startswith(b".") else raw
        raise ConnectionError("cut inside the content")
