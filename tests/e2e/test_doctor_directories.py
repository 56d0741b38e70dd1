"""gatepost doctor: a directory that the daemon's user cannot write, for a reason that making it anew does not mend."""

import os

from test_doctor import EX_NOPERM, expect, router_of_nobody, service


def test_directory_in_a_read_only_file_system(router_of_nobody):
    """As after a fault of the disk. Without the directory it is the same."""
    config = router_of_nobody.config
    disk = config.directory / "disk"
    disk.mkdir()
    config["router"]["state"] = state = str(disk / "state")
    for make, where in ((f"install -d -o nobody -m 0700 {state}", "it"), ("true", disk)):
        mount = f'mount -t tmpfs none {disk}; {make}; mount -o remount,ro {disk}; exec "$@"'
        checkup = router_of_nobody(wrapper=["unshare", "--mount", "sh", "-ec", mount, "sh"])
        expect(checkup, EX_NOPERM, f"files {state}: the daemon's user, nobody, cannot write {where}: Read-only file system",
               "remedy: if its file system was mounted writable, see in the kernel's log (dmesg) why it is read-only now, and then mount it writable")
        assert "install -d" not in checkup.cause


def test_directory_below_one_that_the_daemons_user_cannot_enter(router_of_nobody):
    """The command of the remedy is enough."""
    config = router_of_nobody.config
    private = config.directory / "private"
    private.mkdir(0o700)
    config["router"]["state"] = state = private / "state"
    state.mkdir(0o700)
    os.chown(state, 65534, 65534)
    expect(router_of_nobody(), EX_NOPERM, f"files {state}: the daemon's user, nobody, cannot write it: Permission denied",
           f"remedy: let nobody enter the directory: chgrp nogroup {private} && chmod g+x {private}")
    os.chown(private, 0, 65534)
    private.chmod(0o710)
    assert f"✓ files {state}: the daemon's user, nobody, may write it" in router_of_nobody().lines
