"""SIGHUP changes limits, deadlines, the topic table and the log level for new requests and records."""

import signal
import time

import pytest

import http_client
import waiting
from load import Load
from reloading import refused, reload
from signing import Delivery, event_body


@pytest.fixture
def daemon(installation):
    config = installation.config()
    config["receiver"]["threads"] = 2
    installation.create_topics(config)
    return installation.start(config)


def ends(connection, seconds=20):
    """Whether the daemon closes the connection."""
    connection.settimeout(seconds)
    return connection.recv(1) == b""


# The receiver

def test_new_timeouts_apply_to_new_connections(daemon):
    daemon.config["receiver"].update({"idle_timeout": "1s", "header_timeout": "1s"})
    reload(daemon)
    with http_client.connect(daemon.address) as idle, http_client.connect(daemon.address) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\n")
        assert ends(idle)
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")
    del daemon.config["receiver"]["idle_timeout"], daemon.config["receiver"]["header_timeout"]
    reload(daemon)
    client = http_client.Client(daemon.address)
    for _ in range(2):
        delivery = Delivery()
        assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    client.close()


def test_connection_limits_change(daemon):
    connections = [http_client.connect(daemon.address) for _ in range(6)]
    daemon.config["receiver"]["max_connections"] = 2  # one for each of the two lanes
    reload(daemon)
    waiting.until(lambda: sum(_is_closed(each) for each in connections) >= 4, 30, "the excess connections to be closed")
    for each in connections:
        each.close()
    wait_for_connections(daemon, 0)
    daemon.config["receiver"].update({"max_connections": 100, "max_connections_per_address": 1})
    reload(daemon)
    with http_client.connect(daemon.address) as first:
        first.sendall(b"POST / HTTP/1.1\r\n")
        wait_for_connections(daemon, 1)  # otherwise the other lane may accept the second one first
        with http_client.connect(daemon.address) as second:
            assert ends(second)
    del daemon.config["receiver"]["max_connections_per_address"]
    reload(daemon)
    with http_client.connect(daemon.address):
        daemon.accept()


def wait_for_connections(daemon, number):
    waiting.until(lambda: daemon.metric("gatepost_connections_open") == number, 20, f"{number} connections")


def _is_closed(connection):
    connection.settimeout(0.01)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_memory_budget_changes(installation):
    config = installation.config()
    config["receiver"]["max_body"] = "64KiB"
    installation.create_topics(config)
    daemon = installation.start(config)
    large = Delivery(event_body() + b" " * 40000)
    head = "".join(f"{name}: {value}\r\n" for name, value in Delivery().headers().items())
    head = f"POST /webhooks/invoicing HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n{head}\r\n"
    with http_client.connect(daemon.address) as slow:
        slow.sendall(head.encode() + b" " * 40000)
        daemon.accept(large)
        config["receiver"]["max_in_flight"] = "64KiB"
        reload(daemon)
        daemon.accept(large)  # the stalled body is refused for it
        assert slow.recv(100).startswith(b"HTTP/1.1 503 ")
    config["receiver"].update({"max_body": "32KiB", "max_in_flight": "32KiB"})
    assert "max_body, which needs a restart" in refused(daemon)


def test_delivery_is_checked_against_the_configuration_current_at_its_end(daemon):
    """Also if its headers were checked earlier."""
    before = daemon.config["source invoicing"]["secret_file"]
    body = event_body()

    def reload_between_head_and_body(delivery, secret_file):
        head = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
        with http_client.connect(daemon.address) as connection:
            connection.sendall(f"POST /webhooks/invoicing HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n{head}\r\n".encode()
                               + body[:10])
            time.sleep(0.1)  # time to read the headers; the result is the same otherwise
            daemon.config["source invoicing"]["secret_file"] = secret_file
            reload(daemon)
            connection.sendall(body[10:])
            return int(connection.recv(1000)[9:12])
    new = b"a secret that is as good as the other"
    assert reload_between_head_and_body(Delivery(body, secret=new), daemon.config.secret_file("new", new)) == 200
    assert reload_between_head_and_body(Delivery(body, secret=new), before) == 401
    daemon.config["source invoicing"]["path"] = "/elsewhere"
    assert reload_between_head_and_body(Delivery(body), before) == 404


