"""The format of a spool, written from gatepost-spool(5) and independent of Gatepost's code."""

import dataclasses
import hashlib
import hmac
import os
import pathlib
import struct
import time

HEADER_SIZE, HEAD_SIZE = 32, 48


def _table():
    for each in range(256):
        for _ in range(8):
            each = each >> 1 ^ (0x82F63B78 if each & 1 else 0)
        yield each


TABLE = list(_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283  # RFC 3720


def rfc3339(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03}Z"


def pack_fields(fields):
    """Fields from (name, value), both bytes."""
    return b"".join(struct.pack("<HH", len(name) + 1, len(value)) + name + b"\0" + value for name, value in fields)


def unpack_fields(data):
    fields, at = [], 0
    while at < len(data):
        name_size, value_size = struct.unpack_from("<HH", data, at)
        name = data[at + 4:at + 4 + name_size]
        value = data[at + 4 + name_size:at + 4 + name_size + value_size]
        assert name.endswith(b"\0") and len(value) == value_size, f"field at {at}"
        fields.append((name[:-1], value))
        at += 4 + name_size + value_size
    return fields


@dataclasses.dataclass
class Stored:
    """A record that was read."""
    offset: int
    received_ms: int
    synced: int
    fields: list
    body: bytes

    @property
    def key(self):
        return dict(self.fields)[b""].decode()

    def header(self, name):
        return {each.decode(): value.decode() for each, value in self.fields}.get(name)


class Segment:
    """A segment that a test writes, record by record."""

    def __init__(self, id=None):
        self.id = id or os.urandom(8)
        self.data = b"GPSPOOL1" + struct.pack("<II", HEADER_SIZE, 0) + self.id + bytes(4)
        self.data += struct.pack("<I", crc32c(self.data))
        self.synced = 0
        self.offsets = []

    def _append(self, received_ms, fields, body):
        head = b"GPRC" + struct.pack("<I", len(fields)) + self.id + struct.pack("<QQQI", len(body), self.synced, received_ms,
                                                                              crc32c(fields + body))
        head += struct.pack("<I", crc32c(struct.pack("<Q", len(self.data)) + head))
        record = head + fields + body
        self.offsets.append(len(self.data))
        self.data += record + bytes(-len(record) % 8)

    def add_raw(self, fields, body, received_ms):
        """Add a record with these fields, as it was written and not yet synced."""
        self._append(received_ms, fields, body)
        return self

    def add(self, delivery, received_ms=None, source="invoicing", key=None):
        """Add the record of a delivery that was received now or at this time."""
        received_ms = int(time.time() * 1000) if received_ms is None else received_ms
        received = rfc3339(received_ms)
        signed = f"spool.{received}.{source}.{delivery.timestamp}.{len(delivery.delivery_id)}.{delivery.delivery_id}"
        signed += delivery.signature
        headers = {"source": source, "webhook-id": delivery.webhook_id, "timestamp": str(delivery.timestamp),
                   "signature": delivery.signature, "received": received, "request-id": "test", "instance": "test",
                   "spool-signature": "sha256=" + hmac.new(delivery.secret, signed.encode(), hashlib.sha256).hexdigest()}
        fields = [(b"", (delivery.delivery_id if key is None else key).encode())]
        fields += [(f"gatepost-{name}".encode(), value.encode()) for name, value in headers.items()]
        return self.add_raw(pack_fields(fields), delivery.body, received_ms)

    def sync(self):
        """All records so far are on the disk."""
        self.synced = len(self.data)
        return self

    def seal(self):
        """End the segment."""
        self.sync()
        self._append(0, b"", b"")
        self.offsets.pop()
        return self

    def write(self, directory, number):
        path = pathlib.Path(directory) / name_of(number)
        path.write_bytes(self.data)
        path.chmod(0o600)
        return path


def name_of(number):
    return f"{number:016x}.spool"


def records_in(data):
    """Read the intact records of a segment as gatepost-spool(5), RECOVERY, says."""
    has_header = len(data) >= HEADER_SIZE and data[:8] == b"GPSPOOL1" and \
        struct.unpack_from("<I", data, 28)[0] == crc32c(data[:28])
    id, at, records = data[16:24] if has_header else None, HEADER_SIZE, []
    while at + HEAD_SIZE <= len(data):
        head = data[at:at + HEAD_SIZE]
        magic, n_fields, record_id, n_body, synced, received_ms, crc, head_crc = struct.unpack("<4sI8sQQQII", head)
        if magic != b"GPRC" or head_crc != crc32c(struct.pack("<Q", at) + head[:44]) or id not in (None, record_id):
            at += 8
            continue
        content = data[at + HEAD_SIZE:at + HEAD_SIZE + n_fields + n_body]
        if n_fields and len(content) == n_fields + n_body and crc == crc32c(content):
            records.append(Stored(at, received_ms, synced, unpack_fields(content[:n_fields]), content[n_fields:]))
        at += (HEAD_SIZE + n_fields + n_body + 7) // 8 * 8
    return records


def read_directory(directory):
    """The intact records of all segments, by their names."""
    return {path.name: records_in(path.read_bytes()) for path in sorted(pathlib.Path(directory).glob("*.spool*"))}
