"""The whole chain: the sandbox clears invoices and signs deliveries, gatepostd accepts and routes them, Kafka has the events."""

import json
import subprocess

import pytest

import http_client
import waiting
from daemon import ENVIRONMENT
from endpoint import Endpoint
from installation import BUILD
from sandbox import OUTCOMES, SECRET, Sandbox, invoice
from signing import KINDS, event_topic


@pytest.fixture(scope="module")
def chain(shared, tmp_path_factory):
    """A daemon, a reader of everything it publishes, and a sandbox that delivers all kinds to it."""
    config = shared.config()
    config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET.encode())
    config["source invoicing"]["subject"] = "/invoiceId"
    shared.create_topics(config)
    daemon = shared.start(config)
    reader = shared.kafka.reader()
    with Sandbox(BUILD, tmp_path_factory.mktemp("sandbox"), "--retry-base", "20ms") as sandbox:
        sandbox.subscribe(daemon.url)
        yield sandbox, reader, shared
    reader.close()


def assert_published(record, shared, kind, delivery_id):
    assert record.topic == f"{shared.prefix}.{event_topic(kind)}"
    assert record.header("ce_type") == kind and record.header("ce_id") == delivery_id
    assert json.loads(record.value)["event"] == kind


@pytest.mark.parametrize("kind", KINDS)
def test_every_fired_kind_is_published(chain, kind):
    sandbox, reader, shared = chain
    (delivery_id,) = sandbox.fire(kind).values()
    (record,) = reader.wait_for(delivery_id)
    assert_published(record, shared, kind, delivery_id)


def invoice_record(reader, invoice_id, kind):
    """Wait for the published event of this kind about the invoice."""
    def found():
        reader.poll()
        return [record for record in reader.records
                if record.header("ce_subject") == invoice_id and record.header("ce_type") == kind]
    (record,) = waiting.until(found, 60, f"{kind} of {invoice_id}")
    return record


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_decisions_of_the_authority_are_published(chain, outcome):
    sandbox, reader, shared = chain
    kind, status, _ = OUTCOMES[outcome]
    answer = sandbox.submit(invoice(outcome=outcome, invoiceNumber="Żółć/1"))
    record = invoice_record(reader, answer["invoiceId"], kind)
    assert_published(record, shared, kind, record.delivery_id)
    body = json.loads(record.value)
    assert (body["clearanceStatus"], body["invoiceNumber"]) == (status, "Żółć/1")
    assert ("rejectedAt" in body) == (outcome == "rejected")


def test_duplicate_submission_is_published(chain):
    sandbox, reader, shared = chain
    for _ in range(2):
        answer = sandbox.submit(headers={"x-idempotency-key": "chain"})
    assert answer["duplicate"]
    record = invoice_record(reader, answer["invoiceId"], "invoice.duplicate")
    assert_published(record, shared, "invoice.duplicate", record.delivery_id)


def test_unknown_kind_is_quarantined(chain):
    sandbox, reader, shared = chain
    (delivery_id,) = sandbox.fire("invoice.teleported").values()
    (record,) = reader.wait_for(delivery_id)
    assert record.topic == shared.kafka.quarantine and record.header("gatepost-reason") == "unknown-kind"


def test_nothing_else_is_published(chain):
    sandbox, reader, shared = chain
    shared.kafka.wait_until_routed()
    records = shared.kafka.read()
    ids = [record.delivery_id for record in records]
    assert len(ids) == len(set(ids))
    assert {record.header("gatepost-reason") for record in records if record.topic == shared.kafka.quarantine} <= \
        {"unknown-kind"}


def test_delivery_retried_while_gatepostd_is_down_is_one_event(installation, tmp_path):
    config = installation.config()
    installation.create_topics(config)
    secret = config["source invoicing"]["secret_file"].read_text().strip()
    daemon = installation.start(config)
    address = daemon.address
    config["receiver"]["listen"] = address
    with Sandbox(BUILD, tmp_path, "--retry-base", "100ms") as sandbox:
        sandbox.subscribe(daemon.url, secret=secret)
        daemon.stop()
        (delivery_id,) = sandbox.fire("invoice.accepted").values()
        waiting.until(lambda: sandbox.log.count("no answer") >= 2, 60, "two failed attempts")
        daemon.start()
        waiting.until(lambda: '"HTTP status 200"' in sandbox.log, 120, "an attempt that is accepted")
    daemon.wait_until_ready()
    installation.kafka.wait_until_routed()
    (record,) = installation.kafka.read()
    assert_published(record, installation, "invoice.accepted", delivery_id)


@pytest.mark.parametrize("n_failures", [9, 10])
def test_ten_attempts_with_failed_answers_are_one_event(chain, tmp_path, n_failures):
    """Every attempt reaches gatepostd, but the sandbox gets 500: nine times before the tenth succeeds, or every time."""
    (tmp_path / "outbox").mkdir()
    _, reader, shared = chain
    daemon = shared.daemons[0]

    def pass_on(received):
        headers = {name: value for name, value in received.headers.items() if name.startswith("x-")}
        reply = http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, received.body)
        assert reply.status == 200
        return 500 if len(endpoint.requests) <= n_failures else reply.status
    with Endpoint(pass_on) as endpoint, \
            Sandbox(BUILD, tmp_path, "--retry-base", "5ms", "--outbox", tmp_path / "outbox") as sandbox:
        sandbox.subscribe(endpoint.url)
        (delivery_id,) = sandbox.fire("invoice.cancelled").values()
        endpoint.wait_for(10)
        waiting.until(lambda: "given up" in sandbox.log or "HTTP status 200" in sandbox.log, 60, "the end of the delivery")
        assert len(list((tmp_path / "outbox").glob("*.eml"))) == (n_failures == 10)
    assert len(endpoint.requests) == 10
    shared.kafka.wait_until_routed()
    assert [record.topic for record in shared.kafka.read() if record.delivery_id == delivery_id] == \
        [f"{shared.prefix}.invoice.cancelled"]


def test_load_report_agrees_with_gatepostd_metrics(installation):
    config = installation.config()
    installation.create_topics(config)
    daemon = installation.start(config)
    daemon.wait_until_ready()
    done = subprocess.run([BUILD / "gatepost-sandbox", "fire", "--to", daemon.url, "--secret-file",
                           config["source invoicing"]["secret_file"], "--count", "400", "--rate", "200", "--repeat", "10",
                           "--forged", "5", "--kinds", ",".join(KINDS)],
                          capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "; 38 repeated, 20 forged\nstatus 200 380\nstatus 401 20\nno answer  0\n" in done.stdout
    for outcome, count in (("accepted", 380), ("forged", 20)):
        assert daemon.metric("gatepost_requests_total", source="invoicing", outcome=outcome) == count
    installation.kafka.wait_until_routed()
    records = installation.kafka.read()
    assert len(records) == len({record.delivery_id for record in records}) == 380 - 38
    assert installation.kafka.quarantine not in {record.topic for record in records}
    waiting.until(lambda: daemon.metric("gatepost_duplicates_total") == 38, 30, "the repeats among the duplicates")
