"""A thousand reloads under load: no request fails, nothing leaks."""

import os
import pathlib
import re
import signal
import time

import pytest

import waiting
from installation import Installation
from load import Load
from signing import SECRET

RELOADS = 1000
WARM_UP = 200
RATE = 100  # deliveries a second
LEAK_BYTES = 8 << 20  # in 800 reloads; one leaked configuration takes 50 KB


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def resident(daemon):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def reload(daemon, generation):
    """Reload the configuration, without reading all of the log each time."""
    daemon.config.write(f"{daemon.name}.conf")
    daemon.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 30
    while True:
        lines = daemon.last_log(4000)
        if f" generation={generation} " in lines:
            return
        assert " error " not in lines, lines
        assert time.monotonic() < deadline, lines
        time.sleep(0.005)


def vary(config, number, prefix, secrets):
    """Change secrets, limits, sources, the topic table and the log level, each at its own interval."""
    config["source invoicing"]["secret_file"] = secrets if number % 2 else secrets[:1]
    config["receiver"].update({"max_connections": 100 + number % 7, "idle_timeout": f"{50 + number % 11}s",
                               "max_in_flight": f"{32 + number % 5}MiB", "trusted_proxy": f"10.0.0.{number % 200}",
                               "max_connections_per_address": 50 if number % 4 else 0})
    config["router"]["max_batch"] = 50 + number % 13
    config["gatepost"]["log_level"] = "info" if number % 3 else "notice"
    config.sections.pop("events", None)
    config.sections.pop("source other", None)
    if number % 3 == 0:
        config["events"]["invoice.*"] = f"{prefix}.invoice.accepted"
    if number % 5 == 0:
        config.source("other")


@pytest.mark.slow
def test_a_thousand_reloads_under_load(broker, tmp_path, plain_build):
    installation = Installation(tmp_path, broker.bootstrap, plain_build)
    try:
        _reload_under_load(installation)
    finally:
        installation.remove()


def _reload_under_load(installation):
    config = installation.config()
    config["receiver"]["threads"] = 2
    secrets = [config["source invoicing"]["secret_file"], config.secret_file("second", SECRET[::-1])]
    installation.create_topics(config)
    daemon = installation.start(config)
    load = Load(lambda: [daemon.address], threads=4, rate=RATE, once=True).start()
    waiting.until(lambda: len(load.accepted) >= 50 or set(load.answers) - {200}, 60, "deliveries")
    for number in range(RELOADS):
        vary(config, number, installation.prefix, secrets)
        reload(daemon, number + 2)
        assert not set(load.answers) - {200}, load.answers
        if number == WARM_UP:
            before = descriptors(daemon), resident(daemon)
    after = descriptors(daemon), resident(daemon)
    print(f"descriptors and bytes after {WARM_UP} reloads {before}, after {RELOADS} {after}; "
          f"{len(load.accepted)} deliveries, the slowest answer {load.slowest:.3f} s")
    load.stop()
    assert set(load.answers) == {200}
    assert after[0] == before[0]
    assert after[1] - before[1] < LEAK_BYTES
    assert f"generation={RELOADS + 1} " in daemon.log
    installation.kafka.wait_until_routed()
    records = installation.kafka.read()
    assert sorted(each.delivery_id for each in records) == sorted(load.accepted)
    assert {each.topic for each in records} == {f"{installation.prefix}.invoice.accepted"}
    daemon.stop()
