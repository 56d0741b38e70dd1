"""The sandbox's deliveries: to a real endpoint, signed, filtered, repeated, given up; and what survives a restart."""

import email
import email.policy
import json
import re
import socket
import stat
import subprocess
import time

import pytest

import waiting
from daemon import ENVIRONMENT
from endpoint import Endpoint
from installation import BUILD
from sandbox import SECRET, Sandbox
from signing import KINDS
from test_sandbox import UUID, refused
from test_sandbox_invoices import decided, invoice, poll, submit

EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_CANTCREAT = 64, 65, 69, 73


@pytest.fixture
def start(tmp_path):
    """Start a sandbox with these options, and quick retries unless they say otherwise."""
    started = []

    def run(*options, **more):
        quick = [] if "--retry-base" in options else ["--retry-base", "5ms"]
        started.append(Sandbox(BUILD, tmp_path, "--delay", "20ms", *quick, *options, **more).start())
        return started[-1]
    yield run
    for each in started:
        each.clean_up()


def fire(sandbox, kind="invoice.received", **members):
    """Have an event sent. Returns the deliveries that were begun, {webhook-id: delivery-id}."""
    reply = sandbox.call("POST", "/sandbox/fire", {"kind": kind} | members)
    assert reply.status == 202, reply.body
    assert reply.json.keys() == {"ok", "deliveries"}
    return {each["webhookId"]: each["deliveryId"] for each in reply.json["deliveries"]}


# What arrives

@pytest.mark.parametrize("kind", [*KINDS, "invoice.teleported"])
def test_event_of_any_kind_is_sent(start, kind):
    sandbox = start()
    with Endpoint() as endpoint:
        webhook_id = sandbox.subscribe(endpoint.url)
        deliveries = fire(sandbox, kind, data={"invoiceId": "zażółć", "nested": [1, {"deep": None}]})
        (request,) = endpoint.wait_for(1)
    assert deliveries.keys() == {webhook_id}
    assert (request.method, request.path, request.header("content-type")) == ("POST", "/hook", "application/json")
    assert request.assert_signed(SECRET)[:2] == (webhook_id, deliveries[webhook_id])
    assert re.fullmatch(UUID, deliveries[webhook_id])
    body = request.json
    assert body.pop("createdAt")
    assert body == {"event": kind, "invoiceId": "zażółć", "nested": [1, {"deep": None}]}


def test_event_without_data_gets_generated_data(start):
    sandbox = start()
    with Endpoint() as endpoint:
        sandbox.subscribe(endpoint.url)
        fire(sandbox, "invoice.rejected")
        fire(sandbox, "reporting_batch.overdue")
        endpoint.wait_for(2)
        assert endpoint.wait_for_kind("invoice.rejected").json["clearanceStatus"] == "REJECTED"
        assert "batchId" in endpoint.wait_for_kind("reporting_batch.overdue").json


def test_service_option_sets_the_header_prefix(start):
    sandbox = start("--service", "e-faktura")
    with Endpoint() as endpoint:
        sandbox.subscribe(endpoint.url)
        fire(sandbox)
        endpoint.wait_for(1)[0].assert_signed(SECRET, "e-faktura")


@pytest.mark.parametrize("events, wanted", [
    (["*"], KINDS),
    (["invoice.accepted"], ["invoice.accepted"]),
    (["invoice.rejected", "held_unmapped_decision"], ["invoice.rejected", "held_unmapped_decision"]),
    (["reporting_batch.*"], KINDS[8:]),
    (["reporting_batch.overdue"], ["reporting_batch.overdue"]),
])
def test_only_subscribed_events_are_sent(start, events, wanted):
    sandbox = start()
    with Endpoint() as endpoint:
        sandbox.subscribe(endpoint.url, events)
        sent = [kind for kind in KINDS if fire(sandbox, kind)]
        received = [request.json["event"] for request in endpoint.wait_for(len(wanted))]
    assert sent == wanted and sorted(received) == sorted(wanted)


def test_every_webhook_gets_its_own_delivery_and_signature(start):
    sandbox = start()
    secrets = ["the first secret, long enough", "the second secret, long enough"]
    with Endpoint() as endpoint:
        ids = {sandbox.subscribe(endpoint.url, secret=secret): secret for secret in secrets}
        deliveries = fire(sandbox)
        requests = endpoint.wait_for(2)
    seen = {request.header("x-invoicing-webhook-id"): request for request in requests}
    assert seen.keys() == ids.keys()
    for webhook_id, secret in ids.items():
        assert seen[webhook_id].assert_signed(secret)[1] == deliveries[webhook_id]
    assert len(set(deliveries.values())) == 2


