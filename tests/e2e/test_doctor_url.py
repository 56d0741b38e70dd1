"""gatepost doctor --to: test deliveries to the URL that the service uses."""

import errno
import socket

import pytest

from fake_service import FakeService, answers
from reloading import reload
from test_doctor import EX_CONFIG, EX_UNAVAILABLE, EX_USAGE, by_sockets, examine, expect, file_of, serve


@pytest.fixture
def service():
    with FakeService() as service:
        yield service


@pytest.fixture
def receiver(installation):
    """A receiver whose topics are there, so that only the URL can be wrong."""
    installation.create_topics()
    return installation.start(by_sockets(installation, "receiver"))


def to(service, user=""):
    return "--to", service.url.removesuffix("/v1").replace("//", f"//{user}")


def test_web_server_that_answers_200_to_anything(installation, receiver, service):
    service.faults = [answers(200, body=b"<html>It works!</html>")]
    expect(examine(installation, file_of(receiver), *to(service)), EX_CONFIG, "delivery ", "answered 200, but not by gatepostd")
    service.faults = [answers(200, {"ok": True, "deliveryId": "another"})]
    expect(examine(installation, file_of(receiver), *to(service)), EX_CONFIG, "answered 200, but not by gatepostd")


def test_password_in_a_url_is_not_shown(installation, receiver, service):
    receiver.config["service"].update(base_url=service.url, api_key_file=receiver.config.secret_file("key", b"the-api-key-of-the-tests"))
    service.add({"url": "https://me:hunter2@gateway.example/webhooks/invoicing", "events": ["*"]})
    service.faults = [answers(503)]
    checkup = examine(installation, receiver.config, *to(service, "me:hunter2@"))
    assert "answered 503" in checkup.cause and "http://***@127.0.0.1:" in checkup.cause
    assert any("https://***@gateway.example/webhooks/invoicing has the events *" in line for line in checkup.lines)
    assert "hunter2" not in "\n".join(checkup.lines) + checkup.stderr
    checkup = examine(installation, receiver.config, "--to", "me:hunter2@127.0.0.1:9/elsewhere")
    expect(checkup, EX_USAGE, "delivery http://***@127.0.0.1:9/elsewhere", "no source of ")
    assert "hunter2" not in "\n".join(checkup.lines) + checkup.stderr


@pytest.fixture
def two_sources(installation):
    config = by_sockets(installation)
    config["receiver"]["listen"] = ["127.0.0.1:0", config["receiver"]["listen"]]
    config.source("orders", b"the secret of the orders of the tests", kind="/meta/type", key="delivery-id")
    installation.create_topics(config)
    return installation.start(config)


def deliveries_of(checkup):
    return [line.removeprefix("✓ delivery ").split(", secret")[0] for line in checkup.lines if line.startswith("✓ delivery ")]


def test_path_of_the_url_chooses_the_source(installation, two_sources):
    base = f"http://{two_sources.address}"
    for path, source in (("/webhooks/invoicing", "invoicing"), ("/webhooks/orders", "orders"), ("/webhooks/orders?from=here", "orders")):
        checkup = examine(installation, file_of(two_sources), "--to", base + path)
        assert checkup.status == 0 and deliveries_of(checkup) == [base + path], checkup.lines
        assert f"[source {source}]" in "".join(line for line in checkup.lines if line.startswith("✓ delivery "))
    both = [f"{base}/webhooks/invoicing", f"{base}/webhooks/orders"]
    for url in (base, f"{base}/", two_sources.address):
        assert deliveries_of(examine(installation, file_of(two_sources), "--to", url)) == both
    checkup = examine(installation, file_of(two_sources), "--to", f"{base}?from=here")
    assert checkup.status == 0 and deliveries_of(checkup) == [f"{url}?from=here" for url in both]


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


def has_no_way_to(address):
    with socket.socket(socket.AF_INET6) as each:
        each.setblocking(False)
        return each.connect_ex((address, 80)) == errno.ENETUNREACH


