"""Every delivery becomes one event, even if processes are killed, restarted, added or removed meanwhile."""

import random
import signal
import time

import pytest

import waiting
from load import Load
from signing import KINDS, Delivery, event_body, now
from tally import assert_exactly_once

CHAOS_DELIVERIES = 10000
CHAOS_RATE = 400  # a second
KILL_SECONDS = (2.0, 4.0)


def new_deliveries(n, size=300):
    return [Delivery(event_body(KINDS[i % len(KINDS)], text="x" * size)) for i in range(n)]


def endless_deliveries():
    while True:
        yield from new_deliveries(len(KINDS))


def by_id(deliveries):
    return {delivery.delivery_id: delivery for delivery in deliveries}


def with_repeats(deliveries):
    """All deliveries, every tenth two to five times, half of the copies signed again, in random order."""
    sent = list(deliveries)
    for delivery in random.sample(deliveries, len(deliveries) // 10):
        sent += [random.choice((delivery, delivery.signed_again())) for _ in range(random.randint(1, 4))]
    random.shuffle(sent)
    return sent


def test_ten_thousand_deliveries_survive_killed_routers(installation):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    random.seed(seed)
    installation.create_topics(partitions=6)
    receivers = [installation.start(installation.config("receiver")) for _ in range(2)]
    routers = [installation.start(installation.config("router")) for _ in range(2)]
    deliveries = new_deliveries(CHAOS_DELIVERIES)
    load = Load(lambda: [each.address for each in receivers], with_repeats(deliveries), rate=CHAOS_RATE).start()
    kills = 0
    while load.is_running():
        time.sleep(random.uniform(*KILL_SECONDS))  # the interval between kills
        router = random.choice(routers)
        router.kill()
        router.start()
        kills += 1
    load.wait(1)
    for router in routers:
        router.wait_until_ready()
    installation.kafka.wait_until_routed(120)
    assert len(load.accepted) == CHAOS_DELIVERIES and kills >= 5, (len(load.accepted), kills, load.answers)
    assert_exactly_once(installation.kafka, load.accepted)


def test_repeat_after_a_restart_is_dropped(installation):
    installation.create_topics()
    daemon = installation.start()
    deliveries = [daemon.accept(each) for each in new_deliveries(30)]
    installation.kafka.wait_until_routed()
    for end in (daemon.stop, daemon.kill):
        end()
        daemon.restart()
        for delivery in deliveries:
            daemon.accept(delivery.signed_again())
        fresh = daemon.accept(new_deliveries(1)[0])
        deliveries.append(fresh)
        installation.kafka.wait_until_routed()
        assert_exactly_once(installation.kafka, by_id(deliveries))
    waiting.until(lambda: daemon.metric("gatepost_duplicates_total") == len(deliveries) - 1, 30, "the duplicates")


def test_conflicting_body_after_restarts_is_quarantined_once(installation):
    installation.create_topics()
    daemon = installation.start()
    delivery = daemon.accept()
    other = delivery.but(body=event_body())
    for _ in range(3):
        installation.kafka.wait_until_routed()
        daemon.stop()
        daemon.restart()
        daemon.accept(other)
        daemon.accept(other.signed_again())
    installation.kafka.wait_until_routed()
    (record,) = installation.kafka.read(installation.kafka.quarantine)
    assert record.header("gatepost-reason") == "conflicting-body"
    waiting.until(lambda: daemon.metric("gatepost_duplicates_total") == 2, 30, "the duplicates")


def test_deliveries_received_while_no_router_runs_are_routed(installation):
    installation.create_topics()
    deliveries = new_deliveries(500)
    installation.kafka.append(deliveries + deliveries[::3])
    installation.start(installation.config("router"))
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, by_id(deliveries))


def is_paused_in_a_transaction(router, kafka):
    """Pause the router and check for an open transaction; a commit already sent completes meanwhile."""
    router.process.send_signal(signal.SIGSTOP)
    if all(not kafka.is_settled() for _ in range(10)):
        return True
    router.process.send_signal(signal.SIGCONT)
    return False


def test_open_transaction_of_a_killed_router_is_invisible(installation):
    config = installation.config("router")
    config["router"]["dedup_window"] = "1h"
    installation.create_topics(config)
    kafka = installation.kafka
    deliveries = [Delivery(event_body(text="x" * 2000)) for _ in range(30000)]
    kafka.append(deliveries)
    router = installation.daemon(config).start()
    waiting.until(lambda: is_paused_in_a_transaction(router, kafka) or kafka.is_routed(), 60, "an open transaction")
    router.kill()
    assert not kafka.is_settled(), "all was routed before a transaction was seen open"
    topic = f"{kafka.prefix}.invoice.accepted"
    visible = kafka.read(topic)
    written = kafka.read(topic, isolation="read_uncommitted")
    assert len(visible) < len(written)
    router.restart()
    kafka.wait_until_routed()
    assert_exactly_once(kafka, by_id(deliveries))
    assert len(kafka.read(topic, isolation="read_uncommitted")) > len(deliveries)


