"""The checker of tests/faults: topics as a correct router leaves them, then with one fault each."""

import dataclasses
import time
import types
import uuid

import confluent_kafka
import pytest

import deliveries as texts
from checker import Checker, Cut
from deliveries import Deliveries
from kafka_side import Kafka
from sender import ACCEPTED

SIGNED = int(time.time()) - 120  # recent records only: brokers delete old ones
SIGNED_TEXT = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(SIGNED))
LATER_TEXT = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(SIGNED + 1))
NUMBERS = 3000  # enough for every kind of special delivery
WINDOW_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Record:
    topic: str  # without the prefix
    key: bytes
    value: bytes
    headers: tuple
    about: tuple = ()  # (delivery-id, kind of record)
    timestamp_ms: int = SIGNED * 1000


class Topics:
    """Records for the topics of one prefix, each with one partition, before they are written."""

    def __init__(self, bootstrap):
        self.kafka = Kafka(bootstrap, f"t{uuid.uuid4().hex[:8]}")
        self.deliveries = Deliveries(f"d{uuid.uuid4().hex[:8]}")
        self.log = []
        self.published = []
        most = NUMBERS
        self.ledger = types.SimpleNamespace(most=most, state=bytearray(most), first_sent=[0.0] * most, accepted_begun=[0.0] * most,
                                            follow_state=bytearray(most), follow_begun=[0.0] * most, follow_number=[0] * most)

    def send(self, number, delivery_id=None, origin=None, released=None, replay=False, timestamp_ms=SIGNED * 1000):
        """A record in deliveries. Returns its offset."""
        self.ledger.state[number] = ACCEPTED
        self.ledger.first_sent[number] = self.ledger.accepted_begun[number] = timestamp_ms / 1000
        headers = [("gatepost-source", b"invoicing"), ("gatepost-timestamp", str(SIGNED).encode())]
        headers += [("gatepost-replay-of", b"another")] if replay else []
        headers += [("gatepost-released", released.encode())] if released else []
        self.log.append(Record("deliveries", (delivery_id or self.deliveries.id(number)).encode(),
                               self.deliveries.body(*(origin or (number, texts.MAIN))), tuple(headers), timestamp_ms=timestamp_ms))
        return len(self.log) - 1

    def event(self, number, event_id=None, variant=texts.MAIN, signed=SIGNED_TEXT):
        kind = self.deliveries.kind(number)
        headers = {"content-type": "application/json", "ce_specversion": "1.0", "ce_id": event_id or self.deliveries.id(number),
                   "ce_type": kind, "ce_source": "/invoicing", "ce_time": signed}
        self.published.append(Record(self.deliveries.topic(number), kind.encode(), self.deliveries.body(number, variant),
                                     tuple((name, value.encode()) for name, value in headers.items())))

    def quarantine(self, offset, reason):
        record = self.log[offset]
        added = {"gatepost-reason": reason, "gatepost-detail": "why", "gatepost-partition": "0", "gatepost-offset": str(offset)}
        self.published.append(Record("quarantine", record.key, record.value, record.headers + tuple(
            (name, value.encode()) for name, value in added.items())))
        return sum(each.topic == "quarantine" for each in self.published) - 1

    def check(self, cuts=()):
        """Write all records and check them."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.kafka.bootstrap, "log_level": 3})
        names = {each.topic for each in [*self.log, *self.published]} | {"deliveries", "quarantine"}
        for name in names:
            self.kafka.create(f"{self.kafka.prefix}.{name}")
        errors = []
        report = lambda error, _: errors.append(error) if error else None
        for each in [*self.log, *self.published]:
            producer.produce(f"{self.kafka.prefix}.{each.topic}", each.value, each.key, headers=list(each.headers),
                             timestamp=each.timestamp_ms, on_delivery=report)
        assert producer.flush(30) == 0 and not errors, errors
        try:
            return Checker(self.kafka, self.deliveries, self.ledger, WINDOW_SECONDS, cuts=cuts).run()
        finally:
            self.kafka.delete(*self.kafka.topics())

    def number(self, makes=None, after=0):
        """The first number, starting at `after`, of a delivery of this special kind."""
        return next(each for each in range(after, NUMBERS) if self.deliveries.makes(each) == makes)


@pytest.fixture
def topics(broker):
    """One of each: an event with a repeat, a bad body, a second body, a replay, a release, an expired id."""
    topics = Topics(broker.bootstrap)
    topics.plain = topics.number()
    topics.later = next(each for each in range(topics.plain + 1, NUMBERS) if topics.deliveries.makes(each) is None
                        and topics.deliveries.kind(each) == topics.deliveries.kind(topics.plain))
    topics.send(topics.plain)
    topics.send(topics.later)
    topics.send(topics.plain)
    topics.event(topics.plain)
    topics.event(topics.later)
    topics.bad = topics.number(texts.UNKNOWN)
    topics.quarantine(topics.send(topics.bad), "unknown-kind")
    conflict = topics.conflict = topics.number(texts.CONFLICT)
    topics.send(conflict)
    topics.event(conflict)
    place = topics.quarantine(topics.send(conflict, origin=(conflict, texts.OTHER)), "conflicting-body")
    topics.send(conflict, origin=(conflict, texts.OTHER), released=f"0-{place}")
    topics.published.append(Record("quarantine", topics.deliveries.id(conflict).encode(), None, (("gatepost-released", f"0-{place}".encode()),)))
    topics.event(conflict, f"{topics.deliveries.id(conflict)}.0-{place}", texts.OTHER)
    replay = topics.number(texts.REPLAY)
    topics.send(replay)
    topics.event(replay)
    topics.replayed = topics.send(replay, topics.deliveries.replay_id(replay), replay=True)
    topics.quarantine(topics.replayed, "replayed-signature")
    topics.send(topics.plain, timestamp_ms=(SIGNED + WINDOW_SECONDS + 1) * 1000)
    topics.event(topics.plain)
    return topics


def counts(report):
    return {name: len(getattr(report, name)) for name in ("lost", "duplicated", "unexpected", "disordered")
            if getattr(report, name)}


def remove(topics, about):
    """Take away the first published record of this topic."""
    del topics.published[next(i for i, each in enumerate(topics.published) if each.topic == about)]


def test_correct_topics_are_clean(topics):
    report = topics.check()
    assert report.is_clean, report


def test_missing_event_is_lost(topics):
    topics.published.pop()  # of the expired id
    assert counts(topics.check()) == {"lost": 1}


def test_second_event_is_duplicated(topics):
    topics.event(topics.later)
    assert counts(topics.check()) == {"duplicated": 1}


def test_event_of_a_later_copy_is_unexpected(topics):
    topics.send(topics.number(after=100))
    topics.event(topics.number(after=100), signed=LATER_TEXT)
    assert counts(topics.check()) == {"unexpected": 1}


def test_bad_body_missing_from_quarantine_is_lost(topics):
    remove(topics, "quarantine")
    report = topics.check()
    assert any(topics.deliveries.id(topics.bad) in each for each in report.lost)


def test_second_record_in_quarantine_is_duplicated(topics):
    topics.quarantine(topics.replayed, "replayed-signature")
    assert counts(topics.check()) == {"duplicated": 1}


def test_wrong_reason_is_unexpected(topics):
    offset = topics.send(topics.number(texts.MISSING))
    topics.quarantine(offset, "unknown-source")
    assert counts(topics.check()) == {"unexpected": 1}


def test_repeat_in_quarantine_is_unexpected(topics):
    topics.quarantine(2, "conflicting-body")
    assert counts(topics.check()) == {"unexpected": 1}


def test_event_of_a_detected_replay_is_unexpected(topics):
    number = topics.number(texts.REPLAY, topics.number(texts.REPLAY) + 1)
    topics.send(number)
    topics.event(number)
    topics.send(number, topics.deliveries.replay_id(number), replay=True)
    topics.event(number, topics.deliveries.replay_id(number))
    assert counts(topics.check()) == {"lost": 1, "unexpected": 1}


def test_swapped_events_of_one_key_are_disordered(topics):
    first, second = topics.published[:2]
    topics.published[:2] = [second, first]
    assert counts(topics.check()) == {"disordered": 1}


def test_release_with_the_id_of_the_first_event_is_duplicated(topics):
    topics.event(topics.conflict, topics.deliveries.id(topics.conflict), texts.OTHER)
    assert "duplicated" in counts(topics.check())


def test_accepted_delivery_missing_from_the_log_is_lost(topics):
    number = topics.number(after=200)
    topics.ledger.state[number], topics.ledger.first_sent[number] = ACCEPTED, time.time()
    assert counts(topics.check()) == {"lost": 1}


def test_accepted_delivery_truncated_by_kafka_is_reported_separately(topics):
    number = topics.number(after=200)
    topics.ledger.state[number] = ACCEPTED
    topics.ledger.first_sent[number] = topics.ledger.accepted_begun[number] = SIGNED
    topics.event(number)
    report = topics.check([Cut(SIGNED + 1)])
    assert report.is_clean and len(report.cut) == len(report.of_cut) == 1


def test_delivery_accepted_after_a_truncation_is_lost(topics):
    number = topics.number(after=200)
    topics.ledger.state[number] = ACCEPTED
    topics.ledger.first_sent[number] = topics.ledger.accepted_begun[number] = SIGNED + 2
    assert counts(topics.check([Cut(SIGNED + 1)])) == {"lost": 1}
