"""gatepost audit: it does not say that all is well where it could check nothing, or not all."""

import dataclasses
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

import waiting
from audit_side import audit, by_hand, claim_routed, drop_first
from kafka_side import Record, murmur2_partition
from signing import Delivery, event_body

EX_DATAERR, EX_NOINPUT, EX_TEMPFAIL = 65, 66, 75
HOUR_MS = 3_600_000


@pytest.fixture
def one_partition(installation):
    """An installation whose topics have one partition each."""
    installation.create_topics(partitions=1)
    return installation


def route(installation, deliveries, config=None, hours_ago=None):
    """Have these routed by a router that then ends."""
    timestamp_ms = None if hours_ago is None else int(time.time() * 1000) - hours_ago * HOUR_MS
    installation.kafka.append(deliveries, timestamp_ms=timestamp_ms)
    daemon = installation.start(config or installation.config("router"))
    installation.kafka.wait_until_routed()
    daemon.stop()
    return deliveries


def add_partitions(kafka, topic, n):
    kafka.admin.create_partitions([NewPartitions(topic, n)])[topic].result(30)
    waiting.until(lambda: kafka.partitions(topic) == n, 30, "the partitions")


def test_deliveries_deleted_before_they_were_routed_are_counted(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(3)])
    kafka.append([Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 7)
    result = audit(one_partition)
    assert result.status == EX_DATAERR and result.faults == (0, 0, 0)
    assert result.deliveries["deletedBeforeRouting"] == 4
    assert "deleted before routing: up to 4 deliveries of partition 0, offsets 3 to 6" in result.stderr


def test_deliveries_deleted_before_any_router_came_are_counted(one_partition):
    kafka = one_partition.kafka
    kafka.append([Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 5)
    result = audit(one_partition)
    assert result.status == EX_DATAERR and result.deliveries["deletedBeforeRouting"] == 5


def test_routed_deliveries_that_were_deleted_are_not_counted(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 5)
    result = audit(one_partition, status=EX_NOINPUT)
    assert result.deliveries["deletedBeforeRouting"] == 0 and "nothing was checked" in result.stderr


def test_partitions_that_no_router_has_wait(one_partition):
    kafka = one_partition.kafka
    first = route(one_partition, [Delivery() for _ in range(6)])
    add_partitions(kafka, kafka.deliveries, 3)
    more = [Delivery() for _ in range(20)]
    kafka.append(more)
    lost = {p: sum(murmur2_partition(each.delivery_id.encode(), 3) == p for each in more) for p in range(3)}
    result = audit(one_partition, status=EX_TEMPFAIL)
    assert result.faults == (0, 0, 0) and result.deliveries["checked"] == len(first)
    assert result.deliveries["waiting"] == 20
    for each in result.deliveries["partitions"]:
        assert each["waiting"] == lost[each["partition"]] and (each["committed"] is None) == (each["partition"] > 0)
    assert f"waiting: {lost[1] + lost[2]} deliveries in partition 1, 2 that no router has committed an offset for, " in result.stderr


def test_events_of_deleted_deliveries_are_not_unexpected_after_partitions_were_added(one_partition):
    """By today's number of partitions they would come from some where nothing was deleted."""
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(20)])
    add_partitions(kafka, kafka.deliveries, 3)
    drop_first(kafka, kafka.deliveries, 6)
    assert audit(one_partition, status=EX_NOINPUT).faults == (0, 0, 0)


@pytest.mark.slow
def test_deliveries_are_not_lost_after_partitions_were_added_and_deliveries_deleted(one_partition):
    """By today's number of partitions their events would come from one where nothing can be judged."""
    kafka = one_partition.kafka
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    route(one_partition, [Delivery() for _ in range(20)], hours_ago=2)
    add_partitions(kafka, kafka.deliveries, 3)
    later = route(one_partition, [Delivery() for _ in range(20)], hours_ago=1)
    drop_first(kafka, kafka.deliveries, 1, partition=2)
    result = audit(one_partition)
    assert result.faults == (0, 0, 0)
    assert result.deliveries["checked"] == sum(partition_of(each) == 0 for each in later)


def partition_of(delivery):
    return murmur2_partition(delivery.delivery_id.encode(), 3)


@pytest.mark.slow
def test_partition_that_was_emptied_hides_nothing_of_the_others(installation):
    installation.create_topics(partitions=3)
    kafka = installation.kafka
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    route(installation, [Delivery() for _ in range(20)], hours_ago=2)
    later = route(installation, [Delivery() for _ in range(20)], hours_ago=1)
    drop_first(kafka, kafka.deliveries, kafka.ends(kafka.deliveries)[0])
    assert audit(installation).faults == (0, 0, 0)
    by_hand(kafka, kafka.read(f"{installation.prefix}.invoice.accepted"))
    _, n_duplicated, n_unexpected = audit(installation).faults
    assert n_unexpected == 0 and n_duplicated >= sum(partition_of(each) != 0 for each in later)


