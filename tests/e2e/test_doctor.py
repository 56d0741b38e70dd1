"""gatepost doctor: a healthy installation, and for each kind of trouble the cause on the last line."""

import contextlib
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

import pytest
from cluster import Cluster
from confluent_kafka import Consumer, Producer, TopicPartition

import http_client
import protocol
import waiting
from accounts import Accounts
from audit_side import audit, drop_first
from authority import Authority
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from fake_service import FakeService, answers
from installation import BUILD, Installation
from manager import address_of, listening, pass_on
from preload import FakeClock
from reloading import refused, reload, send_sighup
from signing import SECRET, Delivery, event_body

EX_USAGE, EX_UNAVAILABLE, EX_TEMPFAIL, EX_NOPERM, EX_CONFIG = 64, 69, 75, 77, 78
UTF_8 = {"LC_ALL": "C.UTF-8"}
OTHER_SECRET = b"another secret, of the tests of doctor"


class Checkup:
    """A run of `gatepost doctor`."""

    def __init__(self, done):
        self.status, self.lines, self.stderr = done.returncode, done.stdout.splitlines(), done.stderr
        self.cause = self.lines[-1]

    def having(self, mark):
        return [line for line in self.lines if line.startswith(f"{mark} ")]


def examine(installation, config, *arguments, **options):
    """Run it with a configuration, or the file of a daemon."""
    done = installation.gatepost("doctor", *arguments, config=config, environment=UTF_8 | options.pop("environment", {}), **options)
    assert SECRET.decode() not in done.stdout + done.stderr
    return Checkup(done)


def expect(checkup, status, *words):
    """The cause is the last line, the first cross, and what depends on it is skipped."""
    assert checkup.status == status, checkup.lines
    assert checkup.cause.startswith("cause: ") and "; remedy: " in checkup.cause, checkup.cause
    for word in words:
        assert word in checkup.cause, checkup.cause
    first = checkup.having("✗")[0].removeprefix("✗ ")
    assert checkup.cause.startswith(f"cause: {first}; remedy: "), (first, checkup.cause)


@pytest.fixture
def service():
    with FakeService() as service:
        yield service


def by_sockets(installation, roles="receiver, router"):
    """A configuration whose listeners the command line can find, with nothing to warn of."""
    config = installation.config(roles)
    for section, name in (("receiver", "receiver.sock"), ("admin", "admin.sock")):
        config[section]["listen"] = f"unix:{config.directory}/{name}"
    config["source invoicing"]["key"] = "delivery-id"
    return config


def file_of(daemon):
    """The daemon's configuration file, which is not written again."""
    return str(daemon.config.directory / f"{daemon.name}.conf")


# A healthy installation

@pytest.fixture(scope="module")
def healthy(shared):
    config = by_sockets(shared)
    config["source invoicing"]["secret_file"] = [config["source invoicing"]["secret_file"], config.secret_file("next", OTHER_SECRET)]
    config["source invoicing"]["webhook_id"] = ["the-first", "the-second"]
    config.source("orders", b"the secret of the orders of the tests", kind="/meta/type", key="delivery-id")
    shared.create_topics(config)
    return shared.start(config)


def test_healthy_installation_gets_all_ticks_and_consumers_see_nothing(shared, healthy):
    checkup = examine(shared, file_of(healthy))
    assert (checkup.status, checkup.stderr) == (0, ""), checkup.lines
    assert [line for line in checkup.lines[:-2] if not line.startswith("✓ ")] == []
    assert checkup.cause == f"no trouble found: {len(checkup.lines) - 2} ok"
    text = "\n".join(checkup.lines)
    for step in ("configuration", "files", "resolve", "connect", "login", "client", "permission topic", "permission group", "group",
                 "permission transactional-id", "topic", "listen", "daemon /healthz", "daemon /readyz", "delivery", "router", "partitions", "clock"):
        assert f"\n✓ {step} " in f"\n{text}" or f"\n✓ {step}:" in f"\n{text}", step
    sent = [line for line in checkup.lines if line.startswith("✓ delivery ")]
    assert len(sent) == 3 and all("answered 200 in " in line for line in sent)
    assert "secret 2 of [source invoicing]" in sent[1] and "/webhooks/orders" in sent[2]
    shared.kafka.wait_until_routed()
    assert shared.kafka.read() == [] and shared.kafka.ends(shared.kafka.deliveries)
    waiting.until(lambda: healthy.metric("gatepost_test_deliveries_total") == 3 * 3, 30, "the test deliveries in the metrics")
    assert healthy.metric("gatepost_quarantined_total") == healthy.metric("gatepost_duplicates_total") == 0
    result = audit(shared, config=file_of(healthy))
    assert result.faults == (0, 0, 0) and result.report["expected"] == 0


def test_running_router_is_not_disturbed(shared, healthy):
    before, begun = shared.kafka.members(), len(healthy.log)
    for _ in range(3):
        assert examine(shared, file_of(healthy)).status == 0
        healthy.accept(Delivery(webhook_id="the-first"))
    shared.kafka.wait_until_routed()
    assert shared.kafka.members() == before
    assert healthy.metric("gatepost_transactions_total", result="aborted") == 0
    assert healthy.log.count("partition assigned") == 3
    assert " warning " not in healthy.log[begun:] and " error " not in healthy.log[begun:]


def test_json_has_the_same_steps(shared, healthy):
    text = examine(shared, file_of(healthy))
    document = json.loads("\n".join(examine(shared, file_of(healthy), "--json").lines))
    assert set(document) == {"steps", "cause", "remedy"} and document["cause"] is document["remedy"] is None
    for step in document["steps"]:
        assert set(step) == {"name", "subject", "result", "detail", "milliseconds"} and step["milliseconds"] >= 0
    names = [f"{step['name']} {step['subject']}".strip() for step in document["steps"]]
    assert names == [line[2:].partition(": ")[0] for line in text.lines[:-2]]
    assert {step["result"] for step in document["steps"]} == {"ok"}


def test_ticks_are_words_where_the_locale_is_not_utf_8(shared, healthy):
    checkup = examine(shared, file_of(healthy), environment={"LC_ALL": "C"})
    assert checkup.status == 0 and all(line.isascii() for line in checkup.lines)
    assert {line.split()[0] for line in checkup.lines[:-2]} == {"ok"}


def in_terminal(config, **environment):
    """The output on a terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen([BUILD / "gatepost", "-c", config, "doctor", "--no-send"], stdin=its, stdout=its, stderr=its,
                               env=ENVIRONMENT | UTF_8 | {"TERM": "xterm"} | environment)
    os.close(its)
    output = b""
    with contextlib.suppress(OSError):  # EIO at the end
        while read := os.read(ours, 65536):
            output += read
    os.close(ours)
    assert process.wait(30) == 0
    return output.decode()


def test_terminal_shows_what_it_waits_for_and_colours(shared, healthy):
    output = in_terminal(file_of(healthy))
    assert "\r\x1b[K… client " in output and "\x1b[32m✓\x1b[0m client: " in output
    plain = in_terminal(file_of(healthy), NO_COLOR="1")
    assert "… client " in plain and "\r\x1b[K✓ client: " in plain and "\x1b[3" not in plain


def test_no_send_appends_nothing(shared, healthy):
    before = shared.kafka.ends(shared.kafka.deliveries)
    checkup = examine(shared, file_of(healthy), "--no-send")
    assert checkup.status == 0 and [line.split(":")[0] for line in checkup.having("-")] == ["- delivery", "- clock"]
    assert shared.kafka.ends(shared.kafka.deliveries) == before


def test_default_key_is_a_note_and_nothing_to_warn_of(installation):
    """A new installation has the default key, and should give no warning."""
    config = by_sockets(installation)
    del config["source invoicing"]["key"]
    installation.create_topics()
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    (note,) = checkup.having("•")
    assert note.startswith("• keys [source invoicing]: key = kind: ") and "one consumer of a group" in note
    assert f"{installation.prefix}.invoice.accepted" in note
    assert checkup.status == 0 and checkup.having("!") == checkup.having("-") == []
    assert checkup.cause == f"no trouble found: {len(checkup.lines) - 3} ok, 1 note"
    steps = json.loads("\n".join(examine(installation, file_of(daemon), "--json").lines))["steps"]
    assert [step["result"] for step in steps if step["name"] == "keys"] == ["note"]


def test_embedded_broker_is_checked_by_the_daemons_counters(installation):
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any("recognised and dropped" in line for line in checkup.having("✓")), checkup.lines
    assert [line.split(":")[0] for line in checkup.having("-")] == ["- brokers", "- topics", "- clock"]


@pytest.mark.parametrize("admin, why", [("off", "[admin] listen is off"), ("127.0.0.1:0", "[admin] listen has port 0")])
def test_embedded_broker_without_an_admin_endpoint_is_not_waited_for(installation, admin, why):
    """Only the daemon's counters tell what became of the delivery; that it was accepted is verified."""
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    config["admin"]["listen"] = admin
    daemon = installation.daemon(config)
    daemon.launch()
    daemon.wait_for_log(" notice ready")
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any(line.startswith("✓ delivery ") for line in checkup.lines), checkup.lines
    (skipped,) = [line for line in checkup.having("-") if line.startswith("- router ")]
    assert skipped.endswith(f": not verified: {why}, and the broker is inside gatepostd, which alone can be asked"), skipped


def test_receiver_and_router_apart(installation):
    """Each checks what its role needs; with --to, the router's machine sees a delivery to the end."""
    receiver = installation.daemon(by_sockets(installation, "receiver"))
    receiver.config["receiver"]["listen"] = ["127.0.0.1:0", f"unix:{receiver.config.directory}/receiver.sock"]
    router = installation.daemon(by_sockets(installation, "router"))
    installation.create_topics()
    for daemon in (receiver, router):
        daemon.start().wait_until_ready()
    checkup = examine(installation, receiver.config, "--to", f"http://{receiver.address}")
    assert checkup.status == 0 and not [line for line in checkup.lines if "group" in line or "invoice.accepted" in line]
    assert any(line.startswith("- router ") and "no router is configured here" in line for line in checkup.lines)
    checkup = examine(installation, router.config)
    assert checkup.status == 0 and any(line.startswith("- delivery: no receiver") for line in checkup.lines), checkup.lines
    checkup = examine(installation, router.config, "--to", f"http://{receiver.address}")
    assert checkup.status == 0 and any(line.startswith("✓ router ") for line in checkup.lines), checkup.lines
    assert any(line.startswith("✓ clock") for line in checkup.lines)


def test_skewed_clock_is_a_warning(installation, plain_build):
    installation.create_topics()
    daemon = installation.start(by_sockets(installation))
    installation.build = plain_build
    path = pathlib.Path(file_of(daemon))
    clock = FakeClock(daemon)
    clock.set(-60)
    checkup = examine(installation, path, environment=daemon.environment)
    (warning,) = [line for line in checkup.having("!") if line.startswith("! clock")]
    assert "ahead of this machine's, more than a tenth of tolerance (30s)" in warning and checkup.status == 0


# Brokers

def trouble(installation, **kafka):
    """What it says about properties of [kafka]."""
    config = installation.config()
    config["kafka"].update({name.replace("__", "."): value for name, value in kafka.items()})
    return examine(installation, config)


def test_closed_port(offline):
    with socket.socket() as reserved:  # bound, but not listening
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        checkup = trouble(offline, bootstrap__servers=f"127.0.0.1:{port}")
    expect(checkup, EX_UNAVAILABLE, f"connect 127.0.0.1:{port}", "Connection refused", "bootstrap.servers")
    assert any(line.startswith("- client: needs what failed above (brokers)") for line in checkup.lines)
    assert any(line.startswith("- delivery: needs what failed above") for line in checkup.lines)


def test_unresolvable_name(offline):
    expect(trouble(offline, bootstrap__servers="kafka1.invalid:9092"), EX_UNAVAILABLE, "resolve kafka1.invalid", "DNS")


def test_one_broker_of_several_is_enough_to_go_on(shared, broker, healthy):
    config = by_sockets(shared)
    config["kafka"]["bootstrap.servers"] = f"kafka1.invalid:9092,{broker.bootstrap}"
    checkup = examine(shared, config, "--no-send")
    expect(checkup, EX_UNAVAILABLE, "resolve kafka1.invalid")
    assert any(line.startswith("✓ topic ") for line in checkup.lines)


def test_brokers_of_two_clusters(installation, broker):
    with Cluster() as other:
        config = by_sockets(installation)
        config["kafka"]["bootstrap.servers"] = f"{broker.bootstrap}, {other.bootstrap}"
        checkup = examine(installation, config)
    expect(checkup, EX_CONFIG, f"cluster {other.bootstrap}: this broker is of the cluster ", f"but {broker.bootstrap} is of the cluster ",
           "remedy: name only brokers of one cluster in bootstrap.servers of ")
    assert any(line.startswith("- client: needs what failed above (brokers)") for line in checkup.lines), checkup.lines


@pytest.mark.parametrize("address, cannot", [("kafka-internal.invalid:9092", "resolve kafka-internal.invalid"), (None, "connect 127.0.0.1:")])
def test_advertised_address_that_this_machine_cannot_reach(tmp_path, address, cannot):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = address or f"127.0.0.1:{reserved.getsockname()[1]}"
        with Cluster(properties={"advertised.listeners": f"PLAINTEXT://{address}"}) as cluster:
            installation = Installation(tmp_path, cluster.bootstrap)
            checkup = examine(installation, installation.config())
            installation.clean_up()
    expect(checkup, EX_UNAVAILABLE, cannot, "advertised.listeners", f"advertises {address}")
    assert f"✓ connect {cluster.bootstrap}: connected" in checkup.lines


def test_tls_to_a_port_without(offline, broker):
    expect(trouble(offline, bootstrap__servers=broker.bootstrap, security__protocol="ssl"), EX_CONFIG,
           f"tls {broker.bootstrap}", "does not speak TLS", "security.protocol = plaintext")


def test_login_at_a_port_without(offline, broker):
    config = offline.config()
    config["kafka"].update({"bootstrap.servers": broker.bootstrap, "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
                            "sasl.username": "gatepost", "sasl.password_file": config.secret_file("password", b"a password")})
    expect(examine(offline, config), EX_CONFIG, f"login {broker.bootstrap}", "security.protocol = plaintext")


