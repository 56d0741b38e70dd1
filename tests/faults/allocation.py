"""Make the nth allocation fail, for each n, while the daemon handles a request."""

import contextlib
import dataclasses
import http.client
import itertools
import signal
import time

import http_client
import preload
import waiting
from report import Report
from signing import Delivery, event_body, unique

ANSWER_SECONDS = 15
ROUTED_SECONDS = 20
ENDING_SECONDS = 2
WHILE_FAILING_SECONDS = 0.5
REFUSALS = (500, 503, None)  # None: the connection was closed
NONE_IN_TIME = "none in time"
# The dedup table allocates memory for each new sixteenth of the window, so each passage begins a new one.
DEDUP_WINDOW_SECONDS = 10
SLICE_SECONDS = DEDUP_WINDOW_SECONDS / 16
OUT_OF_MEMORY = "out of memory"


@dataclasses.dataclass(frozen=True)
class Passage:
    """A kind of request, and its answer if no allocation fails."""
    name: str
    answer: int
    body: object  # makes a new delivery
    send: object  # sends a delivery to a daemon; returns the reply


def _post(daemon, delivery):
    return daemon.post(delivery, timeout=ANSWER_SECONDS)


def _forge(daemon, delivery):
    headers = delivery.headers()
    return http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, b"{}",
                               timeout=ANSWER_SECONDS)


def _post_ambiguously(daemon, delivery):
    length = ("content-length", str(len(delivery.body)))
    head = [("host", "gatepost.example"), length, length, *delivery.headers().items()]
    lines = "".join(f"{name}: {value}\r\n" for name, value in head)
    return http_client.raw(daemon.address, f"POST /webhooks/invoicing HTTP/1.1\r\n{lines}\r\n".encode() +
                           delivery.body, timeout=ANSWER_SECONDS)


def _growing_body():
    """Yield bodies of growing length, each with an unpaired surrogate escape, which must be repaired."""
    return event_body(note="\ud800" + "x" * next(_lengths))


_lengths = itertools.count(100, 100)
GENUINE = Passage("genuine", 200, _growing_body, _post)
TO_QUARANTINE = Passage("to quarantine", 200, lambda: b"no JSON " + unique().encode(), _post)
FORGED = Passage("forged", 401, event_body, _forge)
AMBIGUOUS = Passage("ambiguous", 400, event_body, _post_ambiguously)
PASSAGES = (GENUINE, TO_QUARANTINE, FORGED, AMBIGUOUS)


