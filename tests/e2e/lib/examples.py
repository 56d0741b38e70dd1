"""The examples for deployments in etc/examples, changed only where they name addresses, files and brokers of a site."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess

import waiting
from config import Config
from daemon import Daemon
from signing import SECRET, Delivery

DIRECTORY = pathlib.Path(__file__).parents[3] / "etc" / "examples"
SECONDS = 30
PATH = "/webhooks/invoicing"
BROKERS = "kafka1:9092,kafka2:9092,kafka3:9092"
ORDERLY_END = 2 * 8 + 30  # seconds: twice ack_timeout, and half a minute for the last commit
SECURED_BROKERS = "kafka1:9093,kafka2:9093,kafka3:9093"


def read(name):
    return (DIRECTORY / name).read_text()


def adapt(text, changes):
    """The text with other values; each of the old ones must be there."""
    for old, new in changes.items():
        assert old in text, f"the example has no {old!r}"
        text = text.replace(old, str(new))
    return text


class ExampleConfig(Config):
    """A configuration whose text is that of an example."""

    def __init__(self, directory, text):
        super().__init__(directory, {})
        self._text = text
        for line in map(str.strip, text.splitlines()):
            if line.startswith("["):
                section = self[line.strip("[]")]
            elif line and line[0] not in "#;":
                option, value = (word.strip() for word in line.split("=", 1))
                section.setdefault(option, []).append(value)
        self["gatepost"].setdefault("roles", ["receiver, router"])
        self["gatepost"]["roles"] = self["gatepost"]["roles"][0]

    @property
    def text(self):
        return self._text


def start(installation, name, text, changes, environment=None, wrapper=(), is_ready=True):
    """A daemon with this example, the topics of the installation, and the tests' secret; it is ready, unless that is not wanted."""
    directory = installation.directory / f"example-{name}"
    directory.mkdir()
    secret = Config(directory, {}).secret_file("invoicing", SECRET)
    changes = {"/etc/gatepost/secrets/invoicing": secret} | changes
    config = ExampleConfig(directory, f"{adapt(text, changes)}\n[topics]\nprefix = {installation.prefix}\n")
    daemon = Daemon(installation.build / "gatepostd", config, name)
    daemon.environment = environment or {}
    daemon.wrapper = list(wrapper)
    installation.daemons.append(daemon)
    daemon.start()
    return daemon.wait_until_ready() if is_ready else daemon


def admin_of(daemon):
    """The address of its admin endpoint."""
    return daemon.wait_for_log("listening for=admin").rpartition("address=")[2]


def assert_guarded(installation, post):
    """A genuine delivery becomes an event, and a forged one is refused."""
    genuine = Delivery()
    reply = post(genuine)
    assert (reply.status, reply.json) == (200, {"ok": True, "deliveryId": genuine.delivery_id}), reply
    forged = post(Delivery(secret=b"a secret of somebody else"))
    assert (forged.status, forged.json["ok"]) == (401, False), forged
    installation.kafka.wait_until_routed()
    assert [(record.delivery_id, record.value) for record in installation.kafka.read()] == [(genuine.delivery_id, genuine.body)]
    return genuine


def run(*command, timeout=2 * SECONDS, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@contextlib.contextmanager
def running(directory, command, port, stop=signal.SIGTERM):
    """A program that listens on this port. Yields a function that returns what it has printed."""
    log = directory / f"{pathlib.Path(command[0]).name}.log"
    with open(log, "wb") as output:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   cwd=directory, env={**os.environ, "TMPDIR": str(directory)})

    def listens():
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), SECONDS):
            return True
        assert process.poll() is None, log.read_text()
        return False
    try:
        waiting.until(listens, SECONDS, lambda: f"{command[0]} to listen: {log.read_text()}")
        yield log.read_text
    finally:
        process.send_signal(stop)
        try:
            process.wait(SECONDS)
        finally:
            process.kill()
            print(log.read_text())
