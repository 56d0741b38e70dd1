"""gatepost doctor --to: test deliveries to the URL that the service uses."""

import contextlib
import ctypes
import http.client
import http.server
import json
import pathlib
import re
import socket
import ssl
import threading

import pytest

from authority import Authority
from checkup import EX_CONFIG, EX_UNAVAILABLE, EX_USAGE, by_sockets, examine, expect, file_of, passed_on, serve
from fake_service import answers
from reloading import reload


@pytest.fixture
def receiver(installation):
    """A receiver whose topics are there, so that only the URL can be wrong."""
    installation.create_topics()
    config = by_sockets(installation, "receiver")
    config["receiver"]["listen"] = [config["receiver"]["listen"], "127.0.0.1:0"]
    return installation.start(config)


def to(service, user=""):
    return "--to", service.url.removesuffix("/v1").replace("//", f"//{user}")


def test_web_server_that_answers_200_to_anything(installation, receiver, service):
    service.faults = [answers(200, body=b"<html>It works!</html>")]
    expect(examine(installation, file_of(receiver), *to(service)), EX_CONFIG, "delivery ", "answered 200, but without the delivery-id that was sent")
    service.faults = [answers(200, {"ok": True, "deliveryId": "another"})]
    expect(examine(installation, file_of(receiver), *to(service)), EX_CONFIG, "answered 200, but without the delivery-id that was sent")


def test_password_or_token_in_a_url_is_not_shown(installation, receiver, service):
    receiver.config["service"].update(base_url=service.url, api_key_file=receiver.config.secret_file("key", b"the-api-key-of-the-tests"))
    service.add({"url": "https://me:hunter2@gateway.example/webhooks/invoicing?code=hunter2", "events": ["*"]})
    service.faults = [answers(503)]
    checkup = examine(installation, receiver.config, *to(service, "me:hunter2@"))
    assert "answered 503" in checkup.cause and "http://***@127.0.0.1:" in checkup.cause
    assert any("https://***@gateway.example/webhooks/invoicing?... has the events *" in line for line in checkup.lines)
    assert "hunter2" not in "\n".join(checkup.lines) + checkup.stderr
    checkup = examine(installation, receiver.config, "--to", "me:hunter2@127.0.0.1:9/elsewhere?code=hunter2")
    expect(checkup, EX_USAGE, "delivery http://***@127.0.0.1:9/elsewhere?...", "no source of ")
    assert "hunter2" not in "\n".join(checkup.lines) + checkup.stderr


@pytest.fixture
def two_sources(installation):
    config = by_sockets(installation)
    config["receiver"]["listen"] = ["127.0.0.1:0", config["receiver"]["listen"]]
    config.source("orders", b"the secret of the orders of the tests", kind="/meta/type", key="delivery-id")
    installation.create_topics(config)
    return installation.start(config)


def test_url_of_the_admin_endpoint(installation):
    config = by_sockets(installation)
    config["admin"]["listen"] = f"127.0.0.1:{installation.port()}"
    installation.create_topics(config)
    daemon = installation.start(config)
    expect(examine(installation, file_of(daemon), "--to", f"http://{config['admin']['listen']}"), EX_CONFIG, "answered 404 by the admin endpoint of gatepostd",
           "lead to the port of `listen` in [receiver]")
    hosts = config.directory / "hosts"  # a name that the endpoint does not take
    hosts.write_text("127.0.0.1 gateway.test\n")
    url = "http://gateway.test:" + config["admin"]["listen"].rpartition(":")[2]
    checkup = examine(installation, file_of(daemon), "--to", url, wrapper=["unshare", "--mount", "sh", "-ec", f'mount --bind {hosts} /etc/hosts; exec "$@"', "sh"])
    expect(checkup, EX_CONFIG, "answered 421 by the admin endpoint of gatepostd", "lead to the port of `listen` in [receiver]")


def deliveries_of(checkup):
    return [line.removeprefix("✓ delivery ").split(", secret")[0] for line in checkup.lines if line.startswith("✓ delivery ")]


