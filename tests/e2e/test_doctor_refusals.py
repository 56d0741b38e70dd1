"""gatepost doctor: deliveries and connections that the receiver has refused."""

import contextlib
import json
import re
import socket
import ssl
import time

import pytest

import http_client
import waiting
from authority import Authority
from checkup import (EX_CONFIG, EX_UNAVAILABLE, OTHER_SECRET, change_path, change_secret, examine, expect, file_of, status_of,
                     with_status)
from signing import Delivery, event_body


def without_ages(line):
    return re.sub(r" \d+[a-z]+( \d+[a-z]+)? ago: ", ": ", line)


def refusals_of(checkup):
    return [without_ages(line) for line in checkup.lines if line[2:].startswith("refusals")]


def is_without_refusals(checkup):
    (line,) = refusals_of(checkup)
    return re.fullmatch(r"✓ refusals: no delivery refused since the start of gatepostd \d+(s|min) ago", line)


@pytest.mark.parametrize("uptime_s, period", [(70, r"since the start of gatepostd [7-9]\ds ago"), (3700, "within an hour")])
def test_restart_forgets_what_was_refused_or_quarantined_before(offline, service, uptime_s, period):
    """So a tick says of what time it is. Kafka, which would know of quarantine, is not there."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    lines = with_status(offline, service, file := str(config.write()), {"file": file}, startTimeSeconds=int(time.time()) - uptime_s, refusals=[],
                        recentlyQuarantined=[], deletedBeforeRouting={"count": 0}).lines
    for tick in ("refusals: no delivery refused", "quarantine: no delivery quarantined by this router", "losses: this router has found no delivery lost"):
        assert any(re.fullmatch(f"✓ {tick} {period}", line) for line in lines), lines


def test_refused_deliveries_are_a_warning(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    assert is_without_refusals(checkup) and not checkup.having("!")
    assert any(line.startswith("✓ listen ") and line.endswith(": gatepostd answers") for line in checkup.lines)
    for _ in range(2):
        assert daemon.post(Delivery(secret=OTHER_SECRET)).status == 401
    checkup = examine(installation, file_of(daemon))
    (warning,) = map(without_ages, checkup.having("!"))
    detail = status_of(daemon)["refusals"][0]["detail"]
    assert checkup.cause.startswith("nothing failed, but look at the warnings (refusals): "), checkup.cause
    assert checkup.status == 0 and warning == f"! refusals: 2 requests refused, 2 as forged, the last: {detail}; see gatepost -c {file_of(daemon)} status"


def refused_as(daemon, outcome):
    """Have a delivery refused, and return the detail."""
    if outcome == "forbidden":
        assert daemon.post(Delivery(webhook_id="of-the-webhook-that-was-created-again")).status == 403
    elif outcome == "too_large":
        assert daemon.post(Delivery(event_body(padding="x" * 70000))).status == 413
    elif outcome == "method_not_allowed":
        assert http_client.request(daemon.address, "PUT", "/webhooks/invoicing").status == 405
    else:  # of a proxy that sends a header, which the receiver does not expect
        host, port = daemon.addresses[1].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"PROXY TCP4 203.0.113.5 192.0.2.1 40000 443\r\n\r\n")
            assert b" 400 " in connection.recv(65536)
    waiting.until(lambda: status_of(daemon)["refusals"][:1] and status_of(daemon)["refusals"][0]["outcome"] == outcome, 30, outcome)
    return status_of(daemon)["refusals"][0]["detail"]


def test_refusals_count_whatever_their_outcome(installation, stopped):
    """A webhook that was created again has another id, for example, and nothing of it is accepted."""
    stopped.config["receiver"]["max_body"] = "64KiB"
    stopped.config["receiver"]["listen"] = [stopped.config["receiver"]["listen"], "127.0.0.1:0"]
    stopped.config["source invoicing"]["webhook_id"] = "the-first"
    daemon = stopped.start().wait_until_ready()
    for n, outcome in enumerate(("method_not_allowed", "bad_request", "too_large", "forbidden"), 1):
        detail = refused_as(daemon, outcome)
        (warning,) = [without_ages(line) for line in examine(installation, file_of(daemon)).having("!")]
        assert warning == f"! refusals: {n} request{'s' * (n > 1)} refused, 1 as {outcome}: {detail}; see gatepost -c {file_of(daemon)} status"
    newest = refused_as(daemon, "bad_request")
    (warning,) = [without_ages(line) for line in examine(installation, file_of(daemon)).having("!")]
    assert warning == f"! refusals: 5 requests refused, 1 as forbidden: {detail}; the newest, as bad_request: {newest}; see gatepost -c {file_of(daemon)} status"


def test_its_probe_is_no_refusal(installation, stopped):
    """But it is counted, and a GET of anybody else is a refusal."""
    daemon = stopped.start().wait_until_ready()
    assert examine(installation, file_of(daemon), "--no-send").status == 0
    assert daemon.metric("gatepost_requests_total", source="invoicing", outcome="probe") == 1
    assert daemon.metric("gatepost_requests_total", source="invoicing", outcome="method_not_allowed") == 0
    report = json.loads(installation.gatepost("status", "--json", config=file_of(daemon)).stdout)
    assert report["refusals"] == []
    assert http_client.request(daemon.address, "GET", "/webhooks/invoicing").status == 405
    waiting.until(lambda: "outcome=method_not_allowed" in daemon.log, 30, "the refusal in the log")
    assert "outcome=probe" not in daemon.log
    assert [each["outcome"] for each in status_of(daemon)["refusals"]] == ["method_not_allowed"]


def test_it_uses_up_no_refusals_of_its_address(installation, stopped):
    """Each delivery of doctor comes within the second of its GET, or of an earlier refusal."""
    stopped.config["receiver"]["max_refusals_per_address"] = 1
    daemon = stopped.start().wait_until_ready()
    for _ in range(5):
        checkup = examine(installation, file_of(daemon))
        assert checkup.status == 0, checkup.lines
    secret = daemon.config["source invoicing"]["secret_file"]
    daemon.config["source invoicing"]["secret_file"] = [daemon.config.secret_file("changed", OTHER_SECRET), secret]
    checkup = examine(installation, daemon.config)
    assert [line.split("answered ")[1][:3] for line in checkup.lines if line.startswith(("✓ delivery", "✗ delivery"))] == ["401", "200"], checkup.lines
    change_path(daemon.config)
    assert examine(installation, daemon.config, "--no-send").status == 0
    assert daemon.metric("gatepost_requests_total", source="", outcome="probe") == 1
    assert daemon.metric("gatepost_requests_total", source="", outcome="not_found") == 0
    assert daemon.metric("gatepost_requests_total", outcome="throttled") == 0


def test_its_own_refused_delivery_is_marked_and_no_warning(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    secret = daemon.config["source invoicing"]["secret_file"]
    change_secret(daemon.config)
    assert examine(installation, daemon.config).status == EX_CONFIG
    daemon.config["source invoicing"]["secret_file"] = secret
    (refusal,) = status_of(daemon)["refusals"]
    assert refusal["outcome"] == "forged" and refusal["detail"].startswith("by gatepost doctor: the sender has another secret")
    assert is_without_refusals(examine(installation, file_of(daemon)))


def closed_by(address, source, context=None):
    """Connect from another address of the loopback interface until the receiver closes the connection without an answer."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0)) as plain, contextlib.suppress(OSError):
        with contextlib.nullcontext(plain) if context is None else context.wrap_socket(plain) as connection:
            connection.sendall(b"POST /webhooks/invoicing HTTP/1.1\r\n")
            assert connection.recv(1) == b""


