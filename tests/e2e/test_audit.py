"""gatepost audit: published events against expected events."""

import collections
import dataclasses
import threading
import time

import pytest

import waiting
from audit_side import audit, by_hand, claim_routed, drop_first
from checkup import by_sockets, examine, file_of
from load import Load
from preload import FakeClock
from reloading import reload
from signing import KINDS, Delivery, event_body

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_TEMPFAIL = 64, 65, 66, 69, 75
MINUTE_MS = 60_000
HINT = "gatepost audit: it decides by the present configuration; after a change of sources or [events], wait "


@pytest.fixture
def routed(installation):
    """An installation whose router has routed one delivery of each kind and has been stopped."""
    installation.create_topics()
    deliveries = [Delivery(event_body(kind)) for kind in KINDS]
    installation.kafka.append(deliveries)
    daemon = installation.start(installation.config("router"))
    installation.kafka.wait_until_routed()
    daemon.stop()
    installation.deliveries = deliveries
    return installation


def test_audit_passes_with_repeats_conflicts_and_quarantine(installation):
    installation.create_topics()
    config = installation.config()
    config["source invoicing"]["subject"] = "/invoiceId"
    daemon = installation.start(config)
    deliveries = [daemon.accept(Delivery(event_body(kind))) for kind in KINDS * 3]
    for delivery in deliveries[::3]:
        daemon.accept(delivery.signed_again())
    daemon.accept(deliveries[0].but(body=event_body()))
    daemon.accept(deliveries[0].but(delivery_id="a-replayed-one"))
    daemon.accept(Delivery(b"\xff no JSON"))
    daemon.accept(Delivery(b""))
    daemon.accept(Delivery(event_body("no.such.kind")))
    daemon.accept(Delivery(event_body("gatepost.doctor")))
    installation.kafka.append([Delivery()], source="no-such-source")
    installation.kafka.wait_until_routed()
    waiting.until(lambda: daemon.metric("gatepost_test_deliveries_total") == 1, 30, "the test delivery in the metrics")
    result = audit(installation, config=config)
    records = collections.Counter(record.topic for record in installation.kafka.read())
    assert result.faults == (0, 0, 0) and records[installation.kafka.quarantine] == 6
    assert {each["topic"]: each["found"] for each in result.report["topics"]} == {
        topic: records[topic] for topic in installation.kafka.published_topics()}
    assert result.report["expected"] == len(deliveries) + 6


def test_audit_passes_while_the_router_is_busy(installation):
    installation.create_topics()
    daemon = installation.start()
    deliveries = (Delivery(event_body(KINDS[i % len(KINDS)], text="x" * 300)) for i in range(1000000))
    load = Load(lambda: [daemon.address], deliveries, threads=4).start()
    waiting.until(lambda: len(installation.kafka.committed()) == 3, 60, "a commit in each partition")
    expected = []
    for _ in range(5):
        result = audit(installation)
        assert result.faults == (0, 0, 0)
        expected.append(result.report["expected"])
    load.stop()
    installation.kafka.wait_until_routed()
    assert expected == sorted(expected) and expected[-1] > expected[0]
    assert audit(installation).report["expected"] == len(load.accepted)


def test_event_published_twice_is_duplicated(routed):
    record = routed.kafka.read(f"{routed.prefix}.invoice.rejected")[0]
    by_hand(routed.kafka, [record])
    result = audit(routed)
    assert result.faults == (0, 1, 0) and HINT not in result.stderr
    assert result.examples == [("duplicated", record.delivery_id)]
    assert result.topic(record.topic)["duplicated"] == 1
    by_hand(routed.kafka, [record] * 2)
    assert audit(routed).faults == (0, 3, 0)


def test_foreign_records_are_unexpected(routed):
    event = routed.kafka.read(f"{routed.prefix}.invoice.rejected")[0]
    by_hand(routed.kafka, [dataclasses.replace(event, value=b"{}"),
                           dataclasses.replace(event, key=b"another"),
                           dataclasses.replace(event, headers=event.headers[::-1]),
                           dataclasses.replace(event, topic=routed.kafka.quarantine),
                           dataclasses.replace(event, headers=None, key=None, value=None)])
    result = audit(routed)
    assert HINT in result.stderr  # this is how an audit looks from a time shortly after a change
    assert result.faults == (0, 0, 5) and result.topic(routed.kafka.quarantine)["unexpected"] == 1
    assert result.topic(event.topic)["unexpected"] == 4


