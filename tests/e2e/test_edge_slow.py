"""Clients that take their time, beside a genuine one."""

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
MOST_SECONDS = 3  # for a delivery beside them, on a busy machine
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
    """Send genuine deliveries over connections of their own. Returns the longest time that one took."""
    longest = 0
    for _ in range(times):
        begun = time.monotonic()
        daemon.accept()
        longest = max(longest, time.monotonic() - begun)
    return longest


class Slow:
    """Many connections that have each sent a beginning."""

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
        """A little more from each. Returns how many are still open."""
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
def test_slow_senders_are_cut_off_and_disturb_nobody(start, beginning, piece):
    daemon = start(header_timeout="3s", request_timeout="4s")
    slow = Slow(daemon, N, beginning)
    begun = time.monotonic()

    def all_cut_off():
        assert deliver(daemon, 3) < MOST_SECONDS
        return slow.dribble(piece) == 0
    waiting.until(all_cut_off, 60, "the slow to be cut off")
    assert time.monotonic() - begun < 30
    slow.close()


@pytest.mark.parametrize("head_and_body", [("1s", "2s"), ("2s", "2s")], ids="-".join)
def test_request_has_its_time_from_its_first_byte(offline, head_and_body):
    config = offline.config("receiver")
    config["receiver"].update(zip(("header_timeout", "request_timeout"), head_and_body, strict=True))
    daemon = offline.daemon(config).start()
    genuine = b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in Delivery().headers().items())
    for headers, status in [(genuine, 408), (b"", 400)]:  # what its head is refused for, if it is
        begun = time.monotonic()
        with http_client.connect(daemon.address) as connection:
            connection.sendall(HEAD + headers + b"Content-Length: 5\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 %d " % status)
            assert time.monotonic() - begun >= 1.9


@pytest.mark.slow
def test_slow_readers_are_cut_off_and_disturb_nobody(start):
    daemon = start(header_timeout="3s", request_timeout="3s")
    requests = (HEAD + b"Content-Length: 5\r\n\r\nhello") * 500
    slow = Slow(daemon, 200, requests)

    def all_cut_off():
        assert deliver(daemon, 3) < MOST_SECONDS
        return slow.dribble(requests) == 0
    waiting.until(all_cut_off, 90, "the slow to be cut off")
    slow.close()


def test_idle_connections_beyond_the_limit_make_room(start):
    daemon = start(max_connections="100")
    idle = Slow(daemon, N, b"")
    assert deliver(daemon) < MOST_SECONDS
    idle.close()


def test_half_requests_beyond_the_limit_make_room(start):
    daemon = start(max_connections="100")
    halves = Slow(daemon, N, HEAD)
    assert deliver(daemon) < MOST_SECONDS
    halves.close()


def test_threads_share_the_limit_however_unevenly_they_accept(start):
    """As many connections as there may be stay open, and of more, who comes is let in and others go."""
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
    waiting.until(lambda: daemon.metric("gatepost_connections_open") == 64, 20, "the others to have gone")
    assert daemon.metric("gatepost_connections_closed_total", reason="full") == 0
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("beginning", [
    b"", HEAD, HEAD + b"Content-Length: 5\r\n\r\n", b"nonsense\r\n\r\n"], ids=["silent", "heads", "bodies", "refused"])
def test_who_comes_later_does_not_take_the_place_of_a_client_that_begins(start, beginning):
    """However few other idle connections there are: the oldest are closed first."""
    daemon = start(max_connections="100")
    before = Slow(daemon, N, beginning)
    client = http_client.Client(daemon.address)
    client.connect()
    after = Slow(daemon, 50, beginning)
    daemon.accept()  # those before it have been seen
    delivery = Delivery()
    assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    for each in (before, client, after):
        each.close()


def test_who_sends_a_first_byte_late_is_no_newcomer(start):
    """All are accepted at once, then all but the client begin a request: more who come do not take the client's place."""
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


def test_refused_requests_do_not_make_a_connection_younger(start):
    """Strangers fill max_connections and keep asking. They do not outlast a client that has connected later."""
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


def test_last_descriptor_is_used_and_nobody_is_closed_for_nobody(start):
    """Linux's accept() reports that descriptors have run out even when nobody waits to be accepted."""
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


def test_clients_that_take_no_answers_make_room(offline, tmp_path):
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
    waiting.until(let_in, 60, "room")
    deaf.close()


def test_few_descriptors_are_told_and_suffice(start):
    """With a limit of 256, of which it keeps half to itself, the rest of the daemon keeps what it needs, whatever connects."""
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


def test_limit_of_descriptors_is_raised_for_all_threads(installation, plain_build):
    """As many connections stay open as there may be."""
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
