"""A consumer that keeps little ahead goes on fetching as soon as it has taken some of it, with and without a login."""

import pytest
from cluster import Cluster

from authority import Authority
from installation import Installation
from signing import Delivery, event_body
from test_partitions import wait_until_published

BODY_BYTES, AHEAD_KBYTES = 100_000, 512
LIMITS = {"queued.max.messages.kbytes": AHEAD_KBYTES, "fetch.message.max.bytes": 1024 * AHEAD_KBYTES}
BACKLOG = 1000  # 100 MB: three minutes for a librdkafka that looks at a full queue once a second
SECONDS = 60
PASSWORD = "kafka-password-c5d6e7"


def backlog(n):
    return [Delivery(event_body("invoice.accepted", note=BODY_BYTES * "x")) for _ in range(n)]


def drain(installation, config, limits=LIMITS):
    """Route a backlog with little fetched ahead."""
    config["kafka"].update(limits)
    sent = backlog(BACKLOG)
    installation.kafka.append(sent)
    router = installation.start(config)
    installation.kafka.wait_until_routed(SECONDS)
    assert len(installation.kafka.read(f"{installation.prefix}.invoice.accepted")) == BACKLOG
    return router


@pytest.mark.parametrize("limits", [
    LIMITS, {"queued.max.messages.kbytes": 150, "fetch.message.max.bytes": 150_000}, {"queued.min.messages": 2} | LIMITS])
def test_full_queue_is_looked_at_again(installation, limits):
    installation.create_topics(partitions=1)
    drain(installation, installation.config("router"), limits)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A Kafka with a plain listener, and one that requires TLS and a password."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    with Cluster(secured=authority.issue_joined("broker", names="IP:127.0.0.1"), passwords={"gatepost": PASSWORD},
                 properties={"super.users": "User:ANONYMOUS;User:gatepost"}) as cluster:
        cluster.authority = authority
        yield cluster


def test_client_logs_in_again_after_its_queue_was_full(secured, tmp_path):
    installation = Installation(tmp_path, secured.bootstrap)
    installation.create_topics(partitions=1)
    config = installation.config("router")
    config.sections["kafka"] = {
        "bootstrap.servers": secured.secured_bootstrap, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
        "sasl.username": "gatepost", "sasl.password_file": config.secret_file("password", PASSWORD.encode()),
        "ssl.ca.location": secured.authority.certificate}
    router = drain(installation, config)
    secured.kill(1)
    secured.start_node(1)
    sent = backlog(1)
    installation.kafka.append(sent)
    wait_until_published(installation.kafka, sent)
    assert PASSWORD not in router.log
    installation.clean_up()
