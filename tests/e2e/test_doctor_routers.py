"""gatepost doctor beside one router of several: another one, or a consumer in their group, may have the partitions."""

import re

import pytest
from confluent_kafka import Consumer, Producer

import waiting
from checkup import EX_CONFIG, EX_UNAVAILABLE, OTHER_SECRET, by_sockets, examine, expect, file_of, status_of
from reloading import reload
from signing import Delivery, event_body


def states(router):
    return {each["partition"]: each["state"] for each in status_of(router)["partitions"]}


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
                                                    (rename_source, "unknown-source, ", "under two names a repeat is published twice")])
def test_test_deliveries_reach_each_partition(installation, pair, change, reason, remedy):
    """The second router has half of them, and quarantines them; the first one's machine names these."""
    first, second = pair(change)
    theirs = ", ".join(str(partition) for partition in sorted(states(second)))
    expect(examine(installation, file_of(first)), EX_CONFIG, f"router {installation.kafka.deliveries}: the router in 2 of 4 partitions ({theirs}) has "
           f"quarantined it, and may do so with genuine deliveries: {reason}", "remedy: find the router of that partition, by gatepost status", remedy)
    assert sum(status_of(second)["quarantined"].values()) == 2 and sum(status_of(first)["quarantined"].values()) == 0


def test_remedy_for_a_source_with_another_name(installation):
    """The records have the receiver's name: the router gets it, and what is in quarantine is published."""
    installation.create_topics()
    receiver, router = by_sockets(installation, "receiver"), by_sockets(installation, "router")
    for config in (receiver, router):
        config["admin"]["listen"] = f"unix:{config.directory}/admin-{config['gatepost']['roles']}.sock"
    receiver.sections["source billing"] = receiver.sections.pop("source invoicing")
    receiver, router = installation.start(receiver), installation.start(router)
    sent = [Delivery() for _ in range(3)]
    for each in sent:
        receiver.accept(each)
    installation.kafka.wait_until_routed()
    assert status_of(router)["quarantined"]["unknown-source"] == 3
    router.config.sections["source billing"] = router.config.sections.pop("source invoicing")
    reload(router)
    done = installation.gatepost("quarantine", "release", "--reason", "unknown-source", config=file_of(router))
    assert done.returncode == 0 and "3 released" in done.stdout + done.stderr, done
    installation.kafka.wait_until_routed()
    events = installation.kafka.read(f"{installation.prefix}.invoice.accepted")
    assert sorted(event.key.decode() for event in events) == sorted(each.delivery_id for each in sent)


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
                              "topic for the kind order.created (this file has one: see that each router does, before they are released); "), warning


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


@pytest.fixture
def two_routers(installation):
    """Two of one group, of which the second publishes one kind to a topic of its own; they share four partitions."""
    first, second = (installation.daemon(by_sockets(installation)) for _ in range(2))
    second.config["events"]["invoice.rejected"] = topic = f"{installation.prefix}.of-the-second"
    for daemon in (first, second):
        installation.create_topics(daemon.config, partitions=4)
    for daemon in (first, second):
        daemon.start()
    waiting.until(lambda: [sorted(states(daemon).values()) for daemon in (first, second)] == [["routing"] * 2] * 2, 90,
                  lambda: f"two partitions for each router:\n{first.last_log(3000)}\n{second.last_log(3000)}")
    for daemon in (first, second):
        daemon.wait_until_ready()
    return first, second, topic


def test_partition_that_another_router_does_not_route(installation, two_routers):
    """The test delivery comes to another partition, and the machine's own router is ready."""
    first, second, topic = two_routers
    installation.kafka.delete(topic)

    def is_stuck():
        first.accept(Delivery(event_body("invoice.rejected")))
        return "waiting" in states(second).values() and states(second)
    stuck = waiting.until(is_stuck, 90, lambda: f"a partition of the second router to wait:\n{second.last_log(4000)}")
    numbers = [number for number, state in stuck.items() if state == "waiting"]
    assert set(states(first).values()) == {"routing"} and first.admin("/readyz").status == 200
    checkup = examine(installation, file_of(first), "--no-send")
    expect(checkup, EX_UNAVAILABLE, f"partitions {installation.kafka.deliveries}: ", " of 4 partitions ", "not routed",
           "and none was decided within 30 s; another router has it", "on the machine of each router")
    assert any(f"{number}" in checkup.cause.split("not routed, ")[1].split(":")[0] for number in numbers), checkup.cause
    installation.create_topics(second.config, partitions=4)
    installation.kafka.wait_until_routed(120)
    checkup = examine(installation, file_of(first))
    assert checkup.status == 0, checkup.lines
    assert f"✓ partitions {installation.kafka.deliveries}: 4, and in none a delivery waits without being decided" in checkup.lines


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_consumer_in_the_group_of_the_routers(installation, stopped, group_protocol):
    """It gets partitions, and the deliveries that it commits have no events; also by the protocol of KIP-848, which changes the group."""
    stopped.start().wait_until_ready()
    assert f"✓ group {installation.prefix}.router: 1 router" in examine(installation, stopped.config, "--no-send").lines
    consumer = Consumer({"bootstrap.servers": installation.bootstrap, "group.id": installation.kafka.group, "client.id": "billing",
                         "group.protocol": group_protocol})
    consumer.subscribe([installation.kafka.deliveries])
    waiting.until(lambda: consumer.poll(0.1) is not None or consumer.assignment(), 60, "the consumer's partitions")
    checkup = examine(installation, stopped.config)
    consumer.close()
    expect(checkup, EX_CONFIG, f"group {installation.kafka.group}: 1 of 2 members is no router of Gatepost, such as the client billing at 127.0.0.1: ",
           "remedy: stop that consumer, and give it a group.id of its own")
    assert any(line.startswith("- delivery: needs what failed above (permissions)") for line in checkup.lines), checkup.lines
