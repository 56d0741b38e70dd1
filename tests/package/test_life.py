"""The package on a machine: installing, configuring, starting, upgrading, removing and purging it."""

import re
import stat
import subprocess
import threading

from http_client import Client
from signing import Delivery
from waiting import until

SOCKET_ADDRESS, ADMIN = "127.0.0.1:8080", "127.0.0.1:9464"
SECRET = "etc/gatepost/secrets/invoicing"
CONFIGURATION = "etc/gatepost/gatepost.conf"
SERVICE, SOCKET = "gatepostd.service", "gatepostd.socket"
INSTANCES = ["gatepost-receiver@edge.service", "gatepost-router@inner.service"]
GROUP_READS = {"etc/gatepost": 0o750, CONFIGURATION: 0o640, "etc/gatepost/secrets": 0o2750,
               "etc/gatepost/tls": 0o2750}
START_SECONDS = 60


def edit(machine):
    """Edit the configuration like an administrator, for a daemon that needs no Kafka."""
    path = machine.root / CONFIGURATION
    text = path.read_text().replace("localhost:9092", "embedded") + "# edited by the administrator\n"
    path.write_text(text)
    return text


def configured(machine, deb):
    machine.install(deb)
    machine.run("gatepost", "secret", "new", f"/{SECRET}")
    return edit(machine)


def deliver(machine):
    """Send a delivery over a new connection. Returns the status of the answer."""
    delivery = Delivery(secret=(machine.root / SECRET).read_bytes().removesuffix(b"\n"))
    client = Client(SOCKET_ADDRESS)
    try:
        return client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status
    finally:
        client.close()


def admin(path, address=ADMIN):
    client = Client(address)
    try:
        return client.request("GET", path).status
    except ConnectionError:
        return None
    finally:
        client.close()


def wait_ready(machine, address=ADMIN):
    until(lambda: admin("/readyz", address) == 200, START_SECONDS, lambda: machine.systemd.log.read_text())


def newer(deb, directory):
    """The package as a newer version with another sample configuration."""
    tree = directory / "newer"
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN" / "control"
    version = re.search(r"^Version: (.*)$", control.read_text(), re.MULTILINE)[1]
    control.write_text(control.read_text().replace(f"Version: {version}", f"Version: {version}+1"))
    with open(tree / CONFIGURATION, "a") as sample:
        sample.write("# new in this version\n")
    made = directory / f"newer_{deb.name}"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, made], check=True, stdout=subprocess.DEVNULL)
    return made


def configure_instances(machine, deb):
    """Configure the units of a separate receiver and router without Kafka: each has an embedded broker, and so both roles."""
    text = configured(machine, deb)
    for number, name in enumerate(("receiver-edge", "router-inner")):
        path = machine.root / f"etc/gatepost/{name}.conf"
        path.write_text(text.replace("\nlisten = 127.0.0.1:8080", f"\nlisten = 127.0.0.1:{8081 + number}")
                        .replace(";listen = 127.0.0.1:9464", f"listen = 127.0.0.1:{9465 + number}"))
        path.chmod(0o640)
        machine.run("chgrp", "gatepost", f"/etc/gatepost/{name}.conf")
    machine.run("systemctl", "enable", "--now", *INSTANCES)
    for number in range(len(INSTANCES)):  # so that they have read their files
        wait_ready(machine, f"127.0.0.1:{9465 + number}")


def owner_and_mode(machine, path):
    name = machine.run("stat", "-c", "%U:%G", f"/{path}").stdout.strip()
    return name, stat.S_IMODE((machine.root / path).stat().st_mode)


# Installation

def test_installation_starts_and_enables_nothing(machine, deb):
    output = machine.install(deb)
    assert "README.Debian" in output
    assert not machine.systemd.processes and not machine.systemd.sockets
    assert not machine.systemd.enabled(SERVICE) and not machine.systemd.enabled(SOCKET)


