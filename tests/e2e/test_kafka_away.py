"""Kafka hangs, is killed or was never started: the daemon reports it, answers 503, and recovers when Kafka is back."""

import itertools
import signal
import subprocess
import threading
import time
import types

import pytest

import http_client
import preload
import waiting
from daemon import ENVIRONMENT
from installation import Installation
from load import Load
from manager import Manager
from signing import Delivery, event_body
from tally import assert_exactly_once

ACK_TIMEOUT = 2  # seconds
SLACK = 1.5
LOAD_SLACK = 5  # for many concurrent requests, one of which may stall; less than the default of ack_timeout
NOT_READY_SECONDS = 15
BACK_SECONDS = 60
MANY_LANES_SECONDS = 30  # half of the time if each took two seconds


@pytest.fixture
def installation(own_broker, tmp_path):
    each = Installation(tmp_path, own_broker.bootstrap)
    yield each
    each.clean_up()


@pytest.fixture
def paused(own_broker):
    """Suspends Kafka; it is resumed at the end of the test at the latest."""
    yield lambda: own_broker.pause(1)
    own_broker.resume(1)


def start(installation, **receiver):
    config = installation.config()
    config["receiver"].update({"ack_timeout": f"{ACK_TIMEOUT}s"} | receiver)
    installation.create_topics(config)
    return installation.start(config)


def accept(daemon, delivery=None):
    """Deliver until accepted; a broker may be slow after its start."""
    delivery = delivery or Delivery()
    waiting.until(lambda: daemon.post(delivery).status == 200, BACK_SECONDS, "the answer 200")
    return delivery


def wait_for_more(load, n):
    """Wait until this many more deliveries were accepted."""
    wanted = len(load.accepted) + n
    waiting.until(lambda: len(load.accepted) >= wanted, BACK_SECONDS, lambda: f"{wanted} accepted: {load.answers}")


def assert_unavailable(reply):
    assert (reply.status, reply.code) == (503, "UNAVAILABLE")
    assert int(reply.headers["retry-after"]) >= 1 and reply.request_id


def test_hung_kafka_is_answered_503_within_the_ack_timeout(installation, own_broker, paused):
    daemon = start(installation, trusted_proxy="127.0.0.1")
    before = accept(daemon)
    paused()
    begun = time.monotonic()
    delivery = Delivery()
    headers = delivery.headers() | {"x-forwarded-for": "198.51.100.7", "connection": "close"}
    reply = http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, delivery.body)
    assert_unavailable(reply)
    assert time.monotonic() - begun < ACK_TIMEOUT + SLACK
    assert reply.closed
    daemon.wait_for_log("client=198.51.100.7")
    daemon.wait_until_not_ready(NOT_READY_SECONDS)
    assert daemon.admin("/healthz").status == 200
    assert daemon.admin("/readyz").status == 503
    waiting.until(lambda: daemon.metric("gatepost_kafka_reachable") == 0, 30, "the probe to detect it")
    assert "was replaced" not in daemon.log  # the time without Kafka is not the producer's fault
    own_broker.resume(1)
    daemon.wait_until_ready(BACK_SECONDS)
    assert "was replaced" not in daemon.log
    accept(daemon, delivery)  # the earlier attempt may have been stored too
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, {each.delivery_id: each for each in (before, delivery)})


def test_hung_kafka_under_load_loses_no_accepted_delivery(installation, own_broker, paused):
    daemon = start(installation)
    load = Load(lambda: [daemon.address], threads=8, rate=300).start()
    wait_for_more(load, 300)
    paused()
    daemon.wait_until_not_ready(NOT_READY_SECONDS)
    own_broker.resume(1)
    daemon.wait_until_ready(BACK_SECONDS)
    wait_for_more(load, 300)
    load.stop()
    assert load.answers[503] > 0 and set(load.answers) == {200, 503}, load.answers
    assert load.slowest < ACK_TIMEOUT + LOAD_SLACK
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, load.accepted, load.sent)


def test_killed_kafka_under_load_loses_no_accepted_delivery(installation, own_broker):
    daemon = start(installation)
    load = Load(lambda: [daemon.address], threads=8, rate=300).start()
    wait_for_more(load, 300)
    own_broker.kill(1)
    try:
        daemon.wait_until_not_ready(NOT_READY_SECONDS)
    finally:
        own_broker.start_node(1)
    daemon.wait_until_ready(BACK_SECONDS)
    wait_for_more(load, 300)
    load.stop()
    assert load.answers[503] > 0 and set(load.answers) == {200, 503}, load.answers
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, load.accepted, load.sent)


