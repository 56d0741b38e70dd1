"""Notifications to the service manager, recorded by a socket in place of systemd's."""

import os
import pathlib
import re
import signal
import time

import pytest

import waiting
from installation import Installation
from load import Load
from manager import Manager
from signing import Delivery
from stalling import stalled_thread

WATCHDOG_SECONDS = 6
START_SECONDS = 15
SLACK = 0.3
QUIET_SECONDS = 3 * WATCHDOG_SECONDS  # long enough to notice a watchdog notification


@pytest.fixture
def manager(tmp_path):
    each = Manager(tmp_path / "notify")
    yield each
    each.close()


@pytest.fixture
def embedded(offline):
    """An installation that uses the embedded broker."""
    offline.bootstrap = "embedded"
    return offline


@pytest.fixture
def away(own_broker, tmp_path):
    """An installation whose Kafka may be suspended; it is resumed after the test at the latest."""
    each = Installation(tmp_path, own_broker.bootstrap)
    each.create_topics()
    yield each
    own_broker.resume(1)
    each.clean_up()


def start(installation, manager, config=None, **options):
    daemon = manager.watch(installation.daemon(config), **options)
    daemon.start()
    return daemon


# From the start to the end


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_notifications_are_sent_in_order(embedded, tmp_path, kind):
    address = tmp_path / "notify" if kind == "path" else f"@gatepost-{os.getpid()}"
    manager = Manager(address)
    daemon = start(embedded, manager)
    manager.wait_for("READY")
    daemon.accept()
    daemon.stop()
    messages = [message.text.splitlines() for message in manager.messages]
    names = [line.split("=")[0] for lines in messages for line in lines]
    assert names.count("READY") == 1 and names.count("STOPPING") == 1
    ready, stopping = names.index("READY"), names.index("STOPPING")
    assert set(names[:ready]) <= {"STATUS"}
    assert set(names[ready + 1:stopping]) == {"STATUS"}
    statuses = manager.having("STATUS")
    assert all(later["STATUS"] != earlier["STATUS"] for earlier, later in zip(statuses, statuses[1:]))
    assert set(names[stopping + 1:]) <= {"STATUS", "EXTEND_TIMEOUT_USEC"}
    assert {message.pid for message in manager.messages} == {daemon.process.pid}
    manager.close()


def test_nothing_is_notified_without_a_manager(embedded):
    daemon = embedded.start()
    daemon.accept()
    assert "watchdog" not in daemon.log and "service manager" not in daemon.log


@pytest.mark.parametrize("role, words", [("receiver", "receiver: ready"), ("router", "router: ready")])
def test_single_role_becomes_ready_and_reports_status(installation, manager, role, words):
    installation.create_topics()
    start(installation, manager, installation.config(role))
    manager.wait_for("READY")
    manager.wait_for_status(words)


def test_failed_start_is_reported(embedded, manager):
    config = embedded.config()
    config["receiver"]["listen"] = f"unix:{config.directory}/no/such/socket"
    daemon = manager.watch(embedded.daemon(config)).launch()
    assert daemon.take_exit_status() == os.EX_CONFIG
    assert "No such file or directory" in manager.wait_for("STATUS")["STATUS"]
    assert not manager.having("READY")


def test_start_failing_on_a_missing_topic_is_reported(installation, manager):
    daemon = manager.watch(installation.daemon()).launch()
    assert daemon.take_exit_status() == os.EX_CONFIG
    deliveries = f"{installation.prefix}.deliveries"
    assert f"cannot start: topic {deliveries}: the topic is missing" in manager.wait_for_status("cannot start")["STATUS"]
    assert not manager.having("READY")


# Kafka away


@pytest.mark.slow
def test_start_ends_although_kafka_is_away(away, own_broker, manager):
    """Else the boot of the machine does not end, and systemd passes on no reload."""
    own_broker.pause(1)
    begun = time.monotonic()
    daemon = start(away, manager)
    manager.wait_for_status("router: Kafka is not reachable: ")
    assert not manager.having("READY")
    ready = manager.wait_for("READY")
    assert START_SECONDS - SLACK < ready.time - begun < START_SECONDS + 5 and "router: Kafka is not reachable" in ready["STATUS"]
    assert daemon.post().status == 503
    daemon.process.send_signal(signal.SIGHUP)
    manager.wait_for("RELOADING", "1")
    manager.wait_for("READY", n=2)
    own_broker.resume(1)
    manager.wait_for_status("router: ready; receiver: ready")
    daemon.accept()
    assert not manager.having("EXTEND_TIMEOUT_USEC") and len(manager.having("READY")) == 2


@pytest.mark.slow
def test_kafka_outage_after_startup_is_reported_in_status_only(away, own_broker, manager):
    start(away, manager)
    manager.wait_for_status("router: ready; receiver: ready")
    own_broker.pause(1)
    manager.wait_for_status("Kafka is not reachable")
    own_broker.resume(1)
    manager.wait_for_status("router: ready; receiver: ready")
    assert len(manager.having("READY")) == 1


