"""A router gets back partitions that another router has routed meanwhile, from a truncated log."""

import signal

import pytest

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


def test_offset_metadata_of_other_clients_are_ignored(installation):
    """They may be digits, like a router's."""
    config, kafka = installation.config("router"), installation.kafka
    installation.create_topics(config, partitions=1)
    kafka.append([Delivery() for _ in range(3)])
    commit_beyond_end(kafka, 0, 5, metadata=str(2 ** 63 - 1))
    router = installation.daemon(config).launch()
    router.wait_for_log("was the topic deleted and recreated")
    router.wait_for_exit(78)