def test_deleted_events_are_not_lost_after_partitions_were_added_to_their_topic(one_partition):
    kafka = one_partition.kafka
    config = one_partition.config("router")
    config["source invoicing"]["key"] = "delivery-id"
    route(one_partition, [Delivery() for _ in range(20)], config)
    accepted = f"{one_partition.prefix}.invoice.accepted"
    add_partitions(kafka, accepted, 3)
    drop_first(kafka, accepted, 6)
    assert audit(one_partition, config=config, status=EX_NOINPUT).faults == (0, 0, 0)


def test_deliveries_wait_a_while_and_not_for_ever(one_partition):
    """A router may not have routed the newest records yet."""
    kafka = one_partition.kafka
    route(one_partition, [Delivery()])
    kafka.append([Delivery()])
    result = audit(one_partition)
    assert (result.deliveries["checked"], result.deliveries["waiting"]) == (1, 1)
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    kafka.append([Delivery()], timestamp_ms=int(time.time() * 1000) - HOUR_MS)
    result = audit(one_partition, status=EX_TEMPFAIL)
    assert result.deliveries["waiting"] == 2
    assert "waiting: 2 deliveries in partition 0 that no router has routed for 5 minutes, the oldest since 20" in result.stderr


def test_what_was_checked_is_said(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(3)])
    kafka.append([Delivery()])
    result = audit(one_partition)
    assert result.deliveries["checkedFrom"] <= result.deliveries["checkedTo"] <= result.deliveries["waitingSince"]
    lines = one_partition.gatepost("audit").stdout.splitlines()
    assert lines[0] == (f"3 deliveries checked, from {result.deliveries['checkedFrom']} to "
                        f"{result.deliveries['checkedTo']}; 1 not yet routed")


def test_events_that_retention_has_deleted_are_not_checked(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery(event_body(kind)) for kind in ("invoice.accepted", "invoice.rejected") for _ in range(4)])
    accepted = f"{one_partition.prefix}.invoice.accepted"
    drop_first(kafka, accepted, 2)
    result = audit(one_partition)
    assert (result.deliveries["checked"], result.deliveries["unchecked"]) == (4, 4)
    assert result.deliveries["uncheckedTo"]
    assert "not checked: 4 deliveries, because records of that time were deleted" in result.stderr
    # What was asked for could not be checked.
    assert audit(one_partition, "--since", "1h", status=EX_NOINPUT).deliveries["unchecked"] == 4


def test_deliveries_near_the_beginning_are_not_checked(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 2)
    result = audit(one_partition, status=EX_NOINPUT)
    assert (result.deliveries["checked"], result.deliveries["unchecked"]) == (0, 3)
    assert "not checked: 3 deliveries, because" in result.stderr


def test_offsets_without_records_are_counted(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery()])
    by_hand(kafka, [Record(kafka.deliveries, 0, 0, b"key", b"value", [])] * 2, end="abort")
    result = audit(one_partition)
    assert result.deliveries["offsetsWithoutRecord"] == 3
    assert "without a record: 3 offsets" in result.stderr


def test_forged_event_is_unexpected_whatever_its_timestamp(one_partition):
    """Events have the timestamps that their producers give them."""
    config = one_partition.config("router")
    config["router"]["dedup_window"] = "20min"
    kafka = one_partition.kafka
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    start = int(time.time() * 1000) - 2 * HOUR_MS
    first = Delivery()
    for minute, delivery in ((0, first), (10, first), (60, Delivery())):
        kafka.append([delivery], timestamp_ms=start + minute * 60_000)
    daemon = one_partition.start(config)
    kafka.wait_until_routed()
    daemon.stop()
    drop_first(kafka, kafka.deliveries, 1)
    result = audit(one_partition, config=config)
    assert result.faults == (0, 0, 0) and result.deliveries["checked"] == 1
    event = kafka.read(f"{one_partition.prefix}.invoice.accepted")[0]
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 3})
    producer.produce(event.topic, b"forged", b"forged", headers=event.headers, timestamp=1000)
    assert producer.flush(30) == 0
    assert audit(one_partition, config=config).faults == (0, 0, 1)


def test_times_near_the_epoch_are_times(one_partition):
    """Kafka takes negative ones for the ends of the log."""
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(3)])
    assert audit(one_partition, "--since", "1970-01-01T00:00:01Z").deliveries["checked"] == 3


# What a router published late: it was down, or behind, for longer than deliveries are kept


