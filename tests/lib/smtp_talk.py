"""An SMTP client that says line by line exactly what a test wants.

    with Talk(address, unique_id=b"abc") as client:
        client.ehlo()
        assert client.say("MAIL FROM:<a@b>") == "250 2.0.0 Ok"
"""

import socket
import ssl
import struct
import weakref

from tests.lib.build import patience

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
UNIQUE_ID = 0x05


def proxy_v2(unique_id=None, source="192.0.2.1", destination=("192.0.2.2", 25)):
    """A PROXY v2 header for TCP over IPv4, with the client's unique id where there is one."""
    body = socket.inet_aton(source) + socket.inet_aton(destination[0]) + struct.pack("!HH", 1000, destination[1])
    if unique_id is not None:
        body += struct.pack("!BH", UNIQUE_ID, len(unique_id)) + unique_id
    return SIGNATURE + b"\x21\x11" + struct.pack("!H", len(body)) + body


_open = weakref.WeakSet()


def close_all(address):
    """Clients of that server that a test has left open. smtpproxy would wait five seconds for each at its end."""
    for talk in [talk for talk in _open if talk.address == address]:
        talk.close()


class Talk:
    def __init__(self, address, header=b"", has_banner=True, **proxied):
        """`proxied`: of proxy_v2(); without them `header` stands in front. `has_banner` False: TLS comes first."""
        self.address = address
        self._socket = socket.create_connection(address, timeout=patience(20))
        _open.add(self)
        self._socket.sendall(proxy_v2(**proxied) if proxied else header)
        self._lines = self._socket.makefile("rb")
        self.banner = self.reply() if has_banner else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        _open.discard(self)
        self._lines.close()
        self._socket.close()

    def reset(self):
        """Ends the connection by a reset, as a client's host does that was lost and is back."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def send(self, data):
        self._socket.sendall(data.encode() if isinstance(data, str) else data)

    def end(self):
        """FIN: nothing more is said."""
        self._socket.shutdown(socket.SHUT_WR)

    def try_to_send(self, data):
        """Without waiting; how many bytes went out. BlockingIOError: none could."""
        limit = self._socket.gettimeout()
        self._socket.settimeout(0)
        try:
            return self._socket.send(data)
        finally:
            self._socket.settimeout(limit)

    def reply(self):
        """The lines of the next reply, parted by line feeds; empty at the end of the connection."""
        lines = []
        while not lines or lines[-1][3:4] == "-":
            line = self._lines.readline().decode()
            if not line:
                break
            lines.append(line.rstrip("\r\n"))
        return "\n".join(lines)

    def say(self, line):
        self.send(line + "\r\n")
        return self.reply()

    def ehlo(self):
        """{keyword: parameters}."""
        words = (line[4:].split(" ", 1) for line in self.say("EHLO client.example").split("\n")[1:])
        return {word[0].upper(): (word[1:] or [""])[0] for word in words}

    def start_tls(self, ca, name="localhost"):
        """The handshake, behind a 220. `ca` verifies the server."""
        self._lines.close()
        self._socket = ssl.create_default_context(cafile=ca).wrap_socket(self._socket, server_hostname=name)
        self._lines = self._socket.makefile("rb")

    def says_no_more(self):
        """The server finds the end of what this client sends."""
        self._socket.shutdown(socket.SHUT_WR)

    def rest(self):
        """The bytes that still come before the server ends the connection."""
        try:
            return self._lines.read()
        except (ConnectionResetError, ssl.SSLError):
            return b""

    def mail(self, parameters="", recipients=("c@d",)):
        """The envelope and DATA; the content is to come."""
        said = [self.say(f"MAIL FROM:<a@b>{parameters}"), *(self.say(f"RCPT TO:<{r}>") for r in recipients), self.say("DATA")]
        assert [s[:1] for s in said] == ["2"] * (len(said) - 1) + ["3"], said

    def is_closed(self):
        """Waits for the server's end."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