def test_deleted_events_are_lost(routed):
    topic = f"{routed.prefix}.reporting_batch"
    routed.kafka.delete(topic)
    routed.create_topics()
    result = audit(routed)
    lost = [each.delivery_id for each in routed.deliveries if b'"reporting_batch.' in each.body]
    assert result.faults == (len(lost), 0, 0) and result.topic(topic)["found"] == 0
    assert sorted(result.examples) == sorted(("lost", each) for each in lost)


def test_altered_event_is_lost_and_unexpected(installation):
    installation.create_topics()
    other = installation.config("router")
    other["source invoicing"]["key"] = "delivery-id"
    installation.kafka.append([Delivery()])
    installation.start(other)
    installation.kafka.wait_until_routed()
    changed, same = audit(installation), audit(installation, config=other)
    assert changed.faults == (1, 0, 1) and same.faults == (0, 0, 0)
    assert HINT in changed.stderr and HINT not in same.stderr
    assert installation.gatepost("audit").stderr.splitlines()[-1].startswith(HINT)
    for tolerance, wait in (("300s", "10min"), ("90s", "390s")):
        other["source invoicing"].update(key="kind", tolerance=tolerance)
        remedy = f"wait {wait}, and then compare what came later: gatepost audit --since TIME\n"
        assert remedy in audit(installation, config=other).stderr
    of_receiver = installation.config("receiver")
    note = "receiver.conf does not have the role router; the files of the routers decide what is published, and to which topics"
    assert note in installation.gatepost("audit", config=of_receiver.write("receiver.conf")).stderr
    of_receiver["source invoicing"]["key"] = "delivery-id"
    assert note not in installation.gatepost("audit", config=of_receiver.write("receiver.conf")).stderr
    of_receiver["events"]["new.*"] = f"{installation.prefix}.new"
    assert note in installation.gatepost("tail", config=of_receiver.write("receiver.conf")).stderr


def test_audit_compares_nothing_from_before_a_change_after_the_wait(installation, plain_build):
    """The service's clock was ahead by almost the tolerance."""
    installation.create_topics()
    daemon = installation.start(installation.config("router"))
    installation.kafka.append([Delivery(timestamp=int(time.time()) + 299)])
    installation.kafka.wait_until_routed()
    change = int(time.time()) + 1
    daemon.config["source invoicing"]["key"] = "delivery-id"
    installation.build = plain_build
    FakeClock(daemon).set(900)

    def since(wait_s, **options):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(change + wait_s))
        return audit(installation, "--since", at, config=daemon.config, environment=daemon.environment, **options)
    early = since(0)
    assert early.faults == (0, 0, 1) and HINT in early.stderr
    assert since(600, status=EX_NOINPUT).faults == (0, 0, 0)


def test_unpublished_deliveries_are_lost(installation):
    installation.create_topics()
    deliveries = [Delivery(event_body(KINDS[i % len(KINDS)])) for i in range(50)]
    installation.kafka.append(deliveries + deliveries[:10])
    claim_routed(installation.kafka)
    done = installation.gatepost("audit")
    assert done.returncode == EX_DATAERR
    assert done.stdout.startswith("60 deliveries checked, from 20")
    assert done.stdout.splitlines()[1].split() == ["TOPIC", "EXPECTED", "FOUND", "LOST", "DUPLICATED", "UNEXPECTED"]
    assert done.stdout.splitlines()[-1].split() == ["total", "50", "0", "50", "0", "0"]
    assert done.stderr.count("lost: ") == 20 and "and 30 more" in done.stderr
    shown = [line.partition("delivery-id ")[2].partition(",")[0] for line in done.stderr.splitlines()[:20]]
    assert set(shown) < {each.delivery_id for each in deliveries} and len(set(shown)) == 20


@pytest.mark.parametrize("topic", [None, "moved"], ids=["removed", "moved"])
def test_change_of_topics_is_named_when_records_are_lost_only(installation, topic):
    """The audit does not read the topic that has the event, since no kind leads there any more."""
    installation.create_topics()
    before, after = (installation.config("router") for _ in range(2))
    before["events"]["new.*"] = f"{installation.prefix}.new"
    if topic:
        after["events"]["new.*"] = f"{installation.prefix}.{topic}"
    for config in (before, after):
        installation.create_topics(config)
    installation.kafka.append([Delivery(event_body("new.kind"))])
    installation.start(before)
    installation.kafka.wait_until_routed()
    assert audit(installation, config=before).faults == (0, 0, 0)
    result = audit(installation, config=after)
    assert result.faults == (1, 0, 0) and HINT in result.stderr


