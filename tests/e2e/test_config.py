"""The configuration file: every mistake is reported with its line, secrets are protected, Kafka's topics are checked."""

import grp
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD, Installation
from signing import SECRET, Delivery, unique

EX_CONFIG = 78
NOBODY = "127.0.0.1:9"  # the discard port; these tests do not use Kafka
SOURCE = """[source invoicing]
path = /webhooks/invoicing
header_prefix = x-invoicing
secret = a secret of sixteen bytes and more
"""
REST = """[receiver]
listen = 127.0.0.1:0
[topics]
prefix = t
[kafka]
bootstrap.servers = 127.0.0.1:9
"""


@pytest.fixture
def offline(tmp_path):
    """An installation without Kafka, whose files are only checked."""
    return Installation(tmp_path, NOBODY)


@pytest.fixture
def check(tmp_path):
    """Write a configuration and check it with the daemon and the command line, which must agree. Returns the exit
    status and the errors as (line, message)."""
    def run(text, mode=0o600):
        path = tmp_path / "gatepost.conf"
        path.write_text(text)
        path.chmod(mode)
        outcomes = []
        for command in ([BUILD / "gatepostd", "-t", "-c", path], [BUILD / "gatepost", "-c", path, "check"]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                                  env=ENVIRONMENT)
            assert_no_sanitizer_report(done.stderr)
            print(done.stderr)
            errors = re.findall(rf"^{re.escape(str(path))}:(\d+): (.*)$", done.stderr, re.M)
            outcomes.append((done.returncode, [(int(line), message) for line, message in errors]))
        assert outcomes[0] == outcomes[1]
        return outcomes[0]
    return run


def line_of(text, part):
    """The number of the line that contains this text."""
    (number,) = [number for number, line in enumerate(text.splitlines(), 1) if part in line]
    return number


def test_missing_file_is_named(offline):
    missing = offline.directory / "missing.conf"
    for program, arguments in (("gatepostd", ["-t", "-c", missing]), ("gatepost", ["-c", missing, "check"])):
        done = subprocess.run([BUILD / program, *arguments], capture_output=True, text=True, timeout=30)
        assert done.returncode in (66, EX_CONFIG) and str(missing) in done.stderr


# Secrets

@pytest.mark.parametrize("mode", [0o644, 0o604])
def test_world_readable_configuration_with_a_secret_is_refused(check, mode):
    status, errors = check(SOURCE + REST, mode)
    assert status == EX_CONFIG and [line for line, _ in errors] == [4]


def test_configuration_without_secrets_may_be_world_readable(check, offline):
    path = offline.config().secret_file("key", SECRET)
    text = SOURCE.replace("secret = a secret of sixteen bytes and more", f"secret_file = {path}") + REST
    assert check(text, 0o644) == (0, [])


def test_world_readable_secret_file_is_refused(check, offline):
    path = offline.config().secret_file("key", SECRET, 0o644)
    text = SOURCE.replace("secret = a secret of sixteen bytes and more", f"secret_file = {path}") + REST
    status, errors = check(text)
    assert status == EX_CONFIG and [line for line, _ in errors] == [4] and str(path) in errors[0][1]


def test_config_prints_every_value_with_its_origin_and_masks_secrets(offline):
    config = offline.config()
    config["source invoicing"]["secret"] = "this must never be printed"
    config["receiver"]["max_body"] = "2MiB"
    config["kafka"].update({"sasl.password": "neither must this one", "sasl.username": "gatepost", "sasl.mechanism": "PLAIN",
                            "security.protocol": "SASL_SSL"})
    text = config.text
    done = offline.gatepost("config", config=config)
    assert done.returncode == 0, done.stderr
    lines = {option: next(line for line in done.stdout.splitlines() if re.match(rf"\s*{option}\b", line))
             for option in ("max_body", "ack_timeout", "secret")}
    assert "2MiB" in lines["max_body"] and str(line_of(text, "max_body")) in lines["max_body"]
    assert "8s" in lines["ack_timeout"] and "default" in lines["ack_timeout"]
    for secret in ("this must never", "neither must", SECRET.decode()):
        assert secret not in done.stdout + done.stderr


# What Kafka must be like

def refused(installation, config):
    """Launch a daemon that must exit with 78; returns its log."""
    daemon = installation.daemon(config).launch()
    daemon.wait_for_exit(EX_CONFIG)
    return daemon.log


