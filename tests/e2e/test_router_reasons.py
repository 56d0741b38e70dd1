"""What /readyz/router and the log say while the router cannot route: one reason, with a way out."""

import waiting
from cluster import Cluster
from installation import Installation
from signing import Delivery, event_body

SECONDS = 60


def readiness(daemon):
    reply = daemon.admin("/readyz/router")
    return reply.status, reply.body.decode()


def test_missing_event_topic_is_named_while_a_delivery_waits_for_it(installation):
    config = installation.config("router")
    installation.create_topics(config, partitions=1)
    kafka, topic = installation.kafka, f"{installation.kafka.prefix}.invoice.pending"
    daemon = installation.start(config)
    kafka.delete(topic)
    kafka.append([Delivery(event_body("invoice.pending"))])
    waiting.until(lambda: daemon.metric("gatepost_router_lag_records") == 1, SECONDS, "the lag to be shown during the commit")
    expected = (503, f"router: topic {topic} is missing\n")
    seen = set()
    waiting.until(lambda: seen.add(readiness(daemon)) or expected in seen, SECONDS, lambda: seen)
    assert all("Unknown partition" not in text for _, text in seen), seen
    daemon.wait_for_log(f'reason="topic {topic} is missing"')
    assert "Unknown partition" not in daemon.log
    installation.create_topics(config, partitions=1)
    waiting.until(lambda: readiness(daemon) == (200, "router: ready\n"), SECONDS, lambda: readiness(daemon))


def test_timeouts_that_the_brokers_refuse_are_named_and_can_be_configured(tmp_path):
    with Cluster(properties={"transaction.max.timeout.ms": "20000", "group.min.session.timeout.ms": "30000"}) as cluster:
        site = Installation(tmp_path, cluster.bootstrap)
        try:
            config = site.config("router")
            site.create_topics(config, partitions=1)
            for name, value in (("transaction.timeout.ms", 20000), ("session.timeout.ms", 30000)):
                daemon = site.daemon(config).start()
                waiting.until(lambda name=name: f"router: {name} is " in readiness(daemon)[1], SECONDS, lambda: readiness(daemon))
                assert "in [kafka]" in readiness(daemon)[1]
                daemon.stop()
                config["kafka"][name] = str(value)
            site.daemon(config).start().wait_until_ready()
        finally:
            site.clean_up()
