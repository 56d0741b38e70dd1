"""gatepost spool: list, show and drain segments that the tests write from the documented format."""

import fcntl
import json
import os
import re
import subprocess
import time

import pytest

import waiting
from daemon import ENVIRONMENT
from installation import BUILD, PLAIN_BUILD
from signing import Delivery, event_body
from spool_side import HEAD_SIZE, HEADER_SIZE, Segment, name_of, pack_fields, read_directory, records_in

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_TEMPFAIL, EX_NOPERM = 64, 65, 66, 69, 75, 77


def now_ms():
    return int(time.time() * 1000)


@pytest.fixture
def spool(tmp_path):
    directory = tmp_path / "spool"
    directory.mkdir(0o700)
    return directory


@pytest.fixture
def run(offline, spool):
    """Run a command on the spool, without a configuration."""
    def run(name, *arguments, expect=0):
        done = offline.gatepost("spool", name, *arguments, spool, config="/nonexistent/gatepost.conf")
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return done
    return run


def shown(run, *arguments, expect=0):
    """The delivery-ids that are shown."""
    return re.findall("^delivery-id  (.*)$", run("show", *arguments, expect=expect).stdout, re.M)


def listed(run, expect=0):
    return {each["name"]: each for each in json.loads(run("list", "--json", expect=expect).stdout)}


# Inspecting

def test_list_shows_each_segment(run, spool):
    Segment().add(Delivery(), 1764000000123).add(Delivery(), 1764000060999).seal().write(spool, 1)
    torn = Segment().add(Delivery(), 1764000000000).sync().add(Delivery(), 1764000001000)
    torn.data = torn.data[:torn.offsets[1] + 100]
    torn.write(spool, 0x10)
    (spool / "README").write_text("no segment")
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["SEGMENT", "BYTES", "COUNT", "OLDEST", "NEWEST", "STATE"]
    assert re.fullmatch(rf"{name_of(1)} +[0-9]+ +2 2025-11-24T16:00:00Z 2025-11-24T16:01:00Z complete", lines[1]), lines
    assert re.fullmatch(rf"{name_of(0x10)} +\d+ +1 2025-11-24T16:00:00Z 2025-11-24T16:00:00Z torn, 100 torn bytes", lines[2]), lines
    assert re.fullmatch(r"2 segments, 3 records, \d+ bytes; 1 other files", lines[3])
    first = listed(run)[name_of(1)]
    size = (spool / name_of(1)).stat().st_size
    assert first == {"name": name_of(1), "size": size, "records": 2, "oldest": "2025-11-24T16:00:00.123Z",
                     "newest": "2025-11-24T16:01:00.999Z", "state": "complete", "damagedBytes": 0, "tornBytes": 0, "failure": None}
    assert listed(run)[name_of(0x10)]["tornBytes"] == 100


def test_show_has_headers_and_body_of_each_record(run, spool):
    hostile = Delivery(b'{"event":"\x1b[31mred\xff"}')
    plain = Delivery(event_body())
    segment = Segment().add(plain, 1764000000123).add(hostile).seal()
    segment.write(spool, 1)
    text = run("show").stdout
    assert f"delivery-id  {plain.delivery_id}\n" in text and f"    gatepost-signature: {plain.signature}\n" in text
    assert "received     2025-11-24T16:00:00.123Z\n" in text and f"body, {len(plain.body)} bytes\n{plain.body.decode()}\n" in text
    assert "\x1b" not in text and r"\x1b[31mred\xff" in text
    stored = records_in(segment.data)[0]
    for name, value in stored.fields:
        assert not name or f"    {name.decode()}: {value.decode()}\n" in text
    assert text.count(f"segment      {name_of(1)}, byte ") == 2 and f"delivery-id  {hostile.delivery_id}\n" in text


def test_show_selects_by_delivery_and_segment(run, offline, spool):
    deliveries = [Delivery() for _ in range(4)]
    Segment().add(deliveries[0]).add(deliveries[1]).seal().write(spool, 1)
    Segment().add(deliveries[2]).seal().write(spool, 2)
    Segment().add(deliveries[3]).seal().write(spool, 3).rename(spool / f"{name_of(3)}.damaged")
    ids = [each.delivery_id for each in deliveries]
    assert shown(run) == ids
    assert shown(run, "--delivery-id", ids[1]) == [ids[1]]
    assert shown(run, "--segment", f"{name_of(3)}.damaged") == [ids[3]]
    assert "no readable delivery" in run("show", "--delivery-id", "another", expect=EX_NOINPUT).stderr
    assert "no segment 7" in run("show", "--segment", "7", expect=EX_NOINPUT).stderr


