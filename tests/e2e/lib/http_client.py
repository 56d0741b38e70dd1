"""An HTTP client for addresses in the format of gatepostd's log: 127.0.0.1:8080, [::1]:8080, unix:/path."""

import dataclasses
import http.client
import json
import re
import socket

TIMEOUT = 30


@dataclasses.dataclass
class Reply:
    status: int
    headers: object  # an email.message.Message: names are case-insensitive
    body: bytes
    closed: bool  # whether the server closes the connection afterwards
    reason: str = ""  # the reason phrase

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]

    @property
    def request_id(self):
        return self.headers["x-request-id"]


def connect(address, timeout=TIMEOUT, tls=None, source=""):
    """A connected socket; with tls, an ssl.SSLContext, an end without close_notify is an error. source: the local
    address."""
    connection = _connect(address, timeout, source)
    if tls is None:
        return connection
    try:
        return tls.wrap_socket(connection, server_hostname="localhost", suppress_ragged_eofs=False)
    except OSError:
        connection.close()
        raise


def _connect(address, timeout, source):
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        connection.connect(address.removeprefix("unix:"))
        return connection
    host, port = re.fullmatch(r"\[?([^\]]+)\]?:(\d+)", address).groups()
    connection = socket.create_connection((host, int(port)), timeout=timeout, source_address=(source, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Client(http.client.HTTPConnection):
    """A connection that is kept alive between requests and reopened if the server has closed it."""

    def __init__(self, address, timeout=TIMEOUT, tls=None):
        super().__init__("localhost", timeout=timeout)
        self.address = address
        self.tls = tls

    def connect(self):
        self.sock = connect(self.address, self.timeout, self.tls)

    def request(self, method, target, headers=(), body=b"", chunked=False):
        """Send a request; headers is a dictionary or, for repeated names, a list of pairs. Returns the reply."""
        pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
        self.putrequest(method, target, skip_accept_encoding=True)
        for name, value in pairs:
            self.putheader(name, value)
        self.putheader(*(("transfer-encoding", "chunked") if chunked else ("content-length", str(len(body)))))
        try:
            self.endheaders(_in_chunks(body) if chunked else body)
        except (BrokenPipeError, ConnectionResetError):
            if self.sock is None:
                raise  # the connection was not established
            # Otherwise the answer may have arrived before the whole body was sent.
        response = self.getresponse()
        return Reply(response.status, response.headers, response.read(), response.will_close, response.reason)


def _in_chunks(body, size=10000):
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def request(address, method, target, headers=(), body=b"", chunked=False, timeout=TIMEOUT, tls=None):
    """Send a request over a new connection."""
    client = Client(address, timeout, tls)
    try:
        return client.request(method, target, headers, body, chunked)
    finally:
        client.close()


def raw(address, data, timeout=TIMEOUT, tls=None):
    """Send bytes and return the first answer."""
    with connect(address, timeout, tls) as connection:
        connection.sendall(data)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return Reply(response.status, response.headers, response.read(), response.will_close, response.reason)
