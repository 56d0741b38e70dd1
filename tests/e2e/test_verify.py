"""gatepost verify: the receiver's answer to a saved delivery, off line, and the cause of a refusal."""

import pytest

import signing
from signing import SECRET, Delivery

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_CONFIG = 64, 65, 66, 78
BODY = '{"event": "invoice.accepted", "text": "Straße/5", "lines": [{"a": 1}, {}]}'.encode()
OTHER_SECRET = b"the secret of the other source"
UNKNOWN = "the sender has another secret, or the body was changed on its way"
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


class Verdict:
    """What `gatepost verify` has printed: the outcome of each check, the answer and the cause."""

    def __init__(self, done):
        lines = done.stdout.splitlines()
        self.status, self.output = done.returncode, done.stdout
        self.outcomes = {line.split()[0]: line.split()[1] for line in lines if not line.startswith(("answer: ", "cause: "))}
        self.failures = [line.split(None, 2)[2] for line in lines if " failed  " in line]
        (self.answer,) = [line.removeprefix("answer: ") for line in lines if line.startswith("answer: ")]
        self.causes = [line.removeprefix("cause: ") for line in lines if line.startswith("cause: ")]
        assert done.stderr == "" and done.returncode == (0 if self.answer.startswith("200") else EX_DATAERR), done


@pytest.fixture
def verify(offline, config, tmp_path):
    """Run `gatepost verify` on headers, a dictionary or a text, and a body."""
    def run(headers, body, *options, **more):
        (tmp_path / "headers").write_text(headers if isinstance(headers, str) else as_lines(headers), newline="")
        (tmp_path / "body").write_bytes(body)
        done = offline.gatepost("verify", *map(str, options), str(tmp_path / "headers"), str(tmp_path / "body"),
                                **{"config": config} | more)
        assert SECRET.decode() not in done.stdout + done.stderr
        return Verdict(done)
    return run


def as_lines(headers):
    return "".join(f"{name}: {value}\n" for name, value in headers.items())


# The forms in which headers are saved

FORMS = {
    "lines": as_lines,
    "request": lambda headers: "POST /webhooks/invoicing HTTP/1.1\r\nHost: x\r\n" +
                               as_lines(headers).replace("\n", " \r\n") + "\r\n{\"not\": \"a header\"}",
    "curl": lambda headers: CURL.format("".join(f"> {name}: {value}\r\n" for name, value in headers.items())),
}


@pytest.mark.parametrize("form", FORMS)
def test_genuine_delivery_is_ok_in_every_form(verify, form):
    delivery = Delivery(BODY)
    verdict = verify(FORMS[form](delivery.headers()), delivery.body)
    assert verdict.outcomes == {"headers": "ok", "webhook-id": "ok", "timestamp": "ok", "signature": "ok"}
    assert (verdict.status, verdict.answer, verdict.causes) == (0, "200, unless it cannot be stored", [])


def test_headers_or_body_are_read_from_stdin(offline, config, tmp_path):
    delivery = Delivery(BODY)
    (tmp_path / "body").write_bytes(BODY)
    (tmp_path / "headers").write_text(as_lines(delivery.headers()))
    for arguments, text in ((["-", "body"], as_lines(delivery.headers())), (["headers", "-"], BODY.decode())):
        assert Verdict(offline.gatepost("verify", *arguments, config=config, input=text)).status == 0


@pytest.mark.parametrize("text", ["", "\r\n\n", "a:", "what is this", "> \r\n", "\x1b[31m-signature: sha256=\n"])
def test_absent_headers_are_reported_as_missing(verify, text):
    verdict = verify(text, BODY)
    assert verdict.outcomes == {"headers": "failed"} and verdict.answer == "400 VALIDATION_ERROR"
    assert verdict.failures == [f"x-invoicing-{name} is missing" for name in ("signature", "timestamp", "webhook-id", "delivery-id")]


# Each check

def test_too_large_body_is_refused_like_a_receiver_does(verify):
    delivery = Delivery(b"a" * (1 << 20) + b"a")
    assert verify(delivery.headers(), delivery.body).answer == "413 PAYLOAD_TOO_LARGE"


def test_every_check_is_reported_after_a_failed_one(config, verify):
    config["source invoicing"]["webhook_id"] = "another-webhook"
    delivery = Delivery(BODY, timestamp=signing.now() - 4000)
    verdict = verify(delivery.headers(), BODY + b"?")
    assert list(verdict.outcomes.values()) == ["ok", "failed", "failed", "failed"]
    assert verdict.answer == "403 FORBIDDEN" and verdict.causes == [UNKNOWN]
    verdict = verify(delivery.headers(), BODY)
    assert list(verdict.outcomes.values()) == ["ok", "failed", "failed", "ok"] and verdict.causes == []
    assert verdict.failures == [f"the webhook-id is {delivery.webhook_id}; webhook_id lists 1 other",
                                "the timestamp is 66 minutes old; tolerance is 300 s"]


