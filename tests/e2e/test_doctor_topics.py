"""gatepost doctor: topics and their replicas."""

import subprocess

import pytest
from cluster import Cluster

import protocol
import waiting
from checkup import EX_CONFIG, EX_UNAVAILABLE, by_sockets, examine, expect, file_of
from daemon import ENVIRONMENT
from installation import BUILD, Installation


def test_missing_topic(installation):
    installation.create_topics()
    config = by_sockets(installation)
    config["events"]["invoice.*"] = f"{installation.prefix}.everything"
    checkup = examine(installation, config)
    expect(checkup, EX_CONFIG, f"topic {installation.prefix}.everything", "the topic is missing; remedy: gatepost -c ")
    assert checkup.cause.endswith(" topics create") and checkup.cause.count("topics create") == 1


def test_advised_command_can_be_pasted_into_a_shell(installation):
    """With any name of the file."""
    config = by_sockets(installation)
    file = config.write("the 'gateway' of $HOME; exit 3 #.conf")
    expect(examine(installation, file), EX_CONFIG, "the topic is missing; remedy: gatepost -c '")
    command = examine(installation, file).cause.partition("; remedy: ")[2]
    environment = ENVIRONMENT | {"PATH": f"{BUILD}:{ENVIRONMENT['PATH']}"}
    done = subprocess.run(["sh", "-c", f"{command} --partitions 1 --replication-factor 1"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, env=environment)
    assert done.returncode == 0, done
    assert "topic is missing" not in examine(installation, file).cause


def test_short_retention(installation):
    installation.create_topics()
    installation.kafka.configure(installation.kafka.deliveries, "retention.ms", "1000")
    checkup = examine(installation, by_sockets(installation))
    expect(checkup, EX_CONFIG, f"topic {installation.kafka.deliveries}", "retention.ms", "; remedy: kafka-configs.sh ")
    assert checkup.cause.count("kafka-configs.sh") == 1


def test_deliveries_that_take_larger_records_than_the_other_topics(installation):
    """As after max_body was raised in the receiver's file only."""
    installation.create_topics()
    config = by_sockets(installation)
    assert not [line for line in examine(installation, config).lines if "max.message.bytes" in line]
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "5308416")
    (warning,) = [line for line in examine(installation, config).having("!") if "max.message.bytes" in line]
    assert warning.startswith(f"! topic {installation.kafka.quarantine}: max.message.bytes is ") and "the same max_body" in warning, warning


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
