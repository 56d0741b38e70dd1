"""[router] standby: a router that takes over partitions knows what another one has routed, without reading it again."""

import re
import signal

import pytest
from confluent_kafka.admin import NewPartitions

import waiting
from cluster import Cluster
from installation import Installation
from kafka_side import murmur2_partition
from reloading import reload
from signing import KINDS, Delivery, event_body, now
from tally import assert_exactly_once, tally
from test_partitions import cut_off, wait_until_published
from test_state import by_id, stop

SECONDS = 60
N = 3000
PARTITIONS = 4
NEW_SECRET, FORGERS_SECRET = b"a secret that replaced the other one", b"a secret that neither router has"


def new_deliveries(n):
    return [Delivery(event_body(KINDS[i % len(KINDS)], text="x" * 200)) for i in range(n)]


def configure(installation, **options):
    config = installation.config("router")
    config.sections["router"] = {"standby": "on"} | options
    return config


def append(installation, deliveries):
    installation.kafka.append(deliveries)
    installation.kafka.wait_until_routed()


def follow(installation, config, n=N):
    """Start a router that gets no partition, and wait until it knows n deliveries."""
    daemon = installation.start(config)
    wait_for_ids(daemon, n)
    return daemon


def wait_for_ids(daemon, n):
    waiting.until(lambda: daemon.metric("gatepost_remembered_ids") >= n, SECONDS,
                  lambda: f"{n} remembered ids, not {daemon.metric('gatepost_remembered_ids')}\n{daemon.last_log(3000)}")


def own_partitions(daemon):
    return {each["partition"] for each in daemon.admin("/status").json["partitions"] if each["state"] == "routing"}


def states(daemon):
    return [each["state"] for each in daemon.admin("/status").json["partitions"]]


def read_by(log):
    """How many records of `deliveries` a router read before it was at the committed offsets of its partitions."""
    pairs = re.findall(r"partition assigned partition=\d+ committed=(\d+) reading_from=(\d+)", log)
    return sum(int(committed) - int(start) for committed, start in pairs)


def take_over(installation, daemon, other, n):
    """The other router ends; this one gets its n partitions. Returns how many records it read for that."""
    before = len(daemon.log)
    stop(installation, other)
    waiting.until(lambda: daemon.log[before:].count("partition assigned") >= n, SECONDS, lambda: daemon.last_log(3000))
    waiting.until(lambda: daemon.admin("/readyz").status == 200, SECONDS, lambda: daemon.last_log(3000))
    assert states(daemon) == ["routing"] * n
    return read_by(daemon.log[before:])


@pytest.fixture
def topics(installation):
    installation.create_topics(partitions=PARTITIONS)


@pytest.fixture
def first(installation, topics):
    """A router that has all partitions, and has routed N deliveries."""
    daemon = installation.start(installation.config("router"))
    daemon.deliveries = new_deliveries(N)
    append(installation, daemon.deliveries)
    return daemon


def test_partitions_are_taken_over_without_reading_the_window(installation, first):
    """While both run each has two partitions; the standby knows the others' records, too."""
    daemon = follow(installation, configure(installation))
    assert sorted(states(daemon)) == ["routing"] * 2 + ["standby"] * 2
    assert daemon.admin("/readyz").status == 200 and daemon.metric("gatepost_router_lag_records") == 0
    later = new_deliveries(500)
    append(installation, later)
    wait_for_ids(daemon, N + 500)
    assert take_over(installation, daemon, first, PARTITIONS) <= 2 * PARTITIONS
    append(installation, first.deliveries + later)
    assert_exactly_once(installation.kafka, by_id(first.deliveries + later))


def test_records_that_nobody_has_committed_are_not_remembered(installation, first):
    """The other router hangs: what it has not routed may still be lost, and is published by the one that takes over."""
    daemon = follow(installation, configure(installation))
    before = new_deliveries(100)
    append(installation, before)
    first.process.send_signal(signal.SIGSTOP)
    later = new_deliveries(300)
    installation.kafka.append(later)  # behind committed records that the next round reads
    own = own_partitions(daemon)
    known = N + len(before) + sum(murmur2_partition(each.delivery_id.encode(), PARTITIONS) in own for each in later)

    remembered = []

    def has_taken_over():
        """The report is no snapshot: what it told before it tells again that it follows was remembered by following."""
        status = daemon.admin("/status").json
        if "standby" in [each["state"] for each in status["partitions"]]:
            assert max(remembered, default=0) <= known
        remembered.append(status["rememberedIds"])
        return [each["state"] for each in status["partitions"]] == ["routing"] * PARTITIONS
    waiting.until(has_taken_over, SECONDS, lambda: daemon.last_log(3000))
    installation.kafka.wait_until_routed()
    first.kill()
    append(installation, later + before + first.deliveries)
    assert_exactly_once(installation.kafka, by_id(first.deliveries + before + later))


