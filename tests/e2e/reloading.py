"""SIGHUP, and what the daemon says to it."""

import re
import signal

import waiting


def hang_up(daemon):
    """Have the configuration read again, as it is in the file. Returns what the log says to that."""
    before = len(daemon.log)
    daemon.process.send_signal(signal.SIGHUP)
    waiting.until(lambda: re.search("configuration reloaded|reload failed", daemon.log[before:]), 30,
                  lambda: f"an answer to SIGHUP:\n{daemon.log[before:]}")
    return daemon.log[before:]


def reload(daemon):
    """Write the configuration, and have it taken over."""
    daemon.config.write(f"{daemon.name}.conf")
    said = hang_up(daemon)
    assert "configuration reloaded" in said, said
    return said


def refused(daemon):
    """Write the configuration, which must not be taken over. Returns what the log says."""
    daemon.config.write(f"{daemon.name}.conf")
    said = hang_up(daemon)
    assert "configuration reloaded" not in said, said
    assert "keeping the previous configuration" in said
    return said
