"""gatepost doctor and the spool, also while Kafka is so slow that the receiver answers 200 from it."""

import contextlib
import pathlib
import re
import shutil

import pytest
from cluster import Cluster

import waiting
from checkup import EX_CONFIG, EX_UNAVAILABLE, RESTART, by_sockets, examine, expect, file_of, status_of, with_status
from installation import Installation
from proxy import Proxies
from reloading import reload
from signing import Delivery


@pytest.fixture
def slow(tmp_path):
    """A daemon with a spool, whose connections to the broker lead through proxies."""
    with Cluster(proxied=True) as cluster, Proxies(cluster) as proxies:
        each = Installation(tmp_path, cluster.proxied_bootstrap)
        each.direct_bootstrap = cluster.bootstrap
        config = by_sockets(each)
        config["receiver"].update(ack_timeout="1s", spool=str(tmp_path / "spool"))
        config["receiver"]["listen"] = [config["receiver"]["listen"], "127.0.0.1:0"]
        each.create_topics(config)
        daemon = each.start(config)
        with contextlib.ExitStack() as held:
            yield each, daemon, proxies, held
        proxies.clear()
        each.clean_up()


def hold_appends(proxies, held):
    """Until the end of the test, or held.close(). Kafka is reachable meanwhile."""
    held.callback(proxies.hold_request("Produce", times=None).release)


def test_delivery_that_waits_in_the_spool(slow):
    """It is accepted, and not lost, but Kafka does not have it yet."""
    installation, daemon, proxies, held = slow
    hold_appends(proxies, held)
    checkup = examine(installation, file_of(daemon))
    assert any(line.startswith("✓ delivery ") for line in checkup.lines), checkup.lines
    expect(checkup, EX_UNAVAILABLE, "router ", "the test delivery was accepted, but Kafka does not have it within 30 s: the receiver's spool has ",
           "gatepost status", "journalctl -u gatepostd")
    assert "prefix" not in checkup.cause and status_of(daemon)["spool"]["records"] > 0


def test_delivery_in_the_spool_is_waited_for(slow):
    """Longer than for a delivery that has gone to Kafka at once."""
    installation, daemon, proxies, _ = slow
    proxies.delay("Produce", 7, of="request", times=None)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any(line.startswith("✓ router ") for line in checkup.lines), checkup.lines
    waiting.until(lambda: daemon.metric("gatepost_spool_written_total") > 0, 60, "the spool to be used")


def test_delivery_in_the_spool_of_another_machine_is_a_candidate(slow):
    """Its report is not at hand, as on the machine of a router."""
    installation, daemon, proxies, held = slow
    router = by_sockets(installation, "router")
    router["admin"]["listen"] = "off"
    hold_appends(proxies, held)
    checkup = examine(installation, router, "--to", "http://" + daemon.addresses[1])
    expect(checkup, EX_CONFIG, "router ", "accepted, but not found", "wait in its spool", "prefix", "gatepost status on the receiver's machine")


def test_spool_that_is_moved_while_deliveries_wait_in_it(slow):
    """A restart would leave them where they are."""
    installation, daemon, proxies, held = slow
    hold_appends(proxies, held)
    daemon.accept()
    waiting.until(lambda: status_of(daemon)["spool"]["segments"] > 0, 60, "a delivery in the spool")
    old = daemon.config["receiver"]["spool"]
    daemon.config["receiver"]["spool"] = str(daemon.config.directory / "larger")
    reload(daemon)
    (warning,) = [line for line in examine(installation, file_of(daemon), "--no-send").having("!") if "only a restart applies" in line]
    assert f"[receiver] spool: a restart does not drain the deliveries in {old}, because `spool` of the file does not lead there: wait until " in warning
    assert warning.endswith(f": systemctl restart gatepostd; or do that at once, and then: gatepost -c {file_of(daemon)} spool drain {old}")


