"""Ports of 127.0.0.1 for programs that are told where to listen.

A port that was found free and let go may be taken before the program listens on it: each connection of any process takes
one. So the port stays bound until the program has ended."""

import contextlib
import errno
import pathlib
import random
import socket


def reserve():
    """Return a socket bound to a free port, and not listening. Until it is closed, only a program that sets SO_REUSEADDR
    can listen on its port. The port is outside the kernel's ephemeral range if possible: clients that still look for a
    server after it has ended must not reach another process."""
    lowest_of_kernel = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = range(10000, lowest_of_kernel if lowest_of_kernel >= 20000 else 1 << 16)
    while True:
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", random.choice(ports)))
        except OSError as error:
            holder.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # earlier, bind() would share the port
            return holder


@contextlib.contextmanager
def reserved():
    """The number of a port that is reserved meanwhile."""
    with reserve() as holder:
        yield number_of(holder)


def number_of(holder):
    return holder.getsockname()[1]