def test_each_address_of_the_url_gets_the_deliveries(installation, two_sources):
    """The service may choose any of them, and one is that of a machine that does not exist any more, say."""
    hosts = two_sources.config.directory / "hosts"
    inside = ["unshare", "--mount", "sh", "-ec", f'mount --bind {hosts} /etc/hosts; exec "$@"', "sh"]
    url = "http://gateway.test:" + two_sources.address.rpartition(":")[2]
    good, refused, strange = (url[7:].replace("gateway.test", host) for host in ("127.0.0.1", "127.0.0.2", "[2001:db8::1]"))
    hosts.write_text("127.0.0.1 gateway.test\n127.0.0.2 gateway.test\n" + "2001:db8::1 gateway.test\n" * has_no_way_to("2001:db8::1"))
    checkup = examine(installation, file_of(two_sources), "--to", url, wrapper=inside)
    expect(checkup, EX_UNAVAILABLE, f"delivery {url}/webhooks/invoicing at {refused}, secret 1 of [source invoicing]: ", "remove it from the name")
    assert deliveries_of(checkup) == [f"{url}/webhooks/{name} at {good}" for name in ("invoicing", "orders")]
    skipped = [line for line in checkup.having("-") if strange in line]
    assert len(skipped) == 2 * has_no_way_to("2001:db8::1") and all("this machine has no way to this address" in line for line in skipped)
    hosts.write_text("127.0.0.1 gateway.test\n")
    checkup = examine(installation, file_of(two_sources), "--to", url, wrapper=inside)
    assert checkup.status == 0 and deliveries_of(checkup) == [f"{url}/webhooks/{name}" for name in ("invoicing", "orders")]


def test_path_of_the_url_that_no_source_has_is_refused(installation, two_sources):
    for path in ("/elsewhere", "/webhooks/invoicing/", "/elsewhere?/webhooks/orders"):
        url = f"http://{two_sources.address}{path}"
        expect(examine(installation, file_of(two_sources), "--to", url), EX_USAGE, f"delivery {url}", "no source of ", "leave the path out")
    assert two_sources.metric("gatepost_requests_total", outcome="not_found") == 0


def test_proxy_that_keeps_its_prefix_is_a_candidate(installation, two_sources):
    """The file and the receiver have the same path: to change it would not help."""
    url = f"http://{two_sources.address}/proxied/webhooks/orders"
    checkup = examine(installation, file_of(two_sources), "--to", url)
    expect(checkup, EX_CONFIG, f"delivery {url}", "answered 404 (NOT_FOUND)", "by its log",
           "a proxy that must remove what is before /webhooks/orders")


def without_first_segment(request, address):
    """What a proxy that removes the first segment of the path passes on, and the answer."""
    head, _, body = request.partition(b"\r\n\r\n")
    words, _, lines = head.partition(b"\r\n")
    with socket.create_connection(address) as onward:
        onward.sendall(words.replace(b"/proxied", b"", 1) + b"\r\n" + lines + b"\r\nConnection: close\r\n\r\n" + body)
        answer = b""
        while more := onward.recv(65536):
            answer += more
    return answer


def test_proxy_that_leads_to_another_source_is_a_candidate(installation, two_sources):
    """The URL ends with the paths of two sources: which one it leads to is known to the proxy only."""
    config = two_sources.config
    config.source("proxied", b"the secret of the third source of the tests", path="/proxied/webhooks/orders", key="delivery-id",
                  header_prefix="x-orders")
    reload(two_sources)
    host, _, port = two_sources.address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: without_first_segment(request, (host, int(port))))
        url = "http://%s:%d/proxied/webhooks/orders" % server.getsockname()
        checkup = examine(installation, file_of(two_sources), "--to", url)
    expect(checkup, EX_CONFIG, f"delivery {url}, secret 1 of [source proxied]", "answered 401 (INVALID_SIGNATURE)",
           "which source gets it", "the receiver's log", "if it is [source proxied]")
