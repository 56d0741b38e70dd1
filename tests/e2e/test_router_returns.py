"""A router gets back partitions that another router has routed meanwhile, from a truncated log."""

import contextlib
import signal

import confluent_kafka
import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

import waiting
from cluster import Cluster
from installation import Installation
from proxy import Proxies
from signing import Delivery
from test_partitions import (commit_beyond_end, create_deliveries, cut_off, decide_without_committing, leader,
                             wait_until_published)

SECONDS = 60


def give_back(router, other, before):
    """Stop the other router, and wait until the first has been assigned its partition again."""
    other.stop()
    waiting.until(lambda: "partition assigned" in router.log[before:], SECONDS,
                  lambda: f"the partition to be assigned:\n{router.last_log(3000)}")


@pytest.mark.slow
def test_own_uncommitted_decision_is_forgotten_when_the_partition_returns(tmp_path):
    """Its record was truncated and replaced by others: the delivery is published when it is repeated."""
    with Cluster() as cluster:
        installation = Installation(tmp_path, cluster.bootstrap)
        kafka = installation.kafka
        config, other = installation.config("router"), installation.config("router")
        again, later = Delivery(), [Delivery() for _ in range(3)]
        router, log, size = decide_without_committing(installation, cluster, config, again)
        router.process.send_signal(signal.SIGSTOP)
        cut_off(cluster, log, size)
        installation.create_topics(config, partitions=1)
        successor = installation.daemon(other).start()
        kafka.append(later)
        try:
            wait_until_published(kafka, later)
        finally:
            before = len(router.log)
            router.process.send_signal(signal.SIGCONT)
        give_back(router, successor, before)
        kafka.append([again])
        wait_until_published(kafka, [*later, again])
        installation.clean_up()


@pytest.mark.slow
def test_records_routed_by_another_router_are_known_when_the_partition_returns(tmp_path):
    """It is disconnected while an unclean leader election loses the last records it had routed."""
    with Cluster(nodes=3, proxied=True) as brokers:
        installation = Installation(tmp_path, brokers.bootstrap)
        kafka = installation.kafka
        create_deliveries(installation, [[1, 2]], **{"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
        config, other = installation.config("router"), installation.config("router")
        config["kafka"]["bootstrap.servers"] = brokers.proxied_bootstrap
        with Proxies(brokers, lambda text: None):
            router = installation.start(config)
            kafka.append([Delivery() for _ in range(50)])
            kafka.wait_until_routed()
            waiting.until(lambda: leader(kafka, 0) == 1, SECONDS, "broker 1 to lead")
            brokers.kill(2)
            kafka.append([Delivery() for _ in range(50)])
            kafka.wait_until_routed()
        brokers.kill(1)
        brokers.start_node(2)
        try:
            waiting.until(lambda: leader(kafka, 0) == 2, 90, "broker 2 to be elected")
            later = [Delivery() for _ in range(80)]
            kafka.append(later)
            successor = installation.daemon(other).start()
            wait_until_published(kafka, later)
        finally:
            brokers.start_node(1)
        before = len(router.log)
        with Proxies(brokers, lambda text: None):
            give_back(router, successor, before)
            last = Delivery()
            kafka.append([*later, last])
            wait_until_published(kafka, [*later, last])
            installation.clean_up()


@pytest.mark.slow
@pytest.mark.parametrize("is_newer", [False, True], ids=["installed", "newer"])
def test_log_that_is_cut_off_while_the_router_is_stopped(tmp_path, new_library, is_newer):
    """An unclean leader election loses records, and the first leader leads again: the router reads on over the same connection,
    where the records that it has not read are below its offset. Newer versions of librdkafka notice by the leader's epoch."""
    with Cluster(nodes=3) as brokers, contextlib.ExitStack() as stack:
        bootstrap = f"127.0.0.1:{brokers.nodes[3].port}"  # which answers all the time
        installation = Installation(tmp_path, bootstrap)
        stack.callback(installation.clean_up)
        kafka = installation.kafka
        create_deliveries(installation, [[1, 2]], **{"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})

        def state_of_log():
            """The leader, and the replicas in sync, by a client that knows only the broker that answers."""
            with contextlib.suppress(confluent_kafka.KafkaException):
                admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
                found = admin.list_topics(kafka.deliveries, timeout=5).topics[kafka.deliveries].partitions[0]
                return found.leader, sorted(found.isrs)

        def wait_for_log(*expected):
            waiting.until(lambda: state_of_log() == expected, 90, lambda: f"{expected}, not {state_of_log()}")

        config = installation.config("router")
        config["kafka"]["session.timeout.ms"] = "45000"  # it stays a member
        router = installation.daemon(config)
        router.environment = new_library if is_newer else {}
        router.start().wait_until_ready()
        kept, again = [Delivery() for _ in range(50)], [Delivery() for _ in range(150)]
        kafka.append(kept)
        wait_for_log(1, [1, 2])
        brokers.kill(2)
        kafka.append([Delivery() for _ in range(50)])
        kafka.wait_until_routed()
        router.process.send_signal(signal.SIGSTOP)
        try:
            brokers.pause(1)
            brokers.start_node(2)
            wait_for_log(2, [2])
            brokers.resume(1)
            wait_for_log(2, [1, 2])
            kafka.append(again)
            admin = AdminClient({"bootstrap.servers": bootstrap})
            admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(kafka.deliveries, 0)]).result(30)
            wait_for_log(1, [1, 2])
        finally:
            router.process.send_signal(signal.SIGCONT)
        wait_until_published(kafka, kept + again)
        assert router.metric("gatepost_log_truncations_total") == 1


def test_offset_metadata_of_other_clients_are_ignored(installation):
    """They may be digits, like a router's."""
    config, kafka = installation.config("router"), installation.kafka
    installation.create_topics(config, partitions=1)
    kafka.append([Delivery() for _ in range(3)])
    commit_beyond_end(kafka, 0, 5, metadata=str(2 ** 63 - 1))
    router = installation.daemon(config).launch()
    router.wait_for_log("was the topic deleted and recreated")
    router.wait_for_exit(78)
