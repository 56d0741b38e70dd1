"""Check that a program in the router's place does the router's job before it is measured: from the same log it must publish
the same events. One that publishes repeats, or writes fewer headers, has less work to do."""

import collections

import waiting
from filling import fill
from signing import KINDS, Delivery, event_body

from genuine import NotGenuine

RECORDS = 3000
REPEAT_EVERY = 20
BODY = 1024
LARGE = 900_000
ROUTED_SECONDS = 60


def _published(record, is_quarantined):
    """The record without its offset, and without the headers if they are those of quarantine: only Gatepost says there why."""
    return record.topic, record.partition, record.key, record.value, () if is_quarantined else tuple(sorted(record.headers))


class PeerCheck:
    """One check of a subject that is not running yet, on empty topics, beside a Gatepost with the role router."""

    def __init__(self, subject, gatepost):
        self.subject, self.gatepost = subject, gatepost
        self.kafka = gatepost.installation.kafka
        self._topics = self.kafka.published_topics()  # a peer may have others for itself
        self._known = set()  # places of the records that were read before

    def run(self):
        """Raises NotGenuine."""
        fill(self.kafka, RECORDS, BODY, KINDS, REPEAT_EVERY)
        special = b'{"event":', event_body("unheard.of"), event_body(padding="x" * LARGE)
        self.kafka.append([Delivery(body=body) for body in special])
        with self.gatepost:
            self.kafka.wait_until_routed()
            expected = self._new_records()
        with self.subject:
            n = sum(self.kafka.ends(self.kafka.deliveries).values())
            waiting.until(lambda: self.subject.n_routed() >= n, ROUTED_SECONDS,
                          lambda: f"all records to be routed, of which {self.subject.n_routed()} are")
            waiting.until(lambda: self.kafka.is_settled(*self._topics), ROUTED_SECONDS, "the end of its transactions")
            self._compare(expected, self._new_records())

    def _new_records(self):
        """Count the records that were published since the last call."""
        records = [record for record in self.kafka.read(*self._topics) if record.place not in self._known]
        self._known |= {record.place for record in records}
        return collections.Counter(_published(record, record.topic == self.kafka.quarantine) for record in records)

    def _compare(self, expected, found):
        if sum(found.values()) != sum(expected.values()):
            raise NotGenuine(f"{sum(found.values())} records were published, not {sum(expected.values())}")
        wrong, missing = found - expected, expected - found
        if wrong:
            raise NotGenuine(f"{sum(wrong.values())} records differ, such as {next(iter(wrong))}; the router publishes "
                             f"{next(iter(missing))}")
