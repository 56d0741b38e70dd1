"""The disk of a state directory fails, is read-only or is slow: routing goes on, and nothing is published twice."""

import random

import pytest

import preload
import waiting
from tally import assert_exactly_once
from test_state import N, SECONDS, by_id, configure, files, new_deliveries, stop_when_routed

PARTITIONS = 2


@pytest.fixture
def routed(installation, plain_build):
    """Deliveries that a router with a state directory has routed and that are in its files. Returns them."""
    installation.build = plain_build
    installation.create_topics(partitions=PARTITIONS)
    deliveries = new_deliveries(N)
    installation.kafka.append(deliveries)
    stop_when_routed(installation, configure(installation))
    assert len(files(installation)) >= PARTITIONS
    return deliveries


def launch(installation, **variables):
    """Start a router with fail_state.c."""
    daemon = installation.daemon(configure(installation))
    daemon.environment.update({"LD_PRELOAD": str(preload.build("fail_state", installation.directory))} | variables)
    daemon.launch()
    return daemon


@pytest.mark.parametrize("per_thousand", [50, 500, 1000])
def test_calls_that_fail(installation, routed, per_thousand):
    deliveries, log = routed, ""
    for i in range(4):
        daemon = launch(installation, FAIL_STATE=str(per_thousand))
        new = new_deliveries(200)
        installation.kafka.append(new + random.sample(deliveries, 500))
        deliveries = deliveries + new
        installation.kafka.wait_until_routed()
        if i % 2 == 0:
            daemon.stop()
        else:
            daemon.kill()
        installation.kafka.remove_member(daemon.name)
        log += daemon.log
    installation.kafka.append(deliveries)
    stop_when_routed(installation, configure(installation))
    assert_exactly_once(installation.kafka, by_id(deliveries))
    assert "cannot be written" in log or "is not used" in log, log


def test_damaged_file_on_a_read_only_disk(installation, routed):
    """File systems become read-only when a disk fails: what is damaged is not deleted, and not used again."""
    for each in files(installation):
        content = bytearray(each.read_bytes())
        for at in range(512 + 20, 512 + 512 * 100, 512):
            content[at] ^= 4
        each.write_bytes(content)
    daemon = launch(installation, READ_ONLY_STATE="1")
    more = new_deliveries(100)
    installation.kafka.append(routed + more)
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, by_id(routed + more))
    assert daemon.log.count("the state was read") == PARTITIONS
    assert "the state of a partition is not used and cannot be deleted" in daemon.log


@pytest.mark.slow
def test_router_that_reads_files_slowly_is_not_stuck(installation, routed):
    """No watchdog ends it: it would begin again."""
    daemon = launch(installation, SLOW_STATE="6")  # for each of three reads of each file
    waiting.until(lambda: daemon.log.count("the state was read") == PARTITIONS, 3 * SECONDS, lambda: daemon.log)
    installation.kafka.append(routed)
    installation.kafka.wait_until_routed()
    assert "stalled" not in daemon.log
    assert_exactly_once(installation.kafka, by_id(routed))
