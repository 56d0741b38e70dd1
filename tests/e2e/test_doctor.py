"""gatepost doctor: each fault has one cause and one remedy, in the last line; after the remedy, all is well."""

import pathlib
import re
import signal
import socket
import subprocess

import pytest
from cluster import Cluster
from confluent_kafka import Consumer

import http_client
import waiting
from authority import Authority
from checkup import (EX_CONFIG, EX_NOPERM, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, OTHER_SECRET, by_sockets, do, examine, expect, expect_well,
                     file_of, steps_of)
from daemon import ENVIRONMENT
from fake_service import answers
from installation import BUILD, Installation
from preload import FailDisk, FakeClock
from reloading import refused, reload
from signing import Delivery
from test_partitions import commit_beyond_end

ROOT = pathlib.Path(__file__).parents[2]
PASSWORD = "the password of the tests"


def issue(authority, name):
    """A certificate, followed by the authority's, and its key."""
    certificate, key = authority.issue(name, days=90)
    pathlib.Path(certificate).write_bytes(pathlib.Path(certificate).read_bytes() + pathlib.Path(authority.certificate).read_bytes())
    return certificate, key


# A healthy installation

def test_healthy_installation_fits_on_a_screen(shared, healthy):
    checkup = examine(shared, file_of(healthy))
    expect_well(checkup)
    assert checkup.lines == [checkup.lines[0], "no trouble found"] and re.fullmatch(r"\d+ ok", checkup.lines[0])
    verbose = examine(shared, file_of(healthy), "--verbose")
    expect_well(verbose)
    assert len(verbose.having("✓")) == int(checkup.lines[0].split()[0]) and len(verbose.lines) <= 40
    assert sum(1 + (len(line) - 1) // 80 for line in verbose.lines) <= 40


def test_json_has_every_finding(shared, healthy):
    steps, report = steps_of(shared, file_of(healthy))
    assert (report["cause"], report["remedy"]) == (None, None) and {each["level"] for each in steps} == {"passed"}
    assert [each for each in dict.fromkeys(each["step"] for each in steps)] == [
        "configuration", "kafka", "brokers", "topics", "group", "listen", "daemon", "loaded", "state", "delivery", "router", "clock"]
    assert [each["subject"] for each in steps if each["step"] == "delivery"] == ["http://localhost/webhooks/invoicing", "http://localhost/webhooks/orders"]


def test_no_send_sends_nothing(shared, healthy):
    before = shared.kafka.ends(shared.kafka.deliveries)
    expect_well(examine(shared, file_of(healthy), "--no-send"))
    assert shared.kafka.ends(shared.kafka.deliveries) == before


def test_marks_are_words_without_utf_8(shared, healthy):
    checkup = examine(shared, file_of(healthy), "-v", environment={"LC_ALL": "C"})
    assert checkup.lines[0].startswith("ok configuration ")


def test_embedded_broker(installation):
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    checkup = examine(installation, file_of(installation.start(config)))
    assert checkup.status == 0 and "the embedded broker forgets all records" in checkup.cause, checkup.last


def test_https_listener(installation, stopped, authority):
    stopped.config.tls(*issue(authority, "gateway"))
    expect_well(examine(installation, file_of(stopped.start().wait_until_ready())))


# The configuration

def test_certificate_that_does_not_fit_the_key(installation, stopped, authority):
    (certificate, key), (_, other) = issue(authority, "gateway"), issue(authority, "other")
    stopped.config.tls(certificate, other)
    expect(examine(installation, stopped.config), EX_CONFIG, f"configuration {stopped.config.directory}/gatepost.conf:", "key")
    stopped.config.tls(certificate, key)
    stopped.start().wait_until_ready()
    expect_well(examine(installation, file_of(stopped)))


def test_all_errors_of_the_file_are_printed(offline):
    config = offline.config()
    config["receiver"]["max_body"], config["router"]["dedup_window"] = "1 elephant", "soon"
    checkup = examine(offline, config)
    assert [line.split()[1] for line in checkup.having("✗")] == ["configuration"] * 2 and checkup.status == EX_CONFIG
    assert checkup.lines[-2] == "0 ok, 12 skipped"


# Kafka

@pytest.fixture(scope="module")
def secured(authority):
    with Cluster(secured=authority.issue_joined("broker", names="IP:127.0.0.1"), passwords={"gatepost": PASSWORD}) as cluster:
        yield cluster


def test_wrong_password(tmp_path, secured, authority):
    installation = Installation(tmp_path, secured.bootstrap)
    config = installation.config()
    installation.create_topics(config)
    config = by_sockets(installation)
    config.sections["kafka"] = {
        "bootstrap.servers": secured.secured_bootstrap, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "gatepost",
        "sasl.password_file": config.secret_file("password", b"another password"), "ssl.ca.location": authority.certificate}
    checkup = examine(installation, config)
    expect(checkup, EX_NOPERM, "kafka: Kafka cannot be reached: ", "wrong user name or password", "correct user and password in [kafka] of ")
    assert "another password" not in "\n".join(checkup.lines)
    config.secret_file("password", PASSWORD.encode())
    checkup = examine(installation, config)
    assert not checkup.cause.startswith("kafka"), checkup.lines  # the account has no permissions
    installation.clean_up()


@pytest.mark.parametrize("bootstrap, cause", [("127.0.0.1:9", "Connection refused"), ("kafka.invalid:9092", "resolve")])
def test_brokers_that_cannot_be_reached(offline, bootstrap, cause):
    config = by_sockets(offline)
    config["kafka"]["bootstrap.servers"] = bootstrap
    checkup = examine(offline, config)
    expect(checkup, EX_UNAVAILABLE, "kafka: Kafka cannot be reached: ", cause, "start the brokers, or correct bootstrap.servers")
    assert checkup.stderr == ""


def test_broker_that_advertises_an_unreachable_name(tmp_path):
    with Cluster(properties={"advertised.listeners": "PLAINTEXT://kafka-internal.invalid:9092"}) as cluster:
        installation = Installation(tmp_path, cluster.bootstrap)
        checkup = examine(installation, by_sockets(installation))
        installation.clean_up()
    expect(checkup, EX_UNAVAILABLE, "brokers kafka-internal.invalid:9092: broker 1 advertises this address", "correct its advertised.listeners")


def test_first_of_all_missing_topics_stands_for_the_others(installation):
    checkup = examine(installation, by_sockets(installation))
    expect(checkup, EX_CONFIG, f"topics {installation.kafka.deliveries}: the topic is missing")
    assert [line for line in checkup.lines if " topics" in line and "missing" not in line and "remedy" not in line] == ["· topics: so are 10 others"]
    do(installation, checkup.remedy)
    assert not [line for line in examine(installation, by_sockets(installation)).lines if line.startswith("✗ topics")]


def test_missing_topic(installation, running):
    installation.kafka.delete(f"{installation.prefix}.invoice.accepted")
    checkup = examine(installation, file_of(running))
    expect(checkup, EX_CONFIG, f"topics {installation.prefix}.invoice.accepted: the topic is missing")
    do(installation, checkup.remedy)
    waiting.until(lambda: examine(installation, file_of(running)).status == 0, 60, "the daemon to be ready again")


def test_setting_of_a_topic(installation, running):
    installation.kafka.configure(installation.kafka.deliveries, "retention.ms", "3600000")
    checkup = examine(installation, file_of(running))
    expect(checkup, EX_CONFIG, f"topics {installation.kafka.deliveries}: retention.ms is 3600000")
    do(installation, checkup.remedy)
    expect_well(examine(installation, file_of(running)))


def test_foreign_member_of_the_group(installation, running):
    consumer = Consumer({"bootstrap.servers": installation.bootstrap, "group.id": installation.kafka.group, "client.id": "billing"})
    consumer.subscribe([installation.kafka.deliveries])
    waiting.until(lambda: consumer.poll(0.1) or consumer.assignment(), 60, "the consumer to join")
    expect(examine(installation, file_of(running)), EX_CONFIG, f"group {installation.kafka.group}: billing-", "is no router",
           "stop this consumer, or give it another group.id")
    consumer.close()
    waiting.until(lambda: examine(installation, file_of(running)).status == 0, 60, "the router to have all partitions again")


def test_committed_offset_beyond_the_log(installation, stopped):
    commit_beyond_end(installation.kafka, 0, 5000)
    checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, f"group {installation.kafka.deliveries}: partition 0 was routed up to offset 5000, but ends at 0")
    commit_beyond_end(installation.kafka, 0, 0)
    assert not [line for line in examine(installation, stopped.config).having("✗") if line.startswith("✗ group")]


