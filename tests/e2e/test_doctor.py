"""gatepost doctor: a healthy installation, the forms of its report, and interrupts."""

import contextlib
import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import time

import pytest

import waiting
from audit_side import audit
from checkup import EX_OSERR, EX_TEMPFAIL, UTF_8, by_sockets, examine, expect, file_of
from daemon import ENVIRONMENT
from installation import BUILD
from preload import FakeClock
from reloading import reload
from signing import Delivery, event_body


def test_healthy_installation_gets_all_ticks_and_consumers_see_nothing(shared, healthy):
    checkup = examine(shared, file_of(healthy))
    assert (checkup.status, checkup.stderr) == (0, ""), checkup.lines
    assert [line for line in checkup.lines[:-2] if not line.startswith("✓ ")] == []
    assert checkup.cause == f"no trouble found: {len(checkup.lines) - 2} ok"
    text = "\n".join(checkup.lines)
    for step in ("configuration", "files", "resolve", "connect", "login", "client", "permission topic", "permission group", "group",
                 "permission transactional-id", "topic", "listen", "daemon /healthz", "daemon /readyz", "delivery", "router", "partitions", "clock"):
        assert f"\n✓ {step} " in f"\n{text}" or f"\n✓ {step}:" in f"\n{text}", step
    sent = [line for line in checkup.lines if line.startswith("✓ delivery ")]
    assert len(sent) == 3 and all("answered 200 in " in line for line in sent)
    assert "secret 2 of [source invoicing]" in sent[1] and "/webhooks/orders" in sent[2]
    shared.kafka.wait_until_routed()
    assert shared.kafka.read() == [] and shared.kafka.ends(shared.kafka.deliveries)
    waiting.until(lambda: healthy.metric("gatepost_test_deliveries_total") == 3 * 3, 30, "the test deliveries in the metrics")
    assert healthy.metric("gatepost_quarantined_total") == healthy.metric("gatepost_duplicates_total") == 0
    result = audit(shared, config=file_of(healthy))
    assert result.faults == (0, 0, 0) and result.report["expected"] == 0


def test_running_router_is_not_disturbed(shared, healthy):
    before, begun = shared.kafka.members(), len(healthy.log)
    for _ in range(3):
        assert examine(shared, file_of(healthy)).status == 0
        healthy.accept(Delivery(webhook_id="the-first"))
    shared.kafka.wait_until_routed()
    assert shared.kafka.members() == before
    assert healthy.metric("gatepost_transactions_total", result="aborted") == 0
    assert healthy.log.count("partition assigned") == 3
    assert " warning " not in healthy.log[begun:] and " error " not in healthy.log[begun:]


def test_json_has_the_same_steps(shared, healthy):
    text = examine(shared, file_of(healthy))
    document = json.loads("\n".join(examine(shared, file_of(healthy), "--json").lines))
    assert set(document) == {"steps", "cause", "remedy"} and document["cause"] is document["remedy"] is None
    for step in document["steps"]:
        assert set(step) == {"name", "subject", "result", "detail", "milliseconds"} and step["milliseconds"] >= 0
    names = [f"{step['name']} {step['subject']}".strip() for step in document["steps"]]
    assert names == [line[2:].partition(": ")[0] for line in text.lines[:-2]]
    assert {step["result"] for step in document["steps"]} == {"ok"}


def test_ticks_are_words_where_the_locale_is_not_utf_8(shared, healthy):
    checkup = examine(shared, file_of(healthy), environment={"LC_ALL": "C"})
    assert checkup.status == 0 and all(line.isascii() for line in checkup.lines)
    assert {line.split()[0] for line in checkup.lines[:-2]} == {"ok"}


