"""An HTTP/2 client of a few lines, that says frames as it is told and keeps those that it gets.

    client = H2Client(cluster)                 TLS with ALPN h2, preface and SETTINGS
    client.request(1, "/1k"); client.body(1)   the bytes of an answer that ended with END_STREAM
    client.wait(GOAWAY)                        the next frame of that type that was not looked at yet
    client.end()                               how TLS ended: "close_notify", "alert", or "reset"
"""

import collections
import socket
import ssl
import struct

from tests.lib.build import patience

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STREAM_MAX = 0x7fffffff
WINDOW = 1 << 30

Frame = collections.namedtuple("Frame", "type flags stream payload")


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(index, text):
    """A header field without indexing (RFC 7541 6.2.2), so that it leaves no state; its name is in the static table."""
    return bytes([index, len(text)]) + text.encode()


def goaway_of(got):
    """(last stream, error)"""
    last, error = struct.unpack(">II", got.payload[:8])
    return last & STREAM_MAX, error


class H2Client:
    def __init__(self, cluster, where=None, version=None, greet=True, window=WINDOW, source=None, pongs=True):
        self.tls = cluster.connect(where, cluster.context(version, alpn=("h2",)), source=source)
        self.tls.suppress_ragged_eofs = False  # or an end without close_notify would look like one with it
        assert self.tls.selected_alpn_protocol() == "h2"
        self._buffer = b""
        self.frames = []    # all that came
        self._looked = 0
        self._end = None
        self._window = window
        self._pongs = pongs  # answers PINGs
        if greet:
            self.greet()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tls.close()

    def getsockname(self):
        return self.tls.getsockname()

    # to the backend

    def say(self, *frames):
        self.tls.sendall(b"".join(frames))

    def greet(self):
        """The beginning of a conversation, up to both acknowledgements."""
        self.say(PREFACE, frame(SETTINGS, payload=struct.pack(">HI", 4, self._window)))
        if self._window > 65535:
            self.say(frame(WINDOW_UPDATE, payload=struct.pack(">I", self._window - 65535)))
        while not (self._has(SETTINGS, 0) and self._has(SETTINGS, ACK)):
            assert self._read(), self.frames

    @staticmethod
    def head(stream, path, method="GET", flags=END_HEADERS | END_STREAM, more=b""):
        """The frame of a request's head. @more: further fields of the header block."""
        methods = {"GET": b"\x82", "POST": b"\x83"}
        return frame(HEADERS, flags, stream, methods[method] + b"\x87" + _literal(4, path) + _literal(1, "localhost") + more)

    def request(self, stream, path, method="GET", body=None, flags=None, more=b""):
        if flags is None:
            flags = END_HEADERS | (END_STREAM if body is None else 0)
        self.say(self.head(stream, path, method, flags, more))
        if body:
            self.say(frame(DATA, END_STREAM, stream, body))

    # from the backend

    def _has(self, kind, flags):
        return any(got.type == kind and got.flags & ACK == flags for got in self.frames)

    def _take(self):
        while len(self._buffer) >= 9:
            length = int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) < 9 + length:
                return
            kind, flags, stream = struct.unpack(">BBI", self._buffer[3:9])
            got = Frame(kind, flags, stream & STREAM_MAX, self._buffer[9:9 + length])
            self._buffer = self._buffer[9 + length:]
            self.frames.append(got)
            if kind == SETTINGS and not flags & ACK:
                self.say(frame(SETTINGS, ACK))
            if kind == PING and not flags & ACK and self._pongs:
                self.say(frame(PING, ACK, 0, got.payload))

    def _read(self):
        """1: something came; 0: the connection is over."""
        self.tls.settimeout(patience(20))
        try:
            data = self.tls.recv(65536)
            self._end = None if data else "close_notify"
        except ssl.SSLEOFError:
            data, self._end = b"", "cut"
        except ssl.SSLError as e:
            data, self._end = b"", f"alert {e.reason}"
        except ConnectionResetError:
            data, self._end = b"", "reset"
        self._buffer += data
        self._take()
        return bool(data)

    def wait(self, kind, ack=0):
        """The next of this type; frames of others are passed over, and stay in `frames`."""
        while True:
            while self._looked < len(self.frames):
                got = self.frames[self._looked]
                self._looked += 1
                if got.type == kind and (kind not in (SETTINGS, PING) or got.flags & ACK == ack):
                    return got
            assert self._read(), f"{self._end}; got {[f[:3] for f in self.frames]}"

    def ended(self, stream):
        """Waits for the orderly end of an answer."""
        while not any(got.stream == stream and got.type in (DATA, HEADERS) and got.flags & END_STREAM for got in self.frames):
            assert self._read(), f"{self._end}; got {[f[:3] for f in self.frames]}"

    def body(self, stream):
        self.ended(stream)
        return self.so_far(stream)

    def so_far(self, stream):
        return b"".join(got.payload for got in self.frames if got.stream == stream and got.type == DATA)

    def get(self, stream, path):
        self.request(stream, path)
        return self.body(stream)

    def end(self):
        """Reads to the end of the connection."""
        while self._end is None:
            self._read()
        return self._end

    def reset(self):
        self.tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.tls.close()
