"""The sandbox's API, held against the description of the service's interface: status by status, envelope by envelope."""

import re

import pytest

import http_client
import waiting
from endpoint import Endpoint
from installation import BUILD
from sandbox import OUTCOMES, SECRET, Sandbox, invoice

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
URL = "https://gateway.example/webhooks/invoicing"
CODES = {400: "VALIDATION_ERROR", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 409: "CONFLICT",
         422: "UNPROCESSABLE_ENTITY", 500: "INTERNAL_ERROR"}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    options = [word for key in ("full", "reader,read-only", "ours,entity=ours", "theirs,entity=theirs") for word in ("--key", key)]
    with Sandbox(BUILD, tmp_path_factory.mktemp("sandbox"), *options) as each:
        yield each


@pytest.fixture
def endpoint(sandbox):
    with Endpoint() as each:
        webhook_id = sandbox.subscribe(each.url)
        yield each
        assert sandbox.call("DELETE", f"/webhooks/{webhook_id}").status == 204


def refused(reply, status):
    """Check the envelope of an error. Returns its message; for 400 its violations, {field: message}."""
    assert reply.status == status, (reply.status, reply.body)
    assert reply.headers["content-type"] == "application/json"
    answer = reply.json
    assert answer.keys() == {"ok", "error"} and answer["ok"] is False
    error = answer["error"]
    assert error["code"] == CODES[status] and error["message"] and error["requestId"] == reply.request_id
    if status == 400:
        assert error["violations"] and all(each.keys() == {"field", "message"} for each in error["violations"])
        return {each["field"]: each["message"] for each in error["violations"]}
    assert "violations" not in error
    return error["message"]


def webhook(**changes):
    return {"url": URL, "events": ["*"], "secret": SECRET} | changes


# Keys and errors of every call

@pytest.mark.parametrize("method, path", [("GET", "/webhooks"), ("POST", "/webhooks"), ("DELETE", "/webhooks/1"),
                                          ("POST", "/invoices"), ("GET", "/invoices/1"), ("GET", "/nothing")])
@pytest.mark.parametrize("key", [None, "", "wrong", "full,"])
def test_call_without_a_valid_key_is_answered_401(sandbox, method, path, key):
    headers = {} if key is None else {"x-api-key": key}
    refused(http_client.request(sandbox.address, method, "/v1" + path, headers), 401)


def test_key_is_generated_by_default(tmp_path):
    with Sandbox(BUILD, tmp_path, key=None) as first:
        assert re.fullmatch(UUID, first.key) and first.webhooks() == [] and first.key not in first.log


def test_read_only_key_can_read_but_not_write(sandbox):
    invoice_id = sandbox.submit()["invoiceId"]
    for method, path in (("GET", "/webhooks"), ("GET", f"/invoices/{invoice_id}")):
        assert sandbox.call(method, path, key="reader").status == 200
    for method, path in (("POST", "/webhooks"), ("DELETE", "/webhooks/1"), ("POST", "/invoices"), ("POST", "/sandbox/fire")):
        refused(sandbox.call(method, path, {}, key="reader"), 403)


def test_key_of_another_entity_is_answered_403(sandbox):
    ours, everyones = sandbox.subscribe(URL, key="ours"), sandbox.subscribe(URL)
    ids = {key: {each["id"] for each in sandbox.webhooks(key=key)} for key in ("full", "ours", "theirs")}
    assert ids == {"full": {ours, everyones}, "ours": {ours}, "theirs": set()}
    refused(sandbox.call("DELETE", f"/webhooks/{ours}", key="theirs"), 403)
    refused(sandbox.call("DELETE", f"/webhooks/{everyones}", key="ours"), 403)
    for each in (ours, everyones):
        assert sandbox.call("DELETE", f"/webhooks/{each}").status == 204
    invoice_id = sandbox.submit(key="ours")["invoiceId"]
    refused(sandbox.call("GET", f"/invoices/{invoice_id}", key="theirs"), 403)
    refused(sandbox.call("POST", "/invoices", invoice(entity="ours"), key="theirs"), 403)
    refused(sandbox.call("POST", "/sandbox/fire", {"kind": "invoice.received", "entity": "ours"}, key="theirs"), 403)


