"""Records, offsets, groups and topics as seen by an independent Kafka client."""

import dataclasses
import functools
import itertools
import re
import struct
import time
import uuid

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

import protocol
import waiting

TIMEOUT = 30
SETTLED_SECONDS = 90  # an open transaction of a killed router lasts for half a minute
TRANSIENT = (confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS, confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
             confluent_kafka.KafkaError.NOT_COORDINATOR, confluent_kafka.KafkaError.UNSTABLE_OFFSET_COMMIT,
             confluent_kafka.KafkaError.UNKNOWN_LEADER_EPOCH, confluent_kafka.KafkaError.FENCED_LEADER_EPOCH,
             confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE, confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
             confluent_kafka.KafkaError.OFFSET_NOT_AVAILABLE, confluent_kafka.KafkaError._TIMED_OUT)


@dataclasses.dataclass
class Record:
    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: list  # of (name, bytes)

    @property
    def place(self):
        return self.topic, self.partition, self.offset

    def header(self, name):
        """The value of a header as text, or None if it is absent; it must not be repeated."""
        values = [value for each, value in self.headers if each == name]
        assert len(values) <= 1, f"{name} occurs {len(values)} times in {self}"
        return values[0].decode() if values else None

    @property
    def delivery_id(self):
        """The delivery-id; for a released event, without the ID of the release."""
        return re.sub(r"\.\d+-\d+$", "", self.header("ce_id") or (self.key or b"").decode())


def _record(message):
    return Record(message.topic(), message.partition(), message.offset(), message.key(), message.value() or b"",
                  message.headers() or [])


class Reader:
    """A consumer that reads topics from the beginning and keeps all records."""

    def __init__(self, bootstrap, topics, isolation="read_committed"):
        self.records = []
        self._consumer = confluent_kafka.Consumer({
            "bootstrap.servers": bootstrap, "group.id": f"reader-{uuid.uuid4()}", "isolation.level": isolation,
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "enable.partition.eof": True,
            "fetch.wait.max.ms": 50, "log_level": 3})
        known = self._consumer.list_topics(timeout=TIMEOUT).topics
        self._partitions = [TopicPartition(topic, partition, OFFSET_BEGINNING)
                            for topic in topics for partition in known[topic].partitions]
        self._consumer.assign(self._partitions)

    def poll(self, timeout=0.1):
        """Read available records. Returns the partitions whose ends were reached."""
        ended = set()
        for message in self._consumer.consume(1000, timeout):
            if not message.error():
                self.records.append(_record(message))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add((message.topic(), message.partition()))
            elif not message.error().retriable():
                raise confluent_kafka.KafkaException(message.error())
        return ended

    def to_end(self):
        """Read until every partition's end was reached once. Returns all records so far."""
        left = {(each.topic, each.partition) for each in self._partitions}
        deadline = time.monotonic() + 2 * TIMEOUT
        while left:
            left -= self.poll()
            assert time.monotonic() < deadline, f"the ends of {sorted(left)} were not reached"
        return self.records

    def wait_for(self, delivery_id, count=1):
        """Wait for this many records of the delivery, and return them."""
        def found():
            self.poll()
            records = [record for record in self.records if record.delivery_id == delivery_id]
            return records if len(records) >= count else None
        return waiting.until(found, TIMEOUT, f"{count} records of delivery {delivery_id}")

    def close(self):
        self._consumer.close()


