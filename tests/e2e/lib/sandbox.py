"""gatepost-sandbox as a process, and calls of its API."""

import json
import pathlib
import re
import signal
import subprocess

import http_client
import waiting
from daemon import ENVIRONMENT, assert_no_sanitizer_report

START_SECONDS = 30
STOP_SECONDS = 30
KEY = "a-key-of-the-tests"
SECRET = "a secret of the tests, long enough"
# What an invoice can ask the authority for: the kind of the event, the clearance status, and whether it is final.
OUTCOMES = {"accepted": ("invoice.accepted", "ACCEPTED", True), "rejected": ("invoice.rejected", "REJECTED", True),
            "pending": ("invoice.pending", "PENDING", False), "amended": ("invoice.amended", "AMENDED", True),
            "cancelled": ("invoice.cancelled", "CANCELLED", True), "held": ("held_unmapped_decision", "HELD", False)}


def invoice(**changes):
    """A good invoice; a change to None leaves the member out."""
    members = {"invoiceNumber": "FV/2026/1", "country": "PL", "currency": "PLN", "supplierTaxId": "PL5260001246",
               "buyerTaxId": "FR40303265045",
               "lines": [{"description": "Consulting", "quantity": 3, "unitPrice": 120.5, "taxCode": "S"}]} | changes
    return {name: value for name, value in members.items() if value is not None}


class Sandbox:
    def __init__(self, build, directory, *options, key=KEY):
        """A sandbox that is not started yet. Without a key among the options, it gets `key`; None: it generates
        one."""
        self.program = pathlib.Path(build) / "gatepost-sandbox"
        self.directory = pathlib.Path(directory)
        self.options = [str(option) for option in options]
        if key and "--key" not in self.options:
            self.options += ["--key", key]
        self.key = None  # printed at startup
        self.address = None
        self.process = None
        self._log = self.directory / "gatepost-sandbox.log"

    # Starting and stopping

    def start(self):
        """Start it and wait until it listens."""
        listen = [] if "--listen" in self.options else ["--listen", "127.0.0.1:0"]
        output = self.directory / "gatepost-sandbox.out"
        with open(self._log, "ab") as log, open(output, "wb") as out:
            self.process = subprocess.Popen([self.program, *listen, *self.options], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=log, env=ENVIRONMENT, cwd=self.directory)
        waiting.until(lambda: b"\n" in output.read_bytes() or self.process.poll() is not None, START_SECONDS,
                      "the first line of gatepost-sandbox")
        first = output.read_text().partition("\n")[0]
        assert self.process.poll() is None, f"gatepost-sandbox exited with {self.process.returncode}:\n{self.log}"
        self.address, self.key = re.fullmatch(r"listening on http://(\S+)/v1 with key (\S+)", first).groups()
        return self

    def stop(self, expect=0):
        """Stop it with SIGTERM and check its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"gatepost-sandbox did not exit:\n{self.log[-4000:]}") from None
        assert_no_sanitizer_report(self.log)
        assert status == expect, f"gatepost-sandbox exited with {status}:\n{self.log[-8000:]}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        assert_no_sanitizer_report(self.log)

    def clean_up(self):
        """Stop it if it is running."""
        if self.process is not None and self.process.poll() is None:
            self.stop()
        elif self.process is not None:
            assert_no_sanitizer_report(self.log)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.clean_up()

    @property
    def log(self):
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    # Its API

    @property
    def url(self):
        """The base URL, which includes the version."""
        return f"http://{self.address}/v1"

    def call(self, method, path, payload=None, key="", body=None, headers=None, **options):
        """Call the API with a path below /v1. key: "" for the sandbox's key, None for none. Returns the reply."""
        all_headers = {"x-api-key": self.key if key == "" else key} if key is not None else {}
        if payload is not None:
            body = json.dumps(payload).encode()
        if body is not None:
            all_headers["content-type"] = "application/json"
        return http_client.request(self.address, method, "/v1" + path, all_headers | (headers or {}), body or b"",
                                   **options)

    def subscribe(self, url, events=("*",), secret=SECRET, **options):
        """Register a webhook. Returns its id."""
        reply = self.call("POST", "/webhooks", {"url": url, "events": list(events), "secret": secret}, **options)
        assert reply.status == 201, reply.body
        return reply.json["id"]

    def webhooks(self, **options):
        reply = self.call("GET", "/webhooks", **options)
        assert reply.status == 200, reply.body
        return reply.json["webhooks"]

    def fire(self, kind="invoice.received", **members):
        """Have an event sent. Returns the deliveries that were begun, {webhook-id: delivery-id}."""
        reply = self.call("POST", "/sandbox/fire", {"kind": kind} | members)
        assert reply.status == 202, reply.body
        return {each["webhookId"]: each["deliveryId"] for each in reply.json["deliveries"]}

    def submit(self, payload=None, **options):
        """Submit an invoice. Returns the answer."""
        reply = self.call("POST", "/invoices", payload or invoice(), **options)
        assert reply.status == 200, reply.body
        return reply.json

    def decided(self, invoice_id):
        """The status poll's answer once the authority has decided."""
        def record():
            reply = self.call("GET", f"/invoices/{invoice_id}")
            assert reply.status == 200, reply.body
            return reply.json["clearanceStatus"] != "SUBMITTED" and reply.json
        return waiting.until(record, 30, "the authority's decision")