def test_port_of_another_service(offline):
    with FakeService() as service:
        address = service.url.split("/")[2]
        expect(trouble(offline, bootstrap__servers=address), EX_UNAVAILABLE, f"kafka {address}", "no answer as from a broker of Kafka")


# A Kafka with TLS, logins and permissions

NAMES = ("gatepost-receiver", "gatepost-router")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), days=90)


@pytest.fixture(scope="module")
def secured(authority):
    certificate, key = authority.issue("broker", names="IP:127.0.0.1", days=60)
    both = authority.directory / "broker-both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    with Cluster(secured=both, passwords={name: Accounts.password(name) for name in NAMES}) as cluster:
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


def test_unreadable_settings_are_a_warning(site, without):
    without("gatepost-router", ".quarantine", "DESCRIBE_CONFIGS")
    checkup = examine(site, secured_config(site), "--no-send")
    assert any(line.startswith(f"! permission topic {site.prefix}.quarantine: without DescribeConfigs") for line in checkup.lines)


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


@pytest.fixture
def ending(offline, tmp_path):
    """A router and a port with TLS, whose certificate is valid for longer than the authority that issued it."""
    authority = Authority(tmp_path)
    with FakeService(*authority.issue("broker", names="IP:127.0.0.1", days=60)) as service:
        config = offline.config("router")
        config["kafka"].update({"bootstrap.servers": service.url.split("/")[2], "security.protocol": "ssl",
                                "ssl.ca.location": authority.certificate})
        yield authority, config


def test_authority_of_the_brokers_that_ends_soon_is_a_warning(offline, ending):
    (warning,) = [line for line in examine(offline, ending[1]).having("!") if line.startswith("! tls ")]
    assert "certificate verified; the certificate of the authority /CN=authority of the tests expires in " in warning, warning


def test_authority_of_the_own_certificate_that_ends_soon_is_a_warning(offline, ending):
    """Its certificate is behind the own one in the file."""
    authority, config = ending
    certificate, key = authority.issue("gatepost", days=60)
    certificate.write_text(certificate.read_text() + authority.certificate.read_text())
    key.chmod(0o600)
    config["kafka"].update({"ssl.certificate.location": certificate, "ssl.key.location": key})
    (warning,) = [line for line in examine(offline, config).having("!") if line.startswith("! certificate ")]
    assert warning.startswith(f"! certificate {certificate}: the certificate of the authority /CN=authority of the tests expires in ")


def test_authority_of_the_brokers_that_has_expired_is_named(offline, ending, plain_build):
    """Three days later."""
    daemon = offline.daemon(ending[1])
    FakeClock(daemon).set(3 * 86400)
    offline.build = plain_build
    expect(examine(offline, daemon.config, environment=daemon.environment), EX_UNAVAILABLE, "tls ",
           "the certificate of the authority /CN=authority of the tests expired at ", "renew that certificate at the brokers")


# Topics

def test_missing_topic(installation):
    installation.create_topics()
    config = by_sockets(installation)
    config["events"]["invoice.*"] = f"{installation.prefix}.everything"
    checkup = examine(installation, config)
    expect(checkup, EX_CONFIG, f"topic {installation.prefix}.everything", "the topic is missing; remedy: gatepost -c ")
    assert checkup.cause.endswith(" topics create") and checkup.cause.count("topics create") == 1


def test_short_retention(installation):
    installation.create_topics()
    installation.kafka.configure(installation.kafka.deliveries, "retention.ms", "1000")
    checkup = examine(installation, by_sockets(installation))
    expect(checkup, EX_CONFIG, f"topic {installation.kafka.deliveries}", "retention.ms", "; remedy: kafka-configs.sh ")
    assert checkup.cause.count("kafka-configs.sh") == 1


@pytest.mark.parametrize("topic", ["quarantine", "invoice.accepted"])
def test_retention_below_an_hour_of_what_routers_write_is_a_warning(installation, topic):
    installation.create_topics()
    topic = f"{installation.prefix}.{topic}"
    for retention_ms, warns in ((3600000, False), (3599999, True)):
        installation.kafka.configure(topic, "retention.ms", str(retention_ms))
        warnings = [line for line in examine(installation, by_sockets(installation)).having("!") if line.startswith(f"! topic {topic}: ")]
        assert [line.partition(": ")[2].partition(":")[0] for line in warnings] == ["retention.ms is less than an hour"] * warns, warnings
    listed = installation.gatepost("topics", "list").stdout
    assert "retention.ms is less than an hour" in " ".join(listed.split()), listed


@pytest.mark.parametrize("topic", ["deliveries", "invoice.accepted"])
def test_segments_that_are_smaller_than_a_record(installation, topic):
    """Kafka refuses a record that does not fit into a segment."""
    installation.create_topics()
    config, topic = by_sockets(installation), f"{installation.prefix}.{topic}"
    installation.kafka.configure(topic, "segment.bytes", "1048576")
    expect(examine(installation, config), EX_CONFIG, f"topic {topic}: segment.bytes is 1048576, less than max_body and 64 KiB",
           f"; remedy: kafka-configs.sh --bootstrap-server BROKER --alter --topic {topic} --add-config segment.bytes=1073741824")
    installation.kafka.configure(topic, "segment.bytes", "1073741824")
    assert installation.gatepost("topics", "list", config=config).returncode == 0


@pytest.mark.parametrize("topic, option, value, default", [
    ("invoice.accepted", "before", "0", "9223372036854775807"), ("quarantine", "before", "59999", "9223372036854775807"),
    ("invoice.accepted", "after", "29999", "3600000"), ("deliveries", "before", "1000", "9223372036854775807")])
def test_limit_of_timestamps_by_which_kafka_refuses_records(installation, topic, option, value, default):
    installation.create_topics()
    config, kafka = by_sockets(installation), installation.kafka
    topic, option = f"{installation.prefix}.{topic}", f"message.timestamp.{option}.max.ms"
    kafka.configure(topic, option, value)
    if topic == kafka.deliveries:
        checkup = examine(installation, config, "--no-send")
        assert any(line.startswith(f"✓ topic {topic}: ") for line in checkup.lines)  # with LogAppendTime there is no limit
        kafka.configure(topic, "message.timestamp.type", "CreateTime")
    expect(examine(installation, config), EX_CONFIG, f"topic {topic}: {option} is {value}, less than ", "Kafka would refuse records",
           f"; remedy: kafka-configs.sh --bootstrap-server BROKER --alter --topic {topic} --add-config {option}={default}")
    done = installation.gatepost("topics", "list", config=config)
    assert done.returncode == 65 and done.stdout.count("    wrong: ") == 1 and f"wrong: {option} is {value}, " in done.stdout
    assert installation.gatepost("check", "--online", config=config).returncode != 0
    daemon = installation.daemon(config).launch()
    assert option in daemon.wait_for_log("error topic is misconfigured", 60)
    daemon.take_exit_status()
    kafka.configure(topic, option, default)
    assert installation.gatepost("topics", "list", config=config).returncode == 0


def down(cluster, number):
    """Kill a broker, and wait until the others know."""
    cluster.kill(number)
    others = [node for node in cluster.nodes.values() if node.number != number]
    waiting.until(lambda: all(number not in protocol.known_brokers(node.port) for node in others), 60, "the brokers to know")
    return ",".join(f"127.0.0.1:{node.port}" for node in others)


def test_broker_of_some_partitions_is_down(tmp_path):
    """The test delivery may go to another partition, and a receiver is ready."""
    with Cluster(nodes=3) as cluster:
        site = Installation(tmp_path, cluster.bootstrap)
        try:
            config = by_sockets(site, "receiver")
            site.create_topics(config, 6)
            daemon = site.daemon(config)
            config["kafka"]["bootstrap.servers"] = down(cluster, 3)
            daemon.start()
            checkup = examine(site, file_of(daemon), "--no-send")
        finally:
            site.clean_up()
    expect(checkup, EX_UNAVAILABLE, f"topic {site.prefix}.deliveries: 2 of 6 partitions have no leader", "start the brokers")


def test_too_few_replicas_in_sync(tmp_path):
    with Cluster(nodes=3) as cluster:
        site = Installation(tmp_path, cluster.bootstrap)
        try:
            config = by_sockets(site)
            done = site.gatepost("topics", "create", "--partitions", "3", "--replication-factor", "3", config=config)
            assert done.returncode == 0, done.stderr
            site.kafka.configure(site.kafka.deliveries, "min.insync.replicas", "3")
            config["kafka"]["bootstrap.servers"] = down(cluster, 3)
            checkup = examine(site, config, "--no-send")
        finally:
            site.clean_up()
    expect(checkup, EX_UNAVAILABLE, f"topic {site.prefix}.deliveries: a partition has 2 replicas in sync, fewer than min.insync.replicas (3)")
    assert any(line.startswith(f"✓ topic {site.prefix}.quarantine") for line in checkup.lines)


def test_fewer_replicas_than_the_minimum_in_sync_are_a_warning(installation, stopped):
    """Kafka since 3.7 takes the number of replicas then: the test delivery is routed."""
    for topic in (installation.kafka.deliveries, installation.kafka.quarantine):
        installation.kafka.configure(topic, "min.insync.replicas", "2")
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any(line.startswith("✓ router ") for line in checkup.lines), checkup.lines
    assert [line.partition(": ")[2].partition(":")[0] for line in checkup.having("!")] == [
        "min.insync.replicas (2) is above the number of replicas (1)"] * 2, checkup.lines


def test_topics_with_one_replica_on_several_brokers(tmp_path):
    """Also those of Kafka itself, which a router needs as much."""
    with Cluster(nodes=3, properties={"offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1,
                                      "transaction.state.log.min.isr": 1}) as cluster:
        site = Installation(tmp_path, cluster.bootstrap)
        try:
            config = by_sockets(site)
            own = f"{site.prefix}.quarantine"
            site.kafka.create(own, 3, min_insync_replicas="1", max_message_bytes=str(2 << 20), cleanup_policy="delete")
            done = site.gatepost("topics", "create", "--partitions", "3", config=config)
            assert done.returncode == 0, done.stderr
            daemon = site.start(config)
            checkup = examine(site, file_of(daemon))
        finally:
            site.clean_up()
    assert checkup.status == 0, checkup.lines
    warned = {line.split()[2].rstrip(":") for line in checkup.having("!") if " has 1 replica, but there are 3 brokers: " in line}
    assert warned == {own, "__consumer_offsets", "__transaction_state"}, checkup.lines


# The daemon

@pytest.fixture
def stopped(installation):
    """A healthy installation whose daemon is not started yet."""
    installation.create_topics()
    return installation.daemon(by_sockets(installation))


def test_daemon_down(installation, stopped):
    expect(examine(installation, stopped.config), EX_UNAVAILABLE, "listen unix:", "systemctl start gatepostd")


def test_unit_is_the_one_that_has_the_file(installation, stopped):
    for name, unit in (("router-a-1.conf", "gatepost-router@a-1"), ("receiver-eu.conf", "gatepost-receiver@eu"), ("router-.conf", "gatepostd"),
                       ("router.conf", "gatepostd")):
        checkup = examine(installation, str(stopped.config.write(name)))
        expect(checkup, EX_UNAVAILABLE, f"start it: systemctl start {unit};", f"does not start: journalctl -u {unit}")
        done = installation.gatepost("status", config=str(stopped.config.write(name)))
        assert f"systemctl start {unit}\n" in done.stderr and f"systemctl status {unit}; journalctl -u {unit}\n" in done.stderr


def test_socket_unit_that_listens_on_another_address(installation, stopped):
    """Sockets of systemd replace `listen`, which the command line looks at."""
    passed = listening()
    listen = stopped.config["receiver"]["listen"]
    daemon = pass_on(stopped, [passed], "receiver").start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_CONFIG, f"listen {listen}: nothing listens there: the gatepostd of {file_of(daemon)} listens on {address_of(passed)}, "
           f"opened by systemd for a socket unit, and `listen` is {listen}", "ListenStream")
    passed.close()


def test_changed_listen_needs_a_restart(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    daemon.config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    shutil.copyfile(daemon.config.write(), file_of(daemon))
    expect(examine(installation, file_of(daemon)), EX_CONFIG, f"listens on {daemon.addresses[0]}, and `listen` is 127.0.0.1:",
           "systemctl restart gatepostd")


def test_daemon_not_ready(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    installation.kafka.delete(installation.kafka.deliveries)
    daemon.wait_until_not_ready(60)
    daemon.config["topics"]["prefix"] = f"{installation.prefix}o"
    installation.create_topics(daemon.config)
    daemon.config.write(f"{daemon.name}.conf")
    checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_UNAVAILABLE, "daemon /readyz: not ready: ", "the topic of deliveries has been deleted")
    assert not any(line.startswith("✓ delivery") for line in checkup.lines)


def test_two_routers_with_the_same_instance(installation, service):
    """Each is ready at times, so the answers are kept."""
    installation.create_topics()
    first, second = (installation.daemon(by_sockets(installation, "router")) for _ in range(2))
    second.config["gatepost"]["instance"] = instance = first.config["gatepost"]["instance"]
    first.start().wait_until_ready()
    second.start()

    def is_fenced():
        answer = first.admin("/readyz")
        return answer.status == 503 and b"fenced" in answer.body and answer
    readyz, status = waiting.until(is_fenced, 60, "the router to be fenced"), status_of(first)
    second.stop()
    first.stop()
    service.faults = [answers(200, status), answers(200, body=b"ok"), answers(200, status), answers(503, body=readyz.body)]
    first.config["admin"]["listen"] = service.url.split("/")[2]
    expect(examine(installation, first.config), EX_CONFIG, f"daemon /readyz: not ready: another router has the same `instance`, {instance}",
           "give each router its own `instance`")


def status_of(daemon):
    return daemon.admin("/status").json


def wait_for_trouble(daemon):
    waiting.until(lambda: status_of(daemon)["kafkaProblem"] is not None, 60, "the daemon's trouble with Kafka")


RESTART = "systemctl restart gatepostd (changes in [kafka] need a restart)"


def test_other_brokers_take_effect_at_a_restart_only(installation, stopped):
    bootstrap = stopped.config["kafka"]["bootstrap.servers"]
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        stopped.config["kafka"]["bootstrap.servers"] = "%s:%d" % reserved.getsockname()
        daemon = stopped.start()
        wait_for_trouble(daemon)
        daemon.config["kafka"]["bootstrap.servers"] = bootstrap
        reload(daemon)
        checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_UNAVAILABLE, "gatepostd does not reach Kafka (", "Connection refused",
           "but this machine does with the present configuration: it uses an earlier one; since its start it has only read")
    assert "; remedy: if `bootstrap.servers` leads to another cluster now, " in checkup.cause and f", or at once if it is the same cluster: {RESTART}; " in checkup.cause
    (warning,) = checkup.having("!")
    assert warning.startswith("! daemon configuration: gatepostd has read options that only a restart applies, [kafka]: if `bootstrap.servers` leads to ")
    assert ", or at once if it is the same cluster: systemctl restart gatepostd; " in warning
    assert "systemctl reload" not in "".join(checkup.lines)


