"""A webhook endpoint: an HTTP server that records requests and gives the configured answers."""

import dataclasses
import http.server
import json
import ssl
import threading
import time

import waiting
from signing import hmac_sha256

SECONDS = 60


@dataclasses.dataclass
class Received:
    method: str
    path: str
    headers: object  # names are case-insensitive
    body: bytes
    at: float  # by the monotonic clock

    @property
    def json(self):
        return json.loads(self.body)

    def header(self, name):
        (value,) = self.headers.get_all(name)
        return value

    def assert_signed(self, secret, service="invoicing"):
        """Check the four headers as documented by the service. Returns (webhook-id, delivery-id, timestamp)."""
        prefix = f"x-{service}-"
        timestamp = self.header(prefix + "timestamp")
        assert timestamp.isdigit() and len(timestamp) == 10 and abs(int(timestamp) - time.time()) < 600
        secret = secret.encode() if isinstance(secret, str) else secret
        assert self.header(prefix + "signature") == "sha256=" + hmac_sha256(secret, timestamp, self.body)
        return self.header(prefix + "webhook-id"), self.header(prefix + "delivery-id"), timestamp


class Endpoint:
    def __init__(self, answers=200, certificate=None, key=None, host="127.0.0.1",
                 port=0):
        """answers: a status; a list for the first requests, followed by 200; or a function of a Received. A status may also be
        a pair with headers. With a certificate and key file, it uses HTTPS at this host. port 0: a free
        port."""
        self.requests = []
        self._answers = answers
        self._lock = threading.Lock()
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                answer = endpoint._take(Received(self.command, self.path, self.headers, body, time.monotonic()))
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                self.send_response(status)
                for name, value in ({"content-length": "0"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # the client disconnected or rejected the certificate

        self._server = Server(("127.0.0.1", port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._origin = f"{'https' if certificate else 'http'}://{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def port(self):
        return self._server.server_port

    @property
    def url(self):
        return self._origin + "/hook"

    def _take(self, received):
        with self._lock:
            self.requests.append(received)
            n = len(self.requests)
        if callable(self._answers):
            return self._answers(received)
        if isinstance(self._answers, list):
            return self._answers[n - 1] if n <= len(self._answers) else 200
        return self._answers

    def wait_for(self, count, seconds=SECONDS):
        """Wait until there are this many requests, and return all of them."""
        waiting.until(lambda: len(self.requests) >= count, seconds,
                      lambda: f"{count} requests at the endpoint; there are {len(self.requests)}")
        return list(self.requests)

    def wait_for_kind(self, kind, seconds=SECONDS):
        """Wait for an event of this kind, and return its request."""
        return waiting.until(lambda: next((each for each in self.requests if each.json["event"] == kind), None), seconds,
                             lambda: f"{kind} among {[each.json['event'] for each in self.requests]}")

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