def with_orders(config):
    return config.source("orders", b"the secret of the orders of the tests", kind="/meta/type")


def test_test_deliveries_do_not_count_after_their_source_was_removed(installation):
    """Genuine deliveries of it do: by the present configuration, they belong to quarantine."""
    installation.create_topics()
    config = by_sockets(installation)
    with_orders(config)
    daemon = installation.start(config)
    assert examine(installation, file_of(daemon)).status == 0
    installation.kafka.append([genuine := Delivery(b'{"meta":{"type":"invoice.accepted"}}')], source="orders")
    installation.kafka.wait_until_routed()
    assert [record.delivery_id for record in installation.kafka.read()] == [genuine.delivery_id]
    assert audit(installation, config=file_of(daemon)).faults == (0, 0, 0)
    del config.sections["source orders"]
    reload(daemon)
    result = audit(installation, config=file_of(daemon))
    assert result.faults == (1, 0, 1) and set(result.examples) == {("lost", genuine.delivery_id), ("unexpected", genuine.delivery_id)}


@pytest.mark.parametrize("released", [False, True], ids=["quarantined", "released"])
def test_test_deliveries_do_not_count_after_the_router_got_their_source(installation, released):
    installation.create_topics()
    receiver_config = installation.config("receiver")
    with_orders(receiver_config)
    receiver = installation.start(receiver_config)
    router = installation.start(installation.config("router"))
    examine(installation, file_of(receiver), "--to", f"http://{receiver.address}/webhooks/orders")
    kafka = installation.kafka
    waiting.until(lambda: kafka.read(kafka.quarantine), 30, "the test deliveries in quarantine")
    kafka.wait_until_routed()
    assert audit(installation, config=file_of(router)).report["expected"] == 0
    with_orders(router.config)
    reload(router)
    if released:
        done = installation.gatepost("quarantine", "release", "--reason", "unknown-source", config=file_of(router))
        assert done.returncode == 0, done.stderr
        kafka.wait_until_routed()
    assert audit(installation, config=file_of(router)).faults == (0, 0, 0)
    (record, *_) = kafka.read(kafka.quarantine)
    by_hand(kafka, [dataclasses.replace(record, topic=f"{installation.prefix}.invoice.accepted")])
    assert audit(installation, config=file_of(router)).faults == (0, 0, 1)


def test_uncommitted_records_are_not_expected(installation):
    installation.create_topics()
    installation.kafka.append([Delivery() for _ in range(5)])
    result = audit(installation, status=EX_TEMPFAIL)
    assert result.faults == (0, 0, 0) and result.report["expected"] == 0
    assert "waiting: 5 deliveries for a router, the oldest since 20" in result.stderr
    claim_routed(installation.kafka)
    installation.kafka.append([Delivery() for _ in range(5)])
    assert audit(installation).faults == (5, 0, 0)


def test_empty_topics_exit_66(installation):
    installation.create_topics()
    assert audit(installation, status=EX_NOINPUT).report["found"] == 0


def test_aborted_records_are_ignored(routed):
    by_hand(routed.kafka, routed.kafka.read() * 2, end="abort")
    result = audit(routed)
    assert result.faults == (0, 0, 0) and result.report["found"] == len(KINDS)


@pytest.mark.parametrize("commits", [False, True])
def test_audit_waits_for_an_open_transaction(routed, commits):
    producer = by_hand(routed.kafka, routed.kafka.read(), end=None)
    ending = threading.Timer(3, producer.commit_transaction if commits else producer.abort_transaction)
    ending.start()
    begun = time.monotonic()
    try:
        result = audit(routed)
    finally:
        ending.join()
    assert result.faults == (0, len(KINDS) if commits else 0, 0)
    assert time.monotonic() - begun >= 2.5


@pytest.mark.slow
def test_since_excludes_older_records(installation):
    installation.create_topics()
    kafka = installation.kafka
    old, new = [Delivery() for _ in range(7)], [Delivery() for _ in range(5)]
    kafka.append(old)
    time.sleep(1.5)
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kafka.append(new + old)
    claim_routed(kafka)
    assert audit(installation).faults == (12, 0, 0)
    result = audit(installation, "--since", since)
    assert result.faults == (5, 0, 0)
    assert sorted(id for _, id in result.examples) == sorted(each.delivery_id for each in new)
    assert audit(installation, "--since", "1h").faults == (12, 0, 0)
    assert audit(installation, "--since", "1ms", status=EX_NOINPUT).faults == (0, 0, 0)


