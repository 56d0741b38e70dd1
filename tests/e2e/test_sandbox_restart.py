"""Deliveries that are pending when the sandbox ends: with a state file it continues them."""

import json
import re
import shutil
import socket

import pytest

import waiting
from endpoint import Endpoint
from sandbox import SECRET
from test_sandbox_deliveries import fire, run, start

EX_DATAERR = 65

__all__ = ["start"]  # a fixture


@pytest.fixture
def outbox(tmp_path):
    (tmp_path / "outbox").mkdir()
    return tmp_path / "outbox"


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state.json"


def kept(state):
    """The deliveries in the state file."""
    return json.loads(state.read_text())["deliveries"]


def attempts(sandbox):
    """The numbers of the attempts of which it knows the outcome, in order, over all of its runs."""
    return [int(number) for number in re.findall(r" attempt=(\d+) outcome=", sandbox.log)]


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("answers, n_mails", [([500] * 9, 0), (500, 1)])
def test_ten_attempts_are_made_in_total_across_a_restart(start, outbox, state, how, answers, n_mails):
    with Endpoint(answers) as endpoint:
        sandbox = start("--state", state, "--outbox", outbox, "--retry-base", "1h")
        sandbox.subscribe(endpoint.url)
        ((webhook_id, delivery_id),) = fire(sandbox).items()
        waiting.until(lambda: attempts(sandbox) == [1] and [each["attempts"] for each in kept(state)] == [1], 30,
                      "the first attempt in the state file")
        getattr(sandbox, how)()
        sandbox = start("--state", state, "--outbox", outbox, "--retry-base", "1ms")
        waiting.until(lambda: len(attempts(sandbox)) == 10 and kept(state) == [], 60, "the end of the delivery")
        assert attempts(sandbox) == list(range(1, 11))
        assert {each.assert_signed(SECRET)[:2] for each in endpoint.requests} == {(webhook_id, delivery_id)}
        assert len({each.body for each in endpoint.requests}) == 1 and len(endpoint.requests) == 10
        assert [mail.stem for mail in outbox.glob("*.eml")] == [delivery_id] * n_mails
        # And that was that.
        sandbox.stop()
        sandbox = start("--state", state, "--outbox", outbox)
        fire(sandbox, "invoice.pending")
        endpoint.wait_for_kind("invoice.pending")
        assert sum(each.header("x-invoicing-delivery-id") == delivery_id for each in endpoint.requests) == 10
    assert "deliveries=1\n" in sandbox.log and "pending deliveries saved n=1" in sandbox.log or how == "kill"


