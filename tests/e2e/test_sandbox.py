"""The sandbox's API, held against the description of the service's interface: status by status, envelope by envelope."""

import http.client
import json
import re

import pytest

import http_client
from installation import BUILD
from sandbox import SECRET, Sandbox

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
URL = "https://gateway.example/webhooks/invoicing"
CODES = {400: "VALIDATION_ERROR", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED",
         409: "CONFLICT", 413: "PAYLOAD_TOO_LARGE", 422: "UNPROCESSABLE_ENTITY", 500: "INTERNAL_ERROR"}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    options = [word for key in ("full", "reader,read-only", "ours,entity=ours", "theirs,entity=theirs",
                                "our-reader,entity=ours,read-only") for word in ("--key", key)]
    with Sandbox(BUILD, tmp_path_factory.mktemp("sandbox"), *options) as each:
        yield each


def refused(reply, status):
    """Check the envelope of an error. Returns its message; for 400 its violations, {field: message}."""
    assert reply.status == status, (reply.status, reply.body)
    assert reply.headers["content-type"] == "application/json"
    answer = reply.json
    assert answer.keys() == {"ok", "error"} and answer["ok"] is False
    error = answer["error"]
    assert error["code"] == CODES[status]
    assert isinstance(error["message"], str) and error["message"]
    assert error["requestId"] == reply.request_id
    if status == 400:
        assert error["violations"] and all(each.keys() == {"field", "message"} for each in error["violations"])
        return {each["field"]: each["message"] for each in error["violations"]}
    assert "violations" not in error
    return error["message"]


def webhook(**changes):
    return {"url": URL, "events": ["*"], "secret": SECRET} | changes


# Keys

@pytest.mark.parametrize("method, path", [("GET", "/webhooks"), ("POST", "/webhooks"), ("DELETE", "/webhooks/1"),
                                          ("GET", "/nothing")])
@pytest.mark.parametrize("key", [None, "", "wrong", "ful", "full full", "full,", "FULL"])
def test_call_without_a_valid_key_is_answered_401(sandbox, method, path, key):
    headers = {} if key is None else {"x-api-key": key}
    refused(http_client.request(sandbox.address, method, "/v1" + path, headers), 401)


def test_header_names_are_case_insensitive(sandbox):
    assert sandbox.call("GET", "/webhooks", key=None, headers={"X-API-Key": "full"}).status == 200


def test_read_only_key_cannot_write(sandbox):
    assert sandbox.call("GET", "/webhooks", key="reader").status == 200
    refused(sandbox.call("POST", "/webhooks", webhook(), key="reader"), 403)
    refused(sandbox.call("DELETE", "/webhooks/1", key="reader"), 403)


def test_key_is_generated_by_default(tmp_path):
    with Sandbox(BUILD, tmp_path, key=None) as first:
        assert re.fullmatch(UUID, first.key)
        assert first.webhooks() == []
        assert first.key not in first.log


# Paths and methods

@pytest.mark.parametrize("path", ["/", "/webhooks/", "/webhook", "/webhooks/a/b", "/webhooks/" + "a" * 65,
                                  "/%77ebhooks"])
def test_unknown_path_is_answered_404(sandbox, path):
    refused(sandbox.call("GET", path), 404)


@pytest.mark.parametrize("method, path, allowed", [("PUT", "/webhooks", "GET, POST"), ("PATCH", "/webhooks", "GET, POST"),
                                                   ("DELETE", "/webhooks", "GET, POST"),
                                                   ("GET", "/webhooks/1", "DELETE")])
def test_wrong_method_is_answered_405(sandbox, method, path, allowed):
    reply = sandbox.call(method, path)
    refused(reply, 405)
    assert reply.headers["allow"] == allowed


def test_answer_to_head_has_no_body(sandbox):
    """As bytes: Python's client throws away what is too much."""
    request = " /v1/webhooks HTTP/1.1\r\nHost: a\r\nx-api-key: full\r\n"
    with http_client.connect(sandbox.address) as connection:
        connection.sendall(f"HEAD{request}\r\nGET{request}Connection: close\r\n\r\n".encode())
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    first, second, body = received.split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 405 ") and b"\r\nAllow: GET, POST" in first
    assert re.search(rb"\r\nContent-Length: [1-9][0-9]+\b", first)
    assert second.startswith(b"HTTP/1.1 200 ") and json.loads(body) == {"ok": True, "webhooks": []}


