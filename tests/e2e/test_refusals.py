"""Why a request was refused: the log and /status name the cause, which the client is not told."""

import contextlib
import re
import ssl
import time

import pytest

import http_client
import waiting
from raw_tls import proxy_header
from signing import SECRET, Delivery, event_body, now

WRONG = b"not the secret of the tests"
LISTED = "6f0d2c1e-0000-4000-8000-00000000000a"
PATH = "/webhooks/invoicing"


@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config().source("listed", webhook_id=LISTED)
    config["receiver"]["max_body"] = "10KiB"
    shared.create_topics(config)
    return shared.start(config)


def refusals(daemon):
    return daemon.admin("/status").json["refusals"]


def cause(daemon, reply):
    """The cause of a refusal in /status, which the answer does not contain."""
    (found,) = [each for each in refusals(daemon) if each["requestId"] == reply.request_id]
    assert found["status"] == reply.status and found["count"] >= 1 and abs(found["timeSeconds"] - time.time()) < 60
    assert found["client"] == "127.0.0.1"
    assert len(found["detail"]) < 256
    return found["source"], found["outcome"], found["detail"]


def but(delivery, **values):
    """Headers of a delivery, some of them with other values, or without (None); names without the prefix."""
    headers = delivery.headers()
    for name, value in values.items():
        headers[f"x-invoicing-{name.replace('_', '-')}"] = value
    return {name: value for name, value in headers.items() if value is not None}


def send(daemon, headers, path=PATH, method="POST", body=b"{}"):
    return http_client.request(daemon.address, method, path, headers, body)


MALFORMED = [
    ({"delivery_id": None}, "x-invoicing-delivery-id is missing"),
    ({"signature": None, "webhook_id": None}, "x-invoicing-signature is missing; 1 more header is wrong"),
    ({"timestamp": "1700000000000"}, "x-invoicing-timestamp must be 10 digits; it is 1700000000000"),
    ({"webhook_id": ""}, "x-invoicing-webhook-id must be 1 to 64 letters, digits and hyphens; it is empty"),
    ({"webhook_id": "a_b"}, "x-invoicing-webhook-id must be 1 to 64 letters, digits and hyphens; it is a_b"),
    ({"signature": "5" * 64}, "x-invoicing-signature must be sha256= and 64 lowercase hexadecimal digits; it has 64 characters"),
]


@pytest.mark.parametrize("values, detail", MALFORMED)
def test_first_header_at_fault_is_named(daemon, values, detail):
    reply = send(daemon, but(Delivery(), **values))
    assert reply.code == "VALIDATION_ERROR"
    assert cause(daemon, reply) == ("invoicing", "malformed", detail)


def test_repeated_header_is_named(daemon):
    headers = list(Delivery().headers().items())
    reply = send(daemon, headers + [("X-Invoicing-Delivery-Id", "another")])
    assert cause(daemon, reply) == ("invoicing", "malformed", "x-invoicing-delivery-id must appear once")


def test_other_prefix_is_named_together_with_the_configured_one(daemon):
    delivery = Delivery()
    reply = send(daemon, delivery.headers("X-Invoice"), body=delivery.body)
    source, outcome, detail = cause(daemon, reply)
    assert (source, outcome) == ("invoicing", "malformed")
    assert detail == ("x-invoicing-signature is missing; 3 more headers are wrong; the request has X-Invoice-signature, "
                      "but header_prefix is x-invoicing")
    assert b"X-Invoice-" not in reply.body
    line = daemon.wait_for_log("the request has X-Invoice-signature, but header_prefix is x-invoicing")
    assert " refused source=invoicing outcome=malformed status=400 " in line and f"request_id={reply.request_id}" in line


def test_signature_is_neither_logged_nor_shown(daemon):
    delivery = Delivery()
    for signature in delivery.signature.upper(), delivery.signature.removeprefix("sha256="), delivery.signature + "0":
        assert send(daemon, but(delivery, signature=signature), body=delivery.body).status == 400
    assert send(daemon, but(delivery), body=delivery.body + b" ").status == 401
    text = daemon.admin("/status").body.decode() + daemon.log
    assert delivery.signature[10:].lower() not in text.lower() and SECRET.decode() not in text