def test_trusted_proxies_change(daemon):
    def client():
        """Whether the log names the client from x-forwarded-for."""
        before = len(daemon.log)
        http_client.request(daemon.address, "GET", "/nothing", {"x-forwarded-for": "192.0.2.7"})
        return "client=192.0.2.7" in daemon.log[before:]
    assert not client()
    daemon.config["receiver"]["trusted_proxy"] = "127.0.0.1"
    reload(daemon)
    waiting.until(client, 20, "the client that the proxy names")
    del daemon.config["receiver"]["trusted_proxy"]
    reload(daemon)
    waiting.until(lambda: not client() and "client=127.0.0.1" in daemon.log.splitlines()[-1], 20, "the proxy itself")


# The router

def published(installation, delivery):
    """The topic that a delivery was published to."""
    installation.kafka.wait_until_routed()
    (record,) = [each for each in installation.kafka.read() if each.delivery_id == delivery.delivery_id]
    return record.topic.removeprefix(installation.prefix + ".")


@pytest.mark.slow
def test_topic_table_changes(installation, daemon):
    events = daemon.config["events"]
    assert published(installation, daemon.accept(Delivery(event_body("invoice.accepted")))) == "invoice.accepted"
    installation.kafka.create(f"{installation.prefix}.all", 2, max_message_bytes=1200000)
    events["invoice.*"] = f"{installation.prefix}.all"
    reload(daemon)
    assert daemon.metric("gatepost_events_total", kind="invoice.*") == 0
    assert published(installation, daemon.accept(Delivery(event_body("invoice.accepted")))) == "all"
    assert published(installation, daemon.accept(Delivery(event_body("reporting_batch.sent")))) == "reporting_batch"
    waiting.until(lambda: daemon.metric("gatepost_events_total", kind="invoice.*") == 1, 20, "the event to be counted")
    waiting.until(lambda: daemon.metric("gatepost_events_total", kind="invoice.accepted") == 1, 20, "the first event")
    del daemon.config.sections["events"]
    reload(daemon)
    assert published(installation, daemon.accept(Delivery(event_body("invoice.accepted")))) == "invoice.accepted"
    waiting.until(lambda: daemon.metric("gatepost_events_total", kind="invoice.accepted") == 2, 20, "the event to be counted")
    assert daemon.metric("gatepost_events_total", kind="invoice.*") == 1


def test_missing_or_misconfigured_topics_are_refused(installation, daemon):
    topic = f"{installation.prefix}.late"
    daemon.config["events"]["invoice.*"] = topic
    daemon.config["source invoicing"]["tolerance"] = "10s"
    log = refused(daemon)
    assert topic in log and "topics create" in log
    stale = Delivery().but(timestamp=Delivery().timestamp - 60)
    daemon.accept(stale)  # the configuration was not applied
    assert daemon.metric("gatepost_config_last_reload_successful") == 0
    installation.kafka.create(topic, max_message_bytes=1000)
    assert "max.message.bytes" in refused(daemon)
    installation.kafka.configure(topic, "max.message.bytes", "1200000")
    reload(daemon)
    assert published(installation, daemon.accept(Delivery(event_body("invoice.accepted")))) == "late"


def test_topic_too_small_for_the_current_max_body_is_refused(installation, daemon):
    """A smaller max_body needs a restart, so the current one applies."""
    topic = f"{installation.prefix}.small"
    installation.kafka.create(topic, max_message_bytes=200_000)
    daemon.config["receiver"]["max_body"] = "10KiB"
    daemon.config["events"]["invoice.*"] = topic
    assert "max.message.bytes" in refused(daemon)
    daemon.stop()
    daemon.restart()