def closing(daemon, outcome):
    """What /status has of connections that were closed for a reason."""
    return [each for each in status_of(daemon)["refusals"] if each["outcome"] == outcome]


def test_connections_beyond_the_limit_of_an_address_are_a_warning(installation, stopped):
    stopped.config["receiver"].update({"listen": "127.0.0.1:0", "max_connections_per_address": 1})
    daemon = stopped.start().wait_until_ready()
    host, port = daemon.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30, source_address=("127.0.0.9", 0)) as first:
        first.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # so it is counted before the next ones
        assert b" 404 " in first.recv(65536)
        for _ in range(3):
            closed_by(daemon.address, "127.0.0.9")
    (found,) = closing(daemon, "per_address")
    assert (found["count"], found["client"], found["status"]) == (3, "127.0.0.9", None) and time.time() - found["timeSeconds"] < 600
    checkup = examine(installation, file_of(daemon))
    (warning,) = map(without_ages, checkup.having("!"))
    assert checkup.status == 0 and warning == ("! refusals: 1 request refused and 3 connections closed before a request, 3 as per_address, the last: "
                                               f"127.0.0.9 had max_connections_per_address open already; see gatepost -c {file_of(daemon)} status")
    assert "127.0.0.9 had max_connections_per_address open already" in installation.gatepost("status", config=file_of(daemon)).stdout


