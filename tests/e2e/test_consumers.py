"""The examples for consumers in etc/examples, on a real Kafka."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys

import confluent_kafka
import pytest

import jars
import waiting
from asyncapi import ROOT
from signing import Delivery, event_body

SECONDS = 60
PREPARED = ROOT / "build" / "examples"
EX_SIGTERM_OF_JAVA = 143


class Example:
    """A program of etc/examples, in a directory of its own."""

    def __init__(self, directory, name, command, run="", environment=None):
        self.directory = directory
        self.name = name
        self.run = run  # distinguishes its output from that of others in the directory
        self.command = command
        self.environment = environment
        self.process = None
        self._runs = 0
        shutil.copy(ROOT / "etc" / "examples" / name, directory)

    def another(self, directory, run=""):
        return Example(directory, self.name, self.command, run, self.environment)

    @property
    def stored(self):
        """(ce_id, ce_type, body) of each event that it has processed, sorted."""
        if (self.directory / "events.db").exists():
            with sqlite3.connect(self.directory / "events.db") as database:
                return sorted((id, kind, body.encode()) for id, kind, body in
                              database.execute("SELECT id, kind, body FROM event"))
        lines = [json.loads(line) for line in (self.directory / "events.jsonl").read_text().splitlines()]
        return sorted((line["id"], line["type"], line["body"].encode()) for line in lines)

    def start(self, *arguments):
        self._runs += 1
        with open(self._file("out"), "wb") as out, open(self._file("err"), "wb") as err:
            self.process = subprocess.Popen([*self.command, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            cwd=self.directory, env=self.environment)
        return self

    def _file(self, what):
        return self.directory / f"{what}{self.run}{self._runs}"

    @property
    def printed(self):
        """(ce_id, ce_type, body) of each event that this run printed, in their order."""
        whole = self._file("out").read_text().rpartition("\n")[0]  # the last line may still be being written
        lines = [line.split(" ", 3) for line in whole.splitlines()]
        assert all(line[0] == "/invoicing" for line in lines)
        return [(id, kind, body.encode()) for _, id, kind, body in lines]

    @property
    def errors(self):
        return self._file("err").read_text()

    def wait_for(self, *deliveries):
        """Wait until this run has printed these deliveries, and no others."""
        expected = sorted(as_printed(each) for each in deliveries)
        waiting.until(lambda: len(self.printed) >= len(expected) or self.process.poll() is not None, SECONDS,
                      lambda: f"{len(expected)} events: {self.printed}\n{self.errors}")
        assert sorted(self.printed) == expected, self.errors

    def stop(self, expect=0):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(SECONDS) == expect, self.errors

    def clean_up(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def as_printed(delivery):
    return delivery.delivery_id, "invoice.accepted", delivery.body


def make(language, directory):
    if language == "python":
        return Example(directory, "consume.py", [sys.executable, "consume.py"])
    if language == "cloudevents":
        return Example(directory, "consume_cloudevents.py", [sys.executable, "consume_cloudevents.py"])
    assert (PREPARED / language).is_dir(), f"there is no {PREPARED / language}: `tests/run --prepare` makes it, and needs Go and npm"
    if language == "go":
        return Example(directory, "go/consume.go", [PREPARED / "go" / "consume"])
    environment = os.environ | {"NODE_PATH": str(PREPARED / "node" / "node_modules")}
    return Example(directory, "node/consume.js", ["node", "consume.js"], environment=environment)


@pytest.fixture
def example(request, tmp_path):
    each = make(request.param, tmp_path)
    yield each
    each.clean_up()


def languages(*names):
    return pytest.mark.parametrize("example", names, indirect=True)


in_each_language = languages("python", "cloudevents", "go", "node")  # Java has no store


@pytest.fixture
def python(tmp_path):
    each = make("python", tmp_path)
    yield each
    each.clean_up()


@pytest.fixture
def java(tmp_path):
    compiler = shutil.which("javac")
    assert compiler, "there is no javac; tests/run installs it"
    program = pathlib.Path(compiler).resolve().parent / "java"
    each = Example(tmp_path, "Consume.java",
                   [program, "-Xmx256m", "-cp", jars.class_path(), "Consume.java"])
    yield each
    each.clean_up()


class Topic:
    """A topic of events, and the daemon that fills it."""

    def __init__(self, installation, config=None):
        config = config or installation.config()
        installation.create_topics(config)
        self.daemon = installation.start(config)
        self.installation = installation
        self.kafka = installation.kafka
        self.name = f"{installation.prefix}.invoice.accepted"

    def arguments(self, group="bookkeeping"):
        return self.kafka.bootstrap, f"{self.kafka.prefix}.{group}", self.name

    def accept(self):
        return self.daemon.accept(Delivery(event_body(text="Größe – 請求書")))

    def gatepost(self, *arguments):
        return self.installation.gatepost(*arguments, config=self.daemon.config)

    def members(self):
        group = self.arguments()[1]
        return len(self.kafka.admin.describe_consumer_groups([group])[group].result(SECONDS).members)

    def is_processed(self, *group):
        """Whether the group has committed that it has seen every record."""
        committed = self.kafka.committed(self.arguments(*group)[1], self.name)
        return all(committed.get(partition, 0) >= end for partition, end in self.kafka.ends(self.name).items())

    def abort(self):
        """Append events in an aborted transaction, as a router that crashes leaves them in the log."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.kafka.bootstrap, "log_level": 3,
                                             "transactional.id": f"{self.kafka.prefix}-aborted"})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        for delivery in (Delivery(), Delivery()):
            headers = {"ce_id": delivery.delivery_id, "ce_source": "/invoicing", "ce_type": "invoice.accepted"}
            producer.produce(self.name, delivery.body, b"invoice.accepted", headers=list(headers.items()))
        producer.flush(SECONDS)
        producer.abort_transaction(SECONDS)


