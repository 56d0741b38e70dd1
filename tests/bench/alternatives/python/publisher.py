"""Publishes records idempotently, from an event loop that must not wait."""

import asyncio
import threading

from confluent_kafka import KafkaException, Producer


class Publisher:
    """Delivery reports come to a thread that polls for them; it wakes the loop once for all that have come together."""

    def __init__(self, bootstrap: str, topic: str):
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._reported: list = []
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
        threading.Thread(target=self._poll, name="delivery reports", daemon=True).start()

    def publish(self, key: bytes, value: bytes, headers: list) -> asyncio.Future:
        """The future is done when all in-sync replicas have the record; its result is an error, or None."""
        done = self._loop.create_future()
        try:
            self._producer.produce(self._topic, value, key, headers=headers,
                                   on_delivery=lambda error, _: self._reported.append((done, error)))
        except (BufferError, KafkaException) as error:
            done.set_result(error)
        return done

    def _poll(self) -> None:
        while True:
            self._producer.poll(1)
            if self._reported:
                reported, self._reported = self._reported, []
                self._loop.call_soon_threadsafe(self._resolve, reported)

    @staticmethod
    def _resolve(reported: list) -> None:
        for done, error in reported:
            if not done.done():
                done.set_result(error)
