"""A room of the mail queue: two Redis servers, and the gateways of one test."""

from tests.lib.build import patience, scaled
from tests.lib.mail_queue import Gateway, Path, Redis
from tests.lib.processes import wake
from tests.lib.waiting import wait_until

BURST = scaled(2000, 200)


class Room:
    def __init__(self, folder):
        self.folder = folder
        self.servers, self.gateways, self.paths = [], [], []

    def redis(self, *options):
        for name in "ab":
            self.servers.append(Redis(self.folder, name, *options))
        return self.servers

    def gateway(self, backups=None, **options):
        backups = backups or [[s.socket] for s in self.servers]
        self.gateways.append(Gateway(self.folder, backups, f"gateway{len(self.gateways)}", **options))
        return self.gateways[-1]

    def path(self, server, rate=None):
        self.paths.append(Path(self.folder, f"path{len(self.paths)}", server.socket, rate))
        return self.paths[-1]

    def close(self):
        for gateway in self.gateways:
            if gateway.process.poll() is None:
                wake(gateway.process.pid)
                gateway.stop()
        for server in self.servers:
            server.kill()
        for path in self.paths:
            path.close()


def started(room, *options, **more):
    a, b = room.redis(*options)
    gateway = room.gateway(**more)
    gateway.in_sync(2)
    return a, b, gateway


def burst(gateway, name, count=BURST):
    """Adds so many messages. Returns their tokens."""
    tokens = [f"{name}-{n}" for n in range(count)]
    for token in tokens:
        gateway.add(token)
    return tokens


def stored(gateway, tokens):
    """Of them, those that were stored, when each has an answer."""
    def answered():
        gateway.has(None)
        outcomes = {e["token"]: e["event"] for e in gateway.events if "token" in e}
        return outcomes if set(tokens) <= outcomes.keys() else None

    outcomes = wait_until(answered, patience(30), f"an answer to all: {gateway.log}")
    return [token for token in tokens if outcomes[token] == "stored"]
