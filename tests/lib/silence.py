"""Strangers who connect, say nothing and hold the connection, and come again when it is closed.

    with Silence(lambda: socket.create_connection(address), count=64) as strangers:
        ...
        strangers.held, strangers.closed         connections now; how often one was closed
"""

import contextlib
import selectors
import socket
import ssl
import threading
import time

RETRY_S = 0.002  # where nobody listens


class Silence:
    def __init__(self, connect, count, again=True):
        """`connect` makes a connected socket; `again`: a new one for each that was closed."""
        self._connect, self._count, self._again = connect, count, again
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run)
        self._over = False
        self.held = self.closed = 0

    def _open(self):
        with contextlib.suppress(OSError):
            sock = self._connect()
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ)
            self.held += 1
            return True
        return False

    def _drop(self, sock):
        self._selector.unregister(sock)
        sock.close()
        self.held -= 1
        self.closed += 1

    def _run(self):
        while not self._over:
            while self._again and self.held < self._count and not self._over:
                if not self._open():
                    time.sleep(RETRY_S)
                    break
            for key, _ in self._selector.select(RETRY_S):
                self._look(key.fileobj)

    def _look(self, sock):
        try:
            if sock.recv(4096):
                return
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            pass
        self._drop(sock)

    def __enter__(self):
        for _ in range(self._count):
            self._open()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()


def unix(path):
    """For Silence: connects to that UNIX socket."""
    def connect():
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(1)
            sock.connect(str(path))
        except OSError:
            sock.close()
            raise
        return sock
    return connect


def tcp(*address):
    return lambda: socket.create_connection(address, 1)
