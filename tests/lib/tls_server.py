"""A TLS server of a few lines, for what no good server does.

    def cut(connection, path):
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\nhalf")
        return False                                   the connection ends; True: it goes on

    with TlsServer(cut) as server:
        load(server.address, ...)

`handshakes` has a dict of facts for each connection.
"""

import contextlib
import pathlib
import socketserver
import ssl
import subprocess
import tempfile
import threading

HEAD_END = b"\r\n\r\n"


def plain_answer(body, status="200 OK"):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status.encode(), len(body)) + body


def self_signed(folder):
    """(certificate, key)"""
    certificate, key = pathlib.Path(folder) / "server.pem", pathlib.Path(folder) / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                   check=True, stderr=subprocess.DEVNULL)
    return certificate, key


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with contextlib.suppress(OSError):
            with self.server.context.wrap_socket(self.request, server_side=True) as connection:
                self.server.handshakes.append({"cipher": connection.cipher()[0], "version": connection.version(),
                                               "resumed": connection.session_reused, "source": self.client_address[0],
                                               "alpn": connection.selected_alpn_protocol()})
                while self._one_request(connection):
                    pass

    def _one_request(self, connection):
        head = b""
        while HEAD_END not in head:
            data = connection.recv(65536)
            if not data:
                return False
            head += data
        return self.server.answer(connection, head.split(b" ")[1].decode())


class TlsServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, answer, **context):
        """`context`: attributes of the ssl.SSLContext."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.handshakes, self.names = answer, [], []
        self.address = self.server_address
        self._folder = tempfile.TemporaryDirectory()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*self_signed(self._folder.name))
        self.context.sni_callback = lambda sock, name, context: self.names.append(name)
        for name, value in context.items():
            setattr(self.context, name, value)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join()
        self.server_close()
        self._folder.cleanup()
