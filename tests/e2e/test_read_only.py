"""A directory of the daemon's on a read-only file system, as ProtectSystem=strict of the units makes all but their own."""

import pytest


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("section, option, status", [("receiver", "spool", 71), ("router", "state", 78)])
def test_start_names_the_remedy(installation, section, option, status, exists):
    config = installation.config(section)
    installation.create_topics()
    disk = installation.directory / "disk"
    disk.mkdir()
    config.sections.setdefault(section, {})[option] = str(disk / option)
    if exists:
        (disk / option).mkdir(0o700)
    daemon = installation.daemon(config)
    daemon.wrapper = ["unshare", "--mount", "sh", "-ec", f'mount --bind {disk} {disk}; mount -o remount,bind,ro {disk}; exec "$@"', "sh"]
    daemon.launch()
    daemon.wait_for_exit(status)
    assert "Read-only file system; if a systemd unit runs gatepostd, create the directory for its user and name it in ReadWritePaths=" in daemon.log
