"""A misbehaving service, for cases that the sandbox does not cover: certificates, lost answers, nonsense."""

import http.server
import json
import socket
import ssl
import struct
import threading


class FakeService:
    """Stores webhooks like the service. `faults` has the misbehaviour for each of the next calls: a function of the handler,
    which sends the answer, or None for the usual behaviour."""

    def __init__(self, certificate=None, key=None, host="127.0.0.1"):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                self.payload = json.loads(body) if body else None
                service.calls.append((self.command, self.path))
                service.headers.append(dict(self.headers.items()))
                fault = service.faults.pop(0) if service.faults else None
                (fault or service.usual)(self)

            do_GET = do_POST = do_DELETE = handle_any

            def reply(self, status, payload=None, headers=(), body=None):
                body = json.dumps(payload).encode() if payload is not None else body or b""
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def reset(self):
                """Break the connection, without an answer."""
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # the client disconnected, as some tests intend

        self.calls = []
        self.headers = []
        self.faults = []
        self.webhooks = []
        self._number = 0
        self._server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if certificate else 'http'}://{host}:{self._server.server_address[1]}/v1"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    # Usual behaviour

    def add(self, payload):
        self._number += 1
        webhook = {"id": f"w{self._number}", "url": payload["url"], "events": payload["events"]}
        self.webhooks.append(webhook)
        return webhook

    def usual(self, handler):
        if handler.command == "GET":
            handler.reply(200, {"ok": True, "webhooks": self.webhooks})
        elif handler.command == "POST":
            handler.reply(201, {"ok": True, **self.add(handler.payload)})
        else:
            id = handler.path.rpartition("/")[2]
            found = [each for each in self.webhooks if each["id"] == id]
            self.webhooks = [each for each in self.webhooks if each["id"] != id]
            handler.reply(204 if found else 404)

    # Faults

    def done_but_lost(self, handler):
        """Process the request and lose the answer."""
        handler.reply = lambda *_, **__: None
        self.usual(handler)
        handler.reset()

    def done_but_failed(self, handler):
        """Process the request and answer with an error."""
        reply = handler.reply
        handler.reply = lambda *_, **__: None
        self.usual(handler)
        reply(*failure("r-done"))


def failure(request_id="r-500", status=500):
    return status, {"ok": False, "error": {"code": "INTERNAL_ERROR", "message": "it went wrong", "requestId": request_id}}


def fails(handler):
    handler.reply(*failure())


def resets(handler):
    handler.reset()


def answers(status, payload=None, **options):
    return lambda handler: handler.reply(status, payload, **options)
