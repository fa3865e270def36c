"""A TLS client that has each of its records in its hands before it sends it.

    tls = CutRecords(sock, context, "localhost")     behind the handshake
    sock.sendall(tls.sealed(b"NOOP\\r\\n")[:7])
    tls.rest()
"""

import ssl


class CutRecords:
    def __init__(self, sock, context, server_name):
        self._sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=server_name)
        self._until(self._tls.do_handshake)

    def _until(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.flush()
                data = self._sock.recv(65536)
                if data:
                    self._in.write(data)
                else:
                    self._in.write_eof()
            finally:
                self.flush()

    def flush(self):
        data = self._out.read()
        if data:
            self._sock.sendall(data)

    def sealed(self, data):
        """The bytes of one record."""
        self._tls.write(data)
        return self._out.read()

    def read(self):
        """Returns the next bytes; empty at the server's end."""
        try:
            return self._until(lambda: self._tls.read(65536))
        except (ssl.SSLError, ConnectionError):
            return b""

    def rest(self):
        """Returns all bytes until the end."""
        return b"".join(iter(self.read, b""))
