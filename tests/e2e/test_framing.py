"""Framing on real sockets: legal requests reach a handler unchanged; others are refused and the connection is closed
before a handler runs."""

import contextlib
import json
import pathlib

import pytest

import framing
import http_client
from signing import Delivery, event_body

PATH = b"/webhooks/invoicing"
MANUAL = pathlib.Path(__file__).parents[2] / "man" / "gatepostd.8"
CHUNKED = b"POST /hook?x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("step", [None, 1], ids=["whole", "byte by byte"])
def test_every_framing_case_gives_the_same_verdict_on_a_socket(echo, step):
    cases, faults = framing.cases(), []
    for case, verdict in zip(cases, framing.verdicts(case.data for case in cases), strict=True):
        assert (len(verdict.messages), verdict.status) == (case.n_messages, case.status), case
        fault = framing.fault_on_socket(echo, case.data, verdict, step)
        if fault:
            faults.append((case.section, case.data, fault))
    assert faults == []


EXTENSIONS = b"5;a=\"b;c\" ; d\r\nhel\r\n\r\n1 ;e\t=f\r\n\n\r\n00;g=h\r\nx-trailer: 1\r\nx-more:\t2\r\n\r\n"


@pytest.mark.parametrize("step", range(1, 40))
def test_extensions_and_trailers_are_parsed_in_pieces_of_any_length(echo, step):
    data = (CHUNKED + b"a:\t b\tc\t\r\n\r\n" + EXTENSIONS) * 2
    answers = framing.talk(echo.address, data, [b"POST"] * 2, step)
    expected = framing.Message(b"POST", b"/hook", [(b"host", b"a"), (b"transfer-encoding", b"chunked"),
                                                   (b"a", b"b\tc")], b"hel\r\n\n")
    assert [answer.message for answer in answers] == [expected] * 2


def test_request_is_handled_at_the_last_byte_of_its_trailers(echo):
    with framing.Connection(echo.address) as connection:
        for body in b"one", b"three":
            connection.send(CHUNKED + b"\r\n%x;a\r\n%s\r\n0\r\nb: c\r\n\r" % (len(body), body))
            connection.send(b"\n")
            assert connection.answer().message.body == body


@pytest.mark.parametrize("rest", [b"5\r\nhello", b"5;a=b\r\nhello\r\n0\r\nc: d\r\n\r\n"], ids=["length", "chunks"])
def test_expect_continue_is_answered_100(echo, rest):
    kind = b"Transfer-Encoding: chunked" if rest.endswith(b"\r\n") else b"Content-Length: 8"
    with framing.Connection(echo.address) as connection:
        for _ in range(2):
            connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect:\t100-continue\r\n" + kind + b"\r\n\r\n")
            assert connection.answer().status == 100
            connection.send(rest)
            answer = connection.answer()
            assert answer.status == 200 and answer.message.body in (rest, b"hello")


def test_expect_continue_with_a_too_large_body_is_answered_413(echo):
    with framing.Connection(echo.address) as connection:
        connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n")
        assert connection.answer().status == 413
        assert connection.answer() is None


@pytest.mark.parametrize("value", ["close", "Close", "x, close", "close , keep-alive", "keep-alive,\tclose"])
def test_connection_close_is_honoured(echo, value):
    request = f"GET / HTTP/1.1\r\nHost: a\r\nConnection: {value}\r\n\r\n".encode()
    for data in request, request.replace(b"Connection", b"Connection: x\r\nConnection"):
        answers = framing.talk(echo.address, data * 2, [b"GET"] * 2)
        assert [(answer.status, answer.headers["connection"]) for answer in answers] == [(200, "close")]


@pytest.mark.parametrize("value", ["keep-alive", "closed", "x-close", "not close-d", ""])
def test_connection_is_kept_open_without_connection_close(echo, value):
    data = f"GET / HTTP/1.1\r\nHost: a\r\nConnection: {value}\r\n\r\n".encode()
    assert [answer.status for answer in framing.talk(echo.address, data * 2, [b"GET"] * 2)] == [200, 200]


@pytest.mark.parametrize("more", [b"", b"Proxy-Connection: close\r\n", b"Proxy-Connection: keep-alive\r\n"])
def test_connection_is_kept_open_after_an_absolute_form_target(echo, more):
    data = b"GET http://a/b HTTP/1.1\r\nHost: a\r\n%s\r\n" % more
    answers = framing.talk(echo.address, data * 3, [b"GET"] * 3)
    assert [(answer.status, answer.headers.get("connection")) for answer in answers] == [(200, None)] * 3


def test_http_1_0_answer_has_one_connection_header(echo):
    data = b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n"
    with http_client.connect(echo.address) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert [line for line in answer.split(b"\r\n\r\n")[0].split(b"\r\n") if line.startswith(b"Connection:")] == [b"Connection: close"]


def test_http_1_0_connection_is_kept_open_only_on_request(echo):
    closing, keeping = (b"GET / HTTP/1.0\r\n%s\r\n" % header for header in (b"", b"Connection: keep-alive\r\n"))
    assert len(framing.talk(echo.address, closing * 2, [b"GET"] * 2)) == 1
    assert len(framing.talk(echo.address, keeping * 2, [b"GET"] * 2)) == 2


def test_upgrade_is_ignored(echo):
    data = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert [answer.status for answer in framing.talk(echo.address, data * 2, [b"GET"] * 2)] == [200, 200]