def test_receiver_that_spools_because_of_its_configuration(installation):
    """It is ready, as it accepts deliveries, but Kafka does not get them."""
    installation.create_topics()
    config = by_sockets(installation, "receiver")
    config["receiver"]["spool"] = str(config.directory / "spool")
    bootstrap = config["kafka"]["bootstrap.servers"]
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        config["kafka"]["bootstrap.servers"] = "%s:%d" % reserved.getsockname()
        daemon = installation.daemon(config).start()
        wait_for_trouble(daemon)
        waiting.until(lambda: daemon.admin("/readyz").status == 200, 60, "the receiver with its spool")
        daemon.accept()
        config["kafka"]["bootstrap.servers"] = bootstrap
        reload(daemon)
        checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_UNAVAILABLE, "daemon /readyz: gatepostd does not reach Kafka (", "Connection refused", RESTART)
    assert any(line.startswith("! spool ") and "deliveries go to the spool" in line for line in checkup.lines), checkup.lines


def test_damaged_segment_is_a_warning(installation):
    installation.create_topics()
    config = by_sockets(installation)
    spool = config.directory / "spool"
    config["receiver"].update(spool=str(spool), spool_max="1MiB")
    daemon = installation.start(config)
    assert any(line == f"✓ spool {spool}: 0 deliveries wait" for line in examine(installation, file_of(daemon)).lines)
    daemon.stop()
    (spool / "0000000000000001.spool.damaged").write_bytes(b"no segment")
    daemon.restart()
    daemon.wait_until_ready()
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if " spool " in line]
    assert warning.startswith(f"! spool {spool}: 1 damaged segments, ") and "gatepost spool check" in warning


def test_segments_that_are_not_read_are_a_warning(offline, service):
    """The records in them are not counted: 0 deliveries would seem to wait."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    config.sections["receiver"] = {"spool": config.directory / "spool"}
    file = str(config.write())
    checkup = with_status(offline, service, file, {"file": file}, spool={"uncountedSegments": 2, "records": 3})
    assert any(line.startswith(f"! spool {config.directory}/spool: 2 segments of an earlier process are not read yet, and the deliveries in "
                               "them wait, besides 3 others; ") for line in checkup.lines), checkup.lines


def test_state_that_cannot_be_written_is_a_warning(installation, plain_build):
    """Its directory is deleted while the daemon runs, which stays ready."""
    installation.create_topics()
    installation.build = plain_build  # it can be made to write after each delivery
    config = by_sockets(installation)
    state = config.directory / "state"
    config.sections["router"] = {"state": str(state)}
    daemon = installation.daemon(config)
    daemon.environment["GATEPOST_STATE_ENTRIES"] = "1"
    daemon.restart()
    assert any(line.startswith(f"✓ state {state}: ") for line in examine(installation, file_of(daemon)).lines)
    shutil.rmtree(state)
    for _ in range(2):
        daemon.accept()
        installation.kafka.wait_until_routed()
    waiting.until(lambda: daemon.metric("gatepost_state_errors_total") > 0, 60, lambda: daemon.log)
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if " state " in line]
    assert "dedup tables could not be written" in warning and "is the disk full?" in warning


def test_listener_that_requires_the_proxy_protocol(installation):
    installation.create_topics()
    config = installation.config()
    config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required",
                               "listen": f"127.0.0.1:{installation.port()}"})
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any("gatepostd answers" in line for line in checkup.lines), checkup.lines


@pytest.mark.parametrize("has_tls", [False, True])
def test_machine_that_is_no_trusted_proxy(installation, authority, has_tls):
    installation.create_topics()
    config = installation.config()
    config["receiver"].update({"trusted_proxy": "192.0.2.1", "proxy_protocol": "required", "listen": f"127.0.0.1:{installation.port()}"})
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    if has_tls:
        config.tls(*authority.issue("behind-proxy"))
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    skipped = [line for line in checkup.having("-") if "a trusted_proxy" in line and "which this machine is not" in line]
    assert checkup.status == 0 and len(skipped) == 2 and skipped[1].startswith("- delivery: "), checkup.lines
    url = f"http{'s' * has_tls}://{config['receiver']['listen']}"
    expect(examine(installation, file_of(daemon), "--to", url), EX_UNAVAILABLE, f"delivery {url}", "give --to with the proxy's URL")


REQUIRED = {"trusted_proxy": "127.0.0.1", "proxy_protocol": "required"}


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize("loaded", [{}, REQUIRED], ids=["not-loaded", "loaded"])
def test_proxy_protocol_in_the_file_or_the_daemon_only(installation, authority, loaded, has_tls):
    """Without it, gatepostd takes the header for a request; with it, it closes a connection without one."""
    installation.create_topics()
    config = installation.config()
    config["receiver"].update(loaded, listen=f"127.0.0.1:{installation.port()}")
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    if has_tls:
        config.tls(*authority.issue("proxied"))
    daemon = installation.start(config)
    if loaded:
        del config["receiver"]["trusted_proxy"], config["receiver"]["proxy_protocol"]
        words = ("gatepostd answers only with a header of the PROXY protocol, but ", "does not have proxy_protocol = required")
    else:
        config["receiver"].update(REQUIRED)
        words = ("gatepostd answers without a header of the PROXY protocol, but ", "has proxy_protocol = required")
    checkup = examine(installation, config)
    expect(checkup, EX_CONFIG, "tls 127.0.0.1:" if has_tls else "listen 127.0.0.1:", *words, "systemctl reload gatepostd")
    assert not any("gatepostd answers" in line for line in checkup.having("✓"))
    reload(daemon)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any("gatepostd answers" in line for line in checkup.having("✓")), checkup.lines


def test_proxy_protocol_of_the_daemon_from_another_machine_only(installation):
    """Nothing distinguishes it from a program that closes connections: the candidates are named."""
    installation.create_topics()
    config = installation.config()
    config["receiver"].update(REQUIRED, trusted_proxy="192.0.2.1", listen=f"127.0.0.1:{installation.port()}")
    installation.start(config)
    del config["receiver"]["trusted_proxy"], config["receiver"]["proxy_protocol"]
    expect(examine(installation, config), EX_UNAVAILABLE, "listen 127.0.0.1:", "no answer to HTTP: ", "closes", "trusted_proxy",
           "ss -ltnp", "journalctl -u gatepostd")


def test_gatepostd_of_another_configuration_answers(installation):
    """Receiver and router have the same `listen` in [admin], and only the receiver runs."""
    installation.create_topics()
    receiver = by_sockets(installation, "receiver")
    router = installation.config("router", instance="router")
    router["admin"]["listen"] = receiver["admin"]["listen"]
    installation.start(receiver)
    checkup = examine(installation, router)
    expect(checkup, EX_UNAVAILABLE, "the gatepostd of another configuration", "its `roles` is not that of ", "give each its own `listen` in [admin]")


@pytest.mark.parametrize("sees, status", [("mount --bind {0} {1}", 0), ("cp -r {0}/. {1}", EX_UNAVAILABLE)], ids=["same-file", "copy"])
def test_container_has_another_name_of_the_host_and_path_of_the_file(installation, stopped, tmp_path_factory, sees, status):
    """The default of `instance` is the host's name. The file is the same if its inode and times are."""
    del stopped.config["gatepost"]["instance"]
    directory = tmp_path_factory.mktemp("elsewhere")
    daemon = stopped.start().wait_until_ready()
    sees = sees.format(daemon.config.directory, directory)
    elsewhere = ["unshare", "--mount", "--uts", "sh", "-ec", f'{sees}; hostname another-host; exec "$@"', "sh"]
    checkup = examine(installation, str(directory / f"{daemon.name}.conf"), wrapper=elsewhere)
    assert checkup.status == status, checkup.lines
    if status != 0:
        expect(checkup, status, f"the gatepostd of another configuration, {file_of(daemon)}, ",
               f"its `instance` ({socket.gethostname()} rather than another-host) is not that of {directory}", "set `instance` in its file")


def test_gatepostd_of_another_configuration_is_the_cause_of_a_silent_listener(installation):
    """Two have the same `listen` in [admin]: a restart of the one that answers would not help."""
    installation.create_topics()
    running = by_sockets(installation)
    daemon = installation.start(running)
    config = installation.config(instance="other")
    config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    config["admin"]["listen"] = running["admin"]["listen"]
    checkup = examine(installation, config)
    expect(checkup, EX_UNAVAILABLE, "listen 127.0.0.1:", f"the gatepostd of another configuration, {file_of(daemon)}, answers on unix:",
           "give each its own `listen` in [admin]")
    assert "restart" not in checkup.cause


def test_copy_of_the_configuration_for_another_installation(installation):
    """It has the same `listen` in [admin], `instance` and `prefix`, so that its gatepostd could not start."""
    installation.create_topics()
    daemon = installation.start(by_sockets(installation))
    copy = installation.directory / "staging.conf"
    listen = f"127.0.0.1:{installation.port()}"
    copy.write_text(pathlib.Path(file_of(daemon)).read_text().replace(daemon.config["receiver"]["listen"], listen))
    checkup = examine(installation, str(copy))
    expect(checkup, EX_UNAVAILABLE, f"listen {listen}: nothing listens there: the gatepostd of another configuration, {file_of(daemon)}, answers on "
           f"unix:", f"{copy} is another file, and its gatepostd does not run", "give each its own `listen` in [admin]", "an `instance` each")
    assert "restart" not in checkup.cause


def serve(server, answer):
    """Answer each request in a thread, by a function of it, until the server is closed."""
    def run():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.sendall(answer(connection.recv(65536)))
    threading.Thread(target=run, daemon=True).start()


