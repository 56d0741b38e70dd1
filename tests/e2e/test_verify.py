"""gatepost verify: the receiver's answer to a saved delivery, off line, and the cause of a refusal."""

import hashlib
import hmac
import json

import pytest

import signing
from signing import SECRET, Delivery

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_CONFIG = 64, 65, 66, 78
BODY = '{"event": "invoice.accepted", "text": "Straße/5", "lines": [{"a": 1}, {}]}'.encode()
OTHER_SECRET = b"the secret of the other source"
CURL = """* Connected to gatepost.example (192.0.2.7) port 443
> POST /webhooks/invoicing HTTP/1.1\r
> Host: gatepost.example\r
> Accept: */*\r
{}> Content-Length: 12\r
>\x20\r
}} [12 bytes data]
< HTTP/1.1 401 Unauthorized\r
< x-invoicing-signature: sha256=nonsense\r
"""


@pytest.fixture
def config(offline):
    return offline.config().source("other", OTHER_SECRET)


@pytest.fixture
def verify(offline, config, tmp_path):
    """Run `gatepost verify` on headers, a dictionary or a text, and a body."""
    def run(headers, body, *options, **more):
        (tmp_path / "headers").write_bytes(headers if isinstance(headers, bytes) else as_lines(headers).encode())
        (tmp_path / "body").write_bytes(body)
        done = offline.gatepost("verify", *map(str, options), str(tmp_path / "headers"), str(tmp_path / "body"),
                                **{"config": config} | more)
        assert SECRET.decode() not in done.stdout + done.stderr
        return done
    return run


@pytest.fixture
def verdict(verify):
    """What `gatepost verify --json` says."""
    def run(*arguments, **more):
        done = verify(*arguments, "--json", **more)
        result = json.loads(done.stdout)
        assert (done.returncode, done.stderr) == (0 if result["ok"] else EX_DATAERR, "")
        return result
    return run


def as_lines(headers):
    if isinstance(headers, str):
        return headers
    return "".join(f"{name}: {value}\n" for name, value in headers.items())


def as_curl(headers):
    return CURL.format("".join(f"> {name}: {value}\r\n" for name, value in headers.items()))


def outcomes(result):
    return [check["outcome"] for check in result["checks"]]


# The forms in which headers are saved

FORMS = {
    "lines": as_lines,
    "request": lambda headers: "POST /webhooks/invoicing HTTP/1.1\r\nHost: x\r\n" +
                               as_lines(headers).replace("\n", "\r\n") + "\r\n{\"not\": \"a header\"}",
    "curl": as_curl,
}


@pytest.mark.parametrize("form", FORMS)
def test_genuine_delivery_is_ok_in_every_form(verify, form):
    delivery = Delivery(BODY)
    done = verify(FORMS[form](delivery.headers()), delivery.body)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[:2] for line in done.stdout.splitlines()[:4]] == [
        [name, "ok"] for name in ("headers", "webhook-id", "timestamp", "signature")]
    assert "answer: 200" in done.stdout and "cause" not in done.stdout


def test_too_large_body_is_refused_like_a_receiver_does(verify, verdict):
    delivery = Delivery(b"a" * (1 << 20) + b"a")
    assert "answer: 413 PAYLOAD_TOO_LARGE\n" in verify(delivery.headers(), delivery.body).stdout
    said = verdict(delivery.headers(), delivery.body)
    assert (said["ok"], said["status"], said["code"]) == (False, 413, "PAYLOAD_TOO_LARGE")


def test_first_of_several_requests_is_used(verify):
    one, other = Delivery(BODY), Delivery(BODY, secret=OTHER_SECRET)
    assert verify(as_curl(one.headers()) + as_curl(other.headers()), BODY).returncode == 0
    assert verify(as_curl(other.headers()) + as_curl(one.headers()), BODY).returncode == EX_DATAERR