def test_replay_is_recognised_after_a_longer_tolerance(installation, daemon):
    """gatepost.conf(5) recommends a longer tolerance after an outage, which makes stale deliveries fresh again."""
    daemon.config["source invoicing"]["tolerance"] = "2s"
    reload(daemon)
    delivery = daemon.accept()
    waiting.until(lambda: daemon.post(delivery).status == 401, 30, "the delivery to be stale")
    daemon.config["source invoicing"]["tolerance"] = "5min"
    reload(daemon)
    daemon.accept(delivery.but(delivery_id="captured"))
    installation.kafka.wait_until_routed()
    (record,) = installation.kafka.read(installation.kafka.quarantine)
    assert (record.delivery_id, record.header("gatepost-reason")) == ("captured", "replayed-signature")


@pytest.mark.slow
def test_every_record_is_routed_by_a_single_table(installation, daemon):
    """The table alternates under load: no delivery is lost, duplicated or published elsewhere."""
    kafka, prefix = installation.kafka, installation.prefix
    kafka.create(f"{prefix}.all", max_message_bytes=1200000)
    load = Load(lambda: [daemon.address], threads=6, once=True).start()
    for rounds in range(20):
        if rounds % 2 == 0:
            daemon.config["events"]["invoice.*"] = f"{prefix}.all"
        else:
            del daemon.config.sections["events"]
        reload(daemon)
        wanted = len(load.accepted) + 10
        waiting.until(lambda: len(load.accepted) >= wanted or set(load.answers) - {200}, 30, "more deliveries")
    load.stop()
    assert set(load.answers) == {200}
    kafka.wait_until_routed()
    records = kafka.read()
    assert sorted(each.delivery_id for each in records) == sorted(load.accepted)
    assert {each.topic for each in records} == {f"{prefix}.all", f"{prefix}.invoice.accepted"}
    counted = lambda: [daemon.metric("gatepost_events_total", kind=kind) for kind in ("invoice.*", "invoice.accepted")]
    waiting.until(lambda: sum(counted()) == len(records), 20, "all to be counted")
    assert all(counted())


def test_new_topics_are_created_on_the_embedded_broker(offline):
    config = offline.config()
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = offline.start(config)
    config["events"]["invoice.*"] = f"{offline.prefix}.all"
    reload(daemon)
    daemon.accept(Delivery(event_body("invoice.accepted")))
    waiting.until(lambda: daemon.metric("gatepost_events_total", kind="invoice.*") == 1, 30, "the event")


def test_new_topics_are_refused_while_kafka_is_away(offline):
    config = offline.config()
    daemon = offline.daemon(config).start()
    reload(daemon)
    config["events"]["invoice.*"] = "another"
    assert "cannot be checked" in refused(daemon)


# The log

def test_log_level_changes(daemon):
    daemon.accept()
    assert " debug " not in daemon.log
    daemon.config["gatepost"]["log_level"] = "debug"
    reload(daemon)
    delivery = daemon.accept()
    daemon.wait_for_log(f"delivery_id={delivery.delivery_id}")
    daemon.config["gatepost"]["log_level"] = "warning"
    reload_silently(daemon)
    before = len(daemon.log)
    daemon.accept()
    assert daemon.post(Delivery(secret=b"wrong secret, sixteen")).status == 401
    assert daemon.log[before:] == ""


def reload_silently(daemon):
    """Reload the configuration at a log level that hides the reload."""
    before = daemon.metric("gatepost_config_last_reload_success_timestamp_seconds")
    waiting.until(lambda: int(time.time()) > before, 10, "the next second")
    daemon.config.write(f"{daemon.name}.conf")
    daemon.process.send_signal(signal.SIGHUP)
    waiting.until(lambda: daemon.metric("gatepost_config_last_reload_success_timestamp_seconds") > before, 30, "the reload")
