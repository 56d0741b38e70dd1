"""gatepost quarantine: list, show, and release records once."""

import json
import os
import pathlib
import pty
import re
import subprocess
import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

import waiting
from accounts import Accounts
from cluster import Cluster
from daemon import ENVIRONMENT, SANITIZER_EXIT, assert_no_sanitizer_report
from installation import BUILD, Installation
from kafka_side import murmur2_partition
from quarantine_side import Quarantine
from signing import Delivery, event_body, unique

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_NOPERM = 64, 65, 66, 69, 77
TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "vendor=1"}
OF_THE_DELIVERY = ["gatepost-source", "gatepost-webhook-id", "gatepost-timestamp", "gatepost-signature",
                   "gatepost-received", "gatepost-request-id", "gatepost-instance"]


@pytest.fixture(scope="module")
def shared_quarantine(shared):
    config = shared.config()
    shared.create_topics(config)
    return Quarantine(shared, shared.start(config))


@pytest.fixture
def quarantine(installation):
    """The test's own installation, whose configuration it may change."""
    config = installation.config()
    installation.create_topics(config)
    return Quarantine(installation, installation.start(config))


def test_list_shows_id_reason_time_and_origin(shared_quarantine):
    delivery = Delivery(event_body("no.such_kind"))
    started = time.time()
    id = shared_quarantine.send(delivery)
    (record,) = shared_quarantine.quarantined(delivery.delivery_id)
    (origin,) = shared_quarantine.deliveries(delivery.delivery_id)
    entry = shared_quarantine.entry(delivery.delivery_id)
    assert id == f"{record.partition}-{record.offset}"
    stamp = time.strptime(entry.pop("timestamp")[:19], "%Y-%m-%dT%H:%M:%S")
    assert started - 5 <= time.mktime(stamp) - time.timezone <= time.time() + 5
    assert entry == {"id": id, "reason": "unknown-kind", "detail": "no topic for the kind no.such_kind",
                     "source": "invoicing", "deliveryId": delivery.delivery_id,
                     "delivery": {"partition": origin.partition, "offset": origin.offset}, "released": False,
                     "releasedAt": None}
    lines = shared_quarantine.run("list").stdout.splitlines()
    assert lines[0].split() == ["ID", "QUARANTINED", "REASON", "DELIVERY-ID", "DETAIL"]
    (line,) = [line for line in lines if delivery.delivery_id in line]
    assert line.split()[:1] + line.split()[2:4] == [id, "unknown-kind", delivery.delivery_id]
    assert line.endswith("no topic for the kind no.such_kind")


@pytest.mark.slow
def test_list_is_sorted_by_time_and_filtered(shared_quarantine):
    malformed = Delivery(b"no JSON")
    shared_quarantine.send(malformed)
    shared_quarantine.send(Delivery(event_body("no.such_kind")))
    everything = shared_quarantine.list()
    times = [each["timestamp"] for each in everything]
    assert times == sorted(times) and len(everything) >= 2
    narrowed = shared_quarantine.list("--reason", "malformed-json")
    assert malformed.delivery_id in [each["deliveryId"] for each in narrowed]
    assert {each["reason"] for each in narrowed} == {"malformed-json"}
    time.sleep(0.002)  # the next record's timestamp is a later one
    last = Delivery(event_body("no.such_kind"))
    shared_quarantine.send(last)
    since = shared_quarantine.entry(last.delivery_id)["timestamp"]
    assert [each["deliveryId"] for each in shared_quarantine.list("--since", since)] == [last.delivery_id]
    assert len(shared_quarantine.list("--since", "1h")) == len(everything) + 1
    assert shared_quarantine.list("--since", "1h", "--reason", "missing-kind") == []
    assert shared_quarantine.run("list", "--reason", "missing-kind").stdout == ""


def test_list_escapes_control_characters(shared_quarantine):
    """Control characters from a sender must not reach the terminal."""
    delivery = Delivery(json.dumps({"event": "no\x1b[2J\x07\nkind"}).encode())
    shared_quarantine.send(delivery)
    text = shared_quarantine.run("list").stdout
    assert "\\x1b[2J\\x07" in text and "\x1b" not in text and "\x07" not in text


