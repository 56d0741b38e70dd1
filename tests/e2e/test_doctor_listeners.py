"""gatepost doctor: the listener of the receiver, with the PROXY protocol and TLS."""

import concurrent.futures
import contextlib
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest
from cluster import Cluster

import waiting
from authority import Authority
from checkup import EX_CONFIG, EX_OSERR, EX_TEMPFAIL, EX_UNAVAILABLE, by_sockets, examine, expect, file_of, serve, status_of
from fake_service import FakeService, answers
from installation import Installation
from manager import address_of, listening, pass_on
from proxy import Proxies
from reloading import reload
from signing import Delivery


def test_socket_unit_that_listens_on_another_address(installation, stopped):
    """Sockets of systemd replace `listen`, which the command line looks at."""
    passed = listening()
    listen = stopped.config["receiver"]["listen"]
    daemon = pass_on(stopped, [passed], "receiver").start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_CONFIG, f"listen {listen}: nothing listens there: the gatepostd of {file_of(daemon)} listens on {address_of(passed)}, "
           f"opened by systemd for a socket unit, and `listen` is {listen}", "ListenStream")
    passed.close()


def test_changed_listen_needs_a_restart(installation, stopped):
    daemon = stopped.start().wait_until_ready()
    daemon.config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    shutil.copyfile(daemon.config.write(), file_of(daemon))
    expect(examine(installation, file_of(daemon)), EX_CONFIG, f"listens on {daemon.addresses[0]}, and `listen` is 127.0.0.1:",
           "systemctl restart gatepostd")


@pytest.mark.parametrize("is_socket", [True, False], ids=["socket", "port"])
def test_receiver_that_is_stopping(tmp_path, is_socket):
    """Nothing has hidden or deleted its socket, and no restart is needed. Doctor itself reaches Kafka."""
    with Cluster(proxied=True) as cluster, Proxies(cluster) as proxies:
        installation = Installation(tmp_path, cluster.bootstrap)
        installation.create_topics()
        config = by_sockets(installation)
        if not is_socket:
            config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
        config["kafka"]["bootstrap.servers"] = cluster.proxied_bootstrap
        config["receiver"]["ack_timeout"] = "60s"
        daemon = installation.start(config)
        direct = config.directory / "direct.conf"
        direct.write_text(pathlib.Path(file_of(daemon)).read_text().replace(cluster.proxied_bootstrap, cluster.bootstrap))
        held = proxies.hold_request("Produce", connection="keep", times=None)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            answer = threads.submit(daemon.post, Delivery())
            waiting.until(lambda: daemon.metric("gatepost_in_flight_bytes") > 0, 30, "a delivery to be appended")
            daemon.process.terminate()
            waiting.until(lambda: status_of(daemon)["roles"]["receiver"] == "stopping", 30, lambda: daemon.log)
            checkup = examine(installation, str(direct), "--no-send")
            held.release()
            assert answer.result().status == 200
        expect(checkup, EX_UNAVAILABLE, f"listen {config['receiver']['listen']}: nothing listens there: gatepostd is stopping, ",
               "; remedy: when it has stopped")
        assert "restart" not in checkup.cause
        proxies.clear()
        installation.clean_up()


# The PROXY protocol

def test_listener_that_requires_the_proxy_protocol(installation):
    installation.create_topics()
    config = installation.config()
    config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required",
                               "listen": f"127.0.0.1:{installation.port()}"})
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any("gatepostd answers" in line for line in checkup.lines), checkup.lines
    sent = installation.gatepost("send", "--kind", "invoice.accepted", config=config)
    assert sent.returncode == EX_TEMPFAIL and "give --to with the URL of the proxy" in sent.stderr, sent.stderr
    daemon.stop()
    sent = installation.gatepost("send", "--kind", "invoice.accepted", config=config)
    assert sent.returncode == EX_TEMPFAIL and "PROXY" not in sent.stderr, sent.stderr


