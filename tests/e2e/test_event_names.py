"""ce_source, ce_type_prefix and ce_dataschema_base: the names by which consumers recognise the events of a source."""

import math
import time

import waiting
from audit_side import audit
from reloading import reload
from signing import Delivery, event_body, now

HOUR_S = 3600
NAMES = {"ce_source": "https://invoicing.example/eu", "ce_type_prefix": "com.example.",
         "ce_dataschema_base": "https://schemas.example/gatepost/"}


def names(record):
    return tuple(record.header(name) for name in ("ce_source", "ce_type", "ce_dataschema"))


def test_reload_applies_names_and_audit_since_then_finds_no_fault(installation):
    """A release from quarantine, too. The deliveries before the reload are too old for the audit to compare, as gatepost(1) says."""
    config = installation.config()
    installation.create_topics(config)
    daemon = installation.start(config)
    first, held = (Delivery(event_body(kind), timestamp=now() - HOUR_S) for kind in ("invoice.accepted", "invoice.future"))
    installation.kafka.append([first, held])
    installation.kafka.wait_until_routed()
    config["source invoicing"].update(NAMES)
    config["events"].update({"invoice.*": f"{installation.prefix}.invoice.accepted"})
    reload(daemon)
    since = math.ceil(time.time())
    waiting.until(lambda: time.time() > since, 5, "the next second")
    later = daemon.accept(Delivery(event_body("invoice.pending")))
    (quarantined,) = installation.kafka.read(installation.kafka.quarantine)
    done = installation.gatepost("quarantine", "release", f"{quarantined.partition}-{quarantined.offset}", config=config)
    assert done.returncode == 0, done.stderr
    installation.kafka.wait_until_routed()
    found = {record.delivery_id: names(record) for record in installation.kafka.read(f"{installation.prefix}.invoice.accepted")}
    assert found.pop(later.delivery_id) == \
        ("https://invoicing.example/eu", "com.example.invoice.pending", "https://schemas.example/gatepost/invoice.pending.v1.json")
    (released,) = [each for id, each in found.items() if id.startswith(held.delivery_id)]
    assert released == \
        ("https://invoicing.example/eu", "com.example.invoice.future", "https://schemas.example/gatepost/event.v1.json")
    assert found[first.delivery_id] == ("/invoicing", "invoice.accepted", None)
    assert audit(installation, config=config).report["unexpected"] == 1  # the first, under its former name
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    assert audit(installation, "--since", text, config=config).faults == (0, 0, 0)


def test_config_shows_the_computed_source(offline):
    config = offline.config()
    config["source invoicing"]["ce_type_prefix"] = "com.example."
    lines = offline.gatepost("config", config=config).stdout.splitlines()
    shown = {line.partition(" = ")[0]: line.partition(" = ")[2] for line in lines if line.startswith("ce_")}
    assert shown["ce_source"].startswith('"/invoicing" ') and shown["ce_type_prefix"].startswith('"com.example." ')
    assert "ce_dataschema_base" not in shown