def test_attempt_interrupted_by_a_restart_counts(start, outbox, state):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sandbox = start("--state", state, "--outbox", outbox)
        sandbox.subscribe(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        (delivery_id,) = fire(sandbox).values()
        waiting.until(lambda: state.exists() and [each["attempts"] for each in kept(state)] == [1], 30, "the attempt in the state file")
        sandbox.stop()
    sandbox = start("--state", state, "--outbox", outbox)
    waiting.until(lambda: list(outbox.glob("*.eml")), 60, "a mail")
    assert attempts(sandbox) == list(range(2, 11))


def test_last_attempt_interrupted_by_a_restart_sends_a_mail(start, outbox, state):
    with Endpoint(500) as endpoint:
        sandbox = start("--state", state, "--outbox", outbox, "--retry-base", "1h")
        sandbox.subscribe(endpoint.url)
        (delivery_id,) = fire(sandbox).values()
        waiting.until(lambda: attempts(sandbox) == [1], 30, "the first attempt")
        sandbox.stop()
        content = json.loads(state.read_text())
        content["deliveries"][0]["attempts"] = 10
        state.write_text(json.dumps(content))
        sandbox = start("--state", state, "--outbox", outbox)
        (mail,) = outbox.glob("*.eml")
        text = mail.read_text()
        assert mail.stem == delivery_id and "attempts:     10" in text and "restarted" in text
        assert kept(state) == [] and len(endpoint.requests) == 1


@pytest.mark.parametrize("options", [["--sign-once"], []], ids=["signed once", "each attempt signed"])
def test_sign_once_holds_across_a_restart(start, state, options):
    names = [f"x-invoicing-{name}" for name in ("signature", "timestamp", "webhook-id", "delivery-id")]
    with Endpoint(500) as endpoint:
        sandbox = start("--state", state, "--retry-base", "1s", *options)
        sandbox.subscribe(endpoint.url)
        fire(sandbox)
        endpoint.wait_for(2)
        sandbox.stop()
        sandbox = start("--state", state, "--retry-base", "1s", *options)
        requests = endpoint.wait_for(3)
        headers = {tuple(each.header(name) for name in names) for each in requests}
        assert len(headers) == (1 if options else len(requests))
        for each in requests:
            each.assert_signed(SECRET)


def test_pending_deliveries_keep_their_order_and_are_removed_with_their_webhook(start, state):
    with Endpoint(lambda _: 500) as endpoint:
        sandbox = start("--state", state, "--retry-base", "1h")
        webhook_id = sandbox.subscribe(endpoint.url)
        ids = [delivery_id for _ in range(5) for delivery_id in fire(sandbox).values()]
        endpoint.wait_for(5)
        sandbox.stop()
        assert [each["id"] for each in kept(state)] == ids
        sandbox = start("--state", state, "--retry-base", "1h")
        assert [each["id"] for each in kept(state)] == ids
        assert sandbox.call("DELETE", f"/webhooks/{webhook_id}").status == 204
        assert kept(state) == []
        sandbox.stop()
    assert "dropped" not in sandbox.log


GOOD = {"id": "0" * 36, "webhookId": "1" * 36, "entity": "default", "kind": "invoice.accepted", "attempts": 1, "dueMs": 1,
        "body": "{}"}
WEBHOOK = {"id": "1" * 36, "owner": None, "createdMs": 1,
           "request": {"url": "http://127.0.0.1:9/", "secret": SECRET, "events": ["*"]}}


@pytest.mark.parametrize("deliveries, text", [
    ({}, "deliveries is missing"), ([{}], "is incomplete"), ([1], "is incomplete"),
    ([GOOD | {"attempts": 11}], "is incomplete"), ([GOOD | {"attempts": -1}], "is incomplete"),
    ([GOOD | {"kind": "a\nb"}], "is incomplete"), ([GOOD | {"entity": "a\r\nBcc: x"}], "is incomplete"),
    ([GOOD | {"id": "../" * 12}], "is incomplete"), ([GOOD | {"body": None}], "is incomplete"),
    ([GOOD | {"webhookId": "2" * 36}], "webhook does not exist")])
def test_invalid_saved_delivery_is_reported(state, deliveries, text):
    content = json.dumps({"version": 1, "subscriptions": [WEBHOOK], "invoices": [], "deliveries": deliveries})
    state.write_text(content)
    state.chmod(0o600)
    done = run("--listen", "127.0.0.1:0", "--state", state)
    assert done.returncode == EX_DATAERR and text in done.stderr and state.read_text() == content


def test_state_file_without_deliveries_is_read(start, state):
    state.write_text(json.dumps({"version": 1, "subscriptions": [WEBHOOK], "invoices": []}))
    state.chmod(0o600)
    assert [each["id"] for each in start("--state", state).webhooks()] == [WEBHOOK["id"]]


def test_state_that_cannot_be_saved_at_the_end_exits_73(start, tmp_path):
    directory = tmp_path / "state"
    directory.mkdir()
    with Endpoint(500) as endpoint:
        sandbox = start("--state", directory / "state.json", "--retry-base", "1h")
        sandbox.subscribe(endpoint.url)
        fire(sandbox)
        waiting.until(lambda: attempts(sandbox) == [1] and kept(directory / "state.json"), 30, "a delivery in the state file")
        shutil.rmtree(directory)
        sandbox.stop(expect=73)
    assert "pending deliveries dropped n=1" in sandbox.log
