"""Records of `deliveries` as a receiver appends them, made much faster than by a receiver."""

import uuid

import confluent_kafka

REPEATED_AFTER = 1009  # records; a prime, so that the repeated delivery is not itself a repeat


def _identity(number):
    """A delivery-id that looks random and is always the same for a number."""
    return str(uuid.UUID(int=number * 0x9e3779b97f4a7c15f39cc0605cedc835 % 2 ** 128, version=4))


def fill(kafka, records, size, kinds=("invoice.accepted",), repeat_every=0):
    """Append records. The bodies look like JSON and compress little; one record of repeat_every repeats an earlier delivery."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2",
                                         "linger.ms": 50, "batch.size": 1 << 20, "log_level": 3})
    words = "".join(_identity(number) for number in range(1 + size // 36))
    headers = [("gatepost-source", "invoicing"), ("gatepost-webhook-id", "6f0d2c1e-0000-4000-8000-000000000001"),
               ("gatepost-timestamp", "1795230000"), ("gatepost-signature", "sha256=" + 16 * "0c7f"),
               ("gatepost-received", "2026-11-21T03:00:00.000Z"), ("gatepost-instance", "bench")]
    for each in range(records):
        is_repeat = repeat_every and each % repeat_every == repeat_every - 1 and each >= REPEATED_AFTER
        number = each - REPEATED_AFTER if is_repeat else each
        body = f'{{"event":"{kinds[number % len(kinds)]}","invoiceId":"INV-{number}","data":"'
        body += words[:size - len(body) - 2] + '"}'
        while True:
            try:
                producer.produce(kafka.deliveries, body, _identity(number), headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        if each % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