@pytest.mark.parametrize("header, value, reason", [
    ("webhook-id", None, "is missing"), ("delivery-id", "no good", "must be 1 to 64 letters, digits and hyphens"),
    ("timestamp", "2026-11-28T01:00:00Z", "must be 10 digits"), ("signature", "SHA256=" + "0" * 64, "64 lowercase hexadecimal digits"),
    ("signature", "0" * 64, "64 lowercase hexadecimal digits")])
def test_malformed_header_is_the_cause_and_not_the_secret(verify, header, value, reason):
    headers = Delivery(BODY).headers() | {f"x-invoicing-{header}": value}
    verdict = verify({name: text for name, text in headers.items() if text is not None}, BODY)
    assert verdict.outcomes == {"headers": "failed"} and verdict.causes == []
    assert len(verdict.failures) == 1 and verdict.failures[0].startswith(f"x-invoicing-{header} ") and reason in verdict.failures[0]


def test_old_delivery_is_stale_now_and_fresh_with_at(verify):
    delivery = Delivery(BODY, timestamp=1763694245)  # 2025-11-21T03:04:05Z
    verdict = verify(delivery.headers(), BODY)
    assert verdict.answer == "401 STALE_TIMESTAMP" and verdict.outcomes["signature"] == "ok"
    for at, status in (("2025-11-21T03:04:05Z", 0), ("2025-11-21T03:09:05Z", 0), ("2025-11-21T03:09:06Z", EX_DATAERR),
                       ("2025-11-21T02:59:04Z", EX_DATAERR)):
        assert verify(delivery.headers(), BODY, "--at", at).status == status, at


# Why a signature does not match

BODIES = {  # signed body, received body, cause
    "newline-added": (BODY, BODY + b"\n", "a newline was added to the end of the body"),
    "crlf-added": (BODY, BODY + b"\r\n", "a newline was added to the end of the body"),
    "newline-removed": (BODY + b"\n", BODY, "a newline was removed from the end of the body"),
    "crlf-removed": (BODY + b"\r\n", BODY, "a newline was removed from the end of the body"),
    "rewritten": (BODY, BODY.replace(b": ", b":"), UNKNOWN),
    "empty": (BODY, b"", UNKNOWN),
}


@pytest.mark.parametrize("name", BODIES)
def test_cause_is_a_changed_body(verify, name):
    signed, came, cause = BODIES[name]
    verdict = verify(Delivery(signed).headers(), came)
    assert (verdict.answer, verdict.causes) == ("401 INVALID_SIGNATURE", [cause])


@pytest.mark.parametrize("is_in_file", [True, False])
def test_cause_is_the_secret_of_another_source(config, verify, is_in_file):
    if not is_in_file:
        del config["source other"]["secret_file"]
        config["source other"]["secret"] = OTHER_SECRET.decode()
    assert verify(Delivery(BODY, secret=OTHER_SECRET).headers(), BODY).causes == ["it was signed with the secret of the source other"]


@pytest.mark.parametrize("secret", ["{}\u200b{}", "{}\u00a0{}", "\ufeff{}{}", "{}\a{}", " {}{} "], ids=["zwsp", "nbsp", "bom", "bell", "blank"])
def test_cause_is_invisible_characters_in_the_secret_file(config, verify, secret):
    text = SECRET.decode()
    file = config.secret_file("hidden", secret.format(text[:9], text[9:]).encode())
    config["source invoicing"]["secret_file"] = file
    assert verify(Delivery(BODY).headers(), BODY).causes == [f"{file} has invisible characters, which the sender's secret does not have"]


def test_signature_is_not_revealed(verify):
    delivery = Delivery(BODY)
    verdict = verify(delivery.headers() | {"x-invoicing-signature": "sha256=" + "0" * 64}, BODY)
    assert verdict.causes == [UNKNOWN] and delivery.signature.removeprefix("sha256=") not in verdict.output.lower()


# Whose delivery it is

def test_source_is_the_first_or_named(verify):
    headers = Delivery(BODY, secret=OTHER_SECRET).headers("x-other")
    assert verify(headers, BODY).failures[0] == "x-invoicing-signature is missing"
    assert verify(headers, BODY, "--source", "other").status == 0


def test_secret_file_needs_no_configuration(config, verify):
    options = ["--secret-file", config.secret_file("own", SECRET), "--header-prefix", "x-own"]
    assert verify(Delivery(BODY).headers("x-own"), BODY, *options, config="/nonexistent").status == 0
    verdict = verify(Delivery(BODY + b"\n").headers("x-own"), BODY, *options, config="/nonexistent")
    assert verdict.causes == ["a newline was removed from the end of the body"]


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
    (tmp_path / "utf-16").write_bytes("a: b\n".encode("utf-16"))
    for arguments, told in ((["missing", "there"], "missing: No such file"), (["there", "missing"], "missing: No such file"),
                            (["utf-16", "there"], "contains a NUL byte")):
        done = offline.gatepost("verify", *arguments, config=config)
        assert (done.returncode, done.stdout) == (EX_NOINPUT, "") and told in done.stderr
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
        said = Verdict(installation.gatepost("verify", str(tmp_path / "headers"), str(tmp_path / "body"), config=config)).answer
        reply = daemon.post(delivery)
        assert said == ("200, unless it cannot be stored" if reply.status == 200 else f"{reply.status} {reply.code}")
