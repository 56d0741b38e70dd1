"""Deliveries over TLS: admission, refusals, and answers that clients can read."""

import contextlib
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import warnings
import xml.etree.ElementTree

import pytest

import http_client
import waiting
from authority import EC, RSA, Authority
from raw_tls import PATH, RawTls, head, proxy_header, whole
from signing import Delivery, event_body
from test_edge_slow import cpu_seconds
from tls_records import HANDSHAKE, KEY_UPDATE, TlsRecords

OLD_AND_NEW = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module", autouse=True)
def topics(shared):
    shared.create_topics()


@pytest.fixture(scope="module")
def daemon(shared, authority):
    config = shared.config("receiver").tls(*authority.issue("gateway"))
    config["receiver"].update({"handshake_timeout": "2s", "header_timeout": "2s", "request_timeout": "4s", "threads": 2})
    return shared.start(config)


@pytest.fixture(scope="module")
def strict(shared, authority, daemon):
    """A daemon that requires client certificates."""
    config = shared.config("receiver").tls(*authority.issue("strict"))
    config["receiver"]["tls_client_ca_file"] = authority.certificate
    return shared.start(config)


@pytest.fixture
def tls(authority):
    return authority.client()


def read_to_the_end(connection):
    """Read until the server sends close_notify."""
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received


def read_until(connection, end):
    """Read until these bytes have been received."""
    received = b""
    while end not in received:
        piece = connection.recv(65536)
        assert piece, received
        received += piece
    return received


# Admission

@pytest.mark.parametrize("version", OLD_AND_NEW, ids=["1.2", "1.3"])
def test_delivery_is_accepted_over_tls(daemon, authority, version):
    tls = authority.client(version=version)
    daemon.accept(tls=tls)
    client = http_client.Client(daemon.address, tls=tls)
    for _ in range(3):
        delivery = Delivery()
        assert client.request("POST", PATH, delivery.headers(), delivery.body).status == 200
    client.close()


def test_tls_1_1_is_refused(daemon, authority):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = authority.client(version=ssl.TLSVersion.TLSv1_1)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        http_client.connect(daemon.address, tls=old)


def test_plain_http_is_not_answered(daemon, tls):
    with http_client.connect(daemon.address) as connection:
        connection.sendall(whole(Delivery()))
        try:
            assert not connection.recv(65536).startswith(b"HTTP")
        except ConnectionResetError:
            pass
    daemon.wait_for_log("TLS handshakes failed")
    daemon.accept(tls=tls)


def test_failed_handshakes_are_logged_by_reason(offline, authority):
    daemon = offline.daemon(offline.config("receiver").tls(*authority.issue("summed"))).start()
    for _ in range(2):
        with http_client.connect(daemon.address) as connection:
            connection.sendall(whole(Delivery()))
            with contextlib.suppress(ConnectionResetError):
                connection.recv(100)
    with http_client.connect(daemon.address) as connection:
        with pytest.raises(ssl.SSLError):
            ssl.create_default_context().wrap_socket(connection, server_hostname="localhost")  # trusts another authority
    for reason in "a client spoke HTTP without TLS; its URL, or the proxy before this receiver, must use https", "unknown ca":
        line = daemon.wait_for_log(reason)
        assert " TLS handshakes failed " in line and " client=127.0.0.1" in line


@pytest.mark.parametrize("header", [b"PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n", proxy_header("192.0.2.7")], ids=["v1", "v2"])
def test_proxy_protocol_that_is_not_expected_is_named(offline, authority, header):
    """OpenSSL calls it a wrong version number, as it does other bytes."""
    daemon = offline.daemon(offline.config("receiver").tls(*authority.issue("proxied"))).start()
    reason = "a PROXY protocol header, but proxy_protocol is off"
    for preface in b"SSH-2.0-OpenSSH_9.2\r\n", header:
        with contextlib.suppress(OSError), contextlib.closing(RawTls(daemon.address, authority.client(), preface=preface)):
            pass
        line = daemon.wait_for_log(reason if preface == header else "wrong version number")
        assert " TLS handshakes failed " in line and " client=127.0.0.1" in line and (reason in line) == (preface == header)
    waiting.until(lambda: f"the TLS handshake with 127.0.0.1 failed: {reason}" in [each["detail"] for each in daemon.admin("/status").json["refusals"]], 30,
                  "the failed handshake in /status")


