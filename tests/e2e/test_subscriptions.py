"""gatepost subscriptions: manage the webhooks of the service through its API."""

import json
import pathlib
import subprocess

import pytest

from config import Config
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from authority import Authority
from bad_certificates import BAD_CERTIFICATES, service_with_a_bad_certificate
from fake_service import FakeService, answers, fails, resets
from installation import BUILD
from sandbox import Sandbox
from signing import SECRET

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_TEMPFAIL, EX_NOPERM, EX_CONFIG = 64, 65, 66, 69, 75, 77, 78
KEY = "the-api-key-of-the-tests"
URL = "https://gateway.example/webhooks/invoicing"
KINDS = "invoice.accepted,invoice.rejected"


class Client:
    """The command line with a configuration for a service."""

    def __init__(self, directory, base_url, key=KEY):
        self.config = Config.usual(directory, "127.0.0.1:9", "unused", "gw")
        self.key = key
        self.config["service"].update(base_url=base_url, api_key_file=self.config.secret_file("api-key", key.encode()))
        self.secret_file = self.config["source invoicing"]["secret_file"]
        self.environment = {}

    def run(self, *arguments, expect=0, **options):
        done = subprocess.run([BUILD / "gatepost", "-c", self.config.write(), "subscriptions", *map(str, arguments)],
                              capture_output=True, text=True, timeout=100, env=ENVIRONMENT | self.environment,
                              stdin=subprocess.DEVNULL, **options)
        assert_no_sanitizer_report(done.stderr)
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        for secret in (self.key, SECRET.decode()):
            assert secret not in done.stdout + done.stderr
        return done

    def json(self, *arguments, **options):
        return json.loads(self.run(*arguments, "--json", **options).stdout)

    def add(self, *more, url=URL, events=KINDS, command="add", **options):
        return self.run(command, "--url", url, "--events", events, "--secret-file", self.secret_file, *more, **options)

    def ensure(self, *more, **options):
        return self.add(*more, command="ensure", **options)


@pytest.fixture
def sandbox(tmp_path):
    with Sandbox(BUILD, tmp_path, "--key", KEY, "--key", "the-read-only-key,read-only",
                 "--key", "the-key-of-acme,entity=acme") as sandbox:
        yield sandbox


@pytest.fixture
def client(tmp_path, sandbox):
    return Client(tmp_path, sandbox.url)


@pytest.fixture
def fake(tmp_path, service):
    return Client(tmp_path, service.url)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


# The documented service

def test_webhook_is_added_listed_and_removed(client, sandbox):
    assert client.json("list") == [] and client.run("list").stdout == ""
    done, id, *rest = client.add().stdout.split()
    assert (done, rest) == ("added", [URL, KINDS])
    (webhook,) = sandbox.webhooks()
    assert webhook == {"id": id, "url": URL, "events": KINDS.split(","), "createdAt": webhook["createdAt"]}
    assert client.json("list") == [webhook] and client.run("list").stdout == f"{id} {URL} {KINDS}\n"
    assert client.run("remove", id).stdout == f"removed {id}\n"
    assert sandbox.webhooks() == []
    done = client.run("remove", id, expect=EX_NOINPUT)
    assert "the service answers 404 " in done.stderr and "remedy: gatepost subscriptions list shows the IDs" in done.stderr


def test_password_in_a_url_is_sent_but_not_shown(fake, service):
    url = "https://me:hunter2@gateway.example/webhooks/invoicing?code=hunter2"
    shown = "https://***@gateway.example/webhooks/invoicing?..."
    outputs = [fake.add(url=url), fake.add(url=url), fake.run("list"), fake.run("list", "--json")]
    assert [webhook["url"] for webhook in service.webhooks] == [url, url]
    service.webhooks = []
    outputs.append(fake.ensure(url=url))
    assert service.webhooks[0]["url"] == url and len(service.webhooks) == 1
    for done in outputs:
        assert shown in done.stdout and "hunter2" not in done.stdout + done.stderr, done


