"""An SMTP client that a test steers byte by byte: each call sends its bytes as one segment."""

import re
import socket
import ssl

from tests.lib.build import patience


class Client:
    def __init__(self, address, source=None):
        self.sock = socket.create_connection(address, patience(20), (source, 0) if source else None)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, text):
        self.sock.sendall(text if isinstance(text, bytes) else text.encode())

    def _line(self):
        while b"\n" not in self.rest:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError(f"the server ended, behind {self.rest!r}")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line.rstrip(b"\r").decode()

    def reply(self):
        """The next reply: its lines, without their ends."""
        lines = [self._line()]
        while re.match(r"\d{3}-", lines[-1]):
            lines.append(self._line())
        return lines

    def code(self):
        return int(self.reply()[-1][:3])

    def ask(self, command):
        self.send(command + "\r\n")
        return self.reply()

    def greet(self, name="client.example"):
        """Banner and EHLO; the lines of the reply to it."""
        assert self.code() == 220
        lines = self.ask(f"EHLO {name}")
        assert lines[0].startswith("250"), lines
        return lines

    def starttls(self, context, server_name="localhost", session=None):
        """Call it after a greeting. Returns the ssl socket."""
        assert self.ask("STARTTLS")[0].startswith("220 ")
        return self.handshake(context, server_name, session)

    def handshake(self, context, server_name="localhost", session=None):
        assert not self.rest
        self.sock = context.wrap_socket(self.sock, server_hostname=server_name, session=session)
        return self.sock

    def ends(self):
        """Waits until the server ended. Returns "fin" or "reset", and the bytes before it."""
        data = self.rest
        self.rest = b""
        try:
            while more := self.sock.recv(65536):
                data += more
        except (ConnectionResetError, ssl.SSLError):
            return "reset", data
        return "fin", data
