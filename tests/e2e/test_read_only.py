"""A directory of the daemon's on a read-only file system, as ProtectSystem=strict of the units makes all but their own, or on a full one."""

import pytest

EX_OSERR = 71  # after which the units restart it
DIRECTORIES = pytest.mark.parametrize("section, option", [("receiver", "spool"), ("router", "state")])


def end(installation, section, option, mount, exists=False):
    """The log of a daemon that cannot use its directory on a disk that these commands mount."""
    config = installation.config(section)
    installation.create_topics()
    disk = installation.directory / "disk"
    disk.mkdir()
    config.sections.setdefault(section, {})[option] = str(disk / option)
    if exists:
        (disk / option).mkdir(0o700)
    daemon = installation.daemon(config)
    daemon.wrapper = ["unshare", "--mount", "sh", "-ec", f'{mount.format(disk)}; exec "$@"', "sh"]
    daemon.launch()
    daemon.wait_for_exit(EX_OSERR)
    return daemon.log


@pytest.mark.parametrize("exists", [True, False])
@DIRECTORIES
def test_start_names_the_remedy(installation, section, option, exists):
    log = end(installation, section, option, "mount --bind {0} {0}; mount -o remount,bind,ro {0}", exists)
    assert "Read-only file system" in log and "the systemd units hide or protect this path: gatepostd(8), SYSTEMD" in log


@DIRECTORIES
def test_full_disk_is_no_configuration_error(installation, section, option):
    assert "No space left on device" in end(installation, section, option, "mount -t tmpfs -o nr_inodes=1 none {0}")
