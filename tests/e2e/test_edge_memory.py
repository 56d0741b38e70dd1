"""How much memory a client can make the receiver use."""

import contextlib
import select
import ssl
import time

import pytest

import http_client
import waiting
from authority import Authority
from signing import Delivery, event_body

PATH = "/webhooks/invoicing"
KIB, MIB = 1 << 10, 1 << 20


def resident(daemon):
    """Bytes of memory."""
    with open(f"/proc/{daemon.process.pid}/status") as status:
        return next(int(line.split()[1]) * KIB for line in status if line.startswith("VmRSS:"))


def head(delivery, length=None):
    fields = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
    length = len(delivery.body) if length is None else length
    return f"POST {PATH} HTTP/1.1\r\nhost: a\r\n{fields}content-length: {length}\r\n\r\n".encode()


def send_until_refused(connection, data, limit):
    """Send data repeatedly until the server stops reading or closes. Returns the number of bytes sent."""
    connection.settimeout(2)
    sent = 0
    while sent < limit:
        try:
            sent += connection.send(data)
        except OSError:  # timed out or closed, which TLS reports differently
            break
    connection.settimeout(http_client.TIMEOUT)
    return sent


@pytest.fixture(params=["without TLS", "by TLS"])
def plain(request, offline, plain_build):
    """A receiver without Kafka and without sanitizers, whose memory would distort the figures; tls is its client's context."""
    offline.build = plain_build
    config, tls = offline.config(roles="receiver"), None
    if request.param == "by TLS":
        authority = Authority(config.directory)
        config.tls(*authority.issue("gateway"))
        tls = authority.client()
    daemon = offline.daemon(config).start()
    daemon.tls = tls
    http_client.request(daemon.address, "GET", "/nothing", tls=tls)  # allocations of the first use
    return daemon


