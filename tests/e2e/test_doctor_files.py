"""gatepost doctor: the files of the configuration, and whether this user and the daemon's may access them."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from checkup import EX_CONFIG, EX_NOPERM, UTF_8, Checkup, by_sockets, entry, examine, expect, status_of
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD
from signing import SECRET


def test_certificate_that_has_expired(offline, authority):
    config = offline.config().tls(*authority.issue("old", begin="20200101000000Z", end="20200102000000Z"))
    expect(examine(offline, config), EX_CONFIG, "certificate ", "expired at 2020-01-02", "replace the files")


@pytest.mark.parametrize("is_in_wrong_order", [False, True])
def test_certificate_that_does_not_belong_to_its_key(offline, authority, is_in_wrong_order):
    """The configuration is right, and one of its files is not."""
    (before, key), (renewed, _) = authority.issue("before"), authority.issue("renewed")
    if is_in_wrong_order:
        renewed.write_text(renewed.read_text() + before.read_text())
    config = offline.config().tls(renewed, key)
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, "configuration ", f"{key} does not belong to the first certificate", "remedy: see whether ",
           "names the right files; if so, correct the files: the first certificate in tls_certificate_file must be that of the key",
           "then: systemctl reload gatepostd; until a reload succeeds, a gatepostd that runs serves the certificate that it has loaded")
    assert ("but to certificate 2, which must be the first" in checkup.cause) == is_in_wrong_order, checkup.cause


def test_key_with_a_passphrase(offline, authority):
    certificate, plain = authority.issue("locked")
    key = plain.with_name("locked-by-a-passphrase.key")
    subprocess.run(["openssl", "pkey", "-in", plain, "-aes256", "-passout", "pass:word", "-out", key], check=True, capture_output=True)
    expect(examine(offline, offline.config().tls(certificate, key)), EX_CONFIG, f"{key} is protected by a passphrase",
           f"; remedy: openssl pkey -in {key} -out FILE")


def test_authority_for_clients_that_has_expired(offline, authority):
    config = offline.config().tls(*authority.issue("present"))
    old, _ = authority.issue("old-authority", begin="20200101000000Z", end="20200102000000Z")
    file = config["receiver"]["tls_client_ca_file"] = config.directory / "authorities.pem"
    shutil.copy(old, file)
    expect(examine(offline, config), EX_CONFIG, f"certificate {file}: no certificate of a client can be valid: ", "expired at 2020-01-02",
           "replace tls_client_ca_file")
    file.write_text(file.read_text() + authority.certificate.read_text())
    assert any(line.startswith(f"! certificate {file}: certificate 1, of an authority, expired at 2020-01-02")
               for line in examine(offline, config).lines)


def test_mistake_in_the_configuration(offline):
    config = offline.config()
    config["receiver"]["ack_timout"] = "8s"
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, "configuration ", "did you mean ack_timeout?", "gatepost -c ", " check lists")
    assert checkup.having("-") == ["- 14 steps skipped: they need a valid configuration"]
    document = json.loads("\n".join(examine(offline, config, "--json").lines))
    assert [step["result"] for step in document["steps"]] == ["failed"] + ["skipped"] * 14


def test_missing_secret_is_made_by_a_command(offline):
    config = offline.config()
    config["source invoicing"]["secret_file"] = path = f"{config.directory}/no-such-secret"
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, f"cannot open {path}: No such file or directory; remedy: gatepost secret new {path}")
    assert checkup.cause.endswith(f"gatepost secret new {path}")
    done = offline.gatepost("check", config=config)
    assert f"No such file or directory; make one: gatepost secret new {path}\n" in done.stderr


def test_missing_secret_with_a_name_like_that_of_a_file(offline):
    """Misspelt, it must not be made: a second secret would not be that of the webhook. Or it is one that is still to be made."""
    config = offline.config()
    path = str(config["source invoicing"]["secret_file"])
    config["source invoicing"]["secret_file"] = missing = path[:-2] + path[:-3:-1]
    expect(examine(offline, config), EX_CONFIG, f"cannot open {missing}: No such file or directory; "
           f"remedy: write {path} if that is meant, or make a new secret: gatepost secret new {missing}")


def test_only_files_of_a_similar_name_are_named(offline):
    directory = offline.directory / "secrets"
    (directory / "prod").mkdir(parents=True)
    (directory / ".prd").write_text("a hidden file")
    config = offline.config()
    for name in ("prd", "a"):
        config["source invoicing"]["secret_file"] = directory / name
        done = offline.gatepost("check", config=config)
        assert f"No such file or directory; make one: gatepost secret new {directory / name}\n" in done.stderr


def test_missing_secret_below_run_is_not_made(offline):
    """A container or systemd puts it there."""
    config = offline.config()
    with tempfile.TemporaryDirectory(dir="/run") as directory:
        path = f"{directory}/invoicing"
        config["source invoicing"]["secret_file"] = path
        done = offline.gatepost("check", config=config)
        assert f"cannot open {path}: No such file or directory\n" in done.stderr
        pathlib.Path(path).write_text("a secret of the container")
        config["source invoicing"]["secret_file"] = f"{directory}/invocing"
        done = offline.gatepost("check", config=config)
    assert f"No such file or directory; correct it: write {path} if that is meant\n" in done.stderr


def test_secret_that_is_a_link_to_nothing(offline):
    path = offline.directory / "linked"
    path.symlink_to("secrets/nothing")
    config = offline.config()
    config["source invoicing"]["secret_file"] = path
    done = offline.gatepost("check", config=config)
    assert f"cannot open {path}: it is a symbolic link to secrets/nothing, which does not exist\n" in done.stderr


def test_secret_that_others_can_read_has_one_remedy(offline):
    config = offline.config()
    path = config["source invoicing"]["secret_file"]
    pathlib.Path(path).chmod(0o644)
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, "others can read it (mode 0644)")
    assert checkup.cause.endswith(f"; remedy: chmod o= {path}") and checkup.cause.count("chmod") == 1


def test_each_later_failure_keeps_its_remedy(offline):
    config = offline.config()
    config["source invoicing"]["secret_file"] = [f"{config.directory}/{name}" for name in ("first", "second")]
    checkup = examine(offline, config)
    expect(checkup, EX_CONFIG, f"gatepost secret new {config.directory}/first")
    assert checkup.having("✗")[1].endswith(f"; make one: gatepost secret new {config.directory}/second")


@pytest.mark.parametrize("is_inside", [False, True])
def test_secret_that_this_user_cannot_read(offline, is_inside):
    """Inside a directory that the user cannot enter, the mode of the file does not matter."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        program = shutil.copy(BUILD / "gatepost", directory)  # the build may be in a directory that others cannot enter
        config = offline.config()
        config.directory = directory
        if is_inside:
            (config.directory / "private").mkdir(0o700)
        config["source invoicing"]["secret_file"] = config.secret_file("private/secret" if is_inside else "secret", SECRET)
        path = config.write()
        path.chmod(0o644)
        done = subprocess.run([program, "-c", path, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                              env=ENVIRONMENT | UTF_8, user=65533, group=65533, extra_groups=[])
    assert_no_sanitizer_report(done.stderr)
    expect(Checkup(done), EX_NOPERM, "cannot open", "Permission denied", "sudo -u gatepost gatepost -c",
           f"chgrp gatepost {directory}/private && chmod g+x {directory}/private" if is_inside else
           f"chgrp gatepost {directory}/secret && chmod g+r {directory}/secret")


# The daemon's user

def test_directory_that_the_daemons_user_cannot_write(router_of_nobody):
    config = router_of_nobody.config
    config["router"]["state"] = str(config.directory / "state")
    checkup = router_of_nobody()
    expect(checkup, EX_NOPERM, f"files {config.directory}/state: the daemon's user, nobody, cannot write {config.directory}: Permission denied",
           f"remedy: if it is on a disk of its own, mount that; else: install -d -o nobody -m 0700 {config.directory}/state")
    assert f"✓ files {config['source invoicing']['secret_file']}: the daemon's user, nobody, may read it" in checkup.lines
    (config.directory / "state").symlink_to(config.directory / "disk" / "state")
    expect(router_of_nobody(), EX_NOPERM, f"files {config.directory}/state: the daemon's user, nobody, cannot write it: No such file or directory",
           "if it is on a disk of its own, mount that; else: create the directory to which this link leads, for nobody; ")
    (config.directory / "state").unlink()
    (config.directory / "state").mkdir(0o700)
    expect(router_of_nobody(), EX_NOPERM, f"files {config.directory}/state: the daemon's user, nobody, cannot write it: Permission denied",
           f"if it is on a disk of its own, mount that; else: chown -R nobody {config.directory}/state && chmod 700 {config.directory}/state; ")
    (config.directory / "state" / "cron").mkdir()
    expect(router_of_nobody(), EX_NOPERM, f"files {config.directory}/state: the daemon's user, nobody, cannot write it: Permission denied",
           "else: it has other files, so name a directory of its own; ")
    os.chown(config.directory / "state", 65534, 65534)
    assert f"✓ files {config.directory}/state: the daemon's user, nobody, may write it" in router_of_nobody().lines


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


def test_file_in_a_directory_of_the_daemon_that_its_user_cannot_read(router_of_nobody):
    """Root has run gatepostd by hand."""
    state = router_of_nobody.config.directory / "state"
    router_of_nobody.config["router"]["state"] = str(state)
    state.mkdir(0o700)
    os.chown(state, 65534, 65534)
    (state / "key").touch(0o600)
    expect(router_of_nobody(), EX_NOPERM, f"files {state}: the daemon's user, nobody, cannot open {state}/key, which is in it: Permission denied",
           f"; remedy: chown -R nobody {state}")
    os.chown(state / "key", 65534, 0)
    assert f"✓ files {state}: the daemon's user, nobody, may write it" in router_of_nobody().lines


def test_files_of_others_in_a_directory_of_the_daemon_do_not_matter(router_of_nobody):
    """Such as those of quotas, in the root of a file system; chown of a link to the directory would change nothing in it."""
    directory, state = (router_of_nobody.config.directory / name for name in ("disk", "state"))
    router_of_nobody.config["router"]["state"] = str(state)
    directory.mkdir(0o700)
    os.chown(directory, 65534, 65534)
    state.symlink_to(directory)
    (directory / "aquota.user").touch(0o600)
    assert f"✓ files {state}: the daemon's user, nobody, may write it" in router_of_nobody().lines
    for name in ("lock", "key", "0-10-20.run"):
        (directory / name).touch(0o600)
        expect(router_of_nobody(), EX_NOPERM, f"cannot open {state}/{name}, which is in it", f"; remedy: chown -R nobody {directory}")
        (directory / name).unlink()


def test_file_in_a_directory_that_the_daemons_user_cannot_enter(router_of_nobody, authority):
    config = router_of_nobody.config
    private = config.directory / "private"
    private.mkdir(0o700)
    shutil.copy(authority.certificate, private / "ca.pem")
    (private / "ca.pem").chmod(0o644)
    config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": private / "ca.pem"})
    expect(router_of_nobody(), EX_NOPERM, f"files {private}/ca.pem: the daemon's user, nobody, cannot read it: Permission denied; remedy: ",
           f"let nobody enter the directory: chgrp nogroup {private} && chmod g+x {private}")


def test_file_behind_a_link_into_a_directory_that_the_daemons_user_cannot_enter(router_of_nobody, authority):
    """As certbot lays out its files: the link can be reached, and its target cannot."""
    directory = router_of_nobody.config.directory
    (directory / "archive").mkdir(0o700)
    shutil.copy(authority.certificate, directory / "archive" / "ca1.pem")
    (directory / "archive" / "ca1.pem").chmod(0o644)
    (directory / "live").mkdir(0o755)
    (directory / "live" / "ca.pem").symlink_to("../archive/ca1.pem")
    router_of_nobody.config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": directory / "live" / "ca.pem"})
    expect(router_of_nobody(), EX_NOPERM, f"files {directory}/live/ca.pem: the daemon's user, nobody, cannot read it: Permission denied; remedy: ",
           f"let nobody enter the directory: chgrp nogroup {directory}/archive && chmod g+x {directory}/archive")


def test_groups_are_those_of_the_daemons_process(router_of_nobody):
    """SupplementaryGroups= of its unit gives it more than the user has."""
    checkup = router_of_nobody({"userId": 65534, "groupIds": [65534, 54322]}, group=54322)
    assert f"✓ files {router_of_nobody.secret}: the daemon's user, nobody, may read it" in checkup.lines and "✗ files" not in checkup.lines
    checkup = router_of_nobody({"userId": 65534, "groupIds": [65534]}, group=54322)
    expect(checkup, EX_NOPERM, "the daemon's user, nobody, cannot read it: Permission denied; remedy: SupplementaryGroups=54322 in the unit")


def test_file_of_root_may_get_the_daemons_group(router_of_nobody):
    expect(router_of_nobody(group=0), EX_NOPERM, "the daemon's user, nobody, cannot read it: Permission denied; remedy: chgrp nogroup ")


def test_file_of_the_daemons_user_without_a_right_for_it(router_of_nobody, authority):
    file = pathlib.Path(shutil.copy(authority.certificate, router_of_nobody.config.directory / "ca.pem"))
    os.chown(file, 65534, 0)
    file.chmod(0o040)
    router_of_nobody.config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": file})
    expect(router_of_nobody(), EX_NOPERM, f"remedy: chmod u+r {file}")


@pytest.mark.parametrize("mode, remedy", [(0o710, "usermod -aG daemon nobody, and then: systemctl restart gatepostd"),
                                          (0o700, "setfacl -m u:nobody:x {private}")])
def test_group_of_others_is_left_as_it_is(router_of_nobody, authority, mode, remedy):
    """Its members, such as those of Debian's ssl-cert, would lose their access or gain one."""
    config = router_of_nobody.config
    private = config.directory / "private"
    private.mkdir()
    os.chown(private, 0, 1)
    private.chmod(mode)
    shutil.copy(authority.certificate, private / "ca.pem")
    config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": private / "ca.pem"})
    checkup = router_of_nobody()
    expect(checkup, EX_NOPERM, "let nobody enter the directory: " + remedy.format(private=private))
    assert "chgrp" not in checkup.cause


def told_to_change(checkup):
    return [line for line in checkup.lines if line.startswith("✗ files") or "chgrp" in line]


def test_user_of_another_daemon_is_not_ours(router_of_nobody):
    """Two have the same `listen` in [admin]."""
    other = {"userId": 65534, "groupIds": [65534], "configuration": {"file": "/etc/gatepost/other.conf"}}
    checkup = router_of_nobody(other, group=0)
    assert told_to_change(checkup) == [] and any(line.startswith("! files: ") and "is not known" in line for line in checkup.lines)


def test_root_that_may_not_become_another_user(router_of_nobody):
    checkup = router_of_nobody(group=0, wrapper=["setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-setuid,-setgid"])
    assert told_to_change(checkup) == []
    assert any(line.startswith("- files: ") and "user, nobody, can is not verified: " in line for line in checkup.lines), checkup.lines


def test_file_that_the_daemon_has_read_can_be_read(router_of_nobody):
    """A capability lets it, such as CAP_DAC_READ_SEARCH."""
    secret = router_of_nobody.secret

    def report(file, **changed):
        return {"userId": 65534, "groupIds": [65534], "configuration": {
            "file": str(file), "files": [entry(file, "reload"), entry(secret, "reload", **changed)]}}
    checkup = router_of_nobody(report, group=0)
    assert told_to_change(checkup) == [] and f"✓ files {secret}: gatepostd has read it as it is now" in checkup.lines
    expect(router_of_nobody(lambda file: report(file, inode=1), group=0), EX_NOPERM, f"files {secret}: ", "chgrp nogroup ")


def test_file_that_the_daemon_has_read_is_below_a_directory_that_was_closed_since(router_of_nobody):
    config = router_of_nobody.config
    secrets = config.directory / "secrets"
    secrets.mkdir(0o700)
    secret = pathlib.Path(shutil.copy(router_of_nobody.secret, secrets))
    secret.chmod(0o640)
    os.chown(secret, 0, 65534)
    config["source invoicing"]["secret_file"] = secret

    def report(file):
        return {"userId": 65534, "groupIds": [65534], "configuration": {
            "file": str(file), "files": [entry(file, "reload"), entry(secret, "reload")]}}
    assert (f"! files {secret}: gatepostd has read it as it is now, but cannot read it again, at a reload or its next start: the daemon's user, nobody, "
            f"may not enter {secrets}; let it enter: chgrp nogroup {secrets} && chmod g+x {secrets}") in router_of_nobody(report).lines


def test_router_reads_no_file_of_the_receiver(router_of_nobody, authority):
    certificate, key = authority.issue("of-the-receiver")
    router_of_nobody.config.tls(certificate, key)
    os.chown(key, 0, 0)
    key.chmod(0o600)
    checkup = router_of_nobody()
    assert told_to_change(checkup) == [] and not any(str(key) in line for line in checkup.lines)


def test_group_that_the_daemons_process_has_not_yet_takes_a_restart(router_of_nobody):
    groups = router_of_nobody.config.directory / "group"
    groups.write_text(pathlib.Path("/etc/group").read_text() + "gatepost-tests:x:54322:nobody\n")
    report = {"userId": 65534, "groupIds": [65534]}
    checkup = router_of_nobody(report, 54322, ["unshare", "--mount", "sh", "-ec", f'mount --bind {groups} /etc/group; exec "$@"', "sh"])
    expect(checkup, EX_NOPERM, "cannot read it: Permission denied; remedy: nobody is a member of a group that may, and was not when "
           "gatepostd started: systemctl restart gatepostd")


def test_groups_of_a_daemon_that_does_not_say_them_are_those_of_its_user(router_of_nobody):
    assert f"✓ files {router_of_nobody.secret}: the daemon's user, nobody, may read it" in router_of_nobody({"userId": 65534}).lines
    expect(router_of_nobody({"userId": 65534}, group=54322), EX_NOPERM,
           "cannot read it: Permission denied, unless the unit has SupplementaryGroups= that may; remedy: ")


def test_daemons_user_without_an_entry_in_passwd(router_of_nobody):
    report = {"userId": 54321, "groupIds": [54322]}
    assert f"✓ files {router_of_nobody.secret}: the daemon's user, 54321, may read it" in router_of_nobody(report, group=54322).lines
    expect(router_of_nobody(report), EX_NOPERM, "the daemon's user, 54321, cannot read it: Permission denied; "
           "remedy: SupplementaryGroups=nogroup in the unit")
    expect(router_of_nobody(report, group=0), EX_NOPERM, "remedy: chgrp 54322 ")


def test_directory_of_certificates_must_be_entered(router_of_nobody, authority):
    config = router_of_nobody.config
    directory = config.directory / "authorities"
    directory.mkdir()
    shutil.copy(authority.certificate, directory)
    directory.chmod(0o644)
    config["kafka"].update({"security.protocol": "ssl", "ssl.ca.location": directory})
    expect(router_of_nobody(), EX_NOPERM, f"files {directory}: the daemon's user, nobody, cannot read it: Permission denied; "
           f"remedy: chgrp nogroup {directory} && chmod g+rx {directory}")
    os.chown(directory, 0, 65534)
    directory.chmod(0o750)
    assert f"✓ files {directory}: the daemon's user, nobody, may read it" in router_of_nobody().lines


def test_daemon_says_its_groups(installation, stopped):
    stopped.wrapper = ["setpriv", "--regid", "54321", "--groups", "54322,54323"]
    report = status_of(stopped.start())
    assert report["userId"] == 0 and report["groupIds"] == [54321, 54322, 54323]


def test_unknown_user_of_the_daemon_is_a_warning(offline):
    assert any(line.startswith("! files: root can read all files") for line in examine(offline, by_sockets(offline)).lines)
