"""The embedded broker, for evaluation. Exactly-once is not tested on it: it does not hide aborted records."""

import json
import re
import signal

import waiting
from reloading import send_sighup
from signing import Delivery, event_body


def test_embedded_broker_needs_no_kafka(installation):
    config = installation.config()
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    assert "keeps nothing across restarts" in daemon.log
    address = re.search(r"embedded.*?(127\.0\.0\.1:\d+)", daemon.log)[1]
    delivery = daemon.accept(Delivery(event_body("invoice.received")))

    def seen():
        done = installation.gatepost("tail", "--bootstrap", address, "--from", "beginning", "--until-end", "--json",
                                     config=daemon.config)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]
    (event,) = waiting.until(seen, 30, "the event")
    assert event["headers"]["ce_id"] == delivery.delivery_id and event["value"] == delivery.body.decode()


def test_signals_do_not_interrupt_the_embedded_broker(installation):
    config = installation.config()
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    for _ in range(300):
        daemon.process.send_signal(signal.SIGHUP)
        daemon.process.send_signal(signal.SIGUSR1)
    assert "configuration reloaded" in send_sighup(daemon)
    assert daemon.admin("/healthz").status == 200
    daemon.accept()
