"""The proxy of tests/faults in front of a broker that echoes each request."""

import contextlib
import os
import select
import socket
import socketserver
import struct
import threading
import time
import types

import pytest

import ports
from proxy import Proxies
from wire import APIS

SECONDS = 10
NO_ERROR = bytes(6)  # throttle time and error code
HEAD = struct.Struct(">ihhi")  # length, API, version, correlation id


def request(api, correlation, body=b""):
    return HEAD.pack(HEAD.size - 4 + len(body), APIS[api], 0, correlation) + body


def response(correlation, body=b""):
    return struct.pack(">ii", 4 + len(body), correlation) + body


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(HEAD.size):
            size, _, _, correlation = HEAD.unpack(head)
            body = self.rfile.read(size - HEAD.size + 4)
            self.server.got.append(correlation)
            self.wfile.write(response(correlation, body))


class Broker(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Echo)
        self.got = []  # correlation ids
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def echo():
    with Broker() as each:
        yield each
        each.shutdown()


@pytest.fixture
def node(echo):
    with ports.reserved() as port:
        yield types.SimpleNamespace(number=1, proxied_port=echo.server_address[1], proxy_port=port)


@pytest.fixture
def proxies(node):
    with Proxies(types.SimpleNamespace(nodes={1: node})) as each:
        yield each


class Client:
    def __init__(self, node):
        self._socket = socket.create_connection(("127.0.0.1", node.proxy_port), SECONDS)
        self._file = self._socket.makefile("rb")

    def send(self, *requests):
        self._socket.sendall(b"".join(requests))

    def receive(self, n):
        return self._file.read(n)

    def ask(self, api, correlation, body=b""):
        self.send(request(api, correlation, body))
        wanted = response(correlation, body)
        return self.receive(len(wanted)) == wanted

    def is_closed(self):
        with contextlib.suppress(ConnectionResetError):
            return self.receive(1) == b""
        return True

    def is_silent(self):
        return not select.select([self._socket], [], [], 0.2)[0]


@pytest.fixture
def client(proxies, node):
    return Client(node)


def test_large_bodies_pass_unchanged(client):
    for correlation in range(8):
        assert client.ask("Produce", correlation, os.urandom(4 << 20))


def test_lost_response_closes_its_connection_only(proxies, client, node, echo):
    rule = proxies.lose_response("EndTxn")
    client.send(request("Produce", 1), request("EndTxn", 2, NO_ERROR), request("Produce", 3))
    assert client.receive(8) == response(1) and client.is_closed()
    assert rule.wait(SECONDS) and 2 in echo.got
    assert Client(node).ask("EndTxn", 4) and rule.count == 1


def test_lost_response_can_keep_the_connection(proxies, client):
    proxies.lose_response("EndTxn", connection="keep")
    client.send(request("EndTxn", 1, NO_ERROR), request("Produce", 2))
    assert client.receive(8) == response(2)


def test_held_request_arrives_after_its_connection_is_closed(proxies, client, node, echo):
    rule = proxies.hold_request("EndTxn")
    client.send(request("EndTxn", 1, bytes(4) + b"\0\x2f"))
    assert client.is_closed() and Client(node).ask("EndTxn", 2)
    assert echo.got == [2] and rule.response is None
    rule.release()
    assert rule.wait_for_response(SECONDS).error == 47
    assert echo.got == [2, 1]


def test_held_request_blocks_later_requests(proxies, client):
    rule = proxies.hold_request("EndTxn", connection="keep")
    client.send(request("EndTxn", 1, NO_ERROR), request("Produce", 2))
    assert rule.wait(SECONDS) and client.is_silent()
    rule.release()
    assert client.receive(22) == response(1, NO_ERROR) + response(2)


def test_held_request_can_be_overtaken(proxies, client):
    rule = proxies.hold_request("EndTxn", connection="overtake")
    client.send(request("EndTxn", 1, NO_ERROR), request("Produce", 2))
    assert client.receive(8) == response(2)
    rule.release()
    assert client.receive(14) == response(1, NO_ERROR)


def test_rule_applies_to_matching_requests_only(proxies, client):
    rule = proxies.watch("Produce", match=lambda each: each.mentions("deliveries"), times=2)
    for correlation, body in enumerate((b"deliveries", b"events", b"deliveries", b"deliveries")):
        assert client.ask("Produce", correlation, body)
    assert [each.correlation for each in rule.requests] == [0, 2]


def test_delayed_response_arrives_late(proxies, client):
    begun = proxies.delay("Produce", 0.3, times=None)
    sent_at = time.monotonic()
    client.send(request("Produce", 1))
    assert begun.wait(SECONDS) and client.receive(8) == response(1)
    assert time.monotonic() - sent_at >= 0.3


def test_frozen_proxy_passes_nothing(proxies, client):
    assert client.ask("Produce", 1)
    proxies.freeze(1)
    client.send(request("Produce", 2))
    assert client.is_silent()
    proxies.thaw(1)
    assert client.receive(8) == response(2)


def test_cut_closes_all_connections(proxies, client, node):
    other = Client(node)
    assert client.ask("Produce", 1) and other.ask("Produce", 1)
    proxies.cut()
    assert client.is_closed() and other.is_closed() and Client(node).ask("Produce", 2)


def test_connection_is_closed_if_the_broker_is_down(client, node, echo):
    assert client.ask("Produce", 1)
    echo.shutdown()
    echo.server_close()
    assert Client(node).is_closed()


def test_wait_for_request_returns_a_seen_request(proxies, client):
    assert client.ask("Fetch", 1)
    seen = proxies.wait_for_request("Fetch", since=0, seconds=SECONDS)
    assert seen.correlation == 1
    assert proxies.wait_for_request("Fetch", since=seen.seconds + 1, seconds=0.1) is None
