"""gatepost doctor at a Kafka with TLS, logins and permissions."""

import os
import pathlib
import shlex
import subprocess

import pytest
from cluster import Cluster
from confluent_kafka import Producer

import waiting
from accounts import Accounts, bindings_of
from audit_side import drop_first
from authority import Authority
from checkup import (EX_CONFIG, EX_NOPERM, EX_UNAVAILABLE, RESTART, by_sockets, examine, expect, file_of, told_of_files,
                     wait_for_trouble)
from installation import Installation

NAMES = ("gatepost-receiver", "gatepost-router")


@pytest.fixture(scope="module")
def secured(authority):
    with Cluster(secured=authority.issue_joined("broker", names="IP:127.0.0.1", days=60),
                 passwords={name: Accounts.password(name) for name in NAMES}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def site(secured, authority, tmp_path_factory):
    each = Installation(tmp_path_factory.mktemp("site"), secured.bootstrap)
    each.accounts = Accounts(secured, authority, each.directory, each.prefix)
    each.bindings = each.accounts.grant_all()
    each.create_topics(partitions=1)
    yield each
    each.clean_up()


def secured_config(site, role="router", mechanism="PLAIN"):
    return site.accounts.use(by_sockets(site, role), f"gatepost-{role}", mechanism)


@pytest.mark.parametrize("role", ["receiver", "router"])
def test_permissions_of_the_guide_are_enough(site, role):
    checkup = examine(site, secured_config(site, role), "--no-send")
    kafka = [line for line in checkup.lines if line[2:].startswith(("resolve", "connect", "tls", "login", "client", "permission", "topic"))]
    assert len(kafka) > 6 and all(line.startswith("✓ ") for line in kafka), checkup.lines
    assert any(line.startswith("✓ tls ") and "TLSv1" in line for line in kafka)


@pytest.fixture
def without(site):
    """A function that takes a permission away until the end of the test."""
    revoked = []

    def revoke(account, resource, operation):
        (binding,) = [each for each in site.bindings if each.principal == f"User:{account}" and each.operation.name == operation
                      and f"{each.restype.name} {each.name}".endswith(resource)]
        site.accounts.revoke(binding)
        revoked.append(binding)
    yield revoke
    for binding in revoked:
        site.accounts.grant(binding)


DENIED = [("receiver", ".deliveries", "WRITE", "topic", ".deliveries", "Write"),
          ("router", ".deliveries", "READ", "topic", ".deliveries", "Read"),
          ("router", ".quarantine", "WRITE", "topic", ".quarantine", "Write"),
          ("router", ".invoice.", "WRITE", "topic", ".invoice.accepted", "Write"),
          ("router", "GROUP {}.router", "READ", "group", ".router", "Read"),
          ("router", ".router-", "WRITE", "transactional-id", ".router-", "Write")]


@pytest.mark.parametrize("role, resource, operation, option, name, word", DENIED)
def test_missing_permission(site, without, role, resource, operation, option, name, word):
    without(f"gatepost-{role}", resource.format(site.prefix), operation)
    expect(examine(site, secured_config(site, role)), EX_NOPERM, f"permission {option} {site.prefix}{name}",
           f"lacks the permission {word}", f"--operation {word} --{option} {site.prefix}{name}")


def test_command_that_grants_a_missing_permission(site, without):
    """As printed, by Kafka's own tool."""
    without("gatepost-router", ".quarantine", "WRITE")
    remedy = examine(site, secured_config(site), "--no-send").cause.partition("; remedy: ")[2]
    command = shlex.split(remedy.partition("; ")[0])
    granted = bindings_of(command)
    try:
        site.accounts.run_all([command], site.prefix)
        told = f"✓ permission topic {site.prefix}.quarantine: Write, DescribeConfigs"
        waiting.until(lambda: told in examine(site, secured_config(site), "--no-send").lines, 30, "the permission")
    finally:
        for binding in granted:
            site.accounts.revoke(binding)


def test_unreadable_settings_are_a_warning(site, without):
    without("gatepost-router", ".quarantine", "DESCRIBE_CONFIGS")
    checkup = examine(site, secured_config(site), "--no-send")
    assert any(line.startswith(f"! permission topic {site.prefix}.quarantine: without DescribeConfigs") for line in checkup.lines)


def test_unreadable_settings_are_a_warning_for_a_receiver(site, without):
    without("gatepost-receiver", ".deliveries", "DESCRIBE_CONFIGS")
    (line,) = [each for each in examine(site, secured_config(site, "receiver"), "--no-send").lines if each[2:].startswith("topic ")]
    assert line == f"! topic {site.prefix}.deliveries: its settings may not be read, so they are not checked; allow the account DescribeConfigs on it"


def spoil_password(site, config, authority):
    config["kafka"]["sasl.password_file"] = config.secret_file("password", b"wrong")


def spoil_user(site, config, authority):
    config["kafka"]["sasl.username"] = "nobody"


def spoil_authority(site, config, authority):
    directory = config.directory / "other"
    directory.mkdir()
    config["kafka"]["ssl.ca.location"] = Authority(directory).certificate


def spoil_name(site, config, authority):
    config["kafka"]["bootstrap.servers"] = config["kafka"]["bootstrap.servers"].replace("127.0.0.1", "localhost")


def spoil_tls(site, config, authority):
    config["kafka"]["security.protocol"] = "sasl_plaintext"


def spoil_login(site, config, authority):
    config.sections["kafka"] = {"bootstrap.servers": config["kafka"]["bootstrap.servers"], "security.protocol": "ssl",
                                "ssl.ca.location": authority.certificate}


def spoil_mechanism(site, config, authority):
    config["kafka"]["sasl.mechanism"] = "SCRAM-SHA-256"


LOGINS = [(spoil_password, EX_NOPERM, ("login ", "rejects the login of gatepost-router", "sasl.password_file")),
          (spoil_user, EX_NOPERM, ("login ", "rejects the login of nobody")),
          (spoil_authority, EX_UNAVAILABLE, ("tls ", "the broker's certificate: ", "ssl.ca.location")),
          (spoil_name, EX_UNAVAILABLE, ("tls localhost:", "hostname mismatch", "as its certificate does")),
          (spoil_tls, EX_CONFIG, ("this port speaks TLS", "security.protocol = sasl_ssl")),
          (spoil_login, EX_CONFIG, ("this port requires a login", "PLAIN", "sasl.mechanism")),
          (spoil_mechanism, EX_CONFIG, ("does not support sasl.mechanism = SCRAM-SHA-256", "SCRAM-SHA-512"))]


@pytest.mark.parametrize("spoil, status, words", LOGINS, ids=[each[0].__name__ for each in LOGINS])
def test_wrong_tls_or_login(site, authority, spoil, status, words):
    config = secured_config(site)
    spoil(site, config, authority)
    checkup = examine(site, config)
    expect(checkup, status, *words)
    assert b"wrong" not in "".join(checkup.lines).encode() or spoil is not spoil_password


def test_certificate_that_is_not_verified(site, authority):
    config = secured_config(site)
    spoil_authority(site, config, authority)
    config["kafka"]["enable.ssl.certificate.verification"] = "false"
    checkup = examine(site, config, "--no-send")
    assert any(line.startswith("✓ tls ") and line.endswith("certificate not verified") for line in checkup.lines), checkup.lines
    assert any(line.startswith("✓ client: ") for line in checkup.lines)


def test_scram_is_told_apart_from_librdkafka(site, new_library):
    """The check-up logs in by SCRAM itself, whether or not librdkafka can."""
    site.accounts.set_password("gatepost-router", Accounts.password("gatepost-router"))
    checkup = examine(site, secured_config(site, mechanism="SCRAM-SHA-512"), "--no-send", environment=new_library)
    assert any(line.startswith("✓ login ") and line.endswith("by SCRAM-SHA-512") for line in checkup.lines), checkup.lines
    assert any(line.startswith("✓ client: ") for line in checkup.lines)
    config = secured_config(site, mechanism="SCRAM-SHA-512")
    spoil_password(site, config, None)
    expect(examine(site, config, environment=new_library), EX_NOPERM, "rejects the login of gatepost-router by SCRAM-SHA-512")


def test_certificate_of_clients(authority, tmp_path, site, plain_build, monkeypatch):
    """A broker that requires one: without it, from files, and from a keystore. Its own one ends soon."""
    certificate, key = authority.issue("ending-broker", names="IP:127.0.0.1")
    both, listener = tmp_path / "both.pem", "listener.name.secured."
    both.write_text(key.read_text() + certificate.read_text())
    with Cluster(secured=both, passwords={name: Accounts.password(name) for name in NAMES}, properties={
            f"{listener}ssl.client.auth": "required", f"{listener}ssl.truststore.type": "PEM",
            f"{listener}ssl.truststore.location": str(authority.certificate)}) as cluster:
        config = secured_config(site)
        config["kafka"]["bootstrap.servers"] = cluster.secured_bootstrap
        expect(examine(site, config), EX_UNAVAILABLE, "no answer after the handshake of TLS: ", "certificate", "ssl.certificate.location")
        certificate, key = authority.issue("gatepost-router")
        key.chmod(0o600)
        config["kafka"].update({"ssl.certificate.location": certificate, "ssl.key.location": key})
        checkup = examine(site, config, "--no-send")
        assert f"✓ login {cluster.secured_bootstrap}: by PLAIN" in checkup.lines, checkup.lines
        ends = [line.partition(" expires in ")[0] for line in checkup.having("!") if line.endswith("; renew it" + ", then: systemctl restart gatepostd" * line.startswith("! certificate "))]
        assert ends == [f"! certificate {certificate}: the certificate for the brokers",
                        f"! tls {cluster.secured_bootstrap}: TLSv1.3, certificate verified; the broker's certificate"], checkup.lines
        certificate, key = authority.issue("gatepost-router", days=60)
        key.chmod(0o600)
        assert f"✓ certificate {certificate}: the certificate for the brokers is valid" in examine(site, config, "--no-send").lines
        store = tmp_path / "keystore.p12"
        subprocess.run(["openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-out", store, "-passout", "pass:of the store"],
                       check=True)
        store.chmod(0o600)
        del config["kafka"]["ssl.certificate.location"], config["kafka"]["ssl.key.location"]
        config["kafka"].update({"ssl.keystore.location": store,
                                "ssl.keystore.password_file": config.secret_file("store-password", b"of the store")})
        monkeypatch.setattr(site, "build", plain_build)  # librdkafka 2.0.2 leaks the certificate of a keystore
        checkup = examine(site, config, "--no-send")
        assert f"✓ login {cluster.secured_bootstrap}: by PLAIN" in checkup.lines, checkup.lines


def test_other_password_takes_effect_at_a_restart_only(site):
    config = secured_config(site)
    right, wrong = config["kafka"]["sasl.password_file"], config.secret_file("changing", b"not the password")
    config["kafka"]["sasl.password_file"] = wrong
    daemon = site.daemon(config).start()
    wait_for_trouble(daemon)
    pathlib.Path(wrong).write_bytes(pathlib.Path(right).read_bytes())
    os.utime(wrong, (0, 0))
    checkup = examine(site, file_of(daemon))
    expect(checkup, EX_UNAVAILABLE, "gatepostd does not reach Kafka (", f"it uses an earlier one; {wrong} has changed since its start")
    assert checkup.cause.endswith(f"; remedy: {RESTART}")
    assert told_of_files(checkup).startswith(f"! daemon configuration: {wrong} has changed since the start")
    daemon.stop()
    daemon.restart()
    assert not examine(site, file_of(daemon), "--no-send").having("!")


def test_quarantine_that_the_account_may_not_read_is_counted_by_its_ends(site):
    """The permissions of a router are enough for that."""
    router = site.start(secured_config(site))
    assert "✓ quarantine: no delivery quarantined within an hour" in examine(site, file_of(router), "--no-send").lines
    producer = Producer({"bootstrap.servers": site.bootstrap})
    for _ in range(3):
        producer.produce(site.kafka.quarantine, b"{}")
    producer.flush(30)
    (line,) = [line for line in examine(site, file_of(router), "--no-send").lines if line[2:].startswith("quarantine")]
    drop_first(site.kafka, site.kafka.quarantine, 3)
    router.stop()
    assert line.startswith("! quarantine: up to 3 deliveries quarantined within an hour, by any router; consumers do not get them"), line
