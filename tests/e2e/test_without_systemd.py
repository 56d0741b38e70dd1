"""The directories that the systemd units make are missing: it depends on whether systemd will make them."""

import subprocess
import tempfile

import pytest

from checkup import EX_CONFIG, by_sockets
from daemon import ENVIRONMENT

EX_OSERR = 71  # after which the units restart it
ROWS = [("receiver", "spool", "/var/lib/gatepost/spool", ""), ("router", "state", "/var/lib/gatepost/state", ""),
        ("receiver", "listen", "unix:/run/gatepost/gatepost.sock", "warning: ")]
NOT_HERE = "does not run here: mount a volume there, or create it for the user of gatepostd"


def reason(directory):
    return f"{directory}: No such file or directory; systemd, which makes {directory}, {NOT_HERE}"


def machine(*directories, disk=None):
    """A command that runs another one where /run and /var/lib have nothing but these directories."""
    return ["unshare", "--mount", "sh", "-ec", "mount -t tmpfs none /run; " + (f"mount --bind {disk}" if disk else "mount -t tmpfs none") + " /var/lib; "
            f'mkdir -p /run/lock {" ".join(directories)}; exec "$@"', "sh"]


def configured(installation, section, option, value):
    config = by_sockets(installation)
    config.sections.setdefault(section, {})[option] = value
    return config


@pytest.mark.parametrize("section, option, value, level", ROWS)
def test_check_trusts_only_a_systemd_that_runs(installation, section, option, value, level):
    file = configured(installation, section, option, value).write()
    (line,) = [number for number, line in enumerate(file.read_text().splitlines(), 1) if line == f"{option} = {value}"]
    directory = value.removeprefix("unix:").rpartition("/")[0]

    def problems(program, *arguments, directories=()):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as disk:  # check warns of a spool in memory
            done = subprocess.run([*machine(*directories, disk=disk), installation.build / program, "-c", file, *arguments], env=ENVIRONMENT,
                                  capture_output=True, text=True, timeout=60)
        return done.returncode, [line for line in done.stderr.splitlines() if line.startswith(str(file))]
    for command in (["gatepost", "check"], ["gatepost", "check", "--strict"], ["gatepostd", "-t"]):
        status, (problem,) = problems(*command)
        assert status == (0 if level and "--strict" not in command else EX_CONFIG)
        assert problem.startswith(f"{file}:{line}: {level}{option}: ") and problem.endswith(reason(directory)), problem
        for made in ("/run/systemd/system", directory):
            assert problems(*command, directories=[made]) == (0, []), made


@pytest.mark.parametrize("section, option, value", [row[:3] for row in ROWS[:2]])
@pytest.mark.parametrize("directories", [[], ["/run/systemd/system"]], ids=["without systemd", "with systemd"])
def test_directory_that_is_a_link_to_a_disk_that_is_not_mounted(installation, section, option, value, directories):
    """systemd does not make its target."""
    config = configured(installation, section, option, value)
    installation.create_topics()
    file = config.write()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as disk:
        wrapper = [*machine(*directories, disk=disk), "sh", "-ec", 'ln -s /mnt/gone/gatepost /var/lib/gatepost; exec "$@"', "sh"]
        for command in (["gatepost", "-c", file, "check"], ["gatepostd", "-t", "-c", file]):
            done = subprocess.run([*wrapper, installation.build / command[0], *command[1:]], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
            (line,) = [line for line in done.stderr.splitlines() if line.startswith(str(file))]
            assert line.endswith(f": warning: {option}: /var/lib/gatepost is a symbolic link to something that is missing; mount its disk, or create the directory")
            subprocess.run(["rm", f"{disk}/gatepost"], check=True)


@pytest.mark.parametrize("section, option, value", [row[:3] for row in ROWS])
def test_start_names_the_remedy(installation, section, option, value):
    config = configured(installation, section, option, value)
    installation.create_topics()
    daemon = installation.daemon(config)
    daemon.wrapper = machine()
    daemon.launch()
    daemon.wait_for_exit(EX_CONFIG if option == "listen" else EX_OSERR)
    assert f"No such file or directory; systemd, which makes {'/run' if option == 'listen' else '/var/lib'}/gatepost, {NOT_HERE}" in daemon.log
