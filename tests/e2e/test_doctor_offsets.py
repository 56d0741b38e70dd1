"""gatepost doctor, where the group's committed offset does not fit the log of a partition."""

import re
import shlex

import pytest

import tools
import waiting
from test_doctor import EX_UNAVAILABLE, by_sockets, examine, expect, file_of, status_of
from test_partitions import commit_beyond_end, deliveries_of, published, wait_until_published


def reset(installation, partition, how):
    kafka = installation.kafka
    return (f"stop all routers, wait 15 s, then: kafka-consumer-groups.sh --bootstrap-server BROKER --group {kafka.group} "
            f"--topic {kafka.deliveries}:{partition} --reset-offsets {how} --execute")


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
