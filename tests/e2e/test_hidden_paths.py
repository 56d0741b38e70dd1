"""Files and directories that the systemd units hide from gatepostd: ProtectHome= closes /home, PrivateTmp= replaces /tmp."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from checkup import EX_CONFIG
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD
from signing import SECRET

EX_OSERR = 71
HOME = "the systemd unit hides /home from gatepostd (ProtectHome=): move it to "
AS_UNIT = {"INVOCATION_ID": "0123456789abcdef0123456789abcdef"}
NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups"
# Where the units hide nothing.
PLACE = "/dev/shm"


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(dir=PLACE) as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


@pytest.fixture
def files(place, authority):
    """A directory with all files that a configuration may name."""
    certificate, key = authority.issue("hidden")
    directory = place / "files"
    directory.mkdir()
    for source, name in ((certificate, "gw.pem"), (key, "gw.key"), (authority.certificate, "ca.pem")):
        shutil.copyfile(source, directory / name)
    for name, secret in (("secret", SECRET), ("password", SECRET), ("api_key", b"key-of-the-tests")):
        (directory / name).write_bytes(secret)
    for each in directory.iterdir():
        each.chmod(0o600)
        shutil.chown(each, 65534, 65534)
    directory.chmod(0o755)
    return directory


def written(at, roles="receiver, router", **elsewhere):
    """A configuration whose paths are all below a directory, but those of some options."""
    def path(option, name):
        return f"{elsewhere.get(option, at)}/{name}"
    return f"""[gatepost]
