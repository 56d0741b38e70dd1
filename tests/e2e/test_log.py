"""The log: its lines can be parsed, connect an answer with its record, and never block the daemon."""

import contextlib
import os
import re
import signal
import socket
import subprocess

import pytest

import http_client
import waiting
from authority import Authority
from daemon import ENVIRONMENT
from installation import BUILD
from reloading import refused, reload
from signing import SECRET, Delivery, event_body

LEVELS = ("error", "warning", "notice", "info", "debug")
VALUE = r'(?:"(?:[^"\\\x00-\x1f\x7f-\x9f\ufffd]|\\["\\]|\\x[0-9a-f]{2})*"|[^\s"=]+)'
MESSAGE = re.compile(rf'[^="\x00-\x1f\x7f-\x9f\ufffd]*[^="\s](?: [a-z][a-z0-9_]*={VALUE})*')
WRONG = b"wrong secret, sixteen"


def parse(line):
    """(level, message) of a line; fails unless the line has the format of gatepostd(8)."""
    match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\w+) (.*)", line)
    assert match and match[1] in LEVELS, line
    assert MESSAGE.fullmatch(match[2]), line
    return match.groups()


def values(line):
    """The pairs of a line."""
    return {key: value.strip('"') for key, value in re.findall(rf" ([a-z][a-z0-9_]*)=({VALUE})", line)}


@pytest.fixture
def daemon(installation):
    config = installation.config()
    config["gatepost"]["log_level"] = "debug"
    installation.create_topics(config)
    return installation.start(config)


def test_every_line_has_the_documented_format(installation, daemon):
    """Provoke as many different lines as a test can."""
    daemon.accept()
    daemon.accept(Delivery(event_body("no.such kind=\"1\"")))
    daemon.accept(Delivery(b"no JSON"))
    for change in ({"delivery_id": "?"}, {"timestamp": 1234567890}, {"webhook_id": 'a"b c=d'}):
        daemon.post(Delivery().but(**change))
    daemon.post(Delivery(secret=WRONG))
    for method, path in (("GET", "/nothing"), ("PUT", "/webhooks/invoicing")):
        http_client.request(daemon.address, method, path)
    with http_client.connect(daemon.address) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        connection.recv(100)
    installation.kafka.append([Delivery()], source=b'foreign source="1"\n\x01\xff\xc2\x85')
    daemon.config["receiver"].update({"threads": 3, "max_connections": 10 ** 6})
    daemon.config["router"]["dedup_window"] = "4d"
    reload(daemon)
    daemon.config["events"]["a.*"] = "missing"
    refused(daemon)
    daemon.config["events"]["b"] = "no topic's name = \"\""
    daemon.config["nonsense"]["x"] = "y"
    refused(daemon)
    installation.kafka.wait_until_routed()
    daemon.stop()
    lines = daemon.log.splitlines()
    assert len(lines) > 30
    found = {parse(line)[0] for line in lines}
    assert {"error", "warning", "notice", "info", "debug"} <= found
    assert SECRET.decode() not in daemon.log and WRONG.decode() not in daemon.log and "no JSON" not in daemon.log


def test_lines_of_a_failed_start_have_the_documented_format(installation, tmp_path):
    missing = installation.daemon(installation.config())
    missing.launch().wait_for_exit(78)
    taken = installation.config()
    installation.create_topics(taken)
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken["receiver"]["listen"] = "127.0.0.1:%d" % server.getsockname()[1]
        second = installation.daemon(taken)
        second.launch().wait_for_exit(71)
    away = installation.config().tls(*Authority(tmp_path).issue("late", end="20270101000000Z", begin="20200101000000Z"))
    away["kafka"]["bootstrap.servers"] = "127.0.0.1:9"
    third = installation.daemon(away).start()
    third.wait_for_log("kafka is unreachable")
    with http_client.connect(third.address) as connection:
        connection.sendall(b"no TLS\r\n\r\n")
        connection.recv(100)
    third.wait_for_log("TLS handshakes failed")
    third.stop()
    for each in (missing, second, third):
        assert all(parse(line) for line in each.log.splitlines())


def test_request_id_connects_answer_log_and_record(installation, daemon):
    delivery = Delivery(event_body("no.such.kind"))
    request_id = daemon.post(delivery).headers["x-request-id"]
    accepted = values(daemon.wait_for_log(f"accepted source=invoicing delivery_id={delivery.delivery_id}"))
    assert accepted["request_id"] == request_id and accepted["client"] == "127.0.0.1"
    decided = values(daemon.wait_for_log(" decided action=quarantine "))
    quarantined = values(daemon.wait_for_log(" quarantined reason=unknown-kind "))
    assert decided["request_id"] == quarantined["request_id"] == request_id
    assert decided["reason"] == "unknown-kind" and quarantined["detail"] == "no topic for the kind no.such.kind"
    installation.kafka.wait_until_routed()
    for topic in (installation.kafka.deliveries, installation.kafka.quarantine):
        (record,) = installation.kafka.read(topic)
        assert record.header("gatepost-request-id") == request_id
        if topic == installation.kafka.deliveries:
            assert (record.partition, record.offset) == (int(decided["partition"]), int(decided["offset"]))
    refusal = daemon.post(Delivery(secret=WRONG))
    assert values(daemon.wait_for_log("outcome=forged"))["request_id"] == refusal.headers["x-request-id"]


