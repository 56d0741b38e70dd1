"""[router] verify = on: an attacker who can write to `deliveries` cannot publish events."""

import confluent_kafka
import pytest

import waiting
from reloading import reload
from signing import Delivery, event_body, now
from test_quarantine import Quarantine

OTHER_SECRET = b"a secret that the router does not have"
ALLOWANCE, TOLERANCE = 300, 300


@pytest.fixture
def verifying(installation):
    """A receiver and a separate router that verifies."""
    installation.create_topics()
    receiver = installation.start(installation.config("receiver"))
    config = installation.config("router")
    config["router"]["verify"] = "on"
    return Verifying(installation, receiver, installation.start(config))


class Verifying(Quarantine):
    def __init__(self, installation, receiver, router):
        super().__init__(installation, router)
        self.receiver, self.router = receiver, router

    def append(self, *deliveries):
        self.kafka.append(deliveries)

    def copy(self, record, *headers):
        """Append a record again with more headers, as an attacker who can write to `deliveries`."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.kafka.bootstrap, "partitioner": "murmur2", "log_level": 3})
        producer.produce(self.kafka.deliveries, record.value, record.key, headers=[*record.headers, *headers])
        assert producer.flush(30) == 0

    def assert_audit_agrees(self):
        done = self.installation.gatepost("audit", config=self.router.config)
        assert done.returncode == 0, done.stdout + done.stderr

    def reasons(self, delivery_id):
        return [record.header("gatepost-reason") for record in self.quarantined(delivery_id)]


@pytest.mark.slow
def test_forged_and_stale_records_are_unverified_and_do_not_claim_their_ids(verifying):
    genuine = [Delivery() for _ in range(3)]
    forged = [genuine[0].but(secret=OTHER_SECRET), genuine[0].but(body=event_body(), secret=OTHER_SECRET),
              genuine[1].but(timestamp=now() - TOLERANCE - ALLOWANCE - 60), Delivery(secret=OTHER_SECRET)]
    verifying.append(*forged, *forged)
    verifying.kafka.wait_until_routed()
    for delivery in genuine[:2]:
        verifying.receiver.accept(delivery)
    verifying.kafka.wait_until_routed()
    verifying.router.kill()
    verifying.router.restart()
    for delivery in genuine:
        verifying.append(delivery.but(body=event_body(), secret=OTHER_SECRET))
        verifying.receiver.accept(delivery)
        verifying.receiver.accept(delivery.signed_again())
    verifying.kafka.wait_until_routed()
    found = {delivery.delivery_id: verifying.reasons(delivery.delivery_id) for delivery in [*genuine, forged[3]]}
    assert found == {genuine[0].delivery_id: ["unverified"] * 3, genuine[1].delivery_id: ["unverified"] * 2,
                     genuine[2].delivery_id: ["unverified"], forged[3].delivery_id: ["unverified"]}
    assert sorted(record.value for record in verifying.events()) == sorted(delivery.body for delivery in genuine)
    waiting.until(lambda: verifying.router.metric("gatepost_quarantined_total", reason="unverified") >= 2, 20, "the metric")
    verifying.assert_audit_agrees()


def test_forged_test_delivery_of_gatepost_doctor_is_unverified(verifying):
    """Without the secrets that the router had, the audit learns that from quarantine."""
    forged, genuine = (Delivery(event_body("gatepost.doctor"), **each) for each in ({"secret": OTHER_SECRET}, {}))
    verifying.append(forged, genuine)
    verifying.kafka.wait_until_routed()
    assert [verifying.reasons(each.delivery_id) for each in (forged, genuine)] == [["unverified"], []]
    assert verifying.events() == []
    verifying.assert_audit_agrees()
    verifying.router.config["router"]["verify"] = "off"
    verifying.assert_audit_agrees()


@pytest.mark.slow
def test_captured_record_cannot_be_disguised_as_a_release(verifying):
    captured = verifying.receiver.accept(Delivery(event_body("no.such_kind")))
    unverified = Delivery(secret=OTHER_SECRET)
    verifying.append(unverified)
    verifying.kafka.wait_until_routed()
    (original,) = verifying.deliveries(captured.delivery_id)
    verifying.copy(original, ("gatepost-released", b"0-0"))
    verifying.kafka.wait_until_routed()
    assert verifying.reasons(captured.delivery_id) == ["unknown-kind", "unverified"]
    id = verifying.entry(unverified.delivery_id)["id"]
    (outcome,) = verifying.release(id)
    assert outcome["outcome"] == "released"
    (event,) = verifying.published(unverified.delivery_id)
    assert (event.value, event.header("ce_id")) == (unverified.body, f"{unverified.delivery_id}.{id}")
    # The release cannot be modified into another one.
    _, release = verifying.deliveries(unverified.delivery_id)
    release.headers = [(name, b"0-9999" if name == "gatepost-released" else value) for name, value in release.headers]
    verifying.copy(release)
    verifying.kafka.wait_until_routed()
    assert len(verifying.published(unverified.delivery_id)) == 1
    verifying.assert_audit_agrees()


def published_under_a_removed_secret(verifying):
    """Publish a delivery, then restart the router with another secret only. Returns the delivery."""
    config = verifying.router.config
    first = verifying.receiver.accept()
    verifying.kafka.wait_until_routed()
    verifying.router.stop()
    config["source invoicing"]["secret_file"] = config.secret_file("new", OTHER_SECRET)
    verifying.router.restart()
    return first


def test_removed_secret_causes_no_duplicates_after_a_restart(verifying):
    """A delivery published under the old secret is repeated under the new one."""
    first = published_under_a_removed_secret(verifying)
    again = Delivery(secret=OTHER_SECRET)
    verifying.append(first.but(secret=OTHER_SECRET, timestamp=now()), again)
    verifying.kafka.wait_until_routed()
    assert sorted(record.value for record in verifying.events()) == sorted([first.body, again.body])
    assert verifying.reasons(first.delivery_id) == []


def test_disabling_verify_causes_no_duplicates_of_restored_records(verifying):
    first = published_under_a_removed_secret(verifying)
    verifying.router.config["router"]["verify"] = "off"
    reload(verifying.router)
    verifying.append(first.but(secret=OTHER_SECRET, timestamp=now()))
    verifying.kafka.wait_until_routed()
    assert len(verifying.published(first.delivery_id)) == 1


@pytest.mark.slow
def test_removing_a_secret_while_a_topic_is_missing_loses_nothing(verifying):
    """An uncommitted genuine decision becomes unverified, and does not block a repeat."""
    config, kafka = verifying.router.config, verifying.kafka
    kafka.delete(f"{kafka.prefix}.invoice.rejected")
    held = verifying.receiver.accept(Delivery(event_body("invoice.rejected")))
    waiting.until(lambda: b"invoice.rejected" in verifying.router.admin("/readyz").body, 60,
                  lambda: f"the router to report the missing topic: {verifying.router.log}")
    config["source invoicing"]["secret_file"] = config.secret_file("new", OTHER_SECRET)
    reload(verifying.router)
    verifying.kafka.wait_until_routed()
    assert verifying.reasons(held.delivery_id) == ["unverified"]
    verifying.installation.create_topics()
    verifying.append(held.but(secret=OTHER_SECRET, timestamp=now()))
    verifying.kafka.wait_until_routed()
    assert [event.value for event in verifying.events()] == [held.body]
    verifying.assert_audit_agrees()


@pytest.mark.slow
def test_smaller_tolerance_causes_no_duplicates_after_a_restart(installation):
    installation.create_topics()
    receiver, router = installation.config("receiver"), installation.config("router")
    router["router"]["verify"] = "on"
    for config in (receiver, router):
        config["source invoicing"]["tolerance"] = "1h"
    verifying = Verifying(installation, installation.start(receiver), installation.start(router))
    first = verifying.receiver.accept(Delivery(timestamp=now() - 1800))
    verifying.kafka.wait_until_routed()
    verifying.router.stop()
    del router["source invoicing"]["tolerance"]
    verifying.router.restart()
    verifying.receiver.accept(first.but(timestamp=now()))
    verifying.kafka.wait_until_routed()
    assert len(verifying.published(first.delivery_id)) == 1
    assert verifying.reasons(first.delivery_id) == []


def test_verifying_router_requires_the_secrets(offline):
    config = offline.config("router")
    config["router"]["verify"] = "on"
    del config["source invoicing"]["secret_file"]
    done = offline.gatepost("check", config=config)
    assert done.returncode == 78 and "[source invoicing] needs a secret_file" in done.stderr, done.stderr
