"""Kafka acknowledges late, or the disk hangs, and the receiver has a spool."""

import concurrent.futures
import contextlib
import re
import time

import pytest

import waiting
from cluster import Cluster
from installation import Installation
from preload import FailDisk, HungDisk
from proxy import Proxies
from tally import assert_exactly_once
from test_spool import BACK_SECONDS, configure, deliver, wait_until_published, wait_until_spooling
from test_spool_report import SECONDS, readiness, with_spool


@pytest.fixture
def slow(tmp_path):
    """An installation whose connections to the broker lead through proxies."""
    with Cluster(proxied=True) as cluster, Proxies(cluster) as proxies:
        each = Installation(tmp_path, cluster.proxied_bootstrap)
        each.proxies = proxies
        yield each
        proxies.clear()
        each.clean_up()


def test_spool_is_drained_although_kafka_acknowledges_late(slow):
    """Its records were appended again and again, but never counted as acknowledged."""
    daemon = slow.start(configure(slow, ack_timeout="1s"))
    accepted = deliver(daemon, 2)
    slow.proxies.delay("Produce", 3, times=None)
    accepted |= deliver(daemon, 10)
    wait_until_published(slow)
    assert daemon.metric("gatepost_spool_drained_total") == daemon.metric("gatepost_spool_written_total") > 0
    assert_exactly_once(slow.kafka, accepted)


def test_deliveries_go_to_kafka_although_the_spool_cannot_be_read(own_broker, plain_build, tmp_path):
    """While the disk hangs the drain cannot find out that Kafka is back: a delivery does."""
    installation = Installation(tmp_path, own_broker.bootstrap, plain_build)
    try:
        daemon = installation.daemon(configure(installation, ack_timeout="2s"))
        hung = HungDisk(daemon)
        daemon.start().wait_until_ready()
        accepted = deliver(daemon, 3)
        own_broker.kill(1)
        accepted |= deliver(daemon, 20)
        wait_until_spooling(daemon)
        with hung:
            own_broker.start_node(1)
            waiting.until(lambda: accepted.update(deliver(daemon)) or "deliveries go to Kafka again" in daemon.log, BACK_SECONDS,
                          lambda: daemon.log)
            assert daemon.metric("gatepost_spool_drained_total") == 0
        wait_until_published(installation)
        assert_exactly_once(installation.kafka, accepted)
    finally:
        installation.clean_up()


def test_receiver_is_not_ready_while_kafka_acknowledges_nothing_and_its_spool_fails(slow, plain_build):
    """Kafka is reachable, and the spool has no delivery that would show that it works again."""
    slow.build = plain_build
    config = with_spool(slow, "receiver", ack_timeout="1s")
    slow.create_topics(config)
    daemon = slow.daemon(config)
    daemon.environment.update(FailDisk(config.directory, 1000).environment)
    daemon.start()
    # With a spool it is ready before Kafka has answered.
    waiting.until(lambda: daemon.metric("gatepost_kafka_reachable") == 1, SECONDS, lambda: daemon.log)
    with contextlib.ExitStack() as held:
        held.callback(slow.proxies.hold_request("Produce", times=None).release)
        held.callback(slow.proxies.clear)
        waiting.until(lambda: daemon.post().status == 503 and readiness(daemon)[0] == 503, SECONDS, lambda: readiness(daemon))
        text = readiness(daemon)[1]
        assert "the last append failed" in text and re.search(r"the (spool has failed|disk of the spool is full);", text)
        with concurrent.futures.ThreadPoolExecutor(32) as senders:  # those in the pause after a failure wait for Kafka first
            assert set(senders.map(lambda i: time.sleep(i * 0.1) or daemon.post().status, range(32))) == {503}
        details = [each["detail"] for each in daemon.admin("/status").json["refusals"]]
        assert all(re.match("the (spool has failed|disk of the spool is full)", detail) for detail in details), details
        assert any("Kafka did not acknowledge it" in detail for detail in details), details
        assert daemon.metric("gatepost_spool_since_timestamp_seconds") == 0 and "deliveries go to the spool" not in daemon.log
    waiting.until(lambda: daemon.post().status == 200 and readiness(daemon) == (200, "receiver: ready\n"), SECONDS, lambda: readiness(daemon))