def test_client_of_an_accepted_delivery_is_the_one_named_by_the_proxy(installation):
    """Even though the request's headers are freed when the delivery is passed to Kafka."""
    config = installation.config("receiver")
    config["gatepost"]["log_level"] = "debug"
    config["receiver"]["trusted_proxy"] = "127.0.0.1"
    installation.create_topics(config)
    daemon = installation.start(config)
    delivery = Delivery()
    headers = delivery.headers() | {"x-forwarded-for": "198.51.100.7"}
    assert http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, delivery.body).status == 200
    accepted = values(daemon.wait_for_log(f"accepted source=invoicing delivery_id={delivery.delivery_id}"))
    assert accepted["client"] == "198.51.100.7"


def test_record_without_a_request_id_is_routed(installation, daemon):
    installation.kafka.append([Delivery()])
    installation.kafka.wait_until_routed()
    assert len(installation.kafka.read()) == 1
    assert values(daemon.wait_for_log(" decided action=publish "))["request_id"] == "-"


def n_events(line):
    """Only a line that reports several says how many."""
    return int(values(line).get("n", 1))


def test_suppressed_events_are_counted_completely(daemon):
    for _ in range(57):
        assert daemon.post(Delivery(secret=WRONG)).status == 401

    def all_lines_logged():
        lines = [line for line in daemon.log.splitlines() if "outcome=forged" in line]
        return sum(n_events(line) for line in lines) == 57 and lines
    assert len(waiting.until(all_lines_logged, 20, "all refusals to be counted")) < 57


def test_quarantine_lines_are_counted_by_reason(installation, daemon):
    for _ in range(30):
        daemon.accept(Delivery(event_body("no.such.kind")))
    daemon.accept(Delivery(b"no JSON"))

    def n_logged(reason):
        return sum(n_events(line) for line in daemon.log.splitlines() if f"quarantined reason={reason} " in line)

    def n_decided():
        """More than there are if a transaction was aborted."""
        return daemon.log.count(" decided action=quarantine ")
    waiting.until(lambda: n_logged("unknown-kind") + n_logged("malformed-json") == n_decided() >= 31, 30, "all in the counts")
    assert n_logged("malformed-json") >= 1 and n_logged("unknown-kind") >= 30
    assert n_decided() == 31 or "transaction aborted" in daemon.log


# Destinations

def launch(config, stderr, **environment):
    return subprocess.Popen([BUILD / "gatepostd", "-c", config.write()], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=stderr, env=ENVIRONMENT | environment)


def by_socket(installation):
    """A configuration whose addresses are known without reading the log."""
    config = installation.config()
    config["receiver"]["listen"] = f"unix:{config.directory}/receiver"
    config["admin"]["listen"] = f"unix:{config.directory}/admin"
    config["gatepost"]["log_level"] = "debug"
    installation.create_topics(config)
    return config


def wait_until_ready(config):
    def ready():
        try:
            return http_client.request(config["admin"]["listen"], "GET", "/readyz").status == 200
        except OSError:
            return False
    waiting.until(ready, 60, "readiness")


def end(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def accept(config, n=1):
    client = http_client.Client(config["receiver"]["listen"])
    for _ in range(n):
        delivery = Delivery()
        assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    client.close()


def test_journal_lines_have_priorities(installation):
    config = by_socket(installation)
    reader, writer = os.pipe()
    stat = os.fstat(writer)
    process = launch(config, writer, JOURNAL_STREAM=f"{stat.st_dev}:{stat.st_ino}")
    os.close(writer)
    wait_until_ready(config)
    accept(config)
    end(process)
    lines = os.fdopen(reader, "rb").read().decode().splitlines()
    assert lines[0].startswith("<5>starting ") and lines[-1] == "<5>stopped status=0"
    assert all(re.match(r"<[3-7]>", line) and MESSAGE.fullmatch(line[3:]) for line in lines), lines


@pytest.mark.parametrize("how", ["asleep", "gone"])
def test_stalled_or_closed_log_pipe_does_not_block_deliveries(installation, how):
    """A pipe that is never read, or closed: deliveries, reloads and shutdown work; lost lines are counted."""
    config = by_socket(installation)
    reader, writer = os.pipe()
    process = launch(config, writer)
    os.close(writer)
    wait_until_ready(config)
    if how == "gone":
        os.close(reader)
    accept(config, 1000)  # two lines each, more than a pipe holds
    process.send_signal(signal.SIGHUP)
    accept(config)
    installation.kafka.wait_until_routed()
    if how == "asleep":
        text = os.read(reader, 1 << 20)
        lost = waiting.until(lambda: b"log lines were lost" in (more := os.read(reader, 1 << 20)) and more, 30,
                             "the number of lost lines")
    end(process)
    if how == "asleep":
        text = (text + lost + os.fdopen(reader, "rb").read()).decode()
        n_lost = sum(int(n) for n in re.findall(r"log lines were lost.* n=(\d+)", text))
        assert n_lost > 1000 and n_lost + text.count("\n") > 2000
    installation.kafka.wait_until_routed()
    assert len(installation.kafka.read()) == 1001


def test_log_at_its_size_limit_does_not_stop_the_daemon(offline, tmp_path):
    """As with LimitFSIZE= in the unit: lines are lost, but neither this process nor the next one exits."""
    config, address = offline.config("receiver"), f"unix:{tmp_path}/receiver.sock"
    config["receiver"]["listen"] = address
    daemon = offline.daemon(config)
    daemon.wrapper = ["prlimit", "--fsize=500"]
    for _ in range(2):
        daemon.launch()
        waiting.until(lambda: os.path.exists(address.removeprefix("unix:")), 30, lambda: f"its socket:\n{daemon.log}")
        assert waiting.until(lambda: answer(daemon, address), 30, "an answer").status == 503
        daemon.stop()
        assert (config.directory / f"{daemon.name}.log").stat().st_size == 500


def answer(daemon, address):
    """The answer to a delivery, or None while the daemon does not listen."""
    with contextlib.suppress(ConnectionRefusedError):
        return daemon.post(address=address)
