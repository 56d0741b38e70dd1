"""Why Kafka cannot be used: the log, /readyz, /status and `gatepost status` name the last cause."""

import concurrent.futures
import contextlib
import json
import re
import socket
import threading
import time

import pytest
from cluster import Cluster

import waiting
from authority import Authority
from installation import Installation

EX_UNAVAILABLE = 69
SECONDS = 60
PASSWORD = "the password of the tests"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(authority):
    """A Kafka with a plain listener, and one that requires TLS and a password."""
    with Cluster(secured=authority.issue_joined("broker", names="IP:127.0.0.1"), passwords={"gatepost": PASSWORD}) as cluster:
        yield cluster


@pytest.fixture
def config(offline, secured, authority):
    """A configuration that can log in, for tests to spoil."""
    each = offline.config("receiver")
    each.sections["kafka"] = {
        "bootstrap.servers": secured.secured_bootstrap, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
        "sasl.username": "gatepost", "sasl.password_file": each.secret_file("password", PASSWORD.encode()),
        "ssl.ca.location": authority.certificate}
    return each


def logged(daemon):
    return [line for line in daemon.log.splitlines() if "kafka is unreachable" in line]


def wait_for_cause(daemon, *parts):
    """Wait until everything names a cause with these parts."""
    def is_shown(text):
        return text is not None and all(part in text for part in parts)

    def is_known():
        status = daemon.admin("/status").json
        return is_shown(status["kafkaProblem"]) and any(is_shown(line) for line in logged(daemon))
    assert all(len(line.partition("reason=")[2]) <= 202 for line in logged(daemon)), logged(daemon)  # with its quotes
    waiting.until(is_known, SECONDS, lambda: f"{parts}: {daemon.admin('/status').json['kafkaProblem']}, {logged(daemon)}")
    status = daemon.admin("/status").json
    assert not status["kafkaReachable"] and not status["ready"]
    assert abs(status["kafkaUnreachableSinceSeconds"] - time.time()) < 2 * SECONDS
    assert status["roles"]["receiver"].startswith("Kafka is not reachable: ") and is_shown(status["roles"]["receiver"])
    ready = daemon.admin("/readyz")
    assert ready.status == 503 and is_shown(ready.body.decode())
    return status


def no_tls(config, secured):
    config["kafka"]["security.protocol"] = "SASL_PLAINTEXT"


def no_tls_and_no_login(config, secured):
    config.sections["kafka"] = {"bootstrap.servers": secured.secured_bootstrap}


def tls_to_plain_port(config, secured):
    config["kafka"]["bootstrap.servers"] = secured.bootstrap


def login_at_plain_port(config, secured):
    config["kafka"].update({"bootstrap.servers": secured.bootstrap, "security.protocol": "SASL_PLAINTEXT"})


def other_authority(config, secured):
    (config.directory / "other").mkdir()
    config["kafka"]["ssl.ca.location"] = Authority(config.directory / "other").certificate


def other_host_name(config, secured):
    config["kafka"]["bootstrap.servers"] = secured.secured_bootstrap.replace("127.0.0.1", "localhost")


def wrong_password(config, secured):
    config["kafka"]["sasl.password_file"] = config.secret_file("password", b"not the password")


def unknown_mechanism(config, secured):
    config["kafka"]["sasl.mechanism"] = "SCRAM-SHA-256"


def name_that_does_not_resolve(config, secured):
    config["kafka"]["bootstrap.servers"] = "no-such-host.invalid:9092"


def listener_of_a_controller(config, secured):
    config.sections["kafka"] = {"bootstrap.servers": f"127.0.0.1:{secured.nodes[1].controller_port}"}


def port_where_nobody_listens(config, secured):
    config["kafka"]["bootstrap.servers"] = "127.0.0.1:1"


MISTAKES = [
    (port_where_nobody_listens, ["Connection refused", "127.0.0.1:"]),
    (name_that_does_not_resolve, ["no-such-host.invalid"]),
    (wrong_password, ["wrong user name or password: ", "Authentication failed"]),
    (unknown_mechanism, ["check sasl.mechanism: ", "SCRAM-SHA-256"]),
    (other_authority, ["ssl.ca.location", "certificate verify failed"]),
    (other_host_name, ["the certificate has another name", "localhost"]),
    (tls_to_plain_port, ["the port has no TLS"]),
    (no_tls, ["the port may require TLS"]),
    (no_tls_and_no_login, ["the port may require TLS"]),
    (login_at_plain_port, ["the port takes no logins"]),
    (listener_of_a_controller, ["is this the listener of a KRaft controller?"]),
]


@pytest.mark.parametrize("spoil, parts", MISTAKES, ids=[each[0].__name__ for each in MISTAKES])
def test_cause_is_named_everywhere(offline, config, secured, spoil, parts):
    spoil(config, secured)
    daemon = offline.daemon(config).start()
    wait_for_cause(daemon, *parts)
    print(*logged(daemon), sep="\n")
    assert len(logged(daemon)) <= 2  # a second line only if the first did not give the cause
    assert PASSWORD not in daemon.log + daemon.admin("/status").body.decode()


COMMANDS = ["topics create", "topics list", "topics fix", "tail --until-end", "audit", "quarantine list", "quarantine show 0-0",
            "quarantine release --reason unknown-kind"]


