"""A service with a certificate that clients refuse, and what Gatepost recommends."""

import contextlib

from authority import Authority
from fake_service import FakeService

RENEW = "check this machine's clock; if it is right, the service, or its authority, needs a new certificate"

# How it is issued, whose authority ca_file has (None: it is not set), and the remedy.
BAD_CERTIFICATES = {
    "unknown authority": ({}, None, "if your own authority, or a proxy's, signs the service's certificate, set ca_file in [service]"),
    "another authority": ({}, "other", "ca_file in [service] does not have the authority of the service's certificate: add it, or remove ca_file"),
    "another host": ({"names": "DNS:another.example"}, "own", "check base_url in [service]: the service's certificate is not for its host"),
    "expired": ({"begin": "20200101000000Z", "end": "20200201000000Z"}, "own", RENEW),
    "not yet valid": ({"begin": "20900101000000Z", "end": "20910101000000Z"}, "own", RENEW),
    "of a client": ({"usage": "clientAuth"}, "own", "the service needs another certificate"),
}


@contextlib.contextmanager
def service_with_a_bad_certificate(tmp_path, what):
    """Yields the service, ca_file or None, and the remedy."""
    certificate, whose, remedy = BAD_CERTIFICATES[what]
    authorities = {}
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
        authorities[name] = Authority(tmp_path / name)
    with FakeService(*authorities["own"].issue("service", **certificate), host="localhost") as service:
        yield service, authorities[whose].certificate if whose else None, remedy
