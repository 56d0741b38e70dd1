"""gatepost doctor: whether gatepostd has loaded the files as they are now, or awaits a restart."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import pytest

import waiting
from checkup import (EX_CONFIG, EX_UNAVAILABLE, RESTART, UTF_8, Checkup, by_sockets, entry, examine, expect, file_of, status_of,
                     told_of_files, wait_for_trouble, with_status)
from daemon import ENVIRONMENT
from installation import BUILD
from reloading import refused, reload, send_sighup
from signing import SECRET


def test_other_brokers_take_effect_at_a_restart_only(installation, stopped):
    bootstrap = stopped.config["kafka"]["bootstrap.servers"]
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        stopped.config["kafka"]["bootstrap.servers"] = "%s:%d" % reserved.getsockname()
        daemon = stopped.start()
        wait_for_trouble(daemon)
        daemon.config["kafka"]["bootstrap.servers"] = bootstrap
        reload(daemon)
        checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_UNAVAILABLE, "gatepostd does not reach Kafka (", "Connection refused",
           "but this machine does with the present configuration: it uses an earlier one; since its start it has only read")
    assert "; remedy: gatepostd does not reach the brokers that it has: " in checkup.cause and f" of the same cluster, at once: {RESTART}; " in checkup.cause
    (warning,) = checkup.having("!")
    assert warning.startswith("! daemon configuration: gatepostd has read options that only a restart applies, [kafka]: gatepostd does not reach the "
                              "brokers that it has: ")
    assert " of the same cluster, at once: systemctl restart gatepostd; " in warning
    assert "systemctl reload" not in "".join(checkup.lines)


def test_receiver_that_spools_because_of_its_configuration(installation):
    """It is ready, as it accepts deliveries, but Kafka does not get them."""
    installation.create_topics()
    config = by_sockets(installation, "receiver")
    config["receiver"]["spool"] = str(config.directory / "spool")
    bootstrap = config["kafka"]["bootstrap.servers"]
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        config["kafka"]["bootstrap.servers"] = "%s:%d" % reserved.getsockname()
        daemon = installation.daemon(config).start()
        wait_for_trouble(daemon)
        waiting.until(lambda: daemon.admin("/readyz").status == 200, 60, "the receiver with its spool")
        daemon.accept()
        config["kafka"]["bootstrap.servers"] = bootstrap
        reload(daemon)
        checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_UNAVAILABLE, "daemon /readyz: gatepostd does not reach Kafka (", "Connection refused", RESTART)
    assert any(line.startswith("! spool ") and "deliveries go to the spool" in line for line in checkup.lines), checkup.lines


def test_directory_that_a_restart_could_not_create_is_a_cause(installation):
    installation.create_topics()
    config = by_sockets(installation)
    installation.start(config)
    config["receiver"]["spool"] = str(config.directory / "no" / "spool")
    config.sections["router"] = {"state": str(config.directory / "no" / "state")}
    checkup = examine(installation, config)
    assert checkup.status == EX_CONFIG and "No such file or directory; create it" in checkup.cause, checkup.lines


def test_options_that_await_a_restart_are_a_warning(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    assert not examine(installation, file_of(daemon), "--no-send").having("!")
    daemon.config["receiver"]["threads"] = 3
    reload(daemon)
    checkup = examine(installation, file_of(daemon), "--no-send")
    (warning,) = checkup.having("!")
    assert "[receiver] threads: systemctl restart gatepostd" in warning and checkup.status == 0
    daemon.stop()
    daemon.restart()
    assert not examine(installation, file_of(daemon), "--no-send").having("!")


HAS_LOADED = "✓ daemon configuration: gatepostd has loaded the newest files"


@pytest.mark.parametrize("ahead_s", [-86400, 0, 3600], ids=["older", "same-second", "future"])
def test_change_that_is_not_loaded_whatever_the_time_of_the_file(installation, stopped, ahead_s):
    """It is prepared elsewhere and then moved: a day before, within the second of the start, by a clock that is ahead."""
    daemon = stopped.start().wait_until_ready()
    path = file_of(daemon)
    daemon.config["events"]["invoice.*"] = f"{installation.prefix}.invoice.accepted"
    prepared = daemon.config.write("prepared.conf")
    when_s = status_of(daemon)["configuration"]["loadedSeconds"] + ahead_s
    os.utime(prepared, (when_s, when_s))
    prepared.rename(path)
    checkup = examine(installation, path, "--no-send")
    assert told_of_files(checkup) == f"! daemon configuration: gatepostd has not loaded {path} as it is now: systemctl reload gatepostd"
    assert checkup.status == 0
    assert "configuration reloaded" in send_sighup(daemon)
    assert told_of_files(examine(installation, path, "--no-send")) == HAS_LOADED


@pytest.mark.parametrize("edit", [True, False], ids=["edit", "chmod"])
def test_change_in_place_that_keeps_the_time_of_the_file(installation, stopped, edit):
    """It is not to be told from a change of the mode, which is no change."""
    daemon = stopped.start().wait_until_ready()
    path = pathlib.Path(file_of(daemon))
    st = path.stat()
    path.chmod(0o640)
    if edit:
        with path.open("a") as file:
            file.write("# changed\n")
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    told = told_of_files(examine(installation, str(path), "--no-send"))
    assert told.startswith(f"- daemon configuration: {path} may have changed: its status changed after ") and "systemctl reload" in told
    reload(daemon)
    assert told_of_files(examine(installation, str(path), "--no-send")) == HAS_LOADED


def test_refused_reload_loads_nothing(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    daemon.config["events"]["invoice.*"] = f"{installation.prefix}.missing"
    refused(daemon)
    assert f"gatepostd has not loaded {file_of(daemon)} as it is now" in told_of_files(examine(installation, file_of(daemon), "--no-send"))


def test_secret_behind_another_link_is_not_loaded(installation, stopped):
    """Kubernetes replaces a link to a directory; here the files in both have the same time and length."""
    directory = stopped.config.directory
    for name in ("one", "two"):
        (directory / name).mkdir()
        os.utime(stopped.config.secret_file(f"{name}/secret", SECRET), (1e9, 1e9))
    (directory / "now").symlink_to("one")
    secret = stopped.config["source invoicing"]["secret_file"] = directory / "now" / "secret"
    daemon = stopped.start().wait_until_ready()
    assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == HAS_LOADED
    (directory / "next").symlink_to("two")
    (directory / "next").rename(directory / "now")
    assert f"gatepostd has not loaded {secret} as it is now: systemctl reload" in told_of_files(
        examine(installation, file_of(daemon), "--no-send"))
    reload(daemon)
    assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == HAS_LOADED


def test_daemon_that_has_loaded_another_file(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    path = daemon.config.write("another.conf")
    told = told_of_files(examine(installation, path, "--no-send"))
    assert told.startswith(f"! daemon configuration: gatepostd has loaded {file_of(daemon)}, not {path}: ")
    pathlib.Path(f"{path}.link").symlink_to(file_of(daemon))
    assert told_of_files(examine(installation, f"{path}.link", "--no-send")) == HAS_LOADED


def test_files_of_tls_take_effect_at_a_reload(installation, stopped, authority):
    certificate, key = authority.issue("reloaded")
    authorities = shutil.copy(authority.certificate, stopped.config.directory / "authorities.pem")
    stopped.config.tls(certificate, key)["receiver"]["tls_client_ca_file"] = authorities
    daemon = stopped.start().wait_until_ready()
    for path in (certificate, key, authorities):
        os.utime(path, (1e9, 1e9))
        assert f"gatepostd has not loaded {path} as it is now: systemctl reload" in told_of_files(
            examine(installation, file_of(daemon), "--no-send"))
        reload(daemon)
        assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == HAS_LOADED


def test_daemon_that_does_not_say_which_files_it_has_read(offline, service):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file = str(config.write())
    told = told_of_files(with_status(offline, service, file, {"file": file, "loadedSeconds": 1}))
    assert told == "- daemon configuration: gatepostd does not say which files it has loaded; another version does"


@pytest.mark.parametrize("member", ["changedSeconds", "changedNanoseconds"])
def test_file_of_kafka_whose_status_differs(offline, service, member):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file, password = str(config.write()), config.secret_file("password", b"unused")
    as_read = [entry(file, "reload"), entry(password)]
    as_read[1][member] += 1
    told = told_of_files(with_status(offline, service, file, {"file": file, "files": as_read}))
    assert told.startswith(f"- daemon configuration: {password} may have changed: ") and told.endswith("systemctl restart gatepostd")


@pytest.mark.parametrize("after_s", [-1, 3600])
def test_other_file_at_the_path_although_it_was_loaded(offline, service, after_s):
    """A container keeps the old file behind a bind mount of it alone."""
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file = str(config.write())
    known = {"file": file, "loadedSeconds": int(os.stat(file).st_ctime) + after_s,
             "files": [entry(file, "reload", inode=1)]}
    told = told_of_files(with_status(offline, service, file, known))
    assert f"gatepostd has not loaded {file} as it is now: systemctl reload gatepostd" in told
    assert ("bind mount of this file alone" in told) == (after_s > 0)


@pytest.mark.parametrize("member", ["inode", "modifiedSeconds", "modifiedNanoseconds"])
def test_file_that_differs_in_one_respect(offline, service, member):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file = str(config.write())
    secret = config["source invoicing"]["secret_file"]
    as_read = [entry(file, "reload"), entry(secret, "reload")]
    assert told_of_files(with_status(offline, service, file, {"file": file, "files": as_read})) == HAS_LOADED
    as_read[1][member] += 1
    assert f"has not loaded {secret} " in told_of_files(with_status(offline, service, file, {"file": file, "files": as_read}))


def test_file_of_kafka_that_is_gone_or_that_this_user_may_not_see(offline, service):
    config = offline.config("router")
    config["admin"]["listen"] = service.url.split("/")[2]
    file, other = str(config.write()), config.directory / "ca.pem"
    other.touch()
    known = {"file": file, "files": [entry(file, "reload"), entry(other)]}
    other.unlink()
    assert f"{other} has changed since the start of gatepostd, and changes in [kafka] need a restart" in told_of_files(
        with_status(offline, service, file, known))
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        program = shutil.copy(BUILD / "gatepost", directory)  # the build may be in a directory that others cannot enter
        config.directory = directory
        config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
        (directory / "private").mkdir(0o700)
        (directory / "private" / "ca.pem").touch()
        file = config.write()
        for path in (file, directory / "secret"):
            os.chown(path, 65533, 65533)

        def run(installation, file):
            return Checkup(subprocess.run([program, "-c", file, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                          timeout=60, env=ENVIRONMENT | UTF_8, user=65533, group=65533, extra_groups=[]))
        known = {"file": str(file), "files": [entry(file, "reload"), entry(directory / "private" / "ca.pem")]}
        told = told_of_files(with_status(offline, service, str(file), known, run))
    assert told.startswith("- daemon configuration: ") and f"{directory}/private/ca.pem as it is now is not verified" in told