@pytest.mark.parametrize("has_tls", [False, True])
def test_machine_that_is_no_trusted_proxy(installation, authority, has_tls):
    installation.create_topics()
    config = installation.config()
    config["receiver"].update({"trusted_proxy": "192.0.2.1", "proxy_protocol": "required", "listen": f"127.0.0.1:{installation.port()}"})
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    if has_tls:
        config.tls(*authority.issue("behind-proxy"))
    daemon = installation.start(config)
    checkup = examine(installation, file_of(daemon))
    skipped = [line for line in checkup.having("-") if "a trusted_proxy" in line and "which this machine is not" in line]
    assert checkup.status == 0 and len(skipped) == 2 and skipped[1].startswith("- delivery: "), checkup.lines
    url = f"http{'s' * has_tls}://{config['receiver']['listen']}"
    expect(examine(installation, file_of(daemon), "--to", url), EX_UNAVAILABLE, f"delivery {url}", "give --to with the proxy's URL")


REQUIRED = {"trusted_proxy": "127.0.0.1", "proxy_protocol": "required"}


@pytest.mark.parametrize("has_tls", [False, True])
@pytest.mark.parametrize("loaded", [{}, REQUIRED], ids=["not-loaded", "loaded"])
def test_proxy_protocol_in_the_file_or_the_daemon_only(installation, authority, loaded, has_tls):
    """Without it, gatepostd takes the header for a request; with it, it closes a connection without one."""
    installation.create_topics()
    config = installation.config()
    config["receiver"].update(loaded, listen=f"127.0.0.1:{installation.port()}")
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    if has_tls:
        config.tls(*authority.issue("proxied"))
    daemon = installation.start(config)
    if loaded:
        del config["receiver"]["trusted_proxy"], config["receiver"]["proxy_protocol"]
        words = ("gatepostd answers only with a header of the PROXY protocol, but ", "does not have proxy_protocol = required")
    else:
        config["receiver"].update(REQUIRED)
        words = ("gatepostd answers without a header of the PROXY protocol, but ", "has proxy_protocol = required")
    step = "tls 127.0.0.1:" if has_tls else "listen 127.0.0.1:"
    expect(examine(installation, config), EX_CONFIG, step, *words, f"remedy: gatepostd has loaded {file_of(daemon)}, not ",
           f": examine that one, gatepost -c {file_of(daemon)} doctor, or: restart gatepostd with this one, or correct ")
    shutil.copyfile(config.write(), file_of(daemon))
    checkup = examine(installation, file_of(daemon))
    expect(checkup, EX_CONFIG, step, *words, "systemctl reload gatepostd, or correct ")
    assert not any("gatepostd answers" in line for line in checkup.having("✓"))
    reload(daemon)
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and any("gatepostd answers" in line for line in checkup.having("✓")), checkup.lines


def test_proxy_protocol_of_the_daemon_from_another_machine_only(installation):
    """Nothing distinguishes it from a program that closes connections: the candidates are named."""
    installation.create_topics()
    config = installation.config()
    config["receiver"].update(REQUIRED, trusted_proxy="192.0.2.1", listen=f"127.0.0.1:{installation.port()}")
    installation.start(config)
    del config["receiver"]["trusted_proxy"], config["receiver"]["proxy_protocol"]
    expect(examine(installation, config), EX_UNAVAILABLE, "listen 127.0.0.1:", "no answer to HTTP: ", "closes", "trusted_proxy",
           "ss -ltnp", "journalctl -u gatepostd")


# Another program

@pytest.fixture
def beside(installation):
    """A function that writes the file of a receiver of its own, with `listen` of the daemon of both roles, which runs."""
    installation.create_topics()
    config = by_sockets(installation)
    config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    daemon = installation.start(config)

    def write(admin):
        receiver = installation.config("receiver")
        receiver["receiver"]["listen"] = config["receiver"]["listen"]
        receiver["admin"]["listen"] = admin or config["admin"]["listen"]
        file = receiver.directory / "receiver-gw1.conf"
        file.write_text(pathlib.Path(receiver.write()).read_text())
        return receiver, str(file)
    write.daemon = daemon
    return write


