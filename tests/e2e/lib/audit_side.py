"""`gatepost audit`: its output, and changes to the topics it audits."""

import dataclasses
import json

import confluent_kafka
from confluent_kafka import TopicPartition

import waiting

EX_DATAERR = 65


@dataclasses.dataclass
class Result:
    status: int
    report: dict
    stderr: str

    @property
    def faults(self):
        return self.report["lost"], self.report["duplicated"], self.report["unexpected"]

    @property
    def deliveries(self):
        return self.report["deliveries"]

    @property
    def examples(self):
        return [(each["what"], each["deliveryId"]) for each in self.report["examples"]]

    def topic(self, name):
        (topic,) = [each for each in self.report["topics"] if each["topic"] == name]
        return topic


def audit(installation, *arguments, config=None, status=0, environment=None):
    """Run the audit. It must exit with this status, or with 65 if it reports a fault."""
    done = installation.gatepost("audit", "--json", *arguments, config=config, environment=environment)
    assert done.stdout, done.stderr
    result = Result(done.returncode, json.loads(done.stdout), done.stderr)
    is_faulty = any(result.faults) or result.deliveries["deletedBeforeRouting"]
    assert result.status == (EX_DATAERR if is_faulty else status), done.stdout + done.stderr
    for name in ("expected", "found", "lost", "duplicated", "unexpected", "unchecked"):
        assert sum(topic[name] for topic in result.report["topics"]) == result.report[name]
    return result


def by_hand(kafka, records, end="commit", name="by-hand"):
    """Write records unchanged in a transaction. Returns its producer, for transactions left open."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 3,
                                         "transactional.id": f"{kafka.prefix}-{name}"})
    producer.init_transactions()
    producer.begin_transaction()
    for record in records:
        producer.produce(record.topic, record.value, record.key, headers=record.headers)
    producer.flush()
    if end == "commit":
        producer.commit_transaction()
    elif end == "abort":
        producer.abort_transaction()
    if end in ("commit", "abort"):  # the broker writes the control records later: they would come behind other records
        topics = {record.topic for record in records}
        waiting.until(lambda: kafka.is_settled(*topics), 30, "the control records")
    return producer


def claim_routed(kafka, beyond=0):
    """Commit the end offsets of deliveries, or more, for the router's group, as if a router had run."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": kafka.group, "log_level": 3})
    ends = {partition: end + beyond for partition, end in kafka.ends(kafka.deliveries).items()}
    consumer.commit(offsets=[TopicPartition(kafka.deliveries, *each) for each in ends.items()], asynchronous=False)
    consumer.close()


def drop_first(kafka, topic, n, partition=0):
    """Delete the first n records of a partition, as retention does."""
    future = kafka.admin.delete_records([TopicPartition(topic, partition, n)])
    (each,) = future.values()
    assert each.result(30).low_watermark == n