def test_answer_to_head_has_no_body_and_keeps_the_connection(echo):
    head, get = (b"%s / HTTP/1.1\r\nHost: a\r\n\r\n" % method for method in (b"HEAD", b"GET"))
    with framing.Connection(echo.address) as connection:
        connection.send(head + get)
        first, second = connection.answer(to_head=True), connection.answer()
    assert (first.status, first.body, second.status, second.message.method) == (200, b"", 200, b"GET")
    assert int(first.headers["content-length"]) == len(second.body) + 1  # its method is one byte longer


# A delivery

@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config()
    shared.create_topics(config)
    return shared.start(config)


def lines_of(headers):
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def post(delivery, *, headers=None, extension=b"", trailers=b"", size=7):
    """A delivery in chunks of this size."""
    head = b"POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n" % PATH
    head += lines_of(delivery.headers() if headers is None else headers)
    pieces = [delivery.body[at:at + size] for at in range(0, len(delivery.body), size)]
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces)
    return head + b"\r\n" + chunks + b"0" + extension + b"\r\n" + trailers + b"\r\n"


def ask(daemon, data, step=None):
    """The answer to one request, and the next answer on the connection or None."""
    with framing.Connection(daemon.address) as connection:
        connection.send(data, step)
        answer = connection.answer()
        connection.end()
        return answer, connection.answer()


@pytest.mark.parametrize("step", [None, 1, 100])
def test_signature_is_over_the_body_without_extensions_and_trailers(shared, daemon, step):
    delivery = Delivery(event_body(text="0\r\n\r\n;a=b\t" * 20))
    data = post(delivery, extension=b' ;a="b;c"\t; d', trailers=b"x-more:\tyes\r\n" * 20)
    answer, more = ask(daemon, data, step)
    assert (answer.status, more) == (200, None), answer
    with contextlib.closing(shared.kafka.reader([*shared.kafka.topics()])) as reader:
        assert {record.value for record in reader.wait_for(delivery.delivery_id, 2)} == {delivery.body}


def test_trailer_field_is_not_treated_as_a_header(daemon):
    delivery = Delivery()
    headers = delivery.headers()
    signature = {name: headers.pop(name) for name in list(headers) if name.endswith("signature")}
    answer, _ = ask(daemon, post(delivery, headers=headers, trailers=lines_of(signature)))
    assert answer.status == 400 and json.loads(answer.body)["error"]["code"] == "VALIDATION_ERROR"
    answer, _ = ask(daemon, post(delivery, trailers=lines_of(Delivery(secret=b"wrong" * 5).headers())))
    assert answer.status == 200


def test_body_of_a_bodiless_method_is_not_read_as_a_request(daemon):
    """evhttp would read the body of HEAD as the next request."""
    delivery = Delivery()
    smuggled = b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n" % (PATH, len(delivery.body))
    smuggled += lines_of(delivery.headers()) + b"\r\n" + delivery.body
    for method in b"HEAD", b"TRACE":
        data = b"%s %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (method, PATH, len(smuggled)) + smuggled
        answer, more = ask(daemon, data)
        assert (answer.status, more) == (400, None)


@pytest.mark.parametrize("path, status", [(b"/nothing", 404), (PATH, 405)])
def test_refusal_of_head_has_no_body(daemon, path, status):
    delivery = Delivery()
    with framing.Connection(daemon.address) as connection:
        connection.send(b"HEAD %s HTTP/1.1\r\nHost: a\r\n\r\n" % path)
        connection.send(post(delivery))
        head = connection.answer(to_head=True)
        assert (head.status, head.body) == (status, b"")
        assert connection.answer().status == 200


@pytest.mark.parametrize("bad", [
    b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" % PATH + lines_of(Delivery().headers())
    + b"\r\n5\r\nhello\r\nx\r\n"],
    ids=["request line", "head", "chunk"])
@pytest.mark.parametrize("n", [1, 3])
def test_requests_before_a_refused_one_are_answered_first(daemon, n, bad):
    deliveries = [Delivery() for _ in range(n)]
    with framing.Connection(daemon.address) as connection:
        connection.send(b"".join(map(post, deliveries)) + bad + post(Delivery()))
        for delivery in deliveries:
            assert json.loads(connection.answer().body) == {"ok": True, "deliveryId": delivery.delivery_id}
        assert connection.answer().status == 400 and connection.answer() is None


@pytest.mark.parametrize("data, status, code", [
    (b"GET /%s HTTP/1.1\r\n" % (b"a" * 40000), 414, "URI_TOO_LONG"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n", 417, "EXPECTATION_FAILED"),
    (b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501, "NOT_IMPLEMENTED"),
    (b"POST / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 100 + b"\r\n", 400, "BAD_REQUEST"),
    (b"POST / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 99 + b"\r\n", 404, "NOT_FOUND"),
], ids=["target", "expectation", "method", "101 headers", "100 headers"])
def test_refusal_has_the_documented_status_and_code(daemon, data, status, code):
    answer, more = ask(daemon, data)
    assert (answer.status, json.loads(answer.body)["error"]["code"], more) == (status, code, None)
    assert f" Ta {status} Ta {code}\n" in MANUAL.read_text()


def test_log_names_the_refused_request(offline):
    daemon = offline.daemon(offline.config("receiver")).start()
    answer, _ = ask(daemon, b"nonsense\r\n\r\n")
    assert daemon.wait_for_log(" outcome=bad_request status=400 ").count(answer.headers["x-request-id"]) == 1


def test_number_of_headers_is_configurable(installation):
    config = installation.config("receiver")
    config["receiver"]["max_headers"] = "10"
    installation.create_topics(config)
    daemon = installation.start(config)
    for n, status in (9, 404), (10, 400):
        answer, _ = ask(daemon, b"POST / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * n + b"\r\n")
        assert answer.status == status
