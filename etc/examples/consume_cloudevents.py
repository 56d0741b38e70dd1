#!/usr/bin/env python3
"""Consume events by the CloudEvents SDK, each once: usage: consume_cloudevents.py BROKERS GROUP TOPIC...

Needs confluent-kafka and cloudevents 2. The SDK reads and checks the attributes, and parses the body; otherwise this is
consume.py: the events are kept in the database events.db, in the transaction that handles them, so that an event that Kafka
returns after a restart is recognised. All members of a group need one database. SIGTERM stops the consumer
after the current batch.
"""
import signal, sqlite3, sys
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event
from confluent_kafka import Consumer, KafkaException

if len(sys.argv) < 4:
    sys.exit("usage: consume_cloudevents.py BROKERS GROUP TOPIC...")
brokers, group, *topics = sys.argv[1:]
stopping = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stopping.append(True))
database = sqlite3.connect("events.db")
database.execute("CREATE TABLE IF NOT EXISTS event (source, id, kind, body, PRIMARY KEY (source, id))")

def process(record):
    headers = dict(record.headers() or [])
    if not {"ce_source", "ce_id"} <= headers.keys():
        sys.exit(f"{record.topic()}: the record at offset {record.offset()} is no event: it has no ce_source or ce_id")
    event = from_kafka_event(KafkaMessage(headers, record.key(), record.value()))
    row = (event.get_source(), event.get_id(), event.get_type(), record.value().decode())
    if database.execute("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?)", row).rowcount == 1:
        # A new event: process it here, in the same transaction; event.get_data() is the body as a dictionary. Let
        # exceptions pass: the whole batch is undone and comes again, so calls outside of the database must bear repetition.
        print(*row, flush=True)

settings = {"bootstrap.servers": brokers, "group.id": group, "isolation.level": "read_committed",
            "enable.auto.commit": False, "auto.offset.reset": "earliest"}
# If the brokers require TLS or a login: put the lines of gatepost-consumers(7), LOGIN, here.
consumer = Consumer(settings)
consumer.subscribe(topics)
try:
    while not stopping:
        records = consumer.consume(500, timeout=1)
        with database:  # one transaction: all of them, or none
            for record in records:
                if record.error():
                    raise KafkaException(record.error())
                process(record)
        if records:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:  # the partitions went to another member: it gets the records again
                print("offsets were not committed:", error, file=sys.stderr)
finally:
    consumer.close()  # leaves the group, so that other members get its partitions at once