@pytest.mark.slow
def test_signature_of_an_unstored_delivery_is_not_remembered(installation, own_broker):
    """A captured delivery under another id gets a 503; the later genuine delivery is not a replay of it."""
    daemon = start(installation)
    accept(daemon)
    own_broker.kill(1)
    genuine = Delivery()
    try:
        daemon.wait_until_not_ready(NOT_READY_SECONDS)
        assert_unavailable(daemon.post(genuine.but(delivery_id="captured")))
    finally:
        own_broker.start_node(1)
    daemon.wait_until_ready(BACK_SECONDS)
    accept(daemon, genuine)
    installation.kafka.wait_until_routed()
    assert installation.kafka.read(installation.kafka.quarantine) == []


def test_delivery_is_answered_503_while_a_copy_under_another_id_is_pending(installation, own_broker, paused):
    """If the captured delivery is not stored in the end, the genuine one is not a replay of it."""
    daemon = start(installation, ack_timeout="60s")
    accept(daemon)
    paused()
    genuine, copies = Delivery(), []
    sender = threading.Thread(target=lambda: copies.append(daemon.post(genuine.but(delivery_id="captured"), timeout=120)))
    sender.start()
    waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") > 0, 30, "the copy")
    reply = daemon.post(genuine)
    assert_unavailable(reply)
    assert "another delivery with this signature" in reply.json["error"]["message"]
    own_broker.resume(1)
    sender.join()
    assert copies[0].status == 200
    accept(daemon, genuine)
    installation.kafka.wait_until_routed()
    (record,) = installation.kafka.read(installation.kafka.quarantine)
    assert record.header("gatepost-reason") == "replayed-signature"


def test_connections_are_refused_during_shutdown(installation, own_broker, paused):
    """A pending answer delays shutdown; new clients must be able to go elsewhere immediately."""
    daemon = start(installation, ack_timeout="60s")
    accept(daemon)
    paused()
    address, replies = daemon.address, []
    sender = threading.Thread(target=lambda: replies.append(daemon.post(timeout=120)))
    sender.start()
    waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") > 0, 30, "a delivery")
    daemon.process.send_signal(signal.SIGTERM)
    waiting.until(lambda: is_refused(address), 10, "connections to be refused")
    assert daemon.is_running() and not replies
    own_broker.resume(1)
    sender.join()
    assert replies[0].status == 200
    daemon.wait_for_exit(0)


def is_refused(address):
    try:
        http_client.connect(address).close()
    except ConnectionRefusedError:
        return True
    return False


def test_daemon_started_before_kafka_becomes_ready_when_kafka_does(installation, own_broker):
    config = installation.config()
    installation.create_topics(config)
    own_broker.kill(1)
    try:
        daemon = installation.daemon(config).start()
        begun = time.monotonic()
        assert_unavailable(daemon.post())
        assert time.monotonic() - begun < ACK_TIMEOUT + SLACK  # it does not wait for Kafka
        assert not daemon.ready()
    finally:
        own_broker.start_node(1)
    daemon.wait_until_ready(BACK_SECONDS)
    delivery = accept(daemon)
    installation.kafka.wait_until_routed()
    assert delivery.delivery_id in {record.delivery_id for record in installation.kafka.read()}


def test_sigterm_stops_the_daemon_while_kafka_hangs(installation, paused):
    daemon = start(installation)
    accept(daemon)
    installation.kafka.wait_until_routed()
    paused()
    assert daemon.post().status == 503
    daemon.stop(expect=0)


def test_bodies_beyond_max_in_flight_are_refused_at_once(installation, own_broker, paused):
    daemon = start(installation, ack_timeout="8s", max_body="256KiB", max_in_flight="1MiB")
    daemon.accept()
    paused()
    answers = []

    def post():
        begun = time.monotonic()
        reply = daemon.post(Delivery(event_body().ljust(250 << 10)))
        answers.append((reply, time.monotonic() - begun))
    posts = [threading.Thread(target=post) for _ in range(12)]
    for each in posts:
        each.start()
    for each in posts:
        each.join()
    for reply, _ in answers:
        assert_unavailable(reply)
    at_once = [seconds for _, seconds in answers if seconds < 4]
    assert len(at_once) >= 8, sorted(seconds for _, seconds in answers)
    own_broker.resume(1)
    daemon.wait_until_ready(BACK_SECONDS)
    daemon.accept(Delivery(event_body().ljust(250 << 10)))


