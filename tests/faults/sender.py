"""Simulate the service in a separate process: send deliveries at a steady rate, each up to ten times until it is answered
2xx. Some are repeated unnecessarily, some are forged; old ones are repeated on demand. An attacker replays captured
deliveries under another delivery-id, and some delivery-ids are sent with a second body.

Deliveries are functions of their numbers (deliveries.py); a Ledger records their results."""

import collections
import dataclasses
import heapq
import itertools
import multiprocessing
import random
import ssl
import threading
import time

import deliveries as texts
import http_client
from signing import now

ATTEMPTS = 10
ATTEMPT_SECONDS = 12
RETRY_SECONDS = (0.2, 5.0)  # first and longest retry interval
REPEATED, REPEAT_WITHIN_SECONDS = 0.10, 3.0
SIGNED_AGAIN = 0.5  # share of the attempts after the first
FORGED = 0.05
RECONNECTS = 0.02  # share of the attempts
LATER_SECONDS = 0.5  # time by which a delivery of an inactive source is postponed
OLD_SECONDS = 3.0  # a delivery counts as old when it was accepted longer ago
IDLE_SECONDS = 0.002
UNSENT, SENT, ACCEPTED = range(3)
REFUSALS = (400, 401, 403, 405, 413, 429)  # wrong for a genuine delivery, unless its timestamp or secret has expired
COUNTERS = ("attempts", "answered_200", "answered_503", "answered_other", "broken_off", "repeats", "forged",
            "forged_accepted", "given_up", "refused", "old_repeats", "old_accepted", "followed", "follow_accepted")


class Ledger:
    """The results of all deliveries, by number, in memory that two processes share. `follow_` members are of the delivery that
    follows one with trouble: its replay, or its second body."""

    def __init__(self, context, most):
        self.most = most
        self.state = context.RawArray("B", most)
        self.first_sent = context.RawArray("d", most)  # time.time() before the first attempt
        self.accepted_begun = context.RawArray("d", most)  # likewise for the last attempt that was answered 200
        self.follow_state = context.RawArray("B", most)
        self.follow_begun = context.RawArray("d", most)
        self.follow_number = context.RawArray("q", most)  # whose id a stolen-id uses

    def note_sent(self, task, at):
        states = self.follow_state if task.follows else self.state
        states[task.number] = max(states[task.number], SENT)
        number = self.follow_number[task.number] if task.follows and task.victim else task.number
        if not self.first_sent[number]:
            self.first_sent[number] = at

    def note_accepted(self, task):
        states, begun = (self.follow_state, self.follow_begun) if task.follows else (self.state, self.accepted_begun)
        states[task.number] = ACCEPTED
        begun[task.number] = max(begun[task.number], task.begun)


@dataclasses.dataclass(order=True)
class Task:
    """A scheduled attempt."""
    due: float
    order: int
    number: int = dataclasses.field(compare=False)
    attempt: int = dataclasses.field(compare=False)  # 0: an unnecessary repeat
    timestamp: int = dataclasses.field(compare=False)
    address: str = dataclasses.field(compare=False, default=None)  # None: any
    follows: str = dataclasses.field(compare=False, default=None)  # CONFLICT, REPLAY, STOLEN_ID; None: the delivery itself
    victim: int = dataclasses.field(compare=False, default=None)  # whose id a stolen-id uses; sent after it
    secret: int = dataclasses.field(compare=False, default=None)  # None: the newest
    is_old: bool = dataclasses.field(compare=False, default=False)
    begun: float = dataclasses.field(compare=False, default=0.0)


