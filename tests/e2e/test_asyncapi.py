"""etc/asyncapi.yaml is correct: by AsyncAPI's own parser, and by the records that a consumer finds in Kafka."""

import dataclasses
import hmac
import json
import re
import shutil
import time

import jsonschema
import pytest
from referencing import Registry, Resource

import asyncapi
import http_client
from installation import BUILD
from sandbox import OUTCOMES, SECRET, Sandbox, invoice
from signing import KINDS, Delivery, event_body, event_topic, unique

SCHEMAS = "https://schemas.example/gatepost/"
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=1"}
REASONS = {"malformed-json", "missing-kind", "unknown-kind", "invalid-field", "conflicting-body", "replayed-signature",
           "unknown-source", "unverified", "spooled-too-long"}
NOT_MET = {"unpublishable"}  # needs a record that Kafka refuses
OPTIONAL = {"ce_subject", "ce_dataschema", "gatepost-request-id", "gatepost-replay-of", "gatepost-released",
            "gatepost-release-signature", "gatepost-spooled", "gatepost-spool-signature", *TRACE}
DAY = 86400
# A newer version of AsyncAPI is not an error in the document.
NO_FAULTS = {"asyncapi-latest-version"}


@pytest.fixture(scope="module")
def document():
    return asyncapi.Document()


# The document

def test_document_is_valid(document):
    assert [each for each in document.diagnostics if each["code"] not in NO_FAULTS] == []


def test_parser_reports_errors(tmp_path):
    text = asyncapi.PATH.read_text()
    shutil.copytree(asyncapi.SCHEMAS, tmp_path / "schemas")
    wrong = tmp_path / "asyncapi.yaml"
    wrong.write_text(text.replace("action: send", "action: shout", 1).replace("retention.bytes: -1", "retention.bytes: no"))
    diagnostics, _ = asyncapi.read(wrong)
    assert {each["path"].split(".")[-1] for each in diagnostics} >= {"action", "bytes"}, diagnostics


def test_document_version_is_the_program_version(document, offline):
    version = offline.gatepost("--version", config=False).stdout.split()
    assert version[-1] == document.document["info"]["version"]


def test_examples_match_their_schemas(document):
    for channel in document.channels.values():
        for example in channel.message["examples"]:
            assert asyncapi.problems(channel.headers, example["headers"]) == []
            assert asyncapi.problems(channel.payload, example["payload"]) == []


# The topics

def test_channels_are_the_default_topics(document, installation):
    config = installation.config()
    installation.create_topics(config)
    listed = json.loads(installation.gatepost("topics", "list", "--json", config=config).stdout)
    assert {topic["topic"]: topic["use"] for topic in listed} == \
        {f"{installation.prefix}.{channel.topic}": channel.use for channel in document.channels.values()}


def test_prefix_is_the_default_prefix(document, offline):
    default = document.document["components"]["parameters"]["prefix"]["default"]
    config = offline.config()
    del config["topics"]["prefix"]
    shown = json.loads(offline.gatepost("config", "--json", config=config).stdout)
    assert default in [each["value"] for each in shown if (each["section"], each["name"]) == ("topics", "prefix")]


def test_created_topics_have_the_documented_settings(document, installation):
    done = installation.gatepost("topics", "create", "--replication-factor", "1")
    assert done.returncode == 0, done.stderr
    for channel in document.channels.values():
        topic = f"{installation.prefix}.{channel.topic}"
        settings = installation.kafka.configuration(topic)
        assert installation.kafka.partitions(topic) == channel.binding["partitions"]
        for name, value in channel.binding["topicConfiguration"].items():
            assert settings[name] == (",".join(value) if isinstance(value, list) else str(value)), (topic, name)


# The records

def post(daemon, delivery, headers=()):
    reply = http_client.request(daemon.address, "POST", "/webhooks/invoicing", delivery.headers() | dict(headers),
                                delivery.body)
    assert reply.status == 200, reply.body


