"""gatepost doctor beside one router of several: another one may quarantine what this one publishes."""

import re

import pytest
from confluent_kafka import Producer

import waiting
from signing import SECRET, Delivery, event_body
from test_doctor import EX_CONFIG, OTHER_SECRET, by_sockets, examine, expect, file_of, states, status_of


def rotate(first, second):
    """The secret of the first machine, whose second router has the old one."""
    first["source invoicing"]["secret_file"] = first.secret_file("new", OTHER_SECRET)
    for config in (first, second):
        config["router"]["verify"] = "on"


def rename_source(first, second):
    first.sections["source orders"] = first.sections.pop("source invoicing") | {"path": "/webhooks/invoicing"}


def add_kind(first, second):
    for config in (first, second):
        config["events"]["invoice.*"] = f"{first.get('topics', 'prefix')[0]}.invoices"
    first["events"]["order.created"] = f"{first.get('topics', 'prefix')[0]}.orders"


@pytest.fixture
def pair(installation):
    """A function that starts a receiver with a router, and another router with a configuration that differs."""
    def start(change):
        first, second = by_sockets(installation), by_sockets(installation, "router")
        change(first, second)
        installation.create_topics(first, partitions=4)
        daemons = [installation.daemon(config).start() for config in (first, second)]
        waiting.until(lambda: [sorted(states(daemon).values()) for daemon in daemons] == [["routing"] * 2] * 2, 90,
                      lambda: f"two partitions for each router: {[each.last_log(3000) for each in daemons]}")
        for daemon in daemons:
            daemon.wait_until_ready()
        return daemons
    return start


@pytest.mark.parametrize("change, reason, remedy", [(rotate, "unverified, ", "verify = on, and other secrets"),
                                                    (rename_source, "unknown-source, ", "give the router the sources of the receiver")])
def test_test_deliveries_reach_each_partition(installation, pair, change, reason, remedy):
    """The second router has half of them, and quarantines them; the first one's machine names these."""
    first, second = pair(change)
    theirs = ", ".join(str(partition) for partition in sorted(states(second)))
    expect(examine(installation, file_of(first)), EX_CONFIG, f"router {installation.kafka.deliveries}: the router in 2 of 4 partitions ({theirs}) has "
           f"quarantined it, and may do so with genuine deliveries: {reason}", "remedy: find the router of that partition, by gatepost status", remedy)
    assert sum(status_of(second)["quarantined"].values()) == 2 and sum(status_of(first)["quarantined"].values()) == 0


def test_test_deliveries_of_each_secret_are_in_all_partitions(installation):
    config = by_sockets(installation)
    config["source invoicing"]["secret_file"] = [config["source invoicing"]["secret_file"], config.secret_file("next", OTHER_SECRET)]
    installation.create_topics(config, partitions=4)
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0, checkup.lines
    assert len([line for line in checkup.lines if line.startswith("✓ delivery ")]) == 2
    (line,) = [line for line in checkup.lines if line.startswith("✓ router ")]
    assert re.search(r": recognised and dropped within \d+ ms of the answer, in 4 of 4 partitions$", line), line
    assert sorted(record.partition for record in installation.kafka.read(installation.kafka.deliveries)) == sorted(list(range(4)) * 2)
    assert daemon.metric("gatepost_test_deliveries_total") == 8


def test_quarantined_deliveries_of_another_router_are_a_warning(installation, pair):
    """By the topic, since the router of this machine counts its own ones."""
    first, second = pair(add_kind)
    assert "✓ quarantine: no delivery quarantined within an hour" in examine(installation, file_of(first)).lines
    n = 0
    while n < 2:
        first.accept(Delivery(event_body("order.created")))
        installation.kafka.wait_until_routed()
        n = status_of(second)["quarantined"]["unknown-kind"]
    (warning,) = examine(installation, file_of(first)).having("!")
    assert warning.startswith(f"! quarantine: {n} deliveries quarantined within an hour, by any router, the last of [source invoicing] as unknown-kind: no "
                              "topic for the kind order.created; "), warning


def test_aborted_records_of_quarantine_are_none(installation):
    """They and the ends of transactions have offsets, too."""
    config = by_sockets(installation)
    installation.create_topics(config)
    daemon = installation.start(config)
    producer = Producer({"bootstrap.servers": installation.bootstrap, "transactional.id": f"{installation.prefix}-aborted"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(installation.kafka.quarantine, b"{}")
    producer.flush(30)
    producer.abort_transaction(30)
    assert "✓ quarantine: no delivery quarantined within an hour" in examine(installation, file_of(daemon), "--no-send").lines