def test_show_prints_the_whole_record(shared_quarantine):
    delivery = Delivery(event_body("no.such_kind", text="Straße ☃"))
    id = shared_quarantine.send(delivery)
    text = shared_quarantine.run("show", id).stdout
    entry = shared_quarantine.entry(delivery.delivery_id)
    place = entry["delivery"]
    for what in (id, "unknown-kind", "no topic for the kind no.such_kind", entry["timestamp"],
                 f"{place['partition']}/{place['offset']} of {shared_quarantine.kafka.deliveries}",
                 f"gatepost-signature: {delivery.signature}", f"gatepost-webhook-id: {delivery.webhook_id}",
                 f"body, {len(delivery.body)} bytes\n{delivery.body.decode()}\n"):
        assert what in text, what
    shown = shared_quarantine.json("show", id)
    assert {**entry, "headers": shown["headers"], "value": delivery.body.decode()} == shown
    assert shown["headers"]["gatepost-reason"] == "unknown-kind"


@pytest.mark.parametrize("body, line", [
    (b"\xff\x00\x1b[31m not text", r"\xff\x00\x1b[31m not text"), (b"{\"\xc2\x9b31m\"}", r'{"\xc2\x9b31m"}'), (b"", "body, 0 bytes")])
def test_binary_body_is_shown_escaped_or_raw(shared_quarantine, body, line):
    id = shared_quarantine.send(Delivery(body))
    text = shared_quarantine.run("show", id).stdout
    assert line in text.splitlines() and "\x1b" not in text
    config = shared_quarantine.daemon.config.write("raw.conf")
    done = subprocess.run([BUILD / "gatepost", "-c", config, "quarantine", "show", "--raw", id], env=ENVIRONMENT,
                          capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, body), done.stderr


def test_release_after_configuring_the_kind_publishes_the_same_bytes(quarantine):
    body = event_body("order.created", text="naïve ☃ \\u001b")
    delivery = Delivery(body)
    id = quarantine.send(delivery)
    outcome, = quarantine.release(id, "--dry-run")
    assert (outcome["outcome"], outcome["why"], outcome["topic"]) == (
        "would-be-released", "the router would quarantine it again as unknown-kind", None)
    assert quarantine.published(delivery.delivery_id) == []
    quarantine.map_kinds(order_created=f"{quarantine.kafka.prefix}.invoice.received")
    assert quarantine.release(id, "--dry-run")[0]["topic"] == f"{quarantine.kafka.prefix}.invoice.received"
    assert quarantine.release(id)[0]["outcome"] == "released"
    (event,) = quarantine.published(delivery.delivery_id)
    assert event.topic == f"{quarantine.kafka.prefix}.invoice.received"
    assert event.header("ce_id") == f"{delivery.delivery_id}.{id}"
    assert (event.value, event.key, event.header("ce_type")) == (body, b"order.created", "order.created")
    entry = quarantine.entry(delivery.delivery_id)
    assert entry["released"] is True
    assert len(quarantine.quarantined(delivery.delivery_id)) == 1


def test_released_record_is_identical_to_the_delivery(shared_quarantine):
    """Value, key, partition and headers, except the headers about the quarantine and the release."""
    kafka = shared_quarantine.kafka
    delivery = Delivery(event_body("no.such_kind"))
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2", "log_level": 3})
    headers = [(name, unique().encode()) for name in OF_THE_DELIVERY[1:]]
    headers = [("gatepost-source", b"invoicing"), *headers, *((name, value.encode()) for name, value in TRACE.items()),
               ("gatepost-replay-of", b"another-id"), ("something-else", None)]
    producer.produce(kafka.deliveries, delivery.body, delivery.delivery_id, headers=headers)
    assert producer.flush(30) == 0
    kafka.wait_until_routed()
    entry = shared_quarantine.entry(delivery.delivery_id)
    assert entry["reason"] == "replayed-signature"
    shared_quarantine.release(entry["id"])
    original, released = shared_quarantine.deliveries(delivery.delivery_id)
    assert (released.value, released.key) == (original.value, original.key)
    assert released.partition == original.partition == murmur2_partition(original.key, kafka.partitions(kafka.deliveries))
    *kept, (name, signature) = released.headers
    assert kept == [each for each in headers if each[0] != "gatepost-replay-of"] + [
        ("gatepost-released", entry["id"].encode())]
    assert name == "gatepost-release-signature" and re.fullmatch(rb"\d{10} sha256=[0-9a-f]{64}", signature)


