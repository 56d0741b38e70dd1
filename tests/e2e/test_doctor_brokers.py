"""gatepost doctor: the brokers, up to the connection."""

import contextlib
import socket
import struct
import threading

import pytest
from cluster import Cluster

from authority import Authority
from checkup import EX_CONFIG, EX_UNAVAILABLE, by_sockets, examine, expect
from fake_service import FakeService
from installation import Installation
from preload import FakeClock


def trouble(installation, **kafka):
    """What it says about properties of [kafka]."""
    config = installation.config()
    config["kafka"].update({name.replace("__", "."): value for name, value in kafka.items()})
    return examine(installation, config)


def test_closed_port(offline):
    with socket.socket() as reserved:  # bound, but not listening
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        checkup = trouble(offline, bootstrap__servers=f"127.0.0.1:{port}")
    expect(checkup, EX_UNAVAILABLE, f"connect 127.0.0.1:{port}", "Connection refused", "bootstrap.servers")
    assert any(line.startswith("- client: needs what failed above (brokers)") for line in checkup.lines)
    assert any(line.startswith("- delivery: needs what failed above") for line in checkup.lines)


def test_unresolvable_name(offline):
    expect(trouble(offline, bootstrap__servers="kafka1.invalid:9092"), EX_UNAVAILABLE, "resolve kafka1.invalid", "DNS")


@pytest.mark.parametrize("address, family, found, number", [("127.0.0.1", "v6", "127.0.0.1", 6), ("[::1]", "V4", "[::1]", 4)])
def test_broker_without_an_address_of_the_configured_family(offline, address, family, found, number):
    checkup = trouble(offline, bootstrap__servers=f"{address}:9092", broker__address__family=family)
    expect(checkup, EX_CONFIG, f"{found}:9092 is no address of IPv{number}, but broker.address.family is {family.lower()}",
           "remedy: remove broker.address.family from [kafka], or name the broker in bootstrap.servers by a name that has such an address")


def test_one_broker_of_several_is_enough_to_go_on(shared, broker, healthy):
    config = by_sockets(shared)
    config["kafka"]["bootstrap.servers"] = f"kafka1.invalid:9092,{broker.bootstrap}"
    checkup = examine(shared, config, "--no-send")
    expect(checkup, EX_UNAVAILABLE, "resolve kafka1.invalid")
    assert any(line.startswith("✓ topic ") for line in checkup.lines)


def test_brokers_of_two_clusters(installation, broker):
    with Cluster() as other:
        config = by_sockets(installation)
        config["kafka"]["bootstrap.servers"] = f"{broker.bootstrap}, {other.bootstrap}"
        checkup = examine(installation, config)
    expect(checkup, EX_CONFIG, f"cluster {other.bootstrap}: this broker is of the cluster ", f"but {broker.bootstrap} is of the cluster ",
           "remedy: name only brokers of one cluster in bootstrap.servers of ")
    assert any(line.startswith("- client: needs what failed above (brokers)") for line in checkup.lines), checkup.lines


@pytest.mark.parametrize("address, cannot", [("kafka-internal.invalid:9092", "resolve kafka-internal.invalid"), (None, "connect 127.0.0.1:")])
def test_advertised_address_that_this_machine_cannot_reach(tmp_path, address, cannot):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = address or f"127.0.0.1:{reserved.getsockname()[1]}"
        with Cluster(properties={"advertised.listeners": f"PLAINTEXT://{address}"}) as cluster:
            installation = Installation(tmp_path, cluster.bootstrap)
            checkup = examine(installation, installation.config())
            installation.clean_up()
    expect(checkup, EX_UNAVAILABLE, cannot, "advertised.listeners", f"advertises {address}")
    assert f"✓ connect {cluster.bootstrap}: connected" in checkup.lines


def test_tls_to_a_port_without(offline, broker):
    expect(trouble(offline, bootstrap__servers=broker.bootstrap, security__protocol="ssl"), EX_CONFIG,
           f"tls {broker.bootstrap}", "does not speak TLS", "security.protocol = plaintext")


def test_login_at_a_port_without(offline, broker):
    config = offline.config()
    config["kafka"].update({"bootstrap.servers": broker.bootstrap, "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
                            "sasl.username": "gatepost", "sasl.password_file": config.secret_file("password", b"a password")})
    expect(examine(offline, config), EX_CONFIG, f"login {broker.bootstrap}", "security.protocol = plaintext")


