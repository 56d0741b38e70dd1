"""gatepost-sandbox fire: a load of signed deliveries, and its report of the answers."""

import collections
import json
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest

import waiting
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from endpoint import Endpoint
from installation import BUILD
from signing import KINDS, SECRET, hmac_sha256

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_TEMPFAIL, EX_IOERR = 64, 65, 66, 75, 74


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def fire(secret_file):
    """Run it to an endpoint, or to a URL."""
    def run(to, *options, **more):
        done = subprocess.run([BUILD / "gatepost-sandbox", "fire", "--to", getattr(to, "url", to), "--secret-file", secret_file,
                               *map(str, options)], capture_output=True, text=True, timeout=120, env=ENVIRONMENT, **more)
        assert_no_sanitizer_report(done.stderr)
        assert SECRET.decode() not in done.stdout + done.stderr
        return done
    return run


def is_pending(process, number):
    """Whether the process has not yet taken a signal that it was sent."""
    pending = [int(line.split()[1], 16) for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
               if line.startswith(("ShdPnd:", "SigPnd:"))]
    return any(each >> (number - 1) & 1 for each in pending)


def is_genuine(received):
    signature = hmac_sha256(SECRET, received.header("x-invoicing-timestamp"), received.body)
    return received.header("x-invoicing-signature") == "sha256=" + signature