def test_headers_or_body_are_read_from_stdin(offline, config, tmp_path):
    delivery = Delivery(BODY)
    (tmp_path / "body").write_bytes(BODY)
    (tmp_path / "headers").write_text(as_lines(delivery.headers()))
    for arguments, text in ((["-", "body"], as_lines(delivery.headers())), (["headers", "-"], BODY.decode())):
        done = offline.gatepost("verify", *arguments, config=config, input=text)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", ["{", "what is this\n", "[" * 100000, '{"a": "b"}', "a: b\nc\n", "a : b", ": b"])
def test_unreadable_headers_exit_65(verify, text):
    done = verify(text, BODY)
    assert (done.returncode, done.stdout) == (EX_DATAERR, "") and "headers: " in done.stderr


@pytest.mark.parametrize("text", ["", "\r\n\n", "a:", "> GET / HTTP/1.1\r\n> \r\n", "host: gatepost.example\n"])
def test_absent_headers_are_reported_as_missing(verdict, text):
    result = verdict(text, BODY)
    assert outcomes(result) == ["failed", "unknown", "unknown", "unknown"]
    assert [each["message"] for each in result["checks"][0]["violations"]] == ["is missing"] * 4


# Each check

def test_every_check_is_reported_after_a_failed_one(config, verdict):
    config["source invoicing"]["webhook_id"] = "another-webhook"
    delivery = Delivery(BODY, timestamp=signing.now() - 4000)
    result = verdict(delivery.headers(), BODY + b"?")
    assert outcomes(result) == ["ok", "failed", "failed", "failed"]
    assert (result["ok"], result["status"], result["code"]) == (False, 403, "FORBIDDEN")
    assert outcomes(verdict(delivery.headers(), BODY)) == ["ok", "failed", "failed", "ok"]


def test_malformed_headers_are_named_and_other_checks_continue(verdict):
    headers = Delivery(BODY).headers() | {"x-invoicing-delivery-id": "no good"}
    del headers["x-invoicing-webhook-id"]
    result = verdict(headers, BODY)
    assert outcomes(result) == ["failed", "unknown", "ok", "ok"]
    assert {each["field"]: each["message"] for each in result["checks"][0]["violations"]} == {
        "x-invoicing-webhook-id": "is missing",
        "x-invoicing-delivery-id": "must be 1 to 64 letters, digits and hyphens"}


def test_old_delivery_is_stale_now_and_fresh_with_at(verify, verdict):
    delivery = Delivery(BODY, timestamp=1763694245)  # 2025-11-21T03:04:05Z
    result = verdict(delivery.headers(), BODY)
    assert (result["code"], outcomes(result)) == ("STALE_TIMESTAMP", ["ok", "ok", "failed", "ok"])
    assert "--at" in result["causes"][0]
    for at, status in (("2025-11-21T03:04:05Z", 0), ("2025-11-21T03:09:05Z", 0), ("2025-11-21T03:09:06Z", EX_DATAERR),
                       ("2025-11-21T02:59:04Z", EX_DATAERR)):
        assert verify(delivery.headers(), BODY, "--at", at).returncode == status, at


def test_clock_difference_is_reported(verdict):
    causes = verdict(Delivery(BODY, timestamp=signing.now() + 1000).headers(), BODY)["causes"]
    assert len(causes) == 1 and any(f"off by {seconds} s" in causes[0] for seconds in range(985, 1001))


# Why a signature does not match

def signed_as(body, **changes):
    """The headers of a delivery that was signed with this body."""
    return Delivery(body, **changes).headers()


def over(text, secret=SECRET):
    """Headers whose signature is over some text, at the timestamp 1763694245."""
    digest = hmac.new(secret, text, hashlib.sha256).hexdigest()
    return Delivery(BODY, timestamp=1763694245).headers() | {"x-invoicing-signature": f"sha256={digest}"}


BODIES = {  # signed body, received body, cause
    "newline-added": (BODY, BODY + b"\n", "a newline was added to the end of the body"),
    "crlf-added": (BODY, BODY + b"\r\n", "a newline was added to the end of the body"),
    "newline-removed": (BODY + b"\n", BODY, "a newline at the end of the body was removed"),
    "crlf-removed": (BODY + b"\r\n", BODY, "a CR LF at the end of the body was removed"),
    "rewritten": (BODY, BODY.replace(b": ", b":"), "the sender has another secret, or the body was changed on its way"),
    "empty": (BODY, b"", "the sender has another secret, or the body was changed on its way"),
}


@pytest.mark.parametrize("name", BODIES)
def test_cause_is_a_changed_body(verdict, name):
    signed, came, cause = BODIES[name]
    result = verdict(signed_as(signed), came)
    assert (result["code"], result["causes"]) == ("INVALID_SIGNATURE", [cause])


@pytest.mark.parametrize("change", [str.upper, lambda digits: "v1=" + digits, lambda digits: digits.removeprefix("sha256=")])
def test_form_of_the_signature_is_told_by_the_check_of_the_headers(verdict, change):
    delivery = Delivery(BODY)
    result = verdict(delivery.headers() | {"x-invoicing-signature": change(delivery.signature)}, BODY)
    assert (outcomes(result), result["causes"]) == (["failed", "ok", "ok", "unknown"], [])
    (violation,) = result["checks"][0]["violations"]
    assert violation["field"] == "x-invoicing-signature" and "64 lowercase hexadecimal digits" in violation["message"]


def test_cause_is_another_header_prefix(verdict):
    result = verdict(Delivery(BODY).headers("X-Acme"), BODY)
    assert outcomes(result) == ["failed", "unknown", "unknown", "unknown"]
    assert result["causes"] == ["the headers begin with X-Acme, but header_prefix of the source invoicing is x-invoicing"]


def test_header_name_with_control_characters_is_not_printed(verify):
    done = verify("\x1b[31m-signature: sha256=\n", BODY)
    assert done.returncode == EX_DATAERR and "\x1b" not in done.stdout + done.stderr


def test_cause_is_the_secret_of_another_source(verdict):
    assert verdict(signed_as(BODY, secret=OTHER_SECRET), BODY)["causes"] == [
        "it was signed with the secret of the source other"]


@pytest.mark.parametrize("text, cause", [
    (BODY, "the timestamp was not signed"), (BODY + b".1763694245", "the timestamp was signed after the body"),
])
def test_cause_is_the_signed_form_of_the_timestamp(verdict, text, cause):
    assert verdict(over(text), BODY, "--at", "2025-11-21T03:04:05Z")["causes"] == [cause]


def test_several_causes_are_found_together(verdict):
    causes = verdict(over(BODY, OTHER_SECRET), BODY, "--at", "2025-11-21T03:04:05Z")["causes"]
    assert causes == ["the timestamp was not signed", "it was signed with the secret of the source other"]


@pytest.mark.parametrize("hidden", ["\u200b", "\u00a0", "\ufeff", "\x1b[0m", " "], ids=["zwsp", "nbsp", "bom", "escape", "blank"])
def test_invisible_characters_in_the_secret_file_are_the_cause(config, verdict, hidden):
    secret = SECRET.decode()
    file = config.secret_file("hidden", f"{secret[:9]}{hidden}{secret[9:]}".encode() if hidden != " " else f"{secret} ".encode())
    config["source invoicing"]["secret_file"] = file
    assert verdict(signed_as(BODY), BODY)["causes"] == [f"{file} has invisible characters, which the sender's secret does not have"]


def test_newline_in_the_registered_secret_is_the_cause(verdict):
    assert verdict(signed_as(BODY, secret=SECRET + b"\n"), BODY)["causes"] == [
        "the webhook was registered with the newline at the end of the secret file"]


def test_signature_is_not_revealed(verify):
    delivery = Delivery(BODY)
    done = verify(delivery.headers() | {"x-invoicing-signature": "sha256=" + "0" * 64}, BODY)
    assert done.returncode == EX_DATAERR and done.stdout.endswith("cause: the sender has another secret, or the body was changed on its way\n")
    assert delivery.signature.removeprefix("sha256=") not in done.stdout.lower()


def test_malformed_header_is_the_cause_and_not_the_secret(verify):
    done = verify(Delivery(BODY).headers() | {"x-invoicing-timestamp": "2026-11-28T01:00:00Z"}, BODY)
    assert done.returncode == EX_DATAERR and "x-invoicing-timestamp must be 10 digits" in done.stdout and "cause" not in done.stdout


# Whose delivery it is

def test_largest_body_is_processed_within_a_minute(verify):
    """The harness waits for a minute."""
    body = b'{"a":"' + b"/\xc3\xa9" * (20 << 20) + b'"}'
    assert "cause: the sender has another secret" in verify(signed_as(body, secret=b"not the secret of the tests"), body).stdout


def test_saved_headers_are_text(verify):
    done = verify(as_lines(Delivery(BODY).headers()).encode("utf-16"), BODY)
    assert (done.returncode, done.stdout) == (EX_NOINPUT, "") and "contains a NUL byte" in done.stderr


def test_source_is_found_by_its_headers_or_named(verdict):
    delivery = Delivery(BODY, secret=OTHER_SECRET)
    assert verdict(delivery.headers("x-other"), BODY)["source"] == "other"
    assert verdict(delivery.headers("x-other"), BODY, "--source", "other")["ok"]
    assert not verdict(delivery.headers("x-other"), BODY, "--source", "invoicing")["ok"]


def test_secret_file_needs_no_configuration(config, verdict):
    secret = config.secret_file("own", SECRET)
    options = ["--secret-file", secret, "--header-prefix", "x-own"]
    assert verdict(Delivery(BODY).headers("x-own"), BODY, *options, config="/nonexistent")["ok"]
    causes = verdict(Delivery(BODY + b"\n").headers("x-own"), BODY, *options, config="/nonexistent")["causes"]
    assert len(causes) == 1 and "newline at the end" in causes[0]


def test_secret_in_the_configuration_is_tried(config, verdict):
    del config["source other"]["secret_file"]
    config["source other"]["secret"] = OTHER_SECRET.decode()
    assert "the source other" in verdict(signed_as(BODY, secret=OTHER_SECRET), BODY)["causes"][0]


@pytest.mark.parametrize("arguments, told", [
    ([], "needs HEADERS"), (["a"], "needs BODY"), (["a", "b", "c"], "unexpected argument 'c'"), (["--nonsense"], "unknown option"),
    (["-", "-"], "cannot both"), (["--header-prefix", "x", "a", "b"], "go together"),
    (["--at", "yesterday", "a", "b"], "--at: "),
])
def test_wrong_usage_exits_64(offline, config, arguments, told):
    done = offline.gatepost("verify", *arguments, config=config)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and told in done.stderr


def test_unreadable_file_exits_66(offline, config, tmp_path):
    (tmp_path / "there").write_text("")
    for arguments in (["missing", "there"], ["there", "missing"]):
        done = offline.gatepost("verify", *arguments, config=config)
        assert (done.returncode, done.stdout) == (EX_NOINPUT, "") and "missing: No such file" in done.stderr
    assert offline.gatepost("verify", "there", "there", config="/nonexistent").returncode == EX_CONFIG


# The receiver itself

def test_receiver_agrees_with_verify(installation, tmp_path):
    config = installation.config()
    config["source invoicing"]["webhook_id"] = Delivery().webhook_id
    installation.create_topics(config)
    daemon = installation.start(config)
    now = signing.now()
    for delivery in (Delivery(BODY), Delivery(BODY, secret=OTHER_SECRET), Delivery(BODY, timestamp=now - 4000),
                     Delivery(BODY, timestamp=now + 4000), Delivery(BODY, delivery_id="no good"),
                     Delivery(BODY, webhook_id="another"), Delivery(BODY, webhook_id="another", timestamp=1),
                     Delivery(BODY, secret=OTHER_SECRET, timestamp=now - 4000)):
        (tmp_path / "headers").write_text(as_lines(delivery.headers()))
        (tmp_path / "body").write_bytes(BODY)
        done = installation.gatepost("verify", "--json", str(tmp_path / "headers"), str(tmp_path / "body"), config=config)
        said, reply = json.loads(done.stdout), daemon.post(delivery)
        assert (said["status"], said["code"]) == (reply.status, None if reply.status == 200 else reply.code)