def test_admin_endpoint_that_closes_the_connection_without_a_report(installation, stopped):
    """It may be gatepostd at a limit, so nothing says to stop it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" if b"/healthz" in request else b"")
        stopped.config["admin"]["listen"] = "%s:%d" % server.getsockname()
        stopped.config["gatepost"]["roles"] = "router"
        checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, "daemon /status: no answer as from gatepostd on 127.0.0.1:", "if it is gatepostd: journalctl")
    assert "another program" not in checkup.cause


@pytest.mark.parametrize("answer, step", [
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "/healthz"), (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "/status"),
    (b"", "/healthz")], ids=["refuses", "answers", "closes"])
def test_another_program_on_the_admin_socket(installation, stopped, answer, step):
    """ss -ltnp would not list it."""
    path = f"{stopped.config.directory}/other.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        serve(server, lambda request: answer)
        stopped.config["admin"]["listen"] = f"unix:{path}"
        stopped.config["gatepost"]["roles"] = "router"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, f"daemon {step}: ", f"unix:{path}", "ss -lxp")


def test_another_program_on_the_socket_of_the_receiver(installation, stopped):
    path = f"{stopped.config.directory}/other.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        serve(server, lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        stopped.config["receiver"]["listen"] = f"unix:{path}"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, f"listen unix:{path}: another program", "ss -lxp")


def test_answer_without_a_report_is_shown(installation, stopped):
    """A listener of gatepostd itself may answer so, at a limit."""
    with FakeService() as service:
        service.faults = [answers(200, body=b"null"), answers(200, body=b"ok"), answers(503, body=b"busy")]
        stopped.config["admin"]["listen"] = service.url.split("/")[2]
        stopped.config["gatepost"]["roles"] = "router"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "daemon /status: ", "with status 503", "gatepostd before version 0.2.0")


def test_directory_that_a_restart_could_not_create_is_a_cause(installation):
    installation.create_topics()
    config = by_sockets(installation)
    installation.start(config)
    config["receiver"]["spool"] = str(config.directory / "no" / "spool")
    config.sections["router"] = {"state": str(config.directory / "no" / "state")}
    checkup = examine(installation, config)
    assert checkup.status == EX_CONFIG and "No such file or directory; create it" in checkup.cause, checkup.lines


def test_options_that_await_a_restart_are_a_warning(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    assert not examine(installation, file_of(daemon), "--no-send").having("!")
    daemon.config["receiver"]["threads"] = 3
    reload(daemon)
    checkup = examine(installation, file_of(daemon), "--no-send")
    (warning,) = checkup.having("!")
    assert "[receiver] threads: systemctl restart gatepostd" in warning and checkup.status == 0
    daemon.stop()
    daemon.restart()
    assert not examine(installation, file_of(daemon), "--no-send").having("!")


HAS_LOADED = "✓ daemon configuration: gatepostd has loaded the newest files"


def told_of_files(checkup):
    """What it says about the files that the daemon has read."""
    (line,) = [line for line in checkup.lines if " daemon configuration: " in line]
    return line


@pytest.mark.parametrize("ahead_s", [-86400, 0, 3600], ids=["older", "same-second", "future"])
def test_change_that_is_not_loaded_whatever_the_time_of_the_file(installation, stopped, ahead_s):
    """It is prepared elsewhere and then moved: a day before, within the second of the start, by a clock that is ahead."""
    daemon = stopped.start().wait_until_ready()
    path = file_of(daemon)
    daemon.config["events"]["invoice.*"] = f"{installation.prefix}.invoice.accepted"
    prepared = daemon.config.write("prepared.conf")
    when_s = status_of(daemon)["configuration"]["loadedSeconds"] + ahead_s
    os.utime(prepared, (when_s, when_s))
    prepared.rename(path)
    checkup = examine(installation, path, "--no-send")
    assert told_of_files(checkup) == f"! daemon configuration: gatepostd has not loaded {path} as it is now: systemctl reload gatepostd"
    assert checkup.status == 0
    assert "configuration reloaded" in send_sighup(daemon)
    assert told_of_files(examine(installation, path, "--no-send")) == HAS_LOADED


@pytest.mark.parametrize("edit", [True, False], ids=["edit", "chmod"])
def test_change_in_place_that_keeps_the_time_of_the_file(installation, stopped, edit):
    """It is not to be told from a change of the mode, which is no change."""
    daemon = stopped.start().wait_until_ready()
    path = pathlib.Path(file_of(daemon))
    st = path.stat()
    path.chmod(0o640)
    if edit:
        with path.open("a") as file:
            file.write("# changed\n")
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    told = told_of_files(examine(installation, str(path), "--no-send"))
    assert told.startswith(f"- daemon configuration: {path} may have changed: its status changed after ") and "systemctl reload" in told
    reload(daemon)
    assert told_of_files(examine(installation, str(path), "--no-send")) == HAS_LOADED


def test_refused_reload_loads_nothing(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    daemon.config["events"]["invoice.*"] = f"{installation.prefix}.missing"
    refused(daemon)
    assert f"gatepostd has not loaded {file_of(daemon)} as it is now" in told_of_files(examine(installation, file_of(daemon), "--no-send"))


def test_secret_behind_another_link_is_not_loaded(installation, stopped):
    """Kubernetes replaces a link to a directory; here the files in both have the same time and length."""
    directory = stopped.config.directory
    for name in ("one", "two"):
        (directory / name).mkdir()
        os.utime(stopped.config.secret_file(f"{name}/secret", SECRET), (1e9, 1e9))
    (directory / "now").symlink_to("one")
    secret = stopped.config["source invoicing"]["secret_file"] = directory / "now" / "secret"
    daemon = stopped.start().wait_until_ready()
    assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == HAS_LOADED
    (directory / "next").symlink_to("two")
    (directory / "next").rename(directory / "now")
    assert f"gatepostd has not loaded {secret} as it is now: systemctl reload" in told_of_files(
        examine(installation, file_of(daemon), "--no-send"))
    reload(daemon)
    assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == HAS_LOADED


def test_daemon_that_has_loaded_another_file(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    path = daemon.config.write("another.conf")
    told = told_of_files(examine(installation, path, "--no-send"))
    assert told.startswith(f"! daemon configuration: gatepostd has loaded {file_of(daemon)}, not {path}: ")
    pathlib.Path(f"{path}.link").symlink_to(file_of(daemon))
    assert told_of_files(examine(installation, f"{path}.link", "--no-send")) == HAS_LOADED


def test_files_of_tls_take_effect_at_a_reload(installation, stopped, authority):
    certificate, key = authority.issue("reloaded")
    authorities = shutil.copy(authority.certificate, stopped.config.directory / "authorities.pem")
    stopped.config.tls(certificate, key)["receiver"]["tls_client_ca_file"] = authorities
    daemon = stopped.start().wait_until_ready()
    for path in (certificate, key, authorities):
        os.utime(path, (1e9, 1e9))
        assert f"gatepostd has not loaded {path} as it is now: systemctl reload" in told_of_files(
            examine(installation, file_of(daemon), "--no-send"))
        reload(daemon)
        assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == HAS_LOADED


def with_status(installation, service, file, configuration, run=examine, **others):
    """Examine a router whose daemon is the service."""
    service.faults = [answers(200, status := {"startTimeSeconds": 1, "ready": True, "configuration": configuration} | others),
                      answers(200, body=b"ok"), answers(200, status), answers(200, body=b"ready")]
    return run(installation, file)


def test_daemon_that_does_not_say_which_files_it_has_read(offline, service):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file = str(config.write())
    told = told_of_files(with_status(offline, service, file, {"file": file, "loadedSeconds": 1}))
    assert told == "- daemon configuration: gatepostd does not say which files it has loaded; another version does"


def entry(path, read_at="start", **others):
    """An entry of `files` in /status for a file as it is now."""
    st = os.stat(path)
    return {"path": str(path), "inode": st.st_ino, "modifiedSeconds": st.st_mtime_ns // 10**9,
            "modifiedNanoseconds": st.st_mtime_ns % 10**9, "changedSeconds": st.st_ctime_ns // 10**9,
            "changedNanoseconds": st.st_ctime_ns % 10**9, "readAt": read_at} | others


def with_spool(offline, service):
    """A configuration of a daemon that the service plays, and its spool."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    spool = config.directory / "spool"
    spool.mkdir(0o700)
    config.sections["receiver"] = {"spool": spool}
    return str(config.write()), spool


@pytest.mark.parametrize("taken, is_short", [(0, True), (2**49, False)], ids=["short", "enough"])
def test_disk_with_less_room_than_the_spool_may_take(offline, service, taken, is_short):
    file, spool = with_spool(offline, service)
    checkup = with_status(offline, service, file, {"file": file}, spool={"limitBytes": 2**49, "bytes": taken, "records": 0})
    assert f"✓ spool {spool}: 0 deliveries wait" in checkup.lines
    warnings = [line for line in checkup.having("!") if line.startswith(f"! spool {spool}: its disk has ")]
    assert len(warnings) == is_short and all("MiB left, and the spool may take 536870912 MiB more: " in line for line in warnings)


@pytest.mark.parametrize("inodes", [1, 2])
def test_disk_without_an_inode_for_the_spool(offline, service, inodes):
    file, spool = with_spool(offline, service)
    mount = ["unshare", "--mount", "sh", "-ec", f'mount -t tmpfs -o nr_inodes={inodes} none {spool}; exec "$@"', "sh"]
    checkup = with_status(offline, service, file, {"file": file}, lambda *given: examine(*given, wrapper=mount), spool={"records": 0})
    assert [line.partition(": ")[2] for line in checkup.having("!") if line.startswith("! spool ")] == [
        "its file system has no inode left (df -i): deliveries that come when Kafka is away are answered 503; delete files"] * (inodes == 1)


@pytest.mark.parametrize("member", ["changedSeconds", "changedNanoseconds"])
def test_file_of_kafka_whose_status_differs(offline, service, member):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file, password = str(config.write()), config.secret_file("password", b"unused")
    as_read = [entry(file, "reload"), entry(password)]
    as_read[1][member] += 1
    told = told_of_files(with_status(offline, service, file, {"file": file, "files": as_read}))
    assert told.startswith(f"- daemon configuration: {password} may have changed: ") and told.endswith("systemctl restart gatepostd")


@pytest.mark.parametrize("after_s", [-1, 3600])
def test_other_file_at_the_path_although_it_was_loaded(offline, service, after_s):
    """A container keeps the old file behind a bind mount of it alone."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file = str(config.write())
    known = {"file": file, "loadedSeconds": int(os.stat(file).st_ctime) + after_s,
             "files": [entry(file, "reload", inode=1)]}
    told = told_of_files(with_status(offline, service, file, known))
    assert f"gatepostd has not loaded {file} as it is now: systemctl reload gatepostd" in told
    assert ("bind mount of this file alone" in told) == (after_s > 0)


@pytest.mark.parametrize("member", ["inode", "modifiedSeconds", "modifiedNanoseconds"])
def test_file_that_differs_in_one_respect(offline, service, member):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file = str(config.write())
    secret = config["source invoicing"]["secret_file"]
    as_read = [entry(file, "reload"), entry(secret, "reload")]
    assert told_of_files(with_status(offline, service, file, {"file": file, "files": as_read})) == HAS_LOADED
    as_read[1][member] += 1
    assert f"has not loaded {secret} " in told_of_files(with_status(offline, service, file, {"file": file, "files": as_read}))


def test_file_of_kafka_that_is_gone_or_that_this_user_may_not_see(offline, service):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file, other = str(config.write()), config.directory / "ca.pem"
    other.touch()
    known = {"file": file, "files": [entry(file, "reload"), entry(other)]}
    other.unlink()
    assert f"{other} has changed since the start of gatepostd, and changes in [kafka] need a restart" in told_of_files(
        with_status(offline, service, file, known))
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        program = shutil.copy(BUILD / "gatepost", directory)  # the build may be in a directory that others cannot enter
        config.directory = directory
        config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
        (directory / "private").mkdir(0o700)
        (directory / "private" / "ca.pem").touch()
        file = config.write()
        for path in (file, directory / "secret"):
            os.chown(path, 65533, 65533)

        def run(installation, file):
            return Checkup(subprocess.run([program, "-c", file, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                          timeout=60, env=ENVIRONMENT | UTF_8, user=65533, group=65533, extra_groups=[]))
        known = {"file": str(file), "files": [entry(file, "reload"), entry(directory / "private" / "ca.pem")]}
        told = told_of_files(with_status(offline, service, str(file), known, run))
    assert told.startswith("- daemon configuration: ") and f"{directory}/private/ca.pem as it is now is not verified" in told


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


def refusals_of(checkup):
    return [line for line in checkup.lines if line[2:].startswith("refusals")]


def is_without_refusals(checkup):
    (line,) = refusals_of(checkup)
    return re.fullmatch(r"✓ refusals: no delivery refused since the start of gatepostd \d+(s|min) ago", line)


@pytest.mark.parametrize("uptime_s, period", [(70, r"since the start of gatepostd [7-9]\ds ago"), (3700, "within an hour")])
def test_restart_forgets_what_was_refused_or_quarantined_before(offline, service, uptime_s, period):
    """So a tick says of what time it is. Kafka, which would know of quarantine, is not there."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    lines = with_status(offline, service, file := str(config.write()), {"file": file}, startTimeSeconds=int(time.time()) - uptime_s, refusals=[],
                        recentlyQuarantined=[], deletedBeforeRouting={"count": 0}).lines
    for tick in ("refusals: no delivery refused", "quarantine: no delivery quarantined by this router", "losses: this router has found no delivery lost"):
        assert any(re.fullmatch(f"✓ {tick} {period}", line) for line in lines), lines


def test_refused_deliveries_are_a_warning(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    assert is_without_refusals(checkup) and not checkup.having("!")
    assert any(line.startswith("✓ listen ") and line.endswith(": gatepostd answers") for line in checkup.lines)
    for _ in range(2):
        assert daemon.post(Delivery(secret=OTHER_SECRET)).status == 401
    checkup = examine(installation, file_of(daemon))
    (warning,) = checkup.having("!")
    detail = status_of(daemon)["refusals"][0]["detail"]
    assert checkup.status == 0 and warning == f"! refusals: 2 requests refused, 2 as forged, the last: {detail}; see gatepost -c {file_of(daemon)} status"


def refused_as(daemon, outcome):
    """Have a delivery refused, and return the detail."""
    if outcome == "forbidden":
        assert daemon.post(Delivery(webhook_id="of-the-webhook-that-was-created-again")).status == 403
    elif outcome == "too_large":
        assert daemon.post(Delivery(event_body(padding="x" * 70000))).status == 413
    elif outcome == "method_not_allowed":
        assert http_client.request(daemon.address, "PUT", "/webhooks/invoicing").status == 405
    else:  # of a proxy that sends a header, which the receiver does not expect
        host, port = daemon.addresses[1].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"PROXY TCP4 203.0.113.5 192.0.2.1 40000 443\r\n\r\n")
            assert b" 400 " in connection.recv(65536)
    waiting.until(lambda: status_of(daemon)["refusals"][:1] and status_of(daemon)["refusals"][0]["outcome"] == outcome, 30, outcome)
    return status_of(daemon)["refusals"][0]["detail"]


def test_refusals_count_whatever_their_outcome(installation, stopped):
    """A webhook that was created again has another id, for example, and nothing of it is accepted."""
    stopped.config["receiver"]["max_body"] = "64KiB"
    stopped.config["receiver"]["listen"] = [stopped.config["receiver"]["listen"], "127.0.0.1:0"]
    stopped.config["source invoicing"]["webhook_id"] = "the-first"
    daemon = stopped.start().wait_until_ready()
    for n, outcome in enumerate(("method_not_allowed", "bad_request", "too_large", "forbidden"), 1):
        detail = refused_as(daemon, outcome)
        (warning,) = examine(installation, file_of(daemon)).having("!")
        assert warning == f"! refusals: {n} request{'s' * (n > 1)} refused, 1 as {outcome}, the last: {detail}; see gatepost -c {file_of(daemon)} status"
    refused_as(daemon, "bad_request")
    (warning,) = examine(installation, file_of(daemon)).having("!")
    assert warning == f"! refusals: 5 requests refused, 1 as forbidden, the last: {detail}; see gatepost -c {file_of(daemon)} status"


def test_its_probe_is_no_refusal(installation, stopped):
    """But it is counted, and a GET of anybody else is a refusal."""
    daemon = stopped.start().wait_until_ready()
    assert examine(installation, file_of(daemon), "--no-send").status == 0
    assert daemon.metric("gatepost_requests_total", source="invoicing", outcome="probe") == 1
    assert daemon.metric("gatepost_requests_total", source="invoicing", outcome="method_not_allowed") == 0
    report = json.loads(installation.gatepost("status", "--json", config=file_of(daemon)).stdout)
    assert report["refusals"] == [] and report["rates"]["refused"] == 0
    assert http_client.request(daemon.address, "GET", "/webhooks/invoicing").status == 405
    waiting.until(lambda: "outcome=method_not_allowed" in daemon.log, 30, "the refusal in the log")
    assert "outcome=probe" not in daemon.log
    assert [each["outcome"] for each in status_of(daemon)["refusals"]] == ["method_not_allowed"]


def test_it_uses_up_no_refusals_of_its_address(installation, stopped):
    """Each delivery of doctor comes within the second of its GET, or of an earlier refusal."""
    stopped.config["receiver"]["max_refusals_per_address"] = 1
    daemon = stopped.start().wait_until_ready()
    for _ in range(5):
        checkup = examine(installation, file_of(daemon))
        assert checkup.status == 0, checkup.lines
    secret = daemon.config["source invoicing"]["secret_file"]
    daemon.config["source invoicing"]["secret_file"] = [daemon.config.secret_file("changed", OTHER_SECRET), secret]
    checkup = examine(installation, daemon.config)
    assert [line.split("answered ")[1][:3] for line in checkup.lines if line.startswith(("✓ delivery", "✗ delivery"))] == ["401", "200"], checkup.lines
    change_path(daemon.config)
    assert examine(installation, daemon.config, "--no-send").status == 0
    assert daemon.metric("gatepost_requests_total", source="", outcome="probe") == 1
    assert daemon.metric("gatepost_requests_total", source="", outcome="not_found") == 0
    assert daemon.metric("gatepost_requests_total", outcome="throttled") == 0


