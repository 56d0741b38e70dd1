"""Publishes records idempotently, without blocking the event loop."""

import asyncio

from confluent_kafka import KafkaException, Producer

POLL_S = 0.001


class Publisher:
    """The loop polls for delivery reports while records are under way. A thread that waits for them would take the
    interpreter lock from the loop each time it wakes, and have to wake the loop."""

    def __init__(self, bootstrap: str, topic: str):
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._polls = False
        self._producer = Producer({
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2",  # the one that Java's clients use
            "linger.ms": 0,
            "compression.type": "none",
            "message.max.bytes": 2 << 20,
            "queue.buffering.max.messages": 100000,
            "delivery.timeout.ms": 8000,
            "log_level": 3,
        })
        self._producer.list_topics(topic, timeout=30)

    def publish(self, key: bytes, value: bytes, headers: list) -> asyncio.Future:
        """Return a future that is done when all in-sync replicas have the record; its result is an error, or None."""
        done = self._loop.create_future()

        def report(error, _):
            if not done.done():
                done.set_result(error)

        try:
            self._producer.produce(self._topic, value, key, headers=headers, on_delivery=report)
        except (BufferError, KafkaException) as error:
            done.set_result(error)
        if not self._polls:
            self._polls = True
            self._loop.call_later(POLL_S, self._poll)
        return done

    def _poll(self) -> None:
        self._producer.poll(0)
        self._polls = len(self._producer) > 0
        if self._polls:
            self._loop.call_later(POLL_S, self._poll)
