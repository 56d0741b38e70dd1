"""Memory, descriptors and disk space run out: no wrong 200, and every accepted delivery is published once.

A preloaded allocator fails allocations, which needs a build without sanitizers: tests/run creates it in build/plain, and
GATEPOST_PLAIN_BUILD names another."""

import contextlib
import http.client

import pytest

import http_client
import preload
import scarcity
import waiting
from authority import Authority
from installation import BUILD
from raw_tls import RawTls, whole
from signing import Delivery


def assert_clean(report):
    print(report)
    assert report.is_clean and report.passes, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, preload.FOREVER], ids=["one", "all that follow"])
def test_failing_allocations_lose_nothing(broker, plain_build, n):
    assert_clean(scarcity.own_allocations(broker, plain_build, n=n))


@pytest.mark.parametrize("n", [1, 20])
def test_failing_openssl_allocations_do_not_crash_the_daemon(offline, plain_build, n):
    """A session that cannot be created completely is not served."""
    offline.build = plain_build
    config = offline.config("receiver")
    authority, failing = Authority(config.directory), preload.FailMalloc(config.directory)
    daemon = offline.daemon(config.tls(*authority.issue("gateway")))
    daemon.environment.update(failing.environment)
    daemon.start()
    tls, failed = authority.client(), 0

    def answer():
        client = RawTls(daemon.address, tls)
        try:
            client.write(whole(Delivery(), "connection: close")).send()
            return client.read()
        finally:
            client.close()
    assert b" 503 " in answer()
    for first in range(1, 80):
        failing.arm("libcrypto", first, n)
        with contextlib.suppress(OSError):
            answer()
        failing.disarm()
        failed += failing.failed > 0
        assert daemon.is_running(), (first, failing.place, daemon.last_log(2000))
        assert b" 503 " in answer()
    assert failed > 50


def test_failing_libevent_allocations_do_not_crash_the_daemon(offline, plain_build):
    """libevent frees an incomplete connection if it has no memory for its address."""
    offline.build = plain_build
    config = offline.config("receiver")
    config["receiver"].update({"max_connections": 3, "max_body": "64KiB", "max_in_flight": "96KiB"})
    failing = preload.FailMalloc(config.directory)
    daemon = offline.daemon(config)
    daemon.environment.update(failing.environment)
    daemon.start()
    half = (b"POST /webhooks/invoicing HTTP/1.1\r\nhost: a\r\nx-a: " + b"a" * 3000 + b"\r\ntransfer-encoding: chunked\r\n\r\n"
            b"7000\r\n" + b" " * 0x6000)
    failed = 0
    assert daemon.post().status == 503
    # The number of allocations for a connection depends on the thread's pool: repeat until enough have failed.
    for first in [n for _ in range(10) for n in range(1, 16) for _ in range(3)]:
        if failed > 10 and first == 1:
            break
        failing.arm("libevent", first, 8)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError, http.client.HTTPException):
            for _ in range(3):  # so that no connection reuses freed memory of another
                connection = held.enter_context(http_client.connect(daemon.address, 1))
                connection.sendall(half)
            daemon.post(timeout=1)
        failing.disarm()
        failed += failing.failed > 0
        assert daemon.is_running(), (first, failing.place, daemon.last_log(2000))
    assert failed > 10
    waiting.until(lambda: daemon.post().status == 503, 20, "an answer")


def test_admin_endpoint_accepts_again_after_memory_is_available(offline, plain_build):
    """Also if the timer that ends a pause in accepting could not be allocated: the heap of timers grows with the connections."""
    offline.build = plain_build
    config = offline.config("receiver")
    failing = preload.FailMalloc(config.directory)
    daemon = offline.daemon(config)
    daemon.environment.update(failing.environment)
    daemon.start()
    address = daemon._addresses("admin")[0]
    for n, first in [(n, first) for n in (3, 7, 15) for first in range(1, 7)]:
        with contextlib.ExitStack() as held:
            for _ in range(n):
                client = http_client.Client(address)
                held.callback(client.close)
                assert client.request("GET", "/healthz").status == 200
            failing.arm("libevent", first, preload.FOREVER)
            with contextlib.suppress(OSError, AssertionError):
                for _ in range(2):
                    held.enter_context(http_client.connect(address, 1))
                waiting.until(lambda: failing.failed > 1, 1, "allocations to fail")
            failing.disarm()
        assert http_client.request(address, "GET", "/healthz").status == 200, (n, first, daemon.last_log(2000))


def test_incomplete_requests_are_closed_when_descriptors_run_out(broker):
    assert_clean(scarcity.descriptors(broker, BUILD))


def test_full_log_disk_loses_nothing(broker):
    assert_clean(scarcity.full_log(broker, BUILD))


@pytest.mark.slow
@pytest.mark.skipif(not scarcity.may_mount(), reason="mounting a small disk is not permitted")
def test_full_kafka_disk_neither_loses_nor_duplicates_events():
    assert_clean(scarcity.full_kafka_disk(None, BUILD))


def test_libevent_warnings_are_logged_in_the_log_format(offline, plain_build):
    """Connections that libevent cannot watch are closed at their deadline; they are logged once a second."""
    offline.build = plain_build
    config = offline.config("receiver")
    config["receiver"].update({"listen": ["127.0.0.1:0", "[::1]:0"], "idle_timeout": "1s"})
    daemon = offline.daemon(config)
    daemon.environment["LD_PRELOAD"] = str(preload.build("no_watches", config.directory))
    daemon.start()
    _, unwatched = daemon.addresses
    connections = [http_client.connect(unwatched) for _ in range(20)]
    assert all(connection.recv(100) == b"" for connection in connections)
    assert http_client.request(daemon.address, "GET", "/nothing").status == 404
    daemon.stop()
    assert 'libevent warning reason="Epoll ADD' in daemon.log
    assert len(daemon.log_messages()) == len(daemon.log.splitlines()) < 20
