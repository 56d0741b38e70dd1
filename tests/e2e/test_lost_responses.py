"""Kafka acts but its response is lost, or requests arrive late."""

import random
import signal
import threading

import pytest

import http_client
import waiting
from cluster import Cluster
from installation import Installation
from load import Load
from manager import Manager
from proxy import Proxies
from raw_tls import whole
from rules import KEEP
from signing import Delivery, event_body
from tally import assert_exactly_once

RULE_SECONDS = 60
FIRST_REQUESTS = ("ApiVersions", "Metadata", "FindCoordinator", "InitProducerId")
COORDINATOR_NOT_AVAILABLE = 15
CONCURRENT_TRANSACTIONS = 51
NOT_LEADER_OR_FOLLOWER = 6
OUT_OF_ORDER_SEQUENCE = 45
COMMIT_SECONDS = 30
LOAD_RATE = 100  # a second
SOCKET_TIMEOUT_SECONDS = 60  # librdkafka's, after which it would ask again


@pytest.fixture(scope="module")
def proxied_broker():
    """A Kafka for these tests only, whose clients bootstrap through a proxy."""
    with Cluster(proxied=True) as cluster:
        yield cluster


@pytest.fixture
def proxies(proxied_broker):
    with Proxies(proxied_broker) as each:
        yield each


@pytest.fixture
def installation(proxied_broker, proxies, tmp_path):
    """An installation whose Kafka client and command line connect directly."""
    each = Installation(tmp_path, proxied_broker.bootstrap)
    yield each
    each.clean_up()


@pytest.fixture
def proxied(installation, proxied_broker):
    """A daemon that connects through the proxy, not yet started."""
    def daemon(roles="receiver, router", **kafka):
        config = installation.config(roles)
        config["kafka"].update({"bootstrap.servers": proxied_broker.proxied_bootstrap} | kafka)
        return installation.daemon(config)
    return daemon


def assert_load_survives(installation, daemon, rule, count):
    """Start the daemon under load, and wait until the rule has been applied count times and all deliveries are routed."""
    installation.create_topics()
    daemon.start()
    load = Load(lambda: [daemon.address], threads=4, rate=LOAD_RATE).start()
    assert rule.wait(RULE_SECONDS, count), f"{rule.count} of {count} responses were lost"
    daemon.wait_until_ready()
    wanted = len(load.accepted) + LOAD_RATE
    waiting.until(lambda: len(load.accepted) >= wanted, RULE_SECONDS, lambda: f"{wanted} accepted: {load.answers}")
    load.stop()
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, load.accepted, load.sent)


@pytest.mark.parametrize("api, topic, count", [
    pytest.param("Produce", "deliveries", 5, id="receiver's Produce"),
    pytest.param("Produce", "invoice.accepted", 5, id="router's Produce"),
    ("AddPartitionsToTxn", None, 5),
    ("AddOffsetsToTxn", None, 5),
    ("TxnOffsetCommit", None, 5),
    ("EndTxn", None, 5),
    ("InitProducerId", None, 2),  # the receiver's and the router's, or twice that of one
    ("FindCoordinator", None, 2),
    ("OffsetFetch", None, 1),
    ("JoinGroup", None, 1),
    ("SyncGroup", None, 1),
    ("Heartbeat", None, 1)])
def test_response_lost_with_its_connection_loses_no_delivery(installation, proxies, proxied, api, topic, count):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    name = f"{installation.prefix}.{topic}"
    rule = proxies.lose_response(api, match=lambda request: topic is None or request.mentions(name), times=count,
                                 probability=0.5 if count > 2 else 1.0, seed=seed)
    assert_load_survives(installation, proxied(), rule, count)


@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
def test_response_that_never_arrives_loses_no_delivery(installation, proxies, proxied, api):
    """The connection stays open, and librdkafka's request times out."""
    rule = proxies.lose_response(api, connection="keep")
    assert_load_survives(installation, proxied(**{"socket.timeout.ms": "1500"}), rule, 1)


@pytest.mark.slow
def test_signature_is_kept_if_an_earlier_attempt_may_have_been_stored(installation, proxied_broker, proxies, proxied):
    """The first attempt was stored without a response; the second arrives while Kafka is away; then a captured copy."""
    daemon = proxied()
    daemon.config["receiver"]["ack_timeout"] = "2s"
    installation.create_topics(daemon.config)
    daemon.start().wait_until_ready()
    daemon.accept()
    kafka = installation.kafka
    rule = proxies.lose_response("Produce", connection="keep", match=lambda request: request.mentions(kafka.deliveries), times=100)
    delivery = Delivery()
    assert daemon.post(delivery).status == 503 and rule.count >= 1
    proxied_broker.kill(1)
    try:
        daemon.wait_until_not_ready(RULE_SECONDS)
        assert daemon.post(delivery).status == 503
    finally:
        rule.end()
        proxied_broker.start_node(1)
    waiting.until(lambda: daemon.post().status == 200, RULE_SECONDS, "the answer 200")
    daemon.accept(delivery.but(delivery_id="captured"))
    kafka.wait_until_routed()
    published = [record.delivery_id for record in kafka.read(f"{kafka.prefix}.invoice.accepted")]
    assert published.count(delivery.delivery_id) == 1 and "captured" not in published
    (record,) = kafka.read(kafka.quarantine)
    assert record.header("gatepost-reason") == "replayed-signature"


