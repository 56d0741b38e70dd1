"""The router: the record that each delivery becomes, byte by byte."""

import json
import uuid
import re
import time

import pytest

import http_client
import waiting
from kafka_side import murmur2_partition
from signing import KINDS, Delivery, event_body, event_topic, unique

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACESTATE = "vendor=opaque,other=1"
SOURCES = {  # options of further sources, by name
    "byid": {"key": "delivery-id"},
    "bywebhook": {"key": "webhook-id"},
    "bypointer": {"key": "/invoice/number", "subject": "/invoice/buyer"},
    "bydeep": {"key": "/a~1b/0/c~0d"},
    "elsewhere": {"kind": "/meta/type"},
    "unguarded": {"replay_guard": "off"},
}


@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config()
    config["source invoicing"]["subject"] = "/invoiceId"
    for name, options in SOURCES.items():
        config.source(name, **options)
    shared.create_topics(config)
    return shared.start(config)


@pytest.fixture(scope="module")
def reader(shared, daemon):
    reader = shared.kafka.reader()
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def route(daemon, reader):
    """Send a body, or a whole delivery, and return the one record it becomes."""
    def one(delivery, **options):
        delivery = delivery if isinstance(delivery, Delivery) else Delivery(delivery)
        daemon.accept(delivery, **options)
        (record,) = reader.wait_for(delivery.delivery_id)
        return record
    return one


@pytest.fixture(scope="module")
def quarantined(shared, route):
    """Send a body that must be quarantined, and return (reason, detail)."""
    def one(delivery, **options):
        record = route(delivery, **options)
        assert record.topic == shared.kafka.quarantine, record
        return record.header("gatepost-reason"), record.header("gatepost-detail")
    return one


def rfc3339(timestamp):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(timestamp))


def accepted(**members):
    """A unique body: equal bytes signed in the same second count as a replay."""
    return json.dumps({"event": "invoice.accepted", "nonce": str(uuid.uuid4()), **members}).encode()


def nested(levels, opening=b'[', closing=b']'):
    """A body with this many levels of nesting, including its outer object."""
    inner = levels - 1
    return b'{"event":"invoice.accepted","deep":' + opening * inner + b"1" + closing * inner + b"}"


# Events

@pytest.mark.parametrize("kind", KINDS)
def test_delivery_becomes_an_event_of_its_kind(shared, route, kind):
    delivery = Delivery(event_body(kind, text="Größe ≥ 1 – 請求書"))
    record = route(delivery)
    assert record.topic == f"{shared.prefix}.{event_topic(kind)}"
    assert record.key == kind.encode()
    assert record.value == delivery.body
    assert sorted(record.headers) == sorted({
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_id": delivery.delivery_id.encode(),
        "ce_type": kind.encode(),
        "ce_source": b"/invoicing",
        "ce_time": rfc3339(delivery.timestamp).encode(),
        "ce_webhookid": delivery.webhook_id.encode(),
        "ce_subject": json.loads(delivery.body)["invoiceId"].encode(),
    }.items())


def test_stored_delivery_has_the_body_and_all_headers(shared, daemon):
    delivery = Delivery(b"\xff any bytes \0")
    request_id = daemon.post(delivery).headers["x-request-id"]
    (record,) = [each for each in shared.kafka.read(shared.kafka.deliveries)
                 if each.key == delivery.delivery_id.encode()]
    received = record.header("gatepost-received")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", received)
    assert record.value == delivery.body
    assert sorted(record.headers) == sorted({
        "gatepost-source": b"invoicing",
        "gatepost-webhook-id": delivery.webhook_id.encode(),
        "gatepost-timestamp": str(delivery.timestamp).encode(),
        "gatepost-signature": delivery.signature.encode(),
        "gatepost-received": received.encode(),
        "gatepost-request-id": request_id.encode(),
        "gatepost-instance": daemon.config["gatepost"]["instance"].encode(),
    }.items())


def test_deliveries_are_partitioned_like_the_java_client(shared, daemon):
    for delivery_id in ["a", "ab", "abc", "abcd", *[unique() for _ in range(8)]]:
        daemon.accept(Delivery(delivery_id=delivery_id))
    partitions = shared.kafka.partitions(shared.kafka.deliveries)
    for record in shared.kafka.read(shared.kafka.deliveries):
        assert record.partition == murmur2_partition(record.key, partitions), record.key


