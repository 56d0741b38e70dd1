"""What the user of the systemd units may access, as root's check says on a machine that has this user."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD

GATEPOST, SSL_CERT, OTHER, OTHER_KNOWN = 64001, 64002, 64003, 64004
SECRET = "7d8f0c1b2a3e4f5061728394a5b6c7d8"

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def place():
    """The units hide /tmp and /home; there nothing is checked for their user."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


@pytest.fixture
def check(place, tmp_path):
    """Check a text by both programs. Returns what they say, in which FILE is the configuration and DIRECTORY where it is."""
    for name, lines in (("passwd", [f"gatepost:x:{GATEPOST}:{GATEPOST}::/:/bin/false"]),
                        ("group", [f"gatepost:x:{GATEPOST}:", f"ssl-cert:x:{SSL_CERT}:gatepost", f"others:x:{OTHER_KNOWN}:"])):
        known = [each for each in pathlib.Path("/etc", name).read_text().splitlines() if not each.startswith(("gatepost:", "ssl-cert:", "others:"))]
        (tmp_path / name).write_text("\n".join([*known, *lines, ""]))
    file = place / "gatepost.conf"

    def run():
        told = []
        with_user = ["unshare", "--mount", "sh", "-ec", f'for each in passwd group; do mount --bind {tmp_path}/$each /etc/$each; done; {run.mount}; exec "$@"', "sh"]
        for command in ([BUILD / "gatepost", "-c", file, "check"], [BUILD / "gatepostd", "-t", "-c", file]):
            done = subprocess.run([*with_user, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
            assert_no_sanitizer_report(done.stderr)
            assert done.returncode == 0, done.stderr
            told.append(sorted(line for line in done.stderr.replace(str(file), "FILE").splitlines() if re.match(r"FILE:(\d+:)? warning: .*(gatepostd|other files|others can)", line)))
        assert told[0] == told[1]
        return [line.replace(str(place), "DIRECTORY") for line in told[0]]
    run.mount = "true"
    return run


def write(place, receiver=(), router=(), kafka=()):
    lines = ["[receiver]", "listen = 127.0.0.1:0", *receiver, "[router]", *router, "[source invoicing]", "path = /webhooks/invoicing",
             "header_prefix = x-invoicing", f"secret_file = {place}/secret", "[kafka]", "bootstrap.servers = kafka1:9092", *kafka]
    (place / "gatepost.conf").write_text("".join(f"{line}\n" for line in lines))
    (place / "secret").write_text(SECRET)
    for name in ("gatepost.conf", "secret"):
        os.chown(place / name, 0, GATEPOST)
        (place / name).chmod(0o640)
    return lines


@pytest.mark.parametrize("owner, group, mode, remedy", [
    (0, 0, 0o600, "chgrp gatepost FILE && chmod g+r FILE"),
    (0, GATEPOST, 0o600, "chgrp gatepost FILE && chmod g+r FILE"),
    (0, GATEPOST, 0o640, None),
    (0, SSL_CERT, 0o640, None),
    (0, OTHER_KNOWN, 0o600, "setfacl -m u:gatepost:r FILE"),
    (0, OTHER_KNOWN, 0o640, "usermod -aG others gatepost, and then: restart gatepostd"),
    (0, OTHER, 0o640, f"SupplementaryGroups={OTHER} in the unit, and then: restart gatepostd"),
    (GATEPOST, 0, 0o200, "chmod u+r FILE"),
    (GATEPOST, 0, 0o400, None),
])
def test_file_that_it_may_not_read(place, check, authority, owner, group, mode, remedy):
    certificate, key = authority.issue("gatepost")
    shutil.copyfile(certificate, place / "gw.pem")
    shutil.copyfile(key, place / "gw.key")
    (place / "password").write_text(SECRET)
    lines = write(place, [f"tls_certificate_file = {place}/gw.pem", f"tls_key_file = {place}/gw.key"], kafka=[
        "security.protocol = SASL_SSL", "sasl.mechanism = PLAIN", "sasl.username = gatepost", f"sasl.password_file = {place}/password"])
    expected = []
    for name in ("gatepost.conf", "gw.pem", "gw.key", "secret", "password"):
        os.chown(place / name, owner, group)
        (place / name).chmod(mode)
        line = [f"{i}:" for i, each in enumerate(lines, 1) if each.endswith(f"/{name}")]
        path = "FILE" if name == "gatepost.conf" else f"DIRECTORY/{name}"
        expected.append(f"FILE:{''.join(line)} warning: gatepostd may not read {path} (mode {mode:04o}); let its user, gatepost, read it: "
                        f"{(remedy or '').replace('FILE', path)}")
    assert check() == (sorted(expected) if remedy else [])


@pytest.mark.parametrize("owner, group, remedy", [
    (0, 0, "chgrp gatepost DIRECTORY && chmod g+x DIRECTORY"), (0, GATEPOST, "chgrp gatepost DIRECTORY && chmod g+x DIRECTORY"),
    (GATEPOST, 0, "chmod u+x DIRECTORY"), (0, OTHER, "setfacl -m u:gatepost:x DIRECTORY")])
def test_directory_above_its_files_that_it_may_not_enter(place, check, owner, group, remedy):
    """What is printed helps."""
    write(place)
    assert check() == []
    os.chown(place, owner, group)
    place.chmod(0o600)
    assert [re.sub(r"^\S+ ", "", line) for line in check()] == [
        f"warning: gatepostd may not enter DIRECTORY, in which {path} is; let its user, gatepost, enter it: {remedy}"
        for path in ("FILE", "DIRECTORY/secret")]
    if "setfacl" not in remedy:  # which need not be installed
        subprocess.run(remedy.replace("gatepost", str(GATEPOST)).replace("DIRECTORY", str(place)), shell=True, check=True)
        assert check() == []


def test_directory_of_a_group_of_others_is_not_opened(place, check):
    """Such as /etc/ssl/private of the group ssl-cert: others must not see what only the directory protects."""
    write(place)
    os.chown(place, 0, 0)
    (place / "private").mkdir(0o710)
    os.chown(place / "private", 0, OTHER_KNOWN)
    (place / "private" / "secret").write_text(SECRET)
    (place / "private" / "secret").chmod(0o640)
    os.chown(place / "private" / "secret", 0, GATEPOST)
    conf = place / "gatepost.conf"
    conf.write_text(conf.read_text().replace(f"{place}/secret", f"{place}/private/secret"))
    (line,) = check()
    assert line.endswith("enter it: usermod -aG others gatepost, and then: restart gatepostd"), line


def test_remedies_lead_along_links_to_the_file(place, check):
    """As certbot lays out its files, with a link to them in the directory of the configuration."""
    write(place)
    (place / "secret").unlink()
    for name in ("live", "archive"):
        (place / name).mkdir(0o700)
    (place / "archive" / "secret1").write_text(SECRET)
    (place / "archive" / "secret1").chmod(0o600)
    (place / "live" / "secret").symlink_to("../archive/secret1")
    (place / "secret").symlink_to(place / "live" / "secret")
    told = []
    while len(told) < 4 and (lines := check()):
        (line,) = lines
        told.append(re.sub(r"^\S+ warning: gatepostd ", "", line))
        command = line.partition("let its user, gatepost, ")[2].partition(": ")[2]
        subprocess.run(command.replace("gatepost ", f"{GATEPOST} ").replace("DIRECTORY", str(place)), shell=True, check=True)
    assert told == [
        *(f"may not enter DIRECTORY/{name}, in which DIRECTORY/secret is; let its user, gatepost, enter it: "
          f"chgrp gatepost DIRECTORY/{name} && chmod g+x DIRECTORY/{name}" for name in ("live", "archive")),
        "may not read DIRECTORY/secret (mode 0600); let its user, gatepost, read it: chgrp gatepost DIRECTORY/secret && chmod g+r DIRECTORY/secret"]


@pytest.mark.parametrize("is_read_only", [True, False])
def test_directory_that_others_may_write(place, check, is_read_only):
    """That of a ConfigMap in Kubernetes has the mode 0777, and nobody can write it."""
    write(place)
    place.chmod(0o777)
    check.mount = f"mount --bind -o ro {place} {place}" if is_read_only else "true"
    assert check() == ([] if is_read_only else [
        "FILE: warning: others can write DIRECTORY (mode 0777), and so decide what is accepted; correct it: chmod o-w DIRECTORY"])


@pytest.mark.parametrize("option", ["spool", "state"])
def test_remedies_of_a_directory_that_it_may_not_write_help(place, check, option):
    """Each is done as it is printed. A directory that has files of others is not given away."""
    directory = place / "data" / option
    directory.parent.mkdir(0o755)
    write(place, **{"receiver" if option == "spool" else "router": [f"{option} = {directory}"]})
    told = check()
    remedy = re.search(r"DIRECTORY/data is not writable for gatepostd, which is to create it there; if it is on a disk of its own, mount that, or create it: "
                       rf"(install -d -o gatepost -m 0700 DIRECTORY/data/{option}), which ReadWritePaths= of a systemd unit must name, "
                       rf"or use /var/lib/gatepost/{option}$", told[0])
    subprocess.run(remedy[1].replace("DIRECTORY", str(place)).replace("-o gatepost", f"-o {GATEPOST}"), shell=True, check=True)
    told = [line for line in check() if "in memory" not in line]
    assert told == []
    for name in ("lock", "0000000000000001.spool" if option == "spool" else "key"):
        (directory / name).touch(0o600)
        os.chown(directory, 0, 0)
        assert f"{option}: DIRECTORY/data/{option} is not writable for gatepostd; mount it if it is on a disk of its own, or give it to the user of gatepostd (chown -R)" in "".join(check())
        os.chown(directory, GATEPOST, GATEPOST)
        assert f"{option}: gatepostd may not open DIRECTORY/data/{option}/{name}, which is in it; give all that is in it to the user of gatepostd (chown -R)" in "".join(check())
        (directory / name).unlink()
    (directory / "lock").touch()
    (directory / "lock").chmod(0o644)
    assert f"may not open DIRECTORY/data/{option}/lock" in "".join(check()), "it is locked for writing"
    os.chown(directory, GATEPOST, GATEPOST)
    os.chown(directory / "lock", GATEPOST, GATEPOST)
    (directory / "lock").chmod(0)
    assert f"may not open DIRECTORY/data/{option}/lock, which is in it; chmod u+rw DIRECTORY/data/{option}/lock" in "".join(check())
    (directory / "lock").unlink()
    directory.chmod(0o500)
    assert f"is not writable for gatepostd (mode 0500); chmod 700 DIRECTORY/data/{option}" in "".join(check())
    directory.chmod(0o700)
    (directory / "cron").mkdir()
    (directory / ("0000000000000001.spool" if option == "spool" else "key")).touch()
    os.chown(directory, 0, 0)
    told = "".join(check())
    assert f"{option}: DIRECTORY/data/{option} has other files; use a directory of its own, such as /var/lib/gatepost/{option}, and move there, while gatepostd is stopped, " in told
    assert "chown" not in told and "chmod" not in told
    (directory / ("0000000000000001.spool" if option == "spool" else "key")).unlink()
    os.chown(directory, 0, 0)
    told = "".join(check())
    assert f"{option}: DIRECTORY/data/{option} has other files; use a directory of its own, such as /var/lib/gatepost/{option}" in told
    assert "chown" not in told and "chmod" not in told