# Requests that librdkafka sends twice because their connection breaks, and whose first copies arrive in the transaction after
# theirs. With the same producer epoch, Kafka could not distinguish them (KIP-890).


def is_commit(request):
    return request.commits


def start_router(installation, proxied):
    """A router of one partition, so that each transaction's offset replaces the previous one."""
    installation.create_topics(partitions=1)
    return proxied("router").start().wait_until_ready()


def append(installation):
    """Append another delivery."""
    delivery = Delivery()
    installation.kafka.append([delivery])
    return {delivery.delivery_id: delivery}


def route_despite(rule, installation):
    """Have a delivery routed although the rule holds a request of its transaction: the second copy of the request succeeds."""
    delivery = append(installation)
    assert rule.wait(RULE_SECONDS)
    installation.kafka.wait_until_routed()
    return delivery


def assert_restart_repeats_nothing(installation, router, deliveries):
    router.kill()
    router.restart()
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, deliveries)


def test_late_copy_of_a_commit_does_not_commit_the_next_transaction(installation, proxies, proxied):
    """That commit would lack the offsets, which the killed router has not sent yet."""
    kafka = installation.kafka
    router = start_router(installation, proxied)
    late = proxies.hold_request("EndTxn", match=is_commit)
    deliveries = route_despite(late, installation)
    offsets = proxies.hold_request("TxnOffsetCommit", connection="overtake")
    deliveries |= append(installation)
    assert offsets.wait(RULE_SECONDS)
    waiting.until(lambda: len(kafka.read(isolation="read_uncommitted")) == 2, RULE_SECONDS, "the next event, written")
    late.release()
    assert late.wait_for_response(RULE_SECONDS)
    assert_restart_repeats_nothing(installation, router, deliveries)


def test_late_copy_of_offsets_does_not_replace_those_of_the_next_transaction(installation, proxies, proxied):
    """It arrives after the events and before the commit; the killed router writes no more events."""
    router = start_router(installation, proxied)
    late = proxies.hold_request("TxnOffsetCommit")
    deliveries = route_despite(late, installation)
    commit = proxies.hold_request("EndTxn", match=is_commit, connection="overtake")
    deliveries |= append(installation)
    assert commit.wait(RULE_SECONDS)
    late.release()
    assert late.wait_for_response(RULE_SECONDS)
    commit.release()
    assert commit.wait_for_response(RULE_SECONDS).error == 0
    assert_restart_repeats_nothing(installation, router, deliveries)


def test_router_survives_a_temporarily_unavailable_coordinator(installation, proxied, proxies):
    """The group coordinator, which librdkafka looks up three times within a commit and then waits for indefinitely."""
    installation.create_topics()
    offsets = proxies.watch("AddOffsetsToTxn", times=None)
    unknown = proxies.refuse("FindCoordinator", COORDINATOR_NOT_AVAILABLE, match=lambda request: offsets.count > 0, times=3)
    router = proxied("router").start().wait_until_ready()
    deliveries = append(installation)
    assert unknown.wait(RULE_SECONDS, 3), f"asked {unknown.count} times"
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, deliveries)
    router.wait_until_ready()


def test_producer_without_a_producer_id_is_replaced(installation, proxied, proxies):
    """Kafka answers all other requests, so it counts as reachable; the client would wait for a minute."""
    installation.create_topics()
    rule = proxies.lose_response("InitProducerId", connection=KEEP)
    daemon = proxied("receiver")
    daemon.start()
    assert rule.wait(RULE_SECONDS), "nobody asked for a producer id"
    assert not daemon.ready()
    daemon.wait_until_ready(SOCKET_TIMEOUT_SECONDS - 10)
    daemon.accept()
    assert "a producer has failed and was replaced" in daemon.log


@pytest.mark.parametrize("n", [1, 4])
def test_failed_producer_is_replaced_while_deliveries_are_pipelined(installation, proxied, proxies, n):
    """The answer to one delivery lets the next be read while the producer is still reporting errors."""
    installation.create_topics(partitions=1)
    daemon = proxied("receiver").start().wait_until_ready()
    daemon.accept()
    rule = proxies.refuse_produce(OUT_OF_ORDER_SEQUENCE)  # fatal to a producer
    deliveries = [Delivery() for _ in range(n)]
    with http_client.connect(daemon.address) as connection:
        connection.sendall(b"".join(map(whole, deliveries)))
        answers = b""
        while answers.count(b"HTTP/1.1 ") < n:
            answers += connection.recv(65536)
    assert answers.startswith(b"HTTP/1.1 503 ") and rule.count == 1
    waiting.until(lambda: daemon.post().status == 200, 30, "another producer")