def test_path_of_the_url_chooses_the_source(installation, two_sources):
    base = f"http://{two_sources.address}"
    for path, source in (("/webhooks/invoicing", "invoicing"), ("/webhooks/orders", "orders"), ("/webhooks/orders?from=here", "orders")):
        checkup = examine(installation, file_of(two_sources), "--to", base + path)
        assert checkup.status == 0 and deliveries_of(checkup) == [base + path.replace("from=here", "...")], checkup.lines
        assert f"[source {source}]" in "".join(line for line in checkup.lines if line.startswith("✓ delivery "))
    both = [f"{base}/webhooks/invoicing", f"{base}/webhooks/orders"]
    for url in (base, f"{base}/", two_sources.address):
        assert deliveries_of(examine(installation, file_of(two_sources), "--to", url)) == both
    checkup = examine(installation, file_of(two_sources), "--to", f"{base}?from=here")
    assert checkup.status == 0 and deliveries_of(checkup) == [f"{url}?..." for url in both]


def test_url_that_does_not_answer_is_waited_for_once(installation, two_sources):
    """As at an address whose packets a firewall drops; the connection of the first delivery is the only one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        checkup = examine(installation, file_of(two_sources), "--to", "http://%s:%d" % server.getsockname())
        server.setblocking(False)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()
    expect(checkup, EX_UNAVAILABLE, "delivery http://", "secret 1 of [source invoicing]: ")
    assert len([line for line in checkup.lines if line.startswith("✗ delivery ")]) == 1
    assert "- delivery: 1 other secret is not tried, as a delivery got no answer within 15 s" in checkup.lines, checkup.lines


def test_url_that_refuses_too_many_gets_no_more(installation, two_sources, service):
    service.faults = [answers(429)]
    checkup = examine(installation, file_of(two_sources), *to(service))
    expect(checkup, EX_UNAVAILABLE, "delivery http://", "secret 1 of [source invoicing]: answered 429")
    assert len([line for line in checkup.lines if line.startswith("✗ delivery ")]) == 1
    assert "- delivery: 1 other secret is not tried, as too many requests were refused" in checkup.lines, checkup.lines


@pytest.mark.parametrize("status, words", [(400, ": does it expect https?"), (401, ""), (403, ""), (404, ""), (502, ": it may not reach the receiver"),
                                           (503, ": it may not reach one of several receivers, or limit the rate")])
def test_answer_of_a_proxy_is_not_explained_as_the_receivers(installation, two_sources, service, status, words):
    """Else somebody changes the secret, although the proxy asks for a password."""
    service.faults = [answers(status, body=b"<html>It does not work!</html>")] * 2
    checkup = examine(installation, file_of(two_sources), *to(service))
    expect(checkup, EX_UNAVAILABLE, "delivery http://", f"answered {status} without a code that gatepostd has for it",
           f"see what answers at this URL, and why, by its configuration and log, and by the receiver's{words}")
    assert "secret_file" not in checkup.cause and "webhook_id" not in checkup.cause, checkup.cause


@pytest.mark.parametrize("status, code", [(401, "UNAUTHORIZED"), (503, "NO_HEALTHY_UPSTREAM"), (429, "rate_limit_exceeded"), (403, "NOT_FOUND")])
def test_code_of_a_gateway_is_not_explained_as_the_receivers(installation, two_sources, service, status, code):
    service.faults = [answers(status, {"error": {"code": code, "message": "as it says"}})] * 2
    checkup = examine(installation, file_of(two_sources), *to(service))
    expect(checkup, EX_UNAVAILABLE, "delivery http://", f"answered {status} without a code that gatepostd has for it", "see what answers at this URL")


def test_every_code_of_the_manual_is_the_receivers(installation, two_sources, service):
    manual = (pathlib.Path(__file__).parents[2] / "man" / "gatepostd.8").read_text()
    codes = set(re.findall(r"^\.It .* Ta (\d+) Ta ([A-Z_]+)$", manual, re.M))
    assert len(codes) > 12, codes
    for status, code in sorted(codes):
        service.faults = [answers(int(status), {"ok": False, "error": {"code": code, "message": "as it says"}})]
        checkup = examine(installation, file_of(two_sources), to(service)[0], f"{to(service)[1]}/webhooks/invoicing")
        assert f"answered {status} ({code})" in checkup.cause, checkup.cause


def test_refusals_that_do_not_end_are_those_of_others(installation, two_sources, service):
    """They share the address, as clients of a proxy that is no trusted_proxy."""
    service.faults = [answers(429, {"ok": False, "error": {"code": "TOO_MANY_REQUESTS", "message": "as it says"}})]
    expect(examine(installation, file_of(two_sources), *to(service)), EX_UNAVAILABLE, "answered 429 (TOO_MANY_REQUESTS)", "wait some seconds; if it stays, ",
           "set trusted_proxy in [receiver] to it", "raise max_refusals_per_address")


def through(daemon, change):
    """Run doctor by a proxy that changes requests: a URL that it answers at."""
    server = socket.create_server(("127.0.0.1", 0))
    serve(server, lambda request: passed_on(change(request), daemon))
    return server, "http://%s:%d/webhooks/invoicing" % server.getsockname()


def written_anew(request):
    """As by a gateway that reads the body, and writes it with blanks."""
    head, _, body = request.partition(b"\r\n\r\n")
    anew = json.dumps(json.loads(body)).encode()
    return re.sub(rb"(?i)(content-length: )\d+", rb"\g<1>%d" % len(anew), head) + b"\r\n\r\n" + anew


def test_proxy_that_changes_bodies_is_the_first_candidate_if_the_daemon_is_up_to_date(installation, two_sources):
    """The secrets of the daemon are those of the file, which a run without --to proves."""
    two_sources.config["source invoicing"]["webhook_id"] = "the-one"
    reload(two_sources)
    server, url = through(two_sources, written_anew)
    with server:
        checkup = examine(installation, file_of(two_sources), "--to", url)
        expect(checkup, EX_CONFIG, "answered 401 (INVALID_SIGNATURE)", "remedy: compare with a run without --to: ", "a proxy before it changes bodies; if not, ",
               "if it is [source invoicing]", "the same secret_file")
        two_sources.config["source invoicing"]["webhook_id"] = ["the-one", "another"]
        checkup = examine(installation, two_sources.config, "--to", url)
        expect(checkup, EX_CONFIG, "remedy: see which source gets it", "; or a proxy before the receiver changes bodies: compare with a run without --to on ")


def test_proxy_that_drops_headers_is_not_another_header_prefix(installation, two_sources):
    """The receiver names the header that it misses, which was sent."""
    server, url = through(two_sources, lambda request: re.sub(rb"(?i)x-invoicing-(timestamp|webhook-id): .*\r\n", b"", request))
    with server:
        checkup = examine(installation, file_of(two_sources), "--to", url)
    expect(checkup, EX_CONFIG, "answered 400 (VALIDATION_ERROR)", ", such as x-invoicing-", "let the proxy before the receiver pass on all headers")
    assert "same header_prefix" not in checkup.cause, checkup.cause
    server, url = through(two_sources, lambda request: request)
    two_sources.config["source invoicing"]["header_prefix"] = "x"  # x-invoicing-timestamp is none of its headers
    with server:
        checkup = examine(installation, two_sources.config, "--to", url)
    expect(checkup, EX_CONFIG, ", such as x-invoicing-", "do not have the same header_prefix: ", "; or a proxy before the receiver drops headers")


@pytest.mark.parametrize("status, mark, words", [(429, "✓", "; a proxy before the receiver does not take more at once"),
                                                (503, "!", "; then a proxy answered 503: it limits the rate, or does not reach one of several receivers")])
def test_proxy_that_takes_few_deliveries_at_once_is_no_failure(installation, two_sources, status, mark, words):
    """As nginx with limit_req."""
    taken = []

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if len(taken) > 1:
                self.send_error(status)
                return
            taken.append(self.path)
            onward = http.client.HTTPConnection(two_sources.address)
            onward.request("POST", self.path, body, dict(self.headers))
            answer = onward.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            checkup = examine(installation, file_of(two_sources), "--to", f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
    (line,) = [line for line in checkup.lines if line.startswith(f"{mark} delivery ")]
    assert checkup.status == 0 and line.endswith(words), checkup.lines
    (line,) = [line for line in checkup.lines if line.startswith("- delivery ")]
    assert line.endswith("secret 1 of [source orders]: a proxy before the receiver does not take more at once"), checkup.lines


def test_loopback_addresses_are_left_to_the_resolver(installation, two_sources):
    """The name of this machine may have two, as localhost has, and the receiver needs to listen on one of them only."""
    hosts = two_sources.config.directory / "hosts"
    hosts.write_text("127.0.0.1 gateway.test\n127.0.0.2 gateway.test\n")
    url = "http://gateway.test:" + two_sources.address.rpartition(":")[2]
    checkup = examine(installation, file_of(two_sources), "--to", url,
                      wrapper=["unshare", "--mount", "sh", "-ec", f'mount --bind {hosts} /etc/hosts; exec "$@"', "sh"])
    assert checkup.status == 0 and deliveries_of(checkup) == [f"{url}/webhooks/{name}" for name in ("invoicing", "orders")], checkup.lines


def forward(server, address):
    """Connect each client of a server to an address, until the server is closed."""
    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def run():
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                onward = socket.create_connection(address)
                for pair in ((client, onward), (onward, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()
    threading.Thread(target=run, daemon=True).start()


@pytest.fixture
def behind_a_proxy(installation):
    """A receiver that requires the PROXY protocol."""
    config = by_sockets(installation)
    config["receiver"].update({"trusted_proxy": "127.0.0.1", "proxy_protocol": "required", "listen": f"127.0.0.1:{installation.port()}"})
    installation.create_topics(config)
    return installation.start(config)


def test_url_of_the_receiver_that_requires_the_proxy_protocol(installation, behind_a_proxy):
    expect(examine(installation, file_of(behind_a_proxy), "--to", f"http://{behind_a_proxy.address}"), EX_UNAVAILABLE, "delivery http://",
           "remedy: give --to with the proxy's URL, not the receiver's")


def test_proxy_that_sends_no_header_of_the_proxy_protocol(installation, behind_a_proxy):
    """It is the proxy's URL, which another one would not mend."""
    host, port = behind_a_proxy.address.split(":")
    with socket.create_server(("127.0.0.1", 0)) as server:
        forward(server, (host, int(port)))
        checkup = examine(installation, file_of(behind_a_proxy), "--to", "http://%s:%d" % server.getsockname())
    expect(checkup, EX_UNAVAILABLE, "delivery http://", "see whether the proxy sends a header of the PROXY protocol, version 2",
           'gatepost_connections_closed_total, with reason="proxy_header" and "no_proxy"')
    assert "give --to" not in checkup.cause
    assert behind_a_proxy.metric("gatepost_connections_closed_total", reason="proxy_header") > 0


