"""More bodies than fit into max_in_flight: admitted bodies are completed, the others wait their turn."""

import asyncio
import contextlib
import itertools
import statistics
import threading
import time

import pytest

import http_client
import waiting
from authority import Authority
from signing import Delivery, event_body

KIB = 1024
BODY = event_body().ljust(250 * KIB)
ROOM = 8  # bodies
SECONDS = 4
ROUNDS = 5


def start(installation, plain_build, authority=None, **options):
    installation.create_topics()
    installation.build = plain_build
    config = installation.config()
    config["receiver"].update({"max_body": "256KiB", "max_in_flight": f"{ROOM * 250 + 1}KiB"} | options)
    if authority is not None:
        config.tls(*authority.issue("gateway"))
    daemon = installation.start(config)
    daemon.accept(tls=authority and authority.client())
    return daemon


def head(delivery, length):
    lines = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
    return f"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{lines}\r\n".encode()


class Load:
    """Clients that send one delivery after the other, each as soon as the previous one is answered."""

    def __init__(self, daemon, authority=None):
        self._host, self._port = daemon.address.rsplit(":", 1)
        self._tls = {} if authority is None else {"ssl": authority.client(), "server_hostname": "localhost"}
        self._signed = Delivery(BODY)
        self._ids = itertools.count()
        self.accepted, self.refused, self.seconds = 0, 0, []

    def _request(self):
        delivery = Delivery(delivery_id=f"load-{next(self._ids)}-{time.monotonic_ns()}")
        headers = self._signed.headers() | {"x-invoicing-delivery-id": delivery.delivery_id}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nContent-Length: {len(BODY)}\r\n{lines}\r\n".encode()

    async def _one(self, streams):
        reader, writer = streams
        begun = time.monotonic()
        writer.write(self._request())
        writer.write(BODY)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        if answer.startswith(b"HTTP/1.1 200 "):
            self.accepted += 1
            self.seconds.append(time.monotonic() - begun)
        else:
            self.refused += 1
        return b"connection: close" not in answer.lower()

    async def _client(self, end):
        streams = None
        while time.monotonic() < end:
            if streams is None:
                streams = await asyncio.open_connection(self._host, int(self._port), **self._tls)
            try:
                keeps = await self._one(streams)
            except (OSError, asyncio.IncompleteReadError):
                keeps = False
            if not keeps:
                streams[1].close()
                streams = None
        if streams is not None:
            streams[1].close()

    def run(self, clients, seconds=SECONDS):
        """Returns how many were accepted in a second."""
        self.accepted, self.refused, self.seconds = 0, 0, []
        end = time.monotonic() + seconds

        async def all_of_them():
            await asyncio.gather(*(self._client(end) for _ in range(clients)))
        asyncio.run(all_of_them())
        return self.accepted / seconds

    def p99(self):
        return statistics.quantiles(self.seconds, n=100)[98]


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_throughput_does_not_collapse_with_many_clients(installation, plain_build, tmp_path, tls):
    authority = Authority(tmp_path) if tls else None
    load = Load(start(installation, plain_build, authority, max_connections="1000"), authority)
    load.run(6, 1)
    rounds = []
    # A collapse is in every round; other work on the machine, which takes the time of one load only, is not.
    for _ in range(ROUNDS):
        rates = {clients: load.run(clients) for clients in (6, 32, 128)}
        rounds.append(rates)
        print(f"accepted/s={rates} refused={load.refused} p99={load.p99():.3f} s")
        # Measured: 1.4 times as fast. The bound is a quarter because machines are shared; evicting bodies made it a hundredth.
        if min(rates[32], rates[128]) > 0.25 * rates[6]:
            return
    raise AssertionError(f"accepted in a second, by clients: {rounds}")


@contextlib.contextmanager
def stalled_bodies(daemon, n):
    """Connections, each with an incomplete body."""
    with contextlib.ExitStack() as stack:
        for _ in range(n):
            connection = stack.enter_context(http_client.connect(daemon.address))
            connection.sendall(head(Delivery(BODY), len(BODY)) + BODY[:1000])
        yield


def test_stalled_bodies_do_not_block_other_clients(installation, plain_build):
    """Neither in their own lane nor in another."""
    daemon = start(installation, plain_build, threads="2")
    for _ in range(4):
        with stalled_bodies(daemon, ROOM + 4):
            waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") > (ROOM - 1) * len(BODY), 10, "a full budget")
            assert [daemon.post(Delivery(BODY)).status for _ in range(5)] == [200] * 5