def in_terminal(config, **environment):
    """The output on a terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen([BUILD / "gatepost", "-c", config, "doctor", "--no-send"], stdin=its, stdout=its, stderr=its,
                               env=ENVIRONMENT | UTF_8 | {"TERM": "xterm"} | environment)
    os.close(its)
    output = b""
    with contextlib.suppress(OSError):  # EIO at the end
        while read := os.read(ours, 65536):
            output += read
    os.close(ours)
    assert process.wait(30) == 0
    return output.decode()


def test_terminal_shows_what_it_waits_for_and_colours(shared, healthy):
    output = in_terminal(file_of(healthy))
    assert "\r\x1b[K… client " in output and "\x1b[32m✓\x1b[0m client: " in output
    plain = in_terminal(file_of(healthy), NO_COLOR="1")
    assert "… client " in plain and "\r\x1b[K✓ client: " in plain and "\x1b[3" not in plain


def test_no_send_appends_nothing(shared, healthy):
    before = shared.kafka.ends(shared.kafka.deliveries)
    checkup = examine(shared, file_of(healthy), "--no-send")
    assert checkup.status == 0 and [line.split(":")[0] for line in checkup.having("-")] == ["- delivery", "- clock"]
    assert shared.kafka.ends(shared.kafka.deliveries) == before


def test_default_key_is_a_note_and_nothing_to_warn_of(installation):
    """A new installation has the default key, and should give no warning."""
    config = by_sockets(installation)
    del config["source invoicing"]["key"]
    installation.create_topics()
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    (note,) = checkup.having("•")
    assert note.startswith("• keys [source invoicing]: key = kind: ") and "one consumer of a group" in note
    assert f"{installation.prefix}.invoice.accepted" in note
    assert checkup.status == 0 and checkup.having("!") == checkup.having("-") == []
    assert checkup.cause == f"no trouble found: {len(checkup.lines) - 3} ok, 1 note"
    steps = json.loads("\n".join(examine(installation, file_of(daemon), "--json").lines))["steps"]
    assert [step["result"] for step in steps if step["name"] == "keys"] == ["note"]


def test_embedded_broker_is_checked_by_the_daemons_counters(installation):
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any("recognised and dropped" in line for line in checkup.having("✓")), checkup.lines
    assert [line.split(":")[0] for line in checkup.having("-")] == ["- brokers", "- topics", "- clock"]


@pytest.mark.parametrize("admin, why", [("off", "[admin] listen is off"), ("127.0.0.1:0", "[admin] listen has port 0")])
def test_embedded_broker_without_an_admin_endpoint_is_not_waited_for(installation, admin, why):
    """Only the daemon's counters tell what became of the delivery; that it was accepted is verified."""
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    config["admin"]["listen"] = admin
    daemon = installation.daemon(config)
    daemon.launch()
    daemon.wait_for_log(" notice ready")
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any(line.startswith("✓ delivery ") for line in checkup.lines), checkup.lines
    (skipped,) = [line for line in checkup.having("-") if line.startswith("- router ")]
    assert skipped.endswith(f": not verified: {why}, and the broker is inside gatepostd, which alone can be asked"), skipped


def test_receiver_and_router_apart(installation):
    """Each checks what its role needs; with --to, the router's machine sees a delivery to the end."""
    receiver = installation.daemon(by_sockets(installation, "receiver"))
    receiver.config["receiver"]["listen"] = ["127.0.0.1:0", f"unix:{receiver.config.directory}/receiver.sock"]
    router = installation.daemon(by_sockets(installation, "router"))
    installation.create_topics()
    for daemon in (receiver, router):
        daemon.start().wait_until_ready()
    checkup = examine(installation, receiver.config, "--to", f"http://{receiver.address}")
    assert checkup.status == 0 and not [line for line in checkup.lines if "group" in line or "invoice.accepted" in line]
    assert any(line.startswith("- router ") and "no router is configured here" in line for line in checkup.lines)
    checkup = examine(installation, router.config)
    assert checkup.status == 0 and any(line.startswith("- delivery: no receiver") for line in checkup.lines), checkup.lines
    checkup = examine(installation, router.config, "--to", f"http://{receiver.address}")
    assert checkup.status == 0 and any(line.startswith("✓ router ") for line in checkup.lines), checkup.lines
    assert any(line.startswith("✓ clock") for line in checkup.lines)


def test_skewed_clock_is_a_warning(installation, plain_build):
    installation.create_topics()
    daemon = installation.start(by_sockets(installation))
    installation.build = plain_build
    path = pathlib.Path(file_of(daemon))
    clock = FakeClock(daemon)
    clock.set(-60)
    checkup = examine(installation, path, environment=daemon.environment)
    (warning,) = [line for line in checkup.having("!") if line.startswith("! clock")]
    assert "ahead of this machine's, more than a tenth of tolerance (30s)" in warning and checkup.status == 0


@pytest.mark.parametrize("ahead_s, words", [(-7200, ["clock: the broker's clock is 1", " min ahead of this machine's: one of them is wrong"]),
                                            (7200, ["daemon /readyz: not ready: Kafka refuses the time of what the router publishes: the clock of this machine is more than ",
                                                    "Invalid timestamp"])])
def test_clock_that_is_hours_off_is_the_cause(installation, plain_build, ahead_s, words):
    """Of one host: Kafka refuses the events of a router that is an hour ahead."""
    installation.build = plain_build
    installation.create_topics()
    daemon = installation.daemon(by_sockets(installation))
    FakeClock(daemon).set(ahead_s)
    daemon.start().wait_until_ready()
    if ahead_s > 0:
        daemon.accept(Delivery(timestamp=int(time.time()) + ahead_s))
        daemon.wait_until_not_ready(60)
    checkup = examine(installation, file_of(daemon), environment=daemon.environment)
    expect(checkup, EX_OSERR, *words, "remedy: ", "timedatectl on each")