def send_events(installation, daemon, sandbox):
    """Events of every kind: fired by the sandbox, decided by its authority, sent by the command line, traced."""
    for kind in KINDS:
        sandbox.fire(kind)
        done = installation.gatepost("send", "--to", daemon.url, "--kind", kind, config=daemon.config)
        assert done.returncode == 0, done.stderr
        post(daemon, Delivery(event_body(kind)), TRACE)
    for outcome in OUTCOMES:
        sandbox.submit(invoice(outcome=outcome))


def send_to_quarantine(installation, daemon):
    """Quarantine one record for each reason, and release one that is quarantined again."""
    post(daemon, Delivery(b"\xff no JSON"), TRACE)
    unknown = Delivery(event_body("no.such_kind"))
    for delivery in (unknown, Delivery(b'{"nonce":"%s"}' % unique().encode()), Delivery(event_body(terminal="yes"))):
        post(daemon, delivery)
    repeated, replayed = Delivery(), Delivery()
    for delivery in (repeated, repeated.but(body=event_body()), replayed, replayed.but(delivery_id=unique())):
        post(daemon, delivery)
    installation.kafka.append([Delivery()], source="nobody")
    installation.kafka.append([Delivery(secret=b"not one that the router has")])
    append_spooled(installation, 2 * DAY)
    installation.kafka.wait_until_routed()
    listed = installation.gatepost("quarantine", "list", "--json", config=daemon.config)
    (id,) = [each["id"] for each in json.loads(listed.stdout) if each["deliveryId"] == unknown.delivery_id]
    done = installation.gatepost("quarantine", "release", id, config=daemon.config)
    assert " released" in done.stdout, (done.stdout, done.stderr)


def append_spooled(installation, age):
    """Write what a receiver's spool had stored this long ago."""
    delivery = Delivery(secret=SECRET.encode(), timestamp=int(time.time()) - age)
    received = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(delivery.timestamp))
    signed = f"spool.{received}.invoicing.{delivery.timestamp}.{len(delivery.delivery_id)}.{delivery.delivery_id}{delivery.signature}"
    signature = "sha256=" + hmac.new(SECRET.encode(), signed.encode(), "sha256").hexdigest()
    installation.kafka.append([delivery], received=received, spooled=time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
                              **{"spool-signature": signature})


@pytest.fixture(scope="module")
def records(shared, tmp_path_factory):
    """Everything that a daemon wrote, by its topics: {topic without prefix: records}."""
    config = shared.config()
    config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET.encode())
    config["source invoicing"]["subject"] = "/invoiceId"
    config["source invoicing"]["ce_dataschema_base"] = SCHEMAS
    config["router"]["verify"] = "on"
    shared.create_topics(config)
    daemon = shared.start(config)
    with Sandbox(BUILD, tmp_path_factory.mktemp("sandbox"), "--retry-base", "20ms") as sandbox:
        sandbox.subscribe(daemon.url)
        send_events(shared, daemon, sandbox)
        sandbox.stop()  # after all deliveries
    send_to_quarantine(shared, daemon)
    shared.kafka.wait_until_routed()
    found = {topic.removeprefix(shared.prefix + "."): [] for topic in shared.kafka.topics()}
    for record in shared.kafka.read(*shared.kafka.topics()):
        found[record.topic.removeprefix(shared.prefix + ".")].append(record)
    return found


TOPICS = sorted({event_topic(kind) for kind in KINDS} | {"deliveries", "quarantine"})
each_topic = pytest.mark.parametrize("topic", TOPICS)


@each_topic
def test_records_match_their_schemas(document, records, topic):
    assert records[topic]
    for record in records[topic]:
        assert document.channels[topic].problems(record) == [], record


@each_topic
def test_document_lists_exactly_the_headers_of_records(document, records, topic):
    read = {name for record in records[topic] for name, _ in record.headers}
    assert read == document.channels[topic].header_names


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_published(document, records, kind):
    published = [record for record in records[event_topic(kind)] if record.header("ce_type") == kind]
    assert len(published) >= 3 and {record.key for record in published} == {kind.encode()}


