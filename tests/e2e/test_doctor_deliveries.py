"""gatepost doctor: the way of the test deliveries, and of genuine ones, to quarantine or to nobody."""

import subprocess
import threading
import time

import pytest
from cluster import Cluster
from confluent_kafka import Consumer, TopicPartition

import waiting
from audit_side import drop_first
from checkup import (EX_CONFIG, EX_UNAVAILABLE, UTF_8, Checkup, by_sockets, change_path, change_secret, examine, expect, file_of,
                     status_of, with_status)
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD, Installation
from reloading import reload
from signing import Delivery


def change_prefix(config):
    config["source invoicing"]["header_prefix"] = "x-other"


def change_webhook_id(config):
    config["source invoicing"]["webhook_id"] = "another"


@pytest.mark.parametrize("change, answer", [(change_secret, "401 (INVALID_SIGNATURE)"), (change_prefix, "400 (VALIDATION_ERROR)"),
                                            (change_path, "404 (NOT_FOUND)"), (change_webhook_id, "403 (FORBIDDEN)")])
def test_daemon_that_was_not_reloaded(installation, stopped, change, answer):
    stopped.config["source invoicing"]["webhook_id"] = "the-one"
    daemon = stopped.start().wait_until_ready()
    change(daemon.config)
    checkup = examine(installation, daemon.config)
    expect(checkup, EX_CONFIG, "delivery ", f"answered {answer}: ", "systemctl reload gatepostd")
    reload(daemon)
    assert examine(installation, file_of(daemon)).status == 0
    installation.kafka.wait_until_routed()
    assert installation.kafka.read() == []


def test_router_that_quarantines_the_delivery(installation, stopped):
    """The file has another `kind` than the running router: every genuine delivery goes to quarantine, too."""
    daemon = stopped.start().wait_until_ready()
    daemon.config["source invoicing"]["kind"] = "/type"
    checkup = examine(installation, daemon.config)
    expect(checkup, EX_CONFIG, "router ", "has quarantined it", "missing-kind, nothing at /event", "`kind`")


def test_embedded_router_that_quarantines_the_delivery(installation):
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    daemon.config["source invoicing"]["kind"] = "/type"
    expect(examine(installation, daemon.config), EX_CONFIG, "router ", "has quarantined it", "missing-kind, nothing at /event", "`kind`")


@pytest.fixture
def apart(installation):
    """A receiver, and a router that verifies by another secret."""
    installation.create_topics()
    receiver = installation.daemon(by_sockets(installation, "receiver"))
    receiver.config["receiver"]["listen"] = ["127.0.0.1:0", f"unix:{receiver.config.directory}/receiver.sock"]
    router = installation.daemon(by_sockets(installation, "router"))
    router.config["router"]["verify"] = "on"
    change_secret(router.config)
    return receiver.start().wait_until_ready(), router.start().wait_until_ready()


def test_genuine_deliveries_in_quarantine_are_a_warning(installation, apart):
    """The router verifies by another secret than the receiver."""
    receiver, router = apart
    assert "✓ quarantine: no delivery quarantined within an hour" in examine(installation, file_of(router)).lines
    for number in range(1, 3):
        receiver.accept()
        waiting.until(lambda: status_of(router)["quarantined"]["unverified"] == number, 30, "the router to quarantine it")
    checkup = examine(installation, file_of(router))
    (warning,) = checkup.having("!")
    assert checkup.status == 0 and warning.startswith(
        "! quarantine: 2 deliveries quarantined within an hour, by any router, the last of [source invoicing] as unverified: ")
    assert "read the reason in gatepost-consumers(7), QUARANTINE, before that" in warning and "would be published twice" in warning, warning
    checkup = examine(installation, file_of(router), "--to", f"http://{receiver.address}")
    expect(checkup, EX_CONFIG, "answered 401 (INVALID_SIGNATURE)", "if it is [source invoicing]", "do not have the same secret_file: ", "verify = on",
           "the one that accepts deliveries of the service is right, so correct the other")


