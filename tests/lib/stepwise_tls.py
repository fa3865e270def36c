"""A TLS client whose bytes leave when the test wants:

    client = StepwiseTls(cluster.context(), socket.create_connection(cluster.sf))
    client.begin(), client.say(0.5)  # half a hello
    client.shake_hands()  # the rest
"""

import ssl


class StepwiseTls:
    def __init__(self, context, sock):
        self.sock = sock
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._came, self._goes, server_hostname="localhost")
        self._rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def _try(self, call, *args):
        """The result, or None when it wants more bytes. What it says then waits in self._rest."""
        try:
            return call(*args)
        except ssl.SSLWantReadError:
            return None
        finally:
            self._rest += self._goes.read()

    def _read(self):
        data = self.sock.recv(65536)
        assert data, "the connection was closed"
        self._came.write(data)

    def begin(self):
        """Its hello is ready to leave."""
        self._try(self._tls.do_handshake)

    def say(self, share=1.0):
        """This share of what is ready leaves."""
        length = int(share * len(self._rest))
        self.sock.sendall(self._rest[:length])
        self._rest = self._rest[length:]

    def hear_flight(self):
        """Its answer to the server's flight is ready to leave."""
        while not self._rest:
            self._read()
            self._try(self._tls.do_handshake)

    def unread(self):
        """The bytes that came and were not looked at."""
        return self._came.pending

    def hear(self):
        """The next bytes of the server, behind the handshake. None: what came has none for this side."""
        self._read()
        return self._try(self._tls.read, 1 << 16)

    def _is_over(self):
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._rest += self._goes.read()
        return True

    def shake_hands(self):
        while not self._is_over():
            self.say()
            self._read()
        self.say()

    def talk(self, data):
        """The next bytes of the server, after these."""
        self._try(self._tls.write, data)
        self.say()
        while (got := self._try(self._tls.read, 1 << 16)) is None:
            self.say()
            self._read()
        return got

    def ask(self, length=65536):
        """Whether an answer of so many bytes comes."""
        self._try(self._tls.write, b"GET /64k HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.say()
        got = b""
        while len(got.partition(b"\r\n\r\n")[2]) < length:
            part = self._try(self._tls.read, 1 << 16)
            self.say()
            if part is None:
                self._read()
            else:
                got += part
        return got.startswith(b"HTTP/1.1 200") and len(got.partition(b"\r\n\r\n")[2]) == length
