"""What must stand in the topics, worked out from what was sent and answered alone; it knows nothing of Gatepost's code."""

import time
import uuid

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from report import Report
from sender import ACCEPTED, UNSENT

READ_SECONDS = 60
AT_ONCE = 5000


def _records(kafka, topics):
    """All records of these topics, read_committed, up to their ends."""
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": kafka.bootstrap, "group.id": f"checker-{uuid.uuid4()}", "isolation.level": "read_committed",
        "enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True, "log_level": 3})
    known = consumer.list_topics(timeout=30).topics
    partitions = [TopicPartition(topic, partition, OFFSET_BEGINNING) for topic in topics
                  for partition in known[topic].partitions]
    left = {(each.topic, each.partition) for each in partitions}
    consumer.assign(partitions)
    progress = time.monotonic()
    while left:
        messages = consumer.consume(AT_ONCE, 0.2)
        progress = time.monotonic() if messages else progress
        assert time.monotonic() - progress < READ_SECONDS, f"the ends of {sorted(left)} were not reached"
        for message in messages:
            if message.error() is None:
                yield message
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                left.discard((message.topic(), message.partition()))
            elif not message.error().retriable():
                raise confluent_kafka.KafkaException(message.error())
    consumer.close()


def _number(kafka, deliveries, message):
    """The number of the delivery that a record is the right event of, or None."""
    headers = dict(message.headers() or [])
    number = deliveries.number(headers.get("ce_id", b"").decode(errors="replace"))
    if number is None or message.topic() != f"{kafka.prefix}.{deliveries.topic(number)}":
        return None
    right = message.value() == deliveries.body(number) and headers.get("ce_type") == deliveries.kind(number).encode()
    return number if right else None


def check(kafka, deliveries, state):
    """Compare every published record with the state of every delivery: a Report."""
    report = Report()
    seen = bytearray(len(state))
    for message in _records(kafka, kafka.published_topics()):
        number = _number(kafka, deliveries, message)
        if number is None or number >= len(state) or state[number] == UNSENT:
            report.unexpected.append((message.topic(), message.partition(), message.offset(),
                                      dict(message.headers() or []).get("ce_id") or message.key()))
            continue
        if seen[number]:
            report.duplicated.append((deliveries.id(number), message.topic(), message.partition(), message.offset()))
        seen[number] = 1
    report.lost += [deliveries.id(number) for number, each in enumerate(state) if each == ACCEPTED and not seen[number]]
    return report
