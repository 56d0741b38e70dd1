"""Runs of `gatepost doctor`, and the installations that its tests examine: a plugin of pytest, for the fixtures."""

import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import threading

import pytest

import waiting
from authority import Authority
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from fake_service import answers
from installation import BUILD
from signing import SECRET

EX_USAGE, EX_UNAVAILABLE, EX_OSERR, EX_TEMPFAIL, EX_NOPERM, EX_CONFIG = 64, 69, 71, 75, 77, 78
UTF_8 = {"LC_ALL": "C.UTF-8"}
OTHER_SECRET = b"another secret, of the tests of doctor"
RESTART = "systemctl restart gatepostd (changes in [kafka] need a restart)"


class Checkup:
    """A run of `gatepost doctor`."""

    def __init__(self, done):
        self.status, self.lines, self.stderr = done.returncode, done.stdout.splitlines(), done.stderr
        self.cause = self.lines[-1]

    def having(self, mark):
        return [line for line in self.lines if line.startswith(f"{mark} ")]


def examine(installation, config, *arguments, **options):
    """Run it with a configuration, or the file of a daemon."""
    done = installation.gatepost("doctor", *arguments, config=config, environment=UTF_8 | options.pop("environment", {}), **options)
    assert SECRET.decode() not in done.stdout + done.stderr
    return Checkup(done)


def expect(checkup, status, *words):
    """The cause is the last line, the first cross, and what depends on it is skipped."""
    assert checkup.status == status, checkup.lines
    assert checkup.cause.startswith("cause: ") and "; remedy: " in checkup.cause, checkup.cause
    for word in words:
        assert word in checkup.cause, checkup.cause
    first = checkup.having("✗")[0].removeprefix("✗ ")
    assert checkup.cause.startswith(f"cause: {first}; remedy: "), (first, checkup.cause)


def told_of_files(checkup):
    """What it says about the files that the daemon has read."""
    (line,) = [line for line in checkup.lines if " daemon configuration: " in line]
    return line


# Configurations and daemons

def by_sockets(installation, roles="receiver, router"):
    """A configuration whose listeners the command line can find, with nothing to warn of."""
    config = installation.config(roles)
    for section, name in (("receiver", "receiver.sock"), ("admin", "admin.sock")):
        config[section]["listen"] = f"unix:{config.directory}/{name}"
    config["source invoicing"]["key"] = "delivery-id"
    return config


def change_secret(config):
    config["source invoicing"]["secret_file"] = config.secret_file("changed", OTHER_SECRET)


def change_path(config):
    config["source invoicing"]["path"] = "/other"


def file_of(daemon):
    """The daemon's configuration file, which is not written again."""
    return str(daemon.config.directory / f"{daemon.name}.conf")


def status_of(daemon):
    return daemon.admin("/status").json


def wait_for_trouble(daemon):
    waiting.until(lambda: status_of(daemon)["kafkaProblem"] is not None, 60, "the daemon's trouble with Kafka")


# Other programs in the place of a daemon

def serve(server, answer):
    """Answer each request in a thread, by a function of it, until the server is closed."""
    def run():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.sendall(answer(connection.recv(65536)))
    threading.Thread(target=run, daemon=True).start()


def passed_on(request, daemon):
    """The answer of a receiver to a request."""
    host, _, port = daemon.address.rpartition(":")
    with socket.create_connection((host, int(port))) as onward:
        onward.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        answer = b""
        while more := onward.recv(65536):
            answer += more
    return answer


def with_status(installation, service, file, configuration, run=examine, **others):
    """Examine a router whose daemon is the service."""
    service.faults = [answers(200, status := {"startTimeSeconds": 1, "ready": True, "configuration": configuration} | others),
                      answers(200, body=b"ok"), answers(200, status), answers(200, body=b"ready")]
    return run(installation, file)


def entry(path, read_at="start", **others):
    """An entry of `files` in /status for a file as it is now."""
    st = os.stat(path)
    return {"path": str(path), "inode": st.st_ino, "modifiedSeconds": st.st_mtime_ns // 10**9,
            "modifiedNanoseconds": st.st_mtime_ns % 10**9, "changedSeconds": st.st_ctime_ns // 10**9,
            "changedNanoseconds": st.st_ctime_ns % 10**9, "readAt": read_at} | others


# Fixtures

@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), days=90)


@pytest.fixture
def stopped(installation):
    """A healthy installation whose daemon is not started yet."""
    installation.create_topics()
    return installation.daemon(by_sockets(installation))


@pytest.fixture(scope="module")
def healthy(shared):
    config = by_sockets(shared)
    config["source invoicing"]["secret_file"] = [config["source invoicing"]["secret_file"], config.secret_file("next", OTHER_SECRET)]
    config["source invoicing"]["webhook_id"] = ["the-first", "the-second"]
    config.source("orders", b"the secret of the orders of the tests", kind="/meta/type", key="delivery-id")
    shared.create_topics(config)
    return shared.start(config)


@pytest.fixture
def router_of_nobody(offline, service):
    """A function that examines a router which runs as nobody, by its report; its directory can be entered by anybody."""
    with tempfile.TemporaryDirectory() as name:
        config = offline.config("router")
        config.directory = pathlib.Path(name)
        config.directory.chmod(0o755)
        secret = config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
        config["admin"]["listen"] = service.url.split("/")[2]

        def run(report=None, group=65534, wrapper=()):
            """Of a daemon with this report, or a function that makes it; this group may read the files. Wrapper executes the doctor."""
            file = config.write()
            for path in (secret, file):
                os.chown(path, 0, group)
                os.chmod(path, 0o640)
            service.faults = [answers(200, report(file) if callable(report) else report or {"userId": 65534, "groupIds": [65534]})]
            done = subprocess.run([*wrapper, BUILD / "gatepost", "-c", file, "doctor"], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=60, env=ENVIRONMENT | UTF_8)
            assert_no_sanitizer_report(done.stderr)
            return Checkup(done)
        run.config = config
        run.secret = secret
        yield run
