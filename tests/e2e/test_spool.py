"""Kafka is away, and the receiver has a spool: deliveries are answered 200 and published once when it is back."""

import contextlib
import os
import pathlib
import re
import tempfile
import time

import pytest

import waiting
from installation import Installation
from load import Load
from preload import FakeClock
from signing import SECRET, Delivery, event_body, now, unique
from tally import assert_exactly_once

ACK_TIMEOUT = 2  # seconds
AWAY_SECONDS = 60
BACK_SECONDS = 90


@pytest.fixture
def installation(own_broker, tmp_path):
    each = Installation(tmp_path, own_broker.bootstrap)
    yield each
    each.clean_up()


@pytest.fixture
def away(own_broker):
    """Stops Kafka; it runs again at the end of the test at the latest."""
    stopped = []

    def stop():
        stopped.append(own_broker.kill(1))

    def start():
        if stopped:
            stopped.clear()
            own_broker.start_node(1)
    stop.end = start
    yield stop
    start()


@pytest.fixture
def place():
    """A directory that other users may enter."""
    with tempfile.TemporaryDirectory() as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


def configure(installation, **receiver):
    config = installation.config()
    config["receiver"].update({"ack_timeout": f"{ACK_TIMEOUT}s", "spool": str(spool_of(installation))} | receiver)
    installation.create_topics(config)
    return config


def spool_of(installation):
    return installation.directory / "spool"


def segments(installation):
    return sorted(each.name for each in spool_of(installation).glob("*.spool"))


def deliver(daemon, n=1, **arguments):
    """Deliver until accepted. Returns the deliveries by their ids."""
    sent = [Delivery(**arguments) for _ in range(n)]
    for each in sent:
        waiting.until(lambda each=each: daemon.post(each).status == 200, BACK_SECONDS, "the answer 200")
    return {each.delivery_id: each for each in sent}


def wait_until_spooling(daemon):
    daemon.wait_for_log("deliveries go to the spool", AWAY_SECONDS)


def wait_until_drained(installation):
    waiting.until(lambda: not segments(installation), BACK_SECONDS,
                  lambda: f"the spool to be drained; left: {segments(installation)}")


def wait_until_published(installation):
    """Deliveries may go to the spool for a moment longer than Kafka is away."""
    wait_until_drained(installation)
    installation.kafka.wait_until_routed()


def test_deliveries_are_accepted_while_kafka_is_away_and_published_once(installation, away):
    daemon = installation.start(configure(installation))
    accepted = deliver(daemon, 3)
    away()
    accepted |= deliver(daemon, 20)
    wait_until_spooling(daemon)
    assert segments(installation)
    away.end()
    wait_until_drained(installation)
    daemon.wait_until_ready(BACK_SECONDS)
    accepted |= deliver(daemon, 3)
    daemon.wait_for_log("deliveries go to Kafka again")
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("exist", [True, False], ids=["in directories that exist", "in directories that it makes"])
def test_root_may_run_it_once_and_its_user_goes_on(place, installation, away, exist):
    """By hand, for example, to see what it says: what it makes belongs to the owner of the directory in which it is."""
    config = configure(installation)
    config.directory = place
    directories = [config.directory / each for each in ("spool", "state")]
    config["receiver"]["spool"], config.sections["router"] = str(directories[0]), {"state": str(directories[1])}
    config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
    for each in directories if exist else []:
        each.mkdir(0o700)
    for each in directories if exist else [place]:
        os.chown(each, 65534, 65534)
    daemon = installation.start(config)
    accepted = deliver(daemon, 3)
    installation.kafka.wait_until_routed()
    away()
    accepted |= deliver(daemon, 3)
    wait_until_spooling(daemon)
    daemon.stop()
    files = {each.name: each.stat() for directory in directories for each in directory.iterdir()}
    assert {"lock", "key"} < set(files) and {".run", ".spool"} <= {pathlib.Path(each).suffix for each in files}, files
    assert {(each.st_uid, each.st_mode & 0o777) for each in files.values()} == {(65534, 0o600)}, files
    away.end()
    daemon.wrapper = ["sh", "-ec", f'chown nobody {config.directory}/*.conf {config.directory}/secret; '
                      'exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"', "sh"]
    daemon.start()
    waiting.until(lambda: not list(directories[0].glob("*.spool")), BACK_SECONDS, "the spool to be drained")
    installation.kafka.wait_until_routed()
    assert "is deleted" not in daemon.log
    daemon.stop()
    assert_exactly_once(installation.kafka, accepted)