@pytest.mark.parametrize("body", [
    b' \r\n\t{ "event" : "invoice.accepted" }\n',
    b'{"event":"invoice.accepted","n":123456789012345678901234567890,"f":-1.5E+999}',
    b'{"event":"invoice.accepted","s":"\\ud800 \\u0000 \\/ \xc3\xa9"}',
    b'{"\\u0065vent":"invoice\\u002eaccepted"}',
    b'{"a":1,"a":2,"event":"invoice.accepted","data":{"event":1,"event":2}}',
    b'{"event":"invoice.accepted","":{"":[[],{}]}}',
])
def test_unusual_json_is_published_unchanged(shared, route, body):
    record = route(body)
    assert (record.topic, record.value) == (f"{shared.prefix}.invoice.accepted", body)


def test_clearance_rejection_is_published_unchanged(shared, route):
    rejection = {"clearanceStatus": "REJECTED", "terminal": True, "rejectedAt": "2026-11-21T03:04:05.678Z",
                 "error": {"source": "AEAT", "code": "1117", "message": "NIF no identificado", "detail": "…"}}
    for body in [{"event": "invoice.rejected", **rejection}, {"event": "invoice.rejected", "data": rejection}]:
        body = json.dumps(body).encode()
        record = route(body)
        assert (record.topic, record.value) == (f"{shared.prefix}.invoice.rejected", body)


@pytest.mark.parametrize("members", [
    {"clearanceStatus": None, "terminal": None, "rejectedAt": None, "error": None},
    {"error": {"code": None}}, {"error": {}}, {"error": {"further": 5}}, {"rejectedAt": "2026-11-21T03:04:05+00:00"},
    {"unknown": {"clearanceStatus": 5}}, {"data": None}, {"data": "text"}, {"data": {"terminal": False}},
])
def test_documented_fields_may_be_absent_or_null(shared, route, members):
    assert route(accepted(**members)).topic == f"{shared.prefix}.invoice.accepted"


def test_64_levels_of_nesting_are_published(shared, route):
    for body in [nested(64), nested(64, b'{"a":', b"}")]:
        assert route(body).topic == f"{shared.prefix}.invoice.accepted"


@pytest.mark.parametrize("source, body, key", [
    ("byid", {}, "{id}"),
    ("bywebhook", {}, "{webhook}"),
    ("bypointer", {"invoice": {"number": "A-17"}}, "A-17"),
    ("bypointer", {"invoice": {"number": "é\u0007"}}, "é\u0007"),
    ("bypointer", {"invoice": {"number": 1725}}, "1725"),
    ("bypointer", {"invoice": {"number": ""}}, "{id}"),
    ("bypointer", {"invoice": {"number": None}}, "{id}"),
    ("bypointer", {"invoice": {"number": True}}, "{id}"),
    ("bypointer", {"invoice": {"number": {"a": 1}}}, "{id}"),
    ("bypointer", {"invoice": {"number": ["a"]}}, "{id}"),
    ("bypointer", {"invoice": ["number"]}, "{id}"),
    ("bypointer", {}, "{id}"),
    ("bydeep", {"a/b": [{"c~d": "deep"}, {"c~d": "other"}]}, "deep"),
    ("bydeep", {"a/b": [[]]}, "{id}"),
])
def test_event_key_follows_the_configuration_of_the_source(route, source, body, key):
    delivery = Delivery(accepted(**body))
    expected = key.replace("{id}", delivery.delivery_id).replace("{webhook}", delivery.webhook_id)
    assert route(delivery, source=source).key.decode() == expected


@pytest.mark.parametrize("text", ["12.50", "-0", "1E+3", "123456789012345678901234567890"])
def test_numeric_key_is_its_json_text(route, text):
    body = b'{"event":"invoice.accepted","invoice":{"number":%s}}' % text.encode()
    assert route(body, source="bypointer").key == text.encode()


@pytest.mark.parametrize("buyer, subject", [("Müller & Söhne", "Müller & Söhne"), (5, None), (None, None), ({}, None)])
def test_subject_is_taken_from_strings_only(route, buyer, subject):
    assert route(accepted(invoice={"buyer": buyer}), source="bypointer").header("ce_subject") == subject


def test_event_has_no_subject_by_default(route):
    record = route(accepted(invoiceId="I-1"), source="byid")
    assert record.header("ce_subject") is None and record.header("ce_source") == "/byid"


