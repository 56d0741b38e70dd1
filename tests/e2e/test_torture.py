"""Thousands of connections that break at any point during reloads: the daemon neither crashes, leaks nor loses deliveries.

GATEPOST_TORTURE sets the number of connections; the default is 2000."""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

import waiting
from authority import Authority
from raw_tls import whole
from reloading import send_sighup
from signing import Delivery
from torture import connect

CONNECTIONS = int(os.environ.get("GATEPOST_TORTURE", "2000"))
PROCESSES = 4
CONNECTIONS_PER_RELOAD = 300


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


class Certificates:
    """A certificate file that changes."""

    def __init__(self, authority, directory):
        self._pairs = [authority.issue(name) for name in ("first", "second")]
        self.files = directory / "current.pem", directory / "current.key"
        self.turn = 0
        self._put()

    def _put(self):
        for source, target in zip(self._pairs[self.turn % 2], self.files):
            shutil.copy(source, target)

    def swap(self):
        self.turn += 1
        self._put()

    @property
    def name(self):
        return ("first", "second")[self.turn % 2]


def usual(shared, certificates, layer="tls"):
    """A receiver with fewer connections than the attack opens."""
    config = shared.config("receiver")
    if layer != "plain":
        config.tls(*certificates.files)
    if layer == "proxied":
        config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required"})
    config["receiver"].update({"threads": 2, "max_connections": 12, "handshake_timeout": "2s", "header_timeout": "5s",
                               "request_timeout": "6s", "idle_timeout": "4s", "max_body": "256KiB",
                               "max_in_flight": "1MiB"})
    return config


def start_torture(daemon, authority, directory, connections=CONNECTIONS, layer="tls"):
    """Start the attacking processes. Returns each with its result file."""
    program = pathlib.Path(__file__).with_name("lib") / "torture.py"
    started = []
    for seed in range(PROCESSES):
        result = directory / f"torture-{seed}.json"
        with open(result, "wb") as out:
            started.append((subprocess.Popen([sys.executable, program, layer, daemon.address, authority.certificate,
                                              str(connections // PROCESSES), str(seed)],
                                             stdin=subprocess.DEVNULL, stdout=out), result))
    return started


def served_certificate(daemon, layer, tls):
    """The name in the server's certificate; None if the connection was closed in favour of an attacking one."""
    try:
        client = connect(layer, daemon.address, tls)
    except ConnectionError:
        return None
    try:
        return dict(each[0] for each in client.session.getpeercert()["subject"])["commonName"]
    finally:
        client.close()


def is_accepted(daemon, layer, tls):
    client = connect(layer, daemon.address, tls)
    try:
        client.write(whole(Delivery())).send()
        return client.read().startswith(b"HTTP/1.1 200 ")
    finally:
        client.close()


def reload_until_done(daemon, certificates, started, layer, tls):
    """Reload the configuration with another certificate after every few hundred connections, until the attack is
    over. Returns the number of reloads."""
    n_reloads = 0
    due = CONNECTIONS_PER_RELOAD
    while any(process.poll() is None for process, _ in started):
        assert daemon.is_running(), daemon.last_log(8000)
        if daemon.metric("gatepost_connections_accepted_total") < due:
            time.sleep(0.05)
            continue
        certificates.swap()
        assert "configuration reloaded" in send_sighup(daemon)
        if layer != "plain":
            waiting.until(lambda: served_certificate(daemon, layer, tls) == certificates.name, 10, "the other certificate")
        n_reloads += 1
        due += CONNECTIONS_PER_RELOAD
    assert [process.returncode for process, _ in started] == [0] * PROCESSES
    return n_reloads


def open_sockets(daemon):
    count = 0
    for link in pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(link).startswith("socket:")
    return count


def stored_ids(shared):
    return {record.key.decode() for record in shared.kafka.read(shared.kafka.deliveries)}


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["tls", "plain", "proxied"])
def test_broken_connections_neither_leak_nor_lose_deliveries(shared, authority, tmp_path, layer):
    certificates = Certificates(authority, tmp_path)
    config = usual(shared, certificates, layer)
    shared.create_topics(config)
    daemon = shared.start(config)
    tls = authority.client()
    waiting.until(lambda: is_accepted(daemon, layer, tls), 30, "a delivery to be accepted")
    sockets = open_sockets(daemon)
    begun = time.monotonic()
    started = start_torture(daemon, authority, tmp_path, layer=layer)
    try:
        n_reloads = reload_until_done(daemon, certificates, started, layer, tls)
    finally:
        for process, _ in started:
            process.kill()
            process.wait()
    took = time.monotonic() - begun
    results = [json.loads(path.read_text()) for _, path in started]

    for metric in "gatepost_connections_open", "gatepost_in_flight_bytes":
        waiting.until(lambda: daemon.metric(metric) == 0, 30, lambda: f"{metric} to be 0: {daemon.metric(metric)}")
    waiting.until(lambda: open_sockets(daemon) <= sockets, 30, lambda: f"{open_sockets(daemon)} sockets to be {sockets}")
    waiting.until(lambda: is_accepted(daemon, layer, tls), 30, "a delivery to be accepted")
    closed = {dict(labels)["reason"]: int(value) for labels, value in
              daemon.metrics("gatepost_connections_closed_total").items() if value}
    daemon.stop()  # also checks for sanitizer reports, including leaks

    counts = sum((collections.Counter(each["counts"]) for each in results), collections.Counter())
    accepted, stored = [each for result in results for each in result["accepted"]], stored_ids(shared)
    print(f"{took:.0f} s, {n_reloads} reloads, {dict(counts)}, {len(accepted)} accepted, closed {closed}, "
          f"{max(each['longest'] for each in results):.1f} s the longest for genuine deliveries")
    assert counts["connections"] >= CONNECTIONS // PROCESSES * PROCESSES
    assert n_reloads > 0 and closed.get("made_room") and closed.get("refused")
    assert counts["starved deliveries"] == 0
    assert len(accepted) > CONNECTIONS * 0.1
    assert not [each for each in accepted if each not in stored]
    assert not [each for result in results for each in result["forged"] if each in stored]


@pytest.mark.parametrize("connections", [50, 200, 500])
def test_daemon_stops_cleanly_during_broken_connections(shared, authority, tmp_path, connections):
    """Connections in every state when the daemon stops: it shuts down cleanly, and accepted deliveries are stored."""
    config = usual(shared, Certificates(authority, tmp_path))
    shared.create_topics(config)
    daemon = shared.start(config)
    started = start_torture(daemon, authority, tmp_path, 10 ** 6)
    try:
        waiting.until(lambda: daemon.metric("gatepost_connections_accepted_total") >= connections, 60, "connections")
        daemon.stop()
        for process, _ in started:
            assert process.wait(60) == 0
    finally:
        for process, _ in started:
            process.kill()
            process.wait()
    accepted = [each for _, path in started for each in json.loads(path.read_text())["accepted"]]
    stored = stored_ids(shared)
    assert accepted and not [each for each in accepted if each not in stored]
