"""Identification of the client, with and without a proxy, and the limits for each client."""

import re
import socket
import struct
import threading

import pytest

import http_client
import waiting
from authority import Authority
from raw_tls import PROXY_SIGNATURE, proxy_header
from signing import Delivery
from stalling import stalled_thread

PATH = "/webhooks/invoicing"
FORGED = b"another secret, long enough as well"


def receiver(offline, **options):
    config = offline.config(roles="receiver")
    config["receiver"].update(options)
    return offline.daemon(config).start()


def last_client(daemon):
    """The address in the last line about a refusal."""
    found = re.findall(r" refused .* client=(\S+)", daemon.log)
    return found and found[-1]


def refused_as(daemon, **request):
    """Send a request that is refused. Returns the client in the log, which gets at most one line per second."""
    seen = daemon.log.count("client=")

    def send_until_logged():
        assert http_client.request(daemon.address, "GET", "/nothing", **request).status == 404
        return daemon.log.count("client=") > seen
    waiting.until(send_until_logged, 20, "a line about the refusal")
    return last_client(daemon)


def raw(address, *pieces):
    """Send pieces of bytes separately and read until the server closes."""
    with http_client.connect(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                received += data
        except OSError:  # closed or reset: return what was received before
            pass
        return received


NOTHING = b"GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


# X-Forwarded-For

def test_forwarded_for_is_ignored_without_a_trusted_proxy(offline):
    daemon = receiver(offline)
    assert refused_as(daemon, headers={"x-forwarded-for": "198.51.100.1"}) == "127.0.0.1"


@pytest.mark.parametrize("values, client", [
    (["198.51.100.1"], "198.51.100.1"), (["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
    (["198.51.100.1, 127.0.0.9"], "198.51.100.1"), (["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
    (["198.51.100.1", "127.0.0.8, 127.0.0.9"], "198.51.100.1"), (["nonsense"], "127.0.0.1"), ([], "127.0.0.1"),
    (["1.1.1.1," * 2000 + "198.51.100.1"], "198.51.100.1"), (["127.0.0.2, " * 2000 + "198.51.100.1"], "198.51.100.1")])
def test_trusted_proxy_names_the_client(offline, values, client):
    daemon = receiver(offline, trusted_proxy="127.0.0.0/8")
    assert refused_as(daemon, headers=[("X-Forwarded-For", value) for value in values]) == client


def test_proxy_over_a_unix_socket_is_trusted_if_configured(offline, tmp_path):
    for number, (options, client) in enumerate([({"trusted_proxy": "unix"}, "198.51.100.1"), ({}, "-")]):
        daemon = receiver(offline, listen=f"unix:{tmp_path}/s{number}", **options)
        assert refused_as(daemon, headers={"x-forwarded-for": "198.51.100.1"}) == client


def test_connection_reset_before_accept_is_not_treated_as_a_unix_socket(offline):
    """Its peer address is no longer known, but its bytes can still be read."""
    daemon = receiver(offline, trusted_proxy="unix")
    assert refused_as(daemon, headers={"x-forwarded-for": "198.51.100.1"}) == "127.0.0.1"
    before = daemon.metric("gatepost_connections_accepted_total"), daemon.metric("gatepost_requests_total")
    with stalled_thread(daemon.process.pid, "receiver-1"):
        for _ in range(20):
            with http_client.connect(daemon.address) as connection:
                connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    waiting.until(lambda: daemon.metric("gatepost_connections_accepted_total") >= before[0] + 20, 20, "all to be accepted")
    waiting.until(lambda: daemon.metric("gatepost_connections_open") == 0, 20, "all to be closed")
    assert daemon.metric("gatepost_requests_total") == before[1]
    daemon.stop()
    assert "client=198.51.100.1" not in daemon.log


# The PROXY protocol

@pytest.mark.parametrize("header, client", [
    (proxy_header("198.51.100.1"), "198.51.100.1"), (proxy_header("198.51.100.1", tail=b"\x04\0\x20" + bytes(32)), "198.51.100.1"),
    (proxy_header("198.51.100.1", command=0), "127.0.0.1"), (proxy_header("198.51.100.1", family=0), "127.0.0.1")])
@pytest.mark.parametrize("cut", ["whole", "in bytes"])
def test_proxy_protocol_header_names_the_client(offline, header, client, cut):
    daemon = receiver(offline, trusted_proxy="127.0.0.1", proxy_protocol="required")
    data = header + NOTHING
    pieces = [data] if cut == "whole" else [data[at:at + 1] for at in range(len(data))]
    assert raw(daemon.address, *pieces).startswith(b"HTTP/1.1 404 ")
    waiting.until(lambda: last_client(daemon), 10, "a line about the refusal")
    assert last_client(daemon) == client


def test_deliveries_after_a_proxy_header_are_accepted_on_one_connection(installation):
    installation.create_topics()
    config = installation.config()
    config["receiver"].update({"trusted_proxy": ["10.0.0.0/8", "127.0.0.1"], "proxy_protocol": "required"})
    daemon = installation.start(config)
    client = http_client.Client(daemon.address)
    client.connect()
    client.sock.sendall(proxy_header("198.51.100.1"))
    for _ in range(3):
        delivery = Delivery()
        assert client.request("POST", PATH, delivery.headers(), delivery.body).status == 200
    client.close()


def test_daemon_with_tls_stops_during_an_incomplete_proxy_header(offline, tmp_path):
    config = offline.config(roles="receiver").tls(*Authority(tmp_path).issue("server"))
    config["receiver"].update(
        {"trusted_proxy": "127.0.0.1", "proxy_protocol": "required", "header_timeout": "1s"})
    daemon = offline.daemon(config).start()
    with http_client.connect(daemon.address) as slow:
        slow.sendall(proxy_header("198.51.100.1")[:14])
        assert slow.recv(100) == b""  # at the deadline
    with http_client.connect(daemon.address) as slow:
        slow.sendall(proxy_header("198.51.100.1")[:14])
        daemon.stop(expect=0)


def test_proxy_header_is_refused_when_not_configured(offline):
    daemon = receiver(offline, trusted_proxy="127.0.0.1")
    assert raw(daemon.address, proxy_header("198.51.100.1") + NOTHING).startswith(b"HTTP/1.1 400 ")


def test_untrusted_peer_is_closed_when_the_proxy_protocol_is_required(offline):
    daemon = receiver(offline, trusted_proxy="10.0.0.0/8", proxy_protocol="required")
    assert raw(daemon.address, proxy_header("198.51.100.1") + NOTHING) == b""
    assert daemon.metric("gatepost_connections_closed_total", reason="no_proxy") == 1


def test_connection_without_the_required_proxy_header_is_closed(offline):
    daemon = receiver(offline, trusted_proxy="127.0.0.1", proxy_protocol="required")
    assert raw(daemon.address, NOTHING) == b""


@pytest.mark.parametrize("data", [
    PROXY_SIGNATURE + b"\x31\x11\0\x0c" + bytes(12), PROXY_SIGNATURE + b"\x21\x11\0\x04" + bytes(4),
    PROXY_SIGNATURE + b"\x21\x11\xff\xff" + bytes(65535), b"\r\n\r\n" * 10, proxy_header("198.51.100.1")[:20]])
def test_malformed_proxy_header_closes_the_connection(offline, data):
    daemon = receiver(offline, trusted_proxy="127.0.0.1", proxy_protocol="required")
    with http_client.connect(daemon.address):  # as a load balancer checks the port
        pass
    assert raw(daemon.address, data) == b""
    waiting.until(lambda: daemon.metric("gatepost_connections_closed_total", reason="closed") == 1, 20, "the first one")
    assert daemon.metric("gatepost_connections_closed_total", reason="proxy_header") == 1
    assert raw(daemon.address, proxy_header("198.51.100.1") + NOTHING).startswith(b"HTTP/1.1 404 ")


def test_missing_proxy_header_times_out(offline):
    daemon = receiver(offline, trusted_proxy="127.0.0.1", proxy_protocol="required", header_timeout="500ms")
    with http_client.connect(daemon.address) as silent, http_client.connect(daemon.address) as slow:
        slow.sendall(proxy_header("198.51.100.1")[:14])
        assert slow.recv(100) == b"" and silent.recv(100) == b""


def test_daemon_stops_during_an_incomplete_proxy_header(offline):
    daemon = receiver(offline, trusted_proxy="127.0.0.1", proxy_protocol="required")
    with http_client.connect(daemon.address) as slow:
        slow.sendall(proxy_header("198.51.100.1")[:14])
        assert raw(daemon.address, proxy_header("198.51.100.1") + NOTHING).startswith(b"HTTP/1.1 404 ")
        daemon.stop(expect=0)


# Limits for each address

def connect_from(address, daemon):
    connection = socket.socket()
    connection.settimeout(http_client.TIMEOUT)
    connection.bind((address, 0))
    host, port = daemon.address.rsplit(":", 1)
    connection.connect((host, int(port)))
    return connection


def test_connections_per_address_are_limited(offline):
    daemon = receiver(offline, max_connections_per_address="3", threads="2")
    clients = [http_client.Client(daemon.address) for _ in range(3)]
    for client in clients:
        assert client.request("GET", "/nothing").status == 404
    with http_client.connect(daemon.address) as one_more:
        assert one_more.recv(100) == b""
    with connect_from("127.0.0.2", daemon) as other:
        other.sendall(NOTHING)
        assert other.recv(100).startswith(b"HTTP/1.1 404 ")
    clients.pop().close()

    def another():
        try:
            return http_client.request(daemon.address, "GET", "/nothing").status == 404
        except (ConnectionError, OSError, http_client.http.client.HTTPException):
            return False
    waiting.until(another, 20, "a free connection after one was closed")
    assert "max_connections_per_address" in daemon.log
    for client in clients:
        client.close()


def test_excess_connection_of_an_address_does_not_evict_other_clients(offline):
    daemon = receiver(offline, max_connections="4", max_connections_per_address="2")
    connections = [connect_from(address, daemon) for address in ("127.0.0.2", "127.0.0.3") for _ in range(2)]
    for connection in connections:
        connection.sendall(NOTHING.replace(b"Connection: close\r\n", b""))
        assert connection.recv(1000).startswith(b"HTTP/1.1 404 ")
    with connect_from("127.0.0.3", daemon) as one_more:
        assert one_more.recv(100) == b""
    for connection in connections:
        connection.sendall(NOTHING)
        assert connection.recv(1000).startswith(b"HTTP/1.1 404 ")
        connection.close()


def test_clients_behind_a_proxy_are_limited_instead_of_the_proxy(offline):
    daemon = receiver(offline, max_connections_per_address="1", trusted_proxy="127.0.0.1", proxy_protocol="required")
    first, second, same = (http_client.connect(daemon.address) for _ in range(3))
    for connection, client in [(first, "198.51.100.1"), (second, "198.51.100.2")]:
        connection.sendall(proxy_header(client) + NOTHING.replace(b"Connection: close\r\n", b""))
        assert connection.recv(100).startswith(b"HTTP/1.1 404 ")
    same.sendall(proxy_header("198.51.100.1") + NOTHING)
    with pytest.raises(ConnectionResetError):
        assert same.recv(100) == b""
        raise ConnectionResetError
    for each in (first, second, same):
        each.close()


def test_proxy_using_forwarded_for_is_not_limited(offline):
    daemon = receiver(offline, max_connections_per_address="1", trusted_proxy="127.0.0.1")
    plain = [http_client.Client(daemon.address) for _ in range(3)]
    for client in plain:
        assert client.request("GET", "/nothing").status == 404
    for client in plain:
        client.close()


def test_address_with_too_many_refusals_gets_429_until_the_next_second(installation):
    installation.create_topics()
    config = installation.config()
    config["receiver"].update({"max_refusals_per_address": "5", "trusted_proxy": "127.0.0.1"})
    daemon = installation.start(config)

    def send(client, delivery):
        return http_client.request(daemon.address, "POST", PATH, delivery.headers() | {"x-forwarded-for": client},
                                   delivery.body)
    replies = [send("198.51.100.1", Delivery(secret=FORGED)) for _ in range(60)]
    assert {reply.status for reply in replies} == {401, 429}
    throttled = next(reply for reply in replies if reply.status == 429)
    assert throttled.code == "TOO_MANY_REQUESTS" and throttled.reason == "Too Many Requests" and throttled.headers["retry-after"] == "1"
    assert all(send("198.51.100.2", Delivery()).status == 200 for _ in range(20))  # other addresses are not throttled
    waiting.until(lambda: send("198.51.100.1", Delivery()).status == 200, 10, "the next second")
    metric = daemon.metrics("gatepost_requests_total")
    assert metric[frozenset({("source", ""), ("outcome", "throttled")})] >= 1 or sum(
        value for labels, value in metric.items() if ("outcome", "throttled") in labels) >= 1


def test_genuine_deliveries_are_never_throttled(installation):
    installation.create_topics()
    config = installation.config()
    config["receiver"]["max_refusals_per_address"] = "1"
    daemon = installation.start(config)
    client = http_client.Client(daemon.address)
    for _ in range(200):
        delivery = Delivery()
        assert client.request("POST", PATH, delivery.headers(), delivery.body).status == 200
    client.close()


@pytest.mark.parametrize("refused", [b"nonsense\r\n\r\n", b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n"], ids=["400", "501"])
def test_framing_errors_count_as_refusals(offline, refused):
    daemon = receiver(offline, max_refusals_per_address="3")

    def statuses():
        for _ in range(10):
            raw(daemon.address, refused)
        return daemon.post().status  # otherwise 503, which does not count
    waiting.until(lambda: statuses() == 429, 20, "429 after many refusals within a second")


def test_connection_limit_holds_under_concurrent_connects(offline):
    daemon = receiver(offline, max_connections_per_address="20", threads="4")
    open_ = []

    def connect():
        for _ in range(25):
            client = http_client.Client(daemon.address)
            try:
                if client.request("GET", "/nothing").status == 404:
                    open_.append(client)
            except (OSError, http_client.http.client.HTTPException):
                client.close()
    threads = [threading.Thread(target=connect) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(open_) == 20
    for client in open_:
        client.close()