@pytest.mark.slow
def test_release_of_a_still_invalid_record_is_quarantined_under_a_new_id(shared_quarantine):
    delivery = Delivery(b'{"event": 7}')
    id = shared_quarantine.send(delivery)
    text = shared_quarantine.run("release", id)
    assert text.stdout == f"{id} released, was invalid-field, delivery-id {delivery.delivery_id}\n"
    assert text.stderr == "1 released, 0 released before, 0 not released\n"
    shared_quarantine.kafka.wait_until_routed()
    old, new = [each for each in shared_quarantine.list() if each["deliveryId"] == delivery.delivery_id]
    assert old["id"] == id and old["released"] is True and new["id"] != id
    assert new["released"] is False and new["reason"] == "invalid-field"
    assert f"gatepost-released: {id}\n" in shared_quarantine.run("show", new["id"]).stdout
    # The new record can be released in turn, and names its origin.
    shared_quarantine.release(new["id"])
    records = shared_quarantine.quarantined(delivery.delivery_id)
    assert [record.header("gatepost-released") for record in records] == [None, id, new["id"]]
    assert all(record.value == delivery.body for record in records)


def test_conflicting_body_is_published_as_a_separate_event(shared_quarantine):
    first = shared_quarantine.daemon.accept(Delivery())
    second = first.but(body=event_body("invoice.rejected"))
    id = shared_quarantine.send(second)
    assert shared_quarantine.entry(first.delivery_id)["reason"] == "conflicting-body"
    shared_quarantine.release(id)
    events = shared_quarantine.published(first.delivery_id)
    assert {event.header("ce_id"): event.value for event in events} == {
        first.delivery_id: first.body, f"{first.delivery_id}.{id}": second.body}


def test_replayed_signature_is_published_when_released(shared_quarantine):
    first = shared_quarantine.daemon.accept(Delivery())
    again = first.but(delivery_id=unique())
    id = shared_quarantine.send(again)
    assert shared_quarantine.entry(again.delivery_id)["reason"] == "replayed-signature"
    shared_quarantine.release(id)
    (event,) = shared_quarantine.published(again.delivery_id)
    assert event.value == first.body
    assert len(shared_quarantine.quarantined(again.delivery_id)) == 1


@pytest.mark.slow
def test_replay_does_not_claim_the_id_of_the_genuine_delivery(installation):
    """Also if the router is restarted in between and has only its restored dedup table."""
    installation.create_topics()
    receiver = installation.start(installation.config("receiver"))
    router = installation.start(installation.config("router"))
    kafka, quarantine = installation.kafka, Quarantine(installation, router)
    captured, genuine = receiver.accept(), Delivery()
    replay = captured.but(delivery_id=genuine.delivery_id)
    for delivery in (replay, replay):
        receiver.accept(delivery)
    kafka.wait_until_routed()
    router.stop()
    router.restart()
    for delivery in (replay, genuine):
        receiver.accept(delivery)
    kafka.wait_until_routed()
    router.kill()
    router.start().wait_until_ready()
    for delivery in (genuine.signed_again(), replay, genuine.but(body=event_body())):
        receiver.accept(delivery)
    kafka.wait_until_routed()
    assert [event.value for event in quarantine.published(genuine.delivery_id)] == [genuine.body]
    assert sorted((record.header("gatepost-reason"), record.value == captured.body)
                  for record in quarantine.quarantined(genuine.delivery_id)) == [
        ("conflicting-body", False), ("replayed-signature", True)]
    done = installation.gatepost("audit", config=router.config)
    assert done.returncode == 0, done.stdout + done.stderr