@pytest.mark.slow
def test_shutdown_timeout_is_extended_while_answers_are_pending(away, own_broker, manager):
    config = away.config("receiver")
    config["receiver"]["ack_timeout"] = "12s"
    daemon = start(away, manager, config)
    manager.wait_for("READY")
    own_broker.pause(1)
    load = Load(lambda: [daemon.address], deliveries=[Delivery()], threads=1, once=True).start()
    waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") > 0, 30, "the delivery to be in flight")
    asked = len(manager.having("EXTEND_TIMEOUT_USEC"))
    daemon.process.send_signal(signal.SIGTERM)
    manager.wait_for("STOPPING")
    manager.wait_for("EXTEND_TIMEOUT_USEC", n=asked + 1)
    daemon.wait_for_exit(0)
    load.wait(30)
    assert load.answers == {503: 1}


# Reload


def test_reload_sends_reloading_and_ready(embedded, manager):
    daemon = start(embedded, manager)
    manager.wait_for("READY")
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    daemon.process.send_signal(signal.SIGHUP)
    reloading = manager.wait_for("RELOADING", "1")
    manager.wait_for("READY", n=2)
    assert before <= int(reloading["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    order = [name for message in manager.messages for name in message.assignments if name in ("READY", "RELOADING")]
    assert order == ["READY", "RELOADING", "READY"]
    manager.wait_for_status("router: ready; receiver: ready")


def test_failed_reload_is_reported_until_one_succeeds(embedded, manager):
    daemon = start(embedded, manager)
    manager.wait_for("READY")
    daemon.config["source invoicing"]["tolerance"] = "nonsense"
    daemon.config.write(f"{daemon.name}.conf")
    daemon.process.send_signal(signal.SIGHUP)
    manager.wait_for("READY", n=2)
    manager.wait_for_status("the last reload failed")
    del daemon.config["source invoicing"]["tolerance"]
    daemon.config.write(f"{daemon.name}.conf")
    daemon.process.send_signal(signal.SIGHUP)
    manager.wait_for("READY", n=3)
    assert "failed" not in manager.wait_for_status("router: ready; receiver: ready")["STATUS"]


# The watchdog


def assert_no_watchdog_notification(manager, since):
    """No watchdog notification is sent after a thread has been stuck for longer than allowed."""
    time.sleep(max(0.0, since + QUIET_SECONDS - time.monotonic()))
    late = [message for message in manager.having("WATCHDOG") if message.time > since + WATCHDOG_SECONDS * 0.9]
    assert not late, [message.time - since for message in late]


@pytest.mark.slow
@pytest.mark.parametrize("thread, words", [("receiver-1", "receiver lane 1 is stuck"),
                                           ("receiver-2", "receiver lane 2 is stuck"),
                                           ("router", "the router is stuck")])
def test_watchdog_notifications_stop_while_a_thread_is_stalled(embedded, manager, thread, words):
    config = embedded.config()
    config["receiver"]["threads"] = 2
    daemon = start(embedded, manager, config, watchdog_seconds=WATCHDOG_SECONDS)
    manager.wait_for("READY")
    manager.wait_for("WATCHDOG", n=4)
    with stalled_thread(daemon.process.pid, thread):
        since = time.monotonic()
        daemon.wait_for_log(words)
        assert_no_watchdog_notification(manager, since)
        assert len(re.findall(rf'stalled; watchdog notifications suspended reason="{words}"', daemon.log)) == 1
        n = len(manager.having("WATCHDOG"))
    manager.wait_for("WATCHDOG", n=n + 1)
    daemon.wait_for_log("no longer stalled")
    daemon.accept()
    times = [message.time for message in manager.having("WATCHDOG")[:4]]
    gaps = sorted(later - earlier for earlier, later in zip(times, times[1:]))
    assert gaps[1] < WATCHDOG_SECONDS / 2 and gaps[2] < WATCHDOG_SECONDS, gaps  # one may be longer at startup


@pytest.mark.slow
def test_watchdog_notifications_continue_while_kafka_is_away(away, own_broker, manager):
    daemon = start(away, manager, watchdog_seconds=WATCHDOG_SECONDS)
    manager.wait_for_status("router: ready; receiver: ready")
    load = Load(lambda: [daemon.address], threads=4).start()
    waiting.until(lambda: len(load.accepted) > 50, 30, "load")
    own_broker.pause(1)  # during transactions
    n = len(manager.having("WATCHDOG"))
    begun = time.monotonic()
    manager.wait_for("WATCHDOG", n=n + 12)
    assert time.monotonic() - begun > WATCHDOG_SECONDS
    own_broker.resume(1)
    load.stop()
    assert "stalled" not in daemon.log
    assert "is stuck" not in daemon.log


def test_watchdog_of_another_process_is_ignored(embedded, manager):
    daemon = manager.watch(embedded.daemon(), watchdog_seconds=WATCHDOG_SECONDS)
    daemon.environment["WATCHDOG_PID"] = "1"
    daemon.start()
    manager.wait_for("READY")
    daemon.accept()
    assert not manager.having("WATCHDOG")


def test_threads_have_names(embedded):
    daemon = embedded.start()
    names = {(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir()}
    assert {"router", "receiver-1"} <= names