def test_request_to_the_service_has_url_events_and_key(fake, service):
    fake.add("--url", "https://gateway.example/h\u00f6ok?a=b&c", events="invoice.accepted,x.y")
    assert service.webhooks == [{"id": "w1", "url": "https://gateway.example/h\u00f6ok?a=b&c",
                                 "events": ["invoice.accepted", "x.y"]}]
    headers = {name.lower(): value for name, value in service.headers[0].items()}
    assert headers["x-api-key"] == KEY and headers["content-type"] == "application/json"
    assert headers["user-agent"].startswith("gatepost/")
    fake.run("remove", "a/b ?#%\u00e9..", expect=EX_NOINPUT)
    assert service.calls == [("POST", "/v1/webhooks"), ("DELETE", "/v1/webhooks/a%2Fb%20%3F%23%25%C3%A9..")]


def test_secret_is_sent_to_the_service(fake, service):
    seen = []
    service.faults = [lambda handler: (seen.append(handler.payload["secret"]), service.usual(handler))]
    fake.add()
    assert seen == [SECRET.decode()]


def test_violations_are_shown_with_their_fields(client):
    done = client.add(url="http://gateway.example/insecure", events="no.such_kind", expect=EX_DATAERR)
    assert "the service answers 400 VALIDATION_ERROR: " in done.stderr and done.stdout == ""
    assert "; url: " in done.stderr and "; events[0]: " in done.stderr


def test_key_that_may_not_exits_77(tmp_path, sandbox):
    assert "the service answers 401 " in Client(tmp_path, sandbox.url, "another-key").run("list", expect=EX_NOPERM).stderr
    client = Client(tmp_path, sandbox.url, "the-read-only-key")
    assert client.json("list") == []
    assert "the service answers 403 " in client.add(expect=EX_NOPERM).stderr


@pytest.mark.parametrize("status, expect, remedy", [
    (400, EX_DATAERR, None), (401, EX_NOPERM, "check the API key"), (403, EX_NOPERM, "check the API key"), (404, EX_CONFIG, "check base_url"),
    (409, EX_DATAERR, None), (429, EX_TEMPFAIL, None), (302, EX_CONFIG, "redirects are not followed"),
    (500, EX_TEMPFAIL, "may have been registered"), (999, EX_TEMPFAIL, "may have been registered")])
def test_every_status_has_its_exit_status(fake, service, status, expect, remedy):
    envelope = {"ok": False, "error": {"code": "THE_CODE", "message": "its words", "requestId": "r-1",
                                       "violations": [{"field": "lines[0].taxCode", "message": "is no code"}]}}
    service.faults = [answers(status, envelope, headers=[("location", "http://127.0.0.1:9/")])]
    first, *more = fake.add(expect=expect).stderr.splitlines()
    assert first == f"gatepost subscriptions add: the service answers {status} THE_CODE: its words; request id r-1; lines[0].taxCode: is no code"
    assert [line.startswith("    remedy: ") and remedy in line for line in more] == ([True] if remedy else [])
    assert service.calls == [("POST", "/v1/webhooks")]


def test_control_characters_in_answers_are_escaped(fake, service):
    nasty = "a\x1b[2J\r\n\u009b31m\x07" + "x" * 600
    service.faults = [answers(400, {"error": {"code": nasty, "message": nasty, "requestId": nasty,
                                              "violations": [{"field": nasty, "message": nasty}] * 200}})]
    done = fake.add(expect=EX_DATAERR)
    assert "a\\x1b[2J\\x0d\\x0a\\xc2\\x9b31m\\x07xxx" in done.stderr
    assert not set(done.stderr) & set("\x1b\x07\r\u009b") and done.stderr.count("\n") == 1
    service.webhooks = [{"id": nasty, "url": nasty, "events": [nasty]}]
    assert not set(fake.run("list").stdout) & set("\x1b\x07\r\u009b")
    assert fake.json("list")[0]["id"] == nasty


def test_key_that_an_answer_quotes_is_not_printed(fake, service):
    key = fake.key
    service.faults = [answers(401, {"error": {"code": "NO", "message": f"{key} is no key, {key}", "requestId": key}})] * 2
    done = fake.add(expect=EX_NOPERM)
    assert key not in done.stderr and f"NO: {'*' * len(key)} is no key, {'*' * len(key)}" in done.stderr
    assert key not in fake.run("list", expect=EX_NOPERM).stderr


# Failures

