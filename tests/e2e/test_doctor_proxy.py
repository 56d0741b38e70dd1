"""A proxy before the receiver that is no trusted_proxy: in /status and the log, and what gatepost doctor says about it."""

import socket

import pytest

import http_client
from authority import Authority
from checkup import by_sockets, examine, file_of, passed_on, serve, status_of
from raw_tls import proxy_header, whole
from reloading import reload
from signing import Delivery

PATH = "/webhooks/invoicing"
FORWARDED = {"x-forwarded-for": "198.51.100.1"}
LINE = "deliveries come through a proxy that is no trusted_proxy"


def post(address, delivery=None, headers=FORWARDED, **options):
    delivery = delivery or Delivery()
    return http_client.request(address, "POST", PATH, delivery.headers() | headers, delivery.body, **options).status


def proxy_of(daemon):
    """The address of the proxy in /status."""
    proxy = status_of(daemon)["untrustedProxy"]
    return proxy and proxy["address"]


def examine_proxies(daemon, installation, *arguments):
    """The lines of doctor about proxies."""
    checkup = examine(installation, file_of(daemon), *arguments)
    assert checkup.status == 0, checkup.lines
    return [line for line in checkup.lines if line[2:].startswith("proxy ")]


@pytest.fixture
def start(installation):
    """A function that starts a receiver on 127.0.0.1 and a socket, with options."""
    installation.create_topics()

    def run(**options):
        config = by_sockets(installation)
        config["receiver"]["listen"] = ["127.0.0.1:0", config["receiver"]["listen"]]
        config["receiver"].update(options)
        return installation.start(config)
    return run


def test_only_a_genuine_delivery_shows_a_proxy(start):
    """Anybody can send the header."""
    daemon = start(trusted_proxy="10.0.0.0/8", threads="2")
    assert post(daemon.address, Delivery(secret=b"another secret, long enough as well")) == 401
    assert post(daemon.address, headers={}) == 200
    assert proxy_of(daemon) is None and LINE not in daemon.log
    for _ in range(10):
        assert post(daemon.address) == 200
    assert proxy_of(daemon) == "127.0.0.1"
    (line,) = [line for line in daemon.log.splitlines() if LINE in line]
    assert " warning " in line and "proxy=127.0.0.1" in line and "remedy=" in line


def test_reload_that_adds_the_proxy_removes_it(installation, start):
    daemon = start(trusted_proxy="10.0.0.0/8")
    assert post(daemon.address) == 200 and proxy_of(daemon) == "127.0.0.1"
    daemon.config["receiver"]["trusted_proxy"] = ["10.0.0.0/8", "127.0.0.1"]
    reload(daemon)
    assert proxy_of(daemon) is None and examine_proxies(daemon, installation) == []
    assert post(daemon.address) == 200 and proxy_of(daemon) is None


@pytest.mark.parametrize("trusted, proxy", [("127.0.0.1", "unix"), ("unix", None)])
def test_proxy_on_a_unix_socket(start, trusted, proxy):
    daemon = start(trusted_proxy=trusted)
    assert post(daemon.config["receiver"]["listen"][1]) == 200
    assert proxy_of(daemon) == proxy


def test_proxy_that_speaks_tls(start, tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server")
    daemon = start(trusted_proxy="10.0.0.0/8", tls_certificate_file=certificate, tls_key_file=key)
    assert post(daemon.address, tls=authority.client()) == 200
    assert proxy_of(daemon) == "127.0.0.1"


@pytest.mark.parametrize("forwarded", ["192.0.2.7", "198.51.100.1"])
def test_clients_of_the_proxy_protocol_are_no_proxies(start, forwarded):
    """HAProxy may name the client in both ways, and another proxy may be before it."""
    daemon = start(trusted_proxy="127.0.0.1", proxy_protocol="required")
    request = whole(Delivery(), "connection: close", f"x-forwarded-for: {forwarded}")
    assert http_client.raw(daemon.address, proxy_header("192.0.2.7") + request).status == 200 and proxy_of(daemon) is None


@pytest.mark.parametrize("options, mark", [({"trusted_proxy": "10.0.0.0/8"}, "!"), ({"max_refusals_per_address": "10"}, "!"),
                                           ({"max_connections_per_address": "10"}, "!"), ({}, "•")], ids=["other", "refusals", "connections", "none"])
def test_doctor_finds_the_proxy_by_its_own_delivery(installation, start, options, mark):
    """Without a proxy and without limits by address, it may be meant so."""
    daemon = start(**options)
    assert examine_proxies(daemon, installation) == []
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: passed_on(request.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n", 1), daemon))
        (line,) = examine_proxies(daemon, installation, "--to", "http://%s:%d" % server.getsockname())
    assert line.startswith(f"{mark} proxy 127.0.0.1: deliveries come through this proxy, the last "), line
    assert line.endswith("; set trusted_proxy in [receiver] to 127.0.0.1, or to the network of your proxies, then: systemctl reload gatepostd"), line


def test_doctor_finds_a_proxy_on_a_unix_socket(installation, start):
    daemon = start(trusted_proxy="127.0.0.1")
    assert post(daemon.config["receiver"]["listen"][1]) == 200
    (line,) = examine_proxies(daemon, installation, "--no-send")
    assert line.startswith("! proxy unix: ") and "; set trusted_proxy in [receiver] to unix, then: " in line, line