@pytest.fixture
def topic(installation):
    return Topic(installation)


def show_each_event_once(example, topic, stopped):
    """Run, stop, run again: each event is printed once, and aborted events are not."""
    first = topic.accept()
    topic.abort()
    second = topic.accept()
    example.start(*topic.arguments()).wait_for(first, second)
    assert len(topic.kafka.read(topic.name, isolation="read_uncommitted")) == 4
    example.stop(stopped)
    assert topic.is_processed()
    third = topic.accept()
    example.start(*topic.arguments()).wait_for(third)
    example.stop(stopped)
    assert topic.is_processed() and "not committed" not in example.errors


@in_each_language
def test_consumer_sees_each_event_once_and_no_aborted_ones(example, topic):
    show_each_event_once(example, topic, 0)


def show_no_event(example, topic, name):
    """It stops before it commits, rather than take all records without ce_id for one event."""
    bootstrap, group, _ = topic.arguments()
    example.start(bootstrap, group, name)
    assert example.process.wait(SECONDS) == 1
    assert f"{name}: the record at offset 0 is no event: it has no ce_source" in example.errors, example.errors
    assert example.printed == [] and not any(end > 0 for end in topic.kafka.committed(group, name).values())


def show_quarantine_and_others_records(example, topic):
    for _ in range(3):
        topic.daemon.accept(Delivery(event_body("no.such.kind")))
    topic.kafka.wait_until_routed()
    show_no_event(example, topic, topic.kafka.quarantine)
    producer = confluent_kafka.Producer({"bootstrap.servers": topic.kafka.bootstrap, "log_level": 3})
    producer.produce(topic.name, b"without headers")
    assert producer.flush(SECONDS) == 0
    show_no_event(example, topic, topic.name)


@in_each_language
def test_consumer_stops_at_a_record_that_is_no_event(example, topic):
    show_quarantine_and_others_records(example, topic)


@pytest.mark.slow
def test_java_consumer_stops_at_a_record_that_is_no_event(java, topic):
    show_quarantine_and_others_records(java, topic)


@languages("go")
def test_consumer_says_that_brokers_do_not_answer(example):
    example.start("127.0.0.1:1", "bookkeeping", "gatepost.invoice.accepted")
    waiting.until(lambda: "connection refused" in example.errors, SECONDS, "the reason")
    example.process.terminate()
    example.process.wait(SECONDS)


def test_commands_of_the_manual_name_a_topic_of_the_default_configuration(offline):
    config = offline.config()
    del config["topics"]["prefix"]
    commands = re.findall(r"kafka1:9092 bookkeeping (\S+)$", (ROOT / "man" / "gatepost-consumers.7").read_text(), re.M)
    assert len(commands) == 5
    for topic in commands:
        assert f'invoice.accepted = "{topic}" ' in offline.gatepost("config", config=config).stdout, topic


def show_usage(example):
    """Without a topic it says what it takes, and connects to nothing."""
    example.start("127.0.0.1:9", "bookkeeping")
    assert example.process.wait(SECONDS) == 1
    assert re.search(r"usage: \w+(\.py|\.js|) BROKERS GROUP TOPIC\.\.\.\n$", example.errors)


@in_each_language
def test_consumer_says_what_it_takes(example):
    show_usage(example)


@pytest.mark.slow
@pytest.mark.slow
def test_java_consumer_ends_if_its_processing_exits(java, topic):
    """The hook that waits for the batch at SIGTERM runs then, too."""
    source = java.directory / "Consume.java"
    text, line = source.read_text(), "        System.out.println(String.join("
    assert text.count(line) == 1
    source.write_text(text.replace(line, f"        if (record.value() != null) System.exit(3);\n{line}"))
    topic.accept()
    java.start(*topic.arguments())
    assert java.process.wait(2 * SECONDS) == 3, java.errors
    assert not topic.is_processed()