def test_registration_that_may_have_succeeded_is_not_repeated(fake, service):
    for fault, expect in ((fails, EX_TEMPFAIL), (resets, EX_UNAVAILABLE), (service.done_but_lost, EX_UNAVAILABLE)):
        service.calls.clear()
        service.faults = [fault]
        done = fake.add(expect=expect)
        assert "may have been registered" in done.stderr and len(service.calls) == 1


def test_unreachable_service_exits_69(tmp_path):
    done = Client(tmp_path, "http://127.0.0.1:9/v1").run("list", expect=EX_UNAVAILABLE)
    assert "the service cannot be reached: " in done.stderr and "check base_url" in done.stderr


def test_huge_answer_is_refused(fake, service):
    service.faults = [answers(200, body=b"[" + b" " * (8 << 20) + b"]")]
    assert "longer than 1048576 bytes" in fake.run("list", expect=EX_DATAERR).stderr
    assert len(service.calls) == 1


@pytest.mark.parametrize("body", [
    b"", b"<html>a proxy</html>", b"{}", b'{"webhooks": 7}', b"[" * 100000, b'[{"id":"w1"}]', b"[1]", b"\xff"])
def test_invalid_list_is_refused(fake, service, body):
    service.faults = [answers(200, body=body)] * 2
    assert "the service's answer " in fake.run("list", expect=EX_DATAERR).stderr
    # And `ensure` does nothing.
    assert "the service's answer " in fake.ensure(expect=EX_DATAERR).stderr
    assert [method for method, _ in service.calls] == ["GET", "GET"]


@pytest.mark.parametrize("wrap", [lambda list: list, lambda list: {"data": list}, lambda list: {"webhooks": list}])
def test_list_is_accepted_in_several_forms(fake, service, wrap):
    service.faults = [answers(202, wrap([{"id": 7, "url": URL, "events": ["*"], "more": {"secret": SECRET.decode()}}]))]
    assert fake.json("list") == [{"id": "7", "url": URL, "events": ["*"], "createdAt": None}]


def test_registration_answer_without_an_id_is_reported(fake, service):
    service.faults = [answers(200, body=b""), answers(200, {"ok": True, "webhook": {"id": 7}})]
    assert fake.add().stdout == f"added (unknown ID) {URL} {KINDS}\n"
    assert fake.add().stdout == f"added 7 {URL} {KINDS}\n"


# Certificates

def test_certificate_of_a_trusted_authority_is_accepted(tmp_path, authority):
    with FakeService(*authority.issue("good"), host="localhost") as service:
        client = Client(tmp_path, service.url)
        client.config["service"]["ca_file"] = authority.certificate
        assert client.json("list") == [] and len(service.calls) == 1
        client.config["service"]["ca_file"] = "/nonexistent/ca.pem"
        assert "/nonexistent/ca.pem" in client.run("list", expect=EX_CONFIG).stderr


@pytest.mark.parametrize("what", BAD_CERTIFICATES)
def test_key_is_not_sent_to_a_server_with_an_invalid_certificate(tmp_path, what):
    with service_with_a_bad_certificate(tmp_path, what) as (service, ca_file):
        client = Client(tmp_path, service.url)
        if ca_file:
            client.config["service"]["ca_file"] = ca_file
        for done in (client.run("list", expect=EX_UNAVAILABLE), client.add(expect=EX_UNAVAILABLE), client.ensure(expect=EX_UNAVAILABLE)):
            assert service.calls == [] and "the API key was not sent: " in done.stderr and "set ca_file in [service]" in done.stderr


def test_control_characters_in_certificates_are_escaped(tmp_path, authority):
    with FakeService(*authority.issue("nasty", names="email:nobody@example", subject="a\x1b]0;b\x07"), host="localhost") as service:
        client = Client(tmp_path, service.url)
        client.config["service"]["ca_file"] = authority.certificate
        assert "'a\\x1b]0;b\\x07'" in client.run("list", expect=EX_UNAVAILABLE).stderr


def test_non_local_address_must_be_https(tmp_path):
    client = Client(tmp_path, "http://service.example/v1")
    assert "https" in client.run("list", expect=EX_CONFIG).stderr


