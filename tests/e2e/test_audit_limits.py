"""gatepost audit does not report success if it could not check everything."""

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
    """Have the deliveries routed by a router that is stopped afterwards."""
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
    assert "deleted before routing: up to 4 deliveries\n" in result.stderr


def test_deliveries_deleted_before_any_router_ran_are_counted(one_partition):
    kafka = one_partition.kafka
    kafka.append([Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 5)
    result = audit(one_partition)
    assert result.status == EX_DATAERR and result.deliveries["deletedBeforeRouting"] == 5


def test_deliveries_deleted_after_routing_are_not_counted(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 5)
    result = audit(one_partition, status=EX_NOINPUT)
    assert result.deliveries["deletedBeforeRouting"] == 0 and "nothing was checked" in result.stderr


def test_deliveries_in_partitions_without_committed_offset_are_waiting(one_partition):
    kafka = one_partition.kafka
    first = route(one_partition, [Delivery() for _ in range(6)])
    add_partitions(kafka, kafka.deliveries, 3)
    kafka.append([Delivery() for _ in range(20)])
    result = audit(one_partition, status=EX_TEMPFAIL)
    assert result.faults == (0, 0, 0) and result.deliveries["checked"] == len(first)
    assert result.deliveries["waiting"] == 20
    assert "waiting: 20 deliveries for a router, " in result.stderr


def test_added_partitions_do_not_make_events_of_deleted_deliveries_unexpected(one_partition):
    """By the current number of partitions, they would come from partitions without deletions."""
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(20)])
    add_partitions(kafka, kafka.deliveries, 3)
    drop_first(kafka, kafka.deliveries, 6)
    assert audit(one_partition, status=EX_NOINPUT).faults == (0, 0, 0)


@pytest.mark.slow
def test_added_partitions_and_deleted_deliveries_do_not_cause_losses(one_partition):
    """By the current number of partitions, their events would come from a partition that cannot be checked."""
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
def test_emptied_partition_does_not_hide_faults_in_others(installation):
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


def test_added_event_partitions_do_not_make_deleted_events_lost(one_partition):
    kafka = one_partition.kafka
    config = one_partition.config("router")
    config["source invoicing"]["key"] = "delivery-id"
    route(one_partition, [Delivery() for _ in range(20)], config)
    accepted = f"{one_partition.prefix}.invoice.accepted"
    add_partitions(kafka, accepted, 3)
    drop_first(kafka, accepted, 6)
    assert audit(one_partition, config=config, status=EX_NOINPUT).faults == (0, 0, 0)


def test_unrouted_deliveries_are_waiting_for_five_minutes_only(one_partition):
    """A router may not yet have routed the newest records."""
    kafka = one_partition.kafka
    route(one_partition, [Delivery()])
    kafka.append([Delivery()])
    result = audit(one_partition)
    assert (result.deliveries["checked"], result.deliveries["waiting"]) == (1, 1)
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    kafka.append([Delivery()], timestamp_ms=int(time.time() * 1000) - HOUR_MS)
    result = audit(one_partition, status=EX_TEMPFAIL)
    assert result.deliveries["waiting"] == 2
    assert "waiting: 2 deliveries for a router, the oldest since 20" in result.stderr


def test_checked_time_range_is_reported(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(3)])
    kafka.append([Delivery()])
    result = audit(one_partition)
    assert result.deliveries["checkedFrom"] <= result.deliveries["checkedTo"] <= result.deliveries["waitingSince"]
    lines = one_partition.gatepost("audit").stdout.splitlines()
    assert lines[0] == (f"3 deliveries checked, from {result.deliveries['checkedFrom']} to "
                        f"{result.deliveries['checkedTo']}; 1 not yet routed")


def test_events_deleted_by_retention_are_not_checked(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery(event_body(kind)) for kind in ("invoice.accepted", "invoice.rejected") for _ in range(4)])
    accepted = f"{one_partition.prefix}.invoice.accepted"
    drop_first(kafka, accepted, 2)
    result = audit(one_partition)
    assert (result.deliveries["checked"], result.deliveries["unchecked"]) == (4, 4)
    assert result.deliveries["uncheckedTo"]
    assert "not checked: 4 deliveries, because records of that time or before were deleted" in result.stderr
    # The requested range could not be checked.
    assert audit(one_partition, "--since", "1h", status=EX_NOINPUT).deliveries["unchecked"] == 4


