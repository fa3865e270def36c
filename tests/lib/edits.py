"""Changes to the cluster.yaml that ./cssl up writes, for Cluster(edit=...):

    start_cluster(edit=edits(below("sf", "proxy_protocol: on"), tls("tickets: 2"), at_end("limits: { connections: 3 }")))
"""

import re

from bench.experiments.ports import free_ports


def edits(*changes):
    """One edit that makes all of these, in order. Each of them must change something."""
    def apply(text):
        for change in changes:
            before, text = text, change(text)
            assert text != before, f"an edit changes nothing in:\n{text}"
        return text
    return apply


def below(name, *lines):
    """Keys of the listener, agent or RAgent of that name."""
    return _behind(f"  - name: {name}\n", "    ", lines)


def tls(*lines):
    """Keys under `tls` of every listener."""
    return _behind("    tls:\n", "      ", lines)


def alpn(protocol, service, backend):
    """Every listener offers this protocol first."""
    return _behind("    alpn:\n", "      ", [f"- {{ protocol: {protocol}, service: {service}, backend: {backend} }}"])


def backend(name, address, *keys):
    return _behind("backends:\n", "  ", ["- { " + ", ".join([f"name: {name}", f'address: "{address}"', *keys]) + " }"])


def also_listen(name, address):
    """A second address of a listener."""
    return lambda text: re.sub(rf"(  - name: {name}\n    listen: \[)", rf'\g<1>"{address}", ', text)


def at_end(*lines):
    """Further top-level keys; or listeners, as those come last."""
    return lambda text: text + "".join(line + "\n" for line in lines)


def nobody_moves(text):
    """Connections stay at the agent where a test puts them. Without this they move to the agent of their client's address when
    agents come up."""
    return at_end("moves: { rebalances_per_second: off }")(text)


def parks_long(text):
    """A handshake waits for its session for as long as a busy machine may delay the agent that has it. For tests that count
    sessions that never come."""
    return _behind("broadcast:\n", "  ", ["park: 5s"])(text)


def instead(old, new):
    """Replaces a text everywhere."""
    return lambda text: text.replace(old, new)


def over_tcp(text):
    """Like between hosts: links, and messages between agents, go over TCP."""
    for port in free_ports(len(re.findall(r"link: unix:", text))):
        text = re.sub(r"link: unix:\S+", f"link: 127.0.0.1:{port}", text, count=1)
    return re.sub(r"    peer_socket: .*\n", "", text)


def _behind(anchor, indent, lines):
    return lambda text: text.replace(anchor, anchor + "".join(f"{indent}{line}\n" for line in lines))