def test_load_through_an_outage_is_published_once_and_never_refused(installation, away):
    daemon = installation.start(configure(installation, threads="2"))
    load = Load(lambda: [daemon.address], threads=8, rate=200).start()
    waiting.until(lambda: len(load.accepted) > 200, BACK_SECONDS, "accepted deliveries")
    away()
    wait_until_spooling(daemon)
    n = len(load.accepted)
    waiting.until(lambda: len(load.accepted) > n + 500, BACK_SECONDS, "spooled deliveries")
    away.end()
    n = len(load.accepted)
    waiting.until(lambda: len(load.accepted) > n + 500, BACK_SECONDS, "accepted deliveries")
    daemon.wait_for_log("deliveries go to Kafka again", BACK_SECONDS)
    load.stop()
    wait_until_drained(installation)
    assert set(load.answers) == {200}, load.answers
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, load.accepted, load.sent)


def test_spool_survives_kill_and_restart_without_kafka(installation, away):
    config = configure(installation)
    daemon = installation.start(config)
    accepted = deliver(daemon, 3)
    away()
    accepted |= deliver(daemon, 10)
    wait_until_spooling(daemon)
    daemon.kill()
    daemon.start()
    accepted |= deliver(daemon, 10)  # Kafka has never answered this process
    daemon.stop()
    assert segments(installation)
    daemon.start()
    away.end()
    wait_until_drained(installation)
    daemon.wait_until_ready(BACK_SECONDS)
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted)


def test_verifying_router_accepts_what_was_spooled(installation, away):
    config = configure(installation)
    config["router"]["verify"] = "on"
    daemon = installation.start(config)
    accepted = deliver(daemon)
    away()
    accepted |= deliver(daemon, 5)
    wait_until_spooling(daemon)
    away.end()
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted)


def test_verifying_router_needs_only_the_secret_that_signed_what_was_spooled(installation, own_broker, plain_build):
    """A secret was added, the service changed to it, and the old one was removed while deliveries were in the spool for longer
    than their own signatures are valid."""
    installation.build = plain_build
    config = configure(installation)
    config["router"]["verify"] = "on"
    secrets = [config["source invoicing"]["secret_file"], config.secret_file("new", b"the new secret of the service")]
    config["source invoicing"]["secret_file"] = secrets
    config["kafka"]["bootstrap.servers"] = "127.0.0.1:9"
    daemon = installation.daemon(config)
    clock = FakeClock(daemon)
    clock.set(-7200)
    daemon.start()
    accepted = deliver(daemon, 3, timestamp=now() - 7200, secret=b"the new secret of the service")
    daemon.stop()
    clock.set(0)
    config["source invoicing"]["secret_file"] = secrets[1:]
    config["kafka"]["bootstrap.servers"] = installation.bootstrap
    daemon.start()
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted)


def test_delivery_that_is_spooled_and_sent_again_is_published_once(installation, away):
    daemon = installation.start(configure(installation))
    accepted = deliver(daemon)
    away()
    repeated = Delivery()
    for _ in range(3):
        waiting.until(lambda: daemon.post(repeated).status == 200, BACK_SECONDS, "the answer 200")
    wait_until_spooling(daemon)
    away.end()
    wait_until_drained(installation)
    assert daemon.post(repeated).status == 200
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted | {repeated.delivery_id: repeated})


def test_delivery_spooled_for_more_than_half_of_the_window_is_quarantined(installation, away):
    config = configure(installation)
    config["router"]["dedup_window"] = "12s"
    config["source invoicing"]["tolerance"] = "6s"
    daemon = installation.start(config)
    deliver(daemon)
    wait_until_published(installation)  # not spooled, because the first connection took long
    away()
    spooled = Delivery()
    waiting.until(lambda: daemon.post(spooled).status == 200, BACK_SECONDS, "the answer 200")
    wait_until_spooling(daemon)
    waiting.until(lambda: Delivery().timestamp - spooled.timestamp > 8, 30, "half of the window to pass")
    away.end()
    wait_until_published(installation)
    [record] = installation.kafka.read(installation.kafka.quarantine)
    assert record.header("gatepost-reason") == "spooled-too-long"
    assert record.header("gatepost-spooled") > record.header("gatepost-received")


def test_full_spool_is_answered_503_and_what_was_accepted_is_published(installation, away):
    daemon = installation.start(configure(installation, spool_max="1MiB"))
    accepted = deliver(daemon)
    away()
    accepted |= deliver(daemon, 2)
    wait_until_spooling(daemon)
    answers = []
    for _ in range(40):
        delivery = Delivery(body=event_body("invoice.accepted", pad="x" * 40000))
        answers.append(daemon.post(delivery).status)
        if answers[-1] == 200:
            accepted[delivery.delivery_id] = delivery
    assert set(answers) == {200, 503} and answers[-1] == 503, answers
    away.end()
    wait_until_drained(installation)
    accepted |= deliver(daemon)
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted)