class Kafka:
    """The topics with a prefix on a cluster."""

    def __init__(self, bootstrap, prefix):
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.group = f"{prefix}.router"
        self.deliveries = f"{prefix}.deliveries"
        self.quarantine = f"{prefix}.quarantine"
        self._members = {}
        self._changes = itertools.count(1)

    def close(self):
        """Close its clients; otherwise they keep looking for stopped brokers."""
        while self._members:
            self._members.popitem()[1].close()
        self.__dict__.pop("admin", None)

    @functools.cached_property
    def admin(self):
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 3})

    def topics(self):
        """The names of all topics of the prefix."""
        names = self.admin.list_topics(timeout=TIMEOUT).topics
        return sorted(name for name in names if name.startswith(self.prefix + "."))

    def published_topics(self):
        """The topics that a router writes: event topics and quarantine."""
        return [name for name in self.topics() if name != self.deliveries]

    def partitions(self, topic):
        return len(self.admin.list_topics(topic, timeout=TIMEOUT).topics[topic].partitions)

    def reader(self, topics=None, isolation="read_committed"):
        return Reader(self.bootstrap, topics or self.published_topics(), isolation)

    def read(self, *topics, isolation="read_committed"):
        """All records of the given topics, or of all topics that a router writes, up to their ends."""
        reader = self.reader(list(topics) or None, isolation)
        try:
            return reader.to_end()
        finally:
            reader.close()

    def ends(self, topic):
        """The end offset of each partition."""
        wanted = [TopicPartition(topic, partition) for partition in range(self.partitions(topic))]
        return {each.partition: offset for each, offset in self._ends(wanted, IsolationLevel.READ_UNCOMMITTED).items()}

    def _ends(self, partitions, isolation):
        """The end offset of each of these partitions. Waits while a leader is being elected."""
        wanted = {each: confluent_kafka.admin.OffsetSpec.latest() for each in partitions}

        def ask():
            futures = self.admin.list_offsets(wanted, isolation_level=isolation, request_timeout=TIMEOUT)
            try:
                return {each: future.result().offset for each, future in futures.items()}
            except confluent_kafka.KafkaException as error:
                if error.args[0].code() in TRANSIENT:
                    return None
                raise
        return waiting.until(ask, TIMEOUT, f"the ends of {partitions}") if wanted else {}

    def is_settled(self, *topics):
        """Whether no transaction is open in these topics, by default in all that a router writes. For example, a killed
        router leaves one open, which hides later records until the broker aborts it after half a minute."""
        listed = self.admin.list_topics(timeout=TIMEOUT).topics
        wanted = [TopicPartition(topic, partition)
                  for topic in topics or self.published_topics() for partition in listed[topic].partitions]
        return self._ends(wanted, IsolationLevel.READ_COMMITTED) == self._ends(wanted, IsolationLevel.READ_UNCOMMITTED)

    def _member_of(self, group):
        """A client that can fetch a group's offsets but never joins it. librdkafka's admin requests to a coordinator
        abort the process if the coordinator becomes unavailable (2.0.2 to 2.16)."""
        if group not in self._members:
            self._members[group] = confluent_kafka.Consumer({
                "bootstrap.servers": self.bootstrap, "group.id": group, "log_level": 3, "enable.auto.commit": False,
                "isolation.level": "read_committed"})
        return self._members[group]

    def committed(self, group=None, topic=None):
        """A group's committed offsets by partition of a topic; empty while its broker is starting. By
        default, those of the routers in deliveries."""
        group, topic = group or self.group, topic or self.deliveries
        wanted = [TopicPartition(topic, partition) for partition in range(self.partitions(topic))]
        try:
            found = self._member_of(group).committed(wanted, timeout=TIMEOUT)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() in TRANSIENT:
                return {}
            raise
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def is_routed(self):
        committed = self.committed()
        return all(committed.get(partition, 0) >= end for partition, end in self.ends(self.deliveries).items())

    def wait_until_routed(self, seconds=60):
        """Wait until the router has committed all records of deliveries, and a read_committed consumer can read the
        results: a broker shows the offsets of a transaction slightly before its records."""
        waiting.until(self.is_routed, seconds,
                      lambda: f"committed {self.committed()}, ends {self.ends(self.deliveries)}")
        waiting.until(self.is_settled, SETTLED_SECONDS, "the end of the routers' transactions")

    def members(self):
        """The number of partitions of each member of the router's group."""
        group = self.admin.describe_consumer_groups([self.group], request_timeout=TIMEOUT)[self.group].result()
        return {member.group_instance_id or member.member_id: len(member.assignment.topic_partitions)
                for member in group.members if member.assignment}

    def remove_member(self, instance):
        """Remove a router that has ended from the group, which would keep its partitions for it until its session is over."""
        port = int(self.bootstrap.rpartition(":")[2])
        assert protocol.remove_member(port, self.group, instance) == (0, 0)

    def create(self, topic, partitions=1, **config):
        new = NewTopic(topic, partitions, 1, config={name.replace("_", "."): value for name, value in config.items()})
        self.admin.create_topics([new])[topic].result(TIMEOUT)
        waiting.until(lambda: topic in self.admin.list_topics(timeout=TIMEOUT).topics, TIMEOUT, f"topic {topic}")

    def delete(self, *topics):
        for future in self.admin.delete_topics(list(topics)).values():
            future.result(TIMEOUT)
        waiting.until(lambda: not set(topics) & set(self.topics()), TIMEOUT, f"{topics} to be deleted")

    def configuration(self, topic):
        """A topic's settings. Waits until the broker knows the topic."""
        return waiting.until(lambda: self._configuration(topic), TIMEOUT, f"the topic {topic}")

    def _configuration(self, topic):
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            entries = self.admin.describe_configs([resource])[resource].result(TIMEOUT)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise
        return {name: entry.value for name, entry in entries.items()}

    def sets(self, topic, name, value):
        """Whether the topic sets this option itself instead of using the brokers' default."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entry = self.admin.describe_configs([resource])[resource].result(TIMEOUT)[name]
        return entry.value == value and not entry.is_default

    def configure(self, topic, name, value):
        """Change an option of a topic and wait until the broker's log follows it."""
        self.set_option(topic, name, value)
        # A broker shows a value before its log follows it, but takes the next change only after that.
        self.set_option(topic, "file.delete.delay.ms", str(60000 + next(self._changes)))

    def set_option(self, topic, name, value):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(TIMEOUT)
        waiting.until(lambda: self.configuration(topic)[name] == value, TIMEOUT, f"{name} = {value} of {topic}")

    def append(self, deliveries, source="invoicing", timestamp_ms=None, **others):
        """Write records to the topic deliveries as a receiver does, and wait for the acks. others are additional headers."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, "acks": "all",
                                             "partitioner": "murmur2", "linger.ms": 5, "log_level": 3})
        errors = []
        report = lambda error, message: errors.append(error) if error else None
        for delivery in deliveries:
            received = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
            headers = {"source": source, "webhook-id": delivery.webhook_id, "timestamp": str(delivery.timestamp),
                       "signature": delivery.signature, "received": received, "instance": "test"} | others
            stamp = {} if timestamp_ms is None else {"timestamp": timestamp_ms}
            producer.produce(self.deliveries, delivery.body, delivery.delivery_id, on_delivery=report,
                             headers=[(f"gatepost-{name}", value) for name, value in headers.items()], **stamp)
            producer.poll(0)
        assert producer.flush(2 * TIMEOUT) == 0 and not errors, errors


def murmur2_partition(key, partitions):
    """The partition that Java's default partitioner chooses for a key."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for (word,) in struct.iter_unpack("<I", key[:whole]):
        word = word * m & mask
        word = (word ^ word >> 24) * m & mask
        hashed = (hashed * m & mask) ^ word
    if key[whole:]:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * m & mask
    hashed = (hashed ^ hashed >> 13) * m & mask
    return ((hashed ^ hashed >> 15) & 0x7FFFFFFF) % partitions
