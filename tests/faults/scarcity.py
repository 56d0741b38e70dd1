"""Scenarios in which memory, descriptors or disk space run out.

Every scenario takes a running cluster, a build directory (without sanitizers if allocations fail), a random.Random and a
log function, and returns a Report."""

import contextlib
import ctypes
import http.client
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time

import http_client
import preload
import waiting
from allocation import AMBIGUOUS, FORGED, GENUINE, PASSAGES, AllocationFailures
from cluster import Cluster
from http_client import Client
from installation import Installation
from load import Load
from report import Report
from signing import Delivery

SHORT_PASSAGES = (GENUINE, FORGED, AMBIGUOUS)
ALL_CALLS = range(1, 600)
SATURATED_SECONDS = 2
MOST_CPU = 0.15  # share of a processor, while saturated
DESCRIPTORS_TO_SPARE = 8
MOST_ANSWER_SECONDS = 5  # large, for a busy machine
DISK_BYTES = 200 << 20
BROKER_END_SECONDS = 60
BACK_SECONDS = 60


@contextlib.contextmanager
def _installation(cluster, build):
    with tempfile.TemporaryDirectory(prefix="gatepost-scarcity-") as directory:
        installation = Installation(pathlib.Path(directory), cluster.bootstrap, build)
        try:
            yield installation
        finally:
            installation.clean_up()


# Memory

def own_allocations(cluster, build, rng=None, log=print, passages=SHORT_PASSAGES, n=1):
    """Each allocation of the daemon's own code fails once, or with `preload.FOREVER` from there on."""
    with _installation(cluster, build) as installation:
        failures = AllocationFailures(installation, log).start()
        for passage in passages:
            failures.run(passage, n=n)
        return failures.finish()


def all_allocations(cluster, build, rng, log=print, object=preload.ALL, numbers=ALL_CALLS, most=None):
    """Each numbered allocation of the process or of a library fails once, or a random sample of `most` of them."""
    numbers = sorted(rng.sample(numbers, most)) if most else numbers
    with _installation(cluster, build) as installation:
        failures = AllocationFailures(installation, log).start()
        for passage in PASSAGES:
            failures.run(passage, object, numbers)
        return failures.finish()


# Descriptors

def _cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _limit_descriptors(process, spare):
    """Limit the number of further descriptors of a process. Returns a function that restores the limit."""
    used = max(int(name) for name in os.listdir(f"/proc/{process.pid}/fd")) + 1
    before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + spare, used + 1024))
    return lambda: resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)


def descriptors(cluster, build, rng=None, log=print):
    """Incomplete requests exhaust the daemon's descriptors: they are closed for genuine deliveries, and nothing spins."""
    report = Report()
    with _installation(cluster, build) as installation:
        installation.create_topics()
        daemon = installation.start()
        sent = [daemon.accept()]
        _limit_descriptors(daemon.process, DESCRIPTORS_TO_SPARE)
        halves = [_half_a_request(daemon) for _ in range(4 * DESCRIPTORS_TO_SPARE)]
        begun, cpu = time.monotonic(), _cpu_seconds(daemon.process)
        while time.monotonic() - begun < SATURATED_SECONDS:
            report.passes += 1
            posted = time.monotonic()
            sent.append(_accepted_at_last(daemon, report))
            if time.monotonic() - posted > MOST_ANSWER_SECONDS:
                report.unexpected.append(f"a delivery took {time.monotonic() - posted:.1f} s")
            halves.append(_half_a_request(daemon))
            time.sleep(0.1)
        cpu, seconds = _cpu_seconds(daemon.process) - cpu, time.monotonic() - begun
        report.notes[f"{cpu:.2f} s of CPU in {seconds:.1f} s without descriptors"] += 1
        if cpu > MOST_CPU * seconds:
            report.unexpected.append(f"{cpu:.2f} s of CPU in {seconds:.1f} s")
        if "Too many open files" not in daemon.log:
            report.unexpected.append("the log does not mention the descriptors")
        for half in halves:
            half.close()
        sent.append(_accepted_at_last(daemon, report))
        installation.kafka.wait_until_routed()
        must = {each.delivery_id: each for each in sent}
        report.compare(installation.kafka, must, must)
        log(str(report))
    return report


def _accepted_at_last(daemon, report):
    """Send a delivery until it is accepted, as the service does. A connection may come after others have ended and before their
    descriptors are free; it is answered 503."""
    delivery, until = Delivery(), time.monotonic() + MOST_ANSWER_SECONDS
    while (reply := daemon.post(delivery)).status == 503 and time.monotonic() < until:
        report.notes["answered 503"] += 1
    assert reply.status == 200, (reply.status, reply.body)
    return delivery


