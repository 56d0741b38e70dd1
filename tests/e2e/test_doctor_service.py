"""gatepost doctor: the service and its webhooks."""

import pytest

import waiting
from checkup import EX_CONFIG, EX_NOPERM, EX_UNAVAILABLE, by_sockets, examine, expect, file_of
from bad_certificates import BAD_CERTIFICATES, service_with_a_bad_certificate
from fake_service import answers
from signing import Delivery


@pytest.fixture
def subscribed(shared, healthy, service):
    """The healthy daemon's configuration, with a service."""
    config = by_sockets(shared)
    config.sections = {name: dict(options) for name, options in healthy.config.sections.items()}
    del config.sections["source orders"]
    config["service"].update(base_url=service.url, api_key_file=config.secret_file("api-key", b"the-api-key-of-the-tests"))
    return config


def webhook(service, subscribed, events, **others):
    """A webhook that leads here, whose id the file lists."""
    added = service.add({"url": "https://gateway.example/webhooks/invoicing", "events": events} | others)
    subscribed["source invoicing"]["webhook_id"] = added["id"]
    return added


def test_webhook_that_leads_here(shared, service, subscribed):
    webhook(service, subscribed, ["*"])
    checkup = examine(shared, subscribed, "--no-send")
    assert f"✓ webhook [source invoicing]: https://gateway.example/webhooks/invoicing has the events *" in checkup.lines
    assert checkup.having("✗") == [], checkup.lines
    assert not any("was not tried" in line for line in checkup.lines), checkup.lines


def test_url_of_a_webhook_that_was_not_tried_is_a_note(shared, service, subscribed):
    """By default the test deliveries go to the listeners."""
    webhook(service, subscribed, ["*"])
    assert "• webhook [source invoicing]: its URL was not tried; to try it: " in "\n".join(examine(shared, subscribed).lines)
    address = f"127.0.0.1:{shared.port()}"
    checkup = examine(shared, subscribed, "--to", f"http://{address}")
    assert not any("was not tried" in line for line in checkup.lines), checkup.lines
    service.webhooks.clear()
    webhook(service, subscribed, ["*"], url=f"http://{address}/webhooks/invoicing")
    subscribed["receiver"]["listen"] = address
    checkup = examine(shared, subscribed)
    assert any(line.startswith("✓ webhook ") for line in checkup.lines), checkup.lines
    assert not any("was not tried" in line for line in checkup.lines), checkup.lines


def test_webhook_of_another_id(shared, service, subscribed):
    """A second one with the same path may lead to another receiver."""
    added = webhook(service, subscribed, ["*"])
    subscribed["source invoicing"]["webhook_id"] = "another"
    expect(examine(shared, subscribed, "--no-send"), EX_CONFIG, "webhook [source invoicing]: https://gateway.example/webhooks/invoicing "
           f"has the id {added['id']}, which webhook_id does not list", f"remedy: add webhook_id = {added['id']} to [source invoicing] of ", "leave the ids that are there")
    second = webhook(service, subscribed, ["*"], url="https://staging.example/webhooks/invoicing")
    checkup = examine(shared, subscribed, "--no-send")
    (warning,) = [line for line in checkup.having("!") if line.startswith("! webhook ")]
    assert f"has the id {added['id']}, which webhook_id does not list: if it leads here" in warning
    assert checkup.status == 0 and any("✓ webhook " in line and "staging" in line for line in checkup.lines), (second, checkup.lines)


def test_event_of_the_webhook_without_a_topic(shared, service, subscribed):
    webhook(service, subscribed, ["invoice.accepted", "invoice.unheard-of"])
    checkup = examine(shared, subscribed, "--no-send")
    (warning,) = [line for line in checkup.having("!") if line.startswith("! webhook ")]
    assert "has events for which there is no topic (invoice.unheard-of): " in warning and "as unknown-kind" in warning
    assert checkup.status == 0, checkup.lines


@pytest.mark.parametrize("event, missing", [
    ("*", "invoice.rejected, invoice.received, invoice.duplicate, invoice.pending, invoice.amended, invoice.cancelled, reporting_batch.*"),
    ("reporting_batch.*", "reporting_batch.*"), ("held_unmapped_decision.*", None)])
def test_events_of_the_webhook_by_a_pattern(shared, service, subscribed, event, missing):
    """All kinds that the service documents need a topic, or the family."""
    webhook(service, subscribed, [event])
    subscribed["events"].update({"invoice.accepted": f"{shared.prefix}.invoice.accepted", "held_unmapped_decision.*": f"{shared.prefix}.held"})
    told = [line for line in examine(shared, subscribed, "--no-send").lines if " webhook [source invoicing]" in line]
    assert len(told) == 1 and told[0].startswith("! " if missing else "✓ "), told
    assert missing is None or f" has events for which there is no topic ({missing}): " in told[0]


def test_source_of_another_account_of_the_service(installation, service, stopped):
    """A webhook of this account would deliver a second time what already arrives; until then, it is missing."""
    stopped.config["service"].update(base_url=service.url, api_key_file=stopped.config.secret_file("api-key", b"the-api-key-of-the-tests"))
    daemon = stopped.start().wait_until_ready()
    daemon.accept(Delivery())
    waiting.until(lambda: daemon.metric("gatepost_requests_total", source="invoicing", outcome="accepted") == 1, 30, "the delivery to be counted")
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if line.startswith("! webhook ")]
    assert "although gatepostd has accepted 1 delivery of the source since its start" in warning and "another account" in warning
    assert "ensure" not in warning
    daemon.stop()
    daemon.restart().wait_until_ready()
    for _ in range(2):  # its own test deliveries are none
        waiting.until(lambda: daemon.metric("gatepost_requests_total", source="invoicing", outcome="accepted") ==
                      daemon.metric("gatepost_test_deliveries_total"), 30, "the test delivery to be routed")
        (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if line.startswith("! webhook ")]
        assert f"so it delivers nothing here: gatepost -c {file_of(daemon)} subscriptions ensure" in warning


def test_no_webhook_leads_here(shared, service, subscribed):
    service.add({"url": "https://gateway.example/elsewhere", "events": ["*"]})
    checkup = examine(shared, subscribed, "--no-send")
    assert checkup.status == 0 and any(line.startswith("! webhook ") and " subscriptions ensure" in line for line in checkup.lines)


@pytest.mark.parametrize("what", BAD_CERTIFICATES)
def test_service_with_a_bad_certificate(shared, subscribed, tmp_path, what):
    with service_with_a_bad_certificate(tmp_path, what) as (bad, ca_file, remedy):
        subscribed["service"].update({"base_url": bad.url} | ({"ca_file": ca_file} if ca_file else {}))
        expect(examine(shared, subscribed, "--no-send"), EX_UNAVAILABLE, "; the API key was not sent; remedy: ", f"; remedy: {remedy}")


@pytest.mark.parametrize("answer, status, words", [
    (401, EX_NOPERM, ("rejects the API key (401)", "api_key_file")), (403, EX_NOPERM, ("does not allow this API key", "another key")),
    (404, EX_CONFIG, ("does not have this path", "base_url")), (500, EX_UNAVAILABLE, ("has failed (500)", "later"))])
def test_service_that_refuses(shared, service, subscribed, answer, status, words):
    service.faults = [answers(answer, {"ok": False, "error": {"code": "ANY", "message": "as it says"}})]
    expect(examine(shared, subscribed, "--no-send"), status, f"service {service.url}", "as it says", *words)