def test_certificate_of_a_proxy_with_the_proxy_protocol_is_not_trusted(installation, behind_a_proxy, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*Authority(tmp_path).issue("of-the-proxy"))

    def shake_hands(server):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with contextlib.suppress(OSError):
                    context.wrap_socket(connection, server_side=True)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=shake_hands, args=(server,), daemon=True).start()
        checkup = examine(installation, file_of(behind_a_proxy), "--to", "https://%s:%d" % server.getsockname())
    expect(checkup, EX_UNAVAILABLE, "delivery https://", *UNTRUSTED)


UNTRUSTED = ("have the server send the intermediate certificates, too", "/usr/local/share/ca-certificates and update-ca-certificates", "SSL_CERT_FILE=FILE")


def test_url_at_a_listener_with_tls(installation, tmp_path):
    """By http:// there is no answer. An authority of one's own can be named for this command."""
    authority = Authority(tmp_path)
    config = by_sockets(installation)
    config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    installation.create_topics(config)
    daemon = installation.start(config.tls(*authority.issue("own")))
    host = "localhost:" + daemon.address.split(":")[1]
    for command in (["doctor"], ["send", "--kind", "invoice.accepted"]):
        done = installation.gatepost(*command, "--to", f"http://{host}", config=file_of(daemon))
        assert done.returncode != 0 and "if this port has TLS, the URL must begin with https://" in done.stdout + done.stderr, done
        for environment in {}, {"SSL_CERT_FILE": ""}:
            done = installation.gatepost(*command, "--to", f"https://{host}", config=file_of(daemon), environment=environment)
            assert done.returncode != 0 and all(part in (done.stdout + done.stderr).replace("\n", " ") for part in UNTRUSTED), done
        done = installation.gatepost(*command, "--to", f"https://{host}", config=file_of(daemon),
                                     environment={"SSL_CERT_FILE": str(authority.certificate)})
        assert done.returncode == 0, done


