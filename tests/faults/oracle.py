"""Determine the correct result of each record in `deliveries` from the README's guarantees. Shares no code with Gatepost."""

import dataclasses
import math

import deliveries as texts

DROP, EVENT = "drop", "event"
CONFLICTING, REPLAYED, UNKNOWN_SOURCE = "conflicting-body", "replayed-signature", "unknown-source"


@dataclasses.dataclass(slots=True)
class Entry:
    """A record of `deliveries`."""
    place: tuple  # (partition, offset)
    timestamp_ms: int
    identity: tuple  # (source, delivery-id, place of the released record or None)
    origin: tuple  # (number, variant) of its body
    signed: str  # the signed timestamp
    is_replay: bool  # its receiver saw the signature before, with another delivery-id
    digest: int  # of key, value and headers
    original: int  # the same, without the headers of replays and releases
    allowed: frozenset = frozenset()  # DROP, EVENT, or a reason of quarantine
    quarantined_at: list = dataclasses.field(default_factory=list)  # (partition, offset) in quarantine


def header(headers, name):
    """Return the last value of a header as text, or None if it is absent."""
    return next((value.decode(errors="replace") for each, value in reversed(headers) if each == name), None)


def original(headers):
    """Return the headers, except for replays and releases."""
    return [each for each in headers if each[0] not in ("gatepost-released", "gatepost-release-signature", "gatepost-replay-of")]


def digest(key, value, headers):
    return hash((key, value, tuple(headers)))


class Oracle:
    """Determines the results of the records of `deliveries`, which are added in the order of each partition."""

    def __init__(self, deliveries, window_seconds=math.inf, may_lack=None):
        """window_seconds: the dedup window. may_lack: sources that routers may not know, and until when."""
        self.deliveries = deliveries
        self.entries = {}  # by place
        self.by_identity = {}  # lists in the order of the log
        self.strange = []  # records that were never sent
        self._window_ms = window_seconds * 1000
        self._may_lack = may_lack or {}

    def add(self, message):
        headers = message.headers() or []
        place, delivery_id = (message.partition(), message.offset()), (message.key() or b"").decode(errors="replace")
        origin = self.deliveries.origin(message.value() or b"")
        if origin is None or self.deliveries.parse_id(delivery_id) is None:
            self.strange.append((place, delivery_id))
            return
        released = header(headers, "gatepost-released")
        identity = header(headers, "gatepost-source"), delivery_id, released
        entry = Entry(place, message.timestamp()[1], identity, origin, header(headers, "gatepost-timestamp"),
                      header(headers, "gatepost-replay-of") is not None and released is None,
                      digest(message.key(), message.value(), headers), digest(message.key(), message.value(), original(headers)))
        entry.allowed = frozenset(self._allowed(entry))
        self.entries[place] = entry
        self.by_identity.setdefault(identity, []).append(entry)

    def _fresh(self, entry):
        """Return the allowed results of the first record of an identity."""
        source = entry.identity[0]
        if source not in (texts.FIRST_SOURCE, texts.EXTRA_SOURCE):
            return {UNKNOWN_SOURCE}
        also = {UNKNOWN_SOURCE} if entry.timestamp_ms < self._may_lack.get(source, 0) * 1000 else set()
        if entry.is_replay:
            return {REPLAYED} | also
        return {self.deliveries.reason(entry.origin[0]) or EVENT} | also

    def _allowed(self, entry):
        earlier = self.by_identity.get(entry.identity, ())
        oldest_ms = entry.timestamp_ms - self._window_ms
        plain = [each for each in earlier if not each.is_replay]
        within = [each for each in plain if each.timestamp_ms >= oldest_ms]
        again = {DROP} if entry.is_replay and any(each.is_replay and each.origin == entry.origin and each.timestamp_ms >= oldest_ms
                                                  for each in earlier) else set()
        if not within:
            return self._fresh(entry) | again
        found = {DROP if any(each.origin == entry.origin for each in within) else CONFLICTING}
        if any(each.origin == entry.origin for each in plain):  # an older record may still be in the dedup table
            found.add(DROP)
        return found | {REPLAYED} | again if entry.is_replay else found

    def unnoticed_replays(self):
        """Return the replays with another id that no receiver noticed. Only a receiver that had forgotten the original, or
        never saw it, may accept them."""
        return [each for each in self.entries.values() if not each.is_replay and not each.identity[2]
                and self.deliveries.parse_id(each.identity[1]) != (each.origin[0], False)]