def test_port_of_another_service(offline):
    with FakeService() as service:
        address = service.url.split("/")[2]
        expect(trouble(offline, bootstrap__servers=address), EX_UNAVAILABLE, f"kafka {address}", "no answer as from a broker of Kafka")


def test_listener_of_a_controller(offline, broker):
    address = f"127.0.0.1:{broker.nodes[1].controller_port}"
    checkup = trouble(offline, bootstrap__servers=address)
    expect(checkup, EX_CONFIG, f"kafka {address}: this is the listener of a KRaft controller",
           "remedy: set bootstrap.servers in [kafka] to the listener of the brokers", "controller.listener.names")
    assert not any(" login " in line for line in checkup.lines), checkup.lines


# Certificates

@pytest.fixture
def ending(offline, tmp_path):
    """A router and a port with TLS, whose certificate is valid for longer than the authority that issued it."""
    authority = Authority(tmp_path)
    with FakeService(*authority.issue("broker", names="IP:127.0.0.1", days=60)) as service:
        config = offline.config("router")
        config["kafka"].update({"bootstrap.servers": service.url.split("/")[2], "security.protocol": "ssl",
                                "ssl.ca.location": authority.certificate})
        yield authority, config


def test_authority_of_the_brokers_that_ends_soon_is_a_warning(offline, ending):
    (warning,) = [line for line in examine(offline, ending[1]).having("!") if line.startswith("! tls ")]
    assert "certificate verified; the certificate of the authority /CN=authority of the tests expires in " in warning, warning


def test_authority_of_the_own_certificate_that_ends_soon_is_a_warning(offline, ending):
    """Its certificate is behind the own one in the file."""
    authority, config = ending
    certificate, key = authority.issue("gatepost", days=60)
    certificate.write_text(certificate.read_text() + authority.certificate.read_text())
    key.chmod(0o600)
    config["kafka"].update({"ssl.certificate.location": certificate, "ssl.key.location": key})
    (warning,) = [line for line in examine(offline, config).having("!") if line.startswith("! certificate ")]
    assert warning.startswith(f"! certificate {certificate}: the certificate of the authority /CN=authority of the tests expires in ")


def test_authority_of_the_brokers_that_has_expired_is_named(offline, ending, plain_build):
    """Three days later."""
    daemon = offline.daemon(ending[1])
    FakeClock(daemon).set(3 * 86400)
    offline.build = plain_build
    expect(examine(offline, daemon.config, environment=daemon.environment), EX_UNAVAILABLE, "tls ",
           "the certificate of the authority /CN=authority of the tests expired at ", "renew that certificate at the brokers")


# Nonsense

def answer_once(server, answer):
    """Read one request of Kafka's protocol, and send these bytes."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        connection.recv(65536)
        connection.sendall(answer)
        connection.recv(1)


HOSTILE = [b"", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\4\0\0\0\2", b"\0\0\0\4\0\0\0\1", b"HTTP/1.1 400 Bad\r\n\r\n",
           b"\x15\x03\x03\0\2\2\x46"]


@pytest.mark.parametrize("answer", HOSTILE, ids=[each.hex() or "closed" for each in HOSTILE])
def test_nonsense_from_a_broker(offline, answer):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_once, args=(server, answer), daemon=True).start()
        config = offline.config()
        config["kafka"]["bootstrap.servers"] = address = "%s:%d" % server.getsockname()
        checkup = examine(offline, config)
    expect(checkup, EX_UNAVAILABLE, f"kafka {address}", "no answer as from a broker of Kafka", "limits connections (max.connections")


def refuse_login(server, code):
    """Answer ApiVersions without an error, and SaslHandshake with this one."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        for body in (struct.pack(">hi", 0, 0), struct.pack(">hi", code, 0)):
            connection.recv(65536)
            connection.sendall(struct.pack(">ii", 4 + len(body), 1) + body)
        connection.recv(1)


def test_login_that_fails_by_an_unknown_error_names_it(offline):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=refuse_login, args=(server, -1), daemon=True).start()
        config = offline.config()
        config["kafka"].update({"bootstrap.servers": "%s:%d" % server.getsockname(), "security.protocol": "sasl_plaintext",
                                "sasl.mechanism": "PLAIN", "sasl.username": "gatepost",
                                "sasl.password_file": config.secret_file("password", b"a password")})
        expect(examine(offline, config), EX_UNAVAILABLE, "login 127.0.0.1:", ": the broker answers: Unknown broker error")
