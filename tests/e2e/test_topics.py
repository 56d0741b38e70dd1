"""gatepost topics create, list and fix."""

import json
import shlex

import pytest

from signing import KINDS, event_topic

EX_USAGE, EX_DATAERR, EX_CONFIG = 64, 65, 78
DAY_MS = 86400 * 1000


def test_create_makes_all_topics_with_required_settings(installation):
    installation.create_topics(partitions=4)
    kafka = installation.kafka
    names = ["deliveries", "quarantine", *{event_topic(kind) for kind in KINDS}]
    assert kafka.topics() == sorted(f"{installation.prefix}.{name}" for name in names)
    for topic in kafka.topics():
        assert kafka.partitions(topic) == 4
        settings = kafka.configuration(topic)
        assert int(settings["max.message.bytes"]) >= (1 << 20) + (64 << 10), topic
        assert settings["unclean.leader.election.enable"] == "false"
        assert kafka.sets(topic, "cleanup.policy", "delete"), "left to the brokers' default"
    settings = kafka.configuration(kafka.deliveries)
    assert settings["retention.bytes"] == "-1" and settings["message.timestamp.type"] == "LogAppendTime"
    assert int(settings["retention.ms"]) >= 4 * DAY_MS


def test_create_follows_window_and_body_size(installation):
    config = installation.config()
    config["router"]["dedup_window"] = "20d"
    config["receiver"]["max_body"] = "3MiB"
    installation.create_topics(config)
    settings = installation.kafka.configuration(installation.kafka.deliveries)
    assert int(settings["retention.ms"]) >= 21 * DAY_MS
    assert int(settings["max.message.bytes"]) >= (3 << 20) + (64 << 10)


def test_create_has_defaults_and_leaves_existing_topics_unchanged(installation):
    kafka = installation.kafka
    assert installation.gatepost("topics", "create").returncode == 0
    assert kafka.partitions(kafka.deliveries) == 6
    kafka.configure(kafka.deliveries, "retention.ms", "3600000")
    kafka.delete(kafka.quarantine)
    installation.create_topics(partitions=5)
    assert kafka.configuration(kafka.deliveries)["retention.ms"] == "3600000"
    assert (kafka.partitions(kafka.deliveries), kafka.partitions(kafka.quarantine)) == (6, 5)


def test_create_leaves_out_settings_and_says_what_is_wrong_without(installation):
    config, kafka = installation.config(), installation.kafka
    config["router"]["dedup_window"] = "20d"
    done = installation.gatepost("topics", "create", "--without", "retention.ms", "--without", "unclean.leader.election.enable", config=config)
    assert (done.returncode, done.stderr, len(kafka.topics())) == (EX_DATAERR, "", 11)
    assert not kafka.sets(kafka.deliveries, "unclean.leader.election.enable", "false")
    assert f"{kafka.deliveries}: retention.ms is 604800000, shorter than dedup_window (20d)\n  remedy: " in done.stdout
    assert done.stdout.count(": ") == 2  # the brokers' default of the other fits


def test_unknown_setting_is_refused(offline):
    done = offline.gatepost("topics", "create", "--without", "max.mesage.bytes")
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and "unknown setting 'max.mesage.bytes'" in done.stderr


def test_list_shows_topics_and_the_command_that_creates_them(installation):
    config = installation.config()
    missing = installation.gatepost("topics", "list", config=config)
    assert missing.returncode == EX_DATAERR and missing.stdout.count(": the topic is missing\n") == 11
    run_remedy(installation, missing.stdout)
    good = installation.gatepost("topics", "list", config=config)
    assert (good.returncode, "remedy" in good.stdout, good.stderr) == (0, False, "")
    assert all(topic in good.stdout for topic in installation.kafka.topics())
    listed = json.loads(installation.gatepost("topics", "list", "--json", config=config).stdout)
    assert {each["topic"] for each in listed} == set(installation.kafka.topics())
    assert all(each["exists"] and each["findings"] == [] for each in listed)


