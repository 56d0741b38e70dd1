"""gatepost-sandbox fire: a load of signed deliveries, and its report of the answers. And the examples of gatepost-sandbox(1)."""

import collections
import pathlib
import re
import shlex
import socket
import subprocess
import time

import pytest

import http_client
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from endpoint import Endpoint
from installation import BUILD
from sandbox import Sandbox
from signing import KINDS, SECRET, hmac_sha256

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_IOERR, EX_TEMPFAIL = 64, 65, 66, 74, 75
PAGE = (pathlib.Path(__file__).parents[2] / "man" / "gatepost-sandbox.1").read_text()


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def fire(secret_file):
    """Run it to an endpoint, or to a URL."""
    def run(to, *options):
        done = subprocess.run([BUILD / "gatepost-sandbox", "fire", "--to", getattr(to, "url", to), "--secret-file", secret_file,
                               *map(str, options)], capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
        assert_no_sanitizer_report(done.stderr)
        assert SECRET.decode() not in done.stdout + done.stderr
        return done
    return run


def is_genuine(received):
    signature = hmac_sha256(SECRET, received.header("x-invoicing-timestamp"), received.body)
    return received.header("x-invoicing-signature") == "sha256=" + signature


def test_forged_and_repeated_deliveries_have_their_shares(fire):
    with Endpoint(lambda received: 200 if is_genuine(received) else 401) as endpoint:
        done = fire(endpoint, "--count", 200, "--forged", 25, "--repeat", 20, "--kinds", ",".join(KINDS))
    assert (done.returncode, done.stderr) == (0, "")
    sent, *answers, latency = done.stdout.splitlines()
    assert re.fullmatch(r"sent       200 in \S+ s, \d+ a second; 30 repeated, 50 forged", sent)
    assert answers == ["status 200 150", "status 401 50", "no answer  0"]
    p50, p99, most = map(float, re.fullmatch(r"latency    p50 (\S+) ms, p99 (\S+) ms, max (\S+) ms", latency).groups())
    assert 0 < p50 <= p99 <= most
    bodies = collections.defaultdict(set)
    for received in filter(is_genuine, endpoint.requests):
        bodies[received.header("x-invoicing-delivery-id")].add(received.body)
    assert len(bodies) == 150 - 30 and all(len(each) == 1 for each in bodies.values())
    assert {received.json["event"] for received in endpoint.requests} == set(KINDS)


def test_rate_is_not_exceeded(fire):
    with Endpoint() as endpoint:
        begun = time.monotonic()
        fire(endpoint, "--count", 50, "--rate", 50)
        assert time.monotonic() - begun > 49 / 50


def test_webhook_id_and_service_set_the_headers(fire):
    with Endpoint() as endpoint:
        assert fire(endpoint, "--count", 1, "--webhook-id", "abc", "--service", "tax").returncode == 0
    assert endpoint.requests[0].assert_signed(SECRET, "tax")[0] == "abc"


@pytest.mark.parametrize("answers, options, status", [([400], [], EX_DATAERR), ([503], [], EX_TEMPFAIL), ([302, 503], [], EX_TEMPFAIL),
                                                      (200, ["--forged", "50"], EX_DATAERR)])
def test_exit_status_is_that_of_the_worst_answer(fire, answers, options, status):
    with Endpoint(answers) as endpoint:
        assert fire(endpoint, "--count", 10, *options).returncode == status


def test_receiver_that_cannot_be_reached_exits_75_with_the_reason(fire):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        done = fire(f"http://127.0.0.1:{reserved.getsockname()[1]}/", "--count", 3)
    assert done.returncode == EX_TEMPFAIL and "no answer  3" in done.stdout and "onnect" in done.stderr


@pytest.mark.parametrize("options", [["--rate", "0"], ["--repeat", "101"], ["--kinds", ""], ["--kinds", ",".join(["a"] * 33)],
                                     ["--nonsense"], ["more"]])
def test_wrong_usage_exits_64(fire, options):
    done = fire("http://127.0.0.1:1/", *options)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr


def test_missing_option_unreadable_secret_and_closed_output_are_reported(fire, secret_file):
    program = [BUILD / "gatepost-sandbox", "fire"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert done.returncode == EX_USAGE and "--secret-file" in done.stderr
    with Endpoint() as endpoint, open("/dev/full", "wb") as full:
        options = ["--to", endpoint.url, "--secret-file", secret_file, "--count", "1"]
        assert subprocess.run(program + options, stdout=full, timeout=60, env=ENVIRONMENT).returncode == EX_IOERR
    secret_file.chmod(0o644)
    done = fire("http://127.0.0.1:1/")
    assert done.returncode == EX_NOINPUT and "others can read it" in done.stderr


# gatepost-sandbox(1)

def examples(program):
    """The examples that call the program, as lists of arguments."""
    blocks = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", PAGE.partition(".Sh EXAMPLES")[2], re.M | re.S)
    lines = re.split(r"\n\n", "\n".join(blocks).replace("\\e\n", " "))
    return [shlex.split(line)[1:] for line in lines if line.startswith(program + " ")]


@pytest.mark.parametrize("arguments", [[], ["fire"]])
def test_every_option_is_documented(arguments):
    done = subprocess.run([BUILD / "gatepost-sandbox", *arguments, "--help"], capture_output=True, text=True, timeout=60)
    options = set(re.findall(r"--([a-z-]+)", done.stdout))
    section = PAGE.partition(".Sh LOAD")[2 if arguments else 0]
    assert (done.returncode, done.stderr) == (0, "") and len(options) >= 9
    assert all(option in ("help", "version") or f"Fl -{option}" in section for option in options)


def call(sandbox, arguments):
    """What curl would do."""
    _, header, _, body, url = arguments
    assert arguments[::2] == ["-H", "-d", url]
    reply = http_client.request(sandbox.address, "POST", url.removeprefix("http://127.0.0.1:8500"), dict([header.split(": ")]),
                                body.encode())
    assert reply.status in (200, 201), reply.body
    return reply.json


def test_api_examples_work(tmp_path):
    ((*options, key),) = [arguments for arguments in examples("gatepost-sandbox") if arguments[0] != "fire"]
    assert options == ["--listen", "127.0.0.1:8500", "--key"]
    register, submit = examples("curl")
    with Sandbox(BUILD, tmp_path, key=key) as sandbox:
        assert call(sandbox, register)["url"] == "http://127.0.0.1:8080/webhooks/invoicing"
        assert sandbox.decided(call(sandbox, submit)["invoiceId"])["clearanceStatus"] == "REJECTED"


def test_load_example_works(secret_file):
    (arguments,) = [arguments for arguments in examples("gatepost-sandbox") if arguments[0] == "fire"]
    with Endpoint() as endpoint:
        replaced = {"http://127.0.0.1:8080/webhooks/invoicing": endpoint.url, "/etc/gatepost/secrets/invoicing": secret_file}
        done = subprocess.run([BUILD / "gatepost-sandbox", *(replaced.get(each, each) for each in arguments)], capture_output=True,
                              text=True, timeout=120, env=ENVIRONMENT)
    # The endpoint takes forged ones, too.
    assert done.stdout.startswith("sent       1000 in ") and "; 95 repeated, 50 forged\nstatus 200 1000\n" in done.stdout, done.stderr