def test_proxy_that_speaks_http_to_a_listener_with_tls(installation, service, tmp_path):
    config = by_sockets(installation).tls(*Authority(tmp_path).issue("behind"))
    installation.create_topics(config)
    service.faults = [answers(502, body=b"<html>Bad Gateway</html>")]
    expect(examine(installation, file_of(installation.start(config)), *to(service)), EX_UNAVAILABLE, "answered 502 without a code that gatepostd has",
           "it may not reach the receiver, or speak HTTP to it, which has TLS; then remove tls_certificate_file and tls_key_file")


def test_certificate_of_the_url_that_ends_soon(installation, tmp_path):
    """The service delivers no more when it has. It may be a proxy's, which no file of this machine has."""
    authority = Authority(tmp_path)
    config = by_sockets(installation)
    config["receiver"]["listen"] = [config["receiver"]["listen"], f"127.0.0.1:{installation.port()}"]
    installation.create_topics(config)
    daemon = installation.daemon(config)

    def served_with(days):
        config.tls(*authority.issue(f"for-{days}-days", days=days))
        daemon.start().wait_until_ready() if daemon.process is None else reload(daemon)
        trusted = f'mount --bind {authority.certificate} /etc/ssl/certs/ca-certificates.crt; exec "$@"'
        checkup = examine(installation, file_of(daemon), "--to", f"https://localhost:{config['receiver']['listen'][1].split(':')[1]}",
                          wrapper=["unshare", "--mount", "sh", "-ec", trusted, "sh"])
        assert checkup.status == 0, checkup.cause
        (delivery,) = [line for line in checkup.lines if line[2:].startswith("delivery ")]
        assert "answered 200 in " in delivery, delivery
        return delivery

    assert served_with(60).startswith("✓ ")
    warning = served_with(5)
    assert warning.startswith("! ") and "the certificate expires in " in warning, warning