def test_its_own_refused_delivery_is_marked_and_no_warning(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    secret = daemon.config["source invoicing"]["secret_file"]
    change_secret(daemon.config)
    assert examine(installation, daemon.config).status == EX_CONFIG
    daemon.config["source invoicing"]["secret_file"] = secret
    (refusal,) = status_of(daemon)["refusals"]
    assert refusal["outcome"] == "forged" and refusal["detail"].startswith("by gatepost doctor: the sender has another secret")
    assert is_without_refusals(examine(installation, file_of(daemon)))


def closed_by(address, source, context=None):
    """Connect from another address of the loopback interface until the receiver closes the connection without an answer."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0)) as plain, contextlib.suppress(OSError):
        with contextlib.nullcontext(plain) if context is None else context.wrap_socket(plain) as connection:
            connection.sendall(b"POST /webhooks/invoicing HTTP/1.1\r\n")
            assert connection.recv(1) == b""


def closing(daemon, outcome):
    """What /status has of connections that were closed for a reason."""
    return [each for each in status_of(daemon)["refusals"] if each["outcome"] == outcome]


def test_connections_beyond_the_limit_of_an_address_are_a_warning(installation, stopped):
    stopped.config["receiver"].update({"listen": "127.0.0.1:0", "max_connections_per_address": 1})
    daemon = stopped.start().wait_until_ready()
    host, port = daemon.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30, source_address=("127.0.0.9", 0)) as first:
        first.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # so it is counted before the next ones
        assert b" 404 " in first.recv(65536)
        for _ in range(3):
            closed_by(daemon.address, "127.0.0.9")
    (found,) = closing(daemon, "per_address")
    assert (found["count"], found["client"], found["status"]) == (3, "127.0.0.9", None) and time.time() - found["timeSeconds"] < 600
    checkup = examine(installation, file_of(daemon))
    (warning,) = checkup.having("!")
    assert checkup.status == 0 and warning == ("! refusals: 1 request refused and 3 connections closed before a request, 3 as per_address, the last: "
                                               f"127.0.0.9 had max_connections_per_address open already; see gatepost -c {file_of(daemon)} status")
    assert "127.0.0.9 had max_connections_per_address open already" in installation.gatepost("status", config=file_of(daemon)).stdout


def test_connections_closed_after_their_answers_are_no_warning(installation, stopped):
    """Each has its answer, and is closed for a newer one; those that have sent nothing yet may lose a delivery."""
    stopped.config["receiver"].update({"listen": "127.0.0.1:0", "max_connections": 8, "threads": 1})
    daemon = stopped.start().wait_until_ready()
    host, port = daemon.address.rsplit(":", 1)
    with contextlib.ExitStack() as held:
        def connect():
            return held.enter_context(socket.create_connection((host, int(port)), timeout=30))
        for _ in range(12):
            delivery = Delivery()
            headers = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
            connection = connect()
            connection.sendall(f"POST /webhooks/invoicing HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(delivery.body)}\r\n\r\n".encode()
                               + delivery.body)
            assert b" 200 " in connection.recv(65536)
        waiting.until(lambda: daemon.metric("gatepost_connections_closed_total", reason="made_room") >= 4, 30, "connections to be closed")
        assert closing(daemon, "made_room") == []
        assert is_without_refusals(examine(installation, file_of(daemon)))
        for _ in range(20):
            connect()
        waiting.until(lambda: closing(daemon, "made_room"), 30, "one that has sent nothing to be noted")


@pytest.mark.parametrize("trusted, outcome, words", [("192.0.2.1", "no_proxy", "127.0.0.9 is no trusted_proxy"),
                                                     ("127.0.0.0/8", "proxy_header", "no valid header of the PROXY protocol from 127.0.0.9")])
def test_proxy_whose_connections_are_closed_is_a_warning(installation, stopped, trusted, outcome, words):
    """Of both lanes, but not the connections of doctor itself, which is no trusted proxy either."""
    stopped.config["receiver"].update({"trusted_proxy": trusted, "proxy_protocol": "required", "threads": 2, "listen": f"127.0.0.1:{installation.port()}"})
    daemon = stopped.start().wait_until_ready()
    def warnings():
        """Not that of `check` about this listener."""
        return [line for line in examine(installation, file_of(daemon)).having("!") if not line.startswith("! configuration ")]
    for _ in range(2):
        assert not warnings()
    for _ in range(20):  # each by either lane
        closed_by(stopped.config["receiver"]["listen"], "127.0.0.9")
    (warning,) = warnings()
    assert warning.startswith(f"! refusals: 20 connections closed before a request, 20 as {outcome}, the last: {words}; proxy_protocol"), warning


def test_closed_connections_of_a_proxy_on_this_machine_are_a_note_or_a_warning(installation, stopped):
    """They look like those of doctor itself, which makes few; but it does not say that nothing is refused."""
    stopped.config["receiver"].update({"trusted_proxy": "192.0.2.1", "proxy_protocol": "required", "listen": f"127.0.0.1:{installation.port()}"})
    daemon = stopped.start().wait_until_ready()
    examine(installation, file_of(daemon))
    for _ in range(10):
        closed_by(stopped.config["receiver"]["listen"], "127.0.0.1")
    (found,) = closing(daemon, "no_proxy")
    (note,) = refusals_of(examine(installation, file_of(daemon)))
    n = closing(daemon, "no_proxy")[0]["count"]
    assert 10 < found["count"] <= n <= found["count"] + 3
    assert note.startswith(f"• refusals: {n} connections closed before a request, {n} as no_proxy, the last: 127.0.0.1 is no trusted_proxy; "), note
    assert note.endswith(f"each run of gatepost doctor makes up to 4 such, and any more are of another client; see gatepost -c {file_of(daemon)} status")
    for _ in range(20):
        closed_by(stopped.config["receiver"]["listen"], "127.0.0.1")
    (warning,) = refusals_of(examine(installation, file_of(daemon)))
    assert warning.startswith("! ") and " connections closed before a request, " in warning, warning
    assert " as no_proxy, the last: 127.0.0.1 is no trusted_proxy; " in warning and "each run of gatepost doctor makes up to 4 such; " in warning


def test_closed_connections_of_a_proxy_on_a_unix_socket_are_a_note(installation, stopped):
    """No run with --to can have made one, only the probes of the listener."""
    stopped.config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required"})
    daemon = stopped.start().wait_until_ready()
    for _ in range(12):
        with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
            connection.connect(stopped.config["receiver"]["listen"].removeprefix("unix:"))
            connection.sendall(b"PROXY UNKNOWN\r\n")
            connection.recv(1)
    waiting.until(lambda: sum(each["count"] for each in closing(daemon, "no_proxy")) == 12, 30, "the closed connections")
    (note,) = refusals_of(examine(installation, file_of(daemon)))
    assert note.startswith("• refusals: 1") and "each run of gatepost doctor makes up to 3 such, and any more are of another client" in note, note


@pytest.mark.parametrize("n, mark", [(2, "•"), (10, "!")])
def test_handshakes_that_clients_of_this_machine_give_up(installation, stopped, authority, n, mark):
    """As doctor --to does without the authority of the certificate; a proxy, for each delivery."""
    stopped.config.tls(*authority.issue("unknown"))
    stopped.config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    daemon = stopped.start().wait_until_ready()
    expect(examine(installation, file_of(daemon), "--to", f"https://{stopped.config['receiver']['listen']}"), EX_UNAVAILABLE, "delivery ")
    host, port = stopped.config["receiver"]["listen"].rsplit(":", 1)
    for _ in range(n):
        with socket.create_connection((host, int(port)), timeout=30) as plain, pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
    waiting.until(lambda: sum(each["count"] for each in closing(daemon, "handshake_failed")) == n + 1, 30, "the failed handshakes")
    (line,) = refusals_of(examine(installation, file_of(daemon)))
    assert line.startswith(f"{mark} refusals: {n + 1} connections closed before a request, ") and "makes up to 1 such" in line, line


def test_failed_handshakes_are_a_warning(installation, stopped, authority, tmp_path):
    """But not those of doctor itself, which has no certificate of a client."""
    stopped.config.tls(*authority.issue("refusing"))
    stopped.config["receiver"].update({"tls_client_ca_file": authority.certificate, "listen": f"127.0.0.1:{installation.port()}"})
    daemon = stopped.start().wait_until_ready()
    for _ in range(2):
        (line,) = refusals_of(examine(installation, file_of(daemon)))
        assert not line.startswith("!"), line
    assert closing(daemon, "handshake_failed")
    other = Authority(tmp_path)
    context = ssl._create_unverified_context()
    context.load_cert_chain(*other.issue("of-another-authority"))
    closed_by(stopped.config["receiver"]["listen"], "127.0.0.1", context)
    waiting.until(lambda: len(closing(daemon, "handshake_failed")) == 2, 30, "the failed handshake")
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if line.startswith("! refusals")]
    assert warning.startswith("! refusals: 1 connection closed before a request, 1 as handshake_failed, the last: the TLS handshake with 127.0.0.1 "
                              "failed: ") and "did not return a certificate" not in warning, warning


def test_its_delivery_that_is_not_stored_is_marked(installation, stopped):
    """Here, since Kafka refuses it for its size; the detail of any other delivery is without the mark."""
    stopped.config["receiver"]["listen"] = "127.0.0.1:0"
    daemon = stopped.start().wait_until_ready()
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "50000")
    for agent, begin in (("gatepost-doctor", "by gatepost doctor: "), ("another", "")):
        delivery = Delivery(event_body(padding="x" * 100000))
        headers = delivery.headers("x-invoicing") | {"user-agent": agent}

        def is_refused(detail=begin, delivery=delivery, headers=headers):
            assert http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, delivery.body).status in (200, 503)
            return status_of(daemon)["refusals"] and status_of(daemon)["refusals"][0]["detail"].startswith(detail + "Broker: Message size too large")
        waiting.until(is_refused, 30, lambda: f"a refusal by Kafka: {status_of(daemon)['refusals']}")


def test_another_program_on_the_port(installation, stopped):
    with FakeService() as service:
        stopped.config["receiver"]["listen"] = service.url.split("/")[2]
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "listen 127.0.0.1:", "another program than gatepostd",
               "BaseHTTP", "ss -ltnp")
        service.faults = [answers(200, headers=[("x-request-id", "r-1")], body=b"{}")]
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "listen 127.0.0.1:", "another program than gatepostd", "200")


def test_another_program_on_the_admin_port(installation, stopped):
    """It answers 200 on /healthz and /readyz, as many do, and nonsense on /status."""
    with FakeService() as service:
        service.faults = [answers(200, body=b"null")] * 5
        stopped.config["admin"]["listen"] = service.url.split("/")[2]
        stopped.config["gatepost"]["roles"] = "router"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "daemon /status: another program than gatepostd")


def test_listener_that_accepts_no_connection_is_not_to_be_started(installation, stopped):
    """Its backlog is full, as that of a daemon that hangs."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as waiting_ones:
        for _ in range(4):
            each = waiting_ones.enter_context(socket.socket())
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, "listen 127.0.0.1:", "see what listens there: ss -ltnp", "hangs", "journalctl -u gatepostd")
    assert "systemctl start" not in checkup.cause


def test_silent_program_on_the_port_is_not_waited_for(installation, stopped):
    with socket.create_server(("127.0.0.1", 0)) as server:
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "no answer to HTTP: no answer within")


def test_slow_program_on_the_port_is_not_waited_for(installation, stopped):
    """One byte after the other, each in time."""
    def answer(server):
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            while True:
                connection.sendall(b"H")
                time.sleep(0.5)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        begun = time.monotonic()
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "another program than gatepostd answers")
        assert time.monotonic() - begun < 40


@pytest.mark.parametrize("says", [b"SSH-2.0-OpenSSH_9.2p1\r\n", b""], ids=["ssh", "closes"])
def test_another_protocol_on_the_admin_port(installation, stopped, says):
    def answer(server):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                connection.sendall(says)
                connection.recv(65536)
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        stopped.config["admin"]["listen"] = "%s:%d" % server.getsockname()
        stopped.config["gatepost"]["roles"] = "router"
        checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, "daemon /healthz: no answer as from gatepostd on 127.0.0.1:", "ss -ltnp", "`listen` in [admin]")
    assert "systemctl start" not in checkup.cause


# A daemon with another configuration

def change_secret(config):
    config["source invoicing"]["secret_file"] = config.secret_file("changed", OTHER_SECRET)


def change_prefix(config):
    config["source invoicing"]["header_prefix"] = "x-other"


def change_path(config):
    config["source invoicing"]["path"] = "/other"


def change_webhook_id(config):
    config["source invoicing"]["webhook_id"] = "another"


@pytest.mark.parametrize("change, answer", [(change_secret, "401 (INVALID_SIGNATURE)"), (change_prefix, "400 (VALIDATION_ERROR)"),
                                            (change_path, "404 (NOT_FOUND)"), (change_webhook_id, "403 (FORBIDDEN)")])
def test_daemon_that_was_not_reloaded(installation, stopped, change, answer):
    stopped.config["source invoicing"]["webhook_id"] = "the-one"
    daemon = stopped.start().wait_until_ready()
    change(daemon.config)
    checkup = examine(installation, daemon.config)
    expect(checkup, EX_CONFIG, "delivery ", f"answered {answer}: ", "systemctl reload gatepostd")
    reload(daemon)
    assert examine(installation, file_of(daemon)).status == 0
    installation.kafka.wait_until_routed()
    assert installation.kafka.read() == []


def test_router_that_quarantines_the_delivery(installation, stopped):
    """The file has another `kind` than the running router: every genuine delivery goes to quarantine, too."""
    daemon = stopped.start().wait_until_ready()
    daemon.config["source invoicing"]["kind"] = "/type"
    checkup = examine(installation, daemon.config)
    expect(checkup, EX_CONFIG, "router ", "has quarantined it", "missing-kind, nothing at /event", "`kind`")


def test_embedded_router_that_quarantines_the_delivery(installation):
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    daemon.config["source invoicing"]["kind"] = "/type"
    expect(examine(installation, daemon.config), EX_CONFIG, "router ", "has quarantined it", "missing-kind, nothing at /event", "`kind`")