def test_since_ignores_events_of_older_deliveries(routed):
    time.sleep(1.1)
    result = audit(routed, "--since", "1ms", status=EX_NOINPUT)
    assert result.faults == (0, 0, 0) and result.report["expected"] == 0


def test_deleted_deliveries_are_no_fault_but_later_losses_are(installation):
    """The first copy of a delivery is deleted while its repeat is still in the log: the repeat was dropped, not lost."""
    config = installation.config("router")
    config["router"]["dedup_window"] = "20min"
    installation.create_topics(config, 1)
    kafka = installation.kafka
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    start = int(time.time() * 1000) - 120 * MINUTE_MS
    repeated, later = Delivery(), Delivery()
    for minute, delivery in ((0, repeated), (10, Delivery()), (15, repeated), (60, later), (70, Delivery())):
        kafka.append([delivery], timestamp_ms=start + minute * MINUTE_MS)
    daemon = installation.start(config)
    kafka.wait_until_routed()
    daemon.stop()
    assert audit(installation, config=config).report["expected"] == 4
    drop_first(kafka, kafka.deliveries, 1)
    result = audit(installation, config=config)
    assert result.faults == (0, 0, 0) and result.report["expected"] == 2
    kafka.delete(f"{installation.prefix}.invoice.accepted")
    installation.create_topics(config, 1)
    result = audit(installation, config=config)
    assert result.faults == (2, 0, 0) and ("lost", later.delivery_id) in result.examples


def test_timestamps_falling_back_beyond_the_dedup_window_are_reported(installation):
    """Records from before them are needed again but no longer known: the audit must not guess."""
    config = installation.config("router")
    config["router"]["dedup_window"] = "20min"
    installation.create_topics(config, 1)
    kafka = installation.kafka
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    start, repeated = int(time.time() * 1000) - 120 * MINUTE_MS, Delivery()
    for minute, delivery in ((0, repeated), (100, Delivery()), (10, repeated)):
        kafka.append([delivery], timestamp_ms=start + minute * MINUTE_MS)
    daemon = installation.start(config)
    kafka.wait_until_routed()
    daemon.stop()
    assert [record.delivery_id for record in kafka.read()].count(repeated.delivery_id) == 1
    done = installation.gatepost("audit", config=config)
    assert (done.returncode, done.stdout) == (EX_DATAERR, "")
    assert f"the timestamps of {kafka.deliveries}, partition 0, fall back at offset 2" in done.stderr


def test_deleted_events_are_no_fault_and_other_topics_are_checked(installation):
    installation.create_topics(partitions=1)
    kafka = installation.kafka
    kafka.append([Delivery(event_body(kind)) for kind in ("invoice.accepted", "invoice.rejected") for _ in range(4)])
    daemon = installation.start(installation.config("router"))
    kafka.wait_until_routed()
    daemon.stop()
    accepted, rejected = (f"{installation.prefix}.invoice.{kind}" for kind in ("accepted", "rejected"))
    drop_first(kafka, accepted, 2)
    result = audit(installation)
    assert result.faults == (0, 0, 0)
    assert (result.topic(accepted)["expected"], result.topic(rejected)["expected"]) == (0, 4)
    assert result.deliveries["unchecked"] == 4
    kafka.delete(rejected)
    installation.create_topics(partitions=1)
    assert audit(installation).faults == (4, 0, 0)


def test_committed_offsets_beyond_the_end_are_reported(installation):
    installation.create_topics()
    claim_routed(installation.kafka, beyond=1)
    done = installation.gatepost("audit")
    assert done.returncode == EX_DATAERR and "deleted and recreated" in done.stderr and not done.stdout


def test_missing_topics_are_reported(installation):
    done = installation.gatepost("audit")
    assert done.returncode == EX_UNAVAILABLE and "gatepost topics create" in done.stderr


def test_audit_without_kafka_exits_69(installation):
    config = installation.config()
    config["kafka"]["bootstrap.servers"] = "127.0.0.1:9"
    done = installation.gatepost("audit", config=config)
    assert (done.returncode, done.stdout) == (EX_UNAVAILABLE, "") and "Kafka" in done.stderr


@pytest.mark.parametrize("arguments", [["--since", "nonsense"], ["--since", "2h30"], ["--since", "2026-11-31T00:00:00Z"],
                                       ["--since", "2999-01-01T00:00:00Z"], ["--since"], ["--nonsense"], ["topic"]])
def test_wrong_arguments_exit_64(installation, arguments):
    done = installation.gatepost("audit", *arguments)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and "usage: " in done.stderr
