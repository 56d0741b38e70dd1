"""SIGHUP and the daemon's log line about it."""

import re
import signal

import waiting


def hang_up(daemon):
    """Send SIGHUP with the file unchanged. Returns the log line about it."""
    before = len(daemon.log)
    daemon.process.send_signal(signal.SIGHUP)
    waiting.until(lambda: re.search("configuration reloaded|reload failed", daemon.log[before:]), 30,
                  lambda: f"an answer to SIGHUP:\n{daemon.log[before:]}")
    return daemon.log[before:]


def reload(daemon):
    """Write the configuration, and reload it."""
    daemon.config.write(f"{daemon.name}.conf")
    said = hang_up(daemon)
    assert "configuration reloaded" in said, said
    return said


def refused(daemon):
    """Write a configuration whose reload must fail. Returns the log line about it."""
    daemon.config.write(f"{daemon.name}.conf")
    said = hang_up(daemon)
    assert "configuration reloaded" not in said, said
    assert "keeping the previous configuration" in said
    return said
