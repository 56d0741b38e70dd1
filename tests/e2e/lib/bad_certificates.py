"""A service with a certificate that clients refuse."""

import contextlib

from authority import Authority
from fake_service import FakeService

# How it is issued, and whose authority ca_file has (None: it is not set).
BAD_CERTIFICATES = {
    "unknown authority": ({}, None),
    "another authority": ({}, "other"),
    "another host": ({"names": "DNS:another.example"}, "own"),
    "expired": ({"begin": "20200101000000Z", "end": "20200201000000Z"}, "own"),
    "of a client": ({"usage": "clientAuth"}, "own"),
}


@contextlib.contextmanager
def service_with_a_bad_certificate(tmp_path, what):
    """Yields the service, and ca_file or None."""
    certificate, whose = BAD_CERTIFICATES[what]
    authorities = {}
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
        authorities[name] = Authority(tmp_path / name)
    with FakeService(*authorities["own"].issue("service", **certificate), host="localhost") as service:
        yield service, authorities[whose].certificate if whose else None
