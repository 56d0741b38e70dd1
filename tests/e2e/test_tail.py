"""gatepost tail: the published events as a consumer sees them."""

import base64
import datetime
import json
import re
import select
import signal
import subprocess
import threading
import time

import confluent_kafka
import pytest

import stalling
import waiting
from audit_side import by_hand
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD, Installation
from kafka_side import Record
from reloading import reload
from signing import Delivery, event_body

EX_USAGE, EX_UNAVAILABLE = 64, 69


@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config()
    shared.create_topics(config)
    return shared.start(config)


@pytest.fixture(scope="module")
def reader(shared, daemon):
    reader = shared.kafka.reader()
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def tail(shared, daemon):
    """Run `gatepost tail --json` over the existing records and return them."""
    def run(*arguments):
        done = shared.gatepost("tail", "--from", "beginning", "--until-end", "--json", *arguments, config=daemon.config)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]
    return run


@pytest.fixture
def publish(daemon, reader):
    """Publish an event. Returns its id."""
    def run(kind="invoice.accepted"):
        delivery = daemon.accept(Delivery(event_body(kind)))
        reader.wait_for(delivery.delivery_id)
        return delivery.delivery_id
    return run


def ids(records):
    return [record["headers"].get("ce_id") for record in records]


def test_tail_prints_what_a_consumer_sees(shared, daemon, reader, tail):
    delivery = daemon.accept(Delivery(event_body("invoice.amended", text="naïve ☃")))
    (record,) = reader.wait_for(delivery.delivery_id)
    (printed,) = [each for each in tail() if each["headers"].get("ce_id") == delivery.delivery_id]
    assert isinstance(printed.pop("timestamp"), (int, str))
    assert printed == {"topic": record.topic, "partition": record.partition, "offset": record.offset,
                       "key": "invoice.amended", "value": delivery.body.decode(),
                       "headers": {name: value.decode() for name, value in record.headers}}


def test_tail_shows_only_requested_kinds(shared, daemon, reader, tail):
    for kind in ("invoice.pending", "invoice.cancelled", "reporting_batch.overdue"):
        reader.wait_for(daemon.accept(Delivery(event_body(kind))).delivery_id)
    asked = tail("invoice.pending", "reporting_batch.overdue")
    assert {each["topic"].removeprefix(shared.prefix + ".") for each in asked} == {"invoice.pending", "reporting_batch"}


def test_tail_shows_quarantine(shared, daemon, reader, tail):
    delivery = daemon.accept(Delivery(b"\xff\0 no JSON"))
    reader.wait_for(delivery.delivery_id)
    records = tail("--quarantine")
    assert shared.kafka.quarantine in {each["topic"] for each in records}
    (printed,) = [each for each in records if each["key"] == delivery.delivery_id]
    assert printed["headers"]["gatepost-reason"] == "malformed-json"


def test_tail_prints_one_line_per_event(shared, daemon, reader):
    delivery = daemon.accept(Delivery(b'{"event":"invoice.received",\n\n"text":"\\u001b[31m"}'))
    (record,) = reader.wait_for(delivery.delivery_id)
    done = shared.gatepost("tail", "--from", "beginning", "--until-end", "invoice.received", config=daemon.config)
    assert done.returncode == 0
    records = [each for each in shared.kafka.read(record.topic)]
    assert len(done.stdout.splitlines()) == len(records)
    assert any(delivery.delivery_id in line or "invoice.received" in line for line in done.stdout.splitlines())


def test_tail_until_the_end_says_that_there_are_no_events(installation):
    config = installation.config()
    installation.create_topics(config)
    done = installation.gatepost("tail", "--from", "beginning", "--until-end", "invoice.cancelled", config=config)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "gatepost tail: no events; a delivery may take a second to become one\n"


def test_tail_follows_until_terminated(shared, daemon):
    config = daemon.config.write("tail.conf")
    following = subprocess.Popen([BUILD / "gatepost", "-c", config, "tail", "--from", "beginning", "--json",
                                  "held_unmapped_decision"], stdout=subprocess.PIPE, text=True)
    try:
        delivery = daemon.accept(Delivery(event_body("held_unmapped_decision")))
        for line in following.stdout:
            if json.loads(line)["headers"]["ce_id"] == delivery.delivery_id:
                break
        else:
            raise AssertionError("tail ended without the event")
    finally:
        following.terminate()
        following.wait(30)
    assert following.returncode in (0, -15)


# Start