def test_routers_joining_and_leaving_neither_lose_nor_duplicate_events(installation):
    installation.create_topics(partitions=6)
    receiver = installation.start(installation.config("receiver"))
    first = installation.start(installation.config("router"))
    second = installation.daemon(installation.config("router"))
    kafka = installation.kafka
    load = Load(lambda: [receiver.address], endless_deliveries(), threads=4,
                rate=200).start()
    second.start().wait_until_ready()
    waiting.until(lambda: sorted(kafka.members().values()) == [3, 3], 60, lambda: f"two members: {kafka.members()}")
    first.stop()
    waiting.until(lambda: list(kafka.members().values()) == [6], 60, lambda: f"one member: {kafka.members()}")
    first.restart()
    waiting.until(lambda: sorted(kafka.members().values()) == [3, 3], 60, lambda: f"two members: {kafka.members()}")
    load.stop()
    kafka.wait_until_routed()
    assert len(load.accepted) > 100
    assert_exactly_once(kafka, load.accepted, load.sent)


@pytest.mark.slow
def test_second_router_with_the_same_instance_name_causes_no_duplicates(installation):
    """Both share a transactional id, so that one fences the other; an admin's mistake must not duplicate events."""
    installation.create_topics()
    receiver = installation.start(installation.config("receiver"))
    routers = [installation.daemon(installation.config("router", instance)) for instance in ("twin", "other")]
    routers[1].config["gatepost"]["instance"] = "twin"
    load = Load(lambda: [receiver.address], new_deliveries(600), threads=4, rate=100).start()
    for router in routers:
        router.start()
    load.wait(60)
    for router in routers:
        router.abandon()
    installation.start(installation.config("router"))
    installation.kafka.wait_until_routed(90)
    assert_exactly_once(installation.kafka, load.accepted)


def test_copy_outside_the_window_is_a_new_delivery(installation):
    """Record timestamps decide, so the test chooses timestamps instead of waiting for days."""
    config = installation.config()
    config["router"]["dedup_window"] = "3d"
    installation.create_topics(config)
    kafka = installation.kafka
    kafka.delete(kafka.deliveries)
    kafka.create(kafka.deliveries, retention_ms="-1", message_timestamp_type="CreateTime",
                 max_message_bytes=str(2 << 20))
    hour, today = 3600 * 1000, now() * 1000
    late, inside = Delivery(), Delivery()
    for delivery, hours_ago in [(late, 100), (inside, 90), (inside, 20), (late, 20)]:
        kafka.append([delivery], timestamp_ms=today - hours_ago * hour)
    installation.start(config)
    kafka.wait_until_routed()
    ids = [record.delivery_id for record in kafka.read()]
    assert (ids.count(late.delivery_id), ids.count(inside.delivery_id)) == (2, 1)


def test_timestamps_jumping_ahead_and_back_lose_no_dedup_entries(installation):
    """Timestamps jump ahead by ten days, so that older entries expire, and fall back: the entries are restored."""
    config = installation.config()
    config["router"]["dedup_window"] = "3d"
    installation.create_topics(config, 1)
    kafka = installation.kafka
    kafka.configure(kafka.deliveries, "message.timestamp.type", "CreateTime")
    kafka.configure(kafka.deliveries, "retention.ms", "-1")
    day = 24 * 3600 * 1000
    today = now() * 1000 - 12 * day  # Kafka rejects timestamps in the future
    first, second, third = Delivery(), Delivery(), Delivery()
    kafka.append([Delivery()], timestamp_ms=today - 9 * day)  # the dedup table starts later than the log
    kafka.append([first, second], timestamp_ms=today - 2 * day)
    daemon = installation.start(config)
    kafka.wait_until_routed()
    kafka.append([third], timestamp_ms=today + 8 * day)
    kafka.wait_until_routed()
    kafka.append([Delivery()], timestamp_ms=today + 8 * day)
    kafka.wait_until_routed()
    kafka.append([first, Delivery(), second], timestamp_ms=today)
    kafka.wait_until_routed()
    daemon.stop()
    kafka.append([first, third], timestamp_ms=today + 1000)
    installation.start(config)
    kafka.wait_until_routed()
    ids = [record.delivery_id for record in kafka.read()]
    assert len(ids) == len(set(ids)) == 6
    assert "timestamp before the dedup table" in daemon.log


def test_restarted_router_restores_its_dedup_window(installation):
    """The dedup window is restored from the log; committed deliveries are remembered, not published again."""
    installation.create_topics(partitions=2)
    deliveries = new_deliveries(2000)
    installation.kafka.append(deliveries)
    first = installation.start(installation.config("router"))
    installation.kafka.wait_until_routed()
    first.stop()
    installation.kafka.remove_member(first.name)
    second = installation.start(installation.config("router"))
    waiting.until(lambda: second.metric("gatepost_remembered_ids") >= 2000, 30, "2,000 remembered ids")
    installation.kafka.append(deliveries[:100])
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, by_id(deliveries))
