"""The sandbox's deliveries to a real endpoint: signed, filtered, retried, given up; over HTTPS to trusted endpoints only."""

import email
import email.policy
import re
import signal
import socket
import subprocess
import time

import pytest

import waiting
from authority import Authority
from daemon import ENVIRONMENT
from endpoint import Endpoint
from installation import BUILD
from sandbox import SECRET, Sandbox
from signing import KINDS

EX_USAGE, EX_UNAVAILABLE, EX_IOERR = 64, 69, 74


@pytest.fixture
def start(tmp_path):
    """Start a sandbox with these options, and quick retries unless they say otherwise."""
    started = []

    def run(*options):
        quick = [] if "--retry-base" in options else ["--retry-base", "5ms"]
        started.append(Sandbox(BUILD, tmp_path, *quick, *options).start())
        return started[-1]
    yield run
    for each in started:
        each.clean_up()


@pytest.fixture
def outbox(tmp_path):
    (tmp_path / "outbox").mkdir()
    return tmp_path / "outbox"


# What arrives

def test_event_of_any_kind_is_sent(start):
    sandbox = start()
    with Endpoint() as endpoint:
        webhook_id = sandbox.subscribe(endpoint.url)
        for kind in (*KINDS, "invoice.teleported", "a kind\nof lines"):
            (delivery_id,) = sandbox.fire(kind, data={"invoiceId": "zażółć", "nested": [1, {"deep": None}]}).values()
            request = endpoint.wait_for_kind(kind)
            assert (request.method, request.path, request.header("content-type")) == ("POST", "/hook", "application/json")
            assert request.assert_signed(SECRET)[:2] == (webhook_id, delivery_id)
            assert request.json.keys() == {"event", "createdAt", "invoiceId", "nested"} and request.json["invoiceId"] == "zażółć"


def test_event_without_data_gets_generated_data(start):
    sandbox = start()
    with Endpoint() as endpoint:
        sandbox.subscribe(endpoint.url)
        sandbox.fire("invoice.rejected")
        assert endpoint.wait_for_kind("invoice.rejected").json["clearanceStatus"] == "REJECTED"


@pytest.mark.parametrize("events, wanted", [
    (["*"], KINDS), (["invoice.rejected", "held_unmapped_decision"], ["invoice.rejected", "held_unmapped_decision"]),
    (["reporting_batch.*"], KINDS[8:]), (["reporting_batch.overdue"], ["reporting_batch.overdue"])])
def test_only_subscribed_events_are_sent(start, events, wanted):
    sandbox = start()
    with Endpoint() as endpoint:
        sandbox.subscribe(endpoint.url, events)
        sent = [kind for kind in KINDS if sandbox.fire(kind)]
        received = [request.json["event"] for request in endpoint.wait_for(len(wanted))]
    assert sent == wanted and sorted(received) == sorted(wanted)


def test_every_webhook_gets_its_own_delivery_and_signature(start):
    sandbox = start("--service", "e-faktura")
    secrets = ["the first secret, long enough", "the second secret, long enough"]
    with Endpoint() as endpoint:
        ids = {sandbox.subscribe(endpoint.url, secret=secret): secret for secret in secrets}
        deliveries = sandbox.fire()
        requests = endpoint.wait_for(2)
    seen = {request.header("x-e-faktura-webhook-id"): request for request in requests}
    assert seen.keys() == ids.keys() == deliveries.keys() and len(set(deliveries.values())) == 2
    for webhook_id, secret in ids.items():
        assert seen[webhook_id].assert_signed(secret, "e-faktura")[1] == deliveries[webhook_id]


def test_webhook_of_an_entity_gets_only_its_events(start):
    sandbox = start("--key", "full", "--key", "ours,entity=ours")
    with Endpoint() as endpoint:
        ours, everyones = sandbox.subscribe(endpoint.url, key="ours"), sandbox.subscribe(endpoint.url)
        assert sandbox.fire(entity="ours").keys() == {ours, everyones}
        assert sandbox.fire(entity="theirs").keys() == sandbox.fire().keys() == {everyones}
        endpoint.wait_for(4)


# Attempts

@pytest.mark.parametrize("options, n_signatures", [(["--sign-once"], 1), ([], 10)])
def test_success_at_the_tenth_attempt_ends_the_delivery(start, outbox, options, n_signatures):
    sandbox = start("--outbox", outbox, "--retry-base", "20ms", *options)
    with Endpoint([(302, {"location": "/elsewhere"}), 401, *[500] * 7]) as endpoint:
        ids = (webhook_id := sandbox.subscribe(endpoint.url), sandbox.fire()[webhook_id])
        requests = endpoint.wait_for(10, 120)
        waiting.until(lambda: '"HTTP status 200"' in sandbox.log, 30, "the end of the delivery")
        assert len(endpoint.requests) == 10
    assert {request.assert_signed(SECRET)[:2] for request in requests} == {ids} and {each.path for each in requests} == {"/hook"}
    assert len({request.body for request in requests}) == 1 and list(outbox.iterdir()) == []
    # 20 ms, doubled after each attempt. Half of it, as a request may be late.
    for n in range(5, 9):
        assert requests[n + 1].at - requests[n].at > 0.02 * 2 ** n / 2
    timestamps = {request.header("x-invoicing-timestamp") for request in requests}
    assert len(timestamps) == 1 if n_signatures == 1 else len(timestamps) >= 4


