"""Many concurrent clients, with persistent connections or one for each delivery."""

import collections
import contextlib
import http.client
import itertools
import random
import threading
import time

from http_client import Client
from signing import Delivery

ATTEMPT_SECONDS = 15


class Load:
    """Threads that send deliveries to random addresses, as fast as they are answered or at a rate per second, until
    stopped or out of deliveries. A delivery is retried until it is answered 200, unless `once`."""

    def __init__(self, addresses, deliveries=None, threads=8, rate=None, once=False, tls=None, keep=True):
        self.addresses = addresses  # a function, because daemons may change
        self.sent = {}  # delivery by id
        self.accepted = {}  # likewise, of all answered 200
        self.answers = collections.Counter()  # by status, or the exception's name
        self.slowest = 0.0  # seconds
        self._deliveries = iter(deliveries) if deliveries is not None else (Delivery() for _ in itertools.count())
        self._rate = rate
        self._once = once
        self._tls = tls
        self._keep = keep
        self._n_taken = 0
        self._under_way = collections.Counter()  # by address
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]

    def start(self):
        self._started = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def is_running(self):
        return any(thread.is_alive() for thread in self._threads)

    def stop(self):
        """Stop sending, and wait for the open requests."""
        self._stopping.set()
        return self.wait(2 * ATTEMPT_SECONDS)

    def wait(self, seconds):
        """Wait until everything was sent and answered."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        assert not self.is_running(), f"not done after {seconds} s: {len(self.accepted)} accepted, {self.answers}"
        return self

    def _next(self):
        """The next delivery and when it is due."""
        with self._lock:
            delivery = None if self._stopping.is_set() else next(self._deliveries, None)
            due = self._started + self._n_taken / self._rate if self._rate else 0.0
            self._n_taken += 1
            return delivery, due

    def _run(self):
        clients = {}
        while True:
            delivery, due = self._next()
            if delivery is None:
                break
            self._stopping.wait(max(0.0, due - time.monotonic()))
            while not self._attempt(clients, delivery) and not self._once and not self._stopping.is_set():
                self._stopping.wait(0.1)
        for client in clients.values():
            client.close()

    @contextlib.contextmanager
    def _sending(self):
        """Choose an address, and count it while it is in use."""
        with self._lock:
            address = random.choice(self.addresses())
            self._under_way[address] += 1
        try:
            yield address
        finally:
            with self._lock:
                self._under_way[address] -= 1

    def is_sending_to(self, address):
        """Whether a request to the address is in progress. If it is no longer in addresses(), False is final."""
        with self._lock:
            return self._under_way[address] > 0

    def _attempt(self, clients, delivery):
        """Send once. Returns whether the answer was 200."""
        begun = time.monotonic()
        self.sent[delivery.delivery_id] = delivery
        try:
            with self._sending() as address:
                client = clients.get(address) or clients.setdefault(address, Client(address, ATTEMPT_SECONDS, self._tls))
                answer = client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status
                if not self._keep:
                    client.close()
        except (OSError, http.client.HTTPException, IndexError) as error:
            answer = type(error).__name__
            for client in clients.values():
                client.close()
        with self._lock:
            self.answers[answer] += 1
            self.slowest = max(self.slowest, time.monotonic() - begun)
            if answer == 200:
                self.accepted[delivery.delivery_id] = delivery
        return answer == 200
