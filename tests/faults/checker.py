"""Check the topics against the deliveries that were sent, their answers, and the records in `deliveries`. It shares no code
with Gatepost. Every record in the event topics and in quarantine must be explained."""

import dataclasses
import datetime
import math
import time
import uuid

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

import deliveries as texts
import waiting
from oracle import DROP, EVENT, Oracle, digest, header, original
from report import Report
from sender import ACCEPTED

READ_SECONDS = 60
AT_ONCE = 5000
ADDED_IN_QUARANTINE = ("gatepost-reason", "gatepost-detail", "gatepost-partition", "gatepost-offset")


def _known(consumer, topics):
    """Return the metadata of these topics, once the brokers know all of them."""
    known = consumer.list_topics(timeout=30).topics
    return all(name in known and known[name].error is None and known[name].partitions for name in topics) and known


def _records(kafka, topics):
    """Read all records of these topics, up to their current ends, with read_committed."""
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": kafka.bootstrap, "group.id": f"checker-{uuid.uuid4()}", "isolation.level": "read_committed",
        "enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True, "log_level": 3})
    known = waiting.until(lambda: _known(consumer, topics), READ_SECONDS, f"brokers to know {topics}")
    partitions = [TopicPartition(topic, partition, OFFSET_BEGINNING) for topic in topics
                  for partition in known[topic].partitions]
    left = {(each.topic, each.partition) for each in partitions}
    consumer.assign(partitions)
    progress = time.monotonic()
    while left:
        messages = consumer.consume(AT_ONCE, 0.2)
        progress = time.monotonic() if messages else progress
        assert time.monotonic() - progress < READ_SECONDS, f"the ends of {sorted(left)} were not reached"
        for message in messages:
            if message.error() is None:
                yield message
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                left.discard((message.topic(), message.partition()))
            elif not message.error().retriable():
                raise confluent_kafka.KafkaException(message.error())
    consumer.close()