def test_webhook_of_an_entity_gets_only_its_events(start):
    sandbox = start("--key", "full", "--key", "ours,entity=ours", "--key", "theirs,entity=theirs")
    with Endpoint() as endpoint:
        ours, everyones = sandbox.subscribe(endpoint.url, key="ours"), sandbox.subscribe(endpoint.url)
        assert fire(sandbox, entity="ours").keys() == {ours, everyones}
        assert fire(sandbox, entity="theirs").keys() == {everyones}
        assert fire(sandbox).keys() == {everyones}
        endpoint.wait_for(4)


# Attempts

def test_success_at_the_tenth_attempt_ends_the_delivery(start, tmp_path):
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    sandbox = start("--outbox", outbox, "--retry-base", "20ms")
    with Endpoint([500] * 9) as endpoint:
        webhook_id = sandbox.subscribe(endpoint.url)
        deliveries = fire(sandbox)
        requests = endpoint.wait_for(10, 120)
        waiting.until(lambda: '"HTTP status 200"' in sandbox.log, 30, "the end of the delivery")
        # Another delivery goes its own way, and then no eleventh attempt has come before it.
        fire(sandbox, "invoice.pending")
        assert endpoint.wait_for(11)[10].json["event"] == "invoice.pending"
    assert {request.assert_signed(SECRET)[:2] for request in requests} == {(webhook_id, deliveries[webhook_id])}
    assert len({request.body for request in requests}) == 1
    pauses = [later.at - earlier.at for earlier, later in zip(requests, requests[1:])]
    assert all(pause >= 0.02 * 2 ** n - 0.005 for n, pause in enumerate(pauses)), pauses
    assert len({request.header("x-invoicing-timestamp") for request in requests}) > 1
    assert list(outbox.iterdir()) == []


def test_ten_failures_end_the_delivery_and_send_a_mail(start, tmp_path):
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    sandbox = start("--outbox", outbox, "--key", "key,entity=acme")
    with Endpoint(lambda request: 500 if request.json["event"] == "invoice.received" else 200) as endpoint:
        webhook_id = sandbox.subscribe(endpoint.url)
        (delivery_id,) = fire(sandbox).values()
        (mail,) = waiting.until(lambda: list(outbox.glob("*.eml")), 120, "a mail")
        fire(sandbox, "invoice.pending")
        endpoint.wait_for_kind("invoice.pending")
        assert len(endpoint.requests) == 11
    message = email.message_from_bytes(mail.read_bytes(), policy=email.policy.strict)
    assert message["to"] == "users-of-acme@sandbox.invalid" and "@" in message["from"] and message["subject"]
    assert abs(message["date"].datetime.timestamp() - time.time()) < 600
    text = message.get_content()
    for each in (webhook_id, delivery_id, endpoint.url, "invoice.received", "HTTP status 500"):
        assert each in text
    assert b"\n" not in mail.read_bytes().replace(b"\r\n", b"") and len(list(outbox.iterdir())) == 1


def test_delivery_is_given_up_without_a_mail_if_there_is_no_outbox(start):
    sandbox = start("--retry-base", "1ms")
    with Endpoint(500) as endpoint:
        sandbox.subscribe(endpoint.url)
        fire(sandbox)
        endpoint.wait_for(10)
        waiting.until(lambda: "given up" in sandbox.log, 30, "the end")


@pytest.mark.parametrize("status", [200, 204, 299])
def test_any_2xx_answer_is_success(start, status):
    sandbox = start()
    with Endpoint(status) as endpoint:
        sandbox.subscribe(endpoint.url)
        fire(sandbox)
        waiting.until(lambda: f'"HTTP status {status}"' in sandbox.log, 30, "the answer")
        assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404, 410, 429, 503])
def test_other_answers_are_retried_and_redirects_not_followed(start, status):
    sandbox = start()
    with Endpoint([(status, {"location": "/elsewhere"})]) as endpoint:
        sandbox.subscribe(endpoint.url)
        fire(sandbox)
        requests = endpoint.wait_for(2)
    assert [(request.method, request.path) for request in requests] == [("POST", "/hook")] * 2