def test_configuration_is_readable_by_the_daemon_group_only(machine, deb):
    machine.install(deb)
    for path, mode in GROUP_READS.items():
        assert owner_and_mode(machine, path) == ("root:gatepost", mode), path
    assert re.search(r"uid=\d+\(gatepost\) gid=\d+\(gatepost\)", machine.run("id", "gatepost").stdout)


def test_installed_files_are_owned_and_writable_by_root_only(machine, deb):
    machine.install(deb)
    files = machine.run("dpkg", "-L", "gatepost").stdout.split()
    for path in (path.lstrip("/") for path in files):
        who, mode = owner_and_mode(machine, path)
        assert path in GROUP_READS or who == "root:root" and mode & 0o022 == 0, path
    for path in ("usr/share/doc/gatepost/examples/gatepost.conf", "usr/share/doc/gatepost/examples/kubernetes.yaml",
                 "usr/share/man/man8/gatepostd.8.gz", "usr/share/bash-completion/completions/gatepost", "usr/lib/sysusers.d/gatepost.conf"):
        assert f"/{path}" in files


def test_files_named_in_the_documentation_are_installed(machine, deb):
    machine.install(deb)
    for page, some in (("usr/share/doc/gatepost/README.Debian", "/usr/share/gatepost"),
                       ("usr/share/man/man8/gatepostd.8.gz", "/usr/share/gatepost/alerts.yml"),
                       ("usr/share/man/man7/gatepost-consumers.7.gz", "/usr/share/gatepost/schemas")):
        text = subprocess.run(["zcat", "-f", machine.root / page], stdout=subprocess.PIPE, text=True, check=True).stdout
        named = set(re.findall(r"/usr/[\w./-]*\w", text))
        assert some in named and not {path for path in named if not (machine.root / path[1:]).exists()}, named


def test_installed_units_pass_systemd_analyze_verify(machine, deb):
    machine.install(deb)
    units = [path for path in machine.run("dpkg", "-L", "gatepost").stdout.split() if "/systemd/system/" in path]
    assert {f"/lib/systemd/system/{unit}" for unit in (SERVICE, SOCKET, "gatepost-receiver@.service",
                                                       "gatepost-router@.service")} <= set(units)
    assert machine.run("systemd-analyze", "--man=no", "verify", *units).stdout == ""


def test_unconfigured_daemon_exits_and_is_not_restarted(machine, deb):
    machine.install(deb)
    machine.run("systemctl", "enable", "--now", "gatepostd")
    process = machine.systemd.processes[SERVICE]
    status = process.wait(START_SECONDS)
    assert str(status) in machine.systemd.settings(SERVICE)["RestartPreventExitStatus"][0].split()
    assert f"/{SECRET}" in machine.systemd.log.read_text()


def test_documented_first_steps_start_a_working_daemon(machine, deb):
    """All commands that need no Kafka."""
    machine.install(deb)
    text = (machine.root / "usr/share/doc/gatepost/README.Debian").read_text()
    steps = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    needs_kafka = {"gatepost topics create", "gatepost doctor"}
    assert len(steps) == 6 and needs_kafka < set(steps)
    for step in steps:
        if step.startswith("editor "):
            assert step == f"editor /{CONFIGURATION}"
            edit(machine)
        elif step not in needs_kafka:
            machine.run("sh", "-c", step)
    assert owner_and_mode(machine, SECRET) == ("root:gatepost", 0o640)
    wait_ready(machine)
    assert admin("/healthz") == 200
    sent = machine.run("gatepost", "send", "--kind", "invoice.accepted").stdout
    assert sent.startswith("200"), sent
    assert machine.systemd.enabled(SERVICE)


def test_doctor_tries_the_files_as_the_daemons_user(machine, deb):
    """gatepostd does not run, so something else fails later."""
    configured(machine, deb)
    for group, step in (("gatepost", "listen"), ("root", "configuration")):
        machine.run("chgrp", group, f"/{SECRET}")
        done = machine.run("gatepost", "doctor", "--no-send", check=False)
        assert "running as user gatepost" in done.stdout, done.stdout
        assert done.stdout.splitlines()[-1].startswith(f"cause: {step} "), done.stdout


