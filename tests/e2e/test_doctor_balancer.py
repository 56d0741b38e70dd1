"""gatepost doctor --to, where several receivers answer at the URL, or a source has several webhook_id."""

import itertools
import socket
import time

import pytest

import waiting
from checkup import EX_CONFIG, EX_UNAVAILABLE, by_sockets, change_path, change_secret, examine, expect, file_of, passed_on, serve
from reloading import reload


def change_prefix(config):
    config["source invoicing"]["header_prefix"] = "x-other"


def change_webhook_id(config):
    config["source invoicing"]["webhook_id"] = "another"


@pytest.fixture
def first(installation):
    installation.create_topics()
    config = by_sockets(installation)
    config["receiver"]["listen"] = ["127.0.0.1:0", config["receiver"]["listen"]]
    config["source invoicing"]["webhook_id"] = ["one", "two"]
    return installation.start(config)


@pytest.fixture
def second(installation, first):
    """Another receiver, not ready yet."""
    config = by_sockets(installation, "receiver")
    config["receiver"]["listen"] = ["127.0.0.1:0", config["receiver"]["listen"]]
    config["source invoicing"]["webhook_id"] = ["one", "two"]
    return installation.daemon(config)


def examine_by(installation, file, *daemons):
    """Run doctor with the URL of a balancer, which sends each request to the next of these receivers."""
    turns = itertools.cycle(daemons)
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: passed_on(request, next(turns)))
        return examine(installation, file, "--to", "http://%s:%d" % server.getsockname())


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("change, answer, option", [(change_secret, "401 (INVALID_SIGNATURE)", "secret_file"), (change_prefix, "400 (VALIDATION_ERROR)", "header_prefix"),
                                                    (change_path, "404 (NOT_FOUND)", "path"), (change_webhook_id, "403 (FORBIDDEN)", "webhook_id")])
def test_one_of_several_receivers_has_another_configuration(installation, first, second, change, answer, option, is_first):
    """Whichever of them is asked first; a proxy, or a reload on this machine, is no candidate."""
    change(second.config)
    second.start().wait_until_ready()
    receivers = [second, first] if is_first else [first, second]
    checkup = examine_by(installation, file_of(first), *receivers)
    expect(checkup, EX_CONFIG, "delivery http://", f"answered {answer}", "but another delivery like it was accepted", "several receivers answer at this URL",
           f"not all have the {option} of [source invoicing] that {file_of(first)} has", "--to with the address of each tells which", "reload them")
    assert "proxy" not in checkup.cause, checkup.cause


def test_one_of_several_receivers_lacks_one_of_the_ids(installation, first, second):
    """As while the ID of a new webhook is added: in each run, though the balancer's turns do not begin anew."""
    second.config["source invoicing"]["webhook_id"] = ["one"]
    second.start().wait_until_ready()
    turns = itertools.cycle([first, second])
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: passed_on(request, next(turns)))
        for _ in range(3):
            expect(examine(installation, file_of(first), "--to", "http://%s:%d" % server.getsockname()), EX_CONFIG, "this webhook_id of the configuration, two",
                   "several receivers answer at this URL, and not all have the webhook_id")


def test_receiver_without_kafka(installation, first, second):
    """The trouble is not of the machine on which doctor runs."""
    second.config["kafka"]["bootstrap.servers"] = f"127.0.0.1:{installation.port()}"
    second.start()
    waiting.until(lambda: b"is not reachable: " in second.admin("/readyz").body, 30, "the outage to be known")
    checkup = examine(installation, file_of(first), "--to", f"http://{second.address}")
    expect(checkup, EX_UNAVAILABLE, "answered 503 (UNAVAILABLE)", "remedy: run gatepost doctor without --to on the receiver's machine")
    expect(examine_by(installation, file_of(first), first, second), EX_UNAVAILABLE, "answered 503 (UNAVAILABLE)", "but another delivery like it was accepted",
           "several receivers answer at this URL, and one cannot append: run gatepost doctor on its machine")


def test_file_of_a_router_needs_no_webhook_id(installation, first):
    config = by_sockets(installation, "router")
    router = installation.start(config)
    checkup = examine(installation, file_of(router), "--to", f"http://{first.address}")
    assert checkup.status == 0 and any("not verified: the receiver takes only certain webhook_id" in line for line in checkup.lines), checkup.lines


def test_receivers_of_which_none_has_the_configuration(installation, first, second):
    second.start().wait_until_ready()
    change_secret(first.config)
    checkup = examine_by(installation, str(first.config.write("other.conf")), first, second)
    expect(checkup, EX_CONFIG, "answered 401 (INVALID_SIGNATURE)", "do not have the same secret_file")
    assert "another delivery like it" not in checkup.cause, checkup.cause


def test_receivers_that_have_the_same_configuration(installation, first, second):
    second.start().wait_until_ready()
    assert examine_by(installation, file_of(first), first, second).status == 0


def test_each_webhook_id_is_used(installation):
    """The daemon has not loaded the one that was added last; then the file has none."""
    config = by_sockets(installation)
    config["source invoicing"]["webhook_id"] = ["one", "two"]
    installation.create_topics()
    daemon = installation.start(config)
    assert examine(installation, file_of(daemon)).status == 0
    daemon.config["source invoicing"]["webhook_id"] = ["one", "two", "three"]
    expect(examine(installation, daemon.config), EX_CONFIG, "answered 403 (FORBIDDEN): the receiver does not take this webhook_id of the configuration, three",
           "systemctl reload gatepostd")
    reload(daemon)
    assert examine(installation, file_of(daemon)).status == 0
    del daemon.config["source invoicing"]["webhook_id"]
    expect(examine(installation, daemon.config), EX_CONFIG,
           "answered 403 (FORBIDDEN): the receiver takes only certain webhook_id, and the configuration names none; ", "systemctl reload gatepostd")


def test_slow_answer_does_not_end_the_turns(installation, first, second):
    """As the first one through a proxy that has to connect."""
    second.config["source invoicing"]["webhook_id"] = ["two"]
    second.start().wait_until_ready()
    turns = itertools.cycle([first, second])
    delays = itertools.chain([0.7], itertools.repeat(0))

    def answer(request):
        time.sleep(next(delays))
        return passed_on(request, next(turns))
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, answer)
        expect(examine(installation, file_of(first), "--to", "http://%s:%d" % server.getsockname()), EX_CONFIG, "this webhook_id of the configuration, one",
               "several receivers answer at this URL")


@pytest.mark.parametrize("n, mark, words", [(1, "!", "; a proxy before the receiver does not take all webhook_id at once"),
                                            (2, "✓", "; a proxy before the receiver does not take more at once")])
def test_proxy_that_takes_few_deliveries_at_once(installation, first, n, mark, words):
    """What was not tried is not ticked."""
    limited = itertools.chain(itertools.repeat(False, n), itertools.repeat(True))
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve(server, lambda request: b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n" if next(limited) else passed_on(request, first))
        checkup = examine(installation, file_of(first), "--to", "http://%s:%d" % server.getsockname())
    (line,) = [line for line in checkup.lines if line[2:].startswith("delivery http")]
    assert checkup.status == 0 and line.startswith(mark) and line.endswith(words), checkup.lines
