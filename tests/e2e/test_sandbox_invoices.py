"""Invoices in the sandbox: submission, idempotency, the authority's answer, the status poll, refusals."""

import json
import re

import pytest

import waiting
from endpoint import Endpoint
from installation import BUILD
from sandbox import Sandbox
from test_sandbox import TIME, UUID, refused

OUTCOMES = {"accepted": ("invoice.accepted", "ACCEPTED", True), "rejected": ("invoice.rejected", "REJECTED", True),
            "pending": ("invoice.pending", "PENDING", False), "amended": ("invoice.amended", "AMENDED", True),
            "cancelled": ("invoice.cancelled", "CANCELLED", True), "held": ("held_unmapped_decision", "HELD", False)}
TAX_CODES = ["AE", "B", "E", "G", "K", "L", "M", "O", "S", "Z"]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    options = [word for key in ("full", "reader,read-only", "ours,entity=ours", "theirs,entity=theirs")
               for word in ("--key", key)]
    with Sandbox(BUILD, tmp_path_factory.mktemp("sandbox"), "--delay", "50ms", *options) as each:
        yield each


@pytest.fixture
def endpoint(sandbox):
    with Endpoint() as each:
        webhook_id = sandbox.subscribe(each.url)
        yield each
        assert sandbox.call("DELETE", f"/webhooks/{webhook_id}").status == 204


def invoice(**changes):
    """A good invoice; a change to None leaves the member out."""
    members = {"invoiceNumber": "FV/2026/1", "country": "PL", "currency": "PLN", "supplierTaxId": "PL5260001246",
               "buyerTaxId": "FR40303265045",
               "lines": [{"description": "Consulting", "quantity": 3, "unitPrice": 120.5, "taxCode": "S"}]} | changes
    return {name: value for name, value in members.items() if value is not None}


def line(**changes):
    return [{"taxCode": "S"}, {"taxCode": "S"} | changes]


def submit(sandbox, payload=None, **options):
    reply = sandbox.call("POST", "/invoices", payload or invoice(), **options)
    assert reply.status == 200, reply.body
    answer = reply.json
    assert answer.keys() == {"ok", "invoiceId", "duplicate", "clearanceStatus"} and answer["ok"] is True
    assert re.fullmatch(UUID, answer["invoiceId"])
    return answer


def poll(sandbox, invoice_id, **options):
    reply = sandbox.call("GET", f"/invoices/{invoice_id}", **options)
    assert reply.status == 200, reply.body
    assert reply.json["ok"] is True and reply.json["invoiceId"] == invoice_id
    return reply.json


def decided(sandbox, invoice_id):
    """The status poll's answer once the authority has decided."""
    return waiting.until(lambda: (record := poll(sandbox, invoice_id))["clearanceStatus"] != "SUBMITTED" and record, 30,
                         "the authority's decision")


# What becomes of an invoice

@pytest.mark.parametrize("outcome", [None, *OUTCOMES])
def test_decision_is_sent_and_can_be_polled(sandbox, endpoint, outcome):
    kind, status, terminal = OUTCOMES[outcome or "accepted"]
    answer = submit(sandbox, invoice(outcome=outcome))
    assert (answer["duplicate"], answer["clearanceStatus"]) == (False, "SUBMITTED")
    (request,) = endpoint.wait_for(1)
    event = request.json
    record = decided(sandbox, answer["invoiceId"])
    assert (event["event"], event["invoiceId"]) == (kind, answer["invoiceId"])
    assert re.fullmatch(TIME, event["createdAt"])
    assert {name: event[name] for name in invoice()} == invoice()
    assert "outcome" not in event
    for each in (event, record):
        assert (each["clearanceStatus"], each["terminal"]) == (status, terminal)
        assert ("rejectedAt" in each) == ("error" in each) == (status == "REJECTED")


@pytest.mark.parametrize("country, authority", [("PL", "KSeF"), ("IT", "SdI"), ("ES", "AEAT SII"), ("FR", "PPF"),
                                                ("DE", "Peppol"), (None, "Peppol")])
def test_rejection_record_has_the_documented_members(sandbox, endpoint, country, authority):
    answer = submit(sandbox, invoice(outcome="rejected", country=country))
    record = decided(sandbox, answer["invoiceId"])
    event = endpoint.wait_for_kind("invoice.rejected").json
    assert record.keys() == {"ok", "invoiceId", "entity", "clearanceStatus", "terminal", "rejectedAt", "error"}
    assert (record["clearanceStatus"], record["terminal"]) == ("REJECTED", True)
    assert re.fullmatch(TIME, record["rejectedAt"])
    assert record["error"].keys() == {"source", "code", "message", "detail"}
    assert record["error"]["source"] == authority and all(isinstance(text, str) for text in record["error"].values())
    assert {name: event[name] for name in ("clearanceStatus", "terminal", "rejectedAt", "error")} == \
        {name: record[name] for name in ("clearanceStatus", "terminal", "rejectedAt", "error")}


