"""What tests/bench/run measures must first pass a check; here it is shown that the check can fail."""

import contextlib
import http.server
import json
import re
import threading
import time

import confluent_kafka
import pytest

import genuine_peer
import jars
import kafka_side
from signing import KINDS, event_topic, hmac_sha256

from genuine import Check, NotGenuine
from genuine_peer import PeerCheck
from sections import Figures
from subjects import HERE, Alternative, Gatepost

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


class Routing:
    """A program in the router's place that is right in all but one thing. It routes everything when it starts."""

    def __init__(self, installation, fault):
        self.kafka, self.prefix, self.fault, self.seen = installation.kafka, installation.prefix, fault, set()
        self.n = 0

    def __enter__(self):
        producer = confluent_kafka.Producer({"bootstrap.servers": self.kafka.bootstrap, "partitioner": "murmur2",
                                             "message.max.bytes": 2 << 20, "log_level": 3})
        for delivery in self.kafka.read(self.kafka.deliveries):
            self.n += 1
            if delivery.key in self.seen and self.fault != "publishes repeats":
                continue
            self.seen.add(delivery.key)
            if self.n != 1000 or self.fault != "loses an event":
                self.publish(producer, delivery)
        producer.flush(30)
        return self

    def publish(self, producer, delivery):
        try:
            kind = json.loads(delivery.value)["event"]
        except json.JSONDecodeError:
            kind = None
        if kind not in KINDS and self.fault != "quarantines nothing":
            producer.produce(self.kafka.quarantine, delivery.value, delivery.key)
            return
        kind = kind if kind in KINDS else KINDS[0]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(delivery.header("gatepost-timestamp"))))
        headers = {"content-type": "application/json", "ce_specversion": "1.0", "ce_id": delivery.key, "ce_type": kind,
                   "ce_source": "/invoicing", "ce_time": at, "ce_webhookid": delivery.header("gatepost-webhook-id")}
        if self.fault == "omits a header":
            del headers["ce_time"]
        topic = event_topic(KINDS[0] if self.fault == "ignores the kind" else kind)
        value = delivery.value + (b" " if self.fault == "changes bodies" else b"")
        key = delivery.key if self.fault == "chooses another key" else kind
        producer.produce(f"{self.prefix}.{topic}", value, key, headers=list(headers.items()))

    def __exit__(self, *_):
        pass

    def n_routed(self):
        return self.n


def check_peer(installation, fault=None):
    installation.create_topics()
    PeerCheck(Routing(installation, fault), Gatepost(installation, roles="router")).run()


def test_correct_peer_passes(installation):
    check_peer(installation)


@pytest.mark.parametrize("fault, reason", [
    ("publishes repeats", r"^\d+ records were published, not \d+$"),
    ("loses an event", r"^\d+ records were published, not \d+$"),
    ("quarantines nothing", "^2 records differ"),
    ("omits a header", "records differ"),
    ("ignores the kind", "records differ"),
    ("changes bodies", "records differ"),
    ("chooses another key", "records differ"),
])
def test_peer_with_one_fault_fails_with_its_reason(installation, fault, reason):
    with pytest.raises(NotGenuine, match=reason):
        check_peer(installation, fault)


def test_peer_that_commits_nothing_fails(installation, monkeypatch):
    monkeypatch.setattr(genuine_peer, "ROUTED_SECONDS", 1)
    monkeypatch.setattr(Routing, "n_routed", lambda self: 0)
    with pytest.raises(AssertionError, match="all records to be routed, of which 0 are"):
        check_peer(installation)


def test_kafka_streams_has_the_version_of_the_broker():
    poms = [each.read_text() for each in (jars.HERE / "pom.xml", HERE / "alternatives/kafka-streams/pom.xml")]
    broker, streams = [re.search("<kafka.version>(.*)</kafka.version>", pom)[1] for pom in poms]
    assert streams == broker