def test_certificate_that_is_not_trusted_since_gatepostd_has_not_loaded_the_new_one(installation, tmp_path):
    authority = Authority(tmp_path)
    config = by_sockets(installation)
    config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    installation.create_topics(config)
    certificate, key = authority.issue("gateway")
    daemon = installation.start(config.tls(certificate, key))
    authority.issue("gateway")  # in the place of the first
    expect(examine(installation, file_of(daemon), "--to", f"https://localhost:{config['receiver']['listen'].split(':')[1]}"), EX_CONFIG,
           "delivery https://localhost:", f"gatepostd serves other certificates than {certificate} has: ", "remedy: systemctl reload gatepostd")
    with socket.create_server(("127.0.0.1", 0)) as server:
        forward(server, ("127.0.0.1", int(config["receiver"]["listen"].split(":")[1])))
        checkup = examine(installation, file_of(daemon), "--to", "https://%s:%d" % server.getsockname())
    expect(checkup, EX_UNAVAILABLE, "delivery https://", *UNTRUSTED)


# Several addresses

URL = "http://gateway.test:8080"
HERE, ALSO_HERE, DEAD, NOT_IN_REACH = "10.99.0.1:8080", "10.99.0.2:8080", "10.99.0.3:8080", "192.0.2.1:8080"
NETWORK = """ip link set lo up
ip address add 10.99.0.1/32 dev lo
ip address add 10.99.0.2/32 dev lo
ip route change local 10.99.0.2 dev lo table local src 10.99.0.1
ip route add unreachable 10.99.0.3/32
mount --bind "$0" /etc/hosts
exec "$@"
"""


@pytest.fixture
def networked(installation):
    """A daemon in a network of its own, which is not started yet, and a function that examines it: the name has these addresses."""
    config = by_sockets(installation)
    config["kafka"]["bootstrap.servers"] = "embedded"
    config["receiver"]["listen"] = [config["receiver"]["listen"], HERE]
    config.source("orders", b"the secret of the orders of the tests", kind="/meta/type", key="delivery-id")
    hosts = config.directory / "hosts"
    hosts.touch()
    daemon = installation.daemon(config)
    daemon.wrapper = ["unshare", "--net", "--mount", "sh", "-ec", NETWORK, hosts]

    def run(*addresses, file=None, url=URL):
        hosts.write_text("".join(f"{address.rpartition(':')[0]} gateway.test\n" for address in addresses))
        return examine(installation, file or file_of(daemon), "--to", url, wrapper=["nsenter", f"--target={daemon.process.pid}", "--net", "--mount"])
    return daemon, run