@pytest.mark.parametrize("method, path", [("GET", "/"), ("PUT", "/webhooks"), ("DELETE", "/webhooks/1"), ("GET", "/webhooks/"),
                                          ("GET", "/invoices/a/b"), ("GET", "/invoices/1")])
def test_unknown_call_webhook_or_invoice_is_answered_404(sandbox, method, path):
    refused(sandbox.call(method, path), 404)


@pytest.mark.parametrize("method, path", [("GET", "/webhooks"), ("POST", "/invoices")])
def test_error_is_provoked_by_a_header(sandbox, method, path):
    refused(sandbox.call(method, path, headers={"x-sandbox-error": "500"}), 500)


@pytest.mark.parametrize("path", ["/webhooks", "/invoices", "/sandbox/fire"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'{"a":1,"a":2}', b"[" * 500000, b'{"a":' * 50000])
def test_body_that_is_no_json_object_is_refused(sandbox, path, body):
    assert refused(sandbox.call("POST", path, body=body), 400).keys() == {"body"}


def test_large_body_is_refused(sandbox):
    assert sandbox.call("POST", "/webhooks", body=b" " * 10_000_000).status == 413


# Webhooks

def test_webhook_is_registered_listed_and_removed(sandbox):
    reply = sandbox.call("POST", "/webhooks", webhook(events=["invoice.accepted", "reporting_batch.*"]))
    assert reply.status == 201
    created = reply.json
    assert created.keys() == {"ok", "id", "url", "events", "createdAt"} and created.pop("ok") is True
    assert re.fullmatch(UUID, created["id"]) and re.fullmatch(TIME, created["createdAt"])
    assert (created["url"], created["events"]) == (URL, ["invoice.accepted", "reporting_batch.*"])
    listed = sandbox.call("GET", "/webhooks")
    assert listed.json == {"ok": True, "webhooks": [created]}
    assert SECRET not in reply.body.decode() + listed.body.decode() + sandbox.log
    removed = sandbox.call("DELETE", f"/webhooks/{created['id']}")
    assert (removed.status, removed.body) == (204, b"")
    assert sandbox.webhooks() == []


@pytest.mark.parametrize("changes, fields", [
    ({"url": None, "events": None, "secret": None}, {"url", "events", "secret"}),
    ({"url": 5, "events": "*", "secret": 1234567890123456}, {"url", "events", "secret"}),
    ({"url": "/webhooks"}, {"url"}), ({"url": "http://gateway.example/"}, {"url"}), ({"url": "ftp://127.0.0.1/"}, {"url"}),
    ({"url": "http://127.0.0.1.example/"}, {"url"}), ({"url": "https://user:word@gateway.example/"}, {"url"}),
    ({"url": "https://gateway.example/\r\nx: y"}, {"url"}),
    ({"events": []}, {"events"}), ({"events": ["invoice.accepted", "invoice.exploded", 5]}, {"events[1]", "events[2]"}),
    ({"events": ["invoice.*"]}, {"events[0]"}), ({"secret": "short"}, {"secret"}), ({"secret": "s" * 65537}, {"secret"})])
def test_invalid_webhook_names_each_field(sandbox, changes, fields):
    assert refused(sandbox.call("POST", "/webhooks", webhook(**changes)), 400).keys() == fields


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "http://[::1]:1/", "http://localhost:99/x", "HTTPS://gateway.example:8443/a?b=c"])
def test_url_is_https_or_on_this_machine(sandbox, url):
    assert sandbox.call("DELETE", f"/webhooks/{sandbox.subscribe(url)}").status == 204


# Invoices