def test_alpn_selects_http_1_1_and_tolerates_other_offers(daemon, authority):
    for offered, chosen in ((["h2", "http/1.1"], "http/1.1"), (["h2"], None)):
        tls = authority.client()
        tls.set_alpn_protocols(offered)
        with http_client.connect(daemon.address, tls=tls) as connection:
            assert connection.selected_alpn_protocol() == chosen
        daemon.accept(tls=tls)


def test_sessions_are_not_resumed(daemon, authority):
    for version in OLD_AND_NEW:
        tls = authority.client(version=version)
        with http_client.connect(daemon.address, tls=tls) as connection:
            connection.sendall(whole(Delivery(), "connection: close"))
            assert read_to_the_end(connection).startswith(b"HTTP/1.1 200 ")
            session = connection.session
        assert not session.has_ticket
        if not session.id:
            continue
        with tls.wrap_socket(http_client.connect(daemon.address), server_hostname="localhost", session=session) as again:
            assert not again.session_reused


def test_configured_certificate_is_served(daemon, tls):
    with http_client.connect(daemon.address, tls=tls) as connection:
        assert connection.getpeercert()["subject"] == ((("commonName", "gateway"),),)


@pytest.mark.skipif(shutil.which("sslscan") is None, reason="sslscan is not installed")
@pytest.mark.parametrize("algorithm", [EC, RSA], ids=["ec", "rsa"])
def test_sslscan_finds_no_weak_settings(shared, authority, daemon, algorithm):
    if algorithm == RSA:
        daemon = shared.start(shared.config("receiver").tls(*authority.issue("rsa", algorithm=RSA)))
    scan = xml.etree.ElementTree.fromstring(subprocess.run(["sslscan", "--xml=-", daemon.address], check=True, timeout=60,
                                                           capture_output=True, stdin=subprocess.DEVNULL).stdout)
    enabled = {(each.get("type"), each.get("version")) for each in scan.iter("protocol") if each.get("enabled") == "1"}
    assert enabled == {("tls", "1.2"), ("tls", "1.3")}
    suites = {each.get("cipher") for each in scan.iter("cipher")}
    assert len(suites) == 6
    assert all(suite.startswith(("TLS_AES_", "TLS_CHACHA20_", "ECDHE-")) for suite in suites)
    assert all("GCM" in suite or "CHACHA20" in suite for suite in suites)
    assert all(int(each.get("bits")) >= 128 for each in scan.iter("cipher"))
    assert {each.get("name") for each in scan.iter("group")} == {"x25519", "secp256r1 (NIST P-256)",
                                                                 "secp384r1 (NIST P-384)"}
    assert all(each.get("vulnerable") == "0" for each in scan.iter("heartbleed"))
    assert {each.get("supported") for each in scan.iter("renegotiation")} == {"0"}


# Clients' certificates

@pytest.mark.parametrize("version", OLD_AND_NEW, ids=["1.2", "1.3"])
def test_client_with_a_trusted_certificate_is_accepted(strict, authority, version):
    strict.accept(tls=authority.client(*authority.issue("client"), version=version))


@pytest.mark.parametrize("version", OLD_AND_NEW, ids=["1.2", "1.3"])
@pytest.mark.parametrize("certificate", ["none", "another authority", "expired"])
def test_client_without_a_trusted_certificate_is_refused(strict, authority, tmp_path, version, certificate):
    other = Authority(tmp_path).issue("client") if certificate == "another authority" else ()
    if certificate == "expired":
        other = authority.issue("old-client", begin="20200101000000Z", end="20200102000000Z")
    requests = strict.metric("gatepost_requests_total")
    tls = authority.client(*other, version=version)
    with pytest.raises((ssl.SSLError, ConnectionResetError, BrokenPipeError)):
        strict.post(tls=tls)
    assert strict.metric("gatepost_requests_total") == requests
    strict.wait_for_log("TLS handshakes failed")


# Faulty clients

