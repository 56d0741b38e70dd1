"""SIGHUP: options that need a restart are named, and changes that would break a guarantee are refused."""

import json
import re

import pytest

from authority import Authority
from reloading import refused, reload
from signing import Delivery, event_body


@pytest.fixture
def daemon(installation):
    config = installation.config()
    installation.create_topics(config)
    return installation.start(config)


def awaiting(daemon):
    """Options that the last reload has read and not applied."""
    return json.loads(daemon.admin("/status").body)["configuration"]["awaitingRestart"]


def test_options_that_need_a_restart_are_reported(installation, daemon):
    assert "needs a restart" not in reload(daemon)
    config = daemon.config
    config["receiver"].update({"threads": 3, "max_body": "2MiB", "ack_timeout": "9s", "listen": ["127.0.0.1:0", "[::1]:0"]})
    config["router"]["dedup_window"] = "2d"
    config["gatepost"]["instance"] = "another"
    config["kafka"]["linger.ms"] = 7
    config["topics"]["prefix"] = "another"
    config["admin"].update({"listen": "off", "allow_remote": "on"})
    config["service"]["base_url"] = "https://api.example/v1"
    log = reload(daemon)
    reported = re.findall(r"changed option needs a restart section=(\S+) option=(\S+)", log)
    assert sorted(reported) == sorted([
        ("receiver", "threads"), ("receiver", "max_body"), ("receiver", "ack_timeout"), ("receiver", "listen"),
        ("router", "dedup_window"), ("gatepost", "instance"), ("kafka", "any"), ("topics", "prefix"), ("admin", "listen"),
        ("admin", "allow_remote")])
    assert sorted(awaiting(daemon)) == sorted(f"[{section}] {option}".replace(" any", "") for section, option in reported)
    daemon.accept()
    installation.kafka.wait_until_routed()
    assert len(installation.kafka.read()) == 1  # in the topics of the active prefix


def test_options_that_the_reload_replaces_by_those_in_use_are_reported(daemon):
    """The prefix of topics, and a smaller max_body, which topics must suit."""
    config = daemon.config
    prefix = config["topics"]["prefix"]
    config["topics"]["prefix"] = "another"
    config["events"]["invoice.*"] = f"{prefix}.invoice.accepted"
    config["receiver"]["max_body"] = "2KiB"
    for _ in range(2):
        reload(daemon)
        assert sorted(awaiting(daemon)) == ["[receiver] max_body", "[topics] prefix"]
    config["topics"]["prefix"] = prefix
    del config.sections["events"]
    reload(daemon)
    assert awaiting(daemon) == ["[receiver] max_body"]
    del config["receiver"]["max_body"]
    reload(daemon)
    assert awaiting(daemon) == []


def test_tls_is_not_enabled_by_a_reload(daemon, tmp_path):
    daemon.config.tls(*Authority(tmp_path).issue("gateway"))
    assert "option=tls_certificate_file" in reload(daemon)
    daemon.accept()
    del daemon.config["receiver"]["tls_certificate_file"], daemon.config["receiver"]["tls_key_file"]
    assert "needs a restart" not in reload(daemon)


def test_tolerance_too_large_for_the_active_dedup_window_is_refused(installation):
    config = installation.config()
    config["router"]["dedup_window"] = "1h"
    installation.create_topics(config)
    daemon = installation.start(config)
    config["router"]["dedup_window"] = "3d"
    config["source invoicing"]["tolerance"] = "1h"
    assert "dedup_window" in refused(daemon)
    config["source invoicing"]["tolerance"] = "20min"
    reload(daemon)
    daemon.accept(Delivery(event_body()).but(timestamp=Delivery().timestamp - 1000))
