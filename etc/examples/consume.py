#!/usr/bin/env python3
"""Consume events, each once: usage: consume.py BROKERS GROUP TOPIC...

Needs confluent-kafka. The events are kept in the database events.db, in the transaction that handles them, so that an event
that Kafka returns after a restart is recognised. All members of a group need one database. SIGTERM stops the consumer
after the current batch.
"""
import signal, sqlite3, sys
from confluent_kafka import Consumer, KafkaException

if len(sys.argv) < 4:
    sys.exit("usage: consume.py BROKERS GROUP TOPIC...")
brokers, group, *topics = sys.argv[1:]
stopping = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stopping.append(True))
database = sqlite3.connect("events.db")
database.execute("CREATE TABLE IF NOT EXISTS event (source, id, kind, body, PRIMARY KEY (source, id))")

def process(record):
    headers = {name: value.decode() for name, value in record.headers() or []}
    if not {"ce_source", "ce_id"} <= headers.keys():
        sys.exit(f"{record.topic()}: the record at offset {record.offset()} is no event: it has no ce_source or ce_id")
    event = headers["ce_source"], headers["ce_id"], headers["ce_type"], record.value().decode()
    if database.execute("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?)", event).rowcount == 1:
        # A new event: process it here, in the same transaction. Let exceptions pass: the whole batch is undone and comes
        # again, so calls outside of the database must bear repetition.
        print(*event, flush=True)

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
