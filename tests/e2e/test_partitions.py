"""A partition that cannot be routed neither stops nor delays the others."""

import contextlib
import json
import os
import re
import struct
import threading
import time

import confluent_kafka
import pytest
from cluster import Cluster
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic

import waiting
from installation import Installation
from load import Load
from proxy import Proxies
from reloading import reload
from kafka_side import murmur2_partition
from signing import Delivery, event_body
from tally import assert_exactly_once, tally
from test_router_recovery import append_in_transactions

SECONDS = 90
LARGE_RECORD = str(6 << 20)


def by_id(deliveries):
    return {delivery.delivery_id: delivery for delivery in deliveries}


def deliveries_of(partition, n, partitions, **members):
    """Deliveries whose ids belong to a partition."""
    found = []
    while len(found) < n:
        delivery = Delivery(event_body(**members))
        if murmur2_partition(delivery.delivery_id.encode(), partitions) == partition:
            found.append(delivery)
    return found


def commit_beyond_end(kafka, partition, offset, **metadata):
    """Set a committed offset of the router's group; a broker that has just started may not accept it yet."""
    def committed():
        offsets = ConsumerGroupTopicPartitions(kafka.group, [TopicPartition(kafka.deliveries, partition, offset, **metadata)])
        try:
            done = kafka.admin.alter_consumer_group_offsets([offsets], request_timeout=10)[kafka.group].result(30)
        except confluent_kafka.KafkaException:
            return False
        return not done.topic_partitions[0].error
    waiting.until(committed, 60, "the offset to be committed")


def published(kafka, deliveries):
    """The number of events of each delivery."""
    ids = [record.delivery_id for record in kafka.read(*kafka.published_topics())]
    return [ids.count(delivery.delivery_id) for delivery in deliveries]


def wait_until_published(kafka, deliveries, seconds=SECONDS):
    waiting.until(lambda: published(kafka, deliveries) == [1] * len(deliveries), seconds,
                  lambda: f"each to be published once: {published(kafka, deliveries)}", step=0.5)


def state(daemon, partition):
    """(state, cause) of a partition in the metrics."""
    found = [dict(labels) for labels in daemon.metrics("gatepost_router_partition_state")
             if dict(labels)["partition"] == str(partition)]
    return [(each["state"], each["cause"]) for each in found]


def wait_for_state(daemon, partition, *expected):
    waiting.until(lambda: state(daemon, partition) == [expected], SECONDS,
                  lambda: f"partition {partition} to be {expected}: {state(daemon, partition)}\n{daemon.last_log(4000)}")


def assert_shown(installation, daemon, partition, name, cause):
    """A partition's state is in the metrics, in `gatepost status` and on the status page."""
    wait_for_state(daemon, partition, name, cause)
    output = installation.gatepost("status", config=daemon.config).stdout
    assert re.search(rf"^partitions? .*\b{partition}\b.*: {name}: .", output, re.M), output
    document = json.loads(installation.gatepost("status", "--json", config=daemon.config).stdout)
    (shown,) = [each for each in document["partitions"] if each["partition"] == partition]
    assert (shown["state"], shown["cause"]) == (name, cause)
    (shown,) = [each for each in daemon.admin("/status").json["partitions"] if each["partition"] == partition]
    assert (shown["state"], shown["cause"]) == (name, cause)


@pytest.fixture
def lone(tmp_path):
    """A broker whose log the test may damage, and an installation that uses it."""
    with Cluster() as cluster:
        installation = Installation(tmp_path, cluster.bootstrap)
        yield cluster, installation
        installation.clean_up()


@pytest.fixture
def single(installation):
    """The configuration of a router for three partitions on one broker."""
    config = installation.config("router")
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    installation.create_topics(config, partitions=3)
    return installation, config


def test_offset_beyond_the_end_stops_only_its_partition(single):
    installation, config = single
    kafka = installation.kafka
    sent = [deliveries_of(partition, 5, 3) for partition in range(3)]
    kafka.append(sum(sent, []))
    commit_beyond_end(kafka, 0, 500)
    daemon = installation.daemon(config).start()
    wait_until_published(kafka, sent[1] + sent[2])
    assert_shown(installation, daemon, 0, "refused", "beyond-end")
    assert b"partition 0 refused: " in daemon.admin("/readyz").body and daemon.admin("/readyz").status == 503
    more = deliveries_of(1, 5, 3)
    kafka.append(more)
    wait_until_published(kafka, more, 20)
    assert published(kafka, sent[0]) == [0] * 5
    assert daemon.is_running()


@pytest.mark.slow
def test_refused_offset_is_not_believed_when_the_log_has_grown_up_to_it(single):
    """Else the deliveries in front of it would not be published."""
    installation, config = single
    kafka = installation.kafka
    kafka.append(deliveries_of(0, 5, 3))
    commit_beyond_end(kafka, 0, 8)
    daemon = installation.daemon(config).start()
    waiting.until(lambda: b"partition 0 refused: " in daemon.admin("/readyz").body, 40, lambda: daemon.log)
    more = deliveries_of(0, 5, 3)
    kafka.append(more)
    waiting.until(lambda: b"ended before offset 8, up to which it was routed, and has grown since" in daemon.admin("/readyz").body, 60, lambda: daemon.log)
    assert_shown(installation, daemon, 0, "refused", "beyond-end")
    daemon.stop()
    commit_beyond_end(kafka, 0, 5)
    daemon.restart()
    wait_until_published(kafka, more, 60)


def test_router_exits_when_every_partition_is_refused(single):
    installation, config = single
    kafka = installation.kafka
    for partition in range(3):
        commit_beyond_end(kafka, partition, 500)
    daemon = installation.daemon(config).launch()
    assert "was the topic deleted and recreated" in daemon.wait_for_log("cannot route")
    daemon.wait_for_exit(78)


# Records that cannot be published