PATHS = [
    ("/webhooks/invoicing/", "; that of the source invoicing is /webhooks/invoicing"),
    ("/Webhooks/Invoicing", "; that of the source invoicing is /webhooks/invoicing"),
    ("/invoicing", "; that of the source invoicing is /webhooks/invoicing"),
    ("/api/v1/webhooks/invoicing", "; that of the source invoicing is /webhooks/invoicing"),
    ("/metrics", ", which the address of `listen` in [admin] has"),
    ("/webhook/invoicing", "; that of the source invoicing is /webhooks/invoicing"),
    ("/webhooks/lsited", "; that of the source listed is /webhooks/listed"),
    ("/", ""),
    ("/favicon.ico", ""),
    ("/webhooks/orders-of-another-service", ""),
]


@pytest.mark.parametrize("path, near", PATHS)
def test_unknown_path_is_shown_with_the_nearest_one_configured(daemon, path, near):
    reply = send(daemon, Delivery().headers(), path + "?token=hunter2")
    source = re.search(r"; that of the source (\w+)", near)
    assert cause(daemon, reply) == (source[1] if source else "", "not_found", f"the path is {path}{near}")
    assert reply.status == 404 and b"webhooks" not in reply.body


def test_path_is_bounded_and_escaped(daemon):
    reply = send(daemon, {}, "/" + "x" * 5000)
    assert cause(daemon, reply)[2] == f"the path is /{'x' * 99}..."
    assert "hunter2" not in daemon.log + daemon.admin("/status").body.decode()


def test_header_is_bounded_and_escaped(daemon):
    reply = send(daemon, but(Delivery(), delivery_id='a"\\\xff' + "x" * 1000))
    rule = "x-invoicing-delivery-id must be 1 to 64 letters, digits and hyphens; it is a"
    assert cause(daemon, reply)[2] == f'{rule}"\\\\xff{"x" * 36}'
    waiting.until(lambda: f'detail="{rule}\\"\\\\\\xff{"x" * 36}"' in daemon.log, 20, "the value in the log")


def test_method_is_shown(daemon):
    reply = send(daemon, {}, method="GET")
    assert cause(daemon, reply) == ("invoicing", "method_not_allowed", "the method is GET; deliveries come by POST")


def test_length_of_a_large_body_is_shown_with_the_limit(daemon):
    reply = send(daemon, Delivery().headers(), body=b"x" * 10241)
    assert cause(daemon, reply) == ("", "too_large", "the body has 10241 bytes; max_body is 10240")
    reply = http_client.request(daemon.address, "POST", PATH, Delivery().headers(), b"x" * 20000, chunked=True)
    assert reply.status == 413
    assert cause(daemon, reply) == ("", "too_large", "the chunked body is larger than max_body, 10240")


def test_webhook_id_that_is_not_listed_is_shown(daemon):
    delivery = Delivery()
    reply = daemon.post(delivery, "listed")
    assert reply.status == 403
    assert cause(daemon, reply) == ("listed", "forbidden",
                                    f"the webhook-id is {delivery.webhook_id}; webhook_id lists 1 other")