def test_unreachable_endpoint_counts_as_no_answer(start):
    sandbox = start("--retry-base", "50ms")
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        sandbox.subscribe(f"http://127.0.0.1:{reserved.getsockname()[1]}/")
        fire(sandbox)
        waiting.until(lambda: "no answer" in sandbox.log, 30, "an attempt")


def test_slow_endpoint_does_not_block_another(start):
    sandbox = start()
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent, Endpoint() as endpoint:
        sandbox.subscribe(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        sandbox.subscribe(endpoint.url)
        for _ in range(50):
            fire(sandbox)
        waiting.until(lambda: sandbox.log.count('outcome="HTTP status 200"') == 50, 30, "the answers")
        sandbox.stop()  # with attempts under way
    assert "pending deliveries dropped n=50" in sandbox.log


def test_removing_a_webhook_ends_its_deliveries(start):
    sandbox = start("--retry-base", "1h")
    with Endpoint(500) as endpoint:
        webhook_id = sandbox.subscribe(endpoint.url)
        fire(sandbox)
        endpoint.wait_for(1)
        assert sandbox.call("DELETE", f"/webhooks/{webhook_id}").status == 204
        fire(sandbox)
    sandbox.stop()
    assert "dropped" not in sandbox.log


def test_many_deliveries_arrive_once_each(start):
    sandbox = start()
    with Endpoint() as endpoint:
        sandbox.subscribe(endpoint.url)
        ids = [delivery_id for _ in range(300) for delivery_id in fire(sandbox).values()]
        requests = endpoint.wait_for(300)
    assert sorted(request.header("x-invoicing-delivery-id") for request in requests) == sorted(ids)


# The state file

def test_state_survives_a_restart(start, tmp_path):
    options = ["--state", tmp_path / "state.json"]
    sandbox = start(*options)
    sandbox.subscribe("https://gateway.example/", ["invoice.accepted", "reporting_batch.*"])
    with Endpoint() as endpoint:
        sandbox.subscribe(endpoint.url)
        rejected = submit(sandbox, invoice(outcome="rejected"), headers={"x-idempotency-key": "kept"})["invoiceId"]
        records = decided(sandbox, rejected), sandbox.webhooks()
        endpoint.wait_for(1)
        sandbox.stop()
        assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o600

        sandbox = start(*options)
        assert (poll(sandbox, rejected), sandbox.webhooks()) == records
        again = submit(sandbox, invoice(outcome="rejected"), headers={"x-idempotency-key": "kept"})
        assert (again["invoiceId"], again["duplicate"]) == (rejected, True)
        refused(sandbox.call("POST", "/invoices", invoice(), headers={"x-idempotency-key": "kept"}), 409)
        endpoint.wait_for(2)[1].assert_signed(SECRET)
        sandbox.stop()
    assert SECRET not in sandbox.log


def test_webhook_is_saved_before_the_answer(start, tmp_path):
    options = ["--state", tmp_path / "state.json"]
    sandbox = start(*options)
    first = sandbox.subscribe("https://gateway.example/")
    sandbox.kill()
    sandbox = start(*options)
    assert [each["id"] for each in sandbox.webhooks()] == [first]
    second = sandbox.subscribe("https://gateway.example/")
    assert sandbox.call("DELETE", f"/webhooks/{first}").status == 204
    sandbox.kill()
    assert [each["id"] for each in start(*options).webhooks()] == [second]


def test_webhook_that_cannot_be_saved_is_not_registered(start, tmp_path):
    directory = tmp_path / "there"
    directory.mkdir()
    sandbox = start("--state", directory / "state.json")
    directory.rename(tmp_path / "gone")
    refused(sandbox.call("POST", "/webhooks", {"url": "https://gateway.example/", "events": ["*"], "secret": SECRET}), 500)
    assert sandbox.webhooks() == []
    (tmp_path / "gone").rename(directory)
    sandbox.subscribe("https://gateway.example/")
    assert len(sandbox.webhooks()) == 1


def test_webhook_whose_removal_cannot_be_saved_is_kept(start, tmp_path):
    directory = tmp_path / "there"
    directory.mkdir()
    options = ["--state", directory / "state.json"]
    sandbox = start(*options)
    webhook = sandbox.subscribe("https://gateway.example/")
    directory.rename(tmp_path / "gone")
    refused(sandbox.call("DELETE", f"/webhooks/{webhook}"), 500)
    assert [each["id"] for each in sandbox.webhooks()] == [webhook]
    (tmp_path / "gone").rename(directory)
    assert sandbox.call("DELETE", f"/webhooks/{webhook}").status == 204
    sandbox.kill()
    assert start(*options).webhooks() == []


def test_webhook_is_removed_with_its_deliveries(start, tmp_path):
    options = ["--state", tmp_path / "state.json"]
    sandbox = start(*options)
    webhook = sandbox.subscribe("http://127.0.0.1:9/")
    submit(sandbox)
    waiting.until(lambda: json.loads((tmp_path / "state.json").read_text())["deliveries"], 30, "a pending delivery")
    assert sandbox.call("DELETE", f"/webhooks/{webhook}").status == 204
    assert json.loads((tmp_path / "state.json").read_text())["deliveries"] == []
    sandbox.kill()
    assert start(*options).webhooks() == []


def test_saving_the_state_is_retried(start, tmp_path):
    directory = tmp_path / "there"
    directory.mkdir()
    options = ["--state", directory / "state.json"]
    sandbox = start(*options)
    directory.rename(tmp_path / "gone")
    invoice_id = submit(sandbox)["invoiceId"]
    decided(sandbox, invoice_id)
    waiting.until(lambda: "state file could not be written" in sandbox.log, 30, "a failure")
    (tmp_path / "gone").rename(directory)
    waiting.until(lambda: invoice_id in (directory / "state.json").read_text(), 30, "the state to be saved")


def test_authority_decides_after_a_restart(start, tmp_path):
    options = ["--state", tmp_path / "state.json", "--delay"]
    sandbox = start(*options, "1h")
    invoice_id = submit(sandbox)["invoiceId"]
    sandbox.stop()
    sandbox = start(*options, "1ms")
    assert decided(sandbox, invoice_id)["clearanceStatus"] == "ACCEPTED"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version":1,"subscriptions":[],"invoices":{}}',
                                  '{"subscriptions":[{}],"invoices":[]}', '{"subscriptions":[],"invoices":[{}]}'])