class _Work:
    """State shared by the threads of the sending process."""

    def __init__(self, shared, addresses, rate, seed, everywhere):
        self.shared = shared
        self.deliveries = shared.deliveries
        self.ledger = shared.ledger
        self.stopping = shared.stopping
        self.addresses = addresses
        self.rate = rate
        self.rng = random.Random(seed)
        self.everywhere = everywhere
        self.lock = threading.Lock()
        self.tasks = []
        self.busy = 0
        self.order = itertools.count()
        self.numbers = iter(range(self.ledger.most))
        self.started = time.monotonic()
        self.n_new = 0
        self.n_recalled = 0
        self.young = collections.deque()  # (time, number) of recently accepted deliveries
        self.old = []  # numbers of deliveries accepted earlier

    def count(self, name):
        self.shared.counters[COUNTERS.index(name)] += 1

    def push(self, due, number, attempt, timestamp, **more):
        heapq.heappush(self.tasks, Task(due, next(self.order), number, attempt, timestamp, **more))

    def _add(self, at, number):
        for address in self.addresses if self.everywhere else [None]:
            self.push(at, number, 1, now(), address=address)

    def _add_new(self, at):
        number = None if self.stopping.is_set() else next(self.numbers, None)
        if number is not None:
            self.n_new += 1
            self._add(at, number)

    def _recall(self, at):
        """Repeat the requested number of old deliveries, with new signatures."""
        while self.young and self.young[0][0] < at - OLD_SECONDS:
            self.old.append(self.young.popleft()[1])
        while self.n_recalled < self.shared.recalled.value and self.old:
            self.n_recalled += 1
            self.push(at, self.rng.choice(self.old), 0, now(), is_old=True)

    def take(self):
        """Return a task that is due, or None. Raises StopIteration when all is done."""
        at = time.monotonic()
        with self.lock:
            if at >= self.started + self.n_new / self.rate:
                self._add_new(at)
            self._recall(at)
            if self.tasks and self.tasks[0].due <= at:
                self.busy += 1
                return heapq.heappop(self.tasks)
            done = self.stopping.is_set() or self.n_new == self.ledger.most
            if done and not self.tasks and not self.busy:
                raise StopIteration
            return None

    def put_off(self, task):
        with self.lock:
            self.busy -= 1
            if not self.stopping.is_set():
                task.due += LATER_SECONDS
                heapq.heappush(self.tasks, task)

    def settle(self, task, status, address, secret):
        """Record an answer, and schedule further attempts."""
        with self.lock:
            self.busy -= 1
            self.count("attempts")
            self.count({200: "answered_200", 503: "answered_503", None: "broken_off"}.get(status, "answered_other"))
            if status in REFUSALS and task.secret is None:
                self.count("refused")
            if status == 200:
                self._note_accepted(task, address, secret)
            if task.attempt == 0:
                return
            if status != 200 and task.attempt < ATTEMPTS:
                self._retry(task)
                return
            if status != 200:
                self.count("given_up")
            if task.victim is not None:
                self._add(time.monotonic(), task.victim)

    def _retry(self, task):
        pause = min(RETRY_SECONDS[1], RETRY_SECONDS[0] * 1.7 ** task.attempt)
        timestamp = task.timestamp if task.secret is not None else self._timestamp(task)
        self.push(time.monotonic() + pause * self.rng.uniform(0.7, 1.3), task.number, task.attempt + 1, timestamp,
                  address=task.address, follows=task.follows, victim=task.victim, secret=task.secret)

    def _note_accepted(self, task, address, secret):
        is_first = not task.follows and self.ledger.state[task.number] != ACCEPTED
        self.ledger.note_accepted(task)
        if task.is_old:
            self.count("old_accepted")
        if task.follows:
            self.count("follow_accepted")
            return
        at = time.monotonic()
        if is_first:
            self.young.append((at, task.number))
            self._follow(task, address, secret, at)
        if task.attempt and self.rng.random() < REPEATED:
            self.count("repeats")
            self.push(at + self.rng.random() * REPEAT_WITHIN_SECONDS, task.number, 0, self._timestamp(task))

    def _follow(self, task, address, secret, at):
        """Schedule the delivery that follows one with trouble. A replay has the signature that was accepted, and is sent to the
        receiver that accepted it."""
        makes = self.deliveries.makes(task.number)
        if makes == texts.CONFLICT:
            self.count("followed")
            self.push(at + self.rng.random() * REPEAT_WITHIN_SECONDS, task.number, 1, now(), follows=makes)
        elif makes in (texts.REPLAY, texts.STOLEN_ID):
            victim = next(self.numbers, None) if makes == texts.STOLEN_ID and not self.stopping.is_set() else None
            if makes == texts.STOLEN_ID and victim is None:
                return
            self.count("followed")
            if victim is not None:
                self.ledger.follow_number[task.number] = victim
            self.push(at, task.number, 1, task.timestamp, follows=makes, victim=victim, secret=secret, address=address)

    def _timestamp(self, task):
        return now() if self.rng.random() < SIGNED_AGAIN else task.timestamp


