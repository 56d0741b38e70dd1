"""What the router counts: by source, and how long deliveries take."""

import datetime

import confluent_kafka
import pytest

import waiting
from cluster import Cluster
from installation import Installation
from proxy import Proxies
from quarantine_side import Quarantine
from reloading import reload
from signing import Delivery, event_body

DELAY_SECONDS = 0.4


def counts(daemon, name):
    """{(source, kind or reason): count}, without zeros."""
    samples = {(dict(labels)["source"], dict(labels).get("kind") or dict(labels).get("reason")): n
               for labels, n in daemon.metrics(f"gatepost_{name}_total").items()}
    return {key: n for key, n in samples.items() if n}


def sources_of(daemon, name):
    return {dict(labels)["source"] for labels in daemon.metrics(f"gatepost_{name}_total")}


def write(kafka, source, key, body, received):
    """A record of `deliveries` that no receiver wrote."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(kafka.deliveries, body, key, headers=[("gatepost-source", source), ("gatepost-received", received)])
    assert producer.flush(60) == 0


def sent(daemon, source, kind):
    delivery = Delivery(event_body(kind))
    daemon.accept(delivery, source=source)
    return delivery


def test_decisions_are_counted_by_source_also_after_a_reload(installation):
    config = installation.config().source("orders")
    installation.create_topics(config)
    daemon = installation.start(config)
    assert sources_of(daemon, "events") == {"invoicing", "orders"}
    assert sources_of(daemon, "duplicates") == sources_of(daemon, "quarantined") == {"", "invoicing", "orders"}
    sent(daemon, "invoicing", "invoice.accepted")
    daemon.accept(sent(daemon, "orders", "invoice.accepted").signed_again(), source="orders")
    sent(daemon, "orders", "no.such.kind")
    config.source("third")
    reload(daemon)
    assert "third" in sources_of(daemon, "events") & sources_of(daemon, "quarantined")
    sent(daemon, "third", "invoice.rejected")
    waiting.until(lambda: counts(daemon, "events") == {("invoicing", "invoice.accepted"): 1, ("orders", "invoice.accepted"): 1,
                                                        ("third", "invoice.rejected"): 1}, 30, lambda: counts(daemon, "events"))
    waiting.until(lambda: counts(daemon, "duplicates") == {("orders", None): 1}, 30, "the duplicate")
    waiting.until(lambda: counts(daemon, "quarantined") == {("orders", "unknown-kind"): 1}, 30, "the quarantined delivery")
    del config.sections["source third"]
    reload(daemon)
    assert counts(daemon, "events")["third", "invoice.rejected"] == 1, "counters remain"


def test_foreign_records_make_no_labels(installation):
    """Whoever can write to `deliveries` chooses the source."""
    installation.create_topics()
    daemon = installation.start()
    before = {name: sources_of(daemon, name) for name in ("events", "duplicates", "quarantined")}
    names = [b"evil-%d" % i for i in range(50)] + [b'in"voicing', b"\xff", b"", b"invoicing2"]
    for i, source in enumerate(names):
        write(installation.kafka, source, b"key-%d" % i, b'{"event":"invoice.accepted"}', b"2026-11-21T03:04:05.678Z")
        write(installation.kafka, source, b"key-%d" % i, b'{"event":"invoice.accepted"}', b"2026-11-21T03:04:05.678Z")
    waiting.until(lambda: counts(daemon, "quarantined") == {("", "unknown-source"): len(names)}, 60, "the quarantined records")
    waiting.until(lambda: counts(daemon, "duplicates") == {("", None): len(names)}, 30, "the duplicates")
    assert {name: sources_of(daemon, name) for name in before} == before


def iso(moment):
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


def test_delivery_takes_from_reception_to_commit(installation):
    installation.create_topics()
    daemon = installation.start()
    now = datetime.datetime.now(datetime.timezone.utc)
    ago, ahead = now - datetime.timedelta(seconds=500), now + datetime.timedelta(seconds=500)
    for key, received in ((b"ago", iso(ago)), (b"ahead", iso(ahead)), (b"never", b"some day")):
        write(installation.kafka, b"invoicing", key, event_body("invoice.accepted"), received)
    waiting.until(lambda: counts(daemon, "events") == {("invoicing", "invoice.accepted"): 3}, 30, "three events")
    waiting.until(lambda: daemon.metric("gatepost_delivery_seconds_count") == 2, 30, "two times")
    assert 500 <= daemon.metric("gatepost_delivery_seconds_sum") < 560
    assert daemon.metric("gatepost_delivery_seconds_bucket", le="0.005") == 1, "a receiver's clock that is ahead counts as no time"


def test_restored_and_released_deliveries_do_not_count(installation):
    installation.create_topics()
    daemon = installation.start()
    quarantine = Quarantine(installation, daemon)
    daemon.accept()
    quarantine.send(Delivery(event_body("no.such.kind")))
    waiting.until(lambda: daemon.metric("gatepost_delivery_seconds_count") == 1, 30, "the event")
    quarantine.map_kinds(no_such_kind=f"{installation.prefix}.invoice.accepted")
    daemon.wait_until_ready()
    quarantine.release("--reason", "unknown-kind")
    waiting.until(lambda: daemon.metric("gatepost_events_total") == 1, 30, "the released event")
    assert daemon.metric("gatepost_remembered_ids") >= 2, "the first delivery was restored"
    assert daemon.metric("gatepost_delivery_seconds_count") == 0


@pytest.fixture(scope="module")
def proxied_broker():
    with Cluster(proxied=True) as cluster:
        yield cluster


def test_broker_round_trip_is_the_network_s(proxied_broker, tmp_path):
    """Neither the wait of a Fetch for records, nor the time of a connection's first requests."""
    with Proxies(proxied_broker) as proxies:
        installation = Installation(tmp_path, proxied_broker.bootstrap)
        try:
            config = installation.config()
            installation.create_topics(config)
            config["kafka"].update({"bootstrap.servers": proxied_broker.proxied_bootstrap})
            daemon = installation.start(config)

            def trips():
                return list(daemon.metrics("gatepost_kafka_broker_rtt_seconds").values())
            waiting.until(lambda: trips() and 0.00005 < trips()[0] < DELAY_SECONDS, 60, "the round trip without a delay")
            proxies.delay("Metadata", DELAY_SECONDS, times=None)
            waiting.until(lambda: trips() and trips()[0] > DELAY_SECONDS, 60, "the round trip with a delay")
            assert trips()[0] < 2 * DELAY_SECONDS
            assert daemon.admin("/status").json["brokers"][0]["roundTripSeconds"] > DELAY_SECONDS
            proxies.clear()
            waiting.until(lambda: trips() and trips()[0] < DELAY_SECONDS, 60, "the round trip without a delay")
        finally:
            installation.clean_up()
