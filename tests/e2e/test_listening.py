"""The listening addresses and the secrets of a receiver."""

import contextlib
import socket

import http_client
import waiting
from signing import SECRET, Delivery


def test_receiver_listens_on_ipv4_ipv6_and_unix_sockets(installation):
    config = installation.config()
    socket_path = config.directory / "receiver.sock"
    config["receiver"]["listen"] = ["127.0.0.1:0", "[::1]:0", f"unix:{socket_path}"]
    installation.create_topics(config)
    daemon = installation.start(config)
    assert sorted(address.rpartition(":")[0] for address in daemon.addresses) == ["127.0.0.1", "[::1]", "unix"]
    sent = {daemon.accept(address=address).delivery_id for address in daemon.addresses}
    installation.kafka.wait_until_routed()
    assert {record.delivery_id for record in installation.kafka.read()} == sent


def test_receiver_replaces_a_stale_unix_socket(installation):
    config = installation.config()
    config["receiver"]["listen"] = f"unix:{config.directory}/receiver.sock"
    installation.create_topics(config)
    daemon = installation.start(config)
    daemon.kill()
    daemon.restart().accept()


def test_unix_socket_of_a_successor_is_not_removed(offline, tmp_path):
    """Both configurations name the same path, and the first daemon's socket was removed."""
    path = tmp_path / "receiver.sock"
    daemons = []
    for _ in range(2):
        config = offline.config("receiver")
        config["receiver"]["listen"] = f"unix:{path}"
        path.unlink(missing_ok=True)
        daemons.append(offline.daemon(config).start())
    daemons[0].stop()
    assert daemons[1].post().status == 503  # without Kafka
    daemons[1].stop()
    assert not path.exists()


def test_startup_fails_if_a_process_with_a_full_backlog_holds_the_socket(offline, tmp_path):
    path = tmp_path / "receiver.sock"
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as clients:
        listener.bind(str(path))
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                client = clients.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))
        config = offline.config("receiver")
        config["receiver"]["listen"] = f"unix:{path}"
        daemon = offline.daemon(config)
        daemon.launch()
        assert daemon.take_exit_status() != 0
    assert "another process listens on" in daemon.log


def test_two_threads_serve_many_connections(installation):
    config = installation.config()
    config["receiver"]["threads"] = 2
    installation.create_topics(config)
    daemon = installation.start(config)
    clients = [http_client.Client(daemon.address) for _ in range(40)]
    sent = {}
    for client in clients * 3:
        delivery = Delivery()
        assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
        sent[delivery.delivery_id] = delivery
    for client in clients:
        client.close()
    installation.kafka.wait_until_routed()
    assert sorted(record.delivery_id for record in installation.kafka.read()) == sorted(sent)


def test_threads_together_keep_to_max_connections(offline):
    """Each thread may use its share regardless of the others; the shares add up to max_connections."""
    config = offline.config("receiver")
    config["receiver"].update({"threads": 4, "max_connections": 5})
    daemon = offline.daemon(config).start()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(http_client.connect(daemon.address))
        waiting.until(lambda: daemon.metric("gatepost_connections_accepted_total") == 40, 30, "all to be accepted")
        waiting.until(lambda: daemon.metric("gatepost_connections_open") <= 5, 30,
                      lambda: f"5 connections: {daemon.metric('gatepost_connections_open')}")


def test_every_configured_secret_is_accepted(installation):
    config = installation.config()
    secrets = [b"the first secret of a rotation", b"the second secret of a rotation", b"a secret in the configuration"]
    config["source invoicing"]["secret_file"] = [config.secret_file(f"secret{n}", each)
                                                 for n, each in enumerate(secrets[:2])]
    config["source invoicing"]["secret"] = secrets[2].decode()
    installation.create_topics(config)
    daemon = installation.start(config)
    for secret in secrets:
        daemon.accept(Delivery(secret=secret))
    assert daemon.post(Delivery(secret=SECRET)).code == "INVALID_SIGNATURE"


def test_more_than_64_listen_addresses_are_refused(offline):
    config = offline.config("receiver")
    config["receiver"]["listen"] = ["127.0.0.1:0"] * 64
    daemon = offline.daemon(config).start()
    assert len(daemon.addresses) == 64
    daemon.stop()
    config["receiver"]["listen"].append("127.0.0.1:0")
    done = offline.gatepost("check", config=config)
    assert done.returncode == 78 and "more than 64 addresses" in done.stderr
