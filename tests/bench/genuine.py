"""Check that a subject does its job before it is measured. A receiver that accepts forged deliveries, changes bodies or
publishes duplicates has less work to do, so its figures would not be comparable."""

import http.client
import ssl

from http_client import request
from kafka_side import murmur2_partition
from signing import Delivery, event_body, now

MAX_BODY = 1 << 20
TOLERANCE_S = 300
GOOD_SIZES = [100, 1024, 16 << 10, 256 << 10]
REFUSED = range(400, 500)


class NotGenuine(Exception):
    """The subject failed the check; the message says how."""


def body_of(size):
    """A body of about this size that does not survive parsing and rewriting unchanged."""
    return b'{ "n":1.0,"n":1e0,"e":"\\u00e9\xc3\xa9/\\/", "pad":"' + b"x" * size + b'",\r\n' + event_body()[1:]


def _insecure_tls():
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


class Check:
    """One check of a running subject with its own topics, which are read through kafka."""

    def __init__(self, subject, kafka):
        self.subject, self.kafka = subject, kafka
        self._tls = _insecure_tls() if subject.tls else None
        self._good = []
        self._bad = {}  # description by delivery-id

    def run(self):
        """Raises NotGenuine."""
        self._send_good_ones()
        self._send_bad_ones()
        self._send_duplicates()
        self._send_good_ones()
        self._read_back()

    def _post(self, body, headers):
        """Return the status, or None if the connection was closed instead."""
        try:
            return request(f"127.0.0.1:{self.subject.port}", "POST", "/webhooks/invoicing",
                           {"content-type": "application/json"} | headers, body, tls=self._tls).status
        except (ConnectionError, http.client.HTTPException, ssl.SSLError):
            return None

    def _delivery(self, size, **others):
        return Delivery(body=body_of(size), secret=self.subject.secret, **others)

    def _send_good_ones(self):
        for size in GOOD_SIZES:
            delivery = self._delivery(size)
            status = self._post(delivery.body, delivery.headers())
            if status != 200:
                raise NotGenuine(f"a good delivery of {len(delivery.body)} bytes was answered {status}, not 200")
            self._good.append(delivery)

    def _send_bad_ones(self):
        forged = self._delivery(100)
        last = "1" if forged.signature.endswith("0") else "0"
        self._refuse("a forged delivery", forged, signature=forged.signature[:-1] + last)
        self._refuse("an unsigned delivery", self._delivery(100), signature=None)
        altered = self._delivery(100)
        self._refuse("a delivery with an altered body", altered, body=altered.body + b" ")
        self._refuse("a stale delivery", self._delivery(100, timestamp=now() - 2 * TOLERANCE_S))
        self._refuse("a delivery from the future", self._delivery(100, timestamp=now() + 2 * TOLERANCE_S))
        self._refuse("a body over the limit", self._delivery(MAX_BODY), may_close=True)

    def _refuse(self, what, delivery, body=None, may_close=False, **headers):
        """Send a delivery with a wrong body or wrong headers, which must be refused."""
        self._bad[delivery.delivery_id] = what
        changed = delivery.headers() | {f"x-invoicing-{name}": value for name, value in headers.items()}
        given = {name: value for name, value in changed.items() if value is not None}
        status = self._post(body or delivery.body, given)
        if status not in REFUSED and not (may_close and status is None):
            raise NotGenuine(f"{what} was answered {status}, not refused")

    def _send_duplicates(self):
        for delivery in (self._good[0], self._good[1].signed_again()):
            status = self._post(delivery.body, delivery.headers())
            if status not in range(200, 300):
                raise NotGenuine(f"a duplicate was answered {status}, not 2xx")

    def _read_back(self):
        """Check that Kafka has each good delivery once and unchanged, and nothing else."""
        topics = {self.subject.published(delivery)[0] for delivery in self._good}
        reader = self.kafka.reader(sorted(topics))
        try:
            for delivery in self._good:
                reader.wait_for(delivery.delivery_id)
        except AssertionError:
            raise NotGenuine("a delivery was answered 200, but is not in Kafka") from None
        finally:
            reader.close()
        self.subject.settle()
        records = self.kafka.read(*self.kafka.topics())
        for record in records:
            if record.delivery_id in self._bad:
                raise NotGenuine(f"{self._bad[record.delivery_id]} was refused, but published")
        self._compare([record for record in records if record.topic in topics])

    def _compare(self, records):
        for delivery in self._good:
            found = [record for record in records if record.delivery_id == delivery.delivery_id]
            if len(found) != 1:
                raise NotGenuine(f"a delivery was published {len(found)} times")
            self._compare_one(delivery, found[0])
        if len(records) != len(self._good):
            raise NotGenuine(f"{len(records)} records were published for {len(self._good)} good deliveries")

    def _compare_one(self, delivery, record):
        topic, key = self.subject.published(delivery)
        if record.value != delivery.body:
            raise NotGenuine("a body was published with different bytes")
        if (record.topic, record.key) != (topic, key):
            raise NotGenuine(f"a delivery was published in {record.topic} with the key {record.key}, "
                             f"not in {topic} with {key}")
        if record.partition != murmur2_partition(key, self.kafka.partitions(topic)):
            raise NotGenuine(f"a record is in partition {record.partition}, where Java's clients do not put its key")
        for name, value in self.subject.record_headers(delivery).items():
            if record.header(name) != value:
                raise NotGenuine(f"a record's header {name} is {record.header(name)}, not {value}")
