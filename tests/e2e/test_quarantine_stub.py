"""gatepost quarantine: a stub, which has no body, is shown and released with the body of its delivery."""

import subprocess

import pytest

from audit_side import audit, by_hand, drop_first
from daemon import ENVIRONMENT
from installation import BUILD
from kafka_side import Record
from quarantine_side import Quarantine
from signing import Delivery, event_body

EX_DATAERR, EX_NOINPUT = 65, 66
SMALL, LARGE = "4000", "2000000"


def limit(kafka, size):
    """Let the topics of events take records of at most this size."""
    for topic in kafka.topics():
        if topic not in (kafka.deliveries, kafka.quarantine):
            kafka.configure(topic, "max.message.bytes", size)


@pytest.fixture
def stub(installation):
    """A running installation whose topics refused a delivery, with that delivery and the ID of its stub."""
    installation.create_topics(partitions=2)
    quarantine = Quarantine(installation, installation.start())
    limit(installation.kafka, SMALL)  # a gateway that starts would refuse these topics
    quarantine.delivery = Delivery(event_body(text="x" * 10000))
    quarantine.daemon.accept()
    quarantine.id = quarantine.send(quarantine.delivery)
    (record,) = quarantine.quarantined(quarantine.delivery.delivery_id)
    assert record.header("gatepost-reason") == "unpublishable" and record.value in (b"", None)
    return quarantine


def test_stub_is_shown_with_the_body_of_its_delivery(stub):
    entry = stub.entry(stub.delivery.delivery_id)
    assert (entry["reason"], entry["released"]) == ("unpublishable", False)
    (delivery,) = stub.deliveries(stub.delivery.delivery_id)
    text = stub.run("show", stub.id).stdout
    assert f"\ndelivery     {delivery.partition}/{delivery.offset} of {stub.kafka.deliveries}\n" in text
    assert text.endswith(f"\nbody of the delivery, {len(stub.delivery.body)} bytes\n{stub.delivery.body.decode()}\n")
    assert stub.json("show", stub.id)["value"].encode() == stub.delivery.body
    done = subprocess.run([BUILD / "gatepost", "-c", stub.daemon.config.write("raw.conf"), "quarantine", "show", "--raw", stub.id],
                          env=ENVIRONMENT, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, stub.delivery.body), done.stderr


def test_release_after_enlarging_the_topics_publishes_the_body_once(stub):
    assert stub.run("release", stub.id, "--dry-run").stdout.endswith(
        f", was unpublishable, delivery-id {stub.delivery.delivery_id}\n")
    limit(stub.kafka, LARGE)
    assert stub.release(stub.id, "--dry-run")[0]["topic"] == f"{stub.kafka.prefix}.invoice.accepted"
    assert stub.release(stub.id)[0]["outcome"] == "released"
    (event,) = stub.published(stub.delivery.delivery_id)
    assert (event.value, event.header("ce_id")) == (stub.delivery.body, f"{stub.delivery.delivery_id}.{stub.id}")
    outcome, = stub.release("--reason", "unpublishable")
    assert outcome["outcome"] == "released-before"
    assert len(stub.published(stub.delivery.delivery_id)) == 1
    assert audit(stub.installation, config=stub.daemon.config).faults == (0, 0, 0)


def test_release_that_is_refused_again_comes_back_as_a_stub_that_can_be_released(stub):
    stub.release(stub.id)
    entry = stub.entry(stub.delivery.delivery_id)
    (back,) = [each["id"] for each in stub.json("list")]
    assert entry["released"] is True and back != stub.id
    assert stub.published(stub.delivery.delivery_id) == []
    limit(stub.kafka, LARGE)
    outcome, = stub.release(back)
    assert outcome["outcome"] == "released"
    (event,) = stub.published(stub.delivery.delivery_id)
    assert event.value == stub.delivery.body


def test_release_by_reason_releases_stubs_in_any_order(stub):
    more = [Delivery(event_body(text=str(i) * 8000)) for i in range(6)]
    for delivery in more:
        stub.send(delivery)
    limit(stub.kafka, LARGE)
    assert [each["outcome"] for each in stub.release("--reason", "unpublishable")] == ["released"] * 7
    for delivery in [stub.delivery, *more]:
        (event,) = stub.published(delivery.delivery_id)
        assert event.value == delivery.body


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_stub_whose_delivery_is_gone_is_refused(stub, arguments):
    stub.daemon.stop()
    (delivery,) = stub.deliveries(stub.delivery.delivery_id)
    drop_first(stub.kafka, stub.kafka.deliveries, delivery.offset + 1, delivery.partition)
    outcome, = stub.json("release", stub.id, *arguments, expect=EX_DATAERR)
    assert outcome["outcome"] == "refused" and outcome["why"] == "only its delivery had the body, and was deleted"
    for options, printed in ((), "reason       unpublishable\n"), (("--raw",), ""):
        done = stub.run("show", *options, stub.id, expect=EX_NOINPUT)
        assert printed in done.stdout and "only its delivery had the body" in done.stderr


def test_stub_with_another_delivery_at_its_place_is_refused(installation):
    """As after the topic of deliveries was recreated."""
    installation.create_topics(partitions=1)
    daemon = installation.daemon()
    delivery = Delivery()
    installation.kafka.append([Delivery(), Delivery()])
    headers = [("gatepost-source", b"invoicing"), ("gatepost-signature", delivery.signature.encode()),
               ("gatepost-reason", b"unpublishable"), ("gatepost-detail", b"Broker: Message size too large"),
               ("gatepost-partition", b"0"), ("gatepost-offset", b"1")]
    by_hand(installation.kafka, [Record(installation.kafka.quarantine, 0, 0, delivery.delivery_id.encode(), b"", headers)])
    outcome, = Quarantine(installation, daemon).json("release", "0-0", expect=EX_DATAERR)
    assert outcome["why"] == "only its delivery had the body, and was deleted"
