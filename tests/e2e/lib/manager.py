"""A substitute for systemd: the notification socket of a service, and sockets passed to it."""

import dataclasses
import os
import socket
import struct
import sys
import threading
import time

import waiting

SECONDS = 60
SO_TIMESTAMPNS = SCM_TIMESTAMPNS = 35  # not defined in Python
# Starts a service like systemd: the sockets are descriptors from 3 on, and the environment names the process they are for.
PASS_ON = """
import os, sys
names = sys.argv[1]
fds = [int(fd) for fd in sys.argv[2].split(",")]
high = [os.dup2(fd, 500 + at, False) for at, fd in enumerate(fds)]
for at, fd in enumerate(high):
    os.dup2(fd, 3 + at)
os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_PID=str(os.getpid()))
if names:
    os.environ["LISTEN_FDNAMES"] = names
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclasses.dataclass(frozen=True)
class Message:
    time: float  # monotonic, when it was sent
    pid: int  # who sent it
    text: str

    @property
    def assignments(self):
        return dict(line.split("=", 1) for line in self.text.splitlines())

    def __getitem__(self, name):
        return self.assignments.get(name)


class Manager:
    """Records all messages in order."""

    def __init__(self, address):
        self.address = str(address)
        self.messages = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.bind(self.address.replace("@", "\0", 1))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(65536, 1024)
            except OSError:
                return
            if not ancillary:
                return  # closed
            control = {kind: value for _, kind, value in ancillary}
            pid = struct.unpack("iII", control[socket.SCM_CREDENTIALS])[0]
            seconds, nanoseconds = struct.unpack("qq", control[SCM_TIMESTAMPNS])
            age = time.time() - seconds - nanoseconds / 1e9
            self.messages.append(Message(time.monotonic() - age, pid, data.decode()))

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def watch(self, daemon, watchdog_seconds=None):
        """Make a daemon notify this manager once it is started."""
        daemon.environment["NOTIFY_SOCKET"] = self.address
        if watchdog_seconds:
            daemon.environment["WATCHDOG_USEC"] = str(int(watchdog_seconds * 1e6))
        return daemon

    def having(self, name, value=None):
        """The messages with this assignment, or with this name."""
        return [message for message in list(self.messages)
                if message[name] is not None and value in (None, message[name])]

    def wait_for(self, name, value=None, n=1, seconds=SECONDS):
        """Wait for the n-th message with this assignment, and return it."""
        return waiting.until(lambda: (self.having(name, value) + [None] * n)[n - 1], seconds,
                             lambda: f"{n} of {name}={value or '…'} among {[m.text for m in self.messages]}")

    def wait_for_status(self, text, seconds=SECONDS):
        """Wait until the newest STATUS has this text, and return it."""
        def newest():
            statuses = self.having("STATUS")
            return statuses[-1] if statuses and text in statuses[-1]["STATUS"] else None
        return waiting.until(newest, seconds, lambda: f"STATUS with {text!r}: {[m.text for m in self.messages]}")


def listening(address="127.0.0.1:0", backlog=1024):
    """A listening socket like that of a socket unit."""
    if address.startswith("unix:"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address.removeprefix("unix:"))
    else:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        host, port = address.split(":")
        listener.bind((host, int(port)))
    listener.listen(backlog)
    return listener


def pass_on(daemon, sockets, names="receiver"):
    """Pass these sockets to a daemon when it is started; names has one for each, or one for all, or is empty."""
    if names and ":" not in names:
        names = ":".join([names] * len(sockets))
    daemon.inherits = [each.fileno() for each in sockets]
    daemon.wrapper = [sys.executable, "-c", PASS_ON, names, ",".join(map(str, daemon.inherits))]
    return daemon


def address_of(listener):
    name = listener.getsockname()
    return f"unix:{name}" if isinstance(name, str) else f"{name[0]}:{name[1]}"


def has_file(listener):
    return os.path.exists(listener.getsockname())