def test_kind_is_read_from_the_configured_pointer(shared, route, quarantined):
    body = json.dumps({"event": "invoice.rejected", "meta": {"type": "invoice.cancelled"}}).encode()
    record = route(body, source="elsewhere")
    assert (record.topic, record.header("ce_type")) == (f"{shared.prefix}.invoice.cancelled", "invoice.cancelled")
    assert quarantined(accepted(), source="elsewhere")[0] == "missing-kind"
    assert quarantined(b'{"meta":{"type":"invoice.pending","type":"invoice.pending"}}',
                       source="elsewhere")[0] == "malformed-json"


def test_same_id_from_two_sources_is_two_deliveries(daemon, reader):
    delivery = Delivery()
    daemon.accept(delivery)
    daemon.accept(delivery, source="byid")
    records = reader.wait_for(delivery.delivery_id, 2)
    assert sorted(record.header("ce_source") for record in records) == ["/byid", "/invoicing"]


def post_traced(daemon, delivery, *trace):
    headers = [*delivery.headers().items(), *trace]
    reply = http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, delivery.body)
    assert reply.status == 200


def test_trace_context_is_copied_to_the_record(shared, daemon, reader):
    delivery, bad = Delivery(), Delivery(b"nonsense")
    for each in (delivery, bad):
        post_traced(daemon, each, ("traceparent", TRACEPARENT), ("tracestate", TRACESTATE))
        (record,) = reader.wait_for(each.delivery_id)
        assert (record.header("traceparent"), record.header("tracestate")) == (TRACEPARENT, TRACESTATE)


@pytest.mark.parametrize("traceparent", ["", "nonsense", TRACEPARENT[:-1], TRACEPARENT.upper(), "ff" + TRACEPARENT[2:],
                                         TRACEPARENT.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32)])
def test_malformed_trace_context_is_dropped(daemon, reader, traceparent):
    delivery = Delivery()
    post_traced(daemon, delivery, ("traceparent", traceparent), ("tracestate", TRACESTATE))
    (record,) = reader.wait_for(delivery.delivery_id)
    assert record.header("traceparent") is None and record.header("tracestate") is None


# Quarantine

def test_quarantined_record_is_the_delivery_with_reason_and_offset(shared, daemon, reader):
    delivery = Delivery(b'{"event":')
    daemon.accept(delivery)
    (record,) = reader.wait_for(delivery.delivery_id)
    (original,) = [each for each in shared.kafka.read(shared.kafka.deliveries) if each.key == record.key]
    assert record.topic == shared.kafka.quarantine
    assert (record.key, record.value) == (delivery.delivery_id.encode(), delivery.body)
    assert original.headers == [each for each in record.headers if each in original.headers]
    added = dict(each for each in record.headers if each not in original.headers)
    assert set(added) == {"gatepost-reason", "gatepost-detail", "gatepost-partition", "gatepost-offset"}
    assert added["gatepost-reason"] == b"malformed-json" and added["gatepost-detail"]
    assert int(added["gatepost-partition"]) == original.partition
    assert int(added["gatepost-offset"]) == original.offset


WHOLE = b'{"event":"invoice.accepted"}'


@pytest.mark.parametrize("body", [
    b"", b" ", b"\0", b"nonsense", b"[]", b'"invoice.accepted"', b"5", b"null", b"{", WHOLE[:-1],
    WHOLE + b"}", WHOLE + WHOLE, WHOLE + b"\0", b"\0" + WHOLE,
    b'{"event":"invoice.accepted\0"}', b'{"event":"invoice.accepted",}', b"{'event':'invoice.accepted'}",
    b'{"event":"invoice.accepted","n":01}', b'{"event":"invoice.accepted","n":NaN}',
    b'{"event":"invoice.accepted","s":"\n"}', b'{"event":"invoice.accepted"} // no', b'{"event":"invoice.accepted" /**/}',
    b'{"event":"invoice.accepted","s":"\\x"}', b'[{"event":"invoice.accepted"}]',
])
def test_body_other_than_a_json_object_is_malformed(quarantined, body):
    assert quarantined(body)[0] == "malformed-json"