def test_mail_reports_a_delivery_that_failed_ten_times(start, outbox):
    sandbox = start("--outbox", outbox, "--key", "full", "--key", "acme,entity=acme")
    with Endpoint(500) as endpoint:
        webhook_id = sandbox.subscribe(endpoint.url)
        (delivery_id,) = sandbox.fire(entity="acme").values()
        (mail,) = waiting.until(lambda: list(outbox.glob("*.eml")), 120, "a mail")
        sandbox.fire("invoice.pending")
        endpoint.wait_for_kind("invoice.pending")
        assert [each.json["event"] for each in endpoint.requests].count("invoice.received") == 10
    message = email.message_from_bytes(mail.read_bytes(), policy=email.policy.strict)
    assert message["to"] == "users-of-acme@sandbox.invalid" and message["from"] and message["subject"]
    assert abs(message["date"].datetime.timestamp() - time.time()) < 600
    for each in (webhook_id, delivery_id, endpoint.url, "invoice.received", "HTTP status 500"):
        assert each in message.get_content()
    assert b"\n" not in mail.read_bytes().replace(b"\r\n", b"") and len(list(outbox.iterdir())) == 1


def test_mail_that_cannot_be_written_is_logged(start, outbox):
    sandbox = start("--outbox", outbox / "nowhere", "--retry-base", "1ms")
    with Endpoint(500) as endpoint:
        sandbox.subscribe(endpoint.url)
        sandbox.fire()
        waiting.until(lambda: "mail=failed" in sandbox.log and "No such file" in sandbox.log, 30, "the end of the delivery")


def test_silent_endpoint_delays_only_its_own_deliveries(start):
    sandbox = start()
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent, Endpoint() as endpoint:
        sandbox.subscribe(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        here = sandbox.subscribe(endpoint.url)
        ids = [sandbox.fire()[here] for _ in range(100)]
        requests = endpoint.wait_for(100)
        sandbox.stop()  # with attempts under way
    assert sorted(request.header("x-invoicing-delivery-id") for request in requests) == sorted(ids)


def test_removing_a_webhook_ends_its_deliveries(start):
    sandbox = start("--retry-base", "100ms")
    with Endpoint(lambda _: 500) as endpoint:
        removed = sandbox.subscribe(endpoint.url)
        sandbox.fire()
        endpoint.wait_for(1)
        assert sandbox.call("DELETE", f"/webhooks/{removed}").status == 204
        kept = sandbox.subscribe(endpoint.url)
        assert sandbox.fire().keys() == {kept}
        # By the third attempt of the other, the second attempt of the removed one would have come.
        requests = endpoint.wait_for(4)
    assert [each.header("x-invoicing-webhook-id") for each in requests[:4]] == [removed, kept, kept, kept]


@pytest.mark.parametrize("wrong", [None, "of another authority", "of another host", "with a tricky name"])
def test_only_endpoints_with_a_trusted_certificate_get_deliveries(start, tmp_path, outbox, wrong):
    (tmp_path / "another").mkdir()
    authority, another = Authority(tmp_path), Authority(tmp_path / "another")
    names = {"of another host": "DNS:another.example", "with a tricky name": "email:a@b.example"}
    certificate = authority.issue("a\nb" if wrong == "with a tricky name" else "right", **({"names": names[wrong]} if wrong in names else {}))
    trusted = (another if wrong == "of another authority" else authority).certificate
    with Endpoint(200, *certificate, host="localhost") as endpoint:
        sandbox = start("--ca-file", trusted, "--retry-base", "1ms", "--outbox", outbox)
        sandbox.subscribe(endpoint.url)
        sandbox.fire()
        if wrong is None:
            endpoint.wait_for(1)[0].assert_signed(SECRET)
        else:
            (mail,) = waiting.until(lambda: list(outbox.glob("*.eml")), 120, "a mail")
            (outcome,) = [line for line in mail.read_text().splitlines() if line.startswith("last outcome:")]
            assert "no answer: SSL" in outcome and outcome.isprintable() and endpoint.requests == []


# The program

def run(*options, **more):
    """Run it where it must not even start."""
    return subprocess.run([BUILD / "gatepost-sandbox", *options], stdin=subprocess.DEVNULL, text=True, timeout=60, env=ENVIRONMENT,
                          **({"capture_output": True} | more))


@pytest.mark.parametrize("options", [["--nonsense"], ["more"], ["--listen", "nowhere"], ["--listen", "unix:/tmp/x"], ["--key", ""],
                                     ["--key", "a-key-to-keep,b"], ["--key", "a-key-to-keep,entity=?"], ["--retry-base", "5"]])
def test_wrong_usage_exits_64_and_shows_no_key(options):
    done = run(*options)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr and "a-key-to-keep" not in done.stderr


def test_address_in_use_and_closed_output_are_reported():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == EX_UNAVAILABLE and "in use" in done.stderr
    with open("/dev/full", "wb") as full:
        done = run("--listen", "127.0.0.1:0", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == EX_IOERR and "stdout" in done.stderr


def test_signal_ends_it(start):
    sandbox = start()
    sandbox.process.send_signal(signal.SIGINT)
    assert sandbox.process.wait(30) == 0 and re.search(r"stopping signal=SIGINT", sandbox.log)
