"""A receiver of mail that says what a test wants it to say.

    with ScriptedReceiver({"EHLO bad": "550 no"}) as receiver, Proxy(folder, next_hop=receiver.address):

The keys are beginnings of commands, or "banner", "content" and "chunk"; the longest that fits decides. A value is a reply, or a list of
them: one for each connection, the last one for all further ones; or a tuple: one after the other, whatever the connection. "{gate}" in front of a reply: it waits for open_gate().
A reply that ends with LF goes out as it is; all others, and their lines, end with `end`.
"""

import contextlib
import socket
import threading
import time

from tests.lib.build import patience
from tests.lib.proxy_facts import read_proxy_facts

USUAL = {"banner": "220 scripted ESMTP", "EHLO": "250-scripted\r\n250-PIPELINING\r\n250-CHUNKING\r\n250 8BITMIME", "DATA": "354 go on",
         "content": "250 2.0.0 taken", "chunk": "250 2.0.0 taken", "QUIT": "221 bye", "": "250 2.0.0 ok"}
GATE = "{gate}"


class ScriptedReceiver:
    def __init__(self, script=None, listen=("127.0.0.1", 0), proxied=False, reply_s=0, deaf=False, end="\r\n"):
        """`proxied`: each connection begins with a PROXY v2 header. `reply_s`: a slow receiver, which takes so long for each reply. `deaf`: it
        reads no content before open_gate()."""
        self._script = {**USUAL, **(script or {})}
        self._server = socket.create_server(listen, family=socket.AF_INET6 if ":" in listen[0] else socket.AF_INET)
        self._gate = threading.Event()
        self._connections = []
        self.address = self._server.getsockname()
        self._proxied = proxied
        self._reply_s = reply_s
        self._deaf = deaf
        self._end = end
        self.facts = []  # of the PROXY headers (tests/lib/proxy_facts.py)
        self.heard = []  # (number of the connection, command), in order
        self.contents = []
        self.peers = []  # addresses, one for each connection

    def open_gate(self):
        self._gate.set()

    @property
    def connections(self):
        return len(self._connections)

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.open_gate()
        self._server.shutdown(socket.SHUT_RDWR)  # accept() would hold the port
        self._server.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, peer = self._server.accept()
                self._connections.append(connection)
                self.peers.append(peer[0])
                threading.Thread(target=self._serve, args=(connection, len(self._connections) - 1), daemon=True).start()

    def _say(self, connection, number, what):
        key = max((key for key in self._script if what.startswith(key)), key=len)
        reply = self._script[key]
        if isinstance(reply, list):
            reply = reply[min(number, len(reply) - 1)]
        elif isinstance(reply, tuple):
            self._script[key] = reply[1:] or reply
            reply = reply[0]
        if reply.startswith(GATE):
            assert self._gate.wait(patience(20))
        reply = reply.removeprefix(GATE)
        time.sleep(self._reply_s)
        connection.sendall((reply if reply.endswith("\n") else reply.replace("\r\n", self._end) + self._end).encode())
        return reply

    def _take_content(self, lines):
        content = bytearray()
        for line in lines:
            if line == b".\r\n":
                break
            content += line
        self.contents.append(bytes(content))

    def _serve(self, connection, number):
        with contextlib.suppress(OSError, ValueError):
            lines = connection.makefile("rb")
            if self._proxied:
                self.facts.append(read_proxy_facts(lines))
            self._say(connection, number, "banner")
            for line in lines:
                command = line.decode().strip()
                self.heard.append((number, command))
                if command.startswith("BDAT "):
                    self.contents.append(lines.read(int(command.split()[1])))
                    self._say(connection, number, "chunk")
                elif self._say(connection, number, command).startswith("3"):
                    if self._deaf:
                        self._gate.wait()
                    self._take_content(lines)
                    self._say(connection, number, "content")
                elif command == "QUIT":
                    connection.shutdown(socket.SHUT_RDWR)