def signed_at(ms, n=20, ahead_s=0, **parts):
    """Deliveries that came then, with signatures whose clock was ahead."""
    return [Delivery(timestamp=ms // 1000 + ahead_s, **parts) for _ in range(n)]


@pytest.fixture
def behind(one_partition):
    """An installation whose deliveries have the times that they are given; config is its router's."""
    one_partition.kafka.configure(one_partition.kafka.deliveries, "message.timestamp.type", "CreateTime")
    one_partition.config_of_router = one_partition.config("router")
    one_partition.config_of_router["router"]["dedup_window"] = "20min"
    return one_partition


def route_late(installation, minutes_ago=120, **parts):
    """Have 20 deliveries of that time routed, and 5 of now; returns when the former came."""
    start = int(time.time() * 1000) - minutes_ago * 60_000
    installation.kafka.append(signed_at(start, **parts), timestamp_ms=start)
    route(installation, [Delivery() for _ in range(5)], installation.config_of_router)
    return start


def assert_apart(installation, n, *arguments):
    """All is well, but so many records were not compared."""
    result = audit(installation, *arguments, config=installation.config_of_router)
    assert result.faults == (0, 0, 0) and result.deliveries["checked"] == 5, result
    accepted = f"{installation.prefix}.invoice.accepted"
    assert result.topic(accepted)["unchecked"] == result.report["unchecked"] == n
    line = f"not checked: {n} published records, because their deliveries are older than those that were compared"
    done = installation.gatepost("audit", *arguments, config=installation.config_of_router)
    assert done.returncode == 0 and line in done.stderr.splitlines()


@pytest.mark.parametrize("window, ahead_s", [("20min", 0), ("10min", 299)])
def test_events_that_were_published_late_are_not_unexpected_when_their_deliveries_are_deleted(behind, window, ahead_s):
    behind.config_of_router["router"]["dedup_window"] = window
    route_late(behind, ahead_s=ahead_s)
    assert audit(behind, config=behind.config_of_router).deliveries["checked"] == 25
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    assert_apart(behind, 20)


def test_events_that_were_published_late_are_not_unexpected_after_partitions_were_added(behind):
    kafka, hour = behind.kafka, int(time.time() * 1000) - HOUR_MS
    late = signed_at(hour - HOUR_MS)
    kafka.append(late, timestamp_ms=hour - HOUR_MS)
    add_partitions(kafka, kafka.deliveries, 3)
    kafka.append(signed_at(hour), timestamp_ms=hour)
    route(behind, [Delivery() for _ in range(20)])
    drop_first(kafka, kafka.deliveries, 20)
    result = audit(behind)
    assert result.faults == (0, 0, 0) and result.deliveries["checked"] > 0
    assert result.report["unchecked"] >= sum(partition_of(each) != 0 for each in late)


def test_events_that_were_published_late_are_not_unexpected_since_later(behind):
    route_late(behind)
    assert_apart(behind, 20, "--since", "30min")


def test_since_reaches_back_to_what_may_have_been_published_late(behind):
    """Signed just after what is left out, by a clock that is ahead."""
    behind.config_of_router["router"]["dedup_window"] = "10min"
    start = route_late(behind, ahead_s=270)
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start // 1000 + 14 * 60))
    result = audit(behind, "--since", since, config=behind.config_of_router)
    assert result.faults == (0, 0, 0) and (result.deliveries["checked"], result.report["unchecked"]) == (5, 0)


def test_forged_event_is_unexpected_beside_those_published_late(behind):
    route_late(behind)
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    event = behind.kafka.read(f"{behind.prefix}.invoice.accepted")[-1]
    by_hand(behind.kafka, [dataclasses.replace(event, key=b"forged", value=b"forged")])
    result = audit(behind, config=behind.config_of_router)
    assert result.faults == (0, 0, 1) and result.report["unchecked"] == 20


@pytest.mark.slow
def test_lost_event_is_lost_beside_those_published_late(behind):
    route_late(behind)
    behind.kafka.append([Delivery()])
    waiting.until(lambda: not behind.kafka.members(), 60, "the router to have left the group")
    claim_routed(behind.kafka)
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    result = audit(behind, config=behind.config_of_router)
    assert result.faults == (1, 0, 0) and result.report["unchecked"] == 20


def test_records_of_quarantine_that_were_published_late_are_not_unexpected(behind):
    route_late(behind, body=b"{}")
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    result = audit(behind, config=behind.config_of_router)
    assert result.faults == (0, 0, 0) and result.topic(behind.kafka.quarantine)["unchecked"] == 20


@pytest.mark.parametrize("kind, topic", [("invoice.rejected", "invoice.rejected"), ("nothing.known", "quarantine")])
def test_release_is_as_new_as_its_record(behind, kind, topic):
    """It keeps the time at which its delivery was signed."""
    start = route_late(behind)
    (release,) = signed_at(start, 1, body=event_body(kind))
    headers = [("gatepost-source", b"invoicing"), ("gatepost-webhook-id", release.webhook_id.encode()),
               ("gatepost-timestamp", str(release.timestamp).encode()), ("gatepost-signature", release.signature.encode()),
               ("gatepost-released", b"0-0")]
    by_hand(behind.kafka, [Record(behind.kafka.deliveries, 0, 0, release.delivery_id.encode(), release.body, headers)])
    route(behind, [Delivery()], behind.config_of_router)
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    result = audit(behind, config=behind.config_of_router)
    counts = result.topic(f"{behind.prefix}.{topic}")
    assert result.faults == (0, 0, 0) and result.report["unchecked"] == 20
    assert (counts["expected"], counts["found"], counts["unchecked"]) == (1, 1, 0)


def test_delivery_that_was_signed_long_before_it_came_is_not_lost(behind):
    """Its event looks as if it had been published late."""
    start = route_late(behind)
    route(behind, signed_at(start, 1), behind.config_of_router)
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    assert_apart(behind, 21)


# Deliveries that a router has quarantined for a reason that the audit cannot find by itself


@pytest.fixture
def passed_over(one_partition):
    """An installation with two deliveries of which nothing was published; the second is repeated."""
    one_partition.deliveries = [Delivery(), Delivery()]
    one_partition.kafka.append([*one_partition.deliveries, one_partition.deliveries[1]])
    claim_routed(one_partition.kafka)
    return one_partition


def stub(installation, offset, reason="unpublishable", **changes):
    delivery = installation.deliveries[min(offset, 1)]
    headers = [("gatepost-source", b"invoicing"), ("gatepost-signature", delivery.signature.encode()),
               ("gatepost-reason", reason.encode()), ("gatepost-detail", b"no topic takes it"),
               ("gatepost-partition", b"0"), ("gatepost-offset", str(offset).encode())]
    record = Record(installation.kafka.quarantine, 0, 0, delivery.delivery_id.encode(), b"", headers)
    return dataclasses.replace(record, **changes)


def test_stub_stands_for_a_delivery_that_could_not_be_published(passed_over):
    by_hand(passed_over.kafka, [stub(passed_over, 0), stub(passed_over, 1)])
    result = audit(passed_over)
    assert result.faults == (0, 0, 0) and result.report["expected"] == 2
    assert result.deliveries["unpublishable"] == 2 and result.topic(passed_over.kafka.quarantine)["found"] == 2
    assert "2 in quarantine as unpublishable" in passed_over.gatepost("audit").stdout.splitlines()[0]


@pytest.mark.parametrize("wrong", ["key", "value", "place", "reason", "header"])
def test_record_that_is_not_the_stub_of_a_delivery_is_unexpected(passed_over, wrong):
    second = stub(passed_over, 1)
    headers = [each for each in second.headers if each[0] != "gatepost-offset"]
    record = {"key": stub(passed_over, 1, key=b"another"), "value": stub(passed_over, 1, value=b"{}"),
              "place": stub(passed_over, 7), "reason": stub(passed_over, 1, reason="unpublished"),
              "header": stub(passed_over, 1, headers=headers)}[wrong]
    by_hand(passed_over.kafka, [stub(passed_over, 0), record])
    result = audit(passed_over)
    assert result.faults == (1, 0, 1) and result.deliveries["unpublishable"] == 1


def test_second_stub_is_duplicated_or_unexpected(passed_over):
    by_hand(passed_over.kafka, [stub(passed_over, 0), stub(passed_over, 1), stub(passed_over, 1)])
    assert audit(passed_over).faults == (0, 1, 0)
    other = stub(passed_over, 1)
    other.headers[3] = ("gatepost-detail", b"another")
    by_hand(passed_over.kafka, [other])
    assert audit(passed_over).faults == (0, 1, 1)


def test_stub_of_a_repeat_is_unexpected(passed_over):
    by_hand(passed_over.kafka, [stub(passed_over, 0), stub(passed_over, 1), stub(passed_over, 2)])
    assert audit(passed_over).faults == (0, 0, 1)


def test_stub_of_a_delivery_that_was_published_is_unexpected(one_partition):
    one_partition.deliveries = route(one_partition, [Delivery()])
    by_hand(one_partition.kafka, [stub(one_partition, 0)])
    assert audit(one_partition).faults == (0, 0, 1)


def test_unverified_delivery_is_in_quarantine_with_its_body(passed_over):
    first, second = (stub(passed_over, offset, reason="unverified") for offset in (0, 1))
    by_hand(passed_over.kafka, [dataclasses.replace(first, value=passed_over.deliveries[0].body), second])
    result = audit(passed_over)
    assert result.faults == (1, 0, 1) and result.deliveries["unverified"] == 1
