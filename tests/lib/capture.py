"""Captures the traffic of a cluster on loopback by tcpdump, as somebody on the wire would, and takes its file apart.

    with Capture(tmp_path / "wire", ports) as wire:
        ...
    wire.flows                    {(source port, destination port, "tcp" or "udp"): all bytes of that direction}
    wire.datagrams(1234)          [(source port, payload)] of those sent to that port
"""

import collections
import re
import signal
import socket
import struct
import subprocess

from tests.lib.build import patience
from tests.lib.waiting import wait_until

LAST_WORD = b"the end of the capture"
PCAP_MAGIC = 0xa1b2c3d4
ETHERNET, IPV4, IPV4_TYPE = 14, 4, 0x0800
PROTOCOLS = {6: "tcp", 17: "udp"}
FILE_HEADER, PACKET_HEADER = struct.Struct("<I20x"), struct.Struct("<8xII")


class Capture:
    def __init__(self, path, ports):
        """Captures packets from and to these ports of 127.0.0.1 from now on."""
        self._path, self._report = path, path.with_suffix(".report")
        self._own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._own.bind(("127.0.0.1", 0))
        rule = " or ".join(f"port {port}" for port in [*ports, self._own.getsockname()[1]])
        # -Z: it would give up being root, and could not write here. -B: in KiB; nothing may be missed.
        command = ["tcpdump", "-i", "lo", "-n", "-s", "0", "--immediate-mode", "-U", "-Z", "root", "-B", "65536",
                   "-w", str(path), rule]
        with self._report.open("w") as report:
            self._process = subprocess.Popen(command, stderr=report)
        self.packets = []  # (source port, destination port, protocol, payload)
        wait_until(lambda: "listening on" in self._report.read_text(), patience(10), "tcpdump listens")

    def stop(self):
        """Waits until all that was sent before is in the file."""
        self._own.sendto(LAST_WORD, self._own.getsockname())
        wait_until(lambda: LAST_WORD in self._path.read_bytes(), patience(10), "tcpdump writes")
        self._own.close()
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        report = self._report.read_text()
        assert re.search(r"^0 packets dropped by kernel", report, re.MULTILINE), report
        self.packets = list(_packets(self._path.read_bytes()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def flows(self):
        flows = collections.defaultdict(bytearray)
        for source, destination, protocol, payload in self.packets:
            flows[source, destination, protocol] += payload
        return dict(flows)

    def datagrams(self, to):
        return [(source, payload) for source, destination, protocol, payload in self.packets
                if (protocol, destination) == ("udp", to)]


def _packets(data):
    magic, = FILE_HEADER.unpack_from(data)
    assert magic == PCAP_MAGIC
    at = FILE_HEADER.size
    while at < len(data):
        stored, length = PACKET_HEADER.unpack_from(data, at)
        at += PACKET_HEADER.size
        assert stored == length, "a packet was cut short"
        yield from _payload(data[at:at + stored])
        at += stored


def _payload(frame):
    if struct.unpack_from("!H", frame, 12)[0] != IPV4_TYPE:
        return
    ip = frame[ETHERNET:]
    ip = ip[:struct.unpack_from("!H", ip, 2)[0]] if ip[2:4] != b"\0\0" else ip
    header_len, protocol = (ip[0] & 15) * IPV4, PROTOCOLS.get(ip[9])
    if protocol:
        source, destination = struct.unpack_from("!HH", ip, header_len)
        own = 8 if protocol == "udp" else (ip[header_len + 12] >> 4) * 4
        yield source, destination, protocol, ip[header_len + own:]