def test_every_delivery_is_signed_and_counted(fire):
    with Endpoint() as endpoint:
        done = fire(endpoint, "--count", 200, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report.keys() == {"sent", "repeated", "forged", "seconds", "rate", "answers", "noAnswer", "latencyMs"}
    assert (report["sent"], report["repeated"], report["forged"], report["noAnswer"]) == (200, 0, 0, 0)
    assert report["answers"] == {"200": 200} and report["seconds"] > 0 and report["rate"] > 0
    latency = report["latencyMs"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"]
    assert len(endpoint.requests) == 200
    for received in endpoint.requests:
        received.assert_signed(SECRET)
    assert len({received.header("x-invoicing-delivery-id") for received in endpoint.requests}) == 200
    assert len({received.header("x-invoicing-webhook-id") for received in endpoint.requests}) == 1


def test_kinds_are_sent_in_turn(fire):
    with Endpoint() as endpoint:
        assert fire(endpoint, "--count", 24, "--kinds", ",".join(KINDS)).returncode == 0
    assert collections.Counter(received.json["event"] for received in endpoint.requests) == {kind: 2 for kind in KINDS}


def test_forged_deliveries_have_invalid_signatures(fire):
    with Endpoint(lambda received: 200 if is_genuine(received) else 401) as endpoint:
        done = fire(endpoint, "--count", 100, "--forged", 30, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["forged"], report["answers"]) == (0, 30, {"200": 70, "401": 30})


def test_repeats_have_the_same_id_and_body_and_a_new_signature(fire):
    with Endpoint() as endpoint:
        report = json.loads(fire(endpoint, "--count", 100, "--repeat", 25, "--json").stdout)
    bodies = collections.defaultdict(set)
    for received in endpoint.requests:
        received.assert_signed(SECRET)
        bodies[received.header("x-invoicing-delivery-id")].add(received.body)
    assert (report["repeated"], len(bodies)) == (25, 75)
    assert all(len(each) == 1 for each in bodies.values())


def test_rate_is_not_exceeded(fire):
    with Endpoint() as endpoint:
        begun = time.monotonic()
        report = json.loads(fire(endpoint, "--count", 50, "--rate", 50, "--json").stdout)
        took = time.monotonic() - begun
    assert took > report["seconds"] >= 49 / 50


def test_webhook_id_and_service_set_the_headers(fire):
    with Endpoint() as endpoint:
        assert fire(endpoint, "--count", 1, "--webhook-id", "abc", "--service", "tax").returncode == 0
    assert endpoint.requests[0].assert_signed(SECRET, "tax")[0] == "abc"


@pytest.mark.parametrize("answers, options, status", [
    ([400], [], EX_DATAERR), ([302], [], EX_DATAERR), ([503], [], EX_TEMPFAIL), (200, ["--forged", "50"], EX_DATAERR)])
def test_exit_status_is_that_of_the_worst_answer(fire, answers, options, status):
    with Endpoint(answers) as endpoint:
        assert fire(endpoint, "--count", 10, *options).returncode == status


def test_text_report_lists_answers_and_latency(fire):
    with Endpoint([401]) as endpoint:
        done = fire(endpoint, "--count", 10)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("sent       10 in ") and lines[1:4] == ["status 200 9", "status 401 1", "no answer  0"]
    assert lines[4].startswith("latency    p50 ")


def test_unreachable_receiver_exits_75(fire):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        done = fire(f"http://127.0.0.1:{reserved.getsockname()[1]}/", "--count", 3, "--json")
        text = fire(f"http://127.0.0.1:{reserved.getsockname()[1]}/", "--count", 3).stdout
    assert done.returncode == EX_TEMPFAIL and json.loads(done.stdout)["noAnswer"] == 3 and "no answer" in done.stderr
    assert json.loads(done.stdout)["latencyMs"] == {"p50": None, "p99": None, "max": None} and "latency" not in text


@pytest.mark.parametrize("signals, status", [([signal.SIGINT], 0), ([signal.SIGTERM, signal.SIGINT], EX_TEMPFAIL)])
def test_signal_stops_it_with_a_consistent_report(secret_file, signals, status):
    """The first signal waits for open answers, the second does not."""
    answering = threading.Event()

    def answer(received):
        if not any(each is received for each in endpoint.requests[:20]):
            answering.wait(60)
        return 200 if is_genuine(received) else 401
    with Endpoint(answer) as endpoint:
        program = subprocess.Popen([BUILD / "gatepost-sandbox", "fire", "--to", endpoint.url, "--secret-file", secret_file,
                                    "--count", "1000", "--connections", "8", "--forged", "50", "--repeat", "20", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        endpoint.wait_for(28)
        program.send_signal(signals[0])
        if len(signals) > 1:
            waiting.until(lambda: not is_pending(program.pid, signals[0]), 30, "the first signal to be handled")
            program.send_signal(signals[1])
            waiting.until(lambda: program.poll() is not None, 8, "an exit without waiting for answers")
        answering.set()
        output, errors = program.communicate(timeout=60)
        assert_no_sanitizer_report(errors)
        report = json.loads(output)
        assert program.returncode == status
        genuine = [received.header("x-invoicing-delivery-id") for received in endpoint.requests if is_genuine(received)]
        assert 28 <= report["sent"] == len(endpoint.requests) < 1000
        assert report["sent"] == sum(report["answers"].values()) + report["noAnswer"] == len(genuine) + report["forged"]
        assert report["repeated"] == len(genuine) - len(set(genuine))
        assert report["noAnswer"] == (0 if status == 0 else 8) and ("interrupted" in errors) == (status != 0)


@pytest.mark.parametrize("options", [["--rate", "0"], ["--count", "0"], ["--repeat", "101"], ["--forged", "-1"],
                                     ["--kinds", ""], ["--kinds", "a b"], ["--connections", "0"], ["--service", "A"],
                                     ["--webhook-id", "?"], ["--nonsense"], ["more"], ["--to", "ftp://127.0.0.1/"], ["--to", "http://"],
                                     ["--to", "http://127.0.0.1:99999/"], ["--to", "https://a b/"],
                                     ["--kinds", ",".join(["a"] * 33)]])
def test_wrong_usage_exits_64(fire, options):
    done = fire("http://127.0.0.1:1/", *options)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr


def test_missing_options_are_named():
    for options, word in (([], "--to"), (["--to", "http://127.0.0.1/"], "--secret-file")):
        done = subprocess.run([BUILD / "gatepost-sandbox", "fire", *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == EX_USAGE and word in done.stderr


def test_world_readable_secret_file_is_refused(fire, secret_file):
    secret_file.chmod(0o644)
    done = fire("http://127.0.0.1:1/")
    assert done.returncode == EX_NOINPUT and "chmod" in done.stderr


def test_unwritable_report_exits_74(secret_file):
    with Endpoint() as endpoint, open("/dev/full", "wb") as full:
        done = subprocess.run([BUILD / "gatepost-sandbox", "fire", "--to", endpoint.url, "--secret-file", secret_file,
                               "--count", "1"], stdout=full, stderr=subprocess.PIPE, timeout=60, env=ENVIRONMENT)
    assert done.returncode == EX_IOERR


def test_help_and_version_go_to_stdout():
    for options in (["--help"], ["--version"], ["fire", "--help"]):
        done = subprocess.run([BUILD / "gatepost-sandbox", *options], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "") and "gatepost-sandbox" in done.stdout