def test_restart_that_would_leave_deliveries_behind_is_no_remedy(slow):
    """Not on the last line either, nor before the file with the other `spool` is loaded."""
    installation, daemon, proxies, _ = slow
    old = pathlib.Path(daemon.config["receiver"]["spool"])
    proxies.freeze()
    waiting.until(lambda: daemon.post(Delivery()).status == 200, 60, "the answer 200")
    waiting.until(lambda: status_of(daemon)["spool"]["records"] > 0, 60, "a delivery in the spool")
    waiting.until(lambda: status_of(daemon)["kafkaProblem"], 60, "the daemon's trouble with Kafka")
    daemon.config["kafka"]["bootstrap.servers"] = installation.direct_bootstrap
    shutil.copyfile(daemon.config.write(), file_of(daemon))
    assert remedy_of(installation, daemon) == RESTART, "the same spool is drained"

    daemon.config["receiver"]["spool"] = str(old.with_name("larger"))
    shutil.copyfile(daemon.config.write(), file_of(daemon))
    moved = (f"a restart does not drain the deliveries in {old}, because `spool` of the file does not lead there: wait until gatepost -c {file_of(daemon)} "
             f"status shows none, and then: {RESTART}; or do that at once, and then: gatepost -c {file_of(daemon)} spool drain {old}")
    assert remedy_of(installation, daemon) == moved
    reload(daemon)
    assert remedy_of(installation, daemon) == moved

    old.with_name("larger").symlink_to(old)
    assert remedy_of(installation, daemon) == RESTART, "another path to the same directory"

    old.rename(old.with_name("mislaid"))
    waiting.until(lambda: not status_of(daemon)["spool"]["inPlace"], 60, "the daemon to notice it, while nothing is delivered")
    assert remedy_of(installation, daemon).startswith(f"a restart does not drain the deliveries in the directory that was at {old}: wait until ")
    daemon.config["receiver"]["spool"] = str(old)
    shutil.copyfile(daemon.config.write(), file_of(daemon))
    assert remedy_of(installation, daemon) == (
        f"a restart does not drain the deliveries in the directory that was at {old}: put it back there first, or unmount what hides it "
        f"(if it was deleted, they are lost), and then: {RESTART}")
    old.with_name("mislaid").rename(old)
    waiting.until(lambda: status_of(daemon)["spool"]["inPlace"], 60, "the daemon to notice it")
    assert remedy_of(installation, daemon) == RESTART


def test_restart_with_another_spool_is_for_an_empty_one(installation):
    """A delivery may come between this command and the restart."""
    config = by_sockets(installation)
    config["receiver"]["spool"] = str(config.directory / "spool")
    installation.create_topics(config)
    daemon = installation.start(config)
    daemon.config["receiver"]["spool"] = str(config.directory / "larger")
    reload(daemon)
    (warning,) = [line for line in examine(installation, file_of(daemon), "--no-send").having("!") if "only a restart applies" in line]
    assert warning.endswith(f": systemctl restart gatepostd, if gatepost -c {file_of(daemon)} status shows just before that the spool is empty: a restart "
                            f"does not drain {config.directory / 'spool'}")


def test_damaged_segment_does_not_hide_that_the_directory_is_displaced(installation):
    """Each has a line, about the directory of the daemon rather than that of the file."""
    config = by_sockets(installation)
    spool = config.directory / "spool"
    spool.mkdir(0o700)
    (spool / "0000000000000001.spool.damaged").write_bytes(b"no segment")
    config["receiver"]["spool"] = str(spool)
    installation.create_topics(config)
    daemon = installation.start(config)
    spool.rename(spool.with_name("mislaid"))
    waiting.until(lambda: not status_of(daemon)["spool"]["inPlace"], 60, "the daemon to notice it")
    daemon.config["receiver"]["spool"] = str(spool.with_name("larger"))
    reload(daemon)
    lines = [line for line in examine(installation, file_of(daemon), "--no-send").lines if " spool " in line]
    told = [line.partition(f"! spool {spool}: ")[2] for line in lines if not line.startswith("! daemon ")]
    assert len(told) == 2 and told[0].startswith("1 damaged segments, ") and told[0].endswith(f"; see gatepost spool list {spool}"), lines
    assert told[1].startswith("since gatepostd was started, the directory was renamed, "), lines


