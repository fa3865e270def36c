"""Handshakes that are begun and never ended: many sockets that say a ClientHello and no more."""

import errno
import resource
import select
import socket
import ssl
import time

from tests.lib.build import patience


def client_hello(server_name="localhost"):
    """The bytes of one that an agent answers with its whole flight."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    shaking = context.wrap_bio(received, sent, server_hostname=server_name)
    try:
        shaking.do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("a handshake without a server")


class HalfOpen:
    """`count` of them to `where`, from each of `sources` in turn, at most `per_s` a second. They stay until close(), except those that
    the other side ends: their descriptors are used again, and refused() says how many they were."""

    def __init__(self, where, count, sources=("127.0.0.1",), at_once=200, per_s=None, hello=None):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._hello, self._sockets, self._ended = hello or client_hello(), {}, 0
        self._poll = select.epoll()
        connecting, next_at = {}, 0
        for number in range(count):
            sock = socket.socket()
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: as many ports as there are destinations
            sock.bind((sources[number % len(sources)], 0))
            sock.connect_ex(where)
            self._sockets[sock.fileno()] = sock
            connecting[sock.fileno()] = sock
            if len(connecting) >= at_once or number == count - 1:
                self._say_hello(connecting)
                self.refused()
                # Those who were late do not hurry: many at once would be another flood.
                next_at = max(next_at, time.monotonic()) + (at_once / per_s if per_s else 0)
                time.sleep(max(0, next_at - time.monotonic()))

    def _say_hello(self, connecting):
        with select.epoll() as poll:
            for fileno in connecting:
                poll.register(fileno, select.EPOLLOUT)
            end = time.monotonic() + patience(20)
            while connecting:
                assert time.monotonic() < end, f"{len(connecting)} connections are not accepted"
                for fileno, _ in poll.poll(1):
                    poll.unregister(fileno)
                    sock = connecting.pop(fileno)
                    try:
                        sock.send(self._hello)
                        self._poll.register(fileno, select.EPOLLRDHUP | select.EPOLLHUP)
                    except OSError as error:
                        assert error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ECONNREFUSED), error
                        self._end(fileno)

    def _end(self, fileno):
        self._sockets.pop(fileno).close()
        self._ended += 1

    def refused(self):
        """The number of connections that the other side has ended so far."""
        for fileno, _ in self._poll.poll(0, max(1, len(self._sockets))):
            self._end(fileno)
        return self._ended

    def close(self):
        self._poll.close()
        for sock in self._sockets.values():
            sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