def test_key_is_not_sent_to_a_proxy(fake, service):
    """Unencrypted requests go to this machine directly, regardless of the environment."""
    with FakeService() as proxy:
        fake.environment = {"http_proxy": proxy.url, "all_proxy": proxy.url}
        assert fake.json("list") == [] and proxy.calls == []


def test_redirect_is_not_followed(fake, service):
    with FakeService() as other:
        service.faults = [answers(307, headers=[("location", f"{other.url}/webhooks")])]
        fake.run("list", expect=EX_CONFIG)
        assert other.calls == []


# Ensure

def test_ensure_adds_a_missing_webhook_and_keeps_a_right_one(client, sandbox):
    elsewhere = sandbox.subscribe("https://gateway.example/elsewhere", ["invoice.pending"])
    assert client.ensure().stdout.startswith("added ")
    (webhook,) = [each for each in sandbox.webhooks() if each["id"] != elsewhere]
    assert (webhook["url"], webhook["events"]) == (URL, KINDS.split(","))
    for events in (KINDS, "invoice.rejected,invoice.accepted,invoice.rejected"):
        assert client.ensure(events=events).stdout == f"is right: {webhook['id']} {URL} {KINDS}\n"
    assert [each["id"] for each in sandbox.webhooks()] == [elsewhere, webhook["id"]]


@pytest.mark.parametrize("events, options", [(["*"], ()), (["invoice.accepted"], ()), ([], ()), (KINDS.split(",") + ["x"], ()),
                                             (KINDS.split(","), ("--rotate",))])
def test_new_webhook_is_registered_before_the_old_one_is_removed(fake, service, events, options):
    service.add({"url": URL, "events": events})
    shown = " ".join(["removed w1", URL, ",".join(events)]).strip()
    assert fake.ensure(*options).stdout == f"added w2 {URL} {KINDS}\n{shown}\n"
    assert [method for method, _ in service.calls] == ["GET", "POST", "DELETE"]


def test_ensure_keeps_the_only_right_webhook(fake, service):
    for events in (["invoice.accepted"], KINDS.split(","), ["*"]):
        service.add({"url": URL, "events": events})
    assert fake.ensure().stdout == f"is right: w2 {URL} {KINDS}\nremoved w1 {URL} invoice.accepted\nremoved w3 {URL} *\n"
    assert [each["id"] for each in service.webhooks] == ["w2"]


@pytest.mark.parametrize("events, options", [(KINDS.split(","), ("--rotate",)), (["*"], ())])
def test_webhook_updated_by_registration_is_not_removed(fake, service, events, options):
    """A service may keep one webhook for each URL: registering it again updates it and keeps its ID."""
    def update(handler):
        service.webhooks[0]["events"] = handler.payload["events"]
        handler.reply(201, {"ok": True, **service.webhooks[0]})
    service.add({"url": URL, "events": events})
    service.faults = [None, update]
    assert fake.ensure(*options).stdout == f"added w1 {URL} {KINDS}\n"
    assert [each["id"] for each in service.webhooks] == ["w1"]


def test_equivalent_urls_are_equal(fake, service):
    service.add({"url": "HTTPS://gateway.example:443/webhooks/invoicing", "events": KINDS.split(",")})
    assert fake.ensure().stdout.startswith("is right: w1 ")
    for url in (URL + "/", URL + "?a", URL.replace("https", "http"), URL.replace(".example", ".example:8443"),
                URL.replace("gateway", "other")):
        service.webhooks = [{"id": "other", "url": url, "events": KINDS.split(",")}]
        assert fake.ensure().stdout.startswith("added ") and len(service.webhooks) == 2, url


@pytest.mark.parametrize("lost", ["done_but_lost", "done_but_failed"])
def test_registration_whose_answer_is_lost_is_found_by_the_next_ensure(fake, service, lost):
    service.add({"url": URL, "events": ["*"]})
    service.faults = [None, getattr(service, lost)]
    done = fake.ensure(expect=EX_UNAVAILABLE if lost == "done_but_lost" else EX_TEMPFAIL)
    assert "may have been registered" in done.stderr and [method for method, _ in service.calls] == ["GET", "POST"]
    assert fake.ensure().stdout == f"is right: w2 {URL} {KINDS}\nremoved w1 {URL} *\n"
    assert [each["id"] for each in service.webhooks] == ["w2"]


