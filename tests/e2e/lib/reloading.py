"""Reloading a daemon's configuration with SIGHUP."""

import re
import signal

import waiting


def send_sighup(daemon):
    """Send SIGHUP without rewriting the file. Returns the log from then on."""
    before = len(daemon.log)
    daemon.process.send_signal(signal.SIGHUP)
    waiting.until(lambda: re.search("configuration reloaded|reload failed", daemon.log[before:]), 30,
                  lambda: f"an answer to SIGHUP:\n{daemon.log[before:]}")
    return daemon.log[before:]


def reload(daemon):
    """Write the configuration, and reload it."""
    daemon.config.write(f"{daemon.name}.conf")
    log = send_sighup(daemon)
    assert "configuration reloaded" in log, log
    return log


def refused(daemon):
    """Write a configuration whose reload must fail. Returns the log from then on."""
    daemon.config.write(f"{daemon.name}.conf")
    log = send_sighup(daemon)
    assert "configuration reloaded" not in log, log
    assert "keeping the previous configuration" in log
    return log
