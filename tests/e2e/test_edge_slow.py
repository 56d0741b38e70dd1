"""Slow clients next to a genuine one."""

import itertools
import pathlib
import resource
import signal
import time

import pytest

import http_client
import waiting
from signing import Delivery, event_body

N = 400
MOST_SECONDS = 10  # for a concurrent delivery, on a busy machine; one that waited for slow clients in turn would take minutes
HEAD = b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\n"


def cpu_seconds(daemon):
    with open(f"/proc/{daemon.process.pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.fixture
def start(installation, plain_build):
    def start(descriptors=None, **options):
        installation.create_topics()
        installation.build = plain_build
        config = installation.config()
        config["receiver"].update(options)
        daemon = installation.daemon(config)
        if descriptors is not None:
            daemon.wrapper = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh"]
        return daemon.start().wait_until_ready()
    return start


def deliver(daemon, times=20):
    """Send genuine deliveries over separate connections. Returns the time of the slowest."""
    longest = 0
    for _ in range(times):
        begun = time.monotonic()
        daemon.accept()
        longest = max(longest, time.monotonic() - begun)
    return longest


class Slow:
    """Many connections, each with the beginning of a request."""

    def __init__(self, daemon, n, beginning):
        self.connections = []
        for _ in range(n):
            connection = http_client.connect(daemon.address)
            connection.setblocking(False)
            try:
                connection.send(beginning)
            except ConnectionError:
                pass  # closed for another connection
            self.connections.append(connection)

    def dribble(self, piece):
        """Send a little more on each. Returns how many are still open."""
        n_open = 0
        for connection in self.connections:
            try:
                connection.send(piece)
                n_open += 1
            except OSError:
                pass
        return n_open

    def close(self):
        for connection in self.connections:
            connection.close()


@pytest.mark.parametrize("beginning, piece", [
    (HEAD, b"x-a: b\r\n"), (HEAD + b"Content-Length: 100000\r\n\r\n", b"0123456789"),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n")], ids=["heads", "bodies", "chunks"])
def test_slow_senders_are_closed_without_delaying_others(start, beginning, piece):
    daemon = start(header_timeout="3s", request_timeout="4s")
    slow = Slow(daemon, N, beginning)
    begun = time.monotonic()

    def all_cut_off():
        assert deliver(daemon, 3) < MOST_SECONDS
        return slow.dribble(piece) == 0
    waiting.until(all_cut_off, 60, "the slow clients to be closed")
    assert time.monotonic() - begun < 30
    slow.close()


@pytest.mark.parametrize("head_and_body", [("1s", "2s"), ("2s", "2s")], ids="-".join)
def test_request_timeout_starts_at_the_first_byte(offline, head_and_body):
    config = offline.config("receiver")
    config["receiver"].update(zip(("header_timeout", "request_timeout"), head_and_body, strict=True))
    daemon = offline.daemon(config).start()
    genuine = b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in Delivery().headers().items())
    for headers, status in [(genuine, 408), (b"", 400)]:  # the status for its headers, if they are invalid
        begun = time.monotonic()
        with http_client.connect(daemon.address) as connection:
            connection.sendall(HEAD + headers + b"Content-Length: 5\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 %d " % status)
            assert time.monotonic() - begun >= 1.9


@pytest.mark.slow
def test_slow_readers_are_closed_without_delaying_others(start):
    daemon = start(header_timeout="3s", request_timeout="3s")
    requests = (HEAD + b"Content-Length: 5\r\n\r\nhello") * 500
    slow = Slow(daemon, 200, requests)

    def all_cut_off():
        assert deliver(daemon, 3) < MOST_SECONDS
        return slow.dribble(requests) == 0
    waiting.until(all_cut_off, 90, "the slow clients to be closed")
    slow.close()


def test_idle_connections_are_closed_at_the_limit(start):
    daemon = start(max_connections="100")
    idle = Slow(daemon, N, b"")
    assert deliver(daemon) < MOST_SECONDS
    idle.close()


def test_incomplete_requests_are_closed_at_the_limit(start):
    daemon = start(max_connections="100")
    halves = Slow(daemon, N, HEAD)
    assert deliver(daemon) < MOST_SECONDS
    halves.close()


def test_threads_share_the_connection_limit(start):
    """Connections up to the limit stay open; beyond it, new ones are accepted and others closed."""
    daemon = start(max_connections="64", threads="8")

    def ask(connection):
        connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
        return connection.recv(1000).startswith(b"HTTP/1.1 404 ")
    connections = []
    for _ in range(64):
        connections.append(http_client.connect(daemon.address))
        assert ask(connections[-1])
    assert all(ask(connection) for connection in connections)
    assert daemon.metric("gatepost_connections_closed_total") == 0
    for _ in range(200):
        connections.append(http_client.connect(daemon.address))
        assert ask(connections[-1])
    waiting.until(lambda: daemon.metric("gatepost_connections_open") == 64, 20, "the others to be closed")
    assert daemon.metric("gatepost_connections_closed_total", reason="full") == 0
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("beginning", [
    b"", HEAD, HEAD + b"Content-Length: 5\r\n\r\n", b"nonsense\r\n\r\n"], ids=["silent", "heads", "bodies", "refused"])
def test_new_connections_do_not_evict_a_recent_client(start, beginning):
    """The oldest connections are closed first, even if few others are idle."""
    daemon = start(max_connections="100")
    before = Slow(daemon, N, beginning)
    client = http_client.Client(daemon.address)
    client.connect()
    after = Slow(daemon, 50, beginning)
    daemon.accept()  # the earlier connections have been accepted
    delivery = Delivery()
    assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    for each in (before, client, after):
        each.close()


def test_late_first_byte_does_not_make_a_connection_newer(start):
    """All are accepted at once, then all but the client begin a request: new connections do not evict the client."""
    daemon = start(max_connections="100")
    daemon.process.send_signal(signal.SIGSTOP)
    before = Slow(daemon, 99, HEAD)
    client = http_client.Client(daemon.address)
    client.connect()
    daemon.process.send_signal(signal.SIGCONT)
    daemon.accept()  # takes the place of an earlier connection
    after = Slow(daemon, 50, HEAD)
    daemon.accept()
    delivery = Delivery()
    assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    for each in (before, client, after):
        each.close()


def test_refused_requests_do_not_make_a_connection_newer(start):
    """Strangers fill max_connections and keep sending requests. They do not outlast a client that connects later."""
    def ask(connection):
        try:
            connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
            return b" 404 " in connection.recv(65536)
        except OSError:
            return False

    daemon = start(max_connections="20")
    strangers = [http_client.connect(daemon.address) for _ in range(20)]
    assert all(ask(each) for each in strangers)
    client = http_client.Client(daemon.address)
    client.connect()
    for _ in range(15):
        strangers = [each for each in strangers if ask(each)]
        strangers.append(http_client.connect(daemon.address))
        assert ask(strangers[-1])
    delivery = Delivery()
    assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    for each in (client, *strangers):
        each.close()


def leave_one_descriptor(daemon):
    """Lower the daemon's limit until a single descriptor is free."""
    used = {int(each.name) for each in pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir()}
    limit = next(number for number in itertools.count() if number not in used) + 1
    _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (limit, hard))


def test_last_descriptor_is_used_without_closing_an_idle_connection(start):
    """Linux's accept() reports that descriptors have run out even if no connection is pending."""
    daemon = start()
    idle = http_client.Client(daemon.address)
    assert idle.request("GET", "/nothing").status == 404
    limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    leave_one_descriptor(daemon)
    with http_client.connect(daemon.address) as connection:
        connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 404 " in connection.recv(1000)
        assert idle.request("GET", "/nothing").status == 404
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, limits)
    assert daemon.metric("gatepost_connections_closed_total", reason="no_descriptors") == 0
    assert daemon.metric("gatepost_connections_closed_total", reason="made_room") == 0
    idle.close()


