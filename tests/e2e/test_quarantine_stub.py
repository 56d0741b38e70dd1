"""gatepost quarantine: the stub of a delivery that no topic accepts has no body."""

import json

import pytest

from audit_side import by_hand
from kafka_side import Record
from quarantine_side import Quarantine
from signing import Delivery, event_body

EX_DATAERR, EX_NOINPUT = 65, 66


@pytest.fixture
def stub(installation):
    """An installation with a stub and its delivery."""
    installation.create_topics(partitions=1)
    daemon = installation.daemon()
    delivery = Delivery(event_body(text="x" * 1000))
    installation.kafka.append([Delivery(), delivery])
    headers = [("gatepost-source", b"invoicing"), ("gatepost-signature", delivery.signature.encode()),
               ("gatepost-reason", b"unpublishable"), ("gatepost-detail", b"Broker: Message size too large"),
               ("gatepost-partition", b"0"), ("gatepost-offset", b"1")]
    by_hand(installation.kafka, [Record(installation.kafka.quarantine, 0, 0, delivery.delivery_id.encode(), b"", headers)])
    quarantine = Quarantine(installation, daemon)
    quarantine.delivery = delivery
    return quarantine


def test_stub_is_listed_and_shown_with_the_location_of_its_body(stub):
    entry, = stub.list()
    assert (entry["reason"], entry["released"]) == ("unpublishable", False)
    assert entry["delivery"] == {"partition": 0, "offset": 1} and entry["deliveryId"] == stub.delivery.delivery_id
    text = stub.run("show", "0-0").stdout
    assert text.endswith(f"\nno body: its body is not in quarantine but at 0/1 of {stub.kafka.deliveries}\n")
    assert "body, 0 bytes" not in text


def test_raw_body_of_a_stub_exits_66(stub):
    done = stub.run("show", "--raw", "0-0", expect=EX_NOINPUT)
    assert done.stdout == "" and f"but at 0/1 of {stub.kafka.deliveries}" in done.stderr


@pytest.mark.parametrize("arguments", [["0-0"], ["0-0", "--force"], ["0-0", "--dry-run"]])
def test_release_of_a_stub_is_refused_with_the_remedy(stub, arguments):
    ends = stub.kafka.ends(stub.kafka.deliveries)
    outcome, = json.loads(stub.run("release", *arguments, "--json", expect=EX_DATAERR).stdout)
    assert outcome["outcome"] == "refused"
    assert f"at 0/1 of {stub.kafka.deliveries}; " in outcome["why"] and "gatepost send" in outcome["why"]
    assert stub.kafka.ends(stub.kafka.deliveries) == ends
