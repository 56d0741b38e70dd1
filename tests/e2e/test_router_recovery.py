"""A router whose log or committed offset is not what it expects."""

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

import waiting
from signing import Delivery, event_body, now
from tally import assert_exactly_once

EX_CONFIG = 78


def by_id(deliveries):
    return {delivery.delivery_id: delivery for delivery in deliveries}


def append_in_transactions(kafka, deliveries, aborts=False):
    """Append each delivery in its own transaction, as replication tools may: each leaves a control record, a gap in the offsets."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{kafka.prefix}.copy",
                                         "partitioner": "murmur2", "log_level": 3})
    producer.init_transactions(30)
    for delivery in deliveries:
        producer.begin_transaction()
        producer.produce(kafka.deliveries, delivery.body, delivery.delivery_id, headers=[
            ("gatepost-source", "invoicing"), ("gatepost-webhook-id", delivery.webhook_id),
            ("gatepost-timestamp", str(delivery.timestamp))])
        if aborts:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    waiting.until(lambda: kafka.is_settled(kafka.deliveries), 30, "the last control record")


def commit(kafka, offset, metadata=""):
    """Set the committed offset of the router's group in partition 0, once the group is empty."""
    def committed():
        try:
            consumer.commit(offsets=[TopicPartition(kafka.deliveries, 0, offset, metadata)], asynchronous=False)
        except confluent_kafka.KafkaException:
            return False
        return True
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": kafka.group,
                                         "enable.auto.commit": False, "log_level": 3})
    waiting.until(committed, 40, "the group to be empty")
    consumer.close()


def test_gaps_in_the_log_are_skipped(installation):
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    deliveries = [Delivery() for _ in range(6)]
    append_in_transactions(kafka, deliveries[:5])
    kafka.append(deliveries[5:])
    installation.start(installation.config("router"))
    kafka.wait_until_routed()
    assert_exactly_once(kafka, by_id(deliveries))


def refusal(installation):
    """Start a router that must refuse to route. Returns its log line."""
    router = installation.daemon(installation.config("router")).launch()
    line = router.wait_for_log("cannot route")
    router.wait_for_exit(EX_CONFIG)
    return line


@pytest.mark.slow
def test_truncated_log_without_committed_offsets_is_refused(installation):
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    kafka.append([Delivery() for _ in range(6)])
    done = kafka.admin.delete_records([TopicPartition(kafka.deliveries, 0, 3)])
    for future in done.values():
        future.result(30)
    line = refusal(installation)
    assert "begins at offset 3" in line and "--reset-offsets" in line
    commit(kafka, 3)
    installation.start(installation.config("router"))
    kafka.wait_until_routed()
    assert len(kafka.read()) == 3


def test_committed_offset_beyond_the_end_is_refused(installation):
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    kafka.append([Delivery() for _ in range(3)])
    commit(kafka, 50)
    line = refusal(installation)
    assert "ends at offset 3" in line and "50" in line
    assert kafka.read() == []


def test_replaced_log_is_refused(installation):
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    kafka.append([Delivery() for _ in range(6)])
    commit(kafka, 4, str((now() - 3600) * 1000))
    line = refusal(installation)
    assert "at offset 3" in line
    assert kafka.read() == []


def test_text_too_long_for_a_key_is_ignored(installation):
    config = installation.config()
    config["source invoicing"].update({"key": "/invoiceId", "subject": "/invoiceId"})
    installation.create_topics(config)
    daemon = installation.start(config)
    short = daemon.accept(Delivery(event_body()))
    long = daemon.accept(Delivery(event_body().replace(b"INV-", b"INV-" + b"9" * 600000)))
    installation.kafka.wait_until_routed()
    keys = {record.delivery_id: (record.key.decode(), record.header("ce_subject")) for record in installation.kafka.read()}
    assert keys[short.delivery_id][0] == keys[short.delivery_id][1] != short.delivery_id
    assert keys[long.delivery_id] == (long.delivery_id, None)