def unreached(checkup):
    """The addresses that cannot be connected to."""
    return {line.removeprefix(f"✗ delivery {URL} at ").partition(": ")[0] for line in checkup.lines if line.startswith("✗ delivery ")}


def test_each_address_of_the_url_gets_the_deliveries(networked):
    """The service may choose any of them, and one is that of a machine that does not exist any more, say."""
    daemon, run = networked
    daemon.start().wait_until_ready()
    checkup = run(ALSO_HERE, DEAD, HERE, NOT_IN_REACH)
    expect(checkup, EX_UNAVAILABLE, f"delivery {URL} at ", "remove it from the name in DNS")
    assert unreached(checkup) == {ALSO_HERE, DEAD}, checkup.lines
    assert deliveries_of(checkup) == [f"{URL}/webhooks/{name} at {HERE}" for name in ("invoicing", "orders")]
    (skipped,) = [line for line in checkup.having("-") if line.startswith("- delivery ")]
    assert f" at {NOT_IN_REACH}, " in skipped and skipped.endswith(": this machine has no way to this address of several")
    assert run(HERE, NOT_IN_REACH).status == 0
    checkup = run(HERE)
    assert checkup.status == 0 and deliveries_of(checkup) == [f"{URL}/webhooks/{name}" for name in ("invoicing", "orders")]


def test_addresses_of_which_none_answers_stay_in_dns(networked):
    daemon, run = networked
    daemon.start().wait_until_ready()
    checkup = run(ALSO_HERE, DEAD)
    expect(checkup, EX_UNAVAILABLE, f"delivery {URL} at ", "see whether the proxy or gatepostd runs there")
    assert unreached(checkup) == {ALSO_HERE, DEAD} and "remove it" not in checkup.cause
    checkup = run(NOT_IN_REACH, "192.0.2.2:8080")
    expect(checkup, EX_UNAVAILABLE, f"delivery {URL}: this machine has no way to any address of this host; remedy: ", "ip route")


def test_address_of_several_without_tls_stays_in_dns(networked):
    """It can be connected to, so what is wrong is not the address."""
    daemon, run = networked
    daemon.start().wait_until_ready()
    url = URL.replace("http:", "https:")
    checkup = run(HERE, ALSO_HERE, url=url)
    expect(checkup, EX_UNAVAILABLE, f"delivery {url}/webhooks/invoicing at {HERE}, secret 1 of [source invoicing]: ", "see whether the URL, its certificate")
    assert any(line.startswith(f"✗ delivery {url} at {ALSO_HERE}: ") for line in checkup.lines), checkup.lines


def test_refusals_of_several_addresses_are_a_second_apart(networked):
    """They may lead to one receiver, which counts the refusals of this machine."""
    daemon, run = networked
    daemon.config["receiver"].update(max_refusals_per_address=1)
    daemon.config["receiver"]["listen"] = [daemon.config["receiver"]["listen"][0], "0.0.0.0:8080"]
    daemon.start().wait_until_ready()
    for name in ("invoicing", "orders"):
        daemon.config[f"source {name}"]["secret_file"] = daemon.config.secret_file(f"other-{name}", b"another secret, of the tests of doctor")
    checkup = run(HERE, ALSO_HERE, file=str(daemon.config.write("other.conf")))
    expect(checkup, EX_CONFIG, "answered 401 (INVALID_SIGNATURE)", "secret_file")
    assert [line.partition("answered ")[2][:3] for line in checkup.lines if line.startswith("✗ delivery ")] == ["401"] * 4, checkup.lines
    assert daemon.metric("gatepost_requests_total", outcome="throttled") == 0


def listening_inside(pid, address):
    """A socket that listens in the network of a process. A thread enters that, and ends."""
    servers = []

    def listen():
        with open(f"/proc/{pid}/ns/net") as network:
            if ctypes.CDLL(None).setns(network.fileno(), 0) == 0:
                servers.append(socket.create_server(address))
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    return servers[0]


