"""Compare the deliveries sent with the events that a read_committed consumer finds."""

import collections
import dataclasses
import json

from signing import event_topic


@dataclasses.dataclass
class Tally:
    lost: list
    duplicated: list
    unexpected: list

    def __str__(self):
        parts = [f"{len(places)} {name} {places[:5]}" for name, places in vars(self).items()]
        return ", ".join(parts)


def tally(kafka, must, may=()):
    """Compare all records that routers wrote with the deliveries (by id) that must be in the topic of their
    kind once, or may be; in quarantine if the body is not JSON. Unexpected: in another topic, with another
    body, or never sent."""
    known = dict(may) | dict(must)
    seen = collections.Counter()
    unexpected = []
    for record in kafka.read():
        delivery = known.get(record.delivery_id)
        if delivery and record.value == delivery.body and record.topic == _topic(kafka, delivery):
            seen[record.delivery_id] += 1
        else:
            unexpected.append((record.place, record.delivery_id, record.header("gatepost-reason")))
    return Tally(lost=[each for each in must if each not in seen],
                 duplicated=[(each, n) for each, n in seen.items() if n > 1], unexpected=unexpected)


def _topic(kafka, delivery):
    try:
        kind = json.loads(delivery.body)["event"]
    except ValueError:
        return kafka.quarantine
    return f"{kafka.prefix}.{event_topic(kind)}"


def assert_exactly_once(kafka, must, may=()):
    """Call after kafka.wait_until_routed()."""
    result = tally(kafka, must, may)
    assert not result.lost and not result.duplicated and not result.unexpected, str(result)