def test_endless_handshake_times_out(daemon, tls):
    begun = time.monotonic()
    slow = [http_client.connect(daemon.address) for _ in range(20)]
    drip = iter(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))
    open_ones = set(slow)
    while open_ones:
        daemon.accept(tls=tls)
        byte = bytes([next(drip)])
        for connection in list(open_ones):
            try:
                connection.sendall(byte)
                connection.settimeout(0.001)
                if connection.recv(1) == b"":
                    open_ones.discard(connection)
            except TimeoutError:
                pass
            except (ConnectionResetError, BrokenPipeError):
                open_ones.discard(connection)
        assert time.monotonic() - begun < 30
    assert time.monotonic() - begun >= 2
    daemon.wait_for_log("TLS handshakes were not done in time")
    for connection in slow:
        connection.close()


def test_stalled_handshakes_are_closed_at_the_limit(shared, authority, daemon, tls):
    config = shared.config("receiver").tls(*authority.issue("small"))
    config["receiver"].update({"max_connections": 10, "handshake_timeout": "60s"})
    small = shared.start(config)
    silent = [http_client.connect(small.address) for _ in range(30)]
    for _ in range(5):
        small.accept(tls=tls)
    for connection in silent:
        connection.close()


def test_renegotiation_is_refused(daemon, authority, tls):
    done = subprocess.run(["openssl", "s_client", "-connect", daemon.address, "-CAfile", authority.certificate, "-tls1_2"],
                          input="R\n", capture_output=True, text=True, timeout=30)
    output = done.stdout + done.stderr
    assert "RENEGOTIATING" in output and "no renegotiation" in output, output
    daemon.accept(tls=tls)


def test_invalid_record_closes_only_its_connection(daemon, tls):
    with http_client.connect(daemon.address) as plain:
        with tls.wrap_socket(plain.dup(), server_hostname="localhost") as connection:
            connection.sendall(b"POST ")
            plain.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            with pytest.raises(OSError):
                connection.recv(1)
    daemon.wait_for_log("TLS sessions broke")
    daemon.accept(tls=tls)


@pytest.mark.parametrize("version", OLD_AND_NEW, ids=["1.2", "1.3"])
@pytest.mark.parametrize("beginning", [
    b"POST /webhooks/invoicing HTTP/1.1\r\nhost: a\r\nx-long: " + b"a" * 5000,
    head(Delivery(), "content-length: 500000") + b"b" * 5000,
    head(Delivery(), "transfer-encoding: chunked") + b"fffff\r\n" + b"c" * 5000,
    b"GET / HTTP/1.1\r\nhost a\r\n\r\n" + b"d" * 5000,
], ids=["head", "body", "chunk", "refused"])
def test_close_notify_in_one_segment_with_data_is_handled(daemon, authority, version, beginning):
    """libevent 2.1.12 reports the close_notify before it passes on the data read just before."""
    for _ in range(10):
        client = RawTls(daemon.address, authority.client(version=version))
        client.write(beginning).send()
        client.write(b"e").close_notify().send()
        client.wait_for_end()
    for pieces in range(1, 6):
        client = RawTls(daemon.address, authority.client(version=version))
        for _ in range(pieces):
            client.write(beginning[:4000])
        client.close_notify().send()
        client.wait_for_end()
    assert daemon.is_running(), daemon.last_log(8000)
    daemon.accept(tls=authority.client())


# Behind a proxy that passes TLS through