@pytest.mark.slow
def test_unanswered_commit_does_not_delay_shutdown_forever(installation, proxies, proxied, tmp_path):
    """The daemon asks the service manager for more time while the commit may succeed; then the manager may kill it."""
    installation.create_topics()
    manager = Manager(tmp_path / "notify")
    daemon = manager.watch(proxied(**{"socket.timeout.ms": 300000, "transaction.timeout.ms": 300000}), watchdog_seconds=20)
    daemon.start().wait_until_ready()
    rule = proxies.lose_response("EndTxn", connection=KEEP, times=1000)
    daemon.accept()
    assert rule.wait(RULE_SECONDS)
    daemon.process.send_signal(signal.SIGTERM)
    stopping = manager.wait_for("STOPPING").time
    daemon.wait_for_log("still stopping doing=\"committing the open transaction, and writing files of the state\" seconds=4", 70)
    asked = [message.time - stopping for message in manager.having("EXTEND_TIMEOUT_USEC") if message.time > stopping]
    assert any(message.time > stopping + COMMIT_SECONDS for message in manager.having("WATCHDOG"))  # still alive
    assert len(asked) >= 4 and max(asked) < COMMIT_SECONDS + 5, asked
    assert daemon.is_running()
    daemon.abandon()
    manager.close()


# Consecutive transactions


def gaps_ms(ends, begins):
    """The times from each commit's response to the next transaction's request for its partitions."""
    begun = [request.seconds for request in begins.requests]
    return [(min(after) - ended) * 1000 for ended in list(ends.answered) if (after := [at for at in begun if at >= ended])]


def append_until(installation, condition, what):
    """Append deliveries one by one, so that many transactions follow each other immediately."""
    def append_some():
        for _ in range(20):
            installation.kafka.append([Delivery()])
        return condition()
    waiting.until(append_some, RULE_SECONDS, what, step=0)


def test_transaction_waits_for_kafka_to_finish_the_previous_one(installation, proxies, proxied):
    """Otherwise Kafka would make librdkafka retry, which takes 20 ms each time."""
    start_router(installation, proxied)
    ends = proxies.watch("EndTxn", match=is_commit, times=None)
    begins = proxies.watch("AddPartitionsToTxn", times=None)
    append_until(installation, lambda: len(ends.answered) > 20, "transactions")
    installation.kafka.wait_until_routed()
    gaps = gaps_ms(ends, begins)
    assert min(gaps) >= 3, gaps


def test_wait_between_transactions_grows_with_concurrent_transactions_errors(installation, proxies, proxied):
    """As with slow brokers, which refuse the first request of each transaction."""
    start_router(installation, proxied)
    ends = proxies.watch("EndTxn", match=is_commit, times=None)
    refused = set()

    def is_first_after_a_commit(request):
        n = len(ends.answered)
        return n not in refused and not refused.add(n)
    refusals = proxies.refuse("AddPartitionsToTxn", CONCURRENT_TRANSACTIONS, match=is_first_after_a_commit, times=None)
    append_until(installation, lambda: len(refused) > 20 and min(gaps_ms(ends, refusals)[-10:]) >= 15,
                 lambda: f"longer gaps than these, in ms: {gaps_ms(ends, refusals)}")
    installation.kafka.wait_until_routed()


def test_record_refused_by_the_leader_is_not_answered_200(installation, proxied, proxies):
    """librdkafka 2.0.2 counts a record that the broker has refused as stored when the broker accepts a later one of the same
    producer, as a new leader does that does not know the producer yet."""
    installation.create_topics(partitions=1)
    daemon = proxied("receiver").start().wait_until_ready()
    rule = proxies.refuse_first(NOT_LEADER_OR_FOLLOWER, match=lambda request: request.mentions(installation.kafka.deliveries))
    first, second = Delivery(), Delivery()
    answers = {}
    thread = threading.Thread(target=lambda: answers.update({first.delivery_id: daemon.post(first).status}))
    thread.start()
    assert rule.wait(RULE_SECONDS)
    answers[second.delivery_id] = daemon.post(second).status
    thread.join()
    assert rule.count == 2
    stored = {record.delivery_id for record in installation.kafka.read(installation.kafka.deliveries)}
    assert {each for each, status in answers.items() if status == 200} <= stored, (answers, stored)


def test_transaction_is_not_committed_without_an_event_the_leader_refused(installation, proxied, proxies):
    """The same for a router: its transaction must not be committed without the event."""
    installation.create_topics(partitions=1)
    deliveries = [Delivery(event_body(text="x" * 400000)) for _ in range(8)]  # more than fits into a request
    installation.kafka.append(deliveries)
    rule = proxies.refuse_first(NOT_LEADER_OR_FOLLOWER, match=lambda request: request.mentions("invoice.accepted"))
    proxied("router").start()
    assert rule.wait(RULE_SECONDS, count=2)
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, {each.delivery_id: each for each in deliveries})


@pytest.mark.slow
def test_router_starts_with_slow_brokers(installation, proxied, proxies):
    """A producer needs several responses to become ready; every attempt continues where the last one stopped."""
    installation.create_topics()
    deliveries = [Delivery() for _ in range(10)]
    installation.kafka.append(deliveries)
    for request in FIRST_REQUESTS:
        proxies.delay(request, 0.8, times=None)
    proxied("router").start()
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, {each.delivery_id: each for each in deliveries})