def test_address_that_the_gatepostd_of_another_file_has(installation, beside):
    """A restart would not help: it fails for the address."""
    receiver, file = beside(f"127.0.0.1:{installation.port()}")
    listen = receiver["receiver"]["listen"]
    expect(examine(installation, file), EX_CONFIG,
           f"listen {listen}: the gatepostd of {file_of(beside.daemon)} has this address, so that the one of {file}, which does not run, cannot start",
           "change `listen` in [receiver] of one of them; or, if the other one is not to run, systemctl disable --now gatepostd gatepostd.socket; "
           "and then: systemctl start gatepost-receiver@gw1")
    daemon = installation.daemon(receiver).launch()
    daemon.wait_for_exit(EX_OSERR)
    assert f"[receiver] listen = {listen}: cannot bind: Address already in use; ss -ltnp, as root, shows which program has it" in daemon.log, daemon.log


def test_both_addresses_that_the_gatepostd_of_another_file_has(installation, beside):
    _, file = beside(None)
    expect(examine(installation, file), EX_UNAVAILABLE, f"the gatepostd of another configuration, {file_of(beside.daemon)}, answers on ",
           "give each its own `listen` in [admin], and in [receiver], and start the one that does not run")


def test_another_program_on_the_socket_of_the_receiver(installation, stopped):
    path = f"{stopped.config.directory}/other.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        serve(server, lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        stopped.config["receiver"]["listen"] = f"unix:{path}"
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, f"listen unix:{path}: another program", "ss -lxp")


def test_another_program_on_the_port(installation, stopped):
    with FakeService() as service:
        stopped.config["receiver"]["listen"] = service.url.split("/")[2]
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "listen 127.0.0.1:", "another program than gatepostd",
               "BaseHTTP", "ss -ltnp")
        service.faults = [answers(200, headers=[("x-request-id", "r-1")], body=b"{}")]
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "listen 127.0.0.1:", "another program than gatepostd", "200")


