"""gatepost doctor, where the group's committed offset does not fit the log of a partition; and how to set the offset of that one only."""

import re
import shlex

import pytest

import tools
import waiting
from audit_side import drop_first
from checkup import EX_UNAVAILABLE, by_sockets, examine, expect, file_of, status_of
from signing import Delivery
from test_partitions import commit_beyond_end, deliveries_of, published, wait_until_published


def without_daemon(config):
    """The configuration of a machine that has no router itself, so that only the offsets say what is routed."""
    config["admin"]["listen"] = "off"
    return config


def reset(installation, partition, how):
    kafka = installation.kafka
    return (f"stop all routers, wait 15 s, then: kafka-consumer-groups.sh --bootstrap-server BROKER --group {kafka.group} "
            f"--topic {kafka.deliveries}:{partition} --reset-offsets {how} --execute")


def test_partition_whose_log_ends_before_its_committed_offset(installation):
    """As of another router, whose broker came back with an empty disk. The committed offset is above all deliveries."""
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    receiver = installation.start(by_sockets(installation, "receiver"))
    config = without_daemon(by_sockets(installation))
    config["receiver"]["listen"] = receiver.config["receiver"]["listen"]
    commit_beyond_end(kafka, 0, 5000)
    checkup = examine(installation, config)
    words = ["partition 0 ends at offset 1 but was routed up to 5000", "not published", "with beyond-end, " + reset(installation, 0, "--to-earliest")]
    expect(checkup, EX_UNAVAILABLE, f"router {kafka.deliveries}: ", *words)
    expect(examine(installation, config, "--no-send"), EX_UNAVAILABLE, f"partitions {kafka.deliveries}: ", *words)
    commit_beyond_end(kafka, 0, kafka.ends(kafka.deliveries)[0])
    checkup = examine(installation, config, "--no-send")
    assert checkup.status == 0 and f"✓ partitions {kafka.deliveries}: 1, and in none a delivery waits without being decided" in checkup.lines


def test_partition_without_a_committed_offset_whose_log_has_lost_its_beginning(installation):
    """A router refuses it, although nothing waits there yet."""
    installation.create_topics(partitions=2)
    kafka = installation.kafka
    config = without_daemon(by_sockets(installation, "router"))
    assert examine(installation, config, "--no-send").status == 0
    kafka.append(deliveries_of(0, 5, 2))
    drop_first(kafka, kafka.deliveries, 5)
    expect(examine(installation, config, "--no-send"), EX_UNAVAILABLE, f"partitions {kafka.deliveries}: ",
           "partition 0 begins at offset 5 and the group has no committed offset in it", reset(installation, 0, "--to-offset OFFSET"))
    commit_beyond_end(kafka, 1, 500)
    expect(examine(installation, config, "--no-send"), EX_UNAVAILABLE, f"partitions {kafka.deliveries}: ",
           "partition 0, one of 2 such partitions, begins at offset 5 and")


@pytest.mark.slow
def test_command_in_the_log_sets_the_offset_of_the_refused_partition_only(installation):
    """What other partitions have published is not published again."""
    config = by_sockets(installation)
    installation.create_topics(config, partitions=2)
    kafka = installation.kafka
    routed, refused = deliveries_of(0, 3, 2), deliveries_of(1, 3, 2)
    kafka.append(routed + refused)
    commit_beyond_end(kafka, 1, 500)
    router = installation.daemon(config).start()
    wait_until_published(kafka, routed)
    waiting.until(lambda: [each["cause"] for each in status_of(router)["partitions"] if each["partition"] == 1] == ["beyond-end"], 60,
                  "the partition to be refused")
    expect(examine(installation, file_of(router)), EX_UNAVAILABLE, "daemon /readyz: not ready: ", reset(installation, 1, "--to-earliest"))
    (command,) = re.findall(r"then: (kafka-consumer-groups\.sh .* --execute);", router.wait_for_log(" ends at offset 3 but was routed up to 500"))
    words = [{"BROKER": installation.bootstrap}.get(word, word) for word in shlex.split(command)]

    def refusal():
        try:
            return tools.run(*words) and None
        except RuntimeError as error:
            return str(error)
    assert "can only be reset if the group" in refusal()
    router.stop()
    waiting.until(lambda: refusal() is None, 90, "the group to be empty")
    assert kafka.committed()[1] == 0
    router.restart().wait_until_ready()
    wait_until_published(kafka, refused)
    assert published(kafka, routed + refused) == [1] * 6
    assert examine(installation, file_of(router)).status == 0
