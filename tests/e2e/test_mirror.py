"""A second data centre as described in gatepost-guide(7): deliveries are mirrored by MirrorMaker 2 and routed there."""

import subprocess

import pytest
import tools
from cluster import Cluster

import waiting
from accounts import GUIDE, literals
from installation import Installation
from kafka_side import Kafka
from signing import Delivery

SECONDS = 150  # MirrorMaker creates its own topics first
# Each cluster has a single broker.
SMALL = "".join(f"{name}replication.factor = 1\n" for name in (
    "", "offset-syncs.topic.", "heartbeats.topic.", "checkpoints.topic.", "config.storage.", "offset.storage.", "status.storage."))


@pytest.fixture
def second(installation, tmp_path):
    """An installation with the same prefix on its own Kafka."""
    (tmp_path / "second").mkdir()
    with Cluster() as cluster:
        each = Installation(tmp_path / "second", cluster.bootstrap)
        each.prefix, each.kafka = installation.prefix, Kafka(cluster.bootstrap, installation.prefix)
        yield each
        each.clean_up()


@pytest.fixture
def mirror(installation, second, tmp_path):
    """MirrorMaker 2 with the properties from the guide, not yet started; it is stopped after the test."""
    text = next(block for block in literals(GUIDE.read_text()) if block.startswith("clusters = "))
    for word, value in (("FIRST", installation.bootstrap), ("SECOND", second.bootstrap), ("gatepost", installation.prefix)):
        assert word in text
        text = text.replace(word, value)
    properties, processes = tmp_path / "mirror.properties", []
    properties.write_text(text + SMALL)

    def start():
        with open(tmp_path / "mirror.log", "wb") as log:
            processes.append(subprocess.Popen(tools.command("connect-mirror-maker.sh", properties), cwd=tmp_path,
                                              stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    yield start
    for process in processes:
        process.terminate()
        process.wait(SECONDS)


def content(kafka):
    """Partition, offset and content of the records of deliveries, without their timestamps."""
    return sorted((*record.place, record.key, record.value, record.headers) for record in kafka.read(kafka.deliveries))


@pytest.mark.slow
def test_mirrored_deliveries_are_routed_once_at_the_second_site(installation, second, mirror):
    for each in (installation, second):
        each.create_topics(partitions=3)
    sent = [Delivery() for _ in range(30)]
    installation.kafka.append([*sent, sent[0].signed_again()])
    mirror()
    waiting.until(lambda: sum(second.kafka.ends(second.kafka.deliveries).values()) >= 31, SECONDS, "the copies")
    assert content(second.kafka) == content(installation.kafka)
    second.start(second.config("router"))
    late = [Delivery() for _ in range(5)]
    installation.kafka.append([*late, sent[1].signed_again()])
    waiting.until(lambda: sum(second.kafka.ends(second.kafka.deliveries).values()) >= 37, SECONDS, "the late copies")
    second.kafka.wait_until_routed()
    published = [record.delivery_id for record in second.kafka.read()]
    assert sorted(published) == sorted(delivery.delivery_id for delivery in [*sent, *late])
    assert second.gatepost("topics", "list").returncode == 0
    assert second.gatepost("audit").returncode == 0