@pytest.fixture
def apart(installation):
    """A receiver, and a router that verifies by another secret."""
    installation.create_topics()
    receiver = installation.daemon(by_sockets(installation, "receiver"))
    receiver.config["receiver"]["listen"] = ["127.0.0.1:0", f"unix:{receiver.config.directory}/receiver.sock"]
    router = installation.daemon(by_sockets(installation, "router"))
    router.config["router"]["verify"] = "on"
    change_secret(router.config)
    return receiver.start().wait_until_ready(), router.start().wait_until_ready()


def test_genuine_deliveries_in_quarantine_are_a_warning(installation, apart):
    """The router verifies by another secret than the receiver."""
    receiver, router = apart
    assert "✓ quarantine: no delivery quarantined within an hour" in examine(installation, file_of(router)).lines
    for number in range(1, 3):
        receiver.accept()
        waiting.until(lambda: status_of(router)["quarantined"]["unverified"] == number, 30, "the router to quarantine it")
    checkup = examine(installation, file_of(router))
    (warning,) = checkup.having("!")
    assert checkup.status == 0 and warning.startswith(
        "! quarantine: 2 deliveries quarantined within an hour, by any router, the last of [source invoicing] as unverified: ")
    checkup = examine(installation, file_of(router), "--to", f"http://{receiver.address}")
    expect(checkup, EX_CONFIG, "answered 401 (INVALID_SIGNATURE)", "if it is [source invoicing]", "the same secret_file of it", "verify = on",
           "then reload both")


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


def test_deliveries_deleted_before_they_were_routed_are_a_warning(installation):
    """By retention while no router runs: the routed partition says it by the router, one without a router by its offsets."""
    installation.create_topics(partitions=1)
    router = installation.daemon(by_sockets(installation, "router")).start().wait_until_ready()
    (line,) = [line for line in examine(installation, file_of(router)).lines if line[2:].startswith("losses")]
    assert line.startswith("✓ losses: this router has found no delivery lost since the start of gatepostd "), line
    kafka = installation.kafka
    kafka.append([Delivery() for _ in range(2)])
    kafka.wait_until_routed()
    router.stop()
    kafka.append([Delivery() for _ in range(5)])
    drop_first(kafka, kafka.deliveries, 7)
    without = by_sockets(installation, "router")
    without["admin"]["listen"] = "off"
    (warning,) = [line for line in examine(installation, without, "--no-send").having("!") if line.startswith("! partitions ")]
    assert warning.startswith(f"! partitions {kafka.deliveries}: in partition 0, the offsets 2 to 6 were deleted before they were routed"), warning
    router.start().wait_until_ready()
    waiting.until(lambda: router.metric("gatepost_deleted_before_routing_total") == 5, 30, "the router to count them")
    kafka.append([Delivery()])
    kafka.wait_until_routed()
    checkup = examine(installation, file_of(router))
    (warning,) = checkup.having("!")
    assert checkup.status == 0 and warning.startswith("! losses: up to 5 deliveries were deleted before they were routed"), warning
    assert status_of(router)["deletedBeforeRouting"]["timeSeconds"] > time.time() - 600
    assert "deleted before routing: 5, last " in installation.gatepost("status", config=file_of(router)).stdout


@pytest.mark.parametrize("age_s, is_told", [(60, True), (7200, False)])
def test_log_that_kafka_has_cut_off_is_a_warning(offline, service, age_s, is_told):
    """Of a report with a truncation of that age."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    checkup = with_status(offline, service, file := str(config.write()), {"file": file},
                          logTruncations={"count": 1, "timeSeconds": int(time.time()) - age_s}, deletedBeforeRouting={"count": 0})
    lines = [line for line in checkup.lines if line[2:].startswith("losses")]
    assert [line.startswith("! losses: Kafka has lost deliveries that it had acknowledged, 1 time since ") for line in lines] == [is_told], lines


def test_router_that_verifies_the_delivery_by_another_secret(installation, apart):
    """The file has the receiver's secret, which the router has not loaded."""
    receiver, router = apart
    router.config["source invoicing"]["secret_file"] = receiver.config["source invoicing"]["secret_file"]
    checkup = examine(installation, router.config, "--to", f"http://{receiver.address}")
    expect(checkup, EX_CONFIG, "router ", "has quarantined it, and may do so with genuine deliveries: unverified, ",
           "verify = on, and other secrets", "then reload the router")


def test_kind_may_have_the_name_of_the_test_deliveries(installation, stopped):
    stopped.config["source invoicing"]["kind"] = "/gatepost.doctor"
    daemon = stopped.start().wait_until_ready()
    assert examine(installation, file_of(daemon)).status == 0
    assert daemon.metric("gatepost_quarantined_total") == 0


def test_receiver_of_other_brokers_or_topics(installation, stopped):
    """The delivery is accepted, but goes elsewhere."""
    stopped.start().wait_until_ready()
    other = Installation(installation.directory / "other", installation.bootstrap)
    other.directory.mkdir()
    config = by_sockets(other)
    config["receiver"]["listen"] = stopped.config["receiver"]["listen"]
    other.create_topics(config)
    config["admin"]["listen"] = "off"
    expect(examine(other, config), EX_CONFIG, "router ", "accepted, but not found", "prefix")
    other.clean_up()


def test_no_router_decides(installation):
    installation.create_topics()
    receiver = installation.start(by_sockets(installation, "receiver"))
    both = by_sockets(installation)
    both["receiver"]["listen"], both["admin"]["listen"] = receiver.config["receiver"]["listen"], "off"
    expect(examine(installation, both), EX_UNAVAILABLE, "router ", "has not decided on it within 30 s", "gatepost status")


def examine_until(installation, config, mark, then, *arguments):
    """Run it, and do something once it has printed a line that begins so."""
    process = subprocess.Popen([BUILD / "gatepost", "-c", config.write(), "doctor", *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | UTF_8)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(mark):
            then()
    stderr = process.stderr.read()
    assert_no_sanitizer_report(stderr)
    return Checkup(subprocess.CompletedProcess(process.args, process.wait(60), "".join(lines), stderr))


def test_router_that_catches_up_is_a_warning(installation):
    """Offsets that are committed one by one are those of a slow router."""
    installation.create_topics()
    receiver = installation.start(by_sockets(installation, "receiver"))
    installation.kafka.append([Delivery() for _ in range(900)])
    both = by_sockets(installation)
    both["receiver"]["listen"], both["admin"]["listen"] = receiver.config["receiver"]["listen"], "off"
    consumer = Consumer({"bootstrap.servers": installation.bootstrap, "group.id": installation.kafka.group})
    ended = threading.Event()

    def decide():
        for offset in range(1, 200):
            consumer.commit(offsets=[TopicPartition(installation.kafka.deliveries, partition, offset) for partition in range(3)],
                            asynchronous=False)
            if ended.wait(0.5):
                break
    thread = threading.Thread(target=decide)
    checkup = examine_until(installation, both, "✓ delivery ", thread.start)
    ended.set()
    thread.join(60)
    consumer.close()
    (warning,) = [line for line in checkup.having("!") if line.startswith("! router ")]
    assert "not decided within 30 s: a router is catching up, and about " in warning and "gatepost status" in warning
    assert checkup.status == 0 and checkup.having("✗") == [], checkup.lines


def test_kafka_is_lost_on_the_way(tmp_path):
    """What cannot be asked any more is no trouble of which there is none. No router decides, so these steps wait."""
    with Cluster() as cluster:
        site = Installation(tmp_path, cluster.bootstrap)
        try:
            site.create_topics()
            receiver = site.start(by_sockets(site, "receiver"))
            both = by_sockets(site)
            both["receiver"]["listen"], both["admin"]["listen"] = receiver.config["receiver"]["listen"], "off"
            for step, mark, *arguments in (("router", "✓ delivery "), ("partitions", "- delivery: ", "--no-send")):
                checkup = examine_until(site, both, mark, lambda: cluster.pause(1), *arguments)
                cluster.resume(1)
                expect(checkup, EX_UNAVAILABLE, f"{step} {site.kafka.deliveries}: ", "see whether its brokers still run")
                receiver.wait_until_ready()
        finally:
            cluster.resume(1)
            site.clean_up()


def states(router):
    return {each["partition"]: each["state"] for each in status_of(router)["partitions"]}


@pytest.fixture
def two_routers(installation):
    """Two of one group, of which the second publishes one kind to a topic of its own; they share four partitions."""
    first, second = (installation.daemon(by_sockets(installation)) for _ in range(2))
    second.config["events"]["invoice.rejected"] = topic = f"{installation.prefix}.of-the-second"
    for daemon in (first, second):
        installation.create_topics(daemon.config, partitions=4)
    for daemon in (first, second):
        daemon.start()
    waiting.until(lambda: [sorted(states(daemon).values()) for daemon in (first, second)] == [["routing"] * 2] * 2, 90,
                  lambda: f"two partitions for each router:\n{first.last_log(3000)}\n{second.last_log(3000)}")
    for daemon in (first, second):
        daemon.wait_until_ready()
    return first, second, topic


def test_partition_that_another_router_does_not_route(installation, two_routers):
    """The test delivery comes to another partition, and the machine's own router is ready."""
    first, second, topic = two_routers
    installation.kafka.delete(topic)

    def is_stuck():
        first.accept(Delivery(event_body("invoice.rejected")))
        return "waiting" in states(second).values() and states(second)
    stuck = waiting.until(is_stuck, 90, lambda: f"a partition of the second router to wait:\n{second.last_log(4000)}")
    numbers = [number for number, state in stuck.items() if state == "waiting"]
    assert set(states(first).values()) == {"routing"} and first.admin("/readyz").status == 200
    checkup = examine(installation, file_of(first), "--no-send")
    expect(checkup, EX_UNAVAILABLE, f"partitions {installation.kafka.deliveries}: ", " of 4 partitions ", "not routed",
           "and none was decided within 30 s; another router has it", "on the machine of each router")
    assert any(f"{number}" in checkup.cause.split("not routed, ")[1].split(":")[0] for number in numbers), checkup.cause
    installation.create_topics(second.config, partitions=4)
    installation.kafka.wait_until_routed(120)
    checkup = examine(installation, file_of(first))
    assert checkup.status == 0, checkup.lines
    assert f"✓ partitions {installation.kafka.deliveries}: 4, and in none a delivery waits without being decided" in checkup.lines


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_consumer_in_the_group_of_the_routers(installation, stopped, group_protocol):
    """It gets partitions, and the deliveries that it commits have no events; also by the protocol of KIP-848, which changes the group."""
    stopped.start().wait_until_ready()
    assert f"✓ group {installation.prefix}.router: 1 router" in examine(installation, stopped.config, "--no-send").lines
    consumer = Consumer({"bootstrap.servers": installation.bootstrap, "group.id": installation.kafka.group, "client.id": "billing",
                         "group.protocol": group_protocol})
    consumer.subscribe([installation.kafka.deliveries])
    waiting.until(lambda: consumer.poll(0.1) is not None or consumer.assignment(), 60, "the consumer's partitions")
    checkup = examine(installation, stopped.config)
    consumer.close()
    expect(checkup, EX_CONFIG, f"group {installation.kafka.group}: 1 of 2 members is no router of Gatepost, such as the client billing at 127.0.0.1: ",
           "remedy: stop that consumer, and give it a group.id of its own")
    assert any(line.startswith("- delivery: needs what failed above (permissions)") for line in checkup.lines), checkup.lines


def test_aborted_transaction_is_no_delivery_that_waits(installation, stopped):
    """Its records and its end have offsets, up to which a router need not commit."""
    daemon = stopped.start().wait_until_ready()
    producer = Producer({"bootstrap.servers": installation.bootstrap, "transactional.id": f"{installation.prefix}-aborted"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(installation.kafka.deliveries, b"{}", partition=partition)
    producer.flush(30)
    producer.abort_transaction(30)
    checkup = examine(installation, file_of(daemon), "--no-send")
    assert checkup.status == 0 and any(line.startswith("✓ partitions ") for line in checkup.lines), checkup.lines


@pytest.mark.parametrize("step, arguments", [("partitions", ["--no-send"]), ("router", [])])
def test_transaction_that_stays_open(installation, stopped, step, arguments):
    """It hides the deliveries of its partitions from the router, here of all, so that also the test delivery is."""
    daemon, deliveries = stopped.start().wait_until_ready(), installation.kafka.deliveries
    producer = Producer({"bootstrap.servers": installation.bootstrap, "transactional.id": f"{installation.prefix}-left-open",
                         "transaction.timeout.ms": 300000})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(deliveries, b"{}", partition=partition)
    producer.flush(30)
    daemon.accept(Delivery())
    checkup = examine(installation, file_of(daemon), *arguments)
    expect(checkup, EX_UNAVAILABLE, f"{step} {deliveries}: a transaction stays open in 3 of 3 partitions", f"in 0 all from offset 0 on",
           f"remedy: kafka-transactions.sh --bootstrap-server BROKER describe-producers --topic {deliveries} --partition 0 shows its producer",
           f"abort --topic {deliveries} --partition 0 --start-offset 0")
    producer.abort_transaction(30)
    # A router that skips the aborted records may not be ready for a moment.
    waiting.until(lambda: installation.kafka.read(), 90, "the delivery to be published")
    daemon.wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any(line.startswith("✓ partitions ") for line in checkup.lines), checkup.lines


def test_tls_of_the_listener(installation, stopped, authority):
    certificate, key = authority.issue("gateway", names="DNS:gateway.example")
    stopped.config.tls(certificate, key)
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    (warning,) = [line for line in checkup.having("!") if line.startswith("! tls ")]
    assert "for gateway.example" in warning and "unable to get local issuer certificate" in warning and checkup.status == 0
    checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(authority.certificate)})
    assert any(line.startswith("✓ tls ") and "gateway.example" in line for line in checkup.lines), checkup.lines
    daemon.config.tls(*authority.issue("renewed", names="DNS:gateway.example"))
    checkup = examine(installation, daemon.config)
    expect(checkup, EX_CONFIG, "delivery ", "gatepostd serves another certificate than ", "systemctl reload gatepostd")
    assert any(line.startswith("! tls ") and "serves another certificate" in line for line in checkup.lines)


def test_intermediate_certificate_that_is_not_sent(installation, stopped, authority, tmp_path):
    """This machine has it, and the service may not."""
    directory = tmp_path / "intermediate"
    directory.mkdir()
    intermediate = Authority(directory)
    subprocess.run(["openssl", "req", "-x509", "-key", directory / "ca.key", "-days", "2", "-subj", "/CN=intermediate of the tests",
                    "-CA", authority.certificate, "-CAkey", authority.directory / "ca.key", "-out", intermediate.certificate],
                   check=True, capture_output=True)
    certificate, key = intermediate.issue("leaf", names="DNS:gateway.example")
    store = tmp_path / "store.pem"
    store.write_text(authority.certificate.read_text() + intermediate.certificate.read_text())
    stopped.config.tls(certificate, key)
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(store)})
    (warning,) = [line for line in checkup.having("!") if line.startswith("! tls ")]
    assert "does not send the intermediate certificate /CN=intermediate of the tests, " in warning and f"add it to {certificate}" in warning
    certificate.write_text(certificate.read_text() + intermediate.certificate.read_text())
    reload(daemon)
    for trusted in (store, authority.certificate):
        checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(trusted)})
        assert any(line.startswith("✓ tls ") and "trusted by" in line for line in checkup.lines), checkup.lines