roles = {roles}
[receiver]
listen = 127.0.0.1:0
listen = unix:{path('listen', 'receiver.sock')}
tls_certificate_file = {path('tls_certificate_file', 'gw.pem')}
tls_key_file = {path('tls_key_file', 'gw.key')}
tls_client_ca_file = {path('tls_client_ca_file', 'ca.pem')}
spool = {path('spool', 'spool')}
spool_max = 1MiB
[router]
state = {path('state', 'state')}
[source invoicing]
path = /webhooks/invoicing
secret_file = {path('secret_file', 'secret')}
[kafka]
bootstrap.servers = kafka1:9092
security.protocol = SASL_SSL
sasl.mechanism = PLAIN
sasl.username = gatepost
sasl.password_file = {path('sasl.password_file', 'password')}
ssl.ca.location = {path('ssl.ca.location', 'ca.pem')}
ssl.certificate.location = {path('ssl.certificate.location', 'gw.pem')}
ssl.key.location = {path('ssl.key.location', 'gw.key')}
[admin]
listen = unix:{path('admin', 'admin.sock')}
[service]
api_key_file = {path('api_key_file', 'api_key')}
ca_file = {path('ca_file', 'ca.pem')}
"""


def run(file, text, *command, mounts="true", user="", environment=None):
    """Run a command of a configuration, after these mounts. Returns the exit status and the problems."""
    file.write_text(text)
    file.chmod(0o644)
    # The program may be below a directory that is hidden then.
    script = f'exec 9<"$1"; shift; {mounts}; exec {user} /proc/self/fd/9 "$@"'
    done = subprocess.run(["unshare", "--mount", "sh", "-ec", script, "sh", *command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, env=ENVIRONMENT | (environment or {}))
    assert_no_sanitizer_report(done.stderr)
    return done.returncode, [line.removeprefix(f"{file}:") for line in done.stderr.splitlines() if line.startswith(f"{file}:")]


def hidden(problems):
    """The warnings of hidden paths, without their lines."""
    return [each.partition(": warning: ")[2] for each in problems if ": the systemd units hide " in each]


def expected(text, directory, setting, options):
    """The warnings of these options, in the order of the file, each with what to do."""
    lines = [line.partition(" = ") for line in text.splitlines() if directory in line]
    assert {name for name, _, _ in lines} >= set(options)
    return [f"{name}: {value}: the systemd units hide {directory} from gatepostd ({setting}); "
            + (options[name][value.endswith("admin.sock")] if name == "listen" else options[name])
            for name, _, value in lines if name in options]


FILE = "move it to /etc/gatepost"
FILES_OF_RECEIVER = dict.fromkeys(["tls_certificate_file", "tls_key_file", "tls_client_ca_file"], FILE)
FILES = dict.fromkeys(["secret_file", "sasl.password_file", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"], FILE)


def test_check_warns_of_each_path_below_home(place, files):
    """gatepostd does not need the files of [service]."""
    file, mounts, text = place / "gatepost.conf", f"mount --bind {files} /home", written("/home")
    command = [BUILD / "gatepost", "-c", file, "check"]
    options = FILES | FILES_OF_RECEIVER | {"spool": "use /var/lib/gatepost/spool", "state": "use /var/lib/gatepost/state",
                                           "listen": ("use unix:/run/gatepost/receiver.sock", "use unix:/run/gatepost/admin.sock")}
    status, problems = run(file, text, *command, mounts=mounts)
    assert (status, hidden(problems)) == (0, expected(text, "/home", "ProtectHome=", options))
    assert run(file, text, *command, "--strict", mounts=mounts)[0] == EX_CONFIG
    status, problems = run(file, text, BUILD / "gatepostd", "-t", "-c", file, mounts=mounts)
    assert (status, hidden(problems)) == (0, expected(text, "/home", "ProtectHome=", options))
    # a process of a unit sees what is not hidden
    assert hidden(run(file, text, *command, mounts=mounts, environment=AS_UNIT)[1]) == []


def test_configuration_that_is_a_link_into_home(place, files):
    """The units read it by that name, and do not see where it leads."""
    file = place / "gatepost.conf"
    mounts = f"mount --bind {files} /home; mv {file} /home/gatepost.conf; ln -s /home/gatepost.conf {file}"
    status, problems = run(file, written(files), BUILD / "gatepost", "-c", file, "check", mounts=mounts)
    assert (status, [each for each in problems if "/home" in each]) == (
        0, [" warning: the file is a link into /home, which the systemd units hide from gatepostd (ProtectHome=); move it to /etc/gatepost"])


def test_check_warns_only_of_what_the_process_uses(place, files):
    file, text = place / "gatepost.conf", written("/home", "router")
    status, problems = run(file, text, BUILD / "gatepost", "-c", file, "check", mounts=f"mount --bind {files} /home")
    found = hidden(problems)
    assert status == 0 and [each.partition(":")[0] for each in found] == ["state", *FILES, "listen"]


def test_check_warns_of_files_in_tmp_and_behind_links(place, files):
    file = place / "gatepost.conf"
    (place / "link.key").symlink_to("/root/gw.key")
    text = written(files, tls_key_file="/var/tmp", api_key_file="/var/tmp", admin="/run").replace("ssl.key.location = " + f"{files}/gw.key",
                                                                                                 f"ssl.key.location = {place}/link.key")
    mounts = f"mount --bind {files} /var/tmp; mount --bind {files} /root"
    assert hidden(run(file, text, BUILD / "gatepost", "-c", file, "check", mounts=mounts)[1]) == [
        "tls_key_file: /var/tmp/gw.key: the systemd units hide /var/tmp from gatepostd (PrivateTmp=); move it to /etc/gatepost",
        f"ssl.key.location: {place}/link.key: the systemd units hide /root from gatepostd (ProtectHome=); move it to /etc/gatepost",
        "api_key_file: /var/tmp/api_key: the systemd units hide /var/tmp from gatepostd (PrivateTmp=); move it to /etc/gatepost"]


def test_check_warns_of_relative_paths(place, files):
    """They lead to the files from the directory in which an admin works, and from / to none."""
    file = place / "gatepost.conf"
    text = written(files, **dict.fromkeys(["listen", "spool", "state", "admin"], "/run")).replace(f"= {files}/", "= ")
    names = [line.partition(" = ")[0] for line in text.splitlines() if re.search(r"(_file|\.location) = ", line)]
    status, problems = run(file, text, BUILD / "gatepost", "-c", file, "check", mounts=f"cd {files}")
    assert (status, [each for each in problems if "a relative path" in each]) == (
        0, [f"{line}: warning: {name}: a relative path, which leads elsewhere when a systemd unit runs gatepostd; write an absolute path"
            for name in names for line in [next(n for n, each in enumerate(text.splitlines(), 1) if each.startswith(f"{name} = "))]])
    status, problems = run(file, text, BUILD / "gatepostd", "-t", "-c", file, mounts="cd /")
    refused = [each for each in problems if "absolute path" in each]
    # the others of [receiver] are read after the certificate
    assert status == EX_CONFIG and {each.split(": ")[1] for each in refused} == set(names) - {"tls_key_file", "tls_client_ca_file"}, problems


@pytest.mark.parametrize("directory", ["/home", "/tmp"])
def test_configuration_that_the_units_do_not_see_either(place, files, directory):
    """No unit reads it."""
    (files / "gatepost.conf").write_text(written("/home"))
    mounts = f"mount --bind {files} /home; mount --bind {files} /tmp"
    status, problems = run(place / "unused", "", BUILD / "gatepost", "-c", f"{directory}/gatepost.conf", "check", mounts=mounts)
    assert (status, problems) == (0, [])


@pytest.mark.parametrize("option", [*FILES_OF_RECEIVER, *FILES])
def test_unit_names_the_setting_that_hides_a_file(place, files, option):
    """The directory is closed, so that the reason alone is that of wrong modes."""
    file, text = place / "gatepost.conf", written(files, **{option: "/home"})
    closed = "mount -t tmpfs -o mode=000 none /home"

    def reason(**options):
        status, problems = run(file, text, BUILD / "gatepostd", "-t", "-c", file, mounts=closed, user=NOBODY, **options)
        (problem,) = [each for each in problems if f": {option}: cannot open /home/" in each]
        assert status == EX_CONFIG and "Permission denied" in problem
        return problem.partition("Permission denied")[2]
    assert reason(environment=AS_UNIT) == f"; {HOME}/etc/gatepost"
    if option != "ssl.key.location":  # which a person need not be allowed to read
        assert reason() == reason(environment=AS_UNIT | {"SYSTEMD_EXEC_PID": "1"}) == ""


@pytest.mark.parametrize("option", [*FILES_OF_RECEIVER, *FILES, "api_key_file", "ca_file"])
def test_unit_names_the_setting_that_replaces_tmp(place, files, option):
    file, text = place / "gatepost.conf", written(files, **{option: "/var/tmp/nowhere"})
    command = [BUILD / "gatepostd", "-t", "-c", file]
    status, problems = run(file, text, *command, environment=AS_UNIT)
    (problem,) = [each for each in problems if f": {option}: cannot open /var/tmp/nowhere/" in each]
    assert status == EX_CONFIG
    assert problem.endswith(": No such file or directory; the systemd unit hides /var/tmp from gatepostd (PrivateTmp=): move it to /etc/gatepost")
    assert ("; its directory is missing: correct the path, or make the directory: install -d -m 2750 -g gatepost " in "".join(run(file, text, *command)[1])) == (option == "secret_file")


def test_unit_that_does_not_close_home(place, files):
    """Then the file is missing."""
    file, text = place / "gatepost.conf", written(files, secret_file="/home")
    status, problems = run(file, text, BUILD / "gatepostd", "-t", "-c", file, mounts="mount -t tmpfs -o mode=755 none /home", user=NOBODY, environment=AS_UNIT)
    assert status == EX_CONFIG
    assert problems[0].endswith("cannot open /home/secret: No such file or directory; make one: gatepost secret new /home/secret")


def test_unit_names_the_setting_that_hides_the_configuration():
    done = subprocess.run([BUILD / "gatepostd", "-t", "-c", "/tmp/nowhere/gatepost.conf"], capture_output=True, text=True, timeout=60,
                          env=ENVIRONMENT | AS_UNIT)
    assert done.returncode == EX_CONFIG and "No such file or directory; the systemd unit hides /tmp from gatepostd (PrivateTmp=): move it" in done.stderr


@pytest.mark.parametrize("section, option", [("receiver", "spool"), ("router", "state")])
def test_unit_names_the_setting_that_hides_a_directory(place, installation, section, option):
    config = installation.config(section)
    installation.create_topics()
    config.directory = place / "gatepost"
    config.directory.mkdir()
    config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
    config.sections.setdefault(section, {})[option] = f"/home/ops/{option}"
    daemon = installation.daemon(config)
    daemon.environment = AS_UNIT
    daemon.wrapper = ["unshare", "--mount", "sh", "-ec", f'chown -R nobody:nogroup {config.directory}; mount -t tmpfs -o mode=000 none /home; '
                      f'exec {NOBODY} "$@"', "sh"]
    daemon.launch()
    daemon.wait_for_exit(EX_OSERR)
    assert f"/home/ops/{option}: Permission denied; {HOME}/var/lib/gatepost" in daemon.log