def test_tail_from_a_time_shows_events_since_then(publish, tail):
    earlier, later = publish(), publish()
    (record,) = [each for each in tail() if each["headers"].get("ce_id") == later]
    shown = ids(tail("--from", record["timestamp"]))
    assert later in shown
    (record,) = [each for each in tail() if each["headers"].get("ce_id") == earlier]
    after = datetime.datetime.fromisoformat(record["timestamp"]) + datetime.timedelta(milliseconds=1)
    shown = ids(tail("--from", after.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"))
    assert earlier not in shown


def test_tail_from_an_age_shows_younger_events(publish, tail):
    published = publish()
    assert published in ids(tail("--from", "1h"))


def test_tail_from_the_end_shows_no_existing_events(publish, tail):
    publish()
    assert tail("--from", "end") == []


@pytest.mark.parametrize("place", ["start", "2h ago", "", "0s", "-1h", "2026-13-01T00:00:00Z", "9999-01-01T00:00:00Z"])
def test_invalid_start_exits_64(offline, place):
    done = offline.gatepost("tail", f"--from={place}")
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and "neither beginning nor end" in done.stderr


def test_units_of_an_age_are_named(offline):
    assert "the units are ms, s, min, h, d" in offline.gatepost("tail", "--from", "10m").stderr


# Kinds

@pytest.mark.parametrize("asked, shown", [
    (["invoice.*"], {"invoice.amended", "invoice.pending"}), (["*"], {"invoice.amended", "invoice.pending", "reporting_batch.x"}),
    (["reporting_batch.*"], {"reporting_batch.x"}), (["reporting_batch.y"], set()),
    (["invoice.pending", "reporting_batch.*"], {"invoice.pending", "reporting_batch.x"})])
def test_kinds_are_selected_by_pattern(publish, tail, asked, shown):
    published = {publish(kind): kind for kind in ("invoice.amended", "invoice.pending", "reporting_batch.x")}
    assert {published[each] for each in ids(tail(*asked)) if each in published} == shown


def test_kinds_are_those_without_the_prefix_of_ce_type(installation):
    """Whatever prefix the source has, or had when they were published."""
    config = installation.config()
    installation.create_topics(config)
    daemon = installation.start(config)
    accepted = [daemon.accept(Delivery(event_body("invoice.accepted"))).delivery_id]
    installation.kafka.wait_until_routed()
    config["source invoicing"]["ce_type_prefix"] = "com.example."
    reload(daemon)
    accepted += [daemon.accept(Delivery(event_body(kind))).delivery_id for kind in ("invoice.accepted", "invoice.rejected")]
    installation.kafka.wait_until_routed()

    def shown(*kinds):
        done = installation.gatepost("tail", "--from", "beginning", "--until-end", "--json", *kinds, config=config)
        assert done.returncode == 0, done.stderr
        return ids([json.loads(line) for line in done.stdout.splitlines()])
    assert sorted(shown()) == sorted(accepted)
    assert sorted(shown("invoice.accepted")) == sorted(accepted[:2])
    assert sorted(shown("invoice.*")) == sorted(accepted)


@pytest.mark.parametrize("asked", ["invoice.accpeted", "inv*", "invoice", "*.accepted", ".*", ""])
def test_kind_without_a_topic_exits_64(offline, asked):
    done = offline.gatepost("tail", "invoice.accepted", asked)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and f"of the kind {asked};" in done.stderr


# Output

def test_json_is_one_object_per_line(shared, daemon, publish):
    published = publish()
    done = shared.gatepost("tail", "--from", "beginning", "--until-end", "--json", config=daemon.config)
    read = subprocess.run(["jq", "-er", ".headers.ce_id // .key"], input=done.stdout, capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "")
    assert published in read.stdout.splitlines() and len(read.stdout.splitlines()) == len(done.stdout.splitlines())


# Hostile content: records of anyone who may write to a topic

HOSTILE = b"\x1b[31m \x9b31m \xc2\x9b31m \x7f \xff\xfe \x07 na\xc3\xafve"


def control_characters(text):
    """Characters that a terminal interprets, in either encoding, except line ends."""
    return re.findall(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\xc2-\xf4\x80-\xbf])[\x80-\xbf]", text)


def test_control_characters_in_records_are_escaped(shared, daemon):
    topic = f"{shared.prefix}.held_unmapped_decision"
    producer = confluent_kafka.Producer({"bootstrap.servers": shared.bootstrap, "log_level": 3})
    name = "name \x1b[31m \x9b31m \x7f"
    producer.produce(topic, HOSTILE, HOSTILE, headers=[(name, HOSTILE), ("ce_type", b"held_unmapped_decision")])
    producer.produce(topic, "text \x9b31m \x7f", "key", headers=[("text", "\x9b31m \x7f")])
    assert producer.flush(60) == 0
    for options in ([], ["--headers"], ["--json"]):
        done = subprocess.run([BUILD / "gatepost", "-c", daemon.config.write("hostile.conf"), "tail", "--from", "beginning",
                               "--until-end", "held_unmapped_decision", *options], capture_output=True, timeout=60, env=ENVIRONMENT)
        assert (done.returncode, done.stderr) == (0, b"") and b"31m" in done.stdout
        assert control_characters(done.stdout) == [], done.stdout
        if options == ["--json"]:
            records = [json.loads(line) for line in done.stdout.splitlines()]
            assert "text \x9b31m \x7f" in [each.get("value") for each in records]
            assert base64.b64encode(HOSTILE).decode() in [each.get("valueBase64") for each in records]
        else:
            assert "naïve" in done.stdout.decode()


@pytest.fixture
def following(installation):
    """A `tail --json` that follows the test's own installation."""
    installation.create_topics(partitions=1)
    topic = f"{installation.prefix}.invoice.accepted"
    process = subprocess.Popen([BUILD / "gatepost", "-c", installation.config().write(), "tail", "--from", "beginning", "--json",
                                "invoice.accepted"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    process.topic, process.kafka = topic, installation.kafka
    process.producer = confluent_kafka.Producer({"bootstrap.servers": installation.bootstrap, "log_level": 3})
    yield process
    process.kill()
    process.communicate()


def test_tail_follows_added_partitions(following):
    kafka = following.kafka
    following.producer.produce(following.topic, b"first", partition=0)
    following.producer.flush(30)
    assert json.loads(following.stdout.readline())["value"] == "first"
    kafka.admin.create_partitions([confluent_kafka.admin.NewPartitions(following.topic, 2)])[following.topic].result(30)
    waiting.until(lambda: kafka.partitions(following.topic) == 2, 30, "the partition")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 3})
    producer.produce(following.topic, b"second", partition=1)
    assert producer.flush(30) == 0
    assert select.select([following.stdout], [], [], 40)[0], "the event was not shown"
    printed = json.loads(following.stdout.readline())
    assert (printed["partition"], printed["value"]) == (1, "second")


def test_tail_reports_records_deleted_before_they_were_shown(following):
    """As by retention while its output is blocked or the process is stopped."""
    kafka = following.kafka
    following.producer.produce(following.topic, b"first", partition=0)
    following.producer.flush(30)
    assert json.loads(following.stdout.readline())["value"] == "first"
    stalling.stop(following.pid)
    for _ in range(5):  # the first may be in a response already sent
        following.producer.produce(following.topic, b"later", partition=0)
        following.producer.flush(30)
    for future in kafka.admin.delete_records([confluent_kafka.TopicPartition(following.topic, 0, 5)]).values():
        future.result(30)
    following.send_signal(signal.SIGCONT)
    offsets = [0]
    while offsets[-1] < 5:
        offsets.append(json.loads(following.stdout.readline())["offset"])
    assert len(offsets) < 6
    following.send_signal(signal.SIGINT)
    _, stderr = following.communicate(timeout=30)
    assert f"{following.topic}, partition 0: records were deleted before they were shown\n" in stderr


@pytest.mark.slow
def test_tail_until_end_fails_when_kafka_is_silent(own_broker, tmp_path):
    installation = Installation(tmp_path, own_broker.bootstrap)
    installation.create_topics(partitions=1)
    topic = f"{installation.prefix}.invoice.accepted"
    producer = confluent_kafka.Producer({"bootstrap.servers": installation.bootstrap, "log_level": 3})
    for _ in range(200):
        producer.produce(topic, b"x" * 500_000)
        producer.flush(30)
    process = subprocess.Popen([BUILD / "gatepost", "-c", installation.config().write(), "tail", "--from", "beginning",
                                "--until-end", "invoice.accepted"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stdout.read(1)
    own_broker.pause(1)  # it has not read everything, because its output is not read
    try:
        _, stderr = process.communicate(timeout=120)
    finally:
        own_broker.resume(1)
        process.kill()
    assert process.returncode == EX_UNAVAILABLE and b"has not answered for a minute" in stderr
    installation.clean_up()


def test_tail_until_end_stops_although_records_keep_arriving(installation):
    """It shows the records that exist when it starts. Its consumer never reaches an end while records keep arriving."""
    installation.create_topics(partitions=1)
    topic = f"{installation.prefix}.invoice.accepted"
    producer = confluent_kafka.Producer({"bootstrap.servers": installation.bootstrap, "log_level": 3, "linger.ms": 0})
    producer.produce(topic, b"first")
    assert producer.flush(60) == 0
    ended = threading.Event()

    def keep_appending():
        while not ended.wait(0.02):
            producer.produce(topic, b"later")
            producer.poll(0)
    thread = threading.Thread(target=keep_appending)
    thread.start()
    try:
        done = installation.gatepost("tail", "--from", "beginning", "--until-end", "--json", "invoice.accepted")
    finally:
        ended.set()
        thread.join()
    values = [json.loads(line)["value"] for line in done.stdout.splitlines()]
    assert done.returncode == 0 and values[0] == "first" and len(values) < 500, done.stderr


@pytest.mark.slow
def test_added_partition_does_not_end_tail_early(installation):
    installation.create_topics(partitions=1)
    topic = f"{installation.prefix}.invoice.accepted"
    producer = confluent_kafka.Producer({"bootstrap.servers": installation.bootstrap, "log_level": 3})
    for i in range(2000):
        producer.produce(topic, str(i).ljust(20000).encode())
        producer.poll(0)
    assert producer.flush(60) == 0
    process = subprocess.Popen([BUILD / "gatepost", "-c", installation.config().write(), "tail", "--from", "beginning", "--json",
                                "--until-end", "invoice.accepted"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=ENVIRONMENT)
    assert process.stdout.readline()
    installation.kafka.admin.create_partitions([confluent_kafka.admin.NewPartitions(topic, 2)])[topic].result(30)
    n, until = 1, time.monotonic() + 15  # it checks for new partitions every ten seconds
    while n < 1000 and time.monotonic() < until:
        n += len(process.stdout.readline()) > 0
        time.sleep(0.015)
    rest, stderr = process.communicate(timeout=60)
    assert process.returncode == 0 and n + len(rest.splitlines()) == 2000, stderr


def test_outdated_end_is_not_reported_as_an_open_transaction(installation):
    """The reader of tail's output is slow: when it reaches the end, more records have been appended."""
    installation.create_topics(partitions=1)
    topic = f"{installation.prefix}.invoice.accepted"
    producer = confluent_kafka.Producer({"bootstrap.servers": installation.bootstrap, "log_level": 3})

    def append(n, first):
        for i in range(first, first + n):
            producer.produce(topic, str(i).ljust(100).encode())
            producer.poll(0)
        assert producer.flush(60) == 0
    append(5000, 0)
    process = subprocess.Popen([BUILD / "gatepost", "-c", installation.config().write(), "tail", "--from", "beginning", "--json",
                                "invoice.accepted"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert json.loads(process.stdout.readline())["value"].strip() == "0"
        time.sleep(2)  # its consumer reaches the end, which is not visible from outside, and waits for half a second at a time
        append(300, 5000)
        while json.loads(process.stdout.readline())["value"].strip() != "5299":
            pass
    finally:
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert stderr == "", stderr


def test_open_transaction_hiding_records_is_reported(installation):
    """As left by a killed router: until Kafka ends it, consumers do not get the records behind it."""
    config = installation.config()
    installation.create_topics(config)
    delivery = installation.start(config).accept()
    installation.kafka.wait_until_routed()
    topic = f"{installation.prefix}.invoice.accepted"

    def tail():
        done = installation.gatepost("tail", "--from", "beginning", "--until-end", "--headers", config=config)
        assert done.returncode == 0 and delivery.delivery_id in done.stdout, done.stdout + done.stderr
        return done.stderr
    left = by_hand(installation.kafka, [Record(topic, 0, 0, b"key", b"{}", [])], end=None)
    assert "a transaction is open" in tail()
    left.abort_transaction()
    assert tail() == ""


def test_open_transaction_behind_a_record_is_reported(installation):
    """The commit marker of another router's transaction follows the start of the open one."""
    config = installation.config()
    installation.create_topics(config)
    topic = f"{installation.prefix}.invoice.accepted"
    ended, left = (by_hand(installation.kafka, [Record(topic, 0, 0, b"key", b"{}", [])], end=None, name=name)
                   for name in ("ended", "left"))
    ended.commit_transaction()

    def tail():
        done = installation.gatepost("tail", "--from", "beginning", "--until-end", "--json", config=config)
        assert done.returncode == 0, done.stderr
        return done.stdout.count('"offset"'), done.stderr
    shown, errors = tail()
    assert shown == 1 and "a transaction is open" in errors, errors
    left.commit_transaction()  # its end may not be in the log yet
    waiting.until(lambda: tail() == (2, ""), 20, tail)
