"""Records that others have written to Gatepost's topics: commands neither fail on them nor print their control characters."""

import itertools
import json
import subprocess

import confluent_kafka
import pytest

from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD
from signing import Delivery

TRICKS = [b"\x1b[2J\x1b]0;title\x07", b"\xff\xfe", b"\xc2\x9b31m", "\u202etxt.exe".encode(), b"\0", b"a\0b", b"", None, b"\r\nlost: 0",
          b"%s%n%d", b'"},{"', b"9223372036854775807", b"-1", b"18446744073709551616", b"2147483648", b"0" * 5000]
NAMES = ["gatepost-source", "gatepost-reason", "gatepost-detail", "gatepost-partition", "gatepost-offset", "gatepost-released",
         "gatepost-signature", "gatepost-replay-of", "gatepost-timestamp", "gatepost-webhook-id", "ce_id", "ce_type", "traceparent"]


def write(kafka, topic):
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 3, "message.max.bytes": 1 << 20})
    reasons = itertools.cycle([b"unpublishable", b"unverified", b"unknown-kind", b"conflicting-body"])
    for trick in TRICKS:
        name = "x" if trick is None else trick.decode("latin-1").replace("\0", "") or "x"
        usual = [("gatepost-reason", next(reasons)), ("gatepost-partition", b"0"), ("gatepost-offset", b"0")]
        producer.produce(topic, trick, trick, headers=[(each, trick) for each in NAMES])
        producer.produce(topic, b"{}", trick, headers=[*usual, (name, trick), (name, b"again")])
        for each in NAMES:
            producer.produce(topic, trick, b"key", headers=[*usual, (each, trick)])
    producer.produce(topic, b"x" * 900_000, b"k" * 60_000, headers=[("gatepost-reason", b"x" * 10_000)])
    producer.produce(topic, b"", b"many", headers=[(f"gatepost-{i}", b"x") for i in range(5000)])
    producer.produce(topic, b"old", b"old", timestamp=1)
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def foreign(shared):
    """An installation whose topics are full of foreign records."""
    shared.create_topics(partitions=1)
    shared.kafka.append([Delivery() for _ in range(3)])
    for topic in shared.kafka.topics():
        write(shared.kafka, topic)
    shared.written = shared.config().write()
    return shared


COMMANDS = [["quarantine", "list"], ["quarantine", "list", "--json"], ["quarantine", "list", "--reason", "unknown-kind", "--since", "1h"],
            ["tail", "--from", "beginning", "--until-end", "--quarantine", "--headers"],
            ["tail", "--from", "1970-01-01T00:00:00Z", "--until-end", "--quarantine", "--json"], ["audit"], ["audit", "--json"],
            ["audit", "--since", "1970-01-01T00:00:00Z"], ["quarantine", "release", "--reason", "conflicting-body", "--dry-run"],
            ["quarantine", "release", "--reason", "unknown-kind", "--dry-run", "--json"],
            ["quarantine", "show", "0-0"], ["quarantine", "show", "0-0", "--json"], ["topics", "list"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_tolerates_foreign_records(foreign, command):
    done = subprocess.run([BUILD / "gatepost", "-c", foreign.written, *command], env=ENVIRONMENT, capture_output=True, timeout=120)
    assert_no_sanitizer_report(done.stderr.decode(errors="replace"))
    assert done.returncode in (0, 65, 75), (done.returncode, done.stderr)
    for output in (done.stdout, done.stderr):
        text = output.decode()
        assert not [each for each in text if (each < " " and each not in "\n\t") or "\x7f" <= each < "\xa0"]
    if "tail" in command and "--json" in command:
        assert len([json.loads(line) for line in done.stdout.splitlines()]) > len(TRICKS)
    elif "--json" in command:
        json.loads(done.stdout)


@pytest.mark.slow
def test_every_foreign_record_can_be_shown(foreign):
    end = foreign.kafka.ends(foreign.kafka.quarantine)[0]
    for offset in range(0, end, 29):
        for form in ([], ["--json"], ["--raw"]):
            done = subprocess.run([BUILD / "gatepost", "-c", foreign.written, "quarantine", "show", f"0-{offset}", *form],
                                  env=ENVIRONMENT, capture_output=True, timeout=60)
            assert_no_sanitizer_report(done.stderr.decode(errors="replace"))
            assert done.returncode in (0, 66), (offset, form, done.stderr)
            assert form == ["--raw"] or b"\x1b" not in done.stdout
            if form == ["--json"]:
                json.loads(done.stdout)
