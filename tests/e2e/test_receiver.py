"""The receiver's checks, as seen by an HTTP client."""

import email.utils
import re
import socket
import time

import pytest

import framing
import http_client
import waiting
from signing import SECRET, Delivery, event_body, hmac_sha256, now

PATH = "/webhooks/invoicing"
MAX_BODY = 1 << 20  # the default
HEADERS = ["x-invoicing-signature", "x-invoicing-timestamp", "x-invoicing-webhook-id", "x-invoicing-delivery-id"]
WEBHOOK_ID = "6f0d2c1e-aaaa-4000-8000-000000000002"


@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config()
    config.source("listed", webhook_id=[WEBHOOK_ID, "another-one"])
    shared.create_topics(config)
    return shared.start(config)


@pytest.fixture(scope="module")
def reader(shared, daemon):
    reader = shared.kafka.reader([*shared.kafka.topics()])
    yield reader
    reader.close()


def send(daemon, headers, body=b"", method="POST", path=PATH, **options):
    return http_client.request(daemon.address, method, path, headers, body, **options)


def written(delivery, version, **fields):
    """The bytes of a request that posts the delivery."""
    fields |= delivery.headers() | {"content-length": len(delivery.body)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {PATH} HTTP/{version}\r\n{head}\r\n".encode() + delivery.body


def assert_error(reply, status, code):
    """Check for exactly the error envelope of the service."""
    assert (reply.status, reply.code) == (status, code), reply.body
    assert set(reply.json) == {"ok", "error"} and reply.json["ok"] is False
    members = {"code", "message", "requestId"} | ({"violations"} if status == 400 else set())
    assert set(reply.json["error"]) == members
    assert reply.json["error"]["message"]
    assert reply.json["error"]["requestId"] == reply.request_id
    assert reply.headers["content-type"].startswith("application/json")


def assert_violations(reply, *fields):
    assert_error(reply, 400, "VALIDATION_ERROR")
    violations = reply.json["error"]["violations"]
    assert sorted(each["field"] for each in violations) == sorted(fields)
    assert all(set(each) == {"field", "message"} and each["message"] for each in violations)


# What is accepted

def test_genuine_delivery_is_answered_with_its_id(daemon):
    delivery = Delivery()
    reply = daemon.post(delivery)
    assert reply.status == 200
    assert reply.json == {"ok": True, "deliveryId": delivery.delivery_id}
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.request_id and not reply.closed


def test_every_answer_has_a_date_header(daemon):
    """From every part of the server (RFC 9110 section 6.6.1)."""
    asks = [lambda: daemon.post(Delivery()), lambda: send(daemon, {}, path="/"), lambda: send(daemon, {}, method="HEAD"),
            lambda: send(daemon, {}, method="BREW"), lambda: http_client.raw(daemon.address, b"no HTTP\r\n\r\n")]
    for ask in asks:
        before = int(time.time() - 0.1)  # time(2) is up to a tick of the kernel's timer behind
        date, = ask().headers.get_all("date")
        timestamp = email.utils.parsedate_to_datetime(date).timestamp()
        assert date == email.utils.formatdate(timestamp, usegmt=True)
        assert before <= timestamp <= time.time()
    last = date
    waiting.until(lambda: send(daemon, {}, path="/").headers["date"] != last, 5, "another second")


def test_accepted_delivery_is_stored_before_the_answer(shared, daemon):
    delivery = daemon.accept()
    keys = [record.key.decode() for record in shared.kafka.read(shared.kafka.deliveries)]
    assert keys.count(delivery.delivery_id) == 1


def test_header_names_are_case_insensitive(daemon):
    delivery = Delivery()
    headers = {name.upper(): value for name, value in delivery.headers().items()}
    assert send(daemon, headers, delivery.body).status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/json; charset=utf-16", "nonsense"])
def test_content_type_is_not_checked(daemon, content_type):
    delivery = Delivery()
    assert send(daemon, delivery.headers() | {"content-type": content_type}, delivery.body).status == 200


@pytest.mark.parametrize("delivery_id", ["a", "Z-9", "0" * 64])
def test_delivery_ids_of_every_allowed_length_are_accepted(daemon, delivery_id):
    assert daemon.post(Delivery(delivery_id=delivery_id)).status == 200


@pytest.mark.parametrize("target", [PATH + "?a=b", PATH + "?", "http://anything.example" + PATH])
def test_query_and_absolute_form_are_accepted(daemon, target):
    delivery = Delivery()
    assert send(daemon, delivery.headers(), delivery.body, path=target).status == 200


def test_http_1_0_request_without_host_is_accepted(daemon):
    assert http_client.raw(daemon.address, written(Delivery(), "1.0")).status == 200


def test_chunked_body_is_verified_and_stored_whole(daemon, reader):
    delivery = Delivery(event_body(text="x" * 50000))
    assert daemon.post(delivery, chunked=True).status == 200
    assert {record.value for record in reader.wait_for(delivery.delivery_id, 2)} == {delivery.body}


@pytest.mark.parametrize("version, connection, n_answered", [
    ("1.1", None, 2), ("1.1", "close", 1), ("1.1", "keep-alive, close", 1), ("1.0", None, 1), ("1.0", "keep-alive", 2)])
def test_connection_is_kept_or_closed_as_the_client_requests(daemon, version, connection, n_answered):
    """Even though the request's headers are freed when the delivery is passed to Kafka."""
    fields = {"host": "a"} | ({"connection": connection} if connection else {})
    data = b"".join(written(Delivery(), version, **fields) for _ in range(2))
    answers = framing.talk(daemon.address, data, [b"POST"] * 2)
    assert [answer.status for answer in answers] == [200] * n_answered


def test_connection_is_kept_open_after_deliveries_and_refusals(daemon):
    client = http_client.Client(daemon.address)
    for delivery, status in [(Delivery(), 200), (Delivery(secret=b"wrong" * 5), 401), (Delivery(), 200),
                             (Delivery(delivery_id="no good"), 400), (Delivery(), 200)]:
        reply = client.request("POST", PATH, delivery.headers(), delivery.body)
        assert (reply.status, reply.closed) == (status, False)
    client.close()


def test_pipelined_deliveries_are_answered_in_order(daemon):
    deliveries = [Delivery() for _ in range(5)]
    data = b""
    for delivery in deliveries:
        head = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
        data += (f"POST {PATH} HTTP/1.1\r\nhost: a\r\n{head}content-length: {len(delivery.body)}\r\n\r\n").encode()
        data += delivery.body
    with http_client.connect(daemon.address) as connection:
        connection.sendall(data)
        received = b""
        while received.count(b'"deliveryId"') < len(deliveries):
            more = connection.recv(65536)
            assert more, received
            received += more
    assert re.findall(rb'"deliveryId":"([^"]+)"', received) == [each.delivery_id.encode() for each in deliveries]


def test_delivery_is_stored_when_the_client_disconnects_before_the_answer(daemon, reader):
    delivery = Delivery()
    head = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
    with http_client.connect(daemon.address) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\nhost: a\r\n{head}content-length: {len(delivery.body)}\r\n\r\n"
                           .encode() + delivery.body)
        connection.shutdown(socket.SHUT_WR)
    reader.wait_for(delivery.delivery_id)
    assert daemon.post().status == 200