def test_listener_that_accepts_no_connection_is_not_to_be_started(installation, stopped):
    """Its backlog is full, as that of a daemon that hangs."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as waiting_ones:
        for _ in range(4):
            each = waiting_ones.enter_context(socket.socket())
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        checkup = examine(installation, stopped.config)
    expect(checkup, EX_UNAVAILABLE, "listen 127.0.0.1:", "see what listens there: ss -ltnp", "hangs", "journalctl -u gatepostd")
    assert "systemctl start" not in checkup.cause


def test_silent_program_on_the_port_is_not_waited_for(installation, stopped):
    with socket.create_server(("127.0.0.1", 0)) as server:
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "no answer to HTTP: no answer within")


def test_slow_program_on_the_port_is_not_waited_for(installation, stopped):
    """One byte after the other, each in time."""
    def answer(server):
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            while True:
                connection.sendall(b"H")
                time.sleep(0.5)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        begun = time.monotonic()
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "another program than gatepostd answers")
        assert time.monotonic() - begun < 40


# TLS

def test_tls_of_the_listener(installation, stopped, authority):
    certificate, key = authority.issue("gateway", names="DNS:gateway.example")
    stopped.config.tls(certificate, key)
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    (warning,) = [line for line in checkup.having("!") if line.startswith("! tls ")]
    assert "for gateway.example" in warning and "unable to get local issuer certificate" in warning and checkup.status == 0
    assert warning.endswith(": the service will refuse it, unless it trusts the issuer; add missing intermediate certificates to the file")
    checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(authority.certificate)})
    assert any(line.startswith("✓ tls ") and "gateway.example" in line for line in checkup.lines), checkup.lines
    daemon.config.tls(*authority.issue("renewed", names="DNS:gateway.example"))
    checkup = examine(installation, daemon.config)
    expect(checkup, EX_CONFIG, "delivery ", "gatepostd serves other certificates than ", "systemctl reload gatepostd")
    assert any(line.startswith("! tls ") and "serves another certificate" in line for line in checkup.lines)


def test_certificate_that_has_expired_since_it_was_loaded(installation, stopped, authority):
    """No intermediate certificate is missing."""
    begin, end = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + after_s)) for after_s in (-3600, 8))
    stopped.config.tls(*authority.issue("short", begin=begin, end=end))
    daemon = stopped.start()
    waiting.until(lambda: time.strftime("%Y%m%d%H%M%SZ", time.gmtime()) > end, 30, "the certificate to expire")
    checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(authority.certificate)})
    expect(checkup, EX_CONFIG, "certificate ", " expired at ", "replace the files")
    (warning,) = [line for line in checkup.having("!") if line.startswith("! tls ")]
    assert warning.endswith("do not confirm it (certificate has expired): the service will refuse it"), warning


def test_intermediate_certificate_that_is_not_sent(installation, stopped, authority, tmp_path):
    """This machine has it, and the service may not."""
    directory = tmp_path / "intermediate"
    directory.mkdir()
    intermediate = Authority(directory)
    subprocess.run(["openssl", "req", "-x509", "-key", directory / "ca.key", "-days", "2", "-subj", "/CN=intermediate of the tests",
                    "-CA", authority.certificate, "-CAkey", authority.directory / "ca.key", "-out", intermediate.certificate],
                   check=True, capture_output=True)
    certificate, key = intermediate.issue("leaf", names="DNS:gateway.example")
    store = tmp_path / "store.pem"
    store.write_text(authority.certificate.read_text() + intermediate.certificate.read_text())
    stopped.config.tls(certificate, key)
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(store)})
    (warning,) = [line for line in checkup.having("!") if line.startswith("! tls ")]
    assert "does not send the intermediate certificate /CN=intermediate of the tests, " in warning and f"add it to {certificate}" in warning
    certificate.write_text(certificate.read_text() + intermediate.certificate.read_text())
    for trusted in (store, authority.certificate):
        checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(trusted)})
        (warning,) = [line for line in checkup.having("!") if line.startswith("! tls ")]
        assert warning.endswith(f"gatepostd serves another certificate chain than {certificate} has: systemctl reload gatepostd"), warning
    reload(daemon)
    for trusted in (store, authority.certificate):
        checkup = examine(installation, file_of(daemon), environment={"SSL_CERT_FILE": str(trusted)})
        assert any(line.startswith("✓ tls ") and "trusted by" in line for line in checkup.lines), checkup.lines


def test_listener_with_tls_in_the_file_only(installation, stopped, authority):
    daemon = stopped.start().wait_until_ready()
    daemon.config.tls(*authority.issue("late"))
    expect(examine(installation, daemon.config), EX_CONFIG, "tls unix:", "no TLS", "restart gatepostd")


def test_certificate_of_clients_is_required(installation, stopped, authority):
    stopped.config.tls(*authority.issue("strict"))
    stopped.config["receiver"]["tls_client_ca_file"] = authority.certificate
    daemon = stopped.start().wait_until_ready()
    checkup = examine(installation, file_of(daemon))
    assert checkup.status == 0 and len([line for line in checkup.having("-") if "certificate of the client" in line]) == 2, checkup.lines


def test_certificates_of_clients_in_the_daemon_or_the_file_only(installation, stopped, authority):
    """In the one case a GET fails with a broken pipe, in the other it is answered."""
    stopped.config.tls(*authority.issue("half"))
    stopped.config["receiver"]["tls_client_ca_file"] = authority.certificate
    daemon = stopped.start().wait_until_ready()
    del daemon.config["receiver"]["tls_client_ca_file"]
    words = ("listen unix:", "it requires a certificate of the client, but ", "has no tls_client_ca_file")
    expect(examine(installation, daemon.config), EX_CONFIG, *words, f"remedy: gatepostd has loaded {file_of(daemon)}, not ")
    shutil.copyfile(daemon.config.write(), file_of(daemon))
    expect(examine(installation, file_of(daemon)), EX_CONFIG, *words, "remedy: systemctl reload gatepostd, or set ")
    reload(daemon)
    assert examine(installation, file_of(daemon)).status == 0
    daemon.config["receiver"]["tls_client_ca_file"] = authority.certificate
    checkup = examine(installation, daemon.config)
    assert checkup.status == 0 and any(line.startswith("! listen ") and "without a certificate of the client" in line
                                       for line in checkup.lines), checkup.lines


def test_only_the_missing_certificate_of_the_client_is_a_skip(installation, stopped, authority):
    """Another server accepts the handshake, and closes the connection."""
    certificate, key = authority.issue("other-server")
    stopped.config.tls(certificate, key)
    stopped.config["receiver"]["tls_client_ca_file"] = authority.certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def answer(server):
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        stopped.config["receiver"]["listen"] = "%s:%d" % server.getsockname()
        expect(examine(installation, stopped.config), EX_UNAVAILABLE, "no answer to HTTP: ")
