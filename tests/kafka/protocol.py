"""The part of Kafka's wire protocol that asks a broker for the brokers it knows."""

import socket
import struct

METADATA, VERSION = 3, 1


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


def known_brokers(port, timeout=2.0):
    """Return the node ids in the metadata of the broker on this port. Raises OSError if it does not answer."""
    no_topics = struct.pack(">i", 0)
    request = struct.pack(">hhi", METADATA, VERSION, 1) + _string("gatepost-tests") + no_topics
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.settimeout(timeout)
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        answer = _receive(connection, size)
    (count,) = struct.unpack_from(">i", answer, 4)
    at, ids = 8, set()
    for _ in range(count):
        node, host_len = struct.unpack_from(">ih", answer, at)
        at += 6 + host_len + 4
        (rack_len,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack_len, 0)
        ids.add(node)
    return ids