# Idempotency keys

def test_same_key_and_payload_is_a_duplicate(sandbox, endpoint):
    first = submit(sandbox, headers={"x-idempotency-key": "twice"})
    again = submit(sandbox, headers={"x-idempotency-key": "twice"})
    assert again["invoiceId"] == first["invoiceId"] and again["duplicate"] is True
    event = endpoint.wait_for_kind("invoice.duplicate").json
    assert (event["invoiceId"], event["idempotencyKey"]) == (first["invoiceId"], "twice")


def test_same_key_with_another_payload_is_a_conflict(sandbox, endpoint):
    submit(sandbox, headers={"x-idempotency-key": "other"})
    reply = sandbox.call("POST", "/invoices", invoice(invoiceNumber="2"), headers={"x-idempotency-key": "other"})
    assert "new key" in refused(reply, 409)


def test_idempotency_keys_are_separate_for_each_entity(sandbox):
    submit(sandbox, key="ours", headers={"x-idempotency-key": "apart"})
    assert submit(sandbox, invoice(invoiceNumber="2"), key="theirs",
                  headers={"x-idempotency-key": "apart"})["duplicate"] is False


def test_submissions_without_a_key_are_no_duplicates(sandbox):
    assert submit(sandbox)["invoiceId"] != submit(sandbox)["invoiceId"]


@pytest.mark.parametrize("key", ["", "a" * 256, "gr\u00fcn"])
def test_invalid_idempotency_key_is_refused(sandbox, key):
    reply = sandbox.call("POST", "/invoices", invoice(), headers={"x-idempotency-key": key})
    assert refused(reply, 400).keys() == {"x-idempotency-key"}


# What is refused

@pytest.mark.parametrize("code", TAX_CODES)
def test_tax_codes_of_en16931_are_accepted(sandbox, code):
    submit(sandbox, invoice(lines=line(taxCode=code)))


@pytest.mark.parametrize("changes, fields", [
    ({"lines": [{"taxCode": "X"}]}, {"lines[0].taxCode"}),
    ({"lines": line(taxCode="s")}, {"lines[1].taxCode"}),
    ({"lines": line(taxCode="")}, {"lines[1].taxCode"}),
    ({"lines": line(taxCode=None)}, {"lines[1].taxCode"}),
    ({"lines": line(taxCode=20)}, {"lines[1].taxCode"}),
    ({"lines": [{}, {}]}, {"lines[0].taxCode", "lines[1].taxCode"}),
    ({"lines": line(quantity="3")}, {"lines[1].quantity"}),
    ({"lines": line(unitPrice=True)}, {"lines[1].unitPrice"}),
    ({"lines": line(description=5)}, {"lines[1].description"}),
    ({"lines": line(discount=5)}, {"lines[1].discount"}),
    ({"lines": [5]}, {"lines[0]"}),
    ({"lines": []}, {"lines"}),
    ({"lines": {}}, {"lines"}),
    ({"lines": None}, {"lines"}),
    ({"lines": [{"taxCode": "S"}] * 1001}, {"lines"}),
    ({"invoiceNumber": None}, {"invoiceNumber"}),
    ({"invoiceNumber": ""}, {"invoiceNumber"}),
    ({"invoiceNumber": 17}, {"invoiceNumber"}),
    ({"supplierTaxId": None}, {"supplierTaxId"}),
    ({"supplierTaxId": "PL 526"}, {"supplierTaxId"}),
    ({"buyerTaxId": "?"}, {"buyerTaxId"}),
    ({"reverseCharge": "yes"}, {"reverseCharge"}),
    ({"country": "Poland"}, {"country"}),
    ({"currency": "zl"}, {"currency"}),
    ({"entity": "no such/name"}, {"entity"}),
    ({"outcome": "exploded"}, {"outcome"}),
    ({"colour": "red"}, {"colour"}),
    ({"c" * 500: 1}, {"c" * 61 + "..."}),
    ({"buyerTaxID": "PL1"}, {"buyerTaxID"}),
    ({"country": 1, "currency": 2, "outcome": 3}, {"country", "currency", "outcome"}),
])
def test_invalid_invoice_names_each_field(sandbox, changes, fields):
    assert refused(sandbox.call("POST", "/invoices", invoice(**changes)), 400).keys() == fields


def test_misspelt_member_gets_a_suggestion(sandbox):
    violations = refused(sandbox.call("POST", "/invoices", invoice(suplierTaxId="1")), 400)
    assert "did you mean supplierTaxId?" in violations["suplierTaxId"]