# Upgrade

def test_upgrade_keeps_edited_configuration_and_secrets(machine, deb, tmp_path):
    edited = configured(machine, deb)
    (machine.root / CONFIGURATION).chmod(0o600)
    secret = (machine.root / SECRET).read_bytes()
    machine.install(newer(deb, tmp_path), "--force-confold")
    assert (machine.root / CONFIGURATION).read_text() == edited
    assert (machine.root / SECRET).read_bytes() == secret
    assert owner_and_mode(machine, CONFIGURATION) == ("root:gatepost", 0o600)


def test_upgrade_replaces_an_unedited_configuration(machine, deb, tmp_path):
    machine.install(deb)
    machine.install(newer(deb, tmp_path))
    assert "new in this version" in (machine.root / CONFIGURATION).read_text()
    assert owner_and_mode(machine, CONFIGURATION) == ("root:gatepost", 0o640)


def test_upgrade_does_not_start_inactive_units(machine, deb, tmp_path):
    configured(machine, deb)
    machine.install(newer(deb, tmp_path), "--force-confold")
    assert not machine.systemd.active(SERVICE) and not machine.systemd.active(SOCKET)


def test_upgrade_restarts_the_daemon_and_refuses_no_connection(machine, deb, tmp_path):
    """Deliveries are sent continuously, each over a new connection."""
    configured(machine, deb)
    machine.run("systemctl", "enable", "--now", SOCKET, SERVICE)
    wait_ready(machine)
    before, statuses, troubles, enough = machine.systemd.processes[SERVICE].pid, [], [], threading.Event()

    def send():
        while not enough.is_set():
            try:
                statuses.append(deliver(machine))
            except OSError as error:
                troubles.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        until(lambda: statuses, START_SECONDS, "an answer")
        calls = len(machine.systemd.calls)
        machine.install(newer(deb, tmp_path), "--force-confold")
        wait_ready(machine)
        answered = len(statuses)
        until(lambda: 200 in statuses[answered:], START_SECONDS, lambda: f"{statuses[answered:]}")
    finally:
        enough.set()
        sender.join()
    assert machine.systemd.processes[SERVICE].pid != before and machine.systemd.statuses[SERVICE] == 0
    assert not troubles and set(statuses) <= {200, 503}
    assert not [call for call in machine.systemd.calls[calls:] if SOCKET in call and re.search("stop|restart", call)]


def test_upgrade_does_not_wait_for_the_daemon_to_become_ready(machine, deb, tmp_path):
    """A daemon without Kafka becomes ready when Kafka is back, and systemctl would wait until then."""
    configured(machine, deb)
    machine.run("systemctl", "enable", "--now", SERVICE)
    calls = len(machine.systemd.calls)
    machine.install(newer(deb, tmp_path), "--force-confold")
    starting = [call for call in machine.systemd.calls[calls:] if re.search(r"\b(re)?start\b", call)]
    assert any(SERVICE in call for call in starting) and all("--no-block" in call for call in starting), starting


def test_upgrade_does_not_start_enabled_but_stopped_units(machine, deb, tmp_path):
    """The administrator has stopped it for a reason."""
    configured(machine, deb)
    machine.run("systemctl", "enable", SOCKET, SERVICE)
    machine.install(newer(deb, tmp_path), "--force-confold")
    assert not machine.systemd.active(SERVICE) and not machine.systemd.active(SOCKET)


def test_upgrade_restarts_separate_receivers_and_routers(machine, deb, tmp_path):
    configure_instances(machine, deb)
    before = [machine.systemd.processes[unit].pid for unit in INSTANCES]
    machine.install(newer(deb, tmp_path), "--force-confold")
    after = [machine.systemd.processes[unit].pid for unit in INSTANCES]
    assert all(machine.systemd.active(unit) for unit in INSTANCES) and not set(before) & set(after)