def split_configuration(installation):
    """A receiver with 4 MiB bodies, and a router whose file does not mention it, as on another machine."""
    receiver, router = installation.config("receiver"), installation.config("router")
    receiver["receiver"]["max_body"] = "4MiB"
    installation.create_topics(router, partitions=1)
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", LARGE_RECORD)
    return receiver, router


def quarantined(kafka, delivery):
    return [record for record in kafka.read(kafka.quarantine) if record.delivery_id == delivery.delivery_id]


def assert_stub_in_quarantine(kafka, delivery):
    (stub,) = quarantined(kafka, delivery)
    assert stub.header("gatepost-reason") == "unpublishable"


@pytest.mark.slow
def test_delivery_too_large_for_its_topic_becomes_a_stub(installation):
    receiver, router = split_configuration(installation)
    kafka = installation.kafka
    receiver, router = installation.start(receiver), installation.start(router)
    before = [receiver.accept() for _ in range(5)]
    large = [receiver.accept(Delivery(event_body(padding="x" * (3 << 20)))) for _ in range(2)]
    after = [receiver.accept() for _ in range(30)]
    wait_until_published(kafka, before + after)
    for delivery in large:
        (stub,) = waiting.until(lambda: quarantined(kafka, delivery), SECONDS, "the stub")
        assert stub.header("gatepost-reason") == "unpublishable" and stub.value in (b"", None)
        assert "too large" in stub.header("gatepost-detail")
        assert stub.header("gatepost-signature") == delivery.signature
        assert stub.header("gatepost-partition") == "0" and int(stub.header("gatepost-offset")) >= 5
    assert router.metric("gatepost_quarantined_total", reason="unpublishable") == 2
    receiver.accept(large[0])  # a repeat, which is dropped
    kafka.wait_until_routed()
    assert len(quarantined(kafka, large[0])) == 1
    router.stop()
    router.restart()
    kafka.wait_until_routed()
    assert len(quarantined(kafka, large[0])) == 1


def test_record_too_large_when_decompressed_becomes_a_stub(installation):
    """Brokers check the compressed size: anyone who may write to `deliveries` can append such a record."""
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    delivery = Delivery(event_body(padding="y" * (30 << 20)))
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 64 << 20,
                                         "compression.type": "zstd"})
    producer.produce(kafka.deliveries, delivery.body, delivery.delivery_id, headers=[
        ("gatepost-source", "invoicing"), ("gatepost-webhook-id", delivery.webhook_id),
        ("gatepost-timestamp", str(delivery.timestamp))])
    assert producer.flush(60) == 0
    after = [Delivery() for _ in range(10)]
    kafka.append(after)
    assert kafka.ends(kafka.deliveries) == {0: 11}, kafka.ends(kafka.deliveries)
    installation.start(installation.config("router"))
    wait_until_published(kafka, after)
    assert_stub_in_quarantine(kafka, delivery)


def test_unreadable_record_stops_only_its_partition_until_deleted(single):
    """librdkafka decompresses up to receive.message.max.bytes."""
    installation, config = single
    kafka = installation.kafka
    daemon = installation.daemon(config).start()
    kafka.append(deliveries_of(0, 1, 3))
    kafka.wait_until_routed()
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 200 << 20,
                                         "compression.type": "zstd", "log_level": 3})
    producer.produce(kafka.deliveries, bytes(120 << 20), b"bomb", partition=0)
    assert producer.flush(60) == 0
    sent = [deliveries_of(partition, 5, 3) for partition in range(3)]
    kafka.append(sum(sent, []))
    wait_until_published(kafka, sent[1] + sent[2])
    wait_for_state(daemon, 0, "waiting", "unreadable")
    (done,) = kafka.admin.delete_records([TopicPartition(kafka.deliveries, 0, 2)]).values()
    done.result(30)
    wait_until_published(kafka, sum(sent, []), 60)
    assert daemon.metric("gatepost_deleted_before_routing_total") == 1


def test_record_refused_before_its_batch_is_complete_becomes_a_stub(installation):
    """With a backlog behind it, librdkafka accepts no more records before the batch is committed."""
    config = installation.config("router")
    installation.create_topics(config, partitions=2)
    kafka = installation.kafka
    kafka.configure(kafka.deliveries, "max.message.bytes", LARGE_RECORD)
    (large,) = deliveries_of(0, 1, 2, padding="x" * (3 << 20))
    append_large(kafka, [large])
    kafka.append([Delivery() for _ in range(20000)])
    installation.daemon(config).start()
    kafka.wait_until_routed()
    assert_stub_in_quarantine(kafka, large)


@pytest.mark.slow
def test_partition_with_undeliverable_fetch_responses_waits(installation):
    """librdkafka silently drops a response larger than receive.message.max.bytes and retries forever."""
    config, kafka = with_small_answers(installation, partitions=1), installation.kafka
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    daemon = installation.start(config)
    first, last = [Delivery() for _ in range(5)], [Delivery() for _ in range(5)]
    kafka.append(first)
    kafka.wait_until_routed()
    large = Delivery(event_body(padding="x" * (3 << 20)))
    append_large(kafka, [large])
    kafka.append(last)
    assert_shown(installation, daemon, 0, "waiting", "no-records")
    assert daemon.metric("gatepost_router_lag_records") == 6
    assert 0 < daemon.metric("gatepost_router_oldest_record_timestamp_seconds") < time.time() - 10
    ready = daemon.admin("/readyz")
    assert ready.status == 503 and b"partition 0 waiting: the log ends at offset" in ready.body, ready.body
    assert daemon.log.count("cause=no-records") == 1
    daemon.stop()
    config["kafka"]["receive.message.max.bytes"] = "8000000"
    daemon.start()
    daemon.wait_until_ready()
    kafka.wait_until_routed()
    assert_stub_in_quarantine(kafka, large)
    assert published(kafka, first + last) == [1] * 10