def _post(clients, address, tls, source, delivery):
    """Return the status of the answer, or None if there was none."""
    try:
        client = clients.get(address) or clients.setdefault(address, http_client.Client(address, ATTEMPT_SECONDS, tls))
        return client.request("POST", f"/webhooks/{source}", delivery.headers(f"x-{source}"), delivery.body).status
    except (OSError, http_client.http.client.HTTPException):
        clients.pop(address).close() if address in clients else None
        return None


def _delivery(deliveries, task, secret):
    delivery_id = None
    if task.follows == texts.REPLAY:
        delivery_id = deliveries.replay_id(task.number)
    elif task.follows == texts.STOLEN_ID:
        delivery_id = deliveries.id(task.victim)
    variant = texts.OTHER if task.follows == texts.CONFLICT else texts.MAIN
    return deliveries.delivery(task.number, task.timestamp, variant, delivery_id, secret)


def _send(work):
    clients, rng = {}, random.Random(work.rng.random())
    tls = ssl.create_default_context(cafile=work.shared.ca) if work.shared.ca else None
    try:
        while True:
            task = work.take()
            if task is None:
                time.sleep(IDLE_SECONDS)
                continue
            source = work.deliveries.source(task.number)
            if source == texts.EXTRA_SOURCE and not work.shared.sends_extra.value:
                work.put_off(task)
                continue
            if rng.random() < FORGED:
                status = _post(clients, rng.choice(work.addresses), tls, source, work.deliveries.forged(task.number))
                with work.lock:
                    work.count("forged")
                    if status == 200:
                        work.count("forged_accepted")
            task.begun = time.time()
            with work.lock:
                work.ledger.note_sent(task, task.begun)
                if task.is_old:
                    work.count("old_repeats")
            secret = work.shared.secret.value if task.secret is None else task.secret
            address = task.address or rng.choice(work.addresses)
            if rng.random() < RECONNECTS and address in clients:
                clients.pop(address).close()
            status = _post(clients, address, tls, source, _delivery(work.deliveries, task, secret))
            work.settle(task, status, address, secret)
    except StopIteration:
        pass


def _run(*arguments, threads):
    work = _Work(*arguments)
    running = [threading.Thread(target=_send, args=(work,)) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


@dataclasses.dataclass
class _Shared:
    """State shared by the sending process and its parent."""
    deliveries: texts.Deliveries
    ledger: Ledger
    counters: object
    stopping: object
    recalled: object  # number of requested repeats of old deliveries
    secret: object  # the number of the secret to sign with
    sends_extra: object  # whether deliveries of the second source are sent
    ca: str  # of the receivers' certificates; None: plain HTTP


class Sender:
    """Sends until stopped, or until `most` deliveries have been sent; with `everywhere`, each to all addresses at once."""

    def __init__(self, deliveries, addresses, rate, seed, most, threads=16, everywhere=False, ca=None):
        context = multiprocessing.get_context("spawn")
        self.deliveries = deliveries
        self.ledger = Ledger(context, most)
        self._shared = _Shared(deliveries, self.ledger, context.RawArray("q", len(COUNTERS)), context.Event(),
                               context.RawValue("q", 0), context.RawValue("i", 0), context.RawValue("b", 1), ca)
        self._process = context.Process(target=_run, args=(self._shared, addresses, rate, seed, everywhere),
                                        kwargs={"threads": threads}, daemon=True)
        self._process.start()

    def counts(self):
        return dict(zip(COUNTERS, self._shared.counters))

    def is_sending(self):
        return self._process.is_alive()

    def n_sent(self):
        return self.ledger.most - bytes(self.ledger.state).count(UNSENT)

    def n_accepted(self):
        return bytes(self.ledger.state).count(ACCEPTED)

    def repeat_old(self, n):
        """Repeat n deliveries that were accepted some time ago."""
        self._shared.recalled.value += n

    def sign_with(self, number):
        """Change to another of SECRETS."""
        self._shared.secret.value = number

    def send_extra(self, is_on):
        """Set whether deliveries of the second source are sent or postponed."""
        self._shared.sends_extra.value = is_on

    def stop(self, seconds=180):
        """Start no more deliveries, and wait until all current ones are accepted or given up."""
        self._shared.stopping.set()
        self._process.join(seconds)
        assert not self._process.is_alive(), f"the sender did not finish within {seconds} s: {self.counts()}"

    def kill(self):
        self._process.kill()
        self._process.join()