def test_delivery_that_is_not_found_names_its_address(installation, receiver, networked):
    """One of several receivers writes to other topics."""
    daemon, run = networked
    daemon.config["receiver"]["listen"].pop()
    daemon.start()
    receiver.config["topics"]["prefix"] = f"{installation.prefix}o"
    receiver.config.roles("receiver, router")
    installation.create_topics(receiver.config)
    receiver.config["admin"]["listen"] = "off"
    kafka = installation.bootstrap.split(":")[0], int(installation.bootstrap.split(":")[1])
    with listening_inside(daemon.process.pid, kafka) as brokers, listening_inside(daemon.process.pid, ("10.99.0.1", 8080)) as receivers:
        forward(brokers, kafka)
        forward(receivers, ("127.0.0.1", int(receiver.addresses[1].rpartition(":")[2])))
        checkup = run(HERE, NOT_IN_REACH, file=str(receiver.config.write("other.conf")))
    expect(checkup, EX_CONFIG, "router ", f"the test delivery to {HERE} was accepted, but not found: it is not in {installation.prefix}o.deliveries")


def test_path_of_the_url_that_no_source_has_is_refused(installation, two_sources):
    for path, query in (("/elsewhere", ""), ("/webhooks/invoicing/", ""), ("/elsewhere", "?/webhooks/orders")):
        url = f"http://{two_sources.address}{path}"
        expect(examine(installation, file_of(two_sources), "--to", url + query), EX_USAGE, f"delivery {url}{query and '?...'}: ", "no source of ", "leave the path out")
    assert two_sources.metric("gatepost_requests_total", outcome="not_found") == 0


def test_proxy_that_keeps_its_prefix_is_a_candidate(installation, two_sources):
    """The file and the receiver have the same path: to change it would not help."""
    url = f"http://{two_sources.address}/proxied/webhooks/orders"
    checkup = examine(installation, file_of(two_sources), "--to", url)
    expect(checkup, EX_CONFIG, f"delivery {url}", "answered 404 (NOT_FOUND)", "by its log",
           "a proxy that must remove what is before /webhooks/orders")


def without_first_segment(request):
    """As by a proxy that removes the first segment of the path."""
    return request.replace(b"/proxied", b"", 1)


def test_proxy_that_leads_to_another_source_is_a_candidate(installation, two_sources):
    """The URL ends with the paths of two sources: which one it leads to is known to the proxy only."""
    config = two_sources.config
    config.source("proxied", b"the secret of the third source of the tests", path="/proxied/webhooks/orders", key="delivery-id",
                  header_prefix="x-orders")
    reload(two_sources)
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: passed_on(without_first_segment(request), two_sources))
        url = "http://%s:%d/proxied/webhooks/orders" % server.getsockname()
        checkup = examine(installation, file_of(two_sources), "--to", url)
    expect(checkup, EX_CONFIG, f"delivery {url}, secret 1 of [source proxied]", "answered 401 (INVALID_SIGNATURE)",
           "which source gets it", "the receiver's log", "if it is [source proxied]")


def test_url_from_a_machine_without_gatepostd(installation, two_sources):
    """The remedy does not start a second router; followed, it tries the URL."""
    copy = installation.config()
    copy.sections = {name: dict(options) for name, options in two_sources.config.sections.items()}
    copy["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    copy["admin"]["listen"] = f"127.0.0.1:{installation.port()}"
    expect(examine(installation, copy, "--to", f"http://{two_sources.address}"), EX_UNAVAILABLE, "nothing listens there", "remedy: if gatepostd is not to run on this machine",
           "use a copy of the file with roles = router, and listen = off in [admin]")
    copy["gatepost"]["roles"] = "receiver"
    checkup = examine(installation, copy, "--to", f"http://{two_sources.address}")
    expect(checkup, EX_UNAVAILABLE, "remedy: if gatepostd is not to run on this machine", "use a copy of a router's file with listen = off in [admin]; else: start it: ")
    copy["gatepost"]["roles"] = "router"
    copy["admin"]["listen"] = "off"
    del copy.sections["receiver"]
    checkup = examine(installation, copy, "--to", f"http://{two_sources.address}")
    assert checkup.status == 0 and any(line.startswith("✓ router") for line in checkup.lines), checkup.lines
