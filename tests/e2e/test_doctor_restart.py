"""gatepost doctor: before a restart that leaves deliveries behind in a topic, it says what to do first."""

import re
import shutil

import pytest
from cluster import Cluster

import waiting
from checkup import by_sockets, examine, file_of, status_of
from installation import Installation
from reloading import reload, send_sighup
from signing import Delivery

AUDIT = "gatepost -c OLDFILE audit, with the old options of a router, counts no deliveries that are not yet routed (lag 0 in all partitions)"
FIRST = ("first stop what sends deliveries, and wait until gatepost -c {file} status shows an empty spool at each receiver, and then until "
         f"{AUDIT}; then")
REST = ("or do not wait for lag 0, and route the rest afterwards by a router with the old options and another `instance`: gatepost-guide(7), ANOTHER "
        "CLUSTER OR PREFIX")
EVENT = " deliveries that are not routed before the restart may stay in the present topic "


def told(installation, daemon, words):
    """The only warning, which has these words, from the word behind them."""
    (warning,) = examine(installation, file_of(daemon), "--no-send").having("!")
    assert words in warning, warning
    return warning.partition(words)[2]


@pytest.mark.parametrize("has_spool", [False, True])
def test_restart_with_another_prefix_leaves_deliveries_behind(installation, has_spool):
    """With another spool, too: both are guarded."""
    config = by_sockets(installation)
    spool = config.directory / "spool"
    if has_spool:
        config["receiver"]["spool"] = str(spool)
    installation.create_topics(config)
    daemon = installation.start(config)
    old = f"{installation.prefix}.deliveries"
    config["topics"]["prefix"] = installation.prefix + "n"
    if has_spool:
        config["receiver"]["spool"] = str(config.directory / "larger")
    installation.create_topics(config)
    assert f'{EVENT}topic={old} brokers="{config["kafka"]["bootstrap.servers"]}"\n' in reload(daemon)
    how = "systemctl restart gatepostd"
    if has_spool:
        how += f", if gatepost -c {file_of(daemon)} status shows just before that the spool is empty: a restart does not drain {spool}"
    assert told(installation, daemon, "[topics] prefix: ") == (
        f"a restart reads {installation.prefix}n.deliveries, and leaves in {old} what is not routed by then: {FIRST.format(file=file_of(daemon))}: {how}; {REST}")


def test_restart_with_other_brokers_may_leave_deliveries_behind(installation):
    """They may be of the same cluster, which only the reader knows."""
    config = by_sockets(installation)
    installation.create_topics(config)
    daemon = installation.start(config)
    with Cluster() as second:
        config["kafka"]["bootstrap.servers"] = second.bootstrap
        installation.gatepost("topics", "create", "--partitions", "1", "--replication-factor", "1", config=config)
        assert EVENT in reload(daemon)
        assert told(installation, daemon, "[kafka]: ") == (
            "if `bootstrap.servers` leads to another cluster now, a restart leaves in the old one what is not routed by then: "
            f"{FIRST.format(file=file_of(daemon))}, or at once if it is the same cluster: systemctl restart gatepostd; {REST}")


def test_restart_that_moves_nothing_has_no_such_advice(installation):
    config = by_sockets(installation)
    installation.create_topics(config)
    daemon = installation.start(config)
    config["kafka"]["linger.ms"] = 7
    assert EVENT not in reload(daemon)
    assert told(installation, daemon, "[kafka]: ") == "systemctl restart gatepostd"


def test_rest_of_the_old_topic_is_routed_by_a_router_with_the_old_file(installation):
    """As gatepost-guide(7) says. The other one publishes it neither before nor afterwards."""
    receiver = installation.config("receiver")
    installation.create_topics(receiver)
    daemon = installation.start(receiver)
    ids = {daemon.accept(Delivery()).delivery_id for _ in range(3)}
    daemon.stop()
    both = by_sockets(installation)
    both["topics"]["prefix"] = new = installation.prefix + "n"
    installation.create_topics(both)
    moved = installation.start(both)
    assert not installation.kafka.read(*installation.kafka.published_topics())
    rest = installation.config("router")
    rest["gatepost"]["instance"] = "rest"
    installation.start(rest)
    installation.kafka.wait_until_routed()
    assert {record.delivery_id for record in installation.kafka.read(*installation.kafka.published_topics())} == ids
    moved.stop()


@pytest.mark.slow
def test_audit_counts_what_waits_for_a_router_that_has_stopped(installation):
    """The other one is ready, and its lag 0, while Kafka waits for the first one to come back."""
    config = by_sockets(installation)
    installation.create_topics(config, 4)
    daemon = installation.start(config)
    second = installation.start(installation.config("router", instance="second"))

    def own(router):
        return [each for each in status_of(router)["partitions"] if each["state"] == "routing"]
    waiting.until(lambda: len(own(daemon)) == len(own(second)) == 2, 60, "two partitions each")
    second.stop()
    for _ in range(20):
        daemon.accept(Delivery())
    waiting.until(lambda: re.match(r"(?s)ready, .*\nlag: 0 records in 2 partitions\n", installation.gatepost("status", config=file_of(daemon)).stdout), 60, "no lag")
    assert " not yet routed" in installation.gatepost("audit", config=file_of(daemon)).stdout
    waiting.until(lambda: " not yet routed" not in installation.gatepost("audit", config=file_of(daemon)).stdout, 60, "all is routed")
    assert len(installation.kafka.read(*installation.kafka.published_topics())) == 20