class AllocationFailures:
    """A daemon whose allocations fail on request. A context manager; finish() checks the topics and returns the report."""

    def __init__(self, installation, log=print):
        self.installation = installation
        self.report = Report()
        self._log = log
        self._fail = preload.FailMalloc(installation.directory)
        self._sent = {}
        self._accepted = {}

    def start(self):
        config = self.installation.config()
        config["source invoicing"]["tolerance"] = f"{DEDUP_WINDOW_SECONDS // 2}s"
        config["router"]["dedup_window"] = f"{DEDUP_WINDOW_SECONDS}s"
        self.installation.create_topics(config, partitions=1)
        self.daemon = self.installation.daemon(config)
        self.daemon.environment = self._fail.environment
        self.daemon.start().wait_until_ready()
        self._pass_undisturbed("at first")
        return self

    def run(self, passage, object=preload.OWN, numbers=None, n=1):
        """For each number, send a request while n allocations of an object fail, beginning with that number. By default, try
        all numbers from 1 until a request makes fewer allocations. Returns the highest number of allocations seen."""
        most = 0
        for number in numbers or _from_one():
            failed, counted = self._disturb(passage, object, number, n)
            most = max(most, counted)
            if numbers is None and not failed:
                break
        self.report.notes[f"{passage.name}: {most} allocations of {object or 'all'}"] += 1
        return most

    def finish(self):
        """Wait until everything is routed, and return the report."""
        self.installation.kafka.wait_until_routed()
        self.report.compare(self.installation.kafka, self._accepted, self._sent)
        return self.report

    def _disturb(self, passage, object, number, n):
        """Return whether an allocation failed, and how many were made."""
        if passage.answer == 200:
            time.sleep(SLICE_SECONDS - time.time() % SLICE_SECONDS)
        self._fail.arm(object, number, n)
        answer = self._send(passage)
        routed = self._is_routed_within(ROUTED_SECONDS if n == 1 else WHILE_FAILING_SECONDS)
        counted = self._fail.disarm()
        failed = self._fail.failed > 0
        what = f"{passage.name}, allocation {number} ({self._fail.place})"
        self._judge_answer(passage, object, answer, failed, what)
        if not self._judge_end(passage, object, what) and n == 1 and not routed:
            self.report.unexpected.append(f"{what}: not routed in {ROUTED_SECONDS} s")
        if not self._pass_undisturbed(what, may_end=failed):
            self._judge_end(passage, object, what)  # another thread of the daemon may have run out of memory at the end
            self._pass_undisturbed(what)
        self.report.passes += 1
        self._log(f"{what}: answer {answer}")
        return failed, counted

    def _send(self, passage):
        """Return the status, None if the connection was closed, or the name of another error."""
        delivery = Delivery(body=passage.body())
        if passage.answer == 200:
            self._sent[delivery.delivery_id] = delivery
        try:
            answer = _status(passage.send(self.daemon, delivery))
        except TimeoutError:
            return NONE_IN_TIME
        except (OSError, http.client.HTTPException):
            return None
        if answer == 200:
            self._accepted[delivery.delivery_id] = delivery
        return answer

    def _judge_answer(self, passage, object, answer, failed, what):
        """Note an answer that is not the expected one. After a failure within a library, a different answer or a stalled
        connection is allowed."""
        if answer == passage.answer or failed and answer in REFUSALS:
            return
        if failed and object != preload.OWN and answer in (400, NONE_IN_TIME):
            self.report.notes[f"{passage.name}, in {self._fail.place.partition('+')[0]}: answer {answer}"] += 1
        else:
            self.report.unexpected.append(f"{what}: answer {answer}")

    def _is_routed_within(self, seconds):
        try:
            waiting.until(lambda: not self.daemon.is_running() or self.installation.kafka.is_routed(), seconds, "")
        except AssertionError:
            return False
        return self.daemon.is_running()

    def _judge_end(self, passage, object, what):
        """Restart the daemon if it has ended, which is allowed only with an orderly exit or within a library. Returns
        whether it was restarted."""
        if self.daemon.is_running():
            return False
        status = self.daemon.take_exit_status()
        orderly = status > 0 and OUT_OF_MEMORY in self.daemon.log
        if not orderly and object == preload.OWN:
            self.report.unexpected.append(f"{what}: exit status {_name(status)}\n{self.daemon.log[-1500:]}")
        self.report.notes[f"{passage.name}, in {self._fail.place.partition('+')[0]}: exit status {_name(status)}"] += 1
        self._log(f"{what}: exit status {_name(status)}")
        self.daemon.restart()
        return True

    def _ends_within(self, seconds):
        with contextlib.suppress(AssertionError):
            waiting.until(lambda: not self.daemon.is_running(), seconds, "")
        return not self.daemon.is_running()

    def _pass_undisturbed(self, after, may_end=False):
        """Check that the next delivery is accepted and routed. Returns False if the daemon has ended instead."""
        delivery = Delivery()
        self._sent[delivery.delivery_id] = delivery
        reply = waiting.until(lambda: self._try(delivery), ROUTED_SECONDS, lambda: f"an answer after {after}")
        if reply != 200 and may_end and self._ends_within(ENDING_SECONDS):
            return False
        if reply != 200:
            self.report.unexpected.append(f"the delivery after {after}: answer {reply}")
            return True
        self._accepted[delivery.delivery_id] = delivery
        if not self._is_routed_within(ROUTED_SECONDS):
            if may_end and not self.daemon.is_running():
                return False
            self.report.unexpected.append(f"the delivery after {after}: not routed in {ROUTED_SECONDS} s")
        return True

    def _try(self, delivery):
        try:
            return _status(_post(self.daemon, delivery))
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__


def _status(reply):
    """Return the status of a reply. Its body must be JSON, or empty if there was no memory for it."""
    if reply.body and reply.headers["content-type"] == "application/json":
        try:
            reply.json
        except ValueError:
            return f"{reply.status} with the body {reply.body[:100]}"
    return reply.status


def _from_one():
    number = 0
    while True:
        number += 1
        yield number


def _name(status):
    return str(status) if status >= 0 else signal.Signals(-status).name
