"""gatepost doctor: whether gatepostd runs and is ready, and whether it is the one of this configuration."""

import contextlib
import pathlib
import shutil
import socket
import threading

import pytest

import waiting
from checkup import EX_CONFIG, EX_UNAVAILABLE, by_sockets, examine, expect, file_of, serve, status_of
from fake_service import FakeService, answers


def test_daemon_down(installation, stopped):
    expect(examine(installation, stopped.config), EX_UNAVAILABLE, "listen unix:", "systemctl start gatepostd")


def test_daemon_that_has_only_just_started(installation, stopped):
    """It is not in the group yet."""
    checkup = examine(installation, file_of(stopped.start()))
    assert checkup.status == 0, checkup.cause


def test_unit_is_the_one_that_has_the_file(installation, stopped):
    for name, unit in (("router-a-1.conf", "gatepost-router@a-1"), ("receiver-eu.conf", "gatepost-receiver@eu"), ("router-.conf", "gatepostd"),
                       ("router.conf", "gatepostd")):
        checkup = examine(installation, str(stopped.config.write(name)))
        expect(checkup, EX_UNAVAILABLE, f"start it: systemctl start {unit};", f"does not start: journalctl -u {unit}")
        done = installation.gatepost("status", config=str(stopped.config.write(name)))
        assert f"systemctl start {unit}\n" in done.stderr and f"systemctl status {unit}; journalctl -u {unit}\n" in done.stderr


def test_daemon_not_ready(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    installation.kafka.delete(installation.kafka.deliveries)
    daemon.wait_until_not_ready(60)
    daemon.config["topics"]["prefix"] = f"{installation.prefix}o"
    installation.create_topics(daemon.config)
    daemon.config.write(f"{daemon.name}.conf")
    checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_UNAVAILABLE, "daemon /readyz: not ready: ", "the topic of deliveries has been deleted")
    assert not any(line.startswith("✓ delivery") for line in checkup.lines)


def test_two_routers_with_the_same_instance(installation, service):
    """Each is ready at times, so the answers are kept."""
    installation.create_topics()
    first, second = (installation.daemon(by_sockets(installation, "router")) for _ in range(2))
    second.config["gatepost"]["instance"] = instance = first.config["gatepost"]["instance"]
    first.start().wait_until_ready()
    second.start()

    def is_fenced():
        answer = first.admin("/readyz")
        return answer.status == 503 and b"fenced" in answer.body and answer
    readyz, status = waiting.until(is_fenced, 60, "the router to be fenced"), status_of(first)
    second.stop()
    first.stop()
    service.faults = [answers(200, status), answers(200, body=b"ok"), answers(200, status), answers(503, body=readyz.body)]
    first.config["admin"]["listen"] = service.url.split("/")[2]
    expect(examine(installation, first.config), EX_CONFIG, f"daemon /readyz: not ready: another router has the same `instance`, {instance}",
           "give each router its own `instance`")


def test_state_that_cannot_be_written_is_a_warning(installation, plain_build):
    """Its directory is deleted while the daemon runs, which stays ready."""
    installation.create_topics()
    installation.build = plain_build  # it can be made to write after each delivery
    config = by_sockets(installation)
    state = config.directory / "state"
    config.sections["router"] = {"state": str(state)}
    daemon = installation.daemon(config)
    daemon.environment["GATEPOST_STATE_ENTRIES"] = "1"
    daemon.restart()
    assert any(line.startswith(f"✓ state {state}: ") for line in examine(installation, file_of(daemon)).lines)
    shutil.rmtree(state)
    for _ in range(2):
        daemon.accept()
        installation.kafka.wait_until_routed()
    waiting.until(lambda: daemon.metric("gatepost_state_errors_total") > 0, 60, lambda: daemon.log)
    (warning,) = [line for line in examine(installation, file_of(daemon)).having("!") if " state " in line]
    assert "dedup tables could not be written" in warning and "is the disk full?" in warning


def test_gatepostd_of_another_configuration_answers(installation):
    """Receiver and router have the same `listen` in [admin], and only the receiver runs."""
    installation.create_topics()
    receiver = by_sockets(installation, "receiver")
    router = installation.config("router", instance="router")
    router["admin"]["listen"] = receiver["admin"]["listen"]
    installation.start(receiver)
    checkup = examine(installation, router)
    expect(checkup, EX_UNAVAILABLE, "the gatepostd of another configuration", "its `roles` is not that of ", "give each its own `listen` in [admin]")