@pytest.mark.parametrize("spoil, part", [(port_where_nobody_listens, "Connection refused"),
                                         (wrong_password, "wrong user name or password: "),
                                         (listener_of_a_controller, "bootstrap.servers needs that of a broker")],
                         ids=["port", "password", "controller"])
def test_every_command_names_the_cause(offline, config, secured, spoil, part):
    """In one line, as the daemon's log names it, and without that log."""
    spoil(config, secured)
    path = config.write("gatepost.conf")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        done = dict(zip(COMMANDS, pool.map(lambda command: offline.gatepost(*command.split(), config=path), COMMANDS)))
    for command, each in done.items():
        first = each.stderr.splitlines()[0]
        name = " ".join(word for word in command.split()[:2] if word.isalpha())
        assert (each.returncode, each.stdout) == (EX_UNAVAILABLE, ""), (command, each)
        assert first.startswith(f"gatepost {name}: Kafka cannot be reached: ") and part in first, (command, each.stderr)
        assert PASSWORD not in each.stderr and "unreachable" not in each.stderr, each.stderr


class Relay:
    """Connects a port, which is its own but refuses connections while this is not open, to another port."""

    def __init__(self, to):
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._to = to
        self._sockets = []

    def __enter__(self):
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self):
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._to))
            self._sockets += [client, broker]
            for pair in (client, broker), (broker, client):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    @staticmethod
    def _pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __exit__(self, *_):
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def test_status_prints_the_cause_and_since_when(offline, config, secured):
    wrong_password(config, secured)
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    daemon = offline.daemon(config).start()
    wait_for_cause(daemon, "wrong user name or password")
    done = offline.gatepost("status", config=config)
    text = " ".join(done.stdout.split())
    assert re.search(r" Kafka unreachable since \d+ s ago wrong user name or password: sasl_ssl://\S+ SASL authentication error: "
                     r"Authentication failed: Invalid username or password", text), text
    done = offline.gatepost("status", "--json", config=config)
    shown = json.loads(done.stdout)
    assert shown["kafkaProblem"].startswith("wrong user name or password: ") and shown["kafkaUnreachableSinceSeconds"] > 1e9


def test_later_cause_replaces_the_earlier_one_of_the_same_outage(offline, config, secured):
    relay = Relay(secured.nodes[1].secured_port)
    wrong_password(config, secured)
    config["kafka"]["bootstrap.servers"] = f"127.0.0.1:{relay.port}"
    daemon = offline.daemon(config).start()
    since = wait_for_cause(daemon, "Connection refused")["kafkaUnreachableSinceSeconds"]
    with relay:
        status = wait_for_cause(daemon, "wrong user name or password")
        assert status["kafkaUnreachableSinceSeconds"] == since
    waiting.until(lambda: "Connection refused" in daemon.admin("/status").json["kafkaProblem"], SECONDS, "the earlier cause again")
    kinds = [line.partition("reason=")[2].rpartition(": ")[2] for line in logged(daemon)]
    assert len(kinds) == len(set(kinds)), kinds


@pytest.mark.parametrize("answer, part", [(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "the port may not be Kafka's"),
                                          (b"\x7f\xff\xff\xff" * 4, "the port may not be Kafka's"), (b"", "the port may require TLS")],
                         ids=["http", "length", "closes"])
def test_another_service_on_the_port_replaces_an_earlier_cause(offline, answer, part):
    config = offline.config("receiver")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config["kafka"]["bootstrap.servers"] = "%s:%d" % listener.getsockname()
        daemon = offline.daemon(config).start()
        wait_for_cause(daemon, "Connection refused")
        listener.listen()
        threading.Thread(target=answer_all, args=(listener, answer), daemon=True).start()
        try:
            wait_for_cause(daemon, part)
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def answer_all(listener, answer):
    """Send these bytes to each client after its first request."""
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, contextlib.suppress(OSError):
                if answer:
                    client.recv(65536)
                    client.sendall(answer)
                    client.recv(1)


def test_cause_is_forgotten_when_the_outage_ends(secured, tmp_path):
    """At first, and again when a broker that was there is gone."""
    site = Installation(tmp_path, secured.bootstrap)
    try:
        relay = Relay(secured.nodes[1].port)
        config = site.config("receiver")
        site.create_topics(config)
        config["kafka"]["bootstrap.servers"] = f"127.0.0.1:{relay.port}"
        daemon = site.daemon(config).start()
        wait_for_cause(daemon, "Connection refused")
        refused = daemon.post()
        assert refused.status == 503 and b"refused" not in refused.body
        (shown,) = daemon.admin("/status").json["refusals"]
        assert shown["detail"].startswith("Kafka is not reachable yet: ") and "Connection refused" in shown["detail"]
        with relay:
            daemon.wait_until_ready()
            daemon.wait_for_log("kafka is reachable again")
            status = daemon.admin("/status").json
            assert (status["kafkaReachable"], status["kafkaProblem"], status["kafkaUnreachableSinceSeconds"]) == (True, None, None)
        secured.kill(1)
        try:
            wait_for_cause(daemon, "Connection refused")
        finally:
            secured.start_node(1)
        daemon.wait_until_ready()
        assert daemon.admin("/status").json["kafkaProblem"] is None
    finally:
        site.clean_up()