@pytest.mark.slow
def test_gap_is_skipped_when_the_connection_changes_with_each_response(installation):
    """librdkafka closes the connection after a response that is too large; responses for other partitions arrive in between."""
    config, kafka = with_small_answers(installation), installation.kafka
    daemon = installation.start(config)
    kafka.append(deliveries_of(0, 2, 2))
    kafka.wait_until_routed()
    append_large(kafka, deliveries_of(0, 1, 2, padding="x" * (3 << 20)))
    sent = []
    while "the leader may have changed or restarted" not in daemon.log:
        more = deliveries_of(1, 2, 2)
        kafka.append(more)
        wait_until_published(kafka, more, 60)
        sent += more
    for _ in range(3):
        with_gaps, more = deliveries_of(1, 3, 2), deliveries_of(1, 2, 2)
        append_in_transactions(kafka, with_gaps)
        kafka.append(more)
        sent += with_gaps + more
    wait_until_published(kafka, sent, 60)


@pytest.mark.slow
def test_large_records_are_routed_when_the_connection_changes_with_each_response(installation):
    """The records are so large that each response has only one: no two records arrive over the same connection."""
    config, kafka = with_small_answers(installation), installation.kafka
    installation.start(config)
    kafka.append(deliveries_of(0, 2, 2) + deliveries_of(1, 2, 2))
    kafka.wait_until_routed()
    append_large(kafka, deliveries_of(0, 1, 2, padding="x" * (3 << 20)))
    sent = sum((deliveries_of(1, 1, 2, padding="z" * 700_000) for _ in range(8)), [])
    for delivery in sent:
        kafka.append([delivery])
    wait_until_published(kafka, sent, 120)


@pytest.mark.slow
def test_records_refused_out_of_order_become_stubs(installation):
    """The record for another topic is refused first, while the other is queued behind records for its own topic."""
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka = installation.kafka
    kafka.configure(kafka.deliveries, "max.message.bytes", LARGE_RECORD)
    before = [Delivery(event_body(padding="m" * 900_000)) for _ in range(26)]
    large = [Delivery(event_body(kind, padding="x" * (3 << 20))) for kind in ("invoice.accepted", "invoice.rejected")]
    append_large(kafka, before + large)
    after = [Delivery() for _ in range(5)]
    kafka.append(after)
    installation.daemon(config).start()
    kafka.wait_until_routed()
    assert published(kafka, before + after) == [1] * 31
    for delivery in large:
        assert_stub_in_quarantine(kafka, delivery)


@pytest.mark.slow
def test_reload_ends_the_wait_for_a_topic_no_longer_used(installation):
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka = installation.kafka
    daemon = installation.start(config)
    first, second = [Delivery(event_body("invoice.rejected")) for _ in range(2)]
    kafka.append([first])
    wait_until_published(kafka, [first])
    kafka.delete(f"{kafka.prefix}.invoice.rejected")
    kafka.append([second])
    wait_for_state(daemon, 0, "waiting", "output-topic")
    config["events"]["invoice.*"] = f"{kafka.prefix}.invoices"
    installation.create_topics(config, partitions=1)
    reload(daemon)
    wait_until_published(kafka, [second])


@pytest.mark.slow
def test_refused_record_becomes_a_stub_when_the_connection_changes_with_each_response(installation):
    """The dedup table is restored each time, because the leader may have changed; the refusal must not be forgotten."""
    config, kafka = with_small_answers(installation), installation.kafka
    installation.start(config)
    kafka.append(deliveries_of(0, 2, 2) + deliveries_of(1, 2, 2))
    kafka.wait_until_routed()
    for topic in kafka.published_topics():
        kafka.configure(topic, "max.message.bytes", "300000")
    append_large(kafka, deliveries_of(0, 1, 2, padding="x" * (3 << 20)))
    (refused,) = deliveries_of(1, 1, 2, padding="z" * 700_000)
    sent = sum((deliveries_of(1, 1, 2, padding="z" * 200_000) for _ in range(3)), [])
    for delivery in [refused] + sent:
        kafka.append([delivery])
    wait_until_published(kafka, sent, 120)
    assert_stub_in_quarantine(kafka, refused)


@pytest.mark.slow
def test_truncated_log_is_read_when_the_connection_changes_with_each_response(lone):
    """The dedup table is restored from the start; a new connection must not restart that."""
    cluster, installation = lone
    config, kafka = with_small_answers(installation), installation.kafka
    daemon = installation.start(config)
    for delivery in deliveries_of(1, 5, 2, padding="z" * 700_000):
        kafka.append([delivery])
    kafka.append(deliveries_of(0, 2, 2))
    kafka.wait_until_routed()
    (log,) = cluster.directory.glob(f"node*/data/{kafka.deliveries}-1/00000000000000000000.log")
    size = log.stat().st_size
    kafka.append(deliveries_of(1, 3, 2))
    kafka.wait_until_routed()
    cut_off(cluster, log, size)
    append_large(kafka, deliveries_of(0, 1, 2, padding="x" * (3 << 20)))
    later = deliveries_of(1, 6, 2)
    for delivery in later:
        kafka.append([delivery])
    wait_until_published(kafka, later, 120)
    assert daemon.metric("gatepost_log_truncations_total") == 1


@pytest.mark.slow
def test_record_with_headers_too_large_for_librdkafka_becomes_a_stub(installation):
    """Quarantine keeps the headers of a delivery."""
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka = installation.kafka
    delivery = Delivery(b"not JSON")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 200 << 20,
                                         "compression.type": "gzip"})
    producer.produce(kafka.deliveries, delivery.body, delivery.delivery_id, headers=[
        ("gatepost-source", "invoicing"), ("gatepost-timestamp", str(delivery.timestamp)), ("x", b"h" * 105_000_000)])
    assert producer.flush(60) == 0
    after = [Delivery() for _ in range(10)]
    kafka.append(after)
    installation.start(config)
    wait_until_published(kafka, after)
    assert_stub_in_quarantine(kafka, delivery)


# Gaps and times