def test_bad_request_is_shown_with_what_is_wrong(daemon):
    reply = http_client.raw(daemon.address, b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n")
    assert cause(daemon, reply) == ("", "bad_request", "Content-Length is malformed")


def test_client_that_speaks_tls_to_a_plain_port_is_shown(daemon):
    with pytest.raises(ssl.SSLError):
        http_client.connect(daemon.address, tls=ssl.create_default_context()).close()
    assert refusals(daemon)[0]["detail"] == "the client speaks TLS, but this port does not"
    assert refusals(daemon)[0]["outcome"] == "bad_request"


@pytest.mark.parametrize("header, doubt", [(b"PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n", ""), (b"PROXY UNKNOWN\r\n", ""),
                                           (proxy_header("192.0.2.7"), "the request line is empty, or it is ")], ids=["v1", "v1 without addresses", "v2"])
def test_proxy_protocol_that_is_not_expected_is_shown(daemon, header, doubt):
    reply = http_client.raw(daemon.address, header + b"POST /a HTTP/1.1\r\nHost: a\r\n\r\n")
    assert cause(daemon, reply) == ("", "bad_request", f"{doubt}a PROXY protocol header, but proxy_protocol is off")


VERSION_2 = "; proxy_protocol = required takes version 2 only, which is send-proxy-v2 in HAProxy"


@pytest.mark.parametrize("first, detail", [
    (b"PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n", "a header of version 1 of the PROXY protocol from 127.0.0.1" + VERSION_2),
    (b"PROXY UNKNOWN\r\n", "a header of version 1 of the PROXY protocol from 127.0.0.1" + VERSION_2),
    (b"", "no valid header of the PROXY protocol from 127.0.0.1" + VERSION_2),
    (proxy_header("127.0.0.1") + b"PROXY UNKNOWN\r\n", "a second PROXY protocol header"),
    (2 * proxy_header("127.0.0.1"), "the request line is empty, or it is a second PROXY protocol header"),
], ids=["v1", "v1 without addresses", "none", "v1 as the second", "v2 as the second"])
def test_header_that_the_proxy_protocol_does_not_take_is_named(offline, first, detail):
    config = offline.config("receiver")
    config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required"})
    daemon = offline.daemon(config).start()
    with contextlib.suppress(ConnectionError):  # closed without an answer
        http_client.raw(daemon.address, first + b"POST /a HTTP/1.1\r\nHost: a\r\n\r\n")
    waiting.until(lambda: refusals(daemon), 30, "the refusal")
    assert refusals(daemon)[0]["detail"] == detail


@pytest.mark.parametrize("seconds, age", [(7205, "2 hours old"), (-1190, "19 minutes in the future"), (400, "6 minutes old")])
def test_stale_delivery_is_shown_with_its_age_and_whether_it_is_genuine(daemon, seconds, age):
    why = ("a late retry, or a clock is wrong, or tolerance is too short" if seconds > 0
           else "the sender's clock is ahead, or this machine's is behind")
    genuine = Delivery(timestamp=now() - seconds)
    late, forged = daemon.post(genuine), daemon.post(genuine.but(secret=WRONG))
    expected = f"the timestamp is {age}; tolerance is 300 s; the signature "
    assert cause(daemon, late) == ("invoicing", "stale_genuine", f"{expected}matches: {why}")
    assert cause(daemon, forged) == ("invoicing", "stale", expected + "does not match, either")


def test_forged_delivery_is_shown_with_what_may_be_wrong(daemon):
    reply = daemon.post(Delivery(secret=WRONG))
    assert cause(daemon, reply) == ("invoicing", "forged", "the sender has another secret, or a proxy changes bodies; see "
                                    "gatepost verify")


def test_empty_body_is_the_cause(daemon):
    reply = send(daemon, Delivery().headers(), body=b"")
    assert cause(daemon, reply) == ("invoicing", "forged", "the body is empty: the sender or a proxy has left it out")


def test_repeated_refusals_are_one_entry_with_a_count(daemon):
    replies = [send(daemon, {}, "/counted") for _ in range(7)]
    (found,) = [each for each in refusals(daemon) if each["detail"] == "the path is /counted"]
    assert (found["count"], found["requestId"]) == (7, replies[-1].request_id)
    assert refusals(daemon)[0] == found


def test_scan_of_paths_does_not_hide_other_refusals(daemon):
    useful = [send(daemon, Delivery().headers("x-invoice")), daemon.post(Delivery(secret=WRONG))]
    before = [each for each in refusals(daemon) if each["requestId"] in {reply.request_id for reply in useful}]
    client = http_client.Client(daemon.address)
    for number in range(200):
        assert client.request("POST", f"/scan/{number}").status == 404
    client.close()
    found = refusals(daemon)
    assert len(before) == 2 and (found[0]["outcome"], found[0]["count"]) == ("not_found", 200)
    assert [each for each in found if each in before] == before


def test_refusals_of_a_removed_source_remain(installation):
    config = installation.config("receiver").source("removed")
    installation.create_topics(config)
    daemon = installation.start(config)
    reply = daemon.post(Delivery(secret=WRONG), "removed")
    del config.sections["source removed"]
    config.write(f"{daemon.name}.conf")
    daemon.process.send_signal(1)
    daemon.wait_for_log("configuration reloaded")
    assert cause(daemon, reply)[:2] == ("removed", "forged")
    assert cause(daemon, daemon.post(Delivery(), "removed"))[:2] == ("", "not_found")


def test_delivery_without_kafka_is_shown_with_the_cause(offline):
    daemon = offline.daemon(offline.config("receiver")).start()
    reply = daemon.post()
    assert reply.status == 503
    assert cause(daemon, reply)[:2] == ("invoicing", "unavailable")
    assert cause(daemon, reply)[2].startswith("Kafka is not reachable")


# Quarantine

QUARANTINED = [
    (b"{", "malformed-json", "json"),
    (b'{"kind":"x"}', "missing-kind", "event"),
    (event_body("no.such.kind"), "unknown-kind", "no topic for the kind no.such.kind"),
    (event_body(7), "invalid-field", "event"),
]


@pytest.mark.parametrize("body, reason, detail", QUARANTINED)
def test_quarantined_record_is_shown_with_its_reason(shared, daemon, body, reason, detail):
    delivery = daemon.accept(Delivery(body))
    found = waiting.until(lambda: next((each for each in daemon.admin("/status").json["recentlyQuarantined"]
                                        if each["deliveryId"] == delivery.delivery_id), None), 30, "the record in the status")
    (record,) = [each for each in shared.kafka.read(shared.kafka.deliveries) if each.key.decode() == delivery.delivery_id]
    assert (found["source"], found["partition"], found["offset"]) == ("invoicing", record.partition, record.offset)
    assert found["reason"] == reason and detail.lower() in found["detail"].lower() and found["detail"]
    assert abs(found["timeSeconds"] - time.time()) < 60
    line = waiting.until(lambda: re.search(rf"quarantined reason={reason} .*detail=(.*)", daemon.log), 30, "the line")
    assert line[1].strip('"')


# gatepost status

def test_status_prints_the_last_refusals_and_quarantined_records(installation):
    config = installation.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    config["receiver"]["trusted_proxy"] = "127.0.0.1"
    installation.create_topics(config)
    daemon = installation.start(config)
    for _ in range(3):
        http_client.request(daemon.address, "POST", PATH, Delivery().headers("x-invoice") | {"x-forwarded-for": "192.0.2.7"})
    http_client.request(daemon.address, "POST", "/webhooks/invoicing/")
    assert daemon.post(Delivery(timestamp=now() - 7205)).status == 401
    daemon.accept(Delivery(event_body("no.such.kind")))
    # The record is noted when it is decided, and counted when that is committed.
    waiting.until(lambda: daemon.admin("/status").json["quarantined"].get("unknown-kind"), 30, "the record in the status")
    done = installation.gatepost("status", config=config)
    assert done.returncode == 0, done
    text = done.stdout
    assert re.search(r"^refused \d s ago: 1 from 127.0.0.1, stale_genuine: the timestamp is 2 hours old; tolerance is 300 s; ", text, re.M), text
    assert re.search(r"^refused \d s ago: 3 from 192.0.2.7, malformed: x-invoicing-signature is missing; ", text, re.M), text
    assert re.search(r"^\[source invoicing\]: warning: 3 refused as malformed, the last \d s ago: .*\n"
                     r"  remedy: set header_prefix to that of the service, and reload$", text, re.M), text
    assert re.search(r"^quarantine: warning: 1 quarantined within the hour, the last \d s ago as unknown-kind: "
                     r"no topic for the kind no.such.kind$", text, re.M), text
