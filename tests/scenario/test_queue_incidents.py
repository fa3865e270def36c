"""A mail queue in rare incidents: servers that fall again and again, orders without a complete server, gateways that were replaced."""

import time

import pytest

from tests.lib.build import patience
from tests.lib.queue_room import burst, started, stored
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.tool("redis-server", "redis-cli")


@pytest.mark.parametrize("role", ["standby", "owner"])
def test_a_server_that_restarts_every_few_seconds_does_not_keep_another_gateway_from_taking_over(room, role):
    """It is up for two seconds of three, and takeover_ms is 6.5 s."""
    _, b, gateway = started(room, role="owner")
    tokens = stored(gateway, burst(gateway, "m", 20))
    if role == "standby":
        other = room.gateway(role=role)
        other.until(lambda s: s["state"] == "watching")
    gateway.kill()
    b.kill()
    if role == "owner":
        other = room.gateway(role=role)
    end = time.monotonic() + patience(30)
    while other.stats()["state"] != "active" and time.monotonic() < end:
        b.start()
        time.sleep(2)
        b.kill()
        time.sleep(1)
    assert other.stats()["state"] == "active", other.log.read_text()[-3000:]
    other.in_sync(1)
    assert "queue waits for its former owner" in other.log.read_text()
    assert other.drain() == tokens