@pytest.mark.parametrize("is_secret", [False, True])
@pytest.mark.parametrize("has_spool", [False, True])
def test_file_that_was_replaced_outside_of_its_mount(installation, is_secret, has_spool):
    """The daemon and the command are in a container that has the file alone, and see the old one."""
    config = by_sockets(installation)
    if has_spool:
        config["receiver"]["spool"] = str(config.directory / "spool")
    installation.create_topics(config)
    daemon = installation.daemon(config)
    file = str(config["source invoicing"]["secret_file"]) if is_secret else file_of(daemon)
    on_host, edited = config.directory / "on_host", config.directory / "edited"
    daemon.wrapper = ["unshare", "--mount", "sh", "-ec", f'cp -p {file} {on_host}; mount --bind {on_host} {file}; exec "$@"', "sh"]
    daemon.start().wait_until_ready()
    inside = ["nsenter", f"--target={daemon.process.pid}", "--mount"]

    def lines():
        checkup = examine(installation, file_of(daemon), "--no-send", wrapper=inside)
        return [line for line in checkup.lines if " daemon configuration: " in line]
    assert lines() == ["\N{CHECK MARK} daemon configuration: gatepostd has loaded the newest files"]
    shutil.copy(on_host, edited)
    edited.rename(on_host)
    assert f' a file was replaced outside of its mount, and the old one was read file="{file}"\n' in send_sighup(daemon)
    (line,) = lines()
    assert line.startswith(f"! daemon configuration: {file} was replaced or deleted outside of this mount, and only the old file is seen here, ")
    assert line.endswith("; mount its directory instead, or each time: create the container anew" + has_spool * (
        f", but unless `spool` is on a volume, only when gatepost -c {file_of(daemon)} status shows that it is empty") + (not is_secret) * (
            "; if the new one has another `prefix`, `bootstrap.servers` or `spool`, which is not seen here, read gatepost-guide(7), ANOTHER CLUSTER OR "
            "PREFIX, before"))


@pytest.mark.parametrize("has_spool", [False, True])
def test_restart_when_the_old_cluster_is_lost(broker, tmp_path, has_spool):
    """It is not to wait for a spool that only the old cluster can take."""
    with Cluster() as lost:
        installation = Installation(tmp_path, lost.bootstrap)
        config = by_sockets(installation)
        if has_spool:
            config["receiver"].update(ack_timeout="1s", spool=str(tmp_path / "spool"))
        installation.create_topics(config)
        daemon = installation.start(config)
    try:
        waiting.until(lambda: not status_of(daemon)["kafkaReachable"], 60, "gatepostd to notice")
        if has_spool:
            daemon.accept(Delivery())
            assert status_of(daemon)["spool"]["records"] == 1
        config["kafka"]["bootstrap.servers"] = broker.bootstrap
        installation.gatepost("topics", "create", "--partitions", "1", "--replication-factor", "1", config=config)
        reload(daemon)
        checkup = examine(installation, file_of(daemon), "--no-send")
        (line,) = [line for line in checkup.lines if " daemon configuration: " in line]
        spooled = has_spool * "the spool is drained into the cluster of the file; "
        assert line.partition("[kafka]: ")[2] == (
            "gatepostd does not reach the brokers that it has: if they do not come back, or the new ones are of the same cluster, at once: systemctl restart "
            f"gatepostd; {spooled}if the old cluster is lost, what was not routed in it is lost, too; if it comes back, read gatepost-guide(7), ANOTHER CLUSTER "
            "OR PREFIX, before a restart")
        daemon.stop()
        daemon.start().wait_until_ready()
        if has_spool:
            waiting.until(lambda: status_of(daemon)["events"]["invoice.accepted"] == 1, 60, "the spooled delivery to be published")
    finally:
        installation.clean_up()


@pytest.mark.parametrize("change", ["prefix", "brokers"])
def test_embedded_broker_keeps_nothing_that_could_be_routed_afterwards(installation, change):
    config = by_sockets(installation)
    brokers = config["kafka"]["bootstrap.servers"]
    config["kafka"]["bootstrap.servers"] = "embedded"
    daemon = installation.start(config)
    if change == "brokers":
        config["kafka"]["bootstrap.servers"] = brokers
        installation.create_topics(config)
    else:
        config["topics"]["prefix"] += "n"
    reload(daemon)
    option = "[kafka]: " if change == "brokers" else "[topics] prefix: "
    (line,) = [line for line in examine(installation, file_of(daemon), "--no-send").lines if " daemon configuration: " in line]
    assert line.partition(option)[2] == (
        f"the embedded broker forgets all records at a restart: {FIRST.format(file=file_of(daemon))}: systemctl restart gatepostd")


@pytest.mark.parametrize("change", ["prefix", "brokers"])
def test_receivers_without_routers_are_restarted_first(installation, change):
    config = by_sockets(installation, "receiver")
    installation.create_topics(config)
    daemon = installation.start(config)
    order = (f"restart all receivers first, and the routers when {AUDIT}: gatepost-guide(7), ANOTHER CLUSTER OR PREFIX; here: "
             "systemctl restart gatepostd")
    if change == "prefix":
        config["topics"]["prefix"] += "n"
        installation.create_topics(config)
        where = f"[topics] prefix: a restart lets this receiver append to {installation.prefix}n.deliveries: "
    else:
        config["kafka"]["bootstrap.servers"] += ",127.0.0.1:9"
        where = "[kafka]: if `bootstrap.servers` leads to another cluster now, a restart lets this receiver append there: "
    reload(daemon)
    (line,) = [line for line in examine(installation, file_of(daemon), "--no-send").lines if " daemon configuration: " in line]
    assert line.endswith(f", {where}{order}"), line