# The daemon

def test_daemon_that_does_not_run(installation, stopped):
    checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, "listen unix:", "nothing listens there", "systemctl start gatepostd")
    stopped.start().wait_until_ready()
    expect_well(examine(installation, file_of(stopped)))


def test_router_that_does_not_run(installation):
    """Its machine has no listener, so the admin endpoint is the first that does not answer."""
    installation.create_topics()
    checkup = examine(installation, by_sockets(installation, "router"))
    expect(checkup, EX_UNAVAILABLE, "daemon unix:", "gatepostd does not run: nothing listens there", "systemctl start gatepostd")


def test_address_of_another_program(installation, service, stopped):
    stopped.config["receiver"]["listen"] = service.url.split("/")[2]
    expect(examine(installation, stopped.config), EX_CONFIG, "listen 127.0.0.1:", "another program than gatepostd answers there", "choose another listen")


def test_daemon_of_another_file(installation, running):
    other = by_sockets(installation)
    other["receiver"]["listen"], other["admin"]["listen"] = running.config["receiver"]["listen"], running.config["admin"]["listen"]
    expect(examine(installation, other), EX_CONFIG, "daemon unix:", f"has another configuration, {file_of(running)}")


def change_secret(config):
    config["source invoicing"]["secret_file"] = config.secret_file("changed", OTHER_SECRET)


