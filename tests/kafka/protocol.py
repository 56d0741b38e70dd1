"""The parts of Kafka's wire protocol that no client library offers, or not as simply."""

import socket
import struct

METADATA, LEAVE_GROUP = (3, 1), (13, 3)  # key and version of a request


def _string(text):
    return struct.pack(">h", len(text)) + text.encode()


def _receive(connection, n):
    data = b""
    while len(data) < n:
        more = connection.recv(n - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return data


def _ask(port, kind, body, timeout):
    """Return the answer of the broker on this port, from the correlation id on. Raises OSError if there is none."""
    request = struct.pack(">hhi", *kind, 1) + _string("gatepost-tests") + body
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.settimeout(timeout)
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _receive(connection, size)


def remove_member(port, group, instance, timeout=10.0):
    """Remove a static member from a group, whose coordinator is on this port (KIP-345). Returns Kafka's error codes."""
    members = struct.pack(">i", 1) + _string("") + _string(instance)
    answer = _ask(port, LEAVE_GROUP, _string(group) + members, timeout)
    (whole,) = struct.unpack_from(">h", answer, 8)
    return whole, struct.unpack(">h", answer[-2:])[0]


def known_brokers(port, timeout=2.0):
    """Return the node ids in the metadata of the broker on this port. Raises OSError if it does not answer."""
    answer = _ask(port, METADATA, struct.pack(">i", 0), timeout)  # no topics
    (count,) = struct.unpack_from(">i", answer, 4)
    at, ids = 8, set()
    for _ in range(count):
        node, host_len = struct.unpack_from(">ih", answer, at)
        at += 6 + host_len + 4
        (rack_len,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack_len, 0)
        ids.add(node)
    return ids
