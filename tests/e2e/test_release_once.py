"""gatepost quarantine release: a record is released twice only with --force, even if topics were changed."""

import itertools
import threading
import time

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

import waiting
from audit_side import by_hand, drop_first
from kafka_side import Record, murmur2_partition
from quarantine_side import Quarantine
from signing import Delivery, event_body, unique

EX_DATAERR = 65
KIND = "order.created"


@pytest.fixture
def partitions():
    """The initial number of partitions of the topics."""
    return 1


@pytest.fixture
def quarantine(installation, partitions):
    config = installation.config()
    installation.create_topics(config, partitions=partitions)
    return Quarantine(installation, installation.start(config))


def delivery_for(partition, partitions, body=None):
    """A delivery of a kind without a topic whose delivery-id belongs to this partition."""
    ids = (unique() for _ in itertools.count())
    return Delivery(body or event_body(KIND), delivery_id=next(
        each for each in ids if murmur2_partition(each.encode(), partitions) == partition))


def moving_delivery():
    """A delivery whose delivery-id belongs to partition 1 of two, and to partition 0 of three."""
    return next(each for each in (delivery_for(1, 2) for _ in itertools.count())
                if murmur2_partition(each.delivery_id.encode(), 3) == 0)


def fill(quarantine, partition=0, partitions=1):
    """Append megabytes to a partition of deliveries, so that commands read the other partitions before later records here."""
    for _ in range(60):
        quarantine.daemon.accept(delivery_for(partition, partitions, event_body(text="x" * 100000)))


def recreate(quarantine, topic):
    """Recreate a topic as described in gatepost-guide(7) under DISASTERS."""
    quarantine.daemon.stop()
    quarantine.kafka.delete(topic)
    quarantine.installation.create_topics(quarantine.daemon.config, partitions=1)
    quarantine.daemon.restart()


def add_partitions(quarantine, n):
    """The router restarts under another instance: for some seconds, a returning member gets its former partitions only."""
    kafka = quarantine.kafka
    kafka.admin.create_partitions([NewPartitions(kafka.deliveries, n)])[kafka.deliveries].result(30)
    waiting.until(lambda: kafka.partitions(kafka.deliveries) == n, 30, "the partitions")
    config = quarantine.daemon.config
    quarantine.daemon.stop()
    kafka.remove_member(config["gatepost"]["instance"])
    config["gatepost"]["instance"] += "-again"
    quarantine.daemon = quarantine.installation.start(config)


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


@pytest.mark.slow
@pytest.mark.parametrize("is_empty", [True, False])
def test_release_requires_force_after_deliveries_is_recreated(quarantine, is_empty):
    delivery = Delivery(event_body(KIND))
    id = released(quarantine, delivery)
    recreate(quarantine, quarantine.kafka.deliveries)
    if is_empty:
        outcome, = quarantine.release(id, expect=EX_DATAERR)
        assert outcome["outcome"] == "refused" and "ends before" in outcome["why"] and "--force" in outcome["why"]
        return
    quarantine.kafka.append([Delivery() for _ in range(3)])  # now another record has the offset of its delivery
    outcome, = quarantine.release(id, expect=EX_DATAERR)
    assert outcome["outcome"] == "refused" and "another record" in outcome["why"]
    text = quarantine.run("release", id, expect=EX_DATAERR).stdout
    assert "gatepost tail" in text
    assert quarantine.entry(delivery.delivery_id)["released"] is None
    assert "another record" in quarantine.run("show", id).stdout
    assert len(quarantine.published(delivery.delivery_id)) == 1
    assert quarantine.release(id, "--force")[0]["outcome"] == "released"
    assert quarantine.release(id, "--force")[0]["outcome"] == "released-before"


@pytest.mark.slow
def test_copy_of_the_delivery_at_the_same_offset_is_not_mistaken_for_it(quarantine):
    """The service repeats an attempt after the topic was recreated, and its record gets the same offset."""
    delivery = Delivery(event_body(KIND))
    id = released(quarantine, delivery)
    recreate(quarantine, quarantine.kafka.deliveries)
    quarantine.kafka.append([delivery.signed_again()])
    quarantine.kafka.wait_until_routed()
    assert quarantine.release(id, expect=EX_DATAERR)[0]["outcome"] == "refused"


def test_release_from_before_partitions_were_added_is_found(quarantine):
    delivery = delivery_for(1, 2)
    id = released(quarantine, delivery)
    add_partitions(quarantine, 2)
    assert quarantine.entry(delivery.delivery_id)["released"] is True
    assert quarantine.release(id)[0]["outcome"] == "released-before"
    assert len(quarantine.published(delivery.delivery_id)) == 1


def test_release_is_found_after_partitions_were_added_twice(quarantine):
    """The release was appended where the key belonged when there were two partitions."""
    delivery = moving_delivery()
    id = quarantine.send(delivery)
    map_kind(quarantine)
    add_partitions(quarantine, 2)
    assert quarantine.release(id)[0]["outcome"] == "released"
    add_partitions(quarantine, 3)
    assert quarantine.release(id)[0]["outcome"] == "released-before"
    assert len(quarantine.published(delivery.delivery_id)) == 1


