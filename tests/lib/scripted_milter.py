"""A milter that answers what a test wants, and remembers what it was told.

    with ScriptedMilter({"M": b"y550 5.7.1 no\\0"}) as milter:

The keys are the letters of commands (H: HELO, M: MAIL, R: RCPT, T: DATA, L: a field, N: end of header, B: body, E: end of body); a value
is one answer, or a list of them, each a packet's letter and rest; or a function of the command's content; HANG: none at all; CLOSE: the
connection ends. All others are answered by "continue". `flags`: of its options.
"""

import contextlib
import socket
import struct
import threading

HANG, CLOSE, CONTINUE, ACCEPT, REJECT, TEMPFAIL, DISCARD = object(), object(), b"c", b"a", b"r", b"t", b"d"
SKIPS, NO_BODY, LEADING_SPACE = 0x400, 0x10, 0x100000
SILENT_FIELDS = 0x80
QUIET = b"DQA"  # commands without an answer


def packet(content):
    return struct.pack("!I", len(content)) + content


def add(name, value):
    return b"h" + name + b"\0" + value + b"\0"


def insert(at, name, value):
    return b"i" + struct.pack("!I", at) + name + b"\0" + value + b"\0"


def change(nth, name, value):
    return b"m" + struct.pack("!I", nth) + name + b"\0" + value + b"\0"


class ScriptedMilter:
    def __init__(self, script=None, flags=0, version=6, actions=0x31):
        self.script = script or {}
        self.options = struct.pack("!III", version, actions, flags)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = self._server.getsockname()
        self._connections = []
        self.heard = []  # (number of the connection, letter, content), without macros
        self.macros = []

    @property
    def connections(self):
        return len(self._connections)

    def tell(self, content):
        """Through its newest connection."""
        self._connections[-1].sendall(packet(content))

    def letters(self, number=0):
        return "".join(letter for n, letter, _ in self.heard if n == number)

    def contents(self, letter):
        return [content for _, l, content in self.heard if l == letter]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection, len(self._connections) - 1), daemon=True).start()

    def _answer(self, connection, letter, content):
        answer = b"O" + self.options if letter == "O" and "O" not in self.script else self.script.get(letter, CONTINUE)
        if callable(answer):
            answer = answer(content)
        if answer is CLOSE:
            connection.shutdown(socket.SHUT_RDWR)
        elif answer is not HANG:
            for one in answer if isinstance(answer, list) else [answer]:
                connection.sendall(packet(one))

    def _serve(self, connection, number):
        silent = QUIET + (b"L" if struct.unpack("!III", self.options)[2] & SILENT_FIELDS else b"")
        with contextlib.suppress(OSError, ValueError):
            stream = connection.makefile("rb")
            while head := stream.read(4):
                content = stream.read(struct.unpack("!I", head)[0])
                letter, content = content[:1], content[1:]
                if letter == b"D":
                    self.macros.append(content)
                    continue
                self.heard.append((number, letter.decode(), content))
                if letter not in silent:
                    self._answer(connection, letter.decode(), content)
