"""A real mail server behind a cluster of three agents; it hands all mail on to smtp-sink.

    before = ClustersBefore(start_cluster)       once: a cluster for servers that know the PROXY protocol, and one for others
    with before.server(Postfix, folder, sink) as behind:
        source(behind.door("submission"), "--starttls", "--ca", behind.cluster.ca)
        behind.peer.log()
"""

import contextlib
import dataclasses

from bench.experiments.ports import free_ports
from tests.lib.cluster import Cluster
from tests.lib.mail_front_door import mail_door
from tests.lib.mail_servers import MailServer


@dataclasses.dataclass
class Behind:
    cluster: Cluster
    peer: MailServer

    def door(self, name):
        return mail_door(self.cluster, name)


class ClustersBefore:
    def __init__(self, start_cluster):
        self._start, self._clusters, self._ports = start_cluster, {}, free_ports(2)

    def _cluster(self, proxied):
        if proxied not in self._clusters:
            self._clusters[proxied] = self._start("--agents", "3", "--smtp-backend", f"127.0.0.1:{self._ports[proxied]}",
                                                  *(["--smtp-proxy-v2"] if proxied else []))
        return self._clusters[proxied]

    @contextlib.contextmanager
    def server(self, kind, folder, sink, **more):
        """Starts a mail server of tests/lib/mail_servers.py. `more` goes to its constructor."""
        proxied = kind.knows_proxy
        cluster = self._cluster(proxied)
        with kind(folder, sink.address, port=self._ports[proxied], proxied=proxied, **more) as peer:
            yield Behind(cluster, peer)
