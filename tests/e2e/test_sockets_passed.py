"""Listening sockets passed by a service manager."""

import contextlib
import os
import shutil
import socket
import time

import pytest

import http_client
import waiting
from daemon import ENVIRONMENT
from load import Load
from manager import Manager, address_of, has_file, listening, pass_on
from signing import Delivery
from tally import assert_exactly_once

SECONDS = 60


@pytest.fixture
def embedded(offline):
    """An installation that uses the embedded broker."""
    offline.bootstrap = "embedded"
    return offline


def refuse(installation, sockets, names, words, config=None):
    """The daemon must not start with these sockets and must log these words."""
    daemon = pass_on(installation.daemon(config), sockets, names).launch()
    assert daemon.take_exit_status() == 78
    daemon.wait_for_log(words)


def test_passed_sockets_replace_listen(embedded, tmp_path):
    config = embedded.config()
    config["receiver"]["listen"] = "127.0.0.1:1"  # cannot be bound
    sockets = [listening(), listening(f"unix:{tmp_path}/receiver.sock"), listening()]
    daemon = pass_on(embedded.daemon(config), sockets, "receiver:receiver:admin").start().wait_until_ready()
    assert daemon.addresses == [address_of(sockets[0]), address_of(sockets[1])]
    assert daemon._addresses("admin") == [address_of(sockets[2])]
    for address in daemon.addresses:
        daemon.accept(address=address)


def test_passed_sockets_remain_after_the_daemon_stops(embedded, tmp_path):
    sockets = [listening(), listening(f"unix:{tmp_path}/receiver.sock"), listening(f"unix:{tmp_path}/admin.sock")]
    daemon = pass_on(embedded.daemon(), sockets, "receiver:receiver:admin").start().wait_until_ready()
    daemon.stop()
    assert has_file(sockets[1]) and has_file(sockets[2])
    waits = http_client.connect(address_of(sockets[0]))  # accepted after the restart
    daemon.restart()
    delivery = Delivery()
    client = http_client.Client(address_of(sockets[0]))
    client.sock = waits
    assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
    client.close()


def test_passed_admin_socket_does_not_affect_receiver_listen(embedded):
    admin = listening()
    daemon = pass_on(embedded.daemon(), [admin], "admin").start().wait_until_ready()
    assert daemon._addresses("admin") == [address_of(admin)]
    daemon.accept()


def test_non_loopback_admin_socket_is_accepted_with_allow_remote(embedded):
    admin = listening("0.0.0.0:0")
    config = embedded.config()
    config["admin"]["allow_remote"] = "on"
    daemon = pass_on(embedded.daemon(config), [admin], "admin").start()
    assert daemon._addresses("admin") == [address_of(admin)]


def test_sockets_for_another_process_are_not_used(embedded):
    other = listening()
    daemon = embedded.daemon()
    daemon.environment.update({"LISTEN_FDS": "1", "LISTEN_PID": "1"})
    daemon.inherits = [other.fileno()]
    daemon.start().wait_until_ready().accept()
    assert address_of(other) not in daemon.addresses


@pytest.mark.parametrize("of", ["receiver", "admin"])
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_socket_made_blocking_by_another_process_blocks_no_client(embedded, tmp_path, of, kind):
    """O_NONBLOCK belongs to the socket. systemd clears it when it starts another service with it without NonBlocking=yes."""
    door = listening(f"unix:{tmp_path}/door.sock" if kind == "unix" else "127.0.0.1:0")
    daemon = pass_on(embedded.daemon(), [door], of).start().wait_until_ready()
    delivery = Delivery()
    kept = http_client.Client(address_of(door), timeout=10)

    def answer(client):
        if of == "receiver":
            return client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status
        return client.request("GET", "/healthz").status
    assert answer(kept) == 200
    door.setblocking(True)
    for _ in range(3):
        fresh = http_client.Client(address_of(door), timeout=10)  # no other connection is pending for a second accept()
        assert answer(fresh) == 200 and answer(kept) == 200
        fresh.close()
    kept.close()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_receiver_socket_shut_down_by_another_process_makes_the_daemon_unhealthy(embedded, tmp_path, kind):
    """Nothing can connect to it any more. The service manager gets no watchdog notifications and restarts the daemon."""
    door = listening(f"unix:{tmp_path}/door.sock" if kind == "unix" else "127.0.0.1:0")
    manager = Manager(tmp_path / "notify.sock")
    other = listening()
    daemon = manager.watch(pass_on(embedded.daemon(), [other, door]), watchdog_seconds=2)
    daemon.start().wait_until_ready()
    manager.wait_for("WATCHDOG")
    reason = f"another process has shut down the listening socket {address_of(door) if kind == 'unix' else ''}"
    door.shutdown(socket.SHUT_RDWR)
    waiting.until(lambda: daemon.admin("/healthz").status == 503, SECONDS, "/healthz to fail")
    assert reason in daemon.admin("/healthz").body.decode() and reason in daemon.admin("/readyz").body.decode()
    daemon.wait_for_log(f'stalled; watchdog notifications suspended reason="{reason}')
    dead_since = time.monotonic()
    manager.wait_for_status("another process has shut down")
    assert not [message for message in manager.having("WATCHDOG") if message.time > dead_since]
    daemon.stop()
    manager.close()


