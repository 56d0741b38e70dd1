"""Kafka acknowledges later than ack_timeout, and the receiver has a spool."""

import pytest

from cluster import Cluster
from installation import Installation
from proxy import Proxies
from tally import assert_exactly_once
from test_spool import configure, deliver, wait_until_published


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