@pytest.mark.parametrize("sees, status", [("mount --bind {0} {1}", 0), ("cp -r {0}/. {1}", EX_UNAVAILABLE)], ids=["same-file", "copy"])
def test_container_has_another_name_of_the_host_and_path_of_the_file(installation, stopped, tmp_path_factory, sees, status):
    """The default of `instance` is the host's name. The file is the same if its inode and times are."""
    del stopped.config["gatepost"]["instance"]
    directory = tmp_path_factory.mktemp("elsewhere")
    daemon = stopped.start().wait_until_ready()
    sees = sees.format(daemon.config.directory, directory)
    elsewhere = ["unshare", "--mount", "--uts", "sh", "-ec", f'{sees}; hostname another-host; exec "$@"', "sh"]
    checkup = examine(installation, str(directory / f"{daemon.name}.conf"), wrapper=elsewhere)
    assert checkup.status == status, checkup.lines
    if status != 0:
        expect(checkup, status, f"the gatepostd of another configuration, {file_of(daemon)}, ",
               f"its `instance` ({socket.gethostname()} rather than another-host) is not that of {directory}", "set `instance` in its file")


def test_gatepostd_of_another_configuration_is_the_cause_of_a_silent_listener(installation):
    """Two have the same `listen` in [admin]: a restart of the one that answers would not help."""
    installation.create_topics()
    running = by_sockets(installation)
    daemon = installation.start(running)
    config = installation.config(instance="other")
    config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    config["admin"]["listen"] = running["admin"]["listen"]
    checkup = examine(installation, config)
    expect(checkup, EX_UNAVAILABLE, "listen 127.0.0.1:", f"the gatepostd of another configuration, {file_of(daemon)}, answers on unix:",
           "give each its own `listen` in [admin]")
    assert "restart" not in checkup.cause


def test_copy_of_the_configuration_for_another_installation(installation):
    """It has the same `listen` in [admin], `instance` and `prefix`, so that its gatepostd could not start."""
    installation.create_topics()
    daemon = installation.start(by_sockets(installation))
    copy = installation.directory / "staging.conf"
    listen = f"127.0.0.1:{installation.port()}"
    copy.write_text(pathlib.Path(file_of(daemon)).read_text().replace(daemon.config["receiver"]["listen"], listen))
    checkup = examine(installation, str(copy))
    expect(checkup, EX_UNAVAILABLE, f"listen {listen}: nothing listens there: the gatepostd of another configuration, {file_of(daemon)}, answers on "
           f"unix:", f"{copy} is another file, and its gatepostd does not run", "give each its own `listen` in [admin]", "an `instance` each")
    assert "restart" not in checkup.cause


def test_admin_endpoint_that_closes_the_connection_without_a_report(installation, stopped):
    """It may be gatepostd at a limit, so nothing says to stop it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" if b"/healthz" in request else b"")
        stopped.config["admin"]["listen"] = "%s:%d" % server.getsockname()
        stopped.config["gatepost"]["roles"] = "router"
        checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, "daemon /status: no answer as from gatepostd on 127.0.0.1:", "if it is gatepostd: journalctl")
    assert "another program" not in checkup.cause


@pytest.mark.parametrize("answer, step", [
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "/healthz"), (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "/status"),
    (b"", "/healthz")], ids=["refuses", "answers", "closes"])
def test_another_program_on_the_admin_socket(installation, stopped, answer, step):
    """ss -ltnp would not list it."""
    path = f"{stopped.config.directory}/other.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        serve(server, lambda request: answer)
        stopped.config["admin"]["listen"] = f"unix:{path}"
        stopped.config["gatepost"]["roles"] = "router"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, f"daemon {step}: ", f"unix:{path}", "ss -lxp")


def test_answer_without_a_report_is_shown(installation, stopped):
    """A listener of gatepostd itself may answer so, at a limit."""
    with FakeService() as service:
        service.faults = [answers(200, body=b"null"), answers(200, body=b"ok"), answers(503, body=b"busy")]
        stopped.config["admin"]["listen"] = service.url.split("/")[2]
        stopped.config["gatepost"]["roles"] = "router"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "daemon /status: ", "with status 503", "gatepostd before version 0.2.0")


def test_another_program_on_the_admin_port(installation, stopped):
    """It answers 200 on /healthz and /readyz, as many do, and nonsense on /status."""
    with FakeService() as service:
        service.faults = [answers(200, body=b"null")] * 5
        stopped.config["admin"]["listen"] = service.url.split("/")[2]
        stopped.config["gatepost"]["roles"] = "router"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "daemon /status: another program than gatepostd")


@pytest.mark.parametrize("says", [b"SSH-2.0-OpenSSH_9.2p1\r\n", b""], ids=["ssh", "closes"])
def test_another_protocol_on_the_admin_port(installation, stopped, says):
    def answer(server):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                connection.sendall(says)
                connection.recv(65536)
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        stopped.config["admin"]["listen"] = "%s:%d" % server.getsockname()
        stopped.config["gatepost"]["roles"] = "router"
        checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, "daemon /healthz: no answer as from gatepostd on 127.0.0.1:", "ss -ltnp", "`listen` in [admin]")
    assert "systemctl start" not in checkup.cause
