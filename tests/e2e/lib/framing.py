"""The programs of tests/framing: a server that echoes what its handler got, and framing's verdicts on bytes."""

import base64
import dataclasses
import json
import re
import signal
import subprocess

import http_client
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD

SECONDS = 60


def _run(*arguments, stdin=""):
    done = subprocess.run([BUILD / "framing-verdicts", *arguments], input=stdin, capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=SECONDS)
    assert_no_sanitizer_report(done.stderr)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclasses.dataclass(frozen=True)
class Message:
    """A message as parsed by a reader."""
    method: bytes
    target: bytes
    headers: list  # of pairs, names in lower case
    body: bytes


@dataclasses.dataclass(frozen=True)
class Verdict:
    messages: list  # of (start, end, Message)
    status: int  # of the refusal, or 0
    reason: str


def _message(fields):
    hexadecimal = bytes.fromhex
    headers = [(hexadecimal(each["name"]).lower(), hexadecimal(each["value"])) for each in fields["headers"]]
    return fields["start"], fields["end"], Message(hexadecimal(fields["method"]), hexadecimal(fields["target"]), headers,
                                               hexadecimal(fields["body"]))


def verdicts(inputs):
    """The verdict of framing on the bytes of each connection."""
    lines = _run(stdin="".join(each.hex() + "\n" for each in inputs))
    return [Verdict([_message(message) for message in fields["messages"]], fields["status"], fields["reason"])
            for fields in lines]


@dataclasses.dataclass(frozen=True)
class Case:
    section: str
    data: bytes
    n_messages: int
    status: int


def cases():
    """The cases of the unit test."""
    return [Case(fields["section"], bytes.fromhex(fields["bytes"]), fields["messages"], fields["status"])
            for fields in _run("--cases")]


class Echo:
    """The server, as a process."""

    def __enter__(self):
        self.process = subprocess.Popen([BUILD / "framing-echo"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.address = re.fullmatch(r"listening on (\S+)\n", self.process.stdout.readline())[1]
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            log = self.process.communicate(timeout=SECONDS)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        assert_no_sanitizer_report(log)
        assert self.process.returncode == 0, log


@dataclasses.dataclass(frozen=True)
class Answer:
    version: bytes
    status: int
    headers: dict
    body: bytes

    @property
    def is_refusal(self):
        """Whether it has the error envelope of a framing error."""
        if self.headers["content-type"] != "application/json" or self.headers["connection"] != "close":
            return False
        if not self.body:  # to HEAD
            return int(self.headers["content-length"]) > 0
        error = json.loads(self.body)["error"]
        return error["requestId"] == self.headers["x-request-id"] and bool(error["message"])

    @property
    def message(self):
        """The message that the server's handler got; its target is only the path."""
        fields = json.loads(self.body)
        headers = [(each["name"].encode().lower(), _bytes(each, "value")) for each in fields["headers"]]
        return Message(fields["method"].encode(), _bytes(fields, "path"), headers, _bytes(fields, "body"))


def _bytes(fields, name):
    return fields[name].encode() if name in fields else base64.b64decode(fields[name + "Base64"])


class Connection:
    """A connection to a server for sending arbitrary bytes and reading the answers one by one."""

    def __init__(self, address):
        self.socket = http_client.connect(address)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, data, step=None):
        """Send bytes, `step` at a time; the server may have closed the connection already."""
        step = step or max(len(data), 1)
        try:
            for at in range(0, len(data), step):
                self.socket.sendall(data[at:at + step])
        except (BrokenPipeError, ConnectionResetError):
            pass

    def end(self):
        """Send no more."""
        try:
            self.socket.shutdown(1)
        except OSError:
            pass  # already closed

    def answer(self, to_head=False):
        """The next answer, or None if the server has closed the connection. An answer to HEAD has no body."""
        first = self.file.readline()
        if not first:
            return None
        assert first.startswith(b"HTTP/1."), first
        version, status = first.split()[0], int(first.split()[1])
        headers = {}
        for line in iter(self.file.readline, b"\r\n"):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        no_body = status == 100 or (to_head and headers.get("connection") != "close")
        length = 0 if no_body else int(headers.get("content-length", -1))  # -1: to the end
        return Answer(version, status, headers, self.file.read(length))

    def answers(self, *methods):
        """The answers to requests with these methods, and all further ones until the server closes the connection, except
        100 (Continue)."""
        methods, answers = list(methods), []
        if not methods:
            self.end()
        while True:
            answer = self.answer(to_head=methods[:1] == [b"HEAD"])
            if answer is None:
                return answers
            if answer.status != 100:
                answers.append(answer)
                del methods[:1]
                if not methods:
                    self.end()


def _path_of(target):
    """The path that a handler sees for a target."""
    return re.sub(rb"^https?://[^/?]*", b"", target, flags=re.IGNORECASE).partition(b"?")[0]


def _closes(answer):
    """Whether the connection is closed after this answer."""
    kept = answer.version == b"HTTP/1.1" or answer.headers.get("connection") == "keep-alive"
    return not kept or answer.headers.get("connection") == "close"


def fault(verdict, answers):
    """The error in a server's answers to bytes with this verdict, or None."""
    messages = [message for _, _, message in verdict.messages]
    is_refused = verdict.status != 0 and [each.status for each in answers[-1:]] == [verdict.status]
    if is_refused:
        if not answers[-1].is_refusal:
            return f"{answers[-1]} is no refusal"
        answers = answers[:-1]
    if len(answers) > len(messages):
        return f"{answers[len(messages)]} is one too many"
    has_closed = False
    for answer, message in zip(answers, messages, strict=False):
        handled = dataclasses.replace(message, target=_path_of(message.target))
        if answer.status != 200 or (message.method != b"HEAD" and answer.message != handled):
            return f"{answer} is not what was sent"
        has_closed = has_closed or _closes(answer)
    is_whole = len(answers) == len(messages) and is_refused == (verdict.status != 0)
    return None if has_closed or is_whole else f"only {answers}"


def talk(address, data, methods, step=None):
    """Send data with requests of these methods, and return all answers."""
    with Connection(address) as connection:
        connection.send(data, step)
        return connection.answers(*methods)


def fault_on_socket(echo, data, verdict, step=None):
    """The error in the server's answers to these bytes, or None."""
    return fault(verdict, talk(echo.address, data, [message.method for _, _, message in verdict.messages], step))