def clock(seconds):
    """Format a time like the daemons' logs."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%H:%M:%S.%f")[:-3]


def _stamp(message):
    return f"{message.topic()} {message.partition()}@{message.offset()} at {clock(message.timestamp()[1] / 1000)}"


def _entry_text(entry):
    partition, offset = entry.place
    return f"deliveries {partition}@{offset} at {clock(entry.timestamp_ms / 1000)}" + (" (replay)" if entry.is_replay else "")


@dataclasses.dataclass
class Cut:
    """An unclean election at this time (time.time()), in which Kafka lost the end of some partitions of `deliveries`."""
    at: float


@dataclasses.dataclass
class Event:
    place: tuple  # (topic, partition, offset)
    key: bytes
    signed: str
    text: str


def _is_marker(message):
    """Whether a record of quarantine says only that another one was released."""
    headers = message.headers() or []
    return not message.value() and header(headers, "gatepost-released") and not header(headers, "gatepost-reason")


class Checker:
    def __init__(self, kafka, deliveries, ledger, window_seconds=math.inf, may_lack=None, cuts=()):
        self.kafka = kafka
        self.deliveries = deliveries
        self.ledger = ledger
        self.cuts = cuts
        self.report = Report()
        self.oracle = Oracle(deliveries, window_seconds, may_lack)
        self._events = {}  # by identity, in the order of each partition
        self._releasable = {}  # digest of each record in quarantine by its place, in the format of gatepost-released

    def run(self):
        for message in _records(self.kafka, [self.kafka.deliveries]):
            self.oracle.add(message)
        for place, delivery_id in self.oracle.strange:
            self._unexpected(f"a record in deliveries that was never sent: {delivery_id} {place}")
        for message in _records(self.kafka, [self.kafka.quarantine]):
            if not _is_marker(message):
                self._take_quarantined(message)
        events = [name for name in self.kafka.published_topics() if name != self.kafka.quarantine]
        for message in _records(self.kafka, events):
            self._take_event(message)
        self._check_quarantine()
        self._check_events()
        self._check_releases()
        self._check_acknowledged()
        self._check_order()
        self.report.unnoticed = [each.identity[1] for each in self.oracle.unnoticed_replays()]
        return self.report

    # Reading the topics

    def _unexpected(self, text):
        self.report.unexpected.append(text)

    def _was_sent(self, number):
        return number < self.ledger.most and self.ledger.first_sent[number] > 0

    def _may_have_been_cut(self, delivery_id):
        """Return whether Kafka may have lost a record of this delivery."""
        parsed = self.deliveries.parse_id(delivery_id)
        if not self.cuts or parsed is None or parsed[0] >= self.ledger.most:
            return False
        first = self.ledger.first_sent[parsed[0]]
        return 0 < first <= max(cut.at for cut in self.cuts)

    def _take_quarantined(self, message):
        headers = message.headers() or []
        reason = header(headers, "gatepost-reason")
        delivery_id = (message.key() or b"").decode(errors="replace")
        what = f"{delivery_id} {reason} in {_stamp(message)}"
        kept = [each for each in headers if each[0] not in ADDED_IN_QUARANTINE]
        self._releasable[f"{message.partition()}-{message.offset()}"] = digest(message.key(), message.value(), original(kept))
        entry = None
        try:
            place = int(header(headers, "gatepost-partition")), int(header(headers, "gatepost-offset"))
            entry = self.oracle.entries.get(place)
        except (TypeError, ValueError):
            self._unexpected(f"{what}: names no place in deliveries")
            return
        if entry is None or entry.digest != digest(message.key(), message.value(), kept):
            if self._may_have_been_cut(delivery_id):
                self.report.of_cut.append(what)
            else:
                self._unexpected(f"{what}: is not the record at {place} in deliveries")
            return
        if reason not in entry.allowed:
            self._unexpected(f"{what}: may only have the reason {sorted(entry.allowed)}; {_entry_text(entry)}")
        if not header(headers, "gatepost-detail"):
            self._unexpected(f"{what}: has no detail")
        if entry.quarantined_at:
            self.report.duplicated.append(f"{what}: {_entry_text(entry)} is in quarantine already, at {entry.quarantined_at}")
        entry.quarantined_at.append((message.partition(), message.offset()))

    def _take_event(self, message):
        headers = message.headers() or []
        event_id = header(headers, "ce_id") or ""
        delivery_id, _, released = event_id.partition(".")
        identity = (header(headers, "ce_source") or "").removeprefix("/"), delivery_id, released or None
        wrong = self._wrong_in_event(message, headers, delivery_id)
        if wrong:
            self._unexpected(f"{event_id} in {_stamp(message)}: {wrong}")
            return
        self._events.setdefault(identity, []).append(
            Event((message.topic(), message.partition(), message.offset()), message.key(), header(headers, "ce_time"),
                  _stamp(message)))

    def _wrong_in_event(self, message, headers, delivery_id):
        """Return the first error in an event by itself, or None."""
        origin = self.deliveries.origin(message.value() or b"")
        parsed = self.deliveries.parse_id(delivery_id)
        if parsed is None or not self._was_sent(parsed[0]):
            return "it was never sent"
        if origin is None:
            return "its body was never sent"
        kind = self.deliveries.kind(origin[0])
        right = {"ce_type": kind, "ce_source": "/" + self.deliveries.source(origin[0]), "ce_specversion": "1.0",
                 "content-type": "application/json"}
        for name, value in right.items():
            if header(headers, name) != value:
                return f"{name} is {header(headers, name)} instead of {value}"
        if message.topic() != f"{self.kafka.prefix}.{texts.event_topic(kind)}":
            return f"wrong topic for {kind}"
        return None if message.key() == kind.encode() else f"its key is {message.key()}"

    # Comparing

    def _check_quarantine(self):
        for entry in self.oracle.entries.values():
            if not entry.quarantined_at and not entry.allowed & {DROP, EVENT}:
                self.report.lost.append(f"{entry.identity[1]}: {_entry_text(entry)} is not in quarantine as "
                                        f"{sorted(entry.allowed)}")

    def _check_events(self):
        """Check that each identity has the number of events that `deliveries` requires."""
        self._origins = {}  # the entry of each event, by the event's place
        for identity, entries in self.oracle.by_identity.items():
            may = [each for each in entries if EVENT in each.allowed and not each.quarantined_at]
            must = [each for each in may if DROP not in each.allowed]
            found = self._events.pop(identity, [])
            name = identity[1] + (f".{identity[2]}" if identity[2] else "")
            where = "; ".join(map(_entry_text, entries))
            if len(found) < len(must):
                self.report.lost.append(f"{name}: {len(found)} events instead of {len(must)}; {where}")
            elif len(found) > len(may):
                self._too_many(name, found, may, where)
            elif len(may) == len(must):
                self._match(name, found, must)
        for identity, found in self._events.items():
            if self._may_have_been_cut(identity[1]):
                self.report.of_cut += [f"{identity[1]} in {each.text}" for each in found]
            else:
                self._unexpected(f"{identity}: no record in deliveries matches; {found[0].text}")

    def _too_many(self, name, found, may, where):
        text = f"{name}: {len(found)} events instead of {len(may)}: {', '.join(each.text for each in found)}; {where}"
        if self._may_have_been_cut(name.partition(".")[0]) and len(found) - len(may) <= len(self.cuts):
            self.report.of_cut.append(text)
        elif not may:
            self._unexpected(text)
        else:
            self.report.duplicated.append(text)

    def _match(self, name, found, must):
        """Check that each event was made from the first copy, whose time it has."""
        for event, entry in zip(found, must):
            signed = datetime.datetime.fromtimestamp(int(entry.signed), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            if event.signed != signed and not self.cuts:
                self._unexpected(f"{name} in {event.text}: ce_time {event.signed} is not that of {_entry_text(entry)}")
            self._origins[event.place] = event, entry

    def _check_releases(self):
        """Check that each release is of a record in quarantine."""
        for identity, entries in self.oracle.by_identity.items():
            if identity[2] and self._releasable.get(identity[2]) != entries[0].original:
                self._unexpected(f"{identity[1]}: {_entry_text(entries[0])} is not the record in quarantine at {identity[2]}")

    def _check_acknowledged(self):
        """Check that each delivery that was answered 200 is in `deliveries`."""
        logged = {(entry.identity[1], entry.origin) for entry in self.oracle.entries.values()}
        ledger = self.ledger
        state, follow_state = bytes(ledger.state), bytes(ledger.follow_state)
        for number, each in enumerate(state):
            if each == ACCEPTED:
                self._check_logged(logged, self.deliveries.id(number), (number, texts.MAIN), ledger.accepted_begun[number])
            if follow_state[number] == ACCEPTED:
                self._check_logged(logged, *self._follower(number), ledger.follow_begun[number])

    def _follower(self, number):
        """Return (delivery-id, origin) of the delivery that followed another one."""
        makes = self.deliveries.makes(number)
        if makes == texts.CONFLICT:
            return self.deliveries.id(number), (number, texts.OTHER)
        if makes == texts.REPLAY:
            return self.deliveries.replay_id(number), (number, texts.MAIN)
        return self.deliveries.id(self.ledger.follow_number[number]), (number, texts.MAIN)

    def _check_logged(self, logged, delivery_id, origin, begun):
        if (delivery_id, origin) in logged:
            return
        if self.cuts and begun <= max(cut.at for cut in self.cuts):
            self.report.cut.append(delivery_id)
        else:
            self.report.lost.append(f"{delivery_id}: answered 200 to an attempt begun at {clock(begun)}, is not in deliveries")

    def _check_order(self):
        """Check that events of the same key and the same partition of `deliveries` are in the order of that partition."""
        last = {}
        for place in sorted(self._origins):
            event, entry = self._origins[place]
            stream = place[:2] + (event.key, entry.place[0])
            before = last.get(stream)
            if before and before[1].place[1] > entry.place[1]:
                self.report.disordered.append(f"{entry.identity[1]} in {event.text} ({_entry_text(entry)}) is after "
                                              f"{before[1].identity[1]} in {before[0].text} ({_entry_text(before[1])})")
            last[stream] = event, entry
