"""gatepost doctor: the sandbox of gatepostd's unit hides a file or makes a directory read-only, which doctor sees from outside."""

import os
import pathlib
import shutil
import socket
import tempfile

import pytest
from cluster import Cluster

import waiting
from checkup import EX_CONFIG, EX_NOPERM, EX_UNAVAILABLE, OTHER_SECRET, by_sockets, examine, expect, file_of, status_of, told_of_files
from installation import Installation
from proxy import Proxies
from reloading import reload, send_sighup
from signing import SECRET, Delivery

HIDDEN = ("gatepostd does not see it there: ProtectHome= and PrivateTmp= of its unit hide what is below /home, /root, /run/user, /tmp and /var/tmp, and a "
          "container what is not mounted in it")


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory() as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


@pytest.fixture
def place_outside():
    """One that is not below /tmp."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


def start_in_sandbox(installation, place, mounts, kafka=None, own=None, roles="receiver, router", named='"$2" "$3"', **receiver):
    """A daemon of nobody, with all its files in `place`; `mounts` makes the sandbox. kafka are properties, others options of the receiver.
    own is a section and the path of its socket that only the daemon sees. named are the arguments, of which $3 is the configuration."""
    config = by_sockets(installation, roles)
    config["kafka"].update(kafka or {})
    config["receiver"].update(receiver)
    installation.create_topics(config)
    config.directory = place / "gatepost"
    config.directory.mkdir()
    for section, name in (("receiver", "receiver.sock"), ("admin", "admin.sock")):
        config[section]["listen"] = f"unix:{config.directory}/{name}"
    if own:
        config[own[0]]["listen"] = f"unix:{own[1]}"
    config["source invoicing"]["secret_file"] = config.secret_file("secret", SECRET)
    daemon = installation.daemon(config)
    daemon.wrapper = ["unshare", "--mount", "sh", "-ec", f'chown -R nobody:nogroup {config.directory}; {mounts}; '
                      'exec setpriv --reuid=65534 --regid=65534 --clear-groups "$1" ' + named, "sh"]
    daemon.start()
    if own is None:
        daemon.wait_until_ready()
    return daemon


def edit(daemon, old, new):
    file = pathlib.Path(file_of(daemon))
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_secret_that_the_unit_hides(place, installation, mode):
    """No mode and no group is of any help, so none is changed."""
    home = place / "root"
    home.mkdir(0o755 if mode & 4 else 0o700)
    secret = home / "secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o640 if mode & 4 else mode)
    os.chown(secret, 0, 65534 if mode & 4 else 0)
    daemon = start_in_sandbox(installation, place, f"mount -t tmpfs -o mode=000 none {home}")
    edit(daemon, f"{place}/gatepost/secret", str(secret))
    checkup = examine(installation, file_of(daemon), "--no-send")
    expect(checkup, EX_NOPERM, f"files {secret}: {HIDDEN}; remedy: move it to /etc/gatepost")
    assert "chgrp" not in checkup.cause and "chmod" not in checkup.cause


def test_spool_that_the_unit_may_not_write(place, installation):
    """It may be named in the file before it is one of the unit; a daemon that could write it would not be told to."""
    data = place / "data"
    data.mkdir()
    daemon = start_in_sandbox(installation, place, f"mount --bind {data} {data}; mount -o remount,ro,bind {data}")
    edit(daemon, "[receiver]\n", f"[receiver]\nspool = {data}/spool\n")
    install = f"install -d -o nobody -m 0700 {data}/spool"
    expect(examine(installation, file_of(daemon), "--no-send"), EX_NOPERM, f"files {data}/spool: the daemon's user, nobody, cannot write {data}: ",
           f"; else: {install}, and name it in ReadWritePaths= of the unit; nobody must be able to enter those above it")
    assert os.system(install) == 0
    expect(examine(installation, file_of(daemon), "--no-send"), EX_NOPERM,
           f"files {data}/spool: the daemon's user, nobody, may write it, but for gatepostd it is read-only, by ProtectSystem= of its unit; remedy: "
           "name it in ReadWritePaths= of the unit (systemctl edit gatepostd), and then: systemctl restart gatepostd")


def test_directory_that_a_daemon_without_a_unit_may_write(place, installation):
    daemon = start_in_sandbox(installation, place, "true")
    spool = place / "gatepost" / "spool"
    edit(daemon, "[receiver]\n", f"[receiver]\nspool = {spool}\n")
    checkup = examine(installation, file_of(daemon), "--no-send")
    assert f"\N{CHECK MARK} files {spool}: the daemon's user, nobody, may write it" in checkup.lines
    assert f"\N{CHECK MARK} files {place}/gatepost/secret: the daemon's user, nobody, may read it" in checkup.lines


def test_sandbox_of_the_unit_is_presumed_for_its_user(router_of_nobody):
    """Without its process, its sandbox is not known."""
    config = router_of_nobody.config
    config["router"]["state"] = "/mnt/state"
    passwd = config.directory / "passwd"
    passwd.write_text(pathlib.Path("/etc/passwd").read_text().replace("nobody:", "gatepost:"))
    mounts = f'mount --bind {passwd} /etc/passwd; mount -t tmpfs -o mode=755 none /mnt; %s; exec "$@"'

    def run(made):
        return router_of_nobody(wrapper=["unshare", "--mount", "sh", "-ec", mounts % made, "sh"])
    checkup = run("install -d -o gatepost -m 0700 /mnt/state")
    assert "\N{CHECK MARK} files /mnt/state: the daemon's user, gatepost, may write it, if ReadWritePaths= of the unit names it" in checkup.lines
    assert f"! files {router_of_nobody.secret}: {HIDDEN}, unless this was changed there: move it to /etc/gatepost" in checkup.lines
    expect(run("true"), EX_NOPERM, "files /mnt/state: the daemon's user, gatepost, cannot write /mnt: ",
           "install -d -o gatepost -m 0700 /mnt/state, and name it in ReadWritePaths= of the unit; ")


PROCESS = ("this command finds no such error: unless it was corrected since, gatepostd's process sees other files, or lacks a group, which only a restart "
           "gives it: the `files` lines of gatepost doctor as root tell which, or see journalctl -u gatepostd; when that is corrected")


@pytest.mark.parametrize("is_hidden", [True, False], ids=["hidden", "group"])
def test_secret_that_only_the_process_of_gatepostd_cannot_read(place, installation, is_hidden):
    """Its user can, in another process: outside of the sandbox, or since it is in the group."""
    home = place / "home"
    home.mkdir()
    secret = home / "secret"
    secret.write_bytes(OTHER_SECRET)
    secret.chmod(0o640)
    os.chown(secret, 65534 if is_hidden else 0, 4)
    daemon = start_in_sandbox(installation, place, f"mount -t tmpfs -o mode=000 none {home}" if is_hidden else "true")
    edit(daemon, f"{place}/gatepost/secret", str(secret))
    assert "reload failed" in send_sighup(daemon)
    refusal = status_of(daemon)["configuration"]["refusedReload"]
    lines = pathlib.Path(file_of(daemon)).read_text().splitlines()
    line = lines.index(f"secret_file = {secret}") + 1
    assert refusal["reason"] == f"{file_of(daemon)}:{line}: secret_file: cannot open {secret}: Permission denied"
    assert refusal["hasErrors"] and not refusal["needsRestart"]
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=4"]
    told = told_of_files(examine(installation, file_of(daemon), "--no-send", wrapper=user))
    assert told.endswith(f": the last reload was refused: {refusal['reason']}; {PROCESS}: systemctl reload gatepostd")
    as_root = examine(installation, file_of(daemon), "--no-send")
    assert as_root.status == EX_NOPERM and f"files {secret}: " in as_root.cause


def test_no_restart_for_kafka_before_a_refused_reload_is_understood(place, installation, authority):
    """It would end the daemon."""
    secret, authorities = place / "new", place / "ca.pem"
    secret.write_bytes(OTHER_SECRET)
    secret.chmod(0o600)
    authorities.write_bytes(pathlib.Path(authority.certificate).read_bytes())
    authorities.chmod(0o644)
    daemon = start_in_sandbox(installation, place, "true", {"ssl.ca.location": authorities})
    edit(daemon, f"{place}/gatepost/secret", str(secret))
    authorities.write_bytes(authorities.read_bytes() + b"\n")
    needs_restart = f"! daemon configuration: {authorities} has changed since the start of gatepostd, and changes in [kafka] need a restart"
    assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == f"{needs_restart}: systemctl restart gatepostd"
    assert "reload failed" in send_sighup(daemon)
    reason = status_of(daemon)["configuration"]["refusedReload"]["reason"]
    assert told_of_files(examine(installation, file_of(daemon), "--no-send")) == (
        f"{needs_restart}, but the last reload was refused: {reason}; {PROCESS}: systemctl restart gatepostd")


@pytest.fixture
def proxied(tmp_path):
    """An installation whose connections to the broker lead through proxies, and these."""
    with Cluster(proxied=True) as cluster, Proxies(cluster) as proxies:
        each = Installation(tmp_path, cluster.proxied_bootstrap)
        each.direct_bootstrap = cluster.bootstrap
        yield each, proxies
        proxies.clear()
        each.clean_up()


@pytest.mark.parametrize("has_another", [False, True], ids=["none-here", "another-here"])
def test_spool_in_the_tmp_of_the_unit(place, proxied, has_another):
    """It is deleted when gatepostd stops, and nothing leads to it from here."""
    installation, proxies = proxied
    tmp = place / "tmp"
    tmp.mkdir()
    spool = tmp / "spool"
    daemon = start_in_sandbox(installation, place, f"mount -t tmpfs -o mode=1777 none {tmp}", ack_timeout="1s", spool=str(spool))
    if has_another:
        spool.mkdir(0o700)
    own = "a directory of gatepostd's own, by PrivateTmp= of its unit or in a container"
    lines = examine(installation, file_of(daemon), "--no-send").lines
    assert f"\N{CHECK MARK} files {spool}: it is {own}" in lines
    assert [line for line in lines if f" spool {spool}: " in line] == [
        f"! spool {spool}: it is {own}, and may be deleted when gatepostd stops, with the deliveries in it (0 now): "
        "name a directory below /var/lib/gatepost; in a container, one on a volume, and run gatepost doctor there"]

    def restart():
        checkup = examine(installation, file_of(daemon), "--no-send")
        (line,) = [line for line in checkup.having("!") if " that only a restart applies, [kafka]: " in line]
        return line.partition("[kafka]: ")[2]
    daemon.config["kafka"]["linger.ms"] = 7
    reload(daemon)
    command = f"gatepost -c {file_of(daemon)}"
    assert restart() == (f"systemctl restart gatepostd, if {command} status shows just before that the spool is empty: a restart may delete {spool}, "
                         f"which is {own}")
    held = proxies.hold_request("Produce", times=None)
    daemon.accept(delivery := Delivery())
    waiting.until(lambda: status_of(daemon)["spool"]["records"] > 0, 60, "a delivery in the spool")
    assert restart() == (f"a restart may delete the deliveries in {spool}, which is {own}: wait until {command} status shows none, and then: systemctl "
                         f"restart gatepostd; or stop what sends deliveries, copy it as root from /proc/PID/root{spool}, do that, and then: {command} "
                         "spool drain COPY")
    copy = shutil.copytree(f"/proc/{daemon.process.pid}/root{spool}", place / "copy")
    daemon.stop()
    done = installation.gatepost("spool", "drain", str(copy), "--bootstrap", installation.direct_bootstrap, config=file_of(daemon))
    assert done.returncode == 0 and not list(copy.glob("*.spool")), done
    assert [each.value for each in installation.kafka.read(installation.kafka.deliveries)] == [delivery.body]
    held.release()


@pytest.mark.parametrize("is_root", [True, False], ids=["root", "nobody"])
@pytest.mark.parametrize("section", ["receiver", "admin"])
def test_socket_in_the_tmp_of_the_unit(place, place_outside, installation, section, is_root):
    """No restart brings it here. Without root, the report of gatepostd tells, as long as it can be asked."""
    tmp = place / "tmp"
    tmp.mkdir()
    path = tmp / "x.sock"
    daemon = start_in_sandbox(installation, place_outside, f"mount -t tmpfs -o mode=1777 none {tmp}", own=(section, path))
    file = file_of(daemon)
    user = [] if is_root else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    step = f"{'listen' if section == 'receiver' else 'daemon'} unix:{path}: "
    own = "in a directory of gatepostd's own, by PrivateTmp= of its unit or in a container"
    checkup = examine(installation, file, "--no-send", wrapper=user)
    if section == "admin" and not is_root:
        expect(checkup, EX_UNAVAILABLE, step, "gatepostd runs, but not with this `listen`", f", or the socket is {own}, which gatepost doctor sees as root; ",
               f"remedy: name a path in /run/gatepost as `listen` in [admin] of {file}, and then: systemctl restart gatepostd")
    else:
        expect(checkup, EX_CONFIG, f"{step}nothing listens there: the socket of gatepostd is {own}, where other programs do not find it"
               f"{'' if is_root else ', or was deleted'}; remedy: name a path in /run/gatepost as `listen` in [{section}] of {file}, and then: "
               "systemctl restart gatepostd (a changed `listen` needs a restart)",
               "; if gatepostd runs in a container, run gatepost doctor there, or mount the directory of the socket here, too")
    if section == "admin":
        done = installation.gatepost("status", config=file, wrapper=user)
        assert done.returncode == EX_UNAVAILABLE, done
        assert f"gatepostd is not running, or has a /tmp of its own, by PrivateTmp= of its unit: nobody listens at unix:{path}, " in done.stderr
        assert "if it runs:           name a path in /run/gatepost instead, and restart it" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("named", ['--config="$3"', '-c"$(basename "$3")"', '-c "$(dirname "$3")/.//$(basename "$3")"'], ids=["long", "relative", "slashes"])
def test_process_of_gatepostd_is_found_however_its_configuration_is_named(place, place_outside, installation, named):
    tmp = place / "tmp"
    tmp.mkdir()
    daemon = start_in_sandbox(installation, place_outside, f"mount -t tmpfs -o mode=1777 none {tmp}", own=("admin", tmp / "x.sock"), named=named)
    file = pathlib.Path(file_of(daemon))
    for path in (file, os.path.relpath(file, installation.directory), f"{file.parent}/./{file.name}"):
        expect(examine(installation, str(path), "--no-send"), EX_CONFIG, f"daemon unix:{tmp}/x.sock: nothing listens there: the socket of gatepostd is in ",
               "; remedy: name a path in /run/gatepost as `listen` in [admin] of ")


def test_socket_that_may_be_in_the_tmp_of_the_unit_without_a_look_at_its_process(place, place_outside, installation):
    """Root may not look at it, in some containers."""
    tmp = place / "tmp"
    tmp.mkdir()
    daemon = start_in_sandbox(installation, place_outside, f"mount -t tmpfs -o mode=1777 none {tmp}", own=("admin", tmp / "x.sock"))
    wrapper = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]
    checkup = examine(installation, file_of(daemon), "--no-send", wrapper=wrapper)
    expect(checkup, EX_UNAVAILABLE, "gatepostd runs, but not with this `listen`", ", or the socket is in a directory of gatepostd's own, ",
           f"remedy: name a path in /run/gatepost as `listen` in [admin] of {file_of(daemon)}, and then: systemctl restart gatepostd")
    assert "as root" not in checkup.cause


@pytest.mark.parametrize("is_replaced", [False, True], ids=["deleted", "replaced"])
def test_socket_that_was_deleted(installation, stopped, is_replaced):
    """Root sees that gatepostd has it nowhere else, so a restart helps."""
    config = stopped.config
    sockets = [config[section]["listen"].removeprefix("unix:") for section in ("receiver", "admin")]
    daemon = stopped.start().wait_until_ready()

    def lose(path):
        os.unlink(path)
        if is_replaced:
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(path)
        return examine(installation, file_of(daemon), "--no-send")
    event = "replaced" if is_replaced else "deleted"
    checkup = lose(sockets[0])
    expect(checkup, EX_UNAVAILABLE, f"listen unix:{sockets[0]}: nothing listens there: gatepostd runs, but its socket was {event}, ",
           "; remedy: systemctl restart gatepostd (it makes the socket anew; ")
    assert "own" not in checkup.cause.partition("nothing listens there")[2]
    checkup = lose(sockets[1])
    for line, section in zip(checkup.having("✗"), ("receiver", "admin"), strict=True):
        assert line.endswith(f": nothing listens there; gatepostd runs, but not with this `listen` of [{section}], which only a restart applies, or a "
                             f"socket unit has another address, or the socket was {event}"), line
    assert checkup.cause.endswith("; remedy: systemctl restart gatepostd")


@pytest.mark.parametrize("is_root", [True, False], ids=["root", "nobody"])
def test_router_with_an_admin_socket_in_the_tmp_of_the_unit(place, place_outside, installation, is_root):
    """Nothing but its process shows that it runs."""
    tmp = place / "tmp"
    tmp.mkdir()
    daemon = start_in_sandbox(installation, place_outside, f"mount -t tmpfs -o mode=1777 none {tmp}", own=("admin", tmp / "x.sock"), roles="router")
    user = [] if is_root else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    checkup = examine(installation, file_of(daemon), "--no-send", wrapper=user)
    step = f"daemon unix:{tmp}/x.sock: "
    own = "the socket is in a directory of gatepostd's own, by PrivateTmp= of its unit or in a container"
    move = f"name a path in /run/gatepost as `listen` in [admin] of {file_of(daemon)}, and then: systemctl restart gatepostd"
    if is_root:
        own = own.replace("is in", "of gatepostd is in")
        expect(checkup, EX_CONFIG, f"{step}nothing listens there: {own}, ", f"; remedy: {move}")
    else:
        expect(checkup, EX_UNAVAILABLE, step, "gatepostd does not run, ", f", or {own}, which gatepost doctor sees as root; remedy: start it: systemctl start ",
               f"; if it runs: {move}")