# Path and method

@pytest.mark.parametrize("path", ["/", PATH + "/", PATH + "x", "/webhooks", "/WEBHOOKS/invoicing", "//webhooks/invoicing",
                                  "/webhooks/invoic%69ng", "/healthz", "/metrics"])
def test_other_path_is_not_found(daemon, path):
    delivery = Delivery()
    assert_error(send(daemon, delivery.headers(), delivery.body, path=path), 404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_method_is_not_allowed(daemon, method):
    reply = send(daemon, {}, method=method)
    assert_error(reply, 405, "METHOD_NOT_ALLOWED")
    assert reply.headers["allow"] == "POST"


def test_head_is_not_allowed(daemon):
    reply = send(daemon, {}, method="HEAD")
    assert (reply.status, reply.headers["allow"], reply.body) == (405, "POST", b"")
    assert reply.request_id


def test_unknown_method_is_refused(daemon):
    assert send(daemon, {}, method="BREW").status in (405, 501)


# Size

def test_body_of_max_body_bytes_is_stored_unchanged(daemon, reader):
    delivery = Delivery(event_body().ljust(MAX_BODY))
    daemon.accept(delivery)
    assert [record.value == delivery.body for record in reader.wait_for(delivery.delivery_id, 2)] == [True, True]


@pytest.mark.parametrize("chunked", [False, True])
def test_body_larger_than_max_body_is_refused_and_closes_the_connection(daemon, chunked):
    reply = daemon.post(Delivery(b" " * (MAX_BODY + 1)), chunked=chunked)
    assert_error(reply, 413, "PAYLOAD_TOO_LARGE")
    assert reply.closed


def test_content_length_above_max_body_is_refused_before_the_body_arrives(daemon):
    headers = "".join(f"{name}: {value}\r\n" for name, value in Delivery().headers().items())
    reply = http_client.raw(daemon.address, f"POST {PATH} HTTP/1.1\r\nhost: a\r\n{headers}"
                                            f"content-length: {MAX_BODY + 1}\r\n\r\n".encode())
    assert_error(reply, 413, "PAYLOAD_TOO_LARGE")


def test_empty_body_is_a_genuine_delivery(daemon):
    daemon.accept(Delivery(b""))


# The four headers

@pytest.mark.parametrize("name", HEADERS)
def test_missing_header_is_named(daemon, name):
    delivery = Delivery()
    headers = delivery.headers()
    del headers[name]
    assert_violations(send(daemon, headers, delivery.body), name)


def test_all_invalid_headers_are_named_together(daemon):
    assert_violations(send(daemon, {}, b"{}"), *HEADERS)
    assert_violations(send(daemon, {name: "?" for name in HEADERS}, b"{}"), *HEADERS)


@pytest.mark.parametrize("name", HEADERS)
def test_repeated_header_is_named_once(daemon, name):
    delivery = Delivery()
    headers = delivery.headers()
    assert_violations(send(daemon, [*headers.items(), (name, headers[name])], delivery.body), name)


DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize("name, value", [
    ("signature", DIGEST), ("signature", "sha256="), ("signature", "sha256=" + DIGEST[1:]),
    ("signature", "sha256=" + DIGEST + "0"), ("signature", "sha256=" + DIGEST.upper()),
    ("signature", "SHA256=" + DIGEST), ("signature", "sha256=" + DIGEST[1:] + "g"), ("signature", "sha1=" + DIGEST),
    ("signature", f"sha256={DIGEST},sha256={DIGEST}"),
    ("timestamp", ""), ("timestamp", "123456789"), ("timestamp", "12345678901"), ("timestamp", "-123456789"),
    ("timestamp", "+123456789"), ("timestamp", "0x12345678"), ("timestamp", "1234567.90"),
    ("webhook-id", ""), ("webhook-id", "a" * 65), ("webhook-id", "a_b"), ("webhook-id", "a b"),
    ("delivery-id", ""), ("delivery-id", "a" * 65), ("delivery-id", "a/b"), ("delivery-id", "ä"),
    ("delivery-id", "{6f0d}"),
])
def test_malformed_header_is_named(daemon, name, value):
    delivery = Delivery()
    headers = delivery.headers() | {f"x-invoicing-{name}": value}
    assert_violations(send(daemon, headers, delivery.body), f"x-invoicing-{name}")


# Webhook, time, signature

def test_listed_webhook_is_accepted(daemon):
    daemon.accept(Delivery(webhook_id=WEBHOOK_ID), source="listed")
    daemon.accept(Delivery(webhook_id="another-one"), source="listed")


@pytest.mark.parametrize("webhook_id", ["another-on", "another-one2", "ANOTHER-ONE", WEBHOOK_ID[:-1]])
def test_unlisted_webhook_is_forbidden(daemon, webhook_id):
    assert_error(daemon.post(Delivery(webhook_id=webhook_id), source="listed"), 403, "FORBIDDEN")


@pytest.mark.parametrize("seconds", [-290, 290])
def test_timestamp_within_the_tolerance_is_accepted(daemon, seconds):
    daemon.accept(Delivery(timestamp=now() + seconds))


@pytest.mark.parametrize("seconds", [-310, 310, -86400, 86400])
def test_timestamp_outside_the_tolerance_is_stale(daemon, seconds):
    assert_error(daemon.post(Delivery(timestamp=now() + seconds)), 401, "STALE_TIMESTAMP")


def test_signature_with_another_secret_is_forged(daemon):
    assert_error(daemon.post(Delivery(secret=b"some other secret of somebody")), 401, "INVALID_SIGNATURE")


def test_signature_covers_every_byte_of_timestamp_and_body(daemon):
    delivery = Delivery()
    for headers, body in [
            (delivery.headers(), delivery.body + b" "), (delivery.headers(), delivery.body[:-1]),
            (delivery.headers(), b"\0" + delivery.body), (delivery.headers(), delivery.body.swapcase()),
            (delivery.headers() | {"x-invoicing-timestamp": str(delivery.timestamp - 1)}, delivery.body)]:
        assert_error(send(daemon, headers, body), 401, "INVALID_SIGNATURE")


@pytest.mark.parametrize("digit", [0, 31, 63])
def test_signature_with_one_wrong_digit_is_forged(daemon, digit):
    delivery = Delivery()
    digits = list(delivery.signature.removeprefix("sha256="))
    digits[digit] = "0" if digits[digit] != "0" else "1"
    headers = delivery.headers() | {"x-invoicing-signature": "sha256=" + "".join(digits)}
    assert_error(send(daemon, headers, delivery.body), 401, "INVALID_SIGNATURE")


def test_every_source_has_its_own_secret_and_headers(installation):
    config = installation.config().source("other", b"the secret of the other source")
    installation.create_topics(config)
    daemon = installation.start(config)
    daemon.accept(Delivery(secret=b"the secret of the other source"), source="other")
    assert_error(daemon.post(Delivery(), source="other"), 401, "INVALID_SIGNATURE")
    delivery = Delivery()
    reply = send(daemon, delivery.headers("x-invoicing"), delivery.body, path="/webhooks/other")
    assert_violations(reply, *[name.replace("invoicing", "other") for name in HEADERS])


def test_forged_delivery_is_refused_before_parsing_and_leaves_no_record(shared, daemon):
    forged = [Delivery(b"{" * 1000, secret=b"no secret of ours at all"), Delivery(b"\0\xff", secret=b"nor is this one"),
              Delivery(secret=b"and a third wrong one")]
    for delivery in forged:
        assert_error(daemon.post(delivery), 401, "INVALID_SIGNATURE")
    genuine = daemon.accept()
    keys = {record.key.decode() for record in shared.kafka.read(shared.kafka.deliveries)}
    assert genuine.delivery_id in keys and not keys & {each.delivery_id for each in forged}


def test_expected_signature_is_never_disclosed(daemon):
    delivery = Delivery(secret=b"not the secret that is configured")
    reply = daemon.post(delivery)
    expected = hmac_sha256(SECRET, delivery.timestamp, delivery.body)
    seen = str(reply.headers) + reply.body.decode() + daemon.log
    assert reply.status == 401
    assert expected not in seen and expected[:16] not in seen and SECRET.decode() not in seen


# The order of the checks: each request fails two checks, and the first one answers.

def test_path_is_checked_before_method(daemon):
    assert send(daemon, {}, method="GET", path="/elsewhere").status == 404


def test_method_is_checked_before_size(daemon):
    reply = http_client.raw(daemon.address, f"PUT {PATH} HTTP/1.1\r\nhost: a\r\ncontent-length: {MAX_BODY + 1}\r\n\r\n"
                            .encode())
    assert reply.status == 405


def test_length_is_checked_before_headers(daemon):
    assert send(daemon, {}, b" " * (MAX_BODY + 1)).status == 413


def test_too_large_chunked_body_is_refused_for_its_headers_first(daemon):
    """The headers are refused before the size is known."""
    body = b" " * (MAX_BODY + 1)
    assert_error(send(daemon, {}, body, chunked=True), 400, "VALIDATION_ERROR")
    assert send(daemon, Delivery(body).headers(), body, chunked=True).status == 413


def test_headers_are_checked_before_webhook(daemon):
    delivery = Delivery(webhook_id="stranger", delivery_id="no good")
    assert_violations(daemon.post(delivery, source="listed"), "x-listed-delivery-id")


def test_webhook_is_checked_before_time(daemon):
    delivery = Delivery(webhook_id="stranger", timestamp=now() - 3600)
    assert daemon.post(delivery, source="listed").status == 403


def test_time_is_checked_before_signature(daemon):
    delivery = Delivery(timestamp=now() - 3600, secret=b"a wrong secret for sure")
    assert_error(daemon.post(delivery), 401, "STALE_TIMESTAMP")


# Request ids, log, metrics

def test_every_answer_has_a_unique_request_id(daemon):
    replies = [daemon.post(), daemon.post(Delivery(secret=b"wrong secret, sixteen")), send(daemon, {}),
               send(daemon, {}, method="GET"), send(daemon, {}, path="/x"), daemon.post(Delivery(timestamp=now() - 9999))]
    ids = [reply.request_id for reply in replies]
    assert all(ids) and len(set(ids)) == len(ids)


def test_request_id_of_a_refusal_is_logged(daemon):
    def logged():
        request_id = daemon.post(Delivery(secret=b"wrong secret, sixteen")).request_id
        time.sleep(0.1)  # the log is rate-limited; avoid a flood
        return request_id in daemon.log
    waiting.until(logged, 15, "a logged refusal with its request id")


def test_flood_of_forged_deliveries_is_rate_limited_in_the_log(daemon):
    def logged():
        """Other refusals, of the tests before, have lines of their own."""
        return sum("outcome=forged" in message for _, message in daemon.log_messages())
    before, begun = logged(), time.monotonic()
    client = http_client.Client(daemon.address)
    for _ in range(300):
        delivery = Delivery(secret=b"wrong secret, sixteen")
        assert client.request("POST", PATH, delivery.headers(), delivery.body).status == 401
    client.close()
    seconds = time.monotonic() - begun
    assert logged() - before <= seconds + 5
    waiting.until(lambda: logged() > before, 15, "a line about these")


@pytest.mark.parametrize("outcome, changes", [
    ("accepted", {}), ("malformed", {"delivery_id": "?"}), ("stale_genuine", {"timestamp": 1234567890}),
    ("stale", {"timestamp": 1234567890, "secret": b"wrong secret, sixteen"}),
    ("forged", {"secret": b"wrong secret, sixteen"}),
])
def test_outcome_is_counted_by_source(daemon, outcome, changes):
    labels = {"source": "invoicing", "outcome": outcome}
    before = daemon.metric("gatepost_requests_total", **labels)
    daemon.post(Delivery(**changes))
    assert daemon.metric("gatepost_requests_total", **labels) == before + 1


def test_every_outcome_has_a_counter(daemon):
    outcomes = ["accepted", "method_not_allowed", "probe", "too_large", "malformed", "forbidden", "stale",
                "stale_genuine", "stale_unchecked", "forged",
                "unavailable", "error"]
    for outcome in outcomes:
        assert daemon.metric("gatepost_requests_total", source="listed", outcome=outcome) >= 0
