"""gatepostd as a process: starting, observing its log and admin endpoint, and stopping it."""

import os
import re
import shutil
import signal
import subprocess

import http_client
import waiting
from signing import Delivery

SANITIZER_REPORTS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "LeakSanitizer:", "runtime error:")
SANITIZER_EXIT = "exitcode=86"
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": SANITIZER_EXIT + ":handle_abort=1", "LSAN_OPTIONS": SANITIZER_EXIT,
               "UBSAN_OPTIONS": "print_stacktrace=1"}
START_SECONDS = 30
READY_SECONDS = 60
STOP_SECONDS = 40
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\S+) (.*)$")


def assert_no_sanitizer_report(text):
    found = [report for report in SANITIZER_REPORTS if report in text]
    assert not found, f"a sanitizer reported {found}:\n{text[-8000:]}"


class Daemon:
    def __init__(self, program, config, name="gatepostd"):
        """A daemon that is not running yet; its configuration is written when it starts."""
        self.program = program
        self.config = config
        self.name = name
        self.environment = {}  # in addition to the usual one
        self.wrapper = []  # a command that executes the daemon
        self.inherits = []  # descriptors to pass
        self.process = None
        self._log = config.directory / f"{name}.log"
        self._run_begins = 0  # offset in the log where the current run begins
        self._exit_checked = True

    # Starting and stopping

    def start(self):
        """Start it and wait until it listens."""
        self.launch()
        waiting.until(lambda: self.listens_everywhere() or not self.is_running(), START_SECONDS, "listeners")
        if not self.is_running():
            raise AssertionError(f"{self.name} exited with {self.process.returncode}:\n{self.log}")
        return self

    def launch(self):
        """Start it without waiting."""
        path = self.config.write(f"{self.name}.conf")
        self._run_begins = self._log.stat().st_size if self._log.exists() else 0
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen([*self.wrapper, self.program, "-c", path], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=ENVIRONMENT | self.environment,
                                            cwd=self.config.directory, pass_fds=self.inherits)
        self._exit_checked = False
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, expect=0, seconds=STOP_SECONDS):
        """Stop it with SIGTERM and check its exit status."""
        self.process.send_signal(signal.SIGTERM)
        self.wait_for_exit(expect, seconds)

    def kill(self):
        """Kill it with SIGKILL."""
        self.process.kill()
        self.wait_for_exit(-signal.SIGKILL)

    def restart(self):
        """Start it again with the same configuration, and wait until it is ready."""
        return self.start().wait_until_ready()

    def wait_for_exit(self, expect, seconds=STOP_SECONDS):
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._show_where_it_hangs()
            raise AssertionError(f"{self.name} did not exit within {seconds} s:\n{self.log[-4000:]}") from None
        self._exit_checked = True
        assert_no_sanitizer_report(self.log)
        assert status == expect, f"{self.name} exited with {status} instead of {expect}:\n{self.log[-8000:]}"

    def _show_where_it_hangs(self):
        """Make the sanitizer write the main thread's stack to the log; with gdb, the stacks of all threads."""
        if shutil.which("gdb"):
            done = subprocess.run(["gdb", "-batch", "-p", str(self.process.pid), "-ex", "thread apply all backtrace 20"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            print(done.stdout)
        self.process.send_signal(signal.SIGABRT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass

    def take_exit_status(self, seconds=STOP_SECONDS):
        """Wait until it exits by itself. Returns the status, which the caller must check."""
        status = self.process.wait(seconds)
        self._exit_checked = True
        assert_no_sanitizer_report(self.log)
        return status

    def abandon(self):
        """Kill it without checking its exit status; a sanitizer report is still an error."""
        self.process.kill()
        self.process.wait()
        self._exit_checked = True
        assert_no_sanitizer_report(self.log)

    def clean_up(self):
        """Stop it if it is running. An unexpected exit is an error."""
        if self.is_running():
            try:
                self.stop()
            finally:
                if self.is_running():
                    self.process.kill()
                    self.process.wait()
        elif not self._exit_checked:
            self.wait_for_exit(0)

    # The log

    @property
    def log(self):
        """The log of this run."""
        with open(self._log, "rb") as log:
            log.seek(self._run_begins)
            return log.read().decode(errors="replace")

    def last_log(self, size):
        """The last bytes of the log of this run."""
        with open(self._log, "rb") as log:
            log.seek(max(self._run_begins, self._log.stat().st_size - size))
            return log.read().decode(errors="replace")

    def log_messages(self):
        """(level, message with its values) of each line of this run's log."""
        return [match.groups() for match in map(LINE.match, self.log.splitlines()) if match]

    def wait_for_log(self, text, seconds=START_SECONDS):
        """Wait for a line with this text, and return it."""
        return waiting.until(lambda: next((line for line in self.log.splitlines() if text in line), None), seconds,
                             lambda: f"{text!r} in the log of {self.name}:\n{self.log[-4000:]}")

    def _addresses(self, what):
        return re.findall(rf' listening .*for={what} .*address="?([^\s"]+)', self.log)

    def listens_everywhere(self):
        receivers = len(self.config.get("receiver", "listen")) if self._receives() else 0
        admins = len(self.config.get("admin", "listen"))
        return len(self._addresses("receiver")) >= receivers and len(self._addresses("admin")) >= admins

    def _receives(self):
        return "receiver" in self.config["gatepost"]["roles"]

    # The receiver

    @property
    def addresses(self):
        return self._addresses("receiver")

    @property
    def address(self):
        return self.addresses[0]

    @property
    def url(self):
        return f"http://{self.address}/webhooks/invoicing"

    def post(self, delivery=None, source="invoicing", address=None, **options):
        """Send a delivery over a new connection. Returns the reply."""
        delivery = delivery or Delivery()
        return http_client.request(address or self.address, "POST", f"/webhooks/{source}",
                                   delivery.headers(f"x-{source}"), delivery.body, **options)

    def accept(self, delivery=None, **options):
        """Send a delivery that must be accepted. Returns the delivery."""
        delivery = delivery or Delivery()
        reply = self.post(delivery, **options)
        assert reply.status == 200, (reply.status, reply.body)
        assert reply.json == {"ok": True, "deliveryId": delivery.delivery_id}
        return delivery

    # The admin endpoint

    def admin(self, path):
        return http_client.request(self._addresses("admin")[0], "GET", path)

    def ready(self):
        return self.admin("/readyz").status == 200

    def wait_until_ready(self, seconds=READY_SECONDS):
        waiting.until(lambda: self.ready() or not self.is_running(), seconds,
                      lambda: f"{self.name} to be ready: {self.admin('/readyz').body}\n{self.log[-4000:]}")
        assert self.is_running(), f"{self.name} exited:\n{self.log}"
        return self

    def wait_until_not_ready(self, seconds):
        waiting.until(lambda: not self.ready(), seconds, f"{self.name} to be not ready")

    def metrics(self, name):
        """The samples of one metric: {labels as a frozenset of (label, value): number}."""
        samples = {}
        for line in self.admin("/metrics").body.decode().splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name:
                samples[frozenset(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))] = float(match[3])
        return samples

    def metric(self, name, **labels):
        """The sum of the samples that have these labels."""
        samples = [value for pairs, value in self.metrics(name).items() if labels.items() <= dict(pairs).items()]
        assert samples, f"no metric {name} with {labels}"
        return sum(samples)