def test_table_of_a_partition_that_another_router_gets_is_kept(installation, topics):
    """Partitions go to a new router and come back."""
    daemon = installation.start(configure(installation))
    deliveries = new_deliveries(N)
    append(installation, deliveries)
    other = installation.start(installation.config("router"))
    waiting.until(lambda: sorted(states(daemon)) == ["routing"] * 2 + ["standby"] * 2, SECONDS, lambda: daemon.last_log(3000))
    later = new_deliveries(200)
    append(installation, later)
    wait_for_ids(daemon, N + 200)
    assert take_over(installation, daemon, other, PARTITIONS) <= 2 * PARTITIONS
    append(installation, deliveries + later)
    assert_exactly_once(installation.kafka, by_id(deliveries + later))


def test_followed_partitions_have_files(installation, first):
    """A standby with state may restart: it reads the files of the partitions that it follows, too."""
    directory = installation.directory / "state"
    config = configure(installation, state=str(directory))
    stop(installation, follow(installation, config))
    assert len(list(directory.glob("*.run"))) >= PARTITIONS
    again = follow(installation, config)
    followed = re.findall(r"following a partition of another router partition=\d+ committed=(\d+) reading_from=(\d+)", again.log)
    assert len(followed) == 2 and sum(int(committed) - int(start) for committed, start in followed) < 200, followed
    assert take_over(installation, again, first, PARTITIONS) <= 2 * PARTITIONS
    append(installation, first.deliveries)
    assert_exactly_once(installation.kafka, by_id(first.deliveries))


def test_more_routers_than_partitions(installation, first):
    """The one that has none follows all, and is ready."""
    others = [installation.start(installation.config("router")) for _ in range(PARTITIONS - 1)]
    waiting.until(lambda: sorted(installation.kafka.members().values()) == [1] * PARTITIONS, SECONDS, installation.kafka.members)
    daemon = follow(installation, configure(installation))
    assert states(daemon) == ["standby"] * PARTITIONS and daemon.admin("/readyz").status == 200
    for each in [*others, first]:
        stop(installation, each)
    waiting.until(lambda: states(daemon) == ["routing"] * PARTITIONS, SECONDS, lambda: daemon.last_log(3000))
    append(installation, first.deliveries)
    assert_exactly_once(installation.kafka, by_id(first.deliveries))


def test_partitions_that_are_added_are_followed(installation, first):
    daemon = follow(installation, configure(installation))
    kafka = installation.kafka
    kafka.admin.create_partitions([NewPartitions(kafka.deliveries, PARTITIONS + 2)])[kafka.deliveries].result(30)
    waiting.until(lambda: sorted(states(daemon)) == ["routing"] * 3 + ["standby"] * 3, SECONDS, lambda: daemon.last_log(3000))
    later = new_deliveries(500)
    append(installation, later)
    wait_for_ids(daemon, N + len(later))
    assert take_over(installation, daemon, first, PARTITIONS + 2) <= 2 * (PARTITIONS + 2)
    append(installation, later)
    assert_exactly_once(kafka, by_id(first.deliveries + later))


def test_tables_outlive_a_reload(installation, first):
    """Of an option that has nothing to do with them, and of a longer window, for which the log is read again."""
    daemon = follow(installation, configure(installation))
    daemon.config["gatepost"]["log_level"] = "debug"
    reload(daemon)
    daemon.config["router"]["dedup_window"] = "4d"
    reload(daemon)
    later = new_deliveries(100)
    append(installation, later)
    wait_for_ids(daemon, N + len(later))
    take_over(installation, daemon, first, PARTITIONS)
    append(installation, first.deliveries + later)
    assert_exactly_once(installation.kafka, by_id(first.deliveries + later))


