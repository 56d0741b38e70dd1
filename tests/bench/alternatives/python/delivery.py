"""Checks of a delivery: valid signature, fresh timestamp, new id."""

import hmac
import time

REMEMBER_FOR_S = 24 * 3600


class Checks:
    def __init__(self, secret: bytes, tolerance_s: int):
        self._secret = secret
        self._tolerance_s = tolerance_s

    def is_genuine(self, signature: bytes, timestamp: bytes, body: bytes) -> bool:
        expected = b"sha256=" + hmac.digest(self._secret, timestamp + b"." + body, "sha256").hex().encode()
        return hmac.compare_digest(expected, signature)

    def is_fresh(self, timestamp: bytes) -> bool:
        return timestamp.isdigit() and abs(int(time.time()) - int(timestamp)) <= self._tolerance_s


class Memory:
    """The ids published by this process; a dict keeps insertion order."""

    def __init__(self):
        self._seen: dict[bytes, float] = {}

    def __contains__(self, delivery_id: bytes) -> bool:
        return delivery_id in self._seen

    def add(self, delivery_id: bytes) -> None:
        self._seen[delivery_id] = time.monotonic()

    def forget(self) -> None:
        oldest = time.monotonic() - REMEMBER_FOR_S
        expired = []
        for delivery_id, at in self._seen.items():
            if at >= oldest:
                break
            expired.append(delivery_id)
        for delivery_id in expired:
            del self._seen[delivery_id]
