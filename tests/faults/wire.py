"""The headers of Kafka's requests and responses, and the fields that a proxy needs in order to act on them."""

import dataclasses
import struct
import time

APIS = {"Produce": 0, "Fetch": 1, "ListOffsets": 2, "Metadata": 3, "OffsetCommit": 8, "OffsetFetch": 9,
        "FindCoordinator": 10, "JoinGroup": 11, "Heartbeat": 12, "LeaveGroup": 13, "SyncGroup": 14, "ApiVersions": 18,
        "InitProducerId": 22, "OffsetForLeaderEpoch": 23, "AddPartitionsToTxn": 24, "AddOffsetsToTxn": 25, "EndTxn": 26, "TxnOffsetCommit": 28}
NAMES = {key: name for name, key in APIS.items()}

# Responses that begin with throttle time and an error code: the first version that does, and the first version that is
# flexible (has tagged fields in its header, KIP-482).
WITH_ERROR = {"JoinGroup": (2, 6), "Heartbeat": (1, 4), "LeaveGroup": (1, 4), "SyncGroup": (1, 4),
              "InitProducerId": (0, 2), "FindCoordinator": (1, 3), "AddOffsetsToTxn": (0, 3), "EndTxn": (0, 3)}


@dataclasses.dataclass(frozen=True)
class Request:
    node: int
    api: str
    version: int
    correlation: int
    frame: bytes  # including the length
    seconds: float = dataclasses.field(default_factory=time.monotonic)  # when it was seen

    @classmethod
    def parse(cls, node, frame):
        key, version, correlation = struct.unpack_from(">hhi", frame, 4)
        return cls(node, NAMES.get(key, f"api {key}"), version, correlation, frame)

    def mentions(self, text):
        """Return whether the request contains a name, such as a topic's or a transactional id."""
        return text.encode() in self.frame

    @property
    def client(self):
        """Return the client.id in the header."""
        (length,) = struct.unpack_from(">h", self.frame, 12)
        return self.frame[14:14 + max(length, 0)].decode(errors="replace")

    @property
    def commits(self):
        """Return whether an EndTxn request commits. The flag is last, before the tagged fields of flexible versions."""
        return self.frame[-2 if self.version >= WITH_ERROR["EndTxn"][1] else -1] == 1

    def refused_produce(self, error):
        """Make an error response to this Produce request of one partition."""
        assert self.api == "Produce", self
        if self.version >= 9:
            return self._refused_flexible_produce(error)
        assert 5 <= self.version <= 7, self
        at = 14 + len(self.client)
        (id_length,) = struct.unpack_from(">h", self.frame, at)
        at += 2 + max(id_length, 0) + 2 + 4 + 4  # transactional id, acks, timeout, number of topics
        (name_length,) = struct.unpack_from(">h", self.frame, at)
        name = self.frame[at:at + 2 + name_length]
        (partition,) = struct.unpack_from(">i", self.frame, at + len(name) + 4)
        body = struct.pack(">ii", self.correlation, 1) + name + struct.pack(">iihqqqi", 1, partition, error, -1, -1, -1, 0)
        return struct.pack(">i", len(body)) + body

    def _refused_flexible_produce(self, error):
        """Like refused_produce(), for flexible versions: lengths are varints (one byte here) of the length plus one."""
        assert self.version <= 12, self
        at = 14 + len(self.client) + 1
        at += max(self.frame[at], 1) + 2 + 4 + 1  # transactional id, acks, timeout, number of topics
        name = self.frame[at:at + self.frame[at]]
        (partition,) = struct.unpack_from(">i", self.frame, at + len(name) + 1)
        refused = struct.pack(">ihqqqBBB", partition, error, -1, -1, -1, 1, 0, 0)  # no record errors, no message, no tagged fields
        body = struct.pack(">iBB", self.correlation, 0, 2) + name + b"\2" + refused + b"\0" + struct.pack(">iB", 0, 0)
        return struct.pack(">i", len(body)) + body

    def __str__(self):
        return f"node {self.node} {self.api} v{self.version} #{self.correlation}"


@dataclasses.dataclass(frozen=True)
class Response:
    request: Request
    frame: bytes

    @property
    def _error_at(self):
        """Return the offset of the error code (of the last partition, if there are several), or None if unknown."""
        if self.request.api == "AddPartitionsToTxn" and self.request.version < 3:
            return len(self.frame) - 2
        first, flexible = WITH_ERROR.get(self.request.api, (1 << 15, 0))
        if self.request.version < first:
            return None
        header = 9 if self.request.version >= flexible else 8  # brokers send no tagged fields there
        return header + 4

    @property
    def error(self):
        """Return the error code (0: none), or None if its offset is unknown."""
        at = self._error_at
        return None if at is None else struct.unpack_from(">h", self.frame, at)[0]

    def with_error(self, error):
        """Return the frame with a different error code."""
        at = self._error_at
        assert at is not None, f"{self.request} has no error code"
        return self.frame[:at] + struct.pack(">h", error) + self.frame[at + 2:]


def correlation_of(frame):
    """Return the correlation id of a response."""
    return struct.unpack_from(">i", frame, 4)[0]


async def read_frame(reader):
    """Read the next request or response, including its length. Raises asyncio.IncompleteReadError at the end of the stream."""
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])