def test_directory_defaults_to_the_configured_one(offline, spool):
    config = offline.config()
    done = offline.gatepost("spool", "list", config=config)
    assert done.returncode == EX_USAGE and "has no spool in [receiver]" in done.stderr
    assert offline.gatepost("spool", "drain", config=config).returncode == EX_USAGE
    config["receiver"]["spool"] = spool
    Segment().add(Delivery()).seal().write(spool, 1)
    assert "1 segments, 1 records," in offline.gatepost("spool", "list", config=config).stdout
    for name in ("list", "show", "drain"):
        done = offline.gatepost("spool", name, "/nonexistent/spool", config=config)
        assert done.returncode == EX_NOINPUT and "/nonexistent/spool: No such file" in done.stderr


def test_commands_read_while_the_directory_is_locked(run, spool):
    Segment().add(Delivery()).seal().write(spool, 1)
    with open(spool / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert listed(run)[name_of(1)]["records"] == 1
        assert len(shown(run)) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_becomes_the_user_of_the_daemon(offline, spool):
    Segment().add(Delivery()).seal().write(spool, 1)
    done = offline.gatepost("spool", "list", "--user", "nobody", spool, config=False)
    assert done.returncode in (EX_NOINPUT, EX_NOPERM) and done.stderr.startswith("gatepost spool list: running as user nobody, like gatepostd; ")
    assert offline.gatepost("spool", "list", "--user", "root", spool, config=False).stderr == ""
    done = offline.gatepost("spool", "list", "--user", "no-such-user", spool, config=False)
    assert (done.returncode, done.stderr) == (EX_NOPERM, "gatepost spool list: --user: there is no user no-such-user\n")


# Damage

DELIVERIES = [Delivery(event_body(filler="x" * 200)) for _ in range(6)]


def segment_of_six(seal=True):
    """Three groups of two records, each group synced before the next."""
    segment = Segment(b"segment1")
    for i, delivery in enumerate(DELIVERIES):
        segment.add(delivery, 1764000000000 + i)
        if i % 2 == 1:
            segment.sync()
    return segment.seal() if seal else segment


def readable(data):
    return [record.key for record in records_in(bytes(data))]


def changed(data, at, new):
    return bytes(data[:at]) + new + bytes(data[at + len(new):])


SIX = segment_of_six()
AT = SIX.offsets


@pytest.mark.parametrize("data, n, state", [
    (SIX.data, 6, "complete"),
    (segment_of_six(seal=False).data, 6, "complete"),
    (b"", 0, "torn"),
    (SIX.data[:AT[5] + 90], 5, "torn"),
    (SIX.data[:AT[4]] + bytes(len(SIX.data) - AT[4]), 4, "torn"),  # zeros, not yet written
    (changed(SIX.data, AT[0] + HEAD_SIZE + 50, b"\xff"), 5, "damaged"),  # in the fields
    (changed(SIX.data, AT[5] + HEAD_SIZE, bytes(16)), 5, "damaged"),  # the seal says so
    (changed(segment_of_six(seal=False).data, AT[4] + HEAD_SIZE, bytes(16)), 5, "torn"),  # nothing says so
    (changed(SIX.data, 0, b"X"), 6, "damaged"),  # the header
    (SIX.data[:AT[4]] + Segment(b"segment2").add(DELIVERIES[0]).data[HEADER_SIZE:], 4, "torn"),  # blocks of an old file
])
def test_state_of_a_segment_and_what_is_readable(run, spool, data, n, state):
    (spool / name_of(1)).write_bytes(data)
    done = run("list", "--json", expect=EX_DATAERR if state == "damaged" else 0)
    (entry,) = json.loads(done.stdout)
    assert (entry["records"], entry["state"], entry["size"]) == (n, state, len(data))
    assert shown(run) == readable(data) and len(readable(data)) == n
    assert ("may be missing in 1 of the segments" in done.stderr) == (state == "damaged") == (entry["damagedBytes"] > 0)


def test_body_that_looks_like_records_is_not_taken_for_them(run, spool):
    """Somebody who can send deliveries puts records into a body; a damaged head then makes the reader look into it."""
    inner = b"".join(bytes(-i % 8) + Segment().add(Delivery(b"forged"), key="forged").data[HEADER_SIZE:] for i in range(3))
    segment = Segment().add(Delivery(inner)).sync().add(Delivery()).seal()
    segment.data = changed(segment.data, segment.offsets[0] + 1, b"\0")
    segment.write(spool, 1)
    (record,) = shown(run)
    assert [record] == [key.decode() if isinstance(key, bytes) else key for key in readable(segment.data)] != ["forged"]


# Draining

NOTHING = "0 records appended, 0 refused, 0 segments left\n"

UNREADABLE = """
#include <errno.h>
#include <sys/types.h>

ssize_t pread(int fd, void *bytes, size_t len, off_t offset)
{
        errno = EIO;
        return -1;
}
"""


@pytest.fixture
def routed(installation):
    """An installation whose router runs; the spool is that of a machine that is gone."""
    config = installation.config()
    installation.create_topics(config)
    installation.start(config)
    return installation


def drain(installation, spool, *options, expect=0, config=None):
    done = installation.gatepost("spool", "drain", *options, spool, config=config or installation.daemons[0].config)
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return done


def events(installation):
    """{delivery-id: number of events}"""
    installation.kafka.wait_until_routed()
    found = {}
    for record in installation.kafka.read():
        if record.topic not in (installation.kafka.quarantine, installation.kafka.deliveries):
            found[record.delivery_id] = found.get(record.delivery_id, 0) + 1
    return found


def quarantined(installation):
    installation.kafka.wait_until_routed()
    return {record.delivery_id: record for record in installation.kafka.read(installation.kafka.quarantine)}


def test_drain_publishes_each_delivery_once(routed, spool):
    deliveries = [Delivery(event_body()) for _ in range(25)]
    twice = deliveries[3]
    segment = Segment()
    for delivery in deliveries[:20]:
        segment.add(delivery)
    segment.seal().write(spool, 1)
    last = Segment().add(twice)
    for delivery in deliveries[20:]:
        last.add(delivery)
    last.write(spool, 0xabc)
    before = now_ms()
    done = drain(routed, spool)
    assert (done.stdout, done.stderr) == ("26 records appended, 0 refused, 0 segments left\n", "gatepost spool drain: draining 2 segments\n")
    assert [path.name for path in spool.iterdir()] == ["lock"]
    assert events(routed) == {delivery.delivery_id: 1 for delivery in deliveries}
    records = {record.delivery_id: record for record in routed.kafka.read(routed.kafka.deliveries)}
    for delivery in deliveries:
        record = records[delivery.delivery_id]
        assert record.value == delivery.body and record.header("gatepost-signature") == delivery.signature
        stamp = time.strptime(record.header("gatepost-spooled")[:19], "%Y-%m-%dT%H:%M:%S")
        assert before // 1000 <= time.mktime(stamp) - time.timezone <= now_ms() // 1000
    assert drain(routed, spool).stdout == NOTHING


def test_drained_records_pass_a_router_that_verifies(installation, spool):
    config = installation.config()
    config["router"]["verify"] = "on"
    installation.create_topics(config)
    installation.start(config)
    hours_ago = now_ms() // 1000 - 7200  # the service's signature is stale by now
    old, forged = Delivery(event_body(), timestamp=hours_ago), Delivery(event_body(), timestamp=hours_ago)
    segment = Segment().add(old, hours_ago * 1000 + 500)
    segment.add(forged.but(secret=b"another secret, which nobody has"), hours_ago * 1000).seal().write(spool, 1)
    drain(installation, spool)
    assert events(installation) == {old.delivery_id: 1}
    assert quarantined(installation)[forged.delivery_id].header("gatepost-reason") == "unverified"


def test_readable_records_of_a_damaged_segment_are_drained_and_it_is_put_aside(routed, spool):
    segment = Segment()
    deliveries = [Delivery(event_body()) for _ in range(3)]
    for delivery in deliveries:
        segment.add(delivery).sync()
    segment.seal()
    segment.data = changed(segment.data, segment.offsets[1] + HEAD_SIZE, bytes(40))
    segment.write(spool, 7)
    done = drain(routed, spool, expect=EX_DATAERR)
    assert "2 records appended, 0 refused, 0 segments left" in done.stdout and "damaged segments, which were put aside: 1; " in done.stderr
    assert events(routed) == {deliveries[0].delivery_id: 1, deliveries[2].delivery_id: 1}
    assert sorted(read_directory(spool)) == [f"{name_of(7)}.damaged"]
    assert (spool / f"{name_of(7)}.damaged").read_bytes() == segment.data
    assert drain(routed, spool).stdout == NOTHING
    listing = routed.gatepost("spool", "list", spool, config=False)
    assert " aside, " in listing.stdout and " damaged bytes\n" in listing.stdout and listing.returncode == EX_DATAERR


def test_segment_whose_end_is_missing_is_put_aside_when_it_is_drained(routed, spool):
    """A copy of a failing disk, whose last block, with the seal, was replaced by zeros; nothing tells it from a torn write."""
    deliveries = [Delivery(event_body()) for _ in range(2)]
    segment = Segment().add(deliveries[0]).sync().add(deliveries[1]).seal()
    segment.data = segment.data[:segment.offsets[1]] + bytes(len(segment.data) - segment.offsets[1])
    segment.write(spool, 7)
    done = drain(routed, spool)
    assert "1 records appended, 0 refused, 0 segments left\n" in done.stdout
    assert events(routed) == {deliveries[0].delivery_id: 1}
    assert (spool / f"{name_of(7)}.damaged").read_bytes() == segment.data
    assert drain(routed, spool).stdout == NOTHING


def test_drain_of_a_segment_that_the_disk_does_not_return_names_the_remedy(routed, spool, tmp_path):
    """To drain it again would never end."""
    Segment().add(Delivery(event_body())).seal().write(spool, 1)
    library = tmp_path / "unreadable.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=UNREADABLE, text=True, check=True)
    config = routed.daemons[0].config
    done = subprocess.run([PLAIN_BUILD / "gatepost", "-c", config.write("drain.conf"), "spool", "drain", spool], text=True,
                          env=ENVIRONMENT | {"LD_PRELOAD": str(library)}, capture_output=True, timeout=60)
    assert done.returncode == EX_TEMPFAIL and "0 records appended" in done.stdout, (done.stdout, done.stderr)
    assert "segments are left; see DAMAGE in gatepost-spool(5): the disk does not return all of it" in done.stderr
    assert "drain it again" not in done.stderr


def test_records_that_kafka_refuses_stay(routed, spool):
    good, large = Delivery(event_body()), Delivery(event_body(filler="x" * 3000000))
    Segment().add(good).add(large).seal().write(spool, 1)
    other = Delivery(event_body())
    Segment().add_raw(b"\xff\xff\0\0malformed", b"{}", now_ms()).add_raw(pack_fields([(b"gatepost-source", b"x")]), b"{}", now_ms()) \
        .add(other).seal().write(spool, 2)
    done = drain(routed, spool, expect=EX_TEMPFAIL)
    assert "2 records appended, 3 refused, 2 segments left" in done.stdout, done.stderr
    assert "see DAMAGE in gatepost-spool(5): Kafka refuses records of it" in done.stderr and "malformed" in done.stderr
    assert read_names(spool) == [name_of(1), name_of(2)]
    assert events(routed) == {good.delivery_id: 1, other.delivery_id: 1}
    drain(routed, spool, expect=EX_TEMPFAIL)
    assert events(routed) == {good.delivery_id: 1, other.delivery_id: 1}


def test_directory_in_use_is_refused(routed, spool):
    Segment().add(Delivery()).seal().write(spool, 1)
    with open(spool / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = drain(routed, spool, expect=EX_TEMPFAIL)
    assert "in use by another process" in done.stderr and "a running gatepostd, which drains it itself" in done.stderr
    assert list(read_directory(spool)) == [name_of(1)]


def test_missing_topic_is_named_before_draining(installation, spool):
    segment = Segment().add(Delivery()).seal()
    segment.write(spool, 1)
    done = drain(installation, spool, expect=EX_DATAERR, config=installation.config())
    assert installation.kafka.deliveries in done.stderr and done.stdout == ""
    assert (spool / name_of(1)).read_bytes() == segment.data


def test_unreachable_kafka_leaves_everything(offline, spool):
    segment = Segment().add(Delivery()).seal()
    segment.write(spool, 1)
    done = drain(offline, spool, expect=EX_UNAVAILABLE, config=offline.config())
    assert done.stderr and (spool / name_of(1)).read_bytes() == segment.data


def read_names(spool):
    return sorted(path.name for path in spool.glob("*.spool"))


def start_drain(installation, spool, config):
    return subprocess.Popen([BUILD / "gatepost", "-c", config.write("drain.conf"), "spool", "drain", spool], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def fill(spool, n_segments, n_records):
    deliveries = []
    for number in range(1, n_segments + 1):
        segment = Segment()
        for _ in range(n_records):
            deliveries.append(Delivery(event_body()))
            segment.add(deliveries[-1])
        segment.seal().write(spool, number)
    return deliveries


def test_drain_that_is_killed_can_be_repeated(routed, spool):
    deliveries = fill(spool, 20, 40)
    config = routed.daemons[0].config
    for _ in range(3):
        before = len(read_names(spool))
        process = start_drain(routed, spool, config)
        try:
            waiting.until(lambda: len(read_names(spool)) < before or process.poll() is not None, 60, "a segment to be drained")
        finally:
            process.kill()
            process.communicate()
    done = drain(routed, spool)
    assert read_names(spool) == [] and " 0 segments left\n" in done.stdout
    assert events(routed) == {delivery.delivery_id: 1 for delivery in deliveries}


@pytest.fixture
def slow(routed):
    """A configuration whose producer sends nothing for minutes."""
    config = routed.config(roles="receiver")
    config["receiver"]["ack_timeout"] = "5min"
    config["kafka"]["linger.ms"] = "200000"
    return config


def test_drain_gives_up_when_nothing_is_acknowledged(routed, slow, spool):
    fill(spool, 1, 2)
    done = drain(routed, spool, "--timeout", "1s", config=slow, expect=EX_TEMPFAIL)
    assert "drain it again, since Kafka acknowledged nothing for 1s" in done.stderr
    assert "0 records appended, 0 refused, 1 segments left\n" in done.stdout
