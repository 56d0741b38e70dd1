"""The embedded broker, for evaluation. Exactly-once is not tested on it: it does not hide aborted records."""

import json
import re
import signal
import time

import pytest

import waiting
from reloading import send_sighup


@pytest.fixture
def embedded(installation):
    """The configuration of a daemon with a broker inside, at which the command line can ask for its address."""
    config = installation.config()
    config["kafka"]["bootstrap.servers"] = "embedded"
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    config["receiver"]["listen"] = f"unix:{config.directory}/receiver.sock"
    return config


@pytest.fixture
def run(installation, embedded):
    """Start the daemon. Returns a function that runs a command, which must exit with `status`."""
    installation.start(embedded)

    def run(*arguments, status=0):
        done = installation.gatepost(*arguments, config=embedded)
        assert done.returncode == status, (arguments, done.stdout, done.stderr)
        return done
    return run


def events(run, *arguments):
    return [json.loads(line) for line in run("tail", "--until-end", "--json", *arguments).stdout.splitlines()]


def send(run, kind):
    """Returns the delivery-id."""
    return json.loads(run("send", "--kind", kind).stdout.partition(" ")[2])["deliveryId"]


def wait_for_routed(run, n):
    def routed():
        status = json.loads(run("status", "--json").stdout)
        return sum(status["events"].values()) + sum(status["quarantined"].values()) >= n and status["lagRecords"] == 0
    waiting.until(routed, 30, f"{n} routed deliveries")


def test_embedded_broker_needs_no_kafka(run):
    delivery_id = send(run, "invoice.received")
    (event,) = waiting.until(lambda: events(run, "--from", "beginning"), 30, "the event")
    assert event["headers"]["ce_id"] == delivery_id


def test_address_of_the_embedded_broker_is_in_the_status(installation, embedded, run):
    status = json.loads(run("status", "--json").stdout)
    address = re.search(r"embedded broker address=(127\.0\.0\.1:\d+)", installation.daemons[0].log)[1]
    assert status["embeddedBroker"] == address and "keeps nothing across restarts" in installation.daemons[0].log
    assert run("tail", "--bootstrap", address, "--from", "beginning", "--until-end").stdout == ""


def test_topics_of_the_embedded_broker_are_listed_without_settings(run):
    listed = run("topics", "list")
    assert re.search(r"\.deliveries +deliveries +1 +1 +-$", listed.stdout, re.M)
    topics = json.loads(run("topics", "list", "--json").stdout)
    assert len(topics) == 11 and all(each["exists"] and each["retentionMs"] is None and not each["findings"] for each in topics)
    assert run("topics", "create").stdout.startswith("gatepostd creates the topics of its embedded broker")


def test_audit_with_the_embedded_broker_compares_what_was_routed(installation, embedded, run):
    for kind in ("invoice.accepted", "invoice.accepted", "no.such_kind"):
        send(run, kind)
    wait_for_routed(run, 3)
    for since in ([], ["--since", "1h"]):
        done = waiting.until(lambda: (lambda done: done if "3 deliveries checked" in done.stdout else None)(
            installation.gatepost("audit", *since, config=embedded)), 30, "the audit of three deliveries")
        assert done.returncode == 0, done
        assert done.stdout.splitlines()[-1].split()[:6] == ["total", "3", "3", "0", "0", "0"]
        assert "keeps no committed offsets" in done.stderr


def test_quarantine_of_the_embedded_broker_is_released(installation, embedded, run):
    delivery_id = send(run, "no.such_kind")
    wait_for_routed(run, 1)
    (quarantined,) = json.loads(run("quarantine", "list", "--json").stdout)
    assert quarantined["deliveryId"] == delivery_id and not quarantined["released"]
    assert "no.such_kind" in run("quarantine", "show", quarantined["id"]).stdout
    embedded["events"]["no.such_kind"] = f"{installation.prefix}.new"
    embedded.write("gw1.conf")
    assert "configuration reloaded" in send_sighup(installation.daemons[0])
    assert f"{quarantined['id']} released" in run("quarantine", "release", quarantined["id"]).stdout
    (event,) = waiting.until(lambda: events(run, "--from", "beginning", "no.such_kind"), 30, "the event")
    assert event["headers"]["ce_id"] == f"{delivery_id}.{quarantined['id']}"
    assert run("quarantine", "list").stdout == ""
    (quarantined,) = json.loads(run("quarantine", "list", "--all", "--json").stdout)
    assert quarantined["released"] is True


def test_tail_from_a_time_reads_the_embedded_broker_from_then_on(run):
    send(run, "invoice.accepted")
    waiting.until(lambda: events(run, "--from", "beginning"), 30, "the first event")
    time.sleep(1.1)  # --from counts in seconds
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    second = send(run, "invoice.accepted")
    assert [each["headers"]["ce_id"] for each in waiting.until(lambda: events(run, "--from", then), 30, "the second")] == [second]
    assert len(events(run, "--from", "1h")) == 2


def test_without_a_daemon_commands_say_that_it_is_not_running(installation, embedded):
    for command in (["topics", "list"], ["audit"], ["tail"], ["quarantine", "list"], ["quarantine", "release", "0-0"]):
        done = installation.gatepost(*command, config=embedded)
        assert (done.returncode, done.stdout) == (69, "") and "gatepostd is not running" in done.stderr


def test_signals_do_not_interrupt_the_embedded_broker(installation):
    config = installation.config()
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    for _ in range(300):
        daemon.process.send_signal(signal.SIGHUP)
    assert "configuration reloaded" in send_sighup(daemon)
    assert daemon.admin("/healthz").status == 200
    daemon.accept()