def test_number_of_listed_violations_is_limited(sandbox):
    reply = sandbox.call("POST", "/invoices", invoice(lines=[{}] * 1000))
    assert len(refused(reply, 400)) == 50


@pytest.mark.parametrize("changes, word", [
    ({"reverseCharge": True, "buyerTaxId": None}, "buyerTaxId"),
    ({"lines": line(taxCode="AE"), "buyerTaxId": None}, "buyerTaxId"),
    ({"supplierTaxId": "IT00743110158"}, "supplierTaxId"),
    ({"buyerTaxId": "IT0074311015"}, "buyerTaxId"),
    ({"buyerTaxId": "ITABCDEFGHIJK"}, "buyerTaxId"),
    ({"supplierTaxId": "00743110158", "country": "IT"}, "supplierTaxId"),
])
def test_violated_country_rule_is_answered_422(sandbox, changes, word):
    assert word in refused(sandbox.call("POST", "/invoices", invoice(**changes)), 422)


@pytest.mark.parametrize("changes", [
    {"reverseCharge": False, "buyerTaxId": None}, {"reverseCharge": True}, {"lines": line(taxCode="AE")},
    {"supplierTaxId": "IT00743110157"}, {"supplierTaxId": "00743110157", "country": "IT"},
    {"supplierTaxId": "00743110158", "country": "PL"}, {"country": None, "currency": None, "buyerTaxId": None}])
def test_invoice_that_meets_the_country_rules_is_accepted(sandbox, changes):
    submit(sandbox, invoice(**changes))


@pytest.mark.parametrize("method, path, allowed", [("PUT", "/invoices", "POST"), ("GET", "/invoices", "POST"),
                                                   ("DELETE", "/invoices/1", "GET"), ("GET", "/sandbox/fire", "POST")])
def test_wrong_method_is_answered_405(sandbox, method, path, allowed):
    reply = sandbox.call(method, path)
    refused(reply, 405)
    assert reply.headers["allow"] == allowed


def test_unknown_invoice_is_answered_404(sandbox):
    refused(sandbox.call("GET", "/invoices/0"), 404)


def test_read_only_key_can_poll_but_not_submit(sandbox):
    invoice_id = submit(sandbox)["invoiceId"]
    assert poll(sandbox, invoice_id, key="reader")
    refused(sandbox.call("POST", "/invoices", invoice(), key="reader"), 403)
    refused(sandbox.call("POST", "/sandbox/fire", {"kind": "invoice.received"}, key="reader"), 403)


def test_key_of_another_entity_is_answered_403(sandbox):
    refused(sandbox.call("POST", "/invoices", invoice(entity="ours"), key="theirs"), 403)
    refused(sandbox.call("POST", "/sandbox/fire", {"kind": "invoice.received", "entity": "ours"}, key="theirs"), 403)
    invoice_id = submit(sandbox, invoice(entity="ours"), key="ours")["invoiceId"]
    assert poll(sandbox, invoice_id, key="ours")["entity"] == "ours"
    refused(sandbox.call("GET", f"/invoices/{invoice_id}", key="theirs"), 403)


def test_submission_error_is_provoked_by_a_header(sandbox):
    refused(sandbox.call("POST", "/invoices", invoice(), headers={"x-sandbox-error": "500"}), 500)


@pytest.mark.parametrize("payload, fields", [
    ({}, {"kind"}), ({"kind": 5}, {"kind"}), ({"kind": ""}, {"kind"}), ({"kind": "a b"}, {"kind"}),
    ({"kind": "x" * 129}, {"kind"}), ({"kind": "a", "data": []}, {"data"}), ({"kind": "a", "data": {"event": "b"}}, {"data.event"}),
    ({"kind": "a", "entity": "?"}, {"entity"}), ({"kind": "a", "more": 1}, {"more"}), ([], {"body"})])
def test_invalid_control_call_names_each_field(sandbox, payload, fields):
    reply = sandbox.call("POST", "/sandbox/fire", body=json.dumps(payload).encode())
    assert refused(reply, 400).keys() == fields


def test_large_and_hostile_bodies_are_refused(sandbox):
    refused(sandbox.call("POST", "/invoices", body=b'{"lines":[' + b"0," * 5_000_000), 413)
    for body in (b"[" * 1_000_000, b'{"lines":' + b"[" * 100_000, b'{"lines":[' + b"{}," * 300_000 + b"{}]}",
                 b"{" + b",".join(b'"%d":0' % n for n in range(90_000)) + b"}"):
        assert refused(sandbox.call("POST", "/invoices", body=body), 400)


def test_deep_nesting_is_refused(sandbox):
    for depth in (40, 100_000):
        body = b'{"kind":"a","data":{"deep":' + b"[" * depth + b"]" * depth + b"}}"
        assert "deep" in refused(sandbox.call("POST", "/sandbox/fire", body=body), 400)["body"]