def test_java_consumer_says_what_it_takes(java):
    show_usage(java)


@pytest.mark.slow
def test_java_consumer_sees_each_event_once_and_no_aborted_ones(java, topic):
    show_each_event_once(java, topic, EX_SIGTERM_OF_JAVA)


def test_python_consumer_stores_released_events_separately(python, topic):
    """A conflicting body, and a replay whose genuine delivery arrives later."""
    first, genuine = topic.accept(), Delivery()
    conflict, replay = first.but(body=event_body()), first.but(delivery_id=genuine.delivery_id)
    for delivery in (conflict, replay):
        topic.daemon.accept(delivery)
    topic.kafka.wait_until_routed()
    ids = {record.delivery_id: f"{record.partition}-{record.offset}" for record in topic.kafka.read(topic.kafka.quarantine)}
    assert set(ids) == {first.delivery_id, genuine.delivery_id}
    done = topic.gatepost("quarantine", "release", *ids.values())
    assert done.returncode == 0, done.stderr
    topic.daemon.accept(genuine)
    topic.kafka.wait_until_routed()
    released = [each.but(delivery_id=f"{each.delivery_id}.{ids[each.delivery_id]}") for each in (conflict, replay)]
    python.start(*topic.arguments()).wait_for(first, genuine, *released)
    python.stop()
    assert python.stored == sorted(map(as_printed, [first, genuine, *released]))


@in_each_language
def test_consumer_skips_events_it_has_already_processed(example, topic):
    """Killed, and then another group starts at the beginning: the same records, as if the offsets had not been committed."""
    deliveries = [topic.accept() for _ in range(20)]
    example.start(*topic.arguments("one")).wait_for(*deliveries)
    # It prints an event before it has stored it for good.
    waiting.until(lambda: topic.is_processed("one"), SECONDS, "offsets to be committed")
    example.clean_up()
    new = topic.accept()
    example.start(*topic.arguments("two")).wait_for(new)
    example.stop()
    assert example.stored == sorted(as_printed(each) for each in [*deliveries, new])


@languages("go", "node")
def test_consumer_processes_an_event_again_whose_line_was_cut_off_by_a_crash(example, topic):
    deliveries = [topic.accept() for _ in range(3)]
    example.start(*topic.arguments("one")).wait_for(*deliveries)
    example.stop()
    journal = example.directory / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines)[:-5])
    (cut,) = [each for each in deliveries if each.delivery_id.encode() in lines[-1]]
    example.start(*topic.arguments("two")).wait_for(cut)
    example.stop()
    assert example.stored == sorted(map(as_printed, deliveries))


@languages("go", "node")
def test_second_consumer_in_a_directory_is_refused(example, topic):
    """Both would write to one journal. One that was killed does not keep the next from starting."""
    first = topic.accept()
    example.start(*topic.arguments("one")).wait_for(first)
    second = example.another(example.directory, "-second").start(*topic.arguments("two"))
    assert second.process.wait(SECONDS) == 1
    assert "events.jsonl is in use by another consumer" in second.errors and "give each a directory of its own" in second.errors, second.errors
    example.clean_up()
    again = example.another(example.directory, "-again").start(*topic.arguments("two"))
    next = topic.accept()
    again.wait_for(next)
    again.stop()
    assert example.stored == sorted(map(as_printed, [first, next]))


@languages("go", "node")
def test_consumer_gets_an_event_again_whose_processing_failed(example, topic, tmp_path_factory):
    """A developer has put a call there, which fails the first time."""
    source, line, call = {
        "go/consume.go": ("consume.go", "\tfmt.Println(e.Source, e.ID, e.Type, e.Body)\n",
                          '\tif _, err := os.Stat("fails"); err == nil {\n\t\treturn fmt.Errorf("the bookkeeping does not answer")\n\t}\n'),
        "node/consume.js": ("consume.js", "  console.log(event.source, event.id, event.type, event.body);\n",
                            "  if (fs.existsSync('fails')) throw new Error('the bookkeeping does not answer');\n"),
    }[example.name]
    text = (example.directory / source).read_text()
    assert text.count(line) == 1
    (example.directory / source).write_text(text.replace(line, call + line))
    if example.name == "go/consume.go":
        directory = tmp_path_factory.mktemp("go")
        for name in ("go.mod", "go.sum"):
            shutil.copy(PREPARED / "go" / name, directory)
        shutil.copy(example.directory / source, directory)
        subprocess.run(["go", "build", "-buildvcs=false", "-o", "consume", "."], cwd=directory, env=os.environ | {"GOFLAGS": "-mod=mod", "GOPROXY": "off"}, check=True)
        example.command = [directory / "consume"]
    first = topic.accept()
    example.start(*topic.arguments()).wait_for(first)
    (example.directory / "fails").touch()
    second, third = topic.accept(), topic.accept()
    waiting.until(lambda: "the bookkeeping does not answer" in example.errors, SECONDS, "the failure")
    example.clean_up()
    assert not topic.is_processed() and example.stored == [as_printed(first)]
    (example.directory / "fails").unlink()
    example.start(*topic.arguments()).wait_for(second, third)
    example.stop()
    assert example.stored == sorted(map(as_printed, [first, second, third]))