def test_published_records_are_known_whose_secret_the_standby_lacks(installation, topics):
    """Both verify; only the standby has the new secret. What the other router published under the old one is a repeat, and what
    it put into quarantine does not occupy its id."""
    routing = installation.config("router")
    routing.sections["router"] = {"verify": "on"}
    other = installation.start(routing)
    old = new_deliveries(N)
    forged = [Delivery(secret=FORGERS_SECRET) for _ in range(20)]
    append(installation, old + forged)
    config = configure(installation, verify="on")
    config["source invoicing"]["secret_file"] = config.secret_file("new", NEW_SECRET)
    daemon = follow(installation, config)
    assert take_over(installation, daemon, other, PARTITIONS) <= 2 * PARTITIONS
    new = [each.but(body=event_body(), secret=NEW_SECRET, timestamp=now()) for each in forged]
    append(installation, [each.but(secret=NEW_SECRET, timestamp=now()) for each in old] + new)
    found = tally(installation.kafka, by_id(old + new))
    assert not found.lost and not found.duplicated, found
    assert sorted(each[1:] for each in found.unexpected) == sorted((each.delivery_id, "unverified") for each in forged)


@pytest.mark.slow
def test_partitions_are_followed_on_when_the_broker_returns(tmp_path):
    """Their last records are read again, up to the end of the log, which grows later."""
    with Cluster() as cluster:
        installation = Installation(tmp_path, cluster.bootstrap)
        installation.create_topics(partitions=PARTITIONS)
        installation.start(configure(installation))
        append(installation, new_deliveries(N))
        standby = follow(installation, configure(installation))
        for i in range(1, 4):
            cluster.kill(1)
            cluster.start_node(1)
            append(installation, new_deliveries(100))
            wait_for_ids(standby, N + 100 * i)
        installation.clean_up()


@pytest.mark.slow
def test_partition_is_taken_over_whose_other_router_committed_the_same_offset_after_a_loss(tmp_path):
    """The standby has met another record in front of the offset; the other router has routed it, and commits that offset again."""
    with Cluster() as cluster:
        installation = Installation(tmp_path, cluster.bootstrap)
        kafka = installation.kafka
        installation.create_topics(partitions=1)
        first = installation.start(configure(installation))
        append(installation, new_deliveries(400))
        (log,) = cluster.directory.glob(f"node*/data/{kafka.deliveries}-0/00000000000000000000.log")
        size = log.stat().st_size
        standby = follow(installation, configure(installation), 400)
        waiting.until(lambda: len(kafka.members()) == 2, SECONDS, "both to be members")
        append(installation, new_deliveries(1))
        wait_for_ids(standby, 401)
        cut_off(cluster, log, size)
        for each in (first, standby):
            each.wait_for_log("the log ends at offset 400 but was routed up to 401", SECONDS)
        later, more = new_deliveries(1), new_deliveries(10)
        kafka.append(later)
        wait_until_published(kafka, later)
        owner = first if "standby" in states(standby) else standby
        other = standby if owner is first else first
        stop(installation, owner)
        kafka.append(more + [each.signed_again() for each in later])
        wait_until_published(kafka, more)
        waiting.until(lambda: states(other) == ["routing"], SECONDS, "the partition to be routed")
        kafka.wait_until_routed()
        found = tally(kafka, by_id(later + more))
        assert not found.lost and not found.duplicated, found
        installation.clean_up()


@pytest.mark.slow
def test_loss_that_was_found_while_following_is_told_when_the_partition_is_taken_over(tmp_path):
    """The router is gone, and the standby follows on until its session has ended."""
    with Cluster() as cluster:
        installation = Installation(tmp_path, cluster.bootstrap)
        installation.create_topics(partitions=1)
        first = installation.start(configure(installation))
        append(installation, new_deliveries(400))
        (log,) = cluster.directory.glob(f"node*/data/{installation.kafka.deliveries}-0/00000000000000000000.log")
        size = log.stat().st_size
        append(installation, new_deliveries(100))
        standby = follow(installation, configure(installation), 500)
        waiting.until(lambda: len(installation.kafka.members()) == 2, SECONDS, "both to be members")
        first.kill()
        cut_off(cluster, log, size)
        later = new_deliveries(20)
        installation.kafka.append(later)
        standby.wait_for_log("Kafka has lost records that were routed", 2 * SECONDS)
        wait_until_published(installation.kafka, later)
        assert standby.metric("gatepost_log_truncations_total") == 1
        assert "cannot be followed now" in standby.log
        installation.clean_up()