def test_listener_with_tls_in_the_file_only(installation, stopped, authority):
    daemon = stopped.start().wait_until_ready()
    daemon.config.tls(*authority.issue("late"))
    expect(examine(installation, daemon.config), EX_CONFIG, "tls unix:", "no TLS", "restart gatepostd")


def test_certificate_of_clients_is_required(installation, stopped, authority):
    stopped.config.tls(*authority.issue("strict"))
    stopped.config["receiver"]["tls_client_ca_file"] = authority.certificate
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and len([line for line in checkup.having("-") if "certificate of the client" in line]) == 2, checkup.lines


def test_certificates_of_clients_in_the_daemon_or_the_file_only(installation, stopped, authority):
    """In the one case a GET fails with a broken pipe, in the other it is answered."""
    stopped.config.tls(*authority.issue("half"))
    stopped.config["receiver"]["tls_client_ca_file"] = authority.certificate
    daemon = stopped.start().wait_until_ready()
    del daemon.config["receiver"]["tls_client_ca_file"]
    checkup = examine(installation, daemon.config)
    expect(checkup, EX_CONFIG, "listen unix:", "it requires a certificate of the client, but ", "has no tls_client_ca_file",
           "systemctl reload gatepostd")
    reload(daemon)
    assert examine(installation, file_of(daemon)).status == 0
    daemon.config["receiver"]["tls_client_ca_file"] = authority.certificate
    checkup = examine(installation, daemon.config)
    assert checkup.status == 0 and any(line.startswith("! listen ") and "without a certificate of the client" in line
                                       for line in checkup.lines), checkup.lines


def test_only_the_missing_certificate_of_the_client_is_a_skip(installation, stopped, authority):
    """Another server accepts the handshake, and closes the connection."""
    certificate, key = authority.issue("other-server")
    stopped.config.tls(certificate, key)
    stopped.config["receiver"]["tls_client_ca_file"] = authority.certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def answer(server):
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "no answer to HTTP: ")


# Files

def test_certificate_that_has_expired(offline, authority):
    config = offline.config().tls(*authority.issue("old", begin="20200101000000Z", end="20200102000000Z"))
    expect(examine(offline, config), EX_CONFIG, "certificate ", "expired at 2020-01-02", "replace the files")


def test_authority_for_clients_that_has_expired(offline, authority):
    config = offline.config().tls(*authority.issue("present"))
    old, _ = authority.issue("old-authority", begin="20200101000000Z", end="20200102000000Z")
    file = config["receiver"]["tls_client_ca_file"] = config.directory / "authorities.pem"
    shutil.copy(old, file)
    expect(examine(offline, config), EX_CONFIG, f"certificate {file}: no certificate of a client can be valid: ", "expired at 2020-01-02",
           "replace tls_client_ca_file")
    file.write_text(file.read_text() + authority.certificate.read_text())
    assert any(line.startswith(f"! certificate {file}: certificate 1, of an authority, expired at 2020-01-02")
               for line in examine(offline, config).lines)


def test_mistake_in_the_configuration(offline):
    config = offline.config()
    config["receiver"]["ack_timout"] = "8s"
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, "configuration ", "did you mean ack_timeout?", "gatepost -c ", " check lists")
    assert checkup.having("-") == ["- 13 steps skipped: they need a valid configuration"]
    document = json.loads("\n".join(examine(offline, config, "--json").lines))
    assert [step["result"] for step in document["steps"]] == ["failed"] + ["skipped"] * 13


def test_missing_secret_is_made_by_a_command(offline):
    config = offline.config()
    config["source invoicing"]["secret_file"] = path = f"{config.directory}/no-such-secret"
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, f"cannot open {path}: No such file or directory; remedy: gatepost secret new {path}")
    assert checkup.cause.endswith(f"gatepost secret new {path}")
    done = offline.gatepost("check", config=config)
    assert f"No such file or directory; make one: gatepost secret new {path}\n" in done.stderr


def test_secret_that_others_can_read_has_one_remedy(offline):
    config = offline.config()
    path = config["source invoicing"]["secret_file"]
    pathlib.Path(path).chmod(0o644)
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, "others can read it (mode 0644)")
    assert checkup.cause.endswith(f"; remedy: chmod o= {path}") and checkup.cause.count("chmod") == 1


def test_each_later_failure_keeps_its_remedy(offline):
    config = offline.config()
    config["source invoicing"]["secret_file"] = [f"{config.directory}/{name}" for name in ("first", "second")]
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, f"gatepost secret new {config.directory}/first")
    assert checkup.having("✗")[1].endswith(f"; make one: gatepost secret new {config.directory}/second")


@pytest.mark.parametrize("is_inside", [False, True])
def test_secret_that_this_user_cannot_read(offline, is_inside):
    """Inside a directory that the user cannot enter, the mode of the file does not matter."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        program = shutil.copy(BUILD / "gatepost", directory)  # the build may be in a directory that others cannot enter
        config = offline.config()
        config.directory = directory
        if is_inside:
            (config.directory / "private").mkdir(0o700)
        config["source invoicing"]["secret_file"] = config.secret_file("private/secret" if is_inside else "secret", SECRET)
        path = config.write()
        path.chmod(0o644)
        done = subprocess.run([program, "-c", path, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                              env=ENVIRONMENT | UTF_8, user=65533, group=65533, extra_groups=[])
    assert_no_sanitizer_report(done.stderr)
    expect(Checkup(done), EX_NOPERM, "cannot open", "Permission denied", "sudo -u gatepost gatepost -c",
           f"chgrp gatepost {directory}/private && chmod g+x {directory}/private" if is_inside else
           f"chgrp gatepost {directory}/secret && chmod g+r {directory}/secret")


@pytest.fixture
def router_of_nobody(offline, service):
    """A function that examines a router which runs as nobody, by its report; its directory can be entered by anybody."""
    with tempfile.TemporaryDirectory() as name:
        config = offline.config("router")
        config.directory = pathlib.Path(name)
        config.directory.chmod(0o755)
        secret = config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
        config["admin"]["listen"] = service.url.split("/")[2]

        def run(report=None, group=65534, wrapper=()):
            """Of a daemon with this report, or a function that makes it; this group may read the files. Wrapper executes the doctor."""
            file = config.write()
            for path in (secret, file):
                os.chown(path, 0, group)
                os.chmod(path, 0o640)
            service.faults = [answers(200, report(file) if callable(report) else report or {"userId": 65534, "groupIds": [65534]})]
            done = subprocess.run([*wrapper, BUILD / "gatepost", "-c", file, "doctor"], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=60, env=ENVIRONMENT | UTF_8)
            assert_no_sanitizer_report(done.stderr)
            return Checkup(done)
        run.config = config
        run.secret = secret
        yield run


def test_directory_that_the_daemons_user_cannot_write(router_of_nobody):
    config = router_of_nobody.config
    config["router"]["state"] = str(config.directory / "state")
    checkup = router_of_nobody()
    expect(checkup, EX_NOPERM, f"files {config.directory}/state: the daemon's user, nobody, cannot write {config.directory}: Permission denied",
           f"remedy: if it is on a disk of its own, mount that; else: install -d -o nobody -m 0700 {config.directory}/state")
    assert f"✓ files {config['source invoicing']['secret_file']}: the daemon's user, nobody, may read it" in checkup.lines
    (config.directory / "state").symlink_to(config.directory / "disk" / "state")
    expect(router_of_nobody(), EX_NOPERM, f"files {config.directory}/state: the daemon's user, nobody, cannot write it: No such file or directory",
           "if it is on a disk of its own, mount that")
    (config.directory / "state").unlink()
    (config.directory / "state").mkdir(0o700)
    expect(router_of_nobody(), EX_NOPERM, f"files {config.directory}/state: the daemon's user, nobody, cannot write it: Permission denied",
           "if it is on a disk of its own, mount that; else: install -d")
    os.chown(config.directory / "state", 65534, 65534)
    assert f"✓ files {config.directory}/state: the daemon's user, nobody, may write it" in router_of_nobody().lines


def test_file_in_a_directory_of_the_daemon_that_its_user_cannot_read(router_of_nobody):
    """Root has run gatepostd by hand."""
    state = router_of_nobody.config.directory / "state"
    router_of_nobody.config["router"]["state"] = str(state)
    state.mkdir(0o700)
    os.chown(state, 65534, 65534)
    (state / "key").touch(0o600)
    expect(router_of_nobody(), EX_NOPERM, f"files {state}: the daemon's user, nobody, cannot read {state}/key, which is in it: Permission denied",
           f"; remedy: chown -R nobody {state}")
    os.chown(state / "key", 65534, 0)
    assert f"✓ files {state}: the daemon's user, nobody, may write it" in router_of_nobody().lines


def test_files_of_others_in_a_directory_of_the_daemon_do_not_matter(router_of_nobody):
    """Such as those of quotas, in the root of a file system; chown of a link to the directory would change nothing in it."""
    directory, state = (router_of_nobody.config.directory / name for name in ("disk", "state"))
    router_of_nobody.config["router"]["state"] = str(state)
    directory.mkdir(0o700)
    os.chown(directory, 65534, 65534)
    state.symlink_to(directory)
    (directory / "aquota.user").touch(0o600)
    assert f"✓ files {state}: the daemon's user, nobody, may write it" in router_of_nobody().lines
    for name in ("lock", "key", "0-10-20.run"):
        (directory / name).touch(0o600)
        expect(router_of_nobody(), EX_NOPERM, f"cannot read {state}/{name}, which is in it", f"; remedy: chown -R nobody {directory}")
        (directory / name).unlink()


def test_file_in_a_directory_that_the_daemons_user_cannot_enter(router_of_nobody, authority):
    config = router_of_nobody.config
    private = config.directory / "private"
    private.mkdir(0o700)
    shutil.copy(authority.certificate, private / "ca.pem")
    (private / "ca.pem").chmod(0o644)
    config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": private / "ca.pem"})
    expect(router_of_nobody(), EX_NOPERM, f"files {private}/ca.pem: the daemon's user, nobody, cannot read it: Permission denied; remedy: ",
           f"let nobody enter the directory: chgrp nogroup {private} && chmod g+x {private}")


def test_file_behind_a_link_into_a_directory_that_the_daemons_user_cannot_enter(router_of_nobody, authority):
    """As certbot lays out its files: the link can be reached, and its target cannot."""
    directory = router_of_nobody.config.directory
    (directory / "archive").mkdir(0o700)
    shutil.copy(authority.certificate, directory / "archive" / "ca1.pem")
    (directory / "archive" / "ca1.pem").chmod(0o644)
    (directory / "live").mkdir(0o755)
    (directory / "live" / "ca.pem").symlink_to("../archive/ca1.pem")
    router_of_nobody.config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": directory / "live" / "ca.pem"})
    expect(router_of_nobody(), EX_NOPERM, f"files {directory}/live/ca.pem: the daemon's user, nobody, cannot read it: Permission denied; remedy: ",
           f"let nobody enter the directory: chgrp nogroup {directory}/archive && chmod g+x {directory}/archive")


def test_groups_are_those_of_the_daemons_process(router_of_nobody):
    """SupplementaryGroups= of its unit gives it more than the user has."""
    checkup = router_of_nobody({"userId": 65534, "groupIds": [65534, 54322]}, group=54322)
    assert f"✓ files {router_of_nobody.secret}: the daemon's user, nobody, may read it" in checkup.lines and "✗ files" not in checkup.lines
    checkup = router_of_nobody({"userId": 65534, "groupIds": [65534]}, group=54322)
    expect(checkup, EX_NOPERM, "the daemon's user, nobody, cannot read it: Permission denied; remedy: SupplementaryGroups=54322 in the unit")


def test_file_of_root_may_get_the_daemons_group(router_of_nobody):
    expect(router_of_nobody(group=0), EX_NOPERM, "the daemon's user, nobody, cannot read it: Permission denied; remedy: chgrp nogroup ")


def test_file_of_the_daemons_user_without_a_right_for_it(router_of_nobody, authority):
    file = pathlib.Path(shutil.copy(authority.certificate, router_of_nobody.config.directory / "ca.pem"))
    os.chown(file, 65534, 0)
    file.chmod(0o040)
    router_of_nobody.config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": file})
    expect(router_of_nobody(), EX_NOPERM, f"remedy: chmod u+r {file}")


@pytest.mark.parametrize("mode, remedy", [(0o710, "usermod -aG daemon nobody, and then: systemctl restart gatepostd"),
                                          (0o700, "setfacl -m u:nobody:x {private}")])
def test_group_of_others_is_left_as_it_is(router_of_nobody, authority, mode, remedy):
    """Its members, such as those of Debian's ssl-cert, would lose their access or gain one."""
    config = router_of_nobody.config
    private = config.directory / "private"
    private.mkdir()
    os.chown(private, 0, 1)
    private.chmod(mode)
    shutil.copy(authority.certificate, private / "ca.pem")
    config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": private / "ca.pem"})
    checkup = router_of_nobody()
    expect(checkup, EX_NOPERM, "let nobody enter the directory: " + remedy.format(private=private))
    assert "chgrp" not in checkup.cause


def told_to_change(checkup):
    return [line for line in checkup.lines if line.startswith("✗ files") or "chgrp" in line]


def test_user_of_another_daemon_is_not_ours(router_of_nobody):
    """Two have the same `listen` in [admin]."""
    other = {"userId": 65534, "groupIds": [65534], "configuration": {"file": "/etc/gatepost/other.conf"}}
    checkup = router_of_nobody(other, group=0)
    assert told_to_change(checkup) == [] and any(line.startswith("! files: ") and "is not known" in line for line in checkup.lines)