def test_connections_closed_after_their_answers_are_no_warning(installation, stopped):
    """Each has its answer, and is closed for a newer one; those that have sent nothing yet may lose a delivery."""
    stopped.config["receiver"].update({"listen": "127.0.0.1:0", "max_connections": 8, "threads": 1})
    daemon = stopped.start().wait_until_ready()
    host, port = daemon.address.rsplit(":", 1)
    with contextlib.ExitStack() as held:
        def connect():
            return held.enter_context(socket.create_connection((host, int(port)), timeout=30))
        for _ in range(12):
            delivery = Delivery()
            headers = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers().items())
            connection = connect()
            connection.sendall(f"POST /webhooks/invoicing HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(delivery.body)}\r\n\r\n".encode()
                               + delivery.body)
            assert b" 200 " in connection.recv(65536)
        waiting.until(lambda: daemon.metric("gatepost_connections_closed_total", reason="made_room") >= 4, 30, "connections to be closed")
        assert closing(daemon, "made_room") == []
        assert is_without_refusals(examine(installation, file_of(daemon)))
        for _ in range(20):
            connect()
        waiting.until(lambda: closing(daemon, "made_room"), 30, "one that has sent nothing to be noted")


@pytest.mark.parametrize("trusted, outcome, words", [("192.0.2.1", "no_proxy", "127.0.0.9 is no trusted_proxy"),
                                                     ("127.0.0.0/8", "proxy_header", "no valid header of the PROXY protocol from 127.0.0.9")])
@pytest.mark.parametrize("transport", ["plain", "tls"])
def test_proxy_whose_connections_are_closed_is_a_warning(installation, stopped, transport, trusted, outcome, words):
    """Of both lanes, but not the connections of doctor itself, which is no trusted proxy either."""
    stopped.config["receiver"].update({"trusted_proxy": trusted, "proxy_protocol": "required", "threads": 2, "listen": f"127.0.0.1:{installation.port()}"})
    context = None
    if transport == "tls":
        authority = Authority(installation.directory)
        stopped.config.tls(*authority.issue("gateway"))
        context = authority.client()
        context.check_hostname = False
    daemon = stopped.start().wait_until_ready()
    def warnings():
        """Not those of `check` about this listener, and of the certificate, which no one trusts and which expires soon."""
        return [without_ages(line) for line in examine(installation, file_of(daemon)).having("!")
                if not line.startswith(("! configuration ", "! certificate ", "! tls "))]
    for _ in range(2):
        assert not warnings()
    for _ in range(20):  # each by either lane
        closed_by(stopped.config["receiver"]["listen"], "127.0.0.9", context)
    daemon.wait_for_log(f' notice connections without a PROXY header reason="{words}; proxy_protocol = required')
    (warning,) = warnings()
    assert warning.startswith(f"! refusals: 20 connections closed before a request, 20 as {outcome}, the last: {words}; proxy_protocol"), warning


def test_closed_connections_of_a_proxy_on_this_machine_are_a_note_or_a_warning(installation, stopped):
    """They look like those of doctor itself, which makes few; but it does not say that nothing is refused."""
    stopped.config["receiver"].update({"trusted_proxy": "192.0.2.1", "proxy_protocol": "required", "listen": f"127.0.0.1:{installation.port()}"})
    daemon = stopped.start().wait_until_ready()
    examine(installation, file_of(daemon))
    for _ in range(10):
        closed_by(stopped.config["receiver"]["listen"], "127.0.0.1")
    (found,) = closing(daemon, "no_proxy")
    (note,) = refusals_of(examine(installation, file_of(daemon)))
    n = closing(daemon, "no_proxy")[0]["count"]
    assert 10 < found["count"] <= n <= found["count"] + 3
    assert note.startswith(f"• refusals: {n} connections closed before a request, {n} as no_proxy, the last: 127.0.0.1 is no trusted_proxy; "), note
    assert note.endswith(f"each run of gatepost doctor makes up to 4 such, and any more are of another client; see gatepost -c {file_of(daemon)} status")
    for _ in range(20):
        closed_by(stopped.config["receiver"]["listen"], "127.0.0.1")
    (warning,) = refusals_of(examine(installation, file_of(daemon)))
    assert warning.startswith("! ") and " connections closed before a request, " in warning, warning
    assert " as no_proxy, the last: 127.0.0.1 is no trusted_proxy; " in warning and "each run of gatepost doctor makes up to 4 such; " in warning


def test_closed_connections_of_a_proxy_on_a_unix_socket_are_a_note(installation, stopped):
    """No run with --to can have made one, only the probes of the listener."""
    stopped.config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required"})
    daemon = stopped.start().wait_until_ready()
    for _ in range(12):
        with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
            connection.connect(stopped.config["receiver"]["listen"].removeprefix("unix:"))
            connection.sendall(b"PROXY UNKNOWN\r\n")
            connection.recv(1)
    waiting.until(lambda: sum(each["count"] for each in closing(daemon, "no_proxy")) == 12, 30, "the closed connections")
    (note,) = refusals_of(examine(installation, file_of(daemon)))
    assert note.startswith("• refusals: 1") and "each run of gatepost doctor makes up to 3 such, and any more are of another client" in note, note


