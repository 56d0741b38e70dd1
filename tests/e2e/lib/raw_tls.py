"""A TLS client that controls which records share a segment and how its connection ends; requests as bytes."""

import contextlib
import socket
import ssl
import struct

import http_client

PATH = "/webhooks/invoicing"
PROXY_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def head(delivery, *more):
    """The request of a delivery up to its body, with additional header lines."""
    lines = [f"POST {PATH} HTTP/1.1", "host: localhost", *(f"{name}: {value}" for name, value in
                                                          delivery.headers().items()), *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def whole(delivery, *more):
    return head(delivery, f"content-length: {len(delivery.body)}", *more) + delivery.body


def proxy_header(client, command=1, family=0x11, tail=b""):
    """A PROXY protocol v2 header that names a client."""
    addresses = socket.inet_aton(client) + socket.inet_aton("10.9.9.9") + struct.pack(">HH", 4711, 443) + tail
    return PROXY_SIGNATURE + struct.pack(">BBH", 0x20 | command, family, len(addresses)) + addresses


class RawTls:
    """Written data is buffered until send()."""

    def __init__(self, address, tls, timeout=http_client.TIMEOUT, preface=b""):
        """preface: bytes sent before TLS, in one segment with the ClientHello."""
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.outgoing.write(preface)
        self.session = tls.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.socket = http_client.connect(address, timeout)
        try:
            self._shake_hands()
        except OSError:
            self.socket.close()
            raise

    def _shake_hands(self):
        while True:
            try:
                self.session.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.send()
                data = self.socket.recv(65536)
                if not data:
                    raise ConnectionResetError("the server ended the handshake") from None
                self.incoming.write(data)
        self.send()

    def write(self, data):
        self.session.write(data)
        return self

    def write_raw(self, data):
        """Append raw bytes behind the records."""
        self.outgoing.write(data)
        return self

    def close_notify(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self.session.unwrap()
        return self

    def send(self):
        """Send all records written so far in one call."""
        self.socket.sendall(self.outgoing.read())

    def read(self):
        """Read data from the server; b"" at the end."""
        while True:
            try:
                return self.session.read(65536)
            except ssl.SSLWantReadError:
                data = self.socket.recv(65536)
                if not data:
                    return b""
                self.incoming.write(data)
            except ssl.SSLZeroReturnError:
                return b""

    def wait_for_end(self):
        """Read until the server has closed the connection."""
        with contextlib.suppress(ConnectionResetError):
            while self.socket.recv(65536):
                pass
        self.socket.close()

    def reset(self):
        """Close with a reset; bytes that the peer has not read are lost."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()


class RawPlain(RawTls):
    """The same without TLS."""

    def __init__(self, address, timeout=http_client.TIMEOUT, preface=b""):
        self.outgoing = ssl.MemoryBIO()
        self.outgoing.write(preface)
        self.socket = http_client.connect(address, timeout)

    def write(self, data):
        return self.write_raw(data)

    def close_notify(self):
        return self

    def read(self):
        return self.socket.recv(65536)