@pytest.mark.parametrize("cut", [None, 1, 13, 27], ids=["whole", "after 1", "after 13", "after 27"])
@pytest.mark.parametrize("header", [proxy_header("198.51.100.7"), b""], ids=["with", "without"])
def test_proxy_header_before_the_handshake_names_the_client(shared, authority, daemon, tls, header, cut):
    config = shared.config("receiver").tls(*authority.issue("behind"))
    config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required" if header else "off"})
    behind = shared.start(config)
    for _ in range(3):
        with http_client.connect(behind.address) as plain:
            for piece in (header[:cut], header[cut:]) if cut and header else (header,):
                plain.sendall(piece)
            connection = tls.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
            for _ in range(2):
                delivery = Delivery()
                connection.sendall(whole(delivery))
                assert read_until(connection, delivery.delivery_id.encode()).startswith(b"HTTP/1.1 200 ")
            connection.sendall(b"GET /nothing HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            assert read_to_the_end(connection).startswith(b"HTTP/1.1 404 ")
            connection.close()
    behind.wait_for_log(f"client={'198.51.100.7' if header else '127.0.0.1'}")


def test_handshake_behind_a_proxy_times_out(shared, authority, daemon):
    config = shared.config("receiver").tls(*authority.issue("slow"))
    shared.create_topics(config)
    config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required", "handshake_timeout": "1s"})
    behind = shared.start(config)
    with http_client.connect(behind.address) as connection:
        connection.sendall(proxy_header("198.51.100.8") + b"\x16\x03\x01")
        assert connection.recv(1) == b""
    assert behind.wait_for_log("TLS handshakes were not done in time").endswith(" client=198.51.100.8")


# Answers

def test_connection_ends_with_close_notify(daemon, tls):
    with http_client.connect(daemon.address, tls=tls) as connection:
        connection.sendall(whole(Delivery(), "connection: close"))
        assert read_to_the_end(connection).startswith(b"HTTP/1.1 200 ")


def test_answer_is_not_delayed_by_nagle(daemon, tls):
    """Headers and body are separate TLS records; Nagle's algorithm would delay the second by 40 ms."""
    seconds = []
    with http_client.connect(daemon.address, tls=tls) as connection:
        for _ in range(50):
            begun = time.monotonic()
            connection.sendall(b"GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n")
            read_until(connection, b"}}")
            seconds.append(time.monotonic() - begun)
    assert min(seconds[10:]) < 0.03


def test_large_body_is_stored_whole(shared, daemon, tls):
    sizes = (10_000, 100_000, 1_000_000)
    sent = [daemon.accept(Delivery(event_body(padding="x" * size)), tls=tls) for size in sizes]
    sent.append(daemon.accept(Delivery(event_body(padding="y" * 500_000)), tls=tls, chunked=True))
    stored = {record.key.decode(): record.value for record in shared.kafka.read(shared.kafka.deliveries)}
    assert all(stored[delivery.delivery_id] == delivery.body for delivery in sent)


def test_pipelined_requests_are_answered_in_order(daemon, tls):
    deliveries = [Delivery() for _ in range(20)]
    with http_client.connect(daemon.address, tls=tls) as connection:
        connection.sendall(b"".join(map(whole, deliveries[:-1])) + whole(deliveries[-1], "connection: close"))
        answer = read_to_the_end(connection)
    assert answer.count(b"HTTP/1.1 200 ") == 20
    places = [answer.index(delivery.delivery_id.encode()) for delivery in deliveries]
    assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.parametrize("version", OLD_AND_NEW, ids=["1.2", "1.3"])
def test_slowly_read_answers_arrive_whole_and_in_order(shared, authority, version):
    """The daemon writes what the socket accepts and sleeps until it accepts more."""
    config = shared.config("receiver").tls(*authority.issue("slow"))
    shared.create_topics(config)
    config["receiver"].update({"request_timeout": "60s", "header_timeout": "60s"})
    daemon = shared.start(config)
    number, counted = 40000, lambda: daemon.metric("gatepost_requests_total")
    client = RawTls(daemon.address, authority.client(version=version))
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    for n in range(number):
        client.write(b"POST /%s HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (b"x" * (n % 7), n % 50, b"b" * (n % 50)))
    client.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    sender = threading.Thread(target=client.send)
    sender.start()
    waiting.until(lambda: 0 < counted() == (time.sleep(0.5), counted())[1], 60, "the daemon to stop writing")
    assert counted() < number
    before = cpu_seconds(daemon)
    time.sleep(1)  # the measured interval
    assert cpu_seconds(daemon) - before < 0.5
    received = b"".join(iter(client.read, b""))
    sender.join()
    client.close()
    assert received.count(b"HTTP/1.1 404 ") == number + 1
    assert received.count(b'"requestId":"') == len(set(re.findall(rb'"requestId":"(\w+)"', received))) == number + 1


@pytest.fixture
def own_records(authority, tmp_path):
    """A context for TlsRecords."""
    tls = authority.client()
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.keylog_filename = str(tmp_path / "keys")
    return tls


def reads_and_writes(daemon, seconds=1.5):
    """How often the daemon calls read() and write() in that time. OpenSSL does so in every iteration of a spinning loop."""
    def count():
        lines = pathlib.Path(f"/proc/{daemon.process.pid}/io").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("syscr", "syscw")))
    before = count()
    time.sleep(seconds)
    return count() - before