def test_normal_shutdown_does_not_report_its_sockets(embedded):
    daemon = embedded.daemon().start().wait_until_ready()
    daemon.stop()
    assert "shut down" not in daemon.log


def test_invalid_sockets_are_refused_by_name(embedded):
    right, connected, datagrams = listening(), socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    with open(os.devnull, "rb") as file:
        refuse(embedded, [right, connected], "receiver", "socket 4, 'receiver', passed by the service manager: not listening")
        refuse(embedded, [datagrams], "receiver", "not a stream socket")
        refuse(embedded, [file], "receiver", "not a socket")
        refuse(embedded, [right], "gatepostd.socket", "its FileDescriptorName= is neither receiver nor admin")
        refuse(embedded, [right, listening()], "admin", "a second admin socket")
    router = embedded.config("router")
    router["kafka"]["bootstrap.servers"] = "127.0.0.1:9"
    refuse(embedded, [right], "receiver", "`roles` has no receiver", router)
    refuse(embedded, [listening("0.0.0.0:0")], "admin", "reached from other machines")


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="tests/run installs systemd")
def test_first_connection_starts_the_daemon_by_socket_activation(embedded, tmp_path):
    daemon = embedded.daemon()
    path = tmp_path / "receiver.sock"
    daemon.environment["GATEPOST_UNUSED"] = ""
    daemon.wrapper = ["systemd-socket-activate", f"--listen={path}", "--fdname=receiver", "--"]
    daemon.wrapper[1:1] = [f"--setenv={name}={value}" for name, value in ENVIRONMENT.items() if "SAN_OPTIONS" in name]
    daemon.launch()
    waiting.until(path.exists, SECONDS, "systemd-socket-activate to listen")
    delivery = Delivery()
    reply = waiting.until(lambda: accepted(path, delivery), SECONDS, "an answer 200")
    assert reply.json == {"ok": True, "deliveryId": delivery.delivery_id}
    assert daemon.addresses == [f"unix:{path}"]


def accepted(path, delivery):
    """The answer if it is 200. The path exists shortly before a process listens."""
    with contextlib.suppress(ConnectionRefusedError):
        reply = http_client.request(f"unix:{path}", "POST", "/webhooks/invoicing", delivery.headers(), delivery.body)
        return reply if reply.status == 200 else None
    return None


def test_passed_socket_is_served_while_kafka_is_away(offline):
    door = listening()
    delivery = Delivery()
    daemon = pass_on(offline.daemon(), [door]).start()
    assert daemon.post(delivery).status == 503


def test_restarts_on_a_passed_socket_refuse_no_connection(installation):
    """Successive daemons use one socket, while some clients open a connection for each delivery and others keep theirs.
    A client that connects between two daemons waits for the next one."""
    config = installation.config()
    config["receiver"]["threads"] = 2
    installation.create_topics(config)
    door = listening()
    daemon = pass_on(installation.daemon(config), [door]).start().wait_until_ready()
    kept = Load(lambda: [address_of(door)], threads=4, rate=100).start()
    fresh = Load(lambda: [address_of(door)], threads=8, rate=100, keep=False).start()
    for _ in range(4):
        wanted = len(fresh.accepted) + 150
        waiting.until(lambda: len(fresh.accepted) >= wanted, SECONDS, lambda: f"{wanted} accepted: {fresh.answers}")
        daemon.stop()
        daemon.restart()
    answers = fresh.stop().answers + kept.stop().answers
    assert answers["ConnectionRefusedError"] == 0 and answers[503] == 0, answers
    assert len(fresh.accepted) == len(fresh.sent) and len(kept.accepted) == len(kept.sent)
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, fresh.accepted | kept.accepted)
