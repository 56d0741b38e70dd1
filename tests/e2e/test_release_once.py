"""gatepost quarantine release: a record is published once, and a marker in quarantine says that it was released."""

import signal
import subprocess
import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

import waiting
from audit_side import audit
from daemon import ENVIRONMENT
from quarantine_side import Quarantine
from signing import Delivery, event_body

KIND = "order.created"


@pytest.fixture
def quarantine(installation):
    config = installation.config()
    installation.create_topics(config, partitions=1)
    return Quarantine(installation, installation.start(config))


def map_kind(quarantine):
    """Give the kind a topic."""
    quarantine.map_kinds(order_created=f"{quarantine.kafka.prefix}.invoice.received")


def released(quarantine, delivery):
    """Have a delivery quarantined and released. Returns its ID in quarantine."""
    id = quarantine.send(delivery)
    map_kind(quarantine)
    assert quarantine.release(id)[0]["outcome"] == "released"
    assert len(quarantine.published(delivery.delivery_id)) == 1
    return id


def assert_released(quarantine, id, delivery):
    assert quarantine.entry(delivery.delivery_id)["released"] is True
    assert id not in [each["id"] for each in quarantine.json("list")]
    assert quarantine.release(id)[0]["outcome"] == "released-before"
    assert len(quarantine.published(delivery.delivery_id)) == 1


def test_release_leaves_a_marker_that_hides_the_record(quarantine):
    delivery = Delivery(event_body(KIND))
    id = released(quarantine, delivery)
    (marker,) = quarantine.markers(delivery.delivery_id)
    assert (marker.key, marker.value, marker.headers) == (delivery.delivery_id.encode(), b"", [("gatepost-released", id.encode())])
    assert f"{marker.partition}-" == id[:id.index("-") + 1], "it is in the partition of the record"
    assert_released(quarantine, id, delivery)
    assert quarantine.run("release", id).stdout.startswith(f"{id} released-before, ")
    shown = quarantine.entry(delivery.delivery_id)["releasedAt"]
    assert f"\nreleased     {shown}\n" in quarantine.run("show", id).stdout
    assert quarantine.run("list").stdout == ""
    tail = quarantine.installation.gatepost("tail", "--from", "beginning", "--until-end", "--quarantine", "--json",
                                            config=quarantine.daemon.config)
    assert tail.stdout.count(f'"topic":"{quarantine.kafka.quarantine}"') == 1, "tail shows no marker"


def test_release_is_known_whatever_became_of_deliveries(quarantine):
    """The marker alone tells it: partitions were added, and retention has deleted the release."""
    delivery, kafka = Delivery(event_body(KIND)), quarantine.kafka
    id = released(quarantine, delivery)
    kafka.admin.create_partitions([NewPartitions(kafka.quarantine, 3)])[kafka.quarantine].result(30)
    waiting.until(lambda: kafka.partitions(kafka.quarantine) == 3, 30, "the partitions")
    end = kafka.ends(kafka.deliveries)[0]
    for future in kafka.admin.delete_records([TopicPartition(kafka.deliveries, 0, end)]).values():
        future.result(30)
    assert_released(quarantine, id, delivery)


def test_release_that_was_killed_before_its_marker_is_published_once(quarantine, plain_build):
    """The record counts as unreleased; the router drops the second release, which leaves the marker."""
    delivery = Delivery(event_body(KIND))
    id = quarantine.send(delivery)
    map_kind(quarantine)
    done = subprocess.run([plain_build / "gatepost", "-c", quarantine.daemon.config.write("gatepost.conf"), "quarantine", "release", id],
                          env=ENVIRONMENT | {"GATEPOST_CRASH_POINT": "release-delivered"}, timeout=60)
    assert done.returncode == -signal.SIGKILL
    quarantine.kafka.wait_until_routed()
    assert (quarantine.markers(delivery.delivery_id), len(quarantine.published(delivery.delivery_id))) == ([], 1)
    assert id in [each["id"] for each in quarantine.json("list")]
    assert quarantine.release(id)[0]["outcome"] == "released"
    assert_released(quarantine, id, delivery)


def test_failed_marker_is_reported(quarantine):
    """quarantine takes no record as large as the marker. deliveries has no control record either way."""
    delivery, kafka = Delivery(event_body(KIND)), quarantine.kafka
    id = quarantine.send(delivery)
    kafka.configure(kafka.quarantine, "max.message.bytes", "40")
    done = quarantine.run("release", id, expect=75)
    assert f"{id} failed: {kafka.quarantine}: " in done.stdout and "max.message.bytes" in done.stdout
    assert kafka.ends(kafka.deliveries)[0] == 2, "one offset for each delivery"


def test_each_record_of_a_delivery_can_be_released(quarantine):
    """It came again after the window, and was quarantined again: each release is an event with an id of its own."""
    kafka, delivery = quarantine.kafka, Delivery(event_body(KIND))
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")  # to use past timestamps
    now_ms = int(time.time() * 1000)
    for days in (30, 0):
        kafka.append([delivery], timestamp_ms=now_ms - days * 24 * 3600 * 1000)
    kafka.wait_until_routed()
    map_kind(quarantine)
    ids = [each["id"] for each in quarantine.list()]
    assert [each["outcome"] for each in quarantine.release("--reason", "unknown-kind")] == ["released"] * 2
    assert {event.header("ce_id") for event in quarantine.published(delivery.delivery_id)} == {
        f"{delivery.delivery_id}.{id}" for id in ids}


def test_audit_expects_what_releases_published(quarantine):
    """The documented way: a kind without a topic was quarantined, got a topic, and was released."""
    for _ in range(3):
        quarantine.send(Delivery(event_body(KIND)))
    map_kind(quarantine)
    assert [each["outcome"] for each in quarantine.release("--reason", "unknown-kind")] == ["released"] * 3
    result = audit(quarantine.installation, config=quarantine.daemon.config)
    assert result.faults == (0, 0, 0)
    # What was quarantined and not released is lost by the present configuration, as before.
    quarantine.send(Delivery(event_body("still.unknown")))
    quarantine.map_kinds(order_created=f"{quarantine.kafka.prefix}.invoice.received",
                         still_unknown=f"{quarantine.kafka.prefix}.invoice.received")
    assert audit(quarantine.installation, config=quarantine.daemon.config, status=65).faults == (1, 0, 1)
