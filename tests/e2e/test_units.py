"""The files that `make install` installs for systemd, checked with systemd's own tools in a separate root."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from installation import BUILD

SYSTEM_UNITS = pathlib.Path("/lib/systemd/system")
MAX_EXPOSURE = 1.5
SERVICES = ["gatepostd.service", "gatepost-receiver@one.service", "gatepost-router@one.service"]
SOCKETS = ["gatepostd.socket", "gatepostd-admin.socket"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root directory with the installed files and the units of other packages that ours refer to."""
    root = tmp_path_factory.mktemp("root")
    status, output = run("make", "-C", BUILD, "-s", "install", f"DESTDIR={root}")
    assert status == 0, output
    shutil.copytree(SYSTEM_UNITS, root / SYSTEM_UNITS.relative_to("/"), symlinks=True)
    (root / "bin").mkdir()
    shutil.copy("/bin/kill", root / "bin")
    (root / "etc").mkdir(exist_ok=True)
    return root


def installed(root, name):
    found = [path for path in root.rglob(name) if "lib" in path.parts]
    assert len(found) == 1, (name, found)
    return found[0]


def options(root, unit, name):
    """The values of an option of an installed unit."""
    text = installed(root, unit.replace("@one", "@")).read_text()
    return re.findall(rf"^{name}=(.*)$", text, re.M)


@pytest.mark.parametrize("unit", SERVICES + SOCKETS)
def test_units_pass_systemd_analyze_verify(root, unit):
    assert run("systemd-analyze", "verify", "--man=no", f"--root={root}", unit) == (0, "")


def test_systemd_analyze_verify_detects_errors(root):
    wrong = installed(root, "gatepostd.service").with_name("wrong.service")
    wrong.write_text(installed(root, "gatepostd.service").read_text() + "[Service]\nNoSuchOption=yes\n")
    try:
        assert "NoSuchOption" in run("systemd-analyze", "verify", "--man=no", f"--root={root}", "wrong.service")[1]
    finally:
        wrong.unlink()


@pytest.mark.parametrize("unit", SERVICES)
def test_exposure_is_low(root, unit):
    status, output = run("systemd-analyze", "security", "--offline=yes", f"--root={root}",
                         f"--threshold={int(MAX_EXPOSURE * 10)}", "--no-pager", unit)
    exposure = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", output)[1])
    assert status == 0 and exposure <= MAX_EXPOSURE, output


@pytest.mark.parametrize("unit", SERVICES)
def test_services_are_sandboxed_as_documented(root, unit):
    """Without any of the settings, the exposure exceeds its limit."""
    expected = {"ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateUsers": "yes",
                "PrivateDevices": "yes", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "",
                "MemoryDenyWriteExecute": "yes", "ProtectProc": "invisible", "RestrictNamespaces": "yes",
                "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "UMask": "0077", "StateDirectoryMode": "0700",
                "RuntimeDirectoryMode": "0750", "ConfigurationDirectoryMode": "0750", "RuntimeDirectoryPreserve": "yes"}
    assert {name: options(root, unit, name) for name in expected} == {name: [value] for name, value in expected.items()}
    assert not options(root, unit, "ReadWritePaths")


@pytest.mark.parametrize("unit", SERVICES)
def test_services_have_the_required_settings(root, unit):
    expected = {"Type": "notify", "NotifyAccess": "main", "NonBlocking": "yes", "User": "gatepost", "Restart": "on-failure",
                "RestartPreventExitStatus": "64 78", "StateDirectory": "gatepost", "RuntimeDirectory": "gatepost",
                "ConfigurationDirectory": "gatepost", "StartLimitIntervalSec": "0", "LimitCORE": "0"}
    assert {name: options(root, unit, name) for name in expected} == {name: [value] for name, value in expected.items()}
    assert options(root, unit, "WatchdogSec") and int(options(root, unit, "LimitNOFILE")[0]) >= 65536


@pytest.mark.parametrize("unit", SERVICES)
def test_reload_checks_the_configuration_before_sighup(root, unit):
    start, = options(root, unit, "ExecStart")
    check, tell = options(root, unit, "ExecReload")
    program, *arguments = start.split()
    assert check.split() == [program, "-t", *arguments] and tell == "/bin/kill -HUP $MAINPID"
    assert (root / program[1:]).exists()


@pytest.mark.parametrize("unit, name", [("gatepostd.socket", "receiver"), ("gatepostd-admin.socket", "admin")])
def test_sockets_have_their_names(root, unit, name):
    assert options(root, unit, "FileDescriptorName") == [name]
    assert options(root, unit, "ListenStream")
    assert options(root, unit, "Service") in ([], ["gatepostd.service"])


@pytest.mark.parametrize("unit", SOCKETS)
def test_connections_do_not_start_a_daemon_for_ever_that_refuses_its_topics(root, unit):
    """It takes up to 3 s to refuse them; systemd's own limit is 20 starts within 2 s."""
    (burst,), (interval,) = options(root, unit, "TriggerLimitBurst"), options(root, unit, "TriggerLimitIntervalSec")
    assert int(burst) == 10 and int(interval.removesuffix("s")) >= 3 * int(burst)


@pytest.mark.skipif(os.geteuid() != 0, reason="creating accounts and directories requires root")
def test_account_and_directories_are_created(root):
    status, output = run("systemd-sysusers", f"--root={root}", installed(root, "sysusers.d") / "gatepost.conf")
    assert status == 0, output
    account = re.search(r"^gatepost:x:(\d+):(\d+):.*:/usr/sbin/nologin$", (root / "etc/passwd").read_text(), re.M)
    status, output = run("systemd-tmpfiles", f"--root={root}", "--create", installed(root, "tmpfiles.d") / "gatepost.conf")
    assert status == 0, output
    secrets = next(root.rglob("etc/gatepost/secrets"))
    for directory, mode in ((secrets, 0o2750), (secrets.parent, 0o750), (secrets.parent / "tls", 0o2750)):
        stat = directory.stat()
        assert (oct(stat.st_mode & 0o7777), stat.st_uid, stat.st_gid) == (oct(mode), 0, int(account[2])), directory
    assert (root / "run/gatepost").stat().st_uid == int(account[1])


def test_socket_units_sample_and_readme_have_the_same_loopback_addresses():
    top = pathlib.Path(__file__).parents[2]
    sample = (top / "etc" / "gatepost.conf").read_text()
    for unit, section in zip(SOCKETS, ("receiver", "admin")):
        (address,) = re.findall(r"^ListenStream=(.*)$", (top / "systemd" / unit).read_text(), re.M)
        body = re.search(rf"^\[{section}\]\n(.*?)(?=^\[|\Z)", sample, re.M | re.S)[1]
        assert re.findall(r"^;?listen = (.*)$", body, re.M) == [address]
        assert address.startswith("127.0.0.1:")
    (receiver, _) = (re.findall(r"^ListenStream=(.*)$", (top / "systemd" / unit).read_text(), re.M)[0] for unit in SOCKETS)
    assert re.findall(r"^ *listen = (.*)$", (top / "README").read_text(), re.M) == [receiver]
