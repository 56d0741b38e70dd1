"""A single role, and both roles in separate processes."""

import http_client
from signing import Delivery


def test_receiver_alone_stores_deliveries_without_routing(installation):
    installation.create_topics()
    receiver = installation.start(installation.config("receiver"))
    delivery = receiver.accept()
    (record,) = installation.kafka.read(installation.kafka.deliveries)
    assert (record.key.decode(), record.value) == (delivery.delivery_id, delivery.body)
    assert installation.kafka.committed() == {} and installation.kafka.read() == []


def test_router_alone_routes_and_does_not_listen(installation):
    installation.create_topics()
    router = installation.start(installation.config("router"))
    assert router.addresses == []
    delivery = Delivery()
    installation.kafka.append([delivery])
    installation.kafka.wait_until_routed()
    assert [record.delivery_id for record in installation.kafka.read()] == [delivery.delivery_id]


def test_receiver_and_router_in_separate_processes_share_only_kafka(installation):
    installation.create_topics()
    receiver = installation.start(installation.config("receiver"))
    delivery = receiver.accept()
    receiver.accept(delivery)
    receiver.stop()
    installation.start(installation.config("router"))
    installation.kafka.wait_until_routed()
    (record,) = installation.kafka.read()
    assert (record.delivery_id, record.value) == (delivery.delivery_id, delivery.body)


def test_admin_endpoint_serves_health_readiness_and_metrics(installation):
    installation.create_topics()
    daemon = installation.start()
    assert daemon.admin("/healthz").status == 200
    assert b"receiver" in daemon.admin("/readyz").body and b"router" in daemon.admin("/readyz").body
    metrics = daemon.admin("/metrics")
    assert metrics.status == 200 and metrics.headers["content-type"].startswith("text/plain")
    assert b"# TYPE gatepost_requests_total counter" in metrics.body
    assert daemon.admin("/elsewhere").status == 404
    assert daemon.admin("/webhooks/invoicing").status == 404


def test_admin_endpoint_listens_on_a_unix_socket(installation):
    config = installation.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    installation.create_topics(config)
    installation.start(config)
    assert http_client.request(f"unix:{config.directory}/admin.sock", "GET", "/healthz").status == 200