@pytest.mark.parametrize("method, headers, status, code", [("BREW", {}, 501, "NOT_IMPLEMENTED"),
                                                           ("POST", {"expect": "more"}, 417, "EXPECTATION_FAILED")])
def test_http_level_errors_have_an_envelope(sandbox, method, headers, status, code):
    reply = sandbox.call(method, "/webhooks", body=b"{}", headers=headers)
    assert (reply.status, reply.code, reply.headers["content-type"]) == (status, code, "application/json")
    assert reply.json["ok"] is False and reply.json["error"]["requestId"] == reply.request_id


@pytest.mark.parametrize("method, path, status, phrase", [
    ("POST", "/v1/webhooks", 201, "Created"), ("POST", "/v1/sandbox/fire", 202, "Accepted"),
    ("DELETE", "/v1/webhooks/{id}", 204, "No Content"), ("POST", "/v1/invoices", 422, "Unprocessable Content")])
def test_status_has_its_reason_phrase(sandbox, method, path, status, phrase):
    id = sandbox.subscribe(URL)
    payload = {"/v1/webhooks": webhook(), "/v1/sandbox/fire": {"kind": "invoice.pending"},
               "/v1/invoices": {"invoiceNumber": "1", "supplierTaxId": "PL1", "reverseCharge": True, "lines": [{"taxCode": "S"}]}}
    connection = http.client.HTTPConnection(sandbox.address, timeout=30)
    connection.request(method, path.format(id=id), json.dumps(payload.get(path)) if path in payload else None,
                       {"x-api-key": "full", "content-type": "application/json"})
    response = connection.getresponse()
    assert (response.status, response.reason) == (status, phrase)
    connection.close()
    for each in sandbox.webhooks():
        assert sandbox.call("DELETE", f"/webhooks/{each['id']}").status == 204


def test_error_is_provoked_by_a_header(sandbox):
    refused(sandbox.call("GET", "/webhooks", headers={"x-sandbox-error": "500"}), 500)


# Webhooks

def test_webhook_is_registered_listed_and_removed(sandbox):
    reply = sandbox.call("POST", "/webhooks", webhook(events=["invoice.accepted", "invoice.rejected"]))
    assert reply.status == 201
    created = reply.json
    assert created.keys() == {"ok", "id", "url", "events", "createdAt"} and created.pop("ok") is True
    assert re.fullmatch(UUID, created["id"]) and re.fullmatch(TIME, created["createdAt"])
    assert (created["url"], created["events"]) == (URL, ["invoice.accepted", "invoice.rejected"])
    listed = sandbox.call("GET", "/webhooks")
    assert listed.json == {"ok": True, "webhooks": [created]}
    assert SECRET not in reply.body.decode() + listed.body.decode() + sandbox.log
    removed = sandbox.call("DELETE", f"/webhooks/{created['id']}")
    assert (removed.status, removed.body) == (204, b"")
    assert sandbox.webhooks() == []
    refused(sandbox.call("DELETE", f"/webhooks/{created['id']}"), 404)


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "http://127.8.9.1:8080/x", "http://[::1]:1/", "http://localhost:99/x",
                                 "http://LocalHost/x",
                                 "HTTPS://gateway.example", "https://gateway.example:8443/a?b=c"])
def test_valid_url_is_accepted(sandbox, url):
    assert sandbox.call("DELETE", f"/webhooks/{sandbox.subscribe(url)}").status == 204


@pytest.mark.parametrize("url", ["", "/webhooks", "gateway.example/x", "http://gateway.example/", "http://10.0.0.1/",
                                 "http://127.0.0.1.example/", "http://localhost.example/", "ftp://127.0.0.1/",
                                 "file:///etc/passwd", "https://", "https://user:word@gateway.example/",
                                 "https://gateway.example/#part", "https://gateway.example/a b",
                                 "https://gateway.example/\r\nx: y", "https://gäteway.example/",
                                 "https://gateway.example/" + "a" * 512])
def test_invalid_url_is_refused(sandbox, url):
    violations = refused(sandbox.call("POST", "/webhooks", webhook(url=url)), 400)
    assert violations.keys() == {"url"}