def _half_a_request(daemon):
    connection = http_client.connect(daemon.address)
    connection.sendall(b"POST /webhooks/invoicing HTTP/1.1\r\nHost: a\r\n")
    return connection


def _accepted(client, sent):
    """Send a delivery over an open connection; it must be accepted."""
    delivery = Delivery()
    reply = client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body)
    assert reply.status == 200, (reply.status, reply.body)
    sent.append(delivery)


# Disks

def full_log(cluster, build, rng=None, log=print):
    """The daemon cannot write its log to stdout and stderr, as the disk is full."""
    report = Report()
    with _installation(cluster, build) as installation:
        config = installation.config()
        receiver, admin = (f"unix:{config.directory}/{name}" for name in ("receiver", "admin"))
        config["receiver"]["listen"] = receiver
        config["admin"]["listen"] = admin
        installation.create_topics(config)
        with open("/dev/full", "wb") as full:
            process = subprocess.Popen([build / "gatepostd", "-c", config.write("full.conf")], stdout=full, stderr=full,
                                       stdin=subprocess.DEVNULL)
        try:
            waiting.until(lambda: _is_ready(admin), BACK_SECONDS, "the daemon to be ready")
            client, sent = Client(receiver), []
            for _ in range(20):
                report.passes += 1
                _accepted(client, sent)
                forged = client.request("POST", "/webhooks/invoicing", Delivery().headers(), b"forged")
                assert forged.status == 401, forged
            client.close()
            installation.kafka.wait_until_routed()
            process.send_signal(signal.SIGTERM)
            status = process.wait(BACK_SECONDS)
        finally:
            process.kill()
            process.wait()
        if status != 0:
            report.unexpected.append(f"exit status {status}")
        must = {each.delivery_id: each for each in sent}
        report.compare(installation.kafka, must, must)
        log(str(report))
    return report


def _is_ready(address):
    try:
        return http_client.request(address, "GET", "/readyz").status == 200
    except (OSError, http.client.HTTPException):
        return False


class _SmallDisk:
    """A file system in memory of this size, mounted on a new directory. Requires root."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gatepost-disk-"))
        if self._libc.mount(b"tmpfs", bytes(self.directory), b"tmpfs", 0, f"size={self.size}".encode()) != 0:
            number = ctypes.get_errno()
            self.directory.rmdir()
            raise PermissionError(number, f"mount: {os.strerror(number)}")
        return self

    def __exit__(self, *_):
        if self._libc.umount2(bytes(self.directory), 0) != 0:
            self._libc.umount2(bytes(self.directory), 2)  # MNT_DETACH
        self.directory.rmdir()

    @property
    def _filler(self):
        return self.directory / "filler"

    def fill(self):
        with open(self._filler, "wb", buffering=0) as filler:
            with contextlib.suppress(OSError):
                while filler.write(bytes(1 << 20)) == 1 << 20:
                    pass

    def free(self):
        self._filler.unlink()


def may_mount():
    try:
        with _SmallDisk(1 << 20):
            return True
    except OSError:
        return False


def full_kafka_disk(cluster, build, rng=None, log=print):
    """The disk of the only broker of a separate cluster fills up under load, and the broker ends; then space is freed and the
    broker restarted."""
    report = Report()
    with _SmallDisk(DISK_BYTES) as disk, Cluster(directory=disk.directory / "kafka") as own, \
            _installation(own, build) as installation:
        config = installation.config()
        config["receiver"]["ack_timeout"] = "3s"
        installation.create_topics(config)
        daemon = installation.start(config)
        load = Load(lambda: [daemon.address], threads=4, rate=200).start()
        try:
            _wait_for_more(load, 300)
            disk.fill()
            log("the disk is full")
            report.notes["the broker ended" if own.nodes[1].wait_until_gone(BROKER_END_SECONDS)
                         else "the broker kept running"] += 1
            waiting.until(lambda: load.answers[503], BACK_SECONDS, lambda: f"answers of 503: {load.answers}")
            if own.nodes[1].is_running():
                own.kill(1)
            disk.free()
            own.start_node(1)
            log("the broker is back")
            _wait_for_more(load, 300)
        finally:
            load.stop()
        installation.kafka.wait_until_routed()
        report.passes = len(load.accepted)
        report.notes[f"answers: {dict(load.answers)}"] += 1
        if not daemon.is_running():
            report.unexpected.append("the daemon ended")
        report.compare(installation.kafka, load.accepted, load.sent)
        log(str(report))
    return report


def _wait_for_more(load, n):
    wanted = len(load.accepted) + n
    waiting.until(lambda: len(load.accepted) >= wanted, BACK_SECONDS, lambda: f"{wanted} accepted: {load.answers}")
