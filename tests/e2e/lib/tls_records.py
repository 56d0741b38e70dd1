"""A TLS 1.3 client that creates its own records after the handshake, to send data that no TLS library sends."""

import os
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from raw_tls import RawTls

HANDSHAKE, APPLICATION_DATA = 22, 23
KEY_UPDATE = b"\x18\x00\x00\x01\x01"  # update_requested: the peer must answer with a KeyUpdate of its own


def expand_label(secret, label, length, algorithm):
    """HKDF-Expand-Label with an empty context (RFC 8446 section 7.1)."""
    label = b"tls13 " + label
    return HKDFExpand(algorithm, length, struct.pack(">HB", length, len(label)) + label + b"\0").derive(secret)


class TlsRecords(RawTls):
    """tls must be a context for TLS 1.3 only, with `keylog_filename` set."""

    def __init__(self, address, tls):
        super().__init__(address, tls)
        cipher = self.session.cipher()[0]
        assert "AES" in cipher and "GCM" in cipher, cipher
        self._algorithm = hashes.SHA384() if "SHA384" in cipher else hashes.SHA256()
        self._key_length = 32 if "AES_256" in cipher else 16
        with open(tls.keylog_filename) as file:
            secrets = dict((line.split()[0], line.split()[2]) for line in file if line[0] != "#")
        os.unlink(tls.keylog_filename)
        self._use(bytes.fromhex(secrets["CLIENT_TRAFFIC_SECRET_0"]))

    def _use(self, secret):
        self._secret = secret
        self._key = AESGCM(expand_label(secret, b"key", self._key_length, self._algorithm))
        self._nonce = int.from_bytes(expand_label(secret, b"iv", 12, self._algorithm), "big")
        self._sequence = 0

    def record(self, content, kind=APPLICATION_DATA):
        """An encrypted record (RFC 8446 section 5.2)."""
        plain = content + bytes([kind])
        header = b"\x17\x03\x03" + struct.pack(">H", len(plain) + 16)
        nonce = (self._nonce ^ self._sequence).to_bytes(12, "big")
        self._sequence += 1
        return header + self._key.encrypt(nonce, plain, header)

    def update_keys(self):
        """Switch to the keys that follow a KeyUpdate."""
        self._use(expand_label(self._secret, b"traffic upd", self._algorithm.digest_size, self._algorithm))

    def key_update(self):
        update = self.record(KEY_UPDATE, HANDSHAKE)
        self.update_keys()
        return update