def test_clients_that_do_not_read_answers_are_closed_at_the_limit(offline, tmp_path):
    """A Unix-domain socket buffers few answers."""
    config = offline.config("receiver")
    config["receiver"].update({"listen": f"unix:{tmp_path}/socket", "max_connections": "20", "request_timeout": "10min"})
    daemon = offline.daemon(config).start()
    requests = b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n" * 3000
    deaf = Slow(daemon, 20, requests)

    def let_in():
        try:
            return http_client.request(daemon.address, "GET", "/nothing").status == 404
        except OSError:
            return False
    waiting.until(let_in, 60, "an accepted connection")
    deaf.close()


def test_low_descriptor_limit_is_reported_and_sufficient(start):
    """With a limit of 256, half of it reserved, the rest of the daemon always has the descriptors it needs."""
    daemon = start(descriptors=256)
    assert "fewer connections than max_connections" in daemon.log and "LimitNOFILE" in daemon.log
    for beginning in (b"", HEAD):
        slow = Slow(daemon, N, beginning)
        assert deliver(daemon) < MOST_SECONDS
        before, begun = cpu_seconds(daemon), time.monotonic()
        while time.monotonic() - begun < 2:
            assert deliver(daemon, 1) < MOST_SECONDS
            time.sleep(0.2)
        assert cpu_seconds(daemon) - before < 0.5
        slow.close()
    assert "Too many open files" not in daemon.log
    daemon.accept(Delivery(event_body().ljust(500_000)))


def test_descriptor_limit_is_raised_for_all_threads(installation, plain_build):
    """Connections up to the limit stay open."""
    installation.create_topics()
    installation.build = plain_build
    config = installation.config()
    config["receiver"].update({"threads": "16", "max_connections": "150"})
    daemon = installation.daemon(config)
    daemon.wrapper = ["sh", "-c", 'ulimit -S -n 220 && exec "$@"', "sh"]
    daemon.start().wait_until_ready()
    idle = Slow(daemon, 150, b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
    waiting.until(lambda: daemon.metric("gatepost_requests_total", outcome="not_found") == 150, 30, "all answers")
    assert daemon.metric("gatepost_connections_open") == 150
    assert "Too many open files" not in daemon.log
    idle.close()
