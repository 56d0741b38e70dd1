"""What an operator sees of the spool: /metrics, /status, `gatepost status`, the status page, and readiness."""

import json
import pathlib
import re
import signal
import subprocess
import time

import pytest

import waiting
from accounts import GUIDE
from checkup import file_of
from chromium import Chromium
from installation import Installation
from manager import Manager
from preload import FailDisk, HungDisk
from signing import Delivery, event_body
from spool_side import Segment, pack_fields
from test_page import opened, page_in, status_of

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def with_spool(installation, roles="receiver, router", **receiver):
    config = installation.config(roles)
    config["receiver"].update({"spool": config.directory / "spool", "ack_timeout": "2s"} | receiver)
    return config


def segments_of(daemon):
    return [path.stat() for path in (daemon.config.directory / "spool").glob("*.spool")]


@pytest.fixture
def spooling(offline):
    """A daemon without Kafka that has spooled three deliveries: to one or two segments, as the drain ends an only one."""
    daemon = offline.daemon(with_spool(offline)).start()
    for _ in range(3):
        daemon.accept()
    return daemon


def test_metrics_count_spooled_deliveries(spooling):
    assert spooling.metric("gatepost_spool_written_total") == spooling.metric("gatepost_spool_records") == 3
    assert spooling.metric("gatepost_spool_segments") == len(segments_of(spooling)) in (1, 2)
    waiting.until(lambda: spooling.metric("gatepost_spool_bytes") == sum(each.st_size for each in segments_of(spooling)) > 3 * 500,
                  SECONDS, "the size of the segments")
    assert spooling.metric("gatepost_spool_drained_total") == 0
    assert spooling.metric("gatepost_spool_limit_bytes") == 10 * 2**30
    oldest, since = (spooling.metric(f"gatepost_spool_{name}_timestamp_seconds") for name in ("oldest", "since"))
    assert time.time() - 300 < oldest <= since + 1 and since <= time.time()
    assert 1 <= spooling.metric("gatepost_spool_sync_seconds_count") <= 3
    assert spooling.metric("gatepost_spool_errors_total") == spooling.metric("gatepost_spool_refused_records") == 0
    done = subprocess.run(["promtool", "check", "metrics"], input=spooling.admin("/metrics").body, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (0, b"")


def test_spooled_delivery_takes_no_more_than_its_body_and_the_documented_bytes(offline):
    (documented,) = re.findall(r"A spooled delivery takes its body and up to ([0-9]+) bytes", GUIDE.read_text())
    daemon = offline.daemon(with_spool(offline)).start()
    body = event_body(text="x" * 1000)
    for _ in range(10):
        daemon.accept(Delivery(body))
    assert 300 < daemon.metric("gatepost_spool_bytes") / 10 - len(body) <= int(documented)


def test_status_agrees_with_the_metrics(spooling):
    spool = status_of(spooling)["spool"]
    assert (spool["written"], spool["records"], spool["drained"], spool["limitBytes"]) == (3, 3, 0, 10 * 2**30)
    assert spool["segments"] == spooling.metric("gatepost_spool_segments")
    waiting.until(lambda: status_of(spooling)["spool"]["bytes"] == spooling.metric("gatepost_spool_bytes"), SECONDS, "the same size")
    assert spool["oldestSeconds"] == int(spooling.metric("gatepost_spool_oldest_timestamp_seconds"))
    assert spool["spoolingSinceSeconds"] == int(spooling.metric("gatepost_spool_since_timestamp_seconds"))
    assert spool["errors"] == {"full": 0, "disk": 0, "write": 0, "sync": 0, "place": 0}
    assert spool["syncSeconds"]["count"] >= 1 and 0 < spool["syncSeconds"]["p50"] <= spool["syncSeconds"]["p99"]


def text_of(installation, daemon):
    daemon.config["admin"]["listen"] = daemon._addresses("admin")[0]
    done = installation.gatepost("status", config=daemon.config)
    assert done.stderr == "", done
    return done.stdout


def test_gatepost_status_shows_the_spool(offline, spooling):
    text = text_of(offline, spooling)
    assert re.search(r"^spooled deliveries +3\noldest one received +\d.* ago\nspool size +\d+\.\d KiB\nspool_max +10\.0 GiB$", text, re.M), text
    assert "\nspool: warning: deliveries go to the disk, because Kafka does not take them\n" in text
    report = json.loads(offline.gatepost("status", "--json", config=spooling.config).stdout)
    assert report["spool"]["records"] == 3


def test_page_shows_the_spool(spooling, browser):
    with opened(browser, spooling) as tab:
        assert tab.value("document.querySelector('#spool').checkVisibility()") is True
        assert tab.value("document.querySelector('#spool').textContent") == "Spool deliveries go to it"
        counts = page_in(tab).counts
        assert {name: n for name, n in counts.items() if name.startswith("spool")} == \
            {"spool/records": 3, "spool/written": 3, "spool/segments": len(segments_of(spooling))}
        causes = tab.value("[...document.querySelectorAll('#causes li')].map((each) => each.textContent)")
        assert "deliveries only on this machine's disk: 3" in causes, causes
        facts = tab.value("document.querySelector('#spool-facts').textContent")
        assert re.match(r"size\d.* KiB of 10 GiB", facts) and "oldest" in facts and "lost" not in facts, facts
        assert tab.complaints() == []


def test_receiver_that_spools_is_ready_although_the_router_is_not(spooling):
    receiver, router, both = (spooling.admin(f"/readyz{path}") for path in ("/receiver", "/router", ""))
    assert (receiver.status, router.status, both.status) == (200, 503, 503)
    assert re.fullmatch(r"receiver: ready, spooling since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", receiver.body.decode())
    assert router.body.startswith((b"router: Kafka is not reachable", b"router: Kafka has not answered yet")) and both.body == router.body + receiver.body


@pytest.mark.parametrize("role, other", [("receiver", "router"), ("router", "receiver")])
def test_readiness_of_a_role_that_the_process_does_not_have_is_not_found(offline, role, other):
    daemon = offline.daemon(offline.config(role)).start()
    reply = daemon.admin(f"/readyz/{other}")
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert reply.json["error"]["message"] == "this process does not have that role; see roles in [gatepost]"
    assert daemon.admin(f"/readyz/{role}").status == 503 and daemon.admin("/readyz/admin").status == 404


def test_without_a_spool_nothing_is_reported(offline, browser):
    daemon = offline.daemon().start()
    assert "spool" not in status_of(daemon) and b"gatepost_spool" not in daemon.admin("/metrics").body
    assert "spool:" not in text_of(offline, daemon)
    with opened(browser, daemon) as tab:
        assert tab.value("document.querySelector('#spool').checkVisibility()") is False


def test_drained_deliveries_are_counted_by_the_next_process(installation):
    config = with_spool(installation)
    config["kafka"]["bootstrap.servers"] = "127.0.0.1:9"
    daemon = installation.daemon(config).start()
    sent = [daemon.accept() for _ in range(3)]
    daemon.stop()
    config["kafka"]["bootstrap.servers"] = installation.bootstrap
    installation.create_topics(config)
    daemon.restart()
    waiting.until(lambda: daemon.metric("gatepost_spool_segments") == 0, SECONDS, lambda: f"an empty spool: {daemon.log[-3000:]}")
    assert daemon.metric("gatepost_spool_drained_total") == 3 and daemon.metric("gatepost_spool_written_total") == 0
    for name in ("bytes", "records", "uncounted_segments", "oldest_timestamp_seconds", "since_timestamp_seconds"):
        assert daemon.metric(f"gatepost_spool_{name}") == 0, name
    assert re.search(r"^spooled deliveries +0\nspool size +0 bytes$", text_of(installation, daemon), re.M)
    installation.kafka.wait_until_routed()
    assert {record.delivery_id for record in installation.kafka.read()} == {delivery.delivery_id for delivery in sent}
    ready = [daemon.admin(f"/readyz{path}") for path in ("/receiver", "/router")]
    assert [(reply.status, reply.body) for reply in ready] == [(200, b"receiver: ready\n"), (200, b"router: ready\n")]


def test_service_manager_knows_that_the_receiver_spools(offline, tmp_path):
    manager = Manager(tmp_path / "notify")
    try:
        daemon = manager.watch(offline.daemon(with_spool(offline, "receiver"))).start()
        manager.wait_for("READY")
        daemon.accept()
        manager.wait_for_status("receiver: ready, spooling since ")
        daemon.stop()
    finally:
        manager.close()


def test_gatepostd_8_explains_exactly_the_log_messages_of_the_spool():
    sources = "".join(path.read_text() for path in sorted((ROOT / "src" / "spool").glob("*.c")))
    found = re.findall(r'log_(?:flood\(\s*&?[^,]+, LOG_LEVEL_|)(?:[a-zA-Z]+)(?:,|\()\s*"([^"]*)"', sources)
    messages = {re.split(r" \w+=", text)[0].strip() for text in found}
    section = (ROOT / "man" / "gatepostd.8").read_text().partition(".Ss The spool\n")[2].partition("\n.Ss ")[0]
    explained = set(re.findall(r"^\.It Dq (.*)$", section, re.M))
    assert len(messages) >= 8 and explained - messages == {"deliveries go to the spool", "deliveries go to Kafka again"}
    assert messages <= explained, messages - explained


def test_full_spool_is_counted_and_shown(offline):
    config = with_spool(offline, spool_max="1MiB")
    config["admin"]["listen"] = f"127.0.0.1:{offline.port()}"
    daemon = offline.daemon(config).start()
    large = b'{"event":"invoice.accepted","note":"%s"}' % (b"x" * 700_000)
    assert daemon.post(Delivery(large)).status == 200 and daemon.post(Delivery(large)).status == 503
    assert daemon.metric("gatepost_spool_errors_total", error="full") >= 1
    assert daemon.metric("gatepost_spool_written_total") == 1
    assert ("\nspool: the spool has reached spool_max, so deliveries that come while Kafka is away are answered 503\n"
            "  remedy: raise spool_max if the disk has room\n") in text_of(offline, daemon)
    assert daemon.admin("/status").json["spool"]["lastError"]["error"] == "full"
    line = daemon.wait_for_log(" error the spool is full; deliveries are answered 503 spool_max=1048576 bytes=")
    assert re.search(r" bytes=7\d{5} size=7\d{5}( n=\d+)?$", line), line


def readiness(daemon):
    reply = daemon.admin("/readyz/receiver")
    return reply.status, reply.body.decode()


def test_receiver_is_not_ready_while_its_full_spool_refuses_deliveries(offline):
    daemon = offline.daemon(with_spool(offline, spool_max="1MiB")).start()
    for status in (200, 503):
        assert daemon.post(Delivery(b'{"event":"invoice.accepted","note":"%s"}' % (b"x" * 700_000))).status == status
    status, text = readiness(daemon)
    assert status == 503 and "Kafka is not reachable" in text and "the spool is full;" in text
    daemon.accept()  # there is room for a small one
    assert readiness(daemon)[0] == 200


def test_receiver_is_not_ready_while_its_spool_fails(offline):
    """Without a delivery that tries: a load balancer sends none to a receiver that is not ready."""
    daemon = offline.daemon(with_spool(offline)).start()
    spool = daemon.config.directory / "spool"
    spool.rename(spool.with_name("mislaid"))
    assert daemon.post(Delivery()).status == 503
    before = daemon.metric("gatepost_spool_errors_total", error="place")
    while daemon.metric("gatepost_spool_errors_total", error="place") < before + 3:
        assert readiness(daemon)[0] == 503
        time.sleep(0.2)
    spool.with_name("mislaid").rename(spool)
    waiting.until(lambda: readiness(daemon)[0] == 200, SECONDS, "the receiver to be ready again")
    assert daemon.metric("gatepost_spool_written_total") == 0 and daemon.post(Delivery()).status == 200


def test_full_disk_is_named_in_the_answer_the_log_the_refusals_and_the_readiness(offline, plain_build):
    offline.build = plain_build
    config = with_spool(offline)
    daemon = offline.daemon(config)
    daemon.environment.update(FailDisk(config.directory, 1000, is_full=True).environment)
    daemon.start()
    refused = daemon.post()
    assert refused.status == 503 and refused.json["error"]["message"] == "the disk of the spool is full", refused.body
    daemon.wait_for_log('reason="the disk is full: No space left on device"')
    assert daemon.admin("/status").json["refusals"][0]["detail"] == "the disk of the spool is full"
    status, text = readiness(daemon)
    assert status == 503 and text.startswith("receiver: the disk of the spool is full; Kafka is not reachable"), text


def test_oldest_delivery_is_of_the_segment_that_is_counted_later(offline, plain_build):
    """An earlier process has left a segment that takes long to read, and a new delivery comes first."""
    offline.build = plain_build
    config = with_spool(offline, "receiver")
    config["receiver"]["spool"].mkdir(mode=0o700)
    received_s = int(time.time()) - 5 * 3600
    Segment().add(Delivery(), received_s * 1000).seal().write(config["receiver"]["spool"], 1)
    daemon = offline.daemon(config)
    hung = HungDisk(daemon)
    with hung:
        daemon.start().accept()
        assert daemon.metric("gatepost_spool_oldest_timestamp_seconds") > received_s + 3600
    waiting.until(lambda: daemon.metric("gatepost_spool_uncounted_segments") == 0, SECONDS, "the segment to be counted")
    assert daemon.metric("gatepost_spool_oldest_timestamp_seconds") == received_s


def test_spool_that_is_moved_is_named_at_the_reload_and_at_the_end(offline):
    config = with_spool(offline, "receiver")
    daemon = offline.daemon(config).start()
    old, new = config["receiver"]["spool"], config.directory / "elsewhere"
    daemon.accept()
    for spelt in (old, f"{old}/", f"{old}/../{old.name}"):
        config["receiver"]["spool"] = spelt
        reload_with(daemon)
    assert "drains this spool no more" not in daemon.log
    for n, moved in enumerate((new, None), 1):
        if moved is None:
            del config["receiver"]["spool"]
        else:
            config["receiver"]["spool"] = moved
        reload_with(daemon)
        lines = [line for line in daemon.log.splitlines() if " a restart drains this spool no more: " in line]
        assert len(lines) == n and f'segments={len(list(old.glob("*.spool")))} directory="{old}"' in lines[-1], lines
        assert f'after_the_restart="gatepost -c {file_of(daemon)} spool drain {old}"' in lines[-1], lines
    daemon.stop()
    left = len(list(old.glob("*.spool")))
    (line,) = [line for line in daemon.log.splitlines() if " segments are left in the spool" in line]
    assert left > 0 and f'segments={left} directory="{old}" otherwise="gatepost -c {file_of(daemon)} spool drain {old}"' in line, line


def reload_with(daemon):
    n = daemon.log.count("configuration reloaded")
    daemon.config.write(f"{daemon.name}.conf")
    daemon.process.send_signal(signal.SIGHUP)
    waiting.until(lambda: daemon.log.count("configuration reloaded") == n + 1, SECONDS, lambda: daemon.log[-3000:])


def test_receiver_with_a_full_spool_of_refused_deliveries_is_ready_when_kafka_is_back(own_broker, tmp_path):
    """No delivery comes that would show that Kafka works, and the drain has none that it would take."""
    installation = Installation(tmp_path, own_broker.bootstrap)
    try:
        config = with_spool(installation, spool_max="1MiB")
        installation.create_topics(config)
        config["receiver"]["spool"].mkdir(mode=0o700)
        malformed = Segment().add_raw(pack_fields([(b"gatepost-source", b"invoicing")]), b"", int(time.time() * 1000)).seal()
        with malformed.write(config["receiver"]["spool"], 1).open("ab") as file:
            file.truncate(2 << 20)
        daemon = installation.start(config)
        waiting.until(lambda: daemon.metric("gatepost_spool_refused_records") == 1, SECONDS, "a refused record")
        own_broker.kill(1)
        try:
            waiting.until(lambda: daemon.post().status == 503 and readiness(daemon)[0] == 503, SECONDS, "an outage")
        finally:
            own_broker.start_node(1)
        waiting.until(lambda: readiness(daemon) == (200, "receiver: ready\n"), 2 * SECONDS, lambda: readiness(daemon))
        assert daemon.metric("gatepost_spool_since_timestamp_seconds") == 0
    finally:
        installation.clean_up()


def test_damaged_segment_is_reported(offline, browser):
    config = with_spool(offline)
    config["receiver"]["spool"].mkdir(mode=0o700)
    (config["receiver"]["spool"] / "0000000000000001.spool.damaged").write_bytes(b"x" * 100)
    daemon = offline.daemon(config).start()
    assert daemon.metric("gatepost_spool_damaged_segments") == 1
    assert "\nspool: warning: damaged segments: 1\n" in text_of(offline, daemon)
    with opened(browser, daemon) as tab:
        causes = tab.value("[...document.querySelectorAll('#causes li')].map((each) => each.textContent)")
        assert "1 segment of the spool damaged" in causes


def test_segments_moved_away_to_make_room_replace_none_of_an_earlier_time(offline, tmp_path):
    daemon = offline.daemon(with_spool(offline))
    moved = tmp_path / "moved"
    moved.mkdir()
    for _ in range(3):
        daemon.start()
        assert daemon.post(Delivery()).status == 200
        daemon.stop()
        for path in (daemon.config.directory / "spool").glob("*.spool"):
            path.rename(moved / path.name)
    done = offline.gatepost("spool", "list", moved)
    assert done.returncode == 0 and "\n3 segments, 3 records, " in done.stdout, done