def test_upgrade_restarts_no_unit_whose_configuration_has_an_error(machine, deb, tmp_path):
    """The others are restarted. The previous version of the unit runs until the administrator restarts it."""
    configure_instances(machine, deb)
    broken, sound = INSTANCES
    before = {unit: machine.systemd.processes[unit].pid for unit in INSTANCES}
    file = "/etc/gatepost/receiver-edge.conf"
    with open(machine.root / file[1:], "a") as configuration:
        configuration.write("tolerence = 3s\n")
    output = machine.install(newer(deb, tmp_path), "--force-confold")
    assert machine.systemd.active(broken) and machine.systemd.processes[broken].pid == before[broken]
    assert machine.systemd.active(sound) and machine.systemd.processes[sound].pid != before[sound]
    said = [line for line in output.splitlines() if line.startswith("gatepost: ")]
    assert said[0] == f"gatepost: {broken} is not restarted and runs the previous version: {file} has an error:"
    assert said[1].startswith(f"gatepost:   {file}:") and "'tolerence'" in said[1]
    assert said[2:] == [f"gatepost: when it is corrected: systemctl restart {broken}"]


def test_upgrade_respects_policy_rc_d(machine, deb, tmp_path):
    configured(machine, deb)
    machine.run("systemctl", "enable", "--now", SERVICE)
    before = machine.systemd.processes[SERVICE].pid
    policy = machine.root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    machine.install(newer(deb, tmp_path), "--force-confold")
    assert machine.systemd.processes[SERVICE].pid == before


# Removal

def test_removal_stops_everything_and_keeps_the_configuration(machine, deb):
    edited = configured(machine, deb)
    machine.run("systemctl", "enable", "--now", SOCKET, SERVICE)
    wait_ready(machine)
    machine.run("dpkg", "--remove", "gatepost")
    assert machine.systemd.statuses == {SERVICE: 0} and not machine.systemd.active(SOCKET)
    assert (machine.root / CONFIGURATION).read_text() == edited and (machine.root / SECRET).exists()
    stops = [call for call in machine.systemd.calls if call.startswith("stop ")]
    assert len(stops) == 2 and SOCKET in stops[0] and SERVICE in stops[1], "the socket would start the daemon again"


def test_removal_stops_separate_receivers_and_routers(machine, deb):
    configure_instances(machine, deb)
    machine.run("dpkg", "--remove", "gatepost")
    assert machine.systemd.statuses == dict.fromkeys(INSTANCES, 0)


def test_purge_removes_enabled_units(machine, deb):
    configure_instances(machine, deb)
    machine.run("systemctl", "enable", SOCKET, SERVICE)
    machine.run("dpkg", "--purge", "gatepost")
    assert machine.left_behind() == set()


def test_purge_leaves_nothing(machine, deb, tmp_path):
    configured(machine, deb)
    machine.run("systemctl", "enable", "--now", SOCKET, SERVICE)
    wait_ready(machine)
    machine.install(newer(deb, tmp_path), "--force-confold")
    assert machine.left_behind()
    machine.run("dpkg", "--purge", "gatepost")
    assert machine.left_behind() == set() and not (machine.root / "run/gatepost").exists()
    assert machine.run("dpkg", "-s", "gatepost", check=False).returncode != 0


def test_purge_empties_a_mounted_directory(machine, deb):
    configured(machine, deb)
    state = machine.root / "var/lib/gatepost"
    state.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", state], check=True)
    (state / "table").write_text("")
    machine.run("systemctl", "enable", SOCKET)
    assert "is it mounted?" in machine.run("dpkg", "--purge", "gatepost").stdout
    assert list(state.iterdir()) == []
    assert not (machine.root / "etc/gatepost").exists()
    assert machine.run("dpkg", "-s", "gatepost", check=False).returncode != 0


def test_purge_keeps_file_systems_mounted_below_its_directories(machine, deb):
    configured(machine, deb)
    others = machine.root / "etc/gatepost/others"
    others.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", others], check=True)
    (others / "file").write_text("")
    assert "is it mounted?" in machine.run("dpkg", "--purge", "gatepost").stdout
    assert [each.name for each in others.iterdir()] == ["file"]
    assert [each.name for each in others.parent.iterdir()] == ["others"]