def change_prefix(config):
    config["source invoicing"]["header_prefix"] = "x-other"


def change_path(config):
    config["source invoicing"]["path"] = "/other"


def newer(daemon):
    """Write the configuration, after the second in which the daemon has loaded it."""
    loaded = daemon.admin("/status").json["configuration"]["loadedSeconds"]
    waiting.until(lambda: daemon.config.write(f"{daemon.name}.conf").stat().st_mtime >= loaded + 1, 10, "the next second")


@pytest.mark.parametrize("change", [change_secret, change_prefix, change_path])
def test_configuration_that_is_newer_than_the_daemon(installation, running, change):
    change(running.config)
    newer(running)
    expect(examine(installation, file_of(running)), EX_CONFIG, "loaded ", "it was changed after gatepostd had read it", "systemctl reload gatepostd")
    reload(running)
    expect_well(examine(installation, file_of(running)))


def test_refused_reload(installation, running):
    path = running.config["source invoicing"]["path"]
    running.config["source invoicing"]["path"] = "webhooks"
    refused(running)
    running.config["source invoicing"]["path"] = path
    running.config.write(f"{running.name}.conf")
    expect(examine(installation, file_of(running)), EX_CONFIG, "loaded ", "gatepostd has refused the last reload: ", "systemctl reload gatepostd")
    reload(running)
    expect_well(examine(installation, file_of(running)))


def test_option_that_awaits_a_restart_is_a_warning(installation, running):
    running.config["receiver"]["threads"] = "2"
    reload(running)
    checkup = examine(installation, file_of(running))
    assert checkup.status == 0 and checkup.cause.endswith("only a restart applies [receiver] threads"), checkup.last
    assert checkup.remedy.startswith("systemctl restart gatepostd"), checkup.last
    running.stop()
    running.restart()
    expect_well(examine(installation, file_of(running)))


