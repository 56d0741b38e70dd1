"""The dedup tables on disk, [router] state: what a restart reads, what is believed, and that nothing is published twice."""

import re
import resource
import shutil

import pytest

import waiting
from chromium import Chromium
from signing import KINDS, SECRET, Delivery, event_body, now
from tally import assert_exactly_once
from test_page import opened, page_in

SECONDS = 60
N = 3000
PARTITIONS = 2
OTHER_SECRET = b"a secret that the router does not have"


def new_deliveries(n):
    return [Delivery(event_body(KINDS[i % len(KINDS)], text="x" * 200)) for i in range(n)]


def by_id(deliveries):
    return {delivery.delivery_id: delivery for delivery in deliveries}


def state_of(installation):
    return installation.directory / "state"


def files(installation):
    return sorted(state_of(installation).glob("*.run"))


def configure(installation, **options):
    config = installation.config("router")
    config.sections["router"] = {"state": str(state_of(installation))} | options
    return config


@pytest.fixture
def routed(installation):
    """Deliveries that a router with a state directory has routed and that are in its files. Returns them."""
    installation.create_topics(partitions=PARTITIONS)
    deliveries = new_deliveries(N)
    installation.kafka.append(deliveries)
    daemon = installation.start(configure(installation))
    installation.kafka.wait_until_routed()
    stop(installation, daemon)
    assert len(files(installation)) >= PARTITIONS
    return deliveries


def stop(installation, daemon):
    daemon.stop()
    installation.kafka.remove_member(daemon.name)


def stop_when_routed(installation, config):
    daemon = installation.start(config)
    installation.kafka.wait_until_routed()
    stop(installation, daemon)
    return daemon


def n_read(daemon):
    """How many records of `deliveries` the router read before it was at its committed offsets."""
    pairs = re.findall(r"partition assigned partition=\d+ committed=(\d+) reading_from=(\d+)", daemon.log)
    assert pairs, daemon.log
    return sum(int(committed) - int(start) for committed, start in pairs[-PARTITIONS:])


def wait_for_table(daemon, n=N):
    waiting.until(lambda: daemon.metric("gatepost_remembered_ids") >= n, SECONDS, lambda: f"{n} remembered ids\n{daemon.log}")
    waiting.until(lambda: daemon.admin("/readyz").status == 200, SECONDS, lambda: daemon.log)


def repeat_some(installation, deliveries):
    """Append repeats of all, and wait until they are routed: nothing may be published again."""
    installation.kafka.append(deliveries)
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, by_id(deliveries))


def test_restart_reads_files_instead_of_the_log(installation, routed):
    daemon = installation.start(configure(installation))
    wait_for_table(daemon)
    assert "the state was read" in daemon.log and "is deleted" not in daemon.log
    assert n_read(daemon) <= PARTITIONS, "only the records that confirm the log"
    repeat_some(installation, routed)
    status = daemon.admin("/status").json["state"]
    assert status["files"] >= PARTITIONS and status["errors"] == 0
    assert daemon.metric("gatepost_state_bytes") == status["bytes"] >= sum(each.stat().st_size for each in files(installation)) / 2


def test_gatepost_status_and_page_show_the_state(installation, routed, tmp_path):
    daemon = installation.start(configure(installation))
    wait_for_table(daemon)
    daemon.wait_for_log("the state was read")
    daemon.config["admin"]["listen"] = daemon._addresses("admin")[0]
    shown = installation.gatepost("status", config=daemon.config)
    assert re.search(r"^state files +[1-9]\d*\nstate size +\d+\.\d KiB$", shown.stdout, re.M), shown
    with Chromium(tmp_path) as browser, opened(browser, daemon) as tab:
        counts = page_in(tab).counts
        assert counts["stateFiles"] >= PARTITIONS and counts["stateBytes"] > 0 and "stateErrors" not in counts, counts
        assert tab.complaints() == []


def test_directory_and_files_are_for_their_owner_only(installation, routed):
    assert state_of(installation).stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in state_of(installation).iterdir()} == {0o600}
    assert (state_of(installation) / "key").stat().st_size == 32


def test_killed_router_reads_what_is_not_in_files(installation, routed):
    more = new_deliveries(200)
    daemon = installation.start(configure(installation))
    wait_for_table(daemon)
    installation.kafka.append(more)
    installation.kafka.wait_until_routed()
    daemon.kill()
    again = installation.start(configure(installation))
    wait_for_table(again, N + 200)
    assert n_read(again) <= 200 + PARTITIONS
    repeat_some(installation, routed + more)