@pytest.mark.parametrize("text", [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xff", b"\xc3", b"\xe2\x82",
                                  b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x88\x80\x80\x80", b"\xc3("])
def test_invalid_utf_8_anywhere_is_malformed(quarantined, text):
    for body in [b'{"event":"invoice.accepted","s":"%s"}', b'{"event":"invoice.accepted","%s":1}', b'{"event":"%s"}',
                 b'{"event":"invoice.accepted"}%s']:
        assert quarantined(body % text)[0] == "malformed-json"


def test_65_levels_of_nesting_are_malformed(quarantined):
    for body in [nested(65), nested(65, b'{"a":', b"}"), nested(20000)]:
        assert quarantined(body)[0] == "malformed-json"


@pytest.mark.parametrize("body", [
    b'{"event":"invoice.accepted","event":"invoice.accepted"}', b'{"event":"invoice.accepted","event":"invoice.rejected"}',
    b'{"event":"invoice.accepted","\\u0065vent":"invoice.rejected"}', b'{"event":null,"event":"invoice.accepted"}',
])
def test_repeated_kind_is_malformed(quarantined, body):
    assert quarantined(body)[0] == "malformed-json"


@pytest.mark.parametrize("body", [b"{}", b'{"Event":"invoice.accepted"}', b'{"data":{"event":"invoice.accepted"}}'])
def test_body_without_a_kind_is_quarantined(quarantined, body):
    assert quarantined(body)[0] == "missing-kind"


@pytest.mark.parametrize("kind", ["", "invoice", "invoice.", "invoice.accepted ", "Invoice.accepted", "invoice.accepted\0",
                                  "reporting_batch", "invoice.unheard-of", "é", "k" * 10000])
def test_kind_without_a_topic_is_quarantined(quarantined, kind):
    assert quarantined(json.dumps({"event": kind}).encode())[0] == "unknown-kind"


@pytest.mark.parametrize("kind", [5, True, {}, ["invoice.accepted"]])
def test_non_string_kind_is_quarantined(quarantined, kind):
    assert quarantined(json.dumps({"event": kind}).encode())[0] == "invalid-field"


@pytest.mark.parametrize("name, value", [
    ("clearanceStatus", 5), ("clearanceStatus", {}), ("terminal", "true"), ("terminal", 1),
    ("rejectedAt", 1795230245), ("rejectedAt", "yesterday"), ("rejectedAt", ""), ("rejectedAt", "2026-11-21"),
    ("rejectedAt", "2026-11-21T03:04:05"), ("rejectedAt", "2026-11-21T03:04:05+01:00"),
    ("rejectedAt", "2026-13-21T03:04:05Z"), ("rejectedAt", "2026-11-21T03:04:05Z\0"),
    ("error", "text"), ("error", []), ("error", True),
    ("error.source", 5), ("error.code", 1117), ("error.message", {}), ("error.detail", ["x"]),
])
def test_documented_field_of_wrong_type_is_quarantined(quarantined, name, value):
    parent, _, child = name.rpartition(".")
    members = {parent: {child: value}} if parent else {child: value}
    for body in [accepted(**members), accepted(data=members)]:
        reason, detail = quarantined(body)
        assert reason == "invalid-field" and child in detail


def test_same_id_with_another_body_conflicts(shared, daemon, reader):
    delivery = daemon.accept()
    daemon.accept(delivery.but(body=event_body()))
    first, second = reader.wait_for(delivery.delivery_id, 2)
    by_topic = {record.topic: record for record in (first, second)}
    assert by_topic[f"{shared.prefix}.invoice.accepted"].value == delivery.body
    assert by_topic[shared.kafka.quarantine].header("gatepost-reason") == "conflicting-body"


def test_captured_signature_under_a_new_id_is_a_replay(shared, daemon, reader):
    delivery = daemon.accept()
    replay = daemon.accept(delivery.but(delivery_id=unique()))
    (record,) = reader.wait_for(replay.delivery_id)
    assert record.topic == shared.kafka.quarantine
    assert record.header("gatepost-reason") == "replayed-signature"
    assert record.header("gatepost-replay-of") == delivery.delivery_id
    (event,) = reader.wait_for(delivery.delivery_id)
    assert event.topic == f"{shared.prefix}.invoice.accepted"


def test_replay_guard_can_be_disabled(shared, daemon, reader):
    delivery = daemon.accept(source="unguarded")
    twin = daemon.accept(delivery.but(delivery_id=unique()), source="unguarded")
    (record,) = reader.wait_for(twin.delivery_id)
    assert record.topic == f"{shared.prefix}.invoice.accepted"


def test_record_of_an_unknown_source_is_quarantined(shared, reader):
    delivery = Delivery()
    shared.kafka.append([delivery], source="nobody")
    (record,) = reader.wait_for(delivery.delivery_id)
    assert (record.topic, record.header("gatepost-reason")) == (shared.kafka.quarantine, "unknown-source")


def test_every_quarantine_reason_has_a_counter(daemon, quarantined):
    reasons = ["malformed-json", "missing-kind", "unknown-kind", "invalid-field", "conflicting-body",
               "replayed-signature", "unknown-source", "unverified", "unpublishable"]
    before = {reason: daemon.metric("gatepost_quarantined_total", reason=reason) for reason in reasons}
    quarantined(b"{}")
    waiting.until(lambda: daemon.metric("gatepost_quarantined_total", reason="missing-kind") == before["missing-kind"] + 1,
                  20, "the counter to increase")


# Duplicates

def test_repeated_delivery_is_published_once(shared, daemon, reader):
    delivery = Delivery()
    dropped = daemon.metric("gatepost_duplicates_total")
    for each in (delivery, delivery, delivery.signed_again(), delivery.but(webhook_id="another")):
        daemon.accept(each)
    reader.wait_for(delivery.delivery_id)
    shared.kafka.wait_until_routed()
    assert [record.delivery_id for record in shared.kafka.read()].count(delivery.delivery_id) == 1
    waiting.until(lambda: daemon.metric("gatepost_duplicates_total") == dropped + 3, 20, "the duplicates")


def test_remembered_ids_and_transactions_are_counted(shared, daemon):
    daemon.accept()
    shared.kafka.wait_until_routed()
    assert daemon.metric("gatepost_remembered_ids") >= 1
    assert daemon.metric("gatepost_transactions_total") >= 1
    assert daemon.metric("gatepost_events_total") >= 1
    assert daemon.metric("gatepost_router_lag_records") >= 0


@pytest.mark.slow
def test_deliveries_wait_while_their_topic_is_missing(installation):
    """The topic is deleted: the router retries and publishes nothing."""
    installation.create_topics()
    daemon = installation.start()
    daemon.accept()
    waiting.until(lambda: daemon.metric("gatepost_events_total") == 1, 30, "the first event")
    assert daemon.metric("gatepost_transactions_total", result="aborted") == 0
    topic = f"{installation.prefix}.invoice.accepted"
    installation.kafka.delete(topic)
    for _ in range(3):
        daemon.accept()
    waiting.until(lambda: daemon.metric("gatepost_transactions_total", result="aborted") >= 1, 60, "a transaction to be aborted")
    waiting.until(lambda: 0 < daemon.metric("gatepost_router_oldest_record_timestamp_seconds") < time.time() - 5, 60, "the oldest record to age")
    assert topic.encode() in daemon.admin("/readyz").body
    waiting.until(lambda: daemon.metric("gatepost_router_lag_records") == 3, 60, "a lag of three")
    assert not daemon.ready() and daemon.metric("gatepost_events_total") == 1
    installation.create_topics()
    waiting.until(lambda: daemon.metric("gatepost_events_total") == 4, 60, "the events")
    waiting.until(lambda: daemon.metric("gatepost_delivery_seconds_count") == 4, 20, "how long they took")
    assert daemon.metric("gatepost_delivery_seconds_sum") > 3 * 5, "they waited for their topic"
    waiting.until(lambda: daemon.metric("gatepost_router_lag_records") == 0, 30, "no lag")
    assert daemon.metric("gatepost_router_oldest_record_timestamp_seconds") == 0


# The table of topics

def test_events_table_adds_to_the_default_topics(installation):
    """Its lines are looked up first, and `none` takes kinds out."""
    prefix = installation.prefix
    config = installation.config()
    config["events"].update({"invoice.*": f"{prefix}.any", "invoice.accepted": f"{prefix}.exact",
                             "invoice.paid.*": f"{prefix}.longer", "reporting_batch.draft": "none"})
    installation.create_topics(config)
    daemon = installation.start(config)
    expected = {"invoice.accepted": "exact", "invoice.rejected": "any", "invoice.paid.late": "longer",
                "invoice.paid": "any", "invoice.accepted.twice": "any", "invoice": "quarantine",
                "held_unmapped_decision": "held_unmapped_decision", "reporting_batch.overdue": "reporting_batch",
                "reporting_batch.draft": "quarantine"}
    kinds = {daemon.accept(Delivery(event_body(kind))).delivery_id: kind for kind in expected}
    installation.kafka.wait_until_routed()
    records = installation.kafka.read()
    found = {kinds[record.delivery_id]: record.topic.removeprefix(prefix + ".") for record in records}
    assert found == expected and len(records) == len(expected)
    assert set(installation.kafka.topics()) == {f"{prefix}.{name}" for name in
                                                ("deliveries", "quarantine", "any", "exact", "longer", "held_unmapped_decision",
                                                 "reporting_batch")}
