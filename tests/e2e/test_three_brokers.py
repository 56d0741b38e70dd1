"""A cluster as in production: three brokers, replication 3, two in-sync replicas."""

import json
import re
import time

import confluent_kafka
import pytest
from cluster import Cluster

import waiting
from installation import Installation
from kafka_side import murmur2_partition
from load import Load
from tally import assert_exactly_once

HUNG_SECONDS = 18  # time for two probes if a broker does not answer


@pytest.fixture
def brokers():
    with Cluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture
def installation(brokers, tmp_path):
    each = Installation(tmp_path, brokers.bootstrap)
    yield each
    each.clean_up()


@pytest.mark.slow
def test_loss_of_one_broker_neither_loses_nor_duplicates_events(installation, brokers):
    done = installation.gatepost("topics", "create", "--partitions", "3")
    assert done.returncode == 0, done.stderr
    kafka = installation.kafka
    for topic in kafka.topics():
        partitions = waiting.until(lambda: kafka.admin.list_topics(topic).topics[topic].partitions.values(), 60, topic)
        assert {len(each.replicas) for each in partitions} == {3}, topic
        settings = kafka.configuration(topic)
        assert settings["min.insync.replicas"] == "2" and settings["unclean.leader.election.enable"] == "false"
    daemon = installation.start()
    load = Load(lambda: [daemon.address], threads=4, rate=150).start()
    for node in brokers.nodes:
        wait_for_more(load)
        brokers.kill(node)
        wait_for_more(load)
        brokers.start_node(node)
    wait_for_more(load)
    load.stop()
    kafka.wait_until_routed(90)
    assert_exactly_once(kafka, load.accepted, load.sent)


@pytest.mark.slow
def test_hung_broker_does_not_make_kafka_unreachable(installation, brokers):
    """Regardless of which broker hangs and which is probed."""
    done = installation.gatepost("topics", "create", "--partitions", "1")
    assert done.returncode == 0, done.stderr
    daemon = installation.start(installation.config("receiver"))
    for node in brokers.nodes:
        brokers.pause(node)
        try:
            until = time.monotonic() + HUNG_SECONDS
            while time.monotonic() < until:
                assert daemon.ready(), (node, daemon.admin("/readyz").body, daemon.last_log(4000))
                time.sleep(0.2)
        finally:
            brokers.resume(node)


def test_topic_that_requires_all_replicas_in_sync_is_reported(installation):
    kafka = installation.kafka
    assert installation.gatepost("topics", "create", "--partitions", "1").returncode == 0
    assert "min.insync.replicas is" not in installation.gatepost("topics", "list").stdout
    kafka.configure(kafka.topics()[0], "min.insync.replicas", "3")
    listed = installation.gatepost("topics", "list").stdout
    assert listed.count("min.insync.replicas is the number of replicas") == 1, listed
    assert "topics fix" in listed, listed


def wait_for_more(load, n=300):
    """Wait until this many more deliveries were accepted."""
    wanted = len(load.accepted) + n
    waiting.until(lambda: len(load.accepted) >= wanted, 120, lambda: f"{wanted} accepted: {load.answers}")


def test_status_names_the_broker_that_is_down(installation, brokers):
    config = installation.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    done = installation.gatepost("topics", "create", "--partitions", "3", config=config)
    assert done.returncode == 0, done.stderr

    def brokers_when(n_up):
        output = installation.gatepost("status", "--json", config=config).stdout
        status = json.loads(output)["brokers"] if output else []
        return status if [each["up"] for each in status].count(True) == n_up and len(status) == 3 else None
    daemon = installation.start(config)
    everyone = waiting.until(lambda: brokers_when(3), 60, "three reachable brokers")
    victim = list(brokers.nodes)[-1]
    brokers.kill(victim)
    (down,) = [each for each in waiting.until(lambda: brokers_when(2), 60, "a broker that is down") if not each["up"]]
    assert down["broker"] in [each["broker"] for each in everyone]
    text = installation.gatepost("status", config=config).stdout
    assert re.findall(r"^broker down +(.*)$", text, re.M) == [down["broker"]]
    daemon.stop()
    daemon.start()  # it has never reached that broker
    (still,) = [each for each in waiting.until(lambda: brokers_when(2), 60, "a broker that is down") if not each["up"]]
    assert still["broker"].partition("/")[0] == down["broker"].partition("/")[0]
    brokers.start_node(victim)
    waiting.until(lambda: brokers_when(3), 60, "three brokers again")


@pytest.mark.slow
def test_partition_without_leader_does_not_keep_a_spool_from_appending_to_the_others(installation, brokers):
    kafka = installation.kafka
    kafka.create(kafka.deliveries, 3, max_message_bytes=2000000, message_timestamp_type="LogAppendTime")
    config = installation.config("receiver")
    config["receiver"].update({"ack_timeout": "2s", "spool": str(installation.directory / "spool")})
    assert installation.gatepost("topics", "create", "--partitions", "3", config=config).returncode == 0
    daemon = installation.start(config)
    daemon.accept()
    leaders = kafka.admin.list_topics(kafka.deliveries).topics[kafka.deliveries].partitions
    brokers.kill(leaders[2].leader)  # only it has this partition
    load = Load(lambda: [daemon.address], threads=4, rate=20).start()
    daemon.wait_for_log("deliveries go to the spool", 60)
    spooled = set(load.accepted)
    wait_for_more(load, 100)
    listed = lambda: kafka.admin.list_topics(kafka.deliveries).topics[kafka.deliveries].partitions.values()
    partitions = waiting.until(lambda: any(each.leader == -1 for each in listed()) and listed(), 60, "no leader")
    away = {each.id for each in partitions if each.leader == -1}
    assert len(away) == 1
    wanted = {key for key in set(load.accepted) - spooled if murmur2_partition(key.encode(), 3) not in away}

    def appended():
        ids = set()
        for each in partitions:
            if each.id not in away:
                ids |= kafka_ids(kafka, each.id)
        return wanted <= ids
    waiting.until(appended, 90, lambda: f"all other partitions' deliveries\n{daemon.last_log(4000)}")
    load.stop()


def kafka_ids(kafka, partition):
    """The ids of the deliveries in one partition."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "ids", "log_level": 3,
                                         "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([confluent_kafka.TopicPartition(kafka.deliveries, partition, confluent_kafka.OFFSET_BEGINNING)])
    ids = set()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error():
            break
        if message is not None:
            ids.add(message.key().decode())
    consumer.close()
    return ids