def test_without_the_directory_the_log_is_read(installation, routed):
    shutil.rmtree(state_of(installation))
    daemon = installation.start(configure(installation))
    wait_for_table(daemon)
    assert n_read(daemon) >= N - PARTITIONS
    repeat_some(installation, routed)


def test_new_key_makes_files_useless(installation, routed):
    (state_of(installation) / "key").unlink()
    daemon = installation.start(configure(installation))
    wait_for_table(daemon)
    assert "the key was replaced" in daemon.log
    repeat_some(installation, routed)


@pytest.mark.parametrize("damage", ["header", "truncated", "empty", "index"])
def test_damaged_file_is_deleted_with_the_reason(installation, routed, damage):
    for each in files(installation):
        content = bytearray(each.read_bytes())
        if damage == "header":
            content[40] ^= 1
        elif damage == "index":
            content[-1] ^= 0x80
        each.write_bytes(content[:{"truncated": len(content) // 2, "empty": 0}.get(damage, len(content))])
    daemon = installation.start(configure(installation))
    wait_for_table(daemon)
    assert daemon.log.count("a file of the state is not used and is deleted") >= PARTITIONS
    repeat_some(installation, routed)


def test_damage_that_is_found_late_is_repaired_from_the_log(installation, routed):
    """The blocks of entries are verified when they are read."""
    for each in files(installation):
        content = bytearray(each.read_bytes())
        for at in range(512 + 20, 512 + 512 * 100, 512):
            content[at] ^= 4
        each.write_bytes(content)
    daemon = installation.start(configure(installation))
    waiting.until(lambda: daemon.admin("/readyz").status == 200, SECONDS, lambda: daemon.log)
    repeat_some(installation, routed)
    assert "the state on disk is damaged" in daemon.log
    again = [new_deliveries(1)[0]]
    installation.kafka.append(again)
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, by_id(routed + again))


def test_files_of_another_log_are_not_believed(installation, routed, tmp_path):
    """The same topic has other records: somebody has created it again and copied the offsets."""
    copy = tmp_path / "copy"
    shutil.copytree(state_of(installation), copy)
    installation.kafka.delete(*installation.kafka.topics())
    installation.create_topics(partitions=PARTITIONS)
    others = new_deliveries(N)
    installation.kafka.append(others)
    first = installation.start(configure(installation))
    installation.kafka.wait_until_routed()
    stop(installation, first)
    shutil.rmtree(state_of(installation))
    copy.rename(state_of(installation))
    daemon = installation.start(configure(installation))
    wait_for_table(daemon)
    repeat_some(installation, others)
    assert "the state on disk is of another log" in daemon.log or "is not used and is deleted" in daemon.log


def test_directory_in_use_is_refused(installation, routed):
    installation.start(configure(installation))
    second = configure(installation)
    second.sections["gatepost"]["instance"] = "second"
    daemon = installation.daemon(second)
    daemon.launch()
    daemon.wait_for_exit(71)
    assert "is in use by another process" in daemon.log


def test_directory_that_cannot_be_created_is_refused(installation):
    installation.create_topics(partitions=PARTITIONS)
    config = configure(installation, state=str(installation.directory / "no" / "state"))
    daemon = installation.daemon(config)
    daemon.launch()
    daemon.wait_for_exit(71)
    assert "cannot create the directory" in daemon.log and "no/state" in daemon.log


def test_partition_that_another_router_had_is_read_from_the_end_of_the_files(installation, routed):
    """The files are older than the committed offsets: what another router routed meanwhile is read from the log."""
    more = new_deliveries(100)
    plain = installation.config("router")
    installation.kafka.append(more)
    other = installation.start(plain)
    installation.kafka.wait_until_routed()
    stop(installation, other)
    daemon = installation.start(configure(installation))
    wait_for_table(daemon, N + 100)
    assert n_read(daemon) <= 100 + PARTITIONS
    repeat_some(installation, routed + more)


def test_directory_that_is_gone_keeps_the_tables_in_memory(installation):
    """Somebody deletes the directory of a running router: routing goes on, and the failure is logged and counted."""
    installation.create_topics(partitions=PARTITIONS)
    deliveries = new_deliveries(N)
    config = configure(installation)
    daemon = installation.start(config)
    shutil.rmtree(state_of(installation))
    installation.kafka.append(deliveries)
    installation.kafka.wait_until_routed()
    stop(installation, daemon)
    assert "cannot be written; it stays in memory" in daemon.log
    again = installation.start(config)
    wait_for_table(again)
    repeat_some(installation, deliveries)


def test_forged_record_is_no_reason_to_read_the_log_again(installation):
    """A router that verifies knows the last record of its files by more than one identity."""
    installation.create_topics(partitions=1)
    installation.kafka.append([Delivery() for _ in range(20)] + [Delivery(secret=OTHER_SECRET)])
    config = configure(installation, verify="on")
    stop_when_routed(installation, config)
    for more in (0, 1):
        daemon = installation.start(config)
        wait_for_table(daemon, 20)
        installation.kafka.append([Delivery(secret=OTHER_SECRET)] * more)
        installation.kafka.wait_until_routed()
        stop(installation, daemon)
        assert "the state was read" in daemon.log and "another log" not in daemon.log, daemon.log


def test_record_of_a_removed_secret_is_not_published_again_after_two_restarts(installation):
    """The files say that such a record may have been published."""
    installation.create_topics(partitions=1)
    first, more = Delivery(), [Delivery(secret=OTHER_SECRET) for _ in range(2)]
    installation.kafka.append([first])
    config = configure(installation, verify="on")
    stop_when_routed(installation, config)
    shutil.rmtree(state_of(installation))
    config["source invoicing"]["secret_file"] = config.secret_file("new", OTHER_SECRET)
    for each in more:
        installation.kafka.append([each])
        daemon = stop_when_routed(installation, config)
    assert "the state was read" in daemon.log and "another log" not in daemon.log, daemon.log
    again = first.but(secret=OTHER_SECRET, timestamp=now())
    installation.kafka.append([again])
    stop_when_routed(installation, config)
    assert_exactly_once(installation.kafka, by_id([first, *more]))


@pytest.mark.parametrize("changed", [{"secret_file": "another"}, {"tolerance": "30s"}])
def test_files_are_of_this_log_although_their_last_record_is_not_genuine_any_more(installation, changed):
    """Its secret is gone, or the tolerance is lower: the identity of the record is another one with verify = on."""
    installation.create_topics(partitions=1)
    old = [Delivery(timestamp=now() - 200) for _ in range(50)]
    installation.kafka.append(old)
    config = configure(installation, verify="on")
    stop_when_routed(installation, config)
    if "secret_file" in changed:
        changed = {"secret_file": config.secret_file("another", OTHER_SECRET)}
    config["source invoicing"].update(changed)
    more = [Delivery(secret=OTHER_SECRET if "secret_file" in changed else SECRET)]
    installation.kafka.append(more)
    daemon = stop_when_routed(installation, config)
    assert "the state was read" in daemon.log and "another log" not in daemon.log, daemon.log
    assert_exactly_once(installation.kafka, by_id(old + more))


def test_table_is_written_while_it_is_restored(installation, routed, plain_build):
    """Nothing is committed meanwhile: a table that is written only after a commit would be in memory as a whole."""
    shutil.rmtree(state_of(installation))
    installation.build = plain_build
    daemon = installation.daemon(configure(installation))
    daemon.environment.update(GATEPOST_STATE_ENTRIES="100", GATEPOST_MANY_RECORDS=str(N))
    daemon.start().wait_until_ready()
    waiting.until(lambda: len(files(installation)) >= PARTITIONS, SECONDS, lambda: daemon.log)
    # Neither partition has so many.
    assert re.search(rf"dedup tables must be restored from the log records={N} about_seconds=0 about_mib=0", daemon.log), daemon.log
    repeat_some(installation, routed)


def test_limit_of_descriptors_is_raised(installation):
    """Each file takes a descriptor, which would be missing for connections to Kafka."""
    installation.create_topics(partitions=1)
    daemon = installation.daemon(configure(installation))
    daemon.wrapper = ["prlimit", "--nofile=64:5000"]
    daemon.launch()
    waiting.until(lambda: "partition assigned" in daemon.log, SECONDS, lambda: daemon.log)
    assert resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE) == (5000, 5000)


def test_files_have_descriptors_that_connections_do_not_take(installation):
    installation.create_topics(partitions=1)
    config = installation.config()
    config["receiver"]["max_connections"] = "1500"
    config.sections["router"] = {"state": str(state_of(installation))}
    daemon = installation.daemon(config)
    daemon.wrapper = ["prlimit", "--nofile=2000:2000"]
    daemon.start()
    assert re.search(r"fewer connections than max_connections.* max_connections=1500 descriptors=2000 connections=1\d\d\d ", daemon.log), daemon.log
