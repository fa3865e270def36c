"""Reads the PROXY v2 header that an agent puts before a backend connection.

    facts = read_proxy_facts(connection.makefile("rb"))
    facts.source, facts.tlvs[UNIQUE_ID], facts.ssl[SSL_VERSION]
"""

import dataclasses
import socket
import socketserver
import struct
import threading

from tests.lib.smtp_talk import SIGNATURE

ALPN, AUTHORITY, UNIQUE_ID, SSL = 0x01, 0x02, 0x05, 0x20
SUBJECT, ISSUER, SERIAL, FINGERPRINT, JA4 = range(0xe0, 0xe5)
SSL_VERSION, SSL_CN, SSL_CIPHER, SSL_CLIENT_CERT = 0x21, 0x22, 0x23, 0x28
CLIENT_SSL, CLIENT_CERT_CONN, CLIENT_CERT_SESS = 1, 2, 4
TCP4 = 0x11


@dataclasses.dataclass
class ProxyFacts:
    source: tuple  # (host, port) of the client; None if the header names no TCP4 address
    tlvs: dict     # {type: value}
    client: int    # bits CLIENT_*; 0 without an SSL TLV
    verify: int    # 0: the client's certificate is good. None without an SSL TLV
    ssl: dict      # {type inside the SSL TLV: value}


def _tlvs(data):
    found = {}
    while data:
        kind, length = struct.unpack_from("!BH", data)
        assert kind not in found and len(data) >= 3 + length, data
        found[kind], data = data[3:3 + length], data[3 + length:]
    return found


def read_proxy_facts(stream):
    """ValueError: there is none."""
    head = stream.read(16)
    if head[:12] != SIGNATURE or head[12:13] != b"\x21":
        raise ValueError(f"no PROXY v2 header: {head!r}")
    family, length = head[13], struct.unpack("!H", head[14:])[0]
    body, source, addresses = stream.read(length), None, {TCP4: 12, 0x21: 36}[family]
    if family == TCP4:
        source = socket.inet_ntoa(body[:4]), struct.unpack("!H", body[8:10])[0]
    tlvs = _tlvs(body[addresses:])
    client, verify = struct.unpack_from("!BI", tlvs[SSL]) if SSL in tlvs else (0, None)
    return ProxyFacts(source, tlvs, client, verify, _tlvs(tlvs.get(SSL, b"")[5:]))


class _Handler(socketserver.StreamRequestHandler):
    def handle(self):
        facts = read_proxy_facts(self.rfile)
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        self.server.told.append(facts)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


class ToldBackend(socketserver.ThreadingTCPServer):
    """Answers one request on each connection, and keeps the facts of its header in `told`."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told, self.address = [], "127.0.0.1:%d" % self.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