@pytest.mark.parametrize("events, field", [([], "events"), (["*", "invoice.accepted"], "events[0]"),
                                           (["invoice.accepted", "invoice.exploded"], "events[1]"),
                                           (["invoice.accepted", "invoice.accepted"], "events[1]"),
                                           (["invoice.*"], "events[0]"), (["reporting_batch."], "events[0]"),
                                           ([5], "events[0]"), ([None], "events[0]"), ([["*"]], "events[0]"),
                                           ("*", "events"), ({"0": "*"}, "events"), (["*"] * 101, "events")])
def test_invalid_events_are_refused(sandbox, events, field):
    assert refused(sandbox.call("POST", "/webhooks", webhook(events=events)), 400).keys() == {field}


def test_misspelt_event_gets_a_suggestion(sandbox):
    violations = refused(sandbox.call("POST", "/webhooks", webhook(events=["invoice.acepted"])), 400)
    assert "did you mean invoice.accepted?" in violations["events[0]"]


@pytest.mark.parametrize("payload, fields", [
    ({}, {"url", "events", "secret"}),
    (webhook(secret="short"), {"secret"}),
    (webhook(secret="s" * 65537), {"secret"}),
    (webhook(secret=None), {"secret"}),
    (webhook(secret=1234567890123456), {"secret"}),
    (webhook(url=["x"]), {"url"}),
    (webhook(colour="red"), {"colour"}),
    (webhook(colour="red", url=1, events="*"), {"colour", "url", "events"}),
    ([], {"body"}), ("text", {"body"}), (None, {"body"}), (17, {"body"}),
])
def test_invalid_webhook_payload_names_each_field(sandbox, payload, fields):
    body = json.dumps(payload).encode()
    assert refused(sandbox.call("POST", "/webhooks", body=body), 400).keys() == fields


@pytest.mark.parametrize("body", [b"", b"{", b"{}}", b"nonsense", b"\xff\xfe", b'{"url":"\xc3"}', b'{"a":1,"a":2}',
                                  b'{"url":"\\u0000"}', b"[" * 500000, b'{"a":' * 50000, b"\x00" * 100,
                                  b'"' + b"a" * 1000000])
def test_invalid_json_is_refused(sandbox, body):
    assert refused(sandbox.call("POST", "/webhooks", body=body), 400).keys() == {"body"}


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/jsonx", "application/x-www-form-urlencoded"])
def test_content_type_must_be_json(sandbox, content_type):
    headers = {"x-api-key": "full"} | ({"content-type": content_type} if content_type else {})
    reply = http_client.request(sandbox.address, "POST", "/v1/webhooks", headers, json.dumps(webhook()).encode())
    assert refused(reply, 400).keys() == {"content-type"}


def test_large_bodies_are_refused(sandbox):
    reply = sandbox.call("POST", "/webhooks", body=b" " * 10_000_000)
    refused(reply, 413)
    refused(sandbox.call("POST", "/webhooks", body=b"1" * 10_000_000, chunked=True), 413)
    assert sandbox.webhooks() == []


def test_repeated_key_header_is_refused(sandbox):
    reply = http_client.request(sandbox.address, "GET", "/v1/webhooks", [("x-api-key", "full"), ("x-api-key", "full")])
    assert refused(reply, 400).keys() == {"x-api-key"}


def test_webhooks_of_another_entity_are_hidden(sandbox):
    ours, everyones = sandbox.subscribe(URL, key="ours"), sandbox.subscribe(URL)
    ids = {key: {each["id"] for each in sandbox.webhooks(key=key)} for key in ("full", "ours", "our-reader", "theirs")}
    assert ids == {"full": {ours, everyones}, "ours": {ours}, "our-reader": {ours}, "theirs": set()}
    refused(sandbox.call("DELETE", f"/webhooks/{ours}", key="theirs"), 403)
    refused(sandbox.call("DELETE", f"/webhooks/{everyones}", key="ours"), 403)
    for each in (ours, everyones):
        assert sandbox.call("DELETE", f"/webhooks/{each}").status == 204


def test_number_of_webhooks_is_limited(sandbox):
    ids = [sandbox.subscribe(URL) for _ in range(100)]
    refused(sandbox.call("POST", "/webhooks", webhook()), 409)
    for each in ids:
        assert sandbox.call("DELETE", f"/webhooks/{each}").status == 204
