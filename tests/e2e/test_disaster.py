"""The procedures of gatepost-guide(7) for lost offsets and for a recreated topic; settings that change."""

import json
import re
import time

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

import tools
import waiting
from accounts import guide_commands
from signing import Delivery

EX_CONFIG = 78
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")  # as the log has it
SECONDS = 40
WATCHED_SECONDS = 90


def published(kafka, deliveries):
    """How often each of the deliveries was published."""
    found = [record.delivery_id for record in kafka.read()]
    return [found.count(each.delivery_id) for each in deliveries]


def route(installation, config, deliveries):
    """Have the deliveries routed by a router that is stopped afterwards. Returns its log."""
    installation.kafka.append(deliveries)
    router = installation.start(config)
    installation.kafka.wait_until_routed()
    router.stop()
    return router.log


def forget_offsets(kafka):
    """Delete the group and its offsets, once it is empty."""
    def deleted():
        return kafka.admin.delete_consumer_groups([kafka.group])[kafka.group].exception(SECONDS) is None
    waiting.until(deleted, SECONDS, "the group to be empty")
    waiting.until(lambda: kafka.committed() == {}, SECONDS, "the offsets to be gone")


def run_guide_command(installation, word, time=None):
    """Run the command of the guide that contains this word, adapted to this installation and, where it has one, to this time."""
    (command,) = [each for each in guide_commands("kafka-consumer-groups.sh") if {word, "gatepost.router"} <= set(each)]
    empty = installation.directory / "super.properties"
    empty.touch()
    words = {"BROKER": installation.bootstrap, "SUPER": str(empty), "gatepost.router": installation.kafka.group,
             "gatepost.deliveries": installation.kafka.deliveries}
    assert time is None or any(TIME.fullmatch(each) for each in command)
    return tools.run(*[time if TIME.fullmatch(each) else words.get(each, each) for each in command])


@pytest.mark.slow
def test_lost_offsets_cause_the_log_to_be_published_again(installation):
    """As documented in the guide, together with the prevention: set the offsets before a router starts."""
    config = installation.config("router")
    installation.create_topics(config, partitions=2)
    kafka, first = installation.kafka, [Delivery() for _ in range(10)]
    route(installation, config, first)
    forget_offsets(kafka)
    assert "no committed offset in this partition: all records in its log are routed; if the partition was added" in route(installation, config, [])
    assert published(kafka, first) == [2] * 10
    forget_offsets(kafka)
    assert kafka.deliveries in run_guide_command(installation, "--to-latest")
    again = [Delivery(), first[0].signed_again()]
    route(installation, config, again)
    assert published(kafka, [*first, again[0]]) == [2] * 10 + [1]  # repeats are recognised from the log


@pytest.mark.slow
def test_offsets_reset_to_a_time_skip_earlier_deliveries(installation):
    config = installation.config("router")
    installation.create_topics(config, partitions=2)
    kafka, first, second = installation.kafka, [Delivery() for _ in range(10)], [Delivery() for _ in range(5)]
    route(installation, config, first)
    receiver = installation.start(installation.config("receiver"))
    since = TIME.match(receiver.log.splitlines()[-1])[0]
    for delivery in second:
        receiver.accept(delivery)
    forget_offsets(kafka)
    assert kafka.deliveries in run_guide_command(installation, "--to-datetime", since)
    assert sum(kafka.committed().values()) == len(first)
    route(installation, config, [first[0].signed_again()])
    assert published(kafka, [*first, *second]) == [1] * 15


def test_deliveries_recreated_while_no_router_runs_are_routed_from_the_start(installation):
    """Kafka deletes the offsets with the topic; earlier deliveries are no longer recognised."""
    config = installation.config("router")
    installation.create_topics(config, partitions=2)
    kafka, first = installation.kafka, [Delivery() for _ in range(10)]
    route(installation, config, first)
    kafka.delete(kafka.deliveries)
    router = installation.daemon(config).launch()
    router.wait_for_log("the topic is missing")
    router.wait_for_exit(EX_CONFIG)
    installation.create_topics(config, partitions=2)
    second = [Delivery() for _ in range(3)]
    route(installation, config, [*second, first[0].signed_again()])
    assert published(kafka, [*first, *second]) == [2] + [1] * 12


@pytest.mark.parametrize("away", [0, 1.5])
def test_deliveries_recreated_under_a_running_router_are_routed_from_the_start(installation, away):
    """The new log soon has a record at the offset in the old one, and the connection is the same."""
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka, (first, second) = installation.kafka, ([Delivery() for _ in range(n)] for n in (20, 60))
    router = installation.start(config)
    kafka.append(first)
    kafka.wait_until_routed()
    time.sleep(2.5)  # the requests of the start are taken for no error
    kafka.delete(kafka.deliveries)
    time.sleep(away)
    installation.create_topics(config, partitions=1)
    kafka.append(second)
    waiting.until(lambda: published(kafka, first + second) == [1] * 80, SECONDS, lambda: router.log)