@pytest.mark.parametrize("n, mark", [(2, "•"), (10, "!")])
def test_handshakes_that_clients_of_this_machine_give_up(installation, stopped, authority, n, mark):
    """As doctor --to does without the authority of the certificate; a proxy, for each delivery."""
    stopped.config.tls(*authority.issue("unknown"))
    stopped.config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    daemon = stopped.start().wait_until_ready()
    expect(examine(installation, file_of(daemon), "--to", f"https://{stopped.config['receiver']['listen']}"), EX_UNAVAILABLE, "delivery ")
    host, port = stopped.config["receiver"]["listen"].rsplit(":", 1)
    for _ in range(n):
        with socket.create_connection((host, int(port)), timeout=30) as plain, pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
    waiting.until(lambda: sum(each["count"] for each in closing(daemon, "handshake_failed")) == n + 1, 30, "the failed handshakes")
    (line,) = refusals_of(examine(installation, file_of(daemon)))
    assert line.startswith(f"{mark} refusals: {n + 1} connections closed before a request, ") and "makes up to 1 such" in line, line


def test_failed_handshakes_are_a_warning(installation, stopped, authority, tmp_path):
    """But not those of doctor itself, which has no certificate of a client."""
    stopped.config.tls(*authority.issue("refusing"))
    stopped.config["receiver"].update({"tls_client_ca_file": authority.certificate, "listen": f"127.0.0.1:{installation.port()}"})
    daemon = stopped.start().wait_until_ready()
    for _ in range(2):
        (line,) = refusals_of(examine(installation, file_of(daemon)))
        assert not line.startswith("!"), line
    assert closing(daemon, "handshake_failed")
    other = Authority(tmp_path)
    context = ssl._create_unverified_context()
    context.load_cert_chain(*other.issue("of-another-authority"))
    closed_by(stopped.config["receiver"]["listen"], "127.0.0.1", context)
    waiting.until(lambda: len(closing(daemon, "handshake_failed")) == 2, 30, "the failed handshake")
    (warning,) = [without_ages(line) for line in examine(installation, file_of(daemon)).having("!") if line.startswith("! refusals")]
    assert warning.startswith("! refusals: 1 connection closed before a request, 1 as handshake_failed: the TLS handshake with 127.0.0.1 "
                              "failed: ") and "did not return a certificate" not in warning, warning


def test_its_delivery_that_is_not_stored_is_marked(installation, stopped):
    """Here, since Kafka refuses it for its size; the detail of any other delivery is without the mark."""
    stopped.config["receiver"]["listen"] = "127.0.0.1:0"
    daemon = stopped.start().wait_until_ready()
    installation.kafka.configure(installation.kafka.deliveries, "max.message.bytes", "50000")
    told = "Broker: Message size too large; raise max.message.bytes of the topic"
    for agent, begin in (("gatepost-doctor", "by gatepost doctor: "), ("another", "")):
        delivery = Delivery(event_body(padding="x" * 100000))
        headers = delivery.headers("x-invoicing") | {"user-agent": agent}

        def is_refused(detail=begin, delivery=delivery, headers=headers):
            assert http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, delivery.body).status in (200, 503)
            return status_of(daemon)["refusals"] and status_of(daemon)["refusals"][0]["detail"].startswith(detail + told)
        waiting.until(is_refused, 30, lambda: f"a refusal by Kafka: {status_of(daemon)['refusals']}")


@pytest.mark.parametrize("hour, told", [({}, "! refusals: 100 requests refused, 100 as forged, the last: "), ({"hourCount": 1}, "! refusals: 1 request refused, 1 as forged: ")])
def test_refusals_before_the_last_hour_do_not_count(offline, service, hour, told):
    """A daemon that does not say how many there were in it is older."""
    config = offline.config("receiver")
    config["admin"]["listen"] = service.url.split("/")[2]
    entry = {"timeSeconds": int(time.time()) - 60, "count": 100, "source": "invoicing", "outcome": "forged", "status": 401, "client": "192.0.2.1",
             "requestId": "r", "detail": "the sender has another secret"} | hour
    (line,) = refusals_of(with_status(offline, service, file := str(config.write()), {"file": file}, refusals=[entry]))
    assert line.startswith(told), line


def test_path_that_is_almost_that_of_a_source_is_shown_before_those_of_scanners(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    for _ in range(2):
        assert http_client.request(daemon.address, "POST", "/webhooks/invoicing/", body=b"{}").status == 404
    for number in range(5):
        assert http_client.request(daemon.address, "GET", f"/scan{number}.php").status == 404
    assert http_client.request(daemon.address, "POST", "/webhooks/invoicing", body=b"{}").status == 400
    (line,) = refusals_of(examine(installation, file_of(daemon)))
    assert line.startswith("! refusals: 8 requests refused, 2 as not_found, the last: the path is /webhooks/invoicing/; that of the source invoicing is "), line
    assert "; the newest, as malformed: x-invoicing-signature is missing" in line, line
