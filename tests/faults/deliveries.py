"""The deliveries of a run, by number. A delivery is a function of its number and the run's name, so that sender and checker
agree without communication."""

import json
import re
import zlib

from signing import KINDS, Delivery, event_topic

SECRETS = [f"secret number {number} of the fault harness, long enough".encode() for number in range(1000)]
MAIN, OTHER = 0, 1  # bodies with the same delivery-id: the genuine one, and a conflicting one

# Kinds of trouble that a delivery causes by itself, and the share of deliveries that cause them.
MALFORMED, MISSING, UNKNOWN, INVALID = "malformed-json", "missing-kind", "unknown-kind", "invalid-field"
CONFLICT, REPLAY, STOLEN_ID = "conflict", "replay", "stolen-id"
BAD_BODIES = (MALFORMED, MISSING, UNKNOWN, INVALID)
SHARES = {**dict.fromkeys(BAD_BODIES, 0.01), CONFLICT: 0.02, REPLAY: 0.02, STOLEN_ID: 0.01}
TROUBLE = frozenset(SHARES)
LARGE_SHARE = 0.004
EXTRA_SHARE = 0.1
FIRST_SOURCE, EXTRA_SOURCE = "invoicing", "extra"

ORIGIN = re.compile(rb"INV-(\d+)-(\d)")


def _chance(*what):
    """Return a pseudorandom number in [0, 1), a function of the arguments."""
    return zlib.crc32("-".join(map(str, what)).encode()) / (1 << 32)


class Deliveries:
    """trouble: the kinds of SHARES that occur. large: size of the largest bodies in bytes, 0 for none. has_extra: whether
    some deliveries are from a second source."""

    def __init__(self, run, size=300, trouble=TROUBLE, large=0, has_extra=False):
        self.run = run
        self.size = size
        self.trouble = frozenset(trouble)
        self.large = large
        self.has_extra = has_extra
        self._id = re.compile(rf"{run}(r?)-(\d+)")

    def id(self, number):
        return f"{self.run}-{number}"

    def replay_id(self, number):
        """Return the delivery-id under which a captured delivery is replayed."""
        return f"{self.run}r-{number}"

    def parse_id(self, delivery_id):
        """Return (number, whether the id is that of a replay), or None if the id is not of this run."""
        match = self._id.fullmatch(delivery_id)
        return (int(match[2]), bool(match[1])) if match else None

    def makes(self, number):
        """Return the kind of trouble that a delivery causes, or None."""
        at = _chance(self.run, number, "trouble")
        for name, share in SHARES.items():
            if at < share:
                return name if name in self.trouble else None
            at -= share
        return None

    def source(self, number):
        is_extra = self.has_extra and _chance(self.run, number, "source") < EXTRA_SHARE
        return EXTRA_SOURCE if is_extra else FIRST_SOURCE

    def kind(self, number):
        return KINDS[number % len(KINDS)]

    def topic(self, number):
        return event_topic(self.kind(number))

    def reason(self, number):
        """Return the reason for which the body is quarantined, or None."""
        makes = self.makes(number)
        return makes if makes in BAD_BODIES else None

    def body(self, number, variant=MAIN):
        members = {"event": self.kind(number), "invoiceId": f"INV-{number}-{variant}", "text": "x" * self._size(number)}
        reason = self.reason(number)
        if reason == MISSING:
            del members["event"]
        elif reason == UNKNOWN:
            members["event"] = "invoice.of_an_unknown_kind"
        elif reason == INVALID:
            members["terminal"] = "no boolean"
        text = json.dumps(members).encode()
        return text[:-1] if reason == MALFORMED else text

    def _size(self, number):
        at = _chance(self.run, number, "size")
        return int(self.large * (0.4 + 0.6 * at / LARGE_SHARE)) if self.large and at < LARGE_SHARE else self.size

    def origin(self, body):
        """Return (number, variant) of a body, or None if it is not exactly a body of this run."""
        match = ORIGIN.search(body)
        origin = (int(match[1]), int(match[2])) if match else None
        return origin if origin and body == self.body(*origin) else None

    def delivery(self, number, timestamp, variant=MAIN, delivery_id=None, secret=0):
        return Delivery(self.body(number, variant), delivery_id or self.id(number), timestamp=timestamp,
                        secret=SECRETS[secret])

    def forged(self, number):
        return Delivery(self.body(number), f"forged-{number}", secret=b"not the secret of the source")