def test_every_quarantine_reason_occurs_and_is_documented(document, records):
    assert {record.header("gatepost-reason") for record in records["quarantine"]} == REASONS | {None}  # of the marker of a release
    reasons, = [each["enum"] for name, each in document.channels["quarantine"].headers["allOf"][0]["properties"].items()
                if name == "gatepost-reason"]
    assert set(reasons) == REASONS | NOT_MET


@each_topic
def test_schemas_reject_nonconforming_records(document, records, topic):
    """A missing required header, an empty header, and the records of other topics."""
    channel, record = document.channels[topic], records[topic][0]
    for name, _ in record.headers:
        without = [header for header in record.headers if header[0] != name]
        assert name in OPTIONAL or channel.problems(dataclasses.replace(record, headers=without)), name
        emptied = dataclasses.replace(record, headers=[*without, (name, b"")])
        assert name == "gatepost-detail" or channel.problems(emptied), name
    assert all(channel.problems(each) for other in TOPICS for each in records[other]
               if other != topic and {topic, other} != {"quarantine", "deliveries"})


# The schemas as files

def test_every_schema_file_is_valid_and_installed(records):
    makefile = (asyncapi.ROOT / "Makefile.am").read_text()
    for path in asyncapi.SCHEMAS.iterdir():
        jsonschema.Draft7Validator.check_schema(json.loads(path.read_text()))
        assert f"etc/schemas/{path.name}" in makefile, path.name
        assert re.fullmatch(r"[a-z_.]+\.v[0-9]+\.json", path.name)


def test_every_event_names_a_schema_file_that_it_matches(records):
    """As a consumer does it: the schema by its URI, the files that it refers to relative to that."""
    files = {SCHEMAS + path.name: Resource.from_contents(json.loads(path.read_text())) for path in asyncapi.SCHEMAS.iterdir()}
    registry, used = Registry().with_resources(files.items()), set()
    for record in sum((records[event_topic(kind)] for kind in KINDS), []):
        uri = record.header("ce_dataschema")
        validator = jsonschema.Draft7Validator({"$ref": uri}, registry=registry)
        validator.validate(json.loads(record.value))
        assert list(validator.iter_errors({"event": "another"}))
        assert list(validator.iter_errors(json.loads(record.value) | {"terminal": "yes"}))
        used.add(uri)
    assert {event_topic(kind) for kind in KINDS} == {uri.removeprefix(SCHEMAS).removesuffix(".v1.json") for uri in used}
    assert set(files) - used == {SCHEMAS + "event.v1.json", SCHEMAS + "clearance.v1.json"}


# The body: its schema accepts exactly what Gatepost publishes

@pytest.mark.parametrize("members", [
    {"clearanceStatus": None, "terminal": None, "rejectedAt": None, "error": None}, {"error": {"code": None}},
    {"error": {"further": 5}}, {"rejectedAt": "2026-11-21T03:04:05+00:00"}, {"rejectedAt": "2026-11-21t03:04:05.6z"},
    {"data": None}, {"data": "text"}, {"data": {"terminal": False}}, {"unknown": {"terminal": 5}},
    {"terminal": "yes"}, {"clearanceStatus": 5}, {"rejectedAt": "2026-11-21"}, {"rejectedAt": "2026-11-21T03:04:05"},
    {"rejectedAt": "2026-11-21T03:04:05+01:00"}, {"error": "text"}, {"error": {"code": 1117}}, {"error": {"source": []}},
    {"data": {"terminal": 1}}, {"data": {"error": {"detail": {}}}}, {"event": 5}, {"event": "invoice.rejected"},
])
def test_body_schema_accepts_exactly_the_bodies_that_are_published(document, records, shared, members):
    (daemon,) = shared.daemons
    delivery = Delivery(json.dumps({"event": "invoice.accepted", "nonce": unique()} | members).encode(),
                        secret=SECRET.encode())
    post(daemon, delivery)
    reader = shared.kafka.reader()
    try:
        (record,) = reader.wait_for(delivery.delivery_id)
    finally:
        reader.close()
    is_published = record.topic == f"{shared.prefix}.invoice.accepted"
    found = asyncapi.problems(document.channels["invoice.accepted"].payload, json.loads(delivery.body))
    assert (found == []) == is_published, found
