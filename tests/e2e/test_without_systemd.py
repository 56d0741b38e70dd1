"""A container without systemd, which makes /run/gatepost and /var/lib/gatepost elsewhere: the start names the directory that is missing."""

import pytest

from checkup import EX_CONFIG, by_sockets

EX_OSERR = 71  # after which the units restart it


@pytest.mark.parametrize("section, option, value, status", [
    ("receiver", "spool", "/var/lib/gatepost/spool", EX_OSERR),
    ("router", "state", "/var/lib/gatepost/state", EX_OSERR),
    ("receiver", "listen", "unix:/run/gatepost/gatepost.sock", EX_CONFIG),
])
def test_start_names_the_missing_directory(installation, section, option, value, status):
    config = by_sockets(installation)
    config.sections.setdefault(section, {})[option] = value
    installation.create_topics()
    daemon = installation.daemon(config)
    daemon.wrapper = ["unshare", "--mount", "sh", "-ec",
                      'mount -t tmpfs none /run; mount -t tmpfs none /var/lib; mkdir /run/lock; exec "$@"', "sh"]
    daemon.launch()
    daemon.wait_for_exit(status)
    directory = "/run/gatepost" if option == "listen" else value
    assert f"{directory}: No such file or directory" in daemon.log