@pytest.mark.parametrize("roles", ["receiver", "router", "receiver, router"])
def test_missing_topics_are_an_error_with_the_command_to_create_them(installation, roles):
    log = refused(installation, installation.config(roles))
    assert re.search(r"gatepost .*topics create", log)
    assert installation.kafka.deliveries in log


@pytest.mark.parametrize("topic", ["quarantine", "invoice.pending"])
def test_one_missing_topic_is_named(installation, topic):
    installation.create_topics()
    installation.kafka.delete(f"{installation.prefix}.{topic}")
    log = refused(installation, installation.config())
    assert f"{installation.prefix}.{topic}" in log and "topics create" in log


@pytest.mark.parametrize("name, value", [("retention.ms", "3600000"), ("retention.bytes", "1000000"),
                                         ("cleanup.policy", "compact")])
def test_topic_with_retention_shorter_than_the_window_is_refused(installation, name, value):
    installation.create_topics()
    installation.kafka.configure(installation.kafka.deliveries, name, value)
    log = refused(installation, installation.config("router"))
    assert installation.kafka.deliveries in log
    assert "retention" in log or "compact" in log


def test_receiver_ignores_retention(installation):
    installation.create_topics()
    installation.kafka.configure(installation.kafka.deliveries, "retention.ms", "3600000")
    installation.start(installation.config("receiver")).accept()


@pytest.fixture
def router_of_larger_receivers(installation):
    """The configuration of a router next to receivers whose max_body is larger."""
    receiver, router = installation.config("receiver"), installation.config("router")
    receiver["receiver"]["max_body"] = "8MiB"
    router["kafka"].update({"receive.message.max.bytes": "3000000", "fetch.max.bytes": "1900000"})
    installation.create_topics(receiver, partitions=1)
    return router


def topic_warnings(installation, config):
    """What `gatepost doctor` says about topics."""
    done = installation.gatepost("doctor", "--no-send", "--json", config=config)
    steps = json.loads(done.stdout)["steps"]
    assert not [each for each in steps if (each["step"], each["level"]) == ("topics", "error")]
    return [f"{each['subject']}: {each['text']}" for each in steps if (each["step"], each["level"]) == ("topics", "warning")]


def test_fetch_limit_below_the_largest_delivery_is_a_warning(installation, router_of_larger_receivers):
    config, needed = router_of_larger_receivers, 8 * 1048576 + 65536 + 1048576
    (warning,) = topic_warnings(installation, config)
    assert warning.startswith(f"{installation.kafka.deliveries}: ") and "receive.message.max.bytes in [kafka] 3000000: " in warning
    remedy = f": receive.message.max.bytes = {needed}"
    assert remedy + "\n" in installation.gatepost("topics", "list", config=config).stdout
    daemon = installation.start(config)
    assert remedy in daemon.log
    config["kafka"]["receive.message.max.bytes"] = str(needed)
    assert topic_warnings(installation, config) == []
    config["kafka"]["receive.message.max.bytes"] = str(needed - 1)
    assert len(topic_warnings(installation, config)) == 1
    assert installation.gatepost("check", config=config).stderr == ""


@pytest.mark.parametrize("fetch, limit", [(None, 100_000_000), ("150000000", 150_000_512)])
def test_largest_delivery_is_compared_with_the_effective_librdkafka_limit(installation, fetch, limit):
    config = installation.config("router")
    if fetch:
        config["kafka"]["fetch.max.bytes"] = fetch
    installation.create_topics(partitions=1)
    assert topic_warnings(installation, config) == []
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "160000000")
    (warning,) = [line for line in topic_warnings(installation, config) if "and cannot be published" not in line]
    assert f"in [kafka] {limit}: " in warning


def test_receiver_ignores_the_fetch_limit(installation):
    config = installation.config("receiver")
    installation.create_topics(partitions=1)
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "160000000")
    assert topic_warnings(installation, config) == []
    assert installation.gatepost("topics", "list", config=config).stderr == ""


# Several sources and the replay guard, as configured

