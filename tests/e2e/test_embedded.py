"""The embedded broker, for trying things out. Nothing about exactly-once is tested on it: it hides no aborted records."""

import json
import re

import waiting
from signing import Delivery, event_body


def test_embedded_broker_needs_no_kafka(installation):
    config = installation.config()
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    assert "forget" in daemon.log
    address = re.search(r"embedded.*?(127\.0\.0\.1:\d+)", daemon.log)[1]
    delivery = daemon.accept(Delivery(event_body("invoice.received")))

    def seen():
        done = installation.gatepost("tail", "--bootstrap", address, "--from", "beginning", "--until-end", "--json",
                                     config=daemon.config)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]
    (event,) = waiting.until(seen, 30, "the event")
    assert event["headers"]["ce_id"] == delivery.delivery_id and event["value"] == delivery.body.decode()