def test_record_is_released_after_partitions_were_added(quarantine):
    delivery = delivery_for(1, 2)
    id = quarantine.send(delivery)
    map_kind(quarantine)
    add_partitions(quarantine, 2)
    assert quarantine.entry(delivery.delivery_id)["released"] is False
    assert quarantine.release(id)[0]["outcome"] == "released"
    assert quarantine.entry(delivery.delivery_id)["release"]["partition"] == 1
    assert len(quarantine.published(delivery.delivery_id)) == 1


def test_release_requires_force_after_an_added_partition_was_emptied(quarantine):
    """Retention has emptied the partition with the release."""
    delivery = delivery_for(1, 2)
    id = quarantine.send(delivery)
    map_kind(quarantine)
    add_partitions(quarantine, 2)
    quarantine.release(id)
    kafka = quarantine.kafka
    end = kafka.ends(kafka.deliveries)[1]
    for future in kafka.admin.delete_records([TopicPartition(kafka.deliveries, 1, end)]).values():
        future.result(30)
    outcome, = quarantine.release(id, expect=EX_DATAERR)
    assert outcome["outcome"] == "refused" and "more partitions now" in outcome["why"]
    assert len(quarantine.published(delivery.delivery_id)) == 1


@pytest.mark.slow
def test_release_from_a_former_quarantine_topic_is_ignored(quarantine):
    """A recreated quarantine topic reuses IDs."""
    id = released(quarantine, Delivery(event_body(KIND)))
    recreate(quarantine, quarantine.kafka.quarantine)
    later = Delivery(event_body("still.unknown"))
    assert quarantine.send(later) == id
    assert quarantine.entry(later.delivery_id)["released"] is False
    assert quarantine.release(id)[0]["outcome"] == "released"
    assert quarantine.entry(later.delivery_id)["released"] is True


@pytest.mark.slow
def test_release_does_not_count_for_the_same_delivery_of_another_source(installation):
    """A service posts to two sources with the same secret."""
    config = installation.config()
    config.source("other")
    installation.create_topics(config, partitions=1)
    quarantine = Quarantine(installation, installation.start(config))
    delivery = Delivery(event_body(KIND))
    quarantine.daemon.accept(delivery)
    quarantine.daemon.accept(delivery, source="other")
    quarantine.kafka.wait_until_routed()
    map_kind(quarantine)
    one, other = (each["id"] for each in quarantine.list())
    assert quarantine.release(one)[0]["outcome"] == "released"
    assert [each["released"] for each in quarantine.list()] == [True, False]
    assert quarantine.release(other)[0]["outcome"] == "released"
    assert {each.header("ce_source") for each in quarantine.published(delivery.delivery_id)} == {"/invoicing", "/other"}


@pytest.mark.slow
def test_returned_release_of_another_source_does_not_count(quarantine):
    """A former quarantine topic had a record with the same ID and the same delivery of the other source."""
    kafka = quarantine.kafka
    delivery = Delivery(event_body(KIND))
    id = quarantine.send(delivery)
    (record,) = quarantine.quarantined(delivery.delivery_id)
    headers = [(name, value) for name, value in record.headers if name != "gatepost-source"]
    by_hand(kafka, [Record(kafka.quarantine, 0, 0, record.key, record.value,
                           [*headers, ("gatepost-source", b"other"), ("gatepost-released", id.encode())])])
    assert quarantine.json("show", id)["released"] is False
    assert quarantine.entry(delivery.delivery_id)["released"] is False


def read_again(quarantine):
    """Reset the group's offsets as described in gatepost-guide(7): everything is quarantined again."""
    kafka, daemon = quarantine.kafka, quarantine.daemon
    daemon.stop()
    waiting.until(lambda: kafka.admin.delete_consumer_groups([kafka.group])[kafka.group].exception(30) is None, 30, "an empty group")
    daemon.restart()
    kafka.wait_until_routed()


def quarantine_twice(quarantine, delivery):
    """Quarantine a delivery twice. Returns both IDs."""
    quarantine.send(delivery)
    read_again(quarantine)
    return [each["id"] for each in quarantine.list() if each["deliveryId"] == delivery.delivery_id]


@pytest.mark.slow
def test_delivery_quarantined_twice_is_released_once_after_partitions_were_added(quarantine):
    """The commands may read the delivery or, as here, the release first."""
    earlier, delivery = delivery_for(0, 2), delivery_for(1, 2)
    quarantine.send(earlier)
    fill(quarantine)
    first, second = quarantine_twice(quarantine, delivery)
    map_kind(quarantine)
    add_partitions(quarantine, 2)
    assert quarantine.release(first)[0]["outcome"] == "released"
    assert quarantine.release(second)[0]["outcome"] == "released-before"
    outcomes = {each["id"]: each["outcome"] for each in quarantine.release("--reason", "unknown-kind", expect=EX_DATAERR)}
    assert outcomes[first] == outcomes[second] == "released-before"
    assert len(quarantine.published(delivery.delivery_id)) == len(quarantine.published(earlier.delivery_id)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [2])
