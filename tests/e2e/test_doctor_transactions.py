"""gatepost doctor: transactions in the topic of deliveries, aborted or left open."""

import pytest
from confluent_kafka import Producer

import waiting
from checkup import EX_UNAVAILABLE, examine, expect, file_of
from signing import Delivery


def test_aborted_transaction_is_no_delivery_that_waits(installation, stopped):
    """Its records and its end have offsets, up to which a router need not commit."""
    daemon = stopped.start().wait_until_ready()
    producer = Producer({"bootstrap.servers": installation.bootstrap, "transactional.id": f"{installation.prefix}-aborted"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(installation.kafka.deliveries, b"{}", partition=partition)
    producer.flush(30)
    producer.abort_transaction(30)
    checkup = examine(installation, file_of(daemon), "--no-send")
    assert checkup.status == 0 and any(line.startswith("✓ partitions ") for line in checkup.lines), checkup.lines


@pytest.mark.parametrize("step, arguments", [("partitions", ["--no-send"]), ("router", [])])
def test_transaction_that_stays_open(installation, stopped, step, arguments):
    """It hides the deliveries of its partitions from the router, here of all, so that also the test delivery is."""
    daemon, deliveries = stopped.start().wait_until_ready(), installation.kafka.deliveries
    producer = Producer({"bootstrap.servers": installation.bootstrap, "transactional.id": f"{installation.prefix}-left-open",
                         "transaction.timeout.ms": 300000})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(deliveries, b"{}", partition=partition)
    producer.flush(30)
    daemon.accept(Delivery())
    checkup = examine(installation, file_of(daemon), *arguments)
    expect(checkup, EX_UNAVAILABLE, f"{step} {deliveries}: a transaction stays open in 3 of 3 partitions", f"in 0 all from offset 0 on",
           f"remedy: kafka-transactions.sh --bootstrap-server BROKER describe-producers --topic {deliveries} --partition 0 shows its producer",
           f"abort --topic {deliveries} --partition 0 --start-offset 0")
    producer.abort_transaction(30)
    # A router that skips the aborted records may not be ready for a moment.
    waiting.until(lambda: installation.kafka.read(), 90, "the delivery to be published")
    daemon.wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any(line.startswith("✓ partitions ") for line in checkup.lines), checkup.lines