def test_second_process_on_the_same_spool_is_refused(installation, own_broker):
    config = configure(installation)
    installation.start(config)
    other = installation.config()
    other["receiver"]["spool"] = config["receiver"]["spool"]
    second = installation.daemon(other).launch()
    assert second.take_exit_status() != 0
    assert "in use by another process" in second.log


def test_spool_that_a_receiver_writes_is_not_drained_by_another_process_even_without_the_lock(installation, own_broker):
    """Otherwise the segment would be deleted to which the receiver writes."""
    config = configure(installation)
    drains = config.write("drains.conf")
    config["kafka"]["bootstrap.servers"] = "127.0.0.1:9"
    daemon = installation.daemon(config).start()
    accepted = deliver(daemon, 3)
    (spool_of(installation) / "lock").unlink()
    done = installation.gatepost("spool", "drain", config=drains)
    assert done.returncode == 75 and "in use by another process" in done.stderr, done
    accepted |= deliver(daemon, 3)
    daemon.stop()
    done = installation.gatepost("spool", "drain", config=drains)
    assert done.returncode == 0 and "6 records appended" in done.stdout, done
    assert len(installation.kafka.read(installation.kafka.deliveries)) == len(accepted)


def large():
    return event_body("invoice.accepted", pad="x" * 40000)


def deliver_to_kafka(daemon):
    """Deliver until Kafka gets it: a lane that is not connected yet spools. Returns all deliveries."""
    accepted = {}

    def goes_to_kafka():
        written = daemon.metric("gatepost_spool_written_total")
        accepted.update(deliver(daemon))
        return daemon.metric("gatepost_spool_written_total") == written
    waiting.until(goes_to_kafka, BACK_SECONDS, "a delivery that is not spooled")
    return accepted


def test_delivery_that_kafka_refuses_sends_no_other_to_the_spool(installation, own_broker):
    """Kafka works: each delivery that is too large for the topic goes to the spool, and the next one to Kafka."""
    daemon = installation.start(configure(installation, ack_timeout="30s"))
    accepted = deliver_to_kafka(daemon)
    wait_until_drained(installation)
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "20000")
    written = daemon.metric("gatepost_spool_written_total")
    for _ in range(5):
        deliver(daemon, body=large())
        accepted |= deliver(daemon, 2)
    assert daemon.metric("gatepost_spool_written_total") == written + 5
    assert daemon.metric("gatepost_spool_since_timestamp_seconds") == 0
    assert daemon.admin("/readyz/receiver").body == b"receiver: ready\n"
    events = ("Kafka refuses a spooled delivery; its segment stays", "a segment of the spool stays and is tried again")
    for event in events:
        daemon.wait_for_log(f" {event} ", BACK_SECONDS)
    daemon.stop()
    for event in events:
        times = [line.split(".")[0] for line in daemon.log.splitlines() if f" {event} " in line]
        assert times and len(times) <= len(set(times)) + 1, times  # one a second, and the rest at the end
    assert "a producer has failed" not in daemon.log
    daemon.start()
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, accepted)


def test_deliveries_that_kafka_refuses_are_put_into_few_segments(installation, own_broker):
    """Each segment is tried again every ten minutes, and takes a file."""
    daemon = installation.start(configure(installation, ack_timeout="30s"))
    deliver_to_kafka(daemon)
    wait_until_drained(installation)
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "20000")
    deliver(daemon, body=large())
    daemon.wait_for_log(" a segment of the spool stays and is tried again ", BACK_SECONDS)
    begun, n = time.monotonic(), len(segments(installation))
    deliver(daemon, 100, body=large())
    assert len(segments(installation)) <= n + 2 + (time.monotonic() - begun) / 10
    wait_until_refused(daemon, 101)


def wait_until_refused(daemon, n):
    waiting.until(lambda: daemon.metric("gatepost_spool_refused_records") == n, BACK_SECONDS,
                  lambda: daemon.metric("gatepost_spool_refused_records"))


def test_renamed_spool_directory_is_answered_503_until_a_restart(installation, away):
    daemon = installation.start(configure(installation))
    accepted = deliver(daemon)
    away()
    accepted |= deliver(daemon, 2)
    wait_until_spooling(daemon)
    elsewhere = pathlib.Path(f"{spool_of(installation)}.old")
    spool_of(installation).rename(elsewhere)
    refused = Delivery()
    assert daemon.post(refused).status == 503  # though it is in the segment that was renamed
    daemon.wait_for_log("the directory was renamed, deleted or replaced")
    elsewhere.rename(spool_of(installation))
    accepted |= deliver(daemon)
    away.end()
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted, {refused.delivery_id: refused})


