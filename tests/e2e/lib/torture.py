"""Many misbehaving connections, with genuine senders among them.

usage: torture.py LAYER ADDRESS CA-FILE CONNECTIONS SEED

LAYER is tls, plain, or proxied: TLS behind a PROXY protocol header.

Prints a JSON object with the deliveries and answers after all connections, or when the receiver is gone."""

import collections
import contextlib
import json
import random
import socket
import ssl
import sys
import time

import http_client
from raw_tls import PATH, RawPlain, RawTls, head, proxy_header, whole
from signing import Delivery, event_body

GENUINE = 0.15  # of the connections
SLOW = 40  # connections kept open at a time
ATTEMPTS = 60  # of a genuine sender before it counts as starved
SECONDS = 20  # for an answer
FORGED = b"another secret, long enough as well"
ALERT = b"\x15\x03\x03\x00\x02\x02\x28"


def connect(layer, address, tls, client="198.51.100.1"):
    preface = proxy_header(client) if layer == "proxied" else b""
    return RawPlain(address, SECONDS) if layer == "plain" else RawTls(address, tls, SECONDS, preface)


class Torture:
    def __init__(self, layer, address, authority, seed):
        self.layer, self.address = layer, address
        self.random = random.Random(seed)
        self.contexts = [self._context(authority, version) for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]
        self.slow = collections.deque()
        self.accepted = []  # delivery-ids that were answered 200
        self.maybe = []  # genuine deliveries whose answer was not read
        self.forged = []
        self.counts = collections.Counter()
        self.gone = False  # the receiver no longer listens
        self.longest = 0.0  # longest time of a genuine sender in seconds, including retries

    @staticmethod
    def _context(authority, version):
        context = ssl.create_default_context(cafile=authority)
        context.minimum_version = context.maximum_version = version
        return context

    def connect(self):
        """A connection with a completed handshake."""
        self.counts["connections"] += 1
        try:
            client = connect(self.layer, self.address, self.random.choice(self.contexts),
                             f"198.51.100.{self.random.randrange(256)}")
        except ConnectionRefusedError:
            self.gone = True
            raise
        self.counts["handshakes"] += 1
        return client

    # Genuine senders

    def chunked(self, delivery):
        pieces = [head(delivery, "transfer-encoding: chunked")]
        at = 0
        while at < len(delivery.body):
            size = self.random.randint(1, 4000)
            piece = delivery.body[at:at + size]
            pieces.append(b"%x\r\n%s\r\n" % (len(piece), piece))
            at += size
        return b"".join(pieces) + b"0\r\n\r\n"

    def request(self, delivery):
        return self.chunked(delivery) if self.random.random() < 0.3 else whole(delivery)

    def delivery(self, **changes):
        body = event_body(filler="x" * self.random.choice((0, 0, 100, 5000, 20000)))
        return Delivery(body=body, **changes)

    def attempt(self, waiting):
        """Send deliveries over one connection. Deliveries answered 200 are removed from `waiting`."""
        client = self.connect()
        try:
            if self.random.random() < 0.5:  # pipelined
                client.write(b"".join(self.request(each) for each in waiting.values())).send()
                self.read_answers(client, waiting, len(waiting))
            else:
                for delivery in list(waiting.values()):
                    client.write(self.request(delivery)).send()
                    self.read_answers(client, waiting, 1)
            if self.random.random() < 0.5:
                client.close_notify().send()
        finally:
            client.close()

    def read_answers(self, client, waiting, count):
        answers = b""
        while count > 0:
            data = client.read()
            if not data:
                self.counts["genuine connections closed"] += 1
                return
            answers += data
            while b"}" in answers:
                answer, _, answers = answers.partition(b"}")
                if b'"deliveryId":"' not in answer:  # a refusal's object is within another one
                    continue
                assert answer.startswith(b"HTTP/1.1 200 "), answer
                delivery_id = answer.rpartition(b'"deliveryId":"')[2].rstrip(b'"').decode()
                del waiting[delivery_id]
                self.accepted.append(delivery_id)
                count -= 1
            if b"HTTP/1.1 503 " in answers or b"HTTP/1.1 408 " in answers:
                self.counts["genuine deliveries answered 503 or 408"] += 1
                return

    def genuine(self):
        waiting = {each.delivery_id: each for each in (self.delivery() for _ in range(self.random.randint(1, 4)))}
        begun = time.monotonic()
        for n in range(ATTEMPTS):
            with contextlib.suppress(OSError):
                self.attempt(waiting)
            self.longest = max(self.longest, time.monotonic() - begun)
            if not waiting or self.gone:
                return
            self.counts["genuine retries"] += 1
            time.sleep(0.02 * n)
        self.counts["starved deliveries"] += len(waiting)

    # Attackers

    def piece(self):
        """A request, or bytes that are none."""
        kind = self.random.randrange(9)
        if kind < 2:
            delivery = self.delivery()
            self.maybe.append(delivery.delivery_id)
            return self.request(delivery)
        if kind == 2:
            delivery = self.delivery(secret=FORGED)
            self.forged.append(delivery.delivery_id)
            return self.request(delivery)
        delivery = self.delivery(secret=FORGED)
        return [f"GET {PATH} HTTP/1.1\r\nhost: a\r\n\r\n".encode(),
                head(delivery)[:-2] + b"x-long: " + b"a" * self.random.randrange(9000),
                head(delivery, "content-length: 200000") + b"b" * self.random.randrange(20000),
                head(delivery, "transfer-encoding: chunked") + b"fffff\r\n" + b"c" * self.random.randrange(20000),
                head(delivery, "transfer-encoding: chunked") + b"1\r\nd\r\n" * self.random.randrange(300),
                b"nonsense\r\n\r\n"][kind - 3]

    def write(self, client):
        """Write some pieces, split randomly into records and segments."""
        data = b"".join(self.piece() for _ in range(self.random.randint(1, 3)))
        cuts = sorted(self.random.randrange(len(data)) for _ in range(self.random.randrange(4)))
        for begin, end in zip([0, *cuts], [*cuts, len(data)]):
            if end > begin:
                client.write(data[begin:end])
            if self.random.random() < 0.4:
                client.send()

    def end(self, client):
        how = self.random.randrange(8)
        if how < 3:
            client.close_notify()  # in one segment with the unsent bytes
        if how == 3:
            client.write_raw(self.random.choice((ALERT, b"GET / HTTP/1.1\r\n\r\n", bytes(100))))
        if how != 4:
            client.send()
        if how in (2, 5):
            client.socket.shutdown(socket.SHUT_WR)
        if how in (1, 2, 5):
            client.socket.settimeout(0.05)
            with contextlib.suppress(OSError):
                client.read()
        if how == 6:
            self.slow.append(client)
        elif how in (0, 4, 7):
            client.reset()
        else:
            client.close()

    def attack(self):
        if self.random.random() < 0.05:
            self.break_handshake()
            return
        with contextlib.suppress(OSError):
            client = self.connect()
            try:
                self.write(client)
                self.end(client)
            except OSError:  # refused, and closed
                self.counts["closed by the server"] += 1
                client.close()

    def break_handshake(self):
        self.counts["connections"] += 1
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + self.random.randbytes(500)
        if self.layer == "proxied":
            hello = proxy_header("198.51.100.1") + hello
        with contextlib.suppress(OSError), http_client.connect(self.address, SECONDS) as connection:
            connection.sendall(hello[:self.random.randrange(len(hello))])

    def drip(self):
        """Send a byte on each slow connection, and reset the oldest if there are too many."""
        for client in list(self.slow):
            try:
                client.write(b"s").send()
            except OSError:
                self.slow.remove(client)
                client.close()
        if len(self.slow) > SLOW:
            self.slow.popleft().reset()

    def run(self, connections):
        while self.counts["connections"] < connections and not self.gone:
            if self.random.random() < GENUINE:
                self.genuine()
            else:
                self.attack()
            if self.random.random() < 0.1:
                self.drip()
        while self.slow:
            self.slow.popleft().close()


def main():
    layer, address, authority, connections, seed = sys.argv[1:]
    torture = Torture(layer, address, authority, int(seed))
    torture.run(int(connections))
    print(json.dumps({"accepted": torture.accepted, "maybe": torture.maybe, "forged": torture.forged,
                      "counts": torture.counts, "longest": torture.longest}))


if __name__ == "__main__":
    main()