def test_root_that_may_not_become_another_user(router_of_nobody):
    checkup = router_of_nobody(group=0, wrapper=["setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-setuid,-setgid"])
    assert told_to_change(checkup) == []
    assert any(line.startswith("- files: ") and "user, nobody, can is not verified: " in line for line in checkup.lines), checkup.lines


def test_file_that_the_daemon_has_read_can_be_read(router_of_nobody):
    """A capability lets it, such as CAP_DAC_READ_SEARCH."""
    secret = router_of_nobody.secret

    def report(file, **changed):
        return {"userId": 65534, "groupIds": [65534], "configuration": {
            "file": str(file), "files": [entry(file, "reload"), entry(secret, "reload", **changed)]}}
    checkup = router_of_nobody(report, group=0)
    assert told_to_change(checkup) == [] and f"✓ files {secret}: gatepostd has read it as it is now" in checkup.lines
    expect(router_of_nobody(lambda file: report(file, inode=1), group=0), EX_NOPERM, f"files {secret}: ", "chgrp nogroup ")


def test_router_reads_no_file_of_the_receiver(router_of_nobody, authority):
    certificate, key = authority.issue("of-the-receiver")
    router_of_nobody.config.tls(certificate, key)
    os.chown(key, 0, 0)
    key.chmod(0o600)
    checkup = router_of_nobody()
    assert told_to_change(checkup) == [] and not any(str(key) in line for line in checkup.lines)


def test_group_that_the_daemons_process_has_not_yet_takes_a_restart(router_of_nobody):
    groups = router_of_nobody.config.directory / "group"
    groups.write_text(pathlib.Path("/etc/group").read_text() + "gatepost-tests:x:54322:nobody\n")
    report = {"userId": 65534, "groupIds": [65534]}
    checkup = router_of_nobody(report, 54322, ["unshare", "--mount", "sh", "-ec", f'mount --bind {groups} /etc/group; exec "$@"', "sh"])
    expect(checkup, EX_NOPERM, "cannot read it: Permission denied; remedy: nobody is a member of a group that may, and was not when "
           "gatepostd started: systemctl restart gatepostd")


def test_groups_of_a_daemon_that_does_not_say_them_are_those_of_its_user(router_of_nobody):
    assert f"✓ files {router_of_nobody.secret}: the daemon's user, nobody, may read it" in router_of_nobody({"userId": 65534}).lines
    expect(router_of_nobody({"userId": 65534}, group=54322), EX_NOPERM,
           "cannot read it: Permission denied, unless the unit has SupplementaryGroups= that may; remedy: ")


def test_daemons_user_without_an_entry_in_passwd(router_of_nobody):
    report = {"userId": 54321, "groupIds": [54322]}
    assert f"✓ files {router_of_nobody.secret}: the daemon's user, 54321, may read it" in router_of_nobody(report, group=54322).lines
    expect(router_of_nobody(report), EX_NOPERM, "the daemon's user, 54321, cannot read it: Permission denied; "
           "remedy: SupplementaryGroups=nogroup in the unit")
    expect(router_of_nobody(report, group=0), EX_NOPERM, "remedy: chgrp 54322 ")


def test_directory_of_certificates_must_be_entered(router_of_nobody, authority):
    config = router_of_nobody.config
    directory = config.directory / "authorities"
    directory.mkdir()
    shutil.copy(authority.certificate, directory)
    directory.chmod(0o644)
    config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": directory})
    expect(router_of_nobody(), EX_NOPERM, f"files {directory}: the daemon's user, nobody, cannot read it: Permission denied; "
           f"remedy: chgrp nogroup {directory} && chmod g+rx {directory}")
    os.chown(directory, 0, 65534)
    directory.chmod(0o750)
    assert f"✓ files {directory}: the daemon's user, nobody, may read it" in router_of_nobody().lines


def test_daemon_says_its_groups(installation, stopped):
    stopped.wrapper = ["setpriv", "--regid", "54321", "--groups", "54322,54323"]
    report = status_of(stopped.start())
    assert report["userId"] == 0 and report["groupIds"] == [54321, 54322, 54323]


def test_unknown_user_of_the_daemon_is_a_warning(offline):
    assert any(line.startswith("! files: root can read all files") for line in examine(offline, by_sockets(offline)).lines)


# The service

@pytest.fixture
def subscribed(shared, healthy, service):
    """The healthy daemon's configuration, with a service."""
    config = by_sockets(shared)
    config.sections = {name: dict(options) for name, options in healthy.config.sections.items()}
    del config.sections["source orders"]
    config["service"].update(base_url=service.url, api_key_file=config.secret_file("api-key", b"the-api-key-of-the-tests"))
    return config


def webhook(service, subscribed, events, **others):
    """A webhook that leads here, whose id the file lists."""
    added = service.add({"url": "https://gateway.example/webhooks/invoicing", "events": events} | others)
    subscribed["source invoicing"]["webhook_id"] = added["id"]
    return added


def test_webhook_that_leads_here(shared, service, subscribed):
    webhook(service, subscribed, ["*"])
    checkup = examine(shared, subscribed, "--no-send")
    assert f"✓ webhook [source invoicing]: https://gateway.example/webhooks/invoicing has the events *" in checkup.lines
    assert checkup.having("✗") == [], checkup.lines


def test_webhook_of_another_id(shared, service, subscribed):
    """A second one with the same path may lead to another receiver."""
    added = webhook(service, subscribed, ["*"])
    subscribed["source invoicing"]["webhook_id"] = "another"
    expect(examine(shared, subscribed, "--no-send"), EX_CONFIG, "webhook [source invoicing]: https://gateway.example/webhooks/invoicing "
           f"has the id {added['id']}, which webhook_id does not list", f"remedy: add webhook_id = {added['id']} to [source invoicing] of ", "leave the ids that are there")
    second = webhook(service, subscribed, ["*"], url="https://staging.example/webhooks/invoicing")
    checkup = examine(shared, subscribed, "--no-send")
    (warning,) = [line for line in checkup.having("!") if line.startswith("! webhook ")]
    assert f"has the id {added['id']}, which webhook_id does not list: if it leads here" in warning
    assert checkup.status == 0 and any("✓ webhook " in line and "staging" in line for line in checkup.lines), (second, checkup.lines)


def test_event_of_the_webhook_without_a_topic(shared, service, subscribed):
    webhook(service, subscribed, ["invoice.accepted", "invoice.unheard-of"])
    checkup = examine(shared, subscribed, "--no-send")
    (warning,) = [line for line in checkup.having("!") if line.startswith("! webhook ")]
    assert "has the event invoice.unheard-of, for which there is no topic" in warning and "as unknown-kind" in warning
    assert checkup.status == 0, checkup.lines


@pytest.mark.parametrize("event, missing", [("*", "* (invoice.rejected)"), ("reporting_batch.*", "reporting_batch.*"),
                                            ("held_unmapped_decision.*", None)])
def test_events_of_the_webhook_by_a_pattern(shared, service, subscribed, event, missing):
    """All kinds that the service documents need a topic, or the family."""
    webhook(service, subscribed, [event])
    subscribed["events"].update({"invoice.accepted": f"{shared.prefix}.invoice.accepted", "held_unmapped_decision.*": f"{shared.prefix}.held"})
    told = [line for line in examine(shared, subscribed, "--no-send").lines if " webhook [source invoicing]" in line]
    assert len(told) == 1 and told[0].startswith("! " if missing else "✓ "), told
    assert missing is None or f" has the event {missing}, for which there is no topic" in told[0]


def test_source_of_another_account_of_the_service(installation, service, stopped):
    """A webhook of this account would deliver a second time what already arrives; until then, it is missing."""
    stopped.config["service"].update(base_url=service.url, api_key_file=stopped.config.secret_file("api-key", b"the-api-key-of-the-tests"))
    daemon = stopped.start().wait_until_ready()
    daemon.accept(Delivery())
    waiting.until(lambda: daemon.metric("gatepost_requests_total", source="invoicing", outcome="accepted") == 1, 30, "the delivery to be counted")
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if line.startswith("! webhook ")]
    assert "although gatepostd has accepted 1 delivery of the source since its start" in warning and "another account" in warning
    assert "ensure" not in warning
    daemon.stop()
    daemon.restart().wait_until_ready()
    for _ in range(2):  # its own test deliveries are none
        waiting.until(lambda: daemon.metric("gatepost_requests_total", source="invoicing", outcome="accepted") ==
                      daemon.metric("gatepost_test_deliveries_total"), 30, "the test delivery to be routed")
        (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if line.startswith("! webhook ")]
        assert f"so it delivers nothing here: gatepost -c {file_of(daemon)} subscriptions ensure" in warning


def test_no_webhook_leads_here(shared, service, subscribed):
    service.add({"url": "https://gateway.example/elsewhere", "events": ["*"]})
    checkup = examine(shared, subscribed, "--no-send")
    assert checkup.status == 0 and any(line.startswith("! webhook ") and " subscriptions ensure" in line for line in checkup.lines)


@pytest.mark.parametrize("answer, status, words", [
    (401, EX_NOPERM, ("rejects the API key (401)", "api_key_file")), (403, EX_NOPERM, ("does not allow this API key", "another key")),
    (404, EX_CONFIG, ("does not have this path", "base_url")), (500, EX_UNAVAILABLE, ("has failed (500)", "later"))])
def test_service_that_refuses(shared, service, subscribed, answer, status, words):
    service.faults = [answers(answer, {"ok": False, "error": {"code": "ANY", "message": "as it says"}})]
    expect(examine(shared, subscribed, "--no-send"), status, f"service {service.url}", "as it says", *words)


def wait_for_silent_public_url(installation, address):
    config = by_sockets(installation, "router")
    config["admin"]["listen"] = "off"
    return config.write(), "--to", f"http://{address}"


def wait_for_silent_service(installation, address):
    config = by_sockets(installation, "router")
    config["admin"]["listen"] = "off"
    config["service"].update(base_url=f"http://{address}", api_key_file=config.secret_file("api-key", b"the-api-key-of-the-tests"))
    return config.write(), "--no-send"


SILENT = [(wait_for_silent_public_url, "delivery http://"), (wait_for_silent_service, "service http://")]


@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
@pytest.mark.parametrize("wait_for_silent, step", SILENT, ids=[each[0].__name__ for each in SILENT])
def test_interrupt_ends_it_with_what_was_found(installation, wait_for_silent, step, interrupt):
    """Each step would wait for 10 or 15 s; the last line comes before the step's time limit."""
    installation.create_topics()
    with socket.create_server(("127.0.0.1", 0)) as server:
        config, *arguments = wait_for_silent(installation, "%s:%d" % server.getsockname())
        process = subprocess.Popen([BUILD / "gatepost", "-c", config, "doctor", *arguments], stdout=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT | UTF_8)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            connection.recv(65536)  # it is waiting for the answer now
            process.send_signal(interrupt)
            output = process.communicate(timeout=60)[0]
        finally:
            process.kill()
        connection.close()
    assert process.returncode == EX_TEMPFAIL, output
    assert output.splitlines()[-1] == "cause: interrupted before the end; remedy: run it again"
    assert "✗" not in output  # no time limit was reached
    assert any(line.startswith(f"- {step}") and line.endswith(": interrupted") for line in output.splitlines()), output


def test_interrupt_ends_it_at_the_first_of_many_brokers(offline):
    """It would wait some seconds for each of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        config = offline.config()
        config["kafka"]["bootstrap.servers"] = ",".join(["%s:%d" % server.getsockname()] * 60)
        process = subprocess.Popen([BUILD / "gatepost", "-c", config.write(), "doctor"], stdout=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT | UTF_8)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=60)[0]
        finally:
            process.kill()
        connection.close()
    assert output.splitlines()[-1].startswith("cause: ") and output.count("✗ kafka ") <= 1, output


def test_interrupt_ends_json(installation):
    installation.create_topics()
    with socket.create_server(("127.0.0.1", 0)) as server:
        config, *arguments = wait_for_silent_public_url(installation, "%s:%d" % server.getsockname())
        process = subprocess.Popen([BUILD / "gatepost", "-c", config, "doctor", "--json", *arguments], stdout=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT | UTF_8)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            process.send_signal(signal.SIGINT)
            document = json.loads(process.communicate(timeout=60)[0])
        finally:
            process.kill()
        connection.close()
    assert document["cause"] == "interrupted before the end"
    assert (document["steps"][-1]["name"], document["steps"][-1]["detail"]) == ("delivery", "interrupted")


def answer_once(server, answer):
    """Read one request of Kafka's protocol, and send these bytes."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        connection.recv(65536)
        connection.sendall(answer)
        connection.recv(1)


HOSTILE = [b"", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\4\0\0\0\2", b"\0\0\0\4\0\0\0\1", b"HTTP/1.1 400 Bad\r\n\r\n",
           b"\x15\x03\x03\0\2\2\x46"]


@pytest.mark.parametrize("answer", HOSTILE, ids=[each.hex() or "closed" for each in HOSTILE])
def test_nonsense_from_a_broker(offline, answer):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_once, args=(server, answer), daemon=True).start()
        config = offline.config()
        config["kafka"]["bootstrap.servers"] = address = "%s:%d" % server.getsockname()
        checkup = examine(offline, config)
    expect(checkup, EX_UNAVAILABLE, f"kafka {address}", "no answer as from a broker of Kafka")


def refuse_login(server, code):
    """Answer ApiVersions without an error, and SaslHandshake with this one."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        for body in (struct.pack(">hi", 0, 0), struct.pack(">hi", code, 0)):
            connection.recv(65536)
            connection.sendall(struct.pack(">ii", 4 + len(body), 1) + body)
        connection.recv(1)


def test_login_that_fails_by_an_unknown_error_names_it(offline):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=refuse_login, args=(server, -1), daemon=True).start()
        config = offline.config()
        config["kafka"].update({"bootstrap.servers": "%s:%d" % server.getsockname(), "security.protocol": "sasl_plaintext",
                                "sasl.mechanism": "PLAIN", "sasl.username": "gatepost",
                                "sasl.password_file": config.secret_file("password", b"a password")})
        expect(examine(offline, config), EX_UNAVAILABLE, "login 127.0.0.1:", ": the broker answers: Unknown broker error")
