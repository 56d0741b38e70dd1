"""Runs of `gatepost doctor`, and the installations that its tests examine: a plugin of pytest, for the fixtures."""

import json
import re
import shlex

import pytest

from authority import Authority
from signing import SECRET

EX_USAGE, EX_UNAVAILABLE, EX_TEMPFAIL, EX_NOPERM, EX_CONFIG = 64, 69, 75, 77, 78
OTHER_SECRET = b"another secret, of the tests of doctor"


class Checkup:
    """A run of `gatepost doctor`: its last line has the cause or the first warning, and the remedy; both are empty if all is well."""

    def __init__(self, done):
        self.status, self.lines, self.stderr = done.returncode, done.stdout.splitlines(), done.stderr
        self.last = self.lines[-1]
        self.cause, _, self.remedy = self.last.partition(": ")[2].partition("; remedy: ")

    def having(self, mark):
        return [line for line in self.lines if line.startswith(f"{mark} ")]


def examine(installation, config, *arguments, **options):
    """Run it with a configuration, or the file of a daemon."""
    environment = {"LC_ALL": "C.UTF-8"} | options.pop("environment", {})
    done = installation.gatepost("doctor", *arguments, config=config, environment=environment, **options)
    assert SECRET.decode() not in done.stdout + done.stderr
    return Checkup(done)


def steps_of(installation, config, *arguments):
    """The findings of --json, and the whole object."""
    report = json.loads(installation.gatepost("doctor", "--json", *arguments, config=config).stdout)
    return report["steps"], report


def expect(checkup, status, cause, *words):
    """The first cross is the cause, which begins so, and it has one remedy, of two lines at most."""
    assert checkup.status == status, checkup.lines
    assert checkup.last.startswith(f"cause: {cause}") and checkup.cause == checkup.having("✗")[0].removeprefix("✗ "), checkup.last
    assert len(re.sub(r"/\S*/", "/etc/gatepost/", checkup.remedy)) <= 2 * 80 and f"  remedy: {checkup.remedy}" in checkup.lines, checkup.last
    for word in words:
        assert word in checkup.last, (word, checkup.last)


def expect_well(checkup):
    assert (checkup.status, checkup.last) == (0, "no trouble found"), checkup.lines


def do(installation, remedy):
    """Execute a remedy that is a command of gatepost, as printed."""
    words = shlex.split(remedy)
    assert words[0] == "gatepost", remedy
    config = words[2] if words[1] == "-c" else False
    done = installation.gatepost(*words[3 if config else 1:], config=config)
    assert done.returncode == 0, done.stderr


def by_sockets(installation, roles="receiver, router"):
    """A configuration whose listeners the command line can find, with nothing to warn of."""
    config = installation.config(roles)
    for section, name in (("receiver", "receiver.sock"), ("admin", "admin.sock")):
        config[section]["listen"] = f"unix:{config.directory}/{name}"
    config["source invoicing"]["key"] = "delivery-id"
    return config


def file_of(daemon):
    """The daemon's configuration file, which is not written again."""
    return str(daemon.config.directory / f"{daemon.name}.conf")


def status_of(daemon):
    return daemon.admin("/status").json


# Fixtures

@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), days=90)


@pytest.fixture
def stopped(installation):
    """A healthy installation whose daemon is not started yet."""
    installation.create_topics()
    return installation.daemon(by_sockets(installation))


@pytest.fixture
def running(stopped):
    return stopped.start().wait_until_ready()


@pytest.fixture(scope="module")
def healthy(shared):
    config = by_sockets(shared)
    config.source("orders", b"the secret of the orders of the tests", kind="/meta/type", key="delivery-id")
    shared.create_topics(config)
    return shared.start(config)