def test_deliveries_near_the_start_of_the_log_are_not_checked(one_partition):
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 2)
    result = audit(one_partition, status=EX_NOINPUT)
    assert (result.deliveries["checked"], result.deliveries["unchecked"]) == (0, 3)
    assert "not checked: 3 deliveries, because" in result.stderr


def test_forged_event_is_unexpected_whatever_its_timestamp(one_partition):
    """The timestamp of an event is chosen by its producer."""
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


def test_times_near_the_epoch_are_valid(one_partition):
    """Kafka treats negative times as the ends of the log."""
    kafka = one_partition.kafka
    route(one_partition, [Delivery() for _ in range(3)])
    assert audit(one_partition, "--since", "1970-01-01T00:00:01Z").deliveries["checked"] == 3


# Events published late: the router was down, or behind, for longer than the retention of deliveries


def signed_at(ms, n=20, ahead_s=0, **parts):
    """Deliveries received at that time, signed by a clock that is ahead."""
    return [Delivery(timestamp=ms // 1000 + ahead_s, **parts) for _ in range(n)]


@pytest.fixture
def behind(one_partition):
    """An installation in which tests choose the timestamps of deliveries; config_of_router is its router's configuration."""
    one_partition.kafka.configure(one_partition.kafka.deliveries, "message.timestamp.type", "CreateTime")
    one_partition.config_of_router = one_partition.config("router")
    one_partition.config_of_router["router"]["dedup_window"] = "20min"
    return one_partition


def route_late(installation, minutes_ago=120, **parts):
    """Have 20 deliveries of that time and 5 current ones routed. Returns the time of the former."""
    start = int(time.time() * 1000) - minutes_ago * 60_000
    installation.kafka.append(signed_at(start, **parts), timestamp_ms=start)
    route(installation, [Delivery() for _ in range(5)], installation.config_of_router)
    return start


def assert_not_compared(installation, n, *arguments):
    """The audit passes, but n records were not compared."""
    result = audit(installation, *arguments, config=installation.config_of_router)
    assert result.faults == (0, 0, 0) and result.deliveries["checked"] == 5, result
    accepted = f"{installation.prefix}.invoice.accepted"
    assert result.topic(accepted)["unchecked"] == result.report["unchecked"] == n
    line = f"not checked: {n} published records, because their deliveries are older than those compared"
    done = installation.gatepost("audit", *arguments, config=installation.config_of_router)
    assert done.returncode == 0 and line in done.stderr.splitlines()


@pytest.mark.parametrize("window, ahead_s", [("20min", 0), ("10min", 299)])
def test_late_events_of_deleted_deliveries_are_not_unexpected(behind, window, ahead_s):
    behind.config_of_router["router"]["dedup_window"] = window
    route_late(behind, ahead_s=ahead_s)
    assert audit(behind, config=behind.config_of_router).deliveries["checked"] == 25
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    assert_not_compared(behind, 20)


def test_late_events_are_not_unexpected_after_partitions_were_added(behind):
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


def test_late_events_are_not_unexpected_with_a_later_since(behind):
    route_late(behind)
    assert_not_compared(behind, 20, "--since", "30min")


def test_since_includes_deliveries_that_may_have_been_published_late(behind):
    """Signed just after the excluded range, by a clock that is ahead."""
    behind.config_of_router["router"]["dedup_window"] = "10min"
    start = route_late(behind, ahead_s=270)
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start // 1000 + 14 * 60))
    result = audit(behind, "--since", since, config=behind.config_of_router)
    assert result.faults == (0, 0, 0) and (result.deliveries["checked"], result.report["unchecked"]) == (5, 0)


def test_forged_event_among_late_events_is_unexpected(behind):
    route_late(behind)
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    event = behind.kafka.read(f"{behind.prefix}.invoice.accepted")[-1]
    by_hand(behind.kafka, [dataclasses.replace(event, key=b"forged", value=b"forged")])
    result = audit(behind, config=behind.config_of_router)
    assert result.faults == (0, 0, 1) and result.report["unchecked"] == 20


@pytest.mark.slow
def test_lost_event_among_late_events_is_lost(behind):
    route_late(behind)
    behind.kafka.append([Delivery()])
    waiting.until(lambda: not behind.kafka.members(), 60, "the router to have left the group")
    claim_routed(behind.kafka)
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    result = audit(behind, config=behind.config_of_router)
    assert result.faults == (1, 0, 0) and result.report["unchecked"] == 20


def test_late_quarantine_records_are_not_unexpected(behind):
    route_late(behind, body=b"{}")
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    result = audit(behind, config=behind.config_of_router)
    assert result.faults == (0, 0, 0) and result.topic(behind.kafka.quarantine)["unchecked"] == 20


@pytest.mark.parametrize("kind, topic", [("invoice.rejected", "invoice.rejected"), ("nothing.known", "quarantine")])
def test_release_has_the_age_of_its_record(behind, kind, topic):
    """The release keeps the time at which its delivery was signed."""
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


def test_delivery_signed_long_before_arrival_is_not_lost(behind):
    """Its event looks like one published late."""
    start = route_late(behind)
    route(behind, signed_at(start, 1), behind.config_of_router)
    drop_first(behind.kafka, behind.kafka.deliveries, 10)
    assert_not_compared(behind, 21)


# Deliveries quarantined for a reason that the audit cannot determine itself


@pytest.fixture
def unpublished(one_partition):
    """An installation with two deliveries that were not published; the second is repeated."""
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


def test_stub_accounts_for_an_unpublishable_delivery(unpublished):
    by_hand(unpublished.kafka, [stub(unpublished, 0), stub(unpublished, 1)])
    result = audit(unpublished)
    assert result.faults == (0, 0, 0) and result.report["expected"] == 2
    assert result.deliveries["acceptedInQuarantine"] == 2 and result.topic(unpublished.kafka.quarantine)["found"] == 2
    assert "2 accepted in quarantine" in unpublished.gatepost("audit").stdout.splitlines()[0]


@pytest.mark.parametrize("wrong", ["key", "value", "place", "reason", "header"])
def test_invalid_stub_is_unexpected(unpublished, wrong):
    second = stub(unpublished, 1)
    headers = [each for each in second.headers if each[0] != "gatepost-offset"]
    record = {"key": stub(unpublished, 1, key=b"another"), "value": stub(unpublished, 1, value=b"{}"),
              "place": stub(unpublished, 7), "reason": stub(unpublished, 1, reason="unpublished"),
              "header": stub(unpublished, 1, headers=headers)}[wrong]
    by_hand(unpublished.kafka, [stub(unpublished, 0), record])
    result = audit(unpublished)
    assert result.faults == (1, 0, 1) and result.deliveries["acceptedInQuarantine"] == 1


def test_second_stub_is_duplicated_if_only_its_detail_differs_else_unexpected(unpublished):
    by_hand(unpublished.kafka, [stub(unpublished, 0), stub(unpublished, 1), stub(unpublished, 1)])
    assert audit(unpublished).faults == (0, 1, 0)
    other = stub(unpublished, 1)
    other.headers[3] = ("gatepost-detail", b"the wording of another version")
    by_hand(unpublished.kafka, [other])
    assert audit(unpublished).faults == (0, 2, 0)
    other.headers[1] = ("gatepost-signature", b"another")
    by_hand(unpublished.kafka, [other])
    assert audit(unpublished).faults == (0, 2, 1)


def test_stub_of_a_repeat_is_unexpected(unpublished):
    by_hand(unpublished.kafka, [stub(unpublished, 0), stub(unpublished, 1), stub(unpublished, 2)])
    assert audit(unpublished).faults == (0, 0, 1)


def test_stub_of_a_published_delivery_is_unexpected(one_partition):
    one_partition.deliveries = route(one_partition, [Delivery()])
    by_hand(one_partition.kafka, [stub(one_partition, 0)])
    assert audit(one_partition).faults == (0, 0, 1)


def test_unverified_delivery_is_expected_in_quarantine_with_its_body(unpublished):
    first, second = (stub(unpublished, offset, reason="unverified") for offset in (0, 1))
    by_hand(unpublished.kafka, [dataclasses.replace(first, value=unpublished.deliveries[0].body), second])
    result = audit(unpublished)
    assert result.faults == (1, 0, 1) and result.deliveries["acceptedInQuarantine"] == 1