def test_served_certificate_is_another_than_that_of_the_file(installation, stopped, authority):
    stopped.config.tls(*issue(authority, "gateway"))
    stopped.start().wait_until_ready()
    other = Authority(stopped.config.directory, days=90)
    stopped.config.tls(*issue(other, "renewed"))
    newer(stopped)
    expect(examine(installation, file_of(stopped)), EX_CONFIG, "listen unix:", "serves another certificate than the file has", "systemctl reload gatepostd")
    reload(stopped)
    expect_well(examine(installation, file_of(stopped)))


# Its state

def test_wrong_secret_registered_at_the_service(installation, running):
    """What the service signs with another secret is a failure until one of its deliveries is accepted."""
    for _ in range(3):
        assert running.post(Delivery(secret=OTHER_SECRET)).status == 401
    expect(examine(installation, file_of(running)), EX_CONFIG, "state [source invoicing]: 3 refused as forged", "gatepostd(8), Changing a secret")
    change_secret(running.config)
    reload(running)

    def is_mended():
        running.accept(Delivery(secret=OTHER_SECRET))
        checkup = examine(installation, file_of(running))
        return checkup.status == 0 and checkup.having("✗") == []
    waiting.until(is_mended, 30, "an accepted delivery, a second after the refusals")


def test_wrong_prefix_registered_at_the_service(installation, running):
    delivery = Delivery()
    assert http_client.request(running.address, "POST", "/webhooks/invoicing", delivery.headers("x-other"), delivery.body).status == 400
    expect(examine(installation, file_of(running)), EX_CONFIG, "state [source invoicing]: 1 refused as malformed", "set header_prefix to that of the service")


def test_spool_whose_disk_is_full(tmp_path, own_broker, plain_build):
    installation = Installation(tmp_path, own_broker.bootstrap)
    config = by_sockets(installation)
    config["receiver"]["spool"] = config.directory / "spool"
    installation.create_topics(config)
    installation.build = plain_build
    daemon = installation.daemon(config)
    daemon.environment.update(FailDisk(config.directory, 1000, is_full=True).environment)
    daemon.start().wait_until_ready()
    expect_well(examine(installation, file_of(daemon)))
    own_broker.pause(1)
    try:
        waiting.until(lambda: daemon.post().json["error"]["message"] == "the disk of the spool is full", 60, "a refusal because of the disk")
    finally:
        own_broker.resume(1)
    waiting.until(lambda: examine(installation, file_of(daemon), "--no-send").cause.startswith("state "), 120, "Kafka to be usable again")
    expect(examine(installation, file_of(daemon)), EX_UNAVAILABLE, "state spool: the disk is full", "make room on the disk of the spool's directory")
    installation.clean_up()


# Test deliveries

@pytest.fixture
def receiver(installation):
    """Of another machine, with a router here."""
    installation.create_topics()
    config = installation.config("receiver")
    return installation.start(config)


def test_router_that_is_stopped(installation, receiver):
    router = installation.daemon(by_sockets(installation, "receiver, router"))
    router.config["receiver"]["listen"], router.config["admin"]["listen"] = f"127.0.0.1:{receiver.address.split(':')[1]}", "off"
    expect(examine(installation, router.config), EX_UNAVAILABLE, f"router {installation.kafka.deliveries}: no router is in the group", "systemctl start gatepostd")
    other = installation.start(by_sockets(installation, "router"))
    expect_well(examine(installation, file_of(other), "--to", f"http://{receiver.address}"))


@pytest.mark.parametrize("change, answer", [
    (change_secret, "401 INVALID_SIGNATURE"), (change_prefix, "400 VALIDATION_ERROR"), (change_path, "404 NOT_FOUND")])
def test_url_of_a_receiver_with_another_configuration(installation, receiver, change, answer):
    router = by_sockets(installation, "router")
    change(router)
    router = installation.start(router)
    expect(examine(installation, file_of(router), "--to", receiver.address), EX_CONFIG, f"delivery http://{receiver.address}/",
           f"a delivery of [source invoicing] is answered {answer}: ", "gatepost-guide(7), Deliveries are refused")