@pytest.mark.parametrize("request_", [
    b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"])
def test_receiver_stops_reading_when_pipelined_answers_are_not_read(plain, request_):
    before = resident(plain)
    with http_client.connect(plain.address, tls=plain.tls) as connection:
        sent = send_until_refused(connection, request_ * 1000, limit=64 * MIB)
        assert sent < 32 * MIB  # buffered by the kernel on both sides
        assert resident(plain) - before < 8 * MIB
    assert http_client.request(plain.address, "GET", "/nothing", tls=plain.tls).status == 404


def exchange(connection, data, answer, n, seconds):
    """Send data and read at the same time, in one thread as TLS requires, until n answers with this beginning have arrived."""
    connection.setblocking(False)
    data, came, seen, until = memoryview(data), b"", 0, time.monotonic() + seconds
    while seen < n:
        assert time.monotonic() < until, f"{len(data)} bytes not sent, {seen} answers of {n}"
        progressed = False
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if data:
                data = data[connection.send(data[:65536]):]
                progressed = True
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            came = came[-len(answer) + 1:] + connection.recv(65536)
            seen += came.count(answer)
            progressed = True
        if not progressed:
            select.select([connection], [connection] if data else [], [], 1)


def test_pipelining_uses_no_memory_when_answers_are_read(plain):
    before = resident(plain)
    with http_client.connect(plain.address, tls=plain.tls) as connection:
        for _ in range(20):
            exchange(connection, b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n" * 5000, b"HTTP/1.1 404 ", 5000, 60)
        assert resident(plain) - before < 8 * MIB


@pytest.mark.slow
def test_incomplete_bodies_use_at_most_max_in_flight(installation, plain_build):
    """They are refused when other clients wait, so that the next client in turn gets memory."""
    installation.create_topics()
    installation.build = plain_build
    config = installation.config()
    config["receiver"].update({"max_body": "1MiB", "max_in_flight": "16MiB"})
    daemon = installation.start(config)
    daemon.accept()
    before = resident(daemon)
    most = 0
    connections = []
    for _ in range(200):
        connection = http_client.connect(daemon.address, source="127.0.0.2")
        connection.settimeout(5)
        connection.sendall(head(Delivery(), MIB) + bytes(MIB - 1))
        connections.append(connection)
        most = max(most, resident(daemon) - before)
    daemon.accept(Delivery(event_body().ljust(500 * KIB)))
    assert most < 64 * MIB
    refused = 0
    for connection in connections:
        with connection:
            connection.settimeout(0.01 if refused >= 150 else 5)
            try:
                refused += connection.recv(1000).startswith(b"HTTP/1.1 503 ")
            except (TimeoutError, ConnectionResetError):
                pass
    assert refused >= 150
    waiting.until(lambda: daemon.post(Delivery(event_body().ljust(1000 * KIB))).status == 200, 30, "free memory")


@pytest.mark.parametrize("n", [1, 3])
def test_refused_bodies_do_not_block_others(installation, n):
    """Each reserves its share of the budget and is then malformed: waiting for the client to read the answer must not keep it."""
    installation.create_topics()
    config = installation.config()
    config["receiver"].update({"threads": 2, "max_body": "1MiB", "max_in_flight": "4MiB"})
    daemon = installation.start(config)
    chunk = b"%x\r\n" % (MIB - 1000) + bytes(MIB - 1000) + b"\r\n"
    begin = b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    statuses = []
    for _ in range(4):
        with contextlib.ExitStack() as stack:
            for _ in range(4 * n):
                connection = stack.enter_context(http_client.connect(daemon.address))
                with contextlib.suppress(OSError):  # closed for another connection
                    connection.sendall(begin + chunk + b"zz\r\n")
            statuses += [daemon.post(Delivery(event_body().ljust(900 * KIB))).status for _ in range(5)]
    # Occasionally a delivery meets a refused body that is still arriving.
    assert statuses.count(200) >= 16, statuses


@pytest.mark.parametrize("endless", [
    b"x" * 4096, b"GET /" + b"a" * 4091, b"a: " + b"b" * 4091 + b"\r\n"])
def test_endless_header_section_is_refused(plain, endless):
    before = resident(plain)
    with http_client.connect(plain.address, tls=plain.tls) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
        send_until_refused(connection, endless, limit=64 * MIB)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert resident(plain) - before < 2 * MIB


def test_pending_handshakes_use_the_documented_memory(offline, plain_build):
    """OpenSSL allocates memory for the announced length of the ClientHello, up to 128 KiB."""
    offline.build = plain_build
    config = offline.config(roles="receiver")
    config.tls(*Authority(config.directory).issue("gateway"))
    daemon = offline.daemon(config).start()
    greeting = b"\x01" + (131_000).to_bytes(3, "big") + bytes(65_000)
    records = b"".join(b"\x16\x03\x01%s%s" % (len(piece).to_bytes(2, "big"), piece)
                       for piece in (greeting[at:at + 16384] for at in range(0, len(greeting), 16384)))
    before, connections = resident(daemon), []
    for _ in range(200):
        connections.append(http_client.connect(daemon.address))
        connections[-1].sendall(records)
    waiting.until(lambda: resident(daemon) - before > 200 * 60 * KIB, 30, "greetings to be read")
    assert resident(daemon) - before < 200 * 256 * KIB
    for connection in connections:
        connection.close()


def test_endless_chunk_line_is_refused(plain):
    before = resident(plain)
    with http_client.connect(plain.address, tls=plain.tls) as connection:
        connection.sendall(b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        send_until_refused(connection, b"0" * 4096, limit=64 * MIB)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert resident(plain) - before < 2 * MIB


GET = b"GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n"


@pytest.fixture
def narrow(offline, plain_build, tmp_path):
    """A receiver that listens on a Unix-domain socket, which buffers few unread answers."""
    offline.build = plain_build
    config = offline.config(roles="receiver")
    config["receiver"].update({"listen": f"unix:{tmp_path}/socket", "max_body": "1MiB", "max_in_flight": "8MiB",
                               "request_timeout": "10min"})
    return offline.daemon(config).start()


def answered(daemon, outcome):
    return daemon.metric("gatepost_requests_total", outcome=outcome)


def fill(daemon, request, outcome):
    """Send a request repeatedly until no more are answered. Returns the connection and the number of answers."""
    before = last = answered(daemon, outcome)
    connection = http_client.connect(daemon.address, timeout=2)
    with contextlib.suppress(TimeoutError):
        while True:
            connection.sendall(request)
    waiting.until(lambda: answered(daemon, outcome) > before, 30, "answers")
    while (now := answered(daemon, outcome)) > last:
        last = now
        time.sleep(0.5)
    return connection, int(now - before)


@pytest.mark.slow
def test_unread_answers_do_not_keep_their_request_bodies(narrow):
    forged = Delivery(b"x" * 900 * KIB, secret=b"wrong" * 5)
    request = head(forged) + forged.body
    deaf = [fill(narrow, request, "forged")[0] for _ in range(10)]
    with http_client.connect(narrow.address) as connection:
        connection.sendall(request)
        assert connection.recv(100).startswith(b"HTTP/1.1 401 ")
    for each in deaf:
        each.close()


@pytest.mark.slow
def test_bodies_are_freed_before_their_refusals_are_read(narrow):
    connection, n = fill(narrow, GET, "not_found")
    connection.close()
    n -= 1  # the last answer was not sent
    expected, connections = answered(narrow, "not_found") + 100 * n, []
    for _ in range(100):
        connections.append(http_client.connect(narrow.address))
        connections[-1].sendall(GET * n)
    waiting.until(lambda: answered(narrow, "not_found") == expected, 60, "all to be answered")
    before, most = resident(narrow), 0
    for connection in connections:
        connection.sendall(head(Delivery(), MIB) + bytes(MIB - 1))
        most = max(most, resident(narrow) - before)
    assert most < 40 * MIB
    for connection in connections:
        connection.close()


def chunks_of(body, size):
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 100, 8000, 100000])
def test_small_chunks_use_no_extra_memory(offline, plain_build, size):
    offline.build = plain_build
    config = offline.config(roles="receiver")
    config["receiver"].update({"max_body": "1MiB", "max_in_flight": "2MiB"})
    daemon = offline.daemon(config).start()
    before = resident(daemon)
    forged = Delivery(b"x" * 1000 * KIB, secret=b"wrong" * 5)
    with http_client.connect(daemon.address) as connection:
        start = head(forged).replace(b"content-length: 1024000", b"transfer-encoding: chunked")
        connection.sendall(start + chunks_of(forged.body, size))
        assert connection.recv(100).startswith(b"HTTP/1.1 401 ")
    assert resident(daemon) - before < 8 * MIB