def test_sources_have_settings_of_their_own(installation):
    config = installation.config().source("strict", b"the secret of the strict source", tolerance="10s")
    config.source("loose", b"the secret of the loose source", tolerance="1h", replay_guard="off")
    installation.create_topics(config)
    daemon = installation.start(config)
    old = Delivery(secret=b"the secret of the loose source").but(timestamp=Delivery().timestamp - 1800)
    daemon.accept(old, source="loose")
    daemon.accept(old.but(delivery_id=unique()), source="loose")
    stale = Delivery(secret=b"the secret of the strict source").but(timestamp=Delivery().timestamp - 30)
    assert daemon.post(stale, source="strict").code == "STALE_TIMESTAMP"
    installation.kafka.wait_until_routed()
    records = installation.kafka.read()
    assert [record.topic for record in records] == [f"{installation.prefix}.invoice.accepted"] * 2
    assert {record.header("ce_source") for record in records} == {"/loose"}


def test_captured_delivery_is_refused_by_other_sources_unless_they_share_its_secret(installation):
    """The replay guard compares the source, as the service may sign for two subscriptions with one secret; check warns of that."""
    config = installation.config().source("twin", Delivery().secret).source("apart", b"the secret of the source apart")
    done = installation.gatepost("check", config=config)
    assert done.returncode == 0 and "[source invoicing] and [source twin] have a secret in common" in done.stderr
    assert "apart" not in done.stderr
    installation.create_topics(config)
    daemon = installation.start(config)
    captured = daemon.accept()
    assert daemon.post(captured.but(delivery_id=unique()), source="apart").code == "INVALID_SIGNATURE"
    twin = daemon.accept(captured.but(delivery_id=unique()), source="twin")
    again = daemon.accept(captured.but(delivery_id=unique()), source="twin")
    installation.kafka.wait_until_routed()
    records = installation.kafka.read()
    assert {record.header("ce_source") for record in records if record.topic.endswith("invoice.accepted")} == {"/invoicing", "/twin"}
    (quarantined,) = [record for record in records if record.topic.endswith(".quarantine")]
    assert (quarantined.header("gatepost-reason"), quarantined.header("gatepost-replay-of")) == ("replayed-signature", twin.delivery_id)
    assert again.delivery_id in str(quarantined)


def test_kerberos_does_not_run_kinit(offline):
    """librdkafka would run kinit in a shell, with principal and keytab from the configuration in the command."""
    ran = offline.directory / "ran"
    config = offline.config()
    keytab = config.secret_file("keytab", SECRET)
    config["kafka"].update({"security.protocol": "sasl_plaintext", "sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": keytab,
                            "sasl.kerberos.principal": f"x; touch {ran}; echo"})
    done = offline.gatepost("topics", "list", config=config)
    assert done.returncode == 69, done.stderr
    assert not ran.exists()
    assert "kinit" not in done.stderr


@pytest.mark.parametrize("properties, reason", [
    ({"receive.message.max.bytes": "1000"}, "receive.message.max.bytes"),
    ({"session.timeout.ms": "400000"}, "session.timeout.ms"),
    ({"linger.ms": "900000"}, "linger.ms"),
    ({"security.protocol": "ssl", "ssl.key.pem": "no key"}, "ssl.key.pem"),
    ({"security.protocol": "ssl", "ssl.cipher.suites": "RC4"}, "ssl.cipher.suites"),
])
def test_properties_that_librdkafka_rejects_are_a_configuration_error(offline, properties, reason):
    """gatepostd could not start with them, and systemd would restart it repeatedly."""
    config = offline.config()
    config["kafka"].update(properties)
    done = offline.gatepost("check", config=config)
    assert done.returncode == 78 and reason in done.stderr, done
    daemon = offline.daemon(config).launch()
    assert daemon.take_exit_status() == 78 and reason in daemon.log
    done = subprocess.run([BUILD / "gatepostd", "-t", "-c", config.write("gatepost.conf")], capture_output=True, text=True, timeout=30)
    assert done.returncode == 78 and reason in done.stderr, done


@pytest.mark.parametrize("roles", ["receiver", "router"])
def test_client_that_cannot_be_created_is_an_error_of_each_role(offline, roles):
    config = offline.config(roles)
    config["kafka"].update({"security.protocol": "ssl", "ssl.cipher.suites": "RC4"})
    done = offline.gatepost("check", config=config)
    assert done.returncode == 78 and "ssl.cipher.suites" in done.stderr, done
    assert offline.daemon(config).launch().take_exit_status() == 78