def test_interrupted_rotation_is_completed_by_any_ensure(fake, service):
    """Either of two equal webhooks may have the old secret, so both are replaced."""
    service.add({"url": URL, "events": KINDS.split(",")})
    service.faults = [None, None, fails]
    assert fake.ensure("--rotate", expect=EX_TEMPFAIL).stdout.startswith("added w2 ")
    assert [each["id"] for each in service.webhooks] == ["w1", "w2"]
    assert fake.ensure().stdout.startswith("added w3 ")
    assert [each["id"] for each in service.webhooks] == ["w3"]


def test_old_webhook_is_kept_if_registration_fails(fake, service):
    service.add({"url": URL, "events": ["*"]})
    service.faults = [None, answers(422)]
    assert fake.ensure(expect=EX_DATAERR).stdout == ""
    # Nor is it removed if it may be the one that the service has registered.
    service.faults = [None, answers(201, {"ok": True})]
    assert "the service names no ID" in fake.ensure(expect=EX_DATAERR).stderr
    assert [each["id"] for each in service.webhooks] == ["w1"]


def test_failed_removal_is_repeated_by_the_next_ensure(fake, service):
    service.add({"url": URL, "events": ["*"]})
    service.faults = [None, None, answers(403)]
    assert fake.ensure(expect=EX_NOPERM).stdout == f"added w2 {URL} {KINDS}\n"
    assert fake.ensure().stdout == f"is right: w2 {URL} {KINDS}\nremoved w1 {URL} *\n"


def test_webhook_removed_by_somebody_else_is_no_failure(fake, service):
    service.add({"url": URL, "events": ["*"]})
    service.faults = [None, None, answers(404)]
    assert fake.ensure().stdout == f"added w2 {URL} {KINDS}\nremoved w1 {URL} *\n"


def test_webhook_shown_without_events_is_assumed_right(fake, service):
    service.webhooks = [{"id": "w1", "url": URL}]
    assert fake.ensure(events="*").stdout == f"is right: w1 {URL}\n"


# Arguments, secrets

@pytest.mark.parametrize("arguments, text", [
    (["add"], "needs --url URL"), (["ensure", "--url", URL], "needs --events LIST"),
    (["add", "--url", URL, "--events", "a"], "needs --secret-file FILE"), (["remove"], "needs ID"),
    *((["remove", id], f"'{id}' is not an ID") for id in ("", ".", ".."))])
def test_wrong_usage_exits_64_with_the_reason(tmp_path, arguments, text):
    done = Client(tmp_path, "http://127.0.0.1:9/v1").run(*arguments, expect=EX_USAGE)
    assert text in done.stderr and done.stdout == ""


def test_invalid_secret_file_is_refused(fake, service):
    for content, mode, expect, text in ((b"short", 0o600, EX_DATAERR, "shorter than 16"),
                                        (b"long enough, but open to all", 0o644, EX_DATAERR, "others can read it"),
                                        (b"\xff\xfe not UTF-8, but long enough", 0o600, EX_DATAERR, "not UTF-8")):
        fake.secret_file = fake.config.secret_file("bad", content, mode)
        assert text in fake.add(expect=expect).stderr
    fake.secret_file = pathlib.Path("/nonexistent")
    assert "No such file" in fake.ensure(expect=EX_NOINPUT).stderr
    assert service.webhooks == []


def test_missing_or_invalid_service_options_exit_78(fake, service):
    options = fake.config["service"]
    for content, text in ((b"", "is empty"), (b"two\nlines", "not allowed in a header"), (b"a key", "not allowed in a header"),
                          (b"\xc3\xa4", "not allowed in a header")):
        options["api_key_file"] = fake.config.secret_file("bad", content)
        assert text in fake.run("list", expect=EX_CONFIG).stderr
    del options["api_key_file"]
    assert "api_key_file" in fake.run("list", expect=EX_CONFIG).stderr
    options["api_key"] = KEY
    assert fake.json("list") == []
    del options["base_url"]
    assert "base_url" in fake.run("list", expect=EX_CONFIG).stderr
    options["base_url"] = service.url + "//"
    assert fake.json("list") == [] and {path for _, path in service.calls} == {"/v1/webhooks"}