def test_invalid_state_file_is_not_overwritten(tmp_path, text):
    path = tmp_path / "state.json"
    path.write_text(text)
    path.chmod(0o600)
    done = run("--state", path)
    assert done.returncode == EX_DATAERR and str(path) in done.stderr and path.read_text() == text


# Its arguments

def run(*options):
    """Run it where it must not even start."""
    return subprocess.run([BUILD / "gatepost-sandbox", *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, env=ENVIRONMENT)


def test_world_readable_state_file_is_refused(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{"subscriptions":[],"invoices":[]}')
    path.chmod(0o644)
    done = run("--state", path)
    assert done.returncode == EX_DATAERR and "chmod" in done.stderr


@pytest.mark.parametrize("options", [["--nonsense"], ["more"], ["--listen", "nowhere"], ["--listen", "unix:/tmp/x"],
                                     ["--key", ""], ["--key", "a,b"], ["--key", "a,entity="], ["--key", "a b"],
                                     ["--service", "X"], ["--service", ""], ["--retry-base", "5"], ["--delay", "-1s"]])
def test_wrong_usage_exits_64(options):
    done = run(*options)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr


def test_unavailable_files_and_addresses_are_reported(tmp_path):
    done = run("--listen", "127.0.0.1:0", "--outbox", tmp_path / "nowhere")
    assert done.returncode == EX_CANTCREAT and "--outbox" in done.stderr
    done = run("--listen", "127.0.0.1:0", "--state", tmp_path / "nowhere" / "state.json")
    assert done.returncode == EX_CANTCREAT and "state.json" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == EX_UNAVAILABLE and "in use" in done.stderr


def test_key_is_not_shown_in_an_error():
    done = run("--key", "a-key-to-keep,nonsense")
    assert done.returncode == EX_USAGE and "a-key-to-keep" not in done.stderr


def test_unwritable_stdout_exits_74():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BUILD / "gatepost-sandbox", "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, timeout=60, env=ENVIRONMENT)
    assert done.returncode == 74 and b"stdout" in done.stderr
