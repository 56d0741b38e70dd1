"""The service's side, in a process of its own: sends deliveries at a steady rate, each until it is answered 2xx, ten times
at the most, some once more without need, some forged.

Everything about a delivery follows from its number, so that nothing needs to be kept but how far it came."""

import dataclasses
import heapq
import itertools
import json
import multiprocessing
import random
import threading
import time

import http_client
from signing import KINDS, Delivery, event_topic, now

ATTEMPTS = 10
ATTEMPT_SECONDS = 12
RETRY_SECONDS = (0.2, 5.0)  # the first pause, and the longest
REPEATED, REPEAT_WITHIN_SECONDS = 0.10, 3.0
SIGNED_AGAIN = 0.5  # of the attempts after the first
FORGED = 0.05
IDLE_SECONDS = 0.002
UNSENT, SENT, ACCEPTED = range(3)
COUNTERS = ("attempts", "answered_200", "answered_503", "answered_other", "broken_off", "repeats", "forged",
            "forged_accepted", "given_up")


class Deliveries:
    """The deliveries of one run, by number."""

    def __init__(self, run, size=300):
        self.run = run
        self.size = size

    def id(self, number):
        return f"{self.run}-{number}"

    def number(self, delivery_id):
        """The number in an id, or None when it is not one of this run."""
        run, _, number = delivery_id.rpartition("-")
        return int(number) if run == self.run and number.isascii() and number.isdigit() else None

    def kind(self, number):
        return KINDS[number % len(KINDS)]

    def topic(self, number):
        return event_topic(self.kind(number))

    def body(self, number):
        return json.dumps({"event": self.kind(number), "invoiceId": f"INV-{number}", "text": "x" * self.size}).encode()

    def delivery(self, number, timestamp):
        return Delivery(self.body(number), self.id(number), timestamp=timestamp)

    def forged(self, number):
        return Delivery(self.body(number), f"forged-{number}", secret=b"not the secret of the source")


@dataclasses.dataclass(order=True)
class Task:
    due: float
    order: int
    number: int = dataclasses.field(compare=False)
    attempt: int = dataclasses.field(compare=False)  # 0: a repeat without need
    timestamp: int = dataclasses.field(compare=False)
    address: str = dataclasses.field(compare=False, default=None)  # None: any


class _Work:
    """What the threads of the sending process share."""

    def __init__(self, deliveries, addresses, rate, seed, everywhere, state, counters, stopping):
        self.deliveries = deliveries
        self.addresses = addresses
        self.rate = rate
        self.rng = random.Random(seed)
        self.everywhere = everywhere
        self.state = state
        self.counters = counters
        self.stopping = stopping
        self.lock = threading.Lock()
        self.tasks = []
        self.busy = 0
        self.order = itertools.count()
        self.numbers = iter(range(len(state)))
        self.started = time.monotonic()
        self.n_new = 0

    def count(self, name):
        self.counters[COUNTERS.index(name)] += 1

    def push(self, *task, **more):
        heapq.heappush(self.tasks, Task(task[0], next(self.order), *task[1:], **more))

    def _add_new(self, at):
        number = None if self.stopping.is_set() else next(self.numbers, None)
        if number is None:
            return
        self.n_new += 1
        targets = self.addresses if self.everywhere else [None]
        for address in targets:
            self.push(at, number, 1, now(), address=address)

    def take(self):
        """A task that is due; None when there is none yet; raises StopIteration when all is done."""
        at = time.monotonic()
        with self.lock:
            if at >= self.started + self.n_new / self.rate:
                self._add_new(at)
            if self.tasks and self.tasks[0].due <= at:
                self.busy += 1
                return heapq.heappop(self.tasks)
            done = self.stopping.is_set() or self.n_new == len(self.state)
            if done and not self.tasks and not self.busy:
                raise StopIteration
            return None

    def settle(self, task, status):
        """Note an answer, and plan what follows from it."""
        with self.lock:
            self.busy -= 1
            self.count("attempts")
            self.count({200: "answered_200", 503: "answered_503", None: "broken_off"}.get(status, "answered_other"))
            if status == 200:
                self.state[task.number] = ACCEPTED
            if task.attempt == 0:
                return
            at = time.monotonic()
            if status == 200:
                if self.rng.random() < REPEATED:
                    self.count("repeats")
                    self.push(at + self.rng.random() * REPEAT_WITHIN_SECONDS, task.number, 0, self._timestamp(task))
            elif task.attempt < ATTEMPTS:
                pause = min(RETRY_SECONDS[1], RETRY_SECONDS[0] * 1.7 ** task.attempt)
                self.push(at + pause * self.rng.uniform(0.7, 1.3), task.number, task.attempt + 1,
                          self._timestamp(task), address=task.address)
            else:
                self.count("given_up")

    def _timestamp(self, task):
        return now() if self.rng.random() < SIGNED_AGAIN else task.timestamp


def _post(clients, address, delivery):
    """The status of the answer; None when there was none."""
    try:
        client = clients.get(address) or clients.setdefault(address, http_client.Client(address, ATTEMPT_SECONDS))
        return client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status
    except (OSError, http_client.http.client.HTTPException):
        clients.pop(address).close() if address in clients else None
        return None


def _send(work):
    clients, rng = {}, random.Random(work.rng.random())
    try:
        while True:
            task = work.take()
            if task is None:
                time.sleep(IDLE_SECONDS)
                continue
            work.state[task.number] = max(work.state[task.number], SENT)
            if rng.random() < FORGED:
                status = _post(clients, rng.choice(work.addresses), work.deliveries.forged(task.number))
                with work.lock:
                    work.count("forged")
                    if status == 200:
                        work.count("forged_accepted")
            work.settle(task, _post(clients, task.address or rng.choice(work.addresses),
                                    work.deliveries.delivery(task.number, task.timestamp)))
    except StopIteration:
        pass


def _run(*arguments, threads):
    work = _Work(*arguments)
    running = [threading.Thread(target=_send, args=(work,)) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


class Sender:
    """Sends until it is stopped or `most` deliveries were sent; `everywhere`, each to all addresses at once."""

    def __init__(self, deliveries, addresses, rate, seed, most, threads=16, everywhere=False):
        context = multiprocessing.get_context("spawn")
        self.deliveries = deliveries
        self.state = context.RawArray("B", most)
        self._counters = context.RawArray("q", len(COUNTERS))
        self._stopping = context.Event()
        self._process = context.Process(
            target=_run, args=(deliveries, addresses, rate, seed, everywhere, self.state, self._counters, self._stopping),
            kwargs={"threads": threads}, daemon=True)
        self._process.start()

    def counts(self):
        return dict(zip(COUNTERS, self._counters))

    def is_sending(self):
        return self._process.is_alive()

    def n_sent(self):
        return len(self.state) - bytes(self.state).count(UNSENT)

    def n_accepted(self):
        return bytes(self.state).count(ACCEPTED)

    def stop(self, seconds=180):
        """Begin no more deliveries, and wait until those under way are accepted or given up."""
        self._stopping.set()
        self._process.join(seconds)
        assert not self._process.is_alive(), f"the sender did not end within {seconds} s: {self.counts()}"

    def kill(self):
        self._process.kill()
        self._process.join()
