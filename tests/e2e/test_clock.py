"""A daemon whose clock is set while it runs. It uses a preloaded fake clock, which needs the build without sanitizers."""

import pytest

from preload import FakeClock
from signing import Delivery, now
from tally import assert_exactly_once

HOUR = 3600
EX_TEMPFAIL = 75


@pytest.fixture
def daemon(installation, plain_build):
    installation.build = plain_build
    installation.create_topics()
    daemon = installation.daemon()
    daemon.clock = FakeClock(daemon)
    return daemon.start().wait_until_ready()


def accept(daemon, n, ahead=0):
    """Deliver, signed by a service with the daemon's clock. Returns the accepted deliveries, by id."""
    deliveries = [Delivery(timestamp=now() + ahead) for _ in range(n)]
    for delivery in deliveries:
        daemon.accept(delivery)
    return {delivery.delivery_id: delivery for delivery in deliveries}


def test_clock_set_forward_does_not_stall_routing(installation, daemon):
    before = accept(daemon, 10)
    daemon.clock.set(HOUR)
    daemon.wait_for_log("clock set forward")
    after = accept(daemon, 10, ahead=HOUR)
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, before | after)


def test_clock_set_back_stops_the_daemon_and_a_restart_recovers(installation, daemon):
    """librdkafka waits by that clock: it could stall for an hour."""
    before = accept(daemon, 50)
    daemon.clock.set(-HOUR)
    daemon.wait_for_exit(EX_TEMPFAIL)
    assert "clock set back" in daemon.log
    daemon.restart()
    after = accept(daemon, 10, ahead=-HOUR)
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, before | after)