@pytest.mark.parametrize("outcome", [None, *OUTCOMES])
def test_decision_is_delivered_and_can_be_polled(sandbox, endpoint, outcome):
    kind, status, is_terminal = OUTCOMES[outcome or "accepted"]
    answer = sandbox.submit(invoice(outcome=outcome))
    assert answer == {"ok": True, "invoiceId": answer["invoiceId"], "duplicate": False, "clearanceStatus": "SUBMITTED"}
    record = sandbox.decided(answer["invoiceId"])
    (event,) = waiting.until(lambda: [each.json for each in endpoint.requests if each.json["invoiceId"] == answer["invoiceId"]], 30,
                             "the event")
    assert event["event"] == kind and re.fullmatch(TIME, event["createdAt"])
    assert {name: event[name] for name in invoice()} == invoice() and "outcome" not in event
    for each in (event, record):
        assert (each["clearanceStatus"], each["terminal"]) == (status, is_terminal)
        assert ("rejectedAt" in each) == ("error" in each) == (status == "REJECTED")
    if status == "REJECTED":
        assert re.fullmatch(TIME, record["rejectedAt"])
        assert record["error"].keys() == {"source", "code", "message", "detail"} and record["error"] == event["error"]


def test_same_payload_with_the_same_key_is_a_duplicate(sandbox, endpoint):
    first, again = (sandbox.submit(headers={"x-idempotency-key": "twice"}) for _ in range(2))
    assert (again["invoiceId"], again["duplicate"]) == (first["invoiceId"], True)
    event = endpoint.wait_for_kind("invoice.duplicate").json
    assert (event["invoiceId"], event["idempotencyKey"]) == (first["invoiceId"], "twice")
    other = invoice(invoiceNumber="2")
    assert "new key" in refused(sandbox.call("POST", "/invoices", other, headers={"x-idempotency-key": "twice"}), 409)
    assert sandbox.submit(other, key="ours", headers={"x-idempotency-key": "twice"})["duplicate"] is False
    assert sandbox.submit()["invoiceId"] != sandbox.submit()["invoiceId"]


@pytest.mark.parametrize("changes, fields", [
    ({"lines": [{"taxCode": "X"}, {"taxCode": "S"}, {}]}, {"lines[0].taxCode", "lines[2].taxCode"}),
    ({"lines": [5]}, {"lines[0]"}), ({"lines": []}, {"lines"}), ({"lines": None}, {"lines"}),
    ({"invoiceNumber": None, "supplierTaxId": 5}, {"invoiceNumber", "supplierTaxId"}),
    ({"reverseCharge": "yes", "outcome": "exploded"}, {"reverseCharge", "outcome"}),
    ({"entity": "no such/name"}, {"entity"})])
def test_invalid_invoice_names_each_field(sandbox, changes, fields):
    assert refused(sandbox.call("POST", "/invoices", invoice(**changes)), 400).keys() == fields


@pytest.mark.parametrize("changes, word", [
    ({"reverseCharge": True, "buyerTaxId": None}, "buyerTaxId"),
    ({"lines": [{"taxCode": "AE"}], "buyerTaxId": None}, "buyerTaxId"),
    ({"supplierTaxId": "IT00743110158"}, "supplierTaxId"), ({"buyerTaxId": "IT0074311015"}, "buyerTaxId"),
    ({"supplierTaxId": "00743110158", "country": "IT"}, "supplierTaxId")])
def test_violated_country_rule_is_answered_422(sandbox, changes, word):
    assert word in refused(sandbox.call("POST", "/invoices", invoice(**changes)), 422)


@pytest.mark.parametrize("payload, fields", [
    ({}, {"kind"}), ({"kind": 5}, {"kind"}), ({"kind": "a", "data": []}, {"data"}),
    ({"kind": "a", "data": {"event": "b"}}, {"data.event"}), ({"kind": "a", "entity": "?\r\nBcc: x"}, {"entity"})])
def test_invalid_call_for_an_event_names_each_field(sandbox, payload, fields):
    assert refused(sandbox.call("POST", "/sandbox/fire", payload), 400).keys() == fields
