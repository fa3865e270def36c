"""Listeners of service smtp in a cluster of a test: edits of its cluster.yaml (tests/lib/edits.py).

    ports = free_ports(1)
    start_cluster(edit=edits.edits(mail_backend(sink.address), mail_listener("mail", ports[0])))
"""

from tests.lib import edits

HOST = "mx.cluster.example"


def mail_backend(address, *keys):
    return edits.backend("mail", "{}:{}".format(*address), *keys)


def mail_listener(name, port, *keys, policy="require", mode="sf", above=(), protocol=()):
    """`keys` under `smtp`; `above`: keys of the listener; port None: for agents' own listeners only."""
    lines = [f"  - name: {name}", f"    mode: {mode}", "    handshake: round-robin", "    affinity_bound: off", "    service: smtp",
             "    backend: mail", *(f"    {line}" for line in above),
             "    smtp:", f"      starttls: {policy}", f"      hostname: {HOST}", *(f"      {key}" for key in keys),
             "    tls:", "      certificates: [ecdsa, rsa]", *(f"      {key}" for key in protocol)]
    if port:
        lines.insert(1, f"    listen: [127.0.0.1:{port}]")
    return edits.at_end(*lines)


def direct_listener(agent, listener, port, *keys):
    """Adds a direct listener to an agent."""
    def apply(text):
        head, name, rest = text.partition(f"  - name: {agent}\n")
        lines = [f"      - address: 127.0.0.1:{port}", f"        listener: {listener}", *(f"        {key}" for key in keys)]
        return head + name + rest.replace("    direct:\n", "    direct:\n" + "".join(line + "\n" for line in lines), 1)
    return apply