def trickle(daemon, over):
    """Hold memory by bodies that grow by single bytes, until the test is over."""
    def send():
        begin = head(Delivery(BODY), 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        while not over.is_set():
            with contextlib.suppress(OSError), http_client.connect(daemon.address, source="127.0.0.2") as connection:
                connection.sendall(begin + b"1000\r\n" + bytes(0x1000) + b"\r\n")
                while not over.wait(0.15):
                    connection.sendall(b"1\r\nx\r\n")
    senders = [threading.Thread(target=send) for _ in range(2 * ROOM)]
    for sender in senders:
        sender.start()
    return senders


def test_trickling_bodies_do_not_block_other_clients(installation, plain_build):
    daemon = start(installation, plain_build, threads="2")
    over = threading.Event()
    senders = trickle(daemon, over)
    waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") > (ROOM - 1) * len(BODY), 10, "a full budget")
    statuses = [daemon.post(Delivery(BODY)).status for _ in range(10)]
    over.set()
    for sender in senders:
        sender.join()
    assert statuses == [200] * 10
    waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") == 0, 10, "nothing in flight")


def await_answers(daemon, address, over):
    """A client that sends a chunked body which stops, waits for its answer, and begins again."""
    begin = head(Delivery(BODY), 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    while not over.is_set():
        with contextlib.suppress(OSError), http_client.connect(daemon.address, source=address) as connection:
            connection.sendall(begin + b"5\r\nhello\r\n")
            connection.recv(100)


@pytest.mark.slow
def test_small_deliveries_do_not_wait_for_large_bodies_of_other_addresses(installation, plain_build):
    """Addresses share the memory by bytes: one that needs little gets it immediately."""
    daemon = start(installation, plain_build, threads="2")
    over, statuses = threading.Event(), []
    hostile = [threading.Thread(target=await_answers, args=(daemon, f"127.0.1.{number % 8 + 1}", over)) for number in range(160)]
    for each in hostile:
        each.start()
    waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") > (ROOM - 1) * len(BODY), 10, "a full budget")
    honest = [threading.Thread(target=lambda: statuses.extend(daemon.post(Delivery()).status for _ in range(3)))
              for _ in range(60)]
    for each in honest:
        each.start()
    for each in honest:
        each.join()
    over.set()
    for each in hostile:
        each.join()
    assert statuses.count(200) >= 178, statuses


def test_chunked_bodies_do_not_wait_for_each_other(installation, plain_build):
    """All first halves arrive before the second halves."""
    daemon = start(installation, plain_build)
    half, results = len(BODY) // 2, []

    def send(number):
        body = event_body(text=str(number)).ljust(len(BODY))
        delivery = Delivery(body)
        begin = head(delivery, 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        with http_client.connect(daemon.address) as connection:
            for piece in (body[:half], body[half:]):
                connection.sendall(begin + b"%x\r\n%s\r\n" % (len(piece), piece))
                begin = b""
                time.sleep(0.1)
            connection.sendall(b"0\r\n\r\n")
            results.append(connection.recv(100)[9:12])
    senders = [threading.Thread(target=send, args=[number]) for number in range(2 * ROOM)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert results == [b"200"] * 2 * ROOM


FLOODS = {
    "bad chunk lines": b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                       b"30000\r\n" + bytes(0x30000) + b"\r\nzz\r\n",
    "no headers": b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nContent-Length: 250000\r\n\r\n" + bytes(250000),
    "no source": b"POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 250000\r\n\r\n" + bytes(250000),
    "too large": b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + bytes(250000),
    "forged": None,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_floods_of_refused_bodies_do_not_block_other_clients(installation, plain_build, flood):
    daemon = start(installation, plain_build)
    forged = Delivery(BODY, secret=b"wrong" * 5)
    request = FLOODS[flood] or head(forged, len(BODY)) + BODY
    over = threading.Event()

    def send():
        while not over.is_set():
            with contextlib.suppress(OSError), http_client.connect(daemon.address, timeout=10) as connection:
                connection.sendall(request)
                connection.recv(4096)
    senders = [threading.Thread(target=send) for _ in range(16)]
    for sender in senders:
        sender.start()
    statuses = [daemon.post(Delivery(BODY)).status for _ in range(60)]
    over.set()
    for sender in senders:
        sender.join()
    assert statuses.count(200) >= 59, statuses