def test_returned_record_is_released_when_its_predecessors_are_in_another_partition(quarantine):
    """Released too early twice, with partitions added in between, after being quarantined again from the start."""
    fill(quarantine, 1, 2)
    delivery = moving_delivery()
    first = quarantine.send(delivery)
    assert quarantine.release(first)[0]["comesBack"] == "unknown-kind"
    back = quarantine.entry(delivery.delivery_id)["cameBackAs"]
    read_again(quarantine)
    add_partitions(quarantine, 3)
    assert quarantine.release(back)[0]["comesBack"] == "unknown-kind"
    came_of = {each["id"]: each["cameOf"] for each in quarantine.list()}
    (last,) = (id for id, of in came_of.items() if of == back)
    (twin,) = (id for id, of in came_of.items() if of == first and id != back)
    map_kind(quarantine)
    assert quarantine.release(twin)[0]["outcome"] == "released-before"
    outcomes = {each["id"]: each["outcome"] for each in quarantine.release("--reason", "unknown-kind")}
    assert len(outcomes) == 5 and [id for id, outcome in outcomes.items() if outcome == "released"] == [last]
    assert quarantine.release(last)[0]["outcome"] == "released-before"
    assert len(quarantine.published(delivery.delivery_id)) == 1


@pytest.mark.slow
def test_delivery_quarantined_twice_is_released_once_with_force(quarantine):
    """Retention has deleted it, so that earlier releases are unknown."""
    delivery = Delivery(event_body(KIND))
    first, second = quarantine_twice(quarantine, delivery)
    map_kind(quarantine)
    drop_first(quarantine.kafka, quarantine.kafka.deliveries, 1)
    outcomes = quarantine.release("--reason", "unknown-kind", expect=EX_DATAERR)
    assert [each["outcome"] for each in outcomes] == ["refused"] * 2
    outcomes = quarantine.release("--reason", "unknown-kind", "--force", expect=EX_DATAERR)
    assert [each["outcome"] for each in outcomes] == ["released", "refused"] and first in outcomes[1]["why"]
    assert quarantine.release(second)[0]["outcome"] == "released-before"
    assert len(quarantine.published(delivery.delivery_id)) == 1


@pytest.mark.parametrize("deleted", [False, True], ids=["both there", "the first deleted"])
def test_delivery_repeated_after_the_window_is_released_once(quarantine, deleted):
    """It is in deliveries twice, and both records were quarantined."""
    kafka, delivery = quarantine.kafka, Delivery(event_body(KIND))
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")  # to use past timestamps
    now_ms = int(time.time() * 1000)
    for days in (30, 0):
        kafka.append([delivery], timestamp_ms=now_ms - days * 24 * 3600 * 1000)
    kafka.wait_until_routed()
    map_kind(quarantine)
    first, second = (each["id"] for each in quarantine.list())
    if deleted:
        drop_first(kafka, kafka.deliveries, 1)
        assert [each["delivery"]["offset"] for each in quarantine.list()] == [0, 1]
    # Released alone, it is treated like together with the other.
    outcome, = quarantine.release(second, expect=EX_DATAERR)
    assert outcome["outcome"] == "refused" and first in outcome["why"]
    if deleted:
        outcomes = quarantine.release("--reason", "unknown-kind", expect=EX_DATAERR)
        assert [each["outcome"] for each in outcomes] == ["refused"] * 2
    outcomes = quarantine.release("--reason", "unknown-kind", *["--force"] * deleted, expect=EX_DATAERR)
    assert [each["outcome"] for each in outcomes] == ["released", "refused"] and outcomes[0]["id"] in outcomes[1]["why"]
    assert len(quarantine.published(delivery.delivery_id)) == 1


def test_delivery_quarantined_twice_is_released_once(quarantine):
    delivery = Delivery(event_body(KIND))
    first, second = quarantine_twice(quarantine, delivery)
    map_kind(quarantine)
    outcomes = quarantine.release("--reason", "unknown-kind", expect=EX_DATAERR)
    assert [each["outcome"] for each in outcomes] == ["released", "refused"] and first in outcomes[1]["why"]
    assert quarantine.release(second)[0]["outcome"] == "released-before"
    assert len(quarantine.published(delivery.delivery_id)) == 1


def test_release_behind_an_open_transaction_is_found(quarantine):
    """As left by a tool that copies deliveries in transactions: consumers wait until it ends."""
    kafka = quarantine.kafka
    delivery = Delivery(event_body(KIND))
    id = quarantine.send(delivery)
    (origin,) = quarantine.deliveries(delivery.delivery_id)
    producer = by_hand(kafka, [Record(kafka.deliveries, 0, 0, b"key", b"{}", [])], end=None)
    other = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 3})
    other.produce(origin.topic, origin.value, origin.key, headers=[*origin.headers, ("gatepost-released", id.encode())])
    assert other.flush(30) == 0
    ending = threading.Timer(3, producer.abort_transaction)
    ending.start()
    try:
        assert quarantine.entry(delivery.delivery_id)["released"] is True
    finally:
        ending.join()