@pytest.mark.slow
def test_uncommitted_decisions_are_dropped_with_the_deleted_topic(installation):
    """A delivery repeated into the new topic is published, because its first record was not."""
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka, again, later = installation.kafka, Delivery(), Delivery()
    router = installation.start(config)
    kafka.delete(f"{kafka.prefix}.invoice.accepted")
    kafka.append([again])
    waiting.until(lambda: causes(router) == {"output-topic"}, SECONDS, lambda: f"the partition to wait: {causes(router)}")
    kafka.delete(kafka.deliveries)
    waiting.until(lambda: causes(router) & {"unreachable", "no-leader"}, SECONDS, lambda: f"a missing topic: {causes(router)}")
    installation.create_topics(config, partitions=1)
    kafka.append([later, again])
    waiting.until(lambda: published(kafka, [later, again]) == [1, 1], 2 * SECONDS,
                  lambda: f"each to be published once: {published(kafka, [later, again])}", step=0.5)


def causes(router):
    return {dict(labels)["cause"] for labels in router.metrics("gatepost_router_partition_state")}


@pytest.mark.slow
def test_deleting_the_deliveries_topic_turns_readiness_off(installation):
    """As documented in the guide: a receiver continues with the new topic, a router must be restarted."""
    installation.create_topics(partitions=2)
    kafka = installation.kafka
    daemons = receiver, router = [installation.start(installation.config(role)) for role in ("receiver", "router")]
    first = receiver.accept()
    kafka.wait_until_routed()
    kafka.delete(kafka.deliveries)
    for daemon in daemons:
        waiting.until(lambda: b"the topic of deliveries has been deleted" in daemon.admin("/readyz").body, SECONDS,
                      lambda: daemon.admin("/readyz").body)
        waiting.until(lambda: daemon.metric("gatepost_kafka_reachable") == 0, 20, "the metric")
    router.stop()
    installation.create_topics(partitions=2)
    receiver.wait_until_ready()
    second = receiver.accept()
    router.restart()
    kafka.wait_until_routed()
    assert published(kafka, [first, second]) == [1, 1]


@pytest.mark.slow
def test_guide_command_resets_offsets_beyond_the_end_of_the_log(installation):
    """As with a backup of the topic that is older than the offsets."""
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka, deliveries = installation.kafka, [Delivery() for _ in range(3)]
    kafka.append(deliveries)
    offsets = ConsumerGroupTopicPartitions(kafka.group, [TopicPartition(kafka.deliveries, 0, 50)])
    kafka.admin.alter_consumer_group_offsets([offsets])[kafka.group].result(SECONDS)
    router = installation.daemon(config).launch()
    assert "was the topic deleted and recreated" in router.wait_for_log("cannot route")
    router.wait_for_exit(EX_CONFIG)

    def reset():
        try:
            return run_guide_command(installation, "--to-earliest")
        except RuntimeError:
            return None
    assert kafka.deliveries in waiting.until(reset, SECONDS, "the group to be empty")
    route(installation, config, [])
    assert published(kafka, deliveries) == [1] * 3

@pytest.mark.slow
def test_settings_of_a_topic_that_change_under_a_running_daemon_are_reported(installation):
    """They are compared every half minute."""
    config = installation.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    installation.create_topics(config)
    daemon = installation.start(config)
    kafka = installation.kafka
    assert daemon.metric("gatepost_topics_misconfigured") == 0
    before = kafka.configuration(kafka.deliveries)["retention.ms"]
    kafka.configure(kafka.deliveries, "retention.ms", "3600000")
    daemon.wait_for_log("topic is misconfigured", WATCHED_SECONDS)
    assert "retention.ms is 3600000, shorter than dedup_window" in daemon.log
    waiting.until(lambda: daemon.metric("gatepost_topics_misconfigured") == 1, SECONDS, "the metric")
    assert json.loads(daemon.admin("/status").body)["misconfiguredTopics"] == 1
    assert "topics: warning: topics without the required settings: 1\n" in installation.gatepost("status", config=daemon.config).stdout
    assert daemon.admin("/readyz").status == 200
    kafka.configure(kafka.deliveries, "retention.ms", before)
    daemon.wait_for_log("topic is no longer misconfigured", WATCHED_SECONDS)
    waiting.until(lambda: daemon.metric("gatepost_topics_misconfigured") == 0, WATCHED_SECONDS, "the metric")
