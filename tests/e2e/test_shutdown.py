"""SIGTERM: no new connections, requests in flight are answered and committed, exit 0."""

import contextlib
import signal
import time

import pytest

import http_client
import waiting
from load import Load
from signing import Delivery
from tally import assert_exactly_once


def test_sigterm_under_load_loses_nothing_and_exits_0(installation):
    config = installation.config()
    config["receiver"]["threads"] = 2
    installation.create_topics(config)
    daemon = installation.start(config)
    load = Load(lambda: [daemon.address], threads=12, once=True).start()
    for _ in range(3):
        wanted = len(load.accepted) + 500
        waiting.until(lambda: len(load.accepted) >= wanted, 120, lambda: f"{wanted} accepted: {load.answers}")
        daemon.stop(expect=0)
        daemon.restart()
    load.stop()
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, load.accepted, load.sent)


def test_new_connections_are_refused_after_sigterm(installation):
    installation.create_topics()
    daemon = installation.start()
    address = daemon.address
    daemon.stop()
    with pytest.raises(ConnectionRefusedError):
        http_client.connect(address)


def test_signal_of_an_earlier_version_does_not_end_the_daemon(installation):
    """0.1.0 logged its state on SIGUSR1."""
    installation.create_topics()
    daemon = installation.start()
    daemon.process.send_signal(signal.SIGUSR1)
    delivery = Delivery()
    client = http_client.Client(daemon.address)
    assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    daemon.stop(expect=0)


def test_idle_connections_do_not_delay_shutdown(installation):
    installation.create_topics()
    daemon = installation.start()
    idle = [http_client.connect(daemon.address) for _ in range(5)]
    idle[0].sendall(b"POST /webhooks/invoicing HTTP/1.1\r\nhost: a\r\ncontent-le")  # incomplete
    kept = http_client.Client(daemon.address)
    delivery = Delivery()
    assert kept.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    daemon.stop(seconds=20)
    for connection in idle:
        connection.close()
    kept.close()


def test_clients_with_many_connections_do_not_delay_shutdown(installation):
    """Each connection is closed with its next answer; clients that keep sending must not keep it open."""
    config = installation.config()
    config["receiver"]["ack_timeout"] = "1s"
    installation.create_topics(config)
    daemon = installation.start(config)
    clients, answers = [http_client.Client(daemon.address) for _ in range(400)], []
    for client in clients:
        assert client.request("GET", "/nothing").status == 404
    daemon.process.send_signal(signal.SIGTERM)
    for client in clients:
        if not daemon.is_running():
            break
        delivery = Delivery()
        with contextlib.suppress(OSError):
            answers.append(client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status)
        time.sleep(0.05)
    daemon.wait_for_exit(0)
    # A delivery after ack_timeout is answered 503, if one comes before the end.
    assert len(answers) < 400 and set(answers) <= {200, 503}, answers


@pytest.mark.parametrize("role", ["receiver", "router"])
def test_sigterm_stops_a_daemon_with_one_role(installation, role):
    installation.create_topics()
    installation.start(installation.config(role)).stop()


def test_sigint_stops_the_daemon_like_sigterm(installation):
    installation.create_topics()
    daemon = installation.start()
    daemon.process.send_signal(signal.SIGINT)
    daemon.wait_for_exit(0)


def test_signals_during_shutdown_do_not_change_the_exit_status(installation):
    """A late signal must not kill a daemon that is about to exit with status 0."""
    installation.create_topics()
    daemon = installation.start()
    daemon.accept()
    daemon.process.send_signal(signal.SIGTERM)
    while daemon.is_running():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            daemon.process.send_signal(number)
        time.sleep(0.002)  # let it do other work
    daemon.wait_for_exit(0)
