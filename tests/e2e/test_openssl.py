"""OpenSSL without some algorithms: FIPS mode has no Poly1305, and a misconfigured OpenSSL has none at all."""

import pytest

import preload
from authority import Authority
from signing import Delivery, event_body

EX_CONFIG = 78


def openssl_conf(directory, text):
    path = directory / "openssl.cnf"
    path.write_text("openssl_conf = settings\n" + text)
    return {"OPENSSL_CONF": str(path)}


@pytest.fixture
def no_poly1305(tmp_path):
    """The environment of a process whose OpenSSL lacks Poly1305."""
    provider = preload.build("no_poly1305", tmp_path)
    return openssl_conf(tmp_path, f"[settings]\nproviders = providers\n[providers]\nno_poly1305 = chosen\n"
                                  f"[chosen]\nmodule = {provider}\nactivate = 1\n")


def test_deliveries_are_routed_once_without_poly1305(installation, tmp_path, no_poly1305):
    """Over TLS, with repeats, a conflict, a restart and an audit."""
    authority = Authority(tmp_path)
    config = installation.config().tls(*authority.issue("gateway"))
    installation.create_topics(config)
    daemon = installation.daemon(config)
    daemon.environment = no_poly1305
    daemon.start().wait_until_ready()
    deliveries = [daemon.accept(tls=authority.client()) for _ in range(5)]
    installation.kafka.wait_until_routed()
    daemon.stop()
    daemon.restart()
    for delivery in deliveries:
        daemon.accept(delivery.signed_again(), tls=authority.client())
    daemon.accept(deliveries[0].but(body=event_body()), tls=authority.client())
    assert daemon.post(Delivery(secret=b"not the secret that was agreed on"), tls=authority.client()).status == 401
    installation.kafka.wait_until_routed()
    records = installation.kafka.read()
    assert sorted(each.value for each in records if each.topic != installation.kafka.quarantine) == \
        sorted(delivery.body for delivery in deliveries)
    assert [each.header("gatepost-reason") for each in records if each.topic == installation.kafka.quarantine] == \
        ["conflicting-body"]
    done = installation.gatepost("audit", config=config, environment=no_poly1305)
    assert done.returncode == 0, done.stdout + done.stderr


def test_unavailable_algorithm_is_named(offline, tmp_path):
    """No provider has the property, so that nothing can be fetched."""
    environment = openssl_conf(tmp_path, "[settings]\nalg_section = algorithms\n[algorithms]\n"
                                         "default_properties = provider=none-such\n")
    done = offline.gatepost("check", environment=environment)
    assert done.returncode == EX_CONFIG, done.stderr
    assert "cannot use the secret: OpenSSL: unsupported: " in done.stderr and "HMAC" in done.stderr
    assert "out of memory" not in done.stderr
