"""What tests/bench/run measures must first pass a check; here it is shown that the check can fail."""

import contextlib
import http.server
import json
import re
import threading
import time

import confluent_kafka
import pytest

import kafka_side
from signing import hmac_sha256

from genuine import Check, NotGenuine
from sections import Figures
from subjects import Alternative, Gatepost

LOST = "is not in Kafka"


class Service(http.server.BaseHTTPRequestHandler):
    """A small receiver of deliveries that is right in all but one thing, which its server names."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        status = self.verdict()
        self.send_response(status)
        self.send_header("content-length", "0")
        self.send_header("connection", "close")
        self.end_headers()

    def lacks(self, what):
        return self.server.fault == f"does not {what}"

    def does(self, what):
        return self.server.fault == f"does {what}"

    def verdict(self):
        get = lambda name: self.headers.get(f"x-invoicing-{name}", "")
        body = self.rfile.read(int(self.headers["content-length"]))
        if len(body) > 1 << 20:
            return 413
        signature = "sha256=" + hmac_sha256(self.server.subject.secret, get("timestamp"), body)
        if get("signature") != signature and not self.lacks("verify signatures"):
            if self.does("publish what it refuses"):
                self.publish(get, body)
            return 401
        if abs(int(get("timestamp")) - time.time()) > 300 and not self.lacks("look at timestamps"):
            return 401
        if get("delivery-id") in self.server.seen and not self.lacks("know duplicates"):
            return 200
        self.server.seen.add(get("delivery-id"))
        for _ in range(2 if self.does("publish twice") else 1):
            self.publish(get, body)
        return 200

    def publish(self, get, body):
        if self.does("write bodies anew"):
            body = json.dumps(json.loads(body)).encode()
        key = "invoice.accepted" if self.does("choose another key") else get("delivery-id")
        headers = {name: get(name) for name in ("webhook-id", "timestamp", "signature")}
        headers |= {"source": "invoicing", "instance": "bench"}
        producer = self.server.producer
        producer.produce(self.server.subject.topic, body, key, headers=[
            (f"gatepost-{name}", value) for name, value in headers.items()])
        producer.flush(30)

    def log_message(self, *_):
        pass


class Served(Alternative):
    """Such a service as a subject of measurements."""

    @contextlib.contextmanager
    def running(self, fault):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
            server.subject, server.fault, server.seen = self, fault, set()
            server.producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2",
                                                        "message.max.bytes": 2 << 20, "log_level": 3})
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


def check(installation, fault=None):
    installation.create_topics()
    with Served(installation, "service", installation.build).running(fault) as subject:
        Check(subject, installation.kafka).run()


def test_correct_service_passes(installation):
    check(installation)


@pytest.mark.parametrize("fault, reason", [
    ("does publish twice", "published 2 times"),
    ("does publish what it refuses", "^an? .* was refused, but published$"),
    ("does write bodies anew", "different bytes"),
    ("does choose another key", LOST),
    ("does not verify signatures", "a forged delivery was answered 200"),
    ("does not look at timestamps", "a stale delivery was answered 200"),
    ("does not know duplicates", "published 2 times"),
])
def test_service_with_one_fault_fails_with_its_reason(installation, monkeypatch, fault, reason):
    if reason == LOST:
        monkeypatch.setattr(kafka_side, "TIMEOUT", 10)
    with pytest.raises(NotGenuine, match=reason):
        check(installation, fault)


def test_failed_subject_has_no_figure_and_is_no_baseline(capsys):
    figures = Figures({"unfit": "does not verify"})
    for name, rate in (("first", 100), ("broken", 50), ("second", 100), ("first", 300), ("second", 100)):
        figures.add("rate", name, rate)
    figures.failed["broken"] = "answered 3 times 200"
    figures.print("rate", "title", "/s", ["broken", "second"])
    title, first, second, *failed = capsys.readouterr().out.strip().splitlines()
    assert title == "title" and re.match(r"  first +200 /s .* of second$", first) and re.match("  second +100 /s", second)
    assert sorted(line.split() for line in failed) == [["broken", "failed:", "answered", "3", "times", "200"],
                                                       ["unfit", "failed:", "does", "not", "verify"]]


def test_gatepost_passes(installation):
    installation.create_topics()
    with Gatepost(installation).whole() as subject:
        Check(subject, installation.kafka).run()