def test_control_records_do_not_slow_routing(single):
    """60 took 62 s when each caused a lookup of the position, which queued behind the consumer's own fetch."""
    installation, config = single
    kafka = installation.kafka
    sent = [Delivery() for _ in range(60)]
    append_in_transactions(kafka, sent)
    begun = time.monotonic()
    daemon = installation.daemon(config).start()
    wait_until_published(kafka, sent)
    took = [time.monotonic() - begun]
    assert took[0] < 20
    more = [Delivery() for _ in range(60)]
    begun = time.monotonic()
    append_in_transactions(kafka, more)
    wait_until_published(kafka, more)
    took.append(time.monotonic() - begun)
    print("60 control records took", took, "the second time with their transactions")
    assert took[1] < 30
    waiting.until(lambda: daemon.metric("gatepost_router_lag_records") == 0, SECONDS,
                  "control records at the end of a partition to be excluded from the lag")


def append_steadily(kafka, sent, stop):
    """Append a hundred records a second, without the pauses of kafka.append()."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all", "linger.ms": 0,
                                         "partitioner": "murmur2", "log_level": 3})
    while not stop.wait(0.01):
        sent.append(Delivery())
        producer.produce(kafka.deliveries, sent[-1].body, sent[-1].delivery_id, headers=[
            ("gatepost-source", "invoicing"), ("gatepost-webhook-id", sent[-1].webhook_id),
            ("gatepost-timestamp", str(sent[-1].timestamp))])
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.mark.slow
def test_aborted_transaction_does_not_stall_steady_traffic(installation):
    """The records behind it had to wait for 10,000 more, because the next always arrived before the end of the log was seen."""
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka = installation.kafka
    daemon = installation.start(config)
    sent, stop = [], threading.Event()
    thread = threading.Thread(target=append_steadily, args=(kafka, sent, stop))
    thread.start()
    try:
        waiting.until(lambda: sum(daemon.metrics("gatepost_events_total").values()) > 50, SECONDS, "events")
        append_in_transactions(kafka, [Delivery()], aborts=True)
        n = len(sent)
        waiting.until(lambda: sum(daemon.metrics("gatepost_events_total").values()) > n, 20, "later events")
    finally:
        stop.set()
        thread.join()
    kafka.wait_until_routed()
    assert_exactly_once(kafka, by_id(sent))


@pytest.mark.slow
def test_timestamp_near_1970_is_routed(installation):
    config = installation.config("router")
    installation.create_topics(config, partitions=2)
    kafka = installation.kafka
    daemon = installation.start(config)
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    old = deliveries_of(0, 3, 2)
    kafka.append(old[:1])
    kafka.append(old[1:2], timestamp_ms=1000)
    kafka.append(old[2:])
    others = deliveries_of(1, 3, 2)
    kafka.append(others)
    wait_until_published(kafka, old + others)
    kafka.append([old[0]])
    kafka.append(old[2:], timestamp_ms=2000)
    kafka.wait_until_routed()
    kafka.configure(kafka.deliveries, "message.timestamp.type", "LogAppendTime")
    daemon.stop()
    daemon.restart()
    fresh = deliveries_of(0, 3, 2)
    kafka.append(fresh + [fresh[0]])
    kafka.wait_until_routed()
    assert_exactly_once(kafka, by_id(old + others + fresh))


def test_recovery_on_an_idle_log_takes_less_than_a_second(installation):
    """Another producer with the same transactional.id fences the router's; the next commit fails, and the router recovers."""
    config = installation.config("router", "gw1")
    installation.create_topics(config, partitions=3)
    kafka = installation.kafka
    daemon = installation.start(config)
    first = [Delivery() for _ in range(5)]
    kafka.append(first)
    kafka.wait_until_routed()
    took = []
    for _ in range(3):
        other = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 3,
                                          "transactional.id": f"{kafka.group}-gw1"})
        other.init_transactions(30)
        before = len(daemon.log)
        kafka.append([Delivery()])
        kafka.wait_until_routed()
        times = {what: [line.split()[0] for line in daemon.log[before:].splitlines() if what in line]
                 for what in ("transaction aborted", "partition assigned")}
        assert times["transaction aborted"] and times["partition assigned"], daemon.log[before:]
        took.append(seconds_of(times["partition assigned"][-1]) - seconds_of(times["transaction aborted"][0]))
    print("recoveries took", took)
    assert min(took) < 1, took


def seconds_of(text):
    """A time of the log in seconds since midnight."""
    hours, minutes, seconds = text[11:23].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def test_group_join_error_is_shown_in_readiness(installation):
    """The error is permanent: brokers allow session timeouts of at most half an hour."""
    config = installation.config("router")
    installation.create_topics(config)
    config["kafka"].update({"session.timeout.ms": "3600000", "max.poll.interval.ms": "3600000"})
    daemon = installation.daemon(config).start()
    waiting.until(lambda: b"session.timeout.ms" in daemon.admin("/readyz").body, SECONDS,
                  lambda: f"the reason: {daemon.admin('/readyz').body}\n{daemon.log}")


# Added partitions

@pytest.mark.slow
def test_partitions_added_while_the_router_is_down_are_routed(installation):
    """The coordinator assigns a static member that returns in time its former partitions."""
    config = installation.config()
    installation.create_topics(config, partitions=1)
    kafka = installation.kafka
    daemon = installation.start(config)
    daemon.accept()
    kafka.wait_until_routed()
    daemon.stop()
    kafka.admin.create_partitions([NewPartitions(kafka.deliveries, 6)])[kafka.deliveries].result(30)
    waiting.until(lambda: kafka.partitions(kafka.deliveries) == 6, 30, "six partitions")
    daemon.start()
    waiting.until(lambda: daemon.admin("/readyz").status in (200, 503), 30, "an answer")
    sent = [waiting.until(lambda: accepted(daemon), 60, "a delivery to be accepted") for _ in range(60)]
    wait_until_published(kafka, sent, 150)
    daemon.wait_until_ready()


