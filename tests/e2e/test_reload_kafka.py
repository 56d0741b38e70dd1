"""A reload that looks up new topics in Kafka does not block the rest of the daemon."""

import signal
import time

import pytest

from cluster import Cluster
from installation import Installation
from proxy import Proxies
from reloading import reload

KINDS = 998
ROUND_TRIP_SECONDS = 0.03


@pytest.fixture(scope="module")
def proxied_broker():
    with Cluster(proxied=True) as cluster:
        yield cluster


@pytest.fixture
def proxies(proxied_broker):
    with Proxies(proxied_broker) as each:
        yield each


@pytest.fixture
def installation(proxied_broker, proxies, tmp_path):
    """An installation whose command line connects directly."""
    each = Installation(tmp_path, proxied_broker.bootstrap)
    yield each
    each.clean_up()


@pytest.fixture
def daemon(installation, proxied_broker):
    config = installation.config()
    installation.create_topics(config)
    config["kafka"]["bootstrap.servers"] = proxied_broker.proxied_bootstrap
    return installation.start(config).wait_until_ready()


def add_kinds(config, n):
    config["events"].update({f"kind.n{i}": f"{config.get('topics', 'prefix')[0]}.new{i}" for i in range(n)})


def assert_answers(daemon, end):
    """The main thread answers /healthz and handles signals and the watchdog."""
    longest = 0
    while not end():
        began = time.monotonic()
        assert daemon.admin("/healthz").status == 200
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.05)
    assert longest < 3


@pytest.mark.slow
def test_many_new_topics_are_looked_up_together_without_blocking_the_main_thread(daemon, proxies):
    proxies.delay("Metadata", ROUND_TRIP_SECONDS, times=None)
    add_kinds(daemon.config, KINDS)
    daemon.config.write(f"{daemon.name}.conf")
    began = time.monotonic()
    daemon.process.send_signal(signal.SIGHUP)
    assert_answers(daemon, lambda: "reload failed" in daemon.log or time.monotonic() - began > 60)
    assert time.monotonic() - began < 20
    assert "the topic is missing" in daemon.log
    daemon.accept()


@pytest.fixture
def waiting_daemon(daemon, proxies):
    """A daemon whose reload waits for a Kafka that does not answer."""
    add_kinds(daemon.config, 1)
    daemon.config.write(f"{daemon.name}.conf")
    proxies.freeze()
    daemon.process.send_signal(signal.SIGHUP)
    yield daemon
    proxies.thaw()


def test_signals_during_a_reload_cause_one_further_reload(waiting_daemon, proxies):
    for _ in range(20):
        waiting_daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    assert_answers(waiting_daemon, lambda: waiting_daemon.log.count("reload failed") == 2)
    proxies.thaw()
    del waiting_daemon.config.sections["events"]
    reload(waiting_daemon)
    assert waiting_daemon.log.count("reload failed") == 2


def test_sigterm_stops_the_daemon_during_a_reload(waiting_daemon, proxies):
    proxies.thaw()
    proxies.delay("Metadata", 600, times=None)
    began = time.monotonic()
    waiting_daemon.process.send_signal(signal.SIGTERM)
    waiting_daemon.wait_for_exit(0)
    assert time.monotonic() - began < 15
