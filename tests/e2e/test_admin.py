"""The admin endpoint: access and reports."""

import stat

import pytest

import http_client
import waiting
from stalling import stalled_thread

EX_CONFIG = 78


@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    shared.create_topics(config)
    return shared.start(config)


@pytest.mark.parametrize("listen", ["0.0.0.0:9464", "*:9464", "[::]:9464", "192.0.2.1:9464"])
def test_non_loopback_address_is_refused_with_line_and_remedy(offline, listen):
    config = offline.config()
    config["admin"]["listen"] = listen
    path = config.write()
    line = path.read_text().splitlines().index(f"listen = {listen}") + 1
    done = offline.gatepost("check", config=str(path))
    assert done.returncode == EX_CONFIG
    assert f"{path}:{line}: listen: {listen} can be reached from other machines" in done.stderr
    assert "remedy: listen = 127.0.0.1:9464, or allow_remote = on" in done.stderr
    daemon = offline.daemon(config).launch()
    assert daemon.take_exit_status() == EX_CONFIG and "allow_remote = on" in daemon.log


def test_non_loopback_address_is_accepted_with_allow_remote(offline):
    config = offline.config()
    config["admin"].update({"listen": "0.0.0.0:0", "allow_remote": "on"})
    daemon = offline.daemon(config).start()
    port = daemon._addresses("admin")[0].rpartition(":")[2]
    assert http_client.request(f"127.0.0.1:{port}", "GET", "/healthz").status == 200


def test_unix_socket_is_accessible_to_owner_and_group_only(daemon):
    path = daemon.config.directory / "admin.sock"
    assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o660


def test_healthy_daemon_reports_alive_and_ready(daemon):
    alive, ready = daemon.admin("/healthz"), daemon.admin("/readyz")
    assert (alive.status, alive.body) == (200, b"alive\n")
    assert (ready.status, ready.body) == (200, b"router: ready\nreceiver: ready\n")
    assert daemon.metric("gatepost_ready", role="router") == daemon.metric("gatepost_ready", role="receiver") == 1


@pytest.mark.slow
@pytest.mark.parametrize("thread, expected", [("receiver-1", b"receiver lane 1 is stuck\n"),
                                              ("router", b"the router is stuck\n")])
def test_stalled_thread_is_reported_until_it_resumes(daemon, thread, expected):
    with stalled_thread(daemon.process.pid, thread):
        waiting.until(lambda: daemon.admin("/healthz").status == 503, 60, "/healthz to report the stall")
        assert daemon.admin("/healthz").body == expected
        assert expected in daemon.admin("/readyz").body or thread == "router"
    waiting.until(lambda: daemon.admin("/healthz").status == 200, 60, "the thread to resume")
    daemon.wait_until_ready()


@pytest.mark.parametrize("roles", ["receiver", "router", "receiver, router"])
def test_readiness_gives_the_reason_for_each_role(offline, roles):
    config = offline.config(roles)
    daemon = offline.daemon(config).start()
    assert daemon.admin("/readyz").status == 503 and daemon.admin("/healthz").status == 200
    answer = waiting.until(lambda: b"is not reachable: " in (answer := daemon.admin("/readyz")).body and answer, 30, "the cause")
    for role in ("receiver", "router"):
        expected = f"{role}: Kafka is not reachable".encode()
        assert (expected in answer.body) == (role in roles)
        assert (b"gatepost_ready{role=\"%s\"} 0\n" % role.encode() in daemon.admin("/metrics").body) == (role in roles)


def asked_for(address, host):
    line = b"" if host is None else b"Host: " + host.encode() + b"\r\n"
    return http_client.raw(address, b"GET /metrics HTTP/1.%d\r\n%s\r\n" % (host is not None, line))


def test_host_name_that_could_be_rebound_is_refused(offline):
    """DNS rebinding: a page on the internet could read everything once its name resolves to 127.0.0.1."""
    daemon = offline.daemon().start()
    address = daemon._addresses("admin")[0]
    for host in ("rebound.example", "rebound.example:9464", "localhost.example", "notlocalhost", "127.0.0.1.example:80"):
        reply = asked_for(address, host)
        assert (reply.status, reply.reason, reply.code) == (421, "Misdirected Request", "MISDIRECTED_REQUEST"), host
        assert "allow_remote = on" in reply.json["error"]["message"]
    for host in ("127.0.0.1", address, "localhost", "LocalHost:9464", "gw1.localhost:80", "[::1]:9464", "192.0.2.1:80", None):
        assert asked_for(address, host).status == 200, host


def test_any_host_name_is_accepted_with_allow_remote_or_over_a_unix_socket(offline, daemon):
    assert asked_for(daemon._addresses("admin")[0], "gw1.example").status == 200
    config = offline.config()
    config["admin"]["allow_remote"] = "on"
    assert asked_for(offline.daemon(config).start()._addresses("admin")[0], "gw1.example").status == 200


@pytest.mark.parametrize("path", ["/", "/status", "/metrics", "/healthz", "/readyz", "/readyz/receiver"])
def test_responses_cannot_be_read_from_another_origin(daemon, path):
    headers = daemon.admin(path).headers
    assert headers["cross-origin-resource-policy"] == "same-origin" and headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers and headers["cache-control"] == "no-store"


def test_other_methods_and_paths_are_refused(daemon):
    address = daemon._addresses("admin")[0]
    answer = http_client.request(address, "POST", "/metrics")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    head = http_client.request(address, "HEAD", "/metrics")
    assert (head.status, head.body) == (200, b"")
    assert daemon.admin("/metrics/").status == 404