def accepted(daemon):
    delivery = Delivery()
    return delivery if daemon.post(delivery).status == 200 else None


def test_partitions_added_to_a_running_router_are_routed_and_reported(installation):
    config = installation.config()
    config["admin"]["listen"] = f"127.0.0.1:{installation.port()}"
    installation.create_topics(config, partitions=1)
    kafka = installation.kafka
    daemon = installation.start(config)
    daemon.accept()
    waiting.until(lambda: state(daemon, 0) == [("routing", "")], 30, "partition 0")
    kafka.admin.create_partitions([NewPartitions(kafka.deliveries, 3)])[kafka.deliveries].result(30)
    daemon.wait_for_log("partitions were added to", 60)
    sent = [daemon.accept() for _ in range(30)]
    wait_until_published(kafka, sent, 150)
    assert daemon.metric("gatepost_partitions_added_total") == 2
    assert "losses: warning: partitions were added, so a repeat may be published again: 2\n" in installation.gatepost("status", config=str(config.directory / f"{daemon.name}.conf")).stdout


# Reloads

def test_source_added_by_a_reload_is_known_to_the_router_immediately(installation):
    """Lanes use a new configuration at once; the router's open batch still uses the previous one."""
    config = installation.config()
    config["receiver"]["threads"] = 2
    installation.create_topics(config, partitions=3)
    kafka = installation.kafka
    daemon = installation.start(config)
    load = Load(lambda: [daemon.address], threads=4, once=True).start()
    fresh = []
    for i in range(8):
        daemon.config.source(f"new{i}")
        reload(daemon)
        for _ in range(5):
            delivery = Delivery()
            assert daemon.post(delivery, source=f"new{i}").status == 200
            fresh.append(delivery)
    load.stop()
    kafka.wait_until_routed()
    assert [record.header("gatepost-reason") for record in kafka.read(kafka.quarantine)] == []
    wait_until_published(kafka, fresh)


# Order of restoring

def turns(daemon):
    """The partitions whose tables were restored one after the other, each with the number that then waited."""
    return [(int(partition), int(waiting)) for partition, waiting in re.findall(
        r"restoring a dedup table from the log partition=(\d+) records=\d+ waiting_partitions=(\d+)", daemon.log)]


def restart_and_restore_in_turn(installation, daemon):
    daemon.stop()
    daemon.environment["GATEPOST_FEW_RECORDS"] = "0"  # only one partition is restored at a time, however small
    daemon.start()


def test_tables_are_restored_one_after_the_other_the_smallest_first(installation, plain_build):
    installation.build = plain_build
    installation.create_topics(partitions=3)
    kafka = installation.kafka
    daemon = installation.start(installation.config("router"))
    sent = sum((deliveries_of(partition, n, 3) for partition, n in ((0, 20), (1, 30), (2, 10))), [])
    kafka.append(sent)
    kafka.wait_until_routed()
    restart_and_restore_in_turn(installation, daemon)
    daemon.wait_until_ready()
    assert turns(daemon) == [(2, 2), (0, 1), (1, 0)], daemon.log
    kafka.append(sent)
    later = sum((deliveries_of(partition, 5, 3) for partition in range(3)), [])
    kafka.append(later)
    kafka.wait_until_routed()
    assert_exactly_once(kafka, by_id(sent + later))


def test_table_that_cannot_be_restored_to_the_end_keeps_no_other_waiting(installation, plain_build):
    """The committed offset is behind a control record with which the log ends, so the record before it never comes."""
    installation.build = plain_build
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    first = [Delivery() for _ in range(3)]
    append_in_transactions(kafka, first)
    kafka.admin.create_partitions([NewPartitions(kafka.deliveries, 2)])[kafka.deliveries].result(30)
    waiting.until(lambda: kafka.partitions(kafka.deliveries) == 2, 30, "a second partition")
    daemon = installation.start(installation.config("router"))
    sent = deliveries_of(1, 20, 2)
    kafka.append(sent)
    wait_until_published(kafka, first + sent)
    daemon.stop()
    kafka.remove_member(daemon.name)
    commit_beyond_end(kafka, 0, kafka.ends(kafka.deliveries)[0])
    daemon.environment["GATEPOST_FEW_RECORDS"] = "0"
    daemon.start()
    waiting.until(lambda: [partition for partition, _ in turns(daemon)] == [0, 1], SECONDS, lambda: daemon.log)
    later = sum((deliveries_of(partition, 5, 2) for partition in range(2)), [])
    kafka.append(later)
    kafka.wait_until_routed()
    assert_exactly_once(kafka, by_id(first + sent + later))


def partitions_routed(kafka, ends):
    """The partitions that are routed up to these offsets."""
    committed = kafka.committed()
    return {partition for partition, end in ends.items() if committed.get(partition, 0) >= end}


@pytest.mark.slow
def test_table_that_is_read_slowly_keeps_no_other_waiting(tmp_path, plain_build):
    """A broker takes seconds for each fetch; the partitions of the other ones are restored and routed meanwhile."""
    with Cluster(nodes=3, proxied=True) as cluster, contextlib.ExitStack() as at_the_end:
        installation = Installation(tmp_path, cluster.bootstrap, plain_build)
        at_the_end.callback(installation.clean_up)
        kafka = installation.kafka
        create_deliveries(installation, [[1], [2], [2]], **{"min.insync.replicas": "1"})
        config = installation.config("router")
        daemon = installation.start(config)
        for partition, n in ((0, 2000), (1, 2500), (2, 2500)):
            kafka.append(deliveries_of(partition, n, 3, text="x" * 2000))
        kafka.wait_until_routed()
        daemon.stop()
        config["kafka"]["bootstrap.servers"] = cluster.proxied_bootstrap
        daemon.environment["GATEPOST_FEW_RECORDS"] = "0"
        with Proxies(cluster, lambda text: None) as proxies:
            proxies.delay("Fetch", 10, match=lambda rule: rule.node == 1, times=None)
            daemon.start()
            waiting.until(lambda: turns(daemon), SECONDS, lambda: daemon.log)
            assert turns(daemon)[0][0] == 0, daemon.log
            kafka.append(sum((deliveries_of(partition, 5, 3) for partition in range(3)), []))
            ends = kafka.ends(kafka.deliveries)
            waiting.until(lambda: partitions_routed(kafka, ends) >= {1, 2}, SECONDS, lambda: f"{kafka.committed()}\n{daemon.log}")
            assert {0: "restoring"}.items() <= {each["partition"]: each["state"] for each in daemon.admin("/status").json["partitions"]}.items()
            proxies.clear()
            kafka.wait_until_routed()
            daemon.stop()