def test_url_of_another_server(installation, running, service):
    service.faults = [answers(200, {"ok": True})]  # to everything
    expect(examine(installation, file_of(running), "--to", service.url.split("/")[2]), EX_UNAVAILABLE, "delivery ", "see what answers at this URL")


def test_url_with_the_path_of_no_source(installation, running):
    expect(examine(installation, file_of(running), "--to", "http://127.0.0.1:9/nothing"), EX_USAGE, "delivery --to: ", "/webhooks/invoicing")


def test_clock_that_is_off_by_a_minute(installation, running, plain_build):
    """This machine's is, and the broker's is right."""
    installation.build = plain_build
    clock = FakeClock(running)
    clock.set(60)
    checkup = examine(installation, file_of(running), environment=running.environment)
    expect(checkup, EX_UNAVAILABLE, "clock: this machine's is ", " ahead of the broker's", "timedatectl set-ntp true")
    clock.set(0)
    expect_well(examine(installation, file_of(running), environment=running.environment))


@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_interrupt_ends_it(installation, running, interrupt):
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = subprocess.Popen([BUILD / "gatepost", "-c", file_of(running), "doctor", "--to", "http://%s:%d" % server.getsockname()],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            connection.recv(65536)  # it waits for the answer now
            process.send_signal(interrupt)
            _, errors = process.communicate(timeout=10)
        finally:
            process.kill()
        connection.close()
    assert (process.returncode, errors) == (EX_TEMPFAIL, "gatepost doctor: interrupted\n")


# The service

@pytest.fixture
def subscribed(stopped, service):
    stopped.config["service"].update(base_url=service.url, api_key_file=stopped.config.secret_file("api-key", b"the-api-key-of-the-tests"))
    return stopped


def test_webhooks_of_the_service(installation, service, subscribed):
    config = subscribed.config
    subscribed.start().wait_until_ready()
    checkup = examine(installation, file_of(subscribed), "--no-send")
    assert checkup.status == 0 and checkup.cause == "service invoicing: no webhook of the service has a URL that ends with /webhooks/invoicing"
    added = service.add({"url": "https://gateway.example/webhooks/invoicing", "events": ["*"]})
    expect_well(examine(installation, file_of(subscribed), "--no-send"))
    config["source invoicing"]["webhook_id"] = "another"
    reload(subscribed)
    checkup = examine(installation, file_of(subscribed), "--no-send")
    expect(checkup, EX_CONFIG, f"service invoicing: webhook {added['id']} leads here, but is none of webhook_id", f"add webhook_id = {added['id']} to ")
    config["source invoicing"]["webhook_id"] = ["another", added["id"]]
    reload(subscribed)
    expect_well(examine(installation, file_of(subscribed), "--no-send"))


def test_api_key_that_the_service_refuses(installation, service, subscribed):
    subscribed.start().wait_until_ready()
    service.faults = [answers(401, {"ok": False, "error": {"code": "UNAUTHORIZED", "message": "unknown key", "requestId": "r-1"}})]
    checkup = examine(installation, file_of(subscribed), "--no-send")
    assert checkup.cause.startswith("service [service]: ") and checkup.status in (EX_NOPERM, EX_CONFIG), checkup.last
    assert "the-api-key" not in "\n".join(checkup.lines)


# The manuals

def test_paragraphs_that_remedies_name_exist():
    sources = "\n".join(file.read_text() for file in (ROOT / "src" / "cli").glob("*.c"))
    named = set(re.findall(r"(gatepost[a-z-]*\(\d\)), ([A-Z][A-Za-z ]*)", sources))
    named |= {("gatepostd(8)", name) for name in re.findall(r'RUNBOOK\("(\w+)"\)', sources)}
    assert len(named) > 15
    for page, name in named:
        manual = (ROOT / "man" / page.replace("(", ".").removesuffix(")")).read_text()
        assert re.search(rf"^\.(S[hs]|It Sy) {name}$", manual, re.M), (page, name)