def test_deliveries_deleted_before_they_were_routed_are_a_warning(installation):
    """By retention while no router runs: the routed partition says it by the router, one without a router by its offsets."""
    installation.create_topics(partitions=1)
    router = installation.daemon(by_sockets(installation, "router")).start().wait_until_ready()
    (line,) = [line for line in examine(installation, file_of(router)).lines if line[2:].startswith("losses")]
    assert line.startswith("✓ losses: this router has found no delivery lost since the start of gatepostd "), line
    kafka = installation.kafka
    kafka.append([Delivery() for _ in range(2)])
    kafka.wait_until_routed()
    router.stop()
    kafka.append([Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 7)
    without = by_sockets(installation, "router")
    without["admin"]["listen"] = "off"
    (warning,) = [line for line in examine(installation, without, "--no-send").having("!") if line.startswith("! partitions ")]
    assert warning.startswith(f"! partitions {kafka.deliveries}: in partition 0, the offsets 2 to 6 were deleted before they were routed"), warning
    router.start().wait_until_ready()
    waiting.until(lambda: router.metric("gatepost_deleted_before_routing_total") == 5, 30, "the router to count them")
    kafka.append([Delivery()])
    kafka.wait_until_routed()
    checkup = examine(installation, file_of(router))
    (warning,) = checkup.having("!")
    assert checkup.status == 0 and warning.startswith("! losses: up to 5 deliveries were deleted before they were routed"), warning
    assert status_of(router)["deletedBeforeRouting"]["timeSeconds"] > time.time() - 600
    assert "deleted before routing: 5, last " in installation.gatepost("status", config=file_of(router)).stdout


@pytest.mark.parametrize("age_s, is_told", [(60, True), (7200, False)])
def test_log_that_kafka_has_cut_off_is_a_warning(offline, service, age_s, is_told):
    """Of a report with a truncation of that age."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    checkup = with_status(offline, service, file := str(config.write()), {"file": file},
                          logTruncations={"count": 1, "timeSeconds": int(time.time()) - age_s}, deletedBeforeRouting={"count": 0})
    lines = [line for line in checkup.lines if line[2:].startswith("losses")]
    assert [line.startswith("! losses: Kafka has lost deliveries that it had acknowledged, 1 time since ") for line in lines] == [is_told], lines


def test_router_that_verifies_the_delivery_by_another_secret(installation, apart):
    """The file has the receiver's secret, which the router has not loaded."""
    receiver, router = apart
    router.config["source invoicing"]["secret_file"] = receiver.config["source invoicing"]["secret_file"]
    checkup = examine(installation, router.config, "--to", f"http://{receiver.address}")
    expect(checkup, EX_CONFIG, "router ", "has quarantined it, and may do so with genuine deliveries: unverified, ",
           "verify = on, and other secrets", "then reload the router")


def test_kind_may_have_the_name_of_the_test_deliveries(installation, stopped):
    stopped.config["source invoicing"]["kind"] = "/gatepost.doctor"
    daemon = stopped.start().wait_until_ready()
    assert examine(installation, file_of(daemon)).status == 0
    assert daemon.metric("gatepost_quarantined_total") == 0


def test_receiver_of_other_brokers_or_topics(installation, stopped):
    """The delivery is accepted, but goes elsewhere."""
    stopped.start().wait_until_ready()
    other = Installation(installation.directory / "other", installation.bootstrap)
    other.directory.mkdir()
    config = by_sockets(other)
    config["receiver"]["listen"] = stopped.config["receiver"]["listen"]
    other.create_topics(config)
    config["admin"]["listen"] = "off"
    expect(examine(other, config), EX_CONFIG, "router ", "accepted, but not found", "prefix")
    other.clean_up()


def test_no_router_decides(installation):
    installation.create_topics()
    receiver = installation.start(by_sockets(installation, "receiver"))
    both = by_sockets(installation)
    both["receiver"]["listen"], both["admin"]["listen"] = receiver.config["receiver"]["listen"], "off"
    expect(examine(installation, both), EX_UNAVAILABLE, "router ", "has not decided on it within 30 s", "gatepost status")


def examine_until(installation, config, mark, then, *arguments):
    """Run it, and do something once it has printed a line that begins so."""
    process = subprocess.Popen([BUILD / "gatepost", "-c", config.write(), "doctor", *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | UTF_8)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(mark):
            then()
    stderr = process.stderr.read()
    assert_no_sanitizer_report(stderr)
    return Checkup(subprocess.CompletedProcess(process.args, process.wait(60), "".join(lines), stderr))


def test_router_that_catches_up_is_a_warning(installation):
    """Offsets that are committed one by one are those of a slow router."""
    installation.create_topics()
    receiver = installation.start(by_sockets(installation, "receiver"))
    installation.kafka.append([Delivery() for _ in range(900)])
    both = by_sockets(installation)
    both["receiver"]["listen"], both["admin"]["listen"] = receiver.config["receiver"]["listen"], "off"
    consumer = Consumer({"bootstrap.servers": installation.bootstrap, "group.id": installation.kafka.group})
    ended = threading.Event()

    def decide():
        for offset in range(1, 200):
            consumer.commit(offsets=[TopicPartition(installation.kafka.deliveries, partition, offset) for partition in range(3)],
                            asynchronous=False)
            if ended.wait(0.5):
                break
    thread = threading.Thread(target=decide)
    checkup = examine_until(installation, both, "✓ delivery ", thread.start)
    ended.set()
    thread.join(60)
    consumer.close()
    (warning,) = [line for line in checkup.having("!") if line.startswith("! router ")]
    assert "not decided within 30 s: a router is catching up, and about " in warning and "gatepost status" in warning
    assert checkup.status == 0 and checkup.having("✗") == [], checkup.lines


def test_kafka_is_lost_on_the_way(tmp_path):
    """What cannot be asked any more is no trouble of which there is none. No router decides, so these steps wait."""
    with Cluster() as cluster:
        site = Installation(tmp_path, cluster.bootstrap)
        try:
            site.create_topics()
            receiver = site.start(by_sockets(site, "receiver"))
            both = by_sockets(site)
            both["receiver"]["listen"], both["admin"]["listen"] = receiver.config["receiver"]["listen"], "off"
            for step, mark, *arguments in (("router", "✓ delivery "), ("partitions", "- delivery: ", "--no-send")):
                checkup = examine_until(site, both, mark, lambda: cluster.pause(1), *arguments)
                cluster.resume(1)
                expect(checkup, EX_UNAVAILABLE, f"{step} {site.kafka.deliveries}: ", "see whether its brokers still run")
                receiver.wait_until_ready()
        finally:
            cluster.resume(1)
            site.clean_up()