def test_damaged_segment_is_put_aside_and_the_rest_of_it_published(installation, away):
    config = configure(installation)
    daemon = installation.start(config)
    accepted = deliver(daemon)
    installation.kafka.wait_until_routed()  # a commit that has begun would wait for Kafka, and the stop with it
    away()
    spooled = deliver(daemon, 9)
    wait_until_spooling(daemon)
    daemon.stop()
    lost = list(spooled)[4]
    [path] = [each for each in spool_of(installation).glob("*.spool") if lost.encode() in each.read_bytes()]
    content = bytearray(path.read_bytes())
    at = content.index(lost.encode())
    content[at] ^= 1
    path.write_bytes(content)
    daemon.start()
    away.end()
    daemon.wait_for_log("a segment of the spool is damaged", BACK_SECONDS)
    wait_until_drained(installation)
    assert [each.name for each in spool_of(installation).glob("*.damaged")] == [f"{path.name}.damaged"]
    del spooled[lost]
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted | spooled)


def test_spool_is_private(installation, own_broker):
    old = os.umask(0)
    try:
        installation.start(configure(installation))
    finally:
        os.umask(old)
    assert spool_of(installation).stat().st_mode & 0o777 == 0o700
    assert (spool_of(installation) / "lock").stat().st_mode & 0o777 == 0o600


def test_stopped_broker_hangs_no_delivery_longer_than_the_ack_timeout_and_the_disk(installation, own_broker):
    daemon = installation.start(configure(installation))
    accepted = deliver(daemon)
    own_broker.pause(1)
    try:
        accepted |= deliver(daemon, 5)
        wait_until_spooling(daemon)
    finally:
        own_broker.resume(1)
    wait_until_published(installation)
    assert_exactly_once(installation.kafka, accepted)


def test_records_that_kafka_refuses_only_together_are_drained(installation, own_broker, away):
    """max.message.bytes limits batches."""
    daemon = installation.start(configure(installation))
    accepted = deliver(daemon)
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "20000")
    away()
    accepted |= deliver(daemon, 1)
    wait_until_spooling(daemon)
    for _ in range(60):
        accepted |= deliver(daemon, body=event_body("invoice.accepted", pad="x" * 4000))
    away.end()
    wait_until_published(installation)
    assert "Kafka refuses a spooled delivery" not in daemon.log
    assert_exactly_once(installation.kafka, accepted)


def test_segment_that_stays_is_not_kept_open(installation, away):
    daemon = installation.start(configure(installation))
    deliver(daemon)
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "20000")
    away()
    deliver(daemon, 2)
    wait_until_spooling(daemon)
    deliver(daemon, body=event_body("invoice.accepted", pad="x" * 40000))
    away.end()
    daemon.wait_for_log("a segment of the spool stays", BACK_SECONDS)
    waiting.until(lambda: not opened_segments(daemon), 30, lambda: f"closed segments: {opened_segments(daemon)}")
    assert segments(installation)


def opened_segments(daemon):
    opened = []
    for each in pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            opened.append(os.readlink(each))
    return [name for name in opened if name.endswith(".spool")]


def test_replay_of_a_delivery_that_may_be_in_the_spool_is_quarantined(installation, away):
    """It was answered 503, but is published when its segment is found again."""
    daemon = installation.start(configure(installation))
    deliver(daemon)
    away()
    deliver(daemon, 2)
    wait_until_spooling(daemon)
    elsewhere = pathlib.Path(f"{spool_of(installation)}.old")
    spool_of(installation).rename(elsewhere)
    refused = Delivery()
    assert daemon.post(refused).status == 503
    elsewhere.rename(spool_of(installation))
    replay = refused.but(delivery_id=unique())
    waiting.until(lambda: daemon.post(replay).status == 200, BACK_SECONDS, "the answer 200")
    away.end()
    wait_until_published(installation)
    [record] = installation.kafka.read(installation.kafka.quarantine)
    assert (record.delivery_id, record.header("gatepost-reason")) == (replay.delivery_id, "replayed-signature")


def test_number_that_leaves_no_room_for_later_segments_is_refused(installation, own_broker):
    """Otherwise a later segment would have a number that no reader takes for a segment."""
    config = configure(installation)
    spool_of(installation).mkdir(mode=0o700)
    (spool_of(installation) / "4000000000000000.spool").touch()
    daemon = installation.daemon(config).launch()
    assert daemon.take_exit_status() != 0
    assert "4000000000000000.spool" in daemon.log and "leaves no room" in daemon.log