def test_log_names_the_directory_in_which_segments_are_left(slow):
    """Another one is at its path by then."""
    installation, daemon, proxies, held = slow
    spool = pathlib.Path(daemon.config["receiver"]["spool"])
    mislaid = spool.with_name("mislaid")
    hold_appends(proxies, held)
    daemon.accept(delivery := Delivery())
    waiting.until(lambda: status_of(daemon)["spool"]["segments"] > 0, 60, "a delivery in the spool")
    spool.rename(mislaid)
    spool.mkdir(0o700)
    daemon.config["receiver"]["spool"] = str(spool.with_name("larger"))
    reload(daemon)
    daemon.stop()
    (after,) = re.findall('after_the_restart="gatepost -c \\S+ (.*)"', daemon.log)
    ((was, otherwise),) = re.findall(
        " segments are left in a directory that is out of place; the next start does not drain it "
        'segments=1 was="(.*)" otherwise="gatepost -c \\S+ (.*)"', daemon.log)
    assert (was, otherwise) == (str(spool), f"spool drain {mislaid}") and after == otherwise
    done = installation.gatepost(*otherwise.split(), "--bootstrap", installation.direct_bootstrap, config=file_of(daemon))
    assert done.returncode == 0 and not list(mislaid.glob("*.spool")), done
    assert [each.value for each in installation.kafka.read(installation.kafka.deliveries)] == [delivery.body]


def test_log_names_no_command_for_a_directory_that_no_path_leads_to(installation):
    config = by_sockets(installation)
    spool = config.directory / "spool"
    config["receiver"]["spool"] = str(spool)
    installation.create_topics(config)
    daemon = installation.start(config)
    shutil.rmtree(spool)
    spool.mkdir(0o700)
    daemon.config["receiver"]["spool"] = str(spool.with_name("larger"))
    reload(daemon)
    assert f' after_the_restart="put the directory back that was at {spool}, and drain it"\n' in daemon.log


@pytest.mark.parametrize("is_deleted_at_once", [True, False])
def test_deliveries_that_are_lost_with_the_directory_are_counted(slow, is_deleted_at_once):
    """It is deleted while a segment is written, or when all of them have ended."""
    installation, daemon, proxies, _ = slow
    spool = pathlib.Path(daemon.config["receiver"]["spool"])
    proxies.freeze()
    for _ in range(3):
        waiting.until(lambda: daemon.post(Delivery()).status == 200, 60, "the answer 200")
    waiting.until(lambda: status_of(daemon)["spool"]["records"] == 3, 60, "the deliveries in the spool")
    if not is_deleted_at_once:
        waiting.until(lambda: " appending from the spool failed" in daemon.log, 60, "the segments to have ended")
    shutil.rmtree(spool)
    spool.mkdir(0o700)
    waiting.until(lambda: status_of(daemon)["spool"]["lostRecords"] == 3, 60, lambda: status_of(daemon)["spool"])
    proxies.thaw()
    waiting.until(lambda: daemon.admin("/readyz").status == 200, 60, "the receiver")
    assert daemon.metric("gatepost_spool_lost_records_total") == 3 and status_of(daemon)["spool"]["records"] == 0
    checkup = examine(installation, file_of(daemon), "--no-send")
    assert [line for line in checkup.having("!") if "3 deliveries that were answered 200 are lost" in line], checkup.lines
    assert "\n  deliveries lost, which were answered 200: 3\n" in installation.gatepost("status", config=file_of(daemon)).stdout


def remedy_of(installation, daemon):
    """Of a daemon that uses Kafka with an earlier configuration; its file has one by which Kafka can be reached."""
    checkup = examine(installation, file_of(daemon), "--no-send")
    expect(checkup, EX_UNAVAILABLE, "daemon /readyz: gatepostd does not reach Kafka (")
    before, _, remedy = checkup.cause.partition("; remedy: ")[2].partition(", at once: ")
    assert before.startswith("gatepostd does not reach the brokers that it has: "), checkup.cause
    return remedy.partition("; if the old cluster is lost, ")[0].removesuffix("; the spool is drained into the cluster of the file")