# Brokers

@pytest.fixture(scope="module")
def brokers():
    with Cluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture
def spread(brokers, tmp_path):
    each = Installation(tmp_path, brokers.bootstrap)
    yield each
    each.clean_up()
    for number, node in brokers.nodes.items():  # a failed test leaves brokers killed
        if not node.is_running():
            brokers.start_node(number)


def create_deliveries(installation, replicas, **settings):
    """Create the topics; `deliveries` with a list of replicas for each partition."""
    kafka = installation.kafka
    done = installation.gatepost("topics", "create", "--partitions", "3", "--replication-factor", "3")
    assert done.returncode == 0, done.stderr
    made = kafka.configuration(kafka.deliveries)
    kafka.delete(kafka.deliveries)
    wanted = {name: made[name] for name in ("cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes",
                                            "message.timestamp.type")}
    topic = NewTopic(kafka.deliveries, len(replicas), replica_assignment=replicas, config=wanted | settings)
    waiting.until(lambda: create(kafka, topic), 60, "the topic to be created")
    waiting.until(lambda: kafka.partitions(kafka.deliveries) == len(replicas), 60, "its partitions")


def create(kafka, topic):
    try:
        kafka.admin.create_topics([topic])[topic.topic].result(30)
    except confluent_kafka.KafkaException as error:
        assert error.args[0].code() == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS, error
    return True


def leader(kafka, partition):
    return kafka.admin.list_topics(kafka.deliveries).topics[kafka.deliveries].partitions[partition].leader


@pytest.mark.slow
def test_records_are_routed_across_leader_changes(spread, brokers, new_library):
    """With a newer librdkafka, which reports the leader epoch of a record."""
    create_deliveries(spread, [[1, 2, 3], [2, 3, 1]])
    kafka = spread.kafka
    daemon = spread.daemon(spread.config())
    daemon.environment.update(new_library)
    daemon.start().wait_until_ready()
    sent = []
    for victim in (1, 2):
        sent += deliveries_of(0, 3, 2) + deliveries_of(1, 3, 2)
        for delivery in sent[-6:]:
            daemon.accept(delivery)
        wait_until_published(kafka, sent, 120)
        brokers.kill(victim)
        try:
            waiting.until(lambda: victim not in (leader(kafka, 0), leader(kafka, 1)), 60, "other leaders")
            sent += deliveries_of(0, 3, 2) + deliveries_of(1, 3, 2)
            kafka.append(sent[-6:])
            wait_until_published(kafka, sent, 120)
        finally:
            brokers.start_node(victim)
        waiting.until(lambda: all(len(each.isrs) == 3 for each in kafka.admin.list_topics(kafka.deliveries)
                                  .topics[kafka.deliveries].partitions.values()), 60, "the replicas to have caught up")
    assert daemon.log.count("asking for the position again") < 20