def remedies(text):
    return {line.removeprefix("  remedy: ") for line in text.splitlines() if line.startswith("  remedy: ")}


def run_remedy(installation, text):
    """Do the only remedy that a command has printed, as it is printed."""
    (remedy,) = remedies(text)
    program, option, file, *words = shlex.split(remedy)
    assert (program, option) == ("gatepost", "-c")
    done = installation.gatepost(*words, config=file)
    assert done.returncode == 0, done
    return done.stdout


def spoil(kafka):
    """Settings that are wrong, as (topic, setting, value)."""
    event = next(topic for topic in kafka.topics() if topic.endswith("invoice.accepted"))
    return [(kafka.deliveries, "cleanup.policy", "compact"), (kafka.deliveries, "retention.ms", "3600000"),
            (kafka.deliveries, "retention.bytes", "1000000"), (kafka.deliveries, "max.message.bytes", "1000"),
            (kafka.deliveries, "message.timestamp.type", "CreateTime"), (kafka.deliveries, "segment.bytes", "1048576"),
            (kafka.quarantine, "retention.ms", "1000"), (kafka.quarantine, "unclean.leader.election.enable", "true"),
            (kafka.quarantine, "message.timestamp.before.max.ms", "1000"), (event, "cleanup.policy", "compact")]


def test_fix_shows_what_list_finds_wrong_and_changes_it_only_when_told(installation):
    config, kafka = installation.config(), installation.kafka
    installation.create_topics(config, partitions=2)
    wrong = spoil(kafka)
    kafka.set_option(kafka.deliveries, "flush.messages", "7000")  # a setting that is none of Gatepost's
    for topic, setting, value in wrong:
        kafka.set_option(topic, setting, value)
    listed = installation.gatepost("topics", "list", config=config)
    assert listed.returncode == EX_DATAERR and max(map(len, listed.stdout.splitlines())) < 250
    shown = installation.gatepost("topics", "fix", config=config)
    assert shown.returncode == EX_DATAERR and "--yes" in shown.stderr
    for topic, setting, value in wrong:
        assert f"{topic}: {setting}: {value} -> " in shown.stdout, setting
        assert kafka.configuration(topic)[setting] == value
    assert run_remedy(installation, listed.stdout) == shown.stdout
    settings = kafka.configuration(kafka.deliveries)
    assert settings["flush.messages"] == "7000" and settings["retention.ms"] == str(4 * DAY_MS)
    assert settings["message.timestamp.type"] == "LogAppendTime" and kafka.partitions(kafka.deliveries) == 2
    assert installation.gatepost("topics", "list", config=config).returncode == 0
    again = installation.gatepost("topics", "fix", config=config)
    assert (again.returncode, again.stdout) == (0, "no setting needs a change\n")


def test_fix_creates_no_topic_and_says_what_is_left(installation):
    installation.create_topics()
    installation.kafka.delete(installation.kafka.quarantine)
    done = installation.gatepost("topics", "fix", "--yes")
    assert done.returncode == EX_DATAERR and f"{installation.kafka.quarantine}: the topic is missing\n" in done.stdout
    assert installation.kafka.quarantine not in installation.kafka.topics()


@pytest.mark.parametrize("setting, value, status", [("retention.ms", "3600000", EX_CONFIG), ("unclean.leader.election.enable", "true", None)])
def test_daemon_logs_the_remedy(installation, setting, value, status):
    config, kafka = installation.config(), installation.kafka
    installation.create_topics(config)
    kafka.configure(kafka.deliveries, setting, value)
    daemon = installation.daemon(config).launch()
    daemon.wait_for_log("topic is misconfigured")
    (line,) = [line for line in daemon.log.splitlines() if "topic is misconfigured" in line]
    assert f" topic={kafka.deliveries} reason=" in line and line.endswith(' topics fix --yes"'), line
    if status is not None:
        daemon.wait_for_exit(status)