def test_answer_waits_for_a_half_handshake_message_without_spinning(daemon, own_records):
    """OpenSSL writes nothing between the parts of a handshake message. The answer follows once the message is complete."""
    client = TlsRecords(daemon.address, own_records)
    client.socket.sendall(client.record(whole(Delivery())[:40]) + client.record(KEY_UPDATE[:4], HANDSHAKE))
    time.sleep(2.1)  # header_timeout: 408 is due
    assert reads_and_writes(daemon) < 1000
    client.socket.sendall(client.record(KEY_UPDATE[4:], HANDSHAKE))
    assert client.read().startswith(b"HTTP/1.1 408 ")
    client.close()


def test_key_updates_with_unread_answers_do_not_spin(offline, authority, own_records, tmp_path):
    """Each requests a KeyUpdate in return. The buffer of a Unix-domain socket is soon full."""
    config = offline.config("receiver").tls(*authority.issue("gateway"))
    config["receiver"]["listen"] = f"unix:{tmp_path}/socket"
    daemon = offline.daemon(config).start()
    client = TlsRecords(daemon.address, own_records)
    client.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        for _ in range(100_000):
            client.socket.sendall(client.key_update())
    assert reads_and_writes(daemon) < 1000
    client.close()


def test_request_before_a_refused_one_is_answered(daemon, tls):
    delivery = Delivery()
    with http_client.connect(daemon.address, tls=tls) as connection:
        connection.sendall(whole(delivery) + b"nonsense\r\n\r\n")
        answers = read_to_the_end(connection)
    assert answers.startswith(b"HTTP/1.1 200 ") and delivery.delivery_id.encode() in answers
    assert answers.count(b"HTTP/1.1 400 ") == 1 and answers.endswith(b"}}")


@pytest.mark.parametrize("version", OLD_AND_NEW, ids=["1.2", "1.3"])
@pytest.mark.parametrize("status, request_bytes", [
    (400, head(Delivery(), "content-length: 5", "content-length: 6") + b"12345"),
    (413, head(Delivery(), "content-length: 4000000") + bytes(1_000_000)),
    (408, head(Delivery(), "content-length: 5") + b"123"),
    (408, b"POST / HTTP/1.1\r\nhost: a\r\nx-slow: "),
], ids=["400", "413", "408 in the body", "408 in the head"])
def test_refusal_is_received_completely(daemon, authority, version, status, request_bytes):
    with http_client.connect(daemon.address, tls=authority.client(version=version)) as connection:
        with contextlib.suppress(OSError):  # the daemon keeps reading for a second only
            connection.sendall(request_bytes)
        answer = read_to_the_end(connection)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()) and answer.endswith(b"}}")


def test_413_is_received_by_a_client_that_keeps_sending(daemon, tls):
    with http_client.connect(daemon.address, tls=tls) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(head(Delivery(), "content-length: 4000000") + bytes(2_000_000))
            connection.sendall(bytes(2_000_000))
        assert read_to_the_end(connection).startswith(b"HTTP/1.1 413 ")


def test_delivery_is_stored_when_the_client_sends_close_notify_immediately(shared, daemon, tls):
    delivery = Delivery()
    with http_client.connect(daemon.address, tls=tls) as connection:
        connection.sendall(whole(delivery))
        with contextlib.suppress(ssl.SSLError):  # Python raises an error if the answer arrives after close_notify
            connection.unwrap()
    waiting.until(lambda: delivery.delivery_id in [record.key.decode() for record in
                                                   shared.kafka.read(shared.kafka.deliveries)], 30, "the delivery")


def test_shutdown_ends_open_connections_with_close_notify(shared, authority, tls):
    other = shared.start(shared.config("receiver").tls(*authority.issue("ending")))
    idle = [http_client.connect(other.address, tls=tls) for _ in range(5)]
    other.stop()
    for connection in idle:
        assert read_to_the_end(connection) == b""
        connection.close()


def test_idle_connection_ends_with_close_notify(shared, authority, tls):
    config = shared.config("receiver").tls(*authority.issue("idle"))
    config["receiver"]["idle_timeout"] = "1s"
    with http_client.connect(shared.start(config).address, tls=tls) as connection:
        assert read_to_the_end(connection) == b""


def test_many_concurrent_clients_are_served(shared, authority, tls):
    config = shared.config("receiver").tls(*authority.issue("many"))
    config["receiver"]["threads"] = 2
    busy = shared.start(config)
    failed = []

    def run():
        try:
            for _ in range(10):
                busy.accept(tls=tls)
        except Exception as error:
            failed.append(error)
    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