@languages("go", "node")
def test_consumer_gets_an_event_again_that_it_could_not_store(example, topic):
    """The file may not grow: the event is stored later, once, and its offset is not committed before."""
    first = topic.accept()
    example.start(*topic.arguments()).wait_for(first)
    waiting.until(topic.is_processed, SECONDS, "offsets to be committed")
    size = (example.directory / "events.jsonl").stat().st_size
    resource.prlimit(example.process.pid, resource.RLIMIT_FSIZE, (size + 10, size + 10))
    second = topic.accept()
    waiting.until(lambda: example.errors, SECONDS, "the error")
    assert not topic.is_processed()
    example.clean_up()
    example.start(*topic.arguments()).wait_for(second)
    example.stop()
    assert example.stored == sorted(map(as_printed, [first, second]))


def test_python_consumer_gets_an_event_again_after_a_processing_failure(python, topic):
    first = topic.accept()
    python.start(*topic.arguments()).wait_for(first)
    locked = sqlite3.connect(python.directory / "events.db", isolation_level=None)
    locked.execute("BEGIN EXCLUSIVE")
    second = topic.accept()
    assert python.process.wait(SECONDS) == 1 and "locked" in python.errors
    locked.execute("ROLLBACK")
    python.start(*topic.arguments()).wait_for(second)
    python.stop()


@in_each_language
def test_consumers_in_one_group_share_the_work(example, topic, tmp_path_factory):
    """One member leaves and the other continues without waiting for the session to time out."""
    other = example.another(tmp_path_factory.mktemp("other"))
    try:
        first = topic.accept()
        example.start(*topic.arguments()).wait_for(first)
        waiting.until(topic.is_processed, SECONDS, "offsets to be committed")
        other.start(*topic.arguments())
        waiting.until(lambda: topic.members() == 2, SECONDS, "two members")
        example.stop()
        waiting.until(lambda: topic.members() == 1, 20, "the other to be the only member")
        second = topic.accept()
        other.wait_for(second)
        other.stop()
    finally:
        other.clean_up()


@pytest.mark.slow
def test_python_consumers_process_events_exactly_once_across_rebalances_and_crashes(python, installation, tmp_path):
    """Three members with one database, across the resulting rebalances; the first is killed while it works."""
    config = installation.config()
    config["source invoicing"]["key"] = "delivery-id"
    topic = Topic(installation, config)
    others = [python.another(tmp_path, name) for name in ("b", "c")]
    deliveries = []

    def send(until, what):
        waiting.until(lambda: deliveries.append(topic.accept()) or until(), 3 * SECONDS, what)
    try:
        python.start(*topic.arguments())
        send(lambda: python.printed, "the first to work")
        others[0].start(*topic.arguments())
        send(lambda: topic.members() == 2 and others[0].printed, "the second to work")
        python.clean_up()
        others[1].start(*topic.arguments())
        send(lambda: others[1].printed, "the third to work")
        others[0].stop()
        seen = len(others[1].printed)
        send(lambda: len(others[1].printed) > seen, "the third to continue alone")
        waiting.until(lambda: len(python.stored) >= len(deliveries), SECONDS, "all events")
        others[1].stop()
    finally:
        for each in others:
            each.clean_up()
    expected = sorted(as_printed(each) for each in deliveries)
    assert python.stored == expected
    assert topic.is_processed()


@languages("python", "cloudevents", "node")
def test_example_works_with_the_embedded_broker(example, installation):
    config = installation.config()
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    address = re.search(r"embedded.*?(127\.0\.0\.1:\d+)", daemon.log)[1]
    delivery = daemon.accept(Delivery(event_body()))
    example.start(address, "bookkeeping", f"{installation.prefix}.invoice.accepted").wait_for(delivery)
    example.stop()


def test_python_examples_share_a_database(tmp_path, installation):
    """The manual prints them one after the other, for one directory and one group."""
    topic = Topic(installation)
    deliveries = []
    for language in ("python", "cloudevents", "python"):
        program = make(language, tmp_path)
        program.run = f"{language}{len(deliveries)}"
        try:
            deliveries.append(topic.accept())
            program.start(*topic.arguments()).wait_for(deliveries[-1])
            program.stop()
            assert program.printed == [as_printed(deliveries[-1])]
        finally:
            program.clean_up()
    assert program.stored == sorted(as_printed(each) for each in deliveries)