def test_delivery_is_stored_when_the_client_disconnects_before_the_ack(installation, own_broker, paused):
    daemon = start(installation, ack_timeout="8s")
    daemon.accept()
    paused()
    delivery = Delivery()
    head = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
    with http_client.connect(daemon.address) as connection:
        connection.sendall(f"POST /webhooks/invoicing HTTP/1.1\r\nhost: a\r\n{head}"
                           f"content-length: {len(delivery.body)}\r\n\r\n".encode() + delivery.body)
        # The server has read it when it answers another connection's request.
        assert daemon.admin("/healthz").status == 200
        assert http_client.request(daemon.address, "GET", "/").status == 404
    own_broker.resume(1)
    reader = installation.kafka.reader()
    reader.wait_for(delivery.delivery_id)
    reader.close()
    daemon.wait_until_ready(BACK_SECONDS)
    daemon.accept()


@pytest.mark.slow
def test_hung_name_servers_are_answered_503_without_blocking_lanes(installation, plain_build):
    """The producer's connection is lost and its replacement cannot connect, while Kafka answers the probe."""
    installation.build = plain_build
    config = installation.config("receiver")
    config["receiver"]["ack_timeout"] = f"{ACK_TIMEOUT}s"
    installation.create_topics(config)
    daemon = installation.daemon(config)
    lookups = preload.HungLookups(daemon)
    daemon.start().wait_until_ready().accept()
    refused = []

    def refuse():
        refused.append(Delivery())
        assert_unavailable(daemon.post(refused[-1], timeout=10))
        assert daemon.admin("/healthz").status == 200
        return daemon.log.count("does not shut down; leaking it") >= 2
    with lookups:
        waiting.until(refuse, BACK_SECONDS, "two producers to be replaced")
    # The deliveries of replaced producers count as finished: no signature is pending, and no byte is in flight.
    for delivery in (refused[0], refused[-1].but(delivery_id="captured")):
        accept(daemon, delivery)
    waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") == 0, 10, "nothing in flight")


def test_sigterm_stops_the_daemon_while_name_servers_hang(installation, plain_build):
    """Shutdown does not wait for librdkafka threads that are blocked in getaddrinfo()."""
    installation.build = plain_build
    config = installation.config()
    installation.create_topics(config)
    daemon = installation.daemon(config)
    with preload.HungLookups(daemon):
        daemon.start()
        assert_unavailable(daemon.post())
        daemon.stop()


@pytest.fixture
def dead(own_broker):
    """A function that kills the broker, which is restarted after the test."""
    yield lambda: own_broker.kill(1)
    own_broker.start_node(1)


@pytest.mark.slow
def test_sigterm_stops_an_idle_daemon_without_kafka_and_name_servers(installation, plain_build, dead):
    installation.build = plain_build
    config = installation.config()
    installation.create_topics(config)
    daemon = installation.daemon(config)
    lookups = preload.HungLookups(daemon)
    daemon.start().wait_until_ready().accept()
    installation.kafka.wait_until_routed()
    with lookups:
        dead()
        daemon.wait_for_log("kafka is unreachable", BACK_SECONDS)
        daemon.stop()


@pytest.mark.slow
def test_interrupt_stops_tail_without_kafka_and_name_servers(installation, plain_build, dead):
    config = installation.config()
    installation.create_topics(config)
    program = types.SimpleNamespace(name="tail", config=config, environment={})
    lookups = preload.HungLookups(program)
    tail = subprocess.Popen([plain_build / "gatepost", "-c", config.write("tail.conf"), "tail", "--from", "end"],
                            env=ENVIRONMENT | program.environment, stderr=subprocess.PIPE, text=True)
    installation.kafka.read(f"{installation.prefix}.invoice.accepted")
    with lookups:
        dead()
        # On a busy machine, a client that looked for the beginning may not have shut down before.
        lines = itertools.takewhile(lambda line: "kafka is unreachable" not in line, tail.stderr)
        assert all("does not shut down; leaking it" in line for line in lines) and tail.poll() is None
        tail.send_signal(signal.SIGINT)
        _, stderr = tail.communicate(timeout=30)
    assert tail.returncode == -signal.SIGINT, stderr


def test_many_lanes_start_and_stop_in_parallel_while_kafka_is_away(offline, tmp_path):
    """Each lane has its own producer: they must not be started or stopped one after the other."""
    config = offline.config()
    config["receiver"]["threads"] = 32
    manager = Manager(tmp_path / "notify")
    daemon = manager.watch(offline.daemon(config))
    begun = time.monotonic()
    daemon.start()
    manager.wait_for("STATUS")
    assert_unavailable(daemon.post())
    assert time.monotonic() - begun < MANY_LANES_SECONDS
    daemon.stop(seconds=MANY_LANES_SECONDS)
    manager.close()
