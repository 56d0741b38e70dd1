"""Deliveries signed like the service does; written from the interface description, independent of Gatepost's code."""

import dataclasses
import hashlib
import hmac
import itertools
import json
import time
import uuid

SECRET = b"a secret of the tests, long enough"
KINDS = ["invoice.accepted", "invoice.rejected", "invoice.received", "invoice.duplicate", "invoice.pending",
         "invoice.amended", "invoice.cancelled", "held_unmapped_decision", "reporting_batch.ready_for_review",
         "reporting_batch.deadline_approaching", "reporting_batch.deadline_passed", "reporting_batch.overdue"]

_numbers = itertools.count(1)


def hmac_sha256(secret, timestamp, body):
    return hmac.new(secret, str(timestamp).encode() + b"." + body, hashlib.sha256).hexdigest()


def unique():
    return str(uuid.uuid4())


def now():
    return int(time.time())


def event_body(kind="invoice.accepted", **members):
    """A small, unique genuine body."""
    return json.dumps({"event": kind, "invoiceId": f"INV-{next(_numbers)}", **members}).encode()


def event_topic(kind):
    """The default topic of a kind, without the prefix."""
    return "reporting_batch" if kind.startswith("reporting_batch.") else kind


@dataclasses.dataclass(frozen=True)
class Delivery:
    body: bytes = dataclasses.field(default_factory=event_body)
    delivery_id: str = dataclasses.field(default_factory=unique)
    webhook_id: str = "6f0d2c1e-0000-4000-8000-000000000001"
    timestamp: int = dataclasses.field(default_factory=now)
    secret: bytes = SECRET

    @property
    def signature(self):
        return "sha256=" + hmac_sha256(self.secret, self.timestamp, self.body)

    def headers(self, prefix="x-invoicing"):
        return {f"{prefix}-signature": self.signature, f"{prefix}-timestamp": str(self.timestamp),
                f"{prefix}-webhook-id": self.webhook_id, f"{prefix}-delivery-id": self.delivery_id}

    def signed_again(self):
        """The same delivery as sent by a later attempt."""
        return dataclasses.replace(self, timestamp=self.timestamp + 1)

    def but(self, **changes):
        return dataclasses.replace(self, **changes)