def test_concurrent_releases_of_a_record_publish_it_once(shared_quarantine):
    """Each command may check before the others have appended: then only the router can recognise repeats."""
    kafka = shared_quarantine.kafka
    first = shared_quarantine.daemon.accept(Delivery())
    again = [first.but(delivery_id=unique()) for _ in range(20)]
    for delivery in again:
        shared_quarantine.daemon.accept(delivery)
    kafka.wait_until_routed()
    wanted = {delivery.delivery_id for delivery in again}
    ids = [each["id"] for each in shared_quarantine.list() if each["deliveryId"] in wanted]
    assert len(ids) == len(again)
    config = shared_quarantine.daemon.config.write("many.conf")
    people = [subprocess.Popen([BUILD / "gatepost", "-c", config, "quarantine", "release", *ids], env=ENVIRONMENT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for person in people:
        _, stderr = person.communicate(timeout=120)
        assert_no_sanitizer_report(stderr)
        assert person.returncode == 0, stderr
    # And again, by a producer that does not check first.
    released = [record for record in kafka.read(kafka.deliveries) if record.header("gatepost-released")]
    copies = [record for record in released if record.delivery_id in wanted]
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2", "log_level": 3})
    for record in copies:
        producer.produce(record.topic, record.value, record.key, headers=record.headers)
    assert producer.flush(60) == 0
    kafka.wait_until_routed()
    events = [record.delivery_id for record in shared_quarantine.events() if record.delivery_id in wanted]
    assert sorted(events) == sorted(wanted)
    done = shared_quarantine.installation.gatepost("audit", config=shared_quarantine.daemon.config)
    assert done.returncode == 0, done.stdout + done.stderr


def on_terminals(config, *arguments, stdout):
    """Run the command line with stderr, and stdout unless redirected, on a terminal. Returns the terminal's output and the peak

    memory in KiB. The peak is read while it runs, because wait4 includes the memory of this process at the fork."""
    terminal, own = pty.openpty()
    process = subprocess.Popen([BUILD / "gatepost", "-c", config, *arguments], stdout=stdout or own, stderr=own,
                               env=ENVIRONMENT | {"ASAN_OPTIONS": "quarantine_size_mb=1:" + SANITIZER_EXIT})
    os.close(own)
    text, peak = b"", 0
    while piece := read_terminal(terminal):
        text += piece
        peak = max(peak, peak_memory(process.pid))
    os.close(terminal)
    status = process.wait(60)
    assert_no_sanitizer_report(text.decode())
    assert status == 0, text.decode()
    return text.decode().replace("\r\n", "\n"), peak


def peak_memory(pid):
    """In KiB; 0 when the process has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def read_terminal(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # its end
        return b""


@pytest.mark.slow
def test_bulk_release_says_what_it_reads_and_uses_little_memory(quarantine, tmp_path):
    """Released by two commands at the same time, after a dry run."""
    n, size = 4000, 60000
    kafka, config = quarantine.kafka, quarantine.daemon.config
    sent = [Delivery(event_body("bulk.kind", text="x" * size)) for _ in range(n)]
    kafka.append(sent)
    kafka.wait_until_routed()
    quarantine.map_kinds(bulk_kind=f"{kafka.prefix}.invoice.received")
    command = ["quarantine", "release", "--reason", "unknown-kind"]
    seen, memory = on_terminals(config.write("bulk.conf"), *command, "--dry-run", stdout=None)
    announced, *whole = seen.splitlines()
    assert re.fullmatch(r"reading quarantine: about \d+ records", announced)
    assert len([line for line in whole if re.fullmatch(r"\d+-\d+ would-be-released to \S+, was unknown-kind, delivery-id \S+", line)]) == n
    assert whole[n:] == [f"{n} would be released, 0 released before, 0 not released"]

    other = subprocess.Popen([BUILD / "gatepost", "-c", config.write("other.conf"), *command], env=ENVIRONMENT,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with open(tmp_path / "output", "w") as output:
        seen, memory = on_terminals(config.write("bulk.conf"), *command, stdout=output)
    others, errors = other.communicate(timeout=120)
    assert_no_sanitizer_report(errors)
    assert other.returncode == 0, errors
    lines = (tmp_path / "output").read_text().splitlines()
    for each in (lines, others.splitlines()):
        assert len({line.split()[0] for line in each if re.match(r"\d+-\d+ (released|released-before), ", line)}) == n
    assert re.fullmatch(r"reading quarantine: about \d+ records\n\d+ released, \d+ released before, 0 not released\n", seen), seen[-300:]
    assert memory < 200 << 10, f"{memory} KiB for {n * size >> 20} MiB"
    kafka.wait_until_routed(120)
    assert sorted(record.delivery_id for record in quarantine.events()) == sorted(each.delivery_id for each in sent)


def test_release_is_published_once_when_the_router_is_killed(quarantine):
    first = quarantine.daemon.accept(Delivery())
    again = [first.but(delivery_id=unique()) for _ in range(30)]
    for delivery in again:
        quarantine.daemon.accept(delivery)
    quarantine.kafka.wait_until_routed()
    quarantine.daemon.kill()
    outcomes = quarantine.json("release", "--reason", "replayed-signature")
    assert [each["outcome"] for each in outcomes] == ["released"] * len(again)
    quarantine.daemon.config["router"]["max_batch"] = "1"
    for n_routed in (1, 5, 10):
        quarantine.daemon.start()
        waiting.until(lambda: len(quarantine.events()) > n_routed, 60, f"more than {n_routed} events")
        quarantine.daemon.kill()
    outcomes = quarantine.json("release", "--reason", "replayed-signature")
    assert [each["outcome"] for each in outcomes] == ["released-before"] * len(again)
    quarantine.daemon.restart()
    quarantine.kafka.wait_until_routed()
    events = [record.delivery_id for record in quarantine.events()]
    assert sorted(events) == sorted([first.delivery_id] + [delivery.delivery_id for delivery in again])
    done = quarantine.installation.gatepost("audit", config=quarantine.daemon.config)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_release_by_reason_releases_only_matching_records(quarantine):
    malformed = [Delivery(b"no JSON %d" % number) for number in range(5)]
    unknown = [Delivery(event_body("order.created")) for _ in range(5)]
    for delivery in malformed + unknown:
        quarantine.daemon.accept(delivery)
    quarantine.kafka.wait_until_routed()
    ids = {each["id"] for each in quarantine.list("--reason", "unknown-kind")}
    assert len(ids) == 5
    quarantine.map_kinds(order_created=f"{quarantine.kafka.prefix}.invoice.pending")
    dry = quarantine.release("--reason", "unknown-kind", "--dry-run")
    assert {each["id"] for each in dry} == ids
    assert {(each["outcome"], each["topic"]) for each in dry} == {
        ("would-be-released", f"{quarantine.kafka.prefix}.invoice.pending")}
    assert quarantine.kafka.read(f"{quarantine.kafka.prefix}.invoice.pending") == []
    done = quarantine.run("release", "--reason", "unknown-kind", "--since", "1h")
    assert sorted(line.split()[0] for line in done.stdout.splitlines()) == sorted(ids)
    quarantine.kafka.wait_until_routed()
    events = quarantine.kafka.read(f"{quarantine.kafka.prefix}.invoice.pending")
    assert sorted(event.value for event in events) == sorted(delivery.body for delivery in unknown)
    assert len(quarantine.list()) == 10 and len(quarantine.list("--reason", "unknown-kind")) == 5
    done = quarantine.installation.gatepost("audit", config=quarantine.daemon.config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert quarantine.release("--reason", "missing-kind") == []


def test_record_without_a_delivery_id_is_not_released(shared_quarantine):
    kafka = shared_quarantine.kafka
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 3})
    producer.produce(kafka.deliveries, b"{}")
    assert producer.flush(30) == 0
    kafka.wait_until_routed()
    (id,) = [each["id"] for each in shared_quarantine.list() if each["deliveryId"] == ""]
    ends = kafka.ends(kafka.deliveries)
    outcome, = shared_quarantine.release(id, expect=EX_DATAERR)
    assert outcome["outcome"] == "refused" and "delivery-id" in outcome["why"]
    assert kafka.ends(kafka.deliveries) == ends


def test_missing_record_exits_66_with_the_reason(quarantine):
    id = quarantine.send(Delivery(b"no JSON"))
    kafka = quarantine.kafka
    partition, offset = map(int, id.split("-"))
    for wrong in (f"{partition}-{offset + 1000}", "99-0"):
        for command in ("show", "release"):
            done = quarantine.run(command, wrong, expect=EX_NOINPUT)
            assert f"there is no record {wrong} in quarantine" in done.stderr and done.stdout == ""
    # All or nothing: an existing record is not released together with a missing one.
    quarantine.run("release", id, "99-0", expect=EX_NOINPUT)
    assert quarantine.entry(quarantine.list()[0]["deliveryId"])["released"] is False
    # The record is followed by the control record of its transaction.
    done = quarantine.run("show", f"{partition}-{offset + 1}", expect=EX_NOINPUT)
    assert f"there is no record {partition}-{offset + 1}" in done.stderr
    for future in kafka.admin.delete_records(
            [confluent_kafka.TopicPartition(kafka.quarantine, partition, offset + 1)]).values():
        future.result(30)
    done = quarantine.run("show", id, expect=EX_NOINPUT)
    assert "retention deleted it" in done.stderr


@pytest.mark.parametrize("arguments, text", [
    (["show"], "needs ID"), (["show", "7"], "is not an ID"), (["show", "1-2", "1-3"], "unexpected argument '1-3'"),
    (["show", "01-2"], "is not an ID"), (["show", "--json", "--raw", "1-2"], "either --json or --raw"),
    (["list", "--reason", "unknown-kid"], "the reasons are malformed-json, missing-kind"),
    (["list", "--since", "yesterday"], "--since"), (["list", "1-2"], "unexpected argument '1-2'"),
    (["release"], "needs either"), (["release", "1-2", "--reason", "unknown-kind"], "needs either"),
    (["release", "1-2", "x"], "is not an ID"), (["release", "1-2", "--since", "1h"], "--since goes with --reason"),
    (["burn"], "unknown command"), ([], "missing command")])
def test_wrong_usage_exits_64_with_the_reason(shared, arguments, text):
    done = shared.gatepost("quarantine", *arguments, config=False)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and text in done.stderr


def test_missing_topics_exit_69_with_the_remedy(installation):
    done = installation.gatepost("quarantine", "list")
    assert done.returncode == EX_UNAVAILABLE and "gatepost topics create" in done.stderr


@pytest.fixture(scope="module")
def guarded_broker():
    """A Kafka that permits everything except what ACLs deny."""
    with Cluster(properties={"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                             "allow.everyone.if.no.acl.found": "true"}) as cluster:
        yield cluster


def deny(kafka, topic, operation):
    """Deny this operation to everybody; other operations on the topic stay permitted."""
    rules = [AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", each, permission)
             for each, permission in ((AclOperation.ALL, AclPermissionType.ALLOW), (operation, AclPermissionType.DENY))]
    for future in kafka.admin.create_acls(rules).values():
        future.result(30)
    waiting.until(lambda: set(rules) <= set(kafka.admin.describe_acls(Accounts.everything()).result(30)), 30, "the rules")


@pytest.mark.slow
def test_missing_permission_exits_77(guarded_broker, tmp_path):
    installation = Installation(tmp_path, guarded_broker.bootstrap)
    kafka = installation.kafka
    try:
        installation.create_topics()
        daemon = installation.start()
        quarantine = Quarantine(installation, daemon)
        delivery = Delivery(b"no JSON")
        id = quarantine.send(delivery)
        daemon.stop()
        deny(kafka, kafka.deliveries, AclOperation.WRITE)
        done = quarantine.run("release", id, expect=EX_NOPERM)
        assert " failed: " in done.stdout and "authorization" in done.stdout.lower()
        assert quarantine.entry(quarantine.list()[0]["deliveryId"])["released"] is False
        for topic, operation in ((kafka.quarantine, AclOperation.READ),
                                 (kafka.quarantine, AclOperation.DESCRIBE)):
            deny(kafka, topic, operation)
            for command in (["list"], ["show", id], ["release", id]):
                done = quarantine.run(*command, expect=EX_NOPERM)
                assert "authorization" in done.stderr and done.stdout == ""
        assert installation.gatepost("audit", config=daemon.config).returncode == EX_NOPERM
        event_topic = f"{kafka.prefix}.invoice.accepted"
        deny(kafka, event_topic, AclOperation.READ)
        done = installation.gatepost("tail", "--from", "beginning", "--until-end", config=daemon.config)
        assert (done.returncode, done.stdout) == (EX_NOPERM, "") and "authorization" in done.stderr and event_topic in done.stderr
    finally:
        installation.clean_up()
