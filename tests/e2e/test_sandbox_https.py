"""Deliveries of the sandbox and of fire over HTTPS: which endpoints they trust."""

import json
import subprocess

import pytest

import waiting
from authority import Authority
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from endpoint import Endpoint
from installation import BUILD
from sandbox import SECRET, Sandbox

EX_NOINPUT, EX_TEMPFAIL = 66, 75


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificates(authority):
    """Certificates and keys of an endpoint: a valid one and invalid ones."""
    return {"right": authority.issue("right"), "of another host": authority.issue("other", names="DNS:another.example"),
            "expired": authority.issue("old", begin="20200101000000Z", end="20200201000000Z"),
            "with a tricky name": authority.issue("a\nb", names="email:a@b.example")}


@pytest.fixture
def another_authority(tmp_path):
    (tmp_path / "another").mkdir()
    return Authority(tmp_path / "another")


def deliver(sandbox, endpoint):
    """Have one event sent there. Returns (webhook-id, delivery-id)."""
    webhook_id = sandbox.subscribe(endpoint.url)
    (delivery,) = sandbox.call("POST", "/sandbox/fire", {"kind": "invoice.received"}).json["deliveries"]
    return webhook_id, delivery["deliveryId"]


def test_endpoint_with_a_trusted_certificate_gets_the_delivery(tmp_path, authority, certificates):
    with Endpoint(200, *certificates["right"], host="localhost") as endpoint, \
            Sandbox(BUILD, tmp_path, "--ca-file", authority.certificate) as sandbox:
        ids = deliver(sandbox, endpoint)
        assert endpoint.url.startswith("https://localhost:")
        (request,) = endpoint.wait_for(1)
        assert request.assert_signed(SECRET)[:2] == ids
        waiting.until(lambda: '"HTTP status 200"' in sandbox.log, 30, "the end of the delivery")


@pytest.mark.parametrize("wrong", ["of another authority", "of another host", "expired", "with a tricky name", "system"])
def test_endpoint_with_an_untrusted_certificate_gets_no_request(tmp_path, authority, another_authority,
                                                                          certificates, wrong):
    trusted = {"of another authority": ["--ca-file", another_authority.certificate], "system": []}
    options = trusted.get(wrong, ["--ca-file", authority.certificate])
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    with Endpoint(200, *certificates.get(wrong, certificates["right"]), host="localhost") as endpoint, \
            Sandbox(BUILD, tmp_path, *options, "--retry-base", "1ms", "--outbox", outbox) as sandbox:
        _, delivery_id = deliver(sandbox, endpoint)
        (mail,) = waiting.until(lambda: list(outbox.glob("*.eml")), 120, "a mail")
        sandbox.stop()
        assert endpoint.requests == []
    assert mail.stem == delivery_id and sandbox.log.count(f" attempt delivery-id={delivery_id} ") == 10
    (outcome,) = [line for line in mail.read_text().splitlines() if line.startswith("last outcome:")]
    assert "no answer: SSL" in outcome and outcome.isprintable()
    assert wrong != "with a tricky name" or "'a?b' does not match" in outcome


def test_attempts_continue_until_the_certificate_is_valid(tmp_path, authority, certificates):
    """The endpoint at a port gets another certificate between two attempts."""
    with Sandbox(BUILD, tmp_path, "--ca-file", authority.certificate, "--retry-base", "100ms") as sandbox:
        with Endpoint(200, *certificates["expired"], host="localhost") as endpoint:
            _, delivery_id = deliver(sandbox, endpoint)
            waiting.until(lambda: " attempt=1 " in sandbox.log, 30, "the first attempt")
            port = endpoint.port
            assert endpoint.requests == []
        with Endpoint(200, *certificates["right"], host="localhost", port=port) as endpoint:
            (request,) = endpoint.wait_for(1)
            assert request.assert_signed(SECRET)[1] == delivery_id


def fire(tmp_path, endpoint, ca_file):
    secret_file = tmp_path / "secret"
    secret_file.write_text(SECRET)
    secret_file.chmod(0o600)
    done = subprocess.run([BUILD / "gatepost-sandbox", "fire", "--to", endpoint.url, "--secret-file", secret_file, "--count", "5",
                           "--json", "--ca-file", ca_file], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert_no_sanitizer_report(done.stderr)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def test_fire_sends_to_trusted_endpoints_only(tmp_path, authority, another_authority, certificates):
    with Endpoint(200, *certificates["right"], host="localhost") as endpoint:
        status, report, _ = fire(tmp_path, endpoint, authority.certificate)
        assert (status, report["answers"], report["noAnswer"]) == (0, {"200": 5}, 0)
        status, report, stderr = fire(tmp_path, endpoint, another_authority.certificate)
        assert (status, report["answers"], report["noAnswer"]) == (EX_TEMPFAIL, {}, 5) and "no answer: SSL" in stderr
        assert len(endpoint.requests) == 5


@pytest.mark.parametrize("content, text", [(None, "No such file"), (b"", "no certificate"), (b"nonsense", "no certificate")])
def test_unreadable_ca_file_is_reported_at_startup(tmp_path, content, text):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    done = subprocess.run([BUILD / "gatepost-sandbox", "--listen", "127.0.0.1:0", "--ca-file", path], capture_output=True,
                          text=True, timeout=60, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (EX_NOINPUT, "") and "--ca-file: " in done.stderr and text in done.stderr
    with Endpoint() as endpoint:
        status, report, stderr = fire(tmp_path, endpoint, path)
        assert (status, report, endpoint.requests) == (EX_NOINPUT, None, []) and "--ca-file: " in stderr and text in stderr