def test_directory_that_is_replaced_while_kafka_works_is_reported(installation):
    """With an outage it would be too late."""
    config = by_sockets(installation)
    spool = config.directory / "spool"
    config["receiver"]["spool"] = str(spool)
    installation.create_topics(config)
    daemon = installation.start(config)
    spool.rename(spool.with_name("mislaid"))
    spool.mkdir(0o700)
    event = " the directory of the spool was renamed, deleted or replaced directory="
    daemon.wait_for_log(event, 60)
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if line.startswith("! spool ")]
    assert " the directory was renamed, deleted, replaced or hidden by a mount, " in warning
    assert warning.endswith("; no delivery is in it: put it back, or let gatepostd use the directory that is at `spool` now: systemctl restart gatepostd, if "
                            f"gatepost -c {file_of(daemon)} status shows just before that the spool is empty: a restart does not drain the directory that was at {spool}")
    spool.rmdir()
    spool.with_name("mislaid").rename(spool)
    daemon.accept()
    assert daemon.log.count(event) == 1 and daemon.metric("gatepost_spool_errors_total", error="place") == 1


def test_damaged_segment_is_a_warning(installation):
    installation.create_topics()
    config = by_sockets(installation)
    spool = config.directory / "spool"
    config["receiver"].update(spool=str(spool), spool_max="1MiB")
    daemon = installation.start(config)
    assert any(line == f"✓ spool {spool}: 0 deliveries wait" for line in examine(installation, file_of(daemon)).lines)
    daemon.stop()
    (spool / "0000000000000001.spool.damaged").write_bytes(b"no segment")
    daemon.restart()
    daemon.wait_until_ready()
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if " spool " in line]
    assert warning.startswith(f"! spool {spool}: 1 damaged segments, ") and "gatepost spool list" in warning


def report_of(spool, **members):
    """The member spool of /status."""
    return {"directory": str(spool), "inPlace": True} | members


def test_segments_that_are_not_read_are_a_warning(offline, service):
    """The records in them are not counted: 0 deliveries would seem to wait."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    config.sections["receiver"] = {"spool": config.directory / "spool"}
    file = str(config.write())
    checkup = with_status(offline, service, file, {"file": file}, spool=report_of(config.directory / "spool", uncountedSegments=2, records=3))
    assert any(line.startswith(f"! spool {config.directory}/spool: 2 segments of an earlier process are not read yet, and the deliveries in "
                               "them wait, besides 3 others; ") for line in checkup.lines), checkup.lines


def with_spool(offline, service):
    """A configuration of a daemon that the service plays, and its spool."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    spool = config.directory / "spool"
    spool.mkdir(0o700)
    config.sections["receiver"] = {"spool": spool}
    return str(config.write()), spool


@pytest.mark.parametrize("taken, is_short", [(0, True), (2**49, False)], ids=["short", "enough"])
def test_disk_with_less_room_than_the_spool_may_take(offline, service, taken, is_short):
    file, spool = with_spool(offline, service)
    checkup = with_status(offline, service, file, {"file": file}, spool=report_of(spool, limitBytes=2**49, bytes=taken, records=0))
    assert f"✓ spool {spool}: 0 deliveries wait" in checkup.lines
    warnings = [line for line in checkup.having("!") if line.startswith(f"! spool {spool}: its disk has ")]
    assert len(warnings) == is_short and all("MiB left, and the spool may take 536870912 MiB more: " in line for line in warnings)


@pytest.mark.parametrize("inodes", [1, 2])
def test_disk_without_an_inode_for_the_spool(offline, service, inodes):
    file, spool = with_spool(offline, service)
    mount = ["unshare", "--mount", "sh", "-ec", f'mount -t tmpfs -o nr_inodes={inodes} none {spool}; exec "$@"', "sh"]
    checkup = with_status(offline, service, file, {"file": file}, lambda *given: examine(*given, wrapper=mount), spool=report_of(spool, records=0))
    assert [line.partition(": ")[2] for line in checkup.having("!") if line.startswith("! spool ")] == [
        "its file system has no inode left (df -i): deliveries that come when Kafka is away are answered 503; delete files"] * (inodes == 1)
