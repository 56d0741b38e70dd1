"""The cost of a delivery in instructions, counted by callgrind: times are not comparable on shared machines. The bounds
are 10 % above the measured values."""

import re
import subprocess

import pytest

import http_client
import waiting
from signing import Delivery, event_body

START_SECONDS = 180  # callgrind is fifty times slower
N = 300
PATH = "/webhooks/invoicing"
TEXT = "x" * 900  # for bodies of 1 KiB


class Counted:
    """A daemon under callgrind, which counts between begin() and end()."""

    def __init__(self, daemon, directory, *options):
        self.daemon = daemon
        self.directory = directory
        daemon.wrapper = ["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", *options,
                          f"--callgrind-out-file={directory}/counts"]

    def start(self):
        self.daemon.launch()
        waiting.until(lambda: self.daemon.listens_everywhere() or not self.daemon.is_running(), START_SECONDS, "listeners")
        self.daemon.wait_until_ready(START_SECONDS)
        return self

    def _control(self, switch):
        subprocess.run(["callgrind_control", f"--instr={switch}", str(self.daemon.process.pid)], check=True,
                       stdout=subprocess.DEVNULL, timeout=START_SECONDS)

    def begin(self):
        self._control("on")

    def end(self):
        self._control("off")

    def of_thread(self, function):
        """Instructions of all threads that called this function, without those for librdkafka's statistics, which come by the
        clock: on a busy machine there are more of them for each delivery. Stops the daemon."""
        self.daemon.stop(seconds=START_SECONDS)
        paths = [path for path in self.directory.glob("counts*") if f") {function}\n" in path.read_text()]
        assert paths, f"no thread called {function}"
        return sum(int(re.search(r"^totals: (\d+)", path.read_text(), re.M)[1]) - _inclusive(path, "on_statistics") for path in paths)


def _inclusive(path, function):
    done = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", path], check=True, capture_output=True,
                          text=True, timeout=START_SECONDS)
    return sum(int(cost.replace(",", "")) for cost in re.findall(rf"^ *([\d,]+) .*:{function}\b", done.stdout, re.M))


def post_all(daemon, deliveries, status):
    """Over one connection."""
    client = http_client.Client(daemon.address, timeout=START_SECONDS)
    for delivery in deliveries:
        assert client.request("POST", PATH, delivery.headers(), delivery.body).status == status
    client.close()


def deliveries(n, **options):
    return [Delivery(event_body(text=TEXT), **options) for _ in range(n)]


@pytest.fixture
def plain(plain_build, tmp_path):
    """A function that creates a counted daemon without sanitizers."""
    def counted(installation, roles, *options):
        installation.build = plain_build
        return Counted(installation.daemon(installation.config(roles)), tmp_path, *options)
    return counted


@pytest.mark.parametrize("status, options, bound", [
    pytest.param(401, {"secret": b"of somebody else altogether"}, 62_500, id="refused"),
    pytest.param(200, {}, 82_500, id="accepted")])
def test_receiver_lane_instructions_per_delivery_are_bounded(installation, plain, status, options, bound):
    installation.create_topics()
    counted = plain(installation, "receiver", "--instr-atstart=no").start()
    post_all(counted.daemon, deliveries(20, **options), status)
    sent = deliveries(N, **options)
    counted.begin()
    post_all(counted.daemon, sent, status)
    counted.end()
    cost = counted.of_thread("framing_feed") / N
    print(f"{cost:.0f} instructions")
    assert bound / 4 < cost < bound


def test_router_instructions_per_record_are_bounded(installation, plain):
    """Includes the instructions of startup and commits."""
    n = 10 * N
    installation.create_topics()
    installation.kafka.append(deliveries(n))
    counted = plain(installation, "router").start()
    installation.kafka.wait_until_routed(START_SECONDS)
    cost = counted.of_thread("judge_decide") / n
    print(f"{cost:.0f} instructions")
    assert 10_000 < cost < 50_000