# Interrupts

def wait_for_silent_public_url(installation, address):
    config = by_sockets(installation, "router")
    config["admin"]["listen"] = "off"
    return config.write(), "--to", f"http://{address}"


def wait_for_silent_service(installation, address):
    config = by_sockets(installation, "router")
    config["admin"]["listen"] = "off"
    config["service"].update(base_url=f"http://{address}", api_key_file=config.secret_file("api-key", b"the-api-key-of-the-tests"))
    return config.write(), "--no-send"


SILENT = [(wait_for_silent_public_url, "delivery http://"), (wait_for_silent_service, "service http://")]


@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
@pytest.mark.parametrize("wait_for_silent, step", SILENT, ids=[each[0].__name__ for each in SILENT])
def test_interrupt_ends_it_with_what_was_found(installation, wait_for_silent, step, interrupt):
    """Each step would wait for 10 or 15 s; the last line comes before the step's time limit."""
    installation.create_topics()
    with socket.create_server(("127.0.0.1", 0)) as server:
        config, *arguments = wait_for_silent(installation, "%s:%d" % server.getsockname())
        process = subprocess.Popen([BUILD / "gatepost", "-c", config, "doctor", *arguments], stdout=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT | UTF_8)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            connection.recv(65536)  # it is waiting for the answer now
            process.send_signal(interrupt)
            output = process.communicate(timeout=60)[0]
        finally:
            process.kill()
        connection.close()
    assert process.returncode == EX_TEMPFAIL, output
    assert output.splitlines()[-1] == "cause: interrupted before the end; remedy: run it again"
    assert "✗" not in output  # no time limit was reached
    assert any(line.startswith(f"- {step}") and line.endswith(": interrupted") for line in output.splitlines()), output


def test_interrupt_ends_it_at_the_first_of_many_brokers(offline):
    """It would wait some seconds for each of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        config = offline.config()
        config["kafka"]["bootstrap.servers"] = ",".join(["%s:%d" % server.getsockname()] * 60)
        process = subprocess.Popen([BUILD / "gatepost", "-c", config.write(), "doctor"], stdout=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT | UTF_8)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=60)[0]
        finally:
            process.kill()
        connection.close()
    assert output.splitlines()[-1].startswith("cause: ") and output.count("✗ kafka ") <= 1, output


def test_interrupt_ends_json(installation):
    installation.create_topics()
    with socket.create_server(("127.0.0.1", 0)) as server:
        config, *arguments = wait_for_silent_public_url(installation, "%s:%d" % server.getsockname())
        process = subprocess.Popen([BUILD / "gatepost", "-c", config, "doctor", "--json", *arguments], stdout=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT | UTF_8)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            process.send_signal(signal.SIGINT)
            document = json.loads(process.communicate(timeout=60)[0])
        finally:
            process.kill()
        connection.close()
    assert document["cause"] == "interrupted before the end"
    assert (document["steps"][-1]["name"], document["steps"][-1]["detail"]) == ("delivery", "interrupted")


@pytest.mark.parametrize("option, effect", [("key", "so that their key is the delivery-id"), ("subject", "so that they have no ce_subject")])
def test_pointer_that_finds_nothing_is_a_warning(installation, option, effect):
    """It is no error: a body may lack it, or have a value of another type, and then the event does without it."""
    kind = "string or number" if option == "key" else "string"
    config = by_sockets(installation)
    config["source invoicing"][option] = "/data/invoiceId"
    installation.create_topics()
    daemon = installation.start(config)
    deliveries = [Delivery(event_body(invoiceId=number)) for number in ("4711", "4712")]
    daemon.accept(deliveries[0])
    installation.kafka.wait_until_routed()
    (line,) = examine(installation, file_of(daemon), "--no-send").having("!")
    assert line.startswith(f"! events [source invoicing]: `{option}` has found no {kind} in the bodies of 1 event since the configuration was loaded, {effect}")
    config["source invoicing"][option] = "/invoiceId"
    reload(daemon)
    assert examine(installation, file_of(daemon), "--no-send").having("!") == []
    daemon.accept(deliveries[1])
    installation.kafka.wait_until_routed()
    assert examine(installation, file_of(daemon), "--no-send").having("!") == []
    assert daemon.metric("gatepost_event_lookups_total", source="invoicing", option=option, result="found") == 1
    assert daemon.metric("gatepost_event_lookups_total", source="invoicing", option=option, result="missing") == 1
    config["source invoicing"][option] = "/invoice/id"
    reload(daemon)
    daemon.accept(Delivery(event_body(invoiceId="4713")))
    installation.kafka.wait_until_routed()
    (line,) = examine(installation, file_of(daemon), "--no-send").having("!")
    assert f"`{option}` has found no {kind} in the bodies of 1 event " in line