@pytest.mark.slow
def test_partition_without_a_leader_does_not_stop_others(spread, brokers):
    kafka = spread.kafka
    create_deliveries(spread, [[3], [1], [2]], **{"min.insync.replicas": "1"})
    config = spread.config("router")
    daemon = spread.start(config)
    sent = [deliveries_of(partition, 5, 3) for partition in range(3)]
    kafka.append(sum(sent, []))
    kafka.wait_until_routed()
    brokers.kill(3)
    waiting.until(lambda: leader(kafka, 0) not in (1, 2, 3), 60, "partition 0 to lose its leader")
    try:
        later = [deliveries_of(partition, 20, 3) for partition in (1, 2)]
        kafka.append(sum(later, []))
        wait_until_published(kafka, sum(later, []))
        wait_for_state(daemon, 0, "waiting", "no-leader")
        daemon.stop()
        daemon.start()
        more = [deliveries_of(partition, 20, 3) for partition in (1, 2)]
        kafka.append(sum(more, []))
        wait_until_published(kafka, sum(more, []))
        wait_for_state(daemon, 0, "waiting", "no-leader")
        wait_for_state(daemon, 1, "routing", "")
    finally:
        brokers.start_node(3)
    last = deliveries_of(0, 5, 3)
    waiting.until(lambda: leader(kafka, 0) == 3, 60, "the leader")
    kafka.append(last)
    wait_until_published(kafka, last)
    daemon.wait_until_ready()
    assert_exactly_once(kafka, by_id(sum(sent, []) + sum(later, []) + sum(more, []) + last))


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
def test_records_after_an_unclean_leader_election_are_published(spread, brokers, restarts):
    """The log is truncated below the committed offset, and grows beyond it again with other records."""
    kafka = spread.kafka
    create_deliveries(spread, [[1, 2]], **{"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    daemon = spread.start(spread.config("router"))
    first = [Delivery() for _ in range(50)]
    kafka.append(first)
    kafka.wait_until_routed()
    waiting.until(lambda: leader(kafka, 0) == 1, 60, "broker 1 to lead")
    brokers.kill(2)
    cut = [Delivery() for _ in range(50)]
    kafka.append(cut)
    kafka.wait_until_routed()
    if restarts:
        daemon.stop()
    brokers.kill(1)
    brokers.start_node(2)
    try:
        waiting.until(lambda: leader(kafka, 0) == 2, 90, "broker 2 to be elected")
        later = [Delivery() for _ in range(80)]
        kafka.append(later)
        if restarts:
            daemon.start()
        wait_until_published(kafka, later)
        assert daemon.metric("gatepost_log_truncations_total") == 1
        assert "the log was cut off" in daemon.log
    finally:
        brokers.start_node(1)
    daemon.wait_until_ready()
    result = tally(kafka, by_id(first + cut + later))
    assert not result.lost and not result.duplicated and not result.unexpected, str(result)


def recreate(kafka, topic, replicas, **settings):
    """Recreate a topic with these replicas and additional settings."""
    made = kafka.configuration(topic)
    kafka.delete(topic)
    wanted = {"max.message.bytes": made["max.message.bytes"]} | settings
    waiting.until(lambda: create(kafka, NewTopic(topic, 1, replica_assignment=[replicas], config=wanted)), 60, "a new topic")


def test_delivery_decided_but_truncated_before_commit_is_published_when_repeated(spread, brokers):
    """A delivery whose record is gone is accepted again: the dedup table knows it, but it was not published."""
    kafka = spread.kafka
    create_deliveries(spread, [[1, 2]], **{"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    recreate(kafka, f"{kafka.prefix}.invoice.accepted", [1, 2], **{"min.insync.replicas": "2"})
    daemon = spread.start(spread.config("router"))
    first = [Delivery() for _ in range(20)]
    kafka.append(first)
    kafka.wait_until_routed()
    waiting.until(lambda: leader(kafka, 0) == 1, 60, "broker 1 to lead")
    brokers.kill(2)
    again = Delivery()
    kafka.append([again])
    waiting.until(lambda: daemon.metric("gatepost_transactions_total", result="aborted") >= 1, SECONDS, "an abort")
    brokers.kill(1)
    brokers.start_node(2)
    try:
        waiting.until(lambda: leader(kafka, 0) == 2, 90, "broker 2 to be elected")
        later = [Delivery() for _ in range(5)]
        kafka.append([*later, again])
    finally:
        brokers.start_node(1)
    wait_until_published(kafka, [*later, again], 150)
    assert_exactly_once(kafka, by_id([*first, *later, again]))


def test_new_consumer_detects_a_truncated_log(lone):
    """Every consumer numbers its connections from 0: the same number may be a connection to a broker that has lost records."""
    cluster, installation = lone
    config, kafka = installation.config("router"), installation.kafka
    again, later = Delivery(), Delivery()
    router, log, size = decide_without_committing(installation, cluster, config, again)
    cut_off(cluster, log, size)
    fence(installation, router)
    kafka.append([later, again])
    installation.create_topics(config, partitions=1)
    wait_until_published(kafka, [later, again])


def test_log_that_has_grown_to_the_same_end_again_is_recognised_without_another_record(lone):
    cluster, installation = lone
    config, kafka = installation.config("router"), installation.kafka
    installation.create_topics(config, partitions=1)
    router = installation.start(config)
    first, cut, later = ([Delivery() for _ in range(n)] for n in (20, 3, 3))
    kafka.append(first)
    kafka.wait_until_routed()
    (log,) = cluster.directory.glob(f"node*/data/{kafka.deliveries}-0/00000000000000000000.log")
    size = log.stat().st_size
    kafka.append(cut)
    kafka.wait_until_routed()
    cut_off(cluster, log, size)
    kafka.append(later)
    wait_until_published(kafka, later)
    assert router.metric("gatepost_log_truncations_total") == 1
    assert_exactly_once(kafka, by_id([*first, *cut, *later]))


@pytest.fixture
def offset_set_by_hand(lone):
    """A router continues at offset 20, set by hand; then its log is truncated to two records."""
    cluster, installation = lone
    config, kafka = installation.config("router"), installation.kafka
    installation.create_topics(config, partitions=1)
    router = installation.start(config)
    kafka.append([Delivery(), Delivery()])
    kafka.wait_until_routed()
    (log,) = cluster.directory.glob(f"node*/data/{kafka.deliveries}-0/00000000000000000000.log")
    size = log.stat().st_size
    kafka.append([Delivery() for _ in range(18)])
    kafka.wait_until_routed()
    router.stop()
    commit_beyond_end(kafka, 0, kafka.committed()[0])
    router.start().wait_until_ready()
    wait_for_state(router, 0, "routing", "")
    cut_off(cluster, log, size)
    yield installation, config, router


@pytest.mark.parametrize("n", [10, 30])
def test_truncation_behind_a_manually_set_offset_is_detected_after_an_abort(offset_set_by_hand, n):
    """Such an offset does not identify the record before it, but the router has read that record. The group keeps the same offset
    until a transaction succeeds; the log has grown past it meanwhile or before."""
    installation, config, router = offset_set_by_hand
    kafka = installation.kafka
    kafka.delete(f"{kafka.prefix}.invoice.accepted")
    later = [Delivery() for _ in range(n)]
    kafka.append(later)
    wait_for_state(router, 0, "waiting", "output-topic")
    more = [Delivery() for _ in range(20)]
    kafka.append(more)
    installation.create_topics(config, partitions=1)
    wait_until_published(kafka, [*later, *more], 150)
    assert router.metric("gatepost_log_truncations_total") >= 1


def decide_without_committing(installation, cluster, config, delivery):
    """Start a router that decides the delivery but cannot publish it. Returns the router, the log and its former size."""
    kafka = installation.kafka
    installation.create_topics(config, partitions=1)
    router = installation.start(config)
    kafka.append([Delivery() for _ in range(5)])
    kafka.wait_until_routed()
    kafka.delete(f"{kafka.prefix}.invoice.accepted")
    (log,) = cluster.directory.glob(f"node*/data/{kafka.deliveries}-0/00000000000000000000.log")
    size = log.stat().st_size
    kafka.append([delivery])
    wait_for_state(router, 0, "waiting", "output-topic")
    return router, log, size


def cut_off(cluster, log, size):
    """Truncate a log, as when a broker's machine crashes before writing it to disk."""
    cluster.kill(1)
    os.truncate(log, size)
    start_without_checkpoints(cluster, log)


def start_without_checkpoints(cluster, log):
    """Start the broker of a modified log without its checkpoints, so that it reads the log again."""
    for state_of_producers in log.parent.glob("*.snapshot"):
        state_of_producers.unlink()
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (log.parent.parent / checkpoint).unlink(missing_ok=True)
    cluster.start_node(1)


def change_codec(log, start):
    """Mark the batch at this position of a log as compressed with an unknown codec."""
    content = bytearray(log.read_bytes())
    length, = struct.unpack_from(">i", content, start + 8)
    content[start + 22] |= 7
    struct.pack_into(">I", content, start + 17, crc32c(content[start + 21:start + 12 + length]))
    log.write_bytes(content)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


def test_batch_with_unknown_codec_stops_only_its_partition_until_deleted(lone):
    """As for a librdkafka built without zstd. It reports each attempt and returns no record."""
    cluster, installation = lone
    config, kafka = installation.config("router"), installation.kafka
    installation.create_topics(config, partitions=2)
    first, bad, behind, other = (deliveries_of(partition, 5, 2) for partition in (0, 0, 0, 1))
    kafka.append(first)
    (log,) = cluster.directory.glob(f"node*/data/{kafka.deliveries}-0/00000000000000000000.log")
    size = log.stat().st_size
    kafka.append(bad[:1])
    cluster.kill(1)
    change_codec(log, size)
    start_without_checkpoints(cluster, log)
    kafka.append([*behind, *other])
    router = installation.daemon(config).start()
    wait_until_published(kafka, other)
    wait_for_state(router, 0, "waiting", "unreadable")
    assert b"codec 0x7" in router.admin("/readyz").body, router.admin("/readyz").body
    (done,) = kafka.admin.delete_records([TopicPartition(kafka.deliveries, 0, 6)]).values()
    done.result(30)
    wait_until_published(kafka, [*first, *behind, *other])


def fence(installation, router):
    """Have other group members with the router's instance id join, one after the other, until its consumer is replaced."""
    def is_replaced():
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": installation.bootstrap, "group.id": installation.kafka.group,
            "group.instance.id": router.config["gatepost"]["instance"], "partition.assignment.strategy": "range",
            "session.timeout.ms": 15000, "enable.auto.commit": False, "log_level": 0})
        consumer.subscribe([installation.kafka.deliveries])
        until = time.monotonic() + 5
        while time.monotonic() < until and "the consumer failed and is replaced" not in router.log:
            consumer.poll(0.2)
        consumer.close()
        return "the consumer failed and is replaced" in router.log
    waiting.until(is_replaced, 60, lambda: f"the consumer to be replaced:\n{router.last_log(3000)}")


def seconds_to_route(kafka, daemon, deliveries):
    """Time from appending the records until all are published."""
    wanted = daemon.metric("gatepost_events_total") + len(deliveries)
    kafka.append(deliveries)
    begun = time.monotonic()
    waiting.until(lambda: daemon.metric("gatepost_events_total") >= wanted, 2 * SECONDS, "the events")
    return time.monotonic() - begun


def test_three_failed_partitions_do_not_slow_the_others(spread, brokers):
    """One partition is offline, one refused, one has a record that cannot be published."""
    kafka = spread.kafka
    create_deliveries(spread, [[3], [1], [2], [1], [2], [1]], **{"min.insync.replicas": "1", "max.message.bytes": LARGE_RECORD})
    commit_beyond_end(kafka, 1, 500)
    config = spread.config("router")
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    daemon = spread.daemon(config).start()

    def some(n=2000):
        return sum((deliveries_of(partition, n, 6) for partition in (3, 4, 5)), [])
    warm = seconds_to_route(kafka, daemon, some(200))
    before = seconds_to_route(kafka, daemon, some())
    brokers.kill(3)
    try:
        waiting.until(lambda: leader(kafka, 0) not in (1, 2, 3), 60, "partition 0 to lose its leader")
        assert_shown(spread, daemon, 1, "refused", "beyond-end")
        kafka.append(deliveries_of(2, 1, 6))
        poison = deliveries_of(2, 1, 6, padding="z" * (3 << 20))
        append_large(kafka, poison)
        kafka.append(deliveries_of(2, 5, 6))
        during = seconds_to_route(kafka, daemon, some())
        waiting.until(lambda: quarantined(kafka, poison[0]), SECONDS, "the stub")
        assert_shown(spread, daemon, 1, "refused", "beyond-end")
        assert [each for each, _ in state(daemon, 3) + state(daemon, 4) + state(daemon, 5)] == ["routing"] * 3
        after = seconds_to_route(kafka, daemon, some())
    finally:
        brokers.start_node(3)
    print(f"seconds for 6,000 deliveries: {warm:.1f} at first, {before:.1f} before, {during:.1f} as trouble began, {after:.1f} with it")
    assert after < 3 * before + 2


def with_small_answers(installation, partitions=2):
    """The configuration of a router that cannot read LARGE_RECORD, which the topic accepts: librdkafka closes the connection."""
    config = installation.config("router")
    config["kafka"]["receive.message.max.bytes"] = "2400000"
    config["kafka"]["fetch.max.bytes"] = "1000000"
    installation.create_topics(config, partitions=partitions)
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", LARGE_RECORD)
    return config


def append_large(kafka, deliveries):
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 8 << 20,
                                         "partitioner": "murmur2"})
    for delivery in deliveries:
        producer.produce(kafka.deliveries, delivery.body, delivery.delivery_id, headers=[
            ("gatepost-source", "invoicing"), ("gatepost-webhook-id", delivery.webhook_id),
            ("gatepost-timestamp", str(delivery.timestamp))])
    assert producer.flush(60) == 0
